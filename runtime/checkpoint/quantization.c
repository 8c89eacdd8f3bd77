// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/checkpoint/quantization.h"

#include "runtime/kernels/base/slice.h"
#include "runtime/support/mpi_check.h"

#include <math.h>

#define UNSEEN -1.0F

/* One weight's channels. */
typedef struct {
    int scale;      /* tensor */
    int64_t n;      /* channels */
    int64_t inner;  /* elements behind one another of a channel; 0: channels run fastest */
    float *largest; /* of each channel, then its scale; UNSEEN */
} Channels;

struct MtfQuantization {
    const MtfWorker *worker;
    int n;             /* tensors */
    Channels **tensor; /* by number; NULL: not quantized */
};

static Channels *channels_of(const MtfGraph *graph, int t) {
    const MtfTensor *weight = mtf_graph_tensor(graph, t);
    int scale = weight->scale != NULL ? mtf_graph_find_tensor(graph, weight->scale) : -1;
    if (weight->dtype != MTF_I8 || scale < 0 || weight->shape.rank == 0)
        return NULL;
    const MtfShape *shape = &mtf_graph_tensor(graph, scale)->shape;
    Channels *channels = g_new(Channels, 1);
    channels->scale = scale;
    channels->n = mtf_graph_elements(graph, shape);
    bool fastest = mtf_shape_find(shape, weight->shape.dims[weight->shape.rank - 1]) >= 0;
    channels->inner = fastest ? 0 : mtf_graph_elements(graph, &weight->shape) / channels->n;
    channels->largest = g_new(float, (gsize)channels->n);
    for (int64_t i = 0; i < channels->n; i++)
        channels->largest[i] = UNSEEN;
    return channels;
}

MtfQuantization *mtf_quantization_new(const MtfWorker *worker) {
    const MtfGraph *graph = worker->program->graph;
    MtfQuantization *q = g_new(MtfQuantization, 1);
    *q = (MtfQuantization){ .worker = worker, .n = (int)graph->tensors->len };
    q->tensor = g_new(Channels *, (gsize)q->n + 1);
    for (int t = 0; t < q->n; t++)
        q->tensor[t] = channels_of(graph, t);
    return q;
}

void mtf_quantization_free(MtfQuantization *q) {
    for (int t = 0; q != NULL && t < q->n; t++) {
        if (q->tensor[t] != NULL)
            g_free(q->tensor[t]->largest);
        g_free(q->tensor[t]);
    }
    if (q != NULL)
        g_free(q->tensor);
    g_free(q);
}

bool mtf_quantization_has(const MtfQuantization *q, int tensor) {
    return q != NULL && q->tensor[tensor] != NULL;
}

static float *channel_at(const Channels *channels, int64_t index) {
    return &channels->largest[channels->inner > 0 ? index / channels->inner : index % channels->n];
}

void mtf_quantization_measure(MtfQuantization *q, const MtfQuantizedRun *run) {
    for (int64_t i = 0; i < run->count; i++) {
        float *largest = channel_at(q->tensor[run->tensor], run->index + i);
        *largest = fmaxf(*largest, fabsf((float)mtf_stored_value(run->type, run->elements, i)));
    }
}

/* Of every channel that somebody saw; a channel of zeros has a scale, too. */
static void settle_channels(const MtfQuantization *q, const Channels *channels, MPI_Comm control) {
    const MtfOperand *slice = mtf_worker_tensor(q->worker, channels->scale);
    for (int64_t at = 0; at < channels->n; at += G_MAXINT)
        mtf_mpi_require(MPI_Allreduce(MPI_IN_PLACE, channels->largest + at,
                                      (int)MIN(channels->n - at, G_MAXINT), MPI_FLOAT, MPI_MAX,
                                      control),
                        "MPI_Allreduce");
    for (int64_t i = 0; i < channels->n; i++)
        if (channels->largest[i] != UNSEEN)
            channels->largest[i] =
                channels->largest[i] > 0 ? channels->largest[i] / (float)MTF_INT8_MOST : 1;
    for (int64_t i = 0; i < mtf_slice_elements(slice); i++) {
        float scale = channels->largest[mtf_slice_global_index(slice, i)];
        if (scale != UNSEEN)
            mtf_slice_set(slice, i, (double)scale);
    }
}

void mtf_quantization_settle(MtfQuantization *q, MPI_Comm control) {
    for (int t = 0; t < q->n; t++)
        if (q->tensor[t] != NULL)
            settle_channels(q, q->tensor[t], control);
}

void mtf_quantization_store(const MtfQuantization *q, const MtfQuantizedRun *run,
                            const MtfOperand *slice, int64_t position) {
    for (int64_t i = 0; i < run->count; i++) {
        double scale = (double)*channel_at(q->tensor[run->tensor], run->index + i);
        double value = mtf_stored_value(run->type, run->elements, i);
        mtf_slice_set(slice, position + i, value / scale);
    }
}

void mtf_quantization_add_scales(const MtfGraph *graph, GHashTable *names) {
    for (int t = 0; t < (int)graph->tensors->len; t++)
        if (mtf_graph_tensor(graph, t)->scale != NULL)
            g_hash_table_add(names, mtf_graph_tensor(graph, t)->scale);
}
