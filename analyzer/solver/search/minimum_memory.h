// SPDX-License-Identifier: GPL-3.0-or-later
/* When nothing fits: which limit would do. The costs are set aside (all zero, impossible ones
 * stay), and the limit is bisected between a peak that some choice reaches and one that is proven
 * too small:
 *
 *     0 .......... needed ................ enough ............. memory
 *     proven too small   not known          some choice peaks here  */
#ifndef MTF_MINIMUM_MEMORY_H
#define MTF_MINIMUM_MEMORY_H

#include "analyzer/solver/search/layout_solve.h"

/* Spends what is left of the time (or of some seconds) on narrowing the two numbers; without a
 * deadline, work that depends on the problem alone, which narrows them less where it is large. The
 * certificate (or NULL), which says that nothing fits, then says what is needed at least. */
MtfInfeasibility mtf_minimum_memory(const MtfLayoutProblem *problem,
                                    const MtfSearchControl *control, MtfCertificate *certificate);

/* Sets `error` (MTF_ERROR_FIT) to one sentence that says all of it. Always returns false. */
bool mtf_infeasibility_explain(const MtfLayoutProblem *problem,
                               const MtfInfeasibility *infeasibility, GError **error);

#endif
