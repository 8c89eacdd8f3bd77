# SPDX-License-Identifier: GPL-3.0-or-later
# What each group of layouts takes of the mean rank correlation that judge prints: of a line a group,
#
#     layouts of GPT on 64, vTrain: rows 18, rank correlation 0.971, regret 0.0 %, rank correlation of a second measurement 0.97
#
# its runs times what its correlation lacks of 1, the group that lacks most first, and how much all of them may lack for 0.95.
#
#     awk -f rank_groups.awk JUDGED

function number_after(words) {
    return match($0, words " [0-9.]+") ? substr($0, RSTART + length(words) + 1, RLENGTH - length(words) - 1) : 0
}

/^layouts of .*, rank correlation [0-9]/ {
    groups++
    name[groups] = substr($0, 12, index($0, ",") - 12)
    rows[groups] = number_after(": rows")
    ours[groups] = number_after(", rank correlation")
    again[groups] = number_after("second measurement")
    all += rows[groups]
    ours_sum += rows[groups] * ours[groups]
    again_sum += rows[groups] * again[groups]
}

END {
    for (n = 0; n < groups; n++) {
        worst = 0
        for (i = 1; i <= groups; i++)
            if (!(i in told) && (!worst || rows[i] * (1 - ours[i]) > rows[worst] * (1 - ours[worst])))
                worst = i
        told[worst] = 1
        printf "%-46s %2d x (1 - %.3f) = %4.1f; a second measurement %2d x (1 - %.2f) = %4.1f\n", name[worst], rows[worst], ours[worst],
            rows[worst] * (1 - ours[worst]), rows[worst], again[worst], rows[worst] * (1 - again[worst])
    }
    printf "all %d: %.1f, where 0.95 may lack %.1f; a second measurement %.1f\n", all, all - ours_sum, 0.05 * all, all - again_sum
}
