// SPDX-License-Identifier: GPL-2.0-only
/*
 * Attributes below /sys/class/csrec/csrecN; ABI/sysfs-driver-csrec describes them. They exist
 * from before the uevent until the device goes, which waits for who is reading.
 */
#include <linux/sysfs.h>

#include "csrec.h"

static struct csrec_dev *csrec_of(struct device *dev)
{
	return container_of(dev, struct csrec_dev, dev);
}

#define CSREC_ATTR_RO(_name, _fmt, _value)						\
static ssize_t _name##_show(struct device *dev, struct device_attribute *attr, char *buf)	\
{											\
	struct csrec_dev *csd = csrec_of(dev);						\
											\
	return sysfs_emit(buf, _fmt "\n", _value);					\
}											\
static DEVICE_ATTR_RO(_name)

static ssize_t uapi_version_show(struct device *dev, struct device_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%u.%u\n", CSREC_UAPI_MAJOR, CSREC_UAPI_MINOR);
}
static DEVICE_ATTR_RO(uapi_version);

static ssize_t hw_version_show(struct device *dev, struct device_attribute *attr, char *buf)
{
	struct csrec_dev *csd = csrec_of(dev);

	return sysfs_emit(buf, "%u.%u\n", csd->hw_major, csd->hw_minor);
}
static DEVICE_ATTR_RO(hw_version);

static ssize_t state_show(struct device *dev, struct device_attribute *attr, char *buf)
{
	static const char * const names[] = {
		[CSREC_LIVE] = "live",
		[CSREC_FAILED] = "failed",
		[CSREC_RESETTING] = "resetting",
		[CSREC_GONE] = "gone",
	};

	return sysfs_emit(buf, "%s\n", names[READ_ONCE(csrec_of(dev)->state)]);
}
static DEVICE_ATTR_RO(state);

static ssize_t features_show(struct device *dev, struct device_attribute *attr, char *buf)
{
	static const struct {
		u32 bit;
		const char *name;
	} names[] = {
		{ CSREC_FEATURE_P2PDMA, "p2pdma" },
		{ CSREC_FEATURE_QUEUE_MAP, "queue_map" },
		{ CSREC_FEATURE_COALESCE, "coalesce" },
		{ CSREC_FEATURE_MEM_MAP, "mem_map" },
		{ CSREC_FEATURE_URING, "uring" },
	};
	u32 features = csrec_features(csrec_of(dev));
	unsigned int i;
	int n = 0;

	for (i = 0; i < ARRAY_SIZE(names); i++)
		if (features & names[i].bit)
			n += sysfs_emit_at(buf, n, "%s%s", n ? " " : "", names[i].name);
	return n + sysfs_emit_at(buf, n, "\n");
}
static DEVICE_ATTR_RO(features);

static unsigned int csrec_queues_used(struct csrec_dev *csd)
{
	unsigned int i, n = 0;

	spin_lock(&csd->queues_lock);
	for (i = 1; i <= csd->nr_ioq; i++)
		n += !!csd->queues[i];
	spin_unlock(&csd->queues_lock);
	return n;
}

CSREC_ATTR_RO(queues, "%u", csd->nr_ioq);
CSREC_ATTR_RO(queues_used, "%u", csrec_queues_used(csd));
CSREC_ATTR_RO(vectors, "%u", csd->nr_vectors);
CSREC_ATTR_RO(vectors_wanted, "%u", csrec_vectors_wanted(csd));
CSREC_ATTR_RO(dram_size, "%llu", csd->dram_size);
CSREC_ATTR_RO(dram_free, "%llu", csrec_dram_free_bytes(csd));
CSREC_ATTR_RO(onchip_size, "%llu", csd->cap_onchip);
CSREC_ATTR_RO(onchip_free, "%llu", csrec_onchip_free_bytes(csd));

/* Limits of a process. What it has beyond a new one it keeps. */

struct csrec_quota_attr {
	struct device_attribute attr;
	enum csrec_quota what;
	u64 most;
};

static ssize_t csrec_quota_show(struct device *dev, struct device_attribute *attr, char *buf)
{
	struct csrec_quota_attr *quota = container_of(attr, struct csrec_quota_attr, attr);

	return sysfs_emit(buf, "%llu\n", READ_ONCE(csrec_of(dev)->quota[quota->what]));
}

static ssize_t csrec_quota_store(struct device *dev, struct device_attribute *attr,
				 const char *buf, size_t count)
{
	struct csrec_quota_attr *quota = container_of(attr, struct csrec_quota_attr, attr);
	struct csrec_dev *csd = csrec_of(dev);
	u64 val;
	int ret = kstrtou64(buf, 0, &val);

	if (ret)
		return ret;
	if (val > quota->most)
		return -ERANGE;
	spin_lock(&csd->owner_lock);
	WRITE_ONCE(csd->quota[quota->what], val);
	spin_unlock(&csd->owner_lock);
	return count;
}

#define CSREC_QUOTA_ATTR(_name, _what, _most)						\
static struct csrec_quota_attr csrec_quota_##_name = {					\
	.attr = __ATTR(quota_##_name, 0644, csrec_quota_show, csrec_quota_store),	\
	.what = CSREC_QUOTA_##_what,							\
	.most = _most,									\
}

CSREC_QUOTA_ATTR(dram, DRAM, U64_MAX);
CSREC_QUOTA_ATTR(onchip, ONCHIP, U64_MAX);
CSREC_QUOTA_ATTR(queues, QUEUES, U32_MAX);
CSREC_QUOTA_ATTR(regions, REGIONS, U32_MAX);
CSREC_QUOTA_ATTR(fences, FENCES, U32_MAX);

static struct attribute *csrec_attrs[] = {
	&dev_attr_uapi_version.attr,
	&dev_attr_hw_version.attr,
	&dev_attr_state.attr,
	&dev_attr_features.attr,
	&dev_attr_queues.attr,
	&dev_attr_queues_used.attr,
	&dev_attr_vectors.attr,
	&dev_attr_vectors_wanted.attr,
	&dev_attr_dram_size.attr,
	&dev_attr_dram_free.attr,
	&dev_attr_onchip_size.attr,
	&dev_attr_onchip_free.attr,
	&csrec_quota_dram.attr.attr,
	&csrec_quota_onchip.attr.attr,
	&csrec_quota_queues.attr.attr,
	&csrec_quota_regions.attr.attr,
	&csrec_quota_fences.attr.attr,
	NULL
};

static const struct attribute_group csrec_group = {
	.attrs = csrec_attrs,
};

/* ---- capabilities/: the registers as they were read at probe ---- */

CSREC_ATTR_RO(cap_queue, "0x%016llx", csd->cap_queue);
CSREC_ATTR_RO(cap_table, "0x%016llx", csd->cap_table);
CSREC_ATTR_RO(cap_dram, "0x%016llx", csd->cap_dram);
CSREC_ATTR_RO(cap_onchip, "0x%016llx", csd->cap_onchip);
CSREC_ATTR_RO(cap_engine, "0x%016llx", csd->cap_engine);
CSREC_ATTR_RO(cap_limit, "0x%016llx", csd->cap_limit);

static struct attribute *csrec_cap_attrs[] = {
	&dev_attr_cap_queue.attr,
	&dev_attr_cap_table.attr,
	&dev_attr_cap_dram.attr,
	&dev_attr_cap_onchip.attr,
	&dev_attr_cap_engine.attr,
	&dev_attr_cap_limit.attr,
	NULL
};

static const struct attribute_group csrec_cap_group = {
	.name = "capabilities",
	.attrs = csrec_cap_attrs,
};

/* ---- counters/: of the driver ---- */

static u64 csrec_count(const atomic64_t *counter)
{
	return atomic64_read(counter);
}

CSREC_ATTR_RO(doorbells, "%llu", csrec_count(&csd->doorbells));
CSREC_ATTR_RO(interrupts, "%llu", csrec_count(&csd->interrupts));
CSREC_ATTR_RO(commands, "%llu", csrec_count(&csd->commands));
CSREC_ATTR_RO(p2p_bytes, "%llu", csrec_count(&csd->p2p_bytes));
CSREC_ATTR_RO(bounce_bytes, "%llu", csrec_count(&csd->bounce_bytes));
CSREC_ATTR_RO(pinned_bytes, "%llu", csrec_count(&csd->pinned_bytes));
CSREC_ATTR_RO(queue_resets, "%llu", csrec_count(&csd->queue_resets));
CSREC_ATTR_RO(device_resets, "%llu", csrec_count(&csd->device_resets));

static struct attribute *csrec_counter_attrs[] = {
	&dev_attr_doorbells.attr,
	&dev_attr_interrupts.attr,
	&dev_attr_commands.attr,
	&dev_attr_p2p_bytes.attr,
	&dev_attr_bounce_bytes.attr,
	&dev_attr_pinned_bytes.attr,
	&dev_attr_queue_resets.attr,
	&dev_attr_device_resets.attr,
	NULL
};

static const struct attribute_group csrec_counter_group = {
	.name = "counters",
	.attrs = csrec_counter_attrs,
};

/* ---- hw_counters/: of the device ---- */

struct csrec_hw_attr {
	struct device_attribute attr;
	u32 reg;
};

static ssize_t csrec_hw_show(struct device *dev, struct device_attribute *attr, char *buf)
{
	struct csrec_hw_attr *hw = container_of(attr, struct csrec_hw_attr, attr);
	struct csrec_dev *csd = csrec_of(dev);
	u64 count;

	down_read(&csd->reset_lock);
	count = csrec_stats_counter(csd, (hw->reg - CSREC_REG_CNT_CYCLES) / 8);
	up_read(&csd->reset_lock);
	return sysfs_emit(buf, "%llu\n", count);
}

#define CSREC_HW_ATTR(_name, _reg)							\
static struct csrec_hw_attr csrec_hw_##_name = {					\
	.attr = __ATTR(_name, 0444, csrec_hw_show, NULL),				\
	.reg = CSREC_REG_CNT_##_reg,							\
}

CSREC_HW_ATTR(cycles, CYCLES);
CSREC_HW_ATTR(progress, PROGRESS);
CSREC_HW_ATTR(commands, COMMANDS);
CSREC_HW_ATTR(errors, ERRORS);
CSREC_HW_ATTR(doorbells, DOORBELLS);
CSREC_HW_ATTR(bad_doorbells, BAD_DOORBELL);
CSREC_HW_ATTR(bad_writes, BAD_WRITE);
CSREC_HW_ATTR(irqs, IRQS);
CSREC_HW_ATTR(host_read_bytes, HOST_RD);
CSREC_HW_ATTR(host_write_bytes, HOST_WR);
CSREC_HW_ATTR(dram_read_bytes, DRAM_RD);
CSREC_HW_ATTR(dram_write_bytes, DRAM_WR);
CSREC_HW_ATTR(busy_copy, BUSY_COPY);
CSREC_HW_ATTR(busy_emb, BUSY_EMB);
CSREC_HW_ATTR(busy_tt, BUSY_TT);
CSREC_HW_ATTR(busy_interact, BUSY_INTERACT);
CSREC_HW_ATTR(busy_mlp, BUSY_MLP);
CSREC_HW_ATTR(busy, BUSY);
CSREC_HW_ATTR(emb_rows, EMB_ROWS);
CSREC_HW_ATTR(tt_rows, TT_ROWS);
CSREC_HW_ATTR(tt_saved, TT_SAVED);

static struct attribute *csrec_hw_attrs[] = {
	&csrec_hw_cycles.attr.attr,
	&csrec_hw_progress.attr.attr,
	&csrec_hw_commands.attr.attr,
	&csrec_hw_errors.attr.attr,
	&csrec_hw_doorbells.attr.attr,
	&csrec_hw_bad_doorbells.attr.attr,
	&csrec_hw_bad_writes.attr.attr,
	&csrec_hw_irqs.attr.attr,
	&csrec_hw_host_read_bytes.attr.attr,
	&csrec_hw_host_write_bytes.attr.attr,
	&csrec_hw_dram_read_bytes.attr.attr,
	&csrec_hw_dram_write_bytes.attr.attr,
	&csrec_hw_busy_copy.attr.attr,
	&csrec_hw_busy_emb.attr.attr,
	&csrec_hw_busy_tt.attr.attr,
	&csrec_hw_busy_interact.attr.attr,
	&csrec_hw_busy_mlp.attr.attr,
	&csrec_hw_busy.attr.attr,
	&csrec_hw_emb_rows.attr.attr,
	&csrec_hw_tt_rows.attr.attr,
	&csrec_hw_tt_saved.attr.attr,
	NULL
};

/* a counter that is added to the header is added here */
static_assert(ARRAY_SIZE(csrec_hw_attrs) == CSREC_NR_COUNTERS + 1);

static const struct attribute_group csrec_hw_group = {
	.name = "hw_counters",
	.attrs = csrec_hw_attrs,
};

const struct attribute_group *csrec_groups[] = {
	&csrec_group,
	&csrec_cap_group,
	&csrec_counter_group,
	&csrec_hw_group,
	NULL
};
