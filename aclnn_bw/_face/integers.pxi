"""Numbers, and arrays of ints, from Python's and NumPy's."""

cdef inline int64_t read_int(object value, str name) except? -1:
    """A Python int (or IntEnum member) or a NumPy integer."""
    cdef int overflow = 0
    cdef int64_t number
    if PyLong_CheckExact(value):
        number = PyLong_AsLongLongAndOverflow(value, &overflow)
        if overflow == 0:
            return number
    return read_unusual_int(value, name)


cdef int64_t read_unusual_int(object value, str name) except? -1:
    if not PyLong_CheckExact(value):
        if isinstance(value, bool) or not isinstance(value, (int, numpy.integer)):
            raise TypeError(f"{name} = {value!r}: must be an int, not {type(value).__name__}")
        value = int(value)
    try:
        return PyLong_AsLongLong(value)
    except OverflowError:
        raise OverflowError(f"{name} = {value}: must fit a 64-bit integer") from None


cdef bint read_bool(object value, str name) except -1:
    """A bool, or 0 or 1."""
    if value is True:
        return True
    if value is False:
        return False
    if isinstance(value, (numpy.bool_, int, numpy.integer)) and value in (0, 1):
        return bool(value)
    raise TypeError(f"{name} = {value!r}: must be a bool, not {type(value).__name__}")


cdef double read_double(object value, str name) except? -1:
    """A Python float or int, or a NumPy one."""
    if type(value) is float:
        return <double>value
    if isinstance(value, (bool, numpy.bool_)) or not isinstance(value, (float, int, numpy.floating, numpy.integer)):
        raise TypeError(f"{name} = {value!r}: must be a float, not {type(value).__name__}")
    try:
        return float(value)
    except OverflowError:
        raise OverflowError(f"{name} = {value}: must fit a double") from None


cdef object no_copy(object handle):
    return TypeError(f"{type(handle).__name__}: cannot be copied or pickled; it is a handle of this process")


cdef object no_array(object handle, str remedy):
    """NumPy would wrap it in an array of objects, which is of no use to anybody."""
    return TypeError(f"{type(handle).__name__}: is no array; {remedy}")


@cython.final
cdef class aclIntArray:
    """An array of 64-bit ints, made by aclCreateIntArray."""

    cdef tuple values
    cdef bint alive

    def __cinit__(self):
        self.values = ()
        self.alive = False

    def __init__(self):
        raise TypeError("aclIntArray is made by aclCreateIntArray")

    def __reduce__(self):
        raise no_copy(self)

    def __array__(self, dtype=None, copy=None):
        raise no_array(self, "keep the values that it was made of")

    def __len__(self):
        return len(self.values)

    def __repr__(self):
        return f"<aclIntArray {list(self.values)}{'' if self.alive else ', destroyed'}>"


cdef tuple sequence_of(object values, str name, bint scalar_allowed=False):
    """Any sequence of ints as a tuple; what merely looks like one (text, bytes, a mapping) is refused."""
    if isinstance(values, numpy.ndarray) and values.ndim == 1:
        return tuple(values.tolist())
    if (isinstance(values, (str, bytes, bytearray, memoryview, dict, numpy.ndarray, numpy.generic))
            or not PySequence_Check(values)):
        wanted = "an int or a sequence of ints" if scalar_allowed else "a sequence of ints"
        remedy = f"; pass [{values}]" if type(values) is int else ""
        raise TypeError(f"{name} = {values!r}: must be {wanted}, not {type(values).__name__}{remedy}")
    return tuple(values)


cdef bint plain_ints(object values, IntArray* array) noexcept:
    """Read a list or tuple of ints that fit, the usual case; False for any other."""
    cdef PyObject** items = PySequence_Fast_ITEMS(values)
    cdef Py_ssize_t i
    cdef int overflow = 0
    array.size = PySequence_Fast_GET_SIZE(values)
    if array.size > MAX_INTS:
        return False
    for i in range(array.size):
        if not PyLong_CheckExact(<object>items[i]):
            return False
        array.values[i] = PyLong_AsLongLongAndOverflow(<object>items[i], &overflow)
        if overflow != 0:
            return False
    return True


cdef int read_ints(object values, str name, IntArray* array, bint scalar_allowed=False) except -1:
    """An aclIntArray or a sequence of ints; a bare int only where a one-call function allows it."""
    cdef Py_ssize_t i
    array.scalar = False
    if type(values) is aclIntArray:
        if not (<aclIntArray>values).alive:
            raise refusal(ERR_INVALID, f"{name}: is a destroyed aclIntArray; make it anew by aclCreateIntArray")
        values = (<aclIntArray>values).values
    elif scalar_allowed and (PyLong_CheckExact(values)
                             or not (type(values) is tuple or type(values) is list)
                             and isinstance(values, (int, numpy.integer))):
        array.scalar = True
        array.size = 1
        array.values[0] = read_int(values, name)
        return 0
    elif type(values) is not tuple and type(values) is not list:
        values = sequence_of(values, name, scalar_allowed)
    if plain_ints(values, array):
        return 0
    array.size = len(values)
    for i in range(array.size):
        # All are converted, so that the first bad one is named; those beyond MAX_INTS are refused by their number.
        if type(values) is list:
            item = (<list>values)[i]
        else:
            item = (<tuple>values)[i]
        if PyLong_CheckExact(item) and i < MAX_INTS:
            array.values[i] = read_int(item, name)
        elif i < MAX_INTS:
            array.values[i] = read_int(item, f"{name}[{i}]")
        else:
            read_int(item, f"{name}[{i}]")
    return 0


def aclCreateIntArray(value, size=None):
    """Make an aclIntArray of the first `size` of a sequence of ints (default: of all).

    >>> import aclnn_bw
    >>> aclnn_bw.aclCreateIntArray([3, 3], 2)
    <aclIntArray [3, 3]>
    """
    cdef aclIntArray array
    cdef tuple values
    cdef int64_t count
    if value is None and size == 0:
        values = ()
    elif value is None:
        raise refusal(ERR_NULLPTR, "value = None: must not be null")
    elif type(value) is aclIntArray:
        if not (<aclIntArray>value).alive:
            raise refusal(ERR_INVALID, "value: is a destroyed aclIntArray")
        values = (<aclIntArray>value).values
    else:
        values = sequence_of(value, "value")
    values = tuple([read_int(item, f"value[{i}]") for i, item in enumerate(values)])
    count = len(values) if size is None else read_int(size, "size")
    if not 0 <= count <= len(values):
        raise refusal(ERR_INVALID, f"size = {count}: must be in [0, {len(values)}], the length of value")
    array = aclIntArray.__new__(aclIntArray)
    array.values = values[:count]
    array.alive = True
    return array


def aclDestroyIntArray(array):
    """Make an aclIntArray unusable for new calls; None is fine. Executors made before keep what they need."""
    if array is None:
        return
    if type(array) is not aclIntArray:
        raise TypeError(f"array = {array!r}: must be an aclIntArray, not {type(array).__name__}")
    (<aclIntArray>array).alive = False
