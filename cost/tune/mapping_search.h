// SPDX-License-Identifier: GPL-3.0-or-later
/* Which physical axes should carry which mesh axes? The search tries every way to cut the physical
 * axes into pieces and to deal the pieces to the mesh axes: whole axes, several of them, parts that
 * are contiguous or strided. Physical axes that are alike may be exchanged, so only one of such
 * mappings is tried. Where neighbours exchange messages, mesh axes over several pieces are also
 * tried as snakes, which give neighbours one hop. The order-keeping mapping is the first candidate
 * and stays unless another is cheaper. */
#ifndef MTF_MAPPING_SEARCH_H
#define MTF_MAPPING_SEARCH_H

#include "cost/collectives/collective.h"

/* What a mesh does in a step: a collective over mesh axes, as often as `calls`. */
typedef struct {
    MtfCollectiveKind kind;
    unsigned mesh_axes_mask;
    double bytes;
    double calls;
} MtfCollectiveTraffic;

/* Seconds of all the traffic on a map. */
double mtf_traffic_seconds(const MtfMachine *machine, const MtfMeshMap *map,
                           const MtfCollectiveTraffic *traffic, int count);

typedef struct {
    double seconds;       /* of the mapping found */
    double lexicographic; /* of the order-keeping one */
    int64_t candidates;   /* mappings tried */
    bool exhaustive;      /* false: the limit on candidates was reached */
} MtfMappingSearch;

/* Replaces the mapping of `map` (as mtf_mesh_map_init leaves it) by the cheapest for that traffic,
 * trying at most `limit` mappings. Never makes the traffic slower. */
MtfMappingSearch mtf_mapping_search(const MtfMachine *machine, MtfMeshMap *map,
                                    const MtfCollectiveTraffic *traffic, int count, int64_t limit);

#endif
