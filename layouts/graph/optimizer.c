// SPDX-License-Identifier: GPL-3.0-or-later
#include "layouts/graph/optimizer.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

const char *const *mtf_optimizer_kinds(void) {
    static const char *const kinds[] = { MTF_OPTIMIZER_KINDS, NULL };
    return kinds;
}

bool mtf_optimizer_keeps_padding(const char *kind) {
    static const char *const kinds[] = { "sgd",  "momentum", "adam", "adamw",
                                         "lion", "lamb",     "muon", NULL };
    return kind == NULL || g_strv_contains(kinds, kind);
}

const char *const *mtf_schedules(void) {
    static const char *const schedules[] = { MTF_SCHEDULES, NULL };
    return schedules;
}

#define FIELD(name) #name, offsetof(MtfOptimizer, name)

const MtfOptimizerNumber *mtf_optimizer_numbers(void) {
    static const MtfOptimizerNumber numbers[] = {
        { FIELD(rate), NULL, 0, 0, INFINITY, false },
        { FIELD(momentum), "momentum", 0.9, 0, 1, false },
        { FIELD(beta1), "adam", 0.9, 0, 1, false },
        { FIELD(beta1), "adamw", 0.9, 0, 1, false },
        { FIELD(beta2), "adam", 0.999, 0, 1, false },
        { FIELD(beta2), "adamw", 0.999, 0, 1, false },
        { FIELD(beta1), "lion", 0.9, 0, 1, false },
        { FIELD(beta2), "lion", 0.99, 0, 1, false },
        { FIELD(weight_decay), "lion", 0, 0, INFINITY, false },
        { FIELD(epsilon), "adam", 1e-8, 0, INFINITY, false },
        { FIELD(epsilon), "adamw", 1e-8, 0, INFINITY, false },
        { FIELD(beta1), "lamb", 0.9, 0, 1, false },
        { FIELD(beta2), "lamb", 0.999, 0, 1, false },
        { FIELD(epsilon), "lamb", 1e-6, 0, INFINITY, false },
        { FIELD(weight_decay), "lamb", 0.01, 0, INFINITY, false },
        { FIELD(momentum), "muon", 0.95, 0, 1, false },
        { FIELD(beta1), "muon", 0.9, 0, 1, false },
        { FIELD(beta2), "muon", 0.95, 0, 1, false },
        { FIELD(epsilon), "muon", 1e-8, 0, INFINITY, false },
        { FIELD(weight_decay), "muon", 0.1, 0, INFINITY, false },
        { FIELD(epsilon), "adafactor", 1e-30, 0, INFINITY, false },
        { FIELD(weight_decay), "sgd", 0, 0, INFINITY, false },
        { FIELD(weight_decay), "momentum", 0, 0, INFINITY, false },
        { FIELD(weight_decay), "adamw", 0.01, 0, INFINITY, false },
        { FIELD(warmup), NULL, 0, 0, INFINITY, false },
        { FIELD(total), NULL, 0, 0, INFINITY, false },
        { FIELD(final), NULL, 0, 0, 1, false },
        { FIELD(clip_norm), NULL, 0, 0, INFINITY, false },
        { FIELD(power), NULL, 1, 0, INFINITY, true },
        { FIELD(cooldown), NULL, 0, 0, INFINITY, true },
        { FIELD(period), NULL, 0, 0, INFINITY, true },
        { FIELD(drop), NULL, 0.1, 0, INFINITY, true },
        { FIELD(ema), NULL, 0, 0, 1, true },
        { NULL, 0, NULL, 0, 0, 0, false },
    };
    return numbers;
}

bool mtf_optimizer_has(const char *kind, const MtfOptimizerNumber *number) {
    return number->kind == NULL || strcmp(number->kind, kind) == 0;
}

char *mtf_optimizer_lacks(const MtfOptimizer *optimizer) {
    static const char *const ending[] = { "cosine", "linear", "polynomial", "wsd", NULL };
    const char *schedule = optimizer->schedule;
    if (g_strv_contains(ending, schedule) && optimizer->total <= optimizer->warmup)
        return g_strdup_printf("schedule \"%s\" needs \"total\", the step at which it ends, above "
                               "\"warmup\"",
                               schedule);
    if (strcmp(schedule, "wsd") == 0 && !(optimizer->cooldown > 0))
        return g_strdup("schedule \"wsd\" needs \"cooldown\", the steps in which it ends");
    if (strcmp(schedule, "wsd") == 0 && optimizer->cooldown > optimizer->total - optimizer->warmup)
        return g_strdup_printf("schedule \"wsd\" has %g steps between \"warmup\" and \"total\", "
                               "fewer than its \"cooldown\" of %g",
                               optimizer->total - optimizer->warmup, optimizer->cooldown);
    if (strcmp(schedule, "step") == 0 && !(optimizer->period > 0))
        return g_strdup("schedule \"step\" needs \"period\", the steps from one drop to the next");
    return NULL;
}

MtfOptimizer mtf_optimizer_standard(const char *kind, double rate) {
    MtfOptimizer optimizer = { .kind = g_strdup(kind), .schedule = g_strdup("constant") };
    const MtfOptimizerNumber *number = mtf_optimizer_numbers();
    for (; number->name != NULL; number++)
        if (mtf_optimizer_has(kind, number))
            G_STRUCT_MEMBER(double, &optimizer, number->offset) = number->standard;
    optimizer.rate = rate;
    return optimizer;
}
