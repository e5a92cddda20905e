#!/usr/bin/env python3
"""Checks that every decoder of the wire module is fuzzed.

A decoder is a function named parse_* that a header in src/wire declares. Its name must occur in at
least one fuzz/fuzz_*.cc. Usage: every_decoder.py <source root>.
"""

import pathlib
import re
import sys

DECLARATION = re.compile(r"\b(parse_\w+)\s*\(")
COMMENT = re.compile(r"//[^\n]*")
FEWEST = 5  # fewer found means that this script looks in the wrong place


def names(paths):
    found = {}
    for path in sorted(paths):
        text = COMMENT.sub("", path.read_text(encoding="utf-8"))
        for name in DECLARATION.findall(text):
            found.setdefault(name, path.name)
    return found


def main():
    root = pathlib.Path(sys.argv[1])
    decoders = names((root / "src" / "wire").glob("*.h"))
    fuzzed = names((root / "fuzz").glob("fuzz_*.cc"))
    if len(decoders) < FEWEST:
        print(f"every_decoder: only {len(decoders)} decoders found in {root}/src/wire")
        return 1
    missing = {name: where for name, where in decoders.items() if name not in fuzzed}
    for name, where in sorted(missing.items()):
        print(f"every_decoder: {name} ({where}) has no fuzz target")
    if not missing:
        print(f"every_decoder: {len(decoders)} decoders, each in a fuzz target")
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
