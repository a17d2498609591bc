"""ReplicationPad2d: bit for bit against the twin and PyTorch, what it refuses, and that its gradient is its adjoint."""

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
    assert_same_bytes,
    assert_sides_alike,
    fenced,
    guarded_copy,
    made_at_fences,
    numpy_of,
    past_the_caches,
    run_its_fences,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from operators import OPERATORS
from operators.replication_pad2d import ON_HOST, padded, replication_pad2d

import aclnn_bw as a

INVALID, NULL = a.ACLNN_ERR_PARAM_INVALID, a.ACLNN_ERR_PARAM_NULLPTR
SHAPES = [(2, 3, 4, 5), (1, 18, 7, 9), (3, 9, 11), (1, 1, 1, 1), (2, 65, 3, 2), (1, 2, 3, 140)]
PADS = [(1, 1, 1, 1), (0, 0, 0, 0), (2, 0, 1, 3), (0, 7, 0, 0), (40, 30, 6, 8), (-1, 2, 0, 1)]


def some_bits(rng, shape, dtype):
    """Any bits, NaN and -0.0 among them; of a bool its two."""
    dtype = DTYPES[dtype]
    raw = rng.integers(0, 256 if dtype.kind != "b" else 2, (*shape, dtype.itemsize), np.uint8)
    return raw.view(dtype)[..., 0]


def same_bits(result, wanted):
    assert (result.shape, result.dtype) == (wanted.shape, wanted.dtype)
    assert result.tobytes() == wanted.tobytes()


@pytest.mark.parametrize("dtype", ON_HOST)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("pads", PADS, ids=str)
def test_every_dtype_bit_for_bit(rng, dtype, shape, pads):
    if min(padded(shape, pads)) < 1:
        pytest.skip("nothing is left")
    x = some_bits(rng, shape, dtype)
    same_bits(a.replication_pad2d(x, pads), replication_pad2d(x, pads))


@pytest.mark.parametrize("dtype", ["uint8", "float16", "float32", "complex128"])
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("out_layout", LAYOUTS)
def test_layouts(rng, dtype, layout, out_layout):
    for shape, pads in (((2, 5, 6, 7), (1, 2, 3, 0)), ((1, 35, 4, 18), (3, 0, -1, 2))):
        guarded = guarded_copy(some_bits(rng, shape, dtype), layout)
        out = Guarded(padded(shape, pads), DTYPES[dtype], out_layout)
        assert a.replication_pad2d(guarded.view, pads, out=out.view) is out.view
        same_bits(np.ascontiguousarray(out.view), replication_pad2d(np.ascontiguousarray(guarded.view), pads))
        out.assert_outside_untouched()


@pytest.mark.parametrize("dtype", ["uint8", "float16", "float32", "float64", "complex128"])
@pytest.mark.parametrize("pads", [(1, 2, 0, 0), (0, 1, 0, 0), (0, 0, 1, 2), (0, 0, 0, 0), (-1, 1, 0, 0), (0, 0, 2, -1)])
@pytest.mark.parametrize("layout", ["contiguous", "rows_cropped", "columns_cropped", "channels_cropped"])
def test_small_planes_padded_on_one_side(rng, dtype, pads, layout):
    """They are taken together, where they lie end to end."""
    for shape in ((9, 23, 5, 7), (1, 70, 4, 17), (67, 1, 3, 2)):
        x = guarded_copy(some_bits(rng, shape, dtype), layout).view
        wanted = replication_pad2d(np.ascontiguousarray(x), pads)
        for threads, out_layout in product((1, 2), ("contiguous", layout)):
            out = Guarded(wanted.shape, wanted.dtype, out_layout)
            with a.num_threads(threads):
                a.replication_pad2d(x, pads, out=out.view)
            same_bits(np.ascontiguousarray(out.view), wanted)
            out.assert_outside_untouched()


@pytest.mark.parametrize("dtype", ["uint8", "float16", "float32", "float64", "complex128"])
@pytest.mark.parametrize("shape", [(2, 3, 20, 31), (1, 150, 9, 40), (2, 70, 5, 3)], ids=str)
@pytest.mark.parametrize("pads", [*PADS, (-3, -1, 0, -2)], ids=str)
def test_channels_last(rng, dtype, shape, pads):
    if min(padded(shape, pads)) < 1:
        pytest.skip("nothing is left")
    x = some_bits(rng, shape, dtype)
    wanted = a.replication_pad2d(x, pads)
    assert_sides_alike(lambda x, out: a.replication_pad2d(x, pads, out=out), x, wanted, same_bits)


@pytest.mark.parametrize("dtype", ["uint8", "float16", "float32", "float64", "complex128"])
def test_middles_and_ends_of_any_length(rng, dtype):
    """Both are copied in pieces of several sizes."""
    widths, lefts, rights = (*range(1, 20), 31, 32, 33, 64, 65, 130), (0, 1, 2, 3, 7, 70, -1), (0, 1, 5, 65, -1)
    for width, left, right in product(widths, lefts, rights):
        if width + min(left, 0) + min(right, 0) > 0:
            x = some_bits(rng, (2, 3, width), dtype)
            out = Guarded((1, 2, 5, left + width + right), DTYPES[dtype], "contiguous", 1)
            a.replication_pad2d(x, (left, right, 1, 1), out=out.view[0])
            same_bits(out.view[0], replication_pad2d(x, (left, right, 1, 1)))
            out.assert_outside_untouched()


def run_at_fences():
    """Arrays at fences; the last line printed names the call that ended the process."""
    memories = [fenced(2**21) for _ in range(2)]
    cases = product((1, 2, 3, 4, 7, 8, 9, 16, 17, 33, 70), (*PADS, (1, 1, 0, 0), (0, 70, 0, 1)))
    sizes = "uint8", "float16", "float32", "float64", "complex128"
    for (width, pads), dtype, at_end, least in product(cases, sizes, (False, True), EITHER_WAY):
        print((width, pads), dtype, at_end, flush=True)
        values = some_bits(np.random.default_rng(7), (2, 17, 5, width), dtype)
        wanted = replication_pad2d(values, pads)
        with past_the_caches(least):
            made = made_at_fences(a.replication_pad2d, values, (pads,), wanted, memories, at_end)
        same_bits(made, wanted)
    print("done")


@pytest.mark.skipif(os.name != "posix", reason="needs mprotect")
@pytest.mark.parametrize("isa", ["v2", "v3", "v4"])
def test_nothing_beyond_the_arrays_is_touched(isa, tmp_path):
    run_its_fences("test_replication_pad2d_forward", isa, tmp_path)


@pytest.mark.parametrize("dtype", ["int8", "float32", "complex128"])
@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("last", [False, True])
def test_beyond_the_caches(rng, dtype, threads, last):
    x = some_bits(rng, (40_000_000 // 65_536 // DTYPES[dtype].itemsize + 1, 5, 128, 131), dtype)
    wanted = replication_pad2d(x, (3, 2, 1, 1))
    out = np.empty_like(wanted)
    if last:
        x, out = (np.moveaxis(np.empty((*v.shape[:1], *v.shape[2:], 5), v.dtype), -1, 1) for v in (x, out))
        x[...] = wanted[..., 1:-1, 3:-2]
    with a.num_threads(threads):
        a.replication_pad2d(x, (3, 2, 1, 1), out=out)
    same_bits(np.ascontiguousarray(out), wanted)


@pytest.mark.parametrize("dtype", ["uint8", "float16", "float32", "float64", "complex128"])
@pytest.mark.parametrize("size", [(7, 5), (33, 71), (40, 131), (9, 700)], ids=str)
def test_strips_past_the_caches(rng, dtype, size):
    """Rows from anywhere in a cache line on, one thread where another ended; with gaps between them, too."""
    for pads in ((1, 3, 2, 1), (-1, 1, 3, -2)):
        few = some_bits(rng, (1, 3, *size), dtype)
        wanted = replication_pad2d(few, pads)
        planes = (97 << 20) // (3 * (few[0, 0].nbytes + wanted[0, 0].nbytes)) * 3 + 3
        x = np.resize(few, (1, planes, *size))
        for threads, offset, layout in ((1, 1, "contiguous"), (3, 0, "contiguous"), (1, 1, "columns_cropped")):
            out = Guarded((1, planes, *wanted.shape[2:]), wanted.dtype, layout, offset)
            with a.num_threads(threads):
                a.replication_pad2d(x, pads, out=out.view)
            same_bits(np.ascontiguousarray(out.view), np.resize(wanted, out.view.shape))
            out.assert_outside_untouched()


def test_one_number_is_all_four_pads():
    x = np.arange(6).reshape(1, 2, 3)
    np.testing.assert_array_equal(a.replication_pad2d(x, 2), np.pad(x, [(0, 0), (2, 2), (2, 2)], "edge"))


def test_the_example():
    x = np.array([[[1, 2, 3], [4, 5, 6]]])
    assert a.replication_pad2d(x, (2, 0, 0, 1)).tolist() == [[[1, 1, 1, 2, 3], [4, 4, 4, 5, 6], [4, 4, 4, 5, 6]]]


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16", "complex64", "int32", "uint8"])
@pytest.mark.parametrize("pads", [(1, 1, 1, 1), (2, 0, 1, 3), (9, 8, 7, 6), (-1, 2, 1, -1)], ids=str)
def test_parity_with_torch(rng, dtype, pads):
    torch = pytest.importorskip("torch")
    x = some_bits(rng, (2, 3, 5, 6), dtype)
    tensor = torch.from_numpy(x.view(np.int16)).view(torch.bfloat16) if dtype == "bfloat16" else torch.from_numpy(x)
    wanted = numpy_of(torch.ops.aten.replication_pad2d(tensor, list(pads)))
    (assert_same_bytes if x.dtype.kind == "f" or dtype == "bfloat16" else np.testing.assert_array_equal)(
        a.replication_pad2d(x, pads), wanted
    )


shapes = st.tuples(st.integers(1, 3), st.integers(1, 18), st.integers(1, 9), st.integers(1, 20))


@settings(max_examples=150)
@given(shapes, st.tuples(*[st.integers(-4, 9)] * 4), st.integers(0, 2**32 - 1))
def test_the_gradient_is_the_adjoint(shape, pads, seed):
    """<forward(x), y> == <x, backward(y)>, exactly: whole numbers."""
    if min(padded(shape, pads)) < 1:
        return
    rng = np.random.default_rng(seed)
    x, y = rng.integers(-9, 10, shape).astype(float), rng.integers(-9, 10, padded(shape, pads)).astype(float)
    left = np.vdot(a.replication_pad2d(x, pads), y)
    assert left == np.vdot(x, a.replication_pad2d_backward(y, shape, pads))


def phase_1(x, pads, out):
    built = [value.build() if isinstance(value, Spec) else value for value in (x, pads, out)]
    return a.aclnnReplicationPad2dGetWorkspaceSize(*built)


X, OUT = Spec((2, 3, 4, 5)), Spec((2, 3, 7, 8))
GOOD = (1, 2, 3, 0)


@pytest.mark.parametrize(
    ("arguments", "status", "pattern"),
    [
        ((None, None, None), NULL, "^self"),
        ((X, None, None), NULL, "^padding"),
        ((X, GOOD, None), NULL, "^out"),
        ((X.but(format=a.ACL_FORMAT_UNDEFINED, dtype=a.ACL_BOOL), GOOD, OUT), INVALID, r"^self\.format"),
        ((X.but(format=a.aclFormat.ACL_FORMAT_NC1HWC0), GOOD, OUT), INVALID, r"^self\.format"),
        ((X, GOOD, OUT.but(format=a.ACL_FORMAT_ND, dtype=a.ACL_BOOL)), INVALID, r"^out\.format"),
        ((X.but(dtype=a.ACL_UINT16), GOOD, OUT), INVALID, r"^self\.dtype = ACL_UINT16.*Host"),
        ((X, GOOD, OUT.but(dtype=a.ACL_INT32)), INVALID, r"^out\.dtype = ACL_INT32: must equal"),
        ((X.but(shape=(4, 5), format=a.ACL_FORMAT_ND), (1, 2), OUT.but(format=a.ACL_FORMAT_ND)), INVALID, "rank"),
        ((X, (1, 2, 3), OUT), INVALID, r"^len\(padding\) = 3"),
        ((X, (1, 2, -3, 0), OUT), INVALID, r"^padding\[2\] = -3: must be >= 0"),
        ((X, (5, 2, 3, 0), OUT), INVALID, r"^padding\[0\] = 5: must be < W = 5"),
        ((X, (1, 2, 4, 0), OUT), INVALID, r"^padding\[2\] = 4: must be < H = 4"),
        ((X, GOOD, OUT.but(shape=(2, 3, 7, 9))), INVALID, r"^out\.shape = \(2, 3, 7, 9\): expected \(2, 3, 7, 8\)"),
        ((X.but(shape=(2, 0, 4, 5)), GOOD, OUT.but(shape=(2, 0, 7, 8))), INVALID, "^self"),
    ],
)
def test_refusals_in_order(arguments, status, pattern):
    with a.soc("Ascend910B"), refusal(status, pattern):
        phase_1(*arguments)


def test_what_host_takes_beyond_the_products():
    with a.soc("Host"):
        phase_1(X, (9, -2, 4, -3), OUT.but(shape=(2, 3, 5, 12)))
        with refusal(INVALID, "^padding = .*must leave a padded width"):
            phase_1(X, (-2, -3, 0, 0), OUT)
        with refusal(INVALID, "^padding"):
            phase_1(X, (2**63 - 1, 2**63 - 1, 0, 0), OUT)


def test_an_empty_batch_is_nothing_to_do():
    x, out = np.empty((0, 3, 4, 5)), np.empty((0, 3, 7, 8))
    assert a.replication_pad2d(x, GOOD, out=out) is out
    assert a.replication_pad2d(x, GOOD).shape == (0, 3, 7, 8)


def test_bfloat16_has_no_limit():
    for soc in ("Ascend910", "Ascend910B"):
        with a.soc(soc):
            call = OPERATORS["ReplicationPad2d"]((1, 1, 10, 10), DTYPES["bfloat16"], padding=(9, 8, 9, 9))
            call.run()
            call.check()
