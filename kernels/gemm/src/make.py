#!/usr/bin/env python3
"""Make the kernels of this folder's parent from their sources and schedule.

src/variants.json lists types and tiles; sm90.sched, or the schedule that a
tile names, turns the source of a type into a kernel for each tile. A layout has two letters, A's and B's: A is t when
K-major ([M, K]), n when MN-major ([K, M]); B is n when K-major ([N, K]), t when
MN-major ([K, N]). `make.py EXO_OPT` writes ../gemm_TYPE[_LAYOUT]_TILE.exo;
test/conformance/gemm_variants.py compares them.

The table's `special` kernels are too many to be stored: batches, other output
types, and epilogues (alpha, beta, a bias, an activation). Their sources differ
in a few lines, so program.py writes them. `make.py EXO_OPT --library DIR` makes
them all in DIR, beside the others, and DIR/tuned.json, which is ../tuned.json
with an entry for each set of them: `exo-translate DIR/tuned.json --to=c`. Their
costs are those of ../special.json, which `tune.py --special` writes; what is not
there costs as much as the plain kernel of its tile.
"""
import argparse
import concurrent.futures
import json
import os
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
GEMM = os.path.dirname(HERE)
sys.path.insert(0, HERE)
import program  # noqa: E402


def table():
    with open(os.path.join(HERE, "variants.json"), encoding="utf-8") as f:
        return json.load(f)


def layout_params(layout):
    return {"A_MN": int(layout[0] == "n"), "B_MN": int(layout[1] == "t")}


# Of a tile whose tasks take PART columns of K of f32 each and add up.
PARTS = {"source": "gemm_tf32_parts.exo", "schedule": "sm90_parts.sched"}


def tail_source(source):
    """The text of the source with a size more, the rows of whole tiles."""
    with open(os.path.join(HERE, source), encoding="utf-8") as f:
        return f.read().replace("K: size,", "K: size, W: size,", 1)


def variants():
    """Name, source and parameters of each kernel that is stored."""
    t = table()
    for name, tiles in t["built"].items():
        for tile in tiles:
            params = {**t["types"][name], **t["tiles"][tile]}
            params.update(layout_params(params.pop("layout", "tn")))
            if "PART" in params and "schedule" not in params:
                params.update(PARTS)
            source = params.pop("source")
            if params.get("schedule") == "sm90_tail.sched":
                source = tail_source(source)
            yield f"gemm_{name}_{tile}", source, params


def special():
    """Each set of special kernels: what it computes, and its tiles."""
    seen = set()
    for rows in table()["special"]:
        for kind in program.kinds(rows):
            if kind not in seen:
                seen.add(kind)
                yield kind, rows["tiles"]


def special_params(kind, tile):
    """Where the old C needs registers beside a tile that has most of them,
    chunks are narrower."""
    t = table()
    narrower = t["crowded"].get(tile, {}) if kind.has("beta") else {}
    return {**t["tiles"][tile], **layout_params(kind.layout),
            **program.params(kind), **narrower}


def schedule(exo_opt, name, source, params):
    """The kernel's text; the source is a file here, or a program's text."""
    path = os.path.join(HERE, source)
    params = dict(params)
    steps = params.pop("schedule", "sm90.sched")
    command = [exo_opt, path if source.endswith(".exo") else "-",
               "--emit=exo", "--schedule=" + os.path.join(HERE, steps),
               "--param", "NAME=" + name]
    if not source.endswith(".exo"):
        command.append("--input=exo")
    for key, value in params.items():
        command += ["--param", f"{key}={value}"]
    done = subprocess.run(command, input=source, capture_output=True,
                          text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{name}: {done.stderr}")
    return done.stdout


def write(folder, exo_opt, kernel):
    name, source, params = kernel
    text = schedule(exo_opt, name, source, params)
    with open(os.path.join(folder, name + ".exo"), "w",
              encoding="utf-8") as f:
        f.write(text)


def special_kernels():
    for kind, tiles in special():
        for tile in tiles:
            yield (f"{program.name(kind)}_{tile}", program.text(kind),
                   special_params(kind, tile))


def stored():
    """The sets of stored kernels, and their tiles."""
    t = table()
    for name, tiles in t["built"].items():
        kind, layout = t["types"][name], t["types"][name].get("layout", "tn")
        yield program.Kind(name.removesuffix("_" + layout), layout,
                           kind["OUT"], "", False), tiles


def kind_of(entry):
    """The set that an entry of the table is of."""
    return program.Kind(
        entry["type"], entry["layout"],
        entry.get("output", program.OWN_OUTPUT[entry["type"]]),
        entry.get("epilogue", ""), entry.get("batched", False))


def entry_of(kind, tiles, entries):
    """The table's entry of a set, costs those of the plain kernels; None where
    no plain kernel of the type has such tiles."""
    base = kind.type.removesuffix("_sums")
    plain = {k["kernel"].removeprefix(f"gemm_{base}_"): k
             for e in entries if kind_of(e) == program.plain(base)
             for k in e["kernels"]}
    stem = program.name(kind)
    kernels = [{**plain[t], "file": f"{stem}_{t}.exo", "kernel": f"{stem}_{t}"}
               for t in tiles if t in plain]
    return {**program.entry_keys(kind), "kernels": kernels,
            "shapes": []} if kernels else None


def read_table(name):
    with open(os.path.join(GEMM, name), encoding="utf-8") as f:
        return json.load(f)


def make_library(folder, exo_opt):
    os.makedirs(folder, exist_ok=True)
    tuned = read_table("tuned.json")
    if os.path.exists(os.path.join(GEMM, "special.json")):
        tuned["entries"] += read_table("special.json")["entries"]
    for name in os.listdir(GEMM):
        if name.endswith(".exo"):
            shutil.copy(os.path.join(GEMM, name), folder)
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(lambda k: write(folder, exo_opt, k), special_kernels()))
    measured = {kind_of(e) for e in tuned["entries"]}
    for kind, tiles in [*stored(), *special()]:
        entry = entry_of(kind, tiles, tuned["entries"])
        if entry and kind not in measured:
            tuned["entries"].append(entry)
    with open(os.path.join(folder, "tuned.json"), "w", encoding="utf-8") as f:
        json.dump(tuned, f, indent=1)
        f.write("\n")


def main():
    parser = argparse.ArgumentParser(
        description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("exo_opt")
    parser.add_argument("--library", metavar="DIR",
                        help="all kernels and their table, into DIR")
    args = parser.parse_args()
    if args.library:
        make_library(args.library, args.exo_opt)
        return 0
    for kernel in variants():
        write(GEMM, args.exo_opt, kernel)
    return 0


if __name__ == "__main__":
    sys.exit(main())
