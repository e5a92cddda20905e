#!/usr/bin/env python3
"""The units for systemd: sound, and closed to what the programs do not need.

Usage: units_test.py <mrc> <build folder of the units>. Exit status 77 without systemd-analyze.
"""

import json
import pathlib
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "tests" / "support"))

import programs  # noqa: E402  (found through the line above)

# What `systemd-analyze security` says at the most: 0 is closed, 10 is open, 9.6 a unit that says
# nothing of it.
MOST_EXPOSED = {"mrc-ctld": 3.0, "mrc-exporter": 2.5}


class UnitsTest(programs.ToolTest):
    build = None

    def setUp(self):
        super().setUp()
        self.prefix = pathlib.Path(self.folder) / "prefix"
        done = programs.run(["cmake", f"-DCMAKE_INSTALL_PREFIX={self.prefix}", "-P",
                             f"{self.build}/cmake_install.cmake"])
        self.assertEqual(done.returncode, 0, done.stderr)
        self.units = {path.stem: path for path in self.prefix.rglob("*.service")}
        (self.prefix / "bin").mkdir()
        (self.prefix / "bin" / "mrc").symlink_to(self.program)

    def analyze(self, *words):
        return subprocess.run(["systemd-analyze", *map(str, words)], check=False, text=True,
                              capture_output=True)

    def test_units_are_sound(self):
        self.assertEqual(set(self.units), set(MOST_EXPOSED))
        for name, path in self.units.items():
            self.assertIn(f"ExecStart={self.prefix}/bin/mrc ", path.read_text(encoding="ascii"))
            done = self.analyze("verify", "--man=no", "--recursive-errors=no", path)
            self.assertEqual((done.returncode, done.stderr), (0, ""), name)

    def test_units_are_closed(self):
        for name, path in self.units.items():
            done = self.analyze("security", "--offline=true", "--json=short", path)
            rows = json.loads(done.stdout)
            self.assertTrue(rows, done.stderr)
            most = int(10 * MOST_EXPOSED[name])
            done = self.analyze("security", "--offline=true", f"--threshold={most}", path)
            self.assertEqual(done.returncode, 0, f"{name}: {done.stdout[-300:]}")


if __name__ == "__main__":
    if shutil.which("systemd-analyze") is None:
        programs.skip("there is no systemd-analyze")
    programs.main(UnitsTest, "build")
