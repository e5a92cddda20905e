#!/usr/bin/env python3
"""Runs `mrc check` alone, between two processes, in a lab and over a program in place of ssh.

Usage: check_smoke.py <mrc> [unittest arguments]
"""

import json
import os
import pathlib
import signal
import socket
import stat
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "tests" / "support"))

import labs  # noqa: E402  (found through the line above)
import programs  # noqa: E402
from programs import WAIT_S  # noqa: E402

# A busy machine loses packets of its own; what is looked for here is lost on purpose.
PATIENT = "--loss=50%"
# In place of ssh: runs the words here. Hosts are addresses of loopback: one is unreachable, one has
# no mrc, one says what no host should.
FAKE_SSH = """#!/bin/sh
host=$1
shift
echo "$host $*" >> "$FAKE_SSH_LOG"
case $host in
127.0.0.9) echo "ssh: connect to host $host: No route to host" >&2; exit 255;;
127.0.0.8) echo "sh: 1: mrc: not found" >&2; exit 127;;
127.0.0.7) printf 'hello\\033[2J\\n'; printf 'bad \\033]0;x\\007\\n' >&2; exit 0;;
127.0.0.6) printf '{"schema": "mrc.check", "version": 1, "findings": [], '
           printf '"program": "mrc 9.9\\302\\233 \\\\u001b[2J"}'; exit 0;;
127.0.0.5) head -c 3000000 /dev/zero; exit 1;;
127.0.0.4) exec sleep 1000;;
127.0.0.3) export MRC_IFACES=nosuch0;;
esac
echo "Welcome to $host."
exec "$@"
"""
HOSTILE = ["-oProxyCommand=touch", "a;b", "a b c", "$(id)", "`id`", "a|b", "a&b", "a>b", "ä",
           "a\x1b[2J", "a\x00b", "user@-o", "@a", "a@", "a@b@c", "a'b", 'a"b', "a\\b", "x" * 300,
           "../a", "a\rb", "n1\nn1"]


class Check(programs.ToolTest):
    def setUp(self):
        super().setUp()
        self.port = str(programs.free_tcp_port())
        self.environment = programs.device_environment(self.folder)

    def check(self, expected, *words, variables=None):
        done = self.tool("check", *words, env=self.environment | (variables or {}))
        self.assertEqual(done.returncode, expected, f"{words}: {done.stdout}{done.stderr}")
        return done

    def document(self, expected, *words, **options):
        document = json.loads(self.check(expected, "--json", *words, **options).stdout)
        self.assertEqual(document["version"], 1)
        self.assertEqual(document["ok"], expected == 0)
        return document

    @staticmethod
    def broken(document):
        return [found for found in document["findings"] if found["verdict"] == "broken"]


class Alone(Check):
    def test_SoundHostIsOneVerdict(self):
        done = self.check(0)
        lines = done.stdout.splitlines()
        self.assertRegex(lines[-1], r"^check: ok")
        self.assertTrue(all(line.startswith("slow ") for line in lines[:-1]), done.stdout)
        self.assertEqual(done.stderr, "")
        self.assertIn("answers after", self.check(0, "-v").stdout)
        self.assertEqual(self.document(0)["problems"], 0)

    def test_ProblemIsOneLineWithItsRemedy(self):
        missing = {"MRC_IFACES": "nosuch0"}
        done = self.check(1, variables=missing)
        broken = [line for line in done.stdout.splitlines() if line.startswith("broken")]
        named = [line for line in broken if "no interface named nosuch0; correct it" in line]
        self.assertEqual(len(named), 1, done.stdout)
        self.assertRegex(done.stdout.splitlines()[-1], rf"^check: {len(broken)} problem")
        document = self.document(1, variables=missing)
        self.assertEqual(document["problems"], len(self.broken(document)))
        self.assertTrue(all(found["fix"] for found in self.broken(document)))

    def test_SlowFailsOnlyIfStrict(self):
        few = ["sh", "-c", 'ulimit -n 500; exec "$@"', "sh", self.program, "check"]
        done = programs.run(few, env=self.environment)
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertIn("slow    open files: 500", done.stdout)
        strict = programs.run([*few, "--strict"], env=self.environment)
        self.assertEqual(strict.returncode, 1, strict.stdout)
        self.assertRegex(strict.stdout.splitlines()[-1], r"^check: \d+ problem")

    def test_LoopbackIsSlowWhichStrictRefuses(self):
        found = {each["what"]: each for each in self.document(0)["findings"]}["mrc0 interfaces"]
        self.assertEqual((found["verdict"], found["found"]),
                         ("slow", "all planes are on loopback, where no other host can be reached"))
        self.assertIn("MRC_IFACES=", found["fix"])
        self.assertIn("slow    mrc0 interfaces: all planes are on loopback",
                      self.check(1, "--strict").stdout)

    def wire_device(self, *lines, before=(), interface="lo"):
        """As `mrc plan --out` writes hosts' files."""
        path = pathlib.Path(self.folder, "mrc.toml")
        path.write_text("\n".join([
            "[device.mrc0]", 'backend = "wire"', "[[device.mrc0.plane]]",
            f'interface = "{interface}"',
            'address = "fd00:1::1/64"', 'usid_block = "fc00:1::/32"', *lines,
            "[[device.mrc0.srv6_route]]", 'to = "fd00:1::2/128"', 'usids = "1:2*4:3:4"', ""]))
        done = programs.run([*before, self.program, "check", "--json"],
                            env=self.environment | {"MRC_CONFIG": str(path)})
        document = json.loads(done.stdout)
        return {each["what"]: each for each in document["findings"]}["mrc0 port 1"]

    def test_PlanesOfWholeFramesNeedTheirSwitch(self):
        found = self.wire_device()
        self.assertEqual((found["verdict"], found["found"]),
                         ("broken", "lo has no next_hop_mac: no switch takes its frames"))
        found = self.wire_device('next_hop_mac = "02:00:00:00:00:01"')
        self.assertEqual((found["verdict"], found["found"]),
                         ("ok", "whole frames over lo, MTU 65536"))

    def test_PlanesOfWholeFramesNeedRoom(self):
        apart = ["unshare", "--map-root-user", "--net", "sh", "-c",
                 'ip link add p0 mtu 1500 type veth peer name p1 && ip link set p0 up && '
                 'ip link set p1 up && until ip link show p0 | grep -q "state UP"; do sleep 0.02; '
                 'done; exec "$@"', "sh"]  # the kernel notes a carrier in its own time
        if programs.run([*apart, "true"]).returncode != 0:
            self.skipTest("there is no network to be had")
        found = self.wire_device('next_hop_mac = "02:00:00:00:00:01"', before=apart,
                                 interface="p0")
        self.assertEqual((found["verdict"], found["found"]),
                         ("slow", "whole frames over p0, MTU 1500: packets of less than 4 KiB"))
        self.assertIn("ip link set dev p0 mtu 9000", found["fix"])

    def test_BadArgumentsAreOneLine(self):
        for words in (["--peer", "a", "--serve"], ["--once"], ["--loss", "2"], ["-q", "0"],
                      ["-q", "100"], ["--seconds", "-1"], ["--parallel", "4"], ["--hosts", ","],
                      ["--hosts", "a", "--peer", "b"], ["-d", "mrc0"], ["--port", "70000"],
                      ["--peer", "127.0.0.1", "-d", "nosuch"], ["--serve", "-d", "nosuch"],
                      ["--hosts", "a", "--ssh", " "], ["--hosts", "a,b", "-d", "$(id)"]):
            self.assertIn("mrc check", self.refused(2, "check", *words))


class Pair(Check):
    def serve(self, *words, variables=None):
        server = self.start("check", "--serve", "-p", self.port, *words,
                            env=self.environment | (variables or {}))
        programs.eventually(lambda: programs.is_listening(int(self.port)), "nobody serves")
        return server

    def peer(self, *more):
        return ("--peer", "127.0.0.1", "-p", self.port, "--seconds", "1", *more)

    def test_SoundPairTransfersBothWays(self):
        server = self.serve("--once", "--json")
        document = self.document(0, *self.peer(PATIENT, "-q", "3"))
        told = json.loads(programs.finish(server))
        self.assertEqual((told["schema"], told["port"]), ("mrc.check.serve", int(self.port)))
        found = {each["what"]: each for each in document["findings"]}
        self.assertIn("agree", found["mrc0 and 127.0.0.1"]["found"])
        self.assertEqual(found["versions here and at 127.0.0.1"]["verdict"], "ok")
        for port in (1, 2, 3, 4):
            self.assertIn("pass both ways", found[f"mrc0 port {port} way to 127.0.0.1"]["found"])
        transfer = document["transfer"]
        self.assertTrue(transfer["verified"])
        self.assertGreater(transfer["messages"], 0)
        for way in ("sent", "received"):
            pairs = transfer[way]["queue_pairs"]
            self.assertEqual(len(pairs), 3)
            self.assertTrue(all(pair["packets_sent"] > 0 and pair["paths"] == 32
                                for pair in pairs), pairs)
            self.assertEqual([plane["plane"] for plane in transfer[way]["planes"]], [0, 1, 2, 3])

    def test_AnotherVersionIsFound(self):
        with socket.create_server(("127.0.0.1", int(self.port))) as listener:
            client = self.start("check", "--json", *self.peer(PATIENT))
            visitor, _ = listener.accept()
            with visitor:
                visitor.recv(4096)
                planes = [{"address": f"127.0.{plane}.1", "mtu": 9000} for plane in range(3)]
                answer = {"mrc_doctor": 1, "version": "9.9.9\x1b[2J", "token": 1, "echo": [0] * 3,
                          "device": {"udp_port": int(self.environment["MRC_PORT"]),
                                     "planes": planes}}
                visitor.sendall(json.dumps(answer).encode() + b"\n")
                visitor.recv(4096)
            listener.close()
            output, _ = client.communicate(timeout=WAIT_S)
        self.assertEqual(client.returncode, 1)
        found = [each["found"] for each in self.broken(json.loads(output))]
        self.assertTrue(any("9.9.9 [2J there" in text for text in found), found)
        self.assertTrue(any("4 planes here, 3 at 127.0.0.1" in text for text in found), found)

    def test_OtherPlanesAreFound(self):
        self.serve(variables={"MRC_PLANES": "2"})
        found = [each["found"] for each in
                 self.broken(self.document(1, *self.peer(PATIENT, "--timeout", "3")))]
        self.assertIn("4 planes here, 2 at 127.0.0.1", found)

    def test_NobodyServesIsOneProblem(self):
        broken = self.broken(self.document(1, *self.peer()))
        self.assertEqual(len(broken), 1, broken)
        self.assertIn(f"cannot connect to 127.0.0.1 port {self.port}: refused", broken[0]["found"])
        self.assertIn("mrc check --serve", broken[0]["fix"])

    def test_PortThatIsTakenIsOneLine(self):
        self.serve()
        self.assertIn(f"cannot listen on TCP port {self.port}",
                      self.refused(1, "check", "--serve", "-p", self.port))

    def test_NobodyComesEndsTheWait(self):
        self.assertIn("nobody connected",
                      self.refused(4, "check", "--serve", "-p", self.port, "--json",
                                   "--wait", "0.2"))

    def test_ServerEndsWithWhoeverReadsIt(self):
        server = self.serve("--json")
        server.stdout.close()
        server.stdout = None  # for communicate()
        self.assertEqual(server.wait(WAIT_S), 1)

    def test_StrangersAreTurnedAwayAndTheNextIsServed(self):
        server = self.serve("--once", "--json")
        plan = {"test": "write_bw", "sizes": [2**30], "iterations": 0, "seconds": 86400,
                "qps": 16384, "depth": 8192, "both_ways": True, "spin": False, "verify": True,
                "verify_all": True}
        address = {"gid": [0] * 16, "qps": [1] * 16384, "psn": 0, "mtu": 4096, "memory": 0,
                   "memory_bytes": 1, "rkey": 1, "dialect": "", "security": 0}
        greedy = {"mrc_perf": 1, "version": "9", "seed": 1, "plan": plan, "address": address}
        for text in (b"GET / HTTP/1.1\r\n\r\n", b"{}\n", b"[]\n", b'{"mrc_perf": 1}\n',
                     b'{"mrc_doctor": 2}\n', os.urandom(5000) + b"\n", b"\x1b[2J\n",
                     json.dumps(greedy).encode() + b"\n"):
            with socket.create_connection(("127.0.0.1", int(self.port)), WAIT_S) as visitor:
                try:
                    visitor.sendall(text)
                    visitor.shutdown(socket.SHUT_WR)
                    while visitor.recv(65536):
                        pass
                except OSError:
                    pass  # it hung up in the middle, as it may
        self.document(0, *self.peer(PATIENT))
        _, errors = server.communicate(timeout=WAIT_S)
        self.assertEqual(server.returncode, 0)
        self.assertEqual(len(errors.splitlines()), 8, errors)
        self.assertIn("asks for a transfer that is none of mrc check", errors)
        self.assertNotIn("\x1b", errors)

    def test_CtrlCInATransferLeavesNoVerdict(self):
        self.serve()
        client = self.start("check", "--peer", "127.0.0.1", "-p", self.port, "--seconds", "60",
                            PATIENT, env=self.environment)

        def is_under_way():
            done = self.tool("stat", "--json", "--at-once", "--pid", str(client.pid),
                             env=self.environment)
            devices = json.loads(done.stdout)["devices"] if done.returncode == 0 else []
            return devices and devices[0]["totals"]["messages_completed"] > 0
        programs.eventually(is_under_way, "there is no transfer")
        client.send_signal(signal.SIGINT)
        output, _ = client.communicate(timeout=WAIT_S)
        self.assertEqual(client.returncode, 130)
        self.assertRegex(output.splitlines()[-1], "^check: interrupted, no verdict")

    def test_CtrlCEndsAServer(self):
        server = self.serve()
        server.send_signal(signal.SIGINT)
        self.assertEqual(server.wait(WAIT_S), 0)


class LossyLab(labs.LabTest):
    def test_LossesAreFoundWithTheirPlane(self):
        self.up()
        port = str(programs.free_tcp_port())
        words = ("--peer", "127.0.0.1", "-p", port, "--json", "--seconds", "3", "-q", "2",
                 "--timeout", "60")

        def run(*more):
            server = self.lab.start_tool(2, "check", "--serve", "--once", "-p", port)
            programs.eventually(lambda: self.lab.is_listening(2, port_number), "nobody serves")
            client = self.lab.start_tool(0, "check", *words, *more)
            output, errors = client.communicate(timeout=WAIT_S)
            self.assertEqual(server.wait(WAIT_S), 0)
            return client.returncode, json.loads(output or "{}"), errors

        port_number = int(port)
        # All of the way of host 2 in plane 1.
        self.lab.do("loss", "host:2/plane:1", "20%")
        code, document, errors = run()
        self.assertEqual(code, 1, errors)
        found = [each for each in document["findings"] if each["verdict"] == "broken"]
        lossy = [each for each in found if each["found"].startswith("lost ")]
        self.assertTrue(lossy, found)
        self.assertTrue(all("plane 1 has" in each["found"] for each in lossy), lossy)
        self.assertTrue(document["transfer"]["verified"])


class Hosts(Check):
    def setUp(self):
        super().setUp()
        self.ssh = pathlib.Path(self.folder, "fake_ssh")
        self.ssh.write_text(FAKE_SSH, encoding="utf-8")
        self.ssh.chmod(self.ssh.stat().st_mode | stat.S_IXUSR)
        self.log = pathlib.Path(self.folder, "log")
        self.log.touch()
        self.environment["FAKE_SSH_LOG"] = str(self.log)

    def list_of(self, *lines):
        path = pathlib.Path(self.folder, "hosts.txt")
        path.write_bytes("\n".join([*lines, ""]).encode())
        return str(path)

    def hosts(self, expected, hosts, *words):
        return self.document(expected, "--hosts", hosts, "--ssh", str(self.ssh), "--mrc",
                             self.program, "-p", "0", "--seconds", "1", PATIENT, *words)

    def test_RingOfSoundHosts(self):
        hosts = self.list_of("# of the first rack", "", "n1 127.0.0.1", "n2\t127.0.0.1  # two",
                             "n3 me@127.0.0.1")
        # me@ is for ssh alone.
        self.ssh.write_text(FAKE_SSH.replace("host=$1", "host=${1#me@}"), encoding="utf-8")
        document = self.hosts(0, hosts)
        self.assertEqual([host["name"] for host in document["hosts"]], ["n1", "n2", "n3"])
        self.assertTrue(all(host["answered"] and host["program"] == document["program"]
                            for host in document["hosts"]))
        pairs = [(pair["client"], pair["server"]) for pair in document["pairs"]]
        self.assertEqual(pairs, [("n1", "n2"), ("n2", "n3"), ("n3", "n1")])
        self.assertTrue(all(pair["transfer"]["packets_sent"] > 0 for pair in document["pairs"]))
        self.assertNotIn("--peer me@", self.log.read_text(encoding="utf-8"))

    def test_TwoHostsAreOnePairAndTheTableShowsIt(self):
        hosts = self.list_of("n1 127.0.0.1", "n2 127.0.0.1")
        done = self.check(0, "--hosts", hosts, "--ssh", str(self.ssh), "--mrc", self.program,
                          "-p", "0", "--seconds", "1", PATIENT)
        lines = done.stdout.splitlines()
        self.assertRegex(lines[-1], r"^check: ok.*; 2 of 2 hosts answered, 1 pair$")
        self.assertRegex(lines[-3], r"^n1 +mrc \S+ +\w+ +n2 +\d")
        self.assertRegex(lines[-2], r"^n2 +mrc \S+ +\w+ +- ")

    def test_HostsThatFailAreALineEachAndTheOthersGoOn(self):
        hosts = self.list_of("a 127.0.0.1", "gone 127.0.0.9", "bare 127.0.0.8", "odd 127.0.0.7",
                             "old 127.0.0.6", "loud 127.0.0.5", "sick 127.0.0.3", "b 127.0.0.1")
        document = self.hosts(1, hosts)
        broken = {host["name"]: self.broken(host) for host in document["hosts"]}
        self.assertEqual((broken["a"], broken["b"]), ([], []))
        for name, text in (("gone", "unreachable: ssh: connect to host 127.0.0.9: No route"),
                           ("bare", "not found: sh: 1: mrc: not found"), ("odd", "bad  ]0;x"),
                           ("old", "mrc 9.9"), ("loud", "exit status 1")):
            self.assertEqual(len(broken[name]), 1, name)
            self.assertIn(text, broken[name][0]["found"])
            self.assertTrue(broken[name][0]["fix"])
        self.assertIn("nosuch0", json.dumps(broken["sick"]))
        self.assertEqual([(pair["client"], pair["server"]) for pair in document["pairs"]],
                         [("a", "b")])
        self.assertNotRegex(json.dumps(document, ensure_ascii=False), "[\x00-\x1f\x80-\x9f]")

    def test_LinesNameTheHost(self):
        hosts = self.list_of("gone 127.0.0.9", "sick 127.0.0.3")
        done = self.check(1, "--hosts", hosts, "--ssh", str(self.ssh), "--mrc", self.program)
        self.assertIn("broken  gone: ssh: unreachable: ", done.stdout)
        self.assertRegex(done.stdout, "broken  sick: .* no interface named nosuch0; correct it")
        self.assertRegex(done.stdout.splitlines()[-1], r"; 1 of 2 hosts answered, 0 pairs$")

    def test_SshThatIsNotThereIsALine(self):
        document = self.document(1, "--hosts", "n1", "--ssh", "/nonexistent/ssh")
        found = self.broken(document["hosts"][0])[0]
        self.assertIn("/nonexistent/ssh: cannot be started", found["found"])
        self.assertIn("--ssh", found["fix"])

    def test_LinesMayEndAsOnWindows(self):
        hosts = self.list_of("n1 127.0.0.1\r", "\r", "n2 127.0.0.1 # two\r")
        document = self.document(0, "--hosts", hosts, "--ssh", str(self.ssh), "--mrc",
                                 self.program, "--seconds", "0")
        self.assertEqual([host["name"] for host in document["hosts"]], ["n1", "n2"])

    def test_AFileThatIsNotThereIsNoHost(self):
        self.assertIn("there is no file nofile.txt",
                      self.refused(2, "check", "--hosts", "nofile.txt", "--ssh", str(self.ssh)))
        self.assertEqual(self.log.read_text(encoding="utf-8"), "")
        document = self.document(1, "--hosts", "127.0.0.9", "--ssh", str(self.ssh))
        self.assertIn("neither a file 127.0.0.9 nor", self.broken(document["hosts"][0])[0]["fix"])

    def test_AListWithoutEndIsRefused(self):
        self.assertIn("/dev/zero line 1 is too long",
                      self.refused(2, "check", "--hosts", "/dev/zero", "--ssh", str(self.ssh)))

    def test_AHostThatHangsIsGivenUpWhenTimeoutSays(self):
        began = time.monotonic()
        done = self.check(1, "--hosts", self.list_of("slow 127.0.0.4"), "--ssh", str(self.ssh),
                          "--timeout", "3")
        self.assertLess(time.monotonic() - began, 30)
        self.assertIn("no answer for 3 s", done.stdout)
        self.assertIn("looking at hosts", done.stderr)  # after two seconds

    def test_CtrlCEndsEverything(self):
        process = self.start("check", "--hosts", self.list_of("slow 127.0.0.4"), "--ssh",
                             str(self.ssh), "--json")
        programs.eventually(lambda: self.log.read_text(encoding="utf-8"), "ssh was not started")
        process.send_signal(signal.SIGINT)
        output, _ = process.communicate(timeout=WAIT_S)
        self.assertEqual(process.returncode, 130)
        self.assertFalse(json.loads(output)["ok"])

    def test_CtrlCLeavesNoVerdict(self):
        process = self.start("check", "--hosts", self.list_of("slow 127.0.0.4"), "--ssh",
                             str(self.ssh))
        programs.eventually(lambda: self.log.read_text(encoding="utf-8"), "ssh was not started")
        process.send_signal(signal.SIGINT)
        output, _ = process.communicate(timeout=WAIT_S)
        self.assertEqual(process.returncode, 130)
        self.assertRegex(output.splitlines()[-1], "^check: interrupted, no verdict; 0 of 1 host")

    def test_HostileListsStartNothing(self):
        for word in HOSTILE:
            hosts = self.list_of("good", word)
            line = self.refused(2, "check", "--hosts", hosts, "--ssh", str(self.ssh))
            number = 3 if "\n" in word else 2
            self.assertIn(f"hosts.txt line {number}", line, word)
            self.assertNotIn("\x1b", line)
        for text in ("a,-b", "a,,b", "a;b", "/no/such/file", "a,a", self.folder,
                     self.list_of("# nobody")):
            self.refused(2, "check", "--hosts", text, "--ssh", str(self.ssh))
        self.refused(2, "check", "--hosts=-a", "--ssh", str(self.ssh))
        self.assertEqual(self.log.read_text(encoding="utf-8"), "")


if __name__ == "__main__":
    programs.main()
