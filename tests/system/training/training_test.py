#!/usr/bin/env python3
"""Training and collectives in a small lab whose cables are cut in mid-run.

Usage: training_test.py <mrc> <mrc-training> [unittest arguments]
"""

import json
import pathlib
import signal
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "support"))

import labs  # noqa: E402  (found through the line above)
import programs  # noqa: E402
from programs import WAIT_S  # noqa: E402

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


class Training(labs.LabTest):
    training = None
    flags = ()
    faults = FAULTS

    def setUp(self):
        super().setUp()
        done = self.lab.attempt("up", "--hosts", str(HOSTS), "--planes", "2", *self.flags)
        if self.flags and done.returncode != 0:
            self.skipTest(done.stderr.strip())  # no rights, or a kernel without SRv6
        self.assertEqual(done.returncode, 0, done.stderr)

    def start_training(self, *flags):
        address = self.lab.do("exec", str(RING[0]), "printenv", "MRC_LAB_ADDRESS").strip()
        root = f"{address}:{programs.free_tcp_port()}"
        return [self.lab.start(host, self.training, "--json", "--rank", str(rank), "--ranks",
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
                self.lab.do(*fault)
        for process in ranks:
            programs.finish(process)
        self.assertEqual(len(seen), STEPS + 1)
        return seen

    def dropped(self):
        return sum(sum(plane["dropped"].values()) for plane in self.lab.status()["planes"])

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
            report = json.loads(self.must(
                "perf", operation, "--lab", "lab", "--lab-dir", self.lab.folder, "-b", "1K", "-e",
                "64K", "-f", "64", "-n", "2", "-w", "1", "--json", "--verify-all"))
            self.assertEqual((report["ranks"], report["wrong"]), (HOSTS, 0))
            self.assertEqual(len(report["results"]), 2)


class TrainingOverKernelSwitches(Training):
    """The same over the Linux kernel's own SRv6, where there are the rights for it."""

    flags = ("--netns", "--switch", "kernel")
    faults = {step: fault for step, fault in FAULTS.items() if fault[0] != "loss"}


if __name__ == "__main__":
    programs.main(Training, "training")
