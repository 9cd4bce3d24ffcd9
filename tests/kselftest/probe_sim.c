// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * A device with whatever is wrong with it: the golden model behind the server, with calls
 * between them intercepted (--wrap). For probe.c.
 *
 * What is fixed for the life of a device comes from the environment: CSREC_TEST_BAR0,
 * CSREC_TEST_BAR2 sizes of the BARs, CSREC_TEST_MSIX vectors in the MSI-X table.
 *
 * The rest is asked for by writing to configuration space, where the device has nothing:
 *
 *   0x800	what; takes effect when written	(4 bytes)
 *		0: the truth again
 *		1 | reg << 8: this register reads as the value, beside others asked for before
 *		2: all registers read as all ones, after count reads
 *		3: doorbells reach nothing
 *   0x804	count				(4 bytes)
 *   0x808	value				(8 bytes)
 *   0x810	reads of registers since the last write to 0x800 (4 bytes, read-only)
 */
#include <stdlib.h>
#include <string.h>

#include "server.h"

#define WINDOW		0x800
#define WINDOW_READS	0x810

void __real_cfg_read(struct server *s, uint32_t off, void *buf, uint32_t len);
void __wrap_cfg_read(struct server *s, uint32_t off, void *buf, uint32_t len);
void __real_cfg_write(struct server *s, uint32_t off, const void *buf, uint32_t len);
void __wrap_cfg_write(struct server *s, uint32_t off, const void *buf, uint32_t len);
void __real_conn_send(struct server *s, const struct vfu_hdr *hdr, const void *a, size_t alen,
		      const void *b, size_t blen, int fd);
void __wrap_conn_send(struct server *s, const struct vfu_hdr *hdr, const void *a, size_t alen,
		      const void *b, size_t blen, int fd);
uint64_t __real_csrec_model_read(struct csrec_model *m, uint32_t off, unsigned int len);
uint64_t __wrap_csrec_model_read(struct csrec_model *m, uint32_t off, unsigned int len);
void __real_csrec_model_write(struct csrec_model *m, uint32_t off, unsigned int len,
			      uint64_t val);
void __wrap_csrec_model_write(struct csrec_model *m, uint32_t off, unsigned int len,
			      uint64_t val);

static struct {
	uint32_t what, count;
	uint64_t value;
} window;

static struct {
	uint32_t reg;
	uint64_t value;
} lies[8];

static unsigned int nlies;
static bool ones, deaf, started;
static uint32_t ones_after, reads;

static uint64_t setting(const char *name, uint64_t otherwise)
{
	const char *text = getenv(name);

	return text ? strtoull(text, NULL, 0) : otherwise;
}

void __wrap_cfg_write(struct server *s, uint32_t off, const void *buf, uint32_t len)
{
	if (off < WINDOW || off + len > WINDOW + sizeof(window)) {
		__real_cfg_write(s, off, buf, len);
		return;
	}
	memcpy((uint8_t *)&window + off - WINDOW, buf, len);
	if (off != WINDOW)
		return;
	reads = 0;
	switch (window.what & 0xff) {
	case 0:
		nlies = 0;
		ones = false;
		deaf = false;
		break;
	case 1:
		if (nlies < sizeof(lies) / sizeof(lies[0])) {
			lies[nlies].reg = window.what >> 8;
			lies[nlies++].value = window.value;
		}
		break;
	case 2:
		ones = true;
		ones_after = window.count;
		break;
	case 3:
		deaf = true;
		break;
	}
}

void __wrap_cfg_read(struct server *s, uint32_t off, void *buf, uint32_t len)
{
	__real_cfg_read(s, off, buf, len);
	if (off == WINDOW_READS && len == sizeof(reads))
		memcpy(buf, &reads, len);
}

/* The server itself asks once, before there is a client, how many vectors there are. */
uint64_t __wrap_csrec_model_read(struct csrec_model *m, uint32_t off, unsigned int len)
{
	uint64_t val = __real_csrec_model_read(m, off, len);

	if (!started) {
		const uint64_t mask = 0xffull << CSREC_CAPQ_VECTORS_SHIFT;

		started = true;
		return (val & ~mask) |
		       setting("CSREC_TEST_MSIX", (val & mask) >> CSREC_CAPQ_VECTORS_SHIFT)
		       << CSREC_CAPQ_VECTORS_SHIFT;
	}
	reads++;
	if (ones && reads > ones_after)
		return ~0ull;
	for (unsigned int i = 0; i < nlies; i++)
		if (lies[i].reg == off && len == 8)
			val = lies[i].value;
	return val;
}

void __wrap_csrec_model_write(struct csrec_model *m, uint32_t off, unsigned int len, uint64_t val)
{
	if (!deaf || off < CSREC_MSIX_PBA_OFFSET)
		__real_csrec_model_write(m, off, len, val);
}

/* Answers about BARs on their way to the client. */
void __wrap_conn_send(struct server *s, const struct vfu_hdr *hdr, const void *a, size_t alen,
		      const void *b, size_t blen, int fd)
{
	struct vfu_region_info info;

	if (hdr->cmd == VFU_GET_REGION_INFO && alen == sizeof(info)) {
		memcpy(&info, a, sizeof(info));
		if (info.index == VFU_BAR0)
			info.size = setting("CSREC_TEST_BAR0", info.size);
		if (info.index == VFU_BAR2)
			info.size = setting("CSREC_TEST_BAR2", info.size);
		if (!info.size) {
			info.flags = 0;
			fd = -1;
		}
		a = &info;
	}
	__real_conn_send(s, hdr, a, alen, b, blen, fd);
}
