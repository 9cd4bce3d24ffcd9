# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Proofs by yosys-smtbmc and z3. Included by tests/rtl/Makefile, and usable alone:
# make -f tests/rtl/formal/rules.mk formal-check
#
#   formal-check  proves all (TAP), and says so in build/reports/rtl.json

formal-src := $(patsubst %/,%,$(dir $(abspath $(lastword $(MAKEFILE_LIST)))))
formal-top := $(abspath $(formal-src)/../../..)
formal-out := $(if $(O),$(abspath $(O)),$(formal-top)/build/tests-rtl)/formal
formal-rtl := $(formal-top)/rtl-model/rtl
formal-pkg := $(formal-out)/pkg/csrec_pkg.sv

.PHONY: formal-check
.DELETE_ON_ERROR:

formal-check: $(formal-pkg)
	$(formal-src)/prove.sh $(formal-out)

$(formal-pkg): $(wildcard $(formal-top)/uapi/linux/csrec_hw.h $(formal-top)/rtl-model/gen/*)
	$(MAKE) -C $(formal-top)/rtl-model pkg O=$(@D)
