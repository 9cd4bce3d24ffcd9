// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* csrec-sim: options, signals and the event loop. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "server.h"

/* Model cycles between two looks at the socket. */
#define STEP_CYCLES	128

#define CLOCK_MHZ	300	/* what the model's cycles stand for */

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "host must be little-endian");

static const char usage[] =
"usage: csrec-sim --socket PATH [OPTION ...]\n"
"\n"
"A csrec device behind a vfio-user socket, for QEMU's vfio-user-pci.\n"
"\n"
"  --socket PATH         where to listen\n"
"  --dram-size SIZE      device DRAM and BAR 2, a power of two, K M G (256M)\n"
"  --bar2-size SIZE      BAR 2 shows only so much of it, a power of two from 4K on\n"
"  --vectors N           offer fewer MSI-X vectors than the device has\n"
"  --serial N            serial number (1)\n"
"  --dram-latency N      cycles to the first beat of device DRAM (40)\n"
"  --host-latency N      cycles to the first beat of host memory (300)\n"
"  --host-bandwidth N    host memory, MB/s at 300 MHz (3300)\n"
"  --jitter N            extra host latency, 0 to N cycles, pseudo-random (0)\n"
"  --stall PERCENT       random back-pressure on every port (0)\n"
"  --seed N              for jitter and stalls (1)\n"
"  --fst FILE            write waves; needs the traceable build\n"
"  --fst-window A:B      only cycles A to B\n"
"  --trace-dma           print each access to host memory\n"
"  --once                exit when the first client leaves\n"
"  --ready-fd FD         write a line to FD when listening\n"
"  -v, --verbose         print each message\n"
"  -h, --help\n"
"  -V, --version\n"
"\n"
"Signals: TERM, INT exit; USR1 starts and stops waves; USR2 prints statistics.\n"
"Exit codes: 0 done, 1 error, 2 usage, 3 guest RAM is not shared (share=off),\n"
"4 socket in use.\n";

static void vsay(const struct server *s, const char *fmt, va_list ap)
{
	fprintf(stderr, "csrec-sim%s%s: ", s && s->path ? " " : "", s && s->path ? s->path : "");
	vfprintf(stderr, fmt, ap);
	fputc('\n', stderr);
}

void say(const struct server *s, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsay(s, fmt, ap);
	va_end(ap);
}

void debug(const struct server *s, const char *fmt, ...)
{
	va_list ap;

	if (!s->verbose)
		return;
	va_start(ap, fmt);
	vsay(s, fmt, ap);
	va_end(ap);
}

void server_reset_model(struct server *s)
{
	csrec_model_reset(s->model);
	dma_orphan(s);
	irq_reset(s);
	s->stats.resets++;
}

/* Gives the pages back; they are zeros when touched again. */
void server_clear_dram(struct server *s)
{
	if (fallocate(s->dram_fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0,
		      (off_t)s->dram_size))
		memset(s->dram, 0, s->dram_size);
}

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static void print_stats(const struct server *s, uint64_t start)
{
	const struct stats *t = &s->stats;
	double wall = (double)(now_ns() - start) / 1e9, run = (double)t->step_ns / 1e9;

	printf("csrec-sim: cycles %" PRIu64 " wall %.3f s running %.3f s speed %.1f kcycles/s "
	       "host-read %" PRIu64 " host-written %" PRIu64 " irqs %" PRIu64 " held %" PRIu64
	       " messages %" PRIu64 " dma-messages %" PRIu64 " steps %" PRIu64 " wakeups %" PRIu64
	       " resets %" PRIu64 " clients %" PRIu64 "\n", t->cycles, wall, run,
	       run > 0 ? (double)t->cycles / run / 1e3 : 0.0, t->host_read, t->host_written,
	       t->irqs, t->irqs_held, t->messages, t->dma_messages, t->steps, t->wakeups,
	       t->resets, t->clients);
	fflush(stdout);
}

/* ---- setting up ---- */

/* Sealed: a client must not be able to take the pages from under us. */
static int make_dram(struct server *s)
{
	s->dram_fd = memfd_create("csrec-dram", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (s->dram_fd < 0 || ftruncate(s->dram_fd, (off_t)s->dram_size) ||
	    fcntl(s->dram_fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL))
		return -errno;
	s->dram = mmap(NULL, s->dram_size, PROT_READ | PROT_WRITE, MAP_SHARED, s->dram_fd, 0);
	return s->dram == MAP_FAILED ? -errno : 0;
}

/* Returns 0, or an exit code with the reason said. */
static int listen_on(struct server *s)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	struct stat st;

	if (strlen(s->path) >= sizeof(addr.sun_path)) {
		say(s, "socket path longer than %zu bytes", sizeof(addr.sun_path) - 1);
		return EXIT_USAGE;
	}
	strcpy(addr.sun_path, s->path);
	if (!lstat(s->path, &st)) {
		int fd;

		if (!S_ISSOCK(st.st_mode)) {
			say(s, "exists and is not a socket");
			return EXIT_ERROR;
		}
		/* Left behind by a server that was killed? */
		fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
		if (fd >= 0 && connect(fd, (struct sockaddr *)&addr, sizeof(addr)) &&
		    errno == ECONNREFUSED) {
			unlink(s->path);
		} else {
			say(s, "another server is listening there");
			close(fd);
			return EXIT_IN_USE;
		}
		close(fd);
	}
	s->listen_fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (s->listen_fd < 0 || bind(s->listen_fd, (struct sockaddr *)&addr, sizeof(addr)) ||
	    listen(s->listen_fd, 4)) {
		say(s, "cannot listen: %s", strerror(errno));
		return EXIT_ERROR;
	}
	return 0;
}

/* ---- waves ---- */

struct waves {
	bool on;
	unsigned int count;
	const char *fst;
};

static void toggle_waves(struct server *s, struct waves *w)
{
	char name[PATH_MAX];
	int rc;

	if (w->on) {
		csrec_model_trace(s->model, NULL);
		w->on = false;
		say(s, "waves stopped");
		return;
	}
	snprintf(name, sizeof(name), "%s.%u.fst", w->fst ? w->fst : "csrec", ++w->count);
	rc = csrec_model_trace(s->model, name);
	if (rc) {
		say(s, "no waves: %s", rc == -ENOTSUP ? "this build cannot trace" : strerror(-rc));
		return;
	}
	w->on = true;
	say(s, "waves go to %s", name);
}

/* ---- the loop ---- */

static void on_signal(struct server *s, int sig_fd, struct waves *w, uint64_t start)
{
	struct signalfd_siginfo si;

	while (read(sig_fd, &si, sizeof(si)) == sizeof(si)) {
		switch (si.ssi_signo) {
		case SIGUSR1:
			toggle_waves(s, w);
			break;
		case SIGUSR2:
			print_stats(s, start);
			break;
		default:
			s->quit = true;
		}
	}
}

static void step(struct server *s)
{
	uint64_t t = now_ns();

	s->stats.cycles += csrec_model_step(s->model, STEP_CYCLES);
	s->stats.step_ns += now_ns() - t;
	s->stats.steps++;
}

/*
 * The model runs only while it has work, and the client is looked at between steps;
 * without work the process sleeps in poll().
 */
static void run(struct server *s, int sig_fd, struct waves *w, uint64_t start)
{
	while (!s->quit) {
		bool busy = csrec_model_busy(s->model);
		struct pollfd p[2] = { { .fd = sig_fd, .events = POLLIN } };

		if (s->fd >= 0) {
			p[1].fd = s->fd;
			p[1].events = (short)((conn_may_read(s) ? POLLIN : 0) |
					      (s->out ? POLLOUT : 0));
		} else {
			p[1].fd = s->listen_fd;
			p[1].events = POLLIN;
		}
		if (poll(p, 2, busy ? 0 : -1) < 0 && errno != EINTR) {
			say(s, "poll: %s", strerror(errno));
			s->exit_code = EXIT_ERROR;
			return;
		}
		if (!busy)
			s->stats.wakeups++;
		if (s->fd < 0) {
			if (p[1].revents)
				conn_accept(s);
		} else if (p[1].revents & ~POLLOUT) {
			conn_readable(s);
		}
		if (csrec_model_busy(s->model))
			step(s);
		dma_pump(s);
		conn_writable(s);
		/* Last, so that statistics tell of all that came before the signal. */
		if (p[0].revents)
			on_signal(s, sig_fd, w, start);
	}
}

/* ---- options ---- */

static bool parse_number(const char *text, uint64_t min, uint64_t max, bool suffix, uint64_t *out)
{
	unsigned int shift = 0;
	char *end;

	if (*text < '0' || *text > '9')
		return false;
	errno = 0;
	*out = strtoull(text, &end, 0);
	if (suffix && *end) {
		const char *k = strchr("KMG", *end);

		if (!k)
			return false;
		shift = 10 * (unsigned int)(k - "KMG" + 1);
		end++;
	}
	if (errno || *end || *out > UINT64_MAX >> shift)
		return false;
	*out <<= shift;
	return *out >= min && *out <= max;
}

enum {
	OPT_SOCKET = 256, OPT_DRAM_SIZE, OPT_DRAM_LATENCY, OPT_HOST_LATENCY, OPT_HOST_BANDWIDTH,
	OPT_BAR2_SIZE, OPT_VECTORS, OPT_SERIAL, OPT_JITTER, OPT_STALL, OPT_SEED, OPT_FST, OPT_FST_WINDOW, OPT_TRACE_DMA, OPT_ONCE,
	OPT_READY_FD,
};

static const struct option options[] = {
	{ "socket", required_argument, NULL, OPT_SOCKET },
	{ "dram-size", required_argument, NULL, OPT_DRAM_SIZE },
	{ "bar2-size", required_argument, NULL, OPT_BAR2_SIZE },
	{ "vectors", required_argument, NULL, OPT_VECTORS },
	{ "serial", required_argument, NULL, OPT_SERIAL },
	{ "dram-latency", required_argument, NULL, OPT_DRAM_LATENCY },
	{ "host-latency", required_argument, NULL, OPT_HOST_LATENCY },
	{ "host-bandwidth", required_argument, NULL, OPT_HOST_BANDWIDTH },
	{ "jitter", required_argument, NULL, OPT_JITTER },
	{ "stall", required_argument, NULL, OPT_STALL },
	{ "seed", required_argument, NULL, OPT_SEED },
	{ "fst", required_argument, NULL, OPT_FST },
	{ "fst-window", required_argument, NULL, OPT_FST_WINDOW },
	{ "trace-dma", no_argument, NULL, OPT_TRACE_DMA },
	{ "once", no_argument, NULL, OPT_ONCE },
	{ "ready-fd", required_argument, NULL, OPT_READY_FD },
	{ "verbose", no_argument, NULL, 'v' },
	{ "help", no_argument, NULL, 'h' },
	{ "version", no_argument, NULL, 'V' },
	{ NULL, 0, NULL, 0 },
};

static bool parse_window(char *text, uint64_t *from, uint64_t *to)
{
	char *colon = strchr(text, ':');

	if (!colon)
		return false;
	*colon++ = '\0';
	return parse_number(text, 0, UINT64_MAX, false, from) &&
	       parse_number(colon, *from, UINT64_MAX, false, to);
}

/* Returns -1 to go on, or an exit code. */
static int parse_options(struct server *s, struct csrec_model_config *cfg, int *ready_fd,
			 int argc, char **argv)
{
	bool window = false;
	int c, index = 0;

	while ((c = getopt_long(argc, argv, "vhV", options, &index)) != -1) {
		uint64_t n = 0;
		bool ok = true;

		switch (c) {
		case OPT_SOCKET:
			s->path = optarg;
			break;
		case OPT_DRAM_SIZE:
			ok = parse_number(optarg, 1 << 20, 1ull << 36, true, &n) && !(n & (n - 1));
			cfg->dram_size = n;
			break;
		case OPT_BAR2_SIZE:
			ok = parse_number(optarg, 4096, 1ull << 36, true, &n) && !(n & (n - 1));
			s->bar2_size = n;
			break;
		case OPT_VECTORS:
			ok = parse_number(optarg, 1, MAX_VECTORS, false, &n);
			s->nvec = (unsigned int)n;
			break;
		case OPT_SERIAL:
			ok = parse_number(optarg, 0, UINT64_MAX, false, &s->serial);
			break;
		case OPT_DRAM_LATENCY:
			ok = parse_number(optarg, 1, 1000000, false, &n);
			cfg->dram_latency = (unsigned int)n;
			break;
		case OPT_HOST_LATENCY:
			ok = parse_number(optarg, 1, 1000000, false, &n);
			cfg->host_latency = (unsigned int)n;
			break;
		case OPT_HOST_BANDWIDTH:
			ok = parse_number(optarg, 20, 64 * CLOCK_MHZ, false, &n);
			cfg->host_bytes_x16 = (unsigned int)(n * 16 / CLOCK_MHZ);
			break;
		case OPT_JITTER:
			ok = parse_number(optarg, 0, 1000000, false, &n);
			cfg->host_jitter = (unsigned int)n;
			break;
		case OPT_STALL:
			ok = parse_number(optarg, 0, 99, false, &n);
			cfg->stall_pct = (unsigned int)n;
			break;
		case OPT_SEED:
			ok = parse_number(optarg, 0, UINT64_MAX, false, &cfg->seed);
			break;
		case OPT_FST:
			cfg->fst = optarg;
			break;
		case OPT_FST_WINDOW:
			ok = parse_window(optarg, &cfg->fst_from, &cfg->fst_to);
			window = true;
			break;
		case OPT_TRACE_DMA:
			s->trace_dma = true;
			break;
		case OPT_ONCE:
			s->once = true;
			break;
		case OPT_READY_FD:
			ok = parse_number(optarg, 0, INT_MAX, false, &n);
			*ready_fd = (int)n;
			break;
		case 'v':
			s->verbose++;
			break;
		case 'h':
			fputs(usage, stdout);
			return EXIT_OK;
		case 'V':
			printf("csrec-sim, hardware interface %d.%d\n", CSREC_HW_MAJOR,
			       CSREC_HW_MINOR);
			return EXIT_OK;
		default:
			fputs("try --help\n", stderr);
			return EXIT_USAGE;
		}
		if (!ok) {
			say(NULL, "bad value for --%s: %s", options[index].name, optarg);
			return EXIT_USAGE;
		}
	}
	if (optind < argc) {
		say(NULL, "unexpected argument: %s", argv[optind]);
		return EXIT_USAGE;
	}
	if (!s->path || !*s->path) {
		s->path = NULL;
		say(NULL, "--socket PATH is needed");
		return EXIT_USAGE;
	}
	if (s->bar2_size > cfg->dram_size) {
		say(NULL, "--bar2-size is more than there is memory");
		return EXIT_USAGE;
	}
	if (window && !cfg->fst) {
		say(NULL, "--fst-window needs --fst");
		return EXIT_USAGE;
	}
	if (!window)
		cfg->fst_to = UINT64_MAX;
	return -1;
}

/*
 * Device memory must not get the descriptor of a standard stream that was closed: messages
 * would go into it.
 */
static bool fill_streams(void)
{
	int fd;

	do {
		fd = open("/dev/null", O_RDWR);
	} while (fd >= 0 && fd <= STDERR_FILENO);
	return fd >= 0 && !close(fd);
}

int main(int argc, char **argv)
{
	static struct server server;	/* some 80 KiB */
	struct server *s = &server;
	struct csrec_model_config cfg = CSREC_MODEL_CONFIG_DEFAULT;
	struct waves waves = { 0 };
	uint64_t start = now_ns(), cap;
	int ready_fd = -1, sig_fd, rc;
	unsigned int nvec;
	sigset_t sigs;

	if (!fill_streams())
		return EXIT_ERROR;
	s->fd = -1;
	s->serial = 1;
	rc = parse_options(s, &cfg, &ready_fd, argc, argv);
	if (rc >= 0)
		return rc;

	sigemptyset(&sigs);
	sigaddset(&sigs, SIGTERM);
	sigaddset(&sigs, SIGINT);
	sigaddset(&sigs, SIGUSR1);
	sigaddset(&sigs, SIGUSR2);
	sigprocmask(SIG_BLOCK, &sigs, NULL);
	signal(SIGPIPE, SIG_IGN);
	sig_fd = signalfd(-1, &sigs, SFD_NONBLOCK | SFD_CLOEXEC);

	s->dram_size = cfg.dram_size;
	if (!s->bar2_size)
		s->bar2_size = s->dram_size;
	rc = make_dram(s);
	if (rc || sig_fd < 0) {
		say(s, "cannot make %" PRIu64 " MiB of device DRAM: %s", s->dram_size >> 20,
		    strerror(-rc));
		return EXIT_ERROR;
	}
	rc = csrec_model_create(&s->model, &cfg, s->dram, &dma_host_ops, s);
	if (rc) {
		if (rc == -ENOTSUP && cfg.fst)
			say(s, "--fst: this build cannot trace; use the traceable one");
		else
			say(s, "cannot create the model: %s", strerror(-rc));
		return EXIT_ERROR;
	}
	waves.on = cfg.fst;
	waves.fst = cfg.fst;
	cap = csrec_model_read(s->model, CSREC_REG_CAP_QUEUE, 8);
	nvec = (uint8_t)(cap >> CSREC_CAPQ_VECTORS_SHIFT);
	if (!nvec || s->nvec > nvec) {
		say(s, "the model has %u interrupt vectors", nvec);
		return EXIT_ERROR;
	}
	if (!s->nvec)
		s->nvec = nvec;
	dma_init(s);
	irq_init(s);
	cfg_init(s);

	rc = irq_open(s);
	if (rc) {
		say(s, "cannot have asynchronous I/O, for interrupts: %s", strerror(-rc));
		csrec_model_destroy(s->model);
		return EXIT_ERROR;
	}
	rc = listen_on(s);
	if (rc) {
		csrec_model_destroy(s->model);
		return rc;
	}
	printf("csrec-sim: listening on %s, model %s, %" PRIu64 " MiB DRAM, %u vectors\n", s->path,
	       csrec_model_name(s->model), s->dram_size >> 20, s->nvec);
	fflush(stdout);
	if (ready_fd >= 0) {
		if (write(ready_fd, "listening\n", 10) != 10)
			say(s, "--ready-fd %d: %s", ready_fd, strerror(errno));
		if (ready_fd > STDERR_FILENO)
			close(ready_fd);
	}
	run(s, sig_fd, &waves, start);

	s->once = false;
	conn_close(s, "server ends");
	if (waves.on)
		csrec_model_trace(s->model, NULL);
	csrec_model_destroy(s->model);
	dma_drop(s);
	free(s->range);
	munmap(s->dram, s->dram_size);
	close(s->dram_fd);
	close(s->listen_fd);
	close(sig_fd);
	unlink(s->path);
	print_stats(s, start);
	return s->exit_code;
}
