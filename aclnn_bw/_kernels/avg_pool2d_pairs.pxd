# cython: cdivision=True
"""Average pool: stride 2 or 3 along w and at most two terms along an axis, from rows of terms to rows of gradInput with
the sums in registers.

A row of windows makes two kinds of rows: those that sum it and the row above, and those that sum it alone. The row
above is summed again: that is cheaper than to keep its sums. A row that does not exist is one of zeros.

Bounds. The last block of a row overlaps the one before, so n positions are stored and no other. What is read lies in a
row of terms or in the space behind it.
"""
from libc.stdint cimport int64_t

from aclnn_bw._kernels.simd cimport (
    HALF_BYTES, VECTOR_BYTES, add, element, prefetch_to_write, simd_load, simd_triple, simd_zip_three,
    store, store_in_turn, sum_bytes, vec, vector, vector_16, vector_half,
)

# What rows of gradInput have in common; offsets are bytes of a row of terms.
cdef struct Pairs:
    int64_t n               # positions
    int64_t[3] at           # of the first positions, the first term of each
    bint[3] two             # and whether there is a second one
    int64_t down            # elements of gradInput
    int64_t ahead           # from a store to what is fetched


cdef inline vec sum_one_or_two(const char* terms, bint two, const element* numbers, vec* width) noexcept nogil:
    cdef vec x, y
    simd_load(&x, terms)
    if two:
        simd_load(&y, terms + sum_bytes(numbers))
        x = add(x, y, numbers)
    return x


cdef inline void pair_block(element* to_all, int64_t all_rows, element* to_here, int64_t here_rows, int64_t down,
                            int64_t ahead, const char* here, const char* above, int64_t even, int64_t odd,
                            bint even_two, bint odd_two, bint two_rows, vec* width) noexcept nogil:
    """Two vectors of positions in each of the rows."""
    cdef vec x = sum_one_or_two(here + even, even_two, to_all, width)
    cdef vec y = sum_one_or_two(here + odd, odd_two, to_all, width)
    cdef vec all_x = x
    cdef vec all_y = y
    cdef int64_t r
    if two_rows:
        all_x = add(sum_one_or_two(above + even, even_two, to_all, width), x, to_all)
        all_y = add(sum_one_or_two(above + odd, odd_two, to_all, width), y, to_all)
    for r in range(all_rows):
        prefetch_to_write(to_all + r * down + ahead)
        store_in_turn(to_all + r * down, all_x, all_y)
    if two_rows:
        for r in range(here_rows):
            prefetch_to_write(to_here + r * down + ahead)
            store_in_turn(to_here + r * down, x, y)


cdef inline void pair_blocks(const Pairs* p, element* to_all, int64_t all_rows, element* to_here, int64_t here_rows,
                             const char* here, const char* above, bint even_two, bint odd_two, bint two_rows,
                             vec* width) noexcept nogil:
    cdef int64_t size = sum_bytes(to_all)
    cdef int64_t wide = 2 * (<int64_t>sizeof(vec) // sum_bytes(to_all))
    cdef int64_t even = p.at[0]
    cdef int64_t odd = p.at[1]
    cdef int64_t n = p.n
    cdef int64_t down = p.down
    cdef int64_t ahead = p.ahead
    cdef int64_t i = 0
    while i <= n - wide:
        pair_block(to_all + i, all_rows, to_here + i, here_rows, down, ahead, here, above, even, odd, even_two,
                   odd_two, two_rows, width)
        here += sizeof(vec)
        above += sizeof(vec)
        i += wide
    if i == n:
        return
    here -= (i >> 1) * size
    above -= (i >> 1) * size
    i = n - wide
    here += (i >> 1) * size
    above += (i >> 1) * size
    if i & 1 != 0:
        pair_block(to_all + i, all_rows, to_here + i, here_rows, down, ahead, here, above, odd, even + size, odd_two,
                   even_two, two_rows, width)
    else:
        pair_block(to_all + i, all_rows, to_here + i, here_rows, down, ahead, here, above, even, odd, even_two,
                   odd_two, two_rows, width)


cdef inline void pair_known(const Pairs* p, element* to_all, int64_t all_rows, element* to_here, int64_t here_rows,
                            const char* here, const char* above, bint even_two, bint odd_two,
                            bint two_rows) noexcept nogil:
    if p.n >= 2 * (VECTOR_BYTES // sum_bytes(to_all)):
        pair_blocks(p, to_all, all_rows, to_here, here_rows, here, above, even_two, odd_two, two_rows, <vector*>NULL)
    else:
        pair_blocks(p, to_all, all_rows, to_here, here_rows, here, above, even_two, odd_two, two_rows,
                    <vector_half*>NULL)


cdef inline void pair_rows(const Pairs* p, element* to_all, int64_t all_rows, element* to_here, int64_t here_rows,
                           const char* here, const char* above, bint two_rows) noexcept nogil:
    """The rows of one row of windows: `all_rows` of both it and the one above, if there are two, `here_rows` of it
    alone."""
    if not two_rows:
        pair_known(p, to_all, all_rows, to_here, 0, here, here, False, False, False)
    elif not p.two[0]:
        pair_known(p, to_all, all_rows, to_here, here_rows, here, above, False, True, True)
    elif not p.two[1]:
        pair_known(p, to_all, all_rows, to_here, here_rows, here, above, True, False, True)
    else:
        pair_known(p, to_all, all_rows, to_here, here_rows, here, above, True, True, True)


cdef inline void store_three(element* to, vector_16 x, vector_16 y, vector_16 z) noexcept nogil:
    """to[3*i], to[3*i + 1], to[3*i + 2] = x[i], y[i], z[i], rounded."""
    cdef char[48] block
    simd_zip_three(<char*>block, &x, &y, &z, sum_bytes(to))
    simd_load(&x, <char*>block)
    simd_load(&y, <char*>block + 16)
    simd_load(&z, <char*>block + 32)
    store(to, x)
    store(to + 16 // sum_bytes(to), y)
    store(to + 32 // sum_bytes(to), z)


cdef inline void same_block(element* to, int64_t rows, int64_t down, const char* terms, vec* width) noexcept nogil:
    """Each term three times."""
    cdef int64_t lanes = <int64_t>sizeof(vec) // sum_bytes(to)
    cdef vec x, y, z
    cdef int64_t r
    simd_load(&x, terms)
    simd_triple(&x, &y, &z, &x, sum_bytes(to))
    for r in range(rows):
        store(to + r * down, x)
        store(to + r * down + lanes, y)
        store(to + r * down + 2 * lanes, z)


cdef inline void triple_block(element* to_all, int64_t all_rows, element* to_here, int64_t here_rows, int64_t down,
                              const char* here, const char* above, const int64_t* at, const bint* two,
                              bint two_rows) noexcept nogil:
    cdef vector_16[3] x
    cdef vector_16[3] all_x
    cdef int64_t k
    for k in range(3):
        x[k] = sum_one_or_two(here + at[k], two[k], to_all, <vector_16*>NULL)
        all_x[k] = x[k]
        if two_rows:
            all_x[k] = add(sum_one_or_two(above + at[k], two[k], to_all, <vector_16*>NULL), x[k], to_all)
    for k in range(all_rows):
        store_three(to_all + k * down, all_x[0], all_x[1], all_x[2])
    for k in range(here_rows if two_rows else 0):
        store_three(to_here + k * down, x[0], x[1], x[2])


cdef inline void triple_rows(const Pairs* p, element* to_all, int64_t all_rows, element* to_here, int64_t here_rows,
                             const char* here, const char* above, bint two_rows) noexcept nogil:
    """pair_rows at a stride of 3; of unlike kinds in vectors of 16 bytes, which shuffles of three in turn do not
    cross."""
    cdef int64_t size = sum_bytes(to_all)
    cdef int64_t wide = 48 // sum_bytes(to_all)
    cdef int64_t i = 0
    cdef int64_t[3] at
    cdef bint[3] two
    cdef int64_t k, turn, group
    if not two_rows and p.at[0] == p.at[2]:
        while i <= p.n - 3 * (VECTOR_BYTES // size):
            same_block(to_all + i, all_rows, p.down, here + p.at[0], <vector*>NULL)
            here += VECTOR_BYTES
            i += 3 * (VECTOR_BYTES // size)
    while i <= p.n - wide:
        triple_block(to_all + i, all_rows, to_here + i, here_rows, p.down, here, above, p.at, p.two, two_rows)
        here += 16
        above += 16
        i += wide
    if i == p.n:
        return
    # The last block begins with any of the three.
    group = (p.n - wide) // 3 - i // 3
    i = p.n - wide
    turn = i % 3
    for k in range(3):
        at[k] = p.at[(k + turn) % 3] + (group + (k + turn) // 3) * size
        two[k] = p.two[(k + turn) % 3]
    triple_block(to_all + i, all_rows, to_here + i, here_rows, p.down, here, above, <const int64_t*>at,
                 <const bint*>two, two_rows)
