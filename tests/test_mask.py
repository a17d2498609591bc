"""mask_shape, mask_to_indices and indices_to_mask: between the masks and the indices of other libraries."""

import re

import numpy as np
import pytest
import reference
from engine_helpers import refusal
from helpers import guarded_copy
from hypothesis import given, settings
from hypothesis import strategies as st
from operators import max_pool
from operators.max_pool import MASK_LAYOUTS, with_garbage
from operators.max_pool import Pool as MaxPool
from test_max_pool2d import KINDS, any_pool, indices_inside, refusal_of, seeds

import aclnn_bw as a

NULL, INVALID = a.AclnnStatus.ACLNN_ERR_PARAM_NULLPTR, a.AclnnStatus.ACLNN_ERR_PARAM_INVALID

every_kind = pytest.mark.parametrize("pool", KINDS, ids=str)
every_layout = pytest.mark.parametrize("layout", MASK_LAYOUTS)


def geometry(pool):
    return (pool.input_shape, *pool.attributes)


@pytest.mark.parametrize(
    ("pool", "shape"),
    [
        (MaxPool((1, 1, 4, 4), 2), (1, 1, 4, 64)),
        (MaxPool((3, 7, 7), 1), (3, 1, 160)),  # 49 windows: 4 blocks of 16 and one more
        (MaxPool((2, 3, 8, 8), 2), (2, 3, 4, 64)),  # exactly 16 windows: one block and one more
        (MaxPool((2, 3, 17, 2), (1, 2)), (2, 3, 2, 96)),
        (MaxPool((0, 3, 8, 8), 2), (0, 3, 4, 64)),
        (MaxPool((1, 2, 9, 9), (3, 5), 2, (1, 2), True), (1, 2, 15, 96)),
        (MaxPool((1, 1, 2**15, 2**15), 2**15), (1, 1, 2**30, 64)),
    ],
    ids=str,
)
def test_mask_shape_by_hand(pool, shape):
    assert max_pool.mask_shape(*pool) == shape
    result = a.mask_shape(*geometry(pool))
    assert result == shape
    assert all(type(size) is int for size in result)


def test_mask_shape_by_name_and_by_default():
    assert a.mask_shape((1, 4, 4), 2) == (1, 4, 64)
    named = {"kernel_size": (2, 2), "stride": [1, 1], "padding": 1, "dilation": (1, 1), "ceil_mode": True}
    assert a.mask_shape(input_shape=(1, 4, 4), **named) == (1, 4, 96)


@given(any_pool())
def test_mask_shape(pool):
    assert a.mask_shape(*geometry(pool)) == pool.mask_shape


# ---- there and back --------------------------------------------------------------------------------------------------


def check_both_ways(pool, rng):
    indices = pool.indices(rng)
    for layout in MASK_LAYOUTS:
        expected = pool.mask(indices, layout)
        mask = a.indices_to_mask(indices, *geometry(pool), mask_layout=layout)
        assert mask.dtype == np.int8
        assert mask.flags.c_contiguous
        assert np.array_equal(mask, expected)
        shifted = guarded_copy(with_garbage(mask, pool, rng, layout), "contiguous", 1)
        result = a.mask_to_indices(shifted.view, *geometry(pool), mask_layout=layout)
        assert result.dtype == np.int64
        assert np.array_equal(result, indices)


@every_kind
def test_both_ways(pool, rng):
    check_both_ways(pool, rng)
    check_both_ways(pool._replace(input_shape=pool.input_shape[1:]), rng)


@given(any_pool(), seeds)
def test_both_ways_in_any_geometry(pool, seed):
    check_both_ways(pool, np.random.default_rng(seed))


def test_worked_example():
    indices = np.array([[[[5, 7], [13, 15]]]])
    mask = a.indices_to_mask(indices, (1, 1, 4, 4), 2)
    words = mask.reshape(-1).view("<u2")
    assert np.flatnonzero(words).tolist() == [96, 97, 98, 99]
    assert words[96:100].tolist() == [1, 1, 1, 1]
    assert a.mask_to_indices(mask, (1, 1, 4, 4), 2).tolist() == indices.tolist()
    argmax = a.indices_to_mask(indices, (1, 1, 4, 4), 2, mask_layout="argmax")
    assert argmax.reshape(-1).view("<i4")[:6].tolist() == [5, 7, 13, 15, 0, 0]


@pytest.mark.parametrize("density", [0.0, 0.05, 0.5, 1.0])
@every_kind
def test_any_number_of_bits(pool, density, rng):
    """Of several the first position inside the image counts, of none or of those in the padding alone it is -1."""
    hits = rng.random(pool.hits_shape) < density
    expected = max_pool.indices_of_hits(hits, *pool)
    mask = with_garbage(max_pool.bitmask(hits), pool, rng)
    result = a.mask_to_indices(mask, *geometry(pool))
    assert np.array_equal(result, expected)
    assert density > 0 or np.all(result == -1)
    # -1 sets no bit, so that the way back leaves the first mark of each window.
    assert np.array_equal(a.indices_to_mask(expected, *geometry(pool)), max_pool.bitmask(pool.hits(expected)))


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16, np.int32, np.uint64, ">i8"])
def test_indices_of_any_integer_type_and_strides(dtype, rng):
    pool = MaxPool((2, 3, 9, 12), 3, 2, 1)
    indices = pool.indices(rng)
    expected = a.indices_to_mask(indices, *geometry(pool))
    given_indices = np.repeat(indices, 2, axis=-1).astype(dtype)[..., ::2]
    assert np.array_equal(a.indices_to_mask(given_indices, *geometry(pool)), expected)


# Beyond the planes above: several blocks of windows, rows in parts, kernels whose bits are set one by one, widths by
# which distances are divided with an error.
FAR = [
    MaxPool((1, 18, 40, 90), 3, 2, 1), MaxPool((2, 17, 21, 21), 3, 1, 1),
    MaxPool((1, 3, 4, 700), (2, 3), (1, 2), (1, 1)), MaxPool((1, 2, 3, 5000), (2, 3), 1, (1, 1)),
    MaxPool((1, 2, 60, 4200), (9, 2), (9, 7)), MaxPool((1, 5, 30, 31), 9, 1, 4),
    MaxPool((1, 4, 40, 45), (17, 3), 2, (8, 1)), MaxPool((1, 3, 20, 21), (3, 18), 1, (1, 9)),
    MaxPool((3, 33, 2, 3), 2, 1, 1),
]  # fmt: skip


@pytest.mark.parametrize("pool", FAR, ids=str)
def test_larger_planes_at_every_thread_count(pool, rng):
    places = pool.indices(rng)
    for layout in MASK_LAYOUTS:
        mask = pool.mask(places, layout)
        for threads in (1, 2, 5):
            with a.num_threads(threads):
                for dtype in (np.int64, np.int32, np.uint16 if places.max() < 2**16 else np.uint64):
                    made = a.indices_to_mask(places.astype(dtype), *geometry(pool), mask_layout=layout)
                    assert np.array_equal(made, mask)
                garbage = with_garbage(mask, pool, rng, layout)
                assert np.array_equal(a.mask_to_indices(garbage, *geometry(pool), mask_layout=layout), places)
    # Any bits, those in the padding too; and windows without an index.
    hits = rng.random(pool.hits_shape) < rng.choice([0.02, 0.3, 0.9])
    wanted = max_pool.indices_of_hits(hits, *pool)
    assert np.array_equal(a.mask_to_indices(max_pool.bitmask(hits), *geometry(pool)), wanted)
    some = np.where(rng.random(places.shape) < 0.2, -1, places)
    mask = max_pool.bitmask(pool.hits(some))
    assert np.array_equal(a.indices_to_mask(some.astype(np.int32), *geometry(pool)), mask)
    assert np.array_equal(a.mask_to_indices(mask, *geometry(pool)), some)


@pytest.mark.parametrize("pool", FAR, ids=str)
def test_the_first_bad_index_of_a_larger_plane_is_named(pool, rng):
    places = pool.indices(rng)
    height, width = pool.input_shape[-2:]
    n, c, oh, ow = (s - 1 for s in places.shape)
    for value in (-2, height * width, 2**31, 2**32 + int(places[n, c, oh, ow]), 2**63 - 1, -(2**63)):
        bad = places.copy()
        bad[n, c, oh, ow] = value
        bad[n, 0, oh, ow // 2] = value  # an earlier channel, and perhaps a later band
        rule = rf"^indices\[{n}, 0, {oh}, {ow // 2}\] = {value}: must lie inside window"
        for layout, threads in ((layout, threads) for layout in MASK_LAYOUTS for threads in (1, 4)):
            with a.num_threads(threads), refusal(INVALID, rule):
                a.indices_to_mask(bad, *geometry(pool), mask_layout=layout)
    with refusal(INVALID, rf"^indices\[0, 0, 0, 0\] = {2**64 - 1}: must lie"):
        a.indices_to_mask(np.full(places.shape, 2**64 - 1, np.uint64), *geometry(pool))
    with refusal(INVALID, r"^indices\[0, 0, 0, 0\] = -1: must lie"):
        a.indices_to_mask(np.full(places.shape, -1), *geometry(pool), mask_layout="argmax")


def test_indices_in_the_other_byte_order_and_at_any_address(rng):
    pool = MaxPool((2, 3, 9, 12), 3, 2, 1)
    places = pool.indices(rng)
    mask = pool.mask(places)
    swapped = places.astype(places.dtype.newbyteorder())
    memory = np.empty(places.nbytes + 3, np.uint8)
    anywhere = memory[3:].view(np.int64).reshape(places.shape)
    anywhere[...] = places
    packed = np.empty(places.shape, [("", np.int8), ("place", np.int64)])["place"]
    packed[...] = places
    for indices in (swapped, anywhere, packed, places[::-1, :, ::-1][::-1, :, ::-1]):
        assert np.array_equal(a.indices_to_mask(indices, *geometry(pool)), mask)
    somewhere = np.empty(mask.nbytes + 1, np.int8)[1:].reshape(mask.shape)
    somewhere[...] = mask
    assert np.array_equal(a.mask_to_indices(somewhere, *geometry(pool)), places)


@every_layout
def test_empty_batch(layout):
    mask = a.indices_to_mask(np.empty((0, 3, 4, 4), np.int64), (0, 3, 8, 8), 2, mask_layout=layout)
    assert (mask.shape, mask.dtype) == ((0, 3, 4, 64), np.int8)
    indices = a.mask_to_indices(mask, (0, 3, 8, 8), 2, mask_layout=layout)
    assert (indices.shape, indices.dtype) == ((0, 3, 4, 4), np.int64)


@every_layout
@every_kind
def test_what_the_forward_writes_and_the_backward_reads(pool, layout, rng):
    """The forward's mask is the one of its indices, and the backward takes a mask made from indices."""
    x = pool.values(rng, "float32")
    out, mask = a.max_pool2d_with_mask(x, *pool.attributes, mask_layout=layout)
    indices = a.mask_to_indices(mask, *geometry(pool), mask_layout=layout)
    planes = x.reshape(*x.shape[:2], -1)
    assert np.array_equal(np.take_along_axis(planes, indices.reshape(*x.shape[:2], -1), 2).reshape(out.shape), out)
    assert np.array_equal(a.indices_to_mask(indices, *geometry(pool), mask_layout=layout), mask)
    grad = np.ones(out.shape)
    result = a.max_pool2d_with_mask_backward(grad, x.shape, mask, *pool.attributes, mask_layout=layout)
    counts = np.zeros(planes.shape)
    for n, c in np.ndindex(planes.shape[:2]):
        np.add.at(counts[n, c], indices[n, c].ravel(), 1)
    assert np.array_equal(result, counts.reshape(x.shape))


# ---- refusals --------------------------------------------------------------------------------------------------------


@every_layout
def test_exactly_the_indices_inside_their_own_window_are_taken(layout, rng):
    pool = MaxPool((1, 1, 5, 6), 3, 2, 1)
    indices = pool.indices(rng)
    for place in np.ndindex(indices.shape):
        for value in [*range(-14, 44), -(2**63), 2**63 - 1, 2**32 + int(indices[place])]:
            moved = indices.copy()
            moved[place] = value
            if value in indices_inside(pool, *place[-2:]) or (value == -1 and layout == "bitmask"):
                mask = a.indices_to_mask(moved, *geometry(pool), mask_layout=layout)
                assert np.array_equal(mask, pool.mask(moved, layout))
            else:
                with refusal(INVALID, re.escape(refusal_of(place, value))):
                    a.indices_to_mask(moved, *geometry(pool), mask_layout=layout)


@every_layout
def test_the_first_bad_index_is_named(layout, rng):
    indices = MaxPool((2, 3, 8, 8), 2).indices(rng)
    indices[0, 2, 3, 1], indices[1, 0, 0, 0] = -2, 70
    with refusal(INVALID, re.escape(refusal_of((0, 2, 3, 1), -2))):
        a.indices_to_mask(indices, (2, 3, 8, 8), 2, mask_layout=layout)
    assert "-2" in a.aclGetRecentErrMsg()
    with refusal(INVALID, re.escape(refusal_of((2, 3, 1), -2))):
        a.indices_to_mask(indices[0], (3, 8, 8), 2, mask_layout=layout)


GEOMETRY = {
    "null shape": ({"input_shape": None}, NULL, "^input_shape = None: must not be null"),
    "null kernel_size": ({"kernel_size": None}, NULL, "^kernel_size = None: must not be null"),
    "null padding": ({"padding": None}, NULL, "^padding = None: must not be null"),
    "null dilation": ({"dilation": None}, NULL, "^dilation = None: must not be null"),
    "rank": ({"input_shape": (4, 4)}, INVALID, r"^input_shape\b.*= .*: must "),
    "long rank": ({"input_shape": (1, 1, 1, 4, 4)}, INVALID, r"^input_shape\b.*= .*: must "),
    "negative size": ({"input_shape": (1, 1, -4, 4)}, INVALID, r"^input_shape\b.*-4\b.*: must "),
    "zero size": ({"input_shape": (1, 1, 0, 4)}, INVALID, r"^input_shape\b.* = \(1, 1, 0, 4\): .*must "),
    "length": ({"kernel_size": (2, 2, 2)}, INVALID, r"^len\(kernel_size\) = 3: must be 1 to 2$"),
    "kernel_size": ({"kernel_size": 0}, INVALID, r"^kernel_size = 0: must be (>= 1|> 0)$"),
    "stride": ({"stride": (1, 0)}, INVALID, r"^stride\[1\] = 0: must be (>= 1|> 0)$"),
    "padding": ({"padding": -1}, INVALID, r"^padding = -1: must be >= 0$"),
    "padding too big": ({"padding": (1, 2)}, INVALID, r"^padding\[1\] = 2: must be <= kernel_size / 2 = 1$"),
    "dilation": ({"dilation": 2}, INVALID, r"^dilation = 2: must be 1$"),
    "no window": ({"kernel_size": 9}, INVALID, r"^(input_shape|kernel_size)\b.* = .*: "),
}


@pytest.mark.parametrize("case", GEOMETRY)
def test_geometry_is_refused(case):
    changes, status, pattern = GEOMETRY[case]
    legal = {"input_shape": (1, 1, 4, 4), "kernel_size": 2, "stride": None, "padding": 0, "dilation": 1}
    with refusal(status, pattern):
        a.mask_shape(**{**legal, **changes})
    with refusal(status, pattern):
        a.mask_to_indices(np.zeros((1, 1, 4, 64), np.int8), **{**legal, **changes})
    with refusal(status, pattern):
        a.indices_to_mask(np.zeros((1, 1, 2, 2), np.int64), **{**legal, **changes})
    assert a.aclGetRecentErrMsg()


@every_layout
def test_mask_to_indices_refuses(layout):
    rest, options = ((1, 1, 4, 4), 2), {"mask_layout": layout}
    indices = np.zeros((1, 1, 2, 2), np.int64)
    with refusal(INVALID, "^mask.dtype = int64: must be int8; indices_to_mask makes a mask of indices$"):
        a.mask_to_indices(indices, (1, 1, 4, 4), 2)
    with refusal(NULL, "^mask = None: must not be null$"):
        a.mask_to_indices(None, *rest, **options)
    for shape in ((1, 1, 4, 63), (1, 4, 64), (1, 1, 4, 96), (256,)):
        with refusal(INVALID, r"^mask\.shape = \(.*\): must be .*\(1, 1, 4, 64\)"):
            a.mask_to_indices(np.zeros(shape, np.int8), *rest, **options)
    for dtype in (np.uint8, np.int32, np.bool_):
        with refusal(INVALID, r"^mask\.dtype = .*: must be .*(int8|INT8)"):
            a.mask_to_indices(np.zeros((1, 1, 4, 64), dtype), *rest, **options)


@every_layout
def test_indices_to_mask_refuses(layout):
    rest, options = ((1, 1, 4, 4), 2), {"mask_layout": layout}
    with refusal(NULL, "^indices = None: must not be null$"):
        a.indices_to_mask(None, *rest, **options)
    for shape in ((1, 1, 2, 3), (1, 2, 2), (4,)):
        with refusal(INVALID, r"^indices\.shape = \(.*\): must be .*\(1, 1, 2, 2\)"):
            a.indices_to_mask(np.zeros(shape, np.int64), *rest, **options)
    for dtype in (np.float64, np.bool_):
        with refusal(INVALID, r"^indices\.dtype = .*: must be "):
            a.indices_to_mask(np.zeros((1, 1, 2, 2), dtype), *rest, **options)


@pytest.mark.parametrize("layout", ["", "Bitmask", "indices"])
def test_unknown_mask_layout(layout):
    zeros = np.zeros((1, 1, 2, 2), np.int64)
    with refusal(INVALID, rf"^mask_layout = '{layout}': must be .*bitmask.*argmax"):
        a.indices_to_mask(zeros, (1, 1, 4, 4), 2, mask_layout=layout)
    with refusal(INVALID, rf"^mask_layout = '{layout}': must be .*bitmask.*argmax"):
        a.mask_to_indices(np.zeros((1, 1, 4, 64), np.int8), (1, 1, 4, 4), 2, mask_layout=layout)
    for wrong in (None, 0, b"argmax"):
        with pytest.raises(TypeError, match="mask_layout"):
            a.indices_to_mask(zeros, (1, 1, 4, 4), 2, mask_layout=wrong)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("input_shape", 4), ("input_shape", (1, 4.0, 4)), ("kernel_size", 2.0), ("kernel_size", True), ("stride", "2"),
        ("padding", 0.5), ("dilation", (1.0, 1)), ("ceil_mode", "yes"), ("ceil_mode", None),
    ],
    ids=str,
)  # fmt: skip
def test_geometry_of_another_type(name, value):
    legal = {"input_shape": (1, 4, 4), "kernel_size": 2}
    with pytest.raises(TypeError, match=name):
        a.mask_shape(**{**legal, name: value})


@pytest.mark.parametrize("size", [2**31, 2**40, 2**62, 2**63 - 1])
@given(data=st.data())
@settings(max_examples=20)
def test_absurd_geometry_does_not_overflow(size, data):
    """The right shape, or a refusal; never a wrong one."""
    pick = st.sampled_from([size, size - 1, 3, 1])
    shape = tuple(data.draw(st.tuples(pick, pick, pick, pick)))
    kernel, stride = data.draw(st.tuples(pick, pick)), data.draw(st.tuples(pick, pick))
    padding = tuple(data.draw(st.sampled_from([0, k // 2])) for k in kernel)
    pool = MaxPool(shape, kernel, stride, padding, data.draw(st.booleans()))
    outputs = [
        reference.pooled_size(*axis, pool.ceil_mode)
        for axis in zip(shape[2:], kernel, stride, padding, strict=True)
    ]  # fmt: skip
    expected = (*shape[:2], kernel[0] * kernel[1], (-(-outputs[0] * outputs[1] // 16) + 1) * 32)
    try:
        result = a.mask_shape(*geometry(pool))
    except (a.AclnnError, MemoryError):
        return
    assert min(outputs) >= 1
    assert result == expected


# ---- arguments of other kinds ---------------------------------------------------------------------------------------


def test_argmax_cannot_count_a_larger_plane():
    """Its indices are int32; in the layout "bitmask" the same plane is no matter."""
    args = (1, 65536, 65536), 2, 32768
    last = 32768 * 65536
    indices = np.array([[[0, 32768], [last, last + 32768]]])
    mask = a.indices_to_mask(indices, *args)
    assert np.array_equal(a.mask_to_indices(mask, *args), indices)
    rule = r"^input_shape = \(1, 65536, 65536\): H \* W must be <= 2147483647 "
    with refusal(INVALID, rule):
        a.indices_to_mask(indices, *args, mask_layout="argmax")
    with refusal(INVALID, rule):
        a.mask_to_indices(mask, *args, mask_layout="argmax")


@pytest.mark.parametrize("kind", [np.int8, np.uint8, np.int16, np.uint32, np.int64, np.uint64])
@every_layout
def test_sizes_may_be_numpy_integers(kind, layout):
    """Whose products overflow in their own type."""
    x = np.random.default_rng(0).standard_normal((1, 20, 100, 100)).astype(np.float32)
    sizes = tuple(kind(size) for size in x.shape)
    mask = a.max_pool2d_with_mask(x, 2, mask_layout=layout)[1]
    indices = a.mask_to_indices(mask, x.shape, 2, mask_layout=layout)
    assert np.array_equal(a.mask_to_indices(mask, sizes, 2, mask_layout=layout), indices)
    assert np.array_equal(a.indices_to_mask(indices, sizes, 2, mask_layout=layout), mask)
    assert a.mask_shape(sizes, 2) == mask.shape


class OnlyDLPack:
    """An array that speaks nothing but DLPack."""

    def __init__(self, array):
        self.__dlpack__, self.__dlpack_device__ = array.__dlpack__, array.__dlpack_device__


@every_layout
def test_masks_and_indices_may_be_other_tensors(layout):
    x = np.random.default_rng(1).standard_normal((2, 3, 8, 6)).astype(np.float32)
    mask = a.max_pool2d_with_mask(x, 2, mask_layout=layout)[1]
    indices = a.mask_to_indices(mask, x.shape, 2, mask_layout=layout)
    shifted = np.zeros(mask.size + 5, np.int8)
    shifted[5:] = mask.reshape(-1)
    tensors = [
        OnlyDLPack(mask),
        a.aclCreateTensor(mask.shape, a.ACL_INT8, None, 5, a.ACL_FORMAT_ND, [shifted.size], shifted),
    ]
    for tensor in tensors:
        assert np.array_equal(a.mask_to_indices(tensor, x.shape, 2, mask_layout=layout), indices)
    tensors = [
        OnlyDLPack(indices),
        a.aclCreateTensor(indices.shape, a.ACL_INT64, None, 0, a.ACL_FORMAT_ND, indices.shape, indices),
    ]
    for tensor in tensors:
        assert np.array_equal(a.indices_to_mask(tensor, x.shape, 2, mask_layout=layout), mask)


def test_tensors_that_cannot_be_read():
    unbound = a.aclCreateTensor([1, 4, 64], a.ACL_INT8)
    with refusal(NULL, "^mask: is unbound; it has no data$"):
        a.mask_to_indices(unbound, (1, 4, 4), 2)
    beyond = a.aclCreateTensor([1, 4, 64], a.ACL_INT8, [256, 64, 2], 0, a.ACL_FORMAT_ND, [256], bytearray(256))
    with refusal(INVALID, r"^mask.strides = \(256, 64, 2\): .* leaves its storage"):
        a.mask_to_indices(beyond, (1, 4, 4), 2)
    indices = a.aclCreateTensor([1, 2, 2], a.ACL_INT64, [4, 2, 2**40], 0, a.ACL_FORMAT_ND, [4], bytearray(32))
    with refusal(INVALID, r"^indices.strides = \(4, 2, 1099511627776\): .* leaves its storage"):
        a.indices_to_mask(indices, (1, 4, 4), 2)
    for function in (a.mask_to_indices, a.indices_to_mask):
        with pytest.raises(TypeError, match="must be an aclTensor, a NumPy array"):
            function([[[1]]], (1, 4, 4), 2)


@pytest.mark.parametrize("shape", [(3, 4, 4), (0, 3, 4, 4)], ids=str)
def test_a_mask_that_no_machine_holds(shape):
    call = shape, (2**41, 1), None, (2**40, 0)
    with refusal(INVALID, r"^kernel_size = \(2199023255552, 1\): makes a mask of more bytes than a machine addresses$"):
        a.mask_shape(*call)
    with refusal(INVALID, "^kernel_size = .*: makes a mask of more bytes"):
        a.max_pool2d_with_mask(np.zeros(shape, np.float32), *call[1:])


@pytest.mark.parametrize("ceil_mode", [False, True])
def test_windows_beyond_64_bits_are_not_said_to_be_none(ceil_mode):
    with pytest.raises(a.AclnnError, match="has more windows than a 64-bit integer counts"):
        a.mask_shape((1, 1, 2**63 - 1), 2, 1, 1, ceil_mode=ceil_mode)
