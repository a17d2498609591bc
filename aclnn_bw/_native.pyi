"""Types of the compiled face."""

from collections.abc import Sequence
from contextvars import ContextVar
from typing import Any, Protocol, TypeAlias, TypedDict, final

import numpy as np
import numpy.typing as npt

from aclnn_bw.enums import CubeMathType, aclDataType, aclFormat
from aclnn_bw.status import AclnnError as AclnnError
from aclnn_bw.streams import aclrtStream

class _DLPack(Protocol):
    def __dlpack__(self) -> Any: ...

class _ArrayInterface(Protocol):
    @property
    def __array_interface__(self) -> dict[str, Any]: ...

# Any array on the CPU; bfloat16 arrays have the dtype of ml_dtypes.
_Array: TypeAlias = npt.NDArray[Any] | _DLPack | _ArrayInterface
_Tensor: TypeAlias = aclTensor | _Array
_Int: TypeAlias = int | np.integer[Any]
_Bool: TypeAlias = bool | np.bool
_Ints: TypeAlias = aclIntArray | Sequence[int] | npt.NDArray[np.integer[Any]]
_IntOrInts: TypeAlias = _Int | _Ints
_Shape: TypeAlias = tuple[int, ...] | list[int]
# A buffer: bytearray, memoryview, NumPy array, ... (collections.abc.Buffer needs Python 3.12)
_Memory: TypeAlias = Any

class _BuildInfo(TypedDict):
    isa: str
    isa_available: list[str]
    openmp: bool
    compiler: str

OPERATOR_NAMES: dict[int, str]
ISA_NAMES: dict[str, int]
soc_setting: ContextVar[int | None]
threads_setting: ContextVar[int | None]

def set_process_product(product: int, mask_layout: int) -> None: ...
def current_product() -> tuple[int, int]: ...
def set_process_threads(threads: int, cores: int) -> None: ...
def current_threads() -> int: ...
def enter_forked_child() -> None: ...
def takes_dtype(op: int, product: int, dtype: int) -> bool: ...
def choose_isa() -> None: ...
def build_info() -> _BuildInfo: ...
def refusal(status: int, message: str) -> AclnnError: ...
def aclGetRecentErrMsg() -> str | None: ...
@final
class aclIntArray:
    def __len__(self) -> int: ...

@final
class aclTensor: ...

@final
class aclOpExecutor: ...

@final
class Job:
    def execute(self) -> None: ...

def aclCreateIntArray(value: _Ints | None, size: _Int | None = None) -> aclIntArray: ...
def aclDestroyIntArray(array: aclIntArray | None) -> None: ...
def aclCreateTensor(
    viewDims: _Ints,
    dataType: aclDataType | int,
    strides: _Ints | None = None,
    offset: _Int = 0,
    format: aclFormat | int = ...,
    storageDims: _Ints | None = None,
    tensorData: _Memory | None = None,
) -> aclTensor: ...
def aclDestroyTensor(tensor: aclTensor | None) -> None: ...
def aclSetAclOpExecutorRepeatable(executor: aclOpExecutor | None) -> None: ...
def aclDestroyAclOpExecutor(executor: aclOpExecutor | None) -> None: ...
def aclSetInputTensorAddr(
    executor: aclOpExecutor | None, index: _Int, tensor: _Tensor | None, data: _Memory | _Array
) -> None: ...
def aclSetOutputTensorAddr(
    executor: aclOpExecutor | None, index: _Int, tensor: _Tensor | None, data: _Memory | _Array
) -> None: ...
def aclSetTensorAddr(
    executor: aclOpExecutor | None, index: _Int, tensor: _Tensor | None, data: _Memory | _Array
) -> None: ...
def aclnnAvgPool2dBackwardGetWorkspaceSize(
    gradOutput: _Tensor | None,
    self: _Tensor | None,
    kernelSize: _Ints | None,
    stride: _Ints | None,
    padding: _Ints | None,
    ceilMode: _Bool,
    countIncludePad: _Bool,
    divisorOverride: _Int,
    cubeMathType: CubeMathType | _Int,
    gradInput: _Tensor | None,
) -> tuple[int, aclOpExecutor]: ...
def aclnnAvgPool2dBackward(
    workspace: _Memory | None, workspaceSize: _Int, executor: aclOpExecutor | None, stream: aclrtStream | None = None
) -> None: ...
def avg_pool2d_backward(
    grad_output: _Tensor,
    self: _Tensor | _Shape,
    kernel_size: _IntOrInts,
    stride: _IntOrInts | None = None,
    padding: _IntOrInts = 0,
    ceil_mode: _Bool = False,
    count_include_pad: _Bool = True,
    divisor_override: _Int | None = None,
    *,
    out: Any = None,
) -> npt.NDArray[Any]: ...
