"""AvgPool2d: within its error bound of the twin, near PyTorch, what it refuses, and that its gradient is its
adjoint."""

from itertools import product

import ml_dtypes
import numpy as np
import pytest
from engine_helpers import Spec, refusal
from helpers import (
    DTYPES,
    LAYOUTS,
    Guarded,
    assert_same_bytes,
    assert_sides_alike,
    guarded_copy,
    normal,
    numpy_of,
    turned_last,
)  # fmt: skip
from hypothesis import given, settings
from hypothesis import strategies as st
from operators import OPERATORS
from operators.avg_pool2d import assert_is_avg_pool2d, compact
from operators.avg_pool2d_backward import avg_pool2d
from reference import pooled_shape, round_float16

import aclnn_bw as a

INVALID, NULL = a.ACLNN_ERR_PARAM_INVALID, a.ACLNN_ERR_PARAM_NULLPTR
# kernel, stride, padding, ceil_mode, count_include_pad, divisor_override
ATTRIBUTES = [
    (2, 2, 0, False, True, None), (3, 2, 1, False, True, None), (3, 1, 1, False, False, None),
    (3, 1, 1, False, True, None), (5, 1, 2, False, True, 4), (2, 2, 0, True, True, -3), (3, 3, 1, True, False, None),
    ((2, 5), (1, 3), (1, 2), True, False, None), ((7, 4), (3, 2), (2, 2), False, True, None), (1, 1, 0, False, True, 2),
]  # fmt: skip
# Channels: one group or several, whole vectors and a rest; rows: one band or several.
SIDE_BY_SIDE = [
    (2, 16, 9, 11), (1, 17, 40, 30), (2, 47, 6, 5), (1, 100, 7, 300), (1, 33, 300, 9), (3, 64, 5, 8), (1, 163, 4, 130),
    (2, 3, 20, 31), (1, 5, 2, 4500), (1, 7, 3, 6000), (2, 12, 40, 33),
]  # fmt: skip
SHAPES = [(2, 3, 9, 10), (1, 19, 8, 8), (3, 12, 33), (1, 2, 8, 200), (1, 1, 35, 35)]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("attributes", ATTRIBUTES, ids=str)
def test_within_the_error_bound(rng, dtype, shape, attributes):
    x = normal(rng, shape, DTYPES[dtype])
    assert_is_avg_pool2d(a.avg_pool2d(x, *attributes), x, attributes)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("out_layout", LAYOUTS)
def test_layouts_change_no_bit(rng, dtype, layout, out_layout):
    cases = ((2, 5, 6, 7), (3, 1, 1)), ((1, 35, 9, 18), (2, 2)), ((1, 2, 5, 80), (3, 2, 1, True, False))
    for shape, attributes in cases:
        guarded = guarded_copy(normal(rng, shape, DTYPES[dtype]), layout)
        wanted = a.avg_pool2d(np.ascontiguousarray(guarded.view), *attributes)
        out = Guarded(wanted.shape, DTYPES[dtype], out_layout)
        assert a.avg_pool2d(guarded.view, *attributes, out=out.view) is out.view
        assert_same_bytes(np.ascontiguousarray(out.view), wanted)
        out.assert_outside_untouched()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    ("shape", "kernel"),
    [
        ((2, 3, 7, 7), 7),
        ((1, 2, 3, 1500), (3, 1500)),
        ((1, 1, 4, 2600), (2, 1400)),
        ((2, 33, 2, 1100), (2, 1090)),
    ],
)
@pytest.mark.parametrize("last", [False, True])
def test_one_window_and_wide_ones(rng, dtype, shape, kernel, last):
    x = normal(rng, shape, DTYPES[dtype])
    if last:
        x = np.ascontiguousarray(np.moveaxis(x, 1, -1)).transpose(0, 3, 1, 2)
    attributes = (kernel, 1, 0, False, True, None)
    assert_is_avg_pool2d(a.avg_pool2d(x, *attributes), x, attributes)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(
    ("shape", "attributes"),
    [
        ((3, 5, 7, 9), (5, 5, 2, False, True, None)),
        ((3, 5, 7, 9), (5, 5, 2, False, False, None)),
        ((3, 5, 8, 8), (1, 7, 0, False, True, None)),
        ((2, 3, 20, 7), ((3, 6), (2, 3), (1, 2), True, False, None)),
        ((2, 3, 23, 4), (7, 7, 3, False, True, -3)),
        ((2, 3, 4, 4), (3, 7, 1, True, False, None)),
        ((2, 3, 60, 2), ((50, 1), (10, 1), (5, 0), False, True, None)),
    ],
    ids=str,
)
def test_one_or_two_windows_to_a_row(rng, dtype, layout, shape, attributes):
    guarded = guarded_copy(normal(rng, shape, DTYPES[dtype]), layout)
    assert_is_avg_pool2d(a.avg_pool2d(guarded.view, *attributes), guarded.view, attributes)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("kernel", range(1, 8))
def test_small_planes_of_many_channels(rng, dtype, kernel):
    """Channels are averaged side by side: the bytes are those of five of the planes, which are too few for that."""
    cases = product(range(1, kernel + 3), range(kernel // 2 + 1), (False, True))
    for index, (stride, padding, ceil_mode) in enumerate(cases):
        images, channels = ((1, 13), (1, 16), (2, 31), (3, 5), (47, 1), (1, 49))[index % 6]
        shape = (images, channels, kernel + index % 5, kernel + index % 7)
        attributes = (kernel, stride, padding, ceil_mode, index % 3 > 0, (None, None, -3)[index % 3])
        x = normal(rng, shape, DTYPES[dtype])
        if index % 2:
            # Sums that overflow, where averages do not, and others that are not finite.
            x.reshape(-1)[:: index + 3] = float(ml_dtypes.finfo(x.dtype).max)
            x.reshape(-1)[rng.integers(x.size, size=2)] = np.inf, np.nan
        layout, out_layout = list(LAYOUTS)[index % len(LAYOUTS)], list(LAYOUTS)[index // 2 % len(LAYOUTS)]
        out = Guarded(pooled_shape(shape, *attributes[:4]), x.dtype, out_layout, 1)
        with a.num_threads(1 + index % 3):
            a.avg_pool2d(guarded_copy(x, layout, 1).view, *attributes, out=out.view)
        out.assert_outside_untouched()
        if not index % 2:
            assert_is_avg_pool2d(out.view, x, attributes)
        planes = x.reshape(images * channels, *shape[2:])
        result = np.ascontiguousarray(out.view).reshape(images * channels, *out.view.shape[2:])
        for begin in range(0, len(planes), 5):
            alone = a.avg_pool2d(planes[None, begin : begin + 5], *attributes)
            assert_same_bytes(alone[0], result[begin : begin + 5])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SIDE_BY_SIDE, ids=str)
def test_channels_last(rng, dtype, shape):
    """The bytes are those of contiguous arrays, whatever the groups, bands, tiles and threads."""
    kinds = ((3, 2, 1), (2, 2, 0), ((1, 3), 1, (0, 1)), ((5, 2), (7, 3), 1), (3, 1, 1))
    for number, (kernel, stride, padding) in enumerate(kinds):
        attributes = (kernel, stride, padding, number % 2 == 1, number % 3 > 0, (None, None, -3)[number % 3])
        x = normal(rng, shape, DTYPES[dtype])
        if number % 2:
            x.reshape(-1)[:: number + 3] = float(ml_dtypes.finfo(x.dtype).max)
            x.reshape(-1)[rng.integers(x.size, size=2)] = np.inf, np.nan
        assert_sides_alike(lambda x, out, a_=attributes: a.avg_pool2d(x, *a_, out=out), x, a.avg_pool2d(x, *attributes))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(2, 19, 9, 11), (40, 7, 12), (1, 35, 12, 3)], ids=str)
def test_channels_side_by_side_between_others(rng, dtype, shape):
    x = normal(rng, shape, DTYPES[dtype])
    wanted = a.avg_pool2d(x, 3, 2, 1)
    out, memory = turned_last(np.zeros_like(wanted))
    a.avg_pool2d(turned_last(x)[0], 3, 2, 1, out=out)
    assert_same_bytes(np.ascontiguousarray(out), wanted)
    assert (memory[..., :2] == 7).all()
    assert (memory[..., -3:] == 7).all()


@pytest.mark.parametrize(
    ("shape", "attributes", "algorithm"),
    [
        ((2, 16, 14, 14), (3, 2, 1), "ACROSS"),
        ((32, 1, 6, 6), (6, 1), "ACROSS"),
        ((1, 11, 14, 14), (3, 2, 1), "ROWS"),
        ((1, 16, 14, 80), (3, 2, 1), "ROWS"),
        ((1, 16, 44, 44), (3, 1, 1), "FLAT"),
        ((1, 16, 40, 40), (2, 2), "PAIRS"),
        ((1, 16, 17, 17), (17, 1), "WIDE"),
        ((1, 4, 8, 5), (4, 4), "FEW"),
    ],
    ids=str,
)
def test_the_chosen_algorithm(shape, attributes, algorithm):
    kernel, stride, padding = (*attributes, 0)[:3]
    x, out = np.ones(shape, np.float32), np.empty(pooled_shape(shape, kernel, stride, padding, False), np.float32)
    with a.soc("Host"):
        _, executor = a.aclnnAvgPool2dGetWorkspaceSize(x, [kernel], [stride], [padding], False, True, 0, 0, out)
    assert executor.explain().algorithm == algorithm


@pytest.mark.parametrize("shape", [(1, 2048, 7, 7), (2, 64, 20, 20), (1, 16, 80, 9)])
def test_few_images_of_channels_side_by_side_are_work_for_all_threads(shape):
    x, out = (np.moveaxis(np.ones((one[0], *one[2:], one[1]), np.float32), -1, 1) for one in (shape, shape))
    with a.soc("Host"), a.num_threads(2):
        _, executor = a.aclnnAvgPool2dGetWorkspaceSize(x, [3], [1], [1], False, True, 0, 0, out)
    assert executor.explain().algorithm == "LAST"
    assert executor.explain().units >= 8


def test_windows_far_apart_need_no_more_phases_than_columns():
    """As many as the stride took 16 MiB."""
    x, out = np.broadcast_to(np.float16(1), (1, 1, 8, 1 << 26)), np.empty((1, 1, 8, 16), np.float16)
    with a.soc("Host"), a.num_threads(1):
        size, executor = a.aclnnAvgPool2dGetWorkspaceSize(x, [1, 5], [1, 1 << 22], [0, 0], False, True, 0, 0, out)
        assert size <= 2 << 20
        a.aclnnAvgPool2d(np.empty(size, np.uint8), size, executor)
    assert (out == 1).all()


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("attributes", ATTRIBUTES[:4], ids=str)
def test_threads_change_no_bit(rng, threads, attributes):
    x = normal(rng, (1, 2, 300, 200), np.float32)
    wanted = a.avg_pool2d(np.repeat(x, 8, 0), *attributes)[:1]
    with a.num_threads(threads):
        assert_same_bytes(a.avg_pool2d(x, *attributes), wanted)


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
@pytest.mark.parametrize(
    "attributes", [(2, 2), (3, 1, 1), (3, 1, 1, False, False), (3, 2, 1), (5, 3, 2), (9,), (5, 4)], ids=str
)
@pytest.mark.parametrize("sign", [1, -1])
def test_a_sum_that_overflows_is_made_of_divided_terms(dtype, attributes, sign):
    """PyTorch has inf here."""
    largest = np.array([2.0**1023 if dtype == "float64" else 2.0**127]).astype(DTYPES[dtype])[0]
    x = np.full((2, 3, 9, 9), sign * largest, DTYPES[dtype])
    x[1, 1] = 1
    out = a.avg_pool2d(x, *attributes).astype(float)
    wanted = a.avg_pool2d((x.astype(float) / 2.0**60).astype(DTYPES["float64"]), *attributes) * 2.0**60
    np.testing.assert_allclose(out, wanted, rtol=1e-6 if dtype == "float32" else 1e-2 if dtype == "bfloat16" else 1e-13)
    x[0, 0, 4, 4] = np.inf
    out = a.avg_pool2d(x, *attributes)
    assert np.isinf(out[0, 0].astype(float)).any()
    assert np.isfinite(out[0, 1].astype(float)).all()


def test_a_sum_at_the_edge_that_overflows():
    """Where what lies in the row before would cancel it."""
    x = np.full((1, 1, 6, 40), 1.0, np.float32)
    x[..., 2, :2], x[..., 1, -1] = 3e38, -3e38
    for attributes in ((3, 1, 1), ((1, 3), 1, (0, 1)), (3, 1, 1, False, False)):
        out = a.avg_pool2d(x, *attributes)
        assert np.isfinite(out).all()
        whole = (*attributes, *(False, True, None)[len(attributes) - 3 :])
        np.testing.assert_allclose(out, avg_pool2d(x, *whole), rtol=1e-6)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("attributes", ATTRIBUTES, ids=str)
def test_nan_and_infinity_reach_their_windows_alone(rng, dtype, value, attributes):
    x = normal(rng, (1, 2, 12, 17), DTYPES[dtype])
    for place in ((0, 0), (5, 8), (11, 16), (6, 0)):
        spoilt = x.copy()
        spoilt[0, 1][place] = value
        with np.errstate(invalid="ignore"):
            wanted = avg_pool2d(spoilt, *attributes)
        np.testing.assert_array_equal(np.isfinite(a.avg_pool2d(spoilt, *attributes).astype(float)), np.isfinite(wanted))


def test_a_window_of_equal_small_integers_gives_that_integer():
    for dtype in DTYPES:
        for kernel in range(1, 16):
            for value in (-7, 1, 3, 13):
                x = np.full((1, 1, 20, 33), value, DTYPES[dtype])
                assert (a.avg_pool2d(x, kernel, 1) == value).all()
                assert (a.avg_pool2d(x, kernel, 2, kernel // 2, True, False) == value).all()


def test_negative_zeros_average_to_zero():
    for attributes in ATTRIBUTES:
        out = a.avg_pool2d(np.full((1, 2, 9, 10), -0.0, np.float32), *attributes)
        assert not np.signbit(out).any() or attributes[5]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("attributes", ATTRIBUTES, ids=str)
def test_parity_with_torch(rng, dtype, attributes):
    torch = pytest.importorskip("torch")
    x = rng.integers(-8, 9, (2, 3, 12, 17)).astype(DTYPES[dtype])
    tensor = torch.from_numpy(x.view(np.int16)).view(torch.bfloat16) if dtype == "bfloat16" else torch.from_numpy(x)
    pairs = [list(value) if isinstance(value, tuple) else [value, value] for value in attributes[:3]]
    wanted = numpy_of(torch.ops.aten.avg_pool2d(tensor, *pairs, *attributes[3:]))
    tolerance = {"float32": 2e-7, "float64": 4e-16, "float16": 1e-3, "bfloat16": 8e-3}[dtype]
    np.testing.assert_allclose(
        a.avg_pool2d(x, *attributes).astype(float), wanted.astype(float), rtol=tolerance, atol=tolerance
    )


@settings(max_examples=200)
@given(
    st.tuples(st.integers(1, 2), st.integers(1, 18), st.integers(1, 9), st.integers(1, 20)),
    st.tuples(st.integers(1, 5), st.integers(1, 5)), st.tuples(st.integers(1, 4), st.integers(1, 4)),
    st.tuples(st.integers(0, 2), st.integers(0, 2)), st.booleans(), st.integers(0, 2**32 - 1),
)  # fmt: skip
def test_the_gradient_is_the_adjoint(shape, kernel, stride, padding, ceil, seed):
    """<forward(x), y> == <x, backward(y)>, exactly: the divisor is a power of two."""
    padding = tuple(min(p, k // 2) for p, k in zip(padding, kernel, strict=True))
    pooled = pooled_shape(shape, kernel, stride, padding, ceil)
    if min(pooled) < 1:
        return
    rng = np.random.default_rng(seed)
    x, y = rng.integers(-9, 10, shape).astype(float), rng.integers(-9, 10, pooled).astype(float)
    attributes = kernel, stride, padding, ceil, True, 8
    left = np.vdot(a.avg_pool2d(x, *attributes), y)
    assert left == np.vdot(x, a.avg_pool2d_backward(y, shape, *attributes))


# ---- precision -------------------------------------------------------------------------------------------------------


def by_phases(product, x, kernel, strides, pads, mode, ceil=False, divisor=0):
    out = np.empty(pooled_shape(x.shape, kernel, strides or kernel, pads, ceil), x.dtype)
    sizes = [kernel] * 2, [strides] * 2 if strides else [], [pads] * 2
    with a.soc(product):
        OPERATORS["AvgPool2d"].by_phases(x, *sizes, ceil, True, divisor, mode, out)
    return out


@pytest.mark.parametrize("product", ["Ascend910", "Ascend310P", "Ascend910B", "Host"])
@pytest.mark.parametrize("mode", [0, 1, 2, 3])
@pytest.mark.parametrize("attributes", [(3, 1, 1), (2, 2, 0), (5, 3, 2)], ids=str)
def test_what_is_rounded(rng, product, mode, attributes):
    x = (3 * rng.standard_normal((2, 3, 8, 17))).astype(np.float32)
    whole = (*attributes, False, True, None)
    if product in ("Ascend910", "Ascend310P") and mode in (0, 3):
        with refusal(INVALID, "^cubeMathType"):
            by_phases(product, x, *attributes, mode)
        return
    rounds = product in ("Ascend910", "Ascend310P") or (product == "Ascend910B" and mode == 2)
    out = by_phases(product, x, *attributes, mode)
    assert_is_avg_pool2d(out, x, whole, round_float16 if rounds else None)
    assert rounds == bool((out == out.astype(np.float16)).all())


def test_compact_images_have_no_float32_on_ascend910b():
    for (height, width), refused in (((8, 15), True), ((8, 16), False), ((16, 8), False), ((15, 8), True)):
        shape = (2, 3, height, width)
        assert compact(shape, (3, 3), (0, 0), False, 0) == refused
        x = np.ones(shape, np.float32)
        for mode in (1, 3):
            if refused:
                with refusal(INVALID, r"^cubeMathType = \d: must be 0 .* or 2"):
                    by_phases("Ascend910B", x, 3, 1, 0, mode)
            else:
                by_phases("Ascend910B", x, 3, 1, 0, mode)
        by_phases("Ascend910B", x, 3, 1, 0, 0)
    for shape, kernel, ceil, divisor, refused in (
        ((1, 1, 8, 40), 8, False, 0, False), ((1, 1, 8, 8), 8, True, 999, True), ((1, 1, 9, 9), 3, True, 0, False),
        ((1, 1, 9, 9), 3, False, 256, False), ((1, 1, 9, 9), 3, False, -255, True),
        ((1, 1, 30, 30), 21, False, 0, False), ((1, 1, 30, 30), 20, False, 0, True),
    ):  # fmt: skip
        x = np.ones(shape, np.float32)
        if refused:
            with refusal(INVALID, "^cubeMathType"):
                by_phases("Ascend910B", x, kernel, 1, 0, 1, ceil, divisor)
        else:
            by_phases("Ascend910B", x, kernel, 1, 0, 1, ceil, divisor)
    by_phases("Ascend910B", np.ones((0, 3, 8, 8), np.float32), 3, 1, 0, 1)  # nothing to compute


# ---- refusals --------------------------------------------------------------------------------------------------------


def phase_1(x, kernel, strides, pads, out, mode=0, divisor=0):
    built = [value.build() if isinstance(value, Spec) else value for value in (x, out)]
    return a.aclnnAvgPool2dGetWorkspaceSize(built[0], kernel, strides, pads, False, True, divisor, mode, built[1])


X, OUT = Spec((2, 3, 8, 18)), Spec((2, 3, 4, 9))
K, S, P = (2, 2), (2, 2), (0, 0)
ND = a.ACL_FORMAT_ND


@pytest.mark.parametrize(
    ("arguments", "status", "pattern"),
    [
        ((None, None, None, None, None), NULL, "^self"),
        ((X, None, None, None, None), NULL, "^kernelSize"),
        ((X, K, None, None, None), NULL, "^strides"),
        ((X, K, S, None, None), NULL, "^paddings"),
        ((X, K, S, P, None), NULL, "^out"),
        ((X.but(dtype=a.ACL_DOUBLE, format=ND), K, S, P, OUT), INVALID, r"^self\.dtype = ACL_DOUBLE"),
        ((X.but(format=ND), K, S, P, OUT.but(dtype=a.ACL_FLOAT16)), INVALID, r"^out\.dtype = ACL_FLOAT16: must equal"),
        ((X.but(format=ND), (0,), S, P, OUT), INVALID, r"^self\.format = ACL_FORMAT_ND: must be ACL_FORMAT_NCHW"),
        ((X, (0,), S, P, OUT.but(format=a.ACL_FORMAT_NCL)), INVALID, r"^out\.format"),
        ((X.but(shape=(3, 8, 18), format=a.ACL_FORMAT_NCHW), K, S, P, OUT), INVALID, r"^self\.format.*NCL for rank 3"),
        ((X, (2, 2, 0), (0,), P, OUT), INVALID, r"^kernelSize\[2\] = 0: must be >= 1"),
        ((X, K, (2, 0), (-1,), OUT), INVALID, r"^strides\[1\] = 0: must be >= 1"),
        ((X, K, S, (-1,), OUT.but(shape=(8,), format=a.ACL_FORMAT_NCHW)), INVALID, r"^paddings\[0\] = -1: must be >="),
        ((X.but(shape=(8, 18), format=a.ACL_FORMAT_NCHW), (2, 2, 2), S, P, OUT), INVALID, r"^self\.rank = 2"),
        ((X.but(shape=(2, 0, 8, 18)), (2, 2, 2), S, P, OUT), INVALID, r"^self\.shape"),
        ((X, (2, 2, 2), S, (0, 0, 0), OUT), INVALID, r"^len\(kernelSize\) = 3: must be 1 to 2"),
        ((X, K, (2, 2, 2), (0, 0, 0), OUT), INVALID, r"^len\(paddings\) = 3: must be 1 to 2"),
        ((X, K, (2, 2, 2), (2, 2), OUT), INVALID, r"^len\(strides\) = 3: must be 0 to 2"),
        ((X, (9, 2), S, (0, 2), OUT), INVALID, r"^paddings\[1\] = 2: must be <= kernelSize\[1\] / 2 = 1"),
        ((X, (9, 2), S, (0, 1), OUT), INVALID, r"^self\.shape.*too small along H"),
        ((X, K, S, P, OUT.but(shape=(2, 3, 4, 10)), 9), INVALID, r"^out\.shape = \(2, 3, 4, 10\)"),
        ((X, K, S, P, OUT, 4), INVALID, r"^cubeMathType = 4: must be 0"),
        ((X, K, S, P, OUT, -1), INVALID, r"^cubeMathType = -1: must be 0"),
    ],
)
def test_refusals_in_order(arguments, status, pattern):
    with a.soc("Ascend910B"), refusal(status, pattern):
        phase_1(*arguments)


@pytest.mark.parametrize("product", ["Ascend910", "Ascend910B", "Host"])
def test_no_limit_of_divisor_kernel_and_stride(product):
    with a.soc(product):
        for divisor in (2**62, -(2**63), 256, 1):
            phase_1(X, K, S, P, OUT, 2, divisor)
        phase_1(X, (300, 18), (400, 2**62), (149, 0), OUT.but(shape=(2, 3, 1, 1)), 2)
        phase_1(X, K, (), P, OUT, 2)


def test_an_image_in_nchw_is_for_host_alone():
    x, out = X.but(shape=(3, 8, 18), format=a.ACL_FORMAT_NCHW), OUT.but(shape=(3, 4, 9), format=a.ACL_FORMAT_NCHW)
    with a.soc("Host"):
        phase_1(x, K, S, P, out)
    with a.soc("Ascend910B"), refusal(INVALID, r"^self\.format"):
        phase_1(x, K, S, P, out)


def test_a_divisor_of_0_is_refused_in_one_call():
    with refusal(INVALID, "^divisor_override = 0"):
        a.avg_pool2d(np.ones((1, 4, 4)), 2, divisor_override=0)


@pytest.mark.parametrize("name", ["kernelSize", "strides", "paddings"])
def test_arrays_of_any_length_are_refused_by_their_length(name):
    """What is beyond the values that are kept is not looked at."""
    call = OPERATORS["AvgPool2d"]((1, 1, 4, 4))
    for size in (9, 100, 1_000_000):
        with refusal(INVALID, rf"^len\({name}\) = {size}: must be"):
            call.phase1(**{name: [2] * 8 + [-1] * (size - 8)})
