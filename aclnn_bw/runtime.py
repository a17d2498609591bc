"""Thin forms of the runtime's calls, for line-by-line ports. The device is the host: one device, number 0."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from aclnn_bw import _native
from aclnn_bw.enums import aclrtMemcpyKind, aclrtMemMallocPolicy
from aclnn_bw.status import AclError

_ALIGNMENT = 64
_initialized = False


def aclInit(configPath: str | None = None) -> None:
    """Begin. A second call without aclFinalize between raises 100002; nothing else depends on it."""
    global _initialized
    if _initialized:
        raise _native.refusal(
            AclError.ACL_ERROR_REPEAT_INITIALIZE, "aclInit was called already; call aclFinalize first")
    _initialized = True


def aclFinalize() -> None:
    """End what aclInit began; raises 100037 without it."""
    global _initialized
    if not _initialized:
        raise _native.refusal(AclError.ACL_ERROR_REPEAT_FINALIZE, "aclFinalize without aclInit; call aclInit first")
    _initialized = False


def _check_int(argument: str, value: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
        raise TypeError(f"{argument} = {value!r}: must be an int, not {type(value).__name__}")


def _check_device(deviceId: int) -> None:
    _check_int("deviceId", deviceId)
    if deviceId != 0:
        raise _native.refusal(AclError.ACL_ERROR_RT_INVALID_DEVICEID, f"deviceId = {deviceId}: must be 0, the host")


def aclrtSetDevice(deviceId: int) -> None:
    """Choose the device: 0, the only one; any other raises 107001."""
    _check_device(deviceId)


def aclrtResetDevice(deviceId: int) -> None:
    """Give the device back."""
    _check_device(deviceId)


def aclrtMalloc(
    size: int, policy: aclrtMemMallocPolicy | int = aclrtMemMallocPolicy.ACL_MEM_MALLOC_HUGE_FIRST
) -> npt.NDArray[np.uint8]:
    """Return a writable buffer of `size` bytes at an address that is a multiple of 64; 0 bytes raise 100000.

    >>> import aclnn_bw
    >>> buffer = aclnn_bw.aclrtMalloc(100)
    >>> buffer.nbytes, buffer.ctypes.data % 64
    (100, 0)
    """
    _check_int("size", size)
    if size <= 0:
        raise _native.refusal(AclError.ACL_ERROR_INVALID_PARAM, f"size = {size}: must be > 0")
    _check_int("policy", policy)
    try:
        aclrtMemMallocPolicy(policy)
    except ValueError:
        raise _native.refusal(AclError.ACL_ERROR_INVALID_PARAM, f"policy = {policy!r}: must be 0, 1 or 2") from None
    try:
        block = np.empty(int(size) + _ALIGNMENT - 1, np.uint8)
    except (MemoryError, ValueError, OverflowError):
        raise MemoryError(f"size = {size}: no memory of that many bytes") from None
    start = -block.ctypes.data % _ALIGNMENT
    return block[start : start + int(size)]


def aclrtFree(devPtr: npt.NDArray[np.uint8] | None) -> None:
    """Give a buffer back. Its memory goes when the last user, a tensor or an executor, is done; None raises 100000."""
    if devPtr is None:
        raise _native.refusal(AclError.ACL_ERROR_INVALID_PARAM, "devPtr = None: must not be null")
    if not isinstance(devPtr, np.ndarray):
        raise TypeError(f"devPtr = {devPtr!r}: must be a buffer from aclrtMalloc, not {type(devPtr).__name__}")


def _bytes_of(argument: str, block: Any) -> npt.NDArray[np.uint8]:
    """Return a flat view of the bytes of a contiguous buffer or array."""
    if block is None:
        raise _native.refusal(AclError.ACL_ERROR_INVALID_PARAM, f"{argument} = None: must not be null")
    if not isinstance(block, np.ndarray):
        try:
            return np.frombuffer(block, np.uint8)
        except (TypeError, ValueError):
            raise TypeError(f"{argument}: must be a contiguous buffer, not {type(block).__name__}") from None
    if not block.flags.c_contiguous:
        raise _native.refusal(AclError.ACL_ERROR_INVALID_PARAM, f"{argument}: must be contiguous; copy it")
    return block.reshape(-1).view(np.uint8)


def aclrtMemcpy(
    dst: Any, destMax: int, src: Any, count: int, kind: aclrtMemcpyKind | int = aclrtMemcpyKind.ACL_MEMCPY_DEFAULT
) -> None:
    """Copy `count` bytes of src to dst, which has room for destMax; a longer copy raises 107000.

    >>> import numpy as np, aclnn_bw
    >>> there = aclnn_bw.aclrtMalloc(8)
    >>> aclnn_bw.aclrtMemcpy(there, 8, np.arange(2, dtype=np.float32), 8, aclnn_bw.ACL_MEMCPY_HOST_TO_DEVICE)
    >>> there.view(np.float32)
    array([0., 1.], dtype=float32)
    """
    target, source = _bytes_of("dst", dst), _bytes_of("src", src)
    _check_int("destMax", destMax)
    _check_int("count", count)
    _check_int("kind", kind)
    try:
        aclrtMemcpyKind(kind)
    except ValueError:
        raise _native.refusal(AclError.ACL_ERROR_INVALID_PARAM, f"kind = {kind!r}: must be 0 to 4") from None
    if not 0 <= count <= destMax:
        raise _native.refusal(
            AclError.ACL_ERROR_RT_PARAM_INVALID, f"count = {count}: must be in [0, destMax = {destMax}]")
    if destMax > target.nbytes:
        raise _native.refusal(
            AclError.ACL_ERROR_RT_PARAM_INVALID, f"destMax = {destMax}: dst has only {target.nbytes} bytes")
    if count > source.nbytes:
        raise _native.refusal(
            AclError.ACL_ERROR_RT_PARAM_INVALID, f"count = {count}: src has only {source.nbytes} bytes")
    if not target.flags.writeable:
        raise _native.refusal(
            AclError.ACL_ERROR_INVALID_PARAM, "dst is read-only: must be writable; aclrtMalloc returns what is")
    target[:count] = source[:count]
