"""The product tables, as one pure function: an operator that takes no dtype on a product does not exist there."""
from aclnn_bw._core.names cimport TEXT, choose, dtype_name, name, product_name, snprintf
from aclnn_bw._core.status cimport refuse
from aclnn_bw._core.types cimport (
    ASCEND910B, AVG_POOL2D_BACKWARD, DT_BF16, DT_DOUBLE, DT_FLOAT, DT_FLOAT16, ERR_INVALID, HOST, SUCCESS, Context,
)


cdef bint takes_dtype(int op, int product, int dtype) noexcept nogil:
    if op == AVG_POOL2D_BACKWARD:
        return (dtype in (DT_FLOAT, DT_FLOAT16)
                or (dtype == DT_BF16 and product in (ASCEND910B, HOST))
                or (dtype == DT_DOUBLE and product == HOST))
    return False


cdef bint has_operator(int op, int product) noexcept nogil:
    cdef int dtype
    for dtype in range(DT_BF16 + 1):
        if takes_dtype(op, product, dtype):
            return True
    return False


cdef int check_dtype(const Context* context, int op, int argument, int dtype, bint swapped) noexcept nogil:
    cdef char[TEXT] text
    cdef int used = 0
    cdef int allowed
    if swapped:
        return refuse(ERR_INVALID, "%s.dtype = %s in swapped byte order: must be in native byte order",
                      name(context, argument), dtype_name(dtype))
    if takes_dtype(op, context.product, dtype):
        return SUCCESS
    text[0] = 0
    for allowed in range(DT_BF16 + 1):
        if takes_dtype(op, context.product, allowed) and used < TEXT:
            used += snprintf(text + used, <size_t>(TEXT - used), "%s%s", choose(used > 0, ", ", ""),
                             dtype_name(allowed))
    return refuse(ERR_INVALID, "%s.dtype = %s: must be one of %s on %s", name(context, argument), dtype_name(dtype),
                  text, product_name(context.product))
