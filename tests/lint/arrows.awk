# SPDX-License-Identifier: GPL-3.0-or-later
# Whom the rooms of rooms.txt (the first file read) may use and do not: an arrow that no include of the
# room needs. Rooms without a file are left out.
function folder_of(path) {
    return substr(path, 1, match(path, "/[^/]*$") - 1)
}

FILENAME ~ /rooms\.txt$/ {
    if (/^[a-z]/) {
        room = $1
        sub(/:$/, "", room)
        sub(/^[^:]*: */, "")
        uses[room] = $0
    }
    next
}

FNR == 1 {
    room = folder_of(FILENAME)
    inhabited[room] = 1
}

/^#include "/ {
    split($0, quoted, "\"")
    used[room, folder_of(quoted[2])] = 1
}

END {
    for (room in uses) {
        count = room in inhabited ? split(uses[room], use, " ") : 0
        for (i = 1; i <= count; i++)
            if (!((room, use[i]) in used))
                print "rooms.txt: " room " uses nothing of " use[i] "/"
    }
}
