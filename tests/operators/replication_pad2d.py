"""ReplicationPad2d: what the tests know of it."""

import math
from typing import ClassVar

import numpy as np
from digest_calls import ALL, BOTH_WAYS, CHANNELS, DTYPES, WIDTHS, Call, Digested, Group, image
from engine_helpers import counted, sentinel_array
from fuzz import cases, rules
from fuzz.calls import DTYPES as EVERY_DTYPE
from fuzz.calls import tensor
from fuzz.cases import LARGEST_CASE, Case, assert_same, one_of

import aclnn_bw
from operators.base import Operator, on_products
from operators.replication_pad2d_backward import replication_pad2d

TAKEN = (
    "float32", "float16", "bfloat16", "float64", "complex64", "complex128", "int8", "uint8", "int16", "int32", "int64"
)  # fmt: skip
ON_HOST = (*TAKEN, "bool", "uint16", "uint32", "uint64")


def padded(shape, sides):
    left, right, top, bottom = sides
    *planes, height, width = shape
    return (*planes, height + top + bottom, width + left + right)


# ---- digested calls --------------------------------------------------------------------------------------------------


def pad(shape, *sides, **rest):
    return Call("ReplicationPad2d", shape, (sides,), **rest)


def digested_groups():
    for sides in ((1, 1, 1, 1), (2, 1, 0, 0), (4, 5, 6, 7), (0, 0, 0, 0), (-1, 1, 1, -1)):
        calls = [
            pad(shape, *sides)
            for number, width in enumerate(WIDTHS)
            if width + sides[0] + sides[1] > 0 and (shape := image(number, width))
        ]
        yield f"pads {sides}, widths", Group(calls, ALL)
    calls = [
        pad((1, 2, 3, width), left, right, 20, 2)
        for width in (1, 2, 9, 40)
        for left in (0, 15, 17, 33, 64, 300, -5)
        for right in (0, 2, 129, -3)
        if width + left + right > 0
    ]
    yield "wide pads and crops", Group(calls, ALL)
    for sides in ((1, 1, 1, 1), (3, 2, 0, 4), (-1, 2, 1, -2), (70, 80, 2, 1)):
        calls = [
            pad(shape, *sides, layout=layout, out=out)
            for layout, out in BOTH_WAYS
            for shape in ((2, 7, 6, 13), (1, 19, 3, 10), (1, 1, 2, 3))
        ]
        yield f"pads {sides}, layouts", Group(calls, ALL)
    calls = [
        pad((2, channels, 4, width), *sides, layout="channels_last", out=out, kind="special")
        for channels in (*CHANNELS, 31, 33, 64, 65)
        for width in (1, 9)
        for sides in ((1, 1, 1, 1), (2, 0, -1, 3))
        for out in ("contiguous", "channels_last")
    ]
    yield "channels last", Group(calls, ALL)
    calls = [
        pad((1, 2, 3, 1000), 1, 1, 1, 1), pad((1, 1, 2, 20001), 3000, 7000, 0, 1), pad((1, 3, 700, 9), 1, 2, 600, 0),
        pad((1, 1, 2, 70000), 1, 2, 1, 1, layout="channels_last"), pad((3, 2, 90, 100), 1, 2, 3, 4, kind="nothing"),
        pad((1, 32, 128, 128), 1, 1, 1, 1), pad((40, 3, 32, 32), 4, 4, 4, 4),
        pad((1, 64, 56, 56), 1, 1, 1, 1, layout="channels_last"),
    ]  # fmt: skip
    yield "long rows, tall planes and many", Group(calls, ALL)
    for dtype in ALL:
        batch = 32 // DTYPES[dtype].itemsize
        calls = [pad((batch, 8, 256, 262), 1, 1, 1, 1), pad((batch, 8, 256, 261), 3, 0, 0, 1, out="columns_cropped")]
        if dtype == "float32":
            calls += [pad((batch, 40, 120, 130), 2, 3, 3, 2, layout="channels_last", out="channels_last")]
        yield "beyond the caches", Group(calls, (dtype,))


class DigestedCalls(Digested):
    """Attribute: left, right, top, bottom."""

    def output_shapes(self, call):
        return [padded(call.shape, call.attributes[0])]

    def phase_1(self, call, inputs, outs):
        return [inputs[0], list(call.attributes[0]), outs[0]]

    def one_call(self, call, inputs, outs):
        return [aclnn_bw.replication_pad2d(inputs[0], *call.attributes, out=outs[0])]

    def groups(self):
        return digested_groups()


# ---- calls between guard pages ---------------------------------------------------------------------------------------


class Guarded(Case):
    dtypes: ClassVar[list] = [EVERY_DTYPE[name] for name in ON_HOST]

    def draw(self, rng):
        kind = one_of(rng, "any", "small", "small", "crop", "wide", "tall")
        shape = list(cases.image(rng))
        pads = [int(rng.integers(0, 9)) for _ in range(4)]
        if kind == "small":
            pads = [int(rng.integers(0, 4)) for _ in range(4)]
        elif kind == "crop":
            pads = [int(rng.integers(-4, 5)) for _ in range(4)]
        elif kind == "wide":
            pads = [int(one_of(rng, 0, 1, 40, 300)) for _ in range(4)]
        elif kind == "tall":
            shape[:-2] = [1] * (len(shape) - 3) + [int(rng.integers(1, 20))]
            shape[-2:] = [int(rng.integers(1, 30)), int(rng.integers(200, 4000))]
        for i, axis in ((0, -1), (2, -2)):  # something must be left
            if shape[axis] + pads[i] + pads[i + 1] < 1:
                pads[i] = max(pads[i], 1 - shape[axis] - pads[i + 1])
        if kind == "crop" and rng.random() < 0.05:
            pads[0], pads[1] = pads[0] + 1000, pads[1] - 1000
        self.pads, self.shape = tuple(pads), tuple(shape)
        while math.prod(padded(self.shape, self.pads)) > 2 * LARGEST_CASE and shape[-3] > 1:
            shape[-3] //= 2
            self.shape = tuple(shape)

    def numbers(self):
        return {"padding": self.pads}

    def tensors(self):
        return {"self": (self.shape, self.dtype, "read"), "out": (padded(self.shape, self.pads), self.dtype, "written")}

    def check(self, inputs, outputs):
        assert_same(outputs["out"], replication_pad2d(inputs["self"], self.pads))

    def phase1(self, t):
        return t["self"], self.pads, t["out"]

    def one_call(self, t):
        aclnn_bw.replication_pad2d(t["self"], self.pads, out=t["out"])


# ---- the operator ----------------------------------------------------------------------------------------------------


class ReplicationPad2d(Operator):
    declaration = "const aclTensor *self, const aclIntArray *padding, aclTensor *out"
    signature = "self, padding, *, out=None"
    headers = ("aclnn_replication_pad2d.h",)
    roles: ClassVar[dict] = {"self": "read", "out": "written"}
    dtypes = on_products(TAKEN, TAKEN, TAKEN, ON_HOST)
    geometries: ClassVar[list] = [
        {},
        {"shape": (3, 9, 13), "padding": (4, 0, 0, 5)},
        {"shape": (2, 3, 5, 6), "padding": (9, 8, 7, 6)},
        {"shape": (2, 3, 15, 16), "padding": (-2, 3, 1, -4)},  # needs Host
        {"shape": (1, 2, 200, 300), "padding": (10, 20, 30, 40)},
        {"shape": (0, 2, 9, 9)},
    ]
    page = "replication_pad2d"
    enums = ("Layout",)
    demo = ("1  1  2  3  3", "out: 20 of 20")
    copies = True
    guarded = Guarded
    digested = DigestedCalls()

    def make(self, padding=(1, 2, 1, 0)):
        out = sentinel_array(padded(self.shape, padding), self.dtype)
        return {"self": self.integers(*self.shape), "padding": padding, "out": out}

    def twin(self):
        return {"out": replication_pad2d(self["self"], self["padding"])}

    @classmethod
    def sample(cls):
        out = np.empty((1, 1, 4, 5), np.float32)
        cls.by_phases(counted((1, 1, 3, 3), 1), [1, 1, 1, 0], out)
        return {"out": out}

    @staticmethod
    def rules(j, c, a):
        two = c.face == "two-phase"
        rules.nulls(j, a, "self", "padding", *["out"] * two)
        written = ["out"] * (a["out"] is not None)
        for name in ("self", *written):
            j.refuse(a[name].format in rules.PRIVATE or a[name].format == rules.UNDEFINED, "format", name)
            j.refuse(a[name].format != a["self"].format, "formats differ", name)
        j.stage()
        rules.dtypes(j, c, a, "self", "self", *written)
        j.stage()
        rules.ranks(j, a, (3, 4), "self", *written)
        j.stage()
        pads = a["padding"] * 4 if a["padding"].bare else a["padding"]
        j.refuse(len(pads) != 4, "length", "padding")
        j.stage()
        left, right, top, bottom = pads
        height, width = a["self"].shape[-2:]
        if c.product != "Host":
            rules.at_least(j, 0, "padding", pads)
            j.stage()
            j.refuse(max(left, right) >= width or max(top, bottom) >= height, "as large as the image", "padding")
        j.stage()
        shape = padded(a["self"].shape, pads)
        j.refuse(min(shape[-2:]) < 1 or max(shape[-2:]) not in rules.INT64, "nothing left", "padding")
        j.stage()
        if written:
            rules.shape_is(j, a, "out", shape)
        j.stage()
        j.refuse(0 in a["self"].shape[-3:], "no elements", "self")
        j.stage()
        rules.not_too_large(j, a, "self", *written, fresh=None if written else shape)
        rules.memory(j, a, ("self",), (), ("out",))

    @staticmethod
    def draw(d):
        random = d.random
        least = -2 if d.drawn.product == "Host" else 0
        while True:
            size = (random.randint(1, 9), random.randint(1, 9))
            pads = tuple(random.randint(least, 4) for _ in range(4))
            if random.random() < 0.1:
                pads = pads[:1] * 4
            fits = max(pads[:2]) < size[1] and max(pads[2:]) < size[0]
            if min(padded(size, pads)) >= 1 and (d.drawn.product == "Host" or fits or random.random() < 0.1):
                break
        leading = d.leading()
        d.add("self", tensor(random, (*leading, *size), d.dtype, how=d.how))
        d.add("padding", d.ints(pads, exact=d.two))
        d.add("out", d.out("out", (*leading, *padded(size, pads)), d.dtype))

    @staticmethod
    def expected(drawn, values, a):
        pads = a["padding"] * 4 if len(a["padding"]) == 1 else a["padding"]
        return [replication_pad2d(values, pads)]

    @staticmethod
    def fresh(meaning):
        view, pads = meaning["self"], meaning["padding"]
        if not (isinstance(view, rules.View) and isinstance(pads, rules.Ints)):
            return None
        pads = pads * 4 if pads.bare else pads
        shape = view.shape
        if view.rank >= 2 and view.rank <= rules.MOST_RANK and len(pads) == 4:
            sizes = padded(shape, pads)[-2:]
            sums = pads[2] + pads[3], pads[0] + pads[1]
            good = [s >= 0 and s in rules.INT64 and both in rules.INT64 for s, both in zip(sizes, sums, strict=True)]
            last = [new if fits else old for new, old, fits in zip(sizes, shape[-2:], good, strict=True)]
            shape = (*shape[:-2], *last)
        return shape if view.rank <= rules.MOST_RANK else None
