/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * vfio-user on the wire, as far as a PCI device needs it. Layouts follow QEMU's
 * docs/interop/vfio-user.rst; all fields are in host byte order.
 */
#ifndef CSREC_VFIO_USER_H
#define CSREC_VFIO_USER_H

#include <assert.h>
#include <stdint.h>

#define VFU_MAJOR		0
#define VFU_MINOR		0

struct vfu_hdr {
	uint16_t id;		/* the sender's, echoed in the reply */
	uint16_t cmd;
	uint32_t size;		/* with this header */
	uint32_t flags;
	uint32_t err;		/* positive errno, with VFU_F_ERROR */
};

#define VFU_F_TYPE		0x0f
#define VFU_F_COMMAND		0x00
#define VFU_F_REPLY		0x01
#define VFU_F_NO_REPLY		0x10
#define VFU_F_ERROR		0x20

enum vfu_cmd {
	VFU_VERSION = 1,
	VFU_DMA_MAP = 2,
	VFU_DMA_UNMAP = 3,
	VFU_GET_INFO = 4,
	VFU_GET_REGION_INFO = 5,
	VFU_GET_REGION_IO_FDS = 6,
	VFU_GET_IRQ_INFO = 7,
	VFU_SET_IRQS = 8,
	VFU_REGION_READ = 9,
	VFU_REGION_WRITE = 10,
	VFU_DMA_READ = 11,	/* server to client */
	VFU_DMA_WRITE = 12,	/* server to client */
	VFU_DEVICE_RESET = 13,
	VFU_REGION_WRITE_MULTI = 15,
	VFU_DEVICE_FEATURE = 16,
	VFU_MIG_DATA_READ = 17,
	VFU_MIG_DATA_WRITE = 18,
};

struct vfu_version {
	uint16_t major;
	uint16_t minor;
	char json[];		/* NUL-terminated, may be absent */
};

struct vfu_dma_map {
	uint32_t argsz;
	uint32_t flags;		/* VFU_DMA_* */
	uint64_t offset;
	uint64_t iova;
	uint64_t size;
};

#define VFU_DMA_READABLE	0x1
#define VFU_DMA_WRITABLE	0x2

struct vfu_dma_unmap {
	uint32_t argsz;
	uint32_t flags;
	uint64_t iova;
	uint64_t size;
};

#define VFU_UNMAP_ALL		0x2	/* with iova and size 0 */

struct vfu_device_info {
	uint32_t argsz;
	uint32_t flags;
	uint32_t num_regions;
	uint32_t num_irqs;
};

#define VFU_DEVICE_RESETS	0x1
#define VFU_DEVICE_PCI		0x2

struct vfu_region_info {
	uint32_t argsz;
	uint32_t flags;
	uint32_t index;
	uint32_t cap_offset;
	uint64_t size;
	uint64_t offset;
};

#define VFU_REGION_F_READ	0x1
#define VFU_REGION_F_WRITE	0x2
#define VFU_REGION_F_MMAP	0x4

enum vfu_region {
	VFU_BAR0,
	VFU_BAR1,
	VFU_BAR2,
	VFU_BAR3,
	VFU_BAR4,
	VFU_BAR5,
	VFU_ROM,
	VFU_CONFIG,
	VFU_VGA,
	VFU_NUM_REGIONS,
};

struct vfu_irq_info {
	uint32_t argsz;
	uint32_t flags;
	uint32_t index;
	uint32_t count;
};

#define VFU_IRQ_F_EVENTFD	0x1

enum vfu_irq {
	VFU_INTX,
	VFU_MSI,
	VFU_MSIX,
	VFU_NUM_IRQS,		/* without the error and request indices */
};

struct vfu_set_irqs {
	uint32_t argsz;
	uint32_t flags;
	uint32_t index;
	uint32_t start;
	uint32_t count;
	uint8_t data[];		/* with VFU_IRQ_DATA_BOOL */
};

#define VFU_IRQ_DATA_NONE	0x01
#define VFU_IRQ_DATA_BOOL	0x02
#define VFU_IRQ_DATA_EVENTFD	0x04
#define VFU_IRQ_DATA		0x07
#define VFU_IRQ_MASK		0x08
#define VFU_IRQ_UNMASK		0x10
#define VFU_IRQ_TRIGGER		0x20
#define VFU_IRQ_ACTION		0x38

struct vfu_region_rw {
	uint64_t offset;
	uint32_t region;
	uint32_t count;
	uint8_t data[];
};

struct vfu_write_one {
	uint64_t offset;
	uint32_t region;
	uint32_t count;
	uint8_t data[8];
};

#define VFU_WRITE_MULTI_MAX	200

struct vfu_write_multi {
	uint64_t count;
	struct vfu_write_one w[];
};

struct vfu_dma_rw {
	uint64_t addr;
	uint64_t count;
	uint8_t data[];
};

static_assert(sizeof(struct vfu_hdr) == 16, "wire layout");
static_assert(sizeof(struct vfu_version) == 4, "wire layout");
static_assert(sizeof(struct vfu_dma_map) == 32, "wire layout");
static_assert(sizeof(struct vfu_dma_unmap) == 24, "wire layout");
static_assert(sizeof(struct vfu_region_info) == 32, "wire layout");
static_assert(sizeof(struct vfu_set_irqs) == 20, "wire layout");
static_assert(sizeof(struct vfu_region_rw) == 16, "wire layout");
static_assert(sizeof(struct vfu_write_one) == 24, "wire layout");
static_assert(sizeof(struct vfu_dma_rw) == 16, "wire layout");

#endif /* CSREC_VFIO_USER_H */
