#!/bin/sh
# Every shipped kernel at every level: each level's text reads back unchanged,
# and the lowered kernel on the machine model computes what the sequential
# program computes, for sizes with ragged edges, K shorter than the ring, one
# tile, several tasks a cluster, and many schedules. EXO_LONG=1: 20 schedules
# each and more sizes, and 200 schedules at the least sizes that take each ring
# through all its phases, one task and two.
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

# 200 schedules: one trip, one more than the ring is deep, twice that and one,
# the last with two tasks of one cluster.
phases() {
    kernel=$1 tile=$2 step=$3 depth=$4
    for k in 8 $((step * depth + 8)) $((step * 2 * depth + 8)); do
        n=8
        [ "$k" -gt $((step * (depth + 1))) ] && n=$((tile + 8))
        agrees "$kernel" "M=8,N=$n,K=$k" 1
    done
}

if [ "${EXO_LONG:-}" = 1 ]; then
    printf 'schedule seeds 1..%s, then 1..200\n' "$seeds"
    seeds=200
    agrees saxpy N=300 2
    agrees transpose M=33,N=33 2
    agrees gemv_f32 M=33,K=40 2
    agrees attention_sm90_bf16 Z=1,S=384 1
    phases gemm_simt_f32 128 16 1
    for kernel in gemm_sm80_f16 gemm_sm80_bf16 gemm_sm80_f16_mbarrier \
        gemm_sm80_bf16_mbarrier; do
        phases $kernel 128 32 4
    done
    for kernel in gemm_sm80_tf32 gemm_sm80_tf32_mbarrier; do
        phases $kernel 128 16 4
    done
    for kernel in gemm_sm90_bf16 gemm_sm90_f16 gemm_sm90_bf16_1x1; do
        phases $kernel 256 64 4
    done
    phases gemm_sm90_bf16_1x2 512 64 4
    phases gemm_sm90_bf16_2x2 512 64 4
    phases gemm_sm90_bf16_pingpong 128 64 3
    phases gemm_sm90_tf32 256 32 4
    phases gemm_sm90_tf32_splitk 256 64 4
fi
printf '%s passed, %s failed, 0 skipped\n' "$passed" "$failed"
[ "$failed" = 0 ]
