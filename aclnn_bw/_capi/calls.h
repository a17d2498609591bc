/* Of calls.pyx, for the files in C. */
#ifndef ACLNN_BW_CALLS_H
#define ACLNN_BW_CALLS_H

#include "aclnn/acl_meta.h"
#include "operators.h"

/* Both phases of any operator. `name` is the call's, for the log. */
aclnnStatus aclnn_bw_phase_1(const char *name, const aclnn_bw_arguments *arguments, uint64_t *workspaceSize,
                             aclOpExecutor **executor);
aclnnStatus aclnn_bw_phase_2(const char *name, int op, void *workspace, uint64_t workspaceSize, aclOpExecutor *executor,
                             aclrtStream stream);
/* The refusal of a dtype of which aclDataTypeSize is 0. */
int aclnn_bw_no_size(int dtype);

#endif
