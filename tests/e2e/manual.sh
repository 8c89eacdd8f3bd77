# SPDX-License-Identifier: GPL-3.0-or-later
# Manual pages and completion for shells tell of the options that --help does, and work.
# The scripts given to other shells expand their own variables.
# shellcheck disable=SC2016
. tests/support/tap.sh

programs='meshtf-plan meshtf-report meshtf-run'
for program in $programs; do
    run "$program" --manual
    claim "$program has a manual" exits 0
    cp "$work/out" "$work/$program.1"
    for shell in bash zsh; do
        run "$program" --completion=$shell
        claim "and completion for $shell" exits 0
        cp "$work/out" "$work/$program.$shell"
    done
done

# told_of OPTION PROGRAM: the manual, less its marks, and both completions hold it.
told_of() {
    sed 's/[\]f[BIR]//g; s/[\]//g' "$work/$2.1" | grep -q -e "--$1\b" && grep -q -e "--$1\b" "$work/$2.bash" &&
        grep -q -e "--$1\b" "$work/$2.zsh"
}

# options_are_told_of PROGRAM COMMAND...: those of its --help.
options_are_told_of() {
    program=$1
    "$@" --help | grep -oE -- '^ *(-[a-z], )?--[a-z0-9-]+' | grep -oE -- '--.*' >"$work/options"
    [ "$(wc -l <"$work/options")" -gt 1 ] || return
    while read -r option; do
        [ "$option" = --help ] || told_of "${option#--}" "$program" || { echo "# $option"; return 1; }
    done <"$work/options"
}

for command in $(meshtf-plan --help | awk '/^  / && $1 != "help" { print $1 }'); do
    claim "all options of $command are told of" options_are_told_of meshtf-plan "$command"
    claim "and so is $command" grep -q "^.SS \"$command " "$work/meshtf-plan.1"
done
claim "all options of meshtf-report are told of" options_are_told_of meshtf-report
claim "all options of meshtf-run are told of" options_are_told_of meshtf-run

for program in $programs; do
    if command -v mandoc >/dev/null; then
        run mandoc -Tlint -Wwarning "$work/$program.1"
        claim "mandoc finds nothing in the manual of $program" exits 0
    else
        skip "mandoc is not installed"
    fi
    if command -v zsh >/dev/null; then
        run zsh -f -n "$work/$program.zsh"
        claim "zsh can read the completion of $program" exits 0
    else
        skip "zsh is not installed"
    fi
done

# completes PROGRAM WORD...: what bash would offer at the end of that line, a line each.
completes() {
    bash -f -c 'source "$1"; shift; function=_${1//-/_}; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1))
        $function; printf "%s\n" "${COMPREPLY[@]}"' bash "$work/$1.bash" "$@" >"$work/out"
}

offers() {
    [ "$(tr '\n' ' ' <"$work/out")" = "$1" ] || { echo "# offers: $(cat "$work/out")"; return 1; }
}

completes meshtf-plan e
claim "bash completes commands" offers "estimate export explain "
completes meshtf-plan search --lay
claim "options of a command" offers "--layouts= "
completes meshtf-plan search --layouts ''
claim "words to choose from" offers "rule free "
completes meshtf-plan search --layouts = r
claim "also behind an equals sign" offers "rule "
completes meshtf-plan search --machine tpu-v5
claim "and machines of the library" offers "tpu-v5e tpu-v5p "
completes meshtf-plan check x
claim "elsewhere files, which bash does itself" offers " "
completes meshtf-run --check
claim "options of meshtf-run" offers "--checkpoint= --checkpoint-every= "
completes meshtf-report --exp
claim "options of meshtf-report" offers "--export= "

if command -v zsh >/dev/null; then
    run zsh -f -c '_arguments() { print -rl -- "$@" }; words=(meshtf-plan search ""); CURRENT=3
        source "$1"' zsh "$work/meshtf-plan.zsh"
    claim "zsh gets the options of the command" says '--layouts=[Kind of layouts (the better)]:rule|free:(rule free)'
else
    skip "zsh is not installed"
fi
run meshtf-plan compare --help
claim "help is written in full whatever the locale" says 'PLAN PLAN…'
done_testing
