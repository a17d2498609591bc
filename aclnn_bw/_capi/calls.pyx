"""The C names over the core: tensors and arrays, executors, and both phases of every operator.

A tensor or an array is memory of the caller's, from aclCreate... to aclDestroy...; an executor is a slot of handles.h.
Everything here returns a status whose message is left for aclGetRecentErrMsg.
"""
from libc.stdint cimport int32_t, int64_t, uint64_t, uintptr_t, INT64_MAX
from libc.stdlib cimport free, malloc

from aclnn_bw._core.arithmetic cimport mul_overflows
from aclnn_bw._core.checks cimport apart
from aclnn_bw._core.dispatch cimport load_kernels
from aclnn_bw._core.executor cimport (
    accept, begin_team, delete_executor, finish, make_repeatable, rebind, retract, run_range,
)
from aclnn_bw._core.names cimport TEXT, choose, dtype_name, tuple_text
from aclnn_bw._core.operators cimport operator_of
from aclnn_bw._core.status cimport refuse
from aclnn_bw._core.tensor cimport item_size, make_row_major, tensor_bounds, tensor_meets, tensor_size
from aclnn_bw._core.types cimport (
    C_CALL, DT_COMPLEX128, DT_COMPLEX32, DT_COMPLEX64, DT_FLOAT4_E2M1, DT_INT4, DT_STRING, DT_UINT1,
    ERR_CREATE_EXECUTOR, ERR_INNER, ERR_INNER_NULLPTR, ERR_INVALID, ERR_NULLPTR, MAX_ARRAYS, MAX_INTS, MAX_NUMBERS,
    MAX_RANK, MAX_TENSORS, MISALIGNED, READ, SUCCESS, WRITABLE, WRITTEN, Arguments, Context, Executor, IntArray,
    KernelTable, Run, Tensor,
)

cdef extern from "runtime.h" nogil:
    ctypedef struct Settings "aclnn_bw_settings":
        int reading, product, mask_layout, threads, cores, defers "async"
        const void* kernels
        const char* problem
        int problem_status
    ctypedef struct Job "aclnn_bw_job":
        int (*work)(Job*) noexcept nogil
        void (*end)(Job*) noexcept nogil
        int (*uses)(const Job*, const char*, int64_t) noexcept nogil
    const Settings* current_settings "aclnn_bw_current_settings" () noexcept
    bint is_forked "aclnn_bw_is_forked" () noexcept
    int logged "aclnn_bw_logged" (const char* call, int status, const uint64_t* workspace_size) noexcept
    int check_stream "aclnn_bw_check_stream" (void* stream) noexcept
    int submit "aclnn_bw_submit" (void* stream, Job* job) noexcept
    void parallel "aclnn_bw_parallel" (
        void (*range)(void*, int64_t) noexcept nogil, void* run, int64_t ranges, int threads) noexcept

cdef enum:
    RECIPE_SIZE = 704       # of a slot's room; a multiple of ALIGNMENT

cdef extern from "handles.h" nogil:
    enum:
        ROOM "ACLNN_BW_ROOM"
    ctypedef struct pthread_mutex_t:
        pass
    int pthread_mutex_lock(pthread_mutex_t*) noexcept
    int pthread_mutex_unlock(pthread_mutex_t*) noexcept
    ctypedef struct Slots "aclnn_bw_slots":
        pass
    ctypedef struct Slot "aclnn_bw_slot":
        void* object
        pthread_mutex_t lock
        (const void*)[MAX_TENSORS] given
        void* room
    Slots executors "aclnn_bw_executors"
    Slot* take_slot "aclnn_bw_take_slot" (Slots* slots) noexcept
    void give_slot "aclnn_bw_give_slot" (Slots* slots, Slot* slot) noexcept
    void* publish "aclnn_bw_publish" (Slots* slots, Slot* slot) noexcept
    Slot* acquire "aclnn_bw_acquire" (Slots* slots, const void* handle) noexcept
    void retain "aclnn_bw_retain" (Slot* slot) noexcept
    bint invalidate "aclnn_bw_invalidate" (Slot* slot) noexcept
    bint let_go "aclnn_bw_release" (Slot* slot) noexcept

cdef extern from * nogil:
    """
    /* Room for the table of kernels: a variable of Cython's own belongs to a module, and nothing makes one here. */
    static aclnn_bw_kernel_table aclnn_bw_table;

    /* C++ programs delete[] what they are given; only operator new[] goes with that. Where the runtime of C++ is, both
     * of these are; AddressSanitizer brings the first alone, into programs in C too, which free. */
    extern void *_Znam(size_t) __attribute__((weak));
    extern void *__cxa_begin_catch(void *) __attribute__((weak));
    static void *aclnn_bw_new_array(size_t size)
    {
        return _Znam && __cxa_begin_catch ? _Znam(size) : malloc(size);
    }
    """
    KernelTable kernel_table "aclnn_bw_table"
    void* new_array "aclnn_bw_new_array" (size_t size) noexcept


cdef extern const void* aclnn_bw_load_table(int isa) noexcept nogil

cdef const void* aclnn_bw_load_table(int isa) noexcept nogil:
    """Fill the table of kernels for an instruction set that the CPU has."""
    if sizeof(Recipe) > RECIPE_SIZE:
        return NULL     # for a developer who adds to them: nothing would work
    load_kernels(isa, &kernel_table)
    return &kernel_table


# --- tensors and arrays ---------------------------------------------------------------------------------------------

cdef struct View:
    Tensor tensor           # first: a View is a Tensor to the core
    uint64_t storage_rank
    int64_t* storage_dims   # behind the struct


cdef inline const Tensor* tensor_of(const aclTensor* tensor) noexcept nogil:
    return <const Tensor*>tensor


cdef inline const IntArray* array_of(const aclIntArray* array) noexcept nogil:
    return <const IntArray*>array


cdef inline void point_at(Tensor* tensor, void* data) noexcept nogil:
    """Where the storage is; the memory is the caller's, and taken to be writable."""
    cdef int64_t alignment = item_size(tensor.dtype)
    if tensor.dtype in (DT_COMPLEX32, DT_COMPLEX64, DT_COMPLEX128):
        alignment //= 2
    tensor.data = <char*>data
    tensor.flags = WRITABLE if <int64_t>(<uintptr_t>data & <uintptr_t>(alignment - 1)) == 0 else WRITABLE | MISALIGNED


cdef int64_t count_of(const int64_t* dims, uint64_t rank) noexcept nogil:
    """The product of the sizes, or -1 where one is negative or the product is beyond int64."""
    cdef int64_t count = 1
    cdef uint64_t i
    for i in range(rank):
        if dims[i] < 0:
            return -1
    for i in range(rank):
        if dims[i] == 0:
            return 0
    for i in range(rank):
        if mul_overflows(count, dims[i], &count):
            return -1
    return count


cdef size_t aclDataTypeSize(aclDataType dataType) noexcept nogil:
    return <size_t>item_size(dataType)


cdef int no_size(int dtype) noexcept nogil:
    if dtype in (DT_STRING, DT_INT4, DT_UINT1, DT_FLOAT4_E2M1):
        return refuse(ERR_INVALID, "dataType = %s: must be a dtype with a size in bytes", dtype_name(dtype))
    return refuse(ERR_INVALID, "dataType = %d: must be a dtype with a size in bytes", dtype)


cdef int describe(Tensor* tensor, const int64_t* dims, uint64_t rank, int dtype, const int64_t* strides, int64_t offset,
                  int format, const int64_t* storage, uint64_t storage_rank, void* data) noexcept nogil:
    """Fill the descriptor, or refuse what makes no sense."""
    cdef char[TEXT] text
    cdef int64_t bytes = 0
    cdef uint64_t i
    if (dims == NULL and rank > 0) or (storage == NULL and storage_rank > 0):
        return refuse(ERR_NULLPTR, "viewDims or storageDims = nullptr: must not be null, or their number must be 0")
    if rank > MAX_RANK:
        return refuse(ERR_INVALID, "viewDimsNum = %llu: must be at most %d", <unsigned long long>rank, <int>MAX_RANK)
    if item_size(dtype) == 0:
        return no_size(dtype)
    if format not in (-1, 0, 1, 2, 3, 4, 12, 16, 27, 29, 30, 32, 33, 35, 47):
        return refuse(ERR_INVALID, "format = %d: must be one of aclFormat", format)
    if count_of(dims, rank) < 0:
        return refuse(ERR_INVALID, "viewDims = %s: must be >= 0, and their product fit 64 bits",
                      tuple_text(text, dims, <int64_t>rank))
    tensor.rank = <int32_t>rank
    tensor.dtype = dtype
    tensor.format = format
    tensor.offset = offset
    for i in range(rank):
        tensor.dims[i] = dims[i]
        tensor.strides[i] = strides[i] if strides != NULL else 0
    if strides == NULL:
        make_row_major(tensor)
    tensor.storage = count_of(storage, storage_rank) if storage != NULL else tensor_size(tensor)
    if tensor.storage < 0 or mul_overflows(tensor.storage, item_size(dtype), &bytes):
        return refuse(ERR_INVALID, "storageDims: must be >= 0, and the bytes of their product fit 64 bits")
    point_at(tensor, data)
    return SUCCESS


cdef aclTensor* aclCreateTensor(
        const int64_t* viewDims, uint64_t viewDimsNum, aclDataType dataType, const int64_t* stride, int64_t offset,
        aclFormat format, const int64_t* storageDims, uint64_t storageDimsNum, void* tensorData) noexcept nogil:
    cdef Tensor tensor
    cdef View* view = NULL
    cdef const int64_t* storage = storageDims if storageDims != NULL else viewDims
    cdef uint64_t rank = storageDimsNum if storageDims != NULL else viewDimsNum
    cdef uint64_t i
    cdef int status = describe(&tensor, viewDims, viewDimsNum, dataType, stride, offset, format, storageDims,
                               storageDimsNum, tensorData)
    if status == SUCCESS:
        view = <View*>malloc(sizeof(View) + rank * sizeof(int64_t))
        if view == NULL:
            status = refuse(ERR_CREATE_EXECUTOR, "tensor: no memory for it")
    if view != NULL:
        view.tensor = tensor
        view.storage_rank = rank
        view.storage_dims = <int64_t*>(view + 1)
        for i in range(rank):
            view.storage_dims[i] = storage[i]
    logged("aclCreateTensor", status, NULL)
    return <aclTensor*>view


cdef aclIntArray* aclCreateIntArray(const int64_t* value, uint64_t size) noexcept nogil:
    cdef IntArray* array = NULL
    cdef int status = SUCCESS
    cdef uint64_t i
    if value == NULL and size > 0:
        status = refuse(ERR_NULLPTR, "value = nullptr: must not be null, or size must be 0")
    elif size > <uint64_t>INT64_MAX:
        status = refuse(ERR_INVALID, "size = %llu: must fit a 64-bit integer", <unsigned long long>size)
    else:
        array = <IntArray*>malloc(sizeof(IntArray))
        if array == NULL:
            status = refuse(ERR_CREATE_EXECUTOR, "array: no memory for it")
    if array != NULL:
        array.size = <int64_t>size
        array.scalar = False
        for i in range(<uint64_t>MAX_INTS):
            array.values[i] = value[i] if i < size else 0
    logged("aclCreateIntArray", status, NULL)
    return <aclIntArray*>array


cdef aclnnStatus aclDestroyTensor(const aclTensor* tensor) noexcept nogil:
    free(<void*>tensor)
    return logged("aclDestroyTensor", SUCCESS, NULL)


cdef aclnnStatus aclDestroyIntArray(const aclIntArray* array) noexcept nogil:
    free(<void*>array)
    return logged("aclDestroyIntArray", SUCCESS, NULL)


cdef int no_nulls(const char* object_name, const void* object, const char* name_1, const void* out_1,
                  const char* name_2, const void* out_2) noexcept nogil:
    cdef const char* null_name = NULL
    if object == NULL:
        null_name = object_name
    elif out_1 == NULL:
        null_name = name_1
    elif out_2 == NULL:
        null_name = name_2
    return SUCCESS if null_name == NULL else refuse(ERR_NULLPTR, "%s = nullptr: must not be null", null_name)


cdef int give_array(const int64_t* values, uint64_t count, int64_t** array, uint64_t* number) noexcept nogil:
    """A copy for the caller to delete."""
    cdef int64_t* copy = <int64_t*>new_array((count if count > 0 else 1) * sizeof(int64_t))
    cdef uint64_t i
    if copy == NULL:
        return refuse(ERR_CREATE_EXECUTOR, "no memory for an array of %llu values", <unsigned long long>count)
    for i in range(count):
        copy[i] = values[i]
    array[0] = copy
    number[0] = count
    return SUCCESS


cdef aclnnStatus aclGetViewShape(const aclTensor* tensor, int64_t** viewDims, uint64_t* viewDimsNum) noexcept nogil:
    cdef int status = no_nulls("tensor", tensor, "viewDims", viewDims, "viewDimsNum", viewDimsNum)
    if status == SUCCESS:
        status = give_array(tensor_of(tensor).dims, <uint64_t>tensor_of(tensor).rank, viewDims, viewDimsNum)
    return logged("aclGetViewShape", status, NULL)


cdef aclnnStatus aclGetViewStrides(const aclTensor* tensor, int64_t** stridesValue,
                                   uint64_t* stridesNum) noexcept nogil:
    cdef int status = no_nulls("tensor", tensor, "stridesValue", stridesValue, "stridesNum", stridesNum)
    if status == SUCCESS:
        status = give_array(tensor_of(tensor).strides, <uint64_t>tensor_of(tensor).rank, stridesValue, stridesNum)
    return logged("aclGetViewStrides", status, NULL)


cdef aclnnStatus aclGetStorageShape(const aclTensor* tensor, int64_t** storageDims,
                                    uint64_t* storageDimsNum) noexcept nogil:
    cdef int status = no_nulls("tensor", tensor, "storageDims", storageDims, "storageDimsNum", storageDimsNum)
    if status == SUCCESS:
        status = give_array((<const View*>tensor).storage_dims, (<const View*>tensor).storage_rank, storageDims,
                            storageDimsNum)
    return logged("aclGetStorageShape", status, NULL)


cdef aclnnStatus aclGetViewOffset(const aclTensor* tensor, int64_t* offset) noexcept nogil:
    cdef int status = no_nulls("tensor", tensor, "offset", offset, "offset", offset)
    if status == SUCCESS:
        offset[0] = tensor_of(tensor).offset
    return logged("aclGetViewOffset", status, NULL)


cdef aclnnStatus aclGetFormat(const aclTensor* tensor, aclFormat* format) noexcept nogil:
    cdef int status = no_nulls("tensor", tensor, "format", format, "format", format)
    if status == SUCCESS:
        format[0] = <aclFormat>tensor_of(tensor).format
    return logged("aclGetFormat", status, NULL)


cdef aclnnStatus aclGetDataType(const aclTensor* tensor, aclDataType* dataType) noexcept nogil:
    cdef int status = no_nulls("tensor", tensor, "dataType", dataType, "dataType", dataType)
    if status == SUCCESS:
        dataType[0] = <aclDataType>tensor_of(tensor).dtype
    return logged("aclGetDataType", status, NULL)


cdef aclnnStatus aclGetIntArraySize(const aclIntArray* array, uint64_t* size) noexcept nogil:
    cdef int status = no_nulls("array", array, "size", size, "size", size)
    if status == SUCCESS:
        size[0] = <uint64_t>array_of(array).size
    return logged("aclGetIntArraySize", status, NULL)


cdef aclnnStatus aclSetRawTensorAddr(aclTensor* tensor, void* addr) noexcept nogil:
    cdef int status = no_nulls("tensor", tensor, "tensor", tensor, "tensor", tensor)
    if status == SUCCESS:
        point_at(<Tensor*>tensor, addr)
    return logged("aclSetRawTensorAddr", status, NULL)


cdef aclnnStatus aclGetRawTensorAddr(const aclTensor* tensor, void** addr) noexcept nogil:
    cdef int status = no_nulls("tensor", tensor, "addr", addr, "addr", addr)
    if status == SUCCESS:
        addr[0] = tensor_of(tensor).data
    return logged("aclGetRawTensorAddr", status, NULL)


# --- executors ------------------------------------------------------------------------------------------------------

cdef int no_executor() noexcept nogil:
    return refuse(ERR_INNER, "executor: has run, was destroyed, or is none; an executor runs once unless it is made "
                  "repeatable")


cdef Slot* find_executor(aclOpExecutor* executor, int null_status, int* status) noexcept nogil:
    """The slot of an executor, with a reference; NULL and a refusal where there is none any more."""
    cdef Slot* slot = acquire(&executors, executor)
    if executor == NULL:
        status[0] = refuse(null_status, "executor = nullptr: must not be null")
    elif slot == NULL:
        status[0] = no_executor()
    else:
        status[0] = SUCCESS
    return slot


cdef void leave_executor(Slot* slot) noexcept nogil:
    """End a reference; the last one to an executor that is gone deletes it."""
    if let_go(slot):
        delete_executor(<Executor*>slot.object)
        give_slot(&executors, slot)


cdef aclnnStatus aclSetAclOpExecutorRepeatable(aclOpExecutor* executor) noexcept nogil:
    cdef int status = SUCCESS
    cdef Slot* slot = find_executor(executor, ERR_INNER_NULLPTR, &status)
    if slot != NULL:
        pthread_mutex_lock(&slot.lock)
        status = make_repeatable(<Executor*>slot.object)
        pthread_mutex_unlock(&slot.lock)
        leave_executor(slot)
    return logged("aclSetAclOpExecutorRepeatable", status, NULL)


cdef aclnnStatus aclDestroyAclOpExecutor(aclOpExecutor* executor) noexcept nogil:
    cdef int status = SUCCESS
    cdef Slot* slot = find_executor(executor, ERR_INNER_NULLPTR, &status)
    if slot != NULL:
        if not invalidate(slot):
            status = no_executor()  # another thread was faster
        leave_executor(slot)
    return logged("aclDestroyAclOpExecutor", status, NULL)


cdef int set_address(Slot* slot, size_t index, const void* tensor, void* addr, int role_written) noexcept nogil:
    """Re-point tensor `index` among the inputs (0), the outputs (1) or all (-1)."""
    cdef Executor* executor = <Executor*>slot.object
    cdef Context context
    cdef Tensor moved
    cdef size_t count = 0
    cdef int position = -1
    cdef int i
    if executor.spent:
        return refuse(ERR_INNER, "executor: is spent")
    if not executor.repeatable:
        return refuse(ERR_INNER, "executor: is not repeatable; call aclSetAclOpExecutorRepeatable first")
    for i in range(executor.tensors):
        if role_written == -1 or (executor.roles[i] == WRITTEN) == role_written:
            if count == index:
                position = i
            count += 1
    if position < 0:
        return refuse(ERR_INVALID, "index = %llu: must be in [0, %llu)", <unsigned long long>index,
                      <unsigned long long>count)
    if tensor != NULL and tensor != slot.given[position]:
        return refuse(ERR_INVALID, "tensor: must be the one that phase 1 was given at this index, or nullptr")
    if addr == NULL:
        return refuse(ERR_INNER_NULLPTR, "addr = nullptr: must not be null")
    moved = executor.tensor[position]
    point_at(&moved, addr)
    context.face = C_CALL
    return rebind(executor, &context, position, &moved)


cdef aclnnStatus set_address_of(const char* call, aclOpExecutor* handle, size_t index, const void* tensor, void* addr,
                                int role_written) noexcept nogil:
    cdef int status = SUCCESS
    cdef Slot* slot = find_executor(handle, ERR_INNER_NULLPTR, &status)
    if slot != NULL:
        pthread_mutex_lock(&slot.lock)
        status = set_address(slot, index, tensor, addr, role_written)
        pthread_mutex_unlock(&slot.lock)
        leave_executor(slot)
    return logged(call, status, NULL)


cdef aclnnStatus aclSetTensorAddr(aclOpExecutor* executor, size_t index, aclTensor* tensor,
                                  void* addr) noexcept nogil:
    return set_address_of("aclSetTensorAddr", executor, index, tensor, addr, -1)


cdef aclnnStatus aclSetInputTensorAddr(aclOpExecutor* executor, size_t index, aclTensor* tensor,
                                       void* addr) noexcept nogil:
    return set_address_of("aclSetInputTensorAddr", executor, index, tensor, addr, 0)


cdef aclnnStatus aclSetOutputTensorAddr(aclOpExecutor* executor, size_t index, aclTensor* tensor,
                                        void* addr) noexcept nogil:
    return set_address_of("aclSetOutputTensorAddr", executor, index, tensor, addr, 1)


# --- phase 1 --------------------------------------------------------------------------------------------------------

# What the plan of a slot's last executor was made from, but for its tensors, which the executor has. A program calls
# phase 1 again and again with other addresses alone; then the executor that still lies in the slot serves, for no plan
# depends on addresses: aclSet*TensorAddr relies on that too. Both phases of a tiny call take less than a third of the
# time then (python -m benchmarks.c_library).
cdef struct Recipe:
    bint valid
    bint forked
    int32_t settings        # the number of their reading
    int32_t op
    int64_t[MAX_NUMBERS] numbers
    double real
    int64_t[MAX_ARRAYS] lengths    # -1: null
    IntArray[MAX_ARRAYS] arrays
    int64_t[MAX_TENSORS] lowest     # bytes of each tensor, from its data: the first, and behind the last
    int64_t[MAX_TENSORS] behind
    Executor* executor


cdef inline bint same_view(const Tensor* a, const Tensor* b) noexcept nogil:
    """Whether all that a plan may know of two tensors is equal: everything but the address."""
    cdef int64_t i
    if (b == NULL or a.rank != b.rank or a.dtype != b.dtype or a.format != b.format or a.flags != b.flags
            or a.offset != b.offset or a.storage != b.storage):
        return False
    for i in range(a.rank):
        if a.dims[i] != b.dims[i] or a.strides[i] != b.strides[i]:
            return False
    return True


cdef bint same_call(const Recipe* recipe, const Settings* settings, const Arguments* call) noexcept nogil:
    cdef const IntArray* array
    cdef int64_t i, j
    if (not recipe.valid or recipe.op != call.op or recipe.settings != settings.reading or recipe.forked != is_forked()
            or recipe.real != call.real):
        return False
    for i in range(MAX_NUMBERS):
        if recipe.numbers[i] != call.numbers[i]:
            return False
    for i in range(MAX_ARRAYS):
        array = call.arrays[i]
        if recipe.lengths[i] != (array.size if array != NULL else -1):
            return False
        for j in range(recipe.lengths[i]):      # of a plan that was made: at most four values
            if recipe.arrays[i].values[j] != array.values[j]:
                return False
    for i in range(recipe.executor.tensors):
        if not same_view(&recipe.executor.tensor[i], call.tensors[i]):
            return False
    return True


cdef void remember(Recipe* recipe, const Settings* settings, const Arguments* call, Executor* made) noexcept nogil:
    cdef int64_t low = 0
    cdef int64_t high = -1
    cdef int64_t i, item
    recipe.valid = made.lent    # else it goes with its memory
    recipe.forked = is_forked()
    recipe.settings = settings.reading
    recipe.op = call.op
    recipe.real = call.real
    recipe.executor = made
    for i in range(made.tensors):
        item = item_size(made.tensor[i].dtype)
        recipe.lowest[i] = recipe.behind[i] = 0
        if tensor_size(&made.tensor[i]) != 0:
            recipe.valid = recipe.valid and tensor_bounds(&made.tensor[i], &low, &high)
            recipe.lowest[i] = low * item
            recipe.behind[i] = (high + 1) * item
    for i in range(MAX_NUMBERS):
        recipe.numbers[i] = call.numbers[i]
    for i in range(MAX_ARRAYS):
        recipe.lengths[i] = -1
        if call.arrays[i] != NULL:
            recipe.arrays[i] = call.arrays[i][0]
            recipe.lengths[i] = call.arrays[i].size


cdef inline bint near(const Recipe* recipe, int64_t i, int64_t j) noexcept nogil:
    """Whether the bytes from the first to the last of two tensors meet; if not, the tensors lie apart."""
    cdef uintptr_t a = <uintptr_t>recipe.executor.tensor[i].data
    cdef uintptr_t b = <uintptr_t>recipe.executor.tensor[j].data
    return (a + <uintptr_t>recipe.lowest[i] < b + <uintptr_t>recipe.behind[j]
            and b + <uintptr_t>recipe.lowest[j] < a + <uintptr_t>recipe.behind[i])


cdef int use_again(const Recipe* recipe, const Context* context, const Arguments* call) noexcept nogil:
    """An executor that has run, fresh, with the addresses of this call, which must still lie apart."""
    cdef Executor* executor = recipe.executor
    cdef int64_t i, j
    for i in range(executor.tensors):
        executor.tensor[i].data = call.tensors[i].data
    for i in range(executor.tensors):
        if executor.roles[i] != WRITTEN:
            continue
        for j in range(executor.tensors):
            if ((executor.roles[j] == READ or (executor.roles[j] == WRITTEN and j < i))
                    and near(recipe, i, j)
                    and apart(context, executor.arguments[i], &executor.tensor[i], executor.arguments[j],
                              &executor.tensor[j]) != SUCCESS):
                return ERR_INVALID
    executor.spent = executor.repeatable = 0
    executor.claim = 0
    return SUCCESS


cdef int make(Slot* slot, const Settings* settings, const Arguments* call) noexcept nogil:
    """Give the slot the executor of a call."""
    cdef Recipe* recipe = <Recipe*>slot.room
    cdef Executor* made = NULL
    cdef Context context
    cdef int status
    context.kernels = <const KernelTable*>settings.kernels
    context.face = C_CALL
    context.product = settings.product
    context.mask_layout = settings.mask_layout
    context.threads = 1 if is_forked() else settings.threads
    context.cores = settings.cores
    context.fresh = False
    context.room = <char*>slot.room + RECIPE_SIZE
    context.room_size = ROOM - RECIPE_SIZE
    if same_call(recipe, settings, call):
        slot.object = recipe.executor
        return use_again(recipe, &context, call)
    recipe.valid = False
    status = operator_of(call.op).plan(&context, call, &made)
    if status == SUCCESS:
        remember(recipe, settings, call, made)
        slot.object = made
    return status


cdef aclnnStatus phase_1(const char* name, const Arguments* call, uint64_t* workspace_size,
                         aclOpExecutor** executor) noexcept nogil:
    cdef const Settings* settings = current_settings()
    cdef Slot* slot = NULL
    cdef int status = SUCCESS
    cdef int i
    if workspace_size == NULL or executor == NULL:
        status = refuse(ERR_NULLPTR, "%s = nullptr: must not be null",
                        choose(workspace_size == NULL, "workspaceSize", "executor"))
    elif settings.problem != NULL:
        status = refuse(settings.problem_status, "%s", settings.problem)
    else:
        slot = take_slot(&executors)
        if slot == NULL:
            status = refuse(ERR_CREATE_EXECUTOR, "executor: no memory for another one")
    if slot != NULL:
        status = make(slot, settings, call)
        if status != SUCCESS:
            give_slot(&executors, slot)
    if status != SUCCESS:
        return logged(name, status, NULL)
    for i in range(MAX_TENSORS):
        slot.given[i] = call.tensors[i]
    workspace_size[0] = <uint64_t>(<Executor*>slot.object).workspace_size
    executor[0] = <aclOpExecutor*>publish(&executors, slot)
    return logged(name, SUCCESS, workspace_size)


# --- phase 2 --------------------------------------------------------------------------------------------------------

cdef void one_range(void* run, int64_t index) noexcept nogil:
    run_range(<Run*>run, index)


cdef int run_all(Run* run) noexcept nogil:
    cdef int64_t i
    if not is_forked() and begin_team(run):
        parallel(one_range, run, run.executor.ranges, run.executor.threads)
    else:
        for i in range(run.executor.ranges):
            run_range(run, i)
    return finish(run)


# A run that waits on a stream. It holds a reference to the executor's slot.
cdef struct Waiting:
    Job job
    Run run
    Slot* slot
    int64_t workspace_size


cdef int work(Job* job) noexcept nogil:
    return run_all(&(<Waiting*>job).run)


cdef void end_work(Job* job) noexcept nogil:
    leave_executor((<Waiting*>job).slot)
    free(job)


cdef int uses(const Job* job, const char* memory, int64_t size) noexcept nogil:
    cdef const Waiting* waiting = <const Waiting*>job
    cdef const Executor* executor = waiting.run.executor
    cdef const char* workspace = waiting.run.workspace
    cdef bint used = False
    cdef int i
    pthread_mutex_lock(&waiting.slot.lock)  # the executor may be re-pointed meanwhile
    for i in range(executor.tensors):
        used = used or (waiting.run.data[i] != NULL
                        and tensor_meets(&executor.tensor[i], waiting.run.data[i], memory, size))
    pthread_mutex_unlock(&waiting.slot.lock)
    return used or (workspace < memory + size and memory < workspace + waiting.workspace_size)


cdef int enqueue(Slot* slot, Run* run, aclrtStream stream) noexcept nogil:
    """Let an accepted run wait on a stream, with a reference of its own; retracted where that fails."""
    cdef Waiting* waiting = <Waiting*>malloc(sizeof(Waiting))
    cdef int status
    if waiting == NULL:
        status = refuse(ERR_CREATE_EXECUTOR, "stream: no memory for another run")
    else:
        retain(slot)
        waiting.job.work = work
        waiting.job.end = end_work
        waiting.job.uses = uses
        waiting.run = run[0]
        waiting.slot = slot
        waiting.workspace_size = run.executor.workspace_size
        status = submit(stream, &waiting.job)
        if status != SUCCESS:
            leave_executor(slot)
    if status != SUCCESS:
        free(waiting)
        retract(run)
    return status


cdef int run_slot(Slot* slot, int op, void* workspace, uint64_t size, aclrtStream stream) noexcept nogil:
    cdef Executor* executor = <Executor*>slot.object
    cdef bint defers = current_settings().defers
    cdef int64_t queue = 0
    cdef Run run
    cdef bint once
    cdef int status
    if defers:
        # Of this stream alone: a stream's handle is odd, and the part that is left of it has its slot.
        queue = <int64_t>(<uintptr_t>stream & 0x7fffffff) if stream != NULL else 2
    pthread_mutex_lock(&slot.lock)
    status = accept(executor, op, <char*>workspace, <int64_t>size, queue, &run)
    once = not executor.repeatable
    pthread_mutex_unlock(&slot.lock)
    if status != SUCCESS:
        return status
    if defers:
        status = enqueue(slot, &run, stream)
        if status != SUCCESS:
            return status
    else:
        status = run_all(&run)
    if once:
        invalidate(slot)
    return status


cdef aclnnStatus phase_2(const char* call, int op, void* workspace, uint64_t size, aclOpExecutor* executor,
                         aclrtStream stream) noexcept nogil:
    cdef int status = SUCCESS
    cdef Slot* slot = find_executor(executor, ERR_NULLPTR, &status)
    if slot != NULL:
        if size > <uint64_t>INT64_MAX:
            status = refuse(ERR_INVALID, "workspaceSize = %llu: must fit a 64-bit integer", <unsigned long long>size)
        else:
            status = check_stream(stream)
        if status == SUCCESS:
            status = run_slot(slot, op, workspace, size, stream)
        leave_executor(slot)
    return logged(call, status, NULL)
