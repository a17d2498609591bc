# cython: cdivision=True
"""The plan of AvgPool2dBackward, shared by checks and kernel; and what its forward has in common."""
from libc.stdint cimport int32_t, int64_t, uint64_t

from aclnn_bw._core.arithmetic cimport ceil_div, least, most, quotient
from aclnn_bw._core.types cimport ALIGNMENT, Arguments, Context, Executor, Fact, Tensor

cdef enum CubeMathType:
    KEEP_DTYPE
    ALLOW_FP32_DOWN_PRECISION
    USE_FP16
    USE_HF32

cdef enum:
    MOST_PHASES = 8     # a row of a longer stride is made of runs, of a shorter one by a transposition of its phases
    FEW_WINDOWS = 3     # in a row of WINDOWS: vectors of its phases would be mostly empty
    FEW_APART = 6       # and of windows that leave out elements, of a stride of phases
    LANES = 16          # channels that ACROSS works on at a time, and LAST at least

cdef enum Rounding:
    ROUND_NONE
    ROUND_F16
    ROUND_HF32

cdef enum Algorithm:
    FILL        # one window covers the whole plane: its share everywhere
    DOUBLE      # kernel and stride 2, dense rows: every element becomes four in one pass
    BANDED      # any geometry: some rows at a time summed along w, then along h, and spread to what they serve
    STREAMED    # as BANDED, one row of windows at a time: for kernels too tall for the scratch
    WINDOWS     # windows that do not meet: zeros, and the share of each window where it lies
    ACROSS      # small planes: whole planes of some channels at once, which are transposed for that
    LAST        # channels side by side in gradInput: many of them at once, which are not transposed

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
    int64_t source_bytes                # from gradOutput's first element to the end of the last in memory
    int64_t[4] grad_input_strides       # of the planes in the scratch, if `turns`
    int64_t[4] to_strides               # gradInput's, if not ACROSS or LAST
    int64_t[2] divisor                  # of window (0, 0): its two factors, or the override and 1
    bint count_include_pad
    bint constant_divisor               # one divisor for every window
    int32_t algorithm
    int32_t rounding                    # of gradOutput, before it is summed
    bint round_result                   # to float16, stored as float32
    # A unit of work is `group` planes, one but for ACROSS, LAST and images whose channels lie side by side, x a band of
    # `band` values of q along h, of rows for ACROSS and LAST, x a tile of `tile` values of q along w. The last group of
    # LAST has at least LANES channels, and fewer than LANES more than `group`.
    int64_t group
    int64_t groups                      # of an image
    int64_t band
    int64_t bands
    int64_t tile
    int64_t tiles
    int64_t taps                        # of a kernel whose sums run in registers at stride 1, else 0
    bint loads                          # LAST: gradOutput has rows, and its windows are brought to the scratch
    bint near                           # LAST: positions are summed from terms, in pairs
    bint far                            # lines are fetched to be written: the tensors leave the caches
    bint pairs                          # stride 2 along w, and as many terms along h, one or two
    bint packs                          # channels side by side in gradOutput: a unit's are brought to the scratch
    bint turns                          # few of them in gradInput: a unit's planes are made in the scratch, and turned
    bint streams                        # rows are made in the scratch, a strip at a time, and go past the caches
    int64_t strip                       # values of q along h whose rows are in the scratch at a time
    int64_t pitch                       # elements from a row of terms or sums to the next
    int64_t packed_row                  # bytes from a packed row of windows to the next
    int64_t packed_plane                # and from one plane's to the next's
    # Byte offsets in a range's scratch.
    int64_t at_terms                    # rows of terms, of their sums along w and, where phases have one term less, of
    int64_t at_long                     # theirs; without terms a row of zeros
    int64_t at_short
    int64_t at_zeros                    # a row of zeros, if `pairs`
    int64_t at_sums                     # STREAMED: the sums of long, then of short phases of h; in each the long, then
    int64_t at_cells                    # the short ones of w; a stride of 3 or more: those of a row, as stored
    int64_t at_row                      # of gradInput, if it is not stored at once
    int64_t at_factors
    int64_t at_packed
    int64_t at_made                     # planes that are turned
    int64_t made_end
    int64_t at_lines                    # rows of gradInput that are streamed
    int64_t lines_end

cdef extern int avg_pool2d_backward "aclnn_bw_avg_pool2d_backward" (
    const Context* context, const Arguments* c, Executor** executor) noexcept nogil
cdef extern int64_t facts "aclnn_bw_avg_pool2d_backward_facts" (const Executor* executor, Fact* fact) noexcept nogil


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


cdef inline Axis make_axis(int64_t size, int64_t out, int64_t kernel, int64_t stride, int64_t pad) noexcept nogil:
    """Cut kernel, stride and pad down to what `size` positions and `out` windows can tell apart.

    The left edge o*stride - pad <= i holds for all positions and windows once pad reaches (out-1)*stride, the right
    edge i < o*stride - pad + kernel once kernel - pad reaches size. Three windows or more have stride <= size by the
    pooling formula; of two, the second begins inside the image, wherever both begin. So afterwards no number is above
    about four times the size, and nothing that follows overflows.
    """
    cdef Axis axis
    axis.size = size
    axis.out = out
    axis.full_kernel = kernel
    axis.full_stride = stride
    axis.full_pad = pad
    axis.stride = stride if out > 1 else size
    axis.pad = least(pad, (out - 1) * axis.stride)
    if out == 2 and axis.stride > size:
        # stride - pad, where the second window begins, is below size and stays; the first one ends behind the image.
        axis.pad -= least(axis.pad, axis.stride - size)
        axis.stride = size
    axis.kernel = axis.pad + least(kernel - pad, size)
    axis.terms = ceil_div(axis.kernel, axis.stride)
    axis.long_phases = axis.kernel - (axis.terms - 1) * axis.stride
    axis.first = quotient(axis.pad, axis.stride)
    axis.count = quotient(size - 1 + axis.pad, axis.stride) + 1 - axis.first
    return axis


cdef inline bint constant_length(const Axis* axis, bint include_pad) noexcept nogil:
    """Whether all windows are equally long. The length is concave in o: equal at the first two and the last, it is
    constant."""
    cdef int64_t length
    if axis.out == 1:
        return True
    length = window_length(axis, 0, include_pad)
    return (length == window_length(axis, least(1, axis.out - 1), include_pad)
            and length == window_length(axis, axis.out - 1, include_pad))


cdef inline void lay_flat(Axis* h, Axis* w, int64_t* strides, int64_t* others, int64_t* channels, int64_t widest,
                          int64_t longest) noexcept nogil:
    """Windows that are the positions of the image, in rows of up to `widest`: make one row of a plane whose rows lie
    end to end in both tensors, and of as many planes that do as divide the channels and are no longer than `longest`.
    Else a loop would be as short as a row (to 4 times as fast). The strides are of n, c, h, w."""
    cdef int64_t n = h.size * w.size
    cdef int64_t together = 1
    cdef int64_t tries = 64
    if (w.size > widest or n == 1 or h.full_kernel > 1 or w.full_kernel > 1 or h.full_stride > 1 or w.full_stride > 1
            or strides[3] != 1 or others[3] != 1 or strides[2] != w.size or others[2] != w.size):
        return
    if strides[1] == n and others[1] == n:
        together = most(1, least(channels[0], quotient(longest, n)))
        while quotient(channels[0], together) * together != channels[0]:
            tries -= 1
            together = together - 1 if tries > 0 else 1
    n *= together
    channels[0] = quotient(channels[0], together)
    if together > 1:
        strides[1] = strides[0] if channels[0] == 1 else n
        others[1] = others[0] if channels[0] == 1 else n
    strides[2] = strides[1]
    others[2] = others[1]
    h[0] = make_axis(1, 1, 1, 1, 0)
    w[0] = make_axis(n, n, 1, 1, 0)


cdef inline int64_t lines_apart(int64_t bytes) noexcept nogil:
    """An odd number of cache lines: planes that are filled side by side meet in no set of the cache."""
    return (ceil_div(bytes, ALIGNMENT) | 1) * ALIGNMENT


cdef inline int64_t by_item(int64_t item, int64_t two, int64_t four, int64_t eight) noexcept nogil:
    """A limit that depends on the dtype."""
    return two if item == 2 else four if item == 4 else eight


cdef inline bint in_pairs(const Axis* h, const Axis* w) noexcept nogil:
    """LAST: whether one or two columns of windows hold a position, others than the next one's, and so do rows."""
    return (h.terms == 2 and h.stride <= 2 and h.long_phases == 1
            and w.terms == 2 and w.stride == 2 and w.long_phases == 1)


cdef inline bint is_doubled(const Axis* axis) noexcept nogil:
    """Every window is two positions, the first at 0; at most the last position lies in none."""
    return (axis.stride == 2 and axis.terms == 1 and axis.long_phases == 2 and axis.pad == 0
            and 2 * axis.out <= axis.size)
