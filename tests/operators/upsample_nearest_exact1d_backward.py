"""UpsampleNearestExact1dBackward: what the tests know of it."""

import math
from functools import lru_cache
from itertools import product
from typing import ClassVar

import numpy as np
from digest_calls import BOTH_WAYS, CHANNELS, MIDDLE, WIDTHS, Call, Digested, Group
from engine_helpers import counted, sentinel_array
from fuzz import rules
from fuzz.calls import Argument, tensor
from fuzz.cases import LARGEST_CASE, Case, assert_same, channels, length, one_of

import aclnn_bw
from operators.base import NONE, REAL, WITH_BF16, Operator, on_products

# ---- the twin --------------------------------------------------------------------------------------------------------


def nearest_exact_index(j, input_length, output_length, scales=0.0):
    """The input that output `j` copies: PyTorch's rule on the CPU, whose ratio and product are float32."""
    with np.errstate(over="ignore"):
        ratio = np.float32(1 / scales) if scales > 0 else np.float32(input_length) / np.float32(output_length)
        position = np.float32((j + 0.5) * np.float64(ratio))
    # Compared before it becomes an integer, for it may be inf, and as float64, which holds every length.
    position = np.floor(np.float64(position))
    return np.where(position < input_length, position, input_length - 1).astype(np.int64)


def upsample_nearest_exact1d(x, output_length, scales=0.0):
    """Each output is a copy of one input: the forward operator."""
    index = [nearest_exact_index(j, x.shape[-1], output_length, scales) for j in range(output_length)]
    return x[..., index]


def upsample_nearest_exact1d_backward(grad_output, input_size, scales=0.0, dtype=np.float64):
    """Each element of `grad_output` is added to the input that its output copies."""
    grad_input = np.zeros(input_size, dtype)
    for j in range(grad_output.shape[-1]):
        i = nearest_exact_index(j, input_size[-1], grad_output.shape[-1], scales)
        grad_input[..., i] += grad_output[..., j].astype(dtype)
    return grad_input


def upsample_nearest_exact1d_backward_quick(grad_output, input_size, scales=0.0, dtype=np.float64):
    """`upsample_nearest_exact1d_backward` without the loop."""
    length = grad_output.shape[-1]
    index = nearest_exact_index(np.arange(length), input_size[-1], length, scales)
    grad_input = np.zeros(input_size, dtype)
    np.add.at(grad_input, (..., index), grad_output.astype(dtype))
    return grad_input


@lru_cache(maxsize=1 << 14)
def _nearest(input_length, output_length, scales):
    return nearest_exact_index(np.arange(output_length), input_length, output_length, scales)


def upsample_nearest_exact1d_backward_tiny(grad, shape, scales):
    """`upsample_nearest_exact1d_backward` of finite values."""
    index = _nearest(shape[-1], grad.shape[-1], scales)
    rows = shape[0] * shape[1]
    flat = index + np.arange(rows)[:, None] * shape[-1]
    return np.bincount(flat.reshape(-1), grad.reshape(-1), rows * shape[-1]).reshape(shape)


# ---- digested calls --------------------------------------------------------------------------------------------------


def up(shape, length, scales=None, **rest):
    return Call("UpsampleNearestExact1dBackward", shape, (length, scales), **rest)


def digested_groups():
    factors = [
        (1, 1), (2, 1), (3, 1), (4, 1), (5, 1), (8, 1), (9, 1), (16, 1), (3, 2), (4, 3), (5, 4), (7, 5), (1, 2),
        (1, 3), (1, 4),
        (2, 3), (3, 4), (1, 8), (25, 2), (5, 3), (1, 16),
    ]  # fmt: skip
    for name, chosen in ("whole factors", factors[:8]), ("others", factors[8:]):
        calls = [
            up((1 + number % 2, CHANNELS[number % 8], width), max(1, width * times // over))
            for number, ((times, over), width) in enumerate(product(chosen, WIDTHS))
        ]
        yield f"{name}, widths", Group(calls)
    calls = [
        up((2, 3, width), length)
        for width, length in product(
            (1, 2, 3, 5, 16, 17, 31, 33, 64, 100), (1, 2, 3, 7, 15, 16, 17, 33, 63, 65, 98, 300)
        )
    ]
    yield "any lengths", Group(calls)
    calls = [
        up((2, 3, width), length, scales)
        for (width, length), scales in product(
            ((26, 52), (52, 26), (100, 333), (333, 100), (4096, 8192), (5000, 4999)),
            (2.0, 1.9, 0.5, 0.51, 3.7, 0.03, 40.0, 5e-324, 1e300))
    ]  # fmt: skip
    yield "scales", Group(calls)
    calls = [up((1, 2, targets), sources) for targets, sources in (
        (4096, 8192), (8192, 4096), (4096, 6144), (4096, 5000), (10007, 10009), (10009, 20011), (60000, 60001),
        (65537, 65539), (70001, 140009), (100003, 33331), (131072, 262144), (70001, 700), (3000, 90001),
    )]  # fmt: skip
    yield "long rows", Group(calls)
    calls = [
        up((2, 3, width), length, out=out)
        for width, length, out in product(
            (700, 3200, 6407), (1, 2, 7, 21, 50, 99), ("contiguous", "every_second_column")
        )
    ] + [up((1, 2, 66001), length) for length in (1, 50, 99)]
    yield "few sources", Group(calls)
    calls = [
        up((3, 3, width), length, out=out)
        for width, length, out in product((700, 6407), (7, 50, 99, 401), ("contiguous", "every_second_column"))
    ] + [up((3, 3, 66001), length) for length in (99, 33331)]
    yield "few sources, nine rows", Group(calls)
    calls = [
        up((2, channels, width), length, layout=layout, out=out)
        for channels, (width, length), (layout, out) in product(
            (3, 40), ((26, 52), (52, 26), (33, 49), (17, 200), (300, 7)), BOTH_WAYS)
    ]  # fmt: skip
    yield "layouts", Group(calls)
    for out in "contiguous", "channels_last":
        calls = [
            up((1, channels, width), length, layout="channels_last", out=out)
            for number, (channels, (width, length)) in enumerate(product(
                (*range(1, 20), 31, 32, 33, 63, 64, 65, 128, 130, 257),
                ((13, 26), (26, 13), (10, 97), (50, 70), (40, 3))))
        ]  # fmt: skip
        yield f"channels last to {out}", Group(calls)
        large = [
            up((1, 300, 600), 1200, layout="channels_last", out=out),
            up((2, 64, 1003), 1501, layout="channels_last", out=out),
            up((1, 17, 70001), 7, layout="channels_last", out=out),
            up((2, 20, 9), 20000, layout="channels_last", out=out),
        ]  # fmt: skip
        yield f"channels last to {out}, large", Group(large, ("float32", "float64", "float16"))
    calls = [
        up((2, 7, width), length, scales, kind="special")
        for (width, length), scales in product(
            ((26, 52), (52, 26), (33, 49), (10, 100), (10, 30), (300, 7), (40, 80), (16, 16), (64, 48)), (None, 1.7))
    ]  # fmt: skip
    yield "special values", Group(calls)
    calls = [
        up((2, 7, width), length, kind="nothing", layout=layout, out=layout)
        for (width, length), layout in product(
            ((26, 52), (52, 26), (33, 49), (10, 100), (300, 7), (16, 16)), ("contiguous", "channels_last"))
    ]  # fmt: skip
    yield "nothing but -0.0", Group(calls)
    last = {"layout": "channels_last", "out": "channels_last"}
    calls = [up((2, channels, 7), 20, **last) for channels in (511, 513, 600, 1100)]
    yield "many channels last", Group(calls)
    calls = [up((1, 64, 4096), 8192), up((2, 32, 4096), 6144), up((1, 64, 4096), 5000), up((2, 64, 8192), 4096)]
    yield "large", Group(calls)


class DigestedCalls(Digested):
    """Attributes: the length, and scales or None."""

    def input_shape(self, call):
        return (*call.shape[:-1], call.attributes[0])

    def layouts(self, call):
        return MIDDLE.get(call.layout, call.layout), [MIDDLE.get(call.out, call.out)]

    def phase_1(self, call, inputs, outs):
        length, scales = call.attributes
        return [inputs[0], [length], list(call.shape), scales or 0.0, outs[0]]

    def one_call(self, call, inputs, outs):
        length, scales = call.attributes
        return [aclnn_bw.upsample_nearest_exact1d_backward(inputs[0], length, call.shape, scales, out=outs[0])]

    def groups(self):
        return digested_groups()


# ---- calls between guard pages ---------------------------------------------------------------------------------------


class Guarded(Case):
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
        wanted = upsample_nearest_exact1d_backward_quick(inputs["gradOutput"], self.shape, self.scales)
        assert_same(outputs["out"], wanted.astype(self.dtype))

    def phase1(self, t):
        return t["gradOutput"], [self.sources], self.shape, self.scales, t["out"]

    def one_call(self, t):
        aclnn_bw.upsample_nearest_exact1d_backward(
            t["gradOutput"], self.sources, self.shape, self.scales or None, out=t["out"])


# ---- the operator ----------------------------------------------------------------------------------------------------


class UpsampleNearestExact1dBackward(Operator):
    declaration = "const aclTensor *gradOutput, const aclIntArray *outputSize, const aclIntArray *inputSize, " \
        "double scales, aclTensor *out"
    signature = "grad_output, output_size, input_size, scales=None, *, out=None"
    headers = ("aclnn_upsample_nearest_exact1d_backward.h",)
    roles: ClassVar[dict] = {"gradOutput": "read", "out": "written"}
    dtypes = on_products(NONE, NONE, WITH_BF16, REAL)
    geometries: ClassVar[list] = [
        {},
        {"shape": (2, 3, 1, 26), "factor": 11 / 26},
        {"shape": (3, 5, 100, 40), "factor": 1.5},
        {"shape": (1, 2, 3, 43), "factor": 7.3, "scales": 7.1},
        {"shape": (4, 16, 64, 32), "factor": 0.25, "scales": 0.3},
    ]
    page = "upsample_nearest_exact1d"
    enums = ("Layout", "Tables")
    demo = ("1  5", "out: 2 of 2")
    picture = (1, 5), lambda g: aclnn_bw.upsample_nearest_exact1d_backward(g, 5, (1, 1, 3))
    guarded = Guarded
    digested = DigestedCalls()

    def make(self, factor=2.0, scales=0.0):
        """Rows of H*W become `factor` times as long."""
        planes = (1, *self.shape[:-2])[-2:]
        shape = *planes, self.shape[-2] * self.shape[-1]
        length = int(shape[2] * factor)
        return {
            "gradOutput": self.integers(*planes, length), "outputSize": (length,), "inputSize": shape, "scales": scales,
            "out": sentinel_array(shape, self.dtype),
        }  # fmt: skip

    def twin(self):
        rest = self["inputSize"], self["scales"]
        return {"out": upsample_nearest_exact1d_backward_quick(self["gradOutput"], *rest)}

    @classmethod
    def sample(cls):
        out = np.empty((1, 2, 4), np.float32)
        cls.by_phases(counted((1, 2, 6), 1), [6], [1, 2, 4], 0.0, out)
        return {"out": out}

    @staticmethod
    def rules(j, c, a):
        two = c.face == "two-phase"
        grad = "gradOutput" if two else "grad_output"
        lo, li = ("outputSize", "inputSize") if two else ("output_size", "input_size")
        rules.nulls(j, a, grad, lo, li, *["out"] * two)
        written = ["out"] * (a["out"] is not None)
        rules.dtypes(j, c, a, grad, grad, *written)
        j.stage()
        rules.ranks(j, a, (3,), grad, *written)
        for name in (grad, *written):
            j.refuse(a[name].format not in (rules.NCL, rules.ND), "format", name)
            j.refuse(a[name].format != a[grad].format, "formats differ", name)
        j.stage()
        rules.lengths(j, a, **{lo: (1,), li: (3,)})
        j.stage()
        scales = a["scales"] or 0.0
        rules.at_least(j, 1, lo, a[lo])
        rules.at_least(j, 1, li, a[li])
        j.refuse(not math.isfinite(scales) or scales < 0, "scales", "scales")
        j.refuse(c.product != "Host" and scales != 0 and not 1 / 50 <= scales <= 50, "scales limit", "scales")
        j.stage()
        if written:
            rules.shape_is(j, a, "out", tuple(a[li]))
        rules.shape_is(j, a, grad, (*a[li][:2], *a[lo]))
        if c.product != "Host":
            j.refuse(a[li][2] > 50 * a[lo][0], "growth limit", li)
            j.refuse(a[lo][0] > 50 * a[li][2], "growth limit", lo)
        j.stage()
        rules.not_too_large(j, a, grad, *written, fresh=None if written else tuple(a[li]))
        rules.memory(j, a, (grad,), (), ("out",))

    @staticmethod
    def draw(d):
        random = d.random
        leading = d.leading(least=1)
        leading = leading if len(leading) == 2 else (1, *leading)
        li, lo = random.choice((1, 2, 3, 8, 20, 33)), random.choice((1, 2, 5, 16, 31, 50))
        if random.random() < 0.02:  # sizes of 0, which fit each other
            leading, li, lo = random.choice((((0, 1), li, lo), ((1, 0), li, lo), (leading, 0, lo), (leading, li, 0)))
        if random.random() < 0.06:
            li, lo = random.choice(((1, 50), (1, 51), (2, 101), (50, 1), (51, 1), (150, 3), (151, 3)))
        d.add("gradOutput", tensor(random, (*leading, lo), d.dtype, how=d.how))
        d.add("outputSize", d.ints((lo,)))
        d.add("inputSize", d.ints((*leading, li), exact=True))
        ratio = lo / li if li and lo else 1.0
        scales = random.choice((0.0, 0.0, ratio, 1.7, 0.5) if d.two else (None, 0.0, ratio, 1.7, 1e-5))
        d.add("scales", Argument(scales, scales))
        d.add("out", d.out("out", (*leading, li), d.dtype))

    @staticmethod
    def expected(drawn, values, a):
        shape = tuple(a["inputSize" if drawn.face == "two-phase" else "input_size"])
        return [upsample_nearest_exact1d_backward_tiny(values, shape, a["scales"] or 0.0)]

    @staticmethod
    def fresh(meaning):
        sizes = meaning["input_size"]
        if not isinstance(sizes, rules.Ints):
            return None
        return tuple(size if size > 0 else 1 for size in sizes) if len(sizes) == 3 else (1,)
