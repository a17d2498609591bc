"""The executor: made by phase 1, accepted, run range by range and finished by phase 2.

A single-use executor is spent by the first accepted run. A repeatable one is claimed while a run of it is queued or
running: by one direct caller, or by any number of runs on one queue. Both are one atomic word, so that callers in
many threads need no lock.
"""
from libc.stdint cimport int32_t, int64_t, uint64_t, uintptr_t
from libc.stdlib cimport free, malloc
from libc.string cimport memset

from aclnn_bw._core.arithmetic cimport least, most, mul_overflows, round_up
from aclnn_bw._core.checks cimport apart
from aclnn_bw._core.names cimport name, null, operator_name
from aclnn_bw._core.status cimport refuse, wide
from aclnn_bw._core.tensor cimport (
    check_alignment, check_bounds, check_injective, check_writable, item_size, tensor_meets,
)
from aclnn_bw._core.types cimport (
    ALIGNMENT, ALL_GOOD, BROKEN_STRIDE, ERR_INNER, ERR_INVALID, ERR_NULLPTR, MAX_TENSORS, MISALIGNED, READ, SHAPE,
    SUCCESS, WRITABLE, WRITTEN, Context, Executor, RangeFn, Run, Tensor,
)

cdef extern from "floating_mode.h" nogil:
    ctypedef struct floating_mode "aclnn_bw_floating_mode":
        pass
    floating_mode enter_default_mode "aclnn_bw_enter_default_mode" () noexcept
    void leave_default_mode "aclnn_bw_leave_default_mode" (floating_mode) noexcept

cdef extern from "contention.h" nogil:
    """
    static aclnn_bw_contention aclnn_bw_cores;
    """
    ctypedef struct Contention "aclnn_bw_contention":
        pass
    Contention cores "aclnn_bw_cores"
    int64_t clock "aclnn_bw_clock" () noexcept
    bint is_contended "aclnn_bw_is_contended" (const Contention* cores, int64_t now) noexcept
    void judge_team "aclnn_bw_judge_team" (
        Contention* cores, int64_t threads, int64_t begun, int64_t left, int64_t now) noexcept

cdef extern from * nogil:
    """
    static int aclnn_bw_exchange(int32_t *word, int32_t value)
    {
        return __atomic_exchange_n(word, value, __ATOMIC_ACQ_REL);
    }
    static int aclnn_bw_replace(uint64_t *word, uint64_t *expected, uint64_t value)
    {
        return __atomic_compare_exchange_n(word, expected, value, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
    }
    static void aclnn_bw_lower(int64_t *word, int64_t value)
    {
        int64_t seen = __atomic_load_n(word, __ATOMIC_RELAXED);
        while ((seen < 0 || value < seen)
               && !__atomic_compare_exchange_n(word, &seen, value, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
            ;
    }
    static uint64_t aclnn_bw_load(const uint64_t *word) { return __atomic_load_n(word, __ATOMIC_ACQUIRE); }
    """
    int exchange "aclnn_bw_exchange" (int32_t* word, int32_t value) noexcept
    void lower "aclnn_bw_lower" (int64_t* word, int64_t value) noexcept      # to the least value >= 0
    bint replace "aclnn_bw_replace" (uint64_t* word, uint64_t* expected, uint64_t value) noexcept
    uint64_t load "aclnn_bw_load" (const uint64_t* word) noexcept

cdef enum:
    LEAST_TEAM_LIMIT = 16       # a team is not larger than this or four times the cores: libgomp crashes on huge ones


cdef Executor* new_executor(const Context* context, int op, int64_t plan_size) noexcept nogil:
    """An executor without tensors, with a zeroed plan behind it: in the caller's room if that is large enough, else in
    memory of its own; NULL without memory."""
    cdef int64_t header = round_up(sizeof(Executor), ALIGNMENT)
    cdef bint lent = header + plan_size <= context.room_size
    cdef Executor* executor = <Executor*>(context.room if lent else malloc(<size_t>(header + plan_size)))
    if executor != NULL:
        memset(executor, 0, sizeof(Executor) - sizeof(executor.tensor))
        executor.op = op
        executor.lent = lent
        executor.plan = <char*>executor + header
        memset(executor.plan, 0, <size_t>plan_size)
    return executor


cdef void delete_executor(Executor* executor) noexcept nogil:
    if executor != NULL and not executor.lent:
        free(executor)


cdef bint is_row_major(const Tensor* tensor, int64_t* size) noexcept nogil:
    """Whether the elements of a view lie one behind the other, inside its storage; `size` is their number."""
    cdef int64_t step = 1
    cdef int64_t i
    cdef bint dense = True
    for i in range(tensor.rank - 1, -1, -1):
        dense = dense and (tensor.strides[i] == step or tensor.dims[i] == 1)
        if mul_overflows(step, tensor.dims[i], &step):
            return False
    size[0] = step
    return dense and 0 <= tensor.offset <= tensor.storage - step


cdef bint tensors_are_good(const Executor* executor) noexcept nogil:
    """Whether check_tensors has nothing to say, found quickly: the usual case of tensors that are dense and lie apart.
    With it both phases of a tiny call with other arguments take a fifth less (python -m benchmarks.c_library)."""
    cdef uintptr_t[MAX_TENSORS] begin
    cdef uintptr_t[MAX_TENSORS] end
    cdef const Tensor* tensor
    cdef int64_t size = 0
    cdef int64_t item
    cdef int i, j
    for i in range(executor.tensors):
        tensor = &executor.tensor[i]
        if tensor.flags & (MISALIGNED | BROKEN_STRIDE) or not is_row_major(tensor, &size):
            return False
        item = item_size(tensor.dtype)
        begin[i] = <uintptr_t>tensor.data + <uintptr_t>(tensor.offset * item)
        end[i] = begin[i] + <uintptr_t>(size * item)
    for i in range(executor.tensors):
        if executor.roles[i] != WRITTEN or executor.tensor[i].data == NULL:
            continue
        if not executor.tensor[i].flags & WRITABLE:
            return False
        for j in range(executor.tensors):
            if (i != j and executor.roles[j] != SHAPE and executor.tensor[j].data != NULL
                    and begin[i] < end[j] and begin[j] < end[i]):
                return False
    return True


cdef int check_tensors(const Context* context, const Executor* executor) noexcept nogil:
    """Writability, then alignment, then bounds of every tensor; then overlap of outputs with themselves and with inputs
    that are read."""
    cdef int status = SUCCESS
    cdef int i, j
    if tensors_are_good(executor):
        return SUCCESS
    for i in range(executor.tensors):
        if status == SUCCESS and executor.roles[i] == WRITTEN:
            status = check_writable(context, executor.arguments[i], &executor.tensor[i])
    for i in range(executor.tensors):
        if status == SUCCESS:
            status = check_alignment(context, executor.arguments[i], &executor.tensor[i])
    for i in range(executor.tensors):
        if status == SUCCESS:
            status = check_bounds(context, executor.arguments[i], &executor.tensor[i])
    for i in range(executor.tensors):
        if status == SUCCESS and executor.roles[i] == WRITTEN:
            status = check_injective(context, executor.arguments[i], &executor.tensor[i])
            for j in range(executor.tensors):
                if status == SUCCESS and (executor.roles[j] == READ
                                          or (executor.roles[j] == WRITTEN and j < i)):
                    status = apart(context, executor.arguments[i], &executor.tensor[i],
                                   executor.arguments[j], &executor.tensor[j])
    return status


cdef void set_work(Executor* executor, const Context* context, RangeFn kernel, int64_t units, int64_t bytes,
                   int64_t scratch) noexcept nogil:
    """Fix the kernel, the threads and the workspace. `bytes` is the compulsory traffic, `scratch` what a range
    needs."""
    cdef int64_t threads = least(context.threads, units)
    threads = least(threads, most(LEAST_TEAM_LIMIT, 4 * context.cores))
    threads = useful_threads(threads, bytes)
    executor.face = context.face
    executor.kernel = kernel
    executor.units = units
    executor.bytes = bytes
    executor.threads = <int32_t>threads
    executor.ranges = threads if units > 0 else 0
    executor.scratch = round_up(scratch, ALIGNMENT)
    if executor.ranges > 0 and scratch > 0:
        # The slack lets the caller pass any address: run_range aligns it.
        executor.workspace_size = executor.ranges * executor.scratch + ALIGNMENT - 1


cdef int make_repeatable(Executor* executor) noexcept nogil:
    if executor.spent:
        return refuse(ERR_INNER, "executor: is spent; make it repeatable before its first run, or call phase 1 again")
    executor.repeatable = True
    return SUCCESS


cdef int rebind(Executor* executor, const Context* context, int64_t index, const Tensor* tensor) noexcept nogil:
    """Point tensor `index` at other memory. The view is the one of phase 1; all that depends on memory is checked
    again."""
    cdef Tensor before
    cdef int status
    if not 0 <= index < executor.tensors:
        return refuse(ERR_INVALID, "index = %lld: must be in [0, %d)", <wide>index, executor.tensors)
    before = executor.tensor[index]
    executor.tensor[index] = tensor[0]
    status = check_tensors(context, executor)
    if status != SUCCESS:
        executor.tensor[index] = before
    return status


cdef int refuse_spent() noexcept nogil:
    return refuse(ERR_INNER, "executor: is spent; an executor runs once unless it is made repeatable: call phase 1 "
                  "again, or aclSetAclOpExecutorRepeatable before the first run")


cdef int claim(Executor* executor, int64_t queue) noexcept nogil:
    """Queue 0 is a direct caller, who runs alone; runs on one queue may pile up, for they run one after another."""
    cdef uint64_t wanted
    cdef uint64_t seen = 0
    if not executor.repeatable:
        if exchange(&executor.spent, 1):
            return refuse_spent()
        return SUCCESS
    seen = load(&executor.claim)
    while True:
        if seen == 0:
            wanted = (<uint64_t>queue << 32) | 1
        elif queue != 0 and seen >> 32 == <uint64_t>queue:
            wanted = seen + 1
        else:
            return refuse(ERR_INNER, "executor: is queued or running elsewhere; wait for that run, or give each thread "
                          "an executor of its own")
        if replace(&executor.claim, &seen, wanted):
            return SUCCESS


cdef void release(Executor* executor) noexcept nogil:
    cdef uint64_t seen = load(&executor.claim)
    while not replace(&executor.claim, &seen, seen - 1 if seen & <uint64_t>0xffffffff > 1 else 0):
        pass


cdef int accept(Executor* executor, int op, char* workspace, int64_t size, int64_t queue, Run* run) noexcept nogil:
    """Check a call of phase 2 and claim the executor for it. A refusal leaves the executor as it was."""
    cdef const Context* context = NULL
    cdef Context plain
    cdef Tensor* tensor
    cdef int i
    context = &plain
    if executor == NULL:
        return refuse(ERR_NULLPTR, "executor = None: must not be null")
    plain.face = executor.face
    if executor.spent:
        return refuse_spent()
    if executor.op != op:
        return refuse(ERR_INVALID, "executor: was made by another operator's phase 1, that of %s: must be one of %s",
                      operator_name(executor.op), operator_name(op))
    if workspace == NULL and size > 0 and executor.workspace_size == 0:
        return refuse(ERR_NULLPTR, "workspace = %s: has no bytes, but workspaceSize = %lld; the executor needs none: "
                      "pass 0, as phase 1 said", null(plain.face), <wide>size)
    if workspace == NULL and executor.workspace_size > 0:
        return refuse(ERR_NULLPTR, "workspace = %s: must not be null, the executor needs %lld bytes; aclrtMalloc "
                      "makes them", null(plain.face), <wide>executor.workspace_size)
    if size < executor.workspace_size:
        return refuse(ERR_INVALID, "workspaceSize = %lld: must be >= %lld, as phase 1 said", <wide>size,
                      <wide>executor.workspace_size)
    for i in range(executor.tensors):
        tensor = &executor.tensor[i]
        run.data[i] = NULL
        if tensor.data != NULL and executor.units > 0:
            run.data[i] = tensor.data + tensor.offset * item_size(tensor.dtype)
        if executor.units == 0 or executor.roles[i] == SHAPE:
            continue
        if tensor.data == NULL:
            return refuse(ERR_NULLPTR, "%s: is unbound; it has no data: give its memory to aclCreateTensor, or to a "
                          "repeatable executor by aclSetTensorAddr", name(context, executor.arguments[i]))
        if workspace != NULL and tensor_meets(tensor, run.data[i], workspace, size):
            return refuse(ERR_INVALID, "workspace: overlaps %s; pass memory of its own",
                          name(context, executor.arguments[i]))
    i = claim(executor, queue)
    if i != SUCCESS:
        return i
    run.executor = executor
    run.bad = ALL_GOOD
    run.begun = 0
    # Kernels that need no scratch add nothing to its address, but C has no null plus nothing.
    run.workspace = <char*>run if workspace == NULL else <char*>round_up(<int64_t><uintptr_t>workspace, ALIGNMENT)
    return SUCCESS


cdef void retract(Run* run) noexcept nogil:
    """Undo an acceptance that nothing has run for."""
    if run.executor.repeatable:
        release(run.executor)
    else:
        exchange(&run.executor.spent, 0)


cdef void run_range(Run* run, int64_t index) noexcept nogil:
    """Range `index` of executor.ranges: a contiguous share of the units, the first ones one larger."""
    cdef Executor* executor = run.executor
    cdef int64_t share = executor.units if executor.ranges == 1 else executor.units // executor.ranges
    cdef int64_t extra = executor.units - share * executor.ranges
    cdef int64_t begin = index * share + least(index, extra)
    cdef int64_t end = begin + share + (index < extra)
    cdef floating_mode mode = enter_default_mode()
    cdef int64_t bad = executor.kernel(executor.plan, run.data, run.workspace + index * executor.scratch, begin, end)
    leave_default_mode(mode)
    if bad != ALL_GOOD:
        lower(&run.bad, bad)
    if index == 0 and run.begun != 0:
        run.left = clock()


cdef bint begin_team(Run* run) noexcept nogil:
    """Whether the ranges go to a team of threads, the calling one being its first; else they are the calling one's,
    for there is one range or the cores are wanted by others (contention.h)."""
    cdef int64_t now
    if run.executor.ranges <= 1:
        return False
    now = clock()
    if is_contended(&cores, now):
        return False
    run.begun = now
    return True


cdef int finish(Run* run) noexcept nogil:
    """After the last range: say what was bad, if anything was; give the claim back."""
    cdef Executor* executor = run.executor
    cdef int status = SUCCESS
    if run.begun != 0:
        judge_team(&cores, executor.ranges, run.begun, run.left, clock())
    if run.bad != ALL_GOOD:
        status = executor.explain(executor.plan, executor.face, run.data, run.bad)
    if executor.repeatable:
        release(executor)
    return status


cdef int execute(Executor* executor, int op, char* workspace, int64_t size) noexcept nogil:
    """Phase 2 whole, on the calling thread alone."""
    cdef Run run
    cdef int64_t i
    cdef int status = accept(executor, op, workspace, size, 0, &run)
    if status != SUCCESS:
        return status
    for i in range(executor.ranges):
        run_range(&run, i)
    return finish(&run)
