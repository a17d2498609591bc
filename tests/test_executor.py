"""The executor's life cycle, its workspace, re-pointed tensors, and what it keeps, frees and allocates."""

import copy
import ctypes
import gc
import os
import pickle
import shutil
import subprocess
import sys
import threading
import weakref
from pathlib import Path

import numpy as np
import pytest
from engine_helpers import (
    NUMPY_DTYPE,
    SENTINEL,
    argmax_indices,
    bad_index,
    check_k3s1p1,
    expected,
    gradient,
    label,
    phase1,
    phase2,
    plan,
    plan_with_workspace,
    refusal,
    run_python,
    sentinel_array,
    sentinels,
    specs,
    untouched,
)
from operators import OPERATORS, TAKEN, each_operator

import aclnn_bw as a

NULL, INVALID = a.AclnnStatus.ACLNN_ERR_PARAM_NULLPTR, a.AclnnStatus.ACLNN_ERR_PARAM_INVALID
INNER, INNER_NULL = a.AclnnStatus.ACLNN_ERR_INNER, a.AclnnStatus.ACLNN_ERR_INNER_NULLPTR
OUT = (2, 3, 4, 4)
IN = (2, 3, 8, 8)


@pytest.fixture(autouse=True)
def host():
    with a.soc("Host"), a.num_threads(1):
        yield


def tensor(shape, data):
    return a.aclCreateTensor(shape, a.ACL_FLOAT, None, 0, a.ACL_FORMAT_NCHW, shape, data)


def repeatable(grad_output=None, grad_input=None):
    """(size, executor, gradOutput, gradInput) of a repeatable executor over float32 arrays."""
    grad_output = gradient() if grad_output is None else grad_output
    grad_input = sentinel_array(IN) if grad_input is None else grad_input
    size, executor = plan(grad_output, grad_input)
    a.aclSetAclOpExecutorRepeatable(executor)
    return size, executor, grad_output, grad_input


# life cycle


def test_an_executor_runs_once():
    grad_output, grad_input = gradient(), sentinel_array(IN)
    size, executor = plan(grad_output, grad_input)
    assert type(size) is int
    assert untouched(grad_input), "phase 1 wrote data"
    phase2(size, executor)
    assert np.array_equal(grad_input, expected(grad_output))
    grad_input[...] = -7
    for _ in range(2):
        with refusal(INNER, "^executor.*spent"):
            phase2(size, executor)
    assert np.all(grad_input == -7)


def test_phase_2_gives_nothing_back():
    size, executor = plan(gradient(), sentinel_array(IN))
    workspace = np.empty(size, np.uint8) if size else None
    assert a.aclnnAvgPool2dBackward(workspace, size, executor, None) in (None, a.ACLNN_SUCCESS)


def test_stream_has_a_default():
    grad_output, grad_input = gradient(), sentinel_array(IN)
    size, executor = plan(grad_output, grad_input)
    a.aclnnAvgPool2dBackward(bytearray(size) if size else None, size, executor)
    assert np.array_equal(grad_input, expected(grad_output))


def test_a_repeatable_executor_runs_until_it_is_destroyed():
    size, executor, grad_output, grad_input = repeatable()
    for seed in range(4):
        grad_output[...] = gradient(seed=seed)
        phase2(size, executor)
        assert np.array_equal(grad_input, expected(grad_output))
    a.aclDestroyAclOpExecutor(executor)
    for _ in range(2):
        with refusal(INNER, "^executor"):
            phase2(size, executor)
    with refusal(INNER, "^executor"):
        a.aclSetAclOpExecutorRepeatable(executor)
    with refusal(INNER, "^executor"):
        a.aclDestroyAclOpExecutor(executor)


def test_a_fresh_executor_may_be_destroyed():
    grad_input = sentinel_array(IN)
    size, executor = plan(gradient(), grad_input)
    a.aclDestroyAclOpExecutor(executor)
    with refusal(INNER, "^executor"):
        phase2(size, executor)
    assert untouched(grad_input)


def test_repeatable_comes_before_the_first_run():
    size, executor = plan(gradient(), sentinel_array(IN))
    phase2(size, executor)
    with refusal(INNER, "^executor.*spent"):
        a.aclSetAclOpExecutorRepeatable(executor)


def test_repeatable_twice_is_no_error():
    size, executor, _, _ = repeatable()
    a.aclSetAclOpExecutorRepeatable(executor)
    phase2(size, executor)
    a.aclSetAclOpExecutorRepeatable(executor)
    phase2(size, executor)


def test_executors_do_not_share_anything():
    cases = [plan_with_workspace(seed) for seed in range(5)]
    for size, executor, _, _ in reversed(cases):
        phase2(size, executor)
    for _, _, grad_output, grad_input in cases:
        check_k3s1p1(grad_output, grad_input)


def test_null_executor():
    with refusal(NULL, "^executor = None"):
        a.aclnnAvgPool2dBackward(None, 0, None, None)
    for call in (a.aclSetAclOpExecutorRepeatable, a.aclDestroyAclOpExecutor):
        with refusal(INNER_NULL, "^executor = None"):
            call(None)
    for call in (a.aclSetInputTensorAddr, a.aclSetOutputTensorAddr, a.aclSetTensorAddr):
        with refusal(INNER_NULL, "^executor = None"):
            call(None, 0, None, gradient())


@pytest.mark.parametrize("foreign", [5, "executor", object(), b"", a.aclOpExecutor], ids=lambda f: type(f).__name__)
def test_foreign_executor(foreign):
    with refusal(INNER, "^executor"):
        a.aclnnAvgPool2dBackward(None, 0, foreign, None)
    for call in (a.aclSetAclOpExecutorRepeatable, a.aclDestroyAclOpExecutor):
        with refusal(INNER, "^executor"):
            call(foreign)
    for call in (a.aclSetInputTensorAddr, a.aclSetOutputTensorAddr, a.aclSetTensorAddr):
        with refusal(INNER, "^executor"):
            call(foreign, 0, None, gradient())


def test_executors_come_from_phase_1_only():
    with pytest.raises(TypeError):
        a.aclOpExecutor()

    # One that phase 1 never saw is no danger in any call.
    def raw():
        return a.aclOpExecutor.__new__(a.aclOpExecutor)

    calls = [
        lambda: phase2(0, raw()),
        lambda: a.aclSetAclOpExecutorRepeatable(raw()),
        lambda: a.aclSetTensorAddr(raw(), 0, None, gradient()),
    ]
    for call in calls:
        with pytest.raises((TypeError, a.AclnnError)):
            call()


def test_executors_are_not_copied():
    _, executor = plan(gradient(), sentinel_array(IN))
    for duplicate in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError, match=r"^aclOpExecutor: cannot be copied or pickled; it is a handle"):
            duplicate(executor)
    with pytest.raises(TypeError, match=r"^aclOpExecutor: is no array"):
        np.asarray(executor)


def test_a_run_sees_the_data_of_its_time():
    grad_output, grad_input = gradient(), sentinel_array(IN)
    size, executor = plan(grad_output, grad_input)
    grad_output[...] = gradient(seed=9)
    phase2(size, executor)
    assert np.array_equal(grad_input, expected(gradient(seed=9)))


def test_the_product_is_that_of_phase_1():
    # 1 + 2**-12 is 1 in HF32; without reduction it stays.
    fine = np.full(OUT, 1 + 2.0**-12, np.float32)
    for product, value in (("Ascend910B", 0.25), ("Host", (1 + 2.0**-12) / 4)):
        grad_input = sentinel_array(IN)
        with a.soc(product):
            size, executor = phase1(
                specs(product, gradOutput=fine, self=grad_input, gradInput=grad_input, cubeMathType=1)
            )
        with a.soc("Ascend310P"):
            phase2(size, executor)
        assert np.all(grad_input == np.float32(value))


# workspace


@pytest.mark.parametrize("kind", ["uint8", "float64", "bytearray", "memoryview", "malloc", "ctypes", "array"])
def test_every_writable_buffer_serves_as_workspace(kind):
    import array

    size, executor, grad_output, grad_input = plan_with_workspace()
    make = {
        "uint8": lambda: np.empty(size, np.uint8),
        "float64": lambda: np.empty(size // 8 + 1, np.float64),
        "bytearray": lambda: bytearray(size),
        "memoryview": lambda: memoryview(bytearray(size)),
        "malloc": lambda: a.aclrtMalloc(size, 0),
        "ctypes": lambda: (ctypes.c_char * size)(),
        "array": lambda: array.array("B", bytes(size)),
    }
    a.aclnnAvgPool2dBackward(make[kind](), size, executor, None)
    check_k3s1p1(grad_output, grad_input)


@pytest.mark.parametrize("skip", [*range(0, 65, 7), 1, 8, 63, 64])
@pytest.mark.parametrize("threads", [1, 2, 3])
def test_exactly_enough_at_any_address(skip, threads):
    grad_output = gradient((2, 8, 96, 96), np.float16)
    grad_input = sentinel_array(grad_output.shape, np.float16)
    with a.num_threads(threads):
        size, executor = plan(grad_output, grad_input, 3, 1, 1)
    memory = sentinels(size + 256)
    a.aclnnAvgPool2dBackward(memory[64 + skip : 64 + skip + size], size, executor, None)
    check_k3s1p1(grad_output, grad_input)
    assert np.all(memory[: 64 + skip] == SENTINEL), "wrote before the workspace"
    assert np.all(memory[64 + skip + size :] == SENTINEL), "wrote behind the workspace"


def test_workspace_contents_do_not_matter():
    results = []
    for fill in (0x00, 0xFF, 0x7F):
        size, executor, _, grad_input = plan_with_workspace()
        a.aclnnAvgPool2dBackward(np.full(size, fill, np.uint8), size, executor, None)
        results.append(grad_input.tobytes())
    assert results[0] == results[1] == results[2]


def test_larger_workspace_is_fine():
    size, executor, grad_output, grad_input = plan_with_workspace()
    workspace = sentinels(size + 10_000)
    a.aclnnAvgPool2dBackward(workspace, size + 10_000, executor, None)
    check_k3s1p1(grad_output, grad_input)
    size, executor, grad_output, grad_input = plan_with_workspace()
    a.aclnnAvgPool2dBackward(workspace, size, executor, None)
    check_k3s1p1(grad_output, grad_input)


def test_workspace_too_small():
    size, executor, grad_output, grad_input = plan_with_workspace()
    memory = sentinels(size)
    with refusal(INVALID, f"^workspaceSize = {size - 1}", str(size)):
        a.aclnnAvgPool2dBackward(memory, size - 1, executor, None)
    with refusal(INVALID, "^workspaceSize = 0", str(size)):
        a.aclnnAvgPool2dBackward(memory, 0, executor, None)
    with refusal(INVALID, "^workspaceSize = -1"):
        a.aclnnAvgPool2dBackward(memory, -1, executor, None)
    with refusal(INVALID, "^workspace", str(size - 1)):
        a.aclnnAvgPool2dBackward(memory[1:], size, executor, None)
    with refusal(INVALID, "^workspace", str(size)):
        a.aclnnAvgPool2dBackward(memory, size + 1, executor, None)
    with refusal(INVALID, "^workspace"):
        a.aclnnAvgPool2dBackward(memory, 2**63 - 1, executor, None)
    assert np.all(memory == SENTINEL)
    assert untouched(grad_input)
    a.aclnnAvgPool2dBackward(memory, size, executor, None)
    check_k3s1p1(grad_output, grad_input)


def test_workspace_missing():
    size, executor, grad_output, grad_input = plan_with_workspace()
    with refusal(NULL, "^workspace = None"):
        a.aclnnAvgPool2dBackward(None, size, executor, None)
    assert untouched(grad_input)
    phase2(size, executor)
    check_k3s1p1(grad_output, grad_input)


def test_workspace_none_with_a_size_although_none_is_needed():
    grad_input = np.zeros((0, 3, 8, 8), np.float32)
    size, executor = plan(np.zeros((0, 3, 4, 4), np.float32), grad_input)
    assert size == 0
    message = r"^workspace = None: has no bytes, but workspaceSize = 64; the executor needs none: pass 0"
    with refusal(NULL, message) as info:
        a.aclnnAvgPool2dBackward(None, 64, executor, None)
    assert "null" not in str(info.value)
    a.aclnnAvgPool2dBackward(None, 0, executor, None)


def test_empty_workspace_serves_where_none_is_needed():
    for workspace in (None, b"", bytearray(), np.empty(0, np.uint8)):
        size, executor = plan(np.zeros((0, 3, 4, 4), np.float32), np.zeros((0, 3, 8, 8), np.float32))
        assert size == 0
        a.aclnnAvgPool2dBackward(workspace, 0, executor, None)


def test_workspace_read_only():
    size, executor, grad_output, grad_input = plan_with_workspace()
    frozen = np.zeros(size, np.uint8)
    frozen.flags.writeable = False
    for workspace in (frozen, bytes(size), memoryview(bytes(size))):
        with refusal(INVALID, "^workspace", "writ|read-only"):
            a.aclnnAvgPool2dBackward(workspace, size, executor, None)
    assert untouched(grad_input)
    phase2(size, executor)
    check_k3s1p1(grad_output, grad_input)


@pytest.mark.parametrize("workspace", [5, 1.5, "x" * 100_000, [0] * 100_000, object()], ids=lambda w: type(w).__name__)
def test_workspace_of_another_type(workspace):
    size, executor, grad_output, grad_input = plan_with_workspace()
    with pytest.raises(TypeError, match="workspace"):
        a.aclnnAvgPool2dBackward(workspace, size, executor, None)
    phase2(size, executor)
    check_k3s1p1(grad_output, grad_input)


def test_objects_are_no_workspace():
    size, executor, grad_output, grad_input = plan_with_workspace()
    objects = np.zeros(size, object)
    with pytest.raises((TypeError, ValueError), match="workspace"):
        a.aclnnAvgPool2dBackward(objects, size, executor, None)
    assert objects.tolist() == [0] * size
    phase2(size, executor)
    check_k3s1p1(grad_output, grad_input)


def test_workspace_with_gaps():
    size, executor, grad_output, grad_input = plan_with_workspace()
    with pytest.raises((TypeError, ValueError, BufferError), match="workspace"):
        a.aclnnAvgPool2dBackward(np.zeros((size, 2), np.uint8)[:, 0], size, executor, None)
    phase2(size, executor)
    check_k3s1p1(grad_output, grad_input)


@pytest.mark.parametrize("value", [1.0, True, "100000", None, np.float64(1)], ids=label)
def test_workspace_size_of_another_type(value):
    size, executor, grad_output, grad_input = plan_with_workspace()
    with pytest.raises(TypeError, match="workspaceSize"):
        a.aclnnAvgPool2dBackward(bytearray(size), value, executor, None)
    phase2(np.int64(size), executor)
    check_k3s1p1(grad_output, grad_input)


def test_workspace_size_beyond_int64():
    size, executor, _, _ = plan_with_workspace()
    for value in (2**63, 2**64, -(2**63) - 1):
        with pytest.raises(OverflowError, match="workspaceSize"):
            a.aclnnAvgPool2dBackward(bytearray(size), value, executor, None)
    phase2(size, executor)


def test_workspace_overlaps_a_tensor():
    shape = (2, 3, 40, 40)
    count = int(np.prod(shape)) * 2
    size, _, _, _ = plan_with_workspace(shape=shape)
    memory = sentinels(2 * count + size)
    grad_output = memory[:count].view(np.float16).reshape(shape)
    grad_output[...] = gradient(shape, np.float16)
    grad_input = memory[count : 2 * count].view(np.float16).reshape(shape)
    size, executor = plan(grad_output, grad_input, 3, 1, 1)
    before = memory.tobytes()
    for start, name in ((0, "gradOutput"), (count - 1, "gradOutput|gradInput"), (2 * count - 1, "gradInput")):
        with refusal(INVALID, "^workspace", "overlap", name):
            a.aclnnAvgPool2dBackward(memory[start : start + size], size, executor, None)
    assert memory.tobytes() == before
    a.aclnnAvgPool2dBackward(memory[2 * count :], size, executor, None)
    check_k3s1p1(grad_output, grad_input)


def test_workspace_in_a_gap_of_a_tensor():
    size, _, _, _ = plan_with_workspace()
    shape = (2, 3, 40, 40)
    row = -(-size // 2) + 64
    memory = sentinel_array((2, 3 * 1600 + row), np.float16)
    grad_input = memory[:, :4800].reshape(shape)
    assert np.shares_memory(memory, grad_input)
    grad_output = gradient(shape, np.float16)
    size, executor = plan(grad_output, grad_input, 3, 1, 1)
    gap = memory[0, 4800:].view(np.uint8)
    with refusal(INVALID, "^workspace", "overlap"):
        a.aclnnAvgPool2dBackward(memory.view(np.uint8).ravel()[9599 : 9599 + size], size, executor, None)
    a.aclnnAvgPool2dBackward(gap[:size], size, executor, None)
    check_k3s1p1(grad_output, grad_input)


def test_workspace_may_share_memory_with_self():
    shape = (2, 3, 40, 40)
    memory = np.zeros(200_000, np.uint8)
    grad_output, grad_input = gradient(shape, np.float16), sentinel_array(shape, np.float16)
    shape_only = memory[: grad_input.nbytes].view(np.float16).reshape(shape)
    size, executor = plan(grad_output, grad_input, 3, 1, 1, self=shape_only)
    a.aclnnAvgPool2dBackward(memory, size, executor, None)
    check_k3s1p1(grad_output, grad_input)


def unbound(shape, dtype):
    fmt = a.ACL_FORMAT_NCL if len(shape) == 3 else a.ACL_FORMAT_NCHW
    return a.aclCreateTensor(shape, dtype, None, 0, fmt, shape, None)


GEOMETRIES = [
    ((n, c, h, w), kernel, stride, padding)
    for n, c in ((1, 1), (1, 3), (64, 512))
    for h, w in ((1, 1), (7, 7), (224, 224), (3, 100_000), (100_000, 3), (2000, 2000), (2, 10_000_000))
    for kernel, stride, padding in ((1, 1, 0), (2, 2, 0), (3, 1, 1), (3, 2, 1), (5, 3, 2), (31, 1, 15), (1000, 7, 500))
    if h + 2 * padding >= kernel and w + 2 * padding >= kernel
]


@pytest.mark.parametrize("dtype", [a.ACL_FLOAT, a.ACL_DOUBLE, a.ACL_FLOAT16, a.ACL_BF16], ids=lambda d: d.name)
@pytest.mark.parametrize("threads", [1, 2, 16])
def test_workspace_is_bounded(dtype, threads):
    for shape, kernel, stride, padding in GEOMETRIES:
        pooled = tuple((s + 2 * padding - kernel) // stride + 1 for s in shape[2:])
        grad_input = unbound(shape, dtype)
        with a.num_threads(threads):
            size, executor = plan(unbound(shape[:2] + pooled, dtype), grad_input, kernel, stride, padding)
        assert 0 <= size <= threads * (2 * 2**20 + 64 * shape[3]), (shape, kernel, stride, padding)
        a.aclDestroyAclOpExecutor(executor)


def test_workspace_bound_holds_for_strided_outputs():
    for shape in ((8, 16, 64, 64), (1, 1, 2, 10_000_000), (1, 1, 4000, 4000)):
        strides = (2 * shape[1] * shape[2] * shape[3], 2 * shape[2] * shape[3], 2 * shape[3], 2)
        for dtype in (a.ACL_FLOAT, a.ACL_FLOAT16):
            handle = a.aclCreateTensor(
                shape, dtype, strides, 0, a.ACL_FORMAT_NCHW, (2 * int(np.prod(shape, dtype=np.int64)),), None
            )
            size, _ = plan(unbound((*shape[:2], shape[2] + 1, shape[3] + 1), dtype), handle, 2, 1, 1)
            assert size <= 2 * 2**20 + 64 * shape[3]


# a refused phase 2 leaves the executor unspent


def test_refusals_leave_the_executor_unspent():
    size, executor, grad_output, grad_input = plan_with_workspace()
    good = bytearray(size)
    refusals = [
        (None, size, executor, None),
        (good, size - 1, executor, None),
        (good[:-1], size, executor, None),
        (bytes(size), size, executor, None),
        (good, "size", executor, None),
        ([], size, executor, None),
        (grad_input.view(np.uint8).reshape(-1), size, executor, None),
        (good, size, executor, "stream"),
    ]
    for arguments in refusals:
        with pytest.raises((a.AclnnError, TypeError)):
            a.aclnnAvgPool2dBackward(*arguments)
        assert untouched(grad_input)
    a.aclnnAvgPool2dBackward(good, size, executor, None)
    check_k3s1p1(grad_output, grad_input)


# re-pointing


def test_repoint_by_each_call():
    size, executor, _, grad_input = repeatable()
    second, third = gradient(seed=2), gradient(seed=3)
    other = sentinel_array(IN)
    a.aclSetInputTensorAddr(executor, 0, None, second)
    phase2(size, executor)
    assert np.array_equal(grad_input, expected(second))
    a.aclSetOutputTensorAddr(executor, 0, None, other)
    grad_input[...] = -7
    phase2(size, executor)
    assert np.array_equal(other, expected(second))
    assert np.all(grad_input == -7)
    a.aclSetTensorAddr(executor, 0, None, third)
    phase2(size, executor)
    assert np.array_equal(other, expected(third))
    a.aclSetTensorAddr(executor, 2, None, grad_input)
    phase2(size, executor)
    assert np.array_equal(grad_input, expected(third))
    # `self` gives its shape only, but it is a tensor argument and counts.
    a.aclSetInputTensorAddr(executor, 1, None, sentinel_array(IN))
    a.aclSetTensorAddr(executor, 1, None, sentinel_array(IN))
    phase2(size, executor)
    assert np.array_equal(grad_input, expected(third))


@pytest.mark.parametrize("kind", ["bytes", "bytearray", "memoryview", "flat", "malloc"])
def test_repoint_at_a_storage(kind):
    size, executor, _, grad_input = repeatable()
    values = gradient(seed=4)
    data = {
        "bytes": lambda: values.tobytes(),
        "bytearray": lambda: bytearray(values.tobytes()),
        "memoryview": lambda: memoryview(values.tobytes()),
        "flat": lambda: values.ravel(),
        "malloc": lambda: a.aclrtMalloc(values.nbytes, 0),
    }[kind]()
    if kind == "malloc":
        a.aclrtMemcpy(data, values.nbytes, values.tobytes(), values.nbytes, 0)
    a.aclSetInputTensorAddr(executor, 0, None, data)
    phase2(size, executor)
    assert np.array_equal(grad_input, expected(values))


def test_repoint_keeps_offset_and_strides():
    memory = np.zeros(200, np.float32)
    handle = a.aclCreateTensor(OUT, a.ACL_FLOAT, (-48, 16, -4, 1), 99, a.ACL_FORMAT_NCHW, (200,), memory)
    size, executor, _, grad_input = repeatable(handle)
    fresh = np.arange(200, dtype=np.float32)
    a.aclSetInputTensorAddr(executor, 0, handle, fresh)
    phase2(size, executor)
    view = np.lib.stride_tricks.as_strided(fresh[99:], OUT, (-192, 64, -16, 4))
    assert np.array_equal(grad_input, expected(view))


def test_repoint_with_the_tensor_given_there():
    handle = tensor(OUT, gradient())
    size, executor, _, grad_input = repeatable(handle)
    values = gradient(seed=5)
    a.aclSetInputTensorAddr(executor, 0, handle, values)
    phase2(size, executor)
    assert np.array_equal(grad_input, expected(values))
    with refusal(INVALID, "^tensor"):
        a.aclSetInputTensorAddr(executor, 0, tensor(OUT, gradient()), gradient())
    phase2(size, executor)
    assert np.array_equal(grad_input, expected(values))


REPOINT_REFUSALS = {
    "input index": ("input", 2, gradient(), "index = 2"),
    "negative input index": ("input", -1, gradient(), "index = -1"),
    "output index": ("output", 1, np.zeros(IN, np.float32), "index = 1"),
    "negative output index": ("output", -1, np.zeros(IN, np.float32), "index = -1"),
    "tensor index": ("any", 3, gradient(), "index = 3"),
    "negative tensor index": ("any", -1, gradient(), "index = -1"),
    "huge index": ("any", 2**62, gradient(), "index = "),
    "short storage": ("input", 0, bytes(383), "gradOutput|data"),
    "short output storage": ("output", 0, bytearray(1535), "gradInput|data"),
    "no storage": ("input", 0, b"", "gradOutput|data"),
    "other shape": ("input", 0, np.zeros((2, 3, 4, 3), np.float32), "gradOutput|data"),
    "other strides": ("input", 0, np.zeros((2, 3, 4, 8), np.float32)[..., ::2], "gradOutput|data"),
    "other dtype": ("input", 0, np.zeros(OUT, np.float16), "gradOutput|data"),
    "misaligned": ("input", 0, sentinels(384, misaligned=True), "gradOutput|data"),
    "objects": ("input", 0, np.zeros(96, object), "data|gradOutput"),
    "read-only output": ("output", 0, bytes(1536), "gradInput|data"),
}


@pytest.mark.parametrize("case", list(REPOINT_REFUSALS))
def test_repoint_refusals_change_nothing(case):
    which, index, data, pattern = REPOINT_REFUSALS[case]
    call = {"input": a.aclSetInputTensorAddr, "output": a.aclSetOutputTensorAddr, "any": a.aclSetTensorAddr}[which]
    size, executor, grad_output, grad_input = repeatable()
    with pytest.raises((a.AclnnError, TypeError), match=pattern) as info:
        call(executor, index, None, data)
    assert case == "objects" or info.value.status == INVALID
    phase2(size, executor)
    assert np.array_equal(grad_input, expected(grad_output))


def test_repoint_checks_overlap_again():
    memory = np.zeros((2, 6, 8, 8), np.float32)
    grad_output, grad_input = gradient(IN), sentinel_array(IN)
    size, executor = plan(grad_output, grad_input, 1, 1)
    a.aclSetAclOpExecutorRepeatable(executor)
    with refusal(INVALID, "overlap"):
        a.aclSetInputTensorAddr(executor, 0, None, grad_input)
    with refusal(INVALID, "overlap"):
        a.aclSetOutputTensorAddr(executor, 0, None, grad_output)
    phase2(size, executor)
    assert np.array_equal(grad_input, grad_output)
    flat = memory.reshape(-1)
    a.aclSetOutputTensorAddr(executor, 0, None, flat[:384])
    with refusal(INVALID, "overlap"):
        a.aclSetInputTensorAddr(executor, 0, None, flat[383 : 383 + 384])
    a.aclSetInputTensorAddr(executor, 0, None, flat[384:])
    # `self` is not read and may share anything.
    a.aclSetInputTensorAddr(executor, 1, None, flat[:384])
    flat[384:] = np.arange(384)
    phase2(size, executor)
    assert np.array_equal(flat[:384], flat[384:])


def test_repoint_checks_the_workspace_against_the_new_address():
    size, executor, grad_output, grad_input = plan_with_workspace()
    a.aclSetAclOpExecutorRepeatable(executor)
    memory = sentinels(grad_input.nbytes + size)
    end = grad_input.nbytes
    a.aclnnAvgPool2dBackward(memory[end - 1 : -1], size, executor, None)
    fresh = memory[:end].view(np.float16).reshape(grad_input.shape)
    a.aclSetOutputTensorAddr(executor, 0, None, fresh)
    with refusal(INVALID, "^workspace", "overlap", "gradInput"):
        a.aclnnAvgPool2dBackward(memory[end - 1 : -1], size, executor, None)
    a.aclnnAvgPool2dBackward(memory[end:], size, executor, None)
    check_k3s1p1(grad_output, fresh)


def test_repoint_binds_an_unbound_tensor():
    grad_output, grad_input = gradient(), sentinel_array(IN)
    size, executor = plan(unbound(OUT, a.ACL_FLOAT), unbound(IN, a.ACL_FLOAT))
    a.aclSetAclOpExecutorRepeatable(executor)
    with refusal(NULL, "gradOutput"):
        phase2(size, executor)
    a.aclSetInputTensorAddr(executor, 0, None, grad_output)
    with refusal(NULL, "gradInput"):
        phase2(size, executor)
    frozen = sentinel_array(IN)
    frozen.flags.writeable = False
    with refusal(INVALID, "gradInput|data"):
        a.aclSetOutputTensorAddr(executor, 0, None, frozen)
    a.aclSetOutputTensorAddr(executor, 0, None, grad_input)
    phase2(size, executor)
    assert np.array_equal(grad_input, expected(grad_output))


def test_repoint_needs_a_repeatable_executor():
    calls = [
        lambda e: a.aclSetInputTensorAddr(e, 0, None, gradient()),
        lambda e: a.aclSetOutputTensorAddr(e, 0, None, sentinel_array(IN)),
        lambda e: a.aclSetTensorAddr(e, 0, None, gradient()),
    ]
    for call in calls:
        grad_output, grad_input = gradient(), sentinel_array(IN)
        size, executor = plan(grad_output, grad_input)
        with refusal(INNER, "^executor"):
            call(executor)
        phase2(size, executor)
        assert np.array_equal(grad_input, expected(grad_output))
        with refusal(INNER, "^executor"):
            call(executor)
        size, executor, _, _ = repeatable()
        a.aclDestroyAclOpExecutor(executor)
        with refusal(INNER, "^executor"):
            call(executor)


@pytest.mark.parametrize("call", ["aclSetInputTensorAddr", "aclSetOutputTensorAddr", "aclSetTensorAddr"])
def test_repoint_of_another_type(call):
    size, executor, grad_output, grad_input = repeatable()
    function = getattr(a, call)
    for index in (0.0, True, "0", None):
        with pytest.raises(TypeError, match="index"):
            function(executor, index, None, bytearray(4096))
    with pytest.raises(OverflowError, match="index"):
        function(executor, 2**63, None, bytearray(4096))
    for data in (5, 1.5, [0.0], "data" * 1000):
        with pytest.raises(TypeError, match=r"data|addr"):
            function(executor, 0, None, data)
    with pytest.raises((TypeError, a.AclnnError), match="tensor"):
        function(executor, 0, "tensor", bytearray(4096))
    phase2(size, executor)
    assert np.array_equal(grad_input, expected(grad_output))


def test_repoint_at_null():
    size, executor, grad_output, grad_input = repeatable()
    with refusal(INNER_NULL, "data|addr"):
        a.aclSetInputTensorAddr(executor, 0, None, None)
    phase2(size, executor)
    assert np.array_equal(grad_input, expected(grad_output))


# what an executor keeps alive


def test_arrays_live_until_the_executor_goes():
    grad_output, grad_input, shape_only = gradient(), sentinel_array(IN).copy(), np.zeros(IN, np.float32)
    alive = [weakref.ref(x) for x in (grad_output, grad_input, shape_only)]
    want = expected(grad_output)
    size, executor = plan(grad_output, grad_input, self=shape_only)
    del grad_output, shape_only
    gc.collect()
    assert alive[0]() is not None
    phase2(size, executor)
    assert np.array_equal(grad_input, want)
    del executor, grad_input
    gc.collect()
    assert [ref() for ref in alive] == [None, None, None]


def test_references_go_with_the_last_use():
    def count(*arrays):
        return [sys.getrefcount(array) for array in arrays]

    grad_output, grad_input = gradient(), sentinel_array(IN)
    before = count(grad_output, grad_input)
    size, executor = plan(grad_output, grad_input)
    assert all(now > then for now, then in zip(count(grad_output, grad_input), before, strict=True))
    phase2(size, executor)
    del executor
    assert count(grad_output, grad_input) == before
    size, executor = repeatable(grad_output, grad_input)[:2]
    phase2(size, executor)
    a.aclDestroyAclOpExecutor(executor)
    assert count(grad_output, grad_input) == before
    with pytest.raises(a.AclnnError):
        plan(grad_output, grad_input, kernel=0)
    assert count(grad_output, grad_input) == before


def test_a_spent_executor_keeps_nothing():
    grad_output, grad_input = gradient(), sentinel_array(IN)
    before = sys.getrefcount(grad_output), sys.getrefcount(grad_input)
    size, executor = plan(grad_output, grad_input)
    phase2(size, executor)
    assert (sys.getrefcount(grad_output), sys.getrefcount(grad_input)) == before
    with refusal(INNER, "^executor.*spent"):
        phase2(size, executor)


def test_repointing_lets_the_old_array_go():
    size, executor, grad_output, _ = repeatable()
    old = weakref.ref(grad_output)
    del grad_output
    fresh = gradient(seed=1)
    references = sys.getrefcount(fresh)
    a.aclSetInputTensorAddr(executor, 0, None, fresh)
    assert old() is None
    assert sys.getrefcount(fresh) > references
    with pytest.raises(a.AclnnError):
        a.aclSetInputTensorAddr(executor, 0, None, bytes(3))
    phase2(size, executor)
    a.aclDestroyAclOpExecutor(executor)
    assert sys.getrefcount(fresh) == references


def test_a_buffer_is_held_and_released():
    data = bytearray(gradient().tobytes())
    handle = tensor(OUT, data)
    grad_input = sentinel_array(IN)
    size, executor = plan(handle, grad_input)
    a.aclDestroyTensor(handle)
    with pytest.raises(BufferError):
        data.append(0)
    phase2(size, executor)
    del executor
    data.append(0)
    assert np.array_equal(grad_input, expected(gradient()))


def test_the_workspace_is_released():
    size, executor, _, _ = plan_with_workspace()
    workspace = bytearray(size)
    with pytest.raises(a.AclnnError):
        a.aclnnAvgPool2dBackward(workspace, size - 1, executor, None)
    workspace.append(0)
    a.aclnnAvgPool2dBackward(workspace, size, executor, None)
    workspace.append(0)


def used_bytes():
    """What the C library's allocator has given out, in bytes; -1 where it does not say."""

    class Info(ctypes.Structure):
        _fields_ = [
            (name, ctypes.c_size_t)
            for name in ["arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uord", "ford", "keep"]
        ]

    try:
        mallinfo2 = ctypes.CDLL(None).mallinfo2
    except (AttributeError, OSError):
        return -1
    mallinfo2.restype = Info
    info = mallinfo2()
    return info.uord + info.hblkhd


def two_phases():
    size, executor, _, _ = plan_with_workspace()
    phase2(size, executor)


def repeated_runs(state={}):  # noqa: B006  (kept between the calls)
    if not state:
        state["run"] = repeatable()
    size, executor, grad_output, grad_input = state["run"]
    phase2(size, executor)
    a.aclSetInputTensorAddr(executor, 0, None, grad_output)
    a.aclSetOutputTensorAddr(executor, 0, None, grad_input)


def handles():
    executor = plan(tensor(OUT, bytearray(384)), tensor(IN, bytearray(1536)))[1]
    a.aclDestroyAclOpExecutor(executor)
    a.aclDestroyIntArray(a.aclCreateIntArray((2, 2), 2))


def refused_phase_1():
    with pytest.raises(a.AclnnError):
        plan(gradient(), sentinel_array(IN), kernel=3)


def refused_phase_2():
    size, executor, _, _ = plan_with_workspace()
    with pytest.raises(a.AclnnError):
        a.aclnnAvgPool2dBackward(bytearray(size), size - 1, executor, None)


def one_call():
    a.avg_pool2d_backward(np.ones((1, 1, 2, 2), np.float32), (1, 1, 4, 4), 2)


def one_call_refused():
    with pytest.raises(a.AclnnError):
        a.avg_pool2d_backward(np.ones((1, 1, 2, 2), np.float32), (1, 1, 4, 5), 3)


def type_error():
    with pytest.raises(TypeError):
        plan(gradient(), sentinel_array(IN), kernel="2")


class ThroughDLPack:
    """An array that shows its DLPack methods only."""

    def __init__(self, array):
        self.array = array

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()

    def __dlpack__(self, **options):
        return self.array.__dlpack__(**options)


def dlpack():
    arrays = ThroughDLPack(gradient()), ThroughDLPack(sentinel_array(IN))
    phase2(*plan(*arrays))
    with pytest.raises(a.AclnnError):
        plan(*arrays, kernel=3)


def streams():
    stream = a.aclrtCreateStream()
    size, executor = plan(gradient(), sentinel_array(IN))
    phase2(size, executor, stream)
    a.aclrtDestroyStream(stream)


@pytest.mark.alone
@pytest.mark.parametrize(
    "work",
    [
        dlpack,
        streams,
        two_phases,
        repeated_runs,
        handles,
        refused_phase_1,
        refused_phase_2,
        one_call,
        one_call_refused,
        type_error,
    ],
)
def test_memory_does_not_grow(work, thorough):
    rounds = 2_000 if work is streams else 100_000
    for _ in range(200):
        work()
    gc.collect()
    blocks, used = sys.getallocatedblocks(), used_bytes()
    for _ in range(rounds if thorough else rounds // 20):
        work()
    gc.collect()
    assert sys.getallocatedblocks() - blocks < 500
    assert used_bytes() - used < 80_000


def test_tables_of_an_executor_stay_small():
    if used_bytes() < 0:
        pytest.skip("the C library does not tell what it has given out")
    for shape in ((1, 1, 10_000_000, 1), (1, 1, 1, 10_000_000), (1, 1, 30_000, 30_000), (65_535, 65_535, 1, 1)):
        for kernel, padding in ((1, 0), (3, 1), (2, 1)):
            pooled = tuple(s + 2 * padding - kernel + 1 for s in shape[2:])
            if min(pooled) < 1:
                continue
            handles = unbound(shape[:2] + pooled, a.ACL_FLOAT16), unbound(shape, a.ACL_FLOAT16)
            before = used_bytes()
            size, executor = plan(*handles, kernel, 1, padding)
            assert used_bytes() - before < 16 * 2**20
            assert size >= 0
            a.aclDestroyAclOpExecutor(executor)


# phase 2 allocates nothing

COUNTER_SOURCE = Path(__file__).with_name("allocation_counter.c")

COUNTED_RUNS = """
import ctypes, gc, sys
import numpy as np
import aclnn_bw as a

counter = ctypes.CDLL(sys.argv[1])
start, stop = counter.counter_start, counter.counter_stop
start.restype, stop.restype = None, ctypes.c_long
threads = int(sys.argv[2])
libc = ctypes.CDLL(None)
libc.malloc.restype, libc.malloc.argtypes, libc.free.argtypes = ctypes.c_void_p, [ctypes.c_size_t], [ctypes.c_void_p]
gc.disable()

# The counter counts: each window holds a known number of allocations.
for known in range(4):
    blocks = []
    blocks.extend([0] * 8)
    blocks.clear()
    start()
    for _ in range(known):
        libc.free(libc.malloc(100_000))
    seen = stop()
    assert seen == known, f"{seen} of {known} allocations counted"
start()
block = np.empty(3_000_000, np.uint8)
assert stop() >= 1, "NumPy's allocation was not counted"

def window(run):
    run()
    counts = []
    for _ in range(5):
        start()
        run()
        counts.append(stop())
    # An allocation of the interpreter's own may fall into a window by chance; one of the run falls into each.
    return min(counts)

a.set_num_threads(threads)
for dtype in ("float32", "float16"):
    for shape, kernel, stride, padding in (
        ((1, 2, 6, 6), 2, 2, 0),
        ((8, 16, 64, 64), 2, 2, 0),
        ((8, 16, 64, 64), 3, 1, 1),
        ((8, 16, 64, 64), 3, 2, 1),
        ((8, 16, 64, 64), 5, 2, 2),
        ((2, 4, 64, 64), 64, 1, 0),
        ((1, 1, 600, 600), 3, 1, 1),
    ):
        pooled = [(n + 2 * padding - kernel) // stride + 1 for n in shape[2:]]
        grad_output = np.ones((*shape[:2], *pooled), dtype)
        grad_input = np.zeros(shape, dtype)
        with a.soc("Host"):
            size, executor = a.aclnnAvgPool2dBackwardGetWorkspaceSize(
                grad_output, grad_input, [kernel], [stride], [padding], False, True, 0, 0, grad_input
            )
        a.aclSetAclOpExecutorRepeatable(executor)
        workspace = np.empty(size, np.uint8) if size else None
        run = a.aclnnAvgPool2dBackward
        count = window(lambda: run(workspace, size, executor, None))
        assert count == 0, f"{count} allocations: {dtype} {shape} kernel {kernel} stride {stride}"
        assert grad_input.any()
        assert threads > 1 or len(__import__("os").listdir("/proc/self/task")) == 1
"""


@pytest.fixture(scope="module")
def counter(tmp_path_factory):
    if not sys.platform.startswith("linux") or shutil.which("gcc") is None:
        pytest.skip("needs Linux and gcc")
    if os.environ.get("LD_PRELOAD"):
        pytest.skip("something else, a sanitizer perhaps, stands before the allocators")
    library = tmp_path_factory.mktemp("counter") / "allocation_counter.so"
    built = subprocess.run(
        ["gcc", "-O1", "-shared", "-fPIC", "-Wl,-z,defs", "-o", library, COUNTER_SOURCE],
        capture_output=True,
        text=True,
        check=False,
    )
    if built.returncode:
        pytest.skip(f"the counter does not compile here: {built.stderr}")
    return library


@pytest.mark.parametrize("threads", [1, 2])
def test_phase_2_allocates_nothing(counter, threads):
    run_python(COUNTED_RUNS, counter, threads, environment={"LD_PRELOAD": str(counter)})


# one executor, many threads


def test_one_run_at_a_time():
    size, executor, grad_output, grad_input = plan_with_workspace(shape=(4, 8, 64, 64))
    a.aclSetAclOpExecutorRepeatable(executor)
    outcomes = []

    def work():
        workspace = bytearray(size)
        for _ in range(200):
            try:
                a.aclnnAvgPool2dBackward(workspace, size, executor, None)
                outcomes.append(0)
            except a.AclnnError as error:
                outcomes.append(int(error.status))

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(outcomes) <= {0, int(INNER)}
    assert outcomes.count(0) >= 1
    phase2(size, executor)
    check_k3s1p1(grad_output, grad_input)


def test_one_of_many_threads_spends_an_executor():
    for _ in range(50):
        size, executor, grad_output, grad_input = plan_with_workspace()
        barrier = threading.Barrier(4)
        outcomes = []

        def work(size=size, executor=executor, barrier=barrier, outcomes=outcomes):
            workspace = bytearray(size)
            barrier.wait()
            try:
                a.aclnnAvgPool2dBackward(workspace, size, executor, None)
                outcomes.append(0)
            except a.AclnnError as error:
                outcomes.append(int(error.status))

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(outcomes) == [0, INNER, INNER, INNER]
        check_k3s1p1(grad_output, grad_input)


def test_destroyed_while_it_runs():
    grad_output = gradient((16, 32, 64, 64))
    want = expected(grad_output)
    for _ in range(10):
        grad_input = np.zeros(want.shape, np.float32)
        size, executor = plan(grad_output, grad_input)
        a.aclSetAclOpExecutorRepeatable(executor)
        workspace = bytearray(size) if size else None
        started, outcome = threading.Event(), []

        def work(size=size, executor=executor, workspace=workspace, started=started, outcome=outcome):
            started.set()
            try:
                a.aclnnAvgPool2dBackward(workspace, size, executor, None)
                outcome.append(0)
            except a.AclnnError as error:
                outcome.append(int(error.status))

        thread = threading.Thread(target=work)
        thread.start()
        started.wait()
        try:
            a.aclDestroyAclOpExecutor(executor)
        except a.AclnnError as error:
            assert error.status == INNER  # noqa: PT017  (a busy executor may be refused as well)
        thread.join()
        assert outcome in ([0], [int(INNER)])
        if outcome == [0]:
            assert np.array_equal(grad_input, want)


def test_repointing_within_repointing():
    """A finalizer that the garbage collector runs in the middle re-points another tensor: both stay alive."""
    gc.collect()
    gc.freeze()  # the rest of the process is not looked through each time
    for threshold in range(1, 40):
        size, executor, _, _ = repeatable()
        new_input, new_output = gradient(seed=3), sentinel_array(IN)
        alive = [weakref.ref(new_input), weakref.ref(new_output)]

        def collected(phase, _, executor=executor, output=[new_output]):  # noqa: B006
            if phase == "start" and output:
                a.aclSetOutputTensorAddr(executor, 0, None, output.pop())

        before = gc.get_threshold()
        gc.collect()
        gc.callbacks.append(collected)
        try:
            gc.set_threshold(threshold)
            a.aclSetInputTensorAddr(executor, 0, None, new_input)
        finally:
            gc.set_threshold(*before)
            gc.callbacks.remove(collected)
        if collected.__defaults__[1]:
            collected("start", None)
        del new_input, new_output, collected
        gc.collect()
        assert all(reference() is not None for reference in alive), threshold
        phase2(size, executor)
        assert np.array_equal(alive[1](), expected(alive[0]()))
    gc.unfreeze()


def test_destroyed_while_it_is_repointed():
    size, executor, grad_output, _ = repeatable()

    class Destroyer(ThroughDLPack):
        def __dlpack__(self, **options):
            a.aclDestroyAclOpExecutor(executor)
            return super().__dlpack__(**options)

    with refusal(INNER, "destroyed"):
        a.aclSetInputTensorAddr(executor, 0, None, Destroyer(grad_output))
    with refusal(INNER, "destroyed"):
        phase2(size, executor)


# ---- re-pointing to arrays that are not the tensor's -----------------------------------------------------------------


@pytest.mark.parametrize(
    "foreign",
    [
        lambda array: array.astype(array.dtype.newbyteorder()),
        lambda array: np.asfortranarray(array),
        lambda array: array.astype(np.float64),
        lambda array: array.astype(np.int32),
    ],
    ids=["swapped", "fortran", "float64", "int32"],
)
def test_repointing_does_not_reinterpret_values(foreign):
    grad = np.arange(8, dtype=np.float32).reshape(1, 2, 2, 2)
    out = np.empty((1, 2, 4, 4), np.float32)
    size, executor = a.aclnnAvgPool2dBackwardGetWorkspaceSize(grad, out, [2, 2], [], [0, 0], False, True, 0, 0, out)
    a.aclSetAclOpExecutorRepeatable(executor)
    workspace = bytearray(size)
    with pytest.raises(a.AclnnError, match=r"^data") as caught:
        a.aclSetInputTensorAddr(executor, 0, None, foreign(grad + 1))
    assert caught.value.status == 161002
    a.aclnnAvgPool2dBackward(workspace, size, executor)
    assert out[0, 0, 0, 0] == 0
    a.aclSetInputTensorAddr(executor, 0, None, (grad + 1).view(np.uint8).ravel())
    a.aclnnAvgPool2dBackward(workspace, size, executor)
    assert out[0, 0, 0, 0] == 0.25
    a.aclSetInputTensorAddr(executor, 0, None, (grad + 3).ravel())
    a.aclnnAvgPool2dBackward(workspace, size, executor)
    assert out[0, 0, 0, 0] == 0.75


def test_a_destroyed_int_array_makes_no_other():
    array = a.aclCreateIntArray([2, 2], 2)
    a.aclDestroyIntArray(array)
    with pytest.raises(a.AclnnError, match="destroyed") as caught:
        a.aclCreateIntArray(array, 2)
    assert caught.value.status == 161002


# ---- every operator -------------------------------------------------------------------------------------------------


@each_operator
def test_each_operator_runs_once(operator):
    call = operator()
    size, executor = call.phase1()
    assert type(size) is int
    assert call.untouched(), "phase 1 wrote data"
    assert f"<aclOpExecutor {operator.__name__} ready" in repr(executor)
    call.phase2(size, executor)
    call.check()
    call.clear()
    for _ in range(2):
        with refusal(INNER, "^executor.*spent"):
            call.phase2(size, executor)
    assert call.untouched()


@each_operator
def test_each_operator_repeats(operator):
    call = operator()
    size, executor = call.repeatable()
    for seed in range(4):
        other = operator(seed=seed)
        for name in call.named("read"):
            call[name][...] = other[name]
        call.clear()
        call.phase2(size, executor)
        call.check(other.wanted)
    a.aclDestroyAclOpExecutor(executor)
    call.clear()
    with refusal(INNER, "^executor"):
        call.phase2(size, executor)
    assert call.untouched()


@each_operator
def test_each_operator_writes_every_element(operator):
    # Whatever was there before.
    for shape in ((2, 3, 8, 8), (1, 17, 5, 6)):
        for fill in (0x00, 0xFF):
            call = operator(shape)
            for array in call.outputs.values():
                array.view(np.uint8)[...] = fill
            call.run()
            call.check()


@each_operator
def test_inputs_of_each_operator_stay_as_they_are(operator):
    call = operator()
    before = {name: call[name].copy() for name in call.named("read", "shape")}
    for array in before:
        call[array].flags.writeable = False
    call.run()
    for name, array in before.items():
        assert call[name].tobytes() == array.tobytes()


@each_operator
def test_an_executor_belongs_to_its_operator(operator):
    call = operator()
    size, executor = call.phase1()
    for other in OPERATORS.values():
        if other is not operator:
            with refusal(INVALID, "^executor: was made by another operator"):
                other.phase2(size, executor)
            with refusal(INVALID, "^executor: was made by another operator"):
                other.phase2(4096, executor)
    assert call.untouched()
    call.phase2(size, executor)
    call.check()


@each_operator
def test_each_tensor_is_repointed_by_its_index(operator):
    first, second = operator(seed=1), operator(seed=2)
    size, executor = first.repeatable()
    inputs, outputs = first.named("read", "shape"), first.named("written")
    for index, name in enumerate(inputs):
        a.aclSetInputTensorAddr(executor, index, first[name], second[name])
    first.phase2(size, executor)
    first.check(second.wanted)
    for index, name in enumerate(outputs):
        a.aclSetOutputTensorAddr(executor, index, first[name], second[name])
    first.clear()
    first.phase2(size, executor)
    second.check()
    assert first.untouched()
    for index, name in enumerate(first.roles):
        a.aclSetTensorAddr(executor, index, None, operator(seed=1)[name] if name in inputs else first[name])
    first.phase2(size, executor)
    first.check()


@each_operator
def test_indices_of_repointing_end_where_the_tensors_do(operator):
    call, other = operator(), operator(seed=5)
    size, executor = call.repeatable()
    for setter, names in (
        (a.aclSetInputTensorAddr, call.named("read", "shape")),
        (a.aclSetOutputTensorAddr, call.named("written")),
        (a.aclSetTensorAddr, tuple(call.roles)),
    ):
        for index in (-1, len(names), 2**40):
            for data in other.arguments.values():
                if isinstance(data, np.ndarray):
                    with refusal(INVALID, rf"^index = {index}: must be in \[0, {len(names)}\)$"):
                        setter(executor, index, None, data)
        # A tensor is re-pointed to memory of its own size only, and says so before anything has changed.
        for index in range(len(names)):
            with refusal(INVALID, "^data"):
                setter(executor, index, None, bytearray(3))
    call.phase2(size, executor)
    call.check()


def placed(memory, begin, like):
    """An array over the memory from byte `begin` on, with the shape, dtype and values of another one."""
    array = memory[begin : begin + like.nbytes].view(like.dtype).reshape(like.shape)
    array[...] = like
    return array


@each_operator
def test_each_output_stays_apart(operator):
    """From what is read and from the other outputs, in phase 1 and when it is re-pointed; not from a mere shape."""
    call = operator()
    for index, output in enumerate(call.named("written")):
        for name, role in call.roles.items():
            if name == output:
                continue
            end = call[output].nbytes
            memory = sentinels(end + max(end, call[name].nbytes))
            below = placed(memory, 0, call[output])
            behind, across, within = operator(), operator(), operator()
            for other, begin in ((behind, end), (across, end - call[name].itemsize), (within, 0)):
                other.arguments[name] = placed(memory, begin, call[name])
                other.arguments[output] = below
            if role == "shape":
                within.run()
                within.check()
                across.run()
                across.check()
            else:
                for other in (within, across):
                    memory_before = memory.tobytes()
                    with refusal(INVALID, rf"^({output}|{name}) overlaps ({name}|{output}): "):
                        other.phase1()
                    assert memory.tobytes() == memory_before
            placed(memory, end, call[name])
            size, executor = behind.repeatable()
            if role != "shape":
                with refusal(INVALID, "overlaps"):
                    a.aclSetOutputTensorAddr(executor, index, None, memory[end:])
            behind.phase2(size, executor)
            behind.check(call.wanted)


@each_operator
def test_the_workspace_of_each_operator_stays_apart(operator):
    # Half precision sums in single precision, for which most operators need a workspace.
    call = operator((2, 8, 24, 24), np.float16)
    run = getattr(a, f"aclnn{operator.__name__}")
    for name, role in call.roles.items():
        length = max(call.phase1()[0], 64)
        end = call[name].nbytes
        memory = sentinels(end + length)
        changed = operator((2, 8, 24, 24), np.float16)
        changed.arguments[name] = placed(memory, 0, call[name])
        _, executor = changed.repeatable()
        if role != "shape":
            with refusal(INVALID, f"^workspace: overlaps {name}$"):
                run(memory[end - 1 : end - 1 + length], length, executor)
            assert role == "read" or changed.untouched()
        else:
            run(memory[end - 1 : end - 1 + length], length, executor)
            changed.check(call.wanted)
        run(memory[end:], length, executor)
        changed.check(call.wanted)


@each_operator
def test_workspace_of_each_operator(operator):
    """Exactly enough at any address, and not a byte less."""
    for dtype in TAKEN[operator.__name__]["Host"]:
        call = operator((2, 8, 40, 40), NUMPY_DTYPE[dtype])
        run = getattr(a, f"aclnn{operator.__name__}")
        for threads in (1, 3):
            for skip in (0, 1, 63):
                with a.num_threads(threads):
                    size, executor = call.phase1()
                memory = sentinels(size + 256)
                workspace = memory[64 + skip : 64 + skip + size]
                if size > 0:
                    with refusal(INVALID, f"^workspaceSize = {size - 1}", str(size)):
                        run(workspace, size - 1, executor)
                    with refusal(NULL, "^workspace = None"):
                        run(None, size, executor)
                call.clear()
                run(workspace if size else None, size, executor)
                call.check()
                assert np.all(memory[: 64 + skip] == SENTINEL), "wrote before the workspace"
                assert np.all(memory[64 + skip + size :] == SENTINEL), "wrote behind the workspace"


@each_operator
def test_the_rules_are_those_of_phase_1(operator):
    """The product and the mask layout are read in phase 1 and kept."""
    for layout, other in (("bitmask", "argmax"), ("argmax", "bitmask")):
        call = operator(dtype=np.float64, layout=layout)
        with a.soc("Host", mask_layout=layout):
            size, executor = call.phase1()
        with a.soc("Ascend310P", mask_layout=other):
            call.phase2(size, executor)
        call.check()


@each_operator
def test_an_empty_batch_does_nothing(operator):
    call = operator((0, 3, 8, 8))
    if operator.__name__.startswith("UpsampleNearestExact1d"):
        with refusal(INVALID):
            call.phase1()
        return
    size, executor = call.phase1()
    assert size == 0
    a.aclSetAclOpExecutorRepeatable(executor)
    for _ in range(2):
        call.phase2(size, executor)


@each_operator
def test_each_operator_lets_its_arrays_go(operator):
    call = operator()
    arrays = [value for value in call.arguments.values() if isinstance(value, np.ndarray)]
    before = [sys.getrefcount(array) for array in arrays]
    size, executor = call.phase1()
    during = [sys.getrefcount(array) for array in arrays]
    assert all(now > then for now, then in zip(during, before, strict=True))
    call.phase2(size, executor)
    assert [sys.getrefcount(array) for array in arrays] == before
    size, executor = call.repeatable()
    call.phase2(size, executor)
    a.aclDestroyAclOpExecutor(executor)
    assert [sys.getrefcount(array) for array in arrays] == before
    with pytest.raises(a.AclnnError):
        call.phase1(**{call.named("written")[0]: np.zeros((1, 2, 3, 4), np.float32)})
    call.one_call()
    assert [sys.getrefcount(array) for array in arrays] == before


@pytest.mark.alone
@each_operator
def test_memory_of_each_operator_does_not_grow(operator, thorough):
    call = operator()
    bad = {call.named("written")[0]: np.zeros((1, 2, 3, 4), np.float32)}

    def work():
        call.run()
        call.one_call()
        with pytest.raises(a.AclnnError):
            call.phase1(**bad)

    for _ in range(200):
        work()
    gc.collect()
    blocks, used = sys.getallocatedblocks(), used_bytes()
    for _ in range(100_000 if thorough else 3_000):
        work()
    gc.collect()
    assert sys.getallocatedblocks() - blocks < 300
    assert used_bytes() - used < 60_000


COUNTED_OPERATORS = """
import ctypes, gc, os, sys
sys.path.insert(0, sys.argv[3])
import numpy as np
import aclnn_bw as a
from engine_helpers import NUMPY_DTYPE
from operators import OPERATORS, TAKEN

counter = ctypes.CDLL(sys.argv[1])
start, stop = counter.counter_start, counter.counter_stop
start.restype, stop.restype = None, ctypes.c_long
libc = ctypes.CDLL(None)
libc.malloc.restype, libc.malloc.argtypes, libc.free.argtypes = ctypes.c_void_p, [ctypes.c_size_t], [ctypes.c_void_p]
gc.disable()
start()
libc.free(libc.malloc(100_000))
assert stop() == 1, "the counter does not count"
a.set_num_threads(int(sys.argv[2]))

for name, operator in OPERATORS.items():
    run = getattr(a, f"aclnn{name}")
    for dtype in TAKEN[name]["Host"]:
        for shape in ((1, 2, 6, 6), (4, 16, 40, 40), (1, 1, 260, 260)):
            for layout in ("bitmask", "argmax")[: 2 if "Mask" in name else 1]:
                call = operator(shape, NUMPY_DTYPE[dtype], layout=layout)
                with a.soc("Host", mask_layout=layout):
                    size, executor = call.repeatable()
                workspace = np.empty(size, np.uint8) if size else None
                run(workspace, size, executor)
                # One of the interpreter's own may fall into a window by chance; one of the run falls into each.
                for _ in range(5):
                    start()
                    run(workspace, size, executor)
                    count = stop()
                    if count == 0:
                        break
                assert count == 0, f"{count} allocations: {name} {dtype.name} {shape} {layout}"
                call.check()
"""


@pytest.mark.parametrize("threads", [1, 2])
def test_phase_2_of_no_operator_allocates(counter, threads):
    tests = Path(__file__).parent
    run_python(COUNTED_OPERATORS, counter, threads, tests, environment={"LD_PRELOAD": str(counter)})


NO_MEMORY = """
import ctypes, gc, sys
sys.path.insert(0, sys.argv[2])
import numpy as np
import aclnn_bw as a
from engine_helpers import NUMPY_DTYPE
from operators import OPERATORS, TAKEN
from test_executor import used_bytes

counter = ctypes.CDLL(sys.argv[1])
fail, stop = counter.counter_fail, counter.counter_stop
fail.restype, fail.argtypes = None, [ctypes.c_size_t, ctypes.c_long]
a.set_num_threads(1)
a.aclGetRecentErrMsg()  # makes room for this thread's messages: where there is none the C library ends the process


def attempt(make, granted):
    fail(700, granted)  # smaller blocks are the interpreter's own, an executor is none
    try:
        return make()
    except MemoryError:
        return None
    finally:
        stop()


def used():
    gc.collect()
    return used_bytes()


failed = 0
for name, operator in OPERATORS.items():
    for dtype in TAKEN[name]["Host"]:
        for shape in ((1, 2, 6, 6), (4, 16, 40, 40)):
            call = operator(shape, NUMPY_DTYPE[dtype])
            with a.soc("Host"):
                assert attempt(call.phase1, 0) is None, f"{name} {dtype.name} {shape}"
                call.run()
                call.check()
            for granted in range(4):
                results = attempt(call.one_call, granted)
                failed += results is None
                for result, wanted in zip(results or (), call.wanted.values()):
                    assert result.tobytes() == wanted.tobytes(), f"{name} {dtype.name} {shape}"
                results = result = None
    assert failed > 0, f"no one-call function ran out of memory: {name}"
    failed = 0
    for make in (call.phase1, call.one_call):
        with a.soc("Host"):
            for number in range(300):
                attempt(make, number % 3)
            before = used()
            for number in range(3000):
                attempt(make, number % 3)
            assert used() - before < 3000, f"{used() - before} bytes: {name}"
"""


@pytest.mark.alone
def test_out_of_memory(counter):
    """Phase 1 and the one-call functions raise MemoryError, keep nothing, and go on as before."""
    run_python(NO_MEMORY, counter, Path(__file__).parent, environment={"LD_PRELOAD": str(counter)})


# ---- an index that phase 2 alone can see to be bad ------------------------------------------------------------------


def argmax_call(shape=(2, 3, 8, 8), dtype=np.float32):
    return OPERATORS["MaxPool2dWithMaskBackward"](shape, dtype, layout="argmax")


@pytest.fixture
def argmax(host):
    with a.soc("Host", mask_layout="argmax"):
        yield


# Of an 8x7 plane with kernel 3, stride 2 and padding 1: a window, and an index that is not in it.
BAD_INDICES = {
    "beyond the plane": ((1, 2, 3, 0), 56),
    "far beyond the plane": ((1, 2, 3, 3), 2**31 - 1),
    "negative": ((0, 0, 0, 0), -1),
    "in the padding above": ((0, 0, 0, 2), -3),
    "the smallest": ((1, 0, 2, 1), -(2**31)),
    "elsewhere in the plane": ((0, 2, 0, 0), 55),
    "one row above": ((0, 1, 1, 1), 2),
    "one row below": ((0, 1, 1, 1), 30),
    "one column to the left": ((0, 1, 1, 1), 14),
    "one column to the right": ((0, 1, 1, 1), 18),
    "left of the first column, which is the row above": ((0, 1, 1, 0), 13),
    "right of the last column, which is the row below": ((0, 1, 1, 3), 14),
}


@pytest.mark.parametrize("case", BAD_INDICES)
def test_a_bad_index_is_refused_by_phase_2(argmax, case):
    place, value = BAD_INDICES[case]
    for dtype in TAKEN["MaxPool2dWithMaskBackward"]["Host"]:
        call = argmax_call((2, 3, 8, 7), NUMPY_DTYPE[dtype])
        memory = sentinels(call["gradInput"].nbytes + 256)
        call.arguments["gradInput"] = memory[128:-128].view(call.dtype).reshape(call.shape)
        good = argmax_indices(call)[place]
        argmax_indices(call)[place] = value
        before = [call[name].tobytes() for name in ("gradOutput", "self", "indices")]
        size, executor = call.phase1()
        assert call.untouched()
        with refusal(INVALID, bad_index(value, place), "must lie inside") as info:
            call.phase2(size, executor)
        assert a.aclGetRecentErrMsg() == str(info.value)
        assert a.aclGetRecentErrMsg() is None
        # Nothing else has been touched, and the executor is spent: phase 2 had accepted it.
        assert [call[name].tobytes() for name in ("gradOutput", "self", "indices")] == before
        assert np.all(memory[:128] == SENTINEL)
        assert np.all(memory[-128:] == SENTINEL)
        with refusal(INNER, "^executor.*spent"):
            call.phase2(size, executor)
        with refusal(INVALID, bad_index(value, place, "mask"), "must lie inside"):
            call.one_call()
        argmax_indices(call)[place] = good
        call.run()
        call.check()


def test_a_bad_index_may_have_let_part_of_the_result_be_written(argmax):
    """As the documentation says: a late one is found when what comes before it has been computed."""
    call = argmax_call((4, 16, 64, 64))
    argmax_indices(call)[-1, -1, -1, -1] = -9
    with a.num_threads(1), refusal(INVALID, bad_index(-9, (3, 15, 31, 31))):
        call.run()
    assert not call.untouched()
    assert untouched(call["gradInput"][-1, -1, -1])
    out = sentinel_array(call.shape)
    keywords = {**call.keywords(), "out": out}
    with a.num_threads(1), refusal(INVALID, bad_index(-9, (3, 15, 31, 31), "mask")):
        a.max_pool2d_with_mask_backward(**keywords)
    assert not untouched(out)


def test_a_repeatable_executor_survives_a_bad_index(argmax):
    call = argmax_call()
    size, executor = call.repeatable()
    indices = argmax_indices(call)
    good = indices.copy()
    for place in ((0, 0, 0, 0), (1, 2, 3, 3), (0, 1, 2, 3)):
        indices[place] = 64
        for _ in range(2):
            with refusal(INVALID, bad_index(64, place)):
                call.phase2(size, executor)
        indices[...] = good
        call.clear()
        call.phase2(size, executor)
        call.check()
    # A mask that is re-pointed is looked at anew.
    other = argmax_call()
    argmax_indices(other)[0, 0, 1, 1] = -5
    a.aclSetInputTensorAddr(executor, 2, None, other["indices"])
    with refusal(INVALID, bad_index(-5, (0, 0, 1, 1))):
        call.phase2(size, executor)
    a.aclSetInputTensorAddr(executor, 2, None, call["indices"])
    call.phase2(size, executor)
    call.check()


def test_the_first_bad_index_is_named_at_every_thread_count(argmax):
    rng = np.random.default_rng(0)
    for shape in ((8, 8, 40, 40), (1, 1, 400, 400), (1, 3, 120, 700)):
        for dtype in (np.float32, np.float16):
            call = argmax_call(shape, dtype)
            indices = argmax_indices(call)
            good = indices.copy()
            for count in (1, 2, 20):
                flat = np.sort(rng.choice(indices.size, count, replace=False))
                indices.flat[flat] = -1 - np.arange(count)
                place = np.unravel_index(flat[0], indices.shape)
                messages = set()
                for threads in (1, 2, 3, 4):
                    with a.num_threads(threads):
                        size, executor = call.repeatable()
                    assert executor.explain().threads == threads or not a.show_config(mode="dict")["openmp"]
                    for _ in range(3):
                        with refusal(INVALID, bad_index(-1, place)) as info:
                            call.phase2(size, executor)
                        messages.add(str(info.value))
                assert len(messages) == 1
                indices[...] = good


def test_a_bad_index_without_a_batch(argmax):
    call = argmax_call((3, 8, 8))
    argmax_indices(call)[2, 3, 1] = 64
    with refusal(INVALID, bad_index(64, (0, 2, 3, 1))):
        call.run()


def test_a_bad_index_keeps_nothing(argmax, thorough):
    call = argmax_call()
    argmax_indices(call)[1, 1, 1, 1] = -1
    arrays = [call[name] for name in call.roles]
    before = [sys.getrefcount(array) for array in arrays]

    def work():
        size, executor = call.phase1()
        for run in (lambda: call.phase2(size, executor), call.one_call):
            with pytest.raises(a.AclnnError):
                run()
        # A spent executor needs its arrays no more, whatever became of its run.
        assert [sys.getrefcount(array) for array in arrays] == before

    for _ in range(200):
        work()
    gc.collect()
    blocks, used = sys.getallocatedblocks(), used_bytes()
    for _ in range(100_000 if thorough else 3_000):
        work()
    gc.collect()
    assert sys.getallocatedblocks() - blocks < 300
    assert used_bytes() - used < 60_000


def test_no_index_of_the_bitmask_is_bad():
    call = OPERATORS["MaxPool2dWithMaskBackward"]()
    call["indices"][...] = -1
    call.run()


def test_a_bad_index_is_no_matter_of_the_forward(argmax):
    # The forward writes what the backward takes, over whatever was there.
    forward = OPERATORS["MaxPool2dWithMask"](layout="argmax")
    forward["indices"][...] = -1
    forward.run()
    backward = argmax_call()
    backward.arguments["indices"] = forward["indices"]
    backward.run()
