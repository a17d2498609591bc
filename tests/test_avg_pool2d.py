"""AvgPool2dBackward: the numbers, against the twin and against each other."""

import ctypes
import json
import os
import platform
import shutil
import subprocess
from itertools import islice, product

import numpy as np
import pytest
import reference
from helpers import (
    DTYPES,
    LAYOUTS,
    SMALLEST,
    Guarded,
    assert_no_negative_zero,
    assert_same_bytes,
    assert_sides_alike,
    at_fence,
    bits,
    digest,
    fenced,
    guarded_copy,
    oracle_type,
    require_isa,
    run_python,
    sprinkled,
    turned_last,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from operators import avg_pool2d_backward as avg_twin
from operators.avg_pool2d_backward import MODES, Mode, Pool, assert_is_avg_pool2d_backward
from operators.avg_pool2d_backward import avg_pool2d_backward_two_phase as two_phase

import aclnn_bw

one_call = aclnn_bw.avg_pool2d_backward

every_dtype = pytest.mark.parametrize("dtype", DTYPES)
every_mode = pytest.mark.parametrize("mode", MODES, ids=str)


def pools(*cases):
    return pytest.mark.parametrize("pool", [Pool(*case) for case in cases], ids=str)


# One of each kind that an implementation may treat by itself, and of each way in which windows meet the border.
KINDS = [
    Pool((2, 3, 17, 19), 1),
    Pool((2, 3, 16, 18), 2),
    Pool((2, 3, 17, 71), 2, None, 0, True),
    Pool((2, 3, 15, 16), 3, None, 1, False, False),
    Pool((2, 3, 9, 40), (2, 3), (2, 3), (1, 1), True, True),
    Pool((2, 3, 14, 17), 3, 1, 1),
    Pool((2, 3, 14, 17), 3, 1, 1, False, False),
    Pool((2, 3, 14, 37), 3, 1, 1, False, True, 7),
    Pool((2, 3, 13, 12), 5, 1, 2),
    Pool((2, 3, 11, 13), 2, 1, 1),
    Pool((2, 3, 11, 35), 4, 1),
    Pool((2, 3, 16, 17), 3, 2, 1),
    Pool((2, 3, 16, 33), 3, 2, 1, True, False),
    Pool((2, 3, 16, 17), 3, 2, 0, False, True, -5),
    Pool((2, 3, 17, 16), 5, 3, 2),
    Pool((2, 3, 17, 16), 7, 2, 3, True, False),
    Pool((2, 3, 16, 17), 2, 3),
    Pool((2, 3, 16, 17), 2, 5, 1, True, True),
    Pool((2, 3, 9, 14), (3, 2), (1, 2), (1, 0)),
    Pool((2, 3, 9, 14), (2, 5), (3, 1), (1, 2), True, False, 9),
    Pool((2, 3, 7, 7), 7),
    Pool((2, 3, 14, 14), 4),  # few windows in a row, which do not meet
    Pool((2, 3, 13, 14), 3, 6, 1, False, True, 5),
    Pool((2, 3, 17, 9), (5, 2), (7, 4), (2, 1), True, True, -3),
    Pool((2, 3, 7, 7), 3, 8, 1),
    Pool((2, 3, 14, 14), 4, 8, 2, False, False),
    Pool((2, 3, 18, 23), (5, 3), (6, 4), 1, True, False),  # six in a row
    Pool((2, 3, 17, 17), 9, 8, 0, True),  # and which do
    Pool((3, 7, 8, 7), 5, 3, 2, True, False),  # small planes of many channels, or of many images
    Pool((1, 17, 6, 5), 3, 2, 1),
    Pool((34, 1, 4, 6), 6, (4, 3), 3, False, True, 5),
    Pool((2, 3, 17, 18), (7, 9), (3, 4), (3, 4), True, False),
    Pool((2, 3, 30, 33), (4, 11), (5, 4), 2),
    Pool((2, 3, 6, 7), (6, 7), 1, 0, False, True, -3),
    Pool((2, 3, 5, 4), 9, 2, 4, True, False),
    Pool((2, 3, 5, 4), 40, 3, 20),
    Pool((2, 3, 1, 50), (1, 4), (1, 2), (0, 2)),
    Pool((2, 3, 50, 1), (4, 1), (2, 1), (2, 0), True),
]
every_kind = pytest.mark.parametrize("pool", KINDS, ids=str)

# Enough data for several threads, in planes that are fewer or more than the threads and above or below a cache's size.
LARGE = [
    Pool((1, 1, 500, 700), 3, 1, 1),
    Pool((1, 1, 700, 500), 3, 1, 1, False, False),
    Pool((1, 1, 401, 903), 2),
    Pool((1, 3, 300, 310), 3, 2, 1),
    Pool((1, 1, 640, 480), 5, 3, 2, True, False),
    Pool((3, 300, 301), 5, 1, 2),
    Pool((1, 1, 500, 600), 7, 1, 0, False, True, 50),
    Pool((1, 2, 400, 500), (400, 500)),
    Pool((1, 1, 450, 450), 2, 3),
    Pool((1, 1, 300, 500), 50, 1, 25),
    Pool((3, 37, 24, 25), 3, 1, 1),
    Pool((5, 41, 14, 14), 2),
    Pool((2, 150, 13, 13), 3, 2, 1, True),
    Pool((3, 700, 7, 7), 7),
    Pool((3, 200, 14, 14), 4, 5),
    Pool((3, 200, 17, 17), 7, 3, 3, True, False),
    Pool((1, 1, 40000, 4), 3, 1, 1),
    Pool((1, 1, 4, 40000), 3, 2, 1),
]
every_large = pytest.mark.parametrize("pool", LARGE, ids=str)


# ---- the twin itself -------------------------------------------------------------------------------------------------


def test_twin_by_hand():
    # 3 columns, kernel 2, stride 1, padding 1 (columns only): windows 0:1, 0:2, 1:3, 2:3.
    ones = np.ones((1, 1, 1, 4))
    shape, sizes = (1, 1, 1, 3), ((1, 2), 1, (0, 1))
    expected = {
        (True, None): [1.0, 1.0, 1.0],
        (False, None): [1.5, 1.0, 1.5],
        (True, -4): [-0.5, -0.5, -0.5],
        (False, 1): [2.0, 2.0, 2.0],
    }
    for (include, override), row in expected.items():
        result = avg_twin.avg_pool2d_backward(ones, shape, *sizes, False, include, override)
        assert result.tolist() == [[[row]]]
    # 4 columns, kernel 3, stride 2, ceil mode: windows 0:3 and 2:4; the second is cut to two columns in either mode.
    for include in (True, False):
        result = avg_twin.avg_pool2d_backward(np.ones((1, 1, 2)), (1, 1, 4), (1, 3), (1, 2), 0, True, include)
        np.testing.assert_allclose(result, [[[1 / 3, 1 / 3, 1 / 3 + 1 / 2, 1 / 2]]], rtol=1e-15)
    # In ceil mode padding counts up to its end and no further: 2 columns, kernel 4, stride 3, padding 2 -> -2:2, 1:4.
    result = avg_twin.avg_pool2d_backward(np.ones((1, 1, 2)), (1, 1, 2), (1, 4), (1, 3), (0, 2), True)
    np.testing.assert_allclose(result, [[[1 / 4, 1 / 4 + 1 / 3]]], rtol=1e-15)
    assert avg_twin.avg_pool2d(np.arange(16.0).reshape(1, 4, 4), 2).tolist() == [[[2.5, 4.5], [10.5, 12.5]]]


@pytest.mark.parametrize(
    ("size", "kernel", "stride", "padding", "ceil_mode", "dilation", "expected"),
    [
        (4, 4, 1, 0, False, 1, 1),
        (7, 3, 2, 1, False, 1, 4),
        (8, 3, 2, 1, False, 1, 4),
        (8, 3, 2, 1, True, 1, 5),
        (6, 3, 2, 0, True, 1, 3),
        (6, 2, 3, 1, True, 1, 3),
        (5, 2, 3, 1, True, 1, 2),  # a third window would begin in the padding at the end
        (1, 1, 5, 0, True, 1, 1),
        (3, 5, 1, 0, False, 1, -1),
        (7, 3, 1, 0, False, 3, 1),
    ],
)
def test_twin_pooled_size(size, kernel, stride, padding, ceil_mode, dilation, expected):
    assert reference.pooled_size(size, kernel, stride, padding, ceil_mode, dilation) == expected


def test_twin_rounding():
    tiny = 2.0**-24
    halves = {1 + 2.0**-11: 1.0, 1 + 3 * 2.0**-11: 1 + 2.0**-9, tiny / 2: 0.0, tiny * 0.51: tiny, tiny * 1.5: 2 * tiny}
    for x, expected in {**halves, 65519.9: 65504.0, 65520.0: np.inf, -1e9: -np.inf, np.inf: np.inf}.items():
        assert reference.round_float16(x) == expected, x
    brains = {1 + 2.0**-8: 1.0, 1 + 3 * 2.0**-8: 1 + 2.0**-6, 3.397e38: np.inf, 2.0**-134: 0.0, 2.0**-133: 2.0**-133}
    for x, expected in {**brains, 1 + 2.0**-8 + 2.0**-40: 1 + 2.0**-7, -np.inf: -np.inf}.items():
        assert reference.round_bfloat16(x) == expected, x
    largest = float(np.finfo(np.float32).max)
    for x, expected in {1 + 2.0**-12: 1.0, 1 + 3 * 2.0**-12: 1 + 2.0**-10, largest: np.inf, -largest: -np.inf}.items():
        assert reference.round_hf32(x) == expected, x
    rng = np.random.default_rng(1)
    x = rng.standard_normal(20000) * 2.0 ** rng.integers(-30, 18, 20000)
    with np.errstate(over="ignore"):
        assert_same_bytes(reference.round_float16(x), x.astype(np.float16).astype(np.float64))
    for rounding in (reference.round_float16, reference.round_bfloat16, reference.round_hf32):
        assert np.isnan(rounding(np.nan))
        assert_same_bytes(rounding(rounding(x)), rounding(x))


# ---- geometries at random --------------------------------------------------------------------------------------------


def _is_axis(axis):
    size, kernel, stride, padding = axis
    return 2 * padding <= kernel and reference.pooled_size(size, kernel, stride, padding) >= 1


axes = st.one_of(
    st.tuples(st.integers(1, 14), st.integers(1, 7), st.integers(1, 6), st.integers(0, 3)),
    st.tuples(st.integers(1, 40), st.integers(1, 20), st.integers(1, 25), st.integers(0, 10)),
).filter(_is_axis)
overrides = st.one_of(st.none(), st.integers(1, 300), st.integers(-300, -1))


@st.composite
def any_pool(draw):
    rows, columns = draw(axes), draw(axes)
    leading = draw(st.sampled_from([(1,), (2,), (1, 1), (1, 3), (2, 2), (3, 1)]))
    size, kernel, stride, padding = zip(rows, columns, strict=True)
    return Pool((*leading, *size), kernel, stride, padding, draw(st.booleans()), draw(st.booleans()), draw(overrides))


seeds = st.integers(0, 2**32 - 1)


@given(any_pool(), seeds)
def test_twins_agree(pool, seed):
    grad = np.random.default_rng(seed).standard_normal(pool.output_shape)
    literal = avg_twin.avg_pool2d_backward(grad, *pool)
    quick = avg_twin.avg_pool2d_backward_quick(grad, *pool)
    total, terms = avg_twin.sum_abs_and_terms(grad, *pool)
    magnitude = pool._replace(divisor_override=pool.divisor_override and abs(pool.divisor_override))
    np.testing.assert_allclose(total, avg_twin.avg_pool2d_backward(abs(grad), *magnitude), rtol=1e-13)
    np.testing.assert_array_less(abs(literal - quick), (terms + 1) * 2.0**-52 * total + 1e-300)
    ones = np.ones(pool.output_shape)
    assert_same_bytes(np.broadcast_to(terms, literal.shape), avg_twin.avg_pool2d_backward(ones, *pool[:6], 1))


@given(any_pool(), seeds)
def test_is_the_adjoint_of_the_forward(pool, seed):
    rng = np.random.default_rng(seed)
    x, y = rng.standard_normal(pool.input_shape), rng.standard_normal(pool.output_shape)
    forward = avg_twin.avg_pool2d(x, *pool[1:])
    result = one_call(y, *pool)
    scale = np.vdot(abs(x), avg_twin.avg_pool2d_backward(abs(y), *pool[:6], 1)) + 1
    assert abs(np.vdot(forward, y) - np.vdot(x, result)) <= 1e-13 * scale


@settings(max_examples=400)
@given(
    any_pool(), st.sampled_from(MODES), seeds, st.sampled_from(list(LAYOUTS)), st.sampled_from(list(LAYOUTS)),
    st.integers(0, 5), st.integers(0, 5),
)  # fmt: skip
def test_any_geometry_in_any_layout(pool, mode, seed, layout, out_layout, offset, out_offset):
    values = pool.gradients(np.random.default_rng(seed), mode.dtype)
    grad = guarded_copy(values, layout, offset)
    before = grad.buffer.tobytes()
    out = Guarded(pool.input_shape, values.dtype, out_layout, out_offset)
    if mode.product != "Host" and abs(pool.divisor_override or 0) > 255:
        pool = pool._replace(divisor_override=None)
    two_phase(pool, grad.view, mode, out.view)
    out.assert_outside_untouched()
    assert grad.buffer.tobytes() == before
    assert_is_avg_pool2d_backward(out.view, values, pool, mode)
    assert_same_bytes(two_phase(pool, values, mode), out.view)


@given(any_pool(), st.sampled_from(list(DTYPES)), seeds, st.integers(-3, 3))
def test_powers_of_two_and_signs_pass_through(pool, dtype, seed, power):
    # Values in [1, 2) divided by at most 40 * 40 stay normal in every dtype.
    if pool.divisor_override:
        pool = pool._replace(divisor_override=max(-30, min(30, pool.divisor_override)))
    grad = (1 + np.random.default_rng(seed).random(pool.output_shape)).astype(DTYPES[dtype])
    result = one_call(grad, *pool)
    factor = grad.dtype.type(2.0**power)
    assert_same_bytes(one_call(grad * factor, *pool), result * factor)
    assert_same_bytes(without_sign_of_zero(-one_call(-grad, *pool)), result)
    if pool.divisor_override:
        negated = pool._replace(divisor_override=-pool.divisor_override)
        assert_same_bytes(one_call(-grad, *negated), result)


# ---- every entry point against the twin ------------------------------------------------------------------------------


def check_both_entry_points(pool, dtype, rng):
    grad = pool.gradients(rng, dtype)
    mode = Mode("Host", dtype)
    out = Guarded(pool.input_shape, grad.dtype)
    two_phase(pool, grad, mode, out.view)
    out.assert_outside_untouched()
    assert_is_avg_pool2d_backward(out.view, grad, pool, mode)
    fresh = one_call(grad, *pool)
    assert fresh.flags.c_contiguous
    assert_same_bytes(fresh, out.view)


@every_dtype
@every_kind
def test_kinds(pool, dtype, rng):
    check_both_entry_points(pool, dtype, rng)
    check_both_entry_points(pool._replace(input_shape=pool.input_shape[1:]), dtype, rng)


@every_dtype
@every_large
def test_large(pool, dtype, rng):
    check_both_entry_points(pool, dtype, rng)


@every_dtype
@pytest.mark.parametrize("kernel", range(1, 8))
def test_every_kernel_stride_and_padding(kernel, dtype, rng):
    """k 1..7: strides from 1 to beyond the kernel, all paddings, both roundings of the size, each kind of divisor."""
    attributes = product(range(1, kernel + 3), range(kernel // 2 + 1), (False, True), (True, False))
    for index, (stride, padding, ceil_mode, include) in enumerate(attributes):
        override = (None, None, 5, -2)[index % 4]
        shape = (1, 2, kernel + 3 + index % 9, 2 * kernel + 2 + index % 17)
        check_both_entry_points(Pool(shape, kernel, stride, padding, ceil_mode, include, override), dtype, rng)


@every_dtype
@pytest.mark.parametrize("kernel", range(1, 8))
def test_small_planes_of_many_channels(kernel, dtype, rng):
    """Channels are summed side by side: the bytes are those of five of the planes, which are too few for that."""
    attributes = product(range(1, kernel + 3), range(kernel // 2 + 1), (False, True))
    for index, (stride, padding, ceil_mode) in enumerate(attributes):
        images, channels = ((1, 13), (1, 16), (2, 31), (3, 5), (47, 1), (1, 49))[index % 6]
        shape = (images, channels, kernel + index % 5, kernel + index % 7)
        pool = Pool(shape, kernel, stride, padding, ceil_mode, index % 3 > 0, (None, None, -3)[index % 3])
        grad = pool.gradients(rng, dtype)
        layout, out_layout = list(LAYOUTS)[index % len(LAYOUTS)], list(LAYOUTS)[index // 2 % len(LAYOUTS)]
        out = Guarded(shape, grad.dtype, out_layout, 1)
        with aclnn_bw.num_threads(1 + index % 3):
            one_call(guarded_copy(grad, layout, 1).view, *pool, out=out.view)
        out.assert_outside_untouched()
        assert_is_avg_pool2d_backward(out.view, grad, pool, Mode("Host", dtype))
        planes = grad.reshape(images * channels, *grad.shape[2:])
        result = np.ascontiguousarray(out.view).reshape(images * channels, *shape[2:])
        for begin in range(0, len(planes), 5):
            some = planes[None, begin : begin + 5]
            alone = one_call(some, *pool._replace(input_shape=(*some.shape[:2], *shape[2:])))
            assert_same_bytes(alone[0], result[begin : begin + 5])


@every_dtype
@pytest.mark.parametrize("height", [32, 96])
@pytest.mark.parametrize("channels", [16, 19])
def test_planes_4_kib_apart(channels, height, dtype, rng):
    """Their lines fall into one set of a cache, so they are stored in another order: few channels, many positions."""
    width = 128 // {"float64": 8, "float32": 4}.get(dtype, 2)
    check_both_entry_points(Pool((1, channels, height, width), (5, 5), (4, 4), (2, 2)), dtype, rng)


@every_dtype
@pytest.mark.parametrize(
    "shape", [(2, 16, 9, 11), (1, 17, 40, 30), (1, 163, 7, 130), (1, 33, 300, 9), (3, 64, 5, 8), (2, 3, 20, 31)]
)
def test_channels_last(shape, dtype, rng):
    """The bytes are those of contiguous arrays, whatever the groups, bands and threads."""
    kinds = ((3, 2, 1), (2, 2, 0), ((1, 3), 1, (0, 1)), ((5, 2), (7, 3), 1), (5, 1, 2), ((4, 5), (1, 2), 2), (3, 1, 1))
    for number, (kernel, stride, padding) in enumerate(kinds):
        pool = Pool(shape, kernel, stride, padding, number % 2 == 1, number % 3 > 0, (None, None, -3)[number % 3])
        grad = pool.gradients(rng, dtype)
        assert_sides_alike(lambda grad, out, pool=pool: one_call(grad, *pool, out=out), grad, one_call(grad, *pool))


@every_dtype
@pytest.mark.parametrize("shape", [(2, 19, 9, 11), (40, 7, 12), (1, 35, 12, 3)])
def test_channels_side_by_side_between_others(shape, dtype, rng):
    pool = Pool(shape, 3, 2, 1)
    grad = pool.gradients(rng, dtype)
    out, memory = turned_last(np.zeros(shape, grad.dtype))
    one_call(turned_last(grad)[0], *pool, out=out)
    assert_same_bytes(np.ascontiguousarray(out), one_call(grad, *pool))
    assert (memory[..., :2] == 7).all()
    assert (memory[..., -3:] == 7).all()


@pytest.mark.parametrize("kernel", [3, 5, 7, 33])
@pytest.mark.parametrize("shape", [(1, 2048, 7, 7), (2, 64, 112, 112), (1, 31, 40, 1000), (1, 130, 3000, 1)])
def test_bands_of_channels_side_by_side(shape, kernel):
    """Rows of windows are summed again by a quarter at most, and the scratch stays in 2 MiB for each thread."""
    grad, grad_input = (np.moveaxis(np.empty((one[0], *one[2:], one[1]), np.float32), -1, 1) for one in (shape, shape))
    for threads in (1, 2):
        with aclnn_bw.soc("Host"), aclnn_bw.num_threads(threads):
            size, executor = aclnn_bw.aclnnAvgPool2dBackwardGetWorkspaceSize(
                grad, grad_input, [kernel], [1], [kernel // 2], False, True, 0, 0, grad_input
            )
        assert size <= threads << 21
        told = executor.explain()
        assert told.algorithm == ("LAST" if kernel * shape[3] <= 2048 else "BANDED")
        assert told.units <= shape[0] * shape[1] // 16 * -(-shape[2] // (3 * kernel)) or told.algorithm == "BANDED"


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(
    ("shape", "dtype", "kernel", "stride", "padding"),
    [
        ((1, 47, 9, 510), "float64", (2, 3), (1, 2), (0, 0)),
        ((1, 256, 1317, 6), "float32", (4, 3), (3, 2), (0, 0)),
        ((1, 31, 211, 984), "float64", (3, 121), (3, 1), (0, 60)),
        ((1, 64, 90, 600), "float64", (3, 3), (2, 2), (1, 1)),
        ((2, 130, 64, 64), "float32", (3, 3), (2, 2), (1, 1)),
    ],
)
def test_the_workspace_of_channels_side_by_side(shape, dtype, kernel, stride, padding, threads):
    """2 MiB for each thread, and 64 bytes for each element of the longest row; gradOutput has rows."""
    pool = Pool(shape, kernel, stride, padding)
    grad = np.empty(pool.output_shape, dtype)
    grad_input = np.moveaxis(np.empty((shape[0], *shape[2:], shape[1]), dtype), -1, 1)
    with aclnn_bw.soc("Host"), aclnn_bw.num_threads(threads):
        size, _executor = aclnn_bw.aclnnAvgPool2dBackwardGetWorkspaceSize(
            grad, grad_input, list(kernel), list(stride), list(padding), False, True, 0, 0, grad_input
        )
    assert size <= threads * ((2 << 20) + 64 * max(shape[3], grad.shape[3]))


def test_rows_of_a_tall_kernel_are_few_channels():
    """Those of a line of channels, side by side in gradOutput, took 29 MiB."""
    grad = np.moveaxis(np.empty((1, 2050, 300, 15), np.float32), -1, 1)
    grad_input = np.empty((1, 15, 2050, 300), np.float32)
    with aclnn_bw.soc("Host"), aclnn_bw.num_threads(1):
        size, _ = aclnn_bw.aclnnAvgPool2dBackwardGetWorkspaceSize(
            grad, grad_input, [1025, 1], [1, 1], [512, 0], False, True, 0, 0, grad_input
        )
    assert size <= 2 << 20


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(
    ("shape", "kernel", "stride", "algorithm"),
    [
        ((1, 3, 512, 512), 512, 1, "FILL"),
        ((2, 15, 4100, 65), (4100, 65), 1, "FILL"),
        ((1, 3, 8300, 32), 2, 2, "DOUBLE"),
        ((1, 3, 8300, 32), 3, 1, "BANDED"),
        ((1, 2, 8300, 32), 15, 1, "BANDED"),
        ((1, 3, 1024, 1000), 3, 3, "BANDED"),
    ],
    ids=str,
)
def test_large_planes_of_few_channels(shape, kernel, stride, algorithm, threads, rng):
    """One has more than 1 MiB: bands of it are turned, which change nothing of the rest of the plan. Planes that one
    window covers had as many units as rows, of a plane each, and wrote behind gradInput."""
    pool = Pool(shape, kernel, stride)
    grad = pool.gradients(rng, "float32")
    out, memory = turned_last(np.zeros(shape, grad.dtype))
    with aclnn_bw.soc("Host"), aclnn_bw.num_threads(threads):
        size, executor = aclnn_bw.aclnnAvgPool2dBackwardGetWorkspaceSize(
            grad, out, *reference.pairs(kernel, stride, 0), False, True, 0, 0, out
        )
        told = executor.explain()
        assert (told.algorithm, told.units <= 1024) == (algorithm, True)
        assert size <= threads << 19
        one_call(grad, *pool, out=out)
        assert_same_bytes(np.ascontiguousarray(out), one_call(grad, *pool))
    assert (memory[..., :2] == 7).all()
    assert (memory[..., -3:] == 7).all()


def test_a_halved_group_of_few_channels_is_not_packed(rng):
    """The sums of a row nearly fill 2 MiB, so a unit makes 7 of 14 planes; gradOutput's rows are read as they are."""
    width = 190 * 32200
    shape, pool = (1, 14, 1, width), ((1, width - 1), (1, 190), (0, width // 2 - 1))
    grad = rng.standard_normal(Pool(shape, *pool).output_shape).astype(np.float16)
    out = np.moveaxis(np.empty((1, 1, width, 14), np.float16), -1, 1)
    with aclnn_bw.soc("Host"), aclnn_bw.num_threads(1):
        _, executor = aclnn_bw.aclnnAvgPool2dBackwardGetWorkspaceSize(
            grad, out, *pool, False, True, 0, 0, out
        )
        # Packed as well they would be made two at a time.
        assert executor.explain().units == 2 * -(-grad.shape[3] // 32)
        one_call(grad, shape, *pool, out=out)
        assert np.array_equal(out, one_call(grad, shape, *pool))


# Channels by the cache line, and a rest, of one channel too; stride 1 up to the most running sums and beyond; pairs and
# triples of columns that begin with each phase.
SIDE_BY_SIDE = [
    Pool((2, 35, 18, 21), 3, 1, 1),
    Pool((2, 33, 18, 21), 3, 1, 1),
    Pool((2, 37, 9, 40), 3, 1, 1, False, False),
    Pool((1, 70, 7, 5), 5, 1, 2),
    Pool((2, 33, 17, 38), 3, 2, 1),
    Pool((2, 9, 33, 35), 3, 2, 0, True, False),
    # Few channels: planes are made in the scratch, with each algorithm, in bands, tiles and both.
    Pool((2, 3, 15, 17), 2),
    Pool((3, 2, 1, 14), 2, 2, 0, True),
    Pool((1, 5, 40, 1300), 2),
    Pool((2, 4, 7, 7), 7),
    Pool((1, 15, 70, 130), (70, 130)),
    Pool((2, 14, 30, 12), (4, 5), (4, 5)),
    Pool((1, 3, 40, 600), 3, 2, 1),
    Pool((1, 3, 40, 600), 3, 1, 1, False, False),
    Pool((1, 7, 33, 2500), (3, 9), (2, 9), (1, 4)),
    Pool((2, 15, 90, 40), 3, 1, 1),
    Pool((1, 6, 64, 30), 5, 1, 2, True, False),
    Pool((1, 11, 20, 70), 5, 3, 2, True),
    Pool((1, 2, 2000, 30), (999, 1), (1, 1), (499, 0)),
    Pool((1, 40, 20, 19), 3, 3),
    Pool((1, 40, 20, 70), 5, 3, 2, True),
    Pool((1, 35, 12, 40), 4, 3, 1),
    Pool((1, 35, 12, 41), 2, 3, 1, True),
    Pool((1, 35, 12, 41), 1, 3),
    Pool((1, 17, 30, 40), 16, 1, 8),
    Pool((1, 17, 30, 40), 17, 1, 8),
    Pool((3, 35, 16, 18), 2),
    Pool((2, 35, 7, 7), 7),
]


@every_dtype
@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("pool", SIDE_BY_SIDE, ids=str)
def test_channels_side_by_side(pool, threads, dtype, rng):
    """Channels-last gradients give the bits of contiguous ones, in dense, gapped and channels-last results."""
    grad = pool.gradients(rng, dtype)
    last = np.ascontiguousarray(np.moveaxis(grad, 1, -1))
    view = np.moveaxis(last, -1, 1)
    wanted = one_call(grad, *pool)
    assert_is_avg_pool2d_backward(wanted, grad, pool, Mode("Host", dtype))
    n, c, h, w = pool.input_shape
    with aclnn_bw.num_threads(threads):
        dense = Guarded(pool.input_shape, grad.dtype)
        one_call(view, *pool, out=dense.view)
        gapped = np.full((n, c, h, w + 3), 7, grad.dtype)
        one_call(view, *pool, out=gapped[..., :w])
        nhwc = np.empty((n, h, w, c), grad.dtype)
        one_call(view, *pool, out=np.moveaxis(nhwc, -1, 1))
        # Pixels and rows with gaps, from contiguous gradients.
        pixels = np.full((n, h, w + 2, c + 3), 7, grad.dtype)
        one_call(grad, *pool, out=np.moveaxis(pixels[:, :, :w, :c], -1, 1))
    dense.assert_outside_untouched()
    assert_same_bytes(dense.view, wanted)
    assert_same_bytes(np.ascontiguousarray(gapped[..., :w]), wanted)
    assert np.all(gapped[..., w:] == 7)
    assert_same_bytes(np.ascontiguousarray(np.moveaxis(nhwc, -1, 1)), wanted)
    assert_same_bytes(np.ascontiguousarray(np.moveaxis(pixels[:, :, :w, :c], -1, 1)), wanted)
    assert np.all(pixels[:, :, w:] == 7)
    assert np.all(pixels[..., c:] == 7)


WINDOWS = [
    (1, 1, 0), (2, 2, 0), (3, 3, 1), (4, 4, 0), (2, 1, 0), (2, 1, 1), (3, 1, 1), (3, 1, 0), (5, 1, 2), (7, 1, 3),
    (3, 2, 1), (3, 2, 0), (4, 2, 1), (5, 2, 2), (5, 3, 0), (7, 4, 3), (1, 2, 0), (2, 3, 1), (3, 8, 0), (8, 3, 4),
]  # fmt: skip


def every_width(kernel, stride, padding):
    """Poolings of widths around all vector lengths, with all remainders behind them."""
    smallest = max(1, kernel - 2 * padding)
    for width in [*range(smallest, 70), 127, 128, 129, 255, 256, 257]:
        rest = (width % 3 == 0, width % 2 == 0, (None, None, None, 3, -6)[width % 5])
        yield Pool((1, 2, smallest + width % 5, width), kernel, stride, padding, *rest)


@every_dtype
@pytest.mark.parametrize(("kernel", "stride", "padding"), WINDOWS)
def test_every_width(kernel, stride, padding, dtype, rng):
    for pool in every_width(kernel, stride, padding):
        check_both_entry_points(pool, dtype, rng)


@every_dtype
@pools(
    ((1, 2, 300, 1), 3, 1, 1),
    ((1, 2, 1, 300), 3, 1, 1),
    ((1, 2, 257, 2), (5, 2), (2, 1), (2, 1)),
    ((1, 2, 2, 257), (2, 5), (1, 2), (1, 2), True, False),
    ((1, 1, 3000, 3), (2, 3), (2, 3)),
    ((1, 1, 3, 3000), (3, 2), (3, 2), (1, 1), True),
    ((1, 500, 1, 1), 1),
    ((1, 500, 1, 1), 2, 1, 1),
    ((1, 500, 1, 1), 9, 3, 4, False, False),
    ((400, 1, 2, 3), 2, 1, 1),
)
def test_tall_wide_and_tiny(pool, dtype, rng):
    check_both_entry_points(pool, dtype, rng)


@every_dtype
@pools(
    ((1, 2, 5, 7), 11, 1, 5),
    ((1, 2, 5, 7), 11, 4, 4, True, False),
    ((1, 2, 5, 7), 1000, 1, 500),
    ((1, 2, 5, 7), 1000, 1, 500, False, False),
    ((1, 2, 5, 7), 1000, 3, 499, True),
    ((1, 2, 5, 7), 1000, 997, 500, True, False),
    ((1, 2, 5, 7), (1000, 2), (2, 2), (500, 1)),
    ((1, 2, 5, 7), (2, 1000), (1, 1), (0, 500), False, True, -255),
    ((1, 1, 600, 3), 1000, 7, 500),
    ((1, 1, 3, 600), (2, 1000), 1, (1, 250), True, False),
    ((1, 1, 4, 4), 999, 2000, 499),
    ((1, 1, 150, 210), 300, 1, 150),
)
def test_kernel_larger_than_the_image(pool, dtype, rng):
    check_both_entry_points(pool, dtype, rng)


EXTREME = [2**62, 2**62 - 1, 2**63 - 1, 2**61, 2**40, 2**31, 50]


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("ceil_mode", [False, True])
def test_extreme_windows_that_are_accepted(axis, ceil_mode):
    """Sizes and divisors are right, and nothing overflows or runs for ever, up to the largest integers."""
    accepted = 0
    for kernel, stride, size in product([2**63 - 1, 2**62, 2**62 + 2, 51, 7], EXTREME, [1, 2, 7, 40]):
        for padding in {kernel // 2, kernel // 2 - 1, kernel // 4, 0}:
            outputs = reference.pooled_size(size, kernel, stride, padding, ceil_mode)
            if not 1 <= outputs <= 50:
                continue
            accepted += 1
            shape, windows = ([1, 1, 1], [1, 1, 1])
            shape[axis + 1], windows[axis + 1] = size, outputs
            grad = np.arange(1.0, outputs + 1).reshape(windows)
            expected = np.zeros(size)
            for o in range(outputs):
                start = o * stride - padding
                length = min(start + kernel, size + padding) - start
                expected[max(start, 0) : min(start + kernel, size)] += (o + 1) / length
            pair = [(value, other) if axis == 0 else (other, value)
                    for value, other in ((kernel, 1), (stride, 1), (padding, 0))]
            result = one_call(grad, tuple(shape), *pair, ceil_mode, True)
            np.testing.assert_allclose(result.ravel(), expected, rtol=1e-14, err_msg=f"{size} {pair}")
            out = Guarded(tuple(shape), grad.dtype, "every_second_column")
            one_call(grad, tuple(shape), *pair, ceil_mode, True, out=out.view)
            assert_same_bytes(out.view, result)
            out.assert_outside_untouched()
    assert accepted > 50


@pytest.mark.each_value
@pytest.mark.parametrize(  # the twin takes seconds
    "dtype", [pytest.param(name, marks=[pytest.mark.thorough] * (name in ("float64", "float16"))) for name in DTYPES]
)
@pools(
    ((1, 1, 1250, 40), (2400, 40), 1, (1200, 20)),
    ((1, 1, 1250, 40), (2400, 40), 1, (1200, 20), False, False),
    ((1, 1, 1500, 170), (2900, 121), 2, (1450, 60), True, True, -7),
)
def test_kernels_too_tall_for_a_band(pool, dtype, rng):
    """The rows that one output row needs fit no cache, so they are summed one at a time."""
    check_both_entry_points(pool, dtype, rng)
    grad = pool.gradients(rng, dtype)
    whole = one_call(grad, *pool)
    out = Guarded(pool.input_shape, grad.dtype, "all_reversed", 1)
    one_call(grad, *pool, out=out.view)
    assert_same_bytes(out.view, whole)
    out.assert_outside_untouched()


@every_dtype
@pools(
    ((1, 64, 7, 7), 7),
    ((1, 64, 7, 7), 7, 1),
    ((1, 16, 4, 4), 4, 1),  # the shape of CANN's sample
    ((2, 3, 5, 9), (5, 9), 3),
    ((2, 3, 5, 9), (5, 9), 9, (2, 4)),
    ((2, 3, 5, 9), (4, 8), 9, (1, 2), False, False),
    ((2, 3, 5, 9), 10, 10, 5, False, True),
    ((2, 3, 5, 9), (3, 2), 20),
    ((1, 1, 90, 110), (90, 110), None, 0, False, True, 3),
)
def test_one_output_per_plane(pool, dtype, rng):
    assert pool.output_shape[-2:] == (1, 1)
    check_both_entry_points(pool, dtype, rng)


@every_dtype
@pools(
    ((1, 1, 2, 120001), 3, 1, 1),
    ((1, 1, 2, 120001), (2, 2)),
    ((1, 1, 3, 110003), 3, 2, 1, True, False),
    ((1, 1, 2, 110003), (2, 7), (1, 5), (1, 3)),
    ((1, 1, 1, 250000), (1, 3), (1, 7)),
    ((1, 1, 1, 120000), (1, 120000)),
    ((1, 1, 1, 120000), (1, 90000), (1, 15000), (0, 45000), True, False),
    ((1, 1, 120001, 2), 3, 1, 1),
    ((1, 1, 110003, 3), (5, 2), (3, 2), (2, 1), True, False),
)
def test_long_rows_and_columns(pool, dtype, rng):
    check_both_entry_points(pool, dtype, rng)


@every_dtype
def test_planes_of_every_size_under_one_window(dtype, rng):
    """A vector may run into the next plane, but not past the last."""
    for size in range(1, 70):
        check_both_entry_points(Pool((1, 1 + size % 5, 1, size), (1, size)), dtype, rng)
        check_both_entry_points(Pool((2, 3, size, 3), (size, 3), 1, 0, False, True, 7), dtype, rng)


@every_dtype
@pytest.mark.parametrize("include", [True, False])
@pytest.mark.parametrize(
    ("kernel", "stride", "padding"), [(3, 1, 1), (5, 1, 2), (4, 1, 1), (3, 2, 1), (2, 2, 1), (3, 3, 1)]
)
def test_what_lies_beside_a_row_does_not_show(kernel, stride, padding, include, dtype, rng):
    """Vectors may load the ends of the neighbouring rows, and of the neighbouring planes."""
    for width in (*range(max(1, kernel - 2 * padding), 20), 24, 31, 33, 35, 40):
        for shape, axis in (((1, 5, 7, width), 1), ((1, 1, 7, width), 2)):
            rows = (kernel, stride, padding) if axis == 1 else (1, 1, 0)
            pool = Pool(shape, *zip(rows, (kernel, stride, padding), strict=True), True, include)
            grad = pool.gradients(rng, dtype)
            others = (slice(None),) * axis + (slice(0, None, 2),)
            ours = (slice(None),) * axis + (slice(1, None, 2),)
            grad[others] = 0
            expected = one_call(grad, *pool)[ours]
            grad[others] = np.nan
            assert_same_bytes(np.ascontiguousarray(one_call(grad, *pool)[ours]), np.ascontiguousarray(expected))


@every_dtype
@pytest.mark.parametrize("override", [1, -1, 2, -3, 255, -255, 10**6, -(2**40), 2**62, -(2**63), 2**63 - 1])
def test_divisor_override_on_host(override, dtype, rng):
    for kind in (5, 11, 1, 16, 20):
        check_both_entry_points(KINDS[kind]._replace(divisor_override=override), dtype, rng)


def test_override_of_zero_is_none_in_two_phases(rng):
    pool = KINDS[6]
    grad = pool.gradients(rng, "float32")
    assert pool.divisor_override is None  # given to the first phase as 0
    assert_same_bytes(two_phase(pool, grad, Mode("Ascend910B", "float32")), one_call(grad, *pool))


def test_null_and_empty_stride_are_the_kernel_size(rng):
    pool = Pool((2, 3, 11, 13), (3, 2))
    grad = pool.gradients(rng, "float32")
    for stride in (None, [], (3, 2)):
        out = np.empty(pool.input_shape, np.float32)
        size, executor = aclnn_bw.aclnnAvgPool2dBackwardGetWorkspaceSize(
            grad, out.copy(), [3, 2], stride, [0], False, True, 0, 0, out
        )
        aclnn_bw.aclnnAvgPool2dBackward(np.empty(size, np.uint8), size, executor)
        assert_is_avg_pool2d_backward(out, grad, pool, Mode("Host", "float32"))


@every_dtype
@pytest.mark.parametrize("shape", [(0, 3, 8, 9), (0, 1, 1, 1)])
def test_empty_batch(shape, dtype):
    pool = Pool(shape, 3, 2, 1)
    grad = np.empty(pool.output_shape, DTYPES[dtype])
    out = Guarded(shape, DTYPES[dtype])
    size, executor = None, None
    with aclnn_bw.soc("Host"):
        size, executor = aclnn_bw.aclnnAvgPool2dBackwardGetWorkspaceSize(
            grad, out.view, [3], [2], [1], False, True, 0, 0, out.view
        )
    assert size == 0
    aclnn_bw.aclnnAvgPool2dBackward(None, 0, executor)
    out.assert_outside_untouched()
    result = one_call(grad, *pool)
    assert result.shape == shape
    assert result.dtype == DTYPES[dtype]


# ---- products and cubeMathType ---------------------------------------------------------------------------------------

PRODUCT_DTYPES = {
    "Ascend910": ("float32", "float16"),
    "Ascend310P": ("float32", "float16"),
    "Ascend910B": ("float32", "float16", "bfloat16"),
    "Host": tuple(DTYPES),
}
ALLOWED = [
    Mode(name, dtype, cube)
    for name, dtypes in PRODUCT_DTYPES.items()
    for dtype, cube in product(dtypes, range(4))
    if not (dtype == "float32" and cube in (0, 3) and name in ("Ascend910", "Ascend310P"))
]


@pytest.mark.parametrize("mode", ALLOWED, ids=str)
def test_products(mode, rng):
    for pool in [*KINDS, LARGE[0], LARGE[3], LARGE[9]]:
        grad = pool.gradients(rng, mode.dtype)
        result = two_phase(pool, grad, mode)
        assert_is_avg_pool2d_backward(result, grad, pool, mode)


def float32_patterns(rng):
    """Every sign and exponent with fractions at, just below and just above the ties of both roundings; NaN and inf."""
    ties = [b | a << 12 for a in (0, 1, 2, 3, 0x3FF, 0x7FC, 0x7FD, 0x7FE, 0x7FF) for b in (0, 1, 0x7FF, 0x800, 0x801)]
    fractions = np.array([*ties, *rng.integers(0, 2**23, 30)], np.uint32)
    upper = np.arange(512, dtype=np.uint32) << 23
    return (upper[:, None] | fractions).view(np.float32)


def without_sign_of_zero(x):
    with np.errstate(invalid="ignore"):  # of signalling NaN
        return np.where(x == 0, np.zeros((), x.dtype), x)


@pytest.mark.parametrize("mode", [mode for mode in ALLOWED if mode.dtype == "float32"], ids=str)
def test_rounding_of_float32_bit_by_bit(mode, rng):
    # A 1x1 kernel has one term and the divisor 1: what comes out is the rounded gradient itself.
    grad = float32_patterns(rng)[None]
    with np.errstate(invalid="ignore"):  # of signalling NaN
        rounded = mode.rounding(grad) if mode.rounding else grad.astype(np.float64)
    result = two_phase(Pool(grad.shape, 1), grad, mode)
    assert_same_bytes(result, without_sign_of_zero(rounded.astype(np.float32)))
    # A kernel that is its own stride copies the half, which is exact but for the last bit of subnormals.
    expected = np.repeat(rounded / 2, 2, axis=-1)
    if mode.rounding is reference.round_float16:
        expected = reference.round_float16(expected)
    result = two_phase(Pool((1, 512, 2 * grad.shape[-1]), (1, 2)), grad, mode)
    assert_same_bytes(without_sign_of_zero(result), without_sign_of_zero(expected.astype(np.float32)))


def exact_gradients(rng, pool, mode):
    """Gradients of few bits and like magnitude, so that float32 sums with a divisor of a power of two are exact."""
    fraction = {"float32": 11, "float64": 11, "float16": 10, "bfloat16": 7}[mode.dtype]
    whole = rng.integers(2**fraction, 2 ** (fraction + 1), pool.output_shape) * rng.choice([-1, 1], pool.output_shape)
    grad = whole * 2.0**-fraction
    if mode.rounding:  # bits that the rounding has to remove, ties among them
        grad += rng.integers(-4, 5, pool.output_shape) * 2.0 ** -(fraction + 3)
    return grad.astype(DTYPES[mode.dtype])


@pytest.mark.parametrize("mode", ALLOWED, ids=str)
def test_exact_sums_bit_by_bit(mode, rng):
    """Where no rounding but the last can occur, that one decides every bit: half of the results are ties."""
    shapes = [(1, 2, 13, 17), (1, 1, 40, 70)]
    sizes = [(2, 1, 0), (2, 1, 1), (2, 2, 0), (4, 1, 2), (4, 2, 1), (4, 3, 0), (4, 4, 0), ((2, 1), 1), ((1, 8), 3)]
    cases = [Pool(s, *size) for s in shapes for size in sizes]
    cases += [Pool(s, k, t, k // 2, False, False, d) for s in shapes for k in (3, 5) for t in (1, 2) for d in (-2, 64)]
    cases += [Pool((1, 2, 8, 8), 8), Pool((1, 2, 16, 4), (16, 4), 1)]
    for pool in cases:
        grad = exact_gradients(rng, pool, mode)
        rounded = mode.rounding(grad) if mode.rounding else grad.astype(np.float64)
        exact = avg_twin.avg_pool2d_backward_quick(rounded, *pool)
        assert np.all(exact.astype(np.float32) == exact)
        if mode.rounding is reference.round_float16 or mode.dtype == "float16":
            exact = reference.round_float16(exact)
        elif mode.dtype == "bfloat16":
            exact = reference.round_bfloat16(exact)
        assert_same_bytes(two_phase(pool, grad, mode), exact.astype(grad.dtype))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_every_16_bit_pattern(dtype):
    patterns = np.arange(2**16, dtype=np.uint16).view(DTYPES[dtype]).reshape(1, 256, 256)
    assert_same_bytes(one_call(patterns, patterns.shape, 1), without_sign_of_zero(patterns))
    rounding = reference.round_float16 if dtype == "float16" else reference.round_bfloat16
    for divisor in (2, -64):
        with np.errstate(invalid="ignore"):
            expected = rounding(patterns.astype(np.float64) / divisor).astype(patterns.dtype)
        assert_same_bytes(
            without_sign_of_zero(one_call(patterns, patterns.shape, 1, divisor_override=divisor)),
            without_sign_of_zero(expected),
        )


def test_results_beyond_a_16_bit_type_are_inf():
    pool = Pool((1, 6, 6), 2, 1, 0, False, True, 1)
    inside = (slice(None), slice(1, -1), slice(1, -1))  # four terms
    for dtype, big in (("float16", 65504.0), ("bfloat16", 3.3895e38)):
        for value, expected in ((big, np.inf), (-big, -np.inf), (big / 4, None)):
            grad = np.full(pool.output_shape, value, DTYPES[dtype])
            result = one_call(grad, *pool)[inside]
            assert np.all(result == (expected or 4 * grad[0, 0, 0]))
    for value, expected in ((20000.0, np.inf), (16379.9, 65504.0), (16380.0, np.inf), (-65520.0, -np.inf)):
        grad = np.full(pool.output_shape, value, np.float32)
        assert np.all(two_phase(pool, grad, Mode("Ascend910B", "float32", 2))[inside] == expected)


# ---- NaN, inf, zeros, extremes ---------------------------------------------------------------------------------------


@every_mode
@every_kind
def test_nan_and_inf_reach_exactly_their_elements(pool, mode, rng):
    grad = pool.gradients(rng, mode.dtype)
    last = tuple(n - 1 for n in grad.shape)
    places = {(0, 0, 0, 0), last, (*last[:3], 0), (0, 0, 0, last[3])}
    places |= {tuple(map(int, rng.integers(grad.shape))) for _ in range(4)}
    sign = -1 if (pool.divisor_override or 1) < 0 else 1
    for place, value in product(sorted(places), (np.nan, np.inf, -np.inf)):
        clean = grad.copy()
        clean[place] = 0
        marked = clean.copy()
        marked[place] = value
        only = np.zeros(grad.shape)
        only[place] = 1
        reached = avg_twin.avg_pool2d_backward_quick(only, *pool) != 0
        result, without = two_phase(pool, marked, mode), two_phase(pool, clean, mode)
        assert_same_bytes(result[~reached], without[~reached])
        assert_same_bytes(result[reached], np.full_like(result[reached], value * sign))


@every_mode
@every_large
def test_many_nans_in_large_planes(pool, mode, rng):
    clean = pool.gradients(rng, mode.dtype)
    marks = rng.random(clean.shape) < 0.01
    marks[..., -1] |= rng.random(clean.shape[:-1]) < 0.2
    clean[marks] = 0
    marked = clean.copy()
    marked[marks] = np.nan
    reached = avg_twin.avg_pool2d_backward_quick(marks, *pool[:6], 1) != 0
    result, without = two_phase(pool, marked, mode), two_phase(pool, clean, mode)
    assert np.isnan(result[reached]).all()
    assert_same_bytes(result[~reached], without[~reached])


@every_mode
def test_infinities_meet(mode):
    pool = Pool((1, 1, 3, 6), (1, 2), 1)
    grad = np.zeros(pool.output_shape, DTYPES[mode.dtype])
    grad[0, 0, 1] = [np.inf, -np.inf, 0, np.inf, np.inf]
    row = two_phase(pool, grad, mode)[0, 0, 1]
    assert_same_bytes(row, np.array([np.inf, np.nan, -np.inf, np.inf, np.inf, np.inf], grad.dtype))


@every_mode
@pools(
    ((1, 2, 9, 11), 3, 1, 1),
    ((1, 2, 9, 11), 3, 1, 1, False, False),
    ((1, 2, 9, 11), 3, 1, 1, False, True, 8),
    ((1, 2, 9, 11), 3, 1, 1, False, True, -8),
    ((1, 2, 9, 40), 2, 1),
    ((1, 2, 9, 11), 2),
    ((1, 2, 9, 11), 3, 2, 1, True, False),
    ((1, 2, 9, 11), 7, 1, 3),
    ((1, 2, 9, 11), (5, 3), (2, 1), (2, 1), False, True, 9),
    ((1, 2, 9, 11), (9, 11)),
    ((1, 2, 9, 11), 100, 1, 50),
)
def test_no_intermediate_overflows(pool, mode):
    largest = 65504.0 if mode.dtype == "float16" or mode.rounding is reference.round_float16 else 3.38e38
    largest = 1.79e308 if mode.dtype == "float64" else largest
    weights = avg_twin.avg_pool2d_backward_quick(np.ones(pool.output_shape), *pool)
    value = 0.99 * largest / max(abs(weights).max(), 1.0)
    for sign in (1, -1):
        grad = np.full(pool.output_shape, sign * value, DTYPES[mode.dtype])
        result = two_phase(pool, grad, mode)
        assert np.isfinite(result).all()
        assert_is_avg_pool2d_backward(result, grad, pool, mode)


@every_mode
@every_kind
def test_no_negative_zero(pool, mode):
    zeros = np.zeros(pool.output_shape, DTYPES[mode.dtype])
    for grad in (zeros, -zeros):
        result = two_phase(pool, grad, mode)
        assert not np.any(result)
        assert_no_negative_zero(result)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@every_kind
def test_no_negative_zero_from_cancellation_and_underflow(pool, dtype, rng):
    smallest = np.finfo(dtype).smallest_subnormal
    for grad in (np.full(pool.output_shape, -smallest), rng.integers(-2, 3, pool.output_shape) * smallest):
        result = one_call(grad.astype(dtype), *pool)
        assert_no_negative_zero(result)
    units = rng.integers(-1, 2, pool.output_shape).astype(dtype)
    assert_no_negative_zero(one_call(units, *pool))


@every_dtype
@every_kind
def test_uncovered_positions_are_zero(pool, dtype, rng):
    _, terms = avg_twin.sum_abs_and_terms(np.zeros(pool.output_shape), *pool)
    uncovered = np.broadcast_to(terms == 0, pool.input_shape)
    grad = 1 + abs(pool.gradients(rng, dtype))
    result = one_call(grad, *pool)
    assert not bits(result[uncovered]).any()
    assert np.all(result[~uncovered] != 0)


@every_dtype
@every_kind
def test_subnormal_gradients(pool, dtype, rng):
    smallest = SMALLEST[dtype]
    for scale in (1, 60, 5000, 2**21):
        whole = rng.integers(-scale, scale, pool.output_shape, endpoint=True)
        grad = (whole.astype(oracle_type(DTYPES[dtype])) * smallest).astype(DTYPES[dtype])
        assert_is_avg_pool2d_backward(one_call(grad, *pool), grad, pool, Mode("Host", dtype))


@every_dtype
def test_subnormal_sums_bit_by_bit(dtype, rng):
    smallest = SMALLEST[dtype]
    for pool in (Pool((1, 2, 14, 18), 2), Pool((1, 2, 13, 17), 2, 1), Pool((1, 2, 13, 17), 3, 1, 1, False, True, 4)):
        whole = 4 * rng.integers(-3, 4, pool.output_shape)
        expected = (avg_twin.avg_pool2d_backward_quick(whole, *pool) * smallest).astype(DTYPES[dtype])
        assert_same_bytes(one_call((whole * smallest).astype(DTYPES[dtype]), *pool), expected)


# ---- the same bytes, whatever ... ------------------------------------------------------------------------------------


@every_mode
@every_kind
def test_same_bytes_whatever_batch_and_channels(pool, mode, rng):
    pool = pool._replace(input_shape=(3, 5, *pool.input_shape[-2:]))
    grad = pool.gradients(rng, mode.dtype)
    whole = two_phase(pool, grad, mode)
    for n, c in ((0, 0), (1, 3), (2, 4)):
        for leading in ((1,), (1, 1)):
            plane = pool._replace(input_shape=(*leading, *pool.input_shape[-2:]))
            alone = two_phase(plane, grad[n, c].reshape(plane.output_shape), mode)
            assert_same_bytes(alone.reshape(whole.shape[2:]), whole[n, c])
    image = pool._replace(input_shape=pool.input_shape[1:])
    assert_same_bytes(two_phase(image, grad[1], mode), whole[1])
    batch = pool._replace(input_shape=(15, 1, *pool.input_shape[-2:]))
    as_batch = two_phase(batch, grad.reshape(15, 1, *grad.shape[-2:]), mode)
    assert_same_bytes(as_batch.reshape(whole.shape), whole)


@pytest.mark.parametrize("mebibytes", [33, 49])
@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
@pools(
    ((1, 8, 130, 131), 2, 4),
    ((1, 8, 130, 131), 5, 3, 2),
    ((1, 8, 61, 63), 2),
    ((1, 8, 61, 63), 3, 2, 1),
    ((1, 8, 61, 63), 3, 1, 1),
    ((1, 2, 50, 701), 3, 2, 1),  # two tiles
    ((1, 8, 9, 10), 4, 5),  # few windows that do not meet
    ((1, 8, 40, 41), 9, 14),
)
def test_images_beyond_the_caches(pool, dtype, mebibytes, rng):
    """A batch of more than 32 or 48 MiB has the bytes of its first image, time and again."""
    grad = pool.gradients(rng, dtype)
    expected = one_call(grad, *pool)
    batch = (mebibytes << 20) // expected.nbytes + 1
    out = Guarded((batch, *pool.input_shape[1:]), grad.dtype)
    one_call(np.repeat(grad, batch, axis=0), *pool._replace(input_shape=out.view.shape), out=out.view)
    assert_same_bytes(out.view, np.repeat(expected, batch, axis=0))
    out.assert_outside_untouched()


@pools(
    ((1, 1, 40000, 330), 3, 1, 1),
    ((1, 1, 40000, 330), 2),
    ((1, 1, 40000, 330), (5, 4), (3, 5), 2),
)
def test_a_plane_beyond_the_caches(pool, rng):
    """Whole or in bands, by rows that follow each other or rows with gaps, which are not made elsewhere first."""
    grad = pool.gradients(rng, "float32")
    apart = np.full((1, 1, 40000, 337), 7, np.float32)
    one_call(grad, *pool, out=apart[..., :330])
    assert (apart[..., 330:] == 7).all()
    for threads in (1, 3):
        out = Guarded(pool.input_shape, grad.dtype)
        with aclnn_bw.num_threads(threads):
            one_call(grad, *pool, out=out.view)
        assert_same_bytes(out.view, apart[..., :330])
        out.assert_outside_untouched()


@every_mode
@every_large
def test_same_bytes_whatever_batch_and_channels_in_large_planes(pool, mode, rng):
    if len(pool.input_shape) == 3:
        pool = pool._replace(input_shape=(1, *pool.input_shape))
    grad = pool.gradients(rng, mode.dtype)
    whole = two_phase(pool, grad, mode)
    n, c = grad.shape[0] - 1, grad.shape[1] - 1
    plane = pool._replace(input_shape=(1, *pool.input_shape[-2:]))
    assert_same_bytes(two_phase(plane, grad[n, c][None], mode)[0], whole[n, c])
    doubled = pool._replace(input_shape=(2 * pool.input_shape[0], *pool.input_shape[1:]))
    assert_same_bytes(two_phase(doubled, np.concatenate([grad, grad]), mode)[-1], whole[-1])


@every_mode
@pytest.mark.parametrize("layout", LAYOUTS)
@every_kind
def test_same_bytes_whatever_layout(pool, layout, mode, rng):
    values = pool.gradients(rng, mode.dtype)
    plain = two_phase(pool, values, mode)
    for offset in (0, 1, 3):
        grad = guarded_copy(values, layout, offset)
        before = grad.buffer.tobytes()
        assert_same_bytes(two_phase(pool, grad.view, mode), plain)
        assert grad.buffer.tobytes() == before
        out = Guarded(pool.input_shape, values.dtype, layout, offset)
        two_phase(pool, values, mode, out.view)
        assert_same_bytes(out.view, plain)
        out.assert_outside_untouched()


@pytest.mark.parametrize("mode", [MODES[0], MODES[2], MODES[4]], ids=str)
@pytest.mark.parametrize("layout", LAYOUTS)
@pools(
    ((1, 1, 300, 310), 3, 1, 1),
    ((2, 37, 24, 25), 3, 1, 1),
    ((2, 17, 40, 41), 2),
    ((1, 33, 45, 46), 3, 2, 1, True, False),
    ((1, 2, 200, 190), 5, 3, 2),
)
def test_same_bytes_whatever_layout_of_large_tensors(pool, layout, mode, rng):
    values = pool.gradients(rng, mode.dtype)
    plain = two_phase(pool, values, mode)
    grad = guarded_copy(values, layout, 1)
    out = Guarded(pool.input_shape, values.dtype, layout, 3)
    for threads in (1, 2):
        with aclnn_bw.num_threads(threads):
            two_phase(pool, grad.view, mode, out.view)
        assert_same_bytes(out.view, plain)
        out.assert_outside_untouched()


@every_mode
@every_kind
def test_same_bytes_from_broadcast_inputs(pool, mode, rng):
    shape = pool.output_shape
    for kept in ((1, 1, *shape[2:]), (shape[0], 1, shape[2], 1), (1, shape[1], 1, shape[3]), (1, 1, 1, 1)):
        view = np.broadcast_to(rng.standard_normal(kept).astype(DTYPES[mode.dtype]), shape)
        assert_same_bytes(two_phase(pool, view, mode), two_phase(pool, view.copy(), mode))
        if mode.product == "Host":
            assert_same_bytes(one_call(view, *pool), one_call(view.copy(), *pool))


@every_mode
@every_large
def test_same_bytes_at_every_thread_count(pool, mode, rng):
    grad = pool.gradients(rng, mode.dtype)
    results = []
    for threads in (1, 2, 3, 4):
        with aclnn_bw.num_threads(threads):
            results.append(two_phase(pool, grad, mode))
            if mode.product == "Host":
                results.append(one_call(grad, *pool))
    for result in results[1:]:
        assert_same_bytes(result, results[0])


@every_mode
def test_same_bytes_on_every_run(mode):
    for seed in range(25):
        rng = np.random.default_rng(seed)
        pool = KINDS[seed % len(KINDS)]
        grad = pool.gradients(rng, mode.dtype)
        first = two_phase(pool, grad, mode)
        dirty = rng.integers(0, 256, first.nbytes, np.uint8).view(first.dtype).reshape(first.shape)
        assert_same_bytes(two_phase(pool, grad, mode, dirty), first)
        assert_same_bytes(two_phase(pool, grad, mode), first)


@every_mode
@pytest.mark.parametrize("pool", [*KINDS, LARGE[0], LARGE[3], LARGE[11]], ids=str)
def test_same_bytes_from_every_entry_point(pool, mode, rng):
    grad = pool.gradients(rng, mode.dtype)
    plain = two_phase(pool, grad, mode)

    stream = aclnn_bw.aclrtCreateStream()
    try:
        assert_same_bytes(two_phase(pool, grad, mode, stream=stream), plain)
    finally:
        aclnn_bw.aclrtDestroyStream(stream)

    # Tensors over raw memory, a repeatable executor.
    code = {
        "float32": aclnn_bw.ACL_FLOAT, "float64": aclnn_bw.ACL_DOUBLE,
        "float16": aclnn_bw.ACL_FLOAT16, "bfloat16": aclnn_bw.ACL_BF16,
    }[mode.dtype]  # fmt: skip
    buffers = [np.full((n + 7) * grad.itemsize, 0xFF, np.uint8) for n in (grad.size, plain.size)]
    inner = [buffer.view(grad.dtype)[5:-2] for buffer in buffers]
    inner[0][...] = grad.ravel()
    tensors = []
    for shape, buffer in zip((grad.shape, plain.shape), buffers, strict=True):
        strides = [int(np.prod(shape[axis + 1 :])) for axis in range(4)]
        storage = [buffer.size // grad.itemsize]
        tensors.append(aclnn_bw.aclCreateTensor(shape, code, strides, 5, aclnn_bw.ACL_FORMAT_NCHW, storage, buffer))
    sizes = [None if size is None else list(reference.pair(size)) for size in pool[1:4]]
    rest = (pool.ceil_mode, pool.count_include_pad, pool.divisor_override or 0, mode.cube_math_type)
    with aclnn_bw.soc(mode.product):
        size, executor = aclnn_bw.aclnnAvgPool2dBackwardGetWorkspaceSize(
            tensors[0], tensors[1], *sizes, *rest, tensors[1]
        )
    aclnn_bw.aclSetAclOpExecutorRepeatable(executor)
    for _ in range(2):
        inner[1][...] = np.nan
        aclnn_bw.aclnnAvgPool2dBackward(bytearray(size), size, executor)
        assert_same_bytes(inner[1].reshape(plain.shape), plain)
    aclnn_bw.aclDestroyAclOpExecutor(executor)

    if mode.product == "Host":
        assert_same_bytes(one_call(grad, *pool), plain)
        assert_same_bytes(one_call(grad, np.empty(pool.input_shape, grad.dtype), *pool[1:]), plain)
        out = Guarded(pool.input_shape, grad.dtype, "columns_cropped", 1)
        assert one_call(grad, *pool, out=out.view) is out.view
        out.assert_outside_untouched()
        assert_same_bytes(out.view, plain)


@every_mode
def test_same_bytes_on_every_product(mode, rng):
    """The rounding decides, not the product or the number that asks for it."""
    equals = [other for other in ALLOWED if (other.dtype, other.rounding) == (mode.dtype, mode.rounding)]
    assert len(equals) > 1
    for pool in KINDS:
        grad = pool.gradients(rng, mode.dtype)
        expected = two_phase(pool, grad, mode)
        for other in equals:
            assert_same_bytes(two_phase(pool, grad, other), expected)


# ---- sizes and offsets beyond 32 bits --------------------------------------------------------------------------------


@every_mode
@pytest.mark.parametrize("far_axis", [0, 1, 2], ids=["images", "planes", "rows"])
@pytest.mark.parametrize("backwards", [False, True])
def test_offsets_beyond_32_bits(far_axis, backwards, mode, rng, tmp_path):
    """One axis steps by more than 2**31 elements, in a sparse file of which little more than the data exists."""
    pool = Pool((2, 3, 4, 5), 3, 1, 1)
    values = pool.gradients(rng, mode.dtype)
    near = [n for axis, n in enumerate(values.shape) if axis != far_axis]
    size = values.shape[far_axis], 2**31 + 8
    file = np.memmap(tmp_path / "sparse", values.dtype, "w+", shape=size).view(np.ndarray)[:: -1 if backwards else 1]
    (tmp_path / "sparse").unlink()  # the mapping keeps it while it is needed

    def view(first):
        blocks = file[:, first : first + int(np.prod(near))].reshape(size[0], *near)
        assert np.may_share_memory(blocks, file)
        return np.moveaxis(blocks, 0, far_axis)

    grad, out = view(0), view(10_000)
    grad[...] = values
    two_phase(pool, grad, mode, out)
    assert_same_bytes(out, two_phase(pool, values, mode))


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_more_elements_than_32_bits(dtype):
    """2x2 gradients of 1x1 images: more than 2**31 of them, broadcast, for a fourth as many results."""
    shape = (33_000, 16_300, 1, 1)
    pool = Pool(shape, 2, 1, 1)
    channels = np.arange(shape[1] * 4).reshape(1, shape[1], 2, 2) % 61
    grad = np.broadcast_to(channels.astype(dtype), pool.output_shape)
    assert grad.size > 2**31
    expected = (channels.sum(axis=(2, 3)) / 4).astype(dtype)
    result = one_call(grad, *pool)[:, :, 0, 0]
    assert all(np.array_equal(rows, np.broadcast_to(expected, rows.shape)) for rows in np.array_split(result, 100))


# ---- instruction sets ------------------------------------------------------------------------------------------------


def subnormal(grad):
    """The gradients scaled to where the dtype, or the float32 in which it is summed, has subnormals."""
    scale = {"float16": 2.0**-16, "bfloat16": 2.0**-128, "float32": 2.0**-128, "float64": 2.0**-1026}[grad.dtype.name]
    return (grad.astype(np.float64) * scale).astype(grad.dtype)


def digests(step=1):
    """A hash of the result of each of many calls, by the name of the call; of every `step`-th one."""
    found = {}
    for index, (pool, mode) in islice(enumerate(product([*KINDS, *LARGE], MODES)), 0, None, step):
        rng = np.random.default_rng(index)
        grad = pool.gradients(rng, mode.dtype)
        layout = list(LAYOUTS)[index % len(LAYOUTS)]
        calls = {"normal": grad, "special": sprinkled(grad, rng), "tiny": subnormal(grad)}
        calls[layout] = guarded_copy(grad, layout, 1).view
        for name, values in calls.items():
            out = Guarded(pool.input_shape, grad.dtype, layout, 1).view if name == layout else None
            result = two_phase(pool, values, mode, out)
            found[f"{pool} {mode} {name}"] = digest(result)
    for window, mode in islice(product(WINDOWS, MODES), 0, None, step):
        rng = np.random.default_rng(window)
        results = [
            two_phase(pool, sprinkled(pool.gradients(rng, mode.dtype), rng), mode) for pool in every_width(*window)
        ]
        found[f"every width of {window} {mode}"] = digest(*results)
    return found


@pytest.fixture(scope="module")
def own_digests(step):
    return digests(step)


CHILD = """
import json, aclnn_bw
from test_avg_pool2d import digests
print(json.dumps([aclnn_bw.show_config(mode="dict")["isa"], digests(STEP)]))
"""


@pytest.mark.parametrize("isa", ["v2", "v3", "v4"])
def test_same_bytes_on_every_instruction_set(isa, own_digests, tmp_path, step):
    require_isa(isa)
    chosen, theirs = json.loads(run_python(CHILD.replace("STEP", str(step)), tmp_path, ACLNN_BW_ISA=isa))
    assert isa in chosen
    assert theirs.keys() == own_digests.keys()
    assert [name for name in theirs if theirs[name] != own_digests[name]] == []


# ---- nothing outside the arrays is touched, not even read ------------------------------------------------------------


def run_at_fences(step):
    """Every `step`-th call, arrays at fences; the last line printed names the call that ended the process."""
    layouts = [*product(("contiguous", "channels_last", "all_reversed"), (1, 2)), ("planes_transposed", 1)]
    cases = [(pool, layout, at_end) for pool in KINDS for layout in layouts for at_end in (False, True)]
    cases += [(pool, layouts[0], True) for window in WINDOWS for pool in every_width(*window)]
    cases += [(pool, layouts[0], at_end) for pool in LARGE if len(pool.input_shape) == 4 for at_end in (False, True)]
    memories = [fenced(2**24) for _ in range(3)]
    for (pool, layout, at_end), mode in islice(product(cases, MODES), 0, None, step):
        print(pool, mode, *layout, "end" if at_end else "begin", flush=True)
        values = pool.gradients(np.random.default_rng(7), mode.dtype)
        grad, out = (
            at_fence(memory, shape, values.dtype, *layout, at_end)
            for memory, shape in zip(memories, (values.shape, pool.input_shape), strict=False)
        )
        grad[...] = values
        sizes = [None if size is None else list(reference.pair(size)) for size in pool[1:4]]
        rest = (pool.ceil_mode, pool.count_include_pad, pool.divisor_override or 0, mode.cube_math_type)
        with aclnn_bw.soc(mode.product):
            size, executor = aclnn_bw.aclnnAvgPool2dBackwardGetWorkspaceSize(grad, out, *sizes, *rest, out)
        workspace = memories[2][-size:] if at_end else memories[2][:size]
        aclnn_bw.aclnnAvgPool2dBackward(workspace if size else None, size, executor)
        assert_same_bytes(out, two_phase(pool, values, mode))
    print("done")


@pytest.mark.skipif(os.name != "posix", reason="needs mprotect")
@pytest.mark.parametrize("isa", ["v2", "v3", "v4"])
def test_nothing_beyond_the_arrays_is_touched(isa, tmp_path, step):
    require_isa(isa)
    code = f"from test_avg_pool2d import run_at_fences; run_at_fences({step})"
    printed = run_python(code, tmp_path, ACLNN_BW_ISA=isa)
    assert printed.endswith("\ndone\n")


# ---- the caller's floating-point mode --------------------------------------------------------------------------------

DEFAULT, FLUSH, DOWN, UP, TOWARDS_ZERO = 0x1F80, 0x8040, 0x2000, 0x4000, 0x6000
TRAPS = 0x0680  # the masks of: invalid operation, division by zero, overflow
MODE_BITS = 0xFFC0  # all but the six sticky flags

FP_MODES = {
    "flush": DEFAULT | FLUSH,
    "down": DEFAULT | DOWN,
    "up": DEFAULT | UP,
    "towards_zero": DEFAULT | TOWARDS_ZERO,
    "flush_up": DEFAULT | FLUSH | UP,
}


@pytest.fixture(scope="module")
def mxcsr(tmp_path_factory):
    """A library with `get_mode` and `set_mode` for the control register of SSE and AVX arithmetic."""
    if platform.machine() not in ("x86_64", "AMD64") or not shutil.which("gcc"):
        pytest.skip("needs gcc on x86-64")
    folder = tmp_path_factory.mktemp("mxcsr")
    source, library = folder / "mxcsr.c", folder / "mxcsr.so"
    source.write_text(
        "#include <xmmintrin.h>\n"
        "unsigned get_mode(void) { return _mm_getcsr(); }\n"
        "void set_mode(unsigned mode) { _mm_setcsr(mode); }\n"
    )
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", library, source], check=True)
    return library


def modal_cases():
    """Calls whose results show another rounding or flushed subnormals: (pool, mode, gradients)."""
    cases = []
    for index, (pool, mode) in enumerate(product([*KINDS, LARGE[0], LARGE[1], LARGE[13]], MODES)):
        rng = np.random.default_rng(index)
        grad = pool.gradients(rng, mode.dtype)
        cases += [(pool, mode, grad), (pool, mode, subnormal(grad))]
    return cases


@pytest.mark.parametrize("fp_mode", FP_MODES)
@pytest.mark.parametrize("threads", [1, 2])
def test_callers_floating_point_mode_does_not_matter(fp_mode, threads, mxcsr):
    library = ctypes.CDLL(str(mxcsr))
    cases = modal_cases()
    with aclnn_bw.num_threads(threads):
        expected = [two_phase(pool, grad, mode) for pool, mode, grad in cases]
        usual = library.get_mode()
        results, modes = [], []
        library.set_mode(FP_MODES[fp_mode])
        try:
            stream = aclnn_bw.aclrtCreateStream()  # its thread may inherit the mode
            for pool, mode, grad in cases:
                calls = [two_phase(pool, grad, mode), two_phase(pool, grad, mode, stream=stream)]
                if mode.product == "Host":
                    calls.append(one_call(grad, *pool))
                results.append(calls)
                modes.append(library.get_mode() & MODE_BITS)
            aclnn_bw.aclrtDestroyStream(stream)
        finally:
            library.set_mode(usual)
    assert set(modes) == {FP_MODES[fp_mode]}
    for calls, wanted in zip(results, expected, strict=True):
        for result in calls:
            assert_same_bytes(result, wanted)


@pytest.mark.parametrize("unmasked", [0, TRAPS], ids=["masked", "trapping"])
def test_threads_that_are_born_in_the_callers_mode(unmasked, mxcsr, tmp_path):
    """A new process sets its mode first, so that its worker threads inherit it; traps would end the process."""
    code = f"""
import ctypes, hashlib, aclnn_bw, numpy as np
from operators.avg_pool2d_backward import MODES, Pool
from helpers import bits
from test_avg_pool2d import sprinkled, subnormal, two_phase

pool = Pool((1, 2, 300, 310), 3, 1, 1)
cases = []
for mode in MODES:
    rng = np.random.default_rng(5)
    grad = pool.gradients(rng, mode.dtype)
    cases += [(grad, mode), (sprinkled(grad, rng), mode), (subnormal(grad), mode)]
library = ctypes.CDLL({str(mxcsr)!r})
with aclnn_bw.num_threads(2):
    library.set_mode({(FP_MODES["flush_up"] & ~unmasked)})
    try:
        first = [two_phase(pool, grad, mode) for grad, mode in cases]
    finally:
        library.set_mode({DEFAULT})
    second = [two_phase(pool, grad, mode) for grad, mode in cases]
for a, b in zip(first, second):
    assert np.array_equal(bits(a), bits(b))
print("same")
"""
    assert run_python(code, tmp_path) == "same\n"
