"""UpsampleNearestExact1d: what the tests know of it."""

import math
from typing import ClassVar

import numpy as np
from digest_calls import ALL, CHANNELS, DTYPES, MIDDLE, Call, Digested, Group
from engine_helpers import counted, sentinel_array
from fuzz import rules
from fuzz.calls import DTYPES as EVERY_DTYPE
from fuzz.calls import Argument, tensor
from fuzz.cases import LARGEST_CASE, Case, assert_same, channels, length, one_of

import aclnn_bw
from operators.base import BASIC, NONE, WITH_BF16, Operator, on_products
from operators.replication_pad2d import ON_HOST
from operators.upsample_nearest_exact1d_backward import nearest_exact_index


def upsample(x, output_length, scales=0.0):
    """Each element is a copy of one of x: `upsample_nearest_exact1d` without the loop."""
    return x[..., nearest_exact_index(np.arange(output_length), x.shape[-1], output_length, scales)]


# ---- digested calls --------------------------------------------------------------------------------------------------


def up(shape, length, scales=None, **rest):
    return Call("UpsampleNearestExact1d", shape, (length, scales), **rest)


def digested_groups():
    for numerator, denominator in ((2, 1), (1, 2), (3, 2), (1, 1), (5, 8), (7, 1)):
        calls = [
            up((1 + width % 2, CHANNELS[width % 8], width), max(1, width * numerator // denominator))
            for width in (*range(1, 40), 63, 64, 65, 127, 128, 129, 1000)
        ]
        yield f"ratio {numerator}:{denominator}", Group(calls, ALL)
    calls = [
        up((2, 3, width), length, scales)
        for width, length in ((7, 20), (100, 33), (1, 9), (64, 128), (128, 64))
        for scales in (0.5, 1.7, 2.0, 1e-40, 1e30, -1.0, math.inf)
    ]
    yield "scales", Group(calls, ALL)
    calls = [
        up((2, 19, width), length, layout=layout, out=out, kind="special")
        for width, length in ((12, 24), (30, 15), (13, 31))
        for layout, out in (
            ("channels_last", "channels_last"), ("channels_last", "contiguous"), ("contiguous", "channels_last"),
            ("columns_reversed", "contiguous"), ("contiguous", "every_second_column"),
        )
    ]  # fmt: skip
    yield "layouts", Group(calls, ALL)
    calls = [
        up((1, 2, 40000), 70001), up((1, 2, 40000), 80000), up((2, 1, 80000), 40000), up((1, 3, 70001), 99),
        up((3, 40, 3000), 4000), up((3, 40, 3000), 6000, layout="channels_last", out="channels_last"),
    ]  # fmt: skip
    yield "long rows and many", Group(calls, ALL)
    for dtype in ALL:
        batch = 32 // DTYPES[dtype].itemsize
        calls = [
            up((batch, 64, 4099), 8198), up((batch, 64, 8194), 4097), up((batch, 64, 5000), 7001),
            up((batch, 8, 70000), 75000),
        ]  # fmt: skip
        yield "beyond the caches", Group(calls, (dtype,))


class DigestedCalls(Digested):
    """Attributes: the length, and scales or None."""

    def output_shapes(self, call):
        return [(*call.shape[:2], call.attributes[0])]

    def layouts(self, call):
        return MIDDLE.get(call.layout, call.layout), [MIDDLE.get(call.out, call.out)]

    def phase_1(self, call, inputs, outs):
        return [inputs[0], [call.attributes[0]], call.attributes[1] or 0.0, outs[0]]

    def one_call(self, call, inputs, outs):
        return [aclnn_bw.upsample_nearest_exact1d(inputs[0], *call.attributes, out=outs[0])]

    def groups(self):
        return digested_groups()


# ---- calls between guard pages ---------------------------------------------------------------------------------------


class Guarded(Case):
    dtypes: ClassVar[list] = [EVERY_DTYPE[name] for name in ON_HOST]
    channel_axes: ClassVar[dict] = {"self": -2, "out": -2}

    def draw(self, rng):
        kind = one_of(rng, "twice", "half", "any", "any", "scales", "long")
        planes = int(one_of(rng, 1, 1, 2, 3)), channels(rng)
        width, self.length, self.scales = length(rng, 2000), length(rng, 2000), 0.0
        if kind == "twice":
            self.length = 2 * width
        elif kind == "half":
            self.length, width = width, 2 * width
        elif kind == "scales":
            self.scales = float(one_of(rng, 0.5, 2.0, 1.7, 5e-324, 1e300, -3.0, math.inf, math.nan))
        elif kind == "long":
            width, self.length = int(rng.integers(1, 90000)), int(rng.integers(65000, 90000))
        while math.prod(planes) * max(width, self.length) > 3 * LARGEST_CASE and planes[1] > 1:
            planes = (1, planes[1] // 2)
        self.shape = (*planes, width)

    def numbers(self):
        return {"scales": self.scales}

    def tensors(self):
        out = (*self.shape[:2], self.length)
        return {"self": (self.shape, self.dtype, "read"), "out": (out, self.dtype, "written")}

    def check(self, inputs, outputs):
        assert_same(outputs["out"], upsample(inputs["self"], self.length, self.scales))

    def phase1(self, t):
        return t["self"], [self.length], self.scales, t["out"]

    def one_call(self, t):
        aclnn_bw.upsample_nearest_exact1d(t["self"], self.length, self.scales, out=t["out"])


# ---- the operator ----------------------------------------------------------------------------------------------------


class UpsampleNearestExact1d(Operator):
    declaration = "const aclTensor *self, const aclIntArray *outputSize, double scales, aclTensor *out"
    signature = "self, output_size, scales=None, *, out=None"
    headers = ("aclnn_upsample_nearest_exact1d.h",)
    roles: ClassVar[dict] = {"self": "read", "out": "written"}
    dtypes = on_products(NONE, BASIC, (*WITH_BF16, "uint8"), ON_HOST)
    geometries: ClassVar[list] = [
        {},
        {"shape": (2, 3, 1, 26), "factor": 0.5},
        {"shape": (3, 5, 100, 40), "factor": 1.5},
        {"shape": (1, 2, 3, 43), "factor": 7.3, "scales": 7.1},
        {"shape": (4, 16, 64, 32), "factor": 0.25, "scales": -1.0},
    ]
    page = "upsample_nearest_exact1d"
    core = "upsample_nearest_exact1d_forward"
    enums = ("ForwardLayout", "Way")
    demo = ("0  2  4", "out: 3 of 3")
    copies = True
    guarded = Guarded
    digested = DigestedCalls()

    def make(self, factor=2.0, scales=0.0):
        """Rows of H*W become `factor` times as long."""
        shape = *(1, *self.shape[:-2])[-2:], self.shape[-2] * self.shape[-1]
        length = int(shape[2] * factor)
        out = sentinel_array((*shape[:2], length), self.dtype)
        return {"self": self.integers(*shape), "outputSize": (length,), "scales": scales, "out": out}

    def twin(self):
        return {"out": upsample(self["self"], self["outputSize"][0], self["scales"])}

    @classmethod
    def sample(cls):
        out = np.empty((1, 2, 3), np.float32)
        cls.by_phases(counted((1, 2, 5), 1), [3], 0.0, out)
        return {"out": out}

    @staticmethod
    def rules(j, c, a):
        two = c.face == "two-phase"
        lo = "outputSize" if two else "output_size"
        rules.nulls(j, a, "self", *["out"] * two)
        rules.nulls(j, a, lo)
        written = ["out"] * (a["out"] is not None)
        rules.dtypes(j, c, a, "self", "self", *written)
        j.stage()
        for name in ("self", *written):
            j.refuse(a[name].format not in (rules.NCL, rules.ND), "format", name)
            j.refuse(a[name].format != a["self"].format, "formats differ", name)
        j.stage()
        rules.ranks(j, a, (3,), "self", *written)
        j.stage()
        rules.lengths(j, a, **{lo: (1,)})
        j.stage()
        shape = a["self"].shape
        j.refuse(0 in shape, "no elements", "self")
        rules.at_least(j, 1, lo, a[lo])
        j.stage()
        if written:
            rules.shape_is(j, a, "out", (*shape[:2], *a[lo]))
        j.stage()
        rules.not_too_large(j, a, "self", *written, fresh=None if written else (*shape[:2], *a[lo]))
        rules.memory(j, a, ("self",), (), ("out",))

    @staticmethod
    def draw(d):
        random = d.random
        leading = d.leading(least=1)
        leading = leading if len(leading) == 2 else (1, *leading)
        li, lo = random.choice((1, 2, 3, 8, 20, 33)), random.choice((1, 2, 4, 5, 16, 31, 50))
        if random.random() < 0.02:  # a size of 0, which fits
            leading, li = random.choice((((0, 1), li), ((1, 0), li), (leading, 0)))
        d.add("self", tensor(random, (*leading, li), d.dtype, how=d.how))
        d.add("outputSize", d.ints((lo,)))
        scales = random.choice((0.0, 0.0, lo / max(li, 1), 1.7, -2.0, math.inf) if d.two else (None, 0.0, 1.7, 1e-5))
        d.add("scales", Argument(scales, scales))
        d.add("out", d.out("out", (*leading, lo), d.dtype))

    @staticmethod
    def expected(drawn, values, a):
        lo = a["outputSize" if drawn.face == "two-phase" else "output_size"][0]
        return [upsample(values, lo, a["scales"] or 0.0)]

    @staticmethod
    def fresh(meaning):
        view, size = meaning["self"], meaning["output_size"]
        if not (isinstance(view, rules.View) and isinstance(size, rules.Ints)) or view.rank > rules.MOST_RANK:
            return None
        fits = view.rank == 3 and len(size) == 1 and size[0] > 0
        return (*view.shape[:2], size[0]) if fits else view.shape
