"""``python -m benchmarks.first``: the first call of a process, and the first touch of fresh memory."""

from __future__ import annotations

import argparse
import mmap
import statistics
import subprocess
import sys
import timeit
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

import aclnn_bw

from . import command
from .busy import contestants
from .cases import bytes_moved
from .check import Array
from .growth import FAMILIES, size
from .machine import environment, summary
from .operators import OPERATORS
from .peers import load
from .problem import DTYPES, Case

_ROOT = Path(__file__).resolve().parent.parent
_LEGEND = """\
Medians over processes, in milliseconds. First a process's import, its first call and its second, both small. Then calls
that keep every result, so that each lies in memory that nobody has touched, and calls into memory made before. Last
our calls into new pages, and what it takes alone to touch these: who fetches what is not there yet takes longer than
both (x: the time of the call into new pages / the sum of the other two)."""
_CALLS = {
    "ours": (
        "import numpy as np\nimport aclnn_bw\naclnn_bw.set_num_threads({threads})",
        "g, x = np.ones((1, 16, 4, 4), np.float32), np.ones((1, 16, 8, 8), np.float32)",
        "aclnn_bw.avg_pool2d_backward(g, x, 2)",
    ),
    "torch": (
        "import torch\ntorch.set_num_threads({threads})",
        "g, x = torch.ones(1, 16, 4, 4), torch.ones(1, 16, 8, 8)",
        "torch.ops.aten.avg_pool2d_backward(g, x, [2, 2], [2, 2], [0, 0], False, True, None)",
    ),
}
_PROGRAM = """\
from time import perf_counter
times = [perf_counter()]
{load}
times.append(perf_counter())
{data}
times.append(perf_counter())
{call}
times.append(perf_counter())
{call}
times.append(perf_counter())
print(times[1] - times[0], times[3] - times[2], times[4] - times[3])
"""
# Of an average pool k3 s2 p1 in float32: 64 KiB to 64 MiB.
_FAMILY, _STEPS = "avg", range(3, 9)
# Of each operator's images, so that results are too large for an allocator to have them ready.
_IMAGES, _CALLS_INTO_PAGES = 8, 7
_WIDE = 76, 12  # columns of its table
# What a process may keep, and how many results.
_KEPT, _MOST = 1 << 30, 32


def first_call(who: str, threads: int) -> list[float]:
    """Start a process; the seconds of its import, its first call and its second."""
    load_it, data, call = _CALLS[who]
    return _run(_PROGRAM.format(load=load_it.format(threads=threads), data=data, call=call))


def first_touch(who: str, step: int, threads: int) -> list[float]:
    """Start a process; the seconds of a call into memory that was made before, and into memory nobody has touched."""
    return _run(f"from benchmarks import first\nprint(*first.touched({who!r}, {step}, {threads}))")


def _run(program: str) -> list[float]:
    code = f"import sys\nsys.path[:0] = {sys.path!r}\n{program}"
    done = subprocess.run([sys.executable, "-c", code], cwd=_ROOT, check=True, capture_output=True, text=True)
    return [float(word) for word in done.stdout.split()]


def touched(who: str, step: int, threads: int) -> tuple[float, float]:
    """Measure what ``first_touch`` gives, in this process."""
    peers = [] if who == "ours" else load([who], threads)[0]
    case = FAMILIES[_FAMILY].case(step, "float32")
    with aclnn_bw.num_threads(threads):
        contestant = contestants(case, peers)[who]
        assert contestant.into
        assert contestant.fresh
        calls = max(min(_KEPT // bytes_moved(case, "float32"), _MOST), 3)
        into = timeit.repeat(contestant.into.code, globals=dict(contestant.into.names), number=1, repeat=calls)
        kept: list[Any] = []
        names = {**contestant.fresh.names, "keep": kept.append}
        fresh = timeit.Timer(f"keep({contestant.fresh.code})", timer=perf_counter, globals=names).repeat(calls, 1)
    return statistics.median(into), statistics.median(fresh)


def new_pages(array: Array) -> Array:
    """Give an array of this shape in pages that nobody has touched, as small as the machine has them."""
    pages = mmap.mmap(-1, array.nbytes)
    if hasattr(mmap, "MADV_NOHUGEPAGE"):
        pages.madvise(mmap.MADV_NOHUGEPAGE)
    return np.frombuffer(pages, np.uint8).view(array.dtype).reshape(array.shape)


def into_pages(case: Case, threads: int, calls: int = _CALLS_INTO_PAGES) -> list[float]:
    """Measure calls into memory made before and into new pages, and the touching of such pages; the seconds of each."""
    operator = OPERATORS[case.operator]
    problem = operator.problem(case, DTYPES["float32"], np.random.default_rng(0))
    outs = operator.outs(problem)

    def called(outs: tuple[Array, ...]) -> float:
        contestant = operator.ours(problem, outs)
        assert contestant.into
        return timeit.timeit(contestant.into.code, globals=dict(contestant.into.names), number=1)

    def touched(outs: tuple[Array, ...]) -> float:
        start = perf_counter()
        for out in outs:
            out.reshape(-1).view(np.uint8)[:: mmap.PAGESIZE] = 0
        return perf_counter() - start

    with aclnn_bw.num_threads(threads):
        called(outs)
        taken = [
            [called(outs), called(tuple(map(new_pages, outs))), touched(tuple(map(new_pages, outs)))]
            for _ in range(calls)
        ]
    return [statistics.median(times) for times in zip(*taken, strict=True)]


def images() -> list[Case]:
    """Give the cases of the last table."""
    return [
        Case(name, (_IMAGES, *shape), attributes)
        for name, operator in OPERATORS.items()
        for shape, attributes in operator.images()
    ]


def main(argv: Sequence[str] | None = None) -> int:
    """Print the tables; 0."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.first",
        description="Time the first call of a process with its imports, and calls whose results lie in memory that "
        "nobody has touched: ours and PyTorch's, in processes of their own; then each operator's into new pages.",
    )
    add = parser.add_argument
    add("--processes", type=int, default=5, metavar="N", help="of each kind (default 5)")
    add("--threads", type=int, default=2, metavar="N", help="for us and for PyTorch (default 2)")
    add("--json", metavar="FILE", help="also write the figures, in seconds, to FILE")
    options = parser.parse_args(argv)
    if options.processes < 1:
        parser.error(f"--processes {options.processes}: must be >= 1")
    with command.started(parser, options) as write:
        peers, left_out = load(["torch"], options.threads)
        for line in left_out:
            print(line, file=sys.stderr)
        names = ["ours", *(peer.name for peer in peers)]
        surroundings = environment(peers, options.threads)
        print(f"{summary(surroundings)}{_LEGEND}")
        rows: list[dict[str, Any]] = []

        def show(title: str, measure: Callable[[str], list[float]]) -> None:
            taken = _medians(names, measure, options.processes)
            rows.append({"title": title, "seconds": taken})
            print(_line(title, (f"{time * 1e3:.3f}" for times in taken.values() for time in times)), flush=True)
            write({"environment": surroundings, "rows": rows})

        print(f"\n{_heading(names, 'import', 'first call', 'second call')}")
        show("a small call", lambda name: first_call(name, options.threads))
        print(f"\n{_heading(names, 'out=', 'untouched')}")
        for step in _STEPS:
            nbytes = bytes_moved(FAMILIES[_FAMILY].case(step, "float32"), "float32")
            show(size(nbytes), partial(first_touch, step=step, threads=options.threads))
        print(f"\n{_line('', ('out=', 'new pages', 'touching', 'x'), _WIDE)}")
        for case in images():
            title = f"{case.operator} {case.title}"
            into, new, touching = taken = into_pages(case, options.threads)
            rows.append({"title": title, "seconds": {"ours": taken}})
            cells = (*(f"{time * 1e3:.3f}" for time in taken), f"{new / (into + touching):.2f}")
            print(_line(title, cells, _WIDE), flush=True)
            write({"environment": surroundings, "rows": rows})
    return 0


def _medians(
    names: Sequence[str], measure: Callable[[str], list[float]], processes: int
) -> dict[str, list[float]]:
    """Measure so many times, each one in turn."""
    taken: dict[str, list[list[float]]] = {name: [] for name in names}
    for _ in range(processes):
        for name in names:
            taken[name].append(measure(name))
    return {name: [statistics.median(times) for times in zip(*each, strict=True)] for name, each in taken.items()}


def _heading(names: Sequence[str], *labels: str) -> str:
    return _line("", (f"{name} {label}" for name in names for label in labels))


def _line(title: str, cells: Iterable[str], widths: tuple[int, int] = (14, 20)) -> str:
    first, others = widths
    return f"{title:<{first}}" + "".join(f"{cell:>{others}}" for cell in cells)


if __name__ == "__main__":
    command.end(main)
