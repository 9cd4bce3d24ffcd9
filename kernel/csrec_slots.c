// SPDX-License-Identifier: GPL-2.0-only
/*
 * Keys: which slot of the device's region or fence table holds whose object.
 */
#include <linux/nospec.h>
#include <linux/slab.h>

#include "csrec.h"

int csrec_slots_init(struct csrec_slots *slots, unsigned int count)
{
	spin_lock_init(&slots->lock);
	init_waitqueue_head(&slots->idle);
	slots->count = count;
	slots->gen = kvcalloc(count, sizeof(*slots->gen), GFP_KERNEL);
	slots->obj = kvcalloc(count, sizeof(*slots->obj), GFP_KERNEL);
	if (slots->gen && slots->obj)
		return 0;
	csrec_slots_free(slots);
	return -ENOMEM;
}

void csrec_slots_free(struct csrec_slots *slots)
{
	kvfree(slots->obj);
	kvfree(slots->gen);
	slots->obj = NULL;
	slots->gen = NULL;
	slots->count = 0;
}

/*
 * Takes a slot, gives @obj its key and puts it on @list (NULL: it is the driver's own). It cannot
 * be found by its key until csrec_slot_publish().
 */
int csrec_slot_add(struct csrec_slots *slots, struct csrec_obj *obj, struct list_head *list)
{
	unsigned int i, n;

	spin_lock(&slots->lock);
	if (list && slots->used + slots->reserve >= slots->count) {
		spin_unlock(&slots->lock);
		return -ENOSPC;
	}
	for (n = 0; n < slots->count; n++) {
		i = (slots->next + n) % slots->count;
		if (!slots->obj[i])
			break;
	}
	if (n == slots->count) {
		spin_unlock(&slots->lock);
		return -ENOSPC;
	}
	slots->next = i + 1;
	slots->used++;
	/* the driver's own come out of what is reserved for it, while there is */
	obj->reserved = !list && slots->reserve;
	slots->reserve -= obj->reserved;
	slots->obj[i] = obj;
	/* generations run 1..65535 */
	if (++slots->gen[i] == 0)
		slots->gen[i] = 1;
	obj->key = i << CSREC_KEY_INDEX_SHIFT | (u32)slots->gen[i] << CSREC_KEY_GEN_SHIFT;
	obj->closing = true;
	obj->gone = false;
	obj->users = 0;
	if (list)
		list_add_tail(&obj->node, list);
	else
		INIT_LIST_HEAD(&obj->node);
	spin_unlock(&slots->lock);
	return 0;
}

void csrec_slot_publish(struct csrec_slots *slots, struct csrec_obj *obj)
{
	spin_lock(&slots->lock);
	obj->closing = false;
	spin_unlock(&slots->lock);
}

/*
 * Takes an object off the table: its slot is free, and its context has nothing to do with it any
 * more. True if nobody holds it: the caller frees it. If not, who holds it last does, by
 * obj->release().
 */
bool csrec_slot_del(struct csrec_slots *slots, struct csrec_obj *obj)
{
	bool unused;

	spin_lock(&slots->lock);
	slots->obj[obj->key & 0xffff] = NULL;
	slots->used--;
	slots->reserve += obj->reserved;
	list_del(&obj->node);
	obj->ctx = NULL;
	obj->gone = true;
	unused = !obj->users;
	spin_unlock(&slots->lock);
	return unused;
}

static struct csrec_obj *csrec_slot_find(struct csrec_slots *slots, struct csrec_ctx *ctx,
					 u32 key)
{
	u32 i = key & 0xffff;
	struct csrec_obj *obj;

	lockdep_assert_held(&slots->lock);
	if (i >= slots->count)
		return NULL;
	obj = slots->obj[array_index_nospec(i, slots->count)];
	if (!obj || obj->key != key || obj->ctx != ctx || obj->closing)
		return NULL;
	return obj;
}

/*
 * Holds an object of @ctx so that it is not freed; NULL if there is none. Its key may be revoked
 * and its context close meanwhile.
 */
struct csrec_obj *csrec_slot_get(struct csrec_slots *slots, struct csrec_ctx *ctx, u32 key)
{
	struct csrec_obj *obj;

	spin_lock(&slots->lock);
	obj = csrec_slot_find(slots, ctx, key);
	if (obj)
		obj->users++;
	spin_unlock(&slots->lock);
	return obj;
}

/* May sleep: the last one frees what was taken off the table. */
void csrec_slot_put(struct csrec_slots *slots, struct csrec_obj *obj)
{
	bool last;

	might_sleep();
	spin_lock(&slots->lock);
	last = --obj->users == 0 && obj->gone;
	/* the waitqueue is the table's: @obj may be freed once the lock is */
	if (!obj->users && obj->closing && !last)
		wake_up_all(&slots->idle);
	spin_unlock(&slots->lock);
	if (last)
		obj->release(obj);
}

/* The one who gets it destroys it; nobody finds it any more. */
struct csrec_obj *csrec_slot_close(struct csrec_slots *slots, struct csrec_ctx *ctx, u32 key)
{
	struct csrec_obj *obj;

	spin_lock(&slots->lock);
	obj = csrec_slot_find(slots, ctx, key);
	if (obj)
		obj->closing = true;
	spin_unlock(&slots->lock);
	return obj;
}

/* The same for any object of a list; those that are closing already are left out. */
struct csrec_obj *csrec_slot_close_first(struct csrec_slots *slots, struct list_head *list)
{
	struct csrec_obj *obj, *found = NULL;

	spin_lock(&slots->lock);
	list_for_each_entry(obj, list, node) {
		if (!obj->closing) {
			obj->closing = true;
			found = obj;
			break;
		}
	}
	spin_unlock(&slots->lock);
	return found;
}

static bool csrec_slot_unused(struct csrec_slots *slots, struct csrec_obj *obj)
{
	bool unused;

	spin_lock(&slots->lock);
	unused = !obj->users;
	spin_unlock(&slots->lock);
	return unused;
}

void csrec_slot_wait_idle(struct csrec_slots *slots, struct csrec_obj *obj)
{
	wait_event(slots->idle, csrec_slot_unused(slots, obj));
}

/* Calls @fn for every object of the table, under the lock. */
void csrec_slots_for_each(struct csrec_dev *csd, struct csrec_slots *slots,
			  void (*fn)(struct csrec_dev *csd, const struct csrec_obj *obj,
				     void *data),
			  void *data)
{
	unsigned int i;

	spin_lock(&slots->lock);
	for (i = 0; i < slots->count; i++)
		if (slots->obj[i])
			fn(csd, slots->obj[i], data);
	spin_unlock(&slots->lock);
}
