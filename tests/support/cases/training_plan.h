// SPDX-License-Identifier: GPL-3.0-or-later
/* Plans for tests that run them: a graph of the library at test size, made a training graph, on a
 * given mesh under given rules, with the predictions that a real plan has. */
#ifndef MTF_TESTS_TRAINING_PLAN_H
#define MTF_TESTS_TRAINING_PLAN_H

#include "layouts/plan_file/plan.h"

/* What one line of a test table says. */
typedef struct {
    const char *graph; /* of the library: "mlp", "transformer-small", "gpt-small" */
    const char *sizes; /* "batch:6;d_ff:24": dimensions given other sizes */
    MtfDtype dtype;    /* MTF_F32, MTF_F64 or MTF_BF16 */
    const char *mesh;  /* "rows:2;cols:2" */
    const char *rules; /* "batch:rows;d_ff:cols", or "free": drawn by `seed`; "searched": the
                          best found, "searched small": within the least memory */
    guint32 seed;
    double rate;          /* learning rate; 0 = the graph's own */
    int microbatches;     /* 0 = 1 */
    int ring;             /* parts of attention (layouts/execution/key_ring.h) */
    int64_t bucket_bytes; /* of the layout */
} MtfTrainingPlan;

/* Sizes at which the library's transformer runs a step in milliseconds. */
#define MTF_TINY_SWITCH \
    "batch:6;length:8;rows:16;d_model:12;d_ff:10;vocab:256;experts:5;choices:2;capacity:3"
#define MTF_TINY_TRANSFORMER "batch:6;length:8;memory_length:8;d_model:16;heads:4;d_kv:4;d_ff:24"

/* The plan; NULL with an error when the rules are not legal. Free with mtf_plan_free. */
MtfPlan *mtf_training_plan(const MtfTrainingPlan *wanted, GError **error);

/* Predicts again what a plan says, after a change of its layout. */
bool mtf_training_plan_predict(MtfPlan *plan, GError **error);

#endif
