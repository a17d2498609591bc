"""The product tables, as one pure function: an operator that takes no dtype on a product does not exist there."""
from aclnn_bw._core.names cimport TEXT, choose, default_rules, dtype_name, host_rules, name, product_name, snprintf
from aclnn_bw._core.status cimport refuse
from aclnn_bw._core.types cimport (
    ASCEND310P, ASCEND910, ASCEND910B, AVG_POOL2D_BACKWARD, C_CALL, DT_BF16, DT_COMPLEX128, DT_COMPLEX64, DT_DOUBLE,
    DT_FLOAT, DT_FLOAT16, ERR_INVALID, HOST, MAX_POOL2D_WITH_MASK, REPLICATION_PAD2D_BACKWARD, SUCCESS, TWO_PHASE,
    UPSAMPLE_NEAREST_EXACT1D_BACKWARD, Context,
)


cdef bint takes_dtype(int op, int product, int dtype) noexcept nogil:
    if op == REPLICATION_PAD2D_BACKWARD:
        return (dtype in (DT_FLOAT, DT_FLOAT16, DT_DOUBLE, DT_COMPLEX64, DT_COMPLEX128)
                or (dtype == DT_BF16 and product in (ASCEND910B, HOST)))
    if product == ASCEND310P:
        if op == MAX_POOL2D_WITH_MASK:
            return dtype == DT_FLOAT
        if op != AVG_POOL2D_BACKWARD:
            return False
    if product == ASCEND910 and op == UPSAMPLE_NEAREST_EXACT1D_BACKWARD:
        return False
    return (dtype in (DT_FLOAT, DT_FLOAT16)
            or (dtype == DT_BF16 and product in (ASCEND910B, HOST))
            or (dtype == DT_DOUBLE and product == HOST))


cdef bint has_operator(int op, int product) noexcept nogil:
    cdef int dtype
    for dtype in range(DT_BF16 + 1):
        if takes_dtype(op, product, dtype):
            return True
    return False


cdef int check_dtype(const Context* context, int op, int argument, int dtype, bint swapped) noexcept nogil:
    cdef char[TEXT] text
    cdef const char* use = ""
    cdef const char* rules = ""
    cdef int used = 0
    cdef int allowed
    if swapped:
        return refuse(ERR_INVALID, "%s.dtype = %s in swapped byte order: must be in native byte order; convert it, as "
                      "a.astype(a.dtype.newbyteorder('=')) does", name(context, argument), dtype_name(dtype))
    if takes_dtype(op, context.product, dtype):
        return SUCCESS
    text[0] = 0
    for allowed in range(DT_BF16 + 1):
        if takes_dtype(op, context.product, allowed) and used < TEXT:
            used += snprintf(text + used, <size_t>(TEXT - used), "%s%s", choose(used > 0, ", ", ""),
                             dtype_name(allowed))
    if context.face in (TWO_PHASE, C_CALL) and takes_dtype(op, HOST, dtype):
        use = "; use "
        rules = default_rules(context) if takes_dtype(op, ASCEND910B, dtype) else host_rules(context)
    return refuse(ERR_INVALID, "%s.dtype = %s: must be one of %s on %s%s%s", name(context, argument), dtype_name(dtype),
                  text, product_name(context.product), use, rules)
