/* The gradient of replication padding: 1 column left, 2 right, 1 row above. */
#include "sample.h"

#include "aclnnop/aclnn_pad2d_backward.h"

int main()
{
    /* 1. The runtime, a device, and a stream on it. */
    aclrtStream stream = nullptr;
    check(aclInit(nullptr), "aclInit");
    check(aclrtSetDevice(0), "aclrtSetDevice");
    check(aclrtCreateStream(&stream), "aclrtCreateStream");

    /* 2. Tensors in memory of the device, and the attributes. */
    const std::vector<int64_t> gradShape{1, 1, 4, 6}, shape{1, 1, 3, 3};
    DeviceTensor<float> gradOutput(gradShape, counted(gradShape, 1), ACL_FLOAT, ACL_FORMAT_NCHW);
    DeviceTensor<float> self(shape, counted(shape, 0), ACL_FLOAT, ACL_FORMAT_NCHW);
    DeviceTensor<float> gradInput(shape, std::vector<float>(9), ACL_FLOAT, ACL_FORMAT_NCHW);
    aclIntArray *padding = int_array({1, 2, 1, 0}); /* left, right, top, bottom */

    /* 3. Phase 1 checks the arguments and tells the size of the workspace. */
    uint64_t workspaceSize = 0;
    aclOpExecutor *executor = nullptr;
    check(aclnnReplicationPad2dBackwardGetWorkspaceSize(gradOutput.tensor, self.tensor, padding, gradInput.tensor,
                                                        &workspaceSize, &executor),
          "aclnnReplicationPad2dBackwardGetWorkspaceSize");
    void *workspace = nullptr;
    if (workspaceSize > 0)
        check(aclrtMalloc(&workspace, workspaceSize, ACL_MEM_MALLOC_HUGE_FIRST), "aclrtMalloc");

    /* 4. Phase 2 puts the work on the stream; it is done after the stream has been waited for. */
    check(aclnnReplicationPad2dBackward(workspace, workspaceSize, executor, stream), "aclnnReplicationPad2dBackward");
    check(aclrtSynchronizeStream(stream), "aclrtSynchronizeStream");

    /* 5. The result. */
    print("gradInput", gradInput.values());

    /* 6. Everything is given back. */
    gradOutput.destroy();
    self.destroy();
    gradInput.destroy();
    for (const aclIntArray *array : {padding})
        check(aclDestroyIntArray(array), "aclDestroyIntArray");
    if (workspace)
        check(aclrtFree(workspace), "aclrtFree");
    check(aclrtDestroyStream(stream), "aclrtDestroyStream");
    check(aclrtResetDevice(0), "aclrtResetDevice");
    check(aclFinalize(), "aclFinalize");
    return 0;
}
