// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The least that a program does with libcsrec: opens a device, writes 4 KiB to its DRAM and
 * back to the host by two COPY commands, and compares. ../README.md says how to build it.
 */
#include <stdio.h>
#include <string.h>
#include <csrec.h>

#define SIZE 4096

static int copy(struct csrec_dev *dev, struct csrec_queue *queue)
{
	const uint32_t rights = CSREC_RIGHT_READ | CSREC_RIGHT_WRITE;
	struct csrec_cmd there, back;
	uint32_t from_key, to_key, dram_key;
	void *from, *to;
	int ret;

	/* each key names memory in the commands of this context; closing it frees all */
	ret = csrec_host_alloc(dev, SIZE, rights, &from, &from_key);
	if (!ret)
		ret = csrec_host_alloc(dev, SIZE, rights, &to, &to_key);
	if (!ret)
		ret = csrec_mem_alloc(dev, CSREC_REGION_DRAM, SIZE, &dram_key);
	if (ret)
		return ret;
	for (int i = 0; i < SIZE; i++)
		((unsigned char *)from)[i] = i % 251;

	/* commands run side by side: two calls, so that the second finds the first's bytes */
	there = csrec_cmd_copy(dram_key, 0, from_key, 0, SIZE);
	back = csrec_cmd_copy(to_key, 0, dram_key, 0, SIZE);
	ret = csrec_run(queue, &there, 1, NULL);
	if (!ret)
		ret = csrec_run(queue, &back, 1, NULL);
	if (!ret)
		printf("%d bytes to %s and back: %s\n", SIZE, csrec_name(dev),
		       memcmp(from, to, SIZE) ? "they differ" : "the same");
	return ret;
}

int main(void)
{
	struct csrec_queue *queue = NULL;
	struct csrec_dev *dev = NULL;
	int ret;

	ret = csrec_open(&dev, NULL);
	if (!ret)
		ret = csrec_queue_create_ext(dev, NULL, &queue);
	if (!ret)
		ret = copy(dev, queue);
	if (ret)
		fprintf(stderr, "%s\n", csrec_error());
	csrec_queue_destroy(queue);
	csrec_close(dev);
	return ret != 0;
}
