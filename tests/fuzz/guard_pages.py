"""Random calls of every operator with all memory between pages that end the process when they are touched.

    python tests/fuzz/guard_pages.py --seconds 120            # --help lists the options
    python tests/fuzz/guard_pages.py --seed 5 --case 1234     # one case again, as a failure's line says

Each case draws an operator, a geometry, dtypes, strides (gaps, any order of the axes, negative, zero in inputs), a
number of threads and a way to call: both phases, a stream, or one call. Every tensor and the workspace end at a
PROT_NONE page or begin behind one; inputs are read-only while the call runs, and `self`, where it gives its shape
alone, cannot even be read. The result is compared with the operator's twin: integers so small that every sum is
exact leave one right answer, to the bit. Nothing else may have been written: not between the elements of an output nor
on the side without a guard.

The cases run in a child process, whose end is reported with the case that it was at; the next child goes on behind it.
`--plans` also counts how often each algorithm was chosen.
"""

import argparse
import contextlib
import faulthandler
import mmap
import os
import signal
import struct
import subprocess
import sys
import tempfile
import time
import traceback
from collections import Counter
from pathlib import Path

TESTS = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(TESTS))
if any((TESTS.parent / "aclnn_bw").glob("_native.*so")):  # built in place: no other installation is meant
    sys.path.insert(0, str(TESTS.parent))

import numpy as np  # noqa: E402
from operators import OPERATORS  # noqa: E402

import aclnn_bw  # noqa: E402
from fuzz.cases import BYTE, COMPLEX, READ_FILL, REAL, Arena, Placed, one_of, unreadable  # noqa: E402, F401

FOUND = 9  # exit status of a child that came to its end, but not without failures


def draw(seed, number, names):
    """Case `number` of a seed: the same one wherever it is drawn."""
    rng = np.random.default_rng([seed, number])
    name = one_of(rng, *(name for name in OPERATORS if name in names))
    return OPERATORS[name].guarded(name, rng)


# ---- running --------------------------------------------------------------------------------------------------------


class Runner:
    """The arenas, one for each tensor and one for the workspace."""

    def __init__(self, plans):
        self.arenas = [Arena() for _ in range(3)]
        self.scratch = Arena()
        self.stream = aclnn_bw.aclrtCreateStream()
        self.plans = plans

    def run(self, case):
        placed, values, read = {}, {}, []
        for arena, (name, (shape, dtype, role)) in zip(self.arenas, case.tensors().items(), strict=False):
            offset = case.offset if dtype == BYTE else 0
            placed[name] = Placed(arena, case.layouts[name], dtype, case.at_end[name], role == "written", offset)
            if role == "read":
                placed[name].array[...] = case.values(name, shape, dtype)
                values[name] = placed[name].array.copy()
                read.append(arena)
        arrays = {name: one.array for name, one in placed.items()}
        for arena in read:
            arena.read_only(True)
        try:
            self.call(case, arrays)
        except aclnn_bw.AclnnError as error:
            if not (case.refused() and "must lie inside window" in str(error)):
                raise
        else:
            assert not case.refused(), "a bad index was taken"
        finally:
            for arena in read:
                arena.read_only(False)
        for name, one in placed.items():
            assert name in values or not one.written_outside(), f"something outside {name} was written"
        case.check(values, {name: array for name, array in arrays.items() if name not in values})

    def call(self, case, arrays):
        if case.way == "one-call":
            with aclnn_bw.num_threads(case.threads):
                case.one_call(arrays)
            return
        name = case.operator
        with aclnn_bw.soc(case.product, mask_layout=case.mask_layout), aclnn_bw.num_threads(case.threads):
            size, executor = getattr(aclnn_bw, f"aclnn{name}GetWorkspaceSize")(*case.phase1(arrays))
        if self.plans is not None:
            self.plans.count(executor, case)
        begin = self.scratch.place(size, case.workspace_at_end, READ_FILL, case.offset)
        workspace = self.scratch.bytes[begin : begin + size] if size else None
        stream = self.stream if case.way == "stream" else None
        try:
            getattr(aclnn_bw, f"aclnn{name}")(workspace, size, executor, stream)
        finally:
            if stream is not None:
                aclnn_bw.aclrtSynchronizeStream(stream)
        watched = self.scratch.watched
        inside = np.zeros(watched[1] - watched[0], bool)
        inside[begin - watched[0] : begin - watched[0] + size] = True
        assert not self.scratch.changed(inside), "something outside the workspace was written"


class Plans:
    """Counts what the plans chose."""

    def __init__(self):
        self.counter = Counter()

    def count(self, executor, case):
        told = executor.explain()
        argmax = told.geometry.get("mask_layout") == "argmax"
        way = told.algorithm + " argmax" * argmax + " threads" * (told.ranges > 1)
        self.counter[case.operator, way, case.dtype.name] += 1

    def report(self):
        dtypes = [dtype.name for dtype in REAL + COMPLEX]
        rows = sorted({key[:2] for key in self.counter})
        lines = [f"{'':31}{'':34}" + "".join(f"{name:>11}" for name in dtypes)]
        for row in rows:
            counts = "".join(f"{self.counter[(*row, name)]:>11}" for name in dtypes)
            lines.append(f"{row[0]:31}{row[1]:34}{counts}")
        return "\n".join(lines)


def run_child(options):
    """Cases from options.case on, each number written to the progress file before it begins."""
    faulthandler.enable()
    plans = Plans() if options.plans else None
    runner = Runner(plans)
    names = options.operator or list(OPERATORS)
    with open(options.progress, "r+b") as file:
        progress = mmap.mmap(file.fileno(), 16)
    number, failures, deadline = options.case, 0, options.deadline
    while number < options.stop and time.time() < deadline:
        struct.pack_into("<q", progress, 0, number)
        case = draw(options.seed, number, names)
        try:
            runner.run(case)
        except Exception:
            failures += 1
            print(f"FAILED {reproduce(options, number)}\n    {case}\n{traceback.format_exc()}", flush=True)
            if failures == options.failures:
                break
        number += 1
    struct.pack_into("<q", progress, 0, number)
    if plans is not None:
        print(plans.report(), flush=True)
    return FOUND if failures else 0


def reproduce(options, number):
    operators = "".join(f" --operator {name}" for name in options.operator or [])
    isa = os.environ.get("ACLNN_BW_ISA")
    prefix = f"ACLNN_BW_ISA={isa} " if isa else ""
    return f"{prefix}python tests/fuzz/guard_pages.py --seed {options.seed} --case {number}{operators}"


def run_parent(options):
    """Children, one after the other, until the time is over or a fixed number of cases has run."""
    names = options.operator or list(OPERATORS)
    first, failures = options.case or 0, 0
    stop = options.case + 1 if options.case is not None else options.cases if options.cases else 2**62
    deadline = 2.0**62 if options.case is not None or options.cases else time.time() + options.seconds
    isa = aclnn_bw.show_config(mode="dict")["isa"]
    print(f"seed {options.seed}, instruction set {isa}, {aclnn_bw.__file__}", flush=True)
    with tempfile.NamedTemporaryFile(buffering=0) as progress:
        number = first
        while number < stop and time.time() < deadline and failures < options.failures:
            progress.seek(0)
            progress.write(struct.pack("<qq", number, 0))
            command = [sys.executable, __file__, "--child", "--seed", str(options.seed), "--case", str(number),
                       "--stop", str(stop), "--deadline", str(deadline), "--progress", progress.name,
                       "--failures", str(options.failures - failures)]  # fmt: skip
            command += [word for name in options.operator or [] for word in ("--operator", name)]
            child = subprocess.Popen(command + ["--plans"] * options.plans)
            status, before, since = None, number, time.time()
            while status is None:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    status = child.wait(0.05)
                progress.seek(0)
                number = struct.unpack("<q", progress.read(8))[0]
                if number != before:
                    before, since = number, time.time()
                elif status is None and time.time() - since > options.hang:
                    print(f"no end after {options.hang} s", flush=True)
                    child.kill()
            if status in (0, FOUND):
                failures += status == FOUND
                break
            # Ended by a signal, or by a sanitizer.
            cause = signal.Signals(-status).name if status < 0 else f"exit status {status}"
            print(f"FAILED ({cause}) {reproduce(options, number)}\n    {draw(options.seed, number, names)}", flush=True)
            failures += 1
            number += 1
    print(f"{number - first} cases, {failures or 'no'} failures, seed {options.seed}", flush=True)
    return failures > 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seconds", type=float, default=60, help="how long to go on (default: 60)")
    parser.add_argument("--cases", type=int, help="a fixed number of cases instead")
    parser.add_argument("--seed", type=int, help="default: another one each time")
    parser.add_argument("--case", type=int, help="this case alone")
    parser.add_argument("--operator", action="append", choices=OPERATORS)
    parser.add_argument("--plans", action="store_true", help="count the algorithms that the plans chose")
    parser.add_argument("--failures", type=int, default=10, help="give up after so many (default: 10)")
    parser.add_argument("--hang", type=float, default=300, help="seconds after which a case is ended (default: 300)")
    for name, kind in (("--stop", int), ("--deadline", float), ("--progress", str)):
        parser.add_argument(name, type=kind, help=argparse.SUPPRESS)
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.seed is None:
        options.seed = time.time_ns() % 10**9
    return run_child(options) if options.child else run_parent(options)


if __name__ == "__main__":
    sys.exit(main())
