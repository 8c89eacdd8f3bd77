// SPDX-License-Identifier: GPL-3.0-or-later
/* The forms of export.h, each in a file of its own, and what they share. */
#ifndef MTF_EXPORT_FORMS_H
#define MTF_EXPORT_FORMS_H

#include "layouts/placement/rules.h"
#include "reports/facts/step_facts.h"

/* Each returns the whole text, to be freed by g_free. */
char *mtf_export_mtf(const MtfStepFacts *facts, GError **error);
char *mtf_export_jax(const MtfStepFacts *facts, GError **error);
char *mtf_export_dtensor(const MtfStepFacts *facts, GError **error);
char *mtf_export_megatron(const MtfStepFacts *facts, GError **error);
char *mtf_export_deepspeed(const MtfStepFacts *facts, GError **error);
char *mtf_export_maxtext(const MtfStepFacts *facts, GError **error);
char *mtf_export_torchtitan(const MtfStepFacts *facts, GError **error);
char *mtf_export_shardy(const MtfStepFacts *facts, GError **error);
char *mtf_export_onnx_text(const MtfStepFacts *facts, GError **error);

/* Text in double quotes, escaped as Python, gin, MLIR and JSON all read it (names hold no control
 * characters); free with g_free. */
char *mtf_export_quote(const char *text);

/* Inputs, variables, and with `results` what the forward pass computes. */
bool mtf_export_lists(const MtfStepFacts *facts, int tensor, bool results);

/* Python's tuples of the mesh, "(4, 2)" and "(\"rows\", \"cols\")"; one axis "all" of size 1 for
 * the mesh of one processor. Free with g_free. */
char *mtf_export_mesh_sizes(const MtfMesh *mesh);
char *mtf_export_mesh_names(const MtfMesh *mesh);

/* "0, 2, 1, 3": the device of each processor in order, or NULL when processor i is on device i.
 * Free with g_free. */
char *mtf_export_devices(const MtfStepFacts *facts);

/* Fails, naming the first of inputs, variables and forward results of which some dimension is split
 * into parts that are not equal. `system` is whose rule that is. */
bool mtf_export_check_even(const MtfStepFacts *facts, const char *system, GError **error);

/* The rules that give the plan's very layout. Fails, naming a dimension and the tensors or the
 * operation that differ, when there are none. Free with mtf_rules_free. */
MtfRules *mtf_export_rules(const MtfStepFacts *facts, GError **error);

#endif
