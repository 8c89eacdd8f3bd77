// SPDX-License-Identifier: GPL-3.0-or-later
/* Fail on all ranks or on none. A rank that meets trouble alone must not leave alone: the others
 * would wait for it in the next collective. So whatever can fail on one rank is followed by an
 * agreement, in which every rank brings its own error or none:
 *
 *     rank 0  NULL                              rank 0  rank 2: cannot read …
 *     rank 1  NULL             ──agree──►       rank 1  rank 2: cannot read …      all false
 *     rank 2  cannot read …                     rank 2  rank 2: cannot read …
 *
 * Where nobody failed this is one allreduce of one integer. All functions are collective over the
 * control communicator. */
#ifndef MTF_AGREEMENT_H
#define MTF_AGREEMENT_H

#include <glib.h>
#include <mpi.h>
#include <stdbool.h>

/* Waits until all ranks have come, asleep where that takes long: MPI's own barrier looks all the time,
 * and takes the processor from those who are still at work where ranks outnumber cores. */
void mtf_meet(MPI_Comm control);

/* True on every rank when no rank brought an error; otherwise false on every rank, with the error
 * of the lowest rank that did (its message begins "rank R: " unless R is 0). Takes `local`. Ranks meet
 * first. */
bool mtf_agree(MPI_Comm control, GError *local, GError **error);

/* The same for ranks that come at about the same time, and `*request` becomes the largest over the ranks,
 * which they all learn in the same allreduce. It is 0 on failure. */
bool mtf_agree_on(MPI_Comm control, GError *local, int *request, GError **error);

/* An agreement in two halves, between which ranks do other things. It stays where it is until it has ended. */
typedef struct {
    MPI_Comm control;
    GError *local;
    int least[2]; /* rank that failed, request turned round */
    double value;
    MPI_Request requests[2];
} MtfAgreement;

/* The first half: what each rank brings, as to mtf_agree_on. Takes `local`. */
void mtf_agreement_begin(MtfAgreement *agreement, MPI_Comm control, GError *local, int request);

/* Once it has begun: `value` becomes that of rank `root` by its end; with root -1 each rank keeps its own. */
void mtf_agreement_share(MtfAgreement *agreement, double value, int root);

/* The second: what all have brought, as mtf_agree_on says it. */
bool mtf_agreement_end(MtfAgreement *agreement, int *request, GError **error);

/* Ends one whose answer is of no use any more. */
void mtf_agreement_drop(MtfAgreement *agreement);

/* Fails, on all ranks, when some rank's text differs from rank 0's; `what` names it: "plan". */
bool mtf_agree_same(MPI_Comm control, const char *text, const char *what, GError **error);

/* Rank 0's number on every rank; the largest over ranks. */
double mtf_agree_first(MPI_Comm control, double value);
double mtf_agree_largest(MPI_Comm control, double value);

/* Makes each of `n` numbers the sum, or the largest, of it over the ranks, on all of them. */
void mtf_agree_sums(MPI_Comm ranks, double *values, int64_t n);
void mtf_agree_maxima(MPI_Comm ranks, double *values, int64_t n);

#endif
