/* Both phases of every operator, as the public headers declare them: made of the records of operators.def. The build
 * includes those headers before this file, so that a function that differs does not compile. */
#include "calls.h"

#define DECLARE_READ(argument) const aclTensor *argument,
#define DECLARE_SHAPE(argument) const aclTensor *argument,
#define DECLARE_WRITTEN(argument) aclTensor *argument,
#define DECLARE_INTS(argument) const aclIntArray *argument,
#define DECLARE_BOOL(argument) bool argument,
#define DECLARE_INT(argument) int64_t argument,
#define DECLARE_INT8(argument) int8_t argument,
#define DECLARE_REAL(argument) double argument,
#define DECLARE_LAYOUT(argument)

#define SET_READ(argument) arguments.tensors[tensors++] = (const aclnn_bw_tensor *)argument;
#define SET_SHAPE(argument) arguments.tensors[tensors++] = (const aclnn_bw_tensor *)argument;
#define SET_WRITTEN(argument) arguments.tensors[tensors++] = (const aclnn_bw_tensor *)argument;
#define SET_INTS(argument) arguments.arrays[arrays++] = (const aclnn_bw_int_array *)argument;
#define SET_BOOL(argument) arguments.numbers[numbers++] = argument;
#define SET_INT(argument) arguments.numbers[numbers++] = argument;
#define SET_INT8(argument) arguments.numbers[numbers++] = argument;
#define SET_REAL(argument) arguments.real = argument;
#define SET_LAYOUT(argument)

/* (a, b, c) (d, e, f) ...: each macro leaves the other one before the next triple. */
#define DECLARE_A(kind, argument, flags) DECLARE_##kind(argument) DECLARE_B
#define DECLARE_B(kind, argument, flags) DECLARE_##kind(argument) DECLARE_A
#define DECLARE_A_END
#define DECLARE_B_END
#define SET_A(kind, argument, flags) SET_##kind(argument) SET_B
#define SET_B(kind, argument, flags) SET_##kind(argument) SET_A
#define SET_A_END
#define SET_B_END
#define ENDED(...) ENDED_(__VA_ARGS__)
#define ENDED_(...) __VA_ARGS__##_END

#define OPERATOR(id, name, one_call, parameters, ...)                                                            \
    aclnnStatus aclnn##name##GetWorkspaceSize(ENDED(DECLARE_A parameters) uint64_t *workspaceSize,               \
                                              aclOpExecutor **executor)                                          \
    {                                                                                                            \
        aclnn_bw_arguments arguments = {.op = ACLNN_BW_##id};                                                    \
        int tensors = 0, arrays = 0, numbers = 0;                                                                \
        ENDED(SET_A parameters)                                                                                  \
        (void)tensors, (void)arrays, (void)numbers;                                                              \
        return aclnn_bw_phase_1("aclnn" #name "GetWorkspaceSize", &arguments, workspaceSize, executor);          \
    }                                                                                                            \
    aclnnStatus aclnn##name(void *workspace, uint64_t workspaceSize, aclOpExecutor *executor, aclrtStream stream) \
    {                                                                                                            \
        return aclnn_bw_phase_2("aclnn" #name, ACLNN_BW_##id, workspace, workspaceSize, executor, stream);       \
    }
#include "operators.def"
