#!/usr/bin/env python3
"""Runs `mrc fabric export --format linux` on real Linux switches, sends packets along every path.

Usage: linux_tables_test.py <mrc>. Every device becomes a network namespace, every cable a veth
pair, every switch gets its exported script and nothing else. For each path that `mrc fabric path`
lists, a host sends UDP in SRv6 on the listed carrier; the packets must arrive, and exactly the
listed links must have carried them. Exit status 1 when something is wrong, 77 when this machine
cannot do it.
"""

import ctypes
import json
import os
import pathlib
import socket
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "support"))

from programs import skip  # noqa: E402  (found through the line above)

CLONE_NEWNET = 0x40000000
PACKETS = 20
PAYLOAD_BYTES = 1000
UDP_PORT = 4791

FABRICS = {
    "two tiers": (["--hosts", "6", "--t0", "3", "--t1", "3"], [(0, 1), (0, 2), (5, 0)]),
    "three tiers": (
        ["--hosts", "8", "--t0", "4", "--t1", "4", "--pods", "2", "--t2", "4"],
        [(0, 1), (0, 3), (0, 7), (6, 1)],
    ),
    "several cables": (
        ["--hosts", "4", "--t0", "2", "--t1", "2", "--cables", "3"],
        [(0, 3), (2, 0)],
    ),
    "second plane": (
        ["--planes", "2", "--hosts", "4", "--t0", "2", "--t1", "2"],
        [(1, 3)],
    ),
}


def ip(*arguments, check=True):
    return subprocess.run(["ip", *arguments], capture_output=True, text=True, check=check)


def enter_private_namespaces():
    """Starts this script again where it may make network namespaces that vanish with it."""
    if os.environ.get("MRC_LINUX_TABLES_INSIDE") == "1":
        return
    environment = os.environ | {"MRC_LINUX_TABLES_INSIDE": "1"}
    unshare = ["unshare", "--net", "--mount"] + ([] if os.geteuid() == 0 else ["--map-root-user"])
    try:
        allowed = subprocess.run([*unshare, "true"], capture_output=True, check=False).returncode
    except FileNotFoundError:
        skip("there is no unshare")
    if allowed != 0:
        skip("no network namespaces allowed")
    os.execvpe("unshare", [*unshare, sys.executable, "-B", *sys.argv], environment)


def check_kernel():
    """Skips on kernels that lack what the tables need."""
    subprocess.run(["mount", "-t", "tmpfs", "none", "/run"], capture_output=True, check=False)
    if ip("netns", "add", "trial", check=False).returncode != 0:
        skip("cannot make named network namespaces")
    steps = [
        "link add ve0 type veth peer name ve1",
        "link set ve0 up",
        "-6 route add fc00:1:1::/48 encap seg6local action End flavors next-csid lblen 32 "
        "nflen 16 dev ve0",
        "-6 route add fd00::1/128 encap seg6 mode encap.red segs fc00:1:1:: dev ve0",
    ]
    for step in steps:
        result = ip("-n", "trial", *step.split(), check=False)
        if result.returncode != 0:
            skip(f"ip {step}: {result.stderr.strip()}")
    ip("netns", "del", "trial")


class Fabric:
    """One plane of a fabric as namespaces; names of devices are those of mrc."""

    def __init__(self, program, flags, plane):
        self.program = program
        self.flags = flags
        self.plane = plane
        self.namespaces = {}
        self.tables = {}  # switch -> what `mrc fabric show --switch` says of it
        self.neighbours = {}  # switch -> {port number: (device, cable)}
        summary = self.mrc("show", "--json")
        for tier in summary["tiers"]:
            for index in range(tier["switches_per_plane"]):
                name = f"{tier['tier']}:{index}/plane:{plane}"
                self.tables[name] = self.mrc("show", "--json", "--switch", name)
                routes = self.tables[name]["routes"]
                self.neighbours[name] = {r["port"]: (r["neighbour"], r["cable"]) for r in routes}
        self.hosts = [f"host:{i}/plane:{plane}" for i in range(summary["hosts"])]
        for device in [*self.neighbours, *self.hosts]:
            namespace = device.replace(":", "").replace("/", "-")
            self.namespaces[device] = namespace
            ip("netns", "add", namespace)
            ip("-n", namespace, "link", "set", "lo", "up")

    def mrc(self, *arguments):
        command = [self.program, "fabric", *arguments, *self.flags]
        return json.loads(subprocess.run(command, capture_output=True, check=True).stdout)

    def port_to(self, device, neighbour, cable):
        if device in self.hosts:
            return "nic"
        end = (neighbour, cable)
        ports = [p for p, other in self.neighbours[device].items() if other == end]
        assert len(ports) == 1, f"{device} has {len(ports)} ports to {neighbour}"
        return f"swp{ports[0] + 1}"

    def plug_cables(self):
        for switch, ports in self.neighbours.items():
            for port, (other, cable) in ports.items():
                if other > switch and other not in self.hosts:
                    continue  # plugged from the other end
                ip("-n", self.namespaces[switch], "link", "add", f"swp{port + 1}", "type", "veth",
                   "peer", "name", self.port_to(other, switch, cable), "netns",
                   self.namespaces[other])

    def configure_switches(self):
        for switch in self.neighbours:
            script = subprocess.run(
                [self.program, "fabric", "export", "--format", "linux", "--switch", switch,
                 *self.flags], capture_output=True, text=True, check=True).stdout
            subprocess.run(["ip", "netns", "exec", self.namespaces[switch], "sh"], input=script,
                           text=True, check=True)

    def configure_hosts(self):
        for table in self.tables.values():
            for route in table["routes"]:
                if not route["neighbour"].startswith("host:"):
                    continue
                host = route["neighbour"]
                namespace = self.namespaces[host]
                own = route["prefix"].split(":")[2]
                gateway = table["prefix"].split(":")[2]
                block = ":".join(table["prefix"].split(":")[:2])
                for step in [
                    "link set nic up",
                    f"-6 addr add fe80::{own}/64 dev nic nodad",
                    f"-6 addr add {inner_address(host)}/128 dev lo nodad",
                    f"-6 route add {block}::/32 via fe80::{gateway} dev nic",
                    f"-6 route add {route['prefix']} encap seg6local action End.DT6 table 255 "
                    "dev nic",
                ]:
                    ip("-n", namespace, *step.split())

    def carried_bytes(self):
        """Bytes sent so far: (device, neighbour, cable) -> count."""
        counts = {}
        for device, namespace in self.namespaces.items():
            links = json.loads(ip("-n", namespace, "-s", "-j", "link", "show").stdout)
            sent = {link["ifname"]: link["stats64"]["tx"]["bytes"] for link in links}
            if device in self.hosts:
                counts[(device, "nic", 0)] = sent["nic"]
                continue
            for port, (other, cable) in self.neighbours[device].items():
                counts[(device, other, cable)] = sent[f"swp{port + 1}"]
        return counts

    def socket_in(self, host):
        """A UDP socket that lives in the namespace of a host."""
        libc = ctypes.CDLL(None, use_errno=True)
        here = os.open("/proc/self/ns/net", os.O_RDONLY)
        there = os.open(f"/run/netns/{self.namespaces[host]}", os.O_RDONLY)
        try:
            if libc.setns(there, CLONE_NEWNET) != 0:
                raise OSError(ctypes.get_errno(), "setns")
            return socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
        finally:
            libc.setns(here, CLONE_NEWNET)
            os.close(here)
            os.close(there)

    def close(self):
        for namespace in self.namespaces.values():
            ip("netns", "del", namespace)


def inner_address(host):
    return f"fd00::{int(host.split('/')[0].split(':')[1]) + 1:x}"


def check_path(fabric, source, destination, path):
    """Sends along one path; yields what is wrong."""
    sender_name, receiver_name = fabric.hosts[source], fabric.hosts[destination]
    ip("-n", fabric.namespaces[sender_name], "-6", "route", "replace",
       f"{inner_address(receiver_name)}/128", "encap", "seg6", "mode", "encap.red", "segs",
       path["carrier"], "dev", "nic")
    devices = [f"{device}/plane:{fabric.plane}" for device in path["route"].split()
               if not device.startswith("cable:")]
    # The last link leads to the host, to which there is one cable.
    expected = {(devices[0], "nic", 0), (devices[-2], devices[-1], 0)}
    expected |= {(one, other, path["cable"]) for one, other in zip(devices[1:-2], devices[2:-1])}
    before = fabric.carried_bytes()
    with fabric.socket_in(sender_name) as sender, fabric.socket_in(receiver_name) as receiver:
        receiver.bind((inner_address(receiver_name), UDP_PORT))
        receiver.settimeout(10)
        for number in range(PACKETS):
            payload = bytes([number]) * PAYLOAD_BYTES
            sender.sendto(payload, (inner_address(receiver_name), UDP_PORT))
            try:
                if receiver.recv(65536) != payload:
                    yield f"packet {number} arrived changed"
            except TimeoutError:
                yield f"packet {number} did not arrive"
                return
    after = fabric.carried_bytes()
    for link, count in after.items():
        carried = count - before[link] >= PACKETS * PAYLOAD_BYTES
        if carried != (link in expected):
            yield (f"{link[0]} > {link[1]} cable {link[2]} "
                   f"{'carried' if carried else 'did not carry'} the packets")


def check_fabric(program, flags, pairs, kind=Fabric):
    """Returns (number of paths, problems)."""
    plane = 1 if "--planes" in flags else 0
    fabric = kind(program, flags, plane)
    paths, problems = 0, []
    try:
        fabric.plug_cables()
        fabric.configure_switches()
        fabric.configure_hosts()
        for source, destination in pairs:
            listed = fabric.mrc("path", "--json", "--from", str(source), "--to", str(destination),
                                "--plane", str(plane))
            for path in listed["paths"]:
                paths += 1
                problems += [f"{path['carrier']} ({path['route']}): {what}"
                             for what in check_path(fabric, source, destination, path)]
    finally:
        fabric.close()
    return paths, problems


def check_fabrics(program, fabrics, kind=Fabric):
    """Prints what is wrong; the exit status."""
    failed = False
    for name, (flags, pairs) in fabrics.items():
        paths, problems = check_fabric(program, flags, pairs, kind)
        failed = failed or bool(problems)
        for problem in problems:
            print(f"{name}: {problem}")
        print(f"{name}: {paths} paths, {len(problems)} problems")
    return 1 if failed else 0


def main():
    enter_private_namespaces()
    check_kernel()
    return check_fabrics(sys.argv[1], FABRICS)


if __name__ == "__main__":
    sys.exit(main())
