// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * MSI-X. The client emulates the table; a vector is for us an eventfd that may come,
 * change and go at any time. What cannot be delivered stays pending, shows in the PBA
 * and is delivered once it can be: an interrupt may be late but is never lost.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "server.h"

void irq_init(struct server *s)
{
	for (unsigned int i = 0; i < MAX_VECTORS; i++) {
		s->irq_fd[i] = -1;
		s->irq_masked[i] = false;
	}
	irq_reset(s);
}

void irq_reset(struct server *s)
{
	memset(s->irq_pending, 0, sizeof(s->irq_pending));
}

static void set_fd(struct server *s, unsigned int vec, int fd)
{
	if (s->irq_fd[vec] >= 0)
		close(s->irq_fd[vec]);
	s->irq_fd[vec] = fd;
}

void irq_release(struct server *s)
{
	for (unsigned int i = 0; i < MAX_VECTORS; i++)
		set_fd(s, i, -1);
	irq_init(s);
}

int irq_open(struct server *s)
{
	s->irq_null = open("/dev/null", O_RDONLY | O_CLOEXEC);
	if (s->irq_null < 0 || syscall(SYS_io_setup, 1, &s->irq_aio))
		return -errno;
	return 0;
}

static bool deliverable(const struct server *s, unsigned int vec)
{
	return s->irq_fd[vec] >= 0 && !s->irq_masked[vec] && cfg_master_on(s);
}

static void deliver(struct server *s, unsigned int vec)
{
	/*
	 * What completes an AIO request tells its eventfd without ever waiting. A write could
	 * wait, even after a poll(): whether it may is a flag that the client has as well.
	 */
	struct iocb nothing = {
		.aio_lio_opcode = IOCB_CMD_PREAD, .aio_fildes = s->irq_null,
		.aio_flags = IOCB_FLAG_RESFD, .aio_resfd = s->irq_fd[vec],
	}, *list = &nothing;
	struct io_event done;

	s->stats.irqs++;
	debug(s, "interrupt, vector %u", vec);
	/*
	 * A full eventfd is one that the client has yet to notice: this interrupt merges
	 * with that one. Any other kind of file is the client's mistake, and refused.
	 */
	if (syscall(SYS_io_submit, s->irq_aio, 1L, &list) != 1 ||
	    syscall(SYS_io_getevents, s->irq_aio, 1L, 1L, &done, NULL) != 1)
		debug(s, "vector %u: %s", vec, strerror(errno));
}

void irq_raise(struct server *s, unsigned int vec)
{
	if (vec >= s->nvec) {
		debug(s, "model raised vector %u of %u", vec, s->nvec);
		return;
	}
	if (deliverable(s, vec)) {
		deliver(s, vec);
	} else {
		s->irq_pending[vec / 64] |= 1ull << vec % 64;
		s->stats.irqs_held++;
		debug(s, "interrupt, vector %u: pending", vec);
	}
}

void irq_flush(struct server *s)
{
	for (unsigned int i = 0; i < s->nvec; i++) {
		if (!(s->irq_pending[i / 64] >> i % 64 & 1) || !deliverable(s, i))
			continue;
		s->irq_pending[i / 64] &= ~(1ull << i % 64);
		deliver(s, i);
	}
}

uint64_t irq_pba(const struct server *s, unsigned int word)
{
	return s->irq_pending[word];
}

/* SET_IRQS; takes from s->fds what it keeps. */
int irq_set(struct server *s, const struct vfu_set_irqs *set, size_t datalen)
{
	uint32_t data = set->flags & VFU_IRQ_DATA, action = set->flags & VFU_IRQ_ACTION;
	bool have_fds = data == VFU_IRQ_DATA_EVENTFD;

	if (set->argsz < sizeof(*set) || set->index >= VFU_NUM_IRQS ||
	    (set->flags & ~(uint32_t)(VFU_IRQ_DATA | VFU_IRQ_ACTION)))
		return -EINVAL;
	if (!data || (data & (data - 1)) || !action || (action & (action - 1)))
		return -EINVAL;
	if (datalen != (data == VFU_IRQ_DATA_BOOL ? set->count : 0))
		return -EINVAL;
	if (s->nfds && (!have_fds || s->nfds != set->count))
		return -EINVAL;
	if (set->index != VFU_MSIX) {
		/* Switching off what is not there is harmless, and clients do it. */
		return set->count == 0 && data == VFU_IRQ_DATA_NONE ? 0 : -EINVAL;
	}
	if (set->start > s->nvec || set->count > s->nvec - set->start)
		return -EINVAL;
	if (have_fds && action != VFU_IRQ_TRIGGER)
		return -ENOTTY;		/* nobody is told about masking */
	if (set->count == 0) {
		if (data != VFU_IRQ_DATA_NONE || set->start)
			return -EINVAL;
		for (unsigned int i = 0; i < s->nvec; i++) {
			if (action == VFU_IRQ_TRIGGER)
				set_fd(s, i, -1);
			else
				s->irq_masked[i] = action == VFU_IRQ_MASK;
		}
		irq_flush(s);
		return 0;
	}
	for (uint32_t i = 0; i < set->count; i++) {
		uint32_t vec = set->start + i;

		if (have_fds) {
			set_fd(s, vec, s->nfds ? s->fds[i] : -1);
			if (s->nfds)
				s->fds[i] = -1;
		} else if (data == VFU_IRQ_DATA_BOOL && !set->data[i]) {
			continue;
		} else if (action == VFU_IRQ_TRIGGER) {
			irq_raise(s, vec);
		} else {
			s->irq_masked[vec] = action == VFU_IRQ_MASK;
		}
	}
	irq_flush(s);
	return 0;
}
