"""Tensors from everything that describes memory: NumPy arrays, DLPack exporters, aclTensor; and blocks of bytes."""


@cython.final
cdef class aclTensor:
    """A view over memory: dims, strides, offset, storage, dtype and format. Made by aclCreateTensor."""

    cdef Tensor tensor
    cdef object owner       # keeps the memory; None while unbound
    cdef bint alive
    cdef object __weakref__

    def __init__(self):
        raise TypeError("aclTensor is made by aclCreateTensor")

    def __reduce__(self):
        raise no_copy(self)

    def __array__(self, dtype=None, copy=None):
        raise no_array(self, "its memory is the tensorData that it was made over")

    def __repr__(self):
        cdef Tensor* t = &self.tensor
        shape = tuple([t.dims[i] for i in range(t.rank)])
        strides = tuple([t.strides[i] for i in range(t.rank)])
        state = "" if self.alive else ", destroyed"
        state += ", unbound" if self.alive and t.data == NULL else ""
        return (f"<aclTensor {aclDataType(t.dtype).name} {aclFormat(t.format).name} shape={shape} strides={strides} "
                f"offset={t.offset} storage={t.storage}{state}>")


cdef int load_bf16() except -1:
    """NumPy's type number of bfloat16, which ml_dtypes is given when it is imported. That may take ten times as long as
    NumPy does, and no array has such numbers before some module asks for one: so it waits until it is needed."""
    global bf16_number
    if bf16_number < 0:
        import ml_dtypes
        bf16_number = numpy.dtype(ml_dtypes.bfloat16).num
    return bf16_number


cdef int dtype_of_number(int number, char kind, int64_t size) except -2:
    """NumPy's type number (or kind and size) as an aclDataType."""
    if number == cnp.NPY_FLOAT:
        return DT_FLOAT
    if number == cnp.NPY_DOUBLE:
        return DT_DOUBLE
    if number == cnp.NPY_FLOAT16:
        return DT_FLOAT16
    if cnp.PyTypeNum_ISUSERDEF(number) and number == load_bf16():
        return DT_BF16
    if kind == c'f' and size == 8:
        return DT_DOUBLE        # long double where it is no longer than double
    if number == cnp.NPY_CFLOAT:
        return DT_COMPLEX64
    if number == cnp.NPY_CDOUBLE:
        return DT_COMPLEX128
    if kind == c'b':
        return DT_BOOL
    if kind == c'i':
        return DT_INT8 if size == 1 else DT_INT16 if size == 2 else DT_INT32 if size == 4 else DT_INT64
    if kind == c'u':
        return DT_UINT8 if size == 1 else DT_UINT16 if size == 2 else DT_UINT32 if size == 4 else DT_UINT64
    return DT_UNDEFINED


cdef int format_of_rank(int64_t rank) noexcept:
    """The format of a bare array."""
    return FORMAT_NCL if rank == 3 else FORMAT_NCHW if rank == 4 else FORMAT_ND


cdef void place(Tensor* tensor, char* first) noexcept:
    """Give a view with dims and strides the smallest storage that holds it; `first` is its first element. One that no
    memory holds gets a storage of no elements, which phase 1 refuses."""
    cdef int64_t limit = <int64_t>1 << 58       # nothing below overflows
    cdef int64_t low = 0
    cdef int64_t high = 0
    cdef int64_t item = item_size(tensor.dtype)
    tensor.offset = 0
    tensor.storage = 0
    tensor.data = first
    if (tensor.rank <= MAX_RANK and tensor_size(tensor) != 0 and tensor_bounds(tensor, &low, &high)
            and low >= -limit and high <= limit):
        tensor.offset = -low
        tensor.storage = high - low + 1
        tensor.data = <char*>(<uintptr_t>first + <uintptr_t>(low * item))


cdef int read_array(cnp.ndarray array, Tensor* tensor) except -1:
    """The descriptor of a NumPy array. NumPy vouches for its bounds."""
    cdef int64_t item = cnp.PyArray_ITEMSIZE(array)
    cdef int64_t step
    cdef int i
    cdef char kind = (<cnp.dtype>cnp.PyArray_DESCR(array)).kind
    tensor.rank = cnp.PyArray_NDIM(array)
    tensor.dtype = dtype_of_number(cnp.PyArray_TYPE(array), kind, item)
    tensor.format = format_of_rank(tensor.rank)
    tensor.flags = WRITABLE if cnp.PyArray_ISWRITEABLE(array) else 0
    if not cnp.PyArray_ISNOTSWAPPED(array):
        tensor.flags |= SWAPPED
    if not cnp.PyArray_ISALIGNED(array):
        tensor.flags |= MISALIGNED
    for i in range(min(tensor.rank, MAX_RANK)):
        tensor.dims[i] = cnp.PyArray_DIM(array, i)
        tensor.strides[i] = 0
        step = cnp.PyArray_STRIDE(array, i)
        if tensor.dtype != DT_UNDEFINED:
            # Item sizes are powers of two; a dozen 64-bit divisions would show in phase 1.
            tensor.strides[i] = step >> trailing_zeros(item)
            if tensor.dims[i] > 1 and step & (item - 1) != 0:
                tensor.flags |= BROKEN_STRIDE
    if cnp.PyArray_IS_C_CONTIGUOUS(array) and tensor.rank <= MAX_RANK:
        tensor.offset = 0
        tensor.storage = cnp.PyArray_SIZE(array)
        tensor.data = <char*>cnp.PyArray_DATA(array)
    else:
        place(tensor, <char*>cnp.PyArray_DATA(array))
    return 0


@cython.final
cdef class DLPackOwner:
    """A consumed DLPack capsule: calls the producer's deleter when the last user is gone."""

    cdef DLManaged* managed
    cdef DLVersioned* versioned
    cdef int library        # whose array it was

    def __dealloc__(self):
        if self.managed != NULL and self.managed.deleter != NULL:
            self.managed.deleter(self.managed)
        if self.versioned != NULL and self.versioned.deleter != NULL:
            self.versioned.deleter(self.versioned)


cdef int library_of(object array) except -1:
    """Whose array it is, if it is one that one-call functions answer with. A library that the caller has not imported
    is not imported here either: its arrays cannot have come."""
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(array, getattr(torch, "Tensor", ())):
        return LIBRARY_TORCH
    jax = sys.modules.get("jax")
    if jax is not None and isinstance(array, getattr(jax, "Array", ())):
        return LIBRARY_JAX
    return LIBRARY_NONE


cdef int refuse_masked(object array, str name) except -1:
    """A masked array's memory holds garbage under its mask, which would be computed on silently."""
    masked = sys.modules.get("numpy.ma")
    if masked is not None and isinstance(array, masked.MaskedArray):
        raise TypeError(f"{name}: must not be a masked array, whose mask nothing here reads; .filled(value) or .data "
                        "makes it plain")
    return 0


cdef int refuse_without_memory(object tensor, str name) except -1:
    """A tensor of PyTorch whose elements do not lie in memory as its shape and strides say. PyTorch refuses some of
    them itself, in its own words, and lends the memory of a lazily negated one as if it were not."""
    torch = sys.modules["torch"]
    masked = sys.modules.get("torch.masked")
    kind = remedy = None
    if masked is not None and isinstance(tensor, masked.MaskedTensor):
        kind, remedy = "masked", ".to_tensor(value) makes it plain"
    elif tensor.is_nested:
        kind, remedy = "nested", "each of .unbind() is dense"
    elif tensor.layout is not torch.strided:
        kind, remedy = f"{tensor.layout}".removeprefix("torch."), ".to_dense() makes it dense"
    elif tensor.is_neg():
        kind, remedy = "lazily negated", ".resolve_neg() writes its values"
    if kind is not None:
        raise TypeError(f"{name}: must be a dense tensor, not a {kind} one; {remedy}")
    return 0


cdef object without_grad(object value):
    """A tensor of PyTorch that requires grad, without that, as it serves where its shape alone is read."""
    if library_of(value) == LIBRARY_TORCH and value.requires_grad:
        return value.detach()
    return value


cdef struct Lent:
    DLManaged managed
    int64_t[MAX_RANK] shape
    int64_t[MAX_RANK] strides


cdef void end_loan(DLManaged* managed) noexcept with gil:
    """The deleter of a capsule of ours; the consumer calls it in any thread."""
    Py_XDECREF(<PyObject*>managed.context)
    PyMem_RawFree(managed)


cdef void drop_capsule(object capsule) noexcept:
    """The destructor of a capsule that nobody has consumed."""
    if PyCapsule_IsValid(capsule, "dltensor"):
        end_loan(<DLManaged*>PyCapsule_GetPointer(capsule, "dltensor"))


@cython.final
cdef class DLPackLoan:
    """A C-contiguous NumPy array of any dtype of ours, bfloat16 among them, as a DLPack exporter."""

    cdef cnp.ndarray array

    def __dlpack_device__(self):
        return (DL_CPU, 0)

    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):
        cdef Tensor tensor
        cdef DLTensor* view
        cdef Lent* lent = NULL
        cdef int i
        if self.array is None:
            raise BufferError("there is no array to lend")
        lent = <Lent*>PyMem_RawMalloc(sizeof(Lent))
        if lent == NULL:
            raise MemoryError("no memory for a DLPack capsule")
        read_array(self.array, &tensor)
        view = &lent.managed.tensor
        view.data = <char*>cnp.PyArray_DATA(self.array)
        view.device.device_type = DL_CPU
        view.device.device_id = 0
        view.ndim = tensor.rank
        view.dtype.code = (4 if tensor.dtype == DT_BF16 else 5 if tensor.dtype in (DT_COMPLEX64, DT_COMPLEX128)
                           else 0 if tensor.dtype in (DT_INT8, DT_INT64) else 2)
        view.dtype.bits = <uint8_t>(8 * item_size(tensor.dtype))
        view.dtype.lanes = 1
        view.shape = lent.shape
        view.strides = lent.strides
        view.byte_offset = 0
        for i in range(tensor.rank):
            lent.shape[i] = tensor.dims[i]
            lent.strides[i] = tensor.strides[i]
        lent.managed.context = <PyObject*>self.array
        lent.managed.deleter = end_loan
        try:
            capsule = PyCapsule_New(lent, "dltensor", <PyCapsule_Destructor>drop_capsule)
        except BaseException:
            PyMem_RawFree(lent)
            raise
        Py_INCREF(self.array)
        return capsule


cdef object array_of_library(int library, cnp.ndarray array):
    """The library's array on the memory of a C-contiguous array."""
    cdef DLPackLoan loan = DLPackLoan.__new__(DLPackLoan)
    loan.array = array
    if library == LIBRARY_TORCH:
        return sys.modules["torch"].from_dlpack(loan)
    return sys.modules["jax"].numpy.from_dlpack(loan)


def in_library_of(first, array):
    """Return an array as one of the library whose array `first` is."""
    cdef int library = LIBRARY_NONE if isinstance(first, cnp.ndarray) else library_of(first)
    return array if library == LIBRARY_NONE else array_of_library(library, array)


cdef object read_dlpack(object exporter, str name, Tensor* tensor):
    """The descriptor of a DLPack exporter on the CPU; returns what keeps its memory."""
    cdef DLPackOwner owner
    cdef DLTensor* view
    cdef int i
    cdef int library
    if isinstance(exporter, type):
        raise TypeError(f"{name}: must be an array, not the class {exporter.__name__}")
    library = library_of(exporter)
    if library == LIBRARY_TORCH:
        refuse_without_memory(exporter, name)
    device = exporter.__dlpack_device__() if hasattr(exporter, "__dlpack_device__") else (DL_CPU, 0)
    try:
        device_type = int(device[0])
    except (TypeError, ValueError, LookupError):
        raise refusal(ERR_INVALID, f"{name}: its __dlpack_device__ is {device!r}: must be (device type, device id)"
                      ) from None
    if device_type != DL_CPU:
        raise refusal(ERR_INVALID, f"{name}: lies on DLPack device {device_type}: must be on the CPU (1); copy it "
                      "there")
    try:
        try:
            capsule = exporter.__dlpack__(max_version=(1, 0))
        except TypeError:
            capsule = exporter.__dlpack__()
    except BufferError as error:
        raise BufferError(f"{name}: {error}") from error     # PyTorch, of a tensor that requires grad: use detach()
    owner = DLPackOwner.__new__(DLPackOwner)
    owner.library = library
    if PyCapsule_IsValid(capsule, "dltensor_versioned"):
        owner.versioned = <DLVersioned*>PyCapsule_GetPointer(capsule, "dltensor_versioned")
        PyCapsule_SetName(capsule, "used_dltensor_versioned")
        if owner.versioned.version.major != 1:
            raise refusal(ERR_INVALID, f"{name}: has DLPack version {owner.versioned.version.major}: must be 0 or 1")
        view = &owner.versioned.tensor
        tensor.flags = 0 if owner.versioned.flags & DL_READ_ONLY else WRITABLE
    elif PyCapsule_IsValid(capsule, "dltensor"):
        owner.managed = <DLManaged*>PyCapsule_GetPointer(capsule, "dltensor")
        PyCapsule_SetName(capsule, "used_dltensor")
        view = &owner.managed.tensor
        tensor.flags = WRITABLE
    else:
        raise refusal(ERR_INVALID, f"{name}: its __dlpack__ returned {capsule!r}: must be a DLPack capsule that nobody "
                      "has used")
    if view.device.device_type != DL_CPU:
        raise refusal(ERR_INVALID, f"{name}: lies on DLPack device {view.device.device_type}: must be on the CPU (1); "
                      "copy it there")
    if owner.library == LIBRARY_JAX:
        tensor.flags = 0        # a JAX array never changes, though its capsule does not say so
    tensor.rank = view.ndim
    tensor.format = format_of_rank(view.ndim)
    tensor.dtype = DT_UNDEFINED
    if view.dtype.lanes == 1:
        if view.dtype.code == 4 and view.dtype.bits == 16:
            tensor.dtype = DT_BF16
        elif view.dtype.code == 2:
            tensor.dtype = (DT_FLOAT16 if view.dtype.bits == 16 else DT_FLOAT if view.dtype.bits == 32
                            else DT_DOUBLE if view.dtype.bits == 64 else DT_UNDEFINED)
        elif view.dtype.code == 5:
            tensor.dtype = (DT_COMPLEX64 if view.dtype.bits == 64 else DT_COMPLEX128 if view.dtype.bits == 128
                            else DT_UNDEFINED)
        elif view.dtype.code == 6:
            tensor.dtype = DT_BOOL
        elif view.dtype.code in (0, 1) and view.dtype.bits in (8, 16, 32, 64):
            tensor.dtype = dtype_of_number(-1, c'u' if view.dtype.code == 1 else c'i', view.dtype.bits // 8)
    if view.ndim < 0 or (view.ndim > 0 and view.shape == NULL):
        raise refusal(ERR_INVALID, f"{name}: its DLPack capsule has rank {view.ndim} and no such shape")
    if view.ndim <= MAX_RANK:
        for i in range(view.ndim):
            if view.shape[i] < 0:
                raise refusal(ERR_INVALID, f"{name}: its DLPack capsule has the negative size {view.shape[i]}")
            tensor.dims[i] = view.shape[i]
            tensor.strides[i] = view.strides[i] if view.strides != NULL else 0
        if view.strides == NULL:
            if tensor_size(tensor) < 0:
                raise refusal(ERR_INVALID, f"{name}: its DLPack capsule has more elements than a 64-bit integer counts")
            make_row_major(tensor)
    if view.data == NULL and view.ndim <= MAX_RANK and tensor_size(tensor) != 0:
        raise refusal(ERR_INVALID, f"{name}: its DLPack capsule has no data")
    place(tensor, <char*>view.data + view.byte_offset)
    if item_size(tensor.dtype) > 0 and <uintptr_t>tensor.data % alignment_of(tensor.dtype) != 0:
        tensor.flags |= MISALIGNED
    return owner


cdef uintptr_t alignment_of(int dtype) noexcept:
    """What NumPy's ALIGNED flag asks for."""
    if dtype in (DT_COMPLEX32, DT_COMPLEX64, DT_COMPLEX128):
        return <uintptr_t>(item_size(dtype) // 2)
    return <uintptr_t>item_size(dtype)


cdef object read_tensor(object value, str name, Tensor* tensor):
    """Fill the descriptor of any tensor argument but None; returns what keeps its memory alive."""
    if type(value) is cnp.ndarray:
        read_array(value, tensor)
        return value
    if type(value) is aclTensor:
        if not (<aclTensor>value).alive:
            raise refusal(ERR_INVALID, f"{name}: is a destroyed aclTensor; make it anew by aclCreateTensor")
        tensor[0] = (<aclTensor>value).tensor
        return (<aclTensor>value).owner
    if isinstance(value, cnp.ndarray):
        refuse_masked(value, name)
        read_array(value, tensor)
        return value
    if not isinstance(value, (list, tuple, int, float, complex, numpy.generic, type)):
        if hasattr(value, "__dlpack__"):
            return read_dlpack(value, name, tensor)
        if hasattr(value, "__array_interface__"):
            try:
                array = numpy.asarray(value)
            except Exception as error:
                raise refusal(ERR_INVALID, f"{name}: its __array_interface__ is malformed: {error}") from error
            read_array(array, tensor)
            return array
    remedy = "; numpy.array makes one" if isinstance(value, (list, tuple, int, float, complex)) else ""
    raise TypeError(f"{name}: must be an aclTensor, a NumPy array or another array on the CPU, "
                    f"not {type(value).__name__}{remedy}")


cdef class Memory:
    """A contiguous block of bytes that a caller lends: any buffer, array or DLPack exporter."""

    cdef Py_buffer view
    cdef object owner
    cdef char* data
    cdef int64_t size
    cdef bint writable
    cdef bint has_view

    def __dealloc__(self):
        if self.has_view:
            PyBuffer_Release(&self.view)


cdef Memory read_memory(object value, str name):
    """Borrow a block of bytes; it stays exported until the Memory is gone."""
    cdef Memory memory = Memory.__new__(Memory)
    cdef Tensor tensor
    if isinstance(value, cnp.ndarray):
        refuse_masked(value, name)
        if not (cnp.PyArray_IS_C_CONTIGUOUS(value) or cnp.PyArray_IS_F_CONTIGUOUS(value)):
            raise refusal(ERR_INVALID, f"{name}: must be contiguous memory; copy it")
        if value.dtype.hasobject:
            raise TypeError(f"{name}: must be plain memory, not an array of Python objects")
        memory.owner = value
        memory.data = <char*>cnp.PyArray_DATA(value)
        memory.size = cnp.PyArray_NBYTES(value)
        memory.writable = cnp.PyArray_ISWRITEABLE(value)
    elif PyObject_CheckBuffer(value):
        try:
            PyObject_GetBuffer(value, &memory.view, PyBUF_ND | PyBUF_FORMAT | PyBUF_WRITABLE)
            memory.writable = True
        except BufferError:
            try:
                PyObject_GetBuffer(value, &memory.view, PyBUF_ND | PyBUF_FORMAT)
            except BufferError as error:
                raise refusal(ERR_INVALID, f"{name}: must be contiguous memory ({error})") from None
        memory.has_view = True
        if memory.view.format != NULL and b"O" in memory.view.format:
            raise TypeError(f"{name}: must be plain memory, not a buffer of Python objects")
        memory.data = <char*>memory.view.buf
        memory.size = memory.view.len
    elif hasattr(value, "__dlpack__"):
        memory.owner = read_dlpack(value, name, &tensor)
        if tensor.rank > MAX_RANK or tensor.storage != tensor_size(&tensor):
            raise refusal(ERR_INVALID, f"{name}: must be contiguous memory; copy it")
        memory.data = tensor.data
        memory.size = tensor.storage * item_size(tensor.dtype)
        memory.writable = tensor.flags & WRITABLE != 0
    else:
        raise TypeError(f"{name}: must be a buffer, not {type(value).__name__}")
    return memory


cdef frozenset DATA_TYPES = frozenset(map(int, aclDataType))
cdef frozenset FORMATS = frozenset(map(int, aclFormat))


def aclCreateTensor(viewDims, dataType, strides=None, offset=0, format=FORMAT_ND, storageDims=None, tensorData=None):
    """Describe a view of memory, as the C call does.

    viewDims are the sizes of the view, strides (None: row-major) and offset its layout in elements within a storage of
    prod(storageDims) elements (None: viewDims). tensorData is any contiguous buffer of at least that many elements; a
    read-only one serves as an input. Without it the tensor is unbound: phase 1 takes it, phase 2 refuses it where data
    is needed.

    >>> import numpy as np, aclnn_bw
    >>> aclnn_bw.aclCreateTensor([2, 3], aclnn_bw.ACL_FLOAT, [1, 2], 0, aclnn_bw.ACL_FORMAT_ND, [6],
    ...                          np.zeros(6, np.float32))
    <aclTensor ACL_FLOAT ACL_FORMAT_ND shape=(2, 3) strides=(1, 2) offset=0 storage=6>
    """
    cdef aclTensor result = aclTensor.__new__(aclTensor)
    cdef Tensor* tensor = &result.tensor
    cdef IntArray view, steps, storage
    cdef Memory memory
    cdef int64_t number, i, item, needed = 0
    if viewDims is None:
        raise refusal(ERR_NULLPTR, "viewDims = None: must not be null")
    read_ints(viewDims, "viewDims", &view)
    number = read_int(dataType, "dataType")
    if strides is not None:
        read_ints(strides, "strides", &steps)
    tensor.offset = read_int(offset, "offset")
    i = read_int(format, "format")
    if storageDims is not None:
        storage_values = sequence_of(storageDims, "storageDims") if type(storageDims) is not aclIntArray else (
            (<aclIntArray>storageDims).values)
        read_ints(storageDims, "storageDims", &storage)
    if number not in DATA_TYPES:
        raise refusal(ERR_INVALID, f"dataType = {number}: must be one of aclDataType; ACL_FLOAT is 0")
    if i not in FORMATS:
        raise refusal(ERR_INVALID, f"format = {i}: must be one of aclFormat; ACL_FORMAT_ND is 2")
    tensor.dtype = <int32_t>number
    tensor.format = <int32_t>i
    item = item_size(tensor.dtype)
    if item == 0:
        raise refusal(ERR_INVALID, f"dataType = {aclDataType(number).name}: must be a dtype with a size in bytes")
    if view.size > MAX_RANK:
        raise refusal(ERR_INVALID, f"len(viewDims) = {view.size}: must be at most {<int>MAX_RANK}")
    if strides is not None and steps.size != view.size:
        raise refusal(ERR_INVALID, f"len(strides) = {steps.size}: must be len(viewDims) = {view.size}")
    tensor.rank = <int32_t>view.size
    for i in range(view.size):
        if view.values[i] < 0:
            raise refusal(ERR_INVALID, f"viewDims[{i}] = {view.values[i]}: must be >= 0")
        tensor.dims[i] = view.values[i]
        if strides is not None:
            tensor.strides[i] = steps.values[i]
    if tensor_size(tensor) < 0:
        raise refusal(ERR_INVALID, f"viewDims = {[view.values[i] for i in range(view.size)]}: has more elements than a "
                      "64-bit integer counts")
    if strides is None:
        make_row_major(tensor)
    tensor.storage = tensor_size(tensor)
    if storageDims is not None:
        tensor.storage = 1
        for i, size in enumerate(storage_values):
            if size < 0:
                raise refusal(ERR_INVALID, f"storageDims[{i}] = {size}: must be >= 0")
        if 0 in storage_values:
            tensor.storage = 0
        for size in storage_values:
            if mul_overflows(tensor.storage, size, &tensor.storage):
                raise refusal(ERR_INVALID, f"storageDims = {list(storage_values)}: has more elements than a 64-bit "
                              "integer counts")
    if mul_overflows(tensor.storage, item, &needed):
        raise refusal(ERR_INVALID, f"storageDims: {tensor.storage} elements have more bytes than a 64-bit integer "
                      "counts")
    if tensorData is not None:
        memory = read_memory(tensorData, "tensorData")
        if memory.size < needed:
            raise refusal(ERR_INVALID, f"tensorData: has {memory.size} bytes: must have at least the {needed} of its "
                          "storage; storageDims says how many")
        tensor.data = memory.data
        tensor.flags = WRITABLE if memory.writable else 0
        if <uintptr_t>memory.data % alignment_of(tensor.dtype) != 0:
            tensor.flags |= MISALIGNED
        result.owner = memory
    result.alive = True
    return result


def aclDestroyTensor(tensor):
    """Make an aclTensor unusable for new calls; None is fine. Executors made before keep what they need."""
    if tensor is None:
        return
    if type(tensor) is not aclTensor:
        raise TypeError(f"tensor = {tensor!r}: must be an aclTensor, not {type(tensor).__name__}")
    (<aclTensor>tensor).alive = False
    (<aclTensor>tensor).owner = None
