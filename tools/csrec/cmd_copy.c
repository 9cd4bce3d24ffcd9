// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <errno.h>
#include <stdlib.h>
#include <sys/random.h>
#include "cli.h"

enum place { HOST, DRAM, ONCHIP };

static const char *const place_names[] = { "host", "dram", "onchip" };

/* A region of either kind; ptr only for HOST. */
struct mem {
	void *ptr;
	uint32_t key;
};

struct copy {
	enum place from, to;
	uint64_t size, count, seed;
	bool verify;
	struct mem src, dst;
	unsigned char *data, *got;	/* what was put in, and what came out */
	struct csrec_cmd *cmds;
	struct csrec_stats before, after;
	uint64_t differ;		/* bytes */
	uint64_t first;			/* offset of the first of them */
};

static int parse_place(const struct cli *cli, const char *opt, const char *text, enum place *place)
{
	for (int i = 0; i < 3; i++) {
		if (!strcmp(text, place_names[i])) {
			*place = i;
			return 0;
		}
	}
	return cli_fail(cli, CLI_USAGE, "%s: \"%s\" is not host, dram or onchip", opt, text);
}

/* splitmix64: any seed gives a full-period stream */
static uint64_t next_random(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return z ^ z >> 31;
}

static void fill_random(unsigned char *buf, uint64_t len, uint64_t seed)
{
	uint64_t word = 0;

	for (uint64_t i = 0; i < len; i++, word >>= 8) {
		if (i % 8 == 0)
			word = next_random(&seed);
		buf[i] = word;
	}
}

static int mem_get(struct csrec_dev *dev, enum place place, uint64_t size, struct mem *mem)
{
	if (place == HOST)
		return csrec_host_alloc(dev, size, CSREC_RIGHT_READ | CSREC_RIGHT_WRITE, &mem->ptr,
					&mem->key);
	return csrec_mem_alloc(dev, place == DRAM ? CSREC_REGION_DRAM : CSREC_REGION_ONCHIP, size,
			       &mem->key);
}

/* The measured part: count commands that move size bytes from src to dst. */
static int move(struct csrec_dev *dev, struct csrec_queue *queue, struct copy *c)
{
	uint64_t step = c->size / c->count, off = 0;
	int ret;

	for (uint64_t i = 0; i < c->count; i++, off += step)
		c->cmds[i] = csrec_cmd_copy(c->dst.key, off, c->src.key, off,
					    i + 1 < c->count ? step : c->size - off);
	ret = csrec_get_stats(dev, &c->before, sizeof(c->before));
	if (!ret)
		ret = csrec_run(queue, c->cmds, c->count, NULL);
	if (!ret)
		ret = csrec_get_stats(dev, &c->after, sizeof(c->after));
	return ret;
}

static void compare(struct copy *c)
{
	for (uint64_t i = 0; i < c->size; i++) {
		if (c->data[i] == c->got[i])
			continue;
		if (!c->differ++)
			c->first = i;
	}
}

static int transfer(struct csrec_dev *dev, struct csrec_queue *queue, struct copy *c)
{
	int ret;

	fill_random(c->data, c->size, c->seed);
	ret = mem_get(dev, c->from, c->size, &c->src);
	if (!ret)
		ret = mem_get(dev, c->to, c->size, &c->dst);
	if (ret)
		return ret;
	if (c->from == HOST)
		memcpy(c->src.ptr, c->data, c->size);
	else
		ret = csrec_copy_to_device(queue, c->src.key, 0, c->data, c->size);
	if (!ret)
		ret = move(dev, queue, c);
	if (ret || !c->verify)
		return ret;

	if (c->to == HOST)
		memcpy(c->got, c->dst.ptr, c->size);
	else
		ret = csrec_copy_from_device(queue, c->dst.key, 0, c->got, c->size);
	if (!ret)
		compare(c);
	return ret;
}

static void print(const struct cli *cli, const struct copy *c)
{
	/* by the device: the driver does not see what goes over a mapped queue */
	unsigned long long commands = CSREC_COUNTER(&c->after, COMMANDS) -
				      CSREC_COUNTER(&c->before, COMMANDS);
	unsigned long long doorbells = CSREC_COUNTER(&c->after, DOORBELLS) -
				       CSREC_COUNTER(&c->before, DOORBELLS);
	unsigned long long interrupts = c->after.interrupts - c->before.interrupts;
	unsigned long long cycles = CSREC_COUNTER(&c->after, CYCLES) -
				    CSREC_COUNTER(&c->before, CYCLES);

	if (cli->json) {
		jw_begin();
		jw_string("from", place_names[c->from]);
		jw_string("to", place_names[c->to]);
		jw_uint("bytes", c->size);
		jw_uint("commands", commands);
		jw_uint("doorbells", doorbells);
		jw_uint("interrupts", interrupts);
		jw_uint("cycles", cycles);
		jw_uint("seed", c->seed);
		jw_bool("verified", c->verify && !c->differ);
		jw_finish();
		return;
	}
	printf("%s to %s: %llu bytes%s\n", place_names[c->from], place_names[c->to],
	       (unsigned long long)c->size, c->verify ? ", verified" : ", not verified");
	printf("commands %llu, doorbells %llu, interrupts %llu, device cycles %llu\n", commands,
	       doorbells, interrupts, cycles);
}

static int run(struct cli *cli, int argc, char **argv)
{
	static const struct option longopts[] = {
		{ "size", required_argument, NULL, 's' },
		{ "from", required_argument, NULL, 'f' },
		{ "to", required_argument, NULL, 't' },
		{ "count", required_argument, NULL, 'n' },
		{ "seed", required_argument, NULL, 'r' },
		{ "verify", no_argument, NULL, 'v' },
		{ "no-verify", no_argument, NULL, 'V' },
		{ NULL, 0, NULL, 0 },
	};
	struct copy c = { .from = HOST, .to = DRAM, .size = 1 << 20, .count = 1, .verify = true };
	struct csrec_queue *queue = NULL;
	struct csrec_dev *dev = NULL;
	bool seeded = false;
	int opt, code = 0, ret;

	while ((opt = cli_getopt(cli, argc, argv, longopts, &code)) != CLI_END) {
		switch (opt) {
		case 's':
			code = cli_number(cli, "--size", optarg, 1, CLI_SIZE_MAX, &c.size);
			break;
		case 'f':
			code = parse_place(cli, "--from", optarg, &c.from);
			break;
		case 't':
			code = parse_place(cli, "--to", optarg, &c.to);
			break;
		case 'n':
			code = cli_number(cli, "--count", optarg, 1, 1 << 20, &c.count);
			break;
		case 'r':
			code = cli_number(cli, "--seed", optarg, 0, UINT64_MAX, &c.seed);
			seeded = true;
			break;
		case 'v':
			c.verify = true;
			break;
		case 'V':
			c.verify = false;
			break;
		default:
			return code;
		}
		if (code)
			return code;
	}
	if (cli_no_args(cli, argc, argv))
		return CLI_USAGE;
	if (c.count > c.size)
		return cli_fail(cli, CLI_USAGE, "--count: %llu commands for %llu bytes",
				(unsigned long long)c.count, (unsigned long long)c.size);
	if (!seeded && getrandom(&c.seed, sizeof(c.seed), 0) != sizeof(c.seed))
		return cli_fail(cli, CLI_FAIL, "no random seed: %s", strerror(errno));

	c.data = malloc(c.size);
	c.got = malloc(c.size);
	c.cmds = calloc(c.count, sizeof(*c.cmds));
	if (!c.data || !c.got || !c.cmds) {
		code = cli_fail(cli, CLI_FAIL, "no memory for %llu bytes",
				(unsigned long long)c.size);
		goto out;
	}
	code = cli_open(cli, &dev);
	if (code)
		goto out;
	ret = csrec_queue_create_ext(dev, NULL, &queue);
	if (!ret)
		ret = transfer(dev, queue, &c);
	if (ret)
		code = cli_fail_lib(cli, ret);
	else if (c.differ)
		code = cli_fail(cli, CLI_FAIL,
				"%llu of %llu bytes differ, the first at offset %llu (seed %llu)",
				(unsigned long long)c.differ, (unsigned long long)c.size,
				(unsigned long long)c.first, (unsigned long long)c.seed);
	else
		print(cli, &c);
out:
	csrec_queue_destroy(queue);
	csrec_close(dev);
	free(c.data);
	free(c.got);
	free(c.cmds);
	return code;
}

const struct command cmd_copy = {
	.name = "copy",
	.help = "copy [--from PLACE] [--to PLACE] [--size N] [--count N] [--seed N]\n"
		"                  [--no-verify] [--device DEV] [--json]\n\n"
		"Puts random bytes into memory of kind --from, moves them to memory of kind --to with\n"
		"COPY commands, reads them back and compares. Reports what the move itself took.\n\n"
		"  --from, --to  host (default of --from), dram (default of --to) or onchip\n"
		"  --size N      bytes in all (default 1M); K, M, G, T are powers of 1024\n"
		"  --count N     commands to split them over (default 1)\n"
		"  --seed N      of the random bytes (default: a new one, which is reported)\n"
		"  --verify      read back and compare (default)\n"
		"  --no-verify   do not\n",
	.run = run,
};
