#!/usr/bin/env python3
"""What all commands of mrc have in common: how quantities are read, what is said of what takes
long, and how files that cannot be written end.

Usage: habits_smoke.py <mrc> [unittest arguments]
"""

import json
import os
import pathlib
import resource
import socket
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "tests" / "support"))

import programs  # noqa: E402  (found through the line above)
from programs import WAIT_S  # noqa: E402

TIME = "a time such as 10us, 1.5ms or 2s"
RATE = "bits per second such as 400G, 25Gb/s or 1e9"
# What is refused, and what its line says: the option, the value and the forms.
REFUSED = [
    ("stat --watch soon", "--watch: 'soon' is not " + TIME),
    ("stat --watch 1ms", "--watch: '1ms' is not from 0.1 to 3600 seconds"),
    ("check -D 2m", "--seconds: '2m' is not " + TIME),
    ("drain --timeout 5sec --lab lab", "--timeout: '5sec' is not " + TIME),
    ("perf write_bw -D -1", "--duration: '-1' is not " + TIME),
    ("perf allreduce --timeout never", "--timeout: 'never' is not " + TIME),
    ("map --lab lab --every 1ms", "--every: '1ms' is not from"),
    ("lab capture t0:0 file --seconds 2x", "--seconds: '2x' is not " + TIME),
    ("lab reboot t0:0 --for long", "--for: 'long' is not " + TIME),
    ("plan --nic-gbps 400GB", "--nic-gbps: '400GB' is not " + RATE),
    ("lab up --mbps fast", "--mbps: 'fast' is not " + RATE),
    ("perf write_bw -p 70000", "--port: '70000' is no port: a number from 0 to 65535"),
    ("check --serve -p -1", "--port: '-1' is no port"),
    ("perf write_bw -s 1.5", "--size: '1.5' is not a number of bytes"),
    ("perf write_bw -q many", "--qp: 'many' is no number"),
]
ALIKE = [
    ["plan --json --nic-gbps " + text for text in ("400", "400G", "400Gb/s", "0.4T", "4e11b/s")],
    ["fabric show --json --topology tiny --gbps " + text for text in ("200", "200G", "0.2T")],
    ["fabric show --json --topology tiny --delay-us " + text for text in ("2", "2us", "2000ns")],
    ["plan --json --switch-tbps " + text for text in ("51.2", "51.2T", "51200G")],
]
# Taken as far as to where nobody is: with a unit, without, and in small letters.
TAKEN = [
    "-D 2s", "-D 2", "--timeout 500ms", "--timeout 0.5", "--report-every 100ms", "-s 1kib",
    "-s 4mb",
]


class Quantities(programs.ToolTest):
    def test_TextsThatAreNoneAreRefusedWithTheForms(self):
        for words, reason in REFUSED:
            self.assertIn(reason, self.refused(2, *words.split()), words)

    def test_OneRateInSeveralWays(self):
        for lines in ALIKE:
            results = {self.must(*line.split()) for line in lines}
            self.assertEqual(len(results), 1, lines)

    def test_UnitsAreTakenWhereNumbersAre(self):
        environment = programs.device_environment(self.folder)
        for words in TAKEN:
            line = self.refused(1, "perf", "write_bw", *words.split(), "-p", "1", "127.0.0.1",
                                env=environment)
            self.assertIn("refused", line, words)
        done = self.tool("stat", "--watch", "100ms", "-n", "2", "--pid", "1", env=environment)
        self.assertEqual(done.stdout.count("--- "), 2, done)


class LongWaits(programs.ToolTest):
    def silent_listener(self):
        """Takes a connection and never says a word."""
        listener = socket.socket()
        self.addCleanup(listener.close)
        listener.bind(("127.0.0.1", 0))
        listener.listen(1)
        return str(listener.getsockname()[1])

    def test_WaitingForAHostIsTold(self):
        environment = programs.device_environment(self.folder)
        done = self.tool("perf", "write_bw", "-p", self.silent_listener(), "--timeout", "3s",
                         "127.0.0.1", env=environment)
        self.assertEqual(done.returncode, 4, done)
        lines = done.stderr.splitlines()
        self.assertEqual(lines[0], "waiting for 127.0.0.1, 2 s so far")
        self.assertIn("no word from 127.0.0.1", lines[-1])
        done = self.tool("doctor", "--peer", "127.0.0.1", "-p", self.silent_listener(),
                         env=environment)
        self.assertIn("looking at 127.0.0.1, 2 s so far", done.stderr)


class Files(programs.ToolTest):
    def test_WhatIsTooLargeIsRefusedBeforeItIsRead(self):
        path = pathlib.Path(self.folder, "large.ndjson")
        with path.open("wb") as file:
            file.truncate(3 << 30)
        for words in (["view", str(path)], ["dialect", "detect", str(path)]):
            process = self.start(*words, preexec_fn=lambda: resource.setrlimit(
                resource.RLIMIT_AS, (1 << 30, 1 << 30)))
            _, errors = process.communicate(timeout=WAIT_S)
            self.assertIn("large.ndjson: larger than ", errors)
            self.assertEqual(errors.count("\n"), 1, errors)

    def test_WhatHasNoEndIsRefused(self):
        process = self.start("view", "/dev/zero", preexec_fn=lambda: resource.setrlimit(
            resource.RLIMIT_AS, (400 << 20, 400 << 20)))
        _, errors = process.communicate(timeout=WAIT_S)
        self.assertRegex(errors, "/dev/zero: (larger than|Cannot allocate memory)")

    def limited(self, size, *words):
        """With no file larger than that: what a full disk is, as far as a program can tell."""
        # Python ignores the signal of it, and with restore_signals its children do not.
        return subprocess.run(
            self.command(*words), text=True, capture_output=True, check=False, timeout=WAIT_S,
            restore_signals=False,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, size)))

    def test_AllFilesOrNone(self):
        site = pathlib.Path(self.folder, "sites", "one")
        plan = ["plan", "--nics", "64", "--planes", "2", "--nic-gbps", "200", "--switch-tbps",
                "1.6"]
        done = self.limited(4_000, *plan, "--out", str(site))
        self.assertEqual(done.returncode, 1, done)
        self.assertRegex(done.stderr,
                         r"^mrc plan: .*/one/\S+: cannot be written: File too large\n$")
        self.assertFalse(site.parent.exists(), "what was begun was left behind")
        tables = pathlib.Path(self.folder, "tables")
        tables.mkdir()
        (tables / "other").touch()
        done = self.limited(100, "fabric", "export", "--topology", "tiny", "--all", "--out",
                            str(tables))
        self.assertEqual(done.returncode, 1, done)
        self.assertTrue(done.stderr.startswith("mrc fabric export: "), done.stderr)
        self.assertEqual(os.listdir(tables), ["other"])
        self.must(*plan, "--out", str(site))
        self.assertEqual(len(os.listdir(site / "hosts")), 64)

    def test_FoldersThatCannotBeMadeAreAFailure(self):
        for words in (["plan", "--nics", "8", "--planes", "2", "--out", "/dev/null/folder"],
                      ["fabric", "export", "--topology", "tiny", "--all", "--out", "/dev/null/x"]):
            self.assertIn("cannot be made: Not a directory", self.refused(1, *words))

    def test_MuchIsToldBeforeItIsWritten(self):
        done = self.limited(1_000, "plan", "--nics", "131072", "--out", f"{self.folder}/big",
                            "--hosts", "0-255")
        self.assertEqual(done.returncode, 1, done)
        self.assertRegex(done.stderr, r"mrc plan: 256 files of hosts of [\d.]+ MB each, "
                                      r"[\d.]+ GB in all, are to be written to ")


class Names(programs.ToolTest):
    def test_ErrorsNameTheCommand(self):
        for words, name in ((["perf", "allreduce", "--lab", "nosuch"], "mrc perf allreduce: "),
                            (["lab", "exec", "--name", "nosuch", "0", "true"], "mrc lab exec: "),
                            (["lab", "status", "--name", "nosuch"], "mrc lab status: ")):
            self.assertTrue(self.refused(1, *words).startswith(name), words)

    def test_ALevelOfMessagesThatIsNoneIsFound(self):
        environment = programs.device_environment(self.folder, MRC_LOG_LEVEL="verbose")
        done = self.tool("check", "--json", env=environment)
        found = {each["what"]: each for each in json.loads(done.stdout)["findings"]}
        self.assertEqual(found["MRC_LOG_LEVEL"]["verdict"], "broken")


if __name__ == "__main__":
    programs.main()
