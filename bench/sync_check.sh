#!/bin/sh
# Time and peak memory of sync-check against size, on one kernel.
#
#   bench/sync_check.sh [-o PLOT.svg] [KERNEL.exo [SIZE..]]
#   bench/sync_check.sh --every-step [KERNEL.exo..]
#
# For every SIZE (default 512 to 16384), M = N = K = SIZE. Prints a table, and
# draws it with -o. The tools are those of build/bin, or of EXO_BIN. A time is
# that of the check alone, the best of three; the memory that of the process.
#
# With --every-step, the rate at which statements are run where no loop is taken
# for steady: of one task of each GEMM, 256 x 256 with a long K. Seconds of the
# processor, the best of three; synchronisation is fences, arrivals and awaits.
set -eu
top=$(cd "$(dirname "$0")/.." && pwd)
bin=${EXO_BIN:-$top/build/bin}
plot=
every=
if [ "${1:-}" = --every-step ]; then
    every=1
    shift
elif [ "${1:-}" = -o ]; then
    plot=$2
    shift 2
fi
[ -x "$bin/exo-opt" ] || {
    echo "sync_check.sh: no $bin/exo-opt: run ./dev build" >&2
    exit 2
}

# name, statements, synchronisation, seconds, statements and synchronisation a
# second, MiB.
rate() {
    python3 - "$bin/exo-opt" "$1" <<'END'
import os, re, subprocess, sys
opt, kernel = sys.argv[1:]
best = None
for _ in range(3):
    r = subprocess.Popen(
        [opt, kernel, "--pass-statistics", "-o", os.devnull,
         "--pass-pipeline=sync-check{every-step=1 M=256 N=256 K=320000}"],
        stderr=subprocess.PIPE, text=True)
    text = r.stderr.read()
    _, status, usage = os.wait4(r.pid, 0)
    if status or "proved" not in text:
        sys.exit("sync-check did not prove %s:\n%s" % (kernel, text))
    all_, sync = (int(re.search(r"(\d+) %s" % what, text).group(1)) for what in
                  ("statements", "synchronisation statements"))
    seconds = usage.ru_utime + usage.ru_stime
    best = min(best or (seconds, usage.ru_maxrss), (seconds, usage.ru_maxrss))
seconds, memory = best
print("%-24s %10d %10d %8.2f %10d %10d %6d" % (
    os.path.basename(kernel), all_, sync, seconds, all_ / seconds,
    sync / seconds, memory / 1024))
END
}

if [ -n "$every" ]; then
    [ $# -gt 0 ] || set -- "$top/kernels/gemm_sm90_bf16.exo" \
        "$top/kernels/gemm_sm90_bf16_1x1.exo" \
        "$top/kernels/gemm_sm90_bf16_2x2.exo" \
        "$top/kernels/gemm_sm90_bf16_pingpong.exo" \
        "$top/kernels/gemm_sm90_tf32.exo"
    printf '%-24s %10s %10s %8s %10s %10s %6s\n' kernel statements sync \
        seconds all_per_s sync_per_s MiB
    for kernel in "$@"; do
        rate "$kernel"
    done
    exit 0
fi

kernel=${1:-$top/kernels/gemm_sm90_bf16.exo}
[ $# -eq 0 ] || shift
[ $# -gt 0 ] || set -- 512 1024 2048 4096 8192 16384

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# Seconds of the check and kilobytes of the process, on one line.
measure() {
    python3 - "$bin/exo-opt" "$kernel" "$1" <<'END'
import os, re, subprocess, sys
opt, kernel, size = sys.argv[1:]
best = None
for _ in range(3):
    r = subprocess.Popen(
        [opt, kernel, "--timing", "-o", os.devnull,
         "--pass-pipeline=sync-check{M=%s N=%s K=%s}" % (size, size, size)],
        stderr=subprocess.PIPE, text=True)
    text = r.stderr.read()
    _, status, usage = os.wait4(r.pid, 0)
    if status or "proved" not in text:
        sys.exit("sync-check did not prove size %s:\n%s" % (size, text))
    seconds = float(re.search(r"sync-check ([0-9.]+) s", text).group(1))
    best = min(best or (seconds, usage.ru_maxrss), (seconds, usage.ru_maxrss))
print("%.3f %d" % best)
END
}

printf '%8s %10s %12s\n' size seconds peak_MiB
for size in "$@"; do
    line=$(measure "$size")
    echo "$size $line" >> "$scratch/data"
    echo "$size $line" | awk '{ printf "%8d %10.3f %12.1f\n", $1, $2, $3 / 1024 }'
done

[ -n "$plot" ] || exit 0
awk -v name="$(basename "$kernel")" '
    { x[NR] = log($1) / log(2); t[NR] = $2; m[NR] = $3 / 1024; s[NR] = $1
      if ($2 > tmax) tmax = $2
      if ($3 / 1024 > mmax) mmax = $3 / 1024 }
    function px(i) { return 60 + 480 * (x[i] - x[1]) / (NR > 1 ? x[NR] - x[1] : 1) }
    function py(v, most) { return 260 - 220 * v / most }
    END {
        print "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"620\" height=\"310\" font-family=\"sans-serif\" font-size=\"12\">"
        print "<rect width=\"620\" height=\"310\" fill=\"white\"/>"
        printf "<text x=\"60\" y=\"20\">sync-check of %s, M = N = K</text>\n", name
        print "<path d=\"M60 40V260H540V40\" fill=\"none\" stroke=\"black\"/>"
        printf "<text x=\"8\" y=\"45\" fill=\"#06c\">%.2f s</text>\n", tmax
        printf "<text x=\"548\" y=\"45\" fill=\"#c30\">%.0f MiB</text>\n", mmax
        a = b = ""
        for (i = 1; i <= NR; i++) {
            a = a sprintf("%.1f,%.1f ", px(i), py(t[i], tmax))
            b = b sprintf("%.1f,%.1f ", px(i), py(m[i], mmax))
            printf "<text x=\"%.1f\" y=\"278\" text-anchor=\"middle\">%d</text>\n", px(i), s[i]
        }
        printf "<polyline points=\"%s\" fill=\"none\" stroke=\"#06c\" stroke-width=\"2\"/>\n", a
        printf "<polyline points=\"%s\" fill=\"none\" stroke=\"#c30\" stroke-width=\"2\" stroke-dasharray=\"5 3\"/>\n", b
        print "<text x=\"60\" y=\"300\" fill=\"#06c\">time of the check</text>"
        print "<text x=\"220\" y=\"300\" fill=\"#c30\">peak memory of the process (dashed)</text>"
        print "</svg>"
    }' "$scratch/data" > "$plot"
