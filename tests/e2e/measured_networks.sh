# SPDX-License-Identifier: GPL-3.0-or-later
# seconds: 120
# Convolutions, encoders and generation on an H200, and generation on an H100, take what was measured there
# (tests/golden/h200/README.md, tests/golden/h100/README.md).
# shellcheck disable=SC2016
. tests/support/tap.sh
. tests/support/published/measured_networks.sh
measured_networks h200 "$top/tests/golden/h200/networks.tsv" "$work" >"$work/networks"

# within LEAST MOST ROWS CONDITION: so many rows of whom the condition is true, predicted between these shares of what was measured.
within() {
    awk -v least="$1" -v most="$2" -v rows="$3" "$4"' { n++; share = $6 / $7; bad += !(share >= least && share <= most) }
        END { exit !(n == rows && bad == 0) }' "$work/networks"
}

claim "compiled steps of ResNet-50, ViT and BERT are predicted within 15 %" within 0.85 1.15 3 '$1 == "train" && $5 == "compiled"'
claim "prompts of Llama are predicted within 15 %" within 0.85 1.15 5 '$1 == "prefill"'
# Of 32768 positions PyTorch reads a cache of shared keys by one processor a head.
claim "tokens of Llama are predicted within 18 %" within 0.82 1.18 6 '$1 == "decode" && $4 < 32768'
# Without the compiler each call of the library is a kernel of its own, and pools take their windows element by element. Of many
# small kernels the step is the host's: a batch of 64 pictures takes 34 ms here, and 21 and 40 on two days of an H100.
claim "eager steps are predicted within 26 %" within 0.74 1.26 10 '$5 == "eager" && !($2 == "resnet-50" && $3 == 64)'
claim "and Inception, a third of which is pools, within 15 %" within 0.85 1.15 1 '$2 == "inception3"'

# band_is_said MACHINE: whether the profile says how well all its eager steps there were predicted.
band_is_said() {
    [ "$(awk '$5 == "eager" { e = $6 / $7 - 1; sum += e < 0 ? -e : e; n++ } END { printf "%d %.2f", n, sum / n }' "$work/networks")" = \
        "$(jq -r --arg machine "$1" '.judged[$machine] | "\(.[0]) \(.[1])"' "$top/layouts/library/software/pytorch-eager.json")" ]
}
claim "how well is what the profile says" band_is_said h200
claim "an LSTM, which cuDNN runs in one call, is predicted within 15 %" within 0.85 1.15 1 '$2 == "2x512"'

# Figures of the H100 were measured after its prices were made; only its passes over memory were taken from there since.
grep -v 32768 "$top/tests/golden/h100/networks.tsv" >"$work/h100.tsv"
measured_networks h100 "$work/h100.tsv" "$work" >"$work/networks"
claim "tokens of Llama on an H100 are predicted within 18 %" within 0.82 1.18 6 '$1 == "decode"'
claim "and prompts within 20 %" within 0.80 1.20 5 '$1 == "prefill"'
claim "and a compiled step of ResNet-50 within 8 %" within 0.92 1.08 1 '$1 == "train" && $5 == "compiled"'
claim "and eager ones as well as the profile says" band_is_said h100

# The kernel that divides one head's positions among processors takes what is predicted where the usual one takes 2.3 times that.
{ echo header; grep 'decode.*32768.flash' "$top/tests/golden/h100/measured_more.tsv"; } >"$work/long.tsv"
mv "$work/networks" "$work/short"
measured_networks h100 "$work/long.tsv" "$work" >"$work/networks"
claim "and tokens at 32768 positions within 5 %, one text's and eight's" within 0.95 1.05 2 '$4 == 32768'
mv "$work/short" "$work/networks"

halves_are_found() {
    awk '{ $6 /= 2 } 1' "$work/networks" >"$work/halves" && mv "$work/halves" "$work/networks"
    ! within 0.92 1.08 1 '$1 == "train" && $5 == "compiled"'
}
claim "a prediction of half of what was measured is found" halves_are_found
done_testing
