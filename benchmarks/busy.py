"""``python -m benchmarks.busy``: how long calls take while others want the cores too."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import threading
import timeit
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

import aclnn_bw

from . import command
from .cases import bytes_moved, posed, rules
from .growth import FAMILIES, size
from .machine import environment, summary
from .operators import OPERATORS
from .peers import Peer, load
from .problem import Case, Contestant, check_contestant, sums_in
from .threads import name_of
from .timing import Statement

_LEGEND = """\
A neighbour, a process that this one starts, keeps a core busy, at this one's own priority (nice 0) and at the lowest
(nice 19); this one and it have as many cores as --threads says. Of a call into memory made before: the median, 95th and
99th percentile of its time, in microseconds. At the end {callers} Python threads call at once, each with the default
number of threads: the time until all have ended, for each of their calls; the same three over the turns."""
# Of an average pool k3 s2 p1 in float32: 16 KiB to 16 MiB, each four times the one before.
_FAMILY, _STEPS = "avg", range(2, 8)
_NEIGHBOURS = {"no neighbour": None, "neighbour of nice 0": 0, "neighbour of nice 19": 19}
_CALLERS = 8
# Contestants take turns: what the machine does besides meets all of them.
_TURNS = 5


class Spread(NamedTuple):
    """Nanoseconds of a call."""

    median: float
    late: float
    latest: float

    @classmethod
    def of(cls, seconds: Sequence[float]) -> Spread:
        return cls(*(float(time) * 1e9 for time in np.percentile(seconds, (50, 95, 99))))

    def __str__(self) -> str:
        return ", ".join(f"{time / 1e3:.{1 if time < 1e5 else 0}f}" for time in self)


class Caller(NamedTuple):
    """Somebody's call, and our number of threads."""

    statement: Statement
    threads: int


@contextmanager
def neighbour(nice: int | None) -> Iterator[None]:
    """Keep a core busy, or none."""
    if nice is None:
        yield
        return
    code = f"import os\nif hasattr(os, 'nice'): os.nice({nice})\nprint(flush=True)\nwhile True: pass"
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
    try:
        assert process.stdout
        process.stdout.readline()  # it runs
        yield
    finally:
        process.kill()
        process.wait()
        assert process.stdout
        process.stdout.close()


@contextmanager
def few_cores(count: int) -> Iterator[None]:
    """Leave this process, and those that it starts, so many cores where the system can."""
    if not hasattr(os, "sched_setaffinity"):
        yield
        return
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, sorted(cores)[:count])
    try:
        yield
    finally:
        os.sched_setaffinity(0, cores)


def contestants(case: Case, peers: Sequence[Peer]) -> dict[str, Contestant]:
    """Give ours and those of the peers, each in memory of its own, all of whose results are right."""
    with rules(case):
        problem, references = posed(case, "float32", images=1)
        found = {"ours": OPERATORS[case.operator].ours(problem)}
        found |= {peer.name: contestant for peer in peers if (contestant := peer.contestant(problem))}
        for name, contestant in found.items():
            accumulated_in = sums_in(problem.dtype) if name == "ours" else problem.dtype
            check_contestant(contestant, problem, references, accumulated_in=accumulated_in)
    return found


def our_names(threads: int) -> list[str]:
    """Name ours with all threads, and with one."""
    return [f"ours, {name_of(count)}" for count in (threads, 1)]


def callers(case: Case, peers: Sequence[Peer], threads: int) -> dict[str, Caller]:
    """Give ours with all threads and with one, and the peers."""
    found = {name: contestant.into for name, contestant in contestants(case, peers).items() if contestant.into}
    ours = found.pop("ours")
    both = {name: Caller(ours, count) for name, count in zip(our_names(threads), (threads, 1), strict=True)}
    return both | {name: Caller(statement, threads) for name, statement in found.items()}


def latencies(callers: Mapping[str, Caller], budget: float) -> dict[str, Spread]:
    """Time single calls of each caller in turn."""
    times: dict[str, list[float]] = {name: [] for name in callers}
    for _ in range(_TURNS):
        for name, (statement, threads) in callers.items():
            with aclnn_bw.num_threads(threads):
                timer = timeit.Timer(statement.code, timer=perf_counter, globals=dict(statement.names))
                timer.timeit(1)
                deadline = perf_counter() + budget / _TURNS / len(callers)
                taken: list[float] = []
                while not taken or perf_counter() < deadline:
                    taken.append(timer.timeit(1))
                times[name] += taken
    return {name: Spread.of(taken) for name, taken in times.items()}


def at_once(statements: Sequence[Statement], calls: int) -> float:
    """Give the seconds that as many Python threads take for so many calls each."""
    gate = threading.Barrier(len(statements) + 1)

    def work(statement: Statement) -> None:
        timer = timeit.Timer(statement.code, globals=dict(statement.names))
        gate.wait()
        timer.timeit(calls)

    workers = [threading.Thread(target=work, args=(statement,)) for statement in statements]
    for worker in workers:
        worker.start()
    gate.wait()
    begin = perf_counter()
    for worker in workers:
        worker.join()
    return perf_counter() - begin


def crowd(case: Case, peers: Sequence[Peer], budget: float) -> dict[str, Spread]:
    """Time many callers at once: of each side, what a call of one of them takes on the whole."""
    sides: dict[str, list[Statement]] = {}
    for _ in range(_CALLERS):
        for name, contestant in contestants(case, peers).items():
            assert contestant.into
            sides.setdefault(name, []).append(contestant.into)
    # As many calls as take a part of the budget.
    alone = min(timeit.repeat(sides["ours"][0].code, globals=dict(sides["ours"][0].names), number=1, repeat=5))
    calls = max(int(budget / (2 * _TURNS) / (_CALLERS * alone)), 1)
    times: dict[str, list[float]] = {name: [] for name in sides}
    for _ in range(_TURNS):
        for name, statements in sides.items():
            times[name].append(at_once(statements, calls) / calls / _CALLERS)
    return {name: Spread.of(taken) for name, taken in times.items()}


def main(argv: Sequence[str] | None = None) -> int:
    """Print both tables; 0."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.busy",
        description="Time single calls while another process keeps a core busy, and many Python threads that call at "
        "once: an average pool of 16 KiB to 16 MiB, ours and PyTorch's.",
    )
    command.add_measuring(parser, seconds=3.0, quick=0.05)
    options = parser.parse_args(argv)
    cases = [FAMILIES[_FAMILY].case(step, "float32") for step in _STEPS]
    with command.started(parser, options) as write, few_cores(options.threads):
        peers, left_out = load(["torch"], options.threads)
        for line in left_out:
            print(line, file=sys.stderr)
        surroundings = environment(peers, options.threads)
        print(f"{summary(surroundings)}{_LEGEND.format(callers=_CALLERS)}")
        rows: list[dict[str, Any]] = []

        def show(title: str, case: Case, spreads: Mapping[str, Spread]) -> None:
            nbytes = bytes_moved(case, "float32")
            rows.append({"title": title, "nbytes": nbytes, "ns": {name: list(each) for name, each in spreads.items()}})
            print(_line(title, size(nbytes), map(str, spreads.values())), flush=True)
            write({"environment": surroundings, "rows": rows})

        print(f"\n{_line('a call', 'size', [*our_names(options.threads), *(peer.name for peer in peers)])}")
        for title, nice in _NEIGHBOURS.items():
            for case in cases:
                with neighbour(nice):
                    show(title, case, latencies(callers(case, peers, options.threads), options.seconds))
        print(f"\n{_line('a call of all', 'size', ['ours', *(peer.name for peer in peers)])}")
        for case in cases:
            show(f"{_CALLERS} callers", case, crowd(case, peers, options.seconds))
    return 0


def _line(title: str, nbytes: str, cells: Iterable[str]) -> str:
    return f"{title:<22}{nbytes:>10}" + "".join(f"{cell:>30}" for cell in cells)


if __name__ == "__main__":
    command.end(main)
