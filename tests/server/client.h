/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A small vfio-user client for tests. It shares no code with the server: offsets and
 * numbers are written out here a second time, from the protocol's description.
 */
#ifndef CSREC_TEST_CLIENT_H
#define CSREC_TEST_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum {
	C_VERSION = 1, C_MAP = 2, C_UNMAP = 3, C_INFO = 4, C_REGION_INFO = 5, C_IO_FDS = 6,
	C_IRQ_INFO = 7, C_SET_IRQS = 8, C_READ = 9, C_WRITE = 10, C_DMA_READ = 11,
	C_DMA_WRITE = 12, C_RESET = 13, C_WRITE_MULTI = 15, C_FEATURE = 16,
};

#define R_BAR0		0
#define R_BAR2		2
#define R_CONFIG	7

#define MSG_MAX		(1 << 18)
#define HELD_MAX	128

/* ---- a server process ---- */

struct server {
	pid_t pid;
	int out;		/* its stdout */
	char path[100];
	char log[120];		/* its stderr */
};

/* @args: extra options, NULL-terminated. False if it did not come up. */
bool server_start(struct server *s, const char *binary, const char *const *args);
/* The same, but @args has all there is, --socket with what server_path() chose too. */
bool server_spawn(struct server *s, const char *binary, const char *const *args);
void server_path(struct server *s);
/* Waits; returns the exit code, or 256 + signal. */
int server_wait(struct server *s);
int server_stop(struct server *s);	/* SIGTERM, then as above */
long server_stat(struct server *s, const char *name);	/* from its statistics line */
int server_fds(const struct server *s);
bool server_has_mapping(const struct server *s, const char *name);
bool server_log_has(const struct server *s, const char *text);
/* Runs to its end with @args only; exit code. */
int server_run(const char *binary, const char *const *args);

/* ---- a client ---- */

struct msg {
	uint16_t id, cmd;
	uint32_t size, flags, err;
	uint8_t *body;		/* size - 16 bytes, in the client's buffer */
	int fd;			/* came along, or -1 */
};

/* A message DMA request of the server that was not answered yet. */
struct held {
	uint16_t id, cmd;
	uint64_t addr, count;
	uint8_t data[4096];
};

struct client {
	int fd;
	uint16_t next_id;
	uint8_t *buf;
	/* What the guest has in its memory, at bus address ram_base. */
	uint8_t *ram;
	uint64_t ram_base, ram_size;
	bool serve;		/* answer DMA messages as they come; else hold them */
	bool refuse_dma;	/* answer them with an error */
	void (*before_copy)(struct client *c, const struct held *h);
	void (*after_copy)(struct client *c, const struct held *h);
	struct held held[HELD_MAX];
	unsigned int nheld;
	unsigned int dma_reads, dma_writes;	/* seen */
	unsigned int bad_dma;	/* malformed requests seen */
};

bool client_open(struct client *c, const struct server *s);		/* connects only */
bool client_start(struct client *c, const struct server *s);	/* and agrees on a version */
void client_close(struct client *c);

/* Raw. Return false when the connection is over (or silent for half a minute). */
bool client_send(struct client *c, uint16_t id, uint16_t cmd, uint32_t flags, const void *body,
		 size_t len, const int *fds, unsigned int nfds);
bool client_recv(struct client *c, struct msg *m);
bool client_at_end(struct client *c);	/* the server closed; unread messages are skipped */
bool client_readable(struct client *c, int ms);

/*
 * Sends a command and waits for its answer; DMA requests that come meanwhile are
 * answered or held. Returns 0, a positive errno from the server, or -1.
 */
int client_call(struct client *c, uint16_t cmd, const void *body, size_t len, const int *fds,
		unsigned int nfds, struct msg *answer);
void client_answer(struct client *c, const struct held *h);	/* from c->ram */
bool client_pump(struct client *c, unsigned int nheld);		/* until that many are held */

int client_map(struct client *c, uint64_t iova, uint64_t size, int fd, uint64_t off,
	       uint32_t prot);
int client_unmap(struct client *c, uint64_t iova, uint64_t size, uint32_t flags);
int client_read(struct client *c, uint32_t region, uint64_t off, void *buf, uint32_t len);
int client_write(struct client *c, uint32_t region, uint64_t off, const void *buf, uint32_t len);
int client_irqs(struct client *c, uint32_t flags, uint32_t start, uint32_t count, const int *fds,
		unsigned int nfds);

uint64_t reg(struct client *c, uint32_t off);			/* all ones on failure */
void set_reg(struct client *c, uint32_t off, uint64_t val);
uint32_t cfg(struct client *c, uint32_t off, uint32_t len);
void set_cfg(struct client *c, uint32_t off, uint32_t val, uint32_t len);

int memory_file(const char *name, size_t size);	/* a memfd */

static inline void put16(uint8_t *p, uint16_t v) { __builtin_memcpy(p, &v, 2); }
static inline void put32(uint8_t *p, uint32_t v) { __builtin_memcpy(p, &v, 4); }
static inline void put64(uint8_t *p, uint64_t v) { __builtin_memcpy(p, &v, 8); }
static inline uint16_t get16(const uint8_t *p) { uint16_t v; __builtin_memcpy(&v, p, 2); return v; }
static inline uint32_t get32(const uint8_t *p) { uint32_t v; __builtin_memcpy(&v, p, 4); return v; }
static inline uint64_t get64(const uint8_t *p) { uint64_t v; __builtin_memcpy(&v, p, 8); return v; }

#endif /* CSREC_TEST_CLIENT_H */
