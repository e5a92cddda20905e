#!/usr/bin/env python3
"""Measures how fast the simulator is and how much memory it takes, beside the peer's figures.

Each size runs a 2 MB permutation at 400 Gb/s on two tiers, in a process of its own and with nothing
else at the same time. A row gives the best of --repeat runs: other work on the machine only ever
makes a run slower. --full adds the 131,072 NICs of the MRC paper with a 1 MB permutation.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
# Peer: uet-htsim on two Neoverse-V1 cores; packet-hops per second and peak bytes.
CASES = [
    {"name": "128 hosts", "hosts": 128, "args": ["--topology", "anchor-128", "--bytes", "2MB"],
     "peer_hops": 0.65e6, "peer_bytes": 15e6},
    {"name": "1,024 hosts", "hosts": 1024, "args": ["--topology", "anchor-1024", "--bytes", "2MB"],
     "peer_hops": 0.283e6, "peer_bytes": 106e6},
    {"name": "8,192 hosts", "hosts": 8192, "args": ["--topology", "anchor-8192", "--bytes", "2MB"],
     "peer_hops": 0.158e6, "peer_bytes": 1057e6},
]
FULL = {"name": "131,072 NICs, 8 planes", "hosts": 131072,
        "args": ["--topology", "paper-131072", "--bytes", "1MB"]}


def simulate(program, words):
    done = subprocess.run([program, "sim", *words, "--json"], stdout=subprocess.PIPE, text=True,
                          check=False)
    if done.returncode != 0:
        sys.exit(f"bench/sim: mrc sim {' '.join(words)}: exit {done.returncode}")
    return json.loads(done.stdout)


def measure(program, case, repeat):
    """The best of the runs; memory is that of the whole process, as for the peer."""
    words = ["--workload", "permutation", "--seed", "1", *case["args"]]
    best = max((simulate(program, words) for _ in range(repeat)),
               key=lambda result: result["packet_hops_per_s"])
    row = {"name": case["name"], "hosts": case["hosts"], "packet_hops": best["packet_hops"],
           "packet_hops_per_s": best["packet_hops_per_s"], "wall_s": best["wall_s"],
           "setup_s": best["setup_s"], "peak_rss_bytes": best["peak_rss_bytes"],
           "bytes_per_host": best["peak_rss_bytes"] / case["hosts"],
           "ratio_max": best["ratio_max"], "trace_hash": best["trace_hash"]}
    if "peer_hops" in case:
        row["peer_packet_hops_per_s"] = case["peer_hops"]
        row["times_peer"] = best["packet_hops_per_s"] / case["peer_hops"]
        row["peer_bytes_per_host"] = case["peer_bytes"] / case["hosts"]
    return row


def print_row(row):
    peer = ""
    if "times_peer" in row:
        peer = (f"{row['peer_packet_hops_per_s'] / 1e6:9.3f}  {row['times_peer']:6.1f}x"
                f"  {row['peer_bytes_per_host'] / 1e3:9.0f}")
    print(f"{row['name']:24}{row['packet_hops_per_s'] / 1e6:9.3f}  {row['wall_s']:8.1f}"
          f"  {row['peak_rss_bytes'] / 1e6:8.0f}  {row['bytes_per_host'] / 1e3:8.1f}  {peer}",
          flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mrc", default=str(ROOT / "build/release/tools/mrc/mrc"))
    parser.add_argument("--repeat", type=int, default=3, help="runs of each size")
    parser.add_argument("--full", action="store_true", help="the 131,072-NIC fabric as well, once")
    parser.add_argument("--json", type=pathlib.Path, help="write the results to this file")
    arguments = parser.parse_args()
    load = os.getloadavg()[0]
    if load > 0.5:
        print(f"the machine is busy (load {load:.1f}): expect lower figures than it can give")
    print(f"{'':24}{'Mhops/s':>9}  {'wall s':>8}  {'RSS MB':>8}  {'kB/host':>8}  "
          f"{'peer Mh/s':>9}  {'ratio':>7}  {'kB/host':>9}", flush=True)
    rows = []
    for case in CASES + ([FULL] if arguments.full else []):
        repeat = 1 if case is FULL else arguments.repeat
        rows.append(measure(arguments.mrc, case, repeat))
        print_row(rows[-1])
    if arguments.json:
        results = {"schema": "mrc.simbench/1", "load": load, "rows": rows}
        arguments.json.write_text(json.dumps(results, indent=1), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
