#!/usr/bin/env python3
"""Training and collectives in a small lab whose cables are cut in mid-run.

Usage: training_test.py <mrc> <mrc-training> [unittest arguments]
"""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import unittest

WAIT_S = 240
HOSTS = 4
STEPS = 60
# Across both tiers at every hop of the ring, so that every cut meets traffic.
RING = (0, 2, 1, 3)
FAULTS = {
    10: ("cut", "t0:0/t1:1/plane:0"),
    16: ("reboot", "t1:2/plane:1", "--for", "300ms"),
    22: ("cut", "host:2/plane:1"),
    30: ("heal", "all"),
    34: ("loss", "t0:1/t1:*/plane:0", "5%"),
    40: ("cut", "t1:*/plane:0"),
    46: ("heal", "all"),
}


def free_tcp_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Training(unittest.TestCase):
    program = None
    training = None
    flags = ()
    faults = FAULTS

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="mrc-training-test-")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.addCleanup(self.lab, "down")
        done = self.lab("up", "--hosts", str(HOSTS), "--planes", "2", *self.flags)
        if self.flags and done.returncode != 0:
            self.skipTest(done.stderr.strip())  # no rights, or a kernel without SRv6
        self.assertEqual(done.returncode, 0, done.stderr)

    def lab(self, verb, *words):
        return subprocess.run([self.program, "lab", verb, "--dir", self.folder, *words],
                              capture_output=True, text=True, timeout=WAIT_S, check=False)

    def start(self, host, *command):
        process = subprocess.Popen([self.program, "lab", "exec", "--dir", self.folder, str(host),
                                    *command], text=True, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE)
        self.addCleanup(self.end, process)
        return process

    @staticmethod
    def end(process):
        process.kill()
        process.communicate(timeout=WAIT_S)

    def start_training(self, *flags):
        address = self.lab("exec", str(RING[0]), "printenv", "MRC_LAB_ADDRESS").stdout.strip()
        root = f"{address}:{free_tcp_port()}"
        return [self.start(host, self.training, "--json", "--rank", str(rank), "--ranks",
                           str(HOSTS), "--root", root, "--timeout", str(WAIT_S), *flags)
                for rank, host in enumerate(RING)]

    def train(self, faults):
        """The bits of all losses and of the network, with faults at certain steps."""
        ranks = self.start_training("--steps", str(STEPS), "--hidden", "64")
        seen = []
        for line in ranks[0].stdout:
            message = json.loads(line)
            seen.append(message.get("bits") or message["parameters"])
            fault = faults.get(message.get("step"))
            if fault:
                done = self.lab(*fault)
                self.assertEqual(done.returncode, 0, done.stderr)
        for process in ranks:
            _, err = process.communicate(timeout=WAIT_S)
            self.assertEqual(process.returncode, 0, err)
        self.assertEqual(len(seen), STEPS + 1)
        return seen

    def dropped(self):
        status = json.loads(self.lab("status", "--json").stdout)
        return sum(sum(plane["dropped"].values()) for plane in status["planes"])

    def test_losses_are_bit_identical_with_cables_cut(self):
        undisturbed = self.train({})
        before = self.dropped()
        disturbed = self.train(self.faults)
        self.assertEqual(undisturbed, disturbed)
        self.assertGreater(len(set(undisturbed)), STEPS // 2, "it does not learn")
        self.assertGreater(self.dropped(), before, "no fault met any traffic")

    def test_a_killed_rank_ends_the_job_with_its_name(self):
        ranks = self.start_training("--steps", "1000000")
        ranks[0].stdout.readline()
        ranks[2].send_signal(signal.SIGKILL)
        for rank in (0, 1, 3):
            _, err = ranks[rank].communicate(timeout=WAIT_S)
            self.assertEqual(ranks[rank].returncode, 1, err)
            self.assertIn("rank 2 (", err)

    def test_collectives_of_all_hosts_by_one_command(self):
        for operation in ("allreduce", "alltoall"):
            done = subprocess.run(
                [self.program, "perf", operation, "--lab", "lab", "--lab-dir", self.folder, "-b",
                 "1K", "-e", "64K", "-f", "64", "-n", "2", "-w", "1", "--json", "--verify-all"],
                capture_output=True, text=True, timeout=WAIT_S, check=False)
            self.assertEqual(done.returncode, 0, done.stderr)
            report = json.loads(done.stdout)
            self.assertEqual((report["ranks"], report["wrong"]), (HOSTS, 0))
            self.assertEqual(len(report["results"]), 2)


class TrainingOverKernelSwitches(Training):
    """The same over the Linux kernel's own SRv6, where there are the rights for it."""

    flags = ("--netns", "--switch", "kernel")
    faults = {step: fault for step, fault in FAULTS.items() if fault[0] != "loss"}


if __name__ == "__main__":
    Training.program = os.path.abspath(sys.argv.pop(1))
    Training.training = os.path.abspath(sys.argv.pop(1))
    unittest.main(verbosity=2)
