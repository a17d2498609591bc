"""The plan of AvgPool2d, shared by its checks and its kernel."""
from libc.stdint cimport int32_t, int64_t

from aclnn_bw._core.avg_pool2d cimport Axis
from aclnn_bw._core.types cimport Arguments, Context, Executor, Fact, Tensor

cdef enum ForwardAlgorithm:
    ROWS        # one row of windows at a time: the sums down its columns, then those across
    FLAT        # stride 1, as many windows as columns: some rows at a time, as if they were one
    PAIRS       # kernel and stride 2, dense rows: both sums in registers
    WIDE        # windows too wide for the scratch, or one a plane: one after the other, some columns at a time
    FEW         # small windows, one or two to a row: one after the other, an element at a time
    ACROSS      # small planes: whole planes of some channels at once, which are transposed for that
    LAST        # channels side by side in self: many of them at once, which are not transposed
    PACKED      # besides: the channels of one side lie side by side: rows of a group of them are transposed

cdef enum:
    WIDEST = 512        # columns that WIDE sums at a time

# Strides count elements; Axis is that of the gradient, `size` being self's and `out` the windows. What lies behind the
# last window may be cut off `size` along h and w; `count` and `long_phases` are those of the whole.
cdef struct AvgPool2dForwardPlan:
    Axis h
    Axis w
    int64_t channels
    int64_t[4] self_strides     # n, c, h, w
    int64_t source_bytes        # from self's first element to the end of the last in memory
    int64_t[4] out_strides
    double divisor              # of every window, if constant_divisor
    bint constant_divisor
    bint count_include_pad
    bint round_half             # self, and the result, to float16, stored as float32
    int32_t algorithm
    bint packs                  # PACKED of self,
    bint unpacks                # and of out: rows are made in the scratch, whose strides along h and w are those of
    int64_t[2] unpacked_strides     # `out_strides`, and these are out's
    bint stores                 # LAST: windows are made in the scratch, for out has rows
    # A unit of work is a group of channels x a band of rows of windows x a tile of windows of a row. The last
    # group of LAST has at least LANES channels, and fewer than LANES more than `group`.
    int64_t group
    int64_t groups
    int64_t band
    int64_t bands
    int64_t tile
    int64_t tiles
    int64_t rows                # FLAT: of windows, whose sums are in the scratch at a time
    int64_t ahead               # ROWS: bytes to what is read later and fetched now, or 0
    # Elements of a range's scratch.
    int64_t columns             # of the sums down the columns of a tile, the padding included
    int64_t pitch               # from the sums of a column's phase to the next one's
    int64_t at_phases
    int64_t at_results
    int64_t at_divisors
    int64_t at_packed           # bytes
    int64_t at_unpacked
    int64_t packed_plane        # elements of self's type
    int64_t unpacked_plane

cdef extern int avg_pool2d "aclnn_bw_avg_pool2d" (
    const Context* context, const Arguments* c, Executor** executor) noexcept nogil
cdef extern int result "aclnn_bw_avg_pool2d_result" (
    const Context* context, const Arguments* c, Tensor* results) noexcept nogil
cdef extern int64_t facts "aclnn_bw_avg_pool2d_facts" (const Executor* executor, Fact* fact) noexcept nogil
