#!/usr/bin/env python3
"""The dissector over a capture of a lab of today, with losses and trimmed packets in it.

Usage: lab_capture_test.py <mrc> <tools/wireshark>. captures/lab_forms.txt lists the forms of
packets that must be there, numbers left out; others may be. Exit status 1 when something is wrong,
77 when there is no tshark with Lua.
"""

import re
import signal
import socket
import subprocess
import time

import wireshark_test

WAIT_S = 240
SENDERS = (1, 2, 3)
FIELDS = ["frame.time_relative", "frame.interface_id", "mrc", "mrc.srv6.plane", "mrc.srv6.path",
          "mrc.icrc.status", "mrc.trim", "mrc.bth.rtx", "mrc.expert.retransmission",
          "mrc.expert.trimmed", "mrc.expert.refused", "mrc.expert.icrc", "mrc.expert.truncated",
          "_ws.col.Info"]
FORMS = wireshark_test.CAPTURES / "lab_forms.txt"


def free_tcp_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return str(probe.getsockname()[1])


def is_listening(port):
    wanted = f":{int(port):04X} "
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        with open(table, encoding="ascii") as file:
            if any(wanted in line and " 0A " in line for line in file):
                return True
    return False


def form_of(info):
    """The words of a packet's summary. Which holes a SACK reports is chance."""
    words = re.sub(r", and [\d, -]*\d", "", info)
    return re.sub(r"0x[0-9a-f]+|\d+", "#", words)


class LabCapture(wireshark_test.DissectorTest):
    def setUp(self):
        super().setUp()
        self.base = str(self.tshark.home / "l")
        self.mrc = wireshark_test.mrc_program
        self.lab("up", "--hosts", "4", "--planes", "1", "--mbps", "100")
        self.addCleanup(self.lab, "down")

    def words(self, verb, *rest):
        return [self.mrc, "lab", verb, "--dir", self.base, *rest]

    def lab(self, verb, *rest):
        done = subprocess.run(self.words(verb, *rest), capture_output=True, text=True,
                              timeout=WAIT_S, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)

    def start(self, *words):
        process = subprocess.Popen(self.words(*words), text=True, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE)
        self.addCleanup(self.end, process)
        return process

    @staticmethod
    def end(process):
        process.kill()
        process.communicate(timeout=WAIT_S)

    def eventually(self, done, what):
        deadline = time.monotonic() + WAIT_S
        while not done():
            self.assertLess(time.monotonic(), deadline, what)
            time.sleep(0.05)

    def incast(self):
        """Three hosts write to one, and nobody holds them back."""
        ports = {host: free_tcp_port() for host in SENDERS}
        programs = []
        for port in ports.values():
            programs.append(self.start("exec", "0", self.mrc, "perf", "write_imm", "-p", port))
        for host, port in ports.items():
            self.lab("exec", str(host), self.mrc, "ctl", "cc", "create", "1", "--algorithm", "none")
            self.eventually(lambda port=port: is_listening(port), "no server")
        for host, port in ports.items():
            programs.append(self.start("exec", str(host), self.mrc, "perf", "write_imm", "-p", port,
                                       "-s", "32K", "-n", "8", "--cc-profile", "1", "127.0.0.1"))
        for program in programs:
            _, err = program.communicate(timeout=WAIT_S)
            self.assertEqual(program.returncode, 0, err)

    def capture(self):
        file = self.tshark.home / "lab.pcapng"
        capture = self.start("capture", "host:0/plane:0", str(file))
        self.eventually(file.exists, "no file")
        self.incast()
        capture.send_signal(signal.SIGINT)
        out, err = capture.communicate(timeout=WAIT_S)
        self.assertEqual(capture.returncode, 0, err)
        rows = self.tshark.fields(file, FIELDS)
        self.assertEqual(len(rows), int(out.split()[0].replace(",", "")))
        return rows

    def test_every_packet_is_understood(self):
        self.lab("loss", "host:0/plane:0", "2%")
        rows = self.capture()
        for interface in "01":
            times = [float(row["frame.time_relative"]) for row in rows
                     if row["frame.interface_id"] == interface]
            self.assertGreater(len(times), 50)
            self.assertTrue(all(a <= b for a, b in zip(times, times[1:])), "times go back")
        for row in rows:
            self.assertNotEqual(row["mrc"], "", row)
            self.assertEqual(row["mrc.srv6.plane"], "1", row)
            self.assertRegex(row["mrc.srv6.path"], r"host \w+$", row)
            for trouble in ("refused", "icrc", "truncated"):
                self.assertEqual(row[f"mrc.expert.{trouble}"], "", row)
            trimmed = row["mrc.trim"] != ""
            self.assertEqual(row["mrc.expert.trimmed"] != "", trimmed, row)
            self.assertEqual(row["mrc.icrc.status"], "" if trimmed else "1", row)
            again = row["mrc.bth.rtx"] == "1" or row["mrc.bth.rtx"] == "True"
            self.assertEqual(row["mrc.expert.retransmission"] != "", again, row)
        forms = {form_of(row["_ws.col.Info"]) for row in rows}
        needed = set(FORMS.read_text(encoding="utf-8").splitlines())
        self.assertEqual(needed - forms, set())


if __name__ == "__main__":
    wireshark_test.main()
