# SPDX-License-Identifier: GPL-3.0-or-later
# meshtf-run --ema uses the running means of the weights: their witness averages the checkpoints of three steps.
. tests/support/tap.sh

meshtf-plan model transformer-lm --preset tiny --ema 0.5 -o "$work/g.json" >/dev/null
head -c 1300 LICENSE >"$work/text.txt"
estimate() { # NAME MESH RULES
    meshtf-plan estimate "$work/g.json" --mesh "$2" --layout "$3" --machine cpu-host -o "$work/$1.json" >/dev/null
}
estimate one rows:1 ''
estimate split 'rows:2;cols:2' 'batch:rows;d_ff:cols;vocab:cols'
meshtf-plan search "$work/g.json" --mesh rows:4 --machine cpu-host -o "$work/free.json" >/dev/null
claim "means and weights are placed differently" \
    [ "$(jq '.layout.tensors as $t | [.graph.variables[] | select(.mean_of) | select($t[.name] != $t[.mean_of])] | length' "$work/free.json")" -gt 0 ]
meshtf-plan search "$work/g.json" --mesh rows:1 --machine cpu-host --stages 2 --microbatches 4 -o "$work/stages.json" >/dev/null

run meshtf-run "$work/one.json" --data LICENSE --steps 3 --checkpoint "$work/run" --checkpoint-every 1 --keep 3
claim "three steps leave three checkpoints" exits 0
python3 - "$work" <<'END'
import json, struct, sys
from array import array
def read(step):
    data = open(f"{sys.argv[1]}/run/step-{step:08}.safetensors", "rb").read()
    n = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:8 + n])
    return {k: (v["shape"], array("f", data[8 + n + v["data_offsets"][0]:8 + n + v["data_offsets"][1]]))
            for k, v in header.items() if k != "__metadata__" and v["dtype"] == "F32"}
files = [read(step) for step in (1, 2, 3)]
header, body = {}, b""
for name in (k for k in files[0] if "ema/" + k in files[0]):
    mean = [a / 4 + b / 4 + c / 2 for a, b, c in zip(*(f[name][1] for f in files))]
    bytes_ = array("f", mean).tobytes()
    header[name] = {"dtype": "F32", "shape": files[0][name][0], "data_offsets": [len(body), len(body) + len(bytes_)]}
    body += bytes_
text = json.dumps(header).encode()
open(sys.argv[1] + "/means.safetensors", "wb").write(struct.pack("<Q", len(text)) + text + body)
END

nats() { sed -n 's/.*perplexity of .*: .*(\([0-9.e+-]*\) nats a token.*/\1/p' "$work/out"; }
near() { awk -v a="$1" -v b="$2" 'BEGIN { exit !(a > 0 && a - b < 1e-5 * a && b - a < 1e-5 * a) }'; }
far() { ! near "$1" "$2"; }

uses="--perplexity $work/text.txt --generate 12 --prompt The"
# Options are split into words on purpose.
# shellcheck disable=SC2086
run meshtf-run "$work/one.json" --init "$work/means.safetensors" --data LICENSE --steps 0 $uses
nats=$(nats)
tail -n 1 "$work/out" >"$work/said"
run meshtf-run "$work/one.json" --data LICENSE --steps 3 --perplexity "$work/text.txt"
claim "without --ema weights are those of the last step" far "$(nats)" "$nats"
while read -r ranks name; do
    # shellcheck disable=SC2086
    run mpirun -n "$ranks" meshtf-run "$work/$name.json" --data LICENSE --steps 3 --ema $uses
    claim "$name: --perplexity uses the means of the weights" near "$(nats)" "$nats"
    tail -n 1 "$work/out" >"$work/said.$name"
    claim "$name: --generate, too" cmp "$work/said" "$work/said.$name"
done <<TABLE
1 one
4 split
4 free
2 stages
TABLE

run mpirun -n 4 meshtf-run "$work/split.json" --data LICENSE --steps 3 --checkpoint "$work/run" --resume --ema --perplexity "$work/text.txt"
claim "a checkpoint holds the means" near "$(nats)" "$nats"

# Held out data are foretold by the means, and training goes on with the weights.
held="--data LICENSE --eval-batches 2 --metrics"
# shellcheck disable=SC2086
run mpirun -n 4 meshtf-run "$work/free.json" --steps 4 --eval-every 1 --ema $held "$work/means.jsonl"
# shellcheck disable=SC2086
run mpirun -n 4 meshtf-run "$work/free.json" --steps 4 --eval-every 1 $held "$work/weights.jsonl"
losses() { jq -s "map($2) | tostring" "$work/$1.jsonl"; }
claim "an evaluation of means changes no loss of training" [ "$(losses means .loss)" = "$(losses weights .loss)" ]
claim "at the first step they are the weights" [ "$(losses means .held_out_loss | cut -d, -f1)" = "$(losses weights .held_out_loss | cut -d, -f1)" ]
claim "later they are not" [ "$(losses means .held_out_loss)" != "$(losses weights .held_out_loss)" ]
# The third are those of the means that the witness made.
meshtf-plan model transformer-lm --preset tiny --rate 1e-30 -o "$work/still.json" >/dev/null
meshtf-plan estimate "$work/still.json" --mesh rows:1 --layout '' --machine cpu-host -o "$work/still-plan.json" >/dev/null
# shellcheck disable=SC2086
run meshtf-run "$work/still-plan.json" --init "$work/means.safetensors" --steps 1 --eval-every 1 $held "$work/witness.jsonl"
claim "held out losses are those of the means" near "$(jq -s '.[2].held_out_loss' "$work/means.jsonl")" "$(jq .held_out_loss "$work/witness.jsonl")"

run meshtf-run "$work/still-plan.json" --data LICENSE --steps 1 --ema
claim "a plan without means is bad input" exits 2
claim "  and says how to get some" says_error 'keeps no running mean of its weights: give "ema"'
run meshtf-run "$work/one.json" --steps 0 --ema --perplexity "$work/text.txt"
claim "means of nothing are bad input" says_error "there are no means yet"
done_testing
