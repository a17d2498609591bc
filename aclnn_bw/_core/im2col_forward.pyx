"""Im2col: what it refuses, and what it plans.

The rules follow the CANN operator (aclnnIm2col) and PyTorch's im2col; the checks run in one fixed order, and the first
that fails speaks.
"""
from libc.stdint cimport INT64_MAX, int64_t

from aclnn_bw._core.arithmetic cimport ceil_div, least, most, mul_overflows, quotient, round_up
from aclnn_bw._core.checks cimport (
    addressable, format_is_plain, none_zero_but_batch, rank_3_or_4, read_pair, same_dtype, shape_is,
)
from aclnn_bw._core.executor cimport set_work
from aclnn_bw._core.im2col cimport count_windows, has_length
from aclnn_bw._core.names cimport TEXT, choose, name, tuple_text
from aclnn_bw._core.operators cimport add_pair, check_common, start_executor
from aclnn_bw._core.status cimport refuse, wide
from aclnn_bw._core.tensor cimport item_size, plain_strides, reach_of, traffic
from aclnn_bw._core.types cimport (
    ALIGNMENT, ARG_DILATION, ARG_KERNEL_SIZE, ARG_OUT, ARG_PADDING, ARG_SELF, ARG_STRIDE, DT_BF16, DT_DOUBLE, DT_FLOAT,
    DT_FLOAT16, ERR_INVALID, FORMAT_ND, NO_RESULT, SUCCESS, Arguments, Context, Executor, Fact, IntArray, Tensor,
)

cdef extern from "operators.h":
    enum:
        KERNEL "ACLNN_BW_KERNEL_im2col_forward"
        LAST_KERNEL "ACLNN_BW_KERNEL_im2col_last"
        TABLE_KERNEL "ACLNN_BW_KERNEL_im2col_table"

cdef enum:
    UNITS_PER_THREAD = 4
    CACHED = 33554432           # bytes of both arrays: beyond, long rows are written past the caches
    LONG_ROW = 128              # bytes of a row of windows: 1.2 to 3 times as fast so, shorter ones 0.8 to 1.05 times
    LONG_MOVED = 512            # of all windows, where planes are moved as a whole
    WINDOW_BYTES = 16384        # of a window's pixels: half of an L1 cache
    MOST_WINDOW = 131072        # at most, where a line of channels takes more
    PIXEL_BYTES = 262144        # of the rows of the image that a unit makes, of one row of windows up to MOST_PACKED
    LEAST_RUN = 32              # elements gathered in one go, at stride 1: where less, PIECES takes 0.3 to 1 of it
    FEWEST_CHANNELS = 4         # side by side: fewer are put there one by one
    FAR = 1 << 30               # larger pads, dilations and kernels: places of LAST are sums of int64
    MOST_PACKED = 1048576       # bytes of the planes of a group: an L2 cache
    LEAST_TURNED = 3            # stride of the windows, and kernel positions
    FEW_WINDOWS = 16            # in a row: a table is worth it (1.1 to 7 times; `python -m benchmarks.sweep`)
    FEW_APART = 24              # where pixels lie LEAST_TURNED apart and more
    FEW_MOVED = 4               # where planes are moved as a whole
    PLANES_PER_TABLE = 4        # where it gains less
    TABLE_BYTES = 131072        # at most: half of an L2 cache of 256 KiB
    IMAGE_BYTES = 65536         # of rows that are read in no order: twice an L1 cache still gains (1.4 to 4.8 times)
    MOST_PLACES = 65535
    LEAST_BAND = 32             # windows of a table, if it is not for all
    MOST_COPIED = 2             # elements for each that is made: of more, the padding is written afterwards
    COPIED_BYTES = 48           # the same where it cannot


cdef bint is_real(int dtype) noexcept nogil:
    return dtype in (DT_FLOAT, DT_FLOAT16, DT_BF16, DT_DOUBLE)


cdef int check_conversion(const Context* context, const Tensor* self, const Tensor* out) noexcept nogil:
    """Real floating-point types become one another; anything else is copied."""
    if is_real(self.dtype) and is_real(out.dtype):
        return SUCCESS
    return same_dtype(context, ARG_OUT, out, ARG_SELF, self)


cdef bint columns_fit(int64_t channels, const int64_t* kernel, const int64_t* windows, int64_t* rows,
                      int64_t* length) noexcept nogil:
    """C*kH*kW and Lh*Lw, if int64 holds them. count_windows stops at INT64_MAX."""
    return not (windows[0] == INT64_MAX or windows[1] == INT64_MAX or mul_overflows(kernel[0], kernel[1], rows)
                or mul_overflows(rows[0], channels, rows) or mul_overflows(windows[0], windows[1], length))


cdef int check_shape(const Context* context, const Arguments* c, int64_t[2] kernel, int64_t[2] dilation,
                     int64_t[2] pad, int64_t[2] stride, int64_t* windows) noexcept nogil:
    cdef char[TEXT] text
    cdef const Tensor* self = c.tensors[0]
    cdef const Tensor* out = c.tensors[1]
    cdef int64_t[3] expected
    cdef int64_t rows = 0
    cdef int64_t i, size
    cdef int rank = self.rank
    for i in range(2):
        size = self.dims[rank - 2 + i]
        windows[i] = count_windows(size, kernel[i], dilation[i], pad[i], stride[i])
        if windows[i] == 0:
            return refuse(ERR_INVALID, "%s.shape = %s: %s = %lld is too small for %s = %lld, %s = %lld and %s = %lld, "
                          "no window fits", name(context, ARG_SELF), tuple_text(text, self.dims, rank),
                          choose(i == 0, "H", "W"), <wide>size, name(context, ARG_KERNEL_SIZE), <wide>kernel[i],
                          name(context, ARG_DILATION), <wide>dilation[i], name(context, ARG_PADDING), <wide>pad[i])
    if not columns_fit(self.dims[rank - 3], kernel, windows, &rows, &expected[rank - 2]):
        return refuse(ERR_INVALID, "%s.shape = %s: has more columns, or rows of them, than a 64-bit integer counts",
                      name(context, ARG_SELF), tuple_text(text, self.dims, rank))
    if out.rank != rank - 1:
        return refuse(ERR_INVALID, "%s.rank = %d: must be %s where %s.rank = %d", name(context, ARG_OUT), out.rank,
                      choose(rank == 3, "2 (C*kH*kW, L)", "3 (N, C*kH*kW, L)"), name(context, ARG_SELF), rank)
    expected[0] = self.dims[0]
    expected[rank - 3] = rows
    return shape_is(context, ARG_OUT, out, expected, "the columns of self, C*kH*kW of Lh*Lw each,")


cdef void set_axis(ForwardAxis* axis, int64_t size, int64_t windows, int64_t kernel, int64_t dilation, int64_t pad,
                   int64_t stride) noexcept nogil:
    axis.size = size
    axis.windows = windows
    axis.kernel = kernel
    axis.stride = stride if windows > 1 else 1
    axis.dilation = dilation
    axis.pad = pad


cdef bint goes_by_table(const Im2colForwardPlan* plan, int64_t planes, int64_t item) noexcept nogil:
    """Where rows of windows are short, `planes` being those of a thread."""
    cdef int64_t few = FEW_WINDOWS
    if plan.flat:
        few = most(FEW_MOVED, least(plan.w.kernel, 2 * FEW_MOVED))
    elif plan.algorithm == TURNED and plan.w.pad == 0:
        # The transposition is quick, unless it finds no blocks of 16 bytes; of three columns it needs none.
        if item < 8 and plan.w.windows * item >= 16 and (plan.w.kernel * item >= 16 or plan.w.kernel == LEAST_TURNED):
            return False
    elif plan.algorithm == ROWS and plan.w.stride >= LEAST_TURNED:
        few = FEW_APART
    if planes < PLANES_PER_TABLE:
        if plan.flat or plan.algorithm == TURNED and plan.w.pad == 0:
            return False
        if planes < 2:
            few //= 2
    return plan.w.windows <= few


cdef bint copies_rows(const Im2colForwardPlan* plan) noexcept nogil:
    """TABLE: whether a plane is copied first, behind the padding's zero or to be dense."""
    return (plan.h.pad > 0 or plan.w.pad > 0 or plan.plane_strides[3] != 1
            or plan.plane_strides[2] != plan.w.size)


cdef int64_t lay_out_table(Im2colForwardPlan* plan, int64_t planes, int64_t threads, int64_t item) noexcept nogil:
    """The bands of TABLE; returns the bytes of its tables and image, or 0 if they would be too small. Places are
    counted from 1 in 16 bits."""
    cdef const ForwardAxis* h = &plan.h
    cdef int64_t row = plan.h.kernel * plan.w.kernel * plan.w.windows     # no more than out has elements
    cdef int64_t rows = least(h.size, quotient(least(IMAGE_BYTES // item, MOST_PLACES), plan.w.size))
    cdef int64_t band = least(h.windows, quotient(TABLE_BYTES // 2, row))
    cdef bint near = most(most(h.pad, h.stride), most(h.dilation, h.kernel)) <= FAR
    if rows < h.size:
        if not near or span_of(h) > rows:
            return 0
        band = least(band, (rows - span_of(h)) // h.stride + 1)
    if planes < threads:
        band = least(band, most(ceil_div(h.windows, threads), ceil_div(LEAST_BAND, plan.w.windows)))
    # Of a band too few windows, channels that would be put side by side anew for each, or rows copied in vain.
    if band < h.windows and (plan.packs or band * plan.w.windows < LEAST_BAND):
        return 0
    if near:
        rows = least(rows, (band - 1) * h.stride + span_of(h))
    if copies_rows(plan):
        plan.patches = (rows * plan.w.size > MOST_COPIED * row * band and band == h.windows
                        and plan.out_strides[1] == band * plan.w.windows
                        and plan.plane_strides[3] == 1 and plan.plane_strides[2] == plan.w.size)
        # One by one they are copied as slowly as they are made.
        if not plan.patches and rows * plan.w.size > row * band * (
                COPIED_BYTES // item if plan.plane_strides[3] == 1 else 1):
            return 0
    plan.band = band
    plan.image_rows = rows
    plan.at_windows = plan.at_table + round_up(row * band * 2, ALIGNMENT)
    plan.at_image = plan.at_windows + round_up((1 + plan.w.kernel) * plan.w.windows * band * 2, ALIGNMENT)
    return plan.at_image - plan.at_table + (row * band * 2 if plan.patches
                                            else (rows * plan.w.size + 1) * most(item, 2))


cdef bint has_lines(const Im2colForwardPlan* plan, int64_t line) noexcept nogil:
    """Whether LAST can be: `line` bytes are the least that it takes of a pixel."""
    cdef const ForwardAxis* h = &plan.h
    cdef const ForwardAxis* w = &plan.w
    if plan.converts or plan.out_strides[1] != 1 or plan.out_strides[2] == 1 or plan.channels < FEWEST_CHANNELS:
        return False
    if most(most(h.pad, w.pad), most(most(h.dilation, w.dilation), most(h.kernel, w.kernel))) > FAR:
        return False
    if h.kernel * w.kernel > MOST_WINDOW // line:
        return False
    return plan.self_strides[1] == 1 or (plan.self_strides[3] == 1
                                         and least(span_of(h), h.size) <= MOST_PACKED // (w.size * line))


cdef int64_t lay_out_last(Im2colForwardPlan* plan, int64_t item) noexcept nogil:
    """The groups and bands of LAST; returns the bytes of scratch, 0 where its pixels take longer than they save."""
    cdef const ForwardAxis* h = &plan.h
    cdef int64_t line = least(plan.channels, ALIGNMENT // item)
    cdef int64_t column = plan.w.size * item
    cdef int64_t positions = h.kernel * plan.w.kernel
    cdef int64_t span = span_of(h)
    cdef int64_t group = WINDOW_BYTES // (positions * item)
    cdef int64_t band = h.windows
    cdef int64_t rows = 0
    # Rows of one kernel position are transposed straight to out.
    cdef bint made = plan.self_strides[1] != 1 and (positions > 1 or plan.w.stride > 1)
    cdef int64_t run = least(plan.channels, LEAST_RUN) * (plan.w.kernel if plan.w.dilation == 1 else 1)
    if made:
        if run * least(plan.w.stride, LEAST_RUN) < LEAST_RUN:
            return 0
        group = least(group, PIXEL_BYTES // (column * least(h.size, 4 * span)))
    group = least(plan.channels, most(1, group // line) * line)
    if made:
        band = least(h.windows, most(0, PIXEL_BYTES // (column * group) - span) // h.stride + 1)
        rows = least(h.size, (band - 1) * h.stride + span)
        # Pixels would be made in vain, or anew for each band.
        if rows * plan.w.size > band * plan.w.windows * positions:
            return 0
        plan.plane_strides[1] = 1
        plan.plane_strides[2] = group * plan.w.size
        plan.plane_strides[3] = group
    plan.algorithm = LAST
    plan.made = made
    plan.group = group
    plan.band = band
    plan.at_pixels = round_up(group * positions * item, ALIGNMENT)
    return plan.at_pixels + rows * column * group


cdef int64_t lay_out_planes(Im2colForwardPlan* plan, int64_t planes, int64_t threads, int64_t item,
                            int64_t moved) noexcept nogil:
    """The algorithm and groups of the others; returns the bytes of scratch."""
    cdef const ForwardAxis* h = &plan.h
    cdef const ForwardAxis* w = &plan.w
    cdef int64_t plane = h.size * w.size * item
    cdef int64_t windows = h.windows * w.windows
    cdef int64_t bytes
    plan.band = h.windows
    plan.packs = (plan.channels > 1 and plan.self_strides[1] == 1 and plan.self_strides[3] != 1
                  and plane <= MOST_PACKED and item > 1)
    if plan.packs:
        # A line of channels.
        plan.group = least(plan.channels, most(1, least(ALIGNMENT // item, MOST_PACKED // plane)))
        plan.plane_strides[1] = h.size * w.size
        plan.plane_strides[2] = w.size
        plan.plane_strides[3] = 1
    elif plan.out_strides[2] != 1 and plan.out_strides[1] == 1:
        # Their columns lie side by side in out.
        plan.group = least(plan.channels, ceil_div(TILE_BYTES // plan.out_item, h.kernel * w.kernel))
    plan.flat = (plan.plane_strides[3] == 1 and plan.plane_strides[2] == w.size and h.stride == 1 and w.stride == 1
                 and w.windows == w.size)
    plan.algorithm = ROWS
    if plan.converts or plan.out_strides[2] != 1:
        plan.algorithm = PIECES
    elif (w.stride >= LEAST_TURNED and w.kernel >= LEAST_TURNED and w.dilation == 1 and plan.plane_strides[3] == 1
            and item > 1):
        plan.algorithm = TURNED
    plan.at_table = round_up(plan.group * plane, ALIGNMENT) if plan.packs else 0
    bytes = plan.at_table
    if plan.algorithm != PIECES and goes_by_table(plan, planes // threads, item):
        bytes += lay_out_table(plan, planes, threads, item)
        if bytes > plan.at_table:
            plan.algorithm = TABLE
    plan.far = moved > CACHED
    plan.streams = (plan.far and plan.algorithm == ROWS and plan.out_strides[1] == windows
                    and (windows >= LONG_MOVED // item if plan.flat else w.windows >= LONG_ROW // item))
    return bytes


cdef int64_t divide_work(Im2colForwardPlan* plan, int64_t images, int64_t threads, int64_t item,
                         int64_t moved) noexcept nogil:
    """Choose the algorithm and the units; returns the bytes of scratch."""
    cdef int64_t bytes = 0
    cdef int64_t units, i
    for i in range(4):
        plan.plane_strides[i] = plan.self_strides[i]
    plan.group = 1
    if has_lines(plan, least(plan.channels * item, ALIGNMENT)):
        bytes = lay_out_last(plan, item)
    if bytes == 0:
        bytes = lay_out_planes(plan, images * plan.channels, threads, item, moved)
    plan.groups = ceil_div(plan.channels, plan.group)
    units = images * plan.groups
    if threads > 1 and units < UNITS_PER_THREAD * threads and not plan.packs and plan.algorithm != TABLE:
        plan.band = least(plan.band, ceil_div(plan.h.windows, ceil_div(UNITS_PER_THREAD * threads, units)))
    plan.bands = ceil_div(plan.h.windows, plan.band)
    plan.band *= plan.w.windows
    return bytes


cdef int plan_forward(const Context* context, const Arguments* c, int64_t[2] kernel, int64_t[2] dilation,
                      int64_t[2] pad, int64_t[2] stride, const int64_t* windows, Executor** result) noexcept nogil:
    cdef const Tensor* self = c.tensors[0]
    cdef const Tensor* out = c.tensors[1]
    cdef Executor* executor
    cdef Im2colForwardPlan* plan
    cdef int64_t* caller
    cdef int64_t item = item_size(self.dtype)
    cdef int64_t images = self.dims[0] if self.rank == 4 else 1
    cdef int64_t bytes, scratch, slot
    cdef int rank = self.rank
    cdef int kernels = KERNEL
    cdef int i
    cdef int64_t size = <int64_t>(sizeof(Im2colForwardPlan) + 2 * sizeof(int64_t))
    cdef int status = start_executor(context, c, size, result)
    if status != SUCCESS:
        return status
    executor = result[0]
    plan = <Im2colForwardPlan*>executor.plan
    if images == 0:
        set_work(executor, context, NULL, 0, 0, 0)
        return SUCCESS
    caller = <int64_t*>(plan + 1)
    for i in range(2):
        caller[i] = stride[i]
    plain_strides(self, &plan.self_strides[4 - rank])
    plain_strides(out, &plan.out_strides[4 - rank])
    plan.source_bytes = reach_of(self)
    plan.images = images
    plan.channels = self.dims[rank - 3]
    plan.self_dtype = self.dtype
    plan.out_dtype = out.dtype
    plan.out_item = item_size(out.dtype)
    plan.converts = self.dtype != out.dtype
    set_axis(&plan.h, self.dims[rank - 2], windows[0], kernel[0], dilation[0], pad[0], stride[0])
    set_axis(&plan.w, self.dims[rank - 1], windows[1], kernel[1], dilation[1], pad[1], stride[1])
    bytes = traffic(self, item) + traffic(out, plan.out_item)
    scratch = divide_work(plan, images, context.threads, item, bytes)
    plan.streams = plan.streams and not context.fresh      # goes_past
    if plan.algorithm == LAST:
        kernels = LAST_KERNEL
    elif plan.algorithm == TABLE:
        kernels = TABLE_KERNEL
    slot = 0
    while <int64_t>1 << slot < item:
        slot += 1
    # out's elements are distinct and lie in a storage, so the number of units, which is no larger, does not overflow.
    set_work(executor, context, context.kernels.row[kernels][slot], images * plan.groups * plan.bands, bytes, scratch)
    return SUCCESS


cdef int im2col(const Context* context, const Arguments* c, Executor** executor) noexcept nogil:
    """Phase 1."""
    cdef const Tensor* self = c.tensors[0]
    cdef const Tensor* out = c.tensors[1]
    cdef const IntArray* kernel_size = c.arrays[0]
    cdef const IntArray* dilations = c.arrays[1]
    cdef const IntArray* padding = c.arrays[2]
    cdef const IntArray* strides = c.arrays[3]
    cdef int64_t[2] kernel
    cdef int64_t[2] dilation
    cdef int64_t[2] pad
    cdef int64_t[2] stride
    cdef int64_t[2] windows
    return (check_common(context, c)
            or check_conversion(context, self, out)
            or format_is_plain(context, ARG_SELF, self)
            or format_is_plain(context, ARG_OUT, out)
            or rank_3_or_4(context, ARG_SELF, self)
            or none_zero_but_batch(context, ARG_SELF, self)
            or has_length(context, ARG_KERNEL_SIZE, kernel_size)
            or has_length(context, ARG_DILATION, dilations)
            or has_length(context, ARG_PADDING, padding)
            or has_length(context, ARG_STRIDE, strides)
            or read_pair(context, ARG_KERNEL_SIZE, kernel_size, 1, kernel)
            or read_pair(context, ARG_STRIDE, strides, 1, stride)
            or read_pair(context, ARG_DILATION, dilations, 1, dilation)
            or read_pair(context, ARG_PADDING, padding, 0, pad)
            or check_shape(context, c, kernel, dilation, pad, stride, windows)
            or addressable(context, ARG_SELF, self)
            or addressable(context, ARG_OUT, out)
            or plan_forward(context, c, kernel, dilation, pad, stride, windows, executor))


cdef int64_t value_of(const IntArray* array, int64_t i) noexcept nogil:
    """Of axis i; 0 where there is none."""
    return array.values[i if i < array.size else 0] if 1 <= array.size <= 2 else 0


cdef int result(const Context* context, const Arguments* c, Tensor* results) noexcept nogil:
    """self's columns; any small shape where there are none."""
    cdef const Tensor* self = c.tensors[0]
    cdef int64_t[2] windows
    cdef int64_t[2] kernel
    cdef int64_t rows = 0
    cdef int64_t length = 0
    cdef int64_t i, dilation, pad, stride
    cdef int rank
    cdef bint good
    for i in range(4):
        if c.arrays[i] == NULL:
            return NO_RESULT
    if self == NULL:
        return NO_RESULT
    rank = self.rank
    good = rank == 3 or rank == 4
    for i in range(2 if good else 0):
        kernel[i] = value_of(c.arrays[0], i)
        dilation = value_of(c.arrays[1], i)
        pad = value_of(c.arrays[2], i)
        stride = value_of(c.arrays[3], i)
        good = good and kernel[i] > 0 and dilation > 0 and pad >= 0 and stride > 0
        windows[i] = count_windows(self.dims[rank - 2 + i], kernel[i], dilation, pad, stride) if good else 0
    good = good and columns_fit(self.dims[rank - 3], kernel, windows, &rows, &length)
    results.rank = rank - 1 if rank == 3 or rank == 4 else 2
    results.dtype = self.dtype
    results.format = FORMAT_ND
    results.dims[0] = self.dims[0] if rank == 4 else 1
    results.dims[results.rank - 2] = rows if good else 1
    results.dims[results.rank - 1] = length if good else 1
    return SUCCESS


cdef int64_t facts(const Executor* executor, Fact* fact) noexcept nogil:
    """What explain() tells."""
    cdef const Im2colForwardPlan* plan = <const Im2colForwardPlan*>executor.plan
    cdef const int64_t* stride = <const int64_t*>(plan + 1)
    fact = add_pair(fact, "kernelSize", plan.h.kernel, plan.w.kernel)
    fact = add_pair(fact, "dilation", plan.h.dilation, plan.w.dilation)
    fact = add_pair(fact, "padding", plan.h.pad, plan.w.pad)
    add_pair(fact, "stride", stride[0], stride[1])
    return 1 << plan.algorithm | (1 << PACKED if plan.packs else 0)
