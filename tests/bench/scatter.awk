# SPDX-License-Identifier: GPL-3.0-or-later
# prediction.csv as a scatter plot: measured over predicted seconds on logarithmic axes, the diagonal
# and 10 % beside it, a dot a plan (filled: one rank; ring: two), its name on hover.
BEGIN { FS = ","; size = 480; margin = 56; low = 1e9; high = 0 }
NR > 1 {
    n++
    name[n] = $1 ", " $2 " rank" ($2 > 1 ? "s" : "") ", " $3; ranks[n] = $2; x[n] = $4; y[n] = $5
    low = x[n] < low ? x[n] : low; low = y[n] < low ? y[n] : low
    high = x[n] > high ? x[n] : high; high = y[n] > high ? y[n] : high
}
function log10(v) { return log(v) / log(10) }
function at(v) { return (log10(v) - from) / (to - from) * size }
function line(x1, y1, x2, y2, style) {
    printf "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" %s/>\n", margin + x1, margin + size - y1, margin + x2, margin + size - y2, style
}
END {
    from = log10(low / 1.3); to = log10(high * 1.3); whole = size + 2 * margin
    printf "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" font-family=\"sans-serif\" font-size=\"12\">\n", whole, whole
    printf "<title>Predicted and measured seconds of a step</title>\n<rect width=\"%d\" height=\"%d\" fill=\"white\"/>\n", whole, whole
    for (e = int(from) - 1; e <= to; e++) for (k = 1; k <= 5; k += k == 1 ? 1 : 3) {
        v = k * 10 ^ e
        if (v < 10 ^ from || v > 10 ^ to) continue
        label = v < 1 ? v * 1e3 " ms" : v " s"
        line(at(v), 0, at(v), size, "stroke=\"#ddd\""); line(0, at(v), size, at(v), "stroke=\"#ddd\"")
        printf "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%s</text>\n", margin + at(v), margin + size + 18, label
        printf "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%s</text>\n", margin - 6, margin + size - at(v) + 4, label
    }
    line(0, 0, size, size, "stroke=\"#555\"")
    off = log10(1.1) / (to - from) * size
    line(0, off, size - off, size, "stroke=\"#999\" stroke-dasharray=\"4 4\"")
    line(off, 0, size, size - off, "stroke=\"#999\" stroke-dasharray=\"4 4\"")
    for (i = 1; i <= n; i++)
        printf "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"5\" fill=\"%s\" stroke=\"#0b62a4\" stroke-width=\"2\"><title>%s: predicted %.4g s, measured %.4g s</title></circle>\n", \
            margin + at(x[i]), margin + size - at(y[i]), (ranks[i] > 1 ? "none" : "#0b62a4"), name[i], x[i], y[i]
    printf "<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">predicted</text>\n", margin + size / 2, whole - 12
    printf "<text x=\"14\" y=\"%d\" text-anchor=\"middle\" transform=\"rotate(-90 14 %d)\">measured</text>\n", margin + size / 2, margin + size / 2
    print "</svg>"
}
