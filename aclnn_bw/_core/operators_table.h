/* operators.def as a table; for operators.pyx alone. */
#include "operators.h"

#define OPERATOR(id, name, one_call, ...)                                                                  \
    int aclnn_bw_##one_call(const aclnn_bw_context *, const aclnn_bw_arguments *, aclnn_bw_executor **); \
    int64_t aclnn_bw_##one_call##_facts(const aclnn_bw_executor *, aclnn_bw_fact *);
#include "operators.def"

#define RESULT(function, size) aclnn_bw_##function##_result
#define OPERATOR(id, name, one_call, parameters, dtypes, result, ...) \
    int result(const aclnn_bw_context *, const aclnn_bw_arguments *, aclnn_bw_tensor *);
#include "operators.def"
#undef RESULT
#define RESULT(function, size) aclnn_bw_##function##_result, ACLNN_BW_ARG_##size

#define DTYPES(ascend910, ascend310p, ascend910b, host) {ascend910, ascend310p, ascend910b, host}
#define DTYPE(number) (UINT64_C(1) << (number))
#define NONE 0
#define F32 DTYPE(0)
#define BASIC (F32 | DTYPE(1))
#define F64 DTYPE(11)
#define COMPLEX (DTYPE(16) | DTYPE(17))
#define BF16 DTYPE(27)

#define SCALAR(count) (ACLNN_BW_SCALAR | (count) << ACLNN_BW_COUNT_SHIFT)
#define NULLABLE ACLNN_BW_NULLABLE
#define EMPTY ACLNN_BW_EMPTY
#define OPTIONAL ACLNN_BW_OPTIONAL
#define IS_MASK ACLNN_BW_IS_MASK
#define OWN_DTYPE ACLNN_BW_OWN_DTYPE
#define TWO_PHASE_ONLY ACLNN_BW_TWO_PHASE_ONLY
#define ALWAYS_NEW ACLNN_BW_ALWAYS_NEW

/* (a, b, c) (d, e, f) ...: each macro leaves the other one before the next triple. */
#define PARAMETER_A(kind, argument, flags) {ACLNN_BW_##kind, ACLNN_BW_ARG_##argument, flags}, PARAMETER_B
#define PARAMETER_B(kind, argument, flags) {ACLNN_BW_##kind, ACLNN_BW_ARG_##argument, flags}, PARAMETER_A
#define PARAMETER_A_END
#define PARAMETER_B_END
/* Of these the tensors, and the arrays. */
#define TENSOR(kind, argument, flags) {ACLNN_BW_##kind, ACLNN_BW_ARG_##argument, flags},
#define TENSOR_READ TENSOR
#define TENSOR_SHAPE TENSOR
#define TENSOR_WRITTEN TENSOR
#define TENSOR_INTS(...)
#define TENSOR_BOOL(...)
#define TENSOR_INT(...)
#define TENSOR_INT8(...)
#define TENSOR_REAL(...)
#define TENSOR_LAYOUT(...)
#define TENSOR_A(kind, argument, flags) TENSOR_##kind(kind, argument, flags) TENSOR_B
#define TENSOR_B(kind, argument, flags) TENSOR_##kind(kind, argument, flags) TENSOR_A
#define TENSOR_A_END
#define TENSOR_B_END
#define ARRAY_READ(...)
#define ARRAY_SHAPE(...)
#define ARRAY_WRITTEN(...)
#define ARRAY_INTS TENSOR
#define ARRAY_BOOL(...)
#define ARRAY_INT(...)
#define ARRAY_INT8(...)
#define ARRAY_REAL(...)
#define ARRAY_LAYOUT(...)
#define ARRAY_A(kind, argument, flags) ARRAY_##kind(kind, argument, flags) ARRAY_B
#define ARRAY_B(kind, argument, flags) ARRAY_##kind(kind, argument, flags) ARRAY_A
#define ARRAY_A_END
#define ARRAY_B_END
#define ENDED(...) ENDED_(__VA_ARGS__)
#define ENDED_(...) __VA_ARGS__##_END

#define PARAMETERS(...) (const aclnn_bw_parameter[]){ENDED(__VA_ARGS__) {ACLNN_BW_END, 0, 0}}

static const aclnn_bw_operator aclnn_bw_table[] = {
#define OPERATOR(id, name, one_call, parameters, dtypes, result, ...)                                  \
    {#name, #one_call, aclnn_bw_##one_call, result, aclnn_bw_##one_call##_facts, dtypes,               \
     PARAMETERS(PARAMETER_A parameters), PARAMETERS(TENSOR_A parameters), PARAMETERS(ARRAY_A parameters), \
     (const char *const[]){__VA_ARGS__, 0}},
#include "operators.def"
};
