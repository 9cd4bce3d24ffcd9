# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# profile and trace: traces and statistics.

extra_cflags += -I$(top)/userspace/stats
model_libs += $(LIBO)/libcsrec-stats.a $(LIBO)/libcsrec-convert.a -lz

$(LIBO)/libcsrec-stats.a: FORCE
	$(MAKE) -C $(top)/userspace/stats O=$(LIBO)

$(O)/csrec-model: $(LIBO)/libcsrec-stats.a
