// SPDX-License-Identifier: GPL-3.0-or-later
/* Random numbers that no layout can change. Every number is a pure function of (seed, name of the
 * stream, step, global index of the element), so any rank can make any element, and all make the
 * same. The generator is Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2,
 * 3", SC 2011) of Random123:
 *
 *     key      64 bits   mix(mix(seed) + fnv1a(name)), low word first
 *     counter 128 bits   index / 4 (low, high word), step (low, high word)
 *     result   4 words   for the elements 4b, 4b + 1, 4b + 2, 4b + 3 of block b = index / 4
 *
 * fnv1a is the 64-bit FNV-1a hash of the name's bytes and mix the finalizer of splitmix64. */
#ifndef MTF_RANDOM_H
#define MTF_RANDOM_H

#include "layouts/graph/graph.h"

#include <stdbool.h>
#include <stdint.h>

/* Whether an operation draws from a random stream; a "dropout" of 0 asks for none. */
bool mtf_operation_is_random(const MtfOperation *operation);

/* A stream at one step; a plain value. */
typedef struct {
    uint64_t key;
    uint64_t step;
} MtfRandom;

/* The step that a random stream is asked for in the iteration of a loop that is about `element`. */
static inline uint64_t mtf_random_step(uint64_t step, int64_t element) {
    return step | (uint64_t)element << 40;
}

/* The stream of a name in a training step; streams of other names or steps are independent of it. */
MtfRandom mtf_random_stream(uint64_t seed, const char *name, uint64_t step);

/* The stream of a variable's initial value: step 2^64 - 1, which no training step reaches. */
MtfRandom mtf_random_initial_stream(uint64_t seed, const char *tensor);

/* The four words of block `block` (elements 4 block … 4 block + 3). */
void mtf_random_block(const MtfRandom *random, int64_t block, uint32_t words[4]);

/* The word w of element `index`. */
uint32_t mtf_random_word(const MtfRandom *random, int64_t index);

/* w / 2^32: uniform in [0, 1). */
double mtf_random_uniform(const MtfRandom *random, int64_t index);

/* Standard normal by Box and Muller from the element's pair of words (w0, w1) or (w2, w3):
 * sqrt(-2 ln((a + 1) / 2^32)) times the cosine (even elements) or sine (odd) of 2 pi b / 2^32. */
double mtf_random_normal(const MtfRandom *random, int64_t index);

/* Whether dropout keeps an element: w >= floor(rate 2^32), with `rate` in [0, 1); and that limit.
 * runtime/kernels/base/kernel_random.h decides of many elements at a time. */
bool mtf_random_keeps(const MtfRandom *random, double rate, int64_t index);
uint32_t mtf_random_dropped_below(double rate);

/* The initial value of element `index` of a variable whose initial stream is `random`. */
double mtf_random_initial(const MtfRandom *random, const MtfInit *init, int64_t index);

/* The same of elements index … index + n - 1. */
void mtf_random_initial_run(const MtfRandom *random, const MtfInit *init, int64_t index, int64_t n,
                            double *values);

#endif
