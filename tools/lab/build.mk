# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# What `make build` does inside the lab: every part, each by its own Makefile, and the
# module for each kernel of the lab. What they print goes to build/log; the end of it is
# shown when one fails, name and seconds when it is done.

KERNELS := $(patsubst /lib/modules/%/build,%,$(wildcard /lib/modules/*/build))
LOG := build/log
$(shell mkdir -p $(LOG))

# $(1) name of the log and of what is built, $(2) arguments for make
part = @began=$$(date +%s); $(MAKE) $(2) >'$(LOG)/$(1).log' 2>&1 || \
	{ tail -n 30 '$(LOG)/$(1).log'; echo 'build: $(1) failed; the whole log is $(LOG)/$(1).log'; exit 1; }; \
	printf '  built  %-26s %4d s\n' '$(1)' $$(($$(date +%s) - began))

.PHONY: all server rtl golden userspace cli gen kselftest kselftest-sims guest-lib guest-model guest-plan $(KERNELS)
all: rtl golden cli gen kselftest kselftest-sims guest-lib guest-model guest-plan $(KERNELS)

# part of all devices
server:
	$(call part,server,-C rtl-model/server)
rtl: server
	$(call part,device-rtl,-C rtl-model sim)
golden: server
	$(call part,device-golden,-C rtl-model/golden sim)
userspace:
	$(call part,libcsrec,-C userspace all)
# golden, or both would make the library of the model's arithmetic
cli: userspace golden
	$(call part,csrec,-C tools/csrec all)
guest-lib: cli
	$(call part,guest-lib,-C tests/userspace guest)
guest-model:
	$(call part,guest-model,-C tests/model guest)
guest-plan: cli
	$(call part,guest-plan,-C tests/plan guest)
gen:
	$(call part,csrec-gen,-C tools/gen all)
$(KERNELS):
	$(call part,module-$@,-C kernel KREL=$@)
kselftest:
	$(call part,kselftest,-C tests/kselftest all)
# the tests' own devices are made of the golden one
kselftest-sims: golden
	$(call part,kselftest-sims,-C tests/kselftest sims)
