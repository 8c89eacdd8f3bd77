// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/worker/box_copy.h"

#include <string.h>

static int64_t extent(const MtfRange *range) {
    return range->end - range->begin;
}

int64_t mtf_box_elements(int rank, const MtfRange *box) {
    int64_t elements = 1;
    for (int i = 0; i < rank; i++)
        elements *= extent(&box[i]);
    return elements;
}

/* Puts one more dimension, slower than all before, in front of the loops; or widens what is there
 * when both arrays go on where it ends. */
static void add_dimension(MtfBoxCopy *copy, int64_t size, int64_t from_stride, int64_t to_stride) {
    if (copy->n_loops == 0 && from_stride == copy->run && to_stride == copy->run) {
        copy->run *= size;
        return;
    }
    MtfCopyLoop *first = &copy->loops[0];
    if (copy->n_loops > 0 && from_stride == first->size * first->from_stride &&
        to_stride == first->size * first->to_stride) {
        first->size *= size;
        return;
    }
    memmove(first + 1, first, sizeof *first * (size_t)copy->n_loops);
    *first = (MtfCopyLoop){ size, from_stride, to_stride };
    copy->n_loops++;
}

void mtf_box_copy_init(MtfBoxCopy *copy, int rank, int64_t element_bytes, const MtfRange *box,
                       const MtfRange *from, const MtfRange *to) {
    *copy = (MtfBoxCopy){ .run = element_bytes };
    int64_t from_stride = element_bytes;
    int64_t to_stride = element_bytes;
    for (int i = rank - 1; i >= 0; i--) {
        copy->from_offset += (box[i].begin - from[i].begin) * from_stride;
        copy->to_offset += (box[i].begin - to[i].begin) * to_stride;
        if (extent(&box[i]) > 1)
            add_dimension(copy, extent(&box[i]), from_stride, to_stride);
        from_stride *= extent(&from[i]);
        to_stride *= extent(&to[i]);
    }
    if (mtf_box_elements(rank, box) == 0)
        *copy = (MtfBoxCopy){ 0 };
}

static void copy_single_words(const MtfCopyLoop *loop, const char *from, char *to) {
    for (int64_t i = 0; i < loop->size; i++, from += loop->from_stride, to += loop->to_stride)
        memcpy(to, from, 4);
}

static void copy_double_words(const MtfCopyLoop *loop, const char *from, char *to) {
    for (int64_t i = 0; i < loop->size; i++, from += loop->from_stride, to += loop->to_stride)
        memcpy(to, from, 8);
}

/* The innermost loop: `run` bytes at each stride. */
static void copy_runs(const MtfCopyLoop *loop, size_t run, const char *from, char *to) {
    if (run == 4) {
        copy_single_words(loop, from, to);
        return;
    }
    if (run == 8) {
        copy_double_words(loop, from, to);
        return;
    }
    for (int64_t i = 0; i < loop->size; i++, from += loop->from_stride, to += loop->to_stride)
        memmove(to, from, run);
}

static void copy_loops(const MtfBoxCopy *copy, int level, const char *from, char *to) {
    const MtfCopyLoop *loop = &copy->loops[level];
    if (level == copy->n_loops - 1) {
        copy_runs(loop, (size_t)copy->run, from, to);
        return;
    }
    for (int64_t i = 0; i < loop->size; i++, from += loop->from_stride, to += loop->to_stride)
        copy_loops(copy, level + 1, from, to);
}

void mtf_box_copy_run(const MtfBoxCopy *copy, const void *from, void *to) {
    if (copy->run == 0)
        return;
    const char *source = (const char *)from + copy->from_offset;
    char *target = (char *)to + copy->to_offset;
    if (copy->n_loops > 0)
        copy_loops(copy, 0, source, target);
    else if (source != target)
        memmove(target, source, (size_t)copy->run);
}

int64_t mtf_box_copy_bytes(const MtfBoxCopy *copy) {
    int64_t bytes = copy->run;
    for (int l = 0; l < copy->n_loops; l++)
        bytes *= copy->loops[l].size;
    return bytes;
}

bool mtf_box_is_contiguous(int rank, const MtfRange *box, const MtfRange *frame, int64_t *offset) {
    MtfBoxCopy copy;
    mtf_box_copy_init(&copy, rank, 1, box, frame, box);
    *offset = copy.from_offset;
    return copy.n_loops == 0;
}
