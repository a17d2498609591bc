# cython: cdivision=True
"""Average pool: sums of rows, made in registers. `source` and the steps count bytes: what is summed is float32 or, of
float64, float64.

Bounds. `n` elements are stored and no other: the last vector overlaps the one before, and of fewer than a vector of 16
bytes those are copied that are wanted. What is read may end up to a vector behind what is wanted: it lies in the
scratch, where each row has that space behind it.
"""
from libc.stdint cimport int64_t

from aclnn_bw._core.arithmetic cimport least
from aclnn_bw._kernels.rows cimport add_row
from aclnn_bw._kernels.simd cimport (
    HALF_BYTES, VECTOR_BYTES, add, element, simd_load, simd_store, store, store_first, store_first_in_turn,
    store_in_turn, sum_bytes, vec, vector, vector_16, vector_half,
)


cdef inline vec sum_piece(const char* source, int64_t step, int64_t count, const element* numbers,
                          vec* width) noexcept nogil:
    """A vector of source[0] + source[step] + ..., added in this order."""
    cdef vec sum, x
    simd_load(&sum, source)
    while count > 1:
        source += step
        simd_load(&x, source)
        sum = add(sum, x, numbers)
        count -= 1
    return sum


cdef inline void sum_two_pieces(vec* sums, const char* source, int64_t step, int64_t count,
                                const element* numbers) noexcept nogil:
    """Two vectors side by side: their sums do not wait for each other."""
    cdef vec x
    simd_load(&sums[0], source)
    simd_load(&sums[1], source + sizeof(vec))
    while count > 1:
        source += step
        simd_load(&x, source)
        sums[0] = add(sums[0], x, numbers)
        simd_load(&x, source + sizeof(vec))
        sums[1] = add(sums[1], x, numbers)
        count -= 1


cdef inline void sum_pieces(element* to, const char* source, int64_t n, int64_t step, int64_t count,
                            vec* width) noexcept nogil:
    """At least a vector, rounded."""
    cdef int64_t size = sum_bytes(to)
    cdef int64_t lanes = <int64_t>sizeof(vec) // sum_bytes(to)
    cdef int64_t i = 0
    cdef vec[2] sums
    while i + 2 * lanes <= n:
        sum_two_pieces(<vec*>sums, source + i * size, step, count, to)
        store(to + i, sums[0])
        store(to + i + lanes, sums[1])
        i += 2 * lanes
    while i < n:
        i = least(i, n - lanes)
        store(to + i, sum_piece(source + i * size, step, count, to, width))
        i += lanes


cdef inline void sum_row(element* to, const char* source, int64_t n, int64_t step, int64_t count) noexcept nogil:
    cdef int64_t size = sum_bytes(to)
    if n >= VECTOR_BYTES // size:
        sum_pieces(to, source, n, step, count, <vector*>NULL)
    elif n >= HALF_BYTES // size:
        sum_pieces(to, source, n, step, count, <vector_half*>NULL)
    elif n >= 16 // size:
        sum_pieces(to, source, n, step, count, <vector_16*>NULL)
    else:
        store_first(to, sum_piece(source, step, count, to, <vector_16*>NULL), n)


cdef inline void sum_across(char* to, const char* source, int64_t bytes, int64_t pitch, int64_t rows, int64_t count,
                            const element* numbers) noexcept nogil:
    """Rows of sums of `count` terms side by side, in float32 or float64; whole vectors."""
    cdef int64_t step = sum_bytes(numbers)
    cdef int64_t i
    cdef vector x
    cdef vector[2] sums
    while rows > 0:
        i = 0
        while i + 2 * VECTOR_BYTES <= bytes:
            sum_two_pieces(<vector*>sums, source + i, step, count, numbers)
            simd_store(to + i, &sums[0])
            simd_store(to + i + VECTOR_BYTES, &sums[1])
            i += 2 * VECTOR_BYTES
        if i < bytes:
            x = sum_piece(source + i, step, count, numbers, <vector*>NULL)
            simd_store(to + i, &x)
        to += pitch
        source += pitch
        rows -= 1


cdef inline void pair_pieces(element* to, const char* even, int64_t even_step, const char* odd, int64_t odd_step,
                             int64_t n, int64_t count, vec* width) noexcept nogil:
    """At least two vectors. The last may begin with an odd position."""
    cdef int64_t size = sum_bytes(to)
    cdef int64_t wide = 2 * (<int64_t>sizeof(vec) // sum_bytes(to))
    cdef int64_t i = 0
    while i <= n - wide:
        store_in_turn(to + i, sum_piece(even + (i >> 1) * size, even_step, count, to, width),
                      sum_piece(odd + (i >> 1) * size, odd_step, count, to, width))
        i += wide
    if i == n:
        return
    i = n - wide
    if i & 1 != 0:
        store_in_turn(to + i, sum_piece(odd + (i >> 1) * size, odd_step, count, to, width),
                      sum_piece(even + ((i + 1) >> 1) * size, even_step, count, to, width))
    else:
        store_in_turn(to + i, sum_piece(even + (i >> 1) * size, even_step, count, to, width),
                      sum_piece(odd + (i >> 1) * size, odd_step, count, to, width))


cdef inline void pair_row(element* to, const char* even, int64_t even_step, const char* odd, int64_t odd_step,
                          int64_t n, int64_t count) noexcept nogil:
    """to[0::2] and to[1::2]: the sums of `count` rows from `even` and from `odd` on."""
    cdef int64_t size = sum_bytes(to)
    if n >= 2 * VECTOR_BYTES // size:
        pair_pieces(to, even, even_step, odd, odd_step, n, count, <vector*>NULL)
    elif n >= 2 * HALF_BYTES // size:
        pair_pieces(to, even, even_step, odd, odd_step, n, count, <vector_half*>NULL)
    elif n >= 32 // size:
        pair_pieces(to, even, even_step, odd, odd_step, n, count, <vector_16*>NULL)
    else:
        store_first_in_turn(to, sum_piece(even, even_step, count, to, <vector_16*>NULL),
                            sum_piece(odd, odd_step, count, to, <vector_16*>NULL), n)


cdef inline void add_sums(char* to, const char* sums, int64_t n, const element* numbers) noexcept nogil:
    """A row of sums is added to another."""
    if element is double:
        add_row(<double*>to, <const double*>sums, n)
    else:
        add_row(<float*>to, <const float*>sums, n)
