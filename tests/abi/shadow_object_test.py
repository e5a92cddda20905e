#!/usr/bin/env python3
"""The slots of the shadow libibverbs lie in writable memory, however it is compiled."""
import argparse
import pathlib
import subprocess
import sys
import tempfile


def slots(compiler, source, generated, level, folder):
    compiled = pathlib.Path(folder) / f"shadow{level}.o"
    subprocess.run([compiler, level, "-fPIC", f"-I{generated}", "-c", source, "-o", compiled],
                   check=True)
    listing = subprocess.run(["nm", compiled], check=True, capture_output=True, text=True).stdout
    symbols = [line.split() for line in listing.splitlines()]
    return {s[-1]: s[-2] for s in symbols if s[-1].startswith("mrc_slot_")}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--cc", required=True)
    parser.add_argument("--source", required=True)
    parser.add_argument("--generated", required=True)
    args = parser.parse_args()
    failed = False
    with tempfile.TemporaryDirectory() as folder:
        for level in ("-O0", "-O1", "-O2", "-Os"):
            kinds = slots(args.cc, args.source, args.generated, level, folder)
            wrong = [name for name, kind in kinds.items() if kind not in "bBdD"]
            print(f"{level}: {len(kinds)} slots, {len(wrong)} not writable")
            failed = failed or not kinds or bool(wrong)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
