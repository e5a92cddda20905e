#!/usr/bin/env python3
"""Processes of one host in the dialect `card`, real packets on loopback; ends that differ; what
`mrc dialect detect` says about captures of them.

Usage: dialect_smoke.py <mrc> [unittest arguments]
"""

import ctypes
import json
import pathlib
import signal
import socket
import struct
import sys
import threading

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "tests" / "support"))

import programs  # noqa: E402  (found through the line above)
from programs import WAIT_S  # noqa: E402

INTERRUPTED = 130  # how `mrc` ends on Ctrl-C, after what was measured until then


class Pair(programs.ToolTest):
    """A client and a server on loopback, each in a dialect."""

    def setUp(self):
        super().setUp()
        self.environment = programs.device_environment(self.folder)

    def speak(self, dialect):
        return self.environment | {"MRC_DIALECT": dialect}

    def server(self, dialect, *words):
        port = str(programs.free_tcp_port())
        process = self.start("perf", "write_bw", "--json", "-p", port, *words,
                             env=self.speak(dialect))
        programs.eventually(lambda: programs.is_listening(int(port)) or process.poll() is not None,
                            "no server")
        if process.poll() is not None:
            raise programs.Failed(f"no server: {process.communicate()[1]}")
        return process, port

    def client(self, dialect, port, *words):
        return self.start("perf", "write_bw", "--json", "-p", port, *words, "127.0.0.1",
                          env=self.speak(dialect))

    def ended_well(self, process, status=0):
        output, errors = process.communicate(timeout=WAIT_S)
        self.assertEqual(process.returncode, status, errors)
        report = [line for line in output.splitlines() if '"mrc.perf.interval"' not in line]
        rows = json.loads("\n".join(report))["results"]
        self.assertTrue(rows and all(row["verified"] for row in rows))

    def has_written(self, process):
        """Waits for an interval of a client with `--report-every` in which messages completed."""
        while line := process.stdout.readline():
            if json.loads(line).get("messages"):
                return
        raise programs.Failed(f"nothing was written: {process.communicate()[1]}")


class Dialect(Pair):
    def udp_ports(self, address="127.0.0.1"):
        """Ports that somebody receives at on the first plane, with how many sockets."""
        wanted = "".join(f"{int(part):02X}" for part in reversed(address.split(".")))
        ports = {}
        for line in pathlib.Path("/proc/net/udp").read_text().splitlines()[1:]:
            host, port = line.split()[1].split(":")
            if host == wanted:
                ports[int(port, 16)] = ports.get(int(port, 16), 0) + 1
        return ports

    def test_FourProcessesShareOneUdpPort(self):
        base = int(self.environment["MRC_PORT"])
        first, first_port = self.server("card")
        second, second_port = self.server("card")
        # They write until they are told to end, so all four are there at once.
        clients = [self.client("card", port, "-D", "600", "-s", "65536", "-q", "4",
                               "--report-every", "0.05") for port in (first_port, second_port)]
        programs.eventually(lambda: self.udp_ports().get(base, 0) >= 4, "not at one port")
        # Who is interrupted before its first message is done has nothing to report.
        for process in clients:
            self.has_written(process)
        self.assertFalse([p for p in self.udp_ports() if base < p < base + 256])
        for process in clients:
            process.send_signal(signal.SIGINT)
            self.ended_well(process, INTERRUPTED)
        for process in (first, second):
            self.ended_well(process)

    def test_APeerThatIsKilledTakesNobodyWithIt(self):
        """Numbers and places in the kernel's table no longer agree; packets still arrive."""
        first, _ = self.server("card")
        second, second_port = self.server("card")
        first.send_signal(signal.SIGKILL)
        first.wait(timeout=WAIT_S)
        client = self.client("card", second_port, "-n", "2000", "-s", "65536")
        self.ended_well(client)
        self.ended_well(second)

    def test_EveryFieldAnotherWay(self):
        dialect = ("card,first_msn=65535,first_rqmsn=1,ack_msn=last,ev_order=high_in_port,"
                   "bth_order=migration_first,eeth_op=bits_5_4,port_bit=1,window=2")
        server, port = self.server(dialect)
        self.ended_well(self.client(dialect, port, "-n", "200", "-s", "65536"))
        self.ended_well(server)

    def test_EndsThatDifferAreTold(self):
        server, port = self.server("card")
        client = self.client("card,first_rqmsn=1", port, "-n", "10")
        _, errors = client.communicate(timeout=WAIT_S)
        self.assertEqual(client.returncode, 1)
        self.assertIn('speaks another dialect: first_rqmsn is "0" there and "1" here', errors)
        _, errors = server.communicate(timeout=WAIT_S)
        self.assertEqual(server.returncode, 1)
        self.assertIn('first_rqmsn is "1" there and "0" here', errors)

    def test_InfoShowsIt(self):
        shown = self.tool("info", env=self.speak("card,first_msn=1"))
        self.assertEqual(shown.returncode, 0, shown.stderr)
        self.assertIn("card,first_msn=1", shown.stdout)
        self.assertIn("(shared; this process has number 0)", shown.stdout)
        document = json.loads(self.tool("info", "--json", env=self.speak("card")).stdout)
        self.assertEqual(document["devices"][0]["dialect"], "card")

    def test_AWordThatIsNoDialectIsRefused(self):
        refused = self.tool("info", env=self.speak("card,port_bit=2"))
        self.assertNotEqual(refused.returncode, 0)
        self.assertIn("MRC_DIALECT: port_bit is '2' but must be a whole number from 0 to 1",
                      refused.stderr + refused.stdout)


class Sniffer:
    """What is sent on loopback to a device or over one TCP port.

    The kernel picks the frames: tests beside this one may send gigabytes a second there, and a
    reader that is too slow for them would miss its own.
    """

    SO_ATTACH_FILTER = 26
    PACKET_STATISTICS = 6

    def __init__(self, tcp_port, first_udp_port):
        # struct sock_filter, for IPv4 without options: ports are at bytes 34 and 36 of the frame.
        load, equal, at_least, end = 0x28, 0x15, 0x35, 0x06
        steps = [(load, 0, 0, 36),
                 (equal, 5, 0, tcp_port),
                 (at_least, 0, 1, first_udp_port),
                 (at_least, 0, 3, first_udp_port + 256),
                 (load, 0, 0, 34),
                 (equal, 1, 0, tcp_port),
                 (end, 0, 0, 0),
                 (end, 0, 0, 65536)]
        code = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *s) for s in steps))
        program = struct.pack("@HP", len(steps), ctypes.addressof(code))
        self.socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
        self.socket.setsockopt(socket.SOL_SOCKET, self.SO_ATTACH_FILTER, program)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 25)
        self.socket.bind(("lo", 3))  # ETH_P_ALL
        self.socket.settimeout(0.1)
        self.frames = []
        self.lost = 0
        self.ended = threading.Event()
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def run(self):
        while True:
            try:
                frame, address = self.socket.recvfrom(65536)
            except TimeoutError:
                if self.ended.is_set():
                    return
                continue
            if address[2] != socket.PACKET_OUTGOING:  # loopback shows each frame twice
                self.frames.append(frame)

    def stop(self):
        if self.ended.is_set():
            return
        self.ended.set()
        self.thread.join()
        statistics = self.socket.getsockopt(263, self.PACKET_STATISTICS, 8)  # SOL_PACKET
        self.lost = struct.unpack("=II", statistics)[1]
        self.socket.close()


def pcap(frames):
    header = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1)
    return header + b"".join(struct.pack("<IIII", 0, 0, len(f), len(f)) + f for f in frames)


class Detect(Pair):
    def path(self, name, content=None):
        path = pathlib.Path(self.folder, name)
        if content is not None:
            path.write_bytes(content)
        return str(path)

    def captured(self, dialect):
        """The traffic of a client and a server who send no bursts."""
        config = self.path("mrc.toml", b"[device.mrc0]\nsegmentation = false\nthreads = 1\n"
                                       b"loopback_planes = 2\n")
        self.environment["MRC_CONFIG"] = config
        port = str(programs.free_tcp_port())
        base = int(self.environment["MRC_PORT"])
        sniffer = Sniffer(int(port), base)
        self.addCleanup(sniffer.stop)
        words = ("perf", "write_imm", "--json", "-p", port)
        server = self.start(*words, env=self.speak(dialect))
        programs.eventually(lambda: programs.is_listening(int(port)), "no server")
        client = self.start(*words, "-n", "200", "-s", "2048", "127.0.0.1",
                            env=self.speak(dialect))
        self.ended_well(client)
        self.ended_well(server)
        sniffer.stop()
        return pcap(sniffer.frames), sniffer.lost == 0

    def detect(self, path, *words, status=0):
        done = self.tool("dialect", "detect", path, "--json", *words, env=self.environment)
        self.assertEqual(done.returncode, status, done.stderr + done.stdout)
        document = json.loads(done.stdout)
        return document, {f["field"]: f.get("value") for f in document["fields"]}

    def test_RealTrafficNamesItsDialectAndItsConfigurationIsTaken(self):
        for dialect in ("openmrc", "card,first_msn=1,first_rqmsn=1,ack_msn=last,"
                                   "ev_order=high_in_port"):
            with self.subTest(dialect):
                config = self.path("found.toml")
                # How many answers there are is chance: captures until they tell of the stamps.
                for _ in range(10):
                    try:
                        frames, whole = self.captured(dialect)
                    except PermissionError:
                        self.skipTest("needs a packet socket")
                    if not whole:
                        continue
                    capture = self.path("lo.pcap", frames)
                    document, found = self.detect(capture, "--config", config)
                    if found["service_time"] is not None:
                        break
                else:
                    self.fail("no whole capture tells of the stamps")
                self.assertGreater(document["verified_packets"], 200)
                self.assertGreater(document["other_frames"], 0)  # the exchange over TCP
                other = dialect != "openmrc"
                self.assertEqual(found["first_msn"], "1" if other else "0")
                self.assertEqual(found["first_rqmsn"], "1" if other else "0")
                self.assertEqual(found["ack_msn"], "last" if other else "next")
                self.assertEqual(found["ev_order"], "high_in_port" if other else "low_in_port")
                self.assertEqual(found["service_time"], "reflected" if other else "added")
                self.assertIsNone(found["srv6_icrc"])
                self.environment.pop("MRC_DIALECT", None)
                shown = json.loads(self.tool(
                    "info", "--json", env=self.environment | {"MRC_CONFIG": config}).stdout)
                named = shown["devices"][0]["dialect"]
                if other:
                    self.assertEqual(named, dialect)
                text = self.tool("dialect", "detect", capture).stdout
                self.assertIn("cannot tell", text)
                damaged = self.path("cut.pcap", pathlib.Path(capture).read_bytes()[:-7])
                self.assertIn("cut in a frame", self.detect(damaged)[0]["damage"])

    def test_WhatIsNoCaptureIsRefused(self):
        line = self.refused(1, "dialect", "detect", self.path("text", b"x" * 100))
        self.assertIn("begins like neither pcapng nor pcap", line)
        line = self.refused(1, "dialect", "detect", "/nonexistent")
        self.assertIn("No such file", line)
        self.refused(2, "dialect", "detect")

    def test_WithoutMrcNothingIsTold(self):
        config = self.path("none.toml")
        empty = self.path("empty.pcap", pcap([bytes(60)]))
        document, found = self.detect(empty, "--config", config, status=3)
        self.assertEqual(document["mrc_packets"], 0)
        self.assertFalse(any(found.values()))
        self.assertFalse(pathlib.Path(config).exists())


if __name__ == "__main__":
    programs.main()
