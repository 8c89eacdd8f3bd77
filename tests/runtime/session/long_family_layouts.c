// SPDX-License-Identifier: GPL-3.0-or-later
/* Every family's tiny preset, as it is and made smaller still, of odd sizes: 50 steps under drawn layouts of
 * one to eight processors give the losses of one, to 1e-10 in float64 and 1e-4 in float32. An argument
 * names the only family to try; `MTF_SEED=3` other layouts than every day's. */
#include "tests/support/cmocka.h"
#include "tests/support/losses/family_losses.h"

#include <string.h>

#define DRAWS 32
#define PRESET_DRAWS 16

/* Only float64 is compared of networks that make more of a rounding than float32 leaves room for: where
 * batch norms are of few values, tokens go to another expert, or pools and rates magnify it. A float32
 * rounding now and then turns one of some 50,000 relus on: a gradient is another by a thousandth then. */
typedef struct {
    const char *family;
    bool only_f64;
    int steps;
    const char *changes[20];
} Small;

#define TEXT "batch", "3", "length", "7"

static const Small smalls[] = {
    { "transformer-lm",
      false,
      LAYOUT_STEPS,
      { TEXT, "d-model", "10", "d-ff", "9", "heads", "3", "d-kv", "4" } },
    { "gpt",
      false,
      LAYOUT_STEPS,
      { TEXT, "d-model", "10", "d-ff", "9", "heads", "3", "d-kv", "4" } },
    { "gpt2", false, LAYOUT_STEPS, { TEXT, "d-ff", "9" } },
    { "llama", false, LAYOUT_STEPS, { TEXT } },
    { "qwen", false, LAYOUT_STEPS, { TEXT } },
    { "pythia", false, LAYOUT_STEPS, { TEXT } },
    { "phi", true, LAYOUT_STEPS, { TEXT } },
    { "olmo2", false, LAYOUT_STEPS, { TEXT } },
    { "opt", false, LAYOUT_STEPS, { TEXT } },
    { "bloom", false, LAYOUT_STEPS, { TEXT } },
    { "falcon", false, LAYOUT_STEPS, { TEXT } },
    { "mistral", false, LAYOUT_STEPS, { TEXT } },
    { "gemma", false, LAYOUT_STEPS, { TEXT } },
    { "mixtral", true, LAYOUT_STEPS, { TEXT } },
    { "deepseek", true, LAYOUT_STEPS, { TEXT } },
    { "bert", false, LAYOUT_STEPS, { TEXT } },
    { "t5", true, LAYOUT_STEPS, { TEXT, "d-ff", "7" } },
    { "switch", true, LAYOUT_STEPS, { TEXT } },
    { "gshard", true, LAYOUT_STEPS, { TEXT } },
    { "transformer",
      true,
      LAYOUT_STEPS,
      { "layers", "1", "batch", "3", "length", "10", "d-model", "12" } },
    { "vit", true, LAYOUT_STEPS, { "batch", "2" } },
    { "dlrm", false, LAYOUT_STEPS, { "batch", "6", "tables", "7,5", "top", "5-1" } },
    { "autoencoder", false, LAYOUT_STEPS, { "batch", "6", "features", "9", "sizes", "7-3" } },
    { "resnet", true, LAYOUT_STEPS, { "batch", "8", "image", "7", "width", "2", "rate", "0.002" } },
    { "vgg", true, LAYOUT_STEPS, { "batch", "3", "width", "2", "hidden", "7" } },
    { "alexnet", true, LAYOUT_STEPS, { "batch", "3", "hidden", "7" } },
    { "inception3", true, LAYOUT_STEPS, { "batch", "6" } },
    { "densenet",
      true,
      LAYOUT_STEPS,
      { "batch", "8", "image", "7", "width", "3", "rate", "0.002" } },
    { "unet", false, LAYOUT_STEPS, { "batch", "1", "image", "6", "width", "2" } },
    { "cosmoflow", true, LAYOUT_STEPS, { "batch", "2", "image", "8" } },
    { "moe-lstm", true, LAYOUT_STEPS, { TEXT } },
    { "mlp", false, LAYOUT_STEPS, { "batch", "6", "features", "7", "hidden", "9" } },
    { "lstm-lm", true, LAYOUT_STEPS, { TEXT, "hidden", "10" } },
};

static const Small *small_of(const MtfModelFamily *family) {
    for (gsize i = 0; i < G_N_ELEMENTS(smalls); i++)
        if (strcmp(smalls[i].family, family->name) == 0)
            return &smalls[i];
    return NULL;
}

static void layouts_of_a_family_give_its_losses(void **state) {
    const MtfModelFamily *family = *state;
    const Small *small = small_of(family);
    MtfFamilyCase wanted = { .family = family, .dtype = MTF_F64, .steps = LAYOUT_STEPS };
    wanted.changes = small != NULL ? small->changes : NULL;
    if (small != NULL)
        wanted.steps = small->steps;
    mtf_check_family_layouts(&wanted, DRAWS);
    wanted.dtype = MTF_F32;
    if (small == NULL || !small->only_f64)
        mtf_check_family_layouts(&wanted, DRAWS);
}

static void layouts_of_a_tiny_preset_give_its_losses(void **state) {
    MtfFamilyCase wanted = { .family = *state, .dtype = MTF_F64, .steps = LAYOUT_STEPS };
    mtf_check_family_layouts(&wanted, PRESET_DRAWS);
    wanted.dtype = MTF_F32;
    mtf_check_family_layouts(&wanted, PRESET_DRAWS);
}

int main(int argc, char **argv) {
    for (const MtfModelFamily *const *f = mtf_model_families(); *f != NULL; f++) {
        struct CMUnitTest test = { .name = (*f)->name,
                                   .test_func = layouts_of_a_family_give_its_losses,
                                   .initial_state = (void *)(guintptr)*f };
        if (argc > 1 && strcmp(argv[1], (*f)->name) != 0)
            continue;
        mtf_test_add(0, test);
        test.test_func = layouts_of_a_tiny_preset_give_its_losses;
        mtf_test_add(0, test);
    }
    return mtf_tests_run(NULL, NULL);
}
