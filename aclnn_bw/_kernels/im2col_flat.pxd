# cython: cdivision=True
"""Small planes of Im2colBackward with as many windows as positions along w: all positions are like one row, whose terms
lie at a fixed distance each. Of each term, a table says which positions have it.

Bounds. `find_flat` refuses planes some of whose vectors would leave the plane's columns, where loads cannot be masked.
A vector that would leave the row overlaps the one before.
"""
from libc.stdint cimport int64_t, uintptr_t
from libc.string cimport memset

from aclnn_bw._core.arithmetic cimport least, most
from aclnn_bw._core.im2col cimport Im2colPlan
from aclnn_bw._kernels.simd cimport (
    LINE, VECTOR_BYTES, add, bfloat, element, half, lanes_at, load_lanes, reads_all, simd_and, simd_load,
    simd_narrow_bfloats, simd_store, simd_widen_bfloats, store, sum_bytes,
    vec, vector, zero,
)

cdef enum:
    FLAT_BYTES = 16384
    FLAT_TERMS = 64

cdef struct Flat:
    int64_t terms       # 0: not so
    int64_t pitch       # bytes between the masks of two terms: whole cache lines
    char* ones          # masks as large as the numbers, in `room`
    int64_t[FLAT_TERMS] offsets
    char[FLAT_BYTES + LINE] room


cdef inline int64_t flat_lanes(const element* numbers) noexcept nogil:
    """Numbers that are made at once at least; bfloat16 in two vectors, those at even places and those at odd ones."""
    return VECTOR_BYTES // <int64_t>(8 if element is double else 2 if element is bfloat else 4)


cdef inline bint flat_reads_all(const element* numbers) noexcept nogil:
    return element is bfloat or reads_all(numbers)


cdef inline bint find_flat(const Im2colPlan* plan, Flat* f, const element* numbers) noexcept nogil:
    """Whether it is so, and fits the tables."""
    cdef int64_t item = sizeof(element)
    cdef int64_t width = plan.w.windows
    cdef int64_t size = plan.h.size * width
    cdef int64_t length = plan.h.windows * width
    cdef int64_t lanes = VECTOR_BYTES // sum_bytes(numbers)
    cdef int64_t columns = (plan.h.taps - 1) * plan.kernel_width + plan.w.taps
    cdef int64_t a, t, k, row, down, right, offset, low, high
    cdef char* ones
    f.terms = 0
    f.pitch = (size * item + LINE - 1) // LINE * LINE
    f.ones = <char*>((<uintptr_t><char*>f.room + LINE - 1) // LINE * LINE)
    if (plan.h.stride > 1 or plan.w.stride > 1 or width != plan.w.size
            or (flat_reads_all(numbers) and (plan.packs or plan.column != length))):
        return False
    if not reads_all(numbers) and lanes // (4 if VECTOR_BYTES == 64 else 2) < width <= lanes:
        # Rows that are most of a vector: gather_one_edge leaves few lanes empty, and holds its masks in registers.
        return False
    # Wider numbers gain nothing from larger tables: these take the L1 cache from the columns.
    if (plan.h.taps * plan.w.taps > FLAT_TERMS
            or plan.h.taps * plan.w.taps * f.pitch > (FLAT_BYTES if item == 2 else FLAT_BYTES // 2)):
        return False
    for a in range(plan.h.taps):
        for t in range(plan.w.taps):
            down = plan.h.pad - a * plan.h.dilation
            right = plan.phases[0].window - t * plan.window_step
            offset = (a * plan.kernel_width + t) * plan.column + down * width + right
            low = least(most(-right, 0), width)
            high = least(most(width - right, 0), width)
            k = a * plan.w.taps + t
            ones = f.ones + k * f.pitch
            if flat_reads_all(numbers) and (offset < 0 or offset + size > columns * length):
                return False
            f.offsets[k] = offset
            memset(ones, 0, <size_t>f.pitch)
            if low < high:
                for row in range(most(0, -down), least(plan.h.size, plan.h.windows - down)):
                    memset(ones + (row * width + low) * item, 255, <size_t>((high - low) * item))
    f.terms = plan.h.taps * plan.w.taps
    return True


cdef inline void sum_flat(element* to, const element* source, const Flat* f, const char* ones, int64_t last,
                          int vectors, vec* width) noexcept nogil:
    """Some vectors, of which the last begins at `last`."""
    cdef vec[16] sum    # from 8 on those of the odd places
    cdef vec[2] x
    cdef int64_t lanes = flat_lanes(to)
    cdef int64_t k, at
    cdef int j
    for j in range(vectors):
        sum[j] = zero(width)
        if element is bfloat:
            sum[8 + j] = zero(width)
    for k in range(f.terms):
        for j in range(vectors):
            at = j * lanes if j < vectors - 1 else last
            if element is bfloat:
                simd_load(&x[0], source + (f.offsets[k] + at))
                simd_load(&x[1], ones + at * <int64_t>sizeof(element))
                simd_and(&x[0], &x[0], &x[1])
                simd_widen_bfloats(&x[1], &x[0], &x[0])
                sum[j] = add(sum[j], x[1], to)
                sum[8 + j] = add(sum[8 + j], x[0], to)
            else:
                x[0] = load_lanes(source + (f.offsets[k] + at), lanes_at(ones + at * <int64_t>sizeof(element), to),
                                  width)
                sum[j] = add(sum[j], x[0], to)
        ones += f.pitch
    for j in range(vectors):
        at = j * lanes if j < vectors - 1 else last
        if element is bfloat:
            simd_narrow_bfloats(&x[0], &sum[j], &sum[8 + j])
            simd_store(to + at, &x[0])
        else:
            store(to + at, sum[j])


cdef inline void sum_flat_rows(element* to, int64_t n, const element* source, int64_t first,
                               const Flat* f) noexcept nogil:
    """to[:n], at least a vector, which are the positions of the plane from `first` on."""
    cdef int64_t lanes = flat_lanes(to)
    cdef int64_t item = sizeof(element)
    cdef int64_t i = 0
    cdef const char* ones = f.ones + first * item
    source += first
    # As many vectors as wait for their terms, and no pass for few that are left.
    if element is not bfloat:
        while n - i > 7 * lanes:
            sum_flat(to + i, source + i, f, ones + i * item, least(7 * lanes, n - i - lanes), 8, <vector*>NULL)
            i += 8 * lanes
        if n - i > 6 * lanes:
            sum_flat(to + i, source + i, f, ones + i * item, n - i - lanes, 7, <vector*>NULL)
            return
        if n - i > 5 * lanes:
            sum_flat(to + i, source + i, f, ones + i * item, n - i - lanes, 6, <vector*>NULL)
            return
        if n - i > 4 * lanes:
            sum_flat(to + i, source + i, f, ones + i * item, n - i - lanes, 5, <vector*>NULL)
            return
    while n - i > 3 * lanes:
        sum_flat(to + i, source + i, f, ones + i * item, least(3 * lanes, n - i - lanes), 4, <vector*>NULL)
        i += 4 * lanes
    if n - i > 2 * lanes:
        sum_flat(to + i, source + i, f, ones + i * item, n - i - lanes, 3, <vector*>NULL)
    elif n - i > lanes:
        sum_flat(to + i, source + i, f, ones + i * item, n - i - lanes, 2, <vector*>NULL)
    elif n > i:
        sum_flat(to + (n - lanes), source + (n - lanes), f, ones + (n - lanes) * item, 0, 1, <vector*>NULL)
