#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# seconds: 300
# Pairs of texts, folders of pictures and tables of clicks: trained on, and refused in one sentence.
. tests/support/tap.sh

refuses() {
    exits 2 && [ "$(grep -c '^meshtf-run: ' "$work/err")" = 1 ]
}

# plan FAMILY OPTIONS...: of its tiny preset, on two processors.
plan() {
    family=$1
    shift
    meshtf-plan model "$family" --preset tiny "$@" -o "$work/g.json" >/dev/null &&
        meshtf-plan search "$work/g.json" --devices 2 --machine cpu-host -o "$work/p.json" >/dev/null 2>&1
}

train() {
    rm -f "$work/m.jsonl"
    run mpirun -n 2 meshtf-run "$work/p.json" --metrics "$work/m.jsonl" "$@"
}

# The last loss is below a share of the first.
falls_to() {
    sed 's/.*"loss": *\([0-9.]*\).*/\1/' "$work/m.jsonl" |
        awk -v share="$1" 'NR == 1 { first = $1 } { last = $1 } END { exit !(last < share * first) }'
}

# Numbers and what they are in French.
printf '%s\t%s\n' one un two deux three trois four quatre five cinq six six seven sept eight huit nine neuf ten dix \
    >"$work/numbers.tsv"
plan transformer
train --data "$work/numbers.tsv" --steps 80 --held-out 0 --generate 20 --temperature 0.01
claim "a Transformer trains on pairs" exits 0
claim "and learns them by heart" falls_to 0.2
claim "it says what it makes of its sources" says "  -> sept"
train --data "$work/numbers.tsv" --steps 80 --held-out 0 --generate 20 --temperature 0.01 --prompt four
claim "and of a prompt" says "  -> quatre"
train --data "$work/numbers.tsv" --steps 1 --generate 20 --prompt "more than a source of thirty-two bytes"
claim "a prompt that is too long is refused" refuses
train --data "$work/numbers.tsv" --steps 5 --verify
claim "two ranks compute what one does" exits 0
printf 'one\tun\ntwo\n' >"$work/bad.tsv"
train --data "$work/bad.tsv" --steps 1
claim "a line without a tab is refused" refuses
claim "it says which" says_error "bad.tsv, line 2"
head -c 60 tests/fuzz/corpus/catalogue/little.mo >"$work/cut.mo"
train --data "$work/cut.mo" --steps 1
claim "a catalogue cut short is refused" refuses
echo "one two three, of which no catalogue is made" >"$work/text.mo"
train --data "$work/text.mo" --steps 1
claim "a text is no catalogue, whatever its name" says_error "text.mo is no message catalogue"
: >"$work/none.tsv"
train --data "$work/none.tsv" --steps 1
claim "a table without pairs is refused" says_error "no pair of texts is in $work/none.tsv"

plan t5
train --data "$work/numbers.tsv" --steps 20
claim "T5 trains on pairs, one a row" exits 0

mkdir -p "$work/pictures/cat" "$work/pictures/dog"
cp tests/fuzz/corpus/picture/rgb.png "$work/pictures/cat/1.png"
cp tests/fuzz/corpus/picture/rgb.png "$work/pictures/dog/1.png"
meshtf-plan model mlp --preset mnist --batch 4 --features 36 --hidden 8 --outputs 2 -o "$work/g.json" >/dev/null
meshtf-plan search "$work/g.json" --devices 2 --machine cpu-host -o "$work/p.json" >/dev/null 2>&1
train --data "$work/pictures" --steps 5
claim "pictures in a folder a class are trained on" exits 0
head -c 60 tests/fuzz/corpus/picture/rgb.png >"$work/pictures/dog/2.png"
train --data "$work/pictures" --steps 1
claim "a damaged picture is refused" refuses
claim "it says which" says_error "dog/2.png: this PNG file is damaged or cut short"
echo "a picture" >"$work/pictures/dog/2.png"
train --data "$work/pictures" --steps 1
claim "and so is what is none" says_error "dog/2.png is no PNG file"
mv "$work/pictures/dog/2.png" "$work/pictures/NOTES.PNG"
train --data "$work/pictures" --steps 1
claim "pictures beside the classes are not passed over" says_error "NOTES.PNG lies beside the folders"
rm "$work/pictures/NOTES.PNG"
mkdir -p "$work/pictures/dog/old/older"
train --data "$work/pictures" --steps 1
claim "folders without pictures are nothing" exits 0
cp tests/fuzz/corpus/picture/rgb.png "$work/pictures/dog/old/older/3.png"
train --data "$work/pictures" --steps 1
claim "nor are those in folders of a class" says_error "dog/old/older/3.png lies in a folder below $work/pictures/dog, which is a class"
rm -r "$work/pictures/dog/old"
mkdir "$work/pictures/fish"
cp tests/fuzz/corpus/picture/rgb.png "$work/pictures/fish/1.PNG"
train --data "$work/pictures" --steps 1
claim "more classes than the model has are told before the training" says_error "the label of example 2 is 2, but the model has only 2 classes"

awk 'BEGIN { for (i = 0; i < 200; i++) printf "%d\t%d\t%d\t%d\t%d\t%x\t%x\t%x\n", i % 2, i, 3, i % 5, 1, i % 2, i % 7, i }' \
    >"$work/clicks.tsv"
plan dlrm
train --data "$work/clicks.tsv" --steps 80
claim "DLRM trains on a table of clicks" exits 0
claim "and learns which category is clicked" falls_to 0.5
printf '1\t2\tx\n' >"$work/bad.tsv"
train --data "$work/bad.tsv" --steps 1
claim "a count that is none is refused" refuses
claim "it says where" says_error "bad.tsv, line 1, column 3: \"x\" is not a count"
done_testing
