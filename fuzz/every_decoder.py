#!/usr/bin/env python3
"""Checks that everything that reads bytes or texts from outside is fuzzed.

A decoder is a function named parse_* or decode_* that a header of the product declares. Its name
must occur in a fuzz/fuzz_*.cc, or stand in WITHIN beside the decoder that calls it, which must, or
in FLAGS: words that only the user of a program himself gives it on its command line. An entry that
names nothing any more is an error too. Usage: every_decoder.py <source root>.
"""

import pathlib
import re
import sys

DECODER = re.compile(r"\b((?:parse|decode)_\w+)\s*\(")
COMMENT = re.compile(r"//[^\n]*")
FOLDERS = ("src", "plugins", "tools")
FEWEST = 20  # fewer found means that this script looks in the wrong place

WITHIN = {
    "parse_address": "parse_config",
    "parse_algorithm": "parse_setup",
    "parse_cable": "parse_fault_file",
    "parse_count": "parse_config",
    "parse_ev": "parse_setup",
    "parse_ev_mode": "parse_setup",
    "parse_event_mask": "parse_setup",
    "parse_field": "parse_setup",
    "parse_format_mode": "parse_setup",
    "parse_ip_header": "parse_frame",
    "parse_mac": "parse_config",
    "parse_node_set": "parse_fault_file",
    "parse_number": "parse_fault_file",
    "parse_plane": "parse_fault_file",
    "parse_plane_address": "parse_config",
    "parse_rate": "parse_config",
    "parse_share": "parse_fault_file",
    "parse_time": "parse_fault_file",
    "parse_toml": "parse_topology",
    "parse_trimming": "parse_setup",
    "parse_usid_block": "parse_config",
    "parse_usids": "parse_config",
}
FLAGS = {"parse_cc_setting", "parse_gid", "parse_links", "parse_placement", "parse_seeds",
         "parse_switch", "parse_value", "parse_widths"}


def names(paths):
    found = {}
    for path in sorted(paths):
        text = COMMENT.sub("", path.read_text(encoding="utf-8"))
        for name in DECODER.findall(text):
            found.setdefault(name, path.name)
    return found


def problems(decoders, fuzzed):
    """What is wrong, a line each."""
    if len(decoders) < FEWEST:
        yield f"only {len(decoders)} decoders found; this script looks in the wrong place"
    for name, where in sorted(decoders.items()):
        caller = WITHIN.get(name, name)
        if name not in FLAGS and name not in fuzzed and caller not in fuzzed:
            yield f"{name} ({where}) has no fuzz target"
    for name in sorted({*WITHIN, *WITHIN.values(), *FLAGS} - set(decoders)):
        yield f"{name} is listed here and declared nowhere"


def main():
    root = pathlib.Path(sys.argv[1])
    headers = [path for folder in FOLDERS for path in (root / folder).rglob("*.h")]
    decoders = names(headers)
    found = list(problems(decoders, names((root / "fuzz").glob("fuzz_*.cc"))))
    for problem in found:
        print(f"every_decoder: {problem}")
    if not found:
        print(f"every_decoder: {len(decoders)} decoders, each reached by a fuzz target or a flag")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
