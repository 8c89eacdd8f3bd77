// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/solver/search/learned_prices.h"

#include "analyzer/solver/reduce/core_values.h"

#include <math.h>

#define MOST_OVERFULL 0.05 /* no row holds more than its capacity by more than this share of it, */
#define MOST_SLACK 0.003   /* and what is overfull and left is worth this share of the cost */
#define LEARNING 2.0       /* of the share of the room that was overfull or left, */
#define MOST_LESSON 1.25   /* this at most from one move */
#define MOST_LEARNED 10.0  /* and from all */

struct MtfLearnedPrices {
    const MtfCore *core;
    double *learned; /* [rows] times the bound's prices */
    double *priced;  /* of the next move */
    int64_t *use;    /* scratch */
};

MtfLearnedPrices *mtf_learned_prices_new(const MtfCore *core) {
    gsize rows = (gsize)core->rows + 1;
    MtfLearnedPrices *learned = g_new(MtfLearnedPrices, 1);
    *learned = (MtfLearnedPrices){ core, g_new(double, rows), g_new0(double, rows),
                                   g_new0(int64_t, rows) };
    for (gsize r = 0; r < rows; r++)
        learned->learned[r] = 1;
    return learned;
}

void mtf_learned_prices_free(MtfLearnedPrices *learned) {
    if (learned == NULL)
        return;
    g_free(learned->learned);
    g_free(learned->priced);
    g_free(learned->use);
    g_free(learned);
}

void mtf_learned_prices_begin(MtfLearnedPrices *learned, const double *prices, double factor) {
    for (int r = 0; r < learned->core->rows; r++)
        learned->priced[r] = factor * learned->learned[r] * prices[r];
}

const double *mtf_learned_prices_get(const MtfLearnedPrices *learned) {
    return learned->priced;
}

bool mtf_learned_prices_learn(MtfLearnedPrices *learned, const int *values) {
    const MtfCore *core = learned->core;
    double slack = 0, most = 0;
    mtf_core_use(core, values, learned->use);
    for (int r = 0; r < core->rows; r++) {
        double room = fmax(1, (double)core->capacity[r]);
        double over = (double)learned->use[r] - room;
        double before = learned->learned[r];
        double lesson = CLAMP(1 + LEARNING * over / room, 1 / MOST_LESSON, MOST_LESSON);
        slack += learned->priced[r] * over;
        most = fmax(most, over / room);
        learned->learned[r] = CLAMP(before * lesson, 1 / MOST_LEARNED, MOST_LEARNED);
        learned->priced[r] *= learned->learned[r] / before;
    }
    double cost = (double)mtf_core_cost(core, values);
    return most <= MOST_OVERFULL && fabs(slack) <= MOST_SLACK * cost;
}
