/* What gcc's OpenMP code asks of libgomp, by plain POSIX threads: a team is made for each region and joined after it.
 *
 * libgomp synchronizes by futexes, of which ThreadSanitizer sees nothing: every region would be reported as a race.
 * What stands here it sees. Built with -fsanitize=thread and preloaded, it takes libgomp's place (tests/sanitizers/run).
 */
#include <pthread.h>
#include <stdlib.h>

#define MOST 64

typedef struct {
    void (*body)(void *);
    void *data;
    int number;
    int size;
    pthread_barrier_t *barrier;
} member;

static __thread member self = {0, 0, 0, 1, 0};

static void *run(void *argument)
{
    member outer = self;
    self = *(member *)argument;
    self.body(self.data);
    self = outer;
    return NULL;
}

void GOMP_parallel(void (*body)(void *), void *data, unsigned size, unsigned flags)
{
    pthread_t threads[MOST];
    member members[MOST];
    pthread_barrier_t barrier;
    (void)flags;
    size = size == 0 || size > MOST ? 1 : size;
    pthread_barrier_init(&barrier, NULL, size);
    for (unsigned i = 0; i < size; i++) {
        members[i] = (member){body, data, (int)i, (int)size, &barrier};
        if (i > 0 && pthread_create(&threads[i], NULL, run, &members[i]) != 0)
            abort();
    }
    run(&members[0]);
    for (unsigned i = 1; i < size; i++)
        pthread_join(threads[i], NULL);
    pthread_barrier_destroy(&barrier);
}

void GOMP_barrier(void)
{
    if (self.barrier)
        pthread_barrier_wait(self.barrier);
}

int omp_get_thread_num(void) { return self.number; }
int omp_get_num_threads(void) { return self.size; }
int omp_get_max_threads(void) { return 2; }
