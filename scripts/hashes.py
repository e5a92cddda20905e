#!/usr/bin/env python3
"""Shows that a seed gives the same simulation whatever built the simulator.

Builds `mrc` with g++ and clang, each with -O0 and -O2, runs the same simulations with all four and
compares everything they print but times and memory. Exit status: 0 all agree, 1 some differ, 2 a
build or a run failed.
"""

import argparse
import concurrent.futures
import json
import pathlib
import shlex
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILDS = {
    "g++ -O0": ("g++", "Debug"),
    "g++ -O2": ("g++", "RelWithDebInfo"),
    "clang -O0": ("clang++-16", "Debug"),
    "clang -O2": ("clang++-16", "RelWithDebInfo"),
}
RUNS = [
    "--workload permutation --topology anchor-128 --bytes 500kB",
    "--workload permutation --topology anchor-128-planes --bytes 500kB --loss 0.01",
    "--workload incast --topology anchor-128 --senders 32 --bytes 500kB",
    "--workload permutation --topology anchor-128 --bytes 1MB --fail 't1:3/plane:0 rate 25% @0' "
    "--fail 't0:1/t1:2/plane:0 down @10us for 50us' --fail 't0:2/t1:4/plane:0 corrupt 1% @0'",
    "--workload training --topology tiny --bytes 1MB --steps 3 --placement strided",
    "--workload all-to-all --topology paper-64 --bytes 1MB --placement shuffled",
    "--workload permutation --topology fat-tree-1024 --bytes 50kB --ecmp",
    "--workload permutation --topology anchor-128 --bytes 500kB --transport rocev2 --qps 4",
    "--workload permutation --topology anchor-128 --bytes 500kB --transport rocev2 --loss 0.001",
]
# What a run costs is not part of the simulation.
COSTS = ("setup_s", "wall_s", "packet_hops_per_s", "peak_rss_bytes")


def build(folder, name, jobs):
    """Path of the program, or None with the compiler's words on the terminal."""
    compiler, build_type = BUILDS[name]
    directory = folder / name.replace(" ", "").replace("+", "x")
    for command in (["cmake", "-S", str(ROOT), "-B", str(directory), "-G", "Ninja",
                     f"-DCMAKE_CXX_COMPILER={compiler}", f"-DCMAKE_BUILD_TYPE={build_type}"],
                    ["cmake", "--build", str(directory), "--target", "mrc", "-j", str(jobs)]):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            print(f"hashes: {name}: {shlex.join(command)}\n{done.stdout}{done.stderr}")
            return None
    return directory / "tools/mrc/mrc"


def run(program, arguments, seed):
    """What the run printed without its costs, or a string that says why there is nothing."""
    words = [str(program), "sim", *shlex.split(arguments), "--seed", str(seed), "--json"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    try:
        result = json.loads(done.stdout)
    except ValueError:
        return f"exit {done.returncode}: {done.stderr.strip()}"
    return {key: value for key, value in result.items() if key not in COSTS}


def compare(arguments, seed, results):
    """Prints one line; true when all builds agree."""
    first = results["g++ -O2"]
    differing = [name for name, result in results.items() if result != first]
    said = [r for r in results.values() if isinstance(r, str)]
    print(f"{first['trace_hash'] if isinstance(first, dict) else said[0]:16}  "
          f"{'same' if not differing and not said else 'DIFFERS'}  seed {seed}  {arguments}")
    for name in differing:
        other = results[name]
        keys = [k for k in first if first[k] != other.get(k)] if isinstance(other, dict) else []
        print(f"    {name}: {', '.join(keys) if keys else other}")
    return not differing and not said


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", type=pathlib.Path, default=ROOT / "build/hashes",
                        help="where the four builds are kept")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--seeds", default="1,2", help="seeds of each run")
    arguments = parser.parse_args()
    programs = {}
    for name in BUILDS:
        print(f"building with {name}", flush=True)
        programs[name] = build(arguments.folder, name, arguments.jobs)
        if programs[name] is None:
            return 2
    same = True
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        for line in RUNS:
            for seed in arguments.seeds.split(","):
                futures = {n: pool.submit(run, p, line, seed) for n, p in programs.items()}
                same &= compare(line, seed, {n: f.result() for n, f in futures.items()})
    print("one seed, one result" if same else "results differ between builds")
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())
