# cython: cdivision=True
"""GATHER of the max pool: a vector of columns of gradInput is summed in registers, over the windows that hold them.

    to[ih, iw] = +0.0 + the sum over ascending (oh, ow) of grad[oh, ow] where the mask says that its maximum is there

With 1 to 4 kernel columns at stride 1 or 2. Column s*j + c of class c belongs to the windows j + shift of the kernel
columns kw with c + p - kw = s*shift, so that a vector of columns of a class meets vectors of windows. Words are loaded
once for a team of channels, which test one bit each; gradients, and indices, once for each channel and kernel column.

Where 3 columns at stride 1 and padding 1 are summed (LINES), each kernel column sums by itself, kernel rows ascending,
and the three sums are added in ascending ow: rows that lie end to end are one long row then, for there are as many
windows as columns. Of bits, element i has its windows at i + 1, i, i - 1 for kernel columns 0, 1, 2; what lies beyond
an end of its row is taken from the words, once for all channels. Of indices, a block has its windows' sums of each
kernel column, which slide to their elements (indices and gradients are loaded once, not at three places); they need no
look at the ends of rows, for they have been found to lie in their windows.

Bounds. A block loads gradients and indices in whole vectors where all of its lanes have windows, and else only in those
lanes. Words are loaded whole, in blocks that have windows: row kw of the table from at most kw words before it, and of
kernel rows after the first from at most 16 more, which are in the table; to less than 16 words behind its last window
if kw is the last column, else kw - k + 1 more, in the rows that follow. Each row of the table ends in 16 words at least
that belong to no window. Results are stored beyond the end of a row only where rows follow that are made, later on, by
the same call.
"""
from libc.stdint cimport int32_t, int64_t, uint16_t

from aclnn_bw._core.arithmetic cimport least, most
from aclnn_bw._core.max_pool2d cimport MOST_ROWS, TEAM
from aclnn_bw._kernels.choose cimport (
    add_if_bit, add_if_equal, add_lanes, ask, ask_lower, count_on, count_up, keep_words, lanes_of_bits,
    load_if_bit, load_if_equal, load_indices, load_some_indices, load_words, raise_words, slide,
)
from aclnn_bw._kernels.rows cimport fetch
from aclnn_bw._kernels.simd cimport (
    VECTOR_BYTES, add, bfloat, element, find_lanes, half, lane_word, lanes, store, store_first, store_first_in_turn,
    store_in_turn, store_lanes, sum_bytes, vector, zero,
)

# What is read: the numbers of gradOutput, or widened ones.
ctypedef fused gradient:
    float
    double
    half
    bfloat

# A plane of windows and its mask: `mask` points to the plane's indices, or to the words of its group at window (0, 0)
# and kernel position 0.
cdef struct Plane:
    const char* grad
    const char* mask
    const uint16_t* edges   # fill_edges
    int64_t grad_step       # bytes between rows of windows
    int64_t column_step     # bytes between kernel positions
    int64_t window_rows
    int64_t windows         # in a row
    int64_t columns
    int64_t kernel          # along h, as are stride and pad
    int64_t stride
    int64_t pad
    int64_t grad_channel    # bytes to the next channel's plane of windows
    int64_t mask_channel    # bytes to the next channel's plane of indices
    int64_t to_channel      # elements to the next channel's rows of gradInput
    # Where the indices lie in memory, which is `mask` or has been packed to there.
    const char* at
    int64_t at_channel
    int64_t at_item
    int64_t grad_ahead      # bytes: how far ahead gradients, indices and elements of gradInput are fetched
    int64_t mask_ahead
    int64_t to_ahead
    bint far                # whether the tensors leave the caches
    int bit                 # of the first channel: its number
    int64_t channels        # of a team

# A row of windows that reaches a row: elements [begin, end) of that have a window there.
cdef struct Term:
    const char* grad
    const char* mask
    int64_t begin
    int64_t end

# The lanes of a block that have windows at a kernel column: of sums, and of 4 bytes.
cdef struct Edge:
    lanes[4] sums
    lanes[4] places


cdef inline lanes sum_lanes(int word, const gradient* read) noexcept nogil:
    if gradient is double:
        return find_lanes(word, <const double*>NULL)
    else:
        return find_lanes(word, <const float*>NULL)


cdef inline int64_t class_of(int64_t kw, int64_t s, int64_t p) noexcept nogil:
    return (kw - p) & (s - 1)


cdef inline int64_t shift_of(int64_t kw, int64_t s, int64_t p) noexcept nogil:
    return (class_of(kw, s, p) + p - kw) >> (s - 1)


cdef inline void find_windows(const Plane* w, int64_t ih, int64_t last, int64_t* oh, int64_t* oh_end) noexcept nogil:
    """Move [oh, oh_end) on to the rows of windows that hold rows ih to last."""
    while oh[0] < w.window_rows and oh[0] * w.stride - w.pad + w.kernel <= ih:
        oh[0] += 1
    oh_end[0] = most(oh_end[0], oh[0])
    while oh_end[0] < w.window_rows and oh_end[0] * w.stride - w.pad <= last:
        oh_end[0] += 1


# --- columns of up to two classes -----------------------------------------------------------------------------------

cdef inline void find_edge(Edge* edge, int64_t j, int64_t windows, int64_t k, int64_t s, int64_t p,
                           const gradient* read) noexcept nogil:
    """Of a block of columns from s*j on."""
    cdef int64_t n = VECTOR_BYTES // sum_bytes(read)
    cdef int64_t kw, begin, end
    cdef int word
    for kw in range(k):
        begin = least(most(-j - shift_of(kw, s, p), 0), n)
        end = most(least(windows - j - shift_of(kw, s, p), n), begin)
        word = lane_word(<int>begin, <int>end)
        edge.sums[kw] = sum_lanes(word, read)
        edge.places[kw] = find_lanes(word, <const float*>NULL)


cdef inline void add_column(vector* sums, const gradient* grad, const char* mask, const vector* words,
                            const vector* bits, const vector* wanted, const Edge* edge, int64_t kw, int64_t k,
                            int64_t s, int64_t p, bint indexed, int channel, int team, bint partial) noexcept nogil:
    """What kernel column kw adds to a channel's sums of both classes; grad and mask are those of the first shift."""
    cdef int64_t shift = shift_of(kw, s, p) - shift_of(k - 1, s, p)
    cdef bint odd = class_of(kw, s, p) != 0
    cdef vector seen
    if not indexed:
        if odd:
            add_if_bit(sums + 1, words + kw, bits + channel, team - 1 - channel, grad + shift, partial)
        else:
            add_if_bit(sums, words + kw, bits + channel, team - 1 - channel, grad + shift, partial)
        return
    if partial:
        seen = load_some_indices(mask + 4 * shift, &edge.places[kw], grad)
    else:
        seen = load_indices(mask + 4 * shift, grad)
    if odd:
        add_if_equal(sums + 1, &seen, wanted + 1, grad + shift, partial)
    else:
        add_if_equal(sums, &seen, wanted, grad + shift, partial)


cdef inline void add_columns(vector* sums, const Plane* w, const char* grad_row, const char* mask_row,
                             const vector* words, const vector* bits, const vector* wanted, const Edge* edge, int64_t k,
                             int64_t s, int64_t p, bint indexed, int channel, int team, bint partial,
                             const gradient* read) noexcept nogil:
    """What a row of windows adds to a channel's sums: ascending windows at descending kernel columns."""
    cdef const gradient* grad = <const gradient*>(grad_row + channel * w.grad_channel)
    cdef const char* mask = mask_row + channel * w.mask_channel
    sums += 2 * channel
    if k > 3:
        add_column(sums, grad, mask, words, bits, wanted, edge, 3, k, s, p, indexed, channel, team, partial)
    if k > 2:
        add_column(sums, grad, mask, words, bits, wanted, edge, 2, k, s, p, indexed, channel, team, partial)
    if k > 1:
        add_column(sums, grad, mask, words, bits, wanted, edge, 1, k, s, p, indexed, channel, team, partial)
    add_column(sums, grad, mask, words, bits, wanted, edge, 0, k, s, p, indexed, channel, team, partial)


cdef inline void sum_block(vector* sums, const Plane* w, int64_t oh, int64_t count, int64_t kh, int64_t place,
                           int64_t j, const Edge* edge, int64_t k, int64_t s, int64_t p, bint indexed, int team,
                           bint partial, const gradient* read) noexcept nogil:
    """The sums of a block of columns from s*j on, class by class for each channel, over `count` rows of windows. Kernel
    row kh belongs to the first; each further one is `stride` kernel rows earlier. `place`: the index of column 0."""
    cdef int64_t low = shift_of(k - 1, s, p)
    cdef const char* grad = w.grad + oh * w.grad_step + (j + low) * <int64_t>sizeof(gradient)
    cdef const char* mask = w.mask + (oh * w.windows + j + low) * (4 if indexed else 2)
    cdef int64_t mask_step = w.windows * (4 if indexed else 2)
    cdef vector[TEAM] bits
    cdef vector[4] words
    cdef vector[2] wanted
    cdef int64_t kw
    cdef int channel
    if indexed:
        wanted[0] = count_up(<int32_t>(place + s * j), <int32_t>s, read)
        wanted[1] = count_on(wanted[0], 1, read)
    else:
        mask += kh * k * w.column_step
        mask_step -= w.stride * k * w.column_step
        for channel in range(team):
            bits[channel] = ask(w.bit + channel, read)
    for channel in range(2 * team):
        sums[channel] = zero(<vector*>NULL)
    while count > 0:
        if not indexed:
            for kw in range(k):
                words[kw] = load_words(mask + kw * w.column_step + 2 * (shift_of(kw, s, p) - low), &bits[team - 1],
                                       read)
                if partial:
                    keep_words(&words[kw], &edge.sums[kw])
        add_columns(sums, w, grad, mask, words, bits, wanted, edge, k, s, p, indexed, 0, team, partial, read)
        if team > 1:
            add_columns(sums, w, grad, mask, words, bits, wanted, edge, k, s, p, indexed, 1, team, partial, read)
            add_columns(sums, w, grad, mask, words, bits, wanted, edge, k, s, p, indexed, 2, team, partial, read)
            add_columns(sums, w, grad, mask, words, bits, wanted, edge, k, s, p, indexed, 3, team, partial, read)
        grad += w.grad_step
        mask += mask_step
        count -= 1


cdef inline void store_block(element* to, const vector* sums, int64_t s, const gradient* read) noexcept nogil:
    """The sums of a block: of both classes in turn, or of the one."""
    if s == 2:
        store_in_turn(to, sums[0], sums[1])
    else:
        store(to, sums[0])


cdef inline void store_start(element* to, const vector* sums, int64_t n, int64_t s,
                             const gradient* read) noexcept nogil:
    """The first n columns."""
    if s == 2:
        store_first_in_turn(to, sums[0], sums[1], n)
    else:
        store_first(to, sums[0], n)


cdef inline void fetch_channel(const element* to, const Plane* w, int64_t oh, int64_t j, int64_t columns,
                               int64_t windows, bint indexed, int channel, const gradient* read) noexcept nogil:
    """Of the team that comes next: so many columns that begin as `to` does, and windows from the j-th on."""
    fetch(<const char*>to + w.to_ahead, columns * <int64_t>sizeof(element))
    fetch(w.grad + channel * w.grad_channel + oh * w.grad_step + j * <int64_t>sizeof(gradient) + w.grad_ahead,
          windows * <int64_t>sizeof(gradient))
    if indexed:
        fetch(w.at + channel * w.at_channel + w.at_item * (oh * w.windows + j) + w.mask_ahead, w.at_item * windows)


cdef inline void sum_columns(element* to, int64_t to_step, const Plane* plane, int64_t ih, int64_t end, int64_t oh,
                             int64_t k, int64_t s, int64_t p, bint indexed, int team,
                             const gradient* read) noexcept nogil:
    """Rows [ih, end) of gradInput; oh is at most the first row of windows that holds row ih."""
    cdef Plane w = plane[0]
    cdef int64_t width = VECTOR_BYTES // sum_bytes(read)
    cdef int64_t n = (w.columns + s - 1) // s
    # The last block overlaps the one before, unless half of a pair would lie outside the row.
    cdef int64_t last = n - width if w.columns % s == 0 and n >= width else (n - 1) // width * width
    cdef int64_t low = shift_of(k - 1, s, p)
    cdef int64_t high = most(shift_of(0, s, p), shift_of(1, s, p))
    cdef int64_t oh_end = oh
    cdef int64_t j, kh, place, room
    cdef int channel
    cdef vector[2 * TEAM] sums
    cdef Edge first_edge
    cdef Edge last_edge
    cdef Edge other
    cdef const Edge* edge
    find_edge(&first_edge, 0, w.windows, k, s, p, read)
    find_edge(&last_edge, last, w.windows, k, s, p, read)
    while ih < end:
        find_windows(&w, ih, ih, &oh, &oh_end)
        kh = ih + w.pad - oh * w.stride
        place = ih * w.columns
        # Elements that lie side by side here and are not written yet: a block may reach into the next rows.
        room = (end - ih) * w.columns if to_step == w.columns else w.columns
        if w.far and VECTOR_BYTES != 64 and (indexed or sizeof(element) > 2):
            for channel in range(team):
                fetch_channel(to + channel * w.to_channel, &w, oh, 0, w.columns,
                              w.windows if s == 1 or ih % 2 == 0 else 0, indexed, channel, read)
        j = 0
        while j < n:
            if j > last:
                j = last
            if j + low >= 0 and j + high + width <= w.windows:
                sum_block(sums, &w, oh, oh_end - oh, kh, place, j, <const Edge*>NULL, k, s, p, indexed, team, False,
                          read)
            else:
                edge = &first_edge if j == 0 else &last_edge
                if j != 0 and j != last:
                    find_edge(&other, j, w.windows, k, s, p, read)
                    edge = &other
                sum_block(sums, &w, oh, oh_end - oh, kh, place, j, edge, k, s, p, indexed, team, True, read)
            # With AVX-512 a few lines at a time: a row of them fills the buffers that wait for memory.
            if w.far and VECTOR_BYTES == 64:
                for channel in range(team):
                    fetch_channel(to + channel * w.to_channel + s * j, &w, oh, j, s * width, width, indexed, channel,
                                  read)
            if room - s * j >= s * width:
                store_block(to + s * j, sums, s, read)
                if team > 1:
                    store_block(to + w.to_channel + s * j, sums + 2, s, read)
                    store_block(to + 2 * w.to_channel + s * j, sums + 4, s, read)
                    store_block(to + 3 * w.to_channel + s * j, sums + 6, s, read)
            else:
                for channel in range(team):
                    store_start(to + channel * w.to_channel + s * j, sums + 2 * channel, w.columns - s * j, s, read)
            j += width
        to += to_step
        ih += 1


# --- LINES: 3 columns at stride 1 and padding 1 ---------------------------------------------------------------------

cdef inline void fill_edges(uint16_t* edges, int64_t columns) noexcept nogil:
    """edges[x], for x in [0, columns], has bit i set where element x + i of rows laid end to end is not the first of
    its row, so that edges[x + 1] says which are not the last."""
    cdef unsigned inside = 0
    cdef int64_t ahead = 0      # (x + 16) % columns
    cdef int64_t x
    for x in range(16):
        inside |= <unsigned>(ahead != 0) << x
        ahead = 0 if ahead + 1 == columns else ahead + 1
    for x in range(columns + 1):
        edges[x] = <uint16_t>inside
        inside = inside >> 1 | <unsigned>(ahead != 0) << 15
        ahead = 0 if ahead + 1 == columns else ahead + 1


cdef inline int64_t line_rows(const Plane* w, int64_t to_step, int64_t rows, const gradient* read) noexcept nogil:
    """How many of so many rows lie end to end: all or one."""
    if w.stride == 1 and to_step == w.columns and w.grad_step == w.windows * <int64_t>sizeof(gradient):
        return rows
    return 1


cdef inline int64_t line_terms(Term* terms, const Plane* w, int64_t ih, int64_t rows, bint indexed) noexcept nogil:
    """The rows of windows that reach `rows` rows from row ih, ascending; never 2, for empty ones make 3 of them."""
    cdef int64_t row = w.windows * (4 if indexed else 2)
    cdef int64_t count = 0
    cdef int64_t kh = w.kernel - 1
    cdef int64_t top, begin, stop
    while kh >= 0:
        top = ih + w.pad - kh
        kh -= 1
        if w.stride != 1:
            if top < 0 or top % w.stride != 0:
                continue
            top = top // w.stride
        begin = most(-top, 0)
        stop = least(w.window_rows - top, rows)
        if begin >= stop:
            continue
        terms[count].grad = w.grad + top * w.grad_step
        terms[count].mask = w.mask + top * row + (0 if indexed else 3 * (kh + 1) * w.column_step)
        terms[count].begin = begin * w.columns
        terms[count].end = stop * w.columns
        count += 1
    while count != 1 and count < 3:
        terms[count].grad = w.grad
        terms[count].mask = w.mask
        terms[count].begin = terms[count].end = 0
        count += 1
    return count


cdef inline void whole_range(const Term* terms, int64_t count, int64_t n, int64_t* begin, int64_t* end) noexcept nogil:
    """The elements that have windows in all terms."""
    cdef int64_t t
    begin[0] = 0
    end[0] = n
    for t in range(count):
        begin[0] = most(begin[0], terms[t].begin)
        end[0] = least(end[0], terms[t].end)


cdef inline void line_words(vector* words, const Plane* w, const Term* term, int64_t i, const unsigned* inside,
                            const vector* bit, bint partial, const gradient* read) noexcept nogil:
    """The words of elements i, i + 1, ... at the three kernel columns. Bit l of inside[kw]: whether the window of
    element i + l at kernel column kw lies in its row."""
    cdef int64_t n = VECTOR_BYTES // sum_bytes(read)
    cdef int64_t kw, begin, end
    cdef unsigned there
    cdef lanes some
    for kw in range(3):
        if partial:
            begin = least(most(term.begin - i, 0), n)
            end = most(least(term.end - i, n), begin)
            there = inside[kw] & ((1u << end) - (1u << begin))
            words[kw] = zero(<vector*>NULL)
            if there != 0:
                words[kw] = load_words(term.mask + kw * w.column_step + 2 * (i + 1 - kw), bit, read)
                some = lanes_of_bits(there, read)
                keep_words(&words[kw], &some)
        else:
            words[kw] = load_words(term.mask + kw * w.column_step + 2 * (i + 1 - kw), bit, read)
            if kw != 1:
                some = lanes_of_bits(inside[kw], read)
                keep_words(&words[kw], &some)


cdef inline void add_line_words(vector* sums, const vector* words, const char* grad_row, int64_t i, const vector* bit,
                                bint partial, bint first, const gradient* read) noexcept nogil:
    """What a row of windows adds to elements i, i + 1, ... of a channel; the first row begins their sums."""
    cdef const gradient* grad = <const gradient*>grad_row + i
    if first:
        sums[2] = load_if_bit(words + 2, bit, 0, grad - 1, partial)
        sums[1] = load_if_bit(words + 1, bit, 0, grad, partial)
        sums[0] = load_if_bit(words, bit, 0, grad + 1, partial)
        return
    add_if_bit(sums + 2, words + 2, bit, 0, grad - 1, partial)
    add_if_bit(sums + 1, words + 1, bit, 0, grad, partial)
    add_if_bit(sums, words, bit, 0, grad + 1, partial)


cdef inline void line_block(element* to, const Plane* w, const Term* terms, int64_t i, int64_t n,
                            const unsigned* inside, int64_t rows, bint partial, const gradient* read) noexcept nogil:
    """Elements i, i + 1, ... of n, of all channels of the team: the last one's bit is asked for first."""
    cdef int64_t width = VECTOR_BYTES // sum_bytes(read)
    cdef int64_t channel = w.channels - 1
    cdef vector bit = ask(w.bit + <int>channel, read)
    cdef vector[3 * MOST_ROWS] words
    cdef vector[3] sums
    cdef int64_t row, ahead
    if rows == 3:
        line_words(words, w, terms, i, inside, &bit, partial, read)
        line_words(words + 3, w, terms + 1, i, inside, &bit, partial, read)
        line_words(words + 6, w, terms + 2, i, inside, &bit, partial, read)
    else:
        for row in range(rows):
            line_words(words + 3 * row, w, terms + row, i, inside, &bit, partial, read)
    while channel >= 0:
        ahead = channel * w.grad_channel
        if i % (2 * width) == 0:
            fetch(terms[0].grad + ahead + w.grad_ahead + i * <int64_t>sizeof(gradient),
                  2 * width * <int64_t>sizeof(gradient))
            fetch(<const char*>(to + channel * w.to_channel + i) + w.to_ahead, 2 * width * <int64_t>sizeof(element))
        add_line_words(sums, words, terms[0].grad + ahead, i, &bit, partial, True, read)
        if rows == 3:
            add_line_words(sums, words + 3, terms[1].grad + ahead, i, &bit, partial, False, read)
            add_line_words(sums, words + 6, terms[2].grad + ahead, i, &bit, partial, False, read)
            for row in range(9):
                raise_words(&words[row], read)
        else:
            for row in range(1, rows):
                add_line_words(sums, words + 3 * row, terms[row].grad + ahead, i, &bit, partial, False, read)
            for row in range(3 * rows):
                raise_words(&words[row], read)
        ask_lower(&bit)
        # Only now does a sum of nothing but -0.0 become +0.0: two additions less.
        sums[0] = add(add(add(sums[2], sums[1], read), sums[0], read), zero(<vector*>NULL), read)
        if n >= width:
            store(to + channel * w.to_channel + i, sums[0])
        else:
            store_first(to + channel * w.to_channel + i, sums[0], n)
        channel -= 1


cdef inline void line_of_bits(element* to, const Plane* w, const Term* terms, int64_t n, int64_t rows,
                              const gradient* read) noexcept nogil:
    """n elements of rows that lie end to end."""
    cdef int64_t width = VECTOR_BYTES // sum_bytes(read)
    cdef int64_t i = 0
    cdef int64_t x = 0
    cdef int64_t whole, whole_end
    cdef unsigned[3] inside
    whole_range(terms, rows, n, &whole, &whole_end)
    inside[1] = 0xffff
    while i < n:
        if i > n - width and n >= width:      # the last block overlaps the one before
            x -= i - (n - width)
            i = n - width
        while x >= w.columns:
            x -= w.columns
        while x < 0:
            x += w.columns
        inside[0] = w.edges[x + 1]
        inside[2] = w.edges[x]
        if whole < i and i + width < whole_end:
            line_block(to, w, terms, i, n, inside, rows, False, read)
        else:
            line_block(to, w, terms, i, n, inside, rows, True, read)
        i += width
        x += width


cdef inline void add_windows(vector* sums, const Plane* w, const Term* term, int64_t i, const vector* bits,
                             const vector* wanted, bint indexed, int team, bint partial, bint first,
                             const gradient* read) noexcept nogil:
    """What the windows i, i + 1, ... of a row add to the sums of each kernel column, three for each channel."""
    cdef int64_t n = VECTOR_BYTES // sum_bytes(read)
    cdef const char* mask = term.mask + i * (4 if indexed else 2)
    cdef const gradient* grad = <const gradient*>term.grad + i
    cdef int64_t begin, end, kw
    cdef int word = 0
    cdef lanes some
    cdef vector[3] words
    if partial:
        begin = least(most(term.begin - i, 0), n)
        end = most(least(term.end - i, n), begin)
        word = lane_word(<int>begin, <int>end)
    if not indexed:
        for kw in range(3):
            words[kw] = load_words(mask + kw * w.column_step, bits + team - 1, read)
            if partial:
                some = sum_lanes(word, read)
                keep_words(&words[kw], &some)
    add_channel_windows(sums, w, grad, mask, words, bits, wanted, word, indexed, 0, team, partial, first, read)
    if team > 1:
        add_channel_windows(sums, w, grad, mask, words, bits, wanted, word, indexed, 1, team, partial, first, read)
        add_channel_windows(sums, w, grad, mask, words, bits, wanted, word, indexed, 2, team, partial, first, read)
        add_channel_windows(sums, w, grad, mask, words, bits, wanted, word, indexed, 3, team, partial, first, read)


cdef inline void add_channel_windows(vector* sums, const Plane* w, const gradient* grad, const char* mask,
                                     const vector* words, const vector* bits, const vector* wanted, int word,
                                     bint indexed, int channel, int team, bint partial, bint first,
                                     const gradient* read) noexcept nogil:
    cdef lanes some
    cdef vector seen
    grad = <const gradient*>(<const char*>grad + channel * w.grad_channel)
    sums += 3 * channel
    if not indexed:
        add_if_bit(sums, words, bits + channel, team - 1 - channel, grad, partial)
        add_if_bit(sums + 1, words + 1, bits + channel, team - 1 - channel, grad, partial)
        add_if_bit(sums + 2, words + 2, bits + channel, team - 1 - channel, grad, partial)
        return
    if partial:
        some = find_lanes(word, <const float*>NULL)
        seen = load_some_indices(mask + channel * w.mask_channel, &some, read)
    else:
        seen = load_indices(mask + channel * w.mask_channel, read)
    if first and VECTOR_BYTES < 64:
        sums[0] = load_if_equal(&seen, wanted, grad, partial)
        sums[1] = load_if_equal(&seen, wanted + 1, grad, partial)
        sums[2] = load_if_equal(&seen, wanted + 2, grad, partial)
        return
    add_if_equal(sums, &seen, wanted, grad, partial)
    add_if_equal(sums + 1, &seen, wanted + 1, grad, partial)
    add_if_equal(sums + 2, &seen, wanted + 2, grad, partial)


cdef inline void add_block(vector* sums, const Plane* w, const Term* terms, int64_t i, int64_t rows,
                           const vector* bits, const vector* wanted, bint indexed, int team, bint partial,
                           const gradient* read) noexcept nogil:
    cdef int64_t row
    add_windows(sums, w, terms, i, bits, wanted, indexed, team, partial, True, read)
    if rows == 3:
        add_windows(sums, w, terms + 1, i, bits, wanted, indexed, team, partial, False, read)
        add_windows(sums, w, terms + 2, i, bits, wanted, indexed, team, partial, False, read)
    else:
        for row in range(1, rows):
            add_windows(sums, w, terms + row, i, bits, wanted, indexed, team, partial, False, read)


cdef inline void slide_block(element* to, const vector* sums, vector* before, int64_t i, int64_t n,
                             const unsigned* inside, bint indexed, const gradient* read) noexcept nogil:
    """What a block of windows has summed at kernel columns 1 and 2 slides by so many elements: element i - 1 is the
    first of the block at i."""
    cdef int64_t width = VECTOR_BYTES // sum_bytes(read)
    cdef vector sum
    if indexed:
        sum = add(slide(sums + 2, before + 1, 2, read), slide(sums + 1, before, 1, read), read)
        sum = add(sum, sums[0], read)
        if VECTOR_BYTES < 64:
            # Only now does a sum of nothing but -0.0 become +0.0: two additions less.
            sum = add(sum, zero(<vector*>NULL), read)
    else:
        sum = slide(sums + 1, before, 1, read)
        add_lanes(&sum, slide(sums + 2, before + 1, 2, read), lanes_of_bits(inside[2], read), read)
        add_lanes(&sum, sums[0], lanes_of_bits(inside[0], read), read)
    before[0] = sums[1]
    before[1] = sums[2]
    if i > 0 and i - 1 + width <= n:
        store(to + i - 1, sum)
    else:
        store_lanes(to + i - 1, sum, lane_word(i == 0, <int>least(n - i + 1, width)))


cdef inline void line_slid(element* to, const Plane* w, const Term* terms, int64_t n, int64_t place, int64_t rows,
                           bint indexed, int team, const gradient* read) noexcept nogil:
    """The same with slides; `place` is the index of the first element."""
    cdef int64_t width = VECTOR_BYTES // sum_bytes(read)
    cdef int64_t step = width % w.columns
    cdef int64_t x = w.columns - 1
    cdef int64_t i = 0
    cdef int64_t whole, whole_end, channel
    cdef vector[TEAM] bits
    cdef unsigned[3] inside
    cdef vector[3 * TEAM] sums
    cdef vector[2 * TEAM] before
    cdef vector[3] wanted
    whole_range(terms, rows, n, &whole, &whole_end)
    for channel in range(team):
        before[2 * channel] = before[2 * channel + 1] = zero(<vector*>NULL)
        if not indexed:
            bits[channel] = ask(w.bit + <int>channel, read)
    wanted[0] = count_up(<int32_t>(place - 1), 1, read)
    wanted[1] = count_on(wanted[0], 1, read)
    wanted[2] = count_on(wanted[0], 2, read)
    while i <= n:
        for channel in range(3 * team):
            sums[channel] = zero(<vector*>NULL)
        if whole <= i and i + width <= whole_end:
            add_block(sums, w, terms, i, rows, bits, wanted, indexed, team, False, read)
        elif i < n:
            add_block(sums, w, terms, i, rows, bits, wanted, indexed, team, True, read)
        if not indexed:
            inside[2] = w.edges[x]
            inside[0] = w.edges[x + 1]
            x += step
            x -= w.columns if x >= w.columns else 0
        slide_block(to, sums, before, i, n, inside, indexed, read)
        if team > 1:
            slide_block(to + w.to_channel, sums + 3, before + 2, i, n, inside, indexed, read)
            slide_block(to + 2 * w.to_channel, sums + 6, before + 4, i, n, inside, indexed, read)
            slide_block(to + 3 * w.to_channel, sums + 9, before + 6, i, n, inside, indexed, read)
        for channel in range(team if w.far else 0):
            fetch(terms[0].grad + channel * w.grad_channel + w.grad_ahead + i * <int64_t>sizeof(gradient),
                  width * <int64_t>sizeof(gradient))
            if indexed:
                fetch(w.at + channel * w.at_channel + ((terms[0].mask - w.mask) // 4 + i) * w.at_item + w.mask_ahead,
                      w.at_item * width)
            fetch(<const char*>(to + channel * w.to_channel + i) + w.to_ahead, width * <int64_t>sizeof(element))
        if indexed:
            wanted[0] = count_on(wanted[0], <int32_t>width, read)
            wanted[1] = count_on(wanted[1], <int32_t>width, read)
            wanted[2] = count_on(wanted[2], <int32_t>width, read)
        i += width
