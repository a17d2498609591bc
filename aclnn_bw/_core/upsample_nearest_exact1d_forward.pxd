"""The plan of UpsampleNearestExact1d, shared by its checks and its kernel."""
from libc.stdint cimport int32_t, int64_t

from aclnn_bw._core.types cimport Arguments, Context, Executor, Fact, Tensor
from aclnn_bw._core.upsample_nearest_exact1d cimport NearestMap

cdef enum ForwardLayout:
    PLANES      # rows lie apart for each channel, in any strides
    PIXELS      # the channels of both lie side by side: what is copied is all channels of a source
    PACKED      # those of self alone do: groups of them are transposed
    UNPACKED    # those of out alone do: likewise

cdef enum Way:
    TWICE       # element j copies j // 2
    SECOND      # element j copies 2*j + 1
    FOUND       # a table of sources is found for a block, and serves all rows

cdef enum:
    LONGEST_BLOCK = 16384   # elements whose sources are found at a time

# Strides are bytes.
cdef struct UpsampleNearestExact1dForwardPlan:
    NearestMap map          # its sources are out's elements, its targets self's
    int64_t channels        # all
    int64_t group           # of a row: 1; PIXELS all, and what is transposed a group, the last one having what is left
    int64_t groups
    int64_t rows            # n, group
    int64_t item            # an element
    int64_t pitch           # elements of a channel in the scratch, where groups are transposed
    int64_t[3] self_strides     # n, c, l
    int64_t source_bytes        # from self's first element to the end of the last in memory
    int64_t[3] out_strides
    # A unit of work is `block` elements of a row, an even number; units count the rows of a block first.
    int64_t block
    int64_t blocks
    int32_t layout
    int32_t way
    bint streams            # out is written past the caches, a strip at a time
    bint shrinks            # more sources than elements: these are transposed, not their sources
    bint few                # rows of at most FEW elements, dense, evenly apart over n and c, a unit each

cdef extern int upsample_nearest_exact1d "aclnn_bw_upsample_nearest_exact1d" (
    const Context* context, const Arguments* c, Executor** executor) noexcept nogil
cdef extern int result "aclnn_bw_upsample_nearest_exact1d_result" (
    const Context* context, const Arguments* c, Tensor* results) noexcept nogil
cdef extern int64_t facts "aclnn_bw_upsample_nearest_exact1d_facts" (
    const Executor* executor, Fact* fact) noexcept nogil
