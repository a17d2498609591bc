"""Im2colBackward: what the tests know of it."""

import math
from functools import lru_cache
from itertools import product
from typing import ClassVar

import numpy as np
from digest_calls import (
    BOTH_WAYS,
    FEW_WIDTHS,
    MIDDLE,
    WIDER,
    WIDTHS,
    Call,
    Digested,
    Group,
    as_pairs,
    fits,
    narrow_image,
)
from engine_helpers import counted, sentinel_array
from fuzz import cases, rules
from fuzz.calls import DTYPES, tensor
from fuzz.cases import ARENA, LARGEST_CASE, Case, assert_same, one_of
from fuzz.results import MOST_POSITIONS
from reference import pair, pooled_shape, taps2d

import aclnn_bw
from operators.base import BASIC, NONE, REAL, WITH_BF16, Operator, on_products

# ---- the twin --------------------------------------------------------------------------------------------------------


def im2col(x, kernel_size, dilation=1, padding=0, stride=1):
    """Each window of (..., C, H, W) as a column: (..., C*kH*kW, Lh*Lw). The padding is zero."""
    windows = pooled_shape(x.shape[-2:], kernel_size, stride, padding, False, dilation)
    positions = math.prod(pair(kernel_size))
    columns = np.zeros((*x.shape[:-2], positions, *windows), x.dtype)
    for k, outputs, inputs in taps2d(x.shape, kernel_size, stride, padding, False, dilation):
        columns[..., k, :, :][outputs] = x[inputs]
    return columns.reshape(*x.shape[:-3], x.shape[-3] * positions, math.prod(windows))


def im2col_backward(grad_output, input_size, kernel_size, dilation=1, padding=0, stride=1, dtype=np.float64):
    """Each column is added to the window that it was taken from; what falls into the padding is dropped."""
    windows = pooled_shape(input_size, kernel_size, stride, padding, False, dilation)
    positions = int(np.prod(pair(kernel_size)))
    *batch, rows, _ = np.shape(grad_output)
    columns = np.asarray(grad_output).astype(dtype).reshape(*batch, rows // positions, positions, *windows)
    out = np.zeros((*batch, rows // positions, *input_size), dtype)
    for k, outputs, inputs in taps2d(input_size, kernel_size, stride, padding, False, dilation):
        out[inputs] += columns[..., k, :, :][outputs]
    return out


# The same for planes of a few elements and finite values: each axis is one small matrix, kept for the next call.


@lru_cache(maxsize=1 << 14)
def places(size, windows, kernel, stride, pad, dilation=1):
    """Along one axis, of each window the positions in the image, `size` for those outside it: [window, k]."""
    places = np.arange(windows)[:, None] * stride - pad + np.arange(kernel) * dilation
    return np.where((places >= 0) & (places < size), places, size)


@lru_cache(maxsize=1 << 14)
def _scatter(*axis):
    """Along one axis: 1 where window and kernel position [k * windows + window] lie at a position of the image."""
    return np.equal.outer(np.arange(axis[0]), places(*axis).T.reshape(-1)).astype(np.float64)


def from_columns(columns, size, kernel, stride, pad, dilation=(1, 1)):
    """Add columns [..., kH*kW, Ho, Wo] to the windows of [..., H, W] that they stand for."""
    (kh, kw), (*leading, _, oh, ow) = kernel, columns.shape
    if size[0] * kh * oh + size[1] * kw * ow > 1 << 16:  # matrices larger than what they sum
        flat = columns.reshape(math.prod(leading), kh * kw, oh * ow)
        result = im2col_backward(flat, size, kernel, dilation, pad, stride)
        return result.reshape(*leading, *size)
    rows = _scatter(size[0], oh, kh, stride[0], pad[0], dilation[0])
    across = _scatter(size[1], ow, kw, stride[1], pad[1], dilation[1])
    sums = columns.reshape(*leading, kh, kw, oh, ow).swapaxes(-3, -2).reshape(*leading, kh * oh, kw * ow)
    return rows @ sums @ across.T


# ---- digested calls --------------------------------------------------------------------------------------------------


def columns(shape, kernel, dilation=1, padding=0, stride=1, **rest):
    return Call("Im2colBackward", shape, (kernel, dilation, padding, stride), **rest)


def digested_groups():
    hot = {
        "k3 p1": (3, 1, 1, 1), "k3 d2 p2": (3, 2, 2, 1), "k3 s2 p1": (3, 1, 1, 2), "k4 s2 p1": (4, 1, 1, 2),
        "k2 s2": (2, 1, 0, 2), "k3 s3": (3, 1, 0, 3), "k5 p2": (5, 1, 2, 1),
    }  # fmt: skip
    other = [
        (1, 1, 0, 1), (1, 1, 0, 2), (1, 1, 0, 5), (2, 1, 0, 1), (2, 2, 1, 1), (2, 3, 1, 2), (3, 1, 0, 1),
        (3, 1, 2, 3), (4, 1, 0, 4),
        (4, 1, 2, 3), (5, 2, 4, 2), (5, 1, 0, 5), (7, 1, 3, 2), (7, 1, 3, 1), (8, 1, 0, 8), (8, 1, 2, 4),
        (3, 3, 3, 4), (3, 2, 1, 2),
        (2, 1, 1, 3), (6, 1, 3, 6), (2, 5, 3, 7), (3, 1, 40, 1), (2, 1, 30, 2),
    ]  # fmt: skip
    for name, (kernel, dilation, padding, stride) in hot.items():
        calls = [
            columns(shape, kernel, dilation, padding, stride)
            for number, width in enumerate(WIDTHS)
            if fits(shape := narrow_image(number, width), kernel, stride, padding, False, dilation)
        ]
        yield f"{name}, widths", Group(calls)
    calls = [
        columns(shape, kernel, dilation, padding, stride)
        for number, ((kernel, dilation, padding, stride), width) in enumerate(product(other, FEW_WIDTHS))
        if fits(shape := narrow_image(number, width, 9), kernel, stride, padding, False, dilation)
    ]
    yield "other kernels, widths", Group(calls)
    calls = [
        columns((1, 2, 33, width), kernel, dilation, padding, stride)
        for (kernel, dilation, padding, stride), width in product(
            ((11, 1, 2, 4), (16, 1, 0, 16), (17, 1, 8, 5), (16, 2, 8, 9), (12, 1, 0, 12)), (31, 32, 35, 65)
        )
    ]
    yield "large kernels", Group(calls)
    for stride in range(1, 9):
        calls = [
            columns((1, 2, 5, width), (rows, wide), (1, dilation), (rows // 2, wide // 2), (1 + number % 3, stride))
            for number, (wide, rows, dilation, width) in enumerate(product(range(1, 18), (1, 3), (1, 2, 3), (21, 40)))
            if fits((5, width), (rows, wide), (1 + number % 3, stride), (rows // 2, wide // 2), False, (1, dilation))
        ]
        yield f"kernel columns 1 to 17 at stride {stride}", Group(calls)
    calls = [
        columns((*planes, height, width), kernel, dilation, padding, stride)
        for height, width, planes, (kernel, dilation, padding, stride) in product(
            (1, 2, 4, 7, 14), (1, 3, 4, 7, 8, 14, 28), ((5,), (2, 9)),
            ((3, 1, 1, 1), (2, 1, 0, 2), (3, 1, 1, 2), (5, 1, 2, 1)))
        if fits((height, width), kernel, stride, padding)
    ]  # fmt: skip
    yield "small planes", Group(calls)
    calls = [
        columns((2, 3, 3 * stride, width), kernel, 1, padding, stride, layout=layout)
        for stride, width, kernel, padding, layout in product(
            (3, 4, 5, 7, 9), (13, 24, 40, 61), (2, 3, 5, 9), (0, 1), ("contiguous", "rows_cropped"))
        if fits((3 * stride, width), kernel, stride, padding)
    ]  # fmt: skip
    yield "few windows in a row", Group(calls)
    for name, (kernel, dilation, padding, stride) in {
        "k3 p1": (3, 1, 1, 1), "k2 s2": (2, 1, 0, 2), "k3 s2 p1": (3, 1, 1, 2), "k5 s7": (5, 1, 0, 7),
        "k1": (1, 1, 0, 1),
        "k3 s3": (3, 1, 0, 3),
        "k2 s3": (2, 1, 1, 3),
        "k3x2 s1x17": ((3, 2), 1, 1, (1, 17)),
    }.items():  # fmt: skip
        calls = [
            columns(shape, kernel, dilation, padding, stride, layout=layout, out=out)
            for (layout, out), shape in product(BOTH_WAYS, ((2, 5, 6, 7), (1, 35, 4, 10), (1, 2, 5, 33)))
            if fits(shape, kernel, stride, padding, False, dilation)
        ]
        yield f"{name}, layouts", Group(calls)
    # A layout of the input that makes the windows of a column lie apart, by both ways of its neighbours.
    calls = [
        columns((1, channels, 9, width), kernel, 1, kernel // 2 * (stride == 1), stride, layout=layout, out=out)
        for channels, width, (kernel, stride), layout, out in product(
            (1, 2, 8, 17, 33), (9, 20), ((3, 1), (2, 2)), ("channels_last", "every_second_column"),
            ("contiguous", "channels_last"))
    ]  # fmt: skip
    yield "columns apart", Group(calls)
    calls = [
        columns((1, 2, 4, width), kernel, 1, padding, stride, layout=layout)
        for (kernel, padding, stride), width, layout in product(
            ((3, 1, 1), (2, 0, 2), (3, 1, 2), (4, 0, 16), (4, 0, 17)), (1000, 4099), ("contiguous", "channels_last"))
    ] + [
        columns((1, 1, 2, 1000), (2, wide), 1, (0, 3), 1, layout=layout)
        for wide, layout in product((33, 64, 65), ("contiguous", "channels_last"))
    ] + [columns((1, 1, 2, 20001), 2, layout=layout) for layout in ("contiguous", "channels_last")]  # fmt: skip
    yield "long rows", Group(calls)
    calls = [
        columns((1, 2, 1500, 8), 3, 1, 1), columns((1, 1, 99, 9), (64, 2), 1, (3, 0)),
        columns((1, 1, 99, 9), (65, 2), 1, (3, 0)),
        columns((1, 1, 200, 20), (40, 3), (5, 2), (70, 1), (7, 1)), columns((2, 2, 5, 6), 2, 2**32, 2**31),
        columns((2, 2, 5, 6), (2, 1), (2**32, 1), (2**31, 0), (1, 2**33)), columns((1, 2, 9, 9), 1, 1, 0, 40),
        columns((1, 3, 9, 30), (3, 30), 1, (1, 100), 1), columns((1, 2, 30, 70), 3, 1, 0, (1, 20)),
        columns((1, 2, 40, 70), (3, 50), 1, (1, 40), (2, 20)),
        columns((1, 2, 9, 70), (1, 80), (1, 3), (0, 100), (3, 20)),
        columns((1, 2, 9, 9), (2, 41), 1, (1, 40), (2, 20), out="every_second_column"),
        *(columns((1, 2, 31, 29), kernel, 1, padding, 2) for kernel,
            padding in ((3, 0), (3, 1), (3, 2), (4, 1), (5, 2), (5, 4), (7, 3))),
    ]  # fmt: skip
    yield "tall kernels and wide pads", Group(calls)
    for rest in ("float32", "float64", "float16", "bfloat16"):
        calls = [
            columns((2, 3, 9, 21), kernel, dilation, padding, stride, rest=rest, out=out, kind=kind)
            for (kernel, dilation, padding, stride), out, kind in product(
                ((3, 1, 1, 1), (2, 1, 0, 2), (3, 1, 1, 2), (5, 1, 0, 7), (3, 1, 0, 17)),
                ("contiguous", "channels_last", "columns_reversed"), ("plain", "special"))
        ]  # fmt: skip
        yield f"to {rest}", Group(calls, tuple(dtype for dtype in REAL if dtype != rest))
    calls = [
        columns((2, 5, 14, width), kernel, dilation, padding, stride, kind="special")
        for (kernel, dilation, padding, stride), width in product(
            (*hot.values(), (1, 1, 0, 1), (5, 1, 0, 7), (16, 1, 8, 16)), (14, 16, 35, 70))
        if fits((14, width), kernel, stride, padding, False, dilation)
    ]  # fmt: skip
    yield "special values", Group(calls)
    calls = [
        columns((2, 5, 14, width), kernel, dilation, padding, stride, kind="nothing")
        for (kernel, dilation, padding, stride), width in product((*hot.values(), (1, 1, 0, 1), (5, 1, 0, 7)), (14, 35))
        if fits((14, width), kernel, stride, padding, False, dilation)
    ]
    yield "nothing but -0.0", Group(calls)
    for rest in ("float32", "float64", "float16"):
        shapes = ((257, 1), (300, 1), (600, 2))
        calls = [columns((1, 2, 4, width), 3, 1, 1, stride, rest=rest) for width, stride in shapes]
        yield f"long rows to {rest}", Group(calls, tuple(dtype for dtype in REAL if dtype != rest))
    for dtype in REAL:
        batch = 32 // DTYPES[dtype].itemsize
        calls = [
            columns((batch, 17, 80, 83), 3, 1, 1), columns((batch, 140, 62, 64), 2, 1, 0, 2),
            columns((batch, 570, 14, 14), 3, 1, 1),
        ]  # fmt: skip
        if dtype in WIDER:
            calls += [columns((batch, 70, 60, 63), 3, 1, 1, 2)]
        if dtype == "float32":
            calls += [
                columns((batch, 6, 320, 320), 16, 1, 0, 16), columns((batch, 20, 180, 180), 2, 1, 0, 4),
                columns((batch, 70, 88, 88), 2, 1, 0, 2, layout="channels_last"),
            ]
        yield "beyond the caches", Group(calls, (dtype,))
    calls = [
        columns((1, 64, 56, 56), 3, 1, 1), columns((1, 64, 28, 28), 3, 2, 2), columns((1, 64, 56, 56), 2, 1, 0, 2),
        columns((1, 64, 56, 57), 3, 1, 1, 2), columns((1, 1, 200, 201), 5, 1, 2, layout="channels_last"),
        columns((1, 32, 56, 56), 3, 1, 1, out="channels_last"),
        columns((1, 32, 56, 56), 3, 1, 1, layout="channels_last"),
        columns((1, 1, 300, 300), 3, 1, 1, 1), columns((1, 1, 500, 500), 2, 1, 0, 2),
    ]  # fmt: skip
    yield "large", Group(calls)


class DigestedCalls(Digested):
    """Attributes: kernel, dilation, padding, stride."""

    def input_shape(self, call):
        kernel, dilation, padding, stride = call.attributes
        windows = pooled_shape(call.shape[-2:], kernel, stride, padding, False, dilation)
        *batch, channels, _, _ = call.shape
        return (*batch, channels * math.prod(pair(kernel)), math.prod(windows))

    def output_dtypes(self, call, dtype):
        return [DTYPES[call.rest] if call.rest else dtype]

    def layouts(self, call):
        return MIDDLE.get(call.layout, call.layout), [call.out]

    def phase_1(self, call, inputs, outs):
        return [inputs[0], list(call.shape[-2:]), *as_pairs(call.attributes), outs[0]]

    def one_call(self, call, inputs, outs):
        return [aclnn_bw.im2col_backward(inputs[0], call.shape[-2:], *call.attributes, out=outs[0])]

    def groups(self):
        return digested_groups()


# ---- calls between guard pages ---------------------------------------------------------------------------------------


class Guarded(Case):
    channel_axes: ClassVar[dict] = {"gradOutput": -2}

    def draw(self, rng):
        kind = one_of(rng, "any", "gather", "gather", "gather", "interleave", "interleave", "scatter", "wide", "small",
                      "large")  # fmt: skip
        shape = list(cases.image(rng))
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
        self.out_dtype = one_of(rng, *self.dtypes) if rng.random() < 0.15 and not self.large else self.dtype

    def windows(self):
        kernel, dilation, pad, stride = self.columns
        return pooled_shape(self.shape[-2:], kernel, stride, pad, False, dilation)

    def column_shape(self):
        *batch, c, _, _ = self.shape
        return (*batch, c * math.prod(self.columns[0]), math.prod(self.windows()))

    def numbers(self):
        return dict(zip(("kernel", "dilation", "padding", "stride"), self.columns, strict=True))

    def tensors(self):
        return {"gradOutput": (self.column_shape(), self.dtype, "read"),
                "out": (self.shape, self.out_dtype, "written")}  # fmt: skip

    def check(self, inputs, outputs):
        wanted = im2col_backward(inputs["gradOutput"], self.shape[-2:], *self.columns).astype(self.dtype)
        assert_same(outputs["out"], wanted.astype(np.float64).astype(self.out_dtype))

    def phase1(self, t):
        return t["gradOutput"], self.shape[-2:], *self.columns, t["out"]

    def one_call(self, t):
        aclnn_bw.im2col_backward(t["gradOutput"], self.shape[-2:], *self.columns, out=t["out"])


# ---- the operator ----------------------------------------------------------------------------------------------------


class Im2colBackward(Operator):
    declaration = "const aclTensor *gradOutput, const aclIntArray *inputSize, const aclIntArray *kernelSize, " \
        "const aclIntArray *dilation, const aclIntArray *padding, const aclIntArray *stride, aclTensor *out"
    signature = "grad_output, input_size, kernel_size, dilation=1, padding=0, stride=1, *, out=None"
    headers = ("aclnn_im2col_backward.h",)
    roles: ClassVar[dict] = {"gradOutput": "read", "out": "written"}
    dtypes = on_products(BASIC, NONE, WITH_BF16, REAL)
    geometries: ClassVar[list] = [
        {},
        {"shape": (3, 9, 13), "kernel": (3, 3), "padding": (1, 1)},
        {"shape": (2, 3, 57, 58), "kernel": (3, 2), "dilation": (2, 3), "padding": (2, 1), "stride": (1, 2)},
        {"shape": (2, 3, 28, 28), "stride": (2, 2)},
        {"shape": (1, 2, 20, 20), "kernel": (2, 2), "stride": (5, 4)},
        {"shape": (1, 2, 200, 90), "kernel": (3, 3), "padding": (1, 1)},
        {"shape": (0, 2, 9, 9)},
    ]
    page = "im2col"
    enums = ("Algorithm",)
    demo = ("2  4  2", "out: 9 of 9")
    picture = (4, 4), lambda g: aclnn_bw.im2col_backward(g, (3, 3), 2)
    guarded = Guarded
    digested = DigestedCalls()

    def make(self, kernel=(2, 2), dilation=(1, 1), padding=(0, 0), stride=(1, 1)):
        self.columns = kernel, dilation, padding, stride
        windows = pooled_shape(self.shape[-2:], kernel, stride, padding, False, dilation)
        *batch, channels, height, width = self.shape
        return {
            "gradOutput": self.integers(*batch, channels * math.prod(kernel), math.prod(windows)),
            "inputSize": (height, width), "kernelSize": kernel, "dilation": dilation, "padding": padding,
            "stride": stride, "out": sentinel_array(self.shape, self.dtype),
        }  # fmt: skip

    def twin(self):
        return {"out": im2col_backward(self["gradOutput"], self["inputSize"], *self.columns)}

    @classmethod
    def sample(cls):
        out = np.empty((1, 2, 3, 4), np.float32)
        cls.by_phases(counted((1, 8, 6), 1), [3, 4], [2, 2], [1, 1], [0, 0], [1, 1], out)
        return {"out": out}

    @staticmethod
    def rules(j, c, a):
        two = c.face == "two-phase"
        grad, size, kernel = (
            ("gradOutput", "inputSize", "kernelSize") if two else ("grad_output", "input_size", "kernel_size")
        )
        arrays = (size, kernel, "dilation", "padding", "stride")
        rules.nulls(j, a, grad, *arrays, *["out"] * two)
        written = ["out"] * (a["out"] is not None)
        rules.dtypes(j, c, a, None, grad, *written)
        j.stage()
        rules.ranks(j, a, (2, 3), grad)
        if written:
            j.refuse(a[grad].rank in (2, 3) and a["out"].rank != a[grad].rank + 1, "rank", "out")
        for name in (grad, *written):
            j.refuse(a[name].format in rules.PRIVATE, "format", name)
        j.stage()
        rules.lengths(j, a, **dict.fromkeys(arrays, (2,) if two else (1, 2)))
        j.stage()
        for name in arrays:
            rules.at_least(j, 0 if name == "padding" else 1, name, a[name])
        j.stage()
        axes = list(zip(*(rules.pair(a[name]) for name in arrays), strict=True))
        columns, length = a[grad].shape[-2:]
        positions = math.prod(rules.pair(a[kernel]))
        windows = [rules.pooled(h, k, s, p, False, d) for h, k, d, p, s in axes]
        j.refuse(0 in (columns, length) or columns % positions, "shape", grad)
        j.refuse(min(windows) < 1, "no window", size)
        j.refuse(min(windows) >= 1 and math.prod(windows) != length, "shape", grad)
        if written:
            shape = a["out"].shape
            j.refuse(shape[-2:] != rules.pair(a[size]), "shape", size)
            j.refuse(shape[-3] * positions != columns, "shape", "out")
            j.refuse(shape[-3] * positions != columns, "shape", grad)
            j.refuse(len(shape) == 4 and shape[0] != a[grad].shape[0], "shape", "out")
            j.refuse(0 in shape[-3:], "shape", "out")
        j.stage()
        fresh = (*a[grad].shape[:-2], columns // positions, *rules.pair(a[size]))
        rules.not_too_large(j, a, grad, *written, fresh=None if written else fresh)
        rules.memory(j, a, (grad,), (), ("out",))

    @staticmethod
    def draw(d):
        random = d.random
        while True:
            size = (random.randint(1, 9), random.randint(1, 9))
            kernel = (random.randint(1, 3), random.randint(1, 3))
            dilation = (random.randint(1, 2), random.randint(1, 2))
            pad, stride = (random.randint(0, 2), random.randint(0, 2)), (random.randint(1, 3), random.randint(1, 3))
            windows = tuple(
                rules.pooled(*axis, False, d) for *axis, d in zip(size, kernel, stride, pad, dilation, strict=True)
            )
            if min(windows) >= 1:
                break
        *batch, channels = d.leading()
        columns = (*batch, channels * math.prod(kernel), math.prod(windows))
        d.add("gradOutput", tensor(random, columns, d.dtype))
        for name, values in (
            ("inputSize", size), ("kernelSize", kernel), ("dilation", dilation), ("padding", pad), ("stride", stride)
        ):  # fmt: skip
            d.add(name, d.ints(values, exact=d.two))
        others = Im2colBackward.dtypes[d.drawn.product]
        dtype = random.choice(others) if others and random.random() < 0.3 else d.dtype
        d.add("out", d.out("out", (*batch, channels, *size), dtype))

    @staticmethod
    def expected(drawn, values, a):
        two = drawn.face == "two-phase"
        size, kernel, dilation, pad, stride = (
            rules.pair(a[name])
            for name in ("inputSize" if two else "input_size", "kernelSize" if two else "kernel_size", *_REST)
        )
        positions = math.prod(kernel)
        if positions > MOST_POSITIONS:
            return None
        windows = pooled_shape(size, kernel, stride, pad, False, dilation)
        columns = values.reshape(*values.shape[:-2], values.shape[-2] // positions, positions, *windows)
        result = from_columns(columns, size, kernel, stride, pad, dilation)
        if a["out"] is not None:  # rounded to the dtype of gradOutput first
            result = result.astype(DTYPES[next(iter(a.values())).dtype]).astype(DTYPES[a["out"].dtype])
        return [result]

    @staticmethod
    def fresh(meaning):
        sizes, grad, kernel = (meaning[name] for name in ("input_size", "grad_output", "kernel_size"))
        if not (isinstance(sizes, rules.Ints) and isinstance(kernel, rules.Ints)):
            return None
        channels = 1
        few = len(kernel) in (1, 2) and min(kernel) >= 1 and kernel[0] * kernel[-1] in rules.INT64
        if grad.rank in (2, 3) and few:
            channels = max(grad.shape[-2] // (kernel[0] * kernel[-1]), 1)
        planes = (grad.shape[0] if grad.rank == 3 else 1) * channels
        pair = rules.pair(sizes) if len(sizes) in (1, 2) else (1, 1)
        return (planes, *(size if size > 0 else 1 for size in pair))


_REST = ("dilation", "padding", "stride")
