# cython: cdivision=True
"""Planes of some channels with the channels side by side: [position][lane] in the scratch, `width` lanes to a position.

Small planes leave vectors of a row mostly empty; of these, a vector holds one position of as many channels. Lanes
beyond the last channel hold what was there before. Nothing beyond the planes that are named is read or written.
"""
from libc.stdint cimport int64_t, uint8_t
from libc.string cimport memcpy

from aclnn_bw._core.arithmetic cimport least, most
from aclnn_bw._kernels.simd cimport VECTOR_BYTES, cell_2, cell_4, cell_8, element, vector
from aclnn_bw._kernels.transpose cimport (
    moved, splits_four, sum_transposed, transpose, turn_blocks, turn_columns,
)


cdef inline void turn_cells(moved* to, int64_t to_pitch, const moved* source, int64_t pitch, int64_t rows,
                            int64_t columns, const void* end) noexcept nogil:
    if rows >= <int64_t>(VECTOR_BYTES // sizeof(moved)) and columns >= <int64_t>(16 // sizeof(moved)):
        turn_blocks(to, to_pitch, source, pitch, rows, columns, False, end, <vector*>NULL)
    elif rows == 1:
        turn_columns(to, to_pitch, source, pitch, 1, columns, False)
    else:
        sum_transposed(to, to_pitch, source, pitch, rows, columns, False)


cdef inline void turn(void* to, int64_t to_pitch, const void* source, int64_t pitch, int64_t rows, int64_t columns,
                      int64_t size, const void* end) noexcept nogil:
    """to[j*to_pitch + i] = source[i*pitch + j], cells of 2, 4 or 8 bytes, with vectors as long as there are (1.06 to
    1.4 of the max pools' speed with `transpose`). `end`: of the memory to fetch the next rows from, or NULL."""
    if size == 8:
        turn_cells(<cell_8*>to, to_pitch, <const cell_8*>source, pitch, rows, columns, end)
    elif size == 4:
        turn_cells(<cell_4*>to, to_pitch, <const cell_4*>source, pitch, rows, columns, end)
    else:
        turn_cells(<cell_2*>to, to_pitch, <const cell_2*>source, pitch, rows, columns, end)


cdef inline void turn_any(void* to, int64_t to_pitch, const void* source, int64_t pitch, int64_t rows, int64_t columns,
                          int64_t size, const void* end) noexcept nogil:
    """`turn` for cells of any size, and of few columns."""
    cdef int64_t i, j
    if size == 1:
        for i in range(rows):
            for j in range(columns):
                (<uint8_t*>to)[j * to_pitch + i] = (<const uint8_t*>source)[i * pitch + j]
    elif size == 16 or columns <= 3 or (columns == pitch == 4 and splits_four(size)):
        transpose(to, to_pitch, source, pitch, rows, columns, size, end)
    else:
        turn(to, to_pitch, source, pitch, rows, columns, size, end)


cdef inline void load_planes(element* to, int64_t width, const element* source, const int64_t* strides, int64_t rows,
                             int64_t columns, int64_t channels, const void* end) noexcept nogil:
    """to[(h*columns + w)*width + c] = source[c, h, w]; strides are of n, c, h, w. The source ends at `end`."""
    cdef const element* row
    cdef int64_t i, c
    if strides[3] == 1 and strides[2] == columns:
        columns *= rows
        rows = 1
    while rows > 0:
        row = source
        if strides[3] == 1:
            turn(to, width, row, strides[1], channels, columns, sizeof(element), end)
        elif strides[1] == 1:
            for i in range(columns):
                memcpy(to + i * width, row, <size_t>channels * sizeof(element))
                row += strides[3]
        else:
            for i in range(columns):
                for c in range(channels):
                    to[i * width + c] = row[c * strides[1]]
                row += strides[3]
        to += columns * width
        source += strides[2]
        rows -= 1


cdef inline void load_windows(element* to, int64_t width, const element* source, const int64_t* strides, int64_t size,
                              int64_t columns, int64_t channels, int64_t out, int64_t kernel, int64_t stride,
                              int64_t pad, const void* end) noexcept nogil:
    """load_planes of the rows, of `size`, that lie in one of `out` windows; what `to` has of others stays."""
    cdef int64_t first = -pad
    cdef int64_t row
    # Fewer than a third of the rows between windows take no longer than to begin anew, but of 8 bytes.
    if kernel >= stride or (sizeof(element) < 8 and 3 * (stride - kernel) < stride):
        kernel += (out - 1) * stride
        out = 1
    while out > 0:
        row = most(first, 0)
        load_planes(to + row * columns * width, width, source + row * strides[2], strides,
                    least(first + kernel, size) - row, columns, channels, end)
        first += stride
        out -= 1


cdef inline void store_planes(element* to, const int64_t* strides, const element* source, int64_t width, int64_t rows,
                              int64_t columns, int64_t channels) noexcept nogil:
    """to[c, h, w] = source[(h*columns + w)*width + c]"""
    cdef int64_t c, i
    if strides[3] == 1 and strides[2] == columns:
        columns *= rows
        rows = 1
    while rows > 0:
        if strides[3] == 1:
            turn(to, strides[1], source, width, columns, channels, sizeof(element), NULL)
        elif strides[1] == 1:
            for i in range(columns):
                memcpy(to + i * strides[3], source + i * width, <size_t>channels * sizeof(element))
        else:
            for i in range(columns):
                for c in range(channels):
                    to[c * strides[1] + i * strides[3]] = source[i * width + c]
        source += columns * width
        to += strides[2]
        rows -= 1
