#!/usr/bin/env python3
"""Enforces the house rules that a compiler does not: see CONTRIBUTING.md.

Usage: tidy.py [source root]. Prints one line for each violation; exit status 1 if there is any.
"""

import itertools
import pathlib
import re
import sys

import class_size
import cpp_text
import doc_names

FOLDERS = ["include", "compat", "src", "plugins", "tools", "tests", "fuzz", "bench"]
DOCUMENTED_FOLDERS = ["docs", "cmake", "examples", "scenarios", "scripts"]
CPP_SUFFIXES = {".h", ".cc", ".c"}
TEXT_SUFFIXES = CPP_SUFFIXES | {".inc", ".py", ".sh", ".cmake"}
# Seeds and captured inputs are data, not source.
DATA_FOLDERS = {"corpus", "seeds", "node_modules"}

MAX_COLUMNS = 100
MAX_FILE_LINES = 799
MAX_FUNCTION_LINES = 70
# Of a class with methods; values without any may be as long as what they describe.
MAX_FIELDS = 20
MAX_METHODS = 40

# (fields, methods) of classes beyond that, and why.
LARGE_CLASSES = {
    "Endpoint": (20, 41, "the whole surface of the engine"),
    "Requester": (23, 70, "the sending half of the protocol; its state is in eight components"),
    "Responder": (24, 40, "the receiving half of the protocol"),
    "Endpoint::Impl": (20, 57, "the inside of the engine, spread over four files by direction"),
    "PathSet": (20, 50, "one name for what four components do"),
    "Rotation": (20, 50, "half of the methods are one line"),
    "SendWindow": (20, 43, "two orders over one array of records, each with its own questions"),
    "Nscc": (31, 40, "the published algorithm with its own names"),
    "QueuePairImpl": (20, 43, "both sides of the lock between program and engine"),
    "Simulation": (20, 40, "owner of a run and of all that takes part in it"),
}

# The only files that may read the environment, see os/environment.h.
# The second is a C library of its own that stands before libc.
ENVIRONMENT = ("src/os/environment.cc", "src/api/sysfs/redirect.c")
GETENV = re.compile(r"\b(secure_)?getenv\b")

# Modules in which every .cc has a test of its name, and what tests the others.
MIRRORED = {"core", "seal", "fabric", "controller", "collective"}
TESTED_ELSEWHERE = {
    "src/controller/event_queue.cc": "tests/system/ctl, ctld",
    "src/controller/prober.cc": "tests/system/map",
    "src/controller/session.cc": "apply_test.cc, tests/system/ctl",
    "src/collective/channel.cc": "tools/mrc/tests/collective_smoke.py",
    "src/collective/communicator.cc": "tools/mrc/tests/collective_smoke.py",
    "src/collective/device.cc": "collectives_test.cc, tools/mrc/tests/collective_smoke.py",
}

# What each module may include besides itself.
CORE = {"base", "wire", "core"}
MAY_INCLUDE = {
    "base": set(),
    "wire": {"base"},
    "core": {"base", "wire"},
    "capture": {"base", "wire"},
    "fabric": CORE,
    "sim": CORE | {"fabric"},
    "view": CORE | {"fabric", "sim"},
    "os": {"base", "wire"},
    "seal": {"base", "wire", "os"},
    "node": CORE | {"os"},
    "nic": CORE | {"os", "seal", "node"},
    "api": CORE | {"os", "seal", "node", "nic"},
    "lab": CORE | {"os", "seal", "fabric", "sim"},
    # These use the C API, as any program does, and see nothing behind it.
    "controller": {"base", "wire", "core", "fabric", "os", "node"},
    "collective": {"base", "wire", "os"},
}

# Spelled in halves so that this file passes its own check.
MARKERS = re.compile(r"\b(" + "|".join(["TO" + "DO", "FIX" + "ME", "X" + "XX"]) + r")\b")
INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"')
# Statements behind `//`. Three or more spaces mark an example of use, which is welcome.
DEAD_CODE = re.compile(
    r"""^\s*//[ ]{0,2}(
        [\w:.\[\]>-]+\(.*\)\s*;                  # a call
      | (if|for|while|switch)\s*\(.*\)\s*\{      # a block
      | return\b[^.]*;                           # a return
      | \#\s*(include|define|if|endif)\b.*       # a directive
      | [\w:<>,*&]+(\s+[\w:<>,*&]+)?\s+=\s+.*;   # an assignment
      | \}
    )\s*$""",
    re.X,
)


def check_includes(path, lines):
    """Yields (line number, message) for each include that goes the wrong way."""
    module = path.parts[1] if path.parts[0] == "src" and len(path.parts) > 2 else None
    for number, line in enumerate(lines, 1):
        match = INCLUDE.match(line)
        if not match:
            continue
        target = match.group(1)
        first = target.split("/")[0]
        if first == "..":
            yield number, f'include "{target}" from the source root, not relative to the file'
        elif path.parts[0] == "plugins" and first in MAY_INCLUDE:
            yield number, f'plugins see only include/, not "{target}"'
        elif path.parts[0] == "tools" and first == "api":
            yield number, f'tools use the C API by its headers, not "{target}"'
        elif module in MAY_INCLUDE and first in MAY_INCLUDE:
            if first != module and first not in MAY_INCLUDE[module]:
                yield number, f'{module} must not include "{target}"'


def check_lines(lines, is_cpp):
    for number, line in enumerate(lines, 1):
        if len(line) > MAX_COLUMNS:
            yield number, f"{len(line)} columns, at most {MAX_COLUMNS}"
        if "\t" in line:
            yield number, "tab"
        if line != line.rstrip():
            yield number, "space at the end of the line"
        match = MARKERS.search(line)
        if match:
            yield number, f"{match.group(1)}: finish it or open an issue"
        if is_cpp and DEAD_CODE.match(line):
            yield number, "commented-out code"


def check_classes(path, text):
    if path.parts[0] not in ("src", "plugins", "tools"):
        return
    for number, name, fields, methods in class_size.classes(text):
        if methods == 0:
            continue
        most_fields, most_methods, _ = LARGE_CLASSES.get(name, (MAX_FIELDS, MAX_METHODS, ""))
        if fields > most_fields:
            yield number, f"{name} has {fields} fields, at most {most_fields}"
        if methods > most_methods:
            yield number, f"{name} has {methods} methods, at most {most_methods}"


def check_environment(path, text):
    if path.parts[0] not in ("src", "plugins", "tools") or path.as_posix() in ENVIRONMENT:
        return
    for number, line in enumerate(cpp_text.blank(text).splitlines(), 1):
        if GETENV.search(line):
            yield number, "the environment is read by os::environment() alone"


def check_mirrors(files):
    """Yields (path, message) for each source without a test of its name."""
    tests = {path.as_posix() for path in files if path.as_posix().startswith("tests/unit/")}
    for path in files:
        if path.parts[0] != "src" or path.parts[1] not in MIRRORED or path.suffix != ".cc":
            continue
        test = f"tests/unit/{path.parts[1]}/{path.stem}_test.cc"
        listed = path.as_posix() in TESTED_ELSEWHERE
        if test not in tests and not listed:
            yield path, f"no test {test}"
        if test in tests and listed:
            yield path, f"has {test} and need not be listed as tested elsewhere"


def check_tool_folders(files):
    """Yields (path, message) for each folder of a tool that could be taken for a module of src."""
    for path in files:
        parts = path.parts
        if parts[0] == "tools" and len(parts) > 3 and parts[2] in MAY_INCLUDE:
            yield path, f"{parts[2]} is a module of src; includes of the two look alike"


def check_text(path, text):
    """Yields (line number, message) for each violation; path is relative to the source root."""
    lines = text.splitlines()
    is_cpp = path.suffix in CPP_SUFFIXES
    yield from check_lines(lines, is_cpp)
    if len(lines) > MAX_FILE_LINES:
        yield 1, f"{len(lines)} lines, at most {MAX_FILE_LINES}"
    if text and not text.endswith("\n"):
        yield len(lines), "no newline at the end of the file"
    if not is_cpp:
        return
    yield from check_includes(path, lines)
    yield from check_classes(path, text)
    yield from check_environment(path, text)
    # The C headers for other programs use guards, which every C compiler knows.
    if path.suffix == ".h" and path.parts[0] not in ("include", "compat"):
        if not re.search(r"^#pragma once$", text, re.M):
            yield 1, "no #pragma once"
    for first, last, head in cpp_text.functions(text):
        length = last - first + 1
        if length > MAX_FUNCTION_LINES:
            yield first, f"function of {length} lines, at most {MAX_FUNCTION_LINES}: {head[:60]}"


def source_files(root):
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*")):
            relative = path.relative_to(root)
            if DATA_FOLDERS.intersection(relative.parts):
                continue
            if path.is_file() and (path.suffix in TEXT_SUFFIXES or path.name == "CMakeLists.txt"):
                yield relative


def documents(root):
    """Yields (path, text) of what is written for people."""
    below = [(root / folder).rglob("*.md") for folder in [*FOLDERS, *DOCUMENTED_FOLDERS]]
    for path in sorted(itertools.chain(root.glob("*.md"), *below)):
        if not DATA_FOLDERS.intersection(path.relative_to(root).parts):
            yield path.relative_to(root), path.read_text(encoding="utf-8")


def check_documents(root):
    """Yields (path, line number, message) for names in documents that stand for nothing."""
    files = []
    for folder in [*FOLDERS, *DOCUMENTED_FOLDERS]:
        paths = (root / folder).rglob("*")
        files += [path.relative_to(root).as_posix() for path in paths if path.is_file()]
    files += [path.name for path in root.iterdir() if path.is_file()]
    texts = list(documents(root))
    for path, text in texts:
        # What has changed names what is gone, too, but links to what is there.
        check = doc_names.check_links if path.name == "CHANGELOG.md" else doc_names.check_names
        for number, message in check(path, text, set(files)):
            yield path, number, message
    yield from doc_names.check_maps(texts, files, set(MAY_INCLUDE))
    yield from doc_names.check_anchors(texts)

    def source(name):
        file = root / "src" / name
        return file.read_text(encoding="utf-8") if file.is_file() else None

    ways = [(path, doc_names.way_in_words(text)) for path, text in texts]
    for picture in sorted((root / "docs/pictures").glob("*.svg")):
        drawn = doc_names.way_in_picture(picture.read_text(encoding="utf-8"))
        ways.append((picture.relative_to(root), drawn))
    for path, way in ways:
        yield from doc_names.check_way(path, way, source)


def check_versions(root):
    """Yields (path, message) where the newest version in the changelog is not the project's."""
    build = (root / "CMakeLists.txt").read_text(encoding="utf-8")
    version = re.search(r"^project\(openmrc VERSION (\S+)", build, re.M)[1]
    changes = (root / "CHANGELOG.md").read_text(encoding="utf-8")
    newest = re.search(r"^## (\d\S*)", changes, re.M)[1]
    if newest != version:
        yield "CHANGELOG.md", f"the newest version is {newest}, that of CMakeLists.txt {version}"


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".").resolve()
    files = list(source_files(root))
    violations = 0
    for relative, message in [*check_mirrors(files), *check_tool_folders(files),
                              *check_versions(root)]:
        print(f"{relative}:1: {message}")
        violations += 1
    for relative, number, message in check_documents(root):
        print(f"{relative}:{number}: {message}")
        violations += 1
    for relative in files:
        try:
            text = (root / relative).read_text(encoding="utf-8")
        except UnicodeDecodeError:
            print(f"{relative}:1: not UTF-8")
            violations += 1
            continue
        for number, message in check_text(relative, text):
            print(f"{relative}:{number}: {message}")
            violations += 1
    print(f"tidy: {len(files)} files, {violations} violations")
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main())
