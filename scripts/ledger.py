#!/usr/bin/env python3
"""Adds what the last test run showed to the ledger of this tree, and prints the totals.

Usage: ledger.py [--results FOLDER] [--chaos FOLDER] [--strangers FOLDER] [--fuzz FOLDER]
                 [--ledger FILE] [--faults FILE] [--date YYYY-MM-DD]

One line a run: date, commit, then what was counted: seeds, packets, faults, forged and replayed
packets of the simulated world (test-results/dst*.json) and of strangers beside a stream (`make
test` and `make strangers`), keys they tried, executions of fuzz targets (the logs of
scripts/fuzz.sh), bytes compared on real sockets, packets forged there, faults of networks and of
system calls there, of `make test` and of each `make chaos`. What is older than the ledger has been
counted. A plus sign behind the commit says that the tree was changed after it. Faults by kind go to tests/faults.tsv
(fault_ledger.py). Seeds of `make soak` have a ledger of their own (tests/seeds/ledger.tsv), which
the totals include.
Exit status: 0 all good, 1 there is nothing new to add, 2 wrong usage.
"""

import argparse
import datetime
import json
import pathlib
import re
import subprocess
import sys

import fault_ledger

ROOT = pathlib.Path(__file__).resolve().parent.parent
COLUMNS = ("seeds", "packets", "faults", "forged", "replayed", "keys", "fuzzed", "verified",
           "forged_on_sockets", "broken", "refused")
FORGED = {"fault forged source", "fault forged key", "fault forged psn", "fault gap flood",
          "fault ack unsent", "fault optimistic ack", "fault contradictory sack",
          "fault probe flood", "fault qp scan", "fault forged port status"}
REPLAYED = {"fault stale replay", "fault replay after reuse", "fault duplicate late",
            "fault duplicate after completion"}
RARE = 100_000  # what a release wants of each kind of fault (docs/testing.md, R3)
EXECUTED = re.compile(r"^stat::number_of_executed_units:\s*(\d+)", re.MULTILINE)
MEANING = {
    "seeds": "worlds simulated", "packets": "packets in them", "faults": "faults in them",
    "forged": "packets forged", "replayed": "packets replayed", "keys": "keys tried",
    "fuzzed": "fuzz executions", "verified": "bytes compared on real sockets",
    "forged_on_sockets": "packets forged there", "broken": "faults of real networks",
    "refused": "system calls that failed",
}
# Lines of any result that are counted as they stand.
LINES = {
    "forged": "packets forged", "replayed": "packets repeated", "keys": "keys tried",
    "verified": "bytes verified", "forged_on_sockets": "packets forged on sockets",
    "broken": "network faults", "refused": "system calls that failed",
}


def newer(paths, since):
    return sorted(path for path in paths if path.stat().st_mtime > since)


def count_results(paths):
    """What the test programs wrote, by column, and the faults by kind."""
    found, kinds = dict.fromkeys(COLUMNS, 0), {}
    for path in paths:
        result = json.loads(path.read_text(encoding="utf-8"))
        lines = result["lines"]
        if result["name"].startswith("dst"):
            for column in ("seeds", "packets", "faults"):
                found[column] += lines[column]
            found["forged"] += sum(lines.get(label, 0) for label in FORGED)
            found["replayed"] += sum(lines.get(label, 0) for label in REPLAYED)
        for column, label in LINES.items():
            found[column] += lines.get(label, 0)
        for kind, count in fault_ledger.of_lines(lines).items():
            kinds[kind] = kinds.get(kind, 0) + count
    return found, kinds


def count_fuzzed(logs):
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
    lines = ledger.read_text(encoding="ascii").splitlines() if ledger.exists() else []
    rows = [line.split("\t") for line in lines if line.strip()]
    return [dict(zip(rows[0][2:], map(int, row[2:]))) for row in rows[1:]]


def soaked(ledger, faults):
    """What `make soak` has added up to."""
    lines = ledger.read_text(encoding="ascii").splitlines()[1:] if ledger.exists() else []
    rows = [line.split("\t") for line in lines if line.strip()]
    kinds = fault_ledger.totals(faults, by="soak")
    return {"seeds": sum(int(row[1]) - int(row[0]) + 1 for row in rows),
            "packets": sum(int(row[3]) for row in rows), "faults": sum(int(row[4]) for row in rows),
            "forged": sum(kinds.get(label, 0) for label in FORGED),
            "replayed": sum(kinds.get(label, 0) for label in REPLAYED)}


def print_totals(rows, soak, kinds):
    for column in COLUMNS:
        total = sum(row[column] for row in rows) + soak.get(column, 0)
        print(f"{MEANING[column]:32} {total:>20,}")
    for kind, count in sorted(kinds.items(), key=lambda entry: entry[1]):
        if kind.startswith("fault ") and count < RARE:
            print(f"  {kind:30} {count:>20,}, below {RARE:,}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--results", type=pathlib.Path, default=ROOT / "build/release/test-results")
    parser.add_argument("--fuzz", type=pathlib.Path, default=ROOT / "build/fuzz")
    parser.add_argument("--chaos", type=pathlib.Path, default=ROOT / "build/chaos")
    parser.add_argument("--strangers", type=pathlib.Path, default=ROOT / "build/strangers")
    parser.add_argument("--faults", type=pathlib.Path, default=fault_ledger.LEDGER)
    parser.add_argument("--ledger", type=pathlib.Path, default=ROOT / "tests/ledger.tsv")
    parser.add_argument("--date", default=datetime.date.today().isoformat())
    options = parser.parse_args()

    last = options.ledger.stat().st_mtime if options.ledger.exists() else 0
    found, kinds = count_results(newer([*options.results.glob("*.json"),
                                        *options.chaos.glob("*/chaos.json"),
                                        *options.strangers.glob("*.json")], last))
    found["fuzzed"] = count_fuzzed(newer(options.fuzz.glob("*.log"), last))
    if not any(found.values()):
        print("ledger: what there is was counted already, or there is nothing; run `make test`, "
              "`make chaos`, `make strangers` or `make fuzz` first")
        return 1
    if not options.ledger.exists():
        options.ledger.write_text("\t".join(("date", "commit", *COLUMNS)) + "\n", encoding="ascii")
    name = commit()
    with options.ledger.open("a", encoding="ascii") as ledger:
        ledger.write("\t".join((options.date, name, *(str(found[c]) for c in COLUMNS))) + "\n")
    fault_ledger.add(options.faults, (options.date, name, "test"), kinds)
    print_totals(rows_of(options.ledger),
                 soaked(ROOT / "tests/seeds/ledger.tsv", options.faults),
                 fault_ledger.totals(options.faults))
    return 0


if __name__ == "__main__":
    sys.exit(main())
