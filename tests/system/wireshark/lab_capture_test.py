#!/usr/bin/env python3
"""The dissector over a capture of a lab of today, with losses and trimmed packets in it.

Usage: lab_capture_test.py <mrc> <tools/wireshark>. captures/lab_forms.txt lists the forms of
packets that must be there, numbers left out; others may be. Exit status 1 when something is wrong,
77 when there is no tshark with Lua.
"""

import pathlib
import re
import signal
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "support"))

import labs  # noqa: E402  (found through the line above)
import programs  # noqa: E402
import wireshark_test  # noqa: E402

SENDERS = (1, 2, 3)
MAX_CAPTURES = 20
FIELDS = ["frame.time_relative", "frame.interface_id", "mrc", "mrc.srv6.plane", "mrc.srv6.path",
          "mrc.icrc.status", "mrc.trim", "mrc.bth.rtx", "mrc.expert.retransmission",
          "mrc.expert.trimmed", "mrc.expert.refused", "mrc.expert.icrc", "mrc.expert.truncated",
          "_ws.col.Info"]
FORMS = wireshark_test.CAPTURES / "lab_forms.txt"


def form_of(info):
    """The words of a packet's summary. Which holes a SACK reports is chance."""
    words = re.sub(r", and [\d, -]*\d", "", info)
    return re.sub(r"0x[0-9a-f]+|\d+", "#", words)


class LabCapture(wireshark_test.DissectorTest):
    def setUp(self):
        super().setUp()
        self.lab = labs.Lab(wireshark_test.mrc_program, str(self.tshark.home / "l"))
        self.addCleanup(self.lab.close)
        self.lab.do("up", "--hosts", "4", "--planes", "1", "--mbps", "100")
        for host in SENDERS:
            self.lab.do("exec", str(host), self.lab.program, "ctl", "cc", "create", "1",
                        "--algorithm", "none", "--trimming", "on")

    def incast(self):
        """Three hosts write to one, and nobody holds them back."""
        transfers = []
        for host in SENDERS:
            port = programs.free_tcp_port()
            transfers.append((host, port, self.lab.start_server(0, port, "write_imm")))
        clients = [self.lab.start_tool(host, "perf", "write_imm", "-p", str(port), "-s", "32K",
                                       "-n", "8", "--cc-profile", "1", "127.0.0.1")
                   for host, port, _ in transfers]
        for program in [*clients, *(server for _, _, server in transfers)]:
            programs.finish(program)

    def capture(self, number):
        file = self.tshark.home / f"lab{number}.pcapng"
        capture = programs.start(self.lab.words("capture", "host:0/plane:0", str(file)))
        self.addCleanup(programs.end, capture)
        programs.eventually(file.exists, "no file")
        self.incast()
        capture.send_signal(signal.SIGINT)
        out = programs.finish(capture)
        rows = self.tshark.fields(file, FIELDS)
        self.assertEqual(len(rows), int(out.split()[0].replace(",", "")))
        return rows

    def check(self, rows):
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

    def test_every_packet_is_understood(self):
        """Which packets are lost or trimmed is chance: captures until all forms were there."""
        self.lab.do("loss", "host:0/plane:0", "2%")
        missing = set(FORMS.read_text(encoding="utf-8").splitlines())
        for number in range(MAX_CAPTURES):
            rows = self.capture(number)
            self.check(rows)
            missing -= {form_of(row["_ws.col.Info"]) for row in rows}
            if not missing:
                break
        self.assertEqual(missing, set())


if __name__ == "__main__":
    wireshark_test.main()
