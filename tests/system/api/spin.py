#!/usr/bin/env python3
"""Runs a test program with a state directory and UDP ports of its own.

Usage: spin.py PROGRAM [ARGUMENTS...]
"""

import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "support"))

import programs  # noqa: E402  (found through the line above)


def main():
    programs.leave_cleanly_when_told()
    with programs.own_folder() as folder:
        environment = programs.device_environment(folder, MRC_LOG_LEVEL="error")
        return subprocess.run(sys.argv[1:], env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main() and 1)
