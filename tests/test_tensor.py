"""Tensors and int arrays: what a handle or an array may be, where its elements lie, and what may overlap."""

import contextlib
import copy
import ctypes
import gc
import itertools
import pickle
import re
import sys
import time
import weakref

import ml_dtypes
import numpy as np
import pytest
from engine_helpers import (
    NUMPY_DTYPE,
    PRODUCTS,
    Spec,
    expected,
    gradient,
    handle_of,
    label,
    phase1,
    phase2,
    plan,
    refusal,
    sentinel_array,
    sentinels,
    specs,
    untouched,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.lib.stride_tricks import as_strided
from operators import OPERATORS, TAKEN, each_operator

import aclnn_bw as a

NULL, INVALID = a.AclnnStatus.ACLNN_ERR_PARAM_NULLPTR, a.AclnnStatus.ACLNN_ERR_PARAM_INVALID
FLOATS = (a.ACL_FLOAT, a.ACL_DOUBLE, a.ACL_FLOAT16, a.ACL_BF16)
OUT = (2, 3, 4, 4)
IN = (2, 3, 8, 8)


@pytest.fixture(autouse=True)
def host():
    with a.soc("Host"):
        yield


def tensor(shape, data, dtype=a.ACL_FLOAT, strides=None, offset=0, storage=None):
    """An NCHW or NCL handle; the storage is all of `data` unless given."""
    if storage is None:
        storage = shape if data is None else (memoryview(data).nbytes // NUMPY_DTYPE[dtype].itemsize,)
    fmt = a.ACL_FORMAT_NCL if len(shape) == 3 else a.ACL_FORMAT_NCHW
    return a.aclCreateTensor(shape, dtype, strides, offset, fmt, storage, data)


def run(grad_output, grad_input, *, self=None, kernel=2, stride=2):
    size, executor = plan(grad_output, grad_input, kernel, stride, self=self)
    phase2(size, executor)


# aclCreateTensor


@pytest.mark.parametrize("dtype", FLOATS, ids=lambda dtype: dtype.name)
@pytest.mark.parametrize("kind", ["array", "bytearray", "memoryview", "bytes", "malloc"])
def test_every_buffer_serves_as_storage(dtype, kind):
    values = gradient(OUT, NUMPY_DTYPE[dtype])
    raw = values.view(np.uint8).tobytes()
    if kind == "array":
        data = values
    elif kind == "malloc":
        data = a.aclrtMalloc(len(raw), 0)
        a.aclrtMemcpy(data, len(raw), raw, len(raw), 1)
    else:
        data = {"bytearray": bytearray, "memoryview": memoryview, "bytes": bytes}[kind](raw)
    grad_input = np.zeros(IN, NUMPY_DTYPE[dtype])
    run(tensor_over(data, OUT, dtype), grad_input)
    assert grad_input.tobytes() == expected(values).tobytes()


def tensor_over(data, shape, dtype):
    return a.aclCreateTensor(shape, dtype, None, 0, a.ACL_FORMAT_NCHW, shape, data)


@pytest.mark.parametrize(
    "kind", [bytearray, lambda raw: memoryview(bytearray(raw)), lambda raw: a.aclrtMalloc(len(raw), 0)]
)
def test_every_writable_buffer_serves_as_output(kind):
    values = gradient()
    data = kind(bytes(expected(values).nbytes))
    run(values, tensor_over(data, IN, a.ACL_FLOAT))
    assert bytes(data) == expected(values).tobytes()


def test_buffer_of_another_dtype_is_just_bytes():
    values = gradient()
    grad_input = np.zeros(IN, np.float32)
    run(tensor_over(values.view(np.int32), OUT, a.ACL_FLOAT), grad_input)
    assert np.array_equal(grad_input, expected(values))


def test_storage_may_have_any_rank():
    values = gradient()
    for storage in ((96,), (2, 48), (1, 1, 2, 3, 4, 4), (96, 1)):
        handle = a.aclCreateTensor(OUT, a.ACL_FLOAT, None, 0, a.ACL_FORMAT_NCHW, storage, values)
        grad_input = np.zeros(IN, np.float32)
        run(handle, grad_input)
        assert np.array_equal(grad_input, expected(values))


def test_buffer_larger_than_storage():
    data = np.zeros(1000, np.float32)
    data[:96] = gradient().ravel()
    grad_input = np.zeros(IN, np.float32)
    run(a.aclCreateTensor(OUT, a.ACL_FLOAT, None, 0, a.ACL_FORMAT_NCHW, OUT, data), grad_input)
    assert np.array_equal(grad_input, expected(gradient()))


@pytest.mark.parametrize("short", [1, 4, 384])
def test_buffer_smaller_than_storage(short):
    with refusal(INVALID, "tensorData", "384"):
        a.aclCreateTensor(OUT, a.ACL_FLOAT, None, 0, a.ACL_FORMAT_NCHW, OUT, bytearray(384 - short))


def test_buffer_must_be_contiguous():
    data = np.zeros((96, 2), np.float32)[:, 0]
    with pytest.raises((TypeError, ValueError, BufferError), match="tensorData"):
        a.aclCreateTensor(OUT, a.ACL_FLOAT, None, 0, a.ACL_FORMAT_NCHW, OUT, data)


@pytest.mark.parametrize("dtype", ["O", [("x", "f4"), ("y", "O")]], ids=["object", "record"])
def test_objects_are_no_storage(dtype):
    # Numbers written over references would bring the interpreter down.
    data = np.zeros(384, dtype)
    with pytest.raises((TypeError, ValueError), match="tensorData"):
        a.aclCreateTensor(IN, a.ACL_FLOAT, None, 0, a.ACL_FORMAT_NCHW, IN, data)
    if dtype == "O":
        assert data.tolist() == [0] * 384


@pytest.mark.parametrize("data", [3, 1.5, [0.0] * 96, "x" * 400, object()], ids=lambda data: type(data).__name__)
def test_data_that_are_no_buffer(data):
    with pytest.raises(TypeError, match="tensorData"):
        a.aclCreateTensor(OUT, a.ACL_FLOAT, None, 0, a.ACL_FORMAT_NCHW, OUT, data)


@pytest.mark.parametrize(
    ("viewDims", "strides", "storageDims", "name"),
    [
        ((2, -3, 4, 4), None, (96,), "viewDims"),
        ((-1,), None, (96,), "viewDims"),
        ((2, 3, 4, 4), None, (-96,), "storageDims"),
        ((2, 3, 4, 4), None, (-2, -48), "storageDims"),
        ((2, 3, 4, 4), (16, 4, 1), (96,), "strides"),
        ((2, 3, 4, 4), (), (96,), "strides"),
        ((2, 3, 4, 4), (96, 48, 16, 4, 1), (96,), "strides"),
    ],
)
def test_malformed_tensor(viewDims, strides, storageDims, name):
    with refusal(INVALID, rf"\b{name}\b.* = .*: must"):
        a.aclCreateTensor(viewDims, a.ACL_FLOAT, strides, 0, a.ACL_FORMAT_NCHW, storageDims, bytearray(384))
    with refusal(INVALID, rf"\b{name}\b.* = .*: must"):
        a.aclCreateTensor(viewDims, a.ACL_FLOAT, strides, 0, a.ACL_FORMAT_NCHW, storageDims, None)


@pytest.mark.parametrize(
    ("index", "name"), [(0, "viewDims"), (2, "strides"), (3, "offset"), (5, "storageDims")], ids=lambda v: str(v)
)
@pytest.mark.parametrize("bad", [1.5, True, "2"])
def test_arguments_of_another_type(index, name, bad):
    arguments = [OUT, a.ACL_FLOAT, (48, 16, 4, 1), 0, a.ACL_FORMAT_NCHW, OUT, bytearray(384)]
    arguments[index] = bad if name == "offset" else (bad, 3, 4, 4)
    with pytest.raises(TypeError, match=name):
        a.aclCreateTensor(*arguments)


@pytest.mark.parametrize(("index", "name"), [(0, "viewDims"), (2, "strides"), (3, "offset"), (5, "storageDims")])
@pytest.mark.parametrize("bad", [2**63, -(2**63) - 1])
def test_arguments_beyond_int64(index, name, bad):
    arguments = [OUT, a.ACL_FLOAT, (48, 16, 4, 1), 0, a.ACL_FORMAT_NCHW, OUT, bytearray(384)]
    arguments[index] = bad if name == "offset" else (bad, 3, 4, 4)
    with pytest.raises(OverflowError, match=name):
        a.aclCreateTensor(*arguments)


@pytest.mark.parametrize("dtype", [5, 99, -2, 2**31])
def test_unknown_dtype_number(dtype):
    with pytest.raises(ValueError, match=f"^dataType = {dtype}: must be"):
        phase1(specs(gradOutput=a.aclCreateTensor(OUT, dtype, None, 0, a.ACL_FORMAT_NCHW, OUT, None)))


@pytest.mark.parametrize("dtype", [a.ACL_STRING, a.ACL_INT4, a.ACL_UINT1, a.ACL_FLOAT4_E2M1], ids=lambda d: d.name)
def test_dtypes_without_whole_bytes_describe_nothing(dtype):
    with refusal(INVALID, f"^dataType = {dtype.name}: must be a dtype with a size in bytes$"):
        a.aclCreateTensor(OUT, dtype, None, 0, a.ACL_FORMAT_NCHW, OUT, bytearray(4096))


@pytest.mark.parametrize(
    ("dtype", "size"),
    [(a.ACL_COMPLEX32, 4), (a.ACL_HIFLOAT8, 1), (a.ACL_FLOAT8_E5M2, 1), (a.ACL_FLOAT8_E4M3FN, 1),
     (a.ACL_FLOAT8_E8M0, 1)],
    ids=lambda value: getattr(value, "name", ""),
)  # fmt: skip
def test_dtypes_that_no_operator_takes_are_refused_by_name(dtype, size):
    count = int(np.prod(OUT))
    with refusal(INVALID, f"tensorData: has {count * size - 1} bytes"):
        a.aclCreateTensor(OUT, dtype, None, 0, a.ACL_FORMAT_NCHW, OUT, bytearray(count * size - 1))
    handle = a.aclCreateTensor(OUT, dtype, None, 0, a.ACL_FORMAT_NCHW, OUT, bytearray(count * size + 1))
    assert repr(handle).startswith(f"<aclTensor {dtype.name} ")
    for product in PRODUCTS:
        with a.soc(product), refusal(INVALID, rf"^gradOutput\.dtype = {dtype.name}: must be one of"):
            phase1(specs(gradOutput=handle))
    shape = (1, 1, 4, 4)
    calls = {
        a.avg_pool2d_backward: (shape, 2), a.im2col: (2,), a.replication_pad2d: (1,),
        a.upsample_nearest_exact1d: (4,), a.max_pool2d_with_mask: (2,),
    }  # fmt: skip
    for call, rest in calls.items():
        with refusal(INVALID, rf"\.dtype = {dtype.name}: must be one of"):
            call(handle, *rest)


@pytest.mark.parametrize("fmt", [5, 99, -2, 2**31])
def test_unknown_format_number(fmt):
    with pytest.raises(ValueError, match=f"^format = {fmt}: must be"):
        phase1(specs(gradOutput=a.aclCreateTensor(OUT, a.ACL_FLOAT, None, 0, fmt, OUT, None)))


@pytest.mark.parametrize("bad", ["float32", np.float32, None, 1.0], ids=label)
def test_dtype_of_another_type(bad):
    with pytest.raises(TypeError, match="dataType"):
        a.aclCreateTensor(OUT, bad, None, 0, a.ACL_FORMAT_NCHW, OUT, None)


def test_high_ranks_do_no_harm():
    for rank in (5, 8, 9, 32, 64, 65, 1000, 100_000):
        with pytest.raises(ValueError, match=r"\w"):
            phase1(
                specs(gradOutput=a.aclCreateTensor((1,) * rank, a.ACL_FLOAT, None, 0, a.ACL_FORMAT_NCHW, (1,), None))
            )


# views: bounds


@pytest.mark.parametrize(
    ("strides", "offset", "elements"),
    [
        ((48, 16, 4, 1), 0, 96),
        ((48, 16, 4, 1), 7, 103),
        ((-48, -16, -4, -1), 95, 96),
        ((48, -16, 4, -1), 35, 96),
        ((1, 2, 6, 24), 0, 96),
        ((0, 0, 0, 0), 0, 1),
        ((0, 0, 4, -1), 3, 16),
        ((100, 30, 7, 2), 5, 193),
    ],
)
def test_view_exactly_fits(strides, offset, elements):
    values = gradient((elements,))
    view = as_strided(values[offset:], OUT, [4 * s for s in strides], writeable=False) if elements > 1 else None
    want = np.full(OUT, values[0], np.float32) if view is None else np.array(view)
    grad_input = np.zeros(IN, np.float32)
    run(tensor(OUT, values, strides=strides, offset=offset), grad_input)
    assert np.array_equal(grad_input, expected(want))
    for data in (values, None):
        with refusal(INVALID, "^gradOutput"):
            plan(tensor(OUT, data, strides=strides, offset=offset, storage=(elements - 1,)), grad_input)
        with refusal(INVALID, "^gradOutput"):
            plan(tensor(OUT, data, strides=strides, offset=offset - elements, storage=(elements,)), grad_input)
        if any(strides):
            shift = 1 if all(s >= 0 for s in strides) or elements == 96 else elements
            with refusal(INVALID, "^gradOutput"):
                plan(tensor(OUT, data, strides=strides, offset=offset + shift, storage=(elements,)), grad_input)


@pytest.mark.parametrize("offset", [-1, -(2**31), -(2**62), -(2**63)])
def test_negative_offset(offset):
    with refusal(INVALID, "^gradOutput|^offset"):
        plan(tensor(OUT, np.zeros(96, np.float32), offset=offset), np.zeros(IN, np.float32))


HUGE = (2**31, 2**32, 2**61, 2**62, 2**63 - 1)


@pytest.mark.parametrize("axis", range(4))
@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("value", HUGE)
def test_strides_that_overflow(axis, sign, value):
    for name, shape in (("gradOutput", OUT), ("gradInput", IN), ("self", IN)):
        strides = [1, 1, 1, 1]
        strides[axis] = sign * value
        for offset in (0, 50, 2**62, 2**63 - 1):
            for data in (bytearray(4096), None):
                with refusal(INVALID, rf"^{name}|^offset|^strides"):
                    handle = tensor(shape, data, strides=strides, offset=offset, storage=(1024,))
                    phase1(specs("Host", **{name: handle}))


@pytest.mark.parametrize("value", HUGE)
@pytest.mark.parametrize("axes", [(0,), (3,), (0, 1), (2, 3), (0, 1, 2, 3)], ids=str)
def test_dims_that_overflow(value, axes):
    shape = [2, 3, 4, 4]
    for axis in axes:
        shape[axis] = value
    with refusal(INVALID):
        phase1(specs("Host", gradOutput=tensor(tuple(shape), bytearray(4096))))


@pytest.mark.parametrize("storage", [(2**32, 2**32), (2**63 - 1,), (2**62, 2), (2**62, 4), (2**61,)], ids=str)
def test_storage_that_overflows(storage):
    with refusal(INVALID, "tensorData|storageDims"):
        a.aclCreateTensor(OUT, a.ACL_FLOAT, None, 0, a.ACL_FORMAT_NCHW, storage, bytearray(4096))


def test_storage_with_a_zero_dim_holds_nothing():
    with refusal(INVALID, "^gradOutput"):
        plan(tensor(OUT, bytearray(384), storage=(2**62, 0, 2**62)), np.zeros(IN, np.float32))


# arrays


@pytest.mark.parametrize(
    "view",
    [
        lambda x: x[..., ::-1],
        lambda x: x[::-1, ::-1, ::-1, ::-1],
        lambda x: x.transpose(2, 3, 0, 1).copy().transpose(2, 3, 0, 1),
        lambda x: np.asfortranarray(x),
        lambda x: np.repeat(x, 3, axis=3)[..., 1::3],
        lambda x: np.repeat(x, 2, axis=2)[:, :, ::-2],
    ],
    ids=["mirror", "mirror all", "channels last", "fortran", "every third", "every second row back"],
)
@pytest.mark.parametrize("dtype", FLOATS, ids=lambda dtype: dtype.name)
def test_strided_arrays(view, dtype):
    values = gradient(OUT, NUMPY_DTYPE[dtype])
    grad_output = view(values)
    memory = np.zeros(IN, NUMPY_DTYPE[dtype])
    grad_input = view(memory)
    assert grad_output.shape == OUT
    assert grad_input.shape == IN
    run(grad_output, grad_input)
    assert np.array(grad_input).tobytes() == expected(np.array(grad_output)).tobytes()


def test_gaps_of_a_strided_output_stay_untouched():
    memory = sentinel_array((2, 6, 16, 24))
    grad_input = memory[:, 1::2, 3:11, 2:18:2]
    grad_output = gradient()
    run(grad_output, grad_input)
    assert np.array_equal(grad_input, expected(grad_output))
    grad_input[...] = sentinel_array(IN)
    assert untouched(memory)


def test_broadcast_input():
    grad_output = np.broadcast_to(np.float32(4), OUT)
    grad_input = np.zeros(IN, np.float32)
    run(grad_output, grad_input)
    assert np.all(grad_input == 1)


def test_inputs_stay_as_they_are():
    grad_output = gradient()
    before = grad_output.tobytes()
    shape_only = sentinel_array(IN)
    grad_output.flags.writeable = False
    run(grad_output, np.zeros(IN, np.float32), self=shape_only)
    assert grad_output.tobytes() == before
    assert untouched(shape_only)


@pytest.mark.parametrize("name", ["gradOutput", "gradInput"])
@pytest.mark.parametrize("dtype", FLOATS, ids=lambda dtype: dtype.name)
def test_misaligned_array(name, dtype):
    shape = OUT if name == "gradOutput" else IN
    size = NUMPY_DTYPE[dtype].itemsize * int(np.prod(shape))
    array = sentinels(size, misaligned=True).view(NUMPY_DTYPE[dtype]).reshape(shape)
    assert not array.flags.aligned
    arrays = {"gradOutput": np.zeros(OUT, array.dtype), "gradInput": np.zeros(IN, array.dtype), name: array}
    with refusal(INVALID, rf"^{name}\b", "align"):
        plan(arrays["gradOutput"], arrays["gradInput"], self=np.zeros(IN, array.dtype))
    assert untouched(array)


@pytest.mark.parametrize("name", ["gradOutput", "gradInput"])
@pytest.mark.parametrize("dtype", [">f4", ">f8", ">f2"] if sys.byteorder == "little" else ["<f4", "<f8", "<f2"])
def test_byte_swapped_array(name, dtype):
    arrays = {"gradOutput": np.ones(OUT, dtype[1:]), "gradInput": np.zeros(IN, dtype[1:])}
    arrays[name] = arrays[name].astype(dtype)
    with refusal(INVALID, rf"^{name}\b", "byte"):
        plan(arrays["gradOutput"], arrays["gradInput"], self=np.zeros(IN, dtype[1:]))


@pytest.mark.parametrize("name", ["gradOutput", "gradInput"])
def test_byte_stride_that_is_no_multiple(name):
    packed = np.dtype({"names": ["x"], "formats": ["f4"], "offsets": [0], "itemsize": 6})
    arrays = {"gradOutput": np.zeros(OUT, np.float32), "gradInput": np.zeros(IN, np.float32)}
    arrays[name] = np.zeros(arrays[name].shape, packed)["x"]
    with refusal(INVALID, rf"^{name}\b", "align|stride|multiple"):
        plan(arrays["gradOutput"], arrays["gradInput"], self=np.zeros(IN, np.float32))


def test_zero_sized_dims_make_no_trouble():
    with refusal(INVALID, r"\.shape"):
        plan(np.zeros((2, 0, 4, 4), np.float32), np.zeros((2, 0, 8, 8), np.float32))
    run(np.zeros((0, 3, 4, 4), np.float32), np.zeros((0, 3, 8, 8), np.float32))


def test_subclasses_of_ndarray():
    grad_output = gradient()
    result = np.zeros(IN, np.float32).view(np.recarray)
    run(grad_output.view(np.recarray), result)
    assert np.array_equal(result, expected(grad_output))


@pytest.mark.parametrize("name", ["gradOutput", "self", "gradInput"])
def test_masked_arrays_are_refused(name):
    """What lies under a mask is garbage, which was computed on."""
    arrays = {"gradOutput": gradient(), "self": np.zeros(IN, np.float32), "gradInput": np.zeros(IN, np.float32)}
    arrays[name] = np.ma.masked_array(arrays[name], arrays[name] == 0)
    with pytest.raises(TypeError, match=rf"^{name}: must not be a masked array.*filled"):
        plan(arrays["gradOutput"], arrays["gradInput"], self=arrays["self"])


def test_masked_arrays_are_refused_elsewhere():
    masked = np.ma.masked_array(np.zeros(IN, np.float32), False)
    for name, call in {
        "grad_output": lambda: a.avg_pool2d_backward(masked, IN, 2),
        "self": lambda: a.avg_pool2d_backward(gradient(), masked, 2),
        "out": lambda: a.avg_pool2d_backward(gradient(), IN, 2, out=masked),
        "tensorData": lambda: a.aclCreateTensor(IN, a.ACL_FLOAT, tensorData=masked),
    }.items():
        with pytest.raises(TypeError, match=rf"^{name}: must not be a masked array"):
            call()


def test_memmap(tmp_path):
    grad_output = gradient()
    grad_input = np.memmap(tmp_path / "out", np.float32, "w+", shape=IN)
    run(grad_output, grad_input)
    grad_input.flush()
    assert np.array_equal(np.fromfile(tmp_path / "out", np.float32).reshape(IN), expected(grad_output))


def test_lists_and_scalars_are_type_errors():
    for value in (gradient().tolist(), 1, 1.0, np.float64(1), "array", {}, memoryview(b"abcd"), bytearray(384)):
        with pytest.raises(TypeError, match="gradOutput"):
            plan(value, np.zeros(IN, np.float32))
        with pytest.raises(TypeError, match="gradInput"):
            plan(gradient(), value, self=np.zeros(IN, np.float32))


def test_array_interface():
    class Exporter:
        def __init__(self, array):
            self.array = array

        @property
        def __array_interface__(self):
            return self.array.__array_interface__

    grad_output = gradient()
    grad_input = np.zeros((2, 3, 8, 16), np.float32)[..., ::-2]
    run(Exporter(grad_output[:, ::-1]), Exporter(grad_input))
    assert np.array_equal(grad_input, expected(grad_output[:, ::-1]))
    grad_input = np.zeros(IN, np.float32)
    grad_input.flags.writeable = False
    with refusal(INVALID, "^gradInput", "writ|read-only"):
        plan(grad_output, Exporter(grad_input))
    with refusal(INVALID, r"^gradOutput\.dtype"):
        plan(Exporter(grad_output.astype(np.int32)), np.zeros(IN, np.float32))


def test_array_interface_that_raises():
    class Liar:
        @property
        def __array_interface__(self):
            raise RuntimeError("no memory today")

    with pytest.raises(RuntimeError, match="no memory today"):
        plan(Liar(), np.zeros(IN, np.float32))


@pytest.mark.parametrize(
    "nonsense",
    [5, None, {}, {"shape": "abc"}, {"shape": (-1, 4)}, {"typestr": "zz"}, {"data": (0,)}, {"data": None},
     {"strides": (1,)}],
    ids=label,
)  # fmt: skip
def test_array_interface_that_is_nonsense(nonsense):
    class Liar:
        __array_interface__ = {**gradient().__array_interface__, **nonsense} if nonsense and nonsense != 5 else nonsense

    with refusal(INVALID, "^gradOutput: its __array_interface__ is malformed: ") as info:
        plan(Liar(), np.zeros(IN, np.float32))
    assert info.value.__cause__ is not None
    with refusal(INVALID, "^grad_output: its __array_interface__ is malformed: "):
        a.avg_pool2d_backward(Liar(), IN, 2)


def dtype_names():
    yield from ((kind, np.dtype(kind).name) for kind in ("i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "?", "F", "D"))
    yield from (("M8[s]", "datetime64"), ("O", "object_"), ("S4", "bytes_"), ("f4,f4", "void"))
    if np.dtype("g").itemsize > 8:
        yield from (("g", "longdouble"), ("G", "clongdouble"))
    yield ml_dtypes.float8_e4m3fn, "float8_e4m3fn"


@pytest.mark.parametrize(("dtype", "name"), [*dtype_names()])
def test_one_call_messages_name_dtypes_as_numpy_does(dtype, name):
    rule = f"{name}: must be one of float32, float16, float64, bfloat16 on Host$"
    with refusal(INVALID, rf"^grad_output\.dtype = {rule}"):
        a.avg_pool2d_backward(np.zeros(OUT, dtype), IN, 2)
    assert re.search(rule, a.aclGetRecentErrMsg())
    with refusal(INVALID, rf"^out\.dtype = {rule}"):
        a.avg_pool2d_backward(gradient(), IN, 2, out=np.zeros(IN, dtype))
    with refusal(INVALID, rf"^mask\.dtype = {name}: must be int8") if name != "int8" else contextlib.nullcontext():
        a.max_pool2d_with_mask_backward(gradient(), IN, np.zeros((2, 3, 4, 64), dtype), 2)


def test_one_call_messages_name_dtypes_of_whatever_was_given():
    class Interface:
        __array_interface__ = np.zeros(OUT, "M8[s]").__array_interface__

    with refusal(INVALID, r"^grad_output\.dtype = datetime64: must be one of float32"):
        a.avg_pool2d_backward(Interface(), IN, 2)
    with refusal(INVALID, r"^self\.dtype = datetime64: must be one of float32"):  # a shape has the first one's
        indices = np.zeros(OUT, np.int64)
        a.max_pool2d_with_indices_backward(np.zeros(OUT, "M8[s]"), IN, 2, None, 0, 1, False, indices)
    with refusal(INVALID, r"^grad_output\.dtype = undefined: must be one of float32"):
        a.avg_pool2d_backward(Exporter(gradient(), dtype=(2, 32, 4)), IN, 2)


def test_two_phase_messages_name_dtypes_as_the_c_call_does():
    with refusal(INVALID, r"^gradOutput\.dtype = ACL_INT64: must be one of ACL_FLOAT, "):
        plan(np.zeros(OUT, np.int64), np.zeros(IN, np.float32))


def test_one_call_messages_name_dtypes_without_a_numpy_name():
    with refusal(INVALID, r"^grad_output\.dtype = ACL_HIFLOAT8: must be one of float32"):
        a.avg_pool2d_backward(a.aclCreateTensor(OUT, a.ACL_HIFLOAT8), IN, 2)


# unbound tensors


def test_unbound_tensors_plan_and_do_not_run():
    def unbound(shape):
        return tensor(shape, None)

    arrays = {"gradOutput": gradient(), "gradInput": np.zeros(IN, np.float32)}
    for name in arrays:
        tensors = {**arrays, name: unbound(arrays[name].shape)}
        size, executor = plan(tensors["gradOutput"], tensors["gradInput"], self=np.zeros(IN, np.float32))
        with refusal(NULL, name):
            phase2(size, executor)
        with refusal(NULL, name):
            phase2(size, executor)
    assert not arrays["gradInput"].any()
    run(arrays["gradOutput"], arrays["gradInput"], self=unbound(IN))
    assert np.array_equal(arrays["gradInput"], expected(arrays["gradOutput"]))


def test_unbound_tensors_of_an_empty_batch_run():
    size, executor = plan(tensor((0, 3, 4, 4), None), tensor((0, 3, 8, 8), None))
    assert size == 0
    phase2(0, executor)


def test_unbound_tensors_may_be_huge():
    shape = (2, 2**16, 2**10, 2**10)
    size, executor = plan(tensor(shape, None), tensor(shape, None), 1, 1)
    with refusal(NULL, "gradOutput"):
        phase2(size, executor)


def test_absurd_unbound_tensors_do_no_harm():
    for shape in ((1, 1, 2**30, 2**31), (1, 1, 2**31, 2**29), (2**29, 2**31, 1, 1), (1, 1, 1, 2**60), (1, 1, 2**60, 1)):
        for dtype in FLOATS:
            for kernel, stride in ((1, 1), (1, 2**40), (2**30, 2**29)):
                out = tuple(max(n - kernel, 0) // stride + 1 for n in shape[2:])
                try:
                    handles = tensor((*shape[:2], *out), None, dtype), tensor(shape, None, dtype)
                    size, executor = plan(*handles, kernel, stride)
                except a.AclnnError as error:
                    # Too large for bytes to be counted, or an image smaller than the kernel.
                    assert error.status == INVALID  # noqa: PT017
                    continue
                assert 0 <= size <= a.get_num_threads() * (2 * 2**20 + 64 * shape[3])
                with refusal(NULL, "gradOutput"):
                    a.aclnnAvgPool2dBackward(bytearray(min(size, 2**24)), min(size, 2**24), executor, None)


def test_absurd_empty_batches_do_no_harm():
    for height, width in ((2**31, 2**31), (2**62, 2**62), (2**63 - 1, 2**63 - 1), (1, 2**63 - 1), (2**63 - 1, 1)):
        shape = (0, 3, height, width)
        for data in (None, bytearray(64)):
            handles = [
                a.aclCreateTensor(shape, a.ACL_FLOAT, strides, 0, a.ACL_FORMAT_NCHW, (16,), data)
                for strides in (None, (1, 1, 1, 1))
            ]
            for grad_output, grad_input in itertools.product(handles, handles):
                size, executor = plan(grad_output, grad_input, 1, 1)
                assert size == 0
                phase2(0, executor)


# handles


def test_destroyed_tensor_serves_no_new_call():
    for name, shape in (("gradOutput", OUT), ("self", IN), ("gradInput", IN)):
        handle = tensor(shape, np.zeros(shape, np.float32))
        a.aclDestroyTensor(handle)
        with refusal(INVALID, rf"^{name}\b", "destroy"):
            phase1(specs("Host", **{name: handle}))


def test_destroyed_int_array_serves_no_new_call():
    for name in ("kernelSize", "stride", "padding"):
        handle = a.aclCreateIntArray((1, 1), 2)
        a.aclDestroyIntArray(handle)
        with refusal(INVALID, rf"^{name}\b", "destroy"):
            phase1(specs("Host", **{name: handle}))


def test_destroying_null_succeeds():
    assert a.aclDestroyTensor(None) in (None, a.ACLNN_SUCCESS)
    assert a.aclDestroyIntArray(None) in (None, a.ACLNN_SUCCESS)


def test_destroying_something_else():
    for destroy in (a.aclDestroyTensor, a.aclDestroyIntArray):
        with pytest.raises(TypeError):
            destroy(5)
    with pytest.raises(TypeError):
        a.aclDestroyTensor(a.aclCreateIntArray((1,), 1))


def test_handles_destroyed_after_phase_1_still_run():
    grad_output, grad_input = gradient(), np.zeros(IN, np.float32)
    handles = [tensor_over(grad_output, OUT, a.ACL_FLOAT), tensor_over(grad_input, IN, a.ACL_FLOAT)]
    arrays = [a.aclCreateIntArray((2, 2), 2), a.aclCreateIntArray((2, 2), 2), a.aclCreateIntArray((0, 0), 2)]
    size, executor = a.aclnnAvgPool2dBackwardGetWorkspaceSize(
        handles[0], handles[1], *arrays, False, True, 0, 0, handles[1]
    )
    for handle in handles:
        a.aclDestroyTensor(handle)
    for array in arrays:
        a.aclDestroyIntArray(array)
    phase2(size, executor)
    assert np.array_equal(grad_input, expected(grad_output))


def test_destroyed_tensor_lets_its_buffer_go():
    data = bytearray(384)
    handle = tensor_over(data, OUT, a.ACL_FLOAT)
    with pytest.raises(BufferError):
        data.append(0)
    a.aclDestroyTensor(handle)
    data.append(0)


@pytest.mark.parametrize("make", [lambda: tensor(OUT, None), lambda: a.aclCreateIntArray((1, 2), 2)])
def test_handles_are_not_copied(make):
    for duplicate in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError, match=r"^acl\w+: cannot be copied or pickled; it is a handle"):
            duplicate(make())


@pytest.mark.parametrize("make", [lambda: tensor(OUT, None), lambda: a.aclCreateIntArray((1, 2), 2)])
def test_handles_are_no_arrays(make):
    for convert in (np.asarray, np.array, lambda handle: np.array(handle, float), lambda handle: np.array([handle])):
        with pytest.raises(TypeError, match=r"^acl\w+: is no array; "):
            convert(make())


def test_handles_come_from_their_functions_only():
    for cls, name in ((a.aclTensor, "gradOutput"), (a.aclIntArray, "kernelSize")):
        with pytest.raises(TypeError):
            cls()
        # An object that its function never saw is at least no danger.
        with pytest.raises((TypeError, a.AclnnError)):
            phase1(specs("Host", **{name: cls.__new__(cls)}))


def test_int_array_size():
    handle = a.aclCreateIntArray([2, 2, 7], 2)
    assert phase1(specs("Host", kernelSize=handle))[0] >= 0
    assert phase1(specs("Host", stride=a.aclCreateIntArray([], 0)))[0] >= 0
    for values, size in (([2, 2], 3), ([2, 2], -1), ([], 1)):
        with refusal(INVALID, "^size|^value"):
            a.aclCreateIntArray(values, size)


def test_int_array_keeps_its_own_values():
    values = [2, 2]
    handle = a.aclCreateIntArray(values, 2)
    values[0] = 0
    assert phase1(specs("Host", kernelSize=handle))[0] >= 0


@pytest.mark.parametrize("values", [2, 2.0, "22", (1.5, 2), (True, 2), (None,)], ids=label)
def test_int_array_of_another_type(values):
    with pytest.raises(TypeError, match="value"):
        a.aclCreateIntArray(values, 1)


def test_int_array_beyond_int64():
    with pytest.raises(OverflowError, match="value"):
        a.aclCreateIntArray((1, 2**63), 2)


def test_sequence_that_raises():
    class Broken:
        def __len__(self):
            return 2

        def __getitem__(self, index):
            raise RuntimeError("lost")

    with pytest.raises((RuntimeError, TypeError), match=r"lost|kernelSize"):
        phase1(specs("Host", kernelSize=Broken()))


def test_sequence_that_changes_while_it_is_read():
    values = []

    class Sly:
        def __index__(self):
            values.clear()
            return 2

    values.extend([Sly(), Sly()])
    with pytest.raises((a.AclnnError, RuntimeError, IndexError, TypeError)):
        phase1(specs("Host", kernelSize=values))


# overlap of an output with itself


def keeps_apart(shape, strides):
    """The rule: sorted by |stride|, each stride exceeds the span of the smaller ones."""
    if 0 in shape:
        return True
    span = 0
    for stride, size in sorted((abs(s), n) for n, s in zip(shape, strides, strict=True) if n > 1):
        if stride <= span:
            return False
        span += stride * (size - 1)
    return True


def places(shape, strides, offset):
    """The element numbers that a view touches, each as often as it does."""
    index = np.zeros((1,) * len(shape), np.int64) + offset
    for axis, (size, stride) in enumerate(zip(shape, strides, strict=True)):
        index = index + np.arange(size).reshape([-1 if d == axis else 1 for d in range(len(shape))]) * stride
    return index.ravel()


def refusal_of(grad_output, grad_input, *, self=None):
    """The message of phase 1's refusal, or None; kernel and stride are 1."""
    try:
        plan(grad_output, grad_input, 1, 1, self=self)
    except a.AclnnError as error:
        return str(error) if error.status == INVALID else repr(error)
    return None


@pytest.mark.parametrize(
    ("shape", "strides", "legal"),
    [
        ((2, 3, 4, 4), (48, 16, 4, 1), True),
        ((2, 3, 4, 4), (1, 2, 6, 24), True),
        ((2, 3, 4, 4), (48, -16, -4, 1), True),
        ((2, 3, 4, 4), (48, 16, 3, 1), False),
        ((2, 3, 4, 4), (48, 16, 4, 0), False),
        ((2, 3, 4, 4), (47, 16, 4, 1), False),
        ((1, 3, 4, 4), (0, 16, 4, 1), True),
        ((1, 1, 1, 1), (0, 0, 0, 0), True),
        ((2, 1, 1, 2), (2, 0, -9, 1), True),
        ((2, 1, 1, 2), (1, 5, 5, 1), False),
        # Interleaved but free of overlap in fact: the rule refuses it all the same.
        ((1, 1, 2, 3), (9, 9, 3, 2), False),
    ],
)
def test_overlap_of_an_output_with_itself(shape, strides, legal):
    offset = sum(-s * (n - 1) for n, s in zip(shape, strides, strict=True) if s < 0 and n > 1)
    memory = np.zeros(200, np.float32)
    message = refusal_of(np.zeros(shape, np.float32), tensor(shape, memory, strides=strides, offset=offset))
    assert (message is None) == legal, message
    if message is not None:
        assert message.startswith("gradInput")
        assert "overlap" in message


def test_overlap_of_a_written_array_with_itself():
    memory = np.zeros((2, 3, 8, 9), np.float32)
    overlapping = as_strided(memory, IN, (864, 288, 4, 36 * 0 + 4))
    with refusal(INVALID, "^gradInput", "overlap"):
        plan(gradient(), overlapping)


# overlap of an output with an input


@pytest.mark.parametrize(
    ("grad_output", "grad_input", "legal"),
    [
        (lambda m: m[:, :3], lambda m: m[:, 3:], True),
        (lambda m: m[:, :3], lambda m: m[:, 2:5], False),
        (lambda m: m[:, ::2], lambda m: m[:, 1::2], True),
        (lambda m: m[:, ::2], lambda m: m[:, ::2], False),
        (lambda m: m[:, ::2][:, ::-1], lambda m: m[:, 1::2], True),
        (lambda m: m[:, 0:3], lambda m: m[:, 3:6][:, ::-1], True),
        (lambda m: m[..., ::2], lambda m: m[..., 1::2], True),
        (lambda m: m[..., ::2], lambda m: m[..., ::2], False),
        (lambda m: m[:, :, ::2], lambda m: m[:, :, 1::2], True),
        (lambda m: m[:, :, ::2, ::2], lambda m: m[:, :, 1::2, 1::2], True),
        (lambda m: m[:, :, ::2, ::2], lambda m: m[:, :, 1::2, ::2], True),
        (lambda m: m[:, :, ::2, :2], lambda m: m[:, :, ::2, 2:4], True),
        (lambda m: m[:, :, ::2, :2], lambda m: m[:, :, ::2, 1:3], False),
        (lambda m: m[:1], lambda m: m[1:], True),
        (lambda m: np.broadcast_to(m[:, :, :, 7:8], (2, 6, 8, 2)), lambda m: m[..., 5:7], True),
        (lambda m: np.broadcast_to(m[:, :, :, 7:8], (2, 6, 8, 2)), lambda m: m[..., 6:8], False),
        (lambda m: m.transpose(0, 1, 3, 2)[:, :, :4], lambda m: m.transpose(0, 1, 3, 2)[:, :, 4:], True),
        (lambda m: m.transpose(0, 1, 3, 2)[:, :, :4], lambda m: m[:, :, :4], False),
    ],
)
def test_overlap_of_views_of_one_buffer(grad_output, grad_input, legal):
    memory = np.zeros((2, 6, 8, 8), np.float32)
    first, second = grad_output(memory), grad_input(memory)
    message = refusal_of(first, second, self=np.zeros(second.shape, np.float32))
    assert (message is None) == legal, message
    if message is not None:
        assert "overlap" in message
    assert refusal_of(first, np.zeros(second.shape, np.float32), self=second) is None


def test_self_may_share_anything():
    grad_output, grad_input = gradient(), np.zeros(IN, np.float32)
    run(grad_output, grad_input, self=grad_input)
    assert np.array_equal(grad_input, expected(grad_output))
    memory = sentinel_array((2, 3, 16, 8))
    for shared in (memory[:, :, 3:11], np.broadcast_to(memory[0, 0, 0, 0], IN), memory[:, :, 7::-1]):
        assert refusal_of(gradient(IN), memory[:, :, :8], self=shared) is None


def test_one_call_overlap_is_decided_alike():
    memory = np.zeros((2, 6, 8, 8), np.float32)
    memory[:, ::2] = gradient((2, 3, 8, 8))
    a.avg_pool2d_backward(memory[:, ::2], (2, 3, 8, 8), 1, out=memory[:, 1::2])
    assert np.array_equal(memory[:, 1::2], memory[:, ::2])
    with refusal(INVALID, "overlap"):
        a.avg_pool2d_backward(memory[:, ::2], (2, 3, 8, 8), 1, out=memory[:, :3])


@pytest.mark.alone
def test_overlap_of_large_views_is_quick():
    memory = np.zeros((16, 64, 56, 56), np.float32)
    memory.flags.writeable = True
    start = time.perf_counter()
    for _ in range(20):
        assert refusal_of(memory[:, ::2], memory[:, 1::2]) is None
        assert refusal_of(memory[..., ::2], memory[..., 1::2]) is None
        assert refusal_of(memory[:, ::2, ::-2, ::2], memory[:, 1::2, ::2, 1::2]) is None
        assert refusal_of(memory[:, ::2], memory[:, ::2]) is not None
    assert time.perf_counter() - start < 1


@st.composite
def view_pairs(draw):
    """Shape, and strides and offset of two views of one buffer; the second keeps its own elements apart."""
    rank = draw(st.integers(3, 4))
    shape = tuple(draw(st.integers(1, 4)) for _ in range(rank))
    out_strides = [0] * rank
    span = 0
    for axis in draw(st.permutations(range(rank))):
        stride = span + draw(st.integers(1, 4))
        out_strides[axis] = stride * draw(st.sampled_from((1, -1)))
        span += stride * (shape[axis] - 1)
    similar = [s * draw(st.sampled_from((1, -1))) for s in out_strides]
    free = [draw(st.integers(-12, 12)) for _ in range(rank)]
    in_strides = draw(st.sampled_from((out_strides, similar, free)))
    return shape, in_strides, out_strides, draw(st.integers(0, 30))


def overlap_verdict(shape, in_strides, out_strides, shift):
    """(what the package says, what enumeration says) of two views of one buffer."""
    low = [
        sum(min(0, s * (n - 1)) for n, s in zip(shape, strides, strict=True)) for strides in (in_strides, out_strides)
    ]
    offset_in, offset_out = -low[0] + shift, -low[1]
    read, written = places(shape, in_strides, offset_in), places(shape, out_strides, offset_out)
    storage = (int(max(read.max(), written.max())) + 1,)
    memory = np.zeros(storage, np.float32)
    message = refusal_of(
        tensor(shape, memory, strides=in_strides, offset=offset_in),
        tensor(shape, memory, strides=out_strides, offset=offset_out),
    )
    assert message is None or "overlap" in message, message
    return message is not None, bool(np.intersect1d(read, written).size)


@settings(max_examples=400, deadline=None, derandomize=True, database=None)
@given(view_pairs())
def test_overlap_property(pair):
    says, true = overlap_verdict(*pair)
    assert says == true


def test_overlap_of_many_random_views():
    rng = np.random.default_rng(20)
    overlapping = 0
    for _ in range(6000):
        rank = int(rng.integers(3, 5))
        shape = tuple(map(int, rng.integers(1, 6, rank)))
        out_strides = [0] * rank
        span = 0
        for axis in rng.permutation(rank):
            stride = span + int(rng.integers(1, 5))
            out_strides[axis] = stride * int(rng.choice((1, -1)))
            span += stride * (shape[axis] - 1)
        in_strides = list(out_strides)
        if rng.random() < 0.6:
            in_strides = [int(s) for s in rng.integers(-2 * span // 3 - 2, span, rank)]
        says, true = overlap_verdict(shape, in_strides, out_strides, int(rng.integers(0, 2 * span + 2)))
        assert says == true, (shape, in_strides, out_strides)
        overlapping += true
    # Both answers must have been put to the test.
    assert 1000 < overlapping < 5000


def test_self_overlap_of_many_random_views():
    rng = np.random.default_rng(21)
    legal = 0
    for _ in range(6000):
        rank = int(rng.integers(3, 5))
        shape = tuple(map(int, rng.integers(1, 5, rank)))
        strides = [
            int(s) for s in np.cumsum(rng.integers(0, 8, rank))[rng.permutation(rank)] * rng.choice((1, -1), rank)
        ]
        offset = -sum(min(0, s * (n - 1)) for n, s in zip(shape, strides, strict=True))
        touched = places(shape, strides, offset)
        memory = np.zeros(int(touched.max()) + 1, np.float32)
        message = refusal_of(np.zeros(shape, np.float32), tensor(shape, memory, strides=strides, offset=offset))
        apart = keeps_apart(shape, strides)
        assert (message is None) == apart, (shape, strides, message)
        assert not apart or np.unique(touched).size == touched.size
        legal += apart
    assert 600 < legal < 5400


# DLPack


class DLDevice(ctypes.Structure):
    _fields_ = [("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32)]


class DLDataType(ctypes.Structure):
    _fields_ = [("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16)]


class DLTensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device", DLDevice),
        ("ndim", ctypes.c_int32),
        ("dtype", DLDataType),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


DELETER = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class DLManagedTensor(ctypes.Structure):
    _fields_ = [("dl_tensor", DLTensor), ("manager_ctx", ctypes.c_void_p), ("deleter", DELETER)]


class DLManagedTensorVersioned(ctypes.Structure):
    _fields_ = [
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("manager_ctx", ctypes.c_void_p),
        ("deleter", DELETER),
        ("flags", ctypes.c_uint64),
        ("dl_tensor", DLTensor),
    ]


new_capsule = ctypes.pythonapi.PyCapsule_New
new_capsule.restype = ctypes.py_object
new_capsule.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
capsule_is = ctypes.pythonapi.PyCapsule_IsValid
capsule_is.restype = ctypes.c_int
capsule_is.argtypes = [ctypes.py_object, ctypes.c_char_p]

CPU, CUDA = (1, 0), (2, 0)
FLOAT32 = (2, 32, 1)


class Exporter:
    """A DLPack exporter made by hand, to choose every field and to count the calls of its deleter."""

    def __init__(self, array, *, versioned=True, device=CPU, capsule_device=None, dtype=FLOAT32, **fields):
        self.array = array
        self.versioned = versioned
        self.device = device
        self.deleted = 0
        self.capsules = []
        self.managed = DLManagedTensorVersioned() if versioned else DLManagedTensor()
        self.shape = (ctypes.c_int64 * max(array.ndim, 1))(*array.shape)
        self.strides = (ctypes.c_int64 * max(array.ndim, 1))(*(s // array.itemsize for s in array.strides))
        if versioned:
            self.managed.major, self.managed.minor = fields.pop("version", (1, 0))
            self.managed.flags = fields.pop("flags", 0)
        self.deleter = DELETER(self.delete)
        self.managed.deleter = fields.pop("deleter", self.deleter)
        inner = self.managed.dl_tensor
        inner.data = fields.pop("data", array.ctypes.data)
        inner.device = DLDevice(*(capsule_device or device))
        inner.ndim = fields.pop("ndim", array.ndim)
        inner.dtype = DLDataType(*dtype)
        inner.shape = fields.pop("shape", self.shape)
        inner.strides = fields.pop("strides", self.strides)
        inner.byte_offset = fields.pop("byte_offset", 0)
        assert not fields

    def delete(self, pointer):
        assert pointer == ctypes.addressof(self.managed)
        self.deleted += 1

    def __dlpack_device__(self):
        return self.device

    def capsule(self, name=None):
        name = name or (b"dltensor_versioned" if self.versioned else b"dltensor")
        self.capsules.append(new_capsule(ctypes.addressof(self.managed), name, None))
        return self.capsules[-1]

    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):
        if self.versioned:
            assert max_version is not None
            assert tuple(max_version) >= (1, 0)
        return self.capsule()


class LegacyExporter(Exporter):
    """An exporter of the time before versions: it knows no argument but the stream."""

    def __init__(self, array, **fields):
        super().__init__(array, versioned=False, **fields)

    def __dlpack__(self, stream=None):
        return self.capsule()


@pytest.mark.parametrize("make", [Exporter, LegacyExporter, lambda array: Exporter(array, versioned=False)])
def test_dlpack_input_and_output(make):
    grad_output = gradient((2, 3, 4, 8))[..., ::-2]
    grad_input = np.zeros((2, 3, 8, 16), np.float32)[..., ::2]
    exporters = [make(grad_output), make(grad_input)]
    size, executor = plan(*exporters, self=np.zeros(IN, np.float32))
    assert [e.deleted for e in exporters] == [0, 0]
    for exporter in exporters:
        used = b"used_dltensor_versioned" if exporter.versioned else b"used_dltensor"
        assert all(capsule_is(capsule, used) for capsule in exporter.capsules)
    phase2(size, executor)
    assert np.array_equal(grad_input, expected(grad_output))
    del executor
    gc.collect()
    assert [e.deleted for e in exporters] == [len(e.capsules) for e in exporters] == [1, 1]


@pytest.mark.parametrize("make", [Exporter, LegacyExporter])
def test_dlpack_without_strides_is_row_major(make):
    grad_output, grad_input = gradient(), np.zeros(IN, np.float32)
    run(make(grad_output, strides=None), make(grad_input, strides=None), self=np.zeros(IN, np.float32))
    assert np.array_equal(grad_input, expected(grad_output))


def test_dlpack_byte_offset():
    memory = np.concatenate([np.zeros(5, np.float32), gradient().ravel()])
    grad_output = memory[5:].reshape(OUT)
    grad_input = np.zeros(IN, np.float32)
    run(Exporter(grad_output, data=memory.ctypes.data, byte_offset=20), grad_input)
    assert np.array_equal(grad_input, expected(grad_output))
    with refusal(INVALID, "^gradOutput", "align"):
        plan(Exporter(grad_output, data=memory.ctypes.data, byte_offset=18), grad_input)


@pytest.mark.parametrize(
    ("dtype", "code"),
    [(np.float32, (2, 32, 1)), (np.float64, (2, 64, 1)), (np.float16, (2, 16, 1)), (ml_dtypes.bfloat16, (4, 16, 1))],
    ids=["float32", "float64", "float16", "bfloat16"],
)
@pytest.mark.parametrize("make", [Exporter, LegacyExporter])
def test_dlpack_dtypes(dtype, code, make):
    grad_output, grad_input = gradient(OUT, dtype), np.zeros(IN, dtype)
    run(make(grad_output, dtype=code), make(grad_input, dtype=code), self=np.zeros(IN, dtype))
    assert grad_input.tobytes() == expected(grad_output).tobytes()


@pytest.mark.parametrize(
    "code",
    [
        (0, 32, 1),
        (1, 8, 1),
        (5, 64, 1),
        (6, 8, 1),
        (2, 8, 1),
        (2, 128, 1),
        (4, 32, 1),
        (3, 64, 1),
        (99, 32, 1),
        (2, 32, 2),
    ],
)
@pytest.mark.parametrize("make", [Exporter, LegacyExporter])
def test_dlpack_dtypes_that_do_not_serve(code, make):
    exporter = make(gradient(), dtype=code)
    with refusal(INVALID, "^gradOutput"):
        plan(exporter, np.zeros(IN, np.float32))
    gc.collect()
    assert exporter.deleted == len(exporter.capsules)


@pytest.mark.parametrize("make", [Exporter, LegacyExporter])
@pytest.mark.parametrize("name", ["gradOutput", "self", "gradInput"])
def test_dlpack_on_another_device(make, name):
    arrays = {"gradOutput": gradient(), "self": np.zeros(IN, np.float32), "gradInput": np.zeros(IN, np.float32)}
    for fields in ({"device": CUDA}, {"device": CPU, "capsule_device": CUDA}):
        exporter = make(arrays[name], **fields)
        tensors = {**arrays, name: exporter}
        with refusal(INVALID, rf"^{name}\b", "device|CPU"):
            plan(tensors["gradOutput"], tensors["gradInput"], self=tensors["self"])
        gc.collect()
        assert exporter.deleted == len(exporter.capsules)


def test_dlpack_read_only_flag():
    grad_output, grad_input = gradient(), np.zeros(IN, np.float32)
    run(Exporter(grad_output, flags=1), grad_input)
    assert np.array_equal(grad_input, expected(grad_output))
    exporter = Exporter(grad_input, flags=1)
    with refusal(INVALID, "^gradInput", "writ|read-only"):
        plan(grad_output, exporter)
    gc.collect()
    assert exporter.deleted == len(exporter.capsules)


def test_dlpack_of_a_future_version():
    exporter = Exporter(gradient(), version=(2, 0))
    with pytest.raises((a.AclnnError, BufferError), match="gradOutput"):
        plan(exporter, np.zeros(IN, np.float32))
    exporter = Exporter(gradient(), version=(1, 99))
    grad_input = np.zeros(IN, np.float32)
    run(exporter, grad_input)
    assert np.array_equal(grad_input, expected(exporter.array))


@pytest.mark.parametrize("make", [Exporter, LegacyExporter])
@pytest.mark.parametrize(
    "fields",
    [
        pytest.param({"ndim": -1}, id="negative rank"),
        pytest.param({"ndim": 65}, id="high rank"),
        pytest.param({"ndim": 2**31 - 1}, id="highest rank"),
        pytest.param({"shape": (ctypes.c_int64 * 4)(2, -3, 4, 4)}, id="negative dim"),
        pytest.param({"shape": (ctypes.c_int64 * 4)(2**62, 2**62, 4, 4)}, id="huge dims"),
        pytest.param({"strides": (ctypes.c_int64 * 4)(2**62, 2**62, 2**62, 1)}, id="huge strides"),
        pytest.param({"strides": (ctypes.c_int64 * 4)(-(2**63), 1, 1, 1)}, id="least stride"),
        pytest.param({"shape": None}, id="no shape"),
    ],
)
def test_dlpack_that_lies(make, fields):
    exporter = make(gradient(), **fields)
    with refusal(INVALID, "^gradOutput"):
        plan(exporter, np.zeros(IN, np.float32))
    gc.collect()
    assert exporter.deleted == len(exporter.capsules)


def test_dlpack_without_data():
    for name in ("gradOutput", "gradInput"):
        arrays = {"gradOutput": gradient(), "gradInput": np.zeros(IN, np.float32)}
        arrays[name] = Exporter(arrays[name], data=None)
        with pytest.raises(a.AclnnError, match=name):
            phase2(*plan(arrays["gradOutput"], arrays["gradInput"], self=np.zeros(IN, np.float32)))


def test_dlpack_without_deleter():
    exporter = Exporter(gradient(), deleter=DELETER())
    grad_input = np.zeros(IN, np.float32)
    run(exporter, grad_input)
    assert np.array_equal(grad_input, expected(exporter.array))


class Raising:
    def __init__(self, where, error):
        self.where, self.error = where, error

    def __dlpack_device__(self):
        if self.where == "device":
            raise self.error
        return CPU

    def __dlpack__(self, **options):
        raise self.error


@pytest.mark.parametrize("where", ["device", "export"])
@pytest.mark.parametrize("error", [RuntimeError, BufferError, MemoryError, KeyboardInterrupt])
def test_dlpack_that_raises(where, error):
    with pytest.raises(error, match="no export today"):
        plan(Raising(where, error("no export today")), np.zeros(IN, np.float32))


def test_dlpack_that_raises_lets_the_others_go():
    exporter = Exporter(gradient())
    with pytest.raises(RuntimeError):
        plan(exporter, Raising("export", RuntimeError("no export today")), self=np.zeros(IN, np.float32))
    gc.collect()
    assert exporter.deleted == len(exporter.capsules)


@pytest.mark.parametrize("result", [None, 5, "capsule", b"dltensor", object()], ids=label)
def test_dlpack_that_is_no_capsule(result):
    class Liar:
        def __dlpack_device__(self):
            return CPU

        def __dlpack__(self, **options):
            return result

    with refusal(INVALID, "^gradOutput: its __dlpack__ returned .*: must be a DLPack capsule"):
        plan(Liar(), np.zeros(IN, np.float32))


@pytest.mark.parametrize("cls", [np.ndarray, Exporter, LegacyExporter], ids=lambda cls: cls.__name__)
def test_a_class_is_no_exporter(cls):
    with pytest.raises(TypeError, match="gradOutput"):
        plan(cls, np.zeros(IN, np.float32))


@pytest.mark.parametrize("name", [b"used_dltensor", b"used_dltensor_versioned", b"something"])
def test_dlpack_capsule_of_another_name(name):
    exporter = Exporter(gradient())
    exporter.capsule = lambda: new_capsule(ctypes.addressof(exporter.managed), name, None)
    with refusal(INVALID, "^gradOutput: its __dlpack__ returned .*: must be a DLPack capsule"):
        plan(exporter, np.zeros(IN, np.float32))
    assert exporter.deleted == 0


@pytest.mark.parametrize("device", [None, 1, (), ("cpu", 0), (None, 0), (2**70, 0)], ids=label)
def test_dlpack_device_that_is_nonsense(device):
    exporter = Exporter(gradient())
    exporter.device = device
    with refusal(INVALID, "^gradOutput: "):
        plan(exporter, np.zeros(IN, np.float32))


def test_dlpack_tensor_is_kept_until_the_executor_goes():
    class Owner(Exporter):
        pass

    exporter = Owner(gradient())
    alive = weakref.ref(exporter.array)
    size, executor = plan(exporter, np.zeros(IN, np.float32))
    assert exporter.deleted == 0
    assert alive() is not None
    a.aclDestroyAclOpExecutor(executor)
    assert exporter.deleted == 1
    assert size >= 0


def test_numpy_exports_through_dlpack():
    class Wrapper:
        def __init__(self, array):
            self.array = array

        def __dlpack_device__(self):
            return self.array.__dlpack_device__()

        def __dlpack__(self, **options):
            return self.array.__dlpack__(**options)

    grad_output, grad_input = gradient(), np.zeros(IN, np.float32)
    run(Wrapper(grad_output), Wrapper(grad_input), self=Wrapper(grad_input))
    assert np.array_equal(grad_input, expected(grad_output))


@pytest.fixture
def torch():
    return pytest.importorskip("torch")


def blocks(torch, grad_output):
    """The known gradient as torch computes it."""
    return (torch.nn.functional.interpolate(grad_output.double(), scale_factor=2) / 4).to(grad_output.dtype)


@pytest.mark.torch
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
def test_torch_tensors(torch, dtype):
    grad_output = torch.from_numpy(gradient()).to(getattr(torch, dtype))
    grad_input = torch.full(IN, -7.0, dtype=grad_output.dtype)
    run(grad_output, grad_input, self=torch.zeros(IN, dtype=grad_output.dtype))
    assert torch.equal(grad_input, blocks(torch, grad_output))


@pytest.mark.torch
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_torch_views(torch, dtype):
    grad_output = torch.from_numpy(gradient((2, 4, 4, 3))).to(getattr(torch, dtype)).permute(0, 3, 1, 2)
    grad_input = torch.zeros((2, 8, 8, 3), dtype=grad_output.dtype).permute(0, 3, 1, 2)
    run(grad_output, grad_input)
    assert torch.equal(grad_input, blocks(torch, grad_output))


@pytest.mark.torch
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_torch_in_one_call(torch, dtype):
    grad_output = torch.from_numpy(gradient()).to(getattr(torch, dtype))
    grad_input = torch.zeros(IN, dtype=grad_output.dtype)
    assert a.avg_pool2d_backward(grad_output, grad_input, 2, out=grad_input) is grad_input
    fresh = a.avg_pool2d_backward(grad_output, grad_input, 2)
    assert type(fresh) is torch.Tensor
    assert torch.equal(fresh, grad_input)


@pytest.mark.torch
def test_torch_tensor_that_cannot_be_exported(torch):
    with pytest.raises(BufferError, match=r"^gradOutput: .*detach"):
        plan(torch.zeros(OUT, requires_grad=True), np.zeros(IN, np.float32))
    with pytest.raises((a.AclnnError, BufferError, RuntimeError, ValueError), match=r"(?i)meta|device|CPU"):
        plan(torch.zeros(OUT, device="meta"), np.zeros(IN, np.float32))


@pytest.mark.torch
def test_a_torch_tensor_that_requires_grad_gives_its_shape(torch):
    x = torch.zeros(IN, requires_grad=True)
    grad_input = np.zeros(IN, np.float32)
    run(gradient(), grad_input, self=x)
    assert np.array_equal(grad_input, expected(gradient()))
    assert np.array_equal(a.avg_pool2d_backward(gradient(), x, 2), grad_input)
    with pytest.raises(BufferError, match=r"^self: .*detach"):
        a.avg_pool2d(x, 2)
    with pytest.raises(BufferError, match=r"^out: .*detach"):
        a.avg_pool2d_backward(gradient(), IN, 2, out=x)


@pytest.mark.torch
@pytest.mark.filterwarnings("ignore")  # of prototypes of PyTorch
@pytest.mark.parametrize("kind", ["sparse_coo", "sparse_csr", "nested", "jagged", "masked", "negated"])
def test_torch_tensors_without_plain_memory_are_refused(torch, kind):
    dense = torch.ones(IN)
    make = {
        "sparse_coo": lambda: dense.to_sparse(),
        "sparse_csr": lambda: torch.ones(4, 4).to_sparse_csr(),
        "nested": lambda: torch.nested.nested_tensor([dense[0], dense[0]]),
        "jagged": lambda: torch.nested.nested_tensor([dense[0], dense[0, :1]], layout=torch.jagged),
        "masked": lambda: torch.masked.masked_tensor(dense, dense > 0),
        # PyTorch lends its memory, where the opposite of its values lies.
        "negated": lambda: torch._neg_view(dense),
    }
    tensor = make[kind]()
    said = {"jagged": "nested"}.get(kind, kind)
    for name, call in {
        "self": lambda: a.avg_pool2d(tensor, 2),
        "grad_output": lambda: a.avg_pool2d_backward(tensor, IN, 2),
        "gradOutput": lambda: plan(tensor, np.zeros(IN, np.float32)),
        "tensorData": lambda: a.aclCreateTensor([4], a.ACL_FLOAT, tensorData=tensor),
    }.items():
        with pytest.raises(TypeError, match=rf"^{name}: must be a dense tensor, not a.* {said} one"):
            call()


@pytest.mark.torch
def test_torch_memory_is_kept(torch):
    grad_output = torch.from_numpy(gradient()).clone()
    grad_input = np.zeros(IN, np.float32)
    want = expected(grad_output.numpy().copy())
    size, executor = plan(grad_output, grad_input)
    del grad_output
    gc.collect()
    rubbish = [torch.full(OUT, 99.0) for _ in range(64)]
    phase2(size, executor)
    assert np.array_equal(grad_input, want)
    assert rubbish


# what a call keeps


def test_every_combination_of_kinds():
    values = gradient()

    def kinds(array):
        yield array.copy()
        yield tensor_over(array.copy(), array.shape, a.ACL_FLOAT)
        yield Exporter(array.copy())

    for grad_output, self in itertools.product(kinds(values), kinds(np.zeros(IN, np.float32))):
        grad_input = np.zeros(IN, np.float32)
        run(grad_output, grad_input, self=self)
        assert np.array_equal(grad_input, expected(values))


def test_spec_defaults_build_what_they_say():
    assert isinstance(Spec().build(), a.aclTensor)


# ---- every tensor of every operator ---------------------------------------------------------------------------------


def real_tensors(operator, *roles):
    """The tensors whose dtype is the operator's: all but a mask."""
    return [name for name in operator.named(*(roles or ("read", "shape", "written"))) if name != "indices"]


VIEWS = {
    "mirror": lambda array: array[..., ::-1],
    "mirror all": lambda array: array[(slice(None, None, -1),) * array.ndim],
    "last first": lambda array: np.moveaxis(np.ascontiguousarray(np.moveaxis(array, -1, 0)), 0, -1),
    "fortran": np.asfortranarray,
    "gaps": lambda array: np.repeat(array, 3, axis=-1)[..., 1::3],
    "gaps back": lambda array: np.repeat(array, 2, axis=-2)[..., ::-2, :],
}


@each_operator
@pytest.mark.parametrize("view", VIEWS)
def test_strides_of_every_tensor(operator, view):
    for dtype in TAKEN[operator.__name__]["Host"]:
        for name in real_tensors(operator):
            call = operator(dtype=NUMPY_DTYPE[dtype])
            values = call[name].copy()
            call.arguments[name] = VIEWS[view](call[name])
            call[name][...] = values
            call.run()
            call.check()
        call = operator(dtype=NUMPY_DTYPE[dtype])
        for name in real_tensors(operator):
            values = call[name].copy()
            call.arguments[name] = VIEWS[view](call[name])
            call[name][...] = values
        call.run()
        call.check()


@each_operator
def test_gaps_of_every_output_stay_untouched(operator):
    for name in real_tensors(operator, "written"):
        call = operator()
        *rest, rows, columns = call[name].shape
        memory = sentinel_array((*rest, 2 * rows + 2, 3 * columns + 5))
        call.arguments[name] = memory[..., 1 : 1 + 2 * rows : 2, 3 : 3 + 3 * columns : 3]
        call.run()
        call.check()
        call[name][...] = sentinel_array(call[name].shape)
        assert untouched(memory)


@each_operator
def test_broadcast_inputs(operator):
    for name in real_tensors(operator, "read"):
        call, other = operator(), operator()
        call.arguments[name] = np.broadcast_to(call[name][:1], call[name].shape)
        other.arguments[name] = call[name].copy()
        call.run()
        other.run()
        for output in call.outputs:
            assert call[output].tobytes() == other[output].tobytes() != operator().wanted[output].tobytes()


def test_a_mask_is_contiguous():
    for operator in ("MaxPool2dWithMaskBackward", "MaxPool2dWithMask"):
        for view in ("mirror", "last first", "fortran", "gaps", "gaps back"):
            call = OPERATORS[operator]()
            with refusal(INVALID, "^indices", "contiguous"):
                call.phase1(indices=VIEWS[view](call["indices"]))


@pytest.mark.parametrize("layout", ["bitmask", "argmax"])
def test_a_mask_lies_at_any_address(layout):
    for operator in ("MaxPool2dWithMaskBackward", "MaxPool2dWithMask"):
        for skip in (1, 2, 3, 5):
            for dtype in TAKEN[operator]["Host"]:
                call = OPERATORS[operator](dtype=NUMPY_DTYPE[dtype], layout=layout)
                size = call["indices"].size
                memory = sentinels(size + 128)
                mask = memory[64 + skip : 64 + skip + size].view(np.int8).reshape(call["indices"].shape)
                mask[...] = call["indices"]
                call.arguments["indices"] = mask
                with a.soc("Host", mask_layout=layout):
                    call.run()
                call.check()
                mask[...] = sentinels(size).view(np.int8).reshape(mask.shape)
                assert untouched(memory), "wrote outside the mask"


@each_operator
def test_every_tensor_of_every_kind(operator):
    """Handles, DLPack exporters old and new, and the array interface, over memory of every dtype."""

    class Interface:
        def __init__(self, array):
            self.__array_interface__ = array.__array_interface__
            self.array = array

    codes = {"f": 2, "c": 5, "i": 0, "u": 1, "b": 6, "V": 4}
    for dtype in TAKEN[operator.__name__]["Host"]:
        call = operator(dtype=NUMPY_DTYPE[dtype])
        for name, role in call.roles.items():
            array = call[name]
            code = codes[array.dtype.kind], 8 * array.itemsize, 1
            kinds = [handle_of(array), Exporter(array, dtype=code), LegacyExporter(array, dtype=code)]
            if dtype != a.ACL_BF16:  # which has no such interface
                kinds.append(Interface(array))
            for kind in kinds:
                call.clear()
                call.run(**{name: kind})
                call.check()
            if role == "written":
                frozen = array.copy()
                frozen.flags.writeable = False
                for kind in (frozen, handle_of(frozen), Exporter(frozen, dtype=code, flags=1)):
                    with refusal(INVALID, f"^{name}", "writ|read-only"):
                        call.run(**{name: kind})


@each_operator
def test_what_no_tensor_of_any_operator_may_be(operator):
    call = operator()
    for name, array in ((name, call[name]) for name in call.roles):
        for value in (array.tolist(), 1, 1.0, np.float64(1), "array", {}, bytearray(384), np.ndarray):
            with pytest.raises(TypeError, match=f"^{name}: must be "):
                call.phase1(**{name: value})
        destroyed = handle_of(array)
        a.aclDestroyTensor(destroyed)
        with refusal(INVALID, f"^{name}: is a destroyed aclTensor$"):
            call.phase1(**{name: destroyed})
        code = (0, 8, 1) if name == "indices" else FLOAT32
        with refusal(INVALID, f"^{name}: lies on DLPack device 2"):
            call.phase1(**{name: Exporter(array, device=CUDA, dtype=code)})
        with refusal(INVALID, rf"^{name}\.dtype = ACL_DT_UNDEFINED"):
            call.phase1(**{name: array.astype(object)})
    for name in real_tensors(operator):
        array = call[name]
        moved = sentinels(array.nbytes, misaligned=True).view(array.dtype).reshape(array.shape)
        with refusal(INVALID, rf"^{name}\b", "align"):
            call.phase1(**{name: moved})
        with refusal(INVALID, rf"^{name}\.dtype = ACL_FLOAT in swapped byte order"):
            call.phase1(**{name: array.astype(array.dtype.newbyteorder())})
        packed = np.dtype({"names": ["x"], "formats": ["f4"], "offsets": [0], "itemsize": 6})
        with refusal(INVALID, rf"^{name}\b", "align|stride|multiple"):
            call.phase1(**{name: np.zeros(array.shape, packed)["x"]})
    assert call.untouched()
    call.run()
    call.check()


@each_operator
def test_unbound_tensors_of_every_operator(operator):
    call = operator()
    for name, role in call.roles.items():
        size, executor = call.phase1(**{name: handle_of(call[name], bound=False)})
        if role == "shape":
            call.phase2(size, executor)
            call.check()
            call.clear()
        else:
            for _ in range(2):
                with refusal(NULL, f"^{name}: is unbound"):
                    call.phase2(size, executor)
            assert call.untouched()
    # Bound later, each by its index.
    size, executor = call.phase1(**{name: handle_of(call[name], bound=False) for name in call.roles})
    a.aclSetAclOpExecutorRepeatable(executor)
    for index, name in enumerate(call.roles):
        a.aclSetTensorAddr(executor, index, None, call[name])
    call.phase2(size, executor)
    call.check()


@each_operator
def test_outputs_of_every_operator_do_not_overlap_themselves(operator):
    for name in real_tensors(operator, "written"):
        call = operator()
        memory = sentinel_array(call[name].shape)
        for view in (
            np.lib.stride_tricks.as_strided(memory, memory.shape, (*memory.strides[:-1], 0)),
            np.lib.stride_tricks.as_strided(memory, memory.shape, (*memory.strides[:-2], 4, 4)),
        ):
            with refusal(INVALID, f"^{name}", "overlap"):
                call.phase1(**{name: view})
        assert untouched(memory)


EXTREMES = (-(2**63), -(2**31), -1, 0, 1, 2, 3, 5, 8, 255, 2**31, 2**40, 2**48, 2**62, 2**63 - 1)
ODD_FLOATS = (float("nan"), float("inf"), -1.0, -0.0, 5e-324, 1e300, 50.0, 0.02, 7.3)


def hostile(rng, value):
    """Something odd in the place of a legal argument: a null, an extreme size or stride, another dtype or format."""

    def one_of(choices):
        return choices[rng.integers(len(choices))]

    if isinstance(value, tuple):
        values = [*value, *rng.choice(EXTREMES[3:9], rng.integers(3))][: 1 + rng.integers(len(value) + 2)]
        values[rng.integers(len(values))] = one_of(EXTREMES)
        return [int(v) for v in values]
    if isinstance(value, bool):
        return not value
    if isinstance(value, (int, float)):
        return one_of(ODD_FLOATS if isinstance(value, float) else EXTREMES)
    shape, strides = list(value.shape), None
    dtype = next(number for number, known in NUMPY_DTYPE.items() if known == value.dtype)
    fmt, storage, kind = Spec(value.shape).acl_format, None, rng.integers(6)
    if kind == 0:
        return None
    if kind == 1:
        dtype = one_of(list(NUMPY_DTYPE))
    elif kind == 2:
        fmt = one_of(list(a.aclFormat))
    elif kind == 3:
        shape[rng.integers(len(shape))] = one_of(EXTREMES[3:])
    elif kind == 4:
        shape = one_of([shape[1:], [1, *shape], shape[::-1], [1] * 8])
    else:
        strides = [step // value.itemsize for step in value.strides]
        strides[rng.integers(len(strides))] = one_of(EXTREMES)
        storage = one_of([None, (2**40,)])
    try:
        bound = storage is None and strides is None and np.prod(shape, dtype=float) < 2**16
        data = sentinels(int(np.prod(shape)) * NUMPY_DTYPE[dtype].itemsize) if bound else None
        return a.aclCreateTensor(shape, dtype, strides, 0, fmt, storage, data)
    except a.AclnnError:
        return None  # no such tensor can be made


@each_operator
def test_hostile_arguments_are_refused_or_run(operator):
    rng = np.random.default_rng(0)
    ran, refused, failed = 0, [], []
    for _ in range(400):
        layout = ("bitmask", "argmax")[rng.integers(2)]
        call = operator(((1, 1, 4, 4), (2, 17, 5, 4), (3, 4, 6))[rng.integers(3)], layout=layout)
        names = rng.choice(list(call.arguments), rng.integers(1, 4), replace=False)
        try:
            with a.soc("Host", mask_layout=layout), a.num_threads(2):
                size, executor = call.phase1(**{name: hostile(rng, call[name]) for name in names})
        except a.AclnnError as error:
            refused.append(error)
            continue
        memory = sentinels(size + 128)
        try:
            getattr(a, f"aclnn{operator.__name__}")(memory[64 : 64 + size] if size else None, size, executor)
            ran += 1
        except a.AclnnError as error:
            # An unbound tensor, or the indices of a mask that the forward did not write.
            failed.append(error)
        assert untouched(memory[:64])
        assert untouched(memory[64 + size :])
    assert ran > 0
    assert len(refused) > 100
    assert {error.status for error in refused + failed} <= {NULL, INVALID}
    subjects = (*call.arguments, *(f"len({name})" for name in call.arguments))
    assert [str(error) for error in refused if not str(error).startswith(subjects)] == []


@pytest.mark.torch
@each_operator
def test_torch_tensors_of_every_operator(torch, operator):
    for dtype in TAKEN[operator.__name__]["Host"]:
        call = operator(dtype=NUMPY_DTYPE[dtype])
        tensors = {}
        for name in call.roles:
            array = call[name]
            if dtype == a.ACL_BF16 and name != "indices":
                tensors[name] = torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
            else:
                tensors[name] = torch.from_numpy(array)
        call.run(**tensors)
        call.check()


# ---- numbers that say nothing ---------------------------------------------------------------------------------------


def upsampled(strides, offset=0, shape=(2, 2, 50)):
    """An upsampling's phase 1 whose gradOutput has these strides."""
    grad_output = a.aclCreateTensor(shape, a.ACL_FLOAT, strides, offset, a.ACL_FORMAT_NCL, (200,), bytearray(800))
    out = np.zeros((*shape[:2], 2), np.float32)
    with a.soc("Host"):
        return a.aclnnUpsampleNearestExact1dBackwardGetWorkspaceSize(grad_output, [shape[2]], out.shape, 0.0, out)


@pytest.mark.parametrize("stride", [2**63 - 1, -(2**63), 2**62])
def test_no_arithmetic_with_a_stride_that_leaves_the_storage(stride):
    """The sanitizer's build notices if a plan is made of it before the bounds are checked."""
    with pytest.raises(a.AclnnError, match=r"gradOutput"):
        upsampled((100, stride, 1))


@pytest.mark.parametrize("stride", [2**63 - 1, -(2**63), 2**62])
def test_no_arithmetic_with_the_stride_of_an_axis_of_one(stride):
    """It may be anything, and the sanitizer's build notices if it is multiplied by the item size."""
    upsampled((stride, 50, 1), shape=(1, 2, 50))
    upsampled((100, stride, 1), shape=(2, 1, 50))


@pytest.mark.parametrize("offset", [2**62, -(2**63)])
def test_no_arithmetic_with_the_offset_of_an_empty_tensor(offset):
    x = a.aclCreateTensor((0, 1, 4, 4), a.ACL_FLOAT, None, offset, a.ACL_FORMAT_NCHW, (0,), bytearray(8))
    y = a.aclCreateTensor((0, 1, 8, 8), a.ACL_FLOAT, None, offset, a.ACL_FORMAT_NCHW, (0,), bytearray(8))
    with a.soc("Host"):
        size, executor = a.aclnnAvgPool2dBackwardGetWorkspaceSize(x, y, [2], None, [0], False, True, 0, 0, y)
        a.aclnnAvgPool2dBackward(None, size, executor)
