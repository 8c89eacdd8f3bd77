// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/kernels/onednn/onednn_conv.h"

#include "runtime/kernels/onednn/onednn_engine.h"

#include <string.h>

#define ALIGNMENT 64

typedef struct {
    dnnl_primitive_t reorder; /* NULL where the side is used as it lies */
    dnnl_memory_t given, used, scratch;
    int64_t offset; /* of what is used, in the workspace */
} Side;

typedef struct {
    dnnl_engine_t engine;
    dnnl_stream_t stream;
    dnnl_primitive_t primitive;
    dnnl_memory_t scratch;
    Side side[MTF_CONV_SIDES];
    MtfConvSide made;
    int64_t bytes;         /* of rewritten sides */
    int64_t scratch_bytes; /* behind them: the most that one of the primitives takes */
} Prepared;

/* ---- Descriptions -------------------------------------------------------------------------- */

/* Dimensions of one element may have any stride; oneDNN knows an order by its strides, so they get
 * those that it expects where the operand lies dense with channels last, or first. */
static bool lies_in_order(const MtfConvOperand *operand, const int *order, dnnl_dims_t strides) {
    int64_t dense[MTF_CONV_DIMS] = { 0 }, stride = 1;
    for (int i = operand->rank - 1; i >= 0; i--) {
        dense[order[i]] = stride;
        if (operand->size[order[i]] > 1 && operand->stride[order[i]] != stride)
            return false;
        stride *= operand->size[order[i]];
    }
    for (int i = 0; i < operand->rank; i++)
        strides[i] = dense[i];
    return true;
}

static void strides_of(const MtfConvOperand *operand, dnnl_dims_t strides) {
    int first[MTF_CONV_DIMS], last[MTF_CONV_DIMS], n = operand->rank;
    for (int i = 0; i < n; i++) {
        first[i] = i;
        last[i] = i == 0 ? 0 : i == n - 1 ? 1 : i + 1;
    }
    if (lies_in_order(operand, last, strides) || lies_in_order(operand, first, strides))
        return;
    for (int i = 0; i < n; i++)
        strides[i] = operand->stride[i];
}

static bool describe_given(const MtfConvOperand *operand, dnnl_memory_desc_t *description) {
    dnnl_dims_t sizes = { 0 }, strides = { 0 };
    memcpy(sizes, operand->size, sizeof operand->size);
    strides_of(operand, strides);
    return dnnl_memory_desc_init_by_strides(description, operand->rank, sizes,
                                            operand->dtype == MTF_BF16 ? dnnl_bf16 : dnnl_f32,
                                            strides) == dnnl_success;
}

/* As oneDNN likes it. */
static bool describe_any(const MtfConvOperand *operand, dnnl_data_type_t type,
                         dnnl_memory_desc_t *description) {
    dnnl_dims_t sizes = { 0 };
    memcpy(sizes, operand->size, sizeof operand->size);
    return dnnl_memory_desc_init_by_tag(description, operand->rank, sizes, type,
                                        dnnl_format_tag_any) == dnnl_success;
}

static dnnl_primitive_desc_t describe_convolution(const MtfConvolution *c,
                                                  const dnnl_memory_desc_t *side) {
    dnnl_convolution_desc_t desc;
    dnnl_dims_t stride, dilation, before, after;
    const dnnl_memory_desc_t *x = &side[MTF_CONV_LARGE], *y = &side[MTF_CONV_SMALL];
    const dnnl_memory_desc_t *w = &side[MTF_CONV_FILTER];
    dnnl_status_t status = dnnl_success;
    for (int i = 0; i < c->windows; i++) {
        stride[i] = c->stride[i];
        dilation[i] = c->dilation[i] - 1;
        before[i] = c->before[i];
        after[i] = c->after[i];
    }
    if (c->made == MTF_CONV_SMALL)
        status = dnnl_dilated_convolution_forward_desc_init(&desc, dnnl_forward_training,
                                                            dnnl_convolution_direct, x, w, NULL, y,
                                                            stride, dilation, before, after);
    else if (c->made == MTF_CONV_LARGE)
        status = dnnl_dilated_convolution_backward_data_desc_init(
            &desc, dnnl_convolution_direct, x, w, y, stride, dilation, before, after);
    else
        status = dnnl_dilated_convolution_backward_weights_desc_init(
            &desc, dnnl_convolution_direct, x, w, NULL, y, stride, dilation, before, after);
    return status == dnnl_success ? mtf_onednn_describe(&desc, NULL) : NULL;
}

static bool is_fast(const_dnnl_primitive_desc_t found) {
    const char *name = mtf_onednn_implementation(found);
    return g_str_has_prefix(name, "jit") || g_str_has_prefix(name, "brg");
}

/* Whether some place of window w meets padding alone, whichever window it is of. */
static bool has_idle_place(const MtfConvolution *c, int w) {
    const MtfConvOperand *filter = &c->side[MTF_CONV_FILTER];
    int64_t large = c->side[MTF_CONV_LARGE].size[2 + w];
    int64_t small = c->side[MTF_CONV_SMALL].size[2 + w];
    for (int64_t place = 0; place < filter->size[filter->rank - c->windows + w]; place++) {
        int64_t first = place * c->dilation[w] - c->before[w]; /* what it meets in window 0 */
        int64_t o = first < 0 ? (-first + c->stride[w] - 1) / c->stride[w] : 0;
        if (o >= small || first + o * c->stride[w] >= large)
            return true;
    }
    return false;
}

/* Of a filter's gradient oneDNN (2.6.3) leaves unwritten what nothing meets, where it multiplies
 * bfloat16. */
static bool gets_wrong_in_bfloat16(const MtfConvolution *c) {
    for (int w = 0; w < c->windows && c->made == MTF_CONV_FILTER; w++)
        if (has_idle_place(c, w))
            return true;
    return false;
}

/* Of a filter's gradient oneDNN (2.6.3) works on at most 28 windows in a row at once. Where the padding behind reaches
 * beyond those that are left over, on half as many; padding before that is longer than these makes it read amiss. */
static bool misreads_padding(const MtfConvolution *c) {
    static const int64_t at_once = 28;
    int last = c->windows - 1;
    return c->made == MTF_CONV_FILTER && c->side[MTF_CONV_SMALL].size[2 + last] > at_once &&
           c->before[last] > at_once / 2 && c->after[last] > 0;
}

/* What is multiplied is bfloat16 where all that is read is and the processor multiplies that; what is
 * made is as given, or else all are float32, and rewritten. */
static dnnl_data_type_t type_of(const MtfConvolution *c, int side) {
    bool narrow = mtf_onednn_multiplies_bfloat16() && !gets_wrong_in_bfloat16(c);
    for (int s = 0; s < MTF_CONV_SIDES; s++)
        narrow = narrow && (s == (int)c->made || c->side[s].dtype == MTF_BF16);
    return narrow && c->side[side].dtype == MTF_BF16 ? dnnl_bf16 : dnnl_f32;
}

/* First both activations as they lie, then one of them, then none; a filter is small. */
static dnnl_primitive_desc_t find_convolution(const MtfConvolution *c,
                                              const dnnl_memory_desc_t *given) {
    static const int free_sides[] = { 0, 1 << MTF_CONV_LARGE, 1 << MTF_CONV_SMALL,
                                      1 << MTF_CONV_LARGE | 1 << MTF_CONV_SMALL };
    for (gsize i = 0; i < G_N_ELEMENTS(free_sides); i++) {
        dnnl_memory_desc_t side[MTF_CONV_SIDES];
        bool last = i + 1 == G_N_ELEMENTS(free_sides), works = true;
        for (int s = 0; s < MTF_CONV_SIDES; s++) {
            dnnl_data_type_t type = type_of(c, s);
            side[s] = given[s];
            if (s == MTF_CONV_FILTER || free_sides[i] >> s & 1 || given[s].data_type != type)
                works = works && describe_any(&c->side[s], type, &side[s]);
        }
        dnnl_primitive_desc_t found = works ? describe_convolution(c, side) : NULL;
        if (found != NULL && (is_fast(found) ||
                              (last && !g_str_has_prefix(mtf_onednn_implementation(found), "ref"))))
            return found;
        if (found != NULL)
            dnnl_primitive_desc_destroy(found);
    }
    return NULL;
}

/* ---- Making -------------------------------------------------------------------------------- */

static const dnnl_memory_desc_t *wanted_form(const MtfConvolution *c,
                                             const_dnnl_primitive_desc_t found, MtfConvSide side) {
    static const dnnl_query_t names[MTF_CONV_SIDES] = { dnnl_query_src_md, dnnl_query_dst_md,
                                                        dnnl_query_weights_md };
    static const dnnl_query_t gradients[MTF_CONV_SIDES] = { dnnl_query_diff_src_md,
                                                            dnnl_query_diff_dst_md,
                                                            dnnl_query_diff_weights_md };
    /* Going backward y is a gradient as well as what is made. */
    bool gradient = c->made != MTF_CONV_SMALL && (side == c->made || side == MTF_CONV_SMALL);
    return dnnl_primitive_desc_query_md(found, (gradient ? gradients : names)[side], 0);
}

static bool take_scratch(Prepared *p, const_dnnl_primitive_desc_t found, dnnl_memory_t *scratch) {
    const dnnl_memory_desc_t *form =
        dnnl_primitive_desc_query_md(found, dnnl_query_scratchpad_md, 0);
    p->scratch_bytes = MAX(p->scratch_bytes, (int64_t)dnnl_memory_desc_get_size(form));
    return dnnl_memory_create(scratch, form, p->engine, DNNL_MEMORY_NONE) == dnnl_success;
}

static bool make_reorder(Prepared *p, Side *side, const dnnl_memory_desc_t *from,
                         const dnnl_memory_desc_t *to) {
    dnnl_primitive_attr_t attributes;
    dnnl_primitive_desc_t found = NULL;
    if (dnnl_primitive_attr_create(&attributes) != dnnl_success)
        return false;
    bool works = dnnl_primitive_attr_set_scratchpad_mode(attributes, dnnl_scratchpad_mode_user) ==
                     dnnl_success &&
                 dnnl_reorder_primitive_desc_create(&found, from, p->engine, to, p->engine,
                                                    attributes) == dnnl_success;
    dnnl_primitive_attr_destroy(attributes);
    works = works && take_scratch(p, found, &side->scratch) &&
            dnnl_primitive_create(&side->reorder, found) == dnnl_success;
    if (found != NULL)
        dnnl_primitive_desc_destroy(found);
    return works;
}

static bool make_side(Prepared *p, MtfConvSide s, const dnnl_memory_desc_t *given,
                      const dnnl_memory_desc_t *wanted) {
    Side *side = &p->side[s];
    if (dnnl_memory_create(&side->given, given, p->engine, DNNL_MEMORY_NONE) != dnnl_success)
        return false;
    if (dnnl_memory_desc_equal(given, wanted))
        return true;
    side->offset = p->bytes;
    p->bytes += (int64_t)dnnl_memory_desc_get_size(wanted);
    p->bytes = (p->bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    bool made = s == p->made;
    return dnnl_memory_create(&side->used, wanted, p->engine, DNNL_MEMORY_NONE) == dnnl_success &&
           make_reorder(p, side, made ? wanted : given, made ? given : wanted);
}

static bool make_all(Prepared *p, const MtfConvolution *c, const_dnnl_primitive_desc_t found,
                     const dnnl_memory_desc_t *given) {
    for (int s = 0; s < MTF_CONV_SIDES; s++)
        if (!make_side(p, (MtfConvSide)s, &given[s], wanted_form(c, found, (MtfConvSide)s)))
            return false;
    return take_scratch(p, found, &p->scratch) &&
           dnnl_primitive_create(&p->primitive, found) == dnnl_success;
}

void *mtf_onednn_conv_prepare(const MtfConvolution *c, int64_t *workspace_bytes) {
    dnnl_memory_desc_t given[MTF_CONV_SIDES];
    Prepared *p = g_new0(Prepared, 1);
    bool works = !misreads_padding(c) && mtf_onednn_open(&p->engine, &p->stream);
    p->made = c->made;
    for (int s = 0; s < MTF_CONV_SIDES; s++)
        works = works && c->side[s].dtype != MTF_F64 && describe_given(&c->side[s], &given[s]);
    dnnl_primitive_desc_t found = works ? find_convolution(c, given) : NULL;
    works = found != NULL && make_all(p, c, found, given);
    if (found != NULL)
        dnnl_primitive_desc_destroy(found);
    if (works) {
        *workspace_bytes = p->bytes + p->scratch_bytes;
        return p;
    }
    mtf_onednn_conv_release(p);
    return NULL;
}

static void destroy_memory(dnnl_memory_t memory) {
    if (memory != NULL)
        dnnl_memory_destroy(memory);
}

static void destroy_primitive(dnnl_primitive_t primitive) {
    if (primitive != NULL)
        dnnl_primitive_destroy(primitive);
}

void mtf_onednn_conv_release(void *prepared) {
    Prepared *p = prepared;
    for (int s = 0; s < MTF_CONV_SIDES; s++) {
        destroy_memory(p->side[s].given);
        destroy_memory(p->side[s].used);
        destroy_memory(p->side[s].scratch);
        destroy_primitive(p->side[s].reorder);
    }
    destroy_memory(p->scratch);
    destroy_primitive(p->primitive);
    g_free(p);
}

/* ---- Running ------------------------------------------------------------------------------- */

static void rewrite(const Prepared *p, const Side *side, bool back) {
    const dnnl_exec_arg_t arguments[] = { { DNNL_ARG_FROM, back ? side->used : side->given },
                                          { DNNL_ARG_TO, back ? side->given : side->used },
                                          { DNNL_ARG_SCRATCHPAD, side->scratch } };
    dnnl_primitive_execute(side->reorder, p->stream, 3, arguments);
}

static void set_memory(const Prepared *p, void *const data[MTF_CONV_SIDES], char *workspace) {
    for (int s = 0; s < MTF_CONV_SIDES; s++) {
        const Side *side = &p->side[s];
        dnnl_memory_set_data_handle(side->given, data[s]);
        if (side->reorder == NULL)
            continue;
        dnnl_memory_set_data_handle(side->used, workspace + side->offset);
        dnnl_memory_set_data_handle(side->scratch, workspace + p->bytes);
    }
    dnnl_memory_set_data_handle(p->scratch, workspace + p->bytes);
}

void mtf_onednn_conv_run(const void *prepared, void *const data[MTF_CONV_SIDES], void *workspace) {
    static const int names[MTF_CONV_SIDES][MTF_CONV_SIDES] = {
        [MTF_CONV_LARGE] = { DNNL_ARG_DIFF_SRC, DNNL_ARG_DIFF_DST, DNNL_ARG_WEIGHTS },
        [MTF_CONV_SMALL] = { DNNL_ARG_SRC, DNNL_ARG_DST, DNNL_ARG_WEIGHTS },
        [MTF_CONV_FILTER] = { DNNL_ARG_SRC, DNNL_ARG_DIFF_DST, DNNL_ARG_DIFF_WEIGHTS },
    };
    const Prepared *p = prepared;
    dnnl_exec_arg_t arguments[MTF_CONV_SIDES + 1];
    set_memory(p, data, workspace);
    for (int s = 0; s < MTF_CONV_SIDES; s++) {
        const Side *side = &p->side[s];
        if (side->reorder != NULL && s != (int)p->made)
            rewrite(p, side, false);
        arguments[s] = (dnnl_exec_arg_t){ names[p->made][s],
                                          side->reorder != NULL ? side->used : side->given };
    }
    arguments[MTF_CONV_SIDES] = (dnnl_exec_arg_t){ DNNL_ARG_SCRATCHPAD, p->scratch };
    dnnl_primitive_execute(p->primitive, p->stream, MTF_CONV_SIDES + 1, arguments);
    if (p->side[p->made].reorder != NULL)
        rewrite(p, &p->side[p->made], true);
    dnnl_stream_wait(p->stream);
}
