"""MaxPool2dWithMask, the forward: values and masks, exactly, against the twin."""

import json
import os
from itertools import islice, product
from math import ceil

import numpy as np
import pytest
import reference
from helpers import (
    DTYPES,
    LAYOUTS,
    Guarded,
    assert_same_bytes,
    at_fence,
    digest,
    far_apart,
    fenced,
    guarded_copy,
    require_isa,
    run_python,
    sprinkled,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from operators import max_pool
from operators.max_pool import MASK_LAYOUTS, MAX_POOL_MODES
from operators.max_pool import Pool as MaxPool
from operators.max_pool import max_pool2d_two_phase as two_phase
from test_max_pool2d import KINDS, LARGE, WINDOWS, a_third, any_pool, every_width, layouts, offsets, seeds

import aclnn_bw

one_call = aclnn_bw.max_pool2d_with_mask
BYTE = np.dtype(np.int8)

every_dtype = pytest.mark.parametrize("dtype", DTYPES)
every_mode = pytest.mark.parametrize("mode", MAX_POOL_MODES, ids="-".join)
every_mask_layout = pytest.mark.parametrize("mask_layout", MASK_LAYOUTS)
every_kind = pytest.mark.parametrize("pool", KINDS, ids=str)
every_large = pytest.mark.parametrize("pool", LARGE, ids=str)


def assert_same_mask(mask, expected):
    """The whole container: a writer zeroes what nobody reads."""
    assert mask.shape == expected.shape
    assert mask.dtype == np.int8
    differ = np.flatnonzero(np.ravel(mask) != np.ravel(expected))
    assert differ.size == 0, f"{differ.size} of {mask.size} bytes differ, the first is byte {differ[0]}"


def expected_of(pool, x, product="Host"):
    """(out, indices) of the twin; Ascend910 rounds float32 to float16 before it compares."""
    with np.errstate(invalid="ignore"):  # of signalling NaN
        wide = x.astype(np.float64)
    if product == "Ascend910" and x.dtype == np.float32:
        wide = reference.round_float16(wide)
    out, indices = max_pool.max_pool2d(wide, *pool[1:])
    with np.errstate(invalid="ignore"):
        return out.astype(x.dtype), indices


def tied(pool, rng, dtype):
    """Small integers: most windows have several maxima."""
    return rng.integers(-2, 2, pool.input_shape).astype(DTYPES[dtype])


def check_all_entry_points(pool, mode, x, shift=0):
    product, _ = mode
    out, indices = expected_of(pool, x, product)
    for layout in MASK_LAYOUTS:
        mask = pool.mask(indices, layout)
        written, written_mask = Guarded(out.shape, out.dtype), Guarded(mask.shape, BYTE, "contiguous", shift)
        two_phase(pool, x, product, layout, written.view, written_mask.view)
        results = [(written.view, written_mask.view)]
        written.assert_outside_untouched()
        written_mask.assert_outside_untouched()
        if product == "Host":
            results.append(one_call(x, *pool.attributes, mask_layout=layout))
            assert all(array.flags.c_contiguous for array in results[-1])
        for result, result_mask in results:
            assert_same_bytes(result, out)
            assert_same_mask(result_mask, mask)


@every_mask_layout
def test_worked_example(mask_layout):
    x = np.arange(16, dtype=np.float32).reshape(1, 1, 4, 4)
    expected = np.zeros((1, 1, 4, 64), np.int8)
    if mask_layout == "bitmask":
        expected.reshape(-1).view("<u2")[3 * 32 : 3 * 32 + 4] = 1
    else:
        expected.reshape(-1).view("<i4")[:4] = [5, 7, 13, 15]
    for out, mask in (
        one_call(x, 2, mask_layout=mask_layout),
        two_phase(MaxPool(x.shape, 2), x, "Ascend910B", mask_layout),
        two_phase(MaxPool(x.shape, 2), x, "Ascend310P", mask_layout),
    ):
        assert out[0, 0].tolist() == [[5, 7], [13, 15]]
        assert_same_mask(mask, expected)


def test_arguments_by_name_and_by_default():
    x = np.arange(25, dtype=np.float32).reshape(1, 5, 5)
    plain = one_call(x, 2)
    by_name = {"stride": (2, 2), "padding": [0, 0], "dilation": (1, 1), "ceil_mode": False, "mask_layout": "bitmask"}
    for result, expected in zip(one_call(self=x, kernel_size=np.int64(2), **by_name), plain, strict=True):
        assert np.array_equal(result, expected)
    assert one_call(x, 2, None, 1, 1, True)[0].shape == (1, 3, 3)


@every_mode
@every_kind
def test_kinds(pool, mode, rng):
    check_all_entry_points(pool, mode, pool.values(rng, mode[1]))
    check_all_entry_points(pool, mode, tied(pool, rng, mode[1]), 1)
    pool = pool._replace(input_shape=pool.input_shape[1:])
    check_all_entry_points(pool, mode, sprinkled(pool.values(rng, mode[1]), rng), 3)


@every_mode
@every_large
def test_large(pool, mode, rng):
    check_all_entry_points(pool, mode, sprinkled(tied(pool, rng, mode[1]), rng, 0.01), 5)


@every_dtype
@pytest.mark.parametrize("kernel", range(1, 6))
def test_every_kernel_stride_and_padding(kernel, dtype, rng):
    attributes = product(range(1, kernel + 3), range(kernel // 2 + 1), (False, True))
    for index, (stride, padding, ceil_mode) in enumerate(attributes):
        shape = (1, (1, 2, 18)[index % 3], kernel + 3 + index % 9, 2 * kernel + 2 + index % 19)
        pool = MaxPool(shape, kernel, stride, padding, ceil_mode)
        check_all_entry_points(pool, ("Host", dtype), sprinkled(tied(pool, rng, dtype), rng), index % 8)


@every_dtype
@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("window", [(3, 2), (2, 5), (7, 7, 3), (5, 8, 2)], ids=str)
def test_images_of_few_channels(window, threads, dtype, rng):
    """As many as have 16 channels together are worked on at a time; the last of them may be fewer."""
    for channels, planes in product((1, 2, 3, 5, 7, 8, 9), (2, 16, 35)):
        pool = MaxPool((ceil(planes / channels), channels, 15, 8), *window)
        with aclnn_bw.num_threads(threads):
            check_all_entry_points(pool, ("Host", dtype), sprinkled(tied(pool, rng, dtype), rng), channels)


@pytest.mark.parametrize("shift", [0, 1, 63])
@pytest.mark.parametrize("threads", [1, 3])
def test_zeros_past_the_caches(threads, shift, rng):
    """Each unit's share of them is streamed, but for the lines in which it begins and ends."""
    pool = MaxPool((2, 1700, 9, 9), 9)
    assert np.prod(pool.mask_shape) > 1 << 24
    with aclnn_bw.num_threads(threads):
        check_all_entry_points(pool, ("Host", "float32"), pool.values(rng, "float32"), shift)


@every_dtype
@pytest.mark.parametrize("window", WINDOWS, ids=str)
def test_every_width(window, dtype, rng):
    for pool in every_width(*window):
        x = sprinkled(pool.values(rng, dtype), rng)
        check_all_entry_points(pool, ("Host", dtype), x, pool.input_shape[-1] % 8)


@every_dtype
def test_rows_of_more_windows_than_are_coded(dtype, rng):
    pool = MaxPool((1, 3, 2, 65538), (2, 3), 1, (1, 1))
    check_all_entry_points(pool, ("Host", dtype), tied(pool, rng, dtype))


@settings(max_examples=200)
@given(
    any_pool(), st.sampled_from(MAX_POOL_MODES), seeds, layouts, layouts, offsets, offsets,
    st.sampled_from(MASK_LAYOUTS),
)  # fmt: skip
def test_any_geometry_in_any_layout(pool, mode, seed, layout, out_layout, offset, out_offset, mask_layout):
    product, dtype = mode
    rng = np.random.default_rng(seed)
    values = sprinkled((tied(pool, rng, dtype), pool.values(rng, dtype))[seed % 2], rng)
    x = guarded_copy(values, layout, offset)
    before = x.buffer.tobytes()
    out, mask = Guarded(pool.output_shape, x.view.dtype, out_layout, out_offset), Guarded(pool.mask_shape, BYTE)
    two_phase(pool, x.view, product, mask_layout, out.view, mask.view)
    out.assert_outside_untouched()
    mask.assert_outside_untouched()
    assert x.buffer.tobytes() == before
    expected, indices = expected_of(pool, values, product)
    assert_same_bytes(out.view, expected)
    assert_same_mask(mask.view, pool.mask(indices, mask_layout))


@every_mask_layout
@every_dtype
def test_empty_batch(dtype, mask_layout):
    pool = MaxPool((0, 3, 8, 9), 3, 2, 1)
    x, out = (np.empty(shape, DTYPES[dtype]) for shape in (pool.input_shape, pool.output_shape))
    with aclnn_bw.soc("Host", mask_layout=mask_layout):
        size, executor = aclnn_bw.aclnnMaxPool2dWithMaskGetWorkspaceSize(
            x, *pool.lists, out, np.empty(pool.mask_shape, np.int8)
        )
    assert size == 0
    aclnn_bw.aclnnMaxPool2dWithMask(None, 0, executor)
    out, mask = one_call(x, *pool.attributes, mask_layout=mask_layout)
    assert (out.shape, out.dtype) == (pool.output_shape, DTYPES[dtype])
    assert (mask.shape, mask.dtype) == (pool.mask_shape, BYTE)


# ---- which maximum ---------------------------------------------------------------------------------------------------


def index_of_maximum(window, dtype, product="Host"):
    """(value, position) of a plane that is one window, as every entry and both layouts have it."""
    x = np.array(window, dtype)[None]
    pool = MaxPool(x.shape, x.shape[-2:])
    found = set()
    for layout in MASK_LAYOUTS:
        out, mask = two_phase(pool, x, product, layout)
        place = aclnn_bw.mask_to_indices(mask, *pool[:2], mask_layout=layout)
        found.add((np.float64(out[0, 0, 0]).tobytes(), int(place[0, 0, 0])))
    assert len(found) == 1
    value, place = found.pop()
    return float(np.frombuffer(value)[0]), place


@every_dtype
def test_ties_nan_and_infinities_by_hand(dtype):
    dtype, nan, inf = DTYPES[dtype], np.nan, np.inf
    assert index_of_maximum([[1, 3], [3, 2]], dtype) == (3, 1)
    assert index_of_maximum([[-inf, -inf], [-inf, -inf]], dtype) == (-inf, 0)
    assert index_of_maximum([[-inf, -inf], [-inf, -5]], dtype) == (-5, 3)
    assert index_of_maximum([[1, inf, 2], [inf, 0, 5]], dtype) == (inf, 1)
    for window, place in (
        ([[nan, 9], [1, 2]], 0),
        ([[9, nan], [1, inf]], 1),
        ([[nan, 9], [nan, 2]], 2),
        ([[nan, nan], [nan, nan]], 3),
        ([[inf, -inf], [nan, inf]], 2),
    ):
        value, seen = index_of_maximum(window, dtype)
        assert np.isnan(value)
        assert seen == place
    # Zeros of either sign are equal: the first is taken, with its sign.
    for window in ([[-0.0, 0.0]], [[0.0, -0.0]]):
        value, place = index_of_maximum(window, dtype)
        assert (value, place, np.signbit(value)) == (0, 0, np.signbit(window[0][0]))


@every_dtype
@pytest.mark.parametrize("fill", [-np.inf, np.nan, 0.0])
@pytest.mark.parametrize("pool", [*KINDS, LARGE[6]], ids=str)
def test_planes_of_one_value(pool, fill, dtype):
    """The first position inside the image, of NaN the last; never the padding, which counts as -inf."""
    x = np.full(pool.input_shape, fill, DTYPES[dtype])
    check_all_entry_points(pool, ("Host", dtype), x)
    out, _ = one_call(x, *pool.attributes)
    assert np.all(np.isnan(out)) if np.isnan(fill) else np.all(out == x.flat[0])


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_every_16_bit_pattern(dtype, rng):
    patterns = np.arange(2**16, dtype=np.uint16).view(DTYPES[dtype])
    for x in (patterns, rng.permutation(patterns)):
        for pool in (MaxPool((1, 256, 256), 1), MaxPool((1, 256, 256), 2), MaxPool((1, 256, 256), 3, 2, 1)):
            check_all_entry_points(pool, ("Host", dtype), x.reshape(pool.input_shape))


@every_mask_layout
def test_ascend910_rounds_float32_to_float16_first(mask_layout, rng):
    """What is equal after rounding is a tie; out holds the rounded value."""
    tie = [[1.0, 1 + 2.0**-12], [1 - 2.0**-13, 0]]
    assert index_of_maximum(tie, np.float32, "Ascend910") == (1, 0)
    assert index_of_maximum(tie, np.float32, "Ascend910B") == (1 + 2.0**-12, 1)
    assert index_of_maximum([[65519.0, 65520.0], [1e30, np.inf]], np.float32, "Ascend910") == (np.inf, 1)
    assert index_of_maximum([[-1e30, -np.inf]], np.float32, "Ascend910") == (-np.inf, 0)
    assert index_of_maximum([[2.0**-26, 2.0**-25]], np.float32, "Ascend910") == (0, 0)
    pool = MaxPool((2, 18, 30, 41), 3, 2, 1)
    x = (rng.standard_normal(pool.input_shape) * 2.0 ** rng.integers(-28, 19, pool.input_shape)).astype(np.float32)
    check_all_entry_points(pool, ("Ascend910", "float32"), x)
    x = (1 + 2.0**-11 * rng.integers(-1, 2, pool.input_shape)).astype(np.float32)
    check_all_entry_points(pool, ("Ascend910", "float32"), x)


# ---- the same bytes, whatever ... ------------------------------------------------------------------------------------


@every_mask_layout
@every_mode
@pytest.mark.parametrize("layout", LAYOUTS)
def test_same_bytes_whatever_layout(layout, mode, mask_layout, rng):
    product, dtype = mode
    for index, pool in enumerate(a_third(layout, mode)):
        values = sprinkled(pool.values(rng, dtype), rng)
        plain, plain_mask = two_phase(pool, values, product, mask_layout)
        x = guarded_copy(values, layout, index % 4)
        out = Guarded(pool.output_shape, values.dtype, layout, index % 3)
        mask = Guarded(pool.mask_shape, BYTE, "contiguous", index % 8)
        two_phase(pool, x.view, product, mask_layout, out.view, mask.view)
        assert_same_bytes(out.view, plain)
        assert_same_mask(mask.view, plain_mask)
        out.assert_outside_untouched()
        mask.assert_outside_untouched()


@every_dtype
@every_mask_layout
@pytest.mark.parametrize("shape", [(2, 16, 9, 11), (1, 17, 40, 7), (2, 47, 6, 5), (3, 100, 5, 8), (1, 33, 90, 4)])
def test_channels_last(shape, mask_layout, dtype, rng):
    """Nothing is transposed but places, and maxima that lie otherwise: words are made of codes, or of few bits one by
    one, indices are planes."""
    kinds = ((3, 2, 1), (3, 1, 1), (2, 2, 0), ((1, 3), 1, (0, 1)), ((9, 5), (2, 4), (4, 2)))
    for number, (kernel, stride, padding) in enumerate(kinds * 2):
        pool = MaxPool(shape, kernel, stride, padding, number % 2 == 1)
        x = np.round(pool.values(rng, dtype)) if number < 3 else pool.values(rng, dtype)
        x.reshape(-1)[rng.integers(x.size, size=3)] = np.inf, np.nan, -np.inf
        out = Guarded(pool.output_shape, x.dtype, ("channels_last", "contiguous", "columns_reversed")[number % 3], 1)
        mask = Guarded(pool.mask_shape, BYTE, "contiguous", 1)
        with aclnn_bw.num_threads(1 + number % 3):
            two_phase(pool, guarded_copy(x, "channels_last", 1).view, layout=mask_layout, out=out.view, mask=mask.view)
        maxima, indices = expected_of(pool, x)
        for guarded in (out, mask):
            guarded.assert_outside_untouched()
        assert_same_bytes(np.ascontiguousarray(out.view), maxima)
        assert_same_mask(mask.view, pool.mask(indices, mask_layout))


@every_mask_layout
@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("shape", [(1, 2048, 7, 7), (2, 64, 112, 112), (1, 48, 2000, 3), (1, 48, 30, 1500)])
def test_channels_side_by_side_are_work_for_all_threads(shape, last, mask_layout):
    """The scratch stays in 2 MiB for each of them."""
    pool = MaxPool(shape, 3, 2, 1)
    x, out = (np.moveaxis(np.empty((s[0], *s[2:], s[1]), np.float32), -1, 1) for s in (shape, pool.output_shape))
    if not last:
        out = np.empty(pool.output_shape, np.float32)
    mask = np.empty(pool.mask_shape, np.int8)
    for threads in (1, 2):
        with aclnn_bw.soc("Host", mask_layout=mask_layout), aclnn_bw.num_threads(threads):
            size, executor = aclnn_bw.aclnnMaxPool2dWithMaskGetWorkspaceSize(x, *pool.lists, out, mask)
        assert executor.explain().algorithm == "LAST"
        assert size <= threads << 21
        assert executor.explain().threads == 1 or executor.explain().units >= 8


@every_dtype
@every_kind
def test_same_bytes_from_broadcast_inputs(pool, dtype, rng):
    n, c, height, width = pool.input_shape
    for kept in ((1, 1, height, width), (n, 1, height, 1), (1, c, 1, width), (1, 1, 1, 1)):
        view = np.broadcast_to(rng.standard_normal(kept).astype(DTYPES[dtype]), pool.input_shape)
        (out, mask), (plain, plain_mask) = (one_call(x, *pool.attributes) for x in (view, view.copy()))
        assert_same_bytes(out, plain)
        assert_same_mask(mask, plain_mask)


@every_mask_layout
@every_mode
@every_large
def test_same_bytes_at_every_thread_count(pool, mode, mask_layout, rng):
    product, dtype = mode
    x = sprinkled(pool.values(rng, dtype), rng, 0.001)
    with aclnn_bw.num_threads(1):
        expected, expected_mask = two_phase(pool, x, product, mask_layout)
    for threads in (2, 3, 4):
        with aclnn_bw.num_threads(threads):
            out, mask = two_phase(pool, x, product, mask_layout)
            assert_same_bytes(out, expected)
            assert_same_mask(mask, expected_mask)


@every_dtype
@pytest.mark.parametrize("size", [5, 13])
def test_a_nan_comes_out_as_the_same_bytes_whatever_algorithm(size, dtype):
    """Planes of few windows are worked on in groups where each thread gets one: a signalling NaN is made quiet there
    as it is elsewhere."""
    pool = MaxPool((1, 16, size, size), 3, 2, 1)
    x = np.zeros(pool.input_shape, DTYPES[dtype])
    bits = x.view(f"u{x.itemsize}")
    quiet = int(np.full(1, np.nan, x.dtype).view(bits.dtype)[0])
    bits[0, :, 2, 2] = (quiet ^ (quiet & -quiet)) | np.arange(1, 17)  # their payloads
    bits[0, 8:] |= 1 << (8 * x.itemsize - 1)
    results = []
    for threads in (1, 16):
        with aclnn_bw.num_threads(threads):
            results.append(two_phase(pool, x, "Host", "argmax"))
    (out, mask), (other_out, other_mask) = results
    assert np.all(np.isnan(out[0, :, 1, 1]))
    assert_same_bytes(out, other_out)
    assert_same_mask(mask, other_mask)


@every_mask_layout
@every_dtype
@pytest.mark.parametrize("pool", [KINDS[0], KINDS[4], KINDS[7], LARGE[1]], ids=str)
def test_same_bytes_from_every_entry_point(pool, dtype, mask_layout, rng):
    x, other = pool.values(rng, dtype), pool.values(rng, dtype)
    plain, plain_mask = two_phase(pool, x, "Host", mask_layout)
    stream = aclnn_bw.aclrtCreateStream()
    try:
        out, mask = two_phase(pool, x, "Host", mask_layout, stream=stream)
    finally:
        aclnn_bw.aclrtDestroyStream(stream)
    assert_same_bytes(out, plain)
    assert_same_mask(mask, plain_mask)
    with aclnn_bw.soc("Host", mask_layout=mask_layout):
        size, executor = aclnn_bw.aclnnMaxPool2dWithMaskGetWorkspaceSize(x, *pool.lists, out, mask)
    aclnn_bw.aclSetAclOpExecutorRepeatable(executor)
    for _ in range(2):
        out[...], mask[...] = np.nan, -1
        aclnn_bw.aclnnMaxPool2dWithMask(bytearray(size), size, executor)
        assert_same_bytes(out, plain)
        assert_same_mask(mask, plain_mask)
    # Both outputs are counted in argument order: out, then indices.
    other_out, other_mask = np.empty_like(out), Guarded(mask.shape, BYTE, "contiguous", 3)
    aclnn_bw.aclSetInputTensorAddr(executor, 0, None, other)
    aclnn_bw.aclSetOutputTensorAddr(executor, 0, None, other_out)
    aclnn_bw.aclSetOutputTensorAddr(executor, 1, None, other_mask.view)
    aclnn_bw.aclnnMaxPool2dWithMask(bytearray(size), size, executor)
    other_mask.assert_outside_untouched()
    expected, expected_mask = one_call(other, *pool.attributes, mask_layout=mask_layout)
    assert_same_bytes(other_out, expected)
    assert_same_mask(other_mask.view, expected_mask)
    assert_same_bytes(out, plain)
    aclnn_bw.aclDestroyAclOpExecutor(executor)


@pytest.mark.parametrize("far_axis", [0, 1, 2])
def test_offsets_beyond_32_bits(far_axis, rng, tmp_path):
    pool = MaxPool((2, 3, 8, 9), 3, 2, 1)
    values = pool.values(rng, "float16")
    x, out = far_apart(tmp_path, [values.shape, pool.output_shape], values.dtype, far_axis)
    x[...] = values
    plain, plain_mask = two_phase(pool, values)
    _, mask = two_phase(pool, x, out=out)
    assert_same_bytes(out, plain)
    assert_same_mask(mask, plain_mask)


# ---- instruction sets, and nothing outside the arrays is touched, not even read --------------------------------------


def digests(step=1):
    """A hash of the results of each of many calls, by the name of the call; of every `step`-th one."""
    found = {}
    calls = enumerate(product([*KINDS, LARGE[6], LARGE[10]], MAX_POOL_MODES))
    for index, (pool, (product_name, dtype)) in islice(calls, 0, None, step):
        rng = np.random.default_rng(index)
        x = sprinkled((pool.values(rng, dtype), tied(pool, rng, dtype))[index % 2], rng, 0.01)
        layout = list(LAYOUTS)[index % len(LAYOUTS)]
        out = Guarded(pool.output_shape, x.dtype, layout, 1).view
        for name in MASK_LAYOUTS:
            results = two_phase(pool, x, product_name, name)
            strided = two_phase(pool, guarded_copy(x, layout, 1).view, product_name, name, out)
            found[f"{pool} {product_name} {dtype} {name}"] = digest(*results, *strided)
    for window, dtype, name in islice(product(WINDOWS, DTYPES, MASK_LAYOUTS), 0, None, step):
        rng = np.random.default_rng(window)
        results = []
        for pool in every_width(*window):
            results += one_call(sprinkled(pool.values(rng, dtype), rng), *pool.attributes, mask_layout=name)
        found[f"every width of {window} {dtype} {name}"] = digest(*results)
    return found


def digests_of(isa, folder, step):
    require_isa(isa)
    code = """
import json, aclnn_bw
from test_max_pool2d_forward import digests
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
    """Every `step`-th call with all arrays at fences; the last line printed names the call that ended the process."""
    cases = [(pool, "contiguous", end) for pool in [*KINDS, LARGE[0], LARGE[6]] for end in (False, True)]
    cases += [(pool, layout, True) for pool in KINDS for layout in ("channels_last", "all_reversed")]
    cases += [(pool, "contiguous", True) for window in WINDOWS for pool in every_width(*window)]
    memories = [fenced(2**23) for _ in range(4)]
    calls = product(cases, MASK_LAYOUTS, ("float32", "bfloat16"))
    for (pool, layout, end), name, dtype in islice(calls, 0, None, step):
        print(pool, layout, end, name, dtype, flush=True)
        values = pool.values(np.random.default_rng(7), dtype)
        x = at_fence(memories[0], values.shape, values.dtype, layout, 1, end)
        out = at_fence(memories[1], pool.output_shape, values.dtype, layout, 1, end)
        mask = at_fence(memories[2], pool.mask_shape, BYTE, "contiguous", 1, end)
        x[...] = values
        with aclnn_bw.soc("Host", mask_layout=name):
            size, executor = aclnn_bw.aclnnMaxPool2dWithMaskGetWorkspaceSize(x, *pool.lists, out, mask)
        workspace = memories[3][-size:] if end else memories[3][:size]
        aclnn_bw.aclnnMaxPool2dWithMask(workspace if size else None, size, executor)
        expected, expected_mask = one_call(values, *pool.attributes, mask_layout=name)
        assert_same_bytes(out, expected)
        assert_same_mask(mask, expected_mask)
    print("done")


@pytest.mark.skipif(os.name != "posix", reason="needs mprotect")
@pytest.mark.parametrize("isa", ["v2", "v3", "v4"])
def test_nothing_beyond_the_arrays_is_touched(isa, tmp_path, step):
    require_isa(isa)
    printed = run_python(
        f"from test_max_pool2d_forward import run_at_fences; run_at_fences({step})", tmp_path, ACLNN_BW_ISA=isa
    )
    assert printed.endswith("\ndone\n")


@pytest.mark.parametrize("mask_layout", MASK_LAYOUTS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_the_workspace_does_not_follow_a_kernel_that_is_mostly_padding(dtype, mask_layout):
    pool = MaxPool((1, 1, 10, 10), (1, 1 << 14), 1, (0, 1 << 13))
    x = np.arange(100, dtype=np.float32).reshape(pool.input_shape).astype(DTYPES[dtype])
    out, mask = two_phase(pool, x, "Host", mask_layout)
    assert np.array_equal(out[0, 0, :, 0], x[0, 0, :, -1])
    indices = aclnn_bw.mask_to_indices(mask, pool.input_shape, *pool.attributes, mask_layout=mask_layout)
    assert np.array_equal(indices[0, 0, :, 5], np.arange(10) * 10 + 9)
    with aclnn_bw.soc("Host", mask_layout=mask_layout), aclnn_bw.num_threads(1):
        kernel, padding = [1, 1 << 19], [0, 1 << 18]
        shape = aclnn_bw.mask_shape(x.shape, kernel, 1, padding)
        stand_in = aclnn_bw.aclCreateTensor(shape, aclnn_bw.ACL_INT8)
        out = np.empty((1, 1, 10, 11), x.dtype)
        size, _ = aclnn_bw.aclnnMaxPool2dWithMaskGetWorkspaceSize(
            x, kernel, [1, 1], padding, [1, 1], False, out, stand_in
        )
    assert size <= 2 * 2**20 + 64 * 11
