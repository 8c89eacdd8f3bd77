// SPDX-License-Identifier: GPL-3.0-or-later
/* Writes the point of an exact bound into a certificate (certificate.h): its prices and messages. */
#ifndef MTF_CERTIFIED_POINT_H
#define MTF_CERTIFIED_POINT_H

#include "analyzer/solver/bounds/exact_bound.h"

/* The point of `exact` as last updated, which is one of this core. */
void mtf_certify_point(MtfCertificate *certificate, const MtfExactBound *exact,
                       const MtfCore *core);

/* A bound that needs no prices and no messages: of a core without nodes. */
void mtf_certify_constant(const MtfCore *core);

/* The point and what it proves: no choice costs less than the bound. */
void mtf_certify_bound(MtfCertificate *certificate, const MtfExactBound *exact,
                       const MtfCore *core);

/* The point and that no choice of at most `cutoff` takes `value` of `node`, which it was made for. */
void mtf_certify_useless(const MtfExactBound *exact, const MtfCore *core, int node, int value,
                         int64_t cutoff);

#endif
