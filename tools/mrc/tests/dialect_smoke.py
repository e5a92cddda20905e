#!/usr/bin/env python3
"""Processes of one host in the dialect `card`, real packets on loopback; ends that differ.

Usage: dialect_smoke.py <mrc> [unittest arguments]
"""

import json
import pathlib
import signal
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "tests" / "support"))

import programs  # noqa: E402  (found through the line above)
from programs import WAIT_S  # noqa: E402


class Dialect(programs.ToolTest):
    def setUp(self):
        super().setUp()
        self.environment = programs.device_environment(self.folder)

    def speak(self, dialect):
        return self.environment | {"MRC_DIALECT": dialect}

    def server(self, dialect, *words):
        port = str(programs.free_tcp_port())
        process = self.start("perf", "write_bw", "--json", "-p", port, *words,
                             env=self.speak(dialect))
        programs.eventually(lambda: programs.is_listening(int(port)), "no server")
        return process, port

    def client(self, dialect, port, *words):
        return self.start("perf", "write_bw", "--json", "-p", port, *words, "127.0.0.1",
                          env=self.speak(dialect))

    def ended_well(self, process):
        output, errors = process.communicate(timeout=WAIT_S)
        self.assertEqual(process.returncode, 0, errors)
        rows = json.loads(output)["results"]
        self.assertTrue(rows and all(row["verified"] for row in rows))

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
        clients = [self.client("card", port, "-n", "4000", "-s", "65536", "-q", "4")
                   for port in (first_port, second_port)]
        programs.eventually(lambda: self.udp_ports().get(base, 0) >= 4, "not at one port")
        self.assertFalse([p for p in self.udp_ports() if base < p < base + 256])
        for process in (*clients, first, second):
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


if __name__ == "__main__":
    programs.main()
