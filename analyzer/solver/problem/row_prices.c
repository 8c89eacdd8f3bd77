// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/solver/problem/row_prices.h"

MtfRowPrices *mtf_row_prices_new(int count) {
    MtfRowPrices *prices = g_new(MtfRowPrices, 1);
    *prices = (MtfRowPrices){ count, g_new0(int64_t, count + 1), g_new0(double, count + 1) };
    return prices;
}

MtfRowPrices *mtf_row_prices_copy(const MtfRowPrices *prices) {
    MtfRowPrices *copy = mtf_row_prices_new(prices->count);
    for (int i = 0; i < prices->count; i++) {
        copy->times[i] = prices->times[i];
        copy->per_unit[i] = prices->per_unit[i];
    }
    return copy;
}

void mtf_row_prices_free(MtfRowPrices *prices) {
    if (prices == NULL)
        return;
    g_free(prices->times);
    g_free(prices->per_unit);
    g_free(prices);
}
