#!/usr/bin/env python3
"""Tests scripts/scenarios.py with a stand-in for mrc whose results are known."""

import json
import pathlib
import stat
import subprocess
import sys
import tempfile
import textwrap
import unittest

RUNNER = pathlib.Path(__file__).resolve().parent.parent / "scripts/scenarios.py"

# Prints what its arguments ask for: --x N gives {"x": N * seed}, and every call leaves a line in
# the file `calls`.
STAND_IN = """#!/usr/bin/env python3
import json, pathlib, sys
with open(pathlib.Path(__file__).parent / "calls", "a") as calls:
    print(*sys.argv[1:], file=calls)
words = [w for w in sys.argv[2:] if w != "--json"]
values = {k[2:]: v for k, v in zip(words, words[1:]) if k.startswith("--")}
if "fail" in values:
    sys.exit("mrc: no such fault")
x = float(values.get("x", 1)) * float(values["seed"])
print(json.dumps({"bytes_wrong": int(values.get("wrong", 0)), "x": {"max": x},
                  "finished": "stuck" not in values}))
"""


class RunnerTest(unittest.TestCase):
    def setUp(self):
        self.holder = tempfile.TemporaryDirectory()
        self.addCleanup(self.holder.cleanup)
        self.folder = pathlib.Path(self.holder.name)
        self.program = self.folder / "mrc"
        self.program.write_text(STAND_IN, encoding="utf-8")
        self.program.chmod(self.program.stat().st_mode | stat.S_IXUSR)

    def run_scenario(self, text, *options):
        (self.folder / "sample.toml").write_text(
            'title = "Sample"\ntags = ["short"]\nseeds = [1, 2, 3]\n' + textwrap.dedent(text),
            encoding="utf-8")
        results = self.folder / "results.json"
        done = subprocess.run(
            [sys.executable, "-B", str(RUNNER), "--mrc", str(self.program), "--folder",
             str(self.folder), "--json", str(results), *options],
            capture_output=True, text=True, check=False)
        rows = json.loads(results.read_text(encoding="utf-8"))["rows"] if results.exists() else []
        return done, rows

    def verdict(self, limits):
        return self.run_scenario(f"""
            [run.a]
            [[measure]]
            what = "x"
            value = "a.x.max"
            {limits}
            """)

    def test_the_worst_seed_decides(self):
        done, rows = self.verdict("bar = 3")
        self.assertEqual((done.returncode, rows[0]["verdict"]), (0, "bar"))
        self.assertEqual((rows[0]["worst"], rows[0]["mean"]), (3, 2))
        done, rows = self.verdict("bar = 2.9")
        self.assertEqual((done.returncode, rows[0]["verdict"]), (1, "MISSED"))
        self.assertIn("mrc sim --seed 3 --json", done.stdout)

    def test_the_mean_has_an_interval(self):
        _, rows = self.verdict("")
        # Values 1, 2, 3: deviation 1, Student's t for two degrees of freedom 4.303.
        self.assertAlmostEqual(rows[0]["ci95"], 4.303 / 3 ** 0.5, places=6)
        _, rows = self.run_scenario("[run.a]\nseed = 2\n[[measure]]\nwhat='x'\nvalue='a.x.max'")
        self.assertEqual(rows[0]["ci95"], 0)

    def test_seeds_may_be_ranges(self):
        text = "[run.a]\n[[measure]]\nwhat = 'x'\nvalue = 'a.x.max'\n"
        _, rows = self.run_scenario(text, "--seeds", "2-4,9")
        self.assertEqual(list(rows[0]["seeds"]), ["2", "3", "4", "9"])
        for bad in ("4-2", "x", "1,,2", "-3"):
            done, _ = self.run_scenario(text, "--seeds", bad)
            self.assertEqual(done.returncode, 2, bad)

    def test_placements_are_run_with_all_seeds(self):
        done, rows = self.run_scenario("""
            placements = ["linear", "strided"]
            [run.a]
            [run.b]
            placement = "shuffled"
            [[measure]]
            what = "x"
            value = "a.x.max / b.x.max"
            bar = 0.5
            """)
        self.assertEqual(list(rows[0]["seeds"]), [f"{p}/{s}" for p in ("linear", "strided")
                                                  for s in (1, 2, 3)])
        calls = (self.folder / "calls").read_text(encoding="utf-8").splitlines()
        self.assertEqual(len(calls), 9)  # b is the same for both
        self.assertIn("mrc sim --seed 1 --placement linear --json", done.stdout)

    def test_higher_may_be_better(self):
        done, rows = self.verdict('better = "higher"\nbar = 1\ngoal = 2')
        self.assertEqual((done.returncode, rows[0]["verdict"], rows[0]["worst"]), (0, "bar", 1))

    def test_goals_are_told_apart_from_bars(self):
        self.assertEqual(self.verdict("bar = 9\ngoal = 3")[1][0]["verdict"], "goal")
        done, rows = self.verdict("goal = 1")
        self.assertEqual((done.returncode, rows[0]["verdict"]), (0, "not yet"))
        self.assertEqual(self.verdict("")[1][0]["verdict"], "-")

    def test_cases_change_arguments_and_limits(self):
        done, rows = self.run_scenario("""
            cases = [{ label = "one", args = { x = 1 } }, { label = "ten", a = { x = 10 } }]
            [run.a]
            x = 5
            [run.b]
            seed = 2
            x = 4
            [[measure]]
            what = "share"
            value = "max(a.x.max, 0) / b.x.max + 1 - 1"
            bar = { "one" = 1.0, "ten" = 3.0 }
            """)
        self.assertEqual([row["scenario"] for row in rows], ["sample one", "sample ten"])
        # b has a seed of its own: 8, or 2 where the case sets x for all runs.
        self.assertEqual([row["worst"] for row in rows], [1.5, 3.75])
        self.assertEqual([row["bar"] for row in rows], [1.0, 3.0])
        self.assertEqual(done.returncode, 1)

    def test_equal_commands_are_run_once(self):
        self.run_scenario("""
            [run.a]
            [run.b]
            seed = 1
            [[measure]]
            what = "x"
            value = "a.x.max / b.x.max"
            """)
        calls = (self.folder / "calls").read_text(encoding="utf-8").splitlines()
        self.assertEqual(len(calls), 3)

    def test_a_run_that_fails_fails_its_scenario(self):
        for key in ('fail = "t9:1 down"', "wrong = 3", "stuck = 1"):
            done, rows = self.run_scenario(f"""
                [run.a]
                {key}
                [[measure]]
                what = "x"
                value = "a.x.max"
                bar = 100
                """)
            self.assertEqual((done.returncode, rows[0]["verdict"]), (1, "FAILED"), key)

    def test_a_baseline_may_stay_unfinished(self):
        done, rows = self.run_scenario("""
            [run.a]
            stuck = 1
            may_fail = true
            [[measure]]
            what = "x"
            value = "a.x.max"
            bar = 100
            """)
        self.assertEqual((done.returncode, rows[0]["verdict"]), (0, "bar"))

    def test_bad_files_are_named(self):
        for text, why in (("[run.a]\n", "measure is missing"),
                          ("colour = 1\n[run.a]\n", "unknown key colour"),
                          ("placements = 3\n[run.a]\n[[measure]]\nwhat='x'\nvalue='a.x'\n",
                           "placements are a list"),
                          ("[run.a]\n[[measure]]\nwhat = 'x'\nvalue = 'b.x'\n", "names no run"),
                          ("[run.a]\n[[measure]]\nwhat = 'x'\nvalue = 'a.x +'\n", "value:"),
                          ("[run.a]\n[[measure]]\nwhat = 'x'\n", "a measure has what, value"),
                          ("[run.a\n", "sample.toml")):
            done, _ = self.run_scenario(text)
            self.assertEqual(done.returncode, 2, text)
            self.assertIn(why, done.stderr)
            self.assertIn("sample.toml", done.stderr)

    def test_nothing_to_run_is_an_error(self):
        self.assertEqual(self.run_scenario("[run.a]\n", "other")[0].returncode, 2)


if __name__ == "__main__":
    unittest.main()
