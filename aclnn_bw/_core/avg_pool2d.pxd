"""The plan of AvgPool2dBackward, shared by its checks and its kernel."""
from libc.stdint cimport int32_t, int64_t, uint64_t

from aclnn_bw._core.types cimport Context, Executor, IntArray, Tensor

cdef enum CubeMathType:
    KEEP_DTYPE
    ALLOW_FP32_DOWN_PRECISION
    USE_FP16
    USE_HF32

cdef enum:
    WALK_TERMS = 16     # the most running sums of a WALK along an axis
    LONGEST_LANES = 16  # elements of the longest vector

cdef enum Rounding:
    ROUND_NONE
    ROUND_F16
    ROUND_HF32

cdef enum Algorithm:
    FILL        # one window covers the whole plane: its share everywhere
    DOUBLE      # kernel and stride 2, dense rows: every element becomes four in one pass
    WALK        # stride 1: running sums in registers, down a block of columns
    SPREAD      # stride 2 or 3, at most two windows a position: row by row, each sum stored to the positions it serves
    BANDED      # any geometry: a band of rows summed along w, then along h, then spread to what it serves
    STREAMED    # as BANDED, one row of windows at a time: for kernels so tall that a band does not fit the scratch

# One axis. `kernel`, `stride` and `pad` describe which window covers which position and are cut down to what the sizes
# can tell apart: position i lies in window o if and only if 0 <= i + pad - o*stride < kernel. With i + pad =
# q*stride + r, that is the windows q-m+1 .. q, where m = `terms` for the first `long_phases` values of r, else one
# less.
cdef struct Axis:
    int64_t size            # positions in gradInput
    int64_t out             # windows in gradOutput
    int64_t kernel
    int64_t stride
    int64_t pad
    int64_t terms
    int64_t long_phases
    int64_t first           # q of position 0
    int64_t count           # values of q up to that of the last position
    int64_t full_kernel     # as the caller gave them: these make the divisor
    int64_t full_stride
    int64_t full_pad

cdef struct AvgPool2dPlan:
    Axis h
    Axis w
    int64_t channels
    int64_t[4] grad_output_strides      # elements: n, c, h, w
    int64_t[4] grad_input_strides
    int64_t[2] divisor                  # of window (0, 0): its two factors, or the override and 1
    bint count_include_pad
    bint constant_divisor               # one divisor for every window
    int32_t algorithm
    int32_t rounding                    # of gradOutput, before it is summed
    bint round_result                   # to float16, stored as float32
    # A unit of work is `group` planes, one but for images whose channels lie side by side, x a band of `band` values of
    # q along h x a tile of `tile` values along w: of q, or for WALK and SPREAD of groups of `stride` positions.
    int64_t group
    int64_t groups                      # of an image
    int64_t band
    int64_t bands
    int64_t tile
    int64_t tiles
    int64_t across                      # values along w
    # WALK and SPREAD: position i of group 0 has the windows column_first[i] .. column_first[i] + column_terms[i] - 1.
    int64_t[3] column_first
    int64_t[3] column_terms
    # Byte offsets in a range's scratch.
    int64_t packed_plane                # bytes from one plane's packed rows to the next's
    int64_t pitch                       # elements from one packed row to the next
    int64_t at_terms
    int64_t at_long
    int64_t at_short
    int64_t[4] at_sums                  # rows of long, then of short phases; in each the long, then the short columns
    int64_t[4] at_cells
    int64_t at_row
    int64_t at_factors
    int64_t at_row_factors

cdef extern int avg_pool2d_backward "aclnn_bw_avg_pool2d_backward" (
    const Context* context, const Tensor* grad_output, const Tensor* self, const IntArray* kernel_size,
    const IntArray* stride, const IntArray* padding, bint ceil_mode, bint count_include_pad,
    const int64_t* divisor_override, int64_t cube_math_type, const Tensor* grad_input,
    Executor** executor) noexcept nogil


cdef inline int64_t window_length(const Axis* axis, int64_t o, bint include_pad) noexcept nogil:
    """The divisor's factor along an axis: min(start + kernel, size + pad) - start, clipped to the image or not.

    Written without start + kernel and with an unsigned limit - start, which could overflow. Never 0: a window starts
    before size + pad, and 2*pad <= kernel makes it reach into the image.
    """
    cdef int64_t start = o * axis.full_stride - axis.full_pad
    cdef int64_t begin = start if include_pad or start > 0 else 0
    cdef int64_t limit = axis.size + axis.full_pad if include_pad else axis.size
    if <uint64_t>axis.full_kernel <= <uint64_t>limit - <uint64_t>start:
        return axis.full_kernel - (begin - start)
    return limit - begin
