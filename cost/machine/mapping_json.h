// SPDX-License-Identifier: GPL-3.0-or-later
/* How a mesh lies on a machine, as plans say it: for each mesh axis the pieces of physical axes
 * that carry it, from the slowest to the fastest,
 *
 *     {"rows": [{"axis": 0, "size": 8, "stride": 2}], "cols": [{"axis": 1, "size": 4, "stride": 1,
 *      "snake": true}, …]}
 *
 * where the pieces of an axis whose members walk them as a snake (cost/machine/mapping.h) say so. */
#ifndef MTF_MAPPING_JSON_H
#define MTF_MAPPING_JSON_H

#include "cost/machine/mesh_map.h"
#include "layouts/base/json_reader.h"
#include "layouts/placement/mesh.h"

#include <cjson/cJSON.h>

/* "rows on axis 0 (8, every 2); cols on axis 0 (2), axis 1 (16)", for people: the physical axes
 * that carry each mesh axis, how many places of each, and how far apart; free with g_free. */
char *mtf_mapping_format(const MtfMesh *mesh, const MtfMapping *mapping);

/* The caller owns the tree. */
cJSON *mtf_mapping_to_json(const MtfMesh *mesh, const MtfMapping *mapping);

/* Replaces the mapping of `map`, which holds the mesh in order, by what a plan's "mapping" says;
 * null leaves it. Fails on unknown keys and on pieces that do not lay the mesh on the map's slice,
 * each place once. */
bool mtf_mapping_from_json(const MtfJson *where, const MtfMesh *mesh, MtfMeshMap *map,
                           GError **error);

#endif
