#!/usr/bin/env python3
"""Make the kernels of this folder's parent from their sources and schedule.

src/variants.json lists types and tiles; sm90.sched turns the source of a type
into a kernel for each tile. `make.py EXO_OPT` writes ../gemm_TYPE_TILE.exo,
`make.py EXO_OPT --check` compares instead and exits 1 where one differs.
"""
import argparse
import json
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
BYTES = {"bf16": 2, "f16": 2, "f32": 4, "e4m3": 1, "e5m2": 1}
# What the stages may fill: the limit of a CTA less room for barriers.
SHARED_MEMORY = 227 * 1024 - 1024
MAX_STAGES = 16


def parameters(kind, tile):
    """The schedule's parameters: as many stages as shared memory holds."""
    p = {"SUBTILES": 1, **tile}
    most = p.pop("STORE_BYTES", 128)
    size, out = BYTES[kind["TYPE"]], BYTES[kind["OUT"]]
    p["TYPE"], p["OUT"] = kind["TYPE"], kind["OUT"]
    p["TILE_K"] = 128 // size
    p["COLUMNS"] = max(c for c in (16, 32, 64)
                       if c * out <= most and p["TILE_N"] % c == 0)
    rows = 64 * p["WARPGROUPS"] * p["SUBTILES"]
    chunks = 2 * rows * p["COLUMNS"] * out
    stage = (rows + p["TILE_N"]) * 128
    p["STAGES"] = min(MAX_STAGES, (SHARED_MEMORY - chunks) // stage)
    return p


def variants():
    with open(os.path.join(HERE, "variants.json"), encoding="utf-8") as f:
        table = json.load(f)
    for name, tiles in table["built"].items():
        for tile in tiles:
            kind = table["types"][name]
            yield (f"gemm_{name}_{tile}", kind["source"],
                   parameters(kind, table["tiles"][tile]))


def schedule(exo_opt, name, source, params):
    command = [exo_opt, os.path.join(HERE, source), "--emit=exo",
               "--schedule=" + os.path.join(HERE, "sm90.sched"),
               "--param", "NAME=" + name]
    for key, value in params.items():
        command += ["--param", f"{key}={value}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{name}: {done.stderr}")
    return done.stdout


def main():
    parser = argparse.ArgumentParser(
        description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("exo_opt")
    parser.add_argument("--check", action="store_true")
    args = parser.parse_args()
    different = 0
    for name, source, params in variants():
        text = schedule(args.exo_opt, name, source, params)
        path = os.path.join(HERE, os.pardir, name + ".exo")
        if not args.check:
            with open(path, "w", encoding="utf-8") as f:
                f.write(text)
            continue
        with open(path, encoding="utf-8") as f:
            if f.read() != text:
                print(f"{name}.exo is not what its source and schedule give")
                different += 1
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
