// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/free/tensor_lives.h"

#include "layouts/graph/operation_table.h"

static int reader_count(const MtfTensorLives *lives, int tensor) {
    return lives->consumers->starts[tensor + 1] - lives->consumers->starts[tensor];
}

/* The last operation that reads a result, or -1; what is kept to the end of the step has none. */
static int last_reader(const MtfTensorLives *lives, int tensor) {
    bool lasts =
        mtf_graph_tensor(lives->graph, tensor)->producer < 0 || tensor == lives->graph->loss;
    return lasts || reader_count(lives, tensor) == 0
               ? -1
               : lives->consumers->operations[lives->consumers->starts[tensor + 1] - 1];
}

/* The loop whose iterations all read the tensor as it is before them, where its last reader runs; or 0. */
static int reading_loop(const MtfTensorLives *lives, int tensor) {
    int reader = last_reader(lives, tensor);
    const MtfOperation *op = reader >= 0 ? mtf_graph_operation(lives->graph, reader) : NULL;
    bool reads = op != NULL && mtf_operation_row(op->kind)->loop != MTF_LOOP_HANDS_ON &&
                 !mtf_operation_reads_anew(lives->graph, op, tensor);
    return reads ? op->loop : 0;
}

int64_t mtf_tensor_life_end(const MtfTensorLives *lives, int tensor, int *start) {
    int producer = mtf_graph_tensor(lives->graph, tensor)->producer;
    int reader = last_reader(lives, tensor), loop = reading_loop(lives, tensor);
    bool is_read = reader_count(lives, tensor) > 0 || producer < 0 || tensor == lives->graph->loss;
    int end = reader >= 0 ? reader : is_read ? (int)lives->graph->operations->len : producer + 1;
    mtf_loop_prolong(lives->graph, lives->consumers, lives->loops, tensor, start, &end);
    return loop > 0 ? lives->loops->begins[loop] : end;
}

bool mtf_tensor_fetched_last(const MtfTensorLives *lives, int tensor, int operation, int loop) {
    int start = operation;
    return last_reader(lives, tensor) == operation && reading_loop(lives, tensor) == loop &&
           (loop > 0 || mtf_tensor_life_end(lives, tensor, &start) == operation);
}
