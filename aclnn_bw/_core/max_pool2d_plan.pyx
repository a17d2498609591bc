"""What the max pools and their gradients plan, with a mask or with indices: geometry, algorithms, bands, scratch."""
from libc.stdint cimport INT64_MAX, int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t
from libc.string cimport memcpy

from aclnn_bw._core.arithmetic cimport ceil_div, least, most, mul_overflows, quotient, round_up, stretch
from aclnn_bw._core.checks cimport slot_of
from aclnn_bw._core.executor cimport (
    count_groups, goes_past, group_channels, new_executor, set_work, useful_threads, widest_group,
)
from aclnn_bw._core.max_pool2d cimport (
    ACROSS, ANY_COLUMNS, BLOCK, EACH, GATHER, GATHER_ACROSS, GATHER_LAST, INDEX_LIMIT, LANES, LAST, LISTED,
    MOST_COLUMNS, PHASES, PLANES, RECIPROCAL_BITS, SAME, SCAN, SCATTER, SCATTER_LAST, SMALL_PLANE, TEAM, THREE_BY_ONE,
    THREE_BY_TWO, TWO_BY_TWO, MaxPool2d, MaxPool2dForwardPlan, MaxPool2dGatherPlan, MaxPool2dLastPlan,
    MaxPool2dMasksPlan, MaxPool2dScatterPlan, MaxPool2dShapes, MaxPool2dTerm, MaxPool2dWindows, PoolAxis,
)
from aclnn_bw._core.names cimport TEXT, choose, name, snprintf
from aclnn_bw._core.operators cimport add_pair, start_executor
from aclnn_bw._core.status cimport refuse, wide
from aclnn_bw._core.tensor cimport item_size, plain_strides, reach_of, traffic
from aclnn_bw._core.types cimport (
    ALIGNMENT, ARG_INDICES, ARG_MASK, ASCEND910, DT_DOUBLE, DT_FLOAT, DT_FLOAT16, DT_INT16, DT_INT32, DT_INT64, DT_INT8,
    DT_UINT16, DT_UINT32, DT_UINT64, ERR_CREATE_EXECUTOR, ERR_INVALID, LAYOUT_ARGMAX, LEAST_STRETCH, READ, SUCCESS,
    WRITTEN, Arguments, Context, Executor, Fact, Tensor,
)

cdef extern from "operators.h":
    enum:
        ACROSS_KERNEL "ACLNN_BW_KERNEL_max_pool2d_across"
        FORWARD_KERNEL "ACLNN_BW_KERNEL_max_pool2d_forward"
        GATHER_KERNEL "ACLNN_BW_KERNEL_max_pool2d_gather"
        LAST_KERNEL "ACLNN_BW_KERNEL_max_pool2d_last"
        MASKS_KERNEL "ACLNN_BW_KERNEL_max_pool2d_masks"
        SCATTER_KERNEL "ACLNN_BW_KERNEL_max_pool2d_scatter"
        MAX_POOL2D_WITH_MASK "ACLNN_BW_MAX_POOL2D_WITH_MASK"

cdef enum:
    BAND_BYTES = 16384              # of scratch for the rows of a band: half an L1 cache
    WORD_BYTES = 262144             # of mask words that the channels of a group read in turn: a quarter of an L2 cache
    CHUNK_BYTES = 16384             # of sums that are made at a time: half an L1 cache
    LISTED_WINDOWS = 1024           # whose bounds are listed for the check of indices
    APART_ROW = 12                  # columns; longer rows fill the vectors of GATHER
    LONG_LISTED = 28                # windows of a row; for 2 or 3 kernel rows they are checked sooner row by row
    LONG_ROW = 128                  # longer rows gain nothing from being laid end to end
    SCRATCH_BYTES = 1048576
    L2_BYTES = 1048576
    # Of all arrays, half an L3 cache: from here on it pays to fetch ahead; in the cache a prefetch takes the place of a
    # load.
    FAR_BYTES = 16777216
    LEAST_LINES = 2048              # bytes of a plane that passes the caches: the lines at its ends are read
    LEAST_SUMS = 256                # the same of planes of sums, which pass sooner
    MOST_SPREAD = 65536             # the same of gradients that are spread: an L2 cache
    SHORT_PLANE = 4096              # positions: planes that SCATTER takes sooner (scatters_sooner), or PLANES
    MIDDLE_PLANE = 16384
    UNITS_PER_THREAD = 4            # fewer units than this leave threads unevenly loaded: split planes into bands
    LEAST_BAND = 8                  # rows; in lower bands a unit's own work shows
    # Vectors of a window's positions (asked_vectors): GATHER_LAST takes 0.25 to 1.1 of SCATTER_LAST's time up to so
    # many, 0.9 to 7 times as long beyond them; of bits, to a position of gradInput, 0.07 to 1.05 of SCATTER's.
    MOST_ASKED = 9
    MOST_ASKED_HALVES = 18          # which SCATTER_LAST widens and narrows apart
    FEW_SUMS = 81920                # of all channels of an image, in 16 bits: fewer AVX2 adds sooner, in an L2 cache
    BITS_LAST = 40
    GATHER_TERMS = 4                # kernels of more positions scatter, unless their columns have code of their own
    ROWS_BYTES = 16384              # rows of the image that the forward works on at a time: half an L1 cache
    TALL_BYTES = 262144             # of tall kernels: a quarter of an L2 cache
    KEPT_KERNELS = 4                # kernels' height: rows of the image that the forward keeps at least
    CODED_KERNEL = 64               # kernels of more positions set the bits of their mask one by one
    CODED_ROW = 65536               # and rows of more windows: their codes would be half of all scratch
    FEW_BITS = 16                   # to a kernel position, of all channels of a word
    ACROSS_BYTES = 1048576          # of the planes of 16 channels: half of what a thread may take
    ACROSS_NARROW = 131072          # the same where vectors have 16 bytes
    ACROSS_WINDOWS = 1024
    FAR_APART = 4               # columns between windows: their phases take long
    KEPT_WINDOWS = 2048             # of 16 channels: what is compared along rows stays in the caches
    LAST_KERNELS = 2                # kernels' height: rows of the image of a band of LAST, if they are compared first
    SHORT_WINDOWS = 9               # of a row
    MOST_HALVES = 13                # of positions to a window: with more, most are zeros that SCATTER need not make
    FAR_HALVES = 25                 # the same beyond the caches, where it waits for memory
    LAST_ROW = 1024                 # windows: their maxima and places stay in the L2 cache
    MOST_PHASES = 8                 # strides beyond it, and rows of fewer windows than LEAST_WINDOWS, fill no vectors
    LEAST_WINDOWS = 4
    EACH_COLUMNS = 65536            # of sums that EACH makes at a time
    LANE_MASKS = 64                 # bytes of vectors whose comparison leaves a mask of lanes (AVX-512)
    SMALL_ROW = 8                   # windows of a row; longer ones fill the vectors of GATHER
    CROWD = 9                       # windows of a position, beyond which most neighbours have the same maximum
    SPREAD_WINDOWS = 65536          # whose gradients and indices the scratch holds
    FEW_BYTES = 32768               # of the sums of a plane that is scattered whole: an L1 cache
    MOST_POSITIONS = 32767          # of a band of which 16 bits count the places
    MOST_PLACED = 16                # rows and columns of a kernel whose maxima SCATTER finds in a nibble each
    MARKED = 8                      # positions to a window, from which on most have no sum
    MARKED_WIDE = 12                # the same with AVX-512 (marks_sums)
    MOVED = 4                       # times the rows that two blocks share: one in so many is moved
    LEAST_PLACED = 500              # words of a plane times the bytes of a vector: PLANES looks at fewer one by one
    PLACE_WORDS = 14                # of its scratch for a window: where it begins, 2; places, 4; nibbles, 8


cdef void clip_windows(int64_t size, int64_t out, int64_t* kernel, int64_t* stride, int64_t* pad) noexcept nogil:
    """Windows that are far longer than the image, by others with the same positions in it."""
    cdef int64_t last = (out - 1) * stride[0] - pad[0]     # where it begins; out > 1, or stride is 1
    if pad[0] < size:
        kernel[0] = least(kernel[0], size + pad[0])
        return
    # As kernel >= 2*pad, no window ends before the image does. Where two windows begin inside it, stride < size and
    # pad < 2*size.
    if last <= 0:
        stride[0] = 1
        pad[0] = out - 1
    elif last - stride[0] <= 0:
        stride[0] = last
        pad[0] = (out - 2) * last
    kernel[0] = size + pad[0]


cdef PoolAxis make_axis(int64_t size, int64_t out, int64_t kernel, int64_t stride, int64_t pad) noexcept nogil:
    """No sum here overflows: all windows but the first begin inside the image, so that (out - 1) * stride < size + pad,
    and kernels are clipped that are longer than any mask is. A single window may have any stride; it gets 1."""
    cdef PoolAxis axis
    if out == 1:
        stride = 1
    if kernel > INDEX_LIMIT:
        clip_windows(size, out, &kernel, &stride, &pad)
    axis.size = size
    axis.out = out
    axis.kernel = kernel
    axis.stride = stride
    axis.pad = pad
    axis.terms = ceil_div(kernel, stride)
    return axis


cdef int64_t place(int64_t* offset, int64_t size, int64_t bytes) noexcept nogil:
    """Give a buffer its offset; returns where the next one goes."""
    offset[0] = size
    return size + round_up(bytes, ALIGNMENT)


cdef void describe_indices(const Tensor* indices, MaxPool2d* pool) noexcept nogil:
    """Where an argmax mask has its indices, or where they lie else."""
    pool.index_item = 4
    pool.index_strides[3] = 1
    pool.index_strides[2] = pool.w.out
    pool.index_strides[1] = pool.h.out * pool.w.out
    pool.index_strides[0] = pool.channels * pool.index_strides[1]
    if indices != NULL:
        pool.index_item = item_size(indices.dtype)
        plain_strides(indices, &pool.index_strides[4 - indices.rank])
    pool.packed = (pool.index_item == 8 or pool.index_strides[3] != 1
                   or (pool.h.out > 1 and pool.index_strides[2] != pool.w.out))
    pool.index_pitch = pool.index_strides[1]


cdef bint one_row(const int64_t* strides, int64_t channels) noexcept nogil:
    """Whether an image's first plane follows the last of the image before as the others follow theirs."""
    return strides[0] == channels * strides[1]


cdef bint start_plan(const Context* context, const Tensor* self, const Tensor* pooled, const Tensor* image,
                     const Tensor* indices, const MaxPool2dShapes* shapes, int64_t argmax_lanes,
                     MaxPool2d* pool) noexcept nogil:
    """What the backward and the forward have in common: the geometry and the mask; whether there is any work."""
    cdef int64_t positions = 0
    cdef int rank = self.rank
    cdef int64_t batch = self.dims[0] if rank == 4 else 1
    cdef int i
    pool.channels = pool.image_channels = self.dims[rank - 3]
    plain_strides(pooled, &pool.pooled_strides[4 - rank])
    plain_strides(image, &pool.image_strides[4 - rank])
    if batch == 0:
        return False
    pool.h = make_axis(self.dims[rank - 2], shapes.out[rank - 2], shapes.kernel[0], shapes.stride[0], shapes.pad[0])
    pool.w = make_axis(self.dims[rank - 1], shapes.out[rank - 1], shapes.kernel[1], shapes.stride[1], shapes.pad[1])
    for i in range(2):
        pool.full_kernel[i] = shapes.kernel[i]
        pool.full_stride[i] = shapes.stride[i]
        pool.full_pad[i] = shapes.pad[i]
    if indices == NULL:
        pool.kernel_size = shapes.indices[rank - 2]
        pool.pitch = shapes.indices[rank - 1] // 2
        pool.argmax = context.mask_layout == LAYOUT_ARGMAX and pool.kernel_size > 1
        pool.index_argument = ARG_MASK
    else:
        if mul_overflows(pool.h.kernel, pool.w.kernel, &pool.kernel_size):
            pool.kernel_size = INT64_MAX
        if mul_overflows(pool.h.size, pool.w.size, &positions) or positions > INDEX_LIMIT:
            pool.algorithm = EACH
        pool.argmax = True
        pool.index_argument = ARG_INDICES
    describe_indices(indices, pool)
    if pool.argmax and one_row(pool.image_strides, pool.channels) and one_row(pool.pooled_strides, pool.channels) and (
            one_row(pool.index_strides, pool.channels)):
        # Images of few channels would leave groups empty. Bits have groups of an image's own.
        pool.channels *= batch
        batch = 1
    pool.reduced = context.product == ASCEND910 and self.dtype == DT_FLOAT
    pool.lanes = argmax_lanes if pool.argmax else LANES
    pool.groups = ceil_div(pool.channels, pool.lanes)
    if indices == NULL:
        # The container holds at least as many bytes as the words and the indices, and lies in memory: no overflow.
        pool.mask_bytes = batch * pool.channels * pool.kernel_size * pool.pitch * 2
        pool.mask_end = (batch * pool.channels * pool.h.out * pool.w.out * 4 if pool.argmax
                         else batch * pool.groups * pool.kernel_size * pool.pitch * 2)
    pool.units = batch * pool.groups
    pool.disjoint = ((pool.h.out == 1 or pool.h.stride >= pool.h.kernel)
                     and (pool.w.out == 1 or pool.w.stride >= pool.w.kernel))
    return True


cdef int64_t split_rows(MaxPool2d* pool, int64_t rows, int64_t band, int64_t threads,
                        int64_t overlap) noexcept nogil:
    """Cut the planes into bands: of at most `band` rows, and of fewer where there are too few units for the threads.
    `overlap` rows of windows are read by two bands: bands of less than four times as many are made for threads that
    would have no unit else."""
    cdef int64_t wanted = quotient(UNITS_PER_THREAD * threads - 1, pool.units) + 1
    cdef int64_t needed = quotient(threads - 1, pool.units) + 1
    cdef int64_t bands
    pool.band = most(1, least(rows, band))
    if threads > 1 and wanted > 1:
        bands = least(wanted, quotient(rows, most(LEAST_BAND, 4 * overlap)))
        bands = most(needed, bands - bands % needed)
        pool.band = least(pool.band, most(least(LEAST_BAND, rows), ceil_div(rows, bands)))
    pool.bands = ceil_div(rows, pool.band)
    pool.units *= pool.bands
    return pool.band


cdef bint divides_exactly(const MaxPool2d* pool) noexcept nogil:
    """Whether the distances in a window are divided by the width without an error (max_pool2d_indices.pxd)."""
    return (pool.w.size < 1 << 12 and pool.h.kernel < 1 << 8
            and pool.h.kernel * pool.w.size * pool.w.size < 1 << RECIPROCAL_BITS)


cdef int64_t place_windows(const MaxPool2d* pool, MaxPool2dWindows* windows, int64_t planes, int64_t apart,
                           int64_t size) noexcept nogil:
    """The place of what an argmax index is compared with; whether the windows of a plane are listed, and of how many:
    `planes`, or one."""
    cdef int64_t count = pool.h.out * pool.w.out
    cdef int64_t width = pool.w.size
    cdef int64_t lists = 0
    if divides_exactly(pool):
        windows.reciprocal = <uint32_t>ceil_div(1 << RECIPROCAL_BITS, width)
    if count <= LISTED_WINDOWS and (pool.h.kernel > 3 or pool.w.out < LONG_LISTED) and windows.reciprocal > 0:
        windows.listed = planes if planes * count <= LISTED_WINDOWS and pool.units >= UNITS_PER_THREAD else 1
        lists = 3 * windows.listed + (1 if apart > 0 else 0)
    return place(&windows.at_columns, size, (2 * pool.w.out + lists * count) * 4)


cdef int64_t place_indices(MaxPool2d* pool, int64_t channels, int64_t rows, int64_t size) noexcept nogil:
    """The place of so many rows of indices of so many channels that are packed at a time."""
    pool.index_pitch = rows * pool.w.out
    return place(&pool.at_indices, size, channels * pool.index_pitch * 4)


cdef int64_t plan_gather(MaxPool2dGatherPlan* plan, int64_t threads, int64_t item, int64_t real,
                         bint direct) noexcept nogil:
    """The bands and the scratch of GATHER; `direct`: rows of gradOutput can be summed as they lie."""
    cdef MaxPool2d* pool = &plan.pool
    cdef PoolAxis* h = &pool.h
    cdef PoolAxis* w = &pool.w
    cdef int64_t band = h.size
    cdef int64_t size = 0
    cdef int64_t row, rows, made
    pool.algorithm = GATHER
    plan.known = known_columns(w)
    plan.flat = plan.known == SAME and h.stride == 1 and w.size <= LONG_ROW
    plan.row_pitch = w.out if plan.flat else round_up(w.out, LANES)
    if not pool.argmax:
        # The channels of a group read the same words: a band's are to stay in the L2 cache.
        band = least(band, most(LEAST_BAND, quotient(WORD_BYTES, pool.kernel_size * w.out * 2) * h.stride))
    band = split_rows(pool, h.size, band, threads, h.kernel - h.stride)
    # A channel's bytes for one row of sums and the rows of windows that reach it.
    row = w.size * real + (h.terms + 1) * plan.row_pitch * real
    plan.team = TEAM if plan.known and TEAM * row <= SCRATCH_BYTES // 2 else 1
    plan.sweep = plan.team
    plan.pixels = pool.channels > 1 and pool.image_strides[1] == 1 and pool.image_strides[3] != 1
    if (plan.pixels or (pool.pooled_strides[1] == 1 and pool.pooled_strides[3] != 1)) and (
            LANES * row <= SCRATCH_BYTES // 2):
        plan.sweep = LANES
    made = plan.sweep if plan.pixels else plan.team
    plan.chunk = most(1, least(band, quotient(CHUNK_BYTES, w.size * real * made)))
    rows = least(h.out, quotient(plan.chunk - 1, h.stride) + 1 + h.terms)
    if not direct or (plan.flat and pool.pooled_strides[2] != w.out):
        size = place(&plan.at_rows, size, rows * plan.row_pitch * real * plan.sweep)
    size = place(&plan.at_sums, size, plan.chunk * w.size * real * made)
    if plan.known == SAME:
        size = place(&plan.at_edges, size, (w.size + 1) * 2)
    if pool.argmax:
        size = place_windows(pool, &plan.windows, 1, 0, size)
    if pool.packed:
        size = place_indices(pool, plan.team, rows, size)
    return place(&plan.at_cells, size, most(w.size, plan.sweep * w.out) * item)


cdef int64_t plan_streams(MaxPool2dGatherPlan* plan, const Context* context, int64_t bytes, int64_t item,
                          int64_t size) noexcept nogil:
    """Whether rows of GATHER are made in the scratch, and go past the caches; returns the bytes of scratch. It takes
    0.75 to 1 of the time with 2x2, and with 3x3 at stride 2, at stride 1 by AVX-512 0.85 to 0.95. For 16 bits and other
    kernels it is 0.95 to 1.2, for nothing is summed while lines are stored."""
    cdef const MaxPool2d* pool = &plan.pool
    cdef int64_t least_plane = INT64_MAX
    if plan.known == TWO_BY_TWO or (plan.known == SAME and context.kernels.vector_bytes == 64 and not pool.argmax):
        least_plane = LEAST_LINES
    elif plan.known == THREE_BY_TWO:
        least_plane = 4 * LEAST_LINES
    plan.streams = (goes_past(context, bytes, context.kernels.streamed_bytes) and item >= 4 and not pool.reduced
                    and pool.image_strides[3] == 1 and pool.image_strides[2] == pool.w.size
                    and least_plane <= pool.h.size * pool.w.size * item)
    plan.rests = LANES
    return place(&plan.at_rests, size, plan.rests * 2 * ALIGNMENT) if plan.streams else size     # more than a Rest


cdef bint are_last(const MaxPool2d* pool) noexcept nogil:
    """Whether channels lie side by side in gradInput, enough of them for every vector, and in gradOutput can."""
    return (pool.algorithm != EACH and not pool.reduced and pool.channels >= LANES
            and pool.image_strides[1] == 1 and (pool.pooled_strides[1] == 1 or pool.pooled_strides[3] == 1))


cdef int64_t asked_vectors(const MaxPool2d* pool, const Context* context, int64_t real) noexcept nogil:
    """Of 16 channels of a window, at all of its positions: what GATHER_LAST takes for it."""
    return quotient(least(pool.kernel_size, INDEX_LIMIT) * LANES * real, context.kernels.vector_bytes)


cdef bint goes_last(const MaxPool2d* pool, const Context* context, int64_t item, int64_t real) noexcept nogil:
    """GATHER_LAST or SCATTER_LAST. Of bits there is the first alone: SCATTER finds the places of all channels of a word
    at once, and keeps kernels of so many positions that it gains more by that than it loses by transposing."""
    cdef int64_t bits = BITS_LAST
    if context.kernels.vector_bytes == 16:
        bits = BITS_LAST // 8 if item == 2 else BITS_LAST // 2
    return are_last(pool) and (pool.argmax or (
        asked_vectors(pool, context, real) <= bits * least(pool.h.stride, LANES) * least(pool.w.stride, LANES)
        and pool.h.terms <= LISTED and pool.h.terms * pool.w.terms <= LISTED))


cdef int64_t plan_last_sums(MaxPool2dLastPlan* plan, const Context* context, int64_t item, int64_t real,
                            bint apart) noexcept nogil:
    """The units and the scratch of GATHER_LAST and SCATTER_LAST, or -1 if that would hold too few rows; `apart`: each
    kernel column is summed by itself."""
    cdef MaxPool2d* pool = &plan.pool
    cdef PoolAxis* h = &pool.h
    cdef int64_t batch = quotient(pool.units, pool.groups)
    cdef bint halves = item == 2 and (context.kernels.vector_bytes == LANE_MASKS or (
        context.kernels.vector_bytes == 32 and pool.h.size * pool.w.size * pool.channels > FEW_SUMS))
    cdef int64_t few = MOST_ASKED_HALVES if halves else MOST_ASKED
    cdef bint scattered = pool.argmax and not apart and asked_vectors(pool, context, real) > few
    cdef bint packed = pool.argmax and (pool.index_item == 8 or pool.index_strides[1] != 1)
    cdef bint turned = pool.pooled_strides[1] != 1
    cdef int64_t held = (4 if packed else 0) + (item if turned else 0)      # bytes of a window in the scratch
    cdef bint in_place = not scattered or (item == real
                                           and pool.image_strides[2] == pool.w.size * pool.image_strides[3])
    # The rows of windows that reach a row of sums, and a channel's bytes for that.
    cdef int64_t reach = least(h.terms, h.out)
    cdef int64_t row = pool.w.size * real
    cdef int64_t blocks = quotient(L2_BYTES // 2, (reach + 1) * pool.w.out * LANES * (item + 4))
    cdef int64_t fit = h.out
    cdef int64_t size = 0
    cdef int64_t channels
    if not in_place:
        blocks = least(blocks, quotient(SCRATCH_BYTES // 2, row * LANES * least(h.size, 2 * least(h.kernel, BLOCK))))
    if held > 0:
        # Bands read `reach` rows of windows twice: of these three times as many at least, in the widest group, too.
        blocks = least(blocks, quotient(SCRATCH_BYTES, pool.w.out * LANES * held * least(h.out, 4 * reach)) - 1)
    # Rows of windows stay in the L2 cache until they are read again.
    channels = group_channels(pool.channels, blocks, ceil_div(
        UNITS_PER_THREAD * context.threads, batch * ceil_div(h.size, LEAST_BAND)) if context.threads > 1 else 1)
    if held > 0:
        fit = quotient(SCRATCH_BYTES, pool.w.out * widest_group(pool.channels, channels) * held)
    if fit < least(h.out, 3 * reach) or (not in_place and row * 2 * LANES > SCRATCH_BYTES // 2):
        return -1
    pool.algorithm = SCATTER_LAST if scattered else GATHER_LAST
    plan.apart = apart
    plan.in_place = in_place
    pool.packed = packed
    pool.lanes = channels
    pool.groups = count_groups(pool.channels, channels)
    pool.units = batch * pool.groups
    channels = widest_group(pool.channels, channels)
    pool.band = h.size
    if fit < h.out:
        pool.band = least(h.size, (fit - reach) * h.stride)
    if not in_place:
        pool.band = most(1, least(pool.band, quotient(SCRATCH_BYTES // 2, row * channels)))
    split_rows(pool, h.size, pool.band, context.threads, h.kernel - h.stride)
    reach = least(h.out, reach + quotient(pool.band - 1, h.stride) + 1)     # of a band
    if packed:
        size = place_indices(pool, channels, reach, size)
    plan.turned = turned
    if turned:
        size = place(&plan.at_grads, size, reach * pool.w.out * channels * item)
    if not in_place:
        size = place(&plan.at_sums, size, pool.band * row * channels)
    if scattered and item < real:
        size = place(&plan.at_wide, size, channels * real)
    return size


cdef int64_t count_terms(const PoolAxis* axis) noexcept nogil:
    """Of all positions of an axis, the windows that hold them."""
    return axis.out * least(axis.kernel, axis.size)


cdef bint sums_across(const MaxPool2d* pool, const Context* context, int64_t item, int64_t bytes,
                      bint apart) noexcept nogil:
    """GATHER_ACROSS: bits of kernels of few positions in planes whose rows leave the vectors of GATHER mostly empty. It
    takes 0.3 to 1.05 of the time there, where most positions have a window; float64 would take 1 to 2.5 times as
    long."""
    cdef const PoolAxis* w = &pool.w
    cdef int64_t positions = pool.h.size * w.size
    cdef bint masks = context.kernels.vector_bytes == LANE_MASKS
    cdef bint far = bytes > 2 * FAR_BYTES and (item == 4 or (masks and positions >= SMALL_PLANE))
    cdef bint short = w.out <= SHORT_WINDOWS or (w.stride == 1 and w.out * w.kernel <= 4 * SHORT_WINDOWS)
    if (pool.argmax or pool.reduced or apart or item == 8 or context.kernels.vector_bytes == 16 or pool.kernel_size == 1
            or not (pool.image_strides[3] == 1 and pool.image_strides[2] == w.size)
            or not (pool.pooled_strides[3] == 1 and pool.pooled_strides[2] == w.out)
            or 4 * pool.channels < 3 * LANES * pool.groups
            or 2 * positions > (FAR_HALVES if far else MOST_HALVES) * pool.h.out * w.out):
        return False
    if item == 2 and masks:
        return (pool.kernel_size <= 16 and positions <= 640
                and w.out <= (24 if w.stride == 1 else 13))
    if not (short and pool.kernel_size <= 9):
        return False
    if item == 2 or masks:
        # Larger planes of float32 that the caches hold GATHER sums sooner under 3x3 at stride 2.
        return positions <= (160 if item == 4 and w.stride > 1 and pool.kernel_size > 4 and bytes <= 2 * FAR_BYTES
                             else 400)
    return positions <= (400 if bytes > 2 * FAR_BYTES or (w.stride == 1 and pool.kernel_size <= 4) else 40)


cdef int64_t plan_across_sums(MaxPool2dLastPlan* plan, int64_t item, int64_t bytes) noexcept nogil:
    """The scratch of GATHER_ACROSS."""
    cdef MaxPool2d* pool = &plan.pool
    cdef int64_t size = 0
    pool.algorithm = GATHER_ACROSS
    plan.item = item
    plan.fetched = (bytes > quotient(3 * FAR_BYTES, 4) and pool.image_strides[1] == pool.h.size * pool.w.size
                    and pool.pooled_strides[1] == pool.h.out * pool.w.out)
    split_rows(pool, pool.h.size, pool.h.size, 1, 0)
    size = place(&plan.at_grads, size, pool.h.out * pool.w.out * LANES * item)
    size = place(&plan.at_sums, size, pool.h.size * pool.w.size * LANES * item)
    size = place(&plan.at_counts, size, pool.h.size * pool.w.size * 4)
    return place(&plan.at_terms, size, count_terms(&pool.h) * count_terms(&pool.w) * <int64_t>sizeof(MaxPool2dTerm))


cdef bint marks_sums(const MaxPool2d* pool, const Context* context, int dtype) noexcept nogil:
    """Whether sums of 16 bits are stored as they are made: of so few windows that to clear and to narrow those of all
    positions takes longer (1.05 to 1.5 times). With AVX-512, which narrows a plane of sums at a time, not to store
    them so takes 0.65 to 1 of the time below MARKED_WIDE positions to a window; bits of float16 gain nothing by it."""
    cdef bint sooner = context.kernels.vector_bytes == LANE_MASKS and (pool.argmax or dtype != DT_FLOAT16)
    return (item_size(dtype) == 2 and not pool.disjoint
            and (MARKED_WIDE if sooner else MARKED) * pool.h.out * pool.w.out <= pool.h.size * pool.w.size)


cdef bint lie_apart(const MaxPool2d* pool) noexcept nogil:
    """Whether neighbours in a row do not lie side by side, so that channels may: then a line is read once, not once for
    each channel, if the scratch holds them all."""
    return pool.pooled_strides[3] != 1 or pool.index_strides[3] != 1


cdef int64_t few_planes(const MaxPool2dScatterPlan* plan, int64_t item, int64_t real) noexcept nogil:
    """How many planes of indices are scattered at a time, or 0 if they are too large. Each step finds in the L1 cache
    what the one before has left there: as many planes as are added together, and more of few windows, whose steps take
    longer to begin."""
    cdef const MaxPool2d* pool = &plan.pool
    cdef int64_t windows = pool.h.out * pool.w.out
    cdef int64_t positions = pool.h.size * pool.w.size
    cdef int64_t plane = positions * (item if pool.disjoint else real)
    cdef int64_t lanes = least(pool.lanes, pool.channels)
    cdef int64_t few = plan.together
    if not pool.argmax or pool.bands > 1 or plane > FEW_BYTES:
        return 0
    if pool.image_strides[3] != 1:
        few = TEAM      # they write to the same lines, of which some rows' are written soon after each other
        if few * plane > CHUNK_BYTES:
            return 0
    if lie_apart(pool):
        return least(lanes, quotient(SCRATCH_BYTES, positions * real + windows * (real + 4)))
    if windows <= LANES:
        few = LANES
    elif windows <= 4 * LANES:
        few = LANES // 2
    return least(lanes, least(few, most(plan.together, quotient(FEW_BYTES, plane))))


cdef int64_t plan_few(MaxPool2dScatterPlan* plan, int64_t item, int64_t real) noexcept nogil:
    """The scratch of SCATTER of whole planes of indices, and of bits that are spread."""
    cdef MaxPool2d* pool = &plan.pool
    cdef int64_t size = 0
    plan.row_pitch = pool.h.out * pool.w.out
    plan.sum_pitch = pool.h.size * pool.w.size
    size = place(&plan.at_rows, size, plan.few * plan.row_pitch * real)
    if not plan.spread:
        size = place(&plan.at_sums, size, plan.few * plan.sum_pitch * real)
    if pool.argmax:
        size = place_windows(pool, &plan.windows, plan.few, 0, size)
    if pool.packed:
        size = place_indices(pool, plan.few, pool.h.out, size)
    if plan.spread and item == real:
        return size     # nothing is narrowed, or stored with gaps
    return place(&plan.at_cells, size, most(pool.w.size, plan.few * pool.w.out) * item)


cdef int64_t most_spread(const MaxPool2d* pool, int64_t real) noexcept nogil:
    """Of as many planes the scratch holds gradients and indices."""
    return quotient(SCRATCH_BYTES, pool.h.out * pool.w.out * (real + 4))


cdef bint spreads(const MaxPool2d* pool, int64_t threads, int64_t real) noexcept nogil:
    """Whether windows have one position each, so that an index says nothing new once it is checked: gradients are
    spread over the rows of gradInput, which are stored once: 0.4 to 0.9 of the time."""
    return (pool.kernel_size == 1 and not pool.reduced and pool.h.out * pool.w.out <= SPREAD_WINDOWS
            # The channels of a group have their bits in the same words.
            and (pool.argmax or threads == 1 or pool.units >= UNITS_PER_THREAD * threads)
            and (pool.argmax or not lie_apart(pool) or most_spread(pool, real) >= least(LANES, pool.channels))
            and pool.image_strides[3] == 1 and pool.image_strides[2] == pool.w.size)


cdef int64_t plan_spread(MaxPool2dScatterPlan* plan, int64_t threads, int64_t item, int64_t real) noexcept nogil:
    """The units and the scratch of SCATTER of windows of one position: planes, of which none is cut."""
    cdef MaxPool2d* pool = &plan.pool
    pool.algorithm = SCATTER
    pool.band = pool.h.size
    pool.bands = 1
    if pool.argmax and threads > 1 and pool.units < UNITS_PER_THREAD * threads:
        pool.units = quotient(pool.units, pool.groups) * pool.channels
        pool.groups = pool.channels
        pool.lanes = 1
    plan.spread = True
    plan.few = least(least(pool.lanes, pool.channels), most(1, most_spread(pool, real) if lie_apart(pool) else (
        quotient(FEW_BYTES, pool.h.size * pool.w.size * item))))
    return plan_few(plan, item, real)


cdef int64_t plan_scatter(MaxPool2dScatterPlan* plan, int64_t threads, int64_t item, int64_t real,
                          bint apart) noexcept nogil:
    """The bands and the scratch of SCATTER: the sums of the rows that some blocks of windows reach, of as many channels
    as fit; `apart`: with sums of its own for each of three kernel columns, in whole planes."""
    cdef MaxPool2d* pool = &plan.pool
    cdef PoolAxis* h = &pool.h
    cdef PoolAxis* w = &pool.w
    cdef int64_t counted = quotient(MOST_POSITIONS, w.size)
    # A block's rows are at most block*stride and these: of its last window, and below the last of all.
    cdef int64_t longest = most(h.kernel, h.stride) + most(
        h.size + h.pad - (h.out - 1) * h.stride - h.kernel, 0)
    cdef int64_t band = h.size
    cdef int64_t fit, kept, size = 0
    cdef bint split
    pool.algorithm = SCATTER
    plan.together = TEAM if h.terms * w.terms > CROWD else 2
    # Of tall kernels in bands of a row each window would be found again for every row.
    plan.placed = (not pool.argmax and h.kernel <= MOST_PLACED and w.kernel <= MOST_PLACED
                   and 8 * counted >= h.kernel)
    # Indices of large planes are read by TEAM channels at a time; words, and channels that lie side by side, by all.
    plan.sweep = TEAM if pool.argmax and not (pool.pooled_strides[1] == 1 and pool.pooled_strides[3] != 1) else LANES
    if LANES * h.size * w.size * real * (3 if apart else 1) <= CHUNK_BYTES:
        plan.sweep = LANES
    plan.sweep = most(1, least(least(plan.sweep, pool.channels), quotient(SCRATCH_BYTES // 2, w.size * real)))
    plan.block = least(h.out, most(1, quotient(BLOCK, w.out))) if plan.placed or pool.argmax else 1
    fit = quotient(SCRATCH_BYTES // 2, w.size * real * plan.sweep)
    kept = most(quotient(CHUNK_BYTES, w.size * real * plan.sweep),
                plan.block * h.stride + longest + MOVED * most(h.kernel - h.stride, 0))
    kept = least(kept, fit)
    if plan.placed:
        fit = least(fit, counted)
    if apart:
        pool.bands = 1
        pool.band = kept = band
        plan.apart = band * w.size
    else:
        plan.block = most(1, least(plan.block, quotient(most(fit - longest, 0), h.stride)))
        # Else bands, each of which finds the windows that reach it again.
        split = plan.block * h.stride + longest > fit
        if split:
            band = least(band, fit)
        band = split_rows(pool, h.size, band, threads, h.kernel - h.stride)
        if pool.bands > 1 and h.kernel <= h.stride <= band and h.pad == 0:
            # Then no window need reach from one band into the next.
            pool.units = quotient(pool.units, pool.bands)
            band = round_up(band, h.stride)
            if split and plan.placed and band > counted:
                band -= h.stride        # it was no multiple, and longer than one
            pool.band = band
            pool.bands = ceil_div(h.size, band)
            pool.units *= pool.bands
        if split:
            kept = band
        plan.few = few_planes(plan, item, real)
        if plan.few > 0:
            return plan_few(plan, item, real)
    plan.rows = least(kept, band)
    plan.row_pitch = plan.block * w.out
    plan.sum_pitch = plan.rows * w.size + (0 if pool.argmax else 1)     # for what lies outside
    if apart:
        plan.sum_pitch += 2 * plan.apart
    size = place(&plan.at_rows, size, plan.sweep * plan.row_pitch * real)
    if plan.placed or apart:
        size = place(&plan.at_places, size, PLACE_WORDS * BLOCK * 2)        # apart: TEAM places of 4 bytes
    size = place(&plan.at_sums, size, plan.sweep * plan.sum_pitch * real)
    if pool.argmax:
        size = place_windows(pool, &plan.windows, 1, plan.apart, size)
    if pool.packed:
        size = place_indices(pool, plan.sweep, plan.block, size)
    return place(&plan.at_cells, size, most(w.size, plan.sweep * w.out) * item)


cdef int64_t plan_sums_past(MaxPool2dScatterPlan* plan, const Context* context, int64_t bytes, int64_t item,
                            int64_t real, int64_t size) noexcept nogil:
    """Whether sums are made in the scratch and go past the caches, where they would be made or narrowed in gradInput;
    returns the bytes of scratch. It takes 0.4 to 0.9 of the time. Where planes are made one after the other, what is
    left of a line waits for the next one, so that shorter ones gain."""
    cdef const MaxPool2d* pool = &plan.pool
    cdef int64_t positions = pool.h.size * pool.w.size
    plan.streams = (goes_past(context, bytes, context.kernels.streamed_sums) and not pool.reduced and plan.apart == 0
                    and pool.image_strides[3] == 1 and pool.image_strides[2] == pool.w.size
                    and positions * item >= (LEAST_SUMS if plan.few > 0 or pool.algorithm == PLANES else 3 * LEAST_SUMS)
                    and stretch(pool.image_strides, positions, pool.channels) >= LEAST_STRETCH // item
                    and not (plan.spread and positions * item > MOST_SPREAD))
    if not plan.streams:
        return size
    plan.marked = False
    if plan.spread or size == 0:        # of PLANES, whose sums would be made in gradInput
        size = place(&plan.at_sums, size, (plan.few if plan.spread else LANES) * positions * item)
    if item < real and not pool.disjoint:       # all sums of a channel are narrowed before they are streamed
        size = place(&plan.at_cells, size, most(plan.sum_pitch, most(plan.sweep, plan.few) * pool.w.out) * item)
    return place(&plan.at_rests, size, LANES * 2 * ALIGNMENT)       # more than a Rest


cdef int64_t plan_planes(MaxPool2dScatterPlan* plan, const Context* context, int64_t item,
                         int64_t real) noexcept nogil:
    """The scratch of PLANES: the gradients and the sums of a group, unless they are summed where they lie."""
    cdef MaxPool2d* pool = &plan.pool
    cdef bint native = item == real and not pool.reduced
    cdef bint grad_dense = pool.pooled_strides[3] == 1 and pool.pooled_strides[2] == pool.w.out
    cdef bint sums_dense = pool.image_strides[3] == 1 and pool.image_strides[2] == pool.w.size
    cdef int64_t size = 0
    pool.algorithm = PLANES
    pool.band = pool.h.size
    pool.bands = 1
    plan.row_pitch = pool.h.out * pool.w.out
    plan.sum_pitch = pool.h.size * pool.w.size
    plan.placed = (pool.h.kernel <= MOST_PLACED and pool.w.kernel <= MOST_PLACED and plan.row_pitch <= LANES
                   and plan.row_pitch * pool.kernel_size * context.kernels.vector_bytes > LEAST_PLACED)
    plan.sweep = LANES
    if native and grad_dense and sums_dense:
        return 0
    size = place(&plan.at_rows, size, LANES * plan.row_pitch * real)
    size = place(&plan.at_sums, size, LANES * plan.sum_pitch * real)
    return place(&plan.at_cells, size, most(pool.w.size, LANES * pool.w.out) * item)


cdef int64_t plan_each(MaxPool2dScatterPlan* plan, int64_t item, int64_t real) noexcept nogil:
    """The bands and the scratch of EACH: the sums of a band, or of a part of its one row."""
    cdef MaxPool2d* pool = &plan.pool
    cdef int64_t size = 0
    pool.packed = False
    pool.algorithm = EACH
    plan.block = least(pool.w.size, EACH_COLUMNS)
    pool.band = least(pool.h.size, most(1, quotient(SCRATCH_BYTES // 2, pool.w.size * real)))
    pool.bands = ceil_div(pool.h.size, pool.band)
    pool.units *= pool.bands
    size = place(&plan.at_sums, size, pool.band * plan.block * real)
    return place(&plan.at_cells, size, plan.block * item)


cdef int32_t known_columns(const PoolAxis* w) noexcept nogil:
    if w.kernel == 3 and w.stride == 2:
        return THREE_BY_TWO
    if w.kernel == 2 and w.stride == 2:
        return TWO_BY_TWO
    if w.kernel == 3 and w.stride == 1:
        return SAME if w.pad == 1 else THREE_BY_ONE
    return ANY_COLUMNS


cdef bint fills_vectors(const MaxPool2d* pool, int32_t known, int64_t item) noexcept nogil:
    """Whether a row of windows is so long that GATHER serves: of shorter ones SCATTER takes 0.1 to 1 of the time, for
    every row of GATHER's begins vectors anew, those of any kernel the most often."""
    cdef int64_t few = SMALL_ROW
    if known == ANY_COLUMNS:
        few = 2 * LANES
    elif item == 8 and pool.h.size * pool.w.size <= SHORT_PLANE:
        few = 12 if known == TWO_BY_TWO else 20
    return known == SAME or pool.w.out > few


cdef bint scatters_sooner(const MaxPool2d* pool, int32_t known, int64_t item, int64_t real) noexcept nogil:
    """Where GATHER takes longer if a comparison leaves no mask of lanes: it compares at every kernel position, SCATTER
    adds once for each window, but slowly to planes that leave the L2 cache before they are complete. The bounds, found
    with AVX2, lie between the two. The sums are the same."""
    cdef const PoolAxis* w = &pool.w
    cdef int64_t positions = pool.h.size * w.size
    cdef bint near = TEAM * positions * real <= L2_BYTES // 2
    if known == SAME:
        return False
    if w.stride == 1:
        if known:
            return near or pool.argmax or item == 8
        # Of bits in float64 GATHER takes 1.04 to 1.6 times as long (v2 1.4 to 2.2), of one channel 0.8.
        return near if pool.argmax else positions <= SHORT_PLANE or (item == 8 and pool.channels > 1)
    if pool.argmax and item == 2:
        return positions <= (MIDDLE_PLANE if pool.disjoint else SHORT_PLANE)
    if pool.argmax:
        return near and (w.kernel == 3 or item == 8 or positions <= SHORT_PLANE)
    # Bits: rows of 16 windows and more fill the vectors of GATHER.
    if item == 2:
        return positions <= (32 * 32 if pool.disjoint else 20 * 20)
    if item == 4:
        return w.kernel == 3 and positions <= 40 * 40
    return w.kernel == 3 or (near and positions <= 32 * 32)     # in large planes 1.03 to 1.6 (v2 1.3 to 2.5)


cdef bint scatters_few(const MaxPool2d* pool, int32_t known, int64_t item, int64_t real, int64_t bytes) noexcept nogil:
    """Indices that SCATTER takes sooner even where comparisons leave masks of lanes: those of planes whose sums the L1
    cache holds where a quarter of GATHER's lanes would be empty, under three columns in float32, where windows of 16
    bits do not overlap, and in float64, whose vectors hold half as many; there under three columns at stride 1 those of
    larger planes, too. GATHER takes 1 to 2.7 times as long. Beyond 32 MiB it streams float64 under 2x2."""
    cdef bint few = pool.h.size * pool.w.size * real <= FEW_BYTES
    if item == 8:
        return known == THREE_BY_ONE or (few and (known == THREE_BY_TWO or bytes <= 2 * FAR_BYTES))
    return few and (4 * pool.w.out <= 3 * round_up(pool.w.out, LANES)
                    or (pool.w.kernel == 3 if item == 4 else pool.disjoint))


cdef int64_t plan_rows(void* plan, const Context* context, int64_t item, int64_t real, bint direct,
                       int64_t bytes) noexcept nogil:
    """Choose the algorithm, all arrays having so many `bytes`; returns the bytes of scratch. What the order of the sums
    depends on is chosen by the geometry and the dtype alone, not by the instruction set."""
    # GATHER compares at every kernel position, a vector of windows at a time; SCATTER adds once for each window, one
    # after the other. So GATHER takes kernels whose columns are compiled in, and in its general form those of a few
    # positions, at strides that leave long classes of columns. Short rows would leave its vectors empty. The order of
    # the sums is the same but for the columns SAME, which stay with GATHER. The rows of one channel must fit the
    # scratch.
    cdef const MaxPool2d* pool = <const MaxPool2d*>plan
    cdef int32_t known = known_columns(&pool.w)
    cdef int64_t scratch, windows
    cdef bint small, compact
    if pool.algorithm == EACH:
        return plan_each(<MaxPool2dScatterPlan*>plan, item, real)
    small = pool.h.size * pool.w.size <= SMALL_PLANE
    compact = (pool.kernel_size <= 2 * least(pool.w.out, LANES)
               and (pool.h.terms + 5) * most(pool.w.size, pool.w.out) * real <= SCRATCH_BYTES)
    if goes_last(pool, context, item, real):
        scratch = plan_last_sums(<MaxPool2dLastPlan*>plan, context, item, real, known == SAME and compact)
        if scratch >= 0:
            return scratch
    if sums_across(pool, context, item, bytes, known == SAME and compact):
        return plan_across_sums(<MaxPool2dLastPlan*>plan, item, bytes)
    if spreads(pool, context.threads, real):
        return plan_spread(<MaxPool2dScatterPlan*>plan, context.threads, item, real)
    if compact and fills_vectors(pool, known, item) and (
            known or (pool.kernel_size <= GATHER_TERMS and pool.w.stride <= 2)) and (
            (context.kernels.vector_bytes == LANE_MASKS
             and not (pool.argmax and (pool.w.out < LANES or scatters_few(pool, known, item, real, bytes))))
            or not scatters_sooner(pool, known, item, real)):
        # Of three columns at stride 1, whose sums are summed in turn, SCATTER can keep this order in short rows of
        # indices, which leave the vectors of GATHER mostly empty.
        if known == SAME and pool.argmax and (
                pool.w.size <= APART_ROW and pool.h.size <= LISTED_WINDOWS // APART_ROW
                and pool.h.out <= pool.h.size and pool.h.kernel <= MOST_PLACED):
            return plan_scatter(<MaxPool2dScatterPlan*>plan, context.threads, item, real, True)
        return plan_gather(<MaxPool2dGatherPlan*>plan, context.threads, item, real, direct)
    # Of so few windows PLANES finds the places in all channels of a group at a time, SCATTER those of one channel: it
    # takes 1.1 to 2.5 times as long. Indices SCATTER adds as they are.
    windows = pool.h.out * pool.w.out
    if not pool.argmax and ((small and (windows <= LANES or most(pool.h.kernel, pool.w.kernel) > MOST_PLACED))
                            or (windows <= least(LANES, context.kernels.vector_bytes // 2)
                                and pool.h.size * pool.w.size <= SHORT_PLANE and pool.units >= context.threads)):
        return plan_planes(<MaxPool2dScatterPlan*>plan, context, item, real)
    return plan_scatter(<MaxPool2dScatterPlan*>plan, context.threads, item, real, False)


cdef int refuse_index(const MaxPool2d* plan, int face, int argument, int64_t bad, const char* value,
                      const char* tail) noexcept nogil:
    """The refusal of an index that lies outside its window; `bad` counts the windows."""
    cdef Context context
    cdef int64_t ow = bad % plan.w.out
    cdef int64_t oh = bad // plan.w.out % plan.h.out
    cdef int64_t c = bad // plan.w.out // plan.h.out % plan.image_channels
    cdef int64_t n = bad // plan.w.out // plan.h.out // plan.image_channels
    cdef int64_t top = oh * plan.h.stride - plan.h.pad
    cdef int64_t left = ow * plan.w.stride - plan.w.pad
    context.face = face
    return refuse(ERR_INVALID, "%s[%lld, %lld, %lld, %lld] = %s: must lie inside window (n, c, oh, ow) = (%lld, "
                  "%lld, %lld, %lld), in rows %lld to %lld and columns %lld to %lld of a plane of width %lld%s",
                  name(&context, argument), <wide>n, <wide>c, <wide>oh, <wide>ow, value, <wide>n, <wide>c, <wide>oh,
                  <wide>ow, <wide>most(top, 0), <wide>(least(top + plan.h.kernel, plan.h.size) - 1),
                  <wide>most(left, 0), <wide>(least(left + plan.w.kernel, plan.w.size) - 1), <wide>plan.w.size, tail)


cdef int explain_index(const void* plan_pointer, int face, char** data, int64_t bad) noexcept nogil:
    cdef const MaxPool2d* plan = <const MaxPool2d*>plan_pointer
    cdef char[TEXT] text
    cdef int32_t narrow = 0
    cdef int64_t index = 0
    cdef const char* place = data[2] + plan.index_item * place_of(plan, bad, plan.index_strides)
    if plan.index_item == 8:
        memcpy(&index, place, sizeof(index))
    else:
        memcpy(&narrow, place, sizeof(narrow))
        index = narrow
    snprintf(text, TEXT, "%lld", <wide>index)
    return refuse_index(plan, face, plan.index_argument, bad, text,
                        choose(plan.index_argument == ARG_MASK, "; is it a mask of the layout \"argmax\"?", ""))


cdef int64_t place_of(const MaxPool2d* plan, int64_t window, const int64_t* strides) noexcept nogil:
    """Where the element of a window lies, in elements."""
    cdef int64_t ow = window % plan.w.out
    cdef int64_t oh = window // plan.w.out % plan.h.out
    cdef int64_t c = window // plan.w.out // plan.h.out % plan.channels
    cdef int64_t n = window // plan.w.out // plan.h.out // plan.channels
    return n * strides[0] + c * strides[1] + oh * strides[2] + ow * strides[3]


# --- mask_to_indices and indices_to_mask -----------------------------------------------------------------------------

cdef int explain_source(const void* plan_pointer, int face, char** data, int64_t bad) noexcept nogil:
    """As explain_index, of the indices that were to become a mask."""
    cdef const MaxPool2dMasksPlan* plan = <const MaxPool2dMasksPlan*>plan_pointer
    cdef char[TEXT] text
    cdef const char* place = data[0] + item_size(plan.dtype) * place_of(&plan.pool, bad, plan.pool.pooled_strides)
    if plan.dtype == DT_UINT64:
        snprintf(text, TEXT, "%llu", (<const unsigned long long*>place)[0])
    else:
        snprintf(text, TEXT, "%lld", <wide>integer_at(place, plan.dtype))
    return refuse_index(&plan.pool, face, ARG_INDICES, bad, text, "")


cdef int64_t integer_at(const char* place, int dtype) noexcept nogil:
    if dtype == DT_INT64:
        return (<const int64_t*>place)[0]
    if dtype in (DT_INT32, DT_UINT32):
        return (<const int32_t*>place)[0] if dtype == DT_INT32 else <int64_t>(<const uint32_t*>place)[0]
    if dtype in (DT_INT16, DT_UINT16):
        return (<const int16_t*>place)[0] if dtype == DT_INT16 else <int64_t>(<const uint16_t*>place)[0]
    return (<const int8_t*>place)[0] if dtype == DT_INT8 else <int64_t>(<const uint8_t*>place)[0]


cdef int plan_conversion(const Context* context, const Tensor* self, const Tensor* source, const Tensor* to,
                         bint to_mask, const MaxPool2dShapes* shapes, Executor** result) noexcept nogil:
    """A plan for two tensors whose shapes and dtypes have been checked: `source` is read, `to` is dense."""
    cdef Executor* executor = new_executor(context, MAX_POOL2D_WITH_MASK, sizeof(MaxPool2dMasksPlan))
    cdef const Tensor* indices = source if to_mask else to
    cdef MaxPool2dMasksPlan* plan
    cdef MaxPool2d* pool
    cdef int64_t band, size
    if executor == NULL:
        return refuse(ERR_CREATE_EXECUTOR, "executor: out of memory")
    result[0] = executor
    executor.tensors = 2
    executor.tensor[0] = source[0]
    executor.tensor[1] = to[0]
    executor.roles[0] = READ
    executor.roles[1] = WRITTEN
    executor.arguments[0] = ARG_INDICES if to_mask else ARG_MASK
    executor.arguments[1] = ARG_MASK if to_mask else ARG_INDICES
    plan = <MaxPool2dMasksPlan*>executor.plan
    pool = &plan.pool
    if not start_plan(context, self, indices, self, NULL, shapes, 1, pool):
        set_work(executor, context, NULL, 0, 0, 0)
        return SUCCESS
    plan.dtype = indices.dtype
    plan.none = not pool.argmax and indices.dtype in (DT_INT8, DT_INT16, DT_INT32, DT_INT64)
    plan.coded = to_mask and not pool.argmax and pool.kernel_size <= CODED_KERNEL
    band = most(1, quotient(BAND_BYTES, pool.w.out * 2 * LANES))
    band = split_rows(pool, pool.h.out, band, context.threads, 0)
    size = place(&plan.at_codes, 0, band * pool.w.out * 4)
    if to_mask:
        size = place(&plan.at_indices, size, band * pool.w.out * 8)
        if divides_exactly(pool):
            plan.reciprocal = ceil_div(1 << RECIPROCAL_BITS, pool.w.size)
            size = place(&plan.at_offsets, size, 4 * band * pool.w.out * 4)
        if plan.coded:
            # The last vector of a row reaches beyond it.
            size = place(&plan.at_band, size, LANES * (band * pool.w.out + LANES) * 2)
    elif not pool.argmax:
        size = place(&plan.at_offsets, size, pool.kernel_size * 8)
        # Places are counted in 16 bits.
        plan.block = least(pool.h.out, most(1, quotient(BLOCK, pool.w.out)))
        if (pool.h.kernel > MOST_PLACED or pool.w.kernel > MOST_PLACED
                or ((plan.block - 1) * pool.h.stride + pool.h.kernel) * pool.w.size >= 1 << 15):
            plan.block = 0
        if plan.block > 0:
            size = place(&plan.at_band, size, 11 * BLOCK * 2)    # tops, lefts, places, 8 nibbles
    executor.explain = explain_source
    pool.far = pool.mask_bytes > FAR_BYTES
    set_work(executor, context, context.kernels.row[MASKS_KERNEL][1 if to_mask else 0], pool.units,
             traffic(indices, item_size(indices.dtype)) + (pool.mask_bytes if to_mask else pool.mask_end), size)
    return SUCCESS


cdef int plan_gradient(const Context* context, const Arguments* c, const MaxPool2dShapes* shapes,
                       const Tensor* indices, Executor** result) noexcept nogil:
    cdef const Tensor* grad_output = c.tensors[0]
    cdef const Tensor* self = c.tensors[1]
    cdef const Tensor* grad_input = c.tensors[3]
    cdef Executor* executor
    cdef MaxPool2dScatterPlan* scattered
    cdef MaxPool2d* pool
    cdef int64_t item = item_size(grad_output.dtype)
    cdef int64_t real = 8 if grad_output.dtype == DT_DOUBLE else 4
    cdef int64_t bytes, scratch, lanes, channels, batch
    cdef int kernel = SCATTER_KERNEL
    cdef int status = start_executor(context, c, most(sizeof(MaxPool2dGatherPlan), sizeof(MaxPool2dScatterPlan)),
                                     result)
    if status != SUCCESS:
        return status
    executor = result[0]
    # Four channels are a unit where 16 would leave too few for the threads, unless they lie side by side.
    channels = self.dims[self.rank - 3]
    batch = self.dims[0] if self.rank == 4 else 1
    lanes = LANES
    if context.threads > 1 and grad_output.strides[self.rank - 3] != 1 and (
            ceil_div(batch * channels, LANES) < UNITS_PER_THREAD * context.threads):
        lanes = TEAM
    pool = <MaxPool2d*>executor.plan
    pool.source_bytes = reach_of(grad_output)
    if not start_plan(context, self, grad_output, grad_input, indices, shapes, lanes, pool):
        set_work(executor, context, NULL, 0, 0, 0)
        return SUCCESS
    if pool.argmax:
        executor.explain = explain_index
    bytes = traffic(grad_output, item) + traffic(grad_input, item)
    bytes += pool.mask_end if indices == NULL else traffic(indices, pool.index_item)
    pool.far = bytes > FAR_BYTES
    scratch = plan_rows(executor.plan, context, item, real,
                        item == real and pool.pooled_strides[3] == 1 and not pool.reduced, bytes)
    if pool.algorithm == GATHER:
        kernel = GATHER_KERNEL
        scratch = plan_streams(<MaxPool2dGatherPlan*>executor.plan, context, bytes, item, scratch)
    elif pool.algorithm in (PLANES, SCATTER):
        scattered = <MaxPool2dScatterPlan*>executor.plan
        scattered.ahead = pool.far and scattered.apart == 0 and not scattered.spread
        scattered.marked = scattered.apart == 0 and marks_sums(pool, context, grad_output.dtype)
        pool.far = pool.far and context.kernels.clears_by_pieces
        scratch = plan_sums_past(scattered, context, bytes, item, real, scratch)
    elif pool.algorithm in (GATHER_ACROSS, GATHER_LAST, SCATTER_LAST):
        kernel = LAST_KERNEL
    set_work(executor, context, context.kernels.row[kernel][slot_of(grad_output.dtype)], pool.units, bytes, scratch)
    return SUCCESS


cdef bint compares_along(const PoolAxis* h, const PoolAxis* w) noexcept nogil:
    """Whether it takes less time where windows share what each row of the image gives to them; 2 is for the store of
    what a row gives, and for its loads. Rows and columns are counted in 32 bits."""
    cdef int64_t rows = least(h.kernel, h.size)
    cdef int64_t columns = least(w.kernel, w.size)
    cdef int64_t reached = least((h.out - 1) * h.stride + rows, h.size)
    return ceil_div(reached, h.out) * (columns + 2) + 2 * rows < rows * columns


cdef int64_t plan_windows(MaxPool2dForwardPlan* plan, int64_t real) noexcept nogil:
    """The scratch of the forward; EACH needs none."""
    cdef MaxPool2d* pool = &plan.pool
    cdef PoolAxis* h = &pool.h
    cdef PoolAxis* w = &pool.w
    cdef int64_t slot, row
    cdef int64_t size = 0
    if pool.algorithm == EACH:
        return 0
    # A kernel that is mostly padding is scanned too: phases would be as long as the kernel.
    pool.algorithm = (PHASES if w.stride <= MOST_PHASES and w.out >= LEAST_WINDOWS and w.kernel <= 2 * w.size
                      else SCAN)
    # A phase of a row holds a value for every window and every step of the kernel, and a vector more.
    plan.phases = least(w.stride, w.kernel)
    plan.phase_pitch = round_up(w.out + w.terms - 1, LANES) + LANES
    plan.row_pitch = round_up(w.out, LANES) + LANES
    slot = plan.phase_pitch * plan.phases * real
    row = plan.row_pitch * real
    plan.lines = 1
    if pool.algorithm == PHASES:
        # Rows that the next windows need too are split again: of a few kernels' height that is a small part.
        plan.kept = most(quotient(ROWS_BYTES, slot), h.kernel if h.kernel <= h.stride else KEPT_KERNELS * h.kernel)
        plan.kept = most(least(plan.kept, quotient(TALL_BYTES, slot)), 1)
        plan.kept = least(plan.kept, (pool.band - 1) * h.stride + h.kernel) if w.kernel <= MOST_COLUMNS else 1
        if plan.kept >= h.kernel:
            plan.lines = quotient(plan.kept - h.kernel, h.stride) + 1
            plan.along = compares_along(h, w)
    size = place(&plan.at_rows, size, plan.kept * slot)
    size = place(&plan.at_cells, size, w.size * real)
    size = place(&plan.at_maxima, size, plan.lines * row)
    size = place(&plan.at_best, size, (plan.kept if plan.along else 1) * row)
    size = place(&plan.at_labels, size, (plan.kept if plan.along else 1) * row)
    size = place(&plan.at_starts, size, row)
    size = place(&plan.at_firsts, size, row)
    size = place(&plan.at_places, size, plan.lines * plan.row_pitch * 4)
    if plan.coded:
        # The last vector of a row reaches beyond it.
        size = place(&plan.at_codes, size, LANES * (pool.band * w.out + LANES) * 2)
    return size


cdef int64_t images_together(const MaxPool2d* pool, int64_t threads) noexcept nogil:
    """How many have all of their channels worked on at a time, for the bits of few channels would leave most of a
    vector empty; not so many that a thread has no work."""
    cdef int64_t batch = quotient(pool.units, pool.groups * pool.bands)
    if pool.argmax or not one_row(pool.image_strides, pool.channels) or not one_row(pool.pooled_strides, pool.channels):
        return 1
    return most(1, least(quotient(batch, threads), quotient(LANES, pool.channels)))


cdef int64_t widest_across(const MaxPool2d* pool, const Context* context, int64_t channels,
                           int64_t item) noexcept nogil:
    """Up to so many windows in a row ACROSS pays."""
    cdef bint narrow = context.kernels.vector_bytes == 16
    cdef int64_t few
    if channels >= (15 if narrow else 12) * ceil_div(channels, LANES):
        # With lanes that are full it is 0.9 to 4 times as fast, most of all where kernels or strides are large.
        if pool.kernel_size > 9:
            return 64
        if not narrow:
            if pool.w.stride > 2:
                return 32
            if pool.w.stride == 2:
                return 12 if item == 2 and pool.kernel_size > 4 else 8
            return 12 if item == 8 and pool.kernel_size <= 4 else 16
        if pool.w.stride > 2:
            return 20 if item == 2 else 14 if item == 4 else 6
    few = 12 if item == 2 or pool.kernel_size > 48 else 8 if item == 4 else 6
    if pool.w.stride == 2 and pool.kernel_size <= 9:
        few = 4 if pool.kernel_size <= 4 else 8 if item == 2 else 6 if item == 4 else 4
    # Fewer channels leave more of a vector empty (0.8 to 4.5 times as fast with AVX2).
    if channels < 8 and (pool.w.stride == 1 or channels == 2):
        few = least(few, 8)
    return quotient(few * least(channels, 8), 8)


cdef bint goes_across(const MaxPool2dForwardPlan* plan, const Context* context, int64_t threads,
                      int64_t item) noexcept nogil:
    """Where rows of windows would leave more of a vector empty than channels do, or have to be split into phases or
    compared in parts first, and the planes of a group stay in the caches."""
    cdef int64_t most_bytes = ACROSS_NARROW if context.kernels.vector_bytes == 16 else ACROSS_BYTES
    cdef const MaxPool2d* pool = &plan.pool
    cdef int64_t batch = quotient(pool.units, pool.groups * pool.bands)
    cdef int64_t images = images_together(pool, threads)
    cdef int64_t channels = images * pool.channels
    return (pool.algorithm != EACH and not pool.reduced and pool.w.out <= widest_across(pool, context, channels, item)
            and channels > 1 and quotient(batch, images) * ceil_div(pool.channels, LANES) >= threads
            and pool.h.size * pool.w.size <= quotient(most_bytes, LANES * item)
            and pool.h.out * pool.w.out <= ACROSS_WINDOWS)


cdef void choose_along(MaxPool2dForwardPlan* plan) noexcept nogil:
    """ACROSS and LAST: whether they compare along rows. A window has no more rows than the image."""
    plan.kept = round_up(least(plan.pool.h.kernel, plan.pool.h.size) + 3, 4)
    plan.along = compares_along(&plan.pool.h, &plan.pool.w) and plan.pool.w.out <= quotient(KEPT_WINDOWS, plan.kept)


cdef int64_t place_lines(MaxPool2dForwardPlan* plan, int64_t size, int64_t item) noexcept nogil:
    """ACROSS and LAST: room for a window's rows, and up to four that are made at a time, if they compare along rows."""
    cdef int64_t line = plan.pool.w.out * LANES
    if plan.along:
        size = place(&plan.at_best, size, plan.kept * line * item)
        size = place(&plan.at_labels, size, plan.kept * line * most(item, 4))
    return size


cdef int64_t plan_across(MaxPool2dForwardPlan* plan, int64_t threads, int64_t item) noexcept nogil:
    """The units and the scratch of ACROSS."""
    cdef MaxPool2d* pool = &plan.pool
    cdef int64_t windows = pool.h.out * pool.w.out
    cdef int64_t batch = quotient(pool.units, pool.groups * pool.bands)
    cdef int64_t size = 0
    cdef int64_t images = images_together(pool, threads)
    pool.algorithm = ACROSS
    pool.lanes = LANES
    plan.sharing = LANES
    if images > 1:
        plan.sharing = pool.channels
        pool.lanes = images * pool.channels
        pool.channels *= batch
        batch = 1
    pool.groups = ceil_div(pool.channels, pool.lanes)
    pool.units = batch * pool.groups
    pool.band = pool.h.out
    pool.bands = 1
    size = place(&plan.at_rows, size, pool.h.size * pool.w.size * LANES * item)
    size = place(&plan.at_maxima, size, windows * LANES * item)
    size = place(&plan.at_places, size, windows * LANES * 4)
    choose_along(plan)
    size = place_lines(plan, size, item)
    if plan.coded or pool.index_item == 8:
        # Codes, of which the last vector of a row reaches beyond it; or places that are widened.
        size = place(&plan.at_codes, size, LANES * (windows + LANES) * (2 if plan.coded else 4))
    return size


cdef bint results_last(const MaxPool2d* pool) noexcept nogil:
    """Whether channels lie side by side in out and in indices, too."""
    return pool.pooled_strides[1] == 1 and pool.index_argument == ARG_INDICES and pool.index_strides[1] == 1


cdef bint is_last(const MaxPool2d* pool, const Context* context, int64_t item) noexcept nogil:
    """Whether channels lie side by side in self, and it pays to read them so: PHASES reads each position once."""
    cdef int64_t asked = quotient(least(pool.kernel_size, INDEX_LIMIT),
                                  least(pool.h.stride, LANES) * least(pool.w.stride, LANES))
    if pool.algorithm == EACH or pool.reduced or pool.channels < LANES or pool.image_strides[1] != 1:
        return False
    if results_last(pool):
        return True
    # Each position of 16 bits is widened again for each window; v2 has no instruction for it.
    if pool.w.out > LAST_ROW or (asked > 8 and item == 2 and context.kernels.vector_bytes == 16):
        return False
    # Where maxima become planes, so does PHASES make them; and vectors that begin anew are more of few channels.
    return pool.pooled_strides[1] == 1 or (asked <= 64 and (pool.channels % LANES == 0 or pool.channels > 3 * LANES))


cdef int64_t plan_last(MaxPool2dForwardPlan* plan, int64_t threads, int64_t item) noexcept nogil:
    """The units and the scratch of LAST."""
    cdef MaxPool2d* pool = &plan.pool
    cdef int64_t batch = quotient(pool.units, pool.groups * pool.bands)
    cdef int64_t size = 0
    cdef int64_t band, windows
    plan.sharing = LANES
    plan.maxima_last = pool.pooled_strides[1] == 1
    choose_along(plan)
    plan.indices_last = results_last(pool) and not plan.along
    pool.algorithm = LAST
    pool.lanes = group_channels(pool.channels, pool.channels, ceil_div(
        UNITS_PER_THREAD * threads, batch * ceil_div(pool.h.out, LEAST_BAND)) if threads > 1 else 1)
    pool.groups = count_groups(pool.channels, pool.lanes)
    pool.units = batch * pool.groups
    if plan.indices_last:
        split_rows(pool, pool.h.out, pool.h.out, threads, 0)
        return 0
    band = most(1, quotient(BAND_BYTES, pool.w.out * 2 * LANES))
    if plan.along:
        # The first rows of the image that a band reaches have been compared for the band before, too.
        band = most(band, ceil_div(LAST_KERNELS * pool.h.kernel, pool.h.stride))
    windows = split_rows(pool, pool.h.out, band, threads, 0) * pool.w.out
    size = place_lines(plan, size, item)
    if not plan.maxima_last:
        size = place(&plan.at_maxima, size, windows * LANES * item)
    size = place(&plan.at_places, size, windows * LANES * 4)
    return place(&plan.at_codes, size, LANES * (windows + LANES) * (2 if plan.coded else 4))


cdef int plan_maxima(const Context* context, const Arguments* c, const MaxPool2dShapes* shapes,
                     const Tensor* indices, Executor** result) noexcept nogil:
    cdef const Tensor* self = c.tensors[0]
    cdef const Tensor* out = c.tensors[1]
    cdef Executor* executor
    cdef MaxPool2dForwardPlan* plan
    cdef MaxPool2d* pool
    cdef int64_t item = item_size(self.dtype)
    cdef int64_t threads, band, bytes, scratch
    cdef int kernel = FORWARD_KERNEL
    cdef int status = start_executor(context, c, sizeof(MaxPool2dForwardPlan), result)
    if status != SUCCESS:
        return status
    executor = result[0]
    plan = <MaxPool2dForwardPlan*>executor.plan
    pool = &plan.pool
    pool.source_bytes = reach_of(self)
    if not start_plan(context, self, out, self, indices, shapes, 1, pool):
        set_work(executor, context, NULL, 0, 0, 0)
        return SUCCESS
    # Bits of few windows are set one by one: words from codes are made of all kernel positions (0.9 to 1.7).
    plan.coded = (not pool.argmax and pool.kernel_size <= CODED_KERNEL and pool.w.out <= CODED_ROW
                  and pool.h.out * pool.w.out > quotient(FEW_BITS * pool.kernel_size, least(pool.channels, LANES)))
    band = pool.h.out
    if plan.coded:
        band = most(1, quotient(BAND_BYTES, pool.w.out * 2 * LANES))
    split_rows(pool, pool.h.out, band, context.threads, 0)
    bytes = traffic(self, item) + traffic(out, item)
    bytes += pool.mask_bytes if indices == NULL else traffic(indices, pool.index_item)
    threads = useful_threads(context.threads, bytes)
    if threads > 1 and pool.w.stride >= FAR_APART and item < 8 and not goes_across(plan, context, threads, item):
        # Phases of so many columns take two to four times as long as ACROSS: half of the threads, or fewer, will do.
        threads //= 2
    if is_last(pool, context, item):
        scratch = plan_last(plan, context.threads, item)
        kernel = ACROSS_KERNEL
    elif goes_across(plan, context, threads, item):
        scratch = plan_across(plan, threads, item)
        kernel = ACROSS_KERNEL
    else:
        scratch = plan_windows(plan, 8 if self.dtype == DT_DOUBLE else 4)
    pool.far = bytes > FAR_BYTES
    set_work(executor, context, context.kernels.row[kernel][slot_of(self.dtype)], pool.units, bytes, scratch)
    return SUCCESS


cdef Fact* add_pool(const MaxPool2d* pool, Fact* fact) noexcept nogil:
    fact = add_pair(fact, "kernelSize", pool.full_kernel[0], pool.full_kernel[1])
    fact = add_pair(fact, "stride", pool.full_stride[0], pool.full_stride[1])
    return add_pair(fact, "padding", pool.full_pad[0], pool.full_pad[1])
