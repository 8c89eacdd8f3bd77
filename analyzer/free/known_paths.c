// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/free/known_paths.h"

#include <string.h>

/* Paths with one lock. */
typedef struct {
    GMutex lock;
    GHashTable *paths; /* MtfPathKey -> int64_t */
} Shard;

#define SHARDS 64 /* enough that threads seldom want the same one */

struct MtfKnownPaths {
    gatomicrefcount references;
    Shard shards[SHARDS];
};

static guint path_hash(gconstpointer data) {
    return (guint)((const MtfPathKey *)data)->hash;
}

static gboolean path_equal(gconstpointer a, gconstpointer b) {
    return memcmp(a, b, sizeof(MtfPathKey)) == 0;
}

MtfKnownPaths *mtf_known_paths_new(void) {
    MtfKnownPaths *paths = g_new(MtfKnownPaths, 1);
    g_atomic_ref_count_init(&paths->references);
    for (int i = 0; i < SHARDS; i++) {
        g_mutex_init(&paths->shards[i].lock);
        paths->shards[i].paths = g_hash_table_new_full(path_hash, path_equal, g_free, g_free);
    }
    return paths;
}

MtfKnownPaths *mtf_known_paths_ref(MtfKnownPaths *paths) {
    g_atomic_ref_count_inc(&paths->references);
    return paths;
}

void mtf_known_paths_unref(MtfKnownPaths *paths) {
    if (paths == NULL || !g_atomic_ref_count_dec(&paths->references))
        return;
    for (int i = 0; i < SHARDS; i++) {
        g_mutex_clear(&paths->shards[i].lock);
        g_hash_table_unref(paths->shards[i].paths);
    }
    g_free(paths);
}

int64_t mtf_known_paths_find(MtfKnownPaths *paths, const MtfPathKey *key) {
    Shard *shard = &paths->shards[key->hash % SHARDS];
    g_mutex_lock(&shard->lock);
    const int64_t *known = g_hash_table_lookup(shard->paths, key);
    int64_t nanoseconds = known != NULL ? *known : -1;
    g_mutex_unlock(&shard->lock);
    return nanoseconds;
}

/* Another thread may have kept the same meanwhile. */
void mtf_known_paths_keep(MtfKnownPaths *paths, const MtfPathKey *key, int64_t nanoseconds) {
    Shard *shard = &paths->shards[key->hash % SHARDS];
    g_mutex_lock(&shard->lock);
    g_hash_table_insert(shard->paths, g_memdup2(key, sizeof *key),
                        g_memdup2(&nanoseconds, sizeof nanoseconds));
    g_mutex_unlock(&shard->lock);
}
