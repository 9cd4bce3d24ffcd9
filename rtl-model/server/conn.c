// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The client's socket. A message is read header first, then exactly its body:
 * file descriptors that come with a later message can then never be taken for
 * this one's. Nothing here blocks.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "server.h"

/* One client must not keep the model from running. */
#define MESSAGES_PER_TURN	64

struct out_buf {
	struct out_buf *next;
	size_t len, sent;
	int fd;		/* borrowed */
	uint8_t data[];
};

void close_fds(int *fd, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++) {
		if (fd[i] >= 0)
			close(fd[i]);
		fd[i] = -1;
	}
}

static void message_done(struct server *s)
{
	close_fds(s->fds, s->nfds);	/* those nobody took */
	s->nfds = 0;
	s->got = 0;
}

static void out_free(struct server *s)
{
	while (s->out) {
		struct out_buf *o = s->out;

		s->out = o->next;
		free(o);
	}
	s->out_tail = &s->out;
	s->out_bytes = 0;
}

void conn_accept(struct server *s)
{
	s->fd = accept4(s->listen_fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	if (s->fd < 0)
		return;
	s->negotiated = false;
	s->got = 0;
	s->nfds = 0;
	s->out_tail = &s->out;
	debug(s, "client connected");
}

/*
 * The client is a machine, and it went away: what comes next is a machine that is
 * just being switched on.
 */
void conn_close(struct server *s, const char *why)
{
	bool was_client = s->negotiated;

	if (s->fd < 0)
		return;
	debug(s, "client gone: %s", why);
	message_done(s);
	out_free(s);
	close(s->fd);
	s->fd = -1;
	s->negotiated = false;
	dma_drop(s);
	dma_unmap_all(s);
	irq_release(s);
	cfg_init(s);
	server_reset_model(s);
	if (was_client) {
		server_clear_dram(s);
		s->quit |= s->once;
	}
}

bool conn_may_read(const struct server *s)
{
	return s->out_bytes < MAX_OUT;
}

/* Returns bytes taken by the socket, or -1. */
static ssize_t send_some(int sock, const uint8_t *data, size_t len, int fd)
{
	union {
		struct cmsghdr align;
		char buf[CMSG_SPACE(sizeof(int))];
	} ctl;
	struct iovec iov = { .iov_base = (void *)data, .iov_len = len };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	ssize_t n;

	if (fd >= 0) {
		struct cmsghdr *c;

		memset(&ctl, 0, sizeof(ctl));
		msg.msg_control = ctl.buf;
		msg.msg_controllen = sizeof(ctl.buf);
		c = CMSG_FIRSTHDR(&msg);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(c), &fd, sizeof(int));
	}
	do {
		n = sendmsg(sock, &msg, MSG_NOSIGNAL | MSG_DONTWAIT);
	} while (n < 0 && errno == EINTR);
	return n;
}

void conn_writable(struct server *s)
{
	while (s->fd >= 0 && s->out) {
		struct out_buf *o = s->out;
		ssize_t n = send_some(s->fd, o->data + o->sent, o->len - o->sent, o->fd);

		if (n < 0) {
			if (errno != EAGAIN && errno != EWOULDBLOCK)
				conn_close(s, strerror(errno));
			return;
		}
		o->fd = -1;	/* went with the first byte */
		o->sent += (size_t)n;
		s->out_bytes -= (size_t)n;
		if (o->sent < o->len)
			return;
		s->out = o->next;
		if (!s->out)
			s->out_tail = &s->out;
		free(o);
	}
}

/* Only queues: the event loop sends, and finds out there when the client is gone. */
void conn_send(struct server *s, const struct vfu_hdr *hdr, const void *a, size_t alen,
	       const void *b, size_t blen, int fd)
{
	size_t len = sizeof(*hdr) + alen + blen;
	struct out_buf *o;

	if (s->fd < 0)
		return;
	o = malloc(sizeof(*o) + len);
	if (!o) {
		say(s, "out of memory");
		s->exit_code = EXIT_ERROR;
		s->quit = true;
		return;
	}
	o->next = NULL;
	o->len = len;
	o->sent = 0;
	o->fd = fd;
	memcpy(o->data, hdr, sizeof(*hdr));
	if (alen)
		memcpy(o->data + sizeof(*hdr), a, alen);
	if (blen)
		memcpy(o->data + sizeof(*hdr) + alen, b, blen);
	*s->out_tail = o;
	s->out_tail = &o->next;
	s->out_bytes += len;
}

/* Returns bytes read into @buf; 0 for none now; -1 when the connection is over. */
static ssize_t receive(struct server *s, void *buf, size_t len)
{
	union {
		struct cmsghdr align;
		char buf[CMSG_SPACE(MAX_FDS * sizeof(int))];
	} ctl;
	struct iovec iov = { .iov_base = buf, .iov_len = len };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = ctl.buf,
			      .msg_controllen = sizeof(ctl.buf) };
	bool too_many = false;
	ssize_t n;

	do {
		n = recvmsg(s->fd, &msg, MSG_CMSG_CLOEXEC);
	} while (n < 0 && errno == EINTR);
	if (n < 0) {
		if (errno == EAGAIN || errno == EWOULDBLOCK)
			return 0;
		conn_close(s, strerror(errno));
		return -1;
	}
	for (struct cmsghdr *c = CMSG_FIRSTHDR(&msg); c; c = CMSG_NXTHDR(&msg, c)) {
		size_t nfds;

		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		nfds = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		for (size_t i = 0; i < nfds; i++) {
			int fd;

			memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(int));
			if (s->nfds < MAX_FDS) {
				s->fds[s->nfds++] = fd;
			} else {
				close(fd);
				too_many = true;
			}
		}
	}
	if (n == 0) {
		conn_close(s, s->got ? "end of file within a message" : "end of file");
		return -1;
	}
	if (too_many || (msg.msg_flags & MSG_CTRUNC)) {
		conn_close(s, "too many file descriptors in one message");
		return -1;
	}
	return n;
}

/* A bad header leaves no way to find the next message: answer and close. */
static void refuse_header(struct server *s, int err, const char *why)
{
	struct vfu_hdr reply = {
		.id = s->hdr.id, .cmd = s->hdr.cmd, .size = sizeof(reply),
		.flags = VFU_F_REPLY | VFU_F_ERROR, .err = (uint32_t)err,
	};

	say(s, "message %u, command %u: %s", s->hdr.id, s->hdr.cmd, why);
	if ((s->hdr.flags & VFU_F_TYPE) == VFU_F_COMMAND) {
		conn_send(s, &reply, NULL, 0, NULL, 0, -1);
		conn_writable(s);
	}
	conn_close(s, why);
}

/* Returns false when there is nothing more to do for now. */
static bool read_message(struct server *s)
{
	size_t body;
	ssize_t n;

	while (s->got < sizeof(s->hdr)) {
		n = receive(s, (uint8_t *)&s->hdr + s->got, sizeof(s->hdr) - s->got);
		if (n <= 0)
			return false;
		s->got += (size_t)n;
	}
	if (s->hdr.size < sizeof(s->hdr)) {
		refuse_header(s, EINVAL, "size below that of a header");
		return false;
	}
	body = s->hdr.size - sizeof(s->hdr);
	if (body > MAX_PAYLOAD) {
		refuse_header(s, E2BIG, "message too large");
		return false;
	}
	while (s->got < s->hdr.size) {
		size_t have = s->got - sizeof(s->hdr);

		n = receive(s, s->payload + have, body - have);
		if (n <= 0)
			return false;
		s->got += (size_t)n;
	}
	s->stats.messages++;
	switch (s->hdr.flags & VFU_F_TYPE) {
	case VFU_F_COMMAND:
		command(s, body);
		break;
	case VFU_F_REPLY:
		dma_reply(s, body);
		break;
	default:
		refuse_header(s, EINVAL, "neither command nor reply");
		return false;
	}
	if (s->fd < 0)
		return false;
	message_done(s);
	return true;
}

void conn_readable(struct server *s)
{
	for (int i = 0; i < MESSAGES_PER_TURN && s->fd >= 0 && conn_may_read(s); i++)
		if (!read_message(s))
			break;
}
