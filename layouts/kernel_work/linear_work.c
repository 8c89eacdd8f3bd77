// SPDX-License-Identifier: GPL-3.0-or-later
#include "layouts/kernel_work/linear_work.h"

MtfLinearHead mtf_linear_head_of(int64_t places, int64_t keys, int64_t values) {
    return (MtfLinearHead){ .places = places,
                            .keys = keys,
                            .values = values,
                            .chunk = MIN(places, MTF_LINEAR_CHUNK),
                            .chunks = (places + MTF_LINEAR_CHUNK - 1) / MTF_LINEAR_CHUNK,
                            .heads = 1 };
}

MtfLinearHead mtf_linear_head(const MtfGraph *graph, const MtfOperation *op,
                              const MtfIteration *iteration, const int64_t *sizes) {
    const MtfShape *v = &mtf_graph_tensor(graph, op->inputs[0])->shape;
    const MtfOperationRow *row = mtf_operation_row(op->kind);
    int64_t places = 1, keys = 1, values = 1;
    double heads = 1;
    for (int i = 0; i < iteration->n; i++) {
        int dim = iteration->index[i].dim;
        int64_t *side = dim == op->attributes.dimension ? &places
                        : dim == op->attributes.keys    ? &keys
                        : dim == v->dims[v->rank - 1]   ? &values
                                                        : NULL;
        if (side != NULL)
            *side = sizes[i];
        else
            heads *= (double)sizes[i];
    }
    MtfLinearHead head = mtf_linear_head_of(places, keys, values);
    head.heads = heads;
    head.corrects = !row->scans && (op->n_inputs > row->min_inputs || op->n_outputs > 4);
    head.by_element = row->scans;
    head.back = row->products == MTF_PRODUCTS_LINEAR_ATTENTION_GRAD;
    return head;
}

int64_t mtf_linear_pieces(const MtfLinearHead *h, int64_t begins[MTF_LINEAR_PIECES]) {
    int64_t c = h->chunk, state = h->keys * h->values, next = 0;
    int64_t all = h->places * h->keys, own = h->by_element ? state : 0;
    int64_t pairs = h->by_element ? 0 : c * c;
    const int64_t sizes[MTF_LINEAR_PIECES] = {
        [MTF_LINEAR_STATE] = state,
        [MTF_LINEAR_Q] = c * h->keys,
        [MTF_LINEAR_K] = c * h->keys,
        [MTF_LINEAR_V] = c * h->values,
        [MTF_LINEAR_O] = c * h->values,
        [MTF_LINEAR_FADED] = c * h->keys,
        [MTF_LINEAR_DECAY] = pairs,
        [MTF_LINEAR_SCORES] = pairs,
        [MTF_LINEAR_LIKE] = pairs,
        [MTF_LINEAR_RATE] = own,
        [MTF_LINEAR_STEP] = h->by_element ? c * h->values : 0,
        [MTF_LINEAR_DSTEP] = h->by_element ? c * h->values : 0,
        [MTF_LINEAR_DRATE] = own,
        [MTF_LINEAR_KEPT] = own,
        [MTF_LINEAR_LEFT] = own,
        [MTF_LINEAR_PLACES] = c * own,
        [MTF_LINEAR_STATES] = h->chunks * state,
        [MTF_LINEAR_DSTATE] = state,
        [MTF_LINEAR_DO] = c * h->values,
        [MTF_LINEAR_DU] = c * h->values,
        [MTF_LINEAR_ERROR] = c * h->values,
        [MTF_LINEAR_PAIRS] = pairs,
        [MTF_LINEAR_ROWS] = c * h->keys,
        [MTF_LINEAR_DQ] = all,
        [MTF_LINEAR_DK] = all,
    };
    for (int i = 0; i < (h->back ? MTF_LINEAR_PIECES : MTF_LINEAR_STATES); i++) {
        begins[i] = next;
        next += sizes[i];
    }
    return next;
}

#define STATE_BYTES 4

/* Multiply-adds of a chunk that are c c keys, c c values and c keys values. */
typedef struct {
    double keys, values, states;
} Counts;

MtfProductWork mtf_linear_product_work(const MtfLinearHead *h, int64_t element_bytes) {
    static const Counts counts[2][2] = { { { 1, 1, 2 }, { 2, 1.5, 3 } },
                                         { { 3, 2, 5 }, { 7, 4, 9 } } };
    Counts n = counts[h->back][h->corrects];
    double c = (double)h->chunk, keys = (double)h->keys, values = (double)h->values;
    double sums = c * (n.keys * c * keys + n.values * c * values + n.states * keys * values);
    double chunks = h->heads * (double)h->places / c, product = c * keys * values;
    MtfProductWork work = { .form = MTF_PRODUCT_NN, .m = c, .n = values, .k = keys };
    if (h->by_element)
        return (MtfProductWork){ .swept_bytes = (h->back ? 3 : 1) * h->heads * (double)h->places *
                                                keys * values * STATE_BYTES };
    work.calls = product > 0 ? chunks * sums / product : 0;
    if (h->chunks > 1)
        work.swept_bytes = (h->back ? 4 : 2) * chunks * keys * values * (double)element_bytes;
    return work;
}
