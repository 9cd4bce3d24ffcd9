# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Tests of the device without its engines' arithmetic. Included by tests/rtl/Makefile,
# and usable alone: make -f tests/rtl/core/rules.mk core-check
#
#   core-all	builds	core-check  runs all (TAP)	core-long  lock-step, a million commands
#   core_test    directed tests on the RTL with assertions
#   lockstep.sh  the same random commands to the RTL and to the golden device

core-src := $(patsubst %/,%,$(dir $(abspath $(lastword $(MAKEFILE_LIST)))))
core-top := $(abspath $(core-src)/../../..)
core-out := $(if $(O),$(abspath $(O)),$(core-top)/build/tests-rtl)/core
core-rtl ?= $(core-top)/build/rtl-model
core-lib := $(core-rtl)/libcsrec-model-rtl-fst.a
core-golden ?= $(core-top)/build/golden
core-golden-lib := $(core-golden)/libcsrec-model-golden.a
core-cflags := -std=c17 -O2 -g -D_GNU_SOURCE -Wall -Wextra -Werror \
	-I$(core-top)/uapi -I$(core-top)/rtl-model/include -I$(core-src)

# beyond the fixed runs
CORE_COMMANDS ?= 1000
CORE_LONG_COMMANDS ?= 1000000

.PHONY: core-all core-check core-long core-model core-golden

core-all: $(addprefix $(core-out)/,core_test lockstep_rtl lockstep_golden)

core-check: core-all
	$(core-out)/core_test
	$(core-src)/lockstep.sh $(core-out) $(CORE_COMMANDS)

core-long: core-all
	$(core-src)/lockstep.sh $(core-out) $(CORE_LONG_COMMANDS) 100000

core-model:
	$(MAKE) -C $(core-top)/rtl-model model O=$(core-rtl)
# The empty recipes make make look at what came out.
$(core-lib): core-model ;
core-golden:
	$(MAKE) -C $(core-top)/rtl-model/golden O=$(core-golden)
$(core-golden-lib): core-golden ;

$(core-out)/%.o: $(core-src)/%.c $(core-src)/dev.h $(core-top)/rtl-model/include/csrec_model.h
	@mkdir -p $(@D)
	$(CC) $(core-cflags) -c -o $@ $<

$(core-out)/core_test: $(core-out)/core_test.o $(core-out)/dev.o $(core-lib)
	$(CXX) -o $@ $^ -lpthread -lz -lm
$(core-out)/lockstep_rtl: $(core-out)/lockstep.o $(core-out)/dev.o $(core-lib)
	$(CXX) -o $@ $^ -lpthread -lz -lm
$(core-out)/lockstep_golden: $(core-out)/lockstep.o $(core-out)/dev.o $(core-golden-lib)
	$(CC) -o $@ $^ $(core-golden)/libcsrec-golden.a -lm
