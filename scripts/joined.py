#!/usr/bin/env python3
"""Writes the sources that some programs need, joined to few files that a compiler reads faster.

Usage: joined.py <folder> <most lines of a joined file> <name>:<root> [<name>:<root> ...]

For each name the sources that its roots need, as far as no name before has them, are joined to
<folder>/<name>_<number>.cc; prints "name<TAB>joined file" and "<TAB>source" for each. A source is
needed when a needed file includes the header of its name; one without such a header, when a header
beside it that it includes is needed. Commands and parts of them are needed only as roots. What nothing
needs is not compiled, so that a program with few commands builds in a fraction of the time
(MRC_COMMANDS, CMake calls this).

All headers come first, each once. What a source declares for itself and another source says too gets
a name of its own by a macro around it; where that cannot be, the two are in different files.
"""

import math
import pathlib
import re
import sys

import batches

SOURCES = [batches.ROOT / name for name in ("src", "tools/mrc", "examples/training", "include")]
CONDITION = re.compile(r"^#\s*(if|endif)")
UNDEFINES = re.compile(r"^#\s*undef", re.MULTILINE)
KEYWORDS = {"const", "struct", "class", "enum", "void", "template", "auto"}
TEXT = re.compile(r'"(?:[^"\\\n]|\\.)*"')
HEAVY = ("#include <CLI/", "#include <nlohmann/json.hpp>", "#include <toml++/")
OF_ANOTHER = r"(?:\.|->|::)\s*"


def found(name, beside):
    return next((path for folder in (beside.parent, *SOURCES) if (path := folder / name).exists()),
                None)


def implementations():
    """By header: the sources beside it that include it and have no header of their own."""
    by_header = {}
    for folder in SOURCES:
        for source in sorted(folder.rglob("*.cc")):
            if source.with_suffix(".h").exists() or source.stem.endswith(("_command", "_part")):
                continue
            for name in batches.INCLUDE.findall(source.read_text(encoding="utf-8")):
                header = found(name, source)
                if header and header.parent == source.parent:
                    by_header.setdefault(header, []).append(source)
    return by_header


def needed(roots, by_header):
    seen, left = [], list(roots)
    while left:
        file = left.pop()
        if file in seen:
            continue
        seen.append(file)
        for name in batches.INCLUDE.findall(file.read_text(encoding="utf-8")):
            if header := found(name, file):
                left.append(header)
        if file.suffix == ".h":
            beside = file.with_suffix(".cc")
            left += by_header.get(file, []) + ([beside] if beside.exists() else [])
    return sorted(file for file in seen if file.suffix == ".cc")


def includes(text):
    """Those that hold whatever the machine."""
    depth, lines = 0, []
    for line in text.splitlines():
        if condition := CONDITION.match(line):
            depth += 1 if condition[1] == "if" else -1
        elif depth == 0 and line.startswith("#include"):
            lines.append(line)
    return lines


def headers_of(path):
    seen, left = set(), list(batches.words_of(path)[1])
    while left:
        if (file := left.pop()) not in seen:
            seen.add(file)
            left += batches.words_of(file)[1]
    return seen


class Source:
    def __init__(self, path):
        self.path = path
        self.text = path.read_text(encoding="utf-8")
        plain = TEXT.sub("", batches.COMMENT.sub("", self.text))
        self.words = set(batches.WORD.findall(plain))
        self.names = batches.own_names(self.text) - KEYWORDS
        # A macro would mean the members of others as well, and other functions of the same name.
        headers = headers_of(path)
        said = set().union(*(batches.words_of(header)[0] for header in headers))
        self.fixed = {name for name in self.names
                      if (name in said and re.search(rf"^\S.*\b{name}\(", plain, re.MULTILINE)) or
                      re.search(rf"{OF_ANOTHER}{name}\b|^#define {name}\b", plain, re.MULTILINE)}
        text = self.text + "".join(header.read_text(encoding="utf-8") for header in headers)
        self.heavy = [library in text for library in HEAVY]
        self.alone = bool(batches.PREPARES.search(self.text) or UNDEFINES.search(self.text))
        self.lines = self.text.count("\n")

    def stands_beside(self, other):
        if self.alone or other.alone:
            return False
        return not self.fixed & other.words and not other.fixed & self.words


def plan(sources, most):
    """Lists of sources of about the same size: two processors are to end at about the same time."""
    total = sum(source.lines for source in sources)
    most = math.ceil(total / math.ceil(total / most)) if total else most
    together = []
    for source in sources:
        for members in together:
            lines = source.lines + sum(member.lines for member in members)
            if lines <= most and all(map(source.stands_beside, members)):
                members.append(source)
                break
        else:
            together.append([source])
    return together


def joined(members):
    lines = []
    if len(members) > 1:
        lines += dict.fromkeys(line for member in members
                               for line in includes(member.text))
    for number, member in enumerate(members):
        others = set().union(*(other.words for other in members if other is not member))
        own = sorted(member.names & others - member.fixed)
        lines += [f"#define {name} {name}_{number}" for name in own]
        lines.append(f'#include "{member.path}"')
        lines += [f"#undef {name}" for name in own]
    return "\n".join(lines) + "\n"


def write(path, text):
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")


def main():
    if len(sys.argv) < 4 or not sys.argv[2].isdigit():
        sys.exit(__doc__.splitlines()[2])
    folder, most, roots = pathlib.Path(sys.argv[1]), int(sys.argv[2]), {}
    for argument in sys.argv[3:]:
        name, root = argument.split(":")
        roots.setdefault(name, []).append(pathlib.Path(root))
    folder.mkdir(parents=True, exist_ok=True)
    by_header, taken = implementations(), set()
    for name, files in roots.items():
        paths = [path for path in needed(files, by_header) if path not in taken]
        taken |= set(paths)
        # What a library generates for each file that uses it is generated for few.
        sources = sorted(map(Source, paths), key=lambda source: source.heavy, reverse=True)
        for number, members in enumerate(plan(sources, most)):
            file = folder / f"{name}_{number}.cc"
            write(file, joined(members))
            print(name, file, sep="\t")
            for member in members:
                print("", member.path, sep="\t")


if __name__ == "__main__":
    main()
