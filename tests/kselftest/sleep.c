// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The system's sleep (S3), in which the device loses its state. Linked statically and run by
 * sleep.sh, as the guest's file systems do not outlive it: results go to the kernel's log as
 * TAP, and the guest ends with a reboot.
 */
#include <sys/reboot.h>

#include "csrec_test.h"

#define LEN	MIB

static unsigned int tests;

static void result(int want, int got, const char *name)
{
	char line[128];

	if (want == got)
		snprintf(line, sizeof(line), "csrec-test: ok %u - sleep: %s\n", ++tests, name);
	else
		snprintf(line, sizeof(line), "csrec-test: not ok %u - sleep: %s: %d, not %d\n",
			 ++tests, name, got, want);
	write_file("/dev/kmsg", line);
}

/* Until QEMU's monitor wakes it, see sleep.sh. */
static int sleep_and_wake(void)
{
	return write_file("/sys/power/state", "mem");
}

/* Everything a new context does: 0 or -errno. */
static int works(int drive, uint8_t *buf)
{
	int fd = dev_open(), q = q_create(fd, 4), ret;
	struct csrec_p2p_seg seg = { .len = LEN };
	struct csrec_p2p_read pr = {
		.size = sizeof(pr), .fd = drive, .count = 1, .segs = (uintptr_t)&seg,
	};
	struct csrec_info info;
	struct csrec_cqe cqe;
	struct csrec_cmd cmd;
	uint32_t host = 0;

	if (fd < 0 || q < 0)
		return fd < 0 ? fd : q;
	ret = get_info(fd, &info);
	if (!ret && info.dram_free != info.cap_dram)
		ret = -ENOMEM;
	ret = ret ?: mem_alloc(fd, CSREC_REGION_DRAM, LEN, &seg.key);
	ret = ret ?: mem_register(fd, buf, LEN, CSREC_RIGHT_WRITE, &host);
	for (int i = 0; !ret && i < 2; i++) {
		pr.flags = i ? CSREC_P2P_F_BOUNCE : 0;
		ret = xioctl(fd, CSREC_IOC_P2P_READ, &pr);
	}
	cmd = cmd_copy(seg.key, 0, host, 0, LEN);
	ret = ret ?: run_cmd(fd, q, &cmd, &cqe);
	close(fd);
	return ret;
}

int main(void)
{
	struct csrec_cmd cmd;
	struct csrec_info info;
	struct csrec_cqe cqe;
	uint8_t *buf, *mine;
	uint32_t fence, key;
	int fd, q, drive;
	char plan[32];

	buf = pages(LEN);
	mine = pages(LEN);
	mlockall(MCL_CURRENT | MCL_FUTURE);
	drive = open(DRIVE, O_RDONLY);
	result(0, works(drive, buf), "the device works before");
	for (int round = 0; round < 2; round++) {
		fd = dev_open();
		q = q_create(fd, 4);
		fence_create(fd, 0, &fence);
		mem_register(fd, mine, LEN, CSREC_RIGHT_WRITE, &key);
		cmd = cmd_fence(CSREC_OP_WAIT, fence, 1);
		result(1, q_submit(fd, q, &cmd, 1), "a command is in flight");
		result(0, sleep_and_wake(), "the system sleeps and wakes");
		result(-ENODEV, get_info(fd, &info), "contexts of before are dead");
		result(-ENODEV, q_wait(fd, q, &cqe, 1, 1, 60000 * MS), "who waits in one is told");
		close(fd);
		result(0, works(drive, buf), "a new one works");
	}
	snprintf(plan, sizeof(plan), "csrec-test: 1..%u\n", tests);
	write_file("/dev/kmsg", plan);
	reboot(RB_AUTOBOOT);
	return 1;
}
