// SPDX-License-Identifier: GPL-3.0-or-later
/* Rings: a reduce-scatter passes each span once round the ring, every member adding its term, until
 * it comes to its owner; an allgather passes it on from there. Each member sends (n - 1) / n of the
 * vector in each (Patarasuk and Yuan, 2009). */
#include "layouts/exchange/message_list.h"

static int place(const MtfRing *ring, int at) {
    return ((at % ring->n) + ring->n) % ring->n;
}

static int position(const MtfRing *ring, int at) {
    return ring->first + place(ring, at) * ring->step;
}

/* In round s member i sends on what it received in the round before: span i - s - 1 of a
 * reduce-scatter, which has one more step to go at its owner's left neighbour, span i - s of an
 * allgather. */
static void add_rounds(MtfMessageList *list, const MtfRing *ring, int own, bool backward,
                       bool combines) {
    int way = backward ? -1 : 1, round = list->round;
    for (int s = 0; s < ring->n - 1; s++) {
        int sent = own - way * (combines ? s + 1 : s);
        list->round = round + s;
        mtf_message_send(list, position(ring, own + way), ring->spans[place(ring, sent)]);
        mtf_message_receive(list, position(ring, own - way), ring->spans[place(ring, sent - way)],
                            combines);
    }
    list->round = round;
}

void mtf_ring_reduce_scatter(MtfMessageList *list, const MtfRing *ring, int own, bool backward) {
    add_rounds(list, ring, own, backward, true);
}

void mtf_ring_allgather(MtfMessageList *list, const MtfRing *ring, int own, bool backward) {
    add_rounds(list, ring, own, backward, false);
}

/* ---- One ring of all members ---------------------------------------------------------------- */

static bool always(const MtfExchangeShape *shape) {
    (void)shape;
    return true;
}

/* The lower (0) or upper (1) half of every block, or all of it. */
static MtfSpan *spans_of(const MtfMessageList *list, int half, int halves) {
    MtfSpan *spans = g_new(MtfSpan, list->shape->n_members);
    for (int i = 0; i < list->shape->n_members; i++) {
        int64_t begin = list->starts[i], size = list->starts[i + 1] - begin;
        spans[i] = (MtfSpan){ begin + size * half / halves, begin + size * (half + 1) / halves };
    }
    return spans;
}

static void add_ring(MtfMessageList *list, int half, int halves) {
    g_autofree MtfSpan *spans = spans_of(list, half, halves);
    MtfRing ring = { list->shape->n_members, 0, 1, spans };
    bool backward = half > 0;
    list->round = 0;
    if (mtf_reshard_row(list->shape->kind)->reduces) {
        mtf_ring_reduce_scatter(list, &ring, list->member, backward);
        list->round = ring.n - 1;
    }
    if (mtf_reshard_row(list->shape->kind)->gathers)
        mtf_ring_allgather(list, &ring, list->member, backward);
}

static void add_one_ring(MtfMessageList *list) {
    add_ring(list, 0, 1);
}

/* Halves of every block go round in opposite directions, in the same rounds. */
static void add_two_rings(MtfMessageList *list) {
    add_ring(list, 0, 2);
    add_ring(list, 1, 2);
}

const MtfExchangeAlgorithmRow mtf_ring_exchange = { "ring", always, add_one_ring };
const MtfExchangeAlgorithmRow mtf_bidirectional_ring_exchange = { "bidirectional-ring", always,
                                                                  add_two_rings };

/* ---- Rings along axes ----------------------------------------------------------------------- */

static bool has_several_axes(const MtfExchangeShape *shape) {
    return shape->n_axes > 1;
}

/* The ring of this member along one axis: members differ by `inner` positions, and the span of each
 * is all blocks behind it, those of its row, plane, ... */
typedef struct {
    MtfRing ring;
    int own;
    MtfSpan *spans;
} AxisRing;

static void axis_ring_init(AxisRing *axis, const MtfMessageList *list, int a) {
    const MtfExchangeShape *shape = list->shape;
    int inner = 1;
    for (int b = a + 1; b < shape->n_axes; b++)
        inner *= shape->sizes[b];
    int n = shape->sizes[a];
    int first = list->member % inner + list->member / (inner * n) * (inner * n);
    axis->own = list->member / inner % n;
    axis->spans = g_new(MtfSpan, n);
    for (int i = 0; i < n; i++) {
        int begin = list->member / (inner * n) * (inner * n) + i * inner;
        axis->spans[i] = (MtfSpan){ list->starts[begin], list->starts[begin + inner] };
    }
    axis->ring = (MtfRing){ n, first, inner, axis->spans };
}

/* Reduce-scatter along the first axis leaves each member with the blocks of its plane, along the
 * second with those of its row, ...; allgather goes the same way back. */
static void add_bucket(MtfMessageList *list) {
    const MtfExchangeShape *shape = list->shape;
    const MtfReshardRow *row = mtf_reshard_row(shape->kind);
    AxisRing axis;
    for (int a = 0; row->reduces && a < shape->n_axes; a++) {
        axis_ring_init(&axis, list, a);
        mtf_ring_reduce_scatter(list, &axis.ring, axis.own, false);
        list->round += axis.ring.n - 1;
        g_free(axis.spans);
    }
    for (int a = shape->n_axes - 1; row->gathers && a >= 0; a--) {
        axis_ring_init(&axis, list, a);
        mtf_ring_allgather(list, &axis.ring, axis.own, false);
        list->round += axis.ring.n - 1;
        g_free(axis.spans);
    }
}

const MtfExchangeAlgorithmRow mtf_bucket_exchange = { "bucket", has_several_axes, add_bucket };
