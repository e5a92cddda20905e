#!/usr/bin/env python3
"""Runs the simulator tests over seeds that nobody has run before, and keeps a ledger of them.

Usage: soak.py <dst program> [--seeds N] [--jobs N] [--ledger FILE] [--faults FILE]

Starts where the last entry of the ledger ended and appends one line for each chunk of seeds: first
and last number, commit, packets, faults, failures; the faults by kind go to tests/faults.tsv. A line
is written only when its chunk is done, so an interrupted run loses at most one chunk. Seeds that
failed go to standard output with the command that replays them; they belong into tests/seeds/dst.txt.
Exit status: 0 all good, 1 a seed failed, 2 wrong usage.
"""

import argparse
import datetime
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import fault_ledger

ROOT = pathlib.Path(__file__).resolve().parent.parent
LEDGER = ROOT / "tests/seeds/ledger.tsv"
HEADER = "first\tlast\tcommit\tpackets\tfaults\tfailures\n"
FIRST = 10_000_000  # below are seeds that were run by hand
CHUNK = 5_000


def next_number(ledger):
    lines = ledger.read_text().splitlines()[1:] if ledger.exists() else []
    numbers = [int(line.split("\t")[1]) for line in lines if line.strip()]
    return max(numbers, default=FIRST - 1) + 1


def commit():
    """The commit that is run; a plus sign says that the engine was changed after it."""
    git = ["git", "-C", str(ROOT)]
    head = subprocess.run([*git, "rev-parse", "--short=10", "HEAD"], stdout=subprocess.PIPE,
                          text=True, check=True).stdout.strip()
    sources = ["src/base", "src/wire", "src/core", "tests/dst"]
    changed = subprocess.run([*git, "status", "--porcelain", "--", *sources],
                             stdout=subprocess.PIPE, text=True, check=True).stdout.strip()
    return head + ("+" if changed else "")


def run_chunk(dst, first, count, jobs):
    """The result lines of a chunk and its failures, with the numbers of failed seeds printed."""
    with tempfile.TemporaryDirectory() as folder:
        results = pathlib.Path(folder) / "results.json"
        command = [str(dst), "--theme", "mixed", "--seeds", str(count), "--first", str(first),
                   "--jobs", str(jobs), "--failures", str(count), "--results", str(results)]
        run = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
        print(run.stdout, end="", flush=True)
        if run.returncode not in (0, 1):
            sys.exit(f"soak: dst ended with status {run.returncode}")
        lines = json.loads(results.read_text())["lines"]
    failures = int(re.search(r"^\d+ seeds, (\d+) failed", run.stdout, re.MULTILINE)[1])
    return lines, failures


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("dst", type=pathlib.Path)
    parser.add_argument("--seeds", type=int, default=10_000)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--ledger", type=pathlib.Path, default=LEDGER)
    parser.add_argument("--faults", type=pathlib.Path, default=fault_ledger.LEDGER)
    options = parser.parse_args()
    if options.seeds < 1 or options.jobs < 1:
        parser.error("at least one seed and one job")

    name, failed = commit(), 0
    first = next_number(options.ledger)
    end = first + options.seeds
    while first < end:
        count = min(CHUNK, end - first)
        lines, failures = run_chunk(options.dst, first, count, options.jobs)
        failed += failures
        if not options.ledger.exists():
            options.ledger.write_text(HEADER)
        with options.ledger.open("a") as ledger:
            ledger.write(f"{first}\t{first + count - 1}\t{name}\t{lines['packets']}\t"
                         f"{lines['faults']}\t{failures}\n")
        fault_ledger.add(options.faults, (datetime.date.today().isoformat(), name, "soak"),
                         fault_ledger.of_lines(lines))
        first += count
    print(f"soak: {options.seeds} seeds up to {end - 1}, {failed} failed; see {options.ledger}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
