/* Events: what is refused; with ACLNN_BW_ASYNC=1, the order of work on several streams; and times. */
#define _POSIX_C_SOURCE 200809L
#include <time.h>

#include "common.h"

static float given[OUTPUTS], made[INPUTS];

static void run(const pool *p, aclrtStream stream) { IS(aclnnAvgPool2dBackward(NULL, 0, planned(p), stream), 0); }

static void pause_for(long milliseconds)
{
    const struct timespec time = {milliseconds / 1000, milliseconds % 1000 * 1000000};
    nanosleep(&time, NULL);
}

/* Copies one number when the stream comes to it. */
static void put(int *to, const int *from, aclrtStream stream)
{
    IS(aclrtMemcpyAsync(to, sizeof *to, from, sizeof *from, ACL_MEMCPY_DEVICE_TO_DEVICE, stream), 0);
}

static aclrtEventRecordedStatus state(aclrtEvent event)
{
    aclrtEventRecordedStatus status = (aclrtEventRecordedStatus)7;
    IS(aclrtQueryEventStatus(event, &status), 0);
    return status;
}
#define PENDING(event) TRUE(state(event) == ACL_EVENT_RECORDED_STATUS_NOT_READY)
#define COMPLETE(event) TRUE(state(event) == ACL_EVENT_RECORDED_STATUS_COMPLETE)

static aclrtStream new_stream(void)
{
    aclrtStream stream = NULL;
    IS(aclrtCreateStream(&stream), 0);
    return stream;
}

static aclrtEvent new_event(void)
{
    aclrtEvent event = NULL;
    IS(aclrtCreateEvent(&event), 0);
    return event;
}

static void refused(void)
{
    aclrtEvent event = NULL, other = NULL, gone, garbage;
    aclrtStream stream, old = new_stream();
    aclrtEventRecordedStatus status = (aclrtEventRecordedStatus)7;
    float ms = 7;
    IS(aclrtDestroyStream(old), 0);
    stream = new_stream();
    IS(aclrtResetDevice(0), 0);
    SAYS(aclrtCreateEvent(&event), 107002, "aclrtSetDevice");
    TRUE(event == NULL);
    IS(aclrtSetDevice(0), 0);
    SAYS(aclrtCreateEvent(NULL), 100000, "event = nullptr");
    SAYS(aclrtCreateEventWithFlag(NULL, ACL_EVENT_SYNC), 100000, "event = nullptr");
    SAYS(aclrtCreateEventWithFlag(&event, 0), 100000, "flag = 0");
    SAYS(aclrtCreateEventWithFlag(&event, ACL_EVENT_SYNC | 0x80), 100000, "flag = 129: must be");
    TRUE(event == NULL);
    SAYS(aclrtDestroyEvent(NULL), 100000, "event = nullptr");
    SAYS(aclrtRecordEvent(NULL, stream), 100000, "event = nullptr");
    SAYS(aclrtSynchronizeEvent(NULL), 100000, "event = nullptr");
    SAYS(aclrtQueryEventStatus(NULL, &status), 100000, "event = nullptr");
    SAYS(aclrtStreamWaitEvent(stream, NULL), 100000, "event = nullptr");
    event = new_event();
    other = new_event();
    SAYS(aclrtQueryEventStatus(event, NULL), 100000, "status = nullptr");
    SAYS(aclrtEventElapsedTime(NULL, event, other), 100000, "ms = nullptr");
    SAYS(aclrtEventElapsedTime(&ms, NULL, other), 100000, "startEvent = nullptr");
    SAYS(aclrtEventElapsedTime(&ms, event, NULL), 107006, "startEvent: was never recorded");
    SAYS(aclrtRecordEvent(event, old), 107000, "stream: is none, or has been destroyed");
    SAYS(aclrtRecordEvent(event, event), 107000, "stream: is none");
    SAYS(aclrtRecordEvent(stream, stream), 107000, "event: is none");
    SAYS(aclrtStreamWaitEvent(old, event), 107000, "stream: is none, or has been destroyed");
    SAYS(aclrtStreamWaitEvent(stream, stream), 107000, "event: is none");
    SAYS(aclrtSynchronizeEvent(&ms), 107000, "event: is none");

    /* Never recorded: nobody waits. */
    PENDING(event);
    IS(aclrtSynchronizeEvent(event), 0);
    IS(aclrtStreamWaitEvent(stream, event), 0);
    IS(aclrtSynchronizeStream(stream), 0);
    PENDING(event);
    IS(aclrtRecordEvent(event, stream), 0);
    IS(aclrtSynchronizeEvent(event), 0);
    SAYS(aclrtEventElapsedTime(&ms, event, NULL), 100000, "endEvent = nullptr");
    SAYS(aclrtEventElapsedTime(&ms, event, other), 107006, "endEvent: was never recorded");
    TRUE(ms == 7);

    gone = other;
    IS(aclrtDestroyEvent(other), 0);
    SAYS(aclrtDestroyEvent(gone), 107000, "event: is none, or has been destroyed");
    other = new_event();
    TRUE(other != gone);
    SAYS(aclrtRecordEvent(gone, stream), 107000, "destroyed");
    SAYS(aclrtSynchronizeEvent(gone), 107000, "destroyed");
    SAYS(aclrtQueryEventStatus(gone, &status), 107000, "destroyed");
    SAYS(aclrtStreamWaitEvent(stream, gone), 107000, "destroyed");
    SAYS(aclrtEventElapsedTime(&ms, gone, event), 107000, "startEvent: is none, or has been destroyed");
    SAYS(aclrtEventElapsedTime(&ms, event, gone), 107000, "endEvent: is none, or has been destroyed");
    TRUE(ms == 7 && status == (aclrtEventRecordedStatus)7);
    for (int bit = 0; bit < 64; bit++) { /* every neighbour of a handle */
        memcpy(&garbage, &(uint64_t){(uint64_t)(uintptr_t)event ^ (UINT64_C(1) << bit)}, sizeof garbage);
        if (garbage == other)
            continue;
        IS(aclrtSynchronizeEvent(garbage), 107000);
        IS(aclrtDestroyEvent(garbage), 107000);
    }
    IS(aclrtDestroyEvent(event), 0);
    IS(aclrtDestroyEvent(other), 0);
    IS(aclrtDestroyStream(stream), 0);
}

/* Times are those at which the streams come to the events. */
static void times(int async)
{
    aclrtEvent start = new_event(), end = new_event(), untimed = NULL;
    aclrtStream a = new_stream(), b = new_stream();
    float ms = -1;
    IS(aclrtCreateEventWithFlag(&untimed, ACL_EVENT_SYNC), 0);
    IS(aclrtRecordEvent(untimed, a), 0);
    IS(aclrtRecordEvent(start, a), 0);
    IS(aclrtSynchronizeStream(a), 0);
    SAYS(aclrtEventElapsedTime(&ms, untimed, start), 107006, "startEvent: was made without ACL_EVENT_TIME_LINE");
    pause_for(30);
    IS(aclrtRecordEvent(end, b), 0);
    if (async)
        SAYS(aclrtEventElapsedTime(&ms, start, end), 107006, "endEvent: its stream has not reached it");
    IS(aclrtSynchronizeEvent(end), 0);
    TRUE(ms == -1);
    IS(aclrtEventElapsedTime(&ms, start, end), 0);
    TRUE(ms >= 29 && ms < 60000);
    IS(aclrtEventElapsedTime(&ms, start, start), 0);
    TRUE(ms == 0);
    SAYS(aclrtEventElapsedTime(&ms, end, start), 107007, "endEvent: was reached");
    TRUE(ms == 0);

    /* The moment of the call does not count where work is held back; a busy machine gets some more attempts. */
    ms = 200;
    for (int attempt = 0; async && attempt < 20 && ms >= 50; attempt++) {
        IS(aclrtRecordEvent(start, a), 0);
        pause_for(50);
        IS(aclrtRecordEvent(end, a), 0);
        IS(aclrtSynchronizeStream(a), 0);
        IS(aclrtEventElapsedTime(&ms, start, end), 0);
    }
    TRUE(!async || (ms >= 0 && ms < 50));
    for (int i = 0; i < 100; i++) {
        IS(aclrtRecordEvent(start, NULL), 0);
        IS(aclrtRecordEvent(end, i % 2 ? NULL : b), 0);
        IS(aclrtSynchronizeDevice(), 0);
        if (i % 2) {
            IS(aclrtEventElapsedTime(&ms, start, end), 0);
            TRUE(ms >= 0);
        }
    }
    IS(aclrtDestroyEvent(start), 0);
    IS(aclrtDestroyEvent(end), 0);
    IS(aclrtDestroyEvent(untimed), 0);
    IS(aclrtDestroyStream(a), 0);
    IS(aclrtDestroyStream(b), 0);
}

/* Work is done when its call returns, and so is an event. */
static void at_once(const pool *p)
{
    aclrtEvent event = new_event();
    aclrtStream a = new_stream(), b = new_stream();
    fill(given, OUTPUTS, 4);
    run(p, a);
    IS(aclrtRecordEvent(event, a), 0);
    COMPLETE(event);
    IS(aclrtStreamWaitEvent(b, event), 0);
    IS(aclrtSynchronizeEvent(event), 0);
    TRUE(holds(made, 4));
    IS(aclrtDestroyStream(a), 0);
    COMPLETE(event);
    IS(aclrtStreamWaitEvent(NULL, event), 0);
    IS(aclrtDestroyEvent(event), 0);
    IS(aclrtDestroyStream(b), 0);
}

static void held_back(const pool *p)
{
    static const int one = 1, two = 2, three = 3;
    int x = 0, y = 0, z = 0;
    aclrtEvent event = new_event(), other = new_event();
    aclrtStream a = new_stream(), b = new_stream();

    /* A synchronize of an event does the work before it, and no more. */
    fill(given, OUTPUTS, 4);
    run(p, a);
    IS(aclrtRecordEvent(event, a), 0);
    put(&x, &one, a);
    PENDING(event);
    IS(aclrtSynchronizeStream(b), 0);
    IS(aclrtSynchronizeStream(NULL), 0);
    PENDING(event);
    TRUE(holds(made, 0));
    IS(aclrtSynchronizeEvent(event), 0);
    COMPLETE(event);
    TRUE(holds(made, 4) && x == 0);
    IS(aclrtSynchronizeEvent(event), 0);
    TRUE(x == 0);
    IS(aclrtSynchronizeStream(a), 0);
    TRUE(x == 1);

    /* Two streams without an event are in no order; with one, what waits sees what was done before it. */
    x = 0;
    put(&x, &one, a);
    put(&y, &x, b);
    IS(aclrtSynchronizeStream(b), 0);
    TRUE(x == 0 && y == 0);
    IS(aclrtRecordEvent(event, a), 0);
    put(&x, &two, a);
    put(&z, &x, b);
    IS(aclrtStreamWaitEvent(b, event), 0);
    put(&y, &x, b);
    IS(aclrtSynchronizeStream(b), 0);
    TRUE(z == 0 && y == 1 && x == 1); /* before the wait, after it, and the rest of the other stream */
    IS(aclrtSynchronizeStream(a), 0);
    TRUE(x == 2);

    /* Of the default stream, too; the record at the time of the wait counts, whatever becomes of the event. */
    put(&x, &three, NULL);
    IS(aclrtRecordEvent(event, NULL), 0);
    IS(aclrtStreamWaitEvent(a, event), 0);
    put(&y, &x, a);
    put(&x, &one, NULL);
    IS(aclrtRecordEvent(event, NULL), 0);
    IS(aclrtStreamWaitEvent(b, event), 0);
    put(&z, &x, b);
    IS(aclrtDestroyEvent(event), 0);
    IS(aclrtSynchronizeStream(a), 0);
    TRUE(x == 3 && y == 3 && z == 0);
    IS(aclrtSynchronizeStream(b), 0);
    TRUE(x == 1 && z == 1);

    /* To and fro: each stream waits for the other one's last step. */
    event = new_event();
    x = y = 0;
    for (int i = 0; i < 100; i++) {
        IS(aclrtStreamWaitEvent(a, other), 0);
        put(i % 2 ? &x : &y, i % 2 ? &y : &x, a);
        put(&x, i % 3 ? &two : &one, a);
        IS(aclrtRecordEvent(event, a), 0);
        IS(aclrtStreamWaitEvent(b, event), 0);
        put(&y, &x, b);
        IS(aclrtRecordEvent(other, b), 0);
    }
    TRUE(x == 0 && y == 0);
    IS(aclrtSynchronizeEvent(event), 0);
    COMPLETE(event);
    PENDING(other);
    IS(aclrtSynchronizeStream(b), 0);
    COMPLETE(other);
    TRUE(x == 1 && y == 1);

    /* A stream that waits for itself goes on. */
    IS(aclrtRecordEvent(event, a), 0);
    IS(aclrtStreamWaitEvent(a, event), 0);
    put(&x, &three, a);
    IS(aclrtSynchronizeStream(a), 0);
    TRUE(x == 3);

    /* A stream that is destroyed is done, and leaves its events complete. */
    y = 7;
    put(&x, &one, a);
    IS(aclrtRecordEvent(event, a), 0);
    IS(aclrtStreamWaitEvent(b, event), 0);
    put(&y, &x, b);
    IS(aclrtRecordEvent(other, b), 0);
    IS(aclrtDestroyStream(a), 0);
    COMPLETE(event);
    PENDING(other);
    TRUE(x == 1 && y == 7);
    IS(aclrtDestroyStream(b), 0);
    COMPLETE(other);
    TRUE(y == 1);
    IS(aclrtDestroyEvent(event), 0);
    IS(aclrtDestroyEvent(other), 0);
}

/* Each stream waits for the one before it: the last one's synchronize does the work of all. */
static void chain(int length)
{
    int *values = calloc((size_t)length + 1, sizeof *values);
    aclrtStream *streams = malloc((size_t)length * sizeof *streams);
    aclrtEvent event = new_event();
    values[0] = 5;
    for (int i = 0; i < length; i++) {
        streams[i] = new_stream();
        IS(aclrtStreamWaitEvent(streams[i], event), 0);
        put(&values[i + 1], &values[i], streams[i]);
        IS(aclrtRecordEvent(event, streams[i]), 0);
    }
    TRUE(values[1] == 0);
    IS(aclrtSynchronizeStream(streams[length - 1]), 0);
    TRUE(values[1] == 5 && values[length] == 5);
    COMPLETE(event);
    for (int i = 0; i < length; i++)
        IS(aclrtDestroyStream(streams[i]), 0);
    IS(aclrtDestroyEvent(event), 0);
    free(streams);
    free(values);
}

/* What was held back until the environment is read again is done as soon as somebody needs it. */
static void not_any_more(void)
{
    static const int one = 1;
    int x = 0, y = 0;
    aclrtEvent event = new_event(), other = new_event();
    aclrtStream a = new_stream(), b = new_stream();
    IS(aclFinalize(), 0);
    put(&x, &one, a);
    IS(aclrtRecordEvent(event, a), 0);
    IS(setenv("ACLNN_BW_ASYNC", "0", 1), 0);
    IS(aclInit(NULL), 0);
    TRUE(x == 0);
    IS(aclrtStreamWaitEvent(b, event), 0);
    put(&y, &x, b);
    COMPLETE(event);
    TRUE(x == 1 && y == 1);
    IS(aclFinalize(), 0);
    IS(setenv("ACLNN_BW_ASYNC", "1", 1), 0);
    IS(aclInit(NULL), 0);
    x = 0;
    put(&x, &one, a);
    IS(aclFinalize(), 0);
    x = 0;
    put(&x, &one, a);
    IS(setenv("ACLNN_BW_ASYNC", "0", 1), 0);
    IS(aclInit(NULL), 0);
    TRUE(x == 0);
    IS(aclrtRecordEvent(other, a), 0);
    COMPLETE(other);
    TRUE(x == 1);
    IS(aclrtDestroyEvent(event), 0);
    IS(aclrtDestroyEvent(other), 0);
    IS(aclrtDestroyStream(a), 0);
    IS(aclrtDestroyStream(b), 0);
}

int main(int argc, char **argv)
{
    const char *value = getenv("ACLNN_BW_ASYNC");
    const int async = value && strcmp(value, "0") != 0;
    pool p = new_pool(given, made);
    IS(aclInit(NULL), 0);
    IS(aclrtSetDevice(0), 0);
    refused();
    times(async);
    if (async) {
        held_back(&p);
        chain(argc > 1 ? atoi(argv[1]) : 1000);
        not_any_more();
    } else {
        at_once(&p);
    }
    delete_pool(&p);
    IS(aclrtResetDevice(0), 0);
    IS(aclFinalize(), 0);
    return wrong != 0;
}
