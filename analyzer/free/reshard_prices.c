// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/free/reshard_prices.h"

#include "analyzer/solver/problem/shared_blocks.h"
#include "cost/price/software_price.h"
#include "layouts/program/program.h"

#include <math.h>
#include <stdatomic.h>
#include <string.h>

struct MtfReshardPrices {
    const MtfGraph *graph;
    const MtfPricer *pricer;
    MtfLayout *layout;  /* for its mesh */
    GHashTable *tables; /* PriceTableKey -> PriceTable */
    MtfKnownPaths *paths;
};

/* ---- Tables ----------------------------------------------------------------------------------
 *
 * Most pairs of placements are asked for again by other edges of the same tensor, or of one alike.
 * A table numbers the placements of such tensors and keeps the price of each pair in its place. */

/* A placement, a few bits an axis: the place of the dimension that it splits in the tensor's
 * shape, or the lowest bits of what else it may be. */
typedef guint32 Code;

#define CODE_BITS 4
#define CODE_MASK ((1 << CODE_BITS) - 1)
#define CODE_REPLICATED (MTF_REPLICATED & CODE_MASK)

G_STATIC_ASSERT(MTF_MAX_MESH_AXES *CODE_BITS <= 8 * sizeof(Code));
G_STATIC_ASSERT(MTF_MAX_RANK <= (MTF_PARTIAL_MAX & CODE_MASK));

typedef struct {
    MtfShape shape;     /* unused places are zero */
    gint64 dtype, host; /* as in MtfPathKey */
} PriceTableKey;

typedef struct {
    MtfReshardPrices *prices;
    MtfTravel travel; /* the first of its kind */
    gint64 host;
    unsigned even[MTF_MAX_RANK]; /* bit a: axis a splits that dimension evenly */
    GHashTable *numbers;         /* MtfPlacement -> its number plus 1 */
    GArray *placements;          /* MtfPlacement */
    GMutex lock;                 /* of what follows, while it is made */
    Code *codes;                 /* one a placement */
    _Atomic int64_t *pairs;      /* price plus 1 from one to the other; 0: not known yet */
} PriceTable;

static guint key_hash(gconstpointer data) {
    return (guint)mtf_hash_words(data, sizeof(PriceTableKey));
}

static gboolean key_equal(gconstpointer a, gconstpointer b) {
    return memcmp(a, b, sizeof(PriceTableKey)) == 0;
}

static guint placement_hash(gconstpointer data) {
    return (guint)mtf_hash_words(data, sizeof(MtfPlacement));
}

static gboolean placement_equal(gconstpointer a, gconstpointer b) {
    return mtf_placement_equal(a, b);
}

static const MtfMesh *mesh_of(const PriceTable *table) {
    return &table->prices->layout->mesh;
}

static const MtfShape *shape_of(const PriceTable *table) {
    return &mtf_graph_tensor(table->prices->graph, table->travel.tensor)->shape;
}

static int64_t size_of(const PriceTable *table, int place) {
    return mtf_graph_size(table->prices->graph, shape_of(table)->dims[place]);
}

static PriceTable *price_table_new(MtfReshardPrices *prices, MtfTravel travel, gint64 host) {
    PriceTable *table = g_new0(PriceTable, 1);
    table->prices = prices;
    table->travel = travel;
    table->host = host;
    table->numbers = g_hash_table_new_full(placement_hash, placement_equal, g_free, NULL);
    table->placements = g_array_new(FALSE, FALSE, sizeof(MtfPlacement));
    g_mutex_init(&table->lock);
    for (int i = 0; i < shape_of(table)->rank; i++)
        for (int a = 0; a < mesh_of(table)->n_axes; a++)
            if (size_of(table, i) % mesh_of(table)->axes[a].size == 0)
                table->even[i] |= 1U << a;
    return table;
}

static void price_table_free(gpointer data) {
    PriceTable *table = data;
    g_hash_table_unref(table->numbers);
    g_array_unref(table->placements);
    g_mutex_clear(&table->lock);
    g_free(table->codes);
    g_free(table->pairs);
    g_free(table);
}

int64_t mtf_travel_launch(const MtfReshardPrices *prices, MtfTravel travel) {
    const MtfOperation *op = mtf_graph_operation(prices->graph, travel.operation);
    return llround(1e9 * mtf_software_launch_seconds(prices->pricer->machine->software, op));
}

static PriceTableKey key_of(const MtfReshardPrices *prices, MtfTravel travel) {
    const MtfTensor *t = mtf_graph_tensor(prices->graph, travel.tensor);
    PriceTableKey key;
    memset(&key, 0, sizeof key);
    key.shape.rank = t->shape.rank;
    memcpy(key.shape.dims, t->shape.dims, sizeof(int) * (gsize)t->shape.rank);
    key.dtype = t->dtype;
    key.host = mtf_travel_launch(prices, travel);
    return key;
}

void mtf_reshard_prices_expect(MtfReshardPrices *prices, MtfTravel travel,
                               const GArray *placements) {
    PriceTableKey key = key_of(prices, travel);
    PriceTable *table = g_hash_table_lookup(prices->tables, &key);
    if (table == NULL) {
        table = price_table_new(prices, travel, key.host);
        g_hash_table_insert(prices->tables, g_memdup2(&key, sizeof key), table);
    }
    g_assert(table->pairs == NULL);
    for (guint i = 0; i < placements->len; i++) {
        const MtfPlacement *placement = &g_array_index(placements, MtfPlacement, i);
        if (g_hash_table_contains(table->numbers, placement))
            continue;
        g_array_append_vals(table->placements, placement, 1);
        g_hash_table_insert(table->numbers, g_memdup2(placement, sizeof *placement),
                            GUINT_TO_POINTER(table->placements->len));
    }
}

static int *numbers_of(const PriceTable *table, const GArray *placements) {
    int *numbers = g_new(int, placements->len + 1);
    for (guint i = 0; i < placements->len; i++) {
        gpointer known =
            g_hash_table_lookup(table->numbers, &g_array_index(placements, MtfPlacement, i));
        g_assert(known != NULL);
        numbers[i] = GPOINTER_TO_INT(known) - 1;
    }
    return numbers;
}

static Code encode(const MtfShape *shape, const MtfPlacement *placement) {
    Code codes = 0;
    for (int a = 0; a < MTF_MAX_MESH_AXES; a++) {
        int value = placement->axis[a], place = 0;
        while (value >= 0 && shape->dims[place] != value)
            place++;
        Code code = (Code)((value >= 0 ? place : value) & CODE_MASK);
        codes |= code << a * CODE_BITS;
    }
    return codes;
}

/* The table of a tensor on its way, ready for prices. */
static PriceTable *ready_table(MtfReshardPrices *prices, MtfTravel travel) {
    PriceTableKey key = key_of(prices, travel);
    PriceTable *table = g_hash_table_lookup(prices->tables, &key);
    guint n = table->placements->len;
    g_mutex_lock(&table->lock);
    if (table->pairs == NULL) {
        table->codes = g_new(Code, n + 1);
        for (guint i = 0; i < n; i++)
            table->codes[i] =
                encode(shape_of(table), &g_array_index(table->placements, MtfPlacement, i));
        table->pairs = g_new0(_Atomic int64_t, (gsize)n *n + 1);
    }
    g_mutex_unlock(&table->lock);
    return table;
}

/* ---- What a price depends on ----------------------------------------------------------------- */

/* A resharding without its idle axes. */
typedef struct {
    Code from, to;
    int64_t parts; /* as in drop_idle_axes */
} Resharding;

static int code_at(Code code, int axis) {
    return (int)(code >> axis * CODE_BITS) & CODE_MASK;
}

static bool is_dimension(int code) {
    return code < MTF_MAX_RANK;
}

/* Whether another axis splits the dimension that this one splits, before or after. */
static bool shares_dimension(const PriceTable *table, Code from, Code to, int axis) {
    int dim = code_at(from, axis);
    for (int a = 0; a < mesh_of(table)->n_axes; a++)
        if (a != axis && (code_at(from, a) == dim || code_at(to, a) == dim))
            return true;
    return false;
}

/* Makes axes replicated that have no part in a resharding: those which split a dimension of their own
 * evenly, before and after, so that every processor moves as much as if the dimension were that
 * much smaller; and those that hold terms of one reduction before and after. Returns by how much.
 */
static int64_t drop_idle_axes(const PriceTable *table, Code *from, Code *to) {
    const MtfMesh *mesh = mesh_of(table);
    int64_t parts = 1;
    for (int a = 0; a < mesh_of(table)->n_axes; a++) {
        int dim = code_at(*from, a);
        if (dim != code_at(*to, a) || dim == CODE_REPLICATED)
            continue;
        if (is_dimension(dim) &&
            (!(table->even[dim] >> a & 1) || shares_dimension(table, *from, *to, a)))
            continue;
        parts *= is_dimension(dim) ? mesh->axes[a].size : 1;
        *from |= (Code)CODE_REPLICATED << a * CODE_BITS;
        *to |= (Code)CODE_REPLICATED << a * CODE_BITS;
    }
    return parts;
}

/* Which of `places` this is; `n` where it is none. */
static int number_of(const int *places, int n, int place) {
    int number = 0;
    while (number < n && places[number] != place)
        number++;
    return number;
}

/* The placement of a code, its dimensions numbered; places[i] is where the one of number i stands
 * in the shape. */
static MtfPlacement number_dims(const PriceTable *table, Code code, MtfPathKey *key, int *places,
                                int *n_places) {
    MtfPlacement placement = mtf_placement_replicated();
    for (int a = 0; a < mesh_of(table)->n_axes; a++) {
        int place = code_at(code, a);
        if (!is_dimension(place)) {
            placement.axis[a] = (int16_t)(place - (1 << CODE_BITS));
            continue;
        }
        int number = number_of(places, *n_places, place);
        if (number == *n_places) {
            places[(*n_places)++] = place;
            key->sizes[number] = size_of(table, place);
        }
        placement.axis[a] = (int16_t)number;
    }
    return placement;
}

/* Of a resharding without idle axes. */
static MtfPathKey path_key(const PriceTable *table, const Resharding *resharding) {
    const MtfTensor *t = mtf_graph_tensor(table->prices->graph, table->travel.tensor);
    int places[2 * MTF_MAX_MESH_AXES], n_places = 0;
    MtfPathKey key;
    memset(&key, 0, sizeof key);
    key.dtype = t->dtype;
    key.host = table->host;
    key.from = number_dims(table, resharding->from, &key, places, &n_places);
    key.to = number_dims(table, resharding->to, &key, places, &n_places);
    key.others = 1;
    for (int i = 0; i < t->shape.rank; i++)
        if (number_of(places, n_places, i) == n_places)
            key.others *= size_of(table, i);
    key.others /= resharding->parts;
    key.hash = mtf_hash_words(&key, offsetof(MtfPathKey, hash));
    return key;
}

MtfReshardPrices *mtf_reshard_prices_new(const MtfGraph *graph, const MtfMesh *mesh,
                                         const MtfPricer *pricer, MtfKnownPaths *paths) {
    MtfReshardPrices *prices = g_new(MtfReshardPrices, 1);
    *prices = (MtfReshardPrices){
        .graph = graph,
        .pricer = pricer,
        .layout = mtf_layout_new(graph, mesh),
        .tables = g_hash_table_new_full(key_hash, key_equal, g_free, price_table_free),
        .paths = paths != NULL ? mtf_known_paths_ref(paths) : mtf_known_paths_new(),
    };
    return prices;
}

void mtf_reshard_prices_free(MtfReshardPrices *prices) {
    if (prices == NULL)
        return;
    mtf_layout_free(prices->layout);
    g_hash_table_unref(prices->tables);
    mtf_known_paths_unref(prices->paths);
    g_free(prices);
}

/* The price of a resharding that is `resharding` without its idle axes, found once for all tensors.
 */
static int64_t find_or_make_price(const PriceTable *table, const Resharding *resharding,
                                  const MtfPlacement *from, const MtfPlacement *to) {
    MtfReshardPrices *prices = table->prices;
    MtfPathKey key = path_key(table, resharding);
    int64_t price = mtf_known_paths_find(prices->paths, &key);
    if (price >= 0)
        return price;
    g_autoptr(MtfProgram) program =
        mtf_lower_path(prices->graph, prices->layout, table->travel.tensor, from, to);
    for (int i = 0; i < mtf_program_length(program); i++)
        mtf_program_instruction(program, i)->operation = table->travel.operation;
    price = mtf_price_program(prices->pricer, program);
    mtf_known_paths_keep(prices->paths, &key, price);
    return price;
}

static int64_t new_price(const PriceTable *table, int from, int to) {
    if (from == to)
        return 0;
    Resharding resharding = { .from = table->codes[from], .to = table->codes[to] };
    resharding.parts = drop_idle_axes(table, &resharding.from, &resharding.to);
    return find_or_make_price(table, &resharding,
                              &g_array_index(table->placements, MtfPlacement, from),
                              &g_array_index(table->placements, MtfPlacement, to));
}

int64_t *mtf_reshard_prices_of_pairs(MtfReshardPrices *prices, MtfTravel travel, const GArray *from,
                                     const GArray *to) {
    PriceTable *table = ready_table(prices, travel);
    gsize n = table->placements->len;
    g_autofree int *sources = numbers_of(table, from);
    g_autofree int *targets = numbers_of(table, to);
    int64_t *costs = g_new(int64_t, (gsize)from->len * to->len + 1);
    for (guint i = 0; i < from->len; i++)
        for (guint j = 0; j < to->len; j++) {
            _Atomic int64_t *pair = &table->pairs[(gsize)sources[i] * n + (gsize)targets[j]];
            int64_t known = atomic_load_explicit(pair, memory_order_relaxed);
            if (known == 0) {
                known = new_price(table, sources[i], targets[j]) + 1;
                atomic_store_explicit(pair, known, memory_order_relaxed);
            }
            costs[i * to->len + j] = known - 1;
        }
    return costs;
}
