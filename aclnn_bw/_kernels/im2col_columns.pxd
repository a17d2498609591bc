# cython: cdivision=True
"""Columns of Im2colBackward by themselves: fetched ahead, turned to rows, packed; and rows written past the caches.

Bounds. `pack_columns` packs the rows of windows in [0, Lh) that a band needs. No prefetched address is read.
"""
from libc.stdint cimport int64_t, uintptr_t
from libc.string cimport memcpy

from aclnn_bw._core.arithmetic cimport ceil_div, least, most, quotient
from aclnn_bw._core.im2col cimport Im2colPlan
from aclnn_bw._core.types cimport ALIGNMENT
from aclnn_bw._kernels.simd cimport (
    LINE, VECTOR_BYTES, cell_2, cell_4, cell_8, element, prefetch_to_level_2, simd_load, simd_stream, vector,
)
from aclnn_bw._kernels.transpose cimport sum_transposed

# What the next unit reads: `segments` stretches of memory. It is prefetched row by row while this unit is worked on:
# columns are far apart, more than the hardware follows.
cdef struct Ahead:
    uintptr_t at
    int64_t left            # bytes of this segment
    int64_t segments        # with this one
    int64_t size            # bytes of a segment
    int64_t step            # bytes from a segment to the next
    int64_t share           # bytes to prefetch with each row


cdef inline void prefetch_bytes(uintptr_t source, int64_t size) noexcept nogil:
    """Into the L2 cache: the L1 cache is full of what this unit reads. No address need be valid."""
    cdef uintptr_t end = source + <uintptr_t>size
    # Where vectors are short the loop's own instructions show.
    while VECTOR_BYTES == 16 and source + 3 * LINE < end:
        prefetch_to_level_2(<const void*>source)
        prefetch_to_level_2(<const void*>(source + LINE))
        prefetch_to_level_2(<const void*>(source + 2 * LINE))
        prefetch_to_level_2(<const void*>(source + 3 * LINE))
        source += 4 * LINE
    while source < end:
        prefetch_to_level_2(<const void*>source)
        source += LINE


cdef inline void look_ahead(Ahead* ahead, int64_t rows) noexcept nogil:
    cdef int64_t share = ahead.share * rows
    cdef int64_t m
    while ahead.segments > 0 and share > 0:
        m = least(share, ahead.left)
        prefetch_bytes(ahead.at, m)
        share -= m
        ahead.at += <uintptr_t>m
        ahead.left -= m
        if ahead.left <= 0:
            ahead.at += <uintptr_t>(ahead.step - ahead.size)
            ahead.left = ahead.size
            ahead.segments -= 1


cdef inline Ahead plan_ahead(const Im2colPlan* plan, const element* source, int64_t ih, int64_t members,
                             int64_t rows) noexcept nogil:
    """The windows of the rows [ih, ih + plan.band) of `members` planes from `source` on, shared out to `rows` rows."""
    cdef Ahead ahead
    cdef int64_t first = 0
    cdef int64_t last = plan.h.windows
    if plan.bands > 1:
        # Of the middle of the kernel: the other kernel rows are shifted by less than they are long, mostly.
        first = ih + plan.h.pad - (plan.h.taps - 1) * plan.h.dilation // 2
        last = least(ceil_div(first + plan.band, plan.h.stride), last)
        first = quotient(most(first, 0), plan.h.stride)
    ahead.segments = plan.kernel_rows * members
    ahead.size = most(last - first, 0) * plan.w.windows * sizeof(element)
    ahead.step = plan.grad_output_strides[1] * sizeof(element)
    if ahead.size == ahead.step:
        ahead.size *= ahead.segments
        ahead.segments = 1
    ahead.at = <uintptr_t>source + <uintptr_t>(first * plan.w.windows * sizeof(element))
    ahead.left = ahead.size
    ahead.share = quotient(ahead.size * ahead.segments, rows) + 64
    if ahead.size == 0:
        ahead.segments = 0
    return ahead


cdef inline void turn_rows(element* to, int64_t pitch, const element* source, int64_t column, int64_t n,
                           int64_t columns, bint summed) noexcept nogil:
    """to[i*pitch + j] = source[j*column + i] for i < n, j < columns; + 0.0 if they are not sums already."""
    if element is double:
        sum_transposed(<cell_8*>to, pitch, <const cell_8*>source, column, columns, n, not summed)
    elif element is float:
        sum_transposed(<cell_4*>to, pitch, <const cell_4*>source, column, columns, n, not summed)
    else:
        sum_transposed(<cell_2*>to, pitch, <const cell_2*>source, column, columns, n, not summed)


cdef inline void gather_cells(element* to, const element* source, int64_t along, int64_t n) noexcept nogil:
    """to[:n] = source[: n*along : along]."""
    cdef int64_t i
    for i in range(n):
        to[i] = source[i * along]


cdef inline const element* pack_columns(const Im2colPlan* plan, const element* source, char* scratch, int64_t ih,
                                        int64_t end, int64_t members) noexcept nogil:
    """Make the columns dense that the rows [ih, end) of `members` planes need; returns where the windows' first row
    would be. A -0.0 may become +0.0, which changes no sum."""
    cdef element* to = <element*>(scratch + ALIGNMENT)
    cdef int64_t across = plan.grad_output_strides[1]
    cdef int64_t along = plan.grad_output_strides[2]
    cdef int64_t columns = (members - 1) * plan.kernel_rows + (plan.h.taps - 1) * plan.kernel_width + plan.w.taps
    cdef int64_t top = ceil_div(ih + plan.h.pad - (plan.h.taps - 1) * plan.h.dilation, plan.h.stride)
    cdef int64_t bottom = least(quotient(end - 1 + plan.h.pad, plan.h.stride) + 1, plan.h.windows)
    cdef int64_t n = (bottom - top) * plan.w.windows
    cdef int64_t begin = top * plan.w.windows
    cdef int64_t line = ALIGNMENT // sizeof(element)
    cdef int64_t i, k, m
    cdef Ahead ahead
    source += begin * along
    if n > 0 and across == 1:
        ahead.at = <uintptr_t>source + <uintptr_t>(2 * line * along * sizeof(element))
        ahead.segments = n - 2 * line
        # With the line that the last element may lie in; spread evenly over the calls below.
        ahead.left = ahead.size = columns * sizeof(element) + ALIGNMENT - sizeof(element)
        ahead.step = along * sizeof(element)
        ahead.share = quotient(line * ahead.size, most(quotient(columns, line), 1)) + ALIGNMENT
        i = 0
        while i < n:
            if i + line > n:
                i = most(n - line, 0)
            k = 0
            while k < columns:
                m = line if columns - k >= 2 * line else columns - k
                look_ahead(&ahead, 1)
                turn_rows(to + k * plan.column + i, plan.column, source + i * along + k, along, m,
                          least(line, n - i), True)
                k += m
            i += line
    else:
        for k in range(columns):
            gather_cells(to + k * plan.column, source + k * across, along, n)
    return to - begin


cdef inline void stream(char* to, const char* source, int64_t size) noexcept nogil:
    """to[:size] = source[:size], whole cache lines past the caches: they are not read before they are written."""
    cdef int64_t i = least(<int64_t>(-<uintptr_t>to % LINE), size)
    cdef int64_t k
    cdef vector x
    memcpy(to, source, <size_t>i)
    while i + LINE <= size:
        k = i
        i += LINE
        while k < i:
            simd_load(&x, source + k)
            simd_stream(to + k, &x)
            k += VECTOR_BYTES
    memcpy(to + i, source + i, <size_t>(size - i))
