# SPDX-License-Identifier: GPL-3.0-or-later
# meshtf-plan: one Makefile, one build folder per flag set. `make help` lists the targets.

BUILD ?= release
B := build/$(BUILD)
PREFIX ?= /usr/local
DESTDIR ?=
AR ?= ar
PKG_CONFIG ?= pkg-config
ifeq ($(origin CC),default)
CC := gcc
endif

# The default runs on any processor of the family; ARCH=native is for the machine at hand.
ARCH ?=
ONLY ?=
V ?=

WARNINGS := -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Werror
CFLAGS_release := -O2
CFLAGS_debug := -Og -g -DMTF_DEBUG
SANITIZE := -fsanitize=address,undefined,float-cast-overflow -fno-sanitize-recover=all
CFLAGS_asan := -O1 -g -DMTF_DEBUG -fno-omit-frame-pointer $(SANITIZE)
LDFLAGS_asan := $(SANITIZE)
$(if $(CFLAGS_$(BUILD)),,$(error BUILD=$(BUILD) is not one of release, debug, asan))
ALL_CFLAGS = -std=c11 -D_GNU_SOURCE $(WARNINGS) $(CFLAGS_$(BUILD)) $(ARCH:%=-march=%) -I. -MMD -MP $(CFLAGS)
ALL_LDFLAGS = $(LDFLAGS_$(BUILD)) $(LDFLAGS)

# Kernels are loops over plain arrays, worth a vector unit. errno and floating-point traps are of no
# use to them, and a product and its sum may be rounded once where the processor can; the order of
# sums, infinities and NaN matter, so nothing of -ffast-math beyond these: a kernel that wants a
# vectorised sum keeps its lanes itself, and every build adds in that order. What has "kernel" in its
# path is one: all of runtime/kernels, whatever a file there is called.
KERNEL_CFLAGS_release := -O3 -fno-math-errno -fno-trapping-math -ffp-contract=fast
# clang takes a loop that it does not turn into vectors, as one over calls of the C library, for an error.
KERNEL_CFLAGS = $(KERNEL_CFLAGS_$(BUILD))$(if $(findstring clang,$(CC)), -Wno-pass-failed)

pc = $(shell $(PKG_CONFIG) $(1) $(2) 2>/dev/null)
BASE_CFLAGS := $(call pc,--cflags,glib-2.0 libcjson zlib)
BASE_LIBS := $(call pc,--libs,glib-2.0 libcjson zlib) -lm
CGRAPH_CFLAGS := $(call pc,--cflags,libcgraph)
CGRAPH_LIBS := $(call pc,--libs,libcgraph)
MPI_CFLAGS := $(call pc,--cflags,ompi-c)
MPI_LIBS := $(call pc,--libs,ompi-c)
BLAS_CFLAGS := $(call pc,--cflags,openblas)
BLAS_LIBS := $(call pc,--libs,openblas) -ldnnl
PNG_CFLAGS := $(call pc,--cflags,libpng)
PNG_LIBS := $(call pc,--libs,libpng)
HTTP_CFLAGS := $(call pc,--cflags,libmicrohttpd)
HTTP_LIBS := $(call pc,--libs,libmicrohttpd)

ROOMS := layouts cost analyzer reports runtime
MAINS := analyzer/commands/meshtf_plan.c reports/page/meshtf_report.c runtime/session/meshtf_run.c
PROGRAMS := $(B)/meshtf-plan $(B)/meshtf-report $(B)/meshtf-run
# Folders are divided into rooms, a few of them again.
levels = $(1)/*/$(2) $(1)/*/*/$(2) $(1)/*/*/*/$(2)
sources = $(filter-out $(MAINS),$(wildcard $(call levels,$(1),*.c)))
objects = $(patsubst %.c,$(B)/%.o,$(1))

CFLAGS_layouts := $(BASE_CFLAGS)
CFLAGS_cost := $(BASE_CFLAGS)
CFLAGS_analyzer := $(BASE_CFLAGS)
CFLAGS_reports := $(BASE_CFLAGS) $(CGRAPH_CFLAGS)
CFLAGS_runtime := $(BASE_CFLAGS) $(MPI_CFLAGS) $(BLAS_CFLAGS) $(PNG_CFLAGS) $(HTTP_CFLAGS)
CFLAGS_tests := $(BASE_CFLAGS) $(CGRAPH_CFLAGS) $(MPI_CFLAGS) $(BLAS_CFLAGS) $(PNG_CFLAGS)

# How test programs run MPI: as root if need be, more ranks than cores, no pinning (two runs may
# share the machine), ranks that wait give way, and plain shared memory, since containers often
# forbid one process to read another; Open MPI looks for no network, which takes a launch a fifth of a
# second, hwloc for no devices, which takes four ranks 0.07 seconds of processors, nor for its plugins, which
# load what draws on screens and counts in graphics cards, 0.03, and Open MPI for no
# collectives but those it would take here, 0.03. One BLAS thread a rank. Open MPI's own leaks are listed in
# tests/lsan.supp by library, which needs the slow, exact unwinder. A warning of GLib is our bug.
export OMPI_ALLOW_RUN_AS_ROOT := 1
export OMPI_ALLOW_RUN_AS_ROOT_CONFIRM := 1
export OMPI_MCA_rmaps_base_oversubscribe := 1
export OMPI_MCA_hwloc_base_binding_policy := none
export OMPI_MCA_mpi_yield_when_idle := 1
export OMPI_MCA_btl_vader_single_copy_mechanism := none
export OMPI_MCA_pml := ob1
export OMPI_MCA_btl := self,vader
export OMPI_MCA_coll := basic,libnbc,self,tuned
export PMIX_MCA_gds := hash
export HWLOC_COMPONENTS := -linuxio,-pci
export HWLOC_PLUGINS_PATH := /nonexistent
export OPENBLAS_NUM_THREADS := 1
export OMP_NUM_THREADS := 1
export ASAN_OPTIONS := fast_unwind_on_malloc=0:detect_leaks=1
export LSAN_OPTIONS := suppressions=$(CURDIR)/tests/lsan.supp:print_suppressions=0
export G_DEBUG := fatal-warnings
export UBSAN_OPTIONS := print_stacktrace=1

Q := $(if $(V),,@)
SUBMAKE = $(MAKE) --no-print-directory
# A recursive build uses all cores unless the user gave -j.
PARALLEL = $(if $(findstring jobserver,$(MAKEFLAGS)),,-j$(shell nproc 2>/dev/null || echo 2))

.PHONY: all programs
all: programs ## build the three programs in build/release/ (BUILD=debug|release|asan, ARCH=native, V=1)
programs: $(PROGRAMS)

# A stamp is a file that changes only when its text does; what depends on it is rebuilt then.
.PHONY: FORCE
define stamp
$(1): export MTF_STAMP = $(2)
$(1): FORCE
	@mkdir -p $$(@D)
	@printf '%s\n' "$$$$MTF_STAMP" | cmp -s - $$@ || printf '%s\n' "$$$$MTF_STAMP" >$$@
endef
FLAGS = $(CC) $(ALL_CFLAGS) $(KERNEL_CFLAGS) $(TEST_CFLAGS_$(BUILD)) $(CFLAGS_tests) $(ALL_LDFLAGS) $(BASE_LIBS)
$(eval $(call stamp,$(B)/flags,$$(if $$(BASE_CFLAGS),$$(FLAGS),$$(error libraries are missing: run `make deps` first))))
$(foreach r,$(ROOMS),$(eval $(call stamp,$(B)/$(r).sources,$(call sources,$(r)))))

# To read GLib's headers is a quarter of compiling a file, so gcc reads them once, into prelude.h.gch, which kernels,
# with options of their own, pass over. ccache keeps nothing that was compiled so: it goes without.
PRELUDE := $(if $(findstring gcc,$(CC)),$(if $(findstring ccache,$(realpath $(shell command -v $(CC)))),,$(B)/prelude.h))
$(eval $(call stamp,$(B)/prelude.h,\#include <glib.h>))
$(B)/prelude.h.gch: $(B)/prelude.h $(B)/flags
	$(Q)$(CC) $(ALL_CFLAGS) $(BASE_CFLAGS) -MD -x c-header -o $@ $<

# Tests are run once or a few times: less is lost in them than a third of their compiling. What they share counts
# much in plain loops.
TEST_CFLAGS_release := -O1

define compile
$(B)/$(1)/%.o: $(1)/%.c $(B)/flags $(PRELUDE:%=%.gch)
	@mkdir -p $$(@D)
	@$(if $(V),,echo "  CC $$<")
	$(Q)$$(CC) $$(ALL_CFLAGS) $$(CFLAGS_$(1)) $$(if $$(findstring kernel,$$<),$$(KERNEL_CFLAGS)) $$(if $$(filter-out tests/support/%,$$(filter tests/%,$$<)),$$(TEST_CFLAGS_$(BUILD))) $(PRELUDE:%=-include %) -c -o $$@ $$<
endef
$(foreach r,$(ROOMS) tests,$(eval $(call compile,$(r))))

# Style and script of the pages are files of their own; the program holds their lines as strings.
$(B)/%.inc: %
	@mkdir -p $(@D)
	$(Q)sed 's/[\\"]/\\&/g; s/.*/"&\\n",/' $< >$@
$(B)/reports/page/page_head.o: $(B)/reports/page/page.css.inc $(B)/reports/page/page.js.inc
$(B)/reports/page/page_head.o: private ALL_CFLAGS += -I$(B)

define archive
$(B)/lib$(1).a: $(call objects,$(call sources,$(1))) $(B)/$(1).sources
	@rm -f $$@
	$(Q)$$(AR) rcs $$@ $$(filter %.o,$$^)
endef
$(foreach r,$(ROOMS),$(eval $(call archive,$(r))))

define LINK
@$(if $(V),:,echo "  LD $@")
$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $(filter %.o,$^) $(filter %.a,$^)
endef
archives = $(foreach r,$(1),$(B)/lib$(r).a)
$(B)/meshtf-plan: $(B)/analyzer/commands/meshtf_plan.o $(call archives,analyzer cost layouts)
	$(LINK) -lglpk $(BASE_LIBS)
$(B)/meshtf-report: $(B)/reports/page/meshtf_report.o $(call archives,reports cost layouts)
	$(LINK) $(CGRAPH_LIBS) $(BASE_LIBS)
$(B)/meshtf-run: $(B)/runtime/session/meshtf_run.o $(call archives,runtime cost layouts)
	$(LINK) $(MPI_LIBS) $(BLAS_LIBS) $(PNG_LIBS) $(HTTP_LIBS) $(BASE_LIBS)

# Tests: test_*.c in the rooms of tests/ are cmocka programs, test_*.sh command-line tests (test_*.sh, and
# all of tests/e2e), tests/fuzz/fuzz_*.c fuzz targets; long_* only run in test-long. See tests/README.md.
SCRIPTS := $(wildcard $(call levels,tests,test_*.sh) tests/e2e/*.sh)
DEFAULT_TESTS := $(wildcard $(call levels,tests,test_*.c) tests/fuzz/fuzz_*.c) $(filter-out tests/e2e/long_%,$(sort $(SCRIPTS)))
LONG_TESTS := $(wildcard $(call levels,tests,long_*.c) $(call levels,tests,long_*.sh))
TESTS := $(patsubst %.c,$(B)/%,$(filter %.c,$(DEFAULT_TESTS) $(LONG_TESTS)))
TESTS += $(B)/tests/fuzz/planted $(B)/tests/e2e/runs_together $(B)/tests/e2e/drawn_plans $(B)/tests/e2e/drawn_models $(B)/tests/e2e/drawn_stages
FUZZERS := $(filter $(B)/tests/fuzz/%,$(TESTS))
# An archive, so that a test gets only the helpers it names: the MPI witness replaces MPI's functions.
TEST_SUPPORT := $(wildcard tests/support/*.c tests/support/*/*.c)
$(eval $(call stamp,$(B)/support.sources,$(TEST_SUPPORT)))
$(B)/libsupport.a: $(call objects,$(TEST_SUPPORT)) $(B)/support.sources
	@rm -f $@
	$(Q)$(AR) rcs $@ $(filter %.o,$^)
# There are some 270 test programs, and gold, where it is, takes half of the time to link one.
TEST_LDFLAGS_release := $(if $(shell command -v ld.gold),-fuse-ld=gold)
BENCHES := $(patsubst %.c,$(B)/%,$(wildcard tests/bench/bench_*.c))
$(TESTS) $(BENCHES): $(B)/%: $(B)/%.o $(B)/libsupport.a $(call archives,reports runtime analyzer cost layouts)
	$(LINK) $(TEST_LDFLAGS_$(BUILD)) -Wl,--as-needed -lcmocka -lglpk $(CGRAPH_LIBS) $(MPI_LIBS) $(BLAS_LIBS) $(PNG_LIBS) $(HTTP_LIBS) $(BASE_LIBS)
$(FUZZERS): $(B)/tests/fuzz/driver.o
# Sanitizers want to be loaded first: their ranks give way as Open MPI has it.
WAITS := $(if $(filter asan,$(BUILD)),,$(B)/tests/waits.so)
$(B)/tests/waits.so: tests/waits.c
	@mkdir -p $(@D)
	$(Q)$(CC) -O2 -D_GNU_SOURCE -shared -fPIC -o $@ $<
.PHONY: tests fuzzers benches
tests: programs $(TESTS) $(WAITS)
fuzzers: $(FUZZERS)
benches: $(BENCHES)

only = $(if $(ONLY),$(foreach t,$(1),$(if $(strip $(foreach o,$(subst |, ,$(ONLY)),$(findstring $(o),$(t)))),$(t))),$(1))
.PHONY: test test-long bench lint demo deps install uninstall clean help
test: ## build and run every default test (ONLY='text|other': those with one of them in their name)
	@$(SUBMAKE) deps
	@$(SUBMAKE) $(PARALLEL) tests benches
	@sh tests/run_tests.sh $(B) $(call only,$(DEFAULT_TESTS))

test-long: ## the default tests with all random cases, then those that take minutes to hours
	@$(SUBMAKE) deps
	@$(SUBMAKE) $(PARALLEL) tests benches
	@MTF_LONG=1 sh tests/run_tests.sh $(B) $(call only,$(DEFAULT_TESTS) $(LONG_TESTS))

bench: ## rebuild the tables of tests/bench/README.md (tests/bench/bench_*.sh)
	@$(SUBMAKE) deps
	@$(SUBMAKE) $(PARALLEL) programs benches
	@PATH="$(CURDIR)/$(B):$$PATH"; export PATH; \
	: "$${OPENBLAS_CORETYPE:=$$(sh tests/openblas_core.sh)}"; export OPENBLAS_CORETYPE; \
	for script in $(call only,$(wildcard tests/bench/bench_*.sh)); do \
		sh $$script || exit 1; done

lint: ## format, headers alone, includes that are not needed, layers, cppcheck, limits of functions, shell scripts
	@$(SUBMAKE) deps
	@sh tests/lint/lint.sh

demo: ## train a small language model on this source text with the layout the search chose
	@$(SUBMAKE) deps
	@$(SUBMAKE) $(PARALLEL) programs
	@PATH="$(CURDIR)/$(B):$$PATH" sh tests/demo.sh

deps: ## install what is missing, with apt, and say what
	@sh .ci/deps.sh

LIBRARY_FILES := $(wildcard layouts/library/* layouts/library/*/*)
share := $(DESTDIR)$(PREFIX)/share/meshtf-plan
manuals := $(DESTDIR)$(PREFIX)/share/man/man1
bash_completions := $(DESTDIR)$(PREFIX)/share/bash-completion/completions
zsh_completions := $(DESTDIR)$(PREFIX)/share/zsh/site-functions
install: programs ## copy programs, library, manuals and completion under PREFIX (/usr/local) and DESTDIR
	install -d $(DESTDIR)$(PREFIX)/bin $(share)/library
	install -m 755 $(PROGRAMS) $(DESTDIR)$(PREFIX)/bin
	@for file in $(patsubst layouts/library/%,%,$(LIBRARY_FILES)); do \
		[ -d "layouts/library/$$file" ] || install -D -m 644 "layouts/library/$$file" "$(share)/library/$$file" || exit 1; done
	install -d $(manuals) $(bash_completions) $(zsh_completions)
	@for name in $(notdir $(PROGRAMS)); do \
		$(B)/$$name --manual >"$(manuals)/$$name.1" && \
		$(B)/$$name --completion=bash >"$(bash_completions)/$$name" && \
		$(B)/$$name --completion=zsh >"$(zsh_completions)/_$$name" || exit 1; done

uninstall: ## remove what install copied
	rm -f $(foreach name,$(notdir $(PROGRAMS)),$(manuals)/$(name).1 $(bash_completions)/$(name) $(zsh_completions)/_$(name))
	rm -f $(addprefix $(DESTDIR)$(PREFIX)/bin/,$(notdir $(PROGRAMS)))
	rm -rf $(share)

clean: ## remove every build
	rm -rf build

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' Makefile

-include $(shell find $(B) -name '*.d' 2>/dev/null)
