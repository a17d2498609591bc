"""MaxPool2dWithIndices and MaxPool2dWithIndicesBackward; their plans are those of max_pool2d.pxd."""
from libc.stdint cimport int64_t

from aclnn_bw._core.types cimport Arguments, Context, Executor, Fact, Tensor

cdef extern int max_pool2d_with_indices "aclnn_bw_max_pool2d_with_indices" (
    const Context* context, const Arguments* c, Executor** executor) noexcept nogil
cdef extern int64_t forward_facts "aclnn_bw_max_pool2d_with_indices_facts" (
    const Executor* executor, Fact* fact) noexcept nogil
cdef extern int forward_result "aclnn_bw_max_pool2d_with_indices_result" (
    const Context* context, const Arguments* c, Tensor* results) noexcept nogil
cdef extern int max_pool2d_with_indices_backward "aclnn_bw_max_pool2d_with_indices_backward" (
    const Context* context, const Arguments* c, Executor** executor) noexcept nogil
cdef extern int64_t backward_facts "aclnn_bw_max_pool2d_with_indices_backward_facts" (
    const Executor* executor, Fact* fact) noexcept nogil
