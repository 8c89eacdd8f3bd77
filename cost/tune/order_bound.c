// SPDX-License-Identifier: GPL-3.0-or-later
#include "cost/tune/order_bound.h"

/* How an instruction lies to the one that is looked at. */
typedef enum { FREE, ALWAYS_BEFORE, ALWAYS_AFTER, ITSELF } Side;

static void stretch_of(const MtfOrderModel *model, int index, int *begin, int *end) {
    int s = 0;
    while (model->ends[s] <= index)
        s++;
    *begin = s > 0 ? model->ends[s - 1] : 0;
    *end = model->ends[s];
}

/* Instructions are numbered so that all they wait for comes before them. */
static Side *sides_of(const MtfOrderModel *model, int index) {
    const MtfDependences *waits = model->waits;
    Side *sides = g_new0(Side, (gsize)model->n + 1);
    int begin, end;
    stretch_of(model, index, &begin, &end);
    for (int i = 0; i < model->n; i++)
        sides[i] = i < begin ? ALWAYS_BEFORE : i >= end ? ALWAYS_AFTER : FREE;
    sides[index] = ITSELF;
    for (int i = index; i >= begin; i--)
        for (int k = waits->begins[i]; k < waits->begins[i + 1] && sides[i] != FREE; k++)
            sides[waits->before[k]] = ALWAYS_BEFORE;
    for (int i = index + 1; i < end; i++)
        for (int k = waits->begins[i]; k < waits->begins[i + 1]; k++)
            if (sides[waits->before[k]] == ITSELF || sides[waits->before[k]] == ALWAYS_AFTER)
                sides[i] = ALWAYS_AFTER;
    return sides;
}

typedef struct {
    bool made;         /* before the instruction, or by it, in any order */
    bool wanted;       /* after it, or by it, in any order */
    bool wanted_later; /* after it */
} Fate;

static Fate *fates_of(const MtfOrderModel *model, const Side *sides) {
    Fate *fates = g_new0(Fate, (gsize)model->n_values + 1);
    for (int v = 0; v < model->n_values; v++)
        fates[v] = (Fate){ model->early[v], model->stays[v], model->stays[v] };
    for (int i = 0; i < model->n; i++) {
        for (int k = model->write_begins[i]; k < model->write_begins[i + 1]; k++)
            fates[model->writes[k]].made |= sides[i] == ALWAYS_BEFORE || sides[i] == ITSELF;
        for (int k = model->read_begins[i]; k < model->read_begins[i + 1]; k++) {
            fates[model->reads[k]].wanted |= sides[i] == ALWAYS_AFTER || sides[i] == ITSELF;
            fates[model->reads[k]].wanted_later |= sides[i] == ALWAYS_AFTER;
        }
    }
    for (int i = 0; i < model->n; i++)
        for (int k = model->write_begins[i]; k < model->write_begins[i + 1]; k++)
            fates[model->writes[k]].wanted |= sides[i] == ITSELF;
    return fates;
}

/* What output 0 may overwrite at best need not be counted twice. */
static int64_t best_saving(const MtfOrderModel *model, const Fate *fates, int index) {
    if (model->write_begins[index] == model->write_begins[index + 1])
        return 0;
    for (int k = model->take_begins[index]; k < model->take_begins[index + 1]; k++)
        if (!fates[model->takes[k]].wanted_later)
            return model->bytes[model->writes[model->write_begins[index]]];
    return 0;
}

int64_t mtf_order_least(const MtfOrderModel *model, int index) {
    g_autofree Side *sides = sides_of(model, index);
    g_autofree Fate *fates = fates_of(model, sides);
    int64_t bytes = model->always + model->scratch[index];
    for (int v = 0; v < model->n_values; v++)
        bytes += fates[v].made && fates[v].wanted ? model->bytes[v] : 0;
    return bytes - best_saving(model, fates, index);
}
