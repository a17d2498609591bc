"""Settings of the process and of a context, what the build and the CPU have, and messages."""

cdef extern from "products.h":
    int product_named "aclnn_bw_product_of" (const char* name) noexcept

cdef KernelTable kernels
cdef int chosen_isa = ISA_NONE
cdef int32_t process_product = ASCEND910B
cdef int32_t process_layout = LAYOUT_BITMASK
cdef int32_t process_threads = 1
cdef int32_t available_cores = 1
cdef bint in_forked_child = False
cdef int64_t forks = 0      # forks between the first process and this one

# None, or product | mask layout << 8; None, or a thread count. Set through products.soc and threads.num_threads.
soc_setting = contextvars.ContextVar("aclnn_bw.soc", default=None)
threads_setting = contextvars.ContextVar("aclnn_bw.num_threads", default=None)
cdef object soc_variable = soc_setting
cdef object threads_variable = threads_setting


cdef int64_t context_value(object variable, int64_t otherwise) except? -1:
    cdef PyObject* found = NULL
    cdef int64_t value = otherwise
    PyContextVar_Get(variable, NULL, &found)
    if <object>found is not None:
        value = PyLong_AsLongLong(<object>found)
    Py_XDECREF(found)
    return value


# Where the executor of a one-call function lies, which does not outlive the call.
cdef struct Room:
    uint64_t[ROOM_WORDS] words


cdef int current_context(Context* context, int face, Room* room) except -1:
    cdef int64_t setting = HOST     # one-call functions have a product, and a mask layout, of their own
    if face == TWO_PHASE:
        setting = context_value(soc_variable, process_product | process_layout << 8)
    context.kernels = &kernels
    context.face = face
    context.product = setting & 0xff
    context.mask_layout = setting >> 8
    context.room = room
    context.room_size = sizeof(Room) if room != NULL else 0
    context.threads = <int32_t>context_value(threads_variable, process_threads) if HAS_OPENMP else 1
    context.cores = available_cores
    context.fresh = False
    if in_forked_child:
        context.threads = 1
    return 0


def set_process_product(int product, int mask_layout):
    """Set the product and the mask layout that hold where no `soc` context does."""
    global process_product, process_layout
    process_product = product
    process_layout = mask_layout


def product_of(str name):
    """Return the number of the product that a name stands for, or -1."""
    return product_named(name.encode()) if name.isascii() and "\0" not in name else -1


def current_product():
    """Return (product, mask layout) as the calling context has them."""
    cdef Context context
    current_context(&context, TWO_PHASE, NULL)
    return context.product, context.mask_layout


def set_process_threads(int threads, int cores):
    """Set the thread count that holds where no `num_threads` context does, and the cores it is judged by."""
    global process_threads, available_cores
    process_threads = threads
    available_cores = cores


def current_threads():
    """Return the thread count as the calling context has it."""
    return context_value(threads_variable, process_threads)


def enter_forked_child():
    """Run every plan serially from now on: a child cannot use the OpenMP pool that it inherits."""
    global in_forked_child, forks
    in_forked_child = True
    forks += 1


ISA_NAMES = {"baseline": ISA_BASELINE, "v2": ISA_V2, "v3": ISA_V3, "v4": ISA_V4}
cdef dict ISA_OF_NUMBER = {number: name for name, number in ISA_NAMES.items()}


def choose_isa():
    """Load the kernels of the best instruction set that the CPU has and ACLNN_BW_ISA allows."""
    global chosen_isa
    cap = os.environ.get("ACLNN_BW_ISA", "")
    chosen_isa = best_isa()
    if chosen_isa == ISA_NONE:
        raise ImportError("aclnn_bw needs a CPU with the x86-64-v2 instructions (SSE4.2, POPCNT); this one lacks them")
    if cap in ("v2", "v3", "v4"):
        if chosen_isa != ISA_BASELINE:
            chosen_isa = min(chosen_isa, <int>ISA_NAMES[cap])
    elif cap:
        warnings.warn(f"ACLNN_BW_ISA={cap!r} is ignored: must be v2, v3 or v4", RuntimeWarning, stacklevel=2)
    load_kernels(chosen_isa, &kernels)


choose_isa()


def stream_from(int64_t nbytes, int64_t sums):
    """Let results, or scattered sums, of more than so many bytes of all arrays go past the caches, and return what held
    before: for tests, which so meet these paths with small arrays. What is computed stays the same."""
    before = kernels.streamed_bytes, kernels.streamed_sums
    kernels.streamed_bytes, kernels.streamed_sums = nbytes, sums
    return before


def build_info():
    """Return what is fixed by the build and the CPU."""
    return {
        "isa": ISA_OF_NUMBER[chosen_isa],
        "isa_available": [name for name, number in ISA_NAMES.items() if has_isa(number)],
        "openmp": bool(HAS_OPENMP),
        "compiler": COMPILER.decode(),
    }


# --- messages ---
cdef object error_of(int status):
    """The exception for a status whose message the core has left."""
    message = (<bytes>recent_message()).decode("utf-8", "replace")
    if status == ERR_CREATE_EXECUTOR:
        return MemoryError(message)
    return AclnnError(status, message)


def refusal(int status, str message):
    """Make the exception of a refusal found above the core, and leave its message for aclGetRecentErrMsg."""
    encoded = message.encode()
    refuse(status, "%s", <const char*>encoded)
    return AclnnError(status, message)


def aclGetRecentErrMsg():
    """Return the calling thread's last error message and forget it; None if there is none.

    >>> import aclnn_bw
    >>> aclnn_bw.aclDestroyAclOpExecutor(None)
    Traceback (most recent call last):
    ...
    aclnn_bw.status.AclnnError: executor = None: must not be null
    >>> aclnn_bw.aclGetRecentErrMsg()
    'executor = None: must not be null'
    >>> aclnn_bw.aclGetRecentErrMsg() is None
    True
    """
    cdef bytes message = recent_message()
    forget_message()
    return message.decode("utf-8", "replace") if message else None
