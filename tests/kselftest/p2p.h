/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the tests of P2P_READ and P2P_WRITE share. */
#ifndef P2P_H
#define P2P_H

#include <linux/fs.h>

#include "csrec_test.h"

/* A context with a queue, and whether the device does peer-to-peer here. 0 or a negative errno. */
static inline int p2p_begin(int *fd, int *q, bool *p2p)
{
	struct csrec_info info;
	int ret;

	*fd = dev_open();
	if (*fd < 0)
		return *fd;
	ret = get_info(*fd, &info);
	if (ret)
		return ret;
	*p2p = info.features & CSREC_FEATURE_P2PDMA;
	*q = q_create(*fd, 4);
	return *q < 0 ? *q : 0;
}

/* The drive, which has this many bytes in blocks of so many; or a negative errno. */
static inline int drive_open(int flags, uint64_t *size, uint32_t *block)
{
	int fd = open(DRIVE, flags), n;

	if (fd < 0 || ioctl(fd, BLKGETSIZE64, size) || ioctl(fd, BLKSSZGET, &n))
		return -errno;
	*block = n;
	return fd;
}

/* By each way that there is: nothing asked, peer-to-peer only, bounce. */
static const uint32_t p2p_ways[] = { 0, CSREC_P2P_F_ONLY, CSREC_P2P_F_BOUNCE };

static inline struct csrec_p2p_read p2p_arg(int drive, const struct csrec_p2p_seg *segs,
					    uint32_t count, uint32_t flags)
{
	return (struct csrec_p2p_read){
		.size = sizeof(struct csrec_p2p_read), .flags = flags, .fd = drive,
		.count = count, .segs = (uintptr_t)segs, .p2p_bytes = ~0ULL,
		.bounce_bytes = ~0ULL,
	};
}

static inline int p2p_read(int fd, struct csrec_p2p_read *arg, int drive,
			   const struct csrec_p2p_seg *segs, uint32_t count, uint32_t flags)
{
	*arg = p2p_arg(drive, segs, count, flags);
	return xioctl(fd, CSREC_IOC_P2P_READ, arg);
}

static inline int p2p_write(int fd, struct csrec_p2p_read *arg, int drive,
			    const struct csrec_p2p_seg *segs, uint32_t count, uint32_t flags)
{
	*arg = p2p_arg(drive, segs, count, flags);
	return xioctl(fd, CSREC_IOC_P2P_WRITE, arg);
}

static inline int p2p_read_one(int fd, int drive, uint64_t file_off, uint64_t len, uint32_t key,
			       uint64_t dev_off, uint32_t flags)
{
	struct csrec_p2p_seg seg = { .file_off = file_off, .len = len, .key = key,
				     .dev_off = dev_off };
	struct csrec_p2p_read arg;

	return p2p_read(fd, &arg, drive, &seg, 1, flags);
}

/*
 * A drive that hangs: a device-mapper device over a RAM disk, which keeps what it is sent while it
 * is suspended. Or the NVMe drive that CSREC_HUNG names, "/dev/NODE ID": QEMU, where it is ID, lets
 * it do one byte a second. The first transfer is for free.
 */
#define HUNG_NAME	"csrec-hang"
#define RAM_DISK	"/dev/ram0"

static inline int hung_shell(const char *dm, const char *qemu)
{
	char line[512];

	if (!getenv("CSREC_HUNG"))
		return system(dm);
	snprintf(line, sizeof(line), "set -- $CSREC_HUNG; %s", qemu);
	return system(line);
}

static inline int hung_open(void)
{
	char path[64] = "/dev/mapper/" HUNG_NAME;

	if (getenv("CSREC_HUNG"))
		sscanf(getenv("CSREC_HUNG"), "%63s", path);
	return open(path, O_RDWR);
}

/* 0; or something else if there is no device mapper, or no RAM disk. */
static inline int hung_make(void)
{
	return hung_shell("dmsetup remove -f " HUNG_NAME " >/dev/null 2>&1; "
			  "modprobe -q dm-mod; test -b " RAM_DISK " && "
			  "echo 0 $(blockdev --getsz " RAM_DISK ") linear " RAM_DISK " 0 | "
			  "dmsetup create " HUNG_NAME " --noudevsync && "
			  "dmsetup mknodes " HUNG_NAME,
			  "test -b $1");
}

static inline int hung_remove(void)
{
	return hung_shell("dmsetup remove --retry --noudevsync " HUNG_NAME, ":");
}

static inline int hung_suspend(void)
{
	return hung_shell("dmsetup suspend --nolockfs --noflush --noudevsync " HUNG_NAME,
			  "tests/guest/monitor block_set_io_throttle $2 1 0 0 0 0 0 && "
			  "dd if=$1 of=/dev/null bs=64k count=1 iflag=direct status=none");
}

static inline int hung_resume(void)
{
	return hung_shell("dmsetup resume --noudevsync " HUNG_NAME,
			  "tests/guest/monitor block_set_io_throttle $2 0 0 0 0 0 0");
}

/* What is free once everybody has given back, or after very long anyway. */
static inline uint64_t dram_free_in_the_end(int fd, uint64_t want)
{
	uint64_t n = dram_free(fd);

	for (int i = 0; i < 6000 && n != want; i++) {
		usleep(10000);
		n = dram_free(fd);
	}
	return n;
}

#endif /* P2P_H */
