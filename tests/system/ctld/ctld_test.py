#!/usr/bin/env python3
"""`mrc ctld`: files good and bad, reload, restart, kill -9, and events of paths that break.

Usage: ctld_test.py <mrc> [unittest arguments]
"""

import fcntl
import json
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "support"))

import labs  # noqa: E402  (found through the line above)
import programs  # noqa: E402
from programs import WAIT_S  # noqa: E402

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


class Node(programs.ToolTest):
    """A device of its own for each test."""

    def setUp(self):
        super().setUp()
        self.file = pathlib.Path(self.folder, "controller.toml")
        self.file.write_text(GOOD, encoding="utf-8")
        state = pathlib.Path(self.folder, "state")
        state.mkdir()
        self.environment = programs.device_environment(state)
        self.prefix = []

    def command(self, *words):
        return [*self.prefix, self.program, *words]

    def ctl(self, *words):
        return self.must("ctl", *words)

    def shown(self):
        return json.loads(self.ctl("show", "--json", "--evs"))

    def states(self, profile=7):
        return [ev["state"] for ev in json.loads(self.ctl("show", str(profile), "--json"))["evs"]]

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


class Reload(Node):
    def test_signals_nobody_when_the_holder_has_not_said_who_it_is(self):
        self.ctl("show")  # makes the directory of the device
        lock = next(pathlib.Path(self.folder, "state").glob("*/users")).parent / "controller.lock"
        with open(lock, "w", encoding="utf-8") as holder:
            fcntl.flock(holder, fcntl.LOCK_EX)
            done = subprocess.run(self.command("ctld", "--reload"), env=self.environment,
                                  capture_output=True, text=True, timeout=WAIT_S, check=False,
                                  start_new_session=True)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("has not said which process it is", done.stderr)


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
        done = self.tool("ctld", "--reload")
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
        self.assertIn(f"{self.file}:1:", self.refused(2, "ctld", str(self.file)))
        self.assertIn(f"{self.file}:1:", self.refused(2, "ctld", "--check", str(self.file)))
        self.refused(2, "ctld", f"{self.folder}/none.toml")
        self.refused(2, "ctld")
        self.assertEqual(self.shown()["ev_profiles"], [])

    def test_what_somebody_else_made_is_not_taken_over(self):
        self.ctl("ev", "create", "7", "--mode", "auto")
        self.assertIn("already", self.refused(1, "ctld", str(self.file)))
        document = self.shown()
        self.assertEqual(document["formats"], [])
        self.assertEqual([p["mode"] for p in document["ev_profiles"]], ["auto"])


class Life(Node):
    def test_one_for_each_device(self):
        self.assertIn("no controller", self.refused(1, "ctld", "--reload"))
        daemon, _ = self.start_daemon()
        self.assertIn(f"process {daemon.pid} controls", self.refused(1, "ctld", str(self.file)))
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


    def test_what_cannot_be_written_down_is_told_and_known(self):
        daemon, _ = self.start_daemon()
        noted = pathlib.Path(self.folder, "state", "mrc0", "controller.toml")
        noted.unlink()
        pathlib.Path(noted, "in_the_way").mkdir(parents=True)
        changed = GOOD.replace("base_rtt = 12000", "base_rtt = 13000")
        line = self.reload(daemon, changed)
        self.assertIn("is set, but that could not be noted", line)
        self.assertNotIn("nothing changed", line)
        self.assertEqual(self.shown()["cc_profiles"][0]["settings"]["base_rtt"], 13000)
        shutil.rmtree(noted)
        self.assertIn("0 profiles created, 0 removed, 3 kept", self.reload(daemon, changed))
        self.stop(daemon)

    def test_one_killed_before_it_changed_anything_costs_nobody_a_profile(self):
        daemon, _ = self.start_daemon()
        self.stop(daemon)
        other = GOOD.replace("12000", "13000").replace("0001c350", "0001c3ff")
        other = other.replace('"port=3"', '"port=3", "9"').replace("[4]", "[9]")
        pathlib.Path(self.folder, "state", "mrc0", "controller.begun.1.toml").write_text(
            other, encoding="utf-8")
        daemon, line = self.start_daemon()
        self.assertIn("0 profiles created, 0 removed, 3 kept", line)
        self.assertEqual(self.states(), ["good", "denied", "denied", "good"])
        self.stop(daemon)


class Events(Node):
    """A path of a lab is cut while a program uses it."""

    def setUp(self):
        super().setUp()
        self.lab = labs.Lab(self.program, f"{self.folder}/l")
        self.addCleanup(self.lab.close)
        self.lab.do("up", "--hosts", "4", "--planes", "2")

    def test_events_are_logged_in_words(self):
        # All ways from host 2 (at T0 1) to host 0 (at T0 0).
        evs = ", ".join(f'"{plane}:fc00:{plane}:1001:{t1:x}:1000:100::"'
                        for plane in (1, 2) for t1 in range(0x8000, 0x8004))
        self.file.write_text(
            '[[format]]\nid = 1\nmode = "srv6"\nwidths = [32, 16, 16, 16, 16, 16, 16]\n'
            '[[ev_profile]]\nid = 5\nmode = "explicit"\nformat = 1\nmin_active = 1\n'
            f"evs = [{evs}]\n", encoding="utf-8")
        self.prefix = self.lab.words("exec", "2")
        daemon, _ = self.start_daemon()
        port = programs.free_tcp_port()
        self.lab.start_server(0, port, "write_bw", "-D", "1000")
        self.start("perf", "write_bw", "-p", str(port), "-D", "1000", "--ev-profile", "5",
                   "127.0.0.1")
        self.lab.do("cut", "t0:1/t1:2/plane:1")
        wanted = "EV 2:fc00:2:1001:8002:1000:100:: (port 2, t0:1 t1:2 t0:0 host port 0) is "
        self.expect(daemon, wanted + "assumed bad")
        self.lab.do("heal", "all")
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
                             r"(good|assumed bad)(, \d+ events? before it (was|were) lost)?$")
            if words in line:
                return
        self.fail(f"no event: {words}")


if __name__ == "__main__":
    programs.main()
