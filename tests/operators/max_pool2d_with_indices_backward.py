"""MaxPool2dWithIndicesBackward: what the tests know of it."""

import math
from itertools import product
from typing import ClassVar

import numpy as np
from digest_calls import BOTH_WAYS, FEW_WIDTHS, HALVES, WIDER, WIDTHS, Group, fits, image, laid, stand_in
from engine_helpers import sentinel_array
from fuzz import rules
from fuzz.calls import Argument, tensor
from fuzz.cases import assert_same, one_of, unreadable
from fuzz.results import MOST_POSITIONS, BadIndex
from reference import pooled_shape

import aclnn_bw
from operators.base import NONE, REAL, on_products
from operators.max_pool import (
    KNOWN,
    LARGE_POOLS,
    OTHER_POOLS,
    POOLS,
    SAMPLED,
    DigestedPools,
    IndicesCase,
    MaxPool,
    from_indices,
    hits_of_indices,
    huge_plane,
    indices_in_windows,
    max_pool2d,
    max_pool2d_backward,
    pool_of,
    random_indices,
    window_rules,
)

# ---- digested calls --------------------------------------------------------------------------------------------------


def pool(*arguments, **rest):
    return pool_of("MaxPool2dWithIndicesBackward", *arguments, **rest)


def digested_groups():
    for bits in ("int32", "int64"):
        for kernel, stride, padding in KNOWN:
            calls = [
                pool(shape, kernel, stride, padding, number % 5 == 4, bits=bits)
                for number, width in enumerate(WIDTHS)
                if fits(shape := image(number, width), kernel, stride, padding)
            ]
            yield f"{bits} k{kernel} s{stride} p{padding}, widths", Group(calls)
        calls = [
            pool(shape, kernel, stride, padding, number % 5 == 4, bits=bits)
            for number, ((kernel, stride, padding), width) in enumerate(product(OTHER_POOLS, FEW_WIDTHS[::2]))
            if fits(shape := image(number, width, 11), kernel, stride, padding)
        ] + [
            pool((1, channels, 20, width), kernel, stride, padding, ceil, bits=bits)
            for (kernel, stride, padding), (channels, width, ceil) in product(
                LARGE_POOLS, ((3, 19, False), (17, 24, True), (2, 40, False)))
        ]  # fmt: skip
        yield f"{bits} other kernels, widths", Group(calls)
        calls = [
            pool((*planes, height, width), kernel, stride, padding, bits=bits)
            for height, width, planes, (kernel, stride, padding) in product(
                (1, 2, 4, 7, 8, 14), (1, 3, 4, 7, 8, 12, 14), ((12,), (2, 37)),
                (*KNOWN, (1, 1, 0), (5, 1, 2), (3, 3, 0), (7, 7, 0)))
            if fits((height, width), kernel, stride, padding) and sum((height, width, *planes)) % 2
        ]  # fmt: skip
        yield f"{bits} small planes", Group(calls)
        for kernel, stride, padding in ((3, 2, 1), (2, 2, 0), (3, 1, 1), (5, 2, 2), (3, 3, 0)):
            calls = [
                pool(shape, kernel, stride, padding, bits=bits, layout=layout, out=out, kind=kind)
                for (layout, out), shape, kind in product(
                    BOTH_WAYS, ((1, 19, 6, 33), (1, 5, 7, 7)), ("plain", "special"))
            ]  # fmt: skip
            yield f"{bits} k{kernel} s{stride} p{padding}, layouts", Group(calls)
        calls = [
            pool((1 + number % 2, channels, 9, width), kernel, stride, padding, number % 3 == 0, bits=bits, kind=kind,
                layout=layout, out=layout)
            for number, ((kernel, stride, padding), (channels, width), kind, layout) in enumerate(product(
                (*KNOWN, (1, 1, 0), (5, 2, 2), ((5, 3), 1, (2, 1)), (4, 3, 2), (7, 7, 0)),
                ((16, 7), (18, 16), (45, 13)), ("plain", "special"), ("channels_last", "channels_last_reversed")))
        ]  # fmt: skip
        yield f"{bits} channels last on both sides", Group(calls)
        for name, batch, dtypes in ("wider", 4, WIDER), ("halves", 8, HALVES):
            far = [
                pool((batch, 64, 112, 112), 3, 2, 1, bits=bits), pool((batch, 64, 112, 112), 2, 2, bits=bits),
                pool((2 * batch, 192, 28, 28), 3, 1, 1, bits=bits),
            ]  # fmt: skip
            yield f"{bits} beyond the caches, {name}", Group(far, dtypes)
        calls = [
            pool((1, 2, 400, 515), kernel, stride, padding, bits=bits)
            for kernel, stride, padding in ((3, 2, 1), (3, 3, 0), (5, 2, 2), (3, 1, 1), (2, 2, 0))
        ] + [pool((1, 20, 160, 160), 3, 3, bits=bits)]
        yield f"{bits} few large planes", Group(calls)


class DigestedCalls(DigestedPools):
    def input_shape(self, call):
        return pooled_shape(call.shape, *call.attributes)

    def extra(self, call, seed):
        """Dense, or laid out as gradOutput is."""
        indices = indices_in_windows(call.shape, call.attributes, seed).astype(call.bits)
        return [laid(indices, call.layout) if seed % 2 else indices]

    def unread(self, call):
        return [np.empty(pooled_shape(call.shape, *call.attributes), call.bits)]

    def phase_1(self, call, inputs, outs):
        return [inputs[0], stand_in(call, outs[0]), inputs[1], *self.lists(call), outs[0]]

    def one_call(self, call, inputs, outs):
        kernel, stride, padding, ceil = call.attributes
        return [aclnn_bw.max_pool2d_with_indices_backward(
            inputs[0], call.shape, kernel, stride, padding, 1, ceil, inputs[1], out=outs[0])]  # fmt: skip

    def groups(self):
        return digested_groups()


# ---- calls between guard pages ---------------------------------------------------------------------------------------


class Guarded(IndicesCase):
    def tensors(self):
        out = pooled_shape(self.shape, *self.pool)
        return {"gradOutput": (out, self.dtype, "read"), "indices": (out, self.index, "read"),
                "gradInput": (self.shape, self.dtype, "written")}  # fmt: skip

    def values(self, name, shape, dtype):
        if name == "gradOutput":
            return super().values(name, shape, dtype)
        rng = self.rng
        _, indices = max_pool2d(rng.integers(0, 50, self.shape).astype(np.float64), *self.pool)
        if rng.random() < 0.15:
            plane = self.shape[-2] * self.shape[-1]
            strange = [-1, plane, 2**31 - 1, -(2**31), plane + 1, int(rng.integers(plane))]
            if dtype.itemsize == 8:
                strange += [2**32 + int(rng.integers(plane)), -(2**63), 2**63 - 1, 2**31]
            indices[tuple(int(rng.integers(n)) for n in shape)] = one_of(rng, *strange)
        self.hits = hits_of_indices(indices, self.shape, *self.pool)
        self.bad = not bool(np.all(self.hits.any(axis=-3)))
        return indices.astype(dtype)

    def refused(self):
        return self.bad

    def check(self, inputs, outputs):
        if not self.bad:
            wanted = max_pool2d_backward(inputs["gradOutput"], self.hits, self.shape, *self.pool)
            assert_same(outputs["gradInput"], wanted.astype(self.dtype))

    def phase1(self, t):
        return t["gradOutput"], unreadable(self.shape, self.dtype), t["indices"], *self.lists(), t["gradInput"]

    def one_call(self, t):
        kernel, stride, pad, ceil = self.pool
        aclnn_bw.max_pool2d_with_indices_backward(
            t["gradOutput"], unreadable(self.shape, self.dtype), kernel, stride, pad, 1, ceil, t["indices"],
            out=t["gradInput"])  # fmt: skip


# ---- the operator ----------------------------------------------------------------------------------------------------


class MaxPool2dWithIndicesBackward(MaxPool):
    declaration = "const aclTensor *gradOutput, const aclTensor *self, const aclTensor *indices, " \
        "const aclIntArray *kernelSize, const aclIntArray *stride, const aclIntArray *padding, " \
        "const aclIntArray *dilation, bool ceilMode, aclTensor *gradInput"
    signature = "grad_output, self, kernel_size, stride, padding, dilation, ceil_mode, indices, *, out=None"
    headers = ("aclnn_max_pool2d_with_indices_backward.h",)
    page = "max_pool2d_indices"
    core = "max_pool2d"
    roles: ClassVar[dict] = {"gradOutput": "read", "self": "shape", "indices": "read", "gradInput": "written"}
    dtypes = on_products(NONE, NONE, ("float32",), REAL)
    geometries: ClassVar[list] = [*POOLS, {"index": "int64"}, {"shape": (2, 9, 13), "index": "int64"}]
    demo = ("0  1  0  1", "gradInput: 16 of 16")
    leads = "self"
    guarded = Guarded
    digested = DigestedCalls()

    def make(self, index="int32", **geometry):
        attributes = self.geometry(**geometry)
        x = self.integers(*self.shape)
        maxima, indices = max_pool2d(x.astype(np.float64), *self.pool)
        self.hits = hits_of_indices(indices, x.shape, *self.pool)
        return {
            "gradOutput": self.integers(*maxima.shape), "self": x, "indices": indices.astype(index), **attributes,
            "gradInput": sentinel_array(self.shape, self.dtype),
        }  # fmt: skip

    def twin(self):
        return {"gradInput": max_pool2d_backward(self["gradOutput"], self.hits, self.shape, *self.pool)}

    @classmethod
    def sample(cls):
        _, indices = aclnn_bw.max_pool2d_with_indices(SAMPLED, 2)
        grad, out = np.array([10, 20, 30, 40], np.float32).reshape(1, 1, 2, 2), np.empty((1, 1, 4, 4), np.float32)
        cls.by_phases(grad, SAMPLED, indices.astype(np.int32), [2, 2], [2, 2], [0, 0], [1, 1], False, out)
        return {"gradInput": out}

    @staticmethod
    def rules(j, c, a):
        two = c.face == "two-phase"
        grad, kernel, ceil, out = (
            ("gradOutput", "kernelSize", "ceilMode", "gradInput") if two
            else ("grad_output", "kernel_size", "ceil_mode", "out")
        )  # fmt: skip
        rules.nulls(j, a, grad, "self", "indices", kernel, *["stride"] * two, "padding", "dilation", *[out] * two)
        written = [out] * (a[out] is not None)
        rules.dtypes(j, c, a, "self", "self")
        j.stage()
        rules.dtypes(j, c, a, "self", grad, *written)
        j.stage()
        rules.dtype_of_indices(j, a, "indices", wide=c.product == "Host")
        j.stage()
        rules.formats_of_images(j, a, grad, "self", *written)
        j.refuse(a["indices"].format in rules.PRIVATE, "format", "indices")
        j.stage()
        rules.ranks(j, a, (3, 4), "self", *written, grad, "indices")
        j.stage()
        shape = a["self"].shape
        if written:
            window_rules(j, a, kernel, ceil, attributes_alone=True)
            rules.shape_is(j, a, out, shape)
            j.stage()
        windows = window_rules(j, a, kernel, ceil)
        for name in (grad, "indices"):
            rules.shape_is(j, a, name, (*shape[:-2], *windows))
        j.stage()
        narrow = a["indices"].dtype == "int32"
        j.refuse((narrow or c.product != "Host") and math.prod(shape[-2:]) > 2**31 - 1, "plane beyond int32", "self")
        j.stage()
        rules.not_too_large(j, a, *written, "indices", fresh=None if written else shape)
        rules.memory(j, a, (grad, "indices"), ("self",), (out,))

    @staticmethod
    def draw(d):
        random = d.random
        size, kernel, stride, pad, ceil, pooled = d.pool()
        leading = d.leading()
        wide = d.drawn.product == "Host" and random.random() < 0.5
        indices = random_indices(random, leading, size, kernel, stride, pad, pooled, wide)
        d.add("gradOutput", tensor(random, (*leading, *pooled), d.dtype, how=d.how))
        d.add("self", d.shape_of(tensor(random, (*leading, *size), d.dtype)))
        name = "int64" if wide else "int32"
        fill = indices.astype(name).reshape(-1).view(np.uint8)
        laid_out = tensor(random, (*leading, *pooled), name, how="row-major", fill=fill)
        d.add("indices", laid_out)
        d.add("kernelSize", d.ints(kernel))
        d.add("stride", d.stride(kernel, stride))
        d.add("padding", d.ints(pad))
        d.add("dilation", d.ints((1, 1)))
        d.add("ceilMode", Argument(ceil, ceil))
        d.add("gradInput", d.out("gradInput", (*leading, *size), d.dtype))
        if random.random() < 0.03:
            huge_plane(d)

    @staticmethod
    def expected(drawn, values, a):
        two = drawn.face == "two-phase"
        kernel = rules.pair(a["kernelSize" if two else "kernel_size"])
        stride, pad, size = rules.pair(a["stride"] or kernel), rules.pair(a["padding"]), a["self"].shape[-2:]
        if math.prod(kernel) > MOST_POSITIONS or math.prod(size) > 1 << 20:
            return None
        sums = from_indices(values, drawn.arguments["indices"].array.astype(np.int64), size, kernel, stride, pad)
        if sums is None:
            raise BadIndex("indices")
        return [sums]
