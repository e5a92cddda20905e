#!/usr/bin/env python3
"""Runs the program mrc with wrong and with harmless arguments and checks what it says.

Usage: smoke.py <mrc>. Prints one line for each thing that is wrong; exit status 1 if there is any.
"""

import pathlib
import subprocess
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

# What is refused, and what the line must name.
REASONS = [
    ("bogus", "there is no command 'bogus'; there are demo, sim"),
    ("sim --bytes 200x", "'200x' is not a number of bytes such as 65536, 64K or 64KiB"),
    ("sim --loss 2", "'2' is not a share such as 1% or 0.01"),
    ("sim --until 10", "'10' is not a time such as 10us"),
    ("sim --nscc disable_qa=maybe", "disable_qa cannot be 'maybe'; write true or false"),
    ("sim --nscc target_delay=2us", "target_delay_ns cannot be '2us'; write a whole number"),
    ("perf write_bw -s -5", "'-5' is not a number of bytes"),
    ("perf allreduce -b lots", "'lots' is not a number of bytes"),
    ("plan --nics 4k", "'4k' is not a whole number such as 5000 or 1e6"),
    ("map --topology tiny --host 0", "mrc map needs back end wire"),
]
# What a script passes on where a variable is not set, and what the line must name.
EMPTY = [
    (["check", "--peer", ""], "--peer"),
    (["check", "--hosts", ""], "--hosts"),
    (["doctor", "--peer", ""], "--peer"),
    (["perf", "write_bw", ""], "host"),
    (["perf", "write_bw", "-d", "", "127.0.0.1"], "--ib-dev"),
    (["plan", "--out", ""], "--out"),
    (["stat", "-d", ""], "--device"),
]
# One quantity, written in several ways: the result is the same.
ALIKE = [
    ["sim --workload pair --topology tiny --json --bytes " + text
     for text in ("200kB", "200KB", "200000", "2e5")],
    ["sim --workload pair --topology tiny --json --bytes 64K --loss " + text
     for text in ("1%", "0.01")],
    ["sim --workload pair --topology tiny --json --bytes 64K --nscc " + text
     for text in ("target_delay_ns=6000", "target_delay=6000")],
    ["plan --json --nics 4096", "plan --json --nics 4.096e3"],
]
FULL = ["fabric presets", "plan", "plan --json", "info", "--help", "sim --help",
        "sim --workload pair --topology tiny --bytes 64K --json"]

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


def check_reasons(program):
    for line, reason in REASONS:
        result = run(program, *line.split())
        expect(result.returncode == 2, f"mrc {line}: exit status {result.returncode}, not 2")
        expect(reason in result.stderr, f"mrc {line}: {result.stderr!r} without {reason!r}")


def check_empty(program):
    for words, name in EMPTY:
        result = programs.run([program, *words], timeout=60)
        expect(result.returncode == 2, f"mrc {words}: exit status {result.returncode}, not 2")
        expect(f": {name} must not be empty" in result.stderr, f"mrc {words}: {result.stderr!r}")
    result = run(program, "run", "--no-preload", "--", "sh", "-c", 'test -z "$1"', "sh", "")
    expect(result.returncode == 0, f"mrc run: an empty word of a program: {result.stderr!r}")


def results_of(program, line):
    """Without what differs from run to run."""
    result = run(program, *line.split())
    expect(result.returncode == 0, f"mrc {line}: {result.returncode}, {result.stderr!r}")
    return [text for text in result.stdout.splitlines()
            if not any(word in text for word in ("wall", "setup", "rss", "hops_per_s"))]


def check_quantities(program):
    for lines in ALIKE:
        first = results_of(program, lines[0])
        for line in lines[1:]:
            expect(results_of(program, line) == first, f"mrc {line}: other than {lines[0]}")


def check_help(program):
    expect(run(program, "help", "sim").stdout == run(program, "sim", "--help").stdout, "help sim")
    expect(run(program, "help").stdout == run(program, "--help").stdout, "help")


def check_full_disk(program):
    """Whatever cannot be written is a failure with its reason."""
    reason = "No space left on device"
    for line in FULL:
        with open("/dev/full", "w") as full:
            result = subprocess.run([program, *line.split()], stdout=full, text=True,
                                    stderr=subprocess.PIPE, check=False)
        expect(result.returncode == 1, f"mrc {line} > /dev/full: exit status {result.returncode}")
        expect(reason in result.stderr, f"mrc {line} > /dev/full: {result.stderr!r}")
    line = "sim --workload pair --topology tiny --bytes 64K --report /dev/full"
    result = run(program, *line.split())
    expect(result.returncode == 1 and reason in result.stderr, f"mrc {line}: {result.stderr!r}")


def main():
    program = sys.argv[1]
    check_usage(program)
    check_reasons(program)
    check_empty(program)
    check_quantities(program)
    check_help(program)
    check_full_disk(program)
    for problem in problems:
        print(problem)
    print(f"smoke: {len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
