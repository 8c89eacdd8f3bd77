// SPDX-License-Identifier: GPL-3.0-or-later
/* The problem of free layouts of a training graph, and everything that it is made from. */
#ifndef MTF_TESTS_FREE_SETUP_H
#define MTF_TESTS_FREE_SETUP_H

#include "analyzer/free/free_problem.h"

typedef struct {
    MtfGraph *graph;
    MtfMesh mesh;
    MtfMachine *machine;
    MtfPricer pricer;
    MtfFreeProblem *problem; /* without a limit of memory */
} MtfFreeSetup;

/* Takes the training graph; the machine is "cpu-cluster". */
void mtf_free_setup_init(MtfFreeSetup *setup, MtfGraph *graph, const char *mesh);

/* The same on a machine of the library; software NULL: the program as it stands. */
void mtf_free_setup_init_on(MtfFreeSetup *setup, MtfGraph *graph, const char *mesh,
                            const char *machine, const char *software);

void mtf_free_setup_clear(MtfFreeSetup *setup);

#endif
