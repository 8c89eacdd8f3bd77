// SPDX-License-Identifier: GPL-3.0-or-later
/* What each instruction of a program does to the live bytes, in whatever order they run. Lowering
 * reads lifetimes off one order; a search for better ones asks for thousands, so here stands what
 * does not depend on the order: the values that an instruction reads and writes, and their bytes.
 *
 *     before an instruction     values that it or a later one reads
 *     while it runs             the same + what it writes + its scratch, less an input that it overwrites
 *     after it                  the values that later ones read: less those that it was the last to read
 *
 * A value is a buffer that is no variable: written once, gone after its last reader. Bytes are
 * rounded up as in an arena, so the most live bytes are mtf_arena_lower_bound of the program in
 * that order. */
#ifndef MTF_ORDER_MODEL_H
#define MTF_ORDER_MODEL_H

#include "layouts/program/program_order.h"

typedef struct {
    int n, n_values;
    int64_t always;    /* bytes of variables, optimizer state and inputs */
    int64_t *bytes;    /* of each value; 0 for variables */
    bool *stays;       /* until the end of the step: the loss */
    bool *early;       /* from the begin of the step: a sum over micro-batches */
    int64_t *scratch;  /* of each instruction */
    int *read_begins;  /* n + 1 */
    int *reads;        /* the values that instruction i reads, each once */
    int *write_begins; /* n + 1 */
    int *writes;
    int *take_begins; /* n + 1 */
    int *takes;       /* of what it reads: what output 0 may overwrite, the best first */
    MtfDependences *waits;
    int ends[MTF_SEGMENTS];
} MtfOrderModel;

/* The program's instructions and bytes for searches over orders; the caller frees it. */
MtfOrderModel *mtf_order_model_new(const MtfProgram *program);
void mtf_order_model_free(MtfOrderModel *model);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(MtfOrderModel, mtf_order_model_free)

/* The live bytes of an order of all instructions. */
typedef struct {
    int64_t *before; /* live before the instruction in place p */
    int64_t *during; /* while it runs */
    int *last; /* of each value: the place of its last reader, n where it stays, -1 without any */
    int peak;  /* the first place where most is live */
} MtfOrderReplay;

/* A replay at its beginning: nothing has run. The caller frees it; `model` must outlive it. */
MtfOrderReplay *mtf_order_replay_new(const MtfOrderModel *model);
void mtf_order_replay_free(MtfOrderReplay *replay);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(MtfOrderReplay, mtf_order_replay_free)

/* Plays a legal order through. */
void mtf_order_replay(const MtfOrderModel *model, const int *order, MtfOrderReplay *replay);

#endif
