#!/usr/bin/env python3
"""Holds the installed headers against the facts that programs were compiled with.

Usage: abi_test.py --facts facts.txt --include DIR --cc CC --cxx CXX

Generates programs of static checks from the facts and compiles them as C and C++, for each choice
of the API version; those that must not compile are compiled too.
"""

import argparse
import pathlib
import re
import subprocess
import sys
import tempfile

# In these versions not yet declared: the functions, and a field with the size of its struct.
SINCE_1_0_1 = {"mrc_query_device_ex", "mrc_ctl_query_device_ex"}
OLD_EVENT_SIZE = 48


def read_facts(path):
    facts = []
    for line in path.read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            facts.append([word.strip() for word in line.split("|")])
    return facts


def array_type(kind, name):
    """`uint8_t[128]` as a declarator of `name`."""
    match = re.fullmatch(r"(.+)\[(\d+)\]", kind)
    return f"{match[1]} {name}[{match[2]}]" if match else f"{kind} {name}"


def check(condition, what):
    return f'MRC_CHECK({condition}, "{what}");'


def same_type(left, right, what, is_cpp):
    """Both are expressions; the right one is a pointer."""
    if is_cpp:
        return check(f"(std::is_same<decltype({left}), decltype({right})>::value)", what)
    return check(f"_Generic(({left}), __typeof__({right}): 1, default: 0)", what)


class Generator:
    """Writes one program; `old` leaves out what came with version 1.0.1."""

    def __init__(self, is_cpp, old_app, old_ctl):
        self.is_cpp = is_cpp
        self.old_app = old_app
        self.old_ctl = old_ctl
        self.lines = []
        self.count = 0

    def add(self, line):
        self.lines.append(line)
        self.count += 1

    def macro(self, text, value):
        selected = text.endswith("_VER_USED") and "VENDOR" not in text
        if selected and (self.old_ctl if "CTL" in text else self.old_app):
            value = "0x1000000"
        self.add(check(f"({text}) == {value}", text))

    def enum(self, tag, name, value):
        value = int(value)
        text = "(-2147483647 - 1)" if value == -(2**31) else str(value)
        self.add(check(f"(int){name} == {text}", name))
        self.add(check(f"sizeof(enum {tag}) == 4", tag))

    def typedef(self, name, size):
        self.add(check(f"sizeof({name}) == {size}", name))

    def struct(self, tag, size, alignment):
        if tag == "mrc_ctl_ev_event" and self.old_ctl:
            size = OLD_EVENT_SIZE
        self.add(check(f"sizeof(struct {tag}) == {size}", tag))
        self.add(check(f"MRC_ALIGN(struct {tag}) == {alignment}", tag))

    def field(self, tag, path, offset, kind):
        if tag == "mrc_ctl_ev_event" and path == "state" and self.old_ctl:
            return
        self.add(check(f"offsetof(struct {tag}, {path}) == {offset}", f"{tag}.{path}"))
        if kind == "-":
            return
        name = f"probe_{tag}_{path.replace('.', '_')}"
        self.lines.append(f"extern {array_type(kind, name)};")
        member = f"((struct {tag}*)0)->{path}"
        self.add(same_type(f"&{member}", f"&{name}", f"type of {tag}.{path}", self.is_cpp))

    def function(self, name, result, parameters):
        if name in SINCE_1_0_1 and (self.old_ctl if "_ctl_" in name else self.old_app):
            # A program of that time may have a function of that name itself.
            self.add(f"static int {name};")
            self.lines.append(f"int* use_{name}(void);")
            self.lines.append(f"int* use_{name}(void) {{ return &{name}; }}")
            return
        probe = f"extern {result} (*probe_{name})({parameters or 'void'});"
        self.lines.append(probe)
        self.add(same_type(f"&{name}", f"probe_{name}", f"signature of {name}", self.is_cpp))

    def text(self, facts):
        for kind, *rest in facts:
            getattr(self, kind)(*rest)
        head = [
            '#include "mrc_ctl.h"',
            '#include "openmrc_counters.h"',
            '#include "openmrc_dialect.h"',
            '#include "openmrc_log.h"',
            '#include "openmrc_security.h"',
            "#include <stddef.h>",
            "#ifdef __cplusplus",
            "#include <type_traits>",
            "#define MRC_CHECK(c, t) static_assert(c, t)",
            "#define MRC_ALIGN(t) alignof(t)",
            "#else",
            "#define MRC_CHECK(c, t) _Static_assert(c, t)",
            "#define MRC_ALIGN(t) _Alignof(t)",
            "#endif",
        ]
        tail = [
            "int main(void) {",
            "  struct mrc_ctl_ev ev = MRC_CTL_EV_UNPOPULATED;",
            "  int bits = ev.port;",
            "  for (size_t i = 0; i < sizeof ev.val; ++i) bits |= ev.val[i];",
            "  return bits;",
            "}",
        ]
        return "\n".join(head + self.lines + tail) + "\n"


class Tester:
    def __init__(self, arguments, folder):
        self.arguments = arguments
        self.folder = pathlib.Path(folder)
        self.failures = 0

    def compile(self, text, is_cpp, defines, strict=True):
        source = self.folder / ("abi.cc" if is_cpp else "abi.c")
        source.write_text(text, encoding="utf-8")
        compiler = self.arguments.cxx if is_cpp else self.arguments.cc
        command = [compiler, "-std=c++11" if is_cpp else "-std=gnu11", "-Wall", "-Wextra"]
        command += ["-Werror"] if strict else []
        command += [f"-D{define}" for define in defines]
        command += ["-I", str(self.arguments.include), str(source), "-o", str(self.folder / "abi")]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        return done.returncode == 0, done.stderr

    def expect(self, good, what, details=""):
        print(("ok    " if good else "FAIL  ") + what)
        if not good:
            print(details)
            self.failures += 1

    def check_facts(self, facts, what, defines, old_app=False, old_ctl=False):
        for is_cpp in (False, True):
            generator = Generator(is_cpp, old_app, old_ctl)
            text = generator.text(facts)
            compiled, errors = self.compile(text, is_cpp, defines)
            language = "C++" if is_cpp else "C"
            self.expect(compiled, f"{generator.count} facts in {language}, {what}", errors)
            if compiled:
                run = subprocess.run([self.folder / "abi"], check=False)
                self.expect(run.returncode == 0, f"unpopulated EV in {language}, {what}")

    def check_separation(self):
        """A program that includes the OCP headers alone may use any name of ours itself."""
        text = ('#include "mrc_ctl.h"\nstatic int openmrc_query_qp_counters;\n'
                "int main(void) { return openmrc_query_qp_counters; }\n")
        compiled, errors = self.compile(text, False, [])
        self.expect(compiled, "the OCP headers declare nothing of our own", errors)

    def check_refusals(self):
        empty = '#include "mrc_ctl.h"\nint main(void) { return 0; }\n'
        for macro in ["MRC_API", "MRC_VENDOR_API", "MRC_CTL_API", "MRC_CTL_VENDOR_API"]:
            form = "MRC_CTL_API_VER" if "CTL" in macro else "MRC_API_VER"
            newer = f"{macro}_VER_USED={form}(1,0,2)"
            compiled, _ = self.compile(empty, False, [newer])
            self.expect(not compiled, f"{newer} does not compile")
            oldest = f"{macro}_VER_USED={form}(0,0,0)"
            compiled, errors = self.compile(empty, False, [oldest], strict=False)
            warned = compiled and "warning" in errors
            self.expect(warned, f"{oldest} compiles with a warning", errors)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--facts", type=pathlib.Path, required=True)
    parser.add_argument("--include", type=pathlib.Path, required=True)
    parser.add_argument("--cc", required=True)
    parser.add_argument("--cxx", required=True)
    arguments = parser.parse_args()
    facts = read_facts(arguments.facts)
    with tempfile.TemporaryDirectory() as folder:
        tester = Tester(arguments, folder)
        tester.check_facts(facts, "nothing chosen", [])
        latest = ["MRC_API_VER_USED=MRC_API_VER_LATEST",
                  "MRC_CTL_API_VER_USED=MRC_CTL_API_VER_LATEST",
                  "MRC_VENDOR_API_VER_USED=MRC_API_VER_LATEST",
                  "MRC_CTL_VENDOR_API_VER_USED=MRC_CTL_API_VER_LATEST"]
        tester.check_facts(facts, "latest chosen", latest)
        tester.check_facts(facts, "1.0.0 chosen", ["MRC_API_VER_USED=MRC_API_VER(1,0,0)",
                           "MRC_CTL_API_VER_USED=MRC_CTL_API_VER(1,0,0)"], True, True)
        tester.check_facts(facts, "controller 1.0.0 chosen",
                           ["MRC_CTL_API_VER_USED=MRC_CTL_API_VER(1,0,0)"], False, True)
        tester.check_separation()
        tester.check_refusals()
        functions = [fact[1] for fact in facts if fact[0] == "function"]
        own = [name for name in functions if name.startswith("openmrc_")]
        ocp = len(functions) - len(own)
        tester.expect(ocp == 41, f"{ocp} functions of the OCP API are known")
        tester.expect(len(own) == 6, f"{len(own)} functions of our own are known")
    return 1 if tester.failures else 0


if __name__ == "__main__":
    sys.exit(main())
