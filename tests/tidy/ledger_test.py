#!/usr/bin/env python3
"""What scripts/ledger.py counts, and that nothing is counted twice.

Usage: ledger_test.py <source root>
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest


class Ledger(unittest.TestCase):
    root = None

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.ledger = self.folder / "ledger.tsv"

    def put(self, name, **lines):
        path = self.folder / f"{name}.json"
        lines = {label.replace("_", " "): value for label, value in lines.items()}
        path.write_text(json.dumps({"name": name, "lines": lines}), encoding="utf-8")

    def add(self, status=0):
        run = subprocess.run(
            [sys.executable, "-B", self.root / "scripts/ledger.py", "--results", self.folder,
             "--fuzz", self.folder, "--ledger", self.ledger, "--date", "2026-11-18"],
            text=True, stdout=subprocess.PIPE, check=False)
        self.assertEqual(run.returncode, status, run.stdout)
        return run.stdout

    def rows(self):
        lines = [line.split("\t") for line in self.ledger.read_text().splitlines()]
        return [dict(zip(lines[0], line)) for line in lines[1:]]

    def test_CountsWhatTheTestsWrote(self):
        self.put("dst", seeds=10, packets=100, faults=7, fault_forged_key=3, fault_gap_flood=2,
                 fault_stale_replay=4, fault_loss=5)
        self.put("dst_fresh", seeds=1, packets=1, faults=1)
        self.put("chaos", bytes_verified=1000, network_faults=9)
        self.put("call_faults", system_calls_that_failed=6)
        self.put("script", scripts=290)
        (self.folder / "frame.log").write_text("x\nstat::number_of_executed_units: 50\n")
        (self.folder / "ev.log").write_text("stat::number_of_executed_units: 5\n")
        self.add()
        row = self.rows()[0]
        self.assertEqual(row["date"], "2026-11-18")
        self.assertRegex(row["commit"], r"^[0-9a-f]{10}\+?$")
        counts = {label: int(value) for label, value in list(row.items())[2:]}
        self.assertEqual(counts, {
            "seeds": 11, "packets": 101, "faults": 8, "forged": 5, "replayed": 4, "fuzzed": 55,
            "verified": 1000, "broken": 9, "refused": 6})

    def test_TheSameRunIsNotCountedTwice(self):
        self.put("dst", seeds=10, packets=100, faults=7)
        self.add()
        self.assertIn("already", self.add(status=1))
        (self.folder / "ev.log").write_text("stat::number_of_executed_units: 5\n")
        os.utime(self.folder / "ev.log", (1, 1))  # of an earlier run
        self.put("dst", seeds=10, packets=101, faults=7)
        self.add()
        self.assertEqual([row["fuzzed"] for row in self.rows()], ["0", "0"])

    def test_NothingIsNoLine(self):
        self.assertIn("make test", self.add(status=1))
        self.assertFalse(self.ledger.exists())


if __name__ == "__main__":
    Ledger.root = pathlib.Path(sys.argv.pop(1))
    unittest.main()
