#!/usr/bin/env python3
"""Checks that a stock dissector reads our frames as RoCE.

Usage: tshark_test.py <wire_sample_writer> <folder for the capture>. The program writes a capture of
every packet type in plain IPv4 and IPv6 and prints what it put into each base transport header;
tshark must find the same. Exit status 77: no tshark.
"""

import pathlib
import shutil
import subprocess
import sys

FIELDS = [
    "udp.dstport",
    "infiniband.bth.opcode",
    "infiniband.bth.destqp",
    "infiniband.bth.psn",
    "infiniband.bth.padcnt",
    "infiniband.bth.tver",
    "infiniband.invariant.crc",
    "frame.protocols",
    "_ws.malformed",
]


def number(text):
    return int(text, 0)


def differences(line, expected):
    """Yields what is wrong with one line of tshark's answer."""
    values = dict(zip(FIELDS, line.split("|")))
    opcode, destination, psn, pad, crc = (number(word) for word in expected.split())
    wanted = {
        "udp.dstport": 4791,
        "infiniband.bth.opcode": opcode,
        "infiniband.bth.destqp": destination,
        "infiniband.bth.psn": psn,
        "infiniband.bth.padcnt": pad,
        "infiniband.bth.tver": 0,
    }
    for field, want in wanted.items():
        if not values[field] or number(values[field]) != want:
            yield f"{field} is {values[field] or 'missing'}, not {want}"
    # tshark places the ICRC only where it knows what follows the base header.
    if values["infiniband.invariant.crc"] and number(values["infiniband.invariant.crc"]) != crc:
        yield f"ICRC is {values['infiniband.invariant.crc']}, not {crc:#x}"
    if "infiniband" not in values["frame.protocols"]:
        yield f"dissected as {values['frame.protocols']}"


def main():
    tshark = shutil.which("tshark")
    if tshark is None:
        print("tshark_test: skipped, there is no tshark")
        return 77
    capture = pathlib.Path(sys.argv[2]) / "wire_samples.pcap"
    written = subprocess.run([sys.argv[1], "pcap", str(capture)], check=True, text=True,
                             stdout=subprocess.PIPE).stdout.splitlines()
    command = [tshark, "-n", "-r", str(capture), "-T", "fields", "-E", "separator=|"]
    for field in FIELDS:
        command += ["-e", field]
    done = subprocess.run(command, text=True, capture_output=True, check=False)
    if done.returncode != 0:
        print(f"tshark_test: tshark failed:\n{done.stderr}")
        return 1
    lines = done.stdout.splitlines()
    faults = 0
    if len(lines) != len(written):
        print(f"tshark_test: {len(written)} frames written, {len(lines)} read")
        faults += 1
    for index, (line, expected) in enumerate(zip(lines, written), 1):
        for text in differences(line, expected):
            print(f"tshark_test: frame {index}: {text}")
            faults += 1
    print(f"tshark_test: {len(lines)} frames, {faults} differences")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
