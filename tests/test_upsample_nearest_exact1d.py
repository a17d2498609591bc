"""UpsampleNearestExact1dBackward: the index map, and the sums against the twin and each other."""

import ctypes
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
    assert_sides_alike,
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
from operators import upsample_nearest_exact1d_backward as upsample_twin

import aclnn_bw

every_dtype = pytest.mark.parametrize("dtype", DTYPES)


class Resize(NamedTuple):
    """Rows of `input_length` that a forward pass has resized to `output_length`."""

    input_length: int
    output_length: int
    scales: float = 0.0
    leading: tuple = (2, 3)

    def __str__(self):
        text = "x".join(map(str, self.leading)) + f"-{self.input_length}-to-{self.output_length}"
        return text + f"-scales-{self.scales}" * (self.scales != 0)

    @property
    def input_size(self):
        return (*self.leading, self.input_length)

    def gradients(self, rng, dtype):
        return normal(rng, (*self.leading, self.output_length), DTYPES[dtype])

    @property
    def is_portable(self):
        """Whether the products take it, not Host alone."""
        ratios = self.input_length / self.output_length, self.output_length / self.input_length, self.scales
        return max(ratios) <= 50 and (self.scales == 0 or self.scales >= 1 / 50)


def one_call(grad, resize, **out):
    size = resize.input_size
    return aclnn_bw.upsample_nearest_exact1d_backward(grad, [grad.shape[-1]], size, resize.scales or None, **out)


def two_phase(grad, resize, out=None, on="Host", stream=None):
    """Both phases; the workspace that the first asks for is checked against the package's promise."""
    out = np.empty(resize.input_size, grad.dtype) if out is None else out
    arguments = [resize.output_length], list(resize.input_size), resize.scales
    with aclnn_bw.soc(on):
        size = run_two_phase("UpsampleNearestExact1dBackward", grad, *arguments, out, stream=stream)
    assert size <= aclnn_bw.get_num_threads() * (2 * 2**20 + 64 * max(grad.shape[-1], out.shape[-1]))
    return out


def assert_is_right(result, grad, resize):
    """The result against the twin, within the error bound."""
    wide = oracle_type(result.dtype)
    twin, size, scales = upsample_twin.upsample_nearest_exact1d_backward_quick, resize.input_size, resize.scales
    with np.errstate(invalid="ignore"):
        exact, sum_abs = (twin(values, size, scales, wide) for values in (grad, abs(grad.astype(wide))))
    assert_is_sum(result, exact, sum_abs, twin(np.ones(grad.shape[-1]), size[-1:], scales))


def check_both_entry_points(resize, dtype, rng):
    grad = resize.gradients(rng, dtype)
    out = Guarded(resize.input_size, grad.dtype)
    two_phase(grad, resize, out.view)
    out.assert_outside_untouched()
    assert_is_right(out.view, grad, resize)
    fresh = one_call(grad, resize)
    assert fresh.flags.c_contiguous
    assert_same_bytes(fresh, out.view)


# One of each kind that an implementation may treat by itself: whole and simple ratios in both directions, others, the
# ends of the range, and scales that contradict the sizes.
KINDS = [
    *(Resize(*lengths) for lengths in [
        (1, 1), (1, 50), (50, 1), (33, 33), (1, 2), (2, 1), (3, 4), (16, 32), (37, 74), (33, 99), (17, 68), (9, 72),
        (32, 48), (30, 50), (36, 48), (64, 32), (75, 25), (136, 34), (65, 21), (48, 32), (11, 26), (26, 11), (100, 61),
        (61, 100), (131, 130), (130, 131), (7, 300), (300, 7), (45, 260),
        (64, 1), (320, 10), (1000, 15), (2051, 23), (2560, 5),
    ]),
    *(Resize(*arguments) for arguments in [
        (20, 40, 2.0), (20, 31, 1.5), (20, 30, 2.6), (21, 37, 0.7), (40, 20, 2.0), (20, 40, 0.5), (20, 30, 50.0),
        (20, 30, 0.02), (64, 64, 1 / 3), (64, 64, 3.0), (60, 40, 0.66), (23, 23, 1.0), (700, 7, 0.01),
        (900, 12, 1 / 71), (1000, 10, 0.0101), (640, 10, 0.005),
    ]),
]  # fmt: skip
every_kind = pytest.mark.parametrize("resize", KINDS, ids=str)

# Enough data for several threads, in rows that are fewer or more than the threads and short or long.
LARGE = [
    Resize(512, 1024, 0.0, (2, 44)),
    Resize(512, 768, 0.0, (3, 35)),
    Resize(500, 813, 0.0, (3, 34)),
    Resize(1024, 512, 0.0, (2, 43)),
    Resize(1500, 700, 0.0, (2, 30)),
    Resize(16, 48, 0.0, (3, 700)),
    Resize(5, 3, 0.0, (7, 2400)),
    Resize(50_000, 100_000, 0.0, (1, 1)),
    Resize(60_001, 80_003, 0.0, (1, 1)),
    Resize(100_000, 45_001, 0.0, (1, 1)),
    Resize(3, 50_000, 0.0, (1, 3)),
    Resize(70_000, 3, 0.0, (1, 2)),
    Resize(20_000, 20_000, 1.7, (1, 5)),
    Resize(20, 52, 0.0, (5, 700)),
    Resize(12, 76, 0.0, (3, 900)),
    Resize(10_000, 100, 0.0, (2, 10)),
    Resize(6_007, 80, 0.0, (3, 9)),
    Resize(70_001, 500, 0.0, (1, 3)),
    Resize(70_000, 900, 0.0131, (1, 3)),
    Resize(70_001, 500, 0.0, (1, 9)),
    Resize(70_000, 900, 0.0131, (3, 3)),
    Resize(10_007, 20_011, 0.0, (1, 1)),
    Resize(10_007, 4_999, 0.0, (2, 2)),
    Resize(10_007, 2_503, 1.7, (1, 8)),
    Resize(10_007, 2_503, 0.2, (1, 8)),
]
every_large = pytest.mark.parametrize("resize", LARGE, ids=str)


# ---- the twin itself -------------------------------------------------------------------------------------------------

# By hand; the last two are what PyTorch gives where the exact quotients 5.5 * 26 / 11 = 13 and 20.5 * 2 / 41 = 1 come
# out one float32 step below.
MAPS = [
    (Resize(2, 4), [0, 0, 1, 1]),
    (Resize(4, 2), [1, 3]),
    (Resize(3, 2), [0, 2]),
    (Resize(3, 5), [0, 0, 1, 2, 2]),
    (Resize(3, 3), [0, 1, 2]),
    (Resize(2, 6, 2.0), [0, 0, 1, 1, 1, 1]),
    (Resize(8, 4, 1.0), [0, 1, 2, 3]),
    (Resize(5, 4, 1e300), [0, 0, 0, 0]),
    (Resize(5, 4, 1e-40), [4, 4, 4, 4]),
    (Resize(5, 4, 5e-324), [4, 4, 4, 4]),
    (Resize(26, 11), [1, 3, 5, 8, 10, 12, 15, 17, 20, 22, 24]),
    (Resize(2, 41), [0] * 21 + [1] * 20),
]


@pytest.mark.parametrize(("resize", "expected"), MAPS, ids=str)
def test_map_by_hand(resize, expected):
    length = resize.output_length
    index = upsample_twin.nearest_exact_index(np.arange(length), resize.input_length, length, resize.scales)
    assert index.tolist() == expected
    one_hot = one_call(np.eye(length)[None], resize._replace(leading=(1, length)))[0]
    assert one_hot.argmax(axis=1).tolist() == expected
    assert np.all(one_hot.sum(axis=1) == 1)


def test_twin_by_hand():
    grad = np.array([[[1.0, 20, 300, 4000, 50000]]])
    literal = upsample_twin.upsample_nearest_exact1d_backward
    for twin in (literal, upsample_twin.upsample_nearest_exact1d_backward_quick):
        assert twin(grad, (1, 1, 3)).tolist() == [[[21, 300, 54000]]]
        assert twin(grad, (1, 1, 3), 1.0).tolist() == [[[1, 20, 54300]]]
        assert twin(grad, (1, 1, 7)).tolist() == [[[1, 0, 20, 300, 4000, 0, 50000]]]


lengths = st.one_of(st.integers(1, 40), st.integers(1, 300))
scales = st.one_of(
    st.just(0.0), st.floats(0.02, 50), st.floats(0, exclude_min=True, allow_infinity=False),
    st.sampled_from([5e-324, 1e300]),
)  # fmt: skip
resizes = st.builds(Resize, lengths, lengths, scales, st.sampled_from([(1, 1), (1, 3), (2, 2), (3, 1)]))
seeds = st.integers(0, 2**32 - 1)


@given(resizes)
def test_map_is_monotone_and_stays_inside(resize):
    length = resize.output_length
    index = upsample_twin.nearest_exact_index(np.arange(length), resize.input_length, length, resize.scales)
    assert 0 <= index[0] <= index[-1] < resize.input_length
    assert np.all(np.diff(index) >= 0)


@given(resizes, seeds)
def test_is_the_adjoint_of_the_forward(resize, seed):
    rng = np.random.default_rng(seed)
    x, y = rng.standard_normal(resize.input_size), resize.gradients(rng, "float64")
    forward = upsample_twin.upsample_nearest_exact1d(x, resize.output_length, resize.scales)
    backward = upsample_twin.upsample_nearest_exact1d_backward(y, x.shape, resize.scales)
    quick = upsample_twin.upsample_nearest_exact1d_backward_quick(y, x.shape, resize.scales)
    tolerance = 1e-13 * (np.vdot(abs(forward), abs(y)) + 1)
    for gradient in (backward, quick, one_call(y, resize), two_phase(y, resize)):
        assert abs(np.vdot(forward, y) - np.vdot(x, gradient)) <= tolerance
        np.testing.assert_allclose(gradient, backward, rtol=0, atol=tolerance)


# ---- the index map ---------------------------------------------------------------------------------------------------

SCALES = [0.0, 0.1, 0.37, 0.7, 1.0, 1.5, 2.6, 1 / 3, 11 / 26, 26 / 11, 41 / 2, 50.0]


@pytest.mark.parametrize("scales", SCALES)
def test_every_small_pair_of_lengths(scales, step):
    """All pairs up to 64: one gradient a row shows the map itself, whole numbers show exact sums in every dtype."""
    rng = np.random.default_rng(5)
    wrong = []
    for before, after in list(product(range(1, 65), repeat=2))[::step]:
        resize = Resize(before, after, scales, (1, after))
        index = upsample_twin.nearest_exact_index(np.arange(after), before, after, scales)
        one_hot = np.zeros((1, after, before), np.float32)
        one_hot[0, np.arange(after), index] = 1
        good = np.array_equal(one_call(np.eye(after, dtype=np.float32)[None], resize), one_hot)
        whole = rng.integers(-255, 256, (1, 2, after)).astype(np.float32)
        resize = resize._replace(leading=(1, 2))
        sums = upsample_twin.upsample_nearest_exact1d_backward_quick(whole, resize.input_size, scales, np.float32)
        for dtype in DTYPES.values():
            good = good and np.array_equal(one_call(whole.astype(dtype), resize), sums.astype(dtype))
        if not good:
            wrong.append((before, after))
    assert not wrong


@every_dtype
@pytest.mark.parametrize("scales", [5e-324, 1e-310, 1e-40, 3e-39, 1e-9, 0.01, 51.0, 1e9, 3e38, 1e39, 1e300, 1.7e308])
def test_no_index_leaves_the_row(scales, dtype, rng):
    for before, after in [(1, 9), (2, 300), (40, 40), (300, 17), (2, 5000)]:
        resize = Resize(before, after, scales)
        values = resize.gradients(rng, dtype)
        grad = guarded_copy(values, "columns_cropped")
        out = Guarded(resize.input_size, DTYPES[dtype], "columns_cropped")
        two_phase(grad.view, resize, out.view)
        out.assert_outside_untouched()
        assert_is_right(out.view, values, resize)
        covered = 0 if scales > 1e4 else before - 1
        if not 1e-4 < scales < 1e4:  # all into the first element, or all into the last
            assert np.all(np.delete(out.view, covered, axis=-1) == 0)


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_scales_of_negative_zero_and_none_are_zero(dtype, rng):
    resize = Resize(20, 33)
    grad = resize.gradients(rng, dtype)
    expected = two_phase(grad, resize)
    assert_same_bytes(two_phase(grad, resize._replace(scales=-0.0)), expected)
    for none in (None, 0.0, -0.0, 0):
        result = aclnn_bw.upsample_nearest_exact1d_backward(grad, [33], resize.input_size, none)
        assert_same_bytes(result, expected)
    assert_same_bytes(aclnn_bw.upsample_nearest_exact1d_backward(grad, 33, resize.input_size), expected)


def test_rows_beyond_the_integers_of_float32():
    """From 2**23 on, j + 0.5 is a tie in float32: even where the lengths are equal the map is no identity."""
    length = 2**24 + 5
    index = upsample_twin.nearest_exact_index(np.arange(length), length, length)
    assert not np.array_equal(index, np.arange(length))
    weights = 1 + np.arange(length) % 5
    grad = weights.astype(np.float32)[None, None]
    for resize in (Resize(length, length, 0.0, (1, 1)), Resize(2**23 + 9, length, 1.7, (1, 1))):
        if resize.scales:
            index = upsample_twin.nearest_exact_index(np.arange(length), resize.input_length, length, resize.scales)
        result = one_call(grad, resize)[0, 0]
        assert np.array_equal(result, np.bincount(index, weights, resize.input_length))


# ---- every entry point against the twin ------------------------------------------------------------------------------


@every_dtype
@every_kind
def test_kinds(resize, dtype, rng):
    check_both_entry_points(resize, dtype, rng)


@every_dtype
@every_large
def test_large(resize, dtype, rng):
    check_both_entry_points(resize, dtype, rng)


def every_width(up, down):
    """Ratios of about up : down at input lengths around all vector lengths, with all remainders behind them."""
    for length in [*range(1, 36), 47, 48, 49, 63, 64, 65, 66, 127, 128, 129, 257]:
        yield Resize(length, max(1, length * up // down), 0.0, (1, 2))


RATIOS = [*((up, 1) for up in (1, 2, 3, 4, 5, 8)), (3, 2), (5, 3), (7, 4), (1, 2), (1, 3), (1, 4), (2, 3), (9, 11)]


@every_dtype
@pytest.mark.parametrize(("up", "down"), RATIOS)
def test_every_width(up, down, dtype, rng):
    for resize in every_width(up, down):
        check_both_entry_points(resize, dtype, rng)


@settings(max_examples=300)
@given(
    resizes, st.sampled_from(list(DTYPES)), seeds, st.sampled_from(list(LAYOUTS)), st.sampled_from(list(LAYOUTS)),
    st.integers(0, 5), st.integers(0, 5),
)  # fmt: skip
def test_any_geometry_in_any_layout(resize, dtype, seed, layout, out_layout, offset, out_offset):
    values = resize.gradients(np.random.default_rng(seed), dtype)
    grad = guarded_copy(values, layout, offset)
    before = grad.buffer.tobytes()
    out = Guarded(resize.input_size, values.dtype, out_layout, out_offset)
    two_phase(grad.view, resize, out.view)
    out.assert_outside_untouched()
    assert grad.buffer.tobytes() == before
    assert_is_right(out.view, values, resize)
    assert_same_bytes(one_call(values, resize), out.view)


# Of several groups of channels and blocks; short rows, many sources to a target, and few; a block too large to pack.
SIDES = [
    Resize(900, 1800, leading=(2, 3)), Resize(700, 350, leading=(1, 140)), Resize(40, 52, leading=(2, 130)),
    Resize(300, 1500, leading=(1, 70)), Resize(33, 1000, leading=(1, 65)), Resize(16, 8, leading=(3, 150)),
    Resize(2000, 21, leading=(2, 70)), Resize(3001, 3000, leading=(1, 70)), Resize(90, 100, 1.7, leading=(1, 40)),
    Resize(4099, 40001, leading=(1, 130)),
]  # fmt: skip


@every_dtype
@pytest.mark.parametrize("resize", SIDES, ids=str)
def test_channels_last(resize, dtype, rng):
    grad = resize.gradients(rng, dtype)
    wanted = one_call(grad, resize)
    assert_sides_alike(lambda grad, out: two_phase(grad, resize, out), grad, wanted)


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@every_kind
def test_same_bytes_on_ascend910b(resize, dtype, rng):
    grad = resize.gradients(rng, dtype)
    if resize.is_portable:
        assert_same_bytes(two_phase(grad, resize, on="Ascend910B"), two_phase(grad, resize))
    else:
        with pytest.raises(aclnn_bw.AclnnError, match="50"):
            two_phase(grad, resize, on="Ascend910B")


# ---- sums and roundings ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", HALF_TYPES)
def test_sums_of_16_bit_types_are_rounded_once(dtype):
    bits = {"float16": 10, "bfloat16": 7}[dtype]
    eps = 2.0**-bits
    rows = {
        # All but the two plain ties come out otherwise where the sum is rounded after each term.
        (1, eps / 2, eps / 2): 1 + eps,
        (1 + eps, -eps / 4, -eps / 4): 1,
        (1 + eps, eps / 4, eps / 4): 1 + 2 * eps,
        (1, eps / 2, eps / 2**10): 1 + eps,
        (1, eps / 2, 0): 1,
        (1 + eps, eps / 2, 0): 1 + 2 * eps,
        (4096, 1, -4096): 1,
    }
    grad = np.array(list(rows)).astype(DTYPES[dtype])[None]
    for length in (1, 20):
        tiled = np.tile(grad, length)
        result = one_call(tiled, Resize(length, 3 * length, 0.0, grad.shape[:2]))
        expected = np.repeat(np.array(list(rows.values()))[None, :, None], length, axis=-1)
        assert_same_bytes(result, expected.astype(DTYPES[dtype]))


def test_float16_sums_may_pass_its_range():
    big = np.array([[[65504.0, 65504, -65504], [65504, 65504, 0], [-65504, -16, 0], [65504, 15, 0]]], np.float16)
    expected = np.array([[[65504], [np.inf], [-np.inf], [65504]]], np.float16)
    assert_same_bytes(one_call(big, Resize(1, 3, 0.0, (1, 4))), expected)


@every_dtype
@every_kind
def test_exact_sums_bit_by_bit(resize, dtype, rng):
    """Where no rounding but the last can occur, that one decides every bit."""
    fraction = {"float32": 10, "float64": 10, "float16": 10, "bfloat16": 7}[dtype]
    whole = rng.integers(2**fraction, 2 ** (fraction + 1), (*resize.leading, resize.output_length))
    grad = whole * rng.choice([-1, 1], whole.shape) * 2.0**-fraction
    exact = upsample_twin.upsample_nearest_exact1d_backward_quick(grad, resize.input_size, resize.scales)
    assert np.all(exact.astype(np.float32) == exact)
    rounding = {"float16": reference.round_float16, "bfloat16": reference.round_bfloat16}.get(dtype, np.float64)
    assert_same_bytes(one_call(grad.astype(DTYPES[dtype]), resize), rounding(exact).astype(DTYPES[dtype]))


@pytest.mark.parametrize("dtype", HALF_TYPES)
def test_every_16_bit_pattern(dtype):
    patterns = np.arange(2**16, dtype=np.uint16).view(DTYPES[dtype]).reshape(1, 256, 256)
    plain = patterns.copy()
    plain.view(np.uint16)[plain.view(np.uint16) == 0x8000] = 0  # zeros lose their sign
    assert_same_bytes(one_call(patterns, Resize(256, 256, 0.0, (1, 256))), plain)
    spread = one_call(patterns, Resize(512, 256, 0.0, (1, 256)))
    assert_same_bytes(spread[..., 1::2], plain)
    assert not spread[..., ::2].view(np.uint16).any()


@every_dtype
@every_kind
def test_zeros_have_no_sign(resize, dtype, rng):
    grad = np.full((*resize.leading, resize.output_length), -0.0).astype(DTYPES[dtype])
    assert not one_call(grad, resize).view(np.uint8).any()
    units = rng.integers(-1, 2, grad.shape).astype(grad.dtype)
    smallest = grad.dtype.type(SMALLEST[dtype])
    assert_no_negative_zero(one_call(units, resize))
    assert_no_negative_zero(one_call(np.where(units == 0, -grad.dtype.type(0), units * smallest), resize))


@every_dtype
@every_kind
def test_subnormal_sums_bit_by_bit(resize, dtype, rng):
    whole = rng.integers(-3, 4, (*resize.leading, resize.output_length))
    expected = upsample_twin.upsample_nearest_exact1d_backward_quick(whole, resize.input_size, resize.scales)
    grad, expected = ((values * SMALLEST[dtype]).astype(DTYPES[dtype]) for values in (whole, expected))
    assert_same_bytes(one_call(grad, resize), expected)


@every_dtype
@every_kind
def test_nan_and_inf_reach_exactly_their_elements(resize, dtype, rng):
    clean = resize.gradients(rng, dtype)
    length = resize.output_length
    for place, value in product({0, length - 1, *map(int, rng.integers(length, size=3))}, (np.nan, np.inf, -np.inf)):
        marked = clean.copy()
        marked[1, 2, place] = value
        reached = np.zeros(resize.input_size, bool)
        reached[1, 2, upsample_twin.nearest_exact_index(place, resize.input_length, length, resize.scales)] = True
        result, without = one_call(marked, resize), one_call(clean, resize)
        assert_same_bytes(result[~reached], without[~reached])
        assert_same_bytes(result[reached], np.full_like(result[reached], value))


@every_dtype
@every_large
def test_many_specials_in_large_rows(resize, dtype, rng):
    grad = sprinkled(resize.gradients(rng, dtype), rng, 0.02)
    assert_is_right(one_call(grad, resize), grad, resize)


# ---- the same bytes, whatever ... ------------------------------------------------------------------------------------


@every_dtype
@every_kind
def test_same_bytes_whatever_batch_and_channels(resize, dtype, rng):
    resize = resize._replace(leading=(3, 5))
    grad = resize.gradients(rng, dtype)
    whole = two_phase(grad, resize)
    for n, c in ((0, 0), (1, 3), (2, 4)):
        alone = one_call(grad[n : n + 1, c : c + 1], resize._replace(leading=(1, 1)))
        assert_same_bytes(alone[0, 0], whole[n, c])
    as_batch = one_call(grad.reshape(15, 1, -1), resize._replace(leading=(15, 1)))
    assert_same_bytes(as_batch.reshape(whole.shape), whole)


@every_dtype
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("resize", [*KINDS[::4], LARGE[2], LARGE[8]], ids=str)
def test_same_bytes_whatever_layout(resize, layout, dtype, rng):
    values = resize.gradients(rng, dtype)
    plain = two_phase(values, resize)
    for offset in (1,) if resize in LARGE else (0, 1, 3):
        grad = guarded_copy(values, layout, offset)
        before = grad.buffer.tobytes()
        assert_same_bytes(two_phase(grad.view, resize), plain)
        assert grad.buffer.tobytes() == before
        out = Guarded(resize.input_size, values.dtype, layout, offset)
        assert one_call(values, resize, out=out.view) is out.view
        assert_same_bytes(out.view, plain)
        out.assert_outside_untouched()


# Channels side by side: fewer than a block of a transposition, blocks with a rest, several cache lines of them; rows
# of several blocks, maps with and without a period, long stretches, and more sources to a target than are packed.
MANY_CHANNELS = [
    Resize(30, 60, 0.0, (2, 3)),
    Resize(33, 21, 0.0, (3, 20)),
    Resize(100, 61, 0.7, (2, 37)),
    Resize(1000, 3000, 0.0, (1, 70)),
    Resize(5000, 9001, 0.0, (1, 16)),
    Resize(9000, 4500, 0.0, (1, 8)),
    Resize(70, 900, 0.0, (2, 33)),
    Resize(3, 50_000, 0.0, (1, 18)),
    Resize(70_000, 80_000, 1.1, (1, 5)),
    Resize(900, 12, 0.0, (2, 33)),
    Resize(9_001, 100, 0.0, (1, 18)),
]


@every_dtype
@pytest.mark.parametrize("resize", MANY_CHANNELS, ids=str)
def test_same_bytes_with_channels_side_by_side(resize, dtype, rng):
    values = sprinkled(resize.gradients(rng, dtype), rng)
    plain = two_phase(values, resize)
    layouts = ("contiguous", "planes_transposed", "columns_cropped")
    for layout, out_layout, threads in product(layouts, layouts, (1, 3)):
        grad, out = guarded_copy(values, layout, 1), Guarded(resize.input_size, values.dtype, out_layout, 1)
        with aclnn_bw.num_threads(threads):
            two_phase(grad.view, resize, out.view)
        assert_same_bytes(out.view, plain)
        out.assert_outside_untouched()


@every_dtype
@pytest.mark.parametrize("layout", ["contiguous", "planes_transposed"])
def test_same_bytes_beyond_the_cache(layout, dtype, rng):
    channels = 34 * 2**20 // (1750 * DTYPES[dtype].itemsize)
    resize = Resize(1000, 750, 0.0, (1, channels))
    values = normal(rng, (1, 4, 750), DTYPES[dtype])
    few = one_call(values, Resize(1000, 750, 0.0, (1, 4)))
    grad = guarded_copy(np.resize(values, (1, channels, 750)), layout, 1)
    assert_same_bytes(two_phase(grad.view, resize), np.resize(few, resize.input_size))


@every_dtype
@pytest.mark.parametrize("layout", ["contiguous", "columns_cropped"])
@pytest.mark.parametrize("lengths", [(4099, 2050), (1001, 1001), (333, 777), (5, 1301), (70001, 90001)], ids=str)
def test_results_past_the_caches(lengths, layout, dtype, rng):
    """Rows begin and end anywhere in a cache line; one thread goes on where another ended."""
    sources, targets = lengths
    rows = (97 << 20) // (sum(lengths) * DTYPES[dtype].itemsize) + 1
    values = normal(rng, (1, 5, sources), DTYPES[dtype])
    few = one_call(values, Resize(targets, sources, 0.0, (1, 5)))
    grad = np.resize(values, (1, rows, sources))
    resize = Resize(targets, sources, 0.0, (1, rows))
    for threads, offset in ((1, 1), (3, 0)):
        out = Guarded(resize.input_size, values.dtype, layout, offset)
        with aclnn_bw.num_threads(threads):
            two_phase(grad, resize, out.view)
        assert_same_bytes(out.view, np.resize(few, resize.input_size))
        out.assert_outside_untouched()


@every_dtype
@every_kind
def test_same_bytes_from_broadcast_inputs(resize, dtype, rng):
    shape = (*resize.leading, resize.output_length)
    for kept in ((1, 1, shape[2]), (shape[0], 1, shape[2]), (1, shape[1], 1), (1, 1, 1)):
        view = np.broadcast_to(normal(rng, kept, DTYPES[dtype]), shape)
        plain = two_phase(view.copy(), resize)
        assert_same_bytes(two_phase(view, resize), plain)
        assert_same_bytes(one_call(view, resize), plain)


@every_dtype
@every_large
def test_same_bytes_at_every_thread_count(resize, dtype, rng):
    grad = resize.gradients(rng, dtype)
    strided = guarded_copy(grad, "every_third_column_reversed", 1).view
    results = []
    for threads in (1, 2, 3, 4):
        with aclnn_bw.num_threads(threads):
            results += [two_phase(grad, resize), one_call(grad, resize), one_call(strided, resize)]
    for result in results[1:]:
        assert_same_bytes(result, results[0])


@every_dtype
@pytest.mark.parametrize("resize", [*KINDS[::2], LARGE[0], LARGE[8]], ids=str)
def test_same_bytes_from_streams_and_repeatable_executors(resize, dtype, rng):
    grad = resize.gradients(rng, dtype)
    plain = two_phase(grad, resize)
    stream = aclnn_bw.aclrtCreateStream()
    try:
        assert_same_bytes(two_phase(grad, resize, stream=stream), plain)
    finally:
        aclnn_bw.aclrtDestroyStream(stream)

    scaled, out = grad.copy(), np.empty_like(plain)
    with aclnn_bw.soc("Host"):
        size, executor = aclnn_bw.aclnnUpsampleNearestExact1dBackwardGetWorkspaceSize(
            scaled, [resize.output_length], resize.input_size, resize.scales, out
        )
    aclnn_bw.aclSetAclOpExecutorRepeatable(executor)
    for factor in np.array([1, 4, 2]).astype(grad.dtype):  # powers of two: exact
        scaled[...], out[...] = grad * factor, np.nan
        aclnn_bw.aclnnUpsampleNearestExact1dBackward(bytearray(size), size, executor)
        assert_same_bytes(out, plain * factor)
    aclnn_bw.aclDestroyAclOpExecutor(executor)


def test_inputs_of_many_kinds(rng):
    """Both formats through handles, read-only memory, other buffers; the sizes in any integer type."""
    resize = Resize(10, 17)
    grad = resize.gradients(rng, "float32")
    grad.flags.writeable = False
    expected = two_phase(grad, resize)
    for fmt, sizes in product((aclnn_bw.ACL_FORMAT_NCL, aclnn_bw.ACL_FORMAT_ND), (list, np.array, tuple)):
        out = np.empty_like(expected)
        tensors = [
            aclnn_bw.aclCreateTensor(array.shape, aclnn_bw.ACL_FLOAT, None, 0, fmt, array.shape, array)
            for array in (grad, out)
        ]
        run_two_phase("UpsampleNearestExact1dBackward", tensors[0], sizes([17]), sizes([2, 3, 10]), 0, tensors[1])
        assert_same_bytes(out, expected)
    lengths = aclnn_bw.aclCreateIntArray([17], 1), aclnn_bw.aclCreateIntArray([2, 3, 10], 3)
    out = np.empty_like(expected)
    run_two_phase("UpsampleNearestExact1dBackward", grad, *lengths, np.float32(0), out)
    assert_same_bytes(out, expected)


# ---- memory ----------------------------------------------------------------------------------------------------------


@every_dtype
@pytest.mark.parametrize("far_axis", [0, 1, 2], ids=["images", "channels", "columns"])
def test_offsets_beyond_32_bits(far_axis, dtype, rng, tmp_path):
    resize = Resize(5, 7)
    values = resize.gradients(rng, dtype)
    grad, out = far_apart(tmp_path, (values.shape, resize.input_size), values.dtype, far_axis)
    grad[...] = values
    two_phase(grad, resize, out)
    assert_same_bytes(out, two_phase(values, resize))


class HeapInfo(ctypes.Structure):
    _fields_ = [(name, ctypes.c_size_t) for name in ["arena", *"bcd", "hblkhd", *"fg", "uordblks", *"ij"]]


def bytes_in_use():
    mallinfo2 = getattr(ctypes.CDLL(None), "mallinfo2", None)
    if mallinfo2 is None:
        pytest.skip("this C library does not count its heap")
    mallinfo2.restype = HeapInfo
    info = mallinfo2()
    return info.hblkhd + info.uordblks


@pytest.mark.parametrize(
    "resize",
    [
        Resize(2**22 + 1, 2**23 + 3, 0.0, (1, 1)),
        Resize(2**24 + 1, 2**23, 0.0, (1, 1)),
        Resize(2**24, 2**24, 1.3, (2**12, 2**10)),
        Resize(1, 2**26, 0.0, (2**8, 2**8)),
        Resize(2**26, 1, 0.0, (2**8, 2**8)),
    ],
    ids=str,
)
def test_long_rows_need_little_memory(resize):
    """Phase 1 of tensors without data: its tables stay below 16 MiB, the workspace within its bound."""
    shapes = (*resize.leading, resize.output_length), resize.input_size
    tensors = [aclnn_bw.aclCreateTensor(s, aclnn_bw.ACL_BF16, None, 0, aclnn_bw.ACL_FORMAT_ND, s, None) for s in shapes]
    before = bytes_in_use()
    with aclnn_bw.soc("Host"):
        size, executor = aclnn_bw.aclnnUpsampleNearestExact1dBackwardGetWorkspaceSize(
            tensors[0], [resize.output_length], resize.input_size, resize.scales, tensors[1]
        )
    assert bytes_in_use() - before < 16 * 2**20
    assert size <= aclnn_bw.get_num_threads() * (2 * 2**20 + 64 * max(resize[:2]))
    assert isinstance(executor, aclnn_bw.aclOpExecutor)


def spaced_rows_at_fence(memory, shape, dtype, at_end):
    """Rows with three elements between them, but none after the last."""
    pitch = shape[-1] + 3
    size = ((np.prod(shape[:-1]) - 1) * pitch + shape[-1]) * dtype.itemsize
    flat = (memory[-size:] if at_end else memory[:size]).view(dtype)
    strides = (shape[1] * pitch, pitch, 1)
    return np.lib.stride_tricks.as_strided(flat, shape, [stride * dtype.itemsize for stride in strides])


def run_at_fences(step):
    """Every `step`-th call, arrays at fences; the last line printed names the call that ended the process."""
    layouts = [*product(("contiguous", "channels_last", "all_reversed"), (1, 2)), ("planes_transposed", 1)]
    layouts += [("rows_reversed", 1), ("spaced_rows",)]
    cases = [*product(KINDS, layouts, (False, True))]
    cases += product((resize for ratio in RATIOS for resize in every_width(*ratio)), layouts[::8], (True,))
    cases += product(LARGE, layouts[:1], (False, True))
    cases += product(MANY_CHANNELS[:5], [("planes_transposed", 1)], (False, True))
    memories = [fenced(2**24) for _ in range(3)]
    for (resize, layout, at_end), dtype in islice(product(cases, DTYPES), 0, None, step):
        print(resize, dtype, *layout, "end" if at_end else "begin", flush=True)
        values = resize.gradients(np.random.default_rng(7), dtype)
        grad, out = (
            spaced_rows_at_fence(memory, shape, values.dtype, at_end) if layout == ("spaced_rows",)
            else at_fence(memory, shape, values.dtype, *layout, at_end)
            for memory, shape in zip(memories, (values.shape, resize.input_size), strict=False)
        )
        grad[...] = values
        for least in EITHER_WAY:
            with aclnn_bw.soc("Host"), past_the_caches(least):
                size, executor = aclnn_bw.aclnnUpsampleNearestExact1dBackwardGetWorkspaceSize(
                    grad, [resize.output_length], resize.input_size, resize.scales, out
                )
            workspace = memories[2][-size:] if at_end else memories[2][:size]
            aclnn_bw.aclnnUpsampleNearestExact1dBackward(workspace if size else None, size, executor)
            assert_same_bytes(out, one_call(values, resize))
    print("done")


@pytest.mark.skipif(os.name != "posix", reason="needs mprotect")
@pytest.mark.parametrize("isa", ["v2", "v3", "v4"])
def test_nothing_beyond_the_arrays_is_touched(isa, tmp_path, step):
    require_isa(isa)
    code = f"from test_upsample_nearest_exact1d import run_at_fences; run_at_fences({step})"
    assert run_python(code, tmp_path, ACLNN_BW_ISA=isa).endswith("\ndone\n")


# ---- instruction sets ------------------------------------------------------------------------------------------------


def digests(step=1):
    """A hash of the result of each of many calls, by the name of the call; of every `step`-th one."""
    found = {}
    for index, (resize, dtype) in islice(enumerate(product([*KINDS, *LARGE], DTYPES)), 0, None, step):
        rng = np.random.default_rng(index)
        grad = resize.gradients(rng, dtype)
        layout = list(LAYOUTS)[index % len(LAYOUTS)]
        out = Guarded(resize.input_size, grad.dtype, layout, 1).view
        two_phase(guarded_copy(grad, layout, 1).view, resize, out)
        tiny = (grad.astype(np.float64) * SMALLEST[dtype] * 2**9).astype(grad.dtype)
        results = [two_phase(values, resize) for values in (grad, sprinkled(grad, rng), tiny)]
        found[f"{resize} {dtype} {layout}"] = digest(*results, out)
    for ratio, dtype in islice(product(RATIOS, DTYPES), 0, None, step):
        rng = np.random.default_rng(ratio)
        results = [two_phase(sprinkled(r.gradients(rng, dtype), rng), r) for r in every_width(*ratio)]
        found[f"every width of {ratio} {dtype}"] = digest(*results)
    return found


@pytest.fixture(scope="module")
def own_digests(step):
    return digests(step)


CHILD = """
import json, aclnn_bw
from test_upsample_nearest_exact1d import digests
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
