"""Digests of what the operators compute: they say that nothing changed, and no more.

    python tests/digests.py             # compare with tests/digests.json; the exit status is 1 if a digest differs
    python tests/digests.py --write     # store them anew

Whether a value is right is for the operators' own tests, which compare with the twin in reference.py. Here are seeded
calls in groups, a digest for the outputs of each group in each dtype, so that a change of a kernel that is to change no
bit can be seen to change none. The results are the same on every instruction set and number of threads, hence one file
serves all. Together the calls reach every algorithm and nearly every path of the kernels: widths around the lengths of
vectors, kernels and strides of all sizes, both mask layouts, all kinds of strides, arrays beyond the caches, and values
that are rounded, cancelled or no numbers.

Inputs are bits of a generator whose stream NumPy promises to keep, put together by integer arithmetic. A change of the
calls or of their inputs changes digests too: then store them anew with kernels that are known to be good.
"""

import argparse
import hashlib
import json
import math
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from itertools import islice, product
from pathlib import Path
from typing import NamedTuple

TESTS = Path(__file__).resolve().parent
sys.path.insert(0, str(TESTS))
if any((TESTS.parent / "aclnn_bw").glob("_native.*so")):  # built in place: no other installation is meant
    sys.path.insert(0, str(TESTS.parent))

import ml_dtypes  # noqa: E402
import numpy as np  # noqa: E402
import reference  # noqa: E402
from helpers import LAYOUTS  # noqa: E402

import aclnn_bw  # noqa: E402

STORED = TESTS / "digests.json"

REAL = ("float32", "float64", "float16", "bfloat16")
ALL = (*REAL, "complex64", "complex128")
DTYPES = {name: np.dtype(getattr(ml_dtypes if name == "bfloat16" else np, name)) for name in ALL}
HALVES, WIDER = ("float16", "bfloat16"), ("float32", "float64")
MASKS = ("bitmask", "argmax")
CANARY, NAN = 0xA5, 0xFF  # bytes of an output and of a workspace before a call


# Asked for again in every dtype.
pooled_shape = lru_cache(maxsize=4096)(reference.pooled_shape)
mask_shape = lru_cache(maxsize=4096)(reference.mask_shape)


# ---- values ---------------------------------------------------------------------------------------------------------

# Bits of the fraction, and the exponent of 1.
FORMATS = {"float32": (23, 127), "float64": (52, 1023), "float16": (10, 15), "bfloat16": (7, 127)}
DRAWN = 1_000_003  # numbers, over and over; a prime, so that no plane repeats another one


@lru_cache
def drawn():
    """64 random bits each."""
    return np.random.Philox(key=20240229).random_raw(DRAWN)


@lru_cache
def numbers(name, kind):
    """Bit patterns of a real dtype: numbers of both signs from 2**-7 to 2**4, and by `kind` others among them.

    "nothing" is -0.0, of which no sum may keep the sign.
    """
    fraction, one = FORMATS[name]
    word = np.uint64
    bits = drawn()
    kept = fraction - 2 if kind == "coarse" else 0  # few values, so that many are equal
    random = (bits >> word(3)) & word((1 << fraction) - 1) & ~word((1 << kept) - 1)
    exponent = (bits >> word(56)) % word(11) + word(one - 7)
    top = 8 * DTYPES[name].itemsize - 1
    found = random | exponent << word(fraction) | (bits & word(1)) << word(top)
    if kind == "nothing":
        found = np.full_like(found, 1 << top)
    if kind == "special":
        infinity = ((1 << (top - fraction)) - 1) << fraction
        negative = 1 << top
        specials = [
            infinity + (1 << (fraction - 1)), infinity, infinity | negative, 0, negative, 1, negative + 3,
            1 << fraction, (1 << fraction) - 1, infinity - 1, infinity - 1 | negative, infinity - (1 << (fraction - 1)),
        ]  # fmt: skip
        chosen = np.array(specials, word)[((bits >> word(40)) % word(len(specials))).astype(np.int64)]
        found = np.where((bits >> word(48)) % word(16) == 0, chosen, found)
    return found.astype(f"u{(top + 1) // 8}")


def repeated(array, start, size):
    """So many elements of an endless repetition, from one of them on."""
    start %= len(array)
    found = np.empty(size, array.dtype)
    at = min(size, len(array) - start)
    found[:at] = array[start : start + at]
    while at < size:
        step = min(size - at, len(array))
        found[at : at + step] = array[:step]
        at += step
    return found


def values(name, shape, seed, kind):
    size = math.prod(shape)
    if name.startswith("complex"):
        part = f"float{int(name[7:]) // 2}"
        return repeated(numbers(part, kind), seed, 2 * size).view(name).reshape(shape)
    return repeated(numbers(name, kind), seed, size).view(DTYPES[name]).reshape(shape)


def laid(array, layout):
    """The same values in another layout, with NaN in the gaps."""
    if layout == "contiguous":
        return array
    base, view = LAYOUTS[layout](*array.shape)
    found = view(np.full(math.prod(base) * array.itemsize, NAN, np.uint8).view(array.dtype).reshape(base))
    found[...] = array
    return found


def output(shape, dtype, layout):
    base, view = LAYOUTS[layout](*shape)
    return view(np.full(math.prod(base) * dtype.itemsize, CANARY, np.uint8).view(dtype).reshape(base))


def canonical(array):
    """The bytes of an array in row-major order, with every NaN as the same one."""
    array = np.ascontiguousarray(array)
    name = array.dtype.name
    if array.dtype.kind == "i":
        return array
    part = f"float{int(name[7:]) // 2}" if array.dtype.kind == "c" else name
    fraction, _ = FORMATS[part]
    words = array.view(f"u{DTYPES[part].itemsize}")
    top = 8 * words.itemsize - 1
    size = words.dtype.type
    nan = (words & size((1 << top) - 1)) > size(((1 << (top - fraction)) - 1) << fraction)
    return np.where(nan, np.iinfo(words.dtype).max, words) if nan.any() else words


# ---- calls ----------------------------------------------------------------------------------------------------------


class Call(NamedTuple):
    """A call of one operator, but for the dtype. `attributes` are those of the one-call function behind its arrays."""

    operator: str
    shape: tuple  # of the image, with N or without
    attributes: tuple
    layout: str = "contiguous"  # of the input
    out: str = "contiguous"  # the layout of the output; a mask has none but one
    kind: str = "plain"  # of the values
    mask: str = "bitmask"
    bits: str = "one"  # of a window in the mask; "any" and "outside": see build_mask
    product: str = "Host"
    rest: int | str = 0  # AvgPool2dBackward: cubeMathType. Im2colBackward: the dtype of out


def pairs(attributes):
    return [list(reference.pair(value)) for value in attributes]


@contextmanager
def rules(call):
    with aclnn_bw.soc(call.product, mask_layout=call.mask):
        yield


class Operator:
    """What a call of one operator needs."""

    written = 1  # arrays

    def input_shape(self, call):
        """The shape of the first input."""
        return call.shape

    def output_shapes(self, call):
        return [call.shape]

    def output_dtypes(self, call, dtype):
        return [dtype]

    def layouts(self, call):
        return call.layout, [call.out]

    def extra(self, call, seed):
        """Inputs behind the first one."""
        return []

    def phase_1(self, call, inputs, outs):
        raise NotImplementedError

    def one_call(self, call, inputs, outs):
        """Outputs of the one-call function, or None."""
        raise NotImplementedError


def stand_in(call, like):
    """Of `self` the shape alone is asked for."""
    return np.broadcast_to(np.zeros((), like.dtype), call.shape)


class AvgPool2dBackward(Operator):
    def input_shape(self, call):
        return pooled_shape(call.shape, *call.attributes[:4])

    def phase_1(self, call, inputs, outs):
        kernel, stride, padding, ceil, include, divisor = call.attributes
        return [
            inputs[0], stand_in(call, outs[0]), *pairs((kernel, stride, padding)), ceil, include, divisor or 0,
            call.rest, outs[0],
        ]  # fmt: skip

    def one_call(self, call, inputs, outs):
        return [aclnn_bw.avg_pool2d_backward(inputs[0], call.shape, *call.attributes, out=outs[0])]


class MaxPool(Operator):
    """Attributes: kernel, stride, padding, ceil_mode."""

    def lists(self, call):
        kernel, stride, padding, ceil = call.attributes
        return [*pairs((kernel, stride, padding)), [1, 1], ceil]

    def keywords(self, call):
        kernel, stride, padding, ceil = call.attributes
        return {
            "kernel_size": kernel,
            "stride": stride,
            "padding": padding,
            "ceil_mode": ceil,
            "mask_layout": call.mask,
        }


class MaxPool2dWithMaskBackward(MaxPool):
    def input_shape(self, call):
        return pooled_shape(call.shape, *call.attributes)

    def extra(self, call, seed):
        build = small_mask if math.prod(call.shape) < 1 << 17 else large_mask
        return [build(call.shape, call.attributes, call.mask, call.bits, seed)]

    def phase_1(self, call, inputs, outs):
        return [inputs[0], stand_in(call, outs[0]), inputs[1], *self.lists(call), outs[0]]

    def one_call(self, call, inputs, outs):
        keywords = self.keywords(call)
        return [aclnn_bw.max_pool2d_with_mask_backward(inputs[0], call.shape, inputs[1], **keywords, out=outs[0])]


class MaxPool2dWithMask(MaxPool):
    written = 2

    def output_shapes(self, call):
        return [function(call.shape, *call.attributes) for function in (pooled_shape, mask_shape)]

    def output_dtypes(self, call, dtype):
        return [dtype, np.dtype(np.int8)]

    def layouts(self, call):
        return call.layout, [call.out, "contiguous"]

    def phase_1(self, call, inputs, outs):
        return [inputs[0], *self.lists(call), *outs]

    def one_call(self, call, inputs, outs):
        return aclnn_bw.max_pool2d_with_mask(inputs[0], **self.keywords(call))


# Rank 3, with the channels in the middle: what other operators call channels last are planes transposed.
MIDDLE = {"channels_last": "planes_transposed"}


class UpsampleNearestExact1dBackward(Operator):
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


class Im2colBackward(Operator):
    """Attributes: kernel, dilation, padding, stride."""

    def input_shape(self, call):
        kernel, dilation, padding, stride = call.attributes
        windows = pooled_shape(call.shape[-2:], kernel, stride, padding, False, dilation)
        *batch, channels, _, _ = call.shape
        return (*batch, channels * math.prod(reference.pair(kernel)), math.prod(windows))

    def output_dtypes(self, call, dtype):
        return [DTYPES[call.rest] if call.rest else dtype]

    def layouts(self, call):
        return MIDDLE.get(call.layout, call.layout), [call.out]

    def phase_1(self, call, inputs, outs):
        return [inputs[0], list(call.shape[-2:]), *pairs(call.attributes), outs[0]]

    def one_call(self, call, inputs, outs):
        return [aclnn_bw.im2col_backward(inputs[0], call.shape[-2:], *call.attributes, out=outs[0])]


class ReplicationPad2dBackward(Operator):
    """Attribute: left, right, top, bottom."""

    def input_shape(self, call):
        ((left, right, top, bottom),) = call.attributes
        *planes, height, width = call.shape
        return (*planes, height + top + bottom, width + left + right)

    def phase_1(self, call, inputs, outs):
        return [inputs[0], stand_in(call, outs[0]), list(call.attributes[0]), outs[0]]

    def one_call(self, call, inputs, outs):
        return [aclnn_bw.replication_pad2d_backward(inputs[0], call.shape, *call.attributes, out=outs[0])]


# In the order of the package's own enumeration.
OPERATORS = {
    operator.__name__: operator()
    for operator in (
        MaxPool2dWithMaskBackward, MaxPool2dWithMask, UpsampleNearestExact1dBackward, AvgPool2dBackward, Im2colBackward,
        ReplicationPad2dBackward,
    )
}  # fmt: skip


def build_mask(shape, attributes, layout, bits, seed):
    """A mask with one position for each window, drawn among those inside the image.

    With bits "any", whatever a reader ignores is set at random, and in half of the bit masks all else, too; with bits
    "all", every bit is set.
    """
    kernel, stride, padding = map(reference.pair, attributes[:3])
    height, width = shape[-2:]
    rows, columns = pooled_shape(shape, *attributes)[-2:]
    planes, channels = math.prod(shape[:-2]), shape[-3]
    random = repeated(drawn(), seed, planes * rows * columns).reshape(planes, rows, columns)
    starts, chosen = [], []
    for axis, (size, count) in enumerate(((height, rows), (width, columns))):
        start = np.arange(count) * stride[axis] - padding[axis]
        first = np.maximum(0, -start)
        inside = np.minimum(kernel[axis], size - start) - first
        start, first, inside = (a[:, None] if axis == 0 else a for a in (start, first, inside))
        drawn_here = (random >> np.uint64(8 + 24 * axis)) & np.uint64(0xFFFFF)
        starts.append(start)
        chosen.append(first + (drawn_here % inside.astype(np.uint64)).astype(np.int64))
    container = np.zeros(mask_shape(shape, *attributes), np.int8)
    flat = container.reshape(-1)
    noise = repeated(drawn(), seed + 17, -(-flat.size // 8)).view(np.int8)[: flat.size]
    if layout == "argmax" and kernel != (1, 1):
        indices = (starts[0] + chosen[0]) * width + starts[1] + chosen[1]
        if bits == "any":
            flat[:] = noise
        flat[: 4 * indices.size] = indices.astype("<i4").reshape(-1).view(np.int8)
        return container
    # A word is a bit for each of 16 channels, [images, groups, positions, windows].
    images, groups = planes // channels, -(-channels // 16)
    labels = (chosen[0] * kernel[1] + chosen[1]).reshape(images, channels, rows * columns)
    pitch = container.shape[-1] // 2
    words = np.zeros((images, groups, math.prod(kernel), pitch), "<u2")
    image, window = np.arange(images)[:, None], np.arange(rows * columns)
    for channel in range(channels):
        words[image, channel // 16, labels[:, channel], window] |= np.uint16(1 << channel % 16)
    if bits == "all":
        flat[:] = -1
        return container
    if bits == "any":
        flat[:] = noise
        if seed % 2 == 0:  # only where nobody reads
            heard = np.zeros_like(words)
            for channel in range(channels):
                heard[:, channel // 16, :, : rows * columns] |= np.uint16(1 << channel % 16)
            words |= flat[: words.nbytes].view("<u2").reshape(words.shape) & ~heard
            flat[: words.nbytes] = words.reshape(-1).view(np.int8)
        return container
    if bits == "outside":  # the one bit of a window in one channel lies in the padding, if there is any
        bit = np.uint16(1 << min(3, channels - 1))
        words[0, 0, :, 0] &= ~bit
        words[0, 0, 0, 0] |= bit
    flat[: words.nbytes] = words.reshape(-1).view(np.int8)
    return container


# The dtypes of a group share its masks.
small_mask = lru_cache(maxsize=512)(build_mask)
large_mask = lru_cache(maxsize=2)(build_mask)


def prepared(call, dtype, seed):
    """Inputs and outputs."""
    operator = OPERATORS[call.operator]
    layout, layouts = operator.layouts(call)
    inputs = [laid(values(dtype, operator.input_shape(call), seed, call.kind), layout), *operator.extra(call, seed)]
    shapes, dtypes = operator.output_shapes(call), operator.output_dtypes(call, DTYPES[dtype])
    return inputs, [output(*each) for each in zip(shapes, dtypes, layouts, strict=True)]


def phase_1(call, inputs, outs):
    with rules(call):
        name = f"aclnn{call.operator}GetWorkspaceSize"
        return getattr(aclnn_bw, name)(*OPERATORS[call.operator].phase_1(call, inputs, outs))


def results(call, dtype, number):
    """The outputs: of the two phases, or, for a third of the calls that both faces can make, of the one call."""
    # The same in all dtypes, so that they share a mask.
    inputs, outs = prepared(call, dtype, 7919 * number)
    if call.product == "Host" and not call.rest and number % 3 == 2:
        return OPERATORS[call.operator].one_call(call, inputs, outs)
    size, executor = phase_1(call, inputs, outs)
    workspace = np.full(size, NAN, np.uint8) if size else None
    getattr(aclnn_bw, f"aclnn{call.operator}")(workspace, size, executor)
    return outs


def plan(call, dtype):
    """An executor that is never run."""
    operator = OPERATORS[call.operator]
    layout, layouts = operator.layouts(call)

    def empty(shape, dtype, layout):
        base, view = LAYOUTS[layout](*shape)
        return view(np.empty(base, dtype))

    inputs = [empty(operator.input_shape(call), DTYPES[dtype], layout)]
    if call.operator == "MaxPool2dWithMaskBackward":
        inputs.append(np.empty(mask_shape(call.shape, *call.attributes), np.int8))
    shapes, dtypes = operator.output_shapes(call), operator.output_dtypes(call, DTYPES[dtype])
    _, executor = phase_1(call, inputs, [empty(*each) for each in zip(shapes, dtypes, layouts, strict=True)])
    return executor


# ---- which calls ----------------------------------------------------------------------------------------------------


class Group(NamedTuple):
    calls: list
    dtypes: tuple = REAL


WIDTHS = (*range(1, 71), 79, 80, 81, 95, 96, 97, 127, 128, 129, 130)
FEW_WIDTHS = (1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 14, 15, 16, 17, 18, 23, 24, 28, 31, 32, 33, 35, 47, 49, 56, 63, 64, 65, 67)
CHANNELS = (3, 1, 5, 2, 16, 4, 17, 7)
HEIGHTS = (7, 5, 9, 4, 11, 6)
STRIDED = tuple(name for name in LAYOUTS if name != "contiguous")
BOTH_WAYS = [
    *((layout, "contiguous") for layout in STRIDED),
    *(("contiguous", layout) for layout in STRIDED),
    *((layout, layout) for layout in STRIDED),
    ("channels_last", "channels_cropped"), ("channels_cropped", "channels_last"),
    ("channels_last", "every_second_column"), ("rows_cropped", "columns_cropped"),
]  # fmt: skip


def image(number, width, height=None):
    """A small one, each with other planes."""
    planes = (1 + number % 3, CHANNELS[number % len(CHANNELS)])
    return (*planes, height or HEIGHTS[number % len(HEIGHTS)], width)


def narrow_image(number, width, height=None):
    """A small one of few channels."""
    return (1 + number % 2, (3, 1, 2, 5)[number % 4], height or HEIGHTS[number % len(HEIGHTS)], width)


def fits(shape, kernel, stride, padding, ceil=False, dilation=1):
    """Whether there is such a pooling: every axis has a window."""
    axes = zip(shape[-2:], *map(reference.pair, (kernel, stride, padding, dilation)), strict=True)
    return all(
        reference.pooled_size(size, k, s, p, ceil, d) >= 1 and size + 2 * p >= (k - 1) * d + 1
        for size, k, s, p, d in axes
    )


def avg(shape, kernel, stride=None, padding=0, ceil=False, include=True, divisor=None, **rest):
    attributes = kernel, kernel if stride is None else stride, padding, ceil, include, divisor
    return Call("AvgPool2dBackward", shape, attributes, **rest)


def avg_pools() -> Iterator[tuple[str, Group]]:
    hot = [(2, 2, 0), (3, 2, 1), (3, 2, 0), (3, 1, 1), (3, 1, 0), (5, 1, 2), (3, 3, 0)]
    other = [
        (1, 1, 0), (1, 2, 0), (1, 3, 0), (2, 1, 0), (2, 1, 1), (2, 2, 1), (2, 3, 1), (3, 3, 1), (4, 1, 2), (4, 2, 1),
        (4, 3, 2), (4, 4, 0), (5, 2, 2), (5, 3, 1), (5, 5, 0), (6, 3, 0), (7, 1, 3), (7, 2, 3), (8, 8, 0), (11, 4, 2),
    ]  # fmt: skip
    for kernel, stride, padding in hot:
        calls = [
            avg(shape, kernel, stride, padding, number % 5 == 4, number % 3 != 1, (None, 3, None, -7)[number % 4])
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
    for stride in range(1, 9):
        calls = [
            avg((1, 2, 17, width), (rows, columns), (down, stride), (rows // 3, columns // 2), number % 2 == 0,
                number % 3 > 0)
            for number, (columns, (rows, down), width) in enumerate(
                product(range(1, 18), ((1, 1), (2, 3), (3, 2), (5, 1), (17, 9)), (19, 37)))
        ]  # fmt: skip
        yield f"kernel columns 1 to 17 at stride {stride}", Group(calls)
    calls = [
        avg((*planes, height, width), kernel, stride, padding, include=number % 2 == 0)
        for number, (height, width, planes, (kernel, stride, padding)) in enumerate(product(
            (1, 2, 4, 7, 14), (1, 3, 4, 7, 8, 14), ((12,), (2, 37)), ((2, 2, 0), (3, 1, 1), (3, 2, 1), (5, 3, 2))))
        if fits((height, width), kernel, stride, padding)
    ]  # fmt: skip
    yield "small planes", Group(calls)
    calls = [
        avg((2, channels, height, width), (height, width), divisor=(None, 5)[number % 2], out=out)
        for number, (channels, height, width, out) in enumerate(product(
            (1, 3, 33), (1, 2, 7), (1, 3, 4, 7, 8, 16, 33), ("contiguous", "channels_last", "columns_reversed")))
    ]  # fmt: skip
    yield "one window a plane", Group(calls)
    for kernel, stride, padding in ((2, 2, 0), (3, 2, 1), (3, 3, 0), (3, 1, 1), (5, 4, 2), (1, 1, 0), (2, 5, 0)):
        calls = [
            avg(shape, kernel, stride, padding, include=number % 2 == 0, layout=layout, out=out)
            for number, ((layout, out), shape) in enumerate(
                product(BOTH_WAYS, ((2, 19, 6, 13), (1, 35, 5, 18), (1, 3, 9, 65))))
        ]  # fmt: skip
        yield f"k{kernel} s{stride} p{padding}, layouts", Group(calls)
    calls = [
        avg((1, 2, 5, width), kernel, stride, padding, layout=layout, include=include)
        for (kernel, stride, padding), width, (layout, include) in product(
            ((2, 2, 0), (3, 2, 1), (3, 1, 1), (5, 4, 2), ((2, 17), 1, (1, 8))), (1000, 4099, 20001),
            (("contiguous", True), ("channels_last", False)))
    ]  # fmt: skip
    yield "long rows", Group(calls)
    calls = [
        avg((1, 1, 1500, 20), (1400, 5), (7, 3), (500, 2), include=False), avg((1, 2, 600, 20), (200, 3), 1, (100, 1)),
        avg((1, 1, 700, 3), (2, 3), (9, 1), (1, 1), include=False),
        avg((2, 1, 300, 40), (40, 4), (12, 5), (20, 2), True),
    ]  # fmt: skip
    yield "tall planes", Group(calls)
    # The rows of terms and of their sums that a band needs, 33 numbers each, are more than a MiB.
    for rows, dtypes in (8100, ("float32",)), (4050, HALVES), (2050, ("float64",)):
        stride = 2 if rows > 8000 else 1
        calls = [avg((1, 1, rows, 33), (rows - 3, 2), (stride, 1), 0, include=False)]
        if rows < 4000:
            calls += [avg((1, 1, 2 * rows, 33), (2 * rows - 3, 2), (2, 1), (3, 0), out="columns_reversed")]
        yield "kernels taller than the scratch", Group(calls, dtypes)
    geometries = [(2, 2, 0), (3, 2, 1), (3, 1, 1), (5, 4, 2), (7, 7, 0), (4, 1, 2)]
    calls = [
        avg((2, 3, 14, width), kernel, stride, padding, include=number % 2 == 0, kind=kind, product="Ascend910B",
            rest=cube, out=out)
        for number, ((kernel, stride, padding), width, kind, cube, out) in enumerate(product(
            geometries, (7, 33), ("plain", "special"), (1, 2, 3), ("contiguous", "channels_last")))
    ] + [avg((1, 1, 4050, 33), (4047, 2), 1, 0, product="Ascend910B", rest=2)]  # fmt: skip
    yield "reduced precision", Group(calls, ("float32",))
    calls = [
        avg((2, 3, 14, width), kernel, stride, padding, ceil, include, divisor, kind="special")
        for (kernel, stride, padding), width, (ceil, include, divisor) in product(
            geometries, (7, 16, 35, 70), ((False, True, None), (True, False, None), (False, True, 1), (True, True, -3)))
    ]  # fmt: skip
    yield "special values", Group(calls)
    calls = [
        avg((2, 3, *size), kernel, stride, padding, kind="nothing", out=out)
        for (kernel, stride, padding), size, out in product(
            (*geometries, (7, 7, 0)), ((7, 7), (14, 35)), ("contiguous", "every_second_column"))
        if fits((2, 3, *size), kernel, stride, padding)
    ]  # fmt: skip
    yield "nothing but -0.0", Group(calls)
    yield "short sums of a tall kernel", Group([avg((1, 1, 60001, 40), (20001, 3), 2)], ("float32",))
    calls = [
        avg((1, 64, 112, 112), 2, 2), avg((2, 64, 112, 112), 3, 2, 1), avg((1, 2, 512, 1023), 3, 1, 1),
        avg((1, 1, 1024, 1024), 3, 2, 1, include=False), avg((1, 3, 512, 512), 5, 4, 2, layout="channels_last"),
    ]  # fmt: skip
    yield "large", Group(calls)
    calls = [
        avg((2, 200, 35, 35), 3, 1, 1), avg((2, 2048, 7, 7), 7), avg((1, 64, 56, 56), 3, 3, out="rows_cropped"),
        avg((1, 64, 56, 56), 3, 2, 1, layout="channels_last"), avg((1, 64, 56, 56), 3, 1, 1, layout="channels_last"),
        avg((1, 1, 500, 640), (1, 7), 1, (0, 3)), avg((1, 1, 500, 640), 2), avg((1, 1, 500, 500), 500),
    ]  # fmt: skip
    yield "many planes and few", Group(calls)


def pool(shape, kernel, stride=None, padding=0, ceil=False, forward=False, **rest):
    name = "MaxPool2dWithMask" if forward else "MaxPool2dWithMaskBackward"
    return Call(name, shape, (kernel, kernel if stride is None else stride, padding, ceil), **rest)


KNOWN = [(3, 2, 0), (3, 2, 1), (2, 2, 0), (2, 2, 1), (3, 1, 0), (3, 1, 1)]
# Of the one kernel of 3x3 at stride 1 and padding 1, and of others.
OTHER_POOLS = [
    (1, 1, 0),
    (1, 2, 0),
    (1, 3, 0),
    (2, 1, 0),
    (2, 1, 1),
    (2, 3, 0),
    (3, 3, 0),
    (3, 3, 1),
    (3, 4, 1),
    (4, 1, 2),
    (4, 2, 1),
    (4, 4, 0),
    (5, 1, 2),
    (5, 2, 2),
    (5, 3, 0),
    (7, 2, 3),
    (7, 7, 0),
    (9, 1, 4),
]
LARGE_POOLS = [(9, 2, 4), (13, 3, 6), (16, 5, 8), (17, 4, 8), (18, 9, 9)]


def max_pools() -> Iterator[tuple[str, Group]]:
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


def max_pools_forward() -> Iterator[tuple[str, Group]]:
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
                ((3, 2, 1), (3, 1, 1), (5, 9, 2)), BOTH_WAYS, ((1, 19, 6, 33), (1, 5, 7, 7)))
        ]  # fmt: skip
        yield f"{mask} layouts", Group(calls)
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


def up(shape, length, scales=None, **rest):
    return Call("UpsampleNearestExact1dBackward", shape, (length, scales), **rest)


def upsamplings() -> Iterator[tuple[str, Group]]:
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


def columns(shape, kernel, dilation=1, padding=0, stride=1, **rest):
    return Call("Im2colBackward", shape, (kernel, dilation, padding, stride), **rest)


def col2ims() -> Iterator[tuple[str, Group]]:
    hot = {
        "k3 p1": (3, 1, 1, 1), "k3 d2 p2": (3, 2, 2, 1), "k3 s2 p1": (3, 1, 1, 2), "k4 s2 p1": (4, 1, 1, 2),
        "k2 s2": (2, 1, 0, 2), "k3 s3": (3, 1, 0, 3), "k5 p2": (5, 1, 2, 1),
    }  # fmt: skip
    other = [
        (1, 1, 0, 1), (1, 1, 0, 2), (1, 1, 0, 5), (2, 1, 0, 1), (2, 2, 1, 1), (2, 3, 1, 2), (3, 1, 0, 1),
        (3, 1, 2, 3), (4, 1, 0, 4),
        (4, 1, 2, 3), (5, 2, 4, 2), (5, 1, 0, 5), (7, 1, 3, 2), (7, 1, 3, 1), (8, 1, 0, 8), (8, 1, 2, 4),
        (3, 3, 3, 4), (3, 2, 1, 2),
        (2, 1, 1, 3), (6, 1, 3, 6), (2, 5, 3, 7), (3, 1, 40, 1), (2, 1, 30, 2),
    ]  # fmt: skip
    for name, (kernel, dilation, padding, stride) in hot.items():
        calls = [
            columns(shape, kernel, dilation, padding, stride)
            for number, width in enumerate(WIDTHS)
            if fits(shape := narrow_image(number, width), kernel, stride, padding, False, dilation)
        ]
        yield f"{name}, widths", Group(calls)
    calls = [
        columns(shape, kernel, dilation, padding, stride)
        for number, ((kernel, dilation, padding, stride), width) in enumerate(product(other, FEW_WIDTHS))
        if fits(shape := narrow_image(number, width, 9), kernel, stride, padding, False, dilation)
    ]
    yield "other kernels, widths", Group(calls)
    calls = [
        columns((1, 2, 33, width), kernel, dilation, padding, stride)
        for (kernel, dilation, padding, stride), width in product(
            ((11, 1, 2, 4), (16, 1, 0, 16), (17, 1, 8, 5), (16, 2, 8, 9), (12, 1, 0, 12)), (31, 32, 35, 65)
        )
    ]
    yield "large kernels", Group(calls)
    for stride in range(1, 9):
        calls = [
            columns((1, 2, 5, width), (rows, wide), (1, dilation), (rows // 2, wide // 2), (1 + number % 3, stride))
            for number, (wide, rows, dilation, width) in enumerate(product(range(1, 18), (1, 3), (1, 2, 3), (21, 40)))
            if fits((5, width), (rows, wide), (1 + number % 3, stride), (rows // 2, wide // 2), False, (1, dilation))
        ]
        yield f"kernel columns 1 to 17 at stride {stride}", Group(calls)
    calls = [
        columns((*planes, height, width), kernel, dilation, padding, stride)
        for height, width, planes, (kernel, dilation, padding, stride) in product(
            (1, 2, 4, 7, 14), (1, 3, 4, 7, 8, 14, 28), ((5,), (2, 9)),
            ((3, 1, 1, 1), (2, 1, 0, 2), (3, 1, 1, 2), (5, 1, 2, 1)))
        if fits((height, width), kernel, stride, padding)
    ]  # fmt: skip
    yield "small planes", Group(calls)
    calls = [
        columns((2, 3, 3 * stride, width), kernel, 1, padding, stride, layout=layout)
        for stride, width, kernel, padding, layout in product(
            (3, 4, 5, 7, 9), (13, 24, 40, 61), (2, 3, 5, 9), (0, 1), ("contiguous", "rows_cropped"))
        if fits((3 * stride, width), kernel, stride, padding)
    ]  # fmt: skip
    yield "few windows in a row", Group(calls)
    for name, (kernel, dilation, padding, stride) in {
        "k3 p1": (3, 1, 1, 1), "k2 s2": (2, 1, 0, 2), "k3 s2 p1": (3, 1, 1, 2), "k5 s7": (5, 1, 0, 7),
        "k1": (1, 1, 0, 1),
        "k3 s3": (3, 1, 0, 3),
    }.items():  # fmt: skip
        calls = [
            columns(shape, kernel, dilation, padding, stride, layout=layout, out=out)
            for (layout, out), shape in product(BOTH_WAYS, ((2, 5, 6, 7), (1, 35, 4, 10), (1, 2, 5, 33)))
            if fits(shape, kernel, stride, padding, False, dilation)
        ]
        yield f"{name}, layouts", Group(calls)
    # A layout of the input that makes the windows of a column lie apart, by both ways of its neighbours.
    calls = [
        columns((1, channels, 9, width), kernel, 1, kernel // 2 * (stride == 1), stride, layout=layout, out=out)
        for channels, width, (kernel, stride), layout, out in product(
            (1, 2, 8, 17, 33), (9, 20), ((3, 1), (2, 2)), ("channels_last", "every_second_column"),
            ("contiguous", "channels_last"))
    ]  # fmt: skip
    yield "columns apart", Group(calls)
    calls = [
        columns((1, 2, 4, width), kernel, 1, padding, stride, layout=layout)
        for (kernel, padding, stride), width, layout in product(
            ((3, 1, 1), (2, 0, 2), (3, 1, 2), (4, 0, 16), (4, 0, 17)), (1000, 4099), ("contiguous", "channels_last"))
    ] + [
        columns((1, 1, 2, 1000), (2, wide), 1, (0, 3), 1, layout=layout)
        for wide, layout in product((33, 64, 65), ("contiguous", "channels_last"))
    ] + [columns((1, 1, 2, 20001), 2, layout=layout) for layout in ("contiguous", "channels_last")]  # fmt: skip
    yield "long rows", Group(calls)
    calls = [
        columns((1, 2, 1500, 8), 3, 1, 1), columns((1, 1, 99, 9), (64, 2), 1, (3, 0)),
        columns((1, 1, 99, 9), (65, 2), 1, (3, 0)),
        columns((1, 1, 200, 20), (40, 3), (5, 2), (70, 1), (7, 1)), columns((2, 2, 5, 6), 2, 2**32, 2**31),
        columns((2, 2, 5, 6), (2, 1), (2**32, 1), (2**31, 0), (1, 2**33)), columns((1, 2, 9, 9), 1, 1, 0, 40),
        columns((1, 3, 9, 30), (3, 30), 1, (1, 100), 1), columns((1, 2, 30, 70), 3, 1, 0, (1, 20)),
        columns((1, 2, 40, 70), (3, 50), 1, (1, 40), (2, 20)),
        columns((1, 2, 9, 70), (1, 80), (1, 3), (0, 100), (3, 20)),
        columns((1, 2, 9, 9), (2, 41), 1, (1, 40), (2, 20), out="every_second_column"),
        *(columns((1, 2, 31, 29), kernel, 1, padding, 2) for kernel,
            padding in ((3, 0), (3, 1), (3, 2), (4, 1), (5, 2), (5, 4), (7, 3))),
    ]  # fmt: skip
    yield "tall kernels and wide pads", Group(calls)
    for rest in ("float32", "float64", "float16", "bfloat16"):
        calls = [
            columns((2, 3, 9, 21), kernel, dilation, padding, stride, rest=rest, out=out, kind=kind)
            for (kernel, dilation, padding, stride), out, kind in product(
                ((3, 1, 1, 1), (2, 1, 0, 2), (3, 1, 1, 2), (5, 1, 0, 7), (3, 1, 0, 17)),
                ("contiguous", "channels_last", "columns_reversed"), ("plain", "special"))
        ]  # fmt: skip
        yield f"to {rest}", Group(calls, tuple(dtype for dtype in REAL if dtype != rest))
    calls = [
        columns((2, 5, 14, width), kernel, dilation, padding, stride, kind="special")
        for (kernel, dilation, padding, stride), width in product(
            (*hot.values(), (1, 1, 0, 1), (5, 1, 0, 7), (16, 1, 8, 16)), (14, 16, 35, 70))
        if fits((14, width), kernel, stride, padding, False, dilation)
    ]  # fmt: skip
    yield "special values", Group(calls)
    calls = [
        columns((2, 5, 14, width), kernel, dilation, padding, stride, kind="nothing")
        for (kernel, dilation, padding, stride), width in product((*hot.values(), (1, 1, 0, 1), (5, 1, 0, 7)), (14, 35))
        if fits((14, width), kernel, stride, padding, False, dilation)
    ]
    yield "nothing but -0.0", Group(calls)
    for rest in ("float32", "float64", "float16"):
        shapes = ((257, 1), (300, 1), (600, 2))
        calls = [columns((1, 2, 4, width), 3, 1, 1, stride, rest=rest) for width, stride in shapes]
        yield f"long rows to {rest}", Group(calls, tuple(dtype for dtype in REAL if dtype != rest))
    for dtype in REAL:
        batch = 32 // DTYPES[dtype].itemsize
        calls = [
            columns((batch, 17, 80, 83), 3, 1, 1), columns((batch, 140, 62, 64), 2, 1, 0, 2),
            columns((batch, 570, 14, 14), 3, 1, 1),
        ]  # fmt: skip
        if dtype in WIDER:
            calls += [columns((batch, 70, 60, 63), 3, 1, 1, 2)]
        if dtype == "float32":
            calls += [
                columns((batch, 6, 320, 320), 16, 1, 0, 16),
                columns((batch, 70, 88, 88), 2, 1, 0, 2, layout="channels_last"),
            ]
        yield "beyond the caches", Group(calls, (dtype,))
    calls = [
        columns((1, 64, 56, 56), 3, 1, 1), columns((1, 64, 28, 28), 3, 2, 2), columns((1, 64, 56, 56), 2, 1, 0, 2),
        columns((1, 64, 56, 57), 3, 1, 1, 2), columns((1, 1, 200, 201), 5, 1, 2, layout="channels_last"),
        columns((1, 32, 56, 56), 3, 1, 1, out="channels_last"),
        columns((1, 32, 56, 56), 3, 1, 1, layout="channels_last"),
        columns((1, 1, 300, 300), 3, 1, 1, 1), columns((1, 1, 500, 500), 2, 1, 0, 2),
    ]  # fmt: skip
    yield "large", Group(calls)


def pad(shape, *sides, **rest):
    return Call("ReplicationPad2dBackward", shape, (sides,), **rest)


def pads() -> Iterator[tuple[str, Group]]:
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


@lru_cache
def groups():
    """The groups of every name: one, or more that differ in their dtypes."""
    listed = {
        "MaxPool2dWithMaskBackward": max_pools, "MaxPool2dWithMask": max_pools_forward,
        "UpsampleNearestExact1dBackward": upsamplings, "AvgPool2dBackward": avg_pools, "Im2colBackward": col2ims,
        "ReplicationPad2dBackward": pads,
    }  # fmt: skip
    found = {}
    for operator, make in listed.items():
        for name, group in make():
            assert group.calls
            found.setdefault(f"{operator}: {name}", []).append(group)
    return found


def each():
    """Name, group and dtype of every digest."""
    return ((name, group, dtype) for name, both in groups().items() for group in both for dtype in group.dtypes)


# ---- digests --------------------------------------------------------------------------------------------------------


def digest_of(group, dtype):
    """A hash of the outputs of all calls of a group."""
    together = hashlib.blake2b(digest_size=8)
    for number, call in enumerate(group.calls):
        for array in results(call, dtype, number):
            together.update(canonical(array).data)
    return together.hexdigest()


def digests(step=1, without=None):
    """The digest of every group in each of its dtypes, by the name of both; or of every `step`-th.

    Those that have `without` in their names are left out.
    """
    found = {}
    for name, group, dtype in islice(each(), 0, None, step):
        assert f"{name}, {dtype}" not in found
        if without and without in name:
            continue
        found[f"{name}, {dtype}"] = digest_of(group, dtype)
    large_mask.cache_clear()
    return found


def nested(flat):
    """By operator, group and dtype: shorter."""
    found = {}
    for name, seen in flat.items():
        operator, _, rest = name.partition(": ")
        group, _, dtype = rest.rpartition(", ")
        found.setdefault(operator, {}).setdefault(group, {})[dtype] = seen
    return found


def stored():
    listed = json.loads(STORED.read_text(encoding="utf-8"))
    return {
        f"{operator}: {name}, {dtype}": seen
        for operator, named in listed.items()
        for name, by_dtype in named.items()
        for dtype, seen in by_dtype.items()
    }


def differences(seen, wanted):
    """A line for each group that changed, appeared or is gone."""
    lines = []
    for name in sorted(seen.keys() | wanted.keys()):
        if name not in wanted:
            lines.append(f"{name}: {seen[name]} is not stored")
        elif name not in seen:
            lines.append(f"{name}: is stored, but no longer computed")
        elif seen[name] != wanted[name]:
            lines.append(f"{name}: {seen[name]}, not {wanted[name]}")
    return lines


def main(argv=None):
    parser = argparse.ArgumentParser(description="Compare what the operators compute with the digests that are stored.")
    parser.add_argument("--write", action="store_true", help="store the digests instead")
    parser.add_argument("--threads", type=int, default=1, metavar="N", help="compute with so many (default 1)")
    parser.add_argument("--without", metavar="TEXT", help="leave out the groups that have this in their names")
    options = parser.parse_args(argv)
    if options.write and options.without:
        parser.error("what is stored has every group")
    with aclnn_bw.num_threads(options.threads):
        seen = digests(without=options.without)
    calls = sum(len(group.calls) for name, group, dtype in each() if f"{name}, {dtype}" in seen)
    print(f"{len(seen)} digests of {calls} calls, instruction set {aclnn_bw.show_config(mode='dict')['isa']}")
    if options.write:
        STORED.write_text(json.dumps(nested(seen), indent=0) + "\n", encoding="utf-8")
        return 0
    wanted = {name: kept for name, kept in stored().items() if not options.without or options.without not in name}
    lines = differences(seen, wanted)
    print("\n".join(lines) or "nothing changed")
    return 1 if lines else 0


if __name__ == "__main__":
    raise SystemExit(main())
