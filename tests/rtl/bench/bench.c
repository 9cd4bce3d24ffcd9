// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * bench REPORT [CORE]: throughput of the cores (of one, by name) as a table, and as JSON
 * {"throughput": [{core, work, format, unit, achieved, bound, ratio}]} in REPORT. Achieved and
 * bound are per cycle.
 */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"

static const struct {
	const char *name;
	void (*run)(void);
} cores[] = {
	{ "EMB", bench_emb },
	{ "TT", bench_tt },
};

static FILE *report;
static const char *separator = "";
static uint64_t desc_at;	/* in the host region: next descriptor */
static unsigned int n_added;

void bench_die(const char *fmt, ...)
{
	va_list ap;

	fprintf(stderr, "bench: ");
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
	exit(1);
}

void bench_open(struct dev *d)
{
	dev_open(d, NULL);
	enable(d, 4);
	make_queue(d, 1, 10, 1);
	must(d, cmd_region(0, BENCH_DRAM, CSREC_REGION_DRAM, 3, 1, 0, DRAM_SIZE));
	must(d, cmd_region(0, BENCH_HOST, CSREC_REGION_HOST, 3, 1, HOST_BASE, BENCH_HOST_SIZE));
	desc_at = n_added = 0;
}

void *bench_add(struct dev *d, uint8_t opcode, uint32_t len)
{
	struct csrec_cmd c = cmd_plain(opcode, n_added++);
	void *desc = host_ptr(d, HOST_BASE + desc_at);

	if (desc_at + len > BENCH_HOST_SIZE || n_added > 1024)
		bench_die("too many commands");
	c.flags = CSREC_CMD_F_NOIRQ;
	*AS(&c, desc) = (struct csrec_body_desc){ .desc_key = BENCH_HOST, .desc_len = len,
						  .desc_off = desc_at };
	desc_at += (len + 63) & ~63u;
	put(d, &d->q[1], &c);
	memset(desc, 0, len);
	return desc;
}

uint64_t bench_run(struct dev *d, uint32_t counter)
{
	uint64_t before = reg(d, counter);
	struct csrec_cqe e;

	ring_doorbell(d, &d->q[1]);
	if (!run(d))
		bench_die("the device does not come to rest");
	for (; n_added; n_added--) {
		if (!take(d, &d->q[1], &e))
			bench_die("%u completions are missing", n_added);
		if (cqe_status(&e))
			bench_die("command %u: status %u, field 0x%x, detail 0x%llx", e.cid,
				  cqe_status(&e), e.field, (unsigned long long)e.detail);
	}
	ring_doorbell(d, &d->q[1]);
	desc_at = 0;
	return reg(d, counter) - before;
}

/* By the inverse of the continuous law's distribution */
uint32_t bench_zipf(struct dev *d, uint32_t rows)
{
	double u = (rnd(d) & 0xffffffff) / 4294967296.0, a = 1 - 1.05;
	double x = pow(1 + u * (pow(rows + 1.0, a) - 1), 1 / a) - 1;

	return x < rows ? (uint32_t)x : rows - 1;
}

void bench_report(const char *core, const char *work, const char *format, const char *unit,
		  double achieved, double bound)
{
	printf("%-8s %-28s %-6s %9.3f %9.3f %-16s %5.1f %%\n", core, work, format, achieved, bound,
	       unit, 100 * achieved / bound);
	fflush(stdout);
	fprintf(report, "%s\n  {\"core\": \"%s\", \"work\": \"%s\", \"format\": \"%s\", \"unit\": \"%s\", "
		"\"achieved\": %.4f, \"bound\": %.4f, \"ratio\": %.4f}", separator, core, work,
		format, unit, achieved, bound, achieved / bound);
	separator = ",";
}

int main(int argc, char **argv)
{
	bool any = false;

	if (argc < 2 || argc > 3) {
		fprintf(stderr, "usage: bench REPORT [CORE]\n");
		return 2;
	}
	report = fopen(argv[1], "w");
	if (!report) {
		perror(argv[1]);
		return 1;
	}
	fprintf(report, "{\"throughput\": [");
	printf("%-8s %-28s %-6s %9s %9s %-16s %7s\n", "core", "work", "format", "achieved", "bound",
	       "per cycle", "ratio");
	for (unsigned int i = 0; i < sizeof(cores) / sizeof(cores[0]); i++)
		if (argc == 2 || !strcmp(argv[2], cores[i].name)) {
			cores[i].run();
			any = true;
		}
	fprintf(report, "\n]}\n");
	if (fclose(report)) {
		perror(argv[1]);
		return 1;
	}
	if (!any)
		bench_die("no core '%s'", argv[2]);
	return 0;
}
