// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * csrec_model.h on top of the Verilated csrec_top: clock and reset, the AXI4-Lite side
 * that BAR 0 accesses use, and models of the memories behind the two AXI4 masters.
 *
 * The memories answer in order. A read is carried out, and a write handed over, when its
 * latency is over; its beats or its answer follow. Reads wait for the memory's latency;
 * writes are posted, as on PCIe, and take only their time on the link. Device DRAM has the
 * timing of dram.h, with the rest of dram_latency in front of it, or a fixed latency.
 */
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <memory>
#include <unordered_map>

#include "Vcsrec_top.h"
#include "csrec_model.h"
#include "dram.h"
#include "verilated.h"
#ifdef CSREC_FST
#include "verilated_fst_c.h"
#endif

namespace {

constexpr unsigned int BEAT = 64;	/* bytes of a full beat */
constexpr unsigned int BURST = 4096;	/* bytes of the largest burst */
constexpr unsigned int LIMIT = 100000;	/* cycles within which BAR 0 must answer */
constexpr uint64_t STALE = 4096;	/* cycles without progress while answers are late */

struct txn {
	bool write = false;
	uint8_t id = 0;
	uint64_t addr = 0;		/* of the first beat, as on the bus */
	unsigned int beats = 0, size = BEAT, beat = 0;
	uint64_t at = 0;		/* cycle at which it is carried out */
	uint64_t due[BURST / BEAT];	/* read: cycle of each beat; 0 any from @at on */
	bool started = false, done = false;
	unsigned int ops_left = 0;	/* host accesses not yet answered */
	int err = 0;
	uint8_t buf[BURST];
	uint64_t strb[BURST / BEAT];
};

/* One AXI4 slave as csrec_top sees it. Pointers lead to the Verilated ports. */
struct port {
	CData *arvalid, *arready, *arlen, *arsize, *rvalid, *rready, *rlast, *rresp;
	CData *awvalid, *awready, *awlen, *wvalid, *wready, *wlast, *bvalid, *bready, *bresp;
	CData *arid, *rid, *awid, *bid;
	QData *araddr, *awaddr, *wstrb;
	VlWide<16> *rdata, *wdata;

	unsigned int latency, bytes_x16, queue;
	struct dram *banks = nullptr;	/* not for the host, or with a fixed latency */
	uint64_t rfree = 0, wfree = 0;	/* link free from here on, 1/256 cycles */
	std::deque<std::shared_ptr<txn>> reads, writes;	/* in order */
	std::shared_ptr<txn> incoming;	/* write whose beats are still coming */
	bool incoming_aw = false;
	bool r_over = false, b_over = false;	/* R or B beat taken in the last edge */
};

} // namespace

struct csrec_model {
	csrec_model_config cfg;
	uint8_t *dram;
	csrec_host_ops ops;
	void *opaque;

	std::unique_ptr<VerilatedContext> ctx;
	std::unique_ptr<Vcsrec_top> top;
	port hport, dport;
	/* By tag: accesses not yet answered; those that a reset made nobody's. */
	std::unordered_map<uint32_t, std::shared_ptr<txn>> late, orphans;
	uint32_t tag = 0;
	uint64_t cycle = 0, progress = 0;	/* now; last cycle with progress, or a timer */
	uint64_t rng;
	bool in_bar = false;	/* within a BAR access: no callbacks */
#ifdef CSREC_FST
	std::unique_ptr<VerilatedFstC> fst;
#endif
	const char *name;
};

namespace {

uint64_t next_random(csrec_model *m)
{
	/* xorshift64* */
	m->rng ^= m->rng >> 12;
	m->rng ^= m->rng << 25;
	m->rng ^= m->rng >> 27;
	return m->rng * 0x2545f4914f6cdd1dull;
}

bool stall(csrec_model *m)
{
	return m->cfg.stall_pct && (next_random(m) >> 33) % 100 < m->cfg.stall_pct;
}

uint64_t jitter(csrec_model *m)
{
	return m->cfg.host_jitter ? (next_random(m) >> 33) % (m->cfg.host_jitter + 1) : 0;
}

/* Takes the link for @bytes from now on; returns the cycle at which they have passed. */
uint64_t take_link(uint64_t *free, uint64_t now, unsigned int bytes, unsigned int bytes_x16)
{
	if (*free < now << 8)
		*free = now << 8;
	*free += (uint64_t)bytes * (16 << 8) / bytes_x16;
	return (*free + 255) >> 8;
}

/* One contiguous access. A late answer completes it later. */
void access_host(csrec_model *m, const std::shared_ptr<txn> &t, uint64_t addr, uint8_t *buf,
		 size_t len)
{
	uint32_t tag = m->tag++;
	int err;

	t->ops_left++;
	m->late[tag] = t;
	err = t->write ? m->ops.write(m->opaque, tag, addr, buf, len)
		       : m->ops.read(m->opaque, tag, addr, buf, len);
	if (err == -EINPROGRESS)
		return;
	m->late.erase(tag);
	t->ops_left--;
	if (err)
		t->err = err;
}

void access_dram(csrec_model *m, const std::shared_ptr<txn> &t, uint64_t addr, uint8_t *buf,
		 size_t len)
{
	if (addr > m->cfg.dram_size || len > m->cfg.dram_size - addr)
		t->err = -EFAULT;
	else if (t->write)
		memcpy(m->dram + addr, buf, len);
	else
		memcpy(buf, m->dram + addr, len);
}

void access(csrec_model *m, port *p, const std::shared_ptr<txn> &t, uint64_t addr, uint8_t *buf,
	    size_t len)
{
	if (p == &m->hport)
		access_host(m, t, addr, buf, len);
	else
		access_dram(m, t, addr, buf, len);
}

/* Carries a transaction out. Writes go in runs of bytes whose strobes are set. */
void start(csrec_model *m, port *p, const std::shared_ptr<txn> &t)
{
	uint64_t base = t->addr & ~(uint64_t)(BEAT - 1);
	unsigned int n = t->beats * BEAT;

	t->started = true;
	if (!t->write) {
		access(m, p, t, t->addr, t->buf + (t->size == BEAT ? 0 : t->addr % BEAT),
		       t->size == BEAT ? n : t->size);
	} else {
		unsigned int i = 0;

		while (i < n) {
			unsigned int from;

			while (i < n && !(t->strb[i / BEAT] >> i % BEAT & 1))
				i++;
			from = i;
			while (i < n && t->strb[i / BEAT] >> i % BEAT & 1)
				i++;
			if (i > from)
				access(m, p, t, base + from, t->buf + from, i - from);
		}
	}
	t->done = t->ops_left == 0;
}

/* What is handed over on @p's channels in the clock edge that comes; changes no input. */
void port_sample(csrec_model *m, port *p)
{
	p->r_over = *p->rvalid && *p->rready;
	p->b_over = *p->bvalid && *p->bready;
	if (*p->arvalid && *p->arready) {
		auto t = std::make_shared<txn>();

		t->id = *p->arid;
		t->addr = *p->araddr;
		t->beats = *p->arlen + 1u;
		t->size = 1u << *p->arsize;
		t->at = m->cycle + p->latency + (p == &m->hport ? jitter(m) : 0);
		for (unsigned int i = 0; i < t->beats; i++)
			t->due[i] = p->banks ? p->latency + dram_read(p->banks, m->cycle,
								      t->addr + i * BEAT)
					     : 0;
		if (p->banks)
			t->at = t->due[0];
		p->reads.push_back(t);
	}
	if (*p->awvalid && *p->awready) {
		if (!p->incoming)
			p->incoming = std::make_shared<txn>();
		p->incoming->id = *p->awid;
		p->incoming->addr = *p->awaddr;
		p->incoming_aw = true;
	}
	if (*p->wvalid && *p->wready) {
		if (!p->incoming)
			p->incoming = std::make_shared<txn>();
		memcpy(p->incoming->buf + p->incoming->beat * BEAT, p->wdata, BEAT);
		p->incoming->strb[p->incoming->beat++] = *p->wstrb;
		if (*p->wlast)
			p->incoming->beats = p->incoming->beat;
	}
	if (p->incoming && p->incoming_aw && p->incoming->beats) {
		p->incoming->write = true;
		p->incoming->at = take_link(&p->wfree, m->cycle, p->incoming->beats * BEAT,
					    p->bytes_x16) +
				  (p == &m->hport ? jitter(m) : 0);
		for (unsigned int i = 0; p->banks && i < p->incoming->beats; i++)
			p->incoming->at = dram_write(p->banks, m->cycle,
						     p->incoming->addr + i * BEAT);
		p->writes.push_back(p->incoming);
		p->incoming.reset();
		p->incoming_aw = false;
	}
}

/* Drives @p's channels for the next edge. */
void port_drive(csrec_model *m, port *p)
{
	bool calls = p != &m->hport || !m->in_bar;

	if (p->r_over) {
		if (*p->rlast)
			p->reads.pop_front();
		*p->rvalid = 0;
	}
	if (p->b_over) {
		p->writes.pop_front();
		*p->bvalid = 0;
	}
	if (!p->reads.empty()) {
		auto &t = p->reads.front();

		if (!t->started && m->cycle >= t->at && calls)
			start(m, p, t);
		if (t->done && !*p->rvalid && (p->rfree >> 8) <= m->cycle &&
		    t->due[t->beat] <= m->cycle && !stall(m)) {
			memcpy(p->rdata, t->buf + t->beat * BEAT, BEAT);
			*p->rid = t->id;
			*p->rresp = t->err ? 2 : 0;
			*p->rlast = ++t->beat == t->beats;
			*p->rvalid = 1;
			take_link(&p->rfree, m->cycle, t->size, p->bytes_x16);
		}
	}
	if (!p->writes.empty()) {
		auto &t = p->writes.front();

		if (!t->started && m->cycle >= t->at && calls)
			start(m, p, t);
		if (t->done && !*p->bvalid && !stall(m)) {
			*p->bid = t->id;
			*p->bresp = t->err ? 2 : 0;
			*p->bvalid = 1;
		}
	}
	*p->arready = p->reads.size() < p->queue && !stall(m);
	/* One write at a time collects its beats. */
	*p->awready = !p->incoming_aw && p->writes.size() < 16 && !stall(m);
	*p->wready = !(p->incoming && p->incoming->beats) && !stall(m);
}

void port_reset(port *p)
{
	p->reads.clear();
	p->writes.clear();
	p->incoming.reset();
	p->incoming_aw = p->r_over = p->b_over = false;
	*p->rvalid = *p->bvalid = *p->arready = *p->awready = *p->wready = 0;
}

void dump(csrec_model *m, uint64_t half)
{
#ifdef CSREC_FST
	if (m->fst && m->cycle >= m->cfg.fst_from && m->cycle < m->cfg.fst_to)
		m->fst->dump(2 * m->cycle + half);
#else
	(void)m;
	(void)half;
#endif
}

void tick(csrec_model *m)
{
	Vcsrec_top *top = m->top.get();

	top->clk_i = 0;
	top->eval();
	dump(m, 0);
	if (top->progress_o || top->timer_o)
		m->progress = m->cycle;
	if (top->rst_ni) {
		port_sample(m, &m->hport);
		port_sample(m, &m->dport);
		if (top->msix_valid_o && top->msix_ready_i)
			m->ops.irq(m->opaque, top->msix_vector_o);
	}
	top->clk_i = 1;
	top->eval();
	dump(m, 1);
	m->cycle++;
	if (top->rst_ni) {
		port_drive(m, &m->hport);
		port_drive(m, &m->dport);
		top->msix_ready_i = !m->in_bar && !stall(m);
	}
}

void die(const char *what)
{
	fprintf(stderr, "csrec model: %s\n", what);
	abort();
}

#define BIND(p, top, name)							\
	do {									\
		(p).arvalid = &(top)->m_axi_##name##_arvalid_o;			\
		(p).arready = &(top)->m_axi_##name##_arready_i;			\
		(p).araddr = &(top)->m_axi_##name##_araddr_o;			\
		(p).arlen = &(top)->m_axi_##name##_arlen_o;			\
		(p).arsize = &(top)->m_axi_##name##_arsize_o;			\
		(p).rvalid = &(top)->m_axi_##name##_rvalid_i;			\
		(p).rready = &(top)->m_axi_##name##_rready_o;			\
		(p).rlast = &(top)->m_axi_##name##_rlast_i;			\
		(p).rresp = &(top)->m_axi_##name##_rresp_i;			\
		(p).rdata = &(top)->m_axi_##name##_rdata_i;			\
		(p).awvalid = &(top)->m_axi_##name##_awvalid_o;			\
		(p).awready = &(top)->m_axi_##name##_awready_i;			\
		(p).awaddr = &(top)->m_axi_##name##_awaddr_o;			\
		(p).awlen = &(top)->m_axi_##name##_awlen_o;			\
		(p).wvalid = &(top)->m_axi_##name##_wvalid_o;			\
		(p).wready = &(top)->m_axi_##name##_wready_i;			\
		(p).wdata = &(top)->m_axi_##name##_wdata_o;			\
		(p).wstrb = &(top)->m_axi_##name##_wstrb_o;			\
		(p).wlast = &(top)->m_axi_##name##_wlast_o;			\
		(p).bvalid = &(top)->m_axi_##name##_bvalid_i;			\
		(p).bready = &(top)->m_axi_##name##_bready_o;			\
		(p).bresp = &(top)->m_axi_##name##_bresp_i;			\
		(p).arid = &(top)->m_axi_##name##_arid_o;			\
		(p).rid = &(top)->m_axi_##name##_rid_i;				\
		(p).awid = &(top)->m_axi_##name##_awid_o;			\
		(p).bid = &(top)->m_axi_##name##_bid_i;				\
	} while (0)

} // namespace

extern "C" {

int csrec_model_create(struct csrec_model **out, const struct csrec_model_config *cfg, void *dram,
		       const struct csrec_host_ops *ops, void *opaque)
{
	if (!cfg->dram_size || (cfg->dram_size & (cfg->dram_size - 1)) || !cfg->host_bytes_x16 ||
	    cfg->stall_pct > 95)
		return -EINVAL;

	std::unique_ptr<csrec_model> m(new (std::nothrow) csrec_model);
	if (!m)
		return -ENOMEM;
	m->cfg = *cfg;
	m->dram = static_cast<uint8_t *>(dram);
	m->ops = *ops;
	m->opaque = opaque;
	m->rng = cfg->seed * 2 + 0x9e3779b97f4a7c15ull;
	m->rng |= 1;
	m->ctx.reset(new VerilatedContext);
#ifdef CSREC_FST
	m->ctx->traceEverOn(true);
	m->ctx->randReset(2);
	m->ctx->randSeed(cfg->seed & 0x7fffffff);
#endif
	m->top.reset(new Vcsrec_top(m->ctx.get(), "csrec"));
	BIND(m->hport, m->top, host);
	BIND(m->dport, m->top, dram);
	m->hport.latency = cfg->host_latency;
	m->hport.bytes_x16 = cfg->host_bytes_x16;
	m->hport.queue = 16;
	m->dport.latency = cfg->dram_latency;
	m->dport.bytes_x16 = BEAT * 16;
	m->dport.queue = DRAM_QUEUE;
	if (!cfg->dram_flat) {
		unsigned int idle = dram_idle_latency(&dram_ddr4_2400);

		m->dport.banks = dram_new(&dram_ddr4_2400);
		if (!m->dport.banks)
			return -ENOMEM;
		m->dport.latency = cfg->dram_latency > idle ? cfg->dram_latency - idle : 0;
	}
	m->top->cfg_dram_size_i = cfg->dram_size;
	m->top->cfg_first_count_i = cfg->first_count;
	csrec_model_reset(m.get());
	m->name = csrec_model_read(m.get(), 0x28, 8) >> 16 & 0xf ? "rtl, fp dpi" : "rtl, fp rtl";
	csrec_model_reset(m.get());
	if (cfg->fst) {
		int err = csrec_model_trace(m.get(), cfg->fst);

		if (err) {
			dram_free(m->dport.banks);
			return err;
		}
	}
	*out = m.release();
	return 0;
}

void csrec_model_destroy(struct csrec_model *m)
{
	if (!m)
		return;
	csrec_model_trace(m, nullptr);
	m->top->final();
	dram_free(m->dport.banks);
	delete m;
}

void csrec_model_reset(struct csrec_model *m)
{
	Vcsrec_top *top = m->top.get();

	/*
	 * The memories are reset with the device. What late answers still write to is kept
	 * alive until they come.
	 */
	m->orphans.merge(m->late);
	m->late.clear();
	top->rst_ni = 0;
	top->s_axil_awvalid_i = top->s_axil_wvalid_i = top->s_axil_bready_i = 0;
	top->s_axil_arvalid_i = top->s_axil_rready_i = top->msix_ready_i = 0;
	port_reset(&m->hport);
	port_reset(&m->dport);
	for (int i = 0; i < 4; i++)
		tick(m);
	top->rst_ni = 1;
}

uint64_t csrec_model_read(struct csrec_model *m, uint32_t off, unsigned int len)
{
	Vcsrec_top *top = m->top.get();
	uint64_t val = 0;
	bool taken = false;

	m->in_bar = true;
	top->s_axil_araddr_i = off & 0x7fff8;
	for (unsigned int i = 0;; i++) {
		bool got = false;

		if (i == LIMIT)
			die("no answer to a register read");
		top->s_axil_arvalid_i = !taken && (top->s_axil_arvalid_i || !stall(m));
		top->s_axil_rready_i = !stall(m);
		top->eval();
		if (top->s_axil_arvalid_i && top->s_axil_arready_o)
			taken = true;
		if (top->s_axil_rvalid_o && top->s_axil_rready_i) {
			val = top->s_axil_rdata_o;
			got = true;
		}
		tick(m);
		if (got)
			break;
	}
	top->s_axil_arvalid_i = 0;
	top->s_axil_rready_i = 0;
	m->in_bar = false;
	if ((len != 4 && len != 8) || off % len)
		return 0;
	if (len == 8)
		return val;
	return val >> 8 * (off & 7) & 0xffffffff;
}

void csrec_model_write(struct csrec_model *m, uint32_t off, unsigned int len, uint64_t val)
{
	Vcsrec_top *top = m->top.get();
	bool aw = false, w = false;

	m->in_bar = true;
	top->s_axil_awaddr_i = off & 0x7fff8;
	top->s_axil_wdata_i = val << 8 * (off & 7);
	top->s_axil_wstrb_i = ((1u << len) - 1) << (off & 7);
	for (unsigned int i = 0;; i++) {
		bool got;

		if (i == LIMIT)
			die("no answer to a register write");
		top->s_axil_awvalid_i = !aw && (top->s_axil_awvalid_i || !stall(m));
		top->s_axil_wvalid_i = !w && (top->s_axil_wvalid_i || !stall(m));
		top->s_axil_bready_i = !stall(m);
		top->eval();
		aw |= top->s_axil_awvalid_i && top->s_axil_awready_o;
		w |= top->s_axil_wvalid_i && top->s_axil_wready_o;
		got = top->s_axil_bvalid_o && top->s_axil_bready_i;
		tick(m);
		if (got)
			break;
	}
	top->s_axil_awvalid_i = top->s_axil_wvalid_i = top->s_axil_bready_i = 0;
	m->in_bar = false;
}

bool csrec_model_busy(const struct csrec_model *m)
{
	if (!m->top->busy_o)
		return false;
	/* While answers are late the device may still compute, but not for ever. */
	return m->late.empty() || m->cycle - m->progress < STALE;
}

unsigned int csrec_model_step(struct csrec_model *m, unsigned int cycles)
{
	unsigned int n = 0;

	while (n < cycles && csrec_model_busy(m)) {
		tick(m);
		n++;
	}
	return n;
}

void csrec_model_host_done(struct csrec_model *m, uint32_t tag, int err)
{
	auto it = m->late.find(tag);

	if (it == m->late.end()) {
		m->orphans.erase(tag);
		return;
	}
	std::shared_ptr<txn> t = it->second;
	m->late.erase(it);
	if (err)
		t->err = err;
	if (--t->ops_left == 0)
		t->done = true;
	m->progress = m->cycle;
}

int csrec_model_trace(struct csrec_model *m, const char *fst)
{
#ifdef CSREC_FST
	if (m->fst) {
		m->fst->close();
		m->fst.reset();
	}
	if (!fst)
		return 0;
	m->fst.reset(new VerilatedFstC);
	m->top->trace(m->fst.get(), 99);
	m->fst->open(fst);
	if (!m->cfg.fst_to)
		m->cfg.fst_to = UINT64_MAX;
	return m->fst->isOpen() ? 0 : -EIO;
#else
	(void)m;
	return fst ? -ENOTSUP : 0;
#endif
}

const char *csrec_model_name(const struct csrec_model *m)
{
	return m->name;
}

} // extern "C"
