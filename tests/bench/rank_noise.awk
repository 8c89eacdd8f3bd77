# SPDX-License-Identifier: GPL-3.0-or-later
# What rank correlation of layouts to expect of a perfect prediction, that is of a second measurement of
# the same runs whose times differ by a normal share of standard deviation `noise`: the mean of 200
# draws, in groups of one source, model and number of devices, weighted by rows as judge weighs them; and
# how many pairs of layouts whose times are more than `apart` apart are predicted in the measured order.
#
#     awk -f rank_noise.awk FS=' ' JUDGED FS='\t' RUNS.tsv    JUDGED: lines of judge, of the rows that count

function rank(x, n, i, j,    r) {
    r = 0
    for (j = 1; j <= n; j++)
        r += x[j] < x[i] ? 1 : x[j] == x[i] ? 0.5 : 0
    return r
}

function spearman(x, y, n,    i, a, b, xy, xx, yy) {
    for (i = 1; i <= n; i++) {
        a = rank(x, n, i) - n / 2
        b = rank(y, n, i) - n / 2
        xy += a * b
        xx += a * a
        yy += b * b
    }
    return xx * yy > 0 ? xy / sqrt(xx * yy) : 0
}

function normal() {
    return sqrt(-2 * log(1 - rand())) * cos(8 * atan2(1, 1) * rand())
}

function expected(noise,    group, n, i, draw, sum, rows, first, second) {
    for (group in count) {
        n = count[group]
        if (n < 3)
            continue
        rows += n
        for (draw = 0; draw < 200; draw++) {
            for (i = 1; i <= n; i++) {
                first[i] = seconds[group, i]
                second[i] = first[i] * (1 + noise * normal())
            }
            sum += n * spearman(first, second, n) / 200
        }
    }
    return sum / rows
}

function pairs(apart,    group, i, j, few, more, all, right) {
    for (group in count) {
        for (i = 1; count[group] >= 3 && i <= count[group]; i++) {
            for (j = 1; j <= count[group]; j++) {
                few = seconds[group, i]
                more = seconds[group, j]
                if (more > few * (1 + apart)) {
                    all++
                    right += guess[group, j] > guess[group, i]
                }
            }
        }
    }
    return sprintf("%d of %d (%.1f %%)", right, all, all ? 100 * right / all : 0)
}

NR == FNR {
    if ($5 == "%") {
        predicted[$1] = $2
        measured[$1] = $3
    }
    next
}

FNR == 1 {
    for (i = 1; i <= NF; i++)
        column[$i] = i
    next
}

$column["id"] in measured {
    group = $column["source"] "|" $column["hardware"] "|" $column["model"] "|" $column["devices"] "|" \
        $column["layers"] "|" $column["d_model"] "|" $column["seq_len"]
    seconds[group, ++count[group]] = measured[$column["id"]] / $column["global_batch"]
    guess[group, count[group]] = predicted[$column["id"]] / $column["global_batch"]
}

END {
    srand(1)
    for (noise = 1; noise <= 6; noise += noise < 3 ? 1 : 3)
        printf "two measurements %d %% apart: %.3f\n", noise, expected(noise / 100)
    for (apart = 3; apart <= 6; apart += 3)
        printf "pairs of layouts over %d %% apart in the measured order: %s\n", apart, pairs(apart / 100)
}
