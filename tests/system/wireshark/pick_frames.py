#!/usr/bin/env python3
"""Copies some frames of a pcapng file as they are: pick_frames.py IN OUT < numbers, one a line.

Frames count from 1 as in tshark, whose own way of writing captures changes times and adds where
they were made.
"""

import pathlib
import struct
import sys

ENHANCED_PACKET = 6


def blocks(data):
    at = 0
    while at < len(data):
        kind, length = struct.unpack_from("<II", data, at)
        yield kind, data[at : at + length]
        at += length


def main():
    source, target = map(pathlib.Path, sys.argv[1:])
    wanted = {int(line) for line in sys.stdin}
    kept = []
    number = 0
    for kind, block in blocks(source.read_bytes()):
        number += kind == ENHANCED_PACKET
        if kind != ENHANCED_PACKET or number in wanted:
            kept.append(block)
    target.write_bytes(b"".join(kept))


if __name__ == "__main__":
    main()
