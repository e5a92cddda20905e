#!/usr/bin/env python3
"""Many processes on one device, and all sizes between two of them.

Usage: many_test.py <peer program> [unittest arguments]
"""

import peer_driver

MIB = 1 << 20
SIDE = 8
# Around the sizes of a packet, a window and a message; the largest is 64 MiB.
SIZES = [0, 1, 2, 3, 7, 8, 63, 64, 65, 127, 4095, 4096, 4097, 8191, 8192, 8193, 65535, 65536, 65537,
         1_000_003, MIB - 1, MIB, MIB + 1, 16 * MIB + 5, 64 * MIB]


class Many(peer_driver.PeerTest):
    def test_AllSizesArriveWholeWithNothingBesideThem(self):
        sender, receiver = self.pair()
        source = sender.memory("source", 64 * MIB, seed=1)
        target = receiver.memory("target", 64 * MIB)
        receiver.ask("fill target 2")
        for size in SIZES:
            at = (64 * MIB - size) // 2
            answer = sender.answer_to(f"write q source {at} {size} {target.address + at} "
                                      f"{target.rkey} 1")
            self.assertEqual(answer, "done 1 ok", f"{size} bytes")
            receiver.ask(f"check target {at} {size} 1 {at}")
            edge = min(at, 4096)
            receiver.ask(f"check target {at - edge} {edge} 2 {at - edge}")
            receiver.ask(f"check target {at + size} {edge} 2 {at + size}")
        receiver.ask("guards target")
        self.assertEqual([sender.quit(), receiver.quit()], [0, 0])

    def test_ImmediatesOfAllSizesComeAfterTheirData(self):
        sender, receiver = self.pair()
        source = sender.memory("source", 4 * MIB, seed=1)
        target = receiver.memory("target", 4 * MIB)
        for number, size in enumerate(s for s in SIZES if s <= 4 * MIB):
            receiver.ask("fill target 2")
            receiver.ask("receive q 1")
            sender.tell(f"imm q source 0 {size} {target.address} {target.rkey} {number}")
            self.assertEqual(receiver.ask("received q 60000"), f"done 1 ok {number}")
            receiver.ask(f"check target 0 {size} 1 0")
            self.assertEqual(sender.hear(), "done 1 ok")
        self.assertEqual(source.bytes, target.bytes)

    def test_EightServersAndEightClientsAllToAll(self):
        peers = [self.start() for _ in range(2 * SIDE)]
        numbers = {int(peer.ask("qp probe 1").split()[1]) >> 16 for peer in peers}
        self.assertEqual(len(numbers), len(peers), "every process has a number of its own")
        clients, servers = peers[:SIDE], peers[SIDE:]
        size = 128 * 1024
        targets = {}
        for c, client in enumerate(clients):
            client.memory("source", size, seed=c + 1)
            for s, server in enumerate(servers):
                name = f"q{c}x{s}"
                ends = client.queue_pair(name), server.queue_pair(name)
                peer_driver.connect(client, ends[0], server, ends[1])
                targets[c, s] = server.memory(f"from{c}", size)
        # Everybody writes at the same time; to whom first is different for each.
        for turn in range(SIDE):
            for c, client in enumerate(clients):
                s = (c + turn) % SIDE
                target = targets[c, s]
                client.tell(f"write q{c}x{s} source 0 {size} {target.address} {target.rkey} 20")
            for client in clients:
                self.assertEqual(client.hear(), "done 20 ok")
        for s, server in enumerate(servers):
            for c in range(SIDE):
                server.ask(f"check from{c} 0 {size} {c + 1} 0")
                server.ask(f"guards from{c}")
        self.assertEqual({peer.quit() for peer in peers}, {0})

    def test_ProcessesComeAndGoWhileOthersMoveData(self):
        sender, receiver = self.pair()
        source = sender.memory("source", MIB, seed=1)
        target = receiver.memory("target", MIB)
        sender.tell(f"stream q source {MIB} {target.address} {target.rkey} 4000")
        for number in range(12):
            guest = self.start()
            if number % 2 == 0:
                self.assertEqual(guest.quit(), 0)
            else:
                guest.kill()
        self.assertRegex(sender.hear(), r"^done \d+ ok$")
        receiver.ask(f"check target 0 {source.bytes} 1 0")


if __name__ == "__main__":
    peer_driver.main()
