#!/usr/bin/env python3
"""The controller API and `mrc ctl` as users meet them, and a controller that changes a device while
another process writes over it.

Usage: ctl_test.py --mrc PROGRAM --transfer PROGRAM --examples DIR --include DIR --libraries DIR
                   --cc CC [--sanitize FLAGS] [unittest arguments]
"""

import argparse
import contextlib
import json
import os
import pathlib
import resource
import shutil
import socket
import struct
import subprocess
import sys
import threading
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "support"))

import programs  # noqa: E402  (found through the line above)
from programs import WAIT_S  # noqa: E402

arguments = None


class Node(programs.ToolTest):
    """A device of its own for each test. Words are those behind `mrc ctl`."""

    def setUp(self):
        super().setUp()
        os.chmod(self.folder, 0o755)  # for other users
        self.environment = programs.device_environment(self.folder)

    def command(self, *words):
        return [arguments.mrc, "ctl", *words]

    def shown(self):
        return json.loads(self.must("show", "--json", "--evs"))

    def states(self, profile):
        return [ev["state"] for ev in json.loads(self.must("show", str(profile), "--json"))["evs"]]

    def make_profile(self, profile=7, count=32):
        """Explicit EVs, ports in turn."""
        self.must("format", "create", "1", "--mode", "stev", "--widths", "16,16")
        evs = []
        for i in range(count):
            evs += ["--ev", f"{i % 4 + 1}:{0x10000 * i + 0xC000 + i:08x}"]
        self.must("ev", "create", str(profile), "--mode", "explicit", "--format", "1",
                 "--min-active", "1", *evs)


class Tool(Node):
    def test_ShowsAFreshDevice(self):
        document = self.shown()
        self.assertEqual(document["device"], "mrc0")
        self.assertEqual([port["admin_state"] for port in document["ports"]], ["enabled"] * 4)
        self.assertEqual(document["ev_profiles"], [])
        self.assertIn("port 4: enabled", self.must("show"))

    def test_PortsAreDisabledForEverybody(self):
        self.must("port", "disable", "2", "3")
        states = [port["admin_state"] for port in self.shown()["ports"]]
        self.assertEqual(states, ["enabled", "disabled", "disabled", "enabled"])
        self.must("port", "enable", "2", "3")
        self.refused(2, "port", "enable", "9")
        self.refused(2, "port", "enable", "0")

    def test_ProfilesAreCreatedShownAndDeleted(self):
        self.make_profile()
        self.must("ev", "create", "8", "--mode", "generated", "--format", "1", "--count", "16",
                 "--field", "16:0xC000:0x3FFF", "--field", "16:0")
        self.must("ev", "create", "9", "--mode", "auto")
        self.must("cc", "create", "2", "--set", "base_rtt=12000", "--set", "gamma=0.75")
        self.must("cc", "create", "3", "--algorithm", "none")
        document = self.shown()
        self.assertEqual([p["mode"] for p in document["ev_profiles"]],
                         ["explicit", "generated", "auto"])
        self.assertEqual(len(document["ev_profiles"][1]["evs"]), 16)
        for ev in document["ev_profiles"][1]["evs"]:
            # 14 bits at the top of the compact EV; in packets behind two that are fixed.
            drawn = int(ev["ev"].split(":")[1], 16) >> 18
            self.assertEqual(ev["in_packets"], f"{ev['port']}:{0xC0000000 | drawn << 16:08x}")
        self.assertNotIn("in_packets", document["ev_profiles"][0]["evs"][0])
        self.assertIn(", in packets ", self.must("show", "8"))
        self.assertEqual(document["cc_profiles"][0]["settings"]["gamma"], 0.75)
        self.assertEqual(document["cc_profiles"][1]["algorithm"], "none")
        self.assertIn("in use", self.refused(1, "format", "delete", "1"))
        for profile in ("7", "8", "9"):
            self.must("ev", "delete", profile)
        self.must("format", "delete", "1")
        self.must("cc", "delete", "2")
        self.must("cc", "offline", "3")
        self.must("cc", "online", "3")
        self.must("cc", "delete", "3")
        document = self.shown()
        for kind in ("formats", "ev_profiles", "cc_profiles"):
            self.assertEqual(document[kind], [])

    def test_EvsAreDeniedAndAllowed(self):
        self.make_profile(count=8)
        self.must("ev", "deny", "7", "0-1", "port=4", "3:0002c002")
        self.assertEqual(self.states(7),
                         ["denied", "denied", "denied", "denied", "good", "good", "good", "denied"])
        self.must("ev", "allow", "7", "all")
        self.assertEqual(self.states(7), ["good"] * 8)
        self.refused(1, "ev", "deny", "7", "1:00000001")
        self.refused(2, "ev", "deny", "7", "8")
        self.refused(2, "ev", "deny", "7", "port=5")

    def test_AFileSetsEverythingUp(self):
        path = os.path.join(self.folder, "setup.toml")
        pathlib.Path(path).write_text(
            'disabled_ports = [4]\n[[format]]\nid = 1\nmode = "srv6"\nwidths = [32, 16, 16]\n'
            '[[ev_profile]]\nid = 2\nmode = "explicit"\nformat = 1\n'
            'evs = ["1:fc00:0:1:2::", "2:fc00:0:3:4::"]\n[[cc_profile]]\nid = 3\ngamma = 0.5\n',
            encoding="utf-8")
        self.must("apply", path)
        document = self.shown()
        self.assertEqual(document["ports"][3]["admin_state"], "disabled")
        self.assertEqual(document["ev_profiles"][0]["evs"][1]["ev"], "2:fc00:0:3:4::")
        self.assertEqual(document["cc_profiles"][0]["settings"]["gamma"], 0.5)

    def test_ABadFileIsOneLineWithItsPlace(self):
        for text, place in (("foo", ":1:"), ("x = 1\n", ":1:1"), ("[[format]]\n", ":1:"),
                            ("[[ev_profile]]\nid = 1\nmode = 5\n", ":3:8"),
                            ('[[cc_profile]]\nid = 1\ngamma = "x"\n', ":3:9")):
            path = os.path.join(self.folder, "bad.toml")
            pathlib.Path(path).write_text(text, encoding="utf-8")
            self.assertIn("bad.toml" + place, self.refused(2, "apply", path))
        self.assertEqual(self.shown()["formats"], [])

    def test_WhatFailsHalfwayLeavesNothing(self):
        self.must("format", "create", "1", "--mode", "stev", "--widths", "16,16")
        self.refused(1, "ev", "create", "7", "--mode", "explicit", "--format", "1", "--ev",
                     "9:0001c350")
        self.refused(1, "format", "create", "2", "--mode", "udp", "--widths", "17")
        self.assertEqual(len(self.shown()["formats"]), 1)
        self.assertEqual(self.shown()["ev_profiles"], [])

    def test_BadWordsAreUsageErrors(self):
        self.refused(2, "format", "create", "1", "--mode", "x", "--widths", "16")
        self.refused(2, "format", "create", "1", "--mode", "stev", "--widths", "16,x")
        self.refused(2, "ev", "create", "1", "--mode", "generated", "--field", "1")
        self.refused(2, "cc", "create", "1", "--set", "foo=1")
        self.refused(2, "probe", "bogus")
        self.refused(1, "show", "77")
        self.refused(1, "-d", "nosuch", "show")
        self.refused(2)

    def test_ProbesAreAnsweredOrTimeOut(self):
        document = json.loads(self.must("probe", "127.0.0.1", "--count", "2", "--interval", "0",
                                       "--timeout", "20", "--json"))
        self.assertEqual([(p["port"], p["answered"]) for p in document["ports"]],
                         [(1, 2), (2, 2), (3, 2), (4, 2)])
        done = self.tool("probe", "127.0.0.77", "--count", "1", "--port", "2", "--timeout",
                             "0.2")
        self.assertEqual(done.returncode, 4, done.stderr)
        self.assertIn("0 of 1 answered", done.stdout)

    @unittest.skipIf(os.geteuid() != 0, "needs root")
    def test_AnotherUserMayLookButNotTouch(self):
        self.make_profile(count=4)
        other = {"user": 12345, "group": 12345, "extra_groups": []}
        self.assertEqual(self.tool("show", **other).returncode, 0)
        for words in (("port", "disable", "1"), ("ev", "deny", "7", "all"), ("ev", "delete", "7"),
                      ("watch", "--seconds", "1"), ("probe", "127.0.0.1")):
            self.assertIn("not permitted", self.refused(1, *words, **other))
        self.assertEqual(self.states(7), ["good"] * 4)


class Example(Node):
    @unittest.skipIf(sys.platform != "linux", "needs Linux")
    def test_TheWalkThroughWorksAndLeavesNothing(self):
        source = os.path.join(self.folder, "examples")
        shutil.copytree(arguments.examples, source)
        flags = "-O1 -g -Wall -Wextra -Werror"
        if arguments.sanitize:
            flags += f" -fsanitize={arguments.sanitize}"
        subprocess.run(["make", "-s", "-C", source, "ctl_walkthrough", f"CC={arguments.cc}",
                        f"CFLAGS={flags}", f"MRC_INCLUDE={arguments.include}",
                        f"MRC_LIB={arguments.libraries}"], check=True)
        environment = dict(self.environment, LD_LIBRARY_PATH=arguments.libraries)
        done = programs.run([os.path.join(source, "ctl_walkthrough")], env=environment)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertEqual(done.stdout.splitlines()[-1], "ok")
        document = self.shown()
        for kind in ("formats", "ev_profiles", "cc_profiles"):
            self.assertEqual(document[kind], [])


class Capture:
    """The ways that data takes to some UDP port of loopback: source port and destination."""

    PROCESSES = 64  # of a host have ports in a row
    DATA = 512      # bytes and more; answers are shorter

    def __init__(self, port):
        self.port, self.paths, self.ended = port, set(), False
        everything = 3  # ETH_P_ALL
        try:
            self.socket = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM,
                                        socket.htons(everything))
        except PermissionError:
            raise unittest.SkipTest("needs the right to capture") from None
        self.socket.bind(("lo", everything))
        self.socket.settimeout(0.2)
        self.thread = threading.Thread(target=self.run)

    def run(self):
        while not self.ended:
            with contextlib.suppress(TimeoutError):
                self.look(self.socket.recv(64))

    def look(self, packet):
        version, protocol, header = packet[0] >> 4, packet[9], (packet[0] & 15) * 4
        if version != 4 or protocol != socket.IPPROTO_UDP:
            return
        source, to, length = struct.unpack_from("!HHH", packet, header)
        if length >= self.DATA and self.port <= to < self.port + self.PROCESSES:
            self.paths.add((source, packet[16:20]))

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.ended = True
        self.thread.join()
        self.socket.close()


class Cables:
    """The far ends of a device's cables: a switch that gives every frame back, and notes the ways
    that data took: cable, flow label and UDP source port, which is all that carries an EV."""

    DATA = 512  # bytes and more; answers are shorter

    def __init__(self, folder, count):
        self.paths, self.ended = set(), False
        self.names = [str(pathlib.Path(folder, f"cable{i}")) for i in range(count)]
        self.threads, self.listeners = [], []
        for index, name in enumerate(self.names):
            listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            listener.bind(name)
            listener.listen(1)
            listener.settimeout(0.2)
            self.listeners.append(listener)
            self.threads.append(threading.Thread(target=self.run, args=(index, listener)))

    def run(self, index, listener):
        while not self.ended:
            with contextlib.suppress(TimeoutError, ConnectionError):
                cable, _ = listener.accept()
                with cable:
                    cable.settimeout(0.2)
                    self.give_back(index, cable)

    def give_back(self, index, cable):
        """Until the device pulls the plug."""
        while not self.ended:
            with contextlib.suppress(TimeoutError):
                frame = cable.recv(16384)
                if not frame:
                    return
                self.look(index, frame)
                cable.send(frame)

    def look(self, index, frame):
        packet = frame[14:]  # Ethernet
        if len(packet) < self.DATA:
            return
        is_v4 = packet[0] >> 4 == 4
        label = 0 if is_v4 else int.from_bytes(packet[0:4], "big") & 0xFFFFF
        source, = struct.unpack_from("!H", packet, (packet[0] & 15) * 4 if is_v4 else 40)
        self.paths.add((index, label, source))

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.ended = True
        for thread in self.threads:
            thread.join()
        for listener in self.listeners:
            listener.close()


class Transfer(Node):
    """Another process writes while the device is controlled."""

    @contextlib.contextmanager
    def transfer(self, *profiles):
        process = subprocess.Popen([arguments.transfer, *profiles], env=self.environment, text=True,
                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        try:
            self.assertEqual(process.stdout.readline().strip(), "ready")
            yield process
        finally:
            process.kill()
            process.wait()
            process.stdin.close()
            process.stdout.close()

    def tell(self, process, line):
        process.stdin.write(line + "\n")
        process.stdin.flush()

    def ask(self, process, line):
        self.tell(process, line)
        return process.stdout.readline().split()

    def ports(self, process):
        return [int(number) for number in self.ask(process, "ports")[1:]]

    def await_port_state(self, process, port, state):
        programs.eventually(
            lambda: self.ask(process, f"state {port}") == ["state", str(port), state],
            f"port {port} is not {state}")

    def test_APortDisabledInTheMiddleIsLeft(self):
        self.make_profile()
        with self.transfer("7") as process:
            self.assertEqual(self.ask(process, "write 8"), ["written", "8"])
            self.assertTrue(all(count > 0 for count in self.ports(process)))
            self.tell(process, "write 60")
            self.must("port", "disable", "3")
            self.assertEqual(process.stdout.readline().split(), ["written", "60"])
            self.await_port_state(process, 3, "down")
            self.ports(process)
            self.assertEqual(self.ask(process, "write 8"), ["written", "8"])
            sent = self.ports(process)
            self.assertEqual(sent[2], 0, sent)
            self.assertTrue(all(count > 0 for count in sent[:2] + sent[3:]), sent)
            self.must("port", "enable", "3")
            self.await_port_state(process, 3, "up")
            self.assertEqual(self.ask(process, "write 20"), ["written", "20"])
            self.assertGreater(self.ports(process)[2], 0)
            self.assertEqual(self.ask(process, "quit"), [])
            self.assertEqual(process.wait(WAIT_S), 0)

    def test_PathsDeniedInTheMiddleAreLeft(self):
        self.make_profile()
        with self.transfer("7") as process:
            self.assertEqual(self.ask(process, "write 4"), ["written", "4"])
            self.tell(process, "write 60")
            self.must("ev", "deny", "7", "port=2", "port=4")
            self.assertEqual(process.stdout.readline().split(), ["written", "60"])
            self.ports(process)
            self.assertEqual(self.ask(process, "write 8"), ["written", "8"])
            sent = self.ports(process)
            self.assertEqual((sent[1], sent[3]), (0, 0), sent)
            self.assertEqual(self.states(7).count("denied"), 16)
            self.must("ev", "allow", "7", "all")
            self.assertEqual(self.ask(process, "write 20"), ["written", "20"])
            sent = self.ports(process)
            self.assertTrue(all(count > 0 for count in sent), sent)

    def make_ocps_generated_profile(self, count):
        """Fields of 8, 4 and 4 bits: all of it in the half of the EV that IPv4 does not carry."""
        self.must("format", "create", "13", "--mode", "stev", "--widths", "8,4,4")
        self.must("ev", "create", "1", "--mode", "generated", "--format", "13", "--count",
                  str(count), "--field", "8:0:0xff", "--field", "4:0:0xf", "--field", "4:0:0xf")

    def see_paths(self, capture, count):
        """Writes until the capture has as many ways as were generated, and never has more."""
        with capture, self.transfer("1") as process:
            for _ in range(200):
                self.assertEqual(self.ask(process, "write 16"), ["written", "16"])
                if len(capture.paths) >= count:
                    break
            self.assertEqual(len(capture.paths), count)

    def test_OcpsGeneratedProfileHasAPathOnTheWireForEachEv(self):
        _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
        count = min(1024, most // 4 - 64)  # each path is a socket, a quarter is for them
        self.make_ocps_generated_profile(count)
        self.see_paths(Capture(int(self.environment["MRC_PORT"])), count)

    def see_paths_on_cables(self, network):
        cables = Cables(self.folder, 4)
        planes = ", ".join(f'{{ address = "{network}", wire = "{name}" }}' for name in cables.names)
        config = pathlib.Path(self.folder, "wire.toml")
        config.write_text(f'[device.mrc0]\nbackend = "wire"\nplane = [{planes}]\n',
                          encoding="utf-8")
        self.environment["MRC_CONFIG"] = str(config)
        self.make_ocps_generated_profile(1024)
        self.see_paths(cables, 1024)

    def test_OcpsGeneratedProfileHasAPathOnCablesForEachEv(self):
        self.see_paths_on_cables("fc00::1/64")

    def test_OcpsGeneratedProfileHasAPathOnCablesForEachEvWithoutFlowLabels(self):
        self.see_paths_on_cables("10.0.0.1/24")

    def test_ProfilesInUseStayUntilTheirProcessIsGone(self):
        self.make_profile()
        self.must("cc", "create", "2", "--set", "base_rtt=20000")
        with self.transfer("7", "2") as process:
            self.assertEqual(self.ask(process, "write 2"), ["written", "2"])
            self.assertIn("in use", self.refused(1, "ev", "delete", "7"))
            self.assertIn("in use", self.refused(1, "cc", "delete", "2"))
            self.assertEqual(self.ask(process, "write 2"), ["written", "2"])
            process.kill()
            process.wait()
            self.must("ev", "delete", "7")
            self.must("cc", "delete", "2")

    def test_AQueuePairNeedsAProfileThatIsOnline(self):
        self.make_profile()
        self.must("ev", "offline", "7")
        for profile in ("7", "8"):
            done = programs.run([arguments.transfer, profile], env=self.environment, input="")
            self.assertEqual(done.returncode, 1)
            self.assertIn("INIT: errno", done.stderr)


def main():
    global arguments
    parser = argparse.ArgumentParser()
    for name in ("mrc", "transfer", "examples", "include", "libraries", "cc"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--sanitize", default="")
    arguments, rest = parser.parse_known_args()
    programs.leave_cleanly_when_told()
    unittest.main(argv=[sys.argv[0], *rest])


if __name__ == "__main__":
    main()
