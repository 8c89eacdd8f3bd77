// SPDX-License-Identifier: GPL-3.0-or-later
/* oneDNN's processor, opened once, and what it makes of this one. Files named `onednn` alone know
 * dnnl.h; what others see of them are pointers. */
#ifndef MTF_ONEDNN_ENGINE_H
#define MTF_ONEDNN_ENGINE_H

#include <dnnl.h>
#include <glib.h>
#include <stdbool.h>

/* The engine and the stream of this process; false where oneDNN does not work. */
bool mtf_onednn_open(dnnl_engine_t *engine, dnnl_stream_t *stream);

/* Whether oneDNN uses those instructions here. */
bool mtf_onednn_has(dnnl_cpu_isa_t wanted);

/* Whether the processor multiplies bfloat16 itself: oneDNN emulates it elsewhere. */
bool mtf_onednn_multiplies_bfloat16(void);

/* A description of the primitive whose scratch the caller gives, to be destroyed; NULL where oneDNN
 * has none. `operation` is a dnnl_..._desc_t; `hint` the forward one of a backward pass, or NULL. */
dnnl_primitive_desc_t mtf_onednn_describe(const_dnnl_op_desc_t operation,
                                          const_dnnl_primitive_desc_t hint);

/* The implementation that oneDNN chose: "brgconv:avx512_core". It belongs to the description. */
const char *mtf_onednn_implementation(const_dnnl_primitive_desc_t description);

#endif
