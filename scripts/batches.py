#!/usr/bin/env python3
"""Which sources can be compiled as one: headers are read once for all of them, which takes most of
the time. Eight unit tests of the engine take 45 s of a processor one by one and 21 s together.

Usage: batches.py <most files in a batch> < lines of "target<TAB>file" > lines "target<TAB>file<TAB>batch"

CMake calls it (MRC_UNITY), and so does scripts/clang_tidy.py. What a file declares for itself must not
be a word of another, where it would be declared twice or hide what is meant, so such files are kept
apart; no name has to be changed for it. A file that prepares what it includes stays alone.
"""

import collections
import functools
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
FOLDERS = [ROOT / name for name in ("src", "include", "tests", "tools/mrc", "plugins")]
# Names at the start of a line within an unnamed namespace, static or with `using`.
OPENS = re.compile(r"^namespace \{")
CLOSES = re.compile(r"^\}  // namespace$")
TYPE = re.compile(r"^(?:class|struct|enum(?: class)?|union|using) (?:\w+::)*(\w+)")
MACRO = re.compile(r"^#define (\w+)")
NAME = re.compile(r"(?<![:\w])(\w+)(?=\s*(?:\(|=|\{|;|:(?!:)|\[|$))")
# What gives no name of its own, or one that means the same everywhere and is no variable's, as `json`
# is. Tests have names of two words.
HARMLESS = re.compile(r"^(//|using (?!\w+ =|nlohmann::)|static_assert|template|TEST|INSTANTIATE|[\s})#]|$)")
WORD = re.compile(r"\b[A-Za-z_]\w*")
INCLUDE = re.compile(r'^#include "([^"]+)"', re.MULTILINE)
COMMENT = re.compile(r"//.*")
PREPARES = re.compile(r"^\s*#\s*(pragma GCC|define .*\n(.*\n)*?\s*#\s*include)", re.MULTILINE)


def own_names(text):
    """What must not stand beside the same of another file; some names too many do no harm."""
    names, inside = set(), False
    for line in text.splitlines():
        if OPENS.match(line) or CLOSES.match(line):
            inside = bool(OPENS.match(line))
        elif found := MACRO.match(line):
            names.add(found[1])
        elif (inside or line.startswith(("static ", "using "))) and not HARMLESS.match(line):
            if found := TYPE.match(line) or NAME.search(line):
                names.add(found[1])
    return names


@functools.cache
def words_of(path):
    """The words of a file and the headers of ours that it names."""
    text = COMMENT.sub("", path.read_text(encoding="utf-8"))
    headers = [folder / name for name in INCLUDE.findall(text) for folder in (path.parent, *FOLDERS)]
    return set(WORD.findall(text)), [header for header in headers if header.exists()]


def all_words(path):
    """Those of the headers as well: what comes first in a batch could hide what they mean."""
    words, seen, left = set(), set(), [path]
    while left:
        if (file := left.pop()) not in seen:
            seen.add(file)
            own, headers = words_of(file)
            words |= own
            left += headers
    return words


def plan(files, most):
    """Lists of files, in their order, none of which has a name that another of its list uses."""
    alone, together = [], []
    for file in files:
        path = pathlib.Path(file)
        text = path.read_text(encoding="utf-8")
        if PREPARES.search(text):
            alone.append([file])
            continue
        names, words = own_names(text), all_words(path)
        for members, taken, used in together:
            if len(members) < most and not names & used and not words & taken:
                members.append(file)
                taken |= names
                used |= words
                break
        else:
            together.append(([file], names, words))
    return alone + [members for members, _, _ in together]


def main():
    if len(sys.argv) != 2 or not sys.argv[1].isdigit():
        sys.exit(__doc__.splitlines()[3])
    targets = collections.defaultdict(list)
    for line in sys.stdin:
        target, file = line.rstrip("\n").split("\t")
        targets[target].append(file)
    for target, files in targets.items():
        for number, members in enumerate(plan(files, int(sys.argv[1]))):
            for file in members:
                print(target, file, number, sep="\t")


if __name__ == "__main__":
    main()
