# SPDX-License-Identifier: GPL-3.0-or-later
# Layout problems with known answers: ours beside the reference figures. The contest's instances get
# the contest's time (or BENCH_SECONDS, when it is less), reading the file included; PaSE's run to
# the proof. `ok` means: no worse than the best of the 20 teams and a bound within 2 % (contest), the
# proven optimum (PaSE). Needs ../shared/data.
data=../shared/data
[ -d "$data/iopddl" ] || { echo "bench_solver: $data is not here, skipped"; exit 0; }
failed=0

# field NAME: a number or text out of the last line of JSON.
field() {
    sed -n "s/.*\"$1\":\"\{0,1\}\([^,\"}]*\).*/\1/p" "$work"
}

# row NAME FILE SECONDS REFERENCE GAP: solves and prints one line of the table.
row() {
    start=$(date +%s.%N)
    meshtf-plan solve "$2" ${3:+--seconds "$3"} --json >"$work" || { echo "$1 failed"; failed=1; return; }
    end=$(date +%s.%N)
    awk -v name="$1" -v cost="$(field cost)" -v bound="$(field lower_bound)" -v gap="$(field gap)" \
        -v method="$(field method)" -v reference="$4" -v most="$5" -v start="$start" -v end="$end" '
        BEGIN {
            good = cost <= reference * (1 + 1e-12) && gap <= most
            printf "%-16s %16.0f %16.0f %16.0f %8.4f %8.2f  %-16s %s\n", name, reference, cost, bound,
                100 * gap, end - start, method, good ? "ok" : "SHORT"
            exit !good
        }' || failed=1
}

# seconds LIMIT: the contest's limit, or BENCH_SECONDS when that is less.
seconds() {
    [ "${BENCH_SECONDS:-$1}" -lt "$1" ] && echo "$BENCH_SECONDS" || echo "$1"
}

work=$(mktemp)
list=$(mktemp)
trap 'rm -f "$work" "$list"' EXIT
printf '%-16s %16s %16s %16s %8s %8s  %-16s\n' problem reference cost bound 'gap %' seconds 'proved by'
row example "$data/iopddl/example.json" "" 445 0
row contest-G "$data/iopddl/asplos-2025-iopddl-G.json.gz" "$(seconds 120)" 217039 0
row contest-A "$data/iopddl/asplos-2025-iopddl-A.json.gz" "$(seconds 60)" 6548641531 0.02
row contest-M "$data/iopddl/asplos-2025-iopddl-M.json.gz" "$(seconds 180)" 49928460991 0.02
row contest-S "$data/iopddl/asplos-2025-iopddl-S.json.gz" "$(seconds 240)" 1534613444 0.02
grep '^| [a-z0-9]*_p' "$data/pase/README.md" | tr -d '|' >"$list"
while read -r name _ _ _ optimum _; do
    row "$name" "$data/pase/$name.json.gz" "" "$optimum" 0
done <"$list"
exit "$failed"
