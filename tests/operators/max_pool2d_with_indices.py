"""MaxPool2dWithIndices: what the tests know of it."""

import math
from itertools import product
from typing import ClassVar

import numpy as np
from digest_calls import BOTH_WAYS, FEW_WIDTHS, WIDTHS, Group, fits, image, narrow_image
from engine_helpers import sentinel_array
from fuzz import rules
from fuzz.calls import Argument, tensor
from fuzz.cases import assert_same
from reference import pooled_shape

import aclnn_bw
from operators.base import NONE, REAL, WITH_BF16, on_products
from operators.max_pool import (
    LARGE_POOLS,
    OTHER_POOLS,
    POOLS,
    SAMPLED,
    DigestedPools,
    IndicesCase,
    MaxPool,
    huge_plane,
    max_pool2d,
    max_pool2d_tiny,
    pool_of,
    window_rules,
)

# ---- digested calls --------------------------------------------------------------------------------------------------


def pool(*arguments, **rest):
    return pool_of("MaxPool2dWithIndices", *arguments, **rest)


def digested_groups():
    for bits in ("int32", "int64"):
        for kernel, stride, padding in ((3, 2, 1), (2, 2, 0), (3, 1, 1)):
            calls = [
                pool(shape, kernel, stride, padding, number % 5 == 4, bits=bits, kind=("plain", "coarse")[number % 2])
                for number, width in enumerate(WIDTHS)
                if fits(shape := image(number, width), kernel, stride, padding)
            ]
            yield f"{bits} k{kernel} s{stride} p{padding}, widths", Group(calls)
        calls = [
            pool(shape, kernel, stride, padding, bits=bits, kind=("coarse", "plain", "special")[number % 3])
            for number, ((kernel, stride, padding), width) in enumerate(product(OTHER_POOLS, FEW_WIDTHS[::2]))
            if fits(shape := narrow_image(number, width, 9), kernel, stride, padding)
        ] + [
            pool((1, channels, 20, width), kernel, stride, padding, ceil, bits=bits, kind="coarse")
            for (kernel, stride, padding), (channels, width, ceil) in product(
                LARGE_POOLS, ((3, 19, False), (17, 24, True), (2, 40, False)))
        ]  # fmt: skip
        yield f"{bits} other kernels, widths", Group(calls)
        calls = [
            pool(shape, kernel, stride, padding, bits=bits, layout=layout, out=out, kind=kind)
            for (kernel, stride, padding), (layout, out), shape, kind in product(
                ((3, 2, 1), (3, 1, 1), (5, 9, 2)), BOTH_WAYS,
                ((1, 19, 6, 33), (1, 5, 7, 7), (2, 24, 7, 6), (2, 12, 7, 6)),
                ("plain", "special"))
        ]  # fmt: skip
        yield f"{bits} layouts", Group(calls)
        calls = [
            pool((2, 5, 17, 159), 5, 9, 2, bits=bits, layout=layout, out=out, kind=("plain", "special")[number % 2])
            for number, (layout, out) in enumerate(BOTH_WAYS)
        ]
        yield f"{bits} layouts of rows that are scanned", Group(calls)
        calls = [
            pool((1, 2, 6, width), kernel, stride, padding, bits=bits)
            for (kernel, stride, padding), width in product(
                ((3, 2, 1), (2, 2, 0), (3, 1, 1), (5, 9, 2), ((1, 40), (1, 8), 0)), (1000, 4099))
        ] + [
            pool((1, 2, 300, 7), (60, 3), 2, (30, 1), bits=bits), pool((1, 40, 112, 112), 3, 2, 1, bits=bits),
            pool((1, 2, 400, 515), 2, 2, 0, bits=bits),
        ]  # fmt: skip
        yield f"{bits} long rows and large", Group(calls)


class DigestedCalls(DigestedPools):
    written = 2

    def output_shapes(self, call):
        return [pooled_shape(call.shape, *call.attributes)] * 2

    def output_dtypes(self, call, dtype):
        return [dtype, np.dtype(call.bits)]

    def layouts(self, call):
        return call.layout, [call.out, call.out]

    def phase_1(self, call, inputs, outs):
        return [inputs[0], *self.lists(call), *outs]

    def one_call(self, call, inputs, outs):
        kernel, stride, padding, ceil = call.attributes
        out, indices = outs
        return aclnn_bw.max_pool2d_with_indices(inputs[0], kernel, stride, padding, 1, ceil, out=out, indices=indices)

    def groups(self):
        return digested_groups()


# ---- calls between guard pages ---------------------------------------------------------------------------------------


class Guarded(IndicesCase):
    def tensors(self):
        out = pooled_shape(self.shape, *self.pool)
        return {"self": (self.shape, self.dtype, "read"), "out": (out, self.dtype, "written"),
                "indices": (out, self.index, "written")}  # fmt: skip

    def check(self, inputs, outputs):
        maxima, indices = max_pool2d(inputs["self"].astype(np.float64), *self.pool)
        assert_same(outputs["out"], maxima.astype(self.dtype))
        assert_same(outputs["indices"], indices.astype(self.index))

    def phase1(self, t):
        return t["self"], *self.lists(), t["out"], t["indices"]

    def one_call(self, t):
        kernel, stride, pad, ceil = self.pool
        aclnn_bw.max_pool2d_with_indices(
            t["self"], kernel, stride, pad, 1, ceil, out=t["out"], indices=t["indices"])  # fmt: skip


# ---- the operator ----------------------------------------------------------------------------------------------------


class MaxPool2dWithIndices(MaxPool):
    declaration = "const aclTensor *self, const aclIntArray *kernelSize, const aclIntArray *stride, " \
        "const aclIntArray *padding, const aclIntArray *dilation, bool ceilMode, aclTensor *out, aclTensor *indices"
    signature = "self, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, *, out=None, indices=None"
    headers = ("aclnn_max_pool2d_with_indices.h",)
    page = "max_pool2d_indices"
    core = "max_pool2d"
    roles: ClassVar[dict] = {"self": "read", "out": "written", "indices": "written"}
    dtypes = on_products(NONE, NONE, WITH_BF16, REAL)
    geometries: ClassVar[list] = [*POOLS, {"index": "int32"}, {"shape": (2, 9, 13), "index": "int32"}]
    demo = ("13  15", "indices: 4 of 4")
    guarded = Guarded
    digested = DigestedCalls()

    def make(self, index="int64", **geometry):
        attributes = self.geometry(**geometry)
        out = pooled_shape(self.shape, *self.pool)
        return {
            "self": self.integers(*self.shape), **attributes,
            "out": sentinel_array(out, self.dtype), "indices": sentinel_array(out, np.dtype(index)),
        }  # fmt: skip

    def twin(self):
        return dict(zip(("out", "indices"), max_pool2d(self["self"].astype(np.float64), *self.pool), strict=True))

    def one_call(self):
        """Its indices are int64, as PyTorch's."""
        out, indices = super().one_call()
        assert indices.dtype == np.int64
        return out, indices.astype(self["indices"].dtype)

    @classmethod
    def sample(cls):
        out, indices = np.empty((1, 1, 2, 2), np.float32), np.empty((1, 1, 2, 2), np.int32)
        cls.by_phases(SAMPLED, [2, 2], [2, 2], [0, 0], [1, 1], False, out, indices)
        return {"out": out, "indices": indices}

    @staticmethod
    def rules(j, c, a):
        two = c.face == "two-phase"
        kernel, ceil = ("kernelSize", "ceilMode") if two else ("kernel_size", "ceil_mode")
        rules.nulls(j, a, "self", kernel, *["stride"] * two, "padding", "dilation", *["out", "indices"] * two)
        written = [name for name in ("out", "indices") if a[name] is not None]
        if len(written) < 2:  # what is to be made follows from these alone
            rules.dtypes(j, c, a, "self", "self")
            j.stage()
            rules.formats_of_images(j, a, "self")
            rules.ranks(j, a, (3, 4), "self")
            j.stage()
            window_rules(j, a, kernel, ceil)
            rules.not_too_large(j, a, "self")
        rules.dtypes(j, c, a, "self", "self", *[name for name in written if name == "out"])
        j.stage()
        if "indices" in written:
            rules.dtype_of_indices(j, a, "indices")
        rules.formats_of_images(j, a, "self", *[name for name in written if name == "out"])
        if "indices" in written:
            j.refuse(a["indices"].format in rules.PRIVATE, "format", "indices")
        j.stage()
        rules.ranks(j, a, (3, 4), "self")
        j.stage()
        windows = window_rules(j, a, kernel, ceil)
        shape = a["self"].shape
        for name in written:
            rules.shape_is(j, a, name, (*shape[:-2], *windows))
        j.stage()
        narrow = "indices" in written and a["indices"].dtype == "int32"
        j.refuse((narrow or c.product != "Host") and math.prod(shape[-2:]) > 2**31 - 1, "plane beyond int32", "self")
        j.stage()
        bytes_made = 8 * math.prod((*shape[:-2], *windows)) if "indices" not in written else 0
        j.refuse(bytes_made > 2**48, "more bytes than a machine addresses", "indices")
        rules.not_too_large(j, a, "self", *["indices"] * ("indices" in written))
        rules.memory(j, a, ("self",), (), ("out", "indices"))

    @staticmethod
    def draw(d):
        random = d.random
        size, kernel, stride, pad, ceil, pooled = d.pool()
        leading = d.leading()
        d.add("self", tensor(random, (*leading, *size), d.dtype))
        d.add("kernelSize", d.ints(kernel))
        d.add("stride", d.stride(kernel, stride))
        d.add("padding", d.ints(pad))
        d.add("dilation", d.ints((1, 1)))
        d.add("ceilMode", Argument(ceil, ceil))
        d.add("out", d.out("out", (*leading, *pooled), d.dtype))
        d.add("indices", d.out("indices", (*leading, *pooled), random.choice(("int32", "int64"))))
        if random.random() < 0.03:
            huge_plane(d)

    @staticmethod
    def expected(drawn, values, a):
        two = drawn.face == "two-phase"
        kernel = rules.pair(a["kernelSize" if two else "kernel_size"])
        stride, pad = rules.pair(a["stride"] or kernel), rules.pair(a["padding"])
        if math.prod(kernel) > 10_000 or math.prod(values.shape) > 1 << 20:
            return None
        out, positions = max_pool2d_tiny(values, kernel, stride, pad, a["ceilMode" if two else "ceil_mode"])
        row, column = np.divmod(positions, kernel[1])
        row += (np.arange(out.shape[-2]) * stride[0] - pad[0])[:, None]
        column += np.arange(out.shape[-1]) * stride[1] - pad[1]
        return [out, row * values.shape[-1] + column]
