# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# tt: linear algebra.

extra_cflags += -I$(top)/userspace/tt
model_libs += $(LIBO)/libcsrec-tt.a -llapacke -lopenblas -lz

$(LIBO)/libcsrec-tt.a: FORCE
	$(MAKE) -C $(top)/userspace/tt O=$(LIBO)

$(O)/csrec-model: $(LIBO)/libcsrec-tt.a
