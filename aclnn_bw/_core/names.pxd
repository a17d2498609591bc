"""How each face spells an argument, and what dtypes, formats and products are called: for messages only."""
from libc.stdint cimport int64_t

from aclnn_bw._core.operators cimport operator_of
from aclnn_bw._core.status cimport wide
from aclnn_bw._core.types cimport (
    ARG_SELF, ARGUMENTS, ASCEND310P, ASCEND910, ASCEND910B, C_CALL, MASK_HELPER, TWO_PHASE, Context, IntArray,
    Record, argument_names,
)


cdef extern from "<stdio.h>" nogil:
    int snprintf(char*, size_t, const char*, ...) noexcept

cdef enum:
    TEXT = 256      # bytes of a text buffer that the functions below fill


cdef inline const char* choose(bint condition, const char* yes, const char* no) noexcept nogil:
    """`yes if condition else no`, which Cython would make of Python strings."""
    return yes if condition else no


cdef inline const char* name(const Context* context, int argument) noexcept nogil:
    """The caller's own word for an argument."""
    if argument < 0 or argument >= ARGUMENTS:
        return "argument"
    if context.face == MASK_HELPER and argument == ARG_SELF:
        return "input_shape"
    return argument_names[0 if context.face in (TWO_PHASE, C_CALL) else 1][argument]


cdef inline const char* null(int face) noexcept nogil:
    """The caller's own word for nothing."""
    return choose(face == C_CALL, "nullptr", "None")


cdef inline const char* of_shape(const Context* context, int argument) noexcept nogil:
    """What follows the name of a tensor whose shape is meant; nothing where the argument is the shape itself."""
    return choose(context.face == MASK_HELPER and argument == ARG_SELF, "", ".shape")


cdef inline const char* dtype_name(int dtype) noexcept nogil:
    cdef (const char*)[41] names = [
        "ACL_FLOAT", "ACL_FLOAT16", "ACL_INT8", "ACL_INT32", "ACL_UINT8", "5", "ACL_INT16", "ACL_UINT16", "ACL_UINT32",
        "ACL_INT64", "ACL_UINT64", "ACL_DOUBLE", "ACL_BOOL", "ACL_STRING", "14", "15", "ACL_COMPLEX64",
        "ACL_COMPLEX128", "18", "19", "20", "21", "22", "23", "24", "25", "26", "ACL_BF16", "28", "ACL_INT4",
        "ACL_UINT1", "31", "32", "ACL_COMPLEX32", "ACL_HIFLOAT8", "ACL_FLOAT8_E5M2", "ACL_FLOAT8_E4M3FN",
        "ACL_FLOAT8_E8M0", "38", "39", "ACL_FLOAT4_E2M1"]
    if not 0 <= dtype < 41:
        return "ACL_DT_UNDEFINED"
    return names[dtype]


cdef inline const char* dtype_text(const Context* context, int dtype) noexcept nogil:
    """The caller's own word for a dtype. The Python face says what one is called that is none of ours."""
    cdef (const char*)[28] names = [
        "float32", "float16", "int8", "int32", "uint8", NULL, "int16", "uint16", "uint32", "int64", "uint64", "float64",
        "bool", NULL, NULL, NULL, "complex64", "complex128", NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
        "bfloat16"]
    if context.face in (TWO_PHASE, C_CALL):
        return dtype_name(dtype)
    if dtype < 0:
        return "undefined"
    return dtype_name(dtype) if dtype >= 28 or names[dtype] == NULL else names[dtype]


cdef inline const char* format_name(int format) noexcept nogil:
    cdef (const char*)[48] names = [
        "ACL_FORMAT_NCHW", "ACL_FORMAT_NHWC", "ACL_FORMAT_ND", "ACL_FORMAT_NC1HWC0", "ACL_FORMAT_FRACTAL_Z", "5", "6",
        "7", "8", "9", "10", "11", "ACL_FORMAT_NC1HWC0_C04", "13", "14", "15", "ACL_FORMAT_HWCN", "17", "18", "19",
        "20", "21", "22", "23", "24", "25", "26", "ACL_FORMAT_NDHWC", "28", "ACL_FORMAT_FRACTAL_NZ", "ACL_FORMAT_NCDHW",
        "31", "ACL_FORMAT_NDC1HWC0", "ACL_FRACTAL_Z_3D", "34", "ACL_FORMAT_NC", "36", "37", "38", "39", "40", "41",
        "42", "43", "44", "45", "46", "ACL_FORMAT_NCL"]
    if not 0 <= format < 48:
        return "ACL_FORMAT_UNDEFINED"
    return names[format]


cdef inline const char* host_rules(const Context* context) noexcept nogil:
    """What the caller writes to have no product's limits."""
    return choose(context.face == C_CALL, "ACLNN_BW_SOC=Host", "soc('Host')")


cdef inline const char* default_rules(const Context* context) noexcept nogil:
    return choose(context.face == C_CALL, "ACLNN_BW_SOC=Ascend910B", "soc('Ascend910B')")


cdef inline const char* operator_name(int op) noexcept nogil:
    """What follows aclnn in the calls."""
    cdef const Record* record = operator_of(op)
    if record == NULL:
        return "an operator without a name"
    return record.name


cdef inline const char* product_name(int product) noexcept nogil:
    if product == ASCEND910:
        return "Ascend910"
    if product == ASCEND310P:
        return "Ascend310P"
    return choose(product == ASCEND910B, "Ascend910B", "Host")


cdef inline const char* tuple_text(char* text, const int64_t* values, int64_t count) noexcept nogil:
    """The values as Python prints a tuple: (1, 16, 4, 4)."""
    cdef int used = snprintf(text, TEXT, "(")
    cdef int64_t i
    for i in range(count):
        if used < TEXT:
            used += snprintf(text + used, <size_t>(TEXT - used), "%lld%s", <wide>values[i],
                             choose(i < count - 1, ", ", choose(count == 1, ",", "")))
    if used < TEXT:
        snprintf(text + used, <size_t>(TEXT - used), ")")
    return text


cdef inline const char* element_text(char* text, const Context* context, int argument, const IntArray* array,
                                     int64_t i) noexcept nogil:
    """What the caller wrote for value i of a pair: `padding` for a bare int, `padding[1]` for a sequence."""
    if array.scalar:
        return name(context, argument)
    snprintf(text, TEXT, "%s[%lld]", name(context, argument), <wide>(i if i < array.size else array.size - 1))
    return text
