"""MaxPool2dWithMaskBackward: what the tests know of it."""

import math
from itertools import product
from typing import ClassVar

import numpy as np
from digest_calls import BOTH_WAYS, FEW_WIDTHS, HALVES, MASKS, WIDER, WIDTHS, Group, fits, image, stand_in
from engine_helpers import sentinel_array
from fuzz import rules
from fuzz.calls import BYTES, Argument, row_major, tensor
from fuzz.cases import BYTE, assert_same, one_of, unreadable
from fuzz.results import MOST_POSITIONS, BadIndex
from fuzz.rules import View
from reference import pooled_shape

import aclnn_bw
from operators.base import BASIC, NONE, REAL, WITH_BF16, on_products
from operators.im2col_backward import from_columns
from operators.max_pool import (
    KNOWN,
    LARGE_POOLS,
    OTHER_POOLS,
    SAMPLED,
    DigestedPools,
    MaxPool,
    MaxPoolCase,
    bitmask,
    container,
    container_of,
    from_indices,
    hits_of_indices,
    large_mask,
    mask_rules,
    mask_shape,
    max_pool2d,
    max_pool2d_backward,
    more_positions_than_int32,
    pool,
    random_indices,
    small_mask,
)

# ---- digested calls --------------------------------------------------------------------------------------------------


def digested_groups():
    for mask in MASKS:
        for kernel, stride, padding in KNOWN:
            calls = [
                pool(shape, kernel, stride, padding, number % 5 == 4, mask=mask)
                for number, width in enumerate(WIDTHS)
                if fits(shape := image(number, width), kernel, stride, padding)
            ]
            yield f"{mask} k{kernel} s{stride} p{padding}, widths", Group(calls)
        calls = [
            pool(shape, kernel, stride, padding, number % 5 == 4, mask=mask)
            for number, ((kernel, stride, padding), width) in enumerate(product(OTHER_POOLS, FEW_WIDTHS[::2]))
            if fits(shape := image(number, width, 11), kernel, stride, padding)
        ]
        yield f"{mask} other kernels, widths", Group(calls)
        calls = [
            pool((1, channels, 20, width), kernel, stride, padding, ceil, mask=mask, bits=bits)
            for (kernel, stride, padding), (channels, width, ceil), bits in product(
                LARGE_POOLS, ((3, 19, False), (17, 24, True), (2, 40, False)), ("one", "any")
            )
        ]
        yield f"{mask} large kernels", Group(calls)
        for columns, stride, padding in KNOWN:
            calls = [
                pool((1, channels, 17, width), (rows, columns), (down, stride), (rows // 2 * (number % 2), padding),
                     mask=mask)
                for number, (rows, down, (channels, width)) in enumerate(product(
                    (1, 2, 3, 4, 5, 8, 10, 11, 16, 17), (1, 2, 3), ((3, 17), (5, 40))))
            ]  # fmt: skip
            yield f"{mask} {columns} columns s{stride} p{padding}, kernel rows", Group(calls)
        calls = [
            pool((2, 3, 21, 37), (rows, columns), (1 + number % 4, stride), (rows // 2, columns // 3), number % 3 == 0,
                 mask=mask)
            for number, (columns, stride, rows) in enumerate(product(range(1, 18), range(1, 9), (1, 4)))
        ]  # fmt: skip
        yield f"{mask} kernel columns 1 to 17, strides 1 to 8", Group(calls)
        calls = [
            pool((*planes, height, width), kernel, stride, padding, mask=mask)
            for height, width, planes, (kernel, stride, padding) in product(
                (1, 2, 4, 7, 8, 14), (1, 3, 4, 7, 8, 12, 14), ((12,), (2, 37)),
                (*KNOWN, (5, 1, 2), (3, 3, 0), (7, 7, 0)))
            if fits((height, width), kernel, stride, padding) and sum((height, width, *planes)) % 2
        ]  # fmt: skip
        yield f"{mask} small planes", Group(calls)
        calls = [
            pool((1, 3, height, width), kernel, stride, padding, mask=mask)
            for (kernel, stride, padding), width, height in product((*KNOWN, (2, 1, 0)), range(1, 20), (40, 121))
            if fits((height, width), kernel, stride, padding)
        ]
        calls += [pool((1, 5, rows, width), (1, 3), 1, (0, 1), mask=mask) for rows in (1, 2) for width in range(2, 7)]
        yield f"{mask} narrow planes", Group(calls)
        calls = [
            pool((1, channels, *size), kernel, stride, padding, mask=mask)
            for channels, (size, (kernel, stride, padding)) in product(
                range(1, 36), (((9, 30), (3, 2, 1)), ((8, 26), (3, 1, 1)), ((10, 19), (5, 2, 2)), ((6, 6), (3, 3, 0))))
        ]  # fmt: skip
        yield f"{mask} channels 1 to 35", Group(calls)
        for kernel, stride, padding in ((3, 2, 1), (2, 2, 0), (3, 1, 1), (5, 2, 2), (3, 3, 0), (2, 1, 0)):
            calls = [
                pool(shape, kernel, stride, padding, layout=layout, out=out, mask=mask)
                for (layout, out), shape in product(BOTH_WAYS, ((1, 19, 6, 33), (1, 5, 7, 7)))
            ]
            yield f"{mask} k{kernel} s{stride} p{padding}, layouts", Group(calls)
        calls = [
            pool((1, 2, 5, width), kernel, stride, padding, mask=mask, layout=layout)
            for (kernel, stride, padding), width, layout in product(
                ((3, 2, 1), (2, 2, 0), (3, 1, 1), (5, 2, 2), (3, 3, 0)), (1000, 4099), ("contiguous", "rows_cropped")
            )
        ] + [pool((1, 1, 3, 50001), *geometry, mask=mask) for geometry in ((3, 2, 1), (2, 2, 0), (3, 1, 1), (3, 3, 0))]
        yield f"{mask} long rows", Group(calls)
        calls = [
            pool((1, 2, 2000, 30), kernel, stride, padding, mask=mask)
            for kernel, stride, padding in ((3, 2, 1), (3, 1, 1), (5, 5, 0), ((40, 3), (9, 2), (20, 1)), (2, 2, 0))
        ] + [pool((1, 1, 33000, 24), 3, 1, 1, mask=mask), pool((1, 1, 2000, 8), (300, 2), (9, 1), 0, mask=mask)]
        yield f"{mask} tall planes", Group(calls, ("float32", "float16"))
        geometries = [*KNOWN, (5, 2, 2), (3, 3, 0), (2, 1, 0), (7, 7, 0)]
        calls = [
            pool((2, 18, 9, width), kernel, stride, padding, kind="special", mask=mask, bits=bits)
            for (kernel, stride, padding), width, bits in product(geometries, (7, 16, 30), ("one", "any"))
        ]
        yield f"{mask} special values", Group(calls)
        calls = [
            pool((1, 18, 40, width), kernel, stride, padding, kind="nothing", mask=mask, bits=bits)
            for (kernel, stride, padding), width, bits in product(geometries, (7, 40), ("one", "all"))
            if mask == "bitmask" or bits == "one"
        ]
        yield f"{mask} nothing but -0.0", Group(calls)
        calls = [
            pool((1 + number % 2, 18, height, width), kernel, stride, padding, number % 2 == 0, mask=mask, bits=bits,
                out=out)
            for number, ((kernel, stride, padding), (height, width), (bits, out)) in enumerate(product(
                (*geometries, (17, 4, 8), (5, 3, 2), (3, 3, 1)), ((7, 7), (17, 9), (12, 33)),
                (("any", "contiguous"), ("any", "columns_reversed"), ("outside", "contiguous"))))
            if fits((height, width), kernel, stride, padding)
        ]  # fmt: skip
        yield f"{mask} any bits", Group(calls)
        calls = [
            pool((1 + number % 2, channels, 9, width), kernel, stride, padding, number % 3 == 0, kind=kind, mask=mask,
                bits=bits, layout=layout, out=layout)
            for number, ((kernel, stride, padding), (channels, width), (bits, kind), layout) in enumerate(product(
                (*geometries, (1, 1, 0), ((5, 3), 1, (2, 1)), (4, 3, 2)), ((16, 7), (18, 16), (45, 13)),
                (("one", "special"), ("any", "plain"), ("outside", "plain")),
                ("channels_last", "channels_last_reversed")))
        ]  # fmt: skip
        yield f"{mask} channels last on both sides", Group(calls)
        calls = [
            pool((2, 18, 9, width), kernel, stride, padding, kind=kind, mask=mask, product="Ascend910")
            for (kernel, stride, padding), width, kind in product(geometries, (7, 30), ("plain", "special"))
        ]
        yield f"{mask} reduced precision", Group(calls, ("float32",))
        for name, batch, dtypes in ("wider", 4, WIDER), ("halves", 8, HALVES):
            yield f"{mask} beyond the caches, {name}", Group([pool((batch, 64, 112, 112), 3, 2, 1, mask=mask)], dtypes)
            far = [pool((batch, 64, 112, 112), 2, 2, mask=mask), pool((2 * batch, 192, 28, 28), 3, 1, 1, mask=mask)]
            yield f"{mask} beyond the caches, {name}, other kernels", Group(far, dtypes)
        calls = (
            [
                pool((1, 2, 400, 515), kernel, stride, padding, mask=mask)
                for kernel, stride, padding in ((3, 2, 1), (3, 3, 0), (5, 2, 2), (3, 1, 1), (2, 2, 0))
            ]
            + [pool((1, 1, 150, 301), kernel, 1, 0, mask=mask) for kernel in (2, (1, 4), (4, 1), (3, 1), 3)]
            + [
                pool((1, 20, 160, 160), 3, 3, mask=mask),
                pool((1, 17, 160, 160), 5, 2, 2, mask=mask, layout="channels_last"),
            ]
        )
        yield f"{mask} few large planes", Group(calls)


class DigestedCalls(DigestedPools):
    def input_shape(self, call):
        return pooled_shape(call.shape, *call.attributes)

    def extra(self, call, seed):
        build = small_mask if math.prod(call.shape) < 1 << 17 else large_mask
        return [build(call.shape, call.attributes, call.mask, call.bits, seed)]

    def unread(self, call):
        return [np.empty(mask_shape(call.shape, *call.attributes), np.int8)]

    def phase_1(self, call, inputs, outs):
        return [inputs[0], stand_in(call, outs[0]), inputs[1], *self.lists(call), outs[0]]

    def one_call(self, call, inputs, outs):
        keywords = self.keywords(call)
        return [aclnn_bw.max_pool2d_with_mask_backward(inputs[0], call.shape, inputs[1], **keywords, out=outs[0])]

    def groups(self):
        return digested_groups()


# ---- calls between guard pages ---------------------------------------------------------------------------------------


class Guarded(MaxPoolCase):
    def tensors(self):
        return {"gradOutput": (pooled_shape(self.shape, *self.pool), self.dtype, "read"),
                "indices": (mask_shape(self.shape, *self.pool), BYTE, "read"),
                "gradInput": (self.shape, self.dtype, "written")}  # fmt: skip

    def values(self, name, shape, dtype):
        if name == "gradOutput":
            return super().values(name, shape, dtype)
        out = pooled_shape(self.shape, *self.pool)
        rng = self.rng
        _, indices = max_pool2d(rng.integers(0, 50, self.shape).astype(np.float64), *self.pool)
        garbage = rng.integers(-128, 128, shape, np.int8) if rng.random() < 0.5 else np.zeros(shape, np.int8)
        self.bad = False
        if self.argmax:
            if rng.random() < 0.15:
                place = tuple(int(rng.integers(n)) for n in out)
                plane = self.shape[-2] * self.shape[-1]
                indices[place] = one_of(rng, -1, plane, 2**31 - 1, -(2**31), plane + 1, int(rng.integers(plane)))
            self.hits = hits_of_indices(indices, self.shape, *self.pool)
            self.bad = not bool(np.all(self.hits.any(axis=-3)))
            front = indices.astype("<i4").reshape(-1).view(np.int8)
        else:
            positions = (*out[:-2], math.prod(self.pool[0]), *out[-2:])
            self.hits = hits_of_indices(indices, self.shape, *self.pool)
            if rng.random() < 0.4:
                self.hits = rng.random(positions) < rng.choice([0.0, 0.1, 0.6, 1.0])
            mask = bitmask(self.hits)
            ignored = ~bitmask(np.ones(positions, bool))
            return mask | (garbage & ignored)
        garbage.reshape(-1)[: front.size] = front
        return garbage

    def refused(self):
        return self.bad

    def check(self, inputs, outputs):
        if self.bad:
            return
        wanted = max_pool2d_backward(self.rounded(inputs["gradOutput"]), self.hits, self.shape, *self.pool)
        assert_same(outputs["gradInput"], self.rounded(wanted).astype(self.dtype))

    def phase1(self, t):
        return t["gradOutput"], unreadable(self.shape, self.dtype), t["indices"], *self.lists(), t["gradInput"]

    def one_call(self, t):
        kernel, stride, pad, ceil = self.pool
        aclnn_bw.max_pool2d_with_mask_backward(
            t["gradOutput"], unreadable(self.shape, self.dtype), t["indices"], kernel, stride, pad, 1, ceil,
            mask_layout=self.mask_layout, out=t["gradInput"])  # fmt: skip


# ---- random calls ----------------------------------------------------------------------------------------------------


def _one_window_of_a_huge_plane(d):
    """More positions than an int32 index counts, where nothing but the shape is huge."""
    shape, stride = (1, 1, 2, 2 ** d.random.choice((30, 31, 32))), (1, 2**40)
    for name, argument in (
        ("grad_output", tensor(d.random, (1, 1, 1, 1), d.dtype)),
        ("self", Argument(shape, View(d.dtype, shape, row_major(shape), 0, math.prod(shape), rules.NCHW, None))),
        ("mask", tensor(d.random, (1, 1, 2, 64), "int8", how="row-major")),
        ("kernel_size", d.ints((2, 1))), ("stride", d.ints(stride)), ("padding", d.ints((0, 0))),
        ("out", Argument(None, None)),
    ):  # fmt: skip
        d.drawn.arguments[name] = argument
    d.drawn.outputs = ()


def _bits(mask, shape, positions):
    """Read the layout "bitmask": [..., C, kH*kW, Ho, Wo] for an output [..., C, Ho, Wo]."""
    *batch, channels, oh, ow = shape
    images, windows, groups = math.prod(batch), oh * ow, -(-channels // 16)
    row = (-(-windows // 16) + 1) * 16
    words = mask[: 2 * images * groups * positions * row].view("<u2").reshape(images, groups, positions, row)
    c = np.arange(channels)
    bits = words[:, c // 16, :, :windows] >> (c % 16)[:, None, None] & 1
    return bits.reshape(*batch, channels, positions, oh, ow)


# ---- the operator ----------------------------------------------------------------------------------------------------


def _picture_mask():
    return aclnn_bw.max_pool2d_with_mask(np.float32([[[3, 1, 2], [0, 5, 4], [9, 7, 8]]]), 2, 1)[1]


class MaxPool2dWithMaskBackward(MaxPool):
    declaration = "const aclTensor *gradOutput, const aclTensor *self, const aclTensor *indices, " \
        "const aclIntArray *kernelSize, const aclIntArray *stride, const aclIntArray *padding, " \
        "const aclIntArray *dilation, bool ceilMode, aclTensor *gradInput"
    signature = "grad_output, self, mask, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, *, " \
        "mask_layout='bitmask', out=None"
    headers = ("aclnn_max_pool2d_with_indices_backward.h",)
    roles: ClassVar[dict] = {"gradOutput": "read", "self": "shape", "indices": "read", "gradInput": "written"}
    dtypes = on_products(BASIC, NONE, WITH_BF16, REAL)
    demo = ("0  1  0  1", "gradInput: 16 of 16")
    picture = (2, 2), lambda g: aclnn_bw.max_pool2d_with_mask_backward(g, (1, 3, 3), _picture_mask(), 2, 1)
    guarded = Guarded
    digested = DigestedCalls()

    def make(self, **geometry):
        attributes = self.geometry(**geometry)
        x = self.integers(*self.shape)
        maxima, mask, self.hits = self.mask(x)
        grad = self.integers(*maxima.shape)
        return {
            "gradOutput": grad, "self": x, "indices": mask, **attributes,
            "gradInput": sentinel_array(self.shape, self.dtype),
        }  # fmt: skip

    def twin(self):
        return {"gradInput": max_pool2d_backward(self["gradOutput"], self.hits, self.shape, *self.pool)}

    @classmethod
    def sample(cls):
        _, mask = aclnn_bw.max_pool2d_with_mask(SAMPLED, 2)
        grad, out = np.array([10, 20, 30, 40], np.float32).reshape(1, 1, 2, 2), np.empty((1, 1, 4, 4), np.float32)
        cls.by_phases(grad, SAMPLED, mask, [2, 2], [2, 2], [0, 0], [1, 1], False, out)
        return {"gradInput": out}

    @staticmethod
    def rules(j, c, a):
        two = c.face == "two-phase"
        grad, kernel, ceil, mask, out = (
            ("gradOutput", "kernelSize", "ceilMode", "indices", "gradInput") if two
            else ("grad_output", "kernel_size", "ceil_mode", "mask", "out")
        )  # fmt: skip
        rules.nulls(j, a, grad, "self", mask, kernel, *["stride"] * two, "padding", "dilation", *[out] * two)
        written = [out] * (a[out] is not None)
        rules.dtypes(j, c, a, grad, grad, "self", *written)
        j.refuse(a[mask].dtype != "int8", "dtype", mask)
        j.stage()
        rules.ranks(j, a, (3, 4), grad, "self", mask, *written)
        for name in (grad, "self", *written):
            j.refuse(a[name].format not in (rules.NCHW, rules.NCL, rules.ND), "format", name)
            j.refuse(a[name].format != a[grad].format, "formats differ", name)
        j.refuse(a[mask].format in rules.PRIVATE, "format", mask)
        j.stage()
        rules.lengths(j, a, **{kernel: (1, 2), "stride": (0, 1, 2), "padding": (1, 2), "dilation": (1, 2)})
        j.stage()
        shape = a["self"].shape
        container_shape, windows = container(j, a, shape, kernel, ceil)
        if written:
            rules.shape_is(j, a, out, shape)
        rules.shape_is(j, a, grad, (*shape[:-2], *windows))
        mask_rules(j, c, a, mask, shape, container_shape)
        j.stage()
        rules.not_too_large(j, a, *written, mask, fresh=None if written else shape)
        rules.memory(j, a, (grad, mask), ("self",), (out,))

    @staticmethod
    def draw(d):
        random = d.random
        size, kernel, stride, pad, ceil, pooled = d.pool()
        leading = d.leading()
        if not d.two:
            d.drawn.layout = random.choice(("bitmask", "argmax"))
        d.add("gradOutput", tensor(random, (*leading, *pooled), d.dtype, how=d.how))
        d.add("self", d.shape_of(tensor(random, (*leading, *size), d.dtype)))
        shape = container_of(leading, kernel, pooled)
        at = random.randrange(1 << 15)
        fill = np.resize(BYTES[at:], math.prod(shape))
        if d.drawn.layout == "argmax" and math.prod(kernel) > 1:
            indices = random_indices(random, leading, size, kernel, stride, pad, pooled)
            fill[: 4 * indices.size] = indices.astype("<i4").reshape(-1).view(np.uint8)
        misaligned = random.random() < 0.3
        d.add("indices", tensor(random, shape, "int8", how="row-major", fill=fill, misaligned=misaligned))
        d.add("kernelSize", d.ints(kernel))
        d.add("stride", d.stride(kernel, stride))
        d.add("padding", d.ints(pad))
        d.add("dilation", d.ints((1, 1)))
        d.add("ceilMode", Argument(ceil, ceil))
        if not d.two:
            d.add("mask_layout", Argument(d.drawn.layout, d.drawn.layout))
        d.add("gradInput", d.out("gradInput", (*leading, *size), d.dtype))
        if d.two and random.random() < 0.01:
            more_positions_than_int32(d, 1.0)
        if not d.two and random.random() < 0.03:
            _one_window_of_a_huge_plane(d)

    @staticmethod
    def expected(drawn, values, a):
        two = drawn.face == "two-phase"
        kernel = rules.pair(a["kernelSize" if two else "kernel_size"])
        stride, pad, size = rules.pair(a["stride"] or kernel), rules.pair(a["padding"]), a["self"].shape[-2:]
        if math.prod(kernel) > MOST_POSITIONS:
            return None
        name = "indices" if two else "mask"
        mask = drawn.arguments[name].array.reshape(-1).view(np.uint8)
        if drawn.layout == "argmax" and math.prod(kernel) > 1:
            indices = mask[: 4 * values.size].view("<i4").reshape(values.shape)
            sums = from_indices(values, indices.astype(np.int64), size, kernel, stride, pad)
            if sums is None:
                raise BadIndex(name)
            return [sums]
        columns = _bits(mask, values.shape, math.prod(kernel)) * values[..., None, :, :]
        return [from_columns(columns, size, kernel, stride, pad)]
