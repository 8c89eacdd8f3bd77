// SPDX-License-Identifier: GPL-3.0-or-later
/* The drawings of a partition: the whole step as graph.dot and graph.svg, and for the page one
 * picture a section, of layers laid out alike only one. `dot` draws both, each within its time; the
 * whole step is drawn coarser where that does not do, and is left out where nothing does. */
#ifndef MTF_DRAWINGS_H
#define MTF_DRAWINGS_H

#include "reports/drawing/partition_view.h"

typedef struct {
    int part, phase;
    char *svg; /* an SVG document */
} MtfSectionPicture;

typedef struct {
    MtfViewLevel level;  /* of graph.svg; MTF_VIEW_LEVELS = there is none */
    GPtrArray *pictures; /* MtfSectionPicture *, by part and phase; empty where dot gave none */
} MtfDrawings;

/* Writes graph.dot, graph.svg and parts.dot into the folder. What cannot be drawn is said on
 * standard error and is not fatal; NULL when the folder cannot be written. */
MtfDrawings *mtf_drawings_write(const char *folder, const MtfStepParts *parts, GError **error);

/* Writes the view of a cut graph likewise. `*svg` becomes the drawing, NULL where dot gave none; free with
 * g_free. */
bool mtf_drawings_write_cut(const char *folder, const MtfPartitionView *view, char **svg,
                            GError **error);

void mtf_drawings_free(MtfDrawings *drawings);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(MtfDrawings, mtf_drawings_free)

/* The picture of a section, or NULL. */
const char *mtf_drawings_find(const MtfDrawings *drawings, int part, int phase);

#endif
