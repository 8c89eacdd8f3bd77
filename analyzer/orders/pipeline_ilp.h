// SPDX-License-Identifier: GPL-3.0-or-later
/* The best order of a small pipeline of one chunk a rank, as an integer program. Ranks s, micro-batches i,
 * works a of F, I, W; micro-batches keep their order. With t_ais the beginning of a work, and for works of
 * a rank whose order is open, F_i and I_j, F_i and W_j, I_i and W_j with i > j,
 *
 *     x in {0, 1}      1: the one of the later micro-batch i comes first
 *
 *     minimise    T
 *     subject to  T >= t_W,m-1,s + W_s - (F + c of the ranks before s)     the span of rank s
 *                 t_F,i,s + F_s + c <= t_F,i,s+1      t_I,i,s + I_s + c <= t_I,i,s-1
 *                 t_F,i,s + F_s <= t_I,i,s            t_I,i,s + I_s <= t_W,i,s
 *                 t_a,i,s + a_s <= t_a,i+1,s
 *                 t_a,i,s + a_s <= t_b,j,s + H (1 - x)    t_b,j,s + b_s <= t_a,i,s + H x
 *                 (i + 1) share_F + sum over j < i of (1 - x_FiIj) share_I + (1 - x_FiWj) share_W <= cap
 *
 * H is the time by which an order as good as the one known ends. The first forward of every rank begins as
 * soon as it can in every order, so T is the span that mtf_pipeline_run_new finds. */
#ifndef MTF_PIPELINE_ILP_H
#define MTF_PIPELINE_ILP_H

#include "cost/pipeline/pipeline_schedule.h"

/* Whether the program suits: one chunk, gradients that give memory back, at most `most_pairs` open pairs. */
bool mtf_pipeline_ilp_suits(const MtfPipelineCase *the_case, int most_pairs);

/* Solves it. `*bound` is raised to what it proves of the span (to the solver's relative 1e-6); the result
 * is the best order, NULL where none has a shorter span than `known`, the order at hand. NULL with an
 * error when GLPK fails. */
MtfPipelineOrder *mtf_pipeline_ilp_solve(const MtfPipelineCase *the_case,
                                         const MtfPipelineOrder *known, double *bound,
                                         GError **error);

#endif
