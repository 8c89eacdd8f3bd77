// SPDX-License-Identifier: GPL-3.0-or-later
#include "layouts/graph/reshape.h"

typedef struct {
    const MtfGraph *graph;
    const MtfShape *in, *out;
} Shapes;

static int64_t size_at(const Shapes *s, const MtfShape *shape, int i) {
    return mtf_graph_size(s->graph, shape->dims[i]);
}

/* Whether a dimension that both shapes have begins the rest of `in` at i. */
static bool is_kept(const Shapes *s, int i) {
    return i < s->in->rank && mtf_shape_find(s->out, s->in->dims[i]) >= 0;
}

static bool is_shared(const Shapes *s, int j) {
    return j < s->out->rank && mtf_shape_find(s->in, s->out->dims[j]) >= 0;
}

/* Takes dimensions that one side alone has until both have as many elements. */
static bool take_group(const Shapes *s, MtfReshapeGroup *group) {
    int i = group->first_in, j = group->first_out;
    int64_t left = 1, right = 1;
    while (left != right || (i == group->first_in && j == group->first_out)) {
        bool may_left = i < s->in->rank && !is_kept(s, i);
        bool may_right = j < s->out->rank && !is_shared(s, j);
        if (may_left && (left <= right || !may_right))
            left *= size_at(s, s->in, i++);
        else if (may_right)
            right *= size_at(s, s->out, j++);
        else
            return false;
    }
    group->n_in = i - group->first_in;
    group->n_out = j - group->first_out;
    return true;
}

static int64_t divisor(int64_t a, int64_t b) {
    while (b != 0) {
        int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

int mtf_reshape_groups(const MtfGraph *graph, const MtfShape *in, const MtfShape *out,
                       MtfReshapeGroup *groups) {
    Shapes s = { graph, in, out };
    int n = 0;
    for (int i = 0, j = 0; i < in->rank || j < out->rank; n++) {
        MtfReshapeGroup *group = &groups[n];
        bool same = i < in->rank && j < out->rank && in->dims[i] == out->dims[j];
        *group = (MtfReshapeGroup){ i, 1, j, 1, 1 };
        if (!same && !take_group(&s, group))
            return -1;
        if (group->n_in > 0 && group->n_out > 0)
            group->parts = divisor(size_at(&s, in, i), size_at(&s, out, j));
        i += group->n_in;
        j += group->n_out;
    }
    return n;
}
