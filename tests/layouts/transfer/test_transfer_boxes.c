// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/support/cmocka.h"

#include "layouts/base/error.h"
#include "layouts/transfer/transfer_boxes.h"

static void parse(const char *tensor, const char *from, const char *to, MtfTransferShape *shape,
                  MtfTransferEnd *source, MtfTransferEnd *target) {
    assert_true(mtf_transfer_shape_parse(tensor, shape, NULL));
    assert_true(mtf_transfer_end_parse("--from", from, shape, source, NULL));
    assert_true(mtf_transfer_end_parse("--to", to, shape, target, NULL));
    target->first_device = mtf_mesh_size(&source->mesh);
}

static bool has(const GArray *devices, int device) {
    for (guint i = 0; i < devices->len; i++)
        if (g_array_index(devices, int, i) == device)
            return true;
    return false;
}

static bool inside(const MtfBox *box, const int64_t *at, int dimensions) {
    for (int d = 0; d < dimensions; d++)
        if (at[d] < box->begin[d] || at[d] >= box->end[d])
            return false;
    return true;
}

/* The naive twin: element by element, device by device, whoever lacks it is a receiver of exactly one
 * box that holds it, whose senders are those that hold it. */
static void check_element(const MtfTransferShape *shape, const MtfTransferEnd *from,
                          const MtfTransferEnd *to, const GPtrArray *boxes, const int64_t *at) {
    for (int device = 0; device < 64; device++) {
        int source = device - from->first_device, target = device - to->first_device;
        bool holds = false, wants = false;
        if (source >= 0 && source < mtf_mesh_size(&from->mesh)) {
            MtfBox part = mtf_transfer_part(shape, from, source);
            holds = inside(&part, at, shape->dimensions);
        }
        if (target >= 0 && target < mtf_mesh_size(&to->mesh)) {
            MtfBox part = mtf_transfer_part(shape, to, target);
            wants = inside(&part, at, shape->dimensions);
        }
        int received = 0;
        for (guint i = 0; i < boxes->len; i++) {
            const MtfTransferBox *box = g_ptr_array_index(boxes, i);
            if (!inside(&box->box, at, shape->dimensions))
                continue;
            received += has(box->receivers, device);
            assert_true(has(box->senders, device) == holds);
        }
        assert_int_equal(received, wants && !holds);
    }
}

static void check_transfer(const char *tensor, const char *from, const char *to, int first) {
    MtfTransferShape shape;
    MtfTransferEnd source, target;
    parse(tensor, from, to, &shape, &source, &target);
    target.first_device = first >= 0 ? first : target.first_device;
    g_autoptr(GPtrArray) boxes = mtf_transfer_boxes(&shape, &source, &target);
    for (int64_t i = 0; i < shape.size[0]; i++)
        for (int64_t j = 0; j < shape.size[1]; j++)
            check_element(&shape, &source, &target, boxes, (int64_t[]){ i, j });
}

TEST(every_element_reaches_whoever_lacks_it) {
    check_transfer("8x6", "2x2:S0R", "2x2:S1R", -1);
    check_transfer("7x5", "2x3:S01R", "3x2:RS01", -1);
    check_transfer("7x5", "2x3:S10R", "4:S0R", -1);
    check_transfer("5x4", "2x2:RR", "2x2:S0S1", -1);
    check_transfer("3x4", "8:S0R", "2:RS0", -1);    /* some parts are empty */
    check_transfer("6x6", "2x2:S0R", "2x2:RS1", 2); /* domains that overlap */
    check_transfer("6x6", "4:S0R", "4:S0R", 0);
}

TEST(what_is_held_already_does_not_travel) {
    MtfTransferShape shape;
    MtfTransferEnd source, target;
    parse("6x6", "4:RR", "2x2:S0S1", &shape, &source, &target);
    target.first_device = 0;
    g_autoptr(GPtrArray) boxes = mtf_transfer_boxes(&shape, &source, &target);
    assert_int_equal(boxes->len, 0);
}

TEST(the_first_axis_named_is_major) {
    MtfTransferShape shape;
    MtfTransferEnd major, minor;
    parse("6x1", "2x3:S01R", "2x3:S10R", &shape, &major, &minor);
    /* Rank 1 is at (0, 1): part 0*3+1 of six, or 1*2+0. */
    assert_int_equal(mtf_transfer_part(&shape, &major, 1).begin[0], 1);
    assert_int_equal(mtf_transfer_part(&shape, &minor, 1).begin[0], 2);
}

TEST(bad_ends_are_refused) {
    MtfTransferShape shape;
    MtfTransferEnd end;
    assert_true(mtf_transfer_shape_parse("4x4", &shape, NULL));
    const char *const bad[] = { "2x2:S0",  "2x2:S0S0", "2x2:S2R", "2x2:SR", "2x2",       "0x2:RR",
                                "2x2:RRR", "2x2:RX",   ":RR",     "",       "99999x9:RR" };
    for (gsize i = 0; i < G_N_ELEMENTS(bad); i++) {
        g_autoptr(GError) error = NULL;
        assert_false(mtf_transfer_end_parse("--from", bad[i], &shape, &end, &error));
        assert_int_equal(mtf_error_exit_status(error), 2);
    }
    assert_false(mtf_transfer_shape_parse("4x", &shape, NULL));
    assert_false(mtf_transfer_shape_parse("4x0", &shape, NULL));
    assert_false(mtf_transfer_shape_parse("1x1x1x1x1x1x1x1x1", &shape, NULL));
}
