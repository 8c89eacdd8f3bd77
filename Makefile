# SPDX-License-Identifier: GPL-3.0-or-later
# meshtf-plan: one Makefile, one build folder per flag set. `make help` lists the targets.

BUILD ?= release
B := build/$(BUILD)
PREFIX ?= /usr/local
DESTDIR ?=
CC ?= cc
AR ?= ar
PKG_CONFIG ?= pkg-config

WARNINGS := -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Werror
CFLAGS_release := -O2 -g -DNDEBUG_POISON
CFLAGS_debug := -Og -g
CFLAGS_asan := -O1 -g -fsanitize=address,undefined -fno-omit-frame-pointer -fno-sanitize-recover=undefined
LDFLAGS_asan := -fsanitize=address,undefined
ALL_CFLAGS = -std=c11 -D_GNU_SOURCE $(WARNINGS) $(CFLAGS_$(BUILD)) -I. -MMD -MP $(CFLAGS)
ALL_LDFLAGS = $(LDFLAGS_$(BUILD)) $(LDFLAGS)

pc = $(shell $(PKG_CONFIG) $(1) $(2) 2>/dev/null)
BASE_CFLAGS := $(call pc,--cflags,glib-2.0 libcjson zlib)
BASE_LIBS := $(call pc,--libs,glib-2.0 libcjson zlib) -lm
CGRAPH_CFLAGS := $(call pc,--cflags,libcgraph)
CGRAPH_LIBS := $(call pc,--libs,libcgraph)
MPI_CFLAGS := $(call pc,--cflags,ompi-c)
MPI_LIBS := $(call pc,--libs,ompi-c)
BLAS_CFLAGS := $(call pc,--cflags,openblas)
BLAS_LIBS := $(call pc,--libs,openblas)

ROOMS := layouts cost analyzer reports runtime
MAINS := analyzer/meshtf_plan.c reports/meshtf_report.c runtime/meshtf_run.c
sources = $(filter-out $(MAINS),$(wildcard $(1)/*.c $(1)/*/*.c))
objects = $(patsubst %.c,$(B)/%.o,$(1))
PROGRAMS := $(B)/meshtf-plan $(B)/meshtf-report $(B)/meshtf-run

CFLAGS_analyzer := $(BASE_CFLAGS)
CFLAGS_layouts := $(BASE_CFLAGS)
CFLAGS_cost := $(BASE_CFLAGS)
CFLAGS_reports := $(BASE_CFLAGS) $(CGRAPH_CFLAGS)
CFLAGS_runtime := $(BASE_CFLAGS) $(MPI_CFLAGS) $(BLAS_CFLAGS)
CFLAGS_tests := $(BASE_CFLAGS) $(CGRAPH_CFLAGS) $(MPI_CFLAGS) $(BLAS_CFLAGS)

.PHONY: all programs
all: programs ## build the three programs in build/release/ (BUILD=debug|release|asan)
programs: $(PROGRAMS)

room = $(firstword $(subst /, ,$(1)))
$(B)/%.o: %.c
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) $(CFLAGS_$(call room,$*)) -c -o $@ $<

define archive
$(B)/lib$(1).a: $(call objects,$(call sources,$(1)))
	@mkdir -p $$(@D)
	@rm -f $$@
	$(AR) rcs $$@ $$(filter %.o,$$^)
endef
$(foreach r,$(ROOMS),$(eval $(call archive,$(r))))

$(B)/meshtf-plan: $(B)/analyzer/meshtf_plan.o $(B)/libanalyzer.a $(B)/libcost.a $(B)/liblayouts.a
	$(CC) $(ALL_LDFLAGS) -o $@ $^ -lglpk $(BASE_LIBS)
$(B)/meshtf-report: $(B)/reports/meshtf_report.o $(B)/libreports.a $(B)/libcost.a $(B)/liblayouts.a
	$(CC) $(ALL_LDFLAGS) -o $@ $^ $(CGRAPH_LIBS) $(BASE_LIBS)
$(B)/meshtf-run: $(B)/runtime/meshtf_run.o $(B)/libruntime.a $(B)/libcost.a $(B)/liblayouts.a
	$(CC) $(ALL_LDFLAGS) -o $@ $^ $(MPI_LIBS) $(BLAS_LIBS) $(BASE_LIBS)

# Tests: each tests/ROOM/test_*.c is one cmocka program; a line `// ranks: 1 2 3` makes it an MPI test.
TEST_SOURCES := $(wildcard tests/*/test_*.c)
TESTS := $(patsubst %.c,$(B)/%,$(TEST_SOURCES))
TEST_SUPPORT := $(call objects,$(wildcard tests/support/*.c))
TEST_ARCHIVES := $(foreach r,reports runtime analyzer cost layouts,$(B)/lib$(r).a)
$(TESTS): $(B)/%: $(B)/%.o $(TEST_SUPPORT) $(TEST_ARCHIVES)
	$(CC) $(ALL_LDFLAGS) -o $@ $^ -Wl,--as-needed -lcmocka -lglpk $(CGRAPH_LIBS) $(MPI_LIBS) $(BLAS_LIBS) $(BASE_LIBS)
.PHONY: tests
tests: programs $(TESTS)

-include $(shell find $(B) -name '*.d' 2>/dev/null)
