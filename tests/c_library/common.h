/* What the test programs share: a check that counts what is wrong, and a small call of the average pool. */
#ifndef COMMON_H
#define COMMON_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "acl/acl.h"
#include "aclnn/acl_meta.h"
#include "aclnnop/aclnn_avgpool2d_backward.h"

static int wrong; /* what a program ends with */

/* The status of a call, and a piece of its message if one is given. */
static inline void expect(const char *call, long long status, long long wanted, const char *piece, int line)
{
    const char *message = aclGetRecentErrMsg();
    if (status != wanted) {
        fprintf(stderr, "%d: %s gave %lld, not %lld: %s\n", line, call, status, wanted, message ? message : "");
        wrong++;
    } else if (wanted != 0 && (!message || (piece && !strstr(message, piece)) || strstr(message, "None"))) {
        fprintf(stderr, "%d: %s says \"%s\", not \"%s\"\n", line, call, message ? message : "", piece ? piece : "");
        wrong++;
    }
}
#define IS(call, status) expect(#call, (long long)(call), (long long)(status), NULL, __LINE__)
#define SAYS(call, status, piece) expect(#call, (long long)(call), (long long)(status), piece, __LINE__)
#define TRUE(condition) ((condition) ? (void)0 : (void)(wrong++, fprintf(stderr, "%d: not %s\n", __LINE__, #condition)))

enum { OUTPUTS = 4, INPUTS = 16 };

typedef struct {
    aclTensor *gradOutput, *self, *gradInput;
    aclIntArray *kernelSize, *padding;
    float *given, *made;
} pool;

/* [1, 1, 4, 4] by windows of 2x2: gradInput becomes a quarter of gradOutput's values. */
static inline pool new_pool(float *given, float *made)
{
    static const int64_t out[4] = {1, 1, 2, 2}, in[4] = {1, 1, 4, 4}, two[2] = {2, 2}, none[2] = {0, 0};
    pool p;
    p.gradOutput = aclCreateTensor(out, 4, ACL_FLOAT, NULL, 0, ACL_FORMAT_NCHW, out, 4, given);
    p.self = aclCreateTensor(in, 4, ACL_FLOAT, NULL, 0, ACL_FORMAT_NCHW, in, 4, NULL);
    p.gradInput = aclCreateTensor(in, 4, ACL_FLOAT, NULL, 0, ACL_FORMAT_NCHW, in, 4, made);
    p.kernelSize = aclCreateIntArray(two, 2);
    p.padding = aclCreateIntArray(none, 2);
    p.given = given;
    p.made = made;
    return p;
}

static inline void delete_pool(const pool *p)
{
    (void)aclDestroyTensor(p->gradOutput);
    (void)aclDestroyTensor(p->self);
    (void)aclDestroyTensor(p->gradInput);
    (void)aclDestroyIntArray(p->kernelSize);
    (void)aclDestroyIntArray(p->padding);
}

static inline int plan(const pool *p, uint64_t *size, aclOpExecutor **executor)
{
    return aclnnAvgPool2dBackwardGetWorkspaceSize(p->gradOutput, p->self, p->kernelSize, NULL, p->padding, false, true,
                                                  0, 0, p->gradInput, size, executor);
}

static inline aclOpExecutor *planned(const pool *p)
{
    uint64_t size = 1;
    aclOpExecutor *executor = NULL;
    if (plan(p, &size, &executor) != 0 || size != 0) {
        fprintf(stderr, "phase 1 failed: %s\n", aclGetRecentErrMsg());
        exit(9);
    }
    return executor;
}

/* Whether gradInput is what gradOutput = value everywhere makes. */
static inline int holds(const float *made, float value)
{
    for (int i = 0; i < INPUTS; i++)
        if (made[i] != value / 4)
            return 0;
    return 1;
}

static inline void fill(float *values, int count, float value)
{
    for (int i = 0; i < count; i++)
        values[i] = value;
}

#endif
