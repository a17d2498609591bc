"""AvgPool2dBackward, and its forward."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from ..check import Array, Reference
from ..problem import LAST, TINY, Case, Drawn, Family, Form, Gradient, Operator, Problem, normal, same
from ..windows import count, draw_pool, positions


class AvgPool2dBackward(Gradient):
    """Attributes: kernel_size, and optionally stride, padding, ceil_mode, count_include_pad, divisor_override."""

    call = "avg_pool2d_backward"
    phases = "AvgPool2dBackward"
    arrays = ("grad_output", "x")
    signature: Mapping[str, Any] = {
        "kernel_size": None, "stride": None, "padding": 0,
        "ceil_mode": False, "count_include_pad": True, "divisor_override": None,
    }  # fmt: skip

    def small(self) -> tuple[Case, ...]:
        return (self.row(2, 3, 9, 10, kernel_size=3, stride=2, padding=1),)

    def rows(self) -> tuple[Case, ...]:
        return (
            self.row(32, 64, 112, 112, kernel_size=2, stride=2),
            self.row(8, 64, 112, 112, kernel_size=3, stride=2, padding=1),
            self.row(32, 256, 35, 35, kernel_size=3, stride=1, padding=1),
            self.row(32, 2048, 7, 7, kernel_size=7),
            self.row(8, 64, 56, 56, kernel_size=5, stride=1, padding=2),
            self.row(8, 64, 56, 56, kernel_size=3, stride=3),
            self.row(1, 16, 4, 4, kernel_size=4, dtypes=TINY),
            self.row(1, 16, 4, 4, kernel_size=4, dtypes=TINY, form=Form.TWO_PHASE_ARRAYS),
            self.row(1, 16, 4, 4, kernel_size=4, dtypes=TINY, form=Form.TWO_PHASE),
            self.row(1, 16, 4, 4, kernel_size=4, dtypes=TINY, form=Form.PHASE_2),
        )

    def more_rows(self) -> tuple[Case, ...]:
        return (
            self.row(8, 256, 7, 7, kernel_size=3, stride=1, padding=1),
            self.row(8, 256, 14, 14, kernel_size=3, stride=1, padding=1, count_include_pad=False),
            self.row(8, 128, 28, 28, kernel_size=2, stride=1),
            self.row(8, 128, 35, 35, kernel_size=3, stride=2),
            self.row(8, 64, 55, 55, kernel_size=3, stride=2, ceil_mode=True),
            self.row(8, 64, 56, 56, kernel_size=4, stride=4),
            self.row(8, 64, 56, 56, kernel_size=4, stride=2, padding=1),
            self.row(8, 64, 57, 57, kernel_size=7, stride=3, padding=3),
            self.row(8, 64, 28, 28, kernel_size=11, stride=1, padding=5),
            self.row(8, 256, 14, 14, kernel_size=2, stride=2),
            self.row(8, 64, 56, 56, kernel_size=1, stride=2),
            self.row(8, 64, 56, 56, kernel_size=3, stride=1, padding=1, input=LAST),
            self.row(8, 64, 56, 56, kernel_size=2, stride=2, input=LAST, output=LAST),
        )

    def families(self) -> dict[str, Family]:
        return {"avg": Family("average pool k3 s2 p1", self.call, 16, same(kernel_size=3, stride=2, padding=1))}

    def images(self) -> tuple[tuple[tuple[int, ...], Mapping[str, Any]], ...]:
        return (((64, 112, 112), {"kernel_size": 3, "stride": 2, "padding": 1}),)

    def attributes(self, case: Case) -> dict[str, Any]:
        a = super().attributes(case)
        return {**a, "stride": a["stride"] or a["kernel_size"]}

    def draw(self, rng: np.random.Generator, plane: tuple[int, int]) -> Drawn:
        a = draw_pool(rng, plane)
        if rng.random() < 0.25:
            a["count_include_pad"] = False
        if rng.random() < 0.05:
            a["divisor_override"] = 5
        return Drawn(plane, a, math.prod(count(size, a) for size in plane))

    def problem(self, case: Case, dtype: np.dtype[Any], rng: np.random.Generator) -> Problem:
        n, c, *sizes = case.shape
        a = self.attributes(case)
        inputs = {
            "grad_output": normal(rng, (n, c, *(count(size, a) for size in sizes)), dtype),
            "x": np.zeros(case.shape, dtype),
        }
        nbytes = inputs["grad_output"].nbytes + inputs["x"].nbytes  # gradInput is as large as x, which is not read
        return Problem(case, dtype, inputs, nbytes)

    def phase_1(self, problem: Problem, outs: tuple[Array, ...]) -> list[Any]:
        a = self.attributes(problem.case)
        return [
            problem.inputs["grad_output"], problem.inputs["x"],
            *([a[name]] * 2 for name in ("kernel_size", "stride", "padding")),
            a["ceil_mode"], a["count_include_pad"], a["divisor_override"] or 0, 0, *outs,
        ]  # fmt: skip

    def terms(self, problem: Problem) -> int:
        a = self.attributes(problem.case)
        return int(-(-a["kernel_size"] // a["stride"])) ** 2

    def formula(self, grad_output: Array, problem: Problem) -> Array:
        """``gradInput[window(oh, ow)] += gradOutput[oh, ow] / divisor(oh, ow)``, kernel position by position."""
        a = self.attributes(problem.case)
        h, w = problem.case.shape[2:]
        shares = grad_output / divisors(h, w, a)
        grad_input = np.zeros(problem.case.shape)
        for _, windows, places in positions(h, w, a):
            grad_input[places] += shares[windows]
        return grad_input


class AvgPool2d(Operator):
    """Attributes: kernel_size, and optionally stride, padding, ceil_mode, count_include_pad, divisor_override."""

    call = "avg_pool2d"
    phases = "AvgPool2d"
    arrays = ("x",)
    signature = AvgPool2dBackward.signature

    def small(self) -> tuple[Case, ...]:
        return (self.row(2, 3, 9, 10, kernel_size=3, stride=2, padding=1),)

    def rows(self) -> tuple[Case, ...]:
        return (
            self.row(32, 64, 112, 112, kernel_size=2, stride=2),
            self.row(8, 64, 112, 112, kernel_size=3, stride=2, padding=1),
            self.row(32, 256, 35, 35, kernel_size=3, stride=1, padding=1),
            self.row(32, 2048, 7, 7, kernel_size=7),
            self.row(1, 16, 8, 8, kernel_size=2, dtypes=TINY),
        )

    def more_rows(self) -> tuple[Case, ...]:
        return (
            self.row(8, 256, 7, 7, kernel_size=3, stride=1, padding=1),
            self.row(8, 256, 14, 14, kernel_size=3, stride=1, padding=1, count_include_pad=False),
            self.row(8, 256, 14, 14, kernel_size=2, stride=2),
            self.row(8, 64, 56, 56, kernel_size=5, stride=1, padding=2),
            self.row(8, 64, 56, 56, kernel_size=3, stride=3),
            self.row(8, 64, 57, 57, kernel_size=7, stride=3, padding=3),
            self.row(8, 64, 56, 56, kernel_size=3, stride=1, padding=1, input=LAST),
            self.row(8, 64, 56, 56, kernel_size=2, stride=2, input=LAST, output=LAST),
        )

    def families(self) -> dict[str, Family]:
        return {}

    def images(self) -> tuple[tuple[tuple[int, ...], Mapping[str, Any]], ...]:
        return (((64, 112, 112), {"kernel_size": 3, "stride": 2, "padding": 1}),)

    def attributes(self, case: Case) -> dict[str, Any]:
        a = super().attributes(case)
        return {**a, "stride": a["stride"] or a["kernel_size"]}

    def draw(self, rng: np.random.Generator, plane: tuple[int, int]) -> Drawn:
        return AvgPool2dBackward().draw(rng, plane)

    def problem(self, case: Case, dtype: np.dtype[Any], rng: np.random.Generator) -> Problem:
        inputs = {"x": normal(rng, case.shape, dtype)}
        return Problem(case, dtype, inputs, inputs["x"].nbytes + math.prod(self._pooled(case)) * dtype.itemsize)

    def phase_1(self, problem: Problem, outs: tuple[Array, ...]) -> list[Any]:
        a = self.attributes(problem.case)
        return [
            problem.inputs["x"], *([a[name]] * 2 for name in ("kernel_size", "stride", "padding")),
            a["ceil_mode"], a["count_include_pad"], a["divisor_override"] or 0, 0, *outs,
        ]  # fmt: skip

    def references(self, problem: Problem) -> tuple[Reference, ...]:
        """``out[oh, ow] = sum of x[window(oh, ow)] / divisor(oh, ow)``, kernel position by position."""
        a = self.attributes(problem.case)
        h, w = problem.case.shape[2:]
        x = problem.inputs["x"].astype(np.float64)
        size, divided = np.abs(x), divisors(h, w, a)
        exact, sum_abs = np.zeros(self._pooled(problem.case)), np.zeros(self._pooled(problem.case))
        for _, windows, places in positions(h, w, a):
            exact[windows] += x[places]
            sum_abs[windows] += size[places]
        return (Reference(exact / divided, sum_abs / np.abs(divided), a["kernel_size"] ** 2),)

    def outs(self, problem: Problem) -> tuple[Array, ...]:
        return (np.empty(self._pooled(problem.case), problem.dtype),)

    def _pooled(self, case: Case) -> tuple[int, ...]:
        a = self.attributes(case)
        *planes, h, w = case.shape
        return (*planes, count(h, a), count(w, a))


def divisors(height: int, width: int, a: Mapping[str, Any]) -> Array:
    """What the sum of each window (oh, ow) is divided by."""
    sizes: Array = np.outer(_lengths(height, a), _lengths(width, a))
    return np.full_like(sizes, a["divisor_override"]) if a["divisor_override"] else sizes


def _lengths(size: int, a: Mapping[str, Any]) -> Array:
    """How much of an axis each window has, with the padding or without."""
    p = a["padding"]
    first = np.arange(count(size, a)) * a["stride"] - p
    last = np.minimum(first + a["kernel_size"], size + p)
    lengths: Array = last - first if a["count_include_pad"] else np.minimum(last, size) - np.maximum(first, 0)
    return lengths
