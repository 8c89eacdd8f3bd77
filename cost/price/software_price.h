// SPDX-License-Identifier: GPL-3.0-or-later
/* How a framework's step differs from the program as it stands (cost/machine/software.h):
 *
 *     traffic    what passes between neighbours of a map or a reduction stays in registers
 *                (kernel_work/fusable.h); the rest is read and written as often as the profile says
 *                of a decoder layer, over as often as such a kernel would; where it calls its library
 *                operation by operation, all does (layouts/kernel_work/eager.h)
 *                and an update moves the profile's bytes a parameter where Adam of float32 moves 28
 *     attention  by scores where the profile has no fused kernel, or none for models that learn what is
 *                added to them
 *     host       what the host takes to launch a kernel or a collective; nothing inside of loops that
 *                a library runs in one call, whose kernels the device starts one after the other
 *     hidden     the share of a collective that runs beside kernels
 *
 * The reference is a layer of a GPT whose maps and reductions are fused wherever they can be; it
 * reads and writes, in elements of the layer's input (of the inner width: four such),
 *
 *     forward    4 in each half (product, residual; sum, norm), 2 x 4 of the activation        16
 *     backward   5 in each half (gradient, residual's, input; sum, norm's), 3 x 4              22
 *
 * and starts 9 and 14 kernels that are no products. */
#ifndef MTF_SOFTWARE_PRICE_H
#define MTF_SOFTWARE_PRICE_H

#include "cost/machine/machine.h"
#include "layouts/program/program.h"

/* Bytes that the kernel moves through memory under the profile; NULL: as the program has it. */
double mtf_software_traffic(const MtfSoftware *software, const MtfProgram *program,
                            const MtfInstruction *instruction);

/* Kernels that the instruction starts: its own, if it is not a part of a neighbour's, and casts beside it. */
int mtf_software_kernels(const MtfSoftware *software, const MtfProgram *program,
                         const MtfInstruction *instruction);

/* Seconds in which a pool's kernel takes the elements of its windows one by one; 0 where none is or the
 * profile's kernels are as fast as memory. */
double mtf_software_pooling_seconds(const MtfMachine *machine, const MtfProgram *program,
                                    const MtfInstruction *instruction);

/* Bytes that casts beside the instruction move. */
double mtf_software_cast_bytes(const MtfSoftware *software, const MtfProgram *program,
                               const MtfInstruction *instruction);

/* Whether no kernel runs for the instruction: it only looks at elements under other names or sizes, or another
 * instruction's kernel does all that it is there for. */
bool mtf_software_leaves_out(const MtfSoftware *software, const MtfProgram *program,
                             const MtfInstruction *instruction);

/* How often the instruction runs for one of the program's: kernels more than once where the framework
 * redoes whole layers. */
double mtf_software_times(const MtfSoftware *software, const MtfProgram *program,
                          const MtfInstruction *instruction);

/* Seconds of the host for a kernel of the operation, or a local step that brings it a tensor or takes one
 * away; 0 without a profile. */
double mtf_software_launch_seconds(const MtfSoftware *software, const MtfOperation *op);

/* Seconds of the host for a kernel that starts, or a collective; of experts' products, each expert that the device
 * has weights of, and of a dispatch, what brings rows there, by which it falls behind. 0 without a profile. */
double mtf_software_host_seconds(const MtfSoftware *software, const MtfProgram *program,
                                 const MtfInstruction *instruction);

/* Where the host waits for each kernel: what that adds to the device's time; 0 elsewhere. */
double mtf_software_blocked_seconds(const MtfSoftware *software, const MtfProgram *program,
                                    const MtfInstruction *instruction);

/* Whether attention or its gradient `op` is no fused kernel there but products and passes over all scores,
 * which are kept for the backward pass. */
bool mtf_software_scores(const MtfSoftware *software, const MtfOperation *op);

/* Seconds of attention or its gradient on the machine, launch left out. */
double mtf_software_attention_seconds(const MtfMachine *machine, const MtfProgram *program,
                                      const MtfInstruction *instruction, const MtfPeaks *peaks,
                                      double bytes);

/* Bytes that the framework sends of what the program sends: gradients are summed in its own type. */
double mtf_software_sent_share(const MtfSoftware *software, const MtfProgram *program,
                               const MtfInstruction *instruction);

/* Whether a collective sums gradients that every rank gets whole, though it keeps its part only. */
bool mtf_software_sums_whole(const MtfSoftware *software, const MtfProgram *program,
                             const MtfInstruction *instruction);

/* The kind of communication that a collective is, for what hides it. */
MtfHidden mtf_software_hidden_kind(const MtfProgram *program, const MtfInstruction *instruction);

#endif
