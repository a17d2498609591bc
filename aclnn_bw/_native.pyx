# cython: language_level=3
"""The compiled face: Python arguments to plain structs, the calls of both phases, and the split over threads.

Data flows one way: the functions here read arguments, the core (aclnn_bw._core) checks and plans, a kernel
(aclnn_bw._kernels) computes. The thin modules of the package re-export what is public.
"""
import contextvars
import os
import sys
import warnings
import weakref

import ml_dtypes
import numpy

from aclnn_bw.enums import aclDataType, aclFormat
from aclnn_bw.status import AclnnError

cimport cython
cimport numpy as cnp
from cpython.buffer cimport (
    PyBUF_FORMAT, PyBUF_ND, PyBUF_WRITABLE, PyBuffer_Release, PyObject_CheckBuffer, PyObject_GetBuffer,
)
from cpython.long cimport PyLong_AsLongLong, PyLong_AsLongLongAndOverflow, PyLong_CheckExact
from cpython.mem cimport PyMem_RawFree, PyMem_RawMalloc
from cpython.object cimport PyObject
from cpython.pycapsule cimport (
    PyCapsule_Destructor, PyCapsule_GetPointer, PyCapsule_IsValid, PyCapsule_New, PyCapsule_SetName,
)
from cpython.ref cimport Py_INCREF
from cpython.sequence cimport PySequence_Check
from cython.parallel cimport prange
from libc.stdint cimport int32_t, int64_t, uint64_t, uint8_t, uint16_t, uint32_t, uintptr_t

from aclnn_bw._core cimport avg_pool2d as core_avg_pool2d
from aclnn_bw._core cimport im2col as core_im2col
from aclnn_bw._core cimport max_pool2d as core_max_pool2d
from aclnn_bw._core cimport replication_pad2d as core_replication_pad2d
from aclnn_bw._core cimport upsample_nearest_exact1d as core_upsample
from aclnn_bw._core.arithmetic cimport mul_overflows, round_up
from aclnn_bw._core.dispatch cimport (
    ISA_BASELINE, ISA_NONE, ISA_V2, ISA_V3, ISA_V4, best_isa, has_isa, load_kernels,
)
from aclnn_bw._core.executor cimport (
    accept, delete_executor, execute, finish, make_repeatable, rebind, retract, run_range,
)
from aclnn_bw._core.names cimport name as argument_name
from aclnn_bw._core.names cimport operator_name
from aclnn_bw._core.products cimport takes_dtype as core_takes_dtype
from aclnn_bw._core.status cimport forget_message, recent_message, refuse
from aclnn_bw._core.tensor cimport (
    check_alignment, check_bounds, item_size, make_row_major, tensor_bounds, tensor_size,
)
from aclnn_bw._core.types cimport (
    ALIGNMENT, ARG_INDICES, ASCEND910B, AVG_POOL2D_BACKWARD, BROKEN_STRIDE, DT_BF16, DT_BOOL, DT_COMPLEX128,
    DT_COMPLEX64, DT_DOUBLE, DT_FLOAT, DT_FLOAT16, DT_INT16, DT_INT32, DT_INT64, DT_INT8, DT_UINT16, DT_UINT32,
    DT_UINT64, DT_UINT8, DT_UNDEFINED, ERR_CREATE_EXECUTOR, ERR_INNER, ERR_INNER_NULLPTR, ERR_INVALID, ERR_NULLPTR,
    FORMAT_NCHW, FORMAT_NCL, FORMAT_ND, HOST, IM2COL_BACKWARD, LAYOUT_ARGMAX, LAYOUT_BITMASK, MASK_HELPER, MAX_INTS,
    MAX_POOL2D_WITH_MASK, MAX_POOL2D_WITH_MASK_BACKWARD, MAX_RANK, MISALIGNED, ONE_CALL, OPERATORS,
    REPLICATION_PAD2D_BACKWARD, ROLE_WRITTEN, SUCCESS, SWAPPED, TWO_PHASE, UPSAMPLE_NEAREST_EXACT1D_BACKWARD, WRITABLE,
    Context, Executor, IntArray, KernelTable, Run, Tensor,
)

cnp.import_array()

cdef extern from "Python.h":
    PyObject** PySequence_Fast_ITEMS(object values)
    Py_ssize_t PySequence_Fast_GET_SIZE(object values)
    int PyContextVar_Get(object var, PyObject* default_value, PyObject** value) except -1
    void Py_XDECREF(PyObject*)

cdef extern from "dlpack.h":
    ctypedef struct DLDevice "aclnn_bw_dl_device":
        int32_t device_type
        int32_t device_id
    ctypedef struct DLDataType "aclnn_bw_dl_dtype":
        uint8_t code
        uint8_t bits
        uint16_t lanes
    ctypedef struct DLTensor "aclnn_bw_dl_tensor":
        void* data
        DLDevice device
        int32_t ndim
        DLDataType dtype
        int64_t* shape
        int64_t* strides
        uint64_t byte_offset
    ctypedef struct DLManaged "aclnn_bw_dl_managed":
        DLTensor tensor
        void* context
        void (*deleter)(DLManaged*)
    ctypedef struct DLVersion:
        uint32_t major
    ctypedef struct DLVersioned "aclnn_bw_dl_versioned":
        DLVersion version
        void (*deleter)(DLVersioned*)
        uint64_t flags
        DLTensor tensor

cdef extern from *:
    """
    #ifdef _OPENMP
    #define ACLNN_BW_OPENMP 1
    #else
    #define ACLNN_BW_OPENMP 0
    #endif
    #if defined(__clang__)
    #define ACLNN_BW_COMPILER "clang " __clang_version__
    #elif defined(__GNUC__)
    #define ACLNN_BW_COMPILER "gcc " __VERSION__
    #else
    #define ACLNN_BW_COMPILER "unknown"
    #endif
    """
    int HAS_OPENMP "ACLNN_BW_OPENMP"
    int trailing_zeros "__builtin_ctzll" (unsigned long long) noexcept
    const char* COMPILER "ACLNN_BW_COMPILER"

cdef enum:
    SMALL_WORKSPACE = 4096      # bytes that a one-call function takes from its own stack
    ROOM_WORDS = 256            # and for its executor, in 8 bytes each
    SHORT_WORK = 4096           # bytes below which giving up the GIL costs more than the kernel
    DL_CPU = 1
    DL_READ_ONLY = 1
    LIBRARY_NONE = 0
    LIBRARY_TORCH = 1
    LIBRARY_JAX = 2

cdef int BF16_NUMBER = numpy.dtype(ml_dtypes.bfloat16).num     # given out at run time, not a constant of NumPy's


# --- settings -------------------------------------------------------------------------------------------------------

cdef KernelTable kernels
cdef int chosen_isa = ISA_NONE
cdef int32_t process_product = ASCEND910B
cdef int32_t process_layout = LAYOUT_BITMASK
cdef int32_t process_threads = 1
cdef int32_t available_cores = 1
cdef bint in_forked_child = False
cdef int64_t forks = 0      # forks between the first process and this one

# None, or product | mask layout << 8; None, or a thread count. Set through products.soc and threads.num_threads.
soc_setting = contextvars.ContextVar("aclnn_bw.soc", default=None)
threads_setting = contextvars.ContextVar("aclnn_bw.num_threads", default=None)
cdef object soc_variable = soc_setting
cdef object threads_variable = threads_setting


cdef int64_t context_value(object variable, int64_t otherwise) except? -1:
    cdef PyObject* found = NULL
    cdef int64_t value = otherwise
    PyContextVar_Get(variable, NULL, &found)
    if <object>found is not None:
        value = PyLong_AsLongLong(<object>found)
    Py_XDECREF(found)
    return value


# Where the executor of a one-call function lies, which does not outlive the call.
cdef struct Room:
    uint64_t[ROOM_WORDS] words


cdef int current_context(Context* context, int face, Room* room) except -1:
    cdef int64_t setting = HOST     # one-call functions have a product, and a mask layout, of their own
    if face == TWO_PHASE:
        setting = context_value(soc_variable, process_product | process_layout << 8)
    context.kernels = &kernels
    context.face = face
    context.product = setting & 0xff
    context.mask_layout = setting >> 8
    context.room = room
    context.room_size = sizeof(Room) if room != NULL else 0
    context.threads = <int32_t>context_value(threads_variable, process_threads) if HAS_OPENMP else 1
    context.cores = available_cores
    if in_forked_child:
        context.threads = 1
    return 0


def set_process_product(int product, int mask_layout):
    """Set the product and the mask layout that hold where no `soc` context does."""
    global process_product, process_layout
    process_product = product
    process_layout = mask_layout


def current_product():
    """Return (product, mask layout) as the calling context has them."""
    cdef Context context
    current_context(&context, TWO_PHASE, NULL)
    return context.product, context.mask_layout


def set_process_threads(int threads, int cores):
    """Set the thread count that holds where no `num_threads` context does, and the cores it is judged by."""
    global process_threads, available_cores
    process_threads = threads
    available_cores = cores


def current_threads():
    """Return the thread count as the calling context has it."""
    return context_value(threads_variable, process_threads)


def enter_forked_child():
    """Run every plan serially from now on: a child cannot use the OpenMP pool that it inherits."""
    global in_forked_child, forks
    in_forked_child = True
    forks += 1


def takes_dtype(int op, int product, int dtype):
    """Tell whether an operator takes a dtype on a product."""
    return core_takes_dtype(op, product, dtype)


ISA_NAMES = {"baseline": ISA_BASELINE, "v2": ISA_V2, "v3": ISA_V3, "v4": ISA_V4}
cdef dict ISA_OF_NUMBER = {number: name for name, number in ISA_NAMES.items()}


def choose_isa():
    """Load the kernels of the best instruction set that the CPU has and ACLNN_BW_ISA allows."""
    global chosen_isa
    cap = os.environ.get("ACLNN_BW_ISA", "")
    chosen_isa = best_isa()
    if chosen_isa == ISA_NONE:
        raise ImportError("aclnn_bw needs a CPU with the x86-64-v2 instructions (SSE4.2, POPCNT); this one lacks them")
    if cap in ("v2", "v3", "v4"):
        if chosen_isa != ISA_BASELINE:
            chosen_isa = min(chosen_isa, <int>ISA_NAMES[cap])
    elif cap:
        warnings.warn(f"ACLNN_BW_ISA={cap!r} is ignored: must be v2, v3 or v4", RuntimeWarning, stacklevel=2)
    load_kernels(chosen_isa, &kernels)


choose_isa()


def build_info():
    """Return what is fixed by the build and the CPU."""
    return {
        "isa": ISA_OF_NUMBER[chosen_isa],
        "isa_available": [name for name, number in ISA_NAMES.items() if has_isa(number)],
        "openmp": bool(HAS_OPENMP),
        "compiler": COMPILER.decode(),
    }


# --- messages -------------------------------------------------------------------------------------------------------

cdef object error_of(int status):
    """The exception for a status whose message the core has left."""
    message = (<bytes>recent_message()).decode("utf-8", "replace")
    if status == ERR_CREATE_EXECUTOR:
        return MemoryError(message)
    return AclnnError(status, message)


def refusal(int status, str message):
    """Make the exception of a refusal found above the core, and leave its message for aclGetRecentErrMsg."""
    encoded = message.encode()
    refuse(status, "%s", <const char*>encoded)
    return AclnnError(status, message)


def aclGetRecentErrMsg():
    """Return the calling thread's last error message and forget it; None if there is none.

    >>> import aclnn_bw
    >>> aclnn_bw.aclDestroyAclOpExecutor(None)
    Traceback (most recent call last):
    ...
    aclnn_bw.status.AclnnError: executor = None: must not be null
    >>> aclnn_bw.aclGetRecentErrMsg()
    'executor = None: must not be null'
    >>> aclnn_bw.aclGetRecentErrMsg() is None
    True
    """
    cdef bytes message = recent_message()
    forget_message()
    return message.decode("utf-8", "replace") if message else None


# --- integers -------------------------------------------------------------------------------------------------------

cdef inline int64_t read_int(object value, str name) except? -1:
    """A Python int (or IntEnum member) or a NumPy integer."""
    cdef int overflow = 0
    cdef int64_t number
    if PyLong_CheckExact(value):
        number = PyLong_AsLongLongAndOverflow(value, &overflow)
        if overflow == 0:
            return number
    return read_unusual_int(value, name)


cdef int64_t read_unusual_int(object value, str name) except? -1:
    if not PyLong_CheckExact(value):
        if isinstance(value, bool) or not isinstance(value, (int, numpy.integer)):
            raise TypeError(f"{name} = {value!r}: must be an int, not {type(value).__name__}")
        value = int(value)
    try:
        return PyLong_AsLongLong(value)
    except OverflowError:
        raise OverflowError(f"{name} = {value}: must fit a 64-bit integer") from None


cdef bint read_bool(object value, str name) except -1:
    """A bool, or 0 or 1."""
    if value is True:
        return True
    if value is False:
        return False
    if isinstance(value, (numpy.bool_, int, numpy.integer)) and value in (0, 1):
        return bool(value)
    raise TypeError(f"{name} = {value!r}: must be a bool, not {type(value).__name__}")


cdef double read_double(object value, str name) except? -1:
    """A Python float or int, or a NumPy one."""
    if type(value) is float:
        return <double>value
    if isinstance(value, (bool, numpy.bool_)) or not isinstance(value, (float, int, numpy.floating, numpy.integer)):
        raise TypeError(f"{name} = {value!r}: must be a float, not {type(value).__name__}")
    try:
        return float(value)
    except OverflowError:
        raise OverflowError(f"{name} = {value}: must fit a double") from None


@cython.final
cdef class aclIntArray:
    """An array of 64-bit ints, made by aclCreateIntArray."""

    cdef tuple values
    cdef bint alive

    def __cinit__(self):
        self.values = ()
        self.alive = False

    def __init__(self):
        raise TypeError("aclIntArray is made by aclCreateIntArray")

    def __len__(self):
        return len(self.values)

    def __repr__(self):
        return f"<aclIntArray {list(self.values)}{'' if self.alive else ', destroyed'}>"


cdef tuple sequence_of(object values, str name, bint scalar_allowed=False):
    """Any sequence of ints as a tuple; what merely looks like one (text, bytes, a mapping) is refused."""
    if isinstance(values, numpy.ndarray) and values.ndim == 1:
        return tuple(values.tolist())
    if (isinstance(values, (str, bytes, bytearray, memoryview, dict, numpy.ndarray, numpy.generic))
            or not PySequence_Check(values)):
        wanted = "an int or a sequence of ints" if scalar_allowed else "a sequence of ints"
        remedy = f"; pass [{values}]" if type(values) is int else ""
        raise TypeError(f"{name} = {values!r}: must be {wanted}, not {type(values).__name__}{remedy}")
    return tuple(values)


cdef bint plain_ints(object values, IntArray* array) noexcept:
    """Read a list or tuple of ints that fit, the usual case; False for any other."""
    cdef PyObject** items = PySequence_Fast_ITEMS(values)
    cdef Py_ssize_t i
    cdef int overflow = 0
    array.size = PySequence_Fast_GET_SIZE(values)
    if array.size > MAX_INTS:
        return False
    for i in range(array.size):
        if not PyLong_CheckExact(<object>items[i]):
            return False
        array.values[i] = PyLong_AsLongLongAndOverflow(<object>items[i], &overflow)
        if overflow != 0:
            return False
    return True


cdef int read_ints(object values, str name, IntArray* array, bint scalar_allowed=False) except -1:
    """An aclIntArray or a sequence of ints; a bare int only where a one-call function allows it."""
    cdef Py_ssize_t i
    array.scalar = False
    if type(values) is aclIntArray:
        if not (<aclIntArray>values).alive:
            raise refusal(ERR_INVALID, f"{name}: is a destroyed aclIntArray; make it anew by aclCreateIntArray")
        values = (<aclIntArray>values).values
    elif scalar_allowed and (PyLong_CheckExact(values)
                             or not (type(values) is tuple or type(values) is list)
                             and isinstance(values, (int, numpy.integer))):
        array.scalar = True
        array.size = 1
        array.values[0] = read_int(values, name)
        return 0
    elif type(values) is not tuple and type(values) is not list:
        values = sequence_of(values, name, scalar_allowed)
    if plain_ints(values, array):
        return 0
    array.size = len(values)
    for i in range(array.size):
        # All are converted, so that the first bad one is named; those beyond MAX_INTS are refused by their number.
        if type(values) is list:
            item = (<list>values)[i]
        else:
            item = (<tuple>values)[i]
        if PyLong_CheckExact(item) and i < MAX_INTS:
            array.values[i] = read_int(item, name)
        elif i < MAX_INTS:
            array.values[i] = read_int(item, f"{name}[{i}]")
        else:
            read_int(item, f"{name}[{i}]")
    return 0


def aclCreateIntArray(value, size=None):
    """Make an aclIntArray of the first `size` of a sequence of ints (default: of all).

    >>> import aclnn_bw
    >>> aclnn_bw.aclCreateIntArray([3, 3], 2)
    <aclIntArray [3, 3]>
    """
    cdef aclIntArray array
    cdef tuple values
    cdef int64_t count
    if value is None and size == 0:
        values = ()
    elif value is None:
        raise refusal(ERR_NULLPTR, "value = None: must not be null")
    elif type(value) is aclIntArray:
        if not (<aclIntArray>value).alive:
            raise refusal(ERR_INVALID, "value: is a destroyed aclIntArray")
        values = (<aclIntArray>value).values
    else:
        values = sequence_of(value, "value")
    values = tuple([read_int(item, f"value[{i}]") for i, item in enumerate(values)])
    count = len(values) if size is None else read_int(size, "size")
    if not 0 <= count <= len(values):
        raise refusal(ERR_INVALID, f"size = {count}: must be in [0, {len(values)}], the length of value")
    array = aclIntArray.__new__(aclIntArray)
    array.values = values[:count]
    array.alive = True
    return array


def aclDestroyIntArray(array):
    """Make an aclIntArray unusable for new calls; None is fine. Executors made before keep what they need."""
    if array is None:
        return
    if type(array) is not aclIntArray:
        raise TypeError(f"array = {array!r}: must be an aclIntArray, not {type(array).__name__}")
    (<aclIntArray>array).alive = False


# --- tensors --------------------------------------------------------------------------------------------------------

@cython.final
cdef class aclTensor:
    """A view over memory: dims, strides, offset, storage, dtype and format. Made by aclCreateTensor."""

    cdef Tensor tensor
    cdef object owner       # keeps the memory; None while unbound
    cdef bint alive
    cdef object __weakref__

    def __init__(self):
        raise TypeError("aclTensor is made by aclCreateTensor")

    def __repr__(self):
        cdef Tensor* t = &self.tensor
        shape = tuple([t.dims[i] for i in range(t.rank)])
        strides = tuple([t.strides[i] for i in range(t.rank)])
        state = "" if self.alive else ", destroyed"
        state += ", unbound" if self.alive and t.data == NULL else ""
        return (f"<aclTensor {aclDataType(t.dtype).name} {aclFormat(t.format).name} shape={shape} strides={strides} "
                f"offset={t.offset} storage={t.storage}{state}>")


cdef int dtype_of_number(int number, char kind, int64_t size) noexcept:
    """NumPy's type number (or kind and size) as an aclDataType."""
    if number == cnp.NPY_FLOAT:
        return DT_FLOAT
    if number == cnp.NPY_DOUBLE:
        return DT_DOUBLE
    if number == cnp.NPY_FLOAT16:
        return DT_FLOAT16
    if number == BF16_NUMBER:
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
    if isinstance(exporter, type):
        raise TypeError(f"{name}: must be an array, not the class {exporter.__name__}")
    device = exporter.__dlpack_device__() if hasattr(exporter, "__dlpack_device__") else (DL_CPU, 0)
    try:
        device_type = int(device[0])
    except (TypeError, ValueError, LookupError):
        raise TypeError(f"{name}: __dlpack_device__ returned {device!r}: must be (device type, device id)") from None
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
    owner.library = library_of(exporter)
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
        raise TypeError(f"{name}: __dlpack__ returned {capsule!r}, which is no DLPack capsule")
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
    if dtype in (DT_COMPLEX64, DT_COMPLEX128):
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
        read_array(value, tensor)
        return value
    if not isinstance(value, (list, tuple, int, float, complex, numpy.generic, type)):
        if hasattr(value, "__dlpack__"):
            return read_dlpack(value, name, tensor)
        if hasattr(value, "__array_interface__"):
            array = numpy.asarray(value)
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
        raise refusal(ERR_INVALID, f"dataType = {aclDataType(number).name}: must be a dtype with a size")
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


# --- executors ------------------------------------------------------------------------------------------------------

@cython.final
@cython.freelist(16)
cdef class aclOpExecutor:
    """What phase 1 leaves for phase 2: the plan and the tensors. It runs once unless it is made repeatable."""

    cdef Executor* executor
    cdef tuple handles      # the tensor arguments as the caller gave them
    cdef tuple owners       # what keeps their memory alive; None once it is not needed any more
    cdef bint destroyed
    cdef int64_t forks      # of the process in which it was last used

    def __init__(self):
        raise TypeError("aclOpExecutor is made by a GetWorkspaceSize call")

    def __dealloc__(self):
        delete_executor(self.executor)

    cdef str state(self):
        cdef int64_t runs = self.executor.claim & 0xffffffff if self.forks == forks else 0
        if self.destroyed:
            return "destroyed"
        if self.executor.spent:
            return "spent"
        if not self.executor.repeatable:
            return "ready"
        return "repeatable" if runs == 0 else f"repeatable, {counted(runs, 'run')} queued or running"

    def __repr__(self):
        if self.executor == NULL:
            return "<aclOpExecutor that no phase 1 has made>"
        return (f"<aclOpExecutor {OPERATOR_NAMES[self.executor.op]} {self.state()}, "
                f"{counted(self.executor.threads, 'thread')}, workspace {self.executor.workspace_size} bytes>")

    def __enter__(self):
        usable_executor(self, ERR_INNER_NULLPTR)
        return self

    def __exit__(self, kind, error, traceback):
        """Destroy the executor, if nobody has yet. Runs that are queued still run."""
        if not self.destroyed:
            aclDestroyAclOpExecutor(self)

    def explain(self):
        """Return an Explanation: what phase 1 has decided, and what the work is.

        Any executor can be asked, a spent or destroyed one too.

        >>> import numpy as np, aclnn_bw
        >>> size, executor = aclnn_bw.aclnnReplicationPad2dBackwardGetWorkspaceSize(
        ...     np.ones((1, 4, 4), np.float32), np.empty((1, 2, 2), np.float32), [1, 1, 1, 1],
        ...     np.empty((1, 2, 2), np.float32))
        >>> executor.explain().algorithm, executor.explain().compulsory_bytes
        ('PLANES', 80)
        """
        if self.executor == NULL:
            raise refusal(ERR_INNER, f"executor = {self!r}: must be an executor that phase 1 returned")
        return explanation_of(self)


cdef str counted(int64_t number, str what):
    return f"{number} {what}{'' if number == 1 else 's'}"


OPERATOR_NAMES = {op: (<bytes>operator_name(op)).decode() for op in range(OPERATORS)}


cdef tuple pair(const int64_t* values):
    return values[0], values[1]


cdef object explanation_of(aclOpExecutor handle):
    """What the plan of an executor says, in the words of aclnn_bw.explanation."""
    from aclnn_bw.explanation import Explanation

    cdef Executor* executor = handle.executor
    cdef const core_avg_pool2d.AvgPool2dPlan* avg = <const core_avg_pool2d.AvgPool2dPlan*>executor.plan
    cdef const core_max_pool2d.MaxPool2d* pool = <const core_max_pool2d.MaxPool2d*>executor.plan
    cdef const core_im2col.Im2colPlan* columns = <const core_im2col.Im2colPlan*>executor.plan
    cdef const core_replication_pad2d.ReplicationPad2dPlan* pads = (
        <const core_replication_pad2d.ReplicationPad2dPlan*>executor.plan)
    cdef const core_upsample.UpsampleNearestExact1dPlan* rows = (
        <const core_upsample.UpsampleNearestExact1dPlan*>executor.plan)
    cdef Context context
    cdef Tensor* tensor
    cdef int op = executor.op
    cdef int i
    cdef str algorithm = ""
    cdef dict geometry = {}
    context.face = executor.face
    for i in range(executor.tensors):
        tensor = &executor.tensor[i]
        geometry[(<bytes>argument_name(&context, executor.arguments[i])).decode()] = tuple(
            [tensor.dims[axis] for axis in range(tensor.rank)])
    if executor.units > 0 and op == AVG_POOL2D_BACKWARD:
        algorithm = AVG_POOL2D_ALGORITHMS[avg.algorithm]
        geometry["kernelSize"] = avg.h.full_kernel, avg.w.full_kernel
        geometry["stride"] = avg.h.full_stride, avg.w.full_stride
        geometry["padding"] = avg.h.full_pad, avg.w.full_pad
        geometry["countIncludePad"] = bool(avg.count_include_pad)
    elif executor.units > 0 and op in (MAX_POOL2D_WITH_MASK, MAX_POOL2D_WITH_MASK_BACKWARD):
        algorithm = MAX_POOL2D_ALGORITHMS[pool.algorithm]
        geometry["kernelSize"] = pool.h.kernel, pool.w.kernel
        geometry["stride"] = pair(pool.full_stride)
        geometry["padding"] = pool.h.pad, pool.w.pad
        geometry["mask_layout"] = "argmax" if pool.argmax else "bitmask"
    elif executor.units > 0 and op == IM2COL_BACKWARD:
        algorithm = IM2COL_ALGORITHMS[columns.algorithm]
        geometry["kernelSize"] = pair(columns.full_kernel)
        geometry["dilation"] = pair(columns.full_dilation)
        geometry["padding"] = pair(columns.full_pad)
        geometry["stride"] = pair(columns.full_stride)
    elif executor.units > 0 and op == REPLICATION_PAD2D_BACKWARD:
        algorithm = REPLICATION_PAD2D_LAYOUTS[pads.layout]
        geometry["padding"] = tuple([(<const int64_t*>(pads + 1))[i] for i in range(4)])
    elif executor.units > 0 and op == UPSAMPLE_NEAREST_EXACT1D_BACKWARD:
        algorithm = f"{UPSAMPLE_LAYOUTS[rows.layout]}, {UPSAMPLE_TABLES[rows.tables]}"
        geometry["ratio"] = <double>rows.map.ratio
    return Explanation(
        operator=OPERATOR_NAMES[op], state=handle.state(), dtype=aclDataType(executor.tensor[0].dtype),
        geometry=geometry, algorithm=algorithm, isa=ISA_OF_NUMBER[chosen_isa], threads=executor.threads,
        ranges=executor.ranges, units=executor.units, workspace_size=executor.workspace_size,
        compulsory_bytes=executor.bytes)


# The names of the core's enums, in their order; aclnn_bw.explanation says what they mean.
cdef tuple AVG_POOL2D_ALGORITHMS = ("FILL", "DOUBLE", "BANDED", "STREAMED")
cdef tuple MAX_POOL2D_ALGORITHMS = ("GATHER", "SCATTER", "PLANES", "PHASES", "SCAN")
cdef tuple IM2COL_ALGORITHMS = ("SCATTER", "GATHER", "INTERLEAVE")
cdef tuple REPLICATION_PAD2D_LAYOUTS = ("PLANES", "PACKED", "PIXELS")
cdef tuple UPSAMPLE_LAYOUTS = ("ROWS", "PACKED", "PIXELS")
cdef tuple UPSAMPLE_TABLES = ("PERIODIC", "WHOLE", "FILLED")


cdef object phase_1_result(Executor* executor, tuple handles, tuple owners):
    """(workspaceSize, executor) of a C executor that is now Python's; owners None: bare arrays, their own owners."""
    cdef aclOpExecutor result = aclOpExecutor.__new__(aclOpExecutor)
    result.executor = executor
    result.forks = forks
    result.handles = handles
    result.owners = handles if owners is None else owners
    return executor.workspace_size, result


cdef int run_and_finish(Run* run) noexcept:
    """Every range of a plan, on a team of threads or here and now, without the GIL unless the work is short.

    The GIL is held at the call, and Cython knows it: in a `nogil` function its prange asks PyGILState_Check, which
    before Python 3.12 says yes to everybody once a second interpreter was made, and ends the process.
    """
    cdef int64_t i
    cdef int64_t ranges = run.executor.ranges
    cdef int status
    if run.executor.bytes < SHORT_WORK:
        for i in range(ranges):
            run_range(run, i)
        return finish(run)
    with nogil:
        # A region of one thread costs more than a tiny kernel; the pool of a forked child's parent is not the child's.
        if ranges <= 1 or in_forked_child:
            for i in range(ranges):
                run_range(run, i)
        else:
            for i in prange(ranges, schedule="static", chunksize=1, num_threads=run.executor.threads):
                run_range(run, i)
        status = finish(run)
    return status


cdef aclOpExecutor usable_executor(object value, int null_status):
    """The executor argument of a call; raises for null, for what is none, and for a destroyed one."""
    if value is None:
        raise refusal(null_status, "executor = None: must not be null")
    if type(value) is not aclOpExecutor or (<aclOpExecutor>value).executor == NULL:
        raise refusal(ERR_INNER, f"executor = {value!r}: must be an executor that phase 1 returned")
    if (<aclOpExecutor>value).destroyed:
        raise refusal(ERR_INNER, "executor: has been destroyed; call phase 1 again")
    if (<aclOpExecutor>value).forks != forks:
        # Runs that were queued at the fork are the parent's; nothing here will ever finish them.
        (<aclOpExecutor>value).forks = forks
        (<aclOpExecutor>value).executor.claim = 0
    return value


@cython.final
cdef class Job:
    """One accepted run on a stream's queue; it holds all that the run needs until it is done."""

    cdef Run run
    cdef aclOpExecutor executor
    cdef tuple owners
    cdef Memory workspace
    cdef bint begun         # or never to begin, for it was retracted

    def execute(self):
        """Run; called once, on the stream's thread."""
        cdef int status
        if self.begun:
            return
        self.begun = True
        status = run_and_finish(&self.run)
        self.owners = None
        self.workspace = None
        if status != SUCCESS:
            raise error_of(status)


cdef object run_phase_2(int op, object workspace, object workspaceSize, object executor, object stream):
    """Phase 2 of any operator."""
    cdef aclOpExecutor handle
    cdef Memory memory = None
    cdef Run run
    cdef Job job
    cdef char* data = NULL
    cdef int64_t size
    cdef int64_t queue = 0
    cdef int status
    cdef tuple owners
    if workspace is not None:
        memory = read_memory(workspace, "workspace")
        data = memory.data
    size = read_int(workspaceSize, "workspaceSize")
    if stream is not None and not hasattr(stream, "_submit"):
        raise TypeError(f"stream = {stream!r}: must be an aclrtStream or None, not {type(stream).__name__}")
    handle = usable_executor(executor, ERR_NULLPTR)
    if size < 0:
        raise refusal(ERR_INVALID, f"workspaceSize = {size}: must be >= 0")
    if memory is not None and size > 0 and not handle.executor.spent:
        if not memory.writable:
            raise refusal(ERR_INVALID, "workspace is read-only: must be writable; pass a bytearray")
        if memory.size < size:
            raise refusal(ERR_INVALID, f"workspace: has {memory.size} bytes: must have at least workspaceSize = {size}"
                          "; aclrtMalloc(workspaceSize) has")
    if stream is None:
        status = accept(handle.executor, op, data, size, 0, &run)
        if status != SUCCESS:
            raise error_of(status)
        owners = handle.owners      # of the addresses that were accepted: others may come while it runs
        status = run_and_finish(&run)
        if not handle.executor.repeatable:
            handle.owners = handle.handles = None
        if status != SUCCESS:
            raise error_of(status)
        return
    job = Job.__new__(Job)
    queue = stream._number
    status = accept(handle.executor, op, data, size, queue, &job.run)
    if status != SUCCESS:
        raise error_of(status)
    owners = handle.owners
    job.executor = handle
    job.owners = owners
    job.workspace = memory
    try:
        stream._submit(job)
    except BaseException:
        # A signal's handler may raise when the job is queued already, and even running.
        if not job.begun:
            job.begun = True
            retract(&job.run)
        raise
    if not handle.executor.repeatable:
        handle.owners = handle.handles = None


def aclSetAclOpExecutorRepeatable(executor):
    """Let an executor run any number of times, until aclDestroyAclOpExecutor. To be called before its first run."""
    cdef aclOpExecutor handle = usable_executor(executor, ERR_INNER_NULLPTR)
    cdef int status = make_repeatable(handle.executor)
    if status != SUCCESS:
        raise error_of(status)


def aclDestroyAclOpExecutor(executor):
    """End an executor. Runs that are already queued still run; nothing else accepts it any more."""
    cdef aclOpExecutor handle = usable_executor(executor, ERR_INNER_NULLPTR)
    handle.destroyed = True
    handle.owners = handle.handles = None


cdef tuple RAW_DTYPES = (numpy.dtype(numpy.uint8), numpy.dtype(numpy.int8))


cdef bint same_dims(const Tensor* a, const Tensor* b) noexcept:
    cdef int i
    if a.rank != b.rank:
        return False
    for i in range(a.rank):
        if a.dims[i] != b.dims[i]:
            return False
    return True


cdef tuple replaced(tuple values, int64_t position, object value):
    """The tuple with another value at a position."""
    cdef list changed = list(values)
    changed[position] = value
    return tuple(changed)


cdef object set_address(object executor, object index, object tensor, object data, int role_written):
    """Re-point tensor `index` among the inputs (0), the outputs (1) or all (-1)."""
    cdef aclOpExecutor handle
    cdef int64_t i, count, position
    cdef Context context
    cdef Tensor given
    cdef Tensor* known
    cdef Memory memory
    cdef int status, axis
    cdef bint same
    cdef tuple owners, handles, new_owners, new_handles
    i = read_int(index, "index")
    handle = usable_executor(executor, ERR_INNER_NULLPTR)
    if handle.executor.spent:
        raise refusal(ERR_INNER, "executor: is spent; call phase 1 again")
    if not handle.executor.repeatable:
        raise refusal(ERR_INNER, "executor: is not repeatable; call aclSetAclOpExecutorRepeatable first")
    count = 0
    position = -1
    for axis in range(handle.executor.tensors):
        if role_written == -1 or (handle.executor.roles[axis] == ROLE_WRITTEN) == role_written:
            if count == i:
                position = axis
            count += 1
    if position < 0:
        raise refusal(ERR_INVALID, f"index = {i}: must be in [0, {count})")
    known_handle = handle.handles[position]
    if type(known_handle) is weakref.ref:
        known_handle = known_handle()
    if tensor is not None and tensor is not known_handle:
        raise refusal(ERR_INVALID, "tensor: must be the one that phase 1 was given at this index, or None")
    if data is None:
        raise refusal(ERR_INNER_NULLPTR, "data = None: must not be null")
    current_context(&context, TWO_PHASE, NULL)
    known = &handle.executor.tensor[position]
    same = False
    if type(data) is not aclTensor and (isinstance(data, cnp.ndarray) or hasattr(data, "__dlpack__")):
        owner = read_tensor(data, "data", &given)
        if given.flags & SWAPPED:
            raise refusal(ERR_INVALID, "data: must be in native byte order")
        same = given.rank == known.rank and given.dtype == known.dtype
        for axis in range(known.rank):
            same = same and given.dims[axis] == known.dims[axis] and (
                given.strides[axis] == known.strides[axis] or given.dims[axis] == 1)
    if same:
        # An array with the very view: only its address and flags are new.
        given.data += (given.offset - known.offset) * item_size(known.dtype)
        given.storage += known.offset - given.offset
        given.offset = known.offset
        given.format = known.format
        for axis in range(known.rank):
            given.strides[axis] = known.strides[axis]
    else:
        if isinstance(data, cnp.ndarray) and not (
                data.dtype in RAW_DTYPES or (given.dtype == known.dtype and not same_dims(&given, known))):
            raise refusal(ERR_INVALID, f"data: is an array of dtype {data.dtype}, shape {data.shape} and strides "
                          f"{data.strides}: must be one with the tensor's shape, strides and dtype, or plain memory of "
                          "bytes or of the tensor's dtype")
        memory = read_memory(data, "data")
        owner = memory
        given = known[0]
        if memory.size < given.storage * item_size(given.dtype):
            raise refusal(ERR_INVALID, f"data: has {memory.size} bytes: must be an array with the tensor's shape, "
                          "strides and dtype, or a buffer of at least the "
                          f"{given.storage * item_size(given.dtype)} bytes of its storage")
        given.data = memory.data
        given.flags = WRITABLE if memory.writable else 0
        if <uintptr_t>memory.data % alignment_of(given.dtype) != 0:
            given.flags |= MISALIGNED
    # The old tensor is known by a weak reference from now on, so that its memory can go.
    try:
        known_handle = None if known_handle is None else weakref.ref(known_handle)
    except TypeError:
        pass
    while True:     # each allocation may collect garbage, whose finalizers may come here for another tensor
        owners = handle.owners
        handles = handle.handles
        if owners is None:
            raise refusal(ERR_INNER, "executor: has been destroyed")
        new_owners = replaced(owners, position, owner)
        new_handles = replaced(handles, position, known_handle)
        if handle.owners is owners and handle.handles is handles:
            break
    status = rebind(handle.executor, &context, position, &given)
    if status != SUCCESS:
        raise error_of(status)
    handle.owners, handle.handles = new_owners, new_handles


def aclSetInputTensorAddr(executor, index, tensor, data):
    """Re-point the `index`-th tensor input of a repeatable executor, counted from 0 in argument order.

    `tensor` is the one given to phase 1, or None. `data` is a buffer that becomes the storage (dims, strides, offset
    and dtype stay), or an array with the view's shape, strides and dtype. Everything that depends on memory is checked
    again; a refusal changes nothing. Runs that are already queued keep the old address.
    """
    set_address(executor, index, tensor, data, 0)


def aclSetOutputTensorAddr(executor, index, tensor, data):
    """Re-point the `index`-th tensor output of a repeatable executor; otherwise as aclSetInputTensorAddr."""
    set_address(executor, index, tensor, data, 1)


def aclSetTensorAddr(executor, index, tensor, data):
    """Re-point a tensor of a repeatable executor; `index` counts all tensor arguments."""
    set_address(executor, index, tensor, data, -1)


# --- one-call functions ---------------------------------------------------------------------------------------------

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
    return describe_fresh(tensor, name)


cdef object describe_fresh(Tensor* tensor, str name):
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


cdef int number_of(int dtype) noexcept:
    """An aclDataType as NumPy's type number."""
    if dtype == DT_FLOAT:
        return cnp.NPY_FLOAT
    if dtype == DT_DOUBLE:
        return cnp.NPY_DOUBLE
    if dtype == DT_FLOAT16:
        return cnp.NPY_FLOAT16
    if dtype == DT_BF16:
        return BF16_NUMBER
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


cdef object new_array(const Tensor* tensor, object like):
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


cdef object finish_one_call(Executor* executor, int position, const Tensor* output, object out, object out_owner,
                            object owner_1, object owner_2, object owner_3):
    """Run with `out`, or with a fresh array that gets its address now (the plan does not depend on it); returns it, as
    an array of the library that the first argument came from. The owners live meanwhile, as arguments, that of the
    first one first: a tuple of them would show in a tiny call."""
    if out is not None:
        run_at_once(executor)
        return out
    try:
        out = new_array(output, owner_1)
    except BaseException:
        delete_executor(executor)
        raise
    executor.tensor[position].data = <char*>cnp.PyArray_DATA(out)
    run_at_once(executor)
    return out if type(owner_1) is cnp.ndarray else as_given(owner_1, out)


cdef object as_given(object owner, object array):
    """The array as one of the library whose array the owner keeps."""
    if type(owner) is DLPackOwner and (<DLPackOwner>owner).library != LIBRARY_NONE:
        return array_of_library((<DLPackOwner>owner).library, array)
    return array


# --- AvgPool2dBackward ----------------------------------------------------------------------------------------------

def aclnnAvgPool2dBackwardGetWorkspaceSize(gradOutput, self, kernelSize, stride, padding, ceilMode, countIncludePad,
                                           divisorOverride, cubeMathType, gradInput):
    """Phase 1 of AvgPool2dBackward: check the arguments, plan the work; returns (workspaceSize in bytes, executor).

    gradOutput (N, C, Ho, Wo) or (C, Ho, Wo), self and gradInput (N, C, H, W) or (C, H, W), all of one dtype that the
    product takes: ACL_FLOAT, ACL_FLOAT16, ACL_BF16 (Ascend910B, Host), ACL_DOUBLE (Host). kernelSize and padding have
    1 or 2 values, stride 0, 1 or 2 or is None (then it is the kernel size). divisorOverride 0 means none. cubeMathType
    is a CubeMathType. self gives its shape only. Raises AclnnError for a refusal; then nothing has been written.

    gradInput[h, w] is the sum of gradOutput[oh, ow] / divisor over the windows that hold (h, w): the gradient of
    PyTorch's avg_pool2d, under the names of CANN's aclnnAvgPool2dBackward.

    >>> import numpy as np, aclnn_bw
    >>> gradOutput, gradInput = np.ones((1, 1, 2, 2), np.float32), np.empty((1, 1, 4, 4), np.float32)
    >>> size, executor = aclnn_bw.aclnnAvgPool2dBackwardGetWorkspaceSize(
    ...     gradOutput, gradInput, [2, 2], [2, 2], [0, 0], False, True, 0, aclnn_bw.KEEP_DTYPE, gradInput)
    >>> aclnn_bw.aclnnAvgPool2dBackward(bytearray(size), size, executor)
    >>> gradInput[0, 0, 0]
    array([0.25, 0.25, 0.25, 0.25], dtype=float32)
    """
    cdef Context context
    cdef Tensor grad_output, shape, grad_input
    cdef IntArray kernel_size, strides, pads
    cdef Executor* executor = NULL
    cdef int64_t divisor, mode
    cdef bint ceil_mode, include_pad
    cdef int status
    grad_output_owner = read_tensor(gradOutput, "gradOutput", &grad_output) if gradOutput is not None else None
    shape_owner = read_tensor(self, "self", &shape) if self is not None else None
    if kernelSize is not None:
        read_ints(kernelSize, "kernelSize", &kernel_size)
    if stride is not None:
        read_ints(stride, "stride", &strides)
    if padding is not None:
        read_ints(padding, "padding", &pads)
    ceil_mode = read_bool(ceilMode, "ceilMode")
    include_pad = read_bool(countIncludePad, "countIncludePad")
    divisor = read_int(divisorOverride, "divisorOverride")
    mode = read_int(cubeMathType, "cubeMathType")
    grad_input_owner = read_tensor(gradInput, "gradInput", &grad_input) if gradInput is not None else None
    current_context(&context, TWO_PHASE, NULL)
    status = core_avg_pool2d.avg_pool2d_backward(
        &context, &grad_output if gradOutput is not None else NULL, &shape if self is not None else NULL,
        &kernel_size if kernelSize is not None else NULL, &strides if stride is not None else NULL,
        &pads if padding is not None else NULL, ceil_mode, include_pad, &divisor, mode,
        &grad_input if gradInput is not None else NULL, &executor)
    if status != SUCCESS:
        raise error_of(status)
    return phase_1_result(executor, (gradOutput, self, gradInput), (
        None if grad_output_owner is gradOutput and shape_owner is self and grad_input_owner is gradInput
        else (grad_output_owner, shape_owner, grad_input_owner)))


def aclnnAvgPool2dBackward(workspace, workspaceSize, executor, stream=None):
    """Phase 2 of AvgPool2dBackward: run the executor, on the calling thread or on a stream.

    workspace is any writable buffer of at least workspaceSize bytes, None if that is 0.
    """
    run_phase_2(AVG_POOL2D_BACKWARD, workspace, workspaceSize, executor, stream)


def avg_pool2d_backward(grad_output, self, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True,
                        divisor_override=None, *, out=None):
    """Return the gradient of avg_pool2d with respect to its input.

    grad_output (N, C, Ho, Wo) or (C, Ho, Wo) of float32, float64, float16 or bfloat16; self is the input of the
    forward, or its shape: its values are not read. kernel_size, stride (None: kernel_size) and padding are an int or a
    pair; divisor_override is None or an int other than 0. The result is a new C-contiguous array of self's shape and
    grad_output's dtype, or `out`, filled. Names, order and meaning are those of torch.ops.aten.avg_pool2d_backward.

    Raises AclnnError (a ValueError) for a refusal, TypeError for an argument of the wrong kind, MemoryError.

    >>> import numpy as np, aclnn_bw
    >>> aclnn_bw.avg_pool2d_backward(np.ones((1, 2, 2), np.float32), (1, 3, 3), kernel_size=2, stride=1)
    array([[[0.25, 0.5 , 0.25],
            [0.5 , 1.  , 0.5 ],
            [0.25, 0.5 , 0.25]]], dtype=float32)
    """
    cdef Context context
    cdef Room room
    cdef Tensor grad, shape, grad_input
    cdef IntArray kernel_values, stride_values, pad_values
    cdef Executor* executor = NULL
    cdef int64_t divisor = 0
    cdef bint ceil, include_pad
    cdef int status
    grad_owner = read_tensor(grad_output, "grad_output", &grad) if grad_output is not None else None
    shape_owner = (read_shape(self, "self", &grad if grad_output is not None else NULL, &shape)
                   if self is not None else None)
    if kernel_size is not None:
        read_ints(kernel_size, "kernel_size", &kernel_values, True)
    if stride is not None:
        read_ints(stride, "stride", &stride_values, True)
    if padding is not None:
        read_ints(padding, "padding", &pad_values, True)
    ceil = read_bool(ceil_mode, "ceil_mode")
    include_pad = read_bool(count_include_pad, "count_include_pad")
    if divisor_override is not None:
        divisor = read_int(divisor_override, "divisor_override")
    out_owner = None
    if out is not None:
        out_owner = read_tensor(out, "out", &grad_input)
    elif self is not None and grad_output is not None:
        grad_input = shape
        grad_input.dtype = grad.dtype
        describe_fresh(&grad_input, "self")
    current_context(&context, ONE_CALL, &room)
    status = core_avg_pool2d.avg_pool2d_backward(
        &context, &grad if grad_output is not None else NULL, &shape if self is not None else NULL,
        &kernel_values if kernel_size is not None else NULL, &stride_values if stride is not None else NULL,
        &pad_values if padding is not None else NULL, ceil, include_pad, &divisor if divisor_override is not None else
        NULL, 0, &grad_input, &executor)
    if status != SUCCESS:
        raise error_of(status)
    return finish_one_call(executor, 2, &grad_input, out, out_owner, grad_owner, shape_owner, None)


# --- MaxPool2dWithMaskBackward and its forward -----------------------------------------------------------------------

def aclnnMaxPool2dWithMaskBackwardGetWorkspaceSize(gradOutput, self, indices, kernelSize, stride, padding, dilation,
                                                   ceilMode, gradInput):
    """Phase 1 of MaxPool2dWithMaskBackward: check the arguments, plan the work; returns (workspaceSize, executor).

    gradOutput (N, C, Ho, Wo) or (C, Ho, Wo), self and gradInput (N, C, H, W) or (C, H, W), all of one dtype that the
    product takes: ACL_FLOAT, ACL_FLOAT16 (Ascend910, Ascend910B, Host), ACL_BF16 (Ascend910B, Host), ACL_DOUBLE (Host).
    indices is what MaxPool2dWithMask wrote: ACL_INT8, shape mask_shape(...), C-contiguous, in the mask layout that
    `soc` says. kernelSize and padding have 1 or 2 values, stride 0, 1 or 2 (none: the kernel size), dilation 1 or 2,
    which must be 1. self gives its shape only. Raises AclnnError for a refusal; then nothing has been written.

    gradInput[h, w] is the sum of gradOutput[oh, ow] over the windows whose maximum lies at (h, w): the gradient of
    PyTorch's max_pool2d, under the names of CANN's aclnnMaxPool2dWithMaskBackward.

    >>> import numpy as np, aclnn_bw
    >>> x = np.arange(16, dtype=np.float32).reshape(1, 1, 4, 4)
    >>> out, indices = aclnn_bw.max_pool2d_with_mask(x, 2)
    >>> gradInput = np.empty_like(x)
    >>> size, executor = aclnn_bw.aclnnMaxPool2dWithMaskBackwardGetWorkspaceSize(
    ...     np.ones_like(out), x, indices, [2, 2], [2, 2], [0, 0], [1, 1], False, gradInput)
    >>> aclnn_bw.aclnnMaxPool2dWithMaskBackward(bytearray(size), size, executor)
    >>> gradInput[0, 0]
    array([[0., 0., 0., 0.],
           [0., 1., 0., 1.],
           [0., 0., 0., 0.],
           [0., 1., 0., 1.]], dtype=float32)
    """
    cdef Context context
    cdef Tensor grad_output, shape, mask, grad_input
    cdef IntArray kernel_size, strides, pads, dilations
    cdef Executor* executor = NULL
    cdef bint ceil_mode
    cdef int status
    grad_output_owner = read_tensor(gradOutput, "gradOutput", &grad_output) if gradOutput is not None else None
    shape_owner = read_tensor(self, "self", &shape) if self is not None else None
    mask_owner = read_tensor(indices, "indices", &mask) if indices is not None else None
    if kernelSize is not None:
        read_ints(kernelSize, "kernelSize", &kernel_size)
    if stride is not None:
        read_ints(stride, "stride", &strides)
    if padding is not None:
        read_ints(padding, "padding", &pads)
    if dilation is not None:
        read_ints(dilation, "dilation", &dilations)
    ceil_mode = read_bool(ceilMode, "ceilMode")
    grad_input_owner = read_tensor(gradInput, "gradInput", &grad_input) if gradInput is not None else None
    current_context(&context, TWO_PHASE, NULL)
    status = core_max_pool2d.max_pool2d_with_mask_backward(
        &context, &grad_output if gradOutput is not None else NULL, &shape if self is not None else NULL,
        &mask if indices is not None else NULL, &kernel_size if kernelSize is not None else NULL,
        &strides if stride is not None else NULL, &pads if padding is not None else NULL,
        &dilations if dilation is not None else NULL, ceil_mode, &grad_input if gradInput is not None else NULL,
        &executor)
    if status != SUCCESS:
        raise error_of(status)
    return phase_1_result(executor, (gradOutput, self, indices, gradInput), (
        grad_output_owner, shape_owner, mask_owner, grad_input_owner))


def aclnnMaxPool2dWithMaskBackward(workspace, workspaceSize, executor, stream=None):
    """Phase 2 of MaxPool2dWithMaskBackward: run the executor, on the calling thread or on a stream.

    workspace is any writable buffer of at least workspaceSize bytes, None if that is 0. In the mask layout "argmax" an
    index outside its window is refused here (ACLNN_ERR_PARAM_INVALID); the message names the first one, and gradInput
    is then unspecified.
    """
    run_phase_2(MAX_POOL2D_WITH_MASK_BACKWARD, workspace, workspaceSize, executor, stream)


def aclnnMaxPool2dWithMaskGetWorkspaceSize(self, kernelSize, stride, padding, dilation, ceilMode, out, indices):
    """Phase 1 of MaxPool2dWithMask: check the arguments, plan the work; returns (workspaceSize in bytes, executor).

    self (N, C, H, W) or (C, H, W) and out (N, C, Ho, Wo) or (C, Ho, Wo), of one dtype that the product takes; indices,
    ACL_INT8 of the shape that mask_shape tells, C-contiguous, receives the mask in the layout that `soc` says. The
    attributes are those of the backward.

    out holds the maximum of each window; padding counts as -inf. The first maximum in row-major window order is
    recorded, a NaN wins over numbers, and the last NaN over others, as in PyTorch's max_pool2d. Raises AclnnError for a
    refusal; then nothing has been written.

    >>> import numpy as np, aclnn_bw
    >>> x = np.arange(16, dtype=np.float32).reshape(1, 1, 4, 4)
    >>> out, indices = np.empty((1, 1, 2, 2), np.float32), np.empty(aclnn_bw.mask_shape(x.shape, 2), np.int8)
    >>> size, executor = aclnn_bw.aclnnMaxPool2dWithMaskGetWorkspaceSize(
    ...     x, [2, 2], [2, 2], [0, 0], [1, 1], False, out, indices)
    >>> aclnn_bw.aclnnMaxPool2dWithMask(bytearray(size), size, executor)
    >>> out[0, 0]
    array([[ 5.,  7.],
           [13., 15.]], dtype=float32)
    """
    cdef Context context
    cdef Tensor x, output, mask
    cdef IntArray kernel_size, strides, pads, dilations
    cdef Executor* executor = NULL
    cdef bint ceil_mode
    cdef int status
    x_owner = read_tensor(self, "self", &x) if self is not None else None
    if kernelSize is not None:
        read_ints(kernelSize, "kernelSize", &kernel_size)
    if stride is not None:
        read_ints(stride, "stride", &strides)
    if padding is not None:
        read_ints(padding, "padding", &pads)
    if dilation is not None:
        read_ints(dilation, "dilation", &dilations)
    ceil_mode = read_bool(ceilMode, "ceilMode")
    output_owner = read_tensor(out, "out", &output) if out is not None else None
    mask_owner = read_tensor(indices, "indices", &mask) if indices is not None else None
    current_context(&context, TWO_PHASE, NULL)
    status = core_max_pool2d.max_pool2d_with_mask(
        &context, &x if self is not None else NULL, &kernel_size if kernelSize is not None else NULL,
        &strides if stride is not None else NULL, &pads if padding is not None else NULL,
        &dilations if dilation is not None else NULL, ceil_mode, &output if out is not None else NULL,
        &mask if indices is not None else NULL, &executor)
    if status != SUCCESS:
        raise error_of(status)
    return phase_1_result(executor, (self, out, indices), (x_owner, output_owner, mask_owner))


def aclnnMaxPool2dWithMask(workspace, workspaceSize, executor, stream=None):
    """Phase 2 of MaxPool2dWithMask: run the executor, on the calling thread or on a stream.

    workspace is any writable buffer of at least workspaceSize bytes, None if that is 0.
    """
    run_phase_2(MAX_POOL2D_WITH_MASK, workspace, workspaceSize, executor, stream)


cdef int read_layout(object value) except -1:
    if not isinstance(value, str):
        raise TypeError(f"mask_layout = {value!r}: must be a str, not {type(value).__name__}")
    if value == "bitmask":
        return LAYOUT_BITMASK
    if value == "argmax":
        return LAYOUT_ARGMAX
    raise refusal(ERR_INVALID, f"mask_layout = {value!r}: must be one of 'bitmask', 'argmax'")


cdef int read_pool(object kernel_size, object stride, object padding, object dilation, IntArray* kernel_values,
                   IntArray* stride_values, IntArray* pad_values, IntArray* dilation_values) except -1:
    """The attributes of a pooling in a one-call function; without a stride it is the kernel size."""
    if kernel_size is not None:
        read_ints(kernel_size, "kernel_size", kernel_values, True)
    stride_values.size = 0
    if stride is not None:
        read_ints(stride, "stride", stride_values, True)
    if padding is not None:
        read_ints(padding, "padding", pad_values, True)
    if dilation is not None:
        read_ints(dilation, "dilation", dilation_values, True)
    return 0


def max_pool2d_with_mask(self, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, *,
                         mask_layout="bitmask"):
    """Return (out, mask): the maxima of the windows, and where they lie.

    self (N, C, H, W) or (C, H, W) of float32, float64, float16 or bfloat16. kernel_size, stride (None: kernel_size) and
    padding (at most half the kernel) are an int or a pair; dilation must be 1. out is (N, C, Ho, Wo) or (C, Ho, Wo);
    mask is int8 of shape mask_shape(...), in the mask layout "bitmask" or "argmax", as
    max_pool2d_with_mask_backward takes it. Padding counts as -inf. The first maximum in row-major window order is
    recorded; a NaN wins over numbers, the last NaN over others. Values and positions are those of PyTorch's max_pool2d.

    Raises AclnnError (a ValueError) for a refusal, TypeError for an argument of the wrong kind, MemoryError.

    >>> import numpy as np, aclnn_bw
    >>> out, mask = aclnn_bw.max_pool2d_with_mask(np.arange(16, dtype=np.float32).reshape(1, 4, 4), 2)
    >>> out
    array([[[ 5.,  7.],
            [13., 15.]]], dtype=float32)
    >>> aclnn_bw.mask_to_indices(mask, (1, 4, 4), 2)
    array([[[ 5,  7],
            [13, 15]]])
    """
    cdef Context context
    cdef Room room
    cdef Tensor x, output, mask
    cdef core_max_pool2d.MaxPool2dShapes shapes
    cdef IntArray kernel_values, stride_values, pad_values, dilation_values
    cdef Executor* executor = NULL
    cdef bint ceil
    cdef int i, layout, status
    x_owner = read_tensor(self, "self", &x) if self is not None else None
    read_pool(kernel_size, stride, padding, dilation, &kernel_values, &stride_values, &pad_values, &dilation_values)
    ceil = read_bool(ceil_mode, "ceil_mode")
    layout = read_layout(mask_layout)
    current_context(&context, ONE_CALL, &room)
    context.mask_layout = layout
    status = core_max_pool2d.max_pool2d_shapes(
        &context, &x if self is not None else NULL, &kernel_values if kernel_size is not None else NULL,
        &stride_values, &pad_values if padding is not None else NULL,
        &dilation_values if dilation is not None else NULL, ceil, &shapes)
    if status != SUCCESS:
        raise error_of(status)
    output.rank = mask.rank = x.rank
    output.dtype = x.dtype
    mask.dtype = DT_INT8
    output.format = mask.format = x.format
    for i in range(x.rank):
        output.dims[i] = shapes.out[i]
        mask.dims[i] = shapes.indices[i]
    describe_fresh(&output, "out")
    describe_fresh(&mask, "mask")
    status = core_max_pool2d.max_pool2d_with_mask(
        &context, &x, &kernel_values, &stride_values, &pad_values, &dilation_values, ceil, &output, &mask, &executor)
    if status != SUCCESS:
        raise error_of(status)
    try:
        out = new_array(&output, x_owner)
        executor.tensor[1].data = <char*>cnp.PyArray_DATA(out)
    except BaseException:
        delete_executor(executor)
        raise
    made = finish_one_call(executor, 2, &mask, None, out, x_owner, None, None)
    return out if type(x_owner) is cnp.ndarray else as_given(x_owner, out), made


def max_pool2d_with_mask_backward(grad_output, self, mask, kernel_size, stride=None, padding=0, dilation=1,
                                  ceil_mode=False, *, mask_layout="bitmask", out=None):
    """Return the gradient of max_pool2d_with_mask with respect to its input.

    grad_output (N, C, Ho, Wo) or (C, Ho, Wo) of float32, float64, float16 or bfloat16; self is the input of the
    forward, or its shape: its values are not read. mask is what the forward returned, in the layout that mask_layout
    names. The attributes are those of the forward. The result is a new C-contiguous array of self's shape and
    grad_output's dtype, or `out`, filled: the sum of grad_output over the windows whose maximum lies at each position,
    the formula of PyTorch's max_pool2d_with_indices_backward.

    Raises AclnnError (a ValueError) for a refusal, also of an index outside its window in the layout "argmax",
    TypeError for an argument of the wrong kind, MemoryError.

    >>> import numpy as np, aclnn_bw
    >>> x = np.array([[[3, 1, 2], [0, 5, 4], [9, 7, 8]]], np.float32)
    >>> out, mask = aclnn_bw.max_pool2d_with_mask(x, 2, 1)
    >>> aclnn_bw.max_pool2d_with_mask_backward(np.ones_like(out), x, mask, 2, 1)
    array([[[0., 0., 0.],
            [0., 2., 0.],
            [1., 0., 1.]]], dtype=float32)
    """
    cdef Context context
    cdef Room room
    cdef Tensor grad, shape, indices, grad_input
    cdef IntArray kernel_values, stride_values, pad_values, dilation_values
    cdef Executor* executor = NULL
    cdef bint ceil
    cdef int layout, status
    grad_owner = read_tensor(grad_output, "grad_output", &grad) if grad_output is not None else None
    shape_owner = (read_shape(self, "self", &grad if grad_output is not None else NULL, &shape)
                   if self is not None else None)
    mask_owner = read_tensor(mask, "mask", &indices) if mask is not None else None
    read_pool(kernel_size, stride, padding, dilation, &kernel_values, &stride_values, &pad_values, &dilation_values)
    ceil = read_bool(ceil_mode, "ceil_mode")
    layout = read_layout(mask_layout)
    out_owner = None
    if out is not None:
        out_owner = read_tensor(out, "out", &grad_input)
    elif self is not None and grad_output is not None:
        grad_input = shape
        grad_input.dtype = grad.dtype
        describe_fresh(&grad_input, "self")
    current_context(&context, ONE_CALL, &room)
    context.mask_layout = layout
    status = core_max_pool2d.max_pool2d_with_mask_backward(
        &context, &grad if grad_output is not None else NULL, &shape if self is not None else NULL,
        &indices if mask is not None else NULL, &kernel_values if kernel_size is not None else NULL, &stride_values,
        &pad_values if padding is not None else NULL, &dilation_values if dilation is not None else NULL, ceil,
        &grad_input, &executor)
    if status != SUCCESS:
        raise error_of(status)
    return finish_one_call(executor, 3, &grad_input, out, out_owner, grad_owner, shape_owner, mask_owner)


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
    status = check_bounds(&context, ARG_INDICES, &tensor) or check_alignment(&context, ARG_INDICES, &tensor)
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


def max_pool2d_geometry(input_shape, kernel_size, stride, padding, dilation, ceil_mode):
    """Return (out shape, mask shape, kernel, stride, padding) of a pooling, the last three as pairs."""
    cdef Context context
    cdef Tensor x
    cdef core_max_pool2d.MaxPool2dShapes shapes
    cdef IntArray dims, kernel_values, stride_values, pad_values, dilation_values
    cdef int i, status
    cdef bint ceil
    if input_shape is not None:
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
    read_pool(kernel_size, stride, padding, dilation, &kernel_values, &stride_values, &pad_values, &dilation_values)
    ceil = read_bool(ceil_mode, "ceil_mode")
    current_context(&context, MASK_HELPER, NULL)
    status = core_max_pool2d.max_pool2d_shapes(
        &context, &x if input_shape is not None else NULL, &kernel_values if kernel_size is not None else NULL,
        &stride_values, &pad_values if padding is not None else NULL,
        &dilation_values if dilation is not None else NULL, ceil, &shapes)
    if status != SUCCESS:
        raise error_of(status)
    return (tuple([shapes.out[i] for i in range(x.rank)]), tuple([shapes.indices[i] for i in range(x.rank)]),
            (shapes.kernel[0], shapes.kernel[1]), (shapes.stride[0], shapes.stride[1]), (shapes.pad[0], shapes.pad[1]))


# --- UpsampleNearestExact1dBackward ----------------------------------------------------------------------------------

def aclnnUpsampleNearestExact1dBackwardGetWorkspaceSize(gradOutput, outputSize, inputSize, scales, out):
    """Phase 1 of UpsampleNearestExact1dBackward: check the arguments, plan the work; returns (workspaceSize, executor).

    gradOutput (N, C, Lo) and out (N, C, Li), of one dtype that the product takes: ACL_FLOAT, ACL_FLOAT16, ACL_BF16
    (Ascend910B, Host), ACL_DOUBLE (Host). outputSize = [Lo], inputSize = [N, C, Li]. scales is the factor that the
    forward was given, 0 if it was given none; then it follows from the sizes. Raises AclnnError for a refusal; then
    nothing has been written.

    With t = float32(1 / scales), or float32(Li) / float32(Lo), gradOutput[j] is added to
    out[min(floor(float32((j + 0.5) * t)), Li - 1)]: the gradient of PyTorch's nearest-exact interpolation, under the
    names of CANN's aclnnUpsampleNearestExact1dBackward.

    >>> import numpy as np, aclnn_bw
    >>> gradOutput, out = np.arange(4, dtype=np.float32).reshape(1, 1, 4), np.empty((1, 1, 2), np.float32)
    >>> size, executor = aclnn_bw.aclnnUpsampleNearestExact1dBackwardGetWorkspaceSize(
    ...     gradOutput, [4], [1, 1, 2], 0.0, out)
    >>> aclnn_bw.aclnnUpsampleNearestExact1dBackward(bytearray(size), size, executor)
    >>> out
    array([[[1., 5.]]], dtype=float32)
    """
    cdef Context context
    cdef Tensor grad_output, grad_input
    cdef IntArray output_sizes, input_sizes
    cdef Executor* executor = NULL
    cdef double scale
    cdef int status
    grad_output_owner = read_tensor(gradOutput, "gradOutput", &grad_output) if gradOutput is not None else None
    if outputSize is not None:
        read_ints(outputSize, "outputSize", &output_sizes)
    if inputSize is not None:
        read_ints(inputSize, "inputSize", &input_sizes)
    scale = read_double(scales, "scales")
    out_owner = read_tensor(out, "out", &grad_input) if out is not None else None
    current_context(&context, TWO_PHASE, NULL)
    status = core_upsample.upsample_nearest_exact1d_backward(
        &context, &grad_output if gradOutput is not None else NULL, &output_sizes if outputSize is not None else NULL,
        &input_sizes if inputSize is not None else NULL, scale, &grad_input if out is not None else NULL, &executor)
    if status != SUCCESS:
        raise error_of(status)
    return phase_1_result(executor, (gradOutput, out), (grad_output_owner, out_owner))


def aclnnUpsampleNearestExact1dBackward(workspace, workspaceSize, executor, stream=None):
    """Phase 2 of UpsampleNearestExact1dBackward: run the executor, on the calling thread or on a stream.

    workspace is any writable buffer of at least workspaceSize bytes, None if that is 0.
    """
    run_phase_2(UPSAMPLE_NEAREST_EXACT1D_BACKWARD, workspace, workspaceSize, executor, stream)


def upsample_nearest_exact1d_backward(grad_output, output_size, input_size, scales=None, *, out=None):
    """Return the gradient of nearest-exact interpolation along one axis with respect to its input.

    grad_output (N, C, Lo) of float32, float64, float16 or bfloat16; output_size is Lo, as an int or [Lo]; input_size is
    (N, C, Li); scales is the factor that the forward was given, or None: then it follows from the sizes. The result is
    a new C-contiguous array of shape input_size and grad_output's dtype, or `out`, filled. Names, order and meaning are
    those of torch.ops.aten._upsample_nearest_exact1d_backward.

    Raises AclnnError (a ValueError) for a refusal, TypeError for an argument of the wrong kind, MemoryError.

    >>> import numpy as np, aclnn_bw
    >>> aclnn_bw.upsample_nearest_exact1d_backward(np.ones((1, 1, 5), np.float32), 5, (1, 1, 3))
    array([[[2., 1., 2.]]], dtype=float32)
    """
    cdef Context context
    cdef Room room
    cdef Tensor grad, grad_input
    cdef IntArray output_sizes, input_sizes
    cdef Executor* executor = NULL
    cdef double scale = 0.0
    cdef int i, status
    grad_owner = read_tensor(grad_output, "grad_output", &grad) if grad_output is not None else None
    if output_size is not None:
        read_ints(output_size, "output_size", &output_sizes, True)
    if input_size is not None:
        read_ints(input_size, "input_size", &input_sizes)
    if scales is not None:
        scale = read_double(scales, "scales")
    out_owner = None
    if out is not None:
        out_owner = read_tensor(out, "out", &grad_input)
    elif input_size is not None and grad_output is not None:
        # A wrong input_size is the core's to refuse; until then any shape stands for it.
        grad_input.rank = 3
        grad_input.dtype = grad.dtype
        grad_input.format = grad.format
        for i in range(3):
            grad_input.dims[i] = input_sizes.values[i] if input_sizes.size == 3 and input_sizes.values[i] > 0 else 1
        describe_fresh(&grad_input, "input_size")
    current_context(&context, ONE_CALL, &room)
    status = core_upsample.upsample_nearest_exact1d_backward(
        &context, &grad if grad_output is not None else NULL, &output_sizes if output_size is not None else NULL,
        &input_sizes if input_size is not None else NULL, scale, &grad_input, &executor)
    if status != SUCCESS:
        raise error_of(status)
    return finish_one_call(executor, 1, &grad_input, out, out_owner, grad_owner, None, None)


# --- Im2colBackward --------------------------------------------------------------------------------------------------

def aclnnIm2colBackwardGetWorkspaceSize(gradOutput, inputSize, kernelSize, dilation, padding, stride, out):
    """Phase 1 of Im2colBackward: check the arguments, plan the work; returns (workspaceSize in bytes, executor).

    gradOutput (N, C*kH*kW, L) and out (N, C, H, W), or (C*kH*kW, L) and (C, H, W), each of a dtype that the product
    takes: ACL_FLOAT, ACL_FLOAT16 (Ascend910, Ascend910B, Host), ACL_BF16 (Ascend910B, Host), ACL_DOUBLE (Host); where
    the two differ, the sum is rounded to gradOutput's dtype and then converted. inputSize = [H, W], and kernelSize,
    dilation, padding and stride have two values each. Raises AclnnError for a refusal; then nothing has been written.

    out[h, w] is the sum of the elements of the columns that im2col (PyTorch's unfold) read at (h, w): PyTorch's fold,
    under the names of CANN's aclnnIm2colBackward.

    >>> import numpy as np, aclnn_bw
    >>> gradOutput, out = np.ones((4, 4), np.float32), np.empty((1, 3, 3), np.float32)
    >>> size, executor = aclnn_bw.aclnnIm2colBackwardGetWorkspaceSize(
    ...     gradOutput, [3, 3], [2, 2], [1, 1], [0, 0], [1, 1], out)
    >>> aclnn_bw.aclnnIm2colBackward(bytearray(size), size, executor)
    >>> out
    array([[[1., 2., 1.],
            [2., 4., 2.],
            [1., 2., 1.]]], dtype=float32)
    """
    cdef Context context
    cdef Tensor grad_output, grad_input
    cdef IntArray input_sizes, kernel_size, dilations, pads, strides
    cdef Executor* executor = NULL
    cdef int status
    grad_output_owner = read_tensor(gradOutput, "gradOutput", &grad_output) if gradOutput is not None else None
    if inputSize is not None:
        read_ints(inputSize, "inputSize", &input_sizes)
    if kernelSize is not None:
        read_ints(kernelSize, "kernelSize", &kernel_size)
    if dilation is not None:
        read_ints(dilation, "dilation", &dilations)
    if padding is not None:
        read_ints(padding, "padding", &pads)
    if stride is not None:
        read_ints(stride, "stride", &strides)
    out_owner = read_tensor(out, "out", &grad_input) if out is not None else None
    current_context(&context, TWO_PHASE, NULL)
    status = core_im2col.im2col_backward(
        &context, &grad_output if gradOutput is not None else NULL, &input_sizes if inputSize is not None else NULL,
        &kernel_size if kernelSize is not None else NULL, &dilations if dilation is not None else NULL,
        &pads if padding is not None else NULL, &strides if stride is not None else NULL,
        &grad_input if out is not None else NULL, &executor)
    if status != SUCCESS:
        raise error_of(status)
    return phase_1_result(executor, (gradOutput, out), (grad_output_owner, out_owner))


def aclnnIm2colBackward(workspace, workspaceSize, executor, stream=None):
    """Phase 2 of Im2colBackward: run the executor, on the calling thread or on a stream.

    workspace is any writable buffer of at least workspaceSize bytes, None if that is 0.
    """
    run_phase_2(IM2COL_BACKWARD, workspace, workspaceSize, executor, stream)


cdef int64_t image_channels(const Tensor* grad, const IntArray* kernel) noexcept:
    """C of the image to which columns fold back; 1 where there is none, which is the core's to refuse."""
    cdef int64_t positions = 0
    if (not 2 <= grad.rank <= 3 or not 1 <= kernel.size <= 2 or kernel.values[0] < 1
            or kernel.values[kernel.size - 1] < 1
            or mul_overflows(kernel.values[0], kernel.values[kernel.size - 1], &positions)):
        return 1
    return max(grad.dims[grad.rank - 2] // positions, 1)


def im2col_backward(grad_output, input_size, kernel_size, dilation=1, padding=0, stride=1, *, out=None):
    """Return the gradient of im2col (unfold) with respect to its input: the columns, folded back to an image.

    grad_output (N, C*kH*kW, L) or (C*kH*kW, L) of float32, float64, float16 or bfloat16; input_size is (H, W);
    kernel_size, dilation, padding and stride are an int or a pair. The result is a new C-contiguous array of shape
    (N, C, H, W) or (C, H, W) and grad_output's dtype, or `out`, filled; `out` may be of another of these dtypes. Names,
    order and meaning are those of PyTorch's im2col_backward (today torch.nn.functional.fold).

    Raises AclnnError (a ValueError) for a refusal, TypeError for an argument of the wrong kind, MemoryError.

    >>> import numpy as np, aclnn_bw
    >>> aclnn_bw.im2col_backward(np.ones((1, 4, 4), np.float32), (4, 4), 2, stride=2)
    array([[[[1., 1., 1., 1.],
             [1., 1., 1., 1.],
             [1., 1., 1., 1.],
             [1., 1., 1., 1.]]]], dtype=float32)
    """
    cdef Context context
    cdef Room room
    cdef Tensor grad, grad_input
    cdef IntArray input_sizes, kernel_values, dilation_values, pad_values, stride_values
    cdef Executor* executor = NULL
    cdef int64_t size
    cdef int i, status
    grad_owner = read_tensor(grad_output, "grad_output", &grad) if grad_output is not None else None
    if input_size is not None:
        read_ints(input_size, "input_size", &input_sizes, True)
    if kernel_size is not None:
        read_ints(kernel_size, "kernel_size", &kernel_values, True)
    if dilation is not None:
        read_ints(dilation, "dilation", &dilation_values, True)
    if padding is not None:
        read_ints(padding, "padding", &pad_values, True)
    if stride is not None:
        read_ints(stride, "stride", &stride_values, True)
    out_owner = None
    if out is not None:
        out_owner = read_tensor(out, "out", &grad_input)
    elif grad_output is not None and input_size is not None and kernel_size is not None:
        grad_input.rank = 4 if grad.rank == 3 else 3
        grad_input.dtype = grad.dtype
        grad_input.format = format_of_rank(grad_input.rank)
        grad_input.dims[0] = grad.dims[0] if grad.rank == 3 else 1
        grad_input.dims[grad_input.rank - 3] = image_channels(&grad, &kernel_values)
        for i in range(2):
            size = input_sizes.values[i if i < input_sizes.size else 0] if 1 <= input_sizes.size <= 2 else 1
            grad_input.dims[grad_input.rank - 2 + i] = size if size > 0 else 1
        describe_fresh(&grad_input, "input_size")
    current_context(&context, ONE_CALL, &room)
    status = core_im2col.im2col_backward(
        &context, &grad if grad_output is not None else NULL, &input_sizes if input_size is not None else NULL,
        &kernel_values if kernel_size is not None else NULL, &dilation_values if dilation is not None else NULL,
        &pad_values if padding is not None else NULL, &stride_values if stride is not None else NULL, &grad_input,
        &executor)
    if status != SUCCESS:
        raise error_of(status)
    return finish_one_call(executor, 1, &grad_input, out, out_owner, grad_owner, None, None)


# --- ReplicationPad2dBackward ----------------------------------------------------------------------------------------

def aclnnReplicationPad2dBackwardGetWorkspaceSize(gradOutput, self, padding, gradInput):
    """Phase 1 of ReplicationPad2dBackward: check the arguments, plan the work; returns (workspaceSize, executor).

    gradOutput (N, C, H + top + bottom, W + left + right), self and gradInput (N, C, H, W), or all without N, of one
    dtype: ACL_FLOAT, ACL_FLOAT16, ACL_DOUBLE, ACL_COMPLEX64, ACL_COMPLEX128, ACL_BF16 (Ascend910B, Host). padding =
    [left, right, top, bottom]; the products take pads of at least 0 and smaller than the image, "Host" takes any that
    leave an output: a negative one crops. self gives its shape only. Raises AclnnError for a refusal; then nothing has
    been written.

    gradInput[i, j] is the sum of gradOutput[p, q] with clamp(p - top, 0, H - 1) = i and clamp(q - left, 0, W - 1) = j:
    the gradient of PyTorch's replication_pad2d, under the names of CANN's aclnnReplicationPad2dBackward.

    >>> import numpy as np, aclnn_bw
    >>> gradOutput, gradInput = np.ones((1, 4, 4), np.float32), np.empty((1, 2, 2), np.float32)
    >>> size, executor = aclnn_bw.aclnnReplicationPad2dBackwardGetWorkspaceSize(
    ...     gradOutput, gradInput, [1, 1, 1, 1], gradInput)
    >>> aclnn_bw.aclnnReplicationPad2dBackward(bytearray(size), size, executor)
    >>> gradInput
    array([[[4., 4.],
            [4., 4.]]], dtype=float32)
    """
    cdef Context context
    cdef Tensor grad_output, shape, grad_input
    cdef IntArray pads
    cdef Executor* executor = NULL
    cdef int status
    grad_output_owner = read_tensor(gradOutput, "gradOutput", &grad_output) if gradOutput is not None else None
    shape_owner = read_tensor(self, "self", &shape) if self is not None else None
    if padding is not None:
        read_ints(padding, "padding", &pads)
    grad_input_owner = read_tensor(gradInput, "gradInput", &grad_input) if gradInput is not None else None
    current_context(&context, TWO_PHASE, NULL)
    status = core_replication_pad2d.replication_pad2d_backward(
        &context, &grad_output if gradOutput is not None else NULL, &shape if self is not None else NULL,
        &pads if padding is not None else NULL, &grad_input if gradInput is not None else NULL, &executor)
    if status != SUCCESS:
        raise error_of(status)
    return phase_1_result(executor, (gradOutput, self, gradInput), (grad_output_owner, shape_owner, grad_input_owner))


def aclnnReplicationPad2dBackward(workspace, workspaceSize, executor, stream=None):
    """Phase 2 of ReplicationPad2dBackward: run the executor, on the calling thread or on a stream.

    workspace is any writable buffer of at least workspaceSize bytes, None if that is 0.
    """
    run_phase_2(REPLICATION_PAD2D_BACKWARD, workspace, workspaceSize, executor, stream)


def replication_pad2d_backward(grad_output, self, padding, *, out=None):
    """Return the gradient of replication_pad2d with respect to its input.

    grad_output (N, C, H + top + bottom, W + left + right), or without N, of float32, float64, float16, bfloat16,
    complex64 or complex128; self is the input of the forward, or its shape: its values are not read. padding is
    (left, right, top, bottom), or one int for all four; a negative pad crops. The result is a new C-contiguous array of
    self's shape and grad_output's dtype, or `out`, filled. Names, order and meaning are those of
    torch.ops.aten.replication_pad2d_backward.

    Raises AclnnError (a ValueError) for a refusal, TypeError for an argument of the wrong kind, MemoryError.

    >>> import numpy as np, aclnn_bw
    >>> aclnn_bw.replication_pad2d_backward(np.ones((1, 2, 4), np.float32), (1, 2, 2), (2, 0, 0, 0))
    array([[[3., 1.],
            [3., 1.]]], dtype=float32)
    """
    cdef Context context
    cdef Room room
    cdef Tensor grad, shape, grad_input
    cdef IntArray pads
    cdef Executor* executor = NULL
    cdef int status
    grad_owner = read_tensor(grad_output, "grad_output", &grad) if grad_output is not None else None
    shape_owner = (read_shape(self, "self", &grad if grad_output is not None else NULL, &shape)
                   if self is not None else None)
    if padding is not None:
        read_ints(padding, "padding", &pads, True)
    out_owner = None
    if out is not None:
        out_owner = read_tensor(out, "out", &grad_input)
    elif self is not None and grad_output is not None:
        grad_input = shape
        grad_input.dtype = grad.dtype
        describe_fresh(&grad_input, "self")
    current_context(&context, ONE_CALL, &room)
    status = core_replication_pad2d.replication_pad2d_backward(
        &context, &grad if grad_output is not None else NULL, &shape if self is not None else NULL,
        &pads if padding is not None else NULL, &grad_input, &executor)
    if status != SUCCESS:
        raise error_of(status)
    return finish_one_call(executor, 2, &grad_input, out, out_owner, grad_owner, shape_owner, None)
