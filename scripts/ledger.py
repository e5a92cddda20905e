#!/usr/bin/env python3
"""Adds what the last test run showed to the ledger of this tree, and prints the totals.

Usage: ledger.py [--results FOLDER] [--fuzz FOLDER] [--ledger FILE] [--date YYYY-MM-DD]

One line a run: date, commit, then what was counted: seeds, packets, faults, forged and replayed
packets of the simulated world (test-results/dst*.json), executions of fuzz targets (the logs of
scripts/fuzz.sh), bytes compared on real sockets, faults of networks and of system calls there. A
plus sign behind the commit says that the tree was changed after it. Seeds of `make soak` have a
ledger of their own (tests/seeds/ledger.tsv), which the totals include.
Exit status: 0 all good, 1 there is nothing new to add, 2 wrong usage.
"""

import argparse
import datetime
import json
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
COLUMNS = ("seeds", "packets", "faults", "forged", "replayed", "fuzzed", "verified", "broken",
           "refused")
FORGED = {"fault forged source", "fault forged key", "fault forged psn", "fault gap flood",
          "fault ack unsent", "fault optimistic ack", "fault contradictory sack",
          "fault probe flood", "fault qp scan", "fault forged port status"}
REPLAYED = {"fault stale replay", "fault replay after reuse", "fault duplicate late",
            "fault duplicate after completion"}
EXECUTED = re.compile(r"^stat::number_of_executed_units:\s*(\d+)", re.MULTILINE)
MEANING = {
    "seeds": "worlds simulated", "packets": "packets in them", "faults": "faults in them",
    "forged": "packets forged", "replayed": "packets replayed", "fuzzed": "fuzz executions",
    "verified": "bytes compared on real sockets", "broken": "faults of real networks",
    "refused": "system calls that failed",
}


def count_results(folder):
    """What the test programs wrote, by column."""
    found = dict.fromkeys(COLUMNS, 0)
    for path in sorted(folder.glob("*.json")):
        result = json.loads(path.read_text(encoding="utf-8"))
        lines = result["lines"]
        if result["name"].startswith("dst"):
            for column in ("seeds", "packets", "faults"):
                found[column] += lines[column]
            found["forged"] += sum(lines.get(label, 0) for label in FORGED)
            found["replayed"] += sum(lines.get(label, 0) for label in REPLAYED)
        found["verified"] += lines.get("bytes verified", 0)
        found["broken"] += lines.get("network faults", 0)
        found["refused"] += lines.get("system calls that failed", 0)
    return found


def count_fuzzed(folder, since):
    """Executions of the runs after `since`, a time: logs stay where they are."""
    logs = sorted(folder.glob("*.log")) if folder.is_dir() else []
    logs = [log for log in logs if log.stat().st_mtime > since]
    return sum(int(number) for log in logs
               for number in EXECUTED.findall(log.read_text(encoding="utf-8", errors="replace")))


def commit():
    git = ["git", "-C", str(ROOT)]
    head = subprocess.run([*git, "rev-parse", "--short=10", "HEAD"], stdout=subprocess.PIPE,
                          text=True, check=True).stdout.strip()
    changed = subprocess.run([*git, "status", "--porcelain", "--untracked-files=no"],
                             stdout=subprocess.PIPE, text=True, check=True).stdout.strip()
    return head + ("+" if changed else "")


def rows_of(ledger):
    lines = ledger.read_text(encoding="ascii").splitlines()[1:] if ledger.exists() else []
    return [dict(zip(COLUMNS, map(int, line.split("\t")[2:]))) for line in lines if line.strip()]


def soaked(ledger):
    """Seeds, packets and faults of `make soak`."""
    lines = ledger.read_text(encoding="ascii").splitlines()[1:] if ledger.exists() else []
    rows = [line.split("\t") for line in lines if line.strip()]
    return {"seeds": sum(int(row[1]) - int(row[0]) + 1 for row in rows),
            "packets": sum(int(row[3]) for row in rows), "faults": sum(int(row[4]) for row in rows)}


def print_totals(rows, soak):
    for column in COLUMNS:
        total = sum(row[column] for row in rows) + soak.get(column, 0)
        print(f"{MEANING[column]:32} {total:>20,}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--results", type=pathlib.Path, default=ROOT / "build/release/test-results")
    parser.add_argument("--fuzz", type=pathlib.Path, default=ROOT / "build/fuzz")
    parser.add_argument("--ledger", type=pathlib.Path, default=ROOT / "tests/ledger.tsv")
    parser.add_argument("--date", default=datetime.date.today().isoformat())
    options = parser.parse_args()

    found = count_results(options.results)
    last = options.ledger.stat().st_mtime if options.ledger.exists() else 0
    found["fuzzed"] = count_fuzzed(options.fuzz, last)
    if not any(found.values()):
        print(f"ledger: nothing was counted in {options.results}; run `make test` first")
        return 1
    if rows_of(options.ledger)[-1:] == [found]:
        print("ledger: the last line has these counts already; run the tests again first")
        return 1
    if not options.ledger.exists():
        options.ledger.write_text("\t".join(("date", "commit", *COLUMNS)) + "\n", encoding="ascii")
    with options.ledger.open("a", encoding="ascii") as ledger:
        ledger.write("\t".join((options.date, commit(), *(str(found[c]) for c in COLUMNS))) + "\n")
    print_totals(rows_of(options.ledger), soaked(ROOT / "tests/seeds/ledger.tsv"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
