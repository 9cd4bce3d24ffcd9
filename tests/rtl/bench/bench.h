/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the throughput measurements of the cores share. Each core has a file with one function
 * that measures its works and reports each.
 */
#ifndef BENCH_H
#define BENCH_H

#include <stdbool.h>
#include <stdint.h>

#include "dev.h"

/* The device's one region of all of its DRAM, and one of host memory below the rings. */
#define BENCH_DRAM	KEY(1, 1)
#define BENCH_HOST	KEY(2, 1)
#define BENCH_HOST_SIZE	(12u << 20)

void bench_emb(void);
void bench_tt(void);

/* A fresh device with queue 1 and the regions above. */
void bench_open(struct dev *d);
/*
 * A descriptor for queue 1, in host memory as the driver has it; returns where to fill it in.
 * None of them starts before bench_run().
 */
void *bench_add(struct dev *d, uint8_t opcode, uint32_t len);
/*
 * Runs what was added; returns the cycles that @counter (CSREC_REG_CNT_*) grew by. Dies if a
 * command fails.
 */
uint64_t bench_run(struct dev *d, uint32_t counter);

/* A row below rows by Zipf's law, exponent 1.05; frequent ones first. */
uint32_t bench_zipf(struct dev *d, uint32_t rows);

/* One line of the table. Both in the same @unit per cycle. */
void bench_report(const char *core, const char *work, const char *format, const char *unit,
		  double achieved, double bound);
void bench_die(const char *fmt, ...) __attribute__((format(printf, 1, 2), noreturn));

#endif /* BENCH_H */
