// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <stdlib.h>
#include "cli.h"

/* What a device does not tell. The SmartSSD's, as in tools/plan/smartssd.json. */
struct told {
	uint64_t rate, iops, clock, power;
};

/* The drive that cold rows would lie on: peer-to-peer if there is one, NULL if none at all. */
static const struct csrec_drive *nearest(const struct csrec_found *d)
{
	const struct csrec_drive *best = NULL;

	for (const struct csrec_drive *v = d->drives; v; v = v->next) {
		int better = !best ? 1 : (v->p2p == CSREC_P2P_LIKELY) - (best->p2p == CSREC_P2P_LIKELY);

		if (!better)
			better = v->shares_switch - best->shares_switch;
		if (v->node[0] && better > 0)
			best = v;
	}
	return best;
}

static int get_info(const struct cli *cli, const char *name, struct csrec_info *info)
{
	struct csrec_dev *dev;
	int ret = csrec_open(&dev, name);

	if (!ret) {
		ret = csrec_get_info(dev, info, sizeof(*info));
		csrec_close(dev);
	}
	return ret ? cli_fail_lib(cli, ret) : 0;
}

static void print_device(const struct csrec_found *d, const struct csrec_info *info,
			 const struct told *t)
{
	const struct csrec_drive *drive = nearest(d);
	char comment[256];

	snprintf(comment, sizeof(comment), "cold rows on %s", drive ? drive->node : "no drive");
	jw_object(NULL);
	jw_string("name", d->bdf);
	jw_string("comment", comment);
	jw_string("config", "auto");
	jw_uint("dram_bytes", info->cap_dram);
	jw_uint("onchip_bytes", info->cap_onchip);
	jw_uint("nvme_bytes", drive ? drive->size : 0);
	jw_uint("nvme_bytes_per_s", t->rate);
	jw_uint("nvme_iops", t->iops);
	jw_uint("clock_hz", t->clock);
	jw_uint("power_w", t->power);
	jw_end();
}

/* All of them first: what is printed is whole. */
static int print_all(const struct cli *cli, const struct csrec_found *list, const struct told *t)
{
	struct csrec_info *info;
	uint32_t n = 0, i = 0;
	int ret = 0;

	for (const struct csrec_found *d = list; d; d = d->next)
		n += d->node[0] != 0;
	if (!n)
		return cli_fail(cli, CLI_NO_DEVICE, "no csrec device with a driver");
	info = calloc(n, sizeof(*info));
	if (!info)
		return cli_fail(cli, CLI_FAIL, "out of memory");
	for (const struct csrec_found *d = list; d && !ret; d = d->next)
		if (d->node[0])
			ret = get_info(cli, d->bdf, &info[i++]);
	if (!ret) {
		i = 0;
		jw_begin();
		jw_uint("csrec_devices", 1);
		jw_array("devices");
		for (const struct csrec_found *d = list; d; d = d->next)
			if (d->node[0])
				print_device(d, &info[i++], t);
		jw_end();
		jw_finish();
	}
	free(info);
	return ret;
}

static int run(struct cli *cli, int argc, char **argv)
{
	static const struct option opts[] = {
		{ "nvme-rate", required_argument, NULL, 'R' },
		{ "nvme-iops", required_argument, NULL, 'I' },
		{ "clock", required_argument, NULL, 'C' },
		{ "power", required_argument, NULL, 'P' },
		{ 0 }
	};
	struct told t = { 3200000000, 750000, 300000000, 25 };
	struct csrec_found *list;
	int code, ret, o;

	while ((o = cli_getopt(cli, argc, argv, opts, &code)) != CLI_END) {
		switch (o) {
		case 'R':
			ret = cli_number(cli, "--nvme-rate", optarg, 1, 1ull << 40, &t.rate);
			break;
		case 'I':
			ret = cli_number(cli, "--nvme-iops", optarg, 1, 1ull << 40, &t.iops);
			break;
		case 'C':
			ret = cli_number(cli, "--clock", optarg, 1000, 1ull << 40, &t.clock);
			break;
		case 'P':
			ret = cli_number(cli, "--power", optarg, 0, 1000000, &t.power);
			break;
		default:
			return code;
		}
		if (ret)
			return ret;
	}
	if (cli_no_args(cli, argc, argv))
		return CLI_USAGE;
	if (cli->device)
		return cli_fail(cli, CLI_USAGE, "takes all devices; --device has no use here");
	ret = csrec_list(&list);
	if (ret)
		return cli_fail_lib(cli, ret);
	ret = print_all(cli, list, &t);
	csrec_list_free(list);
	return ret;
}

const struct command cmd_devices = {
	.name = "devices",
	.help = "devices [OPTION]... >DEVICES.json\n\n"
		"Prints what csrec plan --devices takes, of all devices of this machine: their memories,\n"
		"and the size of the drive that each would read cold rows from, rather one that it can\n"
		"read peer-to-peer. What no device tells is a SmartSSD's, unless said otherwise:\n\n"
		"  --nvme-rate N        bytes a second of the drive (default 3200000000)\n"
		"  --nvme-iops N        reads a second (default 750000)\n"
		"  --clock N            of the device, in Hz (default 300000000)\n"
		"  --power N            of the device, in W (default 25)\n",
	.run = run,
};
