"""What phase 1 leaves for phase 2: executors, their runs, and the jobs of streams."""


@cython.final
@cython.freelist(16)
cdef class aclOpExecutor:
    """What phase 1 leaves for phase 2: the plan and the tensors. It runs once unless it is made repeatable."""

    cdef Executor* executor
    cdef tuple handles      # the tensor arguments as the caller gave them
    cdef tuple owners       # what keeps their memory alive; None once it is not needed any more
    cdef bint destroyed
    cdef int64_t forks      # of the process in which it was last used

    def __init__(self):
        raise TypeError("aclOpExecutor is made by a GetWorkspaceSize call")

    def __reduce__(self):
        raise no_copy(self)

    def __array__(self, dtype=None, copy=None):
        raise no_array(self, "the results are in the tensors that phase 1 was given")

    def __dealloc__(self):
        delete_executor(self.executor)

    cdef str state(self):
        cdef int64_t runs = self.executor.claim & 0xffffffff if self.forks == forks else 0
        if self.destroyed:
            return "destroyed"
        if self.executor.spent:
            return "spent"
        if not self.executor.repeatable:
            return "ready"
        return "repeatable" if runs == 0 else f"repeatable, {counted(runs, 'run')} queued or running"

    def __repr__(self):
        if self.executor == NULL:
            return "<aclOpExecutor that no phase 1 has made>"
        return (f"<aclOpExecutor {operator_of(self.executor.op).name.decode()} {self.state()}, "
                f"{counted(self.executor.threads, 'thread')}, workspace {self.executor.workspace_size} bytes>")

    def __enter__(self):
        usable_executor(self, ERR_INNER_NULLPTR)
        return self

    def __exit__(self, kind, error, traceback):
        """Destroy the executor, if nobody has yet. Runs that are queued still run."""
        if not self.destroyed:
            aclDestroyAclOpExecutor(self)

    def explain(self):
        """Return an Explanation: what phase 1 has decided, and what the work is.

        Any executor can be asked, a spent or destroyed one too.

        >>> import numpy as np, aclnn_bw
        >>> size, executor = aclnn_bw.aclnnReplicationPad2dBackwardGetWorkspaceSize(
        ...     np.ones((1, 4, 4), np.float32), np.empty((1, 2, 2), np.float32), [1, 1, 1, 1],
        ...     np.empty((1, 2, 2), np.float32))
        >>> executor.explain().algorithm, executor.explain().compulsory_bytes
        ('PLANES', 80)
        """
        if self.executor == NULL:
            raise refusal(ERR_INNER, f"executor = {self!r}: must be an executor that phase 1 returned")
        return explanation_of(self)


cdef str counted(int64_t number, str what):
    return f"{number} {what}{'' if number == 1 else 's'}"


cdef object value_of(const Fact* fact):
    if fact.kind == INTS:
        return tuple([fact.values[i] for i in range(fact.count)])
    if fact.kind == BOOL:
        return fact.values[0] != 0
    return fact.real if fact.kind == REAL else ("argmax" if fact.values[0] else "bitmask")


cdef object explanation_of(aclOpExecutor handle):
    """What the plan of an executor says, in the words of aclnn_bw.explanation."""
    from aclnn_bw.explanation import Explanation

    cdef Executor* executor = handle.executor
    cdef const Record* record = operator_of(executor.op)
    cdef Fact[MAX_FACTS] facts
    cdef Tensor* tensor
    cdef int64_t chosen = 0
    cdef int i
    cdef dict geometry = {}
    for i in range(executor.tensors):
        tensor = &executor.tensor[i]
        geometry[TWO_PHASE_NAMES[executor.arguments[i]]] = tuple([tensor.dims[axis] for axis in range(tensor.rank)])
    if executor.units > 0:
        memset(facts, 0, sizeof(facts))
        chosen = record.facts(executor, facts)
        for i in range(MAX_FACTS):
            if facts[i].name != NULL:
                geometry[facts[i].name.decode()] = value_of(&facts[i])
    return Explanation(
        operator=record.name.decode(), state=handle.state(), dtype=aclDataType(executor.tensor[0].dtype),
        geometry=geometry,
        algorithm=", ".join([text.partition(":")[0] for i, text in enumerate(texts_of(record)) if chosen >> i & 1]),
        isa=ISA_OF_NUMBER[chosen_isa], threads=executor.threads, ranges=executor.ranges, units=executor.units,
        workspace_size=executor.workspace_size, compulsory_bytes=executor.bytes)


cdef int run_and_finish(Run* run) noexcept:
    """Every range of a plan, on a team of threads or here and now, without the GIL unless the work is short.

    The GIL is held at the call, and Cython knows it: in a `nogil` function its prange asks PyGILState_Check, which
    before Python 3.12 says yes to everybody once a second interpreter was made, and ends the process.
    """
    cdef int64_t i
    cdef int64_t ranges = run.executor.ranges
    cdef int status
    if run.executor.bytes < SHORT_WORK:
        for i in range(ranges):
            run_range(run, i)
        return finish(run)
    with nogil:
        # A region of one thread costs more than a tiny kernel; the pool of a forked child's parent is not the child's.
        if not in_forked_child and begin_team(run):
            for i in prange(ranges, schedule="static", chunksize=1, num_threads=run.executor.threads):
                run_range(run, i)
        else:
            for i in range(ranges):
                run_range(run, i)
        status = finish(run)
    return status


cdef aclOpExecutor usable_executor(object value, int null_status):
    """The executor argument of a call; raises for null, for what is none, and for a destroyed one."""
    if value is None:
        raise refusal(null_status, "executor = None: must not be null")
    if type(value) is not aclOpExecutor or (<aclOpExecutor>value).executor == NULL:
        raise refusal(ERR_INNER, f"executor = {value!r}: must be an executor that phase 1 returned")
    if (<aclOpExecutor>value).destroyed:
        raise refusal(ERR_INNER, "executor: has been destroyed; call phase 1 again")
    if (<aclOpExecutor>value).forks != forks:
        # Runs that were queued at the fork are the parent's; nothing here will ever finish them.
        (<aclOpExecutor>value).forks = forks
        (<aclOpExecutor>value).executor.claim = 0
    return value


@cython.final
cdef class Job:
    """One accepted run on a stream's queue; it holds all that the run needs until it is done."""

    cdef Run run
    cdef aclOpExecutor executor
    cdef tuple owners
    cdef Memory workspace
    cdef bint begun         # or never to begin, for it was retracted

    def execute(self):
        """Run; called once, on the stream's thread."""
        cdef int status
        if self.begun:
            return
        self.begun = True
        status = run_and_finish(&self.run)
        self.owners = None
        self.workspace = None
        if status != SUCCESS:
            raise error_of(status)


cdef object run_phase_2(int op, object workspace, object workspaceSize, object executor, object stream):
    """Phase 2 of any operator."""
    cdef aclOpExecutor handle
    cdef Memory memory = None
    cdef Run run
    cdef Job job
    cdef char* data = NULL
    cdef int64_t size
    cdef int64_t queue = 0
    cdef int status
    cdef tuple owners
    if workspace is not None:
        memory = read_memory(workspace, "workspace")
        data = memory.data
    size = read_int(workspaceSize, "workspaceSize")
    if stream is not None and not hasattr(stream, "_submit"):
        raise TypeError(f"stream = {stream!r}: must be an aclrtStream or None, not {type(stream).__name__}")
    handle = usable_executor(executor, ERR_NULLPTR)
    if size < 0:
        raise refusal(ERR_INVALID, f"workspaceSize = {size}: must be >= 0")
    if memory is not None and size > 0 and not handle.executor.spent:
        if not memory.writable:
            raise refusal(ERR_INVALID, "workspace is read-only: must be writable; pass a bytearray")
        if memory.size < size:
            raise refusal(ERR_INVALID, f"workspace: has {memory.size} bytes: must have at least workspaceSize = {size}"
                          "; aclrtMalloc(workspaceSize) has")
    if stream is None:
        status = accept(handle.executor, op, data, size, 0, &run)
        if status != SUCCESS:
            raise error_of(status)
        owners = handle.owners      # of the addresses that were accepted: others may come while it runs
        status = run_and_finish(&run)
        if not handle.executor.repeatable:
            handle.owners = handle.handles = None
        if status != SUCCESS:
            raise error_of(status)
        return
    job = Job.__new__(Job)
    queue = stream._number
    status = accept(handle.executor, op, data, size, queue, &job.run)
    if status != SUCCESS:
        raise error_of(status)
    owners = handle.owners
    job.executor = handle
    job.owners = owners
    job.workspace = memory
    try:
        stream._submit(job)
    except BaseException:
        # A signal's handler may raise when the job is queued already, and even running.
        if not job.begun:
            job.begun = True
            retract(&job.run)
        raise
    if not handle.executor.repeatable:
        handle.owners = handle.handles = None


def aclSetAclOpExecutorRepeatable(executor):
    """Let an executor run any number of times, until aclDestroyAclOpExecutor. To be called before its first run."""
    cdef aclOpExecutor handle = usable_executor(executor, ERR_INNER_NULLPTR)
    cdef int status = make_repeatable(handle.executor)
    if status != SUCCESS:
        raise error_of(status)


def aclDestroyAclOpExecutor(executor):
    """End an executor. Runs that are already queued still run; nothing else accepts it any more."""
    cdef aclOpExecutor handle = usable_executor(executor, ERR_INNER_NULLPTR)
    handle.destroyed = True
    handle.owners = handle.handles = None


cdef tuple RAW_DTYPES = (numpy.dtype(numpy.uint8), numpy.dtype(numpy.int8))


cdef bint same_dims(const Tensor* a, const Tensor* b) noexcept:
    cdef int i
    if a.rank != b.rank:
        return False
    for i in range(a.rank):
        if a.dims[i] != b.dims[i]:
            return False
    return True


cdef tuple replaced(tuple values, int64_t position, object value):
    """The tuple with another value at a position."""
    cdef list changed = list(values)
    changed[position] = value
    return tuple(changed)


cdef object set_address(object executor, object index, object tensor, object data, int role_written):
    """Re-point tensor `index` among the inputs (0), the outputs (1) or all (-1)."""
    cdef aclOpExecutor handle
    cdef int64_t i, count, position
    cdef Context context
    cdef Tensor given
    cdef Tensor* known
    cdef Memory memory
    cdef int status, axis
    cdef bint same
    cdef tuple owners, handles, new_owners, new_handles
    i = read_int(index, "index")
    handle = usable_executor(executor, ERR_INNER_NULLPTR)
    if handle.executor.spent:
        raise refusal(ERR_INNER, "executor: is spent; call phase 1 again")
    if not handle.executor.repeatable:
        raise refusal(ERR_INNER, "executor: is not repeatable; call aclSetAclOpExecutorRepeatable first")
    count = 0
    position = -1
    for axis in range(handle.executor.tensors):
        if role_written == -1 or (handle.executor.roles[axis] == WRITTEN) == role_written:
            if count == i:
                position = axis
            count += 1
    if position < 0:
        raise refusal(ERR_INVALID, f"index = {i}: must be in [0, {count})")
    known_handle = handle.handles[position]
    if type(known_handle) is weakref.ref:
        known_handle = known_handle()
    if tensor is not None and tensor is not known_handle:
        raise refusal(ERR_INVALID, "tensor: must be the one that phase 1 was given at this index, or None")
    if data is None:
        raise refusal(ERR_INNER_NULLPTR, "data = None: must not be null")
    current_context(&context, TWO_PHASE, NULL)
    known = &handle.executor.tensor[position]
    same = False
    if type(data) is not aclTensor and (isinstance(data, cnp.ndarray) or hasattr(data, "__dlpack__")):
        owner = read_tensor(data, "data", &given)
        if given.flags & SWAPPED:
            raise refusal(ERR_INVALID, "data: must be in native byte order")
        same = given.rank == known.rank and given.dtype == known.dtype
        for axis in range(known.rank):
            same = same and given.dims[axis] == known.dims[axis] and (
                given.strides[axis] == known.strides[axis] or given.dims[axis] == 1)
    if same:
        # An array with the very view: only its address and flags are new.
        given.data += (given.offset - known.offset) * item_size(known.dtype)
        given.storage += known.offset - given.offset
        given.offset = known.offset
        given.format = known.format
        for axis in range(known.rank):
            given.strides[axis] = known.strides[axis]
    else:
        if isinstance(data, cnp.ndarray) and not (
                data.dtype in RAW_DTYPES or (given.dtype == known.dtype and not same_dims(&given, known))):
            raise refusal(ERR_INVALID, f"data: is an array of dtype {data.dtype}, shape {data.shape} and strides "
                          f"{data.strides}: must be one with the tensor's shape, strides and dtype, or plain memory of "
                          "bytes or of the tensor's dtype")
        memory = read_memory(data, "data")
        owner = memory
        given = known[0]
        if memory.size < given.storage * item_size(given.dtype):
            raise refusal(ERR_INVALID, f"data: has {memory.size} bytes: must be an array with the tensor's shape, "
                          "strides and dtype, or a buffer of at least the "
                          f"{given.storage * item_size(given.dtype)} bytes of its storage")
        given.data = memory.data
        given.flags = WRITABLE if memory.writable else 0
        if <uintptr_t>memory.data % alignment_of(given.dtype) != 0:
            given.flags |= MISALIGNED
    # The old tensor is known by a weak reference from now on, so that its memory can go.
    try:
        known_handle = None if known_handle is None else weakref.ref(known_handle)
    except TypeError:
        pass
    while True:     # each allocation may collect garbage, whose finalizers may come here for another tensor
        owners = handle.owners
        handles = handle.handles
        if owners is None:
            raise refusal(ERR_INNER, "executor: has been destroyed")
        new_owners = replaced(owners, position, owner)
        new_handles = replaced(handles, position, known_handle)
        if handle.owners is owners and handle.handles is handles:
            break
    status = rebind(handle.executor, &context, position, &given)
    if status != SUCCESS:
        raise error_of(status)
    handle.owners, handle.handles = new_owners, new_handles


def aclSetInputTensorAddr(executor, index, tensor, data):
    """Re-point the `index`-th tensor input of a repeatable executor, counted from 0 in argument order.

    `tensor` is the one given to phase 1, or None. `data` is a buffer that becomes the storage (dims, strides, offset
    and dtype stay), or an array with the view's shape, strides and dtype. Everything that depends on memory is checked
    again; a refusal changes nothing. Runs that are already queued keep the old address.
    """
    set_address(executor, index, tensor, data, 0)


def aclSetOutputTensorAddr(executor, index, tensor, data):
    """Re-point the `index`-th tensor output of a repeatable executor; otherwise as aclSetInputTensorAddr."""
    set_address(executor, index, tensor, data, 1)


def aclSetTensorAddr(executor, index, tensor, data):
    """Re-point a tensor of a repeatable executor; `index` counts all tensor arguments."""
    set_address(executor, index, tensor, data, -1)
