"""``python -m benchmarks.against OTHER_PYTHON``: this environment's aclnn_bw beside another environment's, in turn."""

from __future__ import annotations

import argparse
import hashlib
import math
import os
import pickle
import subprocess
import sys
import timeit
import traceback
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import asdict, replace
from pathlib import Path
from time import perf_counter, thread_time
from typing import IO, Any, Protocol

import numpy as np

import aclnn_bw

from . import command, variations
from .cases import CASES, posed, rules
from .check import Array, WrongResult
from .machine import environment, summary
from .operators import OPERATORS
from .problem import DTYPES, Case, Contestant
from .report import duration
from .strided import LAYOUTS
from .timing import CACHE_BYTES, MIN_ROUNDS, Spread, Statement, _repeats, _warm_up, ratio
from .variations import Row

_ROOT = Path(__file__).resolve().parent.parent
_USUAL = ("float32", "float16")
# A larger batch repeats so many images.
IMAGES = 4
# Where arrays lie in physical memory can make one process a little faster than another one with the same code: so many
# times during a case both move to fresh memory.
_MOVES = 4
# The threads of whoever ran before spin for some milliseconds and take a core from the other one's.
SETTLE = 5e-3
_LEGEND = """\
ratio  the other's time / this one's, median over the rounds (first to third quartile): above 1 this one is faster
Both write the same bytes, or a case is not timed."""


# What CASES never takes.
EXTRA: tuple[Case, ...] = tuple(row for operator in OPERATORS.values() for row in operator.more_rows())


# ---- a worker: a process that runs the statements of one environment ------------------------------------------------


class Timed:
    """Something that is timed in turn with others."""

    nbytes: int
    _timer: timeit.Timer

    def __init__(self, threads: int) -> None:
        # What others take from a single thread does not count; the time of several has no other clock than the wall's.
        self._clock = thread_time if threads == 1 else perf_counter

    def set_statement(self, statement: Statement) -> None:
        self._timer = timeit.Timer(statement.code, timer=self._clock, globals=dict(statement.names))

    def repeats(self) -> int:
        return _repeats(self._timer)

    def sample(self, number: int, repeats: int, settle: float) -> float:
        """Nanoseconds a run; the samples of all processes with the same number begin on the same core."""
        if hasattr(os, "sched_setaffinity"):
            cores = os.sched_getaffinity(0)
            os.sched_setaffinity(0, {sorted(cores)[number % len(cores)]})
            # It stays there unless it is disturbed; threads that are made from now on may be anywhere.
            os.sched_setaffinity(0, cores)
        if settle or self.nbytes <= CACHE_BYTES:
            _warm_up(self._timer, settle)
        return self._timer.timeit(repeats) / repeats * 1e9


class _Work(Timed):
    """A case that is ready to be run; what it gives does not depend on who asks."""

    def __init__(self, case: Case, dtype: str, threads: int) -> None:
        super().__init__(threads)
        self._stack = ExitStack()
        self._stack.enter_context(rules(case))
        self._problem, _ = posed(case, dtype, images=IMAGES)
        self.nbytes = self._problem.nbytes
        self._contestant: Contestant | None = None
        self.move()

    def move(self) -> None:
        """Put everything into fresh memory."""
        # What is there goes first: the memory of a large case would be needed twice.
        self._contestant = None
        problem, attributes = self._problem, self._problem.case.attributes
        operator = OPERATORS[problem.case.operator]
        copies = {name: array.copy() if name in operator.arrays else array for name, array in problem.inputs.items()}
        lay = LAYOUTS[attributes.get("input", "contiguous")]
        first = operator.arrays[0]
        copies[first] = lay(copies[first])
        lay = LAYOUTS[attributes.get("output", "contiguous")]
        outs = tuple(lay(out) if out.dtype.kind != "i" else out for out in operator.outs(problem))
        self._problem = replace(problem, inputs={**problem.inputs, **copies})
        self._contestant = operator.ours(self._problem, outs)
        assert self._contestant.into
        self.set_statement(self._contestant.into)

    def digest(self) -> str:
        """Run once; a hash of the bytes that are in the outputs then."""
        assert self._contestant
        assert self._contestant.into
        for out in self._contestant.outs:
            out.fill(-1 if out.dtype.kind == "i" else np.nan)
        self._contestant.into.run()
        return digest_of(self._contestant.outs)

    def close(self) -> None:
        self._stack.close()


def digest_of(arrays: Sequence[Array]) -> str:
    together = hashlib.blake2b(digest_size=16)
    for array in arrays:
        together.update(np.ascontiguousarray(array).view(np.uint8).data)
    return together.hexdigest()


def serve(requests: IO[bytes], answers: IO[bytes]) -> None:
    """Answer until there are no more requests; an exception is an answer too."""
    work: _Work | None = None
    threads = 1
    while True:
        try:
            what, *arguments = pickle.load(requests)
        except EOFError:
            return
        answer: Any = None
        try:
            if what == "start":
                (threads,) = arguments
                aclnn_bw.set_num_threads(threads)
                answer = {**environment([], threads), "folder": str(Path(aclnn_bw.__file__).parent)}
            elif what == "pose":
                if work:
                    work.close()
                work = None  # its memory is free before the next one's is taken
                case, dtype = arguments
                work = _Work(case, dtype, threads)
                answer = work.digest(), work.nbytes
            else:
                assert work
                answer = getattr(work, what)(*arguments)
        except Exception as error:
            print("".join(traceback.format_exception(error)), file=sys.stderr)
            answer = error if isinstance(error, (ValueError, AttributeError, MemoryError)) else RuntimeError(str(error))
        pickle.dump(answer, answers)
        answers.flush()


# The other environment's package must win over the folder of this checkout, which lends the benchmarks alone.
_START = """\
import os, sys
root = sys.argv[1]
sys.path[:] = [entry for entry in sys.path if entry and os.path.realpath(entry) != root] + [root]
from benchmarks import against
answers = os.fdopen(os.dup(1), "wb")
os.dup2(2, 1)  # whatever is printed does not get between the answers
against.serve(sys.stdin.buffer, answers)
"""


class Lost(Exception):
    """A worker has ended, or cannot begin."""


class Contender(Protocol):
    """Who takes turns with others: it can ``move``, tell how many ``repeats`` a sample needs, and take a ``sample``."""

    @property
    def name(self) -> str: ...

    def ask(self, what: str, *arguments: Any) -> Any: ...


class Worker:
    """A process of another interpreter, which does nothing but what it is asked for."""

    def __init__(self, name: str, python: str, environment: Mapping[str, str], folder: Path = _ROOT) -> None:
        self.name = name
        try:
            self._process = subprocess.Popen(
                [python, "-c", _START, str(folder)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment
            )
        except OSError as error:
            raise Lost(f"{python}: {error.strerror}") from error

    def ask(self, what: str, *arguments: Any) -> Any:
        """Let it do something and wait for the answer."""
        assert self._process.stdin
        assert self._process.stdout
        try:
            pickle.dump((what, *arguments), self._process.stdin)
            self._process.stdin.flush()
            answer = pickle.load(self._process.stdout)
        except (EOFError, OSError) as error:
            raise Lost(f"the process of {self.name} has ended with status {self._process.wait()}") from error
        if isinstance(answer, Exception):
            raise command.Skipped(f"{self.name}: {answer}")
        return answer

    def close(self) -> None:
        """End the process and wait for it."""
        assert self._process.stdin
        assert self._process.stdout
        with suppress(OSError):  # it may have ended with a request unread
            self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()


# ---- the comparison -------------------------------------------------------------------------------------------------


def run(case: Case, dtype: str, workers: Sequence[Worker], *, budget: float, settle: float, least: float) -> Row:
    """Compare the results and then time one case; WrongResult if they differ. The first worker is this environment's.

    One that seems to be too slow is timed once more, and all samples count.
    """
    this, other = workers
    (right, nbytes), (seen, _) = (worker.ask("pose", case, dtype) for worker in workers)
    if seen != right:
        raise WrongResult(f"{case.operator} {case.title} {dtype}: the other environment's result has other bytes")
    samples: dict[str, list[float]] = {worker.name: [] for worker in workers}
    for _ in range(2):
        take_turns(workers, samples, budget=budget, settle=settle)
        quotients = ratio(samples[other.name], samples[this.name])
        if not slower(quotients, least):
            break
    return Row(
        operator=case.operator,
        case=case.title,
        dtype=dtype,
        nbytes=nbytes,
        rounds=len(samples[this.name]),
        times={name: Spread.of(times) for name, times in samples.items()},
        ratios={other.name: quotients},
    )


def take_turns(
    workers: Sequence[Contender], samples: Mapping[str, list[float]], *, budget: float, settle: float
) -> None:
    """Let the workers run in turn until the budget is spent: A B, B A, A B, ..."""
    order = list(workers)
    for _ in range(_MOVES):
        deadline = perf_counter() + budget / _MOVES
        rounds = 0
        for worker in workers:
            worker.ask("move")
        repeats = max(worker.ask("repeats") for worker in workers)
        while rounds < -(-MIN_ROUNDS // _MOVES) or perf_counter() < deadline:
            for worker in order:
                samples[worker.name].append(worker.ask("sample", rounds, repeats, settle))
            order.reverse()
            rounds += 1


def slower(quotients: Spread, least: float) -> bool:
    """Tell whether nearly all rounds say that this environment is too slow."""
    return quotients.median < least and quotients.high < least


class Table(variations.Table):
    """A line a row; ratios near 1 need a digit more than others."""

    _RATIO = 19

    def __init__(self, titles: Sequence[str], least: float) -> None:
        super().__init__(titles, ("this", "other"))
        self._least = least

    def lines(self, row: Row) -> list[str]:
        quotients = row.ratios["other"]
        size = f"{row.nbytes / (1 << 20):.{1 if row.nbytes < 10 << 20 else 0}f}"
        times = [duration(row.times[name]) for name in ("this", "other")]
        cell = f"{quotients.median:.3f} ({quotients.low:.3f}-{quotients.high:.3f})"
        line = self._line(row.case, [row.dtype, size, *times, cell])
        return [f"{line}  SLOWER" if slower(quotients, self._least) else line]


def verdict(rows: Sequence[Row], least: float, tolerance: float) -> tuple[str, bool]:
    """The last lines, and whether this environment is fast enough."""
    if not rows:
        return "nothing was timed", False
    medians = [(row.ratios["other"].median, f"{row.operator} {row.case} {row.dtype}") for row in rows]
    mean = math.exp(sum(math.log(median) for median, _ in medians) / len(medians))
    lowest, where = min(medians)
    late = sum(slower(row.ratios["other"], least) for row in rows)
    good = not late and mean >= 1 - tolerance
    text = (
        f"geometric mean  {mean:.3f} of {len(rows)} ratios (least {1 - tolerance:.3f})\n"
        f"lowest          {lowest:.3f}: {where}\n"
        f"too slow        {late} (below {least} with three quarters of the rounds)"
    )
    return text, good


def main(argv: Sequence[str] | None = None) -> int:
    """Run the comparison; 0, or 1 if a result differs, a case was not timed or this environment is too slow."""
    parser = _parser()
    options = parser.parse_args(argv)
    cases = EXTRA if options.extra else CASES
    usual = options.dtype or _USUAL
    selected = command.select(
        parser, options, ((case, dtype) for case in cases for dtype in case.dtypes if dtype in usual)
    )
    if options.list:
        return command.show(selected)
    with command.started(parser, options) as write, ExitStack() as stack:
        try:
            workers = [started(stack, name, python, options.isa) for name, python in _pythons(options)]
        except Lost as error:
            parser.error(str(error))
        surroundings = {worker.name: worker.ask("start", options.threads) for worker in workers}
        for name, found in surroundings.items():
            if options.isa not in (None, found["isa"]):
                parser.error(f"--isa {options.isa}: {name} uses {found['isa']}")
            print(f"{name}: {found['folder']}\n{summary(found)}", end="")
        print(f"{_LEGEND}\n")
        settle = SETTLE if options.threads > 1 else 0.0
        skipped: list[str] = []

        def measured(case: Case, dtype: str) -> Row:
            try:
                return run(case, dtype, workers, budget=options.seconds, settle=settle, least=options.least)
            except command.Skipped:
                skipped.append(case.title)
                raise

        try:
            rows, wrong = command.fill(
                Table([case.title for case, _ in selected], options.least),
                selected,
                measured,
                lambda rows, wrong: write(
                    {"environment": surroundings, "rows": [asdict(row) for row in rows], "wrong": wrong}
                ),
                progress=options.progress,
            )
        except Lost as error:
            print(error, file=sys.stderr)
            return 1
    text, good = verdict(rows, options.least, options.tolerance)
    print(f"\n{text}")
    return 0 if good and not wrong and not skipped else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.against",
        description="Time this environment's aclnn_bw and another one's in turn, each in a process of its own.",
        epilog=f"float32 and float16 without --dtype. {_LEGEND}",
    )
    add = parser.add_argument
    add("other_python", metavar="OTHER_PYTHON", help="the interpreter of the environment to compare with")
    add("--extra", action="store_true", help="the second list of cases: geometries that the usual ones never take")
    add("--isa", choices=["v2", "v3", "v4"], help="for both (default: the best of the machine)")
    add(
        "--least", type=command.positive, default=0.97, metavar="RATIO",
        help="a case with a lower ratio, by its third quartile too, is too slow (default 0.97)",
    )  # fmt: skip
    add(
        "--tolerance", type=command.positive, default=0.01, metavar="T",
        help="the geometric mean must be at least 1 - T (default 0.01)",
    )  # fmt: skip
    command.add_selection(parser, tuple(DTYPES))
    add(
        "--threads", type=int, default=1, metavar="N",
        help="for both (default 1: its own CPU time is taken; that of several counts only on an idle machine)",
    )  # fmt: skip
    add(
        "--seconds", type=command.positive, default=4.0, metavar="S",
        help="time to spend on a case (default 4), twice if it seems to be too slow",
    )  # fmt: skip
    add("--json", metavar="FILE", help="also write the figures, in nanoseconds, to FILE")
    add(
        "--progress", action="store_true", default=sys.stderr.isatty(),
        help="tell on stderr which case runs, even if it is no terminal",
    )  # fmt: skip
    return parser


def _pythons(options: argparse.Namespace) -> list[tuple[str, str]]:
    return [("this", sys.executable), ("other", options.other_python)]


def started(stack: ExitStack, name: str, python: str, isa: str | None) -> Worker:
    """Start a worker on this instruction set, or the machine's best, for as long as the stack lives."""
    cap = {"ACLNN_BW_ISA": isa} if isa else {}
    # Of a call that takes nanoseconds, the order of a dictionary's entries is some per cent.
    worker = Worker(name, python, {**os.environ, "PYTHONHASHSEED": "0", **cap})
    stack.callback(worker.close)
    return worker


if __name__ == "__main__":
    command.end(main)
