/* What programs find here in CANN: the visibility of the operators' functions. */
#ifndef ACLNN_BW_ACLNN_UTIL_H
#define ACLNN_BW_ACLNN_UTIL_H

#include "acl/acl_base.h"

#define ACLNN_API ACL_FUNC_VISIBILITY

#endif
