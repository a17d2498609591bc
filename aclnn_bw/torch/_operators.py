"""The custom operators `torch.ops.aclnn_bw.*`: schemas, kernels, fake implementations, gradients, batching, autocast.

A gradient is linear in grad_output, so that its own gradient is the forward; that of the max pool reads at the indices.
The gradients take the shape of the input, not the input: nothing keeps its memory. Their results lie in memory as
grad_output does. A fake implementation asks aten's for what it says of the arguments, errors included.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from . import _kernels
from ._kernels import Ints, aten, format_of, new

POOL = "int[2] kernel_size, int[2] stride, int[2] padding, bool ceil_mode"
AVERAGE = f"{POOL}, bool count_include_pad, int? divisor_override"
COLUMNS = "SymInt[2] kernel_size, SymInt[2] dilation, SymInt[2] padding, SymInt[2] stride"

SCHEMAS = (
    f"avg_pool2d(Tensor self, {AVERAGE}) -> Tensor",
    f"avg_pool2d_backward(Tensor grad_output, SymInt[] input_size, {AVERAGE}) -> Tensor",
    f"max_pool2d_with_indices(Tensor self, {POOL}) -> (Tensor, Tensor)",
    f"max_pool2d_with_indices_backward(Tensor grad_output, SymInt[] input_size, {POOL}, Tensor indices) -> Tensor",
    f"im2col(Tensor self, {COLUMNS}) -> Tensor",
    f"col2im(Tensor self, SymInt[2] output_size, {COLUMNS}) -> Tensor",
    "replication_pad2d(Tensor self, SymInt[4] padding) -> Tensor",
    "replication_pad2d_backward(Tensor grad_output, SymInt[] input_size, SymInt[4] padding) -> Tensor",
    "upsample_nearest_exact1d(Tensor self, SymInt[1] output_size, float? scales) -> Tensor",
    "upsample_nearest_exact1d_backward("
    "Tensor grad_output, SymInt[1] output_size, SymInt[3] input_size, float? scales) -> Tensor",
)

LIBRARY = torch.library.Library("aclnn_bw", "DEF")
for schema in SCHEMAS:
    LIBRARY.define(schema, tags=(torch.Tag.pt2_compliant_tag,))

ops = torch.ops.aclnn_bw


# ---- kernels of the gradients ----------------------------------------------------------------------------------------


def stand_in(grad_output: Tensor, shape: Ints) -> Tensor:
    """Return an input of this shape, which lies in memory as grad_output, for a kernel that reads no values of it."""
    return new(grad_output, shape, format_of(grad_output))


def avg_pool2d_backward(grad_output: Tensor, input_size: Ints, *geometry: Any) -> Tensor:
    memory_format = format_of(grad_output)
    result = _kernels.avg_pool2d_backward_of_shape(grad_output, input_size, memory_format, *geometry)
    if result is None:
        result = _kernels.avg_pool2d_backward(grad_output, stand_in(grad_output, input_size), *geometry)
    return result.contiguous(memory_format=memory_format)


def max_pool2d_with_indices(
    self: Tensor, kernel_size: Ints, stride: Ints, padding: Ints, ceil_mode: bool
) -> tuple[Tensor, Tensor]:
    return _kernels.max_pool2d_with_indices(self, kernel_size, stride, padding, (1, 1), ceil_mode)


def max_pool2d_with_indices_backward(
    grad_output: Tensor,
    input_size: Ints,
    kernel_size: Ints,
    stride: Ints,
    padding: Ints,
    ceil_mode: bool,
    indices: Tensor,
) -> Tensor:
    memory_format = format_of(grad_output)
    geometry = kernel_size, stride, padding, (1, 1), ceil_mode, indices
    result = _kernels.max_pool2d_with_indices_backward_of_shape(grad_output, input_size, memory_format, *geometry)
    if result is None:
        result = _kernels.max_pool2d_with_indices_backward(grad_output, stand_in(grad_output, input_size), *geometry)
    return result.contiguous(memory_format=memory_format)


def replication_pad2d_backward(grad_output: Tensor, input_size: Ints, padding: Ints) -> Tensor:
    memory_format = format_of(grad_output)
    result = _kernels.replication_pad2d_backward_of_shape(grad_output, input_size, memory_format, padding)
    if result is None:
        result = _kernels.replication_pad2d_backward(grad_output, stand_in(grad_output, input_size), padding)
    return result.contiguous(memory_format=memory_format)


KERNELS: dict[str, Callable[..., Any]] = {
    "avg_pool2d": _kernels.avg_pool2d,
    "avg_pool2d_backward": avg_pool2d_backward,
    "max_pool2d_with_indices": max_pool2d_with_indices,
    "max_pool2d_with_indices_backward": max_pool2d_with_indices_backward,
    "im2col": _kernels.im2col,
    "col2im": _kernels.col2im,
    "replication_pad2d": _kernels.replication_pad2d,
    "replication_pad2d_backward": replication_pad2d_backward,
    "upsample_nearest_exact1d": _kernels.upsample_nearest_exact1d,
    "upsample_nearest_exact1d_backward": _kernels.upsample_nearest_exact1d_backward,
}


# ---- fake implementations --------------------------------------------------------------------------------------------


def like(tensor: Tensor, shape: Ints) -> Tensor:
    return new(tensor, shape, format_of(tensor))


def fake_avg_pool2d(self: Tensor, *geometry: Any) -> Tensor:
    return like(self, aten.avg_pool2d(self, *geometry).shape)


def fake_avg_pool2d_backward(grad_output: Tensor, input_size: Ints, *geometry: Any) -> Tensor:
    aten.avg_pool2d_backward(grad_output, grad_output.new_empty(input_size), *geometry)
    return like(grad_output, input_size)


def fake_max_pool2d_with_indices(
    self: Tensor, kernel_size: Ints, stride: Ints, padding: Ints, ceil_mode: bool
) -> tuple[Tensor, Tensor]:
    shape = aten.max_pool2d_with_indices(self, kernel_size, stride, padding, (1, 1), ceil_mode)[0].shape
    return like(self, shape), new(self, shape, format_of(self), torch.int64)


def fake_max_pool2d_with_indices_backward(
    grad_output: Tensor,
    input_size: Ints,
    kernel_size: Ints,
    stride: Ints,
    padding: Ints,
    ceil_mode: bool,
    indices: Tensor,
) -> Tensor:
    geometry = kernel_size, stride, padding, (1, 1), ceil_mode, indices
    aten.max_pool2d_with_indices_backward(grad_output, grad_output.new_empty(input_size), *geometry)
    return like(grad_output, input_size)


def fake_im2col(self: Tensor, *geometry: Any) -> Tensor:
    return self.new_empty(aten.im2col(self, *geometry).shape)


def fake_col2im(self: Tensor, *geometry: Any) -> Tensor:
    return self.new_empty(aten.col2im(self, *geometry).shape)


def fake_replication_pad2d(self: Tensor, padding: Ints) -> Tensor:
    return like(self, aten.replication_pad2d(self, padding).shape)


def fake_replication_pad2d_backward(grad_output: Tensor, input_size: Ints, padding: Ints) -> Tensor:
    aten.replication_pad2d_backward(grad_output, grad_output.new_empty(input_size), padding)
    return like(grad_output, input_size)


def fake_upsample_nearest_exact1d(self: Tensor, output_size: Ints, scales: float | None) -> Tensor:
    return self.new_empty(aten._upsample_nearest_exact1d(self, output_size, scales).shape)


def fake_upsample_nearest_exact1d_backward(
    grad_output: Tensor, output_size: Ints, input_size: Ints, scales: float | None
) -> Tensor:
    # aten's own takes no symbolic sizes here.
    torch._check(len(input_size) == 3, lambda: f"input_size = {input_size}: must have 3 values")
    torch._check(grad_output.shape == (*input_size[:2], *output_size), lambda: f"grad_output: has {grad_output.shape}")
    return grad_output.new_empty(input_size)


FAKES: dict[str, Callable[..., Any]] = {
    "avg_pool2d": fake_avg_pool2d,
    "avg_pool2d_backward": fake_avg_pool2d_backward,
    "max_pool2d_with_indices": fake_max_pool2d_with_indices,
    "max_pool2d_with_indices_backward": fake_max_pool2d_with_indices_backward,
    "im2col": fake_im2col,
    "col2im": fake_col2im,
    "replication_pad2d": fake_replication_pad2d,
    "replication_pad2d_backward": fake_replication_pad2d_backward,
    "upsample_nearest_exact1d": fake_upsample_nearest_exact1d,
    "upsample_nearest_exact1d_backward": fake_upsample_nearest_exact1d_backward,
}


# ---- gradients -------------------------------------------------------------------------------------------------------


def keep_forward(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
    """Keep the shape of the input and the geometry."""
    ctx.shape, ctx.geometry = inputs[0].shape, inputs[1:]


def keep_backward(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
    """Keep the geometry, without the shape of the input that stands before it."""
    ctx.geometry = inputs[2:]


def keep_all(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
    """Keep what is no tensor."""
    ctx.given = inputs[1:]


def keep_indices(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
    keep_forward(ctx, inputs, output)
    ctx.save_for_backward(output[1])


def keep_given_indices(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
    ctx.save_for_backward(inputs[-1])
    ctx.count = len(inputs)


def forward_by(name: str) -> Callable[..., Any]:
    """Return the gradient of a forward (tensor, *geometry): an operator (grad_output, input_size, *geometry)."""

    def backward(ctx: Any, grad_output: Tensor) -> Any:
        grad_input = getattr(ops, name)(grad_output, ctx.shape, *ctx.geometry)
        return grad_input, *(None for _ in ctx.geometry)

    return backward


def backward_by(name: str) -> Callable[..., Any]:
    """Return the gradient of a gradient (grad_output, input_size, *geometry): its forward."""

    def backward(ctx: Any, grad: Tensor) -> Any:
        return getattr(ops, name)(grad, *ctx.geometry), None, *(None for _ in ctx.geometry)

    return backward


def max_pool2d_gradient(ctx: Any, grad_output: Tensor, _grad_indices: Any) -> Any:
    (indices,) = ctx.saved_tensors
    grad_input = ops.max_pool2d_with_indices_backward(grad_output, ctx.shape, *ctx.geometry, indices)
    return grad_input, *(None for _ in ctx.geometry)


def max_pool2d_second_gradient(ctx: Any, grad: Tensor) -> Any:
    (indices,) = ctx.saved_tensors
    read = grad.flatten(-2).gather(-1, indices.flatten(-2)).reshape(indices.shape)
    return read, *(None for _ in range(ctx.count - 1))


def im2col_gradient(ctx: Any, grad_output: Tensor) -> Any:
    return ops.col2im(grad_output, ctx.shape[-2:], *ctx.geometry), None, None, None, None


def col2im_gradient(ctx: Any, grad: Tensor) -> Any:
    return ops.im2col(grad, *ctx.geometry), None, None, None, None, None


def upsample_gradient(ctx: Any, grad_output: Tensor) -> Any:
    output_size, scales = ctx.geometry
    return ops.upsample_nearest_exact1d_backward(grad_output, output_size, ctx.shape, scales), None, None


def upsample_second_gradient(ctx: Any, grad: Tensor) -> Any:
    output_size, _, scales = ctx.given
    return ops.upsample_nearest_exact1d(grad, output_size, scales), None, None, None


GRADIENTS: dict[str, tuple[Callable[..., Any], Callable[..., None]]] = {
    "avg_pool2d": (forward_by("avg_pool2d_backward"), keep_forward),
    "avg_pool2d_backward": (backward_by("avg_pool2d"), keep_backward),
    "max_pool2d_with_indices": (max_pool2d_gradient, keep_indices),
    "max_pool2d_with_indices_backward": (max_pool2d_second_gradient, keep_given_indices),
    "im2col": (im2col_gradient, keep_forward),
    "col2im": (col2im_gradient, keep_backward),
    "replication_pad2d": (forward_by("replication_pad2d_backward"), keep_forward),
    "replication_pad2d_backward": (backward_by("replication_pad2d"), keep_backward),
    "upsample_nearest_exact1d": (upsample_gradient, keep_forward),
    "upsample_nearest_exact1d_backward": (upsample_second_gradient, keep_all),
}


# ---- batching --------------------------------------------------------------------------------------------------------

# Ranks without a batch: a plane's result depends on the plane alone, so one more batch joins the one that is there.
RANKS = {"col2im": 2, "upsample_nearest_exact1d": 2, "upsample_nearest_exact1d_backward": 2}


def joined(tensor: Tensor, rank: int) -> Tensor:
    """Return a tensor whose leading axes are one."""
    return tensor.flatten(0, tensor.dim() - rank - 1)


def batching(name: str) -> Callable[..., Any]:
    rank = RANKS.get(name, 3)

    def batched(info: Any, in_dims: Sequence[int | None], *given: Any) -> tuple[Any, Any]:
        arguments = list(given)
        leading: tuple[int, ...] = ()
        for i, (value, axis) in enumerate(zip(given, in_dims, strict=True)):
            if isinstance(value, Tensor):
                tensor = value.expand(info.batch_size, *value.shape) if axis is None else value.movedim(axis, 0)
                leading = tuple(tensor.shape[:-rank])
                arguments[i] = joined(tensor, rank)
        size = {"upsample_nearest_exact1d_backward": 2}.get(name, 1 if name.endswith("_backward") else None)
        if size is not None:  # of the input: its batch is the joined one
            arguments[size] = (arguments[0].shape[0], *arguments[size][-rank:])
        results = getattr(ops, name)(*arguments)
        if isinstance(results, tuple):
            return tuple(one.reshape(*leading, *one.shape[1:]) for one in results), (0,) * len(results)
        return results.reshape(*leading, *results.shape[1:]), 0

    return batched


# ---- autocast --------------------------------------------------------------------------------------------------------


def replication_pad2d_in_autocast(self: Tensor, padding: Ints) -> Any:
    """Compute in float32, as aten's does on the CPU: the only one of these operators that autocast has a rule for."""
    with torch._C._ExcludeDispatchKeyGuard(torch._C.DispatchKeySet(torch._C.DispatchKey.AutocastCPU)):
        low = self.device.type == "cpu" and self.dtype in (torch.float16, torch.bfloat16)
        return ops.replication_pad2d(self.float() if low else self, padding)


for operator, kernel in KERNELS.items():
    LIBRARY.impl(operator, kernel, "CPU")
    torch.library.register_fake(f"aclnn_bw::{operator}", FAKES[operator], lib=LIBRARY)
    gradient, keep = GRADIENTS[operator]
    torch.library.register_autograd(f"aclnn_bw::{operator}", gradient, setup_context=keep, lib=LIBRARY)
    torch.library.register_vmap(f"aclnn_bw::{operator}", batching(operator), lib=LIBRARY)
LIBRARY.impl("replication_pad2d", replication_pad2d_in_autocast, "AutocastCPU")
