#!/usr/bin/env python3
"""Makes the manual pages and the completions and uses them: troff finds nothing wrong with a page,
all that --help names stands in it, and shells complete what is typed at them.

Usage: manual_smoke.py <mrc>.
"""

import os
import pathlib
import pty
import re
import select
import shutil
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "tests" / "support"))

import programs  # noqa: E402  (found through the line above)

OPTION = re.compile(r"(?<!\S)(--?[A-Za-z][\w-]*)")
# (what is typed, what stands there after the tabulator)
TYPED = [
    ("mrc exp", "mrc exporter"),
    ("mrc lab stat", "mrc lab status"),
    ("mrc lab --help sta", "mrc lab --help status"),
    ("mrc lab up --net", "mrc lab up --netns"),
    ("mrc lab up --switch ker", "mrc lab up --switch kernel"),
    ("mrc lab up --switch=ker", "mrc lab up --switch=kernel"),
    ("mrc lab up --mbps 5 --no-t", "mrc lab up --mbps 5 --no-trim"),
    ("mrc ctl ev gen", "mrc ctl ev gen"),
    ("mrc ctl ev cre", "mrc ctl ev create"),
    ("mrc fabric export --format so", "mrc fabric export --format sonic"),
    ("mrc view onlyf", "mrc view onlyfile.json"),
    ("mrc sim --report onlyf", "mrc sim --report onlyfile.json"),
    ("mrc run mrc_test_prog", "mrc run mrc_test_program"),
]


def listed(text, title):
    """The names that a section of --help begins its lines with."""
    section = re.search(rf"^{title}:\n((?:  .*\n)+)", text, re.M)
    return re.findall(r"^  (\S+)", section[1], re.M) if section else []


class ManualTest(programs.ToolTest):
    def setUp(self):
        super().setUp()
        self.out = pathlib.Path(self.folder) / "manual"
        self.must("manual", "--out", self.out)

    def command(self, *words):
        return [self.program, *map(str, words)]

    def page(self, name):
        """A page as people read it, in one line of words."""
        environment = dict(os.environ, LC_ALL="C.UTF-8", MANWIDTH="100", MAN_KEEP_FORMATTING="")
        done = subprocess.run(["man", "--warnings", "-E", "UTF-8", "-P", "cat", "-l",
                               self.out / "man1" / f"{name}.1"], check=False, text=True,
                              capture_output=True, env=environment)
        self.assertEqual((done.returncode, done.stderr), (0, ""), name)
        return done.stdout.replace("\u2010\n", "-\n")

    def commands_below(self, *words):
        """Yields each command with its --help."""
        text = self.must(*words, "--help")
        yield words, text
        for name in listed(text, "Subcommands"):
            yield from self.commands_below(*words, name)

    def test_pages_tell_what_help_tells(self):
        if shutil.which("man") is None:
            self.skipTest("there is no man")
        programs_page = self.page("mrc")
        names = listed(self.must("--help"), "Subcommands")
        self.assertGreater(len(names), 15)
        for name in names:
            self.assertIn(f"mrc-{name}(1)", programs_page)
            # Of the command itself, and of each below it behind its title.
            parts = re.split(r"(?m)^ {3}(mrc [\w -]+)$", self.page(f"mrc-{name}"))
            sections = dict(zip([f"mrc {name}", *parts[1::2]], parts[::2]))
            for command, text in self.commands_below(name):
                title = " ".join(["mrc", *command])
                words = set(re.findall(r"[\w-]+", sections[title]))
                # What begins a line with an option; the rest is prose.
                for line in re.findall(r"^  (-\S+)", text, re.M):
                    for option in OPTION.findall(line.replace(",", " ")):
                        self.assertIn(option, words, title)
        pages = {path.name for path in (self.out / "man1").iterdir()}
        self.assertEqual(pages, {"mrc.1", *(f"mrc-{name}.1" for name in names)})

    def test_pages_are_the_same_whoever_builds(self):
        environment = dict(os.environ, XDG_RUNTIME_DIR="/run/user/UID")
        texts = []
        for variables in ({}, {"HOME": "/nowhere", "MRC_PORT": "20000", "MRC_DEVICE": "x",
                               "RANK": "3", "WORLD_SIZE": "4", "COLUMNS": "40"}):
            out = pathlib.Path(self.folder) / f"pages{len(texts)}"
            subprocess.run(self.command("manual", "--out", out), check=True,
                           env=environment | variables)
            texts.append({path.relative_to(out): path.read_text(encoding="utf-8")
                          for path in sorted(out.rglob("*")) if path.is_file()})
        self.assertEqual(texts[0], texts[1])

    def test_one_page_and_one_completion_can_be_printed(self):
        for words, file in ((("lab",), "man1/mrc-lab.1"), ((), "man1/mrc.1"),
                            (("--completion", "bash"), "bash/mrc"),
                            (("--completion", "zsh"), "zsh/_mrc")):
            self.assertEqual(self.must("manual", *words),
                             (self.out / file).read_text(encoding="utf-8"))
        self.assertIn("no command 'lob'", self.refused(2, "manual", "lob"))
        self.refused(2, "manual", "--completion", "fish")
        self.assertIn("cannot", self.refused(1, "manual", "--out", "/dev/null/x"))

    def shell(self, command, start):
        """Starts a shell at a terminal, in a folder with one file and one program."""
        place = pathlib.Path(self.folder) / "place"
        place.mkdir(exist_ok=True)
        (place / "onlyfile.json").touch()
        script = place / "mrc_test_program"
        script.write_text("#!/bin/sh\n", encoding="ascii")
        script.chmod(0o755)
        environment = {"PATH": f"{place}:/usr/bin:/bin", "HOME": str(place), "TERM": "dumb",
                       "LC_ALL": "C.UTF-8"}
        controller, terminal = pty.openpty()
        self.process = subprocess.Popen(command, stdin=terminal, stdout=terminal, stderr=terminal,
                                        cwd=place, env=environment, start_new_session=True)
        os.close(terminal)
        self.addCleanup(os.close, controller)
        self.addCleanup(self.process.wait)
        self.addCleanup(self.process.kill)
        self.type(controller, start + "\n", "READY")
        return controller

    def type(self, terminal, keys, until):
        """Types keys and gives what the shell shows until it has shown a text."""
        os.write(terminal, keys.encode())
        shown = ""
        end = time.monotonic() + programs.WAIT_S
        while until not in shown:
            self.assertLess(time.monotonic(), end, f"{keys!r}: {shown!r} without {until!r}")
            if select.select([terminal], [], [], 1)[0]:
                shown += os.read(terminal, 4096).decode(errors="replace")
        return shown

    def complete_all(self, terminal):
        for typed, expected in TYPED:
            # Completed, ^A goes to the beginning, where the line becomes a word to be printed.
            shown = self.type(terminal, f"{typed}\t\001printf '<%s>\\n' '\005'\n", ">\r\n")
            # zsh takes the space behind the word back when the cursor moves away.
            self.assertRegex(shown, f"<{re.escape(expected)} ?>\r\n")

    def test_bash_completes(self):
        terminal = self.shell(["bash", "--norc", "--noprofile", "-i"],
                              f"PS1= PS2=; bind 'set enable-bracketed-paste off'; "
                              f"source {self.out}/bash/mrc; echo REA''DY")
        self.complete_all(terminal)

    def test_zsh_completes(self):
        if shutil.which("zsh") is None:
            self.skipTest("there is no zsh")
        terminal = self.shell(["zsh", "-f", "-i"],
                              f"PS1= PROMPT_SP= PROMPT_CR= RPS1=; unsetopt zle_bracketed_paste; "
                              f"fpath=({self.out}/zsh $fpath); autoload -U compinit; "
                              f"compinit -u -D; bindkey -e; echo REA''DY")
        self.complete_all(terminal)


if __name__ == "__main__":
    programs.main(ManualTest)
