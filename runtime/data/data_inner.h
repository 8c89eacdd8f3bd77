// SPDX-License-Identifier: GPL-3.0-or-later
/* What opening data and filling inputs with it share. */
#ifndef MTF_DATA_INNER_H
#define MTF_DATA_INNER_H

#include "runtime/data/data.h"
#include "runtime/data/data_examples.h"
#include "runtime/data/data_pairs.h"
#include "runtime/data/data_teacher.h"
#include "runtime/data/data_tokens.h"

struct MtfData {
    const MtfGraph *graph;
    uint64_t seed;
    bool held_out;         /* fills come from the held out part */
    int64_t vocabulary;    /* of tokens */
    MtfTokens *tokens;     /* when some input is tokens of a text */
    MtfPairs *pairs;       /* when it is one of a pair of texts */
    MtfExamples *examples; /* when some input is features and there are files */
    MtfTeacher *teacher;   /* when some input is features and there are none */
    int64_t items, batch;  /* of a step */
    const char *item_name;
};

/* Kinds of feeds: ids of texts, what depends on an example's features, columns of categories. */
bool mtf_feed_is_text(MtfFeed feed);
bool mtf_feed_is_taught(MtfFeed feed);
bool mtf_feed_is_category(MtfFeed feed);
bool mtf_feed_is_features(MtfFeed feed);

/* Places within one example of an input. */
int64_t mtf_data_example_size(const MtfGraph *graph, int tensor);

/* Whether there are no files. */
bool mtf_data_is_generated(const MtfData *data);

#endif
