// SPDX-License-Identifier: GPL-3.0-or-later
/* What encoders of texts and of pictures have in common: sizes, and the heads that classes of transformers
 * put on them. */
#ifndef MTF_ENCODER_PARTS_H
#define MTF_ENCODER_PARTS_H

#include "analyzer/models/types/type_parts.h"

/* What a head tells: the tokens by the tied table, the class of all, one of each place, or where an answer is. */
typedef enum {
    MTF_TELLS_TOKENS,
    MTF_TELLS_CLASS,
    MTF_TELLS_PLACES,
    MTF_TELLS_ANSWER,
} MtfHeadTells;

/* What a class of transformers puts on an encoder: a layer, then scores. */
typedef struct {
    const char *ending; /* of the class's name; NULL ends a list */
    MtfHeadLayer layer;
    const char *scores; /* in files */
    MtfHeadTells tells;
} MtfEncoderHead;

/* Features of each of the encoder's heads and the scale of scores, from the width at `width`, a multiple of
 * `key`. */
void mtf_encoder_divide_heads(MtfConfig *config, MtfArchitecture *network, const char *key,
                              const char *width);

/* Sizes of an encoder, in the names that BERT and ViT share. */
void mtf_encoder_sizes(MtfConfig *config, MtfArchitecture *network);

/* Biases of all its matrices. */
void mtf_encoder_all_biases(MtfStack *stack);

/* The stack that was read as a decoder, for which alone rotary positions are read, sees both sides. */
void mtf_encoder_from_decoder(MtfArchitecture *network);

/* Sizes of a list at a key, of which there are to be n; what stands in `sizes` stays where the key is left out. */
void mtf_encoder_list(MtfConfig *config, const char *key, int n, int64_t *sizes);

/* As many classes as the config names. */
int64_t mtf_encoder_classes(MtfConfig *config, int64_t standard);

/* The head that "architectures" names, or NULL. */
const MtfEncoderHead *mtf_encoder_find_head(MtfConfig *config, const MtfEncoderHead *heads);

/* Puts it there, or those of places and answers that most types have alike. Without a head that is known the
 * text itself is learned, through the embedding. */
void mtf_encoder_head(MtfConfig *config, MtfArchitecture *network, const MtfEncoderHead *heads);

#endif
