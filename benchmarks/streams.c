/* Copies by several threads, with ordinary stores and with stores that pass the caches by. `benchmarks/streams.py`
 * compiles it on use. Not memcpy: it takes either kind of stores as it sees fit.
 */
#include <stddef.h>
#ifdef __x86_64__
#include <immintrin.h>
#endif

enum { LINE = 64 };

/* Of `lines` cache lines, those of one thread of several. */
static void share(ptrdiff_t lines, int thread, int threads, ptrdiff_t *begin, ptrdiff_t *end)
{
    *begin = lines * thread / threads;
    *end = lines * (thread + 1) / threads;
}

typedef unsigned char Line __attribute__((vector_size(LINE), aligned(LINE)));

void copy_lines(Line *restrict target, const Line *restrict source, ptrdiff_t lines, int threads)
{
#pragma omp parallel for num_threads(threads) schedule(static, 1)
    for (int thread = 0; thread < threads; thread++) {
        ptrdiff_t i, end;
        for (share(lines, thread, threads, &i, &end); i < end; i++)
            target[i] = source[i];
    }
}

void copy_lines_past_caches(Line *restrict target, const Line *restrict source, ptrdiff_t lines, int threads)
{
#ifdef __x86_64__
#pragma omp parallel for num_threads(threads) schedule(static, 1)
    for (int thread = 0; thread < threads; thread++) {
        ptrdiff_t i, end;
        for (share(lines, thread, threads, &i, &end); i < end; i++)
            for (int part = 0; part < LINE / 16; part++)
                _mm_stream_si128((__m128i *)&target[i] + part, _mm_load_si128((const __m128i *)&source[i] + part));
        _mm_sfence();
    }
#else
    copy_lines(target, source, lines, threads);
#endif
}
