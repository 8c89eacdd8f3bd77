// SPDX-License-Identifier: GPL-3.0-or-later
/* Blocks of numbers that are stored once, and questions about them that are answered once. A deep
 * network repeats its layers, so most of the matrices of its layout problem are equal:
 *
 *     layer 0   o──M1──o──M2──o          one block M1, one block M2, however many layers;
 *     layer 1   o──M1──o──M2──o          "fold the node between M1 and M2" is computed for the
 *     layer 2   o──M1──o──M2──o          first layer and remembered for the others
 *
 * Equal contents are one block, so blocks are compared by their addresses. A block lives while
 * somebody holds a reference to it; what was remembered holds its blocks until it is forgotten.
 * Nothing here depends on what the blocks mean, and nothing is approximate. One thread only. */
#ifndef MTF_SHARED_BLOCKS_H
#define MTF_SHARED_BLOCKS_H

#include <glib.h>
#include <stdbool.h>

typedef struct MtfShared MtfShared;

/* A hash of `bytes` bytes, taken eight at a time: the contents are padded with zeros to a multiple
 * of eight, structs have no indeterminate bytes. */
guint mtf_hash_words(const void *contents, gsize bytes);

/* A store without blocks; the caller frees it. */
MtfShared *mtf_shared_new(void);

/* The same one for another owner, who frees it too; from any thread. */
MtfShared *mtf_shared_join(MtfShared *shared);

/* With the last owner every block that is left goes, whoever holds it. Accepts NULL. */
void mtf_shared_free(MtfShared *shared);

/* Space for a new block, to be filled and then passed to mtf_shared_keep. */
void *mtf_shared_alloc(gsize bytes);

/* Frees a block that was not passed to mtf_shared_keep. */
void mtf_shared_drop(void *block);

/* Takes over a block from mtf_shared_alloc and returns the one with its contents, with a reference
 * for the caller. */
const void *mtf_shared_keep(MtfShared *shared, void *block);

/* The block with a copy of these contents, with a reference for the caller. */
const void *mtf_shared_copy(MtfShared *shared, const void *contents, gsize bytes);

/* Adds an owner to a block and returns it. */
const void *mtf_shared_ref(const void *block);
void mtf_shared_unref(MtfShared *shared, const void *block);

/* Bytes of all living blocks, each counted once. */
gsize mtf_shared_bytes(const MtfShared *shared);

#define MTF_QUESTION_PARTS 24

/* A question is its kind and a list of parts, each a block, a number, or both. */
typedef struct MtfQuestion {
    int kind, count;
    struct {
        const void *block;
        gintptr number;
    } parts[MTF_QUESTION_PARTS];
} MtfQuestion;

/* The answer: up to two blocks and a number. */
typedef struct MtfAnswer {
    const void *blocks[2];
    int number;
} MtfAnswer;

/* Appends a part. False when there is no room: such a question is not to be asked. */
bool mtf_question_add(MtfQuestion *question, const void *block, gintptr number);

/* The remembered answer, or NULL; valid until the next call of remember or forget. */
const MtfAnswer *mtf_shared_recall(const MtfShared *shared, const MtfQuestion *question);

/* Remembers an answer; the caller keeps its references. */
void mtf_shared_remember(MtfShared *shared, const MtfQuestion *question, MtfAnswer answer);

/* Forgets all answers. */
void mtf_shared_forget(MtfShared *shared);

#endif
