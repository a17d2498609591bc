# cython: cdivision=True
"""Small integer laws: overflow-checked products, rounded division. Their NumPy equivalents stand in the docstrings."""
from libc.stdint cimport int64_t, INT64_MAX


cdef extern from * nogil:
    bint mul_overflows "__builtin_mul_overflow" (int64_t a, int64_t b, int64_t* product) noexcept
    bint add_overflows "__builtin_add_overflow" (int64_t a, int64_t b, int64_t* total) noexcept


cdef inline int64_t quotient(int64_t a, int64_t b) noexcept nogil:
    """a // b for a >= 0, b > 0. Most of a plan's quotients are 0, and a check costs less than a 64-bit division."""
    return a // b if a >= b else 0


cdef inline int64_t ceil_div(int64_t a, int64_t b) noexcept nogil:
    """-(-a // b) for a >= 0, b > 0."""
    return quotient(a - 1, b) + 1 if a > 0 else 0


cdef inline int64_t round_up(int64_t a, int64_t b) noexcept nogil:
    return ceil_div(a, b) * b


cdef inline int64_t least(int64_t a, int64_t b) noexcept nogil:
    return a if a < b else b


cdef inline int64_t most(int64_t a, int64_t b) noexcept nogil:
    return a if a > b else b


cdef inline int64_t pooled_size(int64_t size, int64_t k, int64_t stride, int64_t pad, bint ceil_mode) noexcept nogil:
    """(size + 2*pad - k + (stride-1 if ceil_mode else 0)) // stride + 1, less one where the last window would start in
    the right padding; 0 or less where no window fits. Needs 2*pad <= k, k > 0, stride > 0; then nothing overflows."""
    cdef int64_t room = size + (2 * pad - k)        # <= size: 2*pad - k is in [-k, 0]
    cdef int64_t start = 0
    cdef int64_t out
    if room < 0:
        return 1 if ceil_mode and room > -stride else 0
    out = quotient(room, stride)
    if out == INT64_MAX:
        return out      # one less than the formula's: beyond any tensor either way
    out += 1
    if ceil_mode and room != (out - 1) * stride:
        out += 1
        if mul_overflows(out - 1, stride, &start) or start - pad >= size:
            out -= 1
    return out


cdef inline int64_t stretch(const int64_t* strides, int64_t piece, int64_t pieces) noexcept nogil:
    """How much lies end to end, of pieces that are strides[1] apart, `pieces` of them to an image; strides[0] between
    images."""
    if pieces > 1 and strides[1] != piece:
        return piece
    return INT64_MAX if strides[0] == pieces * piece else pieces * piece
