#!/usr/bin/env python3
"""Checks that base, wire and core reach nothing outside themselves.

Reads the undefined symbols of the given archives, drops those that one of the archives defines,
and compares the rest with an allow-list: memory primitives, operator new and delete, abort, and
what the compiler and the checked standard library emit on their own. A clock, a thread, a random
source, I/O, throwing or catching is not on the list, so using one fails this test.

Exit status: 0 clean, 1 violation, 77 nothing to check (instrumented build or no archive yet).
"""

import argparse
import os
import re
import subprocess
import sys

# Full matches, on demangled names.
ALLOWED = [
    r"mem(cpy|move|set|cmp|chr)|strlen|abort",
    r"__mem(cpy|move|set)_chk",
    r"operator (new|delete)(\[\])?\(.*\)",
    r"std::nothrow",
    r"std::__throw_\w+\(.*\)",
    r"std::__glibcxx_assert_fail\(.*\)",
    r"__stack_chk_(fail|guard)",
    r"__cxa_pure_virtual",
    # Destructors that run while an exception of the caller's allocator passes through.
    r"_Unwind_Resume|__gxx_personality_v0",
    r"_GLOBAL_OFFSET_TABLE_",
    # Integer helpers of the compiler's runtime for 128-bit arithmetic and bit counts.
    r"__(u?div|u?mod)ti3|__udivmodti4|__multi3|__popcount[ds]i2",
]

# Archive-specific additions: wire may ask the CPU whether it has CRC instructions.
ALLOWED_IN = {
    "libmrc_wire.a": [r"getauxval", r"__cpu_model", r"__cpu_features2", r"__cpu_indicator_init"],
}

INSTRUMENTED = re.compile(r"__(asan|ubsan|tsan|msan|sanitizer|gcov|llvm_profile|sanitizer_cov)_")


def run(command, stdin=None):
    done = subprocess.run(command, input=stdin, capture_output=True, text=True, check=True)
    return done.stdout


def symbols(nm, archive):
    """Yields (object file, type letter, mangled name) for each symbol of the archive."""
    for line in run([nm, "-A", archive]).splitlines():
        where, _, rest = line.rpartition(":")
        fields = rest.split()
        if len(fields) >= 2:
            yield where.rpartition(":")[2], fields[-2], fields[-1]


def is_allowed(archive, name):
    patterns = ALLOWED + ALLOWED_IN.get(os.path.basename(archive), [])
    return any(re.fullmatch(pattern, name) for pattern in patterns)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nm", default="nm")
    parser.add_argument("archives", nargs="*")
    options = parser.parse_args()

    defined = set()
    undefined = {}  # (archive, mangled name) -> object files that want it
    for archive in options.archives:
        for where, kind, name in symbols(options.nm, archive):
            if INSTRUMENTED.match(name):
                print(f"core_symbols: skipped, {archive} is an instrumented build")
                return 77
            if kind in "Uw":
                undefined.setdefault((archive, name), set()).add(where)
            else:
                defined.add(name)
    if not options.archives:
        print("core_symbols: skipped, no archive yet")
        return 77

    outside = sorted(key for key in undefined if key[1] not in defined)
    plain = run(["c++filt"], "".join(name + "\n" for _, name in outside)).splitlines()
    bad = 0
    for (archive, mangled), name in zip(outside, plain):
        if not is_allowed(archive, name):
            bad += 1
            users = " ".join(sorted(undefined[(archive, mangled)]))
            print(f"core_symbols: {os.path.basename(archive)}: {name} is not allowed ({users})")
    if bad:
        return 1
    print(f"core_symbols: {len(outside)} undefined symbols, all allowed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
