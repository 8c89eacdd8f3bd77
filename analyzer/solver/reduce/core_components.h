// SPDX-License-Identifier: GPL-3.0-or-later
/* The parts of a core that can be solved apart: no edge and no memory row joins them.
 *
 *     o--o   o--o--o      three components, unless the lone node
 *      \ |                and one of the others use memory in
 *        o        o       the same row
 */
#ifndef MTF_CORE_COMPONENTS_H
#define MTF_CORE_COMPONENTS_H

#include "analyzer/solver/reduce/layout_core.h"

/* Numbers the components in the order of their first nodes; component[v] is -1 where a node is
 * gone. Returns how many there are. */
int mtf_core_components(const MtfCore *core, int *component);

/* One of them as a core of its own (mtf_core_excerpt), with a constant of zero. */
MtfCore *mtf_core_component(const MtfCore *core, const int *component, int index);

#endif
