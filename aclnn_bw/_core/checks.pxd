# cython: cdivision=True
"""Checks that several operators share. Each returns SUCCESS or the status of a refusal whose message it has left, so an
operator's rules read as one `or` chain in the order in which they speak."""
from libc.stdint cimport int64_t

from aclnn_bw._core.names cimport (
    TEXT, dtype_text, element_text, format_name, name, null, of_shape, tuple_text,
)
from aclnn_bw._core.status cimport refuse, wide
from aclnn_bw._core.tensor cimport item_size, tensor_size, tensors_overlap
from aclnn_bw._core.types cimport (
    DT_BF16, DT_COMPLEX64, DT_DOUBLE, DT_FLOAT, DT_FLOAT16, ERR_INVALID, ERR_NULLPTR, FORMAT_FRACTAL_NZ,
    FORMAT_FRACTAL_Z, FORMAT_FRACTAL_Z_3D, FORMAT_NC1HWC0, FORMAT_NC1HWC0_C04, FORMAT_NDC1HWC0, SLOT_BF16, SLOT_C128,
    SLOT_C64, SLOT_F16, SLOT_F32, SLOT_F64, SUCCESS, Context, IntArray, Tensor,
)

cdef extern from *:
    """
    #define ACLNN_BW_MOST_BYTES (INT64_C(1) << 48)
    """
    int64_t MOST_BYTES "ACLNN_BW_MOST_BYTES"    # no tensor is larger


cdef inline int not_null(const Context* context, int argument, const void* pointer) noexcept nogil:
    if pointer == NULL:
        return refuse(ERR_NULLPTR, "%s = %s: must not be null", name(context, argument), null(context.face))
    return SUCCESS


cdef inline int same_dtype(const Context* context, int argument, const Tensor* tensor, int reference,
                           const Tensor* other) noexcept nogil:
    if tensor.dtype != other.dtype:
        return refuse(ERR_INVALID, "%s.dtype = %s: must equal %s.dtype = %s", name(context, argument),
                      dtype_text(context, tensor.dtype), name(context, reference), dtype_text(context, other.dtype))
    return SUCCESS


cdef inline int same_format(const Context* context, int argument, const Tensor* tensor, int reference,
                            const Tensor* other) noexcept nogil:
    if tensor.format != other.format:
        return refuse(ERR_INVALID, "%s.format = %s: must equal %s.format = %s", name(context, argument),
                      format_name(tensor.format), name(context, reference), format_name(other.format))
    return SUCCESS


cdef inline int rank_3_or_4(const Context* context, int argument, const Tensor* tensor) noexcept nogil:
    if tensor.rank != 3 and tensor.rank != 4:
        return refuse(ERR_INVALID, "%s.rank = %d: must be 3 (C, H, W) or 4 (N, C, H, W)", name(context, argument),
                      tensor.rank)
    return SUCCESS


cdef inline int same_rank(const Context* context, int argument, const Tensor* tensor, int reference,
                          const Tensor* other) noexcept nogil:
    if tensor.rank != other.rank:
        return refuse(ERR_INVALID, "%s.rank = %d: must equal %s.rank = %d", name(context, argument), tensor.rank,
                      name(context, reference), other.rank)
    return SUCCESS


cdef inline int length_between(const Context* context, int argument, const IntArray* array, int64_t low,
                               int64_t high) noexcept nogil:
    if low <= array.size <= high:
        return SUCCESS
    if low == high:
        return refuse(ERR_INVALID, "len(%s) = %lld: must be %lld", name(context, argument), <wide>array.size, <wide>low)
    return refuse(ERR_INVALID, "len(%s) = %lld: must be %lld to %lld", name(context, argument), <wide>array.size,
                  <wide>low, <wide>high)


cdef inline int read_pair(const Context* context, int argument, const IntArray* array, int64_t least_value,
                          int64_t* pair) noexcept nogil:
    """One value for both axes, or one for each; needs a length of 1 or 2."""
    cdef char[TEXT] text
    cdef int64_t i
    for i in range(2):
        pair[i] = array.values[i if i < array.size else 0]
        if pair[i] < least_value:
            return refuse(ERR_INVALID, "%s = %lld: must be >= %lld", element_text(text, context, argument, array, i),
                          <wide>pair[i], <wide>least_value)
    return SUCCESS


cdef inline int shape_is(const Context* context, int argument, const Tensor* tensor, const int64_t* dims,
                         const char* rule) noexcept nogil:
    """The tensor's dims, which have the right rank, are these."""
    cdef char[TEXT] seen
    cdef char[TEXT] wanted
    cdef int64_t i
    for i in range(tensor.rank):
        if tensor.dims[i] != dims[i]:
            return refuse(ERR_INVALID, "%s.shape = %s: must be %s = %s", name(context, argument),
                          tuple_text(seen, tensor.dims, tensor.rank), rule, tuple_text(wanted, dims, tensor.rank))
    return SUCCESS


cdef inline int shape_made(const Context* context, int argument, const Tensor* tensor, const int64_t* dims,
                           const char* made, int reference, const Tensor* other) noexcept nogil:
    """As shape_is; the dims were `made` from another tensor's."""
    cdef char[TEXT] seen
    cdef char[TEXT] wanted
    cdef char[TEXT] source
    cdef int64_t i
    for i in range(tensor.rank):
        if tensor.dims[i] != dims[i]:
            return refuse(ERR_INVALID, "%s.shape = %s: expected %s, %s from %s %s", name(context, argument),
                          tuple_text(seen, tensor.dims, tensor.rank), tuple_text(wanted, dims, tensor.rank), made,
                          name(context, reference), tuple_text(source, other.dims, other.rank))
    return SUCCESS


cdef inline int none_zero_but_batch(const Context* context, int argument, const Tensor* tensor) noexcept nogil:
    """C, H, W > 0; N of the batched form may be 0."""
    cdef char[TEXT] text
    cdef int64_t i
    for i in range(tensor.rank - 3, tensor.rank):
        if tensor.dims[i] == 0:
            return refuse(ERR_INVALID, "%s%s = %s: C, H and W must be > 0", name(context, argument),
                          of_shape(context, argument), tuple_text(text, tensor.dims, tensor.rank))
    return SUCCESS


cdef inline int apart(const Context* context, int argument, const Tensor* written, int reference,
                      const Tensor* read) noexcept nogil:
    """An output shares no element with an input whose values are read, nor with another output. An unbound tensor is
    checked once it is bound; an empty one lies nowhere, whatever its offset says."""
    if written.data == NULL or read.data == NULL or tensor_size(written) == 0 or tensor_size(read) == 0:
        return SUCCESS
    if tensors_overlap(written, written.data + written.offset * item_size(written.dtype),
                       read, read.data + read.offset * item_size(read.dtype)):
        return refuse(ERR_INVALID, "%s overlaps %s: an output must not share memory with an input that is read or with "
                      "another output", name(context, argument), name(context, reference))
    return SUCCESS


cdef inline int addressable(const Context* context, int argument, const Tensor* tensor) noexcept nogil:
    """No tensor is larger than a machine addresses, so that no size planned from it overflows."""
    cdef char[TEXT] text
    if not 0 <= tensor_size(tensor) <= MOST_BYTES // item_size(tensor.dtype):
        return refuse(ERR_INVALID, "%s%s = %s: has more bytes than a machine addresses", name(context, argument),
                      of_shape(context, argument), tuple_text(text, tensor.dims, tensor.rank))
    return SUCCESS


cdef inline int private_format(int format) noexcept nogil:
    """Whether it is one of the layouts that only the products use among themselves."""
    return format in (FORMAT_NC1HWC0, FORMAT_FRACTAL_Z, FORMAT_NC1HWC0_C04, FORMAT_FRACTAL_NZ, FORMAT_NDC1HWC0,
                      FORMAT_FRACTAL_Z_3D)


cdef inline int format_is_plain(const Context* context, int argument, const Tensor* tensor) noexcept nogil:
    if private_format(tensor.format):
        return refuse(ERR_INVALID, "%s.format = %s: must not be a private format; ACL_FORMAT_ND is a plain one",
                      name(context, argument), format_name(tensor.format))
    return SUCCESS


cdef inline int slot_of(int dtype) noexcept nogil:
    """The table index of a dtype that check_dtype has taken."""
    if dtype == DT_FLOAT:
        return SLOT_F32
    if dtype == DT_DOUBLE:
        return SLOT_F64
    if dtype == DT_FLOAT16:
        return SLOT_F16
    if dtype == DT_BF16:
        return SLOT_BF16
    return SLOT_C64 if dtype == DT_COMPLEX64 else SLOT_C128
