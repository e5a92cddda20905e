#!/usr/bin/env python3
"""What becomes of data and programs when the system says no.

Usage: call_faults_test.py <mrc> <libfaulty_calls.so> [unittest arguments]

Two programs move data, every byte compared, while calls of libc fail as a plan says
(faulty_calls.c): under way, where nothing may be lost, and at the start, where each call fails once
and the program must either do without or say why it ends.
"""

import os
import pathlib
import re
import signal
import sys
import time
import unittest

from faulty_program import AT_START, UNDER_WAY, FaultyTest, Program, programs

# Which call of a kind fails: each of the first, then ever fewer, since they come from one place.
NUMBERS = [*range(1, 9), 12, 18, 27, 40, 60, 90]
# Which calls are not made under way, or so rarely that a rule for them may not strike.
MAY_BE_SILENT = {"udp": {"send", "recv", "poll", "read", "sendmmsg", "clock_gettime"},
                 "wire": {"send", "recv", "poll", "read", "sendmsg", "clock_gettime"}}
# Of who listens and is called: at its start, when its peer comes, and at its end.
OF_A_SERVER = [
    "socket:EMFILE", "socket:ENOBUFS", "bind:ENOMEM", "bind:EADDRINUSE", "listen:EADDRINUSE",
    "listen:ENOBUFS", "accept4:EMFILE", "accept4:ENOMEM", "open:EMFILE", "open:ENFILE",
    "mmap:ENOMEM", "epoll_create1:EMFILE", "epoll_ctl:ENOMEM", "eventfd:EMFILE",
    "timerfd_create:EMFILE", "inotify_init1:EMFILE", "setsockopt:ENOBUFS", "pthread_create:EAGAIN",
]
OF_A_LAB = [
    "socket:EMFILE", "socket:ENOBUFS", "bind:ENOMEM", "listen:ENOBUFS", "epoll_create1:EMFILE",
    "epoll_ctl:ENOMEM", "eventfd:EMFILE", "open:EMFILE",
]
AT_CHANGE = [
    "open:EMFILE", "open:EIO", "write:ENOSPC", "write:EINTR", "write:short", "fsync:EIO",
    "rename:EIO", "rename:EACCES", "pread:EIO", "pread:EINTR", "pread:short", "lstat:EIO",
    "opendir:EMFILE",
]


class CallFaults(FaultyTest):
    result = "call_faults"
    mrc = None

    def mrc_program(self, plan, words, variables):
        return Program(self, plan, [self.mrc, *words], variables)

    def devices(self, backend):
        """The variables of a server and of a client that reach each other."""
        common = programs.device_environment(self.folder)
        if backend == "udp":
            return common, common
        return [common | self.wired(side) for side in ("server", "client")]

    def wired(self, side):
        cables = [f"{self.folder}/cable{number}" for number in (1, 2)]
        address = "fc00::1/64" if side == "server" else "fc00::2/64"
        listen = "listen:" if side == "server" else ""
        planes = ", ".join(f'{{ address = "{address}", wire = "{listen}{cable}" }}'
                           for cable in cables)
        config = pathlib.Path(self.folder, f"{side}.toml")
        config.write_text(f'[device.mrc0]\nbackend = "wire"\nplane = [{planes}]\n',
                          encoding="ascii")
        state = pathlib.Path(self.folder, side)
        state.mkdir(exist_ok=True, mode=0o700)
        return {"MRC_CONFIG": str(config), "MRC_STATE_DIR": str(state)}

    def pair(self, backend, server_plan, client_plan, *words):
        """Both programs, the server listening."""
        port = programs.free_tcp_port()
        variables = self.devices(backend)
        common = ["perf", "write_imm", "-p", str(port)]
        server = self.mrc_program(server_plan, common, variables[0])
        programs.eventually(
            lambda: programs.is_listening(port) or server.process.poll() is not None,
            "the server neither listens nor ends")
        server.listened = server.process.poll() is None
        client = self.mrc_program(
            client_plan, [*common, "--verify-all", *words, "127.0.0.1"], variables[1])
        return server, client

    def assert_moves_data(self, backend, server_plan, client_plan, *words):
        server, client = self.pair(backend, server_plan, client_plan, *words)
        for program in (client, server):
            code = program.ends()
            self.assertEqual(code, 0, f"{backend}, {program.plan}: {program.err}")
        return server, client

    def assert_ends_well(self, program):
        """Success, or one line that says what failed. Never a signal, never wrong data."""
        code = program.ends()
        self.assertIn(code, (0, 1, 4), f"{program.plan}: ended with {code}: {program.err}")
        self.assertNotIn("terminate called", program.err, program.plan)
        if code != 0:
            self.assertRegex(program.err, r"(?m)^mrc [\w ]+: \S.*", program.plan)

    # Under way -----------------------------------------------------------------------------------

    def check_each_rule(self, backend):
        struck = {}
        for rule in UNDER_WAY:
            with self.subTest(rule=rule, backend=backend):
                ends = self.assert_moves_data(backend, [rule], [rule], "-s", "64K", "-n", "300")
                struck[rule] = sum(count[1] for end in ends for count in end.counts())
        print(f"{backend}: {struck}", file=sys.stderr)
        struck_calls = {rule.split(":")[0] for rule, times in struck.items() if times > 0}
        silent = {rule.split(":")[0] for rule in UNDER_WAY} - struck_calls
        self.assertLessEqual(silent, MAY_BE_SILENT[backend], "no rule for these ever struck")

    def test_NothingIsLostOverUdp(self):
        self.check_each_rule("udp")

    def test_NothingIsLostOverCables(self):
        self.check_each_rule("wire")

    def test_NothingIsLostWhenAllHappensAtOnce(self):
        plan = [f"{call}:{what}:0.02" for call, what, _ in (rule.split(":") for rule in UNDER_WAY)]
        for backend in ("udp", "wire"):
            with self.subTest(backend=backend):
                self.assert_moves_data(backend, plan, plan, "-s", "256K", "-q", "4", "-n", "100")

    def test_AStoppedPeerIsWaitedFor(self):
        stopped_s = float(os.environ.get("CALL_FAULTS_STOP_S", "3"))
        server, client = self.pair("udp", [], [], "-s", "64K", "-D", "2", "--timeout",
                                   str(stopped_s + 60))
        time.sleep(0.5)
        server.process.send_signal(signal.SIGSTOP)
        time.sleep(stopped_s)
        self.assertIsNone(client.process.poll(), "it did not wait")
        server.process.send_signal(signal.SIGCONT)
        self.assertEqual([client.ends(), server.ends()], [0, 0], client.err + server.err)

    # At the start --------------------------------------------------------------------------------

    def check_nth_call(self, backend, rule, number):
        """Whether the client made so many calls of that kind."""
        plan = [f"{rule}:@{number}"]
        server, client = self.pair(backend, [], plan, "-s", "64K", "-n", "20", "--timeout", "5")
        self.assertTrue(server.listened, server.plan)
        self.assert_ends_well(client)
        if client.process.returncode == 0:
            self.assertEqual(server.ends(), 0, f"{plan}: {server.err}")
        else:
            server.process.kill()
            server.ends()
        return client.counts()[0][1] > 0

    def check_start(self, backend):
        tried = self.tried_of_each(AT_START, NUMBERS,
                                   lambda *which: self.check_nth_call(backend, *which))
        self.assertEqual([rule for rule, times in tried.items() if times == 0], [])

    def test_EachCallOfAStartMayFailOverUdp(self):
        self.check_start("udp")

    def test_EachCallOfAStartMayFailOverCables(self):
        self.check_start("wire")

    # A server's start --------------------------------------------------------------------------

    def left_behind(self):
        """Files of processes that live: who uses a profile, and what they think of paths."""
        return [str(path) for path in pathlib.Path(self.folder).rglob("users/*")]

    def check_nth_call_of_a_server(self, backend, rule, number):
        """Whether the server made so many calls of that kind. Its client never hangs either."""
        server, client = self.pair(backend, [f"{rule}:@{number}"], [], "-s", "64K", "-n", "20",
                                   "--timeout", "5")
        self.assert_ends_well(client)
        if client.process.returncode != 0 and server.listened:
            # It may have lost its client before the greeting, and wait for another.
            server.process.terminate()
            self.assertIn(server.ends(), (0, 1, 4, 130, -signal.SIGTERM), server.err)
        else:
            self.assert_ends_well(server)
        self.assertEqual(self.left_behind(), [], server.plan)
        return server.counts()[0][1] > 0

    def check_each_call(self, rules, check):
        """Calls that were never made."""
        tried = self.tried_of_each(rules, NUMBERS, check)
        return {rule.split(":")[0] for rule, times in tried.items() if times == 0}

    def test_EachCallOfAServerMayFailOverUdp(self):
        silent = self.check_each_call(
            OF_A_SERVER, lambda *which: self.check_nth_call_of_a_server("udp", *which))
        self.assertEqual(silent, set())

    def test_EachCallOfAServerMayFailOverCables(self):
        silent = self.check_each_call(
            OF_A_SERVER, lambda *which: self.check_nth_call_of_a_server("wire", *which))
        self.assertEqual(silent, set())

    def check_nth_call_of_a_lab(self, rule, number):
        """It is up, or says why not and leaves nothing."""
        base = pathlib.Path(self.folder, "labs")
        where = ["--dir", str(base)]
        lab = self.mrc_program([f"{rule}:@{number}"],
                               ["lab", "up", "--hosts", "2", "--t0", "1", "--t1", "1", *where],
                               programs.device_environment(self.folder))
        code = lab.ends()
        self.assertIn(code, (0, 1), f"{lab.plan}: {lab.err}")
        if code != 0:
            self.assertRegex(lab.err, r"\Amrc[\w ]*: [^\n]+\n\Z", lab.plan)
        else:
            down = programs.run([self.mrc, "lab", "down", *where])
            self.assertEqual(down.returncode, 0, f"{lab.plan}: {down.stderr}")
        left = [str(path) for path in base.rglob("*")]
        self.assertEqual(left, [], f"{lab.plan}: {lab.err}")
        programs.eventually(lambda: not programs.processes_with(str(base)),
                            f"{lab.plan}: a process is left")
        return lab.counts()[0][1] > 0

    def test_EachCallOfALabMayFail(self):
        silent = self.check_each_call(OF_A_LAB, self.check_nth_call_of_a_lab)
        self.assertEqual(silent, set())

    # What a controller sets -----------------------------------------------------------------------

    def check_nth_call_of_a_change(self, rule, number):
        """Whether so many calls were made. What was said is what came about."""
        state = pathlib.Path(self.folder, f"{rule}-{number}")
        state.mkdir(mode=0o700)
        variables = programs.device_environment(state)

        def words(format_id):
            return ["ctl", "format", "create", format_id, "--mode", "stev", "--widths", "16,16"]

        before = programs.run([self.mrc, *words("2")], env=variables)
        self.assertEqual(before.returncode, 0, before.stderr)
        change = self.mrc_program([f"{rule}:@{number}"], words("1"), variables)
        self.assert_ends_well(change)
        shown = programs.run([self.mrc, "ctl", "show"], env=variables)
        self.assertEqual(shown.returncode, 0, f"{change.plan}: {shown.stderr}")
        self.assertEqual(bool(re.search(r"(?m)^EV format 1:", shown.stdout)),
                         change.process.returncode == 0,
                         f"{change.plan}: {change.err}\n{shown.stdout}")
        self.assertRegex(shown.stdout, r"(?m)^EV format 2: online", f"{change.plan}: it is lost")
        return change.counts()[0][1] > 0

    def test_AChangeIsMadeOrNotAndSaysWhich(self):
        tried = self.tried_of_each(AT_CHANGE, NUMBERS, self.check_nth_call_of_a_change)
        self.assertEqual([rule for rule, times in tried.items() if times == 0], [])

    def test_APlanThatNobodyUnderstandsIsRefused(self):
        for rule in ("sendmmsg:ENOTHING:1", "sendmssg:EINTR:1", "send:EINTR:0.2y", "send:EINTR"):
            program = self.mrc_program([rule], ["--help"],
                                       programs.device_environment(self.folder))
            self.assertEqual(program.ends(), -signal.SIGABRT, rule)
            self.assertRegex(program.err, re.escape(f"cannot understand '{rule}'"))


if __name__ == "__main__":
    programs.leave_cleanly_when_told()
    CallFaults.mrc, CallFaults.library = sys.argv[1:3]
    CallFaults.seed = int(os.environ.get("CALL_FAULTS_SEED", "1"))
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
