/* Handles of executors, streams, events and contexts: numbers, not pointers, and none is given out twice.
 *
 * A handle names a slot and the generation of its use. Whether it is still valid is read from the slot, which is never
 * freed while the program runs, so a handle that is used too late is told apart without touching freed memory.
 */
#ifndef ACLNN_BW_HANDLES_H
#define ACLNN_BW_HANDLES_H

#include <pthread.h>
#include <stdint.h>

#include "types.h"

enum { ACLNN_BW_ROOM = 2752 };

typedef struct {
    uint64_t word; /* atomic: generation << 24 | references << 1 | whether the handle is valid */
    uint32_t index;
    uint32_t next; /* in the list of free slots */
    void *object;
    pthread_mutex_t lock;                     /* of the object, for whoever holds a reference */
    const void *given[ACLNN_BW_MAX_TENSORS]; /* the tensors of phase 1, to be compared only */
    void *room;                               /* ACLNN_BW_ROOM bytes that stay with an executor's slot */
} aclnn_bw_slot;

/* One table for each kind of handle. */
typedef struct aclnn_bw_slots aclnn_bw_slots;
extern aclnn_bw_slots aclnn_bw_executors, aclnn_bw_streams, aclnn_bw_events, aclnn_bw_contexts;

/* A slot that nobody else has; null without memory. Give it a handle, or give it back. */
aclnn_bw_slot *aclnn_bw_take_slot(aclnn_bw_slots *slots);
void aclnn_bw_give_slot(aclnn_bw_slots *slots, aclnn_bw_slot *slot);
/* The handle of a slot whose object is ready. */
void *aclnn_bw_publish(aclnn_bw_slots *slots, aclnn_bw_slot *slot);
/* The slot of a valid handle, with a reference that keeps its object; null for any other pointer. */
aclnn_bw_slot *aclnn_bw_acquire(aclnn_bw_slots *slots, const void *handle);
/* One more reference; the caller has one. */
void aclnn_bw_retain(aclnn_bw_slot *slot);
/* Makes the handle invalid; the caller has a reference. True for the one call that did it. */
int aclnn_bw_invalidate(aclnn_bw_slot *slot);
/* Ends a reference. True for the last one to an invalid handle: then the object is to be deleted and the slot given. */
int aclnn_bw_release(aclnn_bw_slot *slot);
/* Slot `index` if its handle is valid, with a reference; for walking through all of them. */
aclnn_bw_slot *aclnn_bw_acquire_index(aclnn_bw_slots *slots, uint32_t index);
uint32_t aclnn_bw_slot_count(aclnn_bw_slots *slots);

/* Around a fork: no other thread may be in the middle of a table; in the child nobody holds the lock of an object. */
void aclnn_bw_lock_tables(void);
void aclnn_bw_unlock_tables(void);
void aclnn_bw_renew_locks(void);
void *aclnn_bw_object_at(aclnn_bw_slots *slots, uint32_t index); /* whether its handle is valid or not */

#endif
