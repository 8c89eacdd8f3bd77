// SPDX-License-Identifier: GPL-3.0-or-later
#include "layouts/exchange/exchange_algorithm.h"

#include "layouts/exchange/message_list.h"

#include <string.h>

const MtfExchangeAlgorithmRow mtf_direct_exchange = { "direct", NULL, NULL };
const MtfExchangeAlgorithmRow mtf_mpi_exchange = { "mpi", NULL, NULL };

#define ROW_OF(NAME, row) [MTF_EXCHANGE_##NAME] = &mtf_##row##_exchange,
static const MtfExchangeAlgorithmRow *const rows[] = { MTF_EXCHANGE_LIST(ROW_OF) };

const char *mtf_exchange_algorithm_name(MtfExchangeAlgorithm algorithm) {
    return rows[algorithm]->name;
}

int mtf_exchange_algorithm_find(const char *name) {
    for (int i = 0; i < MTF_EXCHANGE_ALGORITHMS; i++)
        if (strcmp(rows[i]->name, name) == 0)
            return i;
    return -1;
}

bool mtf_exchange_applies(MtfExchangeAlgorithm algorithm, const MtfExchangeShape *shape) {
    const MtfReshardRow *row = mtf_reshard_row(shape->kind);
    bool has_blocks = row->reduces || row->gathers;
    return has_blocks && shape->n_members > 1 && rows[algorithm]->add != NULL &&
           rows[algorithm]->applies(shape);
}

static void add_message(MtfMessageList *list, const MtfExchangeMessage *message) {
    if (message->count > 0)
        g_array_append_val(list->messages, *message);
}

void mtf_message_send(MtfMessageList *list, int peer, MtfSpan span) {
    add_message(list, &(MtfExchangeMessage){ .round = list->round,
                                             .peer = peer,
                                             .sends = true,
                                             .first = span.begin,
                                             .count = span.end - span.begin });
}

void mtf_message_receive(MtfMessageList *list, int peer, MtfSpan span, bool combines) {
    add_message(list, &(MtfExchangeMessage){ .round = list->round,
                                             .peer = peer,
                                             .combines = combines,
                                             .first = span.begin,
                                             .count = span.end - span.begin });
}

static int compare_rounds(gconstpointer a, gconstpointer b) {
    return ((const MtfExchangeMessage *)a)->round - ((const MtfExchangeMessage *)b)->round;
}

GArray *mtf_exchange_messages_new(MtfExchangeAlgorithm algorithm, const MtfExchangeShape *shape,
                                  int member) {
    if (!mtf_exchange_applies(algorithm, shape))
        return NULL;
    g_autofree int64_t *starts = g_new0(int64_t, shape->n_members + 1);
    for (int i = 0; i < shape->n_members; i++)
        starts[i + 1] = starts[i] + shape->blocks[i];
    MtfMessageList list = { .shape = shape,
                            .member = member,
                            .starts = starts,
                            .messages = g_array_new(FALSE, FALSE, sizeof(MtfExchangeMessage)) };
    rows[algorithm]->add(&list);
    g_array_sort(list.messages, compare_rounds); /* stable, as GLib documents */
    return list.messages;
}

void mtf_exchange_even_blocks(int64_t elements, int n, int64_t *blocks) {
    for (int i = 0; i < n; i++)
        blocks[i] = elements * (i + 1) / n - elements * i / n;
}
