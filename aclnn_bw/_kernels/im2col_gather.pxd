# cython: cdivision=True
"""GATHER of Im2colBackward: a vector of positions of a row is summed in a register, from all columns that reach it.

    to[q] = +0.0 + the sum over the kernel rows that reach the row and taps t, both ascending, of the tap's window for q

A vector adds its terms lane by lane in that order, so its width does not show in a bit; a term that does not exist is
added as +0.0, which changes no sum that began with +0.0. Of a row of stride 2 the even and the odd positions, its two
phases, are summed apart and stored in turn. For one phase or two a block is a vector or two of sums; the last block
overlaps the one before. Of the blocks in [left, right) every lane of every tap is a window; the others, the edges, load
the lanes that a table names.

Bounds. Of blocks in [left, right) every tap's lanes are windows in [0, Lw) of a row of windows in [0, Lh) (`find_row`).
Edges load nothing but the lanes that are such windows, where loads can be masked. Elsewhere they load whole vectors, if
`row_is_safe`: if those lie in the plane's columns or in other planes', where these lie side by side, or in the line
before or behind packed ones, or else in their own column. If not, lanes are loaded one by one. Blocks are stored at
phases*width*block <= n - phases*width, or there; a row of less than a block is one edge, and whole only if the caller
says that it may be.
"""
from libc.stdint cimport int64_t, uint16_t, uintptr_t

from aclnn_bw._core.arithmetic cimport least, most, quotient
from aclnn_bw._kernels.simd cimport (
    VECTOR_BYTES, add, element, find_lanes, lane_word, lanes, load, load_alone, load_lanes, reads_all, store,
    store_first, store_first_in_turn, store_in_turn, sum_bytes, vec, vector, zero,
)

cdef enum:
    MOST_WORDS = 512    # taps of all edges
    KEPT = 384          # of all phases' edges, of which the lanes are found once; those of more are found for each row
    KEPT_EDGES = 64

# Which rows of windows reach a row of out: kernel rows that are tap_step apart, from windows window_step apart.
cdef struct Walk:
    int64_t stride
    int64_t dilation
    int64_t pad
    int64_t taps
    int64_t windows
    int64_t tap_step
    int64_t window_step

# What the rows of a range have in common. Of two phases 0 holds the even positions.
cdef struct Gather:
    int64_t phases
    int64_t n                   # positions of a row
    int64_t windows             # of a row
    int64_t window_step         # from the window of a tap to that of the next
    int64_t step                # elements from there to there
    int64_t[2] taps
    int64_t[2] window           # of position 0 with the first tap
    int64_t[2] base             # elements from the plane's first column to that window
    int64_t pitch               # elements from a kernel row to the next
    int64_t down                # of the rows of windows that reach a row: elements from one up to the next in a column,
    int64_t next                # and on to its kernel row's
    int64_t width               # lanes of a vector
    int64_t blocks
    int64_t left
    int64_t right
    int64_t edges
    bint in_plane               # whole vectors at the edges may lie anywhere in the plane, or in their column alone
    int64_t margin              # elements before and behind it that may be read too
    uintptr_t memory            # where it lies among others, of which all may be read, or 0
    uintptr_t memory_end
    int64_t length              # of the plane's columns, or of one
    int64_t low                 # the edges' vectors touch [low, high), from a row's first window on
    int64_t high
    int64_t inner               # rows at stride 1 or 2 whose kernel rows are all there, and which are safe: how many
    int64_t inner_end           # they are, and which is the first, follows from whether the row's position is even
    int64_t[2] inner_counts
    int64_t[2] inner_taps
    bint kept                   # whether the tables of the edges hold them all
    int64_t[KEPT_EDGES] starts
    lanes* some                 # of the even phase's taps and of the odd one's, edge by edge
    uint16_t[MOST_WORDS] words


cdef inline int64_t find_row(const Walk* h, int64_t row, int64_t* tap, int64_t* window) noexcept nogil:
    """How many rows of windows reach the row; of the first of them the kernel row, and the row of windows: in
    [0, windows), and the last is window - (count-1)*window_step >= 0. Of none, 0 and 0."""
    cdef int64_t position = row + h.pad
    cdef int64_t a = 0
    cdef int64_t count = 0
    cdef int64_t q
    tap[0] = window[0] = 0
    if h.stride > 1:
        while True:
            if position < 0 or a == h.tap_step:
                return 0
            q = position >> 1 if h.stride == 2 else quotient(position, h.stride)
            if q * h.stride == position:
                break
            position -= h.dilation
            a += 1
        position = q
    while position >= h.windows and a < h.taps:
        position -= h.window_step
        a += h.tap_step
    if position < 0 or a >= h.taps:
        return 0
    tap[0] = a
    window[0] = position
    while position >= 0 and a < h.taps:
        position -= h.window_step
        a += h.tap_step
        count += 1
    return count


cdef inline int64_t block_start(const Gather* g, int64_t block) noexcept nogil:
    return most(0, least(g.phases * g.width * block, g.n - g.phases * g.width))


cdef inline int64_t edge_start(const Gather* g, int64_t edge) noexcept nogil:
    return block_start(g, edge if edge < g.left else edge - g.left + g.right)


cdef inline int64_t phase_start(const Gather* g, int64_t start, int64_t phase) noexcept nogil:
    """Of a block at a position: the first of the phase's own positions."""
    return (start + 1 - phase) >> 1 if g.phases == 2 else start


cdef inline bint lies_within(const Gather* g, int64_t block, bint at_end) noexcept nogil:
    """Whether the windows of all lanes of a block are >= 0, or < windows."""
    cdef int64_t phase, first
    for phase in range(g.phases):
        first = phase_start(g, block_start(g, block), phase) + g.window[phase]
        if g.taps[phase] > 0 and (first + g.width > g.windows if at_end
                                  else first < (g.taps[phase] - 1) * g.window_step):
            return False
    return True


cdef inline bint row_is_safe(const Gather* g, int64_t tap, int64_t window, int64_t count,
                             const element* numbers) noexcept nogil:
    """Whether whole vectors may be read at the edges, `numbers` being the plane's columns, or NULL for those of any. If
    two rows of windows reach a row, next > 0: window_step < Lh, and a column holds Lh rows of windows."""
    cdef int64_t first = window * g.windows
    cdef int64_t end
    if count == 0 or not reads_all(numbers):
        return True
    if g.in_plane:
        first += tap * g.pitch
        end = first + (count - 1) * g.next + g.high
        first += g.low
        if first >= -g.margin and end <= g.length + g.margin:
            return True
        return (numbers != NULL and g.memory > 0
                and <int64_t>(<uintptr_t>numbers - g.memory) + first * <int64_t>sizeof(element) >= 0
                and <int64_t>(g.memory_end - <uintptr_t>numbers) - end * <int64_t>sizeof(element) >= 0)
    return first - (count - 1) * g.down + g.low >= 0 and first + g.high <= g.length


cdef inline bint is_inner(const Gather* g, const Walk* h, int64_t row, const element* numbers) noexcept nogil:
    cdef int64_t tap, window
    cdef int64_t count = find_row(h, row, &tap, &window)
    cdef int64_t rest = (row + h.pad) & (h.stride - 1)
    return (count == g.inner_counts[rest] and (count == 0 or tap == g.inner_taps[rest])
            and row_is_safe(g, tap, window, count, numbers))


cdef inline void find_inner(Gather* g, const Walk* h, int64_t height, const element* numbers) noexcept nogil:
    """A few rows at either end are not. What is true of two rows side by side here and there is true of all between: of
    every second row, or of every one, the windows that reach it move on by one row each."""
    cdef int64_t first = 0
    cdef int64_t end = height
    cdef int64_t rest, a
    if h.stride > 2:
        return
    for rest in range(h.stride):
        a = rest if h.dilation & 1 != 0 else 0
        g.inner_taps[rest] = a
        # An odd position under an even dilation is reached by none.
        g.inner_counts[rest] = 0
        if a < h.taps and (rest == 0 or h.dilation & 1 != 0):
            g.inner_counts[rest] = quotient(h.taps - 1 - a, h.tap_step) + 1
    while first + 1 < end and not (is_inner(g, h, first, numbers) and is_inner(g, h, first + 1, numbers)):
        first += 1
    while first + 1 < end and not (is_inner(g, h, end - 1, numbers) and is_inner(g, h, end - 2, numbers)):
        end -= 1
    if first + 1 < end:
        g.inner = first
        g.inner_end = end


cdef inline bint find_edges(Gather* g, const element* numbers, bint one_edge, int64_t room) noexcept nogil:
    """Whether the lanes fit their tables; `some` has so much room. What the caller fills in is there: see
    `make_gathers`. A row that is one edge needs but its words."""
    cdef int64_t taps = g.taps[0] + g.taps[1]
    cdef int64_t count = 0
    cdef int64_t start, edge, phase, t, window, begin, end, at
    g.width = VECTOR_BYTES // sum_bytes(numbers)
    g.blocks = 1 if g.n <= g.phases * g.width else quotient(g.n - 1, g.phases * g.width) + 1
    # A row of less than a block is stored as an edge, all lanes or not.
    g.left = 1 if g.n < g.phases * g.width else 0
    g.right = g.blocks
    # The first windows of a block grow with it.
    while g.left < g.blocks and g.left * taps <= MOST_WORDS and not lies_within(g, g.left, False):
        g.left += 1
    while g.right > g.left and (g.blocks - g.right) * taps <= MOST_WORDS and not lies_within(g, g.right - 1, True):
        g.right -= 1
    g.edges = g.left + g.blocks - g.right
    if g.edges * taps > MOST_WORDS:
        return False
    g.low = g.high = 0
    g.kept = not one_edge and g.edges <= KEPT_EDGES and g.edges * taps <= room
    for edge in range(g.edges):
        start = edge_start(g, edge)
        if g.kept:
            g.starts[edge] = start
        for phase in range(g.phases):
            window = phase_start(g, start, phase) + g.window[phase]
            at = g.base[phase] - g.window[phase] if g.in_plane else 0
            for t in range(g.taps[phase]):
                begin = least(most(-window, 0), g.width)
                end = least(most(g.windows - window, 0), g.width)
                g.words[count] = lane_word(begin, end) if begin < end else 0
                if g.kept:
                    g.some[count] = find_lanes(g.words[count], numbers)
                if reads_all(numbers):
                    # Within a row the window moves by window_step in a column, by step in the plane.
                    begin = at + window + (t * (g.step + g.window_step) if g.in_plane else 0)
                    if count == 0 or begin < g.low:
                        g.low = begin
                    if count == 0 or begin + g.width > g.high:
                        g.high = begin + g.width
                count += 1
                window -= g.window_step
    return True


cdef inline void sum_whole(vec* sum, int blocks, const element* source, int64_t count, int64_t next, int64_t taps,
                           int64_t step) noexcept nogil:
    """Vectors side by side, all of whose lanes hold windows: their sums do not wait for each other."""
    cdef int64_t width = <int64_t>sizeof(vec) // sum_bytes(source)
    cdef int64_t a, t
    cdef int i
    for i in range(blocks):
        sum[i] = zero(sum)
    for a in range(count):
        for t in range(taps):
            for i in range(blocks):
                sum[i] = add(sum[i], load(source + (a * next + t * step) + i * width, sum), source)


cdef inline vec sum_lanes(const element* source, const lanes* some, int64_t count, int64_t next, int64_t taps,
                          int64_t step, vec* width) noexcept nogil:
    cdef vec sum = zero(width)
    cdef int64_t a, t
    for a in range(count):
        for t in range(taps):
            sum = add(sum, load_lanes(source + (a * next + t * step), some[t], width), source)
    return sum


cdef inline vec sum_words(const element* source, const uint16_t* words, bint safe, int64_t count, int64_t next,
                          int64_t taps, int64_t step, vec* width) noexcept nogil:
    """sum_lanes of lanes that are in no table, or must be read alone."""
    cdef vec sum = zero(width)
    cdef int64_t a, t
    cdef const element* p
    for a in range(count):
        for t in range(taps):
            p = source + (a * next + t * step)
            if safe or not reads_all(source):
                sum = add(sum, load_lanes(p, find_lanes(words[t], source), width), source)
            else:
                sum = add(sum, load_alone(p, words[t], width), source)
    return sum


cdef inline void sum_blocks(element* to, int blocks, const element* even, const element* odd, int64_t count,
                            int64_t next, int64_t step, int64_t taps, int64_t odd_taps, int phases,
                            vec* kind) noexcept nogil:
    """Blocks side by side of one phase, or of both, all of whose lanes hold windows."""
    cdef vec[4] sum
    cdef vec[4] odd_sum
    cdef int64_t width = <int64_t>sizeof(vec) // sum_bytes(to)
    cdef int i
    sum_whole(<vec*>sum, blocks, even, count, next, taps, step)
    if phases == 2:
        sum_whole(<vec*>odd_sum, blocks, odd, count, next, odd_taps, step)
    for i in range(blocks):
        if phases == 2:
            store_in_turn(to + 2 * i * width, sum[i], odd_sum[i])
        else:
            store(to + i * width, sum[i])


cdef inline void gather_row(const Gather* g, element* to, bint whole, bint by_words, bint safe, const element* even,
                            const element* odd, int64_t count, int64_t taps, int64_t odd_taps, bint many, int phases,
                            vec* width) noexcept nogil:
    """A row. If `many`, blocks wait for their terms and are made side by side. What the caller gives as constants are
    constants here."""
    cdef int64_t next = g.next
    cdef int64_t step = g.step
    cdef int64_t wide = phases * (<int64_t>sizeof(vec) // sum_bytes(to))
    cdef int64_t last = g.n - wide
    cdef int64_t block = g.left
    cdef int64_t regular = least(g.right, g.blocks - 1)
    cdef int64_t right = g.right
    cdef int64_t edges = g.edges
    cdef int64_t s, edge, at
    cdef const element* p
    cdef const element* q
    cdef vec sum, odd_sum
    if many:
        while block + 4 <= regular:
            s = block * wide
            sum_blocks(to + s, 4, even + s // phases, odd + s // phases, count, next, step, taps, odd_taps, phases,
                       width)
            block += 4
        while block + 2 <= regular:
            s = block * wide
            sum_blocks(to + s, 2, even + s // phases, odd + s // phases, count, next, step, taps, odd_taps, phases,
                       width)
            block += 2
    while block < right:
        s = least(block * wide, last)
        if phases == 2 and s & 1 != 0:      # the last of many: it begins with an odd position
            sum_blocks(to + s, 1, odd + (s >> 1), even + ((s + 1) >> 1), count, next, step, odd_taps, taps, 2, width)
        else:
            sum_blocks(to + s, 1, even + s // phases, odd + s // phases, count, next, step, taps, odd_taps, phases,
                       width)
        block += 1
    for edge in range(edges):
        s = edge_start(g, edge) if by_words else g.starts[edge]
        p = even + ((s + 1) >> 1 if phases == 2 else s)
        q = odd + (s >> 1)
        at = edge * (taps + odd_taps)
        if by_words:
            sum = sum_words(p, g.words + at, safe, count, next, taps, step, width)
            if phases == 2:
                odd_sum = sum_words(q, g.words + at + taps, safe, count, next, odd_taps, step, width)
        else:
            sum = sum_lanes(p, g.some + at, count, next, taps, step, width)
            if phases == 2:
                odd_sum = sum_lanes(q, g.some + at + taps, count, next, odd_taps, step, width)
        if phases == 1:
            if whole:
                store(to + s, sum)
            else:
                store_first(to, sum, g.n)
        elif s & 1 != 0:
            store_in_turn(to + s, odd_sum, sum)
        elif whole:
            store_in_turn(to + s, sum, odd_sum)
        else:
            store_first_in_turn(to, sum, odd_sum, g.n)
