# SPDX-License-Identifier: GPL-3.0-or-later
# seconds: 240
# Training a plan with mpirun, as a user types it, and everything that can be wrong with the line.
. tests/support/tap.sh

graphs=layouts/library/graphs
plan=$work/plan.json

# Lines that meshtf-run itself printed on standard error; mpirun adds a text of its own.
own_lines() {
    grep -c '^meshtf-run: ' "$work/err"
}

# refuses: bad input, one sentence from one rank.
refuses() {
    exits 2 && [ "$(own_lines)" = 1 ]
}

meshtf-plan search "$graphs/mlp.json" --mesh 'rows:2' -o "$plan" >/dev/null 2>&1

run meshtf-run --help
claim "--help shows the options" says "--metrics=FILE"
run mpirun -n 2 meshtf-run --version
claim "two ranks say their version once" test "$(grep -c 'meshtf-run ' "$work/out")" = 1

run meshtf-run "$plan" --dry-run
claim "--dry-run needs no other ranks" exits 0
claim "--dry-run says what memory a rank needs" says " a rank"
claim "--dry-run says what is predicted" says "communication"

run meshtf-run --version
claim "the version names the kernels that the libraries chose" says "kernels, oneDNN"
if [ -z "${OPENBLAS_CORETYPE:-}" ] && grep -q ' avx2 ' /proc/cpuinfo; then
    run env -u OPENBLAS_CORETYPE meshtf-run --version
    claim "OpenBLAS runs kernels that use this processor's AVX, whether or not it knows the model" \
        grep -qE 'its (Haswell|Zen|Excavator|SkylakeX|Cooperlake|SapphireRapids) kernels' "$work/out"
    run env OPENBLAS_CORETYPE=Prescott mpirun -n 2 meshtf-run "$plan" --steps 1
    claim "old kernels of OpenBLAS are warned about, in one line" test "$(grep -c 'warning: OpenBLAS runs its Prescott' "$work/out")" = 1
    run env OPENBLAS_CORETYPE=Haswell mpirun -n 2 meshtf-run "$plan" --steps 1
    claim "those that use AVX2 are not" test "$(grep -c 'warning: OpenBLAS' "$work/out")" = 0
fi

run mpirun -n 2 meshtf-run "$plan" --steps 2
claim "one line says which ways multiply" test "$(grep -c 'products by the table of' "$work/out")" = 1
run mpirun -n 2 meshtf-run "$plan" --steps 2 --trial --checkpoint "$work/tried"
claim "--trial times them" says "products by a trial of"
grep 'products by' "$work/out" >"$work/first"
run mpirun -n 2 meshtf-run "$plan" --steps 4 --checkpoint "$work/tried" --resume
grep 'products by' "$work/out" >"$work/second"
claim "a run that goes on multiplies as it did" cmp -s "$work/first" "$work/second"
claim "few steps are not held against a large product" sh -c "! grep -q '| gemm' '$work/out'"

run mpirun -n 2 meshtf-run "$plan" --steps 30 --metrics "$work/metrics.jsonl" --verify
claim "two ranks train" exits 0
claim "the run says its ranks and threads" says "2 ranks of this host"
claim "memory is the predicted memory" says "equal to the byte"
claim "and what is resident beside it is said" says "beside the arena"
resident=$(sed -n '$s/.*"resident_bytes":\([0-9]*\).*/\1/p' "$work/metrics.jsonl")
claim "the closing table counts memory as the last step's line does" \
    grep -q "resident a rank .* $(awk "BEGIN { printf \"%.2f MiB\", $resident / 1048576 }") " "$work/out"
claim "communication that nothing hid is said" says "not overlapped"
claim "traffic is the program's" says "every rank's calls and bytes equal the program's"
claim "--verify compares with one processor" says "the same steps on one processor"
claim "there is one line of metrics a step" test "$(wc -l <"$work/metrics.jsonl")" = 30
claim "each says what share of a large product's rate its products reach" \
    test "$(grep -c '"gemm_fraction":0\.[0-9]' "$work/metrics.jsonl")" = 30
claim "the last line is of the last step" grep -q '^{"step":30,"loss":[0-9.e-]*,"gradient_norm":[0-9.e-]*,' "$work/metrics.jsonl"

# loss N: the loss of the N-th line.
loss() {
    sed -n "$1s/.*\"loss\":\([^,]*\),.*/\1/p" "$work/metrics.jsonl"
}
claim "the loss falls to less than half" awk "BEGIN { exit !($(loss 30) < $(loss 1) / 2) }"

first=$(loss 30)
run mpirun -n 2 meshtf-run "$plan" --steps 30 --metrics "$work/metrics.jsonl"
claim "the same run gives the same bits" test "$(loss 30)" = "$first"
run mpirun -n 2 meshtf-run "$plan" --steps 30 --only-mpi --metrics "$work/metrics.jsonl"
claim "two ranks add alike by MPI and through shared memory" test "$(loss 30)" = "$first"
run mpirun -n 2 meshtf-run "$plan" --steps 30 --no-overlap --metrics "$work/metrics.jsonl"
claim "and whether they compute meanwhile or not" test "$(loss 30)" = "$first"
run mpirun -n 2 meshtf-run "$plan" --steps 30 --seed 1 --metrics "$work/metrics.jsonl"
claim "another seed gives other losses" test "$(loss 30)" != "$first"

run env OPENBLAS_NUM_THREADS=$(($(nproc) + 1)) mpirun -n 2 meshtf-run "$plan" --steps 1
claim "more threads than cores are warned about" says "more threads than cores slow each other down"

run mpirun -n 3 meshtf-run "$plan"
claim "a wrong number of ranks is refused" refuses
claim "it says what to type" says_error "type mpirun -n 2 meshtf-run $plan"

run meshtf-run "$plan"
claim "one rank for a plan of two is refused" refuses

sed 's/"meshtf_plan": 6/"meshtf_plan": 9/' "$plan" >"$work/newer.json"
run mpirun -n 2 meshtf-run "$work/newer.json"
claim "a plan of another version is refused" refuses
claim "it names the version" says_error "meshtf_plan"

sed 's/"program_sha256": "..../"program_sha256": "0000/' "$plan" >"$work/changed.json"
run mpirun -n 2 meshtf-run "$work/changed.json"
claim "a plan whose program differs is refused" refuses

run mpirun -n 2 meshtf-run "$work/nothing.json"
claim "a missing plan is refused" refuses
run mpirun -n 2 meshtf-run
claim "no plan at all is refused" refuses
run mpirun -n 2 meshtf-run "$plan" --frobnicate
claim "an unknown option is refused" refuses
for option in --trace-file=x.json --temperature=0.5 --slots=4 --held-out=1.5; do
    run mpirun -n 2 meshtf-run "$plan" --steps 1 "$option"
    claim "$option alone has no effect, and is refused" refuses
done
run mpirun -n 2 meshtf-run "$plan" --steps 0
claim "no step at all is refused" refuses
run mpirun -n 2 meshtf-run "$plan" --data LICENSE
claim "a text for a model that reads none is refused" refuses

meshtf-plan search "$graphs/transformer-small.json" --mesh 'rows:2' --dim batch=4 --dim length=16 \
    --dim memory_length=16 -o "$work/text.json" >/dev/null 2>&1
run mpirun -n 2 meshtf-run "$work/text.json" --steps 2
claim "a text model without a text is refused" refuses
claim "it says which option gives it" says_error "--data FILE"
run mpirun -n 2 meshtf-run "$work/text.json" --data "$work/nothing.txt"
claim "a missing text is refused" refuses
run mpirun -n 2 meshtf-run "$work/text.json" --data LICENSE --steps 4
claim "a text model trains on a text" exits 0
claim "progress is not drawn where there is no terminal" is_silent

sed 's/"rate": *[0-9.e-]*/"rate": 1e30/' "$graphs/mlp.json" >"$work/steep.json"
meshtf-plan search "$work/steep.json" --mesh 'rows:2' -o "$work/steep-plan.json" >/dev/null 2>&1
run mpirun -n 2 meshtf-run "$work/steep-plan.json"
claim "a loss that is no number ends the run as a failure" exits 1
claim "in one sentence" test "$(own_lines)" = 1
claim "which names the step" says_error "the loss of step"
claim "and the operation" says_error "the first result that is not a number is that of \""

done_testing
