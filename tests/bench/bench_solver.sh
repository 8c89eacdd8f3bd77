#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# Layout problems with known answers: ours beside the reference figures, then other solvers on the
# same problems, then training graphs of GPT-3 by layers and by devices. Contest instances get the
# contest's time (or BENCH_SECONDS, when it is less), reading the file included; PaSE's run to the
# proof. `ok` means: no worse than the best known and a bound within 2 % (contest), the proven
# optimum (PaSE), a gap under 1 % (GPT-3), and where the row names a time that and 2 GiB. CPU seconds are of all threads and do not depend on what
# else the machine does. Problems are read from ../shared/data where that is; cbc and toulbar2 run
# where they are installed.
data=../shared/data
failed=0
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
root=$(cd "$(dirname "$0")/../.." && pwd)
export="$root/build/${BUILD:-release}/tests/bench/bench_export"

# field NAME: a number or text out of one-line JSON.
field() {
    sed -n "s/.*\"$1\": *\"\{0,1\}\([^,\"}]*\).*/\1/p" "$dir/out" | head -n 1
}

# timed COMMAND...: runs it, output to $dir/out; sets status, wall, cpu (user and system) and, where
# there is GNU time, peak (MiB resident).
timed() {
    begin=$(date +%s.%N)
    echo - >"$dir/peak"
    (
        if [ -x /usr/bin/time ]; then
            /usr/bin/time -f %M -o "$dir/peak" "$@" >"$dir/out" 2>"$dir/err"
        else
            "$@" >"$dir/out" 2>"$dir/err"
        fi
        echo $? >"$dir/status"
        times >"$dir/times"
    )
    status=$(cat "$dir/status")
    peak=$(awk 'END { print $1 == "-" ? "-" : int(($1 + 1023) / 1024) }' "$dir/peak")
    wall=$(awk -v a="$begin" -v b="$(date +%s.%N)" 'BEGIN { printf "%.2f", b - a }')
    cpu=$(awk 'NR == 2 { gsub("s", ""); split($1, u, "m"); split($2, s, "m")
        printf "%.2f", 60 * (u[1] + s[1]) + u[2] + s[2] }' "$dir/times")
}

# verdict 0|1: "ok" or "SHORT", which fails the whole bench.
verdict() {
    [ "$1" = 1 ] && echo ok && return
    echo SHORT
    failed=1
}

# row NAME FILE SECONDS REFERENCE GAP: solves and prints one line of the table.
row() {
    timed meshtf-plan solve "$2" ${3:+--seconds "$3"} --json
    good=$(awk -v cost="$(field cost)" -v gap="$(field gap)" -v reference="$4" -v most="$5" \
        'BEGIN { print cost != "" && cost <= reference * (1 + 1e-12) && gap <= most }')
    printf '%-16s %16.0f %16.0f %16.0f %8.4f %7s %7s  %-16s ' "$1" "$4" "$(field cost)" \
        "$(field lower_bound)" "$(awk -v gap="$(field gap)" 'BEGIN { print 100 * gap }')" "$wall" \
        "$cpu" "$(field method)"
    verdict "$good"
}

# seconds LIMIT: the contest's limit, or BENCH_SECONDS when that is less.
seconds() {
    [ "${BENCH_SECONDS:-$1}" -lt "$1" ] && echo "$BENCH_SECONDS" || echo "$1"
}

contest() {
    printf '%-16s %16s %16s %16s %8s %7s %7s  %-16s\n' problem 'best known' cost bound 'gap %' \
        seconds cpu 'proved by'
    row example "$data/iopddl/example.json" "" 445 0
    sed 's/"usage_limit": *[0-9]*,\{0,1\}/"usage_limit": 0/' "$data/iopddl/example.json" >"$dir/none.json"
    timed meshtf-plan solve "$dir/none.json"
    printf '%-16s %s ' 'limit 0' "$(sed 's/.*: no layout/no layout/' "$dir/err" | cut -c 1-104)"
    verdict "$([ "$status" = 3 ] && echo 1)"
    row contest-G "$data/iopddl/asplos-2025-iopddl-G.json.gz" "$(seconds 120)" 217039 0
    row contest-A "$data/iopddl/asplos-2025-iopddl-A.json.gz" "$(seconds 60)" 6548553650 0.02
    row contest-D "$data/iopddl/asplos-2025-iopddl-D.json.gz" "$(seconds 60)" 309195190496 0
    row contest-M "$data/iopddl/asplos-2025-iopddl-M.json.gz" "$(seconds 180)" 49928157537 0.02
    row contest-R "$data/iopddl/asplos-2025-iopddl-R.json.gz" "$(seconds 240)" 371899551572 0.06
    row contest-S "$data/iopddl/asplos-2025-iopddl-S.json.gz" "$(seconds 240)" 1511377982 0.02
}

# other SOLVER FORMAT PATTERN COMMAND...: CPU seconds of another solver on $file, or why there are
# none; its optimum must be ours.
other() {
    solver=$1 format=$2 pattern=$3
    shift 3
    command -v "$solver" >/dev/null || { echo missing; return; }
    "$export" "$file" "$format" >"$dir/problem.$format"
    timed timeout "${BENCH_OTHERS:-60}" "$@"
    found=$(sed -n "s/$pattern/\1/p" "$dir/out" | head -n 1)
    awk -v found="$found" -v optimum="$optimum" -v cpu="$cpu" -v status="$status" 'BEGIN {
        if (status == 124) print "> limit"
        else print found + 0 == optimum + 0 ? cpu : "wrong: " found }'
}

# PaSE's sixteen: ours to the proof, CBC on the marginal form, toulbar2 on the cost network.
pase() {
    grep '^| [a-z0-9]*_p' "$data/pase/README.md" | tr -d '|' >"$dir/list"
    printf '\n%-16s %16s %16s %8s %8s %8s  CPU seconds\n' problem optimum ours ours cbc toulbar2
    ours=0
    while read -r name _ _ _ optimum _; do
        file="$data/pase/$name.json.gz"
        timed meshtf-plan solve "$file" --json
        cost=$(field cost) mine=$cpu
        good=$([ "$cost" = "$optimum" ] && [ "$(field lower_bound)" = "$optimum" ] && echo 1)
        ours=$(awk -v a="$ours" -v b="$cpu" 'BEGIN { print a + b }')
        cbc=$(other cbc lp '.*Objective value: *\([0-9]*\).*' cbc "$dir/problem.lp" -solve -quit)
        toulbar2=$(other toulbar2 wcsp '.*Optimum: \([0-9]*\) .*' toulbar2 "$dir/problem.wcsp")
        printf '%-16s %16s %16s %8s %8s %8s  ' "$name" "$optimum" "$cost" "$mine" "$cbc" "$toulbar2"
        verdict "$good"
    done <"$dir/list"
    printf '%-50s %8s\n' 'all sixteen' "$ours"
}

# plan NAME LAYERS MESH SECONDS OPTION...: searches a training graph of GPT-3 and prints one line;
# SECONDS (0: any) and 2 GiB are what it may take.
plan() {
    name=$1 layers=$2 mesh=$3 most=$4
    shift 4
    meshtf-plan model gpt --preset gpt3-175b --batch 64 --layers "$layers" -o "$dir/graph.json" >"$dir/err"
    timed meshtf-plan search "$dir/graph.json" --mesh "$mesh" --machine tpu-v4 --gap 0.01 \
        -o "$dir/plan.json" --json "$@"
    cost=$(field cost) bound=$(field bound) rule=$(field rule_cost)
    good=$(awk -v cost="$cost" -v bound="$bound" -v most="$most" -v wall="$wall" -v peak="$peak" 'BEGIN {
        near = cost > 0 && cost - bound < 0.01 * cost
        print (near && (most == 0 || (wall < most && peak + 0 < 2048))) }')
    awk -v name="$name" -v layers="$layers" -v mesh="$mesh" -v cost="$cost" -v bound="$bound" \
        -v rule="$rule" -v wall="$wall" -v cpu="$cpu" -v peak="$peak" 'BEGIN {
        printf("%-15s %6d %-23s %12s %14.0f %14.0f %7.3f %7s %7s %5s  ", name, layers, mesh,
            (rule > 0 ? sprintf("%.3f", rule / cost) : "does not fit"), cost, bound,
            (cost > 0 ? 100 * (cost - bound) / cost : 100), wall, cpu, peak) }'
    verdict "$good"
}

gpt3() {
    printf '\n%-15s %6s %-23s %12s %14s %14s %7s %7s %7s %5s\n' 'GPT-3 175B' layers mesh 'rule/free' \
        'cost ns' 'bound ns' 'gap %' seconds cpu MiB
    for layers in 12 24 48 96 192 384; do
        plan 'f32, no limit' "$layers" 'rows:8;cols:8' 0 --precision f32 --memory 1000TiB # 384 whole layers need more than 10
    done
    plan 'f32, no limit' 96 'rows:16;cols:32' 0 --precision f32 --memory 1000TiB
    plan 'f32, no limit' 96 'planes:8;rows:8;cols:8' 0 --precision f32 --memory 1000TiB
    timed meshtf-plan search "$dir/graph.json" --mesh 'rows:8;cols:8' --machine tpu-v4 --precision f32 \
        --memory 29.8GiB --microbatches 1
    printf 'f32 in one batch on 8x8: %s ' "$(sed 's/.*: no layout/no layout/' "$dir/err" | cut -c 1-80)"
    verdict "$([ "$status" = 3 ] && echo 1)"
    plan 'bf16, 8 parts' 96 'rows:8;cols:8' 0 --precision bf16 --microbatches 8 --gap 0.008
    plan 'bf16, 8 parts' 96 'rows:16;cols:32' 0 --precision bf16 --microbatches 8 --gap 0.008
    plan 'bf16, 29.8 GiB' 96 'rows:8;cols:8' 10 --precision bf16
    plan 'bf16, 29.8 GiB' 96 'rows:16;cols:32' 10 --precision bf16
    plan 'bf16, 29.8 GiB' 96 'planes:8;rows:8;cols:8' 10 --precision bf16
}

if [ -d "$data/iopddl" ]; then
    contest
    pase
else
    echo "bench_solver: $data is not here, its problems are skipped"
fi
gpt3
exit "$failed"
