# SPDX-License-Identifier: GPL-3.0-or-later
# Every public prototype says what it does: a comment stands above it or above the group that it stands
# in (lines without a blank one between), or behind it. Functions that free, clear or unref what another
# one made need none. Relies on the formatter: a prototype begins at the left margin.
FNR == 1 {
    told = open = 0
}

/^[ \t]*$/ {
    told = 0
}

# A prototype may take several lines; it ends where its last parenthesis is closed.
/^[A-Za-z_].*\(/ && !/^(typedef|static|return|extern)/ && !/^[A-Z_]+\(/ && !/\{$/ {
    open = FNR
    told_here = told
    name = $0
    sub(/\(.*/, "", name)
    sub(/.*[ *]/, "", name)
}

/\*\// {
    told = 1
}

open && /;/ {
    if (!told_here && !/\/\*/ && name !~ /_(free|clear|unref)$/)
        printf "%s:%d: %s has no comment that says what it does\n", FILENAME, open, name
    open = 0
}
