/* Both phases of every operator, as the public headers declare them: made of the records of operators.def. The build
 * includes those headers before this file, so that a function that differs does not compile. */
#include "calls.h"
#include "parameters.h"

#define COMMA ,
#define DECLARED(kind, argument) TYPE_##kind argument COMMA
#define ONE(kind, argument, flags) \
    OF_##kind(DECLARED(kind, argument), DECLARED(kind, argument), DECLARED(kind, argument), DECLARED(kind, argument))
#define TWO(kind, argument, flags)                                                  \
    OF_##kind(arguments.tensors[tensors++] = (const aclnn_bw_tensor *)argument;,    \
              arguments.arrays[arrays++] = (const aclnn_bw_int_array *)argument;,   \
              arguments.numbers[numbers++] = argument;, arguments.real = argument;)

#define OPERATOR(id, name, one_call, parameters, ...)                                                            \
    aclnnStatus aclnn##name##GetWorkspaceSize(WALK_1(parameters) uint64_t *workspaceSize,               \
                                              aclOpExecutor **executor)                                          \
    {                                                                                                            \
        aclnn_bw_arguments arguments = {.op = ACLNN_BW_##id};                                                    \
        int tensors = 0, arrays = 0, numbers = 0;                                                                \
        WALK_2(parameters)                                                                                  \
        (void)tensors, (void)arrays, (void)numbers;                                                              \
        return aclnn_bw_phase_1("aclnn" #name "GetWorkspaceSize", &arguments, workspaceSize, executor);          \
    }                                                                                                            \
    aclnnStatus aclnn##name(void *workspace, uint64_t workspaceSize, aclOpExecutor *executor, aclrtStream stream) \
    {                                                                                                            \
        return aclnn_bw_phase_2("aclnn" #name, ACLNN_BW_##id, workspace, workspaceSize, executor, stream);       \
    }
#include "operators.def"
