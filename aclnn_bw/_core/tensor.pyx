"""Tensor descriptors: sizes, bounds, and the exact answer to "do these two views share a byte?".

A kernel has no bounds checks. What it relies on is proved here in phase 1: every element of a view lies inside its
storage (`tensor_bounds`), an output's elements are distinct (`is_injective`), and no output shares a byte with
an input that is read or with the workspace (`tensors_overlap`, `tensor_meets`).
"""
from libc.stdint cimport int64_t, uintptr_t

from aclnn_bw._core.arithmetic cimport add_overflows, least, most, mul_overflows
from aclnn_bw._core.names cimport TEXT, name, tuple_text
from aclnn_bw._core.status cimport refuse, wide
from aclnn_bw._core.types cimport (
    BROKEN_STRIDE, ERR_INVALID, MAX_RANK, MISALIGNED, SUCCESS, WRITABLE, Context, Tensor,
)


cdef int64_t traffic(const Tensor* tensor, int64_t item) noexcept nogil:
    """The bytes that a tensor moves; for the thread policy alone, so at most a quarter of int64's range."""
    cdef int64_t size = tensor_size(tensor)
    cdef int64_t limit = <int64_t>1 << 57
    return limit * item if size < 0 or size > limit else size * item


cdef void make_row_major(Tensor* tensor) noexcept nogil:
    """C-contiguous strides. Only for a tensor whose size fits int64."""
    cdef int64_t step = 1
    cdef int64_t i
    for i in range(tensor.rank):
        tensor.strides[tensor.rank - 1 - i] = step
        if mul_overflows(step, most(tensor.dims[tensor.rank - 1 - i], 1), &step):
            step = 0        # an empty tensor may have any sizes, and no element to find


cdef void plain_strides(const Tensor* tensor, int64_t* strides) noexcept nogil:
    """The strides, with those of axes of size 1, which say nothing, replaced by the row-major ones, so that a plan sees
    a row or plane as contiguous whenever its elements are."""
    cdef int64_t i, axis
    for i in range(tensor.rank):
        axis = tensor.rank - 1 - i
        strides[axis] = tensor.strides[axis]
        if tensor.dims[axis] == 1:
            strides[axis] = 1
            if i > 0 and mul_overflows(tensor.dims[axis + 1], strides[axis + 1], &strides[axis]):
                strides[axis] = 0


cdef bint tensor_bounds(const Tensor* tensor, int64_t* low, int64_t* high) noexcept nogil:
    """The lowest and highest storage index of a view that is not empty; False if that is beyond int64."""
    cdef int64_t reach = 0
    cdef int64_t i
    low[0] = high[0] = tensor.offset
    for i in range(tensor.rank):
        if mul_overflows(tensor.dims[i] - 1, tensor.strides[i], &reach):
            return False
        if reach < 0:
            if add_overflows(low[0], reach, low):
                return False
        elif add_overflows(high[0], reach, high):
            return False
    return True


cdef int64_t reach_of(const Tensor* tensor) noexcept nogil:
    """Bytes from the first element of a view inside its storage to the end of the one that lies highest; 0 of none."""
    cdef int64_t low, high
    if tensor_size(tensor) == 0 or not tensor_bounds(tensor, &low, &high):
        return 0
    return (high - tensor.offset + 1) * item_size(tensor.dtype)


# A view in bytes, in the order that the questions below need: positive strides, longest first; no axis of size 1.
cdef struct Lattice:
    uintptr_t start
    int64_t item
    int64_t rank
    int64_t[MAX_RANK] dims
    int64_t[MAX_RANK] strides
    int64_t[MAX_RANK] spans     # bytes from the first to past the last, over the axes from this one on


cdef Lattice make_lattice(const Tensor* tensor, const char* data) noexcept nogil:
    """The bytes of a bounded view that is not empty. A zero stride, and an axis of one, add no bytes and are dropped;
    an axis that continues the next one is merged with it."""
    cdef Lattice lattice
    cdef int64_t i, j, stride, dim, span
    lattice.start = <uintptr_t>data
    lattice.item = item_size(tensor.dtype)
    lattice.rank = 0
    for i in range(tensor.rank):
        dim = tensor.dims[i]
        if dim == 1 or tensor.strides[i] == 0:
            continue
        stride = tensor.strides[i] * lattice.item
        if stride < 0:
            # Modular arithmetic: the true start lies inside the storage, so the wrap-around cancels out.
            lattice.start += <uintptr_t>((dim - 1) * stride)
            stride = -stride
        j = lattice.rank
        while j > 0 and lattice.strides[j - 1] < stride:
            lattice.strides[j] = lattice.strides[j - 1]
            lattice.dims[j] = lattice.dims[j - 1]
            j -= 1
        lattice.strides[j] = stride
        lattice.dims[j] = dim
        lattice.rank += 1
    i = lattice.rank - 1
    while i > 0:
        if lattice.strides[i - 1] == lattice.strides[i] * lattice.dims[i]:
            lattice.dims[i - 1] *= lattice.dims[i]
            lattice.strides[i - 1] = lattice.strides[i]
            for j in range(i, lattice.rank - 1):
                lattice.dims[j] = lattice.dims[j + 1]
                lattice.strides[j] = lattice.strides[j + 1]
            lattice.rank -= 1
        i -= 1
    if lattice.rank > 0 and lattice.strides[lattice.rank - 1] == lattice.item:
        # Whole rows are items of their own: an interval is compared at once.
        lattice.rank -= 1
        lattice.item *= lattice.dims[lattice.rank]
    span = lattice.item
    for j in range(lattice.rank):
        i = lattice.rank - 1 - j
        span += (lattice.dims[i] - 1) * lattice.strides[i]
        lattice.spans[i] = span
    return lattice


cdef inline int64_t span_from(const Lattice* lattice, int64_t axis) noexcept nogil:
    return lattice.spans[axis] if axis < lattice.rank else lattice.item


cdef bint is_injective(const Tensor* tensor) noexcept nogil:
    """Whether no two indices of a bounded view can share an element: sorted, each |stride| exceeds the smaller span."""
    cdef int64_t span = 1
    cdef int64_t count = 0
    cdef int64_t i, j, stride
    cdef int64_t[MAX_RANK] strides
    cdef int64_t[MAX_RANK] dims
    # From the last axis on, for there row-major strides are sorted already.
    for i in range(tensor.rank - 1, -1, -1):
        if tensor.dims[i] != 1:
            stride = -tensor.strides[i] if tensor.strides[i] < 0 else tensor.strides[i]
            j = count
            while j > 0 and strides[j - 1] > stride:
                strides[j] = strides[j - 1]
                dims[j] = dims[j - 1]
                j -= 1
            strides[j] = stride
            dims[j] = tensor.dims[i]
            count += 1
    for j in range(count):
        if strides[j] < span:
            return False
        span += (dims[j] - 1) * strides[j]
    return True


cdef bint holds_byte_of(const Lattice* nested, uintptr_t begin, uintptr_t end) noexcept nogil:
    """Whether an item of the nested lattice meets the bytes [begin, end).

    Nested means: each stride exceeds the span of the axes after it. So addresses ascend with the indices, and the last
    item that starts before `end` is found greedily, axis by axis. It is the only one to look at.
    """
    cdef int64_t rest, step, axis
    cdef uintptr_t at = nested.start
    if end <= nested.start:
        return False
    rest = <int64_t>(end - 1 - nested.start)
    for axis in range(nested.rank):
        step = least(rest // nested.strides[axis], nested.dims[axis] - 1)
        rest -= step * nested.strides[axis]
        at += <uintptr_t>(step * nested.strides[axis])
    return at + <uintptr_t>nested.item > begin


cdef bint any_byte_shared(const Lattice* nested, const Lattice* other) noexcept nogil:
    """Walk the other view from its longest stride inwards; leave out every part that the nested lattice does not reach.

    Exact, and linear in the other view's items at worst, which is no more than the operator itself costs.
    """
    cdef int64_t[MAX_RANK + 1] index
    cdef uintptr_t[MAX_RANK + 1] at
    cdef int64_t axis = 0
    at[0] = other.start
    if not holds_byte_of(nested, at[0], at[0] + <uintptr_t>span_from(other, 0)):
        return False
    if other.rank == 0:
        return True
    index[0] = 0
    while axis >= 0:
        if index[axis] == other.dims[axis]:
            axis -= 1
            continue
        at[axis + 1] = at[axis] + <uintptr_t>(index[axis] * other.strides[axis])
        index[axis] += 1
        if holds_byte_of(nested, at[axis + 1], at[axis + 1] + <uintptr_t>span_from(other, axis + 1)):
            if axis + 1 == other.rank:
                return True
            axis += 1
            index[axis] = 0
    return False


cdef int64_t gcd(int64_t a, int64_t b) noexcept nogil:
    while b != 0:
        a, b = b, a % b
    return a


cdef bint residues_apart(const Lattice* a, const Lattice* b) noexcept nogil:
    """Whether the common divisor of all strides keeps the items apart, as in x[..., ::2] and x[..., 1::2]."""
    cdef int64_t step = 0
    cdef int64_t i, distance
    for i in range(a.rank):
        step = gcd(step, a.strides[i])
    for i in range(b.rank):
        step = gcd(step, b.strides[i])
    if step == 0:
        return False
    distance = <int64_t>((b.start - a.start) % <uintptr_t>step) if b.start >= a.start else (
        (step - <int64_t>((a.start - b.start) % <uintptr_t>step)) % step)
    return a.item <= distance <= step - b.item


cdef void byte_range(const Tensor* tensor, const char* data, uintptr_t* begin, uintptr_t* end) noexcept nogil:
    """The addresses from the first byte to past the last of a bounded view that is not empty."""
    cdef int64_t item = item_size(tensor.dtype)
    cdef int64_t i, reach
    begin[0] = end[0] = <uintptr_t>data
    for i in range(tensor.rank):
        reach = (tensor.dims[i] - 1) * tensor.strides[i] * item
        if reach < 0:
            begin[0] += <uintptr_t>reach
        else:
            end[0] += <uintptr_t>reach
    end[0] += <uintptr_t>item


cdef bint reaches(const Tensor* tensor, const char* data, uintptr_t begin, uintptr_t end) noexcept nogil:
    """Whether the view's address range meets [begin, end): the quick answer for memory that lies apart."""
    cdef uintptr_t first = 0
    cdef uintptr_t last = 0
    byte_range(tensor, data, &first, &last)
    return first < end and begin < last


cdef bint tensors_overlap(const Tensor* written, const char* written_data, const Tensor* other,
                          const char* other_data) noexcept nogil:
    """Whether a legal output shares a byte with another view. Both bounded; an empty one shares nothing."""
    cdef Lattice a, b
    cdef uintptr_t begin = 0
    cdef uintptr_t end = 0
    if tensor_size(written) == 0 or tensor_size(other) == 0:
        return False
    byte_range(other, other_data, &begin, &end)
    if not reaches(written, written_data, begin, end):
        return False
    a = make_lattice(written, written_data)
    b = make_lattice(other, other_data)
    return not residues_apart(&a, &b) and any_byte_shared(&a, &b)


cdef bint tensor_meets(const Tensor* tensor, const char* data, const char* begin, int64_t size) noexcept nogil:
    """Whether a view has a byte in [begin, begin + size)."""
    cdef Lattice block, view
    if size == 0 or tensor_size(tensor) == 0 or not reaches(tensor, data, <uintptr_t>begin,
                                                            <uintptr_t>begin + <uintptr_t>size):
        return False
    view = make_lattice(tensor, data)
    block.start = <uintptr_t>begin
    block.item = size
    block.rank = 0
    return any_byte_shared(&block, &view)


cdef int check_writable(const Context* context, int argument, const Tensor* tensor) noexcept nogil:
    if tensor.data != NULL and not tensor.flags & WRITABLE:
        return refuse(ERR_INVALID, "%s is read-only: must be writable; pass a new array", name(context, argument))
    return SUCCESS


cdef int check_alignment(const Context* context, int argument, const Tensor* tensor) noexcept nogil:
    if tensor.flags & BROKEN_STRIDE and tensor_size(tensor) != 0:
        return refuse(ERR_INVALID, "%s has a byte stride that is no multiple of its item size of %lld bytes; copy it",
                      name(context, argument), <wide>item_size(tensor.dtype))
    if tensor.flags & MISALIGNED and tensor_size(tensor) != 0:
        return refuse(ERR_INVALID, "%s is misaligned: its address must be a multiple of its dtype's alignment; copy it",
                      name(context, argument))
    return SUCCESS


cdef int check_bounds(const Context* context, int argument, const Tensor* tensor) noexcept nogil:
    """Every element of the view lies inside its storage."""
    cdef int64_t low = 0
    cdef int64_t high = 0
    cdef char[TEXT] text
    if tensor_size(tensor) == 0:
        return SUCCESS
    if not tensor_bounds(tensor, &low, &high) or low < 0 or high >= tensor.storage:
        return refuse(ERR_INVALID, "%s.strides = %s: with offset %lld the view leaves its storage of %lld elements: "
                      "must lie inside", name(context, argument), tuple_text(text, tensor.strides, tensor.rank),
                      <wide>tensor.offset, <wide>tensor.storage)
    return SUCCESS


cdef int check_injective(const Context* context, int argument, const Tensor* tensor) noexcept nogil:
    """No two elements of an output are the same memory. Needs check_bounds."""
    cdef char[TEXT] text
    if tensor_size(tensor) != 0 and not is_injective(tensor):
        return refuse(ERR_INVALID, "%s.strides = %s: elements of an output must not overlap; pass a new array",
                      name(context, argument), tuple_text(text, tensor.strides, tensor.rank))
    return SUCCESS
