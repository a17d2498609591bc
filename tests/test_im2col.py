"""Im2colBackward: the numbers, against the twin and against each other."""

import json
import os
from itertools import islice, product
from typing import NamedTuple

import numpy as np
import pytest
import reference
from engine_helpers import NUMPY_DTYPE, Spec
from helpers import (
    DTYPES,
    LAYOUTS,
    Guarded,
    assert_is_sum,
    assert_no_negative_zero,
    assert_same_bytes,
    at_fence,
    bits,
    digest,
    far_apart,
    fenced,
    guarded_copy,
    normal,
    oracle_type,
    require_isa,
    run_python,
    run_two_phase,
    sprinkled,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from operators import im2col_backward as im2col_twin

import aclnn_bw

one_call = aclnn_bw.im2col_backward


class Columns(NamedTuple):
    """The windows of an image as columns: all but the first field follow the gradient in a call."""

    image_shape: tuple
    kernel_size: int | tuple
    dilation: int | tuple = 1
    padding: int | tuple = 0
    stride: int | tuple = 1

    def __str__(self):
        text = "x".join(map(str, self.image_shape))
        return text + "-k{}-d{}-p{}-s{}".format(*self[1:]).replace(", ", "x").replace("(", "").replace(")", "")

    @property
    def attributes(self):
        return (self.image_shape[-2:], *self[1:])

    @property
    def shape(self):
        size, kernel, dilation, padding, stride = self.attributes
        windows = reference.pooled_shape(size, kernel, stride, padding, False, dilation)
        *batch, channels = self.image_shape[:-2]
        return (*batch, channels * int(np.prod(reference.pair(kernel))), windows[0] * windows[1])

    @property
    def longest_row(self):
        _, kernel, dilation, padding, stride = self.attributes
        windows = reference.pooled_shape(self.image_shape, kernel, stride, padding, False, dilation)
        return max(self.image_shape[-1], windows[-1])

    def gradients(self, rng, dtype):
        return normal(rng, self.shape, DTYPES[dtype])


def two_phase(columns, grad, product="Host", out=None, stream=None):
    """Both phases; the workspace that the first asks for is checked against the package's promise."""
    out = np.empty(columns.image_shape, grad.dtype) if out is None else out
    with aclnn_bw.soc(product):
        size = run_two_phase(
            "Im2colBackward", grad, *(list(reference.pair(value)) for value in columns.attributes), out, stream=stream
        )
    assert size <= aclnn_bw.get_num_threads() * (2 * 2**20 + 64 * columns.longest_row)
    return out


def assert_is_im2col_backward(result, grad, columns):
    with np.errstate(invalid="ignore"):
        wide = grad.astype(oracle_type(grad.dtype))
        exact, sum_abs = (im2col_twin.im2col_backward(x, *columns.attributes, wide.dtype) for x in (wide, abs(wide)))
    assert_is_sum(result, exact, sum_abs, terms_of(columns))


def terms_of(columns):
    """For each position of a plane, how many elements of the gradient are added there."""
    plane = columns._replace(image_shape=(1, *columns.image_shape[-2:]))
    return im2col_twin.im2col_backward(np.ones(plane.shape), *plane.attributes)


every_dtype = pytest.mark.parametrize("dtype", DTYPES)

# One of each kind that an implementation may treat by itself, and of each way in which windows meet the border.
KINDS = [
    Columns((2, 3, 9, 10), 1),
    Columns((2, 3, 9, 10), 1, 1, 3),
    Columns((2, 3, 9, 10), 1, 1, 1, 2),
    Columns((2, 3, 8, 70), 3, 1, 1),
    Columns((2, 3, 7, 17), 3),
    Columns((2, 3, 16, 18), 2, 1, 0, 2),
    Columns((2, 3, 17, 19), 2, 1, 0, 2),
    Columns((2, 3, 9, 40), (2, 3), 1, (1, 2), (2, 3)),
    Columns((2, 3, 32, 48), 16, 1, 0, 16),
    Columns((2, 3, 13, 21), 8, 1, 4, 8),
    Columns((2, 3, 12, 16), 4, 1, 0, 4),
    Columns((2, 3, 16, 37), 3, 1, 1, 2),
    Columns((2, 3, 30, 28), 3, 1, 1, 2),
    Columns((2, 3, 29, 57), 4, 1, 1, 2),
    Columns((2, 3, 31, 15), 3, 1, 0, 2),
    Columns((2, 3, 33, 14), 4, 1, 2, 2),
    Columns((2, 3, 22, 47), 5, 3, 6, 2),
    Columns((2, 3, 21, 66), (3, 9), (1, 3), (2, 4), (1, 2)),  # many blocks with windows on some lanes alone
    Columns((2, 3, 20, 70), (4, 3), (3, 20), (4, 3), (3, 2)),  # and on none
    Columns((2, 3, 14, 14), 11, 1, 2, 4),  # few windows in a row: planes of sums
    Columns((2, 3, 37, 7), 2, 4, 0, 5),  # and one
    Columns((2, 3, 19, 6), (3, 5), (2, 1), (1, 0), (2, 3)),
    Columns((2, 3, 7, 9), 3, 1, 1, 3),
    Columns((2, 3, 28, 30), (7, 5), (1, 3), (3, 12), (2, 4)),
    Columns((2, 3, 9, 40), (3, 7), (4, 2), (5, 1), (3, 4)),  # with rows and columns that no window reaches
    Columns((2, 3, 13, 33), (4, 3), 1, 0, (5, 4)),
    Columns((2, 3, 60, 68), 3, 1, 0, 8),
    Columns((2, 3, 60, 68), 9, 1, 0, 8),
    Columns((2, 3, 61, 69), 9, 1, 0, 8),  # a plane too large, or too many windows
    Columns((2, 3, 8, 12), (2, 5), (1, 4), (0, 9), (1, 3)),
    Columns((2, 3, 14, 35), 3, 2, 2),
    Columns((2, 3, 15, 16), 3, 3, 1, 2),
    Columns((2, 3, 11, 14), (3, 2), (2, 3), (1, 0), (1, 2)),
    Columns((2, 3, 13, 12), 5, 1, 2),
    Columns((2, 3, 11, 18), 7, 1, 3),
    Columns((2, 3, 10, 20), 7, 1, 3, 4),
    Columns((2, 3, 16, 17), 2, 1, 0, 3),
    Columns((2, 3, 16, 17), 3, 1, 1, 5),
    Columns((2, 3, 9, 15), (2, 1), (4, 7)),
    Columns((2, 3, 8, 9), 2, (5, 2), (0, 1), (3, 4)),
    Columns((2, 3, 4, 5), 3, 1, 7),  # windows that hold nothing but padding, on every side
    Columns((2, 3, 3, 3), 2, 1, 9, 4),
    Columns((2, 3, 6, 7), 2, 10, 5),
    Columns((2, 3, 1, 2), 2, 50, 40, 3),  # no window reaches the image
    Columns((2, 3, 20, 62), 5, 1, 2, 3),  # three phases, of two terms at most
    Columns((2, 3, 12, 150), 3, 2, 0, 3),  # of one
    Columns((2, 3, 21, 64), 3, 2, 1, 3),  # dilated positions that never meet
    Columns((2, 3, 20, 120), 3, 3, 2, (5, 4)),
    Columns((2, 3, 16, 16), 3, 6, 0, 3),  # nor do they in so few windows
    Columns((2, 3, 20, 16), 3, 6, 0, 3),  # but with one more
    Columns((2, 3, 21, 96), 3, 4, 0, 8),  # and that do, at a few places of a plane
    Columns((2, 3, 5, 7), (5, 7)),
    Columns((2, 3, 5, 12), (3, 40), 1, (0, 20)),
    Columns((2, 3, 1, 50), (1, 4), 1, (0, 2), (1, 2)),
    Columns((2, 3, 50, 1), (4, 1), 1, (2, 0)),
    Columns((2, 3, 1, 1), 3, 1, 1),
]
every_kind = pytest.mark.parametrize("columns", KINDS, ids=str)

# Enough data for several threads, in planes that are fewer or more than the threads and above or below a cache's size.
LARGE = [
    Columns((1, 1, 170, 310), 3, 1, 1),
    Columns((1, 3, 120, 130), 3, 2, 2),
    Columns((1, 1, 400, 401), 2, 1, 0, 2),
    Columns((3, 300, 301), 2, 1, 0, 3),
    Columns((1, 3, 224, 224), 16, 1, 0, 16),
    Columns((2, 37, 24, 25), 3, 1, 1),
    Columns((3, 150, 7, 7), 3, 1, 1),
    Columns((1, 2, 60, 61), 7, 1, 3),
    Columns((1, 8, 57, 56), 3, 1, 1, 2),
    Columns((1, 1, 30000, 4), 3, 1, 1),
    Columns((1, 1, 4, 30000), (2, 3), (1, 2), 1, (1, 2)),
    Columns((3, 67, 14, 14), 11, 1, 2, 4),
    Columns((2, 3, 500, 20), 5, 3, 2, 3),  # few windows to a row in tall planes
    Columns((2, 3, 300, 40), (7, 3), (1, 2), 3, (2, 5)),
]
every_large = pytest.mark.parametrize("columns", LARGE, ids=str)

# Enough channels for several groups of those that are worked on together, the last one smaller; rows in several bands.
GROUPED = [
    Columns((2, 37, 40, 42), 3, 1, 1),
    Columns((1, 70, 23, 17), 3, 2, 2),
    Columns((3, 67, 7, 7), 3, 1, 1),
    Columns((1, 5, 6, 6), 3),
    Columns((2, 35, 30, 32), 2, 1, 0, 2),
    Columns((1, 3, 96, 80), 16, 1, 0, 16),
    Columns((1, 35, 41, 39), 3, 1, 1, 2),
    Columns((1, 130, 19, 18), 1),
    Columns((1, 35, 30, 29), 4, 1, 1, 2),
    Columns((2, 67, 14, 14), 3, 1, 1, 2),
    Columns((2, 33, 17, 5), (5, 2), 1, (2, 1), (3, 1)),
    Columns((2, 34, 14, 15), 5, 1, 2),
    Columns((1, 40, 9, 11), (3, 5), (3, 2), (3, 4)),
]
every_grouped = pytest.mark.parametrize("columns", GROUPED, ids=str)


# ---- by hand ---------------------------------------------------------------------------------------------------------

BY_HAND = {
    "overlap": ([[1, 2, 3], [40, 50, 60]], (1, 4), ((1, 2),), [[[1, 42, 53, 60]]]),
    "rows are channels, then kernel rows": ([[1], [2], [3], [4]], (2, 1), ((2, 1),), [[[1], [2]], [[3], [4]]]),
    "rows end with kernel columns": ([[1], [2], [3], [4]], (2, 2), (2,), [[[1, 2], [3, 4]]]),
    "columns are window rows, then columns": ([[1, 2, 3, 4, 5, 6]], (2, 3), (1,), [[[1, 2, 3], [4, 5, 6]]]),
    # Windows begin at -1 and 1 and hold every second position: -1, 1 and 1, 3 of three columns.
    "dilation and padding": ([[1, 2], [40, 50]], (1, 3), ((1, 2), (1, 2), (0, 1), (1, 2)), [[[0, 42, 0]]]),
    "gaps": ([[1, 2]], (1, 5), (1, 1, 0, 3), [[[1, 0, 0, 2, 0]]]),
    "nothing but padding": ([[1, 2, 3, 4, 5]], (1, 1), (1, 1, (0, 2), 1), [[[3]]]),
}


@pytest.mark.parametrize("case", BY_HAND)
def test_by_hand(case):
    grad, size, attributes, expected = BY_HAND[case]
    grad = np.array(grad, np.float32)
    for function in (im2col_twin.im2col_backward, one_call):
        assert function(grad, size, *attributes).tolist() == expected
        assert function(np.stack([grad, -grad]), size, *attributes)[0].tolist() == expected


def test_arguments_by_name_and_by_default():
    grad = np.arange(36, dtype=np.float32).reshape(4, 9)
    expected = im2col_twin.im2col_backward(grad, (4, 4), 2).astype(np.float32)
    by_name = {"input_size": (4, 4), "kernel_size": [2, 2], "dilation": 1, "padding": (0, 0), "stride": np.int64(1)}
    assert_same_bytes(one_call(grad_output=grad, **by_name), expected)
    assert_same_bytes(one_call(grad, 4, 2), expected)
    out = np.empty((1, 4, 4), np.float32)
    assert one_call(grad, (4, 4), 2, out=out) is out
    assert_same_bytes(out, expected)


# ---- every entry point against the twin ------------------------------------------------------------------------------


def check_both_entry_points(columns, dtype, rng):
    grad = columns.gradients(rng, dtype)
    out = Guarded(columns.image_shape, grad.dtype)
    two_phase(columns, grad, "Host", out.view)
    out.assert_outside_untouched()
    assert_is_im2col_backward(out.view, grad, columns)
    fresh = one_call(grad, *columns.attributes)
    assert fresh.flags.c_contiguous
    assert_same_bytes(fresh, out.view)


@every_dtype
@every_kind
def test_kinds(columns, dtype, rng):
    check_both_entry_points(columns, dtype, rng)
    check_both_entry_points(columns._replace(image_shape=columns.image_shape[1:]), dtype, rng)


@every_dtype
@every_large
def test_large(columns, dtype, rng):
    check_both_entry_points(columns, dtype, rng)


@every_dtype
@pytest.mark.parametrize("layout", ["contiguous", "rows_cropped", "channels_last"])
@pytest.mark.parametrize(
    "columns",
    [
        Columns((3, 5, 7, 7), 2, 1, 0, 2),
        Columns((3, 67, 4, 3), 1, 1, 0, 3),  # planes of few elements, of which some are cleared at once
        Columns((3, 67, 9, 4), 1, 1, 1, 7),  # all rows of windows are padding
        Columns((2, 3, 12, 12), 4, 1, 0, 4),
        Columns((2, 4, 6, 10), (2, 3), 1, 0, (4, 3)),
        Columns((1, 7, 19, 20), (3, 2), (1, 4), 0, (5, 6)),
        Columns((1, 2, 9, 9), 9, 1, 0, 9),
        Columns((2, 3, 1, 180), (1, 90), 1, 0, (1, 90)),  # more kernel columns than other planes may have
        Columns((2, 3, 28, 28), (3, 2), 1, 0, (4, 5)),
        Columns((3, 5, 7, 7), 2, 3, 0, 2),  # kernel columns that pass each other
        Columns((3, 5, 8, 8), 2, 1, 1, 2),  # every border of windows is in the padding
        Columns((2, 3, 9, 6), (3, 2), (2, 3), (3, 4), (5, 2)),
        Columns((2, 3, 5, 5), 3, 1, 2, 3),
        Columns((2, 3, 3, 5), 1, 1, (5, 0), (13, 1)),
    ],
    ids=str,
)
def test_places_that_are_listed(columns, layout, dtype, rng):
    """Small planes in which no two kernel positions meet: each element has a place of its own, zeros have none."""
    grad = columns.gradients(rng, dtype)
    grad[..., ::3] = -grad[..., ::3] * 0  # of both signs, but +0.0 in a sum
    (kernel_h, kernel_w), (down, across), (pad_h, pad_w), (stride_h, stride_w) = (
        reference.pair(each) for each in columns.attributes[1:]
    )
    expected = np.zeros(columns.image_shape, grad.dtype)
    height, width = reference.pooled_shape(
        columns.image_shape[-2:], (kernel_h, kernel_w), (stride_h, stride_w), (pad_h, pad_w), False, (down, across)
    )
    cells = grad.reshape(*columns.image_shape[:2], kernel_h, kernel_w, height, width)
    for kh, kw, oh, ow in product(range(kernel_h), range(kernel_w), range(height), range(width)):
        ih, iw = oh * stride_h + kh * down - pad_h, ow * stride_w + kw * across - pad_w
        if 0 <= ih < columns.image_shape[-2] and 0 <= iw < columns.image_shape[-1]:
            expected[..., ih, iw] = cells[..., kh, kw, oh, ow] + grad.dtype.type(0)
    for threads in (1, 2):
        out = Guarded(columns.image_shape, grad.dtype, layout)
        with aclnn_bw.num_threads(threads):
            two_phase(columns, grad, out=out.view)
        assert_same_bytes(out.view, expected)
        out.assert_outside_untouched()
    with aclnn_bw.soc("Host"):
        lists = (list(reference.pair(each)) for each in columns.attributes)
        out = np.empty(columns.image_shape, grad.dtype)
        _, executor = aclnn_bw.aclnnIm2colBackwardGetWorkspaceSize(grad, *lists, out)
    assert executor.explain().algorithm == "PLACE"


@every_dtype
@pytest.mark.parametrize("kernel", [1, 2, 3, 5, (2, 3), (4, 1)], ids=str)
def test_every_dilation_padding_and_stride(kernel, dtype, rng):
    calls = 0
    for dilation, padding, stride in product((1, 2, 3, (1, 2)), (0, 1, 2, (3, 0), 6), (1, 2, 3, 6, (2, 1))):
        shape = (1, 2, 5 + calls % 6, 6 + calls % 11)
        columns = Columns(shape, kernel, dilation, padding, stride)
        size = reference.pooled_shape(shape[-2:], kernel, stride, padding, False, dilation)
        if min(size) >= 1:
            check_both_entry_points(columns, dtype, rng)
            calls += 1
    assert calls > 50


WINDOWS = [(3, 1, 1, 1), (2, 1, 0, 2), (3, 2, 2, 1), (3, 1, 1, 2), (1, 1, 0, 1), (4, 1, 0, 4), (2, 1, 0, 3)]
WINDOWS += [(4, 1, 1, 2), (3, 1, 0, 2), (3, 2, 1, 2), (7, 1, 3, 2)]
# Of the phases of a row one has taps, or every second one.
WINDOWS += [(3, 4, 4, 4), (3, 2, 2, 4)]


def every_width(*window, beyond=(127, 128, 129, 255, 256, 257)):
    """Images of widths around all vector lengths, with all remainders behind them."""
    for width in [*range(4, 37), *range(47, 50), *range(63, 67), *beyond]:
        yield Columns((1, 2, 5 + width % 4, width), *window)


@every_dtype
@pytest.mark.parametrize("window", WINDOWS, ids=str)
def test_every_width(window, dtype, rng):
    for columns in every_width(*window):
        check_both_entry_points(columns, dtype, rng)


@every_dtype
def test_one_window(dtype, rng):
    """All strides are alike; its columns may lie side by side."""
    for side, kernel, dilation, padding in (
        (4, 2, 1, 0), (4, 3, 1, 0), (7, 7, 1, 0), (5, 3, 2, 0), (7, 9, 1, 1), (6, 4, 2, 1), (40, 33, 1, 0),
        (8, 16, 1, 4),
    ):  # fmt: skip
        for stride in (1, 8):
            check_both_entry_points(Columns((2, 5, side, side), kernel, dilation, padding, stride), dtype, rng)
            check_both_entry_points(Columns((2, 5, 3 * side, side), kernel, dilation, padding, stride), dtype, rng)


@every_dtype
@pytest.mark.parametrize(("kernel", "padding"), [(3, 0), (3, 1), (16, 8)])
def test_columns_that_overlap(dtype, kernel, padding, rng):
    """An input may be a view in which each column begins one element behind the one before."""
    columns = Columns((1, 2, 1, 40), (1, kernel), 1, (0, padding), (1, kernel + 1))
    shape = columns.shape
    memory = normal(rng, (sum(shape),), DTYPES[dtype])
    grad = np.lib.stride_tricks.as_strided(memory, shape, [memory.itemsize] * 3)
    out = Guarded(columns.image_shape, memory.dtype)
    two_phase(columns, grad, "Host", out.view)
    out.assert_outside_untouched()
    assert_same_bytes(out.view, two_phase(columns, grad.copy()))


def many_small_planes():
    """Windows as many as positions along w, on planes of every size around those of vectors, and enough of them."""
    for window in ((3, 1, 1), (5, 1, 2), (3, 2, 2), ((3, 1), 1, (1, 0)), ((1, 3), 1, (0, 1)), ((2, 3), 1, 1)):
        for size in ((1, 16), (3, 3), (4, 4), (3, 7), (5, 5), (4, 8), (3, 11), (6, 6), (7, 7), (5, 13), (29, 3)):
            columns = Columns((1, 18, *size), *window)
            if columns.shape[-1] > 0:
                yield columns


@every_dtype
def test_many_small_planes(dtype, rng):
    for columns in many_small_planes():
        check_both_entry_points(columns, dtype, rng)


axes = st.tuples(*(st.integers(*ends) for ends in ((1, 20), (1, 5), (1, 4), (0, 9), (1, 6)))).filter(
    lambda axis: axis[0] + 2 * axis[3] > axis[2] * (axis[1] - 1)
)


@st.composite
def any_columns(draw):
    size, *attributes = zip(draw(axes), draw(axes), strict=True)
    return Columns((*draw(st.sampled_from([(1,), (3,), (1, 1), (2, 2), (1, 3)])), *size), *attributes)


seeds = st.integers(0, 2**32 - 1)
layouts, offsets = st.sampled_from(list(LAYOUTS)), st.integers(0, 5)


@settings(max_examples=300)
@given(any_columns(), st.sampled_from(list(DTYPES)), seeds, layouts, layouts, offsets, offsets)
def test_any_geometry_in_any_layout(columns, dtype, seed, layout, out_layout, offset, out_offset):
    values = columns.gradients(np.random.default_rng(seed), dtype)
    grad = guarded_copy(values.reshape(-1, *values.shape[-2:]), layout, offset)
    before = grad.buffer.tobytes()
    out = Guarded(columns.image_shape, values.dtype, out_layout, out_offset)
    two_phase(columns, grad.view if values.ndim == 3 else grad.view[0], "Host", out.view)
    out.assert_outside_untouched()
    assert grad.buffer.tobytes() == before
    assert_is_im2col_backward(out.view, values, columns)
    assert_same_bytes(one_call(values, *columns.attributes), out.view)


@given(any_columns(), seeds)
def test_is_the_adjoint_of_the_forward(columns, seed):
    rng = np.random.default_rng(seed)
    x, y = rng.standard_normal(columns.image_shape), rng.standard_normal(columns.shape)
    forward = im2col_twin.im2col(x, *columns[1:])
    scale = np.vdot(abs(forward), abs(y)) + 1
    assert abs(np.vdot(forward, y) - np.vdot(x, one_call(y, *columns.attributes))) <= 1e-13 * scale


@pytest.mark.parametrize("shape", [(0, 3, 8, 9), (0, 1, 1, 1)])
@every_dtype
def test_empty_batch(shape, dtype):
    columns = Columns(shape, 3, 1, 1)
    out = Guarded(shape, DTYPES[dtype])
    assert two_phase(columns, np.empty(columns.shape, DTYPES[dtype]), "Host", out.view).size == 0
    out.assert_outside_untouched()
    with aclnn_bw.soc("Host"):
        size, executor = aclnn_bw.aclnnIm2colBackwardGetWorkspaceSize(
            np.empty(columns.shape, DTYPES[dtype]), shape[-2:], (3, 3), (1, 1), (1, 1), (1, 1), out.view
        )
    assert size == 0
    aclnn_bw.aclnnIm2colBackward(None, 0, executor)
    result = one_call(np.empty(columns.shape, DTYPES[dtype]), *columns.attributes)
    assert (result.shape, result.dtype) == (shape, DTYPES[dtype])


@every_dtype
@pytest.mark.parametrize("shape", [(1, 1, 2**22, 40), (2**20, 2**10, 9, 9), (1, 2**20, 300, 70), (1, 1, 3, 2**22)])
def test_workspace_whatever_batch_channels_and_height(shape, dtype):
    """Unbound tensors, so that nothing is allocated."""
    code = next(code for code, known in NUMPY_DTYPE.items() if known == DTYPES[dtype])
    for attributes in ((3, 1, 1), (2, 1, 0, 2), (3, 2, 2, 2), (3, 1, 1, 4)):
        columns = Columns(shape, *attributes)
        grad, out = (Spec(size, code, bound=False).build() for size in (columns.shape, shape))
        pairs = [reference.pair(value) for value in columns.attributes]
        for threads in (1, 4):
            with aclnn_bw.soc("Host"), aclnn_bw.num_threads(threads):
                size, executor = aclnn_bw.aclnnIm2colBackwardGetWorkspaceSize(grad, *pairs, out)
                assert 0 <= size <= threads * (2 * 2**20 + 64 * columns.longest_row)
                aclnn_bw.aclDestroyAclOpExecutor(executor)


EXTREME = [2**63 - 1, 2**62, 2**62 - 1, 2**40, 2**31, 5]


def test_extreme_windows():
    """Attributes up to the largest integers: the right result, or beyond 2**61 a refusal; never an overflow."""
    accepted = 0
    for dilation, padding, stride, kernel in product(EXTREME, [*EXTREME, 2**39, 2, 0], EXTREME, (1, 2, 3)):
        for size in (1, 4, 7):
            windows = (size + 2 * padding - dilation * (kernel - 1) - 1) // stride + 1
            if not 1 <= windows <= 40:
                continue
            grad = np.arange(1.0, kernel * windows + 1).reshape(kernel, windows)
            expected = np.zeros(size)
            for k, window in np.ndindex(kernel, windows):
                place = window * stride - padding + k * dilation
                if 0 <= place < size:
                    expected[place] += grad[k, window]
            try:
                result = one_call(grad, (1, size), (1, kernel), (1, dilation), (0, padding), (1, stride))
            except aclnn_bw.AclnnError:
                assert max(dilation, padding, stride) >= 2**61
                continue
            accepted += 1
            assert result.ravel().tolist() == expected.tolist(), (size, dilation, padding, stride, kernel)
    assert accepted > 100


# ---- dtypes, products, roundings -------------------------------------------------------------------------------------

PRODUCT_DTYPES = {
    "Ascend910": ("float32", "float16"),
    "Ascend910B": ("float32", "float16", "bfloat16"),
    "Host": tuple(DTYPES),
}
PAIRS = [(name, *pair) for name, dtypes in PRODUCT_DTYPES.items() for pair in product(dtypes, repeat=2)]


def converted(values, dtype):
    """The values rounded once to another dtype."""
    rounding = {DTYPES["float16"]: reference.round_float16, DTYPES["bfloat16"]: reference.round_bfloat16}.get(dtype)
    with np.errstate(over="ignore", invalid="ignore"):
        return (rounding(values.astype(np.float64)) if rounding else values).astype(dtype)


def without_sign_of_zero(x):
    return np.where(x == 0, np.zeros((), x.dtype), x)


@pytest.mark.parametrize(("product", "dtype", "out_dtype"), PAIRS)
def test_products_and_pairs_of_dtypes(product, dtype, out_dtype, rng):
    """The sum is rounded to gradOutput's dtype, and that to out's."""
    for index, columns in enumerate([*KINDS, LARGE[5]]):
        grad = sprinkled(columns.gradients(rng, dtype), rng, 0.01)
        same = two_phase(columns, grad, product)
        assert_is_im2col_backward(same, grad, columns)
        layout = list(LAYOUTS)[index % len(LAYOUTS)]
        out = Guarded(columns.image_shape, DTYPES[out_dtype], layout, index % 4)
        two_phase(columns, grad, product, out.view)
        out.assert_outside_untouched()
        assert_same_bytes(without_sign_of_zero(out.view), without_sign_of_zero(converted(same, DTYPES[out_dtype])))
        if product == "Host":
            given_out = np.empty(columns.image_shape, DTYPES[out_dtype])
            assert_same_bytes(one_call(grad, *columns.attributes, out=given_out), out.view)


@pytest.mark.parametrize(
    ("out_dtype", "term", "expected"),
    [
        ("float16", 1 + 2.0**-11, 1.0),
        ("float16", 1 + 2.0**-11 + 2.0**-40, 1 + 2.0**-10),
        ("float16", 65520 - 2.0**-20, 65504.0),
        ("float16", 65520.0, np.inf),
        ("float16", 2.0**-25 + 2.0**-70, 2.0**-24),
        ("float16", 3 * 2.0**-25 - 2.0**-60, 2.0**-24),
        ("bfloat16", 1 + 2.0**-8 + 2.0**-40, 1 + 2.0**-7),
        ("bfloat16", 1 + 3 * 2.0**-8 - 2.0**-40, 1 + 2.0**-7),
        ("bfloat16", 2.0**-134 + 2.0**-180, 2.0**-133),
        ("bfloat16", 2.0**128 - 2.0**119 - 2.0**80, 2.0**128 - 2.0**120),
        ("float32", 1 + 2.0**-24 + 2.0**-50, 1 + 2.0**-23),
    ],
)
@pytest.mark.parametrize("size", [1, 40])
def test_float64_sums_are_converted_directly(size, out_dtype, term, expected):
    """Through float32 they would be rounded twice."""
    for kernel, grad in ((1, term), (2, term / 2)):  # one term each, or two at all but the ends
        columns = Columns((1, 1, 1, size + 2), (1, kernel))
        values = np.full(columns.shape, grad)
        for sign in (1, -1):
            out = np.empty(columns.image_shape, DTYPES[out_dtype])
            result = two_phase(columns, sign * values, "Host", out)[0, 0, 0, 1:-1].astype(np.float64)
            assert np.all(result == sign * expected)


@pytest.mark.parametrize(("dtype", "unit"), [("float16", 2048.0), ("bfloat16", 256.0)])
def test_sums_of_16_bits_are_rounded_once(dtype, unit):
    """Kernel 4 over (unit, 1, 1, 1): rounded at each addition the sum would stay where it is."""
    columns = Columns((1, 1, 1, 7), (1, 4))
    grad = np.zeros(columns.shape)
    for terms in ((unit, 1, 1, 1), (1, 1, 1, unit)):
        grad[0, :, :] = np.diag(terms)[::-1]  # all of them meet in column 3
        assert columns.shape == (1, 4, 4)
        half = grad.astype(DTYPES[dtype])
        assert one_call(half, *columns.attributes)[0, 0, 0, 3] == unit + 4  # unit + 3 lies between unit + 2 and + 4
        wide = two_phase(columns, half, "Host", np.empty(columns.image_shape, np.float32))
        assert wide[0, 0, 0, 3] == unit + 4  # rounded to gradOutput's dtype on the way
    grad[0] = np.diag([unit, 1, 0, 0])[::-1]
    wide = two_phase(columns, grad.astype(DTYPES[dtype]), "Host", np.empty(columns.image_shape, np.float64))
    assert wide[0, 0, 0, 3] == unit


@pytest.mark.parametrize(("dtype", "big"), [("float16", 65504.0), ("bfloat16", 3.3895e38), ("float32", 3.4e38)])
def test_sums_beyond_the_dtype_are_inf(dtype, big):
    columns = Columns((1, 1, 1, 40), (1, 2))
    result = one_call(np.full(columns.shape, big, DTYPES[dtype]), *columns.attributes)
    assert np.all(result[..., 1:-1] == np.inf)
    assert np.all(result[..., [0, -1]] == np.array(big, DTYPES[dtype]))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_every_16_bit_pattern(dtype):
    patterns = np.arange(2**16, dtype=np.uint16).view(DTYPES[dtype]).reshape(1, 1, -1)
    for out_dtype in DTYPES.values():
        out = np.empty((1, 1, 256, 256), out_dtype)
        result = one_call(patterns, (256, 256), 1, out=out).reshape(1, 1, -1)
        assert_same_bytes(without_sign_of_zero(result), without_sign_of_zero(converted(patterns, out_dtype)))


# ---- NaN, inf, zeros -------------------------------------------------------------------------------------------------


@every_dtype
@pytest.mark.parametrize("columns", [*KINDS, *LARGE], ids=str)
def test_nan_and_inf_reach_exactly_their_elements(columns, dtype, rng):
    grad = columns.gradients(rng, dtype)
    marks = rng.random(grad.shape) < max(0.002, 1.5 / grad.size)
    marks[..., rng.integers(grad.shape[-2]), rng.choice([0, -1])] = True
    clean = np.where(marks, np.zeros((), grad.dtype), grad)
    reached = im2col_twin.im2col_backward(marks, *columns.attributes) != 0
    without = two_phase(columns, clean)
    for value in (np.nan, np.inf, -np.inf):
        result = two_phase(columns, np.where(marks, grad.dtype.type(value), grad))
        assert_same_bytes(result[~reached], without[~reached])
        assert_same_bytes(result[reached], np.full_like(result[reached], value))


def test_infinities_meet():
    columns = Columns((1, 1, 1, 3), (1, 2))
    for dtype in DTYPES.values():
        grad = np.array([[[np.inf, 0], [-np.inf, 1]]], dtype)
        assert_same_bytes(one_call(grad, *columns.attributes).ravel(), np.array([np.inf, -np.inf, 1], dtype))
        grad = np.array([[[0, np.inf], [-np.inf, 1]]], dtype)
        assert_same_bytes(one_call(grad, *columns.attributes).ravel(), np.array([0, np.nan, 1], dtype))


@every_dtype
@every_kind
def test_no_negative_zero_and_zeros_where_nothing_reaches(columns, dtype, rng):
    terms = np.broadcast_to(terms_of(columns), columns.image_shape)
    for grad in (-np.zeros(columns.shape), rng.integers(-1, 2, columns.shape)):
        assert_no_negative_zero(one_call(grad.astype(DTYPES[dtype]), *columns.attributes))
    result = one_call(1 + abs(columns.gradients(rng, dtype)), *columns.attributes)
    assert not bits(result[terms == 0]).any()
    assert np.all(result[terms != 0] > 0)


# ---- the same bytes, whatever ... ------------------------------------------------------------------------------------


@every_dtype
@every_kind
def test_same_bytes_whatever_batch_and_channels(columns, dtype, rng):
    columns = columns._replace(image_shape=(3, 5, *columns.image_shape[-2:]))
    grad = columns.gradients(rng, dtype)
    whole = two_phase(columns, grad)
    planes = grad.reshape(15, -1, grad.shape[-1])
    for n, c in ((0, 0), (1, 3), (2, 4)):
        assert_same_bytes(one_call(planes[5 * n + c], *columns.attributes)[0], whole[n, c])
        assert_same_bytes(one_call(planes[5 * n + c][None], *columns.attributes)[0, 0], whole[n, c])
    assert_same_bytes(one_call(grad[1], *columns.attributes), whole[1])
    assert_same_bytes(one_call(planes, *columns.attributes).reshape(whole.shape), whole)


@every_dtype
@pytest.mark.parametrize("layout", LAYOUTS)
def test_same_bytes_whatever_layout(layout, dtype, rng):
    for columns in [*KINDS, LARGE[5]]:
        values = columns.gradients(rng, dtype)
        plain = two_phase(columns, values)
        for offset in (0, 1, 3):
            grad = guarded_copy(values, layout, offset)
            out = Guarded(columns.image_shape, values.dtype, layout, offset)
            two_phase(columns, grad.view, "Host", out.view)
            assert_same_bytes(out.view, plain)
            out.assert_outside_untouched()
        assert_same_bytes(two_phase(columns, guarded_copy(values, layout, 1).view), plain)


@every_dtype
@every_grouped
def test_same_bytes_whatever_is_grouped(columns, dtype, rng):
    """Positions whose channels lie side by side, in gradOutput, in out and in both; rows with gaps behind them."""
    grad = sprinkled(columns.gradients(rng, dtype), rng, 0.001)
    with aclnn_bw.num_threads(1):
        expected = two_phase(columns, grad)
    assert_is_im2col_backward(expected, grad, columns)
    for threads, layout in product((1, 2, 3), ("contiguous", "planes_transposed", "columns_cropped")):
        with aclnn_bw.num_threads(threads):
            view = guarded_copy(grad, layout, threads).view
            for out_layout in ("contiguous", "channels_last", "channels_last_reversed", "rows_reversed"):
                out = Guarded(columns.image_shape, grad.dtype, out_layout, threads)
                two_phase(columns, view, "Host", out.view)
                out.assert_outside_untouched()
                assert_same_bytes(out.view, expected)
            one = two_phase(columns._replace(image_shape=columns.image_shape[1:]), view[0])
            assert_same_bytes(one, expected[0])


# One image each; so many are made that both arrays exceed the last-level cache of most machines.
BEYOND_CACHE = [
    Columns((3, 127, 130), 2, 1, 0, 2),
    Columns((3, 96, 80), 16, 1, 0, 16),
    Columns((5, 90, 64), (3, 2), 1, 0, (4, 2)),  # rows that no window reaches
    Columns((5, 90, 64), 3, 1, 1, (4, 5)),
    Columns((2, 5, 17000), (1, 2), 1, 0, (1, 2)),  # rows longer than what is made at a time
    Columns((16, 56, 57), 3, 1, 1),
    Columns((70, 7, 7), 3, 1, 1),
    Columns((5, 33, 250), 3, 1, 1, 2),
]


@every_dtype
@pytest.mark.parametrize("columns", BEYOND_CACHE, ids=str)
def test_same_bytes_beyond_the_cache(columns, dtype, rng):
    """Many images at once and each by itself."""
    few = sprinkled(normal(rng, (3, *columns.shape), DTYPES[dtype]), rng, 0.001)
    expected = np.stack([two_phase(columns, grad) for grad in few])
    times = 2**25 // (few.nbytes + expected.nbytes) + 1
    many = columns._replace(image_shape=(3 * times, *columns.image_shape))
    grad = np.tile(few, (times, 1, 1))
    for threads in (1, 2):
        out = Guarded(many.image_shape, grad.dtype, "contiguous", threads)
        with aclnn_bw.num_threads(threads):
            two_phase(many, grad, "Host", out.view)
        out.assert_outside_untouched()
        assert_same_bytes(out.view, np.tile(expected, (times, 1, 1, 1)))


@every_dtype
@pytest.mark.parametrize("columns", [Columns((1, 4, 6, 6), 3), Columns((2, 3, 7, 7), 3, 1, 1)], ids=str)
def test_tiny_calls_need_no_workspace(columns, dtype):
    grad, out = (np.zeros(shape, DTYPES[dtype]) for shape in (columns.shape, columns.image_shape))
    pairs = [reference.pair(value) for value in columns.attributes]
    with aclnn_bw.soc("Host"):
        assert aclnn_bw.aclnnIm2colBackwardGetWorkspaceSize(grad, *pairs, out)[0] == 0


@every_dtype
@every_kind
def test_same_bytes_from_broadcast_inputs(columns, dtype, rng):
    n, rows, length = columns.shape
    for kept in ((1, rows, length), (n, 1, length), (n, rows, 1), (1, 1, 1)):
        view = np.broadcast_to(rng.standard_normal(kept).astype(DTYPES[dtype]), columns.shape)
        assert_same_bytes(one_call(view, *columns.attributes), one_call(view.copy(), *columns.attributes))


@every_dtype
@every_large
def test_same_bytes_at_every_thread_count(columns, dtype, rng):
    grad = sprinkled(columns.gradients(rng, dtype), rng, 0.001)
    backwards = np.ascontiguousarray(grad[..., ::-1])[..., ::-1]
    with aclnn_bw.num_threads(1):
        expected = two_phase(columns, grad)
    for threads in (2, 3, 4):
        with aclnn_bw.num_threads(threads):
            assert_same_bytes(two_phase(columns, grad), expected)
            assert_same_bytes(one_call(grad, *columns.attributes), expected)
            out = Guarded(columns.image_shape, grad.dtype, "all_reversed", 1)
            assert_same_bytes(two_phase(columns, backwards, "Host", out.view), expected)
            out.assert_outside_untouched()


@every_dtype
@pytest.mark.parametrize("columns", [KINDS[3], KINDS[5], KINDS[12], LARGE[0]], ids=str)
def test_same_bytes_from_every_entry_point(columns, dtype, rng):
    grad = columns.gradients(rng, dtype)
    plain = two_phase(columns, grad)
    stream = aclnn_bw.aclrtCreateStream()
    try:
        assert_same_bytes(two_phase(columns, grad, stream=stream), plain)
    finally:
        aclnn_bw.aclrtDestroyStream(stream)
    # A repeatable executor, with dirty memory and with both tensors pointed elsewhere.
    out, other_out = np.full(plain.shape, np.nan, grad.dtype), np.full(plain.shape, np.nan, grad.dtype)
    with aclnn_bw.soc("Host"):
        attributes = [reference.pair(value) for value in columns.attributes]
        size, executor = aclnn_bw.aclnnIm2colBackwardGetWorkspaceSize(grad, *attributes, out)
    aclnn_bw.aclSetAclOpExecutorRepeatable(executor)
    for _ in range(2):
        aclnn_bw.aclnnIm2colBackward(bytearray(size), size, executor)
        assert_same_bytes(out, plain)
        out[...] = np.nan
    aclnn_bw.aclSetInputTensorAddr(executor, 0, None, -grad)
    aclnn_bw.aclSetOutputTensorAddr(executor, 0, None, other_out)
    aclnn_bw.aclnnIm2colBackward(bytearray(size), size, executor)
    aclnn_bw.aclDestroyAclOpExecutor(executor)
    assert np.isnan(out).all()
    assert_same_bytes(without_sign_of_zero(-other_out), without_sign_of_zero(plain))


@pytest.mark.parametrize("far_axis", [0, 1, 2])
def test_offsets_beyond_32_bits(far_axis, rng, tmp_path):
    columns = Columns((4, 2, 4, 5), 3, 1, 1)
    values = columns.gradients(rng, "float16")
    grad, out = far_apart(tmp_path, [values.shape, columns.image_shape], values.dtype, far_axis)
    grad[...] = values
    assert_same_bytes(two_phase(columns, grad, "Host", out), two_phase(columns, values))
    assert_same_bytes(two_phase(columns, grad[..., ::-1], "Host", out), two_phase(columns, values[..., ::-1].copy()))


# ---- instruction sets, and nothing outside the arrays is touched, not even read --------------------------------------


def digests(step=1):
    """A hash of the result of each of many calls, by the name of the call; of every `step`-th one."""
    found = {}
    calls = enumerate(product([*KINDS, LARGE[5], LARGE[8], *GROUPED], DTYPES))
    for index, (columns, dtype) in islice(calls, 0, None, step):
        rng = np.random.default_rng(index)
        grad = sprinkled(columns.gradients(rng, dtype), rng, 0.01)
        layout = list(LAYOUTS)[index % len(LAYOUTS)]
        strided = guarded_copy(grad.reshape(-1, *grad.shape[-2:]), layout, 1).view.reshape(grad.shape)
        out = Guarded(columns.image_shape, list(DTYPES.values())[index % 3], layout, 1).view
        results = two_phase(columns, grad), two_phase(columns, strided, "Host", out)
        found[f"{columns} {dtype}"] = digest(*results)
    for window, dtype in islice(product(WINDOWS, DTYPES), 0, None, step):
        rng = np.random.default_rng(window)
        images = every_width(*window, beyond=())
        calls = ((columns, sprinkled(columns.gradients(rng, dtype), rng)) for columns in images)
        found[f"every width of {window} {dtype}"] = digest(*(one_call(grad, *c.attributes) for c, grad in calls))
    for dtype in DTYPES:
        rng = np.random.default_rng(0)
        calls = ((columns, sprinkled(columns.gradients(rng, dtype), rng)) for columns in many_small_planes())
        found[f"many small planes {dtype}"] = digest(*(one_call(grad, *c.attributes) for c, grad in calls))
    return found


def digests_of(isa, folder, step):
    require_isa(isa)
    code = """
import json, aclnn_bw
from test_im2col import digests
print(json.dumps([aclnn_bw.show_config(mode="dict")["isa"], digests(STEP)]))
"""
    chosen, found = json.loads(run_python(code.replace("STEP", str(step)), folder, ACLNN_BW_ISA=isa))
    assert isa in chosen
    return found


@pytest.fixture(scope="module")
def v2_digests(step, tmp_path_factory):
    return digests_of("v2", tmp_path_factory.mktemp("v2"), step)


@pytest.mark.parametrize("isa", ["v3", "v4"])
def test_same_bytes_on_every_instruction_set(isa, v2_digests, tmp_path, step):
    theirs = digests_of(isa, tmp_path, step)
    assert theirs.keys() == v2_digests.keys()
    assert [name for name in theirs if theirs[name] != v2_digests[name]] == []


def run_at_fences(step):
    """Every `step`-th call, arrays at fences; the last line printed names the call that ended the process."""
    cases = [(columns, "contiguous", end) for columns in [*KINDS, LARGE[0], LARGE[4]] for end in (False, True)]
    cases += [(columns, layout, True) for columns in KINDS for layout in ("channels_last", "all_reversed")]
    cases += [(columns, "rows_apart", end) for columns in KINDS for end in (False, True)]
    layouts = ("contiguous", "channels_last", "planes_transposed")
    cases += [(columns, layout, end) for columns, layout, end in product(GROUPED, layouts, (False, True))]
    cases += [(columns, "contiguous", True) for window in WINDOWS for columns in every_width(*window, beyond=())]
    cases += [(columns, "contiguous", end) for columns, end in product(many_small_planes(), (False, True))]
    memories = [fenced(2**24) for _ in range(3)]
    for (columns, layout, end), dtype in islice(product(cases, ("float32", "bfloat16")), 0, None, step):
        print(columns, layout, dtype, end, flush=True)
        values = columns.gradients(np.random.default_rng(7), dtype)
        shape = columns.shape if len(columns.shape) == 3 else (1, *columns.shape)
        grad = at_fence(memories[0], shape, values.dtype, layout, 1, end).reshape(columns.shape)
        out = at_fence(memories[1], columns.image_shape, values.dtype, layout, 1, end)
        grad[...] = values
        attributes = [reference.pair(value) for value in columns.attributes]
        with aclnn_bw.soc("Host"):
            size, executor = aclnn_bw.aclnnIm2colBackwardGetWorkspaceSize(grad, *attributes, out)
        workspace = memories[2][-size:] if end else memories[2][:size]
        aclnn_bw.aclnnIm2colBackward(workspace if size else None, size, executor)
        assert_same_bytes(out, one_call(values, *columns.attributes))
    print("done")


@pytest.mark.skipif(os.name != "posix", reason="needs mprotect")
@pytest.mark.parametrize("isa", ["v2", "v3", "v4"])
def test_nothing_beyond_the_arrays_is_touched(isa, tmp_path, step):
    require_isa(isa)
    printed = run_python(f"from test_im2col import run_at_fences; run_at_fences({step})", tmp_path, ACLNN_BW_ISA=isa)
    assert printed.endswith("\ndone\n")
