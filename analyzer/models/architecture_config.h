// SPDX-License-Identifier: GPL-3.0-or-later
/* A published model's config.json (Hugging Face transformers) as a network. What a file leaves out
 * has the value that transformers' own class for the model type gives it, which differs from type
 * to type.
 *
 * Every key is accounted for: it is used, or it is known not to change what is computed, or it is
 * off (null, false), or it is refused by name, since a graph that is nearly the model is worse than
 * none. */
#ifndef MTF_ARCHITECTURE_CONFIG_H
#define MTF_ARCHITECTURE_CONFIG_H

#include "analyzer/models/architecture.h"
#include "layouts/base/json_reader.h"

/* Reads the config at `root`. `network` is filled but for its name, batch and lengths: those are the caller's
 * (mtf_architecture_lengths). Dropout is what the file says. `left_out` receives the keys that were read and
 * do not change the graph (char *, owned by the array), with a reason where it is not plain. Strings of
 * `network` are static. */
bool mtf_architecture_config_read(const MtfJson *root, MtfArchitecture *network,
                                  GPtrArray *left_out, GError **error);

/* The part of a model of texts and pictures that is read, as `part`, with why the rest is `left`; or the
 * config itself. */
const MtfJson *mtf_architecture_config_part(const MtfJson *root, MtfJson *part, const char **left);

/* Whether a JSON object is a model's config: it has "model_type". */
bool mtf_architecture_config_is(const MtfJson *root);

/* ---- For the readers of single types (types/) ---------------------------------------------- */

/* A config while it is read. After the first error every call gives its standard value. */
typedef struct {
    const MtfJson *root;
    const MtfJson *whole; /* the whole file's; `root` may be a part of it */
    GHashTable *used;     /* keys */
    GPtrArray *left_out;
    bool failed;
    GError **error;
} MtfConfig;

/* The largest size, so that products of two are exact, and the most parts (layers, experts of a
 * token) that a graph is built of. */
#define MTF_CONFIG_MOST (INT64_C(1) << 30)
#define MTF_CONFIG_MOST_PARTS MTF_MOST_LAYERS

/* The value at `key`, or the standard one where it is missing or null. Sizes are at least 1; counts
 * are of parts that the graph has one by one. */
int64_t mtf_config_count(MtfConfig *config, const char *key, int64_t standard);
int64_t mtf_config_size(MtfConfig *config, const char *key, int64_t standard);
int64_t mtf_config_integer(MtfConfig *config, const char *key, int64_t low, int64_t standard);
double mtf_config_number(MtfConfig *config, const char *key, double standard);
bool mtf_config_flag(MtfConfig *config, const char *key, bool standard);
const char *mtf_config_word(MtfConfig *config, const char *key, const char *standard);

/* Whether there is a list of n items at `key`; false where the key is left out, or what is there is none of so many,
 * which fails. `what` they are: "sizes". */
bool mtf_config_list(MtfConfig *config, const char *key, int n, const char *what, MtfJson *list);

/* Whether the key is there and not null; it then counts as used. */
bool mtf_config_find(MtfConfig *config, const char *key, MtfJson *value);

/* Fails at a key, with what is wrong and what would be right. */
void mtf_config_fail(MtfConfig *config, const char *key, const char *format, ...)
    G_GNUC_PRINTF(3, 4);

/* The operation that an activation's name in config.json stands for. */
const char *mtf_config_activation(MtfConfig *config, const char *key, const char *standard);

/* Notes that a key does not change the graph, and why. */
void mtf_config_leave_out(MtfConfig *config, const char *key, const char *reason);

/* Rotary positions of the decoder, whose context and head's width are read; `standard` is the base where none
 * is given, and a share that was set before is the one where none is given. A `window_rotary_base` that was
 * set before may be given another value (architecture_rotary.c). */
void mtf_config_rotary(MtfConfig *config, MtfArchitecture *network, double standard);

typedef struct {
    const char *name;
    void (*read)(MtfConfig *config, MtfArchitecture *network);
} MtfArchitectureType;

/* Tables of types, each of which ends with name NULL; the last is NULL. */
extern const MtfArchitectureType *const mtf_architecture_types[];

/* The head of classes that a decoder of any type may have, read from a text's last place; all call its matrix
 * alike. Defined in types/. */
void mtf_decoder_head(MtfConfig *config, MtfArchitecture *network);

#endif
