// SPDX-License-Identifier: GPL-3.0-or-later
/* Every algorithm, carried out on paper: all members' vectors in one process, round by round, on
 * groups of 1 to 8 members of every shape, with ragged and empty blocks. */
#include "tests/support/cmocka.h"

#include "layouts/exchange/exchange_algorithm.h"

#include <string.h>

#define MEMBERS 8
#define ELEMENTS 200

typedef struct {
    MtfExchangeShape shape;
    int64_t blocks[MEMBERS], starts[MEMBERS + 1];
    GArray *messages[MEMBERS];
    int64_t vector[MEMBERS][ELEMENTS], before[MEMBERS][ELEMENTS];
} Group;

static const MtfReshardKind kinds[] = { MTF_RESHARD_ALLREDUCE, MTF_RESHARD_REDUCE_SCATTER,
                                        MTF_RESHARD_ALLGATHER };

static const struct {
    int n_axes, sizes[3];
} shapes[] = { { 1, { 2 } },    { 1, { 3 } },    { 1, { 4 } },    { 1, { 5 } },
               { 1, { 6 } },    { 1, { 7 } },    { 1, { 8 } },    { 2, { 2, 2 } },
               { 2, { 2, 3 } }, { 2, { 3, 2 } }, { 2, { 4, 2 } }, { 3, { 2, 2, 2 } } };

/* A term that only member m has at element i. */
static int64_t term(int m, int64_t i) {
    return (INT64_C(1) << (6 * m)) * (1 + i % 7);
}

static void group_init(Group *g, MtfReshardKind kind, int shape, int ragged) {
    *g = (Group){ .shape = { .kind = kind, .n_axes = shapes[shape].n_axes, .n_members = 1 } };
    for (int a = 0; a < g->shape.n_axes; a++)
        g->shape.n_members *= g->shape.sizes[a] = shapes[shape].sizes[a];
    for (int i = 0; i < g->shape.n_members; i++) {
        g->blocks[i] = ragged == 0 ? 6 : (i * 5 + ragged) % (3 * ragged);
        g->starts[i + 1] = g->starts[i] + g->blocks[i];
    }
    g->shape.blocks = g->blocks;
    for (int m = 0; m < g->shape.n_members; m++)
        for (int64_t i = 0; i < g->starts[g->shape.n_members]; i++) {
            bool own = i >= g->starts[m] && i < g->starts[m + 1];
            g->vector[m][i] = kind != MTF_RESHARD_ALLGATHER || own ? term(m, i) : -1;
        }
}

static const MtfExchangeMessage *message(const Group *g, int member, guint i) {
    return &g_array_index(g->messages[member], MtfExchangeMessage, i);
}

/* The message that answers `t` of `member`: the peer's k-th of that round and direction, where t is
 * the member's k-th to or from that peer. */
static const MtfExchangeMessage *answer(const Group *g, int member, guint at) {
    const MtfExchangeMessage *t = message(g, member, at);
    int k = 0;
    for (guint i = 0; i < at; i++) {
        const MtfExchangeMessage *other = message(g, member, i);
        k += other->peer == t->peer && other->sends == t->sends && other->round == t->round;
    }
    for (guint i = 0; i < g->messages[t->peer]->len; i++) {
        const MtfExchangeMessage *other = message(g, t->peer, i);
        if (other->peer == member && other->sends != t->sends && other->round == t->round &&
            k-- == 0)
            return other;
    }
    return NULL;
}

/* One round: everybody receives what the others had before it. */
static void run_round(Group *g, int round) {
    memcpy(g->before, g->vector, sizeof g->vector);
    for (int m = 0; m < g->shape.n_members; m++)
        for (guint i = 0; i < g->messages[m]->len; i++) {
            const MtfExchangeMessage *t = message(g, m, i);
            if (t->round != round || t->sends)
                continue;
            for (int64_t e = t->first; e < t->first + t->count; e++)
                g->vector[m][e] = g->before[t->peer][e] + (t->combines ? g->vector[m][e] : 0);
        }
}

static void run_group(Group *g, MtfExchangeAlgorithm algorithm) {
    int rounds = 0;
    for (int m = 0; m < g->shape.n_members; m++) {
        g->messages[m] = mtf_exchange_messages_new(algorithm, &g->shape, m);
        assert_non_null(g->messages[m]);
        if (g->messages[m]->len > 0)
            rounds = MAX(rounds, 1 + message(g, m, g->messages[m]->len - 1)->round);
    }
    for (int round = 0; round < rounds; round++)
        run_round(g, round);
}

static void group_clear(Group *g) {
    for (int m = 0; m < g->shape.n_members; m++)
        if (g->messages[m] != NULL)
            g_array_unref(g->messages[m]);
}

static bool is_right(const Group *g) {
    for (int m = 0; m < g->shape.n_members; m++)
        for (int owner = 0; owner < g->shape.n_members; owner++)
            for (int64_t i = g->starts[owner]; i < g->starts[owner + 1]; i++) {
                int64_t wanted = 0;
                for (int k = 0; k < g->shape.n_members; k++)
                    wanted += g->shape.kind != MTF_RESHARD_ALLGATHER || k == owner ? term(k, i) : 0;
                if ((g->shape.kind != MTF_RESHARD_REDUCE_SCATTER || m == owner) &&
                    g->vector[m][i] != wanted)
                    return false;
            }
    return true;
}

/* Every message has its counterpart, and nobody gives away what it gets in the same round. */
static void check_messages(const Group *g) {
    for (int m = 0; m < g->shape.n_members; m++)
        for (guint i = 0; i < g->messages[m]->len; i++) {
            const MtfExchangeMessage *t = message(g, m, i), *other = answer(g, m, i);
            assert_non_null(other);
            assert_true(other->first == t->first && other->count == t->count);
            for (guint j = 0; j < g->messages[m]->len; j++) {
                const MtfExchangeMessage *u = message(g, m, j);
                assert_false(t->sends && !u->sends && t->round == u->round &&
                             t->first < u->first + u->count && u->first < t->first + t->count);
            }
        }
}

static int64_t sent(const Group *g, int member) {
    int64_t elements = 0;
    for (guint i = 0; i < g->messages[member]->len; i++)
        if (message(g, member, i)->sends)
            elements += message(g, member, i)->count;
    return elements;
}

/* Runs all that apply; returns how many did. */
static int check_algorithm(MtfExchangeAlgorithm algorithm) {
    int applied = 0;
    for (size_t k = 0; k < G_N_ELEMENTS(kinds); k++)
        for (int s = 0; s < (int)G_N_ELEMENTS(shapes); s++)
            for (int ragged = 0; ragged < 5; ragged++) {
                Group g;
                group_init(&g, kinds[k], s, ragged);
                if (!mtf_exchange_applies(algorithm, &g.shape))
                    continue;
                applied++;
                run_group(&g, algorithm);
                if (!is_right(&g))
                    fail_msg("%s: kind %d, shape %d, ragged %d",
                             mtf_exchange_algorithm_name(algorithm), (int)kinds[k], s, ragged);
                check_messages(&g);
                g.vector[0][0]++; /* a wrong element is noticed */
                assert_true(g.blocks[0] == 0 || !is_right(&g));
                group_clear(&g);
            }
    return applied;
}

/* 3 kinds, 12 shapes, 5 kinds of blocks; recursive halving scatters and gathers among 2, 4 and 8 alone,
 * bucket and hierarchical want several axes. One that this list lacks is told. */
TEST(every_algorithm_does_every_collective_it_applies_to) {
    static const int wanted[MTF_EXCHANGE_ALGORITHMS] = {
        [MTF_EXCHANGE_RING] = 3 * 12 * 5,
        [MTF_EXCHANGE_BIDIRECTIONAL_RING] = 3 * 12 * 5,
        [MTF_EXCHANGE_RECURSIVE] = (12 + 6 + 6) * 5,
        [MTF_EXCHANGE_BUCKET] = 3 * 5 * 5,
        [MTF_EXCHANGE_HIERARCHICAL] = 5 * 5,
    };
    for (int a = 0; a < MTF_EXCHANGE_ALGORITHMS; a++) {
        int applied = check_algorithm((MtfExchangeAlgorithm)a);
        if (applied != wanted[a])
            fail_msg("%s runs %d collectives, not %d",
                     mtf_exchange_algorithm_name((MtfExchangeAlgorithm)a), applied, wanted[a]);
    }
}

/* n = 8, blocks of 6 elements: an allreduce sends 2 * 7/8 of the vector by all of them (Patarasuk
 * and Yuan's bound); recursive halving in 2 * 3 rounds, the ring in 2 * 7. */
TEST(bandwidth_optimal_algorithms_send_the_least) {
    static const struct {
        MtfExchangeAlgorithm algorithm;
        int shape, rounds;
    } rows[] = { { MTF_EXCHANGE_RING, 6, 14 },
                 { MTF_EXCHANGE_BIDIRECTIONAL_RING, 6, 14 },
                 { MTF_EXCHANGE_RECURSIVE, 6, 6 },
                 { MTF_EXCHANGE_BUCKET, 11, 6 } };
    for (size_t i = 0; i < G_N_ELEMENTS(rows); i++) {
        Group g;
        group_init(&g, MTF_RESHARD_ALLREDUCE, rows[i].shape, 0);
        run_group(&g, rows[i].algorithm);
        const MtfExchangeMessage *last = message(&g, 3, g.messages[3]->len - 1);
        assert_int_equal(sent(&g, 3), 2 * 7 * 6);
        assert_int_equal(last->round + 1, rows[i].rounds);
        group_clear(&g);
    }
}

/* Five members: 1 gives its 30 elements to 0, which sends 2 * 3/4 of them among four (30/4 rounds
 * down to 7 or up to 8 elements a part) and all of them back. */
TEST(members_beyond_a_power_of_two_are_folded) {
    Group g;
    group_init(&g, MTF_RESHARD_ALLREDUCE, 3, 0);
    run_group(&g, MTF_EXCHANGE_RECURSIVE);
    assert_int_equal(sent(&g, 1), 30);
    assert_in_range(sent(&g, 0), 30 + 2 * 22, 30 + 2 * 23);
    group_clear(&g);
}

TEST(names_are_found_again) {
    for (int i = 0; i < MTF_EXCHANGE_ALGORITHMS; i++)
        assert_int_equal(
            mtf_exchange_algorithm_find(mtf_exchange_algorithm_name((MtfExchangeAlgorithm)i)), i);
    assert_int_equal(mtf_exchange_algorithm_find("carrier-pigeon"), -1);
}

TEST(even_blocks_differ_by_one_at_most) {
    int64_t blocks[3];
    mtf_exchange_even_blocks(7, 3, blocks);
    assert_true(blocks[0] == 2 && blocks[1] == 2 && blocks[2] == 3);
}
