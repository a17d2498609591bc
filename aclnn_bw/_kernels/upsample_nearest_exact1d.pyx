"""UpsampleNearestExact1dBackward: out[i] = sum of gradOutput[j] over the sources j that the forward pass took from i.

The index rule is that of PyTorch's nearest-exact upsampling on the CPU; phase 1 has turned it into tables (types of the
plan: `Block`, `Group`), which say for every target i the stretch of sources that it owns.

Numerics. float32, float16 and bfloat16 are summed in float32, float64 in float64; a sum starts from +0.0 and adds its
sources one by one, ascending in j; 16-bit results are rounded once, at the end. A target without a source is +0.0.
Every path below adds in this order, so blocks, threads, strides and instruction sets do not show in the result.

Bounds. The stretches of a row are its sources 0 to Lo in order, so a source that belongs to a target lies in the row.
Groups read SPAN sources (half of it for one term) whether or not they own them, of the next rows or what lies between
rows, and mask them out: those that would read beyond gradOutput's last element in memory, and all of them where a row
is strided, work on a copy of what they own, with room behind it. Targets come in blocks
that lie in the row; the results of a group that the row cuts off are made aside. Phase 1 has proved that both views lie
inside their storage.

Why this form. Up to MOST_TERMS terms to a target, 4 to 16 results at a time are made by permutations of two vectors:
a ratio of 3:2 in float32 takes a quarter of the time of the plain form. Where the map repeats itself after one group,
as for factors of 2, 4, 3/2 and 1/2, its lanes stay in registers. Dense rows whose map has a short period are joined end
to end: no row then has an end to treat apart, and one row is long enough for a vector. Longer stretches are summed four
at a time, for no order but the ascending one is allowed within each. Where few targets own a source, and none two, a
unit is cleared and its sources are stored among the zeros: for 100 targets to a source that takes on AVX2 half the time
of groups in float32 and float64, a third in 16 bits.

Where channels lie side by side in gradOutput, up to eight cache lines of them are transposed to rows of the scratch, a
block at a time, and these are worked off as any others; the scratch has SPAN elements behind each row, which groups may
read and mask out. A block that does not fit, because of long stretches, is gathered element by element (8x256x256 to
512 in float32: 3 times the time). Where those of out do so too, all channels of a source are added as vectors.
"""
from libc.stdint cimport int64_t
from libc.string cimport memset

from aclnn_bw._core.arithmetic cimport ceil_div, least, quotient
from aclnn_bw._core.types cimport ALL_GOOD, SLOT_BF16, SLOT_F16, SLOT_F32, SLOT_F64, KernelTable
from aclnn_bw._core.upsample_nearest_exact1d cimport (
    FILLED, PACKED, PERIODIC, PIXELS, SPAN, Block, Group, UpsampleNearestExact1dPlan, fill_block, packed_row,
)
from aclnn_bw._kernels.rows cimport copy, load_row, narrow_row, store_row, sum_dense_rows
from aclnn_bw._kernels.simd cimport bfloat, element, half, real
from aclnn_bw._kernels.transpose cimport transpose

cdef extern from "upsample_nearest_exact1d.h" nogil:
    void sum_groups_float "aclnn_bw_sum_groups_float" (
        float* to, const float* source, const char* groups, int64_t count, int64_t periods, int64_t stride,
        int64_t terms) noexcept
    void sum_groups_double "aclnn_bw_sum_groups_double" (
        double* to, const double* source, const char* groups, int64_t count, int64_t periods, int64_t stride,
        int64_t terms) noexcept
    void sum_groups_half "aclnn_bw_sum_groups_half" (
        half* to, const half* source, const char* groups, int64_t count, int64_t periods, int64_t stride,
        int64_t terms) noexcept
    void sum_groups_bfloat "aclnn_bw_sum_groups_bfloat" (
        bfloat* to, const bfloat* source, const char* groups, int64_t count, int64_t periods, int64_t stride,
        int64_t terms) noexcept

cdef enum:
    PIECE = 16      # groups worked off at a time where copies are made
    SOURCES = 512   # that they own, at most: PIECE * SPAN
    TARGETS = 256   # PIECE * WIDEST
    PLACES = 64     # sources scattered at a time


cdef inline void sum_groups(element* to, const element* source, const Group* groups, int64_t count, int64_t periods,
                            int64_t stride, int64_t terms) noexcept nogil:
    """The results of `periods` times `count` groups, whose sources begin `stride` further on in each period."""
    if element is float:
        sum_groups_float(to, source, <const char*>groups, count, periods, stride, terms)
    elif element is double:
        sum_groups_double(to, source, <const char*>groups, count, periods, stride, terms)
    elif element is half:
        sum_groups_half(to, source, <const char*>groups, count, periods, stride, terms)
    else:
        sum_groups_bfloat(to, source, <const char*>groups, count, periods, stride, terms)


cdef void sum_copied(const Block* block, const Group* groups, const element* source, int64_t source_stride,
                     int64_t readable, element* to, int64_t to_stride, int64_t targets, int64_t periods) noexcept nogil:
    """The first `targets` results of groups, at most PIECE, by way of dense copies: of part of a block's groups, or of
    all of them as often as `periods` says. `source` is where the first begins; `readable` sources of the row follow."""
    cdef element[SOURCES + SPAN] taken
    cdef element[TARGETS] made
    cdef int64_t width = block.width
    cdef int64_t count = (block.targets + width - 1) // width if periods > 0 else (targets + width - 1) // width
    cdef int64_t owned = periods * block.sources
    cdef int64_t j
    if periods == 0:
        owned = groups[count - 1].first - groups[0].first + groups[count - 1].lane[width]
    owned = least(owned, readable)
    if source_stride == 1:
        copy(<element*>taken, source, <size_t>owned * sizeof(element))
    else:
        for j in range(owned):
            taken[j] = source[j * source_stride]
    sum_groups(<element*>made, <const element*>taken - groups[0].first, groups, count, periods if periods > 0 else 1,
               block.sources, block.terms)
    store_row(to, to_stride, <const element*>made, targets)


cdef void sum_grouped(const Block* block, const element* source, int64_t source_stride, int64_t readable, element* to,
                      int64_t to_stride, int64_t targets) noexcept nogil:
    """A unit whose block has groups. `source` is where the block begins; `readable` elements follow."""
    cdef const Group* groups = <const Group*>(block + 1)
    cdef int64_t width = block.width
    cdef int64_t count = (block.targets + width - 1) // width
    cdef int64_t reach = SPAN // 2 if block.terms == 1 else SPAN
    cdef int64_t done = 0
    cdef int64_t base = 0       # source of the period that target `done` lies in
    cdef int64_t n, g, periods
    if source_stride == 1 and to_stride == 1:
        # Whole periods, as far as the last group's reach is readable; then single groups.
        n = readable - reach - groups[count - 1].first
        if targets >= block.targets and n >= 0 and block.targets == count * width:
            periods = quotient(targets, block.targets)
            if block.sources > 0:
                periods = least(periods, quotient(n, block.sources) + 1)
            sum_groups(to, source, groups, count, periods, block.sources, block.terms)
            done = periods * block.targets
            base = periods * block.sources
        g = least(count, quotient(targets - done, width))
        while g > 0 and base + groups[g - 1].first + reach > readable:
            g -= 1
        if g > 0:
            sum_groups(to + done, source + base, groups, g, 1, 0, block.terms)
            done += g * width
            if done % block.targets == 0:
                base += block.sources
    while done < targets:
        g = done % block.targets // width
        if g == 0 and 2 * count <= PIECE:
            periods = least(PIECE // count, ceil_div(targets - done, block.targets))
            n = least(periods * block.targets, targets - done)
        else:
            periods = 0
            n = least(least(PIECE, count - g) * width, targets - done)
        sum_copied(block, groups + g, source + (base + groups[g].first) * source_stride, source_stride,
                   readable - base - groups[g].first, to + done * to_stride, to_stride, n, periods)
        done += n
        if periods > 0:
            base += periods * block.sources
        elif done % block.targets == 0:
            base += block.sources


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
    for j in range(n):
        total0 += row[j]
        total1 += row1[j]
        total2 += row2[j]
        total3 += row3[j]
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


cdef inline void put_terms(element* to, int64_t stride, const int64_t* at, const element* source,
                           int64_t source_stride, int64_t n, const real* summed) noexcept nogil:
    """to[at[i] * stride] = 0.0 + source[i * source_stride] for i < n, at most PLACES."""
    cdef real[PLACES] sums
    cdef element[PLACES] made
    cdef int64_t i
    load_row(<real*>sums, source, source_stride, n)
    for i in range(n):
        sums[i] += 0
    narrow_row(<element*>made, <const real*>sums, n)
    for i in range(n):
        to[at[i] * stride] = made[i]


cdef void scatter_row(const Block* block, const element* source, int64_t source_stride, element* to, int64_t to_stride,
                      int64_t targets, const real* summed) noexcept nogil:
    """A unit whose block lists the target of every source: zeros, and then the sources that lie among them."""
    cdef const int64_t* places = <const int64_t*>(block + 1)
    cdef int64_t[PLACES] at
    cdef int64_t rest = targets % block.targets
    cdef int64_t left = (targets - rest) // block.targets * block.sources
    cdef int64_t base = 0       # target that the period begins at
    cdef int64_t k = 0          # source in the period
    cdef int64_t cleared = 0    # targets
    cdef int64_t n, i, end
    for i in range(block.sources):
        if places[i] >= rest:
            break
        left += 1
    while cleared < targets:
        n = least(left, PLACES)
        for i in range(n):
            at[i] = base + places[k]
            k += 1
            if k == block.sources:
                k = 0
                base += block.targets
        left -= n
        end = at[n - 1] + 1 if left > 0 else targets
        if to_stride == 1:
            memset(to + cleared, 0, <size_t>(end - cleared) * sizeof(element))
        else:
            for i in range(cleared, end):
                memset(to + i * to_stride, 0, sizeof(element))
        cleared = end
        if (real is float and element is float) or (real is double and element is double):
            for i in range(n):
                to[at[i] * to_stride] = source[i * source_stride] + <real>0
        else:
            put_terms(to, to_stride, <const int64_t*>at, source, source_stride, n, summed)
        source += n * source_stride


cdef inline void sum_row(const Block* block, const element* source, int64_t source_stride, int64_t readable,
                         element* to, int64_t to_stride, int64_t targets, const real* summed) noexcept nogil:
    """A unit of one channel."""
    if block.width > 0:
        sum_grouped(block, source, source_stride, readable, to, to_stride, targets)
    elif block.terms == 0:
        scatter_row(block, source, source_stride, to, to_stride, targets, summed)
    else:
        sum_stretches(block, source, source_stride, readable, to, to_stride, targets, summed)


cdef void sum_packed(const UpsampleNearestExact1dPlan* plan, const Block* block, const element* source,
                     int64_t readable, int64_t channels, element* to, int64_t targets, char* scratch,
                     const real* summed) noexcept nogil:
    """A unit of several channels whose sources lie side by side: as rows of the scratch, of what the block owns and
    room behind it, or, where that is too much, one by one."""
    cdef int64_t owned = least(ceil_div(targets, block.targets) * block.sources, readable)
    cdef int64_t pitch = packed_row(owned, sizeof(element)) // <int64_t>sizeof(element)
    cdef bint packed = plan.depth * pitch <= plan.packed // <int64_t>sizeof(element)
    cdef int64_t c
    if packed:
        transpose(scratch, pitch, source, plan.grad_output_strides[2], owned, channels, sizeof(element))
    for c in range(channels):
        if packed:
            sum_row(block, <const element*>scratch + c * pitch, 1, owned + SPAN, to + c * plan.out_strides[1],
                    plan.out_strides[2], targets, summed)
        else:
            sum_row(block, source + c, plan.grad_output_strides[2], readable, to + c * plan.out_strides[1],
                    plan.out_strides[2], targets, summed)


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


cdef void sum_pixels(const UpsampleNearestExact1dPlan* plan, const Block* block, const element* source, element* to,
                     int64_t targets, const real* summed) noexcept nogil:
    """A unit of all channels of a target."""
    cdef const Group* group = <const Group*>(block + 1)
    cdef const int64_t* starts = <const int64_t*>(block + 1)
    cdef int64_t along = plan.grad_output_strides[2]
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
        sum_pixel(to + i * plan.out_strides[2], source + start * along, along, end - start, plan.depth, summed)
        k += 1
        lane += 1
        if lane == block.width:
            lane = 0
            group += 1
        if k == block.targets:
            k = lane = 0
            group = <const Group*>(block + 1)
            source += block.sources * along


cdef int64_t backward(const UpsampleNearestExact1dPlan* plan, char** data, char* scratch, int64_t begin, int64_t end,
                      const real* summed, const element* stored) noexcept nogil:
    """The units [begin, end); the last two arguments give their types only."""
    cdef const element* grad_output__ncl = <const element*>data[0]
    cdef element* out__ncl = <element*>data[1]
    cdef const element* source
    cdef element* to
    cdef const Block* block = <const Block*>(plan + 1)
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
    while begin < end:
        begin += 1
        targets = least(plan.block, plan.targets - k * plan.block)
        if plan.tables == PERIODIC:
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
        if plan.layout == PACKED:
            sum_packed(plan, block, source, readable, least(plan.depth, plan.all_channels - c * plan.depth),
                       to, targets, scratch + (plan.table_bytes if plan.tables == FILLED else 0), summed)
        elif plan.layout == PIXELS:
            sum_pixels(plan, block, source, to, targets, summed)
        else:
            if block.width > 0 and plan.grad_output_strides[2] == 1:
                # What follows in memory may be read too.
                readable = plan.extent - (source - grad_output__ncl)
            sum_row(block, source, plan.grad_output_strides[2], readable, to, plan.out_strides[2], targets, summed)
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


cdef void upsample_nearest_exact1d_kernels(KernelTable* table) noexcept nogil:
    """Put this instruction set's kernels into the table."""
    table.upsample_nearest_exact1d_backward[<int>SLOT_F32] = backward_f32
    table.upsample_nearest_exact1d_backward[<int>SLOT_F64] = backward_f64
    table.upsample_nearest_exact1d_backward[<int>SLOT_F16] = backward_f16
    table.upsample_nearest_exact1d_backward[<int>SLOT_BF16] = backward_bf16
