// SPDX-License-Identifier: GPL-3.0-or-later
/* What the builder of published networks (architecture.h) is written in: the network under construction
 * and the parts that every layer has, matrices and norms whose weights know where published files
 * keep them. Inner to that builder. */
#ifndef MTF_ARCHITECTURE_PARTS_H
#define MTF_ARCHITECTURE_PARTS_H

#include "analyzer/models/architecture.h"
#include "analyzer/models/model_parts.h"

typedef struct {
    MtfParts *p;
    const MtfArchitecture *n;
    const MtfStack *stack; /* that is being built */
    int layer;             /* of the stack */
    char *files;           /* prefix of the layer's tensors in files */
    int batch, d_model, d_embed, vocab;
    int64_t positions;                /* of the stack */
    int length, memory_length;        /* positions of the stack, as queries and as memory */
    int source_length, source_memory; /* the encoder's positions, also as the decoder's memory */
    int heads, group, d_kv;     /* of the layer; group is -1 where each query head has its keys */
    int64_t kv_heads, width_kv; /* likewise, their sizes */
    int lent[2][2];             /* what the last layer without a window and with one remembers */
    int tokens, embedded;       /* the stack's, and x before its first layer */
    int streams;                /* dimension of residual streams, where there are several */
    int token_scale;            /* of the norm of what layers read of tokens; or -1 */
    int seen;                   /* by the layer's part, before its norm */
    double residual_spread;     /* of weights whose products the residual stream adds up */
    int buckets; /* bias of the stack's scores by positions, relative ones or those of memory; or -1 */
    int bucket_ids, distances; /* the bucket of each distance that is told, and that between each
                                  query and memory, or its row in the table of distances */
    int distance_table;
    int grid_cosine, grid_sine,
        grid_rows;        /* of places on a picture's grid (mixers/picture_grid.c) */
    int segments, places; /* of packed rows: which piece a position is of, and where in it; or -1 */
    int position_table;   /* the last one; or -1 */
    MtfRoutedSum routed;  /* of all layers with experts so far */
    int mask, source_mask; /* added to scores of itself and of the source; or -1 */
    int near;              /* that mask for layers which look at what is near alone; or -1 */
} MtfAssembly;

/* What is looked at: its positions as they are and as memory, and their pieces (-1: one piece). */
typedef struct {
    int length, remembered, segments;
} MtfMemory;

/* The matrix from the width of embeddings to that of layers, where they differ. */
#define MTF_WIDENED "widened"

/* A literal shape: MTF_SHAPE(batch, length). */
#define MTF_SHAPE(...) ((MtfShape){ (int)G_N_ELEMENTS(((int[]){ __VA_ARGS__ })), { __VA_ARGS__ } })

/* A product with a matrix of its own. */
typedef struct {
    const char *name;     /* of the result; the matrix is "wNAME", the bias "NAME_bias" */
    const char *weights;  /* or those of this name, which the part already has */
    const char *file;     /* without ".weight", behind the layer's prefix */
    MtfShape in, out;     /* dimensions that are summed, and that are made */
    int64_t begin, total; /* the first of its outputs in the file's tensor, which has `total` of
                             them; 0: the tensor is this matrix */
    int64_t blocks;       /* of outputs in the file's tensor, each with its part; 0: 1 */
    bool bias;
    const char *bias_file; /* whole name behind the layer's prefix; NULL: as the matrix */
    bool out_first;        /* in files, even of networks whose layers have inputs first */
    bool in_first;         /* of experts, in files */
    double spread;         /* standard deviation of initial weights */
} MtfLinear;

/* x with the dimensions `in` replaced by `out`, which come last. */
int mtf_assembly_linear(MtfAssembly *m, const MtfLinear *linear, int x);

/* A weight that files keep as `file` (behind the layer's prefix, with ".weight") in that shape. */
int mtf_assembly_variable(MtfAssembly *m, const char *name, const char *file, const MtfShape *shape,
                          MtfInitKind init, double value);

/* A vector that files keep as `file`, without a suffix, perhaps as a matrix of one row, and that nobody
 * trains; zeros. */
int mtf_assembly_kept(MtfAssembly *m, const char *name, const char *file, int dim, bool is_row);

/* A vector of factors, at first 1, that files keep as `file` behind the layer's prefix, without a suffix. */
int mtf_assembly_factors(MtfAssembly *m, const char *name, const char *file, int dim);

/* A table that files keep as `file`, likewise, at first drawn. */
int mtf_assembly_table(MtfAssembly *m, const char *name, const char *file, const MtfShape *shape);

/* Says where files keep the variable of that name in words of their own (layouts/FORMATS.md). */
void mtf_assembly_place(MtfAssembly *m, const char *name, const char *place);

/* The weights [stack, out, in], or of stacks whose files have [stack, in, out] that, of a product of each
 * index of the first dimension. Files have a tensor an index where the product's file has "{}", else one
 * tensor, of whose [stack, total, in] these may be a part. */
int mtf_assembly_stack(MtfAssembly *m, const char *name, const MtfLinear *linear,
                       const MtfShape *shape);

/* Its biases [stack, out], behind the product's name in files "_bias". */
int mtf_assembly_stack_bias(MtfAssembly *m, const char *name, const MtfLinear *linear,
                            const MtfShape *shape);

/* The model's dimension of that name and size; "decoder_NAME" where the name has another size. */
int mtf_assembly_dimension(MtfAssembly *m, const char *name, int64_t size);

/* The network's norm of x along `dim`, by its epsilon or another; x itself where `file` is NULL. */
int mtf_assembly_norm(MtfAssembly *m, const char *name, const char *file, int dim, int x);
int mtf_assembly_norm_by(MtfAssembly *m, const char *name, const char *file, int dim,
                         double epsilon, int x);

/* A number that files keep as `file`, without a suffix, with `sizes`; nobody trains it where it is `kept`. */
int mtf_assembly_number(MtfAssembly *m, const char *name, const char *file, const char *sizes,
                        double value, bool kept);

/* The norm of x along `dim` without a scale. */
int mtf_assembly_bare_norm(MtfAssembly *m, const char *name, int dim, int x);

/* The numbers of heads that take a share of attention (MtfStackNames.sinks). */
int mtf_assembly_sinks(MtfAssembly *m, const MtfShape *heads);

/* The norm of queries or keys, which have the dimensions `heads`, of each head along its features by a scale
 * of its own, without a bias. Files keep all scales in one tensor, or where `file` has "{}" in one a head. */
int mtf_assembly_own_norm(MtfAssembly *m, const char *name, const char *file, const MtfShape *heads,
                          int x);

/* The RMS norm of queries or keys over all their heads together, which have the dimensions `heads`. */
int mtf_assembly_wide_norm(MtfAssembly *m, const char *name, const char *file,
                           const MtfShape *heads, int x);

/* The same, where each index of the first of `heads` has a mean of its own. */
int mtf_assembly_group_norm(MtfAssembly *m, const char *name, const char *file,
                            const MtfShape *heads, int x);

/* x times a number, and its softly capped value cap tanh(x / cap). Each is x itself where the number is 0, which
 * stands for none, and the first where it is 1. */
int mtf_assembly_scale(MtfAssembly *m, const char *name, double factor, int x);
int mtf_assembly_softcap(MtfAssembly *m, const char *name, double cap, int x);

/* The function of hidden layers that an operation's or a config's name says. */
int mtf_assembly_activation(MtfAssembly *m, const char *name, int x);

/* The heads of queries as dimensions: heads, group (where there is one), d_kv. */
MtfShape mtf_assembly_query_heads(const MtfAssembly *m);

/* Whether the layer has a window, and whether it borrows keys and values. */
bool mtf_assembly_has_window(const MtfAssembly *m);
bool mtf_assembly_borrows(const MtfAssembly *m);

/* x with what the layer reads of the token by a table of its own, where it has one (mixers/token_input.c). */
int mtf_assembly_add_token(MtfAssembly *m, int x);

/* What that adds to x alone. */
int mtf_assembly_token_branch(MtfAssembly *m, int x);

/* Several residual streams [streams, batch, length, d_model] (mixers/streams.c): of x, what a layer makes of them, and
 * x again behind the last layer. */
int mtf_assembly_begin_streams(MtfAssembly *m, int x);
int mtf_assembly_streams_layer(MtfAssembly *m, int x);
int mtf_assembly_end_streams(MtfAssembly *m, int x);

/* Self-attention of the layer (architecture_attention.c): the branch, without norms around it. */
int mtf_assembly_self_attention(MtfAssembly *m, int x);

/* What the layer has in the place of attention, and RWKV's feed-forward part (mixers/). */
int mtf_assembly_mixer(MtfAssembly *m, int x);
int mtf_assembly_channel_mix(MtfAssembly *m, int x);

/* x turned by its positions along `dim`; x itself in layers that do not turn. */
int mtf_assembly_turn(MtfAssembly *m, const char *name, int dim, int x);

/* Queries, keys and values whose keys and values come from a few features (architecture_latent.c), all as wide
 * as queries; what attention made of them as wide as values; and that dimension. */
void mtf_assembly_latent_heads(MtfAssembly *m, int x, int heads[3]);
int mtf_assembly_latent_values(MtfAssembly *m, int context);
int mtf_assembly_value_dimension(MtfAssembly *m);

/* Pictures as places of the stack, a patch each behind the one that the class is read from
 * (architecture_signals.c). */
int mtf_assembly_image(MtfAssembly *m);

/* What is told of a stack's result (architecture_heads.c): scores of every place's token, by the table of
 * embeddings where the head is tied to it, and the graph's loss of them; or classes of the whole from the
 * first place, and theirs. A pooler is beside either. */
int mtf_assembly_scores(MtfAssembly *m, int x, int table);
void mtf_assembly_lose(MtfAssembly *m, int scores, int targets);
void mtf_assembly_classify(MtfAssembly *m, int x);
void mtf_assembly_classify_read(MtfAssembly *m, int read);
void mtf_assembly_pool(MtfAssembly *m, int x);

/* Sound, bands of a spectrum over time, as places of the encoder (architecture_signals.c). */
int mtf_assembly_speech(MtfAssembly *m);

/* What a picture's windows, stage by stage, tell of all of it [batch, width] (signals/shifted_windows.c). */
int mtf_assembly_windows(MtfAssembly *m);

/* The loss of texts that are heard at unknown places, of each place's scores (signals/alignment.c). */
void mtf_assembly_lose_aligned(MtfAssembly *m, int logits);

/* A sound's samples as places of the stack (signals/waveform.c). */
int mtf_assembly_sound(MtfAssembly *m);

/* The distances of the stack's positions and their buckets, and the bias of scores by them, by a table of its own
 * [heads, queries, memory] (architecture_bias.c). */
void mtf_assembly_tell_distances(MtfAssembly *m);
int mtf_assembly_buckets(MtfAssembly *m);

/* The bias by positions, as far as each place's features let it through [batch, heads, queries, memory]; itself where
 * nothing does (signals/gated_positions.c). */
int mtf_assembly_gate_positions(MtfAssembly *m, int x, int bias);

/* The table of distances of disentangled attention and the row of each pair of positions; and the bias of the
 * layer's scores by them [batch, heads, queries, memory], of its queries and remembered keys, or -1
 * (architecture_bias.c). */
void mtf_assembly_begin_disentangled(MtfAssembly *m);
int mtf_assembly_disentangled(MtfAssembly *m, int q, int k);

/* What stacks over a picture's patches have of their rows and columns (mixers/picture_grid.c): begins it; x turned by them,
 * half of its pairs by each (DINOv3); and the bias of the layer's scores by how far patches are apart, by a table of its own
 * [heads, queries, memory] (BEiT). */
void mtf_assembly_begin_grid(MtfAssembly *m);
int mtf_assembly_grid_turn(MtfAssembly *m, const char *name, int x);
int mtf_assembly_grid_bias(MtfAssembly *m);

/* 0 where a query looks within the stack's window on both sides or its chunk, -1e30 elsewhere [queries,
 * memory]; with the stack's mask, if it has one. */
int mtf_assembly_near(MtfAssembly *m);

/* ALiBi (Press et al. 2022) as a bias [heads, memory]: slope times the position of memory, which differs from
 * minus slope times the distance by a number alike for all that a query sees. With p the largest power of 2
 * that is at most the number of heads, head h < p has the slope 2^(-8 (h + 1) / p), a later one
 * 2^(-4 (2 (h - p) + 1) / p). */
int mtf_assembly_alibi(MtfAssembly *m);

/* Of a source that is not packed, and of a text whose class is told: 0 where memory is of it, -1e30 where its
 * row is filled up [batch, memory]; or -1. */
int mtf_assembly_padding(MtfAssembly *m);

/* The tokens of a text with what the model fills its row up with, where that is seen (MTF_READ_ROW). */
int mtf_assembly_fill(MtfAssembly *m, int tokens);

/* Of a text whose class is told: 1 where it is, 0 where its row is filled up [batch, length]. */
int mtf_assembly_text_places(MtfAssembly *m);

/* Packed rows (architecture_pairs.c): begins a stack whose rows hold pieces that do not see one
 * another; the mask of its scores of a memory, -1 where rows are not packed. */
void mtf_assembly_read_segments(MtfAssembly *m, bool is_source);
int mtf_assembly_mask(MtfAssembly *m, const char *prefix, const MtfMemory *memory);

/* Of a text that is made from another, packed or not: 1 at positions that are of some piece, 0 where its
 * row is filled up; else -1. */
int mtf_assembly_counted(MtfAssembly *m);

/* Sines and cosines of positions, which are not learned: [length, d_model], or [batch, length,
 * d_model] of packed rows. */
int mtf_assembly_waves(MtfAssembly *m);

/* Attention of a decoder's layer to `source`, what the encoder made. */
int mtf_assembly_cross_attention(MtfAssembly *m, int x, int source);

/* The feed-forward branch: one hidden layer, gated or not, or experts. */
int mtf_assembly_ffn(MtfAssembly *m, int x);

#endif
