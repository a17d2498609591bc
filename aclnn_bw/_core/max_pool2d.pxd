"""The plans of MaxPool2dWithMask and MaxPool2dWithIndices and of their gradients, shared by checks and kernels.

The mask. With K = kH*kW, P = Ho*Wo, B = ceil(P/16) and groups = ceil(C/16), the layout "bitmask" is an array of
little-endian uint16 words [N, groups, K, (B+1)*16] from the container's first byte: bit j of word (n, group, k, p) says
that channel 16*group + j has the maximum of output position p at kernel position k. The layout "argmax" is an int32
array [N, C, Ho, Wo] of ih*W + iw. Readers ignore all else in the container, writers zero it.

Indices are the same numbers in a tensor of their own, int32 or int64, of any strides.
"""
from libc.stdint cimport int32_t, int64_t, uint32_t

from aclnn_bw._core.types cimport Arguments, Context, Executor, Fact, Tensor

cdef enum:
    LANES = 16      # channels in a mask word; also the words to which a row of the mask is rounded up
    BLOCK = 256     # windows whose places SCATTER finds at a time
    LISTED = 64     # windows that GATHER_LAST asks for a position in bits, at most
    MOST_COLUMNS = 64   # of a kernel, with which the forward compares at a time

    TEAM = 4        # channels that GATHER sums at a time: they share mask words, or the indices that are looked for
    MOST_ROWS = 16  # of a kernel whose columns are known: at most 32 positions in all
    RECIPROCAL_BITS = 24
    SMALL_PLANE = 64    # positions
    INDEX_LIMIT = 2147483647    # positions of a plane that an int32 index counts

# The columns of a kernel, as GATHER knows them.
cdef enum MaxPoolColumns:
    ANY_COLUMNS     # up to 4 at stride 1 or 2
    THREE_BY_TWO    # 3 at stride 2
    TWO_BY_TWO      # 2 at stride 2
    THREE_BY_ONE    # 3 at stride 1, without padding
    SAME            # 3 at stride 1 and padding 1: as many columns as windows

cdef enum MaxPoolAlgorithm:
    PLANES      # SCATTER of the bits of whole planes of few windows, or small ones under large kernels
    GATHER_ACROSS   # bits of small planes: each position asks the windows that hold it, for 16 channels at once
    GATHER      # each element of gradInput asks the windows that hold it
    GATHER_LAST     # likewise, of many channels, which lie side by side in gradOutput and gradInput
    SCATTER_LAST    # of such channels, each window adds to its maximum: indices of kernels of many positions
    SCATTER     # each window adds to its maximum: for kernels of many positions, and few windows to a row
    EACH        # indices of planes that int32 does not count: as SCATTER or SCAN, straight from memory
    PHASES      # forward: a row of the image split by its columns' phases, windows side by side in a vector
    SCAN        # forward: one window after the other
    ACROSS      # forward: likewise, of all channels of a group at once
    LAST        # forward: likewise, of many channels, which lie side by side in self

# One axis: position i lies in window o if and only if 0 <= i + pad - o*stride < kernel. With i + pad = q*stride + r,
# that is the windows q-m+1 .. q at kernel positions r + t*stride, t = 0 .. m-1.
cdef struct PoolAxis:
    int64_t size
    int64_t out
    int64_t kernel
    int64_t stride
    int64_t pad
    int64_t terms           # the largest m

# The geometry and the mask: the first member of the plan of each form.
cdef struct MaxPool2d:
    PoolAxis h
    PoolAxis w
    # Of all images for `argmax`, if their planes are evenly apart in every tensor, and in ACROSS where images share a
    # group; else of one.
    int64_t channels
    int64_t image_channels  # of one
    int64_t[4] pooled_strides       # of gradOutput or out, in elements: n, c, h, w
    int64_t[4] image_strides        # of gradInput or self
    int64_t source_bytes            # from the first element of gradOutput or self to the end of the last in memory
    int64_t lanes           # channels of a unit
    int64_t groups          # of so many channels; of LAST the last one has what is left, too
    int64_t band            # rows of a unit: of gradInput, or of windows
    int64_t bands
    int64_t units           # batch * groups * bands; batch is 1 where `channels` are those of all images
    int64_t kernel_size     # K
    int64_t pitch           # words in a row of the mask, (B+1)*16
    int64_t mask_end        # bytes of the container that the layout uses
    int64_t mask_bytes      # bytes of the container
    bint argmax             # indices, in a mask or in a tensor of their own
    int32_t index_argument  # which: ARG_MASK or ARG_INDICES
    int64_t index_item      # bytes of an index, 4 or 8
    int64_t[4] index_strides    # in elements: n, c, h, w
    # The gradient looks up int32 indices, the rows of a plane end to end: where they lie, or packed into the scratch.
    bint packed
    int64_t index_pitch     # from one channel's to the next's
    int64_t at_indices      # byte offset in a range's scratch
    bint reduced            # Ascend910, float32: values are rounded to float16, and so are sums
    bint disjoint           # no two windows have a position in common
    bint far                # the tensors leave the caches; SCATTER, PLANES: and what is cleared is fetched before
    int32_t algorithm
    int64_t[2] full_kernel  # as the caller gave them
    int64_t[2] full_stride
    int64_t[2] full_pad

# What the indices of an argmax mask are compared with; at_columns is a byte offset in a range's scratch.
cdef struct MaxPool2dWindows:
    int64_t at_columns      # the windows of a row, then those of the planes that are listed
    int64_t listed          # planes whose windows are listed: 0, 1 or `few`
    uint32_t reciprocal     # 2**24 / w.size, rounded up; 0 where quotients are not exact

cdef struct MaxPool2dGatherPlan:
    MaxPool2d pool
    MaxPool2dWindows windows
    bint streams            # rows are made in the scratch, and go past the caches
    bint flat               # rows are laid end to end for the kernel
    bint pixels             # channels lie side by side in gradInput: those of a sweep are transposed
    int32_t known           # MaxPoolColumns
    int64_t team            # channels that are summed at a time
    int64_t sweep           # channels whose rows are in the scratch at a time
    int64_t chunk           # rows of gradInput that are made at a time
    int64_t row_pitch       # elements between rows in the scratch
    # Byte offsets in a range's scratch.
    int64_t at_rows
    int64_t at_sums
    int64_t at_cells
    int64_t at_edges
    int64_t at_rests        # what is left of each channel's last line
    int64_t rests           # LANES: a loop over a constant is unrolled into each type's kernel, 3 KB in each

# SCATTER and PLANES.
cdef struct MaxPool2dScatterPlan:
    MaxPool2d pool
    MaxPool2dWindows windows
    bint placed             # the places of maxima are found for all channels of a group at a time
    bint marked             # so few windows that sums are stored as they are made, among zeros; none is streamed
    int64_t few             # whole planes that are checked, cleared and scattered, or spread, at a time, or 0
    bint spread             # windows of one position each: gradients are spread over gradInput
    bint streams            # sums are made in the scratch, and go past the caches
    bint ahead              # what the next windows read is fetched while those before are added
    int64_t together        # channels whose indices are added side by side: 2 to TEAM
    int64_t apart           # elements between the sums of two kernel columns, or 0 where they are one
    int64_t block           # rows of windows that are read at a time
    int64_t rows            # of sums that the scratch holds
    int64_t sweep           # channels whose sums are in the scratch at a time
    int64_t row_pitch       # elements between the gradients of two channels in the scratch
    int64_t sum_pitch       # elements between the sums of two channels
    # Byte offsets in a range's scratch.
    int64_t at_rows
    int64_t at_sums
    int64_t at_cells
    int64_t at_places
    int64_t at_rests        # what is left of each channel's last line

# What GATHER_ACROSS adds to a position: where a window's gradient lies, in elements, and its word, in bytes.
cdef struct MaxPool2dTerm:
    int32_t grad
    int32_t word

# GATHER_LAST, SCATTER_LAST and GATHER_ACROSS.
cdef struct MaxPool2dLastPlan:
    MaxPool2d pool
    bint apart              # each kernel column is summed by itself
    bint in_place           # sums are made where they are stored
    bint turned             # channels lie side by side in gradInput alone: gradients are transposed for a band
    bint fetched            # GATHER_ACROSS: what the next planes take is fetched ahead; they lie end to end
    int64_t item            # GATHER_ACROSS: bytes of a gradient
    # Byte offsets in a range's scratch.
    int64_t at_grads
    int64_t at_sums
    int64_t at_wide         # the gradients of a window, widened
    int64_t at_counts       # GATHER_ACROSS: how many windows hold each position
    int64_t at_terms        # and these

cdef struct MaxPool2dForwardPlan:
    MaxPool2d pool
    bint coded              # the mask is made from codes of the maxima's positions
    bint maxima_last        # LAST: channels lie side by side in out, too
    bint indices_last       # and in indices, and neither becomes planes or lines in the scratch first
    int64_t sharing         # ACROSS and LAST: channels of a group, at most, that share words
    bint along              # each row of the image is compared once for all windows that it is in
    int64_t phases          # into which a row of the image is split
    int64_t phase_pitch     # elements between two phases of a row
    int64_t kept            # rows of the image that the scratch holds; of ACROSS and LAST, what was made `along` them
    int64_t lines           # PHASES: rows of windows that they are enough for, or 1 that takes them part by part
    int64_t row_pitch       # elements between two rows of windows in the scratch
    # Byte offsets in a range's scratch.
    int64_t at_rows
    int64_t at_cells
    int64_t at_maxima
    int64_t at_best
    int64_t at_labels
    int64_t at_starts
    int64_t at_firsts
    int64_t at_places
    int64_t at_codes

# mask_to_indices and indices_to_mask; pooled_strides are those of the indices.
cdef struct MaxPool2dMasksPlan:
    MaxPool2d pool
    int32_t dtype           # of the indices
    bint none               # -1 stands for no index
    bint coded              # words are made from codes of a band
    int64_t reciprocal      # 2**24 / w.size, rounded up, or 0 where windows are not listed
    int64_t block           # to indices: rows of windows whose places are found at a time, or 0
    # Byte offsets in a range's scratch.
    int64_t at_codes
    int64_t at_offsets
    int64_t at_indices
    int64_t at_band

# Sizes that follow from the attributes; of `self` they need dims and rank.
cdef struct MaxPool2dShapes:
    int64_t[4] out                  # N, C, Ho, Wo, or C, Ho, Wo
    int64_t[4] indices              # N, C, kH*kW, bytes, or without N
    int64_t[2] kernel
    int64_t[2] stride
    int64_t[2] pad

# What max_pool2d_indices.pyx shares with max_pool2d.pyx.
cdef extern int check_pool_format "aclnn_bw_check_pool_format" (
    const Context* context, int argument, const Tensor* tensor) noexcept nogil
cdef extern int read_pool "aclnn_bw_read_pool" (
    const Context* context, const Arguments* c, MaxPool2dShapes* shapes) noexcept nogil
cdef extern int find_pooled "aclnn_bw_find_pooled" (
    const Context* context, const Tensor* self, bint ceil_mode, MaxPool2dShapes* shapes) noexcept nogil

cdef extern int max_pool2d_with_mask_backward "aclnn_bw_max_pool2d_with_mask_backward" (
    const Context* context, const Arguments* c, Executor** executor) noexcept nogil
cdef extern int64_t backward_facts "aclnn_bw_max_pool2d_with_mask_backward_facts" (
    const Executor* executor, Fact* fact) noexcept nogil
cdef extern int max_pool2d_with_mask "aclnn_bw_max_pool2d_with_mask" (
    const Context* context, const Arguments* c, Executor** executor) noexcept nogil
cdef extern int64_t forward_facts "aclnn_bw_max_pool2d_with_mask_facts" (
    const Executor* executor, Fact* fact) noexcept nogil
cdef extern int forward_result "aclnn_bw_max_pool2d_with_mask_result" (
    const Context* context, const Arguments* c, Tensor* results) noexcept nogil
cdef extern int max_pool2d_shapes "aclnn_bw_max_pool2d_shapes" (
    const Context* context, const Arguments* c, MaxPool2dShapes* shapes) noexcept nogil
