// SPDX-License-Identifier: GPL-3.0-or-later
/* Certificates: what a search did to a layout problem and why no choice below its bound was lost, for a
 * reader that shares nothing with the solver (analyzer/certificate). Lines of words and decimal numbers:
 *
 *     meshtf-certificate 1
 *     needs L                 where that comes first, costs count for nothing and L is the limit
 *     scale C U               costs are divided by 2^C, usages and the limit by 2^U, rounded down
 *     rows T ...              only these time points count from here on
 *     keep V P ...            node V keeps these values, numbered anew; the others are impossible, without
 *                             a partner, too large or dominated
 *     join A B P Q ...        these pairs of values become those of A, and B goes; no others are possible
 *     eliminate V             V folds into its neighbours, at most two
 *     part A B                the edge costs nothing any more, and goes
 *     move A B M ...          the edge's costs less M of A's value, A's own costs more
 *     shut V P                the value is impossible, without a partner or too large
 *     dead                    a node has no value left, or the least of all nodes overfills a row
 *     point S P, price T Y, message A B M ..., end
 *                             prices of memory in 2^-P, messages of the edge (A, B) to A in 2^-S
 *     bound B                 the point proves that no choice costs less
 *     prune K, value V P ..., entry A B P Q ..., end
 *                             it proves that no choice of at most K uses these
 *     single K                one value a node is left, and that costs more than K or does not fit
 *     assume V P ... done     with this value alone nothing of at most K is left: it is impossible
 *     order V ...             of all nodes that are left, for the next line:
 *     buckets K T ...         eliminated in that order, with the prices and messages of the last point and the
 *                             memory of these times alone, no choice of at most K is left
 *     guess K ... done        nothing costs at most K: a bound; what was pruned below is forgotten
 *     worst                   what every choice costs at most counts: a bound above it says that none fits
 *     choice S ...            of the whole problem
 *
 * Nodes keep the problem's numbers; values are those that are left, counted from 0. Each K lowers what is
 * claimed in the end to "no choice costs at most the lowest K, and none less than the best bound where that
 * is less". All costs are in the divided units but for that of `choice`. After `needs` no more is claimed than
 * that no choice fits in L.
 *
 * Functions here append lines; each accepts NULL and then does nothing. */
#ifndef MTF_CERTIFICATE_H
#define MTF_CERTIFICATE_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct MtfCertificate MtfCertificate;

/* A certificate without lines; the caller frees it. */
MtfCertificate *mtf_certificate_new(void);
void mtf_certificate_free(MtfCertificate *certificate);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(MtfCertificate, mtf_certificate_free)

/* An empty part of one, for what may come to nothing; NULL for NULL. */
MtfCertificate *mtf_certificate_part(const MtfCertificate *whole);

/* Appends a part to the whole, or puts it in the place of all its lines; the part stays the caller's. */
void mtf_certificate_append(MtfCertificate *whole, const MtfCertificate *part);
void mtf_certificate_replace(MtfCertificate *whole, const MtfCertificate *part);

/* Its first line, where it has none yet. */
void mtf_certificate_begin(MtfCertificate *certificate);

/* Appends a word and numbers; the line goes on until mtf_certificate_end_line. */
void mtf_certificate_begin_line(MtfCertificate *certificate, const char *word);
void mtf_certificate_add(MtfCertificate *certificate, int64_t number);
void mtf_certificate_end_line(MtfCertificate *certificate);

/* A whole line of a word and up to two numbers. */
void mtf_certificate_word(MtfCertificate *certificate, const char *word);
void mtf_certificate_one(MtfCertificate *certificate, const char *word, int64_t a);
void mtf_certificate_two(MtfCertificate *certificate, const char *word, int64_t a, int64_t b);

/* Between these two stand a point and its bound; a bound right after another one takes its place. */
void mtf_certificate_begin_bound(MtfCertificate *certificate);
void mtf_certificate_end_bound(MtfCertificate *certificate);

/* The text; NULL where it grew beyond all use (4 GiB). Owned by the certificate. */
const char *mtf_certificate_text(const MtfCertificate *certificate);

/* Writes it to a file, whole or not at all; fails where it grew beyond all use. */
bool mtf_certificate_write(const MtfCertificate *certificate, const char *path, GError **error);

#endif
