"""Five gradients inside PyTorch: forwards of its own or of aclnn_bw, backwards of aclnn_bw.

Tensors on the CPU go in and come out without a copy. Run it to check every gradient by finite differences.
"""

from typing import Any

import torch
from torch.autograd.function import once_differentiable
from torch.nn import functional

import aclnn_bw


class AvgPool2d(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, *geometry: Any) -> torch.Tensor:
        ctx.shape, ctx.geometry = x.shape, geometry
        return functional.avg_pool2d(x, *geometry)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_output: torch.Tensor) -> Any:
        grad_input = aclnn_bw.avg_pool2d_backward(grad_output, ctx.shape, *ctx.geometry)
        return grad_input, *(None for _ in ctx.geometry)


class MaxPool2d(torch.autograd.Function):
    """Its mask takes one bit for each window and kernel position; PyTorch keeps 8 bytes for each window."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, *geometry: Any) -> torch.Tensor:
        out, mask = aclnn_bw.max_pool2d_with_mask(x.detach(), *geometry)
        ctx.shape, ctx.geometry = x.shape, geometry
        ctx.save_for_backward(mask)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_output: torch.Tensor) -> Any:
        (mask,) = ctx.saved_tensors
        grad_input = aclnn_bw.max_pool2d_with_mask_backward(grad_output, ctx.shape, mask, *ctx.geometry)
        return grad_input, *(None for _ in ctx.geometry)


class UpsampleNearestExact1d(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, size: int) -> torch.Tensor:
        ctx.shape, ctx.size = x.shape, size
        return functional.interpolate(x, size, mode="nearest-exact")

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_output: torch.Tensor) -> Any:
        return aclnn_bw.upsample_nearest_exact1d_backward(grad_output, ctx.size, ctx.shape), None


class Unfold(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, *geometry: Any) -> torch.Tensor:
        ctx.size, ctx.geometry = x.shape[-2:], geometry
        return functional.unfold(x, *geometry)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_output: torch.Tensor) -> Any:
        grad_input = aclnn_bw.im2col_backward(grad_output, ctx.size, *ctx.geometry)
        return grad_input, *(None for _ in ctx.geometry)


class ReplicationPad2d(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, padding: tuple[int, int, int, int]) -> torch.Tensor:
        ctx.shape, ctx.padding = x.shape, padding
        return functional.pad(x, padding, mode="replicate")

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_output: torch.Tensor) -> Any:
        return aclnn_bw.replication_pad2d_backward(grad_output, ctx.shape, ctx.padding), None


def main() -> None:
    torch.manual_seed(0)
    image = torch.rand(2, 2, 5, 6, dtype=torch.float64, requires_grad=True)
    row = torch.rand(2, 3, 5, dtype=torch.float64, requires_grad=True)
    cases: dict[Any, tuple[Any, ...]] = {
        AvgPool2d: (image, 3, 2, 1),
        MaxPool2d: (image, 3, 2, 1),
        UpsampleNearestExact1d: (row, 12),
        Unfold: (image, (2, 3), 1, 1, 2),
        ReplicationPad2d: (image, (1, 2, 0, 3)),
    }
    for function, arguments in cases.items():
        assert torch.autograd.gradcheck(function.apply, arguments)
        print(f"{function.__name__}: the gradient is right")


if __name__ == "__main__":
    main()
