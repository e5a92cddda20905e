#!/usr/bin/env python3
"""Runs the program mrc with wrong and with harmless arguments and checks what it says.

Usage: smoke.py <mrc>. Prints one line for each thing that is wrong; exit status 1 if there is any.
"""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "tests" / "support"))

import programs  # noqa: E402  (found through the line above)

USAGE_ERRORS = [
    [],
    ["bogus"],
    ["--bogus"],
    ["demo", "--bogus"],
    ["demo", "--hosts", "1"],
    ["demo", "--hosts", "many"],
    ["demo", "--planes", "17"],
    ["demo", "--mbps", "0"],
    ["demo", "--fault-seconds", "0"],
]

problems = []


def expect(condition, what):
    if not condition:
        problems.append(what)


def run(program, *arguments):
    return programs.run([program, *arguments])


def check_usage(program):
    for arguments in USAGE_ERRORS:
        result = run(program, *arguments)
        name = " ".join(["mrc", *arguments])
        expect(result.returncode == 2, f"{name}: exit status {result.returncode}, not 2")
        expect(result.stdout == "", f"{name}: wrote to stdout")
        expect(len(result.stderr.splitlines()) == 1, f"{name}: not one line: {result.stderr!r}")
    for arguments in (["--help"], ["demo", "--help"], ["--version"]):
        result = run(program, *arguments)
        expect(result.returncode == 0 and result.stdout, f"mrc {arguments}: {result}")


def main():
    program = sys.argv[1]
    check_usage(program)
    for problem in problems:
        print(problem)
    print(f"smoke: {len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
