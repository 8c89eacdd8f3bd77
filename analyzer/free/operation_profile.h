// SPDX-License-Identifier: GPL-3.0-or-later
/* One operation's strategies, what each wants of its inputs and leaves of its outputs, and what its
 * kernel costs. Operations that are alike (the same row, attributes and shapes: repeated layers)
 * share one profile, so that they are priced once. */
#ifndef MTF_OPERATION_PROFILE_H
#define MTF_OPERATION_PROFILE_H

#include "analyzer/free/strategies.h"
#include "cost/price/price.h"
#include "layouts/placement/layout.h"

/* The distinct placements that one operand has under an operation's strategies. */
typedef struct {
    GArray *placements; /* MtfPlacement */
    int *of;            /* for each strategy: index into placements */
} MtfOperationPort;

typedef struct {
    GArray *strategies; /* MtfStrategy */
    int n_inputs, n_outputs;
    MtfOperationPort *inputs;
    MtfOperationPort outputs[MTF_MAX_OUTPUTS];
    int64_t *costs;                   /* nanoseconds of the kernel under each strategy */
    int64_t *copies[MTF_MAX_OUTPUTS]; /* of moving output k into the variable it updates */
} MtfOperationProfile;

typedef struct MtfOperationProfiles MtfOperationProfiles;

/* `updated_variable` has for each tensor the variable whose next value it is, or -1. It, the graph,
 * the mesh, the pricer and the pins must outlive the profiles. */
MtfOperationProfiles *mtf_operation_profiles_new(const MtfGraph *graph, const MtfMesh *mesh,
                                                 const MtfPricer *pricer,
                                                 const int *updated_variable, const MtfPin *pins,
                                                 int n_pins);
void mtf_operation_profiles_free(MtfOperationProfiles *profiles);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(MtfOperationProfiles, mtf_operation_profiles_free)

/* The profile of an operation, owned by `profiles`; without strategies where the pins leave none.
 */
const MtfOperationProfile *mtf_operation_profile(MtfOperationProfiles *profiles, int operation);

/* Nanoseconds of a step's kernels at least, each operation's cut as suits it best and nothing exchanged: no free
 * layout of the mesh costs less. Takes little on meshes of many axes, too. */
int64_t mtf_operations_least(const MtfGraph *graph, const MtfMesh *mesh, const MtfPricer *pricer);

/* The index of a placement in a list of MtfPlacement, or -1; the same after adding it at the end
 * where it is missing. */
int mtf_placements_find(const GArray *placements, const MtfPlacement *placement);
int mtf_placements_add(GArray *placements, const MtfPlacement *placement);

#endif
