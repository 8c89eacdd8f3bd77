// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/reshard_prices.h"

#include "analyzer/shared_blocks.h"
#include "layouts/program.h"

#include <string.h>

struct MtfReshardPrices {
    const MtfGraph *graph;
    const MtfPricer *pricer;
    MtfLayout *layout; /* for its mesh */
    GHashTable *paths; /* PathKey -> int64_t */
};

/* What the price of a resharding depends on: the sizes of the dimensions that are split before or
 * after, numbered as they turn up, and how many elements the others make. */
typedef struct {
    int64_t sizes[2 * MTF_MAX_MESH_AXES]; /* unused places are zero */
    int64_t others;
    gint64 dtype;
    MtfPlacement from, to;
} PathKey;

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
    return key;
}

static guint path_hash(gconstpointer data) {
    return mtf_hash_words(data, sizeof(PathKey));
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
        .paths = g_hash_table_new_full(path_hash, path_equal, g_free, g_free),
    };
    return prices;
}

void mtf_reshard_prices_free(MtfReshardPrices *prices) {
    if (prices == NULL)
        return;
    mtf_layout_free(prices->layout);
    g_hash_table_unref(prices->paths);
    g_free(prices);
}

int64_t mtf_reshard_price(MtfReshardPrices *prices, int tensor, const MtfPlacement *from,
                          const MtfPlacement *to) {
    if (mtf_placement_equal(from, to))
        return 0;
    PathKey key = path_key(prices, tensor, from, to);
    int64_t *known = g_hash_table_lookup(prices->paths, &key);
    if (known != NULL)
        return *known;
    g_autoptr(MtfProgram) program = mtf_lower_path(prices->graph, prices->layout, tensor, from, to);
    int64_t price = mtf_price_program(prices->pricer, program);
    g_hash_table_insert(prices->paths, g_memdup2(&key, sizeof key),
                        g_memdup2(&price, sizeof price));
    return price;
}
