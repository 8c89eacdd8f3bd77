// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/reshard_prices.h"

#include "analyzer/shared_blocks.h"
#include "layouts/program.h"

#include <string.h>

/* Paths with one lock. */
typedef struct {
    GMutex lock;
    GHashTable *paths; /* PathKey -> int64_t */
} Shelf;

#define SHELVES 64 /* so many that threads seldom meet at one */

struct MtfReshardPrices {
    const MtfGraph *graph;
    const MtfPricer *pricer;
    MtfLayout *layout; /* for its mesh */
    Shelf shelves[SHELVES];
};

/* What the price of a resharding depends on: the sizes of the dimensions that are split before or
 * after, numbered as they turn up, and how many elements the others make. */
typedef struct {
    int64_t sizes[2 * MTF_MAX_MESH_AXES]; /* unused places are zero */
    int64_t others;
    gint64 dtype;
    MtfPlacement from, to;
    guint64 hash; /* of all before it */
} PathKey;

/* Whether another axis splits the dimension that this one splits, before or after. */
static bool shares_dimension(const MtfReshardPrices *prices, const MtfPlacement *from,
                             const MtfPlacement *to, int axis) {
    for (int a = 0; a < prices->layout->mesh.n_axes; a++)
        if (a != axis && (from->axis[a] == from->axis[axis] || to->axis[a] == from->axis[axis]))
            return true;
    return false;
}

/* Makes axes whole that have no part in a resharding: those which split a dimension of their own
 * evenly, before and after, so that every processor moves as much as if the dimension were that
 * much smaller; and those that hold terms of one reduction before and after. Returns by how much.
 */
static int64_t drop_idle_axes(const MtfReshardPrices *prices, MtfPlacement *from,
                              MtfPlacement *to) {
    const MtfMesh *mesh = &prices->layout->mesh;
    int64_t parts = 1;
    for (int a = 0; a < mesh->n_axes; a++) {
        int dim = from->axis[a], size = mesh->axes[a].size;
        if (dim != to->axis[a] || dim == MTF_WHOLE)
            continue;
        if (dim >= 0 && (mtf_graph_size(prices->graph, dim) % size != 0 ||
                         shares_dimension(prices, from, to, a)))
            continue;
        parts *= dim >= 0 ? size : 1;
        from->axis[a] = to->axis[a] = MTF_WHOLE;
    }
    return parts;
}

/* Numbers the dimensions of a placement; dims[i] is the dimension of number i. */
static void number_dims(const MtfReshardPrices *prices, MtfPlacement *placement, PathKey *key,
                        int *dims, int *n_dims) {
    for (int a = 0; a < prices->layout->mesh.n_axes; a++) {
        int dim = placement->axis[a], number = 0;
        if (dim < 0)
            continue;
        while (number < *n_dims && dims[number] != dim)
            number++;
        if (number == *n_dims) {
            dims[(*n_dims)++] = dim;
            key->sizes[number] = mtf_graph_size(prices->graph, dim);
        }
        placement->axis[a] = (int16_t)number;
    }
}

static PathKey path_key(const MtfReshardPrices *prices, int tensor, const MtfPlacement *from,
                        const MtfPlacement *to) {
    const MtfTensor *t = mtf_graph_tensor(prices->graph, tensor);
    int dims[2 * MTF_MAX_MESH_AXES], n_dims = 0;
    PathKey key;
    memset(&key, 0, sizeof key);
    key.dtype = t->dtype;
    key.from = *from;
    key.to = *to;
    int64_t parts = drop_idle_axes(prices, &key.from, &key.to);
    number_dims(prices, &key.from, &key, dims, &n_dims);
    number_dims(prices, &key.to, &key, dims, &n_dims);
    key.others = 1;
    for (int i = 0; i < t->shape.rank; i++) {
        int number = 0;
        while (number < n_dims && dims[number] != t->shape.dims[i])
            number++;
        if (number == n_dims)
            key.others *= mtf_graph_size(prices->graph, t->shape.dims[i]);
    }
    key.others /= parts;
    key.hash = mtf_hash_words(&key, offsetof(PathKey, hash));
    return key;
}

static guint path_hash(gconstpointer data) {
    return (guint)((const PathKey *)data)->hash;
}

static gboolean path_equal(gconstpointer a, gconstpointer b) {
    return memcmp(a, b, sizeof(PathKey)) == 0;
}

MtfReshardPrices *mtf_reshard_prices_new(const MtfGraph *graph, const MtfMesh *mesh,
                                         const MtfPricer *pricer) {
    MtfReshardPrices *prices = g_new(MtfReshardPrices, 1);
    *prices = (MtfReshardPrices){
        .graph = graph,
        .pricer = pricer,
        .layout = mtf_layout_new(graph, mesh),
    };
    for (int i = 0; i < SHELVES; i++) {
        g_mutex_init(&prices->shelves[i].lock);
        prices->shelves[i].paths = g_hash_table_new_full(path_hash, path_equal, g_free, g_free);
    }
    return prices;
}

void mtf_reshard_prices_free(MtfReshardPrices *prices) {
    if (prices == NULL)
        return;
    mtf_layout_free(prices->layout);
    for (int i = 0; i < SHELVES; i++) {
        g_mutex_clear(&prices->shelves[i].lock);
        g_hash_table_unref(prices->shelves[i].paths);
    }
    g_free(prices);
}

/* The price that is known for `key`, or -1. */
static int64_t find_price(Shelf *shelf, const PathKey *key) {
    g_mutex_lock(&shelf->lock);
    const int64_t *known = g_hash_table_lookup(shelf->paths, key);
    int64_t price = known != NULL ? *known : -1;
    g_mutex_unlock(&shelf->lock);
    return price;
}

/* Another thread may have kept the same meanwhile. */
static void keep_price(Shelf *shelf, const PathKey *key, int64_t price) {
    g_mutex_lock(&shelf->lock);
    g_hash_table_insert(shelf->paths, g_memdup2(key, sizeof *key), g_memdup2(&price, sizeof price));
    g_mutex_unlock(&shelf->lock);
}

int64_t mtf_reshard_price(MtfReshardPrices *prices, int tensor, const MtfPlacement *from,
                          const MtfPlacement *to) {
    if (mtf_placement_equal(from, to))
        return 0;
    PathKey key = path_key(prices, tensor, from, to);
    Shelf *shelf = &prices->shelves[key.hash % SHELVES];
    int64_t price = find_price(shelf, &key);
    if (price >= 0)
        return price;
    g_autoptr(MtfProgram) program = mtf_lower_path(prices->graph, prices->layout, tensor, from, to);
    price = mtf_price_program(prices->pricer, program);
    keep_price(shelf, &key, price);
    return price;
}
