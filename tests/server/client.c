// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client.h"

#define PATIENCE	30	/* seconds until a silent server counts as hung */

/* ---- a server process ---- */

static pid_t spawn(const char *binary, const char *const *args, const char *path, int out, int err)
{
	pid_t pid = fork();

	if (pid == 0) {
		const char *argv[32] = { binary };
		int n = 1;

		if (path) {
			argv[n++] = "--socket";
			argv[n++] = path;
		}
		while (args && *args && n < 31)
			argv[n++] = *args++;
		prctl(PR_SET_PDEATHSIG, SIGKILL);	/* nothing stays if a test crashes */
		dup2(out, 1);
		dup2(err, 2);
		execv(binary, (char **)argv);
		_exit(127);
	}
	return pid;
}

static bool read_line(int fd, char *line, size_t size)
{
	size_t n = 0;
	char c;

	while (n < size - 1) {
		struct pollfd p = { .fd = fd, .events = POLLIN };

		if (poll(&p, 1, PATIENCE * 1000) != 1 || read(fd, &c, 1) != 1)
			return false;
		if (c == '\n')
			break;
		line[n++] = c;
	}
	line[n] = '\0';
	return true;
}

void server_path(struct server *s)
{
	static unsigned int serial;
	const char *dir = getenv("TMPDIR");

	if (!s->path[0])
		snprintf(s->path, sizeof(s->path), "%s/csrec-%d-%u.sock", dir ? dir : "/tmp",
			 (int)getpid(), serial++);
}

/* @path: passed on as --socket, or NULL if the arguments have it */
static bool start(struct server *s, const char *binary, const char *const *args, const char *path)
{
	char line[512];
	int p[2], err;

	snprintf(s->log, sizeof(s->log), "%s.log", s->path);
	err = open(s->log, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (err < 0 || pipe2(p, O_CLOEXEC))
		return false;
	s->pid = spawn(binary, args, path, p[1], err);
	close(p[1]);
	close(err);
	s->out = p[0];
	if (!read_line(s->out, line, sizeof(line)) || !strstr(line, "listening"))
		return false;
	return true;
}

bool server_start(struct server *s, const char *binary, const char *const *args)
{
	server_path(s);
	return start(s, binary, args, s->path);
}

bool server_spawn(struct server *s, const char *binary, const char *const *args)
{
	return start(s, binary, args, NULL);
}

int server_wait(struct server *s)
{
	int status = 0;

	if (!s->pid)
		return -1;
	waitpid(s->pid, &status, 0);
	s->pid = 0;
	close(s->out);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 256 + WTERMSIG(status);
}

int server_stop(struct server *s)
{
	int rc;

	if (!s->pid)
		return -1;
	kill(s->pid, SIGTERM);
	rc = server_wait(s);
	if (rc) {		/* show what it had to say */
		FILE *f = fopen(s->log, "r");
		char line[400];

		while (f && fgets(line, sizeof(line), f))
			printf("#   %s", line);
		if (f)
			fclose(f);
	}
	unlink(s->log);
	return rc;
}

long server_stat(struct server *s, const char *name)
{
	char line[1024], key[64];
	const char *p;

	kill(s->pid, SIGUSR2);
	if (!read_line(s->out, line, sizeof(line)))
		return -1;
	snprintf(key, sizeof(key), " %s ", name);
	p = strstr(line, key);
	return p ? atol(p + strlen(key)) : -1;
}

int server_fds(const struct server *s)
{
	char path[64];
	int n = 0;
	DIR *d;

	snprintf(path, sizeof(path), "/proc/%d/fd", (int)s->pid);
	d = opendir(path);
	if (!d)
		return -1;
	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

static bool file_has(const char *path, const char *text)
{
	FILE *f = fopen(path, "r");
	char line[1024];
	bool found = false;

	while (f && !found && fgets(line, sizeof(line), f))
		found = strstr(line, text);
	if (f)
		fclose(f);
	return found;
}

bool server_has_mapping(const struct server *s, const char *name)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/maps", (int)s->pid);
	return file_has(path, name);
}

bool server_log_has(const struct server *s, const char *text)
{
	return file_has(s->log, text);
}

int server_run(const char *binary, const char *const *args)
{
	int null = open("/dev/null", O_WRONLY | O_CLOEXEC), status = 0;
	pid_t pid = spawn(binary, args, NULL, null, null);

	close(null);
	waitpid(pid, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 256 + WTERMSIG(status);
}

/* ---- a client ---- */

bool client_open(struct client *c, const struct server *s)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	struct timeval tv = { .tv_sec = PATIENCE };

	memset(c, 0, sizeof(*c));
	c->serve = true;
	c->next_id = 1;
	c->buf = malloc(MSG_MAX);
	strncpy(a.sun_path, s->path, sizeof(a.sun_path) - 1);
	c->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	setsockopt(c->fd, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv));
	return !connect(c->fd, (struct sockaddr *)&a, sizeof(a));
}

void client_close(struct client *c)
{
	if (c->fd >= 0)
		close(c->fd);
	c->fd = -1;
	free(c->buf);
	c->buf = NULL;
}

bool client_start(struct client *c, const struct server *s)
{
	static const char json[] = "{\"capabilities\": {\"pgsizes\": 4096, \"max_msg_fds\": 16, "
		"\"max_dma_maps\": 65535, \"max_data_xfer_size\": 1048576, "
		"\"write_multiple\": true}}";
	uint8_t body[4 + sizeof(json)] = { 0 };
	struct msg m;

	memcpy(body + 4, json, sizeof(json));
	return client_open(c, s) && !client_call(c, C_VERSION, body, sizeof(body), NULL, 0, &m);
}

bool client_send(struct client *c, uint16_t id, uint16_t cmd, uint32_t flags, const void *body,
		 size_t len, const int *fds, unsigned int nfds)
{
	union {
		struct cmsghdr align;
		char buf[CMSG_SPACE(64 * sizeof(int))];
	} ctl;
	uint8_t h[16] = { 0 };
	struct iovec iov[2] = { { h, sizeof(h) }, { (void *)body, len } };
	struct msghdr msg = { .msg_iov = iov, .msg_iovlen = len ? 2 : 1 };

	put16(h, id);
	put16(h + 2, cmd);
	put32(h + 4, (uint32_t)(16 + len));
	put32(h + 8, flags);
	if (nfds) {
		struct cmsghdr *cm;

		memset(&ctl, 0, sizeof(ctl));
		msg.msg_control = ctl.buf;
		msg.msg_controllen = CMSG_SPACE(nfds * sizeof(int));
		cm = CMSG_FIRSTHDR(&msg);
		cm->cmsg_level = SOL_SOCKET;
		cm->cmsg_type = SCM_RIGHTS;
		cm->cmsg_len = CMSG_LEN(nfds * sizeof(int));
		memcpy(CMSG_DATA(cm), fds, nfds * sizeof(int));
	}
	return sendmsg(c->fd, &msg, MSG_NOSIGNAL) == (ssize_t)(16 + len);
}

static bool recv_all(struct client *c, uint8_t *p, size_t len, int *fd)
{
	while (len) {
		union {
			struct cmsghdr align;
			char buf[CMSG_SPACE(4 * sizeof(int))];
		} ctl;
		struct iovec iov = { p, len };
		struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = ctl.buf,
				      .msg_controllen = sizeof(ctl.buf) };
		ssize_t n = recvmsg(c->fd, &msg, MSG_CMSG_CLOEXEC);
		struct cmsghdr *cm;

		if (n <= 0)
			return false;
		cm = CMSG_FIRSTHDR(&msg);
		if (cm && cm->cmsg_type == SCM_RIGHTS)
			memcpy(fd, CMSG_DATA(cm), sizeof(int));
		p += n;
		len -= (size_t)n;
	}
	return true;
}

bool client_recv(struct client *c, struct msg *m)
{
	uint8_t h[16];

	m->fd = -1;
	if (!recv_all(c, h, sizeof(h), &m->fd))
		return false;
	m->id = get16(h);
	m->cmd = get16(h + 2);
	m->size = get32(h + 4);
	m->flags = get32(h + 8);
	m->err = get32(h + 12);
	m->body = c->buf;
	if (m->size < 16 || m->size > MSG_MAX)
		return false;
	return recv_all(c, c->buf, m->size - 16, &m->fd);
}

bool client_readable(struct client *c, int ms)
{
	struct pollfd p = { .fd = c->fd, .events = POLLIN };

	return poll(&p, 1, ms) == 1;
}

bool client_at_end(struct client *c)
{
	uint8_t skip[4096];
	ssize_t n;

	while ((n = recv(c->fd, skip, sizeof(skip), 0)) > 0)
		;
	return n == 0 || errno == ECONNRESET;
}

void client_answer(struct client *c, const struct held *h)
{
	uint8_t body[16 + 4096];
	bool inside = h->addr >= c->ram_base && h->addr - c->ram_base + h->count <= c->ram_size;
	size_t len = 16;

	if (c->before_copy)
		c->before_copy(c, h);
	put64(body, h->addr);
	put64(body + 8, h->count);
	if (!c->ram || !inside || c->refuse_dma) {
		uint8_t raw[16] = { 0 };

		put16(raw, h->id);
		put16(raw + 2, h->cmd);
		put32(raw + 4, 16);
		put32(raw + 8, 0x21);
		put32(raw + 12, ENODEV);
		if (send(c->fd, raw, 16, MSG_NOSIGNAL) != 16)
			perror("# send");
		return;
	}
	if (h->cmd == C_DMA_READ) {
		memcpy(body + 16, c->ram + (h->addr - c->ram_base), h->count);
		len += h->count;
	} else {
		memcpy(c->ram + (h->addr - c->ram_base), h->data, h->count);
	}
	if (c->after_copy)
		c->after_copy(c, h);
	client_send(c, h->id, h->cmd, 1, body, len, NULL, 0);
}

/* A message that is no reply: a DMA request of the server. */
static bool take_request(struct client *c, const struct msg *m)
{
	struct held *h = &c->held[c->nheld];
	bool write = m->cmd == C_DMA_WRITE;

	if (c->nheld == HELD_MAX || (m->flags & 0xf) || m->size < 32 ||
	    (m->cmd != C_DMA_READ && !write)) {
		c->bad_dma++;
		return false;
	}
	h->id = m->id;
	h->cmd = m->cmd;
	h->addr = get64(m->body);
	h->count = get64(m->body + 8);
	if (h->count > 4096 || m->size != 32 + (write ? h->count : 0)) {
		c->bad_dma++;
		return false;
	}
	if (write)
		memcpy(h->data, m->body + 16, h->count);
	write ? c->dma_writes++ : c->dma_reads++;
	if (c->serve) {
		struct held copy = *h;

		client_answer(c, &copy);
	} else {
		c->nheld++;
	}
	return true;
}

bool client_pump(struct client *c, unsigned int nheld)
{
	struct msg m;

	while (c->nheld < nheld)
		if (!client_recv(c, &m) || !take_request(c, &m))
			return false;
	return true;
}

int client_call(struct client *c, uint16_t cmd, const void *body, size_t len, const int *fds,
		unsigned int nfds, struct msg *answer)
{
	uint16_t id = c->next_id++;
	struct msg m;

	if (!client_send(c, id, cmd, 0, body, len, fds, nfds))
		return -1;
	for (;;) {
		if (!client_recv(c, &m))
			return -1;
		if ((m.flags & 0xf) == 1)
			break;
		if (!take_request(c, &m))
			return -1;
	}
	if (answer)
		*answer = m;
	else if (m.fd >= 0)
		close(m.fd);
	if (m.id != id || m.cmd != cmd)
		return -1;
	if (m.flags & 0x20)
		return m.size == 16 && m.err ? (int)m.err : -1;
	return 0;
}

int client_map(struct client *c, uint64_t iova, uint64_t size, int fd, uint64_t off, uint32_t prot)
{
	uint8_t b[32];
	struct msg m;
	int rc;

	put32(b, 32);
	put32(b + 4, prot);
	put64(b + 8, off);
	put64(b + 16, iova);
	put64(b + 24, size);
	rc = client_call(c, C_MAP, b, sizeof(b), &fd, fd >= 0, &m);
	return rc ? rc : m.size == 16 ? 0 : -1;
}

int client_unmap(struct client *c, uint64_t iova, uint64_t size, uint32_t flags)
{
	uint8_t b[24];
	struct msg m;
	int rc;

	put32(b, 24);
	put32(b + 4, flags);
	put64(b + 8, iova);
	put64(b + 16, size);
	rc = client_call(c, C_UNMAP, b, sizeof(b), NULL, 0, &m);
	/* The answer has the request in it: a client that does not read it is lost. */
	return rc ? rc : m.size == 40 && !memcmp(m.body, b, 24) ? 0 : -1;
}

int client_read(struct client *c, uint32_t region, uint64_t off, void *buf, uint32_t len)
{
	uint8_t b[16];
	struct msg m;
	int rc;

	put64(b, off);
	put32(b + 8, region);
	put32(b + 12, len);
	rc = client_call(c, C_READ, b, sizeof(b), NULL, 0, &m);
	if (rc)
		return rc;
	if (m.size != 32 + len || memcmp(m.body, b, 16))
		return -1;
	memcpy(buf, m.body + 16, len);
	return 0;
}

int client_write(struct client *c, uint32_t region, uint64_t off, const void *buf, uint32_t len)
{
	uint8_t *b = malloc(16 + len);
	struct msg m;
	int rc;

	put64(b, off);
	put32(b + 8, region);
	put32(b + 12, len);
	memcpy(b + 16, buf, len);
	rc = client_call(c, C_WRITE, b, 16 + len, NULL, 0, &m);
	if (!rc && (m.size != 32 || memcmp(m.body, b, 16)))
		rc = -1;
	free(b);
	return rc;
}

int client_irqs(struct client *c, uint32_t flags, uint32_t start, uint32_t count, const int *fds,
		unsigned int nfds)
{
	uint8_t b[20];

	put32(b, 20);
	put32(b + 4, flags);
	put32(b + 8, 2);
	put32(b + 12, start);
	put32(b + 16, count);
	return client_call(c, C_SET_IRQS, b, sizeof(b), fds, nfds, NULL);
}

uint64_t reg(struct client *c, uint32_t off)
{
	uint64_t v = 0;

	return client_read(c, R_BAR0, off, &v, 8) ? ~0ull : v;
}

void set_reg(struct client *c, uint32_t off, uint64_t val)
{
	client_write(c, R_BAR0, off, &val, 8);
}

uint32_t cfg(struct client *c, uint32_t off, uint32_t len)
{
	uint32_t v = 0;

	return client_read(c, R_CONFIG, off, &v, len) ? ~0u : v;
}

void set_cfg(struct client *c, uint32_t off, uint32_t val, uint32_t len)
{
	client_write(c, R_CONFIG, off, &val, len);
}

int memory_file(const char *name, size_t size)
{
	int fd = memfd_create(name, MFD_CLOEXEC);

	if (fd >= 0 && ftruncate(fd, (off_t)size)) {
		close(fd);
		return -1;
	}
	return fd;
}
