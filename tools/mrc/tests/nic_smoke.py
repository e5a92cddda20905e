#!/usr/bin/env python3
"""Runs `mrc perf`, `mrc info` and `mrc doctor` as people do, and as they should not.

Usage: nic_smoke.py <mrc> [unittest arguments]
"""

import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "tests" / "support"))

import programs  # noqa: E402  (found through the line above)
from programs import WAIT_S  # noqa: E402


class Tool(programs.ToolTest):
    def setUp(self):
        super().setUp()
        self.port = str(programs.free_tcp_port())
        self.environment = programs.device_environment(self.folder)

    def mrc(self, *words, variables=None):
        return self.tool(*words, env=self.environment | (variables or {}))

    def start_server(self, test, *words):
        server = self.start("perf", test, "-p", self.port, *words)
        programs.eventually(lambda: programs.is_listening(int(self.port)), "no server")
        return server

    def pair(self, test, *words, server_words=()):
        """Runs a server and a client; returns both, ended, with their output."""
        server = self.start_server(test, "--json", *server_words)
        client = self.mrc("perf", test, "-p", self.port, "--json", *words, "127.0.0.1")
        output, errors = server.communicate(timeout=WAIT_S)
        return client, subprocess.CompletedProcess(server.args, server.returncode, output, errors)


class Sealed(Tool):
    def setUp(self):
        super().setUp()
        self.key = self.new_key("cluster.key")
        self.sealed = {"MRC_SECURITY": "sealed", "MRC_KEY_FILE": self.key}

    def new_key(self, name):
        path = str(pathlib.Path(self.folder) / name)
        self.assertEqual(self.mrc("key", "new", path).returncode, 0)
        return path

    def transfer(self, server_variables, client_variables, *words):
        plain = self.environment
        self.environment = plain | server_variables
        server = self.start_server("write_bw", "--json", *words)
        self.environment = plain
        client = self.mrc("perf", "write_bw", "-p", self.port, "--json", *words, "127.0.0.1",
                          variables=client_variables)
        _, errors = server.communicate(timeout=WAIT_S)
        return client, server.returncode, errors

    def test_SealedEndsTransfer(self):
        client, code, errors = self.transfer(self.sealed, self.sealed, "-a", "-n", "20")
        self.assertEqual((client.returncode, code), (0, 0), client.stderr + errors)
        rows = json.loads(client.stdout)["results"]
        self.assertEqual(len(rows), 23)
        self.assertTrue(all(row["verified"] for row in rows))

    def mixed(self, server_variables, client_variables):
        """The last line of each end, server first; both must have refused."""
        client, code, errors = self.transfer(server_variables, client_variables, "-s", "64k", "-n",
                                             "20")
        self.assertEqual((client.returncode, code), (1, 1), client.stderr + errors)
        # Not one packet was sent: nobody had to be told that it was dropped.
        self.assertNotIn("packets from", client.stderr + errors)
        return errors.splitlines()[-1], client.stderr.splitlines()[-1]

    def test_MixedEndsRefuseEachOtherAndSayWhy(self):
        off = 'security is "off" there and "sealed" here'
        sealed = 'security is "sealed" there and "off" here'
        server, client = self.mixed(self.sealed, {})
        self.assertIn(off, server)
        self.assertIn(sealed, client)
        server, client = self.mixed({}, self.sealed)
        self.assertIn(sealed, server)
        self.assertIn(off, client)
        for line in (server, client):
            self.assertIn("set MRC_SECURITY", line)

    def test_OtherSecretsAreRefusedByName(self):
        other = self.new_key("other.key")
        shown = [self.mrc("key", "check", path).stdout.split()[2][:5]
                 for path in (self.key, other)]
        server, client = self.mixed(self.sealed, self.sealed | {"MRC_KEY_FILE": other})
        self.assertIn(f"sealed there with key 0 ({shown[1]}) does not open here", server)
        self.assertIn(f"sealed there with key 0 ({shown[0]}) does not open here", client)

    def test_NoKeyInCommonIsRefusedByName(self):
        other = pathlib.Path(self.new_key("other.key"))
        text = other.read_text(encoding="ascii").replace("key 0 ", "key 7 ")
        other.write_text(text, encoding="ascii")
        server, client = self.mixed(self.sealed, self.sealed | {"MRC_KEY_FILE": str(other)})
        self.assertIn("sealed there with key 7 (", server)
        self.assertIn("sealed there with key 0 (", client)

    def test_BadKeysStartNothing(self):
        os.chmod(self.key, 0o644)
        result = self.mrc("perf", "write_bw", "-p", self.port, variables=self.sealed)
        self.assertEqual(result.returncode, 2, result.stderr)
        self.assertIn("security = sealed", result.stderr)
        self.assertIn(self.key, result.stderr)


class Perf(Tool):
    def rows(self, test, *words):
        client, server = self.pair(test, *words)
        self.assertEqual(client.returncode, 0, client.stderr)
        self.assertEqual(server.returncode, 0, server.stderr)
        document = json.loads(client.stdout)
        self.assertEqual(document["schema"], "mrc.perf")
        self.assertTrue(all(row["verified"] for row in document["results"]))
        self.assertEqual(len(json.loads(server.stdout)["results"]), len(document["results"]))
        return document["results"], client

    def test_WriteBandwidthOfAllSizes(self):
        rows, client = self.rows("write_bw", "-a", "-n", "20")
        self.assertEqual([row["message_bytes"] for row in rows], [2 ** p for p in range(1, 24)])
        self.assertTrue(all(row["messages"] == 20 and row["bandwidth_gbps"] > 0 for row in rows))
        self.assertIn("#bytes", client.stderr)
        self.assertIn("MsgRate[Mpps]", client.stderr)

    def test_WriteBandwidthBothWaysOnSeveralQueuePairs(self):
        rows, _ = self.rows("write_bw", "-b", "-q", "5", "-s", "100000", "-n", "40")
        self.assertEqual(rows[0]["messages"], 200)

    def test_WriteBandwidthByTime(self):
        rows, _ = self.rows("write_bw", "-s", "4K", "-D", "0.5")
        self.assertGreater(rows[0]["messages"], 0)
        self.assertAlmostEqual(rows[0]["seconds"], 0.5, delta=0.4)

    def test_WhatASenderWaitedForIsExplained(self):
        rows, client = self.rows("write_bw", "-s", "64K", "-q", "3", "-D", "0.5", "--explain")
        told = rows[0]["explain"]
        self.assertGreater(told["looks"], 0)
        self.assertAlmostEqual(sum(told["waits"].values()), 1, places=6)
        self.assertGreater(told["packets_sent"], told["retransmitted"])
        self.assertGreater(told["round_trip_us_max"], 0)
        self.assertIn("the congestion window is full", client.stderr)

    def test_WriteLatencyOfSmallAndLargeMessages(self):
        for size in (1, 64, 4096, 1_000_000):
            rows, _ = self.rows("write_lat", "-s", str(size), "-n", "50")
            row = rows[0]
            self.assertLessEqual(row["latency_us_min"], row["latency_us_median"])
            self.assertLessEqual(row["latency_us_median"], row["latency_us_p99"])

    def test_WritesWithImmediate(self):
        rows, _ = self.rows("write_imm", "-s", "10000", "-n", "500", "-q", "3", "--verify-all")
        self.assertEqual(rows[0]["messages"], 1500)

    def test_IntervalsAreLinesOfJson(self):
        server = self.start_server("write_bw")
        client = self.mrc("perf", "write_bw", "-p", self.port, "-D", "1", "--report-every", "0.1",
                          "127.0.0.1")
        self.assertEqual(server.wait(WAIT_S), 0)
        lines = [json.loads(line) for line in client.stdout.splitlines()]
        self.assertGreaterEqual(len(lines), 5)
        self.assertEqual({line["schema"] for line in lines[:-1]}, {"mrc.perf.interval"})
        self.assertEqual(lines[-1]["schema"], "mrc.perf")

    def test_ResultsGoToAFile(self):
        path = os.path.join(self.folder, "out.json")
        self.rows("write_bw", "-n", "10", "--out_json_file=" + path)
        with open(path, encoding="utf-8") as file:
            self.assertEqual(json.load(file)["test"], "write_bw")

    def test_AFileThatCannotBeWrittenIsAFailureWithItsReason(self):
        client, server = self.pair("write_bw", "-n", "10", "--out_json_file=/dev/full")
        self.assertEqual((client.returncode, server.returncode), (1, 0))
        self.assertIn("mrc perf write_bw: /dev/full: cannot be written: No space left",
                      client.stderr)

    def test_InterruptedClientShowsWhatItHas(self):
        server = self.start_server("write_bw", "--json")
        client = self.start("perf", "write_bw", "-p", self.port, "-D", "60",
                            "--report-every", "0.1", "127.0.0.1")
        for line in client.stdout:
            if json.loads(line)["end_s"] > 1:  # half a second is only to warm up
                break
        client.send_signal(signal.SIGINT)
        output, errors = client.communicate(timeout=WAIT_S)
        self.assertEqual(client.returncode, 130, errors)
        row = json.loads(output.splitlines()[-1])["results"][0]
        self.assertTrue(row["interrupted"] and row["verified"] and row["messages"] > 0, row)
        self.assertEqual(server.wait(WAIT_S), 0)

    def test_ADeadServerIsAClearError(self):
        server = self.start_server("write_bw")
        client = self.start("perf", "write_bw", "-p", self.port, "-D", "60", "127.0.0.1")
        time.sleep(1)
        server.kill()
        _, errors = client.communicate(timeout=WAIT_S)
        self.assertIn(client.returncode, (1, 4))
        self.assertRegex(errors, r"hung up|lost|retry")

    def test_NobodyListensIsAClearError(self):
        client = self.mrc("perf", "write_bw", "-p", self.port, "127.0.0.1")
        self.assertEqual(client.returncode, 1)
        self.assertIn(f"cannot connect to 127.0.0.1 port {self.port}: refused; is the server "
                      "running?", client.stderr)

    def test_DifferentTestsDoNotStart(self):
        server = self.start_server("write_lat")
        client = self.mrc("perf", "write_bw", "-p", self.port, "127.0.0.1")
        self.assertEqual((client.returncode, server.wait(WAIT_S)), (1, 1))
        self.assertIn("the server runs write_lat, the client write_bw", client.stderr)

    def test_AnotherVersionIsRefused(self):
        server = self.start_server("write_bw")
        with socket.create_connection(("127.0.0.1", int(self.port)), WAIT_S) as client:
            client.sendall(b'{"mrc_perf": 99, "version": "9.9.9"}\n')
            self.assertIn(b"same version on both sides", client.recv(4096))
        self.assertEqual(server.wait(WAIT_S), 1)

    def test_ForeignersAtTheTcpPortAreRefused(self):
        good = {"mrc_perf": 1, "version": "0.1.0", "seed": 1, "plan": {
            "test": "write_bw", "sizes": [2**40], "iterations": 1, "seconds": 0, "qps": 1,
            "depth": 1, "both_ways": False, "verify": True, "verify_all": False}}
        for text in (b"GET / HTTP/1.1\r\n\r\n", b"\n", b"[]\n", b'{"mrc_perf": 1}\n',
                     os.urandom(5000) + b"\n", b"x" * 3_000_000, b'{"error": "\x1b[2Jhi"}\n',
                     json.dumps(good).encode() + b"\n"):
            server = self.start_server("write_bw")
            with socket.create_connection(("127.0.0.1", int(self.port)), WAIT_S) as client:
                try:
                    client.sendall(text)
                    client.shutdown(socket.SHUT_WR)
                    client.recv(4096)
                except OSError:
                    pass  # it hung up in the middle, as it may
            _, errors = server.communicate(timeout=WAIT_S)
            self.assertEqual(server.returncode, 1, text[:40])
            self.assertNotIn("\x1b", errors)

    def test_BadArgumentsAreUsageErrors(self):
        for words in (["-s", "0"], ["-q", "0"], ["-q", "100000"], ["-D", "-1"], ["-n", "0"],
                      ["-t", "0"], ["-x", "1000"], ["-s", "2G"], ["--mtu", "333"], ["--frob"],
                      ["-d", "nosuch"], ["-q", "16000", "-s", "8M"]):
            client = self.mrc("perf", "write_bw", "-p", self.port, *words, "127.0.0.1")
            self.assertIn(client.returncode, (1, 2), words)
            self.assertIn("mrc perf write_bw: ", client.stderr)
            self.assertEqual(client.stdout.count("#bytes"), 0)
        self.assertEqual(self.mrc("perf").returncode, 2)
        self.assertEqual(self.mrc("perf", "write_lat", "-q", "2", "x").returncode, 2)


class Info(Tool):
    def test_ShowsTheDefaultDevice(self):
        done = self.mrc("info", "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        document = json.loads(done.stdout)
        device = document["devices"][0]
        self.assertEqual(device["name"], "mrc0")
        self.assertEqual([port["state"] for port in device["ports"]], ["active"] * 4)
        self.assertEqual([gid["index"] for gid in device["gids"]][:4], [0, 1, 2, 3])
        self.assertIn("MRC_PORT", [variable["name"] for variable in document["environment"]])
        text = self.mrc("info").stdout
        for word in ("mrc0", "port 4", "GID 3", "127.0.0.1", "path MTU", "MRC_STATE_DIR="):
            self.assertIn(word, text)
        self.assertIn("MRC_IFACES", self.mrc("info", "--env").stdout)

    def test_BrokenConfigurationIsOneLine(self):
        path = os.path.join(self.folder, "bad.toml")
        with open(path, "w", encoding="utf-8") as file:
            file.write("[[device]]\nname = 5\n")
        done = self.mrc("info", variables={"MRC_CONFIG": path})
        self.assertEqual(done.returncode, 1)
        self.assertIn("bad.toml:", done.stderr)

    def test_AnUnknownDeviceIsAnError(self):
        self.assertEqual(self.mrc("info", "-d", "nosuch").returncode, 1)


class Doctor(Tool):
    def findings(self, expected, *words, variables=None):
        done = self.mrc("doctor", "--json", *words, variables=variables)
        self.assertEqual(done.returncode, expected, done.stdout + done.stderr)
        return json.loads(done.stdout)["findings"]

    def by_name(self, *arguments, **options):
        return {found["what"]: found for found in self.findings(*arguments, **options)}

    def test_ThisHostWorks(self):
        findings = self.findings(0)
        self.assertEqual([f for f in findings if f["verdict"] == "broken"], [])
        answers = [f for f in findings if "answers after" in f["found"]]
        self.assertEqual(len(answers), 4)
        self.assertIn("ok", self.mrc("doctor").stdout)

    def test_AMissingInterfaceIsBrokenAndHasAFix(self):
        findings = self.findings(1, variables={"MRC_IFACES": "nosuch0"})
        broken = [f for f in findings if f["verdict"] == "broken"]
        self.assertTrue(broken and all(f["fix"] for f in broken))
        self.assertIn("nosuch0", json.dumps(broken))

    def test_AMisspeltVariableIsRefused(self):
        findings = self.findings(1, variables={"MRC_IFACE": "lo"})
        broken = [f["found"] for f in findings if f["verdict"] == "broken"]
        self.assertIn("is MRC_IFACES meant?", broken[0])
        typo = [f for f in findings if f["what"] == "MRC_IFACE"]
        self.assertEqual(typo[0]["fix"], "did you mean MRC_IFACES?")

    def test_APeerThatDoesNotAnswerIsBroken(self):
        findings = self.findings(1, "--peer", "127.0.0.77")
        self.assertEqual(sum("no answer" in f["found"] for f in findings), 4)

    def test_AResponderSaysWhatItsDeviceIs(self):
        self.start("doctor", "--serve", "-p", self.port)
        programs.eventually(lambda: programs.is_listening(int(self.port)), "no responder")
        words = ("--peer", "127.0.0.1", "-p", self.port)
        found = self.by_name(0, *words)
        self.assertIn("agree", found["mrc0 and 127.0.0.1"]["found"])
        for port in (1, 2, 3, 4):
            self.assertIn("pass both ways", found[f"mrc0 port {port} way to 127.0.0.1"]["found"])
        other = self.by_name(1, *words, variables={"MRC_PORT": str(programs.free_udp_ports())})
        self.assertIn("UDP port", other["mrc0 and 127.0.0.1"]["found"])
        fewer = self.by_name(1, *words, variables={"MRC_PLANES": "2"})
        self.assertIn("2 planes here, 4 at", fewer["mrc0 and 127.0.0.1"]["found"])

    def test_APeerMustBeAnAddress(self):
        self.findings(1, "--peer", "bogus")


if __name__ == "__main__":
    programs.main()
