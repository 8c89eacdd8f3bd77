// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/free/placement_lists.h"

#include "analyzer/free/operation_profile.h"

struct MtfPlacementLists {
    GHashTable *lists;  /* GBytes of placements -> GArray: equal lists are one */
    GHashTable *merged; /* GBytes of the lists that they are merged of -> GArray */
};

static GHashTable *new_table(void) {
    return g_hash_table_new_full(g_bytes_hash, g_bytes_equal, (GDestroyNotify)g_bytes_unref,
                                 (GDestroyNotify)g_array_unref);
}

MtfPlacementLists *mtf_placement_lists_new(void) {
    MtfPlacementLists *all = g_new(MtfPlacementLists, 1);
    *all = (MtfPlacementLists){ .lists = new_table(), .merged = new_table() };
    return all;
}

void mtf_placement_lists_free(MtfPlacementLists *all) {
    g_hash_table_unref(all->lists);
    g_hash_table_unref(all->merged);
    g_free(all);
}

static GArray *merge(const GPtrArray *lists, bool partial) {
    GArray *merged = g_array_new(FALSE, FALSE, sizeof(MtfPlacement));
    MtfPlacement replicated = mtf_placement_replicated();
    mtf_placements_add(merged, &replicated);
    for (guint l = 0; l < lists->len; l++) {
        const GArray *list = g_ptr_array_index(lists, l);
        for (guint i = 0; i < list->len; i++) {
            const MtfPlacement *placement = &g_array_index(list, MtfPlacement, i);
            if (partial || mtf_placement_partial_axes(placement) == 0)
                mtf_placements_add(merged, placement);
        }
    }
    return merged;
}

/* The first list with the same placements; takes over a reference and returns one. */
static GArray *shared_list(MtfPlacementLists *all, GArray *placements) {
    gsize bytes = placements->len * sizeof(MtfPlacement);
    g_autoptr(GBytes) key = g_bytes_new(placements->data, bytes);
    GArray *known = g_hash_table_lookup(all->lists, key);
    if (known == NULL) {
        g_hash_table_insert(all->lists, g_steal_pointer(&key), g_array_ref(placements));
        return placements;
    }
    g_array_unref(placements);
    return g_array_ref(known);
}

GArray *mtf_placement_lists_merge(MtfPlacementLists *all, const GPtrArray *lists, bool partial) {
    g_autoptr(GByteArray) text = g_byte_array_new();
    g_byte_array_append(text, (const guint8 *)&partial, sizeof partial);
    g_byte_array_append(text, (const guint8 *)lists->pdata, lists->len * (guint)sizeof(gpointer));
    g_autoptr(GBytes) key = g_bytes_new(text->data, text->len);
    GArray *known = g_hash_table_lookup(all->merged, key);
    if (known != NULL)
        return g_array_ref(known);
    GArray *merged = shared_list(all, merge(lists, partial));
    g_hash_table_insert(all->merged, g_steal_pointer(&key), g_array_ref(merged));
    return merged;
}
