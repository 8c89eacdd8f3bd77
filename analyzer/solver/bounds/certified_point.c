// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/solver/bounds/certified_point.h"

static bool is_zero(const int64_t *list, int count) {
    for (int i = 0; i < count; i++)
        if (list[i] != 0)
            return false;
    return true;
}

static void certify_message(MtfCertificate *certificate, const MtfCore *core,
                            const MtfExactBound *exact, int edge, int node) {
    const int64_t *message = mtf_exact_bound_message(exact, edge, node);
    int values = core->nodes[node].values;
    if (is_zero(message, values))
        return;
    mtf_certificate_begin_line(certificate, "message");
    mtf_certificate_add(certificate, node);
    mtf_certificate_add(certificate, mtf_core_other_end(mtf_core_edge(core, edge), node));
    for (int p = 0; p < values; p++)
        mtf_certificate_add(certificate, message[p]);
    mtf_certificate_end_line(certificate);
}

void mtf_certify_point(MtfCertificate *certificate, const MtfExactBound *exact,
                       const MtfCore *core) {
    if (certificate == NULL)
        return;
    mtf_certificate_two(certificate, "point", mtf_exact_bound_shift(exact),
                        mtf_exact_bound_price_shift(exact));
    for (int r = 0; r < core->rows; r++)
        if (mtf_exact_bound_price(exact, r) > 0)
            mtf_certificate_two(certificate, "price", core->row_time[r],
                                mtf_exact_bound_price(exact, r));
    for (int e = -1; mtf_core_next_edge(core, &e);) {
        const MtfCoreEdge *edge = mtf_core_edge(core, e);
        certify_message(certificate, core, exact, (int)e, edge->a);
        certify_message(certificate, core, exact, (int)e, edge->b);
    }
    mtf_certificate_word(certificate, "end");
}

void mtf_certify_constant(const MtfCore *core) {
    mtf_certificate_two(core->certificate, "point", 0, 0);
    mtf_certificate_word(core->certificate, "end");
    mtf_certificate_one(core->certificate, "bound", core->constant);
}

void mtf_certify_bound(MtfCertificate *certificate, const MtfExactBound *exact,
                       const MtfCore *core) {
    if (certificate == NULL)
        return;
    mtf_certificate_begin_bound(certificate);
    mtf_certify_point(certificate, exact, core);
    mtf_certificate_one(certificate, "bound", mtf_exact_bound_cost(exact));
    mtf_certificate_end_bound(certificate);
}

void mtf_certify_useless(const MtfExactBound *exact, const MtfCore *core, int node, int value,
                         int64_t cutoff) {
    MtfCertificate *certificate = core->certificate;
    mtf_certificate_two(certificate, "assume", node, value);
    mtf_certify_point(certificate, exact, core);
    mtf_certificate_one(certificate, "prune", cutoff);
    mtf_certificate_word(certificate, "end");
    mtf_certificate_word(certificate, "done");
}
