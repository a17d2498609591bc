"""ReplicationPad2dBackward: what the tests know of it."""

import math
from functools import lru_cache
from itertools import product
from typing import ClassVar

import numpy as np
from digest_calls import ALL, BOTH_WAYS, CHANNELS, DTYPES, WIDTHS, Call, Digested, Group, image, stand_in
from engine_helpers import counted, sentinel_array
from fuzz import cases, rules
from fuzz.calls import tensor
from fuzz.cases import COMPLEX, LARGEST_CASE, REAL, Case, assert_same, one_of, unreadable

import aclnn_bw
from operators.base import BASIC, Operator, on_products

TAKEN = (*BASIC, "float64", "complex64", "complex128")

# ---- the twin --------------------------------------------------------------------------------------------------------


def _clamped(size, before, after):
    """Along one axis, for each position of the padded image: the position in the image that it copies."""
    return [min(max(o - before, 0), size - 1) for o in range(size + before + after)]


def replication_pad2d(x, padding):
    """The image with its border repeated, or cropped where a pad is negative: the forward operator."""
    left, right, top, bottom = padding
    rows, columns = _clamped(x.shape[-2], top, bottom), _clamped(x.shape[-1], left, right)
    return x[..., rows, :][..., columns]


def replication_pad2d_backward(grad_output, input_shape, padding, dtype=np.float64):
    """Each element of `grad_output` is added to the input that its output copies."""
    left, right, top, bottom = padding
    grad_input = np.zeros(input_shape, dtype)
    for p, i in enumerate(_clamped(input_shape[-2], top, bottom)):
        for q, j in enumerate(_clamped(input_shape[-1], left, right)):
            grad_input[..., i, j] += grad_output[..., p, q].astype(dtype)
    return grad_input


def replication_pad2d_backward_quick(grad_output, input_shape, padding, dtype=np.float64):
    """`replication_pad2d_backward` with another order of the sum: one axis after the other."""
    left, right, top, bottom = padding
    height, width = input_shape[-2:]
    by_rows = np.zeros((*input_shape[:-1], grad_output.shape[-1]), dtype)
    np.add.at(by_rows, (..., _clamped(height, top, bottom), slice(None)), grad_output.astype(dtype))
    grad_input = np.zeros(input_shape, dtype)
    np.add.at(grad_input, (..., _clamped(width, left, right)), by_rows)
    return grad_input


@lru_cache(maxsize=1 << 14)
def _sums(size, before, after):
    """Along one axis, as a matrix: 1 where a position of the image is copied to one of the padded image."""
    return np.equal.outer(np.arange(size), _clamped(size, before, after)).astype(np.float64)


def replication_pad2d_backward_tiny(grad, shape, pads):
    """`replication_pad2d_backward` of planes of a few elements and finite values."""
    left, right, top, bottom = pads
    return _sums(shape[-2], top, bottom) @ grad @ _sums(shape[-1], left, right).T


# ---- digested calls --------------------------------------------------------------------------------------------------


def pad(shape, *sides, **rest):
    return Call("ReplicationPad2dBackward", shape, (sides,), **rest)


def digested_groups():
    for sides in ((1, 1, 1, 1), (2, 1, 0, 0), (0, 3, 2, 1), (4, 5, 6, 7), (0, 0, 0, 0), (-1, 1, 1, -1)):
        calls = [
            pad(shape, *sides)
            for number, width in enumerate(WIDTHS)
            if width + sides[0] + sides[1] > 0 and (shape := image(number, width))
        ]
        yield f"pads {sides}, widths", Group(calls, ALL)
    calls = [
        pad((*planes, height, width), left, right, top, bottom)
        for number, (height, width, (left, right), (top, bottom)) in enumerate(product(
            (1, 2, 6), (1, 2, 17), ((0, 0), (1, 0), (0, 1), (3, 2), (20, 70), (-1, 2), (2, -1), (-3, 9), (40, -20)),
            ((0, 0), (1, 0), (0, 1), (2, 3), (20, 9), (-1, 2), (2, -1), (-5, 8))))
        if width + left + right > 0 and height + top + bottom > 0
        and (planes := (1 + number % 2, CHANNELS[number % 8])[number % 3 // 2 :])
    ]  # fmt: skip
    yield "any pads", Group(calls, ALL)
    calls = [
        pad((1, 2, 5, width), left, right, top, bottom, out=out, layout=layout)
        for width, left, right, top, bottom, (layout, out) in product(
            (1, 2, 6), range(4), (0, 1, 3), (0, 1, 4), (0, 2),
            (("contiguous", "contiguous"), ("columns_reversed", "channels_last")))
    ]  # fmt: skip
    yield "small pads", Group(calls, ALL)
    calls = [
        pad((1, 2, 3, width), left, right, 1, 2)
        for width, left, right in product((2, 9, 40), (5, 15, 16, 17, 31, 33, 63, 64, 65, 100, 300), (0, 2, 64, 129))
    ]
    yield "wide pads", Group(calls, ALL)
    for sides in ((1, 1, 1, 1), (3, 2, 0, 4), (-1, 2, 1, -2), (0, 1, 0, 0), (70, 80, 2, 1)):
        calls = [
            pad(shape, *sides, layout=layout, out=out)
            for (layout, out), shape in product(BOTH_WAYS, ((2, 7, 6, 13), (1, 19, 3, 10)))
        ]
        yield f"pads {sides}, layouts", Group(calls, ALL)
    calls = [
        pad((2, channels, 4, width), *sides, layout="channels_last", out=out)
        for channels, width, sides, out in product(
            (*range(1, 18), 31, 32, 33, 64, 65), (1, 9), ((1, 1, 1, 1), (2, 0, -1, 3)), ("contiguous", "channels_last"))
    ]  # fmt: skip
    yield "channels last", Group(calls, ALL)
    calls = [
        pad((1, 2, 3, 1000), 1, 1, 1, 1), pad((1, 1, 3, 20001), 3, 2, 1, 1), pad((1, 1, 2, 20001), 3000, 7000, 0, 1),
        pad((1, 1, 3000, 5), 1, 2, 600, 3), pad((1, 3, 700, 9), 1, 2, 0, 0), pad((1, 3, 2, 3000), 4, 4, 20, 20),
        pad((1, 3, 1, 3000), 4, 4, 20, 20), pad((1, 2, 9, 1), 4000, 5, 2, 2),
        pad((1, 17, 9, 9), 300, 400, 20, 40, layout="channels_last"),
    ]  # fmt: skip
    yield "long rows and tall planes", Group(calls, ALL)
    calls = [
        pad((2, 5, 9, width), *sides, kind="special", layout=layout)
        for width, sides, layout in product(
            (7, 16, 35), ((1, 1, 1, 1), (3, 2, 0, 4), (-1, 2, 1, -2), (70, 80, 9, 5)), ("contiguous", "channels_last"))
    ]  # fmt: skip
    yield "special values", Group(calls, ALL)
    calls = [
        pad((2, 5, 9, width), *sides, kind="nothing", layout=layout)
        for width, sides, layout in product((7, 35), ((1, 1, 1, 1), (-1, 2, 1, -2)), ("contiguous", "channels_last"))
    ]
    yield "nothing but -0.0", Group(calls, ALL)
    large = [pad((2, 16, 400, 400), 1, 1, 1, 1, kind="nothing"), pad((2, 16, 400, 400), 1, 0, 1, 0)]
    yield "streamed, to the last column", Group(large, ("float64",))
    for dtype in ALL:
        batch = 32 // DTYPES[dtype].itemsize
        calls = [pad((batch, 8, 256, 262), 1, 1, 1, 1)]
        if dtype == "float32":
            calls += [
                pad((batch, 2, 510, 520), 30, 20, 10, 40),
                pad((batch, 40, 120, 130), 2, 3, 3, 2, layout="channels_last"),
                pad((batch, 40, 120, 130), 2, 3, 3, 2, layout="channels_last", out="channels_last"),
                pad((1, batch, 256 * 8, 262), 2, 3, 0, 0),
            ]  # fmt: skip
        elif dtype in ("float16", "complex128"):
            calls += [pad((batch, 40, 120, 130), 2, 3, 3, 2, layout="channels_last")]
        yield "beyond the caches", Group(calls, (dtype,))
    calls = [
        pad((1, 32, 128, 128), 1, 1, 1, 1), pad((1, 1, 540, 960), 10, 20, 30, 40), pad((40, 3, 32, 32), 4, 4, 4, 4),
        pad((1, 64, 56, 56), 1, 1, 1, 1, layout="channels_last"),
        pad((1, 64, 56, 56), 1, 1, 1, 1, layout="channels_last", out="channels_last"),
        pad((1, 70, 30, 61), 2, 1, 0, 3, layout="channels_last", out="planes_transposed"),
    ]  # fmt: skip
    yield "large", Group(calls)


class DigestedCalls(Digested):
    """Attribute: left, right, top, bottom."""

    def input_shape(self, call):
        ((left, right, top, bottom),) = call.attributes
        *planes, height, width = call.shape
        return (*planes, height + top + bottom, width + left + right)

    def phase_1(self, call, inputs, outs):
        return [inputs[0], stand_in(call, outs[0]), list(call.attributes[0]), outs[0]]

    def one_call(self, call, inputs, outs):
        return [aclnn_bw.replication_pad2d_backward(inputs[0], call.shape, *call.attributes, out=outs[0])]

    def groups(self):
        return digested_groups()


# ---- calls between guard pages ---------------------------------------------------------------------------------------


class Guarded(Case):
    dtypes = REAL + COMPLEX

    def draw(self, rng):
        kind = one_of(rng, "any", "small", "small", "zero", "crop", "wide", "tall", "large")
        shape = list(cases.image(rng))
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
        wanted = replication_pad2d_backward_quick(grad, self.shape, self.pads, dtype=wide)
        assert_same(outputs["gradInput"], wanted.astype(self.dtype))

    def phase1(self, t):
        return t["gradOutput"], unreadable(self.shape, self.dtype), self.pads, t["gradInput"]

    def one_call(self, t):
        stand_in = unreadable(self.shape, self.dtype)
        aclnn_bw.replication_pad2d_backward(t["gradOutput"], stand_in, self.pads, out=t["gradInput"])


# ---- the operator ----------------------------------------------------------------------------------------------------


class ReplicationPad2dBackward(Operator):
    declaration = "const aclTensor *gradOutput, const aclTensor *self, const aclIntArray *padding, aclTensor *gradInput"
    signature = "grad_output, self, padding, *, out=None"
    headers = ("aclnn_pad2d_backward.h",)
    roles: ClassVar[dict] = {"gradOutput": "read", "self": "shape", "gradInput": "written"}
    dtypes = on_products(TAKEN, TAKEN, (*TAKEN, "bfloat16"), (*TAKEN, "bfloat16"))
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
    demo = ("4  4", "gradInput: 4 of 4")
    picture = (4, 6), lambda g: aclnn_bw.replication_pad2d_backward(g, (1, 3, 3), (1, 2, 1, 0))
    guarded = Guarded
    digested = DigestedCalls()

    def make(self, padding=(1, 2, 1, 0)):
        left, right, top, bottom = padding
        *planes, height, width = self.shape
        return {
            "gradOutput": self.integers(*planes, height + top + bottom, width + left + right),
            "self": self.integers(*self.shape), "padding": padding, "gradInput": sentinel_array(self.shape, self.dtype),
        }  # fmt: skip

    def twin(self):
        wide = np.complex128 if self.dtype.kind == "c" else np.float64
        return {"gradInput": replication_pad2d_backward_quick(self["gradOutput"], self.shape, self["padding"], wide)}

    @classmethod
    def sample(cls):
        out = np.empty((1, 1, 3, 3), np.float32)
        cls.by_phases(counted((1, 1, 4, 6), 1), out, [1, 2, 1, 0], out)
        return {"gradInput": out}

    @staticmethod
    def rules(j, c, a):
        two = c.face == "two-phase"
        grad, out = ("gradOutput", "gradInput") if two else ("grad_output", "out")
        rules.nulls(j, a, grad, "self", "padding", *[out] * two)
        written = [out] * (a[out] is not None)
        rules.dtypes(j, c, a, grad, grad, "self", *written)
        j.stage()
        rules.ranks(j, a, (3, 4), grad, "self", *written)
        for name in (grad, "self", *written):
            j.refuse(a[name].format in rules.PRIVATE or a[name].format == rules.UNDEFINED, "format", name)
            j.refuse(a[name].format != a[grad].format, "formats differ", name)
        j.stage()
        pads = a["padding"] * 4 if a["padding"].bare else a["padding"]
        j.refuse(len(pads) != 4, "length", "padding")
        j.stage()
        left, right, top, bottom = pads
        if c.product != "Host":
            rules.at_least(j, 0, "padding", pads)
            limited = a[grad].dtype == "bfloat16" and (top or bottom)
            j.refuse(limited and max(pads) > 7, "bfloat16 limit", "padding")
        j.stage()
        shape = a["self"].shape
        height, width = shape[-2:]
        j.refuse(0 in shape[-3:], "no elements", "self")
        if c.product != "Host":
            j.refuse(max(left, right) >= width or max(top, bottom) >= height, "as large as the image", "padding")
        padded = (height + top + bottom, width + left + right)
        j.refuse(min(padded) < 1 or max(padded) not in rules.INT64, "nothing left", "padding")
        if written:
            rules.shape_is(j, a, out, shape)
        rules.shape_is(j, a, grad, (*shape[:-2], *padded))
        j.stage()
        rules.not_too_large(j, a, grad, *written, fresh=None if written else shape)
        rules.memory(j, a, (grad,), ("self",), (out,))

    @staticmethod
    def draw(d):
        random = d.random
        least = -2 if d.drawn.product == "Host" else 0
        while True:
            size = (random.randint(1, 9), random.randint(1, 9))
            pads = tuple(random.randint(least, 4) for _ in range(4))
            if random.random() < 0.1:
                pads = pads[:1] * 4
            wide = random.random() < (0.3 if d.dtype == "bfloat16" else 0.1)
            if wide:
                size, pads = (9, 10), tuple(random.choice((0, 0, 7, 8)) for _ in range(4))
            padded = (size[0] + pads[2] + pads[3], size[1] + pads[0] + pads[1])
            fits = max(pads[:2]) < size[1] and max(pads[2:]) < size[0]
            if min(padded) >= 1 and (d.drawn.product == "Host" or fits or random.random() < 0.1):
                break
        leading = d.leading()
        d.add("gradOutput", tensor(random, (*leading, *padded), d.dtype, how=d.how))
        d.add("self", d.shape_of(tensor(random, (*leading, *size), d.dtype)))
        d.add("padding", d.ints(pads, exact=d.two))
        d.add("gradInput", d.out("gradInput", (*leading, *size), d.dtype))

    @staticmethod
    def expected(drawn, values, a):
        pads = a["padding"] * 4 if len(a["padding"]) == 1 else a["padding"]
        return [replication_pad2d_backward_tiny(values, a["self"].shape, pads)]
