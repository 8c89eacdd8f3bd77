// SPDX-License-Identifier: GPL-3.0-or-later
/* The memory that a framework takes for a program, instruction by instruction:
 *
 *     bytes ^            ╭──╮             activations, workspace ..: as the program has them
 *           |        ╭───╯  ╰──╮ ╭──────  gradients: stay from when they are made until the
 *           |   ╭────╯         ╰─╯        optimizer, which comes after all of them, takes them
 *           |───────────────────────────  weights and optimizer: a parameter, as the profile says
 *           +─────────────────────────► instruction
 *
 * A program of our own updates each weight as soon as its gradient is there, and keeps all in float32 but
 * what products read; frameworks do neither. What the allocator reserves beyond what it gives out is the
 * profile's share of everything (`slack`), or, where gradients come as activations go, of what the one
 * leaves that the other does not fit in (`unfit`). */
#ifndef MTF_FRAMEWORK_MEMORY_H
#define MTF_FRAMEWORK_MEMORY_H

#include "cost/machine/software.h"
#include "layouts/program/program.h"

/* Bytes of the fullest device: what the allocator gives out at most, what it reserves, and with context and
 * libraries what the device has less. */
typedef struct {
    double given, reserved, device;
} MtfFrameworkMemory;

/* What the framework of the profile takes for the program. */
MtfFrameworkMemory mtf_framework_memory(const MtfProgram *program, const MtfSoftware *software);

#endif
