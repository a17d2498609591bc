"""Phase 1 and the one-call functions of any operator: its record says what each argument is."""

cdef enum:
    MOST_PARAMETERS = 16

# What a call's arguments are read into.
cdef struct Reading:
    Arguments arguments
    Tensor[MAX_TENSORS] tensors
    IntArray[MAX_ARRAYS] arrays
    (PyObject*)[MAX_TENSORS] values     # the tensors as the caller gave them
    (PyObject*)[MAX_TENSORS] owners     # what keeps a tensor's memory, held; NULL: the caller's value does
    int layout
    int missing         # tensors that a one-call function is to make, as bits
    int written         # the first tensor that is written
    int count           # of tensors


cdef int read_layout(object value) except -1:
    if not isinstance(value, str):
        raise TypeError(f"mask_layout = {value!r}: must be a str, not {type(value).__name__}")
    if value == "bitmask":
        return LAYOUT_BITMASK
    if value == "argmax":
        return LAYOUT_ARGMAX
    raise refusal(ERR_INVALID, f"mask_layout = {value!r}: must be one of 'bitmask', 'argmax'")


cdef inline str name_of(const Parameter* parameter, bint once):
    return (ONE_CALL_NAMES if once else TWO_PHASE_NAMES)[parameter.argument]


cdef int read_other_tensor(const Parameter* parameter, object value, bint once, int i, Reading* reading) except -1:
    """A tensor that is no array of NumPy's own: what keeps its memory is held."""
    if parameter.kind == SHAPE:
        value = without_grad(value)
    if once and parameter.kind == SHAPE:
        owner = read_shape(value, name_of(parameter, once), reading.arguments.tensors[0], &reading.tensors[i])
    else:
        owner = read_tensor(value, name_of(parameter, once), &reading.tensors[i])
    Py_INCREF(owner)
    reading.owners[i] = <PyObject*>owner
    return 0


cdef inline int read_tensor_argument(const Parameter* parameter, PyObject* value, bint once,
                                     Reading* reading) except -1:
    cdef int i = reading.count
    reading.count += 1
    if parameter.kind != WRITTEN:
        reading.written = reading.count
    reading.values[i] = value
    reading.arguments.tensors[i] = &reading.tensors[i]
    if value == NULL or (once and parameter.kind == WRITTEN and <object>value is None):
        reading.missing |= 1 << i
        return 0
    if type(<object>value) is cnp.ndarray:
        return read_array(<cnp.ndarray>value, &reading.tensors[i])
    if <object>value is None:
        reading.arguments.tensors[i] = NULL
        return 0
    return read_other_tensor(parameter, <object>value, once, i, reading)


cdef inline int read_array_argument(const Parameter* parameter, object value, bint once, IntArray* array,
                                    const IntArray** place) except -1:
    cdef int overflow = 0
    place[0] = array
    array.scalar = False
    if value is None:
        array.size = 0
        if not (once and parameter.flags & EMPTY):
            place[0] = NULL
        return 0
    if (type(value) is tuple or type(value) is list) and plain_ints(value, array):
        return 0
    if once and parameter.flags & SCALAR and PyLong_CheckExact(value):
        array.scalar = True
        array.size = 1
        array.values[0] = PyLong_AsLongLongAndOverflow(value, &overflow)
        if overflow == 0:
            return 0
    return read_ints(value, name_of(parameter, once), array, once and parameter.flags & SCALAR != 0)


cdef int64_t read_number(const Parameter* parameter, object value, bint once) except? -1:
    if parameter.kind == BOOL:
        return read_bool(value, name_of(parameter, once))
    return read_int(value, name_of(parameter, once))


cdef int read_arguments(int op, PyObject** given, bint once, Reading* reading) except -1:
    """Read what a function was given for each parameter of the operator that it has, in their order."""
    cdef const Parameter* parameter = operator_of(op).parameters
    cdef Arguments* arguments = &reading.arguments
    cdef int arrays = 0
    cdef int numbers = 0
    while parameter.kind != END:
        if once and parameter.flags & TWO_PHASE_ONLY:
            if parameter.kind <= WRITTEN:
                read_tensor_argument(parameter, NULL, once, reading)
            else:
                arguments.numbers[numbers] = 0
                numbers += 1
            parameter += 1
            continue
        if parameter.kind <= WRITTEN:
            read_tensor_argument(parameter, given[0], once, reading)
        elif parameter.kind == INTS:
            read_array_argument(parameter, <object>given[0], once, &reading.arrays[arrays], &arguments.arrays[arrays])
            arrays += 1
        elif parameter.kind == LAYOUT:
            if once:
                reading.layout = read_layout(<object>given[0])
            else:
                given -= 1
        elif once and parameter.flags & OPTIONAL and <object>given[0] is None:
            if parameter.kind == REAL:
                arguments.real = 0.0
            else:
                arguments.absent |= <uint32_t>1 << numbers
                arguments.numbers[numbers] = 0
                numbers += 1
        elif parameter.kind == REAL:
            arguments.real = read_double(<object>given[0], name_of(parameter, once))
        else:
            arguments.numbers[numbers] = read_number(parameter, <object>given[0], once)
            numbers += 1
        given += 1
        parameter += 1
    return 0


cdef inline void begin_reading(int op, Reading* reading) noexcept:
    cdef int i
    reading.arguments.op = op
    reading.arguments.absent = 0
    reading.layout = LAYOUT_BITMASK
    reading.missing = 0
    reading.count = 0
    for i in range(MAX_TENSORS):
        reading.owners[i] = NULL


cdef inline void end_reading(Reading* reading) noexcept:
    cdef int i
    for i in range(MAX_TENSORS):
        Py_XDECREF(reading.owners[i])


cdef inline object owner_of(const Reading* reading, int i):
    return <object>reading.values[i] if reading.owners[i] == NULL else <object>reading.owners[i]


# --- phase 1 ---------------------------------------------------------------------------------------------------------

cdef object phase_1(int op, PyObject** given):
    """(workspaceSize, executor) of the arguments of a GetWorkspaceSize call."""
    cdef Reading reading
    begin_reading(op, &reading)
    try:
        read_arguments(op, given, False, &reading)
        return planned(&reading)
    finally:
        end_reading(&reading)


cdef object refusal_of(int status, const Reading* reading):
    """The exception of a refused call, with NumPy's name of a dtype that is none of ours."""
    cdef const Parameter* tensors = operator_of(reading.arguments.op).tensors
    cdef bytes message = recent_message()
    cdef int i
    if status == ERR_INVALID and b".dtype = undefined" in message:
        for i in range(reading.count):
            if reading.values[i] != NULL and reading.tensors[i].dtype == DT_UNDEFINED:
                dtype = None
                for given in (owner_of(reading, i), <object>reading.values[i], <object>reading.values[0]):
                    if dtype is None:   # a shape has none of its own, but the first argument's
                        dtype = getattr(given, "dtype", None)
                if dtype is None:
                    continue
                called = dtype.type.__name__ if isinstance(dtype, numpy.dtype) else str(dtype)
                where = f"{ONE_CALL_NAMES[tensors[i].argument]}.dtype = "
                message = message.replace(f"{where}undefined".encode(), f"{where}{called}".encode())
        return refusal(status, message.decode("utf-8", "replace"))
    return error_of(status)


cdef inline object planned(const Reading* reading):
    cdef Context context
    cdef Executor* executor = NULL
    cdef aclOpExecutor result
    cdef int i, status
    cdef bint kept_by_values = True
    current_context(&context, TWO_PHASE, NULL)
    status = operator_of(reading.arguments.op).plan(&context, &reading.arguments, &executor)
    if status != SUCCESS:
        raise error_of(status)
    result = aclOpExecutor.__new__(aclOpExecutor)
    result.executor = executor
    result.forks = forks
    result.handles = PyTuple_New(reading.count)
    for i in range(reading.count):
        kept_by_values = kept_by_values and reading.owners[i] == NULL
        Py_INCREF(<object>reading.values[i])
        PyTuple_SET_ITEM(result.handles, i, <object>reading.values[i])
    result.owners = result.handles
    if not kept_by_values:
        result.owners = tuple([owner_of(reading, i) for i in range(reading.count)])
    return executor.workspace_size, result


# --- one-call functions ----------------------------------------------------------------------------------------------

cdef object one_call(int op, PyObject** given):
    """The results of a one-call function."""
    cdef Reading reading
    begin_reading(op, &reading)
    try:
        read_arguments(op, given, True, &reading)
        return computed(&reading)
    finally:
        end_reading(&reading)


cdef bint describe_missing(Context* context, Reading* reading) except -1:
    """The tensors that are to be made, without memory yet; of that a plan is told only whether its pages are new. False
    where what says their shape is null, which is the plan's to refuse."""
    cdef const Record* record = operator_of(reading.arguments.op)
    cdef Tensor[MAX_TENSORS] results
    cdef Tensor* made = results
    cdef int i
    cdef int status
    if reading.count - reading.written == 1:
        made = &reading.tensors[reading.written]
    status = record.result(context, &reading.arguments, made)
    if status == NO_RESULT:
        return False
    if status != SUCCESS:
        raise refusal_of(status, reading)
    for i in range(reading.written, reading.count):
        if reading.missing >> i & 1:
            if made == results:
                reading.tensors[i] = results[i - reading.written]
            describe_fresh(&reading.tensors[i], <str>ONE_CALL_NAMES[record.size_argument])
            if reading.tensors[i].storage * item_size(reading.tensors[i].dtype) > FRESH_BYTES:
                context.fresh = True
    return True


cdef inline object make_result(const Reading* reading, int i, Executor* executor, object first):
    """Tensor i as it was given, or a new array, whose address the executor gets now."""
    if not reading.missing >> i & 1:
        return <object>reading.values[i]
    array = new_array(&reading.tensors[i], first)
    executor.tensor[i].data = <char*>cnp.PyArray_DATA(array)
    return array


cdef inline object run_once(const Reading* reading, Executor* executor):
    """Run a plan that is deleted then; each of the one or two results as it was given, or a new array of the first
    argument's library."""
    cdef int i = reading.written
    cdef bint two = i + 1 < reading.count
    cdef bint made = False
    first = owner_of(reading, 0)
    second = None
    try:    # an `except` would save the exception that is handled now in every call
        result = make_result(reading, i, executor, first)
        if two:
            second = make_result(reading, i + 1, executor, first)
        made = True
    finally:
        if not made:
            delete_executor(executor)
    run_at_once(executor)
    if type(first) is DLPackOwner:
        if reading.missing >> i & 1:
            result = as_given(first, result)
        if two and reading.missing >> (i + 1) & 1:
            second = as_given(first, second)
    return (result, second) if two else result


cdef inline object computed(Reading* reading):
    """What a one-call function returns."""
    cdef Context context
    cdef Room room
    cdef Executor* executor = NULL
    cdef const Record* record = operator_of(reading.arguments.op)
    cdef int status
    current_context(&context, ONE_CALL, &room)
    context.mask_layout = reading.layout
    if reading.missing:
        describe_missing(&context, reading)
    status = record.plan(&context, &reading.arguments, &executor)
    if status != SUCCESS:
        raise refusal_of(status, reading)
    return run_once(reading, executor)


def result_shapes(int op, tuple given):
    """Return shape and dtype of each result of a one-call function with these arguments, and without `out`.

    Nothing is checked but what their shapes need: phase 1, which takes them, refuses the rest.
    """
    cdef Reading reading
    cdef Context context
    cdef (PyObject*)[MOST_PARAMETERS] values
    cdef int i
    for i in range(MOST_PARAMETERS):
        values[i] = <PyObject*>given[i] if i < len(given) else <PyObject*>None
    begin_reading(op, &reading)
    try:
        read_arguments(op, values, True, &reading)
        current_context(&context, ONE_CALL, NULL)
        if not describe_missing(&context, &reading):
            raise TypeError("what says the shape of the results must not be None")
        return [(tuple([reading.tensors[i].dims[axis] for axis in range(reading.tensors[i].rank)]),
                 <object>cnp.PyArray_DescrFromType(number_of(reading.tensors[i].dtype)))
                for i in range(reading.written, reading.count)]
    finally:
        end_reading(&reading)
