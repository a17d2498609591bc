"""MaxPool2dWithMaskBackward and its forward, MaxPool2dWithMask: what they refuse; max_pool2d_plan.pyx plans.

The rules follow the CANN operators (aclnnMaxPool2dWithMaskBackward, aclnnMaxPool2dWithMask) and PyTorch's max_pool2d;
the checks run in one fixed order, and the first that fails speaks.
"""
from libc.stdint cimport INT64_MIN, int64_t

from aclnn_bw._core.arithmetic cimport ceil_div, mul_overflows, pooled_size
from aclnn_bw._core.checks cimport (
    MOST_BYTES, addressable, length_between, none_zero_but_batch, rank_3_or_4, read_pair, shape_is, shape_made,
)
from aclnn_bw._core.max_pool2d_plan cimport add_pool, plan_gradient, plan_maxima
from aclnn_bw._core.names cimport TEXT, choose, element_text, format_name, name, of_shape, tuple_text
from aclnn_bw._core.operators cimport (
    add_pair, check_common, check_first_dtype, check_images, check_nulls, check_same_formats,
)
from aclnn_bw._core.status cimport refuse, wide
from aclnn_bw._core.types cimport (
    ARG_DILATION, ARG_GRAD_INPUT, ARG_GRAD_OUTPUT, ARG_KERNEL_SIZE, ARG_MASK, ARG_MASK_OUT, ARG_OUT, ARG_PADDING,
    ARG_SELF, ARG_STRIDE, DT_INT8, ERR_INVALID, FORMAT_NCHW, FORMAT_NCL, FORMAT_ND, LAYOUT, LAYOUT_ARGMAX, SUCCESS,
    Arguments, Context, Executor, Fact, IntArray, Tensor,
)


cdef int check_pool_format(const Context* context, int argument, const Tensor* tensor) noexcept nogil:
    if tensor.format in (FORMAT_NCHW, FORMAT_NCL, FORMAT_ND):
        return SUCCESS
    return refuse(ERR_INVALID, "%s.format = %s: must be ACL_FORMAT_NCHW, ACL_FORMAT_NCL or ACL_FORMAT_ND",
                  name(context, argument), format_name(tensor.format))


cdef int check_lengths(const Context* context, const IntArray* kernel, const IntArray* stride, const IntArray* padding,
                       const IntArray* dilation) noexcept nogil:
    return (length_between(context, ARG_KERNEL_SIZE, kernel, 1, 2)
            or length_between(context, ARG_STRIDE, stride, 0, 2)
            or length_between(context, ARG_PADDING, padding, 1, 2)
            or length_between(context, ARG_DILATION, dilation, 1, 2))


cdef int check_values(const Context* context, const IntArray* kernel, const IntArray* stride, const IntArray* padding,
                      const IntArray* dilation, MaxPool2dShapes* shapes) noexcept nogil:
    cdef char[TEXT] seen
    cdef char[TEXT] rule
    cdef int64_t[2] steps
    cdef int64_t i
    cdef int status = (read_pair(context, ARG_KERNEL_SIZE, kernel, 1, shapes.kernel)
                       or read_pair(context, ARG_STRIDE, kernel if stride.size == 0 else stride, 1, shapes.stride)
                       or read_pair(context, ARG_PADDING, padding, 0, shapes.pad)
                       or read_pair(context, ARG_DILATION, dilation, INT64_MIN, steps))
    if status != SUCCESS:
        return status
    for i in range(2):
        if shapes.pad[i] > shapes.kernel[i] // 2:
            return refuse(ERR_INVALID, "%s = %lld: must be <= %s / 2 = %lld",
                          element_text(seen, context, ARG_PADDING, padding, i), <wide>shapes.pad[i],
                          element_text(rule, context, ARG_KERNEL_SIZE, kernel, i), <wide>(shapes.kernel[i] // 2))
    for i in range(2):
        if steps[i] != 1:
            return refuse(ERR_INVALID, "%s = %lld: must be 1; there is no dilation here",
                          element_text(seen, context, ARG_DILATION, dilation, i), <wide>steps[i])
    return SUCCESS


cdef int read_pool(const Context* context, const Arguments* c, MaxPool2dShapes* shapes) noexcept nogil:
    """The attributes."""
    return (check_lengths(context, c.arrays[0], c.arrays[1], c.arrays[2], c.arrays[3])
            or check_values(context, c.arrays[0], c.arrays[1], c.arrays[2], c.arrays[3], shapes))


cdef int find_pooled(const Context* context, const Tensor* self, bint ceil_mode,
                     MaxPool2dShapes* shapes) noexcept nogil:
    """The shape of the output; its number of elements may still be beyond any memory."""
    cdef char[TEXT] text
    cdef int64_t i
    cdef int rank = self.rank
    cdef int status = none_zero_but_batch(context, ARG_SELF, self)
    if status != SUCCESS:
        return status
    for i in range(rank - 2):
        shapes.out[i] = self.dims[i]
    for i in range(2):
        # 2*pad <= kernel has been checked: pooled_size does not overflow.
        shapes.out[rank - 2 + i] = pooled_size(self.dims[rank - 2 + i], shapes.kernel[i], shapes.stride[i],
                                               shapes.pad[i], ceil_mode)
        if shapes.out[rank - 2 + i] < 1:
            return refuse(ERR_INVALID, "%s%s = %s: is too small along %s for %s = %lld, no window fits",
                          name(context, ARG_SELF), of_shape(context, ARG_SELF), tuple_text(text, self.dims, rank),
                          choose(i == 0, "H", "W"), name(context, ARG_KERNEL_SIZE), <wide>shapes.kernel[i])
    return SUCCESS


cdef int find_mask(const Context* context, const Tensor* self, MaxPool2dShapes* shapes) noexcept nogil:
    """The shape of the mask, which may be beyond any memory, too."""
    cdef char[TEXT] text
    cdef int64_t i, positions = 0, bytes = 0, kernel_size = 0
    cdef int rank = self.rank
    for i in range(rank - 2):
        shapes.indices[i] = self.dims[i]
    if mul_overflows(shapes.kernel[0], shapes.kernel[1], &kernel_size):
        return refuse(ERR_INVALID, "%s = %s: has more positions than a 64-bit integer counts",
                      name(context, ARG_KERNEL_SIZE), tuple_text(text, shapes.kernel, 2))
    if (mul_overflows(shapes.out[rank - 2], shapes.out[rank - 1], &positions)
            or mul_overflows(ceil_div(positions, LANES) + 1, 2 * LANES, &bytes)):
        return refuse(ERR_INVALID, "%s%s = %s: has more windows than a 64-bit integer counts",
                      name(context, ARG_SELF), of_shape(context, ARG_SELF), tuple_text(text, self.dims, rank))
    shapes.indices[rank - 2] = kernel_size
    shapes.indices[rank - 1] = bytes
    return SUCCESS


cdef int check_mask(const Context* context, const Tensor* self, int argument, const Tensor* indices,
                    const MaxPool2dShapes* shapes) noexcept nogil:
    """The container's shape and layout, and that an argmax index can count the plane."""
    cdef char[TEXT] text
    cdef int64_t plane = 0
    cdef int64_t i, step = 1
    cdef bint dense = True
    cdef bint empty = False
    cdef int status = shape_is(context, argument, indices, shapes.indices,
                               "([N,] C, kH*kW, (ceil(Ho*Wo / 16) + 1) * 32)")
    if status != SUCCESS:
        return status
    if context.mask_layout == LAYOUT_ARGMAX and shapes.indices[self.rank - 2] > 1 and (
            mul_overflows(self.dims[self.rank - 2], self.dims[self.rank - 1], &plane) or plane > INDEX_LIMIT):
        return refuse(ERR_INVALID, "%s.shape = %s: H * W must be <= %d in the mask layout \"argmax\"; use \"bitmask\"",
                      name(context, ARG_SELF), tuple_text(text, self.dims, self.rank), INDEX_LIMIT)
    for i in range(indices.rank - 1, -1, -1):
        empty = empty or indices.dims[i] == 0
        if indices.dims[i] != 1:
            dense = dense and indices.strides[i] == step
        if mul_overflows(step, indices.dims[i], &step):
            dense = False
    if not dense and not empty:
        return refuse(ERR_INVALID, "%s.strides = %s: must be C-contiguous; copy it, as numpy.ascontiguousarray does",
                      name(context, argument), tuple_text(text, indices.strides, indices.rank))
    return SUCCESS


cdef int check_labels(const Context* context, const MaxPool2dShapes* shapes, int rank) noexcept nogil:
    """The forward counts kernel positions in 32 bits. A mask with more of them has more than 128 GiB."""
    cdef char[TEXT] text
    if shapes.indices[rank - 2] > INDEX_LIMIT:
        return refuse(ERR_INVALID, "%s = %s: must have at most %d positions", name(context, ARG_KERNEL_SIZE),
                      tuple_text(text, shapes.kernel, 2), INDEX_LIMIT)
    return SUCCESS


cdef int check_mask_bytes(const Context* context, const MaxPool2dShapes* shapes, int rank) noexcept nogil:
    """What is to be allocated for a mask is no more than a machine addresses, even where there are no images."""
    cdef char[TEXT] text
    cdef int64_t size = 1
    cdef int64_t i
    for i in range(rank):
        if shapes.indices[i] > 0 and (mul_overflows(size, shapes.indices[i], &size) or size > MOST_BYTES):
            return refuse(ERR_INVALID, "%s = %s: makes a mask of more bytes than a machine addresses",
                          name(context, ARG_KERNEL_SIZE), tuple_text(text, shapes.kernel, 2))
    return SUCCESS


cdef int find_geometry(const Context* context, const Arguments* c, const Tensor* self,
                       MaxPool2dShapes* shapes) noexcept nogil:
    """The attributes, and the shapes that follow."""
    return (read_pool(context, c, shapes)
            or find_pooled(context, self, c.numbers[0] != 0, shapes)
            or find_mask(context, self, shapes))


cdef int max_pool2d_with_mask_backward(const Context* context, const Arguments* c, Executor** executor) noexcept nogil:
    """Phase 1 of the backward."""
    cdef const Tensor* grad_output = c.tensors[0]
    cdef const Tensor* self = c.tensors[1]
    cdef const Tensor* mask = c.tensors[2]
    cdef const Tensor* grad_input = c.tensors[3]
    cdef MaxPool2dShapes shapes
    return (check_common(context, c)
            or check_images(context, c)
            or check_pool_format(context, ARG_GRAD_OUTPUT, grad_output)
            or check_same_formats(context, c)
            or find_geometry(context, c, self, &shapes)
            or shape_is(context, ARG_GRAD_INPUT, grad_input, self.dims, "self.shape")
            or shape_made(context, ARG_GRAD_OUTPUT, grad_output, shapes.out, "pooled", ARG_SELF, self)
            or check_mask(context, self, ARG_MASK, mask, &shapes)
            or addressable(context, ARG_GRAD_INPUT, grad_input)
            or addressable(context, ARG_MASK, mask)
            or plan_gradient(context, c, &shapes, NULL, executor))


cdef int max_pool2d_with_mask(const Context* context, const Arguments* c, Executor** executor) noexcept nogil:
    """Phase 1 of the forward."""
    cdef const Tensor* self = c.tensors[0]
    cdef const Tensor* out = c.tensors[1]
    cdef const Tensor* mask = c.tensors[2]
    cdef MaxPool2dShapes shapes
    return (check_common(context, c)
            or check_images(context, c)
            or check_pool_format(context, ARG_SELF, self)
            or check_same_formats(context, c)
            or find_geometry(context, c, self, &shapes)
            or shape_made(context, ARG_OUT, out, shapes.out, "pooled", ARG_SELF, self)
            or check_mask(context, self, ARG_MASK_OUT, mask, &shapes)
            or addressable(context, ARG_SELF, self)
            or addressable(context, ARG_MASK_OUT, mask)
            or check_labels(context, &shapes, self.rank)
            or plan_maxima(context, c, &shapes, NULL, executor))


cdef int max_pool2d_shapes(const Context* context, const Arguments* c, MaxPool2dShapes* shapes) noexcept nogil:
    """The shapes of what the forward returns, with its refusals of what it is given."""
    cdef const Tensor* self = c.tensors[0]
    return (check_nulls(context, c)
            or check_first_dtype(context, c)
            or rank_3_or_4(context, ARG_SELF, self)
            or check_pool_format(context, ARG_SELF, self)
            or find_geometry(context, c, self, shapes)
            or addressable(context, ARG_SELF, self)
            or check_mask_bytes(context, shapes, self.rank))


cdef int forward_result(const Context* context, const Arguments* c, Tensor* results) noexcept nogil:
    """The maxima and the mask."""
    cdef MaxPool2dShapes shapes
    cdef int i
    cdef int status = max_pool2d_shapes(context, c, &shapes)
    if status != SUCCESS:
        return status
    results[0].rank = results[1].rank = c.tensors[0].rank
    results[0].format = results[1].format = c.tensors[0].format
    results[0].dtype = c.tensors[0].dtype
    results[1].dtype = DT_INT8
    for i in range(results[0].rank):
        results[0].dims[i] = shapes.out[i]
        results[1].dims[i] = shapes.indices[i]
    return SUCCESS


cdef int64_t backward_facts(const Executor* executor, Fact* fact) noexcept nogil:
    """What explain() tells."""
    cdef const MaxPool2d* pool = <const MaxPool2d*>executor.plan
    fact = add_pool(pool, fact)
    add_pair(fact, "mask_layout", pool.argmax, 0)
    fact.kind = LAYOUT
    return 1 << pool.algorithm


cdef int64_t forward_facts(const Executor* executor, Fact* fact) noexcept nogil:
    return backward_facts(executor, fact) >> PHASES
