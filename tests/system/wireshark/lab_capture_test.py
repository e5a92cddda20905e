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

    def seal(self):
        key = str(self.tshark.home / "key")
        self.assertEqual(programs.run([self.lab.program, "key", "new", key]).returncode, 0)
        self.lab.settings = ["MRC_SECURITY=sealed", f"MRC_KEY_FILE={key}"]
        return key

    def open(self, key, number):
        """What is in a sealed capture: the number of sealed packets, of opened ones, and rows."""
        sealed = self.tshark.home / f"lab{number}.pcapng"
        opened = self.tshark.home / f"opened{number}.pcapng"
        said = programs.run([self.lab.program, "key", "open", key, str(sealed), str(opened)])
        self.assertEqual(said.returncode, 0, said.stderr)
        counts = [int(n) for n in re.findall(r"\d+", said.stdout)]
        return counts[1], counts[2], self.tshark.fields(opened, FIELDS)

    def test_a_sealed_capture_shows_what_is_clear_and_opens_with_the_key(self):
        key = self.seal()
        trimmed = False
        for number in range(MAX_CAPTURES):
            sealed = self.capture(number)
            for row in sealed:
                self.assertRegex(row["_ws.col.Info"], r"^Sealed \w.* QP 0x\w+.*, key 0, packet \d+")
                for trouble in ("refused", "icrc", "truncated"):
                    self.assertEqual(row[f"mrc.expert.{trouble}"], "", row)
            count, opened, rows = self.open(key, number)
            self.assertEqual((count, opened), (len(sealed), len(sealed)))
            self.check(rows)
            self.assertTrue(any("bytes" in row["_ws.col.Info"] for row in rows), rows[0])
            trimmed = trimmed or any(row["mrc.trim"] for row in rows)
            if trimmed:
                break
        self.assertTrue(trimmed, "no packet was trimmed")

    def test_another_key_opens_nothing(self):
        self.seal()
        self.capture(0)
        other = str(self.tshark.home / "other")
        programs.run([self.lab.program, "key", "new", other])
        said = programs.run([self.lab.program, "key", "open", other,
                             str(self.tshark.home / "lab0.pcapng"),
                             str(self.tshark.home / "out.pcapng")])
        self.assertEqual(said.returncode, 1)
        self.assertRegex(said.stderr, "^mrc key open: none of [0-9]+ sealed packets in .* opens")

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
