# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Throughput of the device's cores. Included by tests/rtl/Makefile, and usable alone:
# make -f tests/rtl/bench/rules.mk bench-run [ONLY=core]
#
#   bench-all	builds	bench-run  table on stdout, and into build/reports/rtl.json
#   bench-check  the DRAM model that the bounds rest on, alone (TAP)

bench-src := $(patsubst %/,%,$(dir $(abspath $(lastword $(MAKEFILE_LIST)))))
bench-top := $(abspath $(bench-src)/../../..)
bench-out := $(if $(O),$(abspath $(O)),$(bench-top)/build/tests-rtl)/bench
bench-core := $(bench-top)/tests/rtl/core
bench-har := $(bench-top)/rtl-model/harness
bench-lib := $(bench-top)/build/rtl-model/libcsrec-model-rtl.a
bench-cflags := -std=c17 -O2 -g -D_GNU_SOURCE -Wall -Wextra -Werror -ffp-contract=off \
	-I$(bench-top)/uapi -I$(bench-top)/rtl-model/include -I$(bench-har) -I$(bench-core) \
	-I$(bench-src) '-DDRAM_SIZE=(256u << 20)'
ONLY ?=
bench-merge := [.throughput[]?, $$new[0].throughput[]] | group_by(.core, .work, .format)

.PHONY: bench-all bench-run bench-check bench-model

bench-all: $(bench-out)/bench $(bench-out)/dram_test

bench-check: $(bench-out)/dram_test
	$<

# Works of the same name replace what the report had.
bench-run: bench-all
	$(bench-out)/bench $(bench-out)/new.json $(ONLY)
	@$(bench-top)/tests/rtl/report.sh --slurpfile new $(bench-out)/new.json \
		'{throughput: ($(bench-merge) | map(last))}'

bench-model:
	$(MAKE) -s -C $(bench-top)/rtl-model model
# The empty recipe makes make look at what came out.
$(bench-lib): bench-model ;

$(bench-out)/%.o: $(bench-src)/%.c $(bench-src)/bench.h $(bench-core)/dev.h $(bench-har)/dram.h \
		$(bench-top)/rtl-model/include/csrec_model.h
	@mkdir -p $(@D)
	$(CC) $(bench-cflags) -c -o $@ $<
$(bench-out)/dev.o: $(bench-core)/dev.c $(bench-core)/dev.h \
		$(bench-top)/rtl-model/include/csrec_model.h
	@mkdir -p $(@D)
	$(CC) $(bench-cflags) -c -o $@ $<

$(bench-out)/bench: $(addprefix $(bench-out)/,bench.o emb.o tt.o dev.o) $(bench-lib)
	$(CXX) -o $@ $^ -lpthread -lz -lm
$(bench-out)/dram_test: $(bench-src)/dram_test.c $(bench-har)/dram.c $(bench-har)/dram.h
	@mkdir -p $(@D)
	$(CC) $(bench-cflags) -fsanitize=address,undefined -o $@ $(filter %.c,$^)
