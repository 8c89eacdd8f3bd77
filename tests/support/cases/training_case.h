// SPDX-License-Identifier: GPL-3.0-or-later
/* Training graphs with a layout each, for tests of the programs that they lower to. */
#ifndef MTF_TESTS_TRAINING_CASE_H
#define MTF_TESTS_TRAINING_CASE_H

#include "layouts/placement/layout.h"

typedef struct {
    MtfGraph *graph;
    MtfLayout *layout;
} MtfTrainingCase;

/* A random graph trained with SGD, AdamW or Adafactor, every other one with clipping, in a random
 * free layout. False, and nothing to clear, where no variable leads to the loss. */
bool mtf_training_case_draw(MtfTrainingCase *c, guint32 seed, const char *mesh);

/* A perceptron of `layers` hidden layers of 128 on the mesh "a:2", in a rule layout. Without
 * clipping, so that every gradient is wanted at once, by its own update. */
void mtf_training_case_perceptron(MtfTrainingCase *c, int layers, const char *rules);

void mtf_training_case_clear(MtfTrainingCase *c);

/* Bytes of the arena that one device needs for the graph as it stands. */
int64_t mtf_test_arena_bytes(const MtfGraph *graph);

#endif
