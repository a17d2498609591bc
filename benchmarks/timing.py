"""Interleaved timing of Python statements in one process."""

from __future__ import annotations

import statistics
import time
import timeit
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

# One sample is at least this long: far above the clock's resolution and a stray interrupt.
BATCH_SECONDS = 1e-3
# Taken however long they take.
MIN_ROUNDS = 5
# Arrays that fit a cache are touched once, untimed, before each sample: the contestant before has evicted them.
CACHE_BYTES = 64 << 20
# Nanoseconds of a run that what came before it cannot change much.
_LONG = 1e8


@dataclass(frozen=True)
class Statement:
    """Python source and the names it uses. It is compiled into timeit's loop, so no call is timed but its own."""

    code: str
    names: Mapping[str, Any]

    def run(self) -> Any:
        """Evaluate the code once; its value if it is an expression, else None."""
        try:
            expression = compile(self.code, "<statement>", "eval")
        except SyntaxError:
            exec(self.code, dict(self.names))
            return None
        return eval(expression, dict(self.names))


@dataclass(frozen=True)
class Spread:
    """Quartiles of one quantity over the rounds."""

    low: float
    median: float
    high: float

    @classmethod
    def of(cls, samples: list[float]) -> Spread:
        low, median, high = statistics.quantiles(samples, n=4, method="inclusive")
        return cls(low, median, high)


def ratio(numerator: list[float], denominator: list[float]) -> Spread:
    """The spread of numerator / denominator, each quotient taken within one round."""
    return Spread.of([a / b for a, b in zip(numerator, denominator, strict=True)])


def plain_copy(nbytes: int) -> Statement:
    """One thread copying ``nbytes / 2`` bytes, so that ``nbytes`` are moved in all: the yardstick."""
    source: npt.NDArray[np.uint8] = np.ones(nbytes // 2, np.uint8)
    target = np.zeros_like(source)
    return Statement("copyto(target, source)", {"copyto": np.copyto, "target": target, "source": source})


def measure(
    statements: Mapping[str, Statement],
    *,
    budget: float,
    nbytes: int,
    min_rounds: int = MIN_ROUNDS,
    settle: float = 0.0,
) -> dict[str, list[float]]:
    """Nanoseconds per run of each statement, one sample per round.

    Every round times every statement; the order turns round each time, so that none of them always follows the same
    neighbour. Rounds are taken until ``budget`` seconds are over, at least ``min_rounds`` of them. Before each sample
    the statement runs untimed for ``settle`` seconds.
    """
    timers = {
        name: timeit.Timer(statement.code, timer=time.perf_counter, globals=dict(statement.names))
        for name, statement in statements.items()
    }
    repeats = {name: _repeats(timer) for name, timer in timers.items()}
    warm = nbytes <= CACHE_BYTES
    samples: dict[str, list[float]] = {name: [] for name in timers}
    order = list(timers)
    deadline = time.perf_counter() + budget
    rounds = 0
    while rounds < min_rounds or time.perf_counter() < deadline:
        for name in order:
            if (warm or settle) and (not samples[name] or samples[name][-1] < _LONG):
                _warm_up(timers[name], settle)
            samples[name].append(timers[name].timeit(repeats[name]) / repeats[name] * 1e9)
        order.reverse()
        rounds += 1
    return samples


def _warm_up(timer: timeit.Timer, seconds: float) -> None:
    """Run once, and again until so much time is over."""
    deadline = time.perf_counter() + seconds
    timer.timeit(1)
    while time.perf_counter() < deadline:
        timer.timeit(1)


def _repeats(timer: timeit.Timer) -> int:
    """How many runs one sample needs; finding it warms the statement up."""
    timer.timeit(1)
    count = 1
    while (elapsed := timer.timeit(count)) < BATCH_SECONDS:
        # A cold clock or a first page fault must not overshoot the count: grow tenfold at most.
        count = max(count + 1, min(count * 10, int(count * BATCH_SECONDS / max(elapsed, 1e-9)) + 1))
    return count
