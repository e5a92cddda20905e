#!/usr/bin/env python3
"""Collectives of `mrc perf` between processes on this machine, and bad input.

Usage: collective_smoke.py <mrc> [unittest arguments]
"""

import json
import os
import pathlib
import signal
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "tests" / "support"))

import programs  # noqa: E402  (found through the line above)
from programs import WAIT_S, free_tcp_port  # noqa: E402

OPERATIONS = ("allreduce", "reduce_scatter", "allgather", "alltoall")
LAUNCHERS = (("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"), ("PMI_RANK", "PMI_SIZE"),
             ("SLURM_PROCID", "SLURM_NTASKS"), ("RANK", "WORLD_SIZE"))


def bare_environment():
    known = {name for pair in LAUNCHERS for name in pair} | {"MASTER_ADDR", "MASTER_PORT"}
    return {name: value for name, value in os.environ.items() if name not in known}


class Collectives(programs.ToolTest):
    def start(self, *words, **variables):
        return super().start("perf", *words, env=bare_environment() | variables)

    def ranks(self, operation, count, *flags):
        root = f"127.0.0.1:{free_tcp_port()}"
        return [self.start(operation, "--rank", str(rank), "--ranks", str(count), "--root", root,
                           *flags) for rank in range(count)]

    def results(self, processes):
        answers = [process.communicate(timeout=WAIT_S) for process in processes]
        for process, (_, err) in zip(processes, answers):
            self.assertEqual(process.returncode, 0, err)
        return answers

    def measured(self, operation, count, *flags):
        answers = self.results(self.ranks(operation, count, "--json", *flags))
        report = json.loads(answers[0][0])
        self.assertEqual(report["operation"], operation)
        self.assertEqual(report["ranks"], count)
        self.assertEqual(report["wrong"], 0)
        self.assertTrue(all(row["wrong"] == 0 for row in report["results"]), report)
        for out, _ in answers[1:]:
            self.assertEqual(out, "")
        return report

    def test_every_operation_gives_the_right_bytes(self):
        for operation in OPERATIONS:
            for count, kind in ((1, "int32"), (2, "double"), (3, "float"), (5, "int64")):
                with self.subTest(operation=operation, ranks=count):
                    report = self.measured(operation, count, "-t", kind, "-b", "8", "-e", "600K",
                                           "-f", "37", "-n", "2", "-w", "1")
                    self.assertGreater(len(report["results"]), 2)

    def test_buffers_that_do_not_divide_and_rings_of_small_slots(self):
        self.measured("allreduce", 3, "-b", "4", "-e", "4444", "-f", "11", "-n", "2",
                      "--chunk", "64", "--slots", "2", "--verify-all")

    def test_sizes_that_become_one_are_measured_once(self):
        report = self.measured("alltoall", 4, "-b", "4", "-e", "64", "-n", "1")
        sizes = [row["size_bytes"] for row in report["results"]]
        self.assertEqual(sizes, sorted(set(sizes)))

    def test_a_table_for_people(self):
        answers = self.results(self.ranks("allgather", 2, "-b", "1K", "-e", "1K", "-n", "1"))
        head = answers[0][0].splitlines()[1].split()
        self.assertEqual(head[1:], ["size", "count", "type", "time", "algbw", "busbw", "#wrong"])
        self.assertEqual(answers[0][0].splitlines()[3].split()[:3], ["1024", "256", "float"])

    def test_launchers_say_which_rank_it_is(self):
        for rank_name, size_name in LAUNCHERS:
            with self.subTest(launcher=rank_name):
                port = str(free_tcp_port())
                self.results([
                    self.start("allreduce", "-b", "8", "-e", "8", "-n", "1", MASTER_PORT=port,
                               MASTER_ADDR="127.0.0.1", **{rank_name: str(rank), size_name: "2"})
                    for rank in range(2)])

    def test_rounds_by_the_clock_end_together(self):
        report = self.measured("allreduce", 2, "-b", "64K", "-e", "64K", "-D", "0.2")
        self.assertGreater(report["results"][0]["rounds"], 0)

    def test_intervals_tell_of_paths(self):
        processes = self.ranks("allreduce", 2, "-b", "64K", "-e", "64K", "-D", "0.5",
                               "--report-every", "0.05")
        answers = self.results(processes)
        lines = [json.loads(line) for line in answers[1][0].splitlines()]
        self.assertTrue(lines)
        for line in lines:
            self.assertEqual(line["rank"], 1)
            self.assertGreater(line["paths"]["good"] + line["paths"]["skipped"], 0)

    def test_a_dead_rank_ends_the_others_with_its_name(self):
        for victim in (0, 2):
            with self.subTest(victim=victim):
                processes = self.ranks("allreduce", 4, "-b", "64K", "-e", "64K", "-D", "600",
                                       "--report-every", "0.05")
                for process in processes:
                    process.stdout.readline()
                processes[victim].send_signal(signal.SIGKILL)
                for rank, process in enumerate(processes):
                    _, err = process.communicate(timeout=WAIT_S)
                    if rank == victim:
                        continue
                    self.assertEqual(process.returncode, 1, err)
                    self.assertIn(f"rank {victim} (", err.splitlines()[-1])

    def test_ctrl_c_at_one_rank_ends_all_of_them_with_results(self):
        processes = self.ranks("allreduce", 3, "-b", "64K", "-e", "64K", "-D", "600",
                               "--report-every", "0.05")
        for process in processes:
            process.stdout.readline()
        processes[1].send_signal(signal.SIGINT)
        answers = [process.communicate(timeout=WAIT_S) for process in processes]
        self.assertEqual([process.returncode for process in processes], [130] * 3, answers)
        self.assertEqual(json.loads(answers[0][0].splitlines()[-1])["wrong"], 0)

    def test_a_missing_rank_is_named(self):
        process = self.start("allreduce", "--rank", "0", "--ranks", "2", "--root",
                             f"127.0.0.1:{free_tcp_port()}", "--timeout", "0.3")
        _, err = process.communicate(timeout=WAIT_S)
        self.assertEqual(process.returncode, 4, err)
        self.assertIn("rank 1 is missing", err)

    def test_a_wait_of_two_seconds_is_told(self):
        """Before any device is open, at both ends."""
        for rank, awaited in (("0", "waiting for rank 1"), ("1", "waiting for rank 0")):
            process = self.start("allreduce", "--rank", rank, "--ranks", "2", "--root",
                                 f"127.0.0.1:{free_tcp_port()}", "--timeout", "6")
            self.assertIn(awaited, process.stderr.readline())
            programs.end(process)

    def test_mixed_security_ends_all_ranks(self):
        key = pathlib.Path(self.folder) / "key"
        key.touch(mode=0o600)
        key.write_text(f"key 0 {os.urandom(32).hex()}\n", encoding="ascii")
        sealed = {"MRC_SECURITY": "sealed", "MRC_KEY_FILE": str(key)}
        for first, second in ((sealed, {}), ({}, sealed)):
            root = f"127.0.0.1:{free_tcp_port()}"
            processes = [self.start("allreduce", "--rank", str(rank), "--ranks", "2", "--root",
                                    root, **variables)
                         for rank, variables in enumerate((first, second))]
            for process in processes:
                _, err = process.communicate(timeout=WAIT_S)
                self.assertEqual(process.returncode, 1, err)
                self.assertRegex(err, 'security is "(off|sealed)" there and "(off|sealed)" here')
                self.assertNotIn("packets from", err)

    def test_bad_input_is_one_line(self):
        cases = [[], ["--rank", "0"], ["--rank", "2", "--ranks", "2", "--root", "a"],
                 ["--rank", "1", "--ranks", "2"], ["--rank", "0", "--ranks", "2000"],
                 ["--hosts", "no.such.host,other"], ["--rank", "0", "--ranks", "1", "-t", "half"],
                 ["--rank", "0", "--ranks", "1", "-b", "2K", "-e", "1K"],
                 ["--rank", "0", "--ranks", "1", "-f", "1"],
                 ["--rank", "0", "--ranks", "1", "--chunk", "100"],
                 ["--rank", "0", "--ranks", "2", "--root", "x:port"],
                 ["--rank", "0", "--ranks", "2", "--listen-fd", "0"]]
        for words in cases:
            with self.subTest(words=words):
                process = self.start("allreduce", *words)
                out, err = process.communicate(timeout=WAIT_S)
                self.assertEqual(process.returncode, 2, err)
                self.assertEqual((out, err.count("\n")), ("", 1), err)
        process = self.start("allreduce", "--lab", "nolab", "--lab-dir", "/nonexistent")
        _, err = process.communicate(timeout=WAIT_S)
        self.assertEqual((process.returncode, err.count("\n")), (1, 1), err)


if __name__ == "__main__":
    programs.main()
