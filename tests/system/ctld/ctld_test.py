#!/usr/bin/env python3
"""`mrc ctld`: files good and bad, reload, restart, kill -9, and events of paths that break.

Usage: ctld_test.py <mrc> [unittest arguments]
"""

import json
import os
import pathlib
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest

WAIT_S = 120

GOOD = """\
disabled_ports = [4]
[[format]]
id = 1
mode = "stev"
widths = [16, 16]
[[ev_profile]]
id = 7
mode = "explicit"
format = 1
min_active = 1
evs = ["1:0001c350", "2:0002c351", "3:0003c352", "1:0004c353"]
[[deny]]
profile = 7
evs = ["1", "port=3"]
[[cc_profile]]
id = 2
base_rtt = 12000
"""


def free_tcp_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def is_listening(port):
    wanted = f":{port:04X} "
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        with open(table, encoding="ascii") as file:
            if any(wanted in line and " 0A " in line for line in file):
                return True
    return False


class Node(unittest.TestCase):
    """A device of its own for each test."""

    program = None

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="mrc-ctld-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.file = self.folder / "controller.toml"
        self.file.write_text(GOOD, encoding="utf-8")
        state = self.folder / "state"
        state.mkdir()
        self.environment = {name: value for name, value in os.environ.items()
                            if not name.startswith("MRC_")}
        self.environment.update(MRC_STATE_DIR=str(state), XDG_CONFIG_HOME=str(self.folder),
                                MRC_PORT=str(random.SystemRandom().randrange(10_000, 30_000)))
        self.prefix = []

    def run_tool(self, *words):
        return subprocess.run([*self.prefix, self.program, *words], env=self.environment,
                              text=True, capture_output=True, timeout=WAIT_S, check=False)

    def ctl(self, *words):
        done = self.run_tool("ctl", *words)
        self.assertEqual(done.returncode, 0, f"{words}: {done.stderr}")
        return done.stdout

    def shown(self):
        return json.loads(self.ctl("show", "--json", "--evs"))

    def states(self, profile=7):
        return [ev["state"] for ev in json.loads(self.ctl("show", str(profile), "--json"))["evs"]]

    def refused(self, status, *words):
        done = self.run_tool("ctld", *words)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        return done.stderr

    def start(self, *words):
        process = subprocess.Popen([*self.prefix, self.program, *words], env=self.environment,
                                   text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(self.end, process)
        return process

    @staticmethod
    def end(process):
        process.kill()
        process.communicate(timeout=WAIT_S)

    def start_daemon(self):
        daemon = self.start("ctld", str(self.file))
        lines = [daemon.stdout.readline(), daemon.stdout.readline()]
        if "listens" not in lines[1]:
            self.fail(lines[0] + daemon.communicate(timeout=WAIT_S)[1])
        return daemon, lines[0]

    def stop(self, daemon):
        daemon.terminate()
        out, err = daemon.communicate(timeout=WAIT_S)
        self.assertEqual(daemon.returncode, 0, err)
        return out

    def reload(self, daemon, text):
        self.file.write_text(text, encoding="utf-8")
        daemon.send_signal(signal.SIGHUP)
        return daemon.stdout.readline()


class Files(Node):
    def test_what_the_file_says_is_set_and_stays(self):
        daemon, line = self.start_daemon()
        self.assertIn("3 profiles created, 0 removed, 0 kept", line)
        self.assertEqual(self.states(), ["good", "denied", "denied", "good"])
        self.assertEqual(self.shown()["ports"][3]["admin_state"], "disabled")
        self.assertIn("what is set stays", self.stop(daemon))
        before = self.shown()
        self.assertEqual([p["id"] for p in before["ev_profiles"]], [7])
        daemon, line = self.start_daemon()
        self.assertIn("0 profiles created, 0 removed, 3 kept", line)
        self.assertEqual(self.shown(), before)

    def test_a_reload_changes_what_differs_and_nothing_else(self):
        daemon, _ = self.start_daemon()
        self.ctl("ev", "create", "99", "--mode", "auto")
        changed = GOOD.replace("base_rtt = 12000", "base_rtt = 13000")
        changed = changed.replace('evs = ["1", "port=3"]', 'evs = ["0", "1"]')
        changed = changed.replace("[4]", "[3]")
        self.assertIn("1 profile created, 1 removed, 2 kept", self.reload(daemon, changed))
        self.assertEqual(self.states(), ["denied", "denied", "good", "good"])
        document = self.shown()
        self.assertEqual(document["cc_profiles"][0]["settings"]["base_rtt"], 13000)
        self.assertEqual([p["admin_state"] for p in document["ports"][2:]],
                         ["disabled", "enabled"])
        self.assertIn("0 profiles created, 3 removed, 0 kept", self.reload(daemon, ""))
        self.assertEqual([p["id"] for p in self.shown()["ev_profiles"]], [99])

    def test_by_command_as_well(self):
        daemon, _ = self.start_daemon()
        self.ctl("ev", "deny", "7", "0")
        self.assertEqual(self.states(), ["denied", "denied", "denied", "good"])
        self.file.write_text(GOOD.replace('"1", "port=3"', '"1"'), encoding="utf-8")
        done = self.run_tool("ctld", "--reload")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("reloaded", daemon.stdout.readline())
        # What was denied by hand is for the hand to allow.
        self.assertEqual(self.states(), ["denied", "denied", "good", "good"])

    def test_a_broken_file_changes_nothing_and_is_told_with_its_place(self):
        daemon, _ = self.start_daemon()
        before = self.shown()
        broken = {
            "not TOML": (GOOD + "[[", ":18:"),
            "unknown key": (GOOD + "nonsense = 1\n", ":18:"),
            "two of an id": (GOOD + "[[cc_profile]]\nid = 2\n", ":18:"),
            "no such profile": (GOOD.replace("profile = 7", "profile = 8"), ":12:"),
            "no such EV": (GOOD.replace('"port=3"', '"9"'), ":12:"),
            "no such port": (GOOD.replace("[4]", "[40]"), ":1:"),
            # Sound to read; the device refuses it after other changes were made.
            "refused by the device": (GOOD.replace("12000", "13000").replace("[16, 16]", "[33]"),
                                      ":2:"),
            "refused late": (GOOD.replace("12000", "1") + '[[ev_profile]]\nid = 8\n'
                             'mode = "explicit"\nformat = 3\nevs = ["1:01020304"]\n', ":18:"),
        }
        for name, (text, place) in broken.items():
            with self.subTest(name):
                line = self.reload(daemon, text)
                self.assertIn(f"{self.file}{place}", line)
                self.assertIn("nothing changed", line)
                self.assertEqual(self.shown(), before)
        self.assertIn("3 kept", self.reload(daemon, GOOD))

    def test_a_broken_file_at_the_start_is_one_line(self):
        self.file.write_text("x = 1\n", encoding="utf-8")
        self.assertIn(f"{self.file}:1:", self.refused(2, str(self.file)))
        self.assertIn(f"{self.file}:1:", self.refused(2, "--check", str(self.file)))
        self.refused(2, str(self.folder / "none.toml"))
        self.refused(2)
        self.assertEqual(self.shown()["ev_profiles"], [])

    def test_what_somebody_else_made_is_not_taken_over(self):
        self.ctl("ev", "create", "7", "--mode", "auto")
        self.assertIn("already", self.refused(1, str(self.file)))
        document = self.shown()
        self.assertEqual(document["formats"], [])
        self.assertEqual([p["mode"] for p in document["ev_profiles"]], ["auto"])


class Life(Node):
    def test_one_for_each_device(self):
        self.assertIn("no controller", self.refused(1, "--reload"))
        daemon, _ = self.start_daemon()
        self.assertIn(f"process {daemon.pid} controls", self.refused(1, str(self.file)))
        daemon.kill()
        daemon.wait(timeout=WAIT_S)
        _, line = self.start_daemon()
        self.assertIn("0 profiles created, 0 removed, 3 kept", line)

    def test_killed_at_any_moment_it_goes_on_where_the_file_stands(self):
        rng = random.Random(5)
        for turn in range(12):
            text = GOOD.replace("12000", str(12_000 + turn))
            text = text.replace("0001c350", f"0001c3{turn:02x}")
            self.file.write_text(text, encoding="utf-8")
            process = self.start("ctld", str(self.file))
            time.sleep(rng.random() * 0.1)
            process.kill()
            process.wait(timeout=WAIT_S)
        daemon, _ = self.start_daemon()
        document = self.shown()
        self.assertEqual(document["cc_profiles"][0]["settings"]["base_rtt"], 12_011)
        self.assertEqual(document["ev_profiles"][0]["evs"][0]["ev"], "1:0001c30b")
        self.assertEqual(self.states(), ["good", "denied", "denied", "good"])
        self.stop(daemon)


class Events(Node):
    """A path of a lab is cut while a program uses it."""

    def setUp(self):
        super().setUp()
        self.base = str(self.folder / "l")
        self.lab("up", "--hosts", "4", "--planes", "2")
        self.addCleanup(self.lab, "down")

    def lab(self, verb, *rest):
        done = subprocess.run([self.program, "lab", verb, "--dir", self.base, *rest], text=True,
                              capture_output=True, timeout=WAIT_S, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)

    def inside(self, host):
        return [self.program, "lab", "exec", "--dir", self.base, str(host)]

    def test_events_are_logged_in_words(self):
        # All ways from host 2 (at T0 1) to host 0 (at T0 0).
        evs = ", ".join(f'"{plane}:fc00:{plane}:1001:{t1:x}:1000:100::"'
                        for plane in (1, 2) for t1 in range(0x8000, 0x8004))
        self.file.write_text(
            '[[format]]\nid = 1\nmode = "srv6"\nwidths = [32, 16, 16, 16, 16, 16, 16]\n'
            '[[ev_profile]]\nid = 5\nmode = "explicit"\nformat = 1\nmin_active = 1\n'
            f"evs = [{evs}]\n", encoding="utf-8")
        self.prefix = self.inside(2)
        daemon, _ = self.start_daemon()
        port = free_tcp_port()
        perf = ("perf", "write_bw", "-p", str(port), "-D", "1000")
        client_prefix, self.prefix = self.prefix, self.inside(0)
        self.start(*perf)
        deadline = time.monotonic() + WAIT_S
        while not is_listening(port):
            self.assertLess(time.monotonic(), deadline, "no server")
            time.sleep(0.05)
        self.prefix = client_prefix
        self.start(*perf, "--ev-profile", "5", "127.0.0.1")
        self.lab("cut", "t0:1/t1:2/plane:1")
        wanted = "EV 2:fc00:2:1001:8002:1000:100:: (port 2, t0:1 t1:2 t0:0 host port 0) is "
        self.expect(daemon, wanted + "assumed bad")
        self.lab("heal", "all")
        self.expect(daemon, wanted + "good")
        out = self.stop(daemon)
        self.assertRegex(out.splitlines()[-1], r"ends after \d+ events; what is set stays")

    def expect(self, daemon, words):
        """Reads on until a line has them; a busy machine may give reason for other events."""
        deadline = time.monotonic() + WAIT_S
        while time.monotonic() < deadline:
            line = daemon.stdout.readline()
            self.assertNotEqual(line, "", "the daemon ended")
            self.assertRegex(line, r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ EV profile 5: EV .* is "
                             r"(good|assumed bad), [\d,]+ packets? lost since its last event, "
                             r"[\d,]+ in all$")
            if words in line:
                return
        self.fail(f"no event: {words}")


if __name__ == "__main__":
    Node.program = os.path.abspath(sys.argv.pop(1))
    unittest.main(verbosity=2)
