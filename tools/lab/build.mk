# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# What `make build` does inside the lab: every part, each by its own Makefile, and the
# module for each kernel of the lab.

KERNELS := $(patsubst /boot/config-%,%,$(wildcard /boot/config-*))

.PHONY: all rtl userspace cli gen kselftest $(KERNELS)
all: rtl cli gen kselftest $(KERNELS)

rtl:
	@echo '  device server'
	@$(MAKE) -C rtl-model sim
userspace:
	@echo '  libcsrec'
	@$(MAKE) -C userspace all
cli: userspace
	@echo '  csrec'
	@$(MAKE) -C tools/csrec all
gen:
	@$(MAKE) -C tools/gen all
$(KERNELS):
	@echo '  csrec.ko for $@'
	@$(MAKE) -C kernel KREL=$@
kselftest:
	@echo '  kselftests'
	@$(MAKE) -C tests/kselftest all
