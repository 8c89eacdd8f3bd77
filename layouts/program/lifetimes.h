// SPDX-License-Identifier: GPL-3.0-or-later
/* From which instruction to which a storage is needed, and which buffers share one: an output takes
 * the place of an input that dies where the operation may write over it.
 *
 *     instruction   0   1   2   3   4
 *     storage a     [=======]
 *     storage b         [===========]      output of 3 in the place of its input
 */
#ifndef MTF_LIFETIMES_H
#define MTF_LIFETIMES_H

#include "layouts/program/program.h"

/* Fills in `first`, `last` and `storage` of all buffers. What lowering shares already (values that
 * are written where their variable stands) stays shared. May be called again after instructions
 * have changed places; buffers must not be added in between. */
void mtf_program_alias_buffers(MtfProgram *program);

/* The same without any further sharing. */
void mtf_program_find_lifetimes(MtfProgram *program);

/* Bytes of the storages (mtf_buffer_aligned_bytes) that are needed in the device's memory at each instruction
 * of a program whose buffers are aliased; free with g_free.
 */
int64_t *mtf_program_live(const MtfProgram *program);

/* The most of them: what no packing can undercut. */
int64_t mtf_program_most_live(const MtfProgram *program);

/* Whether output 0 of a kernel, or the output of a step that holds the same tensor, may take the
 * storage of an input, should that die there: the kernel allows it, both hold the same elements in
 * the same order, neither is a variable, and no other pipeline stage reads either. True or false
 * alike before and after mtf_program_alias_buffers, and in any order of the instructions. */
bool mtf_instruction_may_overwrite(const MtfProgram *program, int index, int input);

/* Whether `late`, which stands behind `early`, reads what it writes, or writes what it reads or
 * writes. Of a program whose buffers are aliased. */
bool mtf_instruction_depends(const MtfProgram *program, const MtfInstruction *early,
                             const MtfInstruction *late);

/* The buffer that owns a buffer's bytes. */
int mtf_program_storage(const MtfProgram *program, int buffer);

#endif
