"""UpsampleNearestExact1dBackward: what it refuses, and what it plans.

The rules follow the CANN operator (aclnnUpsampleNearestExact1dBackward) and PyTorch's nearest-exact upsampling on the
CPU; the checks run in one fixed order, and the first that fails speaks.

The map from gradOutput to out is PyTorch's (aten/src/ATen/native/UpSample.h, nearest_exact_idx), bit for bit: the ratio
is a float32; (j + 0.5) * ratio is computed in float64 and rounded to float32; its floor, cut to the row, is the target.
All three steps are monotone, so every target owns one stretch of sources, and the stretches cover the row in order.
"""
from libc.stdint cimport INT32_MAX, int32_t, int64_t, uint8_t
from libc.stdlib cimport strtod

from aclnn_bw._core.arithmetic cimport ceil_div, least, most, quotient, round_up, stretch
from aclnn_bw._core.checks cimport (
    addressable, length_between, shape_is, slot_of,
)
from aclnn_bw._core.executor cimport set_work
from aclnn_bw._core.names cimport TEXT, element_text, host_rules, name, product_name, snprintf
from aclnn_bw._core.operators cimport check_common, check_same_formats, start_executor
from aclnn_bw._core.status cimport refuse, wide
from aclnn_bw._core.tensor cimport item_size, plain_strides, reach_of, traffic
from aclnn_bw._core.types cimport (
    ALIGNMENT, ARG_GRAD_OUTPUT, ARG_INPUT_SIZE, ARG_OUT, ARG_OUTPUT_SIZE, ARG_SCALES, ERR_INVALID, HOST, NO_RESULT,
    LEAST_STRETCH, REAL, STRIP, SUCCESS, Arguments, Context, Executor, Fact, IntArray, Tensor,
)

cdef extern from "operators.h":
    enum:
        KERNEL "ACLNN_BW_KERNEL_upsample_nearest_exact1d"

cdef extern from "floating_mode.h" nogil:
    ctypedef struct floating_mode "aclnn_bw_floating_mode":
        pass
    floating_mode enter_default_mode "aclnn_bw_enter_default_mode" () noexcept
    void leave_default_mode "aclnn_bw_leave_default_mode" (floating_mode) noexcept

cdef extern from "<math.h>" nogil:
    bint isfinite(double value) noexcept

cdef extern from *:
    """
    #define ACLNN_BW_ROUNDING_ERROR 0x1p-24
    """
    const double ROUNDING_ERROR "ACLNN_BW_ROUNDING_ERROR"   # of a number rounded to float32, relative to it, at most

cdef enum:
    FACTOR_LIMIT = 50               # of the products, for growing and shrinking
    RATIO_LIMIT = 4000000           # a little below 2**22: see find_ratio
    LONGEST_PERIOD = 4096           # targets; the table of more would leave the L1 cache
    SHORT_PERIOD = 512              # targets: up to here a period is taken however few there are of it
    BLOCK = 4096                    # targets of a unit: its table stays in the L1 cache
    LEAST_BLOCK = 256               # targets; fewer are not worth a unit of their own
    WHOLE_TARGETS = 65536           # of a row whose tables the executor holds: 512 KiB
    FEW_ROWS = 8                    # a table that more of them share is worth its making
    SPARSE = 32                     # targets to a source: from here on groups are mostly zeros: fill, store each source
    UNITS_PER_THREAD = 4            # fewer rows than this leave threads unevenly loaded: cut them
    SHORT_ROW = 400                 # elements: rows that are transposed as pixels,
    LONGEST_ROW = 2048              # where there are MANY_SOURCES to a target
    MANY_SOURCES = 4
    SMALL_PIXEL = 32                # bytes of channels on both sides: fewer are transposed, and their results back,
    SMALL_HALVES = 48               # in 16 bits, which are widened: 1 to 15 times as fast
    WIDE_PIXEL = 256                # bytes of channels; half as many where there are MANY_SOURCES
    LINES = 8                       # cache lines of a source that are packed side by side
    UNIT = 262144                   # bytes of gradOutput that are packed at a time: a quarter of an L2 cache
    MOST_PACKED = 1048576           # bytes: a block with more is not packed, for it would leave the L2 cache
    CHUNK = 64                      # indices computed at a time
    LEAST_ROW = 256                 # bytes of a row, joined or not, that passes the caches
    STRETCH = 256                   # starts found at a time; a multiple of WIDEST


cdef inline double least_real(double a, double b) noexcept nogil:
    return a if a < b else b


cdef void find_ratio(NearestMap* map) noexcept nogil:
    """Set p, q and margin if `ratio` is targets / sources, rounded.

    Let x = (2*j + 1) * p / (2*q) and d be the relative error of `ratio`, at most 2**-24. The computed place differs
    from x by less than targets * (|d| + 2**-24), which is margin / (2*q) or less. So its floor is that of x, but where
    x is nearer to an integer.

    No x but an integer is nearer if that bound is below 1 / (2*q), and an integer x needs an even p. If d >= 0, it is
    computed as the integer itself or a little more. If d < 0, as x * (1 - |d|), which is exact in float64, and is then
    rounded to float32. That makes it x if |d| <= 2**-25: half way to the float32 before x is x * 2**-25 or more, and
    exactly that only for a power of two, where the tie goes to x, which is even. In both cases there is no exception.
    """
    cdef int64_t a = map.targets
    cdef int64_t b = map.sources
    cdef double error
    map.p = 0
    map.q = 0
    map.margin = 0
    if a > RATIO_LIMIT or b > RATIO_LIMIT:
        return
    while b != 0:
        a, b = b, a % b
    b = map.sources // a
    a = map.targets // a
    error = (<double>map.ratio * <double>b - <double>a) / <double>a     # the difference is exact: they are close
    if not -ROUNDING_ERROR <= error <= ROUNDING_ERROR:
        return
    if map.targets * b > RATIO_LIMIT or (a % 2 == 0 and error < -0.5 * ROUNDING_ERROR):
        # 2*q * targets * 2**-23 and a little more: at least the bound, as a whole number.
        map.margin = map.targets * b // RATIO_LIMIT + 1
        if map.margin >= a:
            return
    map.p = a
    map.q = b


cdef inline int64_t settle(const NearestMap* map, int64_t target, int64_t start, int64_t rest) noexcept nogil:
    """The first source at `target` or beyond, from start, rest = divmod(2*q*target + p - 1, 2*p).

    By the exact ratio it is `start`, whose (2*j + 1) * p exceeds 2*q*target by 2*p - 1 - rest; that of the source
    before falls short of it by rest + 1. The margin is below p: only one of the two can be an exception, and no source
    further off.
    """
    if rest < map.margin:
        return start - (index_of(map, start - 1) >= target)
    if rest >= 2 * map.p - 1 - map.margin and map.margin > 0:
        return start + (index_of(map, start) < target)
    return start


cdef int64_t first_source(const NearestMap* map, int64_t target) noexcept nogil:
    """The first source at `target` or beyond; the number of sources if there is none.

    From a guess the search widens until it holds the answer, then it is halved: a place beyond 2**24 is rounded to a
    multiple of 2 or more, so the guess may be off by many.
    """
    cdef int64_t low, high, step, middle
    cdef double guess
    if target <= 0:
        return 0
    if target >= map.targets:
        return map.sources
    if map.p > 0:
        step = 2 * map.q * target + map.p - 1
        return settle(map, target, step // (2 * map.p), step % (2 * map.p))
    guess = <double>target / <double>map.ratio
    high = <int64_t>guess if guess < <double>map.sources else map.sources
    low = high - 1
    step = 1
    while high < map.sources and index_of(map, high) < target:
        low = high
        high = least(high + step, map.sources)
        step *= 2
    while low >= 0 and index_of(map, low) >= target:
        high = low
        low = most(low - step, -1)
        step *= 2
    while high - low > 1:
        middle = low + (high - low) // 2
        if index_of(map, middle) >= target:
            high = middle
        else:
            low = middle
    return high


cdef void ratio_starts(const NearestMap* map, int64_t begin, int64_t targets, int64_t origin,
                       int64_t* starts) noexcept nogil:
    """find_starts for a map with p and q: the division by addition."""
    cdef int64_t divisor = 2 * map.p
    cdef int64_t rest = 2 * map.q * begin + map.p - 1
    cdef int64_t step = quotient(2 * map.q, divisor)
    cdef int64_t more = 2 * map.q - step * divisor
    cdef int64_t start = quotient(rest, divisor)
    cdef int64_t i
    rest -= start * divisor
    for i in range(targets + 1):
        starts[i] = settle(map, begin + i, start, rest) - origin
        start += step
        rest += more
        if rest >= divisor:
            rest -= divisor
            start += 1


cdef void searched_starts(const NearestMap* map, int64_t begin, int64_t targets, int64_t origin,
                          int64_t* starts) noexcept nogil:
    """find_starts for any other map: a look at every source up to the last start, many at a time."""
    cdef int32_t[CHUNK] reached
    cdef int32_t last = <int32_t>(targets - 1)
    cdef int32_t limit = <int32_t>least(map.targets, INT32_MAX) - 1
    cdef int32_t offset, index, k
    cdef int64_t source = first_source(map, begin)
    cdef int64_t j = source
    cdef int64_t i, n
    cdef double middle
    cdef float ratio = map.ratio
    if map.targets >= INT32_MAX or map.ratio < 0.125:
        # Few targets for many sources: two steps of a search are less than a look at every source.
        for i in range(targets + 1):
            starts[i] = first_source(map, begin + i) - origin
        return
    for i in range(targets + 1):
        starts[i] = source
    offset = <int32_t>begin
    while j < map.sources:
        middle = <double>j + 0.5
        for k in range(CHUNK):
            index = short_index_at(middle + k, ratio, limit) - offset
            reached[k] = index if index < last else last
        n = least(CHUNK, map.sources - j)
        # Of the sources below target i, the last one is written last.
        for k in range(n):
            starts[reached[k] + 1] = j + k + 1
        j += n
        if reached[n - 1] == last:
            break
    starts[targets] = first_source(map, begin + targets)
    for i in range(1, targets):
        starts[i] = most(starts[i], starts[i - 1])
    for i in range(targets + 1):
        starts[i] -= origin


cdef void find_starts(const NearestMap* map, int64_t begin, int64_t targets, int64_t origin,
                      int64_t* starts) noexcept nogil:
    """starts[i] = first_source(begin + i) - origin for i in [0, targets]; beyond the row, as in rows joined end to
    end."""
    cdef int64_t i = 0
    cdef int64_t row, n
    if map.p > 0 and map.margin == 0:
        ratio_starts(map, begin, targets, origin, starts)
        return
    while i < targets:
        row = quotient(begin + i, map.targets)
        n = least(targets - i, (row + 1) * map.targets - (begin + i))
        if map.p > 0:
            ratio_starts(map, begin + i - row * map.targets, n, origin - row * map.sources, starts + i)
        else:
            searched_starts(map, begin + i - row * map.targets, n, origin - row * map.sources, starts + i)
        i += n


cdef bint fill_table(const NearestMap* map, int64_t begin, Block* block) noexcept nogil:
    """The table of a block of known first source, targets, width and terms; False if a target has more terms."""
    cdef int64_t[STRETCH + WIDEST + 1] starts
    cdef Group* groups = <Group*>(block + 1)
    cdef int64_t* table = <int64_t*>(block + 1)
    cdef int64_t most_terms = 0
    cdef int64_t done = 0
    cdef int64_t n, i, k
    while done < block.targets:
        n = least(STRETCH, block.targets - done)
        if block.width == 0:
            find_starts(map, begin + done, n, block.first, table + done)
            block.sources = table[done + n]
        else:
            find_starts(map, begin + done, n, block.first, starts)
            block.sources = starts[n]
            for i in range(n + 1, n + WIDEST + 1):
                starts[i] = starts[n]
            for i in range(n):
                most_terms = most(most_terms, starts[i + 1] - starts[i])
            if most_terms > block.terms:
                return False
            i = 0
            while i < n:
                # Lanes behind the last may hold anything.
                groups[0].first = starts[i]
                for k in range(WIDEST + 1):
                    groups[0].lane[k] = <uint8_t>(starts[i + k] - starts[i])
                groups += 1
                i += block.width
        done += n
    return True


cdef bint fill_places(const NearestMap* map, int64_t begin, Block* block) noexcept nogil:
    """The list of the targets that own a source; False if one owns more."""
    cdef int64_t[STRETCH + 1] starts
    cdef int64_t* places = <int64_t*>(block + 1)
    cdef int64_t done = 0
    cdef int64_t n, i
    block.width = 0
    block.terms = 0
    while done < block.targets:
        n = least(STRETCH, block.targets - done)
        find_starts(map, begin + done, n, block.first, starts)
        block.sources = starts[n]
        for i in range(n):
            if starts[i + 1] - starts[i] > 1:
                return False
            if starts[i + 1] > starts[i]:
                places[starts[i]] = done + i
        done += n
    return True


cdef void fill_block(const NearestMap* map, int64_t begin, int64_t targets, bint scatters, Block* block) noexcept nogil:
    """The block of the targets [begin, begin + targets); they may go on into rows joined to the first."""
    cdef double terms = 1.0 / map.ratio
    block.first = 0 if begin == 0 else first_source(map, begin)
    block.targets = targets
    if scatters and fill_places(map, begin, block):
        return
    # Rounding, or the end of the row, may give a target more terms than the ratio says.
    block.terms = 1
    while block.terms <= MOST_TERMS:
        block.width = WIDEST if block.terms <= 2 else SPAN // block.terms
        if terms <= block.terms and fill_table(map, begin, block):
            return
        block.terms *= 2
    block.width = 0
    fill_table(map, begin, block)


cdef int all_positive(const Context* context, int argument, const IntArray* array) noexcept nogil:
    cdef char[TEXT] text
    cdef int64_t i
    for i in range(array.size):
        if array.values[i] <= 0:
            return refuse(ERR_INVALID, "%s = %lld: must be > 0", element_text(text, context, argument, array, i),
                          <wide>array.values[i])
    return SUCCESS


cdef const char* number_text(char* text, double value) noexcept nogil:
    """The fewest digits, 6 or more, that say which number it is."""
    cdef int digits = 6
    snprintf(text, TEXT, "%.*g", digits, value)
    while digits < 17 and strtod(text, NULL) != value:
        digits += 1
        snprintf(text, TEXT, "%.*g", digits, value)
    return text


cdef int check_scales(const Context* context, double scales) noexcept nogil:
    cdef char[TEXT] text
    if not isfinite(scales) or scales < 0:
        return refuse(ERR_INVALID, "%s = %s: must be finite and >= 0; 0 means that the sizes say it",
                      name(context, ARG_SCALES), number_text(text, scales))
    if context.product != HOST and scales != 0 and not 1.0 / FACTOR_LIMIT <= scales <= FACTOR_LIMIT:
        return refuse(ERR_INVALID, "%s = %s: must be 0 or in [1/%d, %d] on %s; %s has no limit",
                      name(context, ARG_SCALES), number_text(text, scales), FACTOR_LIMIT, FACTOR_LIMIT,
                      product_name(context.product), host_rules(context))
    return SUCCESS


cdef int check_shapes(const Context* context, const Tensor* grad_output, const IntArray* output_size,
                      const IntArray* input_size, const Tensor* out) noexcept nogil:
    cdef char[TEXT] rule
    cdef int64_t[3] expected
    cdef int64_t sources = output_size.values[0]
    cdef int64_t targets = input_size.values[2]
    cdef int status = shape_is(context, ARG_OUT, out, input_size.values, name(context, ARG_INPUT_SIZE))
    if status != SUCCESS:
        return status
    expected[0] = input_size.values[0]
    expected[1] = input_size.values[1]
    expected[2] = sources
    snprintf(rule, TEXT, "%s[:2] + %s", name(context, ARG_INPUT_SIZE), name(context, ARG_OUTPUT_SIZE))
    status = shape_is(context, ARG_GRAD_OUTPUT, grad_output, expected, rule)
    if status != SUCCESS or context.product == HOST:
        return status
    # ceil(a / b) > limit says a > limit * b without an overflow.
    if ceil_div(targets, sources) > FACTOR_LIMIT:
        return refuse(ERR_INVALID, "%s[2] = %lld: must be <= %d times %s[0] = %lld on %s; %s has no limit",
                      name(context, ARG_INPUT_SIZE), <wide>targets, FACTOR_LIMIT, name(context, ARG_OUTPUT_SIZE),
                      <wide>sources, product_name(context.product), host_rules(context))
    if ceil_div(sources, targets) > FACTOR_LIMIT:
        return refuse(ERR_INVALID, "%s[0] = %lld: must be <= %d times %s[2] = %lld on %s; %s has no limit",
                      name(context, ARG_OUTPUT_SIZE), <wide>sources, FACTOR_LIMIT, name(context, ARG_INPUT_SIZE),
                      <wide>targets, product_name(context.product), host_rules(context))
    return SUCCESS


cdef inline bint side_by_side(const UpsampleNearestExact1dPlan* plan, const int64_t* strides) noexcept nogil:
    return plan.all_channels > 1 and strides[1] == 1 and strides[2] != 1


cdef void choose_layout(UpsampleNearestExact1dPlan* plan, int64_t images, int64_t item) noexcept nogil:
    """What a row is. Whole cache lines of channels are packed, many at a time: they leave few gaps in what is read.
    With fewer the scratch would stay in the L1 cache, which saves less than the gaps cost."""
    plan.layout = ROWS
    plan.depth = 1
    plan.by_pixels = plan.returns = False
    if side_by_side(plan, plan.grad_output_strides):
        plan.layout = PIXELS if side_by_side(plan, plan.out_strides) else PACKED
        if plan.layout == PIXELS and plan.all_channels * item < (SMALL_PIXEL if item > 2 else SMALL_HALVES):
            plan.layout = PACKED
            plan.returns = True
    elif side_by_side(plan, plan.out_strides):
        plan.layout = UNPACKED
    if plan.layout == PIXELS:
        plan.depth = plan.all_channels
    elif plan.layout != ROWS:
        plan.depth = least(plan.all_channels, LINES * ALIGNMENT // item)
        # Short rows take long to begin, and many sources to a target are many rows.
        plan.by_pixels = (plan.out_strides[2] if plan.layout == PACKED else plan.grad_output_strides[2]) == 1 and (
            plan.depth * item >= WIDE_PIXEL and most(plan.map.targets, plan.map.sources) <= SHORT_ROW
            or 2 * plan.depth * item >= WIDE_PIXEL and plan.map.sources <= LONGEST_ROW
            and quotient(plan.map.sources, plan.map.targets) >= MANY_SOURCES)
    plan.channels = ceil_div(plan.all_channels, plan.depth)
    plan.rows = images * plan.channels


cdef int64_t plan_blocks(UpsampleNearestExact1dPlan* plan, const Context* context, int64_t item,
                         int64_t bytes) noexcept nogil:
    """Choose period, joining and blocks; returns the targets of the period, or 0.

    None of it changes a bit of the result: a target's sources and their order are the map's alone.
    """
    cdef const NearestMap* map = &plan.map
    cdef int64_t threads = context.threads
    cdef int64_t* g = plan.grad_output_strides
    cdef int64_t* x = plan.out_strides
    cdef bint dense = (plan.layout == ROWS and g[2] == 1 and g[1] == map.sources and g[0] == plan.channels * g[1]
                       and x[2] == 1 and x[1] == map.targets and x[0] == plan.channels * x[1])
    # The targets after which the map repeats itself: that of an exact ratio, or that of rows joined end to end. A
    # period is whole groups.
    cdef int64_t period = map.p if map.p > 0 and map.margin == 0 else (map.targets if dense else 0)
    cdef int64_t all_rows = plan.channels
    cdef int64_t wanted, sources
    period *= WIDEST // most(1, least(period & -period, WIDEST))
    if period > LONGEST_PERIOD or (period > SHORT_PERIOD
                                   and plan.rows * map.targets < 2 * UNITS_PER_THREAD * threads * period):
        period = 0
    period = least(period, round_up(plan.rows * map.targets, WIDEST))
    plan.targets = map.targets
    plan.sources = map.sources
    if period > 0 and dense:
        plan.targets *= plan.rows
        plan.sources *= plan.rows
        plan.rows = 1
        plan.channels = 1
    # Fewer targets than sources are summed too slowly to wait for lines to be stored: 0.9 to 1.9 of the time. Strips of
    # FILLED do not follow one another, which gains less than that costs in 16 bits.
    plan.streams = (bytes > context.kernels.streamed_bytes and plan.layout == ROWS and x[2] == 1
                    and map.targets >= map.sources and plan.targets * item >= LEAST_ROW
                    and stretch(x, map.targets, all_rows) >= LEAST_STRETCH // item
                    and (period > 0 or (plan.rows > FEW_ROWS and (item > 2 or map.targets <= WHOLE_TARGETS))))
    plan.block = least(plan.targets, 2 * BLOCK if period > 0 else BLOCK)
    if plan.streams:
        plan.block = least(plan.block, STRIP // item)
    wanted = ceil_div(UNITS_PER_THREAD * threads, plan.rows)
    if threads > 1 and wanted > 1:
        plan.block = least(plan.block, most(LEAST_BLOCK, ceil_div(plan.targets, wanted)))
    if plan.layout == PACKED:
        # The targets of as many sources as are packed at a time.
        sources = most(1, UNIT // (plan.depth * item))
        if map.sources > sources:
            plan.block = least(plan.block, most(WIDEST, <int64_t>(<double>sources * <double>map.targets
                                                                  / <double>map.sources)))
    elif plan.layout == UNPACKED:
        plan.block = least(plan.block, UNIT // (plan.depth * item))
    # Even shares, in whole groups or periods.
    plan.block = ceil_div(plan.targets, ceil_div(plan.targets, plan.block))
    plan.block = round_up(plan.block, most(period, WIDEST))
    plan.blocks = ceil_div(plan.targets, plan.block)
    if period > 0:
        plan.tables = PERIODIC
    elif (plan.layout == ROWS and plan.rows <= FEW_ROWS and map.targets < INT32_MAX
          and map.sources <= quotient(2 * map.targets, plan.rows)):
        # A table takes as long as some two sources for each of its targets, found and added.
        plan.tables = NO_TABLE
    else:
        plan.tables = WHOLE if map.targets <= WHOLE_TARGETS else FILLED
    plan.table_bytes = block_bytes(period if period > 0 else plan.block)
    # By the sizes and by `scales`. Groups of float32 serve longer: nothing is converted, and a
    # vector has more lanes than of float64.
    wanted = 2 * SPARSE if item == 4 else SPARSE
    plan.scatters = (plan.layout != PIXELS and not plan.by_pixels and map.ratio >= wanted
                     and quotient(map.targets, map.sources) >= wanted)
    plan.packed = plan.made = 0
    if plan.layout == PACKED:
        # What a block owns differs by a few from what its share of the row says.
        sources = <int64_t>least_real(<double>(MOST_PACKED // item),
                                      <double>(plan.block + period) * <double>map.sources / <double>map.targets + SPAN)
        plan.packed = plan.depth * packed_row(least(sources, MOST_PACKED // (plan.depth * item)), item)
    elif plan.layout == UNPACKED:
        plan.packed = plan.depth * packed_row(least(plan.block, MOST_PACKED // (plan.depth * item)), item)
    if plan.by_pixels:
        plan.packed = plan.depth * packed_row(most(map.sources, map.targets), item)
    if plan.streams:
        plan.packed = round_up(plan.block * item, ALIGNMENT) + 2 * ALIGNMENT
    elif plan.returns:
        plan.made = plan.depth * packed_row(plan.block, item)
    elif plan.layout == PACKED and x[2] == 1 and bytes > context.kernels.streamed_bytes:
        plan.streams = True
        plan.made = plan.packed if plan.by_pixels else plan.block * item
    return period


cdef int plan_backward(const Context* context, const Arguments* c, Executor** result) noexcept nogil:
    cdef const Tensor* grad_output = c.tensors[0]
    cdef const Tensor* out = c.tensors[1]
    cdef Executor* executor
    cdef UpsampleNearestExact1dPlan plan
    cdef char* tables
    cdef int64_t item = item_size(out.dtype)
    cdef int64_t bytes = traffic(grad_output, item) + traffic(out, item)
    cdef int64_t period, count, k
    cdef int status
    plan.map.sources = grad_output.dims[2]
    plan.map.targets = out.dims[2]
    plan.map.ratio = <float>(1.0 / c.real) if c.real > 0 else <float>plan.map.targets / <float>plan.map.sources
    plan.all_channels = out.dims[1]
    plain_strides(grad_output, plan.grad_output_strides)
    plain_strides(out, plan.out_strides)
    find_ratio(&plan.map)
    choose_layout(&plan, out.dims[0], item)
    period = plan_blocks(&plan, context, item, bytes)
    count = 1 if period > 0 else (plan.blocks if plan.tables == WHOLE else 0)
    status = start_executor(context, c, <int64_t>sizeof(UpsampleNearestExact1dPlan) + count * plan.table_bytes, result)
    if status != SUCCESS:
        return status
    executor = result[0]
    plan.extent = quotient(reach_of(grad_output), item)
    (<UpsampleNearestExact1dPlan*>executor.plan)[0] = plan
    tables = <char*>executor.plan + sizeof(UpsampleNearestExact1dPlan)
    if period > 0:
        fill_block(&plan.map, 0, period, plan.scatters, <Block*>tables)
    else:
        for k in range(count):
            fill_block(&plan.map, k * plan.block, least(plan.block, plan.targets - k * plan.block),
                       plan.scatters, <Block*>(tables + k * plan.table_bytes))
    # Without a table, its bytes are those of a block's sums.
    # out's elements are distinct and lie in a storage, so their number, and any smaller one, does not overflow.
    set_work(executor, context, context.kernels.row[KERNEL][slot_of(out.dtype)],
             plan.rows * plan.blocks, bytes,
             (plan.table_bytes if plan.tables == FILLED or plan.tables == NO_TABLE else 0) + plan.packed + plan.made)
    return SUCCESS


cdef int check_and_plan(const Context* context, const Arguments* c, Executor** executor) noexcept nogil:
    cdef const Tensor* grad_output = c.tensors[0]
    cdef const Tensor* out = c.tensors[1]
    cdef const IntArray* output_size = c.arrays[0]
    cdef const IntArray* input_size = c.arrays[1]
    return (check_common(context, c)
            or check_rank(context, ARG_GRAD_OUTPUT, grad_output)
            or check_rank(context, ARG_OUT, out)
            or check_format(context, ARG_GRAD_OUTPUT, grad_output)
            or check_same_formats(context, c)
            or length_between(context, ARG_OUTPUT_SIZE, output_size, 1, 1)
            or length_between(context, ARG_INPUT_SIZE, input_size, 3, 3)
            or all_positive(context, ARG_OUTPUT_SIZE, output_size)
            or all_positive(context, ARG_INPUT_SIZE, input_size)
            or check_scales(context, c.real)
            or check_shapes(context, grad_output, output_size, input_size, out)
            or addressable(context, ARG_GRAD_OUTPUT, grad_output)
            or addressable(context, ARG_OUT, out)
            or plan_backward(context, c, executor))


cdef int upsample_nearest_exact1d_backward(const Context* context, const Arguments* c,
                                           Executor** executor) noexcept nogil:
    """Phase 1. The map must not depend on the caller's floating-point mode: with denormals taken for zeros,
    scales = 5e-324 would be another request."""
    cdef floating_mode mode = enter_default_mode()
    cdef int status = check_and_plan(context, c, executor)
    leave_default_mode(mode)
    return status


cdef int result(const Context* context, const Arguments* c, Tensor* results) noexcept nogil:
    """The shape that input_size says."""
    cdef const IntArray* sizes = c.arrays[1]
    cdef int i
    if c.tensors[0] == NULL or sizes == NULL:
        return NO_RESULT
    results.rank = 3
    results.dtype = c.tensors[0].dtype
    results.format = c.tensors[0].format
    for i in range(3):
        results.dims[i] = sizes.values[i] if sizes.size == 3 and sizes.values[i] > 0 else 1
    return SUCCESS


cdef int64_t facts(const Executor* executor, Fact* fact) noexcept nogil:
    """What explain() tells: the layout's name, then that of the tables."""
    cdef const UpsampleNearestExact1dPlan* plan = <const UpsampleNearestExact1dPlan*>executor.plan
    fact.name = "ratio"
    fact.kind = REAL
    fact.real = plan.map.ratio
    return 1 << plan.layout | 1 << (UNPACKED + 1 + plan.tables)
