"""Programs some of whose system calls fail, for the tests of this folder.

Each rule of a plan (faulty_calls.c) says which call fails, how, and how often; how often it struck
is counted by kind, for the ledger.
"""

import collections
import pathlib
import struct
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "support"))

import programs  # noqa: E402  (found through the line above)

END_S = 90  # whatever fails, a program ends by then
# What the kernel says on a bad day, in each way that bytes and wake-ups take.
UNDER_WAY = [
    "sendmmsg:ENOBUFS:0.2", "sendmmsg:EAGAIN:0.01x300", "sendmmsg:short:0.5",
    "sendmmsg:EINTR:0.2", "sendmmsg:ENOMEM:0.1", "sendmmsg:EPERM:0.02",
    "sendmmsg:ENETUNREACH:0.01x20", "sendmmsg:ECONNREFUSED:0.05",
    "sendmsg:ENOBUFS:0.2", "sendmsg:EAGAIN:0.01x300", "sendmsg:EINTR:0.2",
    "recvmmsg:EAGAIN:0.01x300", "recvmmsg:short:0.5", "recvmmsg:EINTR:0.2",
    "recvmmsg:ENOMEM:0.1", "recvmmsg:ECONNREFUSED:0.1",
    "send:ENOBUFS:0.1", "send:EINTR:0.2", "recv:EINTR:0.2", "recv:EAGAIN:0.05",
    "epoll_wait:EINTR:0.3", "epoll_wait:short:0.5", "ppoll:EINTR:0.3", "poll:EINTR:0.3",
    "read:EINTR:0.2", "clock_gettime:step:0.5",
]
# Of who calls: until its first byte is sent.
AT_START = [
    "socket:EMFILE", "open:EMFILE", "open:EACCES", "epoll_create1:EMFILE", "eventfd:ENFILE",
    "timerfd_create:EMFILE", "epoll_ctl:ENOMEM", "mmap:ENOMEM", "bind:EACCES",
    "connect:ENETUNREACH", "setsockopt:EPERM", "getrandom:EINTR", "getrandom:short",
    "pthread_create:EAGAIN",
]


class Program:
    """A program some of whose calls fail."""

    def __init__(self, test, plan, command, variables):
        self.counts_file = pathlib.Path(test.folder, f"counts-{len(test.started)}")
        self.plan = plan
        environment = variables | {
            "LD_PRELOAD": test.library, "FAULTY_PLAN": " ".join(plan),
            "FAULTY_COUNTS": str(self.counts_file), "FAULTY_SEED": str(test.seed)}
        self.process = programs.start(command, env=environment)
        test.started.append(self.process)
        self.out = self.err = None
        self.listened = False

    def ends(self):
        """The exit status; a program that does not end is an error."""
        try:
            self.out, self.err = self.process.communicate(timeout=END_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.out, self.err = self.process.communicate()
            raise AssertionError(f"{self.plan}: does not end: {self.err}") from None
        for rule, (_, struck) in zip(self.plan, self.counts()):
            call, what = rule.split(":")[:2]
            FaultyTest.struck[f"call fault {call} {what}"] += struck
        return self.process.returncode

    def counts(self):
        """How often each rule was asked, and how often it struck."""
        numbers = self.counts_file.read_bytes() if self.counts_file.exists() else b""
        return [struct.unpack_from("=QQ", numbers, 16 * i) if numbers else (0, 0)
                for i in range(len(self.plan))]


class FaultyTest(programs.CleanTest):
    """A test with programs that are gone afterwards."""

    result = None  # its name in the ledger
    library = None  # libfaulty_calls.so
    seed = 1
    struck = collections.Counter()  # by kind

    def setUp(self):
        super().setUp()
        self.started = []
        self.addCleanup(lambda: [programs.end(process) for process in self.started])

    @classmethod
    def tearDownClass(cls):
        programs.write_result(cls.result, system_calls_that_failed=cls.struck.total(),
                              **{kind: count for kind, count in cls.struck.items() if count})

    def tried_of_each(self, rules, numbers, check):
        """How many calls of each rule failed, each once; `check` says whether there was one."""
        tried = {}
        for rule in rules:
            with self.subTest(rule=rule):
                tried[rule] = 0
                for number in numbers:
                    if not check(rule, number):
                        break
                    tried[rule] += 1
        print(f"calls that failed, each once: {tried}", file=sys.stderr)
        return tried
