/* The gradient of im2col with respect to its input: the columns, folded back to an image. */
#ifndef ACLNN_BW_ACLNN_IM2COL_BACKWARD_H
#define ACLNN_BW_ACLNN_IM2COL_BACKWARD_H

#include "aclnn/acl_meta.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Phase 1: checks the arguments and plans the work. A refusal leaves *workspaceSize and *executor as they were. */
ACL_FUNC_VISIBILITY aclnnStatus aclnnIm2colBackwardGetWorkspaceSize(
    const aclTensor *gradOutput, const aclIntArray *inputSize, const aclIntArray *kernelSize,
    const aclIntArray *dilation, const aclIntArray *padding, const aclIntArray *stride, aclTensor *out,
    uint64_t *workspaceSize, aclOpExecutor **executor);
/* Phase 2: runs the executor, with a workspace of the size that phase 1 has told. */
ACL_FUNC_VISIBILITY aclnnStatus aclnnIm2colBackward(
    void *workspace, uint64_t workspaceSize, aclOpExecutor *executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif
#endif
