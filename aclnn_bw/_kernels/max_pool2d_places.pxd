# cython: cdivision=True
"""Windows that are scattered: each adds its gradient to the sum at the position of its maximum, ascending.

What is scattered are terms of sums, or, where no two windows have a position in common, the bits of float16 and
bfloat16. Sums of these two may be marked: each is stored in 16 bits whenever something is added, and nonzero bits say
that there is a sum. Then few windows touch little memory, and no sums are cleared before or narrowed after.

For kernels of up to 16x16 positions the words of a block of windows are first turned into each channel's kernel row and
column, a nibble each, by a few operations for 16 channels and a vector of windows together; where a channel has exactly
one bit in each of them, its windows are added without a branch. Else the set bits of each word are walked.

Bounds. A place is found by a nibble, and compared with the sums' rows and columns; an index has been found to lie in
its window. Words are read in vectors, up to 16 of them beyond a row's windows: a row of the table ends in 16 words or
more that belong to no window. A longer vector that would leave the row begins earlier; rows have 32 words at least. Of
fewer windows than 16 its nibbles lie before nibbles[0] too, among the places that are made from them afterwards.
"""
from libc.stdint cimport int64_t, uint16_t, uint32_t, uint64_t

from aclnn_bw._core.arithmetic cimport ceil_div, least
from aclnn_bw._core.max_pool2d cimport BLOCK, MaxPool2d
from aclnn_bw._kernels.max_pool2d_indices cimport index_at
from aclnn_bw._kernels.max_pool2d_rows cimport term
from aclnn_bw._kernels.rows cimport fetch, narrow_row
from aclnn_bw._kernels.simd cimport (
    bfloat, element, half, lanes_of_2, lanes_of_words, prefetch, simd_load, simd_store, simd_zero,
)

cdef extern from *:
    """
    typedef uint16_t __attribute__((aligned(1), may_alias)) aclnn_bw_word;
    static const uint16_t aclnn_bw_lane_numbers[32] = {
        0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15,
        16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31};
    """
    ctypedef uint16_t word_at "aclnn_bw_word"
    const uint16_t* lane_numbers "aclnn_bw_lane_numbers"
    int lowest_bit "__builtin_ctz" (unsigned bits) noexcept nogil

ctypedef fused lane_type:
    lanes_of_2
    lanes_of_words

cdef extern from "half.h" nogil:
    uint32_t bits_of "aclnn_bw_bits_of" (float value) noexcept
    float float_of "aclnn_bw_float_of" (uint32_t bits) noexcept

cdef enum:
    RUN = 8             # vectors of words that are read on end: those of each position lie in a page of their own
    TOGETHER = 4        # channels whose windows are added side by side: the sums of neighbours wait for each other
    WORDS_AHEAD = 256   # bytes: there are more rows of the mask than the hardware fetches ahead
    TABLE_AHEAD = 8192  # the same in tables that are read from end to end: 0.57 to 1.09 of the time
    STRETCH = 32        # windows of a channel that are added before the same number further on is fetched

# What is read next of each channel, a step further on, or nothing.
cdef struct Ahead:
    const char* at          # the index of its first window; of bits the gradient; NULL if nothing is fetched
    const char* grad
    int64_t at_pitch        # bytes between two channels, and between windows
    int64_t at_item
    int64_t grad_pitch
    int64_t grad_item


cdef inline void put(term* sums, int64_t place, term x, element* marks) noexcept nogil:
    """sums[place] += x, or, of bits, = x. If marks are float16 or bfloat16, marks[place] gets the sum too; where it is
    zero before, so is the sum, whatever sums[place] holds. No other sum becomes zero when it is narrowed: it is a
    multiple of the type's least number."""
    if term is uint16_t:
        sums[place] = x
    elif term is float and (element is half or element is bfloat):
        # No branch, which nothing could predict.
        sums[place] = float_of(bits_of(sums[place]) & <uint32_t>-((<const uint16_t*>marks)[place] != 0)) + x
        narrow_row(marks + place, <const float*>sums + place, 1)
    else:
        sums[place] += x


# --- bits -----------------------------------------------------------------------------------------------------------

cdef inline void scatter_bits(term* sums, int64_t sum_pitch, int64_t at, int64_t step, const term* grad,
                              int64_t grad_pitch, const char* words, int first, unsigned channels, int64_t n,
                              element* marks, int64_t mark_pitch) noexcept nogil:
    """sums[j*sum_pitch + at + i*step] += grad[j*grad_pitch + i], i < n, for set bits j of words[i] >> first &
    channels."""
    cdef int64_t i, j
    cdef unsigned bits
    for i in range(n):
        bits = <unsigned>(<const word_at*>words)[i] >> first & channels
        while bits != 0:
            j = lowest_bit(bits)
            put(sums + j * sum_pitch, at + i * step, grad[j * grad_pitch + i], marks + j * mark_pitch)
            bits &= bits - 1


# --- places by indices ----------------------------------------------------------------------------------------------

cdef inline void add_at(term* sums, const term* grad, const char* mask, int64_t i, uint32_t low, uint32_t size,
                        bint whole, element* marks) noexcept nogil:
    cdef uint32_t place = <uint32_t>(<const index_at*>mask)[i] - low
    if whole or place < size:
        put(sums, place, grad[i], marks)


cdef inline void scatter_indices(term* sums, int64_t sum_pitch, uint32_t low, uint32_t size, const term* grad,
                                 int64_t grad_pitch, const char* mask, int64_t mask_pitch, int64_t n, int channels,
                                 bint whole, element* marks, int64_t mark_pitch) noexcept nogil:
    """sums[c*sum_pitch + place] += grad[c*grad_pitch + i], c < channels, i < n, where place is mask[c*mask_pitch + i] -
    low; one at or beyond `size` is left out. `whole`: all places are below."""
    cdef int64_t i
    for i in range(n):
        add_at(sums, grad, mask, i, low, size, whole, marks)
        if channels > 1:
            add_at(sums + sum_pitch, grad + grad_pitch, mask + 4 * mask_pitch, i, low, size, whole, marks + mark_pitch)
        if channels > 2:
            add_at(sums + 2 * sum_pitch, grad + 2 * grad_pitch, mask + 8 * mask_pitch, i, low, size, whole,
                   marks + 2 * mark_pitch)
        if channels > 3:
            add_at(sums + 3 * sum_pitch, grad + 3 * grad_pitch, mask + 12 * mask_pitch, i, low, size, whole,
                   marks + 3 * mark_pitch)


cdef inline Ahead read_next(const MaxPool2d* pool, const char* at, const element* grad, int64_t channel, int64_t row,
                            int64_t n, int64_t count, const char* end) noexcept nogil:
    """n windows of `count` channels, so many channels and rows further on. Memory that is not there is looked for each
    time: there is none if they would end behind the end of gradOutput."""
    cdef Ahead next
    next.grad = <const char*>(grad + channel * pool.pooled_strides[1] + row * pool.pooled_strides[2])
    next.at = next.grad
    next.at_item = 0        # bits are fetched where they are read
    next.at_pitch = 0
    if pool.argmax:
        next.at = at + pool.index_item * (channel * pool.index_strides[1] + row * pool.index_strides[2])
        next.at_item = pool.index_item
        next.at_pitch = pool.index_item * pool.index_strides[1]
    next.grad_item = sizeof(element)
    next.grad_pitch = next.grad_item * pool.pooled_strides[1]
    if (pool.index_strides[3] != 1 or pool.pooled_strides[3] != 1
            or next.grad_pitch * (count - 1) + next.grad_item * n > end - next.grad):
        next.at = NULL
    return next


cdef inline int64_t fetch_next(const Ahead* next, int64_t channel, int64_t channels, int64_t i,
                               int64_t left) noexcept nogil:
    """Windows from `i` on, of `left` ones, of so many channels. Returns how many are to be added before the others are
    fetched."""
    cdef int64_t n = least(left, STRETCH)
    cdef int64_t c
    if next.at == NULL:
        return left
    for c in range(channel, channel + channels):
        fetch(next.at + c * next.at_pitch + i * next.at_item, n * next.at_item)
        fetch(next.grad + c * next.grad_pitch + i * next.grad_item, n * next.grad_item)
    return n


cdef inline void scatter_some(term* sums, int64_t sum_pitch, uint32_t low, uint32_t size, const term* grad,
                              int64_t grad_pitch, const char* mask, int64_t mask_pitch, int64_t channels,
                              int64_t together, int64_t n, bint whole, element* marks,
                              int64_t mark_pitch) noexcept nogil:
    """scatter_indices of any number of channels, up to `together` side by side, which is from 1 to TOGETHER."""
    cdef int64_t some
    while channels > 0:
        some = least(channels, together)
        if some == TOGETHER:
            scatter_indices(sums, sum_pitch, low, size, grad, grad_pitch, mask, mask_pitch, n, TOGETHER, whole, marks,
                            mark_pitch)
        elif some == 3:
            scatter_indices(sums, sum_pitch, low, size, grad, grad_pitch, mask, mask_pitch, n, 3, whole, marks,
                            mark_pitch)
        elif some == 2:
            scatter_indices(sums, sum_pitch, low, size, grad, grad_pitch, mask, mask_pitch, n, 2, whole, marks,
                            mark_pitch)
        else:
            scatter_indices(sums, sum_pitch, low, size, grad, grad_pitch, mask, mask_pitch, n, 1, whole, marks,
                            mark_pitch)
        sums += some * sum_pitch
        grad += some * grad_pitch
        mask += 4 * some * mask_pitch
        marks += some * mark_pitch
        channels -= some


# --- places by bits -------------------------------------------------------------------------------------------------

cdef inline lane_type lanes_between(int64_t begin, int64_t end, const lane_type* kind) noexcept nogil:
    """All ones in lanes [begin, end)."""
    cdef lane_type some
    simd_load(&some, lane_numbers)
    return <lane_type>(some >= <uint16_t>begin) & <lane_type>(some < <uint16_t>end)


cdef inline unsigned any_lane(const lane_type* x) noexcept nogil:
    """The bits that are set in any lane."""
    cdef uint64_t[8] part
    cdef uint64_t any = 0
    cdef int64_t i
    simd_store(<uint64_t*>part, x)
    for i in range(<int64_t>sizeof(lane_type) // 8):
        any |= part[i]
    any |= any >> 32
    return <unsigned>((any | any >> 16) & 0xffff)


cdef inline void store_nibbles(uint16_t* nibbles, const lanes_of_words* planes) noexcept nogil:
    """nibbles[r*BLOCK:] gets in its nibble j the number whose bit b is bit 4*j + r of planes[b]."""
    cdef lanes_of_words even_0 = (planes[0] & 0x5555) | ((planes[1] & 0x5555) << 1)
    cdef lanes_of_words even_1 = (planes[2] & 0x5555) | ((planes[3] & 0x5555) << 1)
    cdef lanes_of_words odd_0 = ((planes[0] >> 1) & 0x5555) | (planes[1] & 0xaaaa)
    cdef lanes_of_words odd_1 = ((planes[2] >> 1) & 0x5555) | (planes[3] & 0xaaaa)
    cdef lanes_of_words word = (even_0 & 0x3333) | ((even_1 & 0x3333) << 2)
    simd_store(nibbles, &word)
    word = (odd_0 & 0x3333) | ((odd_1 & 0x3333) << 2)
    simd_store(nibbles + BLOCK, &word)
    word = ((even_0 >> 2) & 0x3333) | (even_1 & 0xcccc)
    simd_store(nibbles + 2 * BLOCK, &word)
    word = ((odd_0 >> 2) & 0x3333) | (odd_1 & 0xcccc)
    simd_store(nibbles + 3 * BLOCK, &word)


cdef inline lane_type load_words(const char* words, int64_t ahead, const lane_type* kind) noexcept nogil:
    cdef lane_type x
    prefetch(words + ahead)
    simd_load(&x, words)
    return x


cdef inline lane_type kernel_row(lane_type* columns, lane_type* twice, const char* words, int64_t pitch, int64_t begin,
                                 int64_t end, int64_t ahead) noexcept nogil:
    """The bits that are set at any position of a kernel row, of columns [begin, end); begin is a multiple of 4.
    columns[b] gets those at the columns whose number has bit b, twice those at more than one. What lies `ahead` bytes
    behind is fetched."""
    # Names of their own: what pointers lead to would be stored before each load.
    cdef lane_type ones = columns[0]
    cdef lane_type twos = columns[1]
    cdef lane_type fours = columns[2]
    cdef lane_type eights = columns[3]
    cdef lane_type more = twice[0]
    cdef lane_type row, a, b, c, any
    cdef int64_t kw = begin
    words += 2 * begin * pitch
    simd_zero(&row)
    while kw < end:
        any = load_words(words, ahead, twice)
        more |= row & any
        if end - kw >= 4:
            a = load_words(words + 2 * pitch, ahead, twice)
            b = load_words(words + 4 * pitch, ahead, twice)
            c = load_words(words + 6 * pitch, ahead, twice)
            ones |= a | c
            twos |= b | c
            more |= any & a
            any |= a
            more |= any & b
            any |= b
            more |= any & c
            any |= c
            more |= row & any
        else:
            if end - kw > 1:
                a = load_words(words + 2 * pitch, ahead, twice)
                ones |= a
                more |= (row | any) & a
                any |= a
            if end - kw > 2:
                b = load_words(words + 4 * pitch, ahead, twice)
                twos |= b
                more |= (row | any) & b
                any |= b
        row |= any
        if kw & 4:
            fours |= any
        if kw & 8:
            eights |= any
        kw += 4
        words += 8 * pitch
    columns[0] = ones
    columns[1] = twos
    columns[2] = fours
    columns[3] = eights
    twice[0] = more
    return row


cdef inline void add_row(lane_type* rows, lane_type* once, lane_type* twice, lane_type row, int64_t kh) noexcept nogil:
    """The bits that are set in kernel row kh: rows[b] gets them if its number has bit b, twice those seen before."""
    twice[0] |= once[0] & row
    once[0] |= row
    if kh & 1:
        rows[0] |= row
    if kh & 2:
        rows[1] |= row
    if kh & 4:
        rows[2] |= row
    if kh & 8:
        rows[3] |= row


cdef inline unsigned window_codes(uint16_t* nibbles, const char* words, const MaxPool2d* pool, int64_t n, int64_t left,
                                  int64_t run) noexcept nogil:
    """Where n <= BLOCK windows have their maxima, in a kernel of at most 16 x 16 positions: bits 4*j .. 4*j + 3 of
    nibbles[r*BLOCK + i] are the kernel row for window i and channel 4*j + r, those of nibbles[(4 + r)*BLOCK + i] the
    kernel column. Returns the channels that have not exactly one bit in each window: of those all this means
    nothing. `left`: words from the first window's to the end of its row of the table, n + 16 or more. `run`: 1 or RUN
    vectors of windows are made at a time."""
    cdef int64_t lanes = <int64_t>sizeof(lanes_of_words) // 2
    cdef int64_t i = 0
    cdef int64_t ahead = TABLE_AHEAD if pool.h.out * pool.w.out <= BLOCK else WORDS_AHEAD
    cdef int64_t at, kh, v, count
    cdef lanes_of_words[4 * RUN] rows
    cdef lanes_of_words[4 * RUN] columns
    cdef lanes_of_words[RUN] once
    cdef lanes_of_words[RUN] twice
    cdef lanes_of_words row, missed
    simd_zero(&missed)
    while i < n:
        count = least(ceil_div(n - i, lanes), run) if run > 1 else 1
        for v in range(count):
            simd_zero(&once[v])
            simd_zero(&twice[v])
            for kh in range(4):
                simd_zero(&rows[4 * v + kh])
                simd_zero(&columns[4 * v + kh])
        for kh in range(pool.h.kernel):
            for v in range(count):
                at = least(i + v * lanes, left - lanes)
                row = kernel_row(&columns[4 * v], &twice[v], words + 2 * (kh * pool.w.kernel * pool.pitch + at),
                                 pool.pitch, 0, pool.w.kernel, ahead)
                add_row(&rows[4 * v], &once[v], &twice[v], row, kh)
        for v in range(count):
            at = least(i, left - lanes)
            store_nibbles(nibbles + at, &rows[4 * v])
            store_nibbles(nibbles + 4 * BLOCK + at, &columns[4 * v])
            twice[v] |= ~once[v]
            if n - i < lanes:
                twice[v] &= lanes_between(i - at, n - at, &row)
            missed |= twice[v]
            i += lanes
    return any_lane(&missed)


cdef inline void window_starts(uint16_t* tops, uint16_t* lefts, const MaxPool2d* pool, int64_t rows) noexcept nogil:
    """tops[i], lefts[i]: where window i of a block of `rows` rows, or of a part of one, begins, modulo 2**16; rows are
    counted from the first of the block."""
    cdef int64_t windows = least(pool.w.out, BLOCK)
    cdef int64_t i = 0
    cdef int64_t row, j
    for row in range(rows):
        for j in range(windows):
            tops[i] = <uint16_t>(row * pool.h.stride)
            lefts[i] = <uint16_t>(j * pool.w.stride - pool.w.pad)
            i += 1
    while i < BLOCK:
        tops[i] = lefts[i] = 0
        i += 1


cdef inline bint window_places(uint16_t* at, const uint16_t* nibbles, int64_t c, const uint16_t* tops, uint16_t top,
                               const uint16_t* lefts, uint16_t left, uint16_t height, uint16_t width,
                               int64_t n) noexcept nogil:
    """at[i] = the position, counted from the first of a band of `height` rows of `width`, at which channel c has the
    maximum of window i, or height*width if it lies elsewhere, in the padding, say; i < n. Whether some window's does.
    The window begins `top` + tops[i] rows below the band's first and `left` + lefts[i] columns to the right of the
    image's first, modulo 2**16. All numbers are below 2**15, and a negative one is no less than -2**15: as uint16 it is
    beyond any row and column."""
    cdef int64_t lanes = <int64_t>sizeof(lanes_of_2) // 2
    cdef int shift = <int>(c // 4 * 4)
    cdef int64_t i = 0
    cdef lanes_of_2 row, column, first, place, inside, missed
    nibbles += c % 4 * BLOCK
    simd_zero(&missed)
    while i < n:
        simd_load(&row, nibbles + i)
        simd_load(&column, nibbles + 4 * BLOCK + i)
        simd_load(&first, tops + i)
        row = (row >> shift & 15) + first + top
        simd_load(&first, lefts + i)
        column = (column >> shift & 15) + first + left
        inside = <lanes_of_2>(row < height) & <lanes_of_2>(column < width)
        place = row * width + column
        place = (place & inside) | (<uint16_t>(height * width) & ~inside)
        simd_store(at + i, &place)
        if n - i < lanes:
            inside |= ~lanes_between(0, n - i, &inside)
        missed |= ~inside
        i += lanes
    return any_lane(&missed) != 0


cdef inline void put_below(term* sums, const term* grad, const uint16_t* at, int64_t i, uint16_t size,
                           bint whole, element* marks) noexcept nogil:
    if whole or at[i] < size:
        put(sums, at[i], grad[i], marks)


cdef inline void scatter_to(term* sums, int64_t sum_pitch, const uint16_t* at, const term* grad, int64_t grad_pitch,
                            int64_t channels, int64_t n, uint16_t size, bint whole, element* marks,
                            int64_t mark_pitch) noexcept nogil:
    """sums[c*sum_pitch + at[c*BLOCK + i]] += grad[c*grad_pitch + i], c < channels <= TOGETHER, i < n, where the place
    is below `size`. `whole`: all are."""
    cdef int64_t i
    if channels == TOGETHER:
        for i in range(n):
            put_below(sums, grad, at, i, size, whole, marks)
            put_below(sums + sum_pitch, grad + grad_pitch, at + BLOCK, i, size, whole, marks + mark_pitch)
            put_below(sums + 2 * sum_pitch, grad + 2 * grad_pitch, at + 2 * BLOCK, i, size, whole,
                      marks + 2 * mark_pitch)
            put_below(sums + 3 * sum_pitch, grad + 3 * grad_pitch, at + 3 * BLOCK, i, size, whole,
                      marks + 3 * mark_pitch)
        return
    while channels > 0:
        for i in range(n):
            put_below(sums, grad, at, i, size, whole, marks)
        sums += sum_pitch
        grad += grad_pitch
        at += BLOCK
        marks += mark_pitch
        channels -= 1


# --- kernel columns apart -------------------------------------------------------------------------------------------

cdef inline void join_columns(term* to, const term* sums, int64_t pitch, int64_t n) noexcept nogil:
    """to[i] = sums[2*pitch + i] + sums[pitch + i] + sums[i] for i < n, `to` apart from them or the same: ascending
    windows meet a position at descending kernel columns."""
    cdef int64_t i
    for i in range(n):
        to[i] = sums[2 * pitch + i] + sums[pitch + i] + sums[i]
