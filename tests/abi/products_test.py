#!/usr/bin/env python3
"""Reads the shared libraries: what they need, what they show, and under which versions.

Usage: products_test.py --facts facts.txt --library lib_mrc.so --shadow libibverbs.so.1
                        --symbols symbols.txt [--sanitized]
"""

import argparse
import pathlib
import re
import subprocess
import sys

PLAIN = {"libc.so.6", "libm.so.6", "libstdc++.so.6", "libgcc_s.so.1", "libatomic.so.1"}
LOADER = re.compile(r"ld-linux.*\.so\.\d+")
PRIVATE = {"mrc_private_real_symbol"}
# Public MRC programs refer to these and do not link libmlx5.
MLX5 = {"mlx5dv_is_supported", "mlx5dv_reg_dmabuf_mr", "mlx5dv_get_data_direct_sysfs_path"}
# Those NCCL looks up; without a single one it does without the device.
NCCL_NEEDS = """get_device_list free_device_list get_device_name open_device close_device
get_async_event ack_async_event query_device query_port query_gid query_qp alloc_pd dealloc_pd
reg_mr dereg_mr create_cq destroy_cq create_qp modify_qp destroy_qp fork_init event_type_str
reg_mr_iova2 reg_dmabuf_mr query_ece set_ece""".split()


def readelf(*arguments):
    return subprocess.run(["readelf", "-W", *arguments], check=True, capture_output=True,
                          text=True).stdout


def needed(path):
    return set(re.findall(r"\(NEEDED\).*\[(.+)\]", readelf("-d", path)))


def soname(path):
    return re.search(r"\(SONAME\).*\[(.+)\]", readelf("-d", path))[1]


def exported(path):
    """{(name, version, is_default)} of everything defined and visible."""
    found = set()
    for line in readelf("--dyn-syms", path).splitlines():
        words = line.split()
        if len(words) < 8 or words[4] not in ("GLOBAL", "WEAK", "UNIQUE") or words[6] == "UND":
            continue
        name, _, version = words[7].partition("@")
        if words[6] != "ABS":
            found.add((name, version.lstrip("@"), not version or version.startswith("@")))
    return found


class Tester:
    def __init__(self):
        self.failures = 0

    def expect(self, good, what):
        print(("ok    " if good else "FAIL  ") + what)
        self.failures += 0 if good else 1

    def check_library(self, path, facts, sanitized):
        functions = set(re.findall(r"^function \| (\w+)", facts, re.M))
        if not sanitized:
            extra = {n for n in needed(path) - PLAIN if not LOADER.fullmatch(n)}
            self.expect(not extra, f"needs nothing beyond libc and libstdc++ {sorted(extra)}")
        self.expect(soname(path) == "lib_mrc.so.1", "SONAME lib_mrc.so.1")
        shown = exported(path)
        own = {name for name in functions if name.startswith("openmrc_")}
        for version, wanted in [("MRC_1.0", functions - own), ("OPENMRC_1.0", own)]:
            found = {name for name, shown_as, _ in shown if shown_as == version}
            missing = sorted(wanted - found)
            self.expect(not missing, f"all functions of {version} {missing}")
            others = sorted(found - wanted)
            self.expect(not others, f"no other function in {version} {others}")
        private = {name for name, version, _ in shown if version == "MRC_PRIVATE_1"}
        self.expect(private == PRIVATE, f"private functions {sorted(private)}")
        verbs = {name for name, version, _ in shown if not version}
        strange = {name for name in verbs - MLX5 if not re.match(r"_?ibv_", name)}
        self.expect(not strange, f"nothing else is visible {sorted(strange)}")
        absent = {name for name in NCCL_NEEDS if "ibv_" + name not in verbs}
        self.expect(not absent, f"verbs functions {sorted(absent)}")
        self.expect(MLX5 <= verbs, f"functions of libmlx5 {sorted(MLX5 - verbs)}")

    def check_shadow(self, path, symbols):
        self.expect(soname(path) == "libibverbs.so.1", "shadow: SONAME libibverbs.so.1")
        self.expect("lib_mrc.so.1" in needed(path), "shadow: needs lib_mrc.so.1")
        wanted = set()
        for line in symbols.splitlines():
            words = line.split()
            if words and not line.startswith("#"):
                wanted.add((words[1], words[0], "old" not in words))
        wanted.add(("mrc_shadow_libibverbs", "MRC_PRIVATE_1", True))
        shown = exported(path)
        self.expect(not wanted - shown, f"shadow: {len(wanted)} symbols {sorted(wanted - shown)}")
        self.expect(not shown - wanted, f"shadow: no others {sorted(shown - wanted)}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--facts", type=pathlib.Path, required=True)
    parser.add_argument("--library", required=True)
    parser.add_argument("--shadow")
    parser.add_argument("--symbols", type=pathlib.Path)
    parser.add_argument("--sanitized", action="store_true")
    arguments = parser.parse_args()
    tester = Tester()
    tester.check_library(arguments.library, arguments.facts.read_text(encoding="utf-8"),
                         arguments.sanitized)
    if arguments.shadow:
        tester.check_shadow(arguments.shadow, arguments.symbols.read_text(encoding="utf-8"))
    return 1 if tester.failures else 0


if __name__ == "__main__":
    sys.exit(main())
