# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# plan: the planner, HiGHS, and the calibration as text.

extra_cflags += -I$(top)/userspace/plan -I$(O)
model_libs += $(LIBO)/libcsrec-plan.a -lhighs

$(LIBO)/libcsrec-plan.a: FORCE
	$(MAKE) -C $(top)/userspace/plan O=$(LIBO) $(if $(SAN),SAN=1)

$(O)/calibration.inc: $(top)/tools/plan/calibration.json
	@mkdir -p $(@D)
	od -An -v -t u1 $< | sed 's/[0-9]\{1,\}/&,/g' > $@

$(obj)/models/cmd_plan.o: $(O)/calibration.inc
$(O)/csrec-model: $(LIBO)/libcsrec-plan.a
