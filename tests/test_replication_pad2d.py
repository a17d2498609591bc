"""ReplicationPad2dBackward: the sums against the twin, and against each other."""

import json
import os
from itertools import islice, product
from typing import NamedTuple

import numpy as np
import pytest
import reference
from helpers import (
    DTYPES,
    EITHER_WAY,
    HALF_TYPES,
    LAYOUTS,
    SMALLEST,
    Guarded,
    assert_is_sum,
    assert_no_negative_zero,
    assert_same_bytes,
    at_fence,
    digest,
    far_apart,
    fenced,
    guarded_copy,
    normal,
    oracle_type,
    past_the_caches,
    require_isa,
    run_python,
    run_two_phase,
    sprinkled,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from operators import replication_pad2d_backward as pad_twin

import aclnn_bw

ALL_DTYPES = {**DTYPES, "complex64": np.dtype(np.complex64), "complex128": np.dtype(np.complex128)}
ON_ALL_PRODUCTS = [name for name in ALL_DTYPES if name != "bfloat16"]
every_dtype = pytest.mark.parametrize("dtype", ALL_DTYPES)


def as_real(array):
    """The same bits with the parts of complex numbers side by side."""
    if array.dtype.kind != "c":
        return array
    return np.ascontiguousarray(array).view(array.real.dtype)


def parts(array):
    return [array.real, array.imag] if array.dtype.kind == "c" else [array]


def same(result, expected):
    assert result.shape == expected.shape
    assert_same_bytes(as_real(result), as_real(expected))


def gaussian(rng, shape, dtype):
    """Normal numbers, in both parts where there are two."""
    if dtype.kind != "c":
        return normal(rng, shape, dtype)
    return (rng.standard_normal(shape) + 1j * rng.standard_normal(shape)).astype(dtype)


class Pad(NamedTuple):
    """An image of `input_shape` that a forward pass has padded by (left, right, top, bottom)."""

    input_shape: tuple
    padding: tuple

    def __str__(self):
        return "x".join(map(str, self.input_shape)) + "-by-" + "_".join(map(str, self.padding))

    @property
    def output_shape(self):
        left, right, top, bottom = self.padding
        *leading, height, width = self.input_shape
        return (*leading, height + top + bottom, width + left + right)

    @property
    def is_portable(self):
        """Whether the products take it, not Host alone."""
        limits = np.repeat(self.input_shape[:-3:-1], 2)
        return all(0 <= pad < limit for pad, limit in zip(self.padding, limits, strict=True))

    def gradients(self, rng, dtype):
        return gaussian(rng, self.output_shape, ALL_DTYPES[dtype])


def one_call(grad, pad, **out):
    return aclnn_bw.replication_pad2d_backward(grad, *pad, **out)


def two_phase(grad, pad, out=None, on="Host", stream=None):
    """Both phases; the workspace that the first asks for is checked against the package's promise."""
    out = np.empty(pad.input_shape, grad.dtype) if out is None else out
    stand_in = np.broadcast_to(np.zeros((), grad.dtype), pad.input_shape)  # self gives its shape alone
    with aclnn_bw.soc(on):
        size = run_two_phase("ReplicationPad2dBackward", grad, stand_in, list(pad.padding), out, stream=stream)
    assert size <= aclnn_bw.get_num_threads() * (2 * 2**20 + 64 * max(grad.shape[-1], out.shape[-1]))
    return out


def assert_is_right(result, grad, pad):
    """The result against the twin, within the error bound, each part of a complex number by itself."""
    twin = pad_twin.replication_pad2d_backward_quick
    terms = twin(np.ones(grad.shape[-2:]), pad.input_shape[-2:], pad.padding)
    for seen, values in zip(parts(result), parts(grad), strict=True):
        wide = oracle_type(seen.dtype)
        with np.errstate(invalid="ignore"):
            exact, sum_abs = (twin(terms_, *pad, wide) for terms_ in (values, abs(values.astype(wide))))
        assert_is_sum(seen, exact, sum_abs, terms)


def check_both_entry_points(pad, dtype, rng):
    grad = pad.gradients(rng, dtype)
    out = Guarded(pad.input_shape, grad.dtype)
    two_phase(grad, pad, out.view)
    out.assert_outside_untouched()
    assert_is_right(out.view, grad, pad)
    fresh = one_call(grad, pad)
    assert fresh.flags.c_contiguous
    same(fresh, out.view)


# One of each kind that an implementation may treat by itself: no pad, pads on single sides and on all, up to what the
# products take, images of one row or column; then what Host takes besides: pads beyond the image, crops, and both.
KINDS = [
    Pad((2, 3, 17, 19), (0, 0, 0, 0)),
    Pad((2, 3, 16, 18), (1, 1, 1, 1)),
    Pad((2, 3, 7, 33), (2, 0, 0, 3)),
    Pad((2, 3, 9, 40), (0, 5, 4, 0)),
    Pad((2, 3, 13, 12), (3, 2, 4, 1)),
    Pad((2, 3, 5, 70), (7, 7, 0, 0)),
    Pad((2, 3, 33, 5), (0, 0, 7, 7)),
    Pad((2, 3, 8, 9), (8, 8, 7, 7)),
    Pad((2, 3, 1, 20), (3, 4, 0, 0)),
    Pad((2, 3, 20, 1), (0, 0, 5, 6)),
    Pad((2, 3, 1, 1), (0, 0, 0, 0)),
    Pad((2, 3, 2, 2), (1, 1, 1, 1)),
    Pad((2, 3, 2, 3), (0, 1, 1, 0)),
    Pad((2, 3, 32, 32), (4, 4, 4, 4)),
    Pad((2, 3, 30, 64), (10, 20, 12, 5)),
    Pad((2, 3, 3, 131), (1, 2, 1, 2)),
    Pad((2, 3, 1, 1), (5, 4, 3, 2)),
    Pad((2, 3, 5, 4), (20, 30, 10, 15)),
    Pad((2, 3, 6, 7), (7, 0, 0, 6)),
    Pad((2, 3, 9, 11), (-1, -1, -1, -1)),
    Pad((2, 3, 9, 11), (-2, 3, 1, -4)),
    Pad((2, 3, 9, 40), (5, -3, -2, 6)),
    Pad((2, 3, 9, 11), (-10, 0, 0, -8)),
    Pad((2, 3, 9, 11), (-11, 4, 12, -9)),
    Pad((2, 3, 9, 11), (-30, 33, 25, -21)),
    Pad((2, 3, 9, 11), (33, -30, -30, 33)),
    Pad((2, 3, 1, 1), (-1, 1, 1, -1)),
    Pad((2, 3, 70, 3), (-1, 40, -60, 2)),
]
every_kind = pytest.mark.parametrize("pad", KINDS, ids=str)

# Enough data for several threads, in planes that are fewer or more than the threads and small or large.
LARGE = [
    Pad((2, 8, 64, 64), (1, 1, 1, 1)),
    Pad((1, 3, 120, 130), (10, 20, 30, 40)),
    Pad((1, 1, 250, 300), (3, 2, 1, 0)),
    Pad((3, 120, 12, 13), (2, 2, 2, 2)),
    Pad((20, 3, 32, 32), (4, 4, 4, 4)),
    Pad((1000, 7, 7), (1, 1, 1, 1)),
    Pad((1, 1, 2, 25001), (5, 4, 1, 1)),
    Pad((1, 1, 20001, 2), (1, 1, 4, 5)),
    Pad((1, 1, 210, 300), (0, 0, 0, 0)),
    Pad((1, 1, 3, 4), (240, 200, 150, 150)),
    Pad((1, 2, 1, 1), (200, 100, 100, 150)),
    Pad((1, 1, 2, 3), (1, 0, 9000, 9000)),
    Pad((1, 1, 3, 2), (20_000, 10_000, 1, 0)),
    Pad((1, 1, 250, 300), (-7, 9, 11, -13)),
]
every_large = pytest.mark.parametrize("pad", LARGE, ids=str)


# ---- the twin itself -------------------------------------------------------------------------------------------------

GRADIENT = np.arange(1.0, 13).reshape(1, 3, 4)
BY_HAND = [
    # 3 rows and 4 columns of gradients, 1 to 12, of images of several sizes.
    (Pad((1, 3, 4), (0, 0, 0, 0)), GRADIENT[0]),
    (Pad((1, 3, 2), (1, 1, 0, 0)), [[1 + 2, 3 + 4], [5 + 6, 7 + 8], [9 + 10, 11 + 12]]),
    (Pad((1, 2, 4), (0, 0, 0, 1)), [[1, 2, 3, 4], [5 + 9, 6 + 10, 7 + 11, 8 + 12]]),
    (Pad((1, 1, 1), (2, 1, 1, 1)), [[78]]),
    (Pad((1, 2, 3), (1, 0, 1, 0)), [[1 + 2 + 5 + 6, 3 + 7, 4 + 8], [9 + 10, 11, 12]]),
    (Pad((1, 4, 5), (-1, 0, 0, -1)), [[0, 1, 2, 3, 4], [0, 5, 6, 7, 8], [0, 9, 10, 11, 12], [0, 0, 0, 0, 0]]),
    (Pad((1, 2, 3), (2, -1, -1, 2)), [[0, 0, 0], [1 + 2 + 3 + 5 + 6 + 7 + 9 + 10 + 11, 4 + 8 + 12, 0]]),
    (Pad((1, 1, 2), (-5, 7, 0, 2)), [[0, 78]]),
]


@pytest.mark.parametrize(("pad", "expected"), BY_HAND, ids=str)
def test_by_hand(pad, expected):
    assert pad.output_shape == GRADIENT.shape
    for twin in (pad_twin.replication_pad2d_backward, pad_twin.replication_pad2d_backward_quick):
        assert twin(GRADIENT, *pad).tolist() == [np.array(expected).tolist()]
    for dtype in ALL_DTYPES.values():
        same(one_call(GRADIENT.astype(dtype), pad), np.array([expected]).astype(dtype))
        same(two_phase(GRADIENT.astype(dtype), pad), np.array([expected]).astype(dtype))


@st.composite
def axes(draw):
    """(size, pad before, pad after) with at least one position."""
    size = draw(st.one_of(st.integers(1, 12), st.integers(1, 80)))
    before = draw(st.one_of(st.integers(-3, 6), st.integers(-90, 40)))
    after = draw(st.one_of(st.integers(-3, 6), st.integers(-90, 40)))
    return size, before, max(after, 1 - size - before)


@st.composite
def any_pad(draw):
    rows, columns = draw(axes()), draw(axes())
    leading = draw(st.sampled_from([(1,), (3,), (1, 1), (1, 3), (2, 2), (3, 1)]))
    return Pad((*leading, rows[0], columns[0]), (*columns[1:], *rows[1:]))


seeds = st.integers(0, 2**32 - 1)


@given(any_pad(), seeds)
def test_is_the_adjoint_of_the_forward(pad, seed):
    rng = np.random.default_rng(seed)
    x, y = rng.standard_normal(pad.input_shape), pad.gradients(rng, "float64")
    forward = pad_twin.replication_pad2d(x, pad.padding)
    if min(pad.padding) >= 0:
        left, right, top, bottom = pad.padding
        assert np.array_equal(forward, np.pad(x, [(0, 0)] * (x.ndim - 2) + [(top, bottom), (left, right)], "edge"))
    backward = pad_twin.replication_pad2d_backward(y, *pad)
    tolerance = 1e-13 * (np.vdot(abs(forward), abs(y)) + 1)
    for gradient in (backward, pad_twin.replication_pad2d_backward_quick(y, *pad), one_call(y, pad)):
        assert abs(np.vdot(forward, y) - np.vdot(x, gradient)) <= tolerance
        np.testing.assert_allclose(gradient, backward, rtol=0, atol=tolerance)
    both = y + 1j * pad.gradients(rng, "float64")
    tolerance = 1e-13 * (np.vdot(abs(forward), abs(both)) + 1)
    assert abs(np.vdot(forward, both) - np.vdot(x, one_call(both, pad))) <= tolerance


# ---- every entry point against the twin ------------------------------------------------------------------------------


@every_dtype
@every_kind
def test_kinds(pad, dtype, rng):
    check_both_entry_points(pad, dtype, rng)
    check_both_entry_points(pad._replace(input_shape=pad.input_shape[1:]), dtype, rng)


@every_dtype
@every_large
def test_large(pad, dtype, rng):
    check_both_entry_points(pad, dtype, rng)


def test_every_small_geometry():
    """Sizes to 5, pads and crops from -6 to 7: each axis alone and, in turn, with others; whole numbers are exact."""
    one_axis = [
        (size, before, after)
        for size, before, after in product(range(1, 6), range(-6, 8), range(-6, 8))
        if size + before + after >= 1
    ]
    rng = np.random.default_rng(6)
    wrong, kinds = [], list(ALL_DTYPES.values())
    for index, rows in enumerate(one_axis):
        for columns in (rows, (5, 0, 0), (7, 2, 1), one_axis[-1 - index], one_axis[index * 37 % len(one_axis)]):
            pad = Pad((1, 2, rows[0], columns[0]), (*columns[1:], *rows[1:]))
            whole = rng.integers(-63, 64, pad.output_shape) * 4.0
            sums = pad_twin.replication_pad2d_backward_quick(whole, *pad)
            dtype = kinds[index % len(kinds)]
            rounding = reference.round_bfloat16 if dtype == DTYPES["bfloat16"] else np.float64
            for kind, expected in ((dtype, rounding(sums)), (DTYPES["float32"], sums)):
                if not np.array_equal(one_call(whole.astype(kind), pad), expected.astype(kind)):
                    wrong.append(str(pad))
    assert len(one_axis) > 500
    assert not wrong


PADS = [(0, 0), (1, 1), (2, 0), (0, 3), (4, 4), (16, 17), (-1, 0), (0, -1), (-2, 3)]


def every_width(pads):
    """Rows around all vector lengths, with all remainders behind them."""
    for width in [*range(1, 36), 47, 48, 49, 63, 64, 65, 66, 127, 128, 129, 257]:
        before, after = pads
        if width + before + after >= 1:
            yield Pad((1, 2, 1 + width % 4, width), (before, after, width % 2, width % 3))


@every_dtype
@pytest.mark.parametrize("pads", PADS, ids=str)
def test_every_width(pads, dtype, rng):
    for pad in every_width(pads):
        check_both_entry_points(pad, dtype, rng)


@settings(max_examples=300)
@given(
    any_pad(), st.sampled_from(list(ALL_DTYPES)), seeds, st.sampled_from(list(LAYOUTS)), st.sampled_from(list(LAYOUTS)),
    st.integers(0, 5), st.integers(0, 5),
)  # fmt: skip
def test_any_geometry_in_any_layout(pad, dtype, seed, layout, out_layout, offset, out_offset):
    values = pad.gradients(np.random.default_rng(seed), dtype)
    grad = guarded_copy(values, layout, offset)
    before = grad.buffer.tobytes()
    out = Guarded(pad.input_shape, values.dtype, out_layout, out_offset)
    two_phase(grad.view, pad, out.view)
    out.assert_outside_untouched()
    assert grad.buffer.tobytes() == before
    assert_is_right(out.view, values, pad)
    same(one_call(values, pad), out.view)


LARGEST, SMALLEST_INT = 2**63 - 1, -(2**63)
EXTREMES = [
    (2**62, 1 - 2**62), (-(2**62), 2**62), (LARGEST, -LARGEST), (-LARGEST, LARGEST), (SMALLEST_INT, LARGEST),
    (LARGEST, 4 - LARGEST), (-(2**31), 2**31 + 1), (2**40, -(2**40) - 3),
]  # fmt: skip


@every_dtype
@pytest.mark.parametrize("pads", EXTREMES, ids=str)
def test_extreme_pads_that_cancel(pads, dtype, rng):
    for padding in ((*pads, 1, 2), (2, -1, *pads), (*pads, *pads)):
        check_both_entry_points(Pad((2, 2, 5, 6), padding), dtype, rng)


@every_dtype
@pytest.mark.parametrize("shape", [(0, 3, 8, 9), (0, 1, 1, 1)])
def test_empty_batch(shape, dtype):
    pad = Pad(shape, (0, 0, 0, 0))
    grad, out = np.empty(pad.output_shape, ALL_DTYPES[dtype]), Guarded(shape, ALL_DTYPES[dtype])
    with aclnn_bw.soc("Host"):
        size, executor = aclnn_bw.aclnnReplicationPad2dBackwardGetWorkspaceSize(grad, out.view, [0] * 4, out.view)
    assert size == 0
    aclnn_bw.aclnnReplicationPad2dBackward(None, 0, executor)
    out.assert_outside_untouched()
    result = one_call(grad, pad)
    assert (result.shape, result.dtype) == (shape, grad.dtype)


PRODUCTS = [*product(["Ascend910", "Ascend310P", "Ascend910B"], ON_ALL_PRODUCTS), ("Ascend910B", "bfloat16")]


@pytest.mark.parametrize(("on", "dtype"), PRODUCTS)
@every_kind
def test_same_bytes_on_every_product(pad, on, dtype, rng):
    grad = pad.gradients(rng, dtype)
    wide = dtype == "bfloat16" and max(pad.padding) > 7 and any(pad.padding[2:])
    if pad.is_portable and not wide:
        same(two_phase(grad, pad, on=on), two_phase(grad, pad))
    else:
        with pytest.raises(aclnn_bw.AclnnError, match=rf"^padding\[\d\] = .*{on}"):
            two_phase(grad, pad, on=on)


def test_self_gives_its_shape_alone(rng):
    """Its values and its memory do not matter: a shape, a broadcast zero, NaN, the output itself, unbound."""
    pad = KINDS[4]
    grad = pad.gradients(rng, "float32")
    expected = two_phase(grad, pad)
    assert_same_bytes(one_call(grad, pad._replace(input_shape=np.full(pad.input_shape, np.nan, np.float32))), expected)
    assert_same_bytes(one_call(grad, pad._replace(input_shape=list(pad.input_shape))), expected)
    out = np.empty_like(expected)
    shape = pad.input_shape
    unbound = aclnn_bw.aclCreateTensor(shape, aclnn_bw.ACL_FLOAT, None, 0, aclnn_bw.ACL_FORMAT_NCHW, shape, None)
    within = grad.reshape(-1)[: out.size].reshape(shape)
    for stand_in in (out, unbound, within):
        out[...] = np.nan
        run_two_phase("ReplicationPad2dBackward", grad, stand_in, list(pad.padding), out)
        assert_same_bytes(out, expected)


@pytest.mark.parametrize("value", [0, 2, -1])
def test_one_pad_for_all_sides(value, rng):
    pad = Pad((2, 3, 5, 6), (value,) * 4)
    grad = pad.gradients(rng, "float32")
    for one in (value, np.int64(value), np.int8(value)):
        assert_same_bytes(one_call(grad, pad._replace(padding=one)), one_call(grad, pad))


PLAIN_FORMATS = ["NCHW", "NHWC", "ND", "HWCN", "NDHWC", "NCDHW", "NC", "NCL"]


@pytest.mark.parametrize("fmt", PLAIN_FORMATS)
@pytest.mark.parametrize("rank", [3, 4])
def test_every_format_means_the_same(fmt, rank, rng):
    pad = Pad((2, 3, 5, 6)[-rank:], (1, 2, 3, 4))
    grad = pad.gradients(rng, "float32")
    out, fmt = np.empty(pad.input_shape, np.float32), aclnn_bw.aclFormat[f"ACL_FORMAT_{fmt}"]
    tensors = [
        aclnn_bw.aclCreateTensor(array.shape, aclnn_bw.ACL_FLOAT, None, 0, fmt, array.shape, array)
        for array in (grad, out, out)
    ]
    run_two_phase("ReplicationPad2dBackward", *tensors[:2], aclnn_bw.aclCreateIntArray(pad.padding, 4), tensors[2])
    assert_same_bytes(out, one_call(grad, pad))


# ---- sums and roundings ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", HALF_TYPES)
def test_sums_of_16_bit_types_are_rounded_once(dtype):
    eps = {"float16": 2.0**-10, "bfloat16": 2.0**-7}[dtype]
    rows = {
        # All but the two plain ties come out otherwise where the sum is rounded after each term or each row.
        (1, eps / 2, eps / 4, eps / 4): 1 + eps,
        (1 + eps, -eps / 4, -eps / 4, 0): 1,
        (1 + eps, eps / 4, eps / 4, 0): 1 + 2 * eps,
        (1, eps / 2, eps / 2**10, 0): 1 + eps,
        (1, eps / 2, 0, 0): 1,
        (1 + eps, eps / 2, 0, 0): 1 + 2 * eps,
        (4096, 1, -4096, 0): 1,
    }
    grad, expected = (np.array(list(values)).astype(DTYPES[dtype]) for values in (rows, rows.values()))
    for shape, padding in (((1, 4), (1, 2, 0, 0)), ((4, 1), (0, 0, 2, 1)), ((2, 2), (0, 1, 1, 0))):
        result = one_call(grad.reshape(-1, *shape), Pad((len(rows), 1, 1), padding))
        assert_same_bytes(result, expected.reshape(-1, 1, 1))
    # The same at the sides of rows that are longer than a vector.
    row = np.concatenate([grad[:, :3], np.ones((len(rows), 40), grad.dtype), grad[:, 2::-1]], axis=1)
    exact_three = np.array([1 + eps / 2 + eps / 4, *list(rows.values())[1:]])
    rounding = reference.round_float16 if dtype == "float16" else reference.round_bfloat16
    sides = rounding(exact_three).astype(grad.dtype)[:, None]
    result = one_call(row[:, None], Pad((len(rows), 1, 42), (2, 2, 0, 0)))[:, 0]
    assert_same_bytes(result, np.concatenate([sides, np.ones((len(rows), 40), grad.dtype), sides], axis=1))


def test_float16_sums_may_pass_its_range():
    big = np.array([[[65504.0, 65504, -65504]], [[65504, 65504, 0]], [[-65504, -16, 0]], [[65504, 15, 0]]], np.float16)
    expected = np.array([65504, np.inf, -np.inf, 65504], np.float16).reshape(4, 1, 1)
    assert_same_bytes(one_call(big, Pad((4, 1, 1), (2, 0, 0, 0))), expected)
    assert_same_bytes(one_call(big.reshape(4, 3, 1), Pad((4, 1, 1), (0, 0, 1, 1))), expected)


@every_dtype
@every_kind
def test_exact_sums_bit_by_bit(pad, dtype, rng):
    """Where no rounding but the last can occur, that one decides every bit."""
    fraction = 7 if dtype == "bfloat16" else 10
    whole = rng.integers(2**fraction, 2 ** (fraction + 1), (2, *pad.output_shape))
    real, imaginary = whole * rng.choice([-1, 1], whole.shape) * 2.0**-fraction
    grad = real + 1j * imaginary if dtype.startswith("complex") else real
    exact = [pad_twin.replication_pad2d_backward_quick(part, *pad) for part in parts(grad)]
    assert all(np.all(part.astype(np.float32) == part) for part in exact)
    rounding = {"float16": reference.round_float16, "bfloat16": reference.round_bfloat16}.get(dtype, np.float64)
    result = one_call(grad.astype(ALL_DTYPES[dtype]), pad)
    for seen, part in zip(parts(result), exact, strict=True):
        assert_same_bytes(seen, rounding(part).astype(seen.dtype))


@pytest.mark.parametrize("dtype", HALF_TYPES)
def test_every_16_bit_pattern(dtype):
    patterns = np.arange(2**16, dtype=np.uint16).view(DTYPES[dtype]).reshape(1, 256, 256)
    plain = patterns.copy()
    plain.view(np.uint16)[plain.view(np.uint16) == 0x8000] = 0  # zeros lose their sign
    assert_same_bytes(one_call(patterns, Pad((1, 256, 256), (0, 0, 0, 0))), plain)
    cropped = one_call(patterns, Pad((1, 260, 270), (-7, -7, -1, -3)))
    assert_same_bytes(cropped[:, 1:-3, 7:-7], plain)
    cropped[:, 1:-3, 7:-7] = 0
    assert not cropped.view(np.uint16).any()


@every_dtype
@every_kind
def test_zeros_have_no_sign(pad, dtype, rng):
    grad = as_real(pad.gradients(rng, dtype))
    units, smallest = rng.integers(-1, 2, grad.shape).astype(grad.dtype), grad.dtype.type(SMALLEST[grad.dtype.name])
    for values in (np.zeros_like(grad), units, units * smallest):
        minus_zero = np.where(values == 0, -grad.dtype.type(0), values)
        assert_no_negative_zero(as_real(one_call(minus_zero.view(ALL_DTYPES[dtype]), pad)))


@every_dtype
@every_kind
def test_subnormal_sums_bit_by_bit(pad, dtype, rng):
    whole = rng.integers(-3, 4, pad.output_shape)
    smallest = SMALLEST[parts(np.empty(0, ALL_DTYPES[dtype]))[0].dtype.name]
    expected = pad_twin.replication_pad2d_backward_quick(whole, *pad)
    grad, expected = ((values * smallest).astype(ALL_DTYPES[dtype]) for values in (whole, expected))
    same(one_call(grad, pad), expected)


@every_dtype
@every_kind
def test_nan_and_inf_reach_exactly_their_elements(pad, dtype, rng):
    clean = pad.gradients(rng, dtype)
    height, width = clean.shape[-2:]
    places = {(0, 0), (0, width - 1), (height - 1, 0), (height - 1, width - 1)}
    places |= {(int(rng.integers(height)), int(rng.integers(width))) for _ in range(2)}
    without = as_real(one_call(clean, pad))
    for place, value in product(sorted(places), (np.nan, np.inf, -np.inf)):
        only = np.zeros(clean.shape, clean.dtype)
        only[(1, 2, *place)] = 1
        reached = as_real(pad_twin.replication_pad2d_backward_quick(only, *pad, clean.dtype)) != 0
        assert reached.sum() == 1  # one part of one element
        marked = clean.copy()
        as_real(marked)[as_real(only) != 0] = value  # a view: the copy is contiguous
        result = as_real(one_call(marked, pad))
        assert_same_bytes(result[~reached], without[~reached])
        assert_same_bytes(result[reached], np.full_like(result[reached], value))


def with_specials(grad, rng):
    """Some NaN, inf, zeros of either sign and subnormals among the gradients, in either part."""
    return sprinkled(as_real(grad), rng, 0.02).view(grad.dtype)


@every_dtype
@every_large
def test_many_specials_in_large_planes(pad, dtype, rng):
    grad = with_specials(pad.gradients(rng, dtype), rng)
    assert_is_right(one_call(grad, pad), grad, pad)


# ---- the same bytes, whatever ... ------------------------------------------------------------------------------------


@every_dtype
@every_kind
def test_same_bytes_whatever_batch_and_channels(pad, dtype, rng):
    pad = pad._replace(input_shape=(3, 5, *pad.input_shape[-2:]))
    grad = pad.gradients(rng, dtype)
    whole = two_phase(grad, pad)
    for n, c in ((0, 0), (1, 3), (2, 4)):
        for leading in ((1,), (1, 1)):
            plane = pad._replace(input_shape=(*leading, *pad.input_shape[-2:]))
            alone = one_call(grad[n, c].reshape(plane.output_shape), plane)
            same(alone.reshape(whole.shape[2:]), whole[n, c])
    same(one_call(grad[1], pad._replace(input_shape=pad.input_shape[1:])), whole[1])


@every_dtype
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("pad", [*KINDS[1::4], LARGE[1], LARGE[3]], ids=str)
def test_same_bytes_whatever_layout(pad, layout, dtype, rng):
    values = pad.gradients(rng, dtype)
    plain = two_phase(values, pad)
    for offset in (1,) if pad in LARGE else (0, 1, 3):
        grad = guarded_copy(values, layout, offset)
        before = grad.buffer.tobytes()
        same(two_phase(grad.view, pad), plain)
        assert grad.buffer.tobytes() == before
        out = Guarded(pad.input_shape, values.dtype, layout, offset)
        assert one_call(values, pad, out=out.view) is out.view
        same(out.view, plain)
        out.assert_outside_untouched()


# Channels side by side: fewer than a block of a transposition, blocks with a rest, several cache lines of them; long
# runs, crops, wide rows, tall planes, images of one row or column, and pads too large for the scratch.
MANY_CHANNELS = [
    Pad((2, 3, 5, 3), (1, 1, 1, 1)),
    Pad((2, 3, 30, 40), (1, 2, 3, 4)),
    Pad((2, 20, 8, 9), (-2, 5, 3, -1)),
    Pad((2, 37, 9, 14), (3, 2, 4, 1)),
    Pad((1, 70, 20, 33), (20, 9, 3, 18)),
    Pad((1, 16, 600, 40), (1, 1, 1, 1)),
    Pad((1, 33, 3, 1500), (2, 3, 1, 1)),
    Pad((3, 8, 1, 7), (3, 3, 2, 2)),
    Pad((2, 18, 7, 1), (9, 9, 0, 4)),
    Pad((1, 35, 5, 6), (150, 150, 150, 150)),
]


@every_dtype
@pytest.mark.parametrize("pad", MANY_CHANNELS, ids=str)
def test_same_bytes_with_channels_side_by_side(pad, dtype, rng, step):
    values = with_specials(pad.gradients(rng, dtype), rng)
    plain = two_phase(values, pad)
    layouts = ("contiguous", "channels_last", "channels_last_reversed", "columns_cropped")
    cases = list(product(layouts, layouts, (1, 3)))
    for layout, out_layout, threads in cases[rng.integers(step) :: step]:
        grad, out = guarded_copy(values, layout, 1), Guarded(pad.input_shape, values.dtype, out_layout, 1)
        with aclnn_bw.num_threads(threads):
            two_phase(grad.view, pad, out.view)
        same(out.view, plain)
        out.assert_outside_untouched()


@every_dtype
@pytest.mark.parametrize("layout", ["contiguous", "channels_last", "columns_cropped"])
def test_same_bytes_beyond_the_cache(layout, dtype, rng):
    """Rows of large arrays are written past the caches, at every place in a cache line."""
    planes = 34 * 2**20 // (2 * 65 * 333 * ALL_DTYPES[dtype].itemsize)
    pad = Pad((1, planes, 65, 333), (1, 3, 2, 0))
    values = gaussian(rng, (1, 4, *pad.output_shape[2:]), ALL_DTYPES[dtype])
    few = one_call(values, Pad((1, 4, 65, 333), pad.padding))
    grad = guarded_copy(np.resize(values, pad.output_shape), layout, 1)
    for offset in (0, 5):
        out = Guarded(pad.input_shape, values.dtype, "contiguous", offset)
        two_phase(grad.view, pad, out.view)
        same(out.view, np.resize(few, pad.input_shape))
        out.assert_outside_untouched()


@every_dtype
@pytest.mark.parametrize("size", [(7, 5), (33, 71), (128, 130)], ids=str)
def test_strips_past_the_caches(size, dtype, rng):
    """Rows of larger arrays, from anywhere in a cache line on, one thread where another ended; cropped ones too."""
    for padding in ((1, 3, 2, 1), (0, 2, 0, 0), (-1, 1, 3, -2)):
        height, width = size[0] + sum(padding[2:]), size[1] + sum(padding[:2])
        planes = (97 << 20) // ((size[0] * size[1] + height * width) * ALL_DTYPES[dtype].itemsize) + 1
        values = gaussian(rng, (1, 3, height, width), ALL_DTYPES[dtype])
        few = one_call(values, Pad((1, 3, *size), padding))
        pad = Pad((1, planes, *size), padding)
        grad = np.resize(values, pad.output_shape)
        for threads, offset in ((1, 1), (3, 0)):
            out = Guarded(pad.input_shape, values.dtype, "contiguous", offset)
            with aclnn_bw.num_threads(threads):
                two_phase(grad, pad, out.view)
            same(out.view, np.resize(few, pad.input_shape))
            out.assert_outside_untouched()


@every_dtype
@every_kind
def test_same_bytes_from_broadcast_inputs(pad, dtype, rng):
    shape = pad.output_shape
    for kept in ((1, 1, *shape[2:]), (shape[0], 1, shape[2], 1), (1, shape[1], 1, shape[3]), (1, 1, 1, 1)):
        view = np.broadcast_to(gaussian(rng, kept, ALL_DTYPES[dtype]), shape)
        plain = two_phase(view.copy(), pad)
        same(two_phase(view, pad), plain)
        same(one_call(view, pad), plain)


@every_dtype
@every_large
def test_same_bytes_at_every_thread_count(pad, dtype, rng):
    grad = pad.gradients(rng, dtype)
    strided = guarded_copy(grad, "every_third_column_reversed", 1).view
    results = []
    for threads in (1, 2, 3, 4):
        with aclnn_bw.num_threads(threads):
            results += [two_phase(grad, pad), one_call(grad, pad), one_call(strided, pad)]
    for result in results[1:]:
        same(result, results[0])


@every_dtype
@pytest.mark.parametrize("pad", [*KINDS[::2], LARGE[0], LARGE[9]], ids=str)
def test_same_bytes_from_streams_and_repeatable_executors(pad, dtype, rng):
    grad = pad.gradients(rng, dtype)
    plain = two_phase(grad, pad)
    stream = aclnn_bw.aclrtCreateStream()
    try:
        same(two_phase(grad, pad, stream=stream), plain)
    finally:
        aclnn_bw.aclrtDestroyStream(stream)

    scaled, out = grad.copy(), np.empty_like(plain)
    with aclnn_bw.soc("Host"):
        size, executor = aclnn_bw.aclnnReplicationPad2dBackwardGetWorkspaceSize(scaled, out, pad.padding, out)
    aclnn_bw.aclSetAclOpExecutorRepeatable(executor)
    for factor in np.array([1, 4, 2]).astype(grad.dtype):  # powers of two: exact
        scaled[...], out[...] = grad * factor, np.nan
        aclnn_bw.aclnnReplicationPad2dBackward(bytearray(size), size, executor)
        same(out, plain * factor)
    aclnn_bw.aclDestroyAclOpExecutor(executor)


# ---- memory ----------------------------------------------------------------------------------------------------------


@every_dtype
@pytest.mark.parametrize("far_axis", [0, 1, 2, 3], ids=["images", "planes", "rows", "columns"])
def test_offsets_beyond_32_bits(far_axis, dtype, rng, tmp_path):
    pad = Pad((2, 3, 4, 5), (2, 1, -1, 3))
    values = pad.gradients(rng, dtype)
    grad, out = far_apart(tmp_path, (values.shape, pad.input_shape), values.dtype, far_axis)
    grad[...] = values
    two_phase(grad, pad, out)
    same(out, two_phase(values, pad))


@pytest.mark.parametrize("dtype", [aclnn_bw.ACL_FLOAT16, aclnn_bw.ACL_DOUBLE], ids=lambda dtype: dtype.name)
@pytest.mark.parametrize(
    "pad",
    [
        Pad((2**12, 2**12, 64, 64), (9, 8, 7, 6)),
        Pad((1, 1, 2**20, 2**20), (100, 100, 100, 100)),
        Pad((1, 1, 8, 2**30), (4, 4, 4, 4)),
        Pad((1, 1, 2**30, 8), (4, 4, 4, 4)),
        Pad((1, 1, 8, 8), (0, 0, 2**35, 2**35)),
        Pad((1, 1, 8, 8), (2**35, 2**35, 0, 0)),
    ],
    ids=str,
)
def test_workspace_of_huge_tensors(pad, dtype):
    """Phase 1 of tensors without data: the workspace keeps to its bound."""
    tensors = [
        aclnn_bw.aclCreateTensor(shape, dtype, None, 0, aclnn_bw.ACL_FORMAT_NCHW, shape, None)
        for shape in (pad.output_shape, pad.input_shape, pad.input_shape)
    ]
    with aclnn_bw.soc("Host"):
        size, executor = aclnn_bw.aclnnReplicationPad2dBackwardGetWorkspaceSize(*tensors[:2], pad.padding, tensors[2])
    assert size <= aclnn_bw.get_num_threads() * (2 * 2**20 + 64 * max(pad.output_shape[-1], pad.input_shape[-1]))
    assert isinstance(executor, aclnn_bw.aclOpExecutor)


def run_at_fences(step):
    """Every `step`-th call, arrays at fences; the last line printed names the call that ended the process."""
    layouts = [*product(("contiguous", "channels_last", "all_reversed"), (1, 2)), ("planes_transposed", 1)]
    cases = [*product(KINDS, layouts, (False, True))]
    cases += [(pad, layouts[0], True) for pads in PADS for pad in every_width(pads)]
    cases += [*product(LARGE, layouts[:1], (False, True))]
    cases += [*product(MANY_CHANNELS[:5], [("channels_last", 1)], (False, True))]
    memories = [fenced(2**24) for _ in range(3)]
    for (pad, layout, at_end), (name, dtype) in islice(product(cases, ALL_DTYPES.items()), 0, None, step):
        print(pad, name, *layout, "end" if at_end else "begin", flush=True)
        values = pad.gradients(np.random.default_rng(7), name)
        grad, out = (
            at_fence(memory, shape, dtype, *layout, at_end)
            for memory, shape in zip(memories, (values.shape, pad.input_shape), strict=False)
        )
        grad[...] = values
        for least in EITHER_WAY:
            with aclnn_bw.soc("Host"), past_the_caches(least):
                size, executor = aclnn_bw.aclnnReplicationPad2dBackwardGetWorkspaceSize(grad, out, pad.padding, out)
            workspace = memories[2][-size:] if at_end else memories[2][:size]
            aclnn_bw.aclnnReplicationPad2dBackward(workspace if size else None, size, executor)
            same(out, one_call(values, pad))
    print("done")


@pytest.mark.skipif(os.name != "posix", reason="needs mprotect")
@pytest.mark.parametrize("isa", ["v2", "v3", "v4"])
def test_nothing_beyond_the_arrays_is_touched(isa, tmp_path, step):
    require_isa(isa)
    code = f"from test_replication_pad2d import run_at_fences; run_at_fences({step})"
    assert run_python(code, tmp_path, ACLNN_BW_ISA=isa).endswith("\ndone\n")


# ---- instruction sets ------------------------------------------------------------------------------------------------


def digests(step=1):
    """A hash of the result of each of many calls, by the name of the call; of every `step`-th one."""
    found = {}
    for index, (pad, dtype) in islice(enumerate(product([*KINDS, *LARGE], ALL_DTYPES)), 0, None, step):
        rng = np.random.default_rng(index)
        grad = pad.gradients(rng, dtype)
        layout = list(LAYOUTS)[index % len(LAYOUTS)]
        out = Guarded(pad.input_shape, grad.dtype, layout, 1).view
        two_phase(guarded_copy(grad, layout, 1).view, pad, out)
        real = as_real(grad)
        tiny = (real.astype(np.float64) * SMALLEST[real.dtype.name] * 2**9).astype(real.dtype).view(grad.dtype)
        results = [two_phase(values, pad) for values in (grad, with_specials(grad, rng), tiny)]
        found[f"{pad} {dtype} {layout}"] = digest(*map(as_real, results), as_real(out))
    for pads, dtype in islice(product(PADS, ALL_DTYPES), 0, None, step):
        rng = np.random.default_rng([100 + pad for pad in pads])
        results = [two_phase(with_specials(pad.gradients(rng, dtype), rng), pad) for pad in every_width(pads)]
        found[f"every width of {pads} {dtype}"] = digest(*map(as_real, results))
    return found


@pytest.fixture(scope="module")
def own_digests(step):
    return digests(step)


CHILD = """
import json, aclnn_bw
from test_replication_pad2d import digests
print(json.dumps([aclnn_bw.show_config(mode="dict")["isa"], digests(STEP)]))
"""


@pytest.mark.parametrize("isa", ["v2", "v3", "v4"])
def test_same_bytes_on_every_instruction_set(isa, own_digests, tmp_path, step):
    require_isa(isa)
    code = CHILD.replace("STEP", str(step))
    chosen, theirs = json.loads(run_python(code, tmp_path, ACLNN_BW_ISA=isa, ACLNN_BW_NUM_THREADS="1"))
    assert isa in chosen
    assert theirs.keys() == own_digests.keys()
    assert [name for name in theirs if theirs[name] != own_digests[name]] == []
