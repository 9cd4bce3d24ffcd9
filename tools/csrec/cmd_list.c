// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "cli.h"

static const char *hint(enum csrec_p2p_hint p2p)
{
	return p2p == CSREC_P2P_LIKELY ? "likely" : p2p == CSREC_P2P_NO ? "no" : "unknown";
}

static void print_json(const struct csrec_found *list)
{
	jw_begin();
	jw_array("devices");
	for (const struct csrec_found *d = list; d; d = d->next) {
		char id[16];

		snprintf(id, sizeof(id), "%04x:%04x", d->vendor, d->device);
		jw_object(NULL);
		jw_string("address", d->bdf);
		jw_string("id", id);
		jw_uint("revision", d->revision);
		jw_string("node", d->node);
		jw_string("driver", d->driver);
		jw_int("numa_node", d->numa_node);
		jw_object("link");
		jw_uint("mts", d->link_mts);
		jw_uint("width", d->link_width);
		jw_uint("max_mts", d->link_max_mts);
		jw_uint("max_width", d->link_max_width);
		jw_end();
		jw_string("path", d->path);
		jw_bool("p2pmem", d->p2pmem);
		jw_array("drives");
		for (const struct csrec_drive *v = d->drives; v; v = v->next) {
			jw_object(NULL);
			jw_string("address", v->bdf);
			jw_string("node", v->node);
			jw_string("model", v->model);
			jw_uint("bytes", v->size);
			jw_int("numa_node", v->numa_node);
			jw_bool("shares_switch", v->shares_switch);
			jw_string("common", v->common);
			jw_string("p2p", hint(v->p2p));
			jw_string("p2p_reason", v->p2p_why);
			jw_end();
		}
		jw_end();
		jw_end();
	}
	jw_end();
	jw_finish();
}

static void print_link(const char *what, uint32_t mts, uint32_t width)
{
	if (mts && width)
		printf("%s%u.%u GT/s x%u", what, mts / 1000, mts % 1000 / 100, width);
	else
		printf("%sunknown", what);
}

static void print_text(const struct csrec_found *list)
{
	for (const struct csrec_found *d = list; d; d = d->next) {
		printf("%s %s  driver %s  NUMA node ", d->bdf, d->node[0] ? d->node : "-",
		       d->driver[0] ? d->driver : "none");
		if (d->numa_node < 0)
			printf("unknown\n");
		else
			printf("%d\n", d->numa_node);
		print_link("  link ", d->link_mts, d->link_width);
		print_link(", of ", d->link_max_mts, d->link_max_width);
		printf("\n  below %s\n", d->path[0] ? d->path : "the root complex itself");
		if (!d->drives)
			printf("  no NVMe drive in this machine\n");
		for (const struct csrec_drive *v = d->drives; v; v = v->next)
			printf("  drive %s %s %s%s%s\n    %s; P2P %s: %s\n", v->bdf,
			       v->node[0] ? v->node : "-", cli_bytes(v->size),
			       v->model[0] ? "  " : "", v->model,
			       v->shares_switch ? "same switch" : "not on the same switch",
			       hint(v->p2p), v->p2p_why);
	}
}

static int run(struct cli *cli, int argc, char **argv)
{
	struct csrec_found *list;
	int code, ret;

	while ((ret = cli_getopt(cli, argc, argv, NULL, &code)) != CLI_END)
		return code;
	if (cli_no_args(cli, argc, argv))
		return CLI_USAGE;

	ret = csrec_list(&list);
	if (ret)
		return cli_fail_lib(cli, ret);
	if (!list)
		return cli_fail(cli, CLI_NO_DEVICE, "no csrec device (%04x:%04x) on the PCI bus",
				CSREC_PCI_VENDOR, CSREC_PCI_DEVICE);
	if (cli->json)
		print_json(list);
	else
		print_text(list);
	csrec_list_free(list);
	return CLI_OK;
}

const struct command cmd_list = {
	.name = "list",
	.help = "list [--json]\n\n"
		"Lists every csrec device with its PCI address, device node, driver, link and NUMA\n"
		"node, and for each NVMe drive whether the two share a PCIe switch and whether the\n"
		"drive's data can be expected to go to the device peer-to-peer. Needs no driver; as\n"
		"root it knows more, because PCI access control (ACS) is readable.\n",
	.run = run,
};
