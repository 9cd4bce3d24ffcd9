# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# infer and install-cold: the model library and the golden compute library.

GOLDENO ?= $(top)/build/golden

extra_cflags += -I$(top)/userspace/model
extra_libs += $(LIBO)/libcsrec-model.a $(GOLDENO)/libcsrec-golden.a -ljansson -lm

$(LIBO)/libcsrec-model.a: FORCE
	$(MAKE) -C $(top)/userspace/model O=$(LIBO)

$(GOLDENO)/libcsrec-golden.a: FORCE
	$(MAKE) -C $(top)/rtl-model/golden O=$(GOLDENO) compute

$(O)/csrec $(O)/csrec-model: $(LIBO)/libcsrec-model.a $(GOLDENO)/libcsrec-golden.a
