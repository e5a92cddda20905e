#!/usr/bin/env python3
"""Labs as people use them: real processes in the hosts, cables cut, parts killed.

Usage: lab_test.py <mrc> [unittest arguments]
"""

import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "support"))

import labs  # noqa: E402  (found through the line above)
import programs  # noqa: E402
from programs import WAIT_S, eventually  # noqa: E402


def is_alive(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii") as file:
            return file.read().rsplit(")", 1)[1].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):  # gone before, or between two calls
        return False


class Lab(labs.LabTest):
    """Words are those behind `mrc lab`."""

    server = "127.0.0.1"  # host 0, as other hosts reach it

    def command(self, *words):
        return self.lab.words(*words)

    def perf(self, *flags):
        """A server in host 0 and a client in host 2, across both tiers."""
        port = programs.free_tcp_port()
        server = self.lab.start_server(0, port, "write_bw", *flags)
        return server, self.lab.start_tool(2, "perf", "write_bw", "-p", str(port), "--json",
                                           *flags, self.server)

    def finish(self, server, client):
        result = json.loads(programs.finish(client))
        programs.finish(server)
        return result


class Life(Lab):
    def test_nothing_is_left_after_down(self):
        self.up()
        self.assertIn("already up", self.refused(1, "up"))
        self.must("down")
        self.assertFalse(os.path.exists(self.lab.folder))
        self.assertIn("there is no lab", self.must("down"))

    def test_several_labs_side_by_side(self):
        for name in ("a", "b"):
            self.addCleanup(self.tool, "down", "--name", name)
            self.up("--name", name)
        listed = self.must("status", "--all")
        self.assertEqual([line.split()[:2] for line in listed.splitlines()],
                         [["a", "up,"], ["b", "up,"]])
        self.must("down", "--name", "a")
        self.must("status", "--name", "b")
        self.must("down", "--name", "b")

    def test_a_killed_lab_is_noticed_and_cleaned_up(self):
        for way_out in ("down", "up"):
            self.up()
            os.kill(self.lab.status()["process"], signal.SIGKILL)
            eventually(lambda: self.tool("status").returncode == 1, "the lab lives")
            self.assertIn("dead", self.refused(1, "status"))
            self.assertIn("dead", self.refused(1, "cut", "host:0/plane:0"))
            if way_out == "down":
                self.must("down")
                self.assertFalse(os.path.exists(self.lab.folder))
            else:
                self.up()
                self.assertEqual(self.lab.status()["faults"], [])

    def test_a_lab_that_does_not_answer_is_ended_all_the_same(self):
        self.up()
        pid = self.lab.status()["process"]
        os.kill(pid, signal.SIGSTOP)
        self.must("down")
        self.assertFalse(is_alive(pid))
        self.assertFalse(os.path.exists(self.lab.folder))

    def test_programs_end_with_their_lab_and_with_their_exec(self):
        self.up()
        for killed in ("exec", "lab"):
            process = self.start("exec", "0", "sh", "-c", "echo $$; exec sleep 1000")
            pid = int(process.stdout.readline())
            eventually(lambda: len(self.lab.status()["programs"]) == 1, "the program is not listed")
            if killed == "exec":
                process.kill()
            else:
                os.kill(self.lab.status()["process"], signal.SIGKILL)
            eventually(lambda pid=pid: not is_alive(pid), "the program lives on")
            process.wait(timeout=WAIT_S)
            if killed == "exec":
                eventually(lambda: not self.lab.status()["programs"], "the program is still listed")

    def test_exec_gives_the_programs_result_and_its_place(self):
        self.up()
        self.assertEqual(self.tool("exec", "1", "sh", "-c", "exit 7").returncode, 7)
        self.assertEqual(self.tool("exec", "1", "sh", "-c", "kill -9 $$").returncode, 137)
        self.assertEqual(self.tool("exec", "1", "/nonexistent").returncode, 127)
        out = self.must("exec", "3", "sh", "-c", "echo $MRC_LAB_HOST $MRC_LAB_GID; cat $MRC_CONFIG")
        self.assertTrue(out.startswith("3 fd00:1::4\n"), out)
        self.assertIn('backend = "wire"', out)
        # Those who start programs may have a setting that would part a host from the others.
        foreign = self.tool("exec", "1", "printenv", "MRC_PORT", env=os.environ | {"MRC_PORT": "9"})
        self.assertEqual((foreign.returncode, foreign.stdout), (1, ""))


class BadInput(Lab):
    def test_one_line_and_the_way_out(self):
        self.assertIn("mrc lab up", self.refused(1, "status"))
        self.assertIn("mrc lab up", self.refused(1, "exec", "0", "true"))
        self.refused(2, "up", "--name", "no/slash")
        self.refused(2, "up", "--mbps", "0")
        self.refused(2, "up", "--fail", "t0:9/plane:0 down @0")
        self.refused(2, "up", "--planes", "40")
        self.up()
        self.assertIn("t1:9", self.refused(2, "cut", "t0:0/t1:9/plane:0"))
        self.assertIn("plane", self.refused(2, "cut", "t0:0/t1:1"))
        self.assertIn("no switch", self.refused(2, "kill", "t0:0/t1:1/plane:0"))
        self.refused(2, "loss", "t0:0/t1:1/plane:0", "2")
        self.refused(2, "flap", "t0:0/t1:1/plane:0", "1ms")
        self.assertIn("hosts 0 to 3", self.refused(2, "exec", "4", "true"))
        self.assertIn("too often", self.refused(2, "flap", "t0:0/t1:1/plane:0", "1ns/1ns"))
        self.assertIn("/nonexistent/file: No such file", self.refused(
            1, "capture", "t0:0/t1:1/plane:0", "/nonexistent/file", "--seconds", "10ms"))
        self.refused(2, "up", "--dir", "/tmp/" + "x" * 120)
        self.assertEqual(self.lab.status()["faults"], [])


class Traffic(Lab):
    def test_two_processes_while_cables_are_cut_and_a_switch_reboots(self):
        self.up()
        server, client = self.perf("-s", "256K", "-n", "150")
        eventually(lambda: self.lab.status()["planes"][0]["frames"] > 500, "nothing moves")
        self.must("cut", "t0:0/t1:1/plane:0")
        time.sleep(0.2)
        self.must("reboot", "t1:2/plane:1", "--for", "200ms")
        time.sleep(0.2)
        self.must("cut", "host:2/plane:1")
        time.sleep(0.2)
        self.must("heal", "all")
        self.finish(server, client)
        planes = self.lab.status()["planes"]
        self.assertTrue(all(plane["frames"] > 100 for plane in planes), planes)
        self.assertEqual(sum(plane["dropped"]["no_route"] for plane in planes), 0)
        self.assertEqual(sum(plane["dropped"]["malformed"] for plane in planes), 0)

    def test_no_peak_is_above_what_the_wire_carries(self):
        """Messages complete in bunches, of which a tenth of a second may see two."""
        self.up("--mbps", "100")
        result = self.finish(*self.perf("-D", "3", "-s", "1M"))["results"][0]
        self.assertGreaterEqual(result["bandwidth_peak_gbps"], result["bandwidth_gbps"])
        self.assertLess(result["bandwidth_peak_gbps"], 0.2 * 1.1)

    def test_sealed_programs_through_switches_that_trim(self):
        # Three hosts send to one over slow links and nobody holds them back: switches have to cut.
        self.up("--mbps", "100")
        for host in ("1", "2", "3"):
            self.must("exec", host, self.program, "ctl", "cc", "create", "1", "--algorithm", "none",
                      "--trimming", "on")
        key = os.path.join(self.folder, "key")
        self.assertEqual(programs.run([self.program, "key", "new", key]).returncode, 0)
        self.lab.settings = ["MRC_SECURITY=sealed", f"MRC_KEY_FILE={key}"]
        flags = ["write_bw", "-s", "256K", "-n", "20", "--json"]
        ports = [programs.free_tcp_port() for _ in range(3)]
        servers = [self.lab.start_server(0, port, *flags) for port in ports]
        clients = [self.lab.start_tool(host, "perf", *flags, "--cc-profile", "1", "-p", str(port),
                                       self.server)
                   for host, port in enumerate(ports, 1)]
        for client, server in zip(clients, servers):
            result = self.finish(server, client)
            self.assertTrue(all(row["verified"] for row in result["results"]), result)
        trimmed = sum(plane["trimmed"] for plane in self.lab.status()["planes"])
        self.assertGreater(trimmed, 0)

    def test_a_capture_opens_in_tshark(self):
        self.up()
        file = os.path.join(self.folder, "c.pcapng")
        capture = self.start("capture", "t0:0/t1:*/plane:*", file)
        eventually(lambda: os.path.exists(file), "no file")
        self.finish(*self.perf("-s", "64K", "-n", "4"))
        capture.send_signal(signal.SIGINT)
        frames = int(programs.finish(capture).split()[0].replace(",", ""))
        self.assertGreater(frames, 50)
        if shutil.which("tshark") is None:
            self.skipTest("the rest needs tshark")
        shown = subprocess.run(
            ["tshark", "-r", file, "-T", "fields", "-E", "occurrence=f", "-e", "ipv6.dst", "-e",
             "ipv6.nxt"], capture_output=True, text=True, timeout=WAIT_S, check=True)
        lines = shown.stdout.split("\n")[:-1]
        self.assertEqual(len(lines), frames)
        for line in lines:
            carrier, next_header = line.split("\t")[:2]
            self.assertRegex(carrier, r"^fc00:[12]:(800[0-3]:100[01]|100[01]):10[01]::$")
            self.assertEqual(next_header, "41")


if __name__ == "__main__":
    programs.main()
