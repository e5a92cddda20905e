#!/usr/bin/env python3
"""`mrc map` in a lab of 4 hosts and 2 planes: what is broken is named, and nothing else.

Usage: map_test.py <mrc> [unittest arguments]
"""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest

LOOKS = 5
WAIT_S = 240
# What is down shows in a few probes; 1 % of loss takes hundreds (the default).
FEW = ("--count", "60")


def is_listening(port):
    wanted = f":{port:04X} "
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        with open(table, encoding="ascii") as file:
            if any(wanted in line and " 0A " in line for line in file):
                return True
    return False


class MapTest(unittest.TestCase):
    program = None

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="mrc-map-test-")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.base = os.path.join(self.folder, "l")
        self.addCleanup(self.run_tool, "lab", "down", "--dir", self.base)

    def run_tool(self, *words, **options):
        return subprocess.run([self.program, *words], capture_output=True, text=True,
                              timeout=WAIT_S, check=False, **options)

    def lab(self, verb, *rest):
        done = self.run_tool("lab", verb, "--dir", self.base, *rest)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def up(self):
        self.lab("up", "--hosts", "4", "--planes", "2")

    def words(self, *flags):
        return ("map", "--lab", "lab", "--dir", self.base, *flags)

    def map(self, *flags):
        done = self.run_tool(*self.words("--json", *flags))
        self.assertIn(done.returncode, (0, 1), done.stderr)
        document = json.loads(done.stdout)
        self.assertEqual(done.returncode, 0 if document["healthy"] else 1)
        return document

    def found(self, *flags):
        return {finding["part"]: finding["state"] for finding in self.map(*flags)["findings"]}

    def assert_found(self, expected):
        """Beside traffic on a machine short of processors, frames are lost in front of hosts that
        do not get to read them, which is no fault of the fabric: another look must not find it."""
        for _ in range(LOOKS):
            found = self.found()
            down = {part for part, state in found.items() if state == "down"}
            self.assertEqual(down, {part for part, state in expected.items() if state == "down"})
            if found == expected:
                return
        self.assertEqual(found, expected)

    def start(self, *words):
        process = subprocess.Popen([self.program, *words], text=True, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE)
        self.addCleanup(self.end, process)
        return process

    @staticmethod
    def end(process):
        process.kill()
        process.communicate(timeout=WAIT_S)

    def start_traffic(self):
        """Writes from host 2 to host 0 without an end; the programs."""
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = str(probe.getsockname()[1])
        perf = (self.program, "perf", "write_bw", "-p", port, "-D", "1000")
        server = self.start("lab", "exec", "--dir", self.base, "0", *perf)
        self.eventually(lambda: is_listening(int(port)) or server.poll() is not None, "no server")
        client = self.start("lab", "exec", "--dir", self.base, "2", *perf, "127.0.0.1")
        before = self.bytes_moved()
        self.eventually(lambda: self.bytes_moved() > before + 1_000_000, "nothing moves")
        return server, client

    def eventually(self, done, what):
        deadline = time.monotonic() + WAIT_S
        while not done():
            self.assertLess(time.monotonic(), deadline, what)
            time.sleep(0.05)

    def bytes_moved(self):
        return sum(plane["bytes"] for plane in json.loads(self.lab("status", "--json"))["planes"])


class Faults(MapTest):
    def test_a_healthy_lab_is_healthy(self):
        self.up()
        document = self.map(*FEW)
        self.assertEqual(document["findings"], [])
        # Per plane: 4 host cables, 2 T0s, 8 cables between them and 4 T1s.
        self.assertEqual(document["seen"], 36)
        self.assertEqual(document["hosts"], [0, 1, 2, 3])
        text = self.run_tool(*self.words(*FEW))
        self.assertEqual(text.returncode, 0)
        self.assertIn("healthy: 36 cables and switches", text.stdout)

    def test_one_broken_part_is_named(self):
        self.up()
        for verb, part in (("cut", "t0:0/t1:2/plane:1"), ("kill", "t1:3/plane:0"),
                           ("cut", "host:2/plane:1"), ("kill", "t0:1/plane:0")):
            with self.subTest(part):
                self.lab(verb, part)
                self.assertEqual(self.found(*FEW), {part: "down"})
                self.lab("heal", "all")

    def test_several_faults_are_named_at_once(self):
        self.up()
        broken = {"t0:0/t1:2/plane:1", "t0:1/t1:1/plane:0", "t1:3/plane:0", "host:3/plane:1"}
        for part in broken:
            self.lab("cut", part)
        self.assertEqual(self.found(*FEW), dict.fromkeys(broken, "down"))
        text = self.run_tool(*self.words(*FEW)).stdout
        for part in broken:
            self.assertIn(f"{part} is down", text)

    def test_a_grey_cable_is_named_with_its_loss(self):
        self.up()
        for part in ("t0:0/t1:2/plane:1", "host:1/plane:0"):
            with self.subTest(part):
                self.lab("loss", part, "1%")
                findings = self.map()["findings"]
                self.assertEqual([(f["part"], f["state"]) for f in findings], [(part, "lossy")])
                self.assertGreater(findings[0]["loss_low"], 0.0005)
                self.assertLess(findings[0]["loss_high"], 0.05)
                self.lab("heal", "all")

    def test_one_host_alone_says_what_it_cannot_tell_apart(self):
        self.up()
        self.lab("kill", "t1:1/plane:0")
        findings = self.map("--from", "0", *FEW)["findings"]
        self.assertEqual([f["part"] for f in findings], ["t0:0/t1:1/plane:0"])
        self.assertEqual(findings[0]["or"], ["t1:1/plane:0"])


class WhileAJobRuns(MapTest):
    def test_traffic_is_no_fault_and_faults_are_found(self):
        self.up()
        self.start_traffic()
        self.assert_found({})
        self.lab("cut", "t0:0/t1:2/plane:1")
        self.lab("loss", "t0:1/t1:0/plane:0", "1%")
        self.assert_found({"t0:0/t1:2/plane:1": "down", "t0:1/t1:0/plane:0": "lossy"})
        programs = json.loads(self.lab("status", "--json"))["programs"]
        self.assertEqual(len(programs), 2)

    def test_a_job_that_ends_is_no_fault(self):
        self.up()
        programs = self.start_traffic()
        watch = self.start(*self.words("--watch", "--json"))
        self.assertTrue(json.loads(watch.stdout.readline())["healthy"])
        for program in programs:
            self.end(program)
        for _ in range(3):
            self.assertEqual(json.loads(watch.stdout.readline())["findings"], [])

    def test_watching_tells_what_breaks_and_what_heals(self):
        self.up()
        watch = self.start(*self.words("--watch", "--window", "2"))
        watch.stdout.readline()
        self.lab("cut", "t0:1/t1:0/plane:1")
        self.read_until(watch, "t0:1/t1:0/plane:1 is down")
        self.lab("heal", "all")
        self.read_until(watch, "t0:1/t1:0/plane:1 is healthy again")
        watch.send_signal(signal.SIGINT)
        self.assertIn(watch.wait(timeout=WAIT_S), (0, 1))

    def read_until(self, watch, words):
        """On a busy machine losses elsewhere may be told in between, but nothing else is down."""
        deadline = time.monotonic() + WAIT_S
        line = watch.stdout.readline()
        while words not in line:
            self.assertNotEqual(line, "", "the watch ended")
            self.assertLess(time.monotonic(), deadline, words)
            if " is down" in line:
                self.assertIn("t0:1/t1:0/plane:1", line)
            line = watch.stdout.readline()


class Namespaces(MapTest):
    def test_the_kernels_switches_are_mapped_as_well(self):
        up = self.run_tool("lab", "up", "--dir", self.base, "--hosts", "4", "--planes", "2",
                           "--netns", "--switch", "kernel")
        if up.returncode != 0:
            self.skipTest(up.stderr.strip())
        self.assertEqual(self.found(*FEW), {})
        self.lab("cut", "t0:0/t1:2/plane:1")
        self.assertEqual(self.found(*FEW), {"t0:0/t1:2/plane:1": "down"})


class RawResults(MapTest):
    def raw(self, host, *flags):
        done = self.run_tool("lab", "exec", "--dir", self.base, str(host), self.program, "map",
                             "--raw", "--host", str(host), "--planes", "2", "--hosts", "4", "--t0",
                             "2", "--t1", "4", *FEW, *flags)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def test_results_of_several_hosts_are_merged(self):
        self.up()
        self.lab("kill", "t1:1/plane:0")
        text = self.raw(0) + self.raw(3)
        merged = self.run_tool("map", "--merge", "-", "--json", input=text)
        self.assertEqual(merged.returncode, 1, merged.stderr)
        findings = json.loads(merged.stdout)["findings"]
        self.assertEqual([(f["part"], f["or"]) for f in findings], [("t1:1/plane:0", [])])
        for text, complaint in ((text + "nonsense\n", "-:3:"), ("", "no results"),
                                (text.replace('"t1":3', '"t1":7', 1), "-:1:")):
            refused = self.run_tool("map", "--merge", "-", input=text)
            self.assertEqual(refused.returncode, 2)
            self.assertIn(complaint, refused.stderr)
            self.assertEqual(refused.stderr.count("\n"), 1)


class BadInput(MapTest):
    def refused(self, *words):
        done = self.run_tool(*words)
        self.assertEqual(done.returncode, 2, done.stdout + done.stderr)
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        return done.stderr

    def test_one_line_and_the_way_out(self):
        self.assertIn("--lab", self.refused("map"))
        self.assertIn("mrc lab up", self.refused(*self.words()))
        self.assertIn("--host is from 0 to 15", self.refused("map", "--host", "16"))
        self.refused("map", "--merge", os.path.join(self.folder, "none"))
        self.up()
        self.assertIn("hosts 0 to 3", self.refused(*self.words("--from", "0,4")))
        self.refused(*self.words("--rate", "0"))

    def test_a_host_is_probed_by_one_at_a_time(self):
        self.up()
        watch = self.start(*self.words("--watch", "--json"))
        watch.stdout.readline()
        self.assertIn("already", self.refused(*self.words(*FEW)))
        watch.kill()
        watch.wait(timeout=WAIT_S)
        self.eventually(lambda: not json.loads(self.lab("status", "--json"))["programs"],
                        "probes outlive `mrc map`")
        self.assertEqual(self.found(*FEW), {})


if __name__ == "__main__":
    MapTest.program = os.path.abspath(sys.argv.pop(1))
    unittest.main(verbosity=2)
