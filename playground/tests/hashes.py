#!/usr/bin/env python3
"""The module gives what the native program gives: hashes.py <mrc> <folder of build.sh>.

Same seed, same trace hash and same result, over topologies, workloads and transports, whole or in
pieces; what is broken by hand while it runs is the plan that the command line takes. Exit status 77
where node or the module are missing.
"""

import json
import pathlib
import shutil
import subprocess
import sys

COSTS = {"wall_s", "setup_s", "peak_rss_bytes", "packet_hops_per_s"}
SMALL = {"planes": 2, "hosts": 16, "t0": 4, "t1": 4, "bytes": "100kB"}
RUNS = [
    {"topology": "paper-64", "workload": "permutation", "bytes": "100kB", "seed": 3},
    {**SMALL, "workload": "incast", "senders": 7, "victim": "true", "seed": 5},
    {**SMALL, "workload": "incast", "senders": 7, "victim": "true", "seed": 5,
     "transport": "rocev2"},
    {**SMALL, "workload": "all-to-all", "seed": 9, "fail": "t0:1/t1:2/plane:0 down @2us for 9us"},
    {**SMALL, "workload": "ring-all-reduce", "seed": 4, "loss": 0.001, "placement": "shuffled"},
    {**SMALL, "workload": "training", "steps": 2, "compute_us": 10, "seed": 6, "qps": 2},
    {**SMALL, "workload": "permutation", "seed": 7, "transport": "rocev2", "loss": 0.001},
    {**SMALL, "workload": "permutation", "seed": 8, "forwarding": "ecmp", "no_trim": "true"},
    {**SMALL, "workload": "all-gather", "seed": 2**63 + 11, "sealed": "true", "one_plane": "true"},
]
REFUSED = {
    "hosts=512\nt0=8\n": "the fabric has 512 hosts, and the playground takes up to 256",
    "planes=16\n": "the fabric has 16 planes, and the playground takes up to 8",
    "bytes=many\n": "--bytes: 'many' is not a number of bytes",
    "colour=red\n": "--colour: unknown key",
    "fail=t0:99/t1:0/plane:0 down\n": "t0:99",
    "csv=/tmp/x\n": "--csv: a page neither reads nor writes files",
    "record=/tmp/x\n": "--record: a page neither reads nor writes files",
    "fail_file=/tmp/x\n": "--fail-file: a page neither reads nor writes files",
    "workload=flows\nflows=/tmp/x\n": "--flows: a page neither reads nor writes files",
    "seeds=4\n": "--seeds: does nothing in the playground",
    "compare=mrc,split\n": "--compare: does nothing in the playground",
}


class Module:
    def __init__(self, folder):
        self.command = ["node", str(pathlib.Path(__file__).with_name("run_module.mjs")),
                        str(folder / "mrc_playground.wasm"), str(folder / "node/module.js")]

    def run(self, text, *flags):
        return subprocess.run([*self.command, *flags], input=text, capture_output=True, text=True,
                              timeout=300, check=False)

    def result(self, text, *flags):
        done = self.run(text, *flags)
        assert done.returncode == 0, f"{text}: {done.stderr}"
        return without_costs(json.loads(done.stdout)), json.loads(done.stderr)


def without_costs(result):
    return {key: value for key, value in result.items() if key not in COSTS}


def native(mrc, settings):
    command = [mrc, "sim", "--json"]
    for name, value in settings:
        flag = "--" + name.replace("_", "-")
        command += [flag] if value == "true" else [flag, str(value)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode in (0, 1), f"{command}: {done.stderr}"
    return without_costs(json.loads(done.stdout))


def lines(settings):
    return "".join(f"{name}={value}\n" for name, value in settings)


def main():
    mrc, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    if shutil.which("node") is None or not (folder / "mrc_playground.wasm").exists():
        print("skipped: node or the module is missing; playground/build.sh builds it")
        return 77
    module = Module(folder)
    for run in RUNS:
        expected = native(mrc, run.items())
        for flags in ([], ["--steps", "777"]):
            result, _ = module.result(lines(run.items()), *flags)
            assert result == expected, f"{run} {flags}:\n{result}\n{expected}"
        print(f"{expected['trace_hash']} {run}")

    settings = list({**SMALL, "workload": "permutation", "bytes": "1MB", "seed": 12}.items())
    acts = ("break 3000 t0:0/t1:1/plane:0 down\nbreak 4000 host:3/plane:1 flap 2us/1us for 1ms\n"
            "heal 9000 0\nheal 9000 1\nbreak 9000 t1:2/plane:* loss 5%\n")
    result, said = module.result(lines(settings) + acts)
    assert len(said["faults"]) == 3, said
    planned = native(mrc, [*settings, *(("fail", text) for text in said["faults"])])
    assert result == planned, f"{said}:\n{result}\n{planned}"

    for text, why in REFUSED.items():
        done = module.run(text)
        assert done.returncode == 2 and why in done.stderr, f"{text}: {done.stderr}"
    print(f"{2 * len(RUNS) + 1} runs are the same, {len(REFUSED)} inputs are refused")
    return 0


if __name__ == "__main__":
    sys.exit(main())
