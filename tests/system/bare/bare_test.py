#!/usr/bin/env python3
"""Configures and builds the project with MRC_BARE, and lets two ranks talk over the plug-in.

Usage: bare_test.py --source DIR --build DIR --cc CC --cxx CXX [--launcher PROGRAM]

Says that nothing is installed, so that compat/ is used here too, and looks at what the compiler
read: nothing of any package. The build is not optimised; this is about whether, not how fast.
"""

import argparse
import os
import pathlib
import re
import subprocess
import sys

FOREIGN = re.compile(
    r"/(infiniband|rdma|toml\+\+|fmt|gtest|gmock|CLI|nlohmann|benchmark)/[\w+.]+$")
PACKAGES = ["GTest", "fmt", "tomlplusplus", "CLI11", "nlohmann_json", "benchmark"]
PRODUCTS = ["plugins/nccl/libnccl-net-openmrc.so", "plugins/nccl/librccl-net-openmrc.so",
            "plugins/nccl/libnccl-net-mrc.so", "lib/lib_mrc.so", "lib/libmrc.so",
            "lib/mrc/verbs/libibverbs.so.1", "examples/pytorch/mrc_ports",
            "tests/system/nccl/nccl_rank"]


def call(*command):
    done = subprocess.run(list(map(str, command)), stdout=subprocess.PIPE, text=True,
                          stderr=subprocess.STDOUT, check=False)
    if done.returncode != 0:
        raise SystemExit(f"{command[0]} failed:\n" + done.stdout[-4000:])
    return done.stdout


def foreign_headers(build, source):
    """What the compiler read from packages, by the records of Ninja."""
    found = set()
    for line in call("ninja", "-C", build, "-t", "deps").splitlines():
        path = line.strip()
        if FOREIGN.search(path) and source not in (build / path).resolve().parents:
            found.add(path)
    return sorted(found)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--source", type=pathlib.Path, required=True)
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--cc", required=True)
    parser.add_argument("--cxx", required=True)
    parser.add_argument("--launcher", default="")
    arguments = parser.parse_args()
    build, source = arguments.build.resolve(), arguments.source.resolve()
    call("cmake", "-G", "Ninja", "-S", source, "-B", build, "-DMRC_BARE=ON",
         "-DCMAKE_BUILD_TYPE=None", "-DCMAKE_INTERPROCEDURAL_OPTIMIZATION=OFF", "-DMRC_WERROR=ON",
         "-DMRC_HAVE_VERBS_HEADER=0", "-DMRC_HAVE_TOML=0",
         f"-DCMAKE_C_COMPILER={arguments.cc}", f"-DCMAKE_CXX_COMPILER={arguments.cxx}",
         f"-DCMAKE_C_COMPILER_LAUNCHER={arguments.launcher}",
         f"-DCMAKE_CXX_COMPILER_LAUNCHER={arguments.launcher}",
         *[f"-DCMAKE_DISABLE_FIND_PACKAGE_{name}=ON" for name in PACKAGES])
    call("cmake", "--build", build, "-j", os.cpu_count() or 2)
    missing = [product for product in PRODUCTS if not (build / product).exists()]
    if missing:
        raise SystemExit(f"not built: {', '.join(missing)}")
    foreign = foreign_headers(build, source)
    if foreign:
        raise SystemExit("headers of packages were used:\n  " + "\n  ".join(foreign))
    harness = source / "tests" / "system" / "nccl" / "nccl_test.py"
    print(call(sys.executable, "-B", harness, build / "tests/system/nccl/nccl_rank",
               build / "plugins/nccl/libnccl-net-openmrc.so", "groups", "11"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
