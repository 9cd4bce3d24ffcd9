// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <inttypes.h>
#include "sys.h"

enum { OPT_INTERVAL = 1, OPT_COUNT };

static const struct option longopts[] = {
	{ "interval", required_argument, NULL, OPT_INTERVAL },
	{ "count", required_argument, NULL, OPT_COUNT },
	{ NULL, 0, NULL, 0 },
};

/* What grew; pinned_bytes is no total and stays what it is. */
static void difference(struct sys_sample *out, const struct sys_sample *a,
		       const struct sys_sample *b)
{
	out->time = b->time - a->time;
	for (size_t i = 0; i < SYS_COUNTERS; i++)
		out->counters[i] = strcmp(sys_counters[i], "pinned_bytes") ?
				   b->counters[i] - a->counters[i] : b->counters[i];
	for (size_t i = 0; i < SYS_HW_COUNTERS; i++)
		out->hw[i] = b->hw[i] - a->hw[i];
}

static void print_json(const struct sys_sample *s)
{
	jw_object("counters");
	for (size_t i = 0; i < SYS_COUNTERS; i++)
		jw_uint(sys_counters[i], s->counters[i]);
	jw_end();
	jw_object("hw_counters");
	for (size_t i = 0; i < SYS_HW_COUNTERS; i++)
		jw_uint(sys_hw_counters[i], s->hw[i]);
	jw_end();
}

static void print_totals(const struct csrec_found *d, const struct sys_sample *s)
{
	printf("%s since the driver took it; commands and doorbells without mapped queues\n",
	       d->node);
	for (size_t i = 0; i < SYS_COUNTERS; i++)
		printf("  %-18s %" PRIu64 "\n", sys_counters[i], s->counters[i]);
	printf("counted by the device, mapped queues included\n");
	for (size_t i = 0; i < SYS_HW_COUNTERS; i++)
		printf("  %-18s %" PRIu64 "\n", sys_hw_counters[i], s->hw[i]);
}

static const char *const columns[] = {
	"commands", "errors", "irqs", "host_read_bytes", "host_write_bytes", "dram_read_bytes",
	"dram_write_bytes",
};

static void print_head(void)
{
	printf("%9s %7s %9s %11s %11s %11s %11s %11s %11s %6s\n", "commands", "errors", "irqs",
	       "host_rd", "host_wr", "dram_rd", "dram_wr", "p2p", "bounce", "busy%");
}

static void print_row(const struct sys_sample *s)
{
	for (size_t i = 0; i < COUNT(columns); i++)
		printf("%*" PRIu64 " ", i == 1 ? 7 : i < 3 ? 9 : 11, sys_hw_counter(s, columns[i]));
	printf("%11" PRIu64 " %11" PRIu64 " %6.1f\n", sys_counter(s, "p2p_bytes"),
	       sys_counter(s, "bounce_bytes"),
	       sys_busy(sys_hw_counter(s, "busy"), sys_hw_counter(s, "cycles")));
	fflush(stdout);
}

/* count rows, or rows for ever; JSON ends with one object whatever happens. */
static int watch(const struct cli *cli, const struct csrec_found *d, double interval,
		 uint64_t count, struct sys_sample *last)
{
	struct sys_sample now, diff;
	uint64_t n;

	sys_stoppable();
	if (cli->json) {
		jw_begin();
		jw_string("node", d->node);
		jw_array("samples");
	}
	for (n = 0; !count || n < count; n++) {
		if (!sys_sleep(interval))
			break;
		if (!sys_sample(d, &now))
			break;
		difference(&diff, last, &now);
		if (cli->json) {
			jw_object(NULL);
			jw_double("seconds", diff.time);
			print_json(&diff);
			jw_end();
		} else {
			if (n % 20 == 0)
				print_head();
			print_row(&diff);
		}
		*last = now;
		/* who reads has gone */
		if (ferror(stdout))
			break;
	}
	if (cli->json) {
		jw_end();
		jw_bool("complete", n == count);
		jw_finish();
	}
	if (sys_stopped() || n == count || ferror(stdout))
		return CLI_OK;
	fflush(stdout);
	fprintf(stderr, "csrec stat: %s is gone\n", d->node);
	return CLI_NO_DEVICE;
}

static int run(struct cli *cli, int argc, char **argv)
{
	struct csrec_found *list, *d;
	struct sys_sample s;
	uint64_t count = 0;
	double interval = 0;
	int code, ret;

	while ((ret = cli_getopt(cli, argc, argv, longopts, &code)) != CLI_END) {
		if (ret == CLI_EXIT)
			return code;
		code = ret == OPT_INTERVAL ? sys_seconds(cli, "--interval", optarg, &interval) :
		       cli_number(cli, "--count", optarg, 1, 1000000000, &count);
		if (code)
			return code;
	}
	if (cli_no_args(cli, argc, argv))
		return CLI_USAGE;
	if (count && !interval)
		return cli_fail(cli, CLI_USAGE, "--count needs --interval");
	if (cli->json && interval && !count)
		return cli_fail(cli, CLI_USAGE, "--json with --interval needs --count");

	code = sys_pick(cli, true, &list, &d);
	if (code)
		return code;
	if (!sys_sample(d, &s)) {
		code = cli_fail(cli, CLI_VERSION,
				"%s has no counters in sysfs: its driver is older than 1.1, or just going",
				d->node);
	} else if (interval) {
		code = watch(cli, d, interval, count, &s);
	} else if (cli->json) {
		jw_begin();
		jw_string("node", d->node);
		print_json(&s);
		jw_finish();
	} else {
		print_totals(d, &s);
	}
	csrec_list_free(list);
	return code;
}

const struct command cmd_stat = {
	.name = "stat",
	.help = "stat [--device DEV] [--interval SECONDS [--count N]] [--json]\n\n"
		"Shows the counters of driver and device since the driver took the device. They only\n"
		"grow, but for pinned_bytes, which is what is pinned now; a reset of the device does\n"
		"not set them back. What goes over a queue that a process has mapped is not seen by\n"
		"the driver, and is only in the device's counters. Needs no privilege.\n\n"
		"  --interval SECONDS  every so often a line of what was added since the last one\n"
		"  --count N           ends after N lines; needed with --json\n",
	.run = run,
};
