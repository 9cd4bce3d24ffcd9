// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * PCI configuration space: an endpoint with PM, PCIe and MSI-X capabilities, and in the
 * extended space AER, serial number and what a Gen3 link has to have.
 */
#include <string.h>

#include "server.h"

#define CFG_COMMAND		0x04
#define   COMMAND_MEMORY	0x0002
#define   COMMAND_MASTER	0x0004
#define   COMMAND_PARITY	0x0040
#define   COMMAND_SERR		0x0100
#define   COMMAND_INTX_OFF	0x0400
#define CFG_STATUS		0x06
#define   STATUS_CAP_LIST	0x0010
#define   STATUS_ERRORS		0xf900	/* write 1 to clear */
#define CFG_BAR0		0x10
#define CFG_BAR2		0x18
#define   BAR_MEM64		0x4
#define   BAR_PREFETCH		0x8

/* Capabilities, each linked to the next. */
#define CFG_PM			0x40
#define   PM_CSR		(CFG_PM + 4)
#define   PM_STATE		0x3
#define   PM_D0			0
#define   PM_D3HOT		3
#define CFG_PCIE		0x50
#define   PCIE_DEVCTL		(CFG_PCIE + 0x08)
#define   DEVCTL_FLR		0x8000
#define CFG_MSIX		0x90
#define CFG_AER			0x100
#define CFG_DSN			0x150
#define CFG_SECPCI		0x160

#define SUBSYSTEM_ID		0x0001	/* of the simulated board */

static uint64_t get(const struct server *s, unsigned int off, unsigned int len)
{
	uint64_t v = 0;

	memcpy(&v, s->cfg + off, len);
	return v;
}

static void put(uint8_t *space, unsigned int off, unsigned int len, uint64_t v)
{
	memcpy(space + off, &v, len);
}

static void put16(struct server *s, unsigned int off, uint16_t v)
{
	put(s->cfg, off, 2, v);
}

static void put32(struct server *s, unsigned int off, uint32_t v)
{
	put(s->cfg, off, 4, v);
}

/* Power-on values. */
void cfg_init(struct server *s)
{
	uint8_t *w = s->cfg_wmask, *c = s->cfg_w1c;

	memset(s->cfg, 0, sizeof(s->cfg));
	memset(w, 0, sizeof(s->cfg_wmask));
	memset(c, 0, sizeof(s->cfg_w1c));

	put16(s, 0x00, CSREC_PCI_VENDOR);
	put16(s, 0x02, CSREC_PCI_DEVICE);
	put(w, CFG_COMMAND, 2, COMMAND_MEMORY | COMMAND_MASTER | COMMAND_PARITY | COMMAND_SERR |
	    COMMAND_INTX_OFF);
	put16(s, CFG_STATUS, STATUS_CAP_LIST);
	put(c, CFG_STATUS, 2, STATUS_ERRORS);
	put32(s, 0x08, CSREC_PCI_CLASS << 8 | CSREC_HW_MAJOR);
	w[0x0c] = 0xff;					/* cache line size, no effect */
	put32(s, CFG_BAR0, BAR_MEM64);
	put(w, CFG_BAR0, 8, ~(uint64_t)(CSREC_BAR_REG_SIZE - 1));
	put32(s, CFG_BAR2, BAR_MEM64 | BAR_PREFETCH);
	put(w, CFG_BAR2, 8, ~(s->bar2_size - 1));
	put16(s, 0x2c, CSREC_PCI_VENDOR);
	put16(s, 0x2e, SUBSYSTEM_ID);
	s->cfg[0x34] = CFG_PM;
	w[0x3c] = 0xff;					/* interrupt line; pin 0: no INTx */

	/* Power management 1.2: D0 and D3hot; leaving D3hot resets. */
	put16(s, CFG_PM, 0x01 | CFG_PCIE << 8);
	put16(s, CFG_PM + 2, 0x0003);
	put(w, PM_CSR, 2, PM_STATE);

	/* PCI Express endpoint, version 2, Gen3 x4. */
	put16(s, CFG_PCIE, 0x10 | CFG_MSIX << 8);
	put16(s, CFG_PCIE + 0x02, 0x0002);
	put32(s, CFG_PCIE + 0x04, 1u << 28 |		/* function-level reset */
				  1u << 15 |		/* role-based error reporting */
				  1u << 5 | 1);		/* extended tags, payload 256 */
	put16(s, PCIE_DEVCTL, 0x2810);			/* reads of 512, no snoop, relaxed */
	put(w, PCIE_DEVCTL, 2, 0x79ff);		/* all but phantom functions, aux power */
	put(c, CFG_PCIE + 0x0a, 2, 0x000f);		/* device status */
	put32(s, CFG_PCIE + 0x0c, 4 << 4 | 3);		/* link capabilities */
	put(w, CFG_PCIE + 0x10, 2, 0x01cb);		/* link control */
	put16(s, CFG_PCIE + 0x12, 1u << 12 | 4 << 4 | 3);	/* link status: the slot's clock */
	put32(s, CFG_PCIE + 0x24, 1u << 4);		/* completion timeout disable */
	put(w, CFG_PCIE + 0x28, 2, 1u << 4);		/* device control 2 */
	put32(s, CFG_PCIE + 0x2c, 0x7 << 1);		/* 2.5, 5 and 8 GT/s */
	put16(s, CFG_PCIE + 0x30, 3);			/* link control 2: target 8 GT/s */
	put(w, CFG_PCIE + 0x30, 2, 0x000f);
	put16(s, CFG_PCIE + 0x32, 0x001e);		/* link status 2: equalization done */

	/* MSI-X: the client emulates enable and masks. */
	put16(s, CFG_MSIX, 0x11);
	put16(s, CFG_MSIX + 2, (uint16_t)(s->nvec - 1));
	put(w, CFG_MSIX + 2, 2, 0xc000);
	put32(s, CFG_MSIX + 4, CSREC_MSIX_TABLE_OFFSET | CSREC_BAR_REG);
	put32(s, CFG_MSIX + 8, CSREC_MSIX_PBA_OFFSET | CSREC_BAR_REG);

	/* Advanced error reporting, version 2, the defaults of the specification. */
	put32(s, CFG_AER, 0x0001 | 2 << 16 | CFG_DSN << 20);
	put(c, CFG_AER + 0x04, 4, 0x03fff030);		/* uncorrectable status */
	put(w, CFG_AER + 0x08, 4, 0x03fff030);		/* mask */
	put32(s, CFG_AER + 0x0c, 0x00462030);		/* severity */
	put(w, CFG_AER + 0x0c, 4, 0x03fff030);
	put(c, CFG_AER + 0x10, 4, 0x0000f1c1);		/* correctable status */
	put32(s, CFG_AER + 0x14, 0x00002000);		/* mask */
	put(w, CFG_AER + 0x14, 4, 0x0000f1c1);

	/* Device serial number. */
	put32(s, CFG_DSN, 0x0003 | 1 << 16 | CFG_SECPCI << 20);
	put(s->cfg, CFG_DSN + 4, 8, s->serial);

	/* Secondary PCI Express, for 8 GT/s: no lane had an error. */
	put32(s, CFG_SECPCI, 0x0019 | 1 << 16);
}

/*
 * Function-level reset, or back from D3hot. A vfio client keeps the BARs itself and
 * shows the guest its own copy, so a guest that restores them afterwards may see no
 * need to write: ours stay, as they do when the kernel's vfio resets a function.
 */
static void function_reset(struct server *s, const char *why)
{
	uint64_t bar0 = get(s, CFG_BAR0, 8), bar2 = get(s, CFG_BAR2, 8);

	debug(s, "%s", why);
	cfg_init(s);
	put(s->cfg, CFG_BAR0, 8, bar0);
	put(s->cfg, CFG_BAR2, 8, bar2);
	server_reset_model(s);
}

void cfg_read(struct server *s, uint32_t off, void *buf, uint32_t len)
{
	memcpy(buf, s->cfg + off, len);
}

void cfg_write(struct server *s, uint32_t off, const void *buf, uint32_t len)
{
	const uint8_t *v = buf;
	unsigned int old_state = s->cfg[PM_CSR] & PM_STATE;
	unsigned int state;
	bool was_master = cfg_master_on(s), flr = false;

	for (uint32_t i = 0; i < len; i++) {
		uint32_t o = off + i;

		s->cfg[o] = (uint8_t)((s->cfg[o] & ~s->cfg_wmask[o]) | (v[i] & s->cfg_wmask[o]));
		s->cfg[o] &= (uint8_t)~(v[i] & s->cfg_w1c[o]);
		if (o == PCIE_DEVCTL + 1 && (v[i] & DEVCTL_FLR >> 8))
			flr = true;
	}
	state = s->cfg[PM_CSR] & PM_STATE;
	if (state != PM_D0 && state != PM_D3HOT) {	/* no D1, D2: the write is dropped */
		state = old_state;
		s->cfg[PM_CSR] = (uint8_t)((s->cfg[PM_CSR] & ~PM_STATE) | state);
	}
	if (flr)
		function_reset(s, "function-level reset");
	else if (old_state == PM_D3HOT && state == PM_D0)
		function_reset(s, "reset by D3hot to D0");
	if (!was_master && cfg_master_on(s)) {
		irq_flush(s);
		dma_check(s);
	}
}

bool cfg_memory_on(const struct server *s)
{
	return (s->cfg[CFG_COMMAND] & COMMAND_MEMORY) && (s->cfg[PM_CSR] & PM_STATE) == PM_D0;
}

bool cfg_master_on(const struct server *s)
{
	return (s->cfg[CFG_COMMAND] & COMMAND_MASTER) && (s->cfg[PM_CSR] & PM_STATE) == PM_D0;
}

bool cfg_own_dram(const struct server *s, uint64_t addr, size_t len, uint64_t *off)
{
	uint64_t bar = get(s, CFG_BAR2, 8) & ~(s->bar2_size - 1);

	if (!cfg_memory_on(s) || !bar || addr < bar || addr - bar > s->bar2_size - len)
		return false;
	*off = addr - bar;
	return true;
}
