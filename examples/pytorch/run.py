#!/usr/bin/env python3
"""PyTorch over OpenMRC on one GPU: builds the plug-in, checks, measures, trains, prints a table.

Two ranks share the GPU (under MPS) and are told apart by NCCL_HOSTID, so that everything between
them goes over the network: four MRC planes on loopback, or NCCL's own Socket transport for
comparison, in the same run; then eight ranks, and two ranks on four processors. Needs a C++20
compiler, CMake and a Python with PyTorch; installs nothing and writes only to a directory of its
own. Ends within ten minutes.

Exit status: 0 all as it should be, 1 something failed, 3 data or losses wrong, 4 too slow to end,
77 no GPU or no PyTorch.
"""

import argparse
import datetime
import json
import os
import pathlib
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
HARNESS = ROOT / "tests" / "system" / "nccl" / "nccl_test.py"
RANKS = 2
LIMIT_SECONDS = 570
STEP_SECONDS = 100
ROUNDS = 3
PORTS = 4
# Where a build of the project has what is needed here.
PLUGIN = pathlib.Path("plugins", "nccl", "libnccl-net-openmrc.so")
RANK = pathlib.Path("tests", "system", "nccl", "nccl_rank")
PORT_SWITCH = pathlib.Path("examples", "pytorch", "mrc_ports")
VERBS = pathlib.Path("lib", "mrc", "verbs")
SOCKET = {"NCCL_NET_PLUGIN": "none", "NCCL_NET": "Socket"}
TUNED = {**SOCKET, "NCCL_SOCKET_NTHREADS": "4", "NCCL_NSOCKS_PERTHREAD": "2"}
SHIM = "NCCL IB over the shim"
STEPS = ["alone", "sweep", "ranks", "processors", "train", "cut", "shim"]
MANY_RANKS = 8
FEW_PROCESSORS = 4
TUNED_MRC = {"MRC_THREADS": "8"}
OURS, OURS_TUNED = "OpenMRC", "OpenMRC, 8 threads"
BAR_FIRST, BAR_GOAL = "NCCL Socket", "Socket, 4 threads x 2"


class Failure(Exception):
    def __init__(self, text, status=1):
        super().__init__(text)
        self.status = status


class Run:
    """One directory, one deadline, and the processes started on the way."""

    def __init__(self, directory):
        self.directory = pathlib.Path(directory)
        self.deadline = time.monotonic() + LIMIT_SECONDS
        self.started = time.monotonic()
        (self.directory / "state").mkdir()

    def say(self, text):
        print(f"[{time.monotonic() - self.started:5.0f} s] {text}", flush=True)

    def left(self):
        left = self.deadline - time.monotonic()
        if left < 5:
            raise Failure("the time for all of it is over", 4)
        return left

    def hide(self, text):
        """Texts for people without the places of this machine."""
        for place in [self.directory, ROOT, pathlib.Path.home()]:
            text = text.replace(str(place), "...")
        return re.sub(r"(/[\w.+-]+){3,}/", ".../", text)


def call(run, arguments, what, **options):
    done = subprocess.run(arguments, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          timeout=run.left(), check=False, **options)
    if done.returncode != 0:
        raise Failure(f"{what} failed:\n" + run.hide("\n".join(done.stdout.splitlines()[-25:])))
    return done.stdout


def build(run, folder):
    folder = pathlib.Path(folder or run.directory / "build").absolute()
    generator = ["-G", "Ninja"] if shutil.which("ninja") else []
    call(run, ["cmake", "-S", str(ROOT), "-B", str(folder), "-DMRC_BARE=ON", *generator],
         "configuring")
    call(run, ["cmake", "--build", str(folder), "-j", str(os.cpu_count() or 2)], "building")
    return folder


def start_mps(run):
    """The ranks' GPU work runs at the same time only under MPS; without it all look alike."""
    program = shutil.which("nvidia-cuda-mps-control")
    environment = {"CUDA_MPS_PIPE_DIRECTORY": str(run.directory / "mps"),
                   "CUDA_MPS_LOG_DIRECTORY": str(run.directory / "mps-log")}
    if program is None:
        return None
    for folder in environment.values():
        pathlib.Path(folder).mkdir()
    started = subprocess.run([program, "-d"], env={**os.environ, **environment}, check=False,
                             stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return environment if started.returncode == 0 else None


def stop_mps(environment):
    if environment is None:
        return
    try:
        subprocess.run(["nvidia-cuda-mps-control"], input="quit\n", text=True, timeout=20,
                       env={**os.environ, **environment}, check=False,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    except subprocess.TimeoutExpired:
        pass


def rank_environment(run, step, rank, ranks, settings):
    environment = {name: value for name, value in os.environ.items()
                   if not name.startswith("NCCL_") and
                   (not name.startswith("MRC_") or name == "MRC_THREADS")}
    # As torchrun says it.
    environment.update({"LOCAL_WORLD_SIZE": str(ranks),
                        "NCCL_HOSTID": f"host{rank}", "NCCL_SOCKET_IFNAME": "lo",
                        "NCCL_DEBUG": "INFO", "NCCL_DEBUG_SUBSYS": "INIT,NET",
                        "NCCL_DEBUG_FILE": str(step / f"nccl.{rank}.log"),
                        "MRC_STATE_DIR": str(run.directory / "state"),
                        "PYTHONDONTWRITEBYTECODE": "1"})
    environment.update(settings)
    return environment


def complain(run, step, what):
    """What the logs of a failed step say."""
    lines = []
    for log in sorted(step.glob("*.log")):
        tail = log.read_text(encoding="utf-8", errors="replace").splitlines()
        told = [line for line in tail if "WARN" in line or "NET/OpenMRC" in line] or tail
        lines += [f"  {log.name}: {line}" for line in told[-12:]]
        if log.name.startswith("rank"):
            lines += [f"  {log.name}: {line}" for line in tail[-6:]]
    raise Failure(f"{what}\n" + run.hide("\n".join(lines)))


def run_ranks(run, name, mode, settings, meanwhile=None, ranks=RANKS, prefix=()):
    """Runs a mode of worker.py on all ranks; what rank 0 found."""
    step = run.directory / name.replace(" ", "-")
    step.mkdir()
    processes = []
    logs = []
    try:
        for rank in range(ranks):
            logs.append(open(step / f"rank.{rank}.log", "w", encoding="utf-8"))
            processes.append(subprocess.Popen(
                [*prefix, sys.executable, str(HERE / "worker.py"), mode, str(rank), str(ranks),
                 str(step)],
                env=rank_environment(run, step, rank, ranks, settings),
                stdout=logs[-1], stderr=logs[-1], start_new_session=True))
        end = time.monotonic() + min(run.left(), STEP_SECONDS)
        notes = meanwhile(step, processes, end) if meanwhile else None
        while any(process.poll() is None for process in processes):
            if time.monotonic() > end:
                complain(run, step, f"{name}: did not end in time")
            if any(process.poll() not in (None, 0) for process in processes):
                break
            time.sleep(0.05)
        if any(process.wait(10) != 0 for process in processes):
            complain(run, step, f"{name}: a rank failed")
    except subprocess.TimeoutExpired:
        complain(run, step, f"{name}: a rank failed and the other one did not notice")
    finally:
        for process in processes:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        for log in logs:
            log.close()
    found = json.loads((step / f"{mode}.json").read_text(encoding="utf-8"))
    found["notes"] = notes
    found["log"] = (step / "nccl.0.log").read_text(encoding="utf-8", errors="replace") \
        if (step / "nccl.0.log").exists() else ""
    return found


class PortSwitch:
    """Takes ports away and gives them back; the program of the build, or `mrc ctl`, does it."""

    def __init__(self, run, folder):
        self.run = run
        self.program = str(folder / PORT_SWITCH)
        self.environment = {**os.environ, "MRC_STATE_DIR": str(run.directory / "state")}

    def set(self, up, *ports):
        call(self.run, [self.program, "mrc0", "up" if up else "down", *map(str, ports)],
             "switching a port", env=self.environment)
        return time.time()

    def disturb(self, step, processes, end):
        """While the ranks train: one port, then two, then others, and all of them back."""
        switched = 0
        wait_for(step / "progress", processes, end)
        while all(process.poll() is None for process in processes) and time.monotonic() < end:
            turn = switched % PORTS
            down = [turn + 1, (turn + 1) % PORTS + 1] if switched % 2 else [turn + 1]
            self.set(False, *down)
            time.sleep(0.3)
            self.set(True, *down)
            time.sleep(0.2)
            switched += 1
        self.set(True, *range(1, PORTS + 1))
        return switched

    def one_cut(self, step, processes, end):
        wait_for(step / "progress", processes, end)
        time.sleep(2.0)
        down = self.set(False, 2)
        time.sleep(2.0)
        return {"down": down, "up": self.set(True, 2)}


def wait_for(path, processes, end):
    while not path.exists():
        if time.monotonic() > end or any(process.poll() is not None for process in processes):
            return
        time.sleep(0.02)


def judge_cut(found):
    """GB/s before, without and after the port; the longest all-reduce around the cut."""
    ends, notes = found["ends"], found["notes"]

    def rate(first, last):
        inside = [end for end in ends if first <= end < last]
        if len(inside) < 2:
            return 0.0
        return (len(inside) - 1) * found["bytes"] / (inside[-1] - inside[0]) / 1e9

    gaps = [(second - first) for first, second in zip(ends, ends[1:])
            if notes["down"] - 0.2 <= second <= notes["down"] + 0.5]
    return {"before_gbps": rate(found["started"] + 0.5, notes["down"] - 0.1),
            "without_gbps": rate(notes["down"] + 0.05, notes["up"] - 0.05),
            "after_gbps": rate(notes["up"] + 0.5, ends[-1]),
            "longest_ms": max(gaps, default=0.0) * 1e3}


def size_text(size):
    return f"{size >> 20} MiB" if size >= 1 << 20 else f"{size >> 10} KiB"


def print_sweep(results, where="2 ranks"):
    names = list(results)
    print(f"\nall-reduce, fp32, {where}, medians: time, and size / time")
    print("  " + "size".rjust(8) + "".join(name.rjust(30) for name in names))
    for size in results[names[0]]["seconds"]:
        row = "  " + size_text(int(size)).rjust(8)
        for name in names:
            seconds = results[name]["seconds"][size]
            row += f"{seconds * 1e3:12.3f} ms {int(size) / seconds / 1e9:8.2f} GB/s".rjust(30)
        print(row)


def print_bars(sweep):
    """Ours beside NCCL's own, as times and as processor time."""
    print("\nbars")
    for mine, theirs in [(OURS, BAR_FIRST), (OURS, BAR_GOAL), (OURS_TUNED, BAR_GOAL)]:
        if mine in sweep and theirs in sweep:
            print_ratios(mine, sweep[mine], theirs, sweep[theirs])
    print("", flush=True)


def print_ratios(mine, ours, theirs, peer):
    for what, per in [("seconds", "time"), ("processor_seconds", "processor time")]:
        ratios = [f"{size_text(int(size))} {ours[what][size] / peer[what][size]:.2f}x"
                  for size in ours[what] if peer[what][size] > 0]
        print(f"  {per}, {mine} / {theirs}: {', '.join(ratios)}")
    ratios = [f"{name} {seconds / peer['others'][name]:.2f}x"
              for name, seconds in ours.get("others", {}).items()]
    if ratios:
        print(f"  time of 64 MiB, {mine} / {theirs}: {', '.join(ratios)}")


def check_transport(run, found, name):
    """NCCL falls back without a word that a program could see; its log has it."""
    used = re.search(r"(?:Using network|Assigned NET plugin|Initialized NET plugin) (\S+)",
                     found["log"])
    if used is None or used.group(1) != name:
        raise Failure(f"NCCL did not use {name}:\n" + run.hide(
            "\n".join(line for line in found["log"].splitlines() if "NET" in line)[-2000:]))


def medians(rounds):
    return {key: statistics.median(one[key] for one in rounds) for key in rounds[0]}


def take_turns(run, settings, name, mode, report, **options):
    """Several rounds in turn, since the first minutes of a virtual machine are its slowest."""
    rounds = {transport: [] for transport in settings}
    for number in range(1, ROUNDS + 1):
        for transport, variables in settings.items():
            found = run_ranks(run, f"{name} {transport} {number}", mode, variables, **options)
            check_transport(run, found, variables["NCCL_NET"])
            rounds[transport].append(found)
            report["nccl"], report["torch"] = found["nccl"], found["torch"]
        run.say(f"{name}, round {number} of {ROUNDS}: collectives right, sweep measured")
    kinds = [kind for kind in ["seconds", "processor_seconds", "others"] if kind in found]
    return {transport: {"rounds": [{kind: one[kind] for kind in kinds} for one in found],
                        **{kind: medians([one[kind] for one in found]) for kind in kinds}}
            for transport, found in rounds.items()}


def sweep_all(run, mrc, report):
    settings = {OURS: mrc, BAR_FIRST: SOCKET, OURS_TUNED: {**mrc, **TUNED_MRC}, BAR_GOAL: TUNED}
    sweep = report["sweep"] = take_turns(run, settings, "two ranks", "bench", report)
    print_sweep(sweep)
    print_bars(sweep)


def sweep_ranks(run, mrc, report):
    settings = {OURS: mrc, BAR_FIRST: SOCKET}
    sweep = report["ranks"] = take_turns(run, settings, f"{MANY_RANKS} ranks", "short", report,
                                         ranks=MANY_RANKS)
    print_sweep(sweep, f"{MANY_RANKS} ranks")
    print_bars(sweep)


def sweep_processors(run, mrc, report):
    """As a container with a share of the machine has it."""
    settings = {OURS: mrc, BAR_FIRST: SOCKET}
    allowed = sorted(os.sched_getaffinity(0))[:FEW_PROCESSORS]
    prefix = ["taskset", "-c", ",".join(str(processor) for processor in allowed)]
    where = f"2 ranks on {len(allowed)} processors"
    sweep = report["processors"] = take_turns(run, settings, where, "short", report, prefix=prefix)
    print_sweep(sweep, where)
    print_bars(sweep)


def train_both(run, mrc, switch, report):
    quiet = run_ranks(run, "train undisturbed", "train", mrc)
    run.say(f"trained undisturbed: {quiet['seconds']:.1f} s")
    stormy = run_ranks(run, "train disturbed", "train", mrc, switch.disturb)
    equal = quiet["losses"] == stormy["losses"]
    report["train"] = {"losses_equal": equal, "switches": stormy["notes"],
                       "seconds": [quiet["seconds"], stormy["seconds"]],
                       "first_loss": quiet["losses"][0], "last_loss": quiet["losses"][-1]}
    run.say(f"trained while ports went and came back {stormy['notes']} times: "
            f"{stormy['seconds']:.1f} s, {len(quiet['losses'])} losses "
            f"{'equal' if equal else 'DIFFER'}")
    if not equal:
        raise Failure("the losses of the two trainings differ", 3)


def cut_one(run, mrc, switch, report):
    lost = report["cut"] = judge_cut(run_ranks(run, "cut", "cut", mrc, switch.one_cut))
    share = lost["without_gbps"] / lost["before_gbps"] if lost["before_gbps"] else 0.0
    run.say(f"one of four planes taken away: {lost['before_gbps']:.2f} GB/s before, "
            f"{lost['without_gbps']:.2f} without ({share:.0%}), {lost['after_gbps']:.2f} after; "
            f"longest all-reduce around it {lost['longest_ms']:.1f} ms")


def alone(run, folder, report):
    """The plug-in between two processes without NCCL and GPU: what it could carry at best."""
    threads = os.environ.get("MRC_THREADS", "0")
    text = call(run, [sys.executable, "-B", str(HARNESS), str(folder / RANK), str(folder / PLUGIN),
                      "bandwidth", "11", threads], "the plug-in alone")
    report["alone"] = [line for line in text.splitlines()
                       if "GB/s" in line or "there and back" in line]
    run.say("the plug-in alone, two processes, one polling thread each:\n  " +
            "\n  ".join(report["alone"]))


def everything(run, options, report):
    """All steps asked for; the worst of their results."""
    steps = options.steps
    folder = build(run, options.build_dir)
    run.say("built")
    if "alone" in steps:
        alone(run, folder, report)
    if not usable():
        print("no GPU, or this Python has no PyTorch: nothing more to run")
        return 77
    mrc = {"NCCL_NET": "OpenMRC", "NCCL_NET_PLUGIN": str(folder / PLUGIN)}
    mps = start_mps(run)
    report["mps"] = mps is not None
    if mps is None:
        run.say("no MPS: the ranks take turns on the GPU and the times mean little")
    os.environ.update(mps or {})
    switch = PortSwitch(run, folder)
    status = 0
    try:
        for name, step in [("sweep", sweep_all), ("ranks", sweep_ranks),
                           ("processors", sweep_processors)]:
            if name in steps:
                step(run, mrc, report)
        for name, step in [("train", train_both), ("cut", cut_one)]:
            try:
                if name in steps:
                    step(run, mrc, switch, report)
            except Failure as failure:
                print(f"run.py: {failure}", file=sys.stderr, flush=True)
                status = max(status, failure.status)
        if "shim" in steps and (folder / VERBS).exists():
            try_shim(run, folder, report)
    finally:
        stop_mps(mps)
    return status


def shim_settings(folder):
    """NCCL's own InfiniBand transport on our verbs; GIN off, which 2.28 has for mlx5 cards only."""
    paths = [str(folder / VERBS), os.environ.get("LD_LIBRARY_PATH", "")]
    return {"NCCL_NET": "IB", "NCCL_NET_PLUGIN": "none", "NCCL_GIN_TYPE": "0",
            "NCCL_IB_GID_INDEX": "0", "LD_LIBRARY_PATH": ":".join(path for path in paths if path)}


def try_shim(run, folder, report):
    """The second way in; not what the bars are about, so that a failure is only told."""
    try:
        found = run_ranks(run, f"bench {SHIM}", "bench", shim_settings(folder))
        check_transport(run, found, "IB")
        report.setdefault("sweep", {})[SHIM] = {"seconds": found["seconds"]}
        run.say(f"{SHIM}: collectives right")
        print_sweep({SHIM: report["sweep"][SHIM]})
    except Failure as failure:
        run.say(f"{SHIM}: {failure}")
        report["shim_failure"] = str(failure)


def parse_steps(text):
    steps = text.split(",")
    if not set(steps) <= set(STEPS):
        raise argparse.ArgumentTypeError("steps are " + ",".join(STEPS))
    return steps


def usable(python=sys.executable):
    probe = "import torch, sys; sys.exit(0 if torch.cuda.is_available() else 1)"
    return subprocess.run([python, "-c", probe], check=False, stdout=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL).returncode == 0


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", metavar="FILE", help="write all results to FILE")
    parser.add_argument("--steps", metavar="LIST", type=parse_steps, default=STEPS,
                        help="some of " + ",".join(STEPS) + "; all unless given")
    parser.add_argument("--build-dir", metavar="DIR",
                        help="build there and keep it, instead of in a directory that goes again")
    parser.add_argument("--build-only", action="store_true", help="stop after the build")
    options = parser.parse_args()
    report = {"schema": "openmrc-pytorch", "version": 2,
              "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d")}
    status = 0
    with tempfile.TemporaryDirectory(prefix="openmrc-pytorch-") as directory:
        run = Run(directory)
        try:
            if options.build_only:
                build(run, options.build_dir)
                run.say("built")
            else:
                status = everything(run, options, report)
        except Failure as failure:
            print(f"run.py: {failure}", file=sys.stderr)
            status = failure.status
        except subprocess.TimeoutExpired:
            print("run.py: the time for all of it is over", file=sys.stderr)
            status = 4
    report["status"] = status
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps(report, indent=1), encoding="utf-8")
    return status


if __name__ == "__main__":
    sys.exit(main())
