#!/usr/bin/env python3
"""Labs of network namespaces: with the kernel's SRv6 as switches, and with ours.

Usage: netns_test.py <mrc> [unittest arguments]. Exit status 77 where namespaces or SRv6 are not to
be had.
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

import lab_test  # noqa: E402
import programs  # noqa: E402  (found through the line above)
from programs import WAIT_S, eventually  # noqa: E402


def namespaces():
    listed = subprocess.run(["ip", "netns", "list"], capture_output=True, text=True, check=True)
    return {line.split()[0] for line in listed.stdout.splitlines()}


class Netns(lab_test.Lab):
    switch = None
    server = "10.0.0.1"

    def setUp(self):
        super().setUp()
        self.before = namespaces()

    def up(self, *flags):
        return super().up("--netns", "--switch", self.switch, *flags)

    def own_namespaces(self):
        return sorted(namespaces() - self.before)

    def frames(self, plane):
        return self.lab.status()["planes"][plane]["frames"]

    def wait_for_frames(self, client, count):
        """Until each plane has carried so many more; on a slow machine the client may be done."""
        start = [self.frames(plane) for plane in (0, 1)]
        eventually(lambda: client.poll() is not None or
                   all(self.frames(p) > start[p] + count for p in (0, 1)),
                   "a plane carries nothing")


class Common:
    """What both kinds of switches do."""

    def test_traffic_goes_on_while_things_break_and_come_back(self):
        self.up()
        server, client = self.perf("-s", "256K", "-D", "8")
        self.wait_for_frames(client, 200)
        self.must("cut", "t0:0/t1:1/plane:0")
        time.sleep(0.3)
        self.must("reboot", "t1:2/plane:1", "--for", "300ms")
        time.sleep(0.5)
        self.must("cut", "host:2/plane:1")
        eventually(lambda: [p["state"] for p in self.lab.status()["ports"]
                            if (p["host"], p["plane"]) == (2, 1)] == ["down"], "the port is up")
        time.sleep(0.3)
        self.must("heal", "all")
        self.wait_for_frames(client, 200)
        self.finish(server, client)
        self.assertEqual(self.lab.status()["links"], [])

    def test_frames_on_a_switch_are_plain_srv6(self):
        if shutil.which("tshark") is None:
            self.skipTest("needs tshark")
        self.up()
        file = os.path.join(self.folder, "c.pcapng")
        capture = self.start("capture", "t0:0/t1:*/plane:*", file)
        eventually(lambda: os.path.exists(file), "no file")
        self.finish(*self.perf("-s", "64K", "-n", "8"))
        capture.send_signal(signal.SIGINT)
        programs.finish(capture)
        shown = subprocess.run(
            ["tshark", "-r", file, "-Y", "ipv6.nxt == 41", "-T", "fields", "-e", "ipv6.dst", "-e",
             "ipv6.nxt", "-e", "udp.dstport"], capture_output=True, text=True, timeout=WAIT_S,
            check=True)
        lines = shown.stdout.split("\n")[:-1]
        self.assertGreater(len(lines), 100)
        for line in lines:
            destinations, headers, port = line.split("\t")
            carrier, inner = destinations.split(",")
            # T0 has dropped its own uSID, T1 will drop its own or has done so.
            self.assertRegex(carrier, r"^fc00:[12]:(800[0-3]:100[01]|100[01]):10[01]::$")
            self.assertRegex(inner, r"^fd00:1::[1-4]$")
            self.assertEqual((headers, port), ("41,17", "4791"))  # no routing header
        ways = {line.split(":")[2] for line in lines if line.split(":")[2].startswith("8")}
        self.assertEqual(ways, {"8000", "8001", "8002", "8003"})

    def test_several_processes_share_a_host(self):
        self.up()
        out = self.must("exec", "1", "sh", "-c", "ip -br link && echo $MRC_LAB_ADDRESS")
        self.assertIn("nic1", out)
        self.assertTrue(out.endswith("10.0.0.2\n"), out)
        pairs = [self.perf("-s", "64K", "-D", "2") for _ in range(3)]
        for pair in pairs:
            self.finish(*pair)

    def test_nothing_is_left_behind(self):
        self.up()
        self.assertEqual(len([n for n in self.own_namespaces() if ".host-" in n]), 4)
        self.must("down")
        self.assertEqual(self.own_namespaces(), [])
        for way_out in ("down", "up", "plain up"):
            self.up()
            os.kill(self.lab.status()["process"], signal.SIGKILL)
            eventually(lambda: "dead" in self.tool("status").stderr, "the lab lives")
            if way_out == "up":
                self.up()
            elif way_out == "plain up":
                self.lab.do("up", "--hosts", "2")
                self.assertEqual(self.own_namespaces(), [])
            self.must("down")
            self.assertEqual(self.own_namespaces(), [])


class KernelSwitches(Common, Netns):
    switch = "kernel"

    def test_loss_and_one_direction(self):
        self.up()
        self.assertIn("damage", self.refused(2, "fault", "t0:0/t1:1/plane:0 corrupt 1% @0"))
        result = self.tool("loss", "t0:0/t1:1/plane:0", "20%")
        if result.returncode != 0:
            self.assertIn("cls_bpf", result.stderr)
            self.skipTest(result.stderr.strip())
        self.must("fault", "t1:2>t0:1/plane:1 down @0")
        self.must("degrade", "t0:1/t1:0/plane:0", "50%")
        self.finish(*self.perf("-s", "256K", "-n", "60"))
        self.assertEqual({link["condition"] for link in self.lab.status()["links"]},
                         {"loss 20 %", "down", "rate 50 %"})
        self.must("heal", "all")
        self.assertEqual(self.lab.status()["links"], [])


class OurSwitches(Common, Netns):
    switch = "mrc"


class PlainCable(programs.ToolTest):
    """Two devices whose cable is a pair of interfaces, without a lab and without SRv6."""

    def setUp(self):
        super().setUp()
        self.spaces = [f"mrc-cable-{os.getpid()}-{n}" for n in (1, 2)]
        for space in self.spaces:
            self.ip("netns", "add", space)
            self.addCleanup(self.ip, "netns", "del", space)
        self.ip("-n", self.spaces[0], "link", "add", "e0", "type", "veth", "peer", "name", "e0",
                "netns", self.spaces[1])
        for number, space in enumerate(self.spaces, 1):
            self.ip("-n", space, "link", "set", "e0", "up")
            self.ip("-n", space, "addr", "add", f"fd09::{number}/64", "dev", "e0", "nodad")

    @staticmethod
    def ip(*words):
        subprocess.run(["ip", *words], check=True, timeout=WAIT_S)

    def command(self, number, *words):
        return ["ip", "netns", "exec", self.spaces[number - 1], self.program, *words]

    def perf(self, number, *words):
        config = os.path.join(self.folder, f"{number}.toml")
        with open(config, "w", encoding="utf-8") as file:
            file.write(f"""[device.mrc0]
backend = "wire"
port_rate = "100M"
directory = "{self.folder}/state{number}"
plane = [{{ address = "fd00::{number}/64", interface = "e0" }}]
""")
        return self.start(number, "perf", "write_bw", "-s", "64K", "-D", "3", *words,
                          env=dict(os.environ, MRC_CONFIG=config))

    def sent_bytes(self):
        shown = subprocess.run(["ip", "-n", self.spaces[1], "-s", "-j", "link", "show", "e0"],
                               capture_output=True, text=True, check=True)
        return json.loads(shown.stdout)[0]["stats64"]["tx"]["bytes"]

    def test_goes_down_and_comes_back_under_traffic(self):
        server = self.perf(1)
        listening = ["ip", "netns", "exec", self.spaces[0], "cat", "/proc/net/tcp6",
                     "/proc/net/tcp"]
        eventually(lambda: server.poll() is not None or " 0A " in subprocess.run(
            listening, capture_output=True, text=True, check=True).stdout, "no server")
        client = self.perf(2, "--json", "fd09::1")
        eventually(lambda: client.poll() is not None or self.sent_bytes() > 1_000_000,
                   "nothing moves")
        # Once the far end, which takes the carrier, and once our own.
        for space in self.spaces:
            self.ip("-n", space, "link", "set", "e0", "down")
            time.sleep(0.2)
            self.ip("-n", space, "link", "set", "e0", "up")
        # The sides speak TCP over the same interface, whose address went with it.
        for number, space in enumerate(self.spaces, 1):
            self.ip("-n", space, "addr", "replace", f"fd09::{number}/64", "dev", "e0", "nodad")
        before = self.sent_bytes()
        eventually(lambda: client.poll() is not None or self.sent_bytes() > before + 1_000_000,
                   "it did not come back")
        out = programs.finish(client)
        programs.finish(server)
        # What fits the interfaces' 1,500 bytes.
        self.assertEqual(json.loads(out)["mtu_bytes"], 1024, out)


class BadInput(lab_test.Lab):
    def test_one_line_and_the_way_out(self):
        self.assertIn("--netns", self.refused(2, "up", "--switch", "kernel"))
        self.assertIn("two tiers", self.refused(
            2, "up", "--netns", "--switch", "kernel", "--hosts", "8", "--t0", "4", "--t1", "4",
            "--pods", "2", "--t2", "4"))
        self.assertIn("trim", self.refused(2, "up", "--netns", "--switch", "kernel", "--no-trim"))


def check_machine():
    """Leaves with status 77 where the tests cannot run, whatever our program does."""
    if os.geteuid() != 0:
        programs.skip("needs root")
    trial = f"mrc-trial-{os.getpid()}"
    steps = [
        f"ip netns add {trial}",
        f"ip -n {trial} link add ve0 type veth peer name ve1",
        f"ip -n {trial} link set ve0 up",
        f"ip -n {trial} -6 route add fc00:1:1::/48 encap seg6local action End flavors next-csid "
        "lblen 32 nflen 16 dev ve0",
        f"tc -n {trial} qdisc add dev ve0 root tbf rate 100mbit burst 16k limit 100k",
    ]
    try:
        for step in steps:
            done = subprocess.run(step.split(), capture_output=True, text=True, check=False)
            if done.returncode != 0:
                programs.skip(f"{step}: {done.stderr.strip()}")
    except FileNotFoundError as missing:
        programs.skip(str(missing))
    finally:
        subprocess.run(["ip", "netns", "del", trial], capture_output=True, check=False)


if __name__ == "__main__":
    check_machine()
    programs.main()
