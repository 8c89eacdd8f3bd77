// SPDX-License-Identifier: GPL-3.0-or-later
/* What layers of RWKV 4 are (Peng and others, 2023): a recurrence over places in the place of attention, and a hidden layer,
 * both of what a place and the one before it have, mixed feature by feature. */
#include "analyzer/models/mixers/mixer_parts.h"

#include <inttypes.h>

#define FAR_BELOW (-1e38) /* the largest exponent of no place */

/* ---- The place before --------------------------------------------------------------------------- */

/* x of the place before, of the first place 0: a convolution of two places that takes the first. */
static int place_before(MtfAssembly *m, int x) {
    int taps = mtf_assembly_dimension(m, "taps", 2);
    int shifted = mtf_assembly_dimension(m, "convolved_length", m->positions);
    m->p->b.has_dtype = true;
    m->p->b.dtype = MTF_F32;
    int number = mtf_parts_range(m->p, "tap", taps);
    int one = mtf_parts_constant(m->p, "one", 1);
    int first = mtf_mixer_map(m, MTF_OP_SUBTRACT, "first_tap", one, number);
    int filter =
        mtf_parts_apply(m->p, MTF_OP_BROADCAST, "filter", &MTF_SHAPE(m->d_model, taps), first, -1);
    m->p->b.attributes.n_windows = 1;
    m->p->b.attributes.windows[0] = (MtfWindow){ .from = m->length,
                                                 .to = shifted,
                                                 .kernel = taps,
                                                 .size = 1,
                                                 .stride = 1,
                                                 .dilation = 1,
                                                 .before = 1 };
    int y = mtf_parts_apply(m->p, MTF_OP_CONV, "shifted", &MTF_SHAPE(m->batch, shifted, m->d_model),
                            x, filter);
    m->p->b.attributes.from = shifted;
    m->p->b.attributes.to = m->length;
    return mtf_parts_apply(m->p, MTF_OP_RENAME, "before", NULL, y, -1);
}

/* Both mixed for one matrix: before + share (x - before). */
static int mixed(MtfAssembly *m, const char *name, const char *file, int x, int before) {
    g_autofree char *sizes = g_strdup_printf("1,1,%" PRId64, m->n->d_model);
    g_autofree char *by_share = g_strdup_printf("%s_by_share", name);
    g_autofree char *newer = g_strdup_printf("%s_newer", name);
    int share = mtf_mixer_row(m, name, file, m->d_model, sizes, 0.5);
    int difference = mtf_mixer_map(m, MTF_OP_SUBTRACT, newer, x, before);
    int part = mtf_mixer_map(m, MTF_OP_MULTIPLY, by_share, difference, share);
    g_autofree char *sum = g_strdup_printf("%s_mixed", name);
    return mtf_parts_add(m->p, sum, before, part);
}

static int product(MtfAssembly *m, const char *name, const char *file, int in, int out, int x) {
    MtfLinear linear = { .name = name,
                         .file = file,
                         .in = MTF_SHAPE(in),
                         .out = MTF_SHAPE(out),
                         .spread = m->n->spread };
    return mtf_assembly_linear(m, &linear, x);
}

/* ---- The recurrence ----------------------------------------------------------------------------- */

/* A number of each feature of every example, before the first place. */
static int begin(MtfAssembly *m, const char *name, int features, double value) {
    g_autofree char *first = g_strdup_printf("%s_first", name);
    m->p->b.has_dtype = true;
    m->p->b.dtype = MTF_F32;
    m->p->b.attributes.value = value;
    int zeros =
        mtf_parts_apply_shaped(m->p, MTF_OP_CONSTANT, first, &MTF_SHAPE(m->batch, features));
    return mtf_mixer_map(m, MTF_OP_LOOP_BEGIN, name, zeros, -1);
}

static int at_place(MtfAssembly *m, const char *name, int x) {
    m->p->b.attributes.dimension = m->length;
    return mtf_mixer_map(m, MTF_OP_LOOP_SLICE, name, x, -1);
}

/* What is remembered: the sums of e^k v and of e^k over places, each less by e^top. */
typedef struct {
    int sum, weight, top;
} Memory;

/* What two exponents have of e^top, the larger of both. */
typedef struct {
    int of_memory, of_place, top;
} Shares;

static Shares share(MtfAssembly *m, const char *prefix, int memory, int place) {
    Shares s;
    mtf_parts_enter(m->p, prefix);
    s.top = mtf_mixer_map(m, MTF_OP_MAXIMUM, "top", memory, place);
    int less = mtf_mixer_map(m, MTF_OP_SUBTRACT, "memory_less", memory, s.top);
    s.of_memory = mtf_mixer_map(m, MTF_OP_EXP, "of_memory", less, -1);
    int low = mtf_mixer_map(m, MTF_OP_SUBTRACT, "place_less", place, s.top);
    s.of_place = mtf_mixer_map(m, MTF_OP_EXP, "of_place", low, -1);
    mtf_parts_leave(m->p);
    return s;
}

/* The memory and the place, each by its share. */
static int sum_with(MtfAssembly *m, const char *name, const Shares *s, int memory, int place) {
    g_autofree char *kept = g_strdup_printf("%s_kept", name);
    g_autofree char *taken = g_strdup_printf("%s_taken", name);
    int old = mtf_mixer_map(m, MTF_OP_MULTIPLY, kept, memory, s->of_memory);
    int now =
        place < 0 ? s->of_place : mtf_mixer_map(m, MTF_OP_MULTIPLY, taken, place, s->of_place);
    return mtf_parts_add(m->p, name, old, now);
}

/* What a place tells, and what is remembered behind it. */
static int step(MtfAssembly *m, const Memory *before, const int at[4], Memory *behind) {
    int k = at[0], v = at[1], bonus = at[2], speed = at[3];
    Shares now = share(m, "tell", before->top, mtf_parts_add(m->p, "k_bonus", k, bonus));
    int sum = sum_with(m, "sum", &now, before->sum, v);
    int weight = sum_with(m, "weight", &now, before->weight, -1);
    Shares next = share(m, "keep", mtf_parts_add(m->p, "top_kept", before->top, speed), k);
    behind->sum = sum_with(m, "sum_behind", &next, before->sum, v);
    behind->weight = sum_with(m, "weight_behind", &next, before->weight, -1);
    behind->top = next.top;
    return mtf_mixer_map(m, MTF_OP_DIVIDE, "told", sum, weight);
}

/* A loop over the places of k and v [batch, length, features]. */
static int recur(MtfAssembly *m, int features, int k, int v) {
    const MtfMixer *mixer = &m->stack->mixer;
    MtfShape each = MTF_SHAPE(features);
    int decay = mtf_mixer_vector(m, "forget_rate", mixer->forget_rate, &each, -1);
    int bonus = mtf_mixer_vector(m, "bonus", mixer->skip, &each, 0);
    int speed = mtf_mixer_forget_speed(m, decay);
    g_autofree char *name = g_strdup_printf("wkv/%d", m->layer);
    Memory before = { begin(m, "sum_state", features, 0), begin(m, "weight_state", features, 0),
                      begin(m, "top_state", features, FAR_BELOW) },
           behind;
    if (m->p->b.error != NULL)
        return k;
    m->p->b.loop = mtf_graph_add_loop(m->p->b.graph, name, m->length, false);
    int at[4] = { at_place(m, "k_now", k), at_place(m, "v_now", v), bonus, speed };
    int told = step(m, &before, at, &behind);
    m->p->b.attributes.dimension = m->length;
    int all = mtf_mixer_map(m, MTF_OP_LOOP_STACK, "all", told, -1);
    mtf_mixer_map(m, MTF_OP_LOOP_NEXT, "sum_next", before.sum, behind.sum);
    mtf_mixer_map(m, MTF_OP_LOOP_NEXT, "weight_next", before.weight, behind.weight);
    mtf_mixer_map(m, MTF_OP_LOOP_NEXT, "top_next", before.top, behind.top);
    m->p->b.loop = 0;
    return mtf_parts_apply(m->p, MTF_OP_TRANSPOSE, "told_of_all",
                           &MTF_SHAPE(m->batch, m->length, features), all, -1);
}

int mtf_mixer_wkv(MtfAssembly *m, int x) {
    int features = mtf_assembly_dimension(m, "d_inner", m->stack->mixer.d_inner);
    int before = place_before(m, x);
    int of_k = mixed(m, "mix_k", "attention.time_mix_key", x, before);
    int of_v = mixed(m, "mix_v", "attention.time_mix_value", x, before);
    int of_r = mixed(m, "mix_r", "attention.time_mix_receptance", x, before);
    int k = product(m, "k", "attention.key", m->d_model, features, of_k);
    int v = product(m, "v", "attention.value", m->d_model, features, of_v);
    int r = product(m, "r", "attention.receptance", m->d_model, features, of_r);
    int open = mtf_mixer_map(m, MTF_OP_SIGMOID, "open", r, -1);
    int told = mtf_mixer_map(m, MTF_OP_MULTIPLY, "let_through", open, recur(m, features, k, v));
    return mtf_mixer_output(m, MTF_SHAPE(features), told);
}

int mtf_assembly_channel_mix(MtfAssembly *m, int x) {
    int width = mtf_assembly_dimension(m, "d_ff", m->stack->d_ff);
    int before = place_before(m, x);
    int of_k = mixed(m, "mix_k", "feed_forward.time_mix_key", x, before);
    int of_r = mixed(m, "mix_r", "feed_forward.time_mix_receptance", x, before);
    int k = product(m, "hidden", "feed_forward.key", m->d_model, width, of_k);
    int hidden = mtf_assembly_activation(m, "relu2", k);
    int made = product(m, "out", "feed_forward.value", width, m->d_model, hidden);
    int own = mtf_assembly_dimension(m, "d_let", m->n->d_model);
    int r = product(m, "r", "feed_forward.receptance", m->d_model, own, of_r);
    int open = mtf_mixer_map(m, MTF_OP_SIGMOID, "open", r, -1);
    m->p->b.attributes.from = own;
    m->p->b.attributes.to = m->d_model;
    int let = mtf_mixer_map(m, MTF_OP_RENAME, "let", open, -1);
    return mtf_mixer_map(m, MTF_OP_MULTIPLY, "let_through", let, made);
}
