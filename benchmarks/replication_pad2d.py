"""ReplicationPad2dBackward."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from .check import Array
from .problem import Case, Gradient, Problem, normal


class ReplicationPad2dBackward(Gradient):
    """Attribute: padding, one int or (left, right, top, bottom)."""

    call = "replication_pad2d_backward"
    phases = "ReplicationPad2dBackward"
    arrays = ("grad_output", "x")
    signature: Mapping[str, Any] = {"padding": 0}

    def sides(self, case: Case) -> list[int]:
        """Left, right, top, bottom."""
        padding = case.attributes["padding"]
        return [padding] * 4 if isinstance(padding, int) else list(padding)

    def problem(self, case: Case, dtype: np.dtype[Any], rng: np.random.Generator) -> Problem:
        *planes, h, w = case.shape
        left, right, top, bottom = self.sides(case)
        inputs = {
            "grad_output": normal(rng, (*planes, h + top + bottom, w + left + right), dtype),
            "x": np.zeros(case.shape, dtype),
        }
        nbytes = inputs["grad_output"].nbytes + inputs["x"].nbytes  # gradInput is as large as x, which is not read
        return Problem(case, dtype, inputs, nbytes)

    def phase_1(self, problem: Problem, outs: tuple[Array, ...]) -> list[Any]:
        return [problem.inputs["grad_output"], problem.inputs["x"], self.sides(problem.case), *outs]

    def terms(self, problem: Problem) -> Array:
        *_, h, w = problem.case.shape
        left, right, top, bottom = self.sides(problem.case)
        return np.outer(
            np.bincount(_clamped(h, top, bottom), minlength=h), np.bincount(_clamped(w, left, right), minlength=w)
        )

    def formula(self, grad_output: Array, problem: Problem) -> Array:
        """``gradInput[clamp(p - top), clamp(q - left)] += gradOutput[p, q]``, first the rows, then the columns."""
        *_, h, w = problem.case.shape
        left, right, top, bottom = self.sides(problem.case)
        by_rows = _sum_rows(grad_output, h, _clamped(h, top, bottom))
        return _sum_rows(_transposed(by_rows), w, _clamped(w, left, right)).swapaxes(-1, -2)


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
