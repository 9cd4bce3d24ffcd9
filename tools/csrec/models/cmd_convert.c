// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* csrec convert: a trained model's parameters to a model container. */
#define _GNU_SOURCE
#include <errno.h>
#include <string.h>
#include <convert.h>
#include "models.h"

typedef unsigned long long ull;

static void print(const struct cli *cli, const char *out, const struct cvt_result *r)
{
	if (!cli->json) {
		printf("%s: %s, interaction %s, %u dense inputs, %u tables of %llu rows, %u layers; %s from %s\n",
		       out, r->type, r->interaction, r->ndense, r->ntables, (ull)r->rows,
		       r->nlayers, cli_bytes(r->bytes_out), cli_bytes(r->bytes_in));
		return;
	}
	jw_begin();
	jw_string("model", out);
	jw_string("type", r->type);
	jw_string("interaction", r->interaction);
	jw_uint("dense", r->ndense);
	jw_uint("columns", r->ncolumns);
	jw_uint("tables", r->ntables);
	jw_uint("rows", r->rows);
	jw_uint("layers", r->nlayers);
	jw_uint("bytes_in", r->bytes_in);
	jw_uint("bytes_out", r->bytes_out);
	jw_finish();
}

static int run(struct cli *cli, int argc, char **argv)
{
	static const struct option longopts[] = {
		{ "safetensors", required_argument, NULL, 's' },
		{ "npz", required_argument, NULL, 'z' },
		{ "arch", required_argument, NULL, 'a' },
		{ "rows", required_argument, NULL, 'r' },
		{ "output", required_argument, NULL, 'o' },
		{ NULL, 0, NULL, 0 },
	};
	const char *in = NULL, *arch = NULL, *types = "fp32", *out = NULL;
	enum cvt_kind kind = CVT_SAFETENSORS;
	struct cvt_result result;
	struct cvt_source s;
	struct cvt_rows rows;
	struct csm_err err;
	int opt, code = 0, ret, inputs = 0;

	while ((opt = cli_getopt(cli, argc, argv, longopts, &code)) != CLI_END) {
		switch (opt) {
		case 's':
		case 'z':
			in = optarg;
			kind = opt == 'z' ? CVT_NPZ : CVT_SAFETENSORS;
			inputs++;
			break;
		case 'a':
			arch = optarg;
			break;
		case 'r':
			types = optarg;
			break;
		case 'o':
			out = optarg;
			break;
		default:
			return code;
		}
	}
	if (cli_no_args(cli, argc, argv))
		return CLI_USAGE;
	if (inputs != 1 || !out)
		return cli_fail(cli, CLI_USAGE, "one of --safetensors and --npz, and -o, are needed");
	if (cli_same_file(in, out) || cli_same_file(arch, out))
		return cli_fail(cli, CLI_USAGE, "%s: is read, and would be overwritten", out);
	if (cvt_rows_parse(&rows, types, &err))
		return cli_fail(cli, CLI_USAGE, "--%s", err.msg);
	ret = cvt_open(&s, in, kind, &err);
	if (!ret) {
		ret = cvt_convert(&s, arch, &rows, out, &result, &err);
		cvt_close(&s);
	}
	cvt_rows_free(&rows);
	if (ret)
		return models_fail(cli, ret, &err);
	print(cli, out, &result);
	return CLI_OK;
}

const struct command cmd_convert = {
	.name = "convert",
	.help = "convert (--safetensors FILE | --npz FILE) -o MODEL [OPTION]...\n\n"
		"Makes a model container of a trained model's parameters: DLRM (keys of\n"
		"facebookresearch/dlrm or of TorchRec), Wide & Deep, multi-task Wide & Deep, NCF.\n"
		"Needs little memory, however large the model. A file that is damaged or does not\n"
		"fit is refused, and MODEL is as it was.\n\n"
		"  --safetensors FILE  the parameters\n"
		"  --npz FILE          the same in numpy's format, compressed or not\n"
		"  --arch FILE         JSON with arch_mlp_bot, arch_interaction_op and so on, as\n"
		"                      DeepRecInfra has it: checked against the parameters, and\n"
		"                      needed where they leave the interaction open\n"
		"  --rows TYPES        fp32 (default), fp16 or int8, then TABLE=TYPE for others:\n"
		"                      --rows fp16,C3=int8,C20=fp32\n"
		"  -o, --output MODEL  the container to write\n",
	.run = run,
};
