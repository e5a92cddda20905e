#!/usr/bin/env python3
"""A network that fails and misbehaves: interfaces down and up, ports disabled, foreign packets.

Usage: network_test.py <peer program> [unittest arguments]. Two hosts are network namespaces joined
by four veth pairs. Exit status 77 where those cannot be made.
"""

import os
import pathlib
import random
import socket
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "support"))

import netns  # noqa: E402  (found through the line above)
import peer_driver  # noqa: E402
import programs  # noqa: E402

MIB = 1 << 20
PLANES = 4
UDP_PORT = 4791
ETH_P_IP = 0x0800
HEADERS_BYTES = 14 + 20 + 8
STREAM_MS = 5000


class Network(peer_driver.PeerTest):
    hosts = None

    def setUp(self):
        super().setUp()
        planes = ",".join(self.hosts.interface(p) for p in range(1, PLANES + 1))
        self.variables.update(MRC_IFACES=planes, MRC_PORT=str(UDP_PORT))
        for host in netns.HOSTS:
            for plane in range(1, PLANES + 1):
                self.hosts.set_link(host, plane, "up")

    def start_on(self, host):
        # Two hosts have two state directories.
        self.variables["MRC_STATE_DIR"] = os.path.join(self.folder, host)
        return self.start(before=["ip", "netns", "exec", host])

    def stream(self, milliseconds=STREAM_MS):
        """A transfer from a to b that runs on; returns both and the target."""
        sender, receiver = self.start_on("a"), self.start_on("b")
        ends = sender.queue_pair("q"), receiver.queue_pair("q")
        peer_driver.connect(sender, ends[0], receiver, ends[1])
        sender.memory("source", MIB, seed=1)
        target = receiver.memory("target", MIB)
        sender.tell(f"stream q source {MIB} {target.address} {target.rkey} {milliseconds}")
        return sender, receiver, target

    def assert_ends_well(self, sender, receiver):
        self.assertRegex(sender.hear(), r"^done [1-9]\d* ok$", sender.stderr())
        receiver.ask(f"check target 0 {MIB} 1 0")
        receiver.ask("guards target")
        self.assert_moves_data(sender, receiver)
        self.assertEqual([sender.quit(), receiver.quit()], [0, 0])

    def sent(self, plane):
        return self.hosts.carried_bytes("a")[plane - 1][0]

    def assert_carries(self, plane, wait_s=10):
        """Within a while, data goes over that plane."""
        before = self.sent(plane)
        deadline = time.monotonic() + wait_s
        while self.sent(plane) < before + MIB:
            self.assertLess(time.monotonic(), deadline, f"plane {plane} carries nothing")
            time.sleep(0.05)

    def carries_nothing(self, plane):
        before = self.sent(plane)
        time.sleep(0.7)
        return self.sent(plane) - before < MIB

    def test_AllPlanesAreUsed(self):
        sender, receiver, _ = self.stream(2000)
        for plane in range(1, PLANES + 1):
            self.assert_carries(plane)
        self.assert_ends_well(sender, receiver)

    def test_AnInterfaceGoesDownAndComesBackInMidTransfer(self):
        for host in netns.HOSTS:
            sender, receiver, _ = self.stream()
            self.assert_carries(2)
            self.hosts.set_link(host, 2, "down")
            self.assert_carries(3)
            time.sleep(0.5)
            self.hosts.set_link(host, 2, "up")
            self.assert_carries(2)
            self.assert_ends_well(sender, receiver)

    def test_ThreeOfFourInterfacesGoDown(self):
        sender, receiver, _ = self.stream()
        time.sleep(0.5)
        for plane in (1, 2, 3):
            self.hosts.set_link("b", plane, "down")
        self.assert_carries(4)
        self.assert_ends_well(sender, receiver)

    def test_AllInterfacesAreDownForAWhile(self):
        sender, receiver, _ = self.stream()
        time.sleep(0.5)
        for plane in range(1, PLANES + 1):
            self.hosts.set_link("a", plane, "down")
        time.sleep(0.7)
        for plane in range(1, PLANES + 1):
            self.hosts.set_link("a", plane, "up")
        self.assert_ends_well(sender, receiver)

    def test_AnAddressIsTakenAwayAndGivenBack(self):
        sender, receiver, _ = self.stream()
        time.sleep(0.5)
        address = f"{self.hosts.address('a', 3)}/24"
        netns.ip("-n", "a", "addr", "del", address, "dev", self.hosts.interface(3))
        time.sleep(0.7)
        netns.ip("-n", "a", "addr", "add", address, "dev", self.hosts.interface(3))
        self.assert_carries(3)
        self.assert_ends_well(sender, receiver)

    def await_line(self, sender, line):
        deadline = time.monotonic() + 30
        while line not in sender.stderr():
            self.assertLess(time.monotonic(), deadline, f"not told: {line}; {sender.stderr()}")
            time.sleep(0.05)

    def test_APlaneThatFallsSilentIsToldThoughItsLinkIsUp(self):
        sender, receiver, _ = self.stream(20000)
        self.assert_carries(2)
        peer, interface = self.hosts.address("b", 2), self.hosts.interface(2)
        nobody = ("lladdr", "02:00:00:00:00:99", "nud", "permanent")
        netns.ip("-n", "a", "neigh", "replace", peer, "dev", interface, *nobody)
        of_b = self.hosts.address("b", 1)  # a device is named by its first port
        self.await_line(sender, f"no answers from {of_b} on plane 1 (port 2 of 4) for a second")
        self.assertIn("3 others carry its traffic", sender.stderr())
        netns.ip("-n", "a", "neigh", "del", peer, "dev", interface)
        self.await_line(sender, f"{of_b} answers on plane 1 again")
        self.assertEqual(sender.stderr().count("no answers from"), 1, sender.stderr())
        self.assert_ends_well(sender, receiver)

    def test_APortIsDisabledByAControllerInMidTransfer(self):
        for host in netns.HOSTS:
            sender, receiver, _ = self.stream()
            controller = self.start_on(host)
            self.assert_carries(2)
            controller.ask("port 2 0")
            # Who waits for a processor hears of it late.
            programs.eventually(lambda: self.carries_nothing(2), "a disabled port carries data")
            self.assertTrue(self.carries_nothing(2), "a disabled port carries data again")
            self.assertEqual(controller.ask("state 2"), "ok down")
            controller.ask("port 2 1")
            self.assert_carries(2)
            self.assertEqual(controller.ask("state 2"), "ok active")
            self.assertEqual(controller.quit(), 0)
            self.assert_ends_well(sender, receiver)

    def capture(self, count):
        """Transport parts of real packets of the running transfer, as they go out of a."""
        return [frame[HEADERS_BYTES:] for frame in self.capture_frames("a", count)]

    def capture_frames(self, host, count):
        """Whole frames of the running transfer, as they go in and out of a host."""
        frames = []
        with self.hosts.socket_in(host, socket.AF_PACKET, socket.SOCK_RAW,
                                  socket.htons(3)) as tap:
            tap.bind((self.hosts.interface(1), 3))
            tap.settimeout(10)
            while len(frames) < count:
                frame = tap.recv(65536)
                is_udp = frame[12:14] == ETH_P_IP.to_bytes(2, "big") and frame[23] == 17
                if is_udp and len(frame) > HEADERS_BYTES:
                    frames.append(frame)
        return frames

    def pour_frames(self, host, stop):
        """What a host has sent, once more and verbatim: source port and ICRC are right."""
        chance = random.Random(7)
        mine = self.hosts.address(host, 1)
        sent = [frame for frame in self.capture_frames(host, 400)
                if socket.inet_ntoa(frame[26:30]) == mine]
        with self.hosts.socket_in(host, socket.AF_PACKET, socket.SOCK_RAW) as tap:
            tap.bind((self.hosts.interface(1), 0))
            while not stop.is_set():
                try:
                    tap.send(chance.choice(sent))
                except OSError:
                    pass  # queues are full, which is the point

    def pour(self, packets, stop, from_host="a", to_host="b"):
        """Sends these at the ports of the processes of a host until told to stop."""
        chance = random.Random(4)
        with self.hosts.socket_in(from_host) as sender:
            while not stop.is_set():
                packet = chance.choice(packets)
                plane = chance.randrange(1, PLANES + 1)
                port = UDP_PORT + chance.randrange(3)
                try:
                    sender.sendto(packet[:9000], (self.hosts.address(to_host, plane), port))
                except OSError:
                    pass  # queues are full, which is the point

    def assert_survives(self, packets):
        """Foreign packets change no byte at any time: the target holds from the beginning what the
        transfer writes into it over and over."""
        self.assert_stream_survives(lambda stop: [
            threading.Thread(target=self.pour, args=(packets(), stop, *way))
            for way in (("a", "b"), ("b", "a"))])

    def assert_stream_survives(self, make_pourers):
        sender, receiver, target = self.stream()
        receiver.ask("fill target 1")
        stop = threading.Event()
        pourers = make_pourers(stop)
        for thread in pourers:
            thread.start()
        try:
            until = time.monotonic() + STREAM_MS / 2000
            while time.monotonic() < until:
                receiver.ask(f"check target 0 {target.bytes} 1 0")
                receiver.ask("guards target")
        finally:
            stop.set()
            for thread in pourers:
                thread.join(30)
        self.assert_ends_well(sender, receiver)

    def test_RandomPacketsAtTheUdpPortChangeNothing(self):
        chance = random.Random(5)
        self.assert_survives(lambda: [chance.randbytes(chance.choice((0, 1, 11, 12, 40, 64, 1500,
                                                                      4200))) for _ in range(200)])

    def test_MutatedRealPacketsChangeNothing(self):
        def mutants():
            chance = random.Random(6)
            made = []
            for packet in self.capture(100):
                changed = bytearray(packet)
                for _ in range(chance.randrange(1, 5)):
                    changed[chance.randrange(len(changed))] ^= 1 << chance.randrange(8)
                made.append(bytes(changed))
                made.append(packet[:chance.randrange(len(packet))])
                made.append(packet + chance.randbytes(chance.randrange(1, 64)))
            return made
        self.assert_survives(mutants)

    def test_ReplayedRealPacketsChangeNothing(self):
        self.assert_survives(lambda: self.capture(100))

    def test_ReplayedFramesOfThePeerChangeNothing(self):
        self.assert_stream_survives(lambda stop: [
            threading.Thread(target=self.pour_frames, args=(host, stop)) for host in ("a", "b")])


if __name__ == "__main__":
    netns.enter()
    Network.hosts = netns.TwoHosts(PLANES, 9000)
    peer_driver.main()
