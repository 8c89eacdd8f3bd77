// SPDX-License-Identifier: GPL-3.0-or-later
#include "layouts/placement/margins.h"

#include "layouts/graph/reshape.h"
#include "layouts/graph/window.h"

/* ---- Windows ------------------------------------------------------------------------------- */

/* An element of the result is that of the input which lies as much before it as the input begins. */
static bool joined_reach(MtfReach *reach, const MtfGraph *graph, MtfReader reader, int dim) {
    MtfJoined joined =
        mtf_joined_input(graph, mtf_graph_operation(graph, reader.operation), reader.input);
    *reach = (MtfReach){ .parted = joined.to,
                         .parted_size = mtf_graph_size(graph, joined.to),
                         .size = joined.size,
                         .stride = 1,
                         .before = joined.begin,
                         .dilation = 1,
                         .places = 1,
                         .gathers = true,
                         .exact = true };
    return joined.dim == dim;
}

/* An element of the first of several dimensions is so many of the one that they merge to, or come of. */
static bool reshaped_reach(MtfReach *reach, const MtfGraph *graph, const MtfOperation *op,
                           int dim) {
    int to = mtf_reshape_side(graph, op, dim);
    if (to < 0)
        return false;
    int64_t size = mtf_graph_size(graph, dim), parted = mtf_graph_size(graph, to);
    bool divides = size >= parted;
    *reach = (MtfReach){ .parted = to,
                         .parted_size = parted,
                         .size = size,
                         .stride = divides ? size / parted : parted / size,
                         .dilation = 1,
                         .places = divides ? size / parted : parted / size,
                         .gathers = divides,
                         .exact = true };
    return true;
}

bool mtf_reach_init(MtfReach *reach, const MtfGraph *graph, MtfReader reader, int dim) {
    const MtfOperation *op = mtf_graph_operation(graph, reader.operation);
    const MtfOperationRow *row = mtf_operation_row(op->kind);
    if (row->joins)
        return joined_reach(reach, graph, reader, dim);
    if (row->dims == MTF_DIMS_RESHAPED)
        return reshaped_reach(reach, graph, op, dim);
    const MtfWindow *window = mtf_window_of(row, &op->attributes, dim);
    if (window == NULL || mtf_window_margined(row, window) != dim)
        return false;
    int parted = mtf_window_parted(row, window);
    bool turns = op->attributes.wrap != 0;
    *reach = (MtfReach){ .parted = parted,
                         .parted_size = mtf_graph_size(graph, parted),
                         .size = mtf_graph_size(graph, dim),
                         .stride = window->stride,
                         .before = window->before,
                         .dilation = window->dilation,
                         .places = mtf_window_places(graph, window),
                         .gathers = mtf_window_form(row, window) == MTF_WINDOWS_GATHER,
                         .exact = turns,
                         .turns = turns,
                         .backward = row->samples && op->attributes.stride < 0 };
    return true;
}

static int64_t floor_divided(int64_t a, int64_t b) {
    return a >= 0 ? a / b : -((-a + b - 1) / b);
}

static int64_t ceil_divided(int64_t a, int64_t b) {
    return -floor_divided(-a, b);
}

/* Whether some place of a window joins element `at` of the side that is read with the part. */
static bool meets(const MtfReach *r, MtfRange part, int64_t at) {
    if (!r->gathers) {
        int64_t first = ceil_divided(part.begin + r->before - at * r->stride, r->dilation);
        int64_t last = floor_divided(part.end - 1 + r->before - at * r->stride, r->dilation);
        return MAX(first, 0) <= MIN(last, r->places - 1);
    }
    for (int64_t place = 0; place < r->places; place++) {
        int64_t small = at + r->before - place * r->dilation;
        if (small >= part.begin * r->stride && small <= (part.end - 1) * r->stride &&
            small % r->stride == 0)
            return true;
    }
    return false;
}

/* What windows span from `part`, gaps and what lies outside included: of a later part it neither
 * begins nor ends earlier. */
static MtfRange span_of(const MtfReach *r, MtfRange part) {
    int64_t last = (r->places - 1) * r->dilation;
    if (r->gathers)
        return (MtfRange){ part.begin * r->stride - r->before,
                           (part.end - 1) * r->stride - r->before + last + 1 };
    return (MtfRange){ ceil_divided(part.begin + r->before - last, r->stride),
                       floor_divided(part.end - 1 + r->before, r->stride) + 1 };
}

/* The span from its place in 0 … size on. */
static MtfRange turned(const MtfReach *r, MtfRange span) {
    int64_t begin = span.begin - floor_divided(span.begin, r->size) * r->size;
    return (MtfRange){ begin, begin + span.end - span.begin };
}

/* The windows of a part by their places on the larger side: backward the last come first. */
static MtfRange windows_of(const MtfReach *r, MtfRange part) {
    return r->backward ? (MtfRange){ r->parted_size - part.end, r->parted_size - part.begin }
                       : part;
}

MtfRange mtf_reach_range(const MtfReach *r, MtfRange part) {
    part = windows_of(r, part);
    MtfRange span = span_of(r, part);
    int64_t begin = MAX(span.begin, 0), end = MIN(span.end, r->size);
    if (part.begin >= part.end)
        return (MtfRange){ 0, 0 };
    if (r->turns)
        return turned(r, span);
    while (begin < end && !meets(r, part, begin))
        begin++;
    while (begin < end && !meets(r, part, end - 1))
        end--;
    return begin < end ? (MtfRange){ begin, end } : (MtfRange){ 0, 0 };
}

/* ---- Parts ----------------------------------------------------------------------------------- */

static bool contains(MtfRange outer, MtfRange inner) {
    return inner.begin >= inner.end || (outer.begin <= inner.begin && inner.end <= outer.end);
}

/* What part `i` of `n` holds, and what it reads. */
static MtfRange held_of(const MtfReach *reach, int64_t i, int64_t n) {
    return mtf_part(reach->size, i, n);
}

static MtfRange reached_of(const MtfReach *reach, int64_t i, int64_t n) {
    return mtf_reach_range(reach, mtf_part(reach->parted_size, i, n));
}

static MtfRange read_of(const MtfReach *reach, int64_t i, int64_t n) {
    MtfRange held = held_of(reach, i, n), reached = reached_of(reach, i, n);
    return !reach->exact && contains(held, reached) ? held : reached;
}

/* Which of n parts are looked at: those near an end, and of the others the first `period`. */
typedef struct {
    int64_t n, period, near;
} Parts;

static int64_t common_divisor(int64_t a, int64_t b) {
    while (b > 0) {
        int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* Parts come again after a period, so many elements further on: of 6 elements in 4 parts after two,
 *
 *     [0][1 2][3][4 5]
 *
 * and after one where they are equal. Where as much of one side then faces as much of the other, what a part reads,
 * and what others read of it, is that of the part a period on, but near the ends, where windows run out: no part
 * further from them than this differs from that one. A window reaches `overhang` elements beyond its part, so
 * the ends are felt over as many periods as that are, by readers, and by those whose readers feel them. What
 * turns has no ends. */
static Parts parts_of(const MtfReach *r, int64_t n) {
    int64_t periods = common_divisor(n, common_divisor(r->size, r->parted_size));
    int64_t held = r->size / periods, parted = r->parted_size / periods;
    bool regular = r->gathers ? held == r->stride * parted : held * r->stride == parted;
    int64_t overhang = ABS(r->before) + (r->places - 1) * r->dilation;
    Parts parts = { n, n / periods, n };
    if (regular && r->turns)
        parts.near = 0;
    else if (regular)
        parts.near = parts.period *
                     (2 + 2 * (1 + (r->gathers ? overhang : overhang / r->stride + 1) / held));
    return parts;
}

/* The next part to be looked at behind part i. */
static int64_t next_part(const Parts *parts, int64_t i) {
    return i + 1 == parts->near + parts->period ? MAX(i + 1, parts->n - parts->near) : i + 1;
}

MtfRange mtf_margins_range(const MtfGraph *graph, const MtfMesh *mesh,
                           const MtfPlacement *placement, MtfReader reader, int dim, int rank) {
    unsigned axes = mtf_placement_split_axes(placement, dim);
    MtfReach reach;
    if (axes == 0 || !mtf_reach_init(&reach, graph, reader, dim))
        return mtf_placement_range(mesh, placement, dim, mtf_graph_size(graph, dim), rank);
    return read_of(&reach, mtf_mesh_group_position(mesh, axes, rank),
                   mtf_mesh_group_size(mesh, axes));
}

unsigned mtf_margins_axes(const MtfGraph *graph, const MtfMesh *mesh, const MtfShape *shape,
                          const MtfPlacement *placement, MtfReader reader) {
    unsigned lacking = 0;
    for (int d = 0; d < shape->rank; d++) {
        unsigned axes = mtf_placement_split_axes(placement, shape->dims[d]);
        int64_t n = mtf_mesh_group_size(mesh, axes);
        MtfReach reach;
        if (n == 1 || !mtf_reach_init(&reach, graph, reader, shape->dims[d]))
            continue;
        Parts parts = parts_of(&reach, n);
        for (int64_t i = 0; i < n && !(lacking & axes); i = next_part(&parts, i))
            if (!contains(held_of(&reach, i, n), read_of(&reach, i, n)))
                lacking |= axes;
    }
    return lacking;
}

/* ---- The most ------------------------------------------------------------------------------ */

/* Of one part along one dimension: elements that it reads, that it reads of its own, and that all
 * parts together read of what it holds. */
typedef struct {
    int64_t read, own, wanted;
    int64_t below, above; /* of that, by parts before this one, and by those behind it */
    int64_t places;       /* to the farthest that reads of it */
} Share;

static MtfRange overlap(MtfRange a, MtfRange b) {
    int64_t begin = MAX(a.begin, b.begin);
    return (MtfRange){ begin, MAX(begin, MIN(a.end, b.end)) };
}

MtfRange mtf_range_common(MtfRange held, MtfRange wanted, int64_t size) {
    MtfRange both = overlap(held, wanted);
    MtfRange again = { wanted.begin - size, wanted.end - size };
    return both.begin < both.end || wanted.end <= size ? both : overlap(held, again);
}

static int64_t common(const MtfReach *reach, MtfRange held, MtfRange read) {
    MtfRange both = mtf_range_common(held, read, reach->size);
    return both.end - both.begin;
}

/* The part whose windows are the k-th. */
static int64_t in_order(const MtfReach *reach, int64_t k, int64_t n) {
    return reach->backward ? n - 1 - k : k;
}

static MtfRange span_of_part(const MtfReach *reach, int64_t k, int64_t n) {
    MtfRange part = mtf_part(reach->parted_size, in_order(reach, k, n), n);
    return span_of(reach, windows_of(reach, part));
}

/* The first part whose span ends behind `at`; n: none. It has the first element whose window does. */
static int64_t first_behind(const MtfReach *reach, int64_t at, int64_t n) {
    int64_t last = (reach->places - 1) * reach->dilation;
    int64_t element = reach->gathers ? ceil_divided(at + reach->before - last, reach->stride)
                                     : at * reach->stride - reach->before;
    double guess = (double)element / (double)reach->parted_size * (double)n;
    int64_t first = (int64_t)CLAMP(guess, 0, (double)n);
    while (first > 0 && span_of_part(reach, first - 1, n).end > at)
        first--;
    while (first < n && span_of_part(reach, first, n).end <= at)
        first++;
    return first;
}

/* How many times the size spans may lie from the elements that they stand for. */
static MtfRange turns_of(const MtfReach *reach, MtfRange held, int64_t n) {
    if (!reach->turns)
        return (MtfRange){ 0, 1 };
    int64_t first = span_of_part(reach, 0, n).begin, last = span_of_part(reach, n - 1, n).end;
    return (MtfRange){ floor_divided(first - held.end, reach->size),
                       floor_divided(last - held.begin, reach->size) + 1 };
}

static int64_t places_between(int64_t i, int64_t j, int64_t n) {
    return MIN(ABS(i - j), n - ABS(i - j));
}

/* What other parts read of what part `i` holds. Spans follow one another as windows do, and so do those that
 * meet it, in each turn. */
static void add_wanted(Share *share, const MtfReach *reach, int64_t i, int64_t n) {
    MtfRange held = held_of(reach, i, n), turns = turns_of(reach, held, n);
    int64_t next = 0;
    for (int64_t turn = turns.begin; turn < turns.end; turn++) {
        int64_t begin = held.begin + turn * reach->size, end = held.end + turn * reach->size;
        next = MAX(next, first_behind(reach, begin, n));
        for (; next < n && span_of_part(reach, next, n).begin < end; next++) {
            int64_t reader = in_order(reach, next, n);
            int64_t wanted = reader == i ? 0 : common(reach, held, reached_of(reach, reader, n));
            share->wanted += wanted;
            *(reader < i ? &share->below : &share->above) += wanted;
            if (wanted > 0)
                share->places = MAX(share->places, places_between(i, reader, n));
        }
    }
}

static Share share_of(const MtfReach *reach, int64_t i, int64_t n) {
    MtfRange held = held_of(reach, i, n), read = read_of(reach, i, n);
    int64_t own = common(reach, held, read);
    Share share = { .read = read.end - read.begin, .own = own, .wanted = own };
    add_wanted(&share, reach, i, n);
    return share;
}

static void add_share(GArray *shares, Share share) {
    for (guint k = 0; k < shares->len; k++) {
        const Share *s = &g_array_index(shares, Share, k);
        if (s->read == share.read && s->own == share.own && s->wanted == share.wanted &&
            s->below == share.below && s->above == share.above && s->places == share.places)
            return;
    }
    g_array_append_val(shares, share);
}

/* The different shares of a dimension's parts. */
static GArray *shares_of(const MtfGraph *graph, const MtfMesh *mesh, const MtfPlacement *placement,
                         MtfReader reader, int dim) {
    GArray *shares = g_array_new(FALSE, FALSE, sizeof(Share));
    int64_t size = mtf_graph_size(graph, dim);
    int64_t n = mtf_mesh_group_size(mesh, mtf_placement_split_axes(placement, dim));
    MtfReach reach;
    if (n == 1 || !mtf_reach_init(&reach, graph, reader, dim)) {
        int64_t part = mtf_largest_part(size, n);
        g_array_append_val(shares, ((Share){ .read = part, .own = part, .wanted = part }));
        return shares;
    }
    Parts parts = parts_of(&reach, n);
    for (int64_t i = 0; i < n; i = next_part(&parts, i))
        add_share(shares, share_of(&reach, i, n));
    return shares;
}

/* A box is a product of shares, and so is what a processor sends and keeps of its own: all combinations
 * are gone through, since there are few. */
static void find_most(GArray *const *shares, int rank, Share box, int64_t side,
                      MtfMarginsMost *most) {
    if (rank == 0) {
        most->read = MAX(most->read, box.read);
        most->sent = MAX(most->sent, box.wanted - box.own);
        most->exchanged = MAX(most->exchanged, box.wanted - box.own + box.read - box.own);
        most->side = MAX(most->side, MIN(side, box.wanted - box.own));
        most->places = MAX(most->places, box.places);
        return;
    }
    for (guint k = 0; k < shares[0]->len; k++) {
        const Share *s = &g_array_index(shares[0], Share, k);
        find_most(shares + 1, rank - 1,
                  (Share){ .read = box.read * s->read,
                           .own = box.own * s->own,
                           .wanted = box.wanted * s->wanted,
                           .places = MAX(box.places, s->places) },
                  side * s->wanted + box.wanted * MAX(s->below, s->above), most);
    }
}

MtfMarginsMost mtf_margins_most(const MtfGraph *graph, const MtfMesh *mesh, const MtfShape *shape,
                                const MtfPlacement *placement, MtfReader reader) {
    GArray *shares[MTF_MAX_RANK];
    MtfMarginsMost most = { .places = 1 };
    for (int d = 0; d < shape->rank; d++)
        shares[d] = shares_of(graph, mesh, placement, reader, shape->dims[d]);
    find_most(shares, shape->rank, (Share){ .read = 1, .own = 1, .wanted = 1 }, 0, &most);
    for (int d = 0; d < shape->rank; d++)
        g_array_unref(shares[d]);
    return most;
}
