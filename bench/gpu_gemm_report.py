#!/usr/bin/env python3
"""The table and the drawing of what bench/gpu_gemm.py wrote with --json.

    gpu_gemm_report.py RESULTS.json.. [--svg=FILE]

Prints a table in Markdown, one a kernel or library: time, TFLOP/s, share of the
data sheet's peak, the ratio to cuBLAS with that of each run, where Triton ran
that to the faster of the two, where the library was tuned that to its untuned
choice, and the geometric means. The drawing has a bar for each ratio to cuBLAS,
and a line where cuBLAS is.
"""
import argparse
import json
import math
import statistics
import sys
from xml.sax.saxutils import escape

LABEL, BAR, ROW, HEAD, FOOT = 190, 480, 16, 34, 26
LEAST, MOST = 0.4, 1.6


def by_kernel(paths):
    """The rows of all files by kernel, and what was said of the runs."""
    kernels, notes = {}, []
    for path in paths:
        with open(path, encoding="utf-8") as f:
            results = json.load(f)
        note = (f"{results['device']}, median of {results['runs']} runs of "
                f"{results['rounds']} rounds")
        if results.get("in_a_row", 1) > 1:
            note += f", {results['in_a_row']} launches in a row"
        if note not in notes:
            notes.append(note)
        for row in results["rows"]:
            kernels.setdefault(row["kernel"], []).append(row)
    return kernels, notes


def geometric_mean(rows, key="ratio"):
    return math.exp(statistics.fmean(math.log(row[key]) for row in rows))


# Ratios that some runs have: the key in a row, the column, the words.
FURTHER = (("over_best", "of the best", "the best of cuBLAS and Triton"),
           ("over_untuned", "of untuned", "what is chosen untuned"))


def summary(rows, key="ratio", of=""):
    """The geometric mean of the rows that have the ratio, and the least."""
    rows = [row for row in rows if key in row]
    least = min(rows, key=lambda r: r[key])
    return (f"Geometric mean {geometric_mean(rows, key):.3f}{of} over "
            f"{len(rows)} shapes, least {least[key]:.3f} at "
            f"{' '.join(map(str, least['shape']))}.")


def table(name, rows):
    triton = any("triton" in row["tflops"] for row in rows)
    further = [f for f in FURTHER if any(f[0] in row for row in rows)]
    head = ["M N K", "us", "TFLOP/s", "of peak", "cuBLAS TFLOP/s"]
    head += ["Triton TFLOP/s"] if triton else []
    head += ["ratio (runs)"] + [column for _, column, _ in further] + ["kernel"]
    lines = [f"### {name}", "", "| " + " | ".join(head) + " |",
             "|" + "---|" * len(head)]
    for row in rows:
        cells = [" ".join(map(str, row["shape"])), f"{row['us']['ours']:.1f}",
                 f"{row['tflops']['ours']:.0f}", f"{100 * row['peak']:.0f} %",
                 f"{row['tflops']['cublas']:.0f}"]
        if triton:
            of_triton = row["tflops"].get("triton")
            cells.append(f"{of_triton:.0f}" if of_triton else "")
        runs = " ".join(f"{r:.3f}" for r in row["ratios"])
        cells.append(f"{row['ratio']:.3f} ({runs})")
        cells += [f"{row[key]:.3f}" if key in row else ""
                  for key, _, _ in further]
        lines.append("| " + " | ".join(cells + [row["choice"]]) + " |")
    lines += ["", summary(rows), ""]
    for key, _, what in further:
        lines += [summary(rows, key, f" of {what}"), ""]
    for said in sorted({row.get("certificate") or "not certified"
                        for row in rows}):
        lines += [f"{name}: {said}.", ""]
    return lines


def at(ratio):
    """Where a ratio stands; what is outside of the scale at its end."""
    inside = min(max(ratio, LEAST), MOST)
    return LABEL + BAR * (inside - LEAST) / (MOST - LEAST)


def text(x, y, words, anchor="start"):
    return f'<text x="{x:.0f}" y="{y:.0f}" text-anchor="{anchor}">' \
           f"{escape(words)}</text>"


def panel(name, rows, top):
    parts = [text(LABEL, top + 14,
                  f"{name}: ours / cuBLAS, geometric mean "
                  f"{geometric_mean(rows):.3f}")]
    y = top + HEAD
    for row in rows:
        colour = "#3b7a57" if row["ratio"] >= 1 else "#b5651d"
        parts.append(text(LABEL - 8, y + 11, " ".join(map(str, row["shape"])),
                          "end"))
        parts.append(f'<rect x="{LABEL}" y="{y}" height="{ROW - 4}" '
                     f'width="{at(row["ratio"]) - LABEL:.1f}" '
                     f'fill="{colour}"/>')
        parts.append(text(at(row["ratio"]) + 4, y + 11, f"{row['ratio']:.3f}"))
        y += ROW
    for i in range(round((MOST - LEAST) / 0.2) + 1):
        ratio = LEAST + 0.2 * i
        width = 1.5 if abs(ratio - 1) < 1e-9 else 0.3
        parts.append(f'<line x1="{at(ratio):.1f}" x2="{at(ratio):.1f}" '
                     f'y1="{top + HEAD - 6}" y2="{y}" stroke="black" '
                     f'stroke-width="{width}"/>')
        parts.append(text(at(ratio), y + 12, f"{ratio:.1f}", "middle"))
    return parts, y + FOOT


def drawing(kernels, notes):
    parts, top = [], 8
    for name, rows in kernels.items():
        lines, top = panel(name, rows, top)
        parts += lines
    parts.append(text(8, top + 8, "; ".join(notes)))
    width = LABEL + BAR + 60
    return "\n".join(
        [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" '
         f'height="{top + 20}" font-family="sans-serif" font-size="11">',
         '<rect width="100%" height="100%" fill="white"/>', *parts,
         "</svg>", ""])


def main():
    parser = argparse.ArgumentParser(
        description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("results", nargs="+")
    parser.add_argument("--svg", help="write the drawing here")
    args = parser.parse_args()
    kernels, notes = by_kernel(args.results)
    if not kernels:
        print("gpu_gemm_report: there are no rows", file=sys.stderr)
        return 1
    print("; ".join(notes) + ".\n")
    for name, rows in kernels.items():
        print("\n".join(table(name, rows)))
    if args.svg:
        with open(args.svg, "w", encoding="utf-8") as f:
            f.write(drawing(kernels, notes))
    return 0


if __name__ == "__main__":
    sys.exit(main())
