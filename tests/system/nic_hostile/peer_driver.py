"""Drives peer processes (peer.cc) for the tests of this folder. Every wait has an end."""

import collections
import itertools
import os
import pathlib
import select
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "support"))

import programs  # noqa: E402  (found through the line above)

WAIT_S = 90

Region = collections.namedtuple("Region", "name bytes address rkey")
QueuePair = collections.namedtuple("QueuePair", "name number psn")

# Timeout, linear and exponential retries: of a connection that should survive whatever happens, and
# of one whose peer is going to die (about 1.5 s).
PATIENT = (14, 7, 12)
IMPATIENT = (16, 7, 3)


class PeerDied(Exception):
    pass


class Peer:
    """One process. `ask` is for things that must work, `tell` and `hear` for all others."""

    def __init__(self, program, variables, before=()):
        self.errors = tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace")
        self.process = subprocess.Popen([*before, program], env=variables, stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=self.errors)
        self.pid = self.process.pid
        self.gid = None
        self.buffer = b""

    def open(self):
        self.gid = self.ask("open -").split()[1]
        return self

    def tell(self, line):
        self.process.stdin.write(line.encode() + b"\n")
        self.process.stdin.flush()

    def hear(self, wait_s=WAIT_S):
        deadline = time.monotonic() + wait_s
        while b"\n" not in self.buffer:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self.process.stdout], [], [], left)[0]:
                raise TimeoutError(f"peer {self.pid} said nothing for {wait_s} s")
            chunk = os.read(self.process.stdout.fileno(), 65536)
            if not chunk:
                raise PeerDied(f"peer {self.pid} ended with {self.process.wait(10)}: "
                               f"{self.stderr()}")
            self.buffer += chunk
        line, self.buffer = self.buffer.split(b"\n", 1)
        return line.decode()

    def ask(self, line, wait_s=WAIT_S):
        self.tell(line)
        answer = self.hear(wait_s)
        if answer.split()[0] in ("error", "bad"):
            raise AssertionError(f"{line}: {answer}; {self.stderr()}")
        return answer

    def answer_to(self, line, wait_s=WAIT_S):
        """Like ask, but failures are answers too."""
        self.tell(line)
        return self.hear(wait_s)

    def memory(self, name, size, seed=None):
        address, rkey = self.ask(f"mr {name} {size}").split()[1:]
        if seed is not None:
            self.ask(f"fill {name} {seed}")
        return Region(name, size, int(address), int(rkey))

    def queue_pair(self, name, depth=64):
        number, psn = self.ask(f"qp {name} {depth}").split()[1:]
        return QueuePair(name, int(number), int(psn))

    def stderr(self):
        self.errors.seek(0)
        return self.errors.read()

    def signal(self, number):
        os.kill(self.pid, number)

    def kill(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGCONT)
            self.process.kill()
        self.process.wait(10)

    def close(self):
        self.kill()
        for file in (self.process.stdin, self.process.stdout, self.errors):
            try:
                file.close()
            except BrokenPipeError:
                pass  # it died with a command unread

    def quit(self):
        """Leaves in good order; returns the exit status."""
        self.tell("quit")
        return self.process.wait(WAIT_S)


def connect(peer, own, other_peer, other, retry=PATIENT):
    """Connects both ends of a pair of queue pairs."""
    for a, qa, b, qb in ((peer, own, other_peer, other), (other_peer, other, peer, own)):
        timeout, linear, exponential = retry
        a.ask(f"connect {qa.name} {b.gid} {qb.number} {qb.psn} {timeout} {linear} {exponential}")


class PeerTest(programs.CleanTest):
    """A test with a state directory and processes of its own, which are gone afterwards."""

    seeds = itertools.count(1000)

    program = None  # set by main()

    def setUp(self):
        super().setUp()
        # Some peers leave without cleaning up on purpose: nobody is to look for leaks there.
        leaks_allowed = f"{os.environ.get('ASAN_OPTIONS', '')}:detect_leaks=0".lstrip(":")
        self.variables = programs.device_environment(self.folder, ASAN_OPTIONS=leaks_allowed)

    def start(self, before=()):
        peer = Peer(self.program, self.variables, before)
        self.addCleanup(peer.close)
        return peer.open()

    def pair(self, retry=PATIENT, depth=64):
        """Two processes with a connected pair of queue pairs, both called `q`."""
        sender, receiver = self.start(), self.start()
        ends = sender.queue_pair("q", depth), receiver.queue_pair("q", depth)
        connect(sender, ends[0], receiver, ends[1], retry)
        return sender, receiver

    def write(self, sender, source, target, queue_pair="q", count=1, length=None):
        length = source.bytes if length is None else length
        return sender.answer_to(f"write {queue_pair} {source.name} 0 {length} {target.address} "
                                f"{target.rkey} {count}")

    def assert_moves_data(self, sender, receiver, queue_pair="q", size=100_000):
        """A connection works: bytes get there, and nothing beside them changes."""
        # A clock would give two moves within its tick one name, and the first memory would stay.
        seed = next(self.seeds)
        source = sender.memory(f"source{seed}", size, seed)
        target = receiver.memory(f"target{seed}", size)
        self.assertEqual(self.write(sender, source, target, queue_pair), "done 1 ok")
        receiver.ask(f"check {target.name} 0 {size} {seed} 0")
        receiver.ask(f"guards {target.name}")


def main(case=PeerTest, *more):
    """Runs the tests of a file; see programs.main."""
    programs.main(case, *more)
