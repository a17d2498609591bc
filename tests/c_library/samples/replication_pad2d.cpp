/* Replication padding: 1 column left, 1 right, 1 row above. */
#include "sample.h"

#include "aclnnop/aclnn_replication_pad2d.h"

int main()
{
    /* 1. The runtime, a device, and a stream on it. */
    aclrtStream stream = nullptr;
    check(aclInit(nullptr), "aclInit");
    check(aclrtSetDevice(0), "aclrtSetDevice");
    check(aclrtCreateStream(&stream), "aclrtCreateStream");

    /* 2. Tensors in memory of the device, and the attributes. */
    const std::vector<int64_t> shape{1, 1, 3, 3}, padded{1, 1, 4, 5};
    DeviceTensor<float> self(shape, counted(shape, 1), ACL_FLOAT, ACL_FORMAT_NCHW);
    DeviceTensor<float> out(padded, std::vector<float>(20), ACL_FLOAT, ACL_FORMAT_NCHW);
    aclIntArray *padding = int_array({1, 1, 1, 0}); /* left, right, top, bottom */

    /* 3. Phase 1 checks the arguments and tells the size of the workspace. */
    uint64_t workspaceSize = 0;
    aclOpExecutor *executor = nullptr;
    check(aclnnReplicationPad2dGetWorkspaceSize(self.tensor, padding, out.tensor, &workspaceSize, &executor),
          "aclnnReplicationPad2dGetWorkspaceSize");
    void *workspace = nullptr;
    if (workspaceSize > 0)
        check(aclrtMalloc(&workspace, workspaceSize, ACL_MEM_MALLOC_HUGE_FIRST), "aclrtMalloc");

    /* 4. Phase 2 puts the work on the stream; it is done after the stream has been waited for. */
    check(aclnnReplicationPad2d(workspace, workspaceSize, executor, stream), "aclnnReplicationPad2d");
    check(aclrtSynchronizeStream(stream), "aclrtSynchronizeStream");

    /* 5. The result. */
    print("out", out.values());

    /* 6. Everything is given back. */
    self.destroy();
    out.destroy();
    for (const aclIntArray *array : {padding})
        check(aclDestroyIntArray(array), "aclDestroyIntArray");
    if (workspace)
        check(aclrtFree(workspace), "aclrtFree");
    check(aclrtDestroyStream(stream), "aclrtDestroyStream");
    check(aclrtResetDevice(0), "aclrtResetDevice");
    check(aclFinalize(), "aclFinalize");
    return 0;
}
