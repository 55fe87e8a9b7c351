#!/bin/sh
# Programs with one fault are refused with its class, as source and as lowered
# text: a seeded sample of the mutants that test/mutants/mutants.py makes, at
# two sizes each; and each kind of fault has mutants on each program that can
# have it. EXO_LONG=1: all of them, those of the source at every size, and those
# of the kernels that ship.
set -u
source=${EXO_SOURCE:-$(dirname "$0")/../..}
bin=${EXO_BIN:-build/bin}
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
sample=--sample=50 many=6
[ "${EXO_LONG:-}" = 1 ] && sample= many=600
passed=0 failed=0

mutants() {
    python3 "$source/test/mutants/mutants.py" "$@" --bin="$bin" \
        >"$tmp/out" 2>&1
    status=$?
    cat "$tmp/out"
    set -- $(tail -1 "$tmp/out")
    case $*:$status in
    *passed,*failed,*skipped:[01])
        passed=$((passed + $1)) failed=$((failed + $3)) ;;
    *)
        failed=$((failed + 1)) ;;
    esac
}

for level in par async; do
    mutants $level --places
    [ $level = async ] && some=--sizes=4 || some=
    mutants $level ${sample:-$some}
    [ -n "$sample" ] || mutants $level --kernels
    mutants $level --seeds=200 --sizes=1 --sample=$many
done
printf '%s passed, %s failed, 0 skipped\n' "$passed" "$failed"
[ "$failed" = 0 ]
