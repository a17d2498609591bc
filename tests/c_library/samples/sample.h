/* What the samples share: they end at the first failure, and move arrays to the device and back. */
#ifndef SAMPLE_H
#define SAMPLE_H

#include <cstdio>
#include <cstdlib>
#include <vector>

#include "acl/acl.h"
#include "aclnn/acl_meta.h"

/* Every call gives a status, 0 where it went well; the message says what was wrong. */
inline void check(int status, const char *what)
{
    if (status == ACL_SUCCESS)
        return;
    const char *message = aclGetRecentErrMsg();
    std::fprintf(stderr, "%s: error %d: %s\n", what, status, message ? message : "");
    std::exit(EXIT_FAILURE);
}

inline int64_t elements(const std::vector<int64_t> &shape)
{
    int64_t count = 1;
    for (int64_t size : shape)
        count *= size;
    return count;
}

/* A contiguous tensor in memory of the device that holds a copy of `values`. */
template <typename T> struct DeviceTensor {
    void *memory = nullptr;
    aclTensor *tensor = nullptr;
    size_t bytes;

    DeviceTensor(const std::vector<int64_t> &shape, const std::vector<T> &values, aclDataType type, aclFormat format)
        : bytes(values.size() * sizeof(T))
    {
        if (static_cast<int64_t>(values.size()) != elements(shape)) {
            std::fprintf(stderr, "%zu values do not fill the shape\n", values.size());
            std::exit(EXIT_FAILURE);
        }
        check(aclrtMalloc(&memory, bytes, ACL_MEM_MALLOC_HUGE_FIRST), "aclrtMalloc");
        check(aclrtMemcpy(memory, bytes, values.data(), bytes, ACL_MEMCPY_HOST_TO_DEVICE), "aclrtMemcpy");
        std::vector<int64_t> strides(shape.size(), 1);
        for (size_t i = shape.size(); i-- > 1;)
            strides[i - 1] = strides[i] * shape[i];
        tensor = aclCreateTensor(shape.data(), shape.size(), type, strides.data(), 0, format, shape.data(),
                                 shape.size(), memory);
        check(tensor ? ACL_SUCCESS : ACL_ERROR_INVALID_PARAM, "aclCreateTensor");
    }

    std::vector<T> values() const
    {
        std::vector<T> copy(bytes / sizeof(T));
        check(aclrtMemcpy(copy.data(), bytes, memory, bytes, ACL_MEMCPY_DEVICE_TO_HOST), "aclrtMemcpy");
        return copy;
    }

    void destroy()
    {
        check(aclDestroyTensor(tensor), "aclDestroyTensor");
        check(aclrtFree(memory), "aclrtFree");
    }
};

inline aclIntArray *int_array(const std::vector<int64_t> &values)
{
    aclIntArray *array = aclCreateIntArray(values.data(), values.size());
    check(array ? ACL_SUCCESS : ACL_ERROR_INVALID_PARAM, "aclCreateIntArray");
    return array;
}

/* begin, begin + 1, ...: as many as the shape has elements */
inline std::vector<float> counted(const std::vector<int64_t> &shape, float begin)
{
    std::vector<float> values(static_cast<size_t>(elements(shape)));
    for (size_t i = 0; i < values.size(); i++)
        values[i] = begin + static_cast<float>(i);
    return values;
}

template <typename T> void print(const char *name, const std::vector<T> &values)
{
    std::printf("%s:", name);
    for (T value : values)
        std::printf(" %.9g", static_cast<double>(value));
    std::printf("\n");
}

#endif
