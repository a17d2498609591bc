/* The gradient of max pooling, with indices that were made elsewhere: kernel 2x2, stride 2. */
#include "sample.h"

#include "aclnnop/aclnn_max_pool2d_with_indices_backward.h"

int main()
{
    /* 1. The runtime, a device, and a stream on it. */
    aclrtStream stream = nullptr;
    check(aclInit(nullptr), "aclInit");
    check(aclrtSetDevice(0), "aclrtSetDevice");
    check(aclrtCreateStream(&stream), "aclrtCreateStream");

    /* 2. Tensors in memory of the device, and the attributes. */
    const std::vector<int64_t> shape{1, 1, 4, 4}, outShape{1, 1, 2, 2};
    DeviceTensor<float> self(shape, {4, 8, 1, 9, 7, 6, 5, 2, 3, 3, 0, 1, 2, 5, 1, 0}, ACL_FLOAT, ACL_FORMAT_NCHW);
    DeviceTensor<float> gradOutput(outShape, {10, 20, 30, 40}, ACL_FLOAT, ACL_FORMAT_NCHW);
    DeviceTensor<float> gradInput(shape, std::vector<float>(16), ACL_FLOAT, ACL_FORMAT_NCHW);

    /* Of each window where its maximum lies, as row * 4 + column. */
    DeviceTensor<int32_t> indices(outShape, {1, 3, 13, 11}, ACL_INT32, ACL_FORMAT_NCHW);
    aclIntArray *kernelSize = int_array({2, 2}), *stride = int_array({2, 2}), *padding = int_array({0, 0}),
                *dilation = int_array({1, 1});
    const bool ceilMode = false;

    /* 3. Phase 1 checks the arguments and tells the size of the workspace. */
    uint64_t workspaceSize = 0;
    aclOpExecutor *executor = nullptr;
    check(aclnnMaxPool2dWithIndicesBackwardGetWorkspaceSize(gradOutput.tensor, self.tensor, indices.tensor, kernelSize,
                                                            stride, padding, dilation, ceilMode, gradInput.tensor,
                                                            &workspaceSize, &executor),
          "aclnnMaxPool2dWithIndicesBackwardGetWorkspaceSize");
    void *workspace = nullptr;
    if (workspaceSize > 0)
        check(aclrtMalloc(&workspace, workspaceSize, ACL_MEM_MALLOC_HUGE_FIRST), "aclrtMalloc");

    /* 4. Phase 2 puts the work on the stream; it is done after the stream has been waited for. */
    check(aclnnMaxPool2dWithIndicesBackward(workspace, workspaceSize, executor, stream),
          "aclnnMaxPool2dWithIndicesBackward");
    check(aclrtSynchronizeStream(stream), "aclrtSynchronizeStream");

    /* 5. The result. */
    print("gradInput", gradInput.values());

    /* 6. Everything is given back. */
    gradOutput.destroy();
    self.destroy();
    indices.destroy();
    gradInput.destroy();
    for (const aclIntArray *array : {kernelSize, stride, padding, dilation})
        check(aclDestroyIntArray(array), "aclDestroyIntArray");
    if (workspace)
        check(aclrtFree(workspace), "aclrtFree");
    check(aclrtDestroyStream(stream), "aclrtDestroyStream");
    check(aclrtResetDevice(0), "aclrtResetDevice");
    check(aclFinalize(), "aclFinalize");
    return 0;
}
