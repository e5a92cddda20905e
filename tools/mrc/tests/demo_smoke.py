#!/usr/bin/env python3
"""A short `mrc demo`: the verdict, and that nothing is left however it ends.

Usage: demo_smoke.py <mrc> [unittest arguments]
"""

import json
import os
import pathlib
import shutil
import signal
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "tests" / "support"))

import pages  # noqa: E402  (found through the line above)
import programs  # noqa: E402

WAIT_S = 400
DOWN = 5  # of the states of a lane, docs/view.md
SHORT = ["demo", "--hosts", "4", "--planes", "2", "--fault-seconds", "0.4"]


class Demo(programs.ToolTest):
    def setUp(self):
        super().setUp()
        # Labs of the demo lie here, so that what is left of them can be seen.
        self.environment = os.environ | {"XDG_RUNTIME_DIR": self.folder}

    def processes(self):
        """Whoever has our folder in its environment, the test itself apart."""
        found = []
        for number in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{number}/environ", "rb") as file:
                    if f"XDG_RUNTIME_DIR={self.folder}\0".encode() in file.read():
                        found.append(number)
            except OSError:
                continue
        return found

    def expect_nothing_left(self):
        programs.eventually(lambda: not self.processes() and not os.listdir(self.folder),
                            lambda: f"left: {self.processes()} {os.listdir(self.folder)}", WAIT_S)

    def check_drill(self, drill):
        self.assertEqual(drill["wrong_bytes"], 0)
        self.assertGreater(drill["moved_bytes"], 0)
        self.assertEqual([fault["kind"] for fault in drill["faults"]], ["cable", "switch", "port"])

    def test_the_verdict(self):
        process = self.start(*SHORT, "--json")
        out, err = process.communicate(timeout=WAIT_S)
        self.assertEqual(process.returncode, 0, out + err)
        report = json.loads(out)
        self.assertEqual(report["verdict"], "passed")
        self.assertTrue(report["losses_equal"])
        self.assertEqual(report["mrc"]["interruptions"], [])
        self.assertGreater(report["mrc"]["checked_bytes"], 0)
        self.assertGreater(report["mrc"]["training_steps"], 5)
        self.check_drill(report["mrc"])
        self.check_drill(report["single_path"])
        for word in ("is cut", "is mended", "reboots", "is gone", "is back"):
            self.assertIn(word, err)
        self.expect_nothing_left()

    def test_lines_for_people(self):
        process = self.start(*SHORT, "--no-compare")
        out, err = process.communicate(timeout=WAIT_S)
        self.assertEqual((process.returncode, err), (0, ""), out)
        self.assertIn("PASSED", out)
        rows = [line for line in out.splitlines() if " %  " in line]
        self.assertEqual(len(rows), 3, out)
        for row in rows:
            self.assertRegex(row, r"\d+ %  +\d+\.\d s  +(> )?\d+\.\d s$")
        self.assertIn("Bytes and interruptions are judged, times are not.", out)
        self.assertIn("bit by bit as in the run without faults", out)
        self.assertNotIn("\033", out)

    def address_of(self, process):
        beginning = "page in the browser: "
        for line in process.stdout:
            if line.startswith(beginning):
                address = line.removeprefix(beginning).strip()
                if address.startswith("none, "):
                    self.skipTest(address)
                return address
        return self.fail("no line tells the address of the page")

    def without_browsers(self):
        """Whatever would open a page leaves a trace instead; returns where."""
        trace = pathlib.Path(f"{self.folder}-opened")
        self.addCleanup(trace.unlink, missing_ok=True)
        programs_of_ours = pathlib.Path(self.folder, "bin")
        programs_of_ours.mkdir()
        self.addCleanup(shutil.rmtree, programs_of_ours, ignore_errors=True)
        for name in ("xdg-open", "sensible-browser", "x-www-browser", "chromium", "firefox"):
            opener = programs_of_ours / name
            opener.write_text(f"#!/bin/sh\necho {name} >> {trace}\n", encoding="ascii")
            opener.chmod(0o755)
        self.environment |= {"PATH": f"{programs_of_ours}:{self.environment['PATH']}",
                             "BROWSER": str(programs_of_ours / "xdg-open")}
        return trace

    def test_the_page_shows_its_lab_and_nobody_opens_it(self):
        opened = self.without_browsers()
        process = self.start(*SHORT, "--no-compare")
        url = self.address_of(process)
        stream = pages.Stream(url)
        self.addCleanup(stream.close)
        header = stream.value()
        self.assertEqual((header["source"], header["title"][:8]), ("lab", "lab demo"))
        hosts, planes = header["geometry"]["rows"][0]["count"], header["geometry"]["planes"]
        self.assertEqual((hosts, planes), (4, 2))
        busy, broken = 0, 0
        while not (busy and broken):
            lanes = stream.frame()["l"]
            busy += sum(lanes[1::4])
            broken += sum(state == DOWN for state in lanes[3::4])
        out, err = process.communicate(timeout=WAIT_S)
        self.assertEqual((process.returncode, err), (0, ""), out)
        self.assertFalse(opened.exists())

    def test_the_second_lab_is_at_the_same_address(self):
        process = self.start(*SHORT)
        first = self.address_of(process)
        second = self.address_of(process)
        self.assertEqual(first, second)
        stream = pages.Stream(second)
        self.addCleanup(stream.close)
        self.assertEqual(stream.value()["geometry"]["planes"], 1)
        process.communicate(timeout=WAIT_S)
        self.assertEqual(process.returncode, 0)

    def test_nothing_is_left_when_it_is_killed_or_interrupted(self):
        for number, code in ((signal.SIGKILL, -signal.SIGKILL), (signal.SIGINT, 130)):
            with self.subTest(signal=number):
                process = self.start(*SHORT, "--no-compare")
                for line in process.stdout:
                    if "is cut" in line:
                        break
                process.send_signal(number)
                _, err = process.communicate(timeout=WAIT_S)
                self.assertEqual(process.returncode, code, err)
                self.expect_nothing_left()

    def test_a_killed_rank_is_an_interruption(self):
        process = self.start(*SHORT, "--no-compare", "--json")
        for line in process.stderr:
            if "is cut" in line:
                break
        # The second training is under way: of its processes one dies.
        for number in self.processes():
            try:
                with open(f"/proc/{number}/cmdline", "rb") as file:
                    words = file.read().split(b"\0")
            except OSError:  # it has ended
                continue
            if words[0].endswith(b"mrc-training") and words[words.index(b"--rank") + 1] == b"2":
                os.kill(int(number), signal.SIGKILL)
        out, _ = process.communicate(timeout=WAIT_S)
        self.assertNotEqual(process.returncode, 0)
        report = json.loads(out)
        self.assertEqual(report["verdict"], "failed")
        self.assertEqual(len(report["mrc"]["interruptions"]), 1)
        self.assertIn("training: rank", report["mrc"]["interruptions"][0])
        self.expect_nothing_left()


if __name__ == "__main__":
    programs.main()
