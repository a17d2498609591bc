/* The split over threads. Alone in a file, for it is the only one that is compiled with -fopenmp. */
#include "runtime.h"

void aclnn_bw_parallel(void (*range)(void *run, int64_t index), void *run, int64_t ranges, int threads)
{
#ifdef _OPENMP
#pragma omp parallel for schedule(static, 1) num_threads(threads)
#else
    (void)threads;
#endif
    for (int64_t i = 0; i < ranges; i++)
        range(run, i);
}
