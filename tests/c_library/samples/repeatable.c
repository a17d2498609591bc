/* In C: one executor of an average pool's gradient that runs for two batches.
 *
 * Making an executor repeatable saves phase 1 for later batches of the same shape: only the addresses change.
 */
#include <stdio.h>
#include <stdlib.h>

#include "acl/acl.h"
#include "aclnn/acl_meta.h"
#include "aclnnop/aclnn_avgpool2d_backward.h"

enum { BATCHES = 2, GRADIENTS = 2 * 2, VALUES = 4 * 4 };

/* Ends the program at the first call that fails. */
static void check(int status, const char *what)
{
    if (status != ACL_SUCCESS) {
        const char *message = aclGetRecentErrMsg();
        fprintf(stderr, "%s: error %d: %s\n", what, status, message ? message : "");
        exit(EXIT_FAILURE);
    }
}

static aclTensor *tensor(const int64_t shape[4], void *memory)
{
    aclTensor *made = aclCreateTensor(shape, 4, ACL_FLOAT, NULL, 0, ACL_FORMAT_NCHW, shape, 4, memory);
    check(made ? ACL_SUCCESS : ACL_ERROR_INVALID_PARAM, "aclCreateTensor");
    return made;
}

int main(void)
{
    const int64_t gradShape[4] = {1, 1, 2, 2}, shape[4] = {1, 1, 4, 4}, two[2] = {2, 2}, none[2] = {0, 0};
    aclTensor *gradOutput, *self, *gradInput;
    aclIntArray *kernelSize, *padding;
    aclrtStream stream = NULL;
    aclOpExecutor *executor = NULL;
    uint64_t workspaceSize = 0;
    void *workspace = NULL, *gradients[BATCHES], *results[BATCHES];
    float host[VALUES];

    /* 1. The runtime, a device, and a stream on it. */
    check(aclInit(NULL), "aclInit");
    check(aclrtSetDevice(0), "aclrtSetDevice");
    check(aclrtCreateStream(&stream), "aclrtCreateStream");

    /* 2. Memory of the device for each batch; tensors over that of the first. */
    for (int batch = 0; batch < BATCHES; batch++) {
        for (int i = 0; i < GRADIENTS; i++)
            host[i] = (float)(10 * batch + i);
        check(aclrtMalloc(&gradients[batch], GRADIENTS * sizeof *host, ACL_MEM_MALLOC_HUGE_FIRST), "aclrtMalloc");
        check(aclrtMalloc(&results[batch], VALUES * sizeof *host, ACL_MEM_MALLOC_HUGE_FIRST), "aclrtMalloc");
        check(aclrtMemcpy(gradients[batch], GRADIENTS * sizeof *host, host, GRADIENTS * sizeof *host,
                          ACL_MEMCPY_HOST_TO_DEVICE), "aclrtMemcpy");
    }
    gradOutput = tensor(gradShape, gradients[0]);
    self = tensor(shape, NULL); /* only its shape counts */
    gradInput = tensor(shape, results[0]);
    kernelSize = aclCreateIntArray(two, 2);
    padding = aclCreateIntArray(none, 2);

    /* 3. Phase 1, once. A null stride is the kernel size. The tensors are not needed any more after it. */
    check(aclnnAvgPool2dBackwardGetWorkspaceSize(gradOutput, self, kernelSize, NULL, padding, false, true, 0, 0,
                                                 gradInput, &workspaceSize, &executor),
          "aclnnAvgPool2dBackwardGetWorkspaceSize");
    check(aclSetAclOpExecutorRepeatable(executor), "aclSetAclOpExecutorRepeatable");
    if (workspaceSize > 0)
        check(aclrtMalloc(&workspace, workspaceSize, ACL_MEM_MALLOC_HUGE_FIRST), "aclrtMalloc");

    /* 4. Phase 2 for each batch. Index 0 is the first input, and the first output. */
    for (int batch = 0; batch < BATCHES; batch++) {
        check(aclSetInputTensorAddr(executor, 0, gradOutput, gradients[batch]), "aclSetInputTensorAddr");
        check(aclSetOutputTensorAddr(executor, 0, gradInput, results[batch]), "aclSetOutputTensorAddr");
        check(aclnnAvgPool2dBackward(workspace, workspaceSize, executor, stream), "aclnnAvgPool2dBackward");
    }
    check(aclrtSynchronizeStream(stream), "aclrtSynchronizeStream");

    /* 5. The results. */
    for (int batch = 0; batch < BATCHES; batch++) {
        check(aclrtMemcpy(host, sizeof host, results[batch], sizeof host, ACL_MEMCPY_DEVICE_TO_HOST), "aclrtMemcpy");
        printf("batch %d:", batch);
        for (int i = 0; i < VALUES; i++)
            printf(" %.9g", (double)host[i]);
        printf("\n");
    }

    /* 6. Everything is given back. */
    check(aclDestroyAclOpExecutor(executor), "aclDestroyAclOpExecutor");
    check(aclDestroyTensor(gradOutput), "aclDestroyTensor");
    check(aclDestroyTensor(self), "aclDestroyTensor");
    check(aclDestroyTensor(gradInput), "aclDestroyTensor");
    check(aclDestroyIntArray(kernelSize), "aclDestroyIntArray");
    check(aclDestroyIntArray(padding), "aclDestroyIntArray");
    for (int batch = 0; batch < BATCHES; batch++) {
        check(aclrtFree(gradients[batch]), "aclrtFree");
        check(aclrtFree(results[batch]), "aclrtFree");
    }
    if (workspace)
        check(aclrtFree(workspace), "aclrtFree");
    check(aclrtDestroyStream(stream), "aclrtDestroyStream");
    check(aclrtResetDevice(0), "aclrtResetDevice");
    check(aclFinalize(), "aclFinalize");
    return 0;
}
