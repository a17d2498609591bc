# cython: cdivision=True
"""The check of indices, in an argmax mask or else: an index is taken if it lies in its window.

A window's distance to an index is index - first as an unsigned number, `first` being the window's first position in the
image. Row by row: the least of the distances from the first positions of all its rows is less than its columns. In a
list of the windows of a plane, and where a window has many rows: the distance is at most that of its last position, and
its remainder by the width of the plane at most that of its last column. What tells a miss is the sign of a difference
of numbers below 2**31, or of the distance itself. Positions of a plane fit int32, which the core has checked.
"""
from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t

from aclnn_bw._core.arithmetic cimport ceil_div, least, most, quotient
from aclnn_bw._core.max_pool2d cimport RECIPROCAL_BITS, MaxPool2d, MaxPool2dWindows, PoolAxis
from aclnn_bw._kernels.max_pool2d_rows cimport Unit
from aclnn_bw._kernels.simd cimport (
    HALF_BYTES, MOST_LANES, VECTOR_BYTES, lanes_of_4, lanes_of_4_16, lanes_of_4_half, simd_least_4, simd_load,
    simd_store, simd_zero,
)

# Masks may lie at any address.
cdef extern from *:
    """
    typedef int32_t __attribute__((aligned(1), may_alias)) aclnn_bw_index;
    """
    ctypedef int32_t index_at "aclnn_bw_index"

cdef enum:
    MANY_ROWS = 7       # of a window: the division takes 0.75 to 1 of the time of a look at each, for whole vectors

ctypedef fused numbers:
    lanes_of_4
    lanes_of_4_half
    lanes_of_4_16


cdef inline int64_t first_window(const PoolAxis* axis, int64_t position) noexcept nogil:
    """The first window that holds the position."""
    return ceil_div(most(position + axis.pad - axis.kernel + 1, 0), axis.stride)


cdef inline int64_t end_window(const PoolAxis* axis, int64_t position) noexcept nogil:
    """One more than the last window that holds the position."""
    return least(quotient(position + axis.pad, axis.stride) + 1, axis.out)


cdef inline bint any_sign(const uint32_t* lane, int64_t lanes) noexcept nogil:
    """Whether some lane has its upper bit."""
    cdef uint32_t any = 0
    cdef int64_t i
    for i in range(lanes):
        any |= lane[i]
    return any >> 31


cdef inline void fill_windows(const MaxPool2d* pool, const MaxPool2dWindows* windows, char* scratch,
                              bint with_lefts) noexcept nogil:
    """For each window of a row its first column in the image, and how many it has there; for those of a plane, in lists
    one behind the other, the first position, the distance of the last from it and the last column, for as many planes
    as are listed; last, `with_lefts`, how many columns lie to the left of the image."""
    cdef uint32_t* columns = <uint32_t*>(scratch + windows.at_columns)
    cdef uint32_t* lengths = columns + pool.w.out
    cdef uint32_t* firsts = lengths + pool.w.out
    cdef int64_t size = windows.listed * pool.h.out * pool.w.out
    cdef int64_t oh, i, left, top, bottom
    for i in range(pool.w.out):
        left = i * pool.w.stride - pool.w.pad
        columns[i] = <uint32_t>most(left, 0)
        lengths[i] = <uint32_t>(least(left + pool.w.kernel, pool.w.size) - most(left, 0))
    for oh in range(windows.listed * pool.h.out):
        top = oh % pool.h.out * pool.h.stride - pool.h.pad
        bottom = least(top + pool.h.kernel, pool.h.size)
        top = most(top, 0)
        for i in range(pool.w.out):
            firsts[i] = <uint32_t>(top * pool.w.size) + columns[i]
            firsts[size + i] = <uint32_t>((bottom - top - 1) * pool.w.size) + lengths[i] - 1
            firsts[2 * size + i] = lengths[i] - 1
            if with_lefts:
                firsts[3 * size + i] = <uint32_t>most(pool.w.pad - i * pool.w.stride, 0)
        firsts += pool.w.out


# --- listed windows -------------------------------------------------------------------------------------------------

cdef inline bint listed_missed(uint32_t* at, const char* mask, const uint32_t* lists, int64_t size, int64_t n,
                               uint32_t width, uint32_t reciprocal, uint32_t apart, const numbers* kind) noexcept nogil:
    """Whether some of n indices, no fewer than there are lanes, misses the windows from the first of the lists on; the
    last vector overlaps the one before. at[i] = the index + apart * its kernel column, unless `at` is NULL.

    `reciprocal` is 2**24 / width, rounded up, and the quotient of a distance in a window exact, for kernel rows *
    width**2 is less than 2**24 and kernel rows less than 2**8."""
    cdef int64_t lanes = <int64_t>sizeof(numbers) // 4
    cdef int64_t i = 0
    cdef numbers index, distance, column, last, last_column, missed
    cdef uint32_t[MOST_LANES] lane
    simd_zero(&missed)
    while i < n:
        i = least(i, n - lanes)
        simd_load(&index, mask + 4 * i)
        simd_load(&distance, lists + i)
        simd_load(&last, lists + size + i)
        simd_load(&last_column, lists + 2 * size + i)
        distance = index - distance
        column = distance - (distance * reciprocal >> <uint32_t>RECIPROCAL_BITS) * width
        missed |= distance | (last - distance) | (last_column - column)
        if at != NULL:
            simd_load(&last, lists + 3 * size + i)
            index += (column + last) * apart
            simd_store(at + i, &index)
        i += lanes
    simd_store(<uint32_t*>lane, &missed)
    return any_sign(<const uint32_t*>lane, lanes)


cdef inline bint any_missed(uint32_t* at, int64_t at_pitch, const char* mask, int64_t mask_pitch, int64_t count,
                            const uint32_t* lists, int64_t size, int64_t n, uint32_t width, uint32_t reciprocal,
                            uint32_t apart) noexcept nogil:
    """The same of n windows, few or many, in `count` planes."""
    cdef bint any = False
    cdef int64_t i
    cdef uint32_t index, distance
    while count > 0:
        if n >= VECTOR_BYTES // 4:
            any |= listed_missed(at, mask, lists, size, n, width, reciprocal, apart, <lanes_of_4*>NULL)
        elif n >= HALF_BYTES // 4:
            any |= listed_missed(at, mask, lists, size, n, width, reciprocal, apart, <lanes_of_4_half*>NULL)
        else:
            for i in range(n):
                index = <uint32_t>(<const index_at*>mask)[i]
                distance = index - lists[i]
                any |= distance > lists[size + i] or distance % width > lists[2 * size + i]
                if at != NULL:
                    at[i] = index + (distance % width + lists[3 * size + i]) * apart
        mask += 4 * mask_pitch
        if at != NULL:
            at += at_pitch
        count -= 1
    return any


# --- row by row -----------------------------------------------------------------------------------------------------

cdef inline void find_nearest(numbers* distance, int64_t rows, uint32_t width) noexcept nogil:
    """From distances of a window's first position, the least ones of the first positions of all its rows."""
    cdef numbers further = distance[0]
    cdef int64_t row = 1
    while row < rows:
        further = further - width
        simd_least_4(distance, distance, &further)
        row += 1


cdef inline bint rows_missed(const char* mask, const uint32_t* first, const uint32_t* length, int64_t n, int64_t lines,
                             uint32_t start, uint32_t step, int64_t rows, uint32_t width, uint32_t reciprocal,
                             const numbers* kind) noexcept nogil:
    """Whether some index misses its window: n windows, no fewer than there are lanes, in each of `lines` rows of
    windows. Windows of the first hold `rows` rows from position `start` on, and each further one as many, `step`
    later. `reciprocal`: that of listed_missed, or 0: then each row is looked at."""
    cdef int64_t lanes = <int64_t>sizeof(numbers) // 4
    cdef uint32_t above = <uint32_t>(rows - 1) * width
    cdef int64_t i
    cdef numbers distance, at_start, columns, missed
    cdef uint32_t[MOST_LANES] lane
    simd_zero(&missed)
    while lines > 0:
        i = 0
        while i < n:
            i = least(i, n - lanes)
            simd_load(&distance, mask + 4 * i)
            simd_load(&at_start, first + i)
            simd_load(&columns, length + i)
            distance = distance - at_start - start
            if reciprocal > 0:
                missed |= distance | (columns + (above - 1) - distance)
                distance -= (distance * reciprocal >> <uint32_t>RECIPROCAL_BITS) * width
            else:
                find_nearest(&distance, rows, width)
            missed |= distance | (columns - 1 - distance)
            i += lanes
        mask += 4 * n
        start += step
        lines -= 1
    simd_store(<uint32_t*>lane, &missed)
    return any_sign(<const uint32_t*>lane, lanes)


cdef inline bint lines_missed(const char* mask, const uint32_t* first, const uint32_t* length, int64_t n, int64_t lines,
                              uint32_t start, uint32_t step, int64_t rows, uint32_t width,
                              uint32_t reciprocal) noexcept nogil:
    """The same of any n; fewer than 4 may have missed. Windows of two and three rows are unrolled; those of many rows
    are divided by the width."""
    if n >= VECTOR_BYTES // 4:
        if rows == 3:
            return rows_missed(mask, first, length, n, lines, start, step, 3, width, 0, <lanes_of_4*>NULL)
        if rows == 2:
            return rows_missed(mask, first, length, n, lines, start, step, 2, width, 0, <lanes_of_4*>NULL)
        if rows >= MANY_ROWS and reciprocal > 0:
            return rows_missed(mask, first, length, n, lines, start, step, rows, width, reciprocal, <lanes_of_4*>NULL)
        return rows_missed(mask, first, length, n, lines, start, step, rows, width, 0, <lanes_of_4*>NULL)
    if n >= HALF_BYTES // 4 and VECTOR_BYTES == 64:
        return rows_missed(mask, first, length, n, lines, start, step, rows, width, 0, <lanes_of_4_half*>NULL)
    return n < 4 or rows_missed(mask, first, length, n, lines, start, step, rows, width, 0, <lanes_of_4_16*>NULL)


cdef inline int64_t first_missed(const char* mask, const uint32_t* first, const uint32_t* length, int64_t n,
                                 int64_t top, int64_t bottom, int64_t width, uint32_t reciprocal) noexcept nogil:
    """The first of n windows in a row that hold the rows [top, bottom) whose index misses, or -1."""
    cdef int64_t i, row
    cdef uint32_t distance
    cdef bint missed
    if not lines_missed(mask, first, length, n, 1, <uint32_t>(top * width), 0, bottom - top, <uint32_t>width,
                        reciprocal):
        return -1
    for i in range(n):
        distance = <uint32_t>(<const index_at*>mask)[i] - <uint32_t>(top * width) - first[i]
        missed = True
        for row in range(bottom - top):
            missed = missed and distance - <uint32_t>(row * width) >= length[i]
        if missed:
            return i
    return -1


cdef inline bint misses(const MaxPool2d* pool, const MaxPool2dWindows* windows, const char* mask, const char* scratch,
                        int64_t first, int64_t n) noexcept nogil:
    """Whether some of n indices lies outside its window; the windows are those from `first` of the listed ones."""
    cdef const uint32_t* lists = <const uint32_t*>(scratch + windows.at_columns) + 2 * pool.w.out
    return any_missed(NULL, 0, mask, 0, 1, lists + first, windows.listed * pool.h.out * pool.w.out, n,
                      <uint32_t>pool.w.size, windows.reciprocal, 0)


cdef inline int64_t find_missed(const MaxPool2d* pool, const MaxPool2dWindows* windows, const char* mask__hw,
                                const char* scratch, int64_t oh, int64_t end) noexcept nogil:
    """The first window from row `oh` to row `end` whose index lies outside it, counted in the plane; or -1."""
    cdef const uint32_t* columns = <const uint32_t*>(scratch + windows.at_columns)
    cdef const PoolAxis* h = &pool.h
    cdef const PoolAxis* w = &pool.w
    cdef uint32_t width = <uint32_t>w.size
    cdef int64_t bad, top, lines
    cdef bint tried = False
    if windows.listed > 0 and not misses(pool, windows, mask__hw + 4 * oh * w.out, scratch, oh * w.out,
                                         (end - oh) * w.out):
        return -1
    while oh < end:
        top = oh * h.stride - h.pad
        if top >= 0 and not tried:
            # Windows that lie inside along h are looked at together.
            lines = least(end, quotient(h.size - h.kernel + h.pad, h.stride) + 1) - oh
            if lines > 1:
                tried = lines_missed(mask__hw + 4 * oh * w.out, columns, columns + w.out, w.out, lines,
                                     <uint32_t>(top * w.size), <uint32_t>(h.stride * w.size), h.kernel, width,
                                     windows.reciprocal)
                if not tried:
                    oh += lines
                    continue
        bad = first_missed(mask__hw + 4 * oh * w.out, columns, columns + w.out, w.out, most(top, 0),
                           least(top + h.kernel, h.size), w.size, windows.reciprocal)
        if bad >= 0:
            return oh * w.out + bad
        oh += 1
    return -1


# --- a unit's indices, of any integer type and strides ---------------------------------------------------------------

cdef inline int64_t index_of(const MaxPool2d* pool, const char* at, int64_t oh, int64_t ow) noexcept nogil:
    """That of a window, `at` being where the plane's lie."""
    at += pool.index_item * (oh * pool.index_strides[2] + ow * pool.index_strides[3])
    return (<const int64_t*>at)[0] if pool.index_item == 8 else (<const index_at*>at)[0]


cdef inline bint lies_inside(const MaxPool2d* pool, int64_t oh, int64_t ow, int64_t index) noexcept nogil:
    """Whether an index lies in the window."""
    cdef int64_t row = index // pool.w.size
    cdef int64_t column = index - row * pool.w.size
    row += pool.h.pad - oh * pool.h.stride
    column += pool.w.pad - ow * pool.w.stride
    return (0 <= index < pool.h.size * pool.w.size and 0 <= row < pool.h.kernel and 0 <= column < pool.w.kernel)


cdef inline int32_t narrow_index(int64_t index) noexcept nogil:
    """What int32 does not hold lies in no window, and nor does -1."""
    return <int32_t>index if index >> 31 == 0 else -1


cdef inline void narrow_indices(int32_t* to, const int64_t* source, int64_t n) noexcept nogil:
    """to[:n] = source[:n], narrowed. Nearly always all of them fit."""
    cdef uint64_t any = 0
    cdef int64_t i
    for i in range(n):
        to[i] = <int32_t>source[i]
        any |= <uint64_t>source[i]
    if any >> 31 != 0:
        for i in range(n):
            to[i] = narrow_index(source[i])


cdef inline const char* packed_indices(const MaxPool2d* pool, const char* at, int64_t lanes, int64_t oh, int64_t end,
                                       char* scratch) noexcept nogil:
    """Copy rows [oh, end) of windows of the planes from `at` on: int32, row behind row; returns where the row of window
    0 would be."""
    cdef int64_t item = pool.index_item
    cdef int64_t along = item * pool.index_strides[3]
    cdef int64_t n = pool.w.out
    cdef int32_t* first = <int32_t*>(scratch + pool.at_indices)
    cdef int64_t down = pool.index_strides[2]
    cdef int64_t rows = end - oh
    cdef int64_t lane, row, i
    cdef int32_t* to
    cdef const char* source
    if along == item and down == n:
        # Rows that lie end to end are one, and so are planes.
        n *= rows
        rows = 1
        if pool.index_strides[1] == n and pool.index_pitch == n:
            n *= lanes
            lanes = 1
    for lane in range(lanes):
        for row in range(rows):
            to = first + lane * pool.index_pitch + row * n
            source = at + item * (lane * pool.index_strides[1] + (oh + row) * down)
            if item == 8 and along == 8:
                narrow_indices(to, <const int64_t*>source, n)
            elif item == 8:
                for i in range(n):
                    to[i] = narrow_index((<const int64_t*>(source + i * along))[0])
            else:
                for i in range(n):
                    to[i] = (<const index_at*>(source + i * along))[0]
    return <const char*>(first - oh * pool.w.out)


cdef inline int64_t first_place(const MaxPool2d* pool, const Unit* u, int64_t units) noexcept nogil:
    """The place of the first bad index of a range, one of whose units has met it. Earlier channels of it may have
    theirs in a later band: `units` more are the range's. -1 if there is none."""
    cdef int64_t bottom = least(u.ih + least(units + 1, pool.bands) * pool.band, pool.h.size)
    cdef int64_t oh_end = end_window(&pool.h, bottom - 1)
    cdef int64_t lane, oh, ow
    cdef const char* at
    for lane in range(u.lanes):
        at = u.mask + pool.index_item * lane * pool.index_strides[1]
        for oh in range(first_window(&pool.h, u.ih), oh_end):
            for ow in range(pool.w.out):
                if not lies_inside(pool, oh, ow, index_of(pool, at, oh, ow)):
                    return ((u.channel + lane) * pool.h.out + oh) * pool.w.out + ow
    return -1
