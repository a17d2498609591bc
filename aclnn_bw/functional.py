"""The one-call functions: NumPy in, NumPy out, with the names and argument order of torch.ops.aten."""

from __future__ import annotations

from aclnn_bw._native import (
    avg_pool2d_backward,
    im2col_backward,
    max_pool2d_with_mask,
    max_pool2d_with_mask_backward,
    replication_pad2d_backward,
    upsample_nearest_exact1d_backward,
)

__all__ = [
    "avg_pool2d_backward",
    "im2col_backward",
    "max_pool2d_with_mask",
    "max_pool2d_with_mask_backward",
    "replication_pad2d_backward",
    "upsample_nearest_exact1d_backward",
]
