"""The records of the operators, and the checks and steps of phase 1 that follow from them."""
from libc.stdint cimport int64_t

from aclnn_bw._core.types cimport Arguments, Context, Executor, Fact, Record, Tensor

cdef extern const Record* operator_of "aclnn_bw_operator_of" (int op) noexcept nogil
cdef extern bint takes_dtype "aclnn_bw_takes_dtype" (int op, int product, int dtype) noexcept nogil
cdef extern int check_nulls "aclnn_bw_check_nulls" (const Context* context, const Arguments* c) noexcept nogil
cdef extern int check_dtypes "aclnn_bw_check_dtypes" (const Context* context, const Arguments* c) noexcept nogil
cdef extern int check_first_dtype "aclnn_bw_check_first_dtype" (
    const Context* context, const Arguments* c) noexcept nogil
cdef extern int check_common "aclnn_bw_check_common" (const Context* context, const Arguments* c) noexcept nogil
cdef extern int check_images "aclnn_bw_check_images" (const Context* context, const Arguments* c) noexcept nogil
cdef extern int check_same_formats "aclnn_bw_check_same_formats" (
    const Context* context, const Arguments* c) noexcept nogil
cdef extern int start_executor "aclnn_bw_start_executor" (
    const Context* context, const Arguments* c, int64_t plan_size, Executor** executor) noexcept nogil
cdef extern int like_self "aclnn_bw_like_self_result" (
    const Context* context, const Arguments* c, Tensor* results) noexcept nogil
cdef extern Fact* add_pair "aclnn_bw_add_pair" (
    Fact* fact, const char* called, int64_t first, int64_t second) noexcept nogil
