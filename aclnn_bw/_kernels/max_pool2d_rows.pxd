# cython: cdivision=True
"""Rows of gradOutput and gradInput of the max pool, as both forms of its gradient load and store them, and the units of
a range."""
from libc.stdint cimport int64_t, uint16_t
from libc.string cimport memmove

from aclnn_bw._core.arithmetic cimport ceil_div, least
from aclnn_bw._core.max_pool2d cimport LANES, MaxPool2d
from aclnn_bw._kernels.rows cimport (
    bfloat, copy, element, half, narrow_row, round_to_half_row, store_row, widen_row,
)
from aclnn_bw._kernels.transpose cimport transpose

# What is scattered: terms of sums, or bits of float16 and bfloat16 where no two windows have a position in common.
ctypedef fused term:
    float
    double
    uint16_t

# turn_any of each unit: to, its pitch, source, its pitch, channels, positions, bytes.
ctypedef void (*Turn)(void*, int64_t, const void*, int64_t, int64_t, int64_t, int64_t) noexcept nogil

cdef enum:
    PIECE = 64      # positions that are narrowed at a time before they are transposed

# Of a range: the rows of a band in the channels of a group, (n*groups + group)*bands + band.
cdef struct Unit:
    int64_t n
    int64_t group
    int64_t ih
    int64_t rows
    int64_t lanes
    int64_t channel     # the group's first, of all images
    int64_t pooled      # elements to its first plane of gradOutput, and of gradInput
    int64_t image
    const char* mask    # the group's table, or the first of its planes of indices


cdef inline Unit first_unit(const MaxPool2d* pool, const char* mask, int64_t begin) noexcept nogil:
    cdef Unit u
    u.n = u.group = u.ih = 0
    if begin > 0:   # divisions take longer than a tiny plane
        u.group = begin // pool.bands
        u.ih = begin % pool.bands * pool.band
        u.n = u.group // pool.groups
        u.group -= u.n * pool.groups
    see_unit(pool, mask, &u)
    return u


cdef inline void see_unit(const MaxPool2d* pool, const char* mask, Unit* u) noexcept nogil:
    u.rows = least(pool.band, pool.h.size - u.ih)
    u.lanes = pool.lanes if u.group + 1 < pool.groups else pool.channels - u.group * pool.lanes
    u.channel = u.n * pool.channels + u.group * pool.lanes
    u.pooled = u.n * pool.pooled_strides[0] + u.group * pool.lanes * pool.pooled_strides[1]
    u.image = u.n * pool.image_strides[0] + u.group * pool.lanes * pool.image_strides[1]
    if pool.argmax:
        u.mask = mask + pool.index_item * (u.n * pool.index_strides[0] + u.group * pool.lanes * pool.index_strides[1])
    else:
        u.mask = mask + 2 * (u.n * ceil_div(pool.channels, LANES) + u.group * pool.lanes // LANES) * (
            pool.kernel_size * pool.pitch)


cdef inline void next_unit(const MaxPool2d* pool, const char* mask, Unit* u) noexcept nogil:
    u.ih += pool.band
    if u.ih >= pool.h.size:
        u.ih = 0
        u.group += 1
        if u.group == pool.groups:
            u.group = 0
            u.n += 1
    see_unit(pool, mask, u)


cdef inline bint summed_there(const MaxPool2d* pool, const term* kind, const element* stored) noexcept nogil:
    """Whether elements are terms."""
    return not pool.reduced and ((term is float and element is float) or (term is double and element is double))


cdef inline void store_cells(element* to, const term* sums, int64_t n) noexcept nogil:
    """to[:n] = sums[:n], narrowed, or their bits."""
    if term is uint16_t:
        copy(to, <const element*>sums, <size_t>n * sizeof(element))
    else:
        narrow_row(to, sums, n)


cdef inline void store_sums(const MaxPool2d* pool, element* to, int64_t stride, term* sums, element* cells,
                            int64_t n) noexcept nogil:
    """to[: n*stride : stride] = sums[:n], rounded; nothing if the sums have been made there."""
    if term is float:
        if pool.reduced:
            round_to_half_row(sums, n)
    if stride == 1:
        if <void*>to != <void*>sums:
            store_cells(to, <const term*>sums, n)
    else:
        store_cells(cells, <const term*>sums, n)
        store_row(to, stride, <const element*>cells, n)


cdef inline void round_channels(float* sums, int64_t pitch, int64_t n, int64_t count) noexcept nogil:
    cdef int64_t c
    for c in range(count):
        round_to_half_row(sums + c * pitch, n)


cdef inline void narrow_pixels(element* to, int64_t along, const term* sums, int64_t pitch, int64_t n, int64_t count,
                               Turn turned) noexcept nogil:
    cdef element[LANES * PIECE] cells
    cdef int64_t c, m
    while n > 0:
        m = least(n, PIECE)
        for c in range(count):
            store_cells(<element*>cells + c * PIECE, sums + c * pitch, m)
        turned(to, along, <const element*>cells, PIECE, count, m, sizeof(element))
        to += m * along
        sums += m
        n -= m


cdef inline void store_pixels(const MaxPool2d* pool, element* to, term* sums, int64_t pitch, int64_t n,
                              int64_t count, Turn turned) noexcept nogil:
    """n positions of up to 16 channels, which lie side by side in gradInput, from sums `pitch` apart."""
    if term is float:
        if pool.reduced:
            round_channels(sums, pitch, n, count)
    if term is uint16_t or (term is float and element is float) or (term is double and element is double):
        turned(to, pool.image_strides[3], sums, pitch, count, n, sizeof(element))
    else:
        narrow_pixels(to, pool.image_strides[3], <const term*>sums, pitch, n, count, turned)


cdef inline bint by_pixels(const MaxPool2d* pool) noexcept nogil:
    """Whether channels lie side by side in gradInput."""
    return pool.channels > 1 and pool.image_strides[1] == 1 and pool.image_strides[3] != 1


cdef inline int64_t joined_rows(const MaxPool2d* pool, int64_t rows) noexcept nogil:
    """The positions of rows that follow one another in gradInput, or of one."""
    return pool.w.size * (rows if pool.image_strides[2] == pool.w.size * pool.image_strides[3] else 1)


cdef inline void store_rows(const MaxPool2d* pool, element* to__chw, term* sums, int64_t pitch, int64_t count,
                            int64_t rows, element* cells, Turn turned) noexcept nogil:
    """The sums of `rows` rows of `count` planes, `pitch` apart; as long as they lie side by side in one go."""
    cdef bint pixels = by_pixels(pool)
    cdef int64_t n = joined_rows(pool, rows) if pixels or pool.image_strides[3] == 1 else pool.w.size
    cdef int64_t at = 0
    cdef int64_t c
    cdef element* to = to__chw
    if n == pitch == pool.image_strides[1] and pool.image_strides[3] == 1:
        n *= count
        count = 1
    while at < rows * pool.w.size:
        if pixels:
            store_pixels(pool, to, sums + at, pitch, n, count, turned)
        else:
            for c in range(count):
                store_sums(pool, to + c * pool.image_strides[1], pool.image_strides[3], sums + c * pitch + at, cells, n)
        at += n
        to += pool.image_strides[2]


cdef inline void pack_row(element* to, int64_t pitch, const element* source, int64_t along, int64_t across, int64_t n,
                          int64_t count, const void* end) noexcept nogil:
    """to[c*pitch + i] = source[c*across + i*along], for c < count and i < n. The source ends at `end`."""
    cdef int64_t c, i
    if along == 1:
        for c in range(count):
            copy(to + c * pitch, source + c * across, <size_t>n * sizeof(element))
    elif across == 1:
        # Channels lie side by side: a line is read once, not once for each channel.
        transpose(to, pitch, source, along, n, count, sizeof(element), end)
    else:
        for c in range(count):
            for i in range(n):
                to[c * pitch + i] = source[c * across + i * along]


cdef inline void settle(uint16_t* to, const uint16_t* source, int64_t n) noexcept nogil:
    """to[:n] = source[:n] + 0 for the bits of float16 or bfloat16: -0 becomes +0."""
    cdef int64_t i
    for i in range(n):
        to[i] = 0 if source[i] == 0x8000 else source[i]


cdef inline void load_cells(term* to, const element* source, int64_t n) noexcept nogil:
    """to[:n] = source[:n], widened, or the bits of source[:n] + 0."""
    if term is uint16_t:
        settle(to, <const uint16_t*>source, n)
    else:
        widen_row(to, source, n)


cdef inline void load_channels(const MaxPool2d* pool, term* to, int64_t pitch, const element* source, int64_t n,
                               int64_t count, element* cells, const void* end) noexcept nogil:
    """A row of gradOutput, or n elements that lie side by side, of each of `count` channels from `source`, widened (and
    rounded), `pitch` apart. gradOutput ends at `end`."""
    cdef int64_t along = pool.pooled_strides[3]
    cdef int64_t across = pool.pooled_strides[1]
    cdef int64_t c
    if along == 1 and across == n and pitch == n:
        n *= count
        count = 1
    if along == 1:
        for c in range(count):
            load_cells(to + c * pitch, source + c * across, n)
    elif (term is float and element is float) or (term is double and element is double):
        pack_row(to, pitch, source, along, across, n, count, end)
    else:
        pack_row(cells, n, source, along, across, n, count, end)
        for c in range(count):
            load_cells(to + c * pitch, <const element*>cells + c * n, n)
    if term is float:
        if pool.reduced:
            for c in range(count):
                round_to_half_row(to + c * pitch, n)


cdef inline void slide_rows(term* sums, int64_t pitch, int64_t count, int64_t begin, int64_t n) noexcept nogil:
    """n sums of `count` channels from `begin` on go to where the scratch begins."""
    cdef int64_t c
    for c in range(count):
        memmove(sums + c * pitch, sums + c * pitch + begin, <size_t>n * sizeof(term))
