"""Masks as arrays, and their geometry, for aclnn_bw.mask."""


def array_of(value, str name):
    """View any tensor argument as a NumPy array."""
    cdef Tensor tensor
    cdef cnp.npy_intp[MAX_RANK] dims
    cdef cnp.npy_intp[MAX_RANK] strides
    cdef Context context
    cdef cnp.ndarray array
    cdef int i, status
    if isinstance(value, cnp.ndarray):
        return value
    owner = read_tensor(value, name, &tensor)
    if tensor.rank > MAX_RANK:
        raise refusal(ERR_INVALID, f"{name}.rank = {tensor.rank}: must be at most {<int>MAX_RANK}")
    if tensor.data == NULL and tensor_size(&tensor) != 0:
        raise refusal(ERR_NULLPTR, f"{name}: is unbound; it has no data")
    # The names of the two-phase calls have "indices", those of the helpers "mask".
    current_context(&context, TWO_PHASE if name == "indices" else MASK_HELPER, NULL)
    status = check_bounds(&context, ARG_MASK, &tensor) or check_alignment(&context, ARG_MASK, &tensor)
    if status != SUCCESS:
        raise error_of(status)
    for i in range(tensor.rank):
        # What says nothing may be anything: the strides of axes of one, and of an empty tensor, and its offset.
        if tensor_size(&tensor) == 0:
            tensor.offset = tensor.strides[i] = 0
        elif tensor.dims[i] == 1:
            tensor.strides[i] = 0
        dims[i] = tensor.dims[i]
        strides[i] = tensor.strides[i] * item_size(tensor.dtype)
    array = cnp.PyArray_New(cnp.ndarray, tensor.rank, dims, number_of(tensor.dtype), strides,
                            tensor.data + tensor.offset * item_size(tensor.dtype), 0, 0, None)
    cnp.set_array_base(array, owner)
    return array


cdef int read_geometry(input_shape, kernel_size, stride, padding, dilation, ceil_mode, Reading* reading,
                       MaxPool2dShapes* shapes) except -1:
    """A pooling of an image of this shape."""
    cdef Context context
    cdef Tensor* x = &reading.tensors[0]
    cdef const Parameter* parameter = operator_of(MAX_POOL2D_WITH_MASK).parameters + 1
    cdef IntArray dims
    cdef int i, status
    begin_reading(MAX_POOL2D_WITH_MASK, reading)
    # What it does not know of, the results, only has to be there.
    for i in range(MAX_TENSORS):
        reading.arguments.tensors[i] = x
    if input_shape is None:
        reading.arguments.tensors[0] = NULL
    else:
        if not isinstance(input_shape, (tuple, list)):
            raise TypeError(f"input_shape: must be a tuple of ints, not {type(input_shape).__name__}")
        read_ints(input_shape, "input_shape", &dims)
        x.rank = <int32_t>min(dims.size, MAX_RANK + 1)
        x.dtype = DT_FLOAT
        x.flags = 0
        x.format = format_of_rank(x.rank)
        for i in range(min(x.rank, MAX_RANK)):
            if dims.values[i] < 0:
                raise refusal(ERR_INVALID, f"input_shape[{i}] = {dims.values[i]}: must be >= 0")
            x.dims[i] = dims.values[i]
    for i, value in enumerate((kernel_size, stride, padding, dilation)):
        read_array_argument(parameter + i, value, True, &reading.arrays[i], &reading.arguments.arrays[i])
    reading.arguments.numbers[0] = read_bool(ceil_mode, "ceil_mode")
    current_context(&context, MASK_HELPER, NULL)
    status = max_pool2d_shapes(&context, &reading.arguments, shapes)
    if status != SUCCESS:
        raise error_of(status)
    return 0


def max_pool2d_geometry(input_shape, kernel_size, stride, padding, dilation, ceil_mode):
    """Return (out shape, mask shape, kernel, stride, padding) of a pooling, the last three as pairs."""
    cdef Reading reading
    cdef MaxPool2dShapes shapes
    read_geometry(input_shape, kernel_size, stride, padding, dilation, ceil_mode, &reading, &shapes)
    return (tuple([shapes.out[i] for i in range(reading.tensors[0].rank)]),
            tuple([shapes.indices[i] for i in range(reading.tensors[0].rank)]),
            (shapes.kernel[0], shapes.kernel[1]), (shapes.stride[0], shapes.stride[1]), (shapes.pad[0], shapes.pad[1]))


def convert(cnp.ndarray source, cnp.ndarray to, bint to_mask, bint argmax, tuple geometry):
    """Fill `to`, a new array: the mask of these indices, or the indices of this mask. Shapes and dtypes are right;
    `geometry` is what max_pool2d_geometry takes."""
    cdef Reading reading
    cdef MaxPool2dShapes shapes
    cdef Context context
    cdef Tensor[2] tensors
    cdef Executor* executor = NULL
    cdef int status
    shape, kernel_size, stride, padding, dilation, ceil_mode = geometry
    read_geometry(shape, kernel_size, stride, padding, dilation, ceil_mode, &reading, &shapes)
    make_row_major(&reading.tensors[0])
    read_array(source, &tensors[0])
    read_array(to, &tensors[1])
    current_context(&context, MASK_HELPER, NULL)
    context.mask_layout = LAYOUT_ARGMAX if argmax else LAYOUT_BITMASK
    status = plan_conversion(&context, &reading.tensors[0], &tensors[0], &tensors[1], to_mask, &shapes, &executor)
    if status != SUCCESS:
        raise error_of(status)
    run_at_once(executor)
