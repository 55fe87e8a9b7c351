#!/usr/bin/env python3
"""Make the kernels of this folder's parent from their sources and schedule.

src/variants.json lists types and tiles; sm90.sched turns the source of a type
into a kernel for each tile. A layout has two letters, A's and B's: A is t when
K-major ([M, K]), n when MN-major ([K, M]); B is n when K-major ([N, K]), t when
MN-major ([K, N]). `make.py EXO_OPT` writes ../gemm_TYPE[_LAYOUT]_TILE.exo;
test/conformance/gemm_variants.py compares them.
"""
import argparse
import json
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))


def variants():
    with open(os.path.join(HERE, "variants.json"), encoding="utf-8") as f:
        table = json.load(f)
    for name, tiles in table["built"].items():
        for tile in tiles:
            params = {**table["types"][name], **table["tiles"][tile]}
            layout = params.pop("layout", "tn")
            params["A_MN"] = int(layout[0] == "n")
            params["B_MN"] = int(layout[1] == "t")
            yield f"gemm_{name}_{tile}", params.pop("source"), params


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
    args = parser.parse_args()
    for name, source, params in variants():
        path = os.path.join(HERE, os.pardir, name + ".exo")
        text = schedule(args.exo_opt, name, source, params)
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
