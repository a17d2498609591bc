/* The 2x2 windows of an image of 3x4, as columns. */
#include "sample.h"

#include "aclnnop/aclnn_im2col.h"

int main()
{
    /* 1. The runtime, a device, and a stream on it. */
    aclrtStream stream = nullptr;
    check(aclInit(nullptr), "aclInit");
    check(aclrtSetDevice(0), "aclrtSetDevice");
    check(aclrtCreateStream(&stream), "aclrtCreateStream");

    /* 2. Tensors in memory of the device, and the attributes. */
    const std::vector<int64_t> shape{1, 1, 3, 4}, columns{1, 4, 6};
    DeviceTensor<float> self(shape, counted(shape, 1), ACL_FLOAT, ACL_FORMAT_NCHW);
    DeviceTensor<float> out(columns, std::vector<float>(24), ACL_FLOAT, ACL_FORMAT_ND);
    aclIntArray *kernelSize = int_array({2, 2});
    aclIntArray *dilation = int_array({1, 1});
    aclIntArray *padding = int_array({0, 0});
    aclIntArray *stride = int_array({1, 1});

    /* 3. Phase 1 checks the arguments and tells the size of the workspace. */
    uint64_t workspaceSize = 0;
    aclOpExecutor *executor = nullptr;
    check(aclnnIm2colGetWorkspaceSize(self.tensor, kernelSize, dilation, padding, stride, out.tensor, &workspaceSize,
                                      &executor),
          "aclnnIm2colGetWorkspaceSize");
    void *workspace = nullptr;
    if (workspaceSize > 0)
        check(aclrtMalloc(&workspace, workspaceSize, ACL_MEM_MALLOC_HUGE_FIRST), "aclrtMalloc");

    /* 4. Phase 2 puts the work on the stream; it is done after the stream has been waited for. */
    check(aclnnIm2col(workspace, workspaceSize, executor, stream), "aclnnIm2col");
    check(aclrtSynchronizeStream(stream), "aclrtSynchronizeStream");

    /* 5. The result. */
    print("out", out.values());

    /* 6. Everything is given back. */
    self.destroy();
    out.destroy();
    for (const aclIntArray *array : {kernelSize, dilation, padding, stride})
        check(aclDestroyIntArray(array), "aclDestroyIntArray");
    if (workspace)
        check(aclrtFree(workspace), "aclrtFree");
    check(aclrtDestroyStream(stream), "aclrtDestroyStream");
    check(aclrtResetDevice(0), "aclrtResetDevice");
    check(aclFinalize(), "aclFinalize");
    return 0;
}
