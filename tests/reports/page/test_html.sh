# SPDX-License-Identifier: GPL-3.0-or-later
# Pages judged by other people's validators: Tidy and xmllint of Debian, and the checker of the W3C
# where it is at hand (long_html.sh fetches it).
# seconds: 300
. tests/support/tap.sh

sh tests/support/make_pages.sh "$work/pages" 2>"$work/err"
claim "the pages are written" test -s "$work/pages/gpt/index.html"
sed -i '/^meshtf-plan search: [0-9]* s: /d' "$work/err" # where the machine is busy searches tell how far they are
claim "without a word" is_silent

# Tidy knows HTML 5, but of SVG only its older names.
tidy_finds_nothing() {
    tidy -quiet -errors --drop-empty-elements no --warn-proprietary-attributes no "$1" 2>"$work/err"
    is_silent
}

# seconds_since FILE: processor time of commands since `times` was written there, in whole seconds;
# others may be busy beside this test.
seconds_since() {
    times >"$work/now"
    cat "$1" "$work/now" | tr 'ms' '  ' |
        awk 'NR % 2 == 0 { sum[NR] = 60 * ($1 + $3) + $2 + $4 } END { printf "%d", sum[4] - sum[2] }'
}

for name in mlp demo size5 gpt hostile compare stages hostile-stages; do
    page=$work/pages/$name/index.html
    if command -v tidy >/dev/null; then
        claim "Tidy finds nothing in the page of $name" tidy_finds_nothing "$page"
    else
        skip "tidy is not installed"
    fi
    if command -v xmllint >/dev/null; then
        run xmllint --nonet --noout --huge "$page"
        claim "the page of $name is well formed, too" exits 0
    else
        skip "xmllint is not installed"
    fi
    claim "the page of $name takes less than 3 MB" [ "$(wc -c <"$page")" -lt 3000000 ]
done

if command -v tidy >/dev/null; then
    sed 's/<h1>/<h1><p>/' "$work/pages/mlp/index.html" >"$work/wrong.html"
    claim "a wrong page is found wrong" sh -c "! tidy -quiet -errors '$work/wrong.html' 2>/dev/null"
fi
if command -v dot >/dev/null; then
    times >"$work/before"
    run meshtf-report "$work/pages/gpt.plan" -o "$work/again"
    claim "96 layers are drawn" test -s "$work/again/graph.svg"
    case $build in
    *asan) ;;
    *) claim "in less than 5 seconds" [ "$(seconds_since "$work/before")" -lt 5 ] ;;
    esac
else
    skip "dot is not installed"
fi
done_testing
