# cython: cdivision=True
"""The plan of Im2colBackward, shared by checks and kernel; and what its forward has in common."""
from libc.stdint cimport int32_t, int64_t

from aclnn_bw._core.arithmetic cimport quotient
from aclnn_bw._core.checks cimport length_between
from aclnn_bw._core.types cimport ONE_CALL, Arguments, Context, Executor, Fact, IntArray, Tensor

cdef extern from * nogil:
    """
    /* (size + 2*pad - dilation*(kernel-1) - 1) / stride + 1, at most INT64_MAX; 0 where no window fits. No term of it
     * needs more than 127 bits. */
    static int64_t aclnn_bw_count_windows(int64_t size, int64_t kernel, int64_t dilation, int64_t pad, int64_t stride)
    {
        __int128 room = (__int128)size - 1 + 2 * (__int128)pad - (__int128)dilation * (kernel - 1);
        if (room < 0)
            return 0;
        room = room / stride + 1;
        return room > INT64_MAX ? INT64_MAX : (int64_t)room;
    }
    """
    int64_t count_wide_windows "aclnn_bw_count_windows" (
        int64_t size, int64_t kernel, int64_t dilation, int64_t pad, int64_t stride) noexcept

cdef enum:
    SMALL = 0x7fffffff  # products of two such numbers, and their sums, stay below 2**63
    MOST_PHASES = 16    # column phases that a GATHER row is made of; more are scattered
    MOST_TAPS = 64      # kernel rows whose pointers a GATHER row holds at once
    MOST_COLUMNS = 4096  # elements of a kernel row's columns that `whole` widens at once

cdef enum Algorithm:
    SCATTER     # any geometry and any strides: each row of windows is added where it lies in a row or plane of sums
    GATHER      # all terms of a position are added in a register, one column phase at a time
    INTERLEAVE  # kernel == stride along w: every position has one term at most
    PLACE       # no two kernel positions meet: elements are copied to where they belong, between zeros

# One axis. Position i holds the term of kernel position k in window o exactly if i == o*stride - pad + k*dilation.
# `taps` counts the kernel positions that can reach the image, from the first such on; `pad` is counted from that one.
# It may be near 2**63, and i + pad beyond: add them unsigned.
cdef struct Axis:
    int64_t size            # positions in out
    int64_t windows         # Lh or Lw
    int64_t taps
    int64_t stride
    int64_t dilation
    int64_t pad

# The columns of one phase, positions w = first, first + stride, ... of out: kernel positions kw + t*kw_step, whose
# terms for the i-th position lie in window i + window - t*window_step.
cdef struct Phase:
    int64_t kw
    int64_t taps
    int64_t window

cdef enum:
    MOST_LISTED = 1024      # elements of a plane's columns

cdef struct Im2colPlan:
    Axis h
    Axis w
    int64_t channels
    int64_t kernel_rows             # kH*kW: columns of a channel
    int64_t kernel_width            # kW
    int64_t first_column            # of the first taps
    int64_t[3] grad_output_strides  # elements: n, c*kH*kW, l
    int64_t source_bytes            # of gradOutput without gaps, or 0; used where a plane's columns lie side by side
    int64_t[4] out_strides
    int32_t out_dtype
    bint converts                   # out's dtype is not gradOutput's
    bint packs                      # all but SCATTER read dense columns; others are made so, a unit at a time
    int64_t column                  # elements between the columns that these read
    int64_t channel                 # the same between those of two channels
    int32_t algorithm
    bint listed                     # PLACE: where a plane's elements go is listed once for a range
    bint whole                      # SCATTER: the sums of a plane are made at once; windows lie side by side
    int64_t group                   # channels in a unit of work
    int64_t groups
    int64_t band                    # rows of out in a unit of work
    int64_t bands
    bint turns                      # GATHER: out's channels lie side by side, and rows of a group are transposed
    bint streams                    # out is dense, and written past the caches
    int64_t stretch                 # rows that are made at a time before they are
    int64_t kw_step                 # GATHER: the same for all phases
    int64_t window_step
    Phase[MOST_PHASES] phases
    int64_t phase_pitch             # elements between the phases' sums in the scratch
    int64_t at_sums                 # byte offset in a range's scratch; the packed columns lie before them
    int64_t at_lines                # the same of the rows that are to be transposed or streamed
    int64_t[2] full_kernel          # as the caller gave them, of h and w
    int64_t[2] full_dilation
    int64_t[2] full_pad
    int64_t[2] full_stride

cdef extern int im2col_backward "aclnn_bw_im2col_backward" (
    const Context* context, const Arguments* c, Executor** executor) noexcept nogil
cdef extern int64_t facts "aclnn_bw_im2col_backward_facts" (const Executor* executor, Fact* fact) noexcept nogil
cdef extern int result "aclnn_bw_im2col_backward_result" (
    const Context* context, const Arguments* c, Tensor* results) noexcept nogil


cdef inline int has_length(const Context* context, int argument, const IntArray* array) noexcept nogil:
    """The C call takes exactly two values; the one-call function takes one for both axes, too."""
    return length_between(context, argument, array, 1 if context.face == ONE_CALL else 2, 2)


cdef inline int64_t count_windows(int64_t size, int64_t kernel, int64_t dilation, int64_t pad,
                                  int64_t stride) noexcept nogil:
    """Lh or Lw; 0 where no window fits."""
    cdef int64_t room
    if size > SMALL or kernel > SMALL or dilation > SMALL or pad > SMALL:
        return count_wide_windows(size, kernel, dilation, pad, stride)
    room = size - 1 + 2 * pad - dilation * (kernel - 1)
    if room < 0:
        return 0
    return room + 1 if stride == 1 else quotient(room, stride) + 1
