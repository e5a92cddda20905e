#!/usr/bin/env python3
"""Runs clang-tidy over sources, several of a folder at once.

Usage: clang_tidy.py <build folder with compile_commands.json> FILE...

Most of what clang-tidy does for one file it does for the headers that the file includes: 14 files of
one folder take 200 s one by one, and 40 s when a generated source includes them all. A batch that does
not compile is cut in halves. Prints the findings; exit status 1 if there are any.
"""

import collections
import concurrent.futures
import json
import os
import pathlib
import shlex
import subprocess
import sys
import tempfile

import batches

ROOT = pathlib.Path(__file__).resolve().parent.parent
TIDY = "clang-tidy-14"
# clang-tidy is older than the clang of the build and refuses one of its flags, which a later one
# overrides.
EXTRA = "-ftrivial-auto-var-init=uninitialized"
MOST_FILES = 12  # at once: two processors are to end at about the same time
CANNOT_COMPILE = "[clang-diagnostic-error"  # more often names of one file in the way of another


def flags_of(command):
    """A command without the file, what is made of it and notes about its headers."""
    words = shlex.split(command["command"])
    left, skip = [], False
    for word in words:
        if skip or word in ("-c", command["file"]):
            skip = False
        elif word in ("-o", "-MF", "-MT"):
            skip = True
        elif word != "-MD":
            left.append(word)
    return tuple(left)


def batches_of(files, commands):
    """Files of one folder with equal flags, with these flags."""
    folders = collections.defaultdict(list)
    for file in files:
        command = commands.get(str(file))
        folders[(file.parent, flags_of(command)) if command else (file, None)].append(file)
    return [(flags, members) for (_, flags), together in folders.items()
            for members in batches.plan(together, MOST_FILES)]


def tidy(folder, file):
    done = subprocess.run([TIDY, "-p", folder, "--quiet", f"--extra-arg={EXTRA}", file], text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    told = [line for line in done.stderr.splitlines() if "warnings generated" not in line]
    return done.returncode, done.stdout + "".join(f"{line}\n" for line in told)


def look_at(build, scratch, flags, files):
    """The findings of a batch, empty when it is clean."""
    if len(files) == 1:
        status, findings = tidy(build, files[0])
        return findings if status else ""
    folder = pathlib.Path(tempfile.mkdtemp(dir=scratch))
    source = folder / "batch.cc"
    source.write_text("".join(f'#include "{file}"  // NOLINT\n' for file in files))
    (folder / ".clang-tidy").symlink_to(ROOT / ".clang-tidy")
    (folder / "compile_commands.json").write_text(json.dumps(
        [{"directory": str(build), "file": str(source), "arguments": [*flags, "-c", str(source)]}]))
    status, findings = tidy(folder, source)
    if CANNOT_COMPILE in findings:
        half = len(files) // 2
        return (look_at(build, scratch, flags, files[:half]) +
                look_at(build, scratch, flags, files[half:]))
    return findings if status else ""


def main():
    if len(sys.argv) < 2:
        sys.exit(f"usage: {sys.argv[0]} <build folder> FILE...")
    build = pathlib.Path(sys.argv[1]).resolve()
    files = [pathlib.Path(name).resolve() for name in sys.argv[2:]]
    database = json.loads((build / "compile_commands.json").read_text(encoding="utf-8"))
    commands = {entry["file"]: entry for entry in database}
    work = sorted(batches_of(files, commands), key=lambda item: -len(item[1]))
    found = False
    with tempfile.TemporaryDirectory() as scratch, \
            concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        jobs = [pool.submit(look_at, build, scratch, *item) for item in work]
        for job in concurrent.futures.as_completed(jobs):
            if findings := job.result():
                print(findings, end="", flush=True)
                found = True
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
