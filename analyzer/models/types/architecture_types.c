// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/models/types/type_parts.h"

const MtfArchitectureType *const mtf_architecture_types[] = {
    mtf_plain_types,          mtf_fused_types,   mtf_llama_types,
    mtf_gemma_types,          mtf_expert_types,  mtf_encoder_types,
    mtf_rotary_encoder_types, mtf_picture_types, mtf_convolution_types,
    mtf_sound_types,          mtf_pair_types,    mtf_mixer_types,
    mtf_hybrid_types,         mtf_latent_types,  NULL,
};
