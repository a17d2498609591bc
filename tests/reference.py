"""What the twins of operators/ share: the geometry of windows, and rounding. Nothing here imports the package.

A twin is its operator in plain NumPy, short enough to be read as a specification. Arrays may have any number of leading
dimensions; the last two are rows and columns. Sums run in float64 unless `dtype` names a wider type (np.longdouble, the
oracle of float64 results). Each operator has one literal form, which states the formula, and where the tests need it a
quick one that is tested against the literal form.
"""

from functools import lru_cache

import numpy as np

# ---- shared rules ---------------------------------------------------------------------------------------------------


def pair(value):
    """An int or a sequence of one or two ints as (rows, columns)."""
    values = tuple(value) if np.ndim(value) else (value,)
    return values if len(values) == 2 else values * 2


def pooled_size(size, kernel, stride, padding, ceil_mode=False, dilation=1):
    """The number of windows along one axis."""
    out = (size + 2 * padding - ((kernel - 1) * dilation + 1) + (stride - 1 if ceil_mode else 0)) // stride + 1
    if ceil_mode and (out - 1) * stride >= size + padding:  # the last window must begin inside the image
        out -= 1
    return out


def pooled_shape(input_shape, kernel_size, stride=None, padding=0, ceil_mode=False, dilation=1):
    """The shape of a pooling's output; its last two values are below 1 where no output exists."""
    axes = zip(input_shape[-2:], *pairs(kernel_size, stride, padding), pair(dilation), strict=True)
    return (*input_shape[:-2], *(pooled_size(*axis, ceil_mode, dilation) for *axis, dilation in axes))


def pairs(kernel_size, stride, padding):
    no_stride = stride is None or (np.ndim(stride) and len(stride) == 0)
    return pair(kernel_size), pair(kernel_size if no_stride else stride), pair(padding)


# ---- rounding -------------------------------------------------------------------------------------------------------


def round_to_format(x, fraction_bits, min_exponent, max_exponent):
    """`x` rounded once, to nearest even, to a binary format with subnormals, inf and NaN; as float64 or wider."""
    x = np.asarray(x)
    with np.errstate(invalid="ignore"):  # of signalling NaN
        x = x if x.dtype == np.longdouble else x.astype(np.float64)
        exponent = np.frexp(x)[1] - 1  # |x| = m * 2**exponent with 1 <= m < 2
        ulp = np.ldexp(x.dtype.type(1), np.maximum(exponent, min_exponent) - fraction_bits)
        rounded = np.rint(x / ulp) * ulp
    return np.where(np.abs(rounded) >= 2.0 ** (max_exponent + 1), np.copysign(np.inf, x), rounded)


def round_float16(x):
    """IEEE binary16: 10 explicit bits of fraction."""
    return round_to_format(x, 10, -14, 15)


def round_bfloat16(x):
    """float32 with 7 explicit bits of fraction."""
    return round_to_format(x, 7, -126, 127)


def round_hf32(x):
    """float32 with 11 explicit bits of fraction."""
    return round_to_format(x, 11, -126, 127)


# ---- one kernel position after the other -----------------------------------------------------------------------------


@lru_cache(maxsize=8192)
def _tap(size, windows, k, stride, padding, dilation):
    """Along one axis: the windows whose kernel position `k` lies inside the image, and where it lies."""
    large = max(windows * stride, padding, k * dilation) > 2**61  # Python's own integers do not overflow
    places = np.arange(windows).astype(object if large else int) * stride - padding + k * dilation
    inside = np.flatnonzero((places >= 0) & (places < size))
    if inside.size == 0:
        return slice(0), slice(0)
    first, last = int(inside[0]), int(inside[-1])
    return slice(first, last + 1), slice(int(places[first]), int(places[last]) + 1, stride)


def taps2d(input_shape, kernel_size, stride=None, padding=0, ceil_mode=False, dilation=1):
    """For k = kh*kW + kw: the windows [..., oh, ow] that have it inside the image, and the inputs that lie there."""
    sizes = pairs(kernel_size, stride, padding)
    windows = pooled_shape(input_shape[-2:], *sizes, ceil_mode, dilation)
    for k, position in enumerate(np.ndindex(sizes[0])):
        axes = zip(input_shape[-2:], windows, position, *sizes[1:], pair(dilation), strict=True)
        (oh, ih), (ow, iw) = (_tap(*axis) for axis in axes)
        yield k, (..., oh, ow), (..., ih, iw)
