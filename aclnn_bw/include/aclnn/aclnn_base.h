/* Begin and end of the operator interface, and the type of its status codes. */
#ifndef ACLNN_BW_ACLNN_BASE_H
#define ACLNN_BW_ACLNN_BASE_H

#include "acl/acl_base.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef int32_t aclnnStatus;

/* Nothing depends on these two: they return 0, however often they are called. */
ACL_FUNC_VISIBILITY aclnnStatus aclnnInit(const char *configPath);
ACL_FUNC_VISIBILITY aclnnStatus aclnnFinalize(void);

#ifdef __cplusplus
}
#endif
#endif
