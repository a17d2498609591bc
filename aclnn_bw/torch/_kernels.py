"""PyTorch's operators on CPU tensors, by the one-call functions: the schemas and the results of aten's kernels.

Nothing here is differentiable: these functions run below autograd, as kernels of the custom operators and, while
accelerated, of aten's own. Each allocates what it returns as PyTorch's kernel does, strides included, and computes
into it without a copy. Whatever the one-call functions do not take, or refuse, goes to PyTorch's kernel: its errors are
PyTorch's. That kernel is reached through the `out=` form of the operator, which stays PyTorch's while accelerated.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from aclnn_bw import _native
from aclnn_bw.threads import get_num_threads, num_threads

aten = torch.ops.aten

REAL = frozenset({torch.float32, torch.float64, torch.float16, torch.bfloat16})
COPIED = REAL | {torch.complex64, torch.complex128, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64}
"""What the replication pad copies: the dtypes of PyTorch's kernel."""
UPSAMPLED = frozenset({torch.float32, torch.float16, torch.bfloat16})
"""float64 has a map of its own in PyTorch, uint8 no gradient."""
CHANNELS = 16
"""From so many on, channels_last is read and written as it lies."""
ELEMENTS = 1 << 18
"""Of an image in channels_last, where PyTorch's pools are quick: from so many on, ours save more than Python costs."""
SCATTERED = 1 << 20
"""Likewise for the gradient of the max pool."""

Ints = Sequence[int]


def array_of(tensor: Tensor) -> npt.NDArray[Any]:
    """Return a view of a CPU tensor's memory, whatever its strides."""
    tensor = tensor.detach()
    if tensor.dtype is torch.bfloat16:
        import ml_dtypes  # not before it is needed: it may take a second

        return tensor.view(torch.int16).numpy().view(ml_dtypes.bfloat16)
    array: npt.NDArray[Any] = tensor.numpy()
    return array


def format_of(tensor: Tensor) -> torch.memory_format:
    """Return the memory format of a result, as aten's `suggest_memory_format` says it, rule by rule."""
    if tensor.dim() != 4:
        return torch.contiguous_format
    sizes, strides = tensor.shape, tensor.stride()
    if strides[1] == 0:
        return torch.contiguous_format
    least = 0
    for axis in (1, 3, 2, 0):
        if sizes[axis] == 0 or strides[axis] < least or (axis == 0 and least == strides[1]):
            return torch.contiguous_format
        least = strides[axis] * sizes[axis] if sizes[axis] > 1 else strides[axis]
    return torch.channels_last


def new(like: Tensor, shape: Ints, memory_format: torch.memory_format, dtype: torch.dtype | None = None) -> Tensor:
    """Return a tensor without values."""
    return torch.empty(shape, dtype=dtype or like.dtype, device=like.device, memory_format=memory_format)


def run(function: Callable[..., object], *arguments: object, **outputs: object) -> bool:
    """Call a one-call function, on no more threads than PyTorch has; whether it took the arguments.

    An int that is too large for C, a value of the wrong kind: PyTorch has its own words for these as well.
    """
    threads = torch.get_num_threads()
    try:
        if threads < get_num_threads():
            with num_threads(threads):
                function(*arguments, **outputs)
        else:
            function(*arguments, **outputs)
    except (ValueError, TypeError, OverflowError):
        return False
    return True


def pair(values: Ints) -> tuple[int, int]:
    """Return the values of both axes, of which one may stand for two."""
    return (values[0], values[-1])


def pooled_shape(shape: Ints, kernel: Ints, stride: Ints, padding: Ints, ceil_mode: bool) -> tuple[int, ...] | None:
    """Return the shape of what a pool returns; None where it has none, which is PyTorch's to say."""
    if len(shape) not in (3, 4) or not all(1 <= len(values) <= 2 for values in (kernel, stride or kernel, padding)):
        return None
    sizes = []
    for size, k, s, p in zip(shape[-2:], pair(kernel), pair(stride or kernel), pair(padding), strict=True):
        if k < 1 or s < 1 or p < 0:
            return None
        length = (size + 2 * p - k + (s - 1 if ceil_mode else 0)) // s + 1
        if ceil_mode and (length - 1) * s >= size + p:
            length -= 1
        if length < 1:
            return None
        sizes.append(length)
    return (*shape[:-2], *sizes)


def is_taken(tensor: Tensor, dtypes: frozenset[torch.dtype] = REAL) -> bool:
    """Whether the one-call functions take such a tensor: PyTorch has rules of its own for an empty one."""
    return tensor.dtype in dtypes and tensor.numel() > 0


def is_pooled(tensor: Tensor, shape: Ints, memory_format: torch.memory_format, elements: int = ELEMENTS) -> bool:
    """Whether a pool of an image of this shape and format, or its gradient, is ours, that reads such a tensor."""
    return is_taken(tensor) and (
        memory_format is torch.contiguous_format
        or (shape[1] >= CHANNELS and prod(shape) >= elements and format_of(tensor) is torch.channels_last)
    )


# ---- average pool ----------------------------------------------------------------------------------------------------


def avg_pool2d(
    self: Tensor,
    kernel_size: Ints,
    stride: Ints = (),
    padding: Ints = (0,),
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Tensor:
    """aten::avg_pool2d."""
    shape = None
    memory_format = format_of(self)
    if is_pooled(self, self.shape, memory_format):
        shape = pooled_shape(self.shape, kernel_size, stride, padding, ceil_mode)
    if shape is not None:
        out = new(self, shape, memory_format)
        geometry = pair(kernel_size), pair(stride or kernel_size), pair(padding), ceil_mode, count_include_pad
        if run(_native.avg_pool2d, array_of(self), *geometry, divisor_override, out=array_of(out)):
            return out
    given = kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override
    result: Tensor = aten.avg_pool2d.out(self, *given, out=self.new_empty(0))
    return result


def avg_pool2d_backward_of_shape(
    grad_output: Tensor,
    shape: Ints,
    memory_format: torch.memory_format,
    kernel_size: Ints,
    stride: Ints,
    padding: Ints,
    ceil_mode: bool,
    count_include_pad: bool,
    divisor_override: int | None,
) -> Tensor | None:
    """Return the gradient of an input of this shape, or None where it is PyTorch's to compute or to refuse."""
    if (
        is_pooled(grad_output, shape, memory_format)
        and pooled_shape(shape, kernel_size, stride, padding, ceil_mode) == grad_output.shape
    ):
        grad_input = new(grad_output, shape, memory_format)
        geometry = pair(kernel_size), pair(stride or kernel_size), pair(padding), ceil_mode, count_include_pad
        given = array_of(grad_output), tuple(shape), *geometry, divisor_override
        if run(_native.avg_pool2d_backward, *given, out=array_of(grad_input)):
            return grad_input
    return None


def avg_pool2d_backward(grad_output: Tensor, self: Tensor, *geometry: Any) -> Tensor:
    """aten::avg_pool2d_backward."""
    result: Tensor | None = None
    if self.dtype is grad_output.dtype:
        result = avg_pool2d_backward_of_shape(grad_output, self.shape, format_of(self), *geometry)
    if result is None:
        result = aten.avg_pool2d_backward.grad_input(grad_output, self, *geometry, grad_input=self.new_empty(0))
    return result


# ---- max pool --------------------------------------------------------------------------------------------------------


def max_pool2d_with_indices(
    self: Tensor,
    kernel_size: Ints,
    stride: Ints = (),
    padding: Ints = (0,),
    dilation: Ints = (1,),
    ceil_mode: bool = False,
) -> tuple[Tensor, Tensor]:
    """aten::max_pool2d_with_indices."""
    shape = None
    memory_format = format_of(self)
    if is_pooled(self, self.shape, memory_format) and dilation.count(1) == len(dilation):
        shape = pooled_shape(self.shape, kernel_size, stride, padding, ceil_mode)
    if shape is not None:
        out, indices = (new(self, shape, memory_format, dtype) for dtype in (None, torch.int64))
        geometry = pair(kernel_size), pair(stride or kernel_size), pair(padding), 1, ceil_mode
        results = {"out": array_of(out), "indices": indices.numpy()}
        if run(_native.max_pool2d_with_indices, array_of(self), *geometry, **results):
            return out, indices
    given = kernel_size, stride, padding, dilation, ceil_mode
    fresh = {"out": self.new_empty(0), "indices": self.new_empty(0, dtype=torch.int64)}
    pooled: tuple[Tensor, Tensor] = aten.max_pool2d_with_indices.out(self, *given, **fresh)
    return pooled


def max_pool2d_with_indices_backward_of_shape(
    grad_output: Tensor,
    shape: Ints,
    memory_format: torch.memory_format,
    kernel_size: Ints,
    stride: Ints,
    padding: Ints,
    dilation: Ints,
    ceil_mode: bool,
    indices: Tensor,
) -> Tensor | None:
    """Return the gradient of an input of this shape, or None where it is PyTorch's to compute or to refuse."""
    if (
        is_pooled(grad_output, shape, memory_format, SCATTERED)
        and indices.dtype is torch.int64
        and indices.shape == grad_output.shape == pooled_shape(shape, kernel_size, stride, padding, ceil_mode)
        and dilation.count(1) == len(dilation)
    ):
        grad_input = new(grad_output, shape, memory_format)
        geometry = pair(kernel_size), pair(stride or kernel_size), pair(padding), 1, ceil_mode
        given = array_of(grad_output), tuple(shape), *geometry, array_of(indices)
        if run(_native.max_pool2d_with_indices_backward, *given, out=array_of(grad_input)):
            return grad_input
    return None


def max_pool2d_with_indices_backward(grad_output: Tensor, self: Tensor, *geometry: Any) -> Tensor:
    """aten::max_pool2d_with_indices_backward."""
    result: Tensor | None = None
    if self.dtype is grad_output.dtype:
        result = max_pool2d_with_indices_backward_of_shape(grad_output, self.shape, format_of(self), *geometry)
    if result is None:
        fresh = self.new_empty(0)
        result = aten.max_pool2d_with_indices_backward.grad_input(grad_output, self, *geometry, grad_input=fresh)
    return result


# ---- columns ---------------------------------------------------------------------------------------------------------


def positions(shape: Ints, kernel: Ints, dilation: Ints, padding: Ints, stride: Ints) -> tuple[int, int] | None:
    """Return the numbers of windows down and across; None where there are none, which is PyTorch's to say."""
    if not all(len(values) == 2 for values in (kernel, dilation, padding, stride)):
        return None
    if min(*kernel, *dilation, *stride) < 1 or min(padding) < 0:
        return None
    rows, columns = (
        (size + 2 * p - d * (k - 1) - 1) // s + 1
        for size, k, d, p, s in zip(shape[-2:], kernel, dilation, padding, stride, strict=True)
    )
    return (rows, columns) if rows > 0 and columns > 0 else None


def im2col(self: Tensor, kernel_size: Ints, dilation: Ints, padding: Ints, stride: Ints) -> Tensor:
    """aten::im2col."""
    windows = None
    if is_taken(self) and self.dim() in (3, 4):
        windows = positions(self.shape, kernel_size, dilation, padding, stride)
    if windows is not None:
        shape = (*self.shape[:-3], self.shape[-3] * kernel_size[0] * kernel_size[1], windows[0] * windows[1])
        out = new(self, shape, torch.contiguous_format)
        geometry = kernel_size, dilation, padding, stride
        if run(_native.im2col, array_of(self), *geometry, out=array_of(out)):
            return out
    result: Tensor = aten.im2col.out(self, kernel_size, dilation, padding, stride, out=self.new_empty(0))
    return result


def col2im(self: Tensor, output_size: Ints, kernel_size: Ints, dilation: Ints, padding: Ints, stride: Ints) -> Tensor:
    """aten::col2im."""
    if is_taken(self) and self.dim() in (2, 3) and len(output_size) == len(kernel_size) == 2 and min(kernel_size) > 0:
        shape = (*self.shape[:-2], self.shape[-2] // (kernel_size[0] * kernel_size[1]), *output_size)
        if min(shape) > 0:
            out = new(self, shape, torch.contiguous_format)
            geometry = output_size, kernel_size, dilation, padding, stride
            if run(_native.im2col_backward, array_of(self), *geometry, out=array_of(out)):
                return out
    given = output_size, kernel_size, dilation, padding, stride
    result: Tensor = aten.col2im.out(self, *given, out=self.new_empty(0))
    return result


# ---- replication pad -------------------------------------------------------------------------------------------------


def padded_shape(shape: Ints, padding: Ints) -> tuple[int, ...] | None:
    """Return the shape of what the pad returns; None where it has none, which is PyTorch's to say."""
    if len(shape) not in (3, 4) or len(padding) != 4:
        return None
    left, right, top, bottom = padding
    sizes = shape[-2] + top + bottom, shape[-1] + left + right
    return (*shape[:-2], *sizes) if min(sizes) > 0 else None


def replication_pad2d(self: Tensor, padding: Ints) -> Tensor:
    """aten::replication_pad2d."""
    shape = padded_shape(self.shape, padding) if is_taken(self, COPIED) else None
    if shape is not None:
        out = new(self, shape, format_of(self))
        if run(_native.replication_pad2d, array_of(self), padding, out=array_of(out)):
            return out
    result: Tensor = aten.replication_pad2d(self, padding)  # which is PyTorch's always
    return result


COMPLEX_OR_REAL = REAL | {torch.complex64, torch.complex128}


def replication_pad2d_backward_of_shape(
    grad_output: Tensor, shape: Ints, memory_format: torch.memory_format, padding: Ints
) -> Tensor | None:
    """Return the gradient of an input of this shape, or None where it is PyTorch's to compute or to refuse."""
    if is_taken(grad_output, COMPLEX_OR_REAL) and padded_shape(shape, padding) == grad_output.shape:
        grad_input = new(grad_output, shape, memory_format)
        given = array_of(grad_output), tuple(shape), padding
        if run(_native.replication_pad2d_backward, *given, out=array_of(grad_input)):
            return grad_input
    return None


def replication_pad2d_backward(grad_output: Tensor, self: Tensor, padding: Ints) -> Tensor:
    """aten::replication_pad2d_backward."""
    result: Tensor | None = None
    if self.dtype is grad_output.dtype:
        result = replication_pad2d_backward_of_shape(grad_output, self.shape, format_of(self), padding)
    if result is None:
        result = aten.replication_pad2d_backward.grad_input(grad_output, self, padding, grad_input=self.new_empty(0))
    return result


# ---- upsampling ------------------------------------------------------------------------------------------------------


def compare_maps(length: int, output_length: int, scales: float | None) -> bool:
    """Whether PyTorch's kernels, as they are compiled here, read the elements that ours read.

    Theirs multiply in another order, and a compiler may fuse that with an addition. A gradient of ones counts the
    readers of each element; what does not decrease is known by these counts.
    """
    if max(length, output_length) > 1 << 24:  # float32 counts no further
        return False
    places = torch.arange(length, dtype=torch.float32, device="cpu").reshape(1, 1, -1)
    read = aten._upsample_nearest_exact1d.out(places, [output_length], scales, out=places.new_empty(0))
    ones, fresh = torch.ones(1, 1, output_length, device="cpu"), places.new_empty(0)
    sizes = [output_length], [1, 1, length], scales
    added = aten._upsample_nearest_exact1d_backward.grad_input(ones, *sizes, grad_input=fresh)
    ours = _native.upsample_nearest_exact1d(places.numpy(), output_length, scales)
    ours_added = _native.upsample_nearest_exact1d_backward(ones.numpy(), *sizes)
    return np.array_equal(ours, read.numpy()) and np.array_equal(ours_added, added.numpy())


maps_agree = lru_cache(maxsize=4096)(compare_maps)


def is_upsampled(tensor: Tensor, lengths: Ints, scales: float | None) -> bool:
    """Whether the upsampling of such a tensor, or its gradient, is ours."""
    if not is_taken(tensor, UPSAMPLED) or tensor.dim() != 3 or min(lengths) < 1:
        return False
    return maps_agree(lengths[0], lengths[1], scales)


def upsample_nearest_exact1d(self: Tensor, output_size: Ints, scales: float | None = None) -> Tensor:
    """aten::_upsample_nearest_exact1d."""
    if len(output_size) == 1 and is_upsampled(self, (self.shape[-1], output_size[0]), scales):
        out = new(self, (*self.shape[:-1], output_size[0]), torch.contiguous_format)
        if run(_native.upsample_nearest_exact1d, array_of(self), output_size, scales, out=array_of(out)):
            return out
    result: Tensor = aten._upsample_nearest_exact1d.out(self, output_size, scales, out=self.new_empty(0))
    return result


def upsample_nearest_exact1d_backward(
    grad_output: Tensor, output_size: Ints, input_size: Ints, scales: float | None = None
) -> Tensor:
    """aten::_upsample_nearest_exact1d_backward."""
    if (
        len(output_size) == 1
        and len(input_size) == 3
        and grad_output.shape == (*input_size[:2], output_size[0])
        and is_upsampled(grad_output, (input_size[2], output_size[0]), scales)
    ):
        grad_input = new(grad_output, input_size, torch.contiguous_format)
        given = array_of(grad_output), output_size, input_size, scales
        if run(_native.upsample_nearest_exact1d_backward, *given, out=array_of(grad_input)):
            return grad_input
    sizes = output_size, input_size, scales
    fresh = grad_output.new_empty(0)
    result: Tensor = aten._upsample_nearest_exact1d_backward.grad_input(grad_output, *sizes, grad_input=fresh)
    return result
