"""ReplicationPad2d and ReplicationPad2dBackward: what they refuse, and what they plan.

The rules follow the CANN operators (aclnnReplicationPad2d and its Backward) and PyTorch's replication_pad2d, whose
negative pads crop; the checks run in one fixed order, and the first that fails speaks.
"""
from libc.stdint cimport int64_t

from aclnn_bw._core.arithmetic cimport add_overflows, ceil_div, least, most, stretch
from aclnn_bw._core.checks cimport (
    addressable, format_is_plain, length_between, none_zero_but_batch, shape_is, shape_made, slot_of,
)
from aclnn_bw._core.executor cimport goes_past, set_work
from aclnn_bw._core.names cimport (
    TEXT, choose, element_text, format_name, host_rules, name, product_name, snprintf, tuple_text,
)
from aclnn_bw._core.operators cimport (
    add_pair, check_common, check_dtypes, check_images, check_nulls, check_same_formats, start_executor,
)
from aclnn_bw._core.status cimport refuse, wide
from aclnn_bw._core.tensor cimport item_size, plain_strides, reach_of, traffic
from aclnn_bw._core.types cimport (
    ALIGNMENT, ARG_GRAD_INPUT, ARG_GRAD_OUTPUT, ARG_OUT, ARG_PADDING, ARG_SELF, ASCEND910B, DT_BF16, DT_COMPLEX128,
    DT_COMPLEX64, DT_FLOAT, ERR_INVALID, FORMAT_UNDEFINED, HOST, LEAST_STRETCH, MAX_RANK, NO_RESULT, ONE_CALL,
    STRIP, SUCCESS, Arguments, Context, Executor, Fact, IntArray, RangeFn, Tensor,
)

cdef extern from "operators.h":
    enum:
        KERNEL "ACLNN_BW_KERNEL_replication_pad2d"
        FORWARD_KERNEL "ACLNN_BW_KERNEL_replication_pad2d_forward"

cdef enum:
    BFLOAT_PAD_LIMIT = 7        # of Ascend910B, where rows are padded
    UNITS_PER_THREAD = 4        # fewer whole planes than this leave threads unevenly loaded: split them
    LEAST_BAND = 8              # rows
    LEAST_TILE = 512            # columns
    CACHED = 33554432           # bytes of both arrays: more are written past the caches
    LEAST_STREAMED = 512        # bytes of a row: those of fewer are written through them
    LONG_ROW = 4096             # the same in the forward, whose rows begin in the middle of a line
    MIDDLE_ROW = 640            # bytes: of fewer, strips go past the caches: 0.45 to 0.9 of the time, else to 1.15
    LEAST_PLANE = 512           # bytes: smaller ones take longer to begin (1.1 to 1.25 of the time),
    LEAST_PADDED = 64           # in the forward
    UNIT = 131072               # bytes of gradOutput that are packed at a time
    MOST_PACKED = 1048576       # bytes: a unit with more, because of its pads, is not packed
    LINES = 4                   # cache lines of a pixel that are packed side by side
    PACKED_STRIP = 32768        # bytes of rows of the forward's PACKED that are made in the scratch at a time,
    CHANNEL_STRIP = 1024        # and of one channel's
    UNPACKED_BYTES = 256        # of a group of channels of the forward's UNPACKED
    SMALL_PLANE = 16384         # bytes: such planes are taken together where one side of them is not padded

cdef enum:
    LEFT
    RIGHT
    TOP
    BOTTOM
    PADS


cdef int check_format(const Context* context, int argument, const Tensor* tensor) noexcept nogil:
    if tensor.format == FORMAT_UNDEFINED:
        return refuse(ERR_INVALID, "%s.format = %s: must be defined; pass ACL_FORMAT_NCHW or ACL_FORMAT_ND",
                      name(context, argument), format_name(tensor.format))
    return format_is_plain(context, argument, tensor)


cdef int read_padding(const Context* context, const IntArray* padding, int64_t* pads) noexcept nogil:
    """[left, right, top, bottom]; in the one-call function a bare int is all four."""
    cdef int64_t i
    cdef int status
    if context.face == ONE_CALL and padding.scalar:
        for i in range(PADS):
            pads[i] = padding.values[0]
        return SUCCESS
    status = length_between(context, ARG_PADDING, padding, PADS, PADS)
    if status == SUCCESS:
        for i in range(PADS):
            pads[i] = padding.values[i]
    return status


cdef int check_values(const Context* context, const IntArray* padding, const int64_t* pads, int dtype) noexcept nogil:
    """What the products ask of the pads alone."""
    cdef char[TEXT] text
    cdef int64_t i
    if context.product == HOST:
        return SUCCESS
    for i in range(PADS):
        if pads[i] < 0:
            return refuse(ERR_INVALID, "%s = %lld: must be >= 0 on %s; with %s a negative pad crops",
                          element_text(text, context, ARG_PADDING, padding, i), <wide>pads[i],
                          product_name(context.product), host_rules(context))
    if dtype == DT_BF16 and context.product == ASCEND910B and (pads[<int>TOP] != 0 or pads[<int>BOTTOM] != 0):
        for i in range(PADS):
            if pads[i] > BFLOAT_PAD_LIMIT:
                return refuse(ERR_INVALID, "%s = %lld: must be <= %d for ACL_BF16 on %s unless top and bottom are 0; "
                              "%s has no limit", element_text(text, context, ARG_PADDING, padding, i), <wide>pads[i],
                              BFLOAT_PAD_LIMIT, product_name(context.product), host_rules(context))
    return SUCCESS


cdef const char* pads_text(char* text, const IntArray* padding, const int64_t* pads) noexcept nogil:
    """The pads as the caller wrote them."""
    if not padding.scalar:
        return tuple_text(text, pads, PADS)
    snprintf(text, TEXT, "%lld", <wide>pads[0])
    return text


cdef int padded_size(const Context* context, const Tensor* self, const IntArray* padding, const int64_t* pads,
                     int64_t axis, int64_t* padded) noexcept nogil:
    """gradOutput's size along axis 0 (H) or 1 (W). Two pads of which one is negative do not overflow, whatever they
    are; where the sum does overflow, no tensor has such a size."""
    cdef char[TEXT] seen
    cdef char[TEXT] shape
    cdef int64_t size = self.dims[self.rank - 2 + axis]
    cdef const int64_t* pair = pads + (TOP if axis == 0 else LEFT)
    cdef int64_t both = 0
    if add_overflows(pair[0], pair[1], &both) or add_overflows(both, size, padded) or padded[0] < 1:
        return refuse(ERR_INVALID, "%s = %s: must leave a padded %s >= 1 and below 2**63 of self.shape = %s",
                      name(context, ARG_PADDING), pads_text(seen, padding, pads), choose(axis == 0, "height", "width"),
                      tuple_text(shape, self.dims, self.rank))
    return SUCCESS


cdef int check_sizes(const Context* context, const Tensor* self, const IntArray* padding,
                     const int64_t* pads) noexcept nogil:
    """What the products ask of the pads and the image."""
    cdef char[TEXT] text
    cdef int64_t i, size
    for i in range(PADS if context.product != HOST else 0):
        size = self.dims[self.rank - 1 if i < TOP else self.rank - 2]
        if pads[i] >= size:
            return refuse(ERR_INVALID, "%s = %lld: must be < %s = %lld of self on %s; %s has no limit",
                          element_text(text, context, ARG_PADDING, padding, i), <wide>pads[i],
                          choose(i < TOP, "W", "H"), <wide>size, product_name(context.product), host_rules(context))
    return SUCCESS


cdef int check_shapes(const Context* context, const Tensor* grad_output, const Tensor* self, const Tensor* grad_input,
                      const IntArray* padding, const int64_t* pads) noexcept nogil:
    cdef int64_t[4] expected
    cdef int64_t i
    cdef int rank = self.rank
    cdef int status = none_zero_but_batch(context, ARG_SELF, self) or check_sizes(context, self, padding, pads)
    if status != SUCCESS:
        return status
    for i in range(rank - 2):
        expected[i] = self.dims[i]
    return (padded_size(context, self, padding, pads, 0, &expected[rank - 2])
            or padded_size(context, self, padding, pads, 1, &expected[rank - 1])
            or shape_is(context, ARG_GRAD_INPUT, grad_input, self.dims, "self.shape")
            or shape_made(context, ARG_GRAD_OUTPUT, grad_output, expected, "padded", ARG_SELF, self))


cdef Axis make_axis(int64_t size, int64_t out, int64_t pad) noexcept nogil:
    """clamp(q - pad, 0, size - 1) == i, solved for q. Each comparison is arranged so that no pad makes it overflow:
    size and out alone are known to be of ordinary size."""
    cdef Axis axis
    axis.size = size
    axis.out = out
    axis.shift = pad
    # 0 <= i + pad < out
    axis.begin = 0 if pad >= 0 else (size if pad <= -size else -pad)
    axis.end = size if pad <= out - size else (0 if pad >= out else out - pad)
    if size == 1 and out > 1:
        axis.end = 0
    if axis.begin >= axis.end:
        axis.begin = axis.end = axis.shift = 0
    # q - pad <= 0 and, elsewhere, q - pad >= size - 1
    axis.head = 0 if pad < 0 else (out if pad >= out else pad + 1)
    axis.tail = 0
    if size == 1:
        axis.head = out
    elif pad <= 1 - size:
        axis.tail = out
    elif pad < out - (size - 1):
        axis.tail = out - (size - 1 + pad)
    # A sum of one term is what [begin, end) says anyway, unless the term comes from elsewhere.
    if axis.head == 1 and axis.begin == 0 and axis.end > 0:
        axis.head = 0
    if axis.tail == 1 and axis.begin < axis.end and axis.end == size:
        axis.tail = 0
    return axis


cdef int64_t join_planes(ReplicationPad2dPlan* plan, int64_t planes) noexcept nogil:
    """Where only columns are padded and the planes follow one another, their rows are those of one tall plane. Returns
    the number of planes left."""
    cdef Axis* h = &plan.h
    cdef int64_t* g = plan.grad_output_strides
    cdef int64_t* x = plan.grad_input_strides
    if (h.head == 0 and h.tail == 0 and h.shift == 0 and h.end == h.size and h.out == h.size
            and g[1] == h.size * g[2] and x[1] == h.size * x[2]
            and g[0] == plan.channels * g[1] and x[0] == plan.channels * x[1]):
        h.size *= planes
        h.out = h.end = h.size
        plan.channels = 1
        return 1
    return planes


cdef void divide_work(ReplicationPad2dPlan* plan, int64_t planes, int64_t threads) noexcept nogil:
    """Few planes: split them into bands of rows or, where most rows of gradOutput go to two rows of gradInput or there
    are not enough rows, into tiles of columns. It does not change a bit of the result."""
    cdef Axis* h = &plan.h
    cdef Axis* w = &plan.w
    cdef int64_t wanted = ceil_div(UNITS_PER_THREAD * threads, planes)
    plan.band = h.size
    plan.tile = w.size
    if threads > 1 and wanted > 1:
        if h.head + h.tail <= h.size:
            plan.band = least(h.size, most(LEAST_BAND, ceil_div(h.size, wanted)))
            wanted = ceil_div(wanted, ceil_div(h.size, plan.band))
        plan.tile = least(w.size, most(LEAST_TILE, ceil_div(w.size, wanted)))
    plan.bands = ceil_div(h.size, plan.band)
    plan.tiles = ceil_div(w.size, plan.tile)


cdef inline bint side_by_side(const ReplicationPad2dPlan* plan, const int64_t* strides) noexcept nogil:
    return plan.channels > 1 and strides[1] == 1 and strides[3] != 1


cdef void divide_groups(ReplicationPad2dPlan* plan, int64_t images, int64_t cell, int64_t threads) noexcept nogil:
    """divide_work for PACKED and UNPACKED: whole cache lines of channels, some at a time, which leave few gaps in what
    is read or written. With one the planes of the scratch would stay in the L1 cache: 0.6 to 1.02 of the speed."""
    cdef Axis* h = &plan.h
    cdef Axis* w = &plan.w
    cdef int64_t line, pixels, columns, rows
    plan.group = least(plan.channels, most(1, LINES * ALIGNMENT // cell))
    plan.groups = ceil_div(plan.channels, plan.group)
    line = plan.group * cell
    plan.tile = least(w.size, most(LEAST_TILE, UNIT // line // LEAST_BAND))
    plan.band = least(h.size, most(1, UNIT // line // plan.tile))
    if threads > 1:
        rows = ceil_div(h.size, ceil_div(UNITS_PER_THREAD * threads, images * plan.groups))
        plan.band = least(plan.band, most(LEAST_BAND, rows))
    plan.bands = ceil_div(h.size, plan.band)
    plan.tiles = ceil_div(w.size, plan.tile)
    # Sizes are cut before they are multiplied: those of a broadcast gradOutput may be anything.
    pixels = MOST_PACKED // line
    columns = least(pixels, least(w.out, plan.tile + least(pixels, w.head) + least(pixels, w.tail)))
    rows = least(pixels, least(h.out, plan.band + least(pixels, h.head) + least(pixels, h.tail)))
    plan.packed = plan.group * packed_plane(least(pixels, columns * rows), cell)


cdef int plan_backward(const Context* context, const Arguments* c, const int64_t* pads,
                       Executor** result) noexcept nogil:
    cdef const Tensor* grad_output = c.tensors[0]
    cdef const Tensor* self = c.tensors[1]
    cdef const Tensor* grad_input = c.tensors[2]
    cdef Executor* executor
    cdef ReplicationPad2dPlan* plan
    cdef RangeFn kernel
    cdef int64_t item = item_size(grad_output.dtype)
    cdef int64_t planes, bytes
    cdef int64_t strip = 0
    cdef int rank = self.rank
    cdef int i
    cdef int64_t size = <int64_t>(sizeof(ReplicationPad2dPlan) + PADS * sizeof(int64_t))
    cdef int status = start_executor(context, c, size, result)
    if status != SUCCESS:
        return status
    executor = result[0]
    plan = <ReplicationPad2dPlan*>executor.plan
    plan.channels = self.dims[rank - 3]
    planes = (self.dims[0] if rank == 4 else 1) * plan.channels
    if planes == 0:
        # The sizes of an empty tensor may be anything, so no geometry is made of them.
        set_work(executor, context, NULL, 0, 0, 0)
        return SUCCESS
    plain_strides(grad_output, &plan.grad_output_strides[4 - rank])
    plain_strides(grad_input, &plan.grad_input_strides[4 - rank])
    plan.source_bytes = reach_of(grad_output)
    if rank == 3:
        # An image is a batch of one: its planes may be joined as those of a batch are.
        plan.grad_output_strides[0] = plan.channels * plan.grad_output_strides[1]
        plan.grad_input_strides[0] = plan.channels * plan.grad_input_strides[1]
    plan.parts = 2 if grad_output.dtype == DT_COMPLEX64 or grad_output.dtype == DT_COMPLEX128 else 1
    for i in range(PADS):
        (<int64_t*>(plan + 1))[i] = pads[i]
    plan.h = make_axis(self.dims[rank - 2], grad_output.dims[rank - 2], pads[<int>TOP])
    plan.w = make_axis(self.dims[rank - 1], grad_output.dims[rank - 1], pads[<int>LEFT])
    bytes = traffic(grad_output, item) + traffic(grad_input, item)
    plan.streamed = (bytes > CACHED and plan.grad_input_strides[3] == 1
                     and plan.w.size >= ceil_div(LEAST_STREAMED, item))
    if side_by_side(plan, plan.grad_output_strides):
        plan.layout = PIXELS if side_by_side(plan, plan.grad_input_strides) else PACKED
        planes = self.dims[0] if rank == 4 else 1
    elif side_by_side(plan, plan.grad_input_strides) and plan.grad_output_strides[3] == 1:
        plan.layout = UNPACKED
        planes = self.dims[0] if rank == 4 else 1
    if plan.layout == PACKED or plan.layout == UNPACKED:
        divide_groups(plan, planes, item, context.threads)
        planes *= plan.groups
    else:
        if plan.layout == PLANES:
            planes = join_planes(plan, planes)
        divide_work(plan, planes, context.threads)
    if (bytes > context.kernels.streamed_bytes and (plan.layout == PLANES or plan.layout == PACKED)
            and plan.tiles == 1 and plan.grad_input_strides[3] == 1 and plan.grad_input_strides[2] == plan.w.size
            and plan.w.size < MIDDLE_ROW // item
            and plan.h.size * plan.w.size >= LEAST_PLANE // item
            and stretch(plan.grad_input_strides, plan.h.size * plan.w.size, plan.channels) >= LEAST_STRETCH // item):
        plan.strip = most(1, STRIP // (plan.w.size * item))
        plan.streamed = False
        strip = plan.strip * plan.w.size * item + 2 * ALIGNMENT
    kernel = context.kernels.row[KERNEL][slot_of(grad_output.dtype)]
    # gradInput's elements are distinct and lie in a storage, so the number of units, which is no larger, does not
    # overflow.
    set_work(executor, context, kernel, planes * plan.bands * plan.tiles, bytes, plan.packed + strip)
    return SUCCESS


cdef int replication_pad2d_backward(const Context* context, const Arguments* c, Executor** executor) noexcept nogil:
    """Phase 1."""
    cdef const Tensor* grad_output = c.tensors[0]
    cdef const Tensor* self = c.tensors[1]
    cdef const Tensor* grad_input = c.tensors[2]
    cdef const IntArray* padding = c.arrays[0]
    cdef int64_t[PADS] pads
    return (check_common(context, c)
            or check_images(context, c)
            or check_format(context, ARG_GRAD_OUTPUT, grad_output)
            or check_same_formats(context, c)
            or read_padding(context, padding, pads)
            or check_values(context, padding, pads, grad_output.dtype)
            or check_shapes(context, grad_output, self, grad_input, padding, pads)
            or addressable(context, ARG_GRAD_OUTPUT, grad_output)
            or addressable(context, ARG_GRAD_INPUT, grad_input)
            or plan_backward(context, c, pads, executor))


cdef int64_t add_pads(Fact* fact, const int64_t* pads, int layout) noexcept nogil:
    """What explain() tells."""
    cdef int i
    add_pair(fact, "padding", 0, 0)
    fact.count = PADS
    for i in range(PADS):
        fact.values[i] = pads[i]
    return 1 << layout


cdef int64_t facts(const Executor* executor, Fact* fact) noexcept nogil:
    cdef const ReplicationPad2dPlan* plan = <const ReplicationPad2dPlan*>executor.plan
    return add_pads(fact, <const int64_t*>(plan + 1), plan.layout)


# --- the forward -----------------------------------------------------------------------------------------------------


cdef int check_forward(const Context* context, const Tensor* self, const Tensor* out, const IntArray* padding,
                       const int64_t* pads) noexcept nogil:
    cdef int64_t[4] expected
    cdef int64_t i
    cdef int rank = self.rank
    for i in range(rank - 2):
        expected[i] = self.dims[i]
    return (check_sizes(context, self, padding, pads)
            or padded_size(context, self, padding, pads, 0, &expected[rank - 2])
            or padded_size(context, self, padding, pads, 1, &expected[rank - 1])
            or shape_made(context, ARG_OUT, out, expected, "padded", ARG_SELF, self)
            or none_zero_but_batch(context, ARG_SELF, self))


cdef CopiedAxis copied_axis(int64_t size, int64_t out, int64_t pad) noexcept nogil:
    """o - pad < 0 and o - pad > size - 1, solved for o; arranged so that no pad makes it overflow."""
    cdef CopiedAxis axis
    axis.out = out
    axis.last = size - 1
    axis.before = least(most(pad, 0), out)
    axis.first = 0 if pad >= 0 else least(-(pad + 1), size) + 1     # -pad may not be a number
    axis.between = least(out - axis.before, most(size - axis.first, 0))
    axis.after = out - axis.before - axis.between
    return axis


cdef void lay_out_packed(ReplicationPad2dForwardPlan* plan, bint past) noexcept nogil:
    """Strips of rows, and bands of which the groups of channels share memory pages. Rows that do not follow each other
    are made one at a time."""
    cdef int64_t row = plan.w.out * plan.item
    plan.streamed = past and plan.out_strides[3] == plan.item
    plan.strip = 1
    if plan.out_strides[3] == plan.item and plan.out_strides[2] == row:
        plan.strip = least(plan.h.out, most(1, least(CHANNEL_STRIP // row, PACKED_STRIP // (row * plan.group))))
    plan.pitch = packed_plane(plan.strip * plan.w.out, plan.item)
    # A band makes a source row once, however many rows copy it.
    plan.band = plan.h.out
    if plan.h.before + plan.h.after < plan.h.between:
        plan.band = least(plan.h.out, most(1, UNIT // (row * plan.group * plan.strip)) * plan.strip)


cdef bint is_copied(const CopiedAxis* axis) noexcept nogil:
    """Whether nothing is padded or cropped."""
    return axis.before == 0 and axis.first == 0 and axis.out == axis.last + 1


cdef int64_t take_together(ReplicationPad2dForwardPlan* plan, int64_t images, bint in_caches) noexcept nogil:
    """Small planes end to end: of padded rows one tall plane, of padded columns rows whose pixels are a plane's rows. A
    unit of a plane takes 1.3 to 3 times as long. Returns how many images are left."""
    cdef int64_t rows = plan.h.last + 1
    cdef int64_t planes = plan.channels
    cdef int64_t left = images
    cdef int64_t row = plan.w.out * plan.item
    if (plan.self_strides[0] == planes * plan.self_strides[1]
            and plan.out_strides[0] == planes * plan.out_strides[1]):
        planes *= images
        left = 1
    if is_copied(&plan.w):
        if in_caches and plan.self_strides[2] == row and plan.out_strides[2] == row:
            plan.layout = PIXELS
            plan.cell = row
            plan.w = plan.h
            plan.h = copied_axis(planes, planes, 0)
            plan.self_strides[3] = plan.out_strides[3] = row
            plan.self_strides[2] = plan.self_strides[1]
            plan.out_strides[2] = plan.out_strides[1]
            plan.channels = 1
            return left
    elif (is_copied(&plan.h) and plan.self_strides[1] == rows * plan.self_strides[2]
            and plan.out_strides[1] == rows * plan.out_strides[2]):
        plan.h = copied_axis(planes * rows, planes * rows, 0)
        plan.channels = 1
        return left
    return images


cdef int plan_forward(const Context* context, const Arguments* c, const int64_t* pads,
                      Executor** result) noexcept nogil:
    cdef const Tensor* self = c.tensors[0]
    cdef const Tensor* out = c.tensors[1]
    cdef Executor* executor
    cdef ReplicationPad2dForwardPlan* plan
    cdef int64_t item = item_size(self.dtype)
    cdef int64_t planes, bytes, width, slot
    cdef int rank = self.rank
    cdef int i
    cdef int64_t size = <int64_t>(sizeof(ReplicationPad2dForwardPlan) + PADS * sizeof(int64_t))
    cdef int status = start_executor(context, c, size, result)
    if status != SUCCESS:
        return status
    executor = result[0]
    plan = <ReplicationPad2dForwardPlan*>executor.plan
    planes = (self.dims[0] if rank == 4 else 1)
    if planes == 0:
        set_work(executor, context, NULL, 0, 0, 0)
        return SUCCESS
    plain_strides(self, &plan.self_strides[4 - rank])
    plain_strides(out, &plan.out_strides[4 - rank])
    plan.source_bytes = reach_of(self)
    for i in range(4):
        plan.self_strides[i] *= item
        plan.out_strides[i] *= item
    for i in range(PADS):
        (<int64_t*>(plan + 1))[i] = pads[i]
    plan.channels = self.dims[rank - 3]
    plan.item = plan.cell = item
    plan.h = copied_axis(self.dims[rank - 2], out.dims[rank - 2], pads[<int>TOP])
    plan.w = copied_axis(self.dims[rank - 1], out.dims[rank - 1], pads[<int>LEFT])
    bytes = traffic(self, item) + traffic(out, item)
    width = plan.w.out
    if plan.channels > 1 and plan.self_strides[1] == item and plan.self_strides[3] != item:
        if plan.out_strides[1] == item and plan.out_strides[3] != item:
            plan.layout = PIXELS
        elif width <= MOST_PACKED // item:
            plan.layout = PACKED
    elif (plan.channels > 1 and plan.out_strides[1] == item and plan.out_strides[3] != item
            and plan.self_strides[3] == item):
        plan.layout = UNPACKED
    plan.group = plan.groups = 1
    if (plan.layout == PLANES and plan.self_strides[3] == item and plan.out_strides[3] == item
            and plan.h.out * width * item <= SMALL_PLANE
            and planes * plan.channels >= LEAST_BAND * UNITS_PER_THREAD * context.threads):
        planes = take_together(plan, planes, bytes <= CACHED)
    elif plan.layout == PIXELS:
        plan.cell = plan.channels * item
        plan.channels = 1
    elif plan.layout == PACKED:
        # Of long rows fewer channels, so that the scratch stays in the cache.
        plan.group = least(plan.channels, most(1, least(LINES * ALIGNMENT // item, MOST_PACKED // item // width)))
    elif plan.layout == UNPACKED:
        plan.group = least(plan.channels, UNPACKED_BYTES // item)
    plan.groups = ceil_div(plan.channels, plan.group)
    plan.far = bytes > CACHED
    plan.streamed = (goes_past(context, bytes, CACHED) and plan.out_strides[3] == plan.cell
                     and plan.w.out * plan.cell >= LONG_ROW)
    plan.strip = 0      # of shorter rows: 0.55 to 0.9 of the time, of longer ones 1.05 to 1.25
    if (goes_past(context, bytes, context.kernels.streamed_bytes) and not plan.streamed and plan.layout == PLANES
            and plan.self_strides[3] == item and plan.out_strides[3] == item
            and plan.out_strides[2] == plan.w.out * item
            and plan.h.out * plan.w.out * item >= LEAST_PADDED
            and stretch(plan.out_strides, plan.h.out * plan.w.out * item, plan.channels) >= LEAST_STRETCH):
        plan.strip = most(1, STRIP // (plan.w.out * item))
    # Rows that are made elsewhere first, or come from the scratch, are stored as they are.
    plan.far = plan.far and plan.layout == PLANES and plan.strip == 0
    planes *= plan.groups
    plan.band = plan.h.out
    if plan.layout == PACKED:
        lay_out_packed(plan, goes_past(context, bytes, context.kernels.streamed_bytes))
    if context.threads > 1 and planes < UNITS_PER_THREAD * context.threads:
        plan.band = least(plan.band, most(LEAST_BAND, ceil_div(plan.h.out, ceil_div(UNITS_PER_THREAD * context.threads,
                                                                                    planes))))
    plan.bands = ceil_div(plan.h.out, plan.band)
    slot = 0
    while <int64_t>1 << slot < item:
        slot += 1
    # out's elements are distinct and lie in a storage, so the number of units, which is no larger, does not overflow.
    set_work(executor, context, context.kernels.row[FORWARD_KERNEL][slot], planes * plan.bands, bytes,
             plan.strip * plan.w.out * item + 2 * ALIGNMENT if plan.strip > 0 and plan.layout == PLANES else (
                 plan.group * (plan.pitch + 2 * ALIGNMENT) if plan.layout == PACKED else 0))    # more than a Rest
    return SUCCESS


cdef int replication_pad2d(const Context* context, const Arguments* c, Executor** executor) noexcept nogil:
    """Phase 1."""
    cdef const Tensor* self = c.tensors[0]
    cdef const Tensor* out = c.tensors[1]
    cdef const IntArray* padding = c.arrays[0]
    cdef int64_t[PADS] pads
    return (check_nulls(context, c)
            or check_format(context, ARG_SELF, self)
            or check_same_formats(context, c)
            or check_dtypes(context, c)
            or check_images(context, c)
            or read_padding(context, padding, pads)
            or check_values(context, padding, pads, DT_FLOAT)
            or check_forward(context, self, out, padding, pads)
            or addressable(context, ARG_SELF, self)
            or addressable(context, ARG_OUT, out)
            or plan_forward(context, c, pads, executor))


cdef int forward_result(const Context* context, const Arguments* c, Tensor* results) noexcept nogil:
    """self's shape, padded."""
    cdef const Tensor* self = c.tensors[0]
    cdef const IntArray* padding = c.arrays[0]
    cdef int64_t both = 0
    cdef int64_t padded = 0
    cdef int64_t i, j
    if self == NULL or padding == NULL:
        return NO_RESULT
    results[0] = self[0]
    for i in range(2 if 2 <= self.rank <= MAX_RANK else 0):
        j = 2 * i
        if ((padding.scalar or padding.size == PADS)
                and not add_overflows(padding.values[0 if padding.scalar else j],
                                      padding.values[0 if padding.scalar else j + 1], &both)
                and not add_overflows(both, self.dims[self.rank - 1 - i], &padded) and padded >= 0):
            results.dims[self.rank - 1 - i] = padded
    return SUCCESS


cdef int64_t forward_facts(const Executor* executor, Fact* fact) noexcept nogil:
    cdef const ReplicationPad2dForwardPlan* plan = <const ReplicationPad2dForwardPlan*>executor.plan
    return add_pads(fact, <const int64_t*>(plan + 1), plan.layout)
