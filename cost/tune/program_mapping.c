// SPDX-License-Identifier: GPL-3.0-or-later
#include "cost/tune/program_mapping.h"

static void add_traffic(GArray *traffic, MtfCollectiveTraffic one) {
    for (guint i = 0; i < traffic->len; i++) {
        MtfCollectiveTraffic *other = &g_array_index(traffic, MtfCollectiveTraffic, i);
        if (other->kind != one.kind || other->mesh_axes_mask != one.mesh_axes_mask ||
            other->bytes != one.bytes)
            continue;
        other->calls += one.calls;
        return;
    }
    g_array_append_val(traffic, one);
}

GArray *mtf_program_traffic(const MtfProgram *program) {
    GArray *traffic = g_array_new(FALSE, FALSE, sizeof(MtfCollectiveTraffic));
    for (int i = 0; i < mtf_program_length(program); i++) {
        const MtfInstruction *instruction = mtf_program_instruction(program, i);
        MtfCollectiveTraffic one = { .mesh_axes_mask = instruction->reshard.axes,
                                     .bytes = mtf_instruction_message_bytes(instruction),
                                     .calls = mtf_program_times(program, i) };
        if (mtf_instruction_collective_kind(instruction, &one.kind))
            add_traffic(traffic, one);
    }
    return traffic;
}

MtfMappingSearch mtf_program_map(MtfPricer *pricer, const MtfProgram *program, int64_t limit) {
    g_autoptr(GArray) traffic = mtf_program_traffic(program);
    return mtf_mapping_search(pricer->machine, &pricer->map,
                              (const MtfCollectiveTraffic *)traffic->data, (int)traffic->len,
                              limit);
}
