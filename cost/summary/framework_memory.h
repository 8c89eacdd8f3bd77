// SPDX-License-Identifier: GPL-3.0-or-later
/* The memory that a framework takes for a program, instruction by instruction:
 *
 *     bytes ^            ╭──╮             activations, workspace ..: as the program has them
 *           |        ╭───╯  ╰──╮ ╭──────  gradients: stay from when they are made until the
 *           |   ╭────╯         ╰─╯        optimizer, which comes after all of them, takes them
 *           |───────────────────────────  weights and optimizer: a parameter, as the profile says
 *           +─────────────────────────► instruction
 *
 * A program of our own updates each weight as soon as its gradient is there, keeps all in float32 but what
 * products read, attention without its scores, and draws what dropout drops again; frameworks do none of it, but they
 * sum gradients and gather new weights where these stand. What the allocator reserves beyond what it gives out is the
 * profile's share of everything (`slack`), or, where gradients come as activations go, of what the one
 * leaves that the other does not fit in (`unfit`). */
#ifndef MTF_FRAMEWORK_MEMORY_H
#define MTF_FRAMEWORK_MEMORY_H

#include "cost/machine/software.h"
#include "layouts/program/program.h"

/* What a micro-batch leaves in a stage for a later pass over it, while others run. */
typedef enum {
    MTF_LEFT_BY_FORWARD,  /* for the input gradient */
    MTF_LEFT_FOR_WEIGHTS, /* by the forward pass, for a weight gradient that waits */
    MTF_LEFT_BY_GRADIENT, /* by the input gradient, for that of the weights */
    MTF_LEFTS,
} MtfLeft;

/* Bytes of the fullest device: what the allocator gives out at most, what it reserves, and with context and
 * libraries what the device has less. What is given out is what stands whoever works, what comes and goes within a
 * pass, and what as many micro-batches have left as the program has slots for. */
typedef struct {
    double given, reserved, device;
    double standing, passing, left[MTF_LEFTS];
} MtfFrameworkMemory;

/* What the framework of the profile takes for the program. */
MtfFrameworkMemory mtf_framework_memory(const MtfProgram *program, const MtfSoftware *software);

/* Sets what is given out, and with it the rest, of a framework that holds a share of it back. */
void mtf_framework_memory_give(MtfFrameworkMemory *memory, double given,
                               const MtfSoftware *software);

/* As members of a prediction: given_bytes, reserved_bytes, device_memory_bytes, standing_bytes, passing_bytes,
 * left_bytes; and back. */
void mtf_framework_memory_add(cJSON *predicted, const MtfFrameworkMemory *memory);
MtfFrameworkMemory mtf_framework_memory_of(const cJSON *predicted);

#endif
