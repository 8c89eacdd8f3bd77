// SPDX-License-Identifier: GPL-3.0-or-later
/* Words of a table of runs, however their writer spells them: case, blanks, "-" and "_" do not count. */
#ifndef MTF_RUN_WORDS_H
#define MTF_RUN_WORDS_H

#include "cost/step_model/training_run.h"

/* "zero1", "ZeRO-1", "distributed optimizer"; "FSDP", "FULL_SHARD", "zero3/fsdp"; "" and "none" are no
 * sharding. False for words that are none of these. */
bool mtf_sharding_of_words(const char *words, MtfSharding *sharding);

/* "none", "selective", "full" and the like. */
bool mtf_redo_of_words(const char *words, MtfRedo *redo);

/* What a measured number counts. */
typedef enum {
    MTF_MEASURED_STEP,          /* seconds a step */
    MTF_MEASURED_DEVICE_TOKENS, /* tokens a second and device */
    MTF_MEASURED_TOKENS,        /* tokens a second */
    MTF_MEASURED_EXAMPLES,      /* sequences a second */
    MTF_MEASURED_DEVICE_FLOPS,  /* 10^12 flop/s a device */
} MtfMeasured;

/* "s_per_step", "ms/iteration", "tok/s/GPU", "tokens_per_s_per_device", "samples/s", "TFLOP/s/GPU" …;
 * the number is to be multiplied by `unit`. */
bool mtf_measured_of_words(const char *words, MtfMeasured *measured, double *unit);

/* Whether the words name a type, be it priced or not. */
bool mtf_precision_is_known(const char *words);

/* Why a step in numbers of that type is priced by no rate of this program ("fp32", "nvfp4"), to be freed;
 * NULL where it is, and where nothing is said. */
char *mtf_precision_reason(const char *words);

/* The words of a model whose table does not state them: GPT-2's, padded, but for models that are known
 * to have others by name. */
int64_t mtf_usual_vocab(const char *model);

#endif
