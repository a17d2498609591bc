"""Im2col: what the tests know of it."""

import math
from itertools import product
from typing import ClassVar

import numpy as np
from digest_calls import (
    ALL,
    BOTH_WAYS,
    CHANNELS,
    DTYPES,
    FEW_WIDTHS,
    MIDDLE,
    REAL,
    STRIDED,
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
from fuzz.calls import DTYPES as EVERY_DTYPE
from fuzz.calls import tensor
from fuzz.cases import LARGEST_CASE, Case, assert_same, one_of
from fuzz.results import MOST_POSITIONS
from reference import pair, pooled_shape, round_bfloat16

import aclnn_bw
from operators.base import NONE, WITH_BF16, Operator, on_products
from operators.base import REAL as FLOATS
from operators.im2col_backward import im2col
from operators.replication_pad2d import ON_HOST


def column_shape(shape, kernel, dilation, padding, stride):
    windows = pooled_shape(shape[-2:], kernel, stride, padding, False, dilation)
    *batch, channels, _, _ = shape
    return (*batch, channels * math.prod(pair(kernel)), math.prod(windows))


def converted(values, dtype):
    """Each element rounded once to the dtype; ml_dtypes alone goes from float64 to bfloat16 by way of float32."""
    with np.errstate(over="ignore", invalid="ignore"):
        if values.dtype == np.float64 and dtype == EVERY_DTYPE["bfloat16"]:
            values = round_bfloat16(values)
        return values.astype(dtype)


# ---- digested calls --------------------------------------------------------------------------------------------------


def columns(shape, kernel, dilation=1, padding=0, stride=1, **rest):
    return Call("Im2col", shape, (kernel, dilation, padding, stride), **rest)


def digested_groups():
    hot = {
        "k3 p1": (3, 1, 1, 1), "k3 d2 p2": (3, 2, 2, 1), "k3 s2 p1": (3, 1, 1, 2), "k2 s2": (2, 1, 0, 2),
        "k3 s3": (3, 1, 0, 3), "k1": (1, 1, 0, 1),
    }  # fmt: skip
    for name, attributes in hot.items():
        kernel, dilation, padding, stride = attributes
        calls = [
            columns(shape, *attributes)
            for number, width in enumerate(WIDTHS)
            if fits(shape := narrow_image(number, width), kernel, stride, padding, False, dilation)
        ]
        yield f"{name}, widths", Group(calls, ALL)
    other = [
        (1, 1, 0, 5), (2, 3, 1, 2), (3, 1, 2, 3), (4, 1, 2, 3), (5, 2, 4, 2), (5, 1, 0, 5), (7, 1, 3, 2), (8, 1, 2, 4),
        (3, 3, 3, 4), (2, 1, 1, 3), (6, 1, 3, 6), (2, 5, 3, 7), (3, 1, 40, 1), (2, 1, 30, 2), (11, 1, 2, 4),
        (3, 1, 9, 3),
    ]  # fmt: skip
    calls = [
        columns(shape, kernel, dilation, padding, stride)
        for number, ((kernel, dilation, padding, stride), width) in enumerate(product(other, FEW_WIDTHS))
        if fits(shape := narrow_image(number, width, 11), kernel, stride, padding, False, dilation)
    ]
    yield "other kernels, widths", Group(calls, ALL)
    for name, attributes in hot.items():
        kernel, dilation, padding, stride = attributes
        calls = [
            columns(shape, *attributes, layout=layout, out=out)
            for (layout, out), shape in product(BOTH_WAYS, ((2, 5, 6, 7), (1, 35, 4, 10), (1, 2, 5, 33)))
            if fits(shape, kernel, stride, padding, False, dilation)
        ]
        yield f"{name}, layouts", Group(calls, ALL)
    calls = [
        columns((1, channels, 9, width), *attributes, layout=layout, out=out, kind="special")
        for channels, width, attributes, layout, out in product(
            (*CHANNELS, 33, 65), (5, 9, 20), ((3, 1, 1, 1), (3, 1, 0, 3)), ("channels_last", "contiguous"),
            ("contiguous", "channels_last"))
    ]  # fmt: skip
    calls += [columns((2, 35, 4, 10), 3, 1, 1, layout="channels_last", out=out) for out in STRIDED]
    yield "channels last", Group(calls, ALL)
    calls = [
        columns((1, 2, 4, 1000), 3, 1, 1), columns((1, 1, 3, 4099), 2, 1, 0, 2), columns((1, 2, 1500, 8), 3, 1, 1),
        columns((1, 1, 2, 20001), 2), columns((1, 1, 2, 3001), 2, layout="channels_last"),
        columns((2, 2, 5, 6), 2, 2**32, 2**31), columns((2, 2, 5, 6), (2, 1), (2**32, 1), (2**31, 0), (1, 2**33)),
        columns((1, 2, 9, 9), 1, 1, 0, 40), columns((1, 3, 9, 30), (3, 30), 1, (1, 100), 1),
        columns((1, 2, 9, 70), (1, 80), (1, 3), (0, 100), (3, 20)), columns((1, 1, 99, 9), (65, 2), 1, (3, 0)),
        columns((1, 3, 64, 64), 16, 1, 0, 16), columns((1, 64, 56, 56), 3, 1, 1, layout="channels_last"),
        columns((1, 2, 1025, 1026), 1, layout="channels_last"), columns((20, 9, 14, 14), 3, 1, 1, kind="nothing"),
    ]  # fmt: skip
    yield "long rows, wide pads, large kernels", Group(calls, ALL)
    for rest in REAL:
        calls = [
            columns((2, 3, 9, 21), *attributes, rest=rest, layout=layout, out=out, kind=kind)
            for attributes, layout, out, kind in product(
                ((3, 1, 1, 1), (2, 1, 0, 2), (5, 1, 0, 7)), ("contiguous", "rows_reversed"),
                ("contiguous", *STRIDED),
                ("plain", "special"))
        ]  # fmt: skip
        yield f"to {rest}", Group(calls, tuple(dtype for dtype in REAL if dtype != rest))
    for dtype in ALL:
        batch = 32 // DTYPES[dtype].itemsize
        calls = [
            columns((batch, 25, 62, 61), 3, 1, 1), columns((batch, 25, 64, 63), 3),
            columns((batch, 100, 62, 61), 3, 1, 1, 2),
        ]  # fmt: skip
        yield "beyond the caches", Group(calls, (dtype,))


class DigestedCalls(Digested):
    """Attributes: kernel, dilation, padding, stride."""

    def output_shapes(self, call):
        return [column_shape(call.shape, *call.attributes)]

    def output_dtypes(self, call, dtype):
        return [DTYPES[call.rest] if call.rest else dtype]

    def layouts(self, call):
        return call.layout, [MIDDLE.get(call.out, call.out)]

    def phase_1(self, call, inputs, outs):
        return [inputs[0], *as_pairs(call.attributes), outs[0]]

    def one_call(self, call, inputs, outs):
        return [aclnn_bw.im2col(inputs[0], *call.attributes, out=outs[0])]

    def groups(self):
        return digested_groups()


# ---- calls between guard pages ---------------------------------------------------------------------------------------


class Guarded(Case):
    dtypes: ClassVar[list] = [EVERY_DTYPE[name] for name in ON_HOST]
    channel_axes: ClassVar[dict] = {"out": -2}

    def draw(self, rng):
        kind = one_of(rng, "any", "flat", "turned", "wide", "far")
        shape = list(cases.image(rng))
        kernel = [int(rng.integers(1, 6)) for _ in range(2)]
        dilation = [int(one_of(rng, 1, 1, 2, 3)) for _ in range(2)]
        stride = [int(one_of(rng, 1, 1, 2, 3, 4)) for _ in range(2)]
        if kind == "flat":
            kernel, dilation, stride = [int(one_of(rng, 1, 3, 5))] * 2, [int(one_of(rng, 1, 2))] * 2, [1, 1]
        elif kind == "turned":
            dilation[1], stride[1] = 1, int(rng.integers(3, 17))
            kernel[1] = int(rng.integers(3, 20))
        elif kind == "wide":
            shape[:-2] = [1] * (len(shape) - 3) + [int(rng.integers(1, 4))]
            shape[-1] = int(rng.integers(200, 3000))
        pad = [k * d // 2 if kind == "flat" else int(one_of(rng, 0, 1, k * d // 2, int(rng.integers(0, k * d + 3))))
               for k, d in zip(kernel, dilation, strict=True)]  # fmt: skip
        for i in range(2):
            reach = dilation[i] * (kernel[i] - 1) + 1
            if kind == "far" and rng.random() < 0.5:  # one window, nearly all of it padding
                pad[i], stride[i] = one_of(rng, (10**4, 3 * 10**4), (2**31, 2**33), (2**40, 2**42), (2**61, 2**62))
            elif kind == "far":  # the image lies at one kernel position
                kernel[i], dilation[i] = 3, one_of(rng, 10**4, 2**31, 2**40, 2**61)
                pad[i], reach = dilation[i], 2 * dilation[i] + 1
            shape[i - 2] = max(shape[i - 2], reach - 2 * pad[i], 1)
        self.attributes = tuple(map(tuple, (kernel, dilation, pad, stride)))
        self.shape = tuple(shape)
        while math.prod(self.columns()) > 4 * LARGEST_CASE:
            axis = -3 if shape[-3] > 1 else 0 if len(shape) == 4 and shape[0] > 1 else int(np.argmax(shape))
            shape[axis] = max(shape[axis] // 2, 1)
            self.shape = tuple(shape)
            if min(pooled_shape(shape[-2:], kernel, stride, pad, False, dilation)) < 1 or math.prod(shape) == 1:
                self.attributes, self.shape = ((1, 1), (1, 1), (0, 0), (1, 1)), (1, 1, 7)
                break
        floats = [dtype for dtype in self.dtypes if dtype.name in FLOATS]
        self.out_dtype = one_of(rng, *floats) if self.dtype in floats and rng.random() < 0.3 else self.dtype

    def columns(self):
        return column_shape(self.shape, *self.attributes)

    def numbers(self):
        return dict(zip(("kernel", "dilation", "padding", "stride"), self.attributes, strict=True))

    def tensors(self):
        return {"self": (self.shape, self.dtype, "read"), "out": (self.columns(), self.out_dtype, "written")}

    def check(self, inputs, outputs):
        assert_same(outputs["out"], converted(im2col(inputs["self"], *self.attributes), self.out_dtype))

    def phase1(self, t):
        return t["self"], *self.attributes, t["out"]

    def one_call(self, t):
        aclnn_bw.im2col(t["self"], *self.attributes, out=t["out"])


MOST_ELEMENTS = 1 << 24  # of an image's columns, which an empty batch may have any number of


# ---- the operator ----------------------------------------------------------------------------------------------------


class Im2col(Operator):
    declaration = (
        "const aclTensor *self, const aclIntArray *kernelSize, const aclIntArray *dilation, "
        "const aclIntArray *padding, const aclIntArray *stride, const aclTensor *out"
    )
    signature = "self, kernel_size, dilation=1, padding=0, stride=1, *, out=None"
    headers = ("aclnn_im2col.h",)
    roles: ClassVar[dict] = {"self": "read", "out": "written"}
    dtypes = on_products(NONE, NONE, WITH_BF16, ON_HOST)
    geometries: ClassVar[list] = [
        {},
        {"shape": (3, 9, 13), "kernel": (3, 3), "padding": (1, 1)},
        {"shape": (2, 3, 57, 58), "kernel": (3, 2), "dilation": (2, 3), "padding": (2, 1), "stride": (1, 2)},
        {"shape": (1, 2, 20, 20), "kernel": (4, 4), "stride": (4, 4)},
        {"shape": (1, 2, 200, 90), "kernel": (3, 3), "padding": (1, 1)},
        {"shape": (0, 2, 9, 9)},
    ]
    page = "im2col"
    core = "im2col_forward"
    enums = ("ForwardAlgorithm",)
    demo = ("0  2", "out: 8 of 8")
    copies = True
    guarded = Guarded
    digested = DigestedCalls()

    def make(self, kernel=(2, 2), dilation=(1, 1), padding=(0, 0), stride=(1, 1)):
        self.attributes = kernel, dilation, padding, stride
        out = sentinel_array(column_shape(self.shape, *self.attributes), self.dtype)
        return {
            "self": self.integers(*self.shape), "kernelSize": kernel, "dilation": dilation, "padding": padding,
            "stride": stride, "out": out,
        }  # fmt: skip

    def twin(self):
        return {"out": im2col(self["self"], *self.attributes)}

    @classmethod
    def sample(cls):
        out = np.empty((1, 4, 6), np.float32)
        cls.by_phases(counted((1, 1, 3, 4), 1), [2, 2], [1, 1], [0, 0], [1, 1], out)
        return {"out": out}

    @staticmethod
    def rules(j, c, a):
        two = c.face == "two-phase"
        arrays = ("kernelSize" if two else "kernel_size", "dilation", "padding", "stride")
        rules.nulls(j, a, "self", *arrays, *["out"] * two)
        written = ["out"] * (a["out"] is not None)
        rules.dtypes(j, c, a, None, "self", *written)
        j.stage()
        if written:
            mixes = a["self"].dtype != a["out"].dtype
            j.refuse(mixes and not {a["self"].dtype, a["out"].dtype} <= set(FLOATS), "dtypes differ", "out")
        j.stage()
        for name in ("self", *written):
            j.refuse(a[name].format in rules.PRIVATE, "format", name)
        j.stage()
        rules.ranks(j, a, (3, 4), "self")
        j.stage()
        j.refuse(0 in a["self"].shape[-3:], "no elements", "self")
        j.stage()
        rules.lengths(j, a, **dict.fromkeys(arrays, (2,) if two else (1, 2)))
        j.stage()
        for name in arrays:
            rules.at_least(j, 0 if name == "padding" else 1, name, a[name])
        j.stage()
        sizes = [rules.pair(a[name]) for name in arrays]
        axes = zip(a["self"].shape[-2:], *sizes, strict=True)
        windows = [rules.pooled(size, k, s, p, False, d) for size, k, d, p, s in axes]
        j.refuse(min(windows) < 1, "no window", "self")
        j.stage()
        *batch, channels, _, _ = a["self"].shape
        shape = (*batch, channels * math.prod(sizes[0]), math.prod(windows))
        # The package stops to count at the largest number.
        uncounted = max(windows) >= 2**63 - 1 or max(shape[-2:]) not in rules.INT64
        j.refuse(uncounted, "more columns than can be counted", "self")
        j.stage()
        if written:
            j.refuse(a["out"].rank != len(shape), "rank", "out")
            j.stage()
            rules.shape_is(j, a, "out", shape)
        j.stage()
        rules.not_too_large(j, a, "self", *written, fresh=None if written else shape)
        rules.memory(j, a, ("self",), (), ("out",))

    @staticmethod
    def draw(d):
        random = d.random
        while True:
            size = (random.randint(1, 9), random.randint(1, 9))
            kernel = (random.randint(1, 4), random.randint(1, 4))
            dilation = (random.randint(1, 2), random.randint(1, 2))
            pad, stride = (random.randint(0, 2), random.randint(0, 2)), (random.randint(1, 3), random.randint(1, 3))
            if random.random() < 0.2:  # the same along both axes
                kernel, pad, stride, dilation = ((v[0], v[0]) for v in (kernel, pad, stride, dilation))
            axes = zip(size, kernel, stride, pad, dilation, strict=True)
            if min(rules.pooled(*axis, False, d) for *axis, d in axes) >= 1:
                break
        shape = (*d.leading(), *size)
        d.add("self", tensor(random, shape, d.dtype))
        for name, values in (("kernelSize", kernel), ("dilation", dilation), ("padding", pad), ("stride", stride)):
            d.add(name, d.ints(values, exact=d.two))
        others = [dtype for dtype in Im2col.dtypes[d.drawn.product] if dtype in FLOATS]
        dtype = random.choice(others) if d.dtype in others and random.random() < 0.3 else d.dtype
        d.add("out", d.out("out", column_shape(shape, kernel, dilation, pad, stride), dtype))

    @staticmethod
    def expected(drawn, values, a):
        name = "kernelSize" if drawn.face == "two-phase" else "kernel_size"
        sizes = [rules.pair(a[one]) for one in (name, "dilation", "padding", "stride")]
        if math.prod(sizes[0]) > MOST_POSITIONS or math.prod(column_shape(values.shape, *sizes)[-2:]) > MOST_ELEMENTS:
            return None
        found = im2col(values, *sizes)
        return [found if a["out"] is None else converted(found, EVERY_DTYPE[a["out"].dtype])]

    @staticmethod
    def fresh(meaning):
        view = meaning["self"]
        arrays = [meaning[name] for name in ("kernel_size", "dilation", "padding", "stride")]
        if not (isinstance(view, rules.View) and all(isinstance(array, rules.Ints) for array in arrays)):
            return None
        batch = view.shape[:1] if view.rank == 4 else ()
        if view.rank in (3, 4) and all(len(array) in (1, 2) for array in arrays):
            sizes = [rules.pair(array) for array in arrays]
            if min(*sizes[0], *sizes[1], *sizes[3]) > 0 and min(sizes[2]) >= 0:
                axes = zip(view.shape[-2:], *sizes, strict=True)
                windows = [max(rules.pooled(size, k, s, p, False, d), 0) for size, k, d, p, s in axes]
                rows, length = view.shape[-3] * math.prod(sizes[0]), math.prod(windows)
                counted = max(windows) < 2**63 - 1
                if counted and math.prod(sizes[0]) in rules.INT64 and rows in rules.INT64 and length in rules.INT64:
                    return (*batch, rows, length)
        return (*batch, 1, 1)
