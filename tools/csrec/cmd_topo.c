// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <stdlib.h>
#include "sys.h"

/* A bridge, drive or accelerator; parents come before their children. */
struct node {
	char bdf[16];
	int parent;			/* -1: below the root complex */
	int depth;
	int type;			/* port type, -1 unknown */
	int acs;			/* as sys_acs() */
	const struct csrec_found *device;
	const struct csrec_drive *drive;	/* the first namespace */
};

#define MAX_NODES 512

struct topo {
	struct node nodes[MAX_NODES];
	int count;
	bool cut;			/* there were more */
};

static int find(const struct topo *t, const char *bdf)
{
	for (int i = 0; i < t->count; i++)
		if (!strcmp(t->nodes[i].bdf, bdf))
			return i;
	return -1;
}

/* Adds what is above bdf and bdf itself; returns its node or NULL. */
static struct node *add(struct topo *t, const char *bdf)
{
	static struct sys_config config;
	char path[SYS_DEPTH][16];
	int n = sys_path(bdf, path, SYS_DEPTH), parent = -1, at = -1;

	for (int i = 0; i < n; i++, parent = at) {
		at = find(t, path[i]);
		if (at >= 0)
			continue;
		if (t->count == MAX_NODES) {
			t->cut = true;
			return NULL;
		}
		at = t->count++;
		sys_config(path[i], &config);
		t->nodes[at] = (struct node){
			.parent = parent,
			.depth = i,
			.type = sys_port_type(&config),
			.acs = sys_acs(&config),
		};
		memcpy(t->nodes[at].bdf, path[i], 16);
	}
	return at < 0 ? NULL : &t->nodes[at];
}

static const char *kind(const struct node *n)
{
	if (n->device)
		return "csrec";
	if (n->drive)
		return "nvme";
	switch (n->type) {
	case SYS_ROOT_PORT:
		return "root_port";
	case SYS_UPSTREAM:
		return "switch_upstream";
	case SYS_DOWNSTREAM:
		return "switch_downstream";
	}
	return "bridge";
}

static const char *acs(const struct node *n)
{
	return n->acs == 1 ? "redirects" : n->acs == 0 ? "off" : n->acs == -2 ? "none" : "unknown";
}

static const char *hint(enum csrec_p2p_hint p2p)
{
	return p2p == CSREC_P2P_LIKELY ? "likely" : p2p == CSREC_P2P_NO ? "no" : "unknown";
}

static void print_json(const struct topo *t, const struct csrec_found *list)
{
	jw_begin();
	jw_array("nodes");
	for (int i = 0; i < t->count; i++) {
		const struct node *n = &t->nodes[i];

		jw_object(NULL);
		jw_string("address", n->bdf);
		jw_string("parent", n->parent < 0 ? "" : t->nodes[n->parent].bdf);
		jw_string("kind", kind(n));
		if (n->device) {
			jw_string("node", n->device->node);
			jw_string("driver", n->device->driver);
		} else if (n->drive) {
			jw_array("nodes");
			for (const struct csrec_drive *v = n->drive; v; v = v->next)
				if (!strcmp(v->bdf, n->bdf) && v->node[0])
					jw_string(NULL, v->node);
			jw_end();
			jw_string("model", n->drive->model);
		} else {
			jw_string("acs", acs(n));
		}
		jw_end();
	}
	jw_end();
	jw_array("pairs");
	for (const struct csrec_found *d = list; d; d = d->next) {
		for (const struct csrec_drive *v = d->drives; v; v = v->next) {
			jw_object(NULL);
			jw_string("device", d->bdf);
			jw_string("drive", v->bdf);
			jw_string("device_node", d->node);
			jw_string("drive_node", v->node);
			jw_string("common", v->common);
			jw_string("p2p", hint(v->p2p));
			jw_string("p2p_reason", v->p2p_why);
			jw_end();
		}
	}
	jw_end();
	jw_finish();
}

static const char *bridge_text(const struct node *n)
{
	switch (n->type) {
	case SYS_ROOT_PORT:
		return "root port";
	case SYS_UPSTREAM:
		return "switch";
	case SYS_DOWNSTREAM:
		return "switch port";
	}
	return "bridge";
}

static void print_node(const struct topo *t, int at)
{
	const struct node *n = &t->nodes[at];

	printf("%*s%s  ", 2 * n->depth + 2, "", n->bdf);
	if (n->device) {
		printf("csrec %s  driver %s\n", n->device->node[0] ? n->device->node : "-",
		       n->device->driver[0] ? n->device->driver : "none");
	} else if (n->drive) {
		printf("NVMe");
		for (const struct csrec_drive *v = n->drive; v; v = v->next)
			if (!strcmp(v->bdf, n->bdf))
				printf(" %s", v->node[0] ? v->node : "-");
		printf("%s%s\n", n->drive->model[0] ? "  " : "", n->drive->model);
	} else {
		printf("%s%s\n", bridge_text(n), n->acs == 1 ? ", ACS redirects" :
		       n->acs == -1 ? ", ACS unknown" : "");
	}
	for (int i = 0; i < t->count; i++)
		if (t->nodes[i].parent == at)
			print_node(t, i);
}

static void print_text(const struct topo *t, const struct csrec_found *list)
{
	printf("root complex\n");
	for (int i = 0; i < t->count; i++)
		if (t->nodes[i].parent < 0)
			print_node(t, i);
	if (t->cut)
		printf("  and more\n");
	printf("peer-to-peer\n");
	for (const struct csrec_found *d = list; d; d = d->next) {
		if (!d->drives)
			printf("  %s: no NVMe drive in this machine\n", d->bdf);
		for (const struct csrec_drive *v = d->drives; v; v = v->next)
			printf("  %s with %s: %s: %s\n", d->node[0] ? d->node : d->bdf,
			       v->node[0] ? v->node : v->bdf, hint(v->p2p), v->p2p_why);
	}
}

static int run(struct cli *cli, int argc, char **argv)
{
	static struct topo topo;
	struct csrec_found *list;
	struct node *n;
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
	for (const struct csrec_found *d = list; d; d = d->next) {
		n = add(&topo, d->bdf);
		if (n)
			n->device = d;
		for (const struct csrec_drive *v = d->drives; v; v = v->next) {
			n = add(&topo, v->bdf);
			if (n && !n->drive)
				n->drive = v;
		}
	}
	if (cli->json)
		print_json(&topo, list);
	else
		print_text(&topo, list);
	csrec_list_free(list);
	return CLI_OK;
}

const struct command cmd_topo = {
	.name = "topo",
	.help = "topo [--json]\n\n"
		"Shows the PCI bridges above every csrec device and NVMe drive as a tree, whether\n"
		"access control (ACS) of a port redirects peer-to-peer requests, and for each pair\n"
		"of device and drive whether P2P can be expected, or why not. Needs no driver; ACS\n"
		"can be read by root only.\n",
	.run = run,
};
