"""Types of the compiled face."""

from collections.abc import Sequence
from contextvars import ContextVar
from types import TracebackType
from typing import Any, Literal, Protocol, TypeAlias, TypedDict, TypeVar, final, overload

import numpy as np
import numpy.typing as npt

from aclnn_bw.enums import CubeMathType, aclDataType, aclFormat
from aclnn_bw.explanation import Explanation
from aclnn_bw.status import AclnnError as AclnnError
from aclnn_bw.streams import aclrtStream

class _DLPack(Protocol):
    def __dlpack__(self) -> Any: ...

class _ArrayInterface(Protocol):
    @property
    def __array_interface__(self) -> dict[str, Any]: ...

# An object with __array_interface__ that is no NumPy array: those cannot be hashed. Without this difference a type
# checker would take an array for such an object, whose result has any dtype, where it should see that dtypes differ.
class _OtherArray(_ArrayInterface, Protocol):
    def __hash__(self) -> int: ...

# Any array on the CPU; bfloat16 arrays have the dtype of ml_dtypes.
_Array: TypeAlias = npt.NDArray[Any] | _DLPack | _ArrayInterface
_Tensor: TypeAlias = aclTensor | _Array
_Int: TypeAlias = int | np.integer[Any]
_Bool: TypeAlias = bool | np.bool
_Float: TypeAlias = float | np.floating[Any] | np.integer[Any]
_Ints: TypeAlias = aclIntArray | Sequence[int] | npt.NDArray[np.integer[Any]]
_IntOrInts: TypeAlias = _Int | _Ints
_Shape: TypeAlias = tuple[int, ...] | list[int]
_Layout: TypeAlias = Literal["bitmask", "argmax"]
# A buffer: bytearray, memoryview, NumPy array, ... (collections.abc.Buffer needs Python 3.12)
_Memory: TypeAlias = Any

# A one-call function answers with an array of the kind that it is given first: NumPy's of the same dtype, a tensor of
# PyTorch, an array of JAX; and with `out` itself where that is given.
_Dtype = TypeVar("_Dtype", bound=np.generic)
_Exporter = TypeVar("_Exporter", bound=_DLPack)
_Out = TypeVar("_Out", bound=_Tensor)
_Out2 = TypeVar("_Out2", bound=_Tensor)
_Plain: TypeAlias = aclTensor | _OtherArray

class _BuildInfo(TypedDict):
    isa: str
    isa_available: list[str]
    openmp: bool
    compiler: str

ISA_NAMES: dict[str, int]
soc_setting: ContextVar[int | None]
threads_setting: ContextVar[int | None]

def set_process_product(product: int, mask_layout: int) -> None: ...
def product_of(name: str) -> int: ...
def current_product() -> tuple[int, int]: ...
def set_process_threads(threads: int, cores: int) -> None: ...
def current_threads() -> int: ...
def enter_forked_child() -> None: ...
def choose_isa() -> None: ...
def stream_from(nbytes: int, sums: int) -> tuple[int, int]: ...
def build_info() -> _BuildInfo: ...
def refusal(status: int, message: str) -> AclnnError: ...
def aclGetRecentErrMsg() -> str | None: ...
@final
class aclIntArray:
    def __len__(self) -> int: ...

@final
class aclTensor: ...

@final
class aclOpExecutor:
    def __enter__(self) -> aclOpExecutor: ...
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None: ...
    def explain(self) -> Explanation: ...

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
def in_library_of(first: Any, array: Any) -> Any: ...
def records() -> list[dict[str, Any]]: ...
def result_shapes(op: int, given: tuple[Any, ...]) -> list[tuple[tuple[int, ...], np.dtype[Any]]]: ...
def array_of(value: Any, name: str) -> npt.NDArray[Any]: ...
def convert(
    source: npt.NDArray[Any], to: npt.NDArray[Any], to_mask: bool, argmax: bool, geometry: tuple[Any, ...]
) -> None: ...
def max_pool2d_geometry(
    input_shape: _Shape,
    kernel_size: _IntOrInts,
    stride: _IntOrInts | None,
    padding: _IntOrInts,
    dilation: _IntOrInts,
    ceil_mode: _Bool,
) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, int], tuple[int, int], tuple[int, int]]: ...

# ---- of the operators' records, by tests/stubs.py: nobody edits what follows

__all__ = [
    "aclCreateIntArray", "aclCreateTensor", "aclDestroyAclOpExecutor", "aclDestroyIntArray", "aclDestroyTensor",
    "aclGetRecentErrMsg", "aclIntArray", "aclOpExecutor", "aclSetAclOpExecutorRepeatable", "aclSetInputTensorAddr",
    "aclSetOutputTensorAddr", "aclSetTensorAddr", "aclTensor", "aclnnMaxPool2dWithMaskBackward",
    "aclnnMaxPool2dWithMaskBackwardGetWorkspaceSize", "max_pool2d_with_mask_backward", "aclnnMaxPool2dWithMask",
    "aclnnMaxPool2dWithMaskGetWorkspaceSize", "max_pool2d_with_mask", "aclnnUpsampleNearestExact1dBackward",
    "aclnnUpsampleNearestExact1dBackwardGetWorkspaceSize", "upsample_nearest_exact1d_backward",
    "aclnnAvgPool2dBackward", "aclnnAvgPool2dBackwardGetWorkspaceSize", "avg_pool2d_backward", "aclnnIm2colBackward",
    "aclnnIm2colBackwardGetWorkspaceSize", "im2col_backward", "aclnnReplicationPad2dBackward",
    "aclnnReplicationPad2dBackwardGetWorkspaceSize", "replication_pad2d_backward", "aclnnReplicationPad2d",
    "aclnnReplicationPad2dGetWorkspaceSize", "replication_pad2d", "aclnnUpsampleNearestExact1d",
    "aclnnUpsampleNearestExact1dGetWorkspaceSize", "upsample_nearest_exact1d", "aclnnIm2col",
    "aclnnIm2colGetWorkspaceSize", "im2col", "aclnnAvgPool2d", "aclnnAvgPool2dGetWorkspaceSize", "avg_pool2d",
    "aclnnMaxPool2dWithIndices", "aclnnMaxPool2dWithIndicesGetWorkspaceSize", "max_pool2d_with_indices",
    "aclnnMaxPool2dWithIndicesBackward", "aclnnMaxPool2dWithIndicesBackwardGetWorkspaceSize",
    "max_pool2d_with_indices_backward",
]

def aclnnMaxPool2dWithMaskBackwardGetWorkspaceSize(
    gradOutput: _Tensor | None, self: _Tensor | None, indices: _Tensor | None, kernelSize: _Ints | None,
    stride: _Ints | None, padding: _Ints | None, dilation: _Ints | None, ceilMode: _Bool, gradInput: _Tensor | None
) -> tuple[int, aclOpExecutor]: ...
def aclnnMaxPool2dWithMaskBackward(
    workspace: _Memory | None, workspaceSize: _Int, executor: aclOpExecutor | None, stream: aclrtStream | None = None
) -> None: ...
@overload
def max_pool2d_with_mask_backward(
    grad_output: _Tensor, self: _Tensor | _Shape, mask: _Tensor, kernel_size: _IntOrInts,
    stride: _IntOrInts | None = None, padding: _IntOrInts = 0, dilation: _IntOrInts = 1, ceil_mode: _Bool = False, *,
    mask_layout: _Layout = "bitmask", out: _Out
) -> _Out: ...
@overload
def max_pool2d_with_mask_backward(
    grad_output: npt.NDArray[_Dtype], self: _Tensor | _Shape, mask: _Tensor, kernel_size: _IntOrInts,
    stride: _IntOrInts | None = None, padding: _IntOrInts = 0, dilation: _IntOrInts = 1, ceil_mode: _Bool = False, *,
    mask_layout: _Layout = "bitmask", out: None = None
) -> npt.NDArray[_Dtype]: ...
@overload
def max_pool2d_with_mask_backward(
    grad_output: _Exporter, self: _Tensor | _Shape, mask: _Tensor, kernel_size: _IntOrInts,
    stride: _IntOrInts | None = None, padding: _IntOrInts = 0, dilation: _IntOrInts = 1, ceil_mode: _Bool = False, *,
    mask_layout: _Layout = "bitmask", out: None = None
) -> _Exporter: ...
@overload
def max_pool2d_with_mask_backward(
    grad_output: _Plain, self: _Tensor | _Shape, mask: _Tensor, kernel_size: _IntOrInts,
    stride: _IntOrInts | None = None, padding: _IntOrInts = 0, dilation: _IntOrInts = 1, ceil_mode: _Bool = False, *,
    mask_layout: _Layout = "bitmask", out: None = None
) -> npt.NDArray[Any]: ...
def aclnnMaxPool2dWithMaskGetWorkspaceSize(
    self: _Tensor | None, kernelSize: _Ints | None, stride: _Ints | None, padding: _Ints | None, dilation: _Ints | None,
    ceilMode: _Bool, out: _Tensor | None, indices: _Tensor | None
) -> tuple[int, aclOpExecutor]: ...
def aclnnMaxPool2dWithMask(
    workspace: _Memory | None, workspaceSize: _Int, executor: aclOpExecutor | None, stream: aclrtStream | None = None
) -> None: ...
@overload
def max_pool2d_with_mask(
    self: _Tensor, kernel_size: _IntOrInts, stride: _IntOrInts | None = None, padding: _IntOrInts = 0,
    dilation: _IntOrInts = 1, ceil_mode: _Bool = False, *, mask_layout: _Layout = "bitmask", out: _Out, mask_out: _Out2
) -> tuple[_Out, _Out2]: ...
@overload
def max_pool2d_with_mask(
    self: _Tensor, kernel_size: _IntOrInts, stride: _IntOrInts | None = None, padding: _IntOrInts = 0,
    dilation: _IntOrInts = 1, ceil_mode: _Bool = False, *, mask_layout: _Layout = "bitmask", out: _Out,
    mask_out: None = None
) -> tuple[_Out, Any]: ...
@overload
def max_pool2d_with_mask(
    self: _Tensor, kernel_size: _IntOrInts, stride: _IntOrInts | None = None, padding: _IntOrInts = 0,
    dilation: _IntOrInts = 1, ceil_mode: _Bool = False, *, mask_layout: _Layout = "bitmask", out: None = None,
    mask_out: _Out2
) -> tuple[Any, _Out2]: ...
@overload
def max_pool2d_with_mask(
    self: npt.NDArray[_Dtype], kernel_size: _IntOrInts, stride: _IntOrInts | None = None, padding: _IntOrInts = 0,
    dilation: _IntOrInts = 1, ceil_mode: _Bool = False, *, mask_layout: _Layout = "bitmask", out: None = None,
    mask_out: None = None
) -> tuple[npt.NDArray[_Dtype], npt.NDArray[np.int8]]: ...
@overload
def max_pool2d_with_mask(
    self: _Exporter, kernel_size: _IntOrInts, stride: _IntOrInts | None = None, padding: _IntOrInts = 0,
    dilation: _IntOrInts = 1, ceil_mode: _Bool = False, *, mask_layout: _Layout = "bitmask", out: None = None,
    mask_out: None = None
) -> tuple[_Exporter, _Exporter]: ...
@overload
def max_pool2d_with_mask(
    self: _Plain, kernel_size: _IntOrInts, stride: _IntOrInts | None = None, padding: _IntOrInts = 0,
    dilation: _IntOrInts = 1, ceil_mode: _Bool = False, *, mask_layout: _Layout = "bitmask", out: None = None,
    mask_out: None = None
) -> tuple[npt.NDArray[Any], npt.NDArray[np.int8]]: ...
def aclnnUpsampleNearestExact1dBackwardGetWorkspaceSize(
    gradOutput: _Tensor | None, outputSize: _Ints | None, inputSize: _Ints | None, scales: _Float, out: _Tensor | None
) -> tuple[int, aclOpExecutor]: ...
def aclnnUpsampleNearestExact1dBackward(
    workspace: _Memory | None, workspaceSize: _Int, executor: aclOpExecutor | None, stream: aclrtStream | None = None
) -> None: ...
@overload
def upsample_nearest_exact1d_backward(
    grad_output: _Tensor, output_size: _IntOrInts, input_size: _Ints, scales: _Float | None = None, *, out: _Out
) -> _Out: ...
@overload
def upsample_nearest_exact1d_backward(
    grad_output: npt.NDArray[_Dtype], output_size: _IntOrInts, input_size: _Ints, scales: _Float | None = None, *,
    out: None = None
) -> npt.NDArray[_Dtype]: ...
@overload
def upsample_nearest_exact1d_backward(
    grad_output: _Exporter, output_size: _IntOrInts, input_size: _Ints, scales: _Float | None = None, *,
    out: None = None
) -> _Exporter: ...
@overload
def upsample_nearest_exact1d_backward(
    grad_output: _Plain, output_size: _IntOrInts, input_size: _Ints, scales: _Float | None = None, *, out: None = None
) -> npt.NDArray[Any]: ...
def aclnnAvgPool2dBackwardGetWorkspaceSize(
    gradOutput: _Tensor | None, self: _Tensor | None, kernelSize: _Ints | None, stride: _Ints | None,
    padding: _Ints | None, ceilMode: _Bool, countIncludePad: _Bool, divisorOverride: _Int,
    cubeMathType: CubeMathType | _Int, gradInput: _Tensor | None
) -> tuple[int, aclOpExecutor]: ...
def aclnnAvgPool2dBackward(
    workspace: _Memory | None, workspaceSize: _Int, executor: aclOpExecutor | None, stream: aclrtStream | None = None
) -> None: ...
@overload
def avg_pool2d_backward(
    grad_output: _Tensor, self: _Tensor | _Shape, kernel_size: _IntOrInts, stride: _IntOrInts | None = None,
    padding: _IntOrInts = 0, ceil_mode: _Bool = False, count_include_pad: _Bool = True,
    divisor_override: _Int | None = None, *, out: _Out
) -> _Out: ...
@overload
def avg_pool2d_backward(
    grad_output: npt.NDArray[_Dtype], self: _Tensor | _Shape, kernel_size: _IntOrInts, stride: _IntOrInts | None = None,
    padding: _IntOrInts = 0, ceil_mode: _Bool = False, count_include_pad: _Bool = True,
    divisor_override: _Int | None = None, *, out: None = None
) -> npt.NDArray[_Dtype]: ...
@overload
def avg_pool2d_backward(
    grad_output: _Exporter, self: _Tensor | _Shape, kernel_size: _IntOrInts, stride: _IntOrInts | None = None,
    padding: _IntOrInts = 0, ceil_mode: _Bool = False, count_include_pad: _Bool = True,
    divisor_override: _Int | None = None, *, out: None = None
) -> _Exporter: ...
@overload
def avg_pool2d_backward(
    grad_output: _Plain, self: _Tensor | _Shape, kernel_size: _IntOrInts, stride: _IntOrInts | None = None,
    padding: _IntOrInts = 0, ceil_mode: _Bool = False, count_include_pad: _Bool = True,
    divisor_override: _Int | None = None, *, out: None = None
) -> npt.NDArray[Any]: ...
def aclnnIm2colBackwardGetWorkspaceSize(
    gradOutput: _Tensor | None, inputSize: _Ints | None, kernelSize: _Ints | None, dilation: _Ints | None,
    padding: _Ints | None, stride: _Ints | None, out: _Tensor | None
) -> tuple[int, aclOpExecutor]: ...
def aclnnIm2colBackward(
    workspace: _Memory | None, workspaceSize: _Int, executor: aclOpExecutor | None, stream: aclrtStream | None = None
) -> None: ...
@overload
def im2col_backward(
    grad_output: _Tensor, input_size: _IntOrInts, kernel_size: _IntOrInts, dilation: _IntOrInts = 1,
    padding: _IntOrInts = 0, stride: _IntOrInts = 1, *, out: _Out
) -> _Out: ...
@overload
def im2col_backward(
    grad_output: npt.NDArray[_Dtype], input_size: _IntOrInts, kernel_size: _IntOrInts, dilation: _IntOrInts = 1,
    padding: _IntOrInts = 0, stride: _IntOrInts = 1, *, out: None = None
) -> npt.NDArray[_Dtype]: ...
@overload
def im2col_backward(
    grad_output: _Exporter, input_size: _IntOrInts, kernel_size: _IntOrInts, dilation: _IntOrInts = 1,
    padding: _IntOrInts = 0, stride: _IntOrInts = 1, *, out: None = None
) -> _Exporter: ...
@overload
def im2col_backward(
    grad_output: _Plain, input_size: _IntOrInts, kernel_size: _IntOrInts, dilation: _IntOrInts = 1,
    padding: _IntOrInts = 0, stride: _IntOrInts = 1, *, out: None = None
) -> npt.NDArray[Any]: ...
def aclnnReplicationPad2dBackwardGetWorkspaceSize(
    gradOutput: _Tensor | None, self: _Tensor | None, padding: _Ints | None, gradInput: _Tensor | None
) -> tuple[int, aclOpExecutor]: ...
def aclnnReplicationPad2dBackward(
    workspace: _Memory | None, workspaceSize: _Int, executor: aclOpExecutor | None, stream: aclrtStream | None = None
) -> None: ...
@overload
def replication_pad2d_backward(
    grad_output: _Tensor, self: _Tensor | _Shape, padding: _IntOrInts, *, out: _Out
) -> _Out: ...
@overload
def replication_pad2d_backward(
    grad_output: npt.NDArray[_Dtype], self: _Tensor | _Shape, padding: _IntOrInts, *, out: None = None
) -> npt.NDArray[_Dtype]: ...
@overload
def replication_pad2d_backward(
    grad_output: _Exporter, self: _Tensor | _Shape, padding: _IntOrInts, *, out: None = None
) -> _Exporter: ...
@overload
def replication_pad2d_backward(
    grad_output: _Plain, self: _Tensor | _Shape, padding: _IntOrInts, *, out: None = None
) -> npt.NDArray[Any]: ...
def aclnnReplicationPad2dGetWorkspaceSize(
    self: _Tensor | None, padding: _Ints | None, out: _Tensor | None
) -> tuple[int, aclOpExecutor]: ...
def aclnnReplicationPad2d(
    workspace: _Memory | None, workspaceSize: _Int, executor: aclOpExecutor | None, stream: aclrtStream | None = None
) -> None: ...
@overload
def replication_pad2d(self: _Tensor, padding: _IntOrInts, *, out: _Out) -> _Out: ...
@overload
def replication_pad2d(self: npt.NDArray[_Dtype], padding: _IntOrInts, *, out: None = None) -> npt.NDArray[_Dtype]: ...
@overload
def replication_pad2d(self: _Exporter, padding: _IntOrInts, *, out: None = None) -> _Exporter: ...
@overload
def replication_pad2d(self: _Plain, padding: _IntOrInts, *, out: None = None) -> npt.NDArray[Any]: ...
def aclnnUpsampleNearestExact1dGetWorkspaceSize(
    self: _Tensor | None, outputSize: _Ints | None, scales: _Float, out: _Tensor | None
) -> tuple[int, aclOpExecutor]: ...
def aclnnUpsampleNearestExact1d(
    workspace: _Memory | None, workspaceSize: _Int, executor: aclOpExecutor | None, stream: aclrtStream | None = None
) -> None: ...
@overload
def upsample_nearest_exact1d(
    self: _Tensor, output_size: _IntOrInts, scales: _Float | None = None, *, out: _Out
) -> _Out: ...
@overload
def upsample_nearest_exact1d(
    self: npt.NDArray[_Dtype], output_size: _IntOrInts, scales: _Float | None = None, *, out: None = None
) -> npt.NDArray[_Dtype]: ...
@overload
def upsample_nearest_exact1d(
    self: _Exporter, output_size: _IntOrInts, scales: _Float | None = None, *, out: None = None
) -> _Exporter: ...
@overload
def upsample_nearest_exact1d(
    self: _Plain, output_size: _IntOrInts, scales: _Float | None = None, *, out: None = None
) -> npt.NDArray[Any]: ...
def aclnnIm2colGetWorkspaceSize(
    self: _Tensor | None, kernelSize: _Ints | None, dilation: _Ints | None, padding: _Ints | None, stride: _Ints | None,
    out: _Tensor | None
) -> tuple[int, aclOpExecutor]: ...
def aclnnIm2col(
    workspace: _Memory | None, workspaceSize: _Int, executor: aclOpExecutor | None, stream: aclrtStream | None = None
) -> None: ...
@overload
def im2col(
    self: _Tensor, kernel_size: _IntOrInts, dilation: _IntOrInts = 1, padding: _IntOrInts = 0, stride: _IntOrInts = 1,
    *, out: _Out
) -> _Out: ...
@overload
def im2col(
    self: npt.NDArray[_Dtype], kernel_size: _IntOrInts, dilation: _IntOrInts = 1, padding: _IntOrInts = 0,
    stride: _IntOrInts = 1, *, out: None = None
) -> npt.NDArray[_Dtype]: ...
@overload
def im2col(
    self: _Exporter, kernel_size: _IntOrInts, dilation: _IntOrInts = 1, padding: _IntOrInts = 0, stride: _IntOrInts = 1,
    *, out: None = None
) -> _Exporter: ...
@overload
def im2col(
    self: _Plain, kernel_size: _IntOrInts, dilation: _IntOrInts = 1, padding: _IntOrInts = 0, stride: _IntOrInts = 1, *,
    out: None = None
) -> npt.NDArray[Any]: ...
def aclnnAvgPool2dGetWorkspaceSize(
    self: _Tensor | None, kernelSize: _Ints | None, strides: _Ints | None, paddings: _Ints | None, ceilMode: _Bool,
    countIncludePad: _Bool, divisorOverride: _Int, cubeMathType: CubeMathType | _Int, out: _Tensor | None
) -> tuple[int, aclOpExecutor]: ...
def aclnnAvgPool2d(
    workspace: _Memory | None, workspaceSize: _Int, executor: aclOpExecutor | None, stream: aclrtStream | None = None
) -> None: ...
@overload
def avg_pool2d(
    self: _Tensor, kernel_size: _IntOrInts, stride: _IntOrInts | None = None, padding: _IntOrInts = 0,
    ceil_mode: _Bool = False, count_include_pad: _Bool = True, divisor_override: _Int | None = None, *, out: _Out
) -> _Out: ...
@overload
def avg_pool2d(
    self: npt.NDArray[_Dtype], kernel_size: _IntOrInts, stride: _IntOrInts | None = None, padding: _IntOrInts = 0,
    ceil_mode: _Bool = False, count_include_pad: _Bool = True, divisor_override: _Int | None = None, *,
    out: None = None
) -> npt.NDArray[_Dtype]: ...
@overload
def avg_pool2d(
    self: _Exporter, kernel_size: _IntOrInts, stride: _IntOrInts | None = None, padding: _IntOrInts = 0,
    ceil_mode: _Bool = False, count_include_pad: _Bool = True, divisor_override: _Int | None = None, *,
    out: None = None
) -> _Exporter: ...
@overload
def avg_pool2d(
    self: _Plain, kernel_size: _IntOrInts, stride: _IntOrInts | None = None, padding: _IntOrInts = 0,
    ceil_mode: _Bool = False, count_include_pad: _Bool = True, divisor_override: _Int | None = None, *,
    out: None = None
) -> npt.NDArray[Any]: ...
def aclnnMaxPool2dWithIndicesGetWorkspaceSize(
    self: _Tensor | None, kernelSize: _Ints | None, stride: _Ints | None, padding: _Ints | None, dilation: _Ints | None,
    ceilMode: _Bool, out: _Tensor | None, indices: _Tensor | None
) -> tuple[int, aclOpExecutor]: ...
def aclnnMaxPool2dWithIndices(
    workspace: _Memory | None, workspaceSize: _Int, executor: aclOpExecutor | None, stream: aclrtStream | None = None
) -> None: ...
@overload
def max_pool2d_with_indices(
    self: _Tensor, kernel_size: _IntOrInts, stride: _IntOrInts | None = None, padding: _IntOrInts = 0,
    dilation: _IntOrInts = 1, ceil_mode: _Bool = False, *, out: _Out, indices: _Out2
) -> tuple[_Out, _Out2]: ...
@overload
def max_pool2d_with_indices(
    self: _Tensor, kernel_size: _IntOrInts, stride: _IntOrInts | None = None, padding: _IntOrInts = 0,
    dilation: _IntOrInts = 1, ceil_mode: _Bool = False, *, out: _Out, indices: None = None
) -> tuple[_Out, Any]: ...
@overload
def max_pool2d_with_indices(
    self: _Tensor, kernel_size: _IntOrInts, stride: _IntOrInts | None = None, padding: _IntOrInts = 0,
    dilation: _IntOrInts = 1, ceil_mode: _Bool = False, *, out: None = None, indices: _Out2
) -> tuple[Any, _Out2]: ...
@overload
def max_pool2d_with_indices(
    self: npt.NDArray[_Dtype], kernel_size: _IntOrInts, stride: _IntOrInts | None = None, padding: _IntOrInts = 0,
    dilation: _IntOrInts = 1, ceil_mode: _Bool = False, *, out: None = None, indices: None = None
) -> tuple[npt.NDArray[_Dtype], npt.NDArray[np.int64]]: ...
@overload
def max_pool2d_with_indices(
    self: _Exporter, kernel_size: _IntOrInts, stride: _IntOrInts | None = None, padding: _IntOrInts = 0,
    dilation: _IntOrInts = 1, ceil_mode: _Bool = False, *, out: None = None, indices: None = None
) -> tuple[_Exporter, _Exporter]: ...
@overload
def max_pool2d_with_indices(
    self: _Plain, kernel_size: _IntOrInts, stride: _IntOrInts | None = None, padding: _IntOrInts = 0,
    dilation: _IntOrInts = 1, ceil_mode: _Bool = False, *, out: None = None, indices: None = None
) -> tuple[npt.NDArray[Any], npt.NDArray[np.int64]]: ...
def aclnnMaxPool2dWithIndicesBackwardGetWorkspaceSize(
    gradOutput: _Tensor | None, self: _Tensor | None, indices: _Tensor | None, kernelSize: _Ints | None,
    stride: _Ints | None, padding: _Ints | None, dilation: _Ints | None, ceilMode: _Bool, gradInput: _Tensor | None
) -> tuple[int, aclOpExecutor]: ...
def aclnnMaxPool2dWithIndicesBackward(
    workspace: _Memory | None, workspaceSize: _Int, executor: aclOpExecutor | None, stream: aclrtStream | None = None
) -> None: ...
@overload
def max_pool2d_with_indices_backward(
    grad_output: _Tensor, self: _Tensor | _Shape, kernel_size: _IntOrInts, stride: _IntOrInts | None,
    padding: _IntOrInts, dilation: _IntOrInts, ceil_mode: _Bool, indices: _Tensor, *, out: _Out
) -> _Out: ...
@overload
def max_pool2d_with_indices_backward(
    grad_output: npt.NDArray[_Dtype], self: _Tensor | _Shape, kernel_size: _IntOrInts, stride: _IntOrInts | None,
    padding: _IntOrInts, dilation: _IntOrInts, ceil_mode: _Bool, indices: _Tensor, *, out: None = None
) -> npt.NDArray[_Dtype]: ...
@overload
def max_pool2d_with_indices_backward(
    grad_output: _Exporter, self: _Tensor | _Shape, kernel_size: _IntOrInts, stride: _IntOrInts | None,
    padding: _IntOrInts, dilation: _IntOrInts, ceil_mode: _Bool, indices: _Tensor, *, out: None = None
) -> _Exporter: ...
@overload
def max_pool2d_with_indices_backward(
    grad_output: _Plain, self: _Tensor | _Shape, kernel_size: _IntOrInts, stride: _IntOrInts | None,
    padding: _IntOrInts, dilation: _IntOrInts, ceil_mode: _Bool, indices: _Tensor, *, out: None = None
) -> npt.NDArray[Any]: ...
