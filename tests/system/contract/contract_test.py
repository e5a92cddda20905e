#!/usr/bin/env python3
"""Programs written from the contract of the API alone, built against an installed tree and run.

Usage: contract_test.py --build DIR --cc CC [--tool] [unittest arguments]

The tree goes into a folder of the test's own; headers and library are found by pkg-config there and
nowhere else. --tool: there is `mrc` to be installed, too.
"""

import argparse
import os
import pathlib
import shutil
import sys
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "support"))

import programs  # noqa: E402  (found through the line above)

arguments = None

# Another node of the same machine: addresses of its own on the planes of the first one.
OTHER_NODE = "[device.mrc0]\nplane = [" + ", ".join(
    f'{{ interface = "lo", address = "127.0.{plane}.2/24" }}' for plane in range(4)) + "]\n"


class Stranger(programs.CleanTest):
    def setUp(self):
        super().setUp()
        if shutil.which("pkg-config") is None:
            self.skipTest("no pkg-config")
        os.chmod(self.folder, 0o755)  # a part of a test runs as another user
        self.folder = pathlib.Path(self.folder)
        self.state = self.folder / "state"
        self.state.mkdir(mode=0o755)
        self.prefix = self.folder / "prefix"
        component = [] if arguments.tool else ["--component", "library"]
        self.must("cmake", "--install", arguments.build, "--prefix", self.prefix, *component)
        self.libraries = next(self.prefix.rglob("lib_mrc.so")).parent
        self.environment = programs.device_environment(
            self.state, LD_LIBRARY_PATH=str(self.libraries))

    def must(self, *words, **options):
        done = programs.run([str(word) for word in words], **options)
        self.assertEqual(done.returncode, 0, f"{words}\n{done.stdout}{done.stderr}")
        return done.stdout

    def build(self, name):
        package = dict(self.environment, PKG_CONFIG_PATH=str(self.libraries / "pkgconfig"))
        flags = self.must("pkg-config", "--cflags", "--libs", "mrc", env=package).split()
        program = self.folder / name
        self.must(arguments.cc, "-std=c11", "-O1", "-g", "-Wall", "-Wextra", "-Werror",
                  HERE / f"{name}.c", *flags, "-libverbs", "-lpthread", "-o", program)
        return program

    def hold(self, *words, **variables):
        """Runs a program: 0 when all held, 77 when there is no device, which here there must be."""
        done = programs.run([str(word) for word in words], env=self.environment | variables)
        self.assertEqual(done.returncode, 0, f"{words}\n{done.stdout}{done.stderr}")
        self.assertIn("all held", done.stdout)

    def test_benchmark(self):
        self.hold(self.build("stranger_benchmark"))

    def test_plugin(self):
        program = self.build("stranger_plugin")
        self.hold(program)
        if arguments.tool:
            self.hold(self.prefix / "bin" / "mrc", "run", program, "--sysfs")

    def test_controller(self):
        program = self.build("stranger_controller")
        self.hold(program)
        # Cards round the counts of explicit profiles to some number.
        self.hold(program, MRC_EV_COUNT_ALIGN="8")

    def test_events(self):
        program = self.build("stranger_events")
        self.hold(program)
        config = self.folder / "other.toml"
        config.write_text(OTHER_NODE, encoding="utf-8")
        self.hold(program, f"MRC_CONFIG={config}", f"MRC_STATE_DIR={self.folder}/other")

    def test_no_device_is_told_apart(self):
        program = self.build("stranger_benchmark")
        config = self.folder / "none.toml"
        config.write_text("this is no configuration", encoding="utf-8")
        done = programs.run([str(program)], env=self.environment | {"MRC_CONFIG": str(config)})
        self.assertEqual(done.returncode, programs.SKIPPED, done.stdout + done.stderr)


def main():
    global arguments
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", required=True)
    parser.add_argument("--cc", required=True)
    parser.add_argument("--tool", action="store_true")
    arguments, rest = parser.parse_known_args()
    programs.leave_cleanly_when_told()
    unittest.main(argv=[sys.argv[0], *rest], verbosity=2)


if __name__ == "__main__":
    main()
