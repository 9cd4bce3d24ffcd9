/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the commands for administrators read without the driver's ioctls: sysfs, debugfs,
 * procfs. A test puts other directories in their place: CSREC_SYSFS for /sys, CSREC_DEV for
 * /dev, CSREC_PROC for /proc, CSREC_BOOT for /boot.
 */
#ifndef CSREC_SYS_H
#define CSREC_SYS_H

#include <sys/types.h>
#include "cli.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

const char *sys_root(void);
const char *sys_dev_root(void);
const char *sys_proc_root(void);
const char *sys_boot_root(void);

/*
 * Reads a whole file of at most a few MiB; 0 and *text, which is to be freed and ends with a
 * 0 byte, or -errno. len may be NULL.
 */
int sys_slurp(const char *path, char **text, size_t *len);

/* First line of a file without the blanks at its end; false and "" if there is none. */
bool sys_line(char *buf, size_t len, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* Is there something of this name? */
bool sys_exists(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* "csrec0" of a node "/dev/csrec0"; "" without driver. */
const char *sys_name(const struct csrec_found *d);

/* An attribute of a device, "" if there is none; for use before the sixteenth call after. */
const char *sys_attr(const struct csrec_found *d, const char *name);

/* An attribute as a number; false if it is not there. */
bool sys_number(const struct csrec_found *d, const char *name, uint64_t *value);

/*
 * The device that --device, $CSREC_DEVICE or the order of addresses chooses. *list is to be
 * freed with csrec_list_free(). 0 or the exit status, with a message. Without need_driver one
 * without a driver is as good as any other.
 */
int sys_pick(const struct cli *cli, bool need_driver, struct csrec_found **list,
	     struct csrec_found **d);

/* PCI configuration space, as much of it as may be read. */
struct sys_config {
	uint8_t data[4096];
	size_t len;
};

void sys_config(const char *bdf, struct sys_config *c);
/* Port types of the PCIe capability; -1: not PCIe, or not readable. */
#define SYS_ENDPOINT	0
#define SYS_ROOT_PORT	4
#define SYS_UPSTREAM	5
#define SYS_DOWNSTREAM	6
int sys_port_type(const struct sys_config *c);
/* Whether peer-to-peer requests are sent up: 1, 0, -1 not readable, -2 no such capability. */
int sys_acs(const struct sys_config *c);

/* Addresses of the bridges above a device, then its own; at most max. Returns how many. */
#define SYS_DEPTH	24
int sys_path(const char *bdf, char path[][16], int max);

/*
 * A table of debugfs: a line with the names of the columns, then lines of as many words.
 * 0 or -errno: -EACCES, -ENOENT. Columns that are not there read as "".
 */
struct sys_table {
	char *text;
	char **words;		/* of all lines, the names first */
	size_t columns, rows;
};

int sys_table(const struct csrec_found *d, const char *name, struct sys_table *t);
void sys_table_free(struct sys_table *t);
const char *sys_cell(const struct sys_table *t, size_t row, const char *column);

/* Why a table is not there, for an errno of sys_table(). */
const char *sys_why_no_table(int err);

/* Processes that have a file open. */
struct sys_user {
	pid_t pid;
	char comm[32];
};
/* At most max of them; returns how many there are. */
size_t sys_users(const char *node, struct sys_user *users, size_t max);

/* Names of the counters, in the order in which they are shown. */
extern const char *const sys_counters[];
extern const char *const sys_hw_counters[];
#define SYS_COUNTERS	8
#define SYS_HW_COUNTERS	21

struct sys_sample {
	double time;			/* seconds, monotonic */
	uint64_t counters[SYS_COUNTERS];
	uint64_t hw[SYS_HW_COUNTERS];
};

/* False if the attributes are not there (any more). */
bool sys_sample(const struct csrec_found *d, struct sys_sample *s);
/* Index by name; the name must be one of the list. */
uint64_t sys_counter(const struct sys_sample *s, const char *name);
/* Percent: what was added to the counter busy of what was added to cycles. */
double sys_busy(uint64_t busy, uint64_t cycles);
uint64_t sys_hw_counter(const struct sys_sample *s, const char *name);

/* Sleeps; false if a signal asked to stop. sys_stoppable() first. */
void sys_stoppable(void);
bool sys_stopped(void);
bool sys_sleep(double seconds);

/* A number of seconds, 0.1 to 86400, of option opt. 0 or CLI_USAGE, with a message. */
int sys_seconds(const struct cli *cli, const char *opt, const char *text, double *seconds);

#endif
