#!/usr/bin/env python3
"""Measures how jobs of a lab share its links, and what that costs: nothing is broken.

near     two hosts write to a third, one from its rack and one from another (two ports of 50 Mb/s)
three    three hosts write to one, two of them from another rack
pairs    four hosts write to each other in a ring
rings    two all-reduces of 4 MiB at once over eight hosts on four planes of 25 Mb/s

A row has the goodput of each job in Mb/s, the smallest one as a share of what is fair, all of them
as a share of what their links carry, and of all packets those sent again, and of all frames those
that switches trimmed and dropped. For rings, goodput is that of a host's ports.
Needs nothing but a build. Usage: share.py [--build DIR] [--runs N] [--cases ...] [--json FILE]
"""

import argparse
import json
import os
import statistics
import sys

import run as labbench  # beside this file: finds tests/support
import labs
import programs

WRITES_S = 5
MESSAGE = "64K"
RING_ITERATIONS = 6
SMALL = ["--hosts", "4", "--planes", "2", "--t0", "2", "--t1", "4", "--mbps", "50"]
LARGE = ["--hosts", "8", "--planes", "4", "--t0", "2", "--t1", "4", "--mbps", "25"]
FULL_PACKET = 4_096 / 4_254  # what is left of a frame's bytes on the cable
WRITERS = {"near": [(0, 3), (2, 3)], "three": [(0, 3), (1, 3), (2, 3)],
           "pairs": [(0, 2), (2, 1), (1, 3), (3, 0)]}
RINGS = 2
RING_BYTES = 4 << 20


def counted(lab):
    planes = lab.status()["planes"]
    return {"frames": sum(plane["frames"] for plane in planes),
            "trimmed": sum(plane["trimmed"] for plane in planes),
            "dropped": sum(sum(plane["dropped"].values()) for plane in planes)}


def writes(lab, pairs):
    ports = [programs.free_tcp_port() for _ in pairs]
    servers = [lab.start_server(receiver, port, "write_imm")
               for (_, receiver), port in zip(pairs, ports)]
    clients = [lab.start_tool(sender, "perf", "write_imm", "-p", str(port), "-s", MESSAGE, "-D",
                              str(WRITES_S), "--explain", "--json", "127.0.0.1")
               for (sender, _), port in zip(pairs, ports)]
    results = [json.loads(programs.finish(client))["results"][0] for client in clients]
    for server in servers:
        programs.finish(server)
    told = [result["explain"] for result in results]
    return ([result["bandwidth_gbps"] * 1e3 for result in results],
            sum(told_of["retransmitted"] for told_of in told) /
            sum(told_of["packets_sent"] for told_of in told))


def rings(lab):
    size = str(RING_BYTES)
    jobs = [programs.start([lab.program, "perf", "allreduce", "--lab", "lab", "--lab-dir",
                            lab.folder, "-b", size, "-e", size, "-n", str(RING_ITERATIONS), "-w",
                            "1", "--json"]) for _ in range(RINGS)]
    seconds = [json.loads(programs.finish(job))["results"][0]["time_us"] / 1e6 for job in jobs]
    sent = 2 * 7 / 8 * RING_BYTES * 8 / 1e6
    return [sent / each for each in seconds], None


def measured(program, case):
    with programs.own_folder() as folder:
        lab = labs.Lab(program, folder)
        try:
            lab.do("up", *(LARGE if case == "rings" else SMALL))
            before = counted(lab)
            mbps, resent = rings(lab) if case == "rings" else writes(lab, WRITERS[case])
            count = {key: value - before[key] for key, value in counted(lab).items()}
        finally:
            lab.close()
    links = 4 if case == "pairs" else 1
    return {"mbps": mbps, "least": min(mbps) / statistics.mean(mbps),
            "carried": sum(mbps) / (100 * links * FULL_PACKET), "resent": resent,
            "trimmed": count["trimmed"] / count["frames"],
            "dropped": count["dropped"] / count["frames"]}


def show(case, run):
    resent = "-" if run["resent"] is None else f"{100 * run['resent']:.2f}"
    print(f"{case:6} {100 * run['least']:6.0f} {100 * run['carried']:8.0f} {resent:>8} "
          f"{100 * run['trimmed']:8.2f} {100 * run['dropped']:8.3f}   "
          f"{' '.join(f'{mbps:.1f}' for mbps in run['mbps'])}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", default="build/release")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--cases", nargs="+", choices=[*WRITERS, "rings"],
                        default=[*WRITERS, "rings"])
    parser.add_argument("--json")
    options = parser.parse_args()
    program = os.path.abspath(os.path.join(options.build, "tools/mrc/mrc"))
    print(f"{'%':6} {'least':>6} {'carried':>8} {'resent':>8} {'trimmed':>8} {'dropped':>8}   Mb/s")
    results = {}
    for case in options.cases:
        for _ in range(options.runs):
            run = measured(program, case)
            show(case, run)
            results.setdefault(case, []).append(run)
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(results, file, indent=1)
    return 0


if __name__ == "__main__":
    sys.exit(main())
