/* The windows of images as columns. */
#ifndef ACLNN_BW_ACLNN_IM2COL_H
#define ACLNN_BW_ACLNN_IM2COL_H

#include "aclnn/acl_meta.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Phase 1: checks the arguments and plans the work. A refusal leaves *workspaceSize and *executor as they were. `out` is
 * const, and written by phase 2. */
ACL_FUNC_VISIBILITY aclnnStatus aclnnIm2colGetWorkspaceSize(
    const aclTensor *self, const aclIntArray *kernelSize, const aclIntArray *dilation, const aclIntArray *padding,
    const aclIntArray *stride, const aclTensor *out, uint64_t *workspaceSize, aclOpExecutor **executor);
/* Phase 2: runs the executor, with a workspace of the size that phase 1 has told. */
ACL_FUNC_VISIBILITY aclnnStatus aclnnIm2col(
    void *workspace, uint64_t workspaceSize, aclOpExecutor *executor, const aclrtStream stream);

#ifdef __cplusplus
}
#endif
#endif
