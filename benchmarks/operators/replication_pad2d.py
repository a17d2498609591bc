"""ReplicationPad2dBackward, and its forward."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from ..check import Array, Reference
from ..problem import DTYPES, LAST, TINY, Case, Drawn, Family, Gradient, Operator, Problem, normal, same


class ReplicationPad2dBackward(Gradient):
    """Attribute: padding, one int or (left, right, top, bottom)."""

    call = "replication_pad2d_backward"
    phases = "ReplicationPad2dBackward"
    arrays = ("grad_output", "x")
    signature: Mapping[str, Any] = {"padding": None}

    def small(self) -> tuple[Case, ...]:
        return (self.row(2, 3, 5, 6, padding=(1, 2, 3, 0), dtypes=tuple(DTYPES)),)

    def rows(self) -> tuple[Case, ...]:
        return (
            self.row(8, 64, 128, 128, padding=1, dtypes=tuple(DTYPES)),
            self.row(1, 3, 1080, 1920, padding=(10, 20, 30, 40), dtypes=tuple(DTYPES)),
            self.row(64, 3, 32, 32, padding=4, dtypes=tuple(DTYPES)),
            self.row(1, 2, 4, 4, padding=1, dtypes=TINY),
        )

    def more_rows(self) -> tuple[Case, ...]:
        return (
            self.row(8, 256, 7, 7, padding=1, dtypes=tuple(DTYPES)),
            self.row(8, 128, 14, 14, padding=3, dtypes=tuple(DTYPES)),
            self.row(8, 128, 35, 35, padding=(0, 1, 0, 1), dtypes=tuple(DTYPES)),
            self.row(8, 64, 28, 28, padding=40, dtypes=tuple(DTYPES)),
            self.row(8, 64, 56, 56, padding=-3, dtypes=tuple(DTYPES)),
            self.row(8, 64, 56, 56, padding=1, input=LAST, dtypes=tuple(DTYPES)),
            self.row(8, 64, 56, 56, padding=1, output=LAST, dtypes=tuple(DTYPES)),
            self.row(8, 64, 56, 56, padding=1, input=LAST, output=LAST, dtypes=tuple(DTYPES)),
        )

    def families(self) -> dict[str, Family]:
        return {"pad": Family("replication padding by 1", self.call, 8, same(padding=1))}

    def images(self) -> tuple[tuple[tuple[int, ...], Mapping[str, Any]], ...]:
        return (((32, 128, 128), {"padding": 1}),)

    def draw(self, rng: np.random.Generator, plane: tuple[int, int]) -> Drawn:
        sides = [int(side) for side in rng.integers(0, int(rng.choice([2, 4, 8, 40])), 4)]
        if rng.random() < 0.6:
            sides = [max(sides[0], 1)] * 4
        left, right, top, bottom = sides
        padding = left if len(set(sides)) == 1 else tuple(sides)
        return Drawn(plane, {"padding": padding}, (plane[0] + top + bottom) * (plane[1] + left + right))

    def problem(self, case: Case, dtype: np.dtype[Any], rng: np.random.Generator) -> Problem:
        *planes, h, w = case.shape
        left, right, top, bottom = sides(case)
        inputs = {
            "grad_output": normal(rng, (*planes, h + top + bottom, w + left + right), dtype),
            "x": np.zeros(case.shape, dtype),
        }
        nbytes = inputs["grad_output"].nbytes + inputs["x"].nbytes  # gradInput is as large as x, which is not read
        return Problem(case, dtype, inputs, nbytes)

    def phase_1(self, problem: Problem, outs: tuple[Array, ...]) -> list[Any]:
        return [problem.inputs["grad_output"], problem.inputs["x"], sides(problem.case), *outs]

    def terms(self, problem: Problem) -> Array:
        *_, h, w = problem.case.shape
        left, right, top, bottom = sides(problem.case)
        return np.outer(
            np.bincount(_clamped(h, top, bottom), minlength=h), np.bincount(_clamped(w, left, right), minlength=w)
        )

    def formula(self, grad_output: Array, problem: Problem) -> Array:
        """``gradInput[clamp(p - top), clamp(q - left)] += gradOutput[p, q]``, first the rows, then the columns."""
        *_, h, w = problem.case.shape
        left, right, top, bottom = sides(problem.case)
        by_rows = _sum_rows(grad_output, h, _clamped(h, top, bottom))
        return _sum_rows(_transposed(by_rows), w, _clamped(w, left, right)).swapaxes(-1, -2)


class ReplicationPad2d(Operator):
    """Attribute: padding, one int or (left, right, top, bottom)."""

    call = "replication_pad2d"
    phases = "ReplicationPad2d"
    arrays = ("x",)
    signature: Mapping[str, Any] = {"padding": None}

    def small(self) -> tuple[Case, ...]:
        return (self.row(2, 3, 5, 6, padding=(1, 2, 3, 0), dtypes=tuple(DTYPES)),)

    def rows(self) -> tuple[Case, ...]:
        return (
            self.row(8, 64, 128, 128, padding=1, dtypes=tuple(DTYPES)),
            self.row(1, 3, 1080, 1920, padding=(10, 20, 30, 40), dtypes=tuple(DTYPES)),
            self.row(64, 3, 32, 32, padding=4, dtypes=tuple(DTYPES)),
            self.row(1, 2, 4, 4, padding=1, dtypes=TINY),
        )

    def more_rows(self) -> tuple[Case, ...]:
        return (
            self.row(8, 256, 7, 7, padding=1, dtypes=tuple(DTYPES)),
            self.row(8, 128, 14, 14, padding=3, dtypes=tuple(DTYPES)),
            self.row(8, 64, 28, 28, padding=40, dtypes=tuple(DTYPES)),
            self.row(8, 64, 56, 56, padding=-3, dtypes=tuple(DTYPES)),
            self.row(8, 64, 56, 56, padding=1, input=LAST, dtypes=tuple(DTYPES)),
            self.row(8, 64, 56, 56, padding=1, input=LAST, output=LAST, dtypes=tuple(DTYPES)),
        )

    def families(self) -> dict[str, Family]:
        return {}

    def images(self) -> tuple[tuple[tuple[int, ...], Mapping[str, Any]], ...]:
        return (((32, 128, 128), {"padding": 1}),)

    def draw(self, rng: np.random.Generator, plane: tuple[int, int]) -> Drawn:
        return ReplicationPad2dBackward().draw(rng, plane)

    def problem(self, case: Case, dtype: np.dtype[Any], rng: np.random.Generator) -> Problem:
        inputs = {"x": normal(rng, case.shape, dtype)}
        return Problem(case, dtype, inputs, inputs["x"].nbytes + math.prod(self._padded(case)) * dtype.itemsize)

    def phase_1(self, problem: Problem, outs: tuple[Array, ...]) -> list[Any]:
        return [problem.inputs["x"], sides(problem.case), *outs]

    def references(self, problem: Problem) -> tuple[Reference, ...]:
        x = problem.inputs["x"]
        left, right, top, bottom = sides(problem.case)
        rows, columns = _clamped(x.shape[-2], top, bottom), _clamped(x.shape[-1], left, right)
        return (Reference(x[..., rows, :][..., columns]),)

    def outs(self, problem: Problem) -> tuple[Array, ...]:
        return (np.empty(self._padded(problem.case), problem.dtype),)

    def _padded(self, case: Case) -> tuple[int, ...]:
        left, right, top, bottom = sides(case)
        *planes, h, w = case.shape
        return (*planes, h + top + bottom, w + left + right)


def sides(case: Case) -> list[int]:
    """Left, right, top, bottom."""
    padding = case.attributes["padding"]
    return [padding] * 4 if isinstance(padding, int) else list(padding)


def _clamped(size: int, before: int, after: int) -> list[int]:
    """For each place of the padded axis, the place in the image that it copies."""
    return [min(max(place - before, 0), size - 1) for place in range(before + size + after)]


def _sum_rows(array: Array, size: int, targets: list[int]) -> Array:
    sums = np.zeros((*array.shape[:-2], size, array.shape[-1]), array.dtype)
    for row, target in enumerate(targets):
        sums[..., target, :] += array[..., row, :]
    return sums


def _transposed(array: Array) -> Array:
    """Contiguous, so that rows are quick to add."""
    return np.ascontiguousarray(array.swapaxes(-1, -2))
