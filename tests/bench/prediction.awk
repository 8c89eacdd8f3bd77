# SPDX-License-Identifier: GPL-3.0-or-later
# The table of prediction.csv, and how good the predictions are: rank correlation (Spearman's, ties
# by mean ranks), median and worst error, and whether the layout of each model and number of ranks
# that is predicted fastest is the fastest or within 5 % of it. Exits 1 where one falls short.
BEGIN { FS = "," }
NR == 1 {
    printf "%-10s %5s %-22s %12s %12s %8s %12s\n", "model", "ranks", "layout", "predicted", "measured", "error", "samples"
    next
}
{
    n++
    predicted[n] = $4; measured[n] = $5; error[n] = $6 < 0 ? -$6 : $6
    printf "%-10s %5d %-22s %9.3f ms %9.3f ms %+7.1f%% %5d/%d\n", $1, $2, $3, 1e3 * $4, 1e3 * $5, 100 * $6, $7, $8
    group = $1 "." $2
    if (!(group in best) || $4 < best_predicted[group]) { best_predicted[group] = $4; best[group] = $5 }
    if (!(group in fastest) || $5 < fastest[group]) fastest[group] = $5
}
# The place of value i among all, from 1; equal ones share the mean.
function place(values, i,    k, below, equal) {
    for (k = 1; k <= n; k++) { below += values[k] < values[i]; equal += values[k] == values[i] }
    return below + (equal + 1) / 2
}
END {
    if (n < 16) { print n + 0 " plans are too few to judge by: SHORT"; exit 1 }
    for (i = 1; i <= n; i++) {
        x = place(predicted, i) - (n + 1) / 2; y = place(measured, i) - (n + 1) / 2
        xy += x * y; xx += x * x; yy += y * y
    }
    correlation = xy / sqrt(xx * yy)
    for (i = 1; i <= n; i++) for (k = i + 1; k <= n; k++) if (error[k] < error[i]) { t = error[i]; error[i] = error[k]; error[k] = t }
    median = n % 2 ? error[(n + 1) / 2] : (error[n / 2] + error[n / 2 + 1]) / 2
    for (group in best) { loss = best[group] / fastest[group] - 1; if (loss > worst_loss) worst_loss = loss }
    good = correlation >= 0.9 && median <= 0.1 && error[n] <= 0.3 && worst_loss <= 0.05
    printf "%d plans: rank correlation %.3f, median error %.1f %%, worst %.1f %%; the layout predicted fastest is at most %.1f %% slower than the fastest: %s\n", \
        n, correlation, 100 * median, 100 * error[n], 100 * worst_loss, good ? "ok" : "SHORT"
    exit !good
}
