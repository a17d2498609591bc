"""Tensor descriptors: views with any strides and offset over a storage, and what is proved about them."""
from libc.stdint cimport int64_t

from aclnn_bw._core.arithmetic cimport mul_overflows
from aclnn_bw._core.types cimport (
    DT_BF16, DT_BOOL, DT_COMPLEX128, DT_COMPLEX32, DT_COMPLEX64, DT_DOUBLE, DT_FLOAT, DT_FLOAT16, DT_FLOAT8_E4M3FN,
    DT_FLOAT8_E5M2, DT_FLOAT8_E8M0, DT_HIFLOAT8, DT_INT16, DT_INT32, DT_INT64, DT_INT8, DT_UINT16, DT_UINT32, DT_UINT64,
    DT_UINT8, Context, Tensor,
)

cdef extern int64_t traffic "aclnn_bw_traffic" (const Tensor* tensor, int64_t item) noexcept nogil
cdef extern void make_row_major "aclnn_bw_make_row_major" (Tensor* tensor) noexcept nogil
cdef extern void plain_strides "aclnn_bw_plain_strides" (const Tensor* tensor, int64_t* strides) noexcept nogil
cdef extern int64_t reach_of "aclnn_bw_reach_of" (const Tensor* tensor) noexcept nogil
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


cdef inline int64_t item_size(int dtype) noexcept nogil:
    """Bytes of one element; 0 for a dtype that does not exist, or whose elements have no whole bytes."""
    if dtype in (DT_FLOAT, DT_INT32, DT_UINT32, DT_COMPLEX32):
        return 4
    if dtype in (DT_DOUBLE, DT_INT64, DT_UINT64, DT_COMPLEX64):
        return 8
    if dtype in (DT_FLOAT16, DT_BF16, DT_INT16, DT_UINT16):
        return 2
    if dtype in (DT_INT8, DT_UINT8, DT_BOOL, DT_HIFLOAT8, DT_FLOAT8_E5M2, DT_FLOAT8_E4M3FN, DT_FLOAT8_E8M0):
        return 1
    return 16 if dtype == DT_COMPLEX128 else 0


cdef inline int64_t tensor_size(const Tensor* tensor) noexcept nogil:
    """math.prod(dims), or -1 if that is beyond int64."""
    cdef int64_t size = 1
    cdef int64_t i
    cdef bint too_large = False
    for i in range(tensor.rank):
        if tensor.dims[i] == 0:
            return 0
        too_large = mul_overflows(size, tensor.dims[i], &size) or too_large
    return -1 if too_large else size
