// SPDX-License-Identifier: GPL-3.0-or-later
/* What is asked of meshtf-plan search: its options as they are typed, and which go together.
 *
 *     argv ──read──► MtfSearchOptions ──► the search on one mesh (command_search.c)
 *                                    ├──► that for stages (search_pipeline.h)
 *                                    └──► that for inference (analyzer/serving/search_inference.h)
 */
#ifndef MTF_SEARCH_OPTIONS_H
#define MTF_SEARCH_OPTIONS_H

#include "analyzer/layout_search/alike_layers.h"

/* Texts are NULL where they are not given; counts are 0 then, but `max_axes` what is usual; `gap` is NAN. */
typedef struct {
    char *mesh, *machine, *software, *memory, *layouts, *precision, *output, *report, *dump,
        *certificate, *dump_after;
    char **dims, **pads, **pins, **forbids;
    char *batch_dim, *recompute, *offload, *key_parts, *ring, *microbatches, *collectives;
    char *schedule, *cut, *loss, *exportable, *uniform;
    MtfUniform alike; /* `uniform`, read */
    int devices, max_axes, seed, threads, frontier, batch, length;
    char *stages;
    char *infer, *cache_memory, *weights, *prefill_devices;
    int context, generate, chunks;
    double seconds, gap;
    gboolean even, json;
    bool more_axes; /* than `max_axes` are searched for space: neither they nor a mesh were given */
} MtfSearchOptions;

/* Reads and checks the options; what is left of `*argv` behind them is the graph. Fails with a bad-input error; the
 * options are to be cleared all the same. */
bool mtf_search_options_read(int *argc, char ***argv, MtfSearchOptions *options, GError **error);
void mtf_search_options_clear(MtfSearchOptions *options);

/* The stages that are asked for, 0: as many as are best. Fails when --stages is no count. */
bool mtf_search_options_stages(const MtfSearchOptions *options, int *stages, GError **error);

/* The parts of attention's keys, and those of a ring, 0: any. Fails when they are no counts. */
bool mtf_search_options_key_parts(const MtfSearchOptions *options, int *key_parts, int *ring,
                                  GError **error);

/* Whether an option is not given, or says "auto". */
bool mtf_search_option_is_auto(const char *text);

/* Whether all that is given is something that a search for stages knows, or one without any; the error
 * names what is not. */
bool mtf_search_options_suit_stages(const MtfSearchOptions *options, GError **error);
bool mtf_search_options_suit_one_mesh(const MtfSearchOptions *options, GError **error);

#endif
