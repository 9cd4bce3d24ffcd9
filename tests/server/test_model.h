/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Registers of the model the server is tested with (test_model.c): identity, a
 * scratch word, a DMA engine that does one transfer of up to 4 KiB between device
 * DRAM and host memory, an interrupt trigger and a busy counter. 64 bits each.
 */
#ifndef CSREC_TEST_MODEL_H
#define CSREC_TEST_MODEL_H

#define TM_SCRATCH	0x400	/* RW */
#define TM_ADDR		0x408	/* RW: host address */
#define TM_LEN		0x410	/* RW: bytes */
#define TM_DRAM		0x418	/* RW: offset in device DRAM */
#define TM_GO		0x420	/* WO: TM_GO_* */
#define TM_STATUS	0x428	/* RO: [0] at work, [31:8] transfers done,
				 * [63:32] errno of the last */
#define TM_IRQ		0x430	/* WO: raise vector */
#define TM_BUSY		0x438	/* RW: cycles to be busy for; reads what is left */
#define TM_STEPS	0x440	/* RO: calls of csrec_model_step since start */
#define TM_RESETS	0x448	/* RO: resets since start */
#define TM_LATE		0x450	/* RO: answers to requests the model did not have */
#define TM_BURST	0x458	/* RW: GO does this many transfers, 4 KiB apart, at once */

#define TM_GO_READ	1	/* host memory to DRAM */
#define TM_GO_WRITE	2	/* DRAM to host memory */
#define TM_GO_IRQ	4	/* and vector 0 when done */

#define TM_VECTORS	5
#define TM_MAX_BURST	64

#endif /* CSREC_TEST_MODEL_H */
