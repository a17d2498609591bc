"""MaxPool2dWithMask: what the tests know of it, and of the function mask_shape."""

import math
from itertools import product
from typing import ClassVar

import numpy as np
from digest_calls import BOTH_WAYS, FEW_WIDTHS, MASKS, WIDTHS, Group, fits, image, narrow_image
from engine_helpers import sentinel_array
from fuzz import rules
from fuzz.calls import Argument, tensor
from fuzz.cases import BYTE, assert_same, integers
from reference import pooled_shape

import aclnn_bw
from operators import max_pool
from operators.base import BASIC, REAL, WITH_BF16, on_products
from operators.max_pool import (
    KNOWN,
    LARGE_POOLS,
    OTHER_POOLS,
    SAMPLED,
    DigestedPools,
    MaxPool,
    MaxPoolCase,
    argmax_mask,
    argmax_mask_tiny,
    beyond_int32,
    bitmask,
    bitmask_tiny,
    container,
    container_of,
    hits_of_indices,
    mask_rules,
    max_pool2d,
    max_pool2d_tiny,
    more_positions_than_int32,
    pool,
)

# ---- digested calls --------------------------------------------------------------------------------------------------


def digested_groups():
    for mask in MASKS:
        for kernel, stride, padding in ((3, 2, 1), (2, 2, 0), (3, 1, 1)):
            calls = [
                pool(
                    shape,
                    kernel,
                    stride,
                    padding,
                    number % 5 == 4,
                    True,
                    mask=mask,
                    kind=("plain", "coarse")[number % 2],
                )
                for number, width in enumerate(WIDTHS)
                if fits(shape := image(number, width), kernel, stride, padding)
            ]
            yield f"{mask} k{kernel} s{stride} p{padding}, widths", Group(calls)
        calls = [
            pool(
                shape,
                kernel,
                stride,
                padding,
                number % 5 == 4,
                True,
                mask=mask,
                kind=("coarse", "plain", "special")[number % 3],
            )
            for number, ((kernel, stride, padding), width) in enumerate(product(OTHER_POOLS, FEW_WIDTHS[::2]))
            if fits(shape := narrow_image(number, width, 9), kernel, stride, padding)
        ]
        yield f"{mask} other kernels, widths", Group(calls)
        calls = [
            pool((1, channels, 20, width), kernel, stride, padding, ceil, True, mask=mask, kind="coarse")
            for (kernel, stride, padding), (channels, width, ceil) in product(
                LARGE_POOLS, ((3, 19, False), (17, 24, True), (2, 40, False))
            )
        ]
        yield f"{mask} large kernels", Group(calls)
        calls = [
            pool((1, 3, 13, 37), (rows, columns), (1 + number % 4, stride), (rows // 2, columns // 3),
                number % 3 == 0, True,
                 mask=mask, kind=("coarse", "plain")[number % 2])
            for number, (columns, stride, rows) in enumerate(product(range(1, 18), range(1, 10), (1, 4)))
        ]  # fmt: skip
        yield f"{mask} kernel columns 1 to 17, strides 1 to 9", Group(calls)
        calls = [
            pool((1, channels, *size), kernel, stride, padding, False, True, mask=mask, kind="coarse")
            for channels, (size, (kernel, stride, padding)) in product(
                range(1, 36), (((5, 30), (3, 2, 1)), ((5, 6), (3, 3, 0)), ((3, 12), (9, 1, 4))))
        ]  # fmt: skip
        yield f"{mask} channels 1 to 35", Group(calls)
        calls = [
            pool(shape, kernel, stride, padding, False, True, layout=layout, out=out, mask=mask)
            for (kernel, stride, padding), (layout, out), shape in product(
                ((3, 2, 1), (3, 1, 1), (5, 9, 2)), BOTH_WAYS,
                ((1, 19, 6, 33), (1, 5, 7, 7), (2, 24, 7, 6), (2, 12, 7, 6)))
        ]  # fmt: skip
        yield f"{mask} layouts", Group(calls)
        calls = [
            pool((2, 5, 17, 159), 5, 9, 2, False, True, layout=layout, out=out, mask=mask,
                 kind=("plain", "special")[number % 2])
            for number, (layout, out) in enumerate(BOTH_WAYS)
        ]  # fmt: skip
        yield f"{mask} layouts of rows that are scanned", Group(calls)
        calls = [
            pool((1 + number % 2, channels, 9, width), kernel, stride, padding, number % 3 == 0, True, layout=layout,
                 out=layout, mask=mask, kind=kind)
            for number, ((kernel, stride, padding), (channels, width), kind, layout) in enumerate(product(
                (*KNOWN, (5, 2, 2), (3, 3, 0), ((5, 3), 1, (2, 1)), (7, 9, 2), (9, 3, 4)),
                ((16, 7), (18, 16), (45, 13)), ("coarse", "special"), ("channels_last", "channels_last_reversed")))
        ]  # fmt: skip
        yield f"{mask} channels last on both sides", Group(calls)
        calls = [
            pool((1, 2, 6, width), kernel, stride, padding, False, True, mask=mask)
            for (kernel, stride, padding), width in product(
                ((3, 2, 1), (2, 2, 0), (3, 1, 1), (5, 9, 2), ((1, 40), (1, 8), 0)), (1000, 4099, 25001))
        ] + [pool((1, 2, 300, 7), (60, 3), 2, (30, 1), False, True, mask=mask)]  # fmt: skip
        yield f"{mask} long rows and tall kernels", Group(calls, ("float32", "bfloat16"))
        geometries = [*KNOWN, (5, 2, 2), (3, 3, 0), (9, 1, 4), (7, 7, 0)]
        calls = [
            pool((2, 18, 9, width), kernel, stride, padding, False, True, kind="special", mask=mask)
            for (kernel, stride, padding), width in product(geometries, (7, 16, 30))
        ]
        yield f"{mask} special values", Group(calls)
        calls = [pool((1, 2, 3, 400), (1, kernel), 1, 0, False, True, mask=mask) for kernel in (63, 64, 65, 129, 200)]
        yield f"{mask} long kernels", Group(calls)
        calls = [
            pool((2, 18, 9, width), kernel, stride, padding, False, True, kind=kind, mask=mask, product="Ascend910")
            for (kernel, stride, padding), width, kind in product(geometries, (7, 30), ("coarse", "special"))
        ]
        yield f"{mask} reduced precision", Group(calls, ("float32",))
        calls = [
            pool((1, 40, 112, 112), 3, 2, 1, False, True, mask=mask),
            pool((1, 2, 400, 515), 2, 2, 0, False, True, mask=mask),
            pool((1, 20, 56, 56), 3, 1, 1, False, True, mask=mask, layout="channels_last"),
        ]  # fmt: skip
        yield f"{mask} large", Group(calls)


class DigestedCalls(DigestedPools):
    written = 2

    def output_shapes(self, call):
        return [function(call.shape, *call.attributes) for function in (pooled_shape, max_pool.mask_shape)]

    def output_dtypes(self, call, dtype):
        return [dtype, np.dtype(np.int8)]

    def layouts(self, call):
        return call.layout, [call.out, "contiguous"]

    def phase_1(self, call, inputs, outs):
        return [inputs[0], *self.lists(call), *outs]

    def one_call(self, call, inputs, outs):
        return aclnn_bw.max_pool2d_with_mask(inputs[0], **self.keywords(call), out=outs[0], mask_out=outs[1])

    def groups(self):
        return digested_groups()


# ---- calls between guard pages ---------------------------------------------------------------------------------------


class Guarded(MaxPoolCase):
    def tensors(self):
        return {"self": (self.shape, self.dtype, "read"),
                "out": (pooled_shape(self.shape, *self.pool), self.dtype, "written"),
                "indices": (max_pool.mask_shape(self.shape, *self.pool), BYTE, "written")}  # fmt: skip

    def values(self, name, shape, dtype):
        values = integers(self.rng, shape, dtype)
        if self.rng.random() < 0.3:
            special = self.rng.choice([np.nan, np.inf, -np.inf], shape).astype(dtype)
            values = np.where(self.rng.random(shape) < 0.1, special, values)
        return values

    def check(self, inputs, outputs):
        maxima, indices = max_pool2d(self.rounded(inputs["self"]), *self.pool)
        if self.argmax:
            mask = argmax_mask(indices, self.pool[0])
        else:
            mask = bitmask(hits_of_indices(indices, self.shape, *self.pool))
        assert_same(outputs["out"], maxima.astype(self.dtype))
        assert_same(outputs["indices"], mask)

    def phase1(self, t):
        return t["self"], *self.lists(), t["out"], t["indices"]

    def one_call(self, t):
        kernel, stride, pad, ceil = self.pool
        aclnn_bw.max_pool2d_with_mask(t["self"], kernel, stride, pad, 1, ceil, mask_layout=self.mask_layout,
                                      out=t["out"], mask_out=t["indices"])  # fmt: skip


# ---- the operator ----------------------------------------------------------------------------------------------------


class MaxPool2dWithMask(MaxPool):
    declaration = "const aclTensor *self, const aclIntArray *kernelSize, const aclIntArray *stride, " \
        "const aclIntArray *padding, const aclIntArray *dilation, bool ceilMode, aclTensor *out, aclTensor *indices"
    signature = "self, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, *, mask_layout='bitmask', " \
        "out=None, mask_out=None"
    headers = ("aclnn_max_pool2d_with_indices.h",)
    roles: ClassVar[dict] = {"self": "read", "out": "written", "indices": "written"}
    dtypes = on_products(BASIC, ("float32",), WITH_BF16, REAL)
    demo = ("13  15", 'indices.view("<u2")[0, 0, :, :4]: 16 of 16')
    most_positions = 1 << 10  # each makes the mask larger
    guarded = Guarded
    digested = DigestedCalls()

    def make(self, **geometry):
        attributes = self.geometry(**geometry)
        out = pooled_shape(self.shape, *self.pool)
        mask = max_pool.mask_shape(self.shape, *self.pool)
        return {
            "self": self.integers(*self.shape), **attributes,
            "out": sentinel_array(out, self.dtype), "indices": sentinel_array(mask, np.int8),
        }  # fmt: skip

    def twin(self):
        return dict(zip(("out", "indices"), self.mask(self["self"]), strict=False))

    @classmethod
    def sample(cls):
        out, mask = np.empty((1, 1, 2, 2), np.float32), np.empty((1, 1, 4, 64), np.int8)
        cls.by_phases(SAMPLED, [2, 2], [2, 2], [0, 0], [1, 1], False, out, mask)
        return {"out": out, "indices": mask}

    @staticmethod
    def rules(j, c, a):
        two = c.face == "two-phase"
        kernel, ceil, made = (
            ("kernelSize", "ceilMode", "indices") if two else ("kernel_size", "ceil_mode", "mask_out")
        )  # fmt: skip
        rules.nulls(j, a, "self", kernel, *["stride"] * two, "padding", "dilation", *["out", made] * two)
        out, marks = ["out"] * (a["out"] is not None), [made] * (a[made] is not None)
        if not (out and marks):  # what is to be made follows from these alone
            rules.dtypes(j, c, a, "self", "self")
            j.stage()
            mask, _ = MaxPool2dWithMask.geometry_rules(j, a, kernel, ceil)
            j.refuse(math.prod(filter(None, mask)) > 2**48, "shape", kernel)
            rules.not_too_large(j, a, "self")
        rules.dtypes(j, c, a, "self", "self", *out)
        for name in marks:
            j.refuse(a[name].swapped or a[name].dtype != "int8", "dtype", name)
        j.stage()
        mask, windows = MaxPool2dWithMask.geometry_rules(j, a, kernel, ceil, out, marks)
        for name in out:
            rules.shape_is(j, a, name, (*a["self"].shape[:-2], *windows))
        j.stage()
        for name in marks:
            mask_rules(j, c, a, name, a["self"].shape, mask)
        j.refuse(beyond_int32(c, a["self"].shape, mask), "plane beyond int32", "self")
        j.stage()
        rules.not_too_large(j, a, "self", *marks)
        j.refuse(mask[-2] > 2**31 - 1, "more positions than an int32 counts", kernel)
        j.stage()
        rules.memory(j, a, ("self",), (), ("out", made))

    @staticmethod
    def geometry_rules(j, a, kernel, ceil, out=(), marks=()):
        """Ranks, formats and attributes; the shape of the mask, and the windows."""
        rules.ranks(j, a, (3, 4), "self", *out, *marks)
        rules.formats_of_images(j, a, "self", *out)
        for name in marks:
            j.refuse(a[name].format in rules.PRIVATE, "format", name)
        j.stage()
        rules.lengths(j, a, **{kernel: (1, 2), "stride": (0, 1, 2), "padding": (1, 2), "dilation": (1, 2)})
        j.stage()
        return container(j, a, a["self"].shape, kernel, ceil)

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
        if not d.two:
            d.drawn.layout = random.choice(("bitmask", "argmax"))
            d.add("mask_layout", Argument(d.drawn.layout, d.drawn.layout))
        d.add("out", d.out("out", (*leading, *pooled), d.dtype))
        d.add("indices", d.out("indices", container_of(leading, kernel, pooled), "int8", how="row-major"))
        if d.two:
            if random.random() < 0.02:
                more_positions_than_int32(d)
        else:
            if random.random() < 0.03:
                one = tensor(random, (1,), d.dtype, how="row-major", wrap="array")
                value = np.broadcast_to(one.value, (1, 1, 2, random.choice((2**31, 2**47))))
                view = one.meaning._replace(shape=value.shape, strides=(0, 0, 0, 0), format=rules.NCHW)
                for name, argument in (
                    ("self", Argument(value, view)), ("kernel_size", d.ints((2, 1))),
                    ("stride", d.ints((1, 2**40))), ("padding", d.ints((0, 0))), ("out", Argument(None, None)),
                    ("mask_out", Argument(None, None)),
                ):  # fmt: skip
                    d.drawn.arguments[name] = argument
                d.drawn.outputs = ()

    @staticmethod
    def expected(drawn, values, a):
        two = drawn.face == "two-phase"
        kernel = rules.pair(a["kernelSize" if two else "kernel_size"])
        stride, pad = rules.pair(a["stride"] or kernel), rules.pair(a["padding"])
        out, positions = max_pool2d_tiny(values, kernel, stride, pad, a["ceilMode" if two else "ceil_mode"])
        images = positions.reshape(math.prod(positions.shape[:-3]), *positions.shape[-3:])
        if drawn.layout == "argmax" and math.prod(kernel) > 1:
            mask = argmax_mask_tiny(images, values.shape, kernel, stride, pad)
        else:
            mask = bitmask_tiny(images, kernel)
        return [out, mask.reshape(*values.shape[:-2], *mask.shape[-2:])]


class mask_shape:
    """The function of this name: the forward's rules for a shape alone."""

    @staticmethod
    def rules(j, c, a):
        rules.nulls(j, a, "self", "kernel_size", "padding", "dilation")
        rules.ranks(j, a, (3, 4), "self")
        j.stage()
        rules.lengths(j, a, kernel_size=(1, 2), stride=(0, 1, 2), padding=(1, 2), dilation=(1, 2))
        j.stage()
        mask, _ = container(j, a, a["self"].shape, "kernel_size", "ceil_mode")
        j.refuse(math.prod(filter(None, mask)) > 2**48, "shape", "kernel_size")
        rules.not_too_large(j, a, "self")
