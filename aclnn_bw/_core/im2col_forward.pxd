"""The plan of Im2col, shared by its checks and its kernel."""
from libc.stdint cimport int32_t, int64_t

from aclnn_bw._core.types cimport Arguments, Context, Executor, Fact, Tensor

cdef enum ForwardAlgorithm:
    ROWS        # the windows of a kernel position are one row of out, made and written in one go
    TURNED      # a row of the image is transposed: its windows have all their kernel positions side by side
    PIECES      # pieces of rows are converted, or put where out's strides say
    TABLE       # a table says for each window and kernel position where it lies in the rows that a band reads
    LAST        # a window's columns lie side by side in out: its pixels, with their channels, are transposed
    PACKED      # besides: self's channels lie side by side, so planes are made of a group of them first

cdef enum:
    TILE = 64               # windows of PIECES that are put where they belong together
    TILE_BYTES = 128        # of each, one kernel position after the other
    WORDS = 1024            # of 8 bytes: TILE * TILE_BYTES

# Kernel position k of window o lies at o*stride - pad + k*dilation of the axis. pad, dilation and stride may be near
# 2**63, and what they give beyond: it is added unsigned (im2col_planes.pxd).
cdef struct ForwardAxis:
    int64_t size
    int64_t windows
    int64_t kernel
    int64_t stride
    int64_t dilation
    int64_t pad


cdef inline int64_t span_of(const ForwardAxis* axis) noexcept nogil:
    """Of a window, where neither kernel nor dilation is beyond 2**30."""
    return (axis.kernel - 1) * axis.dilation + 1


# Strides count elements.
cdef struct Im2colForwardPlan:
    ForwardAxis h
    ForwardAxis w
    int64_t images
    int64_t channels
    int64_t[4] self_strides     # n, c, h, w
    int64_t source_bytes        # from self's first element to the end of the last in memory
    int64_t[4] plane_strides    # the same of what rows are made from: self, or planes in the scratch; n is not used
    int64_t[3] out_strides      # n, c*kH*kW, l
    int32_t self_dtype
    int32_t out_dtype
    int64_t out_item            # bytes
    # A unit of work is a group of channels x a band of windows: whole rows of them. TABLE counts bands last.
    int64_t group
    int64_t groups
    int64_t band
    int64_t bands
    int64_t image_rows          # TABLE: the most rows of self that a band reads
    bint patches                # the padding is written afterwards, and no row copied behind its zero
    # Where they begin in the scratch, in bytes: of TABLE, and of LAST, whose window is at its begin.
    int64_t at_table
    int64_t at_windows
    int64_t at_image
    int64_t at_pixels
    int32_t algorithm
    bint packs
    bint made                   # LAST: the channels of a pixel do not lie side by side in self: they are put so first
    bint flat                   # a kernel position's windows are the plane, moved: stride 1, as many of them as columns
    bint converts               # out's dtype is not self's
    bint far                    # the arrays lie beyond the caches
    bint streams                # out is written past the caches

cdef extern int im2col "aclnn_bw_im2col" (
    const Context* context, const Arguments* c, Executor** executor) noexcept nogil
cdef extern int result "aclnn_bw_im2col_result" (
    const Context* context, const Arguments* c, Tensor* results) noexcept nogil
cdef extern int64_t facts "aclnn_bw_im2col_facts" (const Executor* executor, Fact* fact) noexcept nogil
