// SPDX-License-Identifier: GPL-3.0-or-later
/* Two levels: the groups inside, all axes but the first, are close together (a host, a node), the
 * first axis joins them. Inside each group member j reduces part j of the vector in one round, the
 * j-th members of all groups reduce it among them by a ring, and one round inside gives it to all:
 * the slow level carries 1/m of the vector per member. */
#include "layouts/exchange/message_list.h"

static bool is_allreduce_of_two_levels(const MtfExchangeShape *shape) {
    return mtf_reshard_row(shape->kind)->in_place && shape->n_axes > 1;
}

/* Part j of m of what stands in `span`. */
static MtfSpan part(MtfSpan span, int j, int m) {
    int64_t size = span.end - span.begin;
    return (MtfSpan){ span.begin + size * j / m, span.begin + size * (j + 1) / m };
}

static void add_hierarchical(MtfMessageList *list) {
    const MtfExchangeShape *shape = list->shape;
    int outer = shape->sizes[0], inner = shape->n_members / outer;
    int own = list->member % inner, group = list->member / inner;
    MtfSpan all = { 0, list->starts[shape->n_members] }, mine = part(all, own, inner);
    g_autofree MtfSpan *spans = g_new(MtfSpan, outer);
    for (int i = 0; i < outer; i++)
        spans[i] = part(mine, i, outer);
    for (int j = 0; j < inner; j++)
        if (j != own) {
            mtf_message_send(list, group * inner + j, part(all, j, inner));
            mtf_message_receive(list, group * inner + j, mine, true);
        }
    MtfRing ring = { outer, own, inner, spans };
    list->round = 1;
    mtf_ring_reduce_scatter(list, &ring, group, false);
    list->round += outer - 1;
    mtf_ring_allgather(list, &ring, group, false);
    list->round += outer - 1;
    for (int j = 0; j < inner; j++)
        if (j != own) {
            mtf_message_send(list, group * inner + j, mine);
            mtf_message_receive(list, group * inner + j, part(all, j, inner), false);
        }
}

const MtfExchangeAlgorithmRow mtf_hierarchical_exchange = { "hierarchical",
                                                            is_allreduce_of_two_levels,
                                                            add_hierarchical };
