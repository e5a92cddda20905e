#!/usr/bin/env python3
"""`mrc ctld --findings`: from what `mrc map` finds to what is out of use, in a lab of 4 hosts and 2
planes.

Usage: heal_test.py <mrc> [unittest arguments]
"""

import fcntl
import json
import pathlib
import signal
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "support"))

import labs  # noqa: E402  (found through the line above)
import programs  # noqa: E402
from programs import WAIT_S  # noqa: E402

CABLE = "t0:0/t1:2/plane:1"
OTHER = "t0:1/t1:0/plane:0"


def look(*faults, unseen=(), either=()):
    """One line of `mrc map --watch --json`; faults are parts, or pairs of part and loss."""
    pairs = [fault if isinstance(fault, tuple) else (fault, 0.01) for fault in faults]
    findings = [{"part": part, "kind": "cable", "state": "lossy", "loss": loss, "or": list(either)}
                for part, loss in pairs]
    return json.dumps({"schema": "mrc.map/1", "healthy": not findings, "findings": findings,
                       "unseen": list(unseen)})


class HealTest(labs.LabTest):
    def place(self):
        return ("--lab", "lab", "--dir", self.lab.folder)

    def drained(self):
        listed = json.loads(self.must("drain", "--json", *self.place()))
        return {entry["part"]: entry["by"] for entry in listed["drained"]}

    def heal_words(self, findings, *flags):
        return ("ctld", "--findings", findings, *self.place(), *flags)

    def replay(self, looks, *flags):
        """What is done after a row of looks, without the times."""
        file = pathlib.Path(self.folder, "findings.jsonl")
        file.write_text("".join(line + "\n" for line in looks), encoding="utf-8")
        lines = self.must(*self.heal_words(str(file), *flags)).splitlines()
        self.assertIn(f"ends after {len(looks)} look", lines[-1])
        return [line.split(" ", 1)[1] for line in lines[:-1]]


class Replayed(HealTest):
    """Looks from a file: what is decided, not when."""

    def test_denied_after_some_looks_and_back_after_more(self):
        self.up()
        self.assertEqual(self.replay([look(CABLE)] * 2), [])
        self.assertEqual(self.replay([look(CABLE)] * 3),
                         [f"denies {CABLE}, which loses 1.0 %: 3 looks in a row, "
                          "1 of 2 out of use"])
        self.assertEqual(self.drained(), {CABLE: "mrc ctld"})
        # Started anew it goes on from what is drained.
        self.assertEqual(self.replay([look()] * 9), [])
        self.assertEqual(self.replay([look()] * 10),
                         [f"allows {CABLE}: sound for 10 looks in a row"])
        self.assertEqual(self.drained(), {})

    def test_a_part_that_fails_again_comes_back_later(self):
        self.up()
        flags = ("--deny-after", "1", "--allow-after", "2")
        once = [look(CABLE), look(), look()]
        lines = self.replay(once + [look(CABLE), look(), look(), look()], *flags)
        self.assertEqual([line.split(" ", 1)[0] for line in lines], ["denies", "allows", "denies"])
        self.assertEqual(self.drained(), {CABLE: "mrc ctld"})

    def test_a_dry_run_only_logs(self):
        self.up()
        self.assertEqual(
            self.replay([look(CABLE)] * 3 + [look()] * 10, "--dry-run"),
            [f"would deny {CABLE}, which loses 1.0 %: 3 looks in a row, 1 of 2 out of use",
             f"would allow {CABLE}: sound for 10 looks in a row"])
        self.assertEqual(self.drained(), {})

    def test_no_more_than_the_limit(self):
        self.up()
        lines = self.replay([look((CABLE, 0.01), (OTHER, 0.2))] * 5, "--limit", "1")
        self.assertEqual([line.split(",")[0] for line in lines],
                         [f"denies {OTHER}", f"leaves {CABLE} in use"])
        self.assertEqual(self.drained(), {OTHER: "mrc ctld"})

    def test_what_is_uncertain_is_left_alone(self):
        self.up()
        self.assertEqual(self.replay([look(CABLE, either=("t1:2/plane:1",))] * 20), [])
        self.assertEqual(self.replay([look((CABLE, 0.0005))] * 20), [])
        self.assertEqual(self.drained(), {})

    def test_what_is_out_of_sight_stays_as_it_is(self):
        self.up()
        self.replay([look(CABLE)] * 3)
        self.assertEqual(self.replay([look(unseen=(CABLE,))] * 20), [])
        self.assertEqual(self.drained(), {CABLE: "mrc ctld"})

    def test_the_last_way_stays(self):
        self.up()
        self.must("drain", "plane:0", *self.place())
        lines = self.replay([look("host:3/plane:1")] * 5)
        self.assertEqual(len(lines), 1)
        self.assertIn("leaves host:3/plane:1 in use, which loses 1.0 %: it is the only way between "
                      "hosts", lines[0])
        self.assertEqual(self.drained(), {"plane:0": "command"})

    def test_what_a_command_drained_is_left_to_commands(self):
        self.up()
        self.must("drain", CABLE, *self.place())
        self.assertEqual(self.replay([look(CABLE)] * 5 + [look()] * 30), [])
        self.assertEqual(self.drained(), {CABLE: "command"})

    def test_bad_input_is_one_line(self):
        self.assertIn("mrc lab up", self.refused(2, *self.heal_words("/dev/null")))
        self.up()
        file = pathlib.Path(self.folder, "findings.jsonl")
        for text, words in (("nonsense\n", ":1: not a line of `mrc map"),
                            (look() + "\n{}\n", ":2: not a line of `mrc map"),
                            (look("t1:9/plane:0") + "\n", ":1: there is no t1:9")):
            file.write_text(text, encoding="utf-8")
            self.assertIn(words, self.refused(2, *self.heal_words(str(file))))
        self.refused(2, *self.heal_words(self.folder + "/none"))
        self.refused(2, *self.heal_words("/dev/null", "--limit", "0"))
        self.refused(2, "ctld", "--findings", "-")
        self.refused(2, "ctld", "some.toml", "--findings", "-", *self.place())
        with open(pathlib.Path(self.lab.folder, "lab", "healing.lock"), "w",
                  encoding="ascii") as other:
            other.write("4711\n")
            other.flush()
            fcntl.flock(other, fcntl.LOCK_EX)
            self.assertIn("process 4711", self.refused(2, *self.heal_words("/dev/null")))
        self.assertEqual(self.drained(), {})


class Live(HealTest):
    """With `mrc map` at work."""

    def start_loop(self, *flags):
        watch = self.start("map", *self.place(), "--watch", "--json", "--window", "3")
        healer = programs.start(self.command(*self.heal_words("-", "--allow-after", "5", *flags)),
                                stdin=watch.stdout, env=self.environment)
        watch.stdout.close()
        self.addCleanup(programs.end, healer)
        return watch, healer

    def read_until(self, healer, words):
        for line in healer.stdout:
            if words in line:
                return line
        self.fail(f"the loop ended before {words}: {healer.stderr.read()}")

    def test_a_lossy_cable_is_denied_and_comes_back_when_it_is_whole(self):
        self.up()
        watch, healer = self.start_loop()
        self.lab.do("loss", CABLE, "5%")
        self.assertRegex(self.read_until(healer, f"denies {CABLE}"), r"^\d{4}-\d\d-\d\dT[\d:]+Z ")
        self.assertIn(CABLE, self.drained())
        self.lab.do("heal", "all")
        self.read_until(healer, f"allows {CABLE}")
        self.assertNotIn(CABLE, self.drained())
        healer.send_signal(signal.SIGTERM)
        self.assertEqual(healer.wait(timeout=WAIT_S), 0)

    def test_without_anybody_who_looks_it_ends_and_leaves_all_as_it_is(self):
        self.up()
        watch, healer = self.start_loop()
        self.lab.do("cut", CABLE)
        self.read_until(healer, f"denies {CABLE}")
        watch.kill()
        self.assertEqual(healer.wait(timeout=WAIT_S), 1)
        self.assertIn(CABLE, self.drained())


if __name__ == "__main__":
    programs.main()
