/* Contexts: what is current in each thread, what is refused, and how much memory there is. */
#define _POSIX_C_SOURCE 200809L
#include <pthread.h>
#include <unistd.h>

#include "common.h"

static aclrtContext shared, made_there;

/* Another thread has a current context of its own, and the same default one. */
static void *other_thread(void *default_context)
{
    aclrtContext context = NULL;
    SAYS(aclrtGetCurrentContext(&context), 107002, "aclrtSetDevice");
    TRUE(context == NULL);
    IS(aclrtSetCurrentContext(shared), 0);
    IS(aclrtGetCurrentContext(&context), 0);
    TRUE(context == shared);
    IS(aclrtDestroyContext(shared), 0);
    IS(aclrtCreateContext(&made_there, 0), 0);
    IS(aclrtSetDevice(0), 0);
    IS(aclrtGetCurrentContext(&context), 0);
    TRUE(context == default_context);
    return NULL;
}

static void memory(void)
{
    size_t left = 7, all = 7;
    for (int attr = 0; attr < 10; attr++) {
        left = all = 0;
        IS(aclrtGetMemInfo((aclrtMemAttr)attr, &left, &all), 0);
        TRUE(left > 0 && left <= all);
        TRUE(all <= (size_t)sysconf(_SC_PHYS_PAGES) * (size_t)sysconf(_SC_PAGESIZE));
    }
    left = all = 7;
    SAYS(aclrtGetMemInfo((aclrtMemAttr)10, &left, &all), 100000, "attr = 10: must be 0 to 9");
    SAYS(aclrtGetMemInfo((aclrtMemAttr)-1, &left, &all), 100000, "attr = -1");
    SAYS(aclrtGetMemInfo(ACL_HBM_MEM, NULL, &all), 100000, "free = nullptr");
    SAYS(aclrtGetMemInfo(ACL_HBM_MEM, &left, NULL), 100000, "total = nullptr");
    TRUE(left == 7 && all == 7);
}

int main(void)
{
    aclrtContext first = NULL, second = NULL, context = NULL, gone, garbage;
    aclrtStream stream = NULL;
    int32_t device = 7;
    size_t left, all;
    pthread_t thread;

    IS(aclInit(NULL), 0);
    SAYS(aclrtGetCurrentContext(&context), 107002, "aclrtSetDevice");
    IS(aclrtGetMemInfo(ACL_HBM_MEM, &left, &all), 107002);
    SAYS(aclrtCreateContext(NULL, 0), 100000, "context = nullptr");
    SAYS(aclrtCreateContext(&context, 1), 107001, "deviceId = 1");
    SAYS(aclrtSetCurrentContext(NULL), 100000, "context = nullptr");
    SAYS(aclrtGetCurrentContext(NULL), 100000, "context = nullptr");
    SAYS(aclrtDestroyContext(NULL), 100000, "context = nullptr");
    TRUE(context == NULL);

    /* One that is made is current, and stands for the device. */
    IS(aclrtCreateContext(&context, 0), 0);
    IS(aclrtGetDevice(&device), 0);
    TRUE(device == 0);
    IS(aclrtGetCurrentContext(&first), 0);
    TRUE(first == context);
    IS(aclrtCreateContext(&second, 0), 0);
    TRUE(second != first);
    IS(aclrtGetCurrentContext(&context), 0);
    TRUE(context == second);
    IS(aclrtSetCurrentContext(first), 0);
    IS(aclrtGetCurrentContext(&context), 0);
    TRUE(context == first);

    /* The default one. */
    IS(aclrtSetDevice(0), 0);
    IS(aclrtGetCurrentContext(&context), 0);
    TRUE(context != NULL && context != first && context != second);
    SAYS(aclrtDestroyContext(context), 107000, "context: is the default one");
    shared = second;
    if (pthread_create(&thread, NULL, other_thread, context))
        return 8;
    (void)pthread_join(thread, NULL);
    SAYS(aclrtSetCurrentContext(second), 107000, "destroyed"); /* by the other thread */
    IS(aclrtSetCurrentContext(made_there), 0);                 /* which has ended */
    IS(aclrtDestroyContext(made_there), 0);

    /* Whose context is destroyed has no device; streams do not go with it. */
    SAYS(aclrtCreateStream(&stream), 107002, "context: the calling thread's has been destroyed");
    SAYS(aclrtGetCurrentContext(&context), 107002, "destroyed");
    SAYS(aclrtGetDevice(&device), 107002, "destroyed");
    IS(aclrtSetCurrentContext(first), 0);
    IS(aclrtCreateStream(&stream), 0);
    gone = first;
    IS(aclrtDestroyContext(first), 0);
    SAYS(aclrtDestroyContext(gone), 107000, "destroyed");
    IS(aclrtSynchronizeStream(stream), 0);
    IS(aclrtCreateContext(&first, 0), 0);
    TRUE(first != gone);
    SAYS(aclrtSetCurrentContext(gone), 107000, "destroyed");
    SAYS(aclrtSetCurrentContext(stream), 107000, "context: is none");
    SAYS(aclrtDestroyContext(&device), 107000, "context: is none");
    for (int bit = 0; bit < 64; bit++) {
        memcpy(&garbage, &(uint64_t){(uint64_t)(uintptr_t)first ^ (UINT64_C(1) << bit)}, sizeof garbage);
        IS(aclrtSetCurrentContext(garbage), 107000);
        IS(aclrtDestroyContext(garbage), 107000);
    }
    memory();
    IS(aclrtResetDevice(0), 0);
    IS(aclrtGetCurrentContext(&context), 107002);
    IS(aclrtSetCurrentContext(first), 0); /* a reset of the device ends the default one alone, for this thread */
    IS(aclrtDestroyStream(stream), 0);
    IS(aclrtDestroyContext(first), 0);
    IS(aclFinalize(), 0);
    return wrong != 0;
}
