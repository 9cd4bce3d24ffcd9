# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# convert: readers of other programs' model files.

extra_cflags += -I$(top)/userspace/convert
model_libs += $(LIBO)/libcsrec-convert.a -lz

$(LIBO)/libcsrec-convert.a: FORCE
	$(MAKE) -C $(top)/userspace/convert O=$(LIBO)

$(O)/csrec-model: $(LIBO)/libcsrec-convert.a
