// SPDX-License-Identifier: GPL-3.0-or-later
/* What layers have in the place of attention, and what they are written in. */
#ifndef MTF_MIXER_PARTS_H
#define MTF_MIXER_PARTS_H

#include "analyzer/models/architecture_parts.h"

/* A matrix from x's features to `out`, or the part of one that begins with output number `begin` of `total` (0: all
 * of it), in each of `blocks` blocks of outputs (0: 1); with a bias where the mixer has them. */
typedef struct {
    const char *name, *file;
    MtfShape out;
    int64_t begin, total, blocks;
} MtfMixerInput;
int mtf_mixer_input(MtfAssembly *m, const MtfMixerInput *input, int x);

/* The matrix back to the model's width from the dimensions `in`. */
int mtf_mixer_output(MtfAssembly *m, MtfShape in, int x);

/* A convolution of each feature of x [batch, length, features …] by itself that reads `taps` places, the last its
 * own, called "NAMEconvolved":
 *
 *     y[t] = sum over j of w[j] x[t + j - taps + 1]
 *
 * In files these features begin with number `begin` of `total` (0: they are all). */
typedef struct {
    const char *name;
    MtfShape features;
    int64_t begin, total;
    const char *file; /* NULL: the mixer's */
} MtfMixerConvolution;
int mtf_mixer_convolve(MtfAssembly *m, const MtfMixerConvolution *convolution, int x);

/* A variable that files keep as `file` behind the layer's prefix, without a suffix, as one row. */
int mtf_mixer_vector(MtfAssembly *m, const char *name, const char *file, const MtfShape *shape,
                     double value);

/* The same of one dimension, which files keep with `sizes`. */
int mtf_mixer_row(MtfAssembly *m, const char *name, const char *file, int dim, const char *sizes,
                  double value);

/* The same of two dimensions. */
int mtf_mixer_matrix(MtfAssembly *m, const char *name, const char *file, int rows, int columns,
                     double value);

/* An operation of one input, or of two (y -1: one), whose result has the dimensions that it gives itself. */
int mtf_mixer_map(MtfAssembly *m, int kind, const char *name, int x, int y);

/* -e^rate, what states forget a step. */
int mtf_mixer_forget_speed(MtfAssembly *m, int rate);

/* Linear attention (layouts/graph/operation_table.h) of v, q, k, log and, unless it is -1, beta, whose keys are that
 * dimension. */
int mtf_mixer_linear_attention(MtfAssembly *m, int keys, const int inputs[5]);

/* Gates around a short convolution (Liquid AI, LFM2, 2025): out(c conv(b x)), where b, c and x are the thirds of what
 * `in` makes. */
int mtf_mixer_short_convolution(MtfAssembly *m, int x);

/* The gated delta rule (Yang, Kautz and Hatamizadeh, 2024, equation 10) as Qwen 3 Next has it. Each head keeps a
 * matrix S [keys, values], from which a share is forgotten and what it says of a key is corrected:
 *
 *     S' = a S        S'' = S' + b k (v - S'k)        o = S'' q / sqrt(keys)
 *     a = e^(-e^rate softplus(forget(x) + bias)),     b = sigmoid(correct(x))
 *
 * with q, k and v from a convolution of each feature and silu, q and k of length 1. The result is out(norm(o)
 * silu(gate(x))). Several heads of values may share one of keys. */
int mtf_mixer_delta_rule(MtfAssembly *m, int x);

/* The selective scan of Mamba (Gu and Dao, 2023, algorithm 2). Each feature keeps `d_state` numbers h, which forget as
 * fast as its step s is long, and take in what is read with B and told with C, alike for all features:
 *
 *     h' = e^(-e^rate s) h + s B u        y = C h' + skip u        s = softplus(step(t) + bias)
 *
 * with u from a convolution of each feature and silu, and t, B and C what `read` makes of u. The result is
 * out(y silu(z)), where u's features and z are the halves of what `in` makes. */
int mtf_mixer_selective_scan(MtfAssembly *m, int x);

/* That of Mamba 2 (Dao and Gu, 2024, section 7): steps s and rates are of a head, B and C of a group of heads, and all of
 * it comes from one matrix, u, B and C through the convolution. The result is out(norm(y silu(z))). */
int mtf_mixer_head_scan(MtfAssembly *m, int x);

/* Lightning attention (Qin and others, 2024) as MiniMax has it. Each head h of n keeps a matrix S [keys, values], of
 * which it forgets the same share at every place of layer l of m:
 *
 *     S' = e^-r S + k v        o = S' q        r = 2^(-8 (h + 1) / n) (1 - l / (m - 1 + 1e-5) + 1e-5)
 *
 * with q, k and v silu of one matrix, head by head. The result is out(norm(o) sigmoid(gate(x))). */
int mtf_mixer_lightning(MtfAssembly *m, int x);

/* The weighted means of RWKV 4 (Peng and others, 2023, equations 11 to 19). Of each feature
 *
 *     told[t] = (sum over i < t of e^(-(t - 1 - i) e^rate + k[i]) v[i] + e^(bonus + k[t]) v[t]) / (the same of 1 for v)
 *
 * where k, v and r come of x and the place before it, mixed; the result is out(sigmoid(r) told). All exponents are
 * less by the largest so far. */
int mtf_mixer_wkv(MtfAssembly *m, int x);

/* The real-gated linear recurrence (De and others, Griffin, 2024, equations 1 to 4) as RecurrentGemma has it. Each feature
 * keeps a number h:
 *
 *     h' = a h + sqrt(1 - a^2) i u        a = e^(-8 softplus(rate) r)        r, i = sigmoid(W u + b), block by block
 *
 * with u from a convolution of each feature, and h' = i u at the first place. The result is out(h' f(gate(x))). */
int mtf_mixer_gated_recurrence(MtfAssembly *m, int x);

#endif
