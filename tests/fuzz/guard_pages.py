"""Random calls of every operator with all memory between pages that end the process when they are touched.

    python tests/fuzz/guard_pages.py --seconds 120            # --help lists the options
    python tests/fuzz/guard_pages.py --seed 5 --case 1234     # one case again, as a failure's line says

Each case draws an operator, a geometry, dtypes, strides (gaps, any order of the axes, negative, zero in inputs), a
number of threads and a way to call: both phases, a stream, or one call. Every tensor and the workspace end at a
PROT_NONE page or begin behind one; inputs are read-only while the call runs, and `self`, where it gives its shape
alone, cannot even be read. The result is compared with the twin in reference.py: integers so small that every sum is
exact leave one right answer, to the bit. Nothing else may have been written: not between the elements of an output nor
on the side without a guard.

The cases run in a child process, whose end is reported with the case that it was at; the next child goes on behind it.
`--plans` also counts how often each algorithm of the plans was chosen (needs Cython and a compiler).
"""

import argparse
import contextlib
import ctypes
import faulthandler
import math
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
from typing import ClassVar

TESTS = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(TESTS))
if any((TESTS.parent / "aclnn_bw").glob("_native.*so")):  # built in place: no other installation is meant
    sys.path.insert(0, str(TESTS.parent))

import ml_dtypes  # noqa: E402
import numpy as np  # noqa: E402
import reference  # noqa: E402

import aclnn_bw  # noqa: E402

REAL = [np.dtype(dtype) for dtype in (np.float32, np.float64, np.float16, ml_dtypes.bfloat16)]
COMPLEX = [np.dtype(np.complex64), np.dtype(np.complex128)]
BYTE = np.dtype(np.int8)
PAGE = mmap.PAGESIZE
ARENA = 2**26  # bytes of one tensor, at most
MARGIN = 512  # bytes that are watched on the side without a guard
READ_FILL, WRITE_FILL = 0xFF, 0xA5  # NaN in every dtype; ordinary numbers
LARGEST_CASE = 600_000  # elements of a tensor, but for the few large cases
FOUND = 9  # exit status of a child that came to its end, but not without failures


# ---- memory ---------------------------------------------------------------------------------------------------------

LIBC = ctypes.CDLL(None, use_errno=True)


class Arena:
    """Memory between two guard pages."""

    def __init__(self, size=ARENA):
        self.size = size
        self.region = mmap.mmap(-1, size + 2 * PAGE)
        self.address = ctypes.addressof(ctypes.c_char.from_buffer(self.region)) + PAGE
        self.bytes = np.frombuffer(self.region, np.uint8)[PAGE : PAGE + size]
        self.protect(-PAGE, PAGE, 0)
        self.protect(size, PAGE, 0)

    def protect(self, offset, size, protection):
        done = LIBC.mprotect(ctypes.c_void_p(self.address + offset), ctypes.c_size_t(size), protection)
        assert done == 0, os.strerror(ctypes.get_errno())

    def read_only(self, wanted):
        self.protect(0, self.size, mmap.PROT_READ | (0 if wanted else mmap.PROT_WRITE))

    def place(self, size, at_end, fill, offset=0):
        """`size` bytes at one end, or `offset` bytes away from it; they and those beside them are filled."""
        begin = self.size - size - offset if at_end else offset
        self.watched = max(begin - MARGIN, 0), min(begin + size + MARGIN, self.size)
        self.bytes[slice(*self.watched)] = fill
        self.fill = fill
        return begin

    def changed(self, inside):
        """Whether a watched byte changed that is not `inside`: a mask of the bytes from the first watched one on."""
        watched = self.bytes[slice(*self.watched)]
        return bool(np.any((watched != self.fill) & ~inside))


class Layout:
    """Strides of a tensor, in elements, and the elements from its first to its last address."""

    def __init__(self, rng, shape, written, channel_axis, order):
        axes = list(range(len(shape)))
        if order == "last" or (order == "any" and rng.random() < 0.3):
            axes.append(axes.pop(channel_axis))
        elif order == "any" and rng.random() < 0.1:
            axes.insert(0, axes.pop(channel_axis))
        elif order == "any" and rng.random() < 0.15:
            rng.shuffle(axes)
        gaps = rng.random() < 0.35
        reach = int(rng.choice([1, 1, 1, 1, 2, 3])) if gaps else 1
        strides = [0] * len(shape)
        for axis in reversed(axes):
            strides[axis] = reach
            if not written and shape[axis] > 1 and rng.random() < 0.02:
                strides[axis] = 0
            else:
                reach *= shape[axis]
            if gaps and rng.random() < 0.4:
                reach += int(rng.integers(1, 6))
        if rng.random() < 0.25:
            strides = [-stride if rng.random() < 0.5 else stride for stride in strides]
        # The stride of an axis of one says nothing.
        self.strides = [
            int(rng.choice([stride, 0, -1, 2**40])) if n == 1 and rng.random() < 0.2 else stride
            for n, stride in zip(shape, strides, strict=True)
        ]
        self.shape = shape
        ends = [(n - 1) * stride for n, stride in zip(shape, strides, strict=True)]
        self.first = -sum(end for end in ends if end < 0)
        self.extent = sum(abs(end) for end in ends) + 1

    def make_dense(self):
        self.strides = [math.prod(self.shape[axis + 1 :]) for axis in range(len(self.shape))]
        self.first, self.extent = 0, math.prod(self.shape)

    def __str__(self):
        return f"{'x'.join(map(str, self.shape))}@{','.join(map(str, self.strides))}"


class Placed:
    """A tensor of some layout at one end of an arena."""

    def __init__(self, arena, layout, dtype, at_end, written, offset=0):
        size = layout.extent * dtype.itemsize
        begin = arena.place(size, at_end, WRITE_FILL if written else READ_FILL, offset)
        self.arena, self.layout, self.dtype, self.begin = arena, layout, dtype, begin
        self.array = self.view(arena.bytes, begin)

    def view(self, memory, begin):
        size = self.dtype.itemsize
        strides = [stride * size for stride in self.layout.strides]
        return np.ndarray(self.layout.shape, self.dtype, memory, begin + self.layout.first * size, strides)

    def written_outside(self):
        begin, end = self.arena.watched
        inside = np.zeros(end - begin, bool)
        size = self.dtype.itemsize
        strides = [stride * size for stride in self.layout.strides]
        first = self.begin - begin + self.layout.first * size
        for i in range(size):
            np.ndarray(self.layout.shape, bool, inside, first + i, strides)[...] = True
        return self.arena.changed(inside)


# ---- drawing --------------------------------------------------------------------------------------------------------

EDGES = (15, 16, 17, 31, 32, 33, 47, 48, 49, 63, 64, 65, 127, 128, 129, 255, 256, 257)


def one_of(rng, *values):
    return values[rng.integers(len(values))]


def length(rng, most=130):
    """Mostly short; often next to a multiple of a vector."""
    draw = rng.random()
    if draw < 0.45:
        value = rng.integers(1, 10)
    elif draw < 0.65:
        value = one_of(rng, *EDGES)
    elif draw < 0.9:
        value = rng.integers(10, 50)
    else:
        value = rng.integers(50, 200)
    return int(min(value, most))


def channels(rng):
    return int(one_of(rng, 1, 1, 2, 3, 3, 4, 5, 7, 8, 12, 15, 16, 17, 24, 31, 32, 33, 40, 64, 65))


def image(rng):
    """N, C, H, W, or C, H, W."""
    shape = [int(one_of(rng, 1, 1, 2, 3)), channels(rng), length(rng), length(rng, 300)]
    if rng.random() < 0.15:  # enough for several threads
        shape[0], shape[1] = int(rng.integers(2, 7)), int(rng.integers(8, 70))
    if rng.random() < 0.2:
        shape[2] = shape[3]
    most = int(one_of(rng, *[LARGEST_CASE // 40] * 15, *[LARGEST_CASE // 4] * 4, LARGEST_CASE))
    while math.prod(shape) > most:
        axis = int(np.argmax(shape))
        shape[axis] = max(1, shape[axis] // 2)
    return tuple(shape[1:] if rng.random() < 0.15 else shape)


def integers(rng, shape, dtype):
    values = rng.integers(-8, 9, shape).astype(np.float64)
    if dtype.kind == "c":
        values = values + 1j * rng.integers(-8, 9, shape)
    return values.astype(dtype)


class Case:
    """What one call is made of. A subclass draws its geometry, and knows its twin and its arguments."""

    large = False
    product = "Host"
    mask_layout = "bitmask"
    dtypes = REAL
    channel_axes: ClassVar[dict] = {}  # of tensors that have them elsewhere than at -3

    def __init__(self, rng):
        self.rng = rng
        self.dtype = one_of(rng, *self.dtypes)
        self.threads = int(rng.integers(1, 4))
        self.draw(rng)
        self.way = one_of(rng, "two-phase", "two-phase", "two-phase", "stream", "one-call", "one-call")
        if self.product != "Host" and self.way == "one-call":
            self.way = "two-phase"
        self.layouts, self.at_end = {}, {}
        order = one_of(rng, "rows", "rows", "any", "any", "any", "last")
        for name, (shape, dtype, role) in self.tensors().items():
            layout = Layout(rng, tuple(map(int, shape)), role == "written", self.channel_axes.get(name, -3), order)
            if dtype == BYTE or layout.extent * dtype.itemsize > ARENA - 16 or (self.large and rng.random() < 0.6):
                layout.make_dense()
            self.layouts[name] = layout
            self.at_end[name] = bool(rng.random() < 0.7)
        self.workspace_at_end = bool(rng.random() < 0.7)
        self.offset = int(rng.integers(1, 4)) if rng.random() < 0.3 else 0  # bytes, of a mask and the workspace

    def __str__(self):
        layouts = " ".join(
            f"{name}={layout}{'|' if self.at_end[name] else ''}" for name, layout in self.layouts.items()
        )
        numbers = " ".join(f"{name}={value}" for name, value in self.numbers().items())
        return (
            f"{type(self).__name__} {self.dtype} {self.product} {self.mask_layout} {self.way} threads={self.threads}"
            f" {numbers} {layouts}{f' offset={self.offset}' * bool(self.offset)}"
        )

    def numbers(self):
        """The attributes, by name."""
        raise NotImplementedError

    def tensors(self):
        """{name: (shape, dtype, role)} for the tensors with data, inputs first; role is "read" or "written"."""
        raise NotImplementedError

    def values(self, name, shape, dtype):
        return integers(self.rng, shape, dtype)

    def refused(self):
        """Whether phase 2 must refuse a value of the mask."""
        return False


class AvgPool2dBackward(Case):
    def draw(self, rng):
        kind = one_of(rng, "any", "any", "walk", "walk", "walk", "spread", "spread", "spread", "double", "double",
                      "fill", "banded", "banded", "tall")  # fmt: skip
        shape = list(image(rng))
        if kind == "tall" and rng.random() > 0.2:
            kind = "any"
        if kind == "any":
            kernel = [int(rng.integers(1, 8)) for _ in range(2)]
            stride = [int(rng.integers(1, 6)) for _ in range(2)]
        elif kind == "walk":
            kernel, stride = [int(one_of(rng, 1, 2, 3, 3, 4, 5, 5, 7, 16, 17)) for _ in range(2)], [1, 1]
            if rng.random() < 0.5:
                kernel[1] = kernel[0]
        elif kind == "spread":
            stride = [int(rng.integers(1, 10)), int(rng.integers(2, 4))]
            kernel = [int(rng.integers(1, 2 * s + 1)) for s in stride]
            if rng.random() < 0.5:
                kernel = stride = [stride[1], stride[1]] if rng.random() < 0.5 else stride
            elif rng.random() < 0.5:
                kernel, stride = [3, 3], [2, 2]
        elif kind == "double":
            kernel = stride = [2, 2]
        elif kind == "fill":
            kernel = shape[-2:]
            stride = [int(rng.integers(1, 4)) for _ in range(2)]
        elif kind == "banded":
            stride = [int(rng.integers(1, 13)), int(rng.integers(1, 13))]
            kernel = [int(rng.integers(1, 30)) for _ in range(2)]
        else:
            self.dtype = np.dtype(np.float64)  # the fewest rows that do not fit the scratch
            shape = [*([1] if len(shape) == 4 else []), 1, int(rng.integers(2500, 3500)), int(rng.integers(32, 41))]
            kernel = [shape[-2] - int(rng.integers(0, 6)), int(rng.integers(2, 5))]
            stride = [int(one_of(rng, 1, 1, 2, 3)), int(one_of(rng, 1, 2))]
        pad = [int(rng.integers(0, k // 2 + 1)) if rng.random() < 0.6 and kind not in ("fill", "double") else 0
               for k in kernel]  # fmt: skip
        if kind == "tall":  # takes a row of windows for each row of the image
            pad[0] = int(rng.integers(0, 4))
        ceil = bool(rng.random() < 0.3)
        for i in range(2):  # a window must fit
            if shape[i - 2] + 2 * pad[i] < kernel[i]:
                shape[i - 2] = kernel[i] - 2 * pad[i] if pad[i] * 2 < kernel[i] else 1
        self.shape = tuple(shape)
        self.geometry = self.shape, tuple(kernel), tuple(stride), tuple(pad), ceil
        self.include = bool(rng.random() < 0.6)
        self.divisor = one_of(rng, None, None, None, 1, 3, -7, 16)
        self.cube = 0
        if self.dtype == np.float32 and rng.random() < 0.2:
            self.product, self.cube = "Ascend910B", int(one_of(rng, 2, 3))

    def numbers(self):
        _, kernel, stride, pad, ceil = self.geometry
        return {"kernel": kernel, "stride": stride, "padding": pad, "ceil": ceil, "include": self.include,
                "divisor": self.divisor, "cube": self.cube}  # fmt: skip

    def tensors(self):
        return {"gradOutput": (reference.pooled_shape(*self.geometry), self.dtype, "read"),
                "gradInput": (self.shape, self.dtype, "written")}  # fmt: skip

    def values(self, name, shape, dtype):
        return self.rng.standard_normal(shape).astype(dtype)

    def check(self, inputs, outputs):
        import helpers

        pool = helpers.Pool(*self.geometry, self.include, self.divisor)
        mode = helpers.Mode(self.product, self.dtype.name, self.cube)
        result = outputs["gradInput"]
        helpers.assert_is_avg_pool2d_backward(result, inputs["gradOutput"], pool, mode)
        if self.product == "Host":
            with aclnn_bw.num_threads(1):
                same = aclnn_bw.avg_pool2d_backward(inputs["gradOutput"], self.shape, *self.one_call_numbers())
            helpers.assert_same_bytes(result, same)

    def one_call_numbers(self):
        return *self.geometry[1:], self.include, self.divisor

    def phase1(self, t):
        _, kernel, stride, pad, ceil = self.geometry
        return (t["gradOutput"], unreadable(self.shape, self.dtype), kernel, stride, pad, ceil, self.include,
                self.divisor or 0, self.cube, t["gradInput"])  # fmt: skip

    def one_call(self, t):
        stand_in = unreadable(self.shape, self.dtype)
        aclnn_bw.avg_pool2d_backward(t["gradOutput"], stand_in, *self.one_call_numbers(), out=t["gradInput"])


class MaxPool(Case):
    def draw(self, rng):
        kind = one_of(rng, "any", "known", "known", "known", "small", "phases", "scatter", "wide")
        shape = list(image(rng))
        if kind == "any":
            kernel = [int(rng.integers(1, 6)) for _ in range(2)]
            stride = [int(rng.integers(1, 5)) for _ in range(2)]
            pad = [int(rng.integers(0, k // 2 + 1)) for k in kernel]
        elif kind == "known":
            kernel, stride, pad = ([int(n)] * 2 for n in one_of(
                rng, (3, 2, 0), (3, 2, 1), (2, 2, 0), (2, 2, 1), (3, 1, 0), (3, 1, 1), (3, 1, 1)))
            if rng.random() < 0.25:
                kernel[0], stride[0] = int(rng.integers(1, 5)), int(rng.integers(1, 4))
                pad[0] = int(rng.integers(0, kernel[0] // 2 + 1))
        elif kind == "small":
            shape[-2:] = [int(rng.integers(1, 11)), int(rng.integers(1, 11))]
            kernel = [int(rng.integers(1, 4)) for _ in range(2)]
            stride = [int(rng.integers(1, 4)) for _ in range(2)]
            pad = [int(rng.integers(0, k // 2 + 1)) for k in kernel]
        elif kind == "phases":
            kernel = [int(rng.integers(1, 10)) for _ in range(2)]
            stride = [int(rng.integers(1, 4)), int(rng.integers(1, 12))]
            pad = [int(rng.integers(0, k // 2 + 1)) for k in kernel]
        elif kind == "scatter":
            kernel = [int(rng.integers(3, 14)) for _ in range(2)]
            stride = [int(rng.integers(1, 9)) for _ in range(2)]
            pad = [int(rng.integers(0, k // 2 + 1)) for k in kernel]
        else:
            shape[:-2] = [2] * (len(shape) - 2)
            shape[-2:] = [int(rng.integers(1, 12)), int(rng.integers(3000, 20000))]
            kernel = [int(rng.integers(1, 4)), int(one_of(rng, 1, 2, 3, 3, 40))]
            stride = [int(rng.integers(1, 3)) for _ in range(2)]
            pad = [0, int(rng.integers(0, kernel[1] // 2 + 1))]
        for i in range(2):
            if shape[i - 2] + 2 * pad[i] < kernel[i]:
                shape[i - 2] = kernel[i] - 2 * pad[i] if pad[i] * 2 < kernel[i] else 1
        self.pool = tuple(kernel), tuple(stride), tuple(pad), bool(rng.random() < 0.3)
        self.shape = tuple(shape)
        while math.prod(reference.mask_shape(self.shape, *self.pool)) > ARENA // 4:
            axis = -3 if shape[-3] > 1 else 0 if len(shape) == 4 and shape[0] > 1 else int(np.argmax(shape))
            shape[axis] = max(shape[axis] // 2, 1)
            self.shape = tuple(shape)
        self.mask_layout = one_of(rng, "bitmask", "argmax")
        if self.dtype == np.float32 and rng.random() < 0.15:
            self.product = "Ascend910"

    def numbers(self):
        return dict(zip(("kernel", "stride", "padding", "ceil"), self.pool, strict=True))

    def lists(self):
        kernel, stride, pad, ceil = self.pool
        return kernel, stride, pad, [1], ceil

    @property
    def argmax(self):
        return self.mask_layout == "argmax" and self.pool[0] != (1, 1)

    def rounded(self, values):
        return reference.round_float16(values) if self.product == "Ascend910" else values.astype(np.float64)


class MaxPool2dWithMaskBackward(MaxPool):
    def tensors(self):
        return {"gradOutput": (reference.pooled_shape(self.shape, *self.pool), self.dtype, "read"),
                "indices": (reference.mask_shape(self.shape, *self.pool), BYTE, "read"),
                "gradInput": (self.shape, self.dtype, "written")}  # fmt: skip

    def values(self, name, shape, dtype):
        if name == "gradOutput":
            return super().values(name, shape, dtype)
        out = reference.pooled_shape(self.shape, *self.pool)
        rng = self.rng
        _, indices = reference.max_pool2d(rng.integers(0, 50, self.shape).astype(np.float64), *self.pool)
        garbage = rng.integers(-128, 128, shape, np.int8) if rng.random() < 0.5 else np.zeros(shape, np.int8)
        self.bad = False
        if self.argmax:
            if rng.random() < 0.15:
                place = tuple(int(rng.integers(n)) for n in out)
                plane = self.shape[-2] * self.shape[-1]
                indices[place] = one_of(rng, -1, plane, 2**31 - 1, -(2**31), plane + 1, int(rng.integers(plane)))
            self.hits = reference.hits_of_indices(indices, self.shape, *self.pool)
            self.bad = not bool(np.all(self.hits.any(axis=-3)))
            front = indices.astype("<i4").reshape(-1).view(np.int8)
        else:
            positions = (*out[:-2], math.prod(self.pool[0]), *out[-2:])
            self.hits = reference.hits_of_indices(indices, self.shape, *self.pool)
            if rng.random() < 0.4:
                self.hits = rng.random(positions) < rng.choice([0.0, 0.1, 0.6, 1.0])
            mask = reference.bitmask(self.hits)
            ignored = ~reference.bitmask(np.ones(positions, bool))
            return mask | (garbage & ignored)
        garbage.reshape(-1)[: front.size] = front
        return garbage

    def refused(self):
        return self.bad

    def check(self, inputs, outputs):
        if self.bad:
            return
        wanted = reference.max_pool2d_backward(self.rounded(inputs["gradOutput"]), self.hits, self.shape, *self.pool)
        assert_same(outputs["gradInput"], self.rounded(wanted).astype(self.dtype))

    def phase1(self, t):
        return t["gradOutput"], unreadable(self.shape, self.dtype), t["indices"], *self.lists(), t["gradInput"]

    def one_call(self, t):
        kernel, stride, pad, ceil = self.pool
        aclnn_bw.max_pool2d_with_mask_backward(
            t["gradOutput"], unreadable(self.shape, self.dtype), t["indices"], kernel, stride, pad, 1, ceil,
            mask_layout=self.mask_layout, out=t["gradInput"])  # fmt: skip


class MaxPool2dWithMask(MaxPool):
    def tensors(self):
        return {"self": (self.shape, self.dtype, "read"),
                "out": (reference.pooled_shape(self.shape, *self.pool), self.dtype, "written"),
                "indices": (reference.mask_shape(self.shape, *self.pool), BYTE, "written")}  # fmt: skip

    def values(self, name, shape, dtype):
        values = integers(self.rng, shape, dtype)
        if self.rng.random() < 0.3:
            special = self.rng.choice([np.nan, np.inf, -np.inf], shape).astype(dtype)
            values = np.where(self.rng.random(shape) < 0.1, special, values)
        return values

    def check(self, inputs, outputs):
        maxima, indices = reference.max_pool2d(self.rounded(inputs["self"]), *self.pool)
        if self.argmax:
            mask = reference.argmax_mask(indices, self.pool[0])
        else:
            mask = reference.bitmask(reference.hits_of_indices(indices, self.shape, *self.pool))
        assert_same(outputs["out"], maxima.astype(self.dtype))
        assert_same(outputs["indices"], mask)

    def phase1(self, t):
        return t["self"], *self.lists(), t["out"], t["indices"]

    def one_call(self, t):
        kernel, stride, pad, ceil = self.pool
        made = aclnn_bw.max_pool2d_with_mask(t["self"], kernel, stride, pad, 1, ceil, mask_layout=self.mask_layout)
        t["out"][...], t["indices"][...] = made


class Im2colBackward(Case):
    channel_axes: ClassVar[dict] = {"gradOutput": -2}

    def draw(self, rng):
        kind = one_of(rng, "any", "gather", "gather", "gather", "interleave", "interleave", "scatter", "wide", "small",
                      "large")  # fmt: skip
        shape = list(image(rng))
        self.large = kind == "large" and rng.random() < 0.1
        interleaves = self.large and rng.random() < 0.3
        dilation = [int(one_of(rng, 1, 1, 1, 2, 3)) for _ in range(2)]
        stride = [int(one_of(rng, 1, 1, 2, 3, 4)) for _ in range(2)]
        kernel = [int(rng.integers(1, 6)) for _ in range(2)]
        if kind == "gather":
            kernel = [int(one_of(rng, 1, 2, 3, 3, 3, 4, 5, 7))] * 2
            stride = [int(one_of(rng, 1, 1, 1, 2, 3, 5, 16, 17))] * 2
            dilation = [int(one_of(rng, 1, 1, 2, 3))] * 2
        elif kind == "interleave" or interleaves:
            kernel = [int(one_of(rng, 1, 2, 3, 5)), int(one_of(rng, 2, 2, 3, 4, 7, 8, 16))]
            stride, dilation = kernel[:], [1, 1]
        elif kind == "scatter":
            kernel = [int(one_of(rng, 1, 3, 65, 70)), int(rng.integers(1, 5))]
            stride = [int(rng.integers(1, 5)), int(rng.integers(15, 25))]
        elif kind == "wide":
            kernel = [int(rng.integers(1, 3)), int(rng.integers(5, 20))]
            stride[1] = int(rng.integers(1, 17))
        elif kind == "small":
            shape[-2:] = [int(rng.integers(1, 14)), int(rng.integers(1, 14))]
        pad = [int(one_of(rng, 0, 0, 1, k * d // 2, int(rng.integers(0, k * d + 3))))
               for k, d in zip(kernel, dilation, strict=True)]  # fmt: skip
        if kind == "interleave":
            pad = [int(one_of(rng, 0, 0, 0, 1)), 0]
        for i in range(0 if self.large else 2):
            reach = dilation[i] * (kernel[i] - 1) + 1
            if rng.random() < 0.02:  # one window, nearly all of it padding
                pad[i], stride[i] = one_of(rng, (10**4, 3 * 10**4), (2**31, 2**33), (2**40, 2**42))
            elif rng.random() < 0.02:  # the image lies at one kernel position
                kernel[i], dilation[i] = 3, one_of(rng, 10**4, 2**31, 2**40, 2**61)
                pad[i], reach = dilation[i], 2 * dilation[i] + 1
            shape[i - 2] = max(shape[i - 2], reach - 2 * pad[i], 1)
        if self.large:
            shape[:-2] = [1] * (len(shape) - 3) + [int(rng.integers(3, 9))]
            shape[-2:] = [int(rng.integers(150, 260)), int(rng.integers(200, 400))]
            pad = [0, 0]
            if not interleaves:
                kernel, dilation, pad, stride = [3, 3], [1, 1], [1, 1], [1, 1]
            self.dtype = np.dtype(np.float64)
        self.columns = tuple(kernel), tuple(dilation), tuple(pad), tuple(stride)
        self.shape = tuple(shape)
        limit = ARENA // 8 - 512 if self.large else 4 * LARGEST_CASE
        while math.prod(self.column_shape()) > limit or math.prod(self.shape) > limit:
            axis = -3 if shape[-3] > 1 else 0 if len(shape) == 4 and shape[0] > 1 else int(np.argmax(shape))
            shape[axis] = max(shape[axis] // 2, 1)
            self.shape = tuple(shape)
            if min(self.windows()) < 1 or math.prod(shape) == 1:  # too many windows, or none
                self.columns, self.shape = ((1, 1), (1, 1), (0, 0), (1, 1)), (1, 1, 7)
        self.out_dtype = one_of(rng, *REAL) if rng.random() < 0.15 and not self.large else self.dtype

    def windows(self):
        kernel, dilation, pad, stride = self.columns
        return reference.pooled_shape(self.shape[-2:], kernel, stride, pad, False, dilation)

    def column_shape(self):
        *batch, c, _, _ = self.shape
        return (*batch, c * math.prod(self.columns[0]), math.prod(self.windows()))

    def numbers(self):
        return dict(zip(("kernel", "dilation", "padding", "stride"), self.columns, strict=True))

    def tensors(self):
        return {"gradOutput": (self.column_shape(), self.dtype, "read"),
                "out": (self.shape, self.out_dtype, "written")}  # fmt: skip

    def check(self, inputs, outputs):
        wanted = reference.im2col_backward(inputs["gradOutput"], self.shape[-2:], *self.columns).astype(self.dtype)
        assert_same(outputs["out"], wanted.astype(np.float64).astype(self.out_dtype))

    def phase1(self, t):
        return t["gradOutput"], self.shape[-2:], *self.columns, t["out"]

    def one_call(self, t):
        aclnn_bw.im2col_backward(t["gradOutput"], self.shape[-2:], *self.columns, out=t["out"])


class UpsampleNearestExact1dBackward(Case):
    channel_axes: ClassVar[dict] = {"gradOutput": -2, "out": -2}

    def draw(self, rng):
        kind = one_of(rng, "ratio", "ratio", "any", "any", "same", "scales", "scales", "shrink", "grow", "long",
                      "huge", "extreme")  # fmt: skip
        planes = int(one_of(rng, 1, 1, 2, 3)), channels(rng)
        targets = length(rng, 2000)
        self.scales = 0.0
        if kind == "ratio":
            p, q = one_of(rng, (1, 2), (2, 1), (3, 2), (2, 3), (1, 3), (3, 1), (4, 1), (1, 4), (5, 8), (8, 5), (1, 16),
                          (16, 1), (1, 7), (7, 9), (24, 25))  # fmt: skip
            n = length(rng, 400)
            targets, sources = n * p, n * q
        elif kind == "same":
            sources = targets
        elif kind == "shrink":
            sources = min(targets * int(rng.integers(2, 60)) + int(rng.integers(0, 5)), 50000)
        elif kind == "grow":
            sources = int(rng.integers(1, 130))
            targets = sources * int(rng.integers(20, 140)) + int(rng.integers(0, 5))
            if rng.random() < 0.3:
                self.scales = sources / targets * rng.uniform(0.6, 1.1)
        elif kind == "long":
            targets = int(rng.integers(3000, 30000))
            sources = int(targets * rng.choice([0.3, 0.9, 1.1, 1.9, 2.7, 5.1]))
            planes = planes[0], min(planes[1], 4 if rng.random() < 0.8 else 17)
        elif kind == "huge":
            targets = int(rng.integers(65537, 150000)) if rng.random() < 0.3 else targets
            sources = int(targets * rng.choice([0.4, 0.99, 1.3, 2.3])) + 1
            planes = 1, int(one_of(rng, 1, 2, 3))
        else:
            sources = length(rng, 2000) if rng.random() < 0.7 else int(rng.integers(1, 3000))
        if kind == "scales":
            exact, near, far = sources / targets, rng.uniform(0.9, 1.1), rng.uniform(0.05, 8)
            self.scales = float(one_of(rng, 2.0, 0.5, 1.0, exact, near, far))
        elif kind == "extreme":
            self.scales = float(one_of(rng, 5e-324, 1e-40, 1e300, 1e-30, 1e30, 1e10, 1e-10, 3.0))
        while planes[0] * planes[1] * max(targets, sources) > 3 * LARGEST_CASE:
            planes = (1, max(1, planes[1] // 2)) if planes[1] > 1 else (1, 1)
            if planes == (1, 1):
                break
        self.shape = (*planes, targets)
        self.sources = sources

    def numbers(self):
        return {"scales": self.scales}

    def tensors(self):
        return {"gradOutput": ((*self.shape[:2], self.sources), self.dtype, "read"),
                "out": (self.shape, self.dtype, "written")}  # fmt: skip

    def check(self, inputs, outputs):
        wanted = reference.upsample_nearest_exact1d_backward_quick(inputs["gradOutput"], self.shape, self.scales)
        assert_same(outputs["out"], wanted.astype(self.dtype))

    def phase1(self, t):
        return t["gradOutput"], [self.sources], self.shape, self.scales, t["out"]

    def one_call(self, t):
        aclnn_bw.upsample_nearest_exact1d_backward(
            t["gradOutput"], self.sources, self.shape, self.scales or None, out=t["out"])


class ReplicationPad2dBackward(Case):
    dtypes = REAL + COMPLEX

    def draw(self, rng):
        kind = one_of(rng, "any", "small", "small", "zero", "crop", "wide", "tall", "large")
        shape = list(image(rng))
        self.large = kind == "large" and rng.random() < 0.1
        pads = [int(rng.integers(0, 9)) for _ in range(4)]
        if kind == "small":
            pads = [int(rng.integers(0, 4)) for _ in range(4)]
        elif kind == "zero":
            pads = [0 if rng.random() < 0.7 else int(rng.integers(1, 4)) for _ in range(4)]
        elif kind == "crop":
            pads = [int(rng.integers(-4, 5)) for _ in range(4)]
        elif kind == "wide":
            pads = [int(one_of(rng, 0, 1, 40, 300)) for _ in range(4)]
        elif kind == "tall":
            shape[:-2] = [1] * (len(shape) - 3) + [int(rng.integers(1, 20))]
            shape[-2:] = [int(rng.integers(1, 30)), int(rng.integers(200, 4000))]
        if self.large:
            self.dtype = one_of(rng, *self.dtypes[4:], self.dtypes[1])
            shape[:-2] = [1] * (len(shape) - 3) + [int(rng.integers(1, 5))]
            shape[-2:] = [int(rng.integers(400, 700)), 0]
            shape[-1] = (2**25 + 2**20) // 2 // self.dtype.itemsize // (shape[-3] * shape[-2])
        for i, axis in ((0, -1), (2, -2)):  # something must be left, and not only of another place
            if shape[axis] + pads[i] + pads[i + 1] < 1:
                pads[i] = max(pads[i], 1 - shape[axis] - pads[i + 1])
        if kind == "crop" and rng.random() < 0.05:
            pads[0], pads[1] = pads[0] + 1000, pads[1] - 1000
        self.pads = tuple(pads)
        self.shape = tuple(shape)
        while not self.large and math.prod(self.padded()) > 2 * LARGEST_CASE:
            axis = -3 if shape[-3] > 1 else 0 if len(shape) == 4 and shape[0] > 1 else int(np.argmax(shape))
            shape[axis] = max(shape[axis] // 2, 1)
            self.shape = tuple(shape)
            if math.prod(self.shape) == 1:
                break

    def padded(self):
        left, right, top, bottom = self.pads
        return (*self.shape[:-2], max(self.shape[-2] + top + bottom, 1), max(self.shape[-1] + left + right, 1))

    def numbers(self):
        return {"padding": self.pads}

    def tensors(self):
        return {"gradOutput": (self.padded(), self.dtype, "read"), "gradInput": (self.shape, self.dtype, "written")}

    def check(self, inputs, outputs):
        grad = inputs["gradOutput"]
        wide = np.complex128 if self.dtype.kind == "c" else np.float64
        wanted = reference.replication_pad2d_backward_quick(grad, self.shape, self.pads, dtype=wide)
        assert_same(outputs["gradInput"], wanted.astype(self.dtype))

    def phase1(self, t):
        return t["gradOutput"], unreadable(self.shape, self.dtype), self.pads, t["gradInput"]

    def one_call(self, t):
        stand_in = unreadable(self.shape, self.dtype)
        aclnn_bw.replication_pad2d_backward(t["gradOutput"], stand_in, self.pads, out=t["gradInput"])


OPERATORS = (AvgPool2dBackward, MaxPool2dWithMaskBackward, MaxPool2dWithMask, Im2colBackward,
             UpsampleNearestExact1dBackward, ReplicationPad2dBackward)  # fmt: skip


def draw(seed, number, names):
    """Case `number` of a seed: the same one wherever it is drawn."""
    rng = np.random.default_rng([seed, number])
    return one_of(rng, *(operator for operator in OPERATORS if operator.__name__ in names))(rng)


# ---- running --------------------------------------------------------------------------------------------------------


def assert_same(result, wanted):
    """Bit for bit; NaN is NaN."""
    parts = [a.reshape(a.shape) for a in (np.ascontiguousarray(result), np.ascontiguousarray(wanted))]
    words = [a.view(f"u{min(a.itemsize, 8)}") for a in parts]
    differ = words[0] != words[1]
    if parts[0].dtype.kind in "fV" and differ.any():
        differ &= ~(np.isnan(parts[0]) & np.isnan(parts[1]))
    if differ.any():
        place = tuple(map(int, np.argwhere(differ)[0]))
        raise AssertionError(f"{int(differ.sum())} words differ, first at {place}: {result.dtype} "
                             f"{words[0][place]:#x}, not {words[1][place]:#x}")


FORBIDDEN = []


def unreadable(shape, dtype):
    """An array whose values no one may read."""
    if not FORBIDDEN:
        FORBIDDEN.append(Arena(PAGE))
        FORBIDDEN[0].protect(0, PAGE, 0)
    return np.ndarray(shape, dtype, FORBIDDEN[0].bytes, 0, (0,) * len(shape))


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
        name = type(case).__name__
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
    """Counts what the plans chose, read from the executors' memory by a module compiled from the package's own .pxd."""

    def __init__(self):
        import importlib.util

        from Cython.Build import cythonize
        from setuptools import Distribution, Extension
        from setuptools.command.build_ext import build_ext

        self.folder = tempfile.TemporaryDirectory()
        source = Path(__file__).with_name("plans.pyx")
        extension = Extension("plans", [str(source)])
        include = [str(TESTS.parent / "aclnn_bw" / part) for part in ("_core", "_kernels")]
        here = os.getcwd()
        os.chdir(TESTS.parent)
        try:
            [extension] = cythonize([extension], build_dir=self.folder.name, include_path=["."], quiet=True,
                                    compiler_directives={"cdivision": True, "language_level": 3})  # fmt: skip
            extension.include_dirs = include
            extension.extra_compile_args = ["-O1", "-w"]
            command = build_ext(Distribution({"ext_modules": [extension]}))
            command.build_lib = command.build_temp = self.folder.name
            command.ensure_finalized()
            command.run()
        finally:
            os.chdir(here)
        spec = importlib.util.spec_from_file_location("plans", command.get_ext_fullpath("plans"))
        self.module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(self.module)
        self.counter = Counter()

    def count(self, executor, case):
        pointer = ctypes.c_void_p.from_address(id(executor) + object.__basicsize__).value
        self.counter[type(case).__name__, self.module.algorithm(pointer), case.dtype.name] += 1

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
    names = options.operator or [operator.__name__ for operator in OPERATORS]
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
    names = options.operator or [operator.__name__ for operator in OPERATORS]
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
    parser.add_argument("--operator", action="append", choices=[operator.__name__ for operator in OPERATORS])
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
