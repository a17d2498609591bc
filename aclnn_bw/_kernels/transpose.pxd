# cython: cdivision=True
"""The transposition of cells in registers: to[j][i] = from[i][j].

`to` and `source` must not share memory. Nothing beyond the cells that are named is read or written: the last block
overlaps the one before. Compilers make one load and one store a cell of the plain loop. What binds are shuffles and
stores, and beyond the caches the latency of lines that lie apart, hence the prefetch.
"""
from libc.stdint cimport int64_t
from libc.string cimport memcpy

from aclnn_bw._core.arithmetic cimport least
from aclnn_bw._kernels.simd cimport (
    LINE, VECTOR_BYTES, cell_2, cell_4, cell_8, prefetch_to_level_2, simd_interleave_2,
    simd_interleave_4, simd_interleave_8, simd_load, simd_load_apart, simd_plus_zero_bits, simd_plus_zero_f32,
    simd_plus_zero_f64, simd_store,
    simd_zip_three_2, simd_zip_three_4, simd_zip_three_8, simd_unzip_three_2,
    simd_unzip_three_4, simd_zip_high_2, simd_zip_high_4, simd_zip_high_8, simd_zip_low_2, simd_zip_low_4,
    simd_zip_low_8, vector, vector_16, vector_32,
)

ctypedef fused moved:
    cell_2
    cell_4
    cell_8

ctypedef fused turned:
    vector_16
    vector_32
    vector

cdef enum:
    ROWS_AHEAD = 64     # rows of cells, into the L2 cache: of those 1 KiB apart the L1 cache holds 32


cdef inline turned sums(turned x, const moved* cells) noexcept nogil:
    """-0.0 becomes +0.0: of cells that are sums of one term."""
    if moved is cell_2:
        simd_plus_zero_bits(&x)
    elif moved is cell_4:
        simd_plus_zero_f32(&x)
    else:
        simd_plus_zero_f64(&x)
    return x


cdef inline moved sum_of(moved x, bint sum) noexcept nogil:
    """The same of one cell, if they are."""
    return 0 if sum and x == <moved>1 << (8 * sizeof(moved) - 1) else x


cdef inline turned load_block(const moved* source, int64_t below, bint sum, turned* width) noexcept nogil:
    """16 bytes of a row, and in a wide vector those of the rows `below` cells further on."""
    cdef turned x
    simd_load_apart(&x, source, below * <int64_t>sizeof(moved))
    return sums(x, source) if sum else x


cdef inline turned low(turned a, turned b, const moved* cells) noexcept nogil:
    """Cells of both in turn, of the lower half of each 16 bytes."""
    cdef turned c
    if moved is cell_2:
        simd_zip_low_2(&c, &a, &b)
    elif moved is cell_4:
        simd_zip_low_4(&c, &a, &b)
    else:
        simd_zip_low_8(&c, &a, &b)
    return c


cdef inline turned high(turned a, turned b, const moved* cells) noexcept nogil:
    """Cells of both in turn, of the upper half of each 16 bytes."""
    cdef turned c
    if moved is cell_2:
        simd_zip_high_2(&c, &a, &b)
    elif moved is cell_4:
        simd_zip_high_4(&c, &a, &b)
    else:
        simd_zip_high_8(&c, &a, &b)
    return c


cdef inline void turn_2(cell_2* to, int64_t to_pitch, const cell_2* source, int64_t pitch, bint sum,
                        turned* width) noexcept nogil:
    """16 bytes of columns of as many rows as a vector has cells: a wide one has half of the rows in each 16 bytes."""
    cdef turned[8] a
    cdef turned[8] b
    cdef turned x, y
    cdef int64_t i
    for i in range(0, 8, 2):
        x = load_block(source + i * pitch, 8 * pitch, sum, width)
        y = load_block(source + (i + 1) * pitch, 8 * pitch, sum, width)
        a[i] = low(x, y, <cell_2*>NULL)
        a[i + 1] = high(x, y, <cell_2*>NULL)
    for i in range(0, 8, 4):
        b[i] = low(a[i], a[i + 2], <cell_4*>NULL)
        b[i + 1] = high(a[i], a[i + 2], <cell_4*>NULL)
        b[i + 2] = low(a[i + 1], a[i + 3], <cell_4*>NULL)
        b[i + 3] = high(a[i + 1], a[i + 3], <cell_4*>NULL)
    for i in range(4):
        x = low(b[i], b[i + 4], <cell_8*>NULL)
        y = high(b[i], b[i + 4], <cell_8*>NULL)
        simd_store(to + 2 * i * to_pitch, &x)
        simd_store(to + (2 * i + 1) * to_pitch, &y)


cdef inline void turn_4(cell_4* to, int64_t to_pitch, const cell_4* source, int64_t pitch, bint sum,
                        turned* width) noexcept nogil:
    cdef turned a = load_block(source, 4 * pitch, sum, width)
    cdef turned b = load_block(source + pitch, 4 * pitch, sum, width)
    cdef turned c = load_block(source + 2 * pitch, 4 * pitch, sum, width)
    cdef turned d = load_block(source + 3 * pitch, 4 * pitch, sum, width)
    cdef turned x = low(a, b, <cell_4*>NULL)
    cdef turned y = low(c, d, <cell_4*>NULL)
    cdef turned z
    z = low(x, y, <cell_8*>NULL)
    simd_store(to, &z)
    z = high(x, y, <cell_8*>NULL)
    simd_store(to + to_pitch, &z)
    x = high(a, b, <cell_4*>NULL)
    y = high(c, d, <cell_4*>NULL)
    z = low(x, y, <cell_8*>NULL)
    simd_store(to + 2 * to_pitch, &z)
    z = high(x, y, <cell_8*>NULL)
    simd_store(to + 3 * to_pitch, &z)


cdef inline void turn_8(cell_8* to, int64_t to_pitch, const cell_8* source, int64_t pitch, bint sum,
                        turned* width) noexcept nogil:
    cdef turned a = load_block(source, 2 * pitch, sum, width)
    cdef turned b = load_block(source + pitch, 2 * pitch, sum, width)
    cdef turned x = low(a, b, <cell_8*>NULL)
    cdef turned y = high(a, b, <cell_8*>NULL)
    simd_store(to, &x)
    simd_store(to + to_pitch, &y)


cdef inline void turn_blocks(moved* to, int64_t to_pitch, const moved* source, int64_t pitch, int64_t rows,
                             int64_t columns, bint sum, bint ahead, turned* width) noexcept nogil:
    """At least a block of rows and columns: as many rows as a vector holds cells, 16 bytes of columns."""
    cdef int64_t tall = <int64_t>(sizeof(turned) // sizeof(moved))
    cdef int64_t wide = <int64_t>(16 // sizeof(moved))
    cdef int64_t a = 0
    cdef int64_t b, i, j, k
    while a < rows:
        i = least(a, rows - tall)
        for k in range(tall if ahead else 0):
            j = 0
            while j < columns:
                prefetch_to_level_2(source + (i + ROWS_AHEAD + k) * pitch + j)
                j += <int64_t>(LINE // sizeof(moved))
        b = 0
        while b < columns:
            j = least(b, columns - wide)
            if moved is cell_2:
                turn_2(to + j * to_pitch + i, to_pitch, source + i * pitch + j, pitch, sum, width)
            elif moved is cell_4:
                turn_4(to + j * to_pitch + i, to_pitch, source + i * pitch + j, pitch, sum, width)
            else:
                turn_8(to + j * to_pitch + i, to_pitch, source + i * pitch + j, pitch, sum, width)
            b += wide
        a += tall


cdef inline void split_three(moved* to, int64_t to_pitch, const moved* source, int64_t rows) noexcept nogil:
    """Three columns side by side, as colours are, of 16 or 32 bits: at least 48 bytes. For blocks of 16 bytes
    they are too few."""
    cdef int64_t tall = <int64_t>(16 // sizeof(moved))
    cdef int64_t a = 0
    cdef int64_t i
    cdef vector_16 x, y, z
    while a < rows:
        i = least(a, rows - tall)
        if moved is cell_2:
            simd_unzip_three_2(&x, &y, &z, source + 3 * i)
        else:
            simd_unzip_three_4(&x, &y, &z, source + 3 * i)
        simd_store(to + i, &x)
        simd_store(to + to_pitch + i, &y)
        simd_store(to + 2 * to_pitch + i, &z)
        a += tall


cdef inline void turn_columns(moved* to, int64_t to_pitch, const moved* source, int64_t pitch, int64_t rows,
                              int64_t columns, bint sum) noexcept nogil:
    cdef int64_t i, j
    for i in range(rows):
        for j in range(columns):
            to[j * to_pitch + i] = sum_of(source[i * pitch + j], sum)


cdef inline void transpose_cells(moved* to, int64_t to_pitch, const moved* source, int64_t pitch, int64_t rows,
                                 int64_t columns) noexcept nogil:
    cdef int64_t block = <int64_t>(16 // sizeof(moved))
    if moved is not cell_8 and columns == 3 and pitch == 3 and rows >= block:
        split_three(to, to_pitch, source, rows)
    elif columns == 3:
        turn_columns(to, to_pitch, source, pitch, rows, 3, False)
    elif rows < block or columns < block:
        turn_columns(to, to_pitch, source, pitch, rows, columns, False)
    elif VECTOR_BYTES == 32 and rows >= 2 * block:
        turn_blocks(to, to_pitch, source, pitch, rows, columns, False, True, <vector_32*>NULL)
    else:
        turn_blocks(to, to_pitch, source, pitch, rows, columns, False, True, <vector_16*>NULL)


cdef inline void transpose(void* to, int64_t to_pitch, const void* source, int64_t pitch, int64_t rows, int64_t columns,
                           int64_t size) noexcept nogil:
    """Cells of 2, 4, 8 or 16 bytes; pitches count cells."""
    cdef int64_t i, j
    if size == 2:
        transpose_cells(<cell_2*>to, to_pitch, <const cell_2*>source, pitch, rows, columns)
    elif size == 4:
        transpose_cells(<cell_4*>to, to_pitch, <const cell_4*>source, pitch, rows, columns)
    elif size == 8:
        transpose_cells(<cell_8*>to, to_pitch, <const cell_8*>source, pitch, rows, columns)
    else:
        for i in range(rows):
            for j in range(columns):
                memcpy(<char*>to + (j * to_pitch + i) * 16, <const char*>source + (i * pitch + j) * 16, 16)


cdef inline void in_turn(turned* low, turned* high, turned a, turned b, const moved* cells) noexcept nogil:
    if moved is cell_2:
        simd_interleave_2(low, high, &a, &b)
    elif moved is cell_4:
        simd_interleave_4(low, high, &a, &b)
    else:
        simd_interleave_8(low, high, &a, &b)


cdef inline turned load_sums(const moved* source, bint sum, turned* width) noexcept nogil:
    cdef turned x
    simd_load(&x, source)
    return sums(x, source) if sum else x


cdef inline void pair_blocks(moved* to, const moved* source, int64_t pitch, int64_t columns, bint sum,
                             turned* width) noexcept nogil:
    """Of two rows, at least a vector each: cells in turn."""
    cdef int64_t wide = <int64_t>(sizeof(turned) // sizeof(moved))
    cdef int64_t b = 0
    cdef int64_t j
    cdef turned[2] x
    while b < columns:
        j = least(b, columns - wide)
        in_turn(&x[0], &x[1], load_sums(source + j, sum, width), load_sums(source + pitch + j, sum, width), to)
        simd_store(to + 2 * j, &x[0])
        simd_store(to + 2 * j + wide, &x[1])
        b += wide


cdef inline void join_three(moved* to, const moved* source, int64_t pitch, int64_t columns, bint sum,
                            turned* width) noexcept nogil:
    """Of three rows, at least 16 bytes each: cells in turn."""
    cdef int64_t wide = <int64_t>(16 // sizeof(moved))
    cdef int64_t b = 0
    cdef int64_t j
    cdef turned[3] x
    while b < columns:
        j = least(b, columns - wide)
        x[0] = load_sums(source + j, sum, width)
        x[1] = load_sums(source + pitch + j, sum, width)
        x[2] = load_sums(source + 2 * pitch + j, sum, width)
        if moved is cell_2:
            simd_zip_three_2(to + 3 * j, &x[0], &x[1], &x[2])
        elif moved is cell_4:
            simd_zip_three_4(to + 3 * j, &x[0], &x[1], &x[2])
        else:
            simd_zip_three_8(to + 3 * j, &x[0], &x[1], &x[2])
        b += wide


cdef inline void turn_four(cell_2* to, int64_t to_pitch, const cell_2* source, int64_t pitch, int64_t columns, bint sum,
                           turned* width) noexcept nogil:
    """Of four rows of 16 bits, at least a vector each."""
    cdef int64_t wide = <int64_t>(sizeof(turned) // sizeof(cell_2))
    cdef int64_t b = 0
    cdef int64_t j, k
    cdef turned[4] x
    cdef turned[4] y
    cdef cell_8[32] block   # of the widest vectors: cells of four, 8 bytes each
    while b < columns:
        j = least(b, columns - wide)
        in_turn(&x[0], &x[1], load_sums(source + j, sum, width), load_sums(source + pitch + j, sum, width), source)
        in_turn(&x[2], &x[3], load_sums(source + 2 * pitch + j, sum, width),
                load_sums(source + 3 * pitch + j, sum, width), source)
        in_turn(&y[0], &y[1], x[0], x[2], <cell_4*>NULL)
        in_turn(&y[2], &y[3], x[1], x[3], <cell_4*>NULL)
        if to_pitch == 4:
            for k in range(4):
                simd_store(to + 4 * j + k * wide, &y[k])
        else:
            for k in range(4):
                simd_store(<cell_8*>block + k * wide // 4, &y[k])
            for k in range(wide):
                memcpy(to + (j + k) * to_pitch, &block[k], 8)
        b += wide


cdef inline void sum_transposed(moved* to, int64_t to_pitch, const moved* source, int64_t pitch, int64_t rows,
                                int64_t columns, bint sum) noexcept nogil:
    """The same of few rows, long ones, which the caller prefetches; each cell is a sum of one term if `sum`. Long
    vectors need the fewest shuffles and stores."""
    cdef int64_t block = <int64_t>(16 // sizeof(moved))
    cdef int64_t tall = <int64_t>(VECTOR_BYTES // sizeof(moved))
    cdef int64_t i, j
    if rows == 2 and to_pitch == 2 and columns >= tall:
        pair_blocks(to, source, pitch, columns, sum, <vector*>NULL)
    elif rows == 2 and to_pitch == 2 and columns >= block:
        pair_blocks(to, source, pitch, columns, sum, <vector_16*>NULL)
    elif rows == 3 and to_pitch == 3 and columns >= block:
        join_three(to, source, pitch, columns, sum, <vector_16*>NULL)
    elif rows >= tall and columns >= block:
        turn_blocks(to, to_pitch, source, pitch, rows, columns, sum, False, <vector*>NULL)
    elif rows >= block and columns >= block:
        turn_blocks(to, to_pitch, source, pitch, rows, columns, sum, False, <vector_16*>NULL)
    elif moved is cell_2 and rows >= 4 and columns >= tall:
        i = 0
        while i < rows:
            turn_four(to + least(i, rows - 4), to_pitch, source + least(i, rows - 4) * pitch, pitch, columns, sum,
                      <vector*>NULL)
            i += 4
    elif moved is cell_2 and rows >= 4 and columns >= block:
        i = 0
        while i < rows:
            turn_four(to + least(i, rows - 4), to_pitch, source + least(i, rows - 4) * pitch, pitch, columns, sum,
                      <vector_16*>NULL)
            i += 4
    else:
        for j in range(columns):
            for i in range(rows):
                to[j * to_pitch + i] = sum_of(source[i * pitch + j], sum)
