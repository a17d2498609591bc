"""Which dtypes each product takes for each operator."""
from aclnn_bw._core.types cimport Context

cdef extern bint takes_dtype "aclnn_bw_takes_dtype" (int op, int product, int dtype) noexcept nogil
cdef extern bint has_operator "aclnn_bw_has_operator" (int op, int product) noexcept nogil
cdef extern int check_dtype "aclnn_bw_check_dtype" (
    const Context* context, int op, int argument, int dtype, bint swapped) noexcept nogil
