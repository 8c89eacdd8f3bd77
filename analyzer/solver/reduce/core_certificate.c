// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/solver/reduce/core_certificate.h"

void mtf_certify_begin(MtfCore *core, MtfCertificate *certificate) {
    core->certificate = certificate;
    mtf_certificate_begin(certificate);
    mtf_certificate_two(certificate, "scale", core->cost_shift, core->usage_shift);
    mtf_certify_rows(core);
}

void mtf_certify_rows(const MtfCore *core) {
    mtf_certificate_begin_line(core->certificate, "rows");
    for (int r = 0; r < core->rows; r++)
        mtf_certificate_add(core->certificate, core->row_time[r]);
    mtf_certificate_end_line(core->certificate);
}

void mtf_certify_keep(const MtfCore *core, int node, const int16_t *list, int count) {
    mtf_certificate_begin_line(core->certificate, "keep");
    mtf_certificate_add(core->certificate, node);
    for (int i = 0; i < count; i++)
        mtf_certificate_add(core->certificate, list[i]);
    mtf_certificate_end_line(core->certificate);
}

void mtf_certify_join(const MtfCore *core, int a, int b, const int16_t *of_a, const int16_t *of_b,
                      int count) {
    mtf_certificate_begin_line(core->certificate, "join");
    mtf_certificate_add(core->certificate, a);
    mtf_certificate_add(core->certificate, b);
    for (int i = 0; i < count; i++) {
        mtf_certificate_add(core->certificate, of_a != NULL ? of_a[i] : i);
        mtf_certificate_add(core->certificate, of_b[i]);
    }
    mtf_certificate_end_line(core->certificate);
}

void mtf_certify_values(const MtfCore *core, int node, const int64_t *cost) {
    for (int p = 0; core->certificate != NULL && p < core->nodes[node].values; p++)
        if (cost[p] >= MTF_CORE_IMPOSSIBLE && core->nodes[node].cost[p] < MTF_CORE_IMPOSSIBLE)
            mtf_certificate_two(core->certificate, "value", node, p);
}

void mtf_certify_entries(const MtfCore *core, int edge, const int64_t *matrix) {
    const MtfCoreEdge *old = mtf_core_edge(core, edge);
    int columns = core->nodes[old->b].values;
    if (core->certificate == NULL)
        return;
    mtf_certificate_begin_line(core->certificate, "entry");
    mtf_certificate_add(core->certificate, old->a);
    mtf_certificate_add(core->certificate, old->b);
    for (int i = 0; i < core->nodes[old->a].values * columns; i++) {
        if (matrix[i] < MTF_CORE_IMPOSSIBLE || old->cost[i] >= MTF_CORE_IMPOSSIBLE)
            continue;
        mtf_certificate_add(core->certificate, i / columns);
        mtf_certificate_add(core->certificate, i % columns);
    }
    mtf_certificate_end_line(core->certificate);
}

void mtf_certify_move(const MtfCore *core, int node, int other, const int64_t *message) {
    mtf_certificate_begin_line(core->certificate, "move");
    mtf_certificate_add(core->certificate, node);
    mtf_certificate_add(core->certificate, other);
    for (int p = 0; p < core->nodes[node].values; p++)
        mtf_certificate_add(core->certificate, message[p]);
    mtf_certificate_end_line(core->certificate);
}
