"""DLPack capsules made by hand, whose fields do not go together."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np


class _Device(ctypes.Structure):
    _fields_ = [("type", ctypes.c_int32), ("id", ctypes.c_int32)]


class _DataType(ctypes.Structure):
    _fields_ = [("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16)]


class _Tensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p), ("device", _Device), ("ndim", ctypes.c_int32), ("dtype", _DataType),
        ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]  # fmt: skip


class _Versioned(ctypes.Structure):
    _fields_ = [
        ("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p), ("flags", ctypes.c_uint64), ("tensor", _Tensor),
    ]  # fmt: skip


_new_capsule = ctypes.pythonapi.PyCapsule_New
_new_capsule.restype, _new_capsule.argtypes = ctypes.py_object, (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)


class Forged:
    """An exporter of a float32 tensor (1, 2, 3) on the CPU, but for the fields that are given.

    It has no deleter and must outlive what is made of it.
    """

    def __init__(self, name: bytes = b"dltensor_versioned", major: int = 1, **fields: Any) -> None:
        self._array = np.zeros(6, np.float32)
        self._shape = (ctypes.c_int64 * 3)(*fields.pop("shape", (1, 2, 3)))  # (1, 2, 2) leaves gaps
        self._strides = (ctypes.c_int64 * 3)(6, 3, 1)
        self._name = name
        self._managed = _Versioned(major=major)
        tensor = self._managed.tensor
        tensor.data, tensor.device = self._array.ctypes.data, _Device(fields.pop("device", 1), 0)
        tensor.ndim, tensor.dtype = fields.pop("ndim", 3), _DataType(2, 32, 1)
        tensor.shape, tensor.strides = self._shape, self._strides
        for field, value in fields.items():
            setattr(tensor, field, value)

    def __repr__(self) -> str:
        tensor = self._managed.tensor
        return f"Forged({self._name!r}, major={self._managed.major}, shape={[*self._shape]}, ndim={tensor.ndim})"

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0

    def __dlpack__(self, **_: Any) -> Any:
        return _new_capsule(ctypes.addressof(self._managed), self._name, None)


INVALID = (
    Forged(major=2), Forged(device=2), Forged(ndim=-1), Forged(ndim=-(2**31)), Forged(shape=(1, -2, 3)),
    Forged(shape=(1, 2, -(2**63))), Forged(data=None), Forged(strides=None, shape=(2**40, 2**40, 1)),
)  # fmt: skip
_null = Forged()
_null._managed.tensor.shape = ctypes.POINTER(ctypes.c_int64)()
INVALID += (_null,)
NO_CAPSULE = (Forged(b"used_dltensor_versioned"), Forged(b"tensor"))
ENDLESS = Forged(ndim=2**31 - 1)  # of which not one size may be read
