/* The runtime interface: begin, end, errors, and all of acl_base.h and acl_rt.h. */
#ifndef ACLNN_BW_ACL_H
#define ACLNN_BW_ACL_H

#include "acl_base.h"
#include "acl_rt.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Reads the environment again (ACLNN_BW_SOC, ...); configPath is not used. 100002: called twice without aclFinalize. */
ACL_FUNC_VISIBILITY aclError aclInit(const char *configPath);
/* Waits for all streams. 100037: without aclInit. */
ACL_FUNC_VISIBILITY aclError aclFinalize(void);
/* The calling thread's last message, which is forgotten then; null if there is none. It is the library's, and stays
 * until the thread asks again. */
ACL_FUNC_VISIBILITY const char *aclGetRecentErrMsg(void);

#ifdef __cplusplus
}
#endif
#endif
