#!/usr/bin/env python3
"""Runs a test program with a state directory and UDP ports of its own.

Usage: spin.py PROGRAM [ARGUMENTS...]
"""

import os
import random
import subprocess
import sys
import tempfile


def main():
    with tempfile.TemporaryDirectory() as folder:
        environment = {name: value for name, value in os.environ.items()
                       if not name.startswith("MRC_")}
        environment.update(MRC_STATE_DIR=folder, XDG_CONFIG_HOME=folder, MRC_LOG_LEVEL="error",
                           MRC_PORT=str(random.SystemRandom().randrange(10_000, 30_000)))
        return subprocess.run(sys.argv[1:], env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main() and 1)
