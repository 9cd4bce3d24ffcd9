/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Timing of device DRAM: one 64-bit DDR4-2400 channel behind a 512-bit port at 300 MHz, the width
 * and rate of a SmartSSD's. A beat of 64 bytes is one burst of eight, four memory clocks, one
 * device cycle. What is stored is not its business.
 *
 * Beats are served and answered in the order in which they are told; the controller opens rows
 * for all that it was told ahead of their turn. Rows stay open until another is needed or all
 * banks are refreshed. Writes are buffered, and written when the buffer is full or while nothing
 * is read, since each change of direction costs the bus some cycles.
 *
 * Times as of speed bin 2400R and 4 Gbit devices of eight bits, in memory clocks of 0.833 ns:
 * usual ones, neither looked up for the parts of that card nor for its controller. Addresses: row
 * | column | bank | bank group | 64 bytes, so that successive beats alternate between bank
 * groups, and 128 KiB in sequence open each bank once.
 */
#ifndef DRAM_H
#define DRAM_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define DRAM_CLOCKS	4	/* memory clocks of a device cycle */
#define DRAM_QUEUE	64	/* bursts a controller holds; the owner counts them */

struct dram_timing {
	uint8_t groups_log2, banks_log2;	/* bank groups; banks in each */
	uint8_t columns_log2;			/* beats of a row */
	uint8_t cl, cwl, rcd, rp, ras, rtp, wr;
	uint8_t ccd_s, ccd_l, rrd_s, rrd_l, faw, wtr;
	uint16_t rfc, refi;
	uint8_t writes;				/* beats that are buffered */
};

extern const struct dram_timing dram_ddr4_2400;

/* Cycles from a read of a closed bank to its data, in an idle memory. */
unsigned int dram_idle_latency(const struct dram_timing *t);

struct dram;
struct dram *dram_new(const struct dram_timing *t);	/* NULL: no memory */
void dram_free(struct dram *d);
/* From device cycle @cycle on, which never decreases; both return the cycle when it is done. */
uint64_t dram_read(struct dram *d, uint64_t cycle, uint64_t addr);
uint64_t dram_write(struct dram *d, uint64_t cycle, uint64_t addr);

#ifdef __cplusplus
}
#endif
#endif /* DRAM_H */
