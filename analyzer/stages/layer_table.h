// SPDX-License-Identifier: GPL-3.0-or-later
/* A plain table of the layers of a chain, first to last: a line of column names, then a line a layer,
 * columns parted by blanks, comments after '#'. Seconds (forward and backward) and bytes are those of
 * one micro-batch on one device.
 *
 *     name     seconds  output    parameters  stash    fixed
 *     embed    0.004    8388608   411041792   8388608  0
 *     block0   0.011    8388608   12582912    1.2e8    0
 *
 * `name` and `seconds` are needed; `output` goes to the next layer, `parameters` are exchanged once a
 * batch between the devices of a stage, `stash` is kept for each micro-batch in flight, `fixed`
 * besides. */
#ifndef MTF_LAYER_TABLE_H
#define MTF_LAYER_TABLE_H

#include "analyzer/stages/latency_search.h"
#include "analyzer/stages/stage_price.h"

/* Reads a table as a chain; `name` stands for the file in messages, which give the line. */
MtfStageGraph *mtf_layer_table_parse(const char *name, const char *text, GError **error);

/* The chain on submeshes of 1, 2, 4 … devices, each of which takes a part of the micro-batch. On n
 * devices a stage takes
 *
 *     (Σ seconds + 2 (output before + output) / B) / n + 4 (n−1) P / (n B M) + overhead log2 n
 *
 * with M the batch in micro-batches. To be cleared by mtf_layer_chain_clear. */
void mtf_layer_chain_init(MtfChain *chain, const MtfStageGraph *graph,
                          const MtfStageMachine *machine, double overhead);
void mtf_layer_chain_clear(MtfChain *chain);

#endif
