#!/bin/sh
# Small right programs of many shapes: odd blocks, one warp, loops over some of
# the threads, several device functions, loops and ifs of the host, windows of
# windows, clusters of four, every element type, every swizzle of TMA. Each is
# proved by the checks, computes the sequential result on the machine model for
# each size that its first line names and four schedules, and, where there is
# an assembler, goes through it without a complaint.
set -u
cd "$EXO_SOURCE"
. test/tally
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp" "$tally_log"' EXIT

# 0: done; 4: there is no assembler here.
"$EXO_BIN/exo-translate" kernels/saxpy.exo --to=cubin -o "$tmp/x" \
    >/dev/null 2>&1
assembler=$?

for file in test/conformance/right_programs/*.exo; do
    name=$(basename "$file" .exo)
    check "$name is proved" "$EXO_BIN/exo-check" "$file"
    for size in $(sed -n '1s/^# sizes: //p' "$file"); do
        check "$name runs at $size" "$EXO_BIN/exo-run" "$file" \
            --size "$size" --level=async --check --seeds=4
    done
    [ "$assembler" = 4 ] || check "$name assembles" \
        "$EXO_BIN/exo-translate" "$file" --to=cubin -o "$tmp/x"
done
[ "$assembler" != 4 ] || skip "assembling" "no ptxas"
finish
