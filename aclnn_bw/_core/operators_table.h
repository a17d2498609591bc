/* operators.def as a table; for operators.pyx alone. */
#include "operators.h"
#include "parameters.h"

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
#define WHOLE (DTYPE(2) | DTYPE(3) | DTYPE(4) | DTYPE(6) | DTYPE(9))
#define UNSIGNED (DTYPE(7) | DTYPE(8) | DTYPE(10))
#define BOOLS DTYPE(12)
#define BYTES DTYPE(4)

#define SCALAR(count) (ACLNN_BW_SCALAR | (count) << ACLNN_BW_COUNT_SHIFT)
#define NULLABLE ACLNN_BW_NULLABLE
#define EMPTY ACLNN_BW_EMPTY
#define OPTIONAL ACLNN_BW_OPTIONAL
#define IS_MASK ACLNN_BW_IS_MASK
#define OWN_DTYPE ACLNN_BW_OWN_DTYPE
#define TWO_PHASE_ONLY ACLNN_BW_TWO_PHASE_ONLY
#define IS_INDICES ACLNN_BW_IS_INDICES
#define HOST_INT64 ACLNN_BW_HOST_INT64
#define LEADS ACLNN_BW_LEADS
#define SAMPLED ACLNN_BW_SAMPLED
#define KNOWN ACLNN_BW_KNOWN

/* The parameters of each operator; of them the tensors, and the arrays. */
#define ENTRY(kind, argument, flags) {ACLNN_BW_##kind, ACLNN_BW_ARG_##argument, flags},
#define LIST(one_call, which, parameters) \
    static const aclnn_bw_parameter aclnn_bw_##one_call##_##which[] = {parameters {ACLNN_BW_END, 0, 0}};
#define OPERATOR(id, name, one_call, record, ...) LIST(one_call, parameters, WALK_1(record))
#define ONE ENTRY
#include "operators.def"
#undef ONE
#define OPERATOR(id, name, one_call, record, ...) \
    LIST(one_call, tensors, WALK_1(record)) LIST(one_call, arrays, WALK_2(record))
#define ONE(kind, ...) OF_##kind(ENTRY(kind, __VA_ARGS__), , , )
#define TWO(kind, ...) OF_##kind(, ENTRY(kind, __VA_ARGS__), , )
#include "operators.def"

static const aclnn_bw_operator aclnn_bw_table[] = {
#define OPERATOR(id, name, one_call, parameters, dtypes, result, ...)                                               \
    {#name, #one_call, aclnn_bw_##one_call, result, aclnn_bw_##one_call##_facts, dtypes,                            \
     aclnn_bw_##one_call##_parameters, aclnn_bw_##one_call##_tensors, aclnn_bw_##one_call##_arrays,                 \
     (const char *const[]){__VA_ARGS__, 0}},
#include "operators.def"
};
