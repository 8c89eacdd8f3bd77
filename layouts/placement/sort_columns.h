// SPDX-License-Identifier: GPL-3.0-or-later
/* Sorting along a dimension that is split in p parts, by exchanges whose sizes no element changes: columnsort
 * (Leighton, "Tight bounds on the complexity of parallel sorting", 1985). Each processor has a column of R places,
 * its own elements and then fillers, which come last:
 *
 *     1 sort the column    ──every p-th place to its processor──►   all-to-all of R elements a row
 *     2 sort it            ──the next R / p places to theirs────►   all-to-all of R elements a row
 *     3 sort it            ──its halves to both neighbours──────►   halo of R / 2 to either side
 *     4 sort it with both
 *
 * which is right where p divides R and R >= 2 (p - 1)^2. Behind the fourth a processor knows all places from half a column
 * before its own to half a column behind, and takes what is its part of the dimension. Columns of elements
 * and of their places lie alike, in blocks, so that messages are sent from where they were made:
 *
 *     [p blocks, rows, R / p]   of the first two exchanges
 *     [2 halves, rows, R / 2]   of the third
 *
 * Few processors, and short columns, have less to send when all get all.
 *
 * Where k of n elements are chosen, a column has a part's k best, with their places, and everyone gets all columns:
 *
 *     [rows, k]  ──allgather──►  [p parts, rows, k] */
#ifndef MTF_SORT_COLUMNS_H
#define MTF_SORT_COLUMNS_H

#include "layouts/graph/operation_table.h"
#include "layouts/placement/mesh.h"
#include "layouts/placement/placement.h"

/* R of an operation whose row sorts, whose dimension is in `parts` parts: the least there is; 0 where columns
 * do not do or would take more bytes than the gathering (of a gradient: the adding up) of all elements. */
int64_t mtf_sort_column(const MtfGraph *graph, const MtfOperation *operation, int64_t parts);

/* Of an operation whose row chooses along a dimension in `parts` parts: how many candidates each tells all, as many as
 * are wanted or as the largest part has; 0 where all elements are fewer bytes than the candidates with their places. */
int64_t mtf_choice_candidates(const MtfGraph *graph, const MtfOperation *operation, int64_t parts);

/* How many elements of that type, added up, tell a total as the type of sums has it: of bfloat16, whose 8 bits of a
 * mantissa are a third of float32's, 3. */
int mtf_total_places(MtfDtype dtype);

/* The dimension of the operation's results that its columns lie along. */
int mtf_column_dimension(const MtfOperation *operation);

/* Rows of a column: the elements on processor `rank`, or with -1 on the one that has most, of the dimensions of
 * `shape` beside `dim`. */
int64_t mtf_sort_rows(const MtfGraph *graph, const MtfMesh *mesh, const MtfShape *shape,
                      const MtfPlacement *placement, int dim, int rank);

#endif
