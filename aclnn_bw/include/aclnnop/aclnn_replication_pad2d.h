/* Replication padding of the last two axes. */
#ifndef ACLNN_BW_ACLNN_REPLICATION_PAD2D_H
#define ACLNN_BW_ACLNN_REPLICATION_PAD2D_H

#include "aclnn/acl_meta.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Phase 1: checks the arguments and plans the work. A refusal leaves *workspaceSize and *executor as they were. */
ACL_FUNC_VISIBILITY aclnnStatus aclnnReplicationPad2dGetWorkspaceSize(
    const aclTensor *self, const aclIntArray *padding, aclTensor *out, uint64_t *workspaceSize,
    aclOpExecutor **executor);
/* Phase 2: runs the executor, with a workspace of the size that phase 1 has told. */
ACL_FUNC_VISIBILITY aclnnStatus aclnnReplicationPad2d(
    void *workspace, uint64_t workspaceSize, aclOpExecutor *executor, const aclrtStream stream);

#ifdef __cplusplus
}
#endif
#endif
