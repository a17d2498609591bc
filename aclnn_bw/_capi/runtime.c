/* The runtime's calls but those of streams.c: settings, devices, contexts, memory, copies. The device is the host. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* sched_getaffinity */
#endif
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "aclnn/aclnn_base.h"
#include "handles.h"
#include "internal.h"
#include "products.h"

enum { FIND_KERNEL_ERROR = 561003, INVALID = 161002, MOST_THREADS = 65535 };
enum { ISA_NONE = 0, ISA_BASELINE = 1 };

int aclnn_bw_best_isa(void);
#define not_null aclnn_bw_not_null
#define device_is_set aclnn_bw_device_is_set

/* ---- settings -------------------------------------------------------------------------------------------------- */

static const char *const products[] = {"Ascend910", "Ascend310P", "Ascend910B", "Host"};
static const char *const layouts[] = {"bitmask", "argmax"};
static aclnn_bw_settings settings;
static char problem[256];
static pthread_once_t once = PTHREAD_ONCE_INIT;
static int forked;

static int layout_of(const char *name)
{
    return !strcmp(name, layouts[0]) ? 0 : !strcmp(name, layouts[1]) ? 1 : -1;
}

/* The number of a name in the environment; the problem is noted where it does not exist. */
static int choice(const char *variable, int (*number_of)(const char *), const char *const *names, int count,
                  int otherwise)
{
    const char *value = getenv(variable);
    int used, number;
    if (!value || !*value)
        return otherwise;
    number = number_of(value);
    if (number >= 0)
        return number;
    used = snprintf(problem, sizeof problem, "%s = '%.40s': must be one of", variable, value);
    for (int i = 0; i < count; i++)
        used += snprintf(problem + used, sizeof problem - (size_t)used, "%s '%s'", i ? "," : "", names[i]);
    settings.problem = problem;
    settings.problem_status = INVALID;
    return otherwise;
}

static int flag(const char *variable)
{
    const char *value = getenv(variable);
    return value && *value && strcmp(value, "0");
}

static int file_numbers(const char *path, const char *format, long *first, long *second)
{
    FILE *file = fopen(path, "r");
    int found = 0;
    if (file) {
        found = fscanf(file, format, first, second);
        fclose(file);
    }
    return found;
}

/* The cores that affinity and the cgroup's quota leave; as in the Python package. */
static int available_cores(void)
{
    long quota = 0, period = 0, cores = sysconf(_SC_NPROCESSORS_ONLN);
#ifdef __linux__
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0)
        cores = CPU_COUNT(&set);
#endif
    if (file_numbers("/sys/fs/cgroup/cpu.max", "%ld %ld", &quota, &period) != 2
        && (file_numbers("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "%ld", &quota, &period) != 1
            || file_numbers("/sys/fs/cgroup/cpu/cpu.cfs_period_us", "%ld", &period, &quota) != 1))
        quota = 0;
    if (quota > 0 && period > 0 && quota / period < cores)
        cores = quota / period;
    return cores < 1 ? 1 : cores > MOST_THREADS ? MOST_THREADS : (int)cores;
}

static int thread_count(int cores)
{
    static const char *const variables[] = {"ACLNN_BW_NUM_THREADS", "OMP_NUM_THREADS"};
    for (int i = 0; i < 2; i++) {
        const char *value = getenv(variables[i]);
        char *end;
        long number;
        if (!value || !*value)
            continue;
        number = strtol(value, &end, 10);
        if (end != value && (*end == 0 || (i == 1 && *end == ',')) && number >= 1 && number <= MOST_THREADS)
            return (int)number;
        fprintf(stderr, "aclnn_bw: %s='%s' is ignored: must be an integer in [1, %d]\n", variables[i], value,
                MOST_THREADS);
    }
    return cores;
}

static int instruction_set(void)
{
    const char *cap = getenv("ACLNN_BW_ISA");
    int isa = aclnn_bw_best_isa(); /* v2, v3 and v4 are the numbers 2, 3 and 4 */
    if (!cap || !*cap)
        return isa;
    if (strcmp(cap, "v2") && strcmp(cap, "v3") && strcmp(cap, "v4")) {
        fprintf(stderr, "aclnn_bw: ACLNN_BW_ISA='%s' is ignored: must be v2, v3 or v4\n", cap);
        return isa;
    }
    return isa > ISA_BASELINE && isa > cap[1] - '0' ? cap[1] - '0' : isa;
}

static void read_settings(void)
{
    int isa = instruction_set();
    settings.reading++;
    settings.problem = NULL;
    settings.product = choice("ACLNN_BW_SOC", aclnn_bw_product_of, products, 4, 2);
    settings.mask_layout = choice("ACLNN_BW_MASK_LAYOUT", layout_of, layouts, 2, 0);
    settings.cores = available_cores();
    settings.threads = thread_count(settings.cores);
    settings.async = flag("ACLNN_BW_ASYNC");
    settings.log = flag("ACLNN_BW_LOG");
    if (isa == ISA_NONE) {
        settings.problem = "the CPU lacks the x86-64-v2 instructions (SSE4.2, POPCNT)";
        settings.problem_status = FIND_KERNEL_ERROR;
    } else {
        settings.kernels = aclnn_bw_load_table(isa);
    }
}

static void before_fork(void), after_fork(void), in_child(void);

static void first_use(void)
{
    read_settings();
    pthread_atfork(before_fork, after_fork, in_child);
}

const aclnn_bw_settings *aclnn_bw_current_settings(void)
{
    pthread_once(&once, first_use);
    return &settings;
}

int aclnn_bw_is_forked(void) { return forked; }

int aclnn_bw_logged(const char *call, int status, const uint64_t *workspace_size)
{
    if (!aclnn_bw_current_settings()->log)
        return status;
    if (status)
        fprintf(stderr, "aclnn_bw: %s -> %d: %s\n", call, status, aclnn_bw_recent_message());
    else if (workspace_size)
        fprintf(stderr, "aclnn_bw: %s -> 0, workspace %llu bytes\n", call, (unsigned long long)*workspace_size);
    else
        fprintf(stderr, "aclnn_bw: %s -> 0\n", call);
    return status;
}

/* ---- begin, end, devices --------------------------------------------------------------------------------------- */

static int initialized; /* atomic */
static _Thread_local aclrtContext current; /* of the calling thread; null: it has set no device */
static int default_context;                /* stands for itself: its address is even, and so no handle */

static int context_exists(aclrtContext context)
{
    aclnn_bw_slot *slot;
    if (context == &default_context)
        return 1;
    slot = aclnn_bw_acquire(&aclnn_bw_contexts, context);
    if (slot && aclnn_bw_release(slot))
        aclnn_bw_give_slot(&aclnn_bw_contexts, slot);
    return slot != NULL;
}

int aclnn_bw_device_is_set(void)
{
    if (!current)
        return refuse(ACL_ERROR_RT_CONTEXT_NULL, "device: the calling thread must call aclrtSetDevice first");
    if (!context_exists(current))
        return refuse(ACL_ERROR_RT_CONTEXT_NULL, "context: the calling thread's has been destroyed; call "
                      "aclrtSetCurrentContext or aclrtSetDevice");
    return 0;
}

static int check_device(int32_t id)
{
    return id ? refuse(ACL_ERROR_RT_INVALID_DEVICEID, "deviceId = %d: must be 0, the host", (int)id) : 0;
}

int aclnn_bw_not_null(const char *name, const void *pointer)
{
    return pointer ? 0 : refuse(ACL_ERROR_INVALID_PARAM, "%s = nullptr: must not be null", name);
}

aclError aclInit(const char *configPath)
{
    int before = settings.reading;
    (void)configPath;
    aclnn_bw_current_settings();
    if (__atomic_exchange_n(&initialized, 1, __ATOMIC_ACQ_REL))
        return logged("aclInit", refuse(ACL_ERROR_REPEAT_INITIALIZE, "aclInit: has been called already"));
    if (before == settings.reading) /* else this was the first call of all */
        read_settings();
    if (settings.problem) {
        __atomic_store_n(&initialized, 0, __ATOMIC_RELEASE);
        return logged("aclInit", refuse(ACL_ERROR_INVALID_PARAM, "%s", settings.problem));
    }
    return logged("aclInit", 0);
}

aclError aclFinalize(void)
{
    if (!__atomic_exchange_n(&initialized, 0, __ATOMIC_ACQ_REL))
        return logged("aclFinalize",
                      refuse(ACL_ERROR_REPEAT_FINALIZE, "aclFinalize: aclInit has not been called since"));
    return logged("aclFinalize", aclnn_bw_synchronize_all());
}

aclnnStatus aclnnInit(const char *configPath)
{
    (void)configPath;
    return logged("aclnnInit", 0);
}

aclnnStatus aclnnFinalize(void) { return logged("aclnnFinalize", 0); }

const char *aclGetRecentErrMsg(void)
{
    static _Thread_local char told[MESSAGE];
    snprintf(told, sizeof told, "%s", aclnn_bw_recent_message());
    aclnn_bw_forget_message();
    logged("aclGetRecentErrMsg", 0);
    return *told ? told : NULL;
}

aclError aclrtSetDevice(int32_t deviceId)
{
    int status = check_device(deviceId);
    if (!status)
        current = &default_context;
    return logged("aclrtSetDevice", status);
}

aclError aclrtResetDevice(int32_t deviceId)
{
    int status = check_device(deviceId);
    if (!status) {
        status = aclnn_bw_synchronize_all();
        current = NULL;
    }
    return logged("aclrtResetDevice", status);
}

aclError aclrtGetDevice(int32_t *deviceId)
{
    int status = not_null("deviceId", deviceId);
    if (!status)
        status = device_is_set();
    if (!status)
        *deviceId = 0;
    return logged("aclrtGetDevice", status);
}

aclError aclrtGetDeviceCount(uint32_t *count)
{
    int status = not_null("count", count);
    if (!status)
        *count = 1;
    return logged("aclrtGetDeviceCount", status);
}

const char *aclrtGetSocName(void)
{
    const char *name = products[aclnn_bw_current_settings()->product];
    logged("aclrtGetSocName", 0);
    return name;
}

/* ---- contexts -------------------------------------------------------------------------------------------------- */

static int create_context(aclrtContext *context, int32_t deviceId)
{
    aclnn_bw_slot *slot;
    if (not_null("context", context))
        return ACL_ERROR_INVALID_PARAM;
    if (check_device(deviceId))
        return ACL_ERROR_RT_INVALID_DEVICEID;
    slot = aclnn_bw_take_slot(&aclnn_bw_contexts);
    if (!slot)
        return refuse(ACL_ERROR_BAD_ALLOC, "context: no memory for another one");
    *context = current = aclnn_bw_publish(&aclnn_bw_contexts, slot);
    return 0;
}

aclError aclrtCreateContext(aclrtContext *context, int32_t deviceId)
{
    return logged("aclrtCreateContext", create_context(context, deviceId));
}

static int no_context(void)
{
    return refuse(ACL_ERROR_RT_PARAM_INVALID, "context: is none, or has been destroyed");
}

static int destroy_context(aclrtContext context)
{
    aclnn_bw_slot *slot;
    int status;
    if (not_null("context", context))
        return ACL_ERROR_INVALID_PARAM;
    if (context == &default_context)
        return refuse(ACL_ERROR_RT_PARAM_INVALID, "context: is the default one, which aclrtResetDevice ends");
    slot = aclnn_bw_acquire(&aclnn_bw_contexts, context);
    if (!slot)
        return no_context();
    status = aclnn_bw_invalidate(slot) ? 0 : no_context(); /* none: another thread was faster */
    if (aclnn_bw_release(slot))
        aclnn_bw_give_slot(&aclnn_bw_contexts, slot);
    return status;
}

aclError aclrtDestroyContext(aclrtContext context) { return logged("aclrtDestroyContext", destroy_context(context)); }

aclError aclrtSetCurrentContext(aclrtContext context)
{
    int status = not_null("context", context);
    if (!status)
        status = context_exists(context) ? 0 : no_context();
    if (!status)
        current = context;
    return logged("aclrtSetCurrentContext", status);
}

aclError aclrtGetCurrentContext(aclrtContext *context)
{
    int status = not_null("context", context);
    if (!status)
        status = device_is_set();
    if (!status)
        *context = current;
    return logged("aclrtGetCurrentContext", status);
}

/* ---- memory ---------------------------------------------------------------------------------------------------- */

enum { ALIGNMENT = 64 };

/* The blocks that were taken while work may wait for a synchronize: to tell which are freed too early. */
typedef struct block {
    struct block *next;
    char *begin;
    int64_t size;
} block;
static block *blocks;
static pthread_mutex_t blocks_lock = PTHREAD_MUTEX_INITIALIZER;

static void remember(void *begin, size_t size)
{
    block *b = malloc(sizeof *b);
    if (!b)
        return;
    pthread_mutex_lock(&blocks_lock);
    *b = (block){blocks, begin, (int64_t)size};
    blocks = b;
    pthread_mutex_unlock(&blocks_lock);
}

/* A refusal where waiting work needs the block; else it is forgotten. */
static int may_free(const char *name, const void *begin)
{
    int status = 0;
    pthread_mutex_lock(&blocks_lock);
    for (block **b = &blocks; *b; b = &(*b)->next) {
        block *found = *b;
        if (found->begin != begin)
            continue;
        if (aclnn_bw_in_use(found->begin, found->size)) {
            status = refuse(ACL_ERROR_RT_PARAM_INVALID, "%s: work that waits on a stream needs it; synchronize first",
                            name);
        } else {
            *b = found->next;
            free(found);
        }
        break;
    }
    pthread_mutex_unlock(&blocks_lock);
    return status;
}

static int allocate(const char *name, void **pointer, size_t size)
{
    void *block = NULL;
    if (not_null(name, pointer))
        return ACL_ERROR_INVALID_PARAM;
    if (size == 0)
        return refuse(ACL_ERROR_INVALID_PARAM, "size = 0: must be > 0");
    if (device_is_set())
        return ACL_ERROR_RT_CONTEXT_NULL;
    if (size > INT64_MAX || posix_memalign(&block, ALIGNMENT, size))
        return refuse(ACL_ERROR_BAD_ALLOC, "size = %llu: no memory of that many bytes", (unsigned long long)size);
    if (aclnn_bw_current_settings()->async)
        remember(block, size);
    *pointer = block;
    return 0;
}

static int release(const char *name, void *pointer)
{
    int status = not_null(name, pointer);
    if (!status)
        status = may_free(name, pointer);
    if (!status)
        free(pointer);
    return status;
}

aclError aclrtMalloc(void **devPtr, size_t size, aclrtMemMallocPolicy policy)
{
    int status = 0;
    if ((int)policy < ACL_MEM_MALLOC_HUGE_FIRST || (int)policy > ACL_MEM_MALLOC_NORMAL_ONLY)
        status = refuse(ACL_ERROR_INVALID_PARAM, "policy = %d: must be 0, 1 or 2", (int)policy);
    return logged("aclrtMalloc", status ? status : allocate("devPtr", devPtr, size));
}

aclError aclrtFree(void *devPtr) { return logged("aclrtFree", release("devPtr", devPtr)); }

aclError aclrtMallocHost(void **hostPtr, size_t size)
{
    return logged("aclrtMallocHost", allocate("hostPtr", hostPtr, size));
}

aclError aclrtFreeHost(void *hostPtr) { return logged("aclrtFreeHost", release("hostPtr", hostPtr)); }

/* The number behind a word in a file; -1 if there is none. An empty word: the first number. */
static long long number_in(const char *path, const char *word)
{
    FILE *file = fopen(path, "r");
    char found[64];
    long long number = -1;
    while (file && *word && fscanf(file, "%63s", found) == 1 && strcmp(found, word))
        ;
    if (file && (fscanf(file, "%lld", &number) != 1 || number < 0))
        number = -1;
    if (file)
        fclose(file);
    return number;
}

/* Of the machine, or of the cgroup where that has less. Its files in memory count as free: they are given up first. */
static void measure_memory(long long *available, long long *total)
{
    const long long page = sysconf(_SC_PAGESIZE), left = number_in("/proc/meminfo", "MemAvailable:");
    long long limit = number_in("/sys/fs/cgroup/memory.max", ""), files;
    long long used = number_in("/sys/fs/cgroup/memory.current", "");
    *total = page * sysconf(_SC_PHYS_PAGES);
    *available = left < 0 ? page * sysconf(_SC_AVPHYS_PAGES) : left * 1024;
    files = number_in("/sys/fs/cgroup/memory.stat", "inactive_file");
    if (limit < 0 || used < 0) {
        limit = number_in("/sys/fs/cgroup/memory/memory.limit_in_bytes", "");
        used = number_in("/sys/fs/cgroup/memory/memory.usage_in_bytes", "");
        files = number_in("/sys/fs/cgroup/memory/memory.stat", "total_inactive_file");
    }
    if (limit >= 0 && used >= 0 && limit < *total) {
        used -= files > 0 && files < used ? files : 0;
        *total = limit;
        if (limit - used < *available)
            *available = limit > used ? limit - used : 0;
    }
}

static int memory_info(aclrtMemAttr attr, size_t *available, size_t *total)
{
    long long free_bytes, all_bytes;
    if ((int)attr < ACL_DDR_MEM || (int)attr > ACL_HBM_MEM_P2P_NORMAL)
        return refuse(ACL_ERROR_INVALID_PARAM, "attr = %d: must be 0 to 9", (int)attr);
    if (not_null("free", available) || not_null("total", total))
        return ACL_ERROR_INVALID_PARAM;
    if (device_is_set())
        return ACL_ERROR_RT_CONTEXT_NULL;
    measure_memory(&free_bytes, &all_bytes);
    *available = (size_t)free_bytes;
    *total = (size_t)all_bytes;
    return 0;
}

aclError aclrtGetMemInfo(aclrtMemAttr attr, size_t *available, size_t *total)
{
    return logged("aclrtGetMemInfo", memory_info(attr, available, total));
}

/* ---- fork ------------------------------------------------------------------------------------------------------ */

/* The child has the forking thread alone: whatever lock another thread held would never be given back there. */
static void before_fork(void)
{
    pthread_mutex_lock(&blocks_lock);
    aclnn_bw_lock_streams();
    aclnn_bw_lock_tables();
}

static void after_fork(void)
{
    aclnn_bw_unlock_tables();
    aclnn_bw_unlock_streams();
    pthread_mutex_unlock(&blocks_lock);
}

static void in_child(void)
{
    forked = 1;
    aclnn_bw_renew_locks();
    aclnn_bw_renew_streams();
    after_fork();
}

/* ---- copies ---------------------------------------------------------------------------------------------------- */

static int check_copy(const void *dst, size_t destMax, const void *src, size_t count, int kind)
{
    if (not_null("dst", dst) || not_null("src", src))
        return ACL_ERROR_INVALID_PARAM;
    if (kind < ACL_MEMCPY_HOST_TO_HOST || kind > ACL_MEMCPY_DEFAULT)
        return refuse(ACL_ERROR_INVALID_PARAM, "kind = %d: must be 0 to 4", kind);
    if (count > destMax)
        return refuse(ACL_ERROR_RT_PARAM_INVALID, "count = %llu: must be <= destMax = %llu", (unsigned long long)count,
                      (unsigned long long)destMax);
    return 0;
}

aclError aclrtMemcpy(void *dst, size_t destMax, const void *src, size_t count, aclrtMemcpyKind kind)
{
    int status = check_copy(dst, destMax, src, count, (int)kind);
    if (!status)
        memmove(dst, src, count);
    return logged("aclrtMemcpy", status);
}

typedef struct {
    aclnn_bw_job job;
    char *dst;
    const char *src;
    size_t count;
} copy;

static int do_copy(aclnn_bw_job *job)
{
    copy *c = (copy *)job;
    memmove(c->dst, c->src, c->count);
    return 0;
}

static void end_copy(aclnn_bw_job *job) { free(job); }

static int meets(const char *a, int64_t size, const char *begin, int64_t length)
{
    return a < begin + length && begin < a + size;
}

static int copy_uses(const aclnn_bw_job *job, const char *begin, int64_t size)
{
    const copy *c = (const copy *)job;
    return meets(c->dst, (int64_t)c->count, begin, size) || meets(c->src, (int64_t)c->count, begin, size);
}

static int copy_async(void *dst, const void *src, size_t count, aclrtStream stream)
{
    copy *c;
    int status = aclnn_bw_check_stream(stream) ? aclnn_bw_no_stream() : 0;
    if (status)
        return status;
    if (!aclnn_bw_current_settings()->async) {
        memmove(dst, src, count);
        return 0;
    }
    c = malloc(sizeof *c);
    if (!c)
        return refuse(ACL_ERROR_BAD_ALLOC, "stream: no memory for another copy");
    *c = (copy){{NULL, do_copy, end_copy, copy_uses}, dst, src, count};
    status = aclnn_bw_submit(stream, &c->job) ? aclnn_bw_no_stream() : 0;
    if (status)
        free(c);
    return status;
}

aclError aclrtMemcpyAsync(void *dst, size_t destMax, const void *src, size_t count, aclrtMemcpyKind kind,
                          aclrtStream stream)
{
    int status = check_copy(dst, destMax, src, count, (int)kind);
    return logged("aclrtMemcpyAsync", status ? status : copy_async(dst, src, count, stream));
}

aclError aclrtMemset(void *devPtr, size_t maxCount, int32_t value, size_t count)
{
    int status = not_null("devPtr", devPtr);
    if (!status && count > maxCount)
        status = refuse(ACL_ERROR_RT_PARAM_INVALID, "count = %llu: must be <= maxCount = %llu",
                        (unsigned long long)count, (unsigned long long)maxCount);
    if (!status)
        memset(devPtr, value, count);
    return logged("aclrtMemset", status);
}
