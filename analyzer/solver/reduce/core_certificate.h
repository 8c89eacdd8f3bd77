// SPDX-License-Identifier: GPL-3.0-or-later
/* Says in a core's certificate (certificate.h) what is done to the core. Nothing is said where the core
 * has none. */
#ifndef MTF_CORE_CERTIFICATE_H
#define MTF_CORE_CERTIFICATE_H

#include "analyzer/solver/reduce/layout_core.h"

/* Begins the certificate of a problem with the core that was just made of it; from here on the core's
 * steps are appended, to the certificate that stays the caller's. */
void mtf_certify_begin(MtfCore *core, MtfCertificate *certificate);

/* The rows as they are now. */
void mtf_certify_rows(const MtfCore *core);

/* A node keeps the values of a list. */
void mtf_certify_keep(const MtfCore *core, int node, const int16_t *list, int count);

/* `count` pairs of values of the nodes a and b become those of a; of_a = NULL: its values in turn. */
void mtf_certify_join(const MtfCore *core, int a, int b, const int16_t *of_a, const int16_t *of_b,
                      int count);

/* Before a node gets these costs, a matrix these entries: what becomes impossible, as lines of a
 * `prune`. */
void mtf_certify_values(const MtfCore *core, int node, const int64_t *cost);
void mtf_certify_entries(const MtfCore *core, int edge, const int64_t *matrix);

/* Before a message, [values of the node], moves from the edge to the node. */
void mtf_certify_move(const MtfCore *core, int node, int other, const int64_t *message);

#endif
