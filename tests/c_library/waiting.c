/* With ACLNN_BW_ASYNC=1: work waits for a synchronize, in order, and its failures come to light there. */
#include "common.h"

#include "aclnnop/aclnn_max_pool2d_with_indices_backward.h"

static float given[OUTPUTS], made[INPUTS];

static void run(const pool *p, aclrtStream stream) { IS(aclnnAvgPool2dBackward(NULL, 0, planned(p), stream), 0); }

/* A max pool of 4x4 by 2x2 in the layout "argmax", with indices of which one may lie outside its window. */
static void bad_run(aclrtStream stream, int32_t last)
{
    static const int64_t out[4] = {1, 1, 2, 2}, in[4] = {1, 1, 4, 4}, mask[4] = {1, 1, 4, 64}, two[2] = {2, 2},
                         none[2] = {0, 0}, one[2] = {1, 1};
    static int32_t both[2][64]; /* two of these may wait */
    static int calls;
    int32_t *indices = both[calls++ % 2];
    static float gradient[OUTPUTS] = {1, 2, 3, 4}, result[INPUTS];
    static char scratch[4096];
    aclTensor *gradOutput = aclCreateTensor(out, 4, ACL_FLOAT, NULL, 0, ACL_FORMAT_NCHW, out, 4, gradient);
    aclTensor *gradInput = aclCreateTensor(in, 4, ACL_FLOAT, NULL, 0, ACL_FORMAT_NCHW, in, 4, result);
    aclTensor *positions = aclCreateTensor(mask, 4, ACL_INT8, NULL, 0, ACL_FORMAT_NCHW, mask, 4, indices);
    aclIntArray *twos = aclCreateIntArray(two, 2), *nones = aclCreateIntArray(none, 2);
    aclIntArray *ones = aclCreateIntArray(one, 2);
    aclOpExecutor *executor = NULL;
    uint64_t size = 0;
    const int32_t good[4] = {0, 2, 8, 10};
    memcpy(indices, good, sizeof good);
    indices[3] = last;
    IS(aclnnMaxPool2dWithMaskBackwardGetWorkspaceSize(gradOutput, gradInput, positions, twos, twos, nones, ones, false,
                                                      gradInput, &size, &executor),
       0);
    TRUE(size <= sizeof scratch);
    IS(aclnnMaxPool2dWithMaskBackward(scratch, size, executor, stream), 0);
    (void)aclDestroyTensor(gradOutput);
    (void)aclDestroyTensor(gradInput);
    (void)aclDestroyTensor(positions);
    (void)aclDestroyIntArray(twos);
    (void)aclDestroyIntArray(nones);
    (void)aclDestroyIntArray(ones);
}

int main(void)
{
    pool p = new_pool(given, made);
    aclrtStream a = NULL, b = NULL;
    aclOpExecutor *executor, *other;
    aclrtEvent event = NULL;
    float *from, *to, copy[OUTPUTS] = {0}, before[OUTPUTS];
    pool q;
    IS(aclInit(NULL), 0);
    IS(aclrtSetDevice(0), 0);
    IS(aclrtCreateStream(&a), 0);
    IS(aclrtCreateStream(&b), 0);

    /* Nothing is computed before a synchronize of its own stream, or of all. */
    fill(given, OUTPUTS, 4);
    run(&p, a);
    TRUE(holds(made, 0));
    IS(aclrtSynchronizeStream(b), 0);
    IS(aclrtSynchronizeStream(NULL), 0);
    TRUE(holds(made, 0));
    IS(aclrtSynchronizeStream(a), 0);
    TRUE(holds(made, 4));
    fill(made, INPUTS, 0);
    run(&p, NULL);
    TRUE(holds(made, 0));
    IS(aclrtSynchronizeStream(NULL), 0);
    TRUE(holds(made, 4));
    fill(made, INPUTS, 0);
    run(&p, b);
    IS(aclrtSynchronizeDevice(), 0);
    TRUE(holds(made, 4));

    /* In order: copy, gradient, copy, gradient. The values are those at the time of the work. */
    fill(before, OUTPUTS, 8);
    IS(aclrtMemcpyAsync(given, sizeof given, before, sizeof before, ACL_MEMCPY_HOST_TO_DEVICE, a), 0);
    run(&p, a);
    IS(aclrtMemcpyAsync(copy, sizeof copy, made, sizeof copy, ACL_MEMCPY_DEVICE_TO_HOST, a), 0);
    IS(aclrtMemcpyAsync(given, sizeof given, copy, sizeof copy, ACL_MEMCPY_DEVICE_TO_DEVICE, a), 0);
    run(&p, a);
    TRUE(given[0] == 4 && copy[0] == 0);
    IS(aclrtSynchronizeStream(a), 0);
    TRUE(given[0] == 2 && copy[0] == 2 && holds(made, 2));

    /* A repeatable executor may wait many times on one stream, each time for the memory it had then. */
    executor = planned(&p);
    IS(aclSetAclOpExecutorRepeatable(executor), 0);
    fill(given, OUTPUTS, 24);
    fill(before, OUTPUTS, 28);
    IS(aclnnAvgPool2dBackward(NULL, 0, executor, a), 0);
    SAYS(aclnnAvgPool2dBackward(NULL, 0, executor, b), 561000, "queued or running elsewhere");
    SAYS(aclnnAvgPool2dBackward(NULL, 0, executor, NULL), 561000, "queued or running elsewhere");
    IS(aclrtMemcpyAsync(copy, sizeof copy, made, sizeof copy, ACL_MEMCPY_DEVICE_TO_HOST, a), 0);
    IS(aclSetInputTensorAddr(executor, 0, NULL, before), 0);
    IS(aclnnAvgPool2dBackward(NULL, 0, executor, a), 0);
    IS(aclDestroyAclOpExecutor(executor), 0); /* the runs that wait keep it */
    IS(aclnnAvgPool2dBackward(NULL, 0, executor, a), 561000);
    IS(aclrtSynchronizeStream(a), 0);
    TRUE(copy[0] == 6 && holds(made, 28));

    /* One that runs once is spent as soon as it waits. */
    executor = planned(&p);
    IS(aclnnAvgPool2dBackward(NULL, 0, executor, a), 0);
    IS(aclnnAvgPool2dBackward(NULL, 0, executor, a), 561000);
    IS(aclDestroyAclOpExecutor(executor), 561000);
    other = planned(&p);
    TRUE(other != executor);
    IS(aclDestroyAclOpExecutor(other), 0);

    /* The first failure is told by the synchronize, once; what comes after it is done all the same. */
    bad_run(a, 99);
    run(&p, a);
    fill(given, OUTPUTS, 32);
    IS(aclrtSynchronizeStream(b), 0);
    SAYS(aclrtSynchronizeStream(a), 161002, "(n, c, oh, ow) = (0, 0, 1, 1)");
    TRUE(holds(made, 32));
    IS(aclrtSynchronizeStream(a), 0);
    bad_run(b, -1);
    SAYS(aclrtSynchronizeDevice(), 161002, "-1");
    IS(aclrtSynchronizeDevice(), 0);
    bad_run(a, 10);
    IS(aclrtSynchronizeStream(a), 0);

    /* A failure belongs to its stream, whoever does the work: an event is complete all the same. */
    IS(aclrtCreateEvent(&event), 0);
    bad_run(a, 99);
    IS(aclrtRecordEvent(event, a), 0);
    TRUE(aclrtSynchronizeEvent(event) == 0 && aclGetRecentErrMsg() == NULL);
    SAYS(aclrtSynchronizeStream(a), 161002, "99");
    bad_run(a, 98);
    IS(aclrtRecordEvent(event, a), 0);
    IS(aclrtStreamWaitEvent(b, event), 0);
    fill(given, OUTPUTS, 16);
    run(&p, b);
    IS(aclrtSynchronizeStream(b), 0);
    TRUE(holds(made, 16));
    SAYS(aclrtSynchronizeStream(a), 161002, "98");
    IS(aclrtDestroyEvent(event), 0);

    /* Of several failures the first is told, and the others stay for their streams. */
    bad_run(a, 97);
    bad_run(b, 96);
    SAYS(aclrtSynchronizeDevice(), 161002, "97");
    SAYS(aclrtSynchronizeStream(b), 161002, "96");

    /* Memory that waiting work needs is not freed. */
    IS(aclrtMalloc((void **)&from, OUTPUTS * sizeof *from, ACL_MEM_MALLOC_HUGE_FIRST), 0);
    IS(aclrtMallocHost((void **)&to, INPUTS * sizeof *to), 0);
    q = new_pool(from, to);
    fill(from, OUTPUTS, 36);
    run(&q, b);
    delete_pool(&q);
    SAYS(aclrtFree(from), 107000, "synchronize first");
    SAYS(aclrtFreeHost(to), 107000, "synchronize first");
    IS(aclrtSynchronizeStream(b), 0);
    TRUE(holds(to, 36));
    IS(aclrtMemcpyAsync(copy, sizeof copy, from, sizeof copy, ACL_MEMCPY_DEVICE_TO_HOST, a), 0);
    IS(aclrtFree(from), 107000);
    IS(aclrtFreeHost(to), 0);
    IS(aclrtSynchronizeStream(a), 0);
    IS(aclrtFree(from), 0);

    /* What destroys a stream waits for it, and so does the end. */
    fill(given, OUTPUTS, 40);
    run(&p, a);
    IS(aclrtDestroyStream(a), 0);
    TRUE(holds(made, 40));
    SAYS(aclnnAvgPool2dBackward(NULL, 0, executor, a), 561000, "has run");
    bad_run(b, 99);
    SAYS(aclrtDestroyStream(b), 161002, "99");
    fill(given, OUTPUTS, 44);
    run(&p, NULL);
    IS(aclrtResetDevice(0), 0);
    TRUE(holds(made, 44));
    fill(given, OUTPUTS, 48);
    run(&p, NULL);
    IS(aclFinalize(), 0);
    TRUE(holds(made, 48));
    delete_pool(&p);
    return wrong != 0;
}
