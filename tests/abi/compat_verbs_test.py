#!/usr/bin/env python3
"""Compares compat/infiniband/verbs.h, name by name, with the header of libibverbs.

Usage: compat_verbs_test.py --compat DIR --cc CC

Everything that ours declares is collected from its text: constants, structures with their fields,
functions. One program prints values, sizes and offsets; it is built with either header and must
print the same. The functions are declared once more behind the real header, which the compiler
refuses where they differ. Exit status 77 where libibverbs has no headers.
"""

import argparse
import pathlib
import re
import subprocess
import sys
import tempfile

SKIPPED = 77
NOTHING = "#include <infiniband/verbs.h>\nint main(void) { return 0; }\n"


def without_comments(text):
    return re.sub(r"/\*.*?\*/", "", text, flags=re.S)


def constants(text):
    for body in re.findall(r"\benum(?: \w+)? \{(.*?)\};", text, re.S):
        yield from re.findall(r"\b(IBV_\w+)", body)
    yield from re.findall(r"^#define (IBV_\w+) ", text, re.M)


def blocks(text):
    """Yields (kind, tag, body) of each structure and union with a name, outermost ones only."""
    for match in re.finditer(r"^(struct|union) (\w+) \{\n(.*?)^\};", text, re.S | re.M):
        yield match.groups()


def declared_names(statement):
    """The names of `int a, *b[2];` or `int (*call)(int);`."""
    call = re.match(r".*?\(\*(\w+)\)\(", statement, re.S)
    if call:
        return [call.group(1)]
    return [re.search(r"(\w+)(\[\w+\])?$", part.strip()).group(1)
            for part in statement.split(",")]


def fields(body, prefix=""):
    """Yields the path of each field, also of those in nested structures and unions."""
    position = 0
    while True:
        match = re.compile(r"\s*(?:(struct|union) \{|([^;{]+);)", re.S).match(body, position)
        if not match:
            return
        position = match.end()
        if match.group(2):
            yield from (prefix + name for name in declared_names(match.group(2)))
            continue
        depth, start = 1, position
        while depth:
            depth += {"{": 1, "}": -1}.get(body[position], 0)
            position += 1
        name = re.compile(r"\s*(\w+);").match(body, position)
        yield prefix + name.group(1)
        yield from fields(body[start:position - 1], f"{prefix}{name.group(1)}.")
        position = name.end()


def functions(text):
    """The declarations of all functions, as they stand."""
    part = text[text.rindex("struct verbs_context {"):]
    return re.findall(r"^[\w ]+\**\s?\**\b_?ibv_\w+\([^;{]*\);", part, re.M)


def table(text):
    """A program that prints what the header in its include path says."""
    lines = ["#include <infiniband/verbs.h>", "#include <stdio.h>", "int main(void) {"]
    for name in constants(text):
        lines.append(f'  printf("{name} = %lld\\n", (long long){name});')
    for kind, tag, body in blocks(text):
        whole = f"{kind} {tag}"
        lines.append(f'  printf("{whole}: %zu bytes\\n", sizeof({whole}));')
        for path in fields(body):
            if "reserved" in path:
                continue
            lines.append(f'  printf("{whole}.{path}: %zu bytes at %zu\\n", '
                         f"sizeof((({whole}*)0)->{path}), offsetof({whole}, {path}));")
    return "\n".join(lines + ["  return 0;", "}", ""])


def again(text):
    """A program that declares the functions of ours behind the real ones."""
    lines = ["#include <infiniband/verbs.h>"]
    for declaration in functions(text):
        name = re.search(r"(\w+)\(", declaration).group(1)
        lines += [f"#undef {name}", declaration]
    return "\n".join(lines + ["int main(void) { return 0; }", ""])


class Compiler:
    def __init__(self, program, folder):
        self.program = program
        self.folder = pathlib.Path(folder)

    def build(self, text, include=None):
        """(the program or None, what the compiler said)"""
        source, output = self.folder / "table.c", self.folder / "table"
        source.write_text(text, encoding="utf-8")
        command = [self.program, "-std=gnu11", str(source), "-o", str(output)]
        command += ["-I", str(include)] if include else []
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        return (output if done.returncode == 0 else None), done.stderr

    def lines(self, text, include=None):
        program, errors = self.build(text, include)
        if program is None:
            raise SystemExit(f"does not compile:\n{errors}")
        return subprocess.run([program], capture_output=True, text=True,
                              check=True).stdout.splitlines()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--compat", type=pathlib.Path, required=True)
    parser.add_argument("--cc", required=True)
    arguments = parser.parse_args()
    text = without_comments((arguments.compat / "infiniband" / "verbs.h").read_text("utf-8"))
    with tempfile.TemporaryDirectory() as folder:
        compiler = Compiler(arguments.cc, folder)
        if compiler.build(NOTHING)[0] is None:
            print("no <infiniband/verbs.h> to compare with; libibverbs-dev has it")
            return SKIPPED
        program = table(text)
        ours, theirs = compiler.lines(program, arguments.compat), compiler.lines(program)
        different = [(a, b) for a, b in zip(ours, theirs) if a != b]
        for own, other in different:
            print(f"compat: {own}\nsystem: {other}")
        declared, errors = compiler.build(again(text))
        if declared is None:
            print(errors)
        print(f"{len(ours)} values, sizes and offsets, {len(different)} different; "
              f"{len(functions(text))} functions")
    return 1 if different or declared is None else 0


if __name__ == "__main__":
    sys.exit(main())
