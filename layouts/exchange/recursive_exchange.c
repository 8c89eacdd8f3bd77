// SPDX-License-Identifier: GPL-3.0-or-later
/* Recursive halving and doubling (Rabenseifner; Thakur, Rabenseifner and Gropp, 2005): partners at
 * distance p/2, p/4, ... 1 exchange halves of what they still reduce, then, the other way, what
 * they have. With n no power of two an allreduce first folds: of the first 2 (n - p) members each
 * odd one gives its whole vector to the one before it, and gets the result in the end.
 *
 *     members   0 1   2 3   4         n = 5, p = 4: 1 is folded into 0
 *     places    0 -   1 2   3 */
#include "layouts/exchange/message_list.h"

static int power_below(int n) {
    int power = 1;
    while (2 * power <= n)
        power *= 2;
    return power;
}

static bool halves_evenly(const MtfExchangeShape *shape) {
    return mtf_reshard_row(shape->kind)->in_place ||
           power_below(shape->n_members) == shape->n_members;
}

/* Who takes part: `places` of them, which is a power of two. */
typedef struct {
    MtfMessageList *list;
    int places, folded; /* members beyond a power of two */
    int own;            /* this member's place */
} Halving;

static int member_at(const Halving *h, int place) {
    return place < h->folded ? 2 * place : place + h->folded;
}

/* Blocks [begin, end) of the places: members' own where all take part, even ones else. */
static MtfSpan span_of(const Halving *h, int begin, int end) {
    const MtfMessageList *list = h->list;
    int64_t total = list->starts[list->shape->n_members];
    if (h->folded == 0)
        return (MtfSpan){ list->starts[begin], list->starts[end] };
    return (MtfSpan){ total * begin / h->places, total * end / h->places };
}

static void halve(const Halving *h) {
    for (int distance = h->places / 2; distance >= 1; distance /= 2) {
        int partner = h->own ^ distance;
        int kept = h->own & ~(distance - 1), given = partner & ~(distance - 1);
        mtf_message_send(h->list, member_at(h, partner), span_of(h, given, given + distance));
        mtf_message_receive(h->list, member_at(h, partner), span_of(h, kept, kept + distance),
                            true);
        h->list->round++;
    }
}

static void redouble(const Halving *h) {
    for (int distance = 1; distance < h->places; distance *= 2) {
        int partner = h->own ^ distance;
        int held = h->own & ~(distance - 1), wanted = partner & ~(distance - 1);
        mtf_message_send(h->list, member_at(h, partner), span_of(h, held, held + distance));
        mtf_message_receive(h->list, member_at(h, partner), span_of(h, wanted, wanted + distance),
                            false);
        h->list->round++;
    }
}

static int log2_of(int power) {
    int log = 0;
    while (power >> log > 1)
        log++;
    return log;
}

/* One that is folded gives all it has to its neighbour and waits for the result. */
static void add_folded(MtfMessageList *list, const Halving *h) {
    MtfSpan all = { 0, list->starts[list->shape->n_members] };
    mtf_message_send(list, list->member - 1, all);
    list->round = 1 + 2 * log2_of(h->places);
    mtf_message_receive(list, list->member - 1, all, false);
}

static void add_recursive(MtfMessageList *list) {
    int n = list->shape->n_members, places = power_below(n), folded = n - places;
    bool in_pair = list->member < 2 * folded;
    Halving h = { list, places, folded, in_pair ? list->member / 2 : list->member - folded };
    MtfSpan all = { 0, list->starts[n] };
    if (in_pair && list->member % 2 == 1) {
        add_folded(list, &h);
        return;
    }
    if (in_pair)
        mtf_message_receive(list, list->member + 1, all, true);
    list->round = folded > 0;
    if (mtf_reshard_row(list->shape->kind)->reduces)
        halve(&h);
    if (mtf_reshard_row(list->shape->kind)->gathers)
        redouble(&h);
    if (in_pair)
        mtf_message_send(list, list->member + 1, all);
}

const MtfExchangeAlgorithmRow mtf_recursive_exchange = { "recursive", halves_evenly,
                                                         add_recursive };
