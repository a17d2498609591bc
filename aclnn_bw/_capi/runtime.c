/* The runtime's calls: settings, devices, memory, copies and streams. The device is the host. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* sched_getaffinity */
#endif
#include "runtime.h"

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "acl/acl.h"
#include "aclnn/aclnn_base.h"
#include "handles.h"

enum { RUNTIME_ERROR = 361001, FIND_KERNEL_ERROR = 561003, INVALID = 161002, MESSAGE = 1024, MOST_THREADS = 65535 };
enum { ISA_NONE = 0, ISA_BASELINE = 1 };

__attribute__((format(printf, 2, 3))) int aclnn_bw_refuse(int status, const char *format, ...);
const char *aclnn_bw_recent_message(void);
void aclnn_bw_forget_message(void);
int aclnn_bw_best_isa(void);

#define refuse aclnn_bw_refuse
#define logged(call, status) aclnn_bw_logged(call, status, NULL)

/* ---- settings -------------------------------------------------------------------------------------------------- */

static const char *const products[] = {"Ascend910", "Ascend310P", "Ascend910B", "Host"};
static const char *const layouts[] = {"bitmask", "argmax"};
static aclnn_bw_settings settings;
static char problem[256];
static pthread_once_t once = PTHREAD_ONCE_INIT;
static int forked;

/* The number of a name in the environment; the problem is noted where it does not exist. */
static int choice(const char *variable, const char *const *names, int count, int otherwise)
{
    const char *value = getenv(variable);
    int used;
    if (!value || !*value)
        return otherwise;
    for (int i = 0; i < count; i++)
        if (!strcmp(value, names[i]))
            return i;
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
    settings.product = choice("ACLNN_BW_SOC", products, 4, 2);
    settings.mask_layout = choice("ACLNN_BW_MASK_LAYOUT", layouts, 2, 0);
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

/* ---- streams --------------------------------------------------------------------------------------------------- */

typedef struct {
    aclnn_bw_job *first, **last;
    pthread_mutex_t draining; /* one thread at a time, so that the work stays in order */
    int failure;
    char message[MESSAGE];
} queue;

static pthread_mutex_t queues = PTHREAD_MUTEX_INITIALIZER; /* of the lists of jobs, and of failures */
static queue default_queue = {NULL, &default_queue.first, PTHREAD_MUTEX_INITIALIZER, 0, {0}};

/* The queue of a stream, and the slot to be released after use (null for the default stream); null if it is none. */
static queue *queue_of(void *stream, aclnn_bw_slot **slot)
{
    *slot = NULL;
    if (!stream)
        return &default_queue;
    *slot = aclnn_bw_acquire(&aclnn_bw_streams, stream);
    return *slot ? (*slot)->object : NULL;
}

/* Runs what is queued; the first failure is kept for whoever synchronizes. A job leaves the queue when it is done, so
 * that in_use finds the one that runs, too. */
static void drain(queue *q)
{
    pthread_mutex_lock(&q->draining);
    pthread_mutex_lock(&queues);
    for (aclnn_bw_job *job = q->first; job; job = q->first) {
        int status;
        pthread_mutex_unlock(&queues);
        status = job->work(job);
        pthread_mutex_lock(&queues);
        if (status && !q->failure) {
            q->failure = status;
            snprintf(q->message, sizeof q->message, "%s", aclnn_bw_recent_message());
        }
        if (!(q->first = job->next))
            q->last = &q->first;
        pthread_mutex_unlock(&queues);
        job->end(job);
        pthread_mutex_lock(&queues);
    }
    pthread_mutex_unlock(&queues);
    pthread_mutex_unlock(&q->draining);
}

static void let_go(aclnn_bw_slot *slot)
{
    if (slot && aclnn_bw_release(slot)) {
        queue *q = slot->object;
        drain(q); /* what was submitted while the stream was destroyed */
        slot->object = NULL;
        pthread_mutex_destroy(&q->draining);
        free(q);
        aclnn_bw_give_slot(&aclnn_bw_streams, slot);
    }
}

int aclnn_bw_check_stream(void *stream)
{
    aclnn_bw_slot *slot;
    if (!stream)
        return 0;
    if (!queue_of(stream, &slot))
        return refuse(RUNTIME_ERROR, "stream: is none, or has been destroyed");
    let_go(slot);
    return 0;
}

int aclnn_bw_submit(void *stream, aclnn_bw_job *job)
{
    aclnn_bw_slot *slot;
    queue *q = queue_of(stream, &slot);
    if (!q)
        return refuse(RUNTIME_ERROR, "stream: is none, or has been destroyed");
    job->next = NULL;
    pthread_mutex_lock(&queues);
    *q->last = job;
    q->last = &job->next;
    pthread_mutex_unlock(&queues);
    let_go(slot);
    return 0;
}

static int take_failure(queue *q)
{
    int failure;
    drain(q);
    pthread_mutex_lock(&queues);
    failure = q->failure;
    q->failure = 0;
    if (failure)
        refuse(failure, "%s", q->message);
    pthread_mutex_unlock(&queues);
    return failure;
}

/* Every stream in turn; the first failure, or 0. */
static int synchronize_all(void)
{
    int failure = take_failure(&default_queue);
    for (uint32_t i = 0; i < aclnn_bw_slot_count(&aclnn_bw_streams); i++) {
        aclnn_bw_slot *slot = aclnn_bw_acquire_index(&aclnn_bw_streams, i);
        if (slot) {
            int status = failure ? 0 : take_failure(slot->object);
            if (failure)
                drain(slot->object);
            failure = failure ? failure : status;
            let_go(slot);
        }
    }
    return failure;
}

static int jobs_use(const queue *q, const char *begin, int64_t size)
{
    for (const aclnn_bw_job *job = q->first; job; job = job->next)
        if (job->uses(job, begin, size))
            return 1;
    return 0;
}

/* Whether work that waits on some stream needs this memory. */
static int in_use(const char *begin, int64_t size)
{
    int used;
    pthread_mutex_lock(&queues);
    used = jobs_use(&default_queue, begin, size);
    for (uint32_t i = 0; !used && i < aclnn_bw_slot_count(&aclnn_bw_streams); i++) {
        aclnn_bw_slot *slot = aclnn_bw_acquire_index(&aclnn_bw_streams, i);
        if (slot) {
            used = jobs_use(slot->object, begin, size);
            pthread_mutex_unlock(&queues); /* the last to let a stream go drains it */
            let_go(slot);
            pthread_mutex_lock(&queues);
        }
    }
    pthread_mutex_unlock(&queues);
    return used;
}

/* ---- begin, end, devices --------------------------------------------------------------------------------------- */

static int initialized; /* atomic */
static _Thread_local int device = -1;

static int device_is_set(void)
{
    return device < 0 ? refuse(ACL_ERROR_RT_CONTEXT_NULL, "device: the calling thread must call aclrtSetDevice first")
                      : 0;
}

static int check_device(int32_t id)
{
    return id ? refuse(ACL_ERROR_RT_INVALID_DEVICEID, "deviceId = %d: must be 0, the host", (int)id) : 0;
}

static int not_null(const char *name, const void *pointer)
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
    return logged("aclFinalize", synchronize_all());
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
        device = 0;
    return logged("aclrtSetDevice", status);
}

aclError aclrtResetDevice(int32_t deviceId)
{
    int status = check_device(deviceId);
    if (!status) {
        status = synchronize_all();
        device = -1;
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

/* ---- calls of streams ------------------------------------------------------------------------------------------ */

static int create_stream(aclrtStream *stream)
{
    aclnn_bw_slot *slot;
    queue *q;
    if (not_null("stream", stream))
        return ACL_ERROR_INVALID_PARAM;
    if (device_is_set())
        return ACL_ERROR_RT_CONTEXT_NULL;
    slot = aclnn_bw_take_slot(&aclnn_bw_streams);
    q = calloc(1, sizeof *q);
    if (!slot || !q) {
        free(q);
        if (slot)
            aclnn_bw_give_slot(&aclnn_bw_streams, slot);
        return refuse(ACL_ERROR_BAD_ALLOC, "stream: no memory for another one");
    }
    q->last = &q->first;
    pthread_mutex_init(&q->draining, NULL);
    slot->object = q;
    *stream = aclnn_bw_publish(&aclnn_bw_streams, slot);
    return 0;
}

aclError aclrtCreateStream(aclrtStream *stream) { return logged("aclrtCreateStream", create_stream(stream)); }

static int no_stream(void)
{
    return refuse(ACL_ERROR_RT_PARAM_INVALID, "stream: is none, or has been destroyed");
}

aclError aclrtDestroyStream(aclrtStream stream)
{
    aclnn_bw_slot *slot;
    queue *q = queue_of(stream, &slot);
    int status = not_null("stream", stream);
    if (!status && !q)
        status = no_stream();
    if (!status) {
        status = aclnn_bw_invalidate(slot) ? take_failure(q) : no_stream(); /* none: another thread was faster */
        let_go(slot);
    }
    return logged("aclrtDestroyStream", status);
}

aclError aclrtSynchronizeStream(aclrtStream stream)
{
    aclnn_bw_slot *slot;
    queue *q = queue_of(stream, &slot);
    int status = q ? take_failure(q) : no_stream();
    let_go(slot);
    return logged("aclrtSynchronizeStream", status);
}

aclError aclrtSynchronizeDevice(void)
{
    int status = device_is_set();
    return logged("aclrtSynchronizeDevice", status ? status : synchronize_all());
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
        if (in_use(found->begin, found->size)) {
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

/* ---- fork ------------------------------------------------------------------------------------------------------ */

/* The child has the forking thread alone: whatever lock another thread held would never be given back there. */
static void before_fork(void)
{
    pthread_mutex_lock(&blocks_lock);
    pthread_mutex_lock(&queues);
    aclnn_bw_lock_tables();
}

static void after_fork(void)
{
    aclnn_bw_unlock_tables();
    pthread_mutex_unlock(&queues);
    pthread_mutex_unlock(&blocks_lock);
}

/* Work that another thread was at is still in its queue, and is done again in the child. */
static void in_child(void)
{
    forked = 1;
    aclnn_bw_renew_locks();
    pthread_mutex_init(&default_queue.draining, NULL);
    for (uint32_t i = 0; i < aclnn_bw_slot_count(&aclnn_bw_streams); i++) {
        queue *q = aclnn_bw_object_at(&aclnn_bw_streams, i);
        if (q)
            pthread_mutex_init(&q->draining, NULL);
    }
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
    int status = aclnn_bw_check_stream(stream) ? no_stream() : 0;
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
    status = aclnn_bw_submit(stream, &c->job) ? no_stream() : 0;
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
