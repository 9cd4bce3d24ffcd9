/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The vfio-user server: one PCI device, one client at a time, one thread.
 *
 *   main.c    options, signals, the event loop
 *   conn.c    the socket: framing, file descriptors, output queue
 *   command.c what each client command does
 *   config.c  PCI configuration space
 *   dma.c     guest memory: ranges, mapped and by message; share=off detection
 *   irq.c     MSI-X vectors and their pending bits
 */
#ifndef CSREC_SERVER_H
#define CSREC_SERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include "csrec_model.h"
#include "vfio_user.h"
#include <linux/csrec_hw.h>

#define CFG_SIZE		4096
#define MAX_FDS			16		/* in one message, either way */
#define MAX_XFER		65536u		/* region data in one message */
#define MAX_PAYLOAD		(MAX_XFER + 64)	/* longest command or reply body */
#define MAX_VECTORS		255		/* CAPQ_VECTORS has eight bits */
#define MAX_OUT			(1u << 20)	/* stop reading above this backlog */
#define MAX_RANGES		65535
#define DMA_MAX			4096u		/* csrec_host_ops: never crosses 4 KiB */
/*
 * Messages to the client under way at once. QEMU drops what does not fit its socket
 * buffer (about 200 KiB), so all replies to them must fit at once.
 */
#define DMA_IN_FLIGHT		16

enum exit_code {
	EXIT_OK = 0,
	EXIT_ERROR = 1,
	EXIT_USAGE = 2,
	EXIT_NOT_SHARED = 3,	/* guest RAM is not mapped share=on */
	EXIT_IN_USE = 4,	/* another server answers on the socket */
};

struct stats {
	uint64_t cycles, steps, step_ns, wakeups;
	uint64_t messages, dma_messages;
	uint64_t host_read, host_written;	/* bytes, either path */
	uint64_t irqs, irqs_held;
	uint64_t clients, resets;
};

/* Guest memory announced by the client. Without fd: reached by message only. */
struct range {
	uint64_t iova, size;
	uint32_t prot;		/* VFU_DMA_* */
	uint8_t *mem;		/* NULL without fd */
	dev_t dev;		/* which file, for the sharing check */
	ino_t ino;
	bool shared;		/* the mapping is known to be the guest's memory */
	unsigned int samples;	/* pages looked at by the sharing check */
	unsigned int bad_pages;	/* of these, certainly not the guest's memory */
	uint64_t bad_addr;	/* the last such */
};

struct dma_req;
struct out_buf;

#define CHECK_WORDS		(DMA_MAX / 8)

/* The sharing check under way, see dma.c. */
struct share_check {
	bool active;
	bool has_suspect;
	uint64_t suspect;	/* a page seen to differ, to be looked at next */
	uint64_t addr;
	unsigned int round;
	uint64_t before[CHECK_WORDS];		/* mapping when the message left */
	uint64_t map_first[CHECK_WORDS];	/* round 0 */
	uint64_t msg_first[CHECK_WORDS];
	bool still[CHECK_WORDS];		/* differs, and neither side ever moved */
};

struct server {
	struct csrec_model *model;
	const char *path;	/* socket */
	int listen_fd;
	bool quit;
	int exit_code;
	unsigned int verbose;
	bool trace_dma;
	bool once;
	struct stats stats;

	/* device DRAM, BAR 2 */
	int dram_fd;
	uint8_t *dram;
	uint64_t dram_size;
	uint64_t bar2_size;	/* of it, from its beginning on */

	/* config.c */
	uint64_t serial;
	uint8_t cfg[CFG_SIZE];
	uint8_t cfg_wmask[CFG_SIZE];	/* writable bits */
	uint8_t cfg_w1c[CFG_SIZE];	/* bits that writing 1 clears */

	/* irq.c */
	unsigned int nvec;
	int irq_null;			/* what irq_aio reads nothing from */
	unsigned long irq_aio;		/* an aio_context_t, or 0 */
	int irq_fd[MAX_VECTORS];
	bool irq_masked[MAX_VECTORS];
	uint64_t irq_pending[(MAX_VECTORS + 63) / 64];

	/* dma.c */
	struct range *range;	/* sorted by iova, disjoint */
	size_t nranges, max_ranges;
	struct dma_req *dma_queue, **dma_queue_tail;	/* not sent yet */
	struct dma_req *dma_flight;
	unsigned int dma_in_flight;
	uint16_t dma_next_id;
	struct { dev_t dev; ino_t ino; } *proven;	/* files known to be shared */
	size_t nproven;
	unsigned int check_errors;
	bool check_answered;	/* client gave a proper answer once */
	bool check_trust;	/* client cannot answer: mappings are taken as shared */
	struct share_check check;

	/* conn.c */
	int fd;			/* the client, or -1 */
	bool negotiated;
	struct vfu_hdr hdr;
	size_t got;		/* bytes of the current message, header included */
	_Alignas(8) uint8_t payload[MAX_PAYLOAD];
	int fds[MAX_FDS];	/* came with the current message */
	unsigned int nfds;
	struct out_buf *out, **out_tail;
	size_t out_bytes;
};

/* main.c */
__attribute__((format(printf, 2, 3)))
void say(const struct server *s, const char *fmt, ...);		/* always */
__attribute__((format(printf, 2, 3)))
void debug(const struct server *s, const char *fmt, ...);	/* with --verbose */
void server_reset_model(struct server *s);
void server_clear_dram(struct server *s);

/* conn.c */
void conn_accept(struct server *s);
void conn_close(struct server *s, const char *why);
void conn_readable(struct server *s);
void conn_writable(struct server *s);
bool conn_may_read(const struct server *s);
/* @fd: sent along, must stay open, or -1. The body is @a followed by @b. */
void conn_send(struct server *s, const struct vfu_hdr *hdr, const void *a, size_t alen,
	       const void *b, size_t blen, int fd);
void close_fds(int *fd, unsigned int n);

/* command.c: one whole command message is in s->hdr, s->payload, s->fds */
void command(struct server *s, size_t len);

/* config.c */
void cfg_init(struct server *s);
void cfg_read(struct server *s, uint32_t off, void *buf, uint32_t len);
void cfg_write(struct server *s, uint32_t off, const void *buf, uint32_t len);
bool cfg_memory_on(const struct server *s);	/* BARs answer */
bool cfg_master_on(const struct server *s);	/* may reach memory, raise interrupts */
bool cfg_own_dram(const struct server *s, uint64_t addr, size_t len, uint64_t *off);

/* irq.c */
int irq_open(struct server *s);			/* once, first; -errno */
void irq_init(struct server *s);
void irq_raise(struct server *s, unsigned int vec);
void irq_flush(struct server *s);		/* deliver what can be now */
void irq_reset(struct server *s);		/* forget pending ones */
void irq_release(struct server *s);		/* close all */
int irq_set(struct server *s, const struct vfu_set_irqs *set, size_t datalen);
uint64_t irq_pba(const struct server *s, unsigned int word);

/* dma.c */
extern const struct csrec_host_ops dma_host_ops;
void dma_init(struct server *s);
int dma_map(struct server *s, const struct vfu_dma_map *m, int fd);
int dma_unmap(struct server *s, const struct vfu_dma_unmap *u);
void dma_unmap_all(struct server *s);
void dma_reply(struct server *s, size_t len);	/* s->hdr, s->payload */
void dma_pump(struct server *s);		/* send what may be sent */
void dma_orphan(struct server *s);		/* the model forgot its requests */
void dma_drop(struct server *s);		/* the client is gone */
void dma_check(struct server *s);		/* bus mastering is on: look at the ranges */

#endif /* CSREC_SERVER_H */
