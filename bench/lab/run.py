#!/usr/bin/env python3
"""Measures on real packets how fast a transfer leaves a path that breaks, and what that costs.

Two hosts on four planes, 1 Gb/s per port, each run in a lab of its own: one host writes, a part
breaks, stays broken for a while and is healed. A run gives
  left    time from the break to the last data frame sent towards the broken part, as its switches
          saw it (probes may go on);
  stall   longest time in which no message completed, from the break to the repair;
  dip     lowest share of the rate before the break in any 10 ms after it.
The table has the median and the worst of all runs of a kind; the row `none` shows what the machine
does by itself. The second figure is that of the switches: frames per second and core. --switch
kernel measures on namespaces and the kernel's SRv6 instead, where `left` is not to be had. Needs
nothing but a build and, for that, root. On a machine with other work `chrt -r 10 bench/lab/run.py`
(root) keeps that out of the figures, but for the twentieth part of each second that the kernel
keeps for it: then all processes of the lab stand still for up to 50 ms. Watchers with a higher
priority than all the rest notice that, one on each processor, and a run in which they stood still
is set aside and made again.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests" / "support"))

import labs  # noqa: E402  (found through the line above)
import programs  # noqa: E402
from programs import Failed  # noqa: E402

FABRIC = ["--hosts", "2", "--planes", "4", "--t0", "2", "--t1", "4"]
MBPS = 1000
MESSAGE = 64 * 1024
INTERVAL_S = 0.001
WINDOW_S = 0.010  # of a dip
WARM_UP_S = 0.5
WAIT_S = 60
FLAP_S = 0.05
LEFT_BAR_MS = 5.0
LEFT_GOAL_MS = 1.0
STALL_BAR_MS = 20.0
SWITCH_BAR = 500e3
STOOD_STILL_MS = 5.0
TRIES_PER_RUN = 6  # in the mean, before we give up
MIN_TRIES = 20
# Prints when its processor did not let it run: the end of the time, and how long it was.
WATCHER = """
import os, sys, time
os.sched_setaffinity(0, {int(sys.argv[1])})
os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(int(sys.argv[2])))
parent = os.getppid()
last = time.monotonic()
while os.getppid() == parent:
    time.sleep(0.001)
    now = time.monotonic()
    if now - last > float(sys.argv[3]):
        print(now, now - last, flush=True)
    last = now
"""
# Host 1 writes to host 0, so a broken port of host 0 is one the writer has to be told of.
KINDS = {
    "none": None,  # what the machine does by itself
    "cable": "t0:0/t1:1/plane:1 down @0",
    "t1": "t1:2/plane:0 down @0",
    "port": "host:0/plane:2 down @0",
    "plane": "t0:*/plane:3 down @0",
    "lossy": "t0:0/t1:3/plane:0 loss 20% @0",
    "flap": f"t0:0/t1:0/plane:2 flap {FLAP_S * 1e3:g}ms/{FLAP_S * 1e3:g}ms @0",
}


class Writer:
    """The client of a transfer; its intervals are read as they come."""

    def __init__(self, process):
        self.process = process
        self.intervals = []
        self.errors = ""
        self.threads = [threading.Thread(target=work, daemon=True)
                        for work in (self.read_intervals, self.read_errors)]
        for thread in self.threads:
            thread.start()

    def read_intervals(self):
        for text in self.process.stdout:
            line = json.loads(text)
            if line["schema"] == "mrc.perf.interval":
                self.intervals.append(line)

    def read_errors(self):
        self.errors = self.process.stderr.read()

    def moves(self):
        return self.process.poll() is not None or any(
            line["messages"] for line in self.intervals[-100:])

    def finish(self):
        self.process.wait(timeout=WAIT_S)
        for thread in self.threads:
            thread.join(timeout=WAIT_S)
        if self.process.returncode != 0:
            raise Failed(f"the writer failed: {self.errors.strip()}")
        return self.intervals


class Watchers:
    """Notice that the machine stands still. Without real-time priority nobody can tell."""

    def __init__(self):
        self.stops = []
        self.processes = []
        if os.sched_getscheduler(0) not in (os.SCHED_RR, os.SCHED_FIFO):
            return
        priority = os.sched_getparam(0).sched_priority + 1
        for cpu in os.sched_getaffinity(0):
            words = [sys.executable, "-c", WATCHER, str(cpu), str(priority),
                     str(STOOD_STILL_MS / 1e3)]
            process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
            self.processes.append(process)
            threading.Thread(target=self.read, args=[process], daemon=True).start()

    def read(self, process):
        for line in process.stdout:
            end, length = map(float, line.split())
            self.stops.append((end - length, end))

    def longest_ms(self, start, end):
        return max((1e3 * (stop[1] - stop[0]) for stop in self.stops
                    if stop[0] < end and stop[1] > start), default=0.0)

    def close(self):
        for process in self.processes:
            process.kill()
            process.wait(timeout=WAIT_S)


def start_traffic(lab, address, seconds):
    port = programs.free_tcp_port()
    flags = ["write_bw", "-s", str(MESSAGE), "-D", str(seconds)]
    server = lab.start_server(0, port, *flags)
    writer = Writer(lab.start_tool(1, "perf", *flags, "-p", str(port), "--report-every",
                                   str(INTERVAL_S), address))
    programs.eventually(writer.moves, "nothing moves", WAIT_S)
    return server, writer


def longest_stall_ms(intervals):
    longest = current = 0.0
    for line in intervals:
        current = 0.0 if line["messages"] else current + line["end_s"] - line["start_s"]
        longest = max(longest, current)
    return longest * 1e3


def rate(intervals):
    seconds = sum(line["end_s"] - line["start_s"] for line in intervals)
    return sum(line["messages"] for line in intervals) / seconds if seconds > 0 else 0.0


def lowest_window(intervals):
    """Messages per second in the worst window."""
    lowest = float("inf")
    for first, line in enumerate(intervals):
        window = [other for other in intervals[first:]
                  if other["end_s"] <= line["start_s"] + WINDOW_S + INTERVAL_S]
        if window and window[-1]["end_s"] - line["start_s"] >= WINDOW_S:
            lowest = min(lowest, rate(window))
    return lowest


def offered_ms(lab, kind):
    """What the switches saw. Only what is broken is listed, so a flapping cable is asked twice."""
    links = lab.status()["links"]
    if kind == "flap":
        time.sleep(FLAP_S)
        links += lab.status()["links"]
    return max((link["offered_ms"] for link in links if "offered_ms" in link), default=0.0)


def break_and_heal(lab, switch, kind, broken_s):
    """When it broke and was healed, how long the broken part was offered data, and what the writer
    reported."""
    netns = ["--netns", "--switch", switch] if switch != "process" else []
    lab.do("up", *FABRIC, "--mbps", str(MBPS), *netns)
    server, writer = start_traffic(lab, "10.0.0.1" if netns else "127.0.0.1",
                                   WARM_UP_S + broken_s + 2)
    time.sleep(WARM_UP_S)
    broke = time.monotonic()
    if KINDS[kind]:
        lab.do("fault", KINDS[kind])
    time.sleep(broken_s)
    left_ms = offered_ms(lab, kind)
    healed = time.monotonic()
    lab.do("heal", "all")
    intervals = writer.finish()
    programs.finish(server)
    return broke, healed, left_ms, intervals


def one_run(program, switch, kind, broken_s):
    with programs.own_folder() as folder:
        lab = labs.Lab(program, folder)
        try:
            broke, healed, left_ms, intervals = break_and_heal(lab, switch, kind, broken_s)
        finally:
            lab.close()
    before = [line for line in intervals if broke - WARM_UP_S < line["clock_s"] < broke]
    during = [line for line in intervals if broke <= line["clock_s"] <= healed]
    if not before or not during or rate(before) == 0:
        raise Failed(f"{kind}: nothing moved before the break")
    return {"broke": broke, "healed": healed,
            "left_ms": left_ms if switch != "kernel" else None,
            "stall_ms": longest_stall_ms(during),
            "dip_share": min(1.0, lowest_window(during) / rate(before)),
            "rate_before_gbps": rate(before) * MESSAGE * 8 / 1e9,
            "rate_broken_gbps": rate(during) * MESSAGE * 8 / 1e9}


def runs_of(kind, options, watchers):
    """The runs that count, and how many were set aside."""
    program = os.path.join(options.build, "tools", "mrc", "mrc")
    runs = []
    for tries in range(1, max(TRIES_PER_RUN * options.runs, MIN_TRIES) + 1):
        run = one_run(program, options.switch, kind, options.broken)
        if watchers.longest_ms(run.pop("broke"), run.pop("healed")) == 0.0:
            runs.append(run)
        if len(runs) == options.runs:
            return runs, tries - len(runs)
    raise Failed(f"{kind}: the machine stands still too often to measure anything")


def summary(runs):
    def both(key, worst):
        values = [run[key] for run in runs if run[key] is not None]
        return {"p50": statistics.median(values), "worst": worst(values)} if values else None
    return {"runs": len(runs), "left_ms": both("left_ms", max), "stall_ms": both("stall_ms", max),
            "dip_share": both("dip_share", min),
            "rate_before_gbps": statistics.median(run["rate_before_gbps"] for run in runs),
            "rate_broken_gbps": statistics.median(run["rate_broken_gbps"] for run in runs)}


def show(kind, row):
    def pair(value, digits, scale=1):
        if value is None:
            return f"{'-':>8} {'-':>8}"
        return f"{value['p50'] * scale:8.{digits}f} {value['worst'] * scale:8.{digits}f}"
    print(f"{kind:8}{pair(row['left_ms'], 2)}  {pair(row['stall_ms'], 1)}  "
          f"{pair(row['dip_share'], 0, 100)}  {row['rate_before_gbps']:8.2f} "
          f"{row['rate_broken_gbps']:8.2f}", flush=True)


def switch_rate(program):
    """Frames that one core of ours switches, from socket to socket across three switches."""
    done = subprocess.run([program, "sockets", "1000000", "64"], capture_output=True, text=True,
                          timeout=600, check=False)
    if done.returncode != 0:
        raise Failed(f"{program}: {done.stderr.strip()}")
    return json.loads(done.stdout)


def verdict(rows, switch):
    """Lines about bars that were missed."""
    for kind, row in rows.items():
        if not KINDS[kind]:
            continue
        # A lossy path may be worth using again.
        if row["left_ms"] and kind != "lossy" and row["left_ms"]["worst"] > LEFT_BAR_MS:
            yield f"{kind}: left after {row['left_ms']['worst']:.2f} ms, bar {LEFT_BAR_MS} ms"
        if row["stall_ms"]["worst"] > STALL_BAR_MS:
            yield f"{kind}: stall of {row['stall_ms']['worst']:.1f} ms, bar {STALL_BAR_MS} ms"
    if switch and switch['switch_hops_per_core_s'] < SWITCH_BAR:
        yield f"switch: {switch['switch_hops_per_core_s']:.0f} frames/s, bar {SWITCH_BAR:.0f}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", default=str(ROOT / "build" / "release"))
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=list(KINDS))
    parser.add_argument("--broken", type=float, default=0.5, help="seconds a part stays broken")
    parser.add_argument("--switch", choices=["process", "mrc", "kernel"], default="process",
                        help="process: no privileges; mrc, kernel: in namespaces")
    parser.add_argument("--json", metavar="FILE")
    options = parser.parse_args()
    print(f"{'':8}{'left, ms':>17}  {'stall, ms':>17}  {'dip to, %':>17}  {'Gb/s':>17}")
    print(f"{'':8}{'p50':>8} {'worst':>8}  {'p50':>8} {'worst':>8}  {'p50':>8} {'worst':>8}  "
          f"{'before':>8} {'broken':>8}")
    rows = {}
    watchers = Watchers()
    try:
        for kind in options.kinds:
            runs, set_aside = runs_of(kind, options, watchers)
            rows[kind] = summary(runs) | {"set_aside": set_aside, "all": runs}
            show(kind, rows[kind])
    finally:
        watchers.close()
    set_aside = sum(row["set_aside"] for row in rows.values())
    if set_aside:
        print(f"set aside: {set_aside} runs in which the machine stood still")
    bench = os.path.join(options.build, "bench", "micro", "mrc_lab_bench")
    switch = switch_rate(bench) if options.switch == "process" else None
    if switch:
        print(f"switch: {switch['switch_hops_per_core_s']:,.0f} frames/s per core")
    missed = list(verdict(rows, switch))
    for line in missed:
        print(f"missed: {line}")
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump({"schema": "mrc.bench.lab/1", "switches": options.switch, "kinds": rows,
                       "switch": switch, "missed": missed}, file, indent=2)
    return 0


if __name__ == "__main__":
    programs.leave_cleanly_when_told()
    try:
        sys.exit(main())
    except Failed as failed:
        sys.exit(f"bench/lab: {failed}")
