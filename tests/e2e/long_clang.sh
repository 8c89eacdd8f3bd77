# SPDX-License-Identifier: GPL-3.0-or-later
# seconds: 900
# The tree compiles by clang as it does by gcc, warnings being errors.
. tests/support/tap.sh
if ! command -v clang >/dev/null; then
    skip "there is no clang here"
    done_testing
fi
run env MTF_BUILD="${MTF_BUILD:-build/release}" sh tests/lint/lint.sh clang
claim "clang has nothing to say" exits 0
done_testing
