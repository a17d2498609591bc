/* Streams, which hold work back if they are asked to, and events, which order the work of several.
 *
 * The thread that synchronizes runs the work. Where it comes to work that waits for an event of another stream, it runs
 * that stream's work up to the event, and so on. What was given to a stream never waits for what was given to a stream
 * later, so this ends, and no two threads wait for each other.
 */
#define _POSIX_C_SOURCE 200809L
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "handles.h"
#include "internal.h"

enum { RUNTIME_ERROR = 361001 };

/* ---- queues ---------------------------------------------------------------------------------------------------- */

typedef struct queue queue;

/* One record of an event, which is a job of its stream. */
typedef struct {
    aclnn_bw_job job; /* first: a job of this kind is a record */
    queue *queue;     /* until it is done */
    int holders;      /* the event, the queue, and whatever waits for it: the last frees it */
    int done;
    int64_t time; /* at which the stream has reached it, in nanoseconds */
} record;

/* A job that is done once a record is. */
typedef struct {
    aclnn_bw_job job;
    record *awaited;
} waiting;

struct queue {
    aclnn_bw_job *first, **last;
    int holders;        /* its stream, the records in it, and the thread that runs its work: the last frees it */
    int running;        /* one thread at a time runs its work, so that it stays in order, */
    const record *goal; /* up to here; null: to the end. */
    queue *next;        /* Then the same thread goes on with this one, whose work waits for the goal; or null */
    int failure;
    char message[MESSAGE];
};

static pthread_mutex_t queues = PTHREAD_MUTEX_INITIALIZER; /* of queues, records and events */
static pthread_cond_t moved = PTHREAD_COND_INITIALIZER;    /* a record is done, or a queue is not run any more */
static queue default_queue = {.last = &default_queue.first, .holders = 1};

/* The queue of a stream, and the slot to be released after use (null for the default stream); null if it is none. */
static queue *queue_of(void *stream, aclnn_bw_slot **slot)
{
    *slot = NULL;
    if (!stream)
        return &default_queue;
    *slot = aclnn_bw_acquire(&aclnn_bw_streams, stream);
    return *slot ? (*slot)->object : NULL;
}

/* From here to run_first the caller has the lock. */
static void append(queue *q, aclnn_bw_job *job)
{
    job->next = NULL;
    *q->last = job;
    q->last = &job->next;
}

static void leave_queue(queue *q)
{
    if (--q->holders == 0)
        free(q);
}

static void leave_record(record *r)
{
    if (r && --r->holders == 0)
        free(r);
}

/* Makes the calling thread the one that runs a queue, before it goes on with `next`; gives the queue that it runs now.
 * That is `next` if the goal is reached already, perhaps while this has waited for another thread. */
static queue *enter(queue *q, const record *goal, queue *next)
{
    while (!(goal && goal->done) && q->running)
        pthread_cond_wait(&moved, &queues);
    if (goal && goal->done)
        return next;
    q->running = 1;
    q->holders++;
    q->goal = goal;
    q->next = next;
    return q;
}

static queue *go_on(queue *q)
{
    queue *next = q->next;
    q->running = 0;
    leave_queue(q);
    pthread_cond_broadcast(&moved);
    return next;
}

/* The first failure is kept for whoever synchronizes. A job leaves the queue when it is done, so that aclnn_bw_in_use
 * finds the one that runs, too. */
static void run_first(queue *q)
{
    aclnn_bw_job *job = q->first;
    int status;
    pthread_mutex_unlock(&queues);
    status = job->work(job);
    pthread_mutex_lock(&queues);
    if (status && !q->failure) {
        q->failure = status;
        snprintf(q->message, sizeof q->message, "%s", aclnn_bw_recent_message());
    }
    if (status)
        aclnn_bw_forget_message(); /* it is the queue's: this thread may be at work for another one */
    if (!(q->first = job->next))
        q->last = &q->first;
    pthread_mutex_unlock(&queues);
    job->end(job);
    pthread_mutex_lock(&queues);
}

static int await(aclnn_bw_job *job);

/* Runs what is queued, up to a record or, where that is null, to the end. The caller's reference keeps both. A chain of
 * streams that wait for each other is walked in a loop, whose depth no stack limits. */
static void drain(queue *q, const record *goal)
{
    pthread_mutex_lock(&queues);
    q = enter(q, goal, NULL);
    while (q) {
        aclnn_bw_job *job = q->first;
        const record *awaited = job && job->work == await ? ((waiting *)job)->awaited : NULL;
        if (!job || (q->goal && q->goal->done))
            q = go_on(q);
        else if (awaited && !awaited->done)
            q = enter(awaited->queue, awaited, q);
        else
            run_first(q);
    }
    pthread_mutex_unlock(&queues);
}

static void let_go(aclnn_bw_slot *slot)
{
    if (slot && aclnn_bw_release(slot)) {
        queue *q = slot->object;
        drain(q, NULL); /* what was submitted while the stream was destroyed */
        pthread_mutex_lock(&queues);
        slot->object = NULL;
        leave_queue(q);
        pthread_mutex_unlock(&queues);
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
    pthread_mutex_lock(&queues);
    append(q, job);
    pthread_mutex_unlock(&queues);
    let_go(slot);
    return 0;
}

static int take_failure(queue *q)
{
    int failure;
    drain(q, NULL);
    pthread_mutex_lock(&queues);
    failure = q->failure;
    q->failure = 0;
    if (failure)
        refuse(failure, "%s", q->message);
    pthread_mutex_unlock(&queues);
    return failure;
}

/* The failures after the first are left to their streams. */
int aclnn_bw_synchronize_all(void)
{
    char message[MESSAGE];
    int failure = take_failure(&default_queue);
    snprintf(message, sizeof message, "%s", failure ? aclnn_bw_recent_message() : "");
    for (uint32_t i = 0; i < aclnn_bw_slot_count(&aclnn_bw_streams); i++) {
        aclnn_bw_slot *slot = aclnn_bw_acquire_index(&aclnn_bw_streams, i);
        if (slot) {
            if (failure) {
                drain(slot->object, NULL);
            } else {
                failure = take_failure(slot->object);
                snprintf(message, sizeof message, "%s", failure ? aclnn_bw_recent_message() : "");
            }
            let_go(slot);
        }
    }
    return failure ? refuse(failure, "%s", message) : 0;
}

static int jobs_use(const queue *q, const char *begin, int64_t size)
{
    for (const aclnn_bw_job *job = q->first; job; job = job->next)
        if (job->uses(job, begin, size))
            return 1;
    return 0;
}

int aclnn_bw_in_use(const char *begin, int64_t size)
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

void aclnn_bw_lock_streams(void) { pthread_mutex_lock(&queues); }

void aclnn_bw_unlock_streams(void) { pthread_mutex_unlock(&queues); }

/* Work that another thread was at is still in its queue, and is done again in the child. */
void aclnn_bw_renew_streams(void)
{
    pthread_cond_init(&moved, NULL);
    default_queue.running = 0;
    for (uint32_t i = 0; i < aclnn_bw_slot_count(&aclnn_bw_streams); i++) {
        queue *q = aclnn_bw_object_at(&aclnn_bw_streams, i);
        if (q)
            q->running = 0;
    }
}

/* ---- calls of streams ------------------------------------------------------------------------------------------ */

static int create_stream(aclrtStream *stream)
{
    aclnn_bw_slot *slot;
    queue *q;
    if (aclnn_bw_not_null("stream", stream))
        return ACL_ERROR_INVALID_PARAM;
    if (aclnn_bw_device_is_set())
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
    q->holders = 1;
    slot->object = q;
    *stream = aclnn_bw_publish(&aclnn_bw_streams, slot);
    return 0;
}

aclError aclrtCreateStream(aclrtStream *stream) { return logged("aclrtCreateStream", create_stream(stream)); }

int aclnn_bw_no_stream(void)
{
    return refuse(ACL_ERROR_RT_PARAM_INVALID, "stream: is none, or has been destroyed");
}

aclError aclrtDestroyStream(aclrtStream stream)
{
    aclnn_bw_slot *slot;
    queue *q = queue_of(stream, &slot);
    int status = aclnn_bw_not_null("stream", stream);
    if (!status && !q)
        status = aclnn_bw_no_stream();
    if (!status) {
        status = aclnn_bw_invalidate(slot) ? take_failure(q) : aclnn_bw_no_stream(); /* none: another was faster */
        let_go(slot);
    }
    return logged("aclrtDestroyStream", status);
}

aclError aclrtSynchronizeStream(aclrtStream stream)
{
    aclnn_bw_slot *slot;
    queue *q = queue_of(stream, &slot);
    int status = q ? take_failure(q) : aclnn_bw_no_stream();
    let_go(slot);
    return logged("aclrtSynchronizeStream", status);
}

aclError aclrtSynchronizeDevice(void)
{
    int status = aclnn_bw_device_is_set();
    return logged("aclrtSynchronizeDevice", status ? status : aclnn_bw_synchronize_all());
}

/* ---- events ---------------------------------------------------------------------------------------------------- */

typedef struct {
    record *last; /* null: never recorded */
    uint32_t flags;
} event;

static int uses_nothing(const aclnn_bw_job *job, const char *begin, int64_t size)
{
    (void)job, (void)begin, (void)size;
    return 0;
}

static int reach(aclnn_bw_job *job)
{
    record *r = (record *)job;
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    pthread_mutex_lock(&queues);
    if (!r->done) { /* else this is the child of a fork, where it is done again */
        r->done = 1;
        r->time = (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
        leave_queue(r->queue);
        r->queue = NULL;
        pthread_cond_broadcast(&moved);
    }
    pthread_mutex_unlock(&queues);
    return 0;
}

static void end_record(aclnn_bw_job *job)
{
    pthread_mutex_lock(&queues);
    leave_record((record *)job);
    pthread_mutex_unlock(&queues);
}

/* By the time that a queue comes to it, drain has seen to the record. */
static int await(aclnn_bw_job *job)
{
    (void)job;
    return 0;
}

static void end_waiting(aclnn_bw_job *job)
{
    pthread_mutex_lock(&queues);
    leave_record(((waiting *)job)->awaited);
    pthread_mutex_unlock(&queues);
    free(job);
}

static int create_event(aclrtEvent *handle, uint32_t flags)
{
    const uint32_t known = ACL_EVENT_SYNC | ACL_EVENT_CAPTURE_STREAM_PROGRESS | ACL_EVENT_TIME_LINE;
    aclnn_bw_slot *slot;
    event *e;
    if (aclnn_bw_not_null("event", handle))
        return ACL_ERROR_INVALID_PARAM;
    if (!flags || flags & ~known)
        return refuse(ACL_ERROR_INVALID_PARAM, "flag = %u: must be one of ACL_EVENT_SYNC 1, "
                      "ACL_EVENT_CAPTURE_STREAM_PROGRESS 2 and ACL_EVENT_TIME_LINE 8, or several", (unsigned)flags);
    if (aclnn_bw_device_is_set())
        return ACL_ERROR_RT_CONTEXT_NULL;
    slot = aclnn_bw_take_slot(&aclnn_bw_events);
    e = calloc(1, sizeof *e);
    if (!slot || !e) {
        free(e);
        if (slot)
            aclnn_bw_give_slot(&aclnn_bw_events, slot);
        return refuse(ACL_ERROR_BAD_ALLOC, "event: no memory for another one");
    }
    e->flags = flags;
    slot->object = e;
    *handle = aclnn_bw_publish(&aclnn_bw_events, slot);
    return 0;
}

aclError aclrtCreateEvent(aclrtEvent *event)
{
    return logged("aclrtCreateEvent", create_event(event, ACL_EVENT_SYNC | ACL_EVENT_TIME_LINE));
}

aclError aclrtCreateEventWithFlag(aclrtEvent *event, uint32_t flag)
{
    return logged("aclrtCreateEventWithFlag", create_event(event, flag));
}

/* The slot of an event, with a reference; null, and a refusal, where there is none. */
static aclnn_bw_slot *find_event(const char *name, aclrtEvent handle, int *status)
{
    aclnn_bw_slot *slot = aclnn_bw_acquire(&aclnn_bw_events, handle);
    *status = aclnn_bw_not_null(name, handle);
    if (!*status && !slot)
        *status = refuse(ACL_ERROR_RT_PARAM_INVALID, "%s: is none, or has been destroyed", name);
    return slot;
}

static void leave_event(aclnn_bw_slot *slot)
{
    if (slot && aclnn_bw_release(slot)) {
        event *e = slot->object;
        pthread_mutex_lock(&queues);
        leave_record(e->last);
        pthread_mutex_unlock(&queues);
        free(e);
        aclnn_bw_give_slot(&aclnn_bw_events, slot);
    }
}

aclError aclrtDestroyEvent(aclrtEvent event)
{
    int status;
    aclnn_bw_slot *slot = find_event("event", event, &status);
    if (slot && !aclnn_bw_invalidate(slot)) /* another thread was faster */
        status = refuse(ACL_ERROR_RT_PARAM_INVALID, "event: has been destroyed");
    leave_event(slot);
    return logged("aclrtDestroyEvent", status);
}

static int record_event(event *e, queue *q)
{
    record *r = malloc(sizeof *r);
    if (!r)
        return refuse(ACL_ERROR_BAD_ALLOC, "event: no memory for another record");
    *r = (record){{NULL, reach, end_record, uses_nothing}, q, 3, 0, 0}; /* the third holder is this call */
    pthread_mutex_lock(&queues);
    q->holders++;
    append(q, &r->job);
    leave_record(e->last);
    e->last = r;
    pthread_mutex_unlock(&queues);
    if (!aclnn_bw_current_settings()->async)
        drain(q, r);
    end_record(&r->job);
    return 0;
}

aclError aclrtRecordEvent(aclrtEvent event, aclrtStream stream)
{
    int status;
    aclnn_bw_slot *slot, *held = find_event("event", event, &status);
    queue *q = queue_of(stream, &slot);
    if (!status)
        status = q ? record_event(held->object, q) : aclnn_bw_no_stream();
    let_go(slot);
    leave_event(held);
    return logged("aclrtRecordEvent", status);
}

/* The last record of an event, with a reference; null if nobody needs to wait. */
static record *awaited_of(const event *e)
{
    record *r;
    pthread_mutex_lock(&queues);
    r = e->last && !e->last->done ? e->last : NULL;
    if (r)
        r->holders++;
    pthread_mutex_unlock(&queues);
    return r;
}

static void synchronize(const event *e)
{
    record *r = awaited_of(e);
    queue *q;
    if (!r)
        return;
    pthread_mutex_lock(&queues);
    q = r->queue;
    if (q)
        q->holders++;
    pthread_mutex_unlock(&queues);
    if (q)
        drain(q, r);
    pthread_mutex_lock(&queues);
    if (q)
        leave_queue(q);
    leave_record(r);
    pthread_mutex_unlock(&queues);
}

aclError aclrtSynchronizeEvent(aclrtEvent event)
{
    int status;
    aclnn_bw_slot *slot = find_event("event", event, &status);
    if (slot)
        synchronize(slot->object);
    leave_event(slot);
    return logged("aclrtSynchronizeEvent", status);
}

static int query_event(const event *e, aclrtEventRecordedStatus *status)
{
    if (aclnn_bw_not_null("status", status))
        return ACL_ERROR_INVALID_PARAM;
    pthread_mutex_lock(&queues);
    *status = e->last && e->last->done ? ACL_EVENT_RECORDED_STATUS_COMPLETE : ACL_EVENT_RECORDED_STATUS_NOT_READY;
    pthread_mutex_unlock(&queues);
    return 0;
}

aclError aclrtQueryEventStatus(aclrtEvent event, aclrtEventRecordedStatus *status)
{
    int answer;
    aclnn_bw_slot *slot = find_event("event", event, &answer);
    if (slot)
        answer = query_event(slot->object, status);
    leave_event(slot);
    return logged("aclrtQueryEventStatus", answer);
}

static int wait_event(queue *q, const event *e)
{
    record *r = awaited_of(e);
    waiting *w;
    if (!r)
        return 0;
    w = malloc(sizeof *w);
    if (!w) {
        end_record(&r->job);
        return refuse(ACL_ERROR_BAD_ALLOC, "stream: no memory to wait for an event");
    }
    *w = (waiting){{NULL, await, end_waiting, uses_nothing}, r};
    pthread_mutex_lock(&queues);
    append(q, &w->job);
    pthread_mutex_unlock(&queues);
    if (!aclnn_bw_current_settings()->async)
        drain(q, NULL); /* the event was recorded while work was held back */
    return 0;
}

aclError aclrtStreamWaitEvent(aclrtStream stream, aclrtEvent event)
{
    int status;
    aclnn_bw_slot *slot, *held = NULL;
    queue *q = queue_of(stream, &slot);
    if (q)
        held = find_event("event", event, &status);
    else
        status = aclnn_bw_no_stream();
    if (held)
        status = wait_event(q, held->object);
    leave_event(held);
    let_go(slot);
    return logged("aclrtStreamWaitEvent", status);
}

/* When a stream has reached the last record of an event. */
static int time_of(const char *name, aclrtEvent handle, int64_t *time)
{
    int status;
    const char *problem = NULL;
    aclnn_bw_slot *slot = find_event(name, handle, &status);
    if (slot) {
        const event *e = slot->object;
        pthread_mutex_lock(&queues);
        if (!(e->flags & ACL_EVENT_TIME_LINE))
            problem = "was made without ACL_EVENT_TIME_LINE";
        else if (!e->last)
            problem = "was never recorded";
        else if (!e->last->done)
            problem = "its stream has not reached it; synchronize first";
        else
            *time = e->last->time;
        pthread_mutex_unlock(&queues);
    }
    leave_event(slot);
    return problem ? refuse(ACL_ERROR_RT_EVENT_TIMESTAMP_INVALID, "%s: %s", name, problem) : status;
}

aclError aclrtEventElapsedTime(float *ms, aclrtEvent startEvent, aclrtEvent endEvent)
{
    int64_t start = 0, end = 0;
    int status = aclnn_bw_not_null("ms", ms);
    if (!status)
        status = time_of("startEvent", startEvent, &start);
    if (!status)
        status = time_of("endEvent", endEvent, &end);
    if (!status && end < start)
        status = refuse(ACL_ERROR_RT_EVENT_TIMESTAMP_REVERSAL, "endEvent: was reached %lld ns before startEvent",
                        (long long)(start - end));
    if (!status)
        *ms = (float)((double)(end - start) / 1e6);
    return logged("aclrtEventElapsedTime", status);
}
