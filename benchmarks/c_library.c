/* The time of both phases of a tiny average pool through the C library, in ns: the least of many batches.
 *
 * Once with the same arguments, so that the plan is used again, and once with two divisors in turn, so that each call
 * makes its own. `python -m benchmarks.c_library` compiles and runs it.
 */
#define _POSIX_C_SOURCE 200809L
#include <stdio.h>
#include <time.h>

#include "acl/acl.h"
#include "aclnnop/aclnn_avgpool2d_backward.h"

enum { BATCHES = 400, CALLS = 1000 };

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

int main(void)
{
    int64_t small[] = {1, 2, 2, 2}, large[] = {1, 2, 4, 4}, two[] = {2, 2}, zero[] = {0, 0};
    float gradient[8] = {0}, result[32];
    aclTensor *gradOutput = aclCreateTensor(small, 4, ACL_FLOAT, NULL, 0, ACL_FORMAT_NCHW, small, 4, gradient);
    aclTensor *gradInput = aclCreateTensor(large, 4, ACL_FLOAT, NULL, 0, ACL_FORMAT_NCHW, large, 4, result);
    aclIntArray *kernel = aclCreateIntArray(two, 2), *padding = aclCreateIntArray(zero, 2);
    double least[2] = {1e9, 1e9};
    for (int batch = 0; batch < 2 * BATCHES; batch++) {
        double start = now();
        for (int i = 0; i < CALLS; i++) {
            uint64_t size;
            aclOpExecutor *executor;
            int64_t divisor = batch % 2 ? i % 2 : 0;
            if (aclnnAvgPool2dBackwardGetWorkspaceSize(gradOutput, gradInput, kernel, kernel, padding, false, true,
                                                       divisor, 0, gradInput, &size, &executor)
                || size > 0 || aclnnAvgPool2dBackward(NULL, size, executor, NULL)) {
                fprintf(stderr, "%s\n", aclGetRecentErrMsg());
                return 1;
            }
        }
        start = (now() - start) / CALLS;
        if (start < least[batch % 2])
            least[batch % 2] = start;
    }
    printf("%.0f %.0f\n", least[0], least[1]);
    aclDestroyTensor(gradOutput);
    aclDestroyTensor(gradInput);
    aclDestroyIntArray(kernel);
    aclDestroyIntArray(padding);
    return 0;
}
