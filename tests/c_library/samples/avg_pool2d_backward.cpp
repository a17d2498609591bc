/* The gradient of average pooling: kernel 2x2, stride 2, on a batch of one image with two channels. */
#include "sample.h"

#include "aclnnop/aclnn_avgpool2d_backward.h"

int main()
{
    /* 1. The runtime, a device, and a stream on it. */
    aclrtStream stream = nullptr;
    check(aclInit(nullptr), "aclInit");
    check(aclrtSetDevice(0), "aclrtSetDevice");
    check(aclrtCreateStream(&stream), "aclrtCreateStream");

    /* 2. Tensors in memory of the device, and the attributes. */
    const std::vector<int64_t> gradShape{1, 2, 2, 2}, shape{1, 2, 4, 4};
    DeviceTensor<float> gradOutput(gradShape, counted(gradShape, 1), ACL_FLOAT, ACL_FORMAT_NCHW);
    DeviceTensor<float> self(shape, counted(shape, 0), ACL_FLOAT, ACL_FORMAT_NCHW);
    DeviceTensor<float> gradInput(shape, std::vector<float>(32), ACL_FLOAT, ACL_FORMAT_NCHW);
    aclIntArray *kernelSize = int_array({2, 2}), *stride = int_array({2, 2}), *padding = int_array({0, 0});
    const bool ceilMode = false, countIncludePad = true;
    const int64_t divisorOverride = 0; /* none */
    const int8_t cubeMathType = 0;     /* keep the precision */

    /* 3. Phase 1 checks the arguments and tells the size of the workspace. */
    uint64_t workspaceSize = 0;
    aclOpExecutor *executor = nullptr;
    check(aclnnAvgPool2dBackwardGetWorkspaceSize(gradOutput.tensor, self.tensor, kernelSize, stride, padding, ceilMode,
                                                 countIncludePad, divisorOverride, cubeMathType, gradInput.tensor,
                                                 &workspaceSize, &executor),
          "aclnnAvgPool2dBackwardGetWorkspaceSize");
    void *workspace = nullptr;
    if (workspaceSize > 0)
        check(aclrtMalloc(&workspace, workspaceSize, ACL_MEM_MALLOC_HUGE_FIRST), "aclrtMalloc");

    /* 4. Phase 2 puts the work on the stream; it is done after the stream has been waited for. */
    check(aclnnAvgPool2dBackward(workspace, workspaceSize, executor, stream), "aclnnAvgPool2dBackward");
    check(aclrtSynchronizeStream(stream), "aclrtSynchronizeStream");

    /* 5. The result. */
    print("gradInput", gradInput.values());

    /* 6. Everything is given back. */
    gradOutput.destroy();
    self.destroy();
    gradInput.destroy();
    for (const aclIntArray *array : {kernelSize, stride, padding})
        check(aclDestroyIntArray(array), "aclDestroyIntArray");
    if (workspace)
        check(aclrtFree(workspace), "aclrtFree");
    check(aclrtDestroyStream(stream), "aclrtDestroyStream");
    check(aclrtResetDevice(0), "aclrtResetDevice");
    check(aclFinalize(), "aclFinalize");
    return 0;
}
