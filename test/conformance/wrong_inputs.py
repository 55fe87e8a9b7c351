#!/usr/bin/env python3
"""Wrong inputs: each is refused with the place, the rule and the exit status.

The rows are in wrong_inputs/exo.txt and eir.txt, each a line

    ### NAME | TOOL OPTION.. | LINE:COLUMN: error: TEXT

followed by the program; the tool is to end with status 1 and to print an
error that begins so. A further table here holds command lines, with the files
that no text can hold and the status that docs/tools.md gives. A signal or a
sanitizer's report fails a row whatever it expects, so that with EXO_BIN set to
a build with -DEXO_SANITIZE=address;undefined this looks for memory faults.
"""

import concurrent.futures
import os
import re
import subprocess
import sys
import tempfile

SOURCE = os.environ.get("EXO_SOURCE", ".")
BIN = os.path.abspath(os.environ.get("EXO_BIN", "build/bin"))
HERE = os.path.join(SOURCE, "test", "conformance", "wrong_inputs")
KERNELS = os.path.abspath(os.path.join(SOURCE, "kernels"))
SAXPY, GEMM = (os.path.join(KERNELS, name) for name in
               ("saxpy.exo", "gemm_sm90_bf16.exo"))
LIMIT_S = 120

FILES = {
    "nul.exo": b"def f(x: f32[4]):\n    x[0] = 1.0\0\n",
    "tab.exo": b"def f(x: f32[4]):\n\tx[0] = 1.0\n",
    "latin.exo": b"def f(gr\xfcn: f32[4]):\n    gr\xfcn[0] = 1.0\n",
    "digits.exo": b"def f(x: f32[4]):\n    x[" + b"9" * 200000 + b"] = 1.0\n",
    "float.exo": b"def f(x: f32[4]):\n    x[0] = 1e999999999999\n",
    "open.exo": b"def f(x: f32[4]):\n    x[" + b"(" * 100000,
    "ors.exo": b"def f(N: size, x: f32[N]):\n    if " + b" or ".join(
        b"N == %d" % i for i in range(3000)) + b":\n        x[0] = 1.0\n",
    "nul.eir": b"\0\0\0",
    "deep.eir": b"proc @f() {\n" + b"ctl.if 1 > 0 {\n" * 5000,
    "open.eir": b"proc @f(%x: tensor<f32>[4]) {\n%0 = mem.load %x["
                + b"(" * 100000,
    "not.eir": b"proc @f() {\nctl.if " + b"not " * 100000 + b"true {\n}\n}\n",
    "crlf.exo": b"def f(x: f32[4]):\r\n    x[0] = 1.0\r\n",
    "empty.exo": b"",
    "empty.json": b"{}",
    "half.npy": b"\x93NUMPY\x01\x00\x76\x00{'descr': '<f4', 'fort",
    "other.npy": b"NUMPY",
    "wrong.npy": b"\x93NUMPY\x01\x00\x46\x00" + (
        b"{'descr': '<f8', 'fortran_order': False, 'shape': (10,), }"
        .ljust(69) + b"\n") + b"\0" * 80,
    "short.npy": b"\x93NUMPY\x01\x00\x46\x00" + (
        b"{'descr': '<f4', 'fortran_order': False, 'shape': (10,), }"
        .ljust(69) + b"\n") + b"\0" * 12,
    "huge.npy": b"\x93NUMPY\x01\x00\x46\x00" + (
        b"{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999,)}"
        .ljust(69) + b"\n"),
}

# (command, exit status, what standard error holds). {saxpy} and {gemm} are
# shipped kernels; what the shell does to the streams stands at the end.
COMMANDS = [
    ("exo-opt nul.exo", 1, "nul.exo:2:15: error: "),
    ("exo-opt tab.exo", 1, "tab.exo:2:1: error: tab in indentation"),
    ("exo-opt latin.exo", 1, "latin.exo:1:9: error: unexpected byte 0xfc"),
    ("exo-opt digits.exo", 1, "2:7: error: integer literal does not fit"),
    ("exo-opt float.exo", 1, "2:12: error: float literal out of range"),
    ("exo-opt open.exo", 1, "error: nested deeper than 1000"),
    ("exo-opt ors.exo", 1, "error: expression nested deeper than 1000"),
    ("exo-opt nul.eir", 1, "nul.eir:1:1: error: "),
    ("exo-opt deep.eir", 1, "deep.eir:1002:1: error: nesting deeper than"),
    ("exo-opt open.eir", 1, "error: nesting deeper than 1000"),
    ("exo-opt not.eir", 1, "error: nesting deeper than 1000"),
    ("exo-opt crlf.exo", 0, ""),
    ("exo-opt empty.exo", 0, ""),
    ("exo-opt missing.exo", 1, "cannot open 'missing.exo'"),
    ("exo-opt .", 1, "cannot read '.': Is a directory"),
    ("exo-opt", 2, "expected one FILE, found 0"),
    ("exo-opt {saxpy} {saxpy}", 2, "expected one FILE, found 2"),
    ("exo-opt {saxpy} --bogus", 2, "no option '--bogus'"),
    ("exo-opt {saxpy} -o", 2, "-o: expected FILE after it"),
    ("exo-opt {saxpy} --emit=ptx", 2, "expected one of eir|exo"),
    ("exo-opt {saxpy} --input=mlir", 2, "expected one of exo|eir"),
    ("exo-opt {saxpy} --max-errors=-1", 2, "an integer of 0 or more"),
    ("exo-opt {saxpy} --pass-pipeline=foo", 2, "1:1: error: no pass 'foo'"),
    ("exo-opt {saxpy} --pass-pipeline=,", 2, "1:1: error: no pass ''"),
    ("exo-opt {saxpy} --pass-pipeline=inline{{keep", 2,
     "1:8: error: expected key=value"),
    ("exo-opt {saxpy} --pass-pipeline=inline{{foo=1}}", 2,
     "1:8: error: pass 'inline' has no option 'foo'"),
    ("exo-opt {saxpy} --pass-pipeline=sync-check{{N=-1}}", 3,
     "the size N is -1, which must be positive"),
    ("exo-check {saxpy} --size N=0", 1, "the size N must be positive"),
    ("exo-opt {saxpy} -o nodir/x.eir", 1, "cannot write 'nodir/x.eir'"),
    ("exo-opt {saxpy} -o .", 1, "cannot write '.': Is a directory"),
    ("exo-opt {saxpy} -o /dev/full", 1, "No space left on device"),
    ("exo-opt {saxpy} >/dev/full", 1, "No space left on device"),
    ("exo-opt {saxpy} >&-", 1, "cannot write 'standard output'"),
    ("exo-opt - <&-", 1, "cannot read '-'"),
    ("exo-check {saxpy} >/dev/full", 1, "No space left on device"),
    ("exo-check {saxpy} --proc=nobody", 2, "no procedure is named 'nobody'"),
    ("exo-check {saxpy} --level=ptx", 2, "expected one of seq|par|async"),
    ("exo-check {saxpy} --require=some", 2, "expected one of all-sizes"),
    ("exo-check {saxpy} --size Q=4", 2, "has a parameter Q"),
    ("exo-check {gemm} --size M=64,N=64,K=7", 1, "15:5: error: the sizes"),
    ("exo-check {saxpy} --lowered=missing.eir", 1, "cannot open"),
    ("exo-check {saxpy} --ptx=missing.ptx", 1, "cannot open"),
    ("exo-check {saxpy} --certificate={saxpy}", 1, "saxpy.exo:1:1: error: "),
    ("exo-check {saxpy} --certificate=empty.json", 1,
     "1:1: error: expected a certificate of version 1"),
    ("exo-translate {saxpy}", 2, "expected --to="),
    ("exo-translate {saxpy} --to=asm", 2, "expected one of eir|exo|llvm"),
    ("exo-translate {saxpy} --to=c", 2, "name them by -o"),
    ("exo-translate {saxpy} --to=ptx -o nodir/x", 1, "cannot write 'nodir/x"),
    ("exo-translate {saxpy} --to=ptx --arch=sm_70", 2, "expected sm_90a"),
    ("exo-translate {saxpy} --to=ptx >/dev/full", 1, "No space left"),
    ("exo-translate {saxpy} --to=cubin --ptxas=/nonexistent -o x", 4,
     "no program that can be run"),
    ("exo-translate {saxpy} --to=cubin --ptxas=/bin/false -o x", 1,
     "/bin/false refuses the PTX"),
    ("exo-translate {saxpy} --to=cubin --ptxas=/bin/true -o x", 1,
     "/bin/true left no kernel.cubin"),
    ("exo-run {saxpy}", 2, "needs a value for 'N'"),
    ("exo-run {saxpy} --size", 2, "expected M=V,N=V"),
    ("exo-run {saxpy} --size N=", 2, "--size takes NAME=INTEGER"),
    ("exo-run {saxpy} --size N=0x10", 2, "--size takes NAME=INTEGER"),
    ("exo-run {saxpy} --size N=10abc", 2, "--size takes NAME=INTEGER"),
    ("exo-run {saxpy} --size N=99999999999999999999", 2, "--size takes"),
    ("exo-run {saxpy} --size N=0", 1, "size 'N' is 0; a size is at least 1"),
    ("exo-run {saxpy} --size N=-1", 1, "-1"),
    ("exo-run {saxpy} --size N=9223372036854775807", 1, "does not fit"),
    ("exo-run {saxpy} --size N=10 >/dev/full", 1, "No space left on device"),
    ("exo-run {saxpy} --size N=10 >&-", 1, "cannot write 'standard output'"),
    ("exo-run {saxpy} --size N=10 --out y=/dev/full", 1, "No space left"),
    ("exo-run {saxpy} --size N=10 --out q=x.npy", 2, "q"),
    ("exo-run {saxpy} --size N=10 --arg x=1", 2, "--arg x=1"),
    ("exo-run {saxpy} --size N=10 --in x=missing.npy", 1, "missing.npy"),
    ("exo-run {saxpy} --size N=10 --in x=half.npy", 1, "half.npy"),
    ("exo-run {saxpy} --size N=10 --in x=other.npy", 1, "other.npy"),
    ("exo-run {saxpy} --size N=10 --in x=wrong.npy", 1, "wrong.npy"),
    ("exo-run {saxpy} --size N=10 --in x=short.npy", 1, "short.npy"),
    ("exo-run {saxpy} --size N=10 --in x=huge.npy", 1, "huge.npy"),
    ("exo-run {saxpy} --size N=10 --in x=empty.exo", 1, "empty.exo"),
    ("exo-run {saxpy} --size N=10 --level=async --clusters=0", 2,
     "--clusters must be from 1"),
    ("exo-run {saxpy} --size N=10 --level=async --seeds=0", 2,
     "--seeds must be at least 1"),
    ("exo-run {saxpy} --size N=10 --level=async --seed=x", 2,
     "an integer of 0 or more"),
    ("exo-run {saxpy} --size N=10 --level=async --trace=/dev/full", 1,
     "No space left on device"),
    ("exo-run {gemm} --size M=64,N=64,K=7", 1, "15:5: error: this assert"),
    ("exo-run {gemm} --size M=64,N=64,K=7 --level=async", 1,
     "15:5: error: the precondition K % 8 == 0 does not hold"),
]


def rows_of(path):
    """(name, command, expected, text) of each row of a table."""
    with open(path, encoding="utf-8") as file:
        parts = re.split(r"^### ", file.read(), flags=re.M)[1:]
    for part in parts:
        head, text = part.split("\n", 1)
        name, command, expected = head.split(" | ", 2)
        yield name, command, expected, text


def run(words, folder, shell=False):
    """(exit status or what went wrong, standard error)"""
    try:
        done = subprocess.run(
            words, cwd=folder, shell=shell, timeout=LIMIT_S,
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE, check=False)
    except subprocess.TimeoutExpired:
        return "the limit", ""
    return done.returncode, done.stderr.decode(errors="replace")


def fault_of(status, errors, want_status, want_text):
    """Why a row fails, or None."""
    if "Sanitizer" in errors or "runtime error:" in errors:
        return "a sanitizer's report"
    if status != want_status:
        return f"expected exit status {want_status}, found {status}"
    if want_text not in errors:
        return f"expected '{want_text}'"
    return None


def check_row(row):
    language, (name, command, expected, text) = row
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "in." + language)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        tool, *options = command.split()
        status, errors = run(
            [os.path.join(BIN, tool), os.path.basename(path), *options],
            folder)
    want = f"in.{language}:{expected}"
    return f"{language}: {name}", fault_of(status, errors, 1, want), errors


def check_command(row):
    command, want_status, want_text = row
    with tempfile.TemporaryDirectory() as folder:
        for name, content in FILES.items():
            with open(os.path.join(folder, name), "wb") as file:
                file.write(content)
        line = command.format(saxpy=SAXPY, gemm=GEMM)
        status, errors = run(os.path.join(BIN, line), folder, shell=True)
    return command, fault_of(status, errors, want_status, want_text), errors


def main():
    rows = [(language, row) for language in ("exo", "eir") for row in
            rows_of(os.path.join(HERE, language + ".txt"))]
    passed = failed = 0
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        results = list(pool.map(check_row, rows)) + list(
            pool.map(check_command, COMMANDS))
    for name, fault, errors in results:
        if fault is None:
            passed += 1
            continue
        failed += 1
        print(f"FAILED: {name}: {fault}")
        print("\n".join("  " + line for line in errors.split("\n")[:12]))
    print(f"{passed} passed, {failed} failed, 0 skipped")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
