"""UpsampleNearestExact1d: what it refuses, and what it plans.

The rules follow the CANN operator (aclnnUpsampleNearestExact1d); the map is that of the gradient, whose adjoint this
is. The checks run in one fixed order, and the first that fails speaks.
"""
from libc.stdint cimport INT32_MAX, int64_t

from aclnn_bw._core.arithmetic cimport ceil_div, least, most, stretch
from aclnn_bw._core.checks cimport addressable, length_between, not_null, read_pair, shape_is
from aclnn_bw._core.executor cimport goes_past, set_work
from aclnn_bw._core.names cimport TEXT, name, tuple_text
from aclnn_bw._core.operators cimport check_common, check_same_formats, start_executor
from aclnn_bw._core.status cimport refuse
from aclnn_bw._core.tensor cimport item_size, plain_strides, reach_of, traffic
from aclnn_bw._core.types cimport (
    ALIGNMENT, ARG_OUT, ARG_OUTPUT_SIZE, ARG_SELF, ERR_INVALID, LEAST_STRETCH, NO_RESULT, REAL, STRIP,
    SUCCESS, Arguments, Context, Executor, Fact, IntArray, Tensor,
)
from aclnn_bw._core.upsample_nearest_exact1d cimport check_format, check_rank

cdef extern from "operators.h":
    enum:
        KERNEL "ACLNN_BW_KERNEL_upsample_nearest_exact1d_forward"

cdef extern from "floating_mode.h" nogil:
    ctypedef struct floating_mode "aclnn_bw_floating_mode":
        pass
    floating_mode enter_default_mode "aclnn_bw_enter_default_mode" () noexcept
    void leave_default_mode "aclnn_bw_leave_default_mode" (floating_mode) noexcept

cdef enum:
    FEW = 8                     # elements of a row: to begin one takes longer (1.7 to 6 times)
    LEAST_ROW = 256             # bytes of one that passes the caches
    UNITS_PER_THREAD = 4
    LEAST_BLOCK = 1024          # elements
    GROUP_BYTES = 256           # of a group of channels that is transposed
    TURNED_BYTES = 131072       # of its elements in a block


cdef int check_nulls(const Context* context, const Arguments* c) noexcept nogil:
    """Not in the order of the call."""
    return (not_null(context, ARG_SELF, c.tensors[0])
            or not_null(context, ARG_OUT, c.tensors[1])
            or not_null(context, ARG_OUTPUT_SIZE, c.arrays[0]))


cdef int check_sizes(const Context* context, const Tensor* self, const Tensor* out,
                     const IntArray* size) noexcept nogil:
    cdef char[TEXT] text
    cdef int64_t[3] expected
    cdef int64_t[2] length
    cdef int i
    cdef int status
    for i in range(3):
        if self.dims[i] == 0:
            return refuse(ERR_INVALID, "%s.shape = %s: N, C and L must be > 0", name(context, ARG_SELF),
                          tuple_text(text, self.dims, 3))
    status = read_pair(context, ARG_OUTPUT_SIZE, size, 1, length)
    expected[0] = self.dims[0]
    expected[1] = self.dims[1]
    expected[2] = length[0]
    return status or shape_is(context, ARG_OUT, out, expected, "self's N and C, and the output size")


cdef void choose_way(UpsampleNearestExact1dForwardPlan* plan) noexcept nogil:
    """TWICE and SECOND are the exact maps of their sizes: 0.5 and 2 are float32, and so is every place."""
    cdef int64_t length = plan.map.sources
    plan.way = FOUND
    if plan.map.ratio == 0.5 and length == 2 * plan.map.targets and length <= 1 << 23:
        plan.way = TWICE
    elif plan.map.ratio == 2.0 and plan.map.targets == 2 * length and length <= 1 << 22:
        plan.way = SECOND


cdef void choose_layout(UpsampleNearestExact1dForwardPlan* plan) noexcept nogil:
    """Of what is transposed, `block` elements have at most block + 2 sources: places below 2**24 are at most half an
    element off."""
    cdef int64_t item = plan.item
    cdef bint from_pixels = plan.self_strides[1] == item and plan.self_strides[2] != item
    cdef bint to_pixels = plan.out_strides[1] == item and plan.out_strides[2] != item
    plan.layout = PLANES
    plan.group = 1
    plan.pitch = 0
    plan.shrinks = plan.map.ratio > 1
    if plan.channels == 1:
        return
    if from_pixels and to_pixels:
        plan.layout = PIXELS
        plan.group = plan.channels
    elif plan.map.targets <= 1 << 24 and (from_pixels and plan.out_strides[2] == item
                                          or to_pixels and plan.self_strides[2] == item):
        plan.layout = PACKED if from_pixels else UNPACKED
        plan.group = least(plan.channels, most(1, GROUP_BYTES // item))


cdef int plan_forward(const Context* context, const Arguments* c, Executor** result) noexcept nogil:
    cdef const Tensor* self = c.tensors[0]
    cdef const Tensor* out = c.tensors[1]
    cdef Executor* executor
    cdef UpsampleNearestExact1dForwardPlan plan
    cdef int64_t item = item_size(self.dtype)
    cdef int64_t bytes = traffic(self, item) + traffic(out, item)
    cdef int64_t wanted, scratch, slot
    cdef bint past
    cdef int i
    cdef int status = start_executor(context, c, sizeof(plan), result)
    if status != SUCCESS:
        return status
    executor = result[0]
    plan.map.sources = out.dims[2]
    plan.map.targets = self.dims[2]
    plan.map.ratio = <float>(1.0 / c.real) if c.real > 0 else <float>plan.map.targets / <float>plan.map.sources
    choose_way(&plan)
    plain_strides(self, plan.self_strides)
    plain_strides(out, plan.out_strides)
    plan.source_bytes = reach_of(self)
    for i in range(3):
        plan.self_strides[i] *= item
        plan.out_strides[i] *= item
    plan.item = item
    plan.channels = self.dims[1]
    choose_layout(&plan)
    past = goes_past(context, bytes, context.kernels.streamed_bytes)
    plan.groups = ceil_div(plan.channels, plan.group)
    plan.rows = self.dims[0] * plan.groups
    plan.block = plan.map.sources
    if plan.layout > PIXELS:
        plan.block = least(plan.block, TURNED_BYTES // (plan.group * item))
    wanted = UNITS_PER_THREAD * context.threads
    if context.threads > 1 and plan.rows < wanted:
        plan.block = least(plan.block, most(LEAST_BLOCK, ceil_div(plan.map.sources, ceil_div(wanted, plan.rows))))
    if plan.way == FOUND:
        plan.block = least(plan.block, LONGEST_BLOCK)
    plan.block += plan.block & 1
    if plan.way == FOUND and plan.map.targets > INT32_MAX and plan.map.ratio >= <float>(INT32_MAX // LONGEST_BLOCK):
        plan.block = 1      # so that int32 holds all distances from a block's first source
    plan.blocks = ceil_div(plan.map.sources, plan.block)
    if plan.layout > PIXELS:
        # With room for the sources of a block, and an odd number of cache lines: no two rows of 64 meet in a set.
        plan.pitch = (ceil_div((plan.block + 2) * item, ALIGNMENT) | 1) * ALIGNMENT // item
    plan.few = (plan.layout == PLANES and plan.map.sources <= FEW and plan.blocks == 1
                and plan.self_strides[2] == item and plan.out_strides[2] == item
                and (self.dims[0] == 1 or (plan.self_strides[0] == plan.channels * plan.self_strides[1]
                                           and plan.out_strides[0] == plan.channels * plan.out_strides[1])))
    # Of more than two sources to an element there is little to write: 0.95 to 1.1 of the time. Single bytes, 16 of
    # them, and vectors of 16 bytes have no code for it.
    plan.streams = past and (plan.layout == PACKED or (
                    plan.layout == PLANES and plan.self_strides[2] == item and plan.out_strides[2] == item
                    and plan.map.sources * item >= LEAST_ROW and plan.map.targets <= 2 * plan.map.sources
                    and 1 < item < 16 and context.kernels.vector_bytes > 16
                    and stretch(plan.out_strides, plan.map.sources * item, plan.channels) >= LEAST_STRETCH))
    scratch = plan.group * plan.pitch * item
    if plan.layout == PACKED:
        scratch *= 2        # elements are made there, too
    elif plan.streams:
        scratch = STRIP + 2 * ALIGNMENT
    (<UpsampleNearestExact1dForwardPlan*>executor.plan)[0] = plan
    slot = 0
    while <int64_t>1 << slot < item:
        slot += 1
    # out's elements are distinct and lie in a storage, so the number of units, which is no larger, does not overflow.
    set_work(executor, context, context.kernels.row[KERNEL][slot], plan.rows * plan.blocks, bytes, scratch)
    return SUCCESS


cdef int check_and_plan(const Context* context, const Arguments* c, Executor** executor) noexcept nogil:
    cdef const Tensor* self = c.tensors[0]
    cdef const Tensor* out = c.tensors[1]
    return (check_nulls(context, c)
            or check_common(context, c)
            or check_same_formats(context, c)
            or check_format(context, ARG_SELF, self)
            or check_rank(context, ARG_SELF, self)
            or check_rank(context, ARG_OUT, out)
            or length_between(context, ARG_OUTPUT_SIZE, c.arrays[0], 1, 1)
            or check_sizes(context, self, out, c.arrays[0])
            or addressable(context, ARG_SELF, self)
            or addressable(context, ARG_OUT, out)
            or plan_forward(context, c, executor))


cdef int upsample_nearest_exact1d(const Context* context, const Arguments* c, Executor** executor) noexcept nogil:
    """Phase 1. The map must not depend on the caller's floating-point mode: with denormals taken for zeros,
    scales = 5e-324 would be another request."""
    cdef floating_mode mode = enter_default_mode()
    cdef int status = check_and_plan(context, c, executor)
    leave_default_mode(mode)
    return status


cdef int result(const Context* context, const Arguments* c, Tensor* results) noexcept nogil:
    """self's N and C, and output_size."""
    cdef const IntArray* size = c.arrays[0]
    if c.tensors[0] == NULL or size == NULL:
        return NO_RESULT
    results[0] = c.tensors[0][0]
    if results.rank == 3 and size.size == 1 and size.values[0] > 0:
        results.dims[2] = size.values[0]
    return SUCCESS


cdef int64_t facts(const Executor* executor, Fact* fact) noexcept nogil:
    """What explain() tells: the layout's name, then the way."""
    cdef const UpsampleNearestExact1dForwardPlan* plan = <const UpsampleNearestExact1dForwardPlan*>executor.plan
    fact.name = "ratio"
    fact.kind = REAL
    fact.real = plan.map.ratio
    return 1 << plan.layout | 1 << (UNPACKED + 1 + plan.way)
