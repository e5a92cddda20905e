#!/usr/bin/env python3
"""Ends that cannot open each other's packets, where nothing but packets tells: two processes over
the C API that have exchanged addresses in a way of their own.

Usage: security_test.py <peer program> [unittest arguments]
"""

import os
import pathlib
import random
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "support"))

import peer_driver  # noqa: E402  (found through the line above)
import programs  # noqa: E402

# About half a second: the lines must be there before the queue pair gives up.
RETRY = (16, 3, 1)


class Security(peer_driver.PeerTest):
    def key(self, name, number=0):
        path = pathlib.Path(self.folder) / name
        if not path.exists():
            path.touch(mode=0o600)
            path.write_text(f"key {number} {os.urandom(32).hex()}\n", encoding="ascii")
        return {"MRC_SECURITY": "sealed", "MRC_KEY_FILE": str(path)}

    def host(self, number, security):
        """A process on a loopback address of its own, as if it were on a host of its own."""
        config = pathlib.Path(self.folder) / f"host{number}.toml"
        address = f"127.{self.network}.{number}/24"
        config.write_text(f'[device.mrc0]\nplane = [{{ address = "{address}" }}]\nthreads = 1\n',
                          encoding="ascii")
        own = {"MRC_CONFIG": str(config), "MRC_STATE_DIR": f"{self.folder}/state{number}"}
        before = self.variables
        self.variables = before | own | security
        try:
            return self.start()
        finally:
            self.variables = before

    def setUp(self):
        super().setUp()
        self.network = f"{random.SystemRandom().randrange(64, 192)}.{os.getpid() % 250 + 1}"

    def ends(self, first, second):
        """What a write from the first to the second came to, and what each of them said."""
        sender, receiver = self.host(1, first), self.host(2, second)
        pairs = sender.queue_pair("q"), receiver.queue_pair("q")
        peer_driver.connect(sender, pairs[0], receiver, pairs[1], retry=RETRY)
        sender.memory("source", 4096, seed=1)
        target = receiver.memory("target", 4096)
        answer = sender.answer_to(f"write q source 0 4096 {target.address} {target.rkey} 1")
        if answer.startswith("done 1 ok"):
            return answer, sender.stderr(), receiver.stderr()
        programs.eventually(lambda: "packets from" in sender.stderr() and
                            "packets from" in receiver.stderr(),
                            lambda: f"only {sender.stderr()!r} and {receiver.stderr()!r}", 30)
        return answer, sender.stderr(), receiver.stderr()

    def test_the_same_key_works_and_nobody_says_a_thing(self):
        key = self.key("key")
        answer, here, there = self.ends(key, key)
        self.assertEqual(answer, "done 1 ok", here + there)
        self.assertNotIn("packets from", here + there)

    def refused(self, first, second, here, there):
        answer, said_here, said_there = self.ends(first, second)
        self.assertNotEqual(answer.split()[:3], ["done", "1", "ok"])
        self.assertRegex(said_here, here)
        self.assertRegex(said_there, there)

    def test_a_plain_end_and_a_sealed_one(self):
        self.refused({}, self.key("key"), "sealed packets from .*2 are dropped: security is off",
                     "plain packets from .*1 are dropped: security is sealed")

    def test_a_sealed_end_and_a_plain_one(self):
        self.refused(self.key("key"), {}, "plain packets from .*2 are dropped: security is sealed",
                     "sealed packets from .*1 are dropped: security is off")

    def test_two_secrets(self):
        line = r"packets from .*\.%d are dropped: their key has another secret"
        self.refused(self.key("one"), self.key("two"), line % 2, line % 1)

    def test_no_key_in_common(self):
        line = r"packets from .*\.%d are dropped: their key is not in"
        self.refused(self.key("one", 1), self.key("two", 2), line % 2, line % 1)


if __name__ == "__main__":
    peer_driver.main()
