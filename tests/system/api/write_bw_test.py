#!/usr/bin/env python3
"""Builds the starter or the benchmark by the examples' makefile and runs it as two processes, data
compared.

Usage: write_bw_test.py --examples DIR --include DIR --libraries DIR --cc CC [--sanitize FLAGS] CASE

CASE: starter, powers, edges, odd, no_setup.
"""

import argparse
import pathlib
import random
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "support"))

import programs  # noqa: E402  (found through the line above)

TIMEOUT_S = 300
MIB = 1 << 20


def sizes_of(case):
    if case == "edges":
        around = [n + d for n in (256, 1024, 4096, 8192, 65536, MIB, 64 * MIB) for d in (-1, 0, 1)]
        return [0, 1, 2, 3, 5, 7] + [size for size in around if size <= 64 * MIB]
    if case == "odd":
        numbers = random.Random(4791)
        return [numbers.randrange(1, 1 << numbers.randrange(1, 24)) for _ in range(40)]
    return [1 << n for n in range(27)]


class Bench:
    def __init__(self, arguments, folder):
        self.arguments = arguments
        self.folder = pathlib.Path(folder)
        self.environment = (programs.bare_environment() if arguments.case == "no_setup" else
                            programs.device_environment(folder))
        self.environment["LD_LIBRARY_PATH"] = str(arguments.libraries)

    def build(self, target):
        source = self.folder / "examples"
        shutil.copytree(self.arguments.examples, source)
        flags = "-O1 -g -Wall -Wextra -Werror"
        if self.arguments.sanitize:
            flags += f" -fsanitize={self.arguments.sanitize}"
        subprocess.run(["make", "-s", "-C", source, target, f"CC={self.arguments.cc}",
                        f"CFLAGS={flags}", f"MRC_INCLUDE={self.arguments.include}",
                        f"MRC_LIB={self.arguments.libraries}"], check=True)
        return source / target

    def command(self):
        port = str(programs.free_tcp_port())
        if self.arguments.case == "starter":
            self.environment["PORT"] = port
            return [self.build("starter")]
        sizes = ",".join(str(size) for size in sizes_of(self.arguments.case))
        return [self.build("write_bw"), "-n", "128", "-s", sizes, "-p", port]

    def run(self):
        command = self.command()
        server = subprocess.Popen(command, env=self.environment, stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, text=True)
        try:
            client = subprocess.run([*command, "127.0.0.1"], env=self.environment, text=True,
                                    stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                    timeout=TIMEOUT_S, check=False)
            output, _ = server.communicate(timeout=TIMEOUT_S)
        finally:
            server.kill()
            server.wait()
        print(client.stdout, output)
        assert client.returncode == 0 and server.returncode == 0, \
            f"client {client.returncode}, server {server.returncode}"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--examples", type=pathlib.Path, required=True)
    parser.add_argument("--include", type=pathlib.Path, required=True)
    parser.add_argument("--libraries", type=pathlib.Path, required=True)
    parser.add_argument("--cc", required=True)
    parser.add_argument("--sanitize", default="")
    parser.add_argument("case", choices=["starter", "powers", "edges", "odd", "no_setup"])
    arguments = parser.parse_args()
    programs.leave_cleanly_when_told()
    with programs.own_folder() as folder:
        Bench(arguments, folder).run()
    return 0


if __name__ == "__main__":
    sys.exit(main())
