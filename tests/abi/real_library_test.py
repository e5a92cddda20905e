#!/usr/bin/env python3
"""What the real libibverbs says about fork() reaches the program.

Usage: real_library_test.py --library lib_mrc.so.1 --cc CC

A library that stands in for the real one refuses ibv_fork_init, as the real one does where the
kernel cannot keep pages from a child. A program linked with ours must hear of it.
"""

import argparse
import os
import pathlib
import subprocess
import sys
import tempfile

REAL = """
int ibv_fork_init(void) { return 38; }
int ibv_is_fork_initialized(void) { return 0; }
"""
PROGRAM = """
#include <stdio.h>
int ibv_fork_init(void);
int ibv_is_fork_initialized(void);
int main(void) {
  const int refused = ibv_fork_init();
  printf("%d %d\\n", refused, ibv_is_fork_initialized());
  return 0;
}
"""
ENOSYS, DISABLED, UNNEEDED = 38, 0, 2


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--library", type=pathlib.Path, required=True)
    parser.add_argument("--cc", required=True)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "real.c").write_text(REAL, encoding="utf-8")
        (folder / "program.c").write_text(PROGRAM, encoding="utf-8")
        real, program = folder / "libibverbs.so.1", folder / "program"
        subprocess.run([arguments.cc, "-shared", "-fPIC", folder / "real.c", "-o", real],
                       check=True)
        subprocess.run([arguments.cc, folder / "program.c", arguments.library, "-o", program,
                        f"-Wl,-rpath,{arguments.library.parent}"], check=True)
        failures = 0
        for named, expected in ((real, (ENOSYS, DISABLED)), (folder / "none", (0, UNNEEDED))):
            said = subprocess.run([program], env={**os.environ, "MRC_LIBIBVERBS": str(named)},
                                  capture_output=True, text=True, check=True).stdout.split()
            good = tuple(map(int, said)) == expected
            print(f"{'ok  ' if good else 'FAIL'} {named.name}: {said}, expected {expected}")
            failures += not good
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
