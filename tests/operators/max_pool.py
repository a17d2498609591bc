"""What the max pools with a mask share: masks, windows, and the rules of both."""

import math
from functools import lru_cache
from typing import ClassVar, NamedTuple

import numpy as np
from digest_calls import Call, Digested, as_pairs, drawn, repeated
from fuzz import cases, rules
from fuzz.calls import NUMBERS, UNIFORM, Argument, row_major, tensor
from fuzz.cases import ARENA, Case, one_of
from fuzz.rules import Ints, View
from helpers import DTYPES, assert_is_sum, normal, oracle_type, run_two_phase
from reference import pair, pooled_shape, round_float16, taps2d

import aclnn_bw
from operators.base import Operator
from operators.im2col_backward import places

# ---- the twin --------------------------------------------------------------------------------------------------------
# `indices` (..., C, Ho, Wo) holds ih*W + iw, where each window's maximum lies in the plane without its padding.
# `hits` (..., C, kH*kW, Ho, Wo) says of each kernel position whether it is marked: exactly one per window after the
# forward, any number in a mask of other origin.


def _places(input_shape):
    return np.arange(input_shape[-2] * input_shape[-1]).reshape(input_shape[-2:])


def max_pool2d(x, *geometry):
    """The maximum of each window and its index: the first of equals in row-major order; the last NaN where one is."""
    shape = pooled_shape(x.shape, *geometry)
    out, indices = np.full(shape, -np.inf), np.full(shape, -1)
    for _, outputs, inputs in taps2d(x.shape, *geometry):
        wins = (indices[outputs] < 0) | (x[inputs] > out[outputs]) | np.isnan(x[inputs])
        out[outputs] = np.where(wins, x[inputs], out[outputs])
        indices[outputs] = np.where(wins, _places(x.shape)[inputs], indices[outputs])
    return out, indices


def max_pool2d_backward(grad_output, hits, input_shape, *geometry, dtype=np.float64):
    """Each element of `grad_output` is added to the inputs that are marked in its window."""
    grad_input = np.zeros(input_shape, dtype)
    for k, outputs, inputs in taps2d(input_shape, *geometry):
        grad_input[inputs] += np.where(hits[..., k, :, :], np.asarray(grad_output).astype(dtype), 0)[outputs]
    return grad_input


def hits_of_indices(indices, input_shape, *geometry):
    """The one mark of each window; none where the index is outside it."""
    positions = int(np.prod(pair(geometry[0])))
    hits = np.zeros((*indices.shape[:-2], positions, *indices.shape[-2:]), bool)
    for k, outputs, inputs in taps2d(input_shape, *geometry):
        hits[..., k, :, :][outputs] = indices[outputs] == _places(input_shape)[inputs]
    return hits


def indices_of_hits(hits, input_shape, *geometry):
    """The first mark of each window that lies inside the image, -1 where none does."""
    indices = np.full((*hits.shape[:-3], *hits.shape[-2:]), -1)
    for k, outputs, inputs in taps2d(input_shape, *geometry):
        first = hits[..., k, :, :][outputs] & (indices[outputs] < 0)
        indices[outputs] = np.where(first, _places(input_shape)[inputs], indices[outputs])
    return indices


def mask_shape(input_shape, *geometry):
    """The shape of the int8 container that holds either layout."""
    *leading, height, width = pooled_shape(input_shape, *geometry)
    return (*leading, int(np.prod(pair(geometry[0]))), (-(-height * width // 16) + 1) * 32)


def bitmask(hits):
    """Layout "bitmask": bit c % 16 of word(n, c // 16, k, oh*Wo + ow) is set where position k of a window is marked.

    The words are little-endian and 16 bits wide, a row of them is one block of 16 longer than the windows need, and
    they fill only the front of the container [N,] C, kH*kW, bytes.
    """
    *batch, channels, positions, height, width = hits.shape
    images, windows = int(np.prod(batch)), height * width
    row = (-(-windows // 16) + 1) * 16
    words = np.zeros((images, -(-channels // 16), positions, row), "<u2")
    hits = hits.reshape(images, channels, positions, windows)
    for c in range(channels):
        words[:, c // 16, :, :windows] |= hits[:, c].astype(np.uint16) << c % 16
    mask = np.zeros((*batch, channels, positions, 2 * row), np.int8)
    mask.reshape(-1)[: words.nbytes] = words.reshape(-1).view(np.int8)
    return mask


def argmax_mask(indices, kernel_size):
    """Layout "argmax": the indices themselves as little-endian int32, at the front of the same container."""
    *leading, height, width = indices.shape
    positions, row = int(np.prod(pair(kernel_size))), (-(-height * width // 16) + 1) * 32
    mask = np.zeros((*leading, positions, row), np.int8)
    mask.reshape(-1)[: 4 * indices.size] = indices.astype("<i4").reshape(-1).view(np.int8)
    return mask


# The same for planes of a few elements and finite values.


def from_indices(grad, indices, size, kernel, stride, pad):
    """Add each element at its index in the plane; None where an index lies outside its window."""
    (height, width), (*_, oh, ow) = size, grad.shape
    firsts = (np.arange(n) * s - p for n, s, p in zip(grad.shape[-2:], stride, pad, strict=True))
    top, left = next(firsts)[:, None], next(firsts)
    row, column = np.divmod(indices, width)
    right = (row >= np.maximum(top, 0)) & (row < np.minimum(top + kernel[0], height))
    right &= (column >= np.maximum(left, 0)) & (column < np.minimum(left + kernel[1], width))
    if not right.all():
        return None
    planes = math.prod(grad.shape[:-2])
    flat = indices.reshape(planes, oh * ow) + np.arange(planes)[:, None] * (height * width)
    sums = np.bincount(flat.reshape(-1), grad.reshape(-1), planes * height * width)
    return sums.reshape(*grad.shape[:-2], height, width)


def max_pool2d_tiny(x, kernel, stride, pad, ceil):
    """The maximum of each window, and its kernel position, both [..., Ho, Wo]."""
    *leading, height, width = x.shape
    oh, ow = pooled_shape(x.shape, kernel, stride, pad, ceil)[-2:]
    padded = np.full((*leading, height + 1, width + 1), -np.inf)
    padded[..., :-1, :-1] = x
    rows = places(height, oh, kernel[0], stride[0], pad[0]).reshape(-1, 1)
    columns = places(width, ow, kernel[1], stride[1], pad[1]).reshape(-1)
    windows = padded[..., rows, columns].reshape(*leading, oh, kernel[0], ow, kernel[1]).swapaxes(-3, -2)
    windows = windows.reshape(*leading, oh, ow, kernel[0] * kernel[1])
    return windows.max(axis=-1), windows.argmax(axis=-1)


_LANES = np.arange(16, dtype=np.uint16)[:, None, None]


def bitmask_tiny(positions, kernel):
    """The container of layout "bitmask" for one kernel position of each window [N, C, Ho, Wo]."""
    images, channels, oh, ow = positions.shape
    count, windows, groups = kernel[0] * kernel[1], oh * ow, -(-channels // 16)
    hits = (positions.reshape(images, channels, 1, windows) == np.arange(count)[:, None]).astype(np.uint16)
    row = (-(-windows // 16) + 1) * 16
    words = np.zeros((images, groups, count, row), "<u2")
    for group in range(groups):
        lanes = hits[:, 16 * group : 16 * group + 16]
        np.bitwise_or.reduce(lanes << _LANES[: lanes.shape[1]], axis=1, out=words[:, group, :, :windows])
    mask = np.zeros((images, channels, count, 2 * row), np.int8)
    mask.reshape(-1)[: words.nbytes] = words.reshape(-1).view(np.int8)
    return mask


def argmax_mask_tiny(positions, x_shape, kernel, stride, pad):
    """The container of layout "argmax"."""
    images, channels, oh, ow = positions.shape
    row, column = np.divmod(positions, kernel[1])
    row += (np.arange(oh) * stride[0] - pad[0])[:, None]
    column += np.arange(ow) * stride[1] - pad[1]
    mask = np.zeros((images, channels, kernel[0] * kernel[1], (-(-oh * ow // 16) + 1) * 32), np.int8)
    indices = (row * x_shape[-1] + column).astype("<i4")
    mask.reshape(-1)[: indices.nbytes] = indices.reshape(-1).view(np.int8)
    return mask


# ---- the tests of their numbers --------------------------------------------------------------------------------------

MASK_LAYOUTS = ("bitmask", "argmax")
MAX_POOL_MODES = [("Host", dtype) for dtype in DTYPES] + [("Ascend910", "float32")]  # every arithmetic that exists


class Pool(NamedTuple):
    """A max pooling of an image of `input_shape`; the other fields are what the twin takes after a tensor."""

    input_shape: tuple
    kernel_size: int | tuple
    stride: int | tuple | None = None
    padding: int | tuple = 0
    ceil_mode: bool = False

    def __str__(self):
        text = "x".join(map(str, self.input_shape)) + f"-k{self.kernel_size}"
        text += f"-s{self.stride}" * (self.stride is not None) + f"-p{self.padding}" * (self.padding != 0)
        return (text + "-ceil" * self.ceil_mode).replace("(", "").replace(")", "").replace(", ", "x")

    @property
    def attributes(self):
        """kernel_size, stride, padding, dilation, ceil_mode: what the one-call functions take."""
        return (*self[1:4], 1, self.ceil_mode)

    @property
    def lists(self):
        """The same for the two-phase functions."""
        stride = [] if self.stride is None else list(pair(self.stride))
        padding = list(pair(self.padding))
        return list(pair(self.kernel_size)), stride, padding, [1], self.ceil_mode

    @property
    def output_shape(self):
        return pooled_shape(*self)

    @property
    def mask_shape(self):
        return mask_shape(*self)

    @property
    def hits_shape(self):
        *leading, height, width = self.output_shape
        return (*leading, int(np.prod(pair(self.kernel_size))), height, width)

    def values(self, rng, dtype):
        return normal(rng, self.input_shape, DTYPES[dtype])

    def gradients(self, rng, dtype):
        return normal(rng, self.output_shape, DTYPES[dtype])

    def indices(self, rng):
        """Somewhere in each window."""
        return max_pool2d(rng.random(self.input_shape), *self[1:])[1]

    def hits(self, indices):
        return hits_of_indices(indices, *self)

    def mask(self, indices, layout="bitmask"):
        """As the forward writes it; with a 1x1 kernel the layouts are one."""
        if layout == "bitmask" or pair(self.kernel_size) == (1, 1):
            return bitmask(self.hits(indices))
        return argmax_mask(indices, self.kernel_size)


def with_garbage(mask, pool, rng, layout="bitmask"):
    """The mask with random bytes in all places that a reader ignores."""
    everything = bitmask(np.ones(pool.hits_shape, bool))
    if layout == "argmax" and pair(pool.kernel_size) != (1, 1):
        everything = argmax_mask(np.full(pool.output_shape, -1), pool.kernel_size)
    return (rng.integers(-128, 128, mask.shape, np.int8) & ~everything) | mask


def max_pool2d_two_phase(pool, x, product="Host", layout="bitmask", out=None, mask=None, stream=None):
    """The forward, (out, mask); the workspace is checked against the package's promise, as below."""
    out = np.empty(pool.output_shape, x.dtype) if out is None else out
    mask = np.empty(pool.mask_shape, np.int8) if mask is None else mask
    with aclnn_bw.soc(product, mask_layout=layout):
        size = run_two_phase("MaxPool2dWithMask", x, *pool.lists, out, mask, stream=stream)
    assert size <= aclnn_bw.get_num_threads() * (2 * 2**20 + 64 * max(x.shape[-1], out.shape[-1]))
    return out, mask


def max_pool2d_backward_two_phase(pool, grad_output, mask, product="Host", layout="bitmask", out=None, stream=None):
    out = np.empty(pool.input_shape, grad_output.dtype) if out is None else out
    stand_in = np.broadcast_to(np.zeros((), grad_output.dtype), pool.input_shape)  # self gives its shape alone
    with aclnn_bw.soc(product, mask_layout=layout):
        size = run_two_phase("MaxPool2dWithMaskBackward", grad_output, stand_in, mask, *pool.lists, out, stream=stream)
    longest_row = max(pool.input_shape[-1], grad_output.shape[-1])
    assert size <= aclnn_bw.get_num_threads() * (2 * 2**20 + 64 * longest_row)
    return out


def assert_is_max_pool2d_backward(result, grad_output, hits, pool, product="Host"):
    """The result against the twin, within the error bound; Ascend910 rounds float32 to float16 before and after."""
    halves = product == "Ascend910" and grad_output.dtype == np.float32
    wide = oracle_type(result.dtype)
    grad_output = (round_float16(grad_output) if halves else grad_output).astype(wide)
    with np.errstate(invalid="ignore"):
        exact, sum_abs, terms = (
            max_pool2d_backward(terms, hits, *pool, dtype=wide)
            for terms in (grad_output, abs(grad_output), np.ones(pool.output_shape))
        )
    assert_is_sum(result, exact, sum_abs, terms, round_float16 if halves else None)


# ---- digested calls --------------------------------------------------------------------------------------------------


class DigestedPools(Digested):
    """Attributes: kernel, stride, padding, ceil_mode."""

    def lists(self, call):
        kernel, stride, padding, ceil = call.attributes
        return [*as_pairs((kernel, stride, padding)), [1, 1], ceil]

    def keywords(self, call):
        kernel, stride, padding, ceil = call.attributes
        return {
            "kernel_size": kernel,
            "stride": stride,
            "padding": padding,
            "ceil_mode": ceil,
            "mask_layout": call.mask,
        }


def build_indices(shape, attributes, seed):
    """Of each window a position among those inside the image: its row and its column in the window, and its index."""
    kernel, stride, padding = map(pair, attributes[:3])
    height, width = shape[-2:]
    rows, columns = pooled_shape(shape, *attributes)[-2:]
    planes = math.prod(shape[:-2])
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
    indices = (starts[0] + chosen[0]) * width + starts[1] + chosen[1]
    return *chosen, indices.reshape(*shape[:-2], rows, columns)


def build_mask(shape, attributes, layout, bits, seed):
    """A mask with one position for each window, drawn among those inside the image.

    With bits "any", whatever a reader ignores is set at random, and in half of the bit masks all else, too; with bits
    "all", every bit is set.
    """
    kernel = pair(attributes[0])
    *chosen, indices = build_indices(shape, attributes, seed)
    rows, columns = indices.shape[-2:]
    planes, channels = math.prod(shape[:-2]), shape[-3]
    container = np.zeros(mask_shape(shape, *attributes), np.int8)
    flat = container.reshape(-1)
    noise = repeated(drawn(), seed + 17, -(-flat.size // 8)).view(np.int8)[: flat.size]
    if layout == "argmax" and kernel != (1, 1):
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


def pool(shape, kernel, stride=None, padding=0, ceil=False, forward=False, **rest):
    name = "MaxPool2dWithMask" if forward else "MaxPool2dWithMaskBackward"
    return pool_of(name, shape, kernel, stride, padding, ceil, **rest)


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


def pool_of(name, shape, kernel, stride=None, padding=0, ceil=False, **rest):
    return Call(name, shape, (kernel, kernel if stride is None else stride, padding, ceil), **rest)


@lru_cache(maxsize=64)
def indices_in_windows(shape, attributes, seed):
    """As build_mask draws them."""
    return build_indices(shape, attributes, seed)[2]


# ---- calls between guard pages ---------------------------------------------------------------------------------------


class MaxPoolCase(Case):
    def draw(self, rng):
        kind = one_of(rng, "any", "known", "known", "known", "small", "phases", "scatter", "wide")
        shape = list(cases.wide_image(rng) if rng.random() < 0.03 else cases.image(rng))
        if kind == "any":
            kernel = [int(rng.integers(1, 6)) for _ in range(2)]
            stride = [int(rng.integers(1, 5)) for _ in range(2)]
            pad = [int(rng.integers(0, k // 2 + 1)) for k in kernel]
        elif kind == "known":
            kernel, stride, pad = ([int(n)] * 2 for n in one_of(
                rng, (3, 2, 0), (3, 2, 1), (2, 2, 0), (2, 2, 1), (3, 1, 0), (3, 1, 1), (3, 1, 1)))
            if rng.random() < 0.25:
                kernel[0], stride[0] = int(rng.integers(1, 5)), int(rng.integers(1, 4))
                pad[0] = int(rng.integers(0, kernel[0] // 2 + 1))
        elif kind == "small":
            shape[-2:] = [int(rng.integers(1, 11)), int(rng.integers(1, 11))]
            kernel = [int(rng.integers(1, 4)) for _ in range(2)]
            stride = [int(rng.integers(1, 4)) for _ in range(2)]
            pad = [int(rng.integers(0, k // 2 + 1)) for k in kernel]
        elif kind == "phases":
            kernel = [int(rng.integers(1, 10)) for _ in range(2)]
            stride = [int(rng.integers(1, 4)), int(rng.integers(1, 12))]
            pad = [int(rng.integers(0, k // 2 + 1)) for k in kernel]
        elif kind == "scatter":
            kernel = [int(rng.integers(3, 14)) for _ in range(2)]
            stride = [int(rng.integers(1, 9)) for _ in range(2)]
            pad = [int(rng.integers(0, k // 2 + 1)) for k in kernel]
        else:
            shape[:-2] = [2] * (len(shape) - 2)
            shape[-2:] = [int(rng.integers(1, 12)), int(rng.integers(3000, 20000))]
            kernel = [int(rng.integers(1, 4)), int(one_of(rng, 1, 2, 3, 3, 40))]
            stride = [int(rng.integers(1, 3)) for _ in range(2)]
            pad = [0, int(rng.integers(0, kernel[1] // 2 + 1))]
        for i in range(2):
            if shape[i - 2] + 2 * pad[i] < kernel[i]:
                shape[i - 2] = kernel[i] - 2 * pad[i] if pad[i] * 2 < kernel[i] else 1
        self.pool = tuple(kernel), tuple(stride), tuple(pad), bool(rng.random() < 0.3)
        self.shape = tuple(shape)
        while math.prod(mask_shape(self.shape, *self.pool)) > ARENA // 4:
            axis = -3 if shape[-3] > 1 else 0 if len(shape) == 4 and shape[0] > 1 else int(np.argmax(shape))
            shape[axis] = max(shape[axis] // 2, 1)
            self.shape = tuple(shape)
        self.mask_layout = one_of(rng, "bitmask", "argmax")
        if self.dtype == np.float32 and rng.random() < 0.15:
            self.product = "Ascend910"

    def numbers(self):
        return dict(zip(("kernel", "stride", "padding", "ceil"), self.pool, strict=True))

    def lists(self):
        kernel, stride, pad, ceil = self.pool
        return kernel, stride, pad, [1], ceil

    @property
    def argmax(self):
        return self.mask_layout == "argmax" and self.pool[0] != (1, 1)

    def rounded(self, values):
        return round_float16(values) if self.product == "Ascend910" else values.astype(np.float64)


class IndicesCase(MaxPoolCase):
    def draw(self, rng):
        super().draw(rng)
        self.index = np.dtype(one_of(rng, np.int32, np.int64))
        self.mask_layout = "bitmask"
        self.product = "Host"
        if self.dtype == np.float32 and self.index == np.int32 and rng.random() < 0.2:
            self.product = "Ascend910B"


# ---- the operators ---------------------------------------------------------------------------------------------------


# What reaches every branch of a pool.
POOLS = [
    {},
    {"shape": (2, 9, 13), "stride": (1, 1)},
    {"shape": (2, 18, 9, 13), "kernel": (2, 2), "padding": (0, 0)},
    {"shape": (1, 3, 57, 58), "padding": (1, 1), "ceil": True},
    {"shape": (1, 3, 57, 58), "kernel": (5, 4), "stride": (3, 2), "padding": (2, 1), "ceil": True},
    {"shape": (3, 2, 7, 7), "kernel": (7, 7), "stride": (7, 7), "padding": (0, 0)},
    {"shape": (2, 3, 6, 7), "kernel": (1, 1), "stride": (1, 1), "padding": (0, 0)},
    {"shape": (1, 2, 200, 90), "kernel": (5, 5), "stride": (1, 1), "padding": (2, 2)},
    {"shape": (0, 2, 9, 9)},
]


# The image of both samples.
SAMPLED = np.array([4, 8, 1, 9, 7, 6, 5, 2, 3, 3, 0, 1, 2, 5, 1, 0], np.float32).reshape(1, 1, 4, 4)


class MaxPool(Operator):
    geometries: ClassVar[list] = POOLS + [{**pool, "layout": "argmax"} for pool in POOLS]
    page = "max_pool2d"
    enums = ("MaxPoolAlgorithm",)

    def geometry(self, kernel=(3, 3), stride=(2, 2), padding=(1, 1), ceil=False):
        self.pool = kernel, stride, padding, ceil
        return {"kernelSize": kernel, "stride": stride, "padding": padding, "dilation": (1, 1), "ceilMode": ceil}

    def mask(self, x):
        """(maxima, their mask in the layout of this call, which positions are marked)"""
        maxima, indices = max_pool2d(x.astype(np.float64), *self.pool)
        hits = hits_of_indices(indices, x.shape, *self.pool)
        if self.layout == "argmax" and self.pool[0] != (1, 1):  # there the indices do not fit: the layouts are one
            return maxima, argmax_mask(indices, self.pool[0]), hits
        return maxima, bitmask(hits), hits


def container(j, a, shape, kernel, ceil):
    """The shape of the mask, and of the output's planes."""
    kernels, strides, pads = rules.pool_values(j, a, kernel, "dilation")
    j.stage()
    j.refuse(0 in shape[-3:], "no elements", "self")
    j.stage()
    windows = [rules.pooled(*axis, a[ceil]) for axis in zip(shape[-2:], kernels, strides, pads, strict=True)]
    j.refuse(min(windows) < 1, "no window", "self")
    j.stage()
    positions, row = math.prod(kernels), (-(-math.prod(windows) // 16) + 1) * 32
    j.refuse(positions not in rules.INT64, "shape", kernel)
    j.refuse(row not in rules.INT64, "shape", "self")
    j.stage()
    return (*shape[:-2], positions, row), windows


def beyond_int32(c, shape, container):
    return c.layout == "argmax" and container[-2] > 1 and math.prod(shape[-2:]) > 2**31 - 1


def mask_rules(j, c, a, mask, shape, container):
    rules.shape_is(j, a, mask, container)
    j.refuse(beyond_int32(c, shape, container), "plane beyond int32", "self")
    j.stage()
    step, dense = 1, True
    for size, stride in zip(a[mask].shape[::-1], a[mask].strides[::-1], strict=True):
        dense = dense and (size == 1 or stride == step)
        step *= size
    j.refuse(not dense and not a[mask].empty, "not C-contiguous", mask)


def container_of(leading, kernel, pooled):
    return (*leading, kernel[0] * kernel[1], (-(-pooled[0] * pooled[1] // 16) + 1) * 32)


def more_positions_than_int32(d, huge=0.4):
    """A kernel whose positions no int32 counts, or a plane that no machine addresses, over memory that need not be
    there in phase 1."""
    kernel, stride = (2**16, 2**15 - d.random.choice((0, 0, 1))), (1, 1)
    size, windows = (kernel[0], kernel[1] + 1), 2
    if d.random.random() < huge:
        kernel, stride, size, windows = (2, 1), (1, 2**40), (2, 2**47), 2**7
    for name, shape, dtype in (
        ("self", (1, *size), d.dtype), ("gradInput", (1, *size), d.dtype), ("out", (1, 1, windows), d.dtype),
        ("gradOutput", (1, 1, windows), d.dtype), ("indices", container_of((1,), kernel, (1, windows)), "int8"),
    ):  # fmt: skip
        if name not in d.drawn.arguments:
            continue
        view = View(dtype, shape, row_major(shape), 0, math.prod(shape), rules.ND, None)
        value = aclnn_bw.aclCreateTensor(shape, NUMBERS[dtype], format=rules.ND)
        d.drawn.arguments[name] = Argument(value, view)
    for name, values in (("kernelSize", kernel), ("stride", stride), ("padding", (0, 0))):
        d.drawn.arguments[name] = Argument(values, Ints(values))
    d.drawn.outputs = ()


# With indices.


def window_rules(j, a, kernel, ceil, attributes_alone=False):
    """The attributes, and the number of windows that follows."""
    rules.lengths(j, a, **{kernel: (1, 2), "stride": (0, 1, 2), "padding": (1, 2), "dilation": (1, 2)})
    j.stage()
    kernels, strides, pads = rules.pool_values(j, a, kernel, "dilation")
    j.stage()
    if attributes_alone:
        return None
    shape = a["self"].shape
    j.refuse(0 in shape[-3:], "no elements", "self")
    j.stage()
    windows = [rules.pooled(*axis, a[ceil]) for axis in zip(shape[-2:], kernels, strides, pads, strict=True)]
    j.refuse(min(windows) < 1, "no window", "self")
    j.stage()
    return windows


def random_indices(random, leading, size, kernel, stride, pad, pooled, wide=False):
    """Of each window any position inside the image; now and then one of them anything else."""
    places = []
    for axis in range(2):
        start = np.arange(pooled[axis]) * stride[axis] - pad[axis]
        low, high = np.maximum(start, 0), np.minimum(start + kernel[axis], size[axis])
        at = random.randrange(1 << 13)
        uniform = np.resize(UNIFORM[at:], (*leading, *pooled))
        shape = (-1, 1) if axis == 0 else (-1,)
        places.append((low.reshape(shape) + uniform * (high - low).reshape(shape)).astype(np.int64))
    indices = places[0] * size[1] + places[1]
    if indices.size and random.random() < 0.15:
        strange = (-1, size[0] * size[1], 2**31 - 1, -(2**31), 0)
        indices.reshape(-1)[random.randrange(indices.size)] = random.choice(
            (*strange, 2**32, 2**63 - 1) if wide else strange
        )
    return indices


def huge_plane(d):
    """One window of a plane with about as many positions as an int32 index counts, or many more; only the shape is
    huge."""
    shape, one = (1, 1, 2, 2 ** d.random.choice((29, 30, 31, 32, 40))), (1, 1, 1, 1)
    index = d.random.choice(("int32", "int64"))
    d.drawn.outputs = ()
    small = {"gradOutput": d.dtype, "indices": index} if "gradInput" in d.operator.roles else {}
    for name, dtype in small.items():
        d.add(name, tensor(d.random, one, dtype, how="row-major", fill=np.zeros(8, np.uint8)))
    view = View(d.dtype, shape, row_major(shape), 0, math.prod(shape), rules.NCHW, None)
    if not small:
        value = tensor(d.random, (1,), d.dtype, how="row-major", wrap="array")
        view = value.meaning._replace(shape=shape, strides=(0, 0, 0, 0), format=rules.NCHW)
        d.add("self", Argument(np.broadcast_to(value.value, shape), view))
        d.add("out", d.out("out", one, d.dtype))
        d.add("indices", d.out("indices", one, index))
    elif d.two:
        for name in ("self", "gradInput"):
            d.add(name, Argument(aclnn_bw.aclCreateTensor(shape, NUMBERS[d.dtype], format=rules.NCHW), view))
    else:
        d.add("self", Argument(shape, view))
        d.add("gradInput", Argument(None, None))
    for name, values in (("kernelSize", (2, 1)), ("stride", (1, 2**41)), ("padding", (0, 0))):
        d.add(name, Argument(values, Ints(values)))
