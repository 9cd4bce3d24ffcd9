# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Everything is built and run inside the lab, a Debian root that tools/lab/setup makes
# once below build/ (or at CSREC_LAB). See README.md.

MAKEFLAGS += --no-print-directory
JOBS ?= $(shell nproc)

# Inside the lab already? Then without the wrapper.
ifeq ($(CSREC_IN_LAB),)
LAB := tools/lab/run
else
LAB :=
endif

INPUT ?= tools/data/sample.tsv
LIMIT ?= 2000
KERNEL ?= p2p
# Recipes take these from the environment: a name may have quotes in it.
export INPUT LIMIT KERNEL T

.PHONY: help bench-plan bench-profile bench-rtl demo demo-args check check-long check-debug check-% bench-tt lab shell vm-test build install deb clean

help:
	@echo 'make demo [INPUT=day.tsv] [LIMIT=n] [KERNEL=p2p|nop2p]'
	@echo '                     score a file through driver and simulated device'
	@echo 'make check           all tests; make check-SUITE for one (see tests/run)'
	@echo 'make bench-tt        the tensor-train operator against numpy'
	@echo 'make check-long      the RTL tests with a million random commands and more'
	@echo 'make check-proofs    proofs of the region check and of the queues'
	@echo 'make check-debug     the driver tests on a kernel with KASAN, lockdep, kmemleak and more'
	@echo 'make check-hostile   hostile processes against a victim, a million commands'
	@echo 'make bench-plan      the planner: times, gaps, predicted against simulated cycles'
	@echo 'make bench-rtl       the simulated device: throughput of its cores against their bounds'
	@echo 'make shell           a guest with the driver loaded'
	@echo 'make vm-test T=name  one guest test of tests/guest/list; without T all'
	@echo 'make bench-profile   speed of csrec profile against numpy'
	@echo 'make build           everything, without running it'
	@echo 'make install [PREFIX=/usr/local] [DESTDIR=]'
	@echo '                     csrec, libcsrec, headers, pkg-config file and man page'
	@echo 'make deb             Debian packages, driver for DKMS included, in build/deb'
	@echo 'make lab             the lab only'
	@echo 'make clean           build results, but not the lab'

lab:
	@tools/lab/setup

build: lab
	@find build -name '*.o' -size 0 -delete 2>/dev/null || :	# of a compiler that was killed
	@$(LAB) make -j$(JOBS) -f tools/lab/build.mk

# A user's file may lie anywhere: as much of it as the limit can need goes below build/, by
# its name, which messages have.
demo-args: kernel-arg
	@[ -r "$$INPUT" ] && [ ! -d "$$INPUT" ] || { echo "demo: cannot read INPUT '$$INPUT'" >&2; exit 2; }
	@[ ! -c "$$INPUT" ] || { echo "demo: INPUT '$$INPUT' is a device: it may never end" >&2; exit 2; }
	@case $$LIMIT in '' | *[!0-9]* | 0* | ?????????????*) \
		echo "demo: LIMIT must be a number above 0, of 12 digits at most, not '$$LIMIT'" >&2; exit 2 ;; esac

.PHONY: kernel-arg test-arg
kernel-arg:
	@case $$KERNEL in p2p | nop2p) ;; *) \
		echo "make: KERNEL must be p2p or nop2p, not '$$KERNEL'" >&2; exit 2 ;; esac

test-arg:
	@[ -z "$$T" ] || awk '$$1 !~ /^#/ && $$1 == ENVIRON["T"] { found = 1 } END { exit !found }' \
		tests/guest/list || \
		{ echo "make: no guest test '$$T'; see tests/guest/list" >&2; exit 2; }

demo: demo-args build
	@mkdir -p build/demo/input
	@head -n $$((LIMIT * 2 + 1000)) -- "$$INPUT" >build/demo/part
	@mv build/demo/part "build/demo/input/$${INPUT##*/}"
	@$(LAB) tests/guest/demo.sh "$$KERNEL" "build/demo/input/$${INPUT##*/}" "$$LIMIT"

check: build
	@$(LAB) tests/run

# The same tests of the RTL, with much more of what is random.
check-long: build
	@$(LAB) make -s -C tests/rtl check-long

# Solver times, gaps, and predicted against simulated cycles: build/reports/plan.json.
bench-plan: build
	@$(LAB) make -s -C tests/plan bench

# The kernel for it is made first, to be seen at work.
check-debug: build
	@$(LAB) tools/lab/debug-kernel
	@$(LAB) tests/run debug

# These build what they test by themselves.
ALONE := scripts layout kernel_style rtl_lint unit golden rtl proofs server userspace outer
$(ALONE:%=check-%): check-%: lab
	@$(LAB) tests/run $*

check-%: build
	@$(LAB) tests/run $*

bench-profile: lab
	@$(LAB) make -C tests/stats bench

bench-rtl: lab
	@$(LAB) make -s -C tests/rtl bench

bench-tt: lab
	@$(LAB) make -C tests/tt bench

shell: kernel-arg build
	@$(LAB) tools/lab/vm --kernel '$(KERNEL)' --shell -- tests/guest/shell.sh

vm-test: kernel-arg test-arg build
	@$(LAB) tests/guest/host.sh '$(KERNEL)' '$(T)'

# Made in the lab, which sees nothing of this machine, and copied from there.
PREFIX ?= /usr/local
DESTDIR ?=
install: build
	@rm -rf build/install
	@$(LAB) make -C userspace install O=/csrec/build/install/lib \
		DESTDIR=/csrec/build/install/root 'PREFIX=$(PREFIX)' >build/log/install.log
	@$(LAB) make -C tools/csrec install DESTDIR=/csrec/build/install/root \
		'PREFIX=$(PREFIX)' >>build/log/install.log
	@mkdir -p '$(DESTDIR)/'
	@cp -dR build/install/root/. '$(DESTDIR)/'
ifeq ($(DESTDIR),)
	@'$(PREFIX)/bin/csrec' --version || echo "install: warning: the programs, which are made for" \
		"Debian 13's libraries, do not run here (after a first installation: ldconfig)" >&2
	@echo "install: for users other than root, see tools/packaging/60-csrec.rules"
endif

deb: build
	@$(LAB) tools/packaging/deb.sh

clean:
	@for d in build/*; do case $$d in build/lab) ;; *) rm -rf "$$d" ;; esac; done
