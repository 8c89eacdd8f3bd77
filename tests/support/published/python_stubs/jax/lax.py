# SPDX-License-Identifier: GPL-3.0-or-later
def with_sharding_constraint(x, placed):
    placed.check(x)
    return x
