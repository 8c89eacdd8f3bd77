// SPDX-License-Identifier: GPL-3.0-or-later
#include "layouts/program/stage_order.h"

#include "layouts/base/error.h"

#include <stdio.h>
#include <string.h>

static void add_action(GArray *actions, MtfStageActionKind kind, int microbatch) {
    MtfStageAction action = { .kind = kind, .microbatch = microbatch };
    g_array_append_val(actions, action);
}

/* Gives each micro-batch the lowest slot that is free; returns how many there are. */
static int give_slots(MtfStageAction *actions, int n, int microbatches) {
    g_autofree int *slot_of = g_new0(int, microbatches + 1);
    g_autofree bool *held = g_new0(bool, microbatches + 1);
    int slots = 1;
    for (int i = 0; i < n; i++) {
        int *slot = &slot_of[actions[i].microbatch];
        bool forward = actions[i].kind == MTF_STAGE_FORWARD;
        for (*slot = forward ? 0 : *slot; forward && held[*slot];)
            (*slot)++;
        held[*slot] = forward;
        actions[i].slot = *slot;
        slots = MAX(slots, *slot + 1);
    }
    return slots;
}

static MtfStageOrder *order_of(GArray *actions, int microbatches) {
    MtfStageOrder *order = g_new0(MtfStageOrder, 1);
    order->n = (int)actions->len;
    order->actions = (MtfStageAction *)(gpointer)g_array_free(actions, FALSE);
    order->slots = give_slots(order->actions, order->n, microbatches);
    return order;
}

MtfStageOrder *mtf_stage_order_new(const char *schedule, int stages, int stage, int microbatches) {
    bool gpipe = strcmp(schedule, "gpipe") == 0;
    if (!gpipe && strcmp(schedule, "1f1b") != 0)
        return NULL;
    GArray *actions = g_array_new(FALSE, FALSE, sizeof(MtfStageAction));
    int ahead = gpipe ? microbatches : MIN(microbatches, stages - stage);
    for (int i = 0; i < ahead; i++)
        add_action(actions, MTF_STAGE_FORWARD, i);
    for (int i = 0; i < microbatches; i++) {
        add_action(actions, MTF_STAGE_BACKWARD, i);
        if (ahead + i < microbatches)
            add_action(actions, MTF_STAGE_FORWARD, ahead + i);
    }
    return order_of(actions, microbatches);
}

/* ---- Text ---------------------------------------------------------------------------------- */

static bool parse_item(const char *item, int stage, int microbatches, MtfStageAction *action,
                       GError **error) {
    int of = -1, microbatch = -1, end = 0;
    char kind = 0;
    bool read = sscanf(item, "%5d%c%7d%n", &of, &kind, &microbatch, &end) == 3 &&
                item[end] == '\0' && (kind == 'F' || kind == 'B');
    if (!read)
        return mtf_input_error(error, "\"%s\" is no action of a schedule, like %dF0 or %dB0", item,
                               stage, stage);
    if (of != stage)
        return mtf_input_error(error, "\"%s\" stands in the order of stage %d", item, stage);
    if (microbatch < 0 || microbatch >= microbatches)
        return mtf_input_error(error, "\"%s\": there are micro-batches 0 to %d", item,
                               microbatches - 1);
    *action = (MtfStageAction){ .kind = kind == 'F' ? MTF_STAGE_FORWARD : MTF_STAGE_BACKWARD,
                                .microbatch = microbatch };
    return true;
}

/* `passed[m]`: 1 after the forward, 2 after the backward pass of micro-batch m. */
static bool check_item(const MtfStageAction *action, int stage, int *passed, int *next_back,
                       GError **error) {
    bool forward = action->kind == MTF_STAGE_FORWARD;
    int m = action->microbatch;
    if (passed[m] != (forward ? 0 : 1))
        return mtf_input_error(error,
                               "stage %d: each micro-batch needs one forward and then one backward "
                               "pass, but %dF%d and %dB%d are not so",
                               stage, stage, m, stage, m);
    if (!forward && m != (*next_back)++)
        return mtf_input_error(
            error,
            "stage %d: %dB%d stands before %dB%d; backward passes must go in the "
            "order of the micro-batches",
            stage, stage, m, stage, *next_back - 1);
    passed[m]++;
    return true;
}

MtfStageOrder *mtf_stage_order_parse(const char *text, int stage, int microbatches,
                                     GError **error) {
    g_auto(GStrv) items = g_strsplit_set(text, " ,\n", -1);
    g_autofree int *passed = g_new0(int, microbatches + 1);
    g_autoptr(GArray) actions = g_array_new(FALSE, FALSE, sizeof(MtfStageAction));
    int next_back = 0;
    for (char **item = items; *item != NULL; item++) {
        MtfStageAction action;
        if (**item == '\0')
            continue;
        if (!parse_item(*item, stage, microbatches, &action, error) ||
            !check_item(&action, stage, passed, &next_back, error))
            return NULL;
        g_array_append_val(actions, action);
    }
    if (next_back < microbatches) {
        mtf_input_error(error, "stage %d: the backward pass %dB%d is missing", stage, stage,
                        next_back);
        return NULL;
    }
    return order_of(g_steal_pointer(&actions), microbatches);
}

char *mtf_stage_order_format(const MtfStageOrder *order, int stage) {
    GString *text = g_string_new(NULL);
    for (int i = 0; i < order->n; i++)
        g_string_append_printf(text, "%s%d%c%d", i > 0 ? " " : "", stage,
                               order->actions[i].kind == MTF_STAGE_FORWARD ? 'F' : 'B',
                               order->actions[i].microbatch);
    return g_string_free(text, FALSE);
}

void mtf_stage_order_free(MtfStageOrder *order) {
    if (order == NULL)
        return;
    g_free(order->actions);
    g_free(order);
}
