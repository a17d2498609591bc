"""MaxPool2dWithIndices and MaxPool2dWithIndicesBackward: what they refuse.

The rules follow the CANN operators (aclnnMaxPool2dWithIndices, aclnnMaxPool2dWithIndicesBackward) and PyTorch's
max_pool2d_with_indices; the checks run in one fixed order, and the first that fails speaks. The plans and the kernels
are those of the mask layout "argmax", which holds the same numbers.
"""
from libc.stdint cimport int64_t

from aclnn_bw._core.arithmetic cimport mul_overflows
from aclnn_bw._core.checks cimport addressable, rank_3_or_4, same_rank, shape_is, shape_made
from aclnn_bw._core.max_pool2d cimport (
    EACH, GATHER, INDEX_LIMIT, MaxPool2d, MaxPool2dShapes, check_pool_format, find_pooled, read_pool,
)
from aclnn_bw._core.max_pool2d_plan cimport add_pool, plan_gradient, plan_maxima
from aclnn_bw._core.names cimport TEXT, dtype_text, name, of_shape, product_name, tuple_text
from aclnn_bw._core.operators cimport check_common, check_first_dtype, check_nulls, check_same_formats
from aclnn_bw._core.status cimport refuse
from aclnn_bw._core.types cimport (
    ARG_GRAD_INPUT, ARG_GRAD_OUTPUT, ARG_INDICES, ARG_OUT, ARG_SELF, DT_INT64, ERR_INVALID, HOST, SUCCESS,
    Arguments, Context, Executor, Fact, Tensor,
)


cdef int check_positions(const Context* context, const Tensor* self, const Tensor* indices) noexcept nogil:
    """An index can count the plane: of int32, and on products of int64 too, whose kernels count in 32 bits."""
    cdef char[TEXT] text
    cdef int64_t positions = 0
    cdef int rank = self.rank
    if (indices.dtype == DT_INT64 and context.product == HOST) or (
            not mul_overflows(self.dims[rank - 2], self.dims[rank - 1], &positions) and positions <= INDEX_LIMIT):
        return SUCCESS
    return refuse(ERR_INVALID, "%s%s = %s: H * W must be <= %d for %s of %s on %s", name(context, ARG_SELF),
                  of_shape(context, ARG_SELF), tuple_text(text, self.dims, rank), INDEX_LIMIT,
                  name(context, ARG_INDICES), dtype_text(context, indices.dtype), product_name(context.product))


cdef int max_pool2d_with_indices(const Context* context, const Arguments* c, Executor** executor) noexcept nogil:
    """Phase 1 of the forward."""
    cdef const Tensor* self = c.tensors[0]
    cdef const Tensor* out = c.tensors[1]
    cdef const Tensor* indices = c.tensors[2]
    cdef MaxPool2dShapes shapes
    return (check_common(context, c)
            or check_pool_format(context, ARG_SELF, self)
            or check_same_formats(context, c)
            or rank_3_or_4(context, ARG_SELF, self)
            or read_pool(context, c, &shapes)
            or find_pooled(context, self, c.numbers[0] != 0, &shapes)
            or same_rank(context, ARG_OUT, out, ARG_SELF, self)
            or shape_made(context, ARG_OUT, out, shapes.out, "pooled", ARG_SELF, self)
            or same_rank(context, ARG_INDICES, indices, ARG_SELF, self)
            or shape_is(context, ARG_INDICES, indices, shapes.out, "the shape of out")
            or check_positions(context, self, indices)
            or addressable(context, ARG_SELF, self)
            or addressable(context, ARG_INDICES, indices)
            or plan_maxima(context, c, &shapes, indices, executor))


cdef int max_pool2d_with_indices_backward(const Context* context, const Arguments* c,
                                          Executor** executor) noexcept nogil:
    """Phase 1 of the backward."""
    cdef const Tensor* grad_output = c.tensors[0]
    cdef const Tensor* self = c.tensors[1]
    cdef const Tensor* indices = c.tensors[2]
    cdef const Tensor* grad_input = c.tensors[3]
    cdef MaxPool2dShapes shapes
    return (check_common(context, c)
            or check_pool_format(context, ARG_GRAD_OUTPUT, grad_output)
            or check_same_formats(context, c)
            or rank_3_or_4(context, ARG_SELF, self)
            or same_rank(context, ARG_GRAD_INPUT, grad_input, ARG_SELF, self)
            or same_rank(context, ARG_GRAD_OUTPUT, grad_output, ARG_SELF, self)
            or same_rank(context, ARG_INDICES, indices, ARG_SELF, self)
            or read_pool(context, c, &shapes)
            or shape_is(context, ARG_GRAD_INPUT, grad_input, self.dims, "self.shape")
            or find_pooled(context, self, c.numbers[0] != 0, &shapes)
            or shape_made(context, ARG_GRAD_OUTPUT, grad_output, shapes.out, "pooled", ARG_SELF, self)
            or shape_made(context, ARG_INDICES, indices, shapes.out, "pooled", ARG_SELF, self)
            or check_positions(context, self, indices)
            or addressable(context, ARG_GRAD_INPUT, grad_input)
            or addressable(context, ARG_INDICES, indices)
            or plan_gradient(context, c, &shapes, indices, executor))


cdef int forward_result(const Context* context, const Arguments* c, Tensor* results) noexcept nogil:
    """The maxima, and their indices as int64, as PyTorch has them."""
    cdef const Tensor* self = c.tensors[0]
    cdef MaxPool2dShapes shapes
    cdef int i
    cdef int status = (check_nulls(context, c)
                       or check_first_dtype(context, c)
                       or check_pool_format(context, ARG_SELF, self)
                       or rank_3_or_4(context, ARG_SELF, self)
                       or read_pool(context, c, &shapes)
                       or find_pooled(context, self, c.numbers[0] != 0, &shapes)
                       or addressable(context, ARG_SELF, self))
    if status != SUCCESS:
        return status
    results[0].rank = results[1].rank = self.rank
    results[0].format = results[1].format = self.format
    results[0].dtype = self.dtype
    results[1].dtype = DT_INT64
    for i in range(self.rank):
        results[0].dims[i] = results[1].dims[i] = shapes.out[i]
    return SUCCESS


cdef int64_t forward_facts(const Executor* executor, Fact* fact) noexcept nogil:
    """What explain() tells."""
    cdef const MaxPool2d* pool = <const MaxPool2d*>executor.plan
    add_pool(pool, fact)
    return 1 << (pool.algorithm - EACH)


cdef int64_t backward_facts(const Executor* executor, Fact* fact) noexcept nogil:
    cdef const MaxPool2d* pool = <const MaxPool2d*>executor.plan
    add_pool(pool, fact)
    return 1 << (pool.algorithm - GATHER)
