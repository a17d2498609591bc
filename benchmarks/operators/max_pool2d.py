"""The max pool and its gradient, with a mask and with indices."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

import aclnn_bw

from ..check import Array, Reference
from ..problem import LAST, REAL, TINY, Case, Contestant, Drawn, Family, Form, Gradient, Operator, Problem, normal, same
from ..timing import Statement
from ..windows import count, draw_pool, positions

_LAYOUTS = ("bitmask", "argmax")
_INDICES = ("index", ("int64", "int32"))
_LANES = 16  # channels that share the words of a bit mask


class _MaxPooling(Operator):
    """Attributes: kernel_size, and optionally stride, padding, mask_layout."""

    signature: Mapping[str, Any] = {
        "kernel_size": None, "stride": None, "padding": 0, "dilation": 1, "ceil_mode": False,
    }  # fmt: skip
    places_are: tuple[str, tuple[str, ...]] = ("mask_layout", _LAYOUTS)  # the attribute that says so, and its values

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

    def draw(self, rng: np.random.Generator, plane: tuple[int, int]) -> Drawn:
        a, (name, values) = draw_pool(rng, plane), self.places_are
        return Drawn(plane, {**a, name: str(rng.choice(values))}, math.prod(count(size, a) for size in plane))

    def pooled(self, case: Case) -> tuple[int, ...]:
        """Give the shape of the maxima."""
        n, c, h, w = case.shape
        a = self.attributes(case)
        return n, c, count(h, a), count(w, a)

    def maxima(self, x: Array, case: Case) -> tuple[Array, Array]:
        """The first maximum of each window in row-major order: its value and its index ih*W + iw in the plane."""
        a, shape = self.attributes(case), self.pooled(case)
        h, w = case.shape[2:]
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
    arrays: tuple[str, ...] = ("grad_output", "x", "mask")

    def both(self, *shape: int, dtypes: tuple[str, ...] = REAL, **attributes: Any) -> tuple[Case, ...]:
        """Give a row for each mask layout."""
        return tuple(self.row(*shape, dtypes=dtypes, **attributes, mask_layout=layout) for layout in _LAYOUTS)

    def small(self) -> tuple[Case, ...]:
        usual = self.row(2, 19, 9, 10, kernel_size=3, stride=2, padding=1)
        return usual, self.row(2, 19, 9, 10, kernel_size=2, mask_layout="argmax")

    def rows(self) -> tuple[Case, ...]:
        return (
            *self.both(32, 64, 112, 112, kernel_size=3, stride=2, padding=1),
            *self.both(8, 64, 224, 224, kernel_size=2, stride=2),
            *self.both(8, 192, 28, 28, kernel_size=3, stride=1, padding=1),
            *self.both(1, 16, 4, 4, kernel_size=2, dtypes=TINY),
        )

    def more_rows(self) -> tuple[Case, ...]:
        return (
            *self.both(8, 128, 35, 35, kernel_size=3, stride=2),
            *self.both(8, 256, 14, 14, kernel_size=2, stride=2),
            *self.both(8, 256, 7, 7, kernel_size=3, stride=1, padding=1),
            *self.both(8, 64, 28, 28, kernel_size=2, stride=1),
            *self.both(8, 64, 28, 28, kernel_size=5, stride=1, padding=2),
            *self.both(8, 64, 14, 14, kernel_size=9, stride=1, padding=4),
            *self.both(8, 64, 57, 57, kernel_size=3, stride=3),
            *self.both(8, 64, 56, 56, kernel_size=4, stride=2, padding=1),
            *self.both(8, 256, 7, 7, kernel_size=7),
            *self.both(1, 3, 256, 256, kernel_size=3, stride=2, padding=1),
            *self.both(8, 64, 55, 55, kernel_size=3, stride=2, ceil_mode=True),
            *self.both(8, 64, 56, 56, kernel_size=3, stride=2, padding=1, input=LAST),
        )

    def families(self) -> dict[str, Family]:
        titles = {"bitmask": "max pool k3 s2 p1, bit mask", "argmax": "max pool k3 s2 p1, argmax"}
        return {
            f"max {layout}": Family(
                title, self.call, 16, same(kernel_size=3, stride=2, padding=1, mask_layout=layout)
            )
            for layout, title in titles.items()
        }

    def images(self) -> tuple[tuple[tuple[int, ...], Mapping[str, Any]], ...]:
        attributes = {"kernel_size": 3, "stride": 2, "padding": 1}
        return ((64, 112, 112), attributes), ((64, 112, 112), {**attributes, "mask_layout": "argmax"})

    def problem(self, case: Case, dtype: np.dtype[Any], rng: np.random.Generator) -> Problem:
        image = normal(rng, case.shape, np.dtype(np.float32))
        _, indices = self.maxima(image, case)
        inputs = {
            "grad_output": normal(rng, indices.shape, dtype),
            "x": np.zeros(case.shape, dtype),
            "indices": indices,
            "image": image,  # for peers whose backward needs what their own forward made of it
        }
        return self._with_places(Problem(case, dtype, inputs, 0))

    def spread(self, problem: Problem, case: Case) -> Problem:
        # The masks of an image's channels share words, so that they cannot be repeated: they are made of the indices.
        plain = {name: problem.inputs[name] for name in ("grad_output", "x", "indices")}
        wide = super().spread(replace(problem, inputs=plain), case)
        return self._with_places(replace(wide, inputs={**wide.inputs, "image": problem.inputs["image"]}))

    def _with_places(self, problem: Problem) -> Problem:
        """Add what our call reads of the indices, and count the bytes."""
        case, inputs = problem.case, problem.inputs
        geometry = (case.shape, *self.attributes(case).values())
        mask = aclnn_bw.indices_to_mask(inputs["indices"], *geometry, **self.keywords(case))
        # Of the mask, its words: gradInput is as large as x, which is not read.
        nbytes = inputs["grad_output"].nbytes + self.bytes_of_places(case) + inputs["x"].nbytes
        return replace(problem, inputs={**inputs, "mask": mask}, nbytes=nbytes)

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

    def bytes_of_places(self, case: Case) -> int:
        # Of the mask, what says something.
        n, c, ho, wo = self.pooled(case)
        if self.keywords(case):
            return n * c * ho * wo * 4
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


class _Forward(_MaxPooling):
    """A forward: the maxima, and where they lie."""

    arrays = ("x",)
    places: str  # the one call's argument for where they lie

    def small(self) -> tuple[Case, ...]:
        return (self.row(2, 19, 9, 10, kernel_size=3, stride=2, padding=1),)

    def families(self) -> dict[str, Family]:
        return {}

    def images(self) -> tuple[tuple[tuple[int, ...], Mapping[str, Any]], ...]:
        return (((64, 112, 112), {"kernel_size": 3, "stride": 2, "padding": 1}),)

    def problem(self, case: Case, dtype: np.dtype[Any], rng: np.random.Generator) -> Problem:
        inputs = {"x": normal(rng, case.shape, dtype)}
        nbytes = inputs["x"].nbytes + math.prod(self.pooled(case)) * dtype.itemsize + self.bytes_of_places(case)
        return Problem(case, dtype, inputs, nbytes)

    def outs(self, problem: Problem) -> tuple[Array, ...]:
        shape, dtype = self.described(problem.case)
        return np.empty(self.pooled(problem.case), problem.dtype), np.empty(shape, dtype)

    def bytes_of_places(self, case: Case) -> int:
        # A mask is written whole, with its zeros.
        shape, dtype = self.described(case)
        return math.prod(shape) * dtype.itemsize

    def described(self, case: Case) -> tuple[tuple[int, ...], np.dtype[Any]]:
        """Give shape and dtype of what says where they lie."""
        raise NotImplementedError

    def indices(self, places: Array, case: Case) -> Array:
        """Give where they lie as int64 indices."""
        raise NotImplementedError

    def phase_1(self, problem: Problem, outs: tuple[Array, ...]) -> list[Any]:
        return [problem.inputs["x"], *self.pairs(problem.case), *outs]

    def ours(self, problem: Problem, outs: tuple[Array, ...] | None = None) -> Contestant:
        case, outs = problem.case, outs or self.outs(problem)
        call = self.source(case)
        names = {**problem.inputs, "out": outs[0], "places": outs[1], self.call: getattr(aclnn_bw, self.call)}
        into, fresh = Statement(f"{call}, out=out, {self.places}=places)", names), Statement(f"{call})", names)

        def results(outs: tuple[Array, ...]) -> tuple[Array, ...]:
            return outs[0], self.indices(outs[1], case)

        if case.form is Form.CALL:
            return Contestant("ours", into, outs, fresh, results)
        return Contestant("ours", self._two_phase(problem, outs), outs, None, results)

    def references(self, problem: Problem) -> tuple[Reference, ...]:
        values, indices = self.maxima(problem.inputs["x"], problem.case)
        return Reference(values), Reference(indices)


class MaxPool2dWithMask(_Forward):
    call = "max_pool2d_with_mask"
    phases = "MaxPool2dWithMask"
    places = "mask_out"

    def rows(self) -> tuple[Case, ...]:
        return (self.row(32, 64, 112, 112, kernel_size=3, stride=2, padding=1),)

    def more_rows(self) -> tuple[Case, ...]:
        return (
            self.row(8, 128, 35, 35, kernel_size=3, stride=2),
            self.row(8, 64, 56, 56, kernel_size=2, stride=2),
            self.row(8, 128, 28, 28, kernel_size=3, stride=1, padding=1),
            self.row(8, 64, 14, 14, kernel_size=5, stride=1, padding=2),
            self.row(8, 64, 57, 57, kernel_size=3, stride=3),
            self.row(8, 64, 112, 112, kernel_size=3, stride=2, padding=1, mask_layout="argmax"),
            self.row(8, 64, 56, 56, kernel_size=3, stride=2, padding=1, input=LAST),
        )

    def described(self, case: Case) -> tuple[tuple[int, ...], np.dtype[Any]]:
        return aclnn_bw.mask_shape(case.shape, *self.attributes(case).values()), np.dtype(np.int8)

    def indices(self, places: Array, case: Case) -> Array:
        geometry = (case.shape, *self.attributes(case).values())
        return aclnn_bw.mask_to_indices(places, *geometry, **self.keywords(case))


class MaxPool2dWithIndices(_Forward):
    """With int64 indices, as PyTorch's, or with the attribute ``index="int32"``."""

    call = "max_pool2d_with_indices"
    phases = "MaxPool2dWithIndices"
    places_are = _INDICES
    places = "indices"

    def rows(self) -> tuple[Case, ...]:
        return (
            self.row(32, 64, 112, 112, kernel_size=3, stride=2, padding=1),
            self.row(8, 64, 224, 224, kernel_size=2, stride=2),
            self.row(1, 16, 4, 4, kernel_size=2, dtypes=TINY),
        )

    def more_rows(self) -> tuple[Case, ...]:
        return (
            self.row(8, 128, 28, 28, kernel_size=3, stride=1, padding=1),
            self.row(32, 256, 14, 14, kernel_size=3, stride=2, padding=1),
            self.row(32, 256, 7, 7, kernel_size=3, stride=1, padding=1),
            self.row(8, 64, 14, 14, kernel_size=5, stride=1, padding=2),
            self.row(8, 64, 57, 57, kernel_size=3, stride=3),
            self.row(8, 64, 56, 56, kernel_size=3, stride=2, padding=1, input=LAST),
        )

    def described(self, case: Case) -> tuple[tuple[int, ...], np.dtype[Any]]:
        return self.pooled(case), np.dtype(case.attributes.get("index", "int64"))

    def indices(self, places: Array, case: Case) -> Array:
        return places.astype(np.int64, copy=False)


class MaxPool2dWithIndicesBackward(MaxPool2dWithMaskBackward):
    """Attributes: kernel_size, and optionally stride, padding, index: of int64, as PyTorch's, or "int32"."""

    call = "max_pool2d_with_indices_backward"
    phases = "MaxPool2dWithIndicesBackward"
    places_are = _INDICES
    arrays = ("grad_output", "x")

    def small(self) -> tuple[Case, ...]:
        return (self.row(2, 19, 9, 10, kernel_size=3, stride=2, padding=1),)

    def rows(self) -> tuple[Case, ...]:
        return (
            self.row(32, 64, 112, 112, kernel_size=3, stride=2, padding=1),
            self.row(8, 64, 224, 224, kernel_size=2, stride=2),
            self.row(8, 192, 28, 28, kernel_size=3, stride=1, padding=1),
            self.row(1, 16, 4, 4, kernel_size=2, dtypes=TINY),
        )

    def more_rows(self) -> tuple[Case, ...]:
        return (
            self.row(8, 256, 14, 14, kernel_size=2, stride=2),
            self.row(32, 256, 14, 14, kernel_size=3, stride=2, padding=1),
            self.row(32, 256, 7, 7, kernel_size=3, stride=1, padding=1),
            self.row(8, 64, 28, 28, kernel_size=5, stride=1, padding=2),
            self.row(8, 64, 57, 57, kernel_size=3, stride=3),
            self.row(8, 256, 7, 7, kernel_size=7),
            self.row(8, 64, 56, 56, kernel_size=3, stride=2, padding=1, input=LAST),
        )

    def families(self) -> dict[str, Family]:
        attributes = same(kernel_size=3, stride=2, padding=1)
        return {"max indices": Family("max pool k3 s2 p1, int64 indices", self.call, 12, attributes)}

    def images(self) -> tuple[tuple[tuple[int, ...], Mapping[str, Any]], ...]:
        return (((64, 112, 112), {"kernel_size": 3, "stride": 2, "padding": 1}),)

    def source(self, case: Case) -> str:
        values = map(repr, self.attributes(case).values())
        return f"{self.call}(grad_output, x, {', '.join(values)}, places"

    def _with_places(self, problem: Problem) -> Problem:
        inputs = problem.inputs
        places = inputs["indices"].astype(problem.case.attributes.get("index", "int64"), copy=False)
        nbytes = inputs["grad_output"].nbytes + places.nbytes + inputs["x"].nbytes
        return replace(problem, inputs={**inputs, "places": places}, nbytes=nbytes)

    def bytes_of_places(self, case: Case) -> int:
        return math.prod(self.pooled(case)) * int(np.dtype(case.attributes.get("index", "int64")).itemsize)

    def phase_1(self, problem: Problem, outs: tuple[Array, ...]) -> list[Any]:
        inputs = problem.inputs
        return [inputs["grad_output"], inputs["x"], inputs["places"], *self.pairs(problem.case), *outs]
