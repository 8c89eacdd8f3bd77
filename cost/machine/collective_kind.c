// SPDX-License-Identifier: GPL-3.0-or-later
#include "cost/machine/collective_kind.h"

#include "layouts/base/error.h"

#include <string.h>

static const char *const names[MTF_COLLECTIVE_KINDS] = {
    "allreduce", "reduce_scatter", "allgather", "alltoall", "broadcast", "permute", "halo", "p2p",
};

const char *mtf_collective_kind_name(MtfCollectiveKind kind) {
    return names[kind];
}

/* The text in lower case without hyphens and underscores. */
static char *plain(const char *text) {
    GString *out = g_string_new(NULL);
    for (const char *c = text; *c != '\0'; c++)
        if (*c != '-' && *c != '_')
            g_string_append_c(out, g_ascii_tolower(*c));
    return g_string_free(out, FALSE);
}

bool mtf_collective_kind_parse(const char *text, MtfCollectiveKind *kind, GError **error) {
    g_autofree char *wanted = plain(text);
    for (int i = 0; i < MTF_COLLECTIVE_KINDS; i++) {
        g_autofree char *name = plain(names[i]);
        if (strcmp(wanted, name) != 0)
            continue;
        *kind = (MtfCollectiveKind)i;
        return true;
    }
    return mtf_input_error(error,
                           "\"%s\" is not a collective (allreduce, reduce_scatter, allgather, "
                           "alltoall, broadcast, permute, halo, p2p)",
                           text);
}
