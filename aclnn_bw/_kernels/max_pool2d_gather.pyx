# cython: cdivision=True
"""MaxPool2dWithMaskBackward, GATHER: each element of gradInput asks the windows that hold it.

gradInput[ih, iw] = the sum of gradOutput[oh, ow] over the windows (oh, ow) whose recorded maximum lies at (ih, iw); the
formula is that of PyTorch's max_pool2d_with_indices_backward, with the position read from a mask (max_pool2d.pxd of the
core draws it). float32 and the 16-bit types are summed in float32, float64 in float64, from +0.0 in ascending (oh, ow),
but where 3 kernel columns at stride 1 and padding 1 meet (SAME): there each ow is summed by itself, oh ascending, and
then these sums in ascending ow. A 16-bit result is rounded once. No term is multiplied: a NaN or inf reaches exactly
its own positions. max_pool2d_scatter.pyx makes the same bytes for the other kernels; docs/design/max_pool2d.md tells
which.

For a row ih of gradInput and a class of its columns, the windows that hold them and the kernel positions at which they
do are the same for the whole row: max_pool2d_columns.pxd sums a vector of columns. Rows go in chunks that stay in the
L1 cache; what cannot be read or written where it lies passes through the scratch. An argmax mask is checked chunk by
chunk, before its windows are summed (max_pool2d_indices.pxd).

    form                        kernel columns, stride, padding
    three_by_two[_indices]      3, 2, 0 or 1
    two_by_two[_indices]        2, 2, 0 or 1
    three_by_one                3, 1, 0
    lines_of_bits, slid_*       3, 1, 1 (SAME): rows that lie end to end are one
    any_columns                 1 to 4 at stride 1 or 2

Why every access is in bounds: the plan has proved the shapes of all tensors and that the mask is one contiguous
container of at least mask_end bytes. What a block reads, max_pool2d_columns.pxd tells; what is fetched ahead is not
read. An index is compared, never used as an address.
"""
from libc.stdint cimport int64_t, uint16_t
from libc.string cimport memset

from aclnn_bw._core.arithmetic cimport least, most
from aclnn_bw._core.max_pool2d cimport (
    LANES, MOST_ROWS, SAME, TEAM, THREE_BY_ONE, THREE_BY_TWO, TWO_BY_TWO, MaxPool2d, MaxPool2dGatherPlan, PoolAxis,
)
from aclnn_bw._core.types cimport ALL_GOOD, SLOT_BF16, SLOT_F16, SLOT_F32, SLOT_F64, RangeFn
from aclnn_bw._kernels.lines cimport Rest, flush_rests, stream_on
from aclnn_bw._kernels.max_pool2d_columns cimport (
    Plane, Term, fill_edges, gradient, line_of_bits, line_rows, line_slid, line_terms, sum_columns,
)
from aclnn_bw._kernels.max_pool2d_indices cimport (
    end_window, fill_windows, find_missed, first_place, first_window, packed_indices,
)
from aclnn_bw._kernels.max_pool2d_rows cimport (
    Unit, first_unit, joined_rows, load_channels, next_unit, pack_row, store_rows, store_sums,
)
from aclnn_bw._kernels.planes cimport turn_any
from aclnn_bw._kernels.rows cimport bfloat, element, half, real, store_row, touch_pages
from aclnn_bw._kernels.simd cimport CHOOSES_HALVES, VECTOR_BYTES, fence

cdef enum:
    LONG_PLANE = 16384      # bytes
    CACHE_WAY = 2048        # bytes: half a way of an L1 cache


cdef int64_t check_indices(const MaxPool2dGatherPlan* plan, const char* mask__hw, const char* scratch, int64_t oh,
                           int64_t end) noexcept nogil:
    """The first window from row `oh` to row `end` whose index lies outside it, counted in the plane; or -1."""
    return find_missed(&plan.pool, &plan.windows, mask__hw, scratch, oh, end)


# A form of the loop each, for what is known of a kernel's columns is compiled in.

cdef inline void stride_2(element* to, int64_t to_step, const Plane* w, int64_t ih, int64_t end, int64_t oh, int64_t k,
                          bint indexed, bint padded, bint team, const gradient* read) noexcept nogil:
    if padded and team:
        sum_columns(to, to_step, w, ih, end, oh, k, 2, 1, indexed, TEAM, read)
    elif padded:
        sum_columns(to, to_step, w, ih, end, oh, k, 2, 1, indexed, 1, read)
    elif team:
        sum_columns(to, to_step, w, ih, end, oh, k, 2, 0, indexed, TEAM, read)
    else:
        sum_columns(to, to_step, w, ih, end, oh, k, 2, 0, indexed, 1, read)


cdef void three_by_two(element* to, int64_t to_step, const Plane* w, int64_t ih, int64_t end, int64_t oh,
                       bint padded, bint team, const gradient* read) noexcept nogil:
    stride_2(to, to_step, w, ih, end, oh, 3, False, padded, team, read)


cdef void three_by_two_indices(element* to, int64_t to_step, const Plane* w, int64_t ih, int64_t end, int64_t oh,
                               bint padded, bint team, const gradient* read) noexcept nogil:
    stride_2(to, to_step, w, ih, end, oh, 3, True, padded, team, read)


cdef void two_by_two(element* to, int64_t to_step, const Plane* w, int64_t ih, int64_t end, int64_t oh,
                     bint padded, bint team, const gradient* read) noexcept nogil:
    stride_2(to, to_step, w, ih, end, oh, 2, False, padded, team, read)


cdef void two_by_two_indices(element* to, int64_t to_step, const Plane* w, int64_t ih, int64_t end, int64_t oh,
                             bint padded, bint team, const gradient* read) noexcept nogil:
    stride_2(to, to_step, w, ih, end, oh, 2, True, padded, team, read)


cdef void three_by_one(element* to, int64_t to_step, const Plane* w, int64_t ih, int64_t end, int64_t oh,
                       bint indexed, bint team, const gradient* read) noexcept nogil:
    if indexed and team:
        sum_columns(to, to_step, w, ih, end, oh, 3, 1, 0, True, TEAM, read)
    elif indexed:
        sum_columns(to, to_step, w, ih, end, oh, 3, 1, 0, True, 1, read)
    elif team:
        sum_columns(to, to_step, w, ih, end, oh, 3, 1, 0, False, TEAM, read)
    else:
        sum_columns(to, to_step, w, ih, end, oh, 3, 1, 0, False, 1, read)


cdef void any_columns(element* to, int64_t to_step, const Plane* w, int64_t ih, int64_t end, int64_t oh, int64_t k,
                      int64_t s, int64_t p, bint indexed, const gradient* read) noexcept nogil:
    if indexed and s == 1:
        sum_columns(to, to_step, w, ih, end, oh, k, 1, p, True, 1, read)
    elif indexed:
        sum_columns(to, to_step, w, ih, end, oh, k, 2, p, True, 1, read)
    elif s == 1:
        sum_columns(to, to_step, w, ih, end, oh, k, 1, p, False, 1, read)
    else:
        sum_columns(to, to_step, w, ih, end, oh, k, 2, p, False, 1, read)


cdef void lines_of_bits(element* to, int64_t to_step, const Plane* plane, int64_t ih, int64_t end,
                        const gradient* read) noexcept nogil:
    """Words as they lie at each kernel column, where that takes less than slides."""
    cdef Plane w = plane[0]
    cdef int64_t rows = line_rows(&w, to_step, end - ih, read)
    cdef int64_t count
    cdef Term[MOST_ROWS] terms
    while ih < end:
        count = line_terms(terms, &w, ih, rows, False)
        if count == 3:
            line_of_bits(to, &w, terms, rows * w.columns, 3, read)
        else:
            line_of_bits(to, &w, terms, rows * w.columns, count, read)
        ih += rows
        to += rows * to_step


cdef void slid_bits(element* to, int64_t to_step, const Plane* plane, int64_t ih, int64_t end,
                    const gradient* read) noexcept nogil:
    cdef Plane w = plane[0]
    cdef int64_t rows = line_rows(&w, to_step, end - ih, read)
    cdef int64_t count
    cdef Term[MOST_ROWS] terms
    while ih < end:
        count = line_terms(terms, &w, ih, rows, False)
        if w.channels == TEAM and count == 3:
            line_slid(to, &w, terms, rows * w.columns, 0, 3, False, TEAM, read)
        elif w.channels == TEAM:
            line_slid(to, &w, terms, rows * w.columns, 0, count, False, TEAM, read)
        else:
            line_slid(to, &w, terms, rows * w.columns, 0, count, False, 1, read)
        ih += rows
        to += rows * to_step


cdef void slid_indices(element* to, int64_t to_step, const Plane* plane, int64_t ih, int64_t end,
                       const gradient* read) noexcept nogil:
    cdef Plane w = plane[0]
    cdef int64_t rows = line_rows(&w, to_step, end - ih, read)
    cdef int64_t count, channel, t
    cdef Term[MOST_ROWS] terms
    while ih < end:
        count = line_terms(terms, &w, ih, rows, True)
        channel = 0
        if VECTOR_BYTES == 64 and w.channels == TEAM:
            if count == 3:
                line_slid(to, &w, terms, rows * w.columns, ih * w.columns, 3, True, TEAM, read)
            else:
                line_slid(to, &w, terms, rows * w.columns, ih * w.columns, count, True, TEAM, read)
            channel = TEAM
        while channel < w.channels:
            if count == 3:
                line_slid(to + channel * w.to_channel, &w, terms, rows * w.columns, ih * w.columns, 3, True, 1, read)
            else:
                line_slid(to + channel * w.to_channel, &w, terms, rows * w.columns, ih * w.columns, count, True, 1,
                          read)
            for t in range(count):
                terms[t].grad += w.grad_channel
                terms[t].mask += w.mask_channel
            channel += 1
        ih += rows
        to += rows * to_step


cdef inline void sum_rows(const MaxPool2dGatherPlan* plan, element* to, int64_t to_step, const Plane* w, int64_t ih,
                          int64_t end, int64_t oh, bint team, const gradient* read) noexcept nogil:
    """Rows [ih, end) of gradInput of a team of channels, or of one."""
    cdef const MaxPool2d* pool = &plan.pool
    if plan.known == SAME and pool.argmax:
        slid_indices(to, to_step, w, ih, end, read)
    elif plan.known == SAME and VECTOR_BYTES == 64 and sizeof(gradient) > 2:
        slid_bits(to, to_step, w, ih, end, read)
    elif plan.known == SAME:
        lines_of_bits(to, to_step, w, ih, end, read)
    elif plan.known == THREE_BY_TWO and pool.argmax:
        three_by_two_indices(to, to_step, w, ih, end, oh, pool.w.pad, team, read)
    elif plan.known == THREE_BY_TWO:
        three_by_two(to, to_step, w, ih, end, oh, pool.w.pad, team, read)
    elif plan.known == TWO_BY_TWO and pool.argmax:
        two_by_two_indices(to, to_step, w, ih, end, oh, pool.w.pad, team, read)
    elif plan.known == TWO_BY_TWO:
        two_by_two(to, to_step, w, ih, end, oh, pool.w.pad, team, read)
    elif plan.known == THREE_BY_ONE:
        three_by_one(to, to_step, w, ih, end, oh, pool.argmax, team, read)
    else:
        any_columns(to, to_step, w, ih, end, oh, pool.w.kernel, pool.w.stride, pool.w.pad, pool.argmax, read)


cdef inline void gather_rows(const MaxPool2dGatherPlan* plan, char* to, int64_t to_step, const Plane* w, int64_t ih,
                             int64_t end, int64_t oh, bint team, const real* summed,
                             const element* stored) noexcept nogil:
    """The last two arguments give their types only."""
    if real is double:
        sum_rows(plan, <double*>to, to_step, w, ih, end, oh, team, <const double*>NULL)
    elif element is half or element is bfloat:
        if CHOOSES_HALVES:
            sum_rows(plan, <element*>to, to_step, w, ih, end, oh, team, <const element*>NULL)
        else:
            sum_rows(plan, <element*>to, to_step, w, ih, end, oh, team, <const float*>NULL)
    else:
        sum_rows(plan, <float*>to, to_step, w, ih, end, oh, team, <const float*>NULL)


cdef inline int64_t prefetch_distance(int64_t plane, int64_t team) noexcept nogil:
    """Bytes: to the same place in the next planes that are summed, or where planes are long, further on in them."""
    return team * plane if plane < LONG_PLANE else LONG_PLANE // 4


cdef inline bint in_one_team(const MaxPool2dGatherPlan* plan, const real* summed, const element* stored) noexcept nogil:
    """Whether all channels of a group are summed at a time, so that words are loaded once for all: where nothing passes
    through the scratch, and planes do not fall on the same lines of the cache."""
    cdef const MaxPool2d* pool = &plan.pool
    if (VECTOR_BYTES == 64 or plan.known != SAME or pool.argmax or pool.reduced or plan.streams or element is half
            or element is bfloat):
        return False
    return (pool.pooled_strides[3] == 1 and pool.image_strides[3] == 1
            and (not plan.flat or (pool.pooled_strides[2] == pool.w.out and pool.image_strides[2] == pool.w.size))
            and pool.pooled_strides[1] * <int64_t>sizeof(element) % CACHE_WAY != 0
            and pool.image_strides[1] * <int64_t>sizeof(element) % CACHE_WAY != 0)


# What a band is made with: whether the kernel reads and writes elements, and where they lie; else rows of sums, or
# packed ones.
cdef struct Ways:
    bint read
    bint written
    bint direct
    bint in_place


cdef inline Ways find_ways(const MaxPool2dGatherPlan* plan, const real* summed, const element* stored) noexcept nogil:
    cdef const MaxPool2d* pool = &plan.pool
    cdef bint native = (real is float and element is float) or (real is double and element is double)
    cdef Ways ways
    ways.read = ways.written = native and not pool.reduced
    if element is half or element is bfloat:
        ways.read = CHOOSES_HALVES
        ways.written = True
    ways.direct = (ways.read and pool.pooled_strides[3] == 1
                   and (not plan.flat or pool.pooled_strides[2] == pool.w.out))
    ways.in_place = (ways.written and not plan.streams and pool.image_strides[3] == 1
                     and (not plan.flat or pool.image_strides[2] == pool.w.size))
    return ways


cdef inline void start_plane(Plane* plane, const MaxPool2dGatherPlan* plan, const Ways* ways, const char* scratch,
                             int64_t ahead, const real* summed, const element* stored) noexcept nogil:
    """But for the channel, its gradients and its mask."""
    cdef const MaxPool2d* pool = &plan.pool
    cdef int64_t item = sizeof(element) if ways.read else sizeof(real)
    plane.far = pool.far
    plane.edges = <const uint16_t*>(scratch + plan.at_edges)
    plane.column_step = 2 * pool.pitch
    plane.window_rows = pool.h.out
    plane.windows = pool.w.out
    plane.columns = pool.w.size
    plane.kernel = pool.h.kernel
    plane.stride = pool.h.stride
    plane.pad = pool.h.pad
    plane.grad_channel = pool.pooled_strides[1] * item
    plane.mask_channel = 4 * pool.index_pitch
    plane.at_item = pool.index_item
    plane.at_channel = pool.index_item * pool.index_strides[1]
    plane.to_channel = pool.image_strides[1] if ways.in_place else plan.chunk * pool.w.size
    plane.grad_ahead = prefetch_distance(plane.grad_channel, ahead)
    plane.mask_ahead = prefetch_distance(plane.at_channel, ahead)
    plane.to_ahead = 0 if plan.streams else prefetch_distance(
        pool.image_strides[1] * <int64_t>(sizeof(element) if ways.written else sizeof(real)), ahead)
    plane.grad_step = (pool.pooled_strides[2] if ways.direct else plan.row_pitch) * item


cdef void pack_rows(const MaxPool2dGatherPlan* plan, const Ways* ways, char* packed, const element* grad_output__chw,
                    int64_t oh, int64_t oh_end, int64_t count, element* cells, const void* source_end,
                    const real* summed) noexcept nogil:
    """Rows [oh, oh_end) of windows of each of `count` channels, one channel behind the other."""
    cdef const MaxPool2d* pool = &plan.pool
    cdef int64_t pitch = (oh_end - oh) * plan.row_pitch
    cdef int64_t row
    for row in range(oh, oh_end):
        if ways.read:
            pack_row(<element*>packed + (row - oh) * plan.row_pitch, pitch,
                     grad_output__chw + row * pool.pooled_strides[2], pool.pooled_strides[3], pool.pooled_strides[1],
                     pool.w.out, count, source_end)
        else:
            load_channels(pool, <real*>packed + (row - oh) * plan.row_pitch, pitch,
                          grad_output__chw + row * pool.pooled_strides[2], pool.w.out, count, cells, source_end)


cdef void stream_plane(Rest* rest, char* to, const char* made, int64_t size) noexcept nogil:
    """stream_on, compiled once for all types."""
    stream_on(rest, to, made, size)


cdef void store_team(const MaxPool2dGatherPlan* plan, const Ways* ways, element* to__hw, const char* made,
                     int64_t channel_pitch, int64_t rows, int64_t team, element* cells, Rest* rests,
                     const real* summed) noexcept nogil:
    """What has been made of `rows` rows of a team of channels."""
    cdef const MaxPool2d* pool = &plan.pool
    cdef int64_t channel, row, at
    cdef element* to
    for channel in range(team):
        if plan.streams:
            stream_plane(rests + channel, <char*>(to__hw + channel * pool.image_strides[1]),
                         made + channel * channel_pitch * <int64_t>sizeof(element),
                         rows * pool.w.size * <int64_t>sizeof(element))
            continue
        for row in range(rows):
            to = to__hw + channel * pool.image_strides[1] + row * pool.image_strides[2]
            at = channel * channel_pitch + row * pool.w.size
            if ways.written:
                store_row(to, pool.image_strides[3], <const element*>made + at, pool.w.size)
            else:
                store_sums(pool, to, pool.image_strides[3], <real*>made + at, cells, pool.w.size)


cdef void turn_cells(void* to, int64_t to_pitch, const void* source, int64_t pitch, int64_t rows, int64_t columns,
                     int64_t size) noexcept nogil:
    turn_any(to, to_pitch, source, pitch, rows, columns, size, NULL)


cdef void store_turned(const MaxPool2dGatherPlan* plan, const Ways* ways, element* to__hwc, char* made, int64_t rows,
                       int64_t count, element* cells, const real* summed) noexcept nogil:
    """The same of channels that lie side by side in gradInput, of all that have been made."""
    cdef const MaxPool2d* pool = &plan.pool
    cdef int64_t pitch = plan.chunk * pool.w.size
    cdef int64_t n = joined_rows(pool, rows)
    cdef int64_t at = 0
    if not ways.written:
        store_rows(pool, to__hwc, <real*>made, pitch, count, rows, cells, turn_cells)
        return
    while at < rows * pool.w.size:
        turn_cells(to__hwc, pool.image_strides[3], <const element*>made + at, pitch, count, n, sizeof(element))
        at += n
        to__hwc += pool.image_strides[2]


cdef bint gather_band(const MaxPool2dGatherPlan* plan, const element* grad_output__chw, const char* mask, int64_t lane,
                      int64_t count, element* grad_input__chw, char* scratch, int64_t ih, int64_t end,
                      bint one_team, const void* source_end, const real* summed) noexcept nogil:
    """Rows [ih, end) of the planes of `count` channels from channel `lane` of a group; `mask` is the group's table, or
    the first of the planes of indices. False if it has met an index outside its window."""
    cdef const MaxPool2d* pool = &plan.pool
    cdef const PoolAxis* h = &pool.h
    cdef char* packed = scratch + plan.at_rows
    cdef element* cells = <element*>(scratch + plan.at_cells)
    cdef int64_t down = pool.image_strides[2]
    cdef int64_t checked = 0
    cdef int64_t oh, oh_end, stop, channel, j, team
    cdef const char* grad
    cdef element* to__hw
    cdef char* to
    cdef Ways ways = find_ways(plan, summed, <const element*>NULL)
    cdef Plane plane
    # The last channels of all have none to fetch after them; of long planes the next rows are fetched.
    cdef int64_t ahead = count if VECTOR_BYTES < 64 and one_team else <int64_t>TEAM
    if <const char*>source_end - <const char*>grad_output__chw < (
            (count + ahead) * pool.pooled_strides[1] * <int64_t>sizeof(element)):
        ahead = 0
    start_plane(&plane, plan, &ways, scratch, ahead, summed, <const element*>NULL)
    while ih < end:
        stop = least(end, ih + plan.chunk)
        oh = first_window(h, ih)
        oh_end = most(oh, end_window(h, stop - 1))
        grad = <const char*>grad_output__chw
        if not ways.direct:
            plane.grad_channel = (oh_end - oh) * plane.grad_step
            # Row oh of the plane would lie at grad + oh*grad_step; rows before oh are not read.
            grad = packed - oh * plane.grad_step
            pack_rows(plan, &ways, packed, grad_output__chw, oh, oh_end, count, cells, source_end, summed)
        j = 0
        while j < count:
            team = plan.team if j + plan.team <= count else 1
            if VECTOR_BYTES < 64 and plan.known == SAME:
                team = least(count if one_team else plan.team, count - j)
            plane.channels = team
            plane.grad = grad + j * plane.grad_channel
            plane.at = mask + j * plane.at_channel if pool.argmax else mask
            plane.mask = packed_indices(pool, plane.at, team, oh, oh_end, scratch) if pool.packed else plane.at
            plane.bit = <int>(lane + j)
            to__hw = grad_input__chw + j * pool.image_strides[1] + ih * down
            for channel in range(team if pool.argmax else 0):
                if check_indices(plan, plane.mask + channel * plane.mask_channel, scratch, most(oh, checked),
                                 oh_end) >= 0:
                    return False
            to = <char*>to__hw if ways.in_place else scratch + plan.at_sums
            if plan.pixels:
                to += j * plan.chunk * pool.w.size * <int64_t>(sizeof(element) if ways.written else sizeof(real))
            gather_rows(plan, to, down if ways.in_place else pool.w.size, &plane, ih, stop, oh, team > 1, summed,
                        <const element*>NULL)
            if not (ways.in_place or plan.pixels):
                store_team(plan, &ways, to__hw, to, plane.to_channel, stop - ih, team, cells,
                           <Rest*>(scratch + plan.at_rests) + j, summed)
            j += team
        if plan.pixels:
            store_turned(plan, &ways, grad_input__chw + ih * down, scratch + plan.at_sums, stop - ih, count, cells,
                         summed)
        checked = oh_end
        ih = stop
    return True


cdef void touch_unit(const MaxPool2d* pool, const Unit* u, element* grad_input__nchw) noexcept nogil:
    """The pages of what the unit makes."""
    cdef int64_t lane
    for lane in range(u.lanes):
        touch_pages(<char*>(grad_input__nchw + u.image + lane * pool.image_strides[1] + u.ih * pool.image_strides[2]),
                    u.rows * pool.w.size * <int64_t>sizeof(element))


cdef int64_t gather(const MaxPool2dGatherPlan* plan, char** data, char* scratch, int64_t begin, int64_t end,
                    const real* summed, const element* stored) noexcept nogil:
    """The units [begin, end); the last two arguments give their types only."""
    cdef const MaxPool2d* pool = &plan.pool
    cdef const element* grad_output__chw
    cdef element* grad_input__chw
    cdef bint one_team = in_one_team(plan, summed, stored)
    cdef int64_t sweep = <int64_t>LANES if one_team else plan.sweep
    cdef int64_t lane, place
    cdef bint whole
    cdef Unit u = first_unit(pool, data[2], begin)
    cdef Unit next
    cdef bint touches = ((pool.far or one_team) and not plan.streams and pool.image_strides[3] == 1
                         and pool.image_strides[2] == pool.w.size)
    if touches:
        touch_unit(pool, &u, <element*>data[3])
    if plan.known == SAME:
        fill_edges(<uint16_t*>(scratch + plan.at_edges), pool.w.size)
    if pool.argmax:
        fill_windows(pool, &plan.windows, scratch, False)
    if plan.streams:
        memset(scratch + plan.at_rests, 0, <size_t>plan.rests * sizeof(Rest))
    while begin < end:
        begin += 1
        if touches and begin < end:
            # It is fetched ahead.
            next = u
            next_unit(pool, data[2], &next)
            touch_unit(pool, &next, <element*>data[3])
        grad_output__chw = <const element*>data[0] + u.pooled
        grad_input__chw = <element*>data[3] + u.image
        lane = 0
        whole = True
        while whole and lane < u.lanes:
            whole = gather_band(plan, grad_output__chw + lane * pool.pooled_strides[1],
                                u.mask + lane * pool.index_item * pool.index_strides[1] if pool.argmax else u.mask,
                                lane,
                                least(sweep, u.lanes - lane), grad_input__chw + lane * pool.image_strides[1], scratch,
                                u.ih, u.ih + u.rows, one_team, data[0] + pool.source_bytes, summed)
            lane += sweep
        if not whole:
            place = first_place(pool, &u, end - begin)
            if place >= 0:
                fence()
                return place
        next_unit(pool, data[2], &u)
    if plan.streams:
        flush_rests(<Rest*>(scratch + plan.at_rests), plan.rests)
    return ALL_GOOD


cdef int64_t gather_f32(const void* plan, char** data, char* scratch, int64_t begin, int64_t end) noexcept nogil:
    return gather(<const MaxPool2dGatherPlan*>plan, data, scratch, begin, end, <const float*>NULL, <const float*>NULL)


cdef int64_t gather_f64(const void* plan, char** data, char* scratch, int64_t begin, int64_t end) noexcept nogil:
    return gather(<const MaxPool2dGatherPlan*>plan, data, scratch, begin, end, <const double*>NULL,
                  <const double*>NULL)


cdef int64_t gather_f16(const void* plan, char** data, char* scratch, int64_t begin, int64_t end) noexcept nogil:
    return gather(<const MaxPool2dGatherPlan*>plan, data, scratch, begin, end, <const float*>NULL, <const half*>NULL)


cdef int64_t gather_bf16(const void* plan, char** data, char* scratch, int64_t begin, int64_t end) noexcept nogil:
    return gather(<const MaxPool2dGatherPlan*>plan, data, scratch, begin, end, <const float*>NULL,
                  <const bfloat*>NULL)


cdef void max_pool2d_gather_kernels(RangeFn* row) noexcept nogil:
    """Put this instruction set's kernels into their row of the table."""
    row[<int>SLOT_F32] = gather_f32
    row[<int>SLOT_F64] = gather_f64
    row[<int>SLOT_F16] = gather_f16
    row[<int>SLOT_BF16] = gather_bf16
