"""UpsampleNearestExact1d: bit for bit against the twin and PyTorch, what it refuses, and that its gradient is its
adjoint."""

import math
import os
from itertools import product

import numpy as np
import pytest
from engine_helpers import Spec, refusal
from fuzz.calls import DTYPES
from helpers import (
    EITHER_WAY,
    LAYOUTS,
    Guarded,
    assert_sides_alike,
    fenced,
    guarded_copy,
    made_at_fences,
    past_the_caches,
    run_its_fences,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from operators.replication_pad2d import ON_HOST
from operators.upsample_nearest_exact1d import upsample
from operators.upsample_nearest_exact1d_backward import upsample_nearest_exact1d
from test_replication_pad2d_forward import same_bits, some_bits

import aclnn_bw as a

INVALID, NULL = a.ACLNN_ERR_PARAM_INVALID, a.ACLNN_ERR_PARAM_NULLPTR
LENGTHS = [(1, 1), (5, 3), (3, 5), (16, 32), (32, 16), (33, 66), (66, 33), (100, 333), (1000, 999), (7, 4097)]
SCALES = [0.0, 2.0, 0.5, 1.7, 5e-324, 1e-5, math.inf, -1.0, math.nan]


def test_the_quick_twin_is_the_literal_one(rng):
    for li, lo in LENGTHS:
        for scales in SCALES:
            x = rng.standard_normal((1, 2, li))
            np.testing.assert_array_equal(upsample(x, lo, scales), upsample_nearest_exact1d(x, lo, scales))


@pytest.mark.parametrize("dtype", ON_HOST)
@pytest.mark.parametrize("lengths", LENGTHS, ids=str)
@pytest.mark.parametrize("scales", SCALES)
def test_every_dtype_bit_for_bit(rng, dtype, lengths, scales):
    x = some_bits(rng, (2, 3, lengths[0]), dtype)
    same_bits(a.upsample_nearest_exact1d(x, lengths[1], scales), upsample(x, lengths[1], scales))


@pytest.mark.parametrize("dtype", ["uint8", "float16", "float32", "complex128"])
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("out_layout", LAYOUTS)
def test_layouts(rng, dtype, layout, out_layout):
    for shape, lo in (((2, 5, 12), 24), ((1, 19, 30), 15), ((2, 3, 13), 31)):
        guarded = guarded_copy(some_bits(rng, shape, dtype), layout)
        out = Guarded((*shape[:2], lo), DTYPES[dtype], out_layout)
        assert a.upsample_nearest_exact1d(guarded.view, lo, out=out.view) is out.view
        same_bits(np.ascontiguousarray(out.view), upsample(np.ascontiguousarray(guarded.view), lo))
        out.assert_outside_untouched()


# Of several groups of channels and blocks, and of pixels smaller than a vector; twice, half, and others.
@pytest.mark.parametrize("dtype", ["uint8", "float16", "float32", "float64", "complex128"])
@pytest.mark.parametrize("shape", [(2, 3, 900), (1, 70, 700), (2, 130, 33), (1, 2, 5000)], ids=str)
@pytest.mark.parametrize(
    ("factor", "scales"), [(2, None), (0.5, None), (1.7, None), (0.3, None), (5, 2.5), (0.1, None)], ids=str
)
def test_channels_last(rng, dtype, shape, factor, scales):
    x, length = some_bits(rng, shape, dtype), int(shape[2] * factor)
    wanted = a.upsample_nearest_exact1d(x, length, scales)
    assert_sides_alike(lambda x, out: a.upsample_nearest_exact1d(x, length, scales, out=out), x, wanted, same_bits)


@pytest.mark.parametrize("dtype", ["uint8", "float16", "float32", "float64", "complex128"])
@pytest.mark.parametrize("lengths", [(7, 1), (2, 1), (4, 8), (3, 5), (1, 8), (40, 7), (5, 5)], ids=str)
@pytest.mark.parametrize("layout", ["contiguous", "channels_cropped", "columns_cropped"])
def test_short_rows(rng, dtype, lengths, layout):
    for shape in ((3, 50, lengths[0]), (1, 7, lengths[0])):
        guarded = guarded_copy(some_bits(rng, shape, dtype), layout)
        out = Guarded((*shape[:2], lengths[1]), DTYPES[dtype], layout)
        for threads in (1, 3):
            with a.num_threads(threads):
                a.upsample_nearest_exact1d(guarded.view, lengths[1], out=out.view)
            same_bits(np.ascontiguousarray(out.view), upsample(np.ascontiguousarray(guarded.view), lengths[1]))
            out.assert_outside_untouched()
            out.view[...] = np.ones(1, out.view.dtype)


# The sources of blocks of 16,384 elements are found at a time.
LONG = [
    (3, 70000), (70001, 3), (70000, 70001), (70001, 70000),
    (40000, 80000), (80000, 40000), (3000, 20001), (20001, 16384),
]  # fmt: skip


@pytest.mark.parametrize("lengths", LONG, ids=str)
@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("dtype", ["uint8", "float16", "float32", "float64", "complex128"])
def test_long_rows(rng, lengths, threads, dtype):
    x = some_bits(rng, (2, 2, lengths[0]), dtype)
    with a.num_threads(threads):
        same_bits(a.upsample_nearest_exact1d(x, lengths[1]), upsample(x, lengths[1]))


@pytest.mark.parametrize("layout", ["contiguous", "columns_cropped"])
@pytest.mark.parametrize("dtype", ["int8", "float16", "float32", "complex128"])
@pytest.mark.parametrize("lengths", [(4099, 8198), (8194, 4097), (333, 777), (12, 1301), (70000, 90001)], ids=str)
def test_beyond_the_caches(rng, dtype, lengths, layout):
    """Rows that pass the caches begin and end anywhere in a cache line; one thread goes on where another ended."""
    rows = (97 << 20) // (sum(lengths) * DTYPES[dtype].itemsize) + 1
    few = some_bits(rng, (1, 5, lengths[0]), dtype)
    x = np.resize(few, (1, rows, lengths[0]))
    for threads, offset in ((1, 1), (3, 0)):
        out = Guarded((1, rows, lengths[1]), DTYPES[dtype], layout, offset)
        with a.num_threads(threads):
            a.upsample_nearest_exact1d(x, lengths[1], out=out.view)
        same_bits(out.view, np.resize(upsample(few, lengths[1]), out.view.shape))
        out.assert_outside_untouched()


@pytest.mark.parametrize("dtype", ["float32", "float16", "uint8"])
@pytest.mark.parametrize("lengths", LENGTHS, ids=str)
@pytest.mark.parametrize("scales", [None, 2.0, 1.7])
def test_parity_with_torch(rng, dtype, lengths, scales):
    torch = pytest.importorskip("torch")
    x = rng.integers(0, 99, (2, 3, lengths[0])).astype(dtype)
    wanted = torch.ops.aten._upsample_nearest_exact1d(torch.from_numpy(x), [lengths[1]], scales).numpy()
    np.testing.assert_array_equal(a.upsample_nearest_exact1d(x, lengths[1], scales), wanted)


@settings(max_examples=150)
@given(st.integers(1, 60), st.integers(1, 60), st.sampled_from([0.0, 0.5, 2.0, 1.3]), st.integers(0, 2**32 - 1))
def test_the_gradient_is_the_adjoint(li, lo, scales, seed):
    """<forward(x), y> == <x, backward(y)>, exactly: whole numbers."""
    rng = np.random.default_rng(seed)
    x, y = rng.integers(-9, 10, (1, 2, li)).astype(float), rng.integers(-9, 10, (1, 2, lo)).astype(float)
    left = np.vdot(a.upsample_nearest_exact1d(x, lo, scales), y)
    assert left == np.vdot(x, a.upsample_nearest_exact1d_backward(y, lo, (1, 2, li), scales))


def phase_1(x, size, out, scales=0.0):
    built = [value.build() if isinstance(value, Spec) else value for value in (x, out)]
    return a.aclnnUpsampleNearestExact1dGetWorkspaceSize(built[0], size, scales, built[1])


X, OUT = Spec((2, 3, 5)), Spec((2, 3, 8))


@pytest.mark.parametrize(
    ("arguments", "status", "pattern"),
    [
        ((None, None, None), NULL, "^self"),
        ((X, None, None), NULL, "^out"),
        ((X, None, OUT), NULL, "^outputSize"),
        ((X.but(dtype=a.ACL_INT32, format=a.ACL_FORMAT_NCHW), (8,), OUT), INVALID, r"^self\.dtype = ACL_INT32"),
        ((X, (8,), OUT.but(dtype=a.ACL_FLOAT16)), INVALID, r"^out\.dtype = ACL_FLOAT16: must equal"),
        ((X, (8, 1), OUT.but(format=a.ACL_FORMAT_ND)), INVALID, r"^out\.format"),
        ((X.but(format=a.ACL_FORMAT_NCHW), (8,), OUT.but(format=a.ACL_FORMAT_NCHW)), INVALID, r"^self\.format"),
        ((X.but(shape=(2, 3), format=a.ACL_FORMAT_ND), (), OUT.but(format=a.ACL_FORMAT_ND)), INVALID, "rank"),
        ((X, (8, 1), OUT), INVALID, r"^len\(outputSize\) = 2"),
        ((X.but(shape=(0, 3, 5)), (8,), OUT.but(shape=(0, 3, 8))), INVALID, r"^self"),
        ((X, (0,), OUT), INVALID, r"^outputSize\[0\] = 0"),
        ((X, (9,), OUT), INVALID, r"^out\.shape = \(2, 3, 8\).*\(2, 3, 9\)"),
    ],
)
def test_refusals_in_order(arguments, status, pattern):
    with a.soc("Ascend910B"), refusal(status, pattern):
        phase_1(*arguments)


def run_at_fences():
    """Arrays at fences; the last line printed names the call that ended the process."""
    memories = [fenced(2**21) for _ in range(2)]
    calls = product(
        [*LENGTHS, (14, 42), (14, 40), (20, 60), (28, 100)],
        ("uint8", "float16", "float32", "float64", "complex128"),
        (False, True),
        EITHER_WAY,
    )
    for lengths, dtype, at_end, least in calls:
        print(lengths, dtype, at_end, flush=True)
        values = some_bits(np.random.default_rng(7), (2, 3, lengths[0]), dtype)
        wanted = upsample(values, lengths[1])
        with past_the_caches(least):
            made = made_at_fences(a.upsample_nearest_exact1d, values, lengths[1:], wanted, memories, at_end)
        same_bits(made, wanted)
    print("done")


@pytest.mark.skipif(os.name != "posix", reason="needs mprotect")
@pytest.mark.parametrize("isa", ["v2", "v3", "v4"])
def test_nothing_beyond_the_arrays_is_touched(isa, tmp_path):
    run_its_fences("test_upsample_nearest_exact1d_forward", isa, tmp_path)


def test_ascend910_lacks_it():
    with a.soc("Ascend910"), refusal(INVALID, "Ascend910 does not have UpsampleNearestExact1d"):
        phase_1(X, (8,), OUT)


@pytest.mark.parametrize("scales", SCALES)
def test_every_scale_is_taken(scales):
    with a.soc("Ascend310P"):
        phase_1(X, (8,), OUT, scales)
