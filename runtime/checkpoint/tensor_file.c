// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/checkpoint/tensor_file.h"

#include "layouts/base/error.h"
#include "runtime/checkpoint/quantization.h"
#include "runtime/data/data_checksum.h"
#include "runtime/kernels/base/slice.h"
#include "runtime/support/agreement.h"
#include "runtime/support/mpi_check.h"
#include "runtime/worker/slice_runs.h"

#include <inttypes.h>
#include <string.h>

#define WINDOW_BYTES (MTF_STAGING_BYTES / 3)
/* A window that is smaller than this times the ranks is divided among fewer of them. */
#define MIN_PIECE_BYTES (INT64_C(1) << 16)
/* Elements that are brought to their values together. */
#define SCALED_AT_ONCE 1024

/* One direction of an exchange: how many bytes go to or come from each rank, and from where. */
typedef struct {
    int *counts, *offsets; /* one a rank */
    char *bytes;
} Traffic;

typedef struct {
    const MtfTensorFile *of;
    GArray *moves; /* MtfTensorMove */
    MPI_File handle;
    int rank, n_ranks;
    int64_t window_bytes;
    Traffic outgoing, incoming;
    char *piece; /* of the window, as it is in the file */
    uint64_t checksum;
    GError *error; /* the first of this rank; it goes on exchanging, since others wait */
    MtfQuantization *quantization; /* of int8 variables among those read; or NULL */
    bool measures;                 /* their scales, and stores nothing */
    float *scales;                 /* of the move's blocks; or NULL */
    MtfPackedUnits units;          /* of the move's packed matrix */
} Mover;

/* The elements [first, first + count) of one tensor of the graph. */
typedef struct {
    const MtfTensorMove *move;
    const MtfStoredTensor *stored;
    int index;          /* of the move */
    int tensor;         /* of the graph */
    MtfStoredType type; /* of elements on the way: as stored; of packed numbers what they say */
    int64_t element_bytes;
    int64_t first, count;
    int pieces;
} Window;

/* ---- Windows and pieces -------------------------------------------------------------------- */

static Window make_window(const Mover *mover, int index, int64_t first) {
    const MtfTensorMove *move = &g_array_index(mover->moves, MtfTensorMove, index);
    const MtfStoredTensor *stored =
        &g_array_index(mover->of->file->tensors, MtfStoredTensor, move->stored);
    bool packed = move->packed.packing != MTF_PACKED_NONE;
    MtfStoredType type = packed ? MTF_STORED_F32 : stored->type;
    int64_t element_bytes = mtf_stored_type_bytes(type);
    int64_t most = MAX(1, mover->window_bytes / element_bytes);
    int64_t count = MIN(move->begin + move->count - first, most);
    int64_t pieces = CLAMP(count * element_bytes / MIN_PIECE_BYTES, 1, mover->n_ranks);
    return (Window){ .move = move,
                     .stored = stored,
                     .index = index,
                     .tensor = move->tensor,
                     .type = type,
                     .element_bytes = element_bytes,
                     .first = first,
                     .count = count,
                     .pieces = (int)pieces };
}

/* The elements of the window that pass through `rank`. Windows of fewer pieces than ranks start
 * at another rank each. */
static MtfRange piece_of(const Mover *mover, const Window *window, int rank) {
    int place = (rank + mover->n_ranks - window->index % mover->n_ranks) % mover->n_ranks;
    if (place >= window->pieces)
        return (MtfRange){ 0, 0 };
    MtfRange part = mtf_part(window->count, place, window->pieces);
    return (MtfRange){ window->first + part.begin, window->first + part.end };
}

/* ---- The exchange -------------------------------------------------------------------------- */

/* Bytes of a share that pass through a piece. */
static int share_bytes(const MtfShare *share, MtfRange piece, int64_t element_bytes) {
    return (int)(mtf_share_count(share, piece.begin, piece.end) * element_bytes);
}

static void set_offsets(Traffic *traffic, int n_ranks) {
    int offset = 0;
    for (int r = 0; r < n_ranks; r++) {
        traffic->offsets[r] = offset;
        offset += traffic->counts[r];
    }
}

static void exchange(Mover *mover) {
    const Traffic *out = &mover->outgoing;
    const Traffic *in = &mover->incoming;
    mtf_mpi_require(MPI_Alltoallv(out->bytes, out->counts, out->offsets, MPI_BYTE, in->bytes,
                                  in->counts, in->offsets, MPI_BYTE, mover->of->control),
                    "MPI_Alltoallv");
}

/* Elements of a share within a piece, packed one after another, from or to the piece. */
static void copy_piece(Mover *mover, const Window *window, const MtfShare *share, char *packed,
                       bool to_piece) {
    MtfRange piece = piece_of(mover, window, mover->rank);
    MtfRuns runs = mtf_runs(share, piece.begin, piece.end);
    while (mtf_runs_next(&runs)) {
        gsize bytes = (gsize)(runs.count * window->element_bytes);
        char *place = mover->piece + (runs.index - piece.begin) * window->element_bytes;
        memcpy(to_piece ? place : packed, to_piece ? packed : place, bytes);
        packed += bytes;
    }
}

static void add_checksum(Mover *mover, const Window *window, MtfRange piece) {
    if (window->move->block < window->move->stride || mover->handle == MPI_FILE_NULL)
        return;
    mover->checksum +=
        mtf_data_checksum(window->stored->begin + piece.begin * window->element_bytes, mover->piece,
                          piece.end - piece.begin, window->element_bytes);
}

/* ---- Writing ------------------------------------------------------------------------------- */

static void note_failure(Mover *mover, const char *done, int64_t place, int code) {
    char text[MPI_MAX_ERROR_STRING] = "fewer bytes than asked for";
    int length;
    if (code != MPI_SUCCESS)
        MPI_Error_string(code, text, &length);
    if (mover->error == NULL)
        mtf_failure(&mover->error, "%s: cannot be %s at byte %" PRId64 ": %s", mover->of->path,
                    done, place, text);
}

/* Bytes at `buffer` from or to a place in the file. */
static void transfer_run(Mover *mover, int64_t place, char *buffer, int bytes, bool writes) {
    int moved = 0;
    MPI_Status status;
    int code = writes ? MPI_File_write_at(mover->handle, place, buffer, bytes, MPI_BYTE, &status)
                      : MPI_File_read_at(mover->handle, place, buffer, bytes, MPI_BYTE, &status);
    if (code == MPI_SUCCESS)
        mtf_mpi_require(MPI_Get_count(&status, MPI_BYTE, &moved), "MPI_Get_count");
    if (moved != bytes)
        note_failure(mover, writes ? "written" : "read", place, code);
}

/* The place in the file's tensor of element `i` of the graph's. */
static int64_t place_of(const MtfTensorMove *move, int64_t i) {
    int64_t within = (i - move->begin) % move->block;
    return move->first + (i - move->begin) / move->block * move->stride + within;
}

/* The piece, a run of each block at a time. */
static void transfer_piece(Mover *mover, const Window *window, MtfRange piece, bool writes) {
    const MtfTensorMove *move = window->move;
    if (mover->handle == MPI_FILE_NULL)
        return;
    int64_t start = mover->of->data_start + window->stored->begin, count;
    for (int64_t i = piece.begin; i < piece.end && mover->error == NULL; i += count) {
        count = MIN(move->block - (i - move->begin) % move->block, piece.end - i);
        transfer_run(mover, start + place_of(move, i) * window->element_bytes,
                     mover->piece + (i - piece.begin) * window->element_bytes,
                     (int)(count * window->element_bytes), writes);
    }
}

static void pack_run(const Window *window, const MtfOperand *slice, const MtfRuns *runs,
                     char *elements) {
    MtfStoredType type = window->stored->type;
    if (type == mtf_stored_type_of(slice->dtype)) {
        memcpy(elements, (char *)slice->data + runs->position * window->element_bytes,
               (gsize)(runs->count * window->element_bytes));
        return;
    }
    for (int64_t i = 0; i < runs->count; i++)
        mtf_stored_value_set(type, elements, i, mtf_slice_get(slice, runs->position + i));
}

static void pack_owned(Mover *mover, const Window *window) {
    Traffic *out = &mover->outgoing;
    const MtfOperand *slice = mtf_worker_tensor(mover->of->worker, window->tensor);
    MtfShare owned = mtf_share_owned(mover->of->worker->program, window->tensor, mover->rank);
    char *next = out->bytes;
    for (int r = 0; r < mover->n_ranks; r++) {
        MtfRange piece = piece_of(mover, window, r);
        MtfRuns runs = mtf_runs(&owned, piece.begin, piece.end);
        char *start = next;
        while (mtf_runs_next(&runs)) {
            pack_run(window, slice, &runs, next);
            next += runs.count * window->element_bytes;
        }
        out->counts[r] = (int)(next - start);
    }
    set_offsets(out, mover->n_ranks);
}

static void write_window(Mover *mover, const Window *window) {
    const MtfProgram *program = mover->of->worker->program;
    Traffic *in = &mover->incoming;
    MtfRange piece = piece_of(mover, window, mover->rank);
    pack_owned(mover, window);
    for (int r = 0; r < mover->n_ranks; r++) {
        MtfShare owned = mtf_share_owned(program, window->tensor, r);
        in->counts[r] = share_bytes(&owned, piece, window->element_bytes);
    }
    set_offsets(in, mover->n_ranks);
    exchange(mover);
    for (int r = 0; r < mover->n_ranks; r++) {
        MtfShare owned = mtf_share_owned(program, window->tensor, r);
        copy_piece(mover, window, &owned, in->bytes + in->offsets[r], true);
    }
    add_checksum(mover, window, piece);
    transfer_piece(mover, window, piece, true);
}

/* ---- Reading ------------------------------------------------------------------------------- */

/* A run of elements as they were stored, in the type that they have on the way. */
static void unpack(const Mover *mover, const Window *window, const MtfOperand *slice,
                   const MtfRuns *runs, MtfStoredType type, const char *elements) {
    bool in_units = type == MTF_STORED_I8;
    if (!in_units && mtf_quantization_has(mover->quantization, window->tensor)) {
        const MtfQuantizedRun run = { window->tensor, runs->index, runs->count, type, elements };
        if (mover->measures)
            mtf_quantization_measure(mover->quantization, &run);
        else
            mtf_quantization_store(mover->quantization, &run, slice, runs->position);
        return;
    }
    if (mover->measures)
        return;
    if (type == mtf_stored_type_of(slice->dtype) && slice->dtype != MTF_BOOL) {
        gsize bytes =
            (gsize)mtf_stored_type_bytes(type); /* files' bools may be other than 0 and 1 */
        memcpy((char *)slice->data + (gsize)runs->position * bytes, elements,
               (gsize)runs->count * bytes);
        return;
    }
    for (int64_t i = 0; i < runs->count; i++)
        mtf_slice_set(slice, runs->position + i, mtf_stored_value(type, elements, i));
}

/* A run of elements in units of their blocks' scales. The product of both has at most 32 significant bits, so
 * that it is rounded once. */
static void unpack_scaled(const Mover *mover, const Window *window, const MtfOperand *slice,
                          const MtfRuns *runs, const char *elements) {
    float values[SCALED_AT_ONCE];
    const MtfTensorMove *move = window->move;
    for (int64_t done = 0; done < runs->count; done += SCALED_AT_ONCE) {
        MtfRuns some = *runs;
        some.index += done;
        some.position += done;
        some.count = MIN(runs->count - done, SCALED_AT_ONCE);
        for (int64_t i = 0; i < some.count; i++) {
            float unit =
                mtf_block_scales_at(&move->scales, mover->scales, place_of(move, some.index + i));
            values[i] =
                (float)(mtf_stored_value(window->stored->type, elements, done + i) * (double)unit);
        }
        unpack(mover, window, slice, &some, MTF_STORED_F32, (const char *)values);
    }
}

static void unpack_kept(Mover *mover, const Window *window, const MtfShare *kept) {
    const MtfOperand *slice = mtf_worker_tensor(mover->of->worker, window->tensor);
    const char *next = mover->incoming.bytes;
    for (int r = 0; r < mover->n_ranks; r++) {
        MtfRange piece = piece_of(mover, window, r);
        MtfRuns runs = mtf_runs(kept, piece.begin, piece.end);
        while (mtf_runs_next(&runs)) {
            if (mover->scales != NULL)
                unpack_scaled(mover, window, slice, &runs, next);
            else
                unpack(mover, window, slice, &runs, window->type, next);
            next += runs.count * window->element_bytes;
        }
    }
}

/* The numbers of a word that are of elements of the piece, as what they say. */
static void unpack_word(Mover *mover, const MtfPackedMatrix *m, MtfRange piece, guint32 word,
                        int64_t row, int64_t column) {
    bool along = m->packing == MTF_PACKED_AWQ;
    float *values = (float *)(void *)mover->piece;
    int n = mtf_packed_numbers(m);
    guint32 most = (1U << m->bits) - 1;
    for (int k = 0; k < n; k++, word >>= m->bits) {
        int64_t input = along ? row : n * row + k;
        int64_t output = along ? n * column + mtf_packed_output(m->packing, k) : column;
        int64_t element = output * m->in + input;
        if (element >= piece.begin && element < piece.end)
            values[element - piece.begin] =
                mtf_packed_value(m, &mover->units, input, output, word & most);
    }
}

/* A piece of a packed matrix: its outputs' words of every row. */
static void read_packed(Mover *mover, const Window *window, MtfRange piece) {
    const MtfPackedMatrix *m = &window->move->packed;
    bool along = m->packing == MTF_PACKED_AWQ;
    int64_t start = mover->of->data_start + window->stored->begin;
    int64_t inputs = along ? 1 : mtf_packed_numbers(m), outputs = along ? mtf_packed_numbers(m) : 1;
    int64_t rows = m->in / inputs, width = m->out / outputs;
    int64_t first = piece.begin / m->in / outputs;
    int64_t n = (piece.end - 1) / m->in / outputs + 1 - first;
    if (piece.end == piece.begin)
        return;
    g_autofree guint32 *words = g_new0(guint32, n);
    for (int64_t r = 0; r < rows && mover->error == NULL; r++) {
        transfer_run(mover, start + (r * width + first) * (int64_t)sizeof *words, (char *)words,
                     (int)(n * (int64_t)sizeof *words), false);
        for (int64_t c = 0; c < n; c++)
            unpack_word(mover, m, piece, GUINT32_FROM_LE(words[c]), r, first + c);
    }
}

/* Elements of one expert's matrix that are in a piece. Of its outputs, `stride` after `stride`, `block` are
 * of the variable; what it has of `each` expert begins at `first` of the matrix. */
typedef struct {
    int64_t first, block, stride, each;
} ExpertShare;

static ExpertShare expert_share(const MtfTensorMove *move) {
    const MtfPackedMatrix *m = &move->packed;
    int64_t block = MIN(move->block, m->out), stride = MIN(move->stride, m->out);
    return (ExpertShare){ move->first, block, stride, m->in * m->out / stride * block };
}

/* Expert `e`, whose numbers are read whole. */
static void read_expert(Mover *mover, const Window *window, MtfRange piece, int64_t e,
                        guint8 *blocks, guint8 *scales) {
    const MtfPackedMatrix *m = &window->move->packed;
    ExpertShare share = expert_share(window->move);
    int64_t bytes = m->in * m->out / 2, origin = e * share.each;
    float *values = (float *)(void *)mover->piece;
    transfer_run(mover, mover->of->data_start + window->stored->begin + e * bytes, (char *)blocks,
                 (int)bytes, false);
    if (mover->error == NULL)
        mtf_expert_scales_read(m, e, scales, &mover->error);
    for (int64_t i = MAX(piece.begin, origin);
         i < MIN(piece.end, origin + share.each) && mover->error == NULL; i++) {
        int64_t of =
            share.first + (i - origin) / share.block * share.stride + (i - origin) % share.block;
        values[i - piece.begin] = mtf_expert_value(m, blocks, scales, of / m->out, of % m->out);
    }
}

/* A piece of a packed stack of experts. */
static void read_experts(Mover *mover, const Window *window, MtfRange piece) {
    const MtfPackedMatrix *m = &window->move->packed;
    int64_t each = expert_share(window->move).each;
    if (piece.end == piece.begin)
        return;
    g_autofree guint8 *blocks = g_malloc((gsize)(m->in * m->out / 2));
    g_autofree guint8 *scales = g_malloc((gsize)(m->groups * m->out));
    for (int64_t e = piece.begin / each; e * each < piece.end; e++)
        read_expert(mover, window, piece, e, blocks, scales);
}

static void read_piece(Mover *mover, const Window *window, MtfRange piece) {
    if (window->move->packed.packing != MTF_PACKED_NONE) {
        int64_t begin = window->move->begin; /* of a stack's matrix */
        bool experts = window->move->packed.packing == MTF_PACKED_MXFP4;
        (experts ? read_experts : read_packed)(
            mover, window, (MtfRange){ piece.begin - begin, piece.end - begin });
        return;
    }
    transfer_piece(mover, window, piece, false);
    add_checksum(mover, window, piece);
}

static void read_window(Mover *mover, const Window *window) {
    const MtfProgram *program = mover->of->worker->program;
    MtfRange piece = piece_of(mover, window, mover->rank);
    MtfShare kept = mtf_share_kept(program, window->tensor, mover->rank);
    read_piece(mover, window, piece);
    for (int r = 0; r < mover->n_ranks; r++) {
        MtfShare other = mtf_share_kept(program, window->tensor, r);
        mover->outgoing.counts[r] = share_bytes(&other, piece, window->element_bytes);
        mover->incoming.counts[r] =
            share_bytes(&kept, piece_of(mover, window, r), window->element_bytes);
    }
    set_offsets(&mover->outgoing, mover->n_ranks);
    set_offsets(&mover->incoming, mover->n_ranks);
    for (int r = 0; r < mover->n_ranks; r++) {
        MtfShare other = mtf_share_kept(program, window->tensor, r);
        copy_piece(mover, window, &other, mover->outgoing.bytes + mover->outgoing.offsets[r],
                   false);
    }
    exchange(mover);
    unpack_kept(mover, window, &kept);
}

/* What would have gone into the file goes on from the pieces to another tensor. */
static void copy_window(Mover *mover, const Window *window) {
    Window target = *window;
    target.tensor = mover->of->targets[window->move->stored];
    write_window(mover, window);
    read_window(mover, &target);
}

/* ---- All of it ----------------------------------------------------------------------------- */

static void traffic_init(Traffic *traffic, int n_ranks, int64_t bytes) {
    *traffic = (Traffic){ .counts = g_new0(int, n_ranks),
                          .offsets = g_new0(int, n_ranks),
                          .bytes = g_malloc((gsize)bytes) };
}

static void traffic_clear(Traffic *traffic) {
    g_free(traffic->counts);
    g_free(traffic->offsets);
    g_free(traffic->bytes);
}

/* Whole tensors as moves. */
static void add_whole_tensors(Mover *mover) {
    const GArray *tensors = mover->of->file->tensors;
    for (int i = 0; i < (int)tensors->len; i++) {
        const MtfStoredTensor *stored = &g_array_index(tensors, MtfStoredTensor, i);
        int64_t elements = (stored->end - stored->begin) / mtf_stored_type_bytes(stored->type);
        MtfTensorMove whole = { .stored = i,
                                .tensor = mover->of->tensors[i],
                                .count = elements,
                                .block = MAX(1, elements),
                                .stride = MAX(1, elements) };
        if (whole.tensor >= 0)
            g_array_append_val(mover->moves, whole);
    }
}

/* Pieces are rounded up to whole elements, so together they may exceed the window a little. */
static void mover_init(Mover *mover, const MtfTensorFile *tensors) {
    *mover = (Mover){ .of = tensors, .handle = MPI_FILE_NULL };
    mover->moves = g_array_new(FALSE, FALSE, sizeof(MtfTensorMove));
    if (tensors->tensors != NULL)
        add_whole_tensors(mover);
    else
        g_array_append_vals(mover->moves, tensors->moves->data, tensors->moves->len);
    mtf_mpi_require(MPI_Comm_rank(tensors->control, &mover->rank), "MPI_Comm_rank");
    mtf_mpi_require(MPI_Comm_size(tensors->control, &mover->n_ranks), "MPI_Comm_size");
    mover->window_bytes = tensors->window_bytes > 0 ? tensors->window_bytes : WINDOW_BYTES;
    int64_t most = mover->window_bytes + 8 * (int64_t)mover->n_ranks;
    traffic_init(&mover->outgoing, mover->n_ranks, most);
    traffic_init(&mover->incoming, mover->n_ranks, most);
    mover->piece = g_malloc((gsize)most);
}

static void mover_clear(Mover *mover) {
    traffic_clear(&mover->outgoing);
    traffic_clear(&mover->incoming);
    g_free(mover->piece);
    g_array_unref(mover->moves);
    mtf_quantization_free(mover->quantization);
    g_free(mover->scales);
    mtf_packed_units_clear(&mover->units);
}

/* The scales of a move, read by rank 0 for all; zeros where it cannot, since all go on exchanging. */
static void load_scales(Mover *mover, const MtfBlockScales *scales) {
    g_clear_pointer(&mover->scales, g_free);
    if (scales->path == NULL)
        return;
    int64_t n = scales->rows * scales->columns;
    if (mover->rank == 0)
        mover->scales = mtf_block_scales_read(scales, mover->error == NULL ? &mover->error : NULL);
    if (mover->scales == NULL)
        mover->scales = g_new0(float, n);
    mtf_mpi_require(MPI_Bcast(mover->scales, (int)n, MPI_FLOAT, 0, mover->of->control),
                    "MPI_Bcast");
}

static void share_bytes_of(Mover *mover, void *bytes, int64_t n) {
    mtf_mpi_require(MPI_Bcast(bytes, (int)n, MPI_BYTE, 0, mover->of->control), "MPI_Bcast");
}

/* The same of a packed matrix. */
static void load_units(Mover *mover, const MtfPackedMatrix *matrix) {
    mtf_packed_units_clear(&mover->units);
    if (matrix->packing == MTF_PACKED_NONE || matrix->packing == MTF_PACKED_MXFP4)
        return;
    int64_t n = matrix->groups * matrix->out;
    mover->units = mtf_packed_units_new(matrix);
    if (mover->rank == 0 && mover->error == NULL)
        mtf_packed_units_read(matrix, &mover->units, &mover->error);
    share_bytes_of(mover, mover->units.scale, n * (int64_t)sizeof(float));
    share_bytes_of(mover, mover->units.zero, n * (int64_t)sizeof(float));
    share_bytes_of(mover, mover->units.group, matrix->in * (int64_t)sizeof(int));
}

static void move_all(Mover *mover, void (*move)(Mover *, const Window *)) {
    for (int i = 0; i < (int)mover->moves->len; i++) {
        const MtfTensorMove *part = &g_array_index(mover->moves, MtfTensorMove, i);
        load_scales(mover, &part->scales);
        load_units(mover, &part->packed);
        for (int64_t first = part->begin; first < part->begin + part->count;) {
            Window window = make_window(mover, i, first);
            move(mover, &window);
            first += window.count;
        }
    }
}

static bool open_file(Mover *mover, int mode, GError **error) {
    GError *local = NULL;
    int code =
        MPI_File_open(mover->of->control, mover->of->path, mode, MPI_INFO_NULL, &mover->handle);
    if (code != MPI_SUCCESS) {
        char text[MPI_MAX_ERROR_STRING];
        int length;
        MPI_Error_string(code, text, &length);
        mover->handle = MPI_FILE_NULL;
        mtf_failure(&local, "%s: cannot be opened: %s", mover->of->path, text);
    }
    return mtf_agree(mover->of->control, local, error);
}

/* Closes the file, after what was written has reached the disk. */
static void close_file(Mover *mover, bool writes) {
    int code = writes ? MPI_File_sync(mover->handle) : MPI_SUCCESS;
    if (code != MPI_SUCCESS)
        note_failure(mover, "written to disk", 0, code);
    code = MPI_File_close(&mover->handle);
    if (code != MPI_SUCCESS)
        note_failure(mover, "closed", 0, code);
}

/* Variables of int8 are read twice: their scales are known when all of them has been seen. */
static void measure_scales(Mover *mover) {
    GArray *all = mover->moves;
    mover->quantization = mtf_quantization_new(mover->of->worker);
    mover->moves = g_array_new(FALSE, FALSE, sizeof(MtfTensorMove));
    for (guint i = 0; i < all->len; i++)
        if (mtf_quantization_has(mover->quantization, g_array_index(all, MtfTensorMove, i).tensor))
            g_array_append_val(mover->moves, g_array_index(all, MtfTensorMove, i));
    mover->measures = true;
    move_all(mover, read_window);
    mover->measures = false;
    mtf_quantization_settle(mover->quantization, mover->of->control);
    g_array_unref(mover->moves);
    mover->moves = all;
    mover->checksum = 0;
}

static bool run(const MtfTensorFile *tensors, bool writes, uint64_t *checksum, GError **error) {
    Mover mover;
    mover_init(&mover, tensors);
    bool done = open_file(&mover, writes ? MPI_MODE_WRONLY : MPI_MODE_RDONLY, error);
    if (done) {
        if (!writes)
            measure_scales(&mover);
        move_all(&mover, writes ? write_window : read_window);
        close_file(&mover, writes);
        done = mtf_agree(tensors->control, mover.error, error);
    }
    mtf_mpi_require(
        MPI_Allreduce(&mover.checksum, checksum, 1, MPI_UINT64_T, MPI_SUM, tensors->control),
        "MPI_Allreduce");
    mover_clear(&mover);
    return done;
}

bool mtf_tensor_file_write(const MtfTensorFile *tensors, uint64_t *checksum, GError **error) {
    return run(tensors, true, checksum, error);
}

bool mtf_tensor_file_read(const MtfTensorFile *tensors, uint64_t *checksum, GError **error) {
    return run(tensors, false, checksum, error);
}

bool mtf_tensor_file_copy(const MtfTensorFile *tensors, uint64_t *checksum, GError **error) {
    Mover mover;
    (void)error;
    mover_init(&mover, tensors);
    move_all(&mover, copy_window);
    mover_clear(&mover);
    *checksum = 0;
    return true;
}
