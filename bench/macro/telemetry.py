#!/usr/bin/env python3
"""What it costs that a process tells how it does: `mrc perf` over loopback with MRC_TELEMETRY on
and off, in turns, so that what the machine does meanwhile meets both.

Usage: telemetry.py MRC [rounds] [seconds]
"""

import json
import os
import pathlib
import statistics
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tests/support"))

import programs  # noqa: E402  (found through the line above)

CASES = {
    "write_bw, 1 MiB": (("write_bw", "-s", "1M"), "bandwidth"),
    "write_bw, 4 KiB": (("write_bw", "-s", "4K"), "bandwidth"),
    "write_bw, 64 queue pairs": (("write_bw", "-s", "64K", "-q", "64", "-t", "4"), "bandwidth"),
    "write_lat, 64 bytes": (("write_lat", "-s", "64"), "latency"),
}


def measure(mrc, folder, words, seconds, switch):
    environment = programs.device_environment(folder, MRC_TELEMETRY=switch)
    port = str(programs.free_tcp_port())
    test, *more = words
    server = programs.start([mrc, "perf", test, "-p", port, "--json"], env=environment)
    try:
        programs.eventually(lambda: programs.is_listening(int(port)), "the server does not listen")
        client = programs.run([mrc, "perf", test, "-p", port, "--json", "-D", str(seconds), *more,
                               "127.0.0.1"], env=environment)
        if client.returncode != 0:
            raise programs.Failed(client.stderr)
        return json.loads(client.stdout)["results"][0]
    finally:
        programs.end(server)


def value_of(result, kind):
    """More is better."""
    if kind == "bandwidth":
        return result["bandwidth_gbps"]
    return 1 / result["latency_us_median"]


def main():
    mrc = os.path.abspath(sys.argv[1])
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 5
    seconds = float(sys.argv[3]) if len(sys.argv) > 3 else 2
    for name, (words, kind) in CASES.items():
        shares = []
        with programs.own_folder() as folder:
            for turn in range(rounds):
                order = ("on", "off") if turn % 2 == 0 else ("off", "on")
                got = {switch: value_of(measure(mrc, folder, words, seconds, switch), kind)
                       for switch in order}
                shares.append(got["on"] / got["off"])
        print(f"{name:28} on / off {statistics.median(shares):.4f}  "
              f"({min(shares):.3f} to {max(shares):.3f}, {rounds} pairs)", flush=True)


if __name__ == "__main__":
    main()
