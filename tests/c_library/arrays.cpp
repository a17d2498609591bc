// What aclGetViewShape and its kin give is deleted by delete[], which checkers of memory compare with its new[].
#include "aclnn/acl_meta.h"

int main()
{
    const int64_t dims[] = {2, 3};
    aclTensor *tensor = aclCreateTensor(dims, 2, ACL_FLOAT, nullptr, 0, ACL_FORMAT_ND, dims, 2, nullptr);
    int64_t *shape = nullptr, *strides = nullptr, *storage = nullptr;
    uint64_t number = 0;
    bool good = aclGetViewShape(tensor, &shape, &number) == 0 && number == 2 && shape[0] == 2 && shape[1] == 3;
    good = good && aclGetViewStrides(tensor, &strides, &number) == 0 && strides[0] == 3 && strides[1] == 1;
    good = good && aclGetStorageShape(tensor, &storage, &number) == 0 && storage[1] == 3;
    delete[] shape;
    delete[] strides;
    delete[] storage;
    return good && aclDestroyTensor(tensor) == 0 ? 0 : 1;
}
