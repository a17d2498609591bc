# cython: cdivision=True
"""Average pool: stride 1, down a block of columns with the running sums in registers.

The terms of a row of windows are summed across, ascending, and added to as many running sums, of which the oldest is
then complete: no sum touches memory. Terms come from gradOutput itself where loads of some lanes leave the others alone
(`reads_all`), else from rows of terms in the scratch. Of vectors of 64 bytes nearly every load at an odd place crosses
a cache line: there the terms beside the first are shuffled out of two vectors.

Bounds. Of gradOutput the lanes are read that are windows, in rows that exist. The last block of a row overlaps the one
before. A row of less than a block may be stored as a whole one, into rows that the same range makes later, where
gradInput is dense, and never beyond `limit`, the end of what the range makes, or of the lines of a strip.
"""
from libc.stdint cimport int64_t

from aclnn_bw._core.arithmetic cimport least, most
from aclnn_bw._kernels.avg_pool2d_terms cimport plus_zero_sum
from aclnn_bw._kernels.rows cimport touch_pages
from aclnn_bw._kernels.simd cimport (
    VECTOR_BYTES, add, element, find_lanes, lane_word, lanes, load, load_lanes, prefetch, prefetch_to_level_2,
    prefetch_to_write, scale, simd_load, simd_slide, store, store_first, sum_bytes, vec, vector, zero,
)

cdef enum:
    MOST_TAPS = 5
    SLIDES = VECTOR_BYTES == 64

# What all blocks of some rows have in common. Pitches are bytes.
cdef struct Walk:
    const char* source      # the first row's window 0, or what stands for it in a row of terms
    int64_t down
    int64_t row             # number of the first row: those outside [0, windows_down) are zeros
    int64_t rows            # of gradInput
    int64_t windows_down
    int64_t windows         # along w
    int64_t first           # the first window of column 0
    int64_t to_down         # elements
    int64_t ahead           # bytes from what is read to what the next plane reads, for the prefetcher; or 0
    double factor
    const void* limit


cdef inline vec slide(vec a, vec b, int k, const element* numbers) noexcept nogil:
    """The lanes from k on of a followed by b."""
    cdef vec x
    simd_slide(&x, &a, &b, k, sum_bytes(numbers))
    return x


cdef inline lanes window_lanes(const Walk* w, int64_t window, int64_t n, const element* numbers) noexcept nogil:
    """Of n lanes those that are windows, if the first is the window-th."""
    cdef int64_t begin = least(most(-window, 0), n)
    return find_lanes(lane_word(<int>begin, <int>most(least(w.windows - window, n), begin)), numbers)


cdef inline void find_edge(lanes* some, const Walk* w, int64_t window, int64_t single, int taps, int blocks,
                           const element* numbers) noexcept nogil:
    """Of a block whose first column has this window: for each vector that begins i windows on, its lanes in some[i]."""
    cdef int k, v
    if SLIDES:
        some[0] = window_lanes(w, window, single, numbers)
        some[single] = window_lanes(w, window + single, 4, numbers)
    else:
        for v in range(blocks):
            for k in range(taps):
                some[v * single + k] = window_lanes(w, window + v * single + k, single, numbers)


cdef inline vec window_term(const Walk* w, const char* source, int64_t i, const lanes* some, bint by_terms, bint edge,
                            const element* numbers, vec* width) noexcept nogil:
    """Of a vector of windows, from the i-th on."""
    cdef vec x
    cdef const element* p = <const element*>source + i
    if by_terms:
        simd_load(&x, source + i * sum_bytes(numbers))
        return x
    if edge:
        return scale(load_lanes(p, some[i], width), w.factor, numbers)
    return scale(load(p, width), w.factor, numbers)


cdef inline void walk_block(const Walk* w, element* to, int64_t column, int64_t n, int taps, int blocks, bint by_terms,
                            bint edge, vec* width) noexcept nogil:
    """`blocks` vectors of columns; kernels of taps x taps. Only a row of n columns, fewer than that, may not be stored
    whole. If `edge`, windows may be missing."""
    cdef int64_t single = <int64_t>sizeof(vec) // sum_bytes(to)
    cdef int64_t size = sum_bytes(to) if by_terms else <int64_t>sizeof(element)
    cdef int64_t wide = blocks * single
    cdef int64_t window = column + w.first
    cdef int64_t down = w.down
    cdef int64_t to_down = w.to_down
    cdef int64_t windows_down = w.windows_down
    cdef int64_t ahead = w.ahead
    cdef int64_t row = w.row
    cdef int64_t end = w.row + w.rows + taps - 1
    cdef int64_t first = w.row + taps - 1
    cdef int64_t far = w.rows * to_down
    cdef const char* source = w.source + window * size
    cdef lanes[2 * 16 + MOST_TAPS] some
    cdef vec[2 * MOST_TAPS] held
    cdef vec[3] low
    cdef vec[2] across
    cdef vec sum, next
    cdef int k, v
    if edge and not by_terms:
        find_edge(<lanes*>some, w, window, single, taps, blocks, to)
    for v in range(blocks):
        for k in range(taps - 1):
            held[v * MOST_TAPS + k] = zero(width)
    if w.limit != NULL and <const element*>w.limit - to < 2 * far:
        far = 0     # nothing follows
    elif w.limit != NULL and column == 0 and not by_terms and (VECTOR_BYTES == 64 or element is double):
        touch_pages(<char*>(to + far), far * <int64_t>sizeof(element))
    to += column
    while row < end:
        if 0 <= row < windows_down:
            # Two planes of doubles and their results can exceed the L1 cache: the next waits in L2.
            if not by_terms and element is double:
                prefetch_to_level_2(source + ahead)
            elif not by_terms:
                prefetch(source + ahead)
            if SLIDES:
                low[0] = window_term(w, source, 0, <const lanes*>some, by_terms, edge, to, width)
                low[1] = window_term(w, source, single, <const lanes*>some, by_terms, edge, to, width)
                across[0] = low[0]
                for k in range(1, taps):
                    across[0] = add(across[0], slide(low[0], low[1], k, to), to)
            else:
                for v in range(blocks):
                    across[v] = window_term(w, source, v * single, <const lanes*>some, by_terms, edge, to, width)
                    for k in range(1, taps):
                        across[v] = add(across[v], window_term(w, source, v * single + k, <const lanes*>some, by_terms,
                                                               edge, to, width), to)
        else:
            for v in range(blocks):
                across[v] = zero(width)
        source += down
        for v in range(blocks):
            sum = across[v] if by_terms else plus_zero_sum(across[v], to)
            for k in range(taps - 1):
                next = add(held[v * MOST_TAPS + k], across[v], to)
                held[v * MOST_TAPS + k] = sum
                sum = next
            low[v] = sum
        if row >= first:
            if n < wide and to + wide > <const element*>w.limit:
                for v in range(blocks):
                    if n - v * single >= single:
                        store(to + v * single, low[v])
                    elif n > v * single:
                        store_first(to + v * single, low[v], n - v * single)
            else:
                if not by_terms and (VECTOR_BYTES == 64 or element is double):
                    prefetch_to_write(to + far)
                for v in range(blocks):
                    store(to + v * single, low[v])
            to += to_down
        row += 1


cdef inline void walk_columns(const Walk* w, element* to, int64_t n, int taps, bint by_terms) noexcept nogil:
    """A row's columns in blocks: of two vectors, but what fits one."""
    cdef int64_t one = VECTOR_BYTES // sum_bytes(to)
    cdef int blocks = 1 if SLIDES else 2
    cdef int64_t wide = blocks * one
    cdef int64_t column = 0
    if n <= one:
        walk_block(w, to, 0, n, taps, 1, by_terms, True, <vector*>NULL)
        return
    while column < n:
        if blocks == 2 and n - column <= one:
            walk_block(w, to, n - one, n, taps, 1, by_terms, True, <vector*>NULL)
            return
        column = most(least(column, n - wide), 0)
        if by_terms or SLIDES or (column + w.first >= 0 and column + w.first + wide + taps - 1 <= w.windows):
            walk_block(w, to, column, n, taps, blocks, by_terms, SLIDES, <vector*>NULL)
        else:
            walk_block(w, to, column, n, taps, blocks, by_terms, True, <vector*>NULL)
        column += wide
