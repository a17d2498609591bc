# cython: cdivision=True
"""MaxPool2dWithMask and MaxPool2dWithIndices, ACROSS and LAST: channels lie side by side in a vector, and windows come
one after the other.

The formula, its order and its bytes are those of max_pool2d_forward.pyx, whose vectors hold windows of one row: few to
a row leave them empty. Here a window is compared position by position, all channels at once. ACROSS transposes small
planes of up to 16 channels for that, of as many images as have no more together, but not the rows between windows, and
maxima and places back. A comparison waits for the one before, so windows of one shape that are neighbours in a row are
compared in turn, four vectors of them (1.0 to 1.9 times as fast); and of large kernels each row of the image is
compared once for all windows that it lies in, and windows are joined from their rows (1.2 to 5 times). LAST finds the
channels side by side in self, 16 or more; the last ones that are worked on at a time overlap those before. Where they
lie so in out, and in indices, maxima and places are stored as they are; else they become planes, or codes of words, row
band by row band.

Bounds. Windows begin and end in the image, and the scratch holds each position and each window of what is not worked on
where it lies, for as many channels as are worked on at a time, and of rows that are compared first the kernel's and up
to three more, counted from the band's first as lines modulo `kept`, a multiple of the two or four that are made at a
time. Lanes beyond the last channel hold zeros, or what was there before, and are not stored. Codes and words lie as in
max_pool2d_forward.pyx. Phase 1 has proved the shapes, and that all windows of a unit of ACROSS are one band. Of LAST no
lane is beyond the last channel.

`python -m benchmarks.sweep` measures.
"""
from libc.stdint cimport int32_t, int64_t, uint16_t
from libc.string cimport memcpy, memset

from aclnn_bw._core.arithmetic cimport ceil_div, least, most, quotient
from aclnn_bw._core.max_pool2d cimport LANES, LAST, MaxPool2d, MaxPool2dForwardPlan, PoolAxis
from aclnn_bw._core.types cimport ALL_GOOD, SLOT_BF16, SLOT_F16, SLOT_F32, SLOT_F64, RangeFn
from aclnn_bw._kernels.max_pool2d_indices cimport index_at
from aclnn_bw._kernels.max_pool2d_words cimport clear_share, make_words
from aclnn_bw._kernels.planes cimport load_windows, store_planes, turn
from aclnn_bw._kernels.simd cimport (
    VECTOR_BYTES, bfloat, count, element, half, load, real, simd_cut, simd_tidy_nans, simd_zero, store, take_greater,
    vector,
)

# The channels that are worked on, where they lie side by side: in the scratch, or in self and in out. Distances in
# elements.
cdef struct Work:
    const char* image       # as it is stored
    const char* image_end   # of self
    int64_t image_down
    int64_t image_along
    char* maxima            # likewise
    int64_t maxima_down
    int64_t maxima_along
    char* places            # [window][channel], of 2 bytes, if they become codes, or 4
    int64_t width           # channels


# Some windows of one shape, or one window of some vectors of channels. Distances in elements, but of places in bytes.
cdef struct Windows:
    int64_t many            # at most `windows_at_once`
    int64_t rows            # in the image
    int64_t columns
    int64_t down            # between positions
    int64_t along
    int64_t apart           # between windows
    int64_t to_apart        # between their maxima
    int64_t places_apart
    int64_t place_bytes
    int64_t place           # of the first position
    int64_t place_down
    int64_t place_apart


cdef inline int64_t channels_at_once(const real* compared) noexcept nogil:
    return least(2 * VECTOR_BYTES // <int64_t>sizeof(real), LANES)


cdef inline int64_t windows_at_once(const real* compared) noexcept nogil:
    """Two or four, of so many channels each: four vectors do not wait for each other."""
    return quotient(4 * VECTOR_BYTES // <int64_t>sizeof(real), channels_at_once(compared))


cdef inline void store_window(element* to, char* places, vector maximum, vector where, int64_t place,
                              int64_t place_bytes, const real* compared) noexcept nogil:
    """Of as many channels as a vector has lanes; `where` counts from `place` on."""
    if element is bfloat:
        simd_tidy_nans(&maximum)
    store(to, maximum)
    where = count(where, place, compared)
    simd_cut(places, &where, sizeof(real), <size_t>place_bytes)


cdef void compare_window(const Windows* at, const element* image, element* to, char* places,
                         const real* compared) noexcept nogil:
    """One alone: as compare_windows of four times the same it would take 1.05 to 1.35 times as long."""
    cdef int64_t lanes = VECTOR_BYTES // <int64_t>sizeof(real)
    cdef bint two = 2 * lanes <= LANES
    cdef int64_t rows = at.rows
    cdef int64_t columns
    cdef const element* position
    cdef vector most_a, most_b, where_a, where_b, here, value
    simd_zero(&here)
    where_a = where_b = here
    most_a = most_b = load(image, &value)
    if two:
        most_b = load(image + lanes, &value)
    while rows > 0:
        position = image
        columns = at.columns
        while columns > 0:
            take_greater(&most_a, &where_a, load(position, &value), here, compared)
            if two:
                take_greater(&most_b, &where_b, load(position + lanes, &value), here, compared)
            here = count(here, 1, compared)
            position += at.along
            columns -= 1
        image += at.down
        here = count(here, at.place_down - at.columns, compared)
        rows -= 1
    store_window(to, places, most_a, where_a, at.place, at.place_bytes, compared)
    if two:
        store_window(to + lanes, places + lanes * at.place_bytes, most_b, where_b, at.place, at.place_bytes, compared)


cdef void compare_windows(const Windows* at, const element* image, element* to, char* places,
                          const real* compared) noexcept nogil:
    """The first begins at `image`. Where there are not so many, the last one is worked on again and again."""
    cdef int64_t lanes = VECTOR_BYTES // <int64_t>sizeof(real)
    cdef bint two = 2 * lanes <= LANES
    cdef int64_t next = lanes if two else 0
    cdef int64_t b = least(0 if two else 1, at.many - 1)
    cdef int64_t c = least(1 if two else 2, at.many - 1)
    cdef int64_t d = least(1 if two else 3, at.many - 1)
    cdef int64_t at_b = b * at.apart + next
    cdef int64_t at_c = c * at.apart
    cdef int64_t at_d = d * at.apart + next
    cdef int64_t rows = at.rows
    cdef int64_t columns
    cdef const element* position
    cdef vector most_a, most_b, most_c, most_d, where_a, where_b, where_c, where_d, here, value
    simd_zero(&here)
    where_a = where_b = where_c = where_d = here
    most_a = load(image, &value)
    most_b = load(image + at_b, &value)
    most_c = load(image + at_c, &value)
    most_d = load(image + at_d, &value)
    while rows > 0:
        position = image
        columns = at.columns
        while columns > 0:
            take_greater(&most_a, &where_a, load(position, &value), here, compared)
            take_greater(&most_b, &where_b, load(position + at_b, &value), here, compared)
            take_greater(&most_c, &where_c, load(position + at_c, &value), here, compared)
            take_greater(&most_d, &where_d, load(position + at_d, &value), here, compared)
            here = count(here, 1, compared)
            position += at.along
            columns -= 1
        image += at.down
        here = count(here, at.place_down - at.columns, compared)
        rows -= 1
    store_window(to, places, most_a, where_a, at.place, at.place_bytes, compared)
    store_window(to + b * at.to_apart + next, places + b * at.places_apart + next * at.place_bytes, most_b, where_b,
                 at.place + b * at.place_apart, at.place_bytes, compared)
    store_window(to + c * at.to_apart, places + c * at.places_apart, most_c, where_c,
                 at.place + c * at.place_apart, at.place_bytes, compared)
    store_window(to + d * at.to_apart + next, places + d * at.places_apart + next * at.place_bytes, most_d, where_d,
                 at.place + d * at.place_apart, at.place_bytes, compared)


cdef inline void compare_lines(const Windows* at, const element* lines, const real* wheres, int64_t slot,
                               int64_t slots, element* to, char* places, const real* compared) noexcept nogil:
    """A window of which each row is compared, from the line `slot` on."""
    cdef int64_t lanes = VECTOR_BYTES // <int64_t>sizeof(real)
    cdef bint two = 2 * lanes <= LANES
    cdef int64_t next = lanes if two else 0
    cdef int64_t rows = at.rows
    cdef const element* line = lines + slot * at.down
    cdef const real* where = wheres + slot * at.down
    cdef vector most_a, most_b, where_a, where_b, value
    most_a = load(line, &value)
    most_b = load(line + next, &value)
    where_a = load(where, &value)
    where_b = load(where + next, &value)
    while rows > 1:
        slot += 1
        line += at.down
        where += at.down
        if slot == slots:
            slot = 0
            line = lines
            where = wheres
        take_greater(&most_a, &where_a, load(line, &value), load(where, &value), compared)
        if two:
            take_greater(&most_b, &where_b, load(line + next, &value), load(where + next, &value), compared)
        rows -= 1
    store_window(to, places, most_a, where_a, at.place, at.place_bytes, compared)
    if two:
        store_window(to + next, places + next * at.place_bytes, most_b, where_b, at.place, at.place_bytes, compared)


cdef inline int64_t whole_windows(const PoolAxis* axis) noexcept nogil:
    """Those before the first that ends beyond the image."""
    if axis.size + axis.pad < axis.kernel:
        return 0
    return least(axis.out, quotient(axis.size + axis.pad - axis.kernel, axis.stride) + 1)


cdef void compare_rows(const MaxPool2dForwardPlan* plan, const Work* work, int64_t oh, int64_t end,
                       const element* stored, const real* compared) noexcept nogil:
    """The rows [oh, end) of windows."""
    cdef const MaxPool2d* pool = &plan.pool
    cdef char* places = work.places
    cdef int64_t whole = whole_windows(&pool.w)
    cdef int64_t ow, top, left, ih, iw
    cdef const element* image
    cdef element* to
    cdef Windows at
    at.down = work.image_down
    at.along = work.image_along
    at.apart = pool.w.stride * work.image_along
    at.to_apart = work.maxima_along
    at.place_bytes = 2 if plan.coded else 4
    at.places_apart = at.place_bytes * work.width
    at.place_down = pool.w.size if pool.argmax else pool.w.kernel
    at.place_apart = pool.w.stride if pool.argmax else 0
    while oh < end:
        top = oh * pool.h.stride - pool.h.pad
        ih = most(top, 0)
        at.rows = least(top + pool.h.kernel, pool.h.size) - ih
        to = <element*>work.maxima + oh * work.maxima_down
        ow = 0
        while ow < pool.w.out:
            left = ow * pool.w.stride - pool.w.pad
            iw = most(left, 0)
            at.many = least(whole - ow, windows_at_once(compared)) if left >= 0 and ow < whole else 1
            at.columns = least(left + pool.w.kernel, pool.w.size) - iw
            at.place = ih * pool.w.size + iw if pool.argmax else (ih - top) * at.place_down + iw - left
            image = <const element*>work.image + ih * at.down + iw * at.along
            if at.many == 1:
                compare_window(&at, image, to, places, compared)
            else:
                compare_windows(&at, image, to, places, compared)
            to += at.many * at.to_apart
            places += at.many * at.places_apart
            ow += at.many
        oh += 1


cdef void compare_along(const MaxPool2dForwardPlan* plan, const Work* work, element* lines, real* wheres, int64_t row,
                        int64_t rows, const real* compared) noexcept nogil:
    """Of some rows of the image, up to `windows_at_once`, what of each lies in each window."""
    cdef const MaxPool2d* pool = &plan.pool
    cdef int64_t ow, left, iw
    cdef Windows at
    at.many = rows
    at.rows = 1
    at.down = 0
    at.along = work.image_along
    at.apart = work.image_down
    at.to_apart = pool.w.out * work.width
    at.places_apart = at.to_apart * <int64_t>sizeof(real)
    at.place_bytes = sizeof(real)
    at.place_down = at.place_apart = pool.w.size if pool.argmax else pool.w.kernel
    for ow in range(pool.w.out):
        left = ow * pool.w.stride - pool.w.pad
        iw = most(left, 0)
        at.columns = least(left + pool.w.kernel, pool.w.size) - iw
        at.place = row * at.place_down + (iw if pool.argmax else iw - left)
        compare_windows(&at, <const element*>work.image + row * work.image_down + iw * at.along, lines,
                        <char*>wheres, compared)
        lines += work.width
        wheres += work.width


cdef void compare_band(const MaxPool2dForwardPlan* plan, const Work* work, element* lines, real* wheres, int64_t oh,
                       int64_t end, const real* compared) noexcept nogil:
    """The rows [oh, end) of windows: each row of the image is compared along the row for all windows that it lies in,
    first."""
    cdef const MaxPool2d* pool = &plan.pool
    cdef int64_t first = most(oh * pool.h.stride - pool.h.pad, 0)
    cdef int64_t last = least((end - 1) * pool.h.stride + pool.h.kernel - pool.h.pad, pool.h.size)
    cdef int64_t down = pool.w.out * work.width
    cdef int64_t made = first
    cdef int64_t ow, top, ih, slot, rows
    cdef element* to
    cdef char* places = work.places
    cdef Windows at
    at.down = down
    at.place_bytes = 2 if plan.coded else 4
    for oh in range(oh, end):
        top = oh * pool.h.stride - pool.h.pad
        ih = most(top, 0)
        at.rows = least(top + pool.h.kernel, pool.h.size) - ih
        while made < ih + at.rows:
            rows = least(windows_at_once(compared), last - made)
            slot = (made - first) % plan.kept
            compare_along(plan, work, lines + slot * down, wheres + slot * down, made, rows, compared)
            made += rows
        slot = (ih - first) % plan.kept
        at.place = 0 if pool.argmax else -top * pool.w.kernel
        to = <element*>work.maxima + oh * work.maxima_down
        for ow in range(pool.w.out):
            compare_lines(&at, lines + ow * work.width, wheres + ow * work.width, slot, plan.kept, to, places, compared)
            to += work.maxima_along
            places += at.place_bytes * work.width


cdef inline void last_window(const MaxPool2d* pool, Windows* at, const element* image, element* to, char* indices,
                             int64_t channels, const real* compared) noexcept nogil:
    """LAST: a window of all channels of a group."""
    cdef int64_t width = channels_at_once(compared)
    cdef bint wide = pool.index_item > <int64_t>sizeof(real)
    cdef int32_t[4 * LANES] places
    cdef int64_t c = 0
    cdef int64_t i
    at.apart = at.to_apart = width
    at.place_bytes = 4 if wide or sizeof(real) == 4 else pool.index_item
    at.places_apart = at.place_bytes * width
    at.place_apart = 0
    while c < channels:
        at.many = least(quotient(channels - c, width), windows_at_once(compared))
        if at.many == 0:
            at.many = 1
            c = channels - width
        if at.many == 1:
            compare_window(at, image + c, to + c, <char*>places if wide else indices + pool.index_item * c, compared)
        else:
            compare_windows(at, image + c, to + c, <char*>places if wide else indices + pool.index_item * c, compared)
        if wide:
            for i in range(at.many * width):
                (<int64_t*>indices)[c + i] = places[i]
        c += at.many * width


cdef void last_rows(const MaxPool2d* pool, const element* image__hwc, element* pooled__hwc, char* indices__hwc,
                    int64_t channels, int64_t oh, int64_t end, const real* compared) noexcept nogil:
    """LAST: the rows [oh, end) of windows."""
    cdef int64_t ow, top, left, ih, iw
    cdef element* to
    cdef char* indices
    cdef Windows at
    at.down = pool.image_strides[2]
    at.along = pool.image_strides[3]
    at.place_down = pool.w.size
    while oh < end:
        top = oh * pool.h.stride - pool.h.pad
        ih = most(top, 0)
        at.rows = least(top + pool.h.kernel, pool.h.size) - ih
        to = pooled__hwc + oh * pool.pooled_strides[2]
        indices = indices__hwc + oh * pool.index_strides[2] * pool.index_item
        for ow in range(pool.w.out):
            left = ow * pool.w.stride - pool.w.pad
            iw = most(left, 0)
            at.columns = least(left + pool.w.kernel, pool.w.size) - iw
            at.place = ih * pool.w.size + iw
            last_window(pool, &at, image__hwc + ih * at.down + iw * at.along, to, indices, channels, compared)
            to += pool.pooled_strides[3]
            indices += pool.index_strides[3] * pool.index_item
        oh += 1


cdef void store_indices(const MaxPool2d* pool, const int32_t* places, int64_t width, char* to, int64_t rows,
                        int64_t channels, int32_t* turned) noexcept nogil:
    """The places of `rows` rows of windows, `width` to a window, of which the first `channels` are stored; `turned` has
    room for all of them."""
    cdef int64_t apart = pool.index_item * pool.index_strides[1]
    cdef int64_t along = pool.index_item * pool.index_strides[3]
    cdef int64_t n = pool.w.out
    cdef int64_t c, i
    if pool.index_strides[3] == 1 and pool.index_strides[2] == n:
        n *= rows
        rows = 1
    while rows > 0:
        if pool.index_strides[1] == 1:
            for i in range(n):
                if apart == 4:
                    memcpy(to + i * along, places + i * width, <size_t>channels * 4)
                else:
                    for c in range(channels):
                        (<int64_t*>(to + i * along))[c] = places[i * width + c]
        elif along == 4:
            turn(to, pool.index_strides[1], places, width, n, channels, 4, NULL)
        elif along == 8 and pool.index_item == 8:
            turn(turned, n, places, width, n, channels, 4, NULL)
            for c in range(channels):
                for i in range(n):
                    (<int64_t*>(to + c * apart))[i] = turned[c * n + i]
        elif pool.index_item == 8:
            for c in range(channels):
                for i in range(n):
                    (<int64_t*>(to + c * apart + i * along))[0] = places[i * width + c]
        else:
            for c in range(channels):
                for i in range(n):
                    (<index_at*>(to + c * apart + i * along))[0] = places[i * width + c]
        places += n * width
        to += pool.index_item * pool.index_strides[2]
        rows -= 1


cdef void set_bits(const MaxPool2d* pool, const int32_t* places, int64_t width, char* words, int64_t n, int64_t lane,
                   int64_t channels) noexcept nogil:
    """words[place*pitch + i] |= the bit of each channel, at any address."""
    cdef uint16_t word
    cdef int64_t i, c, at
    for i in range(n):
        for c in range(channels):
            at = 2 * (places[c] * pool.pitch + i)
            memcpy(&word, words + at, sizeof(word))
            word |= <uint16_t>(1 << (lane + c))
            memcpy(words + at, &word, sizeof(word))
        places += width


cdef void clear_words(const MaxPool2dForwardPlan* plan, char* words, int64_t oh, int64_t rows) noexcept nogil:
    """Of rows of windows, what is not filled: all, or what lies behind the last row."""
    cdef const MaxPool2d* pool = &plan.pool
    cdef int64_t end = (oh + rows) * pool.w.out
    cdef int64_t first = end if plan.coded else oh * pool.w.out
    cdef int64_t k
    if oh + rows == pool.h.out:
        end = pool.pitch
    for k in range(pool.kernel_size if first < end else 0):
        memset(words + 2 * (k * pool.pitch + first), 0, <size_t>(2 * (end - first)))


cdef void fill_words(const MaxPool2d* pool, char* words, const uint16_t* codes, int64_t lanes,
                     int64_t n) noexcept nogil:
    cdef int64_t k = 0
    while k < pool.kernel_size:
        make_words(words, words + 2 * pool.pitch if k + 1 < pool.kernel_size else words, codes, n, lanes, k, n)
        words += 4 * pool.pitch
        k += 2


# A group has channels of one image, or those of some images, each of which has words of its own.

cdef void clear_masks(const MaxPool2dForwardPlan* plan, char* mask, int64_t oh, int64_t rows,
                      int64_t lanes) noexcept nogil:
    while lanes > 0:
        clear_words(plan, mask, oh, rows)
        mask += 2 * plan.pool.kernel_size * plan.pool.pitch
        lanes -= plan.sharing


cdef void fill_masks(const MaxPool2dForwardPlan* plan, char* mask, const uint16_t* codes, int64_t lanes,
                     int64_t n) noexcept nogil:
    while lanes > 0:
        fill_words(&plan.pool, mask, codes, least(lanes, plan.sharing), n)
        mask += 2 * plan.pool.kernel_size * plan.pool.pitch
        codes += plan.sharing * n
        lanes -= plan.sharing


cdef void set_masks(const MaxPool2dForwardPlan* plan, const int32_t* places, int64_t width, char* mask, int64_t n,
                    int64_t lane, int64_t channels) noexcept nogil:
    """The bits of some channels of a group, from `lane` on."""
    cdef int64_t before = quotient(lane, plan.sharing)      # images
    cdef int64_t part
    mask += before * 2 * plan.pool.kernel_size * plan.pool.pitch
    lane -= before * plan.sharing
    while channels > 0:
        part = least(channels, plan.sharing - lane)
        set_bits(&plan.pool, places, width, mask, n, lane, part)
        mask += 2 * plan.pool.kernel_size * plan.pool.pitch
        places += part
        channels -= part
        lane = 0


cdef void compare_group(const MaxPool2dForwardPlan* plan, Work* work, const element* image__chw, element* out__chw,
                        char* mask, char* scratch, int64_t oh, int64_t rows, int64_t lanes, int64_t before,
                        const real* compared) noexcept nogil:
    """Rows of windows of up to 16 channels from the first on that `mask` has; `before` of them are there to fill the
    vectors of LAST, and are worked on again."""
    cdef const MaxPool2d* pool = &plan.pool
    cdef int64_t n = rows * pool.w.out
    cdef uint16_t* codes = <uint16_t*>(scratch + plan.at_codes)
    cdef element* maxima = <element*>(scratch + plan.at_maxima)
    cdef int64_t first = oh * pool.w.out
    cdef int64_t lane = -before
    cdef int64_t channels, skip
    cdef const char* places
    if not pool.argmax:
        clear_masks(plan, mask, oh, rows, lanes)
    while lane < lanes:
        channels = least(work.width, lanes - lane)
        if pool.algorithm == LAST:
            work.image = <const char*>(image__chw + lane)
        else:
            load_windows(<element*>(scratch + plan.at_rows), work.width, image__chw + lane * pool.image_strides[1],
                         pool.image_strides, pool.h.size, pool.w.size, channels, pool.h.out, pool.h.kernel,
                         pool.h.stride, pool.h.pad, work.image_end)
        work.maxima = <char*>(out__chw + lane if plan.maxima_last else maxima - oh * work.maxima_down)
        if plan.along:
            compare_band(plan, work, <element*>(scratch + plan.at_best), <real*>(scratch + plan.at_labels), oh,
                         oh + rows, compared)
        else:
            compare_rows(plan, work, oh, oh + rows, out__chw, compared)
        # Of the channels that are worked on again nothing is stored but where they lie.
        skip = least(most(-lane, 0), channels)
        channels -= skip
        lane += skip
        places = work.places + skip * (2 if plan.coded else 4)
        if not plan.maxima_last and channels > 0:
            store_planes(out__chw + lane * pool.pooled_strides[1] + oh * pool.pooled_strides[2], pool.pooled_strides,
                         <const element*>maxima + skip, work.width, rows, pool.w.out, channels)
        if channels == 0:
            pass
        elif plan.coded:
            turn(codes + lane * n, n, places, work.width, n, channels, 2, NULL)
        elif pool.argmax:
            store_indices(pool, <const int32_t*>places, work.width,
                          mask + pool.index_item * (oh * pool.index_strides[2] + lane * pool.index_strides[1]), rows,
                          channels, <int32_t*>codes)
        else:
            set_masks(plan, <const int32_t*>places, work.width, mask + 2 * first, n, lane, channels)
        lane += channels
    if plan.coded:
        fill_masks(plan, mask + 2 * first, codes, lanes, n)


cdef int64_t across(const MaxPool2dForwardPlan* plan, char** data, char* scratch, int64_t unit, int64_t end,
                    const real* compared, const element* stored) noexcept nogil:
    """The units [unit, end); unit = (n*bands + band)*groups + group. The last two arguments give their types only."""
    cdef const MaxPool2d* pool = &plan.pool
    cdef int64_t n, group, image, c, oh, rows, channels, lane, first
    cdef const element* image__chw
    cdef element* out__chw
    cdef char* mask
    cdef Work work
    work.width = channels_at_once(compared)
    work.image = scratch + plan.at_rows
    work.image_end = data[0] + pool.source_bytes
    work.image_down = pool.w.size * work.width
    work.image_along = work.maxima_along = work.width
    work.maxima = NULL
    work.maxima_down = pool.w.out * work.width
    work.places = scratch + plan.at_places
    if pool.algorithm == LAST:
        work.image_down = pool.image_strides[2]
        work.image_along = pool.image_strides[3]
    else:
        memset(scratch + plan.at_rows, 0, <size_t>(pool.h.size * pool.w.size * work.width) * sizeof(element))
    if plan.maxima_last:
        work.maxima_down = pool.pooled_strides[2]
        work.maxima_along = pool.pooled_strides[3]
    while unit < end:
        clear_share(pool, data[2], unit)
        oh = unit // pool.groups
        group = unit - oh * pool.groups
        c = group * pool.lanes
        n = oh // pool.bands
        oh = (oh - n * pool.bands) * pool.band
        rows = least(pool.band, pool.h.out - oh)
        # The last group has what is left, too.
        channels = pool.lanes if group + 1 < pool.groups else pool.channels - c
        image__chw = <const element*>data[0] + n * pool.image_strides[0] + c * pool.image_strides[1]
        out__chw = <element*>data[1] + n * pool.pooled_strides[0] + c * pool.pooled_strides[1]
        mask = data[2] + pool.index_item * (n * pool.index_strides[0] + c * pool.index_strides[1])
        if plan.indices_last:
            last_rows(pool, image__chw, out__chw, mask, channels, oh, oh + rows, compared)
            channels = 0
        lane = 0
        while lane < channels:
            if not pool.argmax:
                # n is 0 where channels are those of all images.
                image = n + quotient(c + lane, pool.image_channels)
                mask = data[2] + 2 * (image * ceil_div(pool.image_channels, LANES)
                                      + (c + lane) % pool.image_channels // LANES) * pool.kernel_size * pool.pitch
            first = least(LANES, channels - lane)
            compare_group(plan, &work, image__chw + lane * pool.image_strides[1],
                          out__chw + lane * pool.pooled_strides[1], mask, scratch, oh, rows, first,
                          ceil_div(first, work.width) * work.width - first if pool.algorithm == LAST else 0, compared)
            mask += LANES * pool.index_item * pool.index_strides[1]
            lane += LANES
        unit += 1
    return ALL_GOOD


cdef int64_t across_f32(const void* plan, char** data, char* scratch, int64_t begin, int64_t end) noexcept nogil:
    return across(<const MaxPool2dForwardPlan*>plan, data, scratch, begin, end, <const float*>NULL, <const float*>NULL)


cdef int64_t across_f64(const void* plan, char** data, char* scratch, int64_t begin, int64_t end) noexcept nogil:
    return across(<const MaxPool2dForwardPlan*>plan, data, scratch, begin, end, <const double*>NULL,
                  <const double*>NULL)


cdef int64_t across_f16(const void* plan, char** data, char* scratch, int64_t begin, int64_t end) noexcept nogil:
    return across(<const MaxPool2dForwardPlan*>plan, data, scratch, begin, end, <const float*>NULL, <const half*>NULL)


cdef int64_t across_bf16(const void* plan, char** data, char* scratch, int64_t begin, int64_t end) noexcept nogil:
    return across(<const MaxPool2dForwardPlan*>plan, data, scratch, begin, end, <const float*>NULL,
                  <const bfloat*>NULL)


cdef void max_pool2d_across_kernels(RangeFn* row) noexcept nogil:
    """Put this instruction set's kernels into their row of the table."""
    row[<int>SLOT_F32] = across_f32
    row[<int>SLOT_F64] = across_f64
    row[<int>SLOT_F16] = across_f16
    row[<int>SLOT_BF16] = across_bf16
