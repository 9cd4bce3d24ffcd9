// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What the vfio-user server promises, one case each. Numbers in parentheses are rows
 * of the table of other projects' bug reports that the case guards against.
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
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <linux/csrec_hw.h>

#include "client.h"
#include "test_model.h"

static const char *binary;
static bool failed;

#define CHECK(cond) do {							\
	if (!(cond)) {								\
		printf("# %s:%d: not true: %s\n", __FILE__, __LINE__, #cond);	\
		failed = true;							\
		return;								\
	}									\
} while (0)

#define EQ(a, b) do {								\
	unsigned long long a_ = (unsigned long long)(a), b_ = (unsigned long long)(b); \
	if (a_ != b_) {								\
		printf("# %s:%d: %s is %#llx, expected %#llx\n", __FILE__, __LINE__, #a, a_, b_); \
		failed = true;							\
		return;								\
	}									\
} while (0)

#define MB		(1ull << 20)
#define RW		3
#define COMMAND		0x04
#define MEM		0x2
#define BME		0x4

/* The server and client of the running case; ended by the runner. */
static struct server srv;
static struct client cl;

static void up_with(const char *const *args)
{
	if (!server_start(&srv, binary, args) || !client_start(&cl, &srv)) {
		printf("# server did not come up\n");
		failed = true;
	}
}

static void up(void)
{
	static const char *const args[] = { "--dram-size", "4M", NULL };

	up_with(args);
	set_cfg(&cl, COMMAND, MEM, 2);
}

static void reconnect(void)
{
	client_close(&cl);
	if (!client_start(&cl, &srv)) {
		printf("# server did not accept again\n");
		failed = true;
	}
}

static uint32_t find_cap(uint8_t id)
{
	for (uint32_t p = cfg(&cl, 0x34, 1), n = 0; p && n < 48; p = cfg(&cl, p + 1, 1), n++)
		if (cfg(&cl, p, 1) == id)
			return p;
	return 0;
}

/* Guest RAM that is really shared: one file, its mapping is what the guest sees. */
static int shared_ram(size_t size)
{
	int fd = memory_file("guest-ram", size);

	cl.ram = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	cl.ram_base = 0;
	cl.ram_size = size;
	return fd;
}

/* Runs the model's DMA engine; returns its errno. */
static int dma(uint64_t addr, uint64_t len, uint64_t dram, uint64_t go)
{
	uint64_t st;

	set_reg(&cl, TM_ADDR, addr);
	set_reg(&cl, TM_LEN, len);
	set_reg(&cl, TM_DRAM, dram);
	set_reg(&cl, TM_GO, go);
	do {
		st = reg(&cl, TM_STATUS);
	} while (st != ~0ull && (st & 1));
	return (int)(st >> 32);
}

/* With shared RAM at 0: bus mastering on and the mapping proven. */
static void master_on(void)
{
	memset(cl.ram, 0x5a, 64);
	set_cfg(&cl, COMMAND, MEM | BME, 2);
	dma(0, 8, 0, TM_GO_READ);
}

/* ---- negotiation and information ---- */

static void t_version_length(void)
{
	static const char json[] = "{\"capabilities\": {\"max_msg_fds\": 16}}";
	uint8_t body[4 + sizeof(json)] = { 0 };
	struct msg m;

	CHECK(server_start(&srv, binary, NULL));
	/* Short requests of every length: the answer is never longer (A.2). */
	for (size_t len = 4; len <= sizeof(body); len++) {
		memset(body, 0, sizeof(body));
		memset(body + 4, ' ', sizeof(body) - 4);
		memcpy(body + 4, json, len == sizeof(body) ? sizeof(json) : 0);
		if (len > 4)
			body[len - 1] = '\0';
		CHECK(client_open(&cl, &srv));
		EQ(client_call(&cl, C_VERSION, body, len, NULL, 0, &m), 0);
		CHECK(m.size <= 16 + len && m.size >= 20);
		EQ(get16(m.body), 0);
		EQ(get16(m.body + 2), 0);
		if (m.size > 20)
			EQ(m.body[m.size - 17], 0);
		client_close(&cl);
	}
	CHECK(client_start(&cl, &srv));
}

static void t_version_answer(void)
{
	static const char json[] = "{\"capabilities\":{\"max_data_xfer_size\": 1048576, "
		"\"max_msg_fds\": 8,\"max_dma_maps\":65535,\"pgsizes\":4096}}";
	uint8_t body[4 + sizeof(json)] = { 0 };
	struct msg m;

	memcpy(body + 4, json, sizeof(json));
	CHECK(server_start(&srv, binary, NULL));
	CHECK(client_open(&cl, &srv));
	EQ(client_call(&cl, C_VERSION, body, sizeof(body), NULL, 0, &m), 0);
	CHECK(m.size > 20 && m.body[m.size - 17] == 0);
	CHECK(strstr((char *)m.body + 4, "\"max_msg_fds\""));
	CHECK(strstr((char *)m.body + 4, "\"max_data_xfer_size\""));
	/* Only what was offered may be answered. */
	CHECK(!strstr((char *)m.body + 4, "write_multiple"));
	EQ(client_call(&cl, C_VERSION, body, sizeof(body), NULL, 0, NULL), EINVAL);
}

static void t_version_refused(void)
{
	static const char tiny[] = "{\"capabilities\":{\"max_data_xfer_size\":100}}";
	uint8_t body[64] = { 1, 0 };

	CHECK(server_start(&srv, binary, NULL));
	CHECK(client_open(&cl, &srv));		/* another major version */
	CHECK(client_call(&cl, C_VERSION, body, 4, NULL, 0, NULL) > 0);
	CHECK(client_at_end(&cl));
	client_close(&cl);
	CHECK(client_open(&cl, &srv));		/* no version at all */
	EQ(client_call(&cl, C_INFO, body, 16, NULL, 0, NULL), EINVAL);
	CHECK(client_at_end(&cl));
	client_close(&cl);
	CHECK(client_open(&cl, &srv));		/* text without its end */
	memcpy(body, "\0\0\0\0{}xx", 8);
	EQ(client_call(&cl, C_VERSION, body, 8, NULL, 0, NULL), EINVAL);
	CHECK(client_at_end(&cl));
	client_close(&cl);
	CHECK(client_open(&cl, &srv));		/* takes no page in one message */
	memset(body, 0, sizeof(body));
	memcpy(body + 4, tiny, sizeof(tiny));
	EQ(client_call(&cl, C_VERSION, body, 4 + sizeof(tiny), NULL, 0, NULL), EINVAL);
	CHECK(client_at_end(&cl));
	client_close(&cl);
	CHECK(client_start(&cl, &srv));
}

static void t_device_info(void)
{
	uint8_t b[16] = { 16 };
	struct msg m;

	up();
	EQ(client_call(&cl, C_INFO, b, 16, NULL, 0, &m), 0);
	EQ(m.size, 32);
	EQ(get32(m.body), 16);
	EQ(get32(m.body + 4), 3);		/* RESET, PCI */
	CHECK(get32(m.body + 8) >= 8 && get32(m.body + 8) <= 100);
	CHECK(get32(m.body + 12) >= 3 && get32(m.body + 12) <= 50);
	EQ(client_call(&cl, C_INFO, b, 8, NULL, 0, NULL), EINVAL);
	b[0] = 15;
	EQ(client_call(&cl, C_INFO, b, 16, NULL, 0, NULL), EINVAL);
}

static void t_region_info(void)
{
	static const struct { uint32_t index, flags; uint64_t size; } want[] = {
		{ 0, 3, CSREC_BAR_REG_SIZE }, { 1, 0, 0 }, { 2, 7, 4 * MB }, { 3, 0, 0 },
		{ 4, 0, 0 }, { 5, 0, 0 }, { 6, 0, 0 }, { 7, 3, 4096 }, { 8, 0, 0 },
	};
	uint8_t b[32] = { 32 };
	struct msg m;

	up();
	for (size_t i = 0; i < sizeof(want) / sizeof(want[0]); i++) {
		put32(b + 8, want[i].index);
		EQ(client_call(&cl, C_REGION_INFO, b, 32, NULL, 0, &m), 0);
		EQ(m.size, 48);
		EQ(get32(m.body), 32);
		EQ(get32(m.body + 4), want[i].flags);
		EQ(get32(m.body + 8), want[i].index);
		EQ(get64(m.body + 16), want[i].size);
		EQ(m.fd >= 0, want[i].index == 2);
		if (m.fd >= 0) {
			struct stat st;

			/* Shorter than the BAR would be SIGBUS for the client. */
			CHECK(!fstat(m.fd, &st) && (uint64_t)st.st_size >= want[i].size);
			/* And the client must not shorten it under the server. */
			CHECK(ftruncate(m.fd, 0) < 0);
			close(m.fd);
		}
	}
	put32(b + 8, 9);
	EQ(client_call(&cl, C_REGION_INFO, b, 32, NULL, 0, NULL), EINVAL);
	put32(b + 8, ~0u);
	EQ(client_call(&cl, C_REGION_INFO, b, 32, NULL, 0, NULL), EINVAL);
	put32(b, 31);
	put32(b + 8, 0);
	EQ(client_call(&cl, C_REGION_INFO, b, 32, NULL, 0, NULL), EINVAL);
}

static void t_irq_info(void)
{
	uint8_t b[16] = { 16 };
	struct msg m;

	up();
	for (uint32_t i = 0; i < 3; i++) {
		put32(b + 8, i);
		EQ(client_call(&cl, C_IRQ_INFO, b, 16, NULL, 0, &m), 0);
		EQ(m.size, 32);
		EQ(get32(m.body + 12), i == 2 ? TM_VECTORS : 0);
		EQ(get32(m.body + 4) & 1, i == 2);
		EQ(get32(m.body + 4) & 8, 0);	/* vectors can come one by one */
	}
	put32(b + 8, 3);			/* error recovery: silent in QEMU if refused */
	EQ(client_call(&cl, C_IRQ_INFO, b, 16, NULL, 0, NULL), EINVAL);
}

static void t_unknown(void)
{
	uint8_t b[64] = { 0 };

	up();
	EQ(client_call(&cl, C_FEATURE, b, 8, NULL, 0, NULL), ENOTTY);
	EQ(client_call(&cl, 17, b, 8, NULL, 0, NULL), ENOTTY);
	EQ(client_call(&cl, C_IO_FDS, b, 16, NULL, 0, NULL), ENOTTY);
	EQ(client_call(&cl, 99, b, 8, NULL, 0, NULL), ENOSYS);
	EQ(client_call(&cl, 0, NULL, 0, NULL, 0, NULL), ENOSYS);
	EQ(client_call(&cl, C_DMA_READ, b, 16, NULL, 0, NULL), ENOSYS);
	EQ(reg(&cl, CSREC_REG_ID) & 0xffffffff, CSREC_ID_MAGIC);
}

/* ---- regions ---- */

static void t_reply_layout(void)
{
	static const uint32_t lens[] = { 1, 2, 4, 8 };
	uint64_t id = 0, part;

	up();
	/* client_read() checks the 16-byte access header and the exact length (31). */
	EQ(client_read(&cl, R_BAR0, 0, &id, 8), 0);
	EQ((uint32_t)id, CSREC_ID_MAGIC);
	for (size_t i = 0; i < 4; i++) {
		for (uint32_t off = 0; off < 8; off += lens[i]) {
			part = 0;
			EQ(client_read(&cl, R_BAR0, off, &part, lens[i]), 0);
			EQ(memcmp(&part, (uint8_t *)&id + off, lens[i]), 0);
		}
	}
	id = 0x1122334455667788;
	EQ(client_write(&cl, R_BAR0, TM_SCRATCH, &id, 8), 0);
	EQ(reg(&cl, TM_SCRATCH), id);
}

static void t_access_bounds(void)
{
	static const struct { uint32_t region, len; uint64_t off; } bad[] = {
		{ 0, 0, 0 }, { 0, 3, 0 }, { 0, 16, 0 }, { 0, 8, 4 }, { 0, 2, 1 },
		{ 0, 8, CSREC_BAR_REG_SIZE }, { 0, 8, CSREC_BAR_REG_SIZE - 4 },
		{ 0, 8, ~0ull - 7 }, { 0, 8, 1ull << 32 }, { 1, 4, 0 }, { 3, 4, 0 },
		{ 2, 4, 4 * MB }, { 2, 8, 4 * MB - 4 }, { 2, 1 << 17, 0 }, { 7, 4, 4094 },
		{ 7, 4097, 0 }, { 7, 4, 1ull << 32 }, { 8, 1, 0 }, { 9, 4, 0 }, { ~0u, 4, 0 },
	};
	static uint8_t buf[1 << 17];
	uint8_t b[32] = { 0 };

	up();
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		EQ(client_read(&cl, bad[i].region, bad[i].off, buf, bad[i].len), EINVAL);
		if (bad[i].len < sizeof(buf))
			EQ(client_write(&cl, bad[i].region, bad[i].off, buf, bad[i].len), EINVAL);
	}
	/* count and length of the message disagree */
	put32(b + 12, 8);
	EQ(client_call(&cl, C_WRITE, b, 20, NULL, 0, NULL), EINVAL);
	EQ(client_call(&cl, C_WRITE, b, 32, NULL, 0, NULL), EINVAL);
	EQ(client_call(&cl, C_WRITE, b, 15, NULL, 0, NULL), EINVAL);
	EQ(client_call(&cl, C_READ, b, 15, NULL, 0, NULL), EINVAL);
	/* the very ends are fine */
	EQ(client_read(&cl, R_BAR0, CSREC_BAR_REG_SIZE - 8, buf, 8), 0);
	EQ(client_read(&cl, R_BAR2, 4 * MB - 3, buf, 3), 0);
	EQ(client_read(&cl, R_CONFIG, 0, buf, 4096), 0);
}

static void t_dram_bar(void)
{
	uint8_t b[32] = { 32 }, data[1000], back[1000];
	struct msg m;
	uint8_t *p;

	up();
	put32(b + 8, 2);
	EQ(client_call(&cl, C_REGION_INFO, b, 32, NULL, 0, &m), 0);
	p = mmap(NULL, 4 * MB, PROT_READ | PROT_WRITE, MAP_SHARED, m.fd, 0);
	close(m.fd);
	CHECK(p != MAP_FAILED);
	for (size_t i = 0; i < sizeof(data); i++)
		data[i] = (uint8_t)(i * 7);
	EQ(client_write(&cl, R_BAR2, 12345, data, sizeof(data)), 0);
	EQ(memcmp(p + 12345, data, sizeof(data)), 0);
	p[4 * MB - 1] = 0x77;
	EQ(client_read(&cl, R_BAR2, 4 * MB - 1, back, 1), 0);
	EQ(back[0], 0x77);
	munmap(p, 4 * MB);
}

static void t_memory_gate(void)
{
	uint64_t v = 0;

	up();
	set_reg(&cl, TM_SCRATCH, 1);
	set_cfg(&cl, COMMAND, 0, 2);
	EQ(reg(&cl, TM_SCRATCH), ~0ull);
	set_reg(&cl, TM_SCRATCH, 2);
	EQ(client_write(&cl, R_BAR2, 0, &v, 8), 0);
	EQ(client_read(&cl, R_BAR2, 0, &v, 8), 0);
	EQ(v, ~0ull);
	set_cfg(&cl, COMMAND, MEM, 2);
	EQ(reg(&cl, TM_SCRATCH), 1);
}

static void put_write(uint8_t *p, uint64_t off, uint32_t region, uint32_t len, uint64_t val)
{
	put64(p, off);
	put32(p + 8, region);
	put32(p + 12, len);
	put64(p + 16, val);
}

static void t_write_multi(void)
{
	static uint8_t b[8 + 24 * 201];
	struct msg m;

	up();
	put64(b, 2);
	put_write(b + 8, TM_SCRATCH, 0, 8, 11);
	put_write(b + 32, TM_LEN, 0, 8, 22);
	EQ(client_call(&cl, C_WRITE_MULTI, b, 56, NULL, 0, &m), 0);
	EQ(m.size, 24);
	EQ(get64(m.body), 2);
	EQ(reg(&cl, TM_SCRATCH), 11);
	EQ(reg(&cl, TM_LEN), 22);
	/* one bad: none is done */
	put_write(b + 8, TM_SCRATCH, 0, 8, 33);
	put_write(b + 32, CSREC_BAR_REG_SIZE, 0, 8, 44);
	EQ(client_call(&cl, C_WRITE_MULTI, b, 56, NULL, 0, NULL), EINVAL);
	EQ(reg(&cl, TM_SCRATCH), 11);
	put_write(b + 32, 0, 2, 9, 44);		/* more bytes than there are */
	EQ(client_call(&cl, C_WRITE_MULTI, b, 56, NULL, 0, NULL), EINVAL);
	EQ(client_call(&cl, C_WRITE_MULTI, b, 55, NULL, 0, NULL), EINVAL);
	put_write(b + 32, TM_LEN, 0, 8, 55);
	put_write(b + 56, TM_ADDR, 0, 8, 66);
	put64(b, 3);
	EQ(client_call(&cl, C_WRITE_MULTI, b, 80, NULL, 0, NULL), 0);
	EQ(client_call(&cl, C_WRITE_MULTI, b, 56, NULL, 0, NULL), EINVAL);	/* more than came */
	EQ(reg(&cl, TM_ADDR), 66);
	put64(b, 1ull << 61);			/* count * 24 wraps to 0 */
	EQ(client_call(&cl, C_WRITE_MULTI, b, 8, NULL, 0, NULL), EINVAL);
	put64(b, 201);
	EQ(client_call(&cl, C_WRITE_MULTI, b, sizeof(b), NULL, 0, NULL), EINVAL);
}

static void t_no_reply(void)
{
	uint8_t b[56];

	up();
	/* Posted writes (34): done, unanswered, also when they are wrong. */
	put_write(b, TM_SCRATCH, 0, 8, 77);
	CHECK(client_send(&cl, 500, C_WRITE, 0x10, b, 24, NULL, 0));
	put_write(b, TM_SCRATCH + 4, 0, 8, 78);
	CHECK(client_send(&cl, 501, C_WRITE, 0x10, b, 24, NULL, 0));
	put64(b, 1);
	put_write(b + 8, TM_LEN, 0, 8, 79);
	CHECK(client_send(&cl, 502, C_WRITE_MULTI, 0x10, b, 32, NULL, 0));
	EQ(reg(&cl, TM_SCRATCH), 77);		/* fails if anything else were answered */
	EQ(reg(&cl, TM_LEN), 79);
}

static void t_pipelined(void)
{
	uint8_t b[24];
	struct msg m;

	up();
	for (uint16_t i = 0; i < 200; i++) {
		put_write(b, TM_SCRATCH, 0, 8, i);
		CHECK(client_send(&cl, (uint16_t)(1000 + 2 * i), C_WRITE, 0, b, 24, NULL, 0));
		CHECK(client_send(&cl, (uint16_t)(1001 + 2 * i), C_READ, 0, b, 16, NULL, 0));
	}
	for (uint16_t i = 0; i < 200; i++) {
		CHECK(client_recv(&cl, &m));
		EQ(m.id, 1000 + 2 * i);
		EQ(m.cmd, C_WRITE);
		CHECK(client_recv(&cl, &m));
		EQ(m.id, 1001 + 2 * i);
		EQ(m.flags, 1);
		EQ(get64(m.body + 16), i);
	}
}

static void t_backpressure(void)
{
	static uint8_t buf[65536];
	int unread = 0;
	uint8_t b[16];
	struct msg m;

	up();
	/* A client that asks and does not read is not served without bound. */
	fcntl(cl.fd, F_SETFL, O_NONBLOCK);
	put64(b, 0);
	put32(b + 8, R_BAR2);
	put32(b + 12, sizeof(buf));
	/* 2000 answers are 128 MB. It takes some, then leaves the rest in the socket. */
	while (unread < 2000) {
		struct pollfd p = { .fd = cl.fd, .events = POLLOUT };

		if (client_send(&cl, (uint16_t)unread, C_READ, 0, b, 16, NULL, 0))
			unread++;
		else if (poll(&p, 1, 500) != 1)
			break;
	}
	CHECK(unread > 0 && unread < 2000);
	fcntl(cl.fd, F_SETFL, 0);
	for (int i = 0; i < unread; i++) {
		CHECK(client_recv(&cl, &m));
		EQ(m.id, i);
		EQ(m.size, 32 + sizeof(buf));
	}
	EQ(reg(&cl, CSREC_REG_ID) & 0xffffffff, CSREC_ID_MAGIC);
}

/* ---- configuration space ---- */

static void t_identity(void)
{
	up();
	EQ(cfg(&cl, 0, 2), CSREC_PCI_VENDOR);
	EQ(cfg(&cl, 2, 2), CSREC_PCI_DEVICE);
	EQ(cfg(&cl, 8, 4) >> 8, CSREC_PCI_CLASS);
	EQ(cfg(&cl, 0x0e, 1), 0);
	EQ(cfg(&cl, 0x2c, 2), CSREC_PCI_VENDOR);
	CHECK(cfg(&cl, 0x2e, 2));
	EQ(cfg(&cl, 0x3d, 1), 0);		/* no INTx */
	EQ(cfg(&cl, 0x06, 2) & 0x10, 0x10);
	set_cfg(&cl, 0, 0, 4);
	set_cfg(&cl, 8, 0, 4);
	EQ(cfg(&cl, 0, 4), (uint32_t)CSREC_PCI_DEVICE << 16 | CSREC_PCI_VENDOR);
	EQ(cfg(&cl, 8, 4) >> 8, CSREC_PCI_CLASS);
}

static void t_capabilities(void)
{
	uint32_t pm, pcie, msix;

	up();
	pm = find_cap(0x01);
	pcie = find_cap(0x10);
	msix = find_cap(0x11);
	CHECK(pm && pcie && msix);
	EQ(cfg(&cl, pm + 2, 2) & 7, 3);
	EQ(cfg(&cl, pm + 4, 2), 0);		/* D0, no soft reset clear */
	EQ(cfg(&cl, pcie + 2, 2), 2);		/* endpoint, version 2 */
	EQ(cfg(&cl, pcie + 4, 4) >> 28 & 1, 1);	/* FLR */
	EQ(cfg(&cl, pcie + 0x12, 2) & 0x3ff, 0x43);	/* Gen3 x4 */
	EQ(cfg(&cl, msix + 2, 2), TM_VECTORS - 1);
	EQ(cfg(&cl, msix + 4, 4), CSREC_MSIX_TABLE_OFFSET);
	EQ(cfg(&cl, msix + 8, 4), CSREC_MSIX_PBA_OFFSET);
	EQ(cfg(&cl, 0x100, 4) & 0xfffff, 0x20001);	/* AER, version 2 */
	EQ(cfg(&cl, 0x10c, 4), 0x00462030);
	set_cfg(&cl, pcie + 8, 0x5010, 2);
	EQ(cfg(&cl, pcie + 8, 2), 0x5010);
	set_cfg(&cl, pcie + 0x28, 0xffff, 2);
	EQ(cfg(&cl, pcie + 0x28, 2), 0x10);
	set_cfg(&cl, 0x104, ~0u, 4);		/* nothing to clear */
	EQ(cfg(&cl, 0x104, 4), 0);
}

/* The list of the extended space: ascending, room for each, and an end. */
static void t_extended(void)
{
	static const char *const args[] = { "--serial", "0x123456789abcdef0", NULL };
	static const struct { uint16_t id, len; } known[] = {
		{ 0x0001, 0x48 }, { 0x0003, 12 }, { 0x0019, 12 + 2 * 4 },
	};
	uint32_t at = 0x100, head, next, seen = 0, i, dsn = 0;

	up_with(args);
	while (at) {
		head = cfg(&cl, at, 4);
		next = head >> 20;
		for (i = 0; i < 3 && known[i].id != (head & 0xffff); i++)
			;
		CHECK(i < 3 && !(seen & 1u << i) && (head >> 16 & 0xf));
		seen |= 1u << i;
		CHECK(next % 4 == 0 && (!next || next >= at + known[i].len));
		CHECK(at + known[i].len <= 4096);
		if (known[i].id == 3)
			dsn = at;
		at = next;
	}
	EQ(seen, 7);
	EQ(cfg(&cl, dsn + 4, 4), 0x9abcdef0);
	EQ(cfg(&cl, dsn + 8, 4), 0x12345678);
	set_cfg(&cl, dsn + 4, 0, 4);
	EQ(cfg(&cl, dsn + 4, 4), 0x9abcdef0);
}

/* Fewer vectors, and less of the memory in BAR 2, than the device has. */
static void t_less(void)
{
	static const char *const args[] = { "--dram-size", "4M", "--bar2-size", "64K",
					    "--vectors", "2", NULL };
	static const char *const many[] = { "--socket", "/tmp/x", "--vectors", "6", NULL };
	uint8_t b[32] = { 32 };
	uint64_t v = 0x55;
	uint32_t msix;
	struct msg m;
	int e = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);

	EQ(server_run(binary, many), 1);
	up_with(args);
	msix = find_cap(0x11);
	EQ(cfg(&cl, msix + 2, 2), 1);
	put32(b + 8, 2);
	EQ(client_call(&cl, C_REGION_INFO, b, 32, NULL, 0, &m), 0);
	EQ(get64(m.body + 16), 64 << 10);
	close(m.fd);
	set_cfg(&cl, 0x18, ~0u, 4);
	EQ(cfg(&cl, 0x18, 4), 0xffff000c);
	set_cfg(&cl, COMMAND, MEM | BME, 2);
	EQ(client_write(&cl, R_BAR2, (64 << 10) - 8, &v, 8), 0);
	EQ(client_write(&cl, R_BAR2, 64 << 10, &v, 8), EINVAL);
	EQ(reg(&cl, CSREC_REG_CAP_DRAM), 4 << 20);
	EQ(reg(&cl, CSREC_REG_CAP_QUEUE) >> CSREC_CAPQ_VECTORS_SHIFT & 0xff, TM_VECTORS);
	/* vector 1 is there, 2 is not, and asking for it harms nobody */
	EQ(client_irqs(&cl, 0x24, 1, 1, &e, 1), 0);
	EQ(client_irqs(&cl, 0x24, 2, 1, &e, 1), EINVAL);
	v = reg(&cl, TM_STEPS);
	set_reg(&cl, TM_IRQ, 2);
	while (reg(&cl, TM_STEPS) == v)
		;
	set_reg(&cl, TM_IRQ, 1);
	while (read(e, &v, 8) != 8)
		EQ(reg(&cl, TM_SCRATCH), 0);
	EQ(v, 1);
	close(e);
}

static void t_bars(void)
{
	up();
	set_cfg(&cl, 0x10, ~0u, 4);
	set_cfg(&cl, 0x14, ~0u, 4);
	EQ(cfg(&cl, 0x10, 4), (uint32_t)-CSREC_BAR_REG_SIZE | 4);
	EQ(cfg(&cl, 0x14, 4), ~0u);
	set_cfg(&cl, 0x18, ~0u, 4);
	set_cfg(&cl, 0x1c, ~0u, 4);
	EQ(cfg(&cl, 0x18, 4), (uint32_t)(-4 * (int)MB) | 0xc);
	EQ(cfg(&cl, 0x1c, 4), ~0u);
	set_cfg(&cl, 0x20, ~0u, 4);
	EQ(cfg(&cl, 0x20, 4), 0);
	set_cfg(&cl, 0x30, ~0u, 4);		/* no ROM */
	EQ(cfg(&cl, 0x30, 4), 0);
}

/* 8 GiB: sizes are 64 bits everywhere. */
static void t_big_dram(void)
{
	static const char *const args[] = { "--dram-size", "8G", NULL };
	uint8_t b[32] = { 32 };
	uint64_t v = 0x77;
	struct msg m;

	up_with(args);
	put32(b + 8, 2);
	EQ(client_call(&cl, C_REGION_INFO, b, 32, NULL, 0, &m), 0);
	EQ(get64(m.body + 16), 8ull << 30);
	close(m.fd);
	set_cfg(&cl, 0x18, ~0u, 4);
	set_cfg(&cl, 0x1c, ~0u, 4);
	EQ(cfg(&cl, 0x18, 4), 0xc);
	EQ(cfg(&cl, 0x1c, 4), 0xfffffffe);
	set_cfg(&cl, COMMAND, MEM, 2);
	EQ(client_write(&cl, R_BAR2, (8ull << 30) - 8, &v, 8), 0);
	v = 0;
	EQ(client_read(&cl, R_BAR2, (8ull << 30) - 8, &v, 8), 0);
	EQ(v, 0x77);
}

static void t_odd_config(void)
{
	uint32_t msix, pcie;

	up();
	msix = find_cap(0x11);
	pcie = find_cap(0x10);
	/* Two bytes from the middle of the control word on (30). */
	set_cfg(&cl, msix + 3, 0x00c0, 2);
	EQ(cfg(&cl, msix + 2, 2), 0xc000 | (TM_VECTORS - 1));
	EQ(cfg(&cl, msix + 4, 4), CSREC_MSIX_TABLE_OFFSET);
	set_cfg(&cl, msix + 3, 0x80, 1);
	EQ(cfg(&cl, msix + 3, 1), 0x80);
	set_cfg(&cl, 0x11, 0xabcdef, 4);	/* across BAR 0's address */
	EQ(cfg(&cl, 0x10, 4), 0xabc80004);
	set_cfg(&cl, pcie + 9, 0x80, 1);	/* FLR by its own byte */
	EQ(cfg(&cl, COMMAND, 2), 0);
	EQ(client_write(&cl, R_CONFIG, 4093, "abc", 3), 0);
	EQ(cfg(&cl, 4093, 1), 0);
}

/* ---- DMA ---- */

static void t_dma_mapped(void)
{
	long before;
	int fd;

	up();
	fd = shared_ram(MB);
	EQ(client_map(&cl, 0, MB, fd, 0, RW), 0);
	close(fd);
	master_on();
	before = server_stat(&srv, "dma-messages");
	for (unsigned int i = 0; i < 4096; i++)
		cl.ram[8192 + i] = (uint8_t)(i * 13 + 1);
	EQ(dma(8192, 4096, 4096, TM_GO_READ), 0);
	EQ(dma(16384 + 100, 3000, 4096 + 100, TM_GO_WRITE), 0);
	EQ(memcmp(cl.ram + 16384 + 100, cl.ram + 8192 + 100, 3000), 0);
	EQ(cl.ram[16384 + 99], 0);
	EQ(cl.ram[16384 + 3100], 0);
	EQ(server_stat(&srv, "dma-messages"), before);	/* none by message */
	EQ(server_stat(&srv, "host-written"), 3000);
}

/* A file offset that is not 0, and a range that is not at 0. */
static void t_dma_offset(void)
{
	int fd;

	up();
	fd = shared_ram(MB);
	cl.ram_base = 0xc0000000 - 0x40000;	/* what the client answers by message */
	EQ(client_map(&cl, 0xc0000000, MB - 0x40000, fd, 0x40000, RW), 0);
	close(fd);
	memset(cl.ram + 0x40000, 0xa5, 4096);
	set_cfg(&cl, COMMAND, MEM | BME, 2);
	EQ(dma(0xc0000000, 4096, 0, TM_GO_READ), 0);
	EQ(dma(0xc0001000, 4096, 0, TM_GO_WRITE), 0);
	EQ(memcmp(cl.ram + 0x41000, cl.ram + 0x40000, 4096), 0);
	EQ(dma(0xc0000000 - 4096, 8, 0, TM_GO_READ), 0);	/* below: by message */
	EQ(dma(0xd0000000, 8, 0, TM_GO_READ), ENODEV);	/* nobody there */
}

static void t_dma_message(void)
{
	static uint8_t ram[65536], back[4096];

	up();
	for (unsigned int i = 0; i < sizeof(ram); i++)
		ram[i] = (uint8_t)(i * 31 + i / 256);
	cl.ram = ram;
	cl.ram_base = 1ull << 40;
	cl.ram_size = sizeof(ram);
	EQ(client_map(&cl, 1ull << 40, sizeof(ram), -1, 0, RW), 0);
	set_cfg(&cl, COMMAND, MEM | BME, 2);
	/* The client checks the layout: 64-bit count, exact lengths (32). */
	EQ(dma((1ull << 40) + 4096, 4096, 8192, TM_GO_READ), 0);
	EQ(client_read(&cl, R_BAR2, 8192, back, 4096), 0);
	EQ(memcmp(back, ram + 4096, 4096), 0);
	EQ(dma((1ull << 40) + 12288 + 5, 1001, 8192 + 5, TM_GO_WRITE), 0);
	EQ(memcmp(ram + 12288 + 5, ram + 4096 + 5, 1001), 0);
	EQ(cl.dma_reads, 1);
	EQ(cl.dma_writes, 1);
	EQ(cl.bad_dma, 0);
	EQ(reg(&cl, TM_LATE), 0);
}

/* The clients' versions of the DMA_WRITE reply: 16, 12 and 0 bytes of body. */
static void t_dma_write_reply(void)
{
	static uint8_t ram[4096];

	up();
	cl.ram = ram;
	cl.ram_size = sizeof(ram);
	EQ(client_map(&cl, 0, sizeof(ram), -1, 0, RW), 0);
	set_cfg(&cl, COMMAND, MEM | BME, 2);
	cl.serve = false;
	for (size_t len = 0; len <= 12; len += 12) {
		uint8_t b[16] = { 0 };

		set_reg(&cl, TM_ADDR, 0);
		set_reg(&cl, TM_LEN, 64);
		set_reg(&cl, TM_GO, TM_GO_WRITE);
		CHECK(client_pump(&cl, 1));
		put32(b + 8, 64);
		CHECK(client_send(&cl, cl.held[0].id, C_DMA_WRITE, 1, b, len, NULL, 0));
		cl.nheld = 0;
		EQ(reg(&cl, TM_STATUS), (len / 12 + 1) << 8);
	}
}

/*
 * A.7: while a client waits for a register it serves no DMA. Registers must be
 * answered with DMA outstanding, and answers found among commands (26).
 */
static void t_no_wait(void)
{
	static uint8_t ram[65536], back[4096];

	up();
	memset(ram, 0x3c, sizeof(ram));
	cl.ram = ram;
	cl.ram_size = sizeof(ram);
	EQ(client_map(&cl, 0, sizeof(ram), -1, 0, RW), 0);
	set_cfg(&cl, COMMAND, MEM | BME, 2);
	cl.serve = false;
	set_reg(&cl, TM_BURST, 4);
	set_reg(&cl, TM_LEN, 4096);
	set_reg(&cl, TM_GO, TM_GO_READ);
	CHECK(client_pump(&cl, 4));
	for (uint64_t i = 0; i < 100; i++) {
		set_reg(&cl, TM_SCRATCH, i);
		EQ(reg(&cl, TM_SCRATCH), i);
		EQ(reg(&cl, TM_STATUS), 1);
		EQ(cfg(&cl, 0, 2), CSREC_PCI_VENDOR);
	}
	/* Answered in the wrong order, with command ids that equal theirs in between. */
	for (int i = 3; i >= 0; i--) {
		client_answer(&cl, &cl.held[i]);
		cl.next_id = cl.held[i].id;
		EQ(reg(&cl, TM_SCRATCH), 99);
	}
	cl.nheld = 0;
	EQ(reg(&cl, TM_STATUS), 4 << 8);
	EQ(client_read(&cl, R_BAR2, 3 * 4096, back, 4096), 0);
	EQ(memcmp(back, ram, 4096), 0);
	EQ(reg(&cl, TM_LATE), 0);
}

static void t_dma_errors(void)
{
	static uint8_t ram[4096];
	uint8_t b[16 + 64] = { 0 };

	up();
	cl.ram = ram;
	cl.ram_size = sizeof(ram);
	EQ(client_map(&cl, 0, sizeof(ram), -1, 0, RW), 0);
	set_cfg(&cl, COMMAND, MEM | BME, 2);
	cl.refuse_dma = true;
	EQ(dma(0, 64, 0, TM_GO_READ), ENODEV);
	EQ(dma(0, 64, 0, TM_GO_WRITE), ENODEV);
	cl.refuse_dma = false;
	cl.serve = false;
	/* The answer of a client with 32-bit counts: data at 12, four bytes short. */
	set_reg(&cl, TM_GO, TM_GO_READ);
	CHECK(client_pump(&cl, 1));
	put32(b + 8, 64);
	CHECK(client_send(&cl, cl.held[0].id, C_DMA_READ, 1, b, 12 + 64, NULL, 0));
	cl.nheld = 0;
	EQ(reg(&cl, TM_STATUS) >> 32, EPROTO);
	/* Right length, another count. */
	set_reg(&cl, TM_GO, TM_GO_READ);
	CHECK(client_pump(&cl, 1));
	put32(b + 8, 32);
	CHECK(client_send(&cl, cl.held[0].id, C_DMA_READ, 1, b, 16 + 64, NULL, 0));
	cl.nheld = 0;
	EQ(reg(&cl, TM_STATUS) >> 32, EPROTO);
	/* An answer to a read for a write. */
	set_reg(&cl, TM_GO, TM_GO_WRITE);
	CHECK(client_pump(&cl, 1));
	CHECK(client_send(&cl, cl.held[0].id, C_DMA_READ, 1, b, 16, NULL, 0));
	cl.nheld = 0;
	EQ(reg(&cl, TM_STATUS) >> 32, EPROTO);
	/* An answer to nothing ends the connection, not the server. */
	client_send(&cl, 12345, C_DMA_READ, 1, b, 16, NULL, 0);
	CHECK(client_at_end(&cl));
	reconnect();
}

/* QEMU loses what its socket buffer does not take: few messages at a time. */
static void t_dma_in_flight(void)
{
	static uint8_t ram[64 * 4096];
	unsigned int most;

	up();
	for (unsigned int i = 0; i < sizeof(ram); i++)
		ram[i] = (uint8_t)(i / 4096 + 1);
	cl.ram = ram;
	cl.ram_size = sizeof(ram);
	EQ(client_map(&cl, 0, sizeof(ram), -1, 0, RW), 0);
	set_cfg(&cl, COMMAND, MEM | BME, 2);
	cl.serve = false;
	set_reg(&cl, TM_BURST, 64);
	set_reg(&cl, TM_LEN, 4096);
	set_reg(&cl, TM_GO, TM_GO_READ);
	EQ(reg(&cl, TM_STATUS), 1);
	EQ(reg(&cl, TM_STATUS), 1);
	most = cl.nheld;
	CHECK(most > 0 && most * 4096 <= 100 * 1024);
	cl.serve = true;
	for (unsigned int i = 0; i < most; i++)
		client_answer(&cl, &cl.held[i]);
	cl.nheld = 0;
	while (reg(&cl, TM_STATUS) & 1)
		;
	EQ(reg(&cl, TM_STATUS), 64 << 8);
	EQ(cl.dma_reads, 64);
	for (unsigned int i = 0; i < 64; i++) {
		uint8_t c;

		EQ(client_read(&cl, R_BAR2, i * 4096 + 4095, &c, 1), 0);
		EQ(c, i + 1);
	}
}

static void t_own_bar(void)
{
	uint8_t data[64], back[64];

	up();
	memset(data, 0x42, sizeof(data));
	set_cfg(&cl, 0x18, 0xd0000000, 4);
	set_cfg(&cl, 0x1c, 0x12, 4);
	set_cfg(&cl, COMMAND, MEM | BME, 2);
	EQ(client_write(&cl, R_BAR2, 0, data, 64), 0);
	EQ(dma(0x12d0000000 + 0x1000, 64, 0, TM_GO_WRITE), 0);
	EQ(client_read(&cl, R_BAR2, 0x1000, back, 64), 0);
	EQ(memcmp(data, back, 64), 0);
	EQ(dma(0x12d0001000, 64, 0x2000, TM_GO_READ), 0);
	EQ(client_read(&cl, R_BAR2, 0x2000, back, 64), 0);
	EQ(memcmp(data, back, 64), 0);
	/* As QEMU does, announced without a file: still ours. */
	EQ(client_map(&cl, 0x12d0000000, 4 * MB, -1, 0, RW), 0);
	EQ(dma(0x12d0002000, 64, 0, TM_GO_WRITE), 0);
	EQ(cl.dma_reads + cl.dma_writes, 0);
	EQ(dma(0x12d0000000 + 4 * MB, 64, 0, TM_GO_WRITE), ENODEV);	/* just past it */
}

static void t_bus_master(void)
{
	int fd, e = eventfd(0, EFD_NONBLOCK);
	uint64_t v;

	up();
	fd = shared_ram(MB);
	EQ(client_map(&cl, 0, MB, fd, 0, RW), 0);
	EQ(client_map(&cl, 2 * MB, MB, -1, 0, RW), 0);
	close(fd);
	EQ(client_irqs(&cl, 0x24, 0, 1, &e, 1), 0);
	memset(cl.ram, 1, 4096);
	/* Off: neither by mapping nor by message, and no interrupt (MSI is a write). */
	EQ(dma(0, 64, 0, TM_GO_READ), EPERM);
	EQ(dma(0, 64, 0, TM_GO_WRITE), EPERM);
	EQ(dma(2 * MB, 64, 0, TM_GO_READ), EPERM);
	EQ(cl.dma_reads + cl.dma_writes, 0);
	set_reg(&cl, TM_IRQ, 0);
	EQ(reg(&cl, CSREC_MSIX_PBA_OFFSET), 1);
	CHECK(read(e, &v, 8) < 0);
	set_cfg(&cl, COMMAND, MEM | BME, 2);
	EQ(read(e, &v, 8), 8);
	EQ(dma(0, 64, 0, TM_GO_READ), 0);
	set_cfg(&cl, COMMAND, MEM, 2);
	EQ(dma(0, 64, 0, TM_GO_READ), EPERM);
	close(e);
}

static void t_rights(void)
{
	int fd;

	up();
	fd = shared_ram(MB);
	EQ(client_map(&cl, 0, MB / 2, fd, 0, 1), 0);
	EQ(client_map(&cl, MB / 2, MB / 2, -1, 0, 1), 0);
	EQ(client_map(&cl, MB, MB, -1, 0, 2), 0);
	EQ(client_map(&cl, 2 * MB, MB, -1, 0, 0), 0);
	close(fd);
	memset(cl.ram, 1, MB);
	set_cfg(&cl, COMMAND, MEM | BME, 2);
	EQ(dma(0, 64, 0, TM_GO_READ), 0);
	EQ(dma(0, 64, 0, TM_GO_WRITE), EPERM);
	EQ(dma(MB / 2, 64, 0, TM_GO_READ), 0);
	EQ(dma(MB / 2, 64, 0, TM_GO_WRITE), EPERM);
	EQ(dma(MB, 64, 0, TM_GO_READ), EPERM);
	EQ(dma(2 * MB, 64, 0, TM_GO_READ), EPERM);
	EQ(cl.dma_writes, 0);
}

/* ---- maps ---- */

static void t_map_errors(void)
{
	uint8_t b[32] = { 0 };
	int fd, p[2], two[2];

	up();
	fd = memory_file("guest-ram", MB);
	EQ(client_map(&cl, 0, 0, fd, 0, RW), EINVAL);
	EQ(client_map(&cl, 100, MB, fd, 0, RW), EINVAL);
	EQ(client_map(&cl, 0, 100, fd, 0, RW), EINVAL);
	EQ(client_map(&cl, 0, MB, fd, 100, RW), EINVAL);
	EQ(client_map(&cl, 0, MB, fd, 0, 4 | RW), EINVAL);
	EQ(client_map(&cl, ~0ull - 4095, 8192, -1, 0, RW), EINVAL);	/* wraps */
	EQ(client_map(&cl, 0, MB + 4096, fd, 0, RW), EINVAL);		/* past the file */
	EQ(client_map(&cl, 0, MB, fd, 4096, RW), EINVAL);
	EQ(client_map(&cl, 0, MB, fd, ~0ull - 4095, RW), EINVAL);
	CHECK(!pipe2(p, O_CLOEXEC));
	CHECK(client_map(&cl, 0, MB, p[0], 0, RW) > 0);		/* nothing to map */
	two[0] = two[1] = fd;
	put32(b, 32);
	put32(b + 4, RW);
	put64(b + 24, MB);
	EQ(client_call(&cl, C_MAP, b, 32, two, 2, NULL), EINVAL);
	EQ(client_call(&cl, C_MAP, b, 31, NULL, 0, NULL), EINVAL);
	put32(b, 24);
	EQ(client_call(&cl, C_MAP, b, 32, NULL, 0, NULL), EINVAL);
	EQ(client_map(&cl, 0, MB, fd, 0, RW), 0);		/* none of them stuck */
	EQ(client_map(&cl, ~0ull - 4095, 4096, -1, 0, RW), 0);	/* the last page is fine */
	close(fd);
	close(p[0]);
	close(p[1]);
}

static void t_map_overlap(void)
{
	up();
	EQ(client_map(&cl, 0x10000, 0x10000, -1, 0, RW), 0);
	EQ(client_map(&cl, 0x10000, 0x10000, -1, 0, RW), EEXIST);
	EQ(client_map(&cl, 0x1f000, 0x1000, -1, 0, RW), EEXIST);
	EQ(client_map(&cl, 0x0, 0x11000, -1, 0, RW), EEXIST);
	EQ(client_map(&cl, 0x0, 0x40000, -1, 0, RW), EEXIST);
	EQ(client_map(&cl, 0x18000, 0x1000, -1, 0, RW), EEXIST);
	EQ(client_map(&cl, 0x0, 0x10000, -1, 0, RW), 0);	/* right beside: fine */
	EQ(client_map(&cl, 0x20000, 0x10000, -1, 0, RW), 0);
}

static void t_unmap_errors(void)
{
	up();
	EQ(client_unmap(&cl, 0, 0x1000, 0), ENOENT);		/* nothing there at all (27) */
	EQ(client_map(&cl, 0x10000, 0x10000, -1, 0, RW), 0);
	EQ(client_unmap(&cl, 0x30000, 0x1000, 0), ENOENT);
	EQ(client_unmap(&cl, 0x10000, 0, 0), EINVAL);		/* no state change */
	EQ(client_unmap(&cl, 0x10000, 0x8000, 0), EINVAL);	/* would cut it */
	EQ(client_unmap(&cl, 0x8000, 0x10000, 0), EINVAL);
	EQ(client_unmap(&cl, 0x10000, ~0ull, 0), EINVAL);	/* wraps */
	EQ(client_unmap(&cl, 0x10000, 0x10000, 1), EINVAL);	/* unknown flag */
	EQ(client_unmap(&cl, 0x10000, 0x10000, 2), EINVAL);	/* ALL with a range */
	EQ(client_map(&cl, 0x10000, 0x10000, -1, 0, RW), EEXIST);	/* still there */
	EQ(client_unmap(&cl, 0x10000, 0x10000, 0), 0);
	EQ(client_unmap(&cl, 0x10000, 0x10000, 0), ENOENT);
	EQ(reg(&cl, CSREC_REG_ID) & 0xffffffff, CSREC_ID_MAGIC);
}

static void t_unmap_all(void)
{
	int fd;

	up();
	fd = memory_file("guest-ram", MB);
	for (uint64_t i = 0; i < 100; i++)
		EQ(client_map(&cl, i * 2 * MB, MB, i % 2 ? fd : -1, 0, RW), 0);
	CHECK(server_has_mapping(&srv, "guest-ram"));
	EQ(client_unmap(&cl, 0, 0, 2), 0);
	CHECK(!server_has_mapping(&srv, "guest-ram"));
	for (uint64_t i = 0; i < 100; i++)
		EQ(client_unmap(&cl, i * 2 * MB, MB, 0), ENOENT);
	EQ(client_map(&cl, 0, 0x10000, -1, 0, RW), 0);
	EQ(client_map(&cl, 0x20000, 0x10000, -1, 0, RW), 0);
	EQ(client_unmap(&cl, 0, 1ull << 40, 0), 0);		/* several at once */
	EQ(client_unmap(&cl, 0, 0x10000, 0), ENOENT);
	close(fd);
}

/* Released before the answer, and DMA does not get there any more. */
static void t_unmap_releases(void)
{
	int fd, fds;

	up();
	fds = server_fds(&srv);
	fd = shared_ram(MB);
	EQ(client_map(&cl, 0, MB, fd, 0, RW), 0);
	EQ(server_fds(&srv), fds);		/* no descriptor is kept either */
	master_on();
	EQ(client_unmap(&cl, 0, MB, 0), 0);
	CHECK(!server_has_mapping(&srv, "guest-ram"));
	cl.ram_size = 0;			/* and the client has nothing there */
	EQ(dma(0, 64, 0, TM_GO_READ), ENODEV);
	close(fd);
}

/*
 * UNMAP without and MAP with a descriptor lie in the socket together: the descriptor
 * is the second one's.
 */
static void t_fd_attribution(void)
{
	uint8_t u[24] = { 24 }, b[32] = { 32 };
	struct msg m;
	int fd, other;

	up();
	fd = shared_ram(MB);
	other = memory_file("other-file", 2 * MB);
	EQ(client_map(&cl, 0, 2 * MB, other, 0, RW), 0);
	put32(b + 4, RW);
	put64(b + 24, MB);
	put64(u + 16, 2 * MB);
	kill(srv.pid, SIGSTOP);
	CHECK(client_send(&cl, 700, C_UNMAP, 0, u, 24, NULL, 0));
	CHECK(client_send(&cl, 701, C_MAP, 0, b, 32, &fd, 1));
	put64(b + 16, MB);
	CHECK(client_send(&cl, 702, C_MAP, 0, b, 32, NULL, 0));
	put64(b + 16, 2 * MB);
	CHECK(client_send(&cl, 703, C_MAP, 0, b, 32, &other, 1));
	kill(srv.pid, SIGCONT);
	for (uint16_t id = 700; id < 704; id++) {
		CHECK(client_recv(&cl, &m));
		EQ(m.id, id);
		EQ(m.flags, 1);
	}
	CHECK(server_has_mapping(&srv, "guest-ram"));
	CHECK(server_has_mapping(&srv, "other-file"));
	master_on();
	memset(cl.ram + 4096, 0x99, 64);
	EQ(dma(4096, 64, 0, TM_GO_READ), 0);
	EQ(dma(8192, 64, 0, TM_GO_WRITE), 0);
	EQ(memcmp(cl.ram + 4096, cl.ram + 8192, 64), 0);
	close(fd);
	close(other);
}

/* What a guest's reboots do to the table (28), a few hundred times. */
static void t_reboot_churn(void)
{
	int fd, fds;

	up();
	fd = shared_ram(16 * MB);
	fds = server_fds(&srv);
	for (int i = 0; i < 100; i++) {
		set_cfg(&cl, COMMAND, 0, 2);
		EQ(client_call(&cl, C_RESET, NULL, 0, NULL, 0, NULL), 0);
		EQ(client_map(&cl, 0, 0xa0000, fd, 0, RW), 0);
		EQ(client_map(&cl, 0xc0000, 0x20000, -1, 0, 1), 0);
		EQ(client_map(&cl, 0xe0000, 0x20000, -1, 0, 1), 0);
		EQ(client_map(&cl, 0x100000, 15 * MB, fd, 0x100000, RW), 0);
		EQ(client_unmap(&cl, 0xc0000, 0x20000, 0), 0);
		EQ(client_unmap(&cl, 0xe0000, 0x20000, 0), 0);
		EQ(client_unmap(&cl, 0x100000, 15 * MB, 0), 0);
		EQ(client_map(&cl, 0xc0000, 16 * MB - 0xc0000, fd, 0xc0000, RW), 0);
		set_cfg(&cl, COMMAND, MEM, 2);
		master_on();
		EQ(dma(0xc0000, 4096, 0, TM_GO_WRITE), 0);
		EQ(client_unmap(&cl, 0, 0xa0000, 0), 0);
		EQ(client_unmap(&cl, 0xa0000, 0x20000, 0), ENOENT);
		EQ(client_unmap(&cl, 0xc0000, 16 * MB - 0xc0000, 0), 0);
	}
	EQ(server_fds(&srv), fds);
	CHECK(!server_has_mapping(&srv, "guest-ram"));
	close(fd);
}

/* The file gets shorter while it is mapped: a bus error, not a crash. */
static void t_truncated_file(void)
{
	int fd;

	up();
	fd = shared_ram(MB);
	EQ(client_map(&cl, 0, MB, fd, 0, RW), 0);
	master_on();
	CHECK(!ftruncate(fd, 4096));
	EQ(dma(65536, 64, 0, TM_GO_READ), EFAULT);
	EQ(dma(65536, 64, 0, TM_GO_WRITE), EFAULT);
	EQ(dma(0, 64, 0, TM_GO_READ), 0);
	close(fd);
}

/* ---- is guest RAM shared? ---- */

/* As with share=off: the file stays empty, the guest's pages are private. */
static void t_not_shared(void)
{
	int fd;

	up();
	fd = memory_file("guest-ram", 16 * MB);
	cl.ram = mmap(NULL, 16 * MB, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
	cl.ram_size = 16 * MB;
	for (size_t i = 0; i < 16 * MB; i += 4096)
		memset(cl.ram + i, (int)(i / 4096) | 1, 100);
	EQ(client_map(&cl, 0, 16 * MB, fd, 0, RW), 0);
	set_cfg(&cl, COMMAND, MEM | BME, 2);
	/* The client serves until the server ends. */
	client_pump(&cl, 1);
	EQ(server_wait(&srv), 3);
	CHECK(server_log_has(&srv, "not shared"));
	CHECK(server_log_has(&srv, "share=on"));
	close(fd);
	munmap(cl.ram, 16 * MB);
}

/*
 * Only the page that DMA touches has anything in it: until sharing is known DMA goes by
 * message, so what it moves is right all the same.
 */
static void t_not_shared_sparse(void)
{
	uint8_t data[64];
	int fd;

	up();
	fd = memory_file("guest-ram", 1024 * MB);
	cl.ram = mmap(NULL, 1024 * MB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_NORESERVE, fd, 0);
	cl.ram_size = 1024 * MB;
	memset(cl.ram + 0x12345000, 0xab, 4096);
	EQ(client_map(&cl, 0, 1024 * MB, fd, 0, RW), 0);
	set_cfg(&cl, COMMAND, MEM | BME, 2);
	EQ(dma(0x12345000, 64, 0, TM_GO_READ), 0);
	EQ(client_read(&cl, R_BAR2, 0, data, 64), 0);
	EQ(data[0], 0xab);
	EQ(dma(0x12346000, 64, 0, TM_GO_WRITE), 0);
	EQ(cl.ram[0x12346000], 0xab);
	/* The second such page is proof enough. */
	set_reg(&cl, TM_ADDR, 0x12346000);
	set_reg(&cl, TM_GO, TM_GO_READ);
	client_pump(&cl, 1);
	EQ(server_wait(&srv), 3);
	close(fd);
	munmap(cl.ram, 1024 * MB);
}

/* The guest writes to the page right before and after the client copies it. */
static void busy_guest(struct client *c, const struct held *h)
{
	uint64_t *p = (uint64_t *)(c->ram + (h->addr & ~4095ull));

	for (int i = 0; i < 512; i++)
		p[i] += 0x9e3779b97f4a7c15 + (uint64_t)i;
}

static void t_shared_but_busy(void)
{
	int fd;

	up();
	fd = shared_ram(MB);
	EQ(client_map(&cl, 0, MB, fd, 0, RW), 0);
	cl.before_copy = busy_guest;
	cl.after_copy = busy_guest;
	set_cfg(&cl, COMMAND, MEM | BME, 2);
	/* Every page differs at every look; that proves nothing, and DMA is right. */
	for (int i = 0; i < 50; i++)
		EQ(dma((uint64_t)i * 4096, 4096, 0, TM_GO_READ), 0);
	CHECK(cl.dma_reads >= 50);
	EQ(reg(&cl, CSREC_REG_ID) & 0xffffffff, CSREC_ID_MAGIC);
	/* One quiet moment is enough. */
	cl.before_copy = cl.after_copy = NULL;
	EQ(dma(4096, 4096, 0, TM_GO_READ), 0);
	cl.dma_reads = 0;
	EQ(dma(8192, 4096, 0, TM_GO_READ), 0);
	EQ(cl.dma_reads, 0);
	close(fd);
}

/* Half of the page is a counter that runs, the other half stands still. */
static void half_busy_guest(struct client *c, const struct held *h)
{
	uint64_t *p = (uint64_t *)(c->ram + (h->addr & ~4095ull));

	for (int i = 0; i < 256; i++)
		p[i]++;
}

static void t_shared_half_busy(void)
{
	int fd;

	up();
	fd = shared_ram(MB);
	memset(cl.ram, 0x11, MB);
	EQ(client_map(&cl, 0, MB, fd, 0, RW), 0);
	cl.before_copy = cl.after_copy = half_busy_guest;
	set_cfg(&cl, COMMAND, MEM | BME, 2);
	for (int i = 0; i < 50; i++)
		EQ(dma((uint64_t)i * 4096, 4096, 0, TM_GO_READ), 0);
	EQ(reg(&cl, CSREC_REG_ID) & 0xffffffff, CSREC_ID_MAGIC);
	close(fd);
}

/* A word that is another one just while the client copies, and that a few times. */
static void flip(struct client *c, const struct held *h)
{
	static unsigned int looks[256];
	uint64_t *p = (uint64_t *)(c->ram + (h->addr & ~4095ull));
	unsigned int *n = &looks[(h->addr / 4096) % 256];

	if (*n < 2 * 3) {
		p[7] ^= 1;
		++*n;
	}
}

static void t_shared_flip(void)
{
	int fd;

	up();
	fd = shared_ram(MB);
	memset(cl.ram, 0x11, MB);
	EQ(client_map(&cl, 0, MB, fd, 0, RW), 0);
	cl.before_copy = cl.after_copy = flip;
	set_cfg(&cl, COMMAND, MEM | BME, 2);
	for (int i = 0; i < 50; i++)
		EQ(dma((uint64_t)i * 4096, 4096, 0, TM_GO_READ), 0);
	EQ(reg(&cl, CSREC_REG_ID) & 0xffffffff, CSREC_ID_MAGIC);
	close(fd);
}

/* A client whose DMA_READ does not work can still be served, with a warning. */
static void t_cannot_check(void)
{
	int fd;

	up();
	fd = shared_ram(MB);
	memset(cl.ram, 0x11, MB);
	cl.refuse_dma = true;
	EQ(client_map(&cl, 0, MB, fd, 0, RW), 0);
	set_cfg(&cl, COMMAND, MEM | BME, 2);
	for (int i = 0; i < 20; i++)
		reg(&cl, TM_SCRATCH);
	EQ(dma(0, 64, 0, TM_GO_READ), 0);
	EQ(dma(4096, 64, 0, TM_GO_WRITE), 0);
	EQ(memcmp(cl.ram, cl.ram + 4096, 64), 0);
	CHECK(server_log_has(&srv, "warning"));
	close(fd);
}

/* ---- interrupts ---- */

static long fired(int e)
{
	uint64_t v;

	return read(e, &v, 8) == 8 ? (long)v : 0;
}

static void t_msix(void)
{
	int e[TM_VECTORS];

	up();
	set_cfg(&cl, COMMAND, MEM | BME, 2);
	for (int i = 0; i < TM_VECTORS; i++)
		e[i] = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	/* As QEMU does it: first on without a vector, then one by one, then two at once. */
	EQ(client_irqs(&cl, 0x24, 0, 1, NULL, 0), 0);
	EQ(client_irqs(&cl, 0x24, 0, 1, &e[0], 1), 0);
	EQ(client_irqs(&cl, 0x24, 3, 2, &e[3], 2), 0);
	set_reg(&cl, TM_IRQ, 0);
	set_reg(&cl, TM_IRQ, 3);
	reg(&cl, TM_SCRATCH);
	set_reg(&cl, TM_IRQ, 4);
	set_reg(&cl, TM_IRQ, 0);
	reg(&cl, TM_SCRATCH);
	EQ(fired(e[0]), 2);
	EQ(fired(e[3]), 1);
	EQ(fired(e[4]), 1);
	EQ(fired(e[1]), 0);
	EQ(reg(&cl, CSREC_MSIX_PBA_OFFSET), 0);
	EQ(client_irqs(&cl, 0x21, 0, 0, NULL, 0), 0);		/* off */
	set_reg(&cl, TM_IRQ, 0);
	EQ(reg(&cl, CSREC_MSIX_PBA_OFFSET), 1);
	EQ(fired(e[0]), 0);
	for (int i = 0; i < TM_VECTORS; i++)
		close(e[i]);
}

/* No vector, no loss (21). */
static void t_msix_pending(void)
{
	int e = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC), f = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	uint32_t part = 0;
	int fds;

	up();
	fds = server_fds(&srv);
	set_cfg(&cl, COMMAND, MEM | BME, 2);
	set_reg(&cl, TM_IRQ, 1);
	set_reg(&cl, TM_IRQ, 1);
	set_reg(&cl, TM_IRQ, 4);
	EQ(reg(&cl, CSREC_MSIX_PBA_OFFSET), 1 << 1 | 1 << 4);
	EQ(client_read(&cl, R_BAR0, CSREC_MSIX_PBA_OFFSET, &part, 1), 0);
	EQ(part, 1 << 1 | 1 << 4);
	set_reg(&cl, CSREC_MSIX_PBA_OFFSET, 0);			/* read-only */
	EQ(reg(&cl, CSREC_MSIX_PBA_OFFSET), 1 << 1 | 1 << 4);
	EQ(client_irqs(&cl, 0x24, 1, 1, &e, 1), 0);
	EQ(fired(e), 1);
	EQ(reg(&cl, CSREC_MSIX_PBA_OFFSET), 1 << 4);
	/* Another eventfd takes over: the old one is closed and silent. */
	EQ(client_irqs(&cl, 0x24, 1, 1, &f, 1), 0);
	EQ(server_fds(&srv), fds + 1);
	set_reg(&cl, TM_IRQ, 1);
	reg(&cl, TM_SCRATCH);
	EQ(fired(e), 0);
	EQ(fired(f), 1);
	/* Masked, and unmasked with one pending. */
	EQ(client_irqs(&cl, 0x09, 1, 1, NULL, 0), 0);
	set_reg(&cl, TM_IRQ, 1);
	EQ(reg(&cl, CSREC_MSIX_PBA_OFFSET), 1 << 4 | 1 << 1);
	EQ(fired(f), 0);
	EQ(client_irqs(&cl, 0x11, 1, 1, NULL, 0), 0);
	EQ(fired(f), 1);
	/* Taken away. */
	EQ(client_irqs(&cl, 0x24, 1, 1, NULL, 0), 0);
	EQ(server_fds(&srv), fds);
	/* A reset forgets what was pending. */
	EQ(client_call(&cl, C_RESET, NULL, 0, NULL, 0, NULL), 0);
	set_cfg(&cl, COMMAND, MEM | BME, 2);
	EQ(reg(&cl, CSREC_MSIX_PBA_OFFSET), 0);
	close(e);
	close(f);
}

static void t_msix_errors(void)
{
	uint8_t b[24] = { 20 };
	int e = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC), two[2] = { e, e }, fds;

	up();
	fds = server_fds(&srv);
	set_cfg(&cl, COMMAND, MEM | BME, 2);
	EQ(client_irqs(&cl, 0x24, TM_VECTORS, 1, &e, 1), EINVAL);
	EQ(client_irqs(&cl, 0x24, 1, TM_VECTORS, NULL, 0), EINVAL);
	EQ(client_irqs(&cl, 0x24, 1, ~0u, NULL, 0), EINVAL);
	EQ(client_irqs(&cl, 0x24, ~0u, 2, NULL, 0), EINVAL);
	EQ(client_irqs(&cl, 0x24, 0, 1, two, 2), EINVAL);	/* descriptors and count differ */
	EQ(client_irqs(&cl, 0x24, 0, 2, &e, 1), EINVAL);
	EQ(client_irqs(&cl, 0x21, 0, 1, &e, 1), EINVAL);	/* descriptors out of place */
	EQ(client_irqs(&cl, 0x27, 0, 1, NULL, 0), EINVAL);
	EQ(client_irqs(&cl, 0x3c, 0, 1, NULL, 0), EINVAL);
	EQ(client_irqs(&cl, 0x04, 0, 1, NULL, 0), EINVAL);
	EQ(client_irqs(&cl, 0x64, 0, 1, NULL, 0), EINVAL);
	EQ(client_irqs(&cl, 0x22, 0, 1, NULL, 0), EINVAL);	/* no bool came */
	put32(b + 4, 0x21);
	put32(b + 8, 0);
	EQ(client_call(&cl, C_SET_IRQS, b, 20, NULL, 0, NULL), 0);	/* INTx off */
	put32(b + 8, 3);
	EQ(client_call(&cl, C_SET_IRQS, b, 20, NULL, 0, NULL), EINVAL);
	EQ(client_call(&cl, C_SET_IRQS, b, 19, NULL, 0, NULL), EINVAL);
	EQ(server_fds(&srv), fds);
	EQ(fired(e), 0);
	close(e);
}

static void t_irq_trigger(void)
{
	uint8_t b[20 + 3] = { 20 };
	int e[3];

	up();
	set_cfg(&cl, COMMAND, MEM | BME, 2);
	for (int i = 0; i < 3; i++)
		e[i] = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	EQ(client_irqs(&cl, 0x24, 0, 3, e, 3), 0);
	EQ(client_irqs(&cl, 0x21, 1, 2, NULL, 0), 0);		/* as a loopback test does */
	EQ(fired(e[0]), 0);
	EQ(fired(e[1]), 1);
	EQ(fired(e[2]), 1);
	put32(b + 4, 0x22);
	put32(b + 8, 2);
	put32(b + 16, 3);
	b[20] = 1;
	b[22] = 1;
	EQ(client_call(&cl, C_SET_IRQS, b, 23, NULL, 0, NULL), 0);
	EQ(fired(e[0]), 1);
	EQ(fired(e[1]), 0);
	EQ(fired(e[2]), 1);
	for (int i = 0; i < 3; i++)
		close(e[i]);
}

/* Descriptors that a write would block on. */
static void t_irq_never_blocks(void)
{
	uint64_t full = ~0ull - 1;
	int e, p[2];
	char c[4096] = { 0 };

	up();
	set_cfg(&cl, COMMAND, MEM | BME, 2);
	e = eventfd(0, EFD_CLOEXEC);		/* blocking, and full */
	EQ(write(e, &full, 8), 8);
	EQ(client_irqs(&cl, 0x24, 0, 1, &e, 1), 0);
	set_reg(&cl, TM_IRQ, 0);
	EQ(reg(&cl, CSREC_REG_ID) & 0xffffffff, CSREC_ID_MAGIC);
	CHECK(!pipe2(p, O_CLOEXEC));
	fcntl(p[1], F_SETFL, O_NONBLOCK);
	while (write(p[1], c, sizeof(c)) > 0)
		;
	fcntl(p[1], F_SETFL, 0);
	EQ(client_irqs(&cl, 0x24, 0, 1, &p[1], 1), 0);
	set_reg(&cl, TM_IRQ, 0);
	EQ(reg(&cl, CSREC_REG_ID) & 0xffffffff, CSREC_ID_MAGIC);
	EQ(client_irqs(&cl, 0x24, 0, 1, &p[0], 1), 0);		/* not writable at all */
	set_reg(&cl, TM_IRQ, 0);
	close(p[0]);
	EQ(client_irqs(&cl, 0x24, 0, 1, &p[1], 1), 0);
	EQ(client_irqs(&cl, 0x24, 1, 1, &e, 1), 0);
	close(p[1]);
	set_reg(&cl, TM_IRQ, 0);				/* nobody reads: EPIPE */
	EQ(reg(&cl, CSREC_REG_ID) & 0xffffffff, CSREC_ID_MAGIC);
	close(e);
}

/*
 * Whatever a write() may block on (a look with poll() before it leaves time for the client to
 * fill an eventfd up), the server does not write: the kernel signals, and eventfds only.
 */
static void t_irq_no_write(void)
{
	int p[2];
	char c[8];

	up();
	set_cfg(&cl, COMMAND, MEM | BME, 2);
	CHECK(!pipe2(p, O_CLOEXEC | O_NONBLOCK));
	EQ(client_irqs(&cl, 0x24, 0, 1, &p[1], 1), 0);
	set_reg(&cl, TM_IRQ, 0);
	EQ(reg(&cl, CSREC_REG_ID) & 0xffffffff, CSREC_ID_MAGIC);
	EQ(read(p[0], c, sizeof(c)), -1);
	EQ(errno, EAGAIN);
	close(p[0]);
	close(p[1]);
}

/* What the device wrote is there when its interrupt is (20). */
static void t_data_before_irq(void)
{
	int fd, e = eventfd(0, EFD_CLOEXEC);

	up();
	fd = shared_ram(MB);
	EQ(client_map(&cl, 0, MB, fd, 0, RW), 0);
	EQ(client_irqs(&cl, 0x24, 0, 1, &e, 1), 0);
	master_on();
	set_reg(&cl, TM_LEN, 8);
	set_reg(&cl, TM_DRAM, 64);
	set_reg(&cl, TM_ADDR, 4096);
	for (uint64_t i = 1; i <= 200; i++) {
		struct pollfd p = { .fd = e, .events = POLLIN };

		EQ(client_write(&cl, R_BAR2, 64, &i, 8), 0);
		set_reg(&cl, TM_GO, TM_GO_WRITE | TM_GO_IRQ);
		EQ(poll(&p, 1, 30000), 1);
		EQ(*(volatile uint64_t *)(cl.ram + 4096), i);
		EQ(fired(e), 1);
	}
	close(fd);
	close(e);
}

/* ---- resets and power ---- */

static void t_flr(void)
{
	static uint8_t ram[4096];
	uint32_t pcie;
	uint64_t resets;

	up();
	pcie = find_cap(0x10);
	cl.ram = ram;
	cl.ram_size = sizeof(ram);
	EQ(client_map(&cl, 0, sizeof(ram), -1, 0, RW), 0);
	set_cfg(&cl, 0x18, 0xe0000000, 4);
	set_cfg(&cl, COMMAND, MEM | BME, 2);
	set_reg(&cl, TM_SCRATCH, 5);
	set_reg(&cl, TM_IRQ, 2);
	EQ(client_write(&cl, R_BAR2, 0, "keep", 4), 0);
	resets = reg(&cl, TM_RESETS);
	/* With a read outstanding. */
	cl.serve = false;
	set_reg(&cl, TM_LEN, 64);
	set_reg(&cl, TM_GO, TM_GO_READ);
	CHECK(client_pump(&cl, 1));
	set_cfg(&cl, pcie + 8, cfg(&cl, pcie + 8, 2) | 0x8000, 2);
	EQ(cfg(&cl, pcie + 8, 2) & 0x8000, 0);			/* reads as zero */
	EQ(cfg(&cl, COMMAND, 2), 0);
	EQ(cfg(&cl, 0x18, 4), 0xe000000c);			/* the client's to keep */
	set_cfg(&cl, COMMAND, MEM | BME, 2);
	EQ(reg(&cl, TM_RESETS), resets + 1);
	EQ(reg(&cl, TM_SCRATCH), 0);
	EQ(reg(&cl, CSREC_MSIX_PBA_OFFSET), 0);
	/* Its answer is too late for the model, and harmless. */
	memset(ram, 0xee, sizeof(ram));
	client_answer(&cl, &cl.held[0]);
	cl.nheld = 0;
	EQ(reg(&cl, TM_LATE), 0);
	EQ(reg(&cl, TM_STATUS), 0);
	{
		char back[4];

		EQ(client_read(&cl, R_BAR2, 0, back, 4), 0);
		EQ(memcmp(back, "keep", 4), 0);			/* DRAM stays */
	}
	cl.serve = true;
	EQ(dma(0, 64, 0, TM_GO_READ), 0);			/* and all works again */
}

static void t_device_reset(void)
{
	struct msg m;

	up();
	for (int i = 0; i < 3; i++) {
		set_cfg(&cl, COMMAND, MEM | BME, 2);
		set_reg(&cl, TM_SCRATCH, 5);
		set_reg(&cl, TM_BUSY, 1ull << 60);
		EQ(client_call(&cl, C_RESET, NULL, 0, NULL, 0, &m), 0);
		EQ(m.size, 16);
		EQ(client_call(&cl, C_RESET, NULL, 0, NULL, 0, NULL), 0);
		EQ(cfg(&cl, COMMAND, 2), 0);
		set_cfg(&cl, COMMAND, MEM, 2);
		EQ(reg(&cl, TM_SCRATCH), 0);
		EQ(reg(&cl, TM_BUSY), 0);
	}
}

static void t_power(void)
{
	int e = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	uint64_t resets;
	uint32_t pm;

	up();
	pm = find_cap(0x01);
	set_cfg(&cl, COMMAND, MEM | BME, 2);
	EQ(client_irqs(&cl, 0x24, 0, 1, &e, 1), 0);
	set_reg(&cl, TM_SCRATCH, 9);
	resets = reg(&cl, TM_RESETS);
	set_cfg(&cl, pm + 4, 1, 2);			/* D1, D2: there are none */
	EQ(cfg(&cl, pm + 4, 2), 0);
	set_cfg(&cl, pm + 4, 2, 2);
	EQ(cfg(&cl, pm + 4, 2), 0);
	EQ(reg(&cl, TM_SCRATCH), 9);
	set_cfg(&cl, pm + 4, 3, 2);			/* D3hot */
	EQ(cfg(&cl, pm + 4, 2), 3);
	EQ(reg(&cl, TM_SCRATCH), ~0ull);
	EQ(client_irqs(&cl, 0x21, 0, 1, NULL, 0), 0);
	EQ(fired(e), 0);				/* no messages in D3 */
	EQ(cfg(&cl, 0, 2), CSREC_PCI_VENDOR);
	set_cfg(&cl, pm + 4, 2, 2);			/* still none */
	EQ(cfg(&cl, pm + 4, 2), 3);
	set_cfg(&cl, pm + 4, 0, 2);
	EQ(cfg(&cl, pm + 4, 2), 0);
	EQ(cfg(&cl, COMMAND, 2), 0);
	set_cfg(&cl, COMMAND, MEM | BME, 2);
	EQ(reg(&cl, TM_RESETS), resets + 1);
	EQ(reg(&cl, TM_SCRATCH), 0);
	EQ(fired(e), 0);
	close(e);
}

/* ---- connections ---- */

static void t_reconnect(void)
{
	int fd, e = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC), fds;
	char back[4];

	up();
	fds = server_fds(&srv);
	fd = shared_ram(MB);
	for (int i = 0; i < 10; i++) {
		/* A range that stayed would make this EEXIST (29). */
		EQ(client_map(&cl, 0, MB, fd, 0, RW), 0);
		EQ(client_irqs(&cl, 0x24, 0, 1, &e, 1), 0);
		set_cfg(&cl, COMMAND, MEM, 2);
		EQ(client_read(&cl, R_BAR2, 0, back, 4), 0);
		EQ(memcmp(back, "\0\0\0\0", 4), 0);	/* another machine's memory */
		EQ(client_write(&cl, R_BAR2, 0, "mine", 4), 0);
		master_on();
		set_reg(&cl, TM_SCRATCH, 3);
		set_reg(&cl, TM_IRQ, 4);
		EQ(server_fds(&srv), fds + 1);
		cl.ram_size = 0;
		client_close(&cl);
		CHECK(client_start(&cl, &srv));
		cl.ram = mmap(NULL, MB, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		cl.ram_size = MB;
		CHECK(!server_has_mapping(&srv, "guest-ram"));
		EQ(server_fds(&srv), fds);
		EQ(cfg(&cl, COMMAND, 2), 0);
		set_cfg(&cl, COMMAND, MEM, 2);
		EQ(reg(&cl, TM_SCRATCH), 0);
		EQ(reg(&cl, CSREC_MSIX_PBA_OFFSET), 0);
	}
	close(fd);
	close(e);
}

/* The client is killed: within a message, with DMA under way, with the model at work. */
static void t_vanish(void)
{
	static uint8_t ram[65536];

	up();
	CHECK(send(cl.fd, "\1\0\4\0\40", 5, MSG_NOSIGNAL) == 5);
	reconnect();
	CHECK(send(cl.fd, "\1\0\12\0\50\0\0\0\0\0\0\0\0\0\0\0abcd", 20, MSG_NOSIGNAL) == 20);
	reconnect();
	CHECK(!failed);
	set_cfg(&cl, COMMAND, MEM | BME, 2);
	cl.serve = false;
	set_reg(&cl, TM_BURST, 64);
	set_reg(&cl, TM_LEN, 4096);
	set_reg(&cl, TM_BUSY, 1ull << 60);
	set_reg(&cl, TM_GO, TM_GO_WRITE);
	CHECK(client_pump(&cl, 4));
	reconnect();
	CHECK(!failed);
	set_cfg(&cl, COMMAND, MEM | BME, 2);
	EQ(reg(&cl, TM_BUSY), 0);
	EQ(reg(&cl, TM_STATUS), 0);
	cl.ram = ram;
	cl.ram_size = sizeof(ram);
	EQ(dma(0, 64, 0, TM_GO_READ), 0);
	EQ(reg(&cl, TM_LATE), 0);
	EQ(cl.dma_writes, 0);			/* nothing of the old client's */
}

/* The next client waits its turn. */
static void t_second_client(void)
{
	struct client other;

	up();
	CHECK(client_open(&other, &srv));
	CHECK(client_send(&other, 1, C_VERSION, 0, "\0\0\0\0", 4, NULL, 0));
	set_reg(&cl, TM_SCRATCH, 1);
	EQ(reg(&cl, TM_SCRATCH), 1);
	CHECK(!client_readable(&other, 0));
	client_close(&cl);
	cl = other;
	{
		struct msg m;

		CHECK(client_recv(&cl, &m));
		EQ(m.flags, 1);
	}
	set_cfg(&cl, COMMAND, MEM, 2);
	EQ(reg(&cl, TM_SCRATCH), 0);
}

static void t_malformed(void)
{
	static const struct { const char *what; uint32_t size, flags; } bad[] = {
		{ "size 0", 0, 0 }, { "size 15", 15, 0 }, { "size 4 GiB", ~0u, 0 },
		{ "size 1 MiB", 1 << 20, 0 }, { "type 2", 16, 2 }, { "type 15", 16, 15 },
		{ "reply out of nothing", 16, 1 }, { "error reply", 16, 0x21 },
	};
	int e[32];

	up();
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		uint8_t h[16] = { 9, 0, C_INFO, 0 };

		put32(h + 4, bad[i].size);
		put32(h + 8, bad[i].flags);
		CHECK(send(cl.fd, h, 16, MSG_NOSIGNAL) == 16);
		if (!client_at_end(&cl))
			printf("# %s\n", bad[i].what);
		CHECK(client_at_end(&cl));
		reconnect();
		CHECK(!failed);
	}
	/* More descriptors than agreed. */
	for (int i = 0; i < 32; i++)
		e[i] = eventfd(0, EFD_CLOEXEC);
	{
		int fds = server_fds(&srv);

		client_send(&cl, 1, C_SET_IRQS, 0, "12345678901234567890", 20, e, 32);
		CHECK(client_at_end(&cl));
		reconnect();
		CHECK(!failed);
		EQ(server_fds(&srv), fds);
		/* Descriptors with a command that has none. */
		EQ(client_call(&cl, C_INFO, "\20\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 16, e, 3, NULL),
		   EINVAL);
		EQ(server_fds(&srv), fds);
	}
	for (int i = 0; i < 32; i++)
		close(e[i]);
}

/* ---- processes ---- */

/* Two devices of one machine; the client forwards between them as QEMU does. */
static void t_two_servers(void)
{
	struct server b = { 0 };
	struct client cb;
	uint8_t data[64], back[64];

	up();
	CHECK(server_start(&b, binary, NULL));
	CHECK(client_start(&cb, &b));
	set_cfg(&cb, COMMAND, MEM, 2);
	set_reg(&cl, TM_SCRATCH, 1);
	set_reg(&cb, TM_SCRATCH, 2);
	EQ(reg(&cl, TM_SCRATCH), 1);
	EQ(reg(&cb, TM_SCRATCH), 2);
	/* A writes to what is B's BAR 2 on the bus. */
	memset(data, 0x66, sizeof(data));
	EQ(client_write(&cl, R_BAR2, 0, data, 64), 0);
	set_cfg(&cl, COMMAND, MEM | BME, 2);
	cl.serve = false;
	set_reg(&cl, TM_ADDR, 0xe0001000);
	set_reg(&cl, TM_LEN, 64);
	set_reg(&cl, TM_GO, TM_GO_WRITE);
	CHECK(client_pump(&cl, 1));
	EQ(client_write(&cb, R_BAR2, cl.held[0].addr - 0xe0000000, cl.held[0].data, 64), 0);
	cl.nheld = 0;
	{
		uint8_t body[16];

		put64(body, cl.held[0].addr);
		put64(body + 8, 64);
		CHECK(client_send(&cl, cl.held[0].id, C_DMA_WRITE, 1, body, 16, NULL, 0));
	}
	EQ(reg(&cl, TM_STATUS), 1 << 8);
	EQ(client_read(&cb, R_BAR2, 0x1000, back, 64), 0);
	EQ(memcmp(data, back, 64), 0);
	client_close(&cb);
	EQ(server_stop(&b), 0);
	EQ(reg(&cl, TM_SCRATCH), 1);
}

static void t_socket_file(void)
{
	const char *args[] = { "--socket", NULL, NULL };
	struct server again = { 0 };

	up();
	args[1] = srv.path;
	EQ(server_run(binary, args), 4);		/* in use */
	EQ(reg(&cl, CSREC_REG_ID) & 0xffffffff, CSREC_ID_MAGIC);
	strcpy(again.path, srv.path);
	kill(srv.pid, SIGKILL);				/* leaves its socket behind */
	EQ(server_wait(&srv), 256 + SIGKILL);
	CHECK(!access(again.path, F_OK));
	client_close(&cl);
	CHECK(server_start(&again, binary, NULL));
	EQ(server_stop(&again), 0);
	CHECK(access(again.path, F_OK));		/* removed at a proper end */
	args[1] = again.path;
	close(open(again.path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
	EQ(server_run(binary, args), 1);		/* somebody's file is not ours */
	CHECK(!access(again.path, F_OK));
	unlink(again.path);
}

static void t_once(void)
{
	static const char *const args[] = { "--once", NULL };

	CHECK(server_start(&srv, binary, args));
	CHECK(client_open(&cl, &srv));			/* a look is no client */
	client_close(&cl);
	CHECK(client_start(&cl, &srv));
	client_close(&cl);
	EQ(server_wait(&srv), 0);
}

static void t_terminate(void)
{
	up();
	set_reg(&cl, TM_BUSY, 1ull << 60);		/* at work, and a client connected */
	EQ(server_stop(&srv), 0);
	CHECK(access(srv.path, F_OK));
	CHECK(client_at_end(&cl));
	client_close(&cl);
	memset(&srv, 0, sizeof(srv));
	CHECK(server_start(&srv, binary, NULL));
	kill(srv.pid, SIGINT);
	EQ(server_wait(&srv), 0);
}

/* With standard streams closed, nothing that is said may end in device memory. */
static void t_closed_streams(void)
{
	char script[256], got[4096], zero[4096] = { 0 };
	const char *args[] = { "-c", script, NULL };

	server_path(&srv);
	snprintf(script, sizeof(script), "exec '%s' --socket '%s' <&- 2>&-", binary, srv.path);
	CHECK(server_spawn(&srv, "/bin/sh", args));
	CHECK(client_start(&cl, &srv));
	set_cfg(&cl, COMMAND, MEM, 2);
	kill(srv.pid, SIGUSR1);				/* it says that it has no waves */
	EQ(cfg(&cl, 0, 2), CSREC_PCI_VENDOR);
	EQ(cfg(&cl, 0, 2), CSREC_PCI_VENDOR);
	EQ(client_read(&cl, R_BAR2, 0, got, sizeof(got)), 0);
	EQ(memcmp(got, zero, sizeof(got)), 0);
	client_close(&cl);
	EQ(server_stop(&srv), 0);
}

static void t_options(void)
{
	static const char *const bad[][5] = {
		{ NULL }, { "--socket" }, { "--nonsense" }, { "--socket", "/tmp/x", "more" },
		{ "--socket", "/tmp/x", "--dram-size", "3M" },
		{ "--socket", "/tmp/x", "--dram-size", "64K" },
		{ "--socket", "/tmp/x", "--dram-size", "256X" },
		{ "--socket", "/tmp/x", "--dram-size", "-1" },
		{ "--socket", "/tmp/x", "--stall", "100" },
		{ "--socket", "/tmp/x", "--vectors", "0" },
		{ "--socket", "/tmp/x", "--bar2-size", "2K" },
		{ "--socket", "/tmp/x", "--bar2-size", "96K" },
		{ "--socket", "/tmp/x", "--bar2-size", "512M" },
		{ "--socket", "/tmp/x", "--serial", "x" },
		{ "--socket", "/tmp/x", "--host-latency", "0" },
		{ "--socket", "/tmp/x", "--host-bandwidth", "3.3" },
		{ "--socket", "/tmp/x", "--fst-window", "1:2" }, { "--socket", "" },
	};
	static const char *const help[] = { "--help", NULL }, *const version[] = { "-V", NULL };
	static const char *const fst[] = { "--socket", "/tmp/x", "--fst", "/tmp/x.fst", NULL };
	static const char *const all[] = { "--dram-size", "1M", "--dram-latency", "10",
		"--host-latency", "20", "--host-bandwidth", "3300", "--jitter", "3", "--stall",
		"5", "--seed", "7", "--trace-dma", "-v", "--ready-fd", "2", NULL };
	char long_path[200];
	const char *const too_long[] = { "--socket", long_path, NULL };

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		EQ(server_run(binary, bad[i]), 2);
	memset(long_path, 'x', sizeof(long_path) - 1);
	long_path[sizeof(long_path) - 1] = '\0';
	EQ(server_run(binary, too_long), 2);
	EQ(server_run(binary, help), 0);
	EQ(server_run(binary, version), 0);
	EQ(server_run(binary, fst), 1);			/* the test model has no waves */
	up_with(all);
	EQ(cfg(&cl, 0, 2), CSREC_PCI_VENDOR);
	CHECK(server_log_has(&srv, "listening"));	/* --ready-fd */
	CHECK(server_log_has(&srv, "VERSION"));		/* -v */
	kill(srv.pid, SIGUSR1);				/* no waves: said, not fatal */
	EQ(cfg(&cl, 0, 2), CSREC_PCI_VENDOR);
}

/*
 * The model runs while it has work and the process sleeps otherwise: counted in steps
 * and in returns of poll(), not in time.
 */
static void t_idle(void)
{
	long steps, wakeups, cycles;

	up();
	steps = server_stat(&srv, "steps");
	cycles = server_stat(&srv, "cycles");
	wakeups = server_stat(&srv, "wakeups");
	usleep(300000);					/* a spinning loop would show */
	CHECK(server_stat(&srv, "wakeups") - wakeups <= 2);
	EQ(server_stat(&srv, "steps"), steps);
	set_reg(&cl, TM_BUSY, 128 * 1000);
	while (reg(&cl, TM_BUSY))
		;
	EQ(server_stat(&srv, "cycles") - cycles, 128 * 1000);
	EQ(server_stat(&srv, "steps") - steps, 1000);
	/* Only a late answer is awaited: nothing to run either. */
	set_cfg(&cl, COMMAND, MEM | BME, 2);
	cl.serve = false;
	set_reg(&cl, TM_LEN, 8);
	set_reg(&cl, TM_GO, TM_GO_READ);
	CHECK(client_pump(&cl, 1));
	steps = server_stat(&srv, "steps");
	wakeups = server_stat(&srv, "wakeups");
	usleep(100000);
	CHECK(server_stat(&srv, "wakeups") - wakeups <= 2);
	EQ(server_stat(&srv, "steps"), steps);
}

/* A model that is always at work does not keep the client waiting. */
static void t_busy_serves(void)
{
	up();
	set_reg(&cl, TM_BUSY, 1ull << 60);
	for (uint64_t i = 0; i < 200; i++) {
		uint64_t steps = reg(&cl, TM_STEPS);

		set_reg(&cl, TM_SCRATCH, i);
		EQ(reg(&cl, TM_SCRATCH), i);
		/* and it goes on working between requests */
		CHECK(reg(&cl, TM_STEPS) > steps);
	}
}

static const struct { const char *name; void (*run)(void); } tests[] = {
	{ "version: the answer is never longer than the request", t_version_length },
	{ "version: capabilities are a subset of those offered", t_version_answer },
	{ "version: bad ones are refused and the connection closed", t_version_refused },
	{ "device info", t_device_info },
	{ "region info: sizes, flags, descriptor of BAR 2 only", t_region_info },
	{ "irq info", t_irq_info },
	{ "unknown and optional commands get an error", t_unknown },
	{ "region access: exact reply layout, 1 to 8 bytes (31)", t_reply_layout },
	{ "region access: out of bounds, odd sizes, lengths that lie", t_access_bounds },
	{ "BAR 2: message and mmap see the same memory", t_dram_bar },
	{ "memory enable off: reads all ones, writes dropped", t_memory_gate },
	{ "write multi: all or nothing", t_write_multi },
	{ "no-reply writes are done and not answered (34)", t_no_reply },
	{ "pipelined commands are answered in order", t_pipelined },
	{ "a client that does not read is not served without bound", t_backpressure },
	{ "config: identity is read-only", t_identity },
	{ "config: PM, PCIe, MSI-X and AER capabilities", t_capabilities },
	{ "config: extended capabilities, serial number", t_extended },
	{ "config: fewer vectors and a smaller BAR 2 than the device's", t_less },
	{ "config: BAR sizing", t_bars },
	{ "config: 8 GiB BAR", t_big_dram },
	{ "config: writes at odd offsets (30)", t_odd_config },
	{ "DMA through the mapping", t_dma_mapped },
	{ "DMA with a file offset; outside any range by message", t_dma_offset },
	{ "DMA by message: 64-bit counts, exact layout (32)", t_dma_message },
	{ "DMA by message: write replies of 0 and 12 bytes", t_dma_write_reply },
	{ "no region access waits for DMA; replies found among commands (26)", t_no_wait },
	{ "DMA by message: errors and malformed answers", t_dma_errors },
	{ "DMA by message: bounded number under way", t_dma_in_flight },
	{ "DMA to our own BAR 2 stays inside", t_own_bar },
	{ "bus mastering off: no DMA, no interrupt", t_bus_master },
	{ "DMA respects a range's rights", t_rights },
	{ "map: bad requests", t_map_errors },
	{ "map over an existing range: EEXIST", t_map_overlap },
	{ "unmap: never mapped ENOENT, zero size and cuts EINVAL (27)", t_unmap_errors },
	{ "unmap all, unmap of several", t_unmap_all },
	{ "unmap releases the memory before it is answered (35)", t_unmap_releases },
	{ "descriptor belongs to its own message", t_fd_attribution },
	{ "reboot churn of maps (28)", t_reboot_churn },
	{ "file truncated under a mapping: bus error", t_truncated_file },
	{ "share=off is found and refused", t_not_shared },
	{ "share=off and empty pages: DMA is right until it is found", t_not_shared_sparse },
	{ "shared memory the guest writes to all the time is no false alarm", t_shared_but_busy },
	{ "shared pages half busy, half still are no false alarm", t_shared_half_busy },
	{ "shared words that flip and flip back are no false alarm", t_shared_flip },
	{ "client without DMA_READ: served with a warning", t_cannot_check },
	{ "MSI-X: eventfds one by one, in runs, off", t_msix },
	{ "MSI-X: pending bits, replaced and masked vectors (21)", t_msix_pending },
	{ "MSI-X: bad requests", t_msix_errors },
	{ "MSI-X: triggered by the client", t_irq_trigger },
	{ "an eventfd that is full or no eventfd never blocks", t_irq_never_blocks },
	{ "what is no eventfd is not written to", t_irq_no_write },
	{ "data is visible before its interrupt (20)", t_data_before_irq },
	{ "function-level reset, with DMA outstanding", t_flr },
	{ "device reset is idempotent", t_device_reset },
	{ "D3hot and back", t_power },
	{ "disconnect clears ranges, vectors, state; accepted again (29)", t_reconnect },
	{ "client vanishes within a message, with DMA, at work", t_vanish },
	{ "a second client waits until the first leaves", t_second_client },
	{ "malformed messages close that connection only", t_malformed },
	{ "two servers at once, one writing into the other's BAR", t_two_servers },
	{ "socket in use, left behind, not a socket", t_socket_file },
	{ "--once", t_once },
	{ "SIGTERM and SIGINT end it cleanly", t_terminate },
	{ "options", t_options },
	{ "closed standard streams", t_closed_streams },
	{ "idle: no steps, no wakeups", t_idle },
	{ "busy: the client is served between steps", t_busy_serves },
};

int main(int argc, char **argv)
{
	const size_t n = sizeof(tests) / sizeof(tests[0]);
	const char *only = argc > 2 ? argv[2] : NULL;
	int bad = 0;

	if (argc < 2) {
		fprintf(stderr, "usage: test_server SERVER [NAME-PART]\n");
		return 2;
	}
	binary = argv[1];
	signal(SIGPIPE, SIG_IGN);
	printf("1..%zu\n", n);
	for (size_t i = 0; i < n; i++) {
		if (only && !strstr(tests[i].name, only)) {
			printf("ok %zu - %s # SKIP not asked for\n", i + 1, tests[i].name);
			continue;
		}
		failed = false;
		memset(&srv, 0, sizeof(srv));
		memset(&cl, 0, sizeof(cl));
		cl.fd = -1;
		alarm(120);		/* hung, whoever is to blame */
		tests[i].run();
		client_close(&cl);
		/* A sanitizer's report ends the server with another code than 0. */
		if (srv.pid && server_stop(&srv)) {
			printf("# server did not end well\n");
			failed = true;
		}
		unlink(srv.log);
		printf("%sok %zu - %s\n", failed ? "not " : "", i + 1, tests[i].name);
		fflush(stdout);
		bad += failed;
	}
	return bad ? 1 : 0;
}
