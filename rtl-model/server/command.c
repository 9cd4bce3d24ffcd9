// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The client's commands. Each is answered before the next is looked at, and none
 * waits for anything: a client that reads a register holds its machine's big lock
 * until we answer, and serves no DMA meanwhile.
 */
#define _GNU_SOURCE
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "server.h"

static void reply2(struct server *s, const void *a, size_t alen, const void *b, size_t blen,
		   int fd)
{
	struct vfu_hdr hdr = {
		.id = s->hdr.id, .cmd = s->hdr.cmd, .flags = VFU_F_REPLY,
		.size = (uint32_t)(sizeof(hdr) + alen + blen),
	};

	if (!(s->hdr.flags & VFU_F_NO_REPLY))
		conn_send(s, &hdr, a, alen, b, blen, fd);
}

static void reply(struct server *s, const void *body, size_t len)
{
	reply2(s, body, len, NULL, 0, -1);
}

static void reply_error(struct server *s, int err)
{
	struct vfu_hdr hdr = {
		.id = s->hdr.id, .cmd = s->hdr.cmd, .size = sizeof(hdr),
		.flags = VFU_F_REPLY | VFU_F_ERROR, .err = (uint32_t)err,
	};

	debug(s, "  command %u: error %s", s->hdr.cmd, strerrorname_np(err));
	if (!(s->hdr.flags & VFU_F_NO_REPLY))
		conn_send(s, &hdr, NULL, 0, NULL, 0, -1);
}

/* A non-negative number that follows "name": in the client's JSON, or @otherwise. */
static uint64_t json_number(const char *json, const char *name, uint64_t otherwise)
{
	char quoted[40];
	const char *p;

	snprintf(quoted, sizeof(quoted), "\"%s\"", name);
	p = strstr(json, quoted);
	if (!p)
		return otherwise;
	p += strlen(quoted);
	p += strspn(p, " \t\r\n");
	if (*p++ != ':')
		return otherwise;
	p += strspn(p, " \t\r\n");
	return isdigit((unsigned char)*p) ? strtoull(p, NULL, 10) : otherwise;
}

static void version(struct server *s, size_t len)
{
	const struct vfu_version *v = (const void *)s->payload;
	const struct vfu_version answer = { VFU_MAJOR, VFU_MINOR };
	char json[128];
	size_t jlen = 0;

	if (s->negotiated || len < sizeof(*v)) {
		reply_error(s, EINVAL);
		return;
	}
	debug(s, "VERSION %u.%u %.*s", v->major, v->minor, (int)(len - sizeof(*v)), v->json);
	if (v->major != VFU_MAJOR) {
		say(s, "client speaks vfio-user %u.%u, this server %u.%u", v->major, v->minor,
		    VFU_MAJOR, VFU_MINOR);
		reply_error(s, EPROTONOSUPPORT);
		return;
	}
	if (len > sizeof(*v)) {
		if (v->json[len - sizeof(*v) - 1] != '\0') {
			reply_error(s, EINVAL);
			return;
		}
		if (json_number(v->json, "max_data_xfer_size", 1 << 20) < DMA_MAX) {
			say(s, "client takes less than %u bytes a message", DMA_MAX);
			reply_error(s, EINVAL);
			return;
		}
		/*
		 * Only what the client offered, and never longer than its own: QEMU's
		 * receive buffer is as long as what it sent.
		 */
		jlen = 1 + (size_t)snprintf(json, sizeof(json),
			"{\"capabilities\":{\"max_msg_fds\":%d,\"max_data_xfer_size\":%u%s}}",
			MAX_FDS, MAX_XFER, strstr(v->json, "\"write_multiple\"") ?
			",\"write_multiple\":true" : "");
		if (jlen > len - sizeof(*v))
			jlen = 0;
	}
	s->negotiated = true;
	s->stats.clients++;
	reply2(s, &answer, sizeof(answer), json, jlen, -1);
}

static void do_map(struct server *s, size_t len)
{
	struct vfu_dma_map m;
	int rc, fd;

	if (len != sizeof(m) || s->nfds > 1) {
		reply_error(s, EINVAL);
		return;
	}
	memcpy(&m, s->payload, sizeof(m));
	debug(s, "DMA_MAP iova %#" PRIx64 " size %#" PRIx64 " flags %u offset %#" PRIx64 "%s",
	      m.iova, m.size, m.flags, m.offset, s->nfds ? " fd" : "");
	fd = s->nfds ? s->fds[0] : -1;
	rc = m.argsz < sizeof(m) ? -EINVAL : dma_map(s, &m, fd);
	if (rc)
		reply_error(s, -rc);
	else
		reply(s, NULL, 0);
}

static void do_unmap(struct server *s, size_t len)
{
	struct vfu_dma_unmap u;
	int rc;

	if (len < sizeof(u)) {
		reply_error(s, EINVAL);
		return;
	}
	memcpy(&u, s->payload, sizeof(u));
	debug(s, "DMA_UNMAP iova %#" PRIx64 " size %#" PRIx64 " flags %u", u.iova, u.size, u.flags);
	rc = u.argsz < sizeof(u) ? -EINVAL : dma_unmap(s, &u);
	if (rc)
		reply_error(s, -rc);
	else
		reply(s, &u, sizeof(u));
}

static void get_info(struct server *s, size_t len)
{
	struct vfu_device_info info;

	if (len < sizeof(info)) {
		reply_error(s, EINVAL);
		return;
	}
	memcpy(&info, s->payload, sizeof(info));
	if (info.argsz < sizeof(info)) {
		reply_error(s, EINVAL);
		return;
	}
	info = (struct vfu_device_info) {
		.argsz = sizeof(info),
		.flags = VFU_DEVICE_RESETS | VFU_DEVICE_PCI,
		.num_regions = VFU_NUM_REGIONS,
		.num_irqs = VFU_NUM_IRQS,
	};
	debug(s, "GET_INFO");
	reply(s, &info, sizeof(info));
}

static uint64_t region_size(const struct server *s, uint32_t index)
{
	switch (index) {
	case VFU_BAR0:
		return CSREC_BAR_REG_SIZE;
	case VFU_BAR2:
		return s->bar2_size;
	case VFU_CONFIG:
		return CFG_SIZE;
	default:
		return 0;
	}
}

static void get_region_info(struct server *s, size_t len)
{
	struct vfu_region_info in, out = { .argsz = sizeof(out) };
	int fd = -1;

	if (len < sizeof(in)) {
		reply_error(s, EINVAL);
		return;
	}
	memcpy(&in, s->payload, sizeof(in));
	debug(s, "GET_REGION_INFO argsz %u index %u", in.argsz, in.index);
	if (in.argsz < sizeof(in) || in.index >= VFU_NUM_REGIONS) {
		reply_error(s, EINVAL);
		return;
	}
	out.index = in.index;
	out.size = region_size(s, in.index);
	if (out.size)
		out.flags = VFU_REGION_F_READ | VFU_REGION_F_WRITE;
	if (in.index == VFU_BAR2) {
		out.flags |= VFU_REGION_F_MMAP;
		fd = s->dram_fd;
	}
	reply2(s, &out, sizeof(out), NULL, 0, fd);
}

static void get_irq_info(struct server *s, size_t len)
{
	struct vfu_irq_info info;

	if (len < sizeof(info)) {
		reply_error(s, EINVAL);
		return;
	}
	memcpy(&info, s->payload, sizeof(info));
	debug(s, "GET_IRQ_INFO index %u", info.index);
	if (info.argsz < sizeof(info) || info.index >= VFU_NUM_IRQS) {
		reply_error(s, EINVAL);
		return;
	}
	info.argsz = sizeof(info);
	info.flags = info.index == VFU_MSIX ? VFU_IRQ_F_EVENTFD : 0;
	info.count = info.index == VFU_MSIX ? s->nvec : 0;
	reply(s, &info, sizeof(info));
}

static void set_irqs(struct server *s, size_t len)
{
	struct vfu_set_irqs *set = (void *)s->payload;
	int rc;

	if (len < sizeof(*set)) {
		reply_error(s, EINVAL);
		return;
	}
	debug(s, "SET_IRQS flags %#x index %u start %u count %u fds %u", set->flags, set->index,
	      set->start, set->count, s->nfds);
	rc = irq_set(s, set, len - sizeof(*set));
	if (rc)
		reply_error(s, -rc);
	else
		reply(s, NULL, 0);
}

/* BAR 0: the MSI-X structures are ours, the rest is the model's. */
static uint64_t reg_read(struct server *s, uint32_t off, unsigned int len)
{
	const uint32_t pba = CSREC_MSIX_PBA_OFFSET, table = CSREC_MSIX_TABLE_OFFSET;
	const uint32_t pba_size = (s->nvec + 63) / 64 * 8;
	uint64_t val;

	if (off >= pba && off < pba + pba_size)
		return irq_pba(s, (off - pba) / 8) >> (off % 8 * 8);
	/* The client keeps the table: only its eventfds reach us. */
	if (off >= table && off < table + s->nvec * 16)
		return 0;
	val = csrec_model_read(s->model, off, len);
	return val;
}

static void reg_write(struct server *s, uint32_t off, unsigned int len, uint64_t val)
{
	const uint32_t pba = CSREC_MSIX_PBA_OFFSET, table = CSREC_MSIX_TABLE_OFFSET;

	if ((off >= pba && off < pba + (s->nvec + 63) / 64 * 8) ||
	    (off >= table && off < table + s->nvec * 16))
		return;
	csrec_model_write(s->model, off, len, val);
}

static bool access_ok(const struct server *s, const struct vfu_region_rw *rw)
{
	uint64_t size;

	if (rw->region >= VFU_NUM_REGIONS || !rw->count || rw->count > MAX_XFER)
		return false;
	size = region_size(s, rw->region);
	if (rw->count > size || rw->offset > size - rw->count)
		return false;
	/* Registers are reached by what a CPU can do in one access. */
	if (rw->region == VFU_BAR0)
		return rw->count <= 8 && !(rw->count & (rw->count - 1)) &&
		       rw->offset % rw->count == 0;
	return true;
}

static void region_read(struct server *s, size_t len)
{
	static uint8_t data[MAX_XFER];
	struct vfu_region_rw rw;
	uint64_t val;

	if (len < sizeof(rw)) {
		reply_error(s, EINVAL);
		return;
	}
	memcpy(&rw, s->payload, sizeof(rw));
	if (!access_ok(s, &rw)) {
		debug(s, "REGION_READ region %u offset %#" PRIx64 " count %u refused", rw.region,
		      rw.offset, rw.count);
		reply_error(s, EINVAL);
		return;
	}
	if (rw.region == VFU_CONFIG) {
		cfg_read(s, (uint32_t)rw.offset, data, rw.count);
	} else if (!cfg_memory_on(s)) {
		memset(data, 0xff, rw.count);	/* nobody answers on the bus */
	} else if (rw.region == VFU_BAR0) {
		val = reg_read(s, (uint32_t)rw.offset, rw.count);
		memcpy(data, &val, rw.count);
	} else {
		memcpy(data, s->dram + rw.offset, rw.count);
	}
	if (s->verbose) {
		val = 0;
		memcpy(&val, data, rw.count < 8 ? rw.count : 8);
		debug(s, "REGION_READ region %u offset %#" PRIx64 " count %u -> %#" PRIx64,
		      rw.region, rw.offset, rw.count, val);
	}
	reply2(s, &rw, sizeof(rw), data, rw.count, -1);
}

/* @rw is a valid access. */
static void write_one(struct server *s, const struct vfu_region_rw *rw, const uint8_t *data)
{
	uint64_t val = 0;

	memcpy(&val, data, rw->count < 8 ? rw->count : 8);
	debug(s, "REGION_WRITE region %u offset %#" PRIx64 " count %u <- %#" PRIx64, rw->region,
	      rw->offset, rw->count, val);
	if (rw->region == VFU_CONFIG)
		cfg_write(s, (uint32_t)rw->offset, data, rw->count);
	else if (!cfg_memory_on(s))
		return;
	else if (rw->region == VFU_BAR0)
		reg_write(s, (uint32_t)rw->offset, rw->count, val);
	else
		memcpy(s->dram + rw->offset, data, rw->count);
}

static void region_write(struct server *s, size_t len)
{
	struct vfu_region_rw rw;

	if (len < sizeof(rw)) {
		reply_error(s, EINVAL);
		return;
	}
	memcpy(&rw, s->payload, sizeof(rw));
	if (!access_ok(s, &rw) || len - sizeof(rw) != rw.count) {
		debug(s, "REGION_WRITE region %u offset %#" PRIx64 " count %u refused", rw.region,
		      rw.offset, rw.count);
		reply_error(s, EINVAL);
		return;
	}
	write_one(s, &rw, s->payload + sizeof(rw));
	reply(s, &rw, sizeof(rw));
}

/* All or nothing. */
static void region_write_multi(struct server *s, size_t len)
{
	const struct vfu_write_multi *m = (const void *)s->payload;

	if (len < sizeof(*m) || m->count > VFU_WRITE_MULTI_MAX ||
	    len - sizeof(*m) != m->count * sizeof(m->w[0])) {
		reply_error(s, EINVAL);
		return;
	}
	for (int pass = 0; pass < 2; pass++) {
		for (uint64_t i = 0; i < m->count; i++) {
			const struct vfu_region_rw rw = {
				m->w[i].offset, m->w[i].region, m->w[i].count,
			};

			if (pass) {
				write_one(s, &rw, m->w[i].data);
			} else if (!access_ok(s, &rw) || rw.count > 8) {
				reply_error(s, EINVAL);
				return;
			}
		}
	}
	reply(s, &m->count, sizeof(m->count));
}

static void device_reset(struct server *s)
{
	debug(s, "DEVICE_RESET");
	cfg_init(s);
	server_reset_model(s);
	reply(s, NULL, 0);
}

void command(struct server *s, size_t len)
{
	uint16_t cmd = s->hdr.cmd;

	if (!s->negotiated) {
		if (cmd == VFU_VERSION)
			version(s, len);
		else
			reply_error(s, EINVAL);
		if (!s->negotiated) {
			conn_writable(s);	/* the error, if the client still reads */
			conn_close(s, "no version agreed");
		}
		return;
	}
	if (s->nfds && cmd != VFU_DMA_MAP && cmd != VFU_SET_IRQS) {
		reply_error(s, EINVAL);
		return;
	}
	switch (cmd) {
	case VFU_VERSION:
		version(s, len);
		break;
	case VFU_DMA_MAP:
		do_map(s, len);
		break;
	case VFU_DMA_UNMAP:
		do_unmap(s, len);
		break;
	case VFU_GET_INFO:
		get_info(s, len);
		break;
	case VFU_GET_REGION_INFO:
		get_region_info(s, len);
		break;
	case VFU_GET_IRQ_INFO:
		get_irq_info(s, len);
		break;
	case VFU_SET_IRQS:
		set_irqs(s, len);
		break;
	case VFU_REGION_READ:
		region_read(s, len);
		break;
	case VFU_REGION_WRITE:
		region_write(s, len);
		break;
	case VFU_DEVICE_RESET:
		device_reset(s);
		break;
	case VFU_REGION_WRITE_MULTI:
		region_write_multi(s, len);
		break;
	case VFU_GET_REGION_IO_FDS:	/* optional, not offered */
	case VFU_DEVICE_FEATURE:	/* all of them are about migration */
	case VFU_MIG_DATA_READ:
	case VFU_MIG_DATA_WRITE:
		reply_error(s, ENOTTY);
		break;
	default:
		reply_error(s, ENOSYS);
	}
}
