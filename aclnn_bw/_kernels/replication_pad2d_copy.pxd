# cython: cdivision=True
"""Rows that are copied: to[:n] = 0.0 + source[:n], for -0.0 becomes +0.0. 16-bit numbers are not converted.

Bounds. A vector lies in its row: the last one overlaps the one before, and rows shorter than a vector have shorter ones
or none. Prefetched addresses are not read.
"""
from libc.stdint cimport int64_t, uint16_t

from aclnn_bw._kernels.simd cimport (
    HALF_BYTES, LINE, VECTOR_BYTES, cell, element, half, bfloat, load_cells, plus_zero, prefetch, prefetch_to_write,
    simd_store, simd_stream, vec, vector, vector_16, vector_half,
)

cdef enum:
    AHEAD = 4096        # bytes: how far ahead streamed rows are fetched
    ENDS_AHEAD = 4      # rows: how far ahead their ends are
    STREAMED = 80       # numbers: room for a cache line at each end, and two numbers, whatever their type


cdef inline void copy_piece(cell* to, const cell* source, vec* width) noexcept nogil:
    """A vector of copy_cells."""
    cdef vec x = plus_zero(load_cells(source, width), source)
    simd_store(to, &x)


cdef inline void copy_ends(cell* to, int64_t down, const cell* source, int64_t source_down, int64_t n, int64_t rows,
                           vec* width) noexcept nogil:
    """Rows of one vector or two, the first and the last numbers of each."""
    cdef int64_t last = n - <int64_t>(sizeof(vec) // sizeof(cell))
    while rows > 0:
        copy_piece(to, source, width)
        copy_piece(to + last, source + last, width)
        to += down
        source += source_down
        rows -= 1


cdef inline void copy_cells(cell* to, int64_t down, const cell* source, int64_t source_down, int64_t n,
                            int64_t rows) noexcept nogil:
    """As copy_rows, of whole vectors, the last one overlapping the one before; of shorter ones in short rows: a dozen
    elements are common, and one by one they take longer than all else."""
    cdef int64_t lanes = VECTOR_BYTES // <int64_t>sizeof(cell)
    cdef int64_t size = n * <int64_t>sizeof(cell)
    cdef int64_t i
    if size > 2 * VECTOR_BYTES:
        while rows > 0:
            i = 0
            while i < n - lanes:
                copy_piece(to + i, source + i, <vector*>NULL)
                i += lanes
            copy_piece(to + n - lanes, source + n - lanes, <vector*>NULL)
            to += down
            source += source_down
            rows -= 1
    elif size >= VECTOR_BYTES:
        copy_ends(to, down, source, source_down, n, rows, <vector*>NULL)
    elif HALF_BYTES < VECTOR_BYTES and size >= HALF_BYTES:
        copy_ends(to, down, source, source_down, n, rows, <vector_half*>NULL)
    elif 16 < HALF_BYTES and size >= 16:
        copy_ends(to, down, source, source_down, n, rows, <vector_16*>NULL)
    else:
        while rows > 0:
            for i in range(n):
                if cell is uint16_t:
                    to[i] = 0 if source[i] == 0x8000 else source[i]
                else:
                    to[i] = source[i] + <cell>0
            to += down
            source += source_down
            rows -= 1


cdef inline void stream_cells(cell* to, int64_t down, const cell* source, int64_t source_down, int64_t n,
                              int64_t rows) noexcept nogil:
    """As stream_rows. The first and last two numbers come by ordinary stores, for they are written again; their lines
    are fetched ahead, because stores wait for each other."""
    cdef int64_t line = LINE // <int64_t>sizeof(cell)
    cdef int64_t lanes = VECTOR_BYTES // <int64_t>sizeof(cell)
    cdef int64_t i, last
    cdef vector x
    while rows > 0:
        i = <int64_t>((LINE - (<size_t>to & (LINE - 1))) & (LINE - 1)) // <int64_t>sizeof(cell)
        if i < 2:
            i += line
        prefetch_to_write(to + ENDS_AHEAD * down)
        copy_cells(to, 0, source, 0, i, 1)
        while i + line + 1 < n:
            prefetch(<const char*>(source + i) + AHEAD)
            last = i + line
            while i < last:
                x = plus_zero(load_cells(source + i, &x), source)
                simd_stream(to + i, &x)
                i += lanes
        copy_cells(to + i, 0, source + i, 0, n - i, 1)
        to += down
        source += source_down
        rows -= 1


cdef inline void copy_rows(element* to, int64_t down, const element* source, int64_t source_down, int64_t n,
                           int64_t rows, bint streamed) noexcept nogil:
    """Dense rows: to[:n] = 0.0 + source[:n], then the next ones, `down` and `source_down` numbers further on. If
    `streamed`, rows of STREAMED numbers and more are written past the caches: whole lines are not read before."""
    if element is half or element is bfloat:
        if streamed and n >= STREAMED:
            stream_cells(<uint16_t*>to, down, <const uint16_t*>source, source_down, n, rows)
        else:
            copy_cells(<uint16_t*>to, down, <const uint16_t*>source, source_down, n, rows)
    elif streamed and n >= STREAMED:
        stream_cells(to, down, source, source_down, n, rows)
    else:
        copy_cells(to, down, source, source_down, n, rows)
