// SPDX-License-Identifier: GPL-3.0-or-later
/* What an operation's row asks of its inputs and attributes, and what follows for its outputs. */
#ifndef MTF_LAYOUTS_OPERATION_CHECK_H
#define MTF_LAYOUTS_OPERATION_CHECK_H

#include "layouts/graph/graph.h"

/* Checks `operation` against its row and infers the outputs. Used by mtf_graph_add_operation. */
bool mtf_operation_infer(const MtfGraph *graph, const MtfNewOperation *operation, MtfShape *shape,
                         MtfDtype *dtype, GError **error);

#endif
