"""Tensor descriptors: views with any strides and offset over a storage, and what is proved about them."""
from libc.stdint cimport int64_t

from aclnn_bw._core.types cimport Context, Tensor

cdef extern int64_t item_size "aclnn_bw_item_size" (int dtype) noexcept nogil
cdef extern int64_t tensor_size "aclnn_bw_tensor_size" (const Tensor* tensor) noexcept nogil
cdef extern int64_t traffic "aclnn_bw_traffic" (const Tensor* tensor, int64_t item) noexcept nogil
cdef extern void make_row_major "aclnn_bw_make_row_major" (Tensor* tensor) noexcept nogil
cdef extern void plain_strides "aclnn_bw_plain_strides" (const Tensor* tensor, int64_t* strides) noexcept nogil
cdef extern bint tensor_bounds "aclnn_bw_tensor_bounds" (
    const Tensor* tensor, int64_t* low, int64_t* high) noexcept nogil
cdef extern int check_writable "aclnn_bw_check_writable" (
    const Context* context, int argument, const Tensor* tensor) noexcept nogil
cdef extern int check_alignment "aclnn_bw_check_alignment" (
    const Context* context, int argument, const Tensor* tensor) noexcept nogil
cdef extern int check_bounds "aclnn_bw_check_bounds" (
    const Context* context, int argument, const Tensor* tensor) noexcept nogil
cdef extern int check_injective "aclnn_bw_check_injective" (
    const Context* context, int argument, const Tensor* tensor) noexcept nogil
cdef extern bint tensors_overlap "aclnn_bw_tensors_overlap" (
    const Tensor* written, const char* written_data, const Tensor* other, const char* other_data) noexcept nogil
cdef extern bint tensor_meets "aclnn_bw_tensor_meets" (
    const Tensor* tensor, const char* data, const char* begin, int64_t size) noexcept nogil
