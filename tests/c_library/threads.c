/* Many threads at once: executors of their own, one for all, streams, events, memory, and a fork in the middle. */
#define _POSIX_C_SOURCE 200809L
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common.h"

enum { THREADS = 8 };

static int rounds = 400; /* of each thread */
static pthread_barrier_t barrier;

/* Whether a condition holds, for threads that use the message and the count at once. */
#define SURE(condition) ((condition) ? (void)0 : (void)(__atomic_add_fetch(&wrong, 1, __ATOMIC_RELAXED),               \
                                                        fprintf(stderr, "%d: not %s\n", __LINE__, #condition)))

static void all(void *(*work)(void *), void *argument)
{
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], NULL, work, argument))
            exit(8);
    for (int i = 0; i < THREADS; i++)
        (void)pthread_join(threads[i], NULL);
}

/* Executors, streams and memory of its own. */
static void *alone(void *unused)
{
    void *from, *to;
    (void)unused;
    SURE(aclrtMalloc(&from, 8, ACL_MEM_MALLOC_HUGE_FIRST) == 107002);
    SURE(aclrtSetDevice(0) == 0);
    for (int i = 0; i < rounds; i++) {
        aclrtStream stream = NULL;
        aclOpExecutor *executor;
        pool p;
        SURE(aclrtMalloc(&from, OUTPUTS * sizeof(float), ACL_MEM_MALLOC_HUGE_FIRST) == 0);
        SURE(aclrtMalloc(&to, INPUTS * sizeof(float), ACL_MEM_MALLOC_HUGE_FIRST) == 0);
        fill(from, OUTPUTS, (float)i);
        p = new_pool(from, to);
        if (i % 2)
            SURE(aclrtCreateStream(&stream) == 0);
        executor = planned(&p);
        delete_pool(&p);
        if (i % 3 == 0) {
            SURE(aclDestroyAclOpExecutor(executor) == 0);
            SURE(aclnnAvgPool2dBackward(NULL, 0, executor, stream) == 561000);
            SURE(strstr(aclGetRecentErrMsg(), "destroyed") != NULL);
        } else {
            SURE(aclnnAvgPool2dBackward(NULL, 0, executor, stream) == 0);
            SURE(aclnnAvgPool2dBackward(NULL, 0, executor, stream) == 561000);
            SURE(aclrtSynchronizeStream(stream) == 0);
            SURE(holds(to, (float)i));
        }
        SURE(aclrtSynchronizeDevice() == 0);
        if (stream)
            SURE(aclrtDestroyStream(stream) == 0);
        SURE(aclrtFree(from) == 0);
        SURE(aclrtFree(to) == 0);
    }
    return NULL;
}

static aclOpExecutor *volatile shared;
static aclrtStream shared_stream;
static float shared_given[OUTPUTS], shared_made[INPUTS];
static int done, refused, strange;

static void count(int status)
{
    (void)__atomic_add_fetch(status == 0 ? &done : status == 561000 ? &refused : &strange, 1, __ATOMIC_RELAXED);
}

/* One executor for all of them; `repeatable` says which kind. */
static void *together(void *repeatable)
{
    pool p = new_pool(shared_given, shared_made);
    for (int i = 0; i < rounds; i++) {
        const int leader = pthread_barrier_wait(&barrier) == PTHREAD_BARRIER_SERIAL_THREAD;
        if (leader) {
            shared = planned(&p);
            fill(shared_made, INPUTS, 0);
            fill(shared_given, OUTPUTS, (float)i);
            if (repeatable)
                SURE(aclSetAclOpExecutorRepeatable(shared) == 0);
            done = refused = strange = 0;
        }
        (void)pthread_barrier_wait(&barrier);
        count(aclnnAvgPool2dBackward(NULL, 0, shared, NULL));
        (void)pthread_barrier_wait(&barrier);
        if (leader) {
            SURE(strange == 0 && done + refused == THREADS && (repeatable ? done >= 1 : done == 1));
            SURE(aclrtSynchronizeStream(NULL) == 0);
            SURE(holds(shared_made, (float)i));
            done = refused = 0;
        }
        (void)pthread_barrier_wait(&barrier);
        count(aclDestroyAclOpExecutor(shared)); /* exactly one destroys what is still there */
        (void)pthread_barrier_wait(&barrier);
        if (leader)
            SURE(strange == 0 && done == (repeatable ? 1 : 0));
    }
    delete_pool(&p);
    return NULL;
}

/* One stream, which some use while another destroys it; an executor that is destroyed while others use it. */
static void *while_it_goes(void *unused)
{
    float given[OUTPUTS], made[INPUTS];
    pool p = new_pool(given, made), all_of_us = new_pool(shared_given, shared_made);
    (void)unused;
    SURE(aclrtSetDevice(0) == 0);
    fill(given, OUTPUTS, 4);
    for (int i = 0; i < rounds; i++) {
        const int leader = pthread_barrier_wait(&barrier) == PTHREAD_BARRIER_SERIAL_THREAD;
        aclOpExecutor *executor = planned(&p);
        void *memory = NULL;
        int status;
        if (leader) {
            SURE(aclrtCreateStream(&shared_stream) == 0);
            shared = planned(&all_of_us);
            SURE(aclSetAclOpExecutorRepeatable(shared) == 0);
        }
        fill(made, INPUTS, 0);
        SURE(aclrtMalloc(&memory, 64, ACL_MEM_MALLOC_HUGE_FIRST) == 0);
        (void)pthread_barrier_wait(&barrier);
        status = aclnnAvgPool2dBackward(NULL, 0, executor, shared_stream);
        SURE(status == 0 || status == 361001);
        if (status != 0)
            SURE(aclDestroyAclOpExecutor(executor) == 0);
        (void)aclnnAvgPool2dBackward(NULL, 0, shared, shared_stream);
        SURE(aclrtFree(memory) == 0); /* looks through all streams, if work may wait */
        if (leader) {
            SURE(aclrtDestroyStream(shared_stream) == 0);
            SURE(aclDestroyAclOpExecutor(shared) == 0);
        } else {
            (void)aclSetOutputTensorAddr(shared, 0, NULL, shared_made);
            (void)aclrtSynchronizeStream(shared_stream);
        }
        (void)pthread_barrier_wait(&barrier);
        if (status == 0)
            SURE(holds(made, 4)); /* destroying a stream has drained it */
    }
    delete_pool(&p);
    delete_pool(&all_of_us);
    return NULL;
}

static aclrtStream ring_streams[THREADS];
static aclrtEvent ring_events[THREADS], shared_event;
static int ring_values[THREADS], ring_seen[THREADS], ring_count;

/* Each thread's stream waits for that of the next one, which waits in turn; all synchronize at once. Meanwhile they use
 * an event that one of them destroys. */
static void *in_a_ring(void *unused)
{
    const int me = __atomic_fetch_add(&ring_count, 1, __ATOMIC_RELAXED), next = (me + 1) % THREADS;
    int number;
    (void)unused;
    SURE(aclrtSetDevice(0) == 0);
    SURE(aclrtCreateStream(&ring_streams[me]) == 0);
    SURE(aclrtCreateEvent(&ring_events[me]) == 0);
    for (int i = 0; i < rounds; i++) {
        aclrtEventRecordedStatus status;
        float ms = -1;
        const int leader = pthread_barrier_wait(&barrier) == PTHREAD_BARRIER_SERIAL_THREAD;
        number = 1000 * i + me;
        if (leader)
            SURE(aclrtCreateEvent(&shared_event) == 0);
        SURE(aclrtMemcpyAsync(&ring_values[me], sizeof number, &number, sizeof number, ACL_MEMCPY_DEFAULT,
                              ring_streams[me]) == 0);
        SURE(aclrtRecordEvent(ring_events[me], ring_streams[me]) == 0);
        (void)pthread_barrier_wait(&barrier);
        SURE(aclrtStreamWaitEvent(ring_streams[me], ring_events[next]) == 0);
        SURE(aclrtMemcpyAsync(&ring_seen[me], sizeof number, &ring_values[next], sizeof number, ACL_MEMCPY_DEFAULT,
                              ring_streams[me]) == 0);
        (void)pthread_barrier_wait(&barrier); /* records again: what waits is as it was */
        SURE(aclrtRecordEvent(ring_events[me], ring_streams[me]) == 0);
        SURE(aclrtStreamWaitEvent(ring_streams[me], ring_events[next]) == 0);
        (void)aclrtRecordEvent(shared_event, ring_streams[me]);
        (void)aclrtStreamWaitEvent(ring_streams[me], shared_event);
        (void)aclrtQueryEventStatus(shared_event, &status);
        if (leader)
            SURE(aclrtDestroyEvent(shared_event) == 0);
        if (i % 4 == 1)
            SURE(aclrtSynchronizeDevice() == 0);
        else if (i % 4 == 2)
            SURE(aclrtSynchronizeEvent(ring_events[me]) == 0);
        else
            SURE(aclrtSynchronizeStream(ring_streams[me]) == 0);
        SURE(ring_seen[me] == 1000 * i + next);
        (void)pthread_barrier_wait(&barrier);
        SURE(aclrtSynchronizeStream(ring_streams[me]) == 0);
        SURE(aclrtEventElapsedTime(&ms, ring_events[me], ring_events[me]) == 0 && ms == 0);
        if (i % 5 == 0) {
            SURE(aclrtDestroyStream(ring_streams[me]) == 0);
            SURE(aclrtCreateStream(&ring_streams[me]) == 0);
        }
    }
    (void)pthread_barrier_wait(&barrier);
    SURE(aclrtDestroyStream(ring_streams[me]) == 0);
    SURE(aclrtDestroyEvent(ring_events[me]) == 0);
    return NULL;
}

static int stop;

static void *busy(void *unused)
{
    float given[OUTPUTS], made[INPUTS];
    pool p = new_pool(given, made);
    (void)unused;
    SURE(aclrtSetDevice(0) == 0);
    fill(given, OUTPUTS, 4);
    while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
        aclrtStream stream = NULL;
        aclrtEvent event = NULL;
        void *memory = NULL;
        SURE(aclrtCreateStream(&stream) == 0);
        SURE(aclrtCreateEvent(&event) == 0);
        SURE(aclrtMalloc(&memory, 64, ACL_MEM_MALLOC_HUGE_FIRST) == 0);
        SURE(aclnnAvgPool2dBackward(NULL, 0, planned(&p), stream) == 0);
        SURE(aclrtRecordEvent(event, stream) == 0);
        SURE(aclrtStreamWaitEvent(NULL, event) == 0);
        SURE(aclnnAvgPool2dBackward(NULL, 0, planned(&p), NULL) == 0);
        SURE(aclrtDestroyEvent(event) == 0);
        SURE(aclrtDestroyStream(stream) == 0);
        SURE(aclrtFree(memory) == 0);
    }
    delete_pool(&p);
    return NULL;
}

/* A plane that is large enough for a team of threads. */
static void large(float value)
{
    enum { SIDE = 512 };
    static const int64_t out[3] = {8, SIDE, SIDE}, in[3] = {8, 2 * SIDE, 2 * SIDE}, two[1] = {2}, none[1] = {0};
    static float given[8 * SIDE * SIDE], made[8 * 4 * SIDE * SIDE];
    aclTensor *gradOutput = aclCreateTensor(out, 3, ACL_FLOAT, NULL, 0, ACL_FORMAT_NCL, out, 3, given);
    aclTensor *gradInput = aclCreateTensor(in, 3, ACL_FLOAT, NULL, 0, ACL_FORMAT_NCL, in, 3, made);
    aclIntArray *twos = aclCreateIntArray(two, 1), *nones = aclCreateIntArray(none, 1);
    aclOpExecutor *executor = NULL;
    uint64_t size = 0;
    void *workspace = NULL;
    fill(given, 8 * SIDE * SIDE, value);
    SURE(aclnnAvgPool2dBackwardGetWorkspaceSize(gradOutput, gradInput, twos, NULL, nones, false, true, 0, 0, gradInput,
                                                &size, &executor) == 0);
    workspace = size ? malloc(size) : NULL;
    SURE(aclnnAvgPool2dBackward(workspace, size, executor, NULL) == 0);
    SURE(aclrtSynchronizeStream(NULL) == 0);
    SURE(made[0] == value / 4 && made[8 * 4 * SIDE * SIDE - 1] == value / 4);
    free(workspace);
    (void)aclDestroyTensor(gradOutput);
    (void)aclDestroyTensor(gradInput);
    (void)aclDestroyIntArray(twos);
    (void)aclDestroyIntArray(nones);
}

/* Children of a process whose threads are at work compute, on one thread, and end. */
static void forks(void)
{
    pthread_t threads[2];
    float given[OUTPUTS], made[INPUTS];
    pool p = new_pool(given, made);
    aclrtStream stream = NULL;
    SURE(aclrtSetDevice(0) == 0);
    SURE(aclrtCreateStream(&stream) == 0);
    large(8);
    for (int i = 0; i < 2; i++)
        if (pthread_create(&threads[i], NULL, busy, NULL))
            exit(8);
    fill(given, OUTPUTS, 12);
    for (int i = 0; i < 40; i++) {
        aclOpExecutor *before = planned(&p);
        const pid_t child = fork();
        if (child == 0) {
            void *memory = NULL;
            aclrtEvent event = NULL;
            alarm(30); /* a child that hangs is ended by it */
            SURE(aclrtMalloc(&memory, 64, ACL_MEM_MALLOC_HUGE_FIRST) == 0);
            SURE(aclnnAvgPool2dBackward(NULL, 0, before, stream) == 0);
            SURE(aclrtSynchronizeStream(stream) == 0);
            SURE(holds(made, 12));
            SURE(aclnnAvgPool2dBackward(NULL, 0, planned(&p), NULL) == 0);
            SURE(aclrtCreateEvent(&event) == 0);
            SURE(aclrtRecordEvent(event, NULL) == 0);
            SURE(aclrtStreamWaitEvent(stream, event) == 0);
            SURE(aclrtSynchronizeStream(stream) == 0);
            SURE(aclrtSynchronizeDevice() == 0);
            SURE(aclrtCreateStream(&stream) == 0);
            SURE(aclrtFree(memory) == 0);
            if (i == 0)
                large(16);
            _exit(wrong != 0);
        } else {
            int status = 0;
            SURE(child > 0 && waitpid(child, &status, 0) == child && status == 0);
        }
        SURE(aclDestroyAclOpExecutor(before) == 0);
    }
    __atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
    for (int i = 0; i < 2; i++)
        (void)pthread_join(threads[i], NULL);
    SURE(aclrtDestroyStream(stream) == 0);
    delete_pool(&p);
}

int main(int argc, char **argv)
{
    const char *part = argc > 1 ? argv[1] : "";
    static char yes;
    if (argc > 2)
        rounds = atoi(argv[2]);
    (void)pthread_barrier_init(&barrier, NULL, THREADS);
    SURE(aclInit(NULL) == 0);
    if (strstr(part, "alone"))
        all(alone, NULL);
    if (strstr(part, "together")) {
        all(together, NULL);
        all(together, &yes);
    }
    if (strstr(part, "going"))
        all(while_it_goes, NULL);
    if (strstr(part, "ring"))
        all(in_a_ring, NULL);
    if (strstr(part, "fork"))
        forks();
    SURE(aclFinalize() == 0);
    return wrong != 0;
}
