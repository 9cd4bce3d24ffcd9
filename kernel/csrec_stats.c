// SPDX-License-Identifier: GPL-2.0-only
/*
 * The device's counters, as totals since probe. The registers begin anew with every reset of
 * the device; what readers see never does.
 */
#include <linux/slab.h>

#include "csrec.h"

static void csrec_stats_take(struct csrec_dev *csd)
{
	struct csrec_counters *c = &csd->counters;
	u64 now[CSREC_NR_COUNTERS];
	bool anew = false;
	unsigned int i;

	lockdep_assert_held(&c->lock);
	for (i = 0; i < CSREC_NR_COUNTERS; i++) {
		now[i] = csrec_read(csd, CSREC_REG_CNT_CYCLES + 8 * i);
		/* they only grow, and all begin anew at once */
		anew |= now[i] < c->last[i];
	}
	/* off the bus: what was read means nothing */
	if ((u32)csrec_read(csd, CSREC_REG_ID) != CSREC_ID_MAGIC)
		return;
	for (i = 0; i < CSREC_NR_COUNTERS; i++) {
		if (c->begun)
			c->total[i] += now[i] - (anew ? 0 : c->last[i]);
		c->last[i] = now[i];
	}
	c->begun = true;
}

/**
 * csrec_stats_look - take over what the device has counted since the last look
 * @csd: device
 *
 * Call before whatever may reset the device, and after it. Needs the reset_lock, or nobody
 * else to have the device.
 */
void csrec_stats_look(struct csrec_dev *csd)
{
	/* after an error on the way to it, until that is mended */
	if (pci_channel_offline(csd->pdev))
		return;
	mutex_lock(&csd->counters.lock);
	csrec_stats_take(csd);
	mutex_unlock(&csd->counters.lock);
}

/**
 * csrec_stats_counter - total of one device counter
 * @csd: device
 * @i: which, in register order
 *
 * As csrec_stats_counters(), but reads no more than it must. Needs the reset_lock for reading.
 */
u64 csrec_stats_counter(struct csrec_dev *csd, unsigned int i)
{
	enum csrec_state state = READ_ONCE(csd->state);
	struct csrec_counters *c = &csd->counters;
	u64 now, total;

	lockdep_assert_held(&csd->reset_lock);
	if ((state != CSREC_LIVE && state != CSREC_FAILED) || pci_channel_offline(csd->pdev)) {
		mutex_lock(&c->lock);
		total = c->total[i];
		mutex_unlock(&c->lock);
		return total;
	}
	mutex_lock(&c->lock);
	now = csrec_read(csd, CSREC_REG_CNT_CYCLES + 8 * i);
	total = c->total[i] + now - c->last[i];
	/* begun anew, or off the bus: takes a look at all of them */
	if (now < c->last[i] || now == ~0ULL) {
		csrec_stats_take(csd);
		total = c->total[i];
	}
	mutex_unlock(&c->lock);
	return total;
}

/**
 * csrec_stats_counters - totals of all device counters
 * @csd: device
 * @stats: gets totals since probe
 *
 * A device that is being reset, is off the bus or has been removed has what it had when it
 * was seen last. Needs the reset_lock for reading.
 */
void csrec_stats_counters(struct csrec_dev *csd, struct csrec_stats *stats)
{
	const u64 *total = csd->counters.total;
	enum csrec_state state = READ_ONCE(csd->state);

	lockdep_assert_held(&csd->reset_lock);
	if (state == CSREC_LIVE || state == CSREC_FAILED)
		csrec_stats_look(csd);
	mutex_lock(&csd->counters.lock);
	/* a counter that a later header has finds no room there, but at the end of the structure */
	static_assert(ARRAY_SIZE(stats->counters) + 1 == CSREC_NR_COUNTERS);
	memcpy(stats->counters, total, sizeof(stats->counters));
	stats->tt_saved = total[(CSREC_REG_CNT_TT_SAVED - CSREC_REG_CNT_CYCLES) / 8];
	mutex_unlock(&csd->counters.lock);
}
