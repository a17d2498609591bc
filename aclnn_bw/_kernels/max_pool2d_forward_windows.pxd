# cython: cdivision=True
"""Of MaxPool2dWithMask: windows compared with rows of the image in the scratch, and how stride 2 gets there.

Bounds. `compare` reads whole vectors of windows of the rows [low, high) in the scratch, each from a kernel column's
offset on: none beyond the last window, but if the row is shorter than a vector or the kernel is not whole. So far do
the other arrays reach, and what is written. `split_pairs` reads source[:n].
"""
from libc.stdint cimport int64_t

from aclnn_bw._core.arithmetic cimport least, most
from aclnn_bw._core.max_pool2d cimport MOST_COLUMNS
from aclnn_bw._kernels.rows cimport widened
from aclnn_bw._kernels.simd cimport (
    HALF_BYTES, VECTOR_BYTES, bfloat, count, element, load_cells, load_in_turn, real, simd_cut, simd_store,
    simd_tidy_nans, store, take_greater, vec, vector, vector_16, vector_half,
)

# Rows of windows that are compared with rows of the image in the scratch: with all of their kernel rows and columns, or
# one row of windows with a part of them.
cdef struct Pass:
    int64_t windows             # of a row
    int64_t rows
    int64_t top                 # of the first row of windows: its first row in the image, if it has that one
    int64_t down                # from the top of a row of windows to that of the next
    int64_t kernel
    int64_t held                # the row of the image with which the scratch begins
    int64_t low                 # the windows are compared with rows [low, high) of the image
    int64_t high
    int64_t slot                # elements of a row in the scratch
    int64_t columns             # of the kernel
    int64_t[MOST_COLUMNS] offsets   # of a kernel column in a row of the scratch
    # The place of image row ih at the first of these columns, counted from `starts`: ih*pitch - top*across + place.
    int64_t pitch
    int64_t across
    int64_t place
    int64_t step                # from the place of the last of these columns to that of the next row's first
    int64_t to_down             # elements from a row of maxima to the next
    int64_t places_down         # bytes from a row of places to the next
    int64_t best_down           # elements from a row of what is stored if it does not end to the next
    bint begins                 # with the windows' first positions
    bint ends                   # with their last
    bint coded


cdef inline void compare(const Pass* p, int64_t columns, bint whole, element* to, char* places, const real* scratch,
                         real* best, real* labels, const real* starts, const real* firsts) noexcept nogil:
    """Whole vectors are written, of rows that are shorter too. Whether the kernel is whole, and that it has 2 or 3
    columns or any number (0), the C compiler knows."""
    cdef int64_t lanes = VECTOR_BYTES // <int64_t>sizeof(real)
    cdef int64_t n = p.windows
    cdef int64_t step = p.step
    cdef int64_t slot = p.slot
    cdef int64_t first = 0 if whole else p.offsets[0]
    cdef int64_t second = p.offsets[1]
    cdef int64_t third = p.offsets[2]
    cdef int64_t top = p.top
    cdef int64_t lines = p.rows
    cdef int64_t many = p.columns
    cdef int64_t i, k, ih, kernel_rows, rows, place
    cdef bint coded = p.coded
    cdef const real* begin
    cdef const real* row
    cdef vector maximum, where, here
    while lines > 0:
        ih = most(top, p.low)
        kernel_rows = least(top + p.kernel, p.high) - ih
        begin = scratch + (ih - p.held) * slot
        place = ih * p.pitch - top * p.across + p.place
        i = 0
        while True:
            row = begin + i
            rows = kernel_rows
            here = count(load_cells(starts + i, &here), place, scratch)
            if whole or p.begins:
                maximum = load_cells(row + first, &maximum)
                where = count(load_cells(firsts + i, &where), place, scratch)
            else:
                maximum = load_cells(best + i, &maximum)
                where = load_cells(labels + i, &where)
                take_greater(&maximum, &where, load_cells(row + first, &here), here, scratch)
            while True:
                if columns == 2 or columns == 3:
                    here = count(here, 1, scratch)
                    take_greater(&maximum, &where, load_cells(row + second, &here), here, scratch)
                if columns == 3:
                    here = count(here, 1, scratch)
                    take_greater(&maximum, &where, load_cells(row + third, &here), here, scratch)
                if columns == 0:
                    for k in range(1, many):
                        here = count(here, 1, scratch)
                        take_greater(&maximum, &where, load_cells(row + p.offsets[k], &here), here, scratch)
                rows -= 1
                if rows == 0:
                    break
                row += slot
                here = count(here, step, scratch)
                take_greater(&maximum, &where, load_cells(row + first, &here), here, scratch)
            if whole or p.ends:
                if element is bfloat:
                    simd_tidy_nans(&maximum)
                store(to + i, maximum)
                if coded:
                    simd_cut(places + 2 * i, &where, sizeof(real), 2)
                else:
                    simd_cut(places + 4 * i, &where, sizeof(real), 4)
            else:
                simd_store(best + i, &maximum)
                simd_store(labels + i, &where)
            i += lanes
            if i >= n:
                break
            if whole:
                # In parts it would wait for what was stored just before.
                i = least(i, n - lanes)
        top += p.down
        to += p.to_down
        places += p.places_down
        best += p.best_down
        labels += p.best_down
        lines -= 1


cdef inline void join_rows(const Pass* p, int64_t size, element* to, char* places, const real* best,
                           const real* labels) noexcept nogil:
    """Rows of windows, made of what they have in each row of the image, which has `size`; the places of a window count
    from the place of its first row on."""
    cdef int64_t lanes = VECTOR_BYTES // <int64_t>sizeof(real)
    cdef int64_t n = p.windows
    cdef int64_t top = p.top
    cdef int64_t lines = p.rows
    cdef int64_t i, ih, rows
    cdef const real* row
    cdef const real* label
    cdef vector maximum, where, here
    while lines > 0:
        ih = most(top, 0)
        i = 0
        while i < n:
            if n >= lanes:
                i = least(i, n - lanes)
            rows = least(top + p.kernel, size) - ih
            row = best + (ih - p.held) * p.best_down + i
            label = labels + (ih - p.held) * p.best_down + i
            maximum = load_cells(row, &maximum)
            where = load_cells(label, &where)
            while rows > 1:
                row += p.best_down
                label += p.best_down
                take_greater(&maximum, &where, load_cells(row, &here), load_cells(label, &here), best)
                rows -= 1
            where = count(where, -top * p.across, best)
            if element is bfloat:
                simd_tidy_nans(&maximum)
            store(to + i, maximum)
            if p.coded:
                simd_cut(places + 2 * i, &where, sizeof(real), 2)
            else:
                simd_cut(places + 4 * i, &where, sizeof(real), 4)
            i += lanes
        top += p.down
        to += p.to_down
        places += p.places_down
        lines -= 1


cdef inline void split_piece(real* even, real* odd, const element* source, vec* width) noexcept nogil:
    cdef vec x, y
    load_in_turn(source, &x, &y)
    simd_store(even, &x)
    simd_store(odd, &y)


cdef inline void split_pairs(real* even, real* odd, const element* source, int64_t n) noexcept nogil:
    """even[:(n + 1)//2], odd[:n//2] = source[:n:2], source[1:n:2]. The last vectors overlap those before."""
    cdef int64_t lanes = VECTOR_BYTES // <int64_t>sizeof(real)
    cdef int64_t some = HALF_BYTES // <int64_t>sizeof(real)
    cdef int64_t few = 16 // <int64_t>sizeof(real)
    cdef int64_t pairs = n >> 1
    cdef int64_t i = 0
    if pairs >= lanes:
        while i < pairs - lanes:
            split_piece(even + i, odd + i, source + 2 * i, <vector*>NULL)
            i += lanes
        i = pairs - lanes
        split_piece(even + i, odd + i, source + 2 * i, <vector*>NULL)
    elif some < lanes and pairs >= some:
        split_piece(even, odd, source, <vector_half*>NULL)
        i = pairs - some
        split_piece(even + i, odd + i, source + 2 * i, <vector_half*>NULL)
    elif few < some and pairs >= few:
        split_piece(even, odd, source, <vector_16*>NULL)
        i = pairs - few
        split_piece(even + i, odd + i, source + 2 * i, <vector_16*>NULL)
    else:
        for i in range(pairs):
            even[i] = widened(source + 2 * i, even)
            odd[i] = widened(source + 2 * i + 1, odd)
    if n & 1:
        even[pairs] = widened(source + n - 1, even)
