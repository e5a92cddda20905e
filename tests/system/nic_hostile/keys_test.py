#!/usr/bin/env python3
"""Keys that are wrong, stale or taken away while packets are under way.

Usage: keys_test.py <peer program> [unittest arguments]
"""

import time

import peer_driver

ACCESS_ERROR = "done 0 REMOTE_ACCESS"
KIB = 1024
MIB = 1 << 20


class Keys(peer_driver.PeerTest):
    def assert_refused(self, address_offset=0, rkey_change=0, length=4096):
        """A write into 64 KiB, somewhat wrong, changes nothing and breaks only itself."""
        sender, receiver = self.pair()
        good = sender.queue_pair("good"), receiver.queue_pair("good")
        peer_driver.connect(sender, good[0], receiver, good[1])
        source = sender.memory("source", length, seed=1)
        target = receiver.memory("target", 64 * KIB, seed=2)
        answer = sender.answer_to(
            f"write q source 0 {length} {target.address + address_offset} "
            f"{(target.rkey ^ rkey_change) & 0xffffffff} 1")
        self.assertEqual(answer, ACCESS_ERROR)
        receiver.ask(f"check target 0 {target.bytes} 2 0")
        receiver.ask("guards target")
        self.assert_moves_data(sender, receiver, "good")
        self.assertEqual([sender.quit(), receiver.quit()], [0, 0])

    def test_AWrongKeyIsAnAccessErrorAndChangesNothing(self):
        self.assert_refused(rkey_change=1)

    def test_AKeyOfGarbageIsAnAccessErrorAndChangesNothing(self):
        self.assert_refused(rkey_change=0xdeadbeef)

    def test_AWriteBehindTheEndIsAnAccessErrorAndChangesNothing(self):
        self.assert_refused(address_offset=64 * KIB - 1)

    def test_AWriteBeforeTheBeginningIsAnAccessErrorAndChangesNothing(self):
        self.assert_refused(address_offset=-1)

    def test_ALongWriteThatEndsOutsideChangesNoGuard(self):
        # Packets that lie inside may have been placed; the memory around must be untouched.
        sender, receiver = self.pair()
        source = sender.memory("source", MIB, seed=1)
        target = receiver.memory("target", MIB - 4096)
        self.assertEqual(self.write(sender, source, target), ACCESS_ERROR)
        receiver.ask("guards target")

    def test_AnErrorNamesThePeerInTheLog(self):
        sender, receiver = self.pair()
        source = sender.memory("source", 64, seed=1)
        target = receiver.memory("target", 64)
        self.assertEqual(self.write(sender, source, target._replace(rkey=target.rkey ^ 7)),
                         ACCESS_ERROR)
        self.assertIn("127.0.0.1", sender.stderr())
        self.assertIn("key", sender.stderr())

    def test_AStaleKeyDoesNotReachTheRegionThatCameAfter(self):
        sender, receiver = self.pair()
        source = sender.memory("source", 4096, seed=1)
        old = receiver.memory("old", 4096)
        self.assertEqual(self.write(sender, source, old), "done 1 ok")
        receiver.ask("dereg old")
        new = receiver.memory("new", 4096, seed=3)
        self.assertNotEqual(new.rkey, old.rkey)
        self.assertEqual(self.write(sender, source, new._replace(rkey=old.rkey)), ACCESS_ERROR)
        receiver.ask("check new 0 4096 3 0")

    def test_AfterDeregistrationDuringWritesMemoryStaysAsItIs(self):
        sender, receiver = self.pair(depth=256)
        source = sender.memory("source", 256 * KIB, seed=1)
        target = receiver.memory("target", 256 * KIB)
        for _ in range(5):
            sender.tell(f"stream q source {source.bytes} {target.address} {target.rkey} 10000")
            time.sleep(0.2)
            receiver.ask("dereg target")
            receiver.ask("fill target 9")
            self.assertRegex(sender.hear(), r"^done \d+ REMOTE_ACCESS$")
            receiver.ask(f"check target 0 {target.bytes} 9 0")
            for peer in (sender, receiver):
                peer.ask("destroy q")
            ends = sender.queue_pair("q", 256), receiver.queue_pair("q", 256)
            peer_driver.connect(sender, ends[0], receiver, ends[1])
            target = receiver.memory("target", 256 * KIB)

    def test_DeregistrationOfTheSourceDuringWritesIsAnErrorNotACrash(self):
        sender, receiver = self.pair()
        sender.memory("source", 64, seed=1)
        big = sender.memory("big", 16 * MIB, seed=2)
        target = receiver.memory("target", 16 * MIB)
        self.assertEqual(self.write(sender, big, target), "done 1 ok")
        sender.ask("dereg big")
        self.assertRegex(self.write(sender, big, target), r"^(error 22 |done 0 )")
        self.assertEqual([sender.quit(), receiver.quit()], [0, 0])

    def test_AWriteWithoutLengthNeedsNoValidKeyOrMovesNothing(self):
        sender, receiver = self.pair()
        source = sender.memory("source", 64, seed=1)
        target = receiver.memory("target", 64, seed=5)
        self.assertEqual(self.write(sender, source, target, length=0), "done 1 ok")
        receiver.ask("check target 0 64 5 0")


if __name__ == "__main__":
    peer_driver.main()
