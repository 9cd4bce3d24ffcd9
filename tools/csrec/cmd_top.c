// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <inttypes.h>
#include <poll.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>
#include "sys.h"

enum { OPT_INTERVAL = 1 };

static const struct option longopts[] = {
	{ "interval", required_argument, NULL, OPT_INTERVAL },
	{ "batch", no_argument, NULL, 'b' },
	{ "count", required_argument, NULL, 'n' },
	{ NULL, 0, NULL, 0 },
};

#define MAX_DEVICES	64
#define MAX_QUEUES	64

/* What a device was when last looked at. */
struct seen {
	char bdf[16];
	bool valid;
	struct sys_sample sample;
	uint32_t posted[MAX_QUEUES + 1];	/* of each queue */
	bool known[MAX_QUEUES + 1];
};

/* What a process has of one device. */
struct process {
	const char *pid, *comm;
	unsigned int contexts, queues, regions;
	uint64_t dram, onchip, host;
};

struct tables {
	int err;				/* of the first that could not be read */
	struct sys_table queues, regions, contexts;
};

static struct seen seen[MAX_DEVICES];

static struct seen *seen_of(const char *bdf)
{
	size_t i;

	for (i = 0; i < MAX_DEVICES - 1 && seen[i].bdf[0] && strcmp(seen[i].bdf, bdf); i++)
		;
	snprintf(seen[i].bdf, sizeof(seen[i].bdf), "%s", bdf);
	return &seen[i];
}

static void read_tables(const struct csrec_found *d, struct tables *t)
{
	memset(t, 0, sizeof(*t));
	t->err = sys_table(d, "queues", &t->queues);
	if (!t->err)
		t->err = sys_table(d, "regions", &t->regions);
	if (!t->err)
		t->err = sys_table(d, "contexts", &t->contexts);
}

static void free_tables(struct tables *t)
{
	sys_table_free(&t->queues);
	sys_table_free(&t->regions);
	sys_table_free(&t->contexts);
}

static uint64_t to_u64(const char *s)
{
	return strtoull(s, NULL, 0);
}

/* The process of a row, which is added if it is new; NULL for the driver's own. */
static struct process *process_of(struct process *list, size_t *n, size_t max,
				  const struct sys_table *t, size_t row)
{
	const char *pid = sys_cell(t, row, "pid");
	size_t i;

	if (!strcmp(pid, "-"))
		return NULL;
	for (i = 0; i < *n; i++)
		if (!strcmp(list[i].pid, pid))
			return &list[i];
	if (*n == max)
		return NULL;
	list[*n] = (struct process){ .pid = pid, .comm = sys_cell(t, row, "comm") };
	return &list[(*n)++];
}

static size_t processes(const struct tables *t, struct process *list, size_t max)
{
	struct process *p;
	size_t n = 0;

	for (size_t i = 0; i < t->contexts.rows; i++)
		if ((p = process_of(list, &n, max, &t->contexts, i)))
			p->contexts++;
	for (size_t i = 0; i < t->queues.rows; i++)
		if ((p = process_of(list, &n, max, &t->queues, i)))
			p->queues++;
	for (size_t i = 0; i < t->regions.rows; i++) {
		const char *kind = sys_cell(&t->regions, i, "kind");
		uint64_t bytes = to_u64(sys_cell(&t->regions, i, "bytes"));

		p = process_of(list, &n, max, &t->regions, i);
		if (!p)
			continue;
		p->regions++;
		if (!strcmp(kind, "dram"))
			p->dram += bytes;
		else if (!strcmp(kind, "onchip"))
			p->onchip += bytes;
		else
			p->host += bytes;
	}
	return n;
}

/* Output that a screen may be too small for. */
static int lines_left, columns;

static void line(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
static void line(const char *fmt, ...)
{
	char buf[512];
	va_list ap;

	if (!lines_left)
		return;
	va_start(ap, fmt);
	vsnprintf(buf, sizeof(buf), fmt, ap);
	va_end(ap);
	printf("%.*s\n", columns, cli_clean(buf));
	if (lines_left > 0)
		lines_left--;
}

#define MAX_PROCESSES 256

static void show_device(const struct cli *cli, const struct csrec_found *d)
{
	static struct process list[MAX_PROCESSES];
	uint64_t queues, used, dram, dram_free, onchip, onchip_free, done = 0, cycles = 0;
	struct seen *s = seen_of(d->bdf);
	struct sys_sample now;
	struct tables t;
	bool rates;
	double seconds = 0;
	size_t n;

	if (!sys_sample(d, &now)) {
		s->valid = false;
		return;
	}
	sys_number(d, "queues", &queues);
	sys_number(d, "queues_used", &used);
	sys_number(d, "dram_size", &dram);
	sys_number(d, "dram_free", &dram_free);
	sys_number(d, "onchip_size", &onchip);
	sys_number(d, "onchip_free", &onchip_free);
	read_tables(d, &t);
	n = processes(&t, list, MAX_PROCESSES);
	rates = s->valid && now.time > s->sample.time;
	if (rates) {
		seconds = now.time - s->sample.time;
		done = sys_hw_counter(&now, "commands") - sys_hw_counter(&s->sample, "commands");
		cycles = sys_hw_counter(&now, "cycles") - sys_hw_counter(&s->sample, "cycles");
	}
#define RATE(kind, name) ((sys_##kind(&now, name) - sys_##kind(&s->sample, name)) / seconds)
	if (cli->json) {
		jw_object(NULL);
		jw_string("node", d->node);
		jw_string("state", sys_attr(d, "state"));
		jw_uint("queues", queues);
		jw_uint("queues_used", used);
		jw_uint("dram_bytes", dram);
		jw_uint("dram_used_bytes", dram - dram_free);
		jw_uint("onchip_bytes", onchip);
		jw_uint("onchip_used_bytes", onchip - onchip_free);
		jw_uint("pinned_bytes", sys_counter(&now, "pinned_bytes"));
		if (rates) {
			jw_double("commands_per_s", done / seconds);
			jw_double("p2p_bytes_per_s", RATE(counter, "p2p_bytes"));
			jw_double("bounce_bytes_per_s", RATE(counter, "bounce_bytes"));
		}
		if (t.err)
			jw_string("no_queues", sys_why_no_table(t.err));
		jw_array("queue_list");
	} else {
		line("%s %s  %s  queues %" PRIu64 "/%" PRIu64 "  DRAM %s/%s  on-chip %s/%s",
		     sys_name(d), d->bdf, sys_attr(d, "state"), used, queues,
		     cli_bytes(dram - dram_free), cli_bytes(dram), cli_bytes(onchip - onchip_free),
		     cli_bytes(onchip));
		if (rates)
			line("  %.1f commands/s  busy %.1f%%  P2P %s/s  bounced %s/s  pinned %s",
			     done / seconds, sys_busy(sys_hw_counter(&now, "busy") -
						      sys_hw_counter(&s->sample, "busy"), cycles),
			     cli_bytes(RATE(counter, "p2p_bytes")),
			     cli_bytes(RATE(counter, "bounce_bytes")),
			     cli_bytes(sys_counter(&now, "pinned_bytes")));
		if (t.err)
			line("  queues and processes: %s", sys_why_no_table(t.err));
		if (t.queues.rows)
			line("  QUEUE     PID COMMAND         MODE  ENTRIES IN-FLIGHT UNREAPED     CMD/S STATE");
	}
#undef RATE

	for (size_t i = 0; i < t.queues.rows; i++) {
		const struct sys_table *q = &t.queues;
		uint64_t id = to_u64(sys_cell(q, i, "queue"));
		uint32_t tail = to_u64(sys_cell(q, i, "tail"));
		uint32_t posted = to_u64(sys_cell(q, i, "posted"));
		uint32_t head = to_u64(sys_cell(q, i, "head"));
		/* who maps a queue need not say how far it has read */
		bool told = (uint32_t)(posted - head) <= to_u64(sys_cell(q, i, "entries"));
		char unreaped[16] = "-";
		double rate = rates && id <= MAX_QUEUES && s->known[id] ?
			      (uint32_t)(posted - s->posted[id]) / seconds : 0;

		if (id <= MAX_QUEUES)
			s->posted[id] = posted;
		if (cli->json) {
			jw_object(NULL);
			jw_uint("queue", id);
			jw_uint("pid", to_u64(sys_cell(q, i, "pid")));
			jw_string("command", sys_cell(q, i, "comm"));
			jw_string("mode", sys_cell(q, i, "mode"));
			jw_uint("entries", to_u64(sys_cell(q, i, "entries")));
			jw_uint("in_flight", tail - posted);
			if (told)
				jw_uint("unreaped", posted - head);
			jw_string("state", sys_cell(q, i, "state"));
			jw_end();
		} else {
			if (told)
				snprintf(unreaped, sizeof(unreaped), "%u", posted - head);
			line("  %5" PRIu64 " %7s %-15.15s %-6s %6s %9u %8s %9.1f %s", id,
			     sys_cell(q, i, "pid"), sys_cell(q, i, "comm"), sys_cell(q, i, "mode"),
			     sys_cell(q, i, "entries"), tail - posted, unreaped, rate,
			     sys_cell(q, i, "state"));
		}
	}
	memset(s->known, 0, sizeof(s->known));
	for (size_t i = 0; i < t.queues.rows; i++) {
		uint64_t id = to_u64(sys_cell(&t.queues, i, "queue"));

		if (id <= MAX_QUEUES)
			s->known[id] = true;
	}

	if (cli->json) {
		jw_end();
		jw_array("processes");
	} else if (n) {
		line("      PID COMMAND         CONTEXTS QUEUES REGIONS        DRAM     ON-CHIP        HOST");
	}
	for (size_t i = 0; i < n; i++) {
		const struct process *p = &list[i];

		if (cli->json) {
			jw_object(NULL);
			jw_uint("pid", to_u64(p->pid));
			jw_string("command", p->comm);
			jw_uint("contexts", p->contexts);
			jw_uint("queues", p->queues);
			jw_uint("regions", p->regions);
			jw_uint("dram_bytes", p->dram);
			jw_uint("onchip_bytes", p->onchip);
			jw_uint("host_bytes", p->host);
			jw_end();
		} else {
			line("  %7s %-15.15s %8u %6u %7u %11s %11s %11s", p->pid, p->comm, p->contexts,
			     p->queues, p->regions, cli_bytes(p->dram), cli_bytes(p->onchip),
			     cli_bytes(p->host));
		}
	}
	if (cli->json) {
		jw_end();
		jw_end();
	}
	free_tables(&t);
	s->sample = now;
	s->valid = true;
}

/* All devices that have a driver, or the one that was asked for. */
static void show(const struct cli *cli, const struct csrec_found *list,
		 const struct csrec_found *only)
{
	if (cli->json) {
		jw_object(NULL);
		jw_array("devices");
	} else {
		char text[32];
		time_t t = time(NULL);

		strftime(text, sizeof(text), "%H:%M:%S", localtime(&t));
		line("csrec top  %s", text);
	}
	for (const struct csrec_found *d = list; d; d = d->next)
		if (d->node[0] && (d == only || !(cli->device || getenv("CSREC_DEVICE"))))
			show_device(cli, d);
	if (cli->json) {
		jw_end();
		jw_end();
	}
}

/* ---- the terminal ---- */

static struct termios saved;
static bool raw;

static void screen_begin(void)
{
	struct termios t;

	if (isatty(STDIN_FILENO) && !tcgetattr(STDIN_FILENO, &saved)) {
		t = saved;
		t.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
		raw = !tcsetattr(STDIN_FILENO, TCSANOW, &t);
	}
	printf("\033[?1049h\033[?25l");
}

static void screen_end(void)
{
	printf("\033[?25h\033[?1049l");
	fflush(stdout);
	if (raw)
		tcsetattr(STDIN_FILENO, TCSANOW, &saved);
}

static void screen_clear(void)
{
	struct winsize w;

	lines_left = -1;
	columns = 511;
	if (!ioctl(STDOUT_FILENO, TIOCGWINSZ, &w) && w.ws_row && w.ws_col) {
		lines_left = w.ws_row - 1;
		columns = w.ws_col;
	}
	printf("\033[H\033[2J");
}

/* Waits for the next picture; false if there is to be none. */
static bool screen_wait(double seconds)
{
	struct pollfd pfd = { .fd = STDIN_FILENO, .events = POLLIN };
	char c;

	if (!raw)
		return sys_sleep(seconds);
	if (poll(&pfd, 1, seconds * 1000) > 0 && (read(STDIN_FILENO, &c, 1) != 1 || c == 'q'))
		return false;
	return !sys_stopped();
}

static int run(struct cli *cli, int argc, char **argv)
{
	struct csrec_found *list, *only;
	double interval = 2;
	uint64_t count = 0, n;
	struct cli text;
	bool batch = false;
	int code, ret;

	while ((ret = cli_getopt(cli, argc, argv, longopts, &code)) != CLI_END) {
		if (ret == CLI_EXIT)
			return code;
		code = 0;
		if (ret == 'b')
			batch = true;
		else if (ret == OPT_INTERVAL)
			code = sys_seconds(cli, "--interval", optarg, &interval);
		else
			code = cli_number(cli, "--count", optarg, 1, 1000000000, &count);
		if (code)
			return code;
	}
	if (cli_no_args(cli, argc, argv))
		return CLI_USAGE;
	if (cli->json && !count)
		count = 1;
	/* no screen to draw on: one picture, or as many as were asked for */
	if (!batch && (cli->json || !isatty(STDOUT_FILENO))) {
		batch = true;
		count = count ? count : 1;
	}

	text = *cli;
	text.json = false;
	/* a failure now has a JSON object to itself, later ones do not */
	code = sys_pick(cli, true, &list, &only);
	if (code)
		return code;
	sys_stoppable();
	lines_left = -1;
	columns = 511;
	if (cli->json) {
		jw_begin();
		jw_array("samples");
	}
	if (!batch)
		screen_begin();
	for (n = 0; !code; n++) {
		if (!batch)
			screen_clear();
		else if (n && !cli->json)
			putchar('\n');
		show(cli, list, only);
		csrec_list_free(list);
		fflush(stdout);
		if (ferror(stdout) || n + 1 == count ||
		    !(batch ? sys_sleep(interval) : screen_wait(interval)))
			break;
		code = sys_pick(&text, true, &list, &only);
	}
	if (!batch)
		screen_end();
	/* the message went with the screen */
	if (!batch && code)
		fprintf(stderr, "csrec top: the device is gone\n");
	if (cli->json) {
		jw_end();
		jw_bool("complete", n + 1 == count);
		jw_finish();
	}
	return code;
}

const struct command cmd_top = {
	.name = "top",
	.help = "top [-b] [-n N] [--interval SECONDS] [--device DEV] [--json]\n\n"
		"Shows all devices that have a driver, again and again: use and rates; and for root,\n"
		"from debugfs, every queue and what each process has. UNREAPED completions have not\n"
		"been taken by their owner (- if it has mapped the queue and does not tell). q ends\n"
		"it.\n\n"
		"  -b, --batch         lines instead of a screen; also if the output is no terminal\n"
		"  -n, --count N       end after N pictures (without a terminal and with --json: 1)\n"
		"  --interval SECONDS  between two pictures (default 2)\n",
	.run = run,
};
