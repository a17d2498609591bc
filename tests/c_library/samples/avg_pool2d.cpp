/* The averages of 2x2 windows: a batch of one image of 4x4 with two channels. */
#include "sample.h"

#include "aclnnop/aclnn_avgpool2d.h"

int main()
{
    /* 1. The runtime, a device, and a stream on it. */
    aclrtStream stream = nullptr;
    check(aclInit(nullptr), "aclInit");
    check(aclrtSetDevice(0), "aclrtSetDevice");
    check(aclrtCreateStream(&stream), "aclrtCreateStream");

    /* 2. Tensors in memory of the device, and the attributes. */
    const std::vector<int64_t> shape{1, 2, 4, 4}, pooled{1, 2, 2, 2};
    DeviceTensor<float> self(shape, counted(shape, 1), ACL_FLOAT, ACL_FORMAT_NCHW);
    DeviceTensor<float> out(pooled, std::vector<float>(8), ACL_FLOAT, ACL_FORMAT_NCHW);
    aclIntArray *kernelSize = int_array({2, 2});
    aclIntArray *strides = int_array({2, 2});
    aclIntArray *paddings = int_array({0, 0});
    const bool ceilMode = false, countIncludePad = true;
    const int64_t divisorOverride = 0;
    const int8_t cubeMathType = 0; /* KEEP_DTYPE */

    /* 3. Phase 1 checks the arguments and tells the size of the workspace. */
    uint64_t workspaceSize = 0;
    aclOpExecutor *executor = nullptr;
    check(aclnnAvgPool2dGetWorkspaceSize(self.tensor, kernelSize, strides, paddings, ceilMode, countIncludePad,
                                         divisorOverride, cubeMathType, out.tensor, &workspaceSize, &executor),
          "aclnnAvgPool2dGetWorkspaceSize");
    void *workspace = nullptr;
    if (workspaceSize > 0)
        check(aclrtMalloc(&workspace, workspaceSize, ACL_MEM_MALLOC_HUGE_FIRST), "aclrtMalloc");

    /* 4. Phase 2 puts the work on the stream; it is done after the stream has been waited for. */
    check(aclnnAvgPool2d(workspace, workspaceSize, executor, stream), "aclnnAvgPool2d");
    check(aclrtSynchronizeStream(stream), "aclrtSynchronizeStream");

    /* 5. The result. */
    print("out", out.values());

    /* 6. Everything is given back. */
    self.destroy();
    out.destroy();
    for (const aclIntArray *array : {kernelSize, strides, paddings})
        check(aclDestroyIntArray(array), "aclDestroyIntArray");
    if (workspace)
        check(aclrtFree(workspace), "aclrtFree");
    check(aclrtDestroyStream(stream), "aclrtDestroyStream");
    check(aclrtResetDevice(0), "aclrtResetDevice");
    check(aclFinalize(), "aclFinalize");
    return 0;
}
