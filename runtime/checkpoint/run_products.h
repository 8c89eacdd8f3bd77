// SPDX-License-Identifier: GPL-3.0-or-later
/* Which way multiplies in a run (runtime/kernels/products/product_choice.h): all ranks do as rank 0
 * decides, and a run that goes on from a checkpoint does as the one that wrote it did, where rank 0
 * has the same kernels again. */
#ifndef MTF_RUN_PRODUCTS_H
#define MTF_RUN_PRODUCTS_H

#include "runtime/worker/worker.h"

#include <mpi.h>

typedef struct {
    MPI_Comm control;
    const MtfProgram *program;
    const MtfArena *arena;
    const char *folder; /* of checkpoints to go on from; NULL: a new run */
    bool trial;         /* rank 0 tries the ways of its own products, while the others wait */
} MtfRunProducts;

/* Collective; before any worker is made. Fails on all ranks or on none. */
bool mtf_run_products_choose(const MtfRunProducts *run, GError **error);

/* Collective: one line on what was chosen and how many products go each way, and a warning where
 * ranks have other kernels than rank 0; free with g_free. */
char *mtf_run_products_format(MPI_Comm control);

#endif
