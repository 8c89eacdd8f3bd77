// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/rules/rule_prices.h"

#include <string.h>

/* Bytes of the tables that are kept. */
#define MOST_BYTES ((gsize)256 << 20)

typedef struct {
    bool in_order;
    MtfMesh mesh;
    unsigned *allowed;     /* as the tables were asked for */
    MtfPricer pricer;      /* theirs */
    MtfRuleTables *tables; /* NULL: all rules cost more than that */
    int64_t most;
} Priced;

struct MtfRulePrices {
    MtfRuleTerms *terms;
    MtfOperationPrices *operations, *own; /* those of others, or its own */
    GPtrArray *meshes;                    /* Priced */
    gsize bytes;                          /* of their tables */
};

static void priced_free(gpointer data) {
    Priced *priced = data;
    mtf_rule_tables_free(priced->tables);
    g_free(priced->allowed);
    g_free(priced);
}

MtfRulePrices *mtf_rule_prices_new(const MtfGraph *graph, MtfOperationPrices *operations) {
    MtfRulePrices *prices = g_new0(MtfRulePrices, 1);
    prices->own = operations == NULL ? mtf_operation_prices_new() : NULL;
    prices->operations = operations != NULL ? operations : prices->own;
    prices->terms = mtf_rule_terms_new(graph);
    prices->meshes = g_ptr_array_new_with_free_func(priced_free);
    return prices;
}

void mtf_rule_prices_free(MtfRulePrices *prices) {
    if (prices == NULL)
        return;
    g_ptr_array_unref(prices->meshes);
    mtf_rule_terms_free(prices->terms);
    mtf_operation_prices_free(prices->own);
    g_free(prices);
}

static gsize allowed_bytes(const MtfRulePrices *prices) {
    return prices->terms->graph->dimensions->len * sizeof(unsigned);
}

static const Priced *find_known(const MtfRulePrices *prices, const MtfRuleTablesOptions *options) {
    for (guint i = 0; i < prices->meshes->len; i++) {
        const Priced *priced = g_ptr_array_index(prices->meshes, i);
        if (priced->in_order && mtf_mesh_equal(&priced->mesh, options->mesh) &&
            (priced->tables != NULL || priced->most >= options->most) &&
            memcmp(priced->allowed, options->allowed, allowed_bytes(prices)) == 0)
            return priced;
    }
    return NULL;
}

static gsize bytes_of(const MtfRuleTables *tables) {
    gsize numbers = 0;
    if (tables == NULL)
        return 0;
    const MtfRuleTerms *terms = tables->terms;
    for (guint i = 0; i < terms->maximal->len; i++)
        numbers += (gsize)tables->tables[i].n * (gsize)(tables->tables[i].n_dims / 8 + 2);
    for (guint c = 0; c < terms->classes->len; c++)
        numbers += (gsize)tables->tables[mtf_rule_class(terms, (int)c)->maximal].n;
    return numbers * sizeof(int64_t);
}

/* Tables that nobody asks for again, and all where they take too much, go before others come. */
static void make_room(MtfRulePrices *prices) {
    for (guint i = prices->meshes->len; i-- > 0;) {
        const Priced *priced = g_ptr_array_index(prices->meshes, i);
        if (priced->in_order && prices->bytes <= MOST_BYTES)
            continue;
        prices->bytes -= bytes_of(priced->tables);
        g_ptr_array_remove_index(prices->meshes, i);
    }
}

const MtfRuleTables *mtf_rule_prices_tables(MtfRulePrices *prices,
                                            const MtfRuleTablesOptions *options, bool in_order,
                                            bool *costs_more) {
    const Priced *known = in_order ? find_known(prices, options) : NULL;
    *costs_more = known != NULL && known->tables == NULL;
    if (known != NULL)
        return known->tables;
    make_room(prices);
    Priced *priced = g_new0(Priced, 1);
    priced->in_order = in_order;
    priced->mesh = *options->mesh;
    priced->allowed = g_memdup2(options->allowed, allowed_bytes(prices));
    priced->pricer = *options->pricer;
    priced->most = options->most;
    MtfRuleTablesOptions own = *options;
    own.pricer = &priced->pricer;
    own.operations = in_order ? prices->operations : NULL;
    priced->tables = mtf_rule_tables_new(prices->terms, &own, costs_more);
    if (priced->tables == NULL && !*costs_more) {
        priced_free(priced);
        return NULL;
    }
    prices->bytes += bytes_of(priced->tables);
    g_ptr_array_add(prices->meshes, priced);
    return priced->tables;
}
