"""What the digested calls of every operator are made of: values, layouts, shapes. See digests.py."""

import math
from contextlib import contextmanager
from functools import lru_cache
from typing import NamedTuple

import ml_dtypes
import numpy as np
import reference
from helpers import LAYOUTS

import aclnn_bw

REAL = ("float32", "float64", "float16", "bfloat16")
ALL = (*REAL, "complex64", "complex128")
DTYPES = {name: np.dtype(getattr(ml_dtypes if name == "bfloat16" else np, name)) for name in ALL}
HALVES, WIDER = ("float16", "bfloat16"), ("float32", "float64")
MASKS = ("bitmask", "argmax")
CANARY, NAN = 0xA5, 0xFF  # bytes of an output and of a workspace before a call


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
    bits: str = "one"  # of a window in the mask; "any" and "outside": see build_mask. Of indices: their dtype
    product: str = "Host"
    rest: int | str = 0  # AvgPool2dBackward: cubeMathType. Im2colBackward: the dtype of out


def as_pairs(attributes):
    return [list(reference.pair(value)) for value in attributes]


@contextmanager
def rules(call):
    with aclnn_bw.soc(call.product, mask_layout=call.mask):
        yield


class Digested:
    """What the calls of one operator need, and which there are."""

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

    def unread(self, call):
        """As `extra`, of any values."""
        return []

    def groups(self):
        """Names and groups; a name may come again for other dtypes."""
        raise NotImplementedError

    def phase_1(self, call, inputs, outs):
        raise NotImplementedError

    def one_call(self, call, inputs, outs):
        """Outputs of the one-call function, or None."""
        raise NotImplementedError


def stand_in(call, like):
    """Of `self` the shape alone is asked for."""
    return np.broadcast_to(np.zeros((), like.dtype), call.shape)


# Rank 3, with the channels in the middle: what other operators call channels last are planes transposed.
MIDDLE = {"channels_last": "planes_transposed"}


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
