#!/usr/bin/env python3
"""Runs the commands of docs/tutorial.md, block by block in one shell, and looks at what they print.

Usage: tutorial_test.py --build DIR

In an installed prefix of its own, and in a network of its own where the machine allows that. What
`make` would build is built already; the demo has a test of its own. Exit status 77 without bash.
"""

import argparse
import pathlib
import re
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "support"))

import programs  # noqa: E402  (found through the line above)

TUTORIAL = pathlib.Path(__file__).resolve().parents[3] / "docs/tutorial.md"
LIMIT_S = 300  # on a busy machine; it takes half a minute
APART = ["unshare", "--map-root-user", "--net", "--mount", "sh", "-c",
         'ip link set lo up && mount -t tmpfs none /dev/shm && exec "$@"', "sh"]
# What a reader has who begins: a checkout that `make install` knows.
PRELUDE = """
make() {
  case $1 in
  demo) ;;
  install) cmake --install "$BUILD" --prefix "${2#PREFIX=}" > /dev/null ;;
  *) command make "$@" ;;
  esac
}
command -v tshark > /dev/null || tshark() { echo "no tshark"; }
trap 'echo "failed with $?: $BASH_COMMAND"' ERR
trap 'trap - ERR; mrc lab down > /dev/null 2>&1; kill $(jobs -p) 2> /dev/null' EXIT
"""
LINE = "written over many paths"
# What the text says that a block prints, as regular expressions.
PRINTED = [
    [],
    [r"(?m)^device mrc0$", r"port 4 +active +127\.0\.3\.1/24"],
    [r"8 paths of 4 links", r"(?m)^0x00020003 +1 .* t1:3"],
    [r"t0:0>t1:2/plane:1: down", r"! plane 1.*: \d+ paths? assumed bad", r"Data verified +: ON",
     r"(?m)^ 65536 +\d+ +\d"],
    [r"t0:1/t1:0/plane:0 loses [\d.]+ %", r"t0:1/t1:0/plane:0: drained", r"back in use"],
    [rf"the server has: {LINE}"],
    [rf"the server has: {LINE}"],
    [rf"the server has: {LINE}", r"[1-9]\d* frames in port\.pcapng"],
    [],
    [r"flows completed +128 of 128"],
]
TSHARK = [r"Write only QP 0x[0-9a-f]+ PSN 0 .* EV 0x", r"(?m)ACK QP 0x[0-9a-f]+ PSN 0 MSN 1$",
          r"Path still to go: T0 1000 > T1 800\d > T0 1001 > host 0102"]
FAILS = ["mrc map", "mrc sim"]  # as the text says


def blocks():
    return re.findall(r"^```sh\n(.*?)^```$", TUTORIAL.read_text(encoding="utf-8"), re.M | re.S)


def may_be_apart():
    return shutil.which("unshare") is not None and subprocess.run(
        [*APART, "true"], check=False, capture_output=True).returncode == 0


def run_all(build, folder):
    """What each block printed."""
    script = pathlib.Path(folder, "tutorial.sh")
    parts = [f"echo '== {number}'\n{block}" for number, block in enumerate(blocks())]
    script.write_text(PRELUDE + "\n".join(parts), encoding="utf-8")
    environment = programs.bare_environment() | {
        "HOME": folder, "BUILD": str(build), "MRC_CONFIG": "/dev/null",
        "XDG_RUNTIME_DIR": folder, "XDG_CONFIG_HOME": folder}
    words = [*(APART if may_be_apart() else []), "sh", "-c", 'exec bash tutorial.sh 2>&1']
    done = programs.run(words, cwd=folder, env=environment, stdin=subprocess.DEVNULL,
                        timeout=LIMIT_S)
    print(done.stdout)
    return re.split(r"^== \d+\n", done.stdout, flags=re.M)[1:]


def check(printed):
    assert len(printed) == len(PRINTED), f"{len(printed)} blocks, {len(PRINTED)} known here"
    for number, (text, wanted) in enumerate(zip(printed, PRINTED)):
        more = TSHARK if "frames in port.pcapng" in text and "no tshark" not in text else []
        for pattern in [*wanted, *more]:
            assert re.search(pattern, text), f"block {number} without {pattern!r}:\n{text}"
    failed = re.findall(r"^failed with \d+: (.*)$", "".join(printed), re.M)
    assert len(failed) == len(FAILS), failed
    assert all(line.startswith(word) for line, word in zip(failed, FAILS)), failed


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", type=pathlib.Path, required=True)
    arguments = parser.parse_args()
    if shutil.which("bash") is None:
        programs.skip("there is no bash")
    programs.leave_cleanly_when_told()
    with programs.own_folder() as folder:
        check(run_all(arguments.build.resolve(), folder))
    return 0


if __name__ == "__main__":
    sys.exit(main())
