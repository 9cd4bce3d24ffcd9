// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What can be seen from outside: sysfs attributes, against their ABI text and against the
 * ioctls; debugfs; tracepoints.
 */
#include <dirent.h>
#include <linux/netlink.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/sysmacros.h>

#include "mapq.h"

#define SYSFS		"/sys/class/csrec/csrec0"
#define DEBUGFS		"/sys/kernel/debug/csrec/csrec0"
#define TRACEFS		"/sys/kernel/tracing"
#define TRACE		TRACEFS "/instances/csrec-test"
#define NR_COUNTERS	((CSREC_REG_CNT_END - CSREC_REG_CNT_CYCLES) / 8)
#define MAX_FILES	128

/* Names of the device's counters in sysfs, in register order. */
static const char *const hw_names[NR_COUNTERS] = {
	"cycles", "progress", "commands", "errors", "doorbells", "bad_doorbells", "bad_writes",
	"irqs", "host_read_bytes", "host_write_bytes", "dram_read_bytes", "dram_write_bytes",
	"busy_copy", "busy_emb", "busy_tt", "busy_interact", "busy_mlp", "busy", "emb_rows",
	"tt_rows", "tt_saved",
};

static const char *const totals[] = {
	"doorbells", "interrupts", "commands", "p2p_bytes", "bounce_bytes", "queue_resets",
	"device_resets",
};

/* The length, or -errno. */
static int slurp(const char *path, char *buf, size_t len)
{
	int fd = open(path, O_RDONLY), n, sum = 0;

	if (fd < 0)
		return -errno;
	while ((n = read(fd, buf + sum, len - 1 - sum)) > 0)
		sum += n;
	n = n < 0 ? -errno : sum;
	buf[sum] = 0;
	close(fd);
	return n;
}

/* The whole of a file; not to be freed. "" if it cannot be read. */
static const char *text(const char *path)
{
	static char buf[1 << 20];

	if (slurp(path, buf, sizeof(buf)) < 0)
		buf[0] = 0;
	return buf;
}

/* An attribute, without its newline. */
static const char *attr(const char *name)
{
	static char buf[4][4096];
	static int next;
	char path[512], *s = buf[next++ % 4];

	snprintf(path, sizeof(path), SYSFS "/%s", name);
	if (slurp(path, s, sizeof(buf[0])) < 0)
		return "?";
	s[strcspn(s, "\n")] = 0;
	return s;
}

static uint64_t number(const char *name)
{
	return strtoull(attr(name), NULL, 0);
}

static uint64_t counter_file(const char *dir, const char *name)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	return number(path);
}

/* Regular files below the device but those that every device has, relative to it. */
static int list_files(const char *dir, char names[][128], int n)
{
	char path[512];
	struct dirent *e;
	DIR *d;

	snprintf(path, sizeof(path), SYSFS "/%s", dir);
	d = opendir(path);
	while (d && (e = readdir(d)) && n < MAX_FILES) {
		if (e->d_name[0] == '.' || e->d_type == DT_LNK)
			continue;
		if (!dir[0] && (!strcmp(e->d_name, "uevent") || !strcmp(e->d_name, "dev") ||
				!strcmp(e->d_name, "power")))
			continue;
		snprintf(path, sizeof(path), "%s%s%s", dir, dir[0] ? "/" : "", e->d_name);
		if (e->d_type == DT_DIR)
			n = list_files(path, names, n);
		else
			snprintf(names[n++], 128, "%.127s", path);
	}
	if (d)
		closedir(d);
	return n;
}

/* What the ABI text describes. */
static int list_abi(char names[][128])
{
	static const char what[] = "What:\t\t/sys/class/csrec/csrecN/";
	char path[512] = {}, line[256];
	int n = 0;
	FILE *f;

	/* the text lies in the checkout of which this program was built */
	if (readlink("/proc/self/exe", path, sizeof(path) - 64) < 0)
		return -errno;
	for (int i = 0; i < 3; i++)
		*strrchr(path, '/') = 0;
	strcat(path, "/kernel/ABI/sysfs-driver-csrec");
	f = fopen(path, "r");
	if (!f)
		return -errno;
	while (fgets(line, sizeof(line), f) && n < MAX_FILES) {
		if (strncmp(line, what, strlen(what)))
			continue;
		line[strcspn(line, "\n")] = 0;
		snprintf(names[n++], 128, "%.127s", line + strlen(what));
	}
	fclose(f);
	return n;
}

static bool has(char names[][128], int n, const char *name)
{
	for (int i = 0; i < n; i++)
		if (!strcmp(names[i], name))
			return true;
	return false;
}

static void become_nobody(void)
{
	if (setgid(65534) || setuid(65534))
		_exit(99);
}

FIXTURE(visible)
{
	char device[64];	/* the PCI device's directory */
	char bdf[16];
	struct csrec_info info;
	int fd;
};

FIXTURE_SETUP(visible)
{
	ASSERT_EQ(0, find_device(self->device, sizeof(self->device), self->bdf, sizeof(self->bdf)));
	self->fd = dev_open();
	ASSERT_LE(0, self->fd);
	ASSERT_EQ(0, get_info(self->fd, &self->info));
}

FIXTURE_TEARDOWN(visible)
{
	close(self->fd);
}

/* ---- sysfs ---- */

TEST_F(visible, every_attribute_has_its_abi_text_and_the_other_way)
{
	static char files[MAX_FILES][128], texts[MAX_FILES][128];
	int nf = list_files("", files, 0), nt = list_abi(texts);

	ASSERT_LT(20, nf);
	ASSERT_LT(20, nt);
	for (int i = 0; i < nf; i++) {
		EXPECT_TRUE(has(texts, nt, files[i]))
			TH_LOG("%s has no entry in kernel/ABI", files[i]);
	}
	for (int i = 0; i < nt; i++) {
		EXPECT_TRUE(has(files, nf, texts[i]))
			TH_LOG("%s is in kernel/ABI and does not exist", texts[i]);
	}
}

TEST_F(visible, an_attribute_is_one_line_that_all_may_read)
{
	static char files[MAX_FILES][128];
	int n = list_files("", files, 0), status;
	char path[512], buf[4096];
	struct stat st;
	pid_t pid;

	for (int i = 0; i < n; i++) {
		snprintf(path, sizeof(path), SYSFS "/%.127s", files[i]);
		ASSERT_EQ(0, stat(path, &st));
		EXPECT_EQ(strncmp(files[i], "quota_", 6) ? 0444 : 0644, st.st_mode & 0777)
			TH_LOG("%s", files[i]);
		ASSERT_LT(0, slurp(path, buf, sizeof(buf)));
		EXPECT_EQ(strlen(buf) - 1, strcspn(buf, "\n")) TH_LOG("%s", files[i]);
		/* a set of words is one value */
		if (strcmp(files[i], "features")) {
			EXPECT_EQ(NULL, strpbrk(buf, " \t")) TH_LOG("%s", files[i]);
		}
	}
	pid = fork();
	if (!pid) {
		become_nobody();
		for (int i = 0; i < n; i++) {
			snprintf(path, sizeof(path), SYSFS "/%.127s", files[i]);
			if (slurp(path, buf, sizeof(buf)) < 0 || open(path, O_WRONLY) >= 0)
				_exit(1);
		}
		_exit(0);
	}
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_EQ(0, status);
}

TEST_F(visible, attributes_say_what_get_info_says)
{
	const struct csrec_info *i = &self->info;
	unsigned int queues = (i->cap_queue >> CSREC_CAPQ_IOQ_SHIFT) & 0xff;
	unsigned int vectors = (i->cap_queue >> CSREC_CAPQ_VECTORS_SHIFT) & 0xff;
	char want[64];

	snprintf(want, sizeof(want), "%u.%u", i->uapi_major, i->uapi_minor);
	EXPECT_STREQ(want, attr("uapi_version"));
	snprintf(want, sizeof(want), "%u.%u", i->hw_major, i->hw_minor);
	EXPECT_STREQ(want, attr("hw_version"));
	EXPECT_EQ(i->cap_queue, number("capabilities/cap_queue"));
	EXPECT_EQ(i->cap_table, number("capabilities/cap_table"));
	EXPECT_EQ(i->cap_dram, number("capabilities/cap_dram"));
	EXPECT_EQ(i->cap_onchip, number("capabilities/cap_onchip"));
	EXPECT_EQ(i->cap_engine, number("capabilities/cap_engine"));
	EXPECT_EQ(i->cap_limit, number("capabilities/cap_limit"));
	EXPECT_EQ(i->cap_dram, number("dram_size"));
	EXPECT_EQ(i->cap_onchip, number("onchip_size"));
	EXPECT_EQ(i->dram_free, number("dram_free"));
	EXPECT_EQ(i->onchip_free, number("onchip_free"));
	EXPECT_EQ(queues, number("queues"));
	EXPECT_EQ(i->irq_vectors, number("vectors"));
	EXPECT_EQ(vectors < queues + 1 ? vectors : queues + 1, number("vectors_wanted"));
	EXPECT_STREQ("live", attr("state"));
}

TEST_F(visible, features_are_those_of_get_info_in_words)
{
	static const char *const words[] = { "p2pdma", "queue_map", "coalesce", "mem_map",
					     "uring" };
	char want[128] = "";

	for (int i = 0; i < 5; i++) {
		if (!(self->info.features & 1 << i))
			continue;
		if (want[0])
			strcat(want, " ");
		strcat(want, words[i]);
	}
	EXPECT_STREQ(want, attr("features"));
	/* a feature without a word */
	EXPECT_EQ(0, self->info.features >> 5);
}

TEST_F(visible, what_is_in_use_shows)
{
	uint64_t queues = number("queues_used"), dram = number("dram_free");
	uint64_t onchip = number("onchip_free"), pinned = number("counters/pinned_bytes");
	uint32_t d, o, h;
	void *p = pages(64 * KIB);
	int q = q_create(self->fd, 4);

	ASSERT_LT(0, q);
	EXPECT_EQ(queues + 1, number("queues_used"));
	ASSERT_EQ(0, mem_alloc(self->fd, CSREC_REGION_DRAM, 64 * KIB, &d));
	EXPECT_EQ(dram - 64 * KIB, number("dram_free"));
	ASSERT_EQ(0, mem_alloc(self->fd, CSREC_REGION_ONCHIP, 4 * KIB, &o));
	EXPECT_EQ(onchip - 4 * KIB, number("onchip_free"));
	ASSERT_EQ(0, mem_register(self->fd, p, 64 * KIB, CSREC_RIGHT_READ, &h));
	EXPECT_EQ(pinned + 64 * KIB, number("counters/pinned_bytes"));
	ASSERT_EQ(0, mem_free(self->fd, h));
	ASSERT_EQ(0, mem_free(self->fd, d));
	ASSERT_EQ(0, mem_free(self->fd, o));
	ASSERT_EQ(0, q_destroy(self->fd, q));
	EXPECT_EQ(queues, number("queues_used"));
	EXPECT_EQ(dram, number("dram_free"));
	EXPECT_EQ(onchip, number("onchip_free"));
	EXPECT_EQ(pinned, number("counters/pinned_bytes"));
}

TEST_F(visible, counters_are_those_of_get_stats_and_count)
{
	struct csrec_cmd cmds[3] = { cmd_make(CSREC_OP_NOP, 1), cmd_make(CSREC_OP_NOP, 2),
				     cmd_make(0xff, 3) };
	struct csrec_stats before, after;
	struct csrec_cqe cqes[3];
	int q = q_create(self->fd, 4);

	ASSERT_LT(0, q);
	ASSERT_EQ(0, get_stats(self->fd, &before));
	ASSERT_EQ(3, q_submit(self->fd, q, cmds, 3));
	ASSERT_EQ(3, q_wait(self->fd, q, cqes, 3, 3, -1));
	ASSERT_EQ(0, get_stats(self->fd, &after));
	EXPECT_EQ(before.commands + 3, after.commands);
	EXPECT_EQ(before.doorbells + 1, after.doorbells);
	EXPECT_EQ(counter(&before, CSREC_REG_CNT_COMMANDS) + 3,
		  counter(&after, CSREC_REG_CNT_COMMANDS));
	EXPECT_EQ(counter(&before, CSREC_REG_CNT_ERRORS) + 1,
		  counter(&after, CSREC_REG_CNT_ERRORS));
	/* nothing runs any more; cycles and interrupts may be behind */
	EXPECT_EQ(after.commands, number("counters/commands"));
	EXPECT_EQ(after.doorbells, number("counters/doorbells"));
	EXPECT_EQ(after.p2p_bytes, number("counters/p2p_bytes"));
	EXPECT_EQ(after.bounce_bytes, number("counters/bounce_bytes"));
	EXPECT_EQ(after.pinned_bytes, number("counters/pinned_bytes"));
	EXPECT_EQ(after.queue_resets, number("counters/queue_resets"));
	EXPECT_EQ(after.device_resets, number("counters/device_resets"));
	EXPECT_LE(after.interrupts, number("counters/interrupts"));
	for (int i = 0; i < NR_COUNTERS; i++) {
		uint64_t now = counter_file("hw_counters", hw_names[i]);

		EXPECT_LE(counter(&after, CSREC_REG_CNT_CYCLES + 8 * i), now) TH_LOG("%s", hw_names[i]);
		if (CSREC_REG_CNT_CYCLES + 8 * i == CSREC_REG_CNT_COMMANDS ||
		    CSREC_REG_CNT_CYCLES + 8 * i == CSREC_REG_CNT_ERRORS ||
		    CSREC_REG_CNT_CYCLES + 8 * i == CSREC_REG_CNT_DOORBELLS)
			EXPECT_EQ(counter(&after, CSREC_REG_CNT_CYCLES + 8 * i), now) TH_LOG("%s", hw_names[i]);
	}
}

/* Not by being read, not by a reset, though the registers are zero after that. */
/* The driver has no part in them: the device counts them, and nobody else. */
TEST_F(visible, commands_of_a_mapped_queue_count_with_the_device)
{
	struct csrec_cmd nop = cmd_make(CSREC_OP_NOP, 1);
	struct csrec_stats before, after;
	struct mapq q;

	if (!(self->info.features & CSREC_FEATURE_QUEUE_MAP))
		SKIP(return, "no mapped queues");
	ASSERT_EQ(0, mapq_create(&q, self->fd, 16, 0, 0, 0));
	ASSERT_EQ(0, get_stats(self->fd, &before));
	for (int i = 0; i < 40; i++)
		ASSERT_EQ(0, mapq_run(&q, &nop));
	ASSERT_EQ(0, get_stats(self->fd, &after));
	EXPECT_EQ(before.commands, after.commands);
	EXPECT_EQ(before.doorbells, after.doorbells);
	EXPECT_EQ(counter(&before, CSREC_REG_CNT_COMMANDS) + 40,
		  counter(&after, CSREC_REG_CNT_COMMANDS));
	EXPECT_EQ(counter(&before, CSREC_REG_CNT_DOORBELLS) + 40,
		  counter(&after, CSREC_REG_CNT_DOORBELLS));
	EXPECT_EQ(after.commands, number("counters/commands"));
	EXPECT_EQ(counter(&after, CSREC_REG_CNT_COMMANDS), number("hw_counters/commands"));
}

TEST_F(visible, counters_never_run_backwards)
{
	uint64_t hw[NR_COUNTERS], sw[ARRAY_SIZE(totals)], now;
	uint64_t resets = number("counters/device_resets");
	struct csrec_stats before, after;

	for (int round = 0; round < 3; round++) {
		for (int i = 0; i < NR_COUNTERS; i++)
			hw[i] = counter_file("hw_counters", hw_names[i]);
		for (int i = 0; i < ARRAY_SIZE(totals); i++)
			sw[i] = counter_file("counters", totals[i]);
		ASSERT_EQ(0, get_stats(self->fd, &before));
		ASSERT_EQ(0, reset(self->device));
		EXPECT_EQ(-ENODEV, get_stats(self->fd, &after));
		for (int i = 0; i < NR_COUNTERS; i++) {
			now = counter_file("hw_counters", hw_names[i]);
			EXPECT_LE(hw[i], now) TH_LOG("hw_counters/%s", hw_names[i]);
		}
		for (int i = 0; i < ARRAY_SIZE(totals); i++) {
			now = counter_file("counters", totals[i]);
			EXPECT_LE(sw[i], now) TH_LOG("counters/%s", totals[i]);
		}
		EXPECT_EQ(++resets, number("counters/device_resets"));
		close(self->fd);
		self->fd = dev_open();
		ASSERT_LE(0, self->fd);
		ASSERT_EQ(0, get_stats(self->fd, &after));
		for (int i = 0; i < NR_COUNTERS; i++) {
			EXPECT_LE(counter(&before, CSREC_REG_CNT_CYCLES + 8 * i),
				  counter(&after, CSREC_REG_CNT_CYCLES + 8 * i))
				TH_LOG("%s", hw_names[i]);
		}
		/* the driver's own commands since: the reset lost none, and counted none twice */
		EXPECT_LT(counter(&before, CSREC_REG_CNT_COMMANDS),
			  counter(&after, CSREC_REG_CNT_COMMANDS));
		EXPECT_GT(counter(&before, CSREC_REG_CNT_COMMANDS) + 16,
			  counter(&after, CSREC_REG_CNT_COMMANDS));
	}
}

static int driver(const char *bdf, const char *what)
{
	char path[64];

	snprintf(path, sizeof(path), "/sys/bus/pci/drivers/csrec/%s", what);
	return write_file(path, bdf);
}

/* Who is told of the device by the kernel finds the attributes there. */
TEST_F(visible, attributes_are_there_before_the_uevent)
{
	struct sockaddr_nl sa = { .nl_family = AF_NETLINK, .nl_groups = 1 };
	int s = socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC, NETLINK_KOBJECT_UEVENT);
	struct pollfd pfd = { .fd = s, .events = POLLIN };
	char msg[8192];
	int n;

	ASSERT_LE(0, s);
	close(self->fd);
	self->fd = -1;
	ASSERT_EQ(0, driver(self->bdf, "unbind"));
	ASSERT_EQ(0, bind(s, (struct sockaddr *)&sa, sizeof(sa)));
	ASSERT_EQ(0, driver(self->bdf, "bind"));
	for (;;) {
		ASSERT_EQ(1, poll(&pfd, 1, 60000));
		n = recv(s, msg, sizeof(msg) - 1, 0);
		ASSERT_LT(0, n);
		msg[n] = 0;
		if (!strncmp(msg, "add@", 4) && strstr(msg, "/csrec/csrec0"))
			break;
	}
	EXPECT_STREQ("live", attr("state"));
	EXPECT_EQ(0, access(SYSFS "/hw_counters/cycles", R_OK));
	EXPECT_EQ(0, access(SYSFS "/counters/commands", R_OK));
	close(s);
}

/* All that can be read, over and over. */
static void read_everything(void)
{
	static const char *const debug[] = { "queues", "regions", "fences", "contexts",
					     "registers" };
	static char files[MAX_FILES][128], buf[1 << 16];
	int n = list_files("", files, 0);
	char path[512];

	for (;;) {
		for (int i = 0; i < n; i++) {
			snprintf(path, sizeof(path), SYSFS "/%.127s", files[i]);
			slurp(path, buf, sizeof(buf));
		}
		for (int i = 0; i < ARRAY_SIZE(debug); i++) {
			snprintf(path, sizeof(path), DEBUGFS "/%s", debug[i]);
			slurp(path, buf, sizeof(buf));
		}
	}
}

/* D-18; and of what is open across the removal nothing is left to be read. */
TEST_F(visible, reading_races_unbind_and_reset)
{
	int held = open(SYSFS "/state", O_RDONLY);
	int debug = open(DEBUGFS "/queues", O_RDONLY);
	char buf[64];
	pid_t readers[2];
	int status;

	ASSERT_LE(0, held);
	close(self->fd);
	self->fd = -1;
	for (int i = 0; i < 2; i++) {
		readers[i] = fork();
		ASSERT_LE(0, readers[i]);
		if (!readers[i])
			read_everything();
	}
	for (int i = 0; i < 8; i++) {
		ASSERT_EQ(0, reset(self->device));
		ASSERT_EQ(0, driver(self->bdf, "unbind"));
		if (!i) {
			EXPECT_EQ(-1, read(held, buf, sizeof(buf)));
			EXPECT_EQ(ENODEV, errno);
			EXPECT_EQ(-1, read(debug, buf, sizeof(buf)));
		}
		ASSERT_EQ(0, driver(self->bdf, "bind"));
	}
	for (int i = 0; i < 2; i++) {
		EXPECT_EQ(0, waitpid(readers[i], &status, WNOHANG));
		kill(readers[i], SIGKILL);
		waitpid(readers[i], &status, 0);
	}
	close(held);
	close(debug);
	EXPECT_STREQ("live", attr("state"));
}

/* ---- debugfs ---- */

/* The line of a debugfs file whose words 1, 2, ... begin like this; NULL if there is none. */
static const char *line_of(const char *file, const char *start)
{
	static char line[256];
	char path[128];
	const char *s;

	snprintf(path, sizeof(path), DEBUGFS "/%s", file);
	for (s = text(path); *s; s += strcspn(s, "\n") + 1) {
		if (strncmp(s, start, strlen(start)))
			continue;
		snprintf(line, sizeof(line), "%.*s", (int)strcspn(s, "\n"), s);
		return line;
	}
	return NULL;
}

/* Word number n, from 1, of a line as line_of() gives it. */
static const char *word(const char *line, int n)
{
	static char buf[4][64];
	static int next;
	char *s = buf[next++ % 4];

	while (line && --n)
		line = strchr(line, ' ') ? strchr(line, ' ') + 1 : NULL;
	snprintf(s, sizeof(buf[0]), "%.*s", line ? (int)strcspn(line, " ") : 1, line ? line : "?");
	return s;
}

static bool have_debugfs(void)
{
	return !access(DEBUGFS, F_OK);
}

TEST_F(visible, debugfs_is_for_root_alone)
{
	static const char *const files[] = { "queues", "regions", "fences", "contexts",
					     "registers" };
	char path[128];
	struct stat st;

	if (!have_debugfs())
		SKIP(return, "no debugfs");
	for (int i = 0; i < ARRAY_SIZE(files); i++) {
		snprintf(path, sizeof(path), DEBUGFS "/%s", files[i]);
		ASSERT_EQ(0, stat(path, &st)) TH_LOG("%s", files[i]);
		EXPECT_EQ(0400, st.st_mode & 0777);
		EXPECT_EQ(0, st.st_uid);
	}
}

TEST_F(visible, debugfs_shows_a_queue_and_its_owner)
{
	struct csrec_cmd cmds[3] = { cmd_make(CSREC_OP_NOP, 1), cmd_make(CSREC_OP_NOP, 2),
				     cmd_make(CSREC_OP_NOP, 3) };
	struct csrec_cqe cqes[3];
	char start[64];
	const char *l;
	int fd, q;

	if (!have_debugfs())
		SKIP(return, "no debugfs");
	/* blanks and worse cannot make two words or two lines of it */
	prctl(PR_SET_NAME, "a b\n\\c");
	fd = dev_open();
	ASSERT_LE(0, fd);
	q = q_create(fd, 8);
	ASSERT_LT(0, q);
	ASSERT_EQ(3, q_submit(fd, q, cmds, 3));
	ASSERT_EQ(3, q_wait(fd, q, cqes, 3, 3, -1));
	ASSERT_EQ(3, q_submit(fd, q, cmds, 3));
	ASSERT_EQ(3, q_wait(fd, q, cqes, 3, 3, -1));
	ASSERT_EQ(2, q_submit(fd, q, cmds, 2));
	ASSERT_EQ(1, q_wait(fd, q, cqes, 1, 1, -1));

	snprintf(start, sizeof(start), "%d %d ", q, getpid());
	l = line_of("queues", start);
	ASSERT_NE(NULL, l);
	EXPECT_STREQ("a\\040b\\012\\134c", word(l, 3));
	EXPECT_STREQ("8", word(l, 5));
	EXPECT_STREQ("ioctl", word(l, 7));
	EXPECT_STREQ("8", word(l, 8));
	EXPECT_STREQ("7", word(l, 10));
	EXPECT_STREQ("live", word(l, 11));
	EXPECT_STREQ("?", word(l, 12));
	snprintf(start, sizeof(start), "%d a\\040b\\012\\134c %s 1 live", getpid(), word(l, 4));
	EXPECT_NE(NULL, line_of("contexts", start));
	close(fd);
	EXPECT_EQ(NULL, line_of("contexts", start));
	snprintf(start, sizeof(start), "%d %d ", q, getpid());
	EXPECT_EQ(NULL, line_of("queues", start));
}

/* Its process keeps the counts: what is shown is the device's, and ctl->cq_head. */
TEST_F(visible, debugfs_shows_a_mapped_queue)
{
	struct csrec_cmd nop = cmd_make(CSREC_OP_NOP, 1);
	char start[64];
	struct mapq q;
	const char *l;
	int fd, ret;

	if (!have_debugfs())
		SKIP(return, "no debugfs");
	fd = dev_open();
	ASSERT_LE(0, fd);
	ret = mapq_create(&q, fd, 8, 0, 0, 0);
	if (ret == -EOPNOTSUPP)
		SKIP(return, "no mapped queues");
	ASSERT_EQ(0, ret);
	ASSERT_EQ(0, mapq_run(&q, &nop));
	ASSERT_EQ(0, mapq_run(&q, &nop));
	mapq_put(&q, &nop);
	mapq_ring(&q);
	ASSERT_EQ(1, mapq_wait(&q, 1, -1));

	snprintf(start, sizeof(start), "%u %d ", q.id, getpid());
	l = line_of("queues", start);
	ASSERT_NE(NULL, l);
	EXPECT_STREQ("mapped", word(l, 7));
	EXPECT_STREQ("3", word(l, 8));
	EXPECT_STREQ("3", word(l, 9));
	EXPECT_STREQ("2", word(l, 10));
	EXPECT_STREQ("live", word(l, 11));
	close(fd);
}

TEST_F(visible, debugfs_shows_regions_and_fences)
{
	char start[64];
	const char *l;
	uint32_t key, fence;

	if (!have_debugfs())
		SKIP(return, "no debugfs");
	ASSERT_EQ(0, mem_alloc(self->fd, CSREC_REGION_DRAM, 5 * KIB, &key));
	snprintf(start, sizeof(start), "0x%08x %d ", key, getpid());
	l = line_of("regions", start);
	ASSERT_NE(NULL, l);
	EXPECT_STREQ("visible", word(l, 3));
	EXPECT_STREQ("0", word(l, 5));
	EXPECT_STREQ("live", word(l, 6));
	EXPECT_STREQ("dram", word(l, 7));
	EXPECT_STREQ("rw", word(l, 8));
	EXPECT_STREQ("8192", word(l, 9));
	ASSERT_EQ(0, mem_free(self->fd, key));
	EXPECT_EQ(NULL, line_of("regions", start));

	ASSERT_EQ(0, mem_register(self->fd, pages(4 * KIB), 100, CSREC_RIGHT_READ, &key));
	snprintf(start, sizeof(start), "0x%08x %d ", key, getpid());
	l = line_of("regions", start);
	ASSERT_NE(NULL, l);
	EXPECT_STREQ("host", word(l, 7));
	EXPECT_STREQ("r-", word(l, 8));
	EXPECT_STREQ("100", word(l, 9));
	ASSERT_EQ(0, mem_free(self->fd, key));

	ASSERT_EQ(0, fence_create(self->fd, 5, &fence));
	snprintf(start, sizeof(start), "0x%08x %d visible", fence, getpid());
	EXPECT_NE(NULL, line_of("fences", start));
	ASSERT_EQ(0, fence_destroy(self->fd, fence));
	EXPECT_EQ(NULL, line_of("fences", start));
}

TEST_F(visible, debugfs_shows_no_kernel_address)
{
	static const char *const files[] = { "queues", "regions", "fences", "contexts",
					     "registers" };
	char path[128];
	uint32_t key;

	if (!have_debugfs())
		SKIP(return, "no debugfs");
	ASSERT_LT(0, q_create(self->fd, 8));
	ASSERT_EQ(0, mem_register(self->fd, pages(MIB), MIB, CSREC_RIGHT_READ, &key));
	ASSERT_EQ(0, fence_create(self->fd, 0, &key));
	for (int i = 0; i < ARRAY_SIZE(files); i++) {
		snprintf(path, sizeof(path), DEBUGFS "/%s", files[i]);
		EXPECT_EQ(NULL, strstr(text(path), "ffff")) TH_LOG("%s: %s", files[i], text(path));
	}
}

TEST_F(visible, debugfs_tells_contexts_of_before_a_reset)
{
	char start[64];
	const char *l;

	if (!have_debugfs())
		SKIP(return, "no debugfs");
	ASSERT_LT(0, q_create(self->fd, 8));
	ASSERT_EQ(0, reset(self->device));
	snprintf(start, sizeof(start), "%d visible ", getpid());
	l = line_of("contexts", start);
	ASSERT_NE(NULL, l);
	EXPECT_STREQ("0", word(l, 4));
	EXPECT_STREQ("dead", word(l, 5));
}

/* ---- tracepoints ---- */

FIXTURE(trace)
{
	bool on;
	int fd;
};

FIXTURE_SETUP(trace)
{
	if (access(TRACEFS "/events", F_OK))
		mount("tracefs", TRACEFS, "tracefs", 0, NULL);
	self->fd = dev_open();
	ASSERT_LE(0, self->fd);
	if (access(TRACEFS "/events/csrec", F_OK) || (mkdir(TRACE, 0700) && errno != EEXIST))
		SKIP(return, "no tracepoints in this kernel");
	/* a clock that only says what was before what */
	ASSERT_EQ(0, write_file(TRACE "/trace_clock", "counter"));
	ASSERT_EQ(0, write_file(TRACE "/events/csrec/enable", "1"));
	ASSERT_EQ(0, write_file(TRACE "/tracing_on", "1"));
	self->on = true;
}

FIXTURE_TEARDOWN(trace)
{
	close(self->fd);
	if (!self->on)
		return;
	/* or the module cannot go */
	EXPECT_EQ(0, write_file(TRACE "/events/csrec/enable", "0"));
	EXPECT_EQ(0, rmdir(TRACE));
}

/* What was traced, one event a line, from the event's name on. */
static int events(char lines[][256], int most)
{
	const char *s = text(TRACE "/trace"), *e;
	int n = 0;

	for (; *s && n < most; s += strcspn(s, "\n") + 1) {
		e = strstr(s, ": csrec_");
		if (*s == '#' || !e || e > s + strcspn(s, "\n"))
			continue;
		snprintf(lines[n++], 256, "%.*s", (int)strcspn(e + 2, "\n"), e + 2);
	}
	return n;
}

/* The number after " key=" in an event. */
static uint64_t field(const char *event, const char *key)
{
	char pattern[32];
	const char *s;

	snprintf(pattern, sizeof(pattern), " %s=", key);
	s = strstr(event, pattern);
	return s ? strtoull(s + strlen(pattern), NULL, 0) : ~0ULL;
}

static bool is(const char *event, const char *name)
{
	return !strncmp(event, name, strlen(name)) && event[strlen(name)] == ':';
}

TEST_F(trace, one_command_from_its_regions_to_its_completion)
{
	char ev[16][256];
	struct csrec_cmd cmd;
	struct csrec_cqe cqe;
	uint32_t host, dram;
	int q, n;

	ASSERT_EQ(0, mem_register(self->fd, pages(4 * KIB), 1000, CSREC_RIGHT_READ, &host));
	ASSERT_EQ(0, mem_alloc(self->fd, CSREC_REGION_DRAM, 4 * KIB, &dram));
	q = q_create(self->fd, 4);
	ASSERT_LT(0, q);
	cmd = cmd_copy(host, 0, dram, 0, 777);
	cmd.cid = htole16(0x1234);
	cmd.flags = CSREC_CMD_F_FENCE;
	ASSERT_EQ(0, run_cmd(self->fd, q, &cmd, &cqe));
	cmd.opcode = 0xee;
	ASSERT_EQ(CSREC_ST_BAD_OPCODE, run_cmd(self->fd, q, &cmd, &cqe));
	ASSERT_EQ(0, mem_free(self->fd, dram));

	n = events(ev, 16);
	for (int i = 0; i < n; i++)
		TH_LOG("%s", ev[i]);
	ASSERT_EQ(7, n);
	ASSERT_TRUE(is(ev[0], "csrec_region_set"));
	EXPECT_EQ(host, field(ev[0], "key"));
	EXPECT_EQ(CSREC_REGION_HOST, field(ev[0], "kind"));
	EXPECT_EQ(CSREC_RIGHT_READ, field(ev[0], "rights"));
	EXPECT_EQ(1000, field(ev[0], "bytes"));
	ASSERT_TRUE(is(ev[1], "csrec_region_set"));
	EXPECT_EQ(dram, field(ev[1], "key"));
	EXPECT_EQ(CSREC_REGION_DRAM, field(ev[1], "kind"));
	EXPECT_EQ(field(ev[0], "domain"), field(ev[1], "domain"));
	EXPECT_EQ(4 * KIB, field(ev[1], "bytes"));
	ASSERT_TRUE(is(ev[2], "csrec_submit"));
	EXPECT_EQ(0, field(ev[2], "dev"));
	EXPECT_EQ(q, field(ev[2], "queue"));
	EXPECT_EQ(0, field(ev[2], "count"));
	EXPECT_EQ(0x1234, field(ev[2], "cid"));
	EXPECT_EQ(CSREC_OP_COPY, field(ev[2], "opcode"));
	EXPECT_EQ(CSREC_CMD_F_FENCE, field(ev[2], "flags"));
	ASSERT_TRUE(is(ev[3], "csrec_complete"));
	EXPECT_EQ(q, field(ev[3], "queue"));
	EXPECT_EQ(0, field(ev[3], "count"));
	EXPECT_EQ(0x1234, field(ev[3], "cid"));
	EXPECT_EQ(CSREC_ST_OK, field(ev[3], "status"));
	EXPECT_EQ(777, field(ev[3], "detail"));
	ASSERT_TRUE(is(ev[4], "csrec_submit"));
	EXPECT_EQ(1, field(ev[4], "count"));
	EXPECT_EQ(0xee, field(ev[4], "opcode"));
	ASSERT_TRUE(is(ev[5], "csrec_complete"));
	EXPECT_EQ(1, field(ev[5], "count"));
	EXPECT_EQ(CSREC_ST_BAD_OPCODE, field(ev[5], "status"));
	EXPECT_EQ(0xee, field(ev[5], "detail"));
	ASSERT_TRUE(is(ev[6], "csrec_region_inval"));
	EXPECT_EQ(dram, field(ev[6], "key"));
}

/* Nobody could trace them without a call into the driver for each. */
TEST_F(trace, a_mapped_queue_leaves_no_events)
{
	struct csrec_cmd nop = cmd_make(CSREC_OP_NOP, 1);
	char ev[16][256];
	struct mapq q;

	if (mapq_create(&q, self->fd, 16, 0, 0, 0))
		SKIP(return, "no mapped queues");
	for (int i = 0; i < 40; i++)
		ASSERT_EQ(0, mapq_run(&q, &nop));
	EXPECT_EQ(0, events(ev, 16));
}

TEST_F(trace, a_list_of_commands_is_traced_one_by_one)
{
	struct csrec_cmd cmds[16];
	struct csrec_cqe cqes[16];
	char ev[64][256];
	int n, submits = 0, completions = 0, q = q_create(self->fd, 16);
	unsigned int seen = 0;

	ASSERT_LT(0, q);
	for (int i = 0; i < 16; i++)
		cmds[i] = cmd_make(CSREC_OP_NOP, 100 + i);
	ASSERT_EQ(16, q_submit(self->fd, q, cmds, 16));
	for (n = 0; n < 16;)
		n += q_wait(self->fd, q, cqes, 1, 16, -1);
	n = events(ev, 64);
	ASSERT_EQ(32, n);
	for (int i = 0; i < n; i++) {
		if (is(ev[i], "csrec_submit")) {
			EXPECT_EQ(submits, field(ev[i], "count"));
			EXPECT_EQ(100 + submits, field(ev[i], "cid"));
			submits++;
		} else {
			ASSERT_TRUE(is(ev[i], "csrec_complete"));
			EXPECT_EQ(completions, field(ev[i], "count"));
			completions++;
			seen |= 1u << (field(ev[i], "cid") - 100);
		}
	}
	EXPECT_EQ(16, submits);
	EXPECT_EQ(16, completions);
	EXPECT_EQ(0xffff, seen);
}

TEST_F(trace, a_read_from_the_drive)
{
	struct csrec_p2p_seg segs[2] = { { .len = 4 * KIB }, { .len = 8 * KIB, .dev_off = 4 * KIB } };
	struct csrec_p2p_read arg = { .size = sizeof(arg), .flags = CSREC_P2P_F_BOUNCE, .count = 2,
				      .segs = (uintptr_t)segs };
	char ev[8][256], drive[32];
	struct stat st;
	uint32_t key;
	int n;

	arg.fd = open(DRIVE, O_RDONLY);
	ASSERT_LE(0, arg.fd);
	ASSERT_EQ(0, fstat(arg.fd, &st));
	ASSERT_EQ(0, mem_alloc(self->fd, CSREC_REGION_DRAM, 16 * KIB, &key));
	segs[0].key = segs[1].key = key;
	ASSERT_EQ(0, xioctl(self->fd, CSREC_IOC_P2P_READ, &arg));
	segs[1].file_off = 1;
	ASSERT_EQ(-EINVAL, xioctl(self->fd, CSREC_IOC_P2P_READ, &arg));
	n = events(ev, 8);
	for (int i = 0; i < n; i++)
		TH_LOG("%s", ev[i]);
	/* the region; the read; and nothing of what was refused */
	ASSERT_EQ(3, n);
	ASSERT_TRUE(is(ev[1], "csrec_p2p_start"));
	EXPECT_EQ(2, field(ev[1], "segs"));
	EXPECT_EQ(12 * KIB, field(ev[1], "bytes"));
	EXPECT_EQ(CSREC_P2P_F_BOUNCE, field(ev[1], "flags"));
	EXPECT_EQ(field(ev[0], "domain"), field(ev[1], "domain"));
	EXPECT_NE(NULL, strstr(ev[1], " read "));
	snprintf(drive, sizeof(drive), "drive=%u:%u ", major(st.st_rdev), minor(st.st_rdev));
	EXPECT_NE(NULL, strstr(ev[1], drive));
	ASSERT_TRUE(is(ev[2], "csrec_p2p_done"));
	EXPECT_EQ(0, field(ev[2], "p2p_bytes"));
	EXPECT_EQ(12 * KIB, field(ev[2], "bounce_bytes"));
	EXPECT_EQ(0, field(ev[2], "ret"));
	close(arg.fd);
}

TEST_F(trace, a_reset_of_the_device)
{
	char ev[8][256];

	ASSERT_EQ(0, reset(DEVICE));
	ASSERT_EQ(1, events(ev, 8));
	ASSERT_TRUE(is(ev[0], "csrec_reset"));
	EXPECT_EQ(0, field(ev[0], "queue"));
	EXPECT_EQ(0, field(ev[0], "ret"));
}

TEST_HARNESS_MAIN
