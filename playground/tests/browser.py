#!/usr/bin/env python3
"""Runs browser.mjs where there is node: browser.py <index.html> [folder for pictures]."""

import pathlib
import shutil
import subprocess
import sys


def main():
    page, *pictures = map(pathlib.Path, sys.argv[1:])
    if shutil.which("node") is None or not page.exists():
        print("skipped: node or the page is missing; playground/build.sh builds it")
        return 77
    for folder in pictures:
        folder.mkdir(parents=True, exist_ok=True)
    script = pathlib.Path(__file__).with_name("browser.mjs")
    return subprocess.run(["node", script, page, *pictures], check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
