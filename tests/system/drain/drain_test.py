#!/usr/bin/env python3
"""`mrc drain` and `mrc undrain` in a lab of 4 hosts and 2 planes, while writes go on.

Usage: drain_test.py <mrc> [unittest arguments]
"""

import fcntl
import json
import os
import pathlib
import signal
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "support"))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "wireshark"))

import frames  # noqa: E402  (found through the lines above)
import labs  # noqa: E402  (found through the line above)
import programs  # noqa: E402
from programs import WAIT_S, eventually  # noqa: E402

LOOK_S = 1.0  # at a part that must be quiet, or must not
LOOK_AT = {"plane:0": "host:0/plane:0"}  # all frames of a plane are too many to capture
# Resent packets beside those of a stretch without a drain: what a machine short of processors
# adds by itself, and what was under way on the part when it was drained.
MOST_RESENT = 0.02


class DrainTest(labs.LabTest):
    PACKETS = 3_000  # of a stretch
    server = "127.0.0.1"  # host 0, as other hosts reach it

    def place(self):
        return ("--lab", "lab", "--dir", self.lab.folder)

    def drain(self, part, *flags):
        return self.must("drain", part, *self.place(), *flags)

    def undrain(self, part):
        return self.must("undrain", part, *self.place())

    def drained(self):
        listed = json.loads(self.must("drain", "--json", *self.place()))
        self.assertTrue(all(entry["hosts"] == listed["hosts"] for entry in listed["drained"]))
        return {entry["part"]: entry["by"] for entry in listed["drained"]}

    def states(self):
        """The files that hold what is drained, byte by byte."""
        return {str(path): path.read_bytes()
                for path in pathlib.Path(self.lab.folder).glob("lab/h/*/state/state")}

    def frames_on(self, part):
        """That cross the cables of a part while one looks: what they say, not what we think."""
        file = os.path.join(self.folder, "look.pcapng")
        self.lab.do("capture", LOOK_AT.get(part, part), file, "--seconds", str(LOOK_S))
        seen = frames.read_capture(pathlib.Path(file))
        return sum(not is_between_neighbours(frame) for frame, _ in seen)

    def start_traffic(self, sender=2, *flags):
        """Writes to host 0, every byte of them verified, until they are told to end."""
        port = programs.free_tcp_port()
        words = ("write_bw", "-s", "64K", "-D", "1000", "-p", str(port), "--json")
        server = self.lab.start_server(0, port, *words[:5])
        client = self.lab.start_tool(sender, "perf", *words, *flags, self.server)
        eventually(lambda: self.sent(client) > 2_000, lambda: f"nothing moves: {client.poll()}")
        return server, client

    def sent(self, client):
        device = self.lab.device_of(client)
        return device["totals"]["sent_packets"] if device else 0

    def totals_after(self, client, packets):
        """When that many more have been sent."""
        start = self.sent(client)
        eventually(lambda: self.sent(client) >= start + packets, "nothing moves any more")
        return self.lab.device_of(client)["totals"]

    def finish(self, server, client):
        """Ends the measurement; all that was moved until then must be right."""
        os.kill(self.lab.device_of(client)["pid"], signal.SIGINT)
        out, err = client.communicate(timeout=WAIT_S)
        self.assertEqual(client.returncode, 130, err)
        self.assertTrue(all(row["verified"] for row in json.loads(out)["results"]), out)
        programs.end(server)

    def check(self, part):
        server, client = self.start_traffic()
        self.assertGreater(self.frames_on(part), 0, "idle anyway")
        start = self.lab.device_of(client)["totals"]
        before = self.totals_after(client, self.PACKETS)
        self.assertIn("drained; nothing goes there any more", self.drain(part))
        self.assertEqual(self.drained(), {part: "command"})
        during = self.totals_after(client, self.PACKETS)
        self.assertEqual(self.frames_on(part), 0)
        self.undrain(part)
        self.assertEqual(self.drained(), {})
        after = self.totals_after(client, self.PACKETS)
        self.assertGreater(self.frames_on(part), 0, "it did not come back")
        usual = resent(start, before)
        self.assertLessEqual(resent(before, during), usual + MOST_RESENT)
        self.assertLessEqual(resent(during, after), usual + MOST_RESENT)
        self.assertEqual(self.lab.device_of(client)["failed_messages"], 0)
        programs.write_result(f"drain_{part.replace('/', '_').replace(':', '')}",
                              resent_before=usual, resent_while_draining=resent(before, during),
                              resent_afterwards=resent(during, after))
        self.finish(server, client)


def is_between_neighbours(frame):
    """Kernels at the ends of a cable ask each other (ICMPv6), also for seconds after its use."""
    return frame[12:14] == b"\x86\xdd" and frame[20] in (0, 58)


def resent(before, after):
    """The share of the packets in between."""
    sent = after["sent_packets"] - before["sent_packets"]
    return (after["resent_packets"] - before["resent_packets"]) / max(sent, 1)


class UnderLoad(DrainTest):
    def test_each_kind_of_part(self):
        self.up()
        for part in ("t1:3/plane:0", "t0:1/t1:0/plane:1", "host:0/plane:1", "plane:0"):
            with self.subTest(part):
                self.check(part)

    def test_queue_pairs_with_paths_of_their_own(self):
        self.up()
        # From host 2 (at T0 1) to host 0 (at T0 0) by T1 2 and 3 of plane 0.
        self.lab.do("exec", "2", self.program, "ctl", "format", "create", "1", "--mode", "srv6",
                    "--widths", "32,16,16,16,16,16,16")
        self.lab.do("exec", "2", self.program, "ctl", "ev", "create", "5", "--mode", "explicit",
                    "--format", "1", "--min-active", "1",
                    *(f"--ev=1:fc00:1:1001:{t1:x}:1000:100::" for t1 in (0x8002, 0x8003)))
        server, client = self.start_traffic(2, "--ev-profile", "5")
        self.drain("t1:3/plane:0")
        self.totals_after(client, self.PACKETS)
        # The fabric has other ways, this queue pair has not.
        before = self.states()
        line = self.refused(1, "drain", "t1:2/plane:0", *self.place())
        self.assertIn("1 queue pair of process", line)
        self.assertIn("of host 2", line)
        self.assertEqual(self.drained(), {"t1:3/plane:0": "command"})
        self.assertEqual(before.keys(), self.states().keys())
        self.totals_after(client, self.PACKETS)
        self.undrain("all")
        self.finish(server, client)

    def test_a_plane_that_is_drained_is_no_alarm(self):
        self.up()
        server, client = self.start_traffic()
        self.drain("plane:1")
        ends = [self.lab.device_of(process)["pid"] for process in (server, client)]
        time.sleep(1.5)  # after a second of silence it would be news

        def alarms():
            for pid in ends:
                device, = json.loads(self.must("stat", "--json", "-p", str(pid)))["devices"]
                self.assertEqual([plane["silent_queue_pairs"] for plane in device["planes"]],
                                 [0, 0])
                yield from (text for text in device["alarms"] if "plane" in text)

        self.assertEqual(list(alarms()), [])
        self.undrain("plane:1")
        self.totals_after(client, self.PACKETS)
        self.assertEqual([text for text in alarms() if "of its share" in text], [])
        os.kill(ends[1], signal.SIGINT)
        for process in (client, server):
            self.assertNotIn("no answers from", process.communicate(timeout=WAIT_S)[1])

    def test_programs_that_start_afterwards_stay_off_as_well(self):
        self.up()
        self.drain("t1:1/plane:1")
        server, client = self.start_traffic()
        self.assertEqual(self.frames_on("t1:1/plane:1"), 0)
        self.finish(server, client)

    def test_a_controller_that_starts_anew_changes_nothing(self):
        self.up()
        self.drain("t1:1/plane:1")
        file = pathlib.Path(self.folder, "controller.toml")
        file.write_text("[[cc_profile]]\nid = 2\n", encoding="utf-8")
        for _ in range(2):
            daemon = self.lab.start_tool(2, "ctld", str(file))
            self.assertIn("controls", daemon.stdout.readline())
            programs.end(daemon)
            self.assertEqual(self.drained(), {"t1:1/plane:1": "command"})
        server, client = self.start_traffic()
        self.assertEqual(self.frames_on("t1:1/plane:1"), 0)
        self.finish(server, client)


class Refusals(DrainTest):
    def test_the_last_way_between_two_hosts_stays(self):
        self.up()
        server, client = self.start_traffic()
        self.drain("plane:0")
        before = self.states()
        for part in ("plane:1", "t0:1/plane:1", "host:2/plane:1", "host:3"):
            line = self.refused(1, "drain", part, *self.place())
            self.assertIn("only way between hosts", line)
            self.assertIn("--force", line)
        self.assertEqual(self.states(), before)
        self.totals_after(client, 1_000)
        self.undrain("plane:0")
        self.finish(server, client)

    def test_a_port_that_is_disabled_counts_as_no_way(self):
        self.up()
        self.lab.do("exec", "1", self.program, "ctl", "port", "disable", "1")
        self.assertIn("only way between hosts", self.refused(1, "drain", "plane:1", *self.place()))
        self.lab.do("exec", "1", self.program, "ctl", "port", "enable", "1")
        self.drain("plane:1")

    def test_force_takes_the_last_way_and_undrain_gives_it_back(self):
        self.up()
        self.drain("host:3", "--force")
        self.assertEqual(self.drained(), {"host:3": "command"})
        # A pair that has no way any more is no reason to refuse another part.
        self.drain("t1:0/plane:0")
        self.undrain("all")
        self.assertEqual(self.drained(), {})
        self.finish(*self.start_traffic(3))

    def test_bad_input_is_one_line(self):
        self.assertIn("mrc lab up", self.refused(2, "drain", "t1:0/plane:0", *self.place()))
        self.assertIn("--lab", self.refused(2, "drain", "t1:0/plane:0"))
        self.assertIn("--host is from 0 to 15", self.refused(2, "drain", "t1:0", "--host", "16"))
        self.up()
        before = self.states()
        for part, word in (("nonsense", "names no device"), ("t1:9/plane:0", "t1:0 to t1:3"),
                           ("t1:0/plane:7", "plane:0 to plane:1"), ("t1:0", "names no plane"),
                           ("t1:*/plane:0", "one part"), ("t0:0/t0:1/plane:0", "no cable")):
            self.assertIn(word, self.refused(2, "drain", part, *self.place()))
        self.refused(2, "drain", "t1:0/plane:0", "t1:1/plane:0", *self.place())
        self.refused(2, "undrain", *self.place())
        self.assertIn("is not drained", self.refused(2, "undrain", "t1:0/plane:0", *self.place()))
        self.assertEqual(self.states(), before)

    def test_one_at_a_time(self):
        self.up()
        with open(pathlib.Path(self.lab.folder, "lab", "drain.lock"), "w",
                  encoding="ascii") as other:
            other.write("4711\n")
            other.flush()
            fcntl.flock(other, fcntl.LOCK_EX)
            for verb in ("drain", "undrain"):
                self.assertIn("process 4711",
                              self.refused(2, verb, "t1:0/plane:0", *self.place()))
        self.drain("t1:0/plane:0")

    def test_a_lab_that_chooses_the_paths_itself_is_refused(self):
        self.up("--t0", "2", "--t1", "2", "--pods", "2", "--t2", "2")
        line = self.refused(2, "drain", "t1:0/plane:0", *self.place())
        self.assertIn("a lab of three tiers, or of more than 64 paths per plane", line)

    def test_a_host_that_leaves_the_way_to_the_network_is_refused(self):
        self.up()
        fabric = ("--planes", "4", "--hosts", "4", "--t0", "2", "--t1", "4")
        line = self.refused(2, "drain", "t1:0/plane:0", *fabric, "--host", "0")
        self.assertIn("srv6_route", line)


class SeveralCables(DrainTest):
    def test_one_of_them_all_of_them_and_their_switch(self):
        self.up("--t0", "2", "--t1", "2", "--cables", "2")
        for part in ("t0:1/t1:0/cable:1/plane:0", "t0:0/t1:1/plane:1", "t1:1/plane:0",
                     "host:0/plane:1"):
            with self.subTest(part):
                self.check(part)


class WithoutALab(DrainTest):
    """Each host by itself, as a job launcher starts it."""

    def test_each_host_drains_for_itself(self):
        self.up()
        fabric = ("--planes", "2", "--hosts", "4", "--t0", "2", "--t1", "4")
        server, client = self.start_traffic()
        for verb, after in (("drain", {"t1:3/plane:0": "command"}), ("undrain", {})):
            for host in range(4):
                self.lab.do("exec", str(host), self.program, verb, "t1:3/plane:0", *fabric,
                            "--host", str(host))
            self.assertEqual(self.drained(), after)
            self.assertEqual(self.frames_on("t1:3/plane:0") == 0, verb == "drain")
        self.finish(server, client)


class Namespaces(DrainTest):
    server = "10.0.0.1"

    def test_the_kernels_switches_carry_nothing_there_either(self):
        up = self.lab.attempt("up", "--hosts", "4", "--planes", "2", "--netns", "--switch",
                              "kernel")
        if up.returncode != 0:
            self.skipTest(up.stderr.strip())
        self.check("t1:3/plane:0")


class Waiting(DrainTest):
    def test_a_process_that_does_not_follow_is_named_and_waited_for(self):
        self.up()
        server, client = self.start_traffic()
        pid = self.lab.device_of(client)["pid"]
        os.kill(pid, signal.SIGSTOP)
        try:
            done = self.tool("drain", "t1:3/plane:0", *self.place(), "--timeout", "5")
        finally:
            os.kill(pid, signal.SIGCONT)
        self.assertEqual(done.returncode, 4, done.stderr)
        self.assertGreaterEqual(done.stdout.count(f"waiting for process {pid} of host 2"), 2)
        self.assertIn(f"still waiting for process {pid} of host 2", done.stderr)
        self.drain("t1:3/plane:0")  # what was begun is finished
        self.assertEqual(self.frames_on("t1:3/plane:0"), 0)
        self.undrain("t1:3/plane:0")
        self.finish(server, client)


if __name__ == "__main__":
    programs.main()
