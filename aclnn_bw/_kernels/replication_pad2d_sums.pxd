# cython: cdivision=True
"""Runs: the numbers of gradOutput that one element of gradInput gets in a row, and their sum.

A run of fewer than LONG numbers is added ascending, a longer one in LANES chains: number k, real and imaginary parts
counted separately, goes to chain k % LANES, and chains are added pairwise at the end. The sum of complex numbers is two
numbers; `parts` says how many an element has.
"""
from libc.stdint cimport int64_t

from aclnn_bw._kernels.replication_pad2d_copy cimport copy_rows
from aclnn_bw._kernels.rows cimport narrow_row, sum_dense_rows, widen_row, widened
from aclnn_bw._kernels.simd cimport (
    add, bfloat, element, half, load, narrow_to_bfloat, narrow_to_half, real, simd_store, vector_16,
)

cdef enum:
    LANES = 8           # chains of a long run
    LONG = 16           # numbers that make a run long
    FEW = 4             # numbers: fewer are not worth a vector


cdef inline void store(element* to, real value) noexcept nogil:
    if element is half:
        to[0] = narrow_to_half(<float>value)
    elif element is bfloat:
        to[0] = narrow_to_bfloat(<float>value)
    else:
        to[0] = <element>value


cdef inline void store_number(element* to, const real* sums, int64_t parts) noexcept nogil:
    """One element, narrowed."""
    store(to, sums[0])
    if parts == 2:
        store(to + 1, sums[1])


cdef inline const real* widened_row(const element* row, real* room, int64_t n) noexcept nogil:
    """A row of n numbers as they are summed: in `room` if they must be widened."""
    if (real is float and element is float) or (real is double and element is double):
        return row
    else:
        widen_row(room, row, n)
        return room


cdef inline void store_sums(element* to, const real* sums, int64_t n) noexcept nogil:
    """to[:n] = sums[:n], narrowed. They have just been stored: loads of the same vectors do not wait for the cache."""
    if (real is float and element is float) or (real is double and element is double):
        copy_rows(to, 0, sums, 0, n, 1, False)
    else:
        narrow_row(to, sums, n)


cdef inline const element* narrowed_row(const real* sums, element* room, int64_t n) noexcept nogil:
    """A row of n sums as they are stored: in `room` if they must be narrowed."""
    if (real is float and element is float) or (real is double and element is double):
        return sums
    else:
        narrow_row(room, sums, n)
        return room


cdef inline void move(element* to, int64_t to_along, const element* source, int64_t along, int64_t n,
                      int64_t parts) noexcept nogil:
    """n elements, from places `along` numbers apart to places `to_along` apart. `parts` is a constant."""
    cdef int64_t i
    for i in range(n):
        to[i * to_along] = source[i * along]
        if parts == 2:
            to[i * to_along + 1] = source[i * along + 1]


cdef inline void add_lanes(real* sums, const real* run, int64_t n) noexcept nogil:
    """sums[k] += run[k] + run[LANES + k] + ..., each in this order, of n numbers, a multiple of LANES. In vectors of 16
    bytes on every instruction set: two or four independent chains keep the adder busy enough."""
    cdef vector_16[4] chains
    cdef int64_t each = <int64_t>(16 // sizeof(real))
    cdef int64_t count = <int64_t>(LANES * sizeof(real) // 16)
    cdef int64_t i = 0
    cdef int64_t k
    for k in range(count):
        chains[k] = load(sums + k * each, <vector_16*>NULL)
    while i < n:
        for k in range(count):
            chains[k] = add(chains[k], load(run + i + k * each, <vector_16*>NULL), run)
        i += LANES
    for k in range(count):
        simd_store(sums + k * each, &chains[k])


cdef inline void add_run(real* sums, int64_t chains, int64_t at, const real* run, int64_t n) noexcept nogil:
    """Add numbers at, at + 1, ... of a run to its chains. `chains` is LANES or the parts of an element."""
    cdef int64_t i = 0
    cdef int64_t whole
    if chains == LANES:
        while i < n and (at + i) % LANES != 0:
            sums[(at + i) % LANES] += run[i]
            i += 1
        whole = (n - i) // LANES * LANES
        add_lanes(sums, run + i, whole)
        i += whole
    while i < n:
        sums[(at + i) & (chains - 1)] += run[i]
        i += 1


cdef inline void join_chains(real* sums, int64_t chains, int64_t parts) noexcept nogil:
    """Add up the chains into sums[:parts]."""
    cdef int64_t k
    if chains == LANES:
        for k in range(LANES // 2):
            sums[k] += sums[k + LANES // 2]
        for k in range(LANES // 4):
            sums[k] += sums[k + LANES // 4]
        if parts == 1:
            sums[0] += sums[1]


cdef inline void fold_short_run(real* to, const element* run, int64_t n, int64_t parts) noexcept nogil:
    """to[:parts] = the sum of a run of n numbers, ascending; to[:2] is written."""
    cdef int64_t i
    to[0] = to[1] = 0
    if parts == 1:
        for i in range(n):
            to[0] += widened(run + i, to)
    else:
        for i in range(0, n, 2):
            to[0] += widened(run + i, to)
            to[1] += widened(run + i + 1, to)


cdef inline void fold_few_rows(real* to, const element* run, int64_t n, int64_t down, int64_t rows,
                               int64_t parts) noexcept nogil:
    """to[:parts] = the sum of a run of n < LONG numbers in each of `rows` dense rows; to[:2] is written."""
    cdef real[LONG] sums
    sum_dense_rows(<real*>sums, run, down, rows, n)
    fold_short_run(to, <const real*>sums, n, parts)


cdef inline real sum_corner(const element* run, int64_t n, int64_t down, int64_t rows,
                            const real* summed) noexcept nogil:
    """The sum of n numbers of each of `rows` rows."""
    cdef real total = 0
    cdef real column
    cdef int64_t i, r
    for i in range(n):
        column = widened(run + i, summed)
        for r in range(1, rows):
            column += widened(run + i + r * down, summed)
        total += column
    return total


cdef inline void store_corner(element* to, const element* run, int64_t n, int64_t down, int64_t rows, int64_t parts,
                              const real* summed) noexcept nogil:
    """The sum of a short run of n elements in each of `rows` rows."""
    cdef real[2] sum
    if n * parts >= FEW:
        fold_few_rows(<real*>sum, run, n * parts, down, rows, parts)
        store_number(to, <const real*>sum, parts)
    else:
        store(to, sum_corner(run, n, down, rows, summed))
        if parts == 2:
            # FEW numbers are more than one complex element.
            store(to + 1, sum_corner(run + 1, n, down, rows, summed))
