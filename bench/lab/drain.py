#!/usr/bin/env python3
"""Measures on real packets what `mrc drain` and `mrc undrain` cost jobs that go on.

Four hosts on two planes of 2 T0 + 2 T1, 100 Mb/s per port: the two at one T0 write to the two at
the other, so that every uplink is full. A part is drained, stays so for a while and is given back.
A row has, as median and worst of all runs of a kind,
  goodput   of both writers, as a share of that before: while the command runs, drained, and after
            it is given back; beside it the share that the fabric without the part can carry;
  stall     longest time in which a writer completed nothing, over all of it;
  resent    packets sent again, of those sent: before, from the command until it is given back, and
            after;
  done      how long the command took, which waits half a second for silence.
Needs nothing but a build. Usage: drain.py [--build DIR] [--runs N] [--parts ...] [--json FILE]
"""

import argparse
import json
import os
import statistics
import sys
import time

import run as labbench  # beside this file
import labs
import programs

FABRIC = ["--hosts", "4", "--planes", "2", "--t0", "2", "--t1", "2"]
PLANES = 2
WRITERS = {2: 0, 3: 1}  # sender and receiver
PARTS = ["t1:1/plane:0", "t0:1/t1:0/plane:1", "host:2/plane:1", "plane:0"]
SETTLE_S = 1.0  # until windows are as they stay
STRETCH_S = 2.0
MESSAGE = "64K"


def expected_share(part):
    """Of the bandwidth of all planes: ports of the writers, or uplinks where fewer are left."""
    left = 0
    for plane in range(PLANES):
        if part == f"plane:{plane}":
            continue
        hit = part.endswith(f"/plane:{plane}")
        left += min(2 - (hit and part.startswith("host:")), 2 - (hit and part.startswith("t")))
    return left / (2 * PLANES)


class Job:
    """All writers with their servers."""

    def __init__(self, lab, seconds):
        self.lab = lab
        self.servers = []
        self.writers = []
        for sender, receiver in WRITERS.items():
            port = programs.free_tcp_port()
            flags = ["write_bw", "-s", MESSAGE, "-D", str(seconds)]
            self.servers.append(lab.start_server(receiver, port, *flags))
            self.writers.append(labbench.Writer(lab.start_tool(
                sender, "perf", *flags, "-p", str(port), "--report-every", "0.01", "127.0.0.1")))
        for writer in self.writers:
            programs.eventually(writer.moves, "nothing moves")

    def totals(self):
        told = [self.lab.device_of(writer.process) for writer in self.writers]
        if None in told:
            raise programs.Failed("a writer has ended early")
        return [sum(device["totals"][name] for device in told)
                for name in ("sent_packets", "resent_packets")]

    def finish(self):
        intervals = [writer.finish() for writer in self.writers]
        for server in self.servers:
            programs.finish(server)
        return intervals


def stretch(job):
    """What was counted, and when, at the beginning and the end of a stretch of steady traffic."""
    begin = time.monotonic(), job.totals()
    time.sleep(STRETCH_S)
    return begin, (time.monotonic(), job.totals())


def rate_between(intervals, begin, end):
    return sum(labbench.rate([line for line in writer if begin <= line["clock_s"] < end])
               for writer in intervals)


def resent_between(first, last):
    sent, resent = (after - before for before, after in zip(first, last))
    return resent / max(sent, 1)


def measured(lab, part):
    place = ["--lab", "lab", "--dir", lab.folder]

    def must(*words):
        done = programs.run([lab.program, *words, *place])
        if done.returncode != 0:
            raise programs.Failed(f"mrc {' '.join(words)}: {done.stderr.strip()}")

    job = Job(lab, 2 * SETTLE_S + 3 * STRETCH_S + 8)
    time.sleep(SETTLE_S)
    before = stretch(job)
    started = time.monotonic()
    must("drain", part)
    ended = time.monotonic()
    drained = stretch(job)
    must("undrain", part)
    time.sleep(SETTLE_S)
    after = stretch(job)
    intervals = job.finish()
    usual = rate_between(intervals, before[0][0], before[1][0])

    def share(begin, end):
        return rate_between(intervals, begin, end) / usual

    whole = [[line for line in writer if before[0][0] <= line["clock_s"] < after[1][0]]
             for writer in intervals]
    return {"gbps_before": usual * 65536 * 8 / 1e9,
            "during": share(started, ended), "drained": share(drained[0][0], drained[1][0]),
            "after": share(after[0][0], after[1][0]),
            "stall_ms": max(labbench.longest_stall_ms(writer) for writer in whole),
            "resent_before": resent_between(before[0][1], before[1][1]),
            "resent_drained": resent_between(before[1][1], drained[1][1]),
            "resent_after": resent_between(drained[1][1], after[1][1]),
            "done_s": ended - started}


def one_run(program, part):
    with programs.own_folder() as folder:
        lab = labs.Lab(program, folder)
        try:
            lab.do("up", *FABRIC)
            return measured(lab, part)
        finally:
            lab.close()


def summary(runs):
    most = {key: max for key in runs[0]} | {key: min for key in ("during", "drained", "after")}
    return {key: {"p50": statistics.median(run[key] for run in runs),
                  "worst": most[key](run[key] for run in runs)} for key in runs[0]}


def show(part, row):
    def pair(key, scale=100.0, digits=0):
        return "/".join(f"{scale * row[key][which]:.{digits}f}" for which in ("p50", "worst"))

    print(f"{part:20} {100 * expected_share(part):8.0f} {pair('during'):>9} {pair('drained'):>9} "
          f"{pair('after'):>9} {pair('stall_ms', 1):>9} {pair('resent_before', 100, 2):>11} "
          f"{pair('resent_drained', 100, 2):>11} {pair('resent_after', 100, 2):>11} "
          f"{pair('done_s', 1, 1):>9}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", default=str(labbench.ROOT / "build" / "release"))
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--json", metavar="FILE")
    options = parser.parse_args()
    program = os.path.join(options.build, "tools", "mrc", "mrc")
    print(f"{'':20} {'goodput, % of before':>38} {'stall, ms':>9} {'resent, %':>35} {'done, s':>9}")
    print(f"{'median/worst':20} {'expected':>8} {'during':>9} {'drained':>9} {'after':>9} {'':>9} "
          f"{'before':>11} {'drained':>11} {'after':>11}")
    rows = {}
    for part in options.parts:
        runs = [one_run(program, part) for _ in range(options.runs)]
        rows[part] = summary(runs) | {"expected": expected_share(part), "all": runs}
        show(part, rows[part])
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump({"schema": "mrc.bench.drain/1", "parts": rows}, file, indent=2)
    return 0


if __name__ == "__main__":
    programs.leave_cleanly_when_told()
    try:
        sys.exit(main())
    except programs.Failed as failed:
        sys.exit(f"bench/lab/drain: {failed}")
