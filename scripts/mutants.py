#!/usr/bin/env python3
"""Shows that the tests notice every bug planted in the core.

Usage: mutants.py <mutants build folder> [--seeds N] [--results FILE]

First the seeds of the test world hunt each bug, then those that failed once. What they do not notice, because it costs time
rather than data or liveness, must fail a packet script. A bug that passes both is a missing check.
Exit status: 0 every bug was noticed, 1 one survived or a program failed.
"""

import argparse
import json
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
SURVIVOR = re.compile(r"^(k\w+)\s+\d+\s+-\s+SURVIVED: (.*)$")
TOTALS = re.compile(r"^(\d+) planted bugs caught, (\d+) survived$")


def hunt_with_seeds(build, seeds):
    """Prints the table of dst and returns (caught, {survivor: what it does})."""
    command = [build / "tests/dst/dst", "--mutants", "--seeds-per-mutant", str(seeds),
               "--seed-file", ROOT / "tests/seeds/dst.txt"]
    survivors, caught = {}, None
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        for line in process.stdout:
            print(line[:150].rstrip(), flush=True)
            if match := SURVIVOR.match(line):
                survivors[match[1]] = match[2]
            if match := TOTALS.match(line):
                caught = int(match[1])
    if caught is None:
        sys.exit("mutants: dst ended without a result")
    return caught, survivors


def fails_a_script(build, bug):
    command = [build / "tests/script/mrc_script", "--bug", bug, ROOT / "tests/script/cases"]
    result = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    failed = re.findall(r"cases/(\S+?)\.script:\d+: FAILED", result.stdout)
    # A crash counts as noticed; without a failure the run must have been clean.
    return failed[0] if failed else ("the engine died" if result.returncode else None)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--seeds", type=int, default=200, help="seeds per bug at most")
    parser.add_argument("--results", type=pathlib.Path, help="write the totals as JSON")
    options = parser.parse_args()

    by_seeds, left = hunt_with_seeds(options.build, options.seeds)
    by_scripts, survived = 0, 0
    for bug, what in left.items():
        script = fails_a_script(options.build, bug)
        print(f"{bug:36} {'script ' + script if script else 'SURVIVED: ' + what}")
        by_scripts += script is not None
        survived += script is None
    print(f"mutants: {by_seeds} caught by seeds, {by_scripts} by scripts only, {survived} survived")
    if options.results:
        lines = {"caught by seeds": by_seeds, "caught by scripts only": by_scripts,
                 "survived": survived}
        options.results.write_text(json.dumps({"name": "mutants", "lines": lines}))
    return 1 if survived else 0


if __name__ == "__main__":
    sys.exit(main())
