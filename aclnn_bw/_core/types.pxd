"""Every struct, enum and function-pointer type of the core: plain C data, no Python object."""
from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t

cdef enum:
    MAX_RANK = 8        # as types.h and operators.h have them
    MAX_INTS = 8        # of an int array
    MAX_TENSORS = 4
    MAX_ARRAYS = 5
    MAX_NUMBERS = 4
    MAX_FACTS = 6
    ALIGNMENT = 64      # of every scratch area: a cache line, and the widest vector
    # Bytes of the strips that are made to go past the caches (_kernels/lines.pxd), and of what must lie end to end at
    # least: the lines at the ends of a stretch are read.
    STRIP = 2048
    LEAST_STRETCH = 4096

cdef enum Status:
    SUCCESS = 0
    ERR_NULLPTR = 161001
    ERR_INVALID = 161002
    ERR_INNER = 561000
    ERR_CREATE_EXECUTOR = 561101    # out of memory
    ERR_INNER_NULLPTR = 561103

cdef enum DataType:
    DT_UNDEFINED = -1
    DT_FLOAT = 0
    DT_FLOAT16 = 1
    DT_INT8 = 2
    DT_INT32 = 3
    DT_UINT8 = 4
    DT_INT16 = 6
    DT_UINT16 = 7
    DT_UINT32 = 8
    DT_INT64 = 9
    DT_UINT64 = 10
    DT_DOUBLE = 11
    DT_BOOL = 12
    DT_STRING = 13
    DT_COMPLEX64 = 16
    DT_COMPLEX128 = 17
    DT_BF16 = 27
    DT_INT4 = 29
    DT_UINT1 = 30
    DT_COMPLEX32 = 33
    DT_HIFLOAT8 = 34
    DT_FLOAT8_E5M2 = 35
    DT_FLOAT8_E4M3FN = 36
    DT_FLOAT8_E8M0 = 37
    DT_FLOAT4_E2M1 = 40

cdef enum Format:
    FORMAT_UNDEFINED = -1
    FORMAT_NCHW = 0
    FORMAT_NHWC = 1
    FORMAT_ND = 2
    FORMAT_NC1HWC0 = 3
    FORMAT_FRACTAL_Z = 4
    FORMAT_NC1HWC0_C04 = 12
    FORMAT_HWCN = 16
    FORMAT_NDHWC = 27
    FORMAT_FRACTAL_NZ = 29
    FORMAT_NCDHW = 30
    FORMAT_NDC1HWC0 = 32
    FORMAT_FRACTAL_Z_3D = 33
    FORMAT_NC = 35
    FORMAT_NCL = 47

cdef enum Product:
    ASCEND910
    ASCEND310P
    ASCEND910B
    HOST

cdef enum MaskLayout:
    LAYOUT_BITMASK
    LAYOUT_ARGMAX

cdef enum Face:
    TWO_PHASE       # messages use the C call's argument names
    ONE_CALL        # messages use the one-call function's argument names
    MASK_HELPER     # messages use the argument names of mask_shape and its kin
    C_CALL          # as TWO_PHASE, but nothing is spelled as in Python

cdef enum TensorFlag:
    WRITABLE = 1        # the owner allows writing
    MISALIGNED = 2      # the first element is not aligned for its dtype
    SWAPPED = 4         # bytes in the other machine's order
    BROKEN_STRIDE = 8   # a byte stride is no multiple of the item size

cdef enum:
    ALL_GOOD = -1
    NO_RESULT = -1      # of a record's `result`

# types.h says what these are.
cdef extern from "types.h" nogil:
    ctypedef struct Tensor "aclnn_bw_tensor":
        int64_t[MAX_RANK] dims
        int64_t[MAX_RANK] strides
        int64_t offset, storage
        char* data
        int32_t rank, dtype, format, flags
    ctypedef struct IntArray "aclnn_bw_int_array":
        int64_t[MAX_INTS] values
        int64_t size
        bint scalar
    enum:
        SLOT_F32 "ACLNN_BW_F32"
        SLOT_F64 "ACLNN_BW_F64"
        SLOT_F16 "ACLNN_BW_F16"
        SLOT_BF16 "ACLNN_BW_BF16"
        SLOT_C64 "ACLNN_BW_C64"
        SLOT_C128 "ACLNN_BW_C128"
        SLOTS "ACLNN_BW_SLOTS"
    ctypedef int64_t (*RangeFn "aclnn_bw_range_fn")(
        const void* plan, char** data, char* scratch, int64_t begin, int64_t end) noexcept nogil
    ctypedef int (*ExplainFn "aclnn_bw_explain_fn")(
        const void* plan, int face, char** data, int64_t place) noexcept nogil
    ctypedef struct KernelTable "aclnn_bw_kernel_table":
        RangeFn row[1][6]
        int64_t vector_bytes
        int64_t streamed_bytes
        int64_t streamed_sums
        int64_t clears_by_pieces
    ctypedef struct Context "aclnn_bw_context":
        const KernelTable* kernels
        int32_t product, mask_layout, face, threads, cores, fresh
        void* room
        int64_t room_size
    ctypedef struct Executor "aclnn_bw_executor":
        int32_t op, face, tensors, threads, repeatable, spent
        uint64_t claim
        int64_t units, bytes, ranges, scratch, workspace_size
        RangeFn kernel
        ExplainFn explain
        void* plan
        bint lent
        int32_t[MAX_TENSORS] roles
        int32_t[MAX_TENSORS] arguments
        Tensor[MAX_TENSORS] tensor
    ctypedef struct Run "aclnn_bw_run":
        Executor* executor
        (char*)[MAX_TENSORS] data
        char* workspace
        int64_t bad, begun, left

# operators.h says what these are, and how an operator's record is read.
cdef extern from "operators.h" nogil:
    enum:
        END "ACLNN_BW_END"
        READ "ACLNN_BW_READ"
        SHAPE "ACLNN_BW_SHAPE"
        WRITTEN "ACLNN_BW_WRITTEN"
        INTS "ACLNN_BW_INTS"
        BOOL "ACLNN_BW_BOOL"
        REAL "ACLNN_BW_REAL"
        LAYOUT "ACLNN_BW_LAYOUT"
    enum:
        IS_MASK "ACLNN_BW_IS_MASK"
        OWN_DTYPE "ACLNN_BW_OWN_DTYPE"
        SCALAR "ACLNN_BW_SCALAR"
        NULLABLE "ACLNN_BW_NULLABLE"
        EMPTY "ACLNN_BW_EMPTY"
        OPTIONAL "ACLNN_BW_OPTIONAL"
        TWO_PHASE_ONLY "ACLNN_BW_TWO_PHASE_ONLY"
        IS_INDICES "ACLNN_BW_IS_INDICES"
        HOST_INT64 "ACLNN_BW_HOST_INT64"
        LEADS "ACLNN_BW_LEADS"
        SAMPLED "ACLNN_BW_SAMPLED"
        KNOWN "ACLNN_BW_KNOWN"
        COUNT_SHIFT "ACLNN_BW_COUNT_SHIFT"
    enum:
        ARG_GRAD_OUTPUT "ACLNN_BW_ARG_GRAD_OUTPUT"
        ARG_SELF "ACLNN_BW_ARG_SELF"
        ARG_GRAD_INPUT "ACLNN_BW_ARG_GRAD_INPUT"
        ARG_KERNEL_SIZE "ACLNN_BW_ARG_KERNEL_SIZE"
        ARG_STRIDE "ACLNN_BW_ARG_STRIDE"
        ARG_PADDING "ACLNN_BW_ARG_PADDING"
        ARG_DIVISOR_OVERRIDE "ACLNN_BW_ARG_DIVISOR_OVERRIDE"
        ARG_CUBE_MATH_TYPE "ACLNN_BW_ARG_CUBE_MATH_TYPE"
        ARG_MASK "ACLNN_BW_ARG_MASK"
        ARG_MASK_OUT "ACLNN_BW_ARG_MASK_OUT"
        ARG_INDICES "ACLNN_BW_ARG_INDICES"
        ARG_DILATION "ACLNN_BW_ARG_DILATION"
        ARG_OUTPUT_SIZE "ACLNN_BW_ARG_OUTPUT_SIZE"
        ARG_INPUT_SIZE "ACLNN_BW_ARG_INPUT_SIZE"
        ARG_SCALES "ACLNN_BW_ARG_SCALES"
        ARG_STRIDES "ACLNN_BW_ARG_STRIDES"
        ARG_PADDINGS "ACLNN_BW_ARG_PADDINGS"
        ARG_OUT "ACLNN_BW_ARG_OUT"
        ARGUMENTS "ACLNN_BW_ARGUMENTS"
    enum:
        OPERATORS "ACLNN_BW_OPERATORS"
    const char* argument_names "aclnn_bw_argument_names" [2][1]
    ctypedef struct Parameter "aclnn_bw_parameter":
        int kind, argument, flags
    ctypedef struct Arguments "aclnn_bw_arguments":
        int32_t op
        uint32_t absent
        (const Tensor*)[MAX_TENSORS] tensors
        (const IntArray*)[MAX_ARRAYS] arrays
        int64_t[MAX_NUMBERS] numbers
        double real
    ctypedef struct Fact "aclnn_bw_fact":
        const char* name
        int64_t[4] values
        double real
        int32_t count, kind
    ctypedef struct Record "aclnn_bw_operator":
        const char* name
        const char* one_call
        int (*plan)(const Context*, const Arguments*, Executor**) noexcept nogil
        int (*result)(const Context*, const Arguments*, Tensor*) noexcept nogil
        int size_argument
        int64_t (*facts)(const Executor*, Fact*) noexcept nogil
        uint64_t[4] dtypes
        const Parameter* parameters
        const Parameter* tensors
        const Parameter* arrays
        const char* const* algorithms
