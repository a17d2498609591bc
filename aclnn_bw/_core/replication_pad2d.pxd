"""The plans of ReplicationPad2d and of its gradient, shared by their checks and their kernels."""
from libc.stdint cimport int32_t, int64_t

from aclnn_bw._core.arithmetic cimport ceil_div
from aclnn_bw._core.types cimport ALIGNMENT, Arguments, Context, Executor, Fact, Tensor

# One axis: which positions q of gradOutput go to position i of gradInput, q in [0, out), i in [0, size).
#   i in [begin, end)   q = i + shift alone, unless i is one of the next two;
#   i = 0               the first `head` values of q, if head > 0;
#   i = size - 1        the last `tail` values of q, if tail > 0 (size > 1 then);
#   any other i         none: a negative pad has cropped it.
# If head > 0 and [begin, end) is not empty, then begin = 0 and head = shift + 1; if tail > 0 and it is not empty, then
# end = size and out - tail = size - 1 + shift. Both head and tail are positive only if [begin, end) is [0, size).
cdef struct Axis:
    int64_t size
    int64_t out
    int64_t head
    int64_t tail
    int64_t begin
    int64_t end
    int64_t shift

cdef enum Layout:
    PLANES      # rows lie apart for each channel
    PACKED      # the channels of what is read lie side by side, those of what is written do not
    PIXELS      # the channels of both do: what is copied and summed is all channels of a pixel
    UNPACKED    # the channels of what is written do, those of what is read do not

# Behind the plan lie the four pads as the caller gave them, as int64: kernels copy the plan and have no use for them.
cdef struct ReplicationPad2dPlan:
    Axis h
    Axis w
    int64_t channels
    int64_t parts                       # numbers in an element: 2 if it is complex
    int64_t[4] grad_output_strides      # elements: n, c, h, w
    int64_t source_bytes                # from gradOutput's first element to the end of the last in memory
    int64_t[4] grad_input_strides
    # A unit of work is a plane x a band of rows x a tile of columns of gradInput.
    int64_t band
    int64_t bands
    int64_t tile
    int64_t tiles
    int32_t layout
    # PACKED, UNPACKED: a unit is a group of channels x a band x a tile, whose part of gradOutput is transposed.
    int64_t group                       # channels
    int64_t groups
    int64_t packed                      # bytes of scratch; a unit that needs more does without. Else those of a strip
    bint streamed                       # gradInput is written past the caches, row by row
    int64_t strip                       # rows that are made at a time, which then are; 0: none

# Position o of an axis of out is a copy of clamp(o - pad, 0, size - 1): the first `before` positions copy 0, the last
# `after` ones size - 1, and those between, `first` and what follows.
cdef struct CopiedAxis:
    int64_t out
    int64_t before
    int64_t between
    int64_t after
    int64_t first
    int64_t last        # size - 1

# Strides and sizes are bytes. Behind the plan lie the four pads, as behind the other one.
cdef struct ReplicationPad2dForwardPlan:
    CopiedAxis h
    CopiedAxis w
    int64_t[4] self_strides     # n, c, h, w
    int64_t source_bytes        # from self's first element to the end of the last in memory
    int64_t[4] out_strides
    int64_t channels            # PIXELS: 1
    int64_t item                # an element
    int64_t cell                # what is copied at a time: an element; PIXELS: a pixel
    # A unit of work is a plane, or of PACKED and UNPACKED a group of channels, x a band of rows of out.
    int64_t band
    int64_t bands
    int64_t group               # channels
    int64_t groups
    int32_t layout
    bint far                    # the arrays lie beyond the caches
    bint streamed               # out is written past the caches
    # Rows that are made in the scratch at a time: of PLANES, which then are streamed, or 0; of PACKED always.
    int64_t strip
    int64_t pitch               # bytes of the scratch for a channel of PACKED

cdef extern int replication_pad2d_backward "aclnn_bw_replication_pad2d_backward" (
    const Context* context, const Arguments* c, Executor** executor) noexcept nogil
cdef extern int64_t facts "aclnn_bw_replication_pad2d_backward_facts" (
    const Executor* executor, Fact* fact) noexcept nogil
cdef extern int replication_pad2d "aclnn_bw_replication_pad2d" (
    const Context* context, const Arguments* c, Executor** executor) noexcept nogil
cdef extern int forward_result "aclnn_bw_replication_pad2d_result" (
    const Context* context, const Arguments* c, Tensor* results) noexcept nogil
cdef extern int64_t forward_facts "aclnn_bw_replication_pad2d_facts" (
    const Executor* executor, Fact* fact) noexcept nogil


cdef inline int64_t packed_plane(int64_t cells, int64_t cell) noexcept nogil:
    """The bytes from one plane of the scratch to the next: an odd number of cache lines, so that no two of 64 planes
    share a set of the L1 cache."""
    return (ceil_div(cells * cell, ALIGNMENT) | 1) * ALIGNMENT
