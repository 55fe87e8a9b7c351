#!/usr/bin/env python3
"""Tuning at run time in the library of a table of kernels: what is chosen and
remembered, for which calls; what is left as it was, memory and events; errors
by name; files that are read back, and those that are refused.

The driver is the one of the tests, which says how long a kernel takes. Needs
exo-translate with LLVM, jansson and ptxas, and a C compiler.
"""
import ctypes
import os
import random
import re
import shutil
import sys
import tempfile
import threading

from gemm_library import BIN, GEMM, TABLE, Run, load, special_entry

STUB = os.path.join(os.path.dirname(os.path.abspath(BIN)), "test", "stub",
                    "libcuda.so.1")
SIDE = 512
SHAPE = (SIDE, SIDE, SIDE)


def shape_of_two(library):
    """A shape for which the table's costs take two kernels."""
    for k in (896, 2048, 4096, 8192, 320):
        for m in range(512, 12288, 64):
            for n in range(256, 8192, 128):
                if ", " in library.choice("bf16", m, n, k):
                    return m, n, k
    sys.exit("no shape takes two kernels")

NAMES = ("gemm_bf16_128x256_c2", "gemm_bf16_64x64", "gemm_bf16_64x64_s8",
         "gemm_bf16_64x128_s4", "gemm_bf16_128x128_w768")
ENTRY = {**TABLE["entries"][0], "kernels": [
    k for k in TABLE["entries"][0]["kernels"] if k["kernel"] in NAMES]}


def part_entry():
    """A kernel that clears C on the stream before its launch."""
    name = "gemm_tf32_64x64_p1024"
    return {"type": "tf32", "layout": "tn", "shapes": [], "kernels": [
        {**ENTRY["kernels"][1], "kernel": name, "step": 32,
         "part": 1024, "file": os.path.join(GEMM, name + ".exo")}]}


class Driver:
    """The driver of the tests: contexts, memory, durations, the log."""

    def __init__(self):
        self.stub = ctypes.CDLL(STUB, mode=ctypes.RTLD_GLOBAL)
        self.stub.cuda_stub_log.restype = ctypes.c_char_p
        self.stub.cuInit(0)
        self.seen = 0
        self.enter(0)

    def enter(self, device):
        """Makes the device's context current in this thread."""
        context = ctypes.c_void_p()
        self.stub.cuDevicePrimaryCtxRetain(ctypes.byref(context), device)
        self.stub.cuCtxSetCurrent(context)

    def memory(self, size):
        address = ctypes.c_uint64()
        self.stub.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(size))
        return address.value

    def free(self, address):
        self.stub.cuMemFree_v2(ctypes.c_uint64(address))

    def takes(self, kernel, ms):
        self.stub.cuda_stub_takes((kernel + "_kernel0").encode(), ms)

    def fail(self, function, skip=0, code=999):
        self.stub.cuda_stub_fail(function.encode(), skip, code)

    def calls(self):
        """The lines of the log since the last call of this."""
        text = self.stub.cuda_stub_log().decode()
        new, self.seen = text[self.seen:], len(text)
        return new.splitlines()

    def launches(self):
        return [re.sub("_kernel0$", "", line.split()[1])
                for line in self.calls() if line.startswith("cuLaunch")]

    def held(self):
        """Allocations, and events by the log since the last call; the mode of
        captures must be as it was, 0."""
        lines = self.calls()
        modes = [line.split()[1] for line in lines
                 if line.startswith("cuThreadExchange")]
        if modes and modes[-1] != "0":
            return None
        return (self.stub.cuda_stub_live(),
                sum(line.startswith("cuEventCreate") for line in lines) -
                sum(line.startswith("cuEventDestroy") for line in lines))


class Tuning:
    """The checks, on one library."""

    def __init__(self, run, binding, shared, driver):
        self.run, self.binding, self.driver = run, binding, driver
        self.shared = shared
        self.library = binding.ExoGemm(shared)
        self.two = shape_of_two(self.library)
        self.a = driver.memory(1 << 22)

    def copy(self):
        """The library again, with nothing tuned in it."""
        self.run.made += 1
        path = os.path.join(self.run.folder, f"copy{self.run.made}.so")
        shutil.copy(self.shared, path)
        return self.binding.ExoGemm(path)

    def args(self, kind="bf16", shape=SHAPE, library=None, **fields):
        m, n, k = shape
        return (library or self.library).args(kind, shape, **{
            "a": self.a, "b": self.a, "c": self.a, "lda": k, "ldb": k,
            "ldc": n, **fields})

    def note(self, ok, text):
        self.run.note(ok, text)

    def refused(self, call, message):
        try:
            call()
            got = "it was done"
        except RuntimeError as e:
            got = str(e)
        self.note(message in got, f"'{got}', expected '{message}'")

    def check_choice(self):
        """The fastest is remembered, for its key alone, and is what runs."""
        library, driver = self.library, self.driver
        before = library.choice("bf16", *SHAPE)
        other = next(name for name in NAMES if name != before)
        for name in NAMES:
            driver.takes(name, 3)
        driver.takes(before, 5)
        driver.takes(other, 2)
        found = library.tune_args(self.args(c=None), 4)
        self.note(found == (4, 2000.0, 5000.0), f"tuning found {found}")
        self.note(library.choice("bf16", *SHAPE) == other,
                  f"not the fastest: {library.choice('bf16', *SHAPE)}")
        driver.calls()
        library.run(self.args())
        library.run(self.args())
        calls = driver.calls()
        self.note([c.split()[1] for c in calls if c.startswith("cuLaunch")] ==
                  [other + "_kernel0"] * 2, "another kernel runs")
        self.note(not any("cuDeviceGetName" in c for c in calls),
                  "the device's name is asked for again")
        for fields in ({"lda": SIDE + 8}, {"ldb": SIDE + 8},
                       {"ldc": SIDE + 8}):
            got = library.choice("bf16", *SHAPE, **fields)
            self.note(got == before, f"rows {fields} are taken as tuned: {got}")
        got = library.choice("bf16", *SHAPE, lda=2 * SIDE, batch=3,
                             c_batch=SIDE * SIDE)
        self.note(got == other, f"not taken for products one by one: {got}")
        got = library.choice("bf16", SIDE, SIDE, 2 * SIDE)
        self.note(got != other or got == before, f"another K is tuned: {got}")
        driver.enter(1)
        got = library.choice("bf16", *SHAPE)
        self.note(got == before, f"another device is tuned: {got}")
        driver.enter(0)
        library.clear_tuned()
        got = library.choice("bf16", *SHAPE)
        self.note(got == before, f"not forgotten: {got}")

    def check_count(self):
        """So many candidates as asked for, and what is equally fast stays."""
        library = self.library
        before = library.choice("bf16", *SHAPE)
        for name in NAMES:
            self.driver.takes(name, 100)
        for candidates, timed in ((1, 1), (2, 2), (3, 3), (64, 4)):
            found = library.tune_args(self.args(), candidates)
            self.note(found.candidates >= timed if candidates == 64 else
                      found.candidates == timed,
                      f"{candidates} candidates: {found}")
            self.note(library.choice("bf16", *SHAPE) == before,
                      f"what is no faster is taken: {found}")
        for candidates in (-1, 65):
            self.refused(
                lambda n=candidates: library.tune_args(self.args(), n),
                f"candidates must be 0 to 64, but are {candidates}")
        library.clear_tuned()

    def check_two(self):
        """Plans of two kernels are candidates; one is run by its text."""
        library, driver = self.library, self.driver
        two = library.choice("bf16", *self.two)
        first, second = re.match(r"(\S+) .*, (\S+)$", two).groups()
        a = driver.memory(self.two[0] * 1024)
        args = self.args(shape=self.two, a=a, b=a, c=a)
        driver.calls()
        library.run(args)
        self.note(driver.launches() == [first, second], "not by two kernels")
        library.run(args, two)
        self.note(driver.launches() == [first, second], "not by the text")
        library.tune_args(args, 8)
        one = library.choice("bf16", *self.two)
        self.note(", " not in one, f"two launches are faster than one: {one}")
        library.clear_tuned()
        for text in (two[:-1], two.replace("0:", "1:"), two + " ",
                     two.replace("0:", "0:1"), two.split(",", maxsplit=1)[0],
                     two.replace("0:", "0:-"), "", " "):
            self.refused(lambda text=text: library.run(args, text),
                         f"'{text}' is no kernel for these arguments")
        driver.free(a)

    def check_operands(self):
        """C is left as it is, with kernels that clear it or read it."""
        library, driver = self.library, self.driver
        c = driver.memory(SIDE * SIDE * 4)
        content = (ctypes.c_ubyte * 64).from_address(c)
        fresh = bytes(content)
        library.tune_args(self.args("tf32", c=c), 0)
        self.note(bytes(content) == fresh, "tuning writes C")
        library.run(self.args("tf32", c=c))
        self.note(bytes(content) == bytes(64), "the kernel does not clear C")
        library.tune_args(self.args(c=None, beta=1.0), 0)
        driver.free(c)
        for kind, fields in (("bf16", {}), ("bf16", {"beta": 2.0}),
                             ("tf32", {})):
            self.refused(
                lambda kind=kind, fields=fields:
                library.run(self.args(kind, c=None, **fields)), "C is NULL")
        library.clear_tuned()

    def fails(self, function, skip):
        """Tuning with that call of the driver failing."""
        self.driver.fail(function, skip)
        self.refused(lambda: self.library.tune_args(self.args(), 3), function)

    def in_new_thread(self, body):
        """The library asks for the device once a thread and context."""
        def work():
            self.driver.enter(0)
            body()

        thread = threading.Thread(target=work)
        thread.start()
        thread.join()

    def check_errors(self):
        """Each is named, and leaves nothing behind."""
        library, driver = self.library, self.driver
        self.refused(lambda: library.tune_args(self.args(a=None)), "A is NULL")
        self.refused(lambda: library.tune_args(self.args(ldc=8)),
                     "rows of C overlap")
        self.refused(lambda: library.tune_args(self.args(activation="relu")),
                     "no kernel has type bf16")
        for function in ("cuDeviceGetName", "cuCtxGetDevice",
                         "cuThreadExchangeStreamCaptureMode"):
            self.in_new_thread(lambda f=function: self.fails(f, 0))
        driver.calls()
        held = driver.held()
        for function, skip in (
                ("cuStreamIsCapturing", 0), ("cuDeviceGetAttribute", 0),
                ("cuMemAllocFromPoolAsync", 0), ("cuEventCreate", 0),
                ("cuEventCreate", 1), ("cuMemsetD8Async", 0),
                ("cuMemsetD8Async", 9), ("cuEventRecord", 0),
                ("cuEventRecord", 1), ("cuEventRecord", 21),
                ("cuLaunchKernelEx", 0), ("cuLaunchKernelEx", 9),
                ("cuTensorMapEncodeTiled", 5), ("cuEventQuery", 0),
                ("cuEventQuery", 7), ("cuEventSynchronize", 3),
                ("cuEventElapsedTime", 2)):
            self.fails(function, skip)
            failed = function == "cuEventCreate"  # its line made no event
            self.note(driver.held() == (held[0], failed),
                      f"{function}: a leak")
        before = library.choice("bf16", *SHAPE)
        driver.takes(before, 500)
        library.tune_args(self.args(), 3)
        self.note(library.choice("bf16", *SHAPE) != before,
                  "after errors nothing is tuned")
        self.note(driver.held() == (held[0], 0), "a leak")
        driver.takes(before, 100)
        library.clear_tuned()

    def check_late(self):
        """A run whose start the GPU reached before all was queued is run again
        behind twice as many flushes, 64 at most, and so are those after it."""
        library, driver = self.library, self.driver
        for late, after in ((1, 8), (3, 32), (4, 64), (1000, 64)):
            driver.calls()
            driver.stub.cuda_stub_late(late)
            library.tune_args(self.args(), 2)
            driver.stub.cuda_stub_late(0)
            flushes, seen = 0, []
            for call in driver.calls():
                if call.startswith("cuMemsetD8Async"):
                    flushes += 1
                elif call.startswith("cuEventQuery"):
                    seen.append(flushes)
                    flushes = 0
            self.note(seen[0] == 4 and seen[-1] == after,
                      f"{late} late: flushes {seen}, expected 4 to {after}")
            library.clear_tuned()

    def check_capture(self):
        """Nothing is tuned while a stream is captured."""
        library, driver = self.library, self.driver
        driver.stub.cuda_stub_capture(1)
        driver.calls()
        self.refused(lambda: library.tune_args(self.args()),
                     "the stream is captured")
        library.tune_first(4)
        library.run(self.args())
        driver.stub.cuda_stub_capture(0)
        calls = driver.calls()
        self.note(not any("Event" in c or "Alloc" in c for c in calls),
                  "something is timed under capture")
        self.note(sum(c.startswith("cuLaunch") for c in calls) == 1,
                  "the call under capture does not run once")
        library.tune_first(0)

    def check_first(self):
        """The first call of a shape tunes where that was asked for."""
        library, driver = self.library, self.driver
        before = library.choice("bf16", *SHAPE)
        driver.takes(before, 500)
        driver.calls()
        library.run(self.args())
        self.note(driver.launches() == [before], "tuned without being asked")
        self.refused(lambda: library.tune_first(65), "0 to 64")
        library.tune_first(3)
        library.run(self.args())
        first = driver.launches()
        library.run(self.args())
        again = driver.launches()
        self.note(len(first) > 10 and first[-1] != before and
                  again == [first[-1]], f"launches {first}, then {again}")
        library.clear_tuned()
        driver.fail("cuMemAllocFromPoolAsync", 0, 2)
        library.run(self.args())
        self.note(driver.launches() == [before], "not as untuned")
        library.run(self.args())
        self.note(driver.launches() == [before], "tried again after a fault")
        path = os.path.join(self.run.folder, "failed.txt")
        library.save_tuned(path)
        with open(path, encoding="utf-8") as f:
            self.note(f.read() == "exo_gemm tuned 1\n", "a failure is saved")
        library.clear_tuned()
        self.refused(lambda: library.run(self.args(a=None)), "A is NULL")
        driver.calls()
        library.run(self.args())
        self.note(len(driver.launches()) > 10,
                  "after a refused call nothing is tuned")
        library.tune_first(0)
        library.clear_tuned()
        for said, tunes in (("3", True), ("1", True), ("0", False),
                            ("yes", False), ("65", False)):
            os.environ["EXO_GEMM_TUNE"] = said
            new = self.copy()
            driver.calls()
            new.run(self.args())
            self.note((len(driver.launches()) > 10) == tunes,
                      f"EXO_GEMM_TUNE={said}")
            del os.environ["EXO_GEMM_TUNE"]
        driver.takes(before, 100)

    def check_threads(self):
        """Threads that come at once tune once."""
        library, driver = self.copy(), self.driver
        library.tune_first(4)
        driver.calls()
        failures = []

        def work():
            driver.enter(0)
            try:
                for _ in range(3):
                    library.run(self.args())
            except RuntimeError as e:
                failures.append(str(e))

        threads = [threading.Thread(target=work) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        calls = driver.calls()
        self.note(not failures, f"threads: {failures}")
        self.note(sum(c.startswith("cuEventCreate") for c in calls) == 2,
                  "more than one thread tuned")

    def saved(self):
        """The path and lines of what two tunings leave."""
        library = self.library
        before = library.choice("bf16", *SHAPE)
        self.driver.takes(before, 500)
        library.tune_args(self.args(), 4)
        library.tune_args(self.args("tf32"), 4)
        self.driver.takes(before, 100)
        path = os.path.join(self.run.folder, "tuned.txt")
        library.save_tuned(path)
        with open(path, encoding="utf-8") as f:
            lines = f.read().splitlines(keepends=True)
        self.note(len(lines) == 3, f"saved {lines}")
        return path, lines

    def check_files(self):
        """What was saved is what another library takes."""
        path, lines = self.saved()
        library = self.copy()
        untuned = library.choice("bf16", *SHAPE)
        wanted = self.library.choice("bf16", *SHAPE)
        self.note(library.load_tuned(path) == 0, "lines are left out")
        self.note(library.choice("bf16", *SHAPE) == wanted != untuned,
                  "the file does not decide")
        again = os.path.join(self.run.folder, "again.txt")
        library.save_tuned(again)
        with open(again, encoding="utf-8") as f:
            self.note(f.readlines() == lines, "saved again it differs")
        self.driver.enter(1)
        self.note(library.choice("bf16", *SHAPE) == untuned,
                  "taken on another device")
        self.driver.enter(0)
        two = library.choice("bf16", *self.two)
        row = next(x for x in lines[1:] if "\tbf16\t" in x).split("\t")
        pair = "\t".join(row[:6] + [str(x) for x in self.two] + row[9:12])
        self.load(library, [lines[0], f"{pair}\tgemm_bf16_64x64\n"], 0)
        self.note(library.choice("bf16", *self.two) == "gemm_bf16_64x64",
                  "one kernel is not read")
        self.load(library, [lines[0], f"{pair}\t{two}\n"], 0)
        self.note(library.choice("bf16", *self.two) == two, "two are not read")
        for unknown in (two.replace("gemm_bf16_", "gemm_bf16_1"),
                        two.replace("0:", "0:1"), "gemm_none", "rows"):
            self.load(library, [lines[0], f"{pair}\t{unknown}\n"], 1)
        self.load(library, [lines[0], *(x.replace("\ttn\t", "\tnn\t")
                                        for x in lines[1:])], 2)
        self.note(library.choice("bf16", *self.two) == two, "a line was taken")
        self.refuse_files(lines)

    def load(self, library, lines, ignored):
        path = os.path.join(self.run.folder, "changed.txt")
        with open(path, "w", encoding="utf-8") as f:
            f.writelines(lines)
        got = library.load_tuned(path)
        self.note(got == ignored, f"{got} lines left out, not {ignored}: "
                                  f"{lines[1:]}")

    def refuse_files(self, lines):
        """Faulty files are refused, and nothing of them is taken."""
        library = self.copy()
        untuned = library.choice("bf16", *SHAPE)
        folder = self.run.folder
        head, row = lines[0], next(x for x in lines if "\tbf16\t" in x)
        fields = row.split("\t")
        for text, message in (
                ("", "not written by exo_gemm_tuned_save"),
                ("exo_gemm tuned 2\n", "not written by"),
                (head + row + "\n", ":3 is no line"),
                (head + row + row[:-1], ":3 is no line"),
                (head + row + row.replace("\t", " ", 1), ":3 is no line"),
                (head + row + "x\t" + row, ":3 is no line"),
                (head + row + "x" * 2000 + "\n", ":3 is no line"),
                (head + row + row[:-1] + "\t\n", ":3 is no line"),
                (head + row + row.replace("\t512\t", "\t0\t", 1), ":3 is"),
                (head + row + row.replace("\t512\t", "\t-8\t", 1), ":3 is"),
                (head + row + row.replace("\t512\t", "\t\t", 1), ":3 is"),
                (head + row + row.replace("\t512\t", "\t5x\t", 1), ":3 is"),
                (head + row + row.replace("\t512\t", "\t" + "9" * 40 + "\t",
                                          1), ":3 is no line"),
                (head + row + "x" * 128 + row, ":3 is no line"),
                (head + row + "\t".join(fields[:10] + ["8"] + fields[11:]),
                 ":3 is no line")):
            path = os.path.join(folder, "faulty.txt")
            with open(path, "w", encoding="utf-8") as f:
                f.write(text)
            self.refused(lambda: library.load_tuned(path), message)
            self.note(library.choice("bf16", *SHAPE) == untuned,
                      f"taken from a faulty file: {text!r}")
        for path in (os.path.join(folder, "none", "x"), folder):
            self.refused(lambda p=path: library.load_tuned(p), path)
            self.refused(lambda p=path: library.save_tuned(p), path)
        self.spoil(library, "".join(lines).encode())

    def spoil(self, library, text):
        """A file with wrong bytes is read or refused; calls go on."""
        rng = random.Random(11)
        path = os.path.join(self.run.folder, "spoilt.txt")
        for _ in range(300):
            spoilt = bytearray(text)
            for _ in range(rng.randint(1, 4)):
                at = rng.randrange(len(head_of(text)), len(spoilt))
                spoilt[at:at + rng.randint(0, 2)] = bytes(
                    rng.choice(b"\t\n 019ax:,\0\xff")
                    for _ in range(rng.randint(0, 2)))
            with open(path, "wb") as f:
                f.write(spoilt)
            try:
                library.load_tuned(path)
            except RuntimeError as e:
                self.note("is no line" in str(e), f"{spoilt}: {e}")
        library.run(self.args())
        library.run(self.args("tf32"))


def head_of(text):
    return text[:text.index(b"\n") + 1]


def main():
    if not shutil.which("ptxas") and not os.path.exists(
            "/usr/local/cuda/bin/ptxas") and "EXO_PTXAS" not in os.environ:
        print("needs ptxas\n0 passed, 0 failed, 1 skipped")
        return 0
    os.environ["CUDA_STUB_DEVICES"] = "2"
    os.environ.pop("EXO_GEMM_TUNE", None)
    binding = load("exo_gemm", "exo_gemm.py")
    with tempfile.TemporaryDirectory() as folder:
        run = Run(folder)
        shared = run.library({**TABLE, "entries": [
            ENTRY, part_entry(),
            special_entry(folder, "tn", "bf16", "beta", False)]})
        if shared:
            tuning = Tuning(run, binding, shared, Driver())
            for check in (tuning.check_choice, tuning.check_count,
                          tuning.check_two, tuning.check_operands,
                          tuning.check_errors, tuning.check_late,
                          tuning.check_capture,
                          tuning.check_first, tuning.check_threads,
                          tuning.check_files):
                check()
        print(f"{run.passed} passed, {run.failed} failed, 0 skipped")
    return 1 if run.failed else 0


if __name__ == "__main__":
    sys.exit(main())
