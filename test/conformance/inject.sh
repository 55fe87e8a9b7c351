#!/bin/sh
# A lowering with one rule broken (`inject=`, test/exo-opt-inject) must be
# refuted by check-async on every kernel whose text the rule changes. Prints
# the matrix: the class that refutes, `-` where the text stays the same, `=`
# where the change is known to be harmless, and MISSED. EXO_LONG=1: all kernels,
# and those of kernels/gemm, which are launched as dependents, with the rules
# about that.
set -u
bin=${EXO_BIN:-build/bin}
inject=$bin/../test/exo-opt-inject
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
passed=0 failed=0

kernels="gemm_sm90_bf16 gemm_sm90_bf16_1x1 gemm_sm80_bf16
    gemm_sm80_bf16_mbarrier gemm_simt_f32 gemm/gemm_bf16_64x64"
[ "${EXO_LONG:-}" = 1 ] && kernels="$(cd kernels && ls *.exo | sed 's/.exo$//')
    gemm/gemm_bf16_64x64 gemm/gemm_bf16_64x64_s4"
rules="count-plus count-minus bytes slot ring-reset wait-before no-wait no-fence
    no-proxy-fence no-warp-sync group-plus bulk-plus no-cp-wait mask-narrow
    mask-wide no-init-fence no-entry-barrier no-exit-wait registers
    load-rows store-rows scale-d k-step col0 no-guard no-grid-wait
    late-grid-wait early-too-many early-twice"

# Changes that leave a right program: more registers than asked for while the
# pool has room; mbarriers without the fences of their initialisation, where no
# other CTA and no bulk copy uses them, so that the barrier of the CTA does; a
# ring that begins anew in each task where each takes it round 8 times.
harmless() {
    case "$1:$3" in
    registers:*) grep -q 'R-POOL' "$2" && return 1 || return 0 ;;
    no-init-fence:*)
        grep -qE 'expect_tx|barrier\.cluster' "$tmp/$3.eir" && return 1 ||
            return 0
        ;;
    ring-reset:gemm_sm90_tf32_splitk) return 0 ;;
    esac
    return 1
}

one() {
    rule=$1 kernel=$2 right=$tmp/$2.eir
    "$inject" "kernels/$kernel.exo" \
        --pass-pipeline="lower-par-to-async{inject=$rule}" \
        -o "$tmp/wrong.eir" 2>"$tmp/err" || { echo "(not lowered)"; return; }
    if cmp -s "$right" "$tmp/wrong.eir"; then
        echo -
        return
    fi
    "$bin/exo-check" "kernels/$kernel.exo" --lowered="$tmp/wrong.eir" \
        --level=async >"$tmp/out" 2>"$tmp/err"
    if grep -q ': refuted' "$tmp/out"; then
        grep -q 'was never written' "$tmp/err" && echo D-RAW && return
        grep -q 'is outside' "$tmp/err" && echo bounds && return
        sed -n "s/.*error: \\(.*': \\)\\{0,1\\}\\([A-Z]*-[A-Z]*\\): .*/\\2/p" \
            "$tmp/err" | sort -u | paste -s -d, -
    elif harmless "$rule" "$tmp/err" "$kernel"; then
        echo =
    else
        echo MISSED
    fi
}

# The lowering with no rule broken.
lower() {
    "$bin/exo-opt" "kernels/$1.exo" --pass-pipeline=lower-par-to-async \
        -o "$tmp/$1.eir" 2>"$tmp/err" || exit 1
}

count() {
    case "$1" in
    MISSED | "(not lowered)" | "") failed=$((failed + 1)) ;;
    *) passed=$((passed + 1)) ;;
    esac
}

mkdir "$tmp/gemm"
printf '%-18s' rule
for kernel in $kernels; do
    printf '%-25s' "$kernel"
    lower "$kernel"
done
echo
for rule in $rules; do
    printf '%-18s' "$rule"
    for kernel in $kernels; do
        found=$(one "$rule" "$kernel")
        printf '%-25s' "$found"
        count "$found"
    done
    echo
done

# A kernel in a row, for they are many.
[ "${EXO_LONG:-}" = 1 ] && for kernel in kernels/gemm/*.exo; do
    kernel=gemm/$(basename "$kernel" .exo)
    lower "$kernel"
    printf '%-40s' "$kernel"
    for rule in no-grid-wait late-grid-wait; do
        found=$(one "$rule" "$kernel")
        printf '%-18s' "$found"
        count "$found"
    done
    echo
done

printf '%s passed, %s failed, 0 skipped\n' "$passed" "$failed"
[ "$failed" = 0 ]
