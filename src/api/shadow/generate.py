#!/usr/bin/env python3
"""Writes what shadow.c and the linker need from the list of symbols.

Usage: generate.py symbols.txt symbols.inc libibverbs.map
"""

import sys


def read_symbols(path):
    """Yields (version, name, kind) in the order of the file; kind is "", "old" or "data"."""
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            words = line.split()
            if words and not line.startswith("#"):
                yield words[0], words[1], "".join(words[2:])


def include_text(symbols):
    macros = {"": "MRC_SYMBOL", "old": "MRC_OLD_SYMBOL", "data": "MRC_DATA_SYMBOL"}
    for version, name, kind in symbols:
        yield f'{macros[kind]}({name}, "{version}")'


def map_text(symbols):
    """A version script; each node continues the one before, as in the real library."""
    nodes = {}
    for version, name, _ in symbols:
        nodes.setdefault(version, []).append(name)
    previous = ""
    for version, names in nodes.items():
        yield f"{version} {{"
        yield "  global:"
        yield from (f"    {name};" for name in names)
        if not previous:
            yield "  local:"
            yield "    *;"
        yield f"}}{previous};"
        previous = " " + version
    yield "MRC_PRIVATE_1 { global: mrc_shadow_libibverbs; };"


def write(path, lines):
    with open(path, "w", encoding="utf-8") as out:
        out.write("\n".join(lines) + "\n")


def main():
    symbols = list(read_symbols(sys.argv[1]))
    write(sys.argv[2], include_text(symbols))
    write(sys.argv[3], map_text(symbols))


if __name__ == "__main__":
    main()
