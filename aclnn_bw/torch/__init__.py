"""The operators for PyTorch: functions and modules with its signatures, and a switch for models as they are.

It needs PyTorch (`pip install "aclnn_bw[torch]"`), which `import aclnn_bw` alone neither needs nor imports. The
functions are differentiable twice, and custom operators of PyTorch (`torch.ops.aclnn_bw`), which `torch.compile`,
`torch.export`, `torch.vmap` and autocast know. A tensor on the CPU is computed by aclnn_bw, without a copy
whatever its strides; anything else (another device, a dtype that aclnn_bw lacks, a dilated max pool, a sparse or
nested tensor; under `torch.func.grad` and in forward mode) by PyTorch's own operator. Errors are PyTorch's.

>>> import torch, aclnn_bw.torch
>>> x = torch.tensor([[[3.0, 1, 2], [0, 5, 4], [9, 7, 8]]], requires_grad=True)
>>> out = aclnn_bw.torch.max_pool2d(x, 2, stride=1)
>>> out.sum().backward()
>>> x.grad
tensor([[[0., 0., 0.],
         [0., 2., 0.],
         [1., 0., 1.]]])
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

try:
    import torch
except ImportError as _missing:
    if _missing.name != "torch":
        raise
    raise ImportError('aclnn_bw.torch needs PyTorch: pip install "aclnn_bw[torch]"', name="torch") from None

from torch import Tensor
from torch._functorch.pyfunctorch import retrieve_all_functorch_interpreters
from torch.autograd import forward_ad

from ._accelerate import accelerate, disable, enable, is_enabled
from ._kernels import COPIED, REAL, UPSAMPLED
from ._operators import ops

__all__ = [
    "AvgPool2d",
    "Fold",
    "MaxPool2d",
    "ReplicationPad2d",
    "Unfold",
    "accelerate",
    "avg_pool2d",
    "disable",
    "enable",
    "fold",
    "is_enabled",
    "max_pool2d",
    "replication_pad2d",
    "unfold",
    "upsample_nearest_exact1d",
]

_Ints: TypeAlias = int | Sequence[int]

_functional: Any = torch.nn.functional  # says what is wrong with arguments, whatever they are


@torch.compiler.assume_constant_result
def _is_transformed() -> bool:
    """Whether gradients are taken by torch.func or forward mode, which a custom operator cannot be part of."""
    if forward_ad._current_level >= 0:
        return True
    if torch._C._functorch.peek_interpreter_stack() is None:
        return False
    vmap = torch._C._functorch.TransformType.Vmap
    return any(one.key() != vmap for one in retrieve_all_functorch_interpreters())


def _is_int(value: Any) -> bool:
    """Whether it is an int that C has."""
    return isinstance(value, torch.SymInt) or (isinstance(value, int) and -(1 << 63) <= value < 1 << 63)


def _is_ours(input: Tensor, dtypes: frozenset[torch.dtype], *geometry: Any) -> bool:
    """Whether the custom operators take it; else it goes to PyTorch's, which also knows what is wrong with it."""
    return (
        isinstance(input, Tensor)
        and input.device.type == "cpu"
        and input.layout is torch.strided
        and not input.is_nested
        and input.dtype in dtypes
        and all(
            all(_is_int(one) for one in value) if isinstance(value, (tuple, list)) else _is_int(value)
            for value in geometry
        )
        and not _is_transformed()
    )


def _pair(value: _Ints) -> Sequence[int]:
    return value if isinstance(value, Sequence) else (value, value)


def avg_pool2d(
    input: Tensor,
    kernel_size: _Ints,
    stride: _Ints | None = None,
    padding: _Ints = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Tensor:
    """Return the average of each window: `torch.nn.functional.avg_pool2d`.

    input (N, C, H, W) or (C, H, W); on the CPU float32, float64, float16 and bfloat16 are computed by aclnn_bw, 16-bit
    types summed in float32 and rounded once. The result (N, C, Ho, Wo), or without N, lies in channels_last where the
    input does.

    >>> import torch, aclnn_bw.torch
    >>> aclnn_bw.torch.avg_pool2d(torch.tensor([[[1.0, 2, 3], [4, 5, 6]]]), 2, stride=1)
    tensor([[[3., 4.]]])
    """
    steps: _Ints = () if stride is None else stride
    if not _is_ours(input, REAL, kernel_size, steps, padding):
        return _functional.avg_pool2d(
            input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override
        )
    result: Tensor = ops.avg_pool2d(input, kernel_size, steps, padding, ceil_mode, count_include_pad, divisor_override)
    return result


def max_pool2d(
    input: Tensor,
    kernel_size: _Ints,
    stride: _Ints | None = None,
    padding: _Ints = 0,
    dilation: _Ints = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """Return the maximum of each window, and with return_indices where it lies: `torch.nn.functional.max_pool2d`.

    input (N, C, H, W) or (C, H, W); on the CPU float32, float64, float16 and bfloat16 are computed by aclnn_bw where
    the dilation is 1. The result, and the int64 indices ih*W + iw, are (N, C, Ho, Wo), or without N, and lie in
    channels_last where the input does. The first maximum of a window counts, the last NaN.

    >>> import torch, aclnn_bw.torch
    >>> aclnn_bw.torch.max_pool2d(torch.tensor([[[1.0, 2, 3], [4, 5, 6]]]), 2, stride=1, return_indices=True)
    (tensor([[[5., 6.]]]), tensor([[[4, 5]]]))
    """
    steps: _Ints = () if stride is None else stride
    is_dense = all(one == 1 for one in (dilation if isinstance(dilation, (tuple, list)) else (dilation,)))
    if not is_dense or not _is_ours(input, REAL, kernel_size, steps, padding, dilation):
        return _functional.max_pool2d(
            input, kernel_size, stride, padding, dilation, ceil_mode=ceil_mode, return_indices=return_indices
        )
    results = ops.max_pool2d_with_indices(input, kernel_size, steps, padding, ceil_mode)
    return results if return_indices else results[0]


def unfold(input: Tensor, kernel_size: _Ints, dilation: _Ints = 1, padding: _Ints = 0, stride: _Ints = 1) -> Tensor:
    """Return the windows as columns: `torch.nn.functional.unfold`.

    input (N, C, H, W) or (C, H, W); on the CPU float32, float64, float16 and bfloat16 are computed by aclnn_bw. The
    result (N, C*kH*kW, L), or without N, is contiguous: a row for each kernel position, a column for each window.

    >>> import torch, aclnn_bw.torch
    >>> aclnn_bw.torch.unfold(torch.tensor([[[1.0, 2, 3], [4, 5, 6]]]), 2)
    tensor([[1., 2.],
            [2., 3.],
            [4., 5.],
            [5., 6.]])
    """
    if not _is_ours(input, REAL, kernel_size, dilation, padding, stride):
        return _functional.unfold(input, kernel_size, dilation, padding, stride)
    result: Tensor = ops.im2col(input, _pair(kernel_size), _pair(dilation), _pair(padding), _pair(stride))
    return result


def fold(
    input: Tensor,
    output_size: _Ints,
    kernel_size: _Ints,
    dilation: _Ints = 1,
    padding: _Ints = 0,
    stride: _Ints = 1,
) -> Tensor:
    """Return the sums of columns at the places that `unfold` reads: `torch.nn.functional.fold`.

    input (N, C*kH*kW, L) or (C*kH*kW, L); output_size is (H, W). On the CPU float32, float64, float16 and bfloat16 are
    computed by aclnn_bw, 16-bit types summed in float32 and rounded once. The result (N, C, H, W), or without N, is
    contiguous.

    >>> import torch, aclnn_bw.torch
    >>> aclnn_bw.torch.fold(torch.ones(4, 4), 3, 2)
    tensor([[[1., 2., 1.],
             [2., 4., 2.],
             [1., 2., 1.]]])
    """
    if not _is_ours(input, REAL, output_size, kernel_size, dilation, padding, stride):
        return _functional.fold(input, output_size, kernel_size, dilation, padding, stride)
    result: Tensor = ops.col2im(
        input, _pair(output_size), _pair(kernel_size), _pair(dilation), _pair(padding), _pair(stride)
    )
    return result


def replication_pad2d(input: Tensor, padding: _Ints) -> Tensor:
    """Return the image with its border repeated around it: `torch.nn.functional.pad` with mode="replicate".

    input (N, C, H, W) or (C, H, W); padding is (left, right, top, bottom), or one int for all; a negative pad crops. On
    the CPU the floating, complex and integer types are computed by aclnn_bw, gradients 16-bit ones summed in float32
    and rounded once. The result (N, C, H + top + bottom, W + left + right), or without N, lies in channels_last where
    the input does. Under autocast a 16-bit input becomes float32, as in PyTorch's operator.

    >>> import torch, aclnn_bw.torch
    >>> aclnn_bw.torch.replication_pad2d(torch.tensor([[[1, 2, 3], [4, 5, 6]]]), (2, 0, 0, 1))
    tensor([[[1, 1, 1, 2, 3],
             [4, 4, 4, 5, 6],
             [4, 4, 4, 5, 6]]])
    """
    pads = padding if isinstance(padding, Sequence) else (padding,) * 4
    if not _is_ours(input, COPIED, pads) or len(pads) != 4 or input.dim() not in (3, 4):
        return _functional.pad(input, pads, mode="replicate")
    result: Tensor = ops.replication_pad2d(input, pads)
    return result


def upsample_nearest_exact1d(input: Tensor, output_size: _Ints, scales: float | None = None) -> Tensor:
    """Return rows at another length, each element the nearest one: `torch.ops.aten._upsample_nearest_exact1d`.

    input (N, C, L); output_size is the length, or a sequence with it; scales is the factor, or None: then the sizes say
    it. On the CPU float32, float16 and bfloat16 are computed by aclnn_bw, their gradients in 16-bit types summed in
    float32 and rounded once; float64, whose map is another one in PyTorch, is PyTorch's. The result (N, C, output_size)
    is contiguous. `torch.nn.functional.interpolate` calls this operator for mode="nearest-exact".

    >>> import torch, aclnn_bw.torch
    >>> aclnn_bw.torch.upsample_nearest_exact1d(torch.tensor([[[10.0, 20, 30, 40, 50]]]), 3)
    tensor([[[10., 30., 50.]]])
    """
    size = output_size if isinstance(output_size, Sequence) else (output_size,)
    own = _is_ours(input, UPSAMPLED, size)
    operator = ops.upsample_nearest_exact1d if own else torch.ops.aten._upsample_nearest_exact1d
    result: Tensor = operator(input, size, scales)
    return result


class AvgPool2d(torch.nn.AvgPool2d):
    """`torch.nn.AvgPool2d` by `avg_pool2d` of this module.

    >>> import torch, aclnn_bw.torch
    >>> aclnn_bw.torch.AvgPool2d(2)(torch.ones(1, 4, 4))
    tensor([[[1., 1.],
             [1., 1.]]])
    """

    def forward(self, input: Tensor) -> Tensor:
        """Return the average of each window of input, (N, C, H, W) or (C, H, W)."""
        return avg_pool2d(
            input,
            self.kernel_size,
            self.stride,
            self.padding,
            self.ceil_mode,
            self.count_include_pad,
            self.divisor_override,
        )


class MaxPool2d(torch.nn.MaxPool2d):
    """`torch.nn.MaxPool2d` by `max_pool2d` of this module.

    >>> import torch, aclnn_bw.torch
    >>> aclnn_bw.torch.MaxPool2d(2)(torch.ones(1, 4, 4))
    tensor([[[1., 1.],
             [1., 1.]]])
    """

    def forward(self, input: Tensor) -> Any:
        """Return the maximum of each window of input, (N, C, H, W) or (C, H, W), and with return_indices its place."""
        return max_pool2d(
            input,
            self.kernel_size,
            self.stride,
            self.padding,
            self.dilation,
            self.ceil_mode,
            self.return_indices,
        )


class Unfold(torch.nn.Unfold):
    """`torch.nn.Unfold` by `unfold` of this module.

    >>> import torch, aclnn_bw.torch
    >>> aclnn_bw.torch.Unfold(2)(torch.ones(1, 3, 3)).shape
    torch.Size([4, 4])
    """

    def forward(self, input: Tensor) -> Tensor:
        """Return the windows of input, (N, C, H, W) or (C, H, W), as columns."""
        return unfold(input, self.kernel_size, self.dilation, self.padding, self.stride)


class Fold(torch.nn.Fold):
    """`torch.nn.Fold` by `fold` of this module.

    >>> import torch, aclnn_bw.torch
    >>> aclnn_bw.torch.Fold(3, 2)(torch.ones(4, 4)).shape
    torch.Size([1, 3, 3])
    """

    def forward(self, input: Tensor) -> Tensor:
        """Return the columns of input, (N, C*kH*kW, L) or (C*kH*kW, L), summed to images."""
        return fold(input, self.output_size, self.kernel_size, self.dilation, self.padding, self.stride)


class ReplicationPad2d(torch.nn.ReplicationPad2d):
    """`torch.nn.ReplicationPad2d` by `replication_pad2d` of this module.

    >>> import torch, aclnn_bw.torch
    >>> aclnn_bw.torch.ReplicationPad2d(1)(torch.ones(1, 3, 3)).shape
    torch.Size([1, 5, 5])
    """

    def forward(self, input: Tensor) -> Tensor:
        """Return input, (N, C, H, W) or (C, H, W), with its border repeated around it."""
        return replication_pad2d(input, self.padding)
