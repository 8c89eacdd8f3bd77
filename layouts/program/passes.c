// SPDX-License-Identifier: GPL-3.0-or-later
#include "layouts/program/passes.h"

#include "layouts/base/error.h"
#include "layouts/base/json_writer.h"
#include "layouts/graph_file/graph_json.h"
#include "layouts/program/algorithm_list.h"
#include "layouts/program/combine_collectives.h"
#include "layouts/program/delayed_updates.h"
#include "layouts/program/fused_groups.h"
#include "layouts/program/lifetimes.h"
#include "layouts/program/overlap_windows.h"
#include "layouts/program/program_order.h"

#include <string.h>

static void order(MtfProgram *program) {
    const MtfExecution *execution = &program->layout->execution;
    g_assert(execution->order == NULL || execution->order_length == mtf_program_length(program));
    if (execution->order != NULL)
        mtf_program_reorder(program, execution->order);
}

static void combine_collectives(MtfProgram *program) {
    int64_t bytes = program->layout->execution.bucket_bytes;
    if (bytes > 0)
        mtf_program_combine_collectives(program, bytes);
}

/* An order that was searched says itself where updates stand. */
static void delay_updates(MtfProgram *program) {
    if (program->layout->execution.order == NULL)
        mtf_program_delay_updates(program);
}

static void fuse(MtfProgram *program) {
    mtf_program_fuse(program, MTF_TILE_BYTES);
}

enum { EXECUTE, LOWER };

static const MtfPass passes[] = {
    { "execute", "the training graph as its execution has it: parts, clones, copies", NULL },
    { "lower", "kernels and reshard ops in the order of the operations", NULL },
    { "order", "put them in the order that the execution names", order },
    { "combine-collectives", "send small exchanges as one message", combine_collectives },
    { "alias-buffers", "let results take the bytes of what is dead", mtf_program_alias_buffers },
    { "delay-updates", "let updates wait for their collectives", delay_updates },
    { "overlap", "begin collectives early, wait for them late", mtf_program_open_overlap_windows },
    { "fuse", "group kernels that share tiles", fuse },
    { "choose-algorithms", "let collectives go as the execution names",
      mtf_program_choose_algorithms },
};

const MtfPass *mtf_pass(int i) {
    return i >= 0 && i < (int)G_N_ELEMENTS(passes) ? &passes[i] : NULL;
}

int mtf_pass_find(const char *name, GError **error) {
    g_autoptr(GString) known = g_string_new(NULL);
    for (int i = 0; i < (int)G_N_ELEMENTS(passes); i++) {
        if (strcmp(passes[i].name, name) == 0)
            return i;
        g_string_append_printf(known, "%s%s", i > 0 ? ", " : "", passes[i].name);
    }
    mtf_input_error(error, "\"%s\" is no pass; the passes are %s", name, known->str);
    return -1;
}

MtfProgram *mtf_lower_until(const MtfGraph *graph, const MtfLayout *layout, int last) {
    MtfProgram *program = mtf_program_emit(graph, layout);
    for (int i = LOWER + 1; i <= last; i++)
        passes[i].run(program);
    return program;
}

MtfProgram *mtf_lower(const MtfGraph *graph, const MtfLayout *layout) {
    return mtf_lower_until(graph, layout, (int)G_N_ELEMENTS(passes) - 1);
}

static char *print_graph(const MtfGraph *graph) {
    cJSON *json = mtf_graph_to_json(graph);
    char *text = mtf_json_print(json);
    cJSON_Delete(json);
    return text;
}

char *mtf_dump_after(const MtfGraph *graph, const MtfLayout *layout, const char *pass,
                     GError **error) {
    int last = mtf_pass_find(pass, error);
    if (last < 0)
        return NULL;
    if (last == EXECUTE)
        return print_graph(graph);
    g_autoptr(MtfProgram) program = mtf_lower_until(graph, layout, last);
    return mtf_program_format(program);
}
