// SPDX-License-Identifier: GPL-3.0-or-later
/* Families of models that `meshtf-plan model` writes. A family builds a forward graph from
 * settings; a preset is a full set of settings with a name; parameters change single settings of a
 * preset.
 *
 *     family transformer-lm
 *         presets     demo  size0 … size5
 *         parameters  --layers --batch --length --d-model …
 */
#ifndef MTF_MODEL_FAMILY_H
#define MTF_MODEL_FAMILY_H

#include "analyzer/models/routing.h"
#include "layouts/graph/graph.h"

/* Every setting of every family; a family uses those that its list of parameters names. */
typedef struct {
    int64_t layers, batch;
    int64_t length, d_model, d_ff, heads, d_kv, vocab; /* Transformers */
    int64_t features, hidden, outputs;                 /* mlp */
    int64_t experts, choices;
    MtfRoutingWish routing;
    int64_t source_vocab; /* 0: one vocabulary for both texts */
    int64_t projection;   /* recurrent networks; 0: none */
    int64_t image, channels, classes, width, widening,
        groups;                   /* pictures: a side; networks of them */
    int64_t biases, tied, packed; /* 0 or 1 */
    double dropout, smoothing;
    const char *
        stem; /* of networks of pictures: "large" windows that shrink them, or "small"; NULL: by their size */
    const char *norm_over; /* batch statistics of pictures: "microbatch" (NULL) or "step" */
    const char *sizes;     /* autoencoder: "512-256-64" */
    const char *bottom, *tables, *top; /* dlrm: likewise */
    const char *interaction;           /* dlrm: "cat" or "dot" */
    const char *cell;                  /* recurrent networks: "lstm" or "gru" */
    const char *activation;            /* "relu", "gelu" or "silu" */
    const char *attention; /* "composite": softmax of scores; "blockwise": the attention row */
    const char *optimizer, *schedule;
    double rate, warmup, total, final, clip_norm;
    double power, cooldown, period, drop, ema; /* 0: the optimizer's standard */
} MtfModelSettings;

typedef MtfGraph *(*MtfModelBuild)(const MtfModelSettings *settings, GError **error);

typedef struct {
    const char *name;
    const char *summary;
    const char
        *options; /* "layers=2 rate=1e-3": what a user could give, later ones before earlier */
    MtfModelBuild build; /* NULL: the family's */
    const char *config;  /* a config.json (architecture_config.h), whose sizes hold where those of
                            the settings are 0; or NULL */
} MtfModelPreset;

#define MTF_PRESET(preset, about, settings) MTF_PRESET_BY(NULL, preset, about, settings)
#define MTF_PRESET_BY(function, preset, about, settings) \
    { .name = preset, .summary = about, .options = settings, .build = function }
#define MTF_NO_PRESET \
    { .name = NULL }

typedef struct {
    const char *name;
    const char *summary;
    const char *parameters; /* "layers batch"; those of the optimizer belong to every family */
    const MtfModelPreset *presets; /* the first is the default; ends with name NULL */
    MtfModelBuild build;
} MtfModelFamily;

extern const MtfModelFamily mtf_model_mlp;
extern const MtfModelFamily mtf_model_transformer_lm;
extern const MtfModelFamily mtf_model_gpt;
extern const MtfModelFamily mtf_model_gpt2;
extern const MtfModelFamily mtf_model_llama;
extern const MtfModelFamily mtf_model_qwen;
extern const MtfModelFamily mtf_model_pythia;
extern const MtfModelFamily mtf_model_phi;
extern const MtfModelFamily mtf_model_olmo2;
extern const MtfModelFamily mtf_model_opt;
extern const MtfModelFamily mtf_model_bloom;
extern const MtfModelFamily mtf_model_falcon;
extern const MtfModelFamily mtf_model_gemma;
extern const MtfModelFamily mtf_model_mistral;
extern const MtfModelFamily mtf_model_mixtral;
extern const MtfModelFamily mtf_model_deepseek;
extern const MtfModelFamily mtf_model_bert;
extern const MtfModelFamily mtf_model_t5;
extern const MtfModelFamily mtf_model_switch;
extern const MtfModelFamily mtf_model_gshard;
extern const MtfModelFamily mtf_model_vit;
extern const MtfModelFamily mtf_model_transformer;
extern const MtfModelFamily mtf_model_autoencoder;
extern const MtfModelFamily mtf_model_dlrm;
extern const MtfModelFamily mtf_model_resnet;
extern const MtfModelFamily mtf_model_vgg;
extern const MtfModelFamily mtf_model_alexnet;
extern const MtfModelFamily mtf_model_inception3;
extern const MtfModelFamily mtf_model_densenet;
extern const MtfModelFamily mtf_model_unet;
extern const MtfModelFamily mtf_model_cosmoflow;
extern const MtfModelFamily mtf_model_lstm_lm;
extern const MtfModelFamily mtf_model_moe_lstm;

/* All families, NULL-terminated. */
const MtfModelFamily *const *mtf_model_families(void);

/* Fails and lists what there is, or, where a family is meant by the name of a preset, says whose that is. A
 * preset name of NULL is the default; "7b" is "FAMILY-7b", and dashes may be left out. */
const MtfModelFamily *mtf_model_family_find(const char *name, GError **error);
const MtfModelPreset *mtf_model_preset_find(const MtfModelFamily *family, const char *name,
                                            GError **error);

/* The preset's options as settings; what they do not say is 0 or NULL. */
MtfModelSettings mtf_model_settings(const MtfModelPreset *preset);

/* The preset that a graph's name "FAMILY-PRESET" means, "llama2-7b" or "resnet-50"; case and dashes make no
 * difference. NULL where it is none; of presets called alike the first family's. */
const MtfModelPreset *mtf_model_find(const char *name, const MtfModelFamily **family);

/* All such names, NULL-terminated; free with g_strfreev. */
char **mtf_model_names(void);

typedef enum {
    MTF_SETTING_INTEGER,
    MTF_SETTING_NUMBER,
    MTF_SETTING_WORD,
    MTF_SETTING_TEXT, /* read by the family */
} MtfSettingType;

/* A parameter. Integers are in [low, high], numbers in [low, high), words among `words`. */
typedef struct {
    const char *name; /* of the option, without dashes */
    MtfSettingType type;
    size_t offset; /* in MtfModelSettings */
    double low, high;
    const char *const *words;
    const char *help;
    bool of_all; /* every family has it */
} MtfModelParameter;

/* All parameters; ends with name NULL. */
const MtfModelParameter *mtf_model_parameters(void);
bool mtf_model_has_parameter(const MtfModelFamily *family, const MtfModelParameter *parameter);

/* Sets one setting from text, which must outlive the settings. Fails when the family lacks the
 * parameter or the value is not one. */
bool mtf_model_set(const MtfModelFamily *family, const MtfModelParameter *parameter,
                   const char *text, MtfModelSettings *settings, GError **error);

/* The graph "FAMILY-PRESET" with the settings' optimizer; settings NULL: the preset's own. Fails with a
 * bad-input error when the sizes overflow. */
MtfGraph *mtf_model_build(const MtfModelFamily *family, const MtfModelPreset *preset,
                          const MtfModelSettings *settings, GError **error);

#endif
