// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/solver/reduce/reductions.h"

/* Cheap and powerful steps first; dominance, the costliest, works on what they leave. */
static bool (*const steps[])(MtfCore *) = {
    mtf_reduce_rows,       mtf_reduce_consistency, mtf_reduce_contraction,
    mtf_reduce_separation, mtf_reduce_elimination, mtf_reduce_dominance,
};

void mtf_reduce_all(MtfCore *core, const MtfSearchControl *control) {
    guint quiet = 0;
    for (guint i = 0; quiet < G_N_ELEMENTS(steps); i = (i + 1) % G_N_ELEMENTS(steps)) {
        if (core->infeasible || mtf_search_is_over(control))
            return;
        quiet = steps[i](core) ? 0 : quiet + 1;
    }
}
