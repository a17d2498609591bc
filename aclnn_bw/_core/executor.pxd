"""The executor: what phase 1 leaves for phase 2, and the rules of its life."""
from libc.stdint cimport int64_t, uint64_t

from aclnn_bw._core.arithmetic cimport ceil_div, least, most
from aclnn_bw._core.types cimport Context, Executor, RangeFn, Run, Tensor

cdef extern Executor* new_executor "aclnn_bw_new_executor" (
    const Context* context, int op, int64_t plan_size) noexcept nogil
cdef extern void delete_executor "aclnn_bw_delete_executor" (Executor* executor) noexcept nogil
cdef extern int check_tensors "aclnn_bw_check_tensors" (
    const Context* context, const Executor* executor) noexcept nogil
cdef extern void set_work "aclnn_bw_set_work" (
    Executor* executor, const Context* context, RangeFn kernel, int64_t units, int64_t bytes,
    int64_t scratch) noexcept nogil
cdef extern int make_repeatable "aclnn_bw_make_repeatable" (Executor* executor) noexcept nogil
cdef extern int rebind "aclnn_bw_rebind" (
    Executor* executor, const Context* context, int64_t index, const Tensor* tensor) noexcept nogil
cdef extern int accept "aclnn_bw_accept" (
    Executor* executor, int op, char* workspace, int64_t size, int64_t queue, Run* run) noexcept nogil
cdef extern void retract "aclnn_bw_retract" (Run* run) noexcept nogil
cdef extern bint begin_team "aclnn_bw_begin_team" (Run* run) noexcept nogil
cdef extern void run_range "aclnn_bw_run_range" (Run* run, int64_t index) noexcept nogil
cdef extern int finish "aclnn_bw_finish" (Run* run) noexcept nogil
cdef extern int execute "aclnn_bw_execute" (
    Executor* executor, int op, char* workspace, int64_t size) noexcept nogil

cdef enum:
    # Below twice this, waking a second thread costs as much as it saves; drawn cases of 128 to 256 KiB gain 1.45 times,
    # of 512 KiB to 1 MiB 1.7 (python -m benchmarks.sweep).
    BYTES_PER_THREAD = 65536
    CHANNEL_BLOCK = 16      # channels: the lanes of the longest vector of float32


cdef inline bint goes_past(const Context* context, int64_t bytes, int64_t limit) noexcept nogil:
    """Whether results go past the caches. Pages that nobody has touched are zeroed first, in the caches: past these
    they would be written to memory twice, which takes 1.05 to 1.3 times as long."""
    return bytes > limit and not context.fresh


cdef inline int64_t useful_threads(int64_t threads, int64_t bytes) noexcept nogil:
    """As many of them as `bytes` of traffic are worth."""
    return most(1, least(threads, bytes // BYTES_PER_THREAD))


cdef inline int64_t group_channels(int64_t channels, int64_t most_blocks, int64_t units) noexcept nogil:
    """Channels of a group, of those that lie side by side: at most as many blocks, and so few that there are `units`
    groups, if there are as many blocks."""
    cdef int64_t blocks = channels // CHANNEL_BLOCK
    most_blocks = most(1, least(most_blocks, blocks // units))
    return ceil_div(blocks, ceil_div(blocks, most_blocks)) * CHANNEL_BLOCK


cdef inline int64_t count_groups(int64_t channels, int64_t group) noexcept nogil:
    """The last one has what is left: fewer blocks, one at least, and the channels behind whole blocks."""
    return ceil_div(channels // CHANNEL_BLOCK, group // CHANNEL_BLOCK)


cdef inline int64_t widest_group(int64_t channels, int64_t group) noexcept nogil:
    return most(group, channels - (count_groups(channels, group) - 1) * group)
