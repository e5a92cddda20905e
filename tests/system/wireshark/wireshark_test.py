#!/usr/bin/env python3
"""Runs the Wireshark dissector in tools/wireshark over captures, real ones and made-up ones.

Usage: wireshark_test.py <mrc> <tools/wireshark> [--update]. captures/ holds captures of `mrc sim
--pcap` and `mrc lab capture` (make_captures.sh) and what tshark showed of them; --update writes the
latter anew. Exit status 1 when something is wrong, 77 when there is no tshark with Lua.
"""

import json
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "support"))

import frames  # noqa: E402
import programs  # noqa: E402  (found through the line above)

HERE = pathlib.Path(__file__).resolve().parent
CAPTURES = HERE / "captures"
MRC_CAPTURES = ["incast", "fault", "structured", "lab"]
FUZZED_FRAMES = 4000

# Set by main().
mrc_program = None
dissector_folder = None
update = False


class Tshark:
    """tshark with our dissector and with nobody's settings, in a home of its own."""

    def __init__(self, home):
        self.home = pathlib.Path(home)
        self.environment = {**os.environ, "HOME": str(self.home), "LC_ALL": "C.UTF-8", "TZ": "UTC"}
        for name in ("XDG_CONFIG_HOME", "WIRESHARK_CONFIG_DIR", "WIRESHARK_PLUGIN_DIR"):
            self.environment.pop(name, None)

    def start(self, capture, *arguments):
        script = f"lua_script:{dissector_folder / 'mrc.lua'}"
        return subprocess.run(
            ["tshark", "-n", "-X", script, "-r", str(capture), *arguments],
            env=self.environment, capture_output=True, text=True, errors="replace", check=False,
        )

    def run(self, capture, *arguments):
        done = self.start(capture, *arguments)
        # Other dissectors have bugs of their own.
        complaints = [
            line for line in done.stderr.splitlines()
            if line and not re.search("could be dangerous|Dissector bug, protocol (?!MRC)", line)
        ]
        if done.returncode != 0 or complaints or "Lua Error" in done.stdout:
            error = done.stdout[max(done.stdout.find("Lua Error"), 0) :][:400]
            raise AssertionError(f"tshark: {done.returncode} {complaints} {error}")
        return done.stdout

    def fields(self, capture, names, *arguments):
        """One dictionary for each frame; several values of a field are joined by commas."""
        flags = [flag for name in names for flag in ("-e", name)]
        out = self.run(capture, "-T", "fields", *flags, *arguments)
        return [dict(zip(names, line.split("\t"))) for line in out.splitlines()]

    def show(self, frame_list, names, *arguments):
        capture = self.home / "made.pcap"
        frames.write_capture(capture, frame_list)
        return self.fields(capture, names, *arguments)


class DissectorTest(programs.CleanTest):
    def setUp(self):
        super().setUp()
        self.tshark = Tshark(self.folder)
        self.maxDiff = None

    def show_one(self, frame, *names, arguments=()):
        rows = self.tshark.show([frame], names, *arguments)
        self.assertEqual(len(rows), 1)
        values = [rows[0].get(name, "") for name in names]
        return values[0] if len(values) == 1 else values

    def info(self, frame, *arguments):
        return self.show_one(frame, "_ws.col.Info", arguments=arguments)

    def expert(self, frame):
        return self.show_one(frame, "_ws.expert.message")

    def assert_golden(self, name, text):
        path = CAPTURES / name
        if update:
            path.write_text(text)
        self.assertEqual(text, path.read_text(), f"{name} differs; see --update")


class Captures(DissectorTest):
    SUMMARY = ["frame.number", "_ws.col.Protocol", "mrc.ev", "mrc.icrc.status", "mrc.first_frame",
               "_ws.col.Info", "_ws.expert.message"]

    def summary(self, name, *arguments):
        quiet = ["-o", "udp.ignore_ipv6_zero_checksum:TRUE"]
        rows = self.tshark.fields(CAPTURES / f"{name}.pcapng", self.SUMMARY, *quiet, *arguments)
        return "".join("\t".join(row.values()).rstrip() + "\n" for row in rows)

    def test_every_frame_is_summed_up_as_recorded(self):
        for name in MRC_CAPTURES + ["rocev2"]:
            with self.subTest(name):
                self.assert_golden(f"{name}.txt", self.summary(name))

    def test_two_passes_say_the_same_as_one(self):
        for name in MRC_CAPTURES:
            with self.subTest(name):
                self.assertEqual(self.summary(name), self.summary(name, "-2"))

    def test_the_first_packet_of_each_kind_has_all_its_fields(self):
        kinds = {}
        for name in MRC_CAPTURES:
            out = self.tshark.run(CAPTURES / f"{name}.pcapng", "-T", "json", "-J", "mrc")
            for packet in json.loads(out):
                layer = packet["_source"]["layers"]["mrc"]
                kinds.setdefault(layer["mrc.bth"]["mrc.bth.opcode"], layer)
        self.assert_golden("kinds.json", json.dumps(kinds, indent=1, sort_keys=True) + "\n")

    def test_rocev2_is_left_to_its_own_dissector(self):
        rows = self.tshark.fields(CAPTURES / "rocev2.pcapng", ["mrc", "infiniband.bth.opcode"])
        self.assertTrue(rows)
        for row in rows:
            self.assertEqual(row["mrc"], "")
            self.assertNotEqual(row["infiniband.bth.opcode"], "")

    def test_a_run_of_today_has_no_packet_that_is_wrong(self):
        for forwarding in ("srv6", "structured", "ecmp"):
            with self.subTest(forwarding):
                capture = self.tshark.home / f"{forwarding}.pcapng"
                subprocess.run(
                    [mrc_program, "sim", "--planes", "2", "--hosts", "4", "--t0", "2", "--t1", "2",
                     "--workload", "permutation", "--bytes", "6001B", "--mtu", "1024", "--verify",
                     "--forwarding", forwarding, "--pcap", str(capture), "--pcap-snap", "0",
                     "--pcap-link", "host:0>t0:0/plane:0", "--pcap-link", "t0:0>host:0/plane:0"],
                    check=True, stdout=subprocess.DEVNULL,
                )
                rows = self.tshark.fields(capture, ["mrc.icrc.status"])
                self.assertGreater(len(rows), 5)
                self.assertEqual({row["mrc.icrc.status"] for row in rows}, {"1"})
                wrong = self.tshark.fields(
                    capture, ["frame.number"], "-Y", "mrc.expert.refused || mrc.expert.truncated")
                self.assertEqual(wrong, [])


class Packets(DissectorTest):
    def test_ipv4_carries_the_low_half_of_the_entropy(self):
        whole = frames.frame(frames.write_only(), version=4)
        self.assertEqual(self.show_one(whole, "mrc.ev", "mrc.icrc.status"), ["0x0000c007", "1"])

    def test_srv6_shows_plane_and_path_with_and_without_routing_header(self):
        for segment in (None, "fc00:3:1002:105::"):
            whole = frames.frame(frames.write_only(), carrier=frames.CARRIER, segment=segment)
            with self.subTest(segment):
                self.assertEqual(
                    self.show_one(whole, "mrc.srv6.plane", "mrc.srv6.path", "mrc.icrc.status"),
                    ["3", "T0 1000 > T1 8001 > T0 1002 > host 0105", "1"])

    def test_payload_padding_and_immediate_are_told_apart(self):
        whole = frames.frame(frames.write_only(b"12345", immediate=0xABCD))
        self.assertEqual(
            self.show_one(whole, "mrc.payload_length", "mrc.payload", "mrc.padding",
                          "mrc.immdt.value"),
            ["5", "3132333435", "000000", "0x0000abcd"])

    def test_sack_bitmap_reads_as_ranges_across_the_wrap(self):
        whole = frames.frame(frames.sack(0xFFFFFE, 2, 1 << 63 | 0b10111, trigger=-1, mark=1))
        self.assertEqual(
            self.show_one(whole, "mrc.sack.ranges", "mrc.sack.trigger_psn"),
            ["0-2, 4, 63", str(0xFFFFFD)])
        self.assertIn("The receiver says: skip the path once", self.expert(whole))

    def test_a_nak_is_named(self):
        known, unknown = frames.frame(frames.ack(0x62)), frames.frame(frames.ack(0x70))
        self.assertEqual(self.info(known), "NAK QP 0x000103 PSN 100: remote access error")
        self.assertIn("NAK: remote access error", self.expert(known))
        self.assertIn("NAK: syndrome 0x70", self.expert(unknown))

    def test_endpoint_requests_list_ports(self):
        whole = frames.frame(frames.endpoint_request(0x4321, 0, 0b1101))
        self.assertEqual(
            self.info(whole), "Endpoint request 17185: port status update, usable ports 1,3,4")

    def test_a_wrong_icrc_is_reported_unless_switched_off(self):
        wrong = frames.damaged(frames.frame(frames.write_only()))
        self.assertEqual(self.show_one(wrong, "mrc.icrc.status"), "0")
        self.assertIn("Wrong ICRC", self.expert(wrong))
        self.assertIn("[ICRC wrong]", self.info(wrong))
        off = ("-o", "mrc.check_icrc:FALSE")
        self.assertEqual(self.show_one(wrong, "mrc.icrc.status", arguments=off), "2")

    def test_a_check_of_the_headers_alone_is_told_apart(self):
        headers = 12 + 4 + 4 + 16
        long = frames.frame(frames.write_only(bytes(1000)), covered=headers)
        self.assertEqual(self.show_one(long, "mrc.icrc.status"), "3")
        self.assertNotIn("Wrong ICRC", self.expert(long))
        self.assertEqual(self.show_one(frames.damaged(long, -5), "mrc.icrc.status"), "3")
        self.assertEqual(self.show_one(frames.damaged(long, -1010), "mrc.icrc.status"), "0")
        short = frames.frame(frames.write_only(bytes(256)), covered=headers)
        self.assertEqual(self.show_one(short, "mrc.icrc.status"), "0")

    def test_trimmed_packets_are_known_by_the_outer_code_point(self):
        cut = frames.write_only()[:20]
        for carrier, outer, trim in ((None, None, "1"), (frames.CARRIER, 16 << 2, "2")):
            tos = 12 << 2 if carrier is None else 4 << 2
            whole = frames.frame(cut, tos=tos, outer_tos=outer, carrier=carrier, with_icrc=False)
            with self.subTest(trim):
                self.assertEqual(
                    self.show_one(whole, "mrc.trim", "mrc.expert.refused", "mrc.psn"),
                    [trim, "", "100"])
        other = ("-o", "mrc.dscp_trimmed:20")
        whole = frames.frame(cut, tos=20 << 2, with_icrc=False)
        self.assertEqual(self.show_one(whole, "mrc.trim", arguments=other), "1")

    def test_congestion_marks_of_either_header_count(self):
        for tos, outer in ((0x13, 0x10), (0x12, 0x13)):
            whole = frames.frame(frames.write_only(), tos=tos, outer_tos=outer,
                                 carrier=frames.CARRIER)
            self.assertEqual(self.show_one(whole, "mrc.ce"), "1")
        self.assertEqual(self.show_one(frames.frame(frames.write_only()), "mrc.ce"), "0")

    def test_what_endpoints_refuse_has_its_reason(self):
        whole = frames.write_only()
        cases = {
            "bad_transport_version": frames.write_only(version=1),
            "unknown_opcode": b"\xcc" + whole[1:],
            "truncated": whole[:24],
            "bad_header_field": frames.endpoint_request(1, 0, 1, qp=7),
            "bad_payload_length": whole + bytes(4),
        }
        for reason, transport in cases.items():
            with self.subTest(reason):
                self.assertIn(f"drop this packet: {reason}", self.expert(frames.frame(transport)))


class Sequences(DissectorTest):
    NAMES = ["mrc.first_frame", "mrc.expert.duplicate", "_ws.col.Info"]

    def show(self, *frame_list):
        return self.tshark.show(frame_list, self.NAMES)

    def test_a_psn_that_comes_twice_is_a_duplicate(self):
        rows = self.show(*[frames.frame(frames.write_only(psn=psn)) for psn in (7, 8, 7)])
        self.assertEqual([row["mrc.first_frame"] for row in rows], ["", "", "1"])
        self.assertIn("[duplicate]", rows[2]["_ws.col.Info"])

    def test_retransmissions_and_repairs_are_no_duplicates(self):
        trimmed = frames.frame(frames.write_only(psn=8)[:20], tos=12 << 2, with_icrc=False)
        rows = self.show(
            frames.frame(frames.write_only(psn=7)),
            frames.frame(frames.write_only(psn=7, rtx=True)),
            trimmed, frames.frame(frames.write_only(psn=8)))
        self.assertEqual([row["mrc.first_frame"] for row in rows], ["", "1", "", "3"])
        self.assertEqual([row["mrc.expert.duplicate"] for row in rows], [""] * 4)

    def test_other_queue_pairs_wraps_and_new_connections_are_no_duplicates(self):
        rows = self.show(*[
            frames.frame(frames.write_only(psn=psn, qp=qp))
            for qp, psn in ((3, 0xFFFFFF), (4, 0xFFFFFF), (3, 0), (3, 0x7FFFF0), (3, 0))
        ])
        self.assertEqual([row["mrc.first_frame"] for row in rows], [""] * 5)

    def test_a_packet_quoted_by_an_error_message_does_not_count(self):
        whole = frames.frame(frames.write_only(), version=4)
        rows = self.show(whole, frames.icmp_error(whole))
        self.assertEqual([row["mrc.first_frame"] for row in rows], ["", ""])


class Trains(DissectorTest):
    NAMES = ["mrc.psn", "mrc.icrc.status", "mrc.payload_length", "mrc.expert.refused"]

    def test_packets_that_the_kernel_has_yet_to_cut_are_told_apart(self):
        writes = [frames.write_only(b"\xff" * 400, psn=psn) for psn in (7, 8)]
        writes.append(frames.write_only(b"last", psn=9))
        for version, port in ((4, 4791), (6, 4791), (4, 9999)):
            with self.subTest(version=version, port=port):
                whole = frames.train(writes, version=version, port=port)
                self.assertEqual(
                    self.show_one(whole, *self.NAMES), ["7,8,9", "1,1,1", "400,400,4", ""])

    def test_each_packet_of_a_train_counts(self):
        capture = self.tshark.home / "train.pcap"
        whole = frames.train([frames.write_only(psn=7), frames.write_only(psn=7)])
        frames.write_capture(capture, [whole])
        out = self.tshark.run(capture, "-q", "-z", "mrc,ev")
        self.assertRegex(out, r"10\.0\.0\.1 +0x0000c007 +2 +16 ")

    def test_a_damaged_packet_of_a_train_is_found(self):
        whole = frames.train([frames.write_only(psn=psn) for psn in (7, 8, 9)])
        size = len(frames.write_only()) + 4
        self.assertEqual(
            self.show_one(frames.damaged(whole, -size - 1), "mrc.icrc.status"), "1,0,1")


class Recognition(DissectorTest):
    def is_mrc(self, frame, *arguments):
        return self.show_one(frame, "mrc", arguments=arguments) != ""

    def test_ports_of_all_processes_are_known(self):
        for port in (4791, 4795, 4991, 5000, 5046):
            whole = frames.frame(frames.write_only(qp=(port - 4791) << 16 | 3), port=port)
            with self.subTest(port):
                self.assertEqual(self.show_one(whole, "mrc.process"), str(port - 4791))

    def test_damaged_packets_are_shown_on_our_ports_only(self):
        transport = frames.write_only(version=1)
        self.assertTrue(self.is_mrc(frames.frame(transport)))
        self.assertFalse(self.is_mrc(frames.frame(transport, port=5000)))
        self.assertFalse(self.is_mrc(frames.frame(transport, port=9999)))

    def test_other_protocols_keep_their_ports(self):
        discovery = frames.frame(bytes.fromhex("02010000"), port=5000, with_icrc=False)
        self.assertIn(":tapa", self.show_one(discovery, "frame.protocols"))

    def test_any_port_is_recognised_when_the_icrc_vouches_for_the_packet(self):
        whole = frames.frame(frames.write_only(), port=9999)
        self.assertTrue(self.is_mrc(whole))
        self.assertFalse(self.is_mrc(frames.damaged(whole)))

    def test_ports_are_a_preference_and_others_come_back(self):
        moved = ("-o", "mrc.ports:17000-17001")
        wrong = frames.write_only(version=1)
        self.assertTrue(self.is_mrc(frames.frame(wrong, port=17001), *moved))
        self.assertIn(":infiniband",
                      self.show_one(frames.frame(wrong), "frame.protocols", arguments=moved))

    def test_decode_as_takes_any_port(self):
        wrong = frames.frame(frames.write_only(version=1), port=9999)
        self.assertTrue(self.is_mrc(wrong, "-d", "udp.port==9999,mrc"))

    def test_an_entropy_that_is_a_known_port_needs_the_profile(self):
        whole = frames.frame(frames.write_only(), entropy=0x00010035)
        self.assertFalse(self.is_mrc(whole))
        self.install_profile()
        self.assertTrue(self.is_mrc(whole, "-C", "MRC"))

    def test_the_profile_has_columns_and_colours(self):
        self.install_profile()
        capture = CAPTURES / "incast.pcapng"
        text = self.tshark.run(capture, "-C", "MRC", "-c", "1")
        self.assertIn("0x00010001 1 0x000003 7920 8334 Write first", text)
        rows = self.tshark.fields(
            capture, ["frame.coloring_rule.name"], "-C", "MRC", "--color")
        names = {row["frame.coloring_rule.name"] for row in rows}
        self.assertLessEqual({"MRC trimmed or refused", "MRC write", "MRC control"}, names)

    def install_profile(self):
        shutil.copytree(dissector_folder / "profile",
                        self.tshark.home / ".config/wireshark/profiles/MRC")


class Statistics(DissectorTest):
    def rows(self, argument, *arguments):
        out = self.tshark.run(CAPTURES / "incast.pcapng", "-q", "-z", argument, *arguments)
        lines = [line.split() for line in out.splitlines() if line.startswith("fd00")]
        return [(line[0], line[1], *map(int, line[2:])) for line in lines]

    def test_every_path_has_a_line_that_adds_up(self):
        rows = self.rows("mrc,ev")
        counted = [sum(row[column] for row in rows) for column in range(2, 11)]
        filters = ["mrc.meth", "", "mrc.bth.rtx == 1", "mrc.trim", "mrc.ce == 1", "mrc.probe",
                   "mrc.sack", "mrc.expert.mark", "mrc.nack"]
        for count, text in zip(counted, filters):
            if text:
                found = self.tshark.fields(
                    CAPTURES / "incast.pcapng", ["frame.number"], "-Y", text)
                self.assertEqual(count, len(found), text)
                self.assertGreater(count, 0)
        self.assertEqual(rows[0][:4], ("fd00::1", "0x00010000", 0, 0))

    def test_a_filter_narrows_them(self):
        rows = self.rows("mrc,ev,ipv6.src == fd00::2")
        self.assertEqual({row[0] for row in rows}, {"fd00::2"})


    def test_they_count_every_frame_once_in_two_passes(self):
        self.assertEqual(self.rows("mrc,ev"), self.rows("mrc,ev", "-2"))

    def test_a_bad_argument_is_an_error_in_words(self):
        for argument, complaint in (("mrc,ev,a b c", "'a b c' is no display filter"),
                                    ("mrc,evil", "should be mrc,ev or mrc,ev,filter")):
            with self.subTest(argument):
                done = self.tshark.start(CAPTURES / "incast.pcapng", "-q", "-z", argument)
                self.assertEqual(done.returncode, 1)
                self.assertIn(complaint, done.stderr)
                self.assertEqual(done.stdout, "")


class HostileInput(DissectorTest):
    def mutate(self, rng, frame):
        data = bytearray(frame)
        start = min(54 if rng.random() < 0.7 else 14, len(data) - 1)
        for _ in range(rng.choice((0, 1, 1, 2, 8))):
            data[rng.randrange(start, len(data))] = rng.choice((0, 0xFF, rng.randrange(256)))
        kept = bytes(data[: rng.randrange(15, len(data) + 1)] if rng.random() < 0.5 else data)
        return kept, rng.choice((len(kept), len(data), len(data) + 100))

    def cut_with_lengths(self, rng):
        """Well-formed IP around every length of transport part, any opcode of ours."""
        opcode = rng.choice((0xC6, 0xC9, 0xCA, 0xCB, 0xD1, 0xD8, 0xD9, 0xDC, 0xDD, 0xDE, 0xD0))
        transport = bytes([opcode, 0]) + rng.randbytes(rng.randrange(0, 70))
        tos = rng.choice((0x10, 12 << 2, 16 << 2, 0x13))
        if rng.random() < 0.2:
            return frames.train([transport + bytes(12), transport, transport[:30] + bytes(12)])
        return frames.frame(
            transport, version=rng.choice((4, 6)), tos=tos, port=rng.choice((4791, 4991, 5001)),
            carrier=None if rng.random() < 0.5 else frames.CARRIER, with_icrc=rng.random() < 0.5)

    def test_no_mutation_makes_lua_fail(self):
        rng = random.Random(1)
        seeds = [frame for name in MRC_CAPTURES
                 for frame, _ in frames.read_capture(CAPTURES / f"{name}.pcapng")]
        made = []
        for number in range(FUZZED_FRAMES):
            if number % 4 == 0:
                frame = self.cut_with_lengths(rng)
                kept = rng.randrange(40, len(frame) + 1) if rng.random() < 0.3 else len(frame)
                made.append((frame[:kept], len(frame)))
            else:
                made.append(self.mutate(rng, rng.choice(seeds)))
        capture = self.tshark.home / "fuzz.pcap"
        frames.write_capture(capture, made)
        # run() fails on any Lua error; every other statistic and pass sees the same frames.
        text = self.tshark.run(capture, "-V")
        self.assertGreater(len(re.findall(r"^Multipath Reliable", text, re.M)), FUZZED_FRAMES // 3)
        self.tshark.run(capture, "-2", "-q", "-z", "mrc,ev", "-o", "udp.try_heuristic_first:TRUE")


def has_tshark_with_lua():
    if not shutil.which("tshark"):
        return False
    version = subprocess.run(["tshark", "--version"], capture_output=True, text=True, check=False)
    return "with Lua" in " ".join(version.stdout.split())


def main():
    global mrc_program, dissector_folder, update
    arguments = [argument for argument in sys.argv[1:] if argument != "--update"]
    update = len(arguments) < len(sys.argv) - 1
    if len(arguments) < 2:
        sys.exit(__doc__)
    mrc_program, dissector_folder = arguments[0], pathlib.Path(arguments[1]).resolve()
    if not has_tshark_with_lua():
        programs.skip("no tshark with Lua")
    programs.leave_cleanly_when_told()
    unittest.main(argv=[sys.argv[0], *arguments[2:]])


if __name__ == "__main__":
    main()
