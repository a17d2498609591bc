"""AvgPool2d: what the tests know of it."""

from itertools import product
from typing import ClassVar

import numpy as np
from digest_calls import BOTH_WAYS, CHANNELS, FEW_WIDTHS, STRIDED, WIDTHS, Call, Digested, Group, as_pairs, fits, image
from engine_helpers import counted, sentinel_array
from fuzz import cases, rules
from fuzz.calls import Argument, tensor
from fuzz.cases import Case, one_of
from helpers import assert_is_sum, assert_same_bytes, oracle_type
from reference import pair, pooled_shape, round_float16

import aclnn_bw
from operators.avg_pool2d_backward import _window_lengths, avg_pool2d
from operators.base import BASIC, REAL, WITH_BF16, Operator, on_products
from operators.max_pool import POOLS

# ---- the twin --------------------------------------------------------------------------------------------------------


def divisors(shape, kernel, stride, padding, ceil, include, divisor):
    """Of each window of a plane, as doubles."""
    axes = zip(shape[-2:], pair(kernel), pair(kernel if stride is None else stride), pair(padding), strict=True)
    lengths = [_window_lengths(*axis, ceil, include).astype(float) for axis in axes]
    return np.full([len(one) for one in lengths], float(divisor)) if divisor else np.multiply.outer(*lengths)


def assert_is_avg_pool2d(result, x, attributes, rounding=None):
    """Within the error bound of the sum, divided; `rounding` is that of self and of the result."""
    wide = oracle_type(result.dtype)
    x = rounding(x) if rounding else x
    with np.errstate(invalid="ignore", over="ignore"):
        exact = avg_pool2d(x, *attributes, dtype=wide)
        by = divisors(x.shape, *attributes)
        size = np.abs(avg_pool2d(np.abs(np.asarray(x).astype(wide)), *attributes, dtype=wide))
        terms = avg_pool2d(np.ones(x.shape[-2:]), *attributes[:4], True, 1)
    # The division rounds once more, which (terms + 3) includes.
    assert_is_sum(result, exact, size, terms + 0 * by, rounding)


def compact(shape, kernel, pads, ceil, divisor):
    """What Ascend910B has no float32 for."""
    *_, channels, height, width = shape
    whole = tuple(kernel) == (height, width) and tuple(pads) == (0, 0)
    low = max(kernel) <= 255 and (kernel[0] * kernel[1] <= 255 or max(kernel) <= 20)
    square = width // height < 2 and height // width < 2
    return whole or (square and not ceil and channels < 65536 and -255 <= divisor <= 255 and low)


# ---- digested calls --------------------------------------------------------------------------------------------------


def avg(shape, kernel, stride=None, padding=0, ceil=False, include=True, divisor=None, **rest):
    attributes = kernel, kernel if stride is None else stride, padding, ceil, include, divisor
    return Call("AvgPool2d", shape, attributes, **rest)


def digested_groups():
    hot = [(2, 2, 0), (3, 2, 1), (3, 2, 0), (3, 1, 1), (3, 1, 0), (5, 1, 2), (3, 3, 0)]
    other = [
        (1, 1, 0), (1, 2, 0), (2, 1, 0), (2, 1, 1), (2, 2, 1), (2, 3, 1), (3, 3, 1), (4, 1, 2), (4, 2, 1), (4, 4, 0),
        (5, 2, 2), (6, 3, 0), (7, 1, 3), (7, 2, 3), (8, 8, 0), (11, 4, 2), (17, 1, 8), (33, 1, 16),
    ]  # fmt: skip
    for kernel, stride, padding in hot:
        calls = [
            avg(shape, kernel, stride, padding, number % 5 == 4, number % 3 != 1, (None, 4, None, -7)[number % 4])
            for number, width in enumerate((*WIDTHS, *WIDTHS))
            if fits(shape := image(number, width), kernel, stride, padding)
        ]
        yield f"k{kernel} s{stride} p{padding}, widths", Group(calls)
    calls = [
        avg(shape, kernel, stride, padding, number % 5 == 4, number % 3 != 1, (None, None, 3)[number % 3])
        for number, ((kernel, stride, padding), width) in enumerate(product(other, FEW_WIDTHS))
        if fits(shape := image(number, width), kernel, stride, padding)
    ]
    yield "other kernels, widths", Group(calls)
    for kernel, stride, padding in ((2, 2, 0), (3, 2, 1), (3, 1, 1), (5, 4, 2), (1, 1, 0), (2, 5, 0)):
        calls = [
            avg(shape, kernel, stride, padding, include=number % 2 == 0, layout=layout, out=out, kind=kind)
            for number, ((layout, out), shape, kind) in enumerate(
                product(BOTH_WAYS, ((2, 19, 6, 13), (1, 35, 5, 18), (1, 3, 9, 65)), ("plain", "special")))
        ]  # fmt: skip
        yield f"k{kernel} s{stride} p{padding}, layouts", Group(calls)
    calls = [
        avg((2, channels, 9, width), *attributes, layout="channels_last", out=out)
        for channels, width, attributes, out in product(
            (*CHANNELS, 33, 65), (9, 20), ((3, 1, 1), (2, 2, 0), (3, 3, 0)), ("contiguous", "channels_last"))
    ]  # fmt: skip
    yield "channels last", Group(calls)
    calls = [
        avg((2, 3, 7, width), (height, columns), 1, 0, layout=layout, out=out, kind=kind)
        for (width, height, columns), layout, out, kind in product(
            ((7, 7, 7), (1100, 3, 1100), (1100, 2, 1050), (2500, 7, 2000)),
            ("contiguous", "channels_last", "rows_reversed"),
            ("contiguous", *STRIDED), ("plain", "special"))
        if width < 2000 or (layout, out) == ("contiguous", "contiguous")
    ]  # fmt: skip
    yield "wide windows, and one a plane", Group(calls)
    calls = [
        avg(shape, kernel, stride, padding, number % 5 == 4, number % 3 != 1, layout=layout, out=out, kind=kind)
        for number, ((layout, out), shape, (kernel, stride, padding), kind) in enumerate(product(
            (("contiguous", "contiguous"), *BOTH_WAYS), ((2, 3, 9, 5), (2, 1, 6, 4)),
            ((3, 2, 0), (2, 3, 1), ((3, 4), 4, 1)), ("plain", "special")))
    ]  # fmt: skip
    yield "one window or two to a row, layouts", Group(calls)
    calls = [
        avg(shape, kernel, stride, padding, number % 5 == 4, number % 3 != 1, (None, None, -3)[number % 3],
            layout=layout, out=out, kind=kind)
        for number, ((layout, out), shape, (kernel, stride, padding), kind) in enumerate(product(
            (("contiguous", "contiguous"), *BOTH_WAYS), ((1, 31, 7, 8), (16, 3, 6, 5)),
            ((3, 2, 0), (4, 3, 2), ((3, 5), 1, (1, 2)), (6, 2, 1)), ("plain", "special")))
    ]  # fmt: skip
    yield "small planes, layouts", Group(calls)
    calls = [
        avg((1, 2, 5, width), *attributes, layout=layout)
        for attributes, width, layout in product(
            ((2, 2, 0), (3, 2, 1), (3, 1, 1), (5, 4, 2), ((2, 17), 1, (1, 8))), (1000, 4099, 20001),
            ("contiguous", "channels_last"))
    ]  # fmt: skip
    yield "long rows", Group(calls)
    calls = [
        avg((2, 3, 14, width), kernel, stride, padding, include=number % 2 == 0, kind=kind, product="Ascend910B",
            rest=2, out=out)
        for number, ((kernel, stride, padding), width, kind, out) in enumerate(product(
            ((2, 2, 0), (3, 2, 1), (3, 1, 1), (5, 4, 2)), (7, 33), ("plain", "special"),
            ("contiguous", "channels_last")))
    ]  # fmt: skip
    yield "reduced precision", Group(calls, ("float32",))
    geometries = [(2, 2, 0), (3, 2, 1), (3, 1, 1), (5, 4, 2), (7, 7, 0)]
    calls = [
        avg((2, 3, 14, width), kernel, stride, padding, ceil, include, divisor, kind="special")
        for (kernel, stride, padding), width, (ceil, include, divisor) in product(
            geometries, (7, 16, 35, 70), ((False, True, None), (True, False, None), (False, True, 1), (True, True, -3)))
    ]  # fmt: skip
    yield "special values", Group(calls)
    calls = [
        avg((2, 3, *size), kernel, stride, padding, kind="nothing", out=out)
        for (kernel, stride, padding), size, out in product(
            geometries, ((7, 7), (14, 35)), ("contiguous", "every_second_column"))
    ]  # fmt: skip
    yield "nothing but -0.0", Group(calls)
    calls = [
        avg((1, 64, 112, 112), 2, 2), avg((2, 64, 112, 112), 3, 2, 1), avg((1, 2, 512, 1023), 3, 1, 1),
        avg((2, 200, 35, 35), 3, 1, 1), avg((2, 2048, 7, 7), 7), avg((1, 64, 56, 56), 3, 1, 1, layout="channels_last"),
        avg((1, 1, 500, 500), 500), avg((1, 2, 600, 20), (200, 3), 1, (100, 1)),
        avg((30, 3, 16, 16), 2, 2, include=False),
    ]  # fmt: skip
    yield "large, many planes and few", Group(calls)


class DigestedCalls(Digested):
    def output_shapes(self, call):
        return [pooled_shape(call.shape, *call.attributes[:4])]

    def phase_1(self, call, inputs, outs):
        kernel, stride, padding, ceil, include, divisor = call.attributes
        return [inputs[0], *as_pairs((kernel, stride, padding)), ceil, include, divisor or 0, call.rest, outs[0]]

    def one_call(self, call, inputs, outs):
        return [aclnn_bw.avg_pool2d(inputs[0], *call.attributes, out=outs[0])]

    def groups(self):
        return digested_groups()


# ---- calls between guard pages ---------------------------------------------------------------------------------------


class Guarded(Case):
    def draw(self, rng):
        kind = one_of(rng, "any", "any", "flat", "flat", "pairs", "fill", "wide", "banded")
        shape = list(cases.image(rng))
        kernel = [int(rng.integers(1, 8)) for _ in range(2)]
        stride = [int(rng.integers(1, 6)) for _ in range(2)]
        pad = [int(rng.integers(0, k // 2 + 1)) if rng.random() < 0.6 else 0 for k in kernel]
        if kind == "flat":
            kernel, stride = [2 * int(rng.integers(0, 5)) + 1 for _ in range(2)], [1, 1]
            pad = [int(rng.integers(0, kernel[0] // 2 + 1)), kernel[1] // 2]
        elif kind == "pairs":
            kernel, stride, pad = [2, 2], [2, 2], [0, 0]
        elif kind == "fill":
            kernel, pad = shape[-2:], [0, 0]
        elif kind == "wide":
            shape = [*([1] if len(shape) == 4 else []), 1, int(rng.integers(1, 8)), int(rng.integers(1030, 1200))]
            kernel, pad = (
                [int(rng.integers(1, shape[-2] + 1)), int(rng.integers(1020, 1031))],
                [0, int(rng.integers(0, 99))],
            )
        elif kind == "banded":
            stride, kernel = (
                [int(rng.integers(1, 13)) for _ in range(2)],
                [int(rng.integers(1, 30)) for _ in range(2)],
            )
            pad = [int(rng.integers(0, k // 2 + 1)) for k in kernel]
        for i in range(2):  # a window must fit
            if shape[i - 2] + 2 * pad[i] < kernel[i]:
                shape[i - 2] = kernel[i] - 2 * pad[i] if pad[i] * 2 < kernel[i] else 1
        self.shape = tuple(shape)
        self.attributes = (
            tuple(kernel),
            tuple(stride),
            tuple(pad),
            bool(rng.random() < 0.3),
            bool(rng.random() < 0.6),
            one_of(rng, None, None, None, 1, 4, -7, 16),
        )
        self.cube = 0
        if self.dtype == np.float32 and rng.random() < 0.2:
            self.product, self.cube = "Ascend910B", int(one_of(rng, 0, 2))

    def numbers(self):
        names = ("kernel", "stride", "padding", "ceil", "include", "divisor")
        return {**dict(zip(names, self.attributes, strict=True)), "cube": self.cube}

    def tensors(self):
        return {"self": (self.shape, self.dtype, "read"),
                "out": (pooled_shape(self.shape, *self.attributes[:4]), self.dtype, "written")}  # fmt: skip

    def values(self, name, shape, dtype):
        return self.rng.standard_normal(shape).astype(dtype)

    def check(self, inputs, outputs):
        assert_is_avg_pool2d(outputs["out"], inputs["self"], self.attributes, round_float16 if self.cube == 2 else None)
        if self.product == "Host":
            with aclnn_bw.num_threads(1):
                same = aclnn_bw.avg_pool2d(inputs["self"], *self.attributes)
            assert_same_bytes(outputs["out"], same)

    def phase1(self, t):
        *rest, divisor = self.attributes
        return t["self"], *rest, divisor or 0, self.cube, t["out"]

    def one_call(self, t):
        aclnn_bw.avg_pool2d(t["self"], *self.attributes, out=t["out"])


# ---- the operator ----------------------------------------------------------------------------------------------------


class AvgPool2d(Operator):
    declaration = (
        "const aclTensor *self, const aclIntArray *kernelSize, const aclIntArray *strides, "
        "const aclIntArray *paddings, const bool ceilMode, const bool countIncludePad, "
        "const int64_t divisorOverride, const int8_t cubeMathType, aclTensor *out"
    )
    signature = (
        "self, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True, "
        "divisor_override=None, *, out=None"
    )
    headers = ("aclnn_avgpool2d.h",)
    roles: ClassVar[dict] = {"self": "read", "out": "written"}
    dtypes = on_products(BASIC, BASIC, WITH_BF16, REAL)
    geometries: ClassVar[list] = [
        *POOLS,
        {"shape": (3, 2, 9, 13), "kernel": (3, 3), "stride": (1, 1), "padding": (1, 1), "include": False},
        {"shape": (3, 2, 200, 90), "kernel": (5, 5), "stride": (1, 1), "padding": (2, 2), "divisor": -4},
        {"shape": (3, 2, 12, 12), "kernel": (2, 3), "stride": (5, 4), "padding": (1, 0), "ceil": True, "divisor": 8},
    ]
    page = "avg_pool2d"
    core = "avg_pool2d_forward"
    enums = ("ForwardAlgorithm",)
    demo = ("2.5  4.5", "out: 4 of 4")
    exact = False
    guarded = Guarded
    digested = DigestedCalls()

    def make(self, kernel=(2, 2), stride=(2, 2), padding=(0, 0), ceil=False, include=True, divisor=0):
        self.pool = kernel, stride, padding, ceil
        return {
            "self": self.integers(*self.shape), "kernelSize": kernel, "strides": stride, "paddings": padding,
            "ceilMode": ceil, "countIncludePad": include, "divisorOverride": divisor,
            # Every product takes it for every dtype; small integers are float16.
            "cubeMathType": int(aclnn_bw.USE_FP16),
            "out": sentinel_array(pooled_shape(self.shape, *self.pool), self.dtype),
        }  # fmt: skip

    def twin(self):
        rest = self["countIncludePad"], self["divisorOverride"] or None
        return {"out": avg_pool2d(self["self"], *self.pool, *rest)}

    @classmethod
    def sample(cls):
        out = np.empty((1, 2, 2, 2), np.float32)
        cls.by_phases(counted((1, 2, 4, 4), 1), [2, 2], [2, 2], [0, 0], False, True, 0, 0, out)
        return {"out": out}

    @staticmethod
    def rules(j, c, a):
        two = c.face == "two-phase"
        kernel, stride, pad, divisor, ceil = (
            ("kernelSize", "strides", "paddings", "divisorOverride", "ceilMode") if two
            else ("kernel_size", "stride", "padding", "divisor_override", "ceil_mode")
        )  # fmt: skip
        rules.nulls(j, a, "self", kernel, *[stride] * two, pad, *["out"] * two)
        written = ["out"] * (a["out"] is not None)
        rules.dtypes(j, c, a, "self", "self", *written)
        j.stage()
        for name in ("self", *written):
            formats = {4: (rules.NCHW,), 3: (rules.NCL,)}.get(a[name].rank, (rules.NCHW, rules.NCL))
            if a[name].rank == 3 and c.product == "Host":
                formats = (rules.NCHW, rules.NCL)
            j.refuse(a[name].format not in formats, "format", name)
            j.stage()
        for name, least in ((kernel, 1), (stride, 1), (pad, 0)):
            if a[name] is not None:
                rules.at_least(j, least, name, a[name][:8])  # of a longer one no more is kept
            j.stage()
        rules.ranks(j, a, (3, 4), "self", *written)
        j.stage()
        shape = a["self"].shape
        j.refuse(0 in shape[-3:], "no elements", "self")
        j.stage()
        for name, lengths in ((kernel, (1, 2)), (pad, (1, 2)), (stride, (0, 1, 2))):
            rules.lengths(j, a, **{name: lengths})
            j.stage()
        kernels, pads = rules.pair(a[kernel]), rules.pair(a[pad])
        strides = rules.pair(a[stride]) if a[stride] else kernels
        j.refuse(any(p > k // 2 for p, k in zip(pads, kernels, strict=True)), "padding beyond half the kernel", pad)
        j.stage()
        j.refuse(not two and a[divisor] == 0, "divisor 0", divisor)
        j.stage()
        windows = [rules.pooled(*axis, a[ceil]) for axis in zip(shape[-2:], kernels, strides, pads, strict=True)]
        j.refuse(min(windows) < 1, "no window", "self")
        j.stage()
        if written:
            rules.shape_is(j, a, "out", (*shape[:-2], *windows))
        j.stage()
        if two:
            mode = a["cubeMathType"]
            j.refuse(mode not in (0, 1, 2, 3), "cubeMathType", "cubeMathType")
            if a["self"].dtype == "float32" and c.product != "Host":
                allowed = (1, 2) if c.product != "Ascend910B" else (0, 1, 2, 3)
                j.refuse(mode not in allowed, "cubeMathType of the product", "cubeMathType")
                small = compact(shape, kernels, pads, a[ceil], a[divisor]) and (len(shape) == 3 or shape[0] > 0)
                j.refuse(c.product == "Ascend910B" and mode in (1, 3) and small, "cubeMathType of a compact image",
                         "cubeMathType")  # fmt: skip
        j.stage()
        rules.not_too_large(j, a, "self", *written, fresh=None if written else (*shape[:-2], *windows))
        rules.memory(j, a, ("self",), (), ("out",))

    @staticmethod
    def draw(d):
        random = d.random
        size, kernel, stride, pad, ceil, pooled = d.pool()
        leading = d.leading()
        d.add("self", tensor(random, (*leading, *size), d.dtype, how=d.how))
        d.add("kernelSize", d.ints(kernel))
        d.add("strides", d.stride(kernel, stride, nullable=False))
        d.add("paddings", d.ints(pad))
        d.add("ceilMode", Argument(ceil, ceil))
        include = random.random() < 0.5
        d.add("countIncludePad", Argument(include, include))
        divisor = random.choice((0, 0, 0, 2, -3, 300))
        divisor = divisor if d.two or divisor or random.random() < 0.05 else None
        d.add("divisorOverride", Argument(divisor, divisor))
        if d.two:
            old = d.drawn.product in ("Ascend910", "Ascend310P") and d.dtype == "float32"
            mode = random.choice((1, 2) if old and random.random() < 0.9 else (0, 0, 1, 2, 3))
            d.add("cubeMathType", Argument(mode, mode))
        d.add("out", d.out("out", (*leading, *pooled), d.dtype))

    @staticmethod
    def expected(drawn, values, a):
        two = drawn.face == "two-phase"
        kernel = rules.pair(a["kernelSize" if two else "kernel_size"])
        stride, pad = (
            rules.pair(a["strides" if two else "stride"] or kernel),
            rules.pair(a["paddings" if two else "padding"]),
        )
        include = a["countIncludePad" if two else "count_include_pad"]
        divisor = a["divisorOverride" if two else "divisor_override"]
        ceil = a["ceilMode" if two else "ceil_mode"]
        return [avg_pool2d(values, kernel, stride, pad, ceil, include, divisor or None)]

    @staticmethod
    def fresh(meaning):
        view = meaning["self"]
        arrays = [meaning[name] for name in ("kernel_size", "stride", "padding")]
        kernel, stride, pad = arrays
        stride = rules.Ints() if stride is None else stride
        if not (isinstance(view, rules.View) and all(isinstance(one, rules.Ints) for one in (kernel, stride, pad))):
            return None
        stride = stride or kernel
        shape = view.shape if view.rank <= rules.MOST_RANK else None
        if view.rank in (3, 4) and all(len(array) in (1, 2) for array in (kernel, stride, pad)):
            kept = list(shape)
            axes = zip(shape[-2:], *map(rules.pair, (kernel, stride, pad)), strict=True)
            for i, (size, k, s, p) in enumerate(axes):
                if k > 0 and s > 0 and 0 <= p <= k // 2:
                    windows = rules.pooled(size, k, s, p, bool(meaning["ceil_mode"]))
                    kept[i - 2] = windows if windows > 0 else size
            shape = tuple(kept)
        return shape
