"""Programs of ours, run as people run them: started, waited for and ended, on ports and in folders
of their own. All of it is gone after a test, also one that failed, was interrupted or got SIGTERM.

For tests and bench/. A file finds this module by a line of its own:
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "support"))
"""

import json
import os
import pathlib
import random
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest

WAIT_S = 240  # for whatever takes seconds at the most, on a busy machine and with sanitizers
SKIPPED = 77
LISTENS = "0A"  # in /proc/net/tcp
RANDOM = random.SystemRandom()
# Ports below those that the kernel hands out by itself, so that nobody gets one in the meantime.
TCP_PORTS = range(20_000, 32_000)
DEVICE_PORTS = 256  # that one device may take
UDP_PORTS = range(10_240, 32_512, DEVICE_PORTS)


class Failed(AssertionError):
    """What was asked of a program did not come about."""


def skip(why):
    print(f"skipped: {why}")
    sys.exit(SKIPPED)


def free_tcp_port():
    while True:
        port = RANDOM.choice(TCP_PORTS)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
                return port
            except OSError:
                continue


def listens(tables, port):
    """Whether the text of /proc/net/tcp and tcp6 has a socket that listens there."""
    rows = (line.split() for line in tables.splitlines())
    return any(row[3] == LISTENS and row[1].endswith(f":{port:04X}") for row in rows)


def is_listening(port):
    """Only looks: a server would take a connection for its client."""
    return any(listens(pathlib.Path("/proc/net", table).read_text(encoding="ascii"), port)
               for table in ("tcp", "tcp6"))


def eventually(done, what, wait_s=WAIT_S):
    """Waits; `what` is the complaint if it does not come about, or a function that tells it."""
    deadline = time.monotonic() + wait_s
    while not done():
        if time.monotonic() > deadline:
            raise Failed(what() if callable(what) else what)
        time.sleep(0.02)


def bare_environment():
    return {name: value for name, value in os.environ.items() if not name.startswith("MRC_")}


def udp_ports_in_use():
    rows = [line.split() for table in ("udp", "udp6")
            for line in pathlib.Path("/proc/net", table).read_text(encoding="ascii").splitlines()]
    return {int(row[1].rsplit(":", 1)[1], 16) for row in rows if ":" in row[1]}


def free_udp_ports():
    """Where a device finds all its ports free. Tests run side by side and 87 places are few: one
    that takes a thousand ports of any number leaves none, for as long as it runs."""
    free = []

    def look():
        used = udp_ports_in_use()
        free.extend(first for first in UDP_PORTS
                    if not used.intersection(range(first, first + DEVICE_PORTS)))
        return free

    eventually(look, "no 256 UDP ports in a row are free")
    return RANDOM.choice(free)


def device_environment(folder, **variables):
    """Variables that keep a device away from other tests and from the machine's configuration."""
    own = {"MRC_CONFIG": "/dev/null", "MRC_STATE_DIR": str(folder), "XDG_CONFIG_HOME": str(folder),
           "MRC_PORT": str(free_udp_ports())}
    return bare_environment() | own | variables


def run(words, **options):
    return subprocess.run(words, text=True, capture_output=True, check=False,
                          **{"timeout": WAIT_S, **options})


def start(words, **options):
    return subprocess.Popen(words, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                            **options)


def end(process):
    """For processes that may have ended and been read before."""
    process.kill()
    process.communicate(timeout=WAIT_S)


def finish(process):
    """What a program that must succeed wrote."""
    out, err = process.communicate(timeout=WAIT_S)
    if process.returncode != 0:
        raise Failed(f"{' '.join(process.args)}: exit status {process.returncode}: {err}")
    return out


def processes_with(word):
    """Those that have it on their command line, other than us."""
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            if word.encode() in (entry / "cmdline").read_bytes():
                found.append(int(entry.name))
        except OSError:
            continue
    return found


def write_result(name, **lines):
    """What a test measured, for scripts/test_summary.py; a blank stands for each underscore."""
    folder = os.environ.get("MRC_TEST_RESULTS")
    if not folder:
        return
    lines = {label.replace("_", " "): value for label, value in lines.items()}
    pathlib.Path(folder, f"{name}.json").write_text(
        json.dumps({"name": name, "lines": lines}), encoding="utf-8")


def own_folder():
    """A temporary folder, named after the program that runs."""
    prefix = f"mrc-{pathlib.Path(sys.argv[0]).stem}-"
    return tempfile.TemporaryDirectory(prefix=prefix, ignore_cleanup_errors=True)


def leave_cleanly_when_told():
    """SIGTERM becomes an exception, as Ctrl-C is one; a second one does not stop the cleaning."""
    def interrupt(_number, _frame):
        signal.signal(signal.SIGTERM, lambda _number, _frame: None)
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, interrupt)


class CleanTest(unittest.TestCase):
    """A test with a folder of its own."""

    def setUp(self):
        folder = own_folder()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def run(self, result=None):
        try:
            return super().run(result)
        except KeyboardInterrupt:
            self.doCleanups()  # unittest leaves them out
            raise


class ToolTest(CleanTest):
    """A test of the program `mrc`."""

    program = None  # set by main()
    environment = None  # that of the test

    def command(self, *words):
        """The whole command line; kinds of tests put more in front."""
        return [self.program, *words]

    def tool(self, *words, **options):
        return run(self.command(*words), **{"env": self.environment, **options})

    def must(self, *words):
        done = self.tool(*words)
        self.assertEqual(done.returncode, 0, f"{words}: {done.stderr}")
        return done.stdout

    def refused(self, status, *words, **options):
        """A refusal is a status and one line, which is returned."""
        done = self.tool(*words, **options)
        self.assertEqual(done.returncode, status, f"{words}: {done.stdout}{done.stderr}")
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        return done.stderr

    def start(self, *words, **options):
        """A process that ends with the test at the latest."""
        process = start(self.command(*words), **{"env": self.environment, **options})
        self.addCleanup(end, process)
        return process


def main(case=ToolTest, *more):
    """Runs the tests of a file. The command line begins with the path of `mrc` and those of other
    programs, which `case` gets as attributes of the names given here."""
    for name in ("program", *more):
        setattr(case, name, os.path.abspath(sys.argv.pop(1)))
    leave_cleanly_when_told()
    unittest.main(verbosity=2)
