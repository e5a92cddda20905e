#!/usr/bin/env python3
"""Runs `mrc key` as people who operate a cluster do, and with files that must not be used.

Usage: key_smoke.py <mrc>.
"""

import hashlib
import os
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "tests" / "support"))

import programs  # noqa: E402  (found through the line above)

SECRET = "0123456789abcdef" * 4


class KeyTest(programs.ToolTest):
    def setUp(self):
        super().setUp()
        self.file = pathlib.Path(self.folder) / "cluster.key"

    def command(self, *words):
        return [self.program, "key", *map(str, words)]

    def key(self, *words):
        out = self.must(*words)
        for secret in self.secrets():
            self.assertNotIn(secret, out)
        return out

    def wrong(self, *words):
        line = self.refused(2, *words)
        self.assertNotIn(SECRET[:8], line)
        return line

    def secrets(self):
        if not self.file.is_file():
            return []
        return re.findall(r"[0-9a-f]{64}", self.file.read_text(encoding="ascii"))

    def write(self, text, mode=0o600):
        self.file.write_text(text, encoding="ascii")
        self.file.chmod(mode)

    def test_new_key(self):
        out = self.key("new", self.file)
        self.assertEqual(self.file.stat().st_mode & 0o7777, 0o600)
        [secret] = self.secrets()
        digest = hashlib.sha256(bytes.fromhex(secret)).hexdigest()[:8]
        self.assertIn(f"key 0 {digest} seals and opens\n", out)
        self.assertEqual(self.key("check", self.file), f"key 0 {digest} seals and opens\n")

    def test_open_refuses_what_it_cannot_read_or_would_overwrite(self):
        self.key("new", self.file)
        capture = pathlib.Path(self.folder) / "c.pcap"
        out = pathlib.Path(self.folder) / "o.pcap"
        self.assertIn("No such file", self.refused(1, "open", self.file, capture, out))
        capture.write_bytes(b"not a capture, whatever its name says")
        self.assertIn("no capture", self.refused(2, "open", self.file, capture, out))
        self.assertFalse(out.exists())
        # The head of a pcap file: Ethernet, no frame.
        capture.write_bytes(bytes.fromhex("d4c3b2a1020004000000000000000000ffff000001000000"))
        counted = self.key("open", self.file, capture, out)
        self.assertEqual(counted, "0 frames, 0 sealed, 0 opened\n")
        self.assertEqual(out.stat().st_mode & 0o7777, 0o600)
        self.assertEqual(out.read_bytes(), capture.read_bytes())
        self.assertIn("File exists", self.refused(2, "open", self.file, capture, out))

    def test_new_overwrites_nothing(self):
        self.key("new", self.file)
        before = self.file.read_text(encoding="ascii")
        self.assertIn("File exists", self.wrong("new", self.file))
        self.assertEqual(self.file.read_text(encoding="ascii"), before)
        self.assertEqual(os.listdir(self.folder), [self.file.name])

    def test_rotation(self):
        self.key("new", self.file)
        [old] = self.secrets()
        self.assertIn("add the new one first", self.wrong("rotate", "--promote", self.file))
        self.assertIn("mrc key rotate --promote", self.key("rotate", self.file))
        [first, new] = self.secrets()
        self.assertEqual(first, old)
        self.assertIn("does not seal yet", self.wrong("rotate", "--drop", self.file))
        self.assertIn("two keys already", self.wrong("rotate", self.file))
        self.assertIn("mrc key rotate --drop", self.key("rotate", "--promote", self.file))
        self.assertEqual(self.secrets(), [new, old])
        self.assertRegex(self.key("check", self.file),
                         r"^key 1 [0-9a-f]{8} seals and opens\nkey 0 [0-9a-f]{8} opens\n$")
        self.key("rotate", "--drop", self.file)
        self.assertEqual(self.secrets(), [new])
        self.assertEqual(self.file.stat().st_mode & 0o7777, 0o600)

    def test_files_that_must_not_be_used(self):
        good = f"key 0 {SECRET}\n"
        self.assertIn("mrc key new", self.wrong("check", self.file))
        self.write(good, 0o644)
        self.assertIn("chmod 600", self.wrong("check", self.file))
        self.assertIn("chmod 600", self.wrong("rotate", self.file))
        self.write(good[:-2])
        self.assertIn("64 hexadecimal digits", self.wrong("check", self.file))
        self.write(good.replace("0123", "wxyz"))
        self.assertIn("hexadecimal digits only", self.wrong("check", self.file))
        self.write(good + good)
        self.assertIn("same number", self.wrong("check", self.file))
        self.write("")
        self.assertIn("no key in it", self.wrong("check", self.file))
        self.assertIn("not a regular file", self.wrong("check", self.folder))

    def test_usage(self):
        for words in ([], ["new"], ["check"], ["rotate"], ["lose", "x"], ["check", "a", "b"],
                      ["rotate", "--promote", "--drop", "x"]):
            self.wrong(*words)
        for words in (["--help"], ["new", "--help"], ["check", "--help"], ["rotate", "--help"]):
            self.assertTrue(self.key(*words))


if __name__ == "__main__":
    programs.main(KeyTest)
