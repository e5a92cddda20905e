#!/usr/bin/env python3
"""Runs the scenarios of scenarios/twin/ in labs and in the simulator, and prints how near they are.

Exit status: 0 every scenario meets the bars (median completion within 10 %, retransmissions of one
order of magnitude), 1 one misses them or a run failed, 2 the command line is wrong. Labs need
processor time: what is printed holds for a quiet machine.
"""

import argparse
import fnmatch
import json
import pathlib
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
RUN_SECONDS = 300
HEADINGS = ("scenario", "median ms", "sim", "ratio", "last", "sent again", "sim", "trims", "sim",
            "drops", "sim", "verdict")
WIDTHS = (16, 9, 8, 6, 6, 10, 6, 6, 6, 6, 6, 8)


def execute(program, path):
    """The result of one scenario, or what went wrong."""
    try:
        done = subprocess.run([program, "twin", path, "--json"], capture_output=True, text=True,
                              check=False, timeout=RUN_SECONDS)
    except subprocess.TimeoutExpired:
        return f"took more than {RUN_SECONDS} s"
    try:
        result = json.loads(done.stdout)
    except ValueError:
        lines = done.stderr.strip().splitlines()
        return f"exit {done.returncode}: {lines[-1] if lines else 'no output'}"
    return result if done.returncode == 0 else f"exit {done.returncode}"


def cells_of(name, result):
    lab, simulator, over = result["lab"], result["simulator"], result["lab_over_simulator"]
    good = over["within_10_percent"] and over["same_order_of_retransmits"]
    return (name, f"{lab['completion_ms']['p50']:.1f}", f"{simulator['completion_ms']['p50']:.1f}",
            f"{over['median_completion']:.3f}", f"{over['last_completion']:.3f}",
            str(lab["retransmits"]), str(simulator["retransmits"]), str(lab["trims"]),
            str(simulator["trims"]), str(lab["drops"]), str(simulator["drops"]),
            "bar" if good else "MISSED")


def print_row(cells):
    print("  ".join(cell.ljust(width) if i == 0 else cell.rjust(width)
                    for i, (cell, width) in enumerate(zip(cells, WIDTHS))).rstrip(), flush=True)


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME",
                        help="scenarios to run, * allowed (default: all)")
    parser.add_argument("--mrc", default=ROOT / "build/release/tools/mrc/mrc", help="the program")
    parser.add_argument("--folder", type=pathlib.Path, default=ROOT / "scenarios/twin")
    parser.add_argument("--rounds", type=int, default=1, help="how often each is run")
    parser.add_argument("--json", type=pathlib.Path, help="write all results to this file")
    return parser.parse_args()


def main():
    arguments = parse_arguments()
    paths = [path for path in sorted(arguments.folder.glob("*.toml"))
             if not arguments.names or any(fnmatch.fnmatch(path.stem, n) for n in arguments.names)]
    if not paths or not pathlib.Path(arguments.mrc).exists() or arguments.rounds < 1:
        what = "no scenario matches" if not paths else f"no rounds, or {arguments.mrc} is not built"
        print(f"twin: {what}", file=sys.stderr)
        return 2
    started = time.monotonic()
    print_row(HEADINGS)
    results, bad = {}, 0
    for path in paths:
        for _ in range(arguments.rounds):
            result = execute(arguments.mrc, path)
            results.setdefault(path.stem, []).append(result)
            if isinstance(result, str):
                print(f"{path.stem}: {result}", flush=True)
                bad += 1
                continue
            cells = cells_of(path.stem, result)
            bad += cells[-1] == "MISSED"
            print_row(cells)
    if arguments.json:
        arguments.json.write_text(json.dumps({"schema": "mrc.twins/1", "runs": results}, indent=1),
                                  encoding="utf-8")
    print(f"{len(paths)} scenarios, {bad} runs below the bar; {time.monotonic() - started:.0f} s")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
