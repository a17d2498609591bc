"""Im2col: bit for bit against the twin and PyTorch, what it refuses, and that its gradient is its adjoint."""

import os
from itertools import product

import numpy as np
import pytest
from engine_helpers import Spec, refusal
from fuzz.calls import DTYPES
from helpers import (
    LAYOUTS,
    Guarded,
    assert_same_bytes,
    assert_sides_alike,
    fenced,
    guarded_copy,
    made_at_fences,
    numpy_of,
    run_its_fences,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from operators.base import REAL
from operators.im2col import column_shape, converted
from operators.im2col_backward import im2col
from operators.replication_pad2d import ON_HOST
from test_replication_pad2d_forward import same_bits, some_bits

import aclnn_bw as a

INVALID, NULL = a.ACLNN_ERR_PARAM_INVALID, a.ACLNN_ERR_PARAM_NULLPTR
# kernel, dilation, padding, stride
GEOMETRIES = [
    (3, 1, 1, 1), (1, 1, 0, 1), (2, 1, 0, 2), (3, 2, 2, 1), ((2, 3), (1, 2), (1, 2), (2, 1)), (3, 1, 1, 2),
    (5, 1, 2, 1), (4, 1, 0, 4), ((1, 7), 1, (0, 3), (2, 5)), (3, 1, 20, 3), (3, 1, 0, 1), (3, 1, 2, 1),
]  # fmt: skip
SHAPES = [(2, 3, 9, 10), (1, 19, 7, 7), (3, 12, 33), (1, 1, 8, 200)]


@pytest.mark.parametrize("dtype", ON_HOST)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("geometry", GEOMETRIES, ids=str)
def test_every_dtype_bit_for_bit(rng, dtype, shape, geometry):
    x = some_bits(rng, shape, dtype)
    same_bits(a.im2col(x, *geometry), im2col(x, *geometry))


@pytest.mark.parametrize("dtype", ["uint8", "float16", "float32", "float64", "complex128"])
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("out_layout", LAYOUTS)
def test_layouts(rng, dtype, layout, out_layout):
    cases = ((2, 5, 6, 7), (3, 1, 1, 1)), ((1, 35, 9, 18), (3, 1, 0, 3)), ((1, 2, 5, 80), (2, 1, 0, 2))
    for shape, geometry in cases:
        guarded = guarded_copy(some_bits(rng, shape, dtype), layout)
        # Layouts are those of images: the windows are the columns of one.
        n, rows, length = column_shape(shape, *geometry)
        out = Guarded((1, n, rows, length), DTYPES[dtype], out_layout)
        assert a.im2col(guarded.view, *geometry, out=out.view[0]) is not None
        wanted = im2col(np.ascontiguousarray(guarded.view), *geometry)
        same_bits(np.ascontiguousarray(out.view[0]), wanted)
        out.assert_outside_untouched()


@pytest.mark.parametrize("dtype", ["uint8", "float16", "float32", "complex128"])
@pytest.mark.parametrize("channels", [1, 3, 17, 70])
@pytest.mark.parametrize("geometry", GEOMETRIES[:5], ids=str)
@pytest.mark.parametrize("turned", [False, True])
def test_windows_whose_positions_lie_side_by_side(rng, dtype, channels, geometry, turned):
    """`out` as (N, L, C*kH*kW) in memory: what a matrix product takes."""
    x = some_bits(rng, (2, channels, 11, 14), dtype)
    n, rows, length = column_shape(x.shape, *geometry)
    out = np.empty((n, length, rows), DTYPES[dtype]).swapaxes(1, 2)
    if turned:
        x = np.ascontiguousarray(np.moveaxis(x, 1, -1)).transpose(0, 3, 1, 2)
    assert a.im2col(x, *geometry, out=out) is out
    same_bits(np.ascontiguousarray(out), im2col(np.ascontiguousarray(x), *geometry))


# Of several bands of rows and groups of channels; windows beyond the image; one kernel position; a window too large.
@pytest.mark.parametrize("dtype", ["uint8", "float16", "float32", "float64", "complex128"])
@pytest.mark.parametrize(
    ("shape", "geometry"),
    [
        ((1, 35, 61, 70), (3, 1, 1, 1)), ((2, 19, 30, 9), (13, 1, 6, 3)), ((1, 70, 9, 11), ((1, 3), 1, (4, 7), (2, 1))),
        ((2, 33, 8, 9), ((3, 4), (2, 3), (3, 1), 1)), ((2, 37, 7, 9), (1, 1, 0, 1)), ((1, 18, 7, 9), (1, 1, 2, 1)),
        ((1, 40, 9, 10), (1, 1, (0, 3), 2)), ((1, 4, 40, 41), (2, 1, 0, 2)), ((1, 5, 99, 99), ((64, 70), 1, 2, 9)),
        ((1, 16, 5, 300), ((2, 5), 1, 2, 3)),
    ],
)  # fmt: skip
def test_channels_last(rng, dtype, shape, geometry):
    x = some_bits(rng, shape, dtype)
    wanted = im2col(x, *geometry)
    assert_sides_alike(lambda x, out: a.im2col(x, *geometry, out=out), x, wanted, same_bits)


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("dtype", ["int8", "float32", "complex128"])
@pytest.mark.parametrize("geometry", [(3, 1, 1, 1), (3, 1, 1, 2), (3, 2, 0, 1)], ids=str)
def test_beyond_the_caches(rng, threads, dtype, geometry):
    x = some_bits(rng, (30_000_000 // 9 // 60**2 // DTYPES[dtype].itemsize * geometry[3] ** 2 + 1, 60, 61), dtype)
    with a.num_threads(threads):
        same_bits(a.im2col(x, *geometry), im2col(x, *geometry))


# Planes of which few elements are read, and some padding; of the last one nothing is read in the first row of windows.
MOSTLY_PASSED_OVER = [
    ((3, 5, 16, 16), (5, 3, 1, 7)), ((2, 7, 30, 31), (3, 1, 1, 8)), ((2, 9, 15, 15), (2, 1, 2, 8)),
    ((2, 9, 25, 24), (1, 2, 1, 8)), ((2, 9, 12, 24), (1, 1, (1, 3), (17, 9))),
]  # fmt: skip


@pytest.mark.parametrize("dtype", ["uint8", "float16", "float32", "float64", "complex128"])
@pytest.mark.parametrize(("shape", "geometry"), MOSTLY_PASSED_OVER, ids=str)
def test_planes_of_which_few_elements_are_read(rng, dtype, shape, geometry):
    """Their padding is written afterwards, where out lies end to end and the planes have no gaps."""
    *_, rows, length = column_shape(shape, *geometry)
    layouts = "contiguous", "rows_cropped", "columns_cropped", "all_reversed"
    for layout, out_layout in product(layouts, layouts):
        x = guarded_copy(some_bits(rng, shape, dtype), layout).view
        out = Guarded((1, shape[0], rows, length), DTYPES[dtype], out_layout)
        with a.num_threads(1):
            a.im2col(x, *geometry, out=out.view[0])
        same_bits(np.ascontiguousarray(out.view[0]), im2col(np.ascontiguousarray(x), *geometry))
        out.assert_outside_untouched()


def run_at_fences():
    """Arrays at fences; the last line printed names the call that ended the process."""
    memories = [fenced(2**21) for _ in range(2)]
    cases = (*product(SHAPES, GEOMETRIES), *MOSTLY_PASSED_OVER)
    sizes = "uint8", "float16", "float32", "float64", "complex128"
    for (shape, geometry), dtype, at_end in product(cases, sizes, (False, True)):
        print((shape, geometry), dtype, at_end, flush=True)
        values = some_bits(np.random.default_rng(7), shape, dtype)
        wanted = im2col(values, *geometry)
        made = made_at_fences(a.im2col, values, geometry, wanted, memories, at_end)
        same_bits(made, wanted)
    print("done")


@pytest.mark.skipif(os.name != "posix", reason="needs mprotect")
@pytest.mark.parametrize("isa", ["v2", "v3", "v4"])
def test_nothing_beyond_the_arrays_is_touched(isa, tmp_path):
    run_its_fences("test_im2col_forward", isa, tmp_path)


@pytest.mark.parametrize("dtype", ["uint8", "float16", "float32", "float64", "complex128"])
@pytest.mark.parametrize(
    ("geometry", "width"), [((3, 1, 1, 1), 131), ((3, 1, 0, 1), 158), ((2, 3, 1, 1), 131), ((3, 1, 1, 3), 403)]
)
def test_rows_that_are_streamed_begin_and_end_anywhere(rng, dtype, geometry, width):
    """Beyond the caches: at several places in a cache line, in one go or in bands, and rows of `out` apart."""
    kernel, *_, stride = geometry
    height = 36_000_000 // (DTYPES[dtype].itemsize * kernel**2 * width) * stride**2
    x = some_bits(rng, (1, height, width), dtype)
    wanted = im2col(x, *geometry)
    assert wanted.nbytes > 32 << 20
    for offset, threads in product((0, 1, 13), (1, 3)):
        out = Guarded((1, 1, *wanted.shape), wanted.dtype, "contiguous", offset)
        with a.num_threads(threads):
            a.im2col(x, *geometry, out=out.view[0, 0])
        same_bits(out.view[0, 0], wanted)
        out.assert_outside_untouched()
    apart = np.zeros((wanted.shape[0], wanted.shape[1] + 5), wanted.dtype)
    a.im2col(x, *geometry, out=apart[:, 2:-3])
    same_bits(np.ascontiguousarray(apart[:, 2:-3]), wanted)
    assert not apart[:, :2].any()
    assert not apart[:, -3:].any()


@pytest.mark.parametrize("dtype", REAL)
@pytest.mark.parametrize("out_dtype", REAL)
@pytest.mark.parametrize("out_layout", ["contiguous", "channels_last", "every_second_column"])
def test_out_of_another_dtype_is_rounded_once(rng, dtype, out_dtype, out_layout):
    x = rng.standard_normal((2, 3, 9, 11)) * 2.0 ** rng.integers(-30, 20, (2, 3, 9, 11))
    x.flat[:4] = np.inf, -0.0, 1 + 2.0**-11 + 2.0**-30, 1 + 2.0**-8 + 2.0**-40
    x = converted(x, DTYPES[dtype])
    wanted = converted(im2col(x, 3, 1, 1), DTYPES[out_dtype])
    out = Guarded((1, *wanted.shape), DTYPES[out_dtype], out_layout)
    a.im2col(x, 3, 1, 1, out=out.view[0])
    same_bits(np.ascontiguousarray(out.view[0]), wanted)
    out.assert_outside_untouched()


def test_the_example():
    x = np.arange(1, 10).reshape(1, 3, 3)
    assert a.im2col(x, (2, 2), (2, 1), (0, 1), (1, 2)).tolist() == [[0, 2], [1, 3], [0, 8], [7, 9]]


@pytest.mark.parametrize(
    ("kernel", "dilation", "padding", "stride"),
    [
        (2, 2**62, 2**61, 2**62), (1, 1, 2**61, 2**62), (3, 2**61, 2**61, 1), (3, (2**62 - 1, 1), (2**62 - 1, 1), 1),
        (1, 2**63 - 1, 0, 2**63 - 1), (2, 2**63 - 1, 2**62, 2**63 - 1),
    ],
)  # fmt: skip
def test_far_windows(rng, kernel, dilation, padding, stride):
    x = some_bits(rng, (4, 5, 6), "float32")
    wanted = im2col(x, kernel, dilation, padding, stride)
    same_bits(a.im2col(x, kernel, dilation, padding, stride), wanted)
    out = np.empty(wanted.shape, "float32", "F")
    a.im2col(np.asfortranarray(x), kernel, dilation, padding, stride, out=out)
    same_bits(np.ascontiguousarray(out), wanted)


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16", "complex64", "bool"])
@pytest.mark.parametrize("geometry", GEOMETRIES, ids=str)
def test_parity_with_torch(rng, dtype, geometry):
    torch = pytest.importorskip("torch")
    x = some_bits(rng, (2, 3, 9, 11), dtype)
    tensor = torch.from_numpy(x.view(np.int16)).view(torch.bfloat16) if dtype == "bfloat16" else torch.from_numpy(x)
    pairs = [list(value) if isinstance(value, tuple) else [value, value] for value in geometry]
    wanted = numpy_of(torch.ops.aten.im2col(tensor, *pairs))
    (assert_same_bytes if x.dtype.kind == "f" or dtype == "bfloat16" else np.testing.assert_array_equal)(
        a.im2col(x, *geometry), wanted
    )


pair = st.tuples(st.integers(1, 4), st.integers(1, 4))


@settings(max_examples=200)
@given(
    st.tuples(st.integers(1, 2), st.integers(1, 18), st.integers(1, 9), st.integers(1, 20)),
    pair, pair, st.tuples(st.integers(0, 4), st.integers(0, 4)), pair, st.integers(0, 2**32 - 1),
)  # fmt: skip
def test_the_gradient_is_the_adjoint(shape, kernel, dilation, padding, stride, seed):
    """<forward(x), y> == <x, backward(y)>, exactly: whole numbers."""
    geometry = kernel, dilation, padding, stride
    sizes = zip(shape[2:], padding, dilation, kernel, strict=True)
    if min(size + 2 * p - d * (k - 1) for size, p, d, k in sizes) < 1:
        return
    rng = np.random.default_rng(seed)
    x = rng.integers(-9, 10, shape).astype(float)
    y = rng.integers(-9, 10, column_shape(shape, *geometry)).astype(float)
    assert np.vdot(a.im2col(x, *geometry), y) == np.vdot(x, a.im2col_backward(y, shape[2:], *geometry))


def phase_1(x, kernel, dilation, padding, stride, out):
    built = [value.build() if isinstance(value, Spec) else value for value in (x, out)]
    return a.aclnnIm2colGetWorkspaceSize(built[0], kernel, dilation, padding, stride, built[1])


X, OUT = Spec((2, 3, 8, 9)), Spec((2, 27, 72), format=a.ACL_FORMAT_ND)
K, D, P, S = (3, 3), (1, 1), (1, 1), (1, 1)


@pytest.mark.parametrize(
    ("arguments", "status", "pattern"),
    [
        ((None, None, None, None, None, None), NULL, "^self"),
        ((X, None, None, None, None, None), NULL, "^kernelSize"),
        ((X, K, None, None, None, None), NULL, "^dilation"),
        ((X, K, D, None, None, None), NULL, "^padding"),
        ((X, K, D, P, None, None), NULL, "^stride"),
        ((X, K, D, P, S, None), NULL, "^out"),
        ((X.but(dtype=a.ACL_INT32), K, D, P, S, OUT.but(dtype=a.ACL_INT8)), INVALID, r"^self\.dtype = ACL_INT32"),
        ((X.but(format=a.aclFormat.ACL_FORMAT_NC1HWC0), K, D, P, S, OUT.but(dtype=a.ACL_DOUBLE)), INVALID,
         r"^out\.dtype = ACL_DOUBLE"),
        ((X.but(format=a.aclFormat.ACL_FORMAT_NC1HWC0), K, D, P, S, OUT), INVALID, r"^self\.format"),
        ((X, K, D, P, S, OUT.but(format=a.aclFormat.ACL_FORMAT_NC1HWC0)), INVALID, r"^out\.format"),
        ((X.but(shape=(8, 9), format=a.ACL_FORMAT_ND), (3,), D, P, S, OUT), INVALID, r"^self\.rank = 2"),
        ((X.but(shape=(2, 3, 0, 9)), (3,), D, P, S, OUT), INVALID, r"^self\.shape = \(2, 3, 0, 9\)"),
        ((X, (3,), (1,), P, S, OUT), INVALID, r"^len\(kernelSize\) = 1: must be 2"),
        ((X, K, (1,), (1,), S, OUT), INVALID, r"^len\(dilation\) = 1: must be 2"),
        ((X, (0, 3), D, (1,), (1,), OUT), INVALID, r"^len\(padding\) = 1: must be 2"),
        ((X, (0, 3), D, P, (1,), OUT), INVALID, r"^len\(stride\) = 1: must be 2"),
        ((X, (3, 0), D, P, (0, 1), OUT), INVALID, r"^kernelSize\[1\] = 0: must be >= 1"),
        ((X, K, (0, 1), P, (0, 1), OUT), INVALID, r"^stride\[0\] = 0: must be >= 1"),
        ((X, K, (0, 1), (-1, 1), S, OUT), INVALID, r"^dilation\[0\] = 0: must be >= 1"),
        ((X, K, D, (1, -1), S, OUT), INVALID, r"^padding\[1\] = -1: must be >= 0"),
        ((X, (11, 3), D, P, S, OUT.but(shape=(2, 27))), INVALID, r"^self\.shape = \(2, 3, 8, 9\): H = 8 is too small"),
        ((X, K, (1, 6), P, S, OUT), INVALID, "W = 9 is too small for kernelSize = 3, dilation = 6 and padding = 1"),
        ((X, K, D, P, S, OUT.but(shape=(27, 72))), INVALID, r"^out\.rank = 2: must be 3"),
        ((X, K, D, P, S, OUT.but(shape=(2, 27, 71))), INVALID, r"^out\.shape = \(2, 27, 71\).*\(2, 27, 72\)"),
        ((X, K, D, (2**62, 2**62), S, OUT), INVALID, r"^self\.shape = .*more columns"),
        ((X, K, D, (2**63 - 1, 0), S, OUT), INVALID, r"^self\.shape = .*more columns"),
    ],
)
def test_refusals_in_order(arguments, status, pattern):
    with a.soc("Ascend910B"), refusal(status, pattern):
        phase_1(*arguments)


@pytest.mark.parametrize("product", ["Ascend910", "Ascend310P"])
def test_products_that_lack_it(product):
    with a.soc(product), refusal(INVALID, f"{product} does not have Im2col"):
        phase_1(X, K, D, P, S, OUT)


@pytest.mark.parametrize(("dtype", "out_dtype"), [("int32", "float32"), ("float32", "int32"), ("complex64", "float32"),
                                                  ("int8", "uint8")])  # fmt: skip
def test_only_real_numbers_are_converted(dtype, out_dtype):
    x, out = np.ones((1, 3, 3), dtype), np.zeros((1, 9), out_dtype)
    with refusal(INVALID, r"^out\.dtype = .*must equal self\.dtype"):
        a.im2col(x, 1, out=out)
    assert not out.any()


def test_an_empty_batch_is_nothing_to_do():
    x = np.empty((0, 3, 8, 9))
    assert a.im2col(x, 3, 1, 1).shape == (0, 27, 72)


def test_what_is_chosen():
    def chosen(x, geometry, out):
        pairs = [[value, value] for value in geometry]
        return a.aclnnIm2colGetWorkspaceSize(x, *pairs, out)[1].explain().algorithm

    def empty(x, geometry, dtype="float32"):
        return np.empty(column_shape(x.shape, *geometry), dtype)

    x = np.zeros((1, 8, 16, 16), np.float32)
    last = np.zeros((1, 16, 16, 8), np.float32).transpose(0, 3, 1, 2)
    tall = np.zeros((1, 2000, 10, 8), np.float32).transpose(0, 3, 1, 2)
    wide = np.zeros((1, 8, 128, 128), np.float32)
    gaps = np.zeros((1, 8, 128, 130), np.float32)[..., 1:-1]
    for image, geometry, out, wanted in (
        (x, (3, 1, 1, 1), empty(x, (3, 1, 1, 1)), "ROWS"),
        (x, (3, 1, 1, 2), empty(x, (3, 1, 1, 2)), "TABLE"),
        (x, (4, 1, 1, 4), empty(x, (4, 1, 1, 4)), "TABLE"),
        (x, (4, 1, 0, 4), empty(x, (4, 1, 0, 4)), "TURNED"),  # nothing outside, and blocks of 16 bytes
        (x, (3, 1, 0, 6), empty(x, (3, 1, 0, 6)), "TABLE"),
        (x[:, :3], (3, 1, 0, 6), empty(x[:, :3], (3, 1, 0, 6)), "TURNED"),  # too few planes for a table
        (wide, (3, 1, 1, 16), empty(wide, (3, 1, 1, 16)), "TABLE"),  # in place, and the padding afterwards
        (gaps, (3, 1, 1, 16), empty(wide, (3, 1, 1, 16)), "TURNED"),  # more than 48 bytes copied for an element
        (tall, (3, 1, 1, 2), empty(tall, (3, 1, 1, 2)), "PACKED"),  # and planes made for each of the bands
        (last, (3, 1, 1, 2), empty(x, (3, 1, 1, 2)), "TABLE, PACKED"),
        (x, (3, 1, 1, 1), empty(x, (3, 1, 1, 1), "float16"), "PIECES"),
        (last, (3, 1, 1, 1), empty(x, (3, 1, 1, 1)), "PACKED"),
        (last, (3, 1, 1, 1), empty(x, (3, 1, 1, 1)).copy("F"), "LAST"),
        (x, (3, 1, 1, 2), empty(x, (3, 1, 1, 2)).copy("F"), "LAST"),
        (x, (3, 1, 1, 1), empty(x, (3, 1, 1, 1)).copy("F"), "PIECES"),  # short runs of pixels
        (x, (3, 6, 1, 2), empty(x, (3, 6, 1, 2)).copy("F"), "PIECES"),  # and dilated ones
        (last[:, :3], (3, 1, 1, 1), empty(last[:, :3], (3, 1, 1, 1)).copy("F"), "PIECES"),
    ):
        with a.num_threads(1):
            assert wanted in chosen(image, geometry, out)
            assert "TABLE" in wanted or "TABLE" not in chosen(image, geometry, out)


@pytest.mark.parametrize("dtype", ["uint8", "float16", "float32", "complex128"])
@pytest.mark.parametrize(
    ("shape", "geometry"),
    [
        ((1, 2, 600, 12), (11, 1, 0, 1)),  # more kernel positions of windows than one table holds
        ((2, 2, 600, 150), (9, 2, (4, 2), (2, 12))),  # more rows of the image than places
        ((1, 1, 700, 20), ((3, 2), (30, 1), (300, 0), (1, 3))),  # bands above and below the image
    ],
)
def test_tables_of_bands(rng, shape, geometry, dtype):
    x = some_bits(rng, shape, dtype)
    wanted = im2col(x, *geometry)
    pairs = [value if isinstance(value, tuple) else (value, value) for value in geometry]
    with a.soc("Host"):
        executor = a.aclnnIm2colGetWorkspaceSize(x, *pairs, np.empty_like(wanted))[1]
    assert executor.explain().algorithm == "TABLE"
    for image in (x, x[..., ::-1].copy()[..., ::-1], x.transpose(0, 2, 3, 1).copy().transpose(0, 3, 1, 2)):
        for threads in (1, 3):
            with a.num_threads(threads):
                same_bits(a.im2col(image, *geometry), wanted)


def test_windows_far_above_and_below_the_image():
    """Columns side by side, of which no row of the image is any: nothing must be read, not even be pointed at."""
    x = np.ones((1, 128, 1, 512), np.float32)
    geometry = (1, 2), (1, 1), (2**30, 0), (2**31, 1)
    out = np.ones((1, 256, 2 * 511), np.float32).transpose(0, 2, 1).copy().transpose(0, 2, 1)
    a.im2col(x, *geometry, out=out)
    assert not out.any()
