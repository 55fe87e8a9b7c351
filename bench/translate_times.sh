#!/bin/sh
# How long a stored GEMM kernel takes from its schedule to PTX, with the checks
# that exo-translate runs: seconds of CPU (all processes) and of the clock, each
# of kernels/gemm, the slowest first; the last line counts. BIN names the tools.
set -eu
cd "$(dirname "$0")/.."
bin=${BIN:-build/bin}
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
for kernel in kernels/gemm/*.exo; do
    /usr/bin/time -f '%U %S %e' -o "$tmp/time" "$bin/exo-translate" "$kernel" \
        --to=ptx -o "$tmp/ptx" 2>"$tmp/log" || { cat "$tmp/log"; exit 1; }
    echo "$(awk '{ printf "%.2f %.2f", $1 + $2, $3 }' "$tmp/time")" \
        "$(basename "$kernel" .exo)"
done | sort -rn >"$tmp/all"
cat "$tmp/all"
awk '{ cpu[NR] = $1; clock += $2; late += $2 >= 1; busy += $1 >= 1 }
    END { printf "%d kernels: median %.2f s of CPU, most %.2f; %d of 1 s " \
                 "or more of CPU, %d of the clock\n",
                 NR, cpu[int((NR + 1) / 2)], cpu[1], busy, late }' "$tmp/all"
