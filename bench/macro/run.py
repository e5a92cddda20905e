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
import ours  # noqa: E402
import peers  # noqa: E402
import programs  # noqa: E402

PLANES = 4
MTU = 9000
# Order of a round: ours stands beside the one it is compared with.
PEERS = {"iperf3": peers.iperf3, "sockperf": peers.sockperf, "fi_latency": peers.fi_latency,
         "fi_bandwidth": peers.fi_bandwidth, "busy_iperf3": peers.busy_iperf3}
PROGRAMS = {"iperf3": "iperf3", "busy_iperf3": "iperf3",
            "sockperf": "sockperf", "fi_latency": "fi_pingpong",
            "fi_bandwidth": "fi_pingpong"}
OURS = ["write_bw", "header_checks", "write_lat", "spinning_lat", "busy_bw", "message_rate",
        "immediates", "many_qps", "thousand_qps", "plane_loss"]
BESIDE_PEERS = 5  # so many of ours come first
# Title, unit, measurement, figure.
ROWS = [
    ("1 MiB writes, one queue pair", "Gb/s", "write_bw", "bandwidth_gbps"),
    ("the same, payload by UDP checksum", "Gb/s", "header_checks", "bandwidth_gbps"),
    ("iperf3 TCP, one stream", "Gb/s", "iperf3", "bandwidth_gbps"),
    ("fi_pingpong tcp rdm, 1 MiB", "Gb/s", "fi_bandwidth", "bandwidth_gbps"),
    ("64 B writes, one way, median", "us", "write_lat", "latency_us_median"),
    ("64 B writes, one way, 99 %", "us", "write_lat", "latency_us_p99"),
    ("sockperf UDP 64 B, one way, median", "us", "sockperf", "latency_us_median"),
    ("sockperf UDP 64 B, one way, 99 %", "us", "sockperf", "latency_us_p99"),
    ("fi_pingpong tcp rdm 64 B, one way, mean", "us", "fi_latency", "latency_us_mean"),
    ("64 B writes, one way, watching memory only", "us", "spinning_lat", "latency_us_median"),
    ("1 MiB writes beside two busy loops", "Gb/s", "busy_bw", "bandwidth_gbps"),
    ("iperf3 beside two busy loops", "Gb/s", "busy_iperf3", "bandwidth_gbps"),
    ("processor time of both sides, 1 MiB writes", "s/GB", "write_bw", "cpu_s_per_gb"),
    ("the same, payload by UDP checksum", "s/GB", "header_checks", "cpu_s_per_gb"),
    ("processor time of both sides, iperf3", "s/GB", "iperf3", "cpu_s_per_gb"),
    ("64 B writes, one queue pair", "M/s", "message_rate", "message_rate_mpps"),
    ("1 MiB writes with immediate", "Gb/s", "immediates", "bandwidth_gbps"),
    *((f"{title} writes, {count} queue pairs", "Gb/s", "many_qps", f"gbps_{size}_{count}")
      for title, size in (("1 MiB", "1M"), ("64 KiB", "64K")) for count in ours.QPS_COMPARED),
    ("4 KiB writes, 1,000 queue pairs", "Gb/s", "thousand_qps", "bandwidth_gbps"),
    ("memory per queue pair, 1,000 open", "kB", "thousand_qps", "memory_kb_per_qp"),
    ("rate before one plane of four is cut", "Gb/s", "plane_loss", "before_gbps"),
    ("rate on the other three", "Gb/s", "plane_loss", "after_gbps"),
    ("time from the cut to that rate", "ms", "plane_loss", "recovery_ms"),
]


class Bar:
    """A ratio of ours to a peer's that has to be reached, and one that is hoped for."""

    def __init__(self, title, ours, theirs, bar, goal, more_is_better):
        self.title, self.ours, self.theirs = title, ours, theirs
        self.bar, self.goal, self.more_is_better = bar, goal, more_is_better

    def ratio(self, figures):
        ours = figures.get(self.ours[0], {}).get(self.ours[1])
        theirs = figures.get(self.theirs[0], {}).get(self.theirs[1])
        return ours / theirs if ours and theirs else None

    def reaches(self, ratio, limit):
        return ratio >= limit if self.more_is_better else ratio <= limit

    def verdict(self, ratio):
        if not self.reaches(ratio, self.bar):
            return "missed"
        return "goal reached" if self.reaches(ratio, self.goal) else "bar reached"


BARS = [
    Bar("bandwidth: 1 MiB writes / iperf3", ("write_bw", "bandwidth_gbps"),
        ("iperf3", "bandwidth_gbps"), 0.7, 0.9, True),
    Bar("processor time per GB / iperf3", ("write_bw", "cpu_s_per_gb"),
        ("iperf3", "cpu_s_per_gb"), 1.6, 1.3, False),
    Bar("bandwidth, payload by UDP checksum / iperf3", ("header_checks", "bandwidth_gbps"),
        ("iperf3", "bandwidth_gbps"), 0.8, 1.0, True),
    Bar("processor time, likewise / iperf3", ("header_checks", "cpu_s_per_gb"),
        ("iperf3", "cpu_s_per_gb"), 1.4, 1.1, False),
    *(Bar(f"{count} queue pairs / one, {size}", ("many_qps", f"gbps_{size}_{count}"),
          ("many_qps", f"gbps_{size}_1"), 0.95, 1.1, True)
      for size in ("1M", "64K") for count in ours.QPS_COMPARED[1:]),
    Bar("beside two busy loops / iperf3 likewise", ("busy_bw", "bandwidth_gbps"),
        ("busy_iperf3", "bandwidth_gbps"), 0.6, 0.8, True),
    Bar("latency: 64 B writes / sockperf, medians", ("write_lat", "latency_us_median"),
        ("sockperf", "latency_us_median"), 1.1, 1.0, False),
    Bar("latency: 64 B writes / sockperf, 99 %", ("write_lat", "latency_us_p99"),
        ("sockperf", "latency_us_p99"), 1.5, 1.2, False),
    Bar("latency: watching memory / polling", ("spinning_lat", "latency_us_median"),
        ("write_lat", "latency_us_median"), 1.3, 1.1, False),
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
    """Prints figures and ratios; returns the ratios with their verdicts."""
    for title, unit, name, key in ROWS:
        value = figures.get(name, {}).get(key)
        if value is not None:
            print(f"{title:46}{value:>10.3g} {unit}")
    ratios = []
    for bar in BARS:
        ratio = bar.ratio(figures)
        if ratio is None:
            continue
        ratios.append({"title": bar.title, "ratio": ratio, "bar": bar.bar, "goal": bar.goal,
                       "verdict": bar.verdict(ratio)})
        print(f"{bar.title:46}{ratio:>9.2f}x  bar {bar.bar}x, goal {bar.goal}x: "
              f"{bar.verdict(ratio)}")
    return ratios


def need(programs):
    missing = [program for program in programs if shutil.which(program) is None]
    if missing:
        programs.skip(f"not installed: {', '.join(missing)} (make setup)")


def choose(arguments):
    """The measurements of a round, ours first where there is one to compare."""
    own = ours.Ours(str(arguments.mrc.resolve()))
    everything = {}
    if not arguments.peers_only:
        everything.update({name: getattr(own, name) for name in OURS[:BESIDE_PEERS]})
    everything.update(PEERS)
    if not arguments.peers_only:
        everything.update({name: getattr(own, name) for name in OURS[BESIDE_PEERS:]})
    return {n: m for n, m in everything.items() if not arguments.only or n in arguments.only}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5, help="turns of each program")
    parser.add_argument("--seconds", type=int, default=3, help="length of one measurement")
    parser.add_argument("--only", action="append", metavar="NAME", help="this measurement; repeat")
    parser.add_argument("--json", type=pathlib.Path, help="write the results to this file")
    parser.add_argument("--mrc", type=pathlib.Path, default=ROOT / "build/release/tools/mrc/mrc")
    parser.add_argument("--peers-only", action="store_true", help="leave ours out")
    arguments = parser.parse_args()
    chosen = choose(arguments)
    if not chosen or arguments.rounds < 1 or arguments.seconds < 1:
        parser.error(f"nothing to measure; names are: {', '.join([*PEERS, *OURS])}")
    need(["ip", *{PROGRAMS[name] for name in chosen if name in PROGRAMS}])
    if not arguments.peers_only and not arguments.mrc.exists():
        programs.skip(f"there is no {arguments.mrc} (make macrobench builds it)")
    load = os.getloadavg()[0]
    if load > 0.5:
        say(f"the machine is busy (load {load:.1f}): the figures are worth little")
    netns.enter()
    hosts = netns.TwoHosts(PLANES, MTU)
    results, problems = take_turns(hosts, chosen, arguments.rounds, arguments.seconds)
    figures = {name: medians(rounds) for name, rounds in results.items()}
    ratios = print_table(figures)
    if arguments.json:
        document = {"schema": "mrc.macrobench", "version": 1, "load": load, "planes": PLANES,
                    "mtu": MTU, "rounds": results, "medians": figures, "ratios": ratios,
                    "problems": problems}
        arguments.json.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
