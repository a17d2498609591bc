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
    LINE, VECTOR_BYTES, cell_2, cell_4, cell_8, prefetch_to_level_2, simd_interleave, simd_load, simd_load_apart,
    simd_part, simd_plus_zero, simd_store, simd_store_apart, simd_unzip_three, simd_zip_high, simd_zip_low,
    simd_zip_three, vector, vector_16, vector_32,
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
    WAY_BYTES = 4096    # of an L1 cache: lines so far apart fall into one set
    CLOSE_ROWS = 256    # of 16 channels: 8 to 32 KiB, which stay in it or the next one
    ROWS_AHEAD = 64     # rows of cells, into the L2 cache: of those 1 KiB apart the L1 cache holds 32


cdef inline moved sum_of(moved x, bint sum) noexcept nogil:
    """A cell; -0.0 becomes +0.0, if it is a sum of one term."""
    return 0 if sum and x == <moved>1 << (8 * sizeof(moved) - 1) else x


cdef inline turned load_sums(const moved* source, bint sum, turned* width) noexcept nogil:
    cdef turned x
    simd_load(&x, source)
    if sum:
        simd_plus_zero(&x, sizeof(moved))
    return x


cdef inline void zip_rows(turned* to, const turned* x, int64_t n, int64_t step, size_t cell) noexcept nogil:
    """to[2*k], to[2*k + 1] = the two rows of pair k zipped, which lie `step` apart."""
    cdef int64_t k, first
    for k in range(n // 2):
        first = 2 * (k // step) * step + k % step
        simd_zip_low(&to[2 * k], &x[first], &x[first + step], cell)
        simd_zip_high(&to[2 * k + 1], &x[first], &x[first + step], cell)


cdef inline void turn_block(moved* to, int64_t to_pitch, const moved* source, int64_t pitch, bint sum,
                            turned* width) noexcept nogil:
    """16 bytes of columns of as many rows as a vector has cells: a wide one has some of the rows in each 16 bytes."""
    cdef int64_t n = <int64_t>(16 // sizeof(moved))
    cdef turned[8] x
    cdef turned[8] y
    cdef int64_t i
    for i in range(n):
        simd_load_apart(&x[i], source + i * pitch, n * pitch * <int64_t>sizeof(moved))
        if sum:
            simd_plus_zero(&x[i], sizeof(moved))
    if moved is cell_2:
        zip_rows(y, x, n, 1, 2)
        zip_rows(x, y, n, 2, 4)
    elif moved is cell_4:
        zip_rows(y, x, n, 1, 4)
        for i in range(n):
            x[i] = y[i]
    for i in range(n // 2):
        simd_zip_low(&y[0], &x[i], &x[i + n // 2], 8)
        simd_zip_high(&y[1], &x[i], &x[i + n // 2], 8)
        simd_store(to + 2 * i * to_pitch, &y[0])
        simd_store(to + (2 * i + 1) * to_pitch, &y[1])


cdef inline void turn_wide(moved* to, int64_t to_pitch, const moved* source, int64_t pitch, bint sum,
                           turned* width) noexcept nogil:
    """16 bytes of rows of as many columns as a vector has cells. One function with turn_block would not be inlined, 0.3
    to 0.9 of the speed, and zips that both call take AVX2's Im2col 1.1 to 1.4 times as long."""
    cdef int64_t n = <int64_t>(16 // sizeof(moved))
    cdef int64_t apart = n * to_pitch * <int64_t>sizeof(moved)
    cdef turned[8] x
    cdef turned[8] y
    cdef int64_t i
    for i in range(n):
        x[i] = load_sums(source + i * pitch, sum, width)
    if moved is cell_2:
        zip_rows(y, x, n, 1, 2)
        zip_rows(x, y, n, 2, 4)
    elif moved is cell_4:
        zip_rows(y, x, n, 1, 4)
        for i in range(n):
            x[i] = y[i]
    for i in range(n // 2):
        simd_zip_low(&y[0], &x[i], &x[i + n // 2], 8)
        simd_zip_high(&y[1], &x[i], &x[i + n // 2], 8)
        simd_store_apart(to + 2 * i * to_pitch, apart, &y[0])
        simd_store_apart(to + (2 * i + 1) * to_pitch, apart, &y[1])


cdef inline void turn_blocks(moved* to, int64_t to_pitch, const moved* source, int64_t pitch, int64_t rows,
                             int64_t columns, bint sum, const void* end, turned* width) noexcept nogil:
    """At least a block of rows and columns: as many rows as a vector holds cells, 16 bytes of columns. Rows further on
    are fetched, but nothing behind `end`, or at all if that is NULL or rows descend in memory."""
    cdef int64_t tall = <int64_t>(sizeof(turned) // sizeof(moved))
    cdef int64_t wide = <int64_t>(16 // sizeof(moved))
    # A prefetch of memory that is not there takes 50 times as long as one that hits: the page is looked up each time.
    cdef int64_t room = (<const char*>end - <const char*>source) // <int64_t>sizeof(moved) if end != NULL else 0
    cdef bint ahead = end != NULL and pitch > 0
    # Columns whose lines fall into one set of an L1 cache drive each other out of it: few at a time, of many rows,
    # where these are in the caches.
    cdef int64_t together = CLOSE_ROWS if not ahead and to_pitch * <int64_t>sizeof(moved) % WAY_BYTES == 0 else tall
    cdef int64_t first = 0
    cdef int64_t a, b, i, j, k
    while first < rows:
        i = least(first, rows - tall)
        for k in range(tall if ahead and (i + ROWS_AHEAD + tall - 1) * pitch + columns <= room else 0):
            j = 0
            while j < columns:
                prefetch_to_level_2(source + (i + ROWS_AHEAD + k) * pitch + j)
                j += <int64_t>(LINE // sizeof(moved))
        b = 0
        while b < columns:
            j = least(b, columns - wide)
            a = first
            while a < least(first + together, rows):
                i = least(a, rows - tall)
                turn_block(to + j * to_pitch + i, to_pitch, source + i * pitch + j, pitch, sum, width)
                a += tall
            b += wide
        first += together


cdef inline void turn_few(moved* to, int64_t to_pitch, const moved* source, int64_t pitch, int64_t rows,
                          int64_t columns, bint sum, turned* width) noexcept nogil:
    """The same for few rows, at least 16 bytes of them, and a vector of columns: 1.1 to 1.5 times as fast as by vectors
    of 16 bytes."""
    cdef int64_t tall = <int64_t>(16 // sizeof(moved))
    cdef int64_t wide = <int64_t>(sizeof(turned) // sizeof(moved))
    cdef int64_t b = 0
    cdef int64_t a, i, j
    while b < columns:
        j = least(b, columns - wide)
        a = 0
        while a < rows:
            i = least(a, rows - tall)
            turn_wide(to + j * to_pitch + i, to_pitch, source + i * pitch + j, pitch, sum, width)
            a += tall
        b += wide


cdef inline void split_two(moved* to, int64_t to_pitch, const moved* source, int64_t rows,
                           turned* width) noexcept nogil:
    """Two columns side by side, a vector of each at least. For blocks of 16 bytes they are too few."""
    cdef int64_t tall = <int64_t>(sizeof(turned) // sizeof(moved))
    cdef int64_t a = 0
    cdef int64_t i
    cdef turned x, y
    while a < rows:
        i = least(a, rows - tall)
        simd_load(&x, source + 2 * i)
        simd_load(&y, source + 2 * i + tall)
        simd_part(&x, &y, &x, &y, sizeof(moved))
        simd_store(to + i, &x)
        simd_store(to + to_pitch + i, &y)
        a += tall


cdef inline void split_three(moved* to, int64_t to_pitch, const moved* source, int64_t rows,
                             turned* width) noexcept nogil:
    """The same of three, as colours are."""
    cdef int64_t tall = <int64_t>(sizeof(turned) // sizeof(moved))
    cdef int64_t a = 0
    cdef int64_t i
    cdef turned x, y, z
    while a < rows:
        i = least(a, rows - tall)
        simd_unzip_three(&x, &y, &z, source + 3 * i, sizeof(moved))
        simd_store(to + i, &x)
        simd_store(to + to_pitch + i, &y)
        simd_store(to + 2 * to_pitch + i, &z)
        a += tall


cdef inline bint splits_four(int64_t size) noexcept nogil:
    """Cells for which split_four is faster than blocks: with AVX2 and 32 bits it takes 1.4 times as long."""
    return size == 2 or (size == 4 and VECTOR_BYTES == 64)


cdef inline void split_four(moved* to, int64_t to_pitch, const moved* source, int64_t rows,
                            turned* width) noexcept nogil:
    """And of four, of 16 or 32 bits."""
    cdef int64_t tall = <int64_t>(sizeof(turned) // sizeof(moved))
    cdef int64_t a = 0
    cdef int64_t i, j
    cdef turned[4] x
    while a < rows:
        i = least(a, rows - tall)
        for j in range(4):
            simd_load(&x[j], source + 4 * i + j * tall)
        simd_part(&x[0], &x[1], &x[0], &x[1], 2 * sizeof(moved))
        simd_part(&x[2], &x[3], &x[2], &x[3], 2 * sizeof(moved))
        simd_part(&x[0], &x[2], &x[0], &x[2], sizeof(moved))
        simd_part(&x[1], &x[3], &x[1], &x[3], sizeof(moved))
        simd_store(to + i, &x[0])
        simd_store(to + to_pitch + i, &x[2])
        simd_store(to + 2 * to_pitch + i, &x[1])
        simd_store(to + 3 * to_pitch + i, &x[3])
        a += tall


cdef inline void turn_columns(moved* to, int64_t to_pitch, const moved* source, int64_t pitch, int64_t rows,
                              int64_t columns, bint sum) noexcept nogil:
    cdef int64_t i, j
    for i in range(rows):
        for j in range(columns):
            to[j * to_pitch + i] = sum_of(source[i * pitch + j], sum)


cdef inline void transpose_cells(moved* to, int64_t to_pitch, const moved* source, int64_t pitch, int64_t rows,
                                 int64_t columns, const void* end) noexcept nogil:
    cdef int64_t block = <int64_t>(16 // sizeof(moved))
    cdef int64_t tall = <int64_t>(VECTOR_BYTES // sizeof(moved))
    cdef bint dense = pitch == columns
    if dense and columns == 2 and rows >= tall:
        split_two(to, to_pitch, source, rows, <vector*>NULL)
    elif dense and columns == 3 and rows >= tall and (moved is not cell_8 or VECTOR_BYTES > 16):
        split_three(to, to_pitch, source, rows, <vector*>NULL)
    elif moved is not cell_8 and dense and columns == 4 and splits_four(sizeof(moved)) and rows >= tall:
        split_four(to, to_pitch, source, rows, <vector*>NULL)
    elif moved is not cell_8 and dense and columns == 3 and rows >= block:
        split_three(to, to_pitch, source, rows, <vector_16*>NULL)
    elif columns == 3:
        turn_columns(to, to_pitch, source, pitch, rows, 3, False)
    elif rows < block or columns < block:
        turn_columns(to, to_pitch, source, pitch, rows, columns, False)
    elif VECTOR_BYTES == 32 and rows >= 2 * block:
        turn_blocks(to, to_pitch, source, pitch, rows, columns, False, end, <vector_32*>NULL)
    else:
        turn_blocks(to, to_pitch, source, pitch, rows, columns, False, end, <vector_16*>NULL)


cdef inline void transpose(void* to, int64_t to_pitch, const void* source, int64_t pitch, int64_t rows, int64_t columns,
                           int64_t size, const void* end) noexcept nogil:
    """Cells of 2, 4, 8 or 16 bytes; pitches count cells. `end`: of the memory to fetch from, or NULL."""
    cdef int64_t i, j
    if size == 2:
        transpose_cells(<cell_2*>to, to_pitch, <const cell_2*>source, pitch, rows, columns, end)
    elif size == 4:
        transpose_cells(<cell_4*>to, to_pitch, <const cell_4*>source, pitch, rows, columns, end)
    elif size == 8:
        transpose_cells(<cell_8*>to, to_pitch, <const cell_8*>source, pitch, rows, columns, end)
    else:
        for i in range(rows):
            for j in range(columns):
                memcpy(<char*>to + (j * to_pitch + i) * 16, <const char*>source + (i * pitch + j) * 16, 16)


cdef inline void pair_blocks(moved* to, const moved* source, int64_t pitch, int64_t columns, bint sum,
                             turned* width) noexcept nogil:
    """Of two rows, at least a vector each: cells in turn."""
    cdef int64_t wide = <int64_t>(sizeof(turned) // sizeof(moved))
    cdef int64_t b = 0
    cdef int64_t j
    cdef turned[2] x
    while b < columns:
        j = least(b, columns - wide)
        x[0] = load_sums(source + j, sum, width)
        x[1] = load_sums(source + pitch + j, sum, width)
        simd_interleave(&x[0], &x[1], &x[0], &x[1], sizeof(moved))
        simd_store(to + 2 * j, &x[0])
        simd_store(to + 2 * j + wide, &x[1])
        b += wide


cdef inline void join_three(moved* to, const moved* source, int64_t pitch, int64_t columns, bint sum,
                            turned* width) noexcept nogil:
    """Of three rows, at least a vector each: cells in turn."""
    cdef int64_t wide = <int64_t>(sizeof(turned) // sizeof(moved))
    cdef int64_t b = 0
    cdef int64_t j
    cdef turned[3] x
    while b < columns:
        j = least(b, columns - wide)
        x[0] = load_sums(source + j, sum, width)
        x[1] = load_sums(source + pitch + j, sum, width)
        x[2] = load_sums(source + 2 * pitch + j, sum, width)
        simd_zip_three(to + 3 * j, &x[0], &x[1], &x[2], sizeof(moved))
        b += wide


cdef inline void join_four(cell_4* to, const cell_4* source, int64_t pitch, int64_t columns, bint sum,
                           turned* width) noexcept nogil:
    """Of four rows of 32 bits, at least a vector each."""
    cdef int64_t wide = <int64_t>(sizeof(turned) // sizeof(cell_4))
    cdef int64_t b = 0
    cdef int64_t j, k
    cdef turned[4] x
    while b < columns:
        j = least(b, columns - wide)
        for k in range(4):
            x[k] = load_sums(source + k * pitch + j, sum, width)
        simd_interleave(&x[0], &x[1], &x[0], &x[1], 4)
        simd_interleave(&x[2], &x[3], &x[2], &x[3], 4)
        simd_interleave(&x[0], &x[2], &x[0], &x[2], 8)
        simd_interleave(&x[1], &x[3], &x[1], &x[3], 8)
        simd_store(to + 4 * j, &x[0])
        simd_store(to + 4 * j + wide, &x[2])
        simd_store(to + 4 * j + 2 * wide, &x[1])
        simd_store(to + 4 * j + 3 * wide, &x[3])
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
        for k in range(4):
            x[k] = load_sums(source + k * pitch + j, sum, width)
        simd_interleave(&x[0], &x[1], &x[0], &x[1], 2)
        simd_interleave(&x[2], &x[3], &x[2], &x[3], 2)
        simd_interleave(&y[0], &y[1], &x[0], &x[2], 4)
        simd_interleave(&y[2], &y[3], &x[1], &x[3], 4)
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
    elif rows == 3 and to_pitch == 3 and columns >= tall:
        join_three(to, source, pitch, columns, sum, <vector*>NULL)
    elif moved is cell_4 and rows == 4 and to_pitch == 4 and columns >= tall:
        join_four(to, source, pitch, columns, sum, <vector*>NULL)
    elif rows == 3 and to_pitch == 3 and columns >= block:
        join_three(to, source, pitch, columns, sum, <vector_16*>NULL)
    elif rows >= tall and columns >= block:
        turn_blocks(to, to_pitch, source, pitch, rows, columns, sum, NULL, <vector*>NULL)
    elif rows >= block and columns >= tall:
        turn_few(to, to_pitch, source, pitch, rows, columns, sum, <vector*>NULL)
    elif VECTOR_BYTES == 64 and rows >= block and columns >= 2 * block:
        turn_few(to, to_pitch, source, pitch, rows, columns, sum, <vector_32*>NULL)
    elif rows >= block and columns >= block:
        turn_blocks(to, to_pitch, source, pitch, rows, columns, sum, NULL, <vector_16*>NULL)
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
