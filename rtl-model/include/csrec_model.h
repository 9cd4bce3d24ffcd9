/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the vfio-user server (rtl-model/server) and the RTL tests ask of a device
 * model, and what a model asks back. Two models implement it: the Verilated RTL
 * (rtl-model/harness) and the golden model (rtl-model/golden).
 *
 * One thread owns a model and makes every call; callbacks come from within
 * csrec_model_step() only.
 */
#ifndef CSREC_MODEL_H
#define CSREC_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct csrec_model;

/*
 * Host memory as the device sees it, by bus address. A transfer never crosses a
 * 4 KiB boundary. Returns 0 when done; -EINPROGRESS when the answer comes later by
 * csrec_model_host_done() with the same tag (for a read the server keeps @buf until
 * then); any other negative errno is a bus error. With bus mastering off the
 * server returns -EPERM.
 */
struct csrec_host_ops {
	int (*read)(void *opaque, uint32_t tag, uint64_t addr, void *buf, size_t len);
	int (*write)(void *opaque, uint32_t tag, uint64_t addr, const void *buf, size_t len);
	/* MSI-X request; everything the device wrote before is visible already */
	void (*irq)(void *opaque, unsigned int vector);
};

/* Latency and bandwidth behind the model's ports, in device cycles. */
struct csrec_model_config {
	uint64_t dram_size;		/* bytes, power of two, default 256 MiB */
	unsigned int dram_latency;	/* first beat of a closed row, default 40 */
	bool dram_flat;			/* no banks and rows: every read has dram_latency */
	unsigned int host_latency;	/* first beat, default 300 (1 us) */
	unsigned int host_bytes_x16;	/* host bytes per cycle, times 16; default 176 (3.3 GB/s) */
	unsigned int host_jitter;	/* extra latency 0..n, pseudo-random; default 0 */
	unsigned int stall_pct;		/* random back-pressure on every port; default 0 */
	uint64_t seed;			/* for jitter and stalls */
	const char *fst;		/* wave file, NULL for none; -ENOTSUP if not built in */
	uint64_t fst_from, fst_to;	/* cycle window */
	uint32_t first_count;		/* for tests: where a queue's counts begin; 0 */
};

#define CSREC_MODEL_CONFIG_DEFAULT { .dram_size = 256u << 20, .dram_latency = 40, \
	.host_latency = 300, .host_bytes_x16 = 176, .seed = 1 }

/*
 * @dram: dram_size bytes, owned by the caller (the server passes the mapping that
 * backs BAR 2), valid until csrec_model_destroy(). Returns 0 or -errno.
 */
int csrec_model_create(struct csrec_model **out, const struct csrec_model_config *cfg,
		       void *dram, const struct csrec_host_ops *ops, void *opaque);
void csrec_model_destroy(struct csrec_model *m);

/* Function-level or bus reset: after return no access is in flight. */
void csrec_model_reset(struct csrec_model *m);

/*
 * BAR 0 access, offset and len as the host issued them (len 1, 2, 4, 8). A read
 * returns in a bounded number of cycles. Neither waits for host memory.
 */
uint64_t csrec_model_read(struct csrec_model *m, uint32_t off, unsigned int len);
void csrec_model_write(struct csrec_model *m, uint32_t off, unsigned int len, uint64_t val);

/* Runs up to @cycles; returns how many it ran. Less than asked: the model is idle. */
unsigned int csrec_model_step(struct csrec_model *m, unsigned int cycles);

/* Is there anything to run? False also while only late host answers are awaited. */
bool csrec_model_busy(const struct csrec_model *m);

/* Late answer to a host read or write. @err 0 or negative errno. */
void csrec_model_host_done(struct csrec_model *m, uint32_t tag, int err);

/* Waves on demand: NULL stops. -ENOTSUP in a build without tracing. */
int csrec_model_trace(struct csrec_model *m, const char *fst);

/* "rtl, fp dpi", "golden" ... */
const char *csrec_model_name(const struct csrec_model *m);

#ifdef __cplusplus
}
#endif
#endif /* CSREC_MODEL_H */
