// SPDX-License-Identifier: GPL-3.0-or-later
/* The program every rank executes: an instruction list over buffers. It is the one description that
 * cost, reports and runtime all read, so what is predicted is what runs.
 *
 *     instruction  kernel   buffers 3 5 -> 9          einsum on local slices
 *                  reshard  buffer 9 -> 9  allreduce  over {cols}
 *
 * Each buffer holds one tensor in one placement. Its size is that of the largest local slice over
 * all processors, so that every rank lays out the same arena. A buffer may *share* the storage of
 * an older one that is dead by then (in-place operations, variables updated where they stand):
 * `storage` names the buffer that owns the bytes. Lifetimes are given in instruction indexes and
 * belong to storages; variables, optimizer state and the input batch live through the whole step.
 *
 * With micro-batches instructions [0, n_repeated) run `microbatches` times a step, the rest once
 * (microbatches.h). The instructions of a loop (loops.h) stand together and run once an iteration:
 *
 *     instruction   0  1  2 [3  4  5  6] 7 …
 *                            40 times
 *
 * What iterations read of the time before the loop is brought into place before it begins. Flops, bytes and
 * calls of an instruction are those of one run: sums over a program take each mtf_program_times times. */
#ifndef MTF_PROGRAM_H
#define MTF_PROGRAM_H

#include "layouts/exchange/exchange_algorithm.h"
#include "layouts/graph/loops.h"
#include "layouts/kernel_work/product_work.h"
#include "layouts/placement/layout.h"
#include "layouts/placement/reshard.h"

/* Storages begin at multiples of this many bytes. */
#define MTF_ARENA_ALIGNMENT 64

typedef struct {
    int tensor; /* -1 for scratch */
    MtfPlacement placement;
    bool margined;    /* has what its one reader reads beyond the placement's parts (margins.h) */
    MtfReader reader; /* … and that is who; of a column, who sorts it */
    int64_t
        column; /* above 0: a column of so many places (sort_columns.h), of the dimension that its reader goes along */
    MtfMemoryKind memory;
    int64_t bytes;   /* largest over ranks */
    int slots;       /* of owners: how often the bytes are there, one for each micro-batch in flight
                        or, of variables, each version that is kept (0 like 1); slot k begins k times
                        mtf_buffer_stride behind the first */
    int storage;     /* the buffer that owns the bytes; its own index if it does */
    int first, last; /* of owners: first and last instruction that touches the storage */
    bool persistent; /* of owners: lives from step to step (first = 0, last = n_instructions - 1) */
    bool carried;    /* of owners: iterations of a loop find in it what was there before they began:
                        none of them may put something else there */
} MtfBuffer;

typedef enum { MTF_INSTRUCTION_KERNEL, MTF_INSTRUCTION_RESHARD } MtfInstructionKind;

/* Kernels that run together, tile by tile (fused_groups.h). */
typedef struct {
    int kernels; /* this instruction and those behind it; 0: it is not the first of a group */
    int n_dims;
    int dims[MTF_MAX_RANK]; /* that are cut, outermost first */
    int64_t tile_rows;      /* of the tensors, in a tile: an index of each of them is one */
} MtfFusedGroup;

typedef struct {
    MtfInstructionKind kind;
    MtfExchangeAlgorithm algorithm; /* of collectives (collective_messages.h) */
    int operation;                  /* the graph operation it runs, or that made it necessary */
    int part; /* of an operation in several kernels (MtfAlong): which it is, from 1; 0: all of it */
    int columns;          /* … and how many columns there are */
    bool inner;           /* an exchange between the operation's own kernels, or behind the last */
    int loop;             /* whose iterations run it, from 1; 0: none */
    MtfReshardOp reshard; /* of reshard ops */
    int n_inputs;
    int *inputs; /* buffers */
    int n_outputs;
    int *outputs; /* buffers */
    int scratch;  /* buffer or -1: of kernels and collectives */
    MtfKernelClass kernel_class;
    double flops;            /* of the largest rank */
    double multiply_adds;    /* of the largest rank; in products only */
    MtfProductWork products; /* of the largest rank; einsum and attention only */
    double block_side;       /* of products done in blocks (mtf_operation_block_side), or 0 */
    double row_length;       /* of kernels that go row by row (row_length.h), or 0 */
    double traffic_bytes;    /* memory read and written by the largest rank */
    int64_t payload_bytes; /* of a collective, on the largest rank (mtf_reshard_largest_payload) */
    int64_t side_bytes;    /* of a halo: what of that goes to one side (MtfMarginsMost) */
    int64_t
        places; /* of a halo: how many parts on it goes at most (MtfMarginsMost); 1: to neighbours */
    int wait_before; /* of a collective or host copy that may be under way for a while: the instruction before which
                        it must be over; 0: at once (overlap_windows.h) */
    MtfFusedGroup fused;
} MtfInstruction;

typedef struct {
    const MtfGraph *graph;        /* borrowed */
    const MtfLayout *layout;      /* borrowed */
    GArray *instructions;         /* MtfInstruction */
    GArray *buffers;              /* MtfBuffer */
    int microbatches, n_repeated; /* 1 and 0 without micro-batches */
    int weight_gradients;         /* where they begin in a backward pass that is split
                                     (split_backward.h); else n_repeated */
    int *tensor_buffers; /* for inputs and variables: the buffer that holds them between steps; for
                            results: the one they are kept in; -1 when there is none */
    MtfBuffer *emitted_buffers; /* before they were aliased (lifetimes.h); NULL: not yet */
} MtfProgram;

/* Whether the instruction takes data from one processor to another: a reshard op that is not
 * local. */
bool mtf_instruction_is_collective(const MtfInstruction *instruction);

/* Lowers a legal layout (mtf_layout_check) of a graph without composites. Both must outlive the
 * program. Each operation fetches its inputs from where the layout keeps them, so that the price of
 * the program is a sum over operations and tensors. Runs all passes (passes.h). */
MtfProgram *mtf_lower(const MtfGraph *graph, const MtfLayout *layout);

/* The instructions as they are emitted, in the order of the operations: what the passes of
 * mtf_lower begin with (passes.h). Lifetimes are not known yet. */
MtfProgram *mtf_program_emit(const MtfGraph *graph, const MtfLayout *layout);

/* The same with aliased buffers: what orders are numbered by (program_order.h). */
MtfProgram *mtf_lower_as_written(const MtfGraph *graph, const MtfLayout *layout);

/* The instructions of one operation alone, as mtf_lower emits them when its inputs stand in their
 * layout's placements: for local pricing. */
MtfProgram *mtf_lower_operation(const MtfGraph *graph, const MtfLayout *layout, int operation);

/* The reshard ops alone that take a tensor from one placement to another, without lifetimes: for pricing.
 */
MtfProgram *mtf_lower_path(const MtfGraph *graph, const MtfLayout *layout, int tensor,
                           const MtfPlacement *from, const MtfPlacement *to);

/* Frees the lists of operands of an instruction; of the type GArray asks for. */
void mtf_instruction_clear(gpointer instruction);

void mtf_program_free(MtfProgram *program);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(MtfProgram, mtf_program_free)

/* Typed access; indexes must be valid. */
MtfInstruction *mtf_program_instruction(const MtfProgram *program, int index);
MtfBuffer *mtf_program_buffer(const MtfProgram *program, int index);
int mtf_program_length(const MtfProgram *program);

/* Whether a buffer's bytes lie in the host's memory; and what an instruction copies there or back. */
bool mtf_buffer_is_on_host(const MtfProgram *program, int buffer);
MtfHostCopy mtf_instruction_host_copy(const MtfProgram *program, int index);

/* Whether the instruction may be under way while kernels run: a collective or a host copy. */
bool mtf_instruction_travels(const MtfProgram *program, int index);

/* The bytes that a host copy moves on `rank`, or with -1 on the rank with most; 0 of what is none. */
int64_t mtf_instruction_host_bytes(const MtfProgram *program, int index, int rank);

/* Of a persistent buffer: whether each micro-batch brings its own into it. */
bool mtf_buffer_is_fed(const MtfProgram *program, const MtfBuffer *buffer);

/* The bytes of one slot of a buffer: rounded up to MTF_ARENA_ALIGNMENT; and those it takes in an
 * arena, of all its slots. */
int64_t mtf_buffer_stride(const MtfBuffer *buffer);
int64_t mtf_buffer_aligned_bytes(const MtfBuffer *buffer);

/* The instructions of the forward pass: [0, n) of those that are repeated. */
int mtf_program_forward(const MtfProgram *program);

/* Where the part of a step ends that instruction `index` belongs to: what is repeated, of a
 * pipeline stage the forward pass or the input gradients before it, or all. Nothing stays under way across it. */
int mtf_program_part_end(const MtfProgram *program, int index);

/* Where the loop ends that instruction `index` belongs to; `index` + 1 when it is in none. */
int mtf_program_loop_end(const MtfProgram *program, int index);

/* How often a step runs instruction `index`. */
int mtf_program_times(const MtfProgram *program, int index);

/* Whether instruction `index` writes the loss, in whatever placement; false where there is none. */
bool mtf_program_writes_loss(const MtfProgram *program, int index);

/* The tensor a step moves; of several that travel together (combine_collectives.h), the first. */
const MtfTensor *mtf_reshard_tensor(const MtfProgram *program, const MtfInstruction *instruction);

/* What a step does to its k-th tensor, which inputs[k] and outputs[k] hold. */
MtfReshardOp mtf_reshard_of_tensor(const MtfProgram *program, const MtfInstruction *instruction,
                                   int k);

/* Elements of scratch a collective needs, on the processor that needs most: allgather the
 * gathered result and reduce-scatter the whole input unless its pieces lie one after another; all-to-all and halo what is
 * sent followed by what is received. */
int64_t mtf_reshard_scratch(const MtfGraph *graph, const MtfMesh *mesh, const MtfShape *shape,
                            const MtfReshardOp *op);

/* A collective instruction's payload on `rank` in bytes (mtf_reshard_payload times the element size).
 */
int64_t mtf_instruction_payload(const MtfProgram *program, int index, int rank);

/* MPI calls that a collective instruction expands to on one rank: 1, or more where a message
 * exceeds MTF_MAX_MESSAGE elements (allreduce only; the runtime refuses other collectives that
 * large). */
#define MTF_MAX_MESSAGE (INT64_C(1) << 30)
int mtf_instruction_calls(const MtfProgram *program, int index);

/* The range of `dim` that `rank` has in a buffer of a tensor with that dimension. */
MtfRange mtf_buffer_range(const MtfProgram *program, const MtfBuffer *buffer, int dim, int rank);

/* Hexadecimal SHA-256 over everything that determines execution: mesh, dimensions, operations,
 * buffers, instructions. Free with g_free. */
char *mtf_program_digest(const MtfProgram *program);

/* One line an instruction, for people; free with g_free. */
char *mtf_program_format(const MtfProgram *program);

/* What a collective serves, for reports: traffic that scales with the model, apart from the small
 * vectors. */
typedef enum {
    MTF_TRAFFIC_MODEL,   /* matrix gradients, activations, the loss */
    MTF_TRAFFIC_VECTORS, /* gradients of variables that no product or lookup reads: norm scales,
                            biases, positions */
    MTF_TRAFFIC_CLIP,
    MTF_TRAFFIC_OPTIMIZER,
    MTF_TRAFFIC_GROUPS,
} MtfTrafficGroup;

/* `consumers` are those of the program's graph. */
MtfTrafficGroup mtf_instruction_traffic_group(const MtfProgram *program,
                                              const MtfConsumers *consumers, int index);
const char *mtf_traffic_group_name(MtfTrafficGroup group);

#endif
