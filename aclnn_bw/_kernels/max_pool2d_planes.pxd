# cython: cdivision=True
"""Bits of whole planes of few windows: the places of maxima are found for the 16 channels of a group at a time.

Of up to 16 windows under kernels of up to 16x16 the words of each position, whose number is known, are ORed into words
of bits, all windows in a vector (kernel_row of max_pool2d_places.pxd); then one window's bits are turned into places, a
channel in each lane. SCATTER turns those of one channel, a window in each lane, which are few here. Larger kernels,
and very few words, are looked at one after the other. Where a channel has not exactly one bit in a window, its bits
are walked.

Bounds. Words are read in vectors that begin at one of at most 16 windows, and a row of the table ends in 16 words or
more that belong to no window. A place is compared with the image's rows and columns; of a window that is looked at by
itself only the positions in the image are read.
"""
from libc.stdint cimport int64_t, uint16_t

from aclnn_bw._core.arithmetic cimport least, most
from aclnn_bw._core.max_pool2d cimport LANES, MaxPool2d, PoolAxis
from aclnn_bw._kernels.max_pool2d_places cimport TABLE_AHEAD, add_row, kernel_row, put, scatter_bits, word_at
from aclnn_bw._kernels.max_pool2d_rows cimport term
from aclnn_bw._kernels.simd cimport element, lanes_of_2, simd_load, simd_store, simd_zero

cdef extern from *:
    """
    static const uint16_t aclnn_bw_channel_bits[16] = {
        1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768};
    """
    const uint16_t* channel_bits "aclnn_bw_channel_bits"


cdef inline bint group_places(uint16_t* at, const char* words, int64_t pitch, int64_t row_pitch, int64_t rows,
                              int64_t columns, int64_t width, unsigned channels) noexcept nogil:
    """at[c] = the window's position, counted from its first in the image, for the 16 channels of a group; False where
    some of `channels` has more or fewer bits than one. The window has `rows` x `columns` positions in the image."""
    cdef int64_t lanes = <int64_t>sizeof(lanes_of_2) // 2
    cdef lanes_of_2[2] bits
    cdef lanes_of_2[2] place
    cdef int64_t row, column, k
    cdef uint16_t word
    cdef unsigned seen = 0
    cdef unsigned twice = 0
    for k in range(LANES // lanes):
        simd_load(&bits[k], channel_bits + k * lanes)
        simd_zero(&place[k])
    for row in range(rows):
        for column in range(columns):
            word = (<const word_at*>(words + 2 * (row * row_pitch + column * pitch)))[0]
            for k in range(LANES // lanes):
                place[k] |= <lanes_of_2>((bits[k] & word) == bits[k]) & <uint16_t>(row * width + column)
            twice |= seen & word
            seen |= word
    for k in range(LANES // lanes):
        simd_store(at + k * lanes, &place[k])
    return (seen & ~twice & channels) == channels


cdef inline int64_t first_inside(const PoolAxis* axis) noexcept nogil:
    """The first kernel position that lies in the image in the last window."""
    return most(axis.pad - (axis.out - 1) * axis.stride, 0)


cdef inline void plane_codes(uint16_t* codes, const char* words, const MaxPool2d* pool, int64_t n) noexcept nogil:
    """Of n <= LANES windows, words of all channels' bits: codes[b*LANES + i] is bit b of the kernel row of window i's
    maximum, or b - 4 of its column for b >= 4; codes[8*LANES + i] has the channels with one bit or more, the next one
    those with more."""
    cdef int64_t lanes = <int64_t>sizeof(lanes_of_2) // 2
    cdef int64_t i = 0
    cdef int64_t kh, b
    cdef lanes_of_2[10] code
    cdef lanes_of_2 row
    while i < n:
        for b in range(10):
            simd_zero(&code[b])
        # The others lie in the padding, whatever the window.
        for kh in range(first_inside(&pool.h), least(pool.h.kernel, pool.h.size + pool.h.pad)):
            row = kernel_row(&code[4], &code[9], words + 2 * (kh * pool.w.kernel * pool.pitch + i), pool.pitch,
                             first_inside(&pool.w) & ~3, least(pool.w.kernel, pool.w.size + pool.w.pad), TABLE_AHEAD)
            add_row(&code[0], &code[8], &code[9], row, kh)
        for b in range(10):
            simd_store(codes + b * LANES + i, &code[b])
        i += lanes


cdef inline bint plane_places(uint16_t* at, const char* words, const MaxPool2d* pool,
                              unsigned channels) noexcept nogil:
    """at[LANES*i + c] = the position of the maximum of window i < h.out*w.out <= LANES in channel c of a group; False
    where some of `channels` has not exactly one bit in each window, or one in the padding. All numbers are below
    2**15."""
    cdef int64_t lanes = <int64_t>sizeof(lanes_of_2) // 2
    cdef uint16_t[10 * LANES] codes
    cdef uint16_t[LANES] outside
    cdef lanes_of_2 bits, row, column, missed
    cdef unsigned seen = channels
    cdef int64_t k, oh, ow, i, b
    plane_codes(codes, words, pool, pool.h.out * pool.w.out)
    for k in range(LANES // lanes):
        simd_load(&bits, channel_bits + k * lanes)
        simd_zero(&missed)
        i = 0
        for oh in range(pool.h.out):
            for ow in range(pool.w.out):
                # As uint16 a negative number is beyond any row and column.
                simd_zero(&row)
                simd_zero(&column)
                row += <uint16_t>(oh * pool.h.stride - pool.h.pad)
                column += <uint16_t>(ow * pool.w.stride - pool.w.pad)
                for b in range(4):
                    row += <lanes_of_2>((bits & codes[b * LANES + i]) == bits) & <uint16_t>(1 << b)
                    column += <lanes_of_2>((bits & codes[(4 + b) * LANES + i]) == bits) & <uint16_t>(1 << b)
                missed |= <lanes_of_2>(row >= <uint16_t>pool.h.size) | <lanes_of_2>(column >= <uint16_t>pool.w.size)
                row = row * <uint16_t>pool.w.size + column
                simd_store(at + LANES * i + k * lanes, &row)
                seen &= codes[8 * LANES + i] & ~<unsigned>codes[9 * LANES + i]
                i += 1
        missed &= bits
        simd_store(outside + k * lanes, &missed)
    for k in range(LANES):
        seen &= ~<unsigned>outside[k]
    return seen == channels


cdef inline void scatter_plane(term* sums, int64_t sum_pitch, const term* grad, int64_t grad_pitch, const uint16_t* at,
                               int64_t n, int64_t lanes, element* marks, int64_t mark_pitch) noexcept nogil:
    """sums[c*sum_pitch + at[LANES*i + c]] += grad[c*grad_pitch + i], c < lanes, i < n. Marked sums that are narrowed 16
    at a time, behind all windows, take 1 to 1.3 times as long."""
    cdef int64_t i, c
    for i in range(n):
        for c in range(lanes):
            put(sums + c * sum_pitch, at[LANES * i + c], grad[c * grad_pitch + i], marks + c * mark_pitch)


cdef inline void scatter_group(term* sums, int64_t sum_pitch, const term* grad, int64_t grad_pitch, const char* words,
                               const MaxPool2d* pool, int64_t lanes, element* marks,
                               int64_t mark_pitch) noexcept nogil:
    """Whole planes: sums[c*sum_pitch + position] += grad[c*grad_pitch + window] where that is the window's maximum, for
    the channels c < lanes of a group, windows ascending. The places of a window's maxima in all channels are made
    first: a branch on each bit is often mispredicted."""
    cdef unsigned channels = (1u << lanes) - 1
    cdef uint16_t[LANES] at
    cdef int64_t oh, ow, top, left, kh, kw, rows, columns, first, row, column, c
    cdef const char* here
    for oh in range(pool.h.out):
        top = oh * pool.h.stride - pool.h.pad
        kh = most(-top, 0)
        rows = least(pool.h.kernel, pool.h.size - top) - kh
        for ow in range(pool.w.out):
            left = ow * pool.w.stride - pool.w.pad
            kw = most(-left, 0)
            columns = least(pool.w.kernel, pool.w.size - left) - kw
            first = (top + kh) * pool.w.size + left + kw
            here = words + 2 * (kh * pool.w.kernel + kw) * pool.pitch
            if group_places(at, here, pool.pitch, pool.w.kernel * pool.pitch, rows, columns, pool.w.size, channels):
                for c in range(lanes):
                    put(sums + c * sum_pitch, first + at[c], grad[c * grad_pitch], marks + c * mark_pitch)
            else:
                for row in range(rows):
                    for column in range(columns):
                        scatter_bits(sums, sum_pitch, first + row * pool.w.size + column, 0, grad, grad_pitch,
                                     here + 2 * (row * pool.w.kernel + column) * pool.pitch, 0, channels, 1,
                                     marks, mark_pitch)
            words += 2
            grad += 1


cdef inline void scatter_maxima(bint placed, const uint16_t* at, term* sums, int64_t sum_pitch, const term* grad,
                                int64_t grad_pitch, const char* words, const MaxPool2d* pool, int64_t lanes,
                                element* marks, int64_t mark_pitch) noexcept nogil:
    """The same, by the places that plane_places has found if `placed`."""
    if placed:
        scatter_plane(sums, sum_pitch, grad, grad_pitch, at, pool.h.out * pool.w.out, lanes, marks, mark_pitch)
    else:
        scatter_group(sums, sum_pitch, grad, grad_pitch, words, pool, lanes, marks, mark_pitch)
