# SPDX-License-Identifier: GPL-3.0-or-later
# The limits of style.md: a function of over 60 lines or 6 parameters is asking to be split. Relies on
# the formatter: a definition starts at the left margin and ends with a brace there. The GError ** that ends
# the list of a fallible function is a result, not counted, and a wrapper of an MPI function or callback of
# libmicrohttpd (mhd_) has the parameters that those gave it. TEST(name) is called as its test.
function find(line, sentence) {
    printf "%s:%d: %s\n", FILENAME, line, sentence
}

# The number of parameters in "type name(…) {": top-level commas of the last parenthesis.
function parameters(text, depth, i, c, commas) {
    sub(/\)[^)]*$/, "", text)
    for (i = length(text); i > 0; i--) {
        c = substr(text, i, 1)
        if (c == ")")
            depth++
        else if (c == "(" && depth-- == 0)
            break
        else if (c == "," && depth == 0)
            commas++
    }
    text = substr(text, i + 1)
    return text ~ /^(void)?$/ ? 0 : commas + (text !~ /GError \*\*[a-z]*$/)
}

function name_of(text) {
    if (sub(/^TEST(_WITH)?\(/, "", text))
        sub(/[,)].*/, "", text)
    sub(/\(.*/, "", text)
    sub(/.*[ *]/, "", text)
    return text
}

FNR == 1 || /^$/ || /^#/ {
    if (FNR == 1)
        inside = 0
    if (!inside)
        head = ""
}

inside {
    if (/^}/) {
        lines = FNR - start + 1
        if (lines > 60)
            find(start, name " has " lines " lines, over 60")
        inside = 0
    }
    next
}

/^[A-Za-z_]/ && head == "" {
    head_line = FNR
}

/^[A-Za-z_]/ || (head != "" && /^[ \t]/) {
    head = head $0
    if (head ~ /\) \{$/) {
        inside = 1
        start = head_line
        name = name_of(head)
        count = parameters(head)
        if (count > 6 && name !~ /^(MPI|mhd)_/)
            find(start, name " has " count " parameters, over 6")
        head = ""
    } else if (head ~ /[;{}]$/) {
        head = ""
    }
}
