#!/usr/bin/env python3
"""Shows that the tests notice every planted bug.

Usage: mutants.py <mutants build folder> [--seeds N] [--all] [--results FILE] [--host-only]

In the engine: first the seeds of the test world hunt each bug, then those that failed once. What they do not notice, because
it costs time rather than data or liveness, must fail a packet script. A bug that passes both is a missing check.
tests/mutants/scripts_only.txt lists those that no seed has ever noticed; half of the time would go to them, so that seeds
hunt them with --all only.
Outside of it (src/os/host_bugs.inc): each bug must fail the unit tests that its line names, which pass without it.
Exit status: 0 every bug was noticed, 1 one survived or a program failed.
"""

import argparse
import json
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
SURVIVOR = re.compile(r"^(k\w+)\s+\d+\s+-\s+SURVIVED: (.*)$")
SCRIPTS_ONLY = ROOT / "tests/mutants/scripts_only.txt"
ENGINE_BUG = re.compile(r'MRC_PLANTED\((\w+),\s*"([^"]*)"\)')
TOTALS = re.compile(r"^(\d+) planted bugs caught, (\d+) survived$")
HOST_BUG = re.compile(r'MRC_HOST_PLANTED\((\w+),\s*"([^"]*)",\s*"([^"]*)"\)')
END_S = 60  # a test that a bug keeps from ending has noticed it


def left_to_scripts():
    """{bug: what it does} of those that are listed."""
    bugs = dict(ENGINE_BUG.findall((ROOT / "src/base/planted_bugs.inc").read_text("ascii")))
    names = [line for line in SCRIPTS_ONLY.read_text("ascii").splitlines()
             if line and not line.startswith("#")]
    if unknown := [name for name in names if name not in bugs]:
        sys.exit(f"mutants: {SCRIPTS_ONLY.name} names {unknown[0]}, which is no planted bug")
    return {name: bugs[name] for name in names}


def hunt_with_seeds(build, seeds, but):
    """Prints the table of dst and returns (caught, {survivor: what it does})."""
    command = [build / "tests/dst/dst", "--mutants", "--seeds-per-mutant", str(seeds),
               "--seed-file", ROOT / "tests/seeds/dst.txt"]
    command += [word for name in but for word in ("--except", name)]
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


def run_host_tests(build, names, bug=None):
    """The exit status of these tests, None when they do not end, and what they said."""
    environment = {name: value for name, value in os.environ.items() if name != "PLANTED_BUG"}
    if bug:
        environment["PLANTED_BUG"] = bug
    command = [build / "tests/mutants/host_bugs_test", f"--gtest_filter={names}"]
    try:
        run = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                             errors="replace", env=environment, timeout=END_S, check=False)
    except subprocess.TimeoutExpired:
        return None, ""
    return run.returncode, run.stdout


def hunt_in_hosts(build):
    """Prints a table like that of dst and returns (caught, survived)."""
    bugs = HOST_BUG.findall((ROOT / "src/os/host_bugs.inc").read_text(encoding="ascii"))
    status, said = run_host_tests(build, ":".join(tests for _, _, tests in bugs))
    if status != 0 or not bugs:
        sys.exit(f"mutants: tests fail without a bug, or there are none:\n{said}")
    caught = 0
    for bug, what, tests in bugs:
        status, said = run_host_tests(build, tests, bug)
        if status == 2:
            sys.exit(f"mutants: {said}")
        if status != 0:
            how = "does not end" if status is None else f"signal {-status}" if status < 0 else ""
            print(f"{bug:36} {tests} {how}".rstrip(), flush=True)
            caught += 1
        else:
            skipped = "not tried, its test was skipped" if "[  SKIPPED ]" in said else "SURVIVED"
            print(f"{bug:36} {skipped}: {what}", flush=True)
    return caught, len(bugs) - caught


def hunt_in_engine(build, seeds, hunt_all):
    """Returns how many were caught by seeds, how many by scripts, how many survived."""
    listed = left_to_scripts()
    by_seeds, left = hunt_with_seeds(build, seeds, () if hunt_all else listed)
    if hunt_all:
        for bug in listed.keys() - left.keys():
            print(f"{bug}: a seed notices it, so {SCRIPTS_ONLY.name} need not list it")
    else:
        left |= listed
    by_scripts = 0
    for bug, what in left.items():
        script = fails_a_script(build, bug)
        print(f"{bug:36} {'script ' + script if script else 'SURVIVED: ' + what}")
        by_scripts += script is not None
    return by_seeds, by_scripts, len(left) - by_scripts


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--seeds", type=int, default=200, help="seeds per bug at most")
    parser.add_argument("--all", action="store_true", help="with seeds also what is left to scripts")
    parser.add_argument("--results", type=pathlib.Path, help="write the totals as JSON")
    parser.add_argument("--host-only", action="store_true", help="only those outside the engine")
    options = parser.parse_args()

    in_hosts, survived = hunt_in_hosts(options.build)
    by_seeds = by_scripts = 0
    if not options.host_only:
        by_seeds, by_scripts, left = hunt_in_engine(options.build, options.seeds,
                                                     options.all)
        survived += left
    print(f"mutants: {by_seeds} caught by seeds, {by_scripts} by scripts only, {in_hosts} outside "
          f"the engine by unit tests, {survived} survived")
    if options.results:
        lines = {"caught by seeds": by_seeds, "caught by scripts only": by_scripts,
                 "caught outside the engine": in_hosts, "survived": survived}
        options.results.write_text(json.dumps({"name": "mutants", "lines": lines}))
    return 1 if survived else 0


if __name__ == "__main__":
    sys.exit(main())
