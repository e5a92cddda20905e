#!/usr/bin/env python3
"""Measures rings of processes over the NCCL plug-in beside the same over plain TCP, without a GPU.

All ranks share this machine and its loopback interface, so there are soon more of them than
processors, as on a busy host. Both transports take turns within each round; figures are medians.
"""

import argparse
import json
import pathlib
import statistics
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests" / "support"))

import programs  # noqa: E402  (found through the line above)

KIB, MIB = 1 << 10, 1 << 20
LIMIT_S = 120
# Pattern, ranks, bytes.
CASES = [("allreduce", ranks, size) for ranks in (2, 4, 8)
         for size in (4 * KIB, 64 * KIB, MIB, 64 * MIB)]
CASES += [("oneway", 2, 64 * MIB), ("oneway", 4, 64 * MIB)]


def size_text(size):
    return f"{size // MIB} MiB" if size >= MIB else f"{size // KIB} KiB"


def run_ranks(arguments, case, plugin):
    """One measurement: seconds per operation, processor seconds per GB sent, GB/s of a rank."""
    pattern, ranks, size = case
    with programs.own_folder() as directory:
        environment = programs.device_environment(directory)
        words = [arguments.program, pattern, str(size), str(arguments.seconds)]
        processes = []
        try:
            for rank in range(ranks):
                own = [*words, str(rank), str(ranks), str(directory)] + ([plugin] if plugin else [])
                processes.append(subprocess.Popen(
                    own, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                    text=True))
            results = []
            for rank, process in enumerate(processes):
                out, err = process.communicate(timeout=LIMIT_S)
                if process.returncode != 0:
                    raise RuntimeError(f"rank {rank} ended with {process.returncode}: {err[-300:]}")
                results.append(json.loads(out.splitlines()[-1]))
        finally:
            for process in processes:
                process.kill()
                process.communicate()
    seconds = max(result["seconds"] for result in results)
    sent = sum(result["sent_bytes"] for result in results)
    return {"us": 1e6 * seconds / results[0]["operations"],
            "cpu_s_per_gb": sum(result["cpu_s"] for result in results) / (sent / 1e9),
            "gb_per_s": size * results[0]["operations"] / seconds / 1e9}


def take_turns(arguments):
    """{case: {transport: [figures of a round]}} and what went wrong."""
    cases = [case for case in CASES if not arguments.ranks or case[1] in arguments.ranks]
    measured = {case: {"mrc": [], "tcp": []} for case in cases}
    problems = []
    for number in range(1, arguments.rounds + 1):
        for case in cases:
            for transport, plugin in (("mrc", str(arguments.plugin)), ("tcp", None)):
                what = f"{case[0]}, {case[1]} ranks, {size_text(case[2])}, {transport}"
                try:
                    measured[case][transport].append(run_ranks(arguments, case, plugin))
                except (RuntimeError, subprocess.TimeoutExpired) as error:
                    problems.append(f"round {number}, {what}: {error}")
                    print(f"  {problems[-1]}", file=sys.stderr, flush=True)
                    continue
                print(f"  round {number}/{arguments.rounds} {what}: "
                      f"{measured[case][transport][-1]['us']:.4g} us", file=sys.stderr, flush=True)
    return measured, problems


def print_table(measured):
    print(f"{'':34}{'plug-in':>10}{'TCP':>10} us  ratio{'plug-in':>11}{'TCP':>8} s/GB  ratio")
    rows = []
    for (pattern, ranks, size), transports in measured.items():
        if not transports["mrc"] or not transports["tcp"]:
            continue
        medians = {name: {key: statistics.median(r[key] for r in rounds) for key in rounds[0]}
                   for name, rounds in transports.items()}
        mrc, tcp = medians["mrc"], medians["tcp"]
        title = f"{pattern}, {ranks} ranks, {size_text(size)}"
        print(f"{title:34}{mrc['us']:>10.4g}{tcp['us']:>10.4g} {mrc['us'] / tcp['us']:>8.2f}x"
              f"{mrc['cpu_s_per_gb']:>10.3g}{tcp['cpu_s_per_gb']:>8.3g} "
              f"{mrc['cpu_s_per_gb'] / tcp['cpu_s_per_gb']:>10.2f}x")
        rows.append({"pattern": pattern, "ranks": ranks, "bytes": size, "medians": medians,
                     "time_ratio": mrc["us"] / tcp["us"],
                     "cpu_ratio": mrc["cpu_s_per_gb"] / tcp["cpu_s_per_gb"]})
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5, help="turns of each transport")
    parser.add_argument("--seconds", type=float, default=1, help="length of one measurement")
    parser.add_argument("--ranks", type=int, action="append", help="only so many; repeat")
    parser.add_argument("--json", type=pathlib.Path, help="write the results to this file")
    build = ROOT / "build/release"
    parser.add_argument("--program", default=str(build / "bench/nccl/mrc_nccl_bench"))
    parser.add_argument("--plugin", default=str(build / "plugins/nccl/libnccl-net-openmrc.so"))
    arguments = parser.parse_args()
    if arguments.rounds < 1 or arguments.seconds <= 0:
        parser.error("a measurement takes time, and there is one at least")
    for needed in (arguments.program, arguments.plugin):
        if not pathlib.Path(needed).exists():
            programs.skip(f"there is no {needed} (make macrobench builds it)")
    programs.leave_cleanly_when_told()
    measured, problems = take_turns(arguments)
    rows = print_table(measured)
    if arguments.json:
        document = {"schema": "mrc.ncclbench", "version": 1, "rows": rows, "problems": problems}
        arguments.json.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
