"""The records of operators.def, and what phase 1 does by them for every operator: nulls, products, dtypes, tensors."""
from libc.stdint cimport int64_t

from aclnn_bw._core.checks cimport format_is_plain, not_null, rank_3_or_4, same_dtype, same_format, same_rank
from aclnn_bw._core.executor cimport check_tensors, delete_executor, new_executor
from aclnn_bw._core.names cimport (
    TEXT, choose, default_rules, dtype_text, host_rules, name, operator_name, product_name, snprintf,
)
from aclnn_bw._core.status cimport refuse
from aclnn_bw._core.types cimport (
    ASCEND910B, C_CALL, DT_BF16, DT_INT32, DT_INT64, DT_INT8, END, ERR_CREATE_EXECUTOR, ERR_INVALID, HOST, HOST_INT64,
    INTS, IS_INDICES, IS_MASK, LEADS, NO_RESULT, NULLABLE, ONE_CALL, OPERATORS, OWN_DTYPE, SUCCESS, SWAPPED, TWO_PHASE,
    WRITTEN, Arguments, Context, Executor, Fact, Parameter, Record, Tensor,
)

cdef extern from "operators_table.h" nogil:
    const Record* table "aclnn_bw_table"


cdef const Record* operator_of(int op) noexcept nogil:
    return &table[op] if 0 <= op < OPERATORS else NULL


cdef bint takes_dtype(int op, int product, int dtype) noexcept nogil:
    return 0 <= dtype <= DT_BF16 and table[op].dtypes[product] >> dtype & 1 != 0


cdef bint indices_dtype(const Context* context, const Parameter* parameter, int dtype) noexcept nogil:
    return dtype == DT_INT32 or (dtype == DT_INT64 and (
        context.product == HOST or not parameter.flags & HOST_INT64))


cdef const char* instead_of_mask(const Context* context, const Parameter* parameter, int dtype) noexcept nogil:
    """What helps a caller whose mask has another dtype."""
    if dtype != DT_INT32 and dtype != DT_INT64:
        return "the forward makes it"
    if parameter.kind == WRITTEN:
        return choose(context.face == ONE_CALL, "max_pool2d_with_indices writes indices",
                      "aclnnMaxPool2dWithIndices writes indices")
    if context.face == ONE_CALL:
        return "max_pool2d_with_indices_backward takes indices, and indices_to_mask makes a mask of them"
    return choose(context.face == C_CALL, "aclnnMaxPool2dWithIndicesBackward takes indices",
                  "aclnnMaxPool2dWithIndicesBackward takes indices, and indices_to_mask makes a mask of them")


cdef int check_dtype(const Context* context, const Parameter* parameter, const Tensor* tensor, int op) noexcept nogil:
    cdef char[TEXT] text
    cdef const char* argument = name(context, parameter.argument)
    cdef const char* use = ""
    cdef const char* rules = ""
    cdef int used = 0
    cdef int dtype = tensor.dtype
    cdef int allowed
    cdef bint wide_too
    if parameter.flags & IS_MASK:
        if dtype == DT_INT8:
            return SUCCESS
        return refuse(ERR_INVALID, "%s.dtype = %s: must be %s; %s", argument, dtype_text(context, dtype),
                      dtype_text(context, DT_INT8), instead_of_mask(context, parameter, dtype))
    if tensor.flags & SWAPPED:
        return refuse(ERR_INVALID, "%s.dtype = %s in swapped byte order: must be in native byte order; convert it, as "
                      "a.astype(a.dtype.newbyteorder('=')) does", argument, dtype_text(context, dtype))
    if parameter.flags & IS_INDICES:
        if indices_dtype(context, parameter, dtype):
            return SUCCESS
        wide_too = indices_dtype(context, parameter, DT_INT64)
        return refuse(ERR_INVALID, "%s.dtype = %s: must be %s%s%s on %s", argument, dtype_text(context, dtype),
                      dtype_text(context, DT_INT32), choose(wide_too, " or ", ""),
                      choose(wide_too, dtype_text(context, DT_INT64), ""), product_name(context.product))
    if takes_dtype(op, context.product, dtype):
        return SUCCESS
    text[0] = 0
    for allowed in range(DT_BF16 + 1):
        if takes_dtype(op, context.product, allowed) and used < TEXT:
            used += snprintf(text + used, <size_t>(TEXT - used), "%s%s", choose(used > 0, ", ", ""),
                             dtype_text(context, allowed))
    if context.face in (TWO_PHASE, C_CALL) and takes_dtype(op, HOST, dtype):
        use = "; use "
        rules = default_rules(context) if takes_dtype(op, ASCEND910B, dtype) else host_rules(context)
    return refuse(ERR_INVALID, "%s.dtype = %s: must be one of %s on %s%s%s", argument, dtype_text(context, dtype), text,
                  product_name(context.product), use, rules)


cdef int check_first_dtype(const Context* context, const Arguments* c) noexcept nogil:
    return check_dtype(context, table[c.op].tensors, c.tensors[0], c.op)


cdef int check_nulls(const Context* context, const Arguments* c) noexcept nogil:
    """In the order of the call."""
    cdef const Parameter* parameter = table[c.op].parameters
    cdef int tensors = 0
    cdef int arrays = 0
    cdef int status = SUCCESS
    while parameter.kind != END and status == SUCCESS:
        if parameter.kind <= WRITTEN:
            status = not_null(context, parameter.argument, c.tensors[tensors])
            tensors += 1
        elif parameter.kind == INTS:
            if not parameter.flags & NULLABLE:
                status = not_null(context, parameter.argument, c.arrays[arrays])
            arrays += 1
        parameter += 1
    return status


cdef int check_dtypes(const Context* context, const Arguments* c) noexcept nogil:
    """Those that the product takes; then equal to the first one's, where they need be; then those of indices."""
    cdef const Parameter* tensors = table[c.op].tensors
    cdef int status = SUCCESS
    cdef int lead = 0
    cdef int i = 0
    while tensors[i].kind != END and status == SUCCESS:
        if tensors[i].flags & LEADS:
            lead = i
            status = check_dtype(context, &tensors[i], c.tensors[i], c.op)
        i += 1
    i = 0
    while tensors[i].kind != END and status == SUCCESS:
        if not tensors[i].flags & IS_INDICES:
            status = check_dtype(context, &tensors[i], c.tensors[i], c.op)
        i += 1
    i = 0
    while tensors[i].kind != END and status == SUCCESS:
        if i != lead and not tensors[i].flags & (IS_MASK | IS_INDICES | OWN_DTYPE):
            status = same_dtype(context, tensors[i].argument, c.tensors[i], tensors[lead].argument, c.tensors[lead])
        i += 1
    i = 0
    while tensors[i].kind != END and status == SUCCESS:
        if tensors[i].flags & IS_INDICES:
            status = check_dtype(context, &tensors[i], c.tensors[i], c.op)
        i += 1
    return status


cdef bint common_is_good(const Context* context, const Arguments* c) noexcept nogil:
    """Whether check_common has nothing to say, found without its order: the usual call."""
    cdef const Parameter* tensors = table[c.op].tensors
    cdef const Parameter* arrays = table[c.op].arrays
    cdef const Tensor* tensor
    cdef int i = 0
    while arrays[i].kind != END:
        if c.arrays[i] == NULL and not arrays[i].flags & NULLABLE:
            return False
        i += 1
    i = 0
    while tensors[i].kind != END:
        tensor = c.tensors[i]
        if tensor == NULL or tensor.flags & SWAPPED:
            return False
        if tensors[i].flags & IS_MASK:
            if tensor.dtype != DT_INT8:
                return False
        elif tensors[i].flags & IS_INDICES:
            if not indices_dtype(context, &tensors[i], tensor.dtype):
                return False
        elif (not takes_dtype(c.op, context.product, tensor.dtype)
              or (tensor.dtype != c.tensors[0].dtype and not tensors[i].flags & OWN_DTYPE)):
            return False
        i += 1
    return True


cdef int check_common(const Context* context, const Arguments* c) noexcept nogil:
    """What every operator begins with: nulls, the product, dtypes; each in the order of the call."""
    cdef int status
    if common_is_good(context, c):
        return SUCCESS
    status = check_nulls(context, c)
    if status == SUCCESS and table[c.op].dtypes[context.product] == 0:
        return refuse(ERR_INVALID, "%s does not have %s; use %s", product_name(context.product), operator_name(c.op),
                      default_rules(context))
    return check_dtypes(context, c) if status == SUCCESS else status


cdef int check_images(const Context* context, const Arguments* c) noexcept nogil:
    """All tensors have rank 3 (C, H, W), or all have rank 4 (N, C, H, W)."""
    cdef const Parameter* tensors = table[c.op].tensors
    cdef int status = rank_3_or_4(context, tensors[0].argument, c.tensors[0])
    cdef int i = 1
    while tensors[i].kind != END and status == SUCCESS:
        status = same_rank(context, tensors[i].argument, c.tensors[i], tensors[0].argument, c.tensors[0])
        i += 1
    return status


cdef int check_same_formats(const Context* context, const Arguments* c) noexcept nogil:
    """The tensors have the format of the first one; a mask has any plain one, and so have indices."""
    cdef const Parameter* tensors = table[c.op].tensors
    cdef int status = SUCCESS
    cdef int i = 1
    while tensors[i].kind != END and status == SUCCESS:
        if tensors[i].flags & (IS_MASK | IS_INDICES):
            status = format_is_plain(context, tensors[i].argument, c.tensors[i])
        else:
            status = same_format(context, tensors[i].argument, c.tensors[i], tensors[0].argument, c.tensors[0])
        i += 1
    return status


cdef int start_executor(const Context* context, const Arguments* c, int64_t plan_size,
                        Executor** executor) noexcept nogil:
    """An executor with a zeroed plan behind it and all tensors of the call, whose memory has been checked."""
    cdef const Parameter* tensors = table[c.op].tensors
    cdef Executor* made = new_executor(context, c.op, plan_size)
    cdef int i = 0
    cdef int status
    if made == NULL:
        return refuse(ERR_CREATE_EXECUTOR, "executor: out of memory")
    while tensors[i].kind != END:
        made.tensor[i] = c.tensors[i][0]
        made.arguments[i] = tensors[i].argument
        made.roles[i] = tensors[i].kind
        i += 1
    made.tensors = i
    status = check_tensors(context, made)
    if status != SUCCESS:
        delete_executor(made)
        return status
    executor[0] = made
    return SUCCESS


cdef int like_self(const Context* context, const Arguments* c, Tensor* results) noexcept nogil:
    """A gradient of self's shape: the second tensor's, with the dtype of the first."""
    if c.tensors[0] == NULL or c.tensors[1] == NULL:
        return NO_RESULT
    results[0] = c.tensors[1][0]
    results[0].dtype = c.tensors[0].dtype
    return SUCCESS


cdef Fact* add_pair(Fact* fact, const char* called, int64_t first, int64_t second) noexcept nogil:
    fact.name = called
    fact.kind = INTS
    fact.count = 2
    fact.values[0] = first
    fact.values[1] = second
    return fact + 1
