// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/judge/run_words.h"

#include <string.h>

/* Lower case without blanks, "-" and "_". */
static char *plain(const char *words) {
    g_autofree char *lower = g_utf8_strdown(words, -1);
    GString *text = g_string_new(NULL);
    for (const char *c = lower; *c != '\0'; c++)
        if (strchr(" -_", *c) == NULL)
            g_string_append_c(text, *c);
    return g_string_free(text, FALSE);
}

static bool is_one_of(const char *word, const char *const *list) {
    return g_strv_contains(list, word);
}

bool mtf_sharding_of_words(const char *words, MtfSharding *sharding) {
    static const char *const known[][7] = {
        [MTF_SHARD_NONE] = { "", "none", "ddp", "dp", "noshard", "replicated", NULL },
        [MTF_SHARD_OPTIMIZER] = { "zero1", "distributedoptimizer", "distopt", "zero", NULL },
        [MTF_SHARD_GRADIENTS] = { "zero2", "shardgradop", NULL },
        [MTF_SHARD_ALL] = { "zero3/fsdp", "zero3", "fsdp", "fsdp2", "fullshard", "fullyshard",
                            NULL },
    };
    g_autofree char *word = plain(words);
    for (int i = 0; i < (int)G_N_ELEMENTS(known); i++)
        if (is_one_of(word, known[i])) {
            *sharding = (MtfSharding)i;
            return true;
        }
    return false;
}

bool mtf_redo_of_words(const char *words, MtfRedo *redo) {
    static const char *const known[MTF_REDOS][6] = {
        [MTF_REDO_NONE] = { "", "none", "no", "off", "0", NULL },
        [MTF_REDO_SELECTIVE] = { "selective", "minimal", "attention", "core", "coreattn", NULL },
        [MTF_REDO_FULL] = { "full", "all", "layers", "everylayer", "yes", NULL },
    };
    g_autofree char *word = plain(words);
    for (int i = 0; i < MTF_REDOS; i++)
        if (is_one_of(word, known[i])) {
            *redo = (MtfRedo)i;
            return true;
        }
    return false;
}

/* "tok/s/device" of "tokens_per_second_per_GPU": one spelling of each part. */
static char *plain_unit(const char *words) {
    static const char *const spellings[][2] = {
        { "per", "/" },       { "seconds", "s" },       { "second", "s" },
        { "sec", "s" },       { "tokens", "tok" },      { "gpu", "device" },
        { "tpu", "device" },  { "chip", "device" },     { "iteration", "step" },
        { "iter", "step" },   { "sequences", "ex" },    { "samples", "ex" },
        { "examples", "ex" }, { "tflops/s", "tflops" }, { "tflop/s", "tflops" },
    };
    g_autofree char *word = plain(words);
    GString *text = g_string_new(word);
    for (gsize i = 0; i < G_N_ELEMENTS(spellings); i++)
        g_string_replace(text, spellings[i][0], spellings[i][1], 0);
    return g_string_free(text, FALSE);
}

bool mtf_measured_of_words(const char *words, MtfMeasured *measured, double *unit) {
    static const struct {
        const char *word;
        MtfMeasured measured;
        double unit;
    } known[] = {
        { "s/step", MTF_MEASURED_STEP, 1 },
        { "steptimes", MTF_MEASURED_STEP, 1 },
        { "ms/step", MTF_MEASURED_STEP, 1e-3 },
        { "tok/s/device", MTF_MEASURED_DEVICE_TOKENS, 1 },
        { "tok/device/s", MTF_MEASURED_DEVICE_TOKENS, 1 },
        { "tok/s", MTF_MEASURED_TOKENS, 1 },
        { "ex/s", MTF_MEASURED_EXAMPLES, 1 },
        { "tflops/device", MTF_MEASURED_DEVICE_FLOPS, 1 },
    };
    g_autofree char *word = plain_unit(words);
    for (gsize i = 0; i < G_N_ELEMENTS(known); i++)
        if (strcmp(word, known[i].word) == 0) {
            *measured = known[i].measured;
            *unit = known[i].unit;
            return true;
        }
    return false;
}

static bool holds(const char *text, const char *const *words) {
    for (; *words != NULL; words++)
        if (strstr(text, *words) != NULL)
            return true;
    return false;
}

/* Types by what they are called where blanks and dashes are left out. */
static const char *const narrow_types[] = { "fp4", "int4", "4bit", "mxfp6", NULL };
static const char *const usual_types[] = { "bf16", "bfloat16", "fp16",  "float16", "half",
                                           "fp8",  "int8",     "16bit", "8bit",    NULL };
static const char *const wide_types[] = { "fp32", "tf32", "float32", "fp64", "float64", NULL };

bool mtf_precision_is_known(const char *words) {
    g_autofree char *text = plain(words);
    return holds(text, narrow_types) || holds(text, usual_types) || holds(text, wide_types);
}

char *mtf_precision_reason(const char *words) {
    g_autofree char *text = plain(words);
    if (!holds(text, narrow_types) && (holds(text, usual_types) || !holds(text, wide_types)))
        return NULL;
    return g_strdup_printf("steps in \"%s\" are not priced: in numbers of 16 bits, fp8 or int8",
                           words);
}

/* Of zero-bubble's GPT (arXiv 2401.10241) sizes are printed, 6.2 billion for 30 layers of 4096 and 14.6 for 46
 * of 5120, that leave 25,500 to 33,500 words; its scripts (sail-sg/zero-bubble-pipeline-parallelism,
 * examples) name a SentencePiece model, and Llama's has 32,000. */
int64_t mtf_usual_vocab(const char *model) {
    g_autofree char *name = plain(model);
    return g_str_has_prefix(name, "zbgpt") ? 32000 : 50304;
}
