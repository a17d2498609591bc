"""Im2colBackward: what it refuses, and what it plans.

The rules follow the CANN operator (aclnnIm2colBackward) and PyTorch's col2im; the checks run in one fixed order, and
the first that fails speaks.
"""
from libc.stdint cimport int64_t, uint64_t

from aclnn_bw._core.arithmetic cimport ceil_div, least, most, mul_overflows, quotient, round_up
from aclnn_bw._core.checks cimport addressable, format_is_plain, read_pair, shape_is, slot_of
from aclnn_bw._core.executor cimport set_work
from aclnn_bw._core.names cimport TEXT, choose, element_text, name, tuple_text
from aclnn_bw._core.operators cimport add_pair, check_common, start_executor
from aclnn_bw._core.status cimport refuse, wide
from aclnn_bw._core.tensor cimport item_size, plain_strides, reach_of, traffic
from aclnn_bw._core.types cimport (
    ALIGNMENT, ARG_DILATION, ARG_GRAD_OUTPUT, ARG_INPUT_SIZE, ARG_KERNEL_SIZE, ARG_OUT, ARG_PADDING, ARG_STRIDE,
    DT_DOUBLE, ERR_INVALID, FORMAT_NCHW, FORMAT_NCL, NO_RESULT, SUCCESS, Arguments, Context, Executor, Fact,
    IntArray, RangeFn, Tensor,
)

cdef extern from "operators.h":
    enum:
        KERNEL "ACLNN_BW_KERNEL_im2col"

cdef enum:
    MOST_PLACES = 16384             # of a plane: 16 bits count them, and no threads share it
    BAND_BYTES = 131072             # gradOutput that a unit reads: with the next unit's, well within an L2 cache
    SERIAL_BYTES = 131072           # less is left to one thread (executor.pyx)
    GROUP_BYTES = 16384             # gradOutput of small planes that are worked on together: half of an L1 cache
    WIDEST_POSITION = 576           # bytes of a position's columns that are packed together
    LINES_BYTES = 262144            # out's rows that are transposed together: a quarter of an L2 cache
    # Columns made dense for a unit, if a unit of one row does not need more; half as many where both arrays leave the
    # cache to little else.
    PACK_BYTES = 524288
    MOST_PACK_BYTES = 1048576
    CACHED = 33554432               # bytes of both arrays: more are written past the caches
    STRETCH_BYTES = 8192            # out's rows that are made before they are: well within an L1 cache
    MANY_WINDOWS = 32               # in a row: phases that leave few gaps, in 16 bits, or none, else, are transposed
    FEW_WINDOWS = 8                 # in a row: vectors of its phases would be mostly empty
    # Elements of a kernel row's columns: of more of them, rows of more windows than VERY_FEW take 1.1 to 1.5 times as
    # long so.
    SOME_COLUMNS = 1024
    VERY_FEW_WINDOWS = 5
    PLANE_BYTES = 131072            # of the sums of a plane that is made at once
    SHORT_PLANE_BYTES = 16384       # the same where threads would go without: larger planes are split among them
    MOST_ROW = 65536                # bytes of a row that is made first
    SURE_EDGES = 512                # taps * elements of a row: its edges fit the kernel's tables, for any vectors
    UNITS_PER_THREAD = 4            # fewer whole planes than this leave threads unevenly loaded: split them into bands

# What the caller asked for, read into plain numbers.
cdef struct Attributes:
    int64_t[2] size
    int64_t[2] kernel
    int64_t[2] dilation
    int64_t[2] pad
    int64_t[2] stride


cdef int check_ranks(const Context* context, const Tensor* grad_output, const Tensor* out) noexcept nogil:
    if grad_output.rank != 2 and grad_output.rank != 3:
        return refuse(ERR_INVALID, "%s.rank = %d: must be 2 (C*kH*kW, L) or 3 (N, C*kH*kW, L)",
                      name(context, ARG_GRAD_OUTPUT), grad_output.rank)
    if out.rank != grad_output.rank + 1:
        return refuse(ERR_INVALID, "%s.rank = %d: must be %s where %s.rank = %d", name(context, ARG_OUT), out.rank,
                      choose(grad_output.rank == 2, "3 (C, H, W)", "4 (N, C, H, W)"), name(context, ARG_GRAD_OUTPUT),
                      grad_output.rank)
    return SUCCESS


cdef int check_shapes(const Context* context, const Tensor* grad_output, const IntArray* input_size,
                      const IntArray* kernel_size, const Tensor* out, const Attributes* a,
                      int64_t* windows) noexcept nogil:
    cdef char[TEXT] text
    cdef char[TEXT] first
    cdef char[TEXT] second
    cdef int64_t[4] expected
    cdef int64_t positions = 0
    cdef int64_t length = 0
    cdef int64_t i, rows
    cdef int rank = out.rank
    cdef bint beyond
    for i in range(2):
        if a.size[i] != out.dims[rank - 2 + i]:
            return refuse(ERR_INVALID, "%s = %lld: must equal %s of %s.shape = %s",
                          element_text(first, context, ARG_INPUT_SIZE, input_size, i), <wide>a.size[i],
                          choose(i == 0, "H", "W"), name(context, ARG_OUT), tuple_text(text, out.dims, rank))
    rows = grad_output.dims[rank - 3]
    if rows == 0 or grad_output.dims[rank - 2] == 0:
        return refuse(ERR_INVALID, "%s.shape = %s: C*kH*kW and L must be > 0", name(context, ARG_GRAD_OUTPUT),
                      tuple_text(text, grad_output.dims, rank - 1))
    beyond = mul_overflows(a.kernel[0], a.kernel[1], &positions)
    # Of a right call C is what makes the product; a division is needed for a message alone.
    if beyond or mul_overflows(positions, out.dims[rank - 3], &length) or length != rows:
        if beyond or rows % positions != 0:
            return refuse(ERR_INVALID, "%s.shape = %s: C*kH*kW = %lld must be divisible by %s * %s = %lld * %lld",
                          name(context, ARG_GRAD_OUTPUT), tuple_text(text, grad_output.dims, rank - 1), <wide>rows,
                          element_text(first, context, ARG_KERNEL_SIZE, kernel_size, 0),
                          element_text(second, context, ARG_KERNEL_SIZE, kernel_size, 1), <wide>a.kernel[0],
                          <wide>a.kernel[1])
    for i in range(2):
        windows[i] = count_windows(a.size[i], a.kernel[i], a.dilation[i], a.pad[i], a.stride[i])
        if windows[i] == 0:
            return refuse(ERR_INVALID, "%s = %lld: is too small for %s = %lld, %s = %lld and %s = %lld, no window fits",
                          element_text(first, context, ARG_INPUT_SIZE, input_size, i), <wide>a.size[i],
                          name(context, ARG_KERNEL_SIZE), <wide>a.kernel[i], name(context, ARG_DILATION),
                          <wide>a.dilation[i], name(context, ARG_PADDING), <wide>a.pad[i])
    if mul_overflows(windows[0], windows[1], &length) or length != grad_output.dims[rank - 2]:
        return refuse(ERR_INVALID, "%s.shape = %s: L must be Lh*Lw = %lld * %lld, the windows that %s, %s, %s, %s and "
                      "%s give", name(context, ARG_GRAD_OUTPUT), tuple_text(text, grad_output.dims, rank - 1),
                      <wide>windows[0], <wide>windows[1], name(context, ARG_INPUT_SIZE), name(context, ARG_KERNEL_SIZE),
                      name(context, ARG_DILATION), name(context, ARG_PADDING), name(context, ARG_STRIDE))
    expected[0] = grad_output.dims[0]
    expected[rank - 3] = out.dims[rank - 3]
    if mul_overflows(positions, out.dims[rank - 3], &length) or length != rows:
        expected[rank - 3] = rows // positions
    expected[rank - 2] = a.size[0]
    expected[rank - 1] = a.size[1]
    return shape_is(context, ARG_OUT, out, expected, "the shape of the image")


cdef Axis make_axis(int64_t size, int64_t windows, int64_t kernel, int64_t dilation, int64_t pad, int64_t stride,
                    int64_t* first) noexcept nogil:
    """Leave out the kernel positions that no window brings into the image: those before `first`, and those past it
    that are not among `taps`."""
    cdef Axis axis
    cdef int64_t reach = 0
    cdef uint64_t last = <uint64_t>pad + <uint64_t>(size - 1)       # k*dilation, at most
    axis.size = size
    axis.windows = windows
    axis.stride = stride if windows > 1 else 1
    axis.dilation = dilation if kernel > 1 else 1
    axis.taps = kernel
    axis.pad = pad
    first[0] = 0
    if mul_overflows(kernel - 1, axis.dilation, &reach) or <uint64_t>reach > last:
        axis.taps = <int64_t>(last // <uint64_t>axis.dilation) + 1
    # The last window begins at (windows-1)*stride - pad: before 0 if what is left of pad is positive.
    if not mul_overflows(windows - 1, axis.stride, &reach) and reach < pad:
        # Rounded down: one too many costs nothing, and pad stays >= 0.
        first[0] = quotient(pad - reach, axis.dilation)
        if first[0] >= axis.taps:
            first[0] = axis.taps = axis.pad = 0
            return axis
        axis.taps -= first[0]
        axis.pad -= first[0] * axis.dilation
    return axis


cdef void leave_out(Axis* axis) noexcept nogil:
    """Make it of no kernel position: all of the columns is padding."""
    axis.taps = axis.pad = 0
    axis.stride = axis.dilation = 1


cdef int64_t gcd(int64_t a, int64_t b) noexcept nogil:
    while b != 0:
        a, b = b, a % b
    return a


cdef bint is_small(const Axis* axis) noexcept nogil:
    """Whether the plain arithmetic of the fast algorithms cannot overflow; all sizes are below 2**48."""
    return axis.stride <= SMALL and axis.dilation <= SMALL and 0 <= axis.pad <= SMALL and axis.taps > 0


cdef bint is_apart(const Axis* axis) noexcept nogil:
    """Whether no position has two terms: kernel positions that meet are a multiple of stride / gcd apart, in windows a
    multiple of dilation / gcd apart."""
    cdef int64_t common = gcd(axis.dilation, axis.stride)
    return axis.taps <= quotient(axis.stride, common) or axis.windows <= quotient(axis.dilation, common)


cdef void find_phases(Im2colPlan* plan) noexcept nogil:
    cdef const Axis* w = &plan.w
    cdef int64_t common = gcd(w.dilation, w.stride)
    cdef int64_t j, kw
    cdef Phase* phase
    plan.kw_step = w.stride // common
    plan.window_step = w.dilation // common
    for j in range(w.stride):
        phase = &plan.phases[j]
        phase.taps = 0
        for kw in range(least(plan.kw_step, w.taps)):
            if (j + w.pad - kw * w.dilation) % w.stride == 0:
                phase.kw = kw
                phase.taps = ceil_div(w.taps - kw, plan.kw_step)
                phase.window = (j + w.pad - kw * w.dilation) // w.stride
                break


cdef int64_t packed_columns(Im2colPlan* plan, int64_t item) noexcept nogil:
    """Bytes of the windows that a band of rows of a group needs; sets plan.column."""
    cdef Axis* h = &plan.h
    cdef int64_t rows = quotient(plan.band - 1 + (h.taps - 1) * h.dilation, h.stride) + 1
    # An odd number of cache lines: columns in step would share few sets of the L1 cache.
    plan.column = (ceil_div(least(rows, h.windows) * plan.w.windows * item, ALIGNMENT) | 1) * quotient(ALIGNMENT, item)
    return ((plan.group - 1) * plan.kernel_rows + (h.taps - 1) * plan.kernel_width + plan.w.taps) * plan.column * item


cdef void choose_group(Im2colPlan* plan, int64_t planes, int64_t threads, int64_t bytes_read,
                       int64_t item) noexcept nogil:
    """How many channels are worked on at once, by the way in which they lie in memory."""
    cdef const Axis* w = &plan.w
    cdef int64_t group = 1
    # Planes whose places are listed are cleared together first, at most 2 KiB: memset makes more, a megabyte away from
    # the caches at least, in 1.2 times the time.
    cdef int64_t each = 8 * most(bytes_read, plan.h.size * w.size * item) if plan.listed else bytes_read
    plan.turns = False
    if plan.algorithm == SCATTER:
        return
    if (plan.algorithm == GATHER and plan.out_strides[1] == 1 and plan.out_strides[3] != 1 and not plan.converts
            and plan.channels > 1 and w.size <= quotient(LINES_BYTES, ALIGNMENT)):
        plan.turns = True
        group = quotient(ALIGNMENT, item)
    if plan.grad_output_strides[2] != 1:
        # Whole cache lines of the columns of a position.
        if plan.grad_output_strides[1] == 1:
            group = most(group, quotient(WIDEST_POSITION, plan.kernel_rows * item))
    elif (plan.algorithm == GATHER or plan.listed) and each < GROUP_BYTES:
        group = most(group, GROUP_BYTES // each)
        if not plan.turns and threads > 1:
            group = most(1, least(group, quotient(planes, UNITS_PER_THREAD * threads)))
    plan.group = least(group, plan.channels)


cdef bint one_window(const Axis* w, int64_t item) noexcept nogil:
    """Rows that are copied: GATHER takes 1 to 47 times as long. Of two elements it is as quick, but not in 16 bits
    where loads cannot be masked."""
    return w.windows == 1 and (w.taps > 2 or item == 2)


cdef bint few_terms(const Axis* h, const Axis* w) noexcept nogil:
    """Rows of so few windows, or planes of so few terms, that it pays to add them one by one to a plane of sums. One
    window alone has no stride; a column of them takes 0.2 to 0.9 of the time of rows, 1.3 at most. Few terms take 0.25
    to 1 of it. A kernel row's columns are at most MOST_COLUMNS elements."""
    if w.windows == 1:
        return h.windows > 1
    return w.stride > 2 and (w.windows <= FEW_WINDOWS or (
        (2 if w.windows <= MANY_WINDOWS else 3) * h.taps * h.windows * w.taps * w.windows <= h.size * w.size))


cdef int64_t count_elements(const Im2colPlan* plan) noexcept nogil:
    return plan.h.taps * plan.w.taps * plan.h.windows * plan.w.windows


cdef bint can_list(const Im2colPlan* plan) noexcept nogil:
    """Whether a plane's columns lie end to end and are few elements, and the plane is dense. None of them meet in a
    place."""
    return (plan.grad_output_strides[2] == 1 and plan.grad_output_strides[1] == plan.h.windows * plan.w.windows
            and plan.h.taps * plan.w.taps == plan.kernel_rows
            and count_elements(plan) <= MOST_LISTED and plan.h.size * plan.w.size <= MOST_PLACES
            and plan.out_strides[2] == plan.w.size)


cdef bint lists_places(const Im2colPlan* plan, int64_t item) noexcept nogil:
    """Rows of so few windows that to interleave or gather them takes 1.1 to 5.8 times as long as to store their
    elements one by one."""
    cdef const Axis* w = &plan.w
    cdef bint gapped = w.windows * w.stride < w.size
    return (can_list(plan) and (w.windows <= (7 if item == 2 else 6) or (gapped and w.windows <= 8))
            and (item == 2 or count_elements(plan) <= (400 if item == 4 else 200)))


cdef int64_t divide_work(Im2colPlan* plan, int64_t planes, int64_t threads, int64_t bytes, int64_t real,
                         int64_t item) noexcept nogil:
    """Choose the algorithm, the group and the band; returns the bytes of scratch.

    None of it changes a bit of the result: every algorithm adds the same terms in the same order.
    """
    cdef Axis* h = &plan.h
    cdef Axis* w = &plan.w
    cdef int64_t bytes_read, wanted, packed, most_packed, units, scratch
    cdef bint registers
    plan.algorithm = SCATTER
    plan.group = 1
    plan.phase_pitch = w.size
    plan.column = plan.grad_output_strides[1]
    if is_small(h) and is_small(w):
        if (w.stride == w.taps and w.stride == plan.kernel_width and w.dilation == 1 and w.pad == 0 and w.stride > 1
                and (h.taps - 1) * h.dilation < h.stride and plan.out_strides[3] == 1 and not plan.converts):
            plan.listed = lists_places(plan, item)
            plan.algorithm = PLACE if plan.listed else INTERLEAVE
        elif ((w.stride > 2 or one_window(w, item) or lists_places(plan, item))
                and is_apart(h) and is_apart(w) and w.taps <= MOST_TAPS
                and plan.out_strides[3] == 1 and not plan.converts
                and not (w.windows > MANY_WINDOWS and w.stride <= MOST_PHASES and h.taps <= MOST_TAPS
                         and 4 * w.taps >= (3 if item == 2 else 4) * w.stride)):
            plan.algorithm = PLACE
            plan.listed = can_list(plan)
        elif (h.taps <= MOST_TAPS and w.taps <= MOST_TAPS
                and plan.grad_output_strides[2] == 1 and plan.out_strides[3] == 1
                and h.size * w.size * real <= (PLANE_BYTES if planes >= threads else SHORT_PLANE_BYTES)
                and w.taps * h.windows * w.windows <= (
                    MOST_COLUMNS if w.windows <= VERY_FEW_WINDOWS else SOME_COLUMNS)
                and few_terms(h, w)):
            plan.whole = True
        elif h.taps <= MOST_TAPS and w.stride <= MOST_PHASES:
            plan.algorithm = GATHER
            if w.stride == 1:
                # One phase: no division on the way of a tiny call.
                plan.kw_step = 1
                plan.window_step = w.dilation
                plan.phases[0].kw = 0
                plan.phases[0].taps = w.taps
                plan.phases[0].window = w.pad
            else:
                find_phases(plan)
                plan.phase_pitch = ceil_div(w.size, w.stride) + 16
    elif h.taps == 0 and plan.grad_output_strides[2] == 1 and plan.out_strides[3] == 1 and not plan.converts:
        plan.algorithm = PLACE
        plan.listed = h.size * w.size <= MOST_PLACES and plan.out_strides[2] == w.size
    bytes_read = plan.kernel_rows * h.windows * w.windows * item
    choose_group(plan, planes, threads, bytes_read, item)
    units = planes if plan.group == 1 else quotient(planes, plan.channels) * ceil_div(plan.channels, plan.group)
    bytes_read *= plan.group
    plan.band = h.size
    if plan.turns:
        plan.band = most(1, least(h.size, LINES_BYTES // (plan.group * w.size * item)))
    elif bytes_read > BAND_BYTES and plan.grad_output_strides[2] == 1:
        plan.band = most(1, BAND_BYTES // ceil_div(bytes_read, h.size))
    wanted = ceil_div(UNITS_PER_THREAD * threads, units) if units < UNITS_PER_THREAD * threads else 1
    if threads > 1 and wanted > 1:
        plan.band = least(plan.band, ceil_div(h.size, wanted))
    if plan.whole or plan.listed:
        plan.band = h.size
    if plan.grad_output_strides[2] != 1 and plan.algorithm != SCATTER:
        packed = packed_columns(plan, item)
        most_packed = PACK_BYTES if bytes <= CACHED // 2 else PACK_BYTES // 2
        while packed > most_packed and (plan.band > 1 or plan.group > 1):
            # Bands share the windows at their borders, groups share cache lines.
            if plan.band > 1 and (plan.group == 1 or plan.band > 4 * (h.taps - 1) * h.dilation):
                plan.band = ceil_div(plan.band, 2)
            else:
                plan.group = ceil_div(plan.group, 2)
            packed = packed_columns(plan, item)
        plan.packs = packed <= MOST_PACK_BYTES
        if plan.packs:
            # A line before and behind: a vector that is cut off at a column's end is read whole.
            plan.at_sums = round_up(packed, ALIGNMENT) + 2 * ALIGNMENT
        else:
            plan.algorithm = SCATTER
            plan.column = plan.grad_output_strides[1]
    plan.channel = plan.kernel_rows * plan.column
    plan.bands = ceil_div(h.size, plan.band)
    plan.groups = ceil_div(plan.channels, plan.group)
    # Made in registers and stored: a tiny call need not look at a workspace.
    registers = not plan.packs and (plan.algorithm in (INTERLEAVE, PLACE) or (
        plan.algorithm == GATHER and w.stride == 1 and w.taps * w.size <= SURE_EDGES and not plan.turns
        and not plan.converts and plan.out_strides[3] == 1))
    scratch = plan.at_sums
    if not registers:
        scratch += (plan.phase_pitch * (w.stride if plan.algorithm == GATHER else 1) + w.size) * real
    if plan.whole:
        scratch = h.size * w.size * real
    if plan.turns:
        plan.at_lines = round_up(scratch, ALIGNMENT)
        scratch = plan.at_lines + plan.group * plan.band * w.size * item
    # What PLACE has stored, an element at a time, would be loaded at once to be streamed: 0.95 to 1.6 times as long.
    elif (bytes > CACHED and plan.algorithm not in (PLACE, SCATTER) and not plan.converts and plan.out_strides[3] == 1
          and plan.out_strides[2] == w.size and plan.out_strides[1] == h.size * w.size and w.size * item <= MOST_ROW):
        plan.streams = True
        plan.stretch = most(STRETCH_BYTES // (w.size * item), 1)
        if plan.algorithm == INTERLEAVE and h.stride * w.size * item <= 4 * STRETCH_BYTES:
            plan.stretch = round_up(plan.stretch, h.stride)
        plan.stretch = least(plan.stretch, most(plan.band * plan.group, 1))
        plan.at_lines = round_up(scratch, ALIGNMENT)
        scratch = plan.at_lines + plan.stretch * w.size * item
    return scratch


cdef int plan_backward(const Context* context, const Arguments* c, const Attributes* a, const int64_t* windows,
                       Executor** result) noexcept nogil:
    cdef const Tensor* grad_output = c.tensors[0]
    cdef const Tensor* out = c.tensors[1]
    cdef Executor* executor
    cdef Im2colPlan* plan
    cdef RangeFn kernel
    cdef int64_t item = item_size(grad_output.dtype)
    cdef int64_t real = 8 if grad_output.dtype == DT_DOUBLE else 4
    cdef int64_t planes, scratch, bytes
    cdef int64_t first_h = 0
    cdef int64_t first_w = 0
    cdef int rank = out.rank
    cdef int i
    cdef int status = start_executor(context, c, sizeof(Im2colPlan), result)
    if status != SUCCESS:
        return status
    executor = result[0]
    plan = <Im2colPlan*>executor.plan
    plan.channels = out.dims[rank - 3]
    planes = (out.dims[0] if rank == 4 else 1) * plan.channels
    if planes == 0:
        # The sizes of an empty tensor may be anything, so no geometry is made of them.
        set_work(executor, context, NULL, 0, 0, 0)
        return SUCCESS
    plain_strides(grad_output, &plan.grad_output_strides[4 - rank])
    if reach_of(grad_output) == traffic(grad_output, item):
        plan.source_bytes = reach_of(grad_output)
    plain_strides(out, &plan.out_strides[4 - rank])
    plan.out_dtype = out.dtype
    plan.converts = out.dtype != grad_output.dtype
    for i in range(2):
        plan.full_kernel[i] = a.kernel[i]
        plan.full_dilation[i] = a.dilation[i]
        plan.full_pad[i] = a.pad[i]
        plan.full_stride[i] = a.stride[i]
    plan.kernel_rows = a.kernel[0] * a.kernel[1]
    plan.kernel_width = a.kernel[1]
    plan.h = make_axis(a.size[0], windows[0], a.kernel[0], a.dilation[0], a.pad[0], a.stride[0], &first_h)
    plan.w = make_axis(a.size[1], windows[1], a.kernel[1], a.dilation[1], a.pad[1], a.stride[1], &first_w)
    plan.first_column = first_h * plan.kernel_width + first_w
    if plan.h.taps == 0 or plan.w.taps == 0:
        leave_out(&plan.h)
        leave_out(&plan.w)
    bytes = traffic(grad_output, item) + traffic(out, item_size(out.dtype))
    scratch = divide_work(plan, planes, context.threads if bytes >= SERIAL_BYTES else 1, bytes, real, item)
    kernel = context.kernels.row[KERNEL][slot_of(grad_output.dtype)]
    set_work(executor, context, kernel, quotient(planes, plan.channels) * plan.groups * plan.bands, bytes, scratch)
    return SUCCESS


cdef int im2col_backward(const Context* context, const Arguments* c, Executor** executor) noexcept nogil:
    """Phase 1."""
    cdef const Tensor* grad_output = c.tensors[0]
    cdef const Tensor* out = c.tensors[1]
    cdef const IntArray* input_size = c.arrays[0]
    cdef const IntArray* kernel_size = c.arrays[1]
    cdef const IntArray* dilation = c.arrays[2]
    cdef const IntArray* padding = c.arrays[3]
    cdef const IntArray* stride = c.arrays[4]
    cdef Attributes a
    cdef int64_t[2] windows
    return (check_common(context, c)
            or check_ranks(context, grad_output, out)
            or format_is_plain(context, ARG_GRAD_OUTPUT, grad_output)
            or format_is_plain(context, ARG_OUT, out)
            or has_length(context, ARG_INPUT_SIZE, input_size)
            or has_length(context, ARG_KERNEL_SIZE, kernel_size)
            or has_length(context, ARG_DILATION, dilation)
            or has_length(context, ARG_PADDING, padding)
            or has_length(context, ARG_STRIDE, stride)
            or read_pair(context, ARG_INPUT_SIZE, input_size, 1, a.size)
            or read_pair(context, ARG_KERNEL_SIZE, kernel_size, 1, a.kernel)
            or read_pair(context, ARG_DILATION, dilation, 1, a.dilation)
            or read_pair(context, ARG_PADDING, padding, 0, a.pad)
            or read_pair(context, ARG_STRIDE, stride, 1, a.stride)
            or check_shapes(context, grad_output, input_size, kernel_size, out, &a, windows)
            or addressable(context, ARG_GRAD_OUTPUT, grad_output)
            or addressable(context, ARG_OUT, out)
            or plan_backward(context, c, &a, windows, executor))


cdef int64_t image_channels(const Tensor* grad, const IntArray* kernel) noexcept nogil:
    """C of the image to which columns fold back; 1 where there is none."""
    cdef int64_t positions = 0
    if (not 2 <= grad.rank <= 3 or not 1 <= kernel.size <= 2 or kernel.values[0] < 1
            or kernel.values[kernel.size - 1] < 1
            or mul_overflows(kernel.values[0], kernel.values[kernel.size - 1], &positions)):
        return 1
    return most(quotient(grad.dims[grad.rank - 2], positions), 1)


cdef int result(const Context* context, const Arguments* c, Tensor* results) noexcept nogil:
    """The image that the columns make."""
    cdef const Tensor* grad = c.tensors[0]
    cdef const IntArray* sizes = c.arrays[0]
    cdef int64_t i, size
    cdef int rank
    if grad == NULL or sizes == NULL or c.arrays[1] == NULL:
        return NO_RESULT
    rank = 4 if grad.rank == 3 else 3
    results.rank = rank
    results.dtype = grad.dtype
    results.format = FORMAT_NCHW if rank == 4 else FORMAT_NCL
    results.dims[0] = grad.dims[0] if rank == 4 else 1
    results.dims[rank - 3] = image_channels(grad, c.arrays[1])
    for i in range(2):
        size = sizes.values[i if i < sizes.size else 0] if 1 <= sizes.size <= 2 else 1
        results.dims[rank - 2 + i] = size if size > 0 else 1
    return SUCCESS


cdef int64_t facts(const Executor* executor, Fact* fact) noexcept nogil:
    """What explain() tells."""
    cdef const Im2colPlan* plan = <const Im2colPlan*>executor.plan
    fact = add_pair(fact, "kernelSize", plan.full_kernel[0], plan.full_kernel[1])
    fact = add_pair(fact, "dilation", plan.full_dilation[0], plan.full_dilation[1])
    fact = add_pair(fact, "padding", plan.full_pad[0], plan.full_pad[1])
    add_pair(fact, "stride", plan.full_stride[0], plan.full_stride[1])
    return 1 << plan.algorithm
