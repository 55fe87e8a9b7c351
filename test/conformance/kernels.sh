#!/bin/sh
# Every shipped kernel at every level: each level's text reads back unchanged,
# and the lowered kernel on the machine model computes what the sequential
# program computes, for sizes with ragged edges, K shorter than the ring, one
# tile, several tasks a cluster, and many schedules. EXO_LONG=1: 20 schedules
# each and more sizes.
set -u
bin=${EXO_BIN:-build/bin}
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
passed=0 failed=0
seeds=3
[ "${EXO_LONG:-}" = 1 ] && seeds=20

ok() {
    passed=$((passed + 1))
}

bad() {
    failed=$((failed + 1))
    printf 'FAIL: %s\n' "$*"
}

# Prints a level, reads it back and prints again: same bytes.
round_trip() {
    if "$bin/exo-opt" "$1" $2 -o "$tmp/a.eir" 2>"$tmp/err" &&
        "$bin/exo-opt" "$tmp/a.eir" -o "$tmp/b.eir" 2>>"$tmp/err" &&
        cmp -s "$tmp/a.eir" "$tmp/b.eir"; then
        ok
    else
        bad "round trip of $1 $2"
        head -5 "$tmp/err"
    fi
}

agrees() {
    kernel=$1 size=$2 clusters=$3
    if "$bin/exo-run" "kernels/$kernel.exo" --size "$size" --level=async \
        --clusters="$clusters" --seeds="$seeds" --check \
        >"$tmp/out" 2>&1; then
        ok
    else
        bad "$kernel at $size, $clusters clusters"
        head -10 "$tmp/out"
    fi
}

for file in kernels/*.exo; do
    round_trip "$file" ""
    round_trip "$file" "--pass-pipeline=strip-annotations"
    round_trip "$file" "--pass-pipeline=lower-par-to-async"
done

for clusters in 1 2; do
    for n in 1 255 256 1000; do
        agrees saxpy "N=$n" $clusters
    done
    for size in M=32,N=32 M=70,N=45 M=1,N=100; do
        agrees transpose "$size" $clusters
    done
    for size in M=128,N=128,K=16 M=130,N=70,K=40 M=1,N=1,K=1; do
        agrees gemm_simt_f32 "$size" $clusters
    done
    for size in M=32,K=32 M=70,K=100 M=1,K=1; do
        agrees gemv_f32 "$size" $clusters
    done
    for size in Z=1,S=128 Z=2,S=384; do
        agrees attention_sm90_bf16 "$size" $clusters
    done
    for kernel in gemm_sm80_f16 gemm_sm80_bf16 gemm_sm80_tf32 \
        gemm_sm80_f16_mbarrier gemm_sm80_bf16_mbarrier \
        gemm_sm80_tf32_mbarrier; do
        for size in M=8,N=8,K=8 M=128,N=128,K=64 M=264,N=200,K=200; do
            agrees $kernel "$size" $clusters
        done
    done
    for kernel in gemm_sm90_bf16 gemm_sm90_f16 gemm_sm90_tf32 \
        gemm_sm90_bf16_pingpong gemm_sm90_bf16_1x1 gemm_sm90_bf16_1x2 gemm_sm90_bf16_2x2 \
        gemm_sm90_tf32_splitk; do
        for size in M=8,N=8,K=8 M=256,N=256,K=64 M=264,N=520,K=200 \
            M=520,N=264,K=320; do
            agrees $kernel "$size" $clusters
        done
        [ "${EXO_LONG:-}" = 1 ] || continue
        for size in M=128,N=256,K=456 M=768,N=512,K=72 M=1032,N=264,K=136; do
            agrees $kernel "$size" $clusters
        done
    done
done
[ "${EXO_LONG:-}" = 1 ] && printf 'schedule seeds 1..%s\n' "$seeds"
printf '%s passed, %s failed, 0 skipped\n' "$passed" "$failed"
[ "$failed" = 0 ]
