/* Counts what the process allocates inside a window, to show that a run of a planned operator allocates nothing.
 *
 * Preloaded into a process, it stands before the C library's allocators and forwards to them. Only calls between
 * counter_start and counter_stop count, from whichever thread they come. counter_fail opens a window too, in which those
 * of at least some size fail, but for the first few.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *block, size_t size);
void *__libc_memalign(size_t alignment, size_t size);

static int open_window;
static long calls;
static size_t least = SIZE_MAX; /* that fails */
static long granted;            /* before it does */

/* Count an allocation; whether there is memory for it. */
static int note(size_t size)
{
    if (!__atomic_load_n(&open_window, __ATOMIC_ACQUIRE))
        return 1;
    __atomic_add_fetch(&calls, 1, __ATOMIC_ACQ_REL);
    if (size < least || granted-- > 0)
        return 1;
    errno = ENOMEM;
    return 0;
}

void counter_start(void)
{
    __atomic_store_n(&calls, 0, __ATOMIC_RELEASE);
    __atomic_store_n(&open_window, 1, __ATOMIC_RELEASE);
}

void counter_fail(size_t size, long first)
{
    least = size;
    granted = first;
    counter_start();
}

long counter_stop(void)
{
    least = SIZE_MAX;
    __atomic_store_n(&open_window, 0, __ATOMIC_RELEASE);
    return __atomic_load_n(&calls, __ATOMIC_ACQUIRE);
}

void *malloc(size_t size)
{
    return note(size) ? __libc_malloc(size) : NULL;
}

void *calloc(size_t count, size_t size)
{
    return note(count * size) ? __libc_calloc(count, size) : NULL;
}

void *realloc(void *block, size_t size)
{
    return note(size) ? __libc_realloc(block, size) : NULL;
}

void *memalign(size_t alignment, size_t size)
{
    return note(size) ? __libc_memalign(alignment, size) : NULL;
}

void *aligned_alloc(size_t alignment, size_t size)
{
    return note(size) ? __libc_memalign(alignment, size) : NULL;
}

int posix_memalign(void **block, size_t alignment, size_t size)
{
    void *fresh;
    fresh = note(size) ? __libc_memalign(alignment, size) : NULL;
    if (fresh == NULL)
        return ENOMEM;
    *block = fresh;
    return 0;
}

void *mmap(void *address, size_t length, int protection, int flags, int file, off_t offset)
{
    note(0);
    return (void *)syscall(SYS_mmap, address, length, protection, flags, file, offset);
}
