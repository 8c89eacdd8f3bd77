// SPDX-License-Identifier: GPL-3.0-or-later
/* meshtf-plan verify PROBLEM CERTIFICATE: what --certificate of `solve` or `search` wrote, checked by a reader that
 * shares nothing with the solver. */
#include "analyzer/certificate/certificate_check.h"
#include "analyzer/commands/commands.h"
#include "analyzer/solver/problem/layout_problem_json.h"
#include "layouts/base/command_line.h"
#include "layouts/base/error.h"
#include "layouts/base/json_reader.h"
#include "layouts/base/json_writer.h"

#include <inttypes.h>
#include <stdio.h>

static const char summary[] =
    "Checks a certificate of `meshtf-plan solve` or `search` step by step against its problem, in\n"
    "exact arithmetic and with nothing of the solver:\n\n"
    "  meshtf-plan solve problem.json --certificate proof.txt\n"
    "  meshtf-plan verify problem.json proof.txt\n\n"
    "Status 2: a step has no reason, and nothing is proven.";

static void print_text(const MtfProven *proven) {
    g_autofree char *cost = mtf_int128_format(proven->cost);
    g_autofree char *bound = mtf_int128_format(proven->bound);
    if (proven->needed == MTF_NO_LIMIT)
        printf("proven in %d lines: no choice is possible, whatever the limit\n", proven->lines);
    else if (proven->needed > 0)
        printf("proven in %d lines: no choice is legal in less memory than %" PRId64 "%s\n",
               proven->lines, proven->needed, proven->none_fits ? ", and the limit is less" : "");
    else if (proven->none_fits)
        printf("proven in %d lines: no choice is legal\n", proven->lines);
    else if (proven->has_choice && proven->has_bound && proven->cost == proven->bound)
        printf("proven in %d lines: cost %s is the least of all legal choices\n", proven->lines,
               cost);
    else if (proven->has_choice && proven->has_bound)
        printf("proven in %d lines: a legal choice costs %s, and none less than %s\n",
               proven->lines, cost, bound);
    else
        printf("proven in %d lines: no legal choice costs less than %s\n", proven->lines, bound);
}

static void print_json(const MtfProven *proven) {
    g_autofree char *cost = mtf_int128_format(proven->cost);
    g_autofree char *bound = mtf_int128_format(proven->bound);
    cJSON *object = cJSON_CreateObject();
    if (proven->has_choice)
        cJSON_AddItemToObject(object, "cost", cJSON_CreateRaw(cost));
    if (proven->has_bound)
        cJSON_AddItemToObject(object, "lower_bound", cJSON_CreateRaw(bound));
    cJSON_AddBoolToObject(object, "none_fits", proven->none_fits);
    if (proven->needed > 0 && proven->needed < MTF_NO_LIMIT)
        mtf_json_add_integer(object, "needed", proven->needed);
    mtf_json_add_integer(object, "lines", proven->lines);
    char *text = cJSON_PrintUnformatted(object);
    puts(text);
    cJSON_free(text);
    cJSON_Delete(object);
}

/* One that was cut off between two lines has a reason for each. */
static bool check(const MtfLayoutProblem *problem, const char *text, MtfProven *proven,
                  GError **error) {
    if (!mtf_certificate_check(problem, text, proven, error))
        return false;
    if (proven->has_bound || proven->none_fits || proven->needed > 0)
        return true;
    return mtf_input_error(error, "its %d lines prove no bound", proven->lines);
}

static int verify(const char *problem_path, const char *path, bool json) {
    GError *error = NULL;
    gsize length;
    MtfProven proven;
    g_autoptr(MtfLayoutProblem) problem = mtf_layout_problem_load(problem_path, &error);
    g_autofree char *text = problem != NULL ? mtf_file_read(path, &length, &error) : NULL;
    if (text == NULL)
        return mtf_command_line_fail(g_get_prgname(), error);
    if (!check(problem, text, &proven, &error)) {
        g_prefix_error(&error, "%s: ", path);
        return mtf_command_line_fail(g_get_prgname(), error);
    }
    (json ? print_json : print_text)(&proven);
    return 0;
}

int mtf_command_verify(int argc, char **argv) {
    gboolean json = FALSE;
    const GOptionEntry entries[] = {
        { "json", 0, 0, G_OPTION_ARG_NONE, &json,
          "Print {cost, lower_bound, none_fits, needed, lines}", NULL },
        G_OPTION_ENTRY_NULL,
    };
    GError *error = NULL;
    if (!mtf_command_line_parse(&argc, &argv, entries, "PROBLEM CERTIFICATE", summary, 2, 2,
                                &error))
        return mtf_command_line_fail(g_get_prgname(), error);
    return verify(argv[1], argv[2], json);
}
