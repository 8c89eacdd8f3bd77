// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/support/cases/microbatch_training.h"

#include "analyzer/training/batch_dimension.h"
#include "analyzer/training/training_graph.h"
#include "layouts/execution/executed_graph.h"

bool mtf_test_divide(MtfGraph *training, int microbatches, GError **error) {
    MtfDivision division = { .microbatches = microbatches };
    if (microbatches > 1)
        division.batch = mtf_batch_dimension(training, NULL, error);
    return division.batch >= 0 && mtf_graph_execute(training, &division, &(MtfKept){ 0 }, 1, error);
}

MtfGraph *mtf_test_microbatches(const MtfGraph *forward, int microbatches, GError **error) {
    g_autoptr(MtfGraph) training = mtf_training_graph(forward, error);
    if (training == NULL || !mtf_test_divide(training, microbatches, error))
        return NULL;
    return g_steal_pointer(&training);
}
