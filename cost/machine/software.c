// SPDX-License-Identifier: GPL-3.0-or-later
#include "cost/machine/software.h"

#include "cost/machine/machine_fields.h"
#include "layouts/base/library.h"

#include <string.h>

static const char *const part_names[] = { "queries", "attention", "output",   "up",
                                          "down",    "sweeps",    "messages", NULL };
static const char *const swept_names[] = { "norm",   "residual", "activation", "gated",  "heads",
                                           "scores", "logits",   "cast",       "routed", NULL };
static const char *const hidden_names[] = { "tensor",  "data",   "sharded", "pipeline",
                                            "context", "expert", NULL };
static const char *const redo_names[] = { "none", "selective", "full", NULL };

/* A pair [forward, backward]. */
static bool read_passes(const MtfJson *object, const char *key, double *passes, GError **error) {
    MtfJson list;
    return mtf_json_get(object, key, &list, error) &&
           mtf_figure_list(&list, MTF_PASSES, "a pair [forward, backward] is expected here", passes,
                           error);
}

static bool read_words(const MtfJson *root, MtfSoftware *software, GError **error) {
    MtfJson list, child;
    const char *name, *summary, *text;
    if (!mtf_json_get_string(root, "name", &name, error) ||
        !mtf_json_get_string(root, "summary", &summary, error) ||
        !mtf_json_get_array(root, "matches", &list, error))
        return false;
    software->name = g_strdup(name);
    software->summary = g_strdup(summary);
    GPtrArray *words = g_ptr_array_new_with_free_func(g_free);
    bool read = true;
    for (bool more = mtf_json_first(&list, &child); more && read; more = mtf_json_next(&child)) {
        read = mtf_json_string(&child, &text, error);
        if (read)
            g_ptr_array_add(words, g_strdup(text));
    }
    g_ptr_array_add(words, NULL);
    software->matches = (char **)g_ptr_array_free(words, FALSE);
    return read;
}

/* A figure that may be left out. */
static bool read_optional(const MtfJson *root, const char *key, double *figure, GError **error) {
    MtfJson place;
    return !mtf_json_find(root, key, &place) || mtf_figure_not_negative(root, key, figure, error);
}

static bool read_host(const MtfJson *root, MtfSoftware *software, GError **error) {
    static const char *const keys[] = { "launch",        "kernels", "collective",
                                        "routed",        "experts", "step",
                                        "loops_at_once", "slow",    NULL };
    MtfJson host, place;
    return mtf_json_get(root, "host", &host, error) && mtf_json_keys(&host, keys, error) &&
           mtf_figure_not_negative(&host, "launch", &software->host_seconds, error) &&
           read_passes(&host, "kernels", software->host_kernels, error) &&
           mtf_figure_not_negative(&host, "collective", &software->host_collective_seconds,
                                   error) &&
           (!mtf_json_find(&host, "routed", &place) ||
            read_passes(&host, "routed", software->routed_seconds, error)) &&
           (!mtf_json_find(&host, "experts", &place) ||
            read_passes(&host, "experts", software->expert_seconds, error)) &&
           read_optional(&host, "slow", &software->slow_host_seconds, error) &&
           mtf_json_optional_boolean(&host, "loops_at_once", &software->loops_at_once, error) &&
           mtf_figure_not_negative(&host, "step", &software->step_seconds, error);
}

static bool read_sweeps(const MtfJson *root, MtfSoftware *software, GError **error) {
    MtfJson object;
    if (!mtf_json_get(root, "sweeps", &object, error) ||
        !mtf_json_keys(&object, swept_names, error))
        return false;
    for (int i = 0; i < MTF_SWEPTS; i++)
        if (!read_passes(&object, swept_names[i], software->swept[i], error))
            return false;
    return true;
}

static bool read_attention(const MtfJson *root, MtfSoftware *software, GError **error) {
    static const char *const keys[] = { "fused", "causal", "portable", "share",
                                        "block", "biased", NULL };
    MtfJson object;
    software->attention_block = 128;
    software->biased_attention = true;
    return mtf_json_get(root, "attention", &object, error) && mtf_json_keys(&object, keys, error) &&
           read_optional(&object, "block", &software->attention_block, error) &&
           mtf_json_get_boolean(&object, "fused", &software->fused_attention, error) &&
           mtf_json_optional_boolean(&object, "biased", &software->biased_attention, error) &&
           mtf_json_get_boolean(&object, "causal", &software->causal_skips, error) &&
           mtf_json_get_boolean(&object, "portable", &software->portable_attention, error) &&
           mtf_figure_not_negative(&object, "share", &software->attention_share, error);
}

static bool read_redo(const MtfJson *object, MtfRedo redo, MtfSoftware *software, GError **error) {
    MtfJson policy;
    if (!mtf_json_get(object, redo_names[redo], &policy, error) ||
        !mtf_json_keys(&policy, part_names, error))
        return false;
    for (int i = 0; i < MTF_LAYER_PARTS; i++)
        if (!mtf_figure_not_negative(&policy, part_names[i], &software->redone[redo][i], error))
            return false;
    return true;
}

static bool read_recompute(const MtfJson *root, MtfSoftware *software, GError **error) {
    MtfJson object;
    return mtf_json_get(root, "recompute", &object, error) &&
           mtf_json_keys(&object, redo_names + 1, error) &&
           read_redo(&object, MTF_REDO_SELECTIVE, software, error) &&
           read_redo(&object, MTF_REDO_FULL, software, error);
}

static bool read_hidden(const MtfJson *root, MtfSoftware *software, GError **error) {
    MtfJson object;
    if (!mtf_json_get(root, "hidden", &object, error) ||
        !mtf_json_keys(&object, hidden_names, error))
        return false;
    for (int i = 0; i < MTF_HIDDENS; i++)
        if (!mtf_figure_not_negative(&object, hidden_names[i], &software->hidden[i], error))
            return false;
    return true;
}

static bool read_parameters(const MtfJson *root, MtfSoftware *software, GError **error) {
    static const char *const keys[] = { "weight", "gradient",   "reduce", "optimizer",
                                        "update", "accumulate", NULL };
    MtfJson object;
    return mtf_json_get(root, "parameter_bytes", &object, error) &&
           mtf_json_keys(&object, keys, error) &&
           mtf_figure_not_negative(&object, "weight", &software->weight_bytes, error) &&
           mtf_figure_not_negative(&object, "gradient", &software->gradient_bytes, error) &&
           mtf_figure_not_negative(&object, "reduce", &software->reduce_bytes, error) &&
           mtf_figure_not_negative(&object, "optimizer", &software->optimizer_bytes, error) &&
           mtf_figure_not_negative(&object, "update", &software->update_bytes, error) &&
           mtf_figure_not_negative(&object, "accumulate", &software->accumulate_bytes, error);
}

/* What is not said of gates, copies and gradients that come and go. */
static bool read_kept_besides(const MtfJson *object, MtfSoftware *software, GError **error) {
    MtfJson place;
    software->kept.gated = 1.5 * software->kept.inner;
    software->kept.comes_and_goes = mtf_json_find(object, "unfit", &place);
    return read_optional(object, "gated", &software->kept.gated, error) &&
           read_optional(object, "copies", &software->kept.copies, error) &&
           read_optional(object, "unfit", &software->kept.unfit, error) &&
           mtf_json_optional_boolean(object, "reserved", &software->kept.reserved, error);
}

static bool read_kept(const MtfJson *root, MtfSoftware *software, GError **error) {
    static const char *const keys[] = { "slack", "context",  "scores", "layer",  "inner",
                                        "gated", "heads",    "logits", "copies", "offloads",
                                        "unfit", "reserved", NULL };
    MtfJson object;
    return mtf_json_get(root, "kept_bytes", &object, error) &&
           mtf_json_keys(&object, keys, error) &&
           mtf_figure_not_negative(&object, "slack", &software->kept.slack, error) &&
           mtf_figure_not_negative(&object, "context", &software->kept.context_bytes, error) &&
           mtf_figure_not_negative(&object, "scores", &software->kept.scores, error) &&
           mtf_figure_not_negative(&object, "layer", &software->kept.layer, error) &&
           mtf_figure_not_negative(&object, "inner", &software->kept.inner, error) &&
           mtf_figure_not_negative(&object, "heads", &software->kept.heads, error) &&
           mtf_figure_not_negative(&object, "logits", &software->kept.logits, error) &&
           mtf_json_get_boolean(&object, "offloads", &software->kept.offloads, error) &&
           read_kept_besides(&object, software, error);
}

static bool read_gathers(const MtfJson *root, MtfSoftware *software, GError **error) {
    MtfJson place;
    software->gathers = 1;
    if (!read_optional(root, "gathers", &software->gathers, error) ||
        !read_optional(root, "part_launches", &software->part_launches, error))
        return false;
    if (!mtf_json_optional_boolean(root, "gathered_again", &software->gathered_again, error))
        return false;
    return software->gathers >= 1 || !mtf_json_find(root, "gathers", &place) ||
           mtf_json_fail(&place, error, "%g is less than 1", software->gathers);
}

/* What kernels for pictures lose that the framework has of its own. */
static bool read_picture_kernels(const MtfJson *root, MtfSoftware *software, GError **error) {
    MtfJson place;
    software->batch_norm_share = 1;
    if (mtf_json_find(root, "pooling", &place) &&
        !read_passes(root, "pooling", software->pooled, error))
        return false;
    return mtf_figure_between(root, "batch_norm", 0.01, 1, &software->batch_norm_share, error);
}

static void clear_judged(void *judged) {
    g_free(((MtfJudgedRuns *)judged)->machine);
}

/* {"a100": [75, 0.05]}: runs, and their mean error. */
static bool read_judged_runs(const MtfJson *root, const char *key, bool experts, GArray *judged,
                             GError **error) {
    MtfJson object, child;
    if (!mtf_json_find(root, key, &object))
        return true;
    if (!mtf_json_object(&object, error))
        return false;
    for (bool more = mtf_json_first(&object, &child); more; more = mtf_json_next(&child)) {
        double pair[2];
        if (!read_passes(&object, mtf_json_key(&child), pair, error))
            return false;
        if (pair[0] < 1 || pair[1] < 0)
            return mtf_json_fail(&child, error, "[runs, error] are expected here");
        MtfJudgedRuns runs = { g_strdup(mtf_json_key(&child)), (int64_t)pair[0], pair[1], experts };
        g_array_append_val(judged, runs);
    }
    return true;
}

static bool read_judged(const MtfJson *root, MtfSoftware *software, GError **error) {
    software->judged = g_array_new(FALSE, TRUE, sizeof(MtfJudgedRuns));
    g_array_set_clear_func(software->judged, clear_judged);
    return read_judged_runs(root, "judged", false, software->judged, error) &&
           read_judged_runs(root, "judged_experts", true, software->judged, error);
}

static bool read_software(const MtfJson *root, MtfSoftware *software, GError **error) {
    static const char *const keys[] = { "meshtf_software",
                                        "name",
                                        "summary",
                                        "matches",
                                        "host",
                                        "sweeps",
                                        "attention",
                                        "recompute",
                                        "hidden",
                                        "parameter_bytes",
                                        "kept_bytes",
                                        "sequence_split",
                                        "contention",
                                        "spread",
                                        "gathers",
                                        "sources",
                                        "judged",
                                        "judged_experts",
                                        "whole_sums",
                                        "gathered_again",
                                        "part_launches",
                                        "pads",
                                        "eager",
                                        "batch_norm",
                                        "pooling",
                                        "narrow_weights",
                                        NULL };
    return mtf_json_version(root, "meshtf_software", 1, error) &&
           mtf_json_keys(root, keys, error) && read_words(root, software, error) &&
           read_host(root, software, error) && read_sweeps(root, software, error) &&
           read_attention(root, software, error) && read_recompute(root, software, error) &&
           read_hidden(root, software, error) && read_parameters(root, software, error) &&
           read_kept(root, software, error) && read_judged(root, software, error) &&
           mtf_figure_sources(root, error) &&
           mtf_json_get_boolean(root, "sequence_split", &software->sequence_split, error) &&
           read_gathers(root, software, error) &&
           mtf_json_optional_boolean(root, "whole_sums", &software->whole_sums, error) &&
           mtf_json_optional_boolean(root, "narrow_weights", &software->narrow_weights, error) &&
           mtf_json_optional_boolean(root, "pads", &software->pads, error) &&
           mtf_json_optional_boolean(root, "eager", &software->eager, error) &&
           read_picture_kernels(root, software, error) &&
           mtf_figure_not_negative(root, "contention", &software->contention, error) &&
           mtf_figure_not_negative(root, "spread", &software->spread, error);
}

MtfSoftware *mtf_software_from_json(const MtfJson *where, GError **error) {
    g_autoptr(MtfSoftware) software = g_new0(MtfSoftware, 1);
    if (!mtf_json_object(where, error) || !read_software(where, software, error))
        return NULL;
    software->written = cJSON_Duplicate(where->node, true);
    return g_steal_pointer(&software);
}

MtfSoftware *mtf_software_load(const char *name_or_path, GError **error) {
    g_autoptr(MtfJsonDocument) document = mtf_library_load("software", name_or_path, error);
    if (document == NULL)
        return NULL;
    MtfJson root = mtf_json_root(document);
    return mtf_software_from_json(&root, error);
}

void mtf_software_free(MtfSoftware *software) {
    if (software == NULL)
        return;
    g_free(software->name);
    g_free(software->summary);
    g_strfreev(software->matches);
    cJSON_Delete(software->written);
    if (software->judged != NULL)
        g_array_unref(software->judged);
    g_free(software);
}

MtfFramework mtf_software_framework(const MtfSoftware *software) {
    MtfFramework framework = { 0 };
    if (software != NULL) {
        framework.eager = software->eager;
        framework.logit_bytes = software->kept.logits;
    }
    return framework;
}

/* The length of the longest word of the profile that `words` has. */
static size_t match_length(const MtfSoftware *software, const char *words) {
    size_t longest = 0;
    for (char **match = software->matches; *match != NULL; match++)
        if (strstr(words, *match) != NULL)
            longest = MAX(longest, strlen(*match));
    return longest;
}

MtfSoftware *mtf_software_match(const char *words, GError **error) {
    g_auto(GStrv) names = mtf_library_list("software", error);
    g_autofree char *lower = g_utf8_strdown(words, -1);
    g_autoptr(MtfSoftware) best = NULL;
    size_t longest = 0;
    for (char **name = names; name != NULL && *name != NULL; name++) {
        g_autoptr(MtfSoftware) software = mtf_software_load(*name, error);
        if (software == NULL)
            return NULL;
        size_t length = match_length(software, lower);
        if (length <= longest)
            continue;
        longest = length;
        mtf_software_free(best);
        best = g_steal_pointer(&software);
    }
    return g_steal_pointer(&best);
}
