// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/support/agreement.h"

#include "layouts/base/error.h"
#include "runtime/support/mpi_check.h"

#include <limits.h>
#include <sched.h>
#include <string.h>

#define MESSAGE_BYTES 2048
/* Looks of a rank that waits for others, without sleep; then it sleeps microseconds, an eighth of what it has
 * slept before, so that it is late by no more. */
#define EAGER_LOOKS 200
#define FIRST_SLEEP 50
#define LONGEST_SLEEP 2000

/* An error as it travels. */
typedef struct {
    int code;
    char message[MESSAGE_BYTES];
} Report;

static int rank_of(MPI_Comm control) {
    int rank;
    mtf_mpi_require(MPI_Comm_rank(control, &rank), "MPI_Comm_rank");
    return rank;
}

static void fill_report(Report *report, int rank, const GError *local) {
    report->code = local->domain == MTF_ERROR ? local->code : MTF_ERROR_FAILED;
    if (rank == 0)
        g_strlcpy(report->message, local->message, MESSAGE_BYTES);
    else
        g_snprintf(report->message, MESSAGE_BYTES, "rank %d: %s", rank, local->message);
}

void mtf_meet(MPI_Comm control) {
    MPI_Request request;
    int met = 0;
    gulong slept = 0;
    mtf_mpi_require(MPI_Ibarrier(control, &request), "MPI_Ibarrier");
    for (int looks = 0; !met; looks++) {
        mtf_mpi_require(MPI_Test(&request, &met, MPI_STATUS_IGNORE), "MPI_Test");
        if (met)
            return;
        if (looks < EAGER_LOOKS) {
            sched_yield();
            continue;
        }
        gulong sleep = CLAMP(slept / 8, FIRST_SLEEP, LONGEST_SLEEP);
        g_usleep(sleep);
        slept += sleep;
    }
}

bool mtf_agree(MPI_Comm control, GError *local, GError **error) {
    int request = 0;
    mtf_meet(control);
    return mtf_agree_on(control, local, &request, error);
}

bool mtf_agree_on(MPI_Comm control, GError *local, int *request, GError **error) {
    MtfAgreement agreement;
    mtf_agreement_begin(&agreement, control, local, *request);
    return mtf_agreement_end(&agreement, request, error);
}

void mtf_agreement_begin(MtfAgreement *agreement, MPI_Comm control, GError *local, int request) {
    *agreement = (MtfAgreement){ .control = control,
                                 .local = local,
                                 .least = { local != NULL ? rank_of(control) : INT_MAX, -request },
                                 .requests = { MPI_REQUEST_NULL, MPI_REQUEST_NULL } };
    mtf_mpi_require(MPI_Iallreduce(MPI_IN_PLACE, agreement->least, 2, MPI_INT, MPI_MIN, control,
                                   &agreement->requests[0]),
                    "MPI_Iallreduce");
}

void mtf_agreement_share(MtfAgreement *agreement, double value, int root) {
    agreement->value = value;
    if (root >= 0)
        mtf_mpi_require(MPI_Ibcast(&agreement->value, 1, MPI_DOUBLE, root, agreement->control,
                                   &agreement->requests[1]),
                        "MPI_Ibcast");
}

/* The error of the first rank that has one, on all. */
static bool tell_failure(MtfAgreement *agreement, int first, GError **error) {
    Report report = { 0 };
    int rank = rank_of(agreement->control);
    if (rank == first)
        fill_report(&report, rank, agreement->local);
    g_clear_error(&agreement->local);
    mtf_mpi_require(MPI_Bcast(&report, (int)sizeof report, MPI_BYTE, first, agreement->control),
                    "MPI_Bcast");
    g_set_error_literal(error, MTF_ERROR, report.code, report.message);
    return false;
}

static void wait_for_both(MtfAgreement *agreement) {
    mtf_mpi_require(MPI_Waitall(2, agreement->requests, MPI_STATUSES_IGNORE), "MPI_Waitall");
}

void mtf_agreement_drop(MtfAgreement *agreement) {
    wait_for_both(agreement);
    g_clear_error(&agreement->local);
}

bool mtf_agreement_end(MtfAgreement *agreement, int *request, GError **error) {
    wait_for_both(agreement);
    int first = agreement->least[0];
    *request = first == INT_MAX ? -agreement->least[1] : 0;
    return first == INT_MAX || tell_failure(agreement, first, error);
}

bool mtf_agree_same(MPI_Comm control, const char *text, const char *what, GError **error) {
    char first[256] = "";
    GError *local = NULL;
    if (rank_of(control) == 0)
        g_strlcpy(first, text, sizeof first);
    mtf_mpi_require(MPI_Bcast(first, (int)sizeof first, MPI_CHAR, 0, control), "MPI_Bcast");
    if (strncmp(first, text, sizeof first - 1) != 0)
        mtf_input_error(&local, "the %s here is not the one rank 0 has (%.12s, there %.12s)", what,
                        text, first);
    return mtf_agree(control, local, error);
}

double mtf_agree_first(MPI_Comm control, double value) {
    mtf_mpi_require(MPI_Bcast(&value, 1, MPI_DOUBLE, 0, control), "MPI_Bcast");
    return value;
}

static void combine(MPI_Comm ranks, double *values, int64_t n, MPI_Op operation) {
    for (int64_t at = 0; at < n; at += G_MAXINT)
        mtf_mpi_require(MPI_Allreduce(MPI_IN_PLACE, values + at, (int)MIN(n - at, G_MAXINT),
                                      MPI_DOUBLE, operation, ranks),
                        "MPI_Allreduce");
}

void mtf_agree_sums(MPI_Comm ranks, double *values, int64_t n) {
    combine(ranks, values, n, MPI_SUM);
}

void mtf_agree_maxima(MPI_Comm ranks, double *values, int64_t n) {
    combine(ranks, values, n, MPI_MAX);
}

double mtf_agree_largest(MPI_Comm control, double value) {
    mtf_agree_maxima(control, &value, 1);
    return value;
}
