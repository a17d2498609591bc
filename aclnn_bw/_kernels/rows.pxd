# cython: cdivision=True
"""Row primitives that several operators share. Each works on raw pointers and does not look beyond what it is given;
the NumPy equivalents stand in the docstrings."""
from libc.stdint cimport int64_t, uint16_t, uintptr_t
from libc.string cimport memcpy, memset

from aclnn_bw._core.arithmetic cimport least, most
from aclnn_bw._kernels.simd cimport (
    HALF_BYTES, LINE, VECTOR_BYTES, add, bfloat, cell, element, half, load, narrow_to_bfloat, narrow_to_half, plus_zero,
    prefetch_to_level_2, prefetch_to_write, real, simd_load, simd_store, simd_tidy_nans, sixteen, store, vec, vector,
    vector_16, vector_half, widen_bfloat, widen_half,
)

cdef extern from "half.h" nogil:
    void round_to_hf32_row "aclnn_bw_round_to_hf32_row" (float* row, int64_t n) noexcept

cdef extern from "copy.h" nogil:
    void copy "aclnn_bw_copy" (void* to, const void* source, size_t size) noexcept

cdef enum:
    BLOCK = 256     # elements gathered at a time from a strided row
    PAGE = 4096     # bytes, at least
    CLEARED = 1024  # bytes whose lines are fetched to be written at a time


cdef inline void fetch(const char* at, int64_t size) noexcept nogil:
    """Ask for the lines of a block further on, where the tensors leave the caches: within them it costs. Nothing is
    read there."""
    cdef int64_t line = 0
    while line < size:
        prefetch_to_level_2(<const char*>(<uintptr_t>at + <uintptr_t>line))
        line += LINE


cdef inline void touch_pages(char* to, int64_t size) noexcept nogil:
    """A byte becomes 0 of each page that begins in to[:size], all of which the caller makes later: a prefetch of a page
    that nobody has touched takes 50 times as long as a hit. Results in new memory took up to 3.7 times as long."""
    cdef int64_t at = <int64_t>(-<uintptr_t>to & (PAGE - 1))
    while at < size:
        to[at] = 0
        at += PAGE


cdef inline char* touch_until(char* touched, const void* needed, const void* limit) noexcept nogil:
    """Touch the pages from `touched` on until `needed`, and some more, none behind `limit`: how far they are now."""
    cdef int64_t n
    if <const char*>needed > touched:
        n = least(most(<const char*>needed - touched, 4 * PAGE), <const char*>limit - touched)
        touch_pages(touched, n)
        touched += n
    return touched


cdef inline void fetch_to_write(char* to, int64_t size) noexcept nogil:
    """Ask for the lines of to[:size], all of which the caller makes: beyond the caches, stores to lines that are there
    take 0.5 to 0.95 of the time, memset's and memmove's too; in an L1 cache 1.5 times as long."""
    cdef int64_t at = 0
    touch_pages(to, size)
    while at < size:
        prefetch_to_write(to + at)
        at += LINE


cdef inline void clear(void* to, int64_t size, bint far) noexcept nogil:
    """to[:size] = 0; `far`: it lies beyond the caches of a machine whose memset reads what it writes. An AMD's does not
    from 2 KiB on: there pieces take 1 to 2.5 times as long."""
    cdef char* begin = <char*>to
    cdef int64_t some
    while far and size > 0:
        some = least(size, CLEARED)
        fetch_to_write(begin, some)
        memset(begin, 0, <size_t>some)
        begin += some
        size -= some
    memset(begin, 0, <size_t>size)


cdef inline real widened(const element* source, const real* summed) noexcept nogil:
    if element is half:
        return widen_half(source[0])
    elif element is bfloat:
        return widen_bfloat(source[0])
    else:
        return source[0]


# The last vector of a row overlaps the one before, so `to` and `source` are not the same memory: a masked vcvtps2ph to
# memory is microcoded on Zen 4.


cdef inline void convert_piece(float* wide, sixteen* narrow, bint widens, vec* width) noexcept nogil:
    cdef vec x
    if widens:
        x = load(narrow, width)
        simd_store(wide, &x)
    else:
        simd_load(&x, wide)
        if sixteen is bfloat:
            simd_tidy_nans(&x)
        store(narrow, x)


cdef inline void convert_numbers(float* wide, sixteen* narrow, int64_t n, bint widens) noexcept nogil:
    """wide[:n] = narrow[:n] if it `widens`, else narrow[:n] = wide[:n]."""
    cdef int64_t lanes = VECTOR_BYTES // 4
    cdef int64_t some = HALF_BYTES // 4
    cdef int64_t i = 0
    while i + lanes <= n:
        convert_piece(wide + i, narrow + i, widens, <vector*>NULL)
        i += lanes
    while i < n and n >= some:
        i = least(i, n - some)
        convert_piece(wide + i, narrow + i, widens, <vector_half*>NULL)
        i += some
    while i < n:
        if widens:
            wide[i] = widened(narrow + i, wide)
        elif sixteen is half:
            narrow[i] = narrow_to_half(wide[i])
        else:
            narrow[i] = narrow_to_bfloat(wide[i])
        i += 1


cdef inline void widen_row(real* to, const element* source, int64_t n) noexcept nogil:
    """to[:n] = source[:n], exactly. The pairs that exist: float from float, half, bfloat; double from double."""
    if element is half or element is bfloat:
        convert_numbers(<float*>to, <element*>source, n, True)
    else:
        memcpy(to, source, <size_t>n * sizeof(element))


cdef inline void narrow_row(element* to, const real* source, int64_t n) noexcept nogil:
    """to[:n] = source[:n], rounded to nearest even."""
    if element is half or element is bfloat:
        convert_numbers(<float*>source, to, n, False)
    else:
        memcpy(to, source, <size_t>n * sizeof(element))


cdef inline void round_to_half_row(float* row, int64_t n) noexcept nogil:
    """row[:n] = the nearest float16."""
    cdef half[BLOCK] block
    cdef int64_t i = 0
    cdef int64_t m
    while i < n:
        m = least(n - i, BLOCK)
        convert_numbers(row + i, <half*>block, m, False)
        convert_numbers(row + i, <half*>block, m, True)
        i += m


cdef inline void load_row(real* to, const element* source, int64_t stride, int64_t n) noexcept nogil:
    """to[:n] = source[: n*stride : stride]."""
    cdef element[BLOCK] block
    cdef int64_t i, j, m
    if stride == 1:
        widen_row(to, source, n)
        return
    i = 0
    while i < n:
        m = n - i if n - i < BLOCK else BLOCK
        for j in range(m):
            block[j] = source[(i + j) * stride]
        widen_row(to + i, <const element*>block, m)
        i += m


cdef inline void zero_row(real* to, int64_t n) noexcept nogil:
    """to[:n] = 0. Most gaps between rows are of one element: a call costs more than the rest of the row."""
    if n == 1:
        to[0] = 0
    elif n > 1:
        memset(to, 0, <size_t>n * sizeof(real))


cdef inline void store_row(element* to, int64_t stride, const element* source, int64_t n) noexcept nogil:
    """to[: n*stride : stride] = source[:n]."""
    cdef int64_t i
    if stride == 1:
        copy(to, source, <size_t>n * sizeof(element))
    else:
        for i in range(n):
            to[i * stride] = source[i]


cdef inline void narrow_strided(element* to, int64_t stride, const real* source, int64_t n) noexcept nogil:
    """to[: n*stride : stride] = source[:n], rounded to nearest even."""
    cdef element[BLOCK] block
    cdef int64_t i = 0
    cdef int64_t m
    if stride == 1:
        narrow_row(to, source, n)
        return
    while i < n:
        m = least(n - i, BLOCK)
        narrow_row(<element*>block, source + i, m)
        store_row(to + i * stride, stride, <const element*>block, m)
        i += m


cdef inline void fill_cells(cell* to, int64_t stride, cell value, int64_t n) noexcept nogil:
    cdef int64_t i
    if stride == 1:
        for i in range(n):
            to[i] = value
    else:
        for i in range(n):
            to[i * stride] = value


cdef inline void fill_row(element* to, int64_t stride, element value, int64_t n) noexcept nogil:
    """to[: n*stride : stride] = value."""
    if element is half or element is bfloat:
        fill_cells(<uint16_t*>to, stride, (<uint16_t*>&value)[0], n)
    else:
        fill_cells(to, stride, value, n)


cdef inline void add_row(real* to, const real* source, int64_t n) noexcept nogil:
    """to[:n] += source[:n]."""
    cdef int64_t i
    for i in range(n):
        to[i] += source[i]


cdef inline void sum_piece(real* to, const element* source, int64_t down, int64_t rows, vec* width) noexcept nogil:
    """A vector of sum_dense_rows: an element is summed in a register."""
    cdef vec sum = plus_zero(load(source, width), to)
    cdef int64_t r
    for r in range(1, rows):
        sum = add(sum, load(source + r * down, width), to)
    simd_store(to, &sum)


cdef inline void sum_dense_rows(real* to, const element* source, int64_t down, int64_t rows, int64_t n) noexcept nogil:
    """to[:n] = 0.0 + the first row + the second ..., `down` apart. The last vector overlaps the one before."""
    cdef int64_t lanes = VECTOR_BYTES // <int64_t>sizeof(real)
    cdef int64_t some = HALF_BYTES // <int64_t>sizeof(real)
    cdef int64_t few = 16 // <int64_t>sizeof(real)
    cdef int64_t i = 0
    cdef int64_t r
    cdef real total
    if n >= lanes:
        while i < n - lanes:
            sum_piece(to + i, source + i, down, rows, <vector*>NULL)
            i += lanes
        sum_piece(to + n - lanes, source + n - lanes, down, rows, <vector*>NULL)
    elif some < lanes and n >= some:
        sum_piece(to, source, down, rows, <vector_half*>NULL)
        sum_piece(to + n - some, source + n - some, down, rows, <vector_half*>NULL)
    elif few < some and n >= few:
        sum_piece(to, source, down, rows, <vector_16*>NULL)
        sum_piece(to + n - few, source + n - few, down, rows, <vector_16*>NULL)
    else:
        for i in range(n):
            total = widened(source + i, to) + <real>0
            for r in range(1, rows):
                total += widened(source + i + r * down, to)
            to[i] = total
