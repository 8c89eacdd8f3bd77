// SPDX-License-Identifier: GPL-3.0-or-later
#include "layouts/base/nearest_name.h"

#include <string.h>

#define MAX_LENGTH 64

/* Edit distance with swaps of neighbours (optimal string alignment), three rows of the table at a
 * time. */
static int edit_distance(const char *a, const char *b) {
    int rows[3][MAX_LENGTH + 1];
    int *before = rows[0], *last = rows[1], *now = rows[2];
    int n = (int)strlen(b);
    for (int j = 0; j <= n; j++)
        last[j] = j;
    for (int i = 1; a[i - 1] != '\0'; i++) {
        now[0] = i;
        for (int j = 1; j <= n; j++) {
            int replaced = last[j - 1] + (a[i - 1] != b[j - 1]);
            now[j] = MIN(replaced, 1 + MIN(last[j], now[j - 1]));
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                now[j] = MIN(now[j], before[j - 2] + 1);
        }
        int *free_row = before;
        before = last;
        last = now;
        now = free_row;
    }
    return last[n];
}

const char *mtf_nearest_name(const char *name, const char *const *candidates) {
    if (strlen(name) > MAX_LENGTH)
        return NULL;
    const char *nearest = NULL;
    int least = ((int)strlen(name) + 2) / 3 + 1;
    for (; *candidates != NULL; candidates++) {
        if (strlen(*candidates) > MAX_LENGTH)
            continue;
        int distance = edit_distance(name, *candidates);
        if (distance < least && distance < (int)strlen(*candidates)) {
            least = distance;
            nearest = *candidates;
        }
    }
    return nearest;
}

char *mtf_did_you_mean(const char *name, const char *const *candidates) {
    const char *nearest = mtf_nearest_name(name, candidates);
    return nearest == NULL ? g_strdup("") : g_strdup_printf(" (did you mean \"%s\"?)", nearest);
}

char *mtf_there_are(const char *name, const GPtrArray *known) {
    g_autoptr(GPtrArray) names = g_ptr_array_new();
    g_ptr_array_extend(names, (GPtrArray *)known, NULL, NULL);
    g_ptr_array_add(names, NULL);
    g_autofree char *list = g_strjoinv(", ", (char **)names->pdata);
    g_autofree char *hint = mtf_did_you_mean(name, (const char *const *)names->pdata);
    return g_strconcat(hint, "; there are ", list, NULL);
}
