#!/usr/bin/env python3
"""Runs the program mrc as a user would and checks what it says.

Usage: smoke.py <mrc>. Prints one line for each thing that is wrong; exit status 1 if there is any.
"""

import json
import os
import subprocess
import sys

# Small enough for sanitizer builds, long enough for every fault to happen.
SMALL = ["--hosts", "4", "--mbytes", "4"]
TINY = ["--hosts", "4", "--mbytes", "1"]
FAILS = {
    "none": [],
    "path": ["path"],
    "plane": ["plane"],
    "port": ["port"],
    "storm": ["path", "path", "path", "path", "plane", "port"],
}
USAGE_ERRORS = [
    [],
    ["bogus"],
    ["--bogus"],
    ["demo", "--bogus"],
    ["demo", "--fail", "meteor"],
    ["demo", "--hosts", "1"],
    ["demo", "--hosts", "many"],
    ["demo", "--planes", "17"],
    ["demo", "--mbytes", "0"],
    ["demo", "--planes", "1", "--fail", "plane"],
    ["demo", "--hosts", "64", "--mbytes", "4096"],
]

problems = []


def expect(condition, what):
    if not condition:
        problems.append(what)


def run(program, *arguments, leak_check=False):
    # Whatever the tester's terminal wants, these runs are not on one.
    environment = {k: v for k, v in os.environ.items() if k != "NO_COLOR"}
    if not leak_check:
        # In sanitizer builds the search for leaks takes seconds, too much for every small run.
        options = environment.get("ASAN_OPTIONS", "")
        environment["ASAN_OPTIONS"] = f"{options}:detect_leaks=0".lstrip(":")
    return subprocess.run(
        [program, *arguments], capture_output=True, text=True, env=environment, check=False
    )


def check_report(mode, report):
    expect(report["verdict"] == "passed", f"{mode}: verdict {report['verdict']}")
    expect(report["wrong_bytes"] == 0, f"{mode}: {report['wrong_bytes']} wrong bytes")
    expect(report["early_wrong_bytes"] == 0, f"{mode}: an immediate came before its data")
    expect(report["bytes_moved"] == report["bytes_planned"] > 0, f"{mode}: bytes are missing")
    expect(report["bytes_verified"] == report["bytes_planned"], f"{mode}: bytes not compared")
    for what in ("completions", "immediates"):
        expect(report[what] == report["messages"] > 0, f"{mode}: {what} {report[what]}")
    expect(report["immediates_out_of_order"] == 0, f"{mode}: immediates out of order")
    expect(report["network"]["unroutable"] == 0, f"{mode}: a carrier led nowhere")
    expect(report["network"]["unreadable"] == 0, f"{mode}: a frame could not be read")
    kinds = sorted(fault["kind"] for fault in report["faults"])
    expect(kinds == FAILS[mode], f"{mode}: faults {kinds}")
    for fault in report["faults"]:
        expect(fault["happened"], f"{mode}: fault did not happen: {fault['what']}")
    lost = sum(fault["data_lost"] for fault in report["faults"])
    expect((lost > 0) == bool(kinds), f"{mode}: {lost} data packets lost in faults")
    # What is lost must be sent again; trimming and false alarms add to it.
    expect(report["packets"]["retransmitted"] >= lost, f"{mode}: losses were not repaired")


def check_modes(program):
    for mode in FAILS:
        result = run(program, "demo", "--json", "--fail", mode, *SMALL, leak_check=True)
        expect(result.returncode == 0, f"{mode}: exit status {result.returncode}")
        try:
            check_report(mode, json.loads(result.stdout))
        except (ValueError, KeyError) as error:
            problems.append(f"{mode}: unexpected JSON: {error!r}")


def check_determinism(program):
    runs = [run(program, "demo", "--json", "--seed", seed, *TINY).stdout for seed in "778"]
    expect(runs[0] == runs[1], "the same seed gave two different runs")
    expect(runs[0] != runs[2], "two seeds gave the same run")


def check_text(program):
    result = run(program, "demo", *TINY)
    expect(result.returncode == 0, f"text: exit status {result.returncode}")
    expect("PASSED" in result.stdout, "text: no verdict")
    expect("\033" not in result.stdout, "text: colours without a terminal")
    expect(result.stderr == "", f"text: {result.stderr!r} on stderr")


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
    check_modes(program)
    check_determinism(program)
    check_text(program)
    for problem in problems:
        print(problem)
    print(f"smoke: {len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
