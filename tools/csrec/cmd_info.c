// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "cli.h"

static const struct {
	const char *name;
	uint32_t reg;
} counters[] = {
#define C(key, reg) { key, CSREC_REG_CNT_##reg }
	C("cycles", CYCLES), C("progress", PROGRESS), C("commands", COMMANDS), C("errors", ERRORS),
	C("doorbells", DOORBELLS), C("bad_doorbells", BAD_DOORBELL), C("bad_writes", BAD_WRITE),
	C("irqs", IRQS), C("host_read_bytes", HOST_RD), C("host_write_bytes", HOST_WR),
	C("dram_read_bytes", DRAM_RD), C("dram_write_bytes", DRAM_WR),
	C("busy_copy", BUSY_COPY), C("busy_emb", BUSY_EMB), C("busy_tt", BUSY_TT),
	C("busy_interact", BUSY_INTERACT), C("busy_mlp", BUSY_MLP), C("busy", BUSY),
	C("emb_rows", EMB_ROWS), C("tt_rows", TT_ROWS), C("tt_saved", TT_SAVED),
#undef C
};

static const struct {
	const char *name;
	uint64_t bit;
} engines[] = {
	{ "copy", CSREC_CAPE_COPY }, { "emb", CSREC_CAPE_EMB }, { "tt", CSREC_CAPE_TT },
	{ "interact", CSREC_CAPE_INTERACT }, { "mlp", CSREC_CAPE_MLP },
};

static const struct {
	const char *name;
	uint32_t bit;
} features[] = {
	{ "p2pdma", CSREC_FEATURE_P2PDMA }, { "queue_map", CSREC_FEATURE_QUEUE_MAP },
	{ "coalesce", CSREC_FEATURE_COALESCE }, { "mem_map", CSREC_FEATURE_MEM_MAP },
	{ "uring", CSREC_FEATURE_URING },
};

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static uint64_t counter(const struct csrec_stats *st, uint32_t reg)
{
	return reg == CSREC_REG_CNT_TT_SAVED ? st->tt_saved :
	       st->counters[(reg - CSREC_REG_CNT_CYCLES) / 8];
}

static const char *fp_unit(const struct csrec_info *info)
{
	switch (CSREC_CAP(info->cap_engine, CSREC_CAPE_FP, 4)) {
	case CSREC_FP_RTL:
		return "rtl";
	case CSREC_FP_DPI:
		return "dpi";
	case CSREC_FP_GOLDEN:
		return "golden";
	}
	return "unknown";
}

static void print_json(const char *name, const struct csrec_info *i, const struct csrec_stats *st)
{
	char bdf[16], text[32];

	snprintf(bdf, sizeof(bdf), "%04x:%02x:%02x.%x", i->pci_domain & 0xffff, i->pci_bus,
		 i->pci_devfn >> 3, i->pci_devfn & 7);
	jw_begin();
	jw_string("node", name);
	jw_string("address", bdf);
	jw_int("numa_node", i->numa_node);
	jw_object("versions");
	jw_string("library", csrec_lib_version());
	snprintf(text, sizeof(text), "%u.%u", i->uapi_major, i->uapi_minor);
	jw_string("driver", text);
	snprintf(text, sizeof(text), "%u.%u", i->hw_major, i->hw_minor);
	jw_string("device", text);
	jw_end();
	jw_object("memory");
	jw_uint("dram", i->cap_dram);
	jw_uint("dram_free", i->dram_free);
	jw_uint("onchip", i->cap_onchip);
	jw_uint("onchip_free", i->onchip_free);
	jw_end();
	jw_object("limits");
	jw_uint("io_queues", CSREC_CAP(i->cap_queue, CSREC_CAPQ_IOQ, 8));
	jw_uint("queue_entries", 1ull << CSREC_CAP(i->cap_queue, CSREC_CAPQ_ENTRIES, 6));
	jw_uint("vectors", CSREC_CAP(i->cap_queue, CSREC_CAPQ_VECTORS, 8));
	jw_uint("vectors_granted", i->irq_vectors);
	jw_uint("doorbell_stride", 1ull << CSREC_CAP(i->cap_queue, CSREC_CAPQ_STRIDE, 6));
	jw_uint("regions", CSREC_CAP(i->cap_table, CSREC_CAPT_REGIONS, 16));
	jw_uint("fences", CSREC_CAP(i->cap_table, CSREC_CAPT_FENCES, 16));
	jw_uint("dim", CSREC_CAP(i->cap_limit, CSREC_CAPL_DIM, 16));
	jw_uint("vectors_interact", CSREC_CAP(i->cap_limit, CSREC_CAPL_VECS, 16));
	jw_uint("tt_rank", CSREC_CAP(i->cap_limit, CSREC_CAPL_RANK, 16));
	jw_uint("mlp_width", CSREC_CAP(i->cap_limit, CSREC_CAPL_WIDTH, 16));
	jw_end();
	jw_array("engines");
	for (size_t n = 0; n < COUNT(engines); n++)
		if (i->cap_engine & engines[n].bit)
			jw_string(NULL, engines[n].name);
	jw_end();
	jw_string("fp_unit", fp_unit(i));
	jw_uint("macs", CSREC_CAP(i->cap_engine, CSREC_CAPE_MACS, 16));
	jw_bool("p2pdma", i->features & CSREC_FEATURE_P2PDMA);
	jw_array("features");
	for (size_t n = 0; n < COUNT(features); n++)
		if (i->features & features[n].bit)
			jw_string(NULL, features[n].name);
	jw_end();
	jw_object("quota");
	jw_uint("dram", i->quota_dram);
	jw_uint("dram_owned", i->owned_dram);
	jw_uint("queues", i->quota_queues);
	jw_uint("queues_owned", i->owned_queues);
	jw_end();
	jw_object("driver_counters");
	jw_uint("doorbells", st->doorbells);
	jw_uint("interrupts", st->interrupts);
	jw_uint("commands", st->commands);
	jw_uint("p2p_bytes", st->p2p_bytes);
	jw_uint("bounce_bytes", st->bounce_bytes);
	jw_uint("pinned_bytes", st->pinned_bytes);
	jw_uint("queue_resets", st->queue_resets);
	jw_uint("device_resets", st->device_resets);
	jw_end();
	jw_object("device_counters");
	for (size_t n = 0; n < COUNT(counters); n++)
		jw_uint(counters[n].name, counter(st, counters[n].reg));
	jw_end();
	jw_finish();
}

static void print_text(const char *name, const struct csrec_info *i, const struct csrec_stats *st)
{
	printf("%s at %04x:%02x:%02x.%x, NUMA node ", name, i->pci_domain & 0xffff, i->pci_bus,
	       i->pci_devfn >> 3, i->pci_devfn & 7);
	if (i->numa_node < 0)
		printf("unknown\n");
	else
		printf("%d\n", i->numa_node);
	printf("versions   library %s, driver interface %u.%u, device interface %u.%u\n",
	       csrec_lib_version(), i->uapi_major, i->uapi_minor, i->hw_major, i->hw_minor);
	printf("DRAM       %s, free %s\n", cli_bytes(i->cap_dram), cli_bytes(i->dram_free));
	printf("on-chip    %s, free %s\n", cli_bytes(i->cap_onchip), cli_bytes(i->onchip_free));
	printf("queues     %u of up to %llu entries, %u of %u interrupt vectors\n",
	       CSREC_CAP(i->cap_queue, CSREC_CAPQ_IOQ, 8),
	       1ull << CSREC_CAP(i->cap_queue, CSREC_CAPQ_ENTRIES, 6), i->irq_vectors,
	       CSREC_CAP(i->cap_queue, CSREC_CAPQ_VECTORS, 8));
	printf("tables     %u regions, %u fences\n",
	       CSREC_CAP(i->cap_table, CSREC_CAPT_REGIONS, 16),
	       CSREC_CAP(i->cap_table, CSREC_CAPT_FENCES, 16));
	printf("engines   ");
	for (size_t n = 0; n < COUNT(engines); n++)
		if (i->cap_engine & engines[n].bit)
			printf(" %s", engines[n].name);
	printf("; %u multiply-accumulators; fp32 units: %s\n",
	       CSREC_CAP(i->cap_engine, CSREC_CAPE_MACS, 16), fp_unit(i));
	printf("limits     row %u elements, %u vectors, TT-rank %u, layer width %u\n",
	       CSREC_CAP(i->cap_limit, CSREC_CAPL_DIM, 16),
	       CSREC_CAP(i->cap_limit, CSREC_CAPL_VECS, 16),
	       CSREC_CAP(i->cap_limit, CSREC_CAPL_RANK, 16),
	       CSREC_CAP(i->cap_limit, CSREC_CAPL_WIDTH, 16));
	printf("P2P        %s\n", i->features & CSREC_FEATURE_P2PDMA ?
	       "kernel can" : "kernel cannot, drive reads bounce through host memory");
	printf("features  ");
	for (size_t n = 0; n < COUNT(features); n++)
		if (i->features & features[n].bit)
			printf(" %s", features[n].name);
	if (i->quota_dram || i->quota_queues)
		printf("\nquota      %s of DRAM and %u queues for a process", cli_bytes(i->quota_dram),
		       i->quota_queues);
	printf("\n");
	printf("driver     commands %llu and doorbells %llu, without those of mapped queues;\n"
	       "           interrupts %llu, bytes P2P %llu, bounced %llu, pinned %s\n",
	       (unsigned long long)st->commands, (unsigned long long)st->doorbells,
	       (unsigned long long)st->interrupts, (unsigned long long)st->p2p_bytes,
	       (unsigned long long)st->bounce_bytes, cli_bytes(st->pinned_bytes));
	printf("resets     %llu of queues, %llu of the device\n",
	       (unsigned long long)st->queue_resets, (unsigned long long)st->device_resets);
	printf("device counters\n");
	for (size_t n = 0; n < COUNT(counters); n++)
		printf("  %-18s %llu\n", counters[n].name,
		       (unsigned long long)counter(st, counters[n].reg));
}

static int run(struct cli *cli, int argc, char **argv)
{
	struct csrec_stats stats;
	struct csrec_info info;
	struct csrec_dev *dev;
	int code, ret;

	while ((ret = cli_getopt(cli, argc, argv, NULL, &code)) != CLI_END)
		return code;
	if (cli_no_args(cli, argc, argv))
		return CLI_USAGE;
	code = cli_open(cli, &dev);
	if (code)
		return code;
	ret = csrec_get_info(dev, &info, sizeof(info));
	if (!ret)
		ret = csrec_get_stats(dev, &stats, sizeof(stats));
	if (ret)
		code = cli_fail_lib(cli, ret);
	else if (cli->json)
		print_json(csrec_name(dev), &info, &stats);
	else
		print_text(csrec_name(dev), &info, &stats);
	csrec_close(dev);
	return code;
}

const struct command cmd_info = {
	.name = "info",
	.help = "info [--device DEV] [--json]\n\n"
		"Shows the versions of library, driver and device, memory, limits, engines, and the\n"
		"counters of driver and device since the driver was loaded. What goes over a queue that\n"
		"a process has mapped is counted by the device only.\n",
	.run = run,
};
