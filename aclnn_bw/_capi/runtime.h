/* What the runtime gives the operators: settings, one line of log for each call, and streams that hold work back. */
#ifndef ACLNN_BW_RUNTIME_H
#define ACLNN_BW_RUNTIME_H

#include <stdint.h>

typedef struct {
    int reading;              /* how often they were read: plans of another reading are not used again */
    int product, mask_layout; /* as the core numbers them */
    int threads, cores;
    int async; /* work waits for a synchronize */
    int log;
    const void *kernels;
    const char *problem; /* why no call can run: a name in the environment that does not exist, or the CPU; or null */
    int problem_status;
} aclnn_bw_settings;

/* Read from the environment at the first call of all, and again by aclInit. */
const aclnn_bw_settings *aclnn_bw_current_settings(void);
/* Whether this process was forked from one that had used threads: OpenMP's pool is not here. */
int aclnn_bw_is_forked(void);

/* Prints the line of a call if that is wanted; returns the status. `detail` is null or what phase 1 has given. */
int aclnn_bw_logged(const char *call, int status, const uint64_t *workspace_size);

/* Work on a stream, which stays in its queue until it is done. */
typedef struct aclnn_bw_job {
    struct aclnn_bw_job *next;
    int (*work)(struct aclnn_bw_job *job); /* returns a status whose message it has left */
    void (*end)(struct aclnn_bw_job *job); /* gives back all that it holds */
    int (*uses)(const struct aclnn_bw_job *job, const char *begin, int64_t size); /* whether it needs this memory */
} aclnn_bw_job;

/* 0, or a refusal of something that is no stream any more. */
int aclnn_bw_check_stream(void *stream);
/* Append a job to a stream that was checked; nonzero where it was destroyed since. */
int aclnn_bw_submit(void *stream, aclnn_bw_job *job);

/* range(run, 0), ..., range(run, ranges - 1), on a team of threads. */
void aclnn_bw_parallel(void (*range)(void *run, int64_t index), void *run, int64_t ranges, int threads);

/* Of calls.pyx: loads the kernels of an instruction set, and gives the table. */
const void *aclnn_bw_load_table(int isa);

#endif
