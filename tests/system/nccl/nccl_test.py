#!/usr/bin/env python3
"""Starts the ranks of one scenario of nccl_rank and judges how they end.

Usage: nccl_test.py RANK_PROGRAM PLUGIN SCENARIO VERSION [ENGINE_THREADS]
"""

import os
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "support"))

import programs  # noqa: E402  (found through the line above)

LIMIT_SECONDS = 500
RANKS = {"bad_input": 1, "no_device": 1, "misspelt": 1, "old_name": 1, "fork": 1, "ring": 4,
         "ring_ports": 4}
# How a rank ends when it is to be killed.
KILLED = -9


def start(program, plugin, scenario, version, rank, ranks, directory, environment):
    log = open(pathlib.Path(directory) / f"log.{scenario}.{rank}", "w+", encoding="utf-8")
    arguments = [program, plugin, version, scenario, str(rank), str(ranks), directory]
    return subprocess.Popen(arguments, env=environment, stdout=log, stderr=log), log


def environment_of(scenario, directory, threads):
    environment = programs.device_environment(directory, MRC_THREADS=threads)
    for kept in ("MRC_TEST_RESULTS", "MRC_SYSFS_DIR"):  # the second one under `mrc run`
        if kept in os.environ:
            environment[kept] = os.environ[kept]
    if scenario == "no_device":
        broken = pathlib.Path(directory) / "broken.toml"
        broken.write_text("this is not TOML [", encoding="utf-8")
        environment["MRC_CONFIG"] = str(broken)
        environment["CAUSE"] = "broken.toml:1"
    if scenario == "misspelt":
        environment["MRC_PLANE"] = "2"
        environment["CAUSE"] = "is MRC_PLANES meant?"
    if scenario == "ring_ports":
        environment["ROUNDS"] = "40"
    return environment


def sealed(directory, name, key=0):
    path = pathlib.Path(directory) / name
    if not path.exists():
        path.touch(mode=0o600)
        path.write_text(f"key {key} {os.urandom(32).hex()}\n", encoding="ascii")
    return {"MRC_SECURITY": "sealed", "MRC_KEY_FILE": str(path)}


def own_environment(scenario, rank, directory):
    """What only this rank has, and what its log must say of the other."""
    if scenario == "other_dialect":
        dialect = [{}, {"MRC_DIALECT": "openmrc,first_rqmsn=1"}][rank]
        return dialect | {"CAUSE": f'first_rqmsn is "{1 - rank}" there and "{rank}" here'}
    if scenario in ("sealed_and_plain", "plain_and_sealed"):
        modes = scenario.replace("plain", "off").split("_and_")
        mode = sealed(directory, "key") if modes[rank] == "sealed" else {}
        return mode | {"CAUSE": f'security is "{modes[1 - rank]}" there and "{modes[rank]}" here'}
    if scenario in ("other_secret", "other_key"):
        key = rank if scenario == "other_key" else 0
        there = 1 - rank if scenario == "other_key" else 0
        return sealed(directory, f"key{rank}", key) | {"CAUSE": f"sealed there with key {there} ("}
    return {}


def main():
    program, plugin, scenario, version = sys.argv[1:5]
    threads = sys.argv[5] if len(sys.argv) > 5 else "1"
    ranks = RANKS.get(scenario, 2)
    programs.leave_cleanly_when_told()
    with programs.own_folder() as directory:
        environment = environment_of(scenario, directory, threads)
        role = "ring" if scenario == "ring_ports" else scenario
        processes = [start(program, plugin, role, version, rank, ranks, directory,
                           environment | own_environment(scenario, rank, directory))
                     for rank in range(ranks)]
        if scenario == "ring_ports":
            processes.append(
                start(program, plugin, "ports", version, 99, ranks, directory, environment))
        bad = False
        for rank, (process, log) in enumerate(processes):
            expected = KILLED if scenario == "killed" and rank == 1 else 0
            try:
                status = process.wait(LIMIT_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                status = "no end"
            bad = bad or status != expected
            log.seek(0)
            print(f"--- rank {rank} ended with {status}, expected {expected}")
            print(log.read(), end="")
            log.close()
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
