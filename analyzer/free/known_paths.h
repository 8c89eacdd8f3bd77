// SPDX-License-Identifier: GPL-3.0-or-later
/* Prices of reshardings that are known already, by what they depend on beside the mesh, the machine and
 * how the mesh lies on it. Those are the same for all who share a table: the problems of the parts of a
 * graph, which hold the same tensors and differ in operations.
 *
 *     unit 0 ──┐  PathKey: sizes 64, others 8192, bf16, rows=0 ─► rows=1
 *     unit 1 ──┼─► 1,204 ns
 *     unit 2 ──┘ */
#ifndef MTF_KNOWN_PATHS_H
#define MTF_KNOWN_PATHS_H

#include "layouts/placement/placement.h"

#include <glib.h>

/* What the price of a resharding depends on: the sizes of the dimensions that are split before or
 * after, numbered as they turn up, and how many elements the others make. */
typedef struct {
    int64_t sizes[2 * MTF_MAX_MESH_AXES]; /* unused places are zero */
    int64_t others;
    gint64 dtype, host; /* host: nanoseconds of a launch */
    MtfPlacement from, to;
    guint64 hash; /* of all before it */
} MtfPathKey;

typedef struct MtfKnownPaths MtfKnownPaths;

/* Nothing is known; one reference. */
MtfKnownPaths *mtf_known_paths_new(void);
MtfKnownPaths *mtf_known_paths_ref(MtfKnownPaths *paths);

/* The last reference frees it; NULL is accepted. */
void mtf_known_paths_unref(MtfKnownPaths *paths);

/* The nanoseconds that are known for `key`, or -1. Threads may ask, and keep, at the same time. */
int64_t mtf_known_paths_find(MtfKnownPaths *paths, const MtfPathKey *key);
void mtf_known_paths_keep(MtfKnownPaths *paths, const MtfPathKey *key, int64_t nanoseconds);

#endif
