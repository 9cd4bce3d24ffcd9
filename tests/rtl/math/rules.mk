# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Tests of the arithmetic: fp units, dot product, MLP engine. Included by
# tests/rtl/Makefile, and usable alone: make -f tests/rtl/math/rules.mk math-check
#
#   math-all	builds	math-check  runs all (TAP)	math-long  a thousand million fp pairs
#   math-lint	Verilator -Wall and Yosys on these modules

math-src := $(patsubst %/,%,$(dir $(abspath $(lastword $(MAKEFILE_LIST)))))
math-top := $(abspath $(math-src)/../../..)
math-out := $(if $(O),$(abspath $(O)),$(math-top)/build/tests-rtl)/math
math-rtl := $(math-top)/rtl-model/rtl
math-har := $(math-top)/rtl-model/harness
math-pkg := $(math-out)/pkg/csrec_pkg.sv

MATH_PAIRS ?= 2000000
MATH_LONG_PAIRS ?= 1000000000

math-cflags := -std=c17 -O2 -g -Wall -Wextra -Werror -ffp-contract=off \
	-I$(math-src) -I$(math-har) -I$(math-top)/uapi
math-vflags := --cc -Wall --quiet -O3 --x-assign unique --x-initial unique \
	-CFLAGS "-O2 -ffp-contract=off"
math-vinc = $(shell verilator --getenv VERILATOR_ROOT)/include

math-fp := $(math-rtl)/csrec_fp_mul.sv $(math-rtl)/csrec_fp_add.sv
math-dot := $(math-fp) $(math-rtl)/csrec_dot.sv
math-mlp := $(math-dot) $(math-rtl)/csrec_sigmoid.sv $(math-rtl)/csrec_mlp.sv

.PHONY: math-all math-check math-long math-lint
.DELETE_ON_ERROR:

math-all: $(addprefix $(math-out)/,fp_test dot_test sigmoid_test mlp_test mlp_small_test)

math-check: math-all
	$(math-out)/fp_test $(MATH_PAIRS)
	$(math-out)/dot_test
	$(math-out)/sigmoid_test
	$(math-out)/mlp_test
	$(math-out)/mlp_small_test

# What it found goes to build/reports/rtl.json.
math-long: math-all
	$(math-out)/fp_test $(MATH_LONG_PAIRS) >$(math-out)/fp_long.log; bad=$$?; \
		cat $(math-out)/fp_long.log; \
		$(math-top)/tests/rtl/report.sh --argjson bad $$bad --argjson special $$(sed -n \
			'1s/.*: \([0-9]*\) pairs/\1/p' $(math-out)/fp_long.log) --argjson random $$(sed -n \
			's/^# \([0-9]*\) random.*/\1/p' $(math-out)/fp_long.log) \
			'{fp: {special_pairs: $$special, random_pairs: $$random, equal: ($$bad == 0)}}'; \
		exit $$bad
	$(math-out)/dot_test 1000000
	$(math-out)/sigmoid_test 1000000

# Each top and the files it is made of; every module in both bodies of the fp units.
math-tops := csrec_fp_mul csrec_fp_add csrec_dot csrec_sigmoid csrec_mlp
math-lint: $(math-pkg)
	set -e; for top in $(math-tops); do for fp in -UCSREC_FP_DPI -DCSREC_FP_DPI; do \
		verilator --lint-only -Wall --quiet $$fp --top-module $$top $(math-pkg) $(math-mlp); \
	done; \
	yosys -q -p "read_verilog -sv $(math-pkg) $(math-mlp); hierarchy -check -top $$top; \
		proc; check -assert"; done

$(math-pkg): $(wildcard $(math-top)/uapi/linux/csrec_hw.h $(math-top)/rtl-model/gen/*)
	$(MAKE) -C $(math-top)/rtl-model pkg O=$(@D)

# $(1) library, $(2) top module, $(3) sources, $(4) more flags
define math-verilate
$(math-out)/$(1)/lib$(1).a: $(math-pkg) $(3)
	verilator $(math-vflags) $(4) --Mdir $$(@D) --prefix $(1) --top-module $(2) \
		$(math-pkg) $(3)
	$(MAKE) -C $$(@D) -f $(1).mk lib$(1) >$$(@D)/log 2>&1 || { cat $$(@D)/log; exit 1; }
endef

$(eval $(call math-verilate,Vfp_rtl,fp_tb,$(math-fp) $(math-src)/fp_tb.sv))
$(eval $(call math-verilate,Vfp_dpi,fp_tb,$(math-fp) $(math-src)/fp_tb.sv,-DCSREC_FP_DPI))
$(eval $(call math-verilate,Vdot,csrec_dot,$(math-dot),-DCSREC_FP_DPI))
$(eval $(call math-verilate,Vsigmoid,csrec_sigmoid,$(math-mlp),-DCSREC_FP_DPI))
$(eval $(call math-verilate,Vmlp,csrec_mlp,$(math-mlp),-DCSREC_FP_DPI))
# Small buffers, so that every limit is met often; and the synthesizable fp units
$(eval $(call math-verilate,Vmlp_small,csrec_mlp,$(math-mlp),-GMaxWidth=64 -GWeightBeats=16))

$(math-out)/%.o: $(math-src)/%.c $(wildcard $(math-src)/*.h)
	@mkdir -p $(@D)
	$(CC) $(math-cflags) -c -o $@ $<
$(math-out)/mlp_small_test.o: $(math-src)/mlp_test.c $(wildcard $(math-src)/*.h)
	@mkdir -p $(@D)
	$(CC) $(math-cflags) -DMAX_WIDTH=64 -c -o $@ $<
$(math-out)/mlp_test.o: math-cflags += -DMAX_WIDTH=4096
$(math-out)/fp_dpi.o: $(math-har)/fp_dpi.c $(math-har)/fp_dpi.h
	@mkdir -p $(@D)
	$(CC) $(math-cflags) -c -o $@ $<

# $(1) object, $(2) source, $(3) Verilated library, $(4) more flags
define math-bind
$(math-out)/$(1).o: $(math-src)/$(2) $(math-out)/$(3)/lib$(3).a $(wildcard $(math-src)/*.h)
	$(CXX) -std=c++17 -O2 -g -Wall -Wextra -Werror -I$(math-src) -I$(math-out)/$(3) \
		-isystem $(math-vinc) -isystem $(math-vinc)/vltstd $(4) -c -o $$@ $$<
endef

$(eval $(call math-bind,fp_bind_rtl,fp_bind.cpp,Vfp_rtl,-DBODY=rtl))
$(eval $(call math-bind,fp_bind_dpi,fp_bind.cpp,Vfp_dpi,-DBODY=dpi))
$(eval $(call math-bind,dot_bind,dot_bind.cpp,Vdot))
$(eval $(call math-bind,sigmoid_bind,sigmoid_bind.cpp,Vsigmoid))
$(eval $(call math-bind,mlp_bind,mlp_bind.cpp,Vmlp,-DMODEL=Vmlp))
$(eval $(call math-bind,mlp_small_bind,mlp_bind.cpp,Vmlp_small,-DMODEL=Vmlp_small))

math-link = $(CXX) -o $@ $^ $(math-out)/Vdot/libverilated.a -pthread -lm
$(math-out)/fp_test: $(addprefix $(math-out)/,fp_test.o fp_bind_rtl.o fp_bind_dpi.o \
		fp_dpi.o Vfp_rtl/libVfp_rtl.a Vfp_dpi/libVfp_dpi.a) | $(math-out)/Vdot/libVdot.a
	$(math-link)
$(math-out)/dot_test: $(addprefix $(math-out)/,dot_test.o dot_bind.o ref.o fp_dpi.o \
		Vdot/libVdot.a)
	$(math-link)
$(math-out)/sigmoid_test: $(addprefix $(math-out)/,sigmoid_test.o sigmoid_bind.o ref.o fp_dpi.o \
		Vsigmoid/libVsigmoid.a) | $(math-out)/Vdot/libVdot.a
	$(math-link)
$(math-out)/mlp_test: $(addprefix $(math-out)/,mlp_test.o mlp_bind.o ref.o fp_dpi.o \
		Vmlp/libVmlp.a) | $(math-out)/Vdot/libVdot.a
	$(math-link)
$(math-out)/mlp_small_test: $(addprefix $(math-out)/,mlp_small_test.o mlp_small_bind.o ref.o \
		Vmlp_small/libVmlp_small.a) | $(math-out)/Vdot/libVdot.a
	$(math-link)
