// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <unistd.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <jansson.h>
#include <format.h>
#include "infer.h"

#define CLOCK_HZ	300e6	/* the clock that modelled times are for */

typedef unsigned long long ull;

struct infer {
	const struct cli *cli;
	struct job job;
	const char *input_path, *output_path, *details_path, *report_path;
	uint64_t limit, batch;
	uint32_t p2p_flags;
	bool golden_only, strict, verify_cold;

	struct csrec_dev *dev;
	struct csm_device *device;
	FILE *output, *details;
	struct csm_tsv tsv;

	/* a batch */
	float *dense, *out, *golden_out;
	struct csm_bags *bags;
	uint64_t *lines;
	uint32_t width;		/* of the output buffer */

	/* all that was scored */
	float *score, *golden;
	uint8_t *label;
	uint64_t n, room;
	uint64_t differ;	/* impressions with an output bit unlike the golden model's */
	uint64_t first_differ;	/* line of the first of them */

	struct csrec_info info;
	struct csrec_stats before, after;
};

static void report_line(void *priv, uint64_t line, const char *why)
{
	const struct infer *in = priv;

	/* the first few say what is wrong, the count says how much */
	if (in->tsv.bad <= 20)
		fprintf(stderr, "%s: line %llu: %s\n", in->input_path, (ull)line, why);
	else if (in->tsv.bad == 21)
		fprintf(stderr, "%s: further malformed lines are only counted\n", in->input_path);
}

static int no_memory(const struct infer *in)
{
	return cli_fail(in->cli, CLI_FAIL, "out of memory");
}

/* Would writing to path destroy a file that is read, or written otherwise? */
static int check_overwrite(const struct infer *in, const char *path, const char *other,
			   const char *what)
{
	if (!cli_same_file(path, other))
		return 0;
	return cli_fail(in->cli, CLI_USAGE, "%s: is %s, and would be overwritten", path, what);
}

/* Opens what is written, each of which must be no other file. */
static int open_output(struct infer *in, const char *path, FILE **f)
{
	if (!path)
		return 0;
	if (path == in->output_path && !strcmp(path, "-")) {
		*f = stdout;
		return 0;
	}
	*f = fopen(path, "we");
	if (!*f)
		return cli_fail(in->cli, CLI_FAIL, "%s: %s", path, strerror(errno));
	return 0;
}

static int open_files(struct infer *in)
{
	const char *const out[] = { in->output_path, in->details_path, in->report_path };
	const char *input = strcmp(in->input_path, "-") ? in->input_path : "/dev/stdin";
	const char *cold = in->job.drive ? in->job.drive : in->job.placement.cold_path;

	in->tsv.f = strcmp(in->input_path, "-") ? fopen(in->input_path, "re") : stdin;
	if (!in->tsv.f)
		return cli_fail(in->cli, CLI_BAD_INPUT, "%s: %s", in->input_path, strerror(errno));
	in->tsv.report = report_line;
	in->tsv.priv = in;
	in->tsv.strict = in->strict;
	for (size_t i = 0; i < sizeof(out) / sizeof(out[0]); i++) {
		if (check_overwrite(in, out[i], input, "the input") ||
		    check_overwrite(in, out[i], in->job.model_path, "the model") ||
		    check_overwrite(in, out[i], in->job.placement_path, "the placement") ||
		    check_overwrite(in, out[i], cold, "the drive for cold rows"))
			return CLI_USAGE;
	}
	if (open_output(in, in->output_path, &in->output))
		return CLI_FAIL;
	if (check_overwrite(in, in->details_path, in->output_path, "the output"))
		return CLI_USAGE;
	if (open_output(in, in->details_path, &in->details))
		return CLI_FAIL;
	if (check_overwrite(in, in->report_path, in->output_path, "the output") ||
	    check_overwrite(in, in->report_path, in->details_path, "the details"))
		return CLI_USAGE;
	if (in->details)
		fputs("line\tlabel\tscore\n", in->details);
	return 0;
}

static int make_batch(struct infer *in)
{
	const struct csm_model *m = &in->job.model;

	in->width = m->buffers[m->output].width;
	in->dense = calloc(in->batch, CSM_TSV_DENSE * sizeof(float));
	in->out = calloc(in->batch, in->width * sizeof(float));
	in->golden_out = calloc(in->batch, in->width * sizeof(float));
	in->lines = calloc(in->batch, sizeof(*in->lines));
	in->bags = calloc(m->nemb + 1, sizeof(*in->bags));
	if (!in->dense || !in->out || !in->golden_out || !in->lines || !in->bags)
		return no_memory(in);
	for (uint32_t e = 0; e < m->nemb; e++) {
		in->bags[e].ids = calloc(in->batch, sizeof(uint32_t));
		in->bags[e].offsets = calloc(in->batch + 1, sizeof(uint32_t));
		if (!in->bags[e].ids || !in->bags[e].offsets)
			return no_memory(in);
		for (uint32_t i = 0; i <= in->batch; i++)	/* one id a bag */
			in->bags[e].offsets[i] = i;
	}
	return 0;
}

static int grow(struct infer *in)
{
	uint64_t room = in->room ? in->room * 2 : 4096;
	void *p;

	if (in->n + in->batch <= in->room)
		return 0;
	while (room < in->n + in->batch)
		room *= 2;
	p = realloc(in->score, room * sizeof(float));
	if (!p)
		return no_memory(in);
	in->score = p;
	p = realloc(in->golden, room * sizeof(float));
	if (!p)
		return no_memory(in);
	in->golden = p;
	p = realloc(in->label, room);
	if (!p)
		return no_memory(in);
	in->label = p;
	in->room = room;
	return 0;
}

/* Up to a batch of impressions from the file. Returns how many or, negative, the error. */
static int read_batch(struct infer *in, struct csm_err *err)
{
	const struct csm_model *m = &in->job.model;
	uint64_t most = in->limit - in->n < in->batch ? in->limit - in->n : in->batch;
	struct csm_click c;
	uint32_t i;
	int ret;

	for (i = 0; i < most; i++) {
		ret = csm_tsv_next(&in->tsv, &c, err);
		if (ret < 0)
			return ret;
		if (!ret)
			break;
		memcpy(in->dense + (size_t)i * CSM_TSV_DENSE, c.dense, sizeof(c.dense));
		for (uint32_t k = 0; k < m->nnodes; k++) {
			const struct csm_node *n = &m->nodes[k];

			if (n->op == CSM_OP_EMB)
				in->bags[n->emb].ids[i] = c.cat[n->column] % m->tables[n->param].nrows;
		}
		in->lines[i] = c.line;
		in->label[in->n + i] = c.label;
	}
	return i;
}

static void keep(struct infer *in, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		const float *a = in->out + (size_t)i * in->width;
		const float *b = in->golden_out + (size_t)i * in->width;

		if (memcmp(a, b, in->width * sizeof(float))) {
			if (!in->differ++)
				in->first_differ = in->lines[i];
		}
		in->score[in->n + i] = a[0];
		in->golden[in->n + i] = b[0];
		/* nine digits give the same float back */
		if (in->output)
			fprintf(in->output, "%.9g\n", a[0]);
		if (in->details)
			fprintf(in->details, "%llu\t%u\t%.9g\n", (ull)in->lines[i],
				in->label[in->n + i], a[0]);
	}
	in->n += n;
}

static int score_all(struct infer *in)
{
	const struct csm_model *m = &in->job.model;
	struct csm_err err;
	int n, ret;

	while (in->n < in->limit) {
		if (grow(in))
			return CLI_FAIL;
		n = read_batch(in, &err);
		if (n < 0)
			return cli_fail(in->cli, CLI_BAD_INPUT, "%s: %s", in->input_path, err.msg);
		if (!n)
			break;
		ret = csm_golden_score(m, in->job.placement_path ? &in->job.placement : NULL,
				       in->dense, in->bags, n, in->golden_out, &err);
		if (!ret && in->device)
			ret = csm_device_score(in->device, in->dense, in->bags, n, in->out, &err);
		else if (!ret)
			memcpy(in->out, in->golden_out, (size_t)n * in->width * sizeof(float));
		if (ret)
			return fail_csm(in->cli, ret, &err);
		keep(in, n);
	}
	if (!in->n)
		return cli_fail(in->cli, CLI_BAD_INPUT, "%s: no well-formed line", in->input_path);
	return 0;
}

static int open_device(struct infer *in)
{
	struct job *job = &in->job;
	struct csm_device_opts opts = {
		.batch = in->batch, .cold_fd = -1, .extent = &job->extent,
		.p2p_flags = in->p2p_flags, .max_ids = 1,
	};
	struct csm_err err;
	struct stat st;
	int code, ret;

	if (!job->placement_path)
		return cli_fail(in->cli, CLI_USAGE, "--plan (or --placement) is needed to score on a device");
	code = cli_open(in->cli, &in->dev);
	if (code)
		return code;
	if (job->placement.ncold) {
		code = job_open_cold(in->cli, job, O_RDONLY);
		if (code)
			return code;
		ret = csm_extent_open(&job->extent, job->cold_fd, job->cold, &job->model,
				      &job->placement, &job->remap, &err);
		if (!ret && in->verify_cold)
			ret = csm_extent_verify(&job->extent, job->cold_fd, job->cold, &err);
		if (ret)
			return fail_csm(in->cli, ret, &err);
		opts.cold_fd = job->cold_fd;
		opts.cold_is_file = !fstat(job->cold_fd, &st) && S_ISREG(st.st_mode);
		if (opts.cold_is_file && in->p2p_flags & CSREC_P2P_F_ONLY)
			return cli_fail(in->cli, CLI_NO_P2P,
					"%s is a file; peer-to-peer needs a block device", job->cold);
	}
	ret = csrec_get_info(in->dev, &in->info, sizeof(in->info));
	if (ret)
		return cli_fail_lib(in->cli, ret);
	ret = csm_device_create(&in->device, in->dev, &job->model, &job->remap, &opts, &err);
	if (ret)
		return fail_csm(in->cli, ret, &err);
	return 0;
}

static const char *fp_unit(const struct infer *in)
{
	static const char *const names[] = { "rtl", "dpi", "golden" };
	uint32_t fp = CSREC_CAP(in->info.cap_engine, CSREC_CAPE_FP, 4);

	if (in->golden_only)
		return "golden";
	return fp < sizeof(names) / sizeof(names[0]) ? names[fp] : "unknown";
}

#define DELTA(reg)	(CSREC_COUNTER(&in->after, reg) - CSREC_COUNTER(&in->before, reg))

static double millis(uint64_t cycles)
{
	return (double)cycles / CLOCK_HZ * 1e3;
}

static json_t *number(double x)
{
	return isfinite(x) ? json_real(x) : json_null();
}

static json_t *make_report(const struct infer *in)
{
	static const struct csm_totals none;
	const struct csm_totals *t = in->device ? csm_device_totals(in->device) : &none;
	struct utsname uts = { };

	uname(&uts);
	return json_pack(
		"{s:I, s:I, s:o, s:o, s:o, s:o, s:I, s:n, s:{s:I, s:I, s:I}, "
		"s:{s:I, s:I, s:I, s:I}, s:I, s:I, s:I, s:{s:I, s:I, s:I, s:I, s:I}, "
		"s:s, s:s, s:s, s:I, s:I, s:I, s:o}",
		"impressions", (json_int_t)in->n, "malformed_lines", (json_int_t)in->tsv.bad,
		"auc", number(csm_auc(in->score, in->label, in->n)),
		"auc_golden", number(csm_auc(in->golden, in->label, in->n)),
		"logloss", number(csm_logloss(in->score, in->label, in->n)),
		"logloss_golden", number(csm_logloss(in->golden, in->label, in->n)),
		"scores_differ_bits", (json_int_t)in->differ,
		"max_abs_err_f64",
		"rows", "dram", (json_int_t)t->rows_dram, "tt", (json_int_t)t->rows_tt,
		"nvme", (json_int_t)t->rows_nvme,
		"bytes", "host_in", (json_int_t)DELTA(HOST_RD), "host_out", (json_int_t)DELTA(HOST_WR),
		"p2p", (json_int_t)t->p2p_bytes, "bounce", (json_int_t)t->bounce_bytes,
		"commands", (json_int_t)DELTA(COMMANDS),
		"doorbells", (json_int_t)DELTA(DOORBELLS),
		"interrupts", (json_int_t)(in->after.interrupts - in->before.interrupts),
		"cycles", "emb", (json_int_t)DELTA(BUSY_EMB), "tt", (json_int_t)DELTA(BUSY_TT),
		"interact", (json_int_t)DELTA(BUSY_INTERACT), "mlp", (json_int_t)DELTA(BUSY_MLP),
		"total", (json_int_t)DELTA(BUSY),
		"kernel", uts.release, "fp_unit", fp_unit(in),
		"backend", in->golden_only ? "golden" : "device",
		"batches", (json_int_t)t->batches, "batches_split", (json_int_t)t->split,
		"fetches", (json_int_t)t->fetches,
		"modelled_ms_300mhz", number(millis(DELTA(BUSY))));
}

/* Without clicks, or with nothing else, there is no area under the curve. */
static void auc_text(char text[16], double auc)
{
	if (isnan(auc))
		strcpy(text, "undefined");
	else
		snprintf(text, 16, "%.6f", auc);
}

static void print(FILE *to, const struct infer *in)
{
	const struct csm_totals *t;
	char auc[2][16];

	auc_text(auc[0], csm_auc(in->score, in->label, in->n));
	auc_text(auc[1], csm_auc(in->golden, in->label, in->n));
	fprintf(to, "%llu impressions", (ull)in->n);
	if (in->tsv.bad)
		fprintf(to, ", %llu malformed lines left out", (ull)in->tsv.bad);
	fprintf(to, "\nAUC %s, log-loss %.6f; golden model: AUC %s, log-loss %.6f\n", auc[0],
		csm_logloss(in->score, in->label, in->n), auc[1],
		csm_logloss(in->golden, in->label, in->n));
	if (in->device) {
		t = csm_device_totals(in->device);
		fprintf(to, "scores that differ from the golden model in any bit: %llu\n"
			"rows: %llu from device DRAM, %llu from TT cores, %llu from the drive\n"
			"bytes: %llu from host, %llu to host by DMA; %llu P2P, %llu bounced\n"
			"commands %llu, doorbell writes %llu, interrupts %llu, batches %llu\n",
			(ull)in->differ, (ull)t->rows_dram, (ull)t->rows_tt, (ull)t->rows_nvme,
			(ull)DELTA(HOST_RD), (ull)DELTA(HOST_WR), (ull)t->p2p_bytes,
			(ull)t->bounce_bytes, (ull)DELTA(COMMANDS),
			(ull)DELTA(DOORBELLS),
			(ull)(in->after.interrupts - in->before.interrupts), (ull)t->batches);
		fprintf(to, "device cycles: EMB %llu, TT %llu, INTERACT %llu, MLP %llu, any of them %llu\n"
			"modelled, not measured: %.3f ms at 300 MHz, %.3f us an impression (fp unit: %s)\n",
			(ull)DELTA(BUSY_EMB), (ull)DELTA(BUSY_TT), (ull)DELTA(BUSY_INTERACT),
			(ull)DELTA(BUSY_MLP), (ull)DELTA(BUSY), millis(DELTA(BUSY)),
			millis(DELTA(BUSY)) * 1e3 / (double)in->n, fp_unit(in));
	}
	if (in->output_path && in->output != stdout)
		fprintf(to, "scores: %s\n", in->output_path);
}

static int finish(struct infer *in)
{
	json_t *report;
	int code = 0;

	if (in->output && (fflush(in->output) || ferror(in->output)))
		return cli_fail(in->cli, CLI_FAIL, "%s: %s", in->output_path, strerror(errno));
	if (in->details && (fflush(in->details) || ferror(in->details)))
		return cli_fail(in->cli, CLI_FAIL, "%s: %s", in->details_path, strerror(errno));
	report = make_report(in);
	if (!report)
		return no_memory(in);
	if (in->report_path && json_dump_file(report, in->report_path, JSON_INDENT(2)))
		code = cli_fail(in->cli, CLI_FAIL, "%s: %s", in->report_path, strerror(errno));
	else if (in->cli->json && !json_dumpf(report, stdout, JSON_INDENT(2)))
		putchar('\n');
	else if (!in->cli->json)
		print(in->output == stdout ? stderr : stdout, in);
	json_decref(report);
	if (!code && in->differ) {
		fprintf(stderr, "csrec infer: %llu scores differ from the golden model, first of line %llu\n",
			(ull)in->differ, (ull)in->first_differ);
		code = CLI_FAIL;
	}
	return code;
}

static int infer(struct infer *in)
{
	int code, ret;

	code = job_load(in->cli, &in->job);
	if (!code && strcmp(in->job.model.format, CSM_INPUT_CRITEO))
		code = cli_fail(in->cli, CLI_BAD_INPUT,
				"%s: takes %u dense inputs and %u id columns; a Criteo log has %u and %u, and no other can be read",
				in->job.model_path, in->job.model.ndense, in->job.model.ncolumns,
				CSM_TSV_DENSE, CSM_TSV_CATS);
	if (!code)
		code = open_files(in);
	if (!code)
		code = make_batch(in);
	if (!code && !in->golden_only)
		code = open_device(in);
	if (code)
		return code;
	if (in->dev) {
		ret = csrec_get_stats(in->dev, &in->before, sizeof(in->before));
		if (ret)
			return cli_fail_lib(in->cli, ret);
	}
	code = score_all(in);
	if (code)
		return code;
	if (in->dev) {
		ret = csrec_get_stats(in->dev, &in->after, sizeof(in->after));
		if (ret)
			return cli_fail_lib(in->cli, ret);
	}
	return finish(in);
}

static void infer_free(struct infer *in)
{
	for (uint32_t e = 0; in->bags && e < in->job.model.nemb; e++) {
		free(in->bags[e].ids);
		free(in->bags[e].offsets);
	}
	free(in->bags);
	free(in->dense);
	free(in->out);
	free(in->golden_out);
	free(in->lines);
	free(in->score);
	free(in->golden);
	free(in->label);
	csm_device_destroy(in->device);
	if (in->dev)
		csrec_close(in->dev);
	if (in->output && in->output != stdout)
		fclose(in->output);
	if (in->details)
		fclose(in->details);
	if (in->tsv.f && in->tsv.f != stdin)
		fclose(in->tsv.f);
	job_free(&in->job);
}

enum { DETAILS = 256 };

static int run(struct cli *cli, int argc, char **argv)
{
	static const struct option longopts[] = {
		{ "model", required_argument, NULL, 'm' },
		{ "placement", required_argument, NULL, 'p' },
		{ "plan", required_argument, NULL, 'p' },
		{ "input", required_argument, NULL, 'i' },
		{ "output", required_argument, NULL, 'o' },
		{ "details", required_argument, NULL, DETAILS },
		{ "report", required_argument, NULL, 'r' },
		{ "limit", required_argument, NULL, 'n' },
		{ "batch", required_argument, NULL, 'b' },
		{ "drive", required_argument, NULL, 'D' },
		{ "p2p", required_argument, NULL, 'P' },
		{ "backend", required_argument, NULL, 'B' },
		{ "strict", no_argument, NULL, 's' },
		{ "verify-cold", no_argument, NULL, 'v' },
		{ NULL, 0, NULL, 0 },
	};
	struct infer in = { .cli = cli, .job.cold_fd = -1, .limit = UINT64_MAX, .batch = 64 };
	int opt, code = 0;

	while ((opt = cli_getopt(cli, argc, argv, longopts, &code)) != CLI_END) {
		switch (opt) {
		case 'm':
			in.job.model_path = optarg;
			break;
		case 'p':
			in.job.placement_path = optarg;
			break;
		case 'i':
			in.input_path = optarg;
			break;
		case 'o':
			in.output_path = optarg;
			break;
		case DETAILS:
			in.details_path = optarg;
			break;
		case 'r':
			in.report_path = optarg;
			break;
		case 'n':
			code = cli_number(cli, "--limit", optarg, 1, INT64_MAX, &in.limit);
			break;
		case 'b':
			code = cli_number(cli, "--batch", optarg, 1, 65536, &in.batch);
			break;
		case 'D':
			in.job.drive = optarg;
			break;
		case 'P':
			if (!strcmp(optarg, "only"))
				in.p2p_flags = CSREC_P2P_F_ONLY;
			else if (!strcmp(optarg, "bounce"))
				in.p2p_flags = CSREC_P2P_F_BOUNCE;
			else if (!strcmp(optarg, "auto"))
				in.p2p_flags = 0;
			else
				code = cli_fail(cli, CLI_USAGE, "--p2p: \"%s\" is none of only, auto, bounce",
						optarg);
			break;
		case 'B':
			in.golden_only = !strcmp(optarg, "golden");
			if (!in.golden_only && strcmp(optarg, "device"))
				code = cli_fail(cli, CLI_USAGE, "--backend: \"%s\" is neither device nor golden",
						optarg);
			break;
		case 's':
			in.strict = true;
			break;
		case 'v':
			in.verify_cold = true;
			break;
		default:
			return code;
		}
		if (code)
			return code;
	}
	if (cli_no_args(cli, argc, argv))
		return CLI_USAGE;
	if (!in.input_path)
		return cli_fail(cli, CLI_USAGE, "--input is needed");
	if (cli->json && in.output_path && !strcmp(in.output_path, "-"))
		return cli_fail(cli, CLI_USAGE, "--output - and --json: both want standard output");
	code = infer(&in);
	infer_free(&in);
	return code;
}

const struct command cmd_infer = {
	.name = "infer",
	.help = "infer --model FILE --plan FILE --input FILE [OPTION]...\n\n"
		"Scores a click log in Criteo TSV form (label, 13 integers, 26 hexadecimal\n"
		"categories) on a csrec device, and again with the golden model on the CPU. Exits\n"
		"with 1 if a score differs in any bit.\n\n"
		"  --model FILE      model container\n"
		"  --plan FILE       which rows live where: what csrec plan writes, or a placement\n"
		"                    by hand; --placement is the same option\n"
		"  --input FILE      click log, - for standard input\n"
		"  --limit N         impressions to score (default: all)\n"
		"  -o, --output FILE writes the scores, one a line, in the order of the input; - is\n"
		"                    standard output, and the summary then goes to standard error\n"
		"  --details FILE    writes line, label, score of each impression\n"
		"  --report FILE     writes all figures as JSON\n"
		"  --batch N         impressions per submission (default 64)\n"
		"  --drive PATH      where the cold rows are (default: the placement's path)\n"
		"  --p2p HOW         only: never bounce through host memory; bounce: always;\n"
		"                    auto: peer-to-peer where possible (default)\n"
		"  --verify-cold     first check every cold block against its checksum\n"
		"  --backend WHAT    device (default), or golden: the CPU alone, no device\n"
		"  --strict          stop at the first malformed line\n",
	.run = run,
};
