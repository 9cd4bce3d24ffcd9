// SPDX-License-Identifier: GPL-2.0-only
/*
 * The device's counters, as totals since probe. The registers begin anew with every reset of
 * the device; what readers see never does.
 */
#include <linux/slab.h>

#include "csrec.h"

/**
 * csrec_stats_look - take over what the device has counted since the last look
 * @csd: device
 *
 * Call before whatever may reset the device, and after it. Needs the reset_lock, or nobody
 * else to have the device.
 */
void csrec_stats_look(struct csrec_dev *csd)
{
	struct csrec_counters *c = &csd->counters;
	u64 now[CSREC_NR_COUNTERS];
	bool anew = false;
	unsigned int i;

	/* after an error on the way to it, until that is mended */
	if (pci_channel_offline(csd->pdev))
		return;
	mutex_lock(&c->lock);
	for (i = 0; i < CSREC_NR_COUNTERS; i++) {
		now[i] = csrec_read(csd, CSREC_REG_CNT_CYCLES + 8 * i);
		/* they only grow, and all begin anew at once */
		anew |= now[i] < c->last[i];
	}
	/* off the bus: what was read means nothing */
	if ((u32)csrec_read(csd, CSREC_REG_ID) != CSREC_ID_MAGIC)
		goto out;
	for (i = 0; i < CSREC_NR_COUNTERS; i++) {
		if (c->begun)
			c->total[i] += now[i] - (anew ? 0 : c->last[i]);
		c->last[i] = now[i];
	}
	c->begun = true;
out:
	mutex_unlock(&c->lock);
}

/**
 * csrec_stats_counters - totals of all device counters
 * @csd: device
 * @counters: CSREC_NR_COUNTERS totals since probe, in register order
 *
 * A device that is being reset, is off the bus or has been removed has what it had when it
 * was seen last. Needs the reset_lock for reading.
 */
void csrec_stats_counters(struct csrec_dev *csd, u64 *counters)
{
	enum csrec_state state = READ_ONCE(csd->state);

	lockdep_assert_held(&csd->reset_lock);
	if (state == CSREC_LIVE || state == CSREC_FAILED)
		csrec_stats_look(csd);
	mutex_lock(&csd->counters.lock);
	memcpy(counters, csd->counters.total, sizeof(csd->counters.total));
	mutex_unlock(&csd->counters.lock);
}
