#!/usr/bin/env python3
"""The plans of chaos runs: repeatable, varied, and never without a way."""

import unittest

import chaos_plan
from chaos_plan import Fabric, make_plan, ways

FABRIC = Fabric()


class Plan(unittest.TestCase):
    def test_one_seed_is_one_plan(self):
        self.assertEqual(make_plan(7, 60, FABRIC, 1), make_plan(7, 60, FABRIC, 1))
        self.assertNotEqual(make_plan(7, 60, FABRIC, 1), make_plan(8, 60, FABRIC, 1))

    def test_faults_come_every_one_to_five_seconds(self):
        plan = make_plan(3, 600, FABRIC, 1)
        gaps = [b.at_s - a.at_s for a, b in zip(plan, plan[1:])]
        self.assertGreaterEqual(min(gaps), chaos_plan.GAP_S[0])
        self.assertGreater(len(plan), 600 / chaos_plan.GAP_S[1] / 2)

    def test_every_kind_comes_up(self):
        kinds = {event.kind for event in make_plan(1, 3_000, FABRIC, 1)}
        self.assertEqual(len(kinds), 16, kinds)

    def test_at_every_moment_all_pairs_have_a_way(self):
        for least in (1, 2):
            for seed in range(20):
                plan = make_plan(seed, 120, FABRIC, least)
                for moment in plan:
                    active = [e.broken for e in plan
                              if e.at_s <= moment.at_s < e.at_s + e.lasts_s]
                    broken = frozenset().union(*active)
                    for pair in FABRIC.pairs():
                        self.assertGreaterEqual(ways(FABRIC, pair, broken), least)

    def test_ways_are_counted(self):
        self.assertEqual(ways(FABRIC, (0, 1), frozenset()), 2)
        self.assertEqual(ways(FABRIC, (0, 2), frozenset()), 8)
        self.assertEqual(ways(FABRIC, (0, 2), frozenset({("t1", 0, 3)})), 7)
        self.assertEqual(ways(FABRIC, (0, 2), frozenset({("cable", 0, 1, 3)})), 7)
        self.assertEqual(ways(FABRIC, (0, 2), frozenset({("t0", 1, 0)})), 4)
        self.assertEqual(ways(FABRIC, (0, 1), frozenset({("port", 1, 1)})), 1)


if __name__ == "__main__":
    unittest.main()
