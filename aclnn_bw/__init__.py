"""aclnn_bw: the two-phase aclnn interface of neural-network gradients, on the CPU.

Each operator has a phase 1, aclnnXxxGetWorkspaceSize, which checks the arguments and returns (workspaceSize,
executor), and a phase 2, aclnnXxx, which runs the executor; and a one-call function for those who want the result
alone: MaxPool2dWithMaskBackward (and the forward that makes its mask),
UpsampleNearestExact1dBackward, AvgPool2dBackward, Im2colBackward, ReplicationPad2dBackward.
"""

import importlib
import typing

try:
    from aclnn_bw import _native as _native
except ImportError as _missing:  # of _native itself; what fails within it has another name, or none
    if _missing.name != "aclnn_bw":
        raise
    raise ImportError(
        "aclnn_bw is imported from a source folder that is not compiled: install it (pip install .) and leave this "
        "folder, or install it in place (pip install -e .)"
    ) from None

from aclnn_bw._native import *  # noqa: F403  tensors, arrays, executors, and the functions of every operator
from aclnn_bw._version import __version__
from aclnn_bw.config import show_config
from aclnn_bw.enums import CubeMathType, aclDataType, aclFormat, aclrtMemcpyKind, aclrtMemMallocPolicy
from aclnn_bw.explanation import Explanation
from aclnn_bw.mask import indices_to_mask, mask_shape, mask_to_indices
from aclnn_bw.products import SocName, aclrtGetSocName, aclrtSetSocName, soc
from aclnn_bw.runtime import (
    aclFinalize,
    aclInit,
    aclrtFree,
    aclrtMalloc,
    aclrtMemcpy,
    aclrtResetDevice,
    aclrtSetDevice,
)
from aclnn_bw.status import AclError, AclnnError, AclnnStatus
from aclnn_bw.streams import (
    aclrtCreateStream,
    aclrtDestroyStream,
    aclrtStream,
    aclrtSynchronizeDevice,
    aclrtSynchronizeStream,
)
from aclnn_bw.threads import get_num_threads, num_threads, set_num_threads

# The members of the enums are names of the module, as they are in C; spelled out, so that type checkers see them.
ACL_DT_UNDEFINED = aclDataType.ACL_DT_UNDEFINED
ACL_FLOAT = aclDataType.ACL_FLOAT
ACL_FLOAT16 = aclDataType.ACL_FLOAT16
ACL_INT8 = aclDataType.ACL_INT8
ACL_INT32 = aclDataType.ACL_INT32
ACL_UINT8 = aclDataType.ACL_UINT8
ACL_INT16 = aclDataType.ACL_INT16
ACL_UINT16 = aclDataType.ACL_UINT16
ACL_UINT32 = aclDataType.ACL_UINT32
ACL_INT64 = aclDataType.ACL_INT64
ACL_UINT64 = aclDataType.ACL_UINT64
ACL_DOUBLE = aclDataType.ACL_DOUBLE
ACL_BOOL = aclDataType.ACL_BOOL
ACL_STRING = aclDataType.ACL_STRING
ACL_COMPLEX64 = aclDataType.ACL_COMPLEX64
ACL_COMPLEX128 = aclDataType.ACL_COMPLEX128
ACL_BF16 = aclDataType.ACL_BF16
ACL_INT4 = aclDataType.ACL_INT4
ACL_UINT1 = aclDataType.ACL_UINT1
ACL_COMPLEX32 = aclDataType.ACL_COMPLEX32
ACL_HIFLOAT8 = aclDataType.ACL_HIFLOAT8
ACL_FLOAT8_E5M2 = aclDataType.ACL_FLOAT8_E5M2
ACL_FLOAT8_E4M3FN = aclDataType.ACL_FLOAT8_E4M3FN
ACL_FLOAT8_E8M0 = aclDataType.ACL_FLOAT8_E8M0
ACL_FLOAT4_E2M1 = aclDataType.ACL_FLOAT4_E2M1
ACL_FORMAT_UNDEFINED = aclFormat.ACL_FORMAT_UNDEFINED
ACL_FORMAT_NCHW = aclFormat.ACL_FORMAT_NCHW
ACL_FORMAT_NHWC = aclFormat.ACL_FORMAT_NHWC
ACL_FORMAT_ND = aclFormat.ACL_FORMAT_ND
ACL_FORMAT_NC1HWC0 = aclFormat.ACL_FORMAT_NC1HWC0
ACL_FORMAT_FRACTAL_Z = aclFormat.ACL_FORMAT_FRACTAL_Z
ACL_FORMAT_NC1HWC0_C04 = aclFormat.ACL_FORMAT_NC1HWC0_C04
ACL_FORMAT_HWCN = aclFormat.ACL_FORMAT_HWCN
ACL_FORMAT_NDHWC = aclFormat.ACL_FORMAT_NDHWC
ACL_FORMAT_FRACTAL_NZ = aclFormat.ACL_FORMAT_FRACTAL_NZ
ACL_FORMAT_NCDHW = aclFormat.ACL_FORMAT_NCDHW
ACL_FORMAT_NDC1HWC0 = aclFormat.ACL_FORMAT_NDC1HWC0
ACL_FRACTAL_Z_3D = aclFormat.ACL_FRACTAL_Z_3D
ACL_FORMAT_NC = aclFormat.ACL_FORMAT_NC
ACL_FORMAT_NCL = aclFormat.ACL_FORMAT_NCL
KEEP_DTYPE = CubeMathType.KEEP_DTYPE
ALLOW_FP32_DOWN_PRECISION = CubeMathType.ALLOW_FP32_DOWN_PRECISION
USE_FP16 = CubeMathType.USE_FP16
USE_HF32 = CubeMathType.USE_HF32
ACL_MEM_MALLOC_HUGE_FIRST = aclrtMemMallocPolicy.ACL_MEM_MALLOC_HUGE_FIRST
ACL_MEM_MALLOC_HUGE_ONLY = aclrtMemMallocPolicy.ACL_MEM_MALLOC_HUGE_ONLY
ACL_MEM_MALLOC_NORMAL_ONLY = aclrtMemMallocPolicy.ACL_MEM_MALLOC_NORMAL_ONLY
ACL_MEMCPY_HOST_TO_HOST = aclrtMemcpyKind.ACL_MEMCPY_HOST_TO_HOST
ACL_MEMCPY_HOST_TO_DEVICE = aclrtMemcpyKind.ACL_MEMCPY_HOST_TO_DEVICE
ACL_MEMCPY_DEVICE_TO_HOST = aclrtMemcpyKind.ACL_MEMCPY_DEVICE_TO_HOST
ACL_MEMCPY_DEVICE_TO_DEVICE = aclrtMemcpyKind.ACL_MEMCPY_DEVICE_TO_DEVICE
ACL_MEMCPY_DEFAULT = aclrtMemcpyKind.ACL_MEMCPY_DEFAULT
ACLNN_SUCCESS = AclnnStatus.ACLNN_SUCCESS
ACLNN_ERR_PARAM_NULLPTR = AclnnStatus.ACLNN_ERR_PARAM_NULLPTR
ACLNN_ERR_PARAM_INVALID = AclnnStatus.ACLNN_ERR_PARAM_INVALID
ACLNN_ERR_RUNTIME_ERROR = AclnnStatus.ACLNN_ERR_RUNTIME_ERROR
ACLNN_ERR_INNER = AclnnStatus.ACLNN_ERR_INNER
ACLNN_ERR_INNER_INFERSHAPE_ERROR = AclnnStatus.ACLNN_ERR_INNER_INFERSHAPE_ERROR
ACLNN_ERR_INNER_TILING_ERROR = AclnnStatus.ACLNN_ERR_INNER_TILING_ERROR
ACLNN_ERR_INNER_FIND_KERNEL_ERROR = AclnnStatus.ACLNN_ERR_INNER_FIND_KERNEL_ERROR
ACLNN_ERR_INNER_CREATE_EXECUTOR = AclnnStatus.ACLNN_ERR_INNER_CREATE_EXECUTOR
ACLNN_ERR_INNER_NOT_TRANS_EXECUTOR = AclnnStatus.ACLNN_ERR_INNER_NOT_TRANS_EXECUTOR
ACLNN_ERR_INNER_NULLPTR = AclnnStatus.ACLNN_ERR_INNER_NULLPTR
ACL_SUCCESS = AclError.ACL_SUCCESS
ACL_ERROR_INVALID_PARAM = AclError.ACL_ERROR_INVALID_PARAM
ACL_ERROR_REPEAT_INITIALIZE = AclError.ACL_ERROR_REPEAT_INITIALIZE
ACL_ERROR_REPEAT_FINALIZE = AclError.ACL_ERROR_REPEAT_FINALIZE
ACL_ERROR_RT_PARAM_INVALID = AclError.ACL_ERROR_RT_PARAM_INVALID
ACL_ERROR_RT_INVALID_DEVICEID = AclError.ACL_ERROR_RT_INVALID_DEVICEID
ACL_ERROR_RT_CONTEXT_NULL = AclError.ACL_ERROR_RT_CONTEXT_NULL
ACL_ERROR_BAD_ALLOC = AclError.ACL_ERROR_BAD_ALLOC

__all__ = [
    "__version__",
    "AclError",
    "AclnnError",
    "AclnnStatus",
    "CubeMathType",
    "Explanation",
    "SocName",
    "aclDataType",
    "aclFinalize",
    "aclFormat",
    "aclInit",
    "aclrtCreateStream",
    "aclrtDestroyStream",
    "aclrtFree",
    "aclrtGetSocName",
    "aclrtMalloc",
    "aclrtMemMallocPolicy",
    "aclrtMemcpy",
    "aclrtMemcpyKind",
    "aclrtResetDevice",
    "aclrtSetDevice",
    "aclrtSetSocName",
    "aclrtStream",
    "aclrtSynchronizeDevice",
    "aclrtSynchronizeStream",
    "get_num_threads",
    "indices_to_mask",
    "mask_shape",
    "mask_to_indices",
    "num_threads",
    "set_num_threads",
    "show_config",
    "soc",
    "ACL_DT_UNDEFINED",
    "ACL_FLOAT",
    "ACL_FLOAT16",
    "ACL_INT8",
    "ACL_INT32",
    "ACL_UINT8",
    "ACL_INT16",
    "ACL_UINT16",
    "ACL_UINT32",
    "ACL_INT64",
    "ACL_UINT64",
    "ACL_DOUBLE",
    "ACL_BOOL",
    "ACL_STRING",
    "ACL_COMPLEX64",
    "ACL_COMPLEX128",
    "ACL_BF16",
    "ACL_INT4",
    "ACL_UINT1",
    "ACL_COMPLEX32",
    "ACL_HIFLOAT8",
    "ACL_FLOAT8_E5M2",
    "ACL_FLOAT8_E4M3FN",
    "ACL_FLOAT8_E8M0",
    "ACL_FLOAT4_E2M1",
    "ACL_FORMAT_UNDEFINED",
    "ACL_FORMAT_NCHW",
    "ACL_FORMAT_NHWC",
    "ACL_FORMAT_ND",
    "ACL_FORMAT_NC1HWC0",
    "ACL_FORMAT_FRACTAL_Z",
    "ACL_FORMAT_NC1HWC0_C04",
    "ACL_FORMAT_HWCN",
    "ACL_FORMAT_NDHWC",
    "ACL_FORMAT_FRACTAL_NZ",
    "ACL_FORMAT_NCDHW",
    "ACL_FORMAT_NDC1HWC0",
    "ACL_FRACTAL_Z_3D",
    "ACL_FORMAT_NC",
    "ACL_FORMAT_NCL",
    "KEEP_DTYPE",
    "ALLOW_FP32_DOWN_PRECISION",
    "USE_FP16",
    "USE_HF32",
    "ACL_MEM_MALLOC_HUGE_FIRST",
    "ACL_MEM_MALLOC_HUGE_ONLY",
    "ACL_MEM_MALLOC_NORMAL_ONLY",
    "ACL_MEMCPY_HOST_TO_HOST",
    "ACL_MEMCPY_HOST_TO_DEVICE",
    "ACL_MEMCPY_DEVICE_TO_HOST",
    "ACL_MEMCPY_DEVICE_TO_DEVICE",
    "ACL_MEMCPY_DEFAULT",
    "ACLNN_SUCCESS",
    "ACLNN_ERR_PARAM_NULLPTR",
    "ACLNN_ERR_PARAM_INVALID",
    "ACLNN_ERR_RUNTIME_ERROR",
    "ACLNN_ERR_INNER",
    "ACLNN_ERR_INNER_INFERSHAPE_ERROR",
    "ACLNN_ERR_INNER_TILING_ERROR",
    "ACLNN_ERR_INNER_FIND_KERNEL_ERROR",
    "ACLNN_ERR_INNER_CREATE_EXECUTOR",
    "ACLNN_ERR_INNER_NOT_TRANS_EXECUTOR",
    "ACLNN_ERR_INNER_NULLPTR",
    "ACL_SUCCESS",
    "ACL_ERROR_INVALID_PARAM",
    "ACL_ERROR_REPEAT_INITIALIZE",
    "ACL_ERROR_REPEAT_FINALIZE",
    "ACL_ERROR_RT_PARAM_INVALID",
    "ACL_ERROR_RT_INVALID_DEVICEID",
    "ACL_ERROR_RT_CONTEXT_NULL",
    "ACL_ERROR_BAD_ALLOC",
]
__all__ += _native.__all__


if not typing.TYPE_CHECKING:  # or every name would be one of the module

    def __getattr__(name):
        """Import aclnn_bw.torch where it is used: nothing else here needs PyTorch."""
        if name == "torch":
            return importlib.import_module("aclnn_bw.torch")
        raise AttributeError(f"module 'aclnn_bw' has no attribute {name!r}")


def __dir__() -> list[str]:
    """List what is public, for tab completion: no modules, and nothing of how the package is made."""
    return sorted({*__all__, *(name for name in globals() if name.startswith("__") and name != "__dir__")})
