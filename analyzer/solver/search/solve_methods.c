// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/solver/search/solve_methods.h"

#include "layouts/base/error.h"

const MtfSolveMethod mtf_solve_methods[] = {
    { "alike", MTF_METHOD_ALIKE, "begins with repeated layers that take the same choice" },
    { "local", MTF_METHOD_LOCAL, "repairs and improves decoded choices" },
    { "neighbourhoods", MTF_METHOD_NEIGHBOURHOODS,
      "branches on some dozens of nodes of the best choice" },
    { "dive", MTF_METHOD_DIVE, "looks for choices a little above the bound, or refutes them" },
    { "probe", MTF_METHOD_PROBE, "excludes single values" },
    { "pairs", MTF_METHOD_PAIRS, "joins nodes of short cycles" },
    { "relaxation", MTF_METHOD_RELAXATION,
      "bounds wide cores by the memory of few times alone, and joins more nodes there" },
    { "elimination", MTF_METHOD_ELIMINATION,
      "eliminates the nodes of a core of small width, with their memory" },
    { "branch", MTF_METHOD_BRANCH, "branches on the whole core" },
    { "program", MTF_METHOD_PROGRAM, "asks GLPK, to its tolerance" },
    { NULL, 0, NULL },
};

static const MtfSolveMethod *find_method(const char *name) {
    for (const MtfSolveMethod *method = mtf_solve_methods; method->name != NULL; method++)
        if (g_str_equal(method->name, name))
            return method;
    return NULL;
}

char *mtf_solve_methods_format(void) {
    GString *names = g_string_new(NULL);
    for (const MtfSolveMethod *method = mtf_solve_methods; method->name != NULL; method++)
        g_string_append_printf(names, "%s%s", names->len > 0 ? ", " : "", method->name);
    return g_string_free(names, FALSE);
}

static bool refuse(const char *name, GError **error) {
    g_autofree char *names = mtf_solve_methods_format();
    return mtf_input_error(error, "--method %s is not one of all, messages, %s", name, names);
}

bool mtf_solve_methods_parse(const char *list, MtfSolveMethods *methods, GError **error) {
    g_auto(GStrv) names = g_strsplit(list, ",", -1);
    guint found = 0;
    for (char **name = names; *name != NULL; name++) {
        const MtfSolveMethod *method = find_method(*name);
        bool all = g_str_equal(*name, "all");
        if (method == NULL && !all && !g_str_equal(*name, "messages"))
            return refuse(*name, error);
        found |= all ? (guint)MTF_METHODS_ALL : method != NULL ? (guint)method->bit : 0;
    }
    if (names[0] == NULL)
        return refuse("\"\"", error);
    *methods = (MtfSolveMethods)found;
    return true;
}
