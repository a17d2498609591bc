"""The thin runtime calls that ports write line by line: init, device, memory, copies."""

import numpy as np
import pytest
from engine_helpers import expected, gradient, phase2, plan, refusal, run_python

import aclnn_bw as a

INVALID_PARAMETER, REPEATED_INIT, REPEATED_FINALIZE = 100000, 100002, 100037
RUNTIME_PARAMETER, BAD_DEVICE = 107000, 107001


def test_a_whole_program():
    code = """
        import numpy as np
        import aclnn_bw as a

        assert a.aclInit(None) in (None, 0)
        assert a.aclrtSetDevice(0) in (None, 0)
        stream = a.aclrtCreateStream()
        ones = np.ones((1, 16, 1, 1), np.float32)
        device = a.aclrtMalloc(ones.nbytes, 0)
        a.aclrtMemcpy(device, ones.nbytes, ones, ones.nbytes, 1)
        output = a.aclrtMalloc(1024, 0)
        grad_output = a.aclCreateTensor((1, 16, 1, 1), a.ACL_FLOAT, None, 0, a.ACL_FORMAT_NCHW, (16,), device)
        grad_input = a.aclCreateTensor((1, 16, 4, 4), a.ACL_FLOAT, None, 0, a.ACL_FORMAT_NCHW, (256,), output)
        size, executor = a.aclnnAvgPool2dBackwardGetWorkspaceSize(
            grad_output, grad_input, [4, 4], [1, 1], [0, 0], False, True, 0, 0, grad_input)
        workspace = a.aclrtMalloc(size, 0) if size else None
        a.aclnnAvgPool2dBackward(workspace, size, executor, stream)
        a.aclrtSynchronizeStream(stream)
        result = np.zeros((1, 16, 4, 4), np.float32)
        a.aclrtMemcpy(result, result.nbytes, output, 1024, 2)
        assert np.all(result == 1 / 16)
        a.aclDestroyTensor(grad_output)
        a.aclDestroyTensor(grad_input)
        for block in (device, output, workspace):
            if block is not None:
                a.aclrtFree(block)
        a.aclrtDestroyStream(stream)
        assert a.aclrtResetDevice(0) in (None, 0)
        assert a.aclFinalize() in (None, 0)
    """
    run_python(code)


def test_init_and_finalize_once_each():
    code = """
        import aclnn_bw as a

        def status(call, *arguments):
            try:
                call(*arguments)
            except a.AclnnError as error:
                assert a.aclGetRecentErrMsg() == str(error)
                return int(error.status)
            return 0

        print(status(a.aclInit, None), status(a.aclInit, None))
        print(status(a.aclFinalize), status(a.aclFinalize))
    """
    assert run_python(code).stdout.split() == ["0", str(REPEATED_INIT), "0", str(REPEATED_FINALIZE)]


def test_init_is_not_needed():
    code = """
        import numpy as np, aclnn_bw as a
        assert a.avg_pool2d_backward(np.ones((1, 1, 1, 1), np.float32), (1, 1, 2, 2), 2).sum() == 1
        a.aclrtMalloc(64, 0)
    """
    run_python(code)


@pytest.mark.parametrize("call", [a.aclrtSetDevice, a.aclrtResetDevice])
def test_there_is_one_device(call):
    assert call(0) in (None, 0)
    for device in (1, -1, 2**31 - 1, 2**40):
        with refusal(BAD_DEVICE, str(device)):
            call(device)
    for device in (0.0, "0", None, True):
        with pytest.raises(TypeError):
            call(device)


@pytest.mark.parametrize("policy", [0, 1, 2])
@pytest.mark.parametrize("size", [1, 63, 64, 1000, 2**20])
def test_malloc_is_aligned_and_writable(policy, size):
    block = a.aclrtMalloc(size, policy)
    view = memoryview(block)
    assert not view.readonly
    assert view.nbytes == size
    array = np.frombuffer(block, np.uint8)
    assert array.ctypes.data % 64 == 0
    array[...] = 7
    assert bytes(block) == b"\x07" * size
    del view, array
    a.aclrtFree(block)


@pytest.mark.parametrize("size", [0, -1, -(2**63)])
def test_malloc_of_nothing(size):
    with refusal(INVALID_PARAMETER, "size", str(size)):
        a.aclrtMalloc(size, 0)


def test_malloc_of_too_much():
    with pytest.raises(MemoryError):
        a.aclrtMalloc(2**62, 0)


@pytest.mark.parametrize("policy", [3, -1, 2**40])
def test_malloc_with_an_unknown_policy(policy):
    with refusal(INVALID_PARAMETER, "policy", str(policy)):
        a.aclrtMalloc(64, policy)


@pytest.mark.parametrize(("arguments", "name"), [((1.5, 0), "size"), (("64", 0), "size"), ((64, 0.5), "policy")])
def test_malloc_of_another_type(arguments, name):
    with pytest.raises(TypeError, match=name):
        a.aclrtMalloc(*arguments)


def test_a_block_lives_on_where_it_is_used():
    grad_output = gradient()
    block = a.aclrtMalloc(grad_output.nbytes, 0)
    a.aclrtMemcpy(block, grad_output.nbytes, grad_output, grad_output.nbytes, 1)
    handle = a.aclCreateTensor(grad_output.shape, a.ACL_FLOAT, None, 0, a.ACL_FORMAT_NCHW, (96,), block)
    grad_input = np.zeros((2, 3, 8, 8), np.float32)
    with a.soc("Host"):
        size, executor = plan(handle, grad_input)
    a.aclDestroyTensor(handle)
    del block, handle
    phase2(size, executor)
    assert np.array_equal(grad_input, expected(grad_output))


def test_free_of_null_and_of_something_else():
    with refusal(INVALID_PARAMETER):
        a.aclrtFree(None)
    for thing in (5, "block", object()):
        with pytest.raises((TypeError, a.AclnnError)):
            a.aclrtFree(thing)


@pytest.mark.parametrize("kind", range(5))
def test_memcpy(kind):
    source = np.arange(16, dtype=np.uint8)
    for target in (bytearray(20), np.zeros(20, np.uint8), a.aclrtMalloc(20, 0), memoryview(bytearray(20))):
        a.aclrtMemcpy(target, 20, source, 12, kind)
        assert bytes(target)[:12] == bytes(range(12))
        a.aclrtMemcpy(target, 4, bytes(4), 4, kind)
        assert bytes(target)[:12] == bytes(4) + bytes(range(4, 12))


def test_memcpy_of_nothing():
    target = bytearray(b"abc")
    a.aclrtMemcpy(target, 3, b"xyz", 0, 0)
    assert target == b"abc"
    a.aclrtMemcpy(bytearray(), 0, b"", 0, 0)


def test_memcpy_of_arrays_of_any_dtype():
    source = np.arange(6, dtype=np.float64).reshape(2, 3)
    target = np.zeros((2, 3))
    a.aclrtMemcpy(target, 48, source, 48, 0)
    assert np.array_equal(target, source)


def test_memcpy_within_one_block():
    memory = np.arange(64, dtype=np.uint8)
    a.aclrtMemcpy(memory[8:], 40, memory, 40, 0)
    assert bytes(memory[8:48]) == bytes(range(40))


def test_memcpy_that_does_not_fit():
    target, source = bytearray(b"abcdefgh"), b"12345678"
    for dst_max, count in ((7, 8), (8, 9), (0, 1), (100, 100)):
        with refusal(RUNTIME_PARAMETER):
            a.aclrtMemcpy(target, dst_max, source + b"9" * 200 if count == 9 else source, count, 0)
    with refusal(RUNTIME_PARAMETER):
        a.aclrtMemcpy(target, 100, source * 3, 20, 0)
    assert target == b"abcdefgh"


def test_memcpy_refuses():
    target = bytearray(8)
    for kind in (5, -1, 2**40):
        with refusal(INVALID_PARAMETER, "kind", str(kind)):
            a.aclrtMemcpy(target, 8, b"12345678", 8, kind)
    with refusal(INVALID_PARAMETER, "dst"):
        a.aclrtMemcpy(None, 8, b"12345678", 8, 0)
    with refusal(INVALID_PARAMETER, "src"):
        a.aclrtMemcpy(target, 8, None, 8, 0)
    for dst_max, count in ((-1, 8), (8, -1)):
        with pytest.raises(a.AclnnError):
            a.aclrtMemcpy(target, dst_max, b"12345678", count, 0)
    with pytest.raises((a.AclnnError, TypeError, BufferError, ValueError), match="dst"):
        a.aclrtMemcpy(bytes(8), 8, b"12345678", 8, 0)
    for arguments in ((5, 8, b"1" * 8, 8, 0), (target, "8", b"1" * 8, 8, 0), (target, 8, "1" * 8, 8, 0)):
        with pytest.raises(TypeError):
            a.aclrtMemcpy(*arguments)
    assert target == bytes(8)
