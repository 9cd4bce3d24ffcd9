// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Feeds the server what no client should send: valid messages with wrong fields,
 * truncated ones, noise, descriptors where none belong, wrong answers to its DMA
 * requests, connections that end anywhere. Everything follows from the seed.
 *
 *   fuzz_server SERVER [CONNECTIONS [SEED]]
 *
 * The server is built with sanitizers: any report ends it. After each batch a fresh
 * client must find it alive, correct, and with no descriptor more than before.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <linux/csrec_hw.h>

#include "client.h"
#include "test_model.h"

#define BATCHES		20
#define FILE_SIZE	(1u << 20)

static uint64_t state;
static int memory, counter, pipe_end[2], null_fd, zero_fd;
static unsigned long sent, answered, refused, requests, closed;

static uint64_t rnd(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state;
}

static uint32_t below(uint32_t n)
{
	return (uint32_t)(rnd() % n);
}

static uint64_t odd_value(void)
{
	static const uint64_t v[] = {
		0, 1, 2, 3, 4, 7, 8, 15, 16, 24, 32, 255, 4095, 4096, 4097, 65535, 65536, 65537,
		0x7fffffff, 0x80000000, 0xffffffff, 0x100000000, FILE_SIZE, FILE_SIZE + 4096,
		CSREC_BAR_REG_SIZE, 1ull << 47, 1ull << 63, ~0ull - 4095, ~0ull - 7, ~0ull,
	};

	switch (below(4)) {
	case 0:
		return rnd();
	case 1:
		return rnd() & 0xfffff;
	default:
		return v[below(sizeof(v) / sizeof(v[0]))];
	}
}

static int any_fd(void)
{
	const int fds[] = { memory, memory, memory, counter, counter, pipe_end[0], pipe_end[1],
			    null_fd, zero_fd };

	return fds[below(sizeof(fds) / sizeof(fds[0]))];
}

static uint64_t any_reg(void)
{
	static const uint32_t regs[] = {
		TM_SCRATCH, TM_ADDR, TM_LEN, TM_DRAM, TM_GO, TM_GO, TM_GO, TM_STATUS, TM_IRQ,
		TM_BURST, CSREC_MSIX_TABLE_OFFSET, CSREC_MSIX_PBA_OFFSET, 0,
	};

	return regs[below(sizeof(regs) / sizeof(regs[0]))];
}

/* A message that is (nearly) right; returns its length with header. */
static size_t build(uint8_t *b, unsigned int *nfds)
{
	static const uint8_t cmds[] = { 1, 2, 2, 2, 3, 3, 4, 5, 6, 7, 8, 8, 9, 9, 9, 10, 10, 10,
		10, 10, 10, 10, 10, 10, 13, 15, 15, 16, 17, 18, 99 };
	/* An answer to nothing ends the connection, so not too often. */
	uint16_t cmd = below(200) ? cmds[below(sizeof(cmds))] : C_DMA_READ + below(2);
	uint8_t *p = b + 16;
	size_t len = 0;
	uint32_t n;

	*nfds = 0;
	memset(b, 0, 16);
	switch (cmd) {
	case C_VERSION:
		len = 4 + below(40);
		memset(p, 0, len);
		break;
	case C_MAP:
		len = 32;
		put32(p, 32);
		put32(p + 4, below(4));
		put64(p + 8, below(256) * 4096ull);
		put64(p + 16, below(512) * 4096ull);
		put64(p + 24, (1 + below(256)) * 4096ull);
		*nfds = below(4) != 0;
		break;
	case C_UNMAP:
		len = 24;
		put32(p, 24);
		put32(p + 4, below(8) ? 0 : 2);
		put64(p + 8, below(4) ? below(512) * 4096ull : 0);
		put64(p + 16, below(4) ? (1 + below(1024)) * 4096ull : 0);
		break;
	case C_INFO:
	case C_IRQ_INFO:
		len = 16;
		put32(p, 16);
		put64(p + 4, below(5) * 0x100000000ull);
		put32(p + 12, 0);
		break;
	case C_REGION_INFO:
		len = 32;
		memset(p, 0, 32);
		put32(p, 32);
		put32(p + 8, below(10));
		break;
	case C_SET_IRQS:
		len = 20;
		n = below(TM_VECTORS + 1);
		put32(p, 20);
		put32(p + 4, below(3) ? 0x24 : 1u << below(3) | 8u << below(3));
		put32(p + 8, below(8) ? 2 : below(5));
		put32(p + 12, below(2));
		put32(p + 16, n);
		if (p[4] & 2) {
			memset(p + 20, 1, n);
			len += n;
		}
		*nfds = (p[4] & 4) && below(4) ? n : 0;
		break;
	case C_READ:
	case C_WRITE:
		n = 1u << below(4);
		put32(p + 8, below(4) ? 0 : below(3) ? 7 : 2);
		put64(p, p[8] == 7 ? below(4096) : p[8] == 2 ? below(4096) : any_reg());
		if (p[8] == 0 && below(4))
			n = 8;			/* what registers can be written with */
		put32(p + 12, n);
		len = 16;
		if (cmd == C_WRITE) {
			/* Command register and power state often, so that DMA runs at all. */
			if (p[8] == 7 && below(2))
				put64(p, below(8) ? 4 : 0x44);
			put64(p + 16, below(2) ? rnd() & 0x1ff : rnd());
			if (p[8] == 7 && get64(p) == 4)
				p[16] = below(4) ? 6 : 2;
			len += n;
		}
		break;
	case C_DMA_READ:
	case C_DMA_WRITE:
		len = 16 + below(64);
		memset(p, 0, len);
		b[8] = below(4) != 0;		/* as if an answer */
		put16(b, (uint16_t)below(64));
		break;
	case C_WRITE_MULTI:
		n = below(6);
		put64(p, n);
		for (uint32_t i = 0; i < n; i++) {
			put64(p + 8 + 24 * i, any_reg());
			put32(p + 16 + 24 * i, 0);
			put32(p + 20 + 24 * i, 8);
			put64(p + 24 + 24 * i, rnd() & 0xfff);
		}
		len = 8 + 24 * n;
		break;
	default:
		len = below(64);
		memset(p, 0, len);
	}
	if (cmd != C_DMA_READ && cmd != C_DMA_WRITE) {
		put16(b, (uint16_t)rnd());
		b[8] = below(8) ? 0 : 0x10;
	}
	put16(b + 2, cmd);
	put32(b + 4, (uint32_t)(16 + len));
	return 16 + len;
}

static void mutate(uint8_t *b, size_t *len, unsigned int *nfds)
{
	for (uint32_t i = 1 + below(3); i; i--) {
		size_t body = *len - 16;

		switch (below(7)) {
		case 0:			/* a byte, the header's ones less often */
			b[below(16) && body ? 16 + below((uint32_t)body) : below(16)] = (uint8_t)rnd();
			break;
		case 1:
			if (body >= 4)
				put32(b + 16 + below((uint32_t)body / 4) * 4, (uint32_t)odd_value());
			break;
		case 2:
			if (body >= 8)
				put64(b + 16 + below((uint32_t)body / 8) * 8, odd_value());
			break;
		case 3:			/* shorter, and says so */
			*len = 16 + (body ? below((uint32_t)body) : 0);
			put32(b + 4, (uint32_t)*len);
			break;
		case 4:			/* longer, and says so */
			for (uint32_t n = below(200); n; n--)
				b[(*len)++] = (uint8_t)rnd();
			put32(b + 4, (uint32_t)*len);
			break;
		case 5:
			*nfds = below(20);
			break;
		case 6:
			if (!below(8))
				put32(b + 4, (uint32_t)odd_value());
			break;
		}
	}
}

static bool put(struct client *c, const uint8_t *b, size_t len, unsigned int nfds)
{
	union {
		struct cmsghdr align;
		char buf[CMSG_SPACE(32 * sizeof(int))];
	} ctl;
	struct iovec iov = { (void *)b, len };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };

	if (nfds) {
		struct cmsghdr *cm;
		int fds[32];

		for (unsigned int i = 0; i < nfds; i++)
			fds[i] = any_fd();
		memset(&ctl, 0, sizeof(ctl));
		msg.msg_control = ctl.buf;
		msg.msg_controllen = CMSG_SPACE(nfds * sizeof(int));
		cm = CMSG_FIRSTHDR(&msg);
		cm->cmsg_level = SOL_SOCKET;
		cm->cmsg_type = SCM_RIGHTS;
		cm->cmsg_len = CMSG_LEN(nfds * sizeof(int));
		memcpy(CMSG_DATA(cm), fds, nfds * sizeof(int));
	}
	return sendmsg(c->fd, &msg, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)len;
}

/*
 * Reads what there is; DMA requests are answered, mostly wrongly. The data is never the
 * same twice: a steady difference from the mapping is what the server rightly ends for.
 */
static bool listen_to_it(struct client *c, bool wait)
{
	struct msg m;

	while (client_readable(c, wait ? 2 : 0)) {
		wait = false;
		if (!client_recv(c, &m))
			return false;
		if (m.fd >= 0)
			close(m.fd);
		if ((m.flags & 0xf) == 1) {
			m.flags & 0x20 ? refused++ : answered++;
			continue;
		}
		requests++;
		if (m.size >= 32 && below(8)) {
			uint8_t b[16 + 16 + 4096];
			uint32_t count = get32(m.body + 8) & 0xfff;
			size_t len;

			memset(b, 0, 32);
			put16(b, m.id);
			put16(b + 2, below(16) ? m.cmd : (uint16_t)below(20));
			memcpy(b + 16, m.body, 16);
			count = m.cmd == C_DMA_READ ? get32(m.body + 8) & 0x1fff : 0;
			if (!below(8))
				count = below(4096);
			for (uint32_t i = 0; i < count && i < 4096; i += 8)
				put64(b + 32 + i, rnd());
			len = below(6) ? 32 + (count < 4096 ? count : 4096) : 16;
			put32(b + 4, (uint32_t)len);
			put32(b + 8, len == 16 ? 0x21 : 1);
			put32(b + 12, len == 16 ? (uint32_t)odd_value() : 0);
			if (!put(c, b, len, below(50) ? 0 : 1 + below(3)))
				return false;
		}
	}
	return true;
}

static bool connection(const struct server *s)
{
	static uint8_t b[65536];
	struct client c;
	bool alive;

	alive = below(20) ? client_start(&c, s) : client_open(&c, s);
	if (!alive) {
		client_close(&c);
		return false;
	}
	if (below(8)) {
		c.serve = false;
		set_cfg(&c, 4, 6, 2);
	}
	for (uint32_t i = 5 + below(60); i && alive; i--) {
		unsigned int nfds = 0;
		size_t len, at = 0;

		if (below(150)) {
			len = build(b, &nfds);
			if (!below(4))
				mutate(b, &len, &nfds);
		} else {			/* noise */
			len = 1 + below(100);
			for (size_t k = 0; k < len; k++)
				b[k] = (uint8_t)rnd();
		}
		sent++;
		if (!below(300))		/* a message that ends too early */
			len = 1 + below((uint32_t)len);
		while (at < len && alive) {
			size_t n = below(10) ? len - at : 1 + below((uint32_t)(len - at));

			alive = put(&c, b + at, n, at ? 0 : nfds);
			at += n;
		}
		if (alive && !below(3))
			alive = listen_to_it(&c, !below(3));
		if (!below(200) && ftruncate(memory, below(2) ? 4096 * below(8) : FILE_SIZE))
			perror("# ftruncate");
	}
	if (alive && below(2))
		alive = listen_to_it(&c, true);
	if (!alive)
		closed++;
	client_close(&c);
	if (ftruncate(memory, FILE_SIZE))
		perror("# ftruncate");
	return true;
}

/* A well-behaved client finds a device that works. */
static const char *probe(struct server *s)
{
	const char *wrong = NULL;
	uint8_t data[64];
	struct client c;
	int fd;

	if (!client_start(&c, s))
		return "no version";
	fd = memory_file("probe", 65536);
	c.ram = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	c.ram_size = 65536;
	memset(c.ram, 0x5a, 4096);
	set_cfg(&c, 4, 6, 2);
	if (reg(&c, CSREC_REG_ID) != (CSREC_ID_MAGIC | (uint64_t)CSREC_HW_MAJOR << CSREC_ID_MAJOR_SHIFT |
				     (uint64_t)CSREC_HW_MINOR << CSREC_ID_MINOR_SHIFT))
		wrong = "wrong ID";
	else if (reg(&c, TM_SCRATCH) || reg(&c, TM_STATUS) || reg(&c, CSREC_MSIX_PBA_OFFSET))
		wrong = "state of an earlier client";
	else if (client_map(&c, 0, 65536, fd, 0, 3))
		wrong = "cannot map";
	set_reg(&c, TM_LEN, 64);
	set_reg(&c, TM_GO, TM_GO_READ);
	while (!wrong && (reg(&c, TM_STATUS) & 1))
		;
	if (!wrong && (client_read(&c, R_BAR2, 0, data, 64) || memcmp(data, c.ram, 64)))
		wrong = "DMA moved something else";
	if (!wrong && c.bad_dma)
		wrong = "malformed DMA request";
	munmap(c.ram, 65536);
	close(fd);
	client_close(&c);
	return wrong;
}

/* Until it has noticed that the last client left: it tells statistics after that. */
static void settle(struct server *s)
{
	server_stat(s, "clients");
}

int main(int argc, char **argv)
{
	static const char *const args[] = { "--dram-size", "1M", NULL };
	struct server s = { 0 };
	unsigned int total, bad = 0;
	const char *wrong;
	int fds, rc;

	if (argc < 2) {
		fprintf(stderr, "usage: fuzz_server SERVER [CONNECTIONS [SEED]]\n");
		return 2;
	}
	total = argc > 2 ? (unsigned int)atoi(argv[2]) : 8000;
	state = argc > 3 ? strtoull(argv[3], NULL, 0) : 20261130;
	printf("1..%d\n# seed %llu, %u connections\n", BATCHES + 1, (unsigned long long)state, total);
	signal(SIGPIPE, SIG_IGN);
	memory = memory_file("fuzz", FILE_SIZE);
	counter = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	zero_fd = open("/dev/zero", O_RDWR | O_CLOEXEC);
	if (pipe2(pipe_end, O_CLOEXEC | O_NONBLOCK))
		return 2;
	if (!server_start(&s, argv[1], args) || (wrong = probe(&s))) {
		printf("not ok 1 - server comes up\n");
		return 1;
	}
	settle(&s);
	fds = server_fds(&s);
	for (unsigned int b = 0; b < BATCHES; b++) {
		bool ok = true;

		alarm(120);
		wrong = "server does not accept";
		for (unsigned int i = 0; i < total / BATCHES && ok; i++)
			ok = connection(&s);
		if (ok) {
			wrong = probe(&s);
			ok = !wrong;
		}
		if (ok) {
			int now;

			settle(&s);
			now = server_fds(&s);
			if (now != fds) {
				printf("# %d descriptors, %d at the start\n", now, fds);
				wrong = "descriptors leaked";
				ok = false;
			}
		}
		if (!ok)
			printf("# %s\n", wrong);
		printf("%sok %u - alive and correct after batch %u\n", ok ? "" : "not ", b + 1, b + 1);
		fflush(stdout);
		bad += !ok;
		if (!ok)
			break;
	}
	rc = server_stop(&s);
	printf("%sok %d - server ends cleanly (no sanitizer report)\n", rc ? "not " : "",
	       BATCHES + 1);
	printf("# messages %lu answered %lu refused %lu; DMA requests %lu; connections closed "
	       "by the server %lu\n", sent, answered, refused, requests, closed);
	return bad || rc ? 1 : 0;
}
