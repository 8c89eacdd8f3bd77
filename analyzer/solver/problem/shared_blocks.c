// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/solver/problem/shared_blocks.h"

#include <string.h>

/* Blocks held by answers alone are garbage; beyond this much of it everything is forgotten. */
#define MAX_REMEMBERED ((gsize)512 << 20)

/* What stands before a block's contents. */
typedef struct Header {
    gsize bytes;
    guint hash;
    gint refs;
} Header;

struct MtfShared {
    gint owners;         /* atomic */
    GHashTable *blocks;  /* set of Header, by contents */
    GHashTable *answers; /* Question -> MtfAnswer */
    gsize bytes, remembered;
};

static Header *header_of(const void *block) {
    return (Header *)block - 1;
}

guint mtf_hash_words(const void *contents, gsize bytes) {
    const guint64 *words = contents;
    guint64 hash = bytes;
    for (gsize i = 0; i < (bytes + 7) / 8; i++) {
        hash = (hash ^ words[i]) * G_GUINT64_CONSTANT(0x9e3779b97f4a7c15);
        hash ^= hash >> 29;
    }
    return (guint)(hash ^ hash >> 32);
}

static guint header_hash(gconstpointer data) {
    return ((const Header *)data)->hash;
}

static gboolean header_equal(gconstpointer left, gconstpointer right) {
    const Header *a = left, *b = right;
    return a->bytes == b->bytes && a->hash == b->hash && memcmp(a + 1, b + 1, a->bytes) == 0;
}

static gsize question_bytes(const MtfQuestion *question) {
    return G_STRUCT_OFFSET(MtfQuestion, parts) + sizeof question->parts[0] * (gsize)question->count;
}

static guint question_hash(gconstpointer data) {
    return mtf_hash_words(data, question_bytes(data));
}

static gboolean question_equal(gconstpointer left, gconstpointer right) {
    gsize bytes = question_bytes(left);
    return bytes == question_bytes(right) && memcmp(left, right, bytes) == 0;
}

MtfShared *mtf_shared_new(void) {
    MtfShared *shared = g_new0(MtfShared, 1);
    shared->owners = 1;
    shared->blocks = g_hash_table_new_full(header_hash, header_equal, g_free, NULL);
    shared->answers = g_hash_table_new_full(question_hash, question_equal, g_free, g_free);
    return shared;
}

MtfShared *mtf_shared_join(MtfShared *shared) {
    g_atomic_int_inc(&shared->owners);
    return shared;
}

void mtf_shared_free(MtfShared *shared) {
    if (shared == NULL || !g_atomic_int_dec_and_test(&shared->owners))
        return;
    g_hash_table_unref(shared->answers);
    g_hash_table_unref(shared->blocks);
    g_free(shared);
}

void *mtf_shared_alloc(gsize bytes) {
    gsize padded = (bytes + 7) / 8 * 8;
    Header *header = g_malloc(sizeof *header + padded);
    *header = (Header){ .bytes = bytes, .refs = 1 };
    if (padded > bytes)
        memset((char *)(header + 1) + bytes, 0, padded - bytes);
    return header + 1;
}

void mtf_shared_drop(void *block) {
    g_free(header_of(block));
}

const void *mtf_shared_keep(MtfShared *shared, void *block) {
    Header *header = header_of(block);
    header->hash = mtf_hash_words(block, header->bytes);
    Header *known = g_hash_table_lookup(shared->blocks, header);
    if (known != NULL) {
        known->refs++;
        g_free(header);
        return known + 1;
    }
    g_hash_table_add(shared->blocks, header);
    shared->bytes += header->bytes;
    return block;
}

const void *mtf_shared_copy(MtfShared *shared, const void *contents, gsize bytes) {
    void *block = mtf_shared_alloc(bytes);
    memcpy(block, contents, bytes);
    return mtf_shared_keep(shared, block);
}

const void *mtf_shared_ref(const void *block) {
    header_of(block)->refs++;
    return block;
}

void mtf_shared_unref(MtfShared *shared, const void *block) {
    Header *header = header_of(block);
    if (--header->refs > 0)
        return;
    shared->bytes -= header->bytes;
    g_hash_table_remove(shared->blocks, header);
}

gsize mtf_shared_bytes(const MtfShared *shared) {
    return shared->bytes;
}

/* ---- questions ---- */

bool mtf_question_add(MtfQuestion *question, const void *block, gintptr number) {
    if (question->count == MTF_QUESTION_PARTS)
        return false;
    question->parts[question->count].block = block;
    question->parts[question->count].number = number;
    question->count++;
    return true;
}

const MtfAnswer *mtf_shared_recall(const MtfShared *shared, const MtfQuestion *question) {
    return g_hash_table_lookup(shared->answers, question);
}

void mtf_shared_remember(MtfShared *shared, const MtfQuestion *question, MtfAnswer answer) {
    for (int i = 0; i < question->count; i++)
        if (question->parts[i].block != NULL)
            mtf_shared_ref(question->parts[i].block);
    for (gsize i = 0; i < G_N_ELEMENTS(answer.blocks); i++)
        if (answer.blocks[i] != NULL)
            shared->remembered += header_of(mtf_shared_ref(answer.blocks[i]))->bytes;
    g_hash_table_insert(shared->answers, g_memdup2(question, question_bytes(question)),
                        g_memdup2(&answer, sizeof answer));
    if (shared->remembered > MAX_REMEMBERED)
        mtf_shared_forget(shared);
}

static void unref_some(MtfShared *shared, const void *block) {
    if (block != NULL)
        mtf_shared_unref(shared, block);
}

void mtf_shared_forget(MtfShared *shared) {
    GHashTableIter iter;
    gpointer key, value;
    g_hash_table_iter_init(&iter, shared->answers);
    while (g_hash_table_iter_next(&iter, &key, &value)) {
        const MtfQuestion *question = key;
        const MtfAnswer *answer = value;
        for (int i = 0; i < question->count; i++)
            unref_some(shared, question->parts[i].block);
        for (gsize i = 0; i < G_N_ELEMENTS(answer->blocks); i++)
            unref_some(shared, answer->blocks[i]);
    }
    g_hash_table_remove_all(shared->answers);
    shared->remembered = 0;
}
