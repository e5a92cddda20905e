#!/usr/bin/env python3
"""Runs `mrc twin` on short scenarios and checks that both sides did the same work.

Usage: twin_smoke.py <mrc> <folder of scenarios>. Prints one line for each thing that is wrong; exit
status 1 if there is any. How long things took in the lab is the machine's business and not judged.
"""

import json
import os
import pathlib
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "tests" / "support"))

import programs  # noqa: E402  (found through the line above)

COUNTS = ("data_packets", "retransmits", "spurious", "timeouts", "probes", "marks", "trims",
          "drops")
BAD = {
    "absent.toml": None,
    "unknown.toml": "colour = 1\n",
    "fast.toml": "gbps = 400\n",
    "large.toml": "hosts = 64\nt0 = 4\ngbps = 0.1\n",
    "loss.toml": "hosts = 8\ngbps = 0.1\nloss = 0.01\n",
    "tree.toml": 'hosts = 8\nt0 = 2\nt1 = 4\ngbps = 0.1\nworkload = "incast"\nsenders = 99\n',
}

problems = []


def expect(condition, what):
    if not condition:
        problems.append(what)


def run(program, *arguments, **options):
    return programs.run([program, "twin", *arguments], timeout=None, **options)


def check_scenario(program, path, flows, bytes_each):
    done = run(program, str(path), "--json")
    expect(done.returncode == 0, f"{path.name}: exit status {done.returncode}: {done.stderr}")
    if done.returncode != 0:
        return {}
    result = json.loads(done.stdout)
    for name in ("lab", "simulator"):
        side = result[name]
        expect(side["finished"] and side["bytes_wrong"] == 0, f"{path.name}: {name} is not right")
        expect(side["completion_ms"]["max"] >= side["completion_ms"]["p50"] > 0,
               f"{path.name}: {name}: {side['completion_ms']}")
        least = flows * bytes_each // result["mtu"]
        expect(side["data_packets"] >= least, f"{path.name}: {name} sent {side['data_packets']}")
        expect(all(side[count] >= 0 for count in COUNTS), f"{path.name}: {name} lacks counts")
        points = side["over_time"]
        moved = sum(p["goodput_mbps"] for p in points) / len(points) * side["finish_ms"] * 1e3 / 8
        expect(0.9 < moved / (flows * bytes_each) < 1.1,
               f"{path.name}: {name}: its goodput over time is {moved:.0f} bytes")
    expect(result["idle_rtt_us"] > 0, f"{path.name}: no round trip")
    return result


def check_usage(program, folder):
    for name, text in BAD.items():
        if text is not None:
            (folder / name).write_text(text, encoding="utf-8")
        done = run(program, str(folder / name))
        expect(done.returncode == 2, f"{name}: exit status {done.returncode}, not 2")
        expect(len(done.stderr.splitlines()) == 1 and done.stdout == "", f"{name}: {done.stderr!r}")


def main():
    program, scenarios = os.path.abspath(sys.argv[1]), pathlib.Path(sys.argv[2])
    with tempfile.TemporaryDirectory() as folder:
        check_usage(program, pathlib.Path(folder))
    check_scenario(program, scenarios / "pair.toml", 1, 1_000_000)
    cut = check_scenario(program, scenarios / "cable_cut.toml", 8, 2_000_000)
    for name in ("lab", "simulator"):
        expect(not cut or cut[name]["drops"] > 0, f"{name}: nothing was lost in the cut cable")
    for problem in problems:
        print(problem)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
