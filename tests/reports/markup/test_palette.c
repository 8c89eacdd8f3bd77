// SPDX-License-Identifier: GPL-3.0-or-later
/* Contrast by WCAG 2.1, section 1.4.3 (its definitions of relative luminance and contrast ratio).
 * What the colour-blind see by the matrices of Machado, Oliveira and Fernandes (A Physiologically-
 * based Model for Simulation of Color Vision Deficiency, 2009, table 1, severity 1), and how far
 * apart two colours look by the distance in CIE L*a*b* of 1976 (D65): about 2.3 is just noticeable.
 */
#include "tests/support/cmocka.h"

#include "reports/drawing/slice_picture.h"
#include "reports/markup/palette.h"

#include <glib.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define LEAST_CONTRAST 4.5
#define LEAST_DISTANCE 10.0

typedef struct {
    double c[3]; /* red, green, blue; or another space */
} Color;

/* Of "#rrggbb", 0 to 1. */
static Color parse(const char *text) {
    unsigned r, g, b;
    assert_int_equal(sscanf(text, "#%2x%2x%2x", &r, &g, &b), 3);
    return (Color){ { r / 255.0, g / 255.0, b / 255.0 } };
}

static Color linear(Color color) {
    for (int i = 0; i < 3; i++)
        color.c[i] =
            color.c[i] <= 0.04045 ? color.c[i] / 12.92 : pow((color.c[i] + 0.055) / 1.055, 2.4);
    return color;
}

static double luminance(Color color) {
    Color l = linear(color);
    return 0.2126 * l.c[0] + 0.7152 * l.c[1] + 0.0722 * l.c[2];
}

static double contrast(Color a, Color b) {
    double x = luminance(a), y = luminance(b);
    return (MAX(x, y) + 0.05) / (MIN(x, y) + 0.05);
}

static void expect_readable(const char *what, Color text, Color ground) {
    if (contrast(text, ground) < LEAST_CONTRAST)
        fail_msg("%s: contrast %.2f", what, contrast(text, ground));
}

static const char *theme(const char *name, bool dark) {
    for (const MtfThemeColor *color = mtf_palette_theme(); color->name != NULL; color++)
        if (strcmp(color->name, name) == 0)
            return dark ? color->dark : color->light;
    fail_msg("no colour is called %s", name);
    return NULL;
}

/* Black on white is 21 : 1, and #767676 on white the well-known limit of 4.54. */
TEST(contrast_is_computed_as_defined) {
    assert_true(fabs(contrast(parse("#000000"), parse("#ffffff")) - 21) < 1e-9);
    assert_true(fabs(contrast(parse("#767676"), parse("#ffffff")) - 4.54) < 0.005);
    assert_true(contrast(parse("#777777"), parse("#ffffff")) < 4.5);
}

TEST(texts_of_the_page_stand_out) {
    static const char *const texts[] = { "fg", "soft", "accent", "warn" };
    static const char *const grounds[] = { "bg", "card" };
    for (int dark = 0; dark < 2; dark++) {
        for (gsize t = 0; t < G_N_ELEMENTS(texts); t++)
            for (gsize g = 0; g < G_N_ELEMENTS(grounds); g++)
                expect_readable(texts[t], parse(theme(texts[t], dark != 0)),
                                parse(theme(grounds[g], dark != 0)));
        expect_readable("number of the chosen", parse(theme("bg", dark != 0)),
                        parse(theme("fg", dark != 0)));
    }
}

TEST(texts_of_drawings_stand_out) {
    static const char *const grounds[] = { MTF_COLOR_PLAIN, MTF_COLOR_OPERATION,
                                           MTF_COLOR_VARIABLE };
    Color black = parse("#000000");
    for (int a = 0; a < MTF_PALETTE_AXES; a++)
        expect_readable("an axis", black, parse(mtf_palette_axis(a)));
    for (int a = 0; a < MTF_PALETTE_AREAS; a++)
        expect_readable("an area", parse(mtf_palette_ink(a)), parse(mtf_palette_area(a)));
    for (gsize g = 0; g < G_N_ELEMENTS(grounds); g++) {
        expect_readable("text", parse(MTF_COLOR_TEXT), parse(grounds[g]));
        expect_readable("soft text", parse(MTF_COLOR_SOFT), parse(grounds[g]));
        expect_readable("traffic", parse(MTF_COLOR_TRAFFIC), parse(grounds[g]));
    }
}

/* CSS Color 4, section 7.1. */
static Color of_hsl(double hue, double saturation, double light) {
    Color color;
    static const double offsets[] = { 0, 8, 4 };
    for (int i = 0; i < 3; i++) {
        double k = fmod(offsets[i] + hue / 30, 12), a = saturation * MIN(light, 1 - light);
        color.c[i] = light - a * MAX(-1, MIN(MIN(k - 3, 9 - k), 1));
    }
    return color;
}

TEST(numbers_of_slices_stand_out) {
    for (int slice = 0; slice < 720; slice++) {
        g_autoptr(GString) fill = g_string_new(NULL);
        int hue, saturation, light;
        mtf_slice_fill(fill, slice, 720);
        assert_int_equal(sscanf(fill->str, "hsl(%d %d%% %d%%)", &hue, &saturation, &light), 3);
        expect_readable("a slice", parse(MTF_COLOR_TEXT),
                        of_hsl(hue, saturation / 100.0, light / 100.0));
    }
}

/* ---- The colour-blind ---------------------------------------------------------------------- */

static const struct {
    const char *name;
    double m[3][3];
} sights[] = {
    { "all colours", { { 1, 0, 0 }, { 0, 1, 0 }, { 0, 0, 1 } } },
    { "protanopia",
      { { 0.152286, 1.052583, -0.204868 },
        { 0.114503, 0.786281, 0.099216 },
        { -0.003882, -0.048116, 1.051998 } } },
    { "deuteranopia",
      { { 0.367322, 0.860646, -0.227968 },
        { 0.280085, 0.672501, 0.047413 },
        { -0.011820, 0.042940, 0.968881 } } },
    { "tritanopia",
      { { 1.255528, -0.076749, -0.178779 },
        { -0.078411, 0.930809, 0.147602 },
        { 0.004733, 0.691367, 0.303900 } } },
};

static Color multiplied(const double m[3][3], Color v) {
    Color product;
    for (int i = 0; i < 3; i++)
        product.c[i] = m[i][0] * v.c[0] + m[i][1] * v.c[1] + m[i][2] * v.c[2];
    return product;
}

static double lab_curve(double t) {
    return t > 216.0 / 24389 ? cbrt(t) : (24389.0 / 27 * t + 16) / 116;
}

/* Of linear light, clipped to what a screen shows. */
static Color lab_of(Color light) {
    static const double to_xyz[3][3] = { { 0.4124564, 0.3575761, 0.1804375 },
                                         { 0.2126729, 0.7151522, 0.0721750 },
                                         { 0.0193339, 0.1191920, 0.9503041 } };
    for (int i = 0; i < 3; i++)
        light.c[i] = CLAMP(light.c[i], 0, 1);
    Color xyz = multiplied(to_xyz, light);
    double x = lab_curve(xyz.c[0] / 0.95047), y = lab_curve(xyz.c[1]),
           z = lab_curve(xyz.c[2] / 1.08883);
    return (Color){ { 116 * y - 16, 500 * (x - y), 200 * (y - z) } };
}

static double distance_seen(int sight, Color a, Color b) {
    Color x = lab_of(multiplied(sights[sight].m, linear(a)));
    Color y = lab_of(multiplied(sights[sight].m, linear(b)));
    double sum = 0;
    for (int i = 0; i < 3; i++)
        sum += (x.c[i] - y.c[i]) * (x.c[i] - y.c[i]);
    return sqrt(sum);
}

static void expect_apart(const char *(*color)(int), int n) {
    for (int s = 0; s < (int)G_N_ELEMENTS(sights); s++)
        for (int i = 0; i < n; i++)
            for (int j = 0; j < i; j++) {
                double distance = distance_seen(s, parse(color(i)), parse(color(j)));
                if (distance < LEAST_DISTANCE)
                    fail_msg("%s and %s are %.1f apart with %s", color(i), color(j), distance,
                             sights[s].name);
            }
}

/* Red and green that differ for all are alike with deuteranopia; black and white are 100 apart. */
TEST(sights_are_simulated) {
    Color red = parse("#c06000"), green = parse("#8a8a00");
    assert_true(distance_seen(0, red, green) > 30);
    assert_true(distance_seen(2, red, green) < 12);
    for (int s = 0; s < (int)G_N_ELEMENTS(sights); s++)
        assert_true(fabs(distance_seen(s, parse("#000000"), parse("#ffffff")) - 100) < 0.5);
}

/* Meshes of more than four axes repeat shades that are close; the names of axes stand in the cells.
 */
TEST(axes_are_told_apart_by_everyone) {
    expect_apart(mtf_palette_axis, 4);
}

TEST(areas_are_told_apart_by_everyone) {
    expect_apart(mtf_palette_area, MTF_PALETTE_AREAS);
}

TEST(computing_and_network_are_told_apart_by_everyone) {
    for (int s = 0; s < (int)G_N_ELEMENTS(sights); s++)
        for (int dark = 0; dark < 2; dark++)
            assert_true(distance_seen(s, parse(theme("bar", dark != 0)),
                                      parse(theme("net", dark != 0))) > 3 * LEAST_DISTANCE);
}
