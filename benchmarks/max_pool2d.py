"""MaxPool2dWithMaskBackward, and the forward that makes the mask."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

import aclnn_bw

from .check import Array, Reference
from .problem import Case, Contestant, Form, Gradient, Operator, Problem, normal
from .timing import Statement
from .windows import count, positions

_LANES = 16  # channels that share the words of a bit mask


class _MaxPooling(Operator):
    """Attributes: kernel_size, and optionally stride, padding, mask_layout."""

    signature: Mapping[str, Any] = {"kernel_size": 1, "stride": None, "padding": 0, "dilation": 1, "ceil_mode": False}

    def attributes(self, case: Case) -> dict[str, Any]:
        a = super().attributes(case)
        return {**a, "stride": a["stride"] or a["kernel_size"]}

    def keywords(self, case: Case) -> dict[str, Any]:
        layout = case.attributes.get("mask_layout", "bitmask")
        return {} if layout == "bitmask" else {"mask_layout": layout}

    def pairs(self, case: Case) -> list[Any]:
        """The attributes as the C call takes them."""
        *sizes, ceil_mode = self.attributes(case).values()
        return [*([size] * 2 for size in sizes), ceil_mode]

    def maxima(self, x: Array, case: Case) -> tuple[Array, Array]:
        """The first maximum of each window in row-major order: its value and its index ih*W + iw in the plane."""
        a = self.attributes(case)
        n, c, h, w = case.shape
        shape = (n, c, count(h, a), count(w, a))
        values = np.full(shape, -np.inf, x.dtype)
        indices = np.full(shape, -1, np.int64)
        plane = np.arange(h * w).reshape(h, w)
        for _, windows, places in positions(h, w, a):
            larger = x[places] > values[windows]
            np.copyto(values[windows], x[places], where=larger)
            np.copyto(indices[windows], plane[places], where=larger)
        return values, indices


class MaxPool2dWithMaskBackward(_MaxPooling, Gradient):
    """Attributes: kernel_size, and optionally stride, padding, mask_layout."""

    call = "max_pool2d_with_mask_backward"
    phases = "MaxPool2dWithMaskBackward"
    arrays = ("grad_output", "x", "mask")

    def problem(self, case: Case, dtype: np.dtype[Any], rng: np.random.Generator) -> Problem:
        a = self.attributes(case)
        image = normal(rng, case.shape, np.dtype(np.float32))
        _, indices = self.maxima(image, case)
        inputs = {
            "grad_output": normal(rng, indices.shape, dtype),
            "x": np.zeros(case.shape, dtype),
            "mask": aclnn_bw.indices_to_mask(indices, case.shape, *a.values(), **self.keywords(case)),
            "indices": indices,
            "image": image,  # for peers whose backward needs what their own forward made of it
        }
        # Of the mask, its words: gradInput is as large as x, which is not read.
        nbytes = inputs["grad_output"].nbytes + self._words(case, indices) + inputs["x"].nbytes
        return Problem(case, dtype, inputs, nbytes)

    def _repeated(self, name: str, array: Array, case: Case) -> Array:
        if name == "image":
            return array  # of the first images: few need it, and they can repeat it
        if name != "mask":
            return super()._repeated(name, array, case)
        a = self.attributes(case)
        mask = np.zeros(aclnn_bw.mask_shape(case.shape, *a.values()), np.int8)
        # Both layouts are dense from the container's first byte on, and end before the container does.
        n, c, windows = len(array), case.shape[1], count(case.shape[2], a) * count(case.shape[3], a)
        image = c * windows * 4 if self.keywords(case) else -(-c // _LANES) * array.shape[2] * array.shape[3]
        filled = mask.reshape(-1)[: case.shape[0] * image]
        filled[:] = np.resize(array.reshape(-1)[: n * image], filled.shape)
        return mask

    def _words(self, case: Case, indices: Array) -> int:
        """The bytes of the mask that say something."""
        if self.keywords(case):
            return indices.size * 4
        n, c, ho, wo = indices.shape
        return int(n * -(-c // _LANES) * self.attributes(case)["kernel_size"] ** 2 * ho * wo * 2)

    def phase_1(self, problem: Problem, outs: tuple[Array, ...]) -> list[Any]:
        inputs = problem.inputs
        return [inputs["grad_output"], inputs["x"], inputs["mask"], *self.pairs(problem.case), *outs]

    def terms(self, problem: Problem) -> int:
        a = self.attributes(problem.case)
        return int(-(-a["kernel_size"] // a["stride"])) ** 2

    def formula(self, grad_output: Array, problem: Problem) -> Array:
        """``gradInput[index(oh, ow)] += gradOutput[oh, ow]``, plane by plane."""
        n, c, h, w = problem.case.shape
        indices = problem.inputs["indices"].reshape(n * c, -1)
        planes = zip(indices, grad_output.reshape(n * c, -1), strict=True)
        sums = [np.bincount(index, values, minlength=h * w) for index, values in planes]
        return np.reshape(sums, problem.case.shape)


class MaxPool2dWithMask(_MaxPooling):
    """The forward. Its one call has no ``out``: both phases over bare arrays write into memory that was given."""

    call = "max_pool2d_with_mask"
    phases = "MaxPool2dWithMask"
    arrays = ("x",)

    def problem(self, case: Case, dtype: np.dtype[Any], rng: np.random.Generator) -> Problem:
        problem = Problem(case, dtype, {"x": normal(rng, case.shape, dtype)}, 0)
        # The mask is written whole, with its zeros.
        nbytes = sum(array.nbytes for array in (problem.inputs["x"], *self.outs(problem)))
        return Problem(case, dtype, problem.inputs, nbytes)

    def outs(self, problem: Problem) -> tuple[Array, ...]:
        a = self.attributes(problem.case)
        n, c, h, w = problem.case.shape
        out = np.empty((n, c, count(h, a), count(w, a)), problem.dtype)
        return out, np.empty(aclnn_bw.mask_shape(problem.case.shape, *a.values()), np.int8)

    def phase_1(self, problem: Problem, outs: tuple[Array, ...]) -> list[Any]:
        return [problem.inputs["x"], *self.pairs(problem.case), *outs]

    def ours(self, problem: Problem, outs: tuple[Array, ...] | None = None) -> Contestant:
        case, outs = problem.case, outs or self.outs(problem)
        names = {**problem.inputs, self.call: getattr(aclnn_bw, self.call)}
        fresh = Statement(f"{self.source(case)})", names) if case.form is Form.CALL else None

        def results(outs: tuple[Array, ...]) -> tuple[Array, ...]:
            out, mask = outs
            geometry = (case.shape, *self.attributes(case).values())
            return out, aclnn_bw.mask_to_indices(mask, *geometry, **self.keywords(case))

        return Contestant("ours", self._two_phase(problem, outs), outs, fresh, results)

    def references(self, problem: Problem) -> tuple[Reference, ...]:
        values, indices = self.maxima(problem.inputs["x"], problem.case)
        return Reference(values), Reference(indices)
