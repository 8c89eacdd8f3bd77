# SPDX-License-Identifier: GPL-3.0-or-later
# shellcheck disable=SC2154 # $work is of tap.sh
# Sourced after tap.sh. Plans a graph of the library by search, trains it under mpirun with as many
# ranks as the mesh has processors, and claims what must hold of every plan: the losses are those of
# one processor (--verify) and every rank sends what the plan says.

# Whether --verify's largest difference of losses is within what float32 may differ by.
loses_alike() {
    awk '$2 == "loss" { found = 1; alike = $1 <= 1e-4 } END { exit !(found && alike) }' "$work/out"
}

# trains NAME [DATA]: the plan in $work/searched.json.
trains() {
    ranks=$(sed -n 's/.*"mesh": "\(.*\)",/\1/p' "$work/searched.json" | tr ';' '\n' | awk -F: '{ n = n == 0 ? $2 : n * $2 } END { print n }')
    run mpirun --oversubscribe -n "$ranks" meshtf-run "$work/searched.json" ${2:+--data "$2"} --steps 12 --only-mpi --verify
    claim "$1 trains" exits 0
    claim "$1 gives the losses of one processor" loses_alike
    claim "$1 sends what it says" says "every rank's calls and bytes equal the program's"
    claim "$1 needs the memory it says" says "equal to the byte"
}

# data_of GRAPH: what it trains on; perceptrons make their own.
data_of() {
    case $1 in
    *transformer*) echo LICENSE ;;
    esac
}

# searched_trains GRAPH MESH SIZES
searched_trains() {
    # The sizes are several words.
    # shellcheck disable=SC2086
    run meshtf-plan search "$1" --mesh "$2" $3 -o "$work/searched.json"
    claim "a plan of $(basename "$1" .json) on $2 is found" exits 0
    trains "the best of $(basename "$1" .json) on $2" "$(data_of "$1")"
}

# searched_trains_in_little_memory GRAPH MESH SIZES: within the limit that is said to do when
# nothing fits.
searched_trains_in_little_memory() {
    # shellcheck disable=SC2086
    run meshtf-plan search "$1" --mesh "$2" $3 --microbatches 1 --recompute none --memory 1
    limit=$(sed -n 's/.*--memory \([0-9]*\)[:)].*/\1/p' "$work/err")
    # shellcheck disable=SC2086
    run meshtf-plan search "$1" --mesh "$2" $3 --microbatches 1 --recompute none --memory "$limit" -o "$work/searched.json"
    claim "a plan of $(basename "$1" .json) on $2 is found within $limit bytes" exits 0
    trains "the smallest of $(basename "$1" .json) on $2" "$(data_of "$1")"
}
