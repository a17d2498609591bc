/* Slots in chunks that stay where they are, a list of free ones, and one atomic word in each. */
#include "handles.h"

#include <stdlib.h>

/* A handle: generation << 24 | index << 3 | kind << 1 | 1, which is odd and so no object's address. */
_Static_assert(sizeof(void *) == 8, "handles are numbers of 64 bits");

enum { CHUNK = 256, CHUNKS = 4096, INDEX_SHIFT = 3, GENERATION_SHIFT = 24 };
_Static_assert(CHUNK * CHUNKS <= 1 << (GENERATION_SHIFT - INDEX_SHIFT), "an index lies below the generation");
#define VALID UINT64_C(1)
#define REFERENCE UINT64_C(2)
#define REFERENCES ((UINT64_C(1) << GENERATION_SHIFT) - REFERENCE)
#define NOBODY UINT32_MAX
/* Generations begin here, so that no small number and no address is a handle by chance. */
#define FIRST_GENERATION UINT64_C(0xacb0000000)

struct aclnn_bw_slots {
    uint64_t kind;
    pthread_mutex_t lock;    /* of what follows */
    aclnn_bw_slot *chunks[CHUNKS];
    uint32_t count, free;
};

aclnn_bw_slots aclnn_bw_executors = {0, PTHREAD_MUTEX_INITIALIZER, {0}, 0, NOBODY};
aclnn_bw_slots aclnn_bw_streams = {1, PTHREAD_MUTEX_INITIALIZER, {0}, 0, NOBODY};
aclnn_bw_slots aclnn_bw_events = {2, PTHREAD_MUTEX_INITIALIZER, {0}, 0, NOBODY};
aclnn_bw_slots aclnn_bw_contexts = {3, PTHREAD_MUTEX_INITIALIZER, {0}, 0, NOBODY};
static aclnn_bw_slots *const tables[] = {&aclnn_bw_executors, &aclnn_bw_streams, &aclnn_bw_events, &aclnn_bw_contexts};
enum { TABLES = sizeof tables / sizeof *tables };

uint32_t aclnn_bw_slot_count(aclnn_bw_slots *slots) { return __atomic_load_n(&slots->count, __ATOMIC_ACQUIRE); }

static aclnn_bw_slot *slot_at(aclnn_bw_slots *slots, uint64_t index)
{
    /* A chunk is there before the count that includes it. */
    return index < aclnn_bw_slot_count(slots) ? &slots->chunks[index / CHUNK][index % CHUNK] : NULL;
}

static aclnn_bw_slot *new_slot(aclnn_bw_slots *slots)
{
    uint32_t index = slots->count;
    aclnn_bw_slot *slot;
    if (index == CHUNK * CHUNKS)
        return NULL;
    if (index % CHUNK == 0) {
        slots->chunks[index / CHUNK] = calloc(CHUNK, sizeof *slot);
        if (!slots->chunks[index / CHUNK])
            return NULL;
    }
    slot = &slots->chunks[index / CHUNK][index % CHUNK];
    slot->index = index;
    slot->word = FIRST_GENERATION << GENERATION_SHIFT;
    pthread_mutex_init(&slot->lock, NULL);
    __atomic_store_n(&slots->count, index + 1, __ATOMIC_RELEASE);
    return slot;
}

aclnn_bw_slot *aclnn_bw_take_slot(aclnn_bw_slots *slots)
{
    aclnn_bw_slot *slot;
    pthread_mutex_lock(&slots->lock);
    if (slots->free != NOBODY) {
        slot = slot_at(slots, slots->free);
        slots->free = slot->next;
    } else {
        slot = new_slot(slots);
    }
    pthread_mutex_unlock(&slots->lock);
    if (slot && slots == &aclnn_bw_executors && !slot->room) {
        slot->room = calloc(1, ACLNN_BW_ROOM);
        if (!slot->room) {
            aclnn_bw_give_slot(slots, slot);
            return NULL;
        }
    }
    return slot;
}

/* Atomic though the slot is the caller's own: a late user of an old handle may still try to refer to it, in vain. */
static uint64_t generation_of(const aclnn_bw_slot *slot)
{
    return __atomic_load_n(&slot->word, __ATOMIC_RELAXED) >> GENERATION_SHIFT;
}

void aclnn_bw_give_slot(aclnn_bw_slots *slots, aclnn_bw_slot *slot)
{
    uint64_t generation = generation_of(slot) + 1;
    slot->object = NULL;
    if (generation >> (64 - GENERATION_SHIFT))
        return; /* every handle of this slot was used once: it serves no more */
    __atomic_store_n(&slot->word, generation << GENERATION_SHIFT, __ATOMIC_RELEASE);
    pthread_mutex_lock(&slots->lock);
    slot->next = slots->free;
    slots->free = slot->index;
    pthread_mutex_unlock(&slots->lock);
}

void *aclnn_bw_publish(aclnn_bw_slots *slots, aclnn_bw_slot *slot)
{
    uint64_t generation = generation_of(slot);
    __atomic_store_n(&slot->word, generation << GENERATION_SHIFT | VALID, __ATOMIC_RELEASE);
    return (void *)(uintptr_t)(generation << GENERATION_SHIFT | (uint64_t)slot->index << INDEX_SHIFT
                               | slots->kind << 1 | 1);
}

static aclnn_bw_slot *refer(aclnn_bw_slot *slot, int any, uint64_t generation)
{
    uint64_t word = __atomic_load_n(&slot->word, __ATOMIC_ACQUIRE);
    while (word & VALID && (any || word >> GENERATION_SHIFT == generation))
        if (__atomic_compare_exchange_n(&slot->word, &word, word + REFERENCE, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
            return slot;
    return NULL;
}

aclnn_bw_slot *aclnn_bw_acquire(aclnn_bw_slots *slots, const void *handle)
{
    uint64_t number = (uint64_t)(uintptr_t)handle;
    uint64_t index = (number & ((UINT64_C(1) << GENERATION_SHIFT) - 1)) >> INDEX_SHIFT;
    aclnn_bw_slot *slot;
    if ((number & ((1 << INDEX_SHIFT) - 1)) != (slots->kind << 1 | 1))
        return NULL;
    slot = slot_at(slots, index);
    return slot ? refer(slot, 0, number >> GENERATION_SHIFT) : NULL;
}

aclnn_bw_slot *aclnn_bw_acquire_index(aclnn_bw_slots *slots, uint32_t index)
{
    aclnn_bw_slot *slot = slot_at(slots, index);
    return slot ? refer(slot, 1, 0) : NULL;
}

void aclnn_bw_retain(aclnn_bw_slot *slot) { __atomic_fetch_add(&slot->word, REFERENCE, __ATOMIC_RELAXED); }

int aclnn_bw_invalidate(aclnn_bw_slot *slot)
{
    return (__atomic_fetch_and(&slot->word, ~VALID, __ATOMIC_ACQ_REL) & VALID) != 0;
}

int aclnn_bw_release(aclnn_bw_slot *slot)
{
    uint64_t word = __atomic_sub_fetch(&slot->word, REFERENCE, __ATOMIC_ACQ_REL);
    return !(word & VALID) && !(word & REFERENCES);
}

void aclnn_bw_lock_tables(void)
{
    for (int i = 0; i < TABLES; i++)
        pthread_mutex_lock(&tables[i]->lock);
}

void aclnn_bw_unlock_tables(void)
{
    for (int i = TABLES - 1; i >= 0; i--)
        pthread_mutex_unlock(&tables[i]->lock);
}

void *aclnn_bw_object_at(aclnn_bw_slots *slots, uint32_t index) { return slot_at(slots, index)->object; }

void aclnn_bw_renew_locks(void)
{
    for (uint32_t i = 0; i < aclnn_bw_executors.count; i++)
        pthread_mutex_init(&slot_at(&aclnn_bw_executors, i)->lock, NULL);
}
