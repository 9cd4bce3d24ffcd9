/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Planner: where each row of each table lies. MODEL.md has the mathematics, and names what
 * is taken from RecShard and SCRec.
 *
 * A problem is made from a model, its statistics, devices and a calibration, or filled in
 * by hand; it is read-only then. Functions that can fail return 0 or a negative errno and
 * say in words what and where in *err. One thread at a time uses a problem.
 */
#ifndef PLAN_H
#define PLAN_H

#include "cost.h"
#include "csm.h"

/* Rows first .. first + count - 1, by order of access, in tensor-train form. */
struct plan_tt {
	uint32_t first, count;
	uint32_t p[3];
	uint16_t q[3], r[2];
	double error;		/* sum of accesses * |row - rebuilt|^2 over the table's of |row|^2 */
	bool measured;		/* it is: of all these rows; else estimated from some */
};

struct plan_table {
	char name[17];
	uint32_t dim, nrows;
	double pooling;		/* ids a sample */
	double pool_max;	/* most ids a sample names */
	bool tt_form;		/* the model has it in TT form; form then, no choice */
	struct plan_tt form;
	/* Access curve: the k[i] most wanted rows get the share[i] of accesses. From (0, 0) to
	 * (nrows, 1), linear between points, concave. */
	uint32_t ncurve;
	uint32_t *k;
	double *share;
	/* TT forms to choose from; first is a k[] */
	struct plan_tt *tts;
	uint32_t ntts;
};

struct plan_op {
	enum plan_unit unit;	/* PLAN_MLP or PLAN_INTERACT */
	uint32_t in, out, repeat;
	bool dot, self;
	uint32_t nvec, dim, vec_step;
};

#define PLAN_COLD_OFFSET	1048576	/* of the extent: past partition tables and boot sectors */

enum plan_config { PLAN_AUTO, PLAN_MEMORY, PLAN_COMPUTE };

struct plan_device {
	char name[64];
	enum plan_config config;
	double dram_bytes, onchip_bytes, nvme_bytes;
	double nvme_rate, nvme_iops;	/* bytes and reads a second */
	double clock_hz, power_w;
};

/* One way to place a table */
struct plan_choice {
	uint32_t hot;		/* rows in DRAM */
	int32_t tt;		/* index into tts, -1 none */
	uint32_t slots;		/* 0: no cold rows */
	double emb_cycles, tt_cycles, out_cycles;
	double reads, read_bytes;	/* of the drive, a batch */
	double dram, onchip, nvme;	/* bytes */
	double error;		/* share of the bound on TT error */
};

struct plan_problem {
	uint32_t batch, block;
	double tt_error;	/* bound, root mean square */
	struct plan_cost cost;
	struct plan_table *tables;
	uint32_t ntables;
	struct plan_op *ops;
	uint32_t nops;
	double weight_bytes;	/* what a device with the dense part keeps in DRAM */
	struct plan_device *devices;
	uint32_t ndevices;
	/* made by plan_prepare() */
	struct plan_choice **choices;	/* per table */
	uint32_t *nchoices;
	uint32_t *group;	/* per device: the first one equal to it */
	double *dense_cycles;	/* [m]: dense part on each of m devices */
};

struct plan_load {		/* of a device, a batch */
	double emb_cycles, tt_cycles, dense_cycles, copy_cycles;
	double engine_s;	/* all cycles, in seconds */
	double warm_s, cold_s;	/* lookups before, after the wait for the drive */
	double drive_s, total_s;
	double reads, read_bytes;
	double dram, onchip, nvme;	/* bytes */
	uint32_t tables, samples;	/* samples: of the dense part */
};

struct plan_solution {
	uint32_t *choice, *device;	/* per table */
	bool *compute;			/* per device: has a part of the dense work */
	/* by plan_evaluate() */
	struct plan_load *load;		/* per device */
	double objective;		/* seconds of the slowest device */
	double latency;			/* one batch, nothing overlapped with another */
	double error;			/* root mean square of TT */
	double excess;			/* 0: feasible; else sum of relative excesses */
};

enum plan_solver {
	PLAN_HIGHS, PLAN_GREEDY_SIZE, PLAN_GREEDY_LOOKUPS, PLAN_GREEDY_SIZE_LOOKUPS,
	PLAN_RECSHARD, PLAN_ALL_NVME, PLAN_HOT_DRAM, PLAN_SOLVERS
};
extern const char *const plan_solver_names[PLAN_SOLVERS];

struct plan_certificate {
	double bound;		/* no plan is faster; over every split point of the curves */
	double gap;		/* (objective - bound) / objective */
	double seconds;
	bool optimal;		/* gap within 1e-6, or the MIP was solved to its end */
	uint32_t columns, columns_left, mip_columns;
	const char *start;	/* where the plan came from */
};

struct plan_options {
	enum plan_solver solver;
	double time_limit, gap;
};

/* Makes choices and the rest; call once, after all else is filled in. */
int plan_prepare(struct plan_problem *p, struct csm_err *err);
/* Takes over the errors of tts into the choices. */
void plan_set_errors(struct plan_problem *p);
/*
 * Half of the DRAM that a plan leaves goes to more slots: rows that the statistics do not know
 * will be wanted, too. Changes the choices that s has made; predicted times stay.
 */
void plan_spare_slots(struct plan_problem *p, struct plan_solution *s);
void plan_problem_free(struct plan_problem *p);

int plan_solution_init(struct plan_solution *s, const struct plan_problem *p,
		       struct csm_err *err);
void plan_solution_free(struct plan_solution *s);
void plan_solution_copy(struct plan_solution *to, const struct plan_solution *from,
			const struct plan_problem *p);
/* Exact under the model: fills in all results from choice, device and compute. */
void plan_evaluate(const struct plan_problem *p, struct plan_solution *s);

/*
 * -ENOSPC: no plan found; *err says what is short, by how much, and what would do.
 * baseline, if not NULL, gets each baseline's objective, NaN where it does not fit.
 */
int plan_solve(const struct plan_problem *p, const struct plan_options *o,
	       struct plan_solution *s, struct plan_certificate *cert,
	       double baseline[PLAN_SOLVERS], struct csm_err *err);

/* --- parts of plan_solve(), for solve.c, search.c and tests --- */
bool plan_baseline(const struct plan_problem *p, enum plan_solver which,
		   struct plan_solution *s);
/* Improves s by moves until none helps. tt: may it choose TT forms? */
void plan_search(const struct plan_problem *p, struct plan_solution *s, bool tt, double deadline);
/* Choices of a table that a good plan may well have */
struct plan_near {
	uint32_t n, *choice;
};
/*
 * Improves s, or mends it, by changes of up to two tables of a device at once to choices of
 * near[device][table], until none helps.
 */
void plan_polish(const struct plan_problem *p, struct plan_solution *s,
		 const struct plan_near *const *near, double deadline);
/* Chooses which devices have the dense part, as best for the lookups as they are. */
void plan_place_dense(const struct plan_problem *p, struct plan_solution *s);
double plan_now(void);
bool plan_choice_allowed(const struct plan_problem *p, uint32_t t, uint32_t c, bool tt);
/* Seconds of table t by choice c on device d, as if alone */
double plan_choice_seconds(const struct plan_problem *p, uint32_t t, uint32_t c, uint32_t d);

/* --- files --- */
int plan_load_devices(struct plan_problem *p, const char *path, struct csm_err *err);
/* Tables, dense part and weights from the model; then curves from the statistics. */
int plan_from_model(struct plan_problem *p, const struct csm_model *m, struct csm_err *err);
int plan_load_stats(struct plan_problem *p, const char *path, struct csm_err *err);

#endif
