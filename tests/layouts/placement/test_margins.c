// SPDX-License-Identifier: GPL-3.0-or-later
/* What windows read over the edges of parts, against brute force: pairs of elements that meet at some
 * place of a window, one by one, for drawn sizes, strides, dilations, paddings and meshes; and the
 * halo bytes of ResNet-50's layers, split over height, as counted by hand. */
#include "tests/support/cmocka.h"

#include "analyzer/models/model_family.h"
#include "analyzer/training/training_graph.h"
#include "layouts/placement/margins.h"
#include "layouts/placement/reshard.h"
#include "layouts/placement/rules.h"
#include "layouts/program/program.h"
#include "tests/support/cases/parse_graph.h"

#define DRAWS 6000
#define MOST 64

static int drawn(GRand *random, int least, int most) {
    return g_rand_int_range(random, least, most + 1);
}

static MtfReach drawn_reach(GRand *random) {
    MtfReach r = { .stride = drawn(random, 1, 4),
                   .dilation = drawn(random, 1, 3),
                   .places = drawn(random, 1, 5),
                   .gathers = drawn(random, 0, 1) == 1 };
    r.before = drawn(random, 0, (int)((r.places - 1) * r.dilation));
    r.size = drawn(random, 1, MOST);
    r.parted_size = drawn(random, 1, MOST);
    return r;
}

/* Straight from the sum that defines windows: large = small stride - before + place dilation. */
static bool meet(const MtfReach *r, int64_t parted, int64_t read) {
    int64_t large = r->gathers ? read : parted, small = r->gathers ? parted : read;
    for (int64_t place = 0; place < r->places; place++)
        if (large == small * r->stride - r->before + place * r->dilation)
            return true;
    return false;
}

/* Whether `found` is the least range with all that the part meets. */
static bool is_hull(const MtfReach *r, MtfRange part, MtfRange found) {
    MtfRange hull = { 0, 0 };
    for (int64_t at = 0; at < r->size; at++)
        for (int64_t p = part.begin; p < part.end; p++)
            if (meet(r, p, at))
                hull = (MtfRange){ hull.begin < hull.end ? hull.begin : at, at + 1 };
    return found.begin == hull.begin && found.end == hull.end;
}

TEST(a_part_reaches_from_the_first_element_it_meets_to_the_last) {
    g_autoptr(GRand) random = g_rand_new_with_seed(1);
    for (int draw = 0; draw < DRAWS; draw++) {
        MtfReach r = drawn_reach(random);
        int begin = drawn(random, 0, (int)r.parted_size);
        MtfRange part = { begin, drawn(random, begin, (int)r.parted_size) };
        if (!is_hull(&r, part, mtf_reach_range(&r, part)))
            fail_msg("draw %d: stride %d dilation %d places %d before %d, part %d to %d of %d",
                     draw, (int)r.stride, (int)r.dilation, (int)r.places, (int)r.before,
                     (int)part.begin, (int)part.end, (int)r.size);
    }
}

/* ---- Exchanges ------------------------------------------------------------------------------- */

static const char *const kinds[] = { "conv", "conv_transpose" };

/* y[a', b'] = conv(x[a, b], f[k, l]) or the other way round. */
static MtfGraph *drawn_graph(GRand *random, bool spreads) {
    GString *sizes = g_string_new(NULL), *windows = g_string_new(NULL);
    for (int w = 0; w < 2; w++) {
        int stride = drawn(random, 1, 3), dilation = drawn(random, 1, 2);
        int places = drawn(random, 1, 4), extent = (places - 1) * dilation + 1;
        int before = drawn(random, 0, extent - 1), after = drawn(random, 0, extent - 1);
        int small = drawn(random, 2, 9);
        int large = MAX((small - 1) * stride + extent - before - after, 1);
        small = (large + before + after - extent) / stride + 1;
        g_string_append_printf(sizes, ",'%s%d':%d,'%s%d':%d,'k%d':%d", spreads ? "y" : "x", w,
                               large, spreads ? "x" : "y", w, small, w, places);
        g_string_append_printf(windows,
                               "%s{'from':'x%d','to':'y%d','kernel':'k%d','stride':%d,"
                               "'dilation':%d,'before':%d,'after':%d}",
                               w > 0 ? "," : "", w, w, w, stride, dilation, before, after);
    }
    g_autofree char *text = g_strdup_printf(
        "{'meshtf_graph':1,'name':'t','dimensions':{'c':3%s},'inputs':[{'name':'x','dims':"
        "['x0','c','x1'],'feed':'features'},{'name':'f','dims':['k0','c','k1'],'feed':'features'}],"
        "'variables':[],'operations':[{'name':'y','op':'%s','inputs':['x','f'],"
        "'dims':['y0','y1'],'windows':[%s]}]}",
        sizes->str, kinds[spreads], windows->str);
    g_string_free(sizes, TRUE);
    g_string_free(windows, TRUE);
    return mtf_test_graph(text);
}

typedef struct {
    const MtfGraph *graph;
    const MtfMesh *mesh;
    const MtfShape *shape;
    MtfReshardOp op;
} Halo;

/* A processor gets each element that it reads from one of its group, and sends what the others get. */
static void check_rank(const Halo *halo, int rank, MtfMarginsMost *most) {
    int64_t read = 1, received = 0, own = 0;
    MtfRange box[MTF_MAX_RANK];
    for (int d = 0; d < halo->shape->rank; d++) {
        MtfRange range = mtf_margins_range(halo->graph, halo->mesh, &halo->op.from, halo->op.reader,
                                           halo->shape->dims[d], rank);
        read *= range.end - range.begin;
    }
    for (int p = 0; p < mtf_mesh_group_size(halo->mesh, halo->op.axes); p++) {
        int peer = mtf_mesh_group_member(halo->mesh, halo->op.axes, rank, p);
        int64_t n = mtf_reshard_box(halo->graph, halo->mesh, halo->shape, &halo->op,
                                    (MtfRoute){ peer, rank }, box);
        received += peer == rank ? 0 : n;
        own += peer == rank ? n : 0;
    }
    assert_int_equal(received + own, read);
    int64_t sent = mtf_reshard_payload(halo->graph, halo->mesh, halo->shape, &halo->op, rank);
    most->read = MAX(most->read, read);
    most->sent = MAX(most->sent, sent);
    most->exchanged = MAX(most->exchanged, sent + received);
}

/* Of the operation's input `k` in `placement`. */
static void check_halo(const MtfGraph *graph, const MtfMesh *mesh, int k,
                       const MtfPlacement *placement) {
    int tensor = mtf_graph_operation(graph, 0)->inputs[k];
    const MtfShape *shape = &mtf_graph_tensor(graph, tensor)->shape;
    Halo halo = { graph, mesh, shape, { .kind = MTF_RESHARD_HALO, .reader = { 0, k } } };
    halo.op.axes = mtf_margins_axes(graph, mesh, shape, placement, halo.op.reader);
    halo.op.from = halo.op.to = *placement;
    MtfMarginsMost counted = { .places = 0 };
    MtfMarginsMost most = mtf_margins_most(graph, mesh, shape, placement, halo.op.reader);
    for (int rank = 0; rank < mtf_mesh_size(mesh); rank++)
        check_rank(&halo, rank, &counted);
    assert_int_equal(most.read, counted.read);
    assert_int_equal(most.sent, counted.sent);
    assert_int_equal(most.exchanged, counted.exchanged);
}

TEST(what_a_processor_reads_comes_from_those_that_hold_it) {
    static const char *const meshes[] = { "a:3;b:2", "a:2;b:2;c:2", "a:5", "a:2;b:7" };
    g_autoptr(GRand) random = g_rand_new_with_seed(2);
    for (int draw = 0; draw < 1500; draw++) {
        MtfMesh mesh;
        assert_true(mtf_mesh_parse(meshes[draw % 4], 0, &mesh, NULL));
        g_autoptr(MtfGraph) graph = drawn_graph(random, draw / 4 % 2 == 1);
        const MtfShape *shape = &mtf_graph_tensor(graph, 0)->shape;
        MtfPlacement placement = mtf_placement_replicated();
        for (int a = 0; a < mesh.n_axes; a++)
            if (drawn(random, 0, 3) > 0)
                placement.axis[a] = (int16_t)shape->dims[2 * drawn(random, 0, 1)];
        check_halo(graph, &mesh, 0, &placement);
    }
}

/* ---- What turns ------------------------------------------------------------------------------ */

/* Element t of the result is element t + start, round the end. */
TEST(what_turns_is_read_where_it_comes_from) {
    g_autoptr(GRand) random = g_rand_new_with_seed(4);
    for (int draw = 0; draw < DRAWS; draw++) {
        int size = drawn(random, 2, MOST), start = drawn(random, -2 * size, 2 * size);
        int n = drawn(random, 2, size), part = drawn(random, 0, n - 1);
        MtfReach r = { .parted_size = size,
                       .size = size,
                       .stride = 1,
                       .before = -start,
                       .dilation = 1,
                       .places = 1,
                       .gathers = true,
                       .exact = true,
                       .turns = true };
        MtfRange made = mtf_part(size, part, n), read = mtf_reach_range(&r, made);
        assert_int_equal(read.end - read.begin, made.end - made.begin);
        assert_in_range(read.begin, 0, size - 1);
        assert_int_equal((read.begin - made.begin - start) % size, 0);
        for (int64_t at = read.begin; at < read.end; at++) {
            int holders = 0;
            for (int p = 0; p < n; p++) {
                MtfRange held = mtf_part(size, p, n), both = mtf_range_common(held, read, size);
                holders += both.begin <= at % size && at % size < both.end;
                assert_true(both.begin == both.end ||
                            (held.begin <= both.begin && both.end <= held.end));
            }
            assert_int_equal(holders, 1);
        }
    }
}

TEST(parts_go_on_round_the_end) {
    static const char *const meshes[] = { "a:2", "a:3;b:2", "a:5", "a:2;b:2;c:2" };
    g_autoptr(GRand) random = g_rand_new_with_seed(5);
    for (int draw = 0; draw < 800; draw++) {
        MtfMesh mesh;
        int size = drawn(random, 8, 19);
        assert_true(mtf_mesh_parse(meshes[draw % 4], 0, &mesh, NULL));
        g_autofree char *text = g_strdup_printf(
            "{'meshtf_graph':1,'name':'t','dimensions':{'b':4,'u':%d,'t':%d,'c':2},'inputs':["
            "{'name':'x','dims':['b','u','c'],'feed':'features'}],'variables':[],'operations':["
            "{'name':'z','op':'resample','inputs':['x'],'from':'u','to':'t','start':%d,'wrap':1}]}",
            size, size, drawn(random, -size, size));
        g_autoptr(MtfGraph) graph = mtf_test_graph(text);
        MtfPlacement placement = mtf_placement_replicated();
        for (int a = 0; a < mesh.n_axes; a++)
            if (drawn(random, 0, 3) > 0)
                placement.axis[a] = (int16_t)mtf_graph_find_dimension(graph, "u");
        check_halo(graph, &mesh, 0, &placement);
    }
}

/* Of any length, forwards and backwards, beyond both ends, also with gaps between what is made: the parts of what is
 * read follow one another in either order, and go to processors however far away. */
TEST(parts_of_samples_lie_anywhere) {
    static const char *const meshes[] = { "a:2", "a:3;b:2", "a:5", "a:2;b:2;c:2" };
    static const int strides[] = { 1, -1, 3, -2, 1, -1, 1, -1 };
    static const int dilations[] = { 1, 1, 1, 1, 2, 2, 5, 3 };
    g_autoptr(GRand) random = g_rand_new_with_seed(6);
    for (int draw = 0; draw < 1600; draw++) {
        MtfMesh mesh;
        int from = drawn(random, 2, 29), to = drawn(random, 2, 29), kind = drawn(random, 0, 7);
        assert_true(mtf_mesh_parse(meshes[draw % 4], 0, &mesh, NULL));
        g_autofree char *text = g_strdup_printf(
            "{'meshtf_graph':1,'name':'t','dimensions':{'b':4,'u':%d,'t':%d,'c':2},'inputs':["
            "{'name':'x','dims':['b','u','c'],'feed':'features'}],'variables':[],'operations':["
            "{'name':'z','op':'resample','inputs':['x'],'from':'u','to':'t','start':%d,"
            "'stride':%d,'dilation':%d}]}",
            from, to, drawn(random, -5, from + 5), strides[kind], dilations[kind]);
        g_autoptr(MtfGraph) graph = mtf_test_graph(text);
        MtfPlacement placement = mtf_placement_replicated();
        for (int a = 0; a < mesh.n_axes; a++)
            if (drawn(random, 0, 3) > 0)
                placement.axis[a] = (int16_t)mtf_graph_find_dimension(graph, "u");
        check_halo(graph, &mesh, 0, &placement);
    }
}

/* 16 elements on 4 processors. The first four: three of them go on, the last to the fourth processor, which is next to
 * the first round the ring, so the farthest goes two places. Backwards each pair of processors changes all it
 * has. From the second on one goes to the neighbour; of the second half two and two go two places and one. */
TEST(the_farthest_place_is_counted_round_the_ring) {
    static const struct {
        int to, start, stride;
        int64_t sent, places;
    } cases[] = { { 4, 0, 1, 3, 2 }, { 16, 15, -1, 4, 1 }, { 16, 1, 1, 1, 1 }, { 8, 8, 1, 4, 2 } };
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        MtfMesh mesh;
        assert_true(mtf_mesh_parse("a:4", 0, &mesh, NULL));
        g_autofree char *text = g_strdup_printf(
            "{'meshtf_graph':1,'name':'t','dimensions':{'u':16,'t':%d},'inputs':["
            "{'name':'x','dims':['u'],'feed':'features'}],'variables':[],'operations':["
            "{'name':'z','op':'resample','inputs':['x'],'from':'u','to':'t','start':%d,"
            "'stride':%d}]}",
            cases[i].to, cases[i].start, cases[i].stride);
        g_autoptr(MtfGraph) graph = mtf_test_graph(text);
        MtfPlacement placement = mtf_placement_replicated();
        placement.axis[0] = (int16_t)mtf_graph_find_dimension(graph, "u");
        MtfMarginsMost most = mtf_margins_most(graph, &mesh, &mtf_graph_tensor(graph, 0)->shape,
                                               &placement, (MtfReader){ 0, 0 });
        assert_int_equal(most.sent, cases[i].sent);
        assert_int_equal(most.side, cases[i].sent); /* each has all readers on one side */
        assert_int_equal(most.places, cases[i].places);
    }
}

/* Of 16 elements on 4 processors windows of three read one on either side, with a stride of two the one before
 * alone. */
TEST(what_goes_to_one_side_is_counted_apart) {
    for (int stride = 1; stride <= 2; stride++) {
        MtfMesh mesh;
        assert_true(mtf_mesh_parse("a:4", 0, &mesh, NULL));
        g_autofree char *text = g_strdup_printf(
            "{'meshtf_graph':1,'name':'t','dimensions':{'u':16,'t':%d},'inputs':["
            "{'name':'x','dims':['u'],'feed':'features'}],'variables':[],'operations':["
            "{'name':'z','op':'max_pool','inputs':['x'],'dims':['t'],'windows':[{'from':'u','to':'t',"
            "'size':3,'stride':%d,'before':1,'after':%d}]}]}",
            16 / stride, stride, 2 - stride);
        g_autoptr(MtfGraph) graph = mtf_test_graph(text);
        MtfPlacement placement = mtf_placement_replicated();
        placement.axis[0] = (int16_t)mtf_graph_find_dimension(graph, "u");
        MtfMarginsMost most = mtf_margins_most(graph, &mesh, &mtf_graph_tensor(graph, 0)->shape,
                                               &placement, (MtfReader){ 0, 0 });
        assert_int_equal(most.sent, stride == 1 ? 2 : 1);
        assert_int_equal(most.side, 1);
    }
}

/* ---- Joined inputs --------------------------------------------------------------------------- */

/* z[b, t, c] = x[b, u, c] before y[b, v, c] before x again; 9 elements of u at most, and of v. */
static MtfGraph *joined_graph(int u, int v) {
    g_autofree char *text = g_strdup_printf(
        "{'meshtf_graph':1,'name':'t','dimensions':{'b':4,'c':2,'u':%d,'v':%d,'t':%d},'inputs':["
        "{'name':'x','dims':['b','u','c'],'feed':'features'},"
        "{'name':'y','dims':['b','v','c'],'feed':'features'}],'variables':[],'operations':["
        "{'name':'z','op':'concat','inputs':['x','y','x'],'dims':['b','t','c']}]}",
        u, v, 2 * u + v);
    return mtf_test_graph(text);
}

static MtfRange common_range(MtfRange a, MtfRange b) {
    MtfRange range = { MAX(a.begin, b.begin), MIN(a.end, b.end) };
    return range.begin < range.end ? range : (MtfRange){ 0, 0 };
}

/* A processor reads of each input what lies in its part of the result, and nothing else. */
static void check_joined(const MtfGraph *graph, const MtfMesh *mesh, int k, unsigned axes) {
    const MtfOperation *op = mtf_graph_operation(graph, 0);
    const MtfShape *shape = &mtf_graph_tensor(graph, op->inputs[k])->shape;
    int dim = shape->dims[1], n = mtf_mesh_group_size(mesh, axes);
    int64_t begin = 0, size = mtf_graph_size(graph, dim);
    for (int j = 0; j < k; j++)
        begin += mtf_graph_size(graph, mtf_graph_tensor(graph, op->inputs[j])->shape.dims[1]);
    MtfPlacement placement = mtf_placement_replicated();
    for (int a = 0; a < mesh->n_axes; a++)
        placement.axis[a] = (int16_t)(axes >> a & 1 ? dim : shape->dims[0]);
    check_halo(graph, mesh, k, &placement);
    for (int rank = 0; rank < mtf_mesh_size(mesh); rank++) {
        MtfRange made = mtf_part(mtf_graph_size(graph, mtf_graph_find_dimension(graph, "t")),
                                 mtf_mesh_group_position(mesh, axes, rank), n);
        MtfRange own =
            common_range((MtfRange){ made.begin - begin, made.end - begin }, (MtfRange){ 0, size });
        MtfRange read = mtf_margins_range(graph, mesh, &placement, (MtfReader){ 0, k }, dim, rank);
        assert_int_equal(read.begin, own.begin);
        assert_int_equal(read.end, own.end);
    }
}

TEST(joined_inputs_are_read_where_their_elements_come_to_lie) {
    static const char *const meshes[] = { "a:2", "a:3", "a:7;b:2", "a:2;b:4" };
    for (int i = 0; i < 4 * 9 * 9; i++) {
        MtfMesh mesh;
        assert_true(mtf_mesh_parse(meshes[i % 4], 0, &mesh, NULL));
        g_autoptr(MtfGraph) graph = joined_graph(1 + i / 4 % 9, 1 + i / 36);
        for (int k = 0; k < 3; k++)
            for (unsigned axes = 1; axes < 1U << mesh.n_axes; axes++)
                check_joined(graph, &mesh, k, axes);
    }
}

/* ---- Golden numbers -------------------------------------------------------------------------- */

typedef struct {
    int side, channels, kernel, stride, before, parts;
    int64_t bytes; /* that all processors send */
} Golden;

/* (parts - 1) (left + right) width channels 4 bytes; left and right of a 7 x 7 of stride 2 padded by
 * 3 are 3 and 2, of a 3 x 3 of stride 2 padded by 1 they are 1 and 0, of stride 1 they are 1 and 1. */
static const Golden golden[] = {
    { 224, 3, 7, 2, 3, 2, 13440 },  /* conv1 */
    { 112, 64, 3, 2, 1, 2, 28672 }, /* the pool behind it */
    { 56, 64, 3, 1, 1, 2, 28672 },  /* 3 x 3 of the first stage */
    { 56, 64, 3, 1, 1, 4, 3 * 28672 }, { 56, 128, 3, 2, 1, 2, 56 * 128 * 4 },
    { 56, 256, 1, 2, 0, 2, 0 }, /* a shortcut */
    { 28, 128, 2, 2, 0, 7, 0 }, /* windows side by side */
};

static MtfGraph *golden_graph(const Golden *g) {
    int out = (g->side + g->stride - 1) / g->stride;
    g_autofree char *text = g_strdup_printf(
        "{'meshtf_graph':1,'name':'t','dimensions':{'h':%d,'w':%d,'c':%d,'k':%d,'p':%d},"
        "'inputs':[{'name':'x','dims':['h','w','c'],'feed':'features'},"
        "{'name':'f','dims':['k','c'],'feed':'features'}],'variables':[],"
        "'operations':[{'name':'y','op':'conv','inputs':['x','f'],'dims':['p','w'],"
        "'windows':[{'from':'h','to':'p','kernel':'k','stride':%d,'before':%d}]}]}",
        g->side, g->side, g->channels, g->kernel, out, g->stride, g->before);
    return mtf_test_graph(text);
}

TEST(halos_of_a_resnet_are_those_counted_by_hand) {
    for (gsize i = 0; i < G_N_ELEMENTS(golden); i++) {
        MtfMesh mesh;
        g_autofree char *mesh_text = g_strdup_printf("rows:%d", golden[i].parts);
        assert_true(mtf_mesh_parse(mesh_text, 0, &mesh, NULL));
        g_autoptr(MtfGraph) graph = golden_graph(&golden[i]);
        const MtfShape *shape = &mtf_graph_tensor(graph, 0)->shape;
        MtfPlacement placement = mtf_placement_replicated();
        placement.axis[0] = (int16_t)shape->dims[0];
        MtfReshardOp op = { .kind = MTF_RESHARD_HALO, .from = placement, .to = placement };
        op.axes = mtf_margins_axes(graph, &mesh, shape, &placement, op.reader);
        int64_t sent = 0;
        for (int rank = 0; rank < golden[i].parts; rank++)
            sent += 4 * mtf_reshard_payload(graph, &mesh, shape, &op, rank);
        assert_int_equal(sent, golden[i].bytes);
        assert_int_equal(op.axes != 0, golden[i].bytes > 0);
    }
}

/* The whole network, all that is split evenly in halves: 13,440 of conv1, 28,672 each of the pool and
 * of the 3 x 3 of three, four and six blocks. What makes 7 rows of 14 reads them gathered. */
TEST(halos_of_a_whole_resnet_50_add_up) {
    MtfModelSettings settings =
        mtf_model_settings(mtf_model_preset_find(&mtf_model_resnet, "resnet-50", NULL));
    settings.batch = 1;
    g_autoptr(MtfGraph) forward = mtf_model_resnet.build(&settings, NULL);
    g_autoptr(MtfGraph) graph = mtf_training_graph(forward, NULL);
    MtfMesh mesh;
    assert_true(mtf_mesh_parse("space:2", 0, &mesh, NULL));
    g_autoptr(MtfRules) rules = mtf_rules_parse(
        graph, &mesh,
        "rows_224:space;rows_112:space;rows_56:space;other_rows_56:space;rows_28:space;"
        "other_rows_28:space;rows_14:space;other_rows_14:space",
        NULL, NULL);
    g_autoptr(MtfLayout) layout = mtf_layout_from_rules(graph, &mesh, rules);
    g_autoptr(MtfProgram) program = mtf_lower(graph, layout);
    int64_t bytes = 0;
    int halos = 0;
    for (int i = 0; i < mtf_program_length(program); i++) {
        const MtfInstruction *instruction = mtf_program_instruction(program, i);
        if (instruction->kind != MTF_INSTRUCTION_RESHARD ||
            instruction->reshard.kind != MTF_RESHARD_HALO ||
            mtf_graph_operation(graph, instruction->operation)->phase != MTF_PHASE_FORWARD)
            continue;
        const MtfBuffer *read = mtf_program_buffer(program, instruction->inputs[0]);
        halos++;
        for (int rank = 0; rank < 2; rank++)
            bytes +=
                4 * mtf_reshard_payload(graph, &mesh, &mtf_graph_tensor(graph, read->tensor)->shape,
                                        &instruction->reshard, rank);
    }
    assert_int_equal(halos, 15);
    assert_int_equal(bytes, 414848);
}

/* Of many parts that are equal, or come again after a few, only those near the ends are looked at one by one; where
 * there are fewer elements than parts, most of which hold nothing, too. */
TEST(many_alike_parts_are_no_others_than_all_of_them) {
    static const char *const meshes[] = { "a:48", "a:96" };
    g_autoptr(GRand) random = g_rand_new_with_seed(8);
    for (int draw = 0; draw < 800; draw++) {
        MtfMesh mesh;
        assert_true(mtf_mesh_parse(meshes[draw / 2 % 2], 0, &mesh, NULL));
        int stride = drawn(random, 1, 3), dilation = drawn(random, 1, 2);
        int places = drawn(random, 1, 5), small = (draw % 8 < 4 ? 48 : 12) * drawn(random, 1, 5);
        int before = drawn(random, 0, (places - 1) * dilation), large = small * stride;
        int after = MAX(0, (small - 1) * stride + (places - 1) * dilation + 1 - before - large);
        bool spreads = draw % 2 == 1;
        g_autofree char *text = g_strdup_printf(
            "{'meshtf_graph':1,'name':'t','dimensions':{'h':%d,'p':%d,'k':%d,'c':2},'inputs':"
            "[{'name':'x','dims':['h','c'],'feed':'features'},{'name':'f','dims':['k','c'],"
            "'feed':'features'}],'variables':[],'operations':[{'name':'y','op':'%s','inputs':"
            "['x','f'],'dims':['p'],'windows':[{'from':'h','to':'p','kernel':'k','stride':%d,"
            "'dilation':%d,'before':%d,'after':%d}]}]}",
            spreads ? small : large, spreads ? large : small, places, kinds[spreads], stride,
            dilation, before, after);
        g_autoptr(GError) error = NULL;
        g_autoptr(MtfGraph) graph = mtf_test_graph_parse(text, NULL, &error);
        if (graph == NULL)
            continue; /* sizes that these windows do not make */
        MtfPlacement placement = mtf_placement_replicated();
        placement.axis[0] = 0;
        check_halo(graph, &mesh, 0, &placement);
    }
}

/* 24 elements in 4 parts are 6 each, 6 heads of 4 in 4 parts 1, 2, 1 and 2 heads:
 *
 *     elements  [0 .. 5][6 ... 11][12 .. 17][18 .. 23]       parts of heads read  0-3   4-11   12-15   16-23
 *     heads     [0 ][1     2     ][3 ][4        5    ]       of elements heads    0-1   1-2    3-4     4-5
 *
 * so that two parts send the last 2 of their elements to the next; or a head, of 4, to the one before, of 3 rows. */
TEST(parts_of_what_is_divided_or_merged_lack_what_was_counted_by_hand) {
    static const struct {
        const char *from, *to;
        int64_t read, sent;
    } cases[] = { { "'d'", "'h','k'", 8, 2 }, { "'h','k'", "'d'", 8, 4 } };
    MtfMesh mesh;
    assert_true(mtf_mesh_parse("a:4", 0, &mesh, NULL));
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *text = g_strdup_printf(
            "{'meshtf_graph':1,'name':'t','dimensions':{'b':3,'d':24,'h':6,'k':4},'inputs':["
            "{'name':'x','dims':['b',%s],'feed':'features'}],'variables':[],'operations':["
            "{'name':'y','op':'reshape','inputs':['x'],'dims':['b',%s]}]}",
            cases[i].from, cases[i].to);
        g_autoptr(MtfGraph) graph = mtf_test_graph(text);
        const MtfShape *shape = &mtf_graph_tensor(graph, 0)->shape;
        MtfPlacement placement = mtf_placement_replicated();
        placement.axis[0] = (int16_t)shape->dims[1];
        assert_int_equal(mtf_margins_axes(graph, &mesh, shape, &placement, (MtfReader){ 0, 0 }), 1);
        MtfMarginsMost most =
            mtf_margins_most(graph, &mesh, shape, &placement, (MtfReader){ 0, 0 });
        assert_int_equal(most.read, 3 * cases[i].read);
        assert_int_equal(most.sent, 3 * cases[i].sent);
    }
}
