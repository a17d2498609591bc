"""UpsampleNearestExact1dBackward: out[i] = sum of gradOutput[j] over the sources j that the forward pass took from i.

The index rule is that of PyTorch's nearest-exact upsampling on the CPU; phase 1 has turned it into tables (types of the
plan: `Block`, `Group`), which say for every target i the stretch of sources that it owns.

Numerics. float32, float16 and bfloat16 are summed in float32, float64 in float64; a sum starts from +0.0 and adds its
sources one by one, ascending in j; 16-bit results are rounded once, at the end. A target without a source is +0.0.
Every path below adds in this order, so blocks, threads, strides and instruction sets do not show in the result.

Bounds. The stretches of a row are its sources 0 to Lo in order, so a source that belongs to a target lies in the row.
Groups read SPAN sources whether or not they own them, and mask them out: those that would read beyond gradOutput's last
element in memory, and all of them where a row is strided, work on a copy of what they own, with room behind it. Targets
come in blocks that lie in the row; the results of a group that the row cuts off are made aside. Phase 1 has proved that
both views lie inside their storage.

Paths. docs/design/upsample_nearest_exact1d.md explains them.

    pairs       each target owns two sources            two vectors added pairwise, without a table
    groups      up to MOST_TERMS sources to a target    4 to 16 results at a time by lookups
    stretches   more                                    four side by side, one by one
    zeros       few targets own one, none owns two      cleared; the sources are stored among the zeros
    . streamed  rows end to end beyond the caches       any of these in strips of the scratch (lines.pxd)
    NO_TABLE    few rows                                cleared; each source is added where it belongs
    PACKED      channels side by side in gradOutput     transposed to rows of the scratch, which are as any others
    . streamed  beyond the caches                       results go past them, from the scratch
    . returns   few channels, in out too                results are transposed back
    . by pixels short rows, or many sources to a target all channels are added as vectors, results are transposed
    PIXELS      many, in out too                        all channels of a source are added as vectors
    UNPACKED    in out alone                            results are rows of the scratch, which are transposed
    . by pixels short rows, or many sources to a target transposed to pixels of the scratch, which are as any others
"""
from libc.stdint cimport int8_t, int16_t, int32_t, int64_t
from libc.string cimport memset

from aclnn_bw._core.arithmetic cimport ceil_div, least, most, quotient
from aclnn_bw._core.types cimport ALL_GOOD, SLOT_BF16, SLOT_F16, SLOT_F32, SLOT_F64, RangeFn
from aclnn_bw._core.upsample_nearest_exact1d cimport (
    FILLED, NO_TABLE, PACKED, PERIODIC, PIXELS, ROWS, SPAN, UNPACKED, Block, Group, NearestMap,
    UpsampleNearestExact1dPlan, fill_block, first_source, packed_row, short_index_at,
)
from aclnn_bw._kernels.lines cimport (
    Lines, Rest, close_lines, flush_rest, next_strip, open_lines, stream_on, stream_strip,
)
from aclnn_bw._kernels.planes cimport turn_any
from aclnn_bw._kernels.rows cimport copy, load_row, narrow_row, narrow_strided, store_row, sum_dense_rows, widened
from aclnn_bw._kernels.simd cimport VECTOR_BYTES, bfloat, cell_2, element, half, load_pairs, plus_zero, real, store
from aclnn_bw._kernels.transpose cimport sum_of
from aclnn_bw._kernels.upsample_nearest_exact1d_groups cimport (
    Lookups, group_width, open_group, sum_group, sum_lanes, terms_made,
)

cdef enum:
    PIECE = 16      # groups worked off at a time where copies are made
    SOURCES = 512   # that they own, at most: PIECE * SPAN
    TARGETS = 256   # PIECE * WIDEST
    PLACES = 64     # sources scattered at a time
    OPENED = 8      # groups whose lookups are kept

# Types that stand for the most terms of a target: their bytes.
ctypedef fused many:
    int8_t
    int16_t
    int32_t
    int64_t


cdef void sum_groups(element* to, const element* source, const Group* groups, int64_t count, int64_t periods,
                     int64_t stride, const many* most_terms) noexcept nogil:
    """The results of `periods` times `count` groups, whose sources begin `stride` further on in each period. A target
    has as many terms at most as `many` has bytes."""
    cdef Lookups[OPENED] f
    cdef Lookups one
    cdef int terms = sizeof(many)
    cdef int64_t width = group_width(terms)
    # AVX-512 opens a group as fast as it loads a lookup for each term.
    cdef bint kept = count <= OPENED and (VECTOR_BYTES < 64 or terms_made(terms, to) > 1)
    cdef int64_t g, _
    if count == 1:
        # The lookups stay in registers.
        open_group(&one, groups, terms, to)
        source += groups.first
        for _ in range(periods):
            sum_group(to, source, &one, terms)
            to += width
            source += stride
        return
    if kept:
        for g in range(count):
            open_group(&f[g], groups + g, terms, to)
    for _ in range(periods):
        for g in range(count):
            if kept:
                sum_group(to, source + groups[g].first, &f[g], terms)
            else:
                open_group(&one, groups + g, terms, to)
                sum_group(to, source + groups[g].first, &one, terms)
            to += width
        source += stride


cdef inline void sum_any_groups(element* to, const element* source, const Group* groups, int64_t count,
                                int64_t periods, int64_t stride, int64_t terms) noexcept nogil:
    if terms == 1:
        sum_groups(to, source, groups, count, periods, stride, <const int8_t*>NULL)
    elif terms == 2:
        sum_groups(to, source, groups, count, periods, stride, <const int16_t*>NULL)
    elif terms == 4:
        sum_groups(to, source, groups, count, periods, stride, <const int32_t*>NULL)
    else:
        sum_groups(to, source, groups, count, periods, stride, <const int64_t*>NULL)


cdef void sum_pairs(element* to, const element* source, int64_t n, const real* summed) noexcept nogil:
    """to[i] = source[2*i] + source[2*i + 1] for i < n; that the sum began with +0.0 shows only where both are -0.0."""
    cdef int64_t lanes = sum_lanes(to)
    cdef int64_t i = 0
    cdef real total
    while i + 2 * lanes <= n:
        store(to + i, plus_zero(load_pairs(source + 2 * i), summed))
        store(to + i + lanes, plus_zero(load_pairs(source + 2 * (i + lanes)), summed))
        i += 2 * lanes
    while i < n and n >= lanes:
        # The last vector overlaps the one before.
        i = least(i, n - lanes)
        store(to + i, plus_zero(load_pairs(source + 2 * i), summed))
        i += lanes
    while i < n:
        total = widened(source + 2 * i, &total) + widened(source + 2 * i + 1, &total) + <real>0
        narrow_row(to + i, <const real*>&total, 1)
        i += 1


cdef void sum_copied(const Block* block, const element* source, int64_t source_stride, int64_t readable, element* to,
                     int64_t to_stride, int64_t done, int64_t targets) noexcept nogil:
    """The targets [done, targets), which begin with a group, by way of dense copies of what some groups own: of a part
    of a period, or of several. `source` is where the block begins; `readable` elements follow."""
    cdef element[SOURCES + SPAN] taken
    cdef element[TARGETS] made
    cdef const Group* groups = <const Group*>(block + 1)
    cdef int64_t width = block.width
    cdef int64_t count = ceil_div(block.targets, width)
    cdef int64_t base = quotient(done, block.targets) * block.sources
    cdef int64_t g, n, periods, first, owned, j
    while done < targets:
        g = done % block.targets // width
        n = least(least(PIECE, count - g), ceil_div(targets - done, width))
        periods = 1
        first = groups[g].first
        owned = groups[g + n - 1].first + groups[g + n - 1].lane[width] - first
        if n == count:
            periods = least(PIECE // count, ceil_div(targets - done, block.targets))
            owned += (periods - 1) * block.sources
        first += base
        owned = least(owned, readable - first)
        if source_stride == 1:
            copy(<element*>taken, source + first, <size_t>owned * sizeof(element))
        else:
            for j in range(owned):
                taken[j] = source[(first + j) * source_stride]
        sum_any_groups(<element*>made, <const element*>taken - groups[g].first, groups + g, n, periods, block.sources,
                       block.terms)
        n = least(periods * n * width, targets - done)
        store_row(to + done * to_stride, to_stride, <const element*>made, n)
        done += n
        if done % block.targets == 0:
            base += periods * block.sources


cdef void sum_grouped(const Block* block, const element* source, int64_t source_stride, int64_t readable, element* to,
                      int64_t to_stride, int64_t targets, const real* summed) noexcept nogil:
    """A unit whose block has groups. `source` is where the block begins; `readable` elements follow."""
    cdef const Group* groups = <const Group*>(block + 1)
    cdef int64_t width = block.width
    cdef int64_t count = ceil_div(block.targets, width)
    cdef int64_t done = 0
    cdef int64_t base = 0       # source of the period that target `done` lies in
    cdef int64_t n, g, periods
    if source_stride == 1 and to_stride == 1:
        if block.terms == 2 and block.sources == 2 * block.targets:
            sum_pairs(to, source, targets, summed)
            return
        # Whole periods, as far as what the last group reads is readable; then single groups.
        n = readable - SPAN - groups[count - 1].first
        if targets >= block.targets and n >= 0 and block.targets == count * width:
            periods = quotient(targets, block.targets)
            if block.sources > 0:
                periods = least(periods, quotient(n, block.sources) + 1)
            sum_any_groups(to, source, groups, count, periods, block.sources, block.terms)
            done = periods * block.targets
            base = periods * block.sources
        g = least(count, quotient(targets - done, width))
        while g > 0 and base + groups[g - 1].first + SPAN > readable:
            g -= 1
        if g > 0:
            sum_any_groups(to + done, source + base, groups, g, 1, 0, block.terms)
            done += g * width
    sum_copied(block, source, source_stride, readable, to, to_stride, done, targets)


cdef inline void sum_four(real* totals, const real* row, const int64_t* starts) noexcept nogil:
    """totals[k] = sum of row[starts[k] - starts[0] : starts[k + 1] - starts[0]], one by one.

    For four k side by side, because an addition waits several cycles for the one before it.
    """
    cdef const real* row1 = row + (starts[1] - starts[0])
    cdef const real* row2 = row + (starts[2] - starts[0])
    cdef const real* row3 = row + (starts[3] - starts[0])
    cdef real total0 = 0
    cdef real total1 = 0
    cdef real total2 = 0
    cdef real total3 = 0
    cdef int64_t n = least(least(starts[1] - starts[0], starts[2] - starts[1]),
                           least(starts[3] - starts[2], starts[4] - starts[3]))
    cdef int64_t j
    cdef real nothing = 0
    for j in range(n):
        total0 += row[j]
        total1 += row1[j]
        total2 += row2[j]
        total3 += row3[j]
    # Most have one more or none: an address is chosen without a branch that would be guessed wrong.
    total0 += (row + n if starts[1] - starts[0] > n else <const real*>&nothing)[0]
    total1 += (row1 + n if starts[2] - starts[1] > n else <const real*>&nothing)[0]
    total2 += (row2 + n if starts[3] - starts[2] > n else <const real*>&nothing)[0]
    total3 += (row3 + n if starts[4] - starts[3] > n else <const real*>&nothing)[0]
    n += 1
    for j in range(n, starts[1] - starts[0]):
        total0 += row[j]
    for j in range(n, starts[2] - starts[1]):
        total1 += row1[j]
    for j in range(n, starts[3] - starts[2]):
        total2 += row2[j]
    for j in range(n, starts[4] - starts[3]):
        total3 += row3[j]
    totals[0] = total0
    totals[1] = total1
    totals[2] = total2
    totals[3] = total3


cdef void sum_stretches(const Block* block, const element* source, int64_t source_stride, int64_t readable,
                        element* to, int64_t to_stride, int64_t targets, const real* summed) noexcept nogil:
    """A unit whose block has the first source of every target: stretches of any length."""
    cdef const int64_t* starts = <const int64_t*>(block + 1)
    cdef real[SOURCES] loaded
    cdef element[4] made
    cdef real[4] totals
    cdef real total
    cdef const real* row = loaded       # of the sources [low, high)
    cdef int64_t low = 0
    cdef int64_t high = 0
    cdef int64_t base = 0
    cdef int64_t i = 0
    cdef int64_t k = 0
    cdef int64_t j, n, at, end, stop
    if (real is float and element is float) or (real is double and element is double):
        if source_stride == 1:
            row = source
            high = readable
    while i < targets:
        if k == block.targets:
            k = 0
            base += block.sources
        n = 4 if i + 4 <= targets and k + 4 <= block.targets else 1
        at = base + starts[k]
        end = base + starts[k + n]
        if n == 4 and end > high and end - at > SOURCES:
            n = 1
            end = base + starts[k + 1]
        total = 0
        while n == 1 and at < end:
            if at == high:
                low = at
                high = at + least(SOURCES, readable - at)
                load_row(<real*>loaded, source + low * source_stride, source_stride, high - low)
            stop = least(end, high)
            for j in range(at - low, stop - low):
                total += row[j]
            at = stop
        totals[0] = total
        if n == 4:
            if end > high:
                low = at
                high = at + least(SOURCES, readable - at)
                load_row(<real*>loaded, source + low * source_stride, source_stride, high - low)
            sum_four(<real*>totals, row + (at - low), starts + k)
        narrow_row(<element*>made, <const real*>totals, n)
        store_row(to + i * to_stride, to_stride, <const element*>made, n)
        i += n
        k += n


cdef void scatter_row(const Block* block, const element* source, int64_t source_stride, element* to, int64_t to_stride,
                      int64_t targets) noexcept nogil:
    """A unit whose block lists the target of every source: zeros, and then the sources that lie among them."""
    cdef const int64_t* places = <const int64_t*>(block + 1)
    cdef int64_t[PLACES] at
    cdef int64_t base = 0       # target that the period begins at
    cdef int64_t k = 0          # source in the period
    cdef int64_t cleared = 0    # targets
    cdef int64_t n, i, end
    while cleared < targets:
        n = 0
        while n < PLACES and block.sources > 0 and base + places[k] < targets:
            at[n] = base + places[k]
            n += 1
            k += 1
            if k == block.sources:
                k = 0
                base += block.targets
        end = at[n - 1] + 1 if n == PLACES else targets
        if to_stride == 1:
            memset(to + cleared, 0, <size_t>(end - cleared) * sizeof(element))
        else:
            for i in range(cleared, end):
                memset(to + i * to_stride, 0, sizeof(element))
        cleared = end
        for i in range(n):
            # A sum of one term: -0.0 becomes +0.0.
            if element is half or element is bfloat:
                (<cell_2*>(to + at[i] * to_stride))[0] = sum_of((<const cell_2*>(source + i * source_stride))[0], True)
            else:
                to[at[i] * to_stride] = source[i * source_stride] + <element>0
        source += n * source_stride


cdef void add_sources(const UpsampleNearestExact1dPlan* plan, const element* source, int64_t begin, element* to,
                      int64_t targets, char* scratch, const real* summed) noexcept nogil:
    """A unit of few rows: the targets [begin, begin + targets) of one, whose first source is `source`.

    The sources from the first of `begin` on have these targets and no others, for the map is monotone. Sums in `to`
    would save a copy, but take two to three times as long in a sixth of the runs; it is done where nearly all is zeros.
    """
    cdef const NearestMap* map = &plan.map
    cdef int64_t source_stride = plan.grad_output_strides[2]
    cdef int64_t to_stride = plan.out_strides[2]
    cdef real* sums = <real*>scratch
    cdef real[PLACES] loaded
    cdef int32_t[PLACES] at
    cdef int32_t last = <int32_t>(map.targets - 1)
    cdef int64_t j = first_source(map, begin)
    cdef int64_t end = first_source(map, begin + targets)
    cdef int32_t k
    cdef int64_t n, i
    cdef double middle
    cdef float ratio = map.ratio
    cdef bint in_place = (plan.scatters and to_stride == 1
                          and (real is float and element is float or real is double and element is double))
    if in_place:
        sums = <real*>to
    memset(sums, 0, <size_t>targets * sizeof(real))
    while j < end:
        middle = <double>j + 0.5
        for k in range(PLACES):
            at[k] = short_index_at(middle + k, ratio, last)
        n = least(PLACES, end - j)
        load_row(<real*>loaded, source + j * source_stride, source_stride, n)
        for i in range(n):
            sums[at[i] - begin] += loaded[i]
        j += n
    if not in_place:
        narrow_strided(to, to_stride, <const real*>sums, targets)


cdef inline void sum_row(const Block* block, const element* source, int64_t source_stride, int64_t readable,
                         element* to, int64_t to_stride, int64_t targets, const real* summed) noexcept nogil:
    """A unit of one channel."""
    if block.width > 0:
        sum_grouped(block, source, source_stride, readable, to, to_stride, targets, summed)
    elif block.terms == 0:
        scatter_row(block, source, source_stride, to, to_stride, targets)
    else:
        sum_stretches(block, source, source_stride, readable, to, to_stride, targets, summed)


cdef void stream_sums(Lines* strip, int64_t n, const char* next, const char* source_end) noexcept nogil:
    """The n bytes of a unit that has been made go past the caches. Of the sources that come next, a line is fetched for
    each that is written. Compiled once for all types."""
    stream_strip(strip, n, next, 1, source_end)


cdef inline void sum_unit(const UpsampleNearestExact1dPlan* plan, Lines* strip, const Block* block,
                          const element* source, int64_t readable, element* to, int64_t targets,
                          const element* source_end, const real* summed) noexcept nogil:
    """A unit of ROWS, through a strip or not."""
    if plan.streams:
        to = <element*>next_strip(strip, <char*>to)
    sum_row(block, source, plan.grad_output_strides[2], readable, to, plan.out_strides[2], targets, summed)
    if plan.streams:
        stream_sums(strip, targets * <int64_t>sizeof(element),
                    <const char*>(source + quotient(targets, block.targets) * block.sources), <const char*>source_end)


cdef void sum_pixel(element* to, const element* source, int64_t down, int64_t rows, int64_t n,
                    const real* summed) noexcept nogil:
    """to[:n] = the sum of `rows` rows of n sources."""
    cdef real[SOURCES] sums
    cdef real* made = sums
    cdef int64_t at = 0
    cdef int64_t m
    if rows == 0:
        memset(to, 0, <size_t>n * sizeof(element))
        return
    while at < n:
        m = least(n - at, SOURCES)
        if (real is float and element is float) or (real is double and element is double):
            made = to + at
            sum_dense_rows(made, source + at, down, rows, m)
        else:
            sum_dense_rows(made, source + at, down, rows, m)
            narrow_row(to + at, <const real*>made, m)
        at += m


cdef void sum_pixels(const Block* block, const element* source, int64_t along, element* to, int64_t to_along,
                     int64_t targets, int64_t channels, const real* summed) noexcept nogil:
    """A unit whose channels lie side by side."""
    cdef const Group* group = <const Group*>(block + 1)
    cdef const int64_t* starts = <const int64_t*>(block + 1)
    cdef int64_t k = 0      # targets of the period, of the group
    cdef int64_t lane = 0
    cdef int64_t i, start, end
    for i in range(targets):
        if block.width > 0:
            start = group.first + group.lane[lane]
            end = group.first + group.lane[lane + 1]
        else:
            start = starts[k]
            end = starts[k + 1]
        sum_pixel(to + i * to_along, source + start * along, along, end - start, channels, summed)
        k += 1
        lane += 1
        if lane == block.width:
            lane = 0
            group += 1
        if k == block.targets:
            k = lane = 0
            group = <const Group*>(block + 1)
            source += block.sources * along


cdef void stream_row(Rest* rest, char* to, const char* made, int64_t n) noexcept nogil:
    """stream_on, compiled once for all types."""
    stream_on(rest, to, made, n)


cdef void turn_cells(void* to, int64_t to_pitch, const void* source, int64_t pitch, int64_t rows, int64_t columns,
                     int64_t size, const void* end) noexcept nogil:
    """turn_any, compiled once for all types, for it is long."""
    turn_any(to, to_pitch, source, pitch, rows, columns, size, end)


cdef void sum_channels(const UpsampleNearestExact1dPlan* plan, const Block* block, const element* source,
                       int64_t left, int64_t readable, int64_t channels, element* to, int64_t targets, char* scratch,
                       const void* source_end, Rest* rest, const real* summed) noexcept nogil:
    """A unit of several channels; `left` sources of the row are the block's or follow. PACKED makes rows of the scratch
    of what the block owns, with room behind it, UNPACKED of its results; where that is too much, channels are worked
    off one by one. `by_pixels`, results are transposed, or what the block owns. What is streamed, or transposed back,
    is made behind that."""
    cdef int64_t size = <int64_t>sizeof(element)
    cdef int64_t owned = least(ceil_div(targets, block.targets) * block.sources, left)
    cdef int64_t pitch = packed_row(most(owned, targets) if plan.by_pixels else (
        owned if plan.layout == PACKED else targets), size) // size
    cdef bint fits = plan.depth * pitch <= plan.packed // size
    cdef int64_t along = plan.grad_output_strides[2]
    cdef int64_t next = plan.grad_output_strides[1]
    cdef int64_t to_along = plan.out_strides[2]
    cdef int64_t to_next = plan.out_strides[1]
    cdef int64_t made_pitch = packed_row(targets, size) // size
    cdef element* made = to
    cdef int64_t k
    if fits and plan.by_pixels and plan.layout == PACKED:
        sum_pixels(block, source, along, <element*>scratch, channels, targets, channels, summed)
        if plan.streams:
            made = <element*>(scratch + plan.packed)
            turn_cells(made, pitch, scratch, channels, targets, channels, size, NULL)
            for k in range(channels):
                stream_row(rest, <char*>(to + k * to_next), <const char*>(made + k * pitch), targets * size)
        else:
            turn_cells(to, to_next, scratch, channels, targets, channels, size, NULL)
        return
    if fits and plan.by_pixels:
        turn_cells(scratch, channels, source, next, channels, owned, size, NULL)
        sum_pixels(block, <const element*>scratch, channels, to, to_along, targets, channels, summed)
        return
    if fits and plan.layout == PACKED:
        turn_cells(scratch, pitch, source, along, owned, channels, size, source_end)
        source = <const element*>scratch
        readable = owned + SPAN
        next = pitch
        along = 1
        if plan.streams or plan.returns:
            made = <element*>(scratch + plan.packed)
            to_next = made_pitch if plan.returns else 0
            to_along = 1
    elif fits:
        made = <element*>scratch
        to_next = pitch
        to_along = 1
    for k in range(channels):
        sum_row(block, source, along, readable, made, to_along, targets, summed)
        if fits and plan.streams:
            stream_row(rest, <char*>(to + k * plan.out_strides[1]), <const char*>made, targets * size)
        if plan.layout == UNPACKED and block.width > 0 and along == 1:
            # To the end of gradOutput.
            readable -= next
        source += next
        made += to_next
    if fits and plan.returns:
        turn_cells(to, plan.out_strides[2], scratch + plan.packed, made_pitch, channels, targets, size, NULL)
    if fits and plan.layout == UNPACKED:
        turn_cells(to, plan.out_strides[2], scratch, pitch, channels, targets, size, NULL)


cdef int64_t backward(const UpsampleNearestExact1dPlan* plan, char** data, char* scratch, int64_t begin, int64_t end,
                      const real* summed, const element* stored) noexcept nogil:
    """The units [begin, end); the last two arguments give their types only."""
    cdef const element* grad_output__ncl = <const element*>data[0]
    cdef element* out__ncl = <element*>data[1]
    cdef const element* source
    cdef element* to
    cdef const Block* block = <const Block*>(plan + 1)
    cdef Lines strip
    cdef Rest rest
    cdef int64_t filled = -1
    cdef int64_t n, c, row, k, first, targets, readable
    # Unit = row*blocks + k, or k*rows + row: taken apart once, then counted on.
    if plan.tables == FILLED:
        k = quotient(begin, plan.rows)
        row = begin - k * plan.rows
    else:
        row = quotient(begin, plan.blocks)
        k = begin - row * plan.blocks
    n = quotient(row, plan.channels)
    c = row - n * plan.channels
    rest.to = NULL
    open_lines(&strip, scratch + (plan.table_bytes if plan.tables == FILLED else 0))
    while begin < end:
        begin += 1
        targets = least(plan.block, plan.targets - k * plan.block)
        if plan.tables == NO_TABLE:
            first = 0
        elif plan.tables == PERIODIC:
            first = quotient(k * plan.block, block.targets) * block.sources
        else:
            if plan.tables != FILLED:
                block = <const Block*>(<const char*>(plan + 1) + k * plan.table_bytes)
            elif filled != k:
                filled = k
                block = <const Block*>scratch
                fill_block(&plan.map, k * plan.block, targets, plan.scatters, <Block*>scratch)
            first = block.first
        source = (grad_output__ncl + n * plan.grad_output_strides[0] + c * plan.depth * plan.grad_output_strides[1]
                  + first * plan.grad_output_strides[2])
        to = (out__ncl + n * plan.out_strides[0] + c * plan.depth * plan.out_strides[1]
              + k * plan.block * plan.out_strides[2])
        readable = plan.sources - first
        if plan.tables == NO_TABLE:
            add_sources(plan, source, k * plan.block, to, targets, scratch, summed)
        elif plan.layout == PIXELS:
            sum_pixels(block, source, plan.grad_output_strides[2], to, plan.out_strides[2], targets, plan.depth,
                       summed)
        else:
            if block.width > 0 and plan.grad_output_strides[2] == 1:
                # What follows in memory may be read too.
                readable = plan.extent - (source - grad_output__ncl)
            if plan.layout == ROWS:
                sum_unit(plan, &strip, block, source, readable, to, targets, grad_output__ncl + plan.extent, summed)
            else:
                sum_channels(plan, block, source, plan.sources - first, readable,
                             least(plan.depth, plan.all_channels - c * plan.depth), to, targets,
                             scratch + (plan.table_bytes if plan.tables == FILLED else 0),
                             grad_output__ncl + plan.extent, &rest, summed)
        if plan.tables != FILLED:
            k += 1
            if k < plan.blocks:
                continue
            k = 0
        row += 1
        c += 1
        if c == plan.channels:
            c = 0
            n += 1
        if plan.tables == FILLED and row == plan.rows:
            row = 0
            c = 0
            n = 0
            k += 1
    flush_rest(&rest)
    if plan.streams:
        close_lines(&strip)
    return ALL_GOOD


cdef int64_t backward_f32(const void* plan, char** data, char* scratch, int64_t begin, int64_t end) noexcept nogil:
    return backward(<const UpsampleNearestExact1dPlan*>plan, data, scratch, begin, end, <const float*>NULL,
                    <const float*>NULL)


cdef int64_t backward_f64(const void* plan, char** data, char* scratch, int64_t begin, int64_t end) noexcept nogil:
    return backward(<const UpsampleNearestExact1dPlan*>plan, data, scratch, begin, end, <const double*>NULL,
                    <const double*>NULL)


cdef int64_t backward_f16(const void* plan, char** data, char* scratch, int64_t begin, int64_t end) noexcept nogil:
    return backward(<const UpsampleNearestExact1dPlan*>plan, data, scratch, begin, end, <const float*>NULL,
                    <const half*>NULL)


cdef int64_t backward_bf16(const void* plan, char** data, char* scratch, int64_t begin, int64_t end) noexcept nogil:
    return backward(<const UpsampleNearestExact1dPlan*>plan, data, scratch, begin, end, <const float*>NULL,
                    <const bfloat*>NULL)


cdef void upsample_nearest_exact1d_kernels(RangeFn* row) noexcept nogil:
    """Put this instruction set's kernels into their row of the table."""
    row[<int>SLOT_F32] = backward_f32
    row[<int>SLOT_F64] = backward_f64
    row[<int>SLOT_F16] = backward_f16
    row[<int>SLOT_BF16] = backward_bf16
