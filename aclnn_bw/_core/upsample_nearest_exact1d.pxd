"""The plan of UpsampleNearestExact1dBackward, shared by checks and kernel; and what its forward has in common."""
from libc.stdint cimport int32_t, int64_t, uint8_t

from aclnn_bw._core.arithmetic cimport ceil_div, round_up
from aclnn_bw._core.names cimport format_name, name
from aclnn_bw._core.status cimport refuse
from aclnn_bw._core.types cimport (
    ALIGNMENT, ERR_INVALID, FORMAT_NCL, FORMAT_ND, SUCCESS, Arguments, Context, Executor, Fact, Tensor,
)

cdef enum:
    MOST_TERMS = 8          # of a target in a group
    WIDEST = 16             # targets of a group
    SPAN = 32               # sources that a group may own: two vectors of 16
    LANES = 24              # WIDEST + 1, and as many more as fill 32 bytes

# The index rule of one row: source j of gradOutput adds to target floor((j + 0.5) * ratio) of out, with the roundings
# of index_of. Where ratio is that of the sizes, that is floor((2*j + 1) * p / (2*q)), with p / q = targets / sources in
# lowest terms, unless (2*j + 1) * p lies within `margin` of a multiple of 2*q.
cdef struct NearestMap:
    int64_t sources
    int64_t targets
    int64_t p           # 0 where ratio is another one
    int64_t q
    int64_t margin      # 0: there is no exception
    float ratio

# A stretch of the map: which sources each of some targets in sequence owns. Behind this header lies its table: for
# `width` > 0 one Group for every `width` targets, of which none owns more than `terms` sources; for `width` == 0, where
# a target owns more than MOST_TERMS, the first source of every target and of the end, as int64; for both 0, where no
# target owns more than one source and most own none, the target of every source, counted from the block's, as int64.
cdef struct Block:
    int64_t first           # source, within the row
    int64_t targets
    int64_t sources
    int32_t width
    int32_t terms

# Target l of a group owns the sources first + lane[l] up to, not including, first + lane[l + 1]; lane[width] <= 32.
cdef struct Group:
    int64_t first           # relative to the block's
    uint8_t[LANES] lane

cdef enum Tables:
    PERIODIC        # one table for all blocks: the map repeats itself after its targets
    WHOLE           # the executor holds the table of every block
    FILLED          # phase 2 fills one table at a time, in its scratch: the map is too long
    NO_TABLE        # few rows: phase 2 finds the target of each source, in each of them

cdef enum Layout:
    ROWS        # rows lie apart for each channel
    PACKED      # the channels of gradOutput lie side by side, those of out do not: groups of them are transposed
    PIXELS      # the channels of both do: what is summed is all channels of a source
    UNPACKED    # those of out alone do: groups of them are transposed

cdef struct UpsampleNearestExact1dPlan:
    NearestMap map
    int32_t layout
    int64_t depth                       # channels of a row: 1, all if PIXELS, a group of them if PACKED or UNPACKED
    int64_t all_channels
    bint by_pixels                      # PACKED, UNPACKED: results, or sources, are transposed, for rows are short
    bint returns                        # PACKED: results are transposed, too, for channels of out lie side by side
    int64_t packed                      # bytes of scratch for a block of these, or a row; what needs more does without
    int64_t made                        # and behind them for results that are streamed, or transposed, afterwards
    int64_t channels                    # rows of an n
    int64_t rows                        # n, c; or one, of all rows joined end to end
    int64_t targets                     # of a row, joined or not
    int64_t sources
    int64_t[3] grad_output_strides      # elements: n, c, l
    int64_t extent                      # elements from gradOutput's first one to the end of the last in memory
    int64_t[3] out_strides
    # A unit of work is `block` targets of a row, the last one of a row fewer. Units count the blocks of a row first,
    # with FILLED tables the rows of a block.
    int64_t block
    int64_t blocks
    int32_t tables
    int32_t scatters                    # blocks are lists of targets where no target owns more than one source
    bint streams                        # out is written past the caches, block by block, each made in `packed` bytes
    int64_t table_bytes                 # from one table to the next, behind this struct

cdef extern int upsample_nearest_exact1d_backward "aclnn_bw_upsample_nearest_exact1d_backward" (
    const Context* context, const Arguments* c, Executor** executor) noexcept nogil
cdef extern int64_t facts "aclnn_bw_upsample_nearest_exact1d_backward_facts" (
    const Executor* executor, Fact* fact) noexcept nogil
cdef extern int result "aclnn_bw_upsample_nearest_exact1d_backward_result" (
    const Context* context, const Arguments* c, Tensor* results) noexcept nogil
cdef extern int64_t first_source "aclnn_bw_first_nearest_source" (
    const NearestMap* map, int64_t target) noexcept nogil
cdef extern void fill_block "aclnn_bw_fill_nearest_block" (
    const NearestMap* map, int64_t begin, int64_t targets, bint scatters, Block* block) noexcept nogil


cdef inline int64_t block_bytes(int64_t targets) noexcept nogil:
    """Of a block with its table, whatever its width: 8 for each target, and one group to spare."""
    return round_up(<int64_t>(sizeof(Block) + sizeof(Group)) + 8 * (targets + 1), ALIGNMENT)


cdef inline int64_t packed_row(int64_t sources, int64_t item) noexcept nogil:
    """The bytes from one row of the scratch to the next, with as many to spare as a group may read beyond its sources:
    an odd number of cache lines, so that no two of 64 rows share a set of the L1 cache."""
    return (ceil_div((sources + SPAN) * item, ALIGNMENT) | 1) * ALIGNMENT


cdef inline int64_t index_of(const NearestMap* map, int64_t j) noexcept nogil:
    """The target of source j. Compared before it is converted: the product may be infinite."""
    cdef float place = <float>((<double>j + 0.5) * <double>map.ratio)
    return <int64_t>place if place < <double>map.targets else map.targets - 1


cdef inline int32_t short_index_at(double middle, float ratio, int32_t last) noexcept nogil:
    """index_of for the source whose middle, j + 0.5, is given, with 32-bit integers, as vectors convert them: `last` is
    the last target. The largest float32 below 2**31 is beyond every target."""
    cdef float place = <float>(middle * ratio)
    cdef int32_t index = <int32_t>(place if place < <float>2147483520.0 else <float>2147483520.0)
    return index if index < last else last


cdef inline int check_rank(const Context* context, int argument, const Tensor* tensor) noexcept nogil:
    if tensor.rank != 3:
        return refuse(ERR_INVALID, "%s.rank = %d: must be 3 (N, C, L)", name(context, argument), tensor.rank)
    return SUCCESS


cdef inline int check_format(const Context* context, int argument, const Tensor* tensor) noexcept nogil:
    if tensor.format != FORMAT_NCL and tensor.format != FORMAT_ND:
        return refuse(ERR_INVALID, "%s.format = %s: must be ACL_FORMAT_NCL or ACL_FORMAT_ND", name(context, argument),
                      format_name(tensor.format))
    return SUCCESS
