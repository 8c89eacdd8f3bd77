// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/rules/operation_prices.h"

#include "analyzer/rules/operation_alone.h"

#include <string.h>

/* Prices that are kept: some 64 bytes each. */
#define MOST_PRICES (4 << 20)

struct MtfPlacedPrices {
    GMutex lock;
    GHashTable *known; /* Placed */
    gint *room;        /* for more prices of any operation; atomic */
};

struct MtfOperationPrices {
    GMutex lock;
    GHashTable *operations; /* text and mesh -> MtfPlacedPrices */
    gint room;
};

typedef struct {
    int64_t nanoseconds;
    int n;
    int8_t key[]; /* what lies on each axis of each tensor, by number, and the strategy */
} Placed;

static void placed_prices_free(gpointer data) {
    MtfPlacedPrices *placed = data;
    g_hash_table_unref(placed->known);
    g_mutex_clear(&placed->lock);
    g_free(placed);
}

MtfOperationPrices *mtf_operation_prices_new(void) {
    MtfOperationPrices *prices = g_new0(MtfOperationPrices, 1);
    g_mutex_init(&prices->lock);
    prices->operations = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, placed_prices_free);
    prices->room = MOST_PRICES;
    return prices;
}

void mtf_operation_prices_free(MtfOperationPrices *prices) {
    if (prices == NULL)
        return;
    g_hash_table_unref(prices->operations);
    g_mutex_clear(&prices->lock);
    g_free(prices);
}

/* FNV-1a. */
static guint placed_hash(gconstpointer data) {
    const Placed *placed = data;
    guint hash = 2166136261U;
    for (int i = 0; i < placed->n; i++)
        hash = (hash ^ (guint8)placed->key[i]) * 16777619U;
    return hash;
}

static gboolean placed_equal(gconstpointer left, gconstpointer right) {
    const Placed *a = left, *b = right;
    return a->n == b->n && memcmp(a->key, b->key, (gsize)a->n) == 0;
}

MtfPlacedPrices *mtf_operation_prices_of(MtfOperationPrices *prices, const char *text,
                                         const MtfMesh *mesh) {
    g_autofree char *laid = mtf_mesh_format(mesh);
    g_autofree char *key = g_strconcat(text, "|", laid, NULL);
    g_mutex_lock(&prices->lock);
    MtfPlacedPrices *placed = g_hash_table_lookup(prices->operations, key);
    if (placed == NULL) {
        placed = g_new0(MtfPlacedPrices, 1);
        g_mutex_init(&placed->lock);
        placed->known = g_hash_table_new_full(placed_hash, placed_equal, g_free, NULL);
        placed->room = &prices->room;
        g_hash_table_insert(prices->operations, g_steal_pointer(&key), placed);
    }
    g_mutex_unlock(&prices->lock);
    return placed;
}

static Placed *placed_of(const MtfLayout *alone, const GArray *dimensions, int64_t nanoseconds) {
    int axes = alone->mesh.n_axes, n = (alone->n_tensors + 1) * axes;
    Placed *placed = g_malloc(sizeof *placed + (gsize)n);
    placed->nanoseconds = nanoseconds;
    placed->n = n;
    int8_t *at = placed->key;
    for (int t = 0; t < alone->n_tensors; t++)
        for (int a = 0; a < axes; a++) {
            int lies = alone->tensors[t].axis[a];
            *at++ = (int8_t)(lies >= 0 ? mtf_operation_alone_number(dimensions, lies) : lies);
        }
    memcpy(at, alone->operations[0].axis, (gsize)axes);
    return placed;
}

bool mtf_placed_prices_find(MtfPlacedPrices *placed, const MtfLayout *alone,
                            const GArray *dimensions, int64_t *nanoseconds) {
    g_autofree Placed *wanted = placed_of(alone, dimensions, 0);
    g_mutex_lock(&placed->lock);
    const Placed *known = g_hash_table_lookup(placed->known, wanted);
    if (known != NULL)
        *nanoseconds = known->nanoseconds;
    g_mutex_unlock(&placed->lock);
    return known != NULL;
}

void mtf_placed_prices_add(MtfPlacedPrices *placed, const MtfLayout *alone,
                           const GArray *dimensions, int64_t nanoseconds) {
    if (g_atomic_int_add(placed->room, -1) <= 0) {
        g_atomic_int_add(placed->room, 1);
        return;
    }
    g_mutex_lock(&placed->lock);
    g_hash_table_add(placed->known, placed_of(alone, dimensions, nanoseconds));
    g_mutex_unlock(&placed->lock);
}
