#!/usr/bin/env python3
"""`mrc map` in a lab of 4 hosts and 2 planes: what is broken is named, and nothing else.

Usage: map_test.py <mrc> [unittest arguments]
"""

import json
import os
import pathlib
import signal
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "support"))

import labs  # noqa: E402  (found through the line above)
import programs  # noqa: E402
from programs import WAIT_S, eventually  # noqa: E402

LOOKS = 5
WINDOW_LOOKS = 10  # of `--watch`: what a look has found counts for so many
# What is down shows in a few probes; 1 % of loss takes hundreds (the default).
FEW = ("--count", "60")


class MapTest(labs.LabTest):
    def words(self, *flags):
        return ("map", "--lab", "lab", "--dir", self.lab.folder, *flags)

    def map(self, *flags):
        done = self.tool(*self.words("--json", *flags))
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

    def start_traffic(self):
        """Writes from host 2 to host 0 without an end; the programs."""
        port = programs.free_tcp_port()
        server = self.lab.start_server(0, port, "write_bw", "-D", "1000")
        client = self.lab.start_tool(2, "perf", "write_bw", "-p", str(port), "-D", "1000",
                                     "127.0.0.1")
        before = self.bytes_moved()
        eventually(lambda: self.bytes_moved() > before + 1_000_000, "nothing moves")
        return server, client

    def bytes_moved(self):
        return sum(plane["bytes"] for plane in self.lab.status()["planes"])


class Faults(MapTest):
    def test_a_healthy_lab_is_healthy(self):
        self.up()
        document = self.map(*FEW)
        self.assertEqual(document["findings"], [])
        # Per plane: 4 host cables, 2 T0s, 8 cables between them and 4 T1s.
        self.assertEqual(document["seen"], 36)
        self.assertEqual(document["hosts"], [0, 1, 2, 3])
        text = self.tool(*self.words(*FEW))
        self.assertEqual(text.returncode, 0)
        self.assertIn("healthy: 36 cables and switches lose nothing (rates are not measured)",
                      text.stdout)

    def test_one_broken_part_is_named(self):
        self.up()
        for verb, part in (("cut", "t0:0/t1:2/plane:1"), ("kill", "t1:3/plane:0"),
                           ("cut", "host:2/plane:1"), ("kill", "t0:1/plane:0")):
            with self.subTest(part):
                self.lab.do(verb, part)
                self.assertEqual(self.found(*FEW), {part: "down"})
                self.lab.do("heal", "all")

    def test_several_faults_are_named_at_once(self):
        self.up()
        broken = {"t0:0/t1:2/plane:1", "t0:1/t1:1/plane:0", "t1:3/plane:0", "host:3/plane:1"}
        for part in broken:
            self.lab.do("cut", part)
        self.assertEqual(self.found(*FEW), dict.fromkeys(broken, "down"))
        text = self.tool(*self.words(*FEW)).stdout
        for part in broken:
            self.assertIn(f"{part} is down", text)

    def test_a_grey_cable_is_named_with_its_loss(self):
        self.up()
        for part in ("t0:0/t1:2/plane:1", "host:1/plane:0"):
            with self.subTest(part):
                self.lab.do("loss", part, "1%")
                findings = self.map()["findings"]
                self.assertEqual([(f["part"], f["state"]) for f in findings], [(part, "lossy")])
                self.assertGreater(findings[0]["loss_low"], 0.0005)
                self.assertLess(findings[0]["loss_high"], 0.05)
                self.lab.do("heal", "all")

    def test_one_host_alone_says_what_it_cannot_tell_apart(self):
        self.up()
        self.lab.do("kill", "t1:1/plane:0")
        findings = self.map("--from", "0", *FEW)["findings"]
        self.assertEqual([f["part"] for f in findings], ["t0:0/t1:1/plane:0"])
        self.assertEqual(findings[0]["or"], ["t1:1/plane:0"])


class WhileAJobRuns(MapTest):
    def test_traffic_is_no_fault_and_faults_are_found(self):
        self.up()
        self.start_traffic()
        self.assert_found({})
        self.lab.do("cut", "t0:0/t1:2/plane:1")
        self.lab.do("loss", "t0:1/t1:0/plane:0", "1%")
        self.assert_found({"t0:0/t1:2/plane:1": "down", "t0:1/t1:0/plane:0": "lossy"})
        self.assertEqual(len(self.lab.status()["programs"]), 2)

    def test_a_job_that_ends_is_no_fault(self):
        self.up()
        traffic = self.start_traffic()
        watch = self.start(*self.words("--watch", "--json"))
        self.read_until_healthy(watch)
        for program in traffic:
            programs.end(program)
        for _ in range(3):
            self.assertEqual(json.loads(watch.stdout.readline())["findings"], [])

    def read_until_healthy(self, watch):
        """Frames that hosts did not get to read (see assert_found()) are forgotten with their
        look; nothing is ever down."""
        for _ in range(LOOKS * WINDOW_LOOKS):
            look = json.loads(watch.stdout.readline())
            self.assertNotIn("down", [finding["state"] for finding in look["findings"]])
            if look["healthy"]:
                return
        self.fail(look)

    def test_watching_tells_what_breaks_and_what_heals(self):
        self.up()
        watch = self.start(*self.words("--watch", "--window", "2"))
        watch.stdout.readline()
        self.lab.do("cut", "t0:1/t1:0/plane:1")
        self.read_until(watch, "t0:1/t1:0/plane:1 is down")
        self.lab.do("heal", "all")
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
            if " is down" in line or " is broken" in line:
                self.assertIn("t0:1/t1:0/plane:1", line)
            line = watch.stdout.readline()


class Namespaces(MapTest):
    def test_the_kernels_switches_are_mapped_as_well(self):
        up = self.lab.attempt("up", "--hosts", "4", "--planes", "2", "--netns", "--switch",
                              "kernel")
        if up.returncode != 0:
            self.skipTest(up.stderr.strip())
        self.assertEqual(self.found(*FEW), {})
        self.lab.do("cut", "t0:0/t1:2/plane:1")
        self.assertEqual(self.found(*FEW), {"t0:0/t1:2/plane:1": "down"})


class RawResults(MapTest):
    def raw(self, host, *flags):
        return self.lab.do("exec", str(host), self.program, "map", "--raw", "--host", str(host),
                           "--planes", "2", "--hosts", "4", "--t0", "2", "--t1", "4", *FEW, *flags)

    def test_results_of_several_hosts_are_merged(self):
        self.up()
        self.lab.do("kill", "t1:1/plane:0")
        text = self.raw(0) + self.raw(3)
        merged = self.tool("map", "--merge", "-", "--json", input=text)
        self.assertEqual(merged.returncode, 1, merged.stderr)
        findings = json.loads(merged.stdout)["findings"]
        self.assertEqual([(f["part"], f["or"]) for f in findings], [("t1:1/plane:0", [])])
        for text, complaint in ((text + "nonsense\n", "-:3:"), ("", "no results"),
                                (text.replace('"t1":3', '"t1":7', 1), "-:1:")):
            self.assertIn(complaint, self.refused(2, "map", "--merge", "-", input=text))


class BadInput(MapTest):
    def test_one_line_and_the_way_out(self):
        self.assertIn("--lab", self.refused(2, "map"))
        self.assertIn("mrc lab up", self.refused(2, *self.words()))
        self.assertIn("--host is from 0 to 15", self.refused(2, "map", "--host", "16"))
        self.refused(2, "map", "--merge", os.path.join(self.folder, "none"))
        self.up()
        self.assertIn("hosts 0 to 3", self.refused(2, *self.words("--from", "0,4")))
        self.refused(2, *self.words("--rate", "0"))

    def test_a_host_is_probed_by_one_at_a_time(self):
        self.up()
        watch = self.start(*self.words("--watch", "--json"))
        watch.stdout.readline()
        self.assertIn("already", self.refused(2, *self.words(*FEW)))
        watch.kill()
        watch.wait(timeout=WAIT_S)
        eventually(lambda: not self.lab.status()["programs"], "probes outlive `mrc map`")
        self.assertEqual(self.found(*FEW), {})


if __name__ == "__main__":
    programs.main()
