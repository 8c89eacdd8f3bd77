# SPDX-License-Identifier: GPL-3.0-or-later
# meshtf-plan solve: a layout problem in a file, the list of strategies out.
. tests/support/tap.sh

cat >"$work/two.json" <<'END'
{"problem": {"name": "two",
  "nodes": {"intervals": [[0, 4], [2, 6]], "costs": [[1, 5], [1, 4]], "usages": [[8, 3], [8, 2]]},
  "edges": {"nodes": [[0, 1]], "costs": [[0, 0, 0, 9]]}, "usage_limit": 11}}
END
last_line_is() {
    [ "$(tail -n 1 "$work/out")" = "$1" ]
}

# 1 + 1 = 2 needs 16; (1, 0) = 6 needs 11; (0, 1) = 5 needs 10.
run meshtf-plan solve "$work/two.json"
claim "a small problem is solved" exits 0
claim "the last line is the list" last_line_is "[0, 1]"
claim "the proof is named" says "optimal"
claim "nothing is said on standard error" is_silent

# The certificate is checked by a reader of its own; one that claims a unit more is refused.
run meshtf-plan solve "$work/two.json" --certificate "$work/proof.txt"
claim "--certificate leaves the answer as it is" last_line_is "[0, 1]"
run meshtf-plan verify "$work/two.json" "$work/proof.txt"
claim "verify accepts the certificate" exits 0
claim "it says what is proven" says "cost 5 is the least of all legal choices"
run meshtf-plan verify "$work/two.json" "$work/proof.txt" --json
claim "verify --json" says '{"cost":5,"lower_bound":5,"none_fits":false'
sed 's/^bound 5$/bound 6/' "$work/proof.txt" >"$work/forged.txt"
run meshtf-plan verify "$work/two.json" "$work/forged.txt"
claim "a forged bound is bad input" bad_input
claim "it says in which line" says_error "forged.txt: line 9: the point does not prove it"
head -2 "$work/proof.txt" >"$work/cut.txt"
run meshtf-plan verify "$work/two.json" "$work/cut.txt"
claim "one cut off before it proves anything is bad input" bad_input
claim "it says so" says_error "cut.txt: its 2 lines prove no bound"
run meshtf-plan verify "$work/two.json" "$work/two.json"
claim "a file that is no certificate is bad input" bad_input
run meshtf-plan solve "$work/two.json" --certificate "$work/no/such/folder"
claim "a certificate that cannot be written is refused before the work" bad_input

gzip -k "$work/two.json"
run meshtf-plan solve "$work/two.json.gz" --json
claim "gzip and --json" exits 0
claim "--json prints the solution" says '"solution":[0,1],"cost":5,"lower_bound":5,"gap":0'

sed 's/"usage_limit": 11/"usage_limit": 4/' "$work/two.json" >"$work/tight.json"
run meshtf-plan solve "$work/tight.json"
claim "a limit that nothing fits exits with 3" exits 3
claim "it is one sentence" one_sentence
claim "it says what would do, and that it is proven" says_error \
    "at least 5 is needed (proven), and the smallest limit found that would do is 5"
claim "it says where and by what" says_error "at time 2 by nodes 0, 1"
run meshtf-plan solve "$work/tight.json" --certificate "$work/none.txt"
claim "the sentence is the same with a certificate" says_error "at least 5 is needed"
run meshtf-plan verify "$work/tight.json" "$work/none.txt"
claim "verify says that nothing fits" says "no choice is legal"
run meshtf-plan verify "$work/two.json" "$work/none.txt"
claim "which is not proven of another limit" bad_input
sed 's/"usage_limit": 11/"usage_limit": 2/' "$work/two.json" >"$work/tighter.json"
run meshtf-plan solve "$work/tighter.json" --certificate "$work/none.txt"
run meshtf-plan verify "$work/tighter.json" "$work/none.txt"
claim "what is needed at least is proven, too" says "less memory than 5, and the limit is less"
run meshtf-plan verify "$work/two.json" "$work/none.txt" --json
claim "which holds whatever the limit" says '"none_fits":false,"needed":5'

sed 's/, "usage_limit": 11//' "$work/two.json" >"$work/free.json"
run meshtf-plan solve "$work/free.json"
claim "without a limit the cheapest is chosen" last_line_is "[0, 0]"

echo '{"problem": {}}' >"$work/bad.json"
run meshtf-plan solve "$work/bad.json"
claim "a broken file is bad input" bad_input
run meshtf-plan solve "$work/absent.json"
claim "an absent file is bad input" bad_input
run meshtf-plan solve "$work/two.json" --seconds=-1
claim "a negative time is bad input" bad_input
run meshtf-plan solve "$work/two.json" --threads 0
claim "no threads are bad input" bad_input
run meshtf-plan solve "$work/two.json" --method branch,local --threads 3
claim "methods and threads can be chosen" last_line_is "[0, 1]"
run meshtf-plan solve "$work/two.json" --method annealing
claim "a method that is not there is bad input" bad_input
methods=$(sed -n 's/.*is not one of all, messages, //p' "$work/err")
run meshtf-plan solve --help
claim "the help names every method" says "in a list: ${methods:-none} (default: all)"
claim "elimination among them" says "elimination, branch"

# 60 nodes, all pairs joined at random: a first choice at once, a proof not for hours.
awk 'BEGIN {
    srand(1); n = 60; k = 8
    printf "{\"problem\": {\"nodes\": {\"intervals\": ["
    for (v = 0; v < n; v++) printf "%s[0,0]", (v ? "," : "")
    printf "], \"costs\": ["
    for (v = 0; v < n; v++) printf "%s[0,0,0,0,0,0,0,0]", (v ? "," : "")
    printf "], \"usages\": ["
    for (v = 0; v < n; v++) printf "%s[0,0,0,0,0,0,0,0]", (v ? "," : "")
    printf "]}, \"edges\": {\"nodes\": ["
    for (v = 1; v < n; v++) for (u = 0; u < v; u++) printf "%s[%d,%d]", (u + v > 1 ? "," : ""), u, v
    printf "], \"costs\": ["
    for (v = 1; v < n; v++) for (u = 0; u < v; u++) {
        printf "%s[", (u + v > 1 ? "," : "")
        for (i = 0; i < k * k; i++) printf "%s%d", (i ? "," : ""), rand() * 1000000
        printf "]"
    }
    print "]}}}"
}' >"$work/hard.json"
# In the foreground timeout sends the signal once, as Ctrl-C does; a second one would quit.
timeout --foreground --signal=INT 5 meshtf-plan solve "$work/hard.json" --json >"$work/out" 2>"$work/err" </dev/null
claim "an interrupt keeps the best choice and prints it" says '"solution":['
claim "with a bound" says '"lower_bound":'

done_testing
