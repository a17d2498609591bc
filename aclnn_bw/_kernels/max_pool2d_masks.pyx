# cython: cdivision=True
"""mask_to_indices and indices_to_mask: a max pool's mask (max_pool2d.pxd of the core draws it) from and to flat indices
ih*W + iw.

To indices: the first kernel position that lies in the image and has its bit. Where a channel has one bit in each window
of a block, and kernels have up to 16x16 positions, its places are found as the gradient finds them
(max_pool2d_places.pxd); else the words are looked at position by position, from the last to the first, so that the
first one stays.
From indices: where an index is compared with its window as the gradient compares it (max_pool2d_indices.pxd says when),
the windows of a band are listed once for its channels; else it is divided by the width of the image. What lies outside
of its window is then looked for plane by plane, so that the first one is named.

Bounds. Words are read at kernel positions below K and windows below Ho*Wo, but for vectors that reach beyond a row
without leaving the table, and written there and to the pitch; what the container has beyond is zeroed in equal shares.
Indices are read and written by the strides of their tensor. The core has proved the shapes.
"""
from libc.stdint cimport int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memset

from aclnn_bw._core.arithmetic cimport ceil_div, least, most, quotient
from aclnn_bw._core.max_pool2d cimport BLOCK, RECIPROCAL_BITS, MaxPool2d, MaxPool2dMasksPlan
from aclnn_bw._core.types cimport (
    ALL_GOOD, DT_INT16, DT_INT32, DT_INT64, DT_INT8, DT_UINT16, DT_UINT32, DT_UINT64, RangeFn,
)
from aclnn_bw._kernels.max_pool2d_indices cimport index_at, lies_inside
from aclnn_bw._kernels.max_pool2d_places cimport window_codes, window_places, window_starts, word_at
from aclnn_bw._kernels.max_pool2d_words cimport clear_share, make_words

ctypedef fused integer:
    int8_t
    int16_t
    int32_t
    int64_t
    uint8_t
    uint16_t
    uint32_t
    uint64_t

# The rows of windows of a unit, (n*groups + group)*bands + band; of an argmax mask a group is one channel.
cdef struct Unit:
    int64_t n
    int64_t group
    int64_t oh
    int64_t end
    int64_t lanes
    int64_t words       # byte offset of the group's words, or of its plane of indices
    int64_t indices     # elements to its first plane


cdef Unit unit_of(const MaxPool2d* pool, int64_t number) noexcept nogil:
    cdef Unit u
    u.oh = number % pool.bands * pool.band
    u.end = least(u.oh + pool.band, pool.h.out)
    u.group = number // pool.bands
    u.n = u.group // pool.groups
    u.group -= u.n * pool.groups
    u.lanes = least(pool.lanes, pool.channels - u.group * pool.lanes)
    if pool.argmax:
        u.words = 4 * (u.n * pool.channels + u.group) * pool.h.out * pool.w.out
    else:
        u.words = 2 * (u.n * pool.groups + u.group) * pool.kernel_size * pool.pitch
    u.indices = u.n * pool.pooled_strides[0] + u.group * pool.lanes * pool.pooled_strides[1]
    return u


# --- to indices ------------------------------------------------------------------------------------------------------

cdef void find_first(const MaxPool2d* pool, int32_t* codes, const char* words, int lane, int64_t oh) noexcept nogil:
    """Of each window of a row its first position in the image whose bit is set, or the number of positions."""
    cdef int64_t n = pool.w.out
    cdef int64_t kh = pool.h.kernel - 1
    cdef int64_t i, kw, row, begin, end, room
    cdef int32_t k
    cdef const word_at* word
    for i in range(n):
        codes[i] = <int32_t>pool.kernel_size
    while kh >= 0:
        row = oh * pool.h.stride - pool.h.pad + kh
        kw = pool.w.kernel - 1
        while kw >= 0 and 0 <= row < pool.h.size:
            # The windows whose column kw lies in the image.
            begin = ceil_div(most(pool.w.pad - kw, 0), pool.w.stride)
            room = pool.w.size - 1 + pool.w.pad - kw
            end = least(n, quotient(room, pool.w.stride) + 1) if room >= 0 else 0
            k = <int32_t>(kh * pool.w.kernel + kw)
            word = <const word_at*>(words + 2 * (k * pool.pitch + oh * n))
            for i in range(begin, end):
                codes[i] = k if word[i] >> lane & 1 else codes[i]
            kw -= 1
        kh -= 1


cdef void search_rows(const MaxPool2dMasksPlan* plan, int64_t* to, const char* words, int lane, int64_t oh, int64_t end,
                      char* scratch) noexcept nogil:
    """The indices of rows [oh, end) of windows of a channel, any bits."""
    cdef const MaxPool2d* pool = &plan.pool
    cdef int32_t* codes = <int32_t*>(scratch + plan.at_codes)
    cdef const int64_t* offsets = <const int64_t*>(scratch + plan.at_offsets)
    cdef int64_t i, k, start
    for oh in range(oh, end):
        find_first(pool, codes, words, lane, oh)
        start = (oh * pool.h.stride - pool.h.pad) * pool.w.size - pool.w.pad
        for i in range(pool.w.out):
            k = codes[i]
            to[i] = -1 if k == pool.kernel_size else start + i * pool.w.stride + offsets[k]
        to += pool.w.out


cdef void find_rows(const MaxPool2dMasksPlan* plan, int64_t* to, const char* words, int64_t lanes, int64_t oh,
                    int64_t end, char* scratch) noexcept nogil:
    """Those of rows that are a block, or of one row in parts, of `lanes` channels."""
    cdef const MaxPool2d* pool = &plan.pool
    cdef uint16_t* tops = <uint16_t*>(scratch + plan.at_band)
    cdef uint16_t* lefts = tops + BLOCK
    cdef uint16_t* places = lefts + BLOCK
    cdef uint16_t* nibbles = places + BLOCK
    cdef int64_t n = pool.w.out
    cdef int64_t top = oh * pool.h.stride - pool.h.pad
    cdef int64_t first = most(top, 0)
    cdef int64_t bottom = least((end - 1) * pool.h.stride - pool.h.pad + pool.h.kernel, pool.h.size)
    cdef int64_t base = first * pool.w.size
    cdef int64_t start = 0
    cdef int64_t lane, count, i
    cdef int64_t* row
    cdef unsigned other
    while start < (end - oh) * n:
        count = least((end - oh) * n - start, BLOCK)
        other = window_codes(nibbles, words + 2 * (oh * n + start), pool, count, pool.pitch - oh * n - start, 1)
        for lane in range(lanes):
            row = to + lane * pool.pooled_strides[1] + oh * n
            if other >> lane & 1 or window_places(
                    places, nibbles, lane, tops, <uint16_t>(top - first), lefts, <uint16_t>(start * pool.w.stride),
                    <uint16_t>(bottom - first), <uint16_t>pool.w.size, count):
                search_rows(plan, row, words, <int>lane, oh, end, scratch)
            else:
                for i in range(count):
                    row[start + i] = base + places[i]
        start += count


cdef int64_t to_indices(const void* plan_pointer, char** data, char* scratch, int64_t begin,
                        int64_t end) noexcept nogil:
    cdef const MaxPool2dMasksPlan* plan = <const MaxPool2dMasksPlan*>plan_pointer
    cdef const MaxPool2d* pool = &plan.pool
    cdef int64_t* offsets = <int64_t*>(scratch + plan.at_offsets)
    cdef int64_t lane, oh, i, k
    cdef const char* words
    cdef int64_t* to
    cdef Unit u
    for k in range(0 if pool.argmax else pool.kernel_size):
        offsets[k] = k // pool.w.kernel * pool.w.size + k % pool.w.kernel
    if plan.block > 0:
        window_starts(<uint16_t*>(scratch + plan.at_band), <uint16_t*>(scratch + plan.at_band) + BLOCK, pool,
                      plan.block)
    while begin < end:
        u = unit_of(pool, begin)
        begin += 1
        words = data[0] + u.words
        to = <int64_t*>data[1] + u.indices
        if pool.argmax:
            for i in range(u.oh * pool.w.out, u.end * pool.w.out):
                to[i] = (<const index_at*>words)[i]
            continue
        oh = u.oh
        while plan.block > 0 and oh < u.end:
            find_rows(plan, to, words, u.lanes, oh, least(oh + plan.block, u.end), scratch)
            oh += plan.block
        for lane in range(0 if plan.block > 0 else u.lanes):
            search_rows(plan, to + lane * pool.pooled_strides[1] + oh * pool.w.out, words, <int>lane, oh, u.end,
                        scratch)
    return ALL_GOOD


# --- from indices ----------------------------------------------------------------------------------------------------

cdef void read_row(int64_t* to, const integer* source, int64_t stride, int64_t n) noexcept nogil:
    """As they are; those from 2**63 on are negative, and outside as well."""
    cdef int64_t i
    if stride == 1:
        for i in range(n):
            to[i] = <int64_t>source[i]
    else:
        for i in range(n):
            to[i] = <int64_t>source[i * stride]


cdef void read_indices(const MaxPool2dMasksPlan* plan, int64_t* to, const char* first, int64_t at,
                       int64_t n) noexcept nogil:
    """n indices of a row, or of rows that lie end to end, from `at` elements on."""
    cdef int64_t stride = plan.pool.pooled_strides[3]
    if plan.dtype == DT_INT64 or plan.dtype == DT_UINT64:
        read_row(to, <const int64_t*>first + at, stride, n)
    elif plan.dtype == DT_INT32:
        read_row(to, <const int32_t*>first + at, stride, n)
    elif plan.dtype == DT_INT16:
        read_row(to, <const int16_t*>first + at, stride, n)
    elif plan.dtype == DT_INT8:
        read_row(to, <const int8_t*>first + at, stride, n)
    elif plan.dtype == DT_UINT32:
        read_row(to, <const uint32_t*>first + at, stride, n)
    elif plan.dtype == DT_UINT16:
        read_row(to, <const uint16_t*>first + at, stride, n)
    else:
        read_row(to, <const uint8_t*>first + at, stride, n)


cdef void list_windows(const MaxPool2dMasksPlan* plan, uint32_t* lists, int64_t oh, int64_t end,
                       int64_t size) noexcept nogil:
    """Of the windows of rows [oh, end), `size` in all, in lists one behind the other: the first position in the image,
    the distance of the last from it, its last column, and the kernel position of the first."""
    cdef const MaxPool2d* pool = &plan.pool
    cdef int64_t i, top, first, bottom, left, start, stop
    for oh in range(oh, end):
        top = oh * pool.h.stride - pool.h.pad
        first = most(top, 0)
        bottom = least(top + pool.h.kernel, pool.h.size)
        for i in range(pool.w.out):
            left = i * pool.w.stride - pool.w.pad
            start = most(left, 0)
            stop = least(left + pool.w.kernel, pool.w.size)
            lists[i] = <uint32_t>(first * pool.w.size + start)
            lists[size + i] = <uint32_t>((bottom - first - 1) * pool.w.size + stop - start - 1)
            lists[2 * size + i] = <uint32_t>(stop - start - 1)
            lists[3 * size + i] = <uint32_t>((first - top) * pool.w.kernel + start - left)
        lists += pool.w.out


cdef bint compare_listed(const MaxPool2dMasksPlan* plan, int32_t* codes, const int64_t* indices, const uint32_t* lists,
                         int64_t size, int64_t n) noexcept nogil:
    """As find_positions, n windows from the first of the lists on."""
    cdef uint32_t width = <uint32_t>plan.pool.w.size
    cdef uint32_t kernel = <uint32_t>plan.pool.w.kernel
    cdef uint32_t reciprocal = <uint32_t>plan.reciprocal
    cdef int32_t none = -1 if plan.none else -3     # which no code is
    cdef const uint32_t* lasts = lists + size
    cdef const uint32_t* columns = lists + 2 * size
    cdef const uint32_t* positions = lists + 3 * size
    cdef uint32_t distance, row, column, good
    cdef uint32_t missed = 0
    cdef int64_t i
    for i in range(n):      # what int32 does not hold lies outside as -2 does
        codes[i] = <int32_t>indices[i] if -1 <= indices[i] <= 2147483647 else -2
    for i in range(n):
        distance = <uint32_t>codes[i] - lists[i]
        row = distance * reciprocal >> <uint32_t>RECIPROCAL_BITS
        column = distance - row * width
        good = <uint32_t>(distance <= lasts[i]) & <uint32_t>(column <= columns[i])
        missed |= (good ^ 1) & <uint32_t>(codes[i] != none)
        codes[i] = <int32_t>(row * kernel + column + positions[i]) if good else -1
    return missed == 0


cdef bint find_positions(const MaxPool2dMasksPlan* plan, int32_t* codes, const int64_t* indices,
                         int64_t oh) noexcept nogil:
    """Of each window of a row the kernel position of its index, or -1 for no index. False if one lies outside."""
    cdef const MaxPool2d* pool = &plan.pool
    cdef int64_t top = oh * pool.h.stride - pool.h.pad
    cdef int64_t left = -pool.w.pad
    cdef int64_t i, kh, kw
    cdef bint good
    cdef bint all_good = True
    for i in range(pool.w.out):
        kh = indices[i] // pool.w.size
        kw = indices[i] - kh * pool.w.size - left
        good = lies_inside(pool, oh, i, indices[i])
        codes[i] = <int32_t>((kh - top) * pool.w.kernel + kw) if good else -1
        all_good = all_good and (good or (plan.none and indices[i] == -1))
        left += pool.w.stride
    return all_good


cdef int64_t first_outside(const MaxPool2dMasksPlan* plan, const Unit* u, char* scratch,
                           const char* first) noexcept nogil:
    """The first bad index of a group."""
    cdef const MaxPool2d* pool = &plan.pool
    cdef int64_t* indices = <int64_t*>(scratch + plan.at_indices)
    cdef int64_t lane, oh, ow
    for lane in range(u.lanes):
        for oh in range(pool.h.out):
            read_indices(plan, indices, first, u.indices + lane * pool.pooled_strides[1] + oh * pool.pooled_strides[2],
                         pool.w.out)
            for ow in range(pool.w.out):
                if not lies_inside(pool, oh, ow, indices[ow]) and not (plan.none and indices[ow] == -1):
                    return ((u.n * pool.channels + u.group * pool.lanes + lane) * pool.h.out + oh) * pool.w.out + ow
    return ALL_GOOD


cdef bint positions_of_band(const MaxPool2dMasksPlan* plan, const Unit* u, char* scratch, const char* first,
                            int64_t lane) noexcept nogil:
    """Read the indices of a unit's channel, and find their kernel positions. False if one lies outside."""
    cdef const MaxPool2d* pool = &plan.pool
    cdef int64_t n = pool.w.out
    cdef int64_t rows = u.end - u.oh
    cdef int64_t at = u.indices + lane * pool.pooled_strides[1] + u.oh * pool.pooled_strides[2]
    cdef int32_t* codes = <int32_t*>(scratch + plan.at_codes)
    cdef int64_t* indices = <int64_t*>(scratch + plan.at_indices)
    cdef int64_t row
    cdef bint good = True
    if pool.pooled_strides[3] == 1 and pool.pooled_strides[2] == n:
        read_indices(plan, indices, first, at, rows * n)
    else:
        for row in range(rows):
            read_indices(plan, indices + row * n, first, at + row * pool.pooled_strides[2], n)
    if plan.reciprocal > 0:
        return compare_listed(plan, codes, indices, <const uint32_t*>(scratch + plan.at_offsets), rows * n, rows * n)
    for row in range(rows):
        good = find_positions(plan, codes + row * n, indices + row * n, u.oh + row) and good
    return good


cdef void set_bits(char* words, const int32_t* codes, int64_t pitch, unsigned bit, int64_t n) noexcept nogil:
    cdef word_at* word
    cdef int64_t i
    for i in range(n):
        if codes[i] >= 0:
            word = <word_at*>(words + 2 * (codes[i] * pitch + i))
            word[0] = <uint16_t>(word[0] | bit)


cdef int64_t from_indices(const void* plan_pointer, char** data, char* scratch, int64_t begin,
                          int64_t end) noexcept nogil:
    cdef const MaxPool2dMasksPlan* plan = <const MaxPool2dMasksPlan*>plan_pointer
    cdef const MaxPool2d* pool = &plan.pool
    cdef int32_t* row = <int32_t*>(scratch + plan.at_codes)
    cdef uint16_t* codes = <uint16_t*>(scratch + plan.at_band)
    cdef const int64_t* indices = <const int64_t*>(scratch + plan.at_indices)
    cdef int64_t n = pool.w.out
    cdef int64_t listed = 0
    cdef int64_t listed_end = 0
    cdef int64_t lane, i, k, first, size, stop
    cdef char* words
    cdef Unit u
    while begin < end:
        u = unit_of(pool, begin)
        clear_share(pool, data[1], begin)
        begin += 1
        words = data[1] + u.words
        first = u.oh * n
        size = (u.end - u.oh) * n
        for k in range(0 if pool.argmax else pool.kernel_size):
            # The last band zeroes the rest of the row; bits that are set one by one want zeros to begin with.
            i = first + size if plan.coded else first
            stop = pool.pitch if u.end == pool.h.out else first + size
            memset(words + 2 * (k * pool.pitch + i), 0, <size_t>(2 * (stop - i)))
        if plan.reciprocal > 0 and (u.oh != listed or u.end != listed_end):
            listed = u.oh
            listed_end = u.end
            list_windows(plan, <uint32_t*>(scratch + plan.at_offsets), u.oh, u.end, size)
        for lane in range(u.lanes):
            if not positions_of_band(plan, &u, scratch, data[0], lane):
                return first_outside(plan, &u, scratch, data[0])
            if pool.argmax:
                for i in range(size):
                    (<index_at*>(words + 4 * first))[i] = <int32_t>indices[i]
            elif plan.coded:
                for i in range(size):
                    codes[lane * size + i] = <uint16_t>row[i]
            else:
                set_bits(words + 2 * first, row, pool.pitch, <unsigned>(1 << lane), size)
        if plan.coded:
            k = 0
            while k < pool.kernel_size:
                make_words(words + 2 * (k * pool.pitch + first),
                           words + 2 * (least(k + 1, pool.kernel_size - 1) * pool.pitch + first), codes, size, u.lanes,
                           k, size)
                k += 2
    return ALL_GOOD


cdef void max_pool2d_masks_kernels(RangeFn* row) noexcept nogil:
    """Put this instruction set's kernels into their row of the table: to indices, and from them."""
    row[0] = to_indices
    row[1] = from_indices
