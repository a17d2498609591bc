"""Calls for type checkers, which must object to each line that ends with "# wrong", and to no other.

Nothing runs this file: tests/test_typing.py gives it to mypy and pyright.
"""

from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

import aclnn_bw
from aclnn_bw import SocName


class Interface:
    """An array of another library."""

    @property
    def __array_interface__(self) -> dict[str, Any]:
        return {}


class Tensor:
    """A tensor of another library."""

    def __dlpack__(self) -> Any:
        return None


single: NDArray[np.float32] = np.ones((1, 1, 4, 4), np.float32)
double: NDArray[np.float64] = np.ones((1, 1, 4, 4))
halves: NDArray[np.float16] = np.ones((1, 1, 4, 4), np.float16)
unknown: NDArray[Any] = single
mask: NDArray[np.int8] = np.zeros((1, 1, 4, 64), np.int8)
indices: NDArray[np.int64] = np.zeros((1, 1, 2, 2), np.int64)
tensor = Tensor()

# ---- the dtype of the result is that of the first argument ----------------------------------------------------------

is_single: NDArray[np.float32]
is_double: NDArray[np.float64]
is_halves: NDArray[np.float16]

is_single = aclnn_bw.avg_pool2d_backward(single, (1, 1, 8, 8), 2)
is_double = aclnn_bw.avg_pool2d_backward(double, (1, 1, 8, 8), 2)
is_halves = aclnn_bw.avg_pool2d_backward(halves, (1, 1, 8, 8), 2)
is_double = aclnn_bw.avg_pool2d_backward(single, (1, 1, 8, 8), 2)  # wrong
is_single = aclnn_bw.avg_pool2d_backward(double, (1, 1, 8, 8), 2)  # wrong
is_single = aclnn_bw.avg_pool2d_backward(halves, (1, 1, 8, 8), 2)  # wrong

is_single = aclnn_bw.avg_pool2d(single, 2)
is_double = aclnn_bw.avg_pool2d(single, 2)  # wrong
is_single = aclnn_bw.im2col(single, 2)
is_double = aclnn_bw.im2col(single, 2)  # wrong
is_single = aclnn_bw.im2col_backward(single, (4, 4), 2)
is_double = aclnn_bw.im2col_backward(single, (4, 4), 2)  # wrong
is_single = aclnn_bw.replication_pad2d(single, 1)
is_double = aclnn_bw.replication_pad2d(single, 1)  # wrong
is_single = aclnn_bw.replication_pad2d_backward(single, (1, 1, 2, 2), 1)
is_double = aclnn_bw.replication_pad2d_backward(single, (1, 1, 2, 2), 1)  # wrong
is_single = aclnn_bw.upsample_nearest_exact1d(single, 8)
is_double = aclnn_bw.upsample_nearest_exact1d(single, 8)  # wrong
is_single = aclnn_bw.upsample_nearest_exact1d_backward(single, 4, (1, 1, 2))
is_double = aclnn_bw.upsample_nearest_exact1d_backward(single, 4, (1, 1, 2))  # wrong
is_single = aclnn_bw.max_pool2d_with_mask_backward(single, (1, 1, 8, 8), mask, 2)
is_double = aclnn_bw.max_pool2d_with_mask_backward(single, (1, 1, 8, 8), mask, 2)  # wrong
is_single = aclnn_bw.max_pool2d_with_indices_backward(single, (1, 1, 8, 8), 2, 2, 0, 1, False, indices)
is_double = aclnn_bw.max_pool2d_with_indices_backward(single, (1, 1, 8, 8), 2, 2, 0, 1, False, indices)  # wrong

# Both results of the forwards of the max pool: the maxima are like the first argument, the masks and indices are not.
both_masked: tuple[NDArray[np.float32], NDArray[np.int8]] = aclnn_bw.max_pool2d_with_mask(single, 2)
both_wrong: tuple[NDArray[np.float64], NDArray[np.int8]] = aclnn_bw.max_pool2d_with_mask(single, 2)  # wrong
mask_wrong: tuple[NDArray[np.float32], NDArray[np.uint8]] = aclnn_bw.max_pool2d_with_mask(single, 2)  # wrong
both_indexed: tuple[NDArray[np.float32], NDArray[np.int64]] = aclnn_bw.max_pool2d_with_indices(single, 2)
index_wrong: tuple[NDArray[np.float32], NDArray[np.int8]] = aclnn_bw.max_pool2d_with_indices(single, 2)  # wrong

# ---- other arrays, and memory that is given -------------------------------------------------------------------------

is_single = aclnn_bw.avg_pool2d(unknown, 2)
is_single = aclnn_bw.avg_pool2d(Interface(), 2)
is_single = aclnn_bw.avg_pool2d(tensor, 2)  # wrong
is_tensor: Tensor = aclnn_bw.avg_pool2d(tensor, 2)
is_double = aclnn_bw.avg_pool2d(tensor, 2, out=double)
is_single = aclnn_bw.avg_pool2d(tensor, 2, out=double)  # wrong
aclnn_bw.avg_pool2d([[1.0]], 2)  # wrong
aclnn_bw.avg_pool2d(single, 2.5)  # wrong
aclnn_bw.avg_pool2d(single, 2, kernal_size=2)  # wrong

# ---- names of products and mask layouts -----------------------------------------------------------------------------

name = str(aclnn_bw)
aclnn_bw.soc("Host")
aclnn_bw.soc("Ascend910B3", mask_layout="argmax")
aclnn_bw.soc(aclnn_bw.aclrtGetSocName())
aclnn_bw.soc(cast(SocName, name))
aclnn_bw.aclrtSetSocName("Ascend310P")
aclnn_bw.soc("Hots")  # wrong
aclnn_bw.soc(name)  # wrong
aclnn_bw.soc("Host", mask_layout="bitmap")  # wrong
aclnn_bw.aclrtSetSocName("Ascend910C")  # wrong
aclnn_bw.mask_to_indices(mask, (1, 1, 4, 4), 2, mask_layout="bits")  # wrong

# ---- two phases -----------------------------------------------------------------------------------------------------

size, executor = aclnn_bw.aclnnIm2colGetWorkspaceSize(single, [2, 2], [1, 1], [0, 0], [2, 2], single)
aclnn_bw.aclnnIm2col(bytearray(size), size, executor)
aclnn_bw.aclnnIm2col(bytearray(size), size, None)
aclnn_bw.aclnnIm2col(bytearray(size), executor, size)  # wrong
aclnn_bw.aclnnIm2colGetWorkspaceSize(single, 2, [1, 1], [0, 0], [2, 2], single)  # wrong
