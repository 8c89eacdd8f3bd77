// SPDX-License-Identifier: GPL-3.0-or-later
/* What the kernels of a device really reach: the "kernels" of a machine file, from microbenchmarks.
 *
 *     product     m x k by k x n is cut into tiles; `units` processors work at one tile each, wave
 *                 after wave, and a tile takes 2 rows columns (k + ramp) flops of its unit's share;
 *                 matrices whose rows are no whole number of 16 bytes go by kernels without the
 *                 matrix units' loads, at the share `unaligned`
 *     attention   fused: a share of the peak by the features of a head, that grows with the length
 *     sweep       bytes over a share of the memory's bandwidth that grows with the bytes
 *
 *     m 320, n 256, tile 128x128, 4 units:   | 1 | 1 |     6 tiles, 2 waves: the second is half
 *                                            | 1 | 1 |     empty, and the last row of tiles works
 *                                            | 2 | 2 |     at 64 rows that are not there
 *
 * A machine without them is priced by peaks, derates and calibrated tables alone. */
#ifndef MTF_KERNEL_RATES_H
#define MTF_KERNEL_RATES_H

#include "cost/machine/machine_fields.h"

#define MTF_TILES_MAX 6
#define MTF_HEADS_MAX 6
#define MTF_PRODUCT_SHARES_MAX 6

/* Passes over memory that run at different rates: maps; norms, softmax and other reductions of
 * rows; optimizers; table lookups. */
typedef enum {
    MTF_SWEEP_ELEMENTWISE,
    MTF_SWEEP_ROWS,
    MTF_SWEEP_UPDATE,
    MTF_SWEEP_GATHER,
    MTF_SWEEPS
} MtfSweep;

typedef struct {
    double rows, columns;
    double share; /* of the share that the dtype reaches at best */
    double ramp;  /* a tile's prologue and epilogue, as that much added to k */
} MtfTile;

/* Fused attention of heads with `features` features: shares of the peak, forward and gradient. */
typedef struct {
    double features, forward, backward;
} MtfHeadShare;

typedef struct {
    int count; /* of rising features */
    MtfHeadShare row[MTF_HEADS_MAX];
} MtfHeadTable;

typedef struct {
    bool known;
    double launch_seconds; /* a kernel's cost on the device, where the host keeps ahead */
    double units;          /* processors that each work at one tile */
    int tiles;
    MtfTile tile[MTF_TILES_MAX];
    int shares; /* of the peak that large products of a dtype reach */
    MtfDtypeFigure share[MTF_PRODUCT_SHARES_MAX];
    double unaligned;   /* of the peak, where rows are no whole number of 16 bytes; 0: the same */
    MtfHeadTable heads; /* the quickest kernels of the device */
    MtfHeadTable portable;    /* those written for the generation before; empty: the same */
    double half_length;       /* keys at which attention reaches half of its share */
    double sweep[MTF_SWEEPS]; /* shares of the memory's bandwidth */
    double half_bytes;        /* at which a sweep reaches half of its share */
} MtfKernelRates;

/* "elementwise" and so on; MTF_SWEEPS where `name` is none. */
MtfSweep mtf_sweep_from_name(const char *name);

/* Reads the optional "kernels" of a machine; without them `rates->known` is false. */
bool mtf_kernel_rates_read(const MtfJson *machine, MtfKernelRates *rates, GError **error);

/* The object that mtf_kernel_rates_read reads; the caller owns it. */
cJSON *mtf_kernel_rates_to_json(const MtfKernelRates *rates);

typedef enum {
    MTF_PRODUCT_UNALIGNED = 1, /* mtf_rows_are_unaligned of the matrices' rows */
    /* One kernel for the whole batch, whose products have drawn numbers of rows around m (the experts of a
     * layer that drops nothing): all its tiles are of the first shape, and the last of each product is
     * half full on average. */
    MTF_PRODUCT_GROUPED = 2
} MtfProductTrait;

/* Matrices: `batch` products of m x k by k x n, elements of `bytes` bytes. */
typedef struct {
    double batch, m, n, k, bytes;
    unsigned traits; /* of MtfProductTrait */
} MtfProductShape;

/* Whether rows of `first` and of `second` elements, of two matrices, begin at other places than multiples of
 * 16 bytes. Elements of 4 bytes or more take no matrix units that ask for it. */
bool mtf_rows_are_unaligned(double first, double second, double bytes);

/* Where a device's peaks are: flop/s of the dtype, bytes/s of the memory. */
typedef struct {
    const char *dtype;
    double flops, bandwidth;
} MtfPeaks;

/* Seconds of a batch of products by the best tile, launch left out, never less than the matrices
 * take through memory. */
double mtf_product_seconds(const MtfKernelRates *rates, const MtfPeaks *peaks,
                           const MtfProductShape *shape);

/* Fused attention that does `flops` over `length` keys in heads of `features`. */
typedef struct {
    double flops, length, features;
    bool backward, portable;
} MtfAttentionShape;

/* Seconds of fused attention, launch left out. */
double mtf_attention_seconds(const MtfKernelRates *rates, const MtfPeaks *peaks,
                             const MtfAttentionShape *shape);

/* Seconds of reading and writing `bytes` in one pass. */
double mtf_sweep_seconds(const MtfKernelRates *rates, const MtfPeaks *peaks, MtfSweep sweep,
                         double bytes);

#endif
