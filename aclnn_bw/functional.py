"""The one-call functions: NumPy in, NumPy out, with the names and argument order of torch.ops.aten."""

from __future__ import annotations

from aclnn_bw._native import avg_pool2d_backward

__all__ = ["avg_pool2d_backward"]
