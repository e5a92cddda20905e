#!/usr/bin/env python3
"""What becomes of a collective when the system says no to the NCCL plug-in.

Usage: nccl_faults_test.py <nccl_rank> <plug-in> <libfaulty_calls.so> [unittest arguments]

Two ranks drive the plug-in as NCCL does, every byte compared. Under way nothing may be lost; at the
start each call fails once, and the rank must do without or say why it ends: NCCL gets an error, the
program no signal.
"""

import os
import sys
import unittest

from faulty_program import AT_START, UNDER_WAY, FaultyTest, Program, programs

VERSION = "12"
# Which call of a kind fails. The ones far into a start are those of call_faults_test.py.
NUMBERS = [1, 2, 3, 5, 8, 12, 18, 40]
THREADS = [1, 2]  # the library's; the third is the driver's
# Not made by the library on the way of packets, or too rarely for a rule to strike.
MAY_BE_SILENT = {"recv", "poll", "read", "clock_gettime", "ppoll"}
# What only this library does at a start: it listens and is called.
MORE_AT_START = ["accept4:EMFILE", "listen:ENOBUFS", "bind:EADDRINUSE", "inotify_init1:EMFILE"]


class NcclFaults(FaultyTest):
    result = "nccl_faults"
    rank = None
    plugin = None

    def ranks(self, scenario, plans):
        """Both ranks, started; they meet in a folder of their own."""
        where = os.path.join(self.folder, f"meeting-{len(self.started)}")
        os.mkdir(where)
        variables = programs.device_environment(self.folder, MRC_THREADS="1")
        return [Program(self, plan,
                        [self.rank, self.plugin, VERSION, scenario, str(number), "2", where],
                        variables)
                for number, plan in enumerate(plans)]

    def test_NothingIsLost(self):
        struck = {}
        for rule in UNDER_WAY:
            with self.subTest(rule=rule):
                both = self.ranks("sizes", [[rule], [rule]])
                codes = [program.ends() for program in both]
                self.assertEqual(codes, [0, 0], "".join(program.err for program in both))
                struck[rule] = sum(program.counts()[0][1] for program in both)
        print(struck, file=sys.stderr)
        struck_calls = {rule.split(":")[0] for rule, times in struck.items() if times > 0}
        silent = {rule.split(":")[0] for rule in UNDER_WAY} - struck_calls
        self.assertLessEqual(silent, MAY_BE_SILENT, "no rule for these ever struck")

    def check_nth_call(self, rule, number):
        """Whether a rank made so many calls of that kind."""
        plan = [f"{rule}:@{number}"]
        whole, struck = self.ranks("groups", [[], plan])
        code = struck.ends()
        self.assertIn(code, (0, 1), f"{plan}: ended with {code}: {struck.err}")
        self.assertNotIn("terminate called", struck.err, plan)
        if code == 0:
            self.assertEqual(whole.ends(), 0, f"{plan}: {whole.err}")
        else:
            self.assertNotEqual(struck.err, "", plan)
            whole.process.kill()  # it waits for who is gone, and the job's launcher would end it
            whole.ends()
        return struck.counts()[0][1] > 0

    def test_EachCallOfAStartMayFail(self):
        threads, others = [], []
        for rule in [*AT_START, *MORE_AT_START]:
            (threads if rule.startswith("pthread_create:") else others).append(rule)
        tried = self.tried_of_each(others, NUMBERS, self.check_nth_call)
        tried |= self.tried_of_each(threads, THREADS, self.check_nth_call)
        self.assertEqual([rule for rule, times in tried.items() if times == 0], [])


if __name__ == "__main__":
    programs.leave_cleanly_when_told()
    NcclFaults.rank, NcclFaults.plugin, NcclFaults.library = sys.argv[1:4]
    NcclFaults.seed = int(os.environ.get("CALL_FAULTS_SEED", "1"))
    unittest.main(argv=[sys.argv[0], *sys.argv[4:]])
