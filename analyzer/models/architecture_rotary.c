// SPDX-License-Identifier: GPL-3.0-or-later
/* What a config.json says of rotary positions (src/transformers/modeling_rope_utils.py). */
#include "analyzer/models/architecture_config.h"

#include <math.h>
#include <string.h>

/* A number of the object that describes rotary positions. */
static double rotary_number(MtfConfig *c, const MtfJson *object, const char *key, double standard) {
    MtfJson value;
    double number = standard;
    if (!c->failed && mtf_json_find(object, key, &value) &&
        !mtf_json_number(&value, &number, c->error))
        c->failed = true;
    return number;
}

/* Llama 3.1: long waves are stretched by `factor`, short ones are left, those between in part. */
static void read_llama3_rotary(MtfConfig *c, const MtfJson *object, MtfStack *s) {
    s->rotary_stretch = rotary_number(c, object, "factor", 8);
    s->rotary_low = rotary_number(c, object, "low_freq_factor", 1);
    s->rotary_high = rotary_number(c, object, "high_freq_factor", 4);
    s->rotary_context = rotary_number(c, object, "original_max_position_embeddings", 8192);
}

/* The pair whose waves turn so often in the old context: d ln(C / 2 pi turns) / 2 ln(base). */
static double yarn_pair(const MtfStack *s, double features, double turns) {
    return features * log(s->rotary_context / (2 * G_PI * turns)) / (2 * log(s->rotary_base));
}

/* What cosines and sines are multiplied by, where the file does not say it itself. */
static double yarn_gain(MtfConfig *c, const MtfJson *object, double stretch) {
    double all = rotary_number(c, object, "mscale_all_dim", 0);
    double one = rotary_number(c, object, "mscale", 0);
    double wave = stretch > 1 ? log(stretch) / 10 : 0;
    double gain = one != 0 && all != 0 ? (one * wave + 1) / (all * wave + 1) : wave + 1;
    return rotary_number(c, object, "attention_factor", gain);
}

/* YaRN (Peng et al. 2023): as Llama 3.1, but what is left falls with the number of the pair. */
static void read_yarn_rotary(MtfConfig *c, const MtfJson *object, MtfArchitecture *n) {
    MtfStack *s = &n->decoder;
    double features = floor(s->rotary_share * (double)s->d_kv);
    MtfJson value;
    bool whole = true;
    if (!c->failed && mtf_json_find(object, "truncate", &value) &&
        !mtf_json_boolean(&value, &whole, c->error))
        c->failed = true;
    s->rotary_stretch = rotary_number(c, object, "factor", 1);
    s->rotary_context =
        rotary_number(c, object, "original_max_position_embeddings", (double)n->context);
    s->rotary_gain = yarn_gain(c, object, s->rotary_stretch);
    double low = yarn_pair(s, features, rotary_number(c, object, "beta_fast", 32));
    double high = yarn_pair(s, features, rotary_number(c, object, "beta_slow", 1));
    s->rotary_low = fmax(whole ? floor(low) : low, 0);
    s->rotary_high = fmin(whole ? ceil(high) : high, features - 1);
    if (s->rotary_high <= s->rotary_low)
        s->rotary_high = s->rotary_low + 0.001;
    s->rotary_ramp = 1;
}

/* A list of one number a pair. */
static void read_divisors(MtfConfig *c, const MtfJson *object, const char *key, int pairs,
                          double *numbers) {
    MtfJson list, item;
    int n = 0;
    if (c->failed)
        return;
    c->failed = !mtf_json_get_array(object, key, &list, c->error);
    if (!c->failed && (mtf_json_length(&list) != pairs || pairs > MTF_MOST_PAIRS))
        c->failed =
            !mtf_json_fail(&list, c->error, "%d numbers are expected, one a pair, at most %d",
                           pairs, MTF_MOST_PAIRS);
    for (bool more = !c->failed && mtf_json_first(&list, &item); more && !c->failed;
         more = mtf_json_next(&item), n++) {
        c->failed = !mtf_json_number(&item, &numbers[n], c->error);
        if (!c->failed && !(numbers[n] > 0))
            c->failed = !mtf_json_fail(&item, c->error, "a number above 0 is expected");
    }
}

/* LongRoPE (Ding et al. 2024): every pair is stretched by a number of its own, by another one in texts
 * longer than the model was first made for. */
static void read_longrope_rotary(MtfConfig *c, const MtfJson *object, MtfArchitecture *n) {
    static const char key[] = "original_max_position_embeddings";
    MtfStack *s = &n->decoder;
    double old = n->old_context > 0 ? (double)n->old_context : (double)n->context;
    old = mtf_config_number(c, key, rotary_number(c, object, key, old));
    bool known = n->old_context > 0 || mtf_json_find(c->root, key, &(MtfJson){ 0 }) ||
                 mtf_json_find(object, key, &(MtfJson){ 0 });
    double times = known ? (double)n->context / old : rotary_number(c, object, "factor", 1);
    double gain = times > 1 ? sqrt(1 + log(times) / log(old)) : 1;
    if (!(old > 1))
        mtf_config_fail(c, key, "a context above 1 is expected");
    s->rotary_context = old;
    s->rotary_gain = rotary_number(c, object, "attention_factor", gain);
    s->rotary_divided = (int)floor(s->rotary_share * (double)s->d_kv) / 2;
    read_divisors(c, object, "short_factor", s->rotary_divided, s->rotary_short);
    read_divisors(c, object, "long_factor", s->rotary_divided, s->rotary_long);
}

/* The base grows with the text, or, of Hunyuan, by a number once for all. */
static void read_dynamic_rotary(MtfConfig *c, const MtfJson *object, MtfArchitecture *n) {
    MtfStack *s = &n->decoder;
    double features = floor(s->rotary_share * (double)s->d_kv);
    double alpha = rotary_number(c, object, "alpha", 0);
    if (alpha > 0) {
        s->rotary_base *= pow(alpha, features / (features - 2));
        return;
    }
    s->rotary_growth = rotary_number(c, object, "factor", 1);
    s->rotary_context = (double)n->context;
}

/* Pairs are those of the whole head, and only the first ones, a share of them, turn. */
static void read_proportional_rotary(MtfConfig *c, const MtfJson *object, MtfStack *s) {
    int64_t width = s->whole_d_kv > 0 ? s->whole_d_kv : s->d_kv;
    int pairs = (int)MIN(width / 2, MTF_MOST_PAIRS);
    int turned = (int)floor(s->rotary_share * (double)width / 2);
    if (width / 2 > MTF_MOST_PAIRS)
        mtf_config_fail(c, "head_dim", "at most %d is supported", 2 * MTF_MOST_PAIRS);
    s->rotary_angle = 1 / rotary_number(c, object, "factor", 1);
    s->rotary_share = 1;
    s->rotary_divided = pairs;
    for (int i = 0; i < pairs; i++)
        s->rotary_short[i] = i < turned ? 1 : 1e30;
}

/* What an object may say, each read by the types that have it; "finetuned" is of how the model was made. */
static bool has_known_keys(MtfConfig *c, const MtfJson *object, const MtfStack *s) {
    static const char *const tempered[] = { "llama_4_scaling_beta", "max_position_embeddings",
                                            NULL };
    static const char *const known[] = { "rope_type",
                                         "type",
                                         "rope_theta",
                                         "partial_rotary_factor",
                                         "factor",
                                         "original_max_position_embeddings",
                                         "beta_fast",
                                         "beta_slow",
                                         "truncate",
                                         "attention_factor",
                                         "mscale",
                                         "mscale_all_dim",
                                         "short_factor",
                                         "long_factor",
                                         "short_mscale",
                                         "long_mscale",
                                         "low_freq_factor",
                                         "high_freq_factor",
                                         "finetuned",
                                         "alpha",
                                         NULL };
    static const char *const sections[] = { "mrope_section", "mrope_interleaved", NULL };
    MtfJson value;
    for (bool more = mtf_json_first(object, &value); more; more = mtf_json_next(&value))
        if (!g_strv_contains(known, mtf_json_key(&value)) && !cJSON_IsNull(value.node) &&
            !(s->rotary_sections && g_strv_contains(sections, mtf_json_key(&value))) &&
            !(s->temper_all && g_strv_contains(tempered, mtf_json_key(&value))))
            return mtf_json_fail(&value, c->error,
                                 "not known of rotary positions, and it may change what the model "
                                 "computes; take it out if it does not");
    return true;
}

/* Its "rope_type", "type" in old files. */
static const char *read_rotary_type(MtfConfig *c, const MtfJson *object, const MtfStack *s) {
    MtfJson value;
    const char *type = "default";
    bool there =
        mtf_json_find(object, "rope_type", &value) || mtf_json_find(object, "type", &value);
    if (!has_known_keys(c, object, s) || (there && !mtf_json_string(&value, &type, c->error)))
        c->failed = true;
    return type;
}

static void read_rotary_object(MtfConfig *c, const char *key, const MtfJson *object,
                               MtfArchitecture *n) {
    MtfStack *s = &n->decoder;
    const char *type = read_rotary_type(c, object, s);
    s->rotary_base = rotary_number(c, object, "rope_theta", s->rotary_base);
    s->rotary_share = rotary_number(c, object, "partial_rotary_factor", s->rotary_share);
    if (s->temper_all) {
        s->temper = rotary_number(c, object, "llama_4_scaling_beta", 0);
        s->temper_places =
            (int64_t)fmin(rotary_number(c, object, "original_max_position_embeddings", 0), 1e15);
    }
    if (strcmp(type, "llama3") == 0)
        read_llama3_rotary(c, object, s);
    else if (strcmp(type, "linear") == 0)
        s->rotary_angle = 1 / rotary_number(c, object, "factor", 1);
    else if (strcmp(type, "yarn") == 0)
        read_yarn_rotary(c, object, n);
    else if (strcmp(type, "dynamic") == 0)
        read_dynamic_rotary(c, object, n);
    else if (strcmp(type, "proportional") == 0)
        read_proportional_rotary(c, object, s);
    else if (strcmp(type, "longrope") == 0 || strcmp(type, "su") == 0)
        read_longrope_rotary(c, object, n);
    else if (strcmp(type, "default") != 0 && !(s->rotary_sections && strcmp(type, "mrope") == 0))
        mtf_config_fail(c, key,
                        "rotary positions of type \"%s\" are not supported; there are "
                        "default, linear, dynamic, yarn, llama3, proportional and longrope",
                        type);
}

/* Of layers with a window, where they have a base of their own and turn by it as it is. */
static void read_window_rotary(MtfConfig *c, const MtfJson *object, MtfStack *s) {
    const char *type = read_rotary_type(c, object, s);
    if (!c->failed && strcmp(type, "default") != 0)
        c->failed = !mtf_json_fail(
            object, c->error,
            "only rotary positions of type \"default\" are supported for layers with a window");
    s->window_rotary_base = rotary_number(c, object, "rope_theta", s->window_rotary_base);
}

/* "rope_scaling" of old files, "rope_parameters" of new ones, which may have an object for each kind of
 * layer. */
static void read_rotary_objects(MtfConfig *c, const char *key, MtfArchitecture *n) {
    MtfJson object, full, sliding;
    if (!mtf_config_find(c, key, &object))
        return;
    c->failed = !mtf_json_object(&object, c->error);
    if (c->failed)
        return;
    if (n->decoder.window_rotary_base == 0 || !mtf_json_find(&object, "full_attention", &full)) {
        read_rotary_object(c, key, &object, n);
        return;
    }
    c->failed = !mtf_json_object(&full, c->error) ||
                !mtf_json_get_object(&object, "sliding_attention", &sliding, c->error);
    if (!c->failed)
        read_rotary_object(c, key, &full, n);
    if (!c->failed)
        read_window_rotary(c, &sliding, &n->decoder);
}

void mtf_config_rotary(MtfConfig *c, MtfArchitecture *n, double standard) {
    MtfStack *s = &n->decoder;
    double share = s->rotary_share > 0 ? s->rotary_share : 1;
    s->rotary_base = mtf_config_number(c, "rope_theta", standard);
    s->rotary_share = mtf_config_number(c, "partial_rotary_factor", share);
    s->rotary_angle = s->rotary_stretch = s->rotary_low = s->rotary_gain = 1;
    s->rotary_high = 4;
    read_rotary_objects(c, "rope_scaling", n);
    read_rotary_objects(c, "rope_parameters", n);
    if (!(s->rotary_base > 0 && isfinite(s->rotary_base) && s->rotary_share > 0 &&
          s->rotary_share <= 1))
        mtf_config_fail(c, "rope_theta",
                        "rotary positions need a base above 0 and a share of "
                        "features above 0 and at most 1");
}
