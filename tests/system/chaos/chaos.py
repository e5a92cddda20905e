#!/usr/bin/env python3
"""A small lab with verified traffic between all hosts, broken at random.

Between every two hosts one program writes to the other and every byte of every message is compared,
again and again. Every 1 to 5 seconds something breaks: cables, ports, switches, a plane, in every
way that `mrc lab` knows, and programs are killed and stopped. The plan is made from the seed alone.

Ends with 1 on a wrong byte, on an error of a program whose peer lived (the plan always leaves a way
between them), on a fault that stays, and on anything left behind.

Usage: chaos.py --mrc PROGRAM [--minutes N | --seconds N] [--seed N] [--show-plan]
"""

import argparse
import collections
import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "support"))

import labs  # noqa: E402  (found through the line above)
import programs  # noqa: E402
from chaos_plan import Fabric, make_plan  # noqa: E402

FABRIC = Fabric()
TICK_S = 0.02
RUN_S = 2  # one program's run
PATIENCE_S = 120  # for a run that is disturbed, on a busy machine
AT_ONCE = 3  # pairs that run; each takes two processes that poll
SIZES = ("4K", "64K", "100001", "1M")


class Problem(Exception):
    """One line that ends the run."""


class Pair:
    """Two hosts between which one run follows the other."""

    def __init__(self, lab, number, hosts, rng):
        self.lab = lab
        self.number = number
        self.hosts = hosts
        self.rng = rng
        self.programs = {}  # "server" and "client"
        self.stopped = {}  # side: when it goes on
        self.killed = False
        self.port = 0
        self.begun = self.deadline = 0.0
        self.runs = self.ended_by_kill = self.verified_bytes = 0

    def idle(self):
        return not self.programs

    def begin(self, now):
        receiver, sender = self.rng.sample(self.hosts, 2)
        self.port = programs.free_tcp_port()
        self.begun = now
        self.killed = False
        self.deadline = now + PATIENCE_S
        self.sender = sender
        self.size = self.rng.choice(SIZES)
        self.programs["server"] = self.lab.start_tool(receiver, "perf", "write_imm", "-p",
                                                      str(self.port))

    def step(self, now):
        for side in [side for side, until in self.stopped.items() if until <= now]:
            self.go_on(side)
        server, client = self.programs["server"], self.programs.get("client")
        if client is None and server.poll() is None:
            if programs.is_listening(self.port):
                self.programs["client"] = self.lab.start_tool(
                    self.sender, "perf", "write_imm", "--verify-all", "-p", str(self.port), "-s",
                    self.size, "-D", str(RUN_S), "--json", "127.0.0.1")
        elif all(program.poll() is not None for program in self.programs.values()):
            self.finish()
            return
        elif self.killed and client is not None and client.poll() is not None:
            # A client killed before it has called leaves a server that would wait for ever.
            if programs.is_listening(self.port):
                server.terminate()
        if now > self.deadline:
            raise Problem(f"{self}: no end after {PATIENCE_S} s")

    def __str__(self):
        return f"pair {self.number} (hosts {self.hosts[0]} and {self.hosts[1]})"

    def finish(self):
        ended = {side: (program.returncode, *program.communicate())
                 for side, program in self.programs.items()}
        self.programs = {}
        self.stopped = {}
        for side, (code, _, err) in ended.items():
            if code == 3:
                raise Problem(f"WRONG DATA at the {side} of {self}: {last_line(err)}")
        if self.killed:
            self.ended_by_kill += 1
            return
        for side, (code, _, err) in ended.items():
            if code != 0:
                raise Problem(f"error {code} at the {side} of {self}, whose peer lived: "
                              f"{last_line(err)}")
        self.runs += 1
        for result in json.loads(ended["client"][1])["results"]:
            if result["verified"]:
                self.verified_bytes += result["message_bytes"] * result["messages"]

    def program_of(self, side):
        """The process that `mrc lab exec` runs; nothing while there is none."""
        runner = self.programs.get(side)
        if runner is None or runner.poll() is not None:
            return None
        try:
            path = f"/proc/{runner.pid}/task/{runner.pid}/children"
            children = pathlib.Path(path).read_text(encoding="ascii").split()
        except (FileNotFoundError, ProcessLookupError):  # gone before, or between two calls
            return None
        return int(children[0]) if children else None

    def signal_program(self, side, number):
        process = self.program_of(side)
        if process is None:
            return False
        try:
            os.kill(process, number)
        except ProcessLookupError:
            return False
        return True

    def kill(self, side):
        if self.signal_program(side, signal.SIGKILL):
            self.killed = True

    def kill_runner(self, side):
        runner = self.programs.get(side)
        if runner is not None and runner.poll() is None:
            self.killed = True
            runner.kill()

    def stop(self, side, until):
        if self.signal_program(side, signal.SIGSTOP):
            self.stopped[side] = until

    def go_on(self, side):
        del self.stopped[side]
        self.signal_program(side, signal.SIGCONT)


def last_line(text):
    lines = text.strip().splitlines()
    return lines[-1] if lines else "no word"


class Chaos:
    def __init__(self, options, folder):
        self.options = options
        self.lab = labs.Lab(options.mrc, os.path.join(folder, "l"))
        self.plan = make_plan(options.seed, options.seconds, FABRIC, options.least_ways)
        self.pairs = [Pair(self.lab, number, hosts, random.Random(f"{options.seed}/{number}"))
                      for number, hosts in enumerate(FABRIC.pairs())]
        self.start = 0.0

    def say(self, text):
        print(f"{time.monotonic() - self.start:7.1f}  {text}", flush=True)

    def execute(self, event, now):
        self.say(str(event))
        if not event.victim:
            self.lab.do("fault", f"{event.text} @0 for {int(event.lasts_s * 1000)}ms")
            return
        pair, side = self.victim(event.victim[0]), event.victim[1]
        if event.kind == "kill":
            pair.kill(side)
        elif event.kind == "stop":
            pair.stop(side, now + event.lasts_s)
        else:
            pair.kill_runner(side)

    def victim(self, number):
        """The pair with that number, or if it rests the next that does not."""
        in_turn = self.pairs[number:] + self.pairs[:number]
        return next((pair for pair in in_turn if pair.programs.get("client")), in_turn[0])

    def run(self):
        self.lab.do("up", "--hosts", str(FABRIC.hosts), "--planes", str(FABRIC.planes), "--t0",
                    str(FABRIC.t0), "--t1", str(FABRIC.t1), "--mbps", str(self.options.mbps))
        self.start = time.monotonic()
        waiting = list(self.plan)
        while True:
            now = time.monotonic()
            elapsed = now - self.start
            over = elapsed >= self.options.seconds
            while waiting and waiting[0].at_s <= elapsed:
                self.execute(waiting.pop(0), now)
            if not over:
                self.begin_runs(now)
            for pair in self.pairs:
                if not pair.idle():
                    pair.step(now)
            if over and all(pair.idle() for pair in self.pairs):
                break
            time.sleep(TICK_S)
        self.check_recovery()

    def begin_runs(self, now):
        """Keeps a few pairs at work, those first that have waited longest."""
        resting = sorted((pair for pair in self.pairs if pair.idle()), key=lambda p: p.begun)
        for pair in resting[:max(0, AT_ONCE - (len(self.pairs) - len(resting)))]:
            pair.begin(now)

    def check_recovery(self):
        """Without any fault every pair must work, and the mapper must find nothing."""
        self.lab.do("heal", "all")
        before = [pair.runs for pair in self.pairs]
        for pair in self.pairs:
            pair.begin(time.monotonic())
            while not pair.idle():
                pair.step(time.monotonic())
                time.sleep(TICK_S)
        if [pair.runs - 1 for pair in self.pairs] != before:
            raise Problem("a run after all faults did not succeed")
        mapped = programs.run([self.options.mrc, "map", "--lab", "lab", "--dir", self.lab.folder,
                               "--count", "50"])
        if mapped.returncode != 0:
            words = (mapped.stdout + mapped.stderr).split()
            raise Problem(f"mrc map after all faults: {' '.join(words)}")
        strange = sum(plane["dropped"][cause] for plane in self.lab.status()["planes"]
                      for cause in ("malformed", "no_route", "hop_limit"))
        if strange:
            raise Problem(f"{strange} frames that no switch should have seen")

    def clean_up(self):
        self.lab.end_programs()
        self.lab.do("down")
        if os.path.exists(self.lab.folder):
            left = [os.path.join(*entry[:1], name) for entry in os.walk(self.lab.folder)
                    for name in entry[2] or [""]]
            raise Problem(f"left behind: {', '.join(left)}")
        deadline = time.monotonic() + PATIENCE_S
        while left := programs.processes_with(self.lab.folder):
            if time.monotonic() > deadline:
                raise Problem(f"left behind: processes {left}")
            time.sleep(TICK_S)

    def report(self):
        runs = sum(pair.runs for pair in self.pairs)
        killed = sum(pair.ended_by_kill for pair in self.pairs)
        total = sum(pair.verified_bytes for pair in self.pairs)
        idle = [str(pair) for pair in self.pairs if pair.verified_bytes == 0]
        if idle:
            raise Problem(f"nothing was verified between {', '.join(idle)}")
        print(f"chaos: ok, seed {self.options.seed}, {len(self.plan)} faults, {runs} runs between "
              f"{len(self.pairs)} pairs, {killed} ended by a kill, {total:,} bytes verified, "
              "0 wrong")
        kinds = collections.Counter(f"network fault {event.kind}" for event in self.plan)
        programs.write_result("chaos", bytes_verified=total, network_faults=len(self.plan), **kinds)


def read_options():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mrc", required=True)
    parser.add_argument("--minutes", type=float)
    parser.add_argument("--seconds", type=float, default=30)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1_000_000))
    parser.add_argument("--mbps", type=int, default=50, help="rate of a host's port")
    parser.add_argument("--least-ways", type=int, default=1,
                        help="paths that stay between every two hosts")
    parser.add_argument("--show-plan", action="store_true")
    options = parser.parse_args()
    options.mrc = os.path.abspath(options.mrc)
    if options.minutes is not None:
        options.seconds = 60 * options.minutes
    if options.seconds <= 0 or options.least_ways < 1:
        parser.error("times and numbers of ways are above 0")
    return options


def main():
    options = read_options()
    if options.show_plan:
        for event in make_plan(options.seed, options.seconds, FABRIC, options.least_ways):
            print(f"{event.at_s:7.1f}  {event}")
        return 0
    print(f"chaos: {options.seconds:g} s, --seed {options.seed}", flush=True)
    programs.leave_cleanly_when_told()
    problems = []
    with programs.own_folder() as folder:
        chaos = Chaos(options, folder)
        for step in (chaos.run, chaos.clean_up, chaos.report):
            if step == chaos.report and problems:
                break
            try:
                step()
            except (Problem, programs.Failed, subprocess.TimeoutExpired) as problem:
                problems.append(str(problem))
            except KeyboardInterrupt:
                problems.append("interrupted")
    for problem in problems:
        print(f"chaos: FAILED, seed {options.seed}: {problem}")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
