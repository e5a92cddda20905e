#!/usr/bin/env python3
"""Measures real packets between two hosts and puts the figures beside those of other programs.

The hosts are network namespaces joined by one veth pair per plane. All programs take turns within
each round, and a figure is the median over the rounds, so that whatever else the machine does
falls on all of them alike. Needs root (or user namespaces); exits with 77 where it cannot run.
"""

import argparse
import json
import os
import pathlib
import shutil
import statistics
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests" / "support"))

import netns  # noqa: E402  (found through the line above)
import peers  # noqa: E402

PLANES = 4
MTU = 9000
PEERS = {"iperf3": peers.iperf3, "sockperf": peers.sockperf, "fi_latency": peers.fi_latency,
         "fi_bandwidth": peers.fi_bandwidth}
# Figure, unit, where it stands in the results.
PEER_ROWS = [
    ("iperf3 TCP, one stream", "Gb/s", "iperf3", "bandwidth_gbps"),
    ("iperf3 TCP, processor time of both sides", "s/GB", "iperf3", "cpu_s_per_gb"),
    ("fi_pingpong tcp rdm, 1 MiB", "Gb/s", "fi_bandwidth", "bandwidth_gbps"),
    ("sockperf UDP 64 B, one way, median", "us", "sockperf", "latency_us_median"),
    ("sockperf UDP 64 B, one way, 99 %", "us", "sockperf", "latency_us_p99"),
    ("fi_pingpong tcp rdm, 64 B, one way, mean", "us", "fi_latency", "latency_us_mean"),
]


def medians(rounds):
    """One value per figure from a list of {figure: value}."""
    keys = {key for values in rounds for key in values}
    return {key: statistics.median(v[key] for v in rounds if key in v) for key in sorted(keys)}


def say(text):
    print(text, file=sys.stderr, flush=True)


def take_turns(hosts, measurements, rounds, seconds):
    """Runs every measurement once per round; returns {name: [figures of a round]} and what went
    wrong. Ends early, with what there is, when interrupted."""
    results = {name: [] for name in measurements}
    problems = []
    try:
        for number in range(1, rounds + 1):
            for name, measure in measurements.items():
                begin = time.monotonic()
                try:
                    results[name].append(measure(hosts, seconds))
                except (peers.BenchError, TimeoutError) as error:
                    problems.append(f"round {number}, {name}: {error}")
                    say(f"  {problems[-1]}")
                    continue
                shown = " ".join(f"{k}={v:.4g}" for k, v in results[name][-1].items())
                say(f"  round {number}/{rounds} {name:14} {shown} "
                    f"({time.monotonic() - begin:.1f} s)")
    except KeyboardInterrupt:
        problems.append("interrupted: fewer rounds than asked for")
    return results, problems


def print_table(figures):
    for title, unit, name, key in PEER_ROWS:
        value = figures.get(name, {}).get(key)
        shown = "-" if value is None else f"{value:.3g}"
        print(f"{title:46}{shown:>10} {unit}")


def need(programs):
    missing = [program for program in programs if shutil.which(program) is None]
    if missing:
        netns.skip(f"not installed: {', '.join(missing)} (make setup)")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5, help="turns of each program")
    parser.add_argument("--seconds", type=int, default=3, help="length of one measurement")
    parser.add_argument("--only", action="append", metavar="NAME", help="this measurement; repeat")
    parser.add_argument("--json", type=pathlib.Path, help="write the results to this file")
    arguments = parser.parse_args()
    chosen = {n: m for n, m in PEERS.items() if not arguments.only or n in arguments.only}
    if not chosen or arguments.rounds < 1 or arguments.seconds < 1:
        parser.error(f"nothing to measure; names are: {', '.join(PEERS)}")
    need(["ip", "iperf3", "sockperf", "fi_pingpong"])
    load = os.getloadavg()[0]
    if load > 0.5:
        say(f"the machine is busy (load {load:.1f}): the figures are worth little")
    netns.enter()
    hosts = netns.TwoHosts(PLANES, MTU)
    results, problems = take_turns(hosts, chosen, arguments.rounds, arguments.seconds)
    figures = {name: medians(rounds) for name, rounds in results.items()}
    print_table(figures)
    if arguments.json:
        document = {"schema": "mrc.macrobench", "version": 1, "load": load, "planes": PLANES,
                    "mtu": MTU, "rounds": results, "medians": figures, "problems": problems}
        arguments.json.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
