# SPDX-License-Identifier: GPL-3.0-or-later
# alone: it calls make
# What make install copies runs from any folder, and make uninstall removes it.
. tests/support/tap.sh
stage=$work/stage
target() {
    run env -u MAKEFLAGS -u MAKELEVEL make -s BUILD="$(basename "$build")" PREFIX=/opt/meshtf DESTDIR="$stage" "$1"
}

# in_folder FOLDER COMMAND...: runs a command in another folder.
in_folder() {
    cd "$1" || return
    shift
    run "$@"
    cd "$top" || exit 1
}

same_output() {
    [ "$(cat "$work/out")" = "$expected" ]
}

run meshtf-plan machines
expected=$(cat "$work/out")
in_folder "$work" meshtf-plan machines
claim "the build tree's library is found from any folder" same_output

target install
claim "install succeeds" exits 0
for program in meshtf-plan meshtf-report meshtf-run; do
    claim "$program is installed" [ -x "$stage/opt/meshtf/bin/$program" ]
    claim "with its manual" grep -q '^.SH EXIT STATUS' "$stage/opt/meshtf/share/man/man1/$program.1"
    claim "its completion for bash" \
        grep -q "^complete .* $program\$" "$stage/opt/meshtf/share/bash-completion/completions/$program"
    claim "and for zsh" grep -q "^#compdef $program\$" "$stage/opt/meshtf/share/zsh/site-functions/_$program"
done
in_folder "$work" "$stage/opt/meshtf/bin/meshtf-plan" machines
claim "the installed program finds the installed library" same_output
mv "$stage/opt/meshtf" "$stage/moved"
in_folder "$work" "$stage/moved/bin/meshtf-plan" machines
claim "the whole installation may be moved" same_output
mv "$stage/moved" "$stage/opt/meshtf"

target uninstall
claim "uninstall succeeds" exits 0
claim "uninstall leaves no file" [ -z "$(find "$stage" -type f)" ]
done_testing
