/* What the files of the runtime share. */
#ifndef ACLNN_BW_INTERNAL_H
#define ACLNN_BW_INTERNAL_H

#include <stdint.h>

#include "acl/acl.h"
#include "runtime.h"

enum { MESSAGE = 1024 };

/* Of the core: a refusal leaves its message for the calling thread. */
__attribute__((format(printf, 2, 3))) int aclnn_bw_refuse(int status, const char *format, ...);
const char *aclnn_bw_recent_message(void);
void aclnn_bw_forget_message(void);

#define refuse aclnn_bw_refuse
#define logged(call, status) aclnn_bw_logged(call, status, NULL)

/* 0, or a refusal: of a null pointer; of a thread without a device. */
int aclnn_bw_not_null(const char *name, const void *pointer);
int aclnn_bw_device_is_set(void);

/* Of streams.c. The refusal of something that is no stream. */
int aclnn_bw_no_stream(void);
/* Waits for every stream; the first failure, or 0. */
int aclnn_bw_synchronize_all(void);
/* Whether work that waits on some stream needs this memory. */
int aclnn_bw_in_use(const char *begin, int64_t size);
/* Around a fork: in the child no other thread runs a stream's work. */
void aclnn_bw_lock_streams(void);
void aclnn_bw_unlock_streams(void);
void aclnn_bw_renew_streams(void);

#endif
