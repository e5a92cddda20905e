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
        self.faults = self.folder / "faults.tsv"

    def put(self, name, **lines):
        path = self.folder / f"{name}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        lines = {label.replace("_", " "): value for label, value in lines.items()}
        path.write_text(json.dumps({"name": path.stem, "lines": lines}), encoding="utf-8")

    def add(self, status=0):
        run = subprocess.run(
            [sys.executable, "-B", self.root / "scripts/ledger.py", "--results", self.folder,
             "--chaos", self.folder / "chaos", "--strangers",
             self.folder / "strangers", "--fuzz", self.folder, "--ledger", self.ledger,
             "--faults", self.faults, "--date", "2026-11-18"],
            text=True, stdout=subprocess.PIPE, check=False)
        self.assertEqual(run.returncode, status, run.stdout)
        return run.stdout

    def rows(self, ledger=None):
        lines = [line.split("\t") for line in (ledger or self.ledger).read_text().splitlines()]
        return [dict(zip(lines[0], line)) for line in lines[1:]]

    def test_CountsWhatTheTestsWrote(self):
        self.put("dst", seeds=10, packets=100, faults=7, fault_forged_key=3, fault_gap_flood=2,
                 fault_stale_replay=4, fault_loss=5)
        self.put("dst_fresh", seeds=1, packets=1, faults=1)
        self.put("chaos", bytes_verified=1000, network_faults=9)
        self.put("call_faults", system_calls_that_failed=6)
        self.put("script", scripts=290)
        self.put("strangers", packets_forged=2, packets_repeated=3, keys_tried=4)
        self.put("strangers/strangers", packets_forged=18, packets_repeated=27, keys_tried=36)
        self.put("strangers/forger", packets_forged_on_sockets=8)
        (self.folder / "frame.log").write_text("x\nstat::number_of_executed_units: 50\n")
        (self.folder / "ev.log").write_text("stat::number_of_executed_units: 5\n")
        self.add()
        row = self.rows()[0]
        self.assertEqual(row["date"], "2026-11-18")
        self.assertRegex(row["commit"], r"^[0-9a-f]{10}\+?$")
        counts = {label: int(value) for label, value in list(row.items())[2:]}
        self.assertEqual(counts, {
            "seeds": 11, "packets": 101, "faults": 8, "forged": 25, "replayed": 34, "keys": 40,
            "fuzzed": 55, "verified": 1000, "forged_on_sockets": 8, "broken": 9, "refused": 6})

    def test_TheSameRunIsNotCountedTwice(self):
        self.put("dst", seeds=10, packets=100, faults=7)
        self.add()
        self.assertIn("already", self.add(status=1))
        (self.folder / "ev.log").write_text("stat::number_of_executed_units: 5\n")
        os.utime(self.folder / "ev.log", (1, 1))  # of an earlier run
        self.put("dst", seeds=10, packets=101, faults=7)
        self.add()
        self.assertEqual([row["fuzzed"] for row in self.rows()], ["0", "0"])

    def test_WhatWasCountedIsNotCountedWithWhatIsNew(self):
        self.put("dst", seeds=10, packets=100, faults=7)
        self.add()
        (self.folder / "ev.log").write_text("stat::number_of_executed_units: 5\n")
        self.put("chaos/1/chaos", bytes_verified=1000, network_faults=9)
        self.put("chaos/2/chaos", bytes_verified=500, network_faults=1)
        self.add()
        row = self.rows()[1]
        self.assertEqual([row[column] for column in ("seeds", "fuzzed", "verified", "broken")],
                         ["0", "5", "1500", "10"])

    def test_FaultsAddUpByKind(self):
        self.put("dst", seeds=1, packets=1, faults=8, fault_loss=5, fault_gap_flood=3)
        self.put("dst_fresh", seeds=1, packets=1, faults=1, fault_loss=1)
        self.add()
        self.put("dst", seeds=1, packets=1, faults=200_000, fault_loss=200_000)
        self.put("chaos", network_faults=2, network_fault_cut=2)
        said = self.add()
        first, second = self.rows(self.faults)
        self.assertEqual((first["by"], first["fault loss"], first["fault gap flood"]),
                         ("test", "6", "3"))
        self.assertEqual((first["network fault cut"], second["network fault cut"]), ("0", "2"))
        self.assertEqual((second["fault loss"], second["fault gap flood"]), ("200000", "0"))
        self.assertRegex(said, r"(?m)^  fault gap flood +3, below 100,000$")
        self.assertNotIn("fault loss", said)

    def test_SoakAddsItsFaultsByKind(self):
        dst = self.folder / "dst"
        dst.write_text("#!/bin/sh\n"
                       'while [ "$1" != --results ]; do shift; done\n'
                       """echo '{"name": "dst", "lines": {"packets": 9, "faults": 4, """
                       """"fault loss": 4}}' > "$2"\necho '2 seeds, 0 failed'\n""")
        dst.chmod(0o755)
        for _ in range(2):
            subprocess.run([sys.executable, "-B", self.root / "scripts/soak.py", dst, "--seeds",
                            "2", "--ledger", self.ledger, "--faults", self.faults], check=True,
                           stdout=subprocess.DEVNULL)
        self.assertEqual([row["faults"] for row in self.rows()], ["4", "4"])
        self.assertEqual([(row["by"], row["fault loss"]) for row in self.rows(self.faults)],
                         [("soak", "4"), ("soak", "4")])

    def test_NothingIsNoLine(self):
        self.assertIn("make test", self.add(status=1))
        self.assertFalse(self.ledger.exists())


if __name__ == "__main__":
    Ledger.root = pathlib.Path(sys.argv.pop(1))
    unittest.main()
