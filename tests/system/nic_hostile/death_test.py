#!/usr/bin/env python3
"""Peers that die, stop, fork or leave, and what the others see of it.

Usage: death_test.py <peer program> <dlclose program> <lib_mrc.so> [unittest arguments]
"""

import signal
import time

import peer_driver
import programs  # found through peer_driver

KIB = 1024
MIB = 1 << 20
RETRY_ERROR = r"^done \d+ RETRY_EXCEEDED$"


class Death(peer_driver.PeerTest):
    dlclose_program = None
    library = None

    def test_AKilledPeerIsARetryErrorThatNamesIt(self):
        sender, receiver = self.pair(peer_driver.IMPATIENT)
        source = sender.memory("source", 256 * KIB, seed=1)
        target = receiver.memory("target", 256 * KIB)
        sender.tell(f"stream q source {source.bytes} {target.address} {target.rkey} 60000")
        time.sleep(0.3)
        receiver.kill()
        self.assertRegex(sender.hear(), RETRY_ERROR)
        # Which peer, what was tried, and what to look at.
        self.assertIn("127.0.0.1", sender.stderr())
        self.assertIn("retries", sender.stderr())
        self.assertIn("check that the peer process lives", sender.stderr())
        self.assertEqual(sender.quit(), 0)

    def test_TheProgramIsToldOfALostQueuePair(self):
        sender, receiver = self.pair(peer_driver.IMPATIENT)
        source = sender.memory("source", 4096, seed=1)
        target = receiver.memory("target", 4096)
        receiver.kill()
        self.assertRegex(self.write(sender, source, target), RETRY_ERROR)
        self.assertEqual(sender.ask("event 10000"), "event QP_FATAL")

    def test_OtherConnectionsGoOnWhenAPeerIsKilled(self):
        sender, doomed = self.pair(peer_driver.IMPATIENT)
        healthy = self.start()
        ends = sender.queue_pair("other"), healthy.queue_pair("other")
        peer_driver.connect(sender, ends[0], healthy, ends[1])
        source = sender.memory("source", 64 * KIB, seed=1)
        target = doomed.memory("target", 64 * KIB)
        self.assertEqual(self.write(sender, source, target, count=100), "done 100 ok")
        doomed.kill()
        self.assert_moves_data(sender, healthy, "other")
        self.assertRegex(self.write(sender, source, target), RETRY_ERROR)
        self.assert_moves_data(sender, healthy, "other")

    def test_AHeirOfAProcessNumberIsNotDisturbedByOldConnections(self):
        sender, victim = self.pair(peer_driver.PATIENT)
        old_number = int(victim.ask("qp probe 1").split()[1]) >> 16
        source = sender.memory("source", 256 * KIB, seed=1)
        target = victim.memory("target", 256 * KIB)
        sender.tell(f"stream q source {source.bytes} {target.address} {target.rkey} 60000")
        time.sleep(0.2)
        victim.kill()
        heir = self.start()
        self.assertEqual(int(heir.ask("qp probe 1").split()[1]) >> 16, old_number)
        memory = heir.memory("mine", 256 * KIB, seed=8)
        friend = self.start()
        for number in range(20):
            name = f"q{number}"
            ends = friend.queue_pair(name), heir.queue_pair(name)
            peer_driver.connect(friend, ends[0], heir, ends[1])
            self.assert_moves_data(friend, heir, name)
        heir.ask(f"check mine 0 {memory.bytes} 8 0")
        self.assertEqual([heir.quit(), friend.quit()], [0, 0])

    def test_APeerStoppedForASecondLosesNothing(self):
        for stopped in (0, 1):
            peers = self.pair()
            sender, receiver = peers
            source = sender.memory("source", MIB, seed=1)
            target = receiver.memory("target", MIB)
            sender.tell(f"stream q source {source.bytes} {target.address} {target.rkey} 3000")
            time.sleep(0.3)
            peers[stopped].signal(signal.SIGSTOP)
            time.sleep(1)
            peers[stopped].signal(signal.SIGCONT)
            self.assertRegex(sender.hear(), r"^done \d+ ok$")
            receiver.ask(f"check target 0 {target.bytes} 1 0")
            receiver.ask("guards target")
            self.assert_moves_data(sender, receiver)

    def test_ExitWithoutCleaningUpIsQuickAndHarmsNobody(self):
        sender, receiver = self.pair(peer_driver.IMPATIENT)
        source = sender.memory("source", 64 * KIB, seed=1)
        target = receiver.memory("target", 64 * KIB)
        sender.tell(f"stream q source {source.bytes} {target.address} {target.rkey} 60000")
        time.sleep(0.2)
        receiver.tell("exit")
        self.assertEqual(receiver.process.wait(10), 0)
        self.assertRegex(sender.hear(), RETRY_ERROR)
        self.assertEqual(sender.quit(), 0)

    def test_AForkedChildIsRefusedAndTheParentGoesOn(self):
        sender, receiver = self.pair()
        self.assert_moves_data(sender, receiver)
        for peer in (sender, receiver):
            self.assertEqual(peer.ask("fork"), "child 0")
        self.assert_moves_data(sender, receiver)
        self.assertEqual([sender.quit(), receiver.quit()], [0, 0])

    def test_NoThreadSurvivesTheLastHandle(self):
        sender, receiver = self.pair()
        self.assert_moves_data(sender, receiver)
        self.assertGreater(int(sender.ask("threads").split()[1]), 0)
        sender.ask("close")
        self.assertEqual(sender.ask("threads"), "ok 0")

    def test_AnIdleDeviceUsesNoProcessorTime(self):
        sender, receiver = self.pair()
        self.assert_moves_data(sender, receiver)

        def used_s():
            with open(f"/proc/{receiver.pid}/stat", encoding="ascii") as file:
                words = file.read().rsplit(")", 1)[1].split()
            return (int(words[11]) + int(words[12])) / 100
        before = used_s()
        time.sleep(2)
        self.assertLess(used_s() - before, 0.2)

    def test_TheLibraryCanBeUnloadedAndLoadedAgain(self):
        done = programs.run([self.dlclose_program, self.library], env=self.variables)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)


if __name__ == "__main__":
    peer_driver.main(Death, "dlclose_program", "library")
