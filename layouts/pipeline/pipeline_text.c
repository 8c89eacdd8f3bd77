// SPDX-License-Identifier: GPL-3.0-or-later
#include "layouts/pipeline/pipeline_text.h"

#include "layouts/base/error.h"
#include "layouts/base/json_reader.h"
#include "layouts/pipeline/pipeline_check.h"

#include <string.h>

#define NUMBERS_MAX \
    100000 /* of a stage or micro-batch, so that a slip of the pen fills no memory */

static const char *const work_names[MTF_WORKS] = {
    [MTF_WORK_FORWARD] = "F",
    [MTF_WORK_INPUT_GRADIENT] = "I",
    [MTF_WORK_WEIGHT_GRADIENT] = "W",
    [MTF_WORK_BACKWARD] = "B",
    [MTF_WORK_SEND_FORWARD] = "SEND_F",
    [MTF_WORK_RECEIVE_FORWARD] = "RECV_F",
    [MTF_WORK_SEND_BACKWARD] = "SEND_B",
    [MTF_WORK_RECEIVE_BACKWARD] = "RECV_B",
    [MTF_WORK_UNSHARD] = "UNSHARD",
    [MTF_WORK_RESHARD] = "RESHARD",
    [MTF_WORK_REDUCE_GRADIENT] = "REDUCE_GRAD",
};

/* Where a cell stands, for messages. */
typedef struct {
    const char *file;
    int line, cell;
} Place;

/* Reads decimal digits at *text; -1 where there are none or too many. */
static int read_number(const char **text) {
    int value = 0;
    if (!g_ascii_isdigit(**text))
        return -1;
    for (; g_ascii_isdigit(**text) && value <= NUMBERS_MAX; (*text)++)
        value = 10 * value + g_ascii_digit_value(**text);
    return value <= NUMBERS_MAX ? value : -1;
}

static bool read_work(const char *name, gsize length, MtfPipelineWork *work) {
    for (int w = 0; w < MTF_WORKS; w++)
        if (strlen(work_names[w]) == length && strncmp(work_names[w], name, length) == 0) {
            *work = (MtfPipelineWork)w;
            return true;
        }
    return false;
}

/* "2F0": [stage] work [micro-batch]. Only what has to do with a stage as a whole lacks the latter. */
static bool parse_action(const char *text, MtfPipelineAction *action) {
    int stage = read_number(&text);
    gsize length = strcspn(text, "0123456789");
    MtfPipelineWork work;
    if (stage < 0 || !read_work(text, length, &work))
        return false;
    text += length;
    bool bare = *text == '\0' && work >= MTF_WORK_UNSHARD;
    int microbatch = bare ? -1 : read_number(&text);
    *action = (MtfPipelineAction){ .stage = stage, .microbatch = microbatch, .work = work };
    return *text == '\0' && (bare || microbatch >= 0);
}

static bool fail_cell(const Place *place, const char *cell, GError **error) {
    return mtf_input_error(error,
                           "%s: line %d, cell %d: \"%s\" is not an action such as 2F0, 1I3, 0W2, "
                           "1SEND_F0 or (4F1;0B0)OVERLAP_F_B",
                           place->file, place->line, place->cell, cell);
}

/* "(4F1;0B0)OVERLAP_F_B", or one action. */
static bool parse_cell(const Place *place, const char *cell, GArray *row, GError **error) {
    if (*cell == '\0')
        return true;
    const char *end = *cell == '(' ? strchr(cell, ')') : NULL;
    if (*cell == '(' && (end == NULL || strcmp(end, ")OVERLAP_F_B") != 0))
        return fail_cell(place, cell, error);
    g_autofree char *inside =
        end != NULL ? g_strndup(cell + 1, (gsize)(end - cell - 1)) : g_strdup(cell);
    g_auto(GStrv) parts = g_strsplit(inside, ";", -1);
    guint count = g_strv_length(parts);
    for (guint i = 0; i < count; i++) {
        MtfPipelineAction action;
        bool fits = parse_action(g_strstrip(parts[i]), &action) && (end != NULL || count == 1) &&
                    (count == 1 || mtf_work_computes(action.work));
        if (!fits)
            return fail_cell(place, cell, error);
        action.with_next = i + 1 < count;
        g_array_append_val(row, action);
    }
    return count > 0 || fail_cell(place, cell, error);
}

static bool parse_row(const char *file, int line, const char *text, GArray *row, GError **error) {
    g_auto(GStrv) cells = g_strsplit(text, ",", -1);
    int idle = 0;
    for (int i = 0; cells[i] != NULL; i++) {
        Place place = { file, line, i + 1 };
        guint before = row->len;
        if (!parse_cell(&place, g_strstrip(cells[i]), row, error))
            return false;
        idle++;
        if (row->len == before)
            continue;
        g_array_index(row, MtfPipelineAction, before).idle = idle - 1;
        idle = 0;
    }
    return true;
}

/* All rows of the text, each a GArray of actions. NULL and an error when one does not parse. */
static GPtrArray *parse_rows(const char *name, const char *text, GError **error) {
    g_autoptr(GPtrArray) rows = g_ptr_array_new_with_free_func((GDestroyNotify)g_array_unref);
    g_auto(GStrv) lines = g_strsplit(text, "\n", -1);
    for (int i = 0; lines[i] != NULL; i++) {
        const char *line = g_strstrip(lines[i]);
        if (*line == '#' || *line == '\0')
            continue;
        GArray *row = g_array_new(FALSE, FALSE, sizeof(MtfPipelineAction));
        g_ptr_array_add(rows, row);
        if (!parse_row(name, i + 1, line, row, error))
            return NULL;
    }
    if (rows->len == 0) {
        mtf_input_error(error, "%s: no line with actions; a schedule has one line for each rank",
                        name);
        return NULL;
    }
    return g_steal_pointer(&rows);
}

/* An order as large as the largest stage and micro-batch. Every rank takes the stages it computes. */
static MtfPipelineOrder *order_of_rows(const char *name, const GPtrArray *rows, GError **error) {
    int stages = 0, microbatches = 0;
    for (guint r = 0; r < rows->len; r++) {
        const GArray *row = g_ptr_array_index(rows, r);
        for (guint i = 0; i < row->len; i++) {
            const MtfPipelineAction *action = &g_array_index(row, MtfPipelineAction, i);
            stages = MAX(stages, action->stage + 1);
            microbatches = MAX(microbatches, action->microbatch + 1);
        }
    }
    /* An order has at least an action a pair, so no honest file has many more pairs than actions. */
    if (stages == 0 || microbatches == 0 || (int64_t)stages * microbatches > 1 << 24) {
        mtf_input_error(error, "%s: %d stages and %d micro-batches make no pipeline", name, stages,
                        microbatches);
        return NULL;
    }
    MtfPipelineOrder *order =
        mtf_pipeline_order_new((int)rows->len, stages, microbatches, MTF_STAGES_LOOP);
    for (int s = 0; s < stages; s++)
        order->rank_of_stage[s] = -1;
    for (guint r = 0; r < rows->len; r++)
        g_array_append_vals(order->actions[r], ((GArray *)g_ptr_array_index(rows, r))->data,
                            ((GArray *)g_ptr_array_index(rows, r))->len);
    return order;
}

static bool find_ranks_of_stages(MtfPipelineOrder *order, const char *name, GError **error) {
    for (int r = 0; r < order->ranks; r++)
        for (int i = 0; i < mtf_pipeline_length(order, r); i++) {
            const MtfPipelineAction *action = mtf_pipeline_action(order, r, i);
            int *rank = &order->rank_of_stage[action->stage];
            if (*rank >= 0 && *rank != r)
                return mtf_input_error(error, "%s: stage %d stands on rank %d and on rank %d", name,
                                       action->stage, *rank, r);
            *rank = r;
        }
    for (int s = 0; s < order->stages; s++)
        if (order->rank_of_stage[s] < 0)
            return mtf_input_error(error, "%s: stage %d of %d is on no rank", name, s,
                                   order->stages);
    return true;
}

/* Older files write B for I: where W stands as well, B cannot hold both gradients. */
static void read_old_backwards(MtfPipelineOrder *order) {
    gsize pairs = (gsize)order->stages * (gsize)order->microbatches;
    g_autofree bool *has_weight = g_new0(bool, pairs);
    for (int pass = 0; pass < 2; pass++)
        for (int r = 0; r < order->ranks; r++)
            for (int i = 0; i < mtf_pipeline_length(order, r); i++) {
                MtfPipelineAction *action = mtf_pipeline_action(order, r, i);
                if (action->microbatch < 0)
                    continue;
                int pair = mtf_pipeline_pair(order, action->stage, action->microbatch);
                if (pass == 0 && action->work == MTF_WORK_WEIGHT_GRADIENT)
                    has_weight[pair] = true;
                if (pass == 1 && action->work == MTF_WORK_BACKWARD && has_weight[pair])
                    action->work = MTF_WORK_INPUT_GRADIENT;
            }
}

MtfPipelineOrder *mtf_pipeline_parse(const char *name, const char *text, GError **error) {
    g_autoptr(GPtrArray) rows = parse_rows(name, text, error);
    g_autoptr(MtfPipelineOrder) order = rows != NULL ? order_of_rows(name, rows, error) : NULL;
    if (order == NULL || !find_ranks_of_stages(order, name, error))
        return NULL;
    read_old_backwards(order);
    if (!mtf_pipeline_check(order, name, error))
        return NULL;
    return g_steal_pointer(&order);
}

MtfPipelineOrder *mtf_pipeline_load(const char *path, GError **error) {
    gsize length = 0;
    g_autofree char *text = mtf_file_read(path, &length, error);
    if (text == NULL)
        return NULL;
    if (strlen(text) != length || !g_utf8_validate(text, (gssize)length, NULL)) {
        mtf_input_error(error, "%s: not a text file", path);
        return NULL;
    }
    return mtf_pipeline_parse(path, text, error);
}

char *mtf_pipeline_action_format(const MtfPipelineAction *action) {
    if (action->microbatch < 0)
        return g_strdup_printf("%d%s", action->stage, work_names[action->work]);
    return g_strdup_printf("%d%s%d", action->stage, work_names[action->work], action->microbatch);
}

char *mtf_pipeline_format(const MtfPipelineOrder *order) {
    GString *text = g_string_new(NULL);
    for (int r = 0; r < order->ranks; r++) {
        bool inside = false;
        for (int i = 0; i < mtf_pipeline_length(order, r); i++) {
            const MtfPipelineAction *action = mtf_pipeline_action(order, r, i);
            g_autofree char *cell = mtf_pipeline_action_format(action);
            g_string_append(text, inside ? ";" : i > 0 ? "," : "");
            for (int idle = 0; idle < action->idle; idle++)
                g_string_append_c(text, ',');
            if (!inside && action->with_next)
                g_string_append_c(text, '(');
            g_string_append(text, cell);
            if (inside && !action->with_next)
                g_string_append(text, ")OVERLAP_F_B");
            inside = action->with_next;
        }
        g_string_append_c(text, '\n');
    }
    return g_string_free(text, FALSE);
}
