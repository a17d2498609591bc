# cython: language_level=3
"""The compiled face: Python arguments to plain structs, the calls of both phases, and the split over threads.

Data flows one way: the functions here read arguments, the core (aclnn_bw._core) checks and plans, a kernel
(aclnn_bw._kernels) computes. The thin modules of the package re-export what is public. The parts, one for each concept,
lie in _face/; in _face/operators/ each operator has its functions, which are a signature, a docstring and one call.
"""
import contextvars
import os
import sys
import warnings
import weakref

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
from cpython.tuple cimport PyTuple_New, PyTuple_SET_ITEM
from cython.parallel cimport prange
from libc.stdint cimport int32_t, int64_t, uint64_t, uint8_t, uint16_t, uint32_t, uintptr_t
from libc.string cimport memset

from aclnn_bw._core.arithmetic cimport mul_overflows, round_up
from aclnn_bw._core.dispatch cimport (
    ISA_BASELINE, ISA_NONE, ISA_V2, ISA_V3, ISA_V4, best_isa, has_isa, load_kernels,
)
from aclnn_bw._core.executor cimport (
    accept, begin_team, delete_executor, execute, finish, make_repeatable, rebind, retract, run_range,
)
from aclnn_bw._core.max_pool2d cimport MaxPool2dShapes, max_pool2d_shapes
from aclnn_bw._core.max_pool2d_plan cimport plan_conversion
from aclnn_bw._core.operators cimport operator_of, takes_dtype
from aclnn_bw._core.status cimport forget_message, recent_message, refuse
from aclnn_bw._core.tensor cimport (
    check_alignment, check_bounds, item_size, make_row_major, tensor_bounds, tensor_size,
)
from aclnn_bw._core.types cimport (
    ALIGNMENT, ARGUMENTS, ARG_MASK, ASCEND910B, BOOL, BROKEN_STRIDE, COUNT_SHIFT, DT_BF16, DT_BOOL, DT_COMPLEX128,
    DT_COMPLEX32, DT_COMPLEX64, DT_DOUBLE, DT_FLOAT, DT_FLOAT16, DT_INT16, DT_INT32, DT_INT64, DT_INT8, DT_UINT16,
    DT_UINT32, DT_UINT64, DT_UINT8, DT_UNDEFINED, EMPTY, END, ERR_CREATE_EXECUTOR, ERR_INNER, ERR_INNER_NULLPTR,
    ERR_INVALID, ERR_NULLPTR, FORMAT_NCHW, FORMAT_NCL, FORMAT_ND, HOST, INTS, IS_INDICES, IS_MASK, KNOWN, LAYOUT,
    LAYOUT_ARGMAX, LAYOUT_BITMASK, MASK_HELPER, MAX_ARRAYS, MAX_FACTS, MAX_INTS, MAX_RANK, MAX_TENSORS, MISALIGNED,
    NO_RESULT, NULLABLE, ONE_CALL, OPERATORS, OPTIONAL, OWN_DTYPE, REAL, SAMPLED, SCALAR, SHAPE, SUCCESS, SWAPPED,
    TWO_PHASE, TWO_PHASE_ONLY, WRITABLE, WRITTEN, Arguments, Context, Executor, Fact, IntArray, KernelTable, Parameter,
    Record, Run, Tensor, argument_names,
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
    FRESH_BYTES = 33554432      # of a new array, beyond which its pages are always new, too: glibc's largest threshold
    SHORT_WORK = 4096           # bytes below which giving up the GIL costs more than the kernel
    DL_CPU = 1
    DL_READ_ONLY = 1
    LIBRARY_NONE = 0
    LIBRARY_TORCH = 1
    LIBRARY_JAX = 2

cdef int bf16_number = -2       # NumPy's for bfloat16, once ml_dtypes has been imported (load_bf16)

include "_face/settings.pxi"
include "_face/integers.pxi"
include "_face/tensors.pxi"
include "_face/records.pxi"
include "_face/executors.pxi"
include "_face/results.pxi"
include "_face/calls.pxi"
include "_face/operators/avg_pool2d.pxi"
include "_face/operators/im2col.pxi"
include "_face/operators/max_pool2d.pxi"
include "_face/operators/replication_pad2d.pxi"
include "_face/operators/upsample_nearest_exact1d.pxi"
include "_face/mask.pxi"
