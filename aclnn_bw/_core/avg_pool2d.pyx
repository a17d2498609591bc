"""AvgPool2dBackward: what it refuses, and what it plans.

The rules follow the CANN operator (aclnnAvgPool2dBackward) and PyTorch's avg_pool2d_backward; the checks run in one
fixed order, and the first that fails speaks.
"""
from libc.stdint cimport int64_t

from aclnn_bw._core.arithmetic cimport ceil_div, least, most, pooled_size, quotient, round_up
from aclnn_bw._core.checks cimport (
    addressable, length_between, none_zero_but_batch, read_pair, same_format, shape_is, shape_made, slot_of,
)
from aclnn_bw._core.executor cimport (
    count_groups, delete_executor, goes_past, group_channels, set_work, useful_threads, widest_group,
)
from aclnn_bw._core.names cimport (
    TEXT, choose, default_rules, element_text, format_name, host_rules, name, product_name, tuple_text,
)
from aclnn_bw._core.operators cimport add_pair, check_common, check_images, start_executor
from aclnn_bw._core.status cimport refuse, wide
from aclnn_bw._core.tensor cimport item_size, plain_strides, reach_of, traffic
from aclnn_bw._core.types cimport (
    ALIGNMENT, ARG_CUBE_MATH_TYPE, ARG_DIVISOR_OVERRIDE, ARG_GRAD_INPUT, ARG_GRAD_OUTPUT, ARG_KERNEL_SIZE, ARG_PADDING,
    ARG_SELF, ARG_STRIDE, ASCEND910B, BOOL, DT_DOUBLE, DT_FLOAT, ERR_INNER, ERR_INVALID, FORMAT_NCHW, FORMAT_NCL, HOST,
    ONE_CALL, SUCCESS, Arguments, Context, Executor, Fact, IntArray, RangeFn, Tensor,
)

cdef extern from "operators.h":
    enum:
        KERNEL "ACLNN_BW_KERNEL_avg_pool2d"
        ACROSS_KERNEL "ACLNN_BW_KERNEL_avg_pool2d_across"

cdef enum:
    CHANNEL_LIMIT = 65535           # of the products
    DIVISOR_LIMIT = 255             # of the products, for either sign
    STRIP_BYTES = 24576             # scratch of a strip: fits an L1 cache
    BAND_BYTES = 16384              # packed rows of a plane, of a cache line of channels
    SCRATCH_BYTES = 1048576         # beyond this a strip's rows are tiled along w further, and then streamed
    MOST_TILE = 256                 # columns; wider ones leave fewer rows to a strip
    NARROWEST_TILE = 32             # columns: still much less work than to sum the rows of windows again for each row
    UNITS_PER_THREAD = 4            # fewer whole planes than this leave threads unevenly loaded: split them into bands
    LEAST_BAND = 8                  # rows; lower bands sum too many rows of windows again
    LEAST_STRIP = 4                 # rows
    FAR_BYTES = 33554432            # of both arrays: from here on it pays to fetch lines to be written
    STREAMED_BYTES = 50331648       # and from here on, or where the last cache is less, to pass the caches
    FETCHED_ROW = 128               # bytes, but not of shorter rows
    LINES_BYTES = 16384             # of rows that are made before they are streamed
    LEAST_LINES = 2048              # of a plane: the lines at its ends are read
    LONGEST_VECTOR = 64             # bytes
    CACHE_LINE = 64                 # bytes
    ACROSS_BYTES = 327680           # of the planes of LANES channels, and the sums of their rows of windows
    WIDEST = 64                     # columns of these
    TALLEST = 4096                  # and rows
    TURNED_BYTES = 65536            # of the planes of a unit that are turned
    LONG_SUMS = 6144                # bytes of LAST's sums of a row of windows: of more, terms are summed in pairs
    # Bytes of LAST's sums of a row of windows and of those of a band, in an L2 cache, if LANES channels allow it. Half
    # as many leave pixels in pieces: 0.9 to 2.4 times as long, 1.24 in the mean of 36 cases.
    LAST_SUMS = 65536
    LAST_BYTES = 524288

# What the caller asked for, read into plain numbers.
cdef struct Attributes:
    int64_t[2] kernel
    int64_t[2] stride
    int64_t[2] pad


cdef int check_stride_length(const Context* context, const IntArray* stride) noexcept nogil:
    """The one argument that may be null: as with an empty array, the stride is then the kernel size."""
    return SUCCESS if stride == NULL else length_between(context, ARG_STRIDE, stride, 0, 2)


cdef int check_formats(const Context* context, const Tensor* tensor, int argument) noexcept nogil:
    """NCHW for rank 4; NCL or NCHW for rank 3."""
    if tensor.format == FORMAT_NCHW or (tensor.rank == 3 and tensor.format == FORMAT_NCL):
        return SUCCESS
    return refuse(ERR_INVALID, "%s.format = %s: must be ACL_FORMAT_NCHW%s", name(context, argument),
                  format_name(tensor.format), choose(tensor.rank == 3, " or ACL_FORMAT_NCL", " for rank 4"))


cdef int check_values(const Context* context, const IntArray* kernel, const IntArray* stride,
                      const IntArray* padding, Attributes* a) noexcept nogil:
    cdef char[TEXT] seen
    cdef char[TEXT] rule
    cdef int64_t i
    cdef int status = (read_pair(context, ARG_KERNEL_SIZE, kernel, 1, a.kernel)
                       or read_pair(context, ARG_STRIDE, kernel if stride == NULL or stride.size == 0 else stride,
                                    1, a.stride)
                       or read_pair(context, ARG_PADDING, padding, 0, a.pad))
    if status != SUCCESS:
        return status
    for i in range(2):
        if a.pad[i] > a.kernel[i] // 2:
            return refuse(ERR_INVALID, "%s = %lld: must be <= %s / 2 = %lld",
                          element_text(seen, context, ARG_PADDING, padding, i), <wide>a.pad[i],
                          element_text(rule, context, ARG_KERNEL_SIZE, kernel, i), <wide>(a.kernel[i] // 2))
    return SUCCESS


cdef int check_divisor(const Context* context, int64_t divisor, bint absent) noexcept nogil:
    """In the C call 0 is none; in the one-call function, where None is, it would be a division by zero."""
    if divisor == 0 and not absent and context.face == ONE_CALL:
        return refuse(ERR_INVALID, "%s = 0: must not be 0; None means none", name(context, ARG_DIVISOR_OVERRIDE))
    if context.product != HOST and not -DIVISOR_LIMIT <= divisor <= DIVISOR_LIMIT:
        return refuse(ERR_INVALID, "%s = %lld: must be in [-%d, %d] on %s; %s has no limit",
                      name(context, ARG_DIVISOR_OVERRIDE), <wide>divisor, DIVISOR_LIMIT, DIVISOR_LIMIT,
                      product_name(context.product), host_rules(context))
    return SUCCESS


cdef int check_cube_math_type(const Context* context, int64_t mode, int dtype) noexcept nogil:
    if mode < 0 or mode > <int64_t>USE_HF32:
        return refuse(ERR_INVALID, "%s = %lld: must be 0 (KEEP_DTYPE), 1 (ALLOW_FP32_DOWN_PRECISION), 2 (USE_FP16) or "
                      "3 (USE_HF32)", name(context, ARG_CUBE_MATH_TYPE), <wide>mode)
    if (dtype == DT_FLOAT and context.product not in (ASCEND910B, HOST)
            and mode not in (ALLOW_FP32_DOWN_PRECISION, USE_FP16)):
        return refuse(ERR_INVALID, "%s = %lld: must be 1 (ALLOW_FP32_DOWN_PRECISION) or 2 (USE_FP16) for ACL_FLOAT "
                      "on %s; pass %s=1, or use %s", name(context, ARG_CUBE_MATH_TYPE), <wide>mode,
                      product_name(context.product), name(context, ARG_CUBE_MATH_TYPE), default_rules(context))
    return SUCCESS


cdef int check_shapes(const Context* context, const Tensor* grad_output, const Tensor* self, const Tensor* grad_input,
                      const Attributes* a, bint ceil_mode, int64_t* pooled) noexcept nogil:
    cdef char[TEXT] text
    cdef int64_t[4] expected
    cdef int64_t i
    cdef int rank = self.rank
    cdef int status = (none_zero_but_batch(context, ARG_SELF, self)
                       or shape_is(context, ARG_GRAD_INPUT, grad_input, self.dims, "self.shape"))
    if status != SUCCESS:
        return status
    if context.product != HOST and self.dims[rank - 3] > CHANNEL_LIMIT:
        return refuse(ERR_INVALID, "self.shape = %s: must have at most %d channels on %s; %s has no limit",
                      tuple_text(text, self.dims, rank), CHANNEL_LIMIT, product_name(context.product),
                      host_rules(context))
    for i in range(2):
        # 2*pad <= kernel has been checked: pooled_size does not overflow.
        pooled[i] = pooled_size(self.dims[rank - 2 + i], a.kernel[i], a.stride[i], a.pad[i], ceil_mode)
        if pooled[i] < 1:
            return refuse(ERR_INVALID, "self.shape = %s: is too small along %s for %s = %lld, no window fits",
                          tuple_text(text, self.dims, rank), choose(i == 0, "H", "W"), name(context, ARG_KERNEL_SIZE),
                          <wide>a.kernel[i])
    for i in range(rank - 2):
        expected[i] = self.dims[i]
    expected[rank - 2] = pooled[0]
    expected[rank - 1] = pooled[1]
    return shape_made(context, ARG_GRAD_OUTPUT, grad_output, expected, "pooled", ARG_SELF, self)


cdef bint reaches_image(const Axis* axis) noexcept nogil:
    """Whether every window holds a position: the divisor is never 0. 2*pad <= kernel and the pooling formula say so."""
    return window_length(axis, 0, False) > 0 and window_length(axis, axis.out - 1, False) > 0


cdef int64_t made_rows(const AvgPool2dPlan* plan) noexcept nogil:
    """At most, of a band of gradInput."""
    return plan.band if plan.algorithm == FILL else least(plan.band * plan.h.stride, plan.h.size)


cdef int64_t lay_groups(AvgPool2dPlan* plan, int64_t size, int64_t item) noexcept nogil:
    """Place, behind `size` bytes, what planes of channels side by side need besides; returns the bytes."""
    cdef const Axis* h = &plan.h
    cdef const Axis* w = &plan.w
    plan.at_packed = size
    if plan.packs:
        plan.packed_row = round_up((plan.tile + w.terms - 1) * item, ALIGNMENT)
        if plan.tile == w.count and plan.grad_output_strides[2] == w.out * plan.grad_output_strides[3]:
            plan.packed_row = w.out * item      # transposed as one
        plan.packed_plane = lines_apart((plan.band + h.terms - 1) * plan.packed_row)
        size += plan.group * plan.packed_plane
    plan.at_made = size
    if plan.turns:
        plan.grad_input_strides[2] = least(plan.tile * w.stride, w.size)
        plan.grad_input_strides[1] = lines_apart(made_rows(plan) * plan.grad_input_strides[2] * item) // item
        # A vector may be stored beyond the last row.
        size += plan.group * plan.grad_input_strides[1] * item + LONGEST_VECTOR
        plan.made_end = size
    return size


cdef int64_t lay_out(AvgPool2dPlan* plan, int64_t real, int64_t item, bint scatters) noexcept nogil:
    """Place the buffers of one unit; returns the bytes. `real` and `item` are the sizes of the types that are summed
    and stored."""
    cdef Axis* h = &plan.h
    cdef Axis* w = &plan.w
    cdef int64_t lanes = LONGEST_VECTOR // real
    cdef int64_t row, rows
    cdef int64_t size = 0
    cdef bint is_even = w.long_phases == w.stride
    if plan.algorithm in (FILL, DOUBLE, WINDOWS):
        return lay_groups(plan, 0, item)
    # The first term lies somewhere in the first vector, and what is read or stored in excess ends in a last one.
    plan.pitch = round_up(plan.tile + w.terms + 2 * lanes, lanes)
    row = plan.pitch * real
    rows = (1 if plan.algorithm == STREAMED else plan.strip + h.terms - 1) * row
    plan.at_terms = size
    size += rows
    plan.at_long = plan.at_terms if w.terms == 1 else size
    size += 0 if w.terms == 1 or plan.taps > 0 else rows
    plan.at_short = size
    size += 0 if is_even or w.terms == 2 else (rows if w.terms > 2 else row)
    plan.at_zeros = size
    size += row if plan.pairs else 0
    plan.at_sums = size
    size += 4 * row if plan.algorithm == STREAMED else 0
    plan.at_cells = size
    size += least(w.stride, MOST_PHASES) * row if w.stride > 2 else 0
    plan.at_factors = size
    size += 0 if plan.constant_divisor else row
    plan.at_row = size
    if scatters or plan.round_result:
        size += round_up(least(plan.tile * w.stride, w.size) * item, ALIGNMENT)
    return lay_groups(plan, size, item)


cdef int64_t join_planes(AvgPool2dPlan* plan, int64_t planes) noexcept nogil:
    """Make one tall plane of many where no window and no row lies across two of them; returns the number left.

    Planes of a few rows are then worked off in long loops.
    """
    cdef Axis* h = &plan.h
    cdef int64_t* g = plan.grad_output_strides
    cdef int64_t* x = plan.grad_input_strides
    if (h.terms == 1 and h.pad == 0 and h.out * h.stride == h.size and plan.constant_divisor and not is_filled(plan)
            and g[1] == h.out * g[2] and x[1] == h.size * x[2]
            and g[0] == plan.channels * g[1] and x[0] == plan.channels * x[1]):
        h.size *= planes
        h.out *= planes
        h.count *= planes
        plan.channels = 1
        return 1
    return planes


cdef bint is_filled(const AvgPool2dPlan* plan) noexcept nogil:
    """One window covers the whole plane."""
    return (plan.h.out == 1 and plan.w.out == 1 and plan.h.kernel == plan.h.size
            and plan.w.kernel == plan.w.size)


cdef bint is_last(const AvgPool2dPlan* plan, int64_t real) noexcept nogil:
    """Channels lie side by side in gradInput, enough of them for every vector; and in gradOutput, or rows do."""
    # A row of terms counts where windows are loaded besides, unless the terms are all there is.
    cdef int64_t terms = 1 if plan.grad_output_strides[1] != 1 and not in_pairs(&plan.h, &plan.w) else 0
    return (plan.channels >= LANES and plan.grad_input_strides[1] == 1
            and (plan.grad_output_strides[1] == 1 or plan.grad_output_strides[3] == 1)
            and plan.rounding == ROUND_NONE and not plan.round_result
            # Four times the terms in rows of sums (divide_across), of less than two blocks of channels; as many of
            # windows, if they are loaded.
            and plan.h.terms <= (SCRATCH_BYTES // (most(plan.w.size, plan.w.out) * LANES * real) - terms) // 8)


cdef bint are_joined(const AvgPool2dPlan* plan) noexcept nogil:
    """The channels of all images lie as if they were those of one."""
    return (plan.grad_output_strides[0] == plan.channels * plan.grad_output_strides[1]
            and plan.grad_input_strides[0] == plan.channels * plan.grad_input_strides[1])


cdef bint goes_across(const AvgPool2dPlan* plan, int64_t planes, int64_t threads, int64_t item) noexcept nogil:
    """Where rows are short, so that vectors of them, or of their phases, would be mostly empty, and the planes of a
    group of channels stay in the caches. What BANDED does otherwise says what is short: the limits are where ACROSS is
    no slower with AVX2 and AVX-512, and at most 20 times as fast."""
    cdef const Axis* h = &plan.h
    cdef const Axis* w = &plan.w
    cdef int64_t channels = planes if are_joined(plan) else plan.channels
    cdef int64_t groups = ceil_div(channels, LANES)
    cdef bint short
    if (plan.rounding != ROUND_NONE or plan.round_result
            or most(h.size, h.out) > TALLEST or most(w.size, w.out) > WIDEST
            or (h.out == 1 and w.out == 1)
            or (h.size * item + h.out * most(item, 4)) * w.size * LANES > ACROSS_BYTES
            # Empty lanes cost as much as full ones; so do threads without a group.
            or 4 * channels < 3 * LANES * groups
            or quotient(planes, channels) * groups
            < useful_threads(threads, planes * (h.size * w.size + h.out * w.out) * item)):
        return False
    if plan.taps > 0:
        short = w.size <= by_item(item, 5, 5, 4)
    elif plan.pairs:
        short = w.size <= (8 if w.terms == 1 else by_item(item, 23, 18 if w.stride == 3 else 14, 10))
    elif h.terms == 1 and w.terms == 1:
        # Rows of one term each, and zeros between them.
        short = (w.stride > 1 and (w.out > 1 or (item < 8 and w.size <= 4))
                 and w.size <= (8 if w.out <= few_windows(w) else by_item(item, 24, 24, 8)))
    elif w.stride < 3:
        short = w.out <= by_item(item, 10, 10, 5)
    else:
        short = w.out <= by_item(item, 16, 16, 10) and w.size <= by_item(item, 64, 64, 45)
    return short


cdef int64_t few_windows(const Axis* w) noexcept nogil:
    """As many of a row take less time one by one."""
    return FEW_APART if w.kernel < w.stride and w.stride <= MOST_PHASES else FEW_WINDOWS


cdef bint has_few(const AvgPool2dPlan* plan) noexcept nogil:
    """Channels lie side by side in gradInput, too few for LAST."""
    return 1 < plan.channels < LANES and plan.grad_input_strides[1] == 1 and plan.grad_input_strides[3] != 1


cdef bint fits_turned(const AvgPool2dPlan* plan, int64_t item) noexcept nogil:
    """The scratch holds the least that a unit makes of all channels."""
    cdef int64_t columns = plan.w.size if is_whole(plan) else least(NARROWEST_TILE * plan.w.stride, plan.w.size)
    cdef int64_t rows = 1 if plan.algorithm == FILL else plan.h.stride
    return plan.algorithm != ACROSS and plan.channels * rows * columns * item <= SCRATCH_BYTES


cdef bint is_whole(const AvgPool2dPlan* plan) noexcept nogil:
    """Rows have one tile."""
    return plan.algorithm in (FILL, WINDOWS)


cdef void choose_algorithm(AvgPool2dPlan* plan, int64_t planes, int64_t threads, int64_t item,
                           bint scatters) noexcept nogil:
    """None of it changes a bit of the result: every algorithm adds the same terms in the same order."""
    cdef const Axis* h = &plan.h
    cdef const Axis* w = &plan.w
    plan.taps = 0
    plan.pairs = False
    if not scatters and not plan.round_result and h.terms == w.terms:
        if h.stride == 1 and w.stride == 1 and w.terms in (2, 3, 5):
            plan.taps = w.terms
        plan.pairs = w.stride in (2, 3) and (w.terms == 2 or (w.terms == 1 and w.long_phases == w.stride
                                                              and h.long_phases == h.stride))
    if is_last(plan, most(item, 4)):
        plan.algorithm = LAST
    elif is_filled(plan):
        plan.algorithm = FILL
    elif (is_doubled(h) and is_doubled(w) and plan.constant_divisor and plan.rounding == ROUND_NONE and not scatters
            and 1 in (plan.grad_output_strides[1], plan.grad_output_strides[3])):
        plan.algorithm = DOUBLE
    elif goes_across(plan, planes, threads, item):
        plan.algorithm = ACROSS
    elif (h.terms == 1 and w.terms == 1 and w.stride > 2 and w.out <= few_windows(w) and not scatters
            and not (item == 8 and w.stride == 3 and w.kernel == 3)):
        plan.algorithm = WINDOWS
    elif h.terms > SCRATCH_BYTES or w.terms > SCRATCH_BYTES:
        plan.algorithm = STREAMED
    else:
        plan.algorithm = BANDED


cdef int64_t row_bytes(const AvgPool2dPlan* plan, int64_t width, int64_t real) noexcept nogil:
    """LAST: what the scratch holds of a row of windows, terms where they are summed in pairs (sum_pairs), else sums."""
    return (plan.w.out if plan.near else plan.w.size) * width * real


cdef int64_t group_last(AvgPool2dPlan* plan, int64_t wanted, int64_t real) noexcept nogil:
    """LAST: choose the group, so many groups being wanted; returns the channels of the widest."""
    cdef int64_t row = row_bytes(plan, LANES, real)
    plan.group = group_channels(plan.channels, least(LAST_SUMS // row, LAST_BYTES // (4 * plan.h.terms * row)), wanted)
    plan.groups = count_groups(plan.channels, plan.group)
    return widest_group(plan.channels, plan.group)


cdef int64_t divide_across(AvgPool2dPlan* plan, int64_t planes, int64_t threads, int64_t real,
                           int64_t item) noexcept nogil:
    """ACROSS and LAST: choose the group and the band; returns the bytes of scratch."""
    cdef const Axis* h = &plan.h
    cdef const Axis* w = &plan.w
    cdef bint packs = plan.algorithm == ACROSS
    cdef int64_t width = LANES
    cdef int64_t rows = h.out
    # Of the rows of windows that a band sums the band before has summed terms - 1, a quarter at most.
    cdef int64_t least_band = most(LEAST_BAND, 3 * h.terms * h.stride)
    cdef int64_t wanted, groups
    plan.band = h.size
    plan.tiles = 1
    plan.near = False
    if packs:
        if are_joined(plan):
            plan.channels = planes
        plan.group = least(plan.channels, LANES)
        plan.groups = ceil_div(plan.channels, LANES)
    else:
        plan.loads = plan.grad_output_strides[1] != 1
        wanted = ceil_div(UNITS_PER_THREAD * threads, quotient(planes, plan.channels)) if threads > 1 else 1
        groups = ceil_div(wanted, ceil_div(h.size, least_band))
        plan.near = in_pairs(h, w)
        width = group_last(plan, groups, real)
        if plan.near and w.size * width * real <= LONG_SUMS:
            plan.near = False
            width = group_last(plan, groups, real)
        rows = most(4 * h.terms, LAST_BYTES // row_bytes(plan, width, real))
        plan.band = least(h.size, (rows - h.terms) * h.stride)
        if wanted > plan.groups:
            plan.band = least(plan.band, most(least_band, ceil_div(h.size, ceil_div(wanted, plan.groups))))
        rows = least(h.out, (plan.band - 1) // h.stride + h.terms + 1)
    plan.bands = ceil_div(h.size, plan.band)
    plan.at_terms = 0
    plan.at_factors = round_up(w.out * width * real, ALIGNMENT)
    plan.at_packed = round_up(plan.at_factors + w.out * <int64_t>sizeof(double), ALIGNMENT)
    plan.at_long = plan.at_packed + (
        round_up(rows * w.out * width * item, ALIGNMENT) if packs or plan.loads else 0)
    plan.at_row = plan.at_long + rows * row_bytes(plan, width, real)
    return plan.at_row + (h.size * w.size * LANES * item if packs else 0)


cdef int64_t divide_channels(AvgPool2dPlan* plan, int64_t real, int64_t item, bint scatters,
                             int64_t least_band) noexcept nogil:
    """Channels side by side: choose the group, and what that leaves of band and tile; returns the bytes of scratch."""
    cdef int64_t size
    # Those of one cache line are copied at once, else each would fetch it again.
    plan.group = plan.channels if plan.turns else least(plan.channels, CACHE_LINE // item)
    size = lay_out(plan, real, item, scatters)
    while plan.band > least_band and (plan.packed_plane > BAND_BYTES or size - plan.at_made > TURNED_BYTES):
        plan.band = most(ceil_div(plan.band, 2), least_band)
        size = lay_out(plan, real, item, scatters)
    # Of long rows and strides even the positions of one band are many,
    while ((size - plan.at_made > SCRATCH_BYTES or (plan.algorithm == DOUBLE and size > SCRATCH_BYTES))
            and plan.tile > NARROWEST_TILE and not is_whole(plan)):
        plan.tile = most(ceil_div(plan.tile, 2), NARROWEST_TILE)
        size = lay_out(plan, real, item, scatters)
    while size - plan.at_made > SCRATCH_BYTES and plan.band > 1:
        plan.band = ceil_div(plan.band, 2)
        size = lay_out(plan, real, item, scatters)
    # and of tall kernels its rows of windows.
    while size > 2 * SCRATCH_BYTES and plan.group > 1:
        plan.group = ceil_div(plan.group, 2)
        plan.packs = plan.packs and (plan.group > 1 or plan.algorithm == DOUBLE)
        size = lay_out(plan, real, item, scatters)
    return size


cdef int64_t divide_work(AvgPool2dPlan* plan, int64_t planes, int64_t threads, int64_t real, int64_t item,
                         bint scatters) noexcept nogil:
    """Choose the band, the tile and the strip; returns the bytes of scratch."""
    cdef Axis* h = &plan.h
    cdef Axis* w = &plan.w
    cdef int64_t rows = h.size if is_filled(plan) else h.count
    cdef int64_t size, wanted
    cdef int64_t* g = plan.grad_output_strides
    # A band's first rows sum rows of windows that the band before has summed too: fewer rows than twice these are
    # mostly such work done again.
    cdef int64_t least_band = most(LEAST_BAND, 2 * (h.terms - 1))
    plan.band = rows
    plan.tile = w.count
    if plan.algorithm in (BANDED, STREAMED):
        # Tiles are as wide as each other, about.
        plan.tile = ceil_div(w.count, ceil_div(w.count, MOST_TILE))
        # More rows or terms than SCRATCH_BYTES never fit: no more keeps every product below 2**63.
        plan.strip = least(rows, SCRATCH_BYTES)
    size = lay_out(plan, real, item, scatters)
    # Strips: the longest whose scratch stays in the cache. What lies behind at_packed, divide_channels divides.
    while plan.at_packed > STRIP_BYTES and plan.strip > LEAST_STRIP:
        plan.strip = most(ceil_div(plan.strip, 2), LEAST_STRIP)
        size = lay_out(plan, real, item, scatters)
    while plan.at_packed > SCRATCH_BYTES and plan.tile > NARROWEST_TILE:
        plan.tile = most(ceil_div(plan.tile, 2), NARROWEST_TILE)
        size = lay_out(plan, real, item, scatters)
    if plan.at_packed > SCRATCH_BYTES:
        plan.algorithm = STREAMED
        plan.taps = 0
        plan.pairs = False
    if plan.algorithm == STREAMED:
        plan.band = 1
        size = lay_out(plan, real, item, scatters)
    plan.packs = (plan.algorithm in (BANDED, DOUBLE) and g[1] == 1 and g[3] != 1 and plan.rounding == ROUND_NONE)
    if plan.packs or plan.turns:
        size = divide_channels(plan, real, item, scatters, least_band)
    # Few planes: split them further.
    wanted = ceil_div(UNITS_PER_THREAD * threads * plan.group, most(planes, 1))
    if threads > 1 and wanted > 1 and plan.algorithm != STREAMED:
        plan.band = least(plan.band, most(least(least_band, rows), ceil_div(rows, wanted)))
        size = lay_out(plan, real, item, scatters)
    plan.bands = ceil_div(rows, plan.band)
    plan.tiles = ceil_div(w.count, plan.tile)
    plan.groups = ceil_div(plan.channels, plan.group)
    return size


cdef int64_t plan_streams(AvgPool2dPlan* plan, int64_t item, int64_t size) noexcept nogil:
    """Where the lines of gradInput are not read before they are written; returns the bytes of scratch. Pairs in 16 bits
    take 1.1 times as long so, for nothing is summed while lines are stored, and tall kernels in strips of few rows,
    which share most of their rows of windows, to 2.2 times."""
    cdef int64_t rows = plan.h.stride * plan.w.size * item      # of a value of q
    cdef int64_t strip = least(plan.strip if plan.algorithm == BANDED else plan.band, quotient(LINES_BYTES, rows))
    plan.streams = (plan.algorithm in (DOUBLE, WINDOWS, BANDED) and not plan.packs and not plan.turns
                    and not (plan.pairs and item == 2)
                    and plan.grad_input_strides[3] == 1 and plan.grad_input_strides[2] == plan.w.size
                    and strip >= most(1, plan.h.terms - 1) and plan.h.size * plan.w.size * item >= LEAST_LINES)
    if not plan.streams:
        return size
    plan.far = False    # lines of the scratch are not fetched
    plan.strip = strip
    plan.at_lines = round_up(size, ALIGNMENT) + 2 * ALIGNMENT   # behind what is left of a line
    plan.lines_end = plan.at_lines + plan.strip * rows
    return plan.lines_end


cdef int plan_backward(const Context* context, const Arguments* c, const Attributes* a, const int64_t* pooled,
                       Executor** result) noexcept nogil:
    cdef const Tensor* grad_output = c.tensors[0]
    cdef const Tensor* self = c.tensors[1]
    cdef const Tensor* grad_input = c.tensors[2]
    cdef bint count_include_pad = c.numbers[1] != 0
    cdef int64_t divisor_override = c.numbers[2]
    cdef int64_t cube_math_type = c.numbers[3]
    cdef Executor* executor
    cdef AvgPool2dPlan* plan
    cdef RangeFn kernel
    cdef int64_t item = item_size(grad_output.dtype)
    cdef int64_t real = 8 if grad_output.dtype == DT_DOUBLE else 4
    cdef int64_t batch, planes, scratch, units, bytes, i
    cdef int rank = self.rank
    cdef bint reduced, scatters
    cdef int status = start_executor(context, c, sizeof(AvgPool2dPlan), result)
    if status != SUCCESS:
        return status
    executor = result[0]
    plan = <AvgPool2dPlan*>executor.plan
    batch = self.dims[0] if rank == 4 else 1
    plan.channels = self.dims[rank - 3]
    planes = batch * plan.channels
    plain_strides(grad_output, &plan.grad_output_strides[4 - rank])
    plain_strides(grad_input, &plan.grad_input_strides[4 - rank])
    plan.source_bytes = reach_of(grad_output)
    if planes == 0:
        # The sizes of an empty tensor may be anything, so no geometry is made of them.
        set_work(executor, context, NULL, 0, 0, 0)
        return SUCCESS
    if rank == 3:
        # An image is a batch of one: its planes may be joined as those of a batch are.
        plan.grad_output_strides[0] = plan.channels * plan.grad_output_strides[1]
        plan.grad_input_strides[0] = plan.channels * plan.grad_input_strides[1]
    plan.h = make_axis(self.dims[rank - 2], pooled[0], a.kernel[0], a.stride[0], a.pad[0])
    plan.w = make_axis(self.dims[rank - 1], pooled[1], a.kernel[1], a.stride[1], a.pad[1])
    # Longer rows would not be streamed.
    lay_flat(&plan.h, &plan.w, plan.grad_output_strides, plan.grad_input_strides, &plan.channels, quotient(128, item),
             quotient(LINES_BYTES, item))
    planes = batch * plan.channels
    plan.count_include_pad = count_include_pad
    plan.constant_divisor = divisor_override != 0 or (constant_length(&plan.h, count_include_pad)
                                                      and constant_length(&plan.w, count_include_pad))
    if not (reaches_image(&plan.h) and reaches_image(&plan.w)):
        delete_executor(executor)
        result[0] = NULL
        return refuse(ERR_INNER, "%s: a window lies in the padding alone", name(context, ARG_KERNEL_SIZE))
    plan.divisor[0] = divisor_override if divisor_override != 0 else window_length(&plan.h, 0, count_include_pad)
    plan.divisor[1] = 1 if divisor_override != 0 else window_length(&plan.w, 0, count_include_pad)
    plan.group = 1
    reduced = grad_output.dtype == DT_FLOAT and context.product != HOST
    plan.round_result = reduced and (cube_math_type == USE_FP16 or context.product != ASCEND910B)
    plan.rounding = ROUND_F16 if plan.round_result else (
        ROUND_HF32 if reduced and cube_math_type in (ALLOW_FP32_DOWN_PRECISION, USE_HF32) else ROUND_NONE)
    scatters = plan.grad_input_strides[3] != 1
    plan.turns = has_few(plan)
    choose_algorithm(plan, planes, context.threads, item, scatters and not plan.turns)
    if plan.turns and not fits_turned(plan, item):
        plan.turns = False
        choose_algorithm(plan, planes, context.threads, item, scatters)
    for i in range(4):
        plan.to_strides[i] = plan.grad_input_strides[i]
    if plan.turns:
        scatters = False
        plan.grad_input_strides[3] = 1
    if plan.algorithm in (ACROSS, LAST):
        scratch = divide_across(plan, planes, context.threads, real, item)
    else:
        if not plan.turns:
            planes = join_planes(plan, planes)
        scratch = divide_work(plan, planes, context.threads, real, item, scatters)
    bytes = traffic(grad_output, item) + traffic(grad_input, item)
    plan.far = bytes > FAR_BYTES and (plan.algorithm == WINDOWS or plan.w.size * item >= FETCHED_ROW)
    if goes_past(context, bytes, least(STREAMED_BYTES, context.kernels.streamed_bytes)):
        scratch = plan_streams(plan, item, scratch)
    # gradInput's elements are distinct and lie in a storage, so their number, and any smaller one, does not overflow.
    units = quotient(planes, plan.channels) * plan.groups * plan.bands * plan.tiles
    kernel = context.kernels.row[ACROSS_KERNEL if plan.algorithm in (ACROSS, LAST) else KERNEL][
        slot_of(grad_output.dtype)]
    set_work(executor, context, kernel, units, bytes, scratch)
    return SUCCESS


cdef int avg_pool2d_backward(const Context* context, const Arguments* c, Executor** executor) noexcept nogil:
    """Phase 1."""
    cdef const Tensor* grad_output = c.tensors[0]
    cdef const Tensor* self = c.tensors[1]
    cdef const Tensor* grad_input = c.tensors[2]
    cdef const IntArray* kernel_size = c.arrays[0]
    cdef const IntArray* stride = c.arrays[1]
    cdef const IntArray* padding = c.arrays[2]
    cdef Attributes a
    cdef int64_t[2] pooled
    return (check_common(context, c)
            or check_images(context, c)
            or check_formats(context, grad_output, ARG_GRAD_OUTPUT)
            or check_formats(context, self, ARG_SELF)
            or same_format(context, ARG_SELF, self, ARG_GRAD_INPUT, grad_input)
            or length_between(context, ARG_KERNEL_SIZE, kernel_size, 1, 2)
            or check_stride_length(context, stride)
            or length_between(context, ARG_PADDING, padding, 1, 2)
            or check_values(context, kernel_size, stride, padding, &a)
            or check_divisor(context, c.numbers[2], c.absent & 1 << 2 != 0)
            or check_cube_math_type(context, c.numbers[3], grad_output.dtype)
            or check_shapes(context, grad_output, self, grad_input, &a, c.numbers[0] != 0, pooled)
            or addressable(context, ARG_GRAD_INPUT, grad_input)
            or plan_backward(context, c, &a, pooled, executor))


cdef int64_t facts(const Executor* executor, Fact* fact) noexcept nogil:
    """What explain() tells."""
    cdef const AvgPool2dPlan* plan = <const AvgPool2dPlan*>executor.plan
    fact = add_pair(fact, "kernelSize", plan.h.full_kernel, plan.w.full_kernel)
    fact = add_pair(fact, "stride", plan.h.full_stride, plan.w.full_stride)
    fact = add_pair(fact, "padding", plan.h.full_pad, plan.w.full_pad)
    add_pair(fact, "countIncludePad", plan.count_include_pad, 0)
    fact.kind = BOOL
    return 1 << plan.algorithm
