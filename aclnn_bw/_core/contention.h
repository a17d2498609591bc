/* Whether the cores are free for a team of threads.
 *
 * A team waits for its last thread, and where other processes or threads want the cores too, the system may not run
 * that one for milliseconds. So a team that has taken longer than one thread would have is followed by a rest, in which
 * runs stay on the thread that calls; the bytes are the same. Beside a neighbour of nice 0 the 99th percentile of an
 * average pool of 1 MiB is 136 us with it, 4,045 us without (python -m benchmarks.busy). */
#ifndef ACLNN_BW_CONTENTION_H
#define ACLNN_BW_CONTENTION_H
#include <stdint.h>
#include <time.h>

enum {
    ACLNN_BW_SLACK = 300000,     /* nanoseconds that a team may lose: its first one has its threads to start */
    ACLNN_BW_RESTS = 16,         /* a rest is so many times what was lost: few of the calls meet a late thread, then */
    ACLNN_BW_LONGEST = 1000000000
};

/* ThreadSanitizer makes teams slow, and is there to look at them. */
#ifdef __SANITIZE_THREAD__
#define ACLNN_BW_WATCHED 1
#else
#define ACLNN_BW_WATCHED 0
#endif

/* In nanoseconds of the clock below; zeros to begin with. Threads read and write it without a lock: one of several
 * judgements at a time holds, whichever it is. */
typedef struct {
    int64_t until; /* the rest's end */
    int64_t rest;  /* its length */
} aclnn_bw_contention;

static inline int64_t aclnn_bw_clock(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static inline int aclnn_bw_is_contended(const aclnn_bw_contention *cores, int64_t now)
{
    return !ACLNN_BW_WATCHED && now < __atomic_load_n(&cores->until, __ATOMIC_RELAXED);
}

/* Of a team that began at `begun` and ended now. The thread that called it, one of `threads`, whose shares are alike,
 * had worked off its own at `left`. */
static inline void aclnn_bw_judge_team(aclnn_bw_contention *cores, int64_t threads, int64_t begun, int64_t left,
                                       int64_t now)
{
    int64_t until = __atomic_load_n(&cores->until, __ATOMIC_RELAXED);
    int64_t rest = __atomic_load_n(&cores->rest, __ATOMIC_RELAXED);
    int64_t lost = now - begun - threads * (left - begun);
    if (lost < ACLNN_BW_SLACK || now < until) /* or one that began before a rest */
        return;
    /* Late again, soon after a rest: the cores are still wanted. */
    rest = now - until < rest ? 2 * rest : ACLNN_BW_RESTS * lost;
    rest = rest < ACLNN_BW_LONGEST ? rest : ACLNN_BW_LONGEST;
    __atomic_store_n(&cores->rest, rest, __ATOMIC_RELAXED);
    __atomic_store_n(&cores->until, now + rest, __ATOMIC_RELAXED);
}
#endif
