# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Tests of the EMB, TT and INTERACT engines, each alone. Included by tests/rtl/Makefile,
# and usable alone: make -f tests/rtl/engines/rules.mk engines-check
#
#   engines-all	builds	engines-check  runs all (TAP)
#   engines-lint	Verilator -Wall and Yosys on these modules
#
# EMB and INTERACT are built and tested a second time with other limits: buffers that are
# no power of two, and a sample with more products than elements.

engines-src := $(patsubst %/,%,$(dir $(abspath $(lastword $(MAKEFILE_LIST)))))
engines-top := $(abspath $(engines-src)/../../..)
engines-out := $(if $(O),$(abspath $(O)),$(engines-top)/build/tests-rtl)/engines
engines-rtl := $(engines-top)/rtl-model/rtl
engines-har := $(engines-top)/rtl-model/harness
engines-pkg := $(engines-out)/pkg/csrec_pkg.sv

engines-names := emb interact tt
engines-parts := $(addprefix $(engines-rtl)/csrec_,fp_mul.sv fp_add.sv dot.sv client.sv \
	stream.sv bag_walk.sv bag_acc.sv div.sv fifo.sv rr.sv emb_sum.sv)
engines-tests := $(patsubst %,$(engines-out)/%_test,$(engines-names))
# What a test Verilates: the engine itself, or EMB behind one port.
engines-root = $(if $(filter emb,$1),emb_one,csrec_$1)
engines-root-file = $(if $(filter emb,$1),$(engines-src)/emb_one.sv)
engines-dim ?= 256
engines-vecs ?= 64

engines-cflags := -std=c17 -O2 -g -Wall -Wextra -Werror -ffp-contract=off \
	-I$(engines-src) -I$(engines-har) -I$(engines-top)/uapi -DMAX_DIM=$(engines-dim) \
	-DMAX_VECS=$(engines-vecs)
engines-vflags := --cc -Wall --quiet -O3 --x-assign unique --x-initial unique -DCSREC_FP_DPI \
	-GMaxDim=$(engines-dim) -GMaxVecs=$(engines-vecs) -CFLAGS "-O2 -ffp-contract=off"
engines-vinc = $(shell verilator --getenv VERILATOR_ROOT)/include

.PHONY: engines-all engines-check engines-lint engines-other
.DELETE_ON_ERROR:
.SECONDARY:

engines-all: $(engines-tests)
ifeq ($(engines-dim),256)
engines-all: engines-other
engines-others := $(patsubst %,$(engines-out)/other/engines/%_test,emb interact)
endif

engines-other:
	$(MAKE) -f $(engines-src)/rules.mk engines-all engines-names="emb interact" \
		engines-dim=48 engines-vecs=128 O=$(engines-out)/other

engines-check: engines-all
	for t in $(engines-tests) $(engines-others); do $$t || bad=1; done; exit $${bad-0}

engines-lint: $(engines-pkg)
	set -e; for e in $(engines-names); do \
		verilator --lint-only -Wall --quiet --top-module csrec_$$e $(engines-pkg) \
			-y $(engines-rtl) $(engines-rtl)/csrec_$$e.sv; \
		yosys -q -p "read_verilog -sv $(engines-pkg) $(engines-parts) \
			$(engines-rtl)/csrec_$$e.sv; hierarchy -check -top csrec_$$e; proc; \
			check -assert"; \
	done

$(engines-pkg): $(wildcard $(engines-top)/uapi/linux/csrec_hw.h $(engines-top)/rtl-model/gen/*)
	$(MAKE) -C $(engines-top)/rtl-model pkg O=$(@D)

$(engines-out)/Vcsrec_%/lib.a: $(engines-rtl)/csrec_%.sv $(engines-parts) $(engines-pkg) \
		$(engines-src)/emb_one.sv
	verilator $(engines-vflags) --Mdir $(@D) --prefix Vcsrec_$* \
		--top-module $(call engines-root,$*) \
		$(engines-pkg) $(engines-parts) $< $(call engines-root-file,$*)
	$(MAKE) -C $(@D) -f Vcsrec_$*.mk libVcsrec_$* >$(@D)/log 2>&1 || { cat $(@D)/log; exit 1; }
	cp $(@D)/libVcsrec_$*.a $@

$(engines-out)/%.o: $(engines-src)/%.c $(wildcard $(engines-src)/*.h)
	@mkdir -p $(@D)
	$(CC) $(engines-cflags) -c -o $@ $<

$(engines-out)/fp_dpi.o: $(engines-har)/fp_dpi.c $(engines-har)/fp_dpi.h
	@mkdir -p $(@D)
	$(CC) $(engines-cflags) -c -o $@ $<

$(engines-out)/%_bind.o: $(engines-src)/bind.cpp $(engines-src)/engine.h \
		$(engines-out)/Vcsrec_%/lib.a
	$(CXX) -std=c++17 -O2 -g -Wall -Wextra -Werror -I$(engines-src) \
		-I$(engines-out)/Vcsrec_$* -isystem $(engines-vinc) \
		-isystem $(engines-vinc)/vltstd -DVTOP=Vcsrec_$* -DNAME=$* \
		$(if $(filter interact,$*),,-DHAS_ROWS) $(if $(filter tt,$*),-DHAS_SAVED) -c -o $@ $<

$(engines-out)/%_test: $(engines-out)/%_test.o $(engines-out)/%_bind.o \
		$(engines-out)/Vcsrec_%/lib.a $(addprefix $(engines-out)/,engine.o bags.o fp_dpi.o)
	$(CXX) -o $@ $(filter %.o,$^) $(engines-out)/Vcsrec_$*/lib.a \
		$(engines-out)/Vcsrec_$*/libverilated.a -pthread
