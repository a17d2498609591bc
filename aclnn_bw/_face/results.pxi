"""What one-call functions run and return."""

cdef char* spare_scratch = NULL     # kept between calls: fresh pages cost more than most kernels
cdef int64_t spare_size = 0


cdef int run_at_once(Executor* executor) except -1:
    """Run a fresh executor with scratch of our own, then delete it."""
    global spare_scratch, spare_size
    cdef char[SMALL_WORKSPACE] small
    cdef char* scratch = small
    cdef int64_t size = executor.workspace_size
    cdef int64_t room = 0
    cdef Run run
    cdef int status
    if size > SMALL_WORKSPACE:
        # Taken and given back under the GIL, so that each call has it alone; a second caller makes its own.
        scratch = spare_scratch
        room = spare_size
        spare_scratch = NULL
        spare_size = 0
        if room < size:
            PyMem_RawFree(scratch)
            room = size
            scratch = <char*>PyMem_RawMalloc(<size_t>size)
            if scratch == NULL:
                delete_executor(executor)
                raise MemoryError(f"no memory for {size} bytes of scratch")
    if executor.bytes < SHORT_WORK:
        status = execute(executor, executor.op, scratch, size)
    else:
        status = accept(executor, executor.op, scratch, size, 0, &run)
        if status == SUCCESS:
            status = run_and_finish(&run)
    if size > SMALL_WORKSPACE:
        PyMem_RawFree(spare_scratch)
        spare_scratch = scratch
        spare_size = room
    delete_executor(executor)
    if status != SUCCESS:
        raise error_of(status)
    return 0


cdef object read_shape(object value, str name, const Tensor* like, Tensor* tensor):
    """A tensor whose shape alone matters: an array, or a shape, which takes its dtype and format from `like`."""
    cdef IntArray dims
    cdef int64_t i
    if not isinstance(value, (tuple, list)):
        if isinstance(value, (int, float, str)):
            raise TypeError(f"{name}: must be an array or a shape, which is a tuple or a list of ints, "
                            f"not {type(value).__name__}")
        return read_tensor(value, name, tensor)
    read_ints(value, name, &dims)
    tensor.rank = <int32_t>min(dims.size, MAX_RANK + 1)
    tensor.dtype = like.dtype if like != NULL else DT_FLOAT
    tensor.format = like.format if like != NULL and like.rank == tensor.rank else format_of_rank(tensor.rank)
    for i in range(min(tensor.rank, MAX_RANK)):
        if dims.values[i] < 0:
            raise refusal(ERR_INVALID, f"{name}[{i}] = {dims.values[i]}: must be >= 0")
        tensor.dims[i] = dims.values[i]
    describe_fresh(tensor, name)
    return None


cdef inline int describe_fresh(Tensor* tensor, str name) except -1:
    """Row-major and unbound; its size in bytes must be one that an allocation could have."""
    cdef int64_t size = 0
    tensor.offset = 0
    tensor.storage = 0
    tensor.data = NULL
    tensor.flags = 0
    if tensor.rank <= MAX_RANK:
        size = tensor_size(tensor)
        if size < 0 or mul_overflows(size, item_size(tensor.dtype), &tensor.storage):
            raise MemoryError(f"{name}: has more bytes than a 64-bit integer counts")
        make_row_major(tensor)
        tensor.storage = size
    return 0


cdef int number_of(int dtype) except -1:
    """An aclDataType as NumPy's type number."""
    if dtype == DT_FLOAT:
        return cnp.NPY_FLOAT
    if dtype == DT_DOUBLE:
        return cnp.NPY_DOUBLE
    if dtype == DT_FLOAT16:
        return cnp.NPY_FLOAT16
    if dtype == DT_BF16:
        return load_bf16()
    if dtype == DT_COMPLEX64:
        return cnp.NPY_CFLOAT
    if dtype == DT_COMPLEX128:
        return cnp.NPY_CDOUBLE
    if dtype in (DT_INT8, DT_BOOL):
        return cnp.NPY_INT8 if dtype == DT_INT8 else cnp.NPY_BOOL
    if dtype in (DT_INT16, DT_INT32, DT_INT64):
        return cnp.NPY_INT16 if dtype == DT_INT16 else cnp.NPY_INT32 if dtype == DT_INT32 else cnp.NPY_INT64
    if dtype in (DT_UINT16, DT_UINT32, DT_UINT64):
        return cnp.NPY_UINT16 if dtype == DT_UINT16 else cnp.NPY_UINT32 if dtype == DT_UINT32 else cnp.NPY_UINT64
    return cnp.NPY_UINT8


cdef inline object new_array(const Tensor* tensor, object like):
    """A C-contiguous array of the tensor's dims and dtype. `like` is the owner of the first argument: what JAX is to
    take over without a copy begins a cache line."""
    cdef cnp.npy_intp[MAX_RANK] dims
    cdef cnp.npy_intp bytes
    cdef cnp.ndarray block
    cdef int i
    for i in range(tensor.rank):
        dims[i] = tensor.dims[i]
    if type(like) is not DLPackOwner or (<DLPackOwner>like).library != LIBRARY_JAX:
        return cnp.PyArray_EMPTY(tensor.rank, dims, number_of(tensor.dtype), 0)
    bytes = tensor_size(tensor) * item_size(tensor.dtype) + ALIGNMENT - 1
    block = cnp.PyArray_EMPTY(1, &bytes, cnp.NPY_UINT8, 0)
    return aligned_view(block, tensor.rank, dims, number_of(tensor.dtype))


cdef object aligned_view(cnp.ndarray block, int rank, cnp.npy_intp* dims, int number):
    """A C-contiguous array that begins at the first cache line of a block of bytes."""
    cdef char* first = <char*>round_up(<int64_t><uintptr_t>cnp.PyArray_DATA(block), ALIGNMENT)
    cdef cnp.ndarray array = cnp.PyArray_New(
        cnp.ndarray, rank, dims, number, NULL, first, 0, cnp.NPY_ARRAY_CARRAY, None)
    cnp.set_array_base(array, block)
    return array


cdef object as_given(object owner, object array):
    """The array as one of the library whose array the owner keeps."""
    if type(owner) is DLPackOwner and (<DLPackOwner>owner).library != LIBRARY_NONE:
        return array_of_library((<DLPackOwner>owner).library, array)
    return array
