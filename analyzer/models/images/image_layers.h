// SPDX-License-Identifier: GPL-3.0-or-later
/* What convolutional networks are written in. Activations are [batch, channels, space…] with one to
 * three dimensions of space; every layer that changes a size makes dimensions of its own.
 *
 *     x [batch, channels, rows, columns] ─conv─► norm ─► relu ─► pool ─► … ─mean─► dense ─► loss
 *
 * Names of weights are those of the part: "stem/w", "layer1/0/conv2/w". */
#ifndef MTF_IMAGE_LAYERS_H
#define MTF_IMAGE_LAYERS_H

#include "analyzer/models/model_family.h"
#include "analyzer/models/model_parts.h"

#define MTF_IMAGE_AXES 3

typedef struct {
    MtfParts *p;
    int batch;
    int axes;        /* of space: 2 or 3 */
    double epsilon;  /* of batch normalisation; 1e-5 */
    double momentum; /* of running statistics: what the new ones count; 0.1 */
    double slope;    /* of the activation below 0; 0: relu */
    double spread;   /* of the weights of classes' scores at first; 0: as of any dense layer */
    bool whole;      /* batch statistics are of the whole step, not of each micro-batch */
} MtfImageNet;

/* Whether a network begins with windows that do not shrink its pictures: as is asked for, else where those
 * have up to 64 pixels a side. Presets with published sizes ask for what was published. */
bool mtf_image_stem_is_small(const MtfModelSettings *settings);

/* Begins a network of `axes` dimensions of space. A slope that was set stays, so what is to be begun is zeros
 * beside it. */
void mtf_image_net_init(MtfImageNet *net, int axes, const MtfModelSettings *settings);

/* A tensor with its channels and the dimensions of its space. */
typedef struct {
    int tensor;
    int64_t channels;
    int64_t size[MTF_IMAGE_AXES];
    int channel_dim;
    int space[MTF_IMAGE_AXES];
} MtfImage;

/* Windows over space. Sizes of axes beyond the network's are ignored. */
typedef struct {
    int64_t kernel[MTF_IMAGE_AXES], stride[MTF_IMAGE_AXES];
    int64_t before[MTF_IMAGE_AXES], after[MTF_IMAGE_AXES]; /* padding */
} MtfImageWindow;

/* The same on all axes, with as much padding on both sides. */
MtfImageWindow mtf_image_window(int64_t kernel, int64_t stride, int64_t padding);

typedef struct {
    int64_t channels; /* made */
    MtfImageWindow window;
    int64_t groups;             /* 0: 1 */
    bool bias, norm, active;    /* what follows the convolution */
    bool transposed, depthwise; /* each channel by itself, as many as are read */
    bool turns; /* of 1x1: space gets its other names, so that a sum with what was before needs
                   none */
} MtfImageConv;

typedef enum { MTF_IMAGE_MAX, MTF_IMAGE_AVERAGE } MtfImagePool;

/* The network's pictures: an input fed with features. */
MtfImage mtf_image_input(MtfImageNet *net, int64_t channels, const int64_t *size);

/* Appends one layer and returns its result: a convolution, a norm, an activation, a pool, a sum. */
MtfImage mtf_image_conv(MtfImageNet *net, const char *name, MtfImage x, const MtfImageConv *conv);
MtfImage mtf_image_norm(MtfImageNet *net, const char *name, MtfImage x);
MtfImage mtf_image_active(MtfImageNet *net, const char *name, MtfImage x);
MtfImage mtf_image_pool(MtfImageNet *net, const char *name, MtfImage x, MtfImagePool kind,
                        const MtfImageWindow *window);
MtfImage mtf_image_add(MtfImageNet *net, const char *name, MtfImage x, MtfImage y);

/* Their channels one behind the other. */
MtfImage mtf_image_concat(MtfImageNet *net, const char *name, const MtfImage *parts, int n);

/* x divided by the power of its neighbours' squares (Krizhevsky and others, 2012, 3.3). */
MtfImage mtf_image_response_norm(MtfImageNet *net, const char *name, MtfImage x);

/* The mean over space [batch, channels]; the whole as it is, [batch, channels, space…], feeds a
 * dense layer too. */
int mtf_image_mean(MtfImageNet *net, MtfImage x);

/* x, whose dimensions but the batch are summed, through a matrix of its own, with a bias. */
int mtf_image_dense(MtfImageNet *net, const char *name, int x, int64_t outputs);
int mtf_image_dense_active(MtfImageNet *net, const char *name, int x, int64_t outputs);

/* The same to the dimension "classes". */
int mtf_image_dense_to(MtfImageNet *net, const char *name, int x, int64_t classes);

/* The mean cross entropy of pictures' classes, from a last dense layer; that of a second head's
 * scores added to it with a weight; that of each place's class. */
void mtf_image_classify(MtfImageNet *net, int x, int64_t classes);
void mtf_image_classify_too(MtfImageNet *net, int scores, double weight);
void mtf_image_label_places(MtfImageNet *net, MtfImage x);

#endif
