// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/support/losses/lockstep_training.h"

#include "runtime/kernels/base/slice.h"
#include "tests/support/cmocka.h"

#include <string.h>

static MtfLockstep *train(const MtfProgram *program, const char *text, uint64_t seed, int steps,
                          double *losses) {
    g_autoptr(MtfData) data = mtf_data_open(program->graph, text, seed, NULL);
    assert_non_null(data);
    MtfLockstep *lockstep = mtf_lockstep_new(program, seed, NULL);
    lockstep->data = data;
    for (int r = 0; r < lockstep->n; r++)
        mtf_worker_initialise(lockstep->workers[r], seed);
    for (int s = 0; s < steps; s++) {
        for (int r = 0; r < lockstep->n; r++)
            assert_true(mtf_data_fill_inputs(data, lockstep->workers[r], s + 1, NULL));
        mtf_lockstep_step(lockstep, s + 1);
        losses[s] = mtf_lockstep_scalar(lockstep, program->graph->loss);
    }
    lockstep->data = NULL;
    return lockstep;
}

static bool same_variables(const MtfLockstep *a, const MtfLockstep *b) {
    const MtfGraph *graph = a->workers[0]->program->graph;
    for (int t = 0; t < (int)graph->tensors->len; t++) {
        const MtfTensor *tensor = mtf_graph_tensor(graph, t);
        for (int r = 0; tensor->source == MTF_SOURCE_VARIABLE && r < a->n; r++) {
            const MtfOperand *left = mtf_worker_tensor(a->workers[r], t);
            const MtfOperand *right = mtf_worker_tensor(b->workers[r], t);
            gsize bytes = (gsize)(mtf_slice_elements(left) * mtf_dtype_bytes(left->dtype));
            if (memcmp(left->data, right->data, bytes) != 0)
                return false;
        }
    }
    return true;
}

int mtf_train_both(const MtfProgram *a, const MtfProgram *b, const char *text, uint64_t seed,
                   int steps) {
    g_autofree double *losses = g_new0(double, 2 * (gsize)steps);
    g_autoptr(MtfLockstep) left = train(a, text, seed, steps, losses);
    g_autoptr(MtfLockstep) right = train(b, text, seed, steps, losses + steps);
    bool same_losses = memcmp(losses, losses + steps, sizeof *losses * (gsize)steps) == 0;
    return (same_losses ? MTF_SAME_LOSSES : 0) |
           (same_variables(left, right) ? MTF_SAME_VARIABLES : 0);
}
