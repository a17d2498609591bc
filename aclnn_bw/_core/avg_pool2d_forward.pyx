"""AvgPool2d: what it refuses, and what it plans.

The rules follow the CANN operator (aclnnAvgPool2d) and PyTorch's avg_pool2d; the checks run in one fixed order, and the
first that fails speaks.
"""
from libc.stdint cimport int64_t

from aclnn_bw._core.arithmetic cimport ceil_div, least, most, pooled_size, quotient, round_up
from aclnn_bw._core.avg_pool2d cimport (
    ALLOW_FP32_DOWN_PRECISION, LANES, USE_FP16, USE_HF32, by_item, constant_length, is_doubled, lay_flat, make_axis,
    lines_apart, window_length,
)
from aclnn_bw._core.checks cimport addressable, length_between, none_zero_but_batch, shape_made, slot_of
from aclnn_bw._core.executor cimport count_groups, group_channels, set_work, useful_threads, widest_group
from aclnn_bw._core.names cimport (
    TEXT, choose, default_rules, element_text, format_name, host_rules, name, product_name, tuple_text,
)
from aclnn_bw._core.operators cimport add_pair, check_common, check_images, start_executor
from aclnn_bw._core.status cimport refuse, wide
from aclnn_bw._core.tensor cimport item_size, plain_strides, reach_of, traffic
from aclnn_bw._core.types cimport (
    ALIGNMENT, ARG_CUBE_MATH_TYPE, ARG_DIVISOR_OVERRIDE, ARG_KERNEL_SIZE, ARG_OUT, ARG_PADDINGS, ARG_SELF, ARG_STRIDES,
    ASCEND910B, BOOL, DT_DOUBLE, DT_FLOAT, ERR_INVALID, FORMAT_NCHW, FORMAT_NCL, HOST, MAX_INTS, NO_RESULT, ONE_CALL,
    SUCCESS, Arguments, Context, Executor, Fact, IntArray, Tensor,
)

cdef extern from "operators.h":
    enum:
        KERNEL "ACLNN_BW_KERNEL_avg_pool2d_forward"
        ACROSS_KERNEL "ACLNN_BW_KERNEL_avg_pool2d_forward_across"

cdef enum:
    UNITS_PER_THREAD = 4
    LEAST_BAND = 8          # rows of windows
    MOST_COLUMNS = 4096     # of a tile: the sums of its columns stay in an L1 cache
    WIDEST_WINDOW = 1024    # columns; wider ones are summed one by one
    FLAT_BYTES = 8192       # of sums that FLAT makes at a time
    WIDEST_FLAT = 16        # columns of a window
    FEW_WINDOWS = 2         # of a row
    FEW_TERMS = 100         # of those; the vectors of ROWS take longer for fewer
    LONELY_TERMS = 9        # of a plane's only window; for more WIDE takes less time
    PACKED_BYTES = 262144   # of the rows of a group of channels
    ACROSS_BYTES = 327680   # of the planes of LANES channels
    WIDEST_PLANE = 64       # columns of these
    TALLEST = 4096          # and rows
    LAST_SUMS = 32768       # bytes of sums of LAST: an L1 cache, if LANES channels allow it
    LAST_BYTES = 131072     # of self's rows for a band of LAST, whose groups share cache lines: in an L2 cache
    STORED_BYTES = 524288   # the same where out has rows, of which longer pieces are written (k3 s1: 1.1 to 1.3 times)
    FAR_BYTES = 16777216    # of all arrays, half an L3 cache: from here on it pays to fetch ahead
    AHEAD = 8192            # bytes, at least
    SMALL_PLANE = 65536     # bytes, of which what is read next lies in the next plane
    WIDEST_LAST = 1024      # columns: the sums of LANES channels of float64 are 128 KiB then

# What the caller asked for, read into plain numbers.
cdef struct Attributes:
    int64_t[2] kernel
    int64_t[2] stride
    int64_t[2] pad


cdef int check_format(const Context* context, int argument, const Tensor* tensor) noexcept nogil:
    """NCHW or NCL; which of them the rank says, where there is a right one."""
    cdef bint planes = tensor.format == FORMAT_NCHW
    cdef bint lines = tensor.format == FORMAT_NCL
    if tensor.rank == 4:
        lines = False
    elif tensor.rank == 3:
        planes = planes and context.product == HOST
    if planes or lines:
        return SUCCESS
    return refuse(ERR_INVALID, "%s.format = %s: must be %s", name(context, argument), format_name(tensor.format),
                  choose(tensor.rank == 4, "ACL_FORMAT_NCHW for rank 4",
                         choose(tensor.rank != 3, "ACL_FORMAT_NCHW or ACL_FORMAT_NCL",
                                choose(context.product == HOST, "ACL_FORMAT_NCL or ACL_FORMAT_NCHW for rank 3",
                                       "ACL_FORMAT_NCL for rank 3"))))


cdef int none_below(const Context* context, int argument, const IntArray* array, int64_t lowest) noexcept nogil:
    """Whatever its length is: of more values than any array has, which is refused later, the first are there."""
    cdef char[TEXT] text
    cdef int64_t i
    for i in range(least(array.size, MAX_INTS)):
        if array.values[i] < lowest:
            return refuse(ERR_INVALID, "%s = %lld: must be >= %lld", element_text(text, context, argument, array, i),
                          <wide>array.values[i], <wide>lowest)
    return SUCCESS


cdef int read_attributes(const Context* context, const IntArray* kernel, const IntArray* strides,
                         const IntArray* paddings, Attributes* a) noexcept nogil:
    cdef char[TEXT] seen
    cdef char[TEXT] rule
    cdef const IntArray* stride = kernel if strides.size == 0 else strides
    cdef int64_t i
    for i in range(2):
        a.kernel[i] = kernel.values[i if i < kernel.size else 0]
        a.stride[i] = stride.values[i if i < stride.size else 0]
        a.pad[i] = paddings.values[i if i < paddings.size else 0]
        if a.pad[i] > a.kernel[i] // 2:
            return refuse(ERR_INVALID, "%s = %lld: must be <= %s / 2 = %lld",
                          element_text(seen, context, ARG_PADDINGS, paddings, i), <wide>a.pad[i],
                          element_text(rule, context, ARG_KERNEL_SIZE, kernel, i), <wide>(a.kernel[i] // 2))
    return SUCCESS


cdef int check_shapes(const Context* context, const Tensor* self, const Tensor* out, const Attributes* a,
                      bint ceil_mode, int64_t* pooled) noexcept nogil:
    cdef char[TEXT] text
    cdef int64_t[4] expected
    cdef int64_t i
    cdef int rank = self.rank
    for i in range(2):
        # 2*pad <= kernel has been checked: pooled_size does not overflow.
        pooled[i] = pooled_size(self.dims[rank - 2 + i], a.kernel[i], a.stride[i], a.pad[i], ceil_mode)
        if pooled[i] < 1:
            return refuse(ERR_INVALID, "%s.shape = %s: is too small along %s for %s = %lld, no window fits",
                          name(context, ARG_SELF), tuple_text(text, self.dims, rank), choose(i == 0, "H", "W"),
                          name(context, ARG_KERNEL_SIZE), <wide>a.kernel[i])
    for i in range(rank - 2):
        expected[i] = self.dims[i]
    expected[rank - 2] = pooled[0]
    expected[rank - 1] = pooled[1]
    return shape_made(context, ARG_OUT, out, expected, "pooled", ARG_SELF, self)


cdef int check_divisor(const Context* context, int64_t divisor, bint absent) noexcept nogil:
    """In the C call 0 is none; in the one-call function, where None is, it would be a division by zero."""
    if divisor == 0 and not absent and context.face == ONE_CALL:
        return refuse(ERR_INVALID, "%s = 0: must not be 0; None means none", name(context, ARG_DIVISOR_OVERRIDE))
    return SUCCESS


cdef bint is_compact(const Tensor* self, const Attributes* a, const Arguments* c) noexcept nogil:
    """What Ascend910B computes by a path that has no float32."""
    cdef int64_t height = self.dims[self.rank - 2]
    cdef int64_t width = self.dims[self.rank - 1]
    if a.kernel[0] == height and a.kernel[1] == width and a.pad[0] == 0 and a.pad[1] == 0:
        return True
    return (width // height < 2 and height // width < 2 and c.numbers[0] == 0 and self.dims[self.rank - 3] < 65536
            and -255 <= c.numbers[2] <= 255 and a.kernel[0] <= 255 and a.kernel[1] <= 255
            and (a.kernel[0] * a.kernel[1] <= 255 or (a.kernel[0] <= 20 and a.kernel[1] <= 20)))


cdef int check_cube_math_type(const Context* context, const Arguments* c, const Attributes* a) noexcept nogil:
    cdef const Tensor* self = c.tensors[0]
    cdef int64_t mode = c.numbers[3]
    cdef const char* argument = name(context, ARG_CUBE_MATH_TYPE)
    if mode < 0 or mode > <int64_t>USE_HF32:
        return refuse(ERR_INVALID, "%s = %lld: must be 0 (KEEP_DTYPE), 1 (ALLOW_FP32_DOWN_PRECISION), 2 (USE_FP16) or "
                      "3 (USE_HF32)", argument, <wide>mode)
    if self.dtype != DT_FLOAT or context.product == HOST:
        return SUCCESS
    if context.product != ASCEND910B and mode not in (ALLOW_FP32_DOWN_PRECISION, USE_FP16):
        return refuse(ERR_INVALID, "%s = %lld: must be 1 (ALLOW_FP32_DOWN_PRECISION) or 2 (USE_FP16) for ACL_FLOAT "
                      "on %s; pass %s=1, or use %s", argument, <wide>mode, product_name(context.product), argument,
                      default_rules(context))
    # An empty batch succeeds first.
    if (context.product == ASCEND910B and mode in (ALLOW_FP32_DOWN_PRECISION, USE_HF32)
            and (self.rank == 3 or self.dims[0] > 0) and is_compact(self, a, c)):
        return refuse(ERR_INVALID, "%s = %lld: must be 0 (KEEP_DTYPE) or 2 (USE_FP16) for ACL_FLOAT and such an image "
                      "and kernel on %s; %s has no limit", argument, <wide>mode, product_name(context.product),
                      host_rules(context))
    return SUCCESS


cdef int64_t lay_out(AvgPool2dForwardPlan* plan, int64_t real, int64_t item) noexcept nogil:
    """Place the buffers of a unit; returns the bytes."""
    cdef const Axis* h = &plan.h
    cdef const Axis* w = &plan.w
    cdef int64_t size
    if plan.algorithm == LAST:
        size = widest_group(plan.channels, plan.group)
        plan.at_packed = round_up(w.size * size * real, ALIGNMENT)
        return plan.at_packed + (plan.band * w.out * size * item if plan.stores else 0)
    if plan.algorithm == ACROSS:
        plan.at_packed = w.size * LANES * real
        return plan.at_packed + (h.size * w.size + h.out * w.out) * LANES * item
    if plan.algorithm == WIDE or plan.algorithm == FEW or plan.algorithm == PAIRS:
        size = 0
    elif plan.algorithm == FLAT:
        plan.at_results = w.pad + plan.rows * w.size + w.kernel
        plan.at_divisors = plan.at_results + plan.rows * w.size
        size = plan.at_divisors + (0 if plan.constant_divisor else w.size)
    else:
        plan.columns = (plan.tile - 1) * w.stride + w.kernel
        plan.pitch = plan.columns // w.stride + 1
        plan.at_phases = plan.columns
        plan.at_results = plan.at_phases + (least(w.stride, plan.columns) * plan.pitch if w.stride > 1 else 0)
        plan.at_divisors = plan.at_results + most(plan.tile, plan.columns)
        size = plan.at_divisors + (0 if plan.constant_divisor else plan.tile)
    plan.at_packed = round_up(size * real, ALIGNMENT)
    plan.at_unpacked = plan.at_packed
    if plan.packs:
        plan.packed_plane = lines_apart(((plan.band - 1) * h.stride + h.kernel) * w.size * item) // item
        plan.at_unpacked += plan.group * plan.packed_plane * item
    if plan.unpacks:
        plan.unpacked_plane = lines_apart(plan.band * w.out * item) // item
        return plan.at_unpacked + plan.group * plan.unpacked_plane * item
    return plan.at_unpacked if plan.packs else size * real


cdef bint is_last(const AvgPool2dForwardPlan* plan) noexcept nogil:
    """Channels lie side by side in self, enough of them for every vector; and in out, or rows do."""
    return (plan.channels >= LANES and plan.self_strides[1] == 1
            and (plan.out_strides[1] == 1 or plan.out_strides[3] == 1) and not plan.round_half
            and most(plan.w.size, plan.w.out) <= WIDEST_LAST)


cdef bint are_joined(const AvgPool2dForwardPlan* plan) noexcept nogil:
    """The channels of all images lie as if they were those of one."""
    return (plan.self_strides[0] == plan.channels * plan.self_strides[1]
            and plan.out_strides[0] == plan.channels * plan.out_strides[1])


cdef int64_t windows_end(const Axis* axis) noexcept nogil:
    """The positions from the image's first to the last in a window: no window's length tells of those behind it."""
    return least(axis.size, (axis.out - 1) * axis.stride + axis.kernel - axis.pad)


cdef bint goes_across(const Context* context, const AvgPool2dForwardPlan* plan, int64_t images,
                      int64_t item) noexcept nogil:
    """Where vectors of a row of windows would be mostly empty, and the planes of a group of channels stay in the
    caches. What the other paths do there says what is small: the limits are where ACROSS is no slower with AVX2; half
    of that with shorter vectors, and half as much again with longer ones. It is at most 18 times as fast."""
    cdef const Axis* h = &plan.h
    cdef const Axis* w = &plan.w
    cdef int64_t channels = plan.channels * images if are_joined(plan) else plan.channels
    cdef int64_t groups = ceil_div(channels, LANES)
    cdef int64_t halves = least(context.kernels.vector_bytes // 16, 3)
    cdef int64_t size = w.size
    cdef int64_t bytes, limit
    if plan.round_half or most(h.size, h.out) > TALLEST or w.size > WIDEST_PLANE:
        return False
    bytes = (h.size * w.size + h.out * w.out) * item
    if (bytes * LANES > ACROSS_BYTES
            # Empty lanes cost as much as full ones; so do threads without a group.
            or 4 * channels < 3 * LANES * groups
            or quotient(images * plan.channels, channels) * groups
            < useful_threads(context.threads, images * plan.channels * bytes)):
        return False
    if (plan.channels > 1 and plan.self_strides[1] == 1 and plan.self_strides[3] != 1
            and w.stride > 1 and not (is_paired(plan) and plan.out_strides[3] == 1)):
        # Channels lie side by side in self, and rows would be split by their columns' phases.
        return True
    if h.out == 1 and w.out == 1:
        size *= h.size
        limit = by_item(item, 200, 140, 36)
    elif is_paired(plan):
        size = w.out
        # With longer vectors half of one serves rows of float32 from 8 windows on.
        limit = by_item(item, 9, 5, 2) if halves == 3 else by_item(item, 9, 8, 2)
    elif h.stride == 1 and w.stride == 1 and h.kernel == 1 and w.kernel == 1:
        size *= h.size
        limit = 20
    elif h.stride == 1 and w.stride == 1:
        limit = by_item(item, 27, 20, 10) if w.kernel <= 3 else by_item(item, WIDEST_PLANE, WIDEST_PLANE, 22)
    elif w.kernel < w.stride:
        # What lies between windows of a row is transposed, too.
        if w.out <= FEW_WINDOWS:
            limit = by_item(item, 48, 16, 6)
        elif w.kernel <= 3:
            limit = by_item(item, WIDEST_PLANE, WIDEST_PLANE, 48 if w.kernel == 1 else 34)
        else:
            limit = by_item(item, 56, 34, 14)
    else:
        limit = by_item(item, 56, 40, 21)
    return 2 * size <= halves * limit


cdef void choose_rows(AvgPool2dForwardPlan* plan, int64_t real, int64_t item) noexcept nogil:
    """What makes rows of windows, of one channel at a time."""
    cdef const Axis* h = &plan.h
    cdef const Axis* w = &plan.w
    cdef bint dense = plan.self_strides[3] == 1
    cdef int64_t rows = h.out
    if plan.channels > 1:
        plan.packs = (plan.self_strides[1] == 1 and not dense and not plan.round_half
                      and h.kernel * w.size * item <= PACKED_BYTES // (ALIGNMENT // item))
        plan.unpacks = (plan.out_strides[1] == 1 and plan.out_strides[3] != 1
                        and w.out * item <= PACKED_BYTES // (ALIGNMENT // item))
    if plan.unpacks:
        plan.unpacked_strides[0] = plan.out_strides[2]
        plan.unpacked_strides[1] = plan.out_strides[3]
        plan.out_strides[2] = w.out
        plan.out_strides[3] = 1
    if w.kernel > WIDEST_WINDOW or (h.out == 1 and w.out == 1 and dense and h.kernel > LONELY_TERMS // w.kernel):
        plan.algorithm = WIDE
        plan.packs = False
        plan.tile = least(w.out, MOST_COLUMNS)
    elif is_paired(plan) and (dense or plan.packs) and plan.out_strides[3] == 1 and not plan.round_half:
        plan.algorithm = PAIRS
    elif (h.stride == 1 and w.stride == 1 and w.out == w.size and h.out > 1 and w.kernel <= WIDEST_FLAT
            and (plan.packs or (dense and plan.self_strides[2] == w.size)) and not plan.round_half
            and plan.out_strides[3] == 1 and plan.out_strides[2] == w.size and w.size <= MOST_COLUMNS):
        plan.algorithm = FLAT
        plan.rows = least(h.out, most(1, FLAT_BYTES // (w.size * real)))
    elif (w.out <= FEW_WINDOWS and h.kernel <= FEW_TERMS and h.kernel * w.kernel * w.out <= FEW_TERMS
            and not plan.packs and not plan.round_half):
        plan.algorithm = FEW
    else:
        plan.algorithm = ROWS
        plan.tile = least(w.out, most(1, (MOST_COLUMNS - w.kernel) // w.stride))
    if plan.packs or plan.unpacks:
        # A line of channels, and as many rows as stay in the cache.
        plan.group = least(plan.channels, ALIGNMENT // item)
        if plan.packs:
            rows = least(rows, (PACKED_BYTES // (plan.group * w.size * item) - h.kernel) // h.stride + 1)
        if plan.unpacks:
            rows = least(rows, PACKED_BYTES // (plan.group * w.out * item))
        plan.band = most(1, rows)


cdef int64_t reads_ahead(const AvgPool2dForwardPlan* plan, int64_t item) noexcept nogil:
    """How far, in bytes, to rows that windows hold at the same place."""
    cdef int64_t step = plan.self_strides[1] * item
    if plan.algorithm != ROWS or plan.packs or plan.self_strides[3] != 1:
        return 0
    if step > SMALL_PLANE:
        step = plan.h.stride * plan.self_strides[2] * item
    return step * ceil_div(AHEAD, step) if step > 0 else 0


cdef int64_t divide_work(const Context* context, AvgPool2dForwardPlan* plan, int64_t images, int64_t real,
                         int64_t item) noexcept nogil:
    """Choose the algorithm and the units; returns the bytes of scratch. None of it changes a bit of the result."""
    cdef const Axis* h = &plan.h
    cdef const Axis* w = &plan.w
    cdef int64_t threads = context.threads
    cdef int64_t wanted
    cdef bint last = is_last(plan)
    cdef bint across = not last and goes_across(context, plan, images, item)
    plan.band = h.out
    plan.tile = w.out
    plan.group = 1
    plan.packs = plan.unpacks = plan.stores = False
    if not last and not across:
        # Parts of rows are transposed where whole planes are too large: 1 to 2.2 times the speed of rows. Where they
        # are not, parts take up to twice as long.
        plan.w.size = windows_end(w)
        across = goes_across(context, plan, images, item)
    if last:
        plan.algorithm = LAST
        plan.stores = plan.out_strides[1] != 1
        plan.group = group_channels(plan.channels, LAST_SUMS // (w.size * LANES * real), ceil_div(
            UNITS_PER_THREAD * threads, images * ceil_div(h.out, LEAST_BAND)) if threads > 1 else 1)
        plan.band = least(h.out, most(1, (STORED_BYTES if plan.stores else LAST_BYTES) // (
            least(h.stride, LAST_BYTES) * w.size * item * least(plan.channels, LAST_BYTES))))
    elif across:
        plan.algorithm = ACROSS
        if are_joined(plan):
            plan.channels *= images
        plan.group = least(plan.channels, LANES)
    else:
        choose_rows(plan, real, item)
    plan.groups = count_groups(plan.channels, plan.group) if plan.algorithm == LAST else (
        ceil_div(plan.channels, plan.group))
    plan.tiles = ceil_div(w.out, plan.tile)
    if threads > 1 and plan.algorithm != ACROSS:
        wanted = ceil_div(UNITS_PER_THREAD * threads, images * plan.groups)
        if wanted > 1:
            plan.band = least(plan.band, most(LEAST_BAND, ceil_div(h.out, wanted)))
    plan.bands = ceil_div(h.out, plan.band)
    return lay_out(plan, real, item)


cdef bint is_paired(const AvgPool2dForwardPlan* plan) noexcept nogil:
    return (is_doubled(&plan.h) and is_doubled(&plan.w) and plan.constant_divisor
            and is_power_of_two(plan.divisor))


cdef bint is_power_of_two(double divisor) noexcept nogil:
    """Then the product with the reciprocal is the quotient."""
    cdef int64_t whole = <int64_t>divisor if 0 < divisor <= 65536 else 0
    return whole > 0 and <double>whole == divisor and whole & (whole - 1) == 0


cdef int plan_forward(const Context* context, const Arguments* c, const Attributes* a, const int64_t* pooled,
                      Executor** result) noexcept nogil:
    cdef const Tensor* self = c.tensors[0]
    cdef const Tensor* out = c.tensors[1]
    cdef int64_t divisor = c.numbers[2]
    cdef Executor* executor
    cdef AvgPool2dForwardPlan* plan
    cdef int64_t item = item_size(self.dtype)
    cdef int64_t real = 8 if self.dtype == DT_DOUBLE else 4
    cdef int64_t images = self.dims[0] if self.rank == 4 else 1
    cdef int64_t planes, scratch
    cdef int rank = self.rank
    cdef int status = start_executor(context, c, sizeof(AvgPool2dForwardPlan), result)
    if status != SUCCESS:
        return status
    executor = result[0]
    plan = <AvgPool2dForwardPlan*>executor.plan
    if images == 0:
        set_work(executor, context, NULL, 0, 0, 0)
        return SUCCESS
    plain_strides(self, &plan.self_strides[4 - rank])
    plain_strides(out, &plan.out_strides[4 - rank])
    plan.source_bytes = reach_of(self)
    plan.channels = self.dims[rank - 3]
    plan.h = make_axis(self.dims[rank - 2], pooled[0], a.kernel[0], a.stride[0], a.pad[0])
    plan.w = make_axis(self.dims[rank - 1], pooled[1], a.kernel[1], a.stride[1], a.pad[1])
    lay_flat(&plan.h, &plan.w, plan.self_strides, plan.out_strides, &plan.channels, 7, 4096)
    planes = images * plan.channels
    if plan.h.out == 1:
        plan.h.stride = 1
    if plan.w.out == 1:
        plan.w.stride = 1
    plan.h.size = windows_end(&plan.h)
    plan.count_include_pad = c.numbers[1] != 0
    plan.constant_divisor = divisor != 0 or (constant_length(&plan.h, plan.count_include_pad)
                                             and constant_length(&plan.w, plan.count_include_pad))
    plan.divisor = <double>divisor
    if divisor == 0:
        plan.divisor = (<double>window_length(&plan.h, 0, plan.count_include_pad)
                        * <double>window_length(&plan.w, 0, plan.count_include_pad))
    plan.round_half = self.dtype == DT_FLOAT and context.product != HOST and (
        c.numbers[3] == USE_FP16 or context.product != ASCEND910B)
    scratch = divide_work(context, plan, images, real, item)
    if traffic(self, item) + traffic(out, item) > FAR_BYTES:
        plan.ahead = reads_ahead(plan, item)
    # out's elements are distinct and lie in a storage, so the number of units, which is no larger, does not overflow.
    set_work(executor, context,
             context.kernels.row[ACROSS_KERNEL if plan.algorithm in (ACROSS, LAST) else KERNEL][slot_of(self.dtype)],
             quotient(planes, plan.channels) * plan.groups * plan.bands * plan.tiles,
             traffic(self, item) + traffic(out, item), scratch)
    return SUCCESS


cdef int avg_pool2d(const Context* context, const Arguments* c, Executor** executor) noexcept nogil:
    """Phase 1."""
    cdef const Tensor* self = c.tensors[0]
    cdef const Tensor* out = c.tensors[1]
    cdef const IntArray* kernel_size = c.arrays[0]
    cdef const IntArray* strides = c.arrays[1]
    cdef const IntArray* paddings = c.arrays[2]
    cdef Attributes a
    cdef int64_t[2] pooled
    return (check_common(context, c)
            or check_format(context, ARG_SELF, self)
            or check_format(context, ARG_OUT, out)
            or none_below(context, ARG_KERNEL_SIZE, kernel_size, 1)
            or none_below(context, ARG_STRIDES, strides, 1)
            or none_below(context, ARG_PADDINGS, paddings, 0)
            or check_images(context, c)
            or none_zero_but_batch(context, ARG_SELF, self)
            or length_between(context, ARG_KERNEL_SIZE, kernel_size, 1, 2)
            or length_between(context, ARG_PADDINGS, paddings, 1, 2)
            or length_between(context, ARG_STRIDES, strides, 0, 2)
            or read_attributes(context, kernel_size, strides, paddings, &a)
            or check_divisor(context, c.numbers[2], c.absent & 1 << 2 != 0)
            or check_shapes(context, self, out, &a, c.numbers[0] != 0, pooled)
            or check_cube_math_type(context, c, &a)
            or addressable(context, ARG_SELF, self)
            or addressable(context, ARG_OUT, out)
            or plan_forward(context, c, &a, pooled, executor))


cdef int64_t value_of(const IntArray* array, int64_t i) noexcept nogil:
    return array.values[i if i < array.size else 0]


cdef int result(const Context* context, const Arguments* c, Tensor* results) noexcept nogil:
    """self's pooled shape."""
    cdef const Tensor* self = c.tensors[0]
    cdef const IntArray* kernel = c.arrays[0]
    cdef const IntArray* stride = c.arrays[1]
    cdef const IntArray* pad = c.arrays[2]
    cdef int64_t i, k, s, p, pooled
    if self == NULL or kernel == NULL or stride == NULL or pad == NULL:
        return NO_RESULT
    results[0] = self[0]
    if not (3 <= self.rank <= 4 and 1 <= kernel.size <= 2 and stride.size <= 2 and 1 <= pad.size <= 2):
        return SUCCESS
    for i in range(2):
        k = value_of(kernel, i)
        s = value_of(kernel if stride.size == 0 else stride, i)
        p = value_of(pad, i)
        if k > 0 and s > 0 and 0 <= p <= k // 2:
            pooled = pooled_size(self.dims[self.rank - 2 + i], k, s, p, c.numbers[0] != 0)
            if pooled > 0:
                results.dims[self.rank - 2 + i] = pooled
    return SUCCESS


cdef int64_t facts(const Executor* executor, Fact* fact) noexcept nogil:
    """What explain() tells."""
    cdef const AvgPool2dForwardPlan* plan = <const AvgPool2dForwardPlan*>executor.plan
    fact = add_pair(fact, "kernelSize", plan.h.full_kernel, plan.w.full_kernel)
    fact = add_pair(fact, "strides", plan.h.full_stride, plan.w.full_stride)
    fact = add_pair(fact, "paddings", plan.h.full_pad, plan.w.full_pad)
    add_pair(fact, "countIncludePad", plan.count_include_pad, 0)
    fact.kind = BOOL
    return 1 << plan.algorithm | (1 << PACKED if plan.packs or plan.unpacks else 0)
