// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/kernels/onednn/onednn_engine.h"

static dnnl_engine_t only_engine;
static dnnl_stream_t only_stream;

bool mtf_onednn_open(dnnl_engine_t *engine, dnnl_stream_t *stream) {
    static gsize opened = 0;
    if (g_once_init_enter(&opened)) {
        bool works = dnnl_engine_create(&only_engine, dnnl_cpu, 0) == dnnl_success &&
                     dnnl_stream_create(&only_stream, only_engine, dnnl_stream_default_flags) ==
                         dnnl_success;
        g_once_init_leave(&opened, works ? 1 : 2);
    }
    *engine = only_engine;
    *stream = only_stream;
    return opened == 1;
}

bool mtf_onednn_has(dnnl_cpu_isa_t wanted) {
    return ((int)dnnl_get_effective_cpu_isa() & (int)wanted) == (int)wanted;
}

bool mtf_onednn_multiplies_bfloat16(void) {
    return mtf_onednn_has(dnnl_cpu_isa_avx512_core_bf16);
}

dnnl_primitive_desc_t mtf_onednn_describe(const_dnnl_op_desc_t operation,
                                          const_dnnl_primitive_desc_t hint) {
    dnnl_primitive_attr_t attributes;
    dnnl_primitive_desc_t found = NULL;
    if (dnnl_primitive_attr_create(&attributes) != dnnl_success)
        return NULL;
    if (dnnl_primitive_attr_set_scratchpad_mode(attributes, dnnl_scratchpad_mode_user) !=
            dnnl_success ||
        dnnl_primitive_desc_create(&found, operation, attributes, only_engine, hint) !=
            dnnl_success)
        found = NULL;
    dnnl_primitive_attr_destroy(attributes);
    return found;
}

const char *mtf_onednn_implementation(const_dnnl_primitive_desc_t description) {
    const char *name = "ref";
    dnnl_primitive_desc_query(description, dnnl_query_impl_info_str, 0, (void *)&name);
    return name;
}
