// SPDX-License-Identifier: GPL-3.0-or-later
/* What one pipeline stage does in a step, in order: forward passes (F) and backward passes (B) of
 * micro-batches, in PyTorch's notation "[stage][action][micro-batch]":
 *
 *     stage 0 of 2, 1F1B, 3 micro-batches     0F0 0F1 0B0 0F2 0B1 0B2
 *     slots                                     0   1   0   0   1   0
 *
 * Between its forward and its backward pass a micro-batch is in flight and holds a slot, the lowest
 * that is free when it begins: as many are in memory as are ever held at once. */
#ifndef MTF_STAGE_ORDER_H
#define MTF_STAGE_ORDER_H

#include <glib.h>
#include <stdbool.h>

typedef enum { MTF_STAGE_FORWARD, MTF_STAGE_BACKWARD } MtfStageActionKind;

typedef struct {
    MtfStageActionKind kind;
    int microbatch;
    int slot;
} MtfStageAction;

typedef struct {
    int n;
    MtfStageAction *actions;
    int slots; /* at least 1 */
} MtfStageOrder;

/* The standard orders. `gpipe`: all forward passes, then all backward passes. `1f1b`: stage s of p
 * runs min(m, p - s) forward passes ahead, then one backward and one forward pass in turn (PipeDream
 * flush, arXiv 2006.09503). Backward passes go in the order of the micro-batches. NULL for another
 * name. Free with mtf_stage_order_free. */
MtfStageOrder *mtf_stage_order_new(const char *schedule, int stages, int stage, int microbatches);

/* Reads and writes the notation, items parted by spaces or commas. Fails (bad input) when an item is
 * of another stage or no item, or when a micro-batch's passes are not there once each, forward
 * first, the backward passes in the order of the micro-batches. The text is freed with g_free. */
MtfStageOrder *mtf_stage_order_parse(const char *text, int stage, int microbatches, GError **error);
char *mtf_stage_order_format(const MtfStageOrder *order, int stage);

void mtf_stage_order_free(MtfStageOrder *order);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(MtfStageOrder, mtf_stage_order_free)

#endif
