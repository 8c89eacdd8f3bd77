// SPDX-License-Identifier: GPL-3.0-or-later
/* Whether an order can be executed. It is complete when every stage does, for every micro-batch, its
 * forward once and its gradients once (I and W, or B), on the rank that has the stage. It is free of
 * deadlock when the graph of who waits for whom has no circle:
 *
 *   - an action waits for the one before it on its rank;
 *   - F waits for F of the stage before, I and B for those of the stage after and for their own F,
 *     W for its I;
 *   - with sends and receives in the order, what comes from another rank waits for its receive, and a
 *     send and its receive wait for one another (rendezvous: neither is over before both have begun).
 *
 * A circle-free order also ends with sends that are buffered or in the background, which wait less.
 * Orders without sends and receives are judged by the data alone; pipeline_lower.h gives them sends
 * and receives that cannot deadlock. */
#ifndef MTF_PIPELINE_CHECK_H
#define MTF_PIPELINE_CHECK_H

#include "layouts/pipeline/pipeline_order.h"

/* Fails with a bad-input error that begins with `name` (the file or schedule) and says which action
 * is missing, twice or misplaced, or names the circle: "rank 0 at 0SEND_F1 waits for rank 1, rank 1
 * at 1SEND_B0 waits for rank 0". */
bool mtf_pipeline_check(const MtfPipelineOrder *order, const char *name, GError **error);

/* Whether the order has sends or receives in it. */
bool mtf_pipeline_has_messages(const MtfPipelineOrder *order);

#endif
