// SPDX-License-Identifier: GPL-3.0-or-later
/* What a text that is heard loses where nobody says when: connectionist temporal classification (Graves and others, 2006).
 * Each place tells a token of the text or nothing (the blank); the loss is -log of the sum over all ways of telling the text l of
 * L tokens, of the products of their places' shares p:
 *
 *     b[t][j] = p[t][blank] (b[t-1][j] + a[t-1][j-1])                                before token j, behind the one before it
 *     a[t][j] = p[t][l[j]] (a[t-1][j] + b[t-1][j] + (l[j] = l[j-1] ? 0 : a[t-1][j-1]))           at token j
 *     loss    = -log(b[last][L] + a[last][L-1])
 *
 * all as logarithms, in a loop over places; b[-1][0] is 1. Labels below 0 fill up a row. */
#include "analyzer/models/mixers/mixer_parts.h"

#define NEVER (-1e30) /* the logarithm of no share */

/* Dimensions of a text's tokens and of what is between them, one more. */
typedef struct {
    int labels, between, classes;
} Text;

/* Numbers of each token: whether it is one, and what is added where it may follow the one before it at once. */
typedef struct {
    int is_label, count, skip;
} Label;

/* Logarithms of shares at each place: of nothing, and of each token. */
typedef struct {
    int blank, label;
} Told;

/* x [labels] one further [between], behind `value`. */
static int behind_one(MtfAssembly *m, const char *name, const Text *d, double value, int x) {
    MtfAttributes *a = &m->p->b.attributes;
    a->from = d->labels;
    a->to = d->between;
    a->before = 1;
    a->value = value;
    return mtf_mixer_map(m, MTF_OP_PAD, name, x, -1);
}

/* x [between] without the last [labels]. */
static int but_last(MtfAssembly *m, const char *name, const Text *d, int x) {
    MtfAttributes *a = &m->p->b.attributes;
    a->from = d->between;
    a->to = d->labels;
    a->stride = 1;
    return mtf_mixer_map(m, MTF_OP_SLICE, name, x, -1);
}

static int as_float(MtfAssembly *m, const char *name, int x) {
    m->p->b.has_dtype = true;
    m->p->b.dtype = MTF_F32;
    return mtf_mixer_map(m, MTF_OP_CAST, name, x, -1);
}

/* 0 where `is` is 1, no share where it is 0. */
static int open_where(MtfAssembly *m, const char *name, int is) {
    g_autofree char *less = g_strdup_printf("%s_less", name);
    g_autofree char *one = g_strdup_printf("%s_one", name);
    int shut = mtf_mixer_map(m, MTF_OP_SUBTRACT, less, mtf_parts_constant(m->p, one, 1), is);
    return mtf_assembly_scale(m, name, NEVER, shut);
}

static Label tell_labels(MtfAssembly *m, const Text *d, int labels) {
    Label l;
    m->p->b.has_dtype = true;
    m->p->b.dtype = MTF_I32;
    int zero = mtf_parts_apply_shaped(m->p, MTF_OP_CONSTANT, "none", &(MtfShape){ 0 });
    int there = mtf_mixer_map(m, MTF_OP_LESS_EQUAL, "there", zero, labels);
    l.is_label = as_float(m, "is_label", there);
    l.count =
        mtf_parts_apply(m->p, MTF_OP_REDUCE_SUM, "count", &MTF_SHAPE(m->batch), l.is_label, -1);
    int number = as_float(m, "number", labels);
    int behind = behind_one(m, "behind", d, -1, number);
    int before = but_last(m, "before", d, behind);
    int other = mtf_mixer_map(m, MTF_OP_NOT_EQUAL, "other", number, before);
    l.skip = open_where(m, "skip", other);
    return l;
}

/* The logarithms of all shares [batch, length], [batch, length, labels]; that of nothing is a loss, too, by which the scores are
 * found. */
static Told tell_places(MtfAssembly *m, const Text *d, int logits, int labels) {
    MtfShape each = MTF_SHAPE(m->batch, m->length);
    MtfShape hot = MTF_SHAPE(m->batch, d->labels, d->classes);
    MtfShape all = MTF_SHAPE(m->batch, m->length, d->labels);
    m->p->b.attributes.value = (double)m->n->blank;
    m->p->b.has_dtype = true;
    m->p->b.dtype = MTF_I32;
    int blank = mtf_parts_apply_shaped(m->p, MTF_OP_CONSTANT, "blank", &each);
    int lost =
        mtf_parts_apply(m->p, MTF_OP_SOFTMAX_CROSS_ENTROPY, "blank_lost", &each, logits, blank);
    m->p->b.attributes.dimension = d->classes;
    m->p->b.attributes.index = (double)m->n->blank;
    int nothing = mtf_parts_apply(m->p, MTF_OP_SELECT, "nothing", &each, logits, -1);
    int whole = mtf_parts_add(m->p, "whole", nothing, lost);
    m->p->b.has_dtype = true;
    m->p->b.dtype = MTF_F32;
    int which = mtf_parts_apply(m->p, MTF_OP_ONE_HOT, "which", &hot, labels, -1);
    int chosen = mtf_parts_einsum(m->p, "chosen", &all, logits, which);
    return (Told){ mtf_assembly_scale(m, "blank_told", -1, lost),
                   mtf_parts_apply(m->p, MTF_OP_SUBTRACT, "label_told", &all, chosen, whole) };
}

/* log(e^x + e^y). */
static int log_sum(MtfAssembly *m, const char *name, int x, int y) {
    mtf_parts_enter(m->p, name);
    int larger = mtf_mixer_map(m, MTF_OP_MAXIMUM, "larger", x, y);
    int top = mtf_mixer_map(m, MTF_OP_STOP_GRADIENT, "top", larger, -1);
    int of_x = mtf_mixer_map(m, MTF_OP_EXP, "of_x",
                             mtf_mixer_map(m, MTF_OP_SUBTRACT, "x_less", x, top), -1);
    int of_y = mtf_mixer_map(m, MTF_OP_EXP, "of_y",
                             mtf_mixer_map(m, MTF_OP_SUBTRACT, "y_less", y, top), -1);
    int sum = mtf_parts_add(m->p, "sum", of_x, of_y);
    int z = mtf_parts_add(m->p, "z", mtf_mixer_map(m, MTF_OP_LOG, "log", sum, -1), top);
    mtf_parts_leave(m->p);
    return z;
}

static int at_place(MtfAssembly *m, const char *name, int x) {
    m->p->b.attributes.dimension = m->length;
    return mtf_mixer_map(m, MTF_OP_LOOP_SLICE, name, x, -1);
}

/* Before the first place: nothing has been told, for certain. */
static Told begin(MtfAssembly *m, const Text *d) {
    MtfShape blanks = MTF_SHAPE(m->batch, d->between), labels = MTF_SHAPE(m->batch, d->labels);
    m->p->b.has_dtype = true;
    m->p->b.dtype = MTF_F32;
    int number = mtf_parts_range(m->p, "between", d->between);
    int first =
        mtf_mixer_map(m, MTF_OP_EQUAL, "first", number, mtf_parts_constant(m->p, "zero", 0));
    int start = mtf_parts_apply(m->p, MTF_OP_BROADCAST, "start", &blanks,
                                open_where(m, "certain", first), -1);
    m->p->b.attributes.value = NEVER;
    int never = mtf_parts_apply_shaped(m->p, MTF_OP_CONSTANT, "never", &labels);
    return (Told){ mtf_mixer_map(m, MTF_OP_LOOP_BEGIN, "blank_state", start, -1),
                   mtf_mixer_map(m, MTF_OP_LOOP_BEGIN, "label_state", never, -1) };
}

/* What one more place makes of both. */
static Told step(MtfAssembly *m, const Text *d, const Told *before, const Told *now, int skip) {
    int passed = behind_one(m, "passed", d, NEVER, before->label);
    int between = log_sum(m, "between_now", before->blank, passed);
    int blank = but_last(m, "blank_before", d, before->blank);
    int label = but_last(m, "label_before", d, passed);
    int stays = log_sum(m, "stays", before->label, blank);
    int at = log_sum(m, "at_now", stays, mtf_parts_add(m->p, "follows", label, skip));
    return (Told){ mtf_parts_apply(m->p, MTF_OP_ADD, "blank_behind",
                                   &MTF_SHAPE(m->batch, d->between), between, now->blank),
                   mtf_parts_add(m->p, "label_behind", at, now->label) };
}

/* Both behind the last place. */
static Told recur(MtfAssembly *m, const Text *d, const Told *told, int skip) {
    Told before = begin(m, d);
    if (m->p->b.error != NULL)
        return before;
    m->p->b.loop = mtf_graph_add_loop(m->p->b.graph, "aligned", m->length, false);
    Told now = { at_place(m, "blank_now", told->blank), at_place(m, "label_now", told->label) };
    Told behind = step(m, d, &before, &now, skip);
    Told last = { mtf_mixer_map(m, MTF_OP_LOOP_NEXT, "blank_last", before.blank, behind.blank),
                  mtf_mixer_map(m, MTF_OP_LOOP_NEXT, "label_last", before.label, behind.label) };
    m->p->b.loop = 0;
    return last;
}

/* Of x [batch, dim] the element whose number and `less` make as many as the text has tokens; no share where none does. */
static int at_end(MtfAssembly *m, const char *name, int dim, double less, int count, int x) {
    MtfShape all = MTF_SHAPE(m->batch, dim), each = MTF_SHAPE(m->batch);
    mtf_parts_enter(m->p, name);
    m->p->b.has_dtype = true;
    m->p->b.dtype = MTF_F32;
    int place = mtf_parts_range(m->p, "place", dim);
    int number = mtf_parts_add(m->p, "number", place, mtf_parts_constant(m->p, "less", less));
    int is_end = mtf_parts_apply(m->p, MTF_OP_EQUAL, "is_end", &all, number, count);
    int shut = open_where(m, "shut", is_end);
    int read = mtf_parts_einsum(m->p, "read", &each, x, is_end);
    int least = mtf_parts_apply(m->p, MTF_OP_REDUCE_MAX, "least", &each, shut, -1);
    int y = mtf_parts_add(m->p, "y", read, least);
    mtf_parts_leave(m->p);
    return y;
}

/* The loss of all texts: their sum, or the mean of each one's by its tokens. Texts that have no way may lose nothing. */
static int reduce(MtfAssembly *m, int losses, int count) {
    MtfShape none = { 0 };
    if (m->n->aligned_or_nothing) {
        int most = mtf_parts_constant(m->p, "most", -NEVER / 10);
        int can = mtf_mixer_map(m, MTF_OP_LESS, "can", losses, most);
        int nothing = mtf_parts_constant(m->p, "lost_nothing", 0);
        losses = mtf_parts_apply_shape_to(m->p, MTF_OP_WHERE, "losses_that_can",
                                          &MTF_SHAPE(m->batch), 3, (int[]){ can, losses, nothing });
    }
    if (!m->n->aligned_mean)
        return mtf_parts_apply(m->p, MTF_OP_REDUCE_SUM, "loss", &none, losses, -1);
    int tokens =
        mtf_mixer_map(m, MTF_OP_MAXIMUM, "tokens", count, mtf_parts_constant(m->p, "one_token", 1));
    int each = mtf_mixer_map(m, MTF_OP_DIVIDE, "losses_of_tokens", losses, tokens);
    return mtf_parts_apply(m->p, MTF_OP_REDUCE_MEAN, "loss", &none, each, -1);
}

void mtf_assembly_lose_aligned(MtfAssembly *m, int logits) {
    int64_t most = MAX(1, m->positions / 2);
    if (m->p->b.error != NULL)
        return;
    Text d = { mtf_assembly_dimension(m, "label_places", most),
               mtf_assembly_dimension(m, "label_ends", most + 1),
               mtf_graph_find_dimension(m->p->b.graph, "classes") };
    MtfShape shape = MTF_SHAPE(m->batch, d.labels);
    int labels = mtf_parts_input(m->p, "labels", &shape, MTF_I32, MTF_FEED_LABELS);
    mtf_parts_enter(m->p, "aligned");
    Label label = tell_labels(m, &d, labels);
    Told told = tell_places(m, &d, logits, labels);
    Told last = recur(m, &d, &told, label.skip);
    int blank = at_end(m, "blank_end", d.between, 0, label.count, last.blank);
    int end = at_end(m, "label_end", d.labels, 1, label.count, last.label);
    int losses = mtf_assembly_scale(m, "losses", -1, log_sum(m, "both_ends", blank, end));
    mtf_parts_leave(m->p);
    m->p->b.graph->loss = reduce(m, losses, label.count);
}
