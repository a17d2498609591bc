/* The gradient of replication padding with respect to its input. */
#ifndef ACLNN_BW_ACLNN_PAD2D_BACKWARD_H
#define ACLNN_BW_ACLNN_PAD2D_BACKWARD_H

#include "aclnn/acl_meta.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Phase 1: checks the arguments and plans the work. A refusal leaves *workspaceSize and *executor as they were. */
ACL_FUNC_VISIBILITY aclnnStatus aclnnReplicationPad2dBackwardGetWorkspaceSize(
    const aclTensor *gradOutput, const aclTensor *self, const aclIntArray *padding, aclTensor *gradInput,
    uint64_t *workspaceSize, aclOpExecutor **executor);
/* Phase 2: runs the executor, with a workspace of the size that phase 1 has told. */
ACL_FUNC_VISIBILITY aclnnStatus aclnnReplicationPad2dBackward(
    void *workspace, uint64_t workspaceSize, aclOpExecutor *executor, const aclrtStream stream);

#ifdef __cplusplus
}
#endif
#endif
