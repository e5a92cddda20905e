#!/usr/bin/env python3
"""Installs into an empty folder and uses what is there as programs do.

Usage: install_test.py --build DIR --cc CC [--tool]

The library by the public makefile's way, by pkg-config and as a CMake package; --tool: also the
program, with `mrc run`.
"""

import argparse
import pathlib
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "support"))

import programs  # noqa: E402  (found through the line above)

PROGRAM = """
#include <errno.h>
#include <mrc.h>
#include <openmrc_counters.h>
#include <stdio.h>
int main(void) {
  int count = 0;
  uint32_t version = 0;
  struct ibv_device** list = ibv_get_device_list(&count);
  mrc_query_version(&version, NULL, NULL, NULL);
  if (list == NULL || count == 0 || version != MRC_API_CURRENT_VERSION) return 1;
  if (openmrc_query_qp_counters(NULL, NULL) != EINVAL) return 1;
  puts(ibv_get_device_name(list[0]));
  ibv_free_device_list(list);
  return 0;
}
"""

CMAKE_LISTS = """
cmake_minimum_required(VERSION 3.16)
project(user C)
find_package(mrc REQUIRED)
add_executable(user user.c)
target_link_libraries(user PRIVATE mrc::mrc)
"""


def run(*command, **options):
    done = subprocess.run([str(word) for word in command], check=False, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **options)
    assert done.returncode == 0, f"{command}\n{done.stdout}"
    return done.stdout


class Installed:
    def __init__(self, arguments, folder):
        self.cc = arguments.cc
        self.folder = pathlib.Path(folder)
        self.prefix = self.folder / "prefix"
        component = [] if arguments.tool else ["--component", "library"]
        run("cmake", "--install", arguments.build, "--prefix", self.prefix, *component)
        self.libraries = next(self.prefix.rglob("lib_mrc.so")).parent
        self.source = self.folder / "user.c"
        self.source.write_text(PROGRAM, encoding="utf-8")
        self.environment = programs.device_environment(folder)

    def expect_device(self, program, libraries=None):
        environment = dict(self.environment)
        if libraries is not None:
            environment["LD_LIBRARY_PATH"] = str(libraries)
        assert run(program, env=environment).strip() == "mrc0"

    def check_by_path(self):
        program = self.folder / "by_path"
        run(self.cc, f"-I{self.prefix}/include", self.source, self.libraries / "lib_mrc.so",
            "-libverbs", "-o", program)
        self.expect_device(program, self.libraries)

    def check_by_plain_name(self):
        program = self.folder / "by_name"
        run(self.cc, f"-I{self.prefix}/include", self.source, f"-L{self.libraries}", "-lmrc",
            "-o", program)
        self.expect_device(program, self.libraries)

    def check_by_pkg_config(self):
        if shutil.which("pkg-config") is None:
            return
        environment = dict(self.environment, PKG_CONFIG_PATH=str(self.libraries / "pkgconfig"))
        flags = run("pkg-config", "--cflags", "--libs", "mrc", env=environment).split()
        program = self.folder / "by_pkg_config"
        run(self.cc, self.source, *flags, "-o", program)
        self.expect_device(program, self.libraries)

    def check_by_cmake(self):
        user = self.folder / "user"
        user.mkdir()
        shutil.copy(self.source, user / "user.c")
        (user / "CMakeLists.txt").write_text(CMAKE_LISTS, encoding="utf-8")
        run("cmake", "-S", user, "-B", user / "build", f"-DCMAKE_PREFIX_PATH={self.prefix}",
            f"-DCMAKE_C_COMPILER={self.cc}")
        run("cmake", "--build", user / "build")
        self.expect_device(user / "build" / "user")

    def check_tool(self):
        tool = self.prefix / "bin" / "mrc"
        if shutil.which("ibv_devices") is None:
            return
        text = run(tool, "run", "ibv_devices", env=self.environment)
        assert "mrc0" in text, text
        text = run(tool, "run", "--no-preload", "--", "ibv_devices", env=self.environment)
        assert "mrc0" in text, text
        assert "LD_PRELOAD" in run(tool, "run", "--print", env=self.environment)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--cc", required=True)
    parser.add_argument("--tool", action="store_true")
    arguments = parser.parse_args()
    programs.leave_cleanly_when_told()
    with programs.own_folder() as folder:
        installed = Installed(arguments, folder)
        installed.check_by_path()
        installed.check_by_plain_name()
        installed.check_by_pkg_config()
        installed.check_by_cmake()
        if arguments.tool:
            installed.check_tool()
    return 0


if __name__ == "__main__":
    sys.exit(main())
