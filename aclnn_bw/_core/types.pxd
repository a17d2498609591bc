"""Every struct, enum and function-pointer type of the core: plain C data, no Python object.

One definition serves all objects that cimport this file. Sizes, strides and offsets are 64-bit and counted in elements
unless the name says bytes.
"""
from libc.stdint cimport int32_t, int64_t, uint64_t

cdef enum:
    MAX_RANK = 8        # CANN's own limit; tensors beyond it are refused by every operator's rank rule
    MAX_TENSORS = 4     # the most tensor arguments that any of the operators has
    MAX_INTS = 8        # values of an int array that are kept; no operator takes more than four
    ALIGNMENT = 64      # of every scratch area: a cache line, and the widest vector

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
    DT_COMPLEX64 = 16
    DT_COMPLEX128 = 17
    DT_BF16 = 27

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

cdef enum Operator:
    MAX_POOL2D_WITH_MASK_BACKWARD
    MAX_POOL2D_WITH_MASK
    UPSAMPLE_NEAREST_EXACT1D_BACKWARD
    AVG_POOL2D_BACKWARD
    IM2COL_BACKWARD
    REPLICATION_PAD2D_BACKWARD
    OPERATORS

cdef enum Face:
    TWO_PHASE       # messages use the C call's argument names
    ONE_CALL        # messages use the one-call function's argument names
    MASK_HELPER     # messages use the argument names of mask_shape and its kin
    C_CALL          # as TWO_PHASE, but nothing is spelled as in Python

# The arguments of all operators; names.pxd spells them for each face.
cdef enum Argument:
    ARG_GRAD_OUTPUT
    ARG_SELF
    ARG_GRAD_INPUT
    ARG_KERNEL_SIZE
    ARG_STRIDE
    ARG_PADDING
    ARG_DIVISOR_OVERRIDE
    ARG_CUBE_MATH_TYPE
    ARG_INDICES
    ARG_DILATION
    ARG_OUTPUT_SIZE
    ARG_INPUT_SIZE
    ARG_SCALES
    ARG_OUT
    ARGUMENTS

cdef enum TensorFlag:
    WRITABLE = 1        # the owner allows writing
    MISALIGNED = 2      # the first element is not aligned for its dtype
    SWAPPED = 4         # bytes in the other machine's order
    BROKEN_STRIDE = 8   # a byte stride is no multiple of the item size

cdef struct Tensor:
    int64_t[MAX_RANK] dims
    int64_t[MAX_RANK] strides
    int64_t offset          # of the view's first element within the storage
    int64_t storage         # elements in the storage
    char* data              # the storage's first byte; NULL while unbound
    int32_t rank
    int32_t dtype
    int32_t format
    int32_t flags

cdef struct IntArray:
    int64_t[MAX_INTS] values
    int64_t size            # may exceed MAX_INTS: then only the first values are kept, and the length is refused
    bint scalar             # written as a bare int by the caller, so messages show no index

# What the tensor argument of an executor is to its operator.
cdef enum Role:
    ROLE_READ       # an input whose values are read
    ROLE_SHAPE      # an input that gives its shape only: may be unbound, may overlap anything
    ROLE_WRITTEN    # an output

# Serial work on the units [begin, end) of a plan. `data` holds the first view element of each tensor, in argument
# order; `scratch` is this range's own. Returns ALL_GOOD, or the place of the first value that only a kernel can see to
# be bad (the explain function of the executor says what a place is).
ctypedef int64_t (*RangeFn)(const void* plan, char** data, char* scratch, int64_t begin, int64_t end) noexcept nogil

cdef enum:
    ALL_GOOD = -1

# The storage types for which a kernel exists, as indices of a table row.
cdef enum Slot:
    SLOT_F32
    SLOT_F64
    SLOT_F16
    SLOT_BF16
    REAL_SLOTS
    SLOT_C64 = REAL_SLOTS
    SLOT_C128
    SLOTS

cdef struct KernelTable:
    RangeFn[REAL_SLOTS] max_pool2d_gather
    RangeFn[REAL_SLOTS] max_pool2d_scatter
    RangeFn[REAL_SLOTS] max_pool2d_forward
    RangeFn[REAL_SLOTS] upsample_nearest_exact1d_backward
    RangeFn[REAL_SLOTS] avg_pool2d_backward
    RangeFn[REAL_SLOTS] im2col_backward
    RangeFn[SLOTS] replication_pad2d_backward
    bint lane_masks     # a comparison leaves a mask of lanes (AVX-512): plans choose by what that is worth

cdef struct Context:
    const KernelTable* kernels
    int32_t product
    int32_t mask_layout
    int32_t face
    int32_t threads     # asked for by the caller
    int32_t cores       # available to the process
    void* room          # memory that outlives the executor, aligned as malloc's: phase 1 need not allocate; or NULL
    int64_t room_size

# Turns the smallest place that a range has returned into a refusal: (plan, face, data, place).
ctypedef int (*ExplainFn)(const void* plan, int face, char** data, int64_t place) noexcept nogil

cdef struct Executor:
    int32_t op
    int32_t face
    int32_t tensors
    int32_t threads
    int32_t repeatable
    int32_t spent               # atomic
    uint64_t claim              # atomic: queue << 32 | runs that are queued or running
    int64_t units               # independent pieces of work
    int64_t bytes               # compulsory traffic of all units
    int64_t ranges              # what they are split into: one per thread
    int64_t scratch             # bytes of workspace for each range
    int64_t workspace_size
    RangeFn kernel
    ExplainFn explain           # NULL where no value can be bad
    void* plan                  # lies behind this struct, in the same memory
    bint lent                   # that memory is the caller's room
    int32_t[MAX_TENSORS] roles
    int32_t[MAX_TENSORS] arguments
    Tensor[MAX_TENSORS] tensor  # last: new_executor zeroes what stands before it

# One accepted run: the addresses that phase 2 works on, frozen, so that an executor may be re-pointed while runs are
# queued.
cdef struct Run:
    Executor* executor
    (char*)[MAX_TENSORS] data
    char* workspace             # aligned
    int64_t bad                 # atomic: the smallest place that a range has returned, or ALL_GOOD
