#!/usr/bin/env python3
"""Tests of the tidy rules: each one fires on what it forbids and stays quiet on what it allows."""

import pathlib
import tempfile
import unittest

import class_size
import cpp_text
import doc_names
import tidy


def messages(path, text):
    return [message for _, message in tidy.check_text(pathlib.PurePath(path), text)]


def heads(text):
    return [head for _, _, head in cpp_text.functions(text)]


class Includes(unittest.TestCase):
    def test_upward_include_fails(self):
        for path, target in [
            ("src/base/a.cc", "wire/bth.h"),
            ("src/wire/a.cc", "core/endpoint.h"),
            ("src/core/cc/a.cc", "sim/clock.h"),
            ("src/nic/a.cc", "fabric/switch.h"),
            ("src/sim/a.cc", "nic/device.h"),
            ("plugins/nccl/a.cc", "core/endpoint.h"),
            ("src/core/a.cc", "../wire/bth.h"),
            ("src/collective/a.cc", "nic/device.h"),
            ("src/controller/a.cc", "api/handles.h"),
            ("tools/mrc/commands/perf/a.cc", "api/handles.h"),
        ]:
            self.assertTrue(messages(path, f'#include "{target}"\n'), (path, target))

    def test_downward_include_passes(self):
        for path, target in [
            ("src/core/cc/a.cc", "core/endpoint.h"),
            ("src/sim/a.cc", "fabric/switch.h"),
            ("src/lab/a.cc", "sim/clock.h"),
            ("tests/unit/core/a_test.cc", "sim/clock.h"),
            ("plugins/nccl/a.cc", "mrc.h"),
            ("src/controller/a.cc", "fabric/loop.h"),
            ("tools/mrc/commands/perf/a.cc", "collective/device.h"),
        ]:
            self.assertEqual(messages(path, f'#include "{target}"\n'), [], (path, target))


class Versions(unittest.TestCase):
    def test_the_changelog_ends_at_the_version_that_is_built(self):
        for newest, count in [("0.2.0 (2026-01-31)", 0), ("0.1.0", 1)]:
            with tempfile.TemporaryDirectory() as folder:
                root = pathlib.Path(folder)
                (root / "CMakeLists.txt").write_text(
                    "project(openmrc VERSION 0.2.0 LANGUAGES C)\n", encoding="utf-8")
                (root / "CHANGELOG.md").write_text(
                    f"# Changes\n\n## Unreleased\n\n## {newest}\n\n## 0.0.1\n", encoding="utf-8")
                self.assertEqual(len(list(tidy.check_versions(root))), count, newest)


class Classes(unittest.TestCase):
    def test_fields_and_methods_are_counted(self):
        text = (
            "class A : public B {\n public:\n  explicit A(int x) : x_(x) {}\n"
            "  A(const A&) = delete;\n"
            "  int f() const { return g(1) + x_; }\n  template <typename T>\n  void g(T t);\n"
            "  int h(const B& b = {}, int y = 1);\n"
            "  static constexpr int kMost = 3;\n  enum class E { kA, kB };\n"
            "  struct Row { int a = 0; int b : 3 = 0; };\n"
            " private:\n  std::function<void(int)> call_;\n  int x_ = f(3);\n"
            "  std::array<int, 3> list_{};\n  using T = int;\n};\n"
        )
        sizes = {name: (fields, methods) for _, name, fields, methods in class_size.classes(text)}
        self.assertEqual(sizes, {"A": (3, 4), "Row": (2, 0)})

    def test_large_ones_fail(self):
        fields = "".join(f"  int a{i}_;\n" for i in range(21))
        methods = "".join(f"  int b{i}();\n" for i in range(41))
        self.assertTrue(messages("src/base/a.cc", f"class A {{\n  int f();\n{fields}}};\n"))
        self.assertTrue(messages("src/base/a.cc", f"class A {{\n{methods}}};\n"))
        self.assertEqual(messages("src/base/a.cc", f"struct A {{\n{fields}}};\n"), [])
        self.assertEqual(messages("tests/a.cc", f"class A {{\n{methods}}};\n"), [])

    def test_the_environment_is_read_in_one_place(self):
        line = 'const char* a = std::getenv("A");\n'
        self.assertTrue(messages("src/api/a.cc", line))
        self.assertTrue(messages("tools/mrc/a.cc", line.replace("getenv", "secure_getenv")))
        for allowed in tidy.ENVIRONMENT:
            self.assertEqual(messages(allowed, line), [])
        self.assertEqual(messages("src/api/a.cc", "// getenv is refused\n"), [])

    def test_folders_of_tools_are_no_modules(self):
        paths = [pathlib.PurePath(p) for p in ("tools/mrc/sim/a.cc", "tools/mrc/commands/sim/a.cc",
                                               "tools/mrc/launch/a.cc", "tools/mrc/sim.cc")]
        found = [p.as_posix() for p, _ in tidy.check_tool_folders(paths)]
        self.assertEqual(found, ["tools/mrc/sim/a.cc"])

    def test_every_source_has_a_test_of_its_name(self):
        paths = [pathlib.PurePath(p) for p in ("src/core/a.cc", "src/core/b.cc", "src/nic/c.cc",
                                               "tests/unit/core/a_test.cc")]
        self.assertEqual([p.as_posix() for p, _ in tidy.check_mirrors(paths)], ["src/core/b.cc"])


class Lines(unittest.TestCase):
    def test_layout(self):
        self.assertTrue(messages("src/base/a.cc", "\tint x;\n"))
        self.assertTrue(messages("src/base/a.cc", "int x; \n"))
        self.assertTrue(messages("src/base/a.cc", "int x;"))
        self.assertTrue(messages("src/base/a.cc", "x" * 101 + "\n"))
        self.assertEqual(messages("src/base/a.cc", "x" * 100 + "\n"), [])
        self.assertTrue(messages("src/base/a.cc", "int x;\n" * 800))
        self.assertTrue(messages("src/base/a.cc", "// TO" + "DO: later\n"))
        self.assertTrue(messages("src/base/a.h", "int x;\n"))
        self.assertEqual(messages("src/base/a.h", "#pragma once\n"), [])

    def test_commented_out_code(self):
        for line in ["// send(packet);", "// int x = 3;", "// if (x) {", "//return x;", "// }"]:
            self.assertTrue(messages("src/base/a.cc", line + "\n"), line)
        for line in [
            "// Sends the packet (see above);",
            "// return values are errno values; they are never zero.",
            "//   endpoint.post(request);",
            "// Window = bytes in flight; never negative.",
            "// If the window is full, waits.",
        ]:
            self.assertEqual(messages("src/base/a.cc", line + "\n"), [], line)


class Functions(unittest.TestCase):
    def test_finds_functions(self):
        text = """
namespace mrc {
template <class T>
struct Foo : Bar<T> {
  explicit Foo(int a) : a_(a) { run(); }
  bool operator==(const Foo&) const { return true; }
};
static int f(std::vector<int> x = {}) { if (x) { return 1; } return 0; }
TEST(Suite, Name) { EXPECT_EQ(f({1, 2}), 1'000'000); }
}
"""
        names = [head.split("(")[0] for head in heads(text)]
        self.assertEqual(
            names, ["explicit Foo", "bool operator==", "static int f", "TEST"], heads(text)
        )

    def test_ignores_tables_and_text(self):
        text = """
constexpr std::array<Row, 3> kTable = {{
    {f(1), "}"}, {f(2), '{'},
}};
constexpr Row kRows[] = {{1}, {2}};
const Row kRow{f(1), 2};
enum class Color { kRed, kBlue };
template <typename T>
concept Any = requires(T t) { t.run(); };
// int f() { }
const char* kRaw = R"(void g() { )";
#define BODY(x) \\
  void x() { run(); }
"""
        self.assertEqual(heads(text), [])

    def test_long_function_fails(self):
        body = "  run();\n"
        text = "void f() {\n" + body * 69 + "}\n"
        self.assertEqual(len(messages("src/base/a.cc", text)), 1)
        text = "void f() {\n" + body * 68 + "}\n"
        self.assertEqual(messages("src/base/a.cc", text), [])
        table = "constexpr int kTable[] = {\n" + "  1,\n" * 200 + "};\n"
        self.assertEqual(messages("src/base/a.cc", table), [])


class Documents(unittest.TestCase):
    FILES = ["docs/a.md", "docs/adr/1.md", "src/core/a.h", "src/core/a.cc", "src/core/cc/b.h",
             "src/core/data/c.c", "src/nic/d.cc", "README.md"]
    MAP = ("## 3. File map of `src/core`\n\n| file | holds |\n|---|---|\n"
           "| `a.*` | one thing; `b.h` another |\n| `data/` | more |\n\n## Else\n\n| `none.h` |\n")

    def names(self, text):
        found = doc_names.check_names(pathlib.PurePath("docs/a.md"), text, set(self.FILES))
        return [message for _, message in found]

    def maps(self, text, files=None, modules=("core",)):
        found = doc_names.check_maps([("docs/a.md", text)], files or self.FILES, set(modules))
        return [(path, message) for path, _, message in found]

    def test_made_up_names_fail(self):
        for text in ["see `src/core/made_up.h`", "`tests/made_up/`.", "`run tools/made_up.cc -x`",
                     "`docs/made_up.md`", "`src/core/made_*.h`", "[b](b.md)", "[r](../made_up#x)"]:
            self.assertEqual(len(self.names(text + "\n")), 1, text)

    def test_names_of_what_there_is_pass(self):
        for text in ["`src/core/a.h`, `src/core`", "`src/core/`, `src/core/a.*`", "`src/<x>/a.h`",
                     "[1](adr/1.md#x) [r](../README.md) [o](https://example.org/a)",
                     "```\n`src/core/made_up.h`\n```"]:
            self.assertEqual(self.names(text + "\n"), [], text)

    def test_documents_are_checked_wherever_they_lie(self):
        wrong = "see `src/gone.h` and [a](gone.md)\n"
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            for name in ("README.md", "CHANGELOG.md", "docs/adr/1.md", "examples/x/README.md",
                         "tests/corpus/captured.md"):
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                (root / name).write_text(wrong, encoding="utf-8")
            found = {(path.as_posix(), message) for path, _, message in tidy.check_documents(root)
                     if "gone" in message}
        link, name = "the link gone.md leads nowhere", "there is no src/gone.h"
        self.assertEqual(found, {("CHANGELOG.md", link)} | {
            (path, message) for message in (link, name)
            for path in ("README.md", "docs/adr/1.md", "examples/x/README.md")})

    def test_headings_that_links_name_are_there(self):
        text = "# A b\n## 2. File map of `src/core`\n[x](#a-b) [y](a.md#2-file-map-of-srccore) %s\n"
        for link, count in [("", 0), ("[z](#b)", 1), ("[z](a.md#a)", 1), ("[o](b.md#any)", 0)]:
            document = (pathlib.PurePath("docs/a.md"), text % link)
            self.assertEqual(len(list(doc_names.check_anchors([document]))), count, link)

    def way(self, found):
        sources = {"core/a.h": "void A::post() { charge(); }"}
        return [message for _, _, message in doc_names.check_way("a", found, sources.get)]

    def test_the_way_in_words_names_what_there_is(self):
        table = ("### The same in words\n| | file | what |\n|---|---|---|\n"
                 "| 1 | `core/%s` | `%s`: x |\n")
        for file, names, count in [("a.h", "A::post`, `charge", 0), ("a.h", "post`, `refund", 1),
                                   ("b.h", "post", 1)]:
            found = doc_names.way_in_words(table % (file, names))
            self.assertEqual(len(self.way(found)), count, (file, names))
        self.assertEqual(list(doc_names.way_in_words("# Other\n| 1 | `core/b.h` | `x` |\n")), [])

    def test_the_way_in_a_picture_names_what_there_is(self):
        box = ('<text x="1" y="1" class="file">core/a.h</text>\n<text x="2" y="1">%s</text>\n'
               '<rect/>\n<text x="2" y="1">made_up prose</text>\n')
        for names, count in [("A::post, charge: prose", 0), ("post, refund (prose)", 1)]:
            self.assertEqual(len(self.way(doc_names.way_in_picture(box % names))), count, names)

    def test_file_maps_are_whole(self):
        self.assertEqual(self.maps(self.MAP), [])
        self.assertEqual(self.maps(self.MAP, self.FILES + ["src/core/cc/new.h"]),
                         [("src/core/cc/new.h", "stands in no file map")])
        self.assertEqual(self.maps(self.MAP, modules=("core", "nic")),
                         [("src/nic", "no document has a file map of it")])

    def test_file_maps_name_nothing_made_up(self):
        self.assertEqual(self.maps(self.MAP.replace("| `a.*`", "| `a.*`, `made_up.h`")),
                         [("docs/a.md", "there is no made_up.h in core")])
        both = "# File map of `src/core`, `src/nic`\n| `core/a.h`, `b.h`, `data/` | x |\n| %s |\n"
        self.assertEqual(self.maps(both % "`nic/d.cc`", modules=("core", "nic")), [])
        self.assertEqual(len(self.maps(both % "`nic/a.h`", modules=("core", "nic"))), 2)


if __name__ == "__main__":
    unittest.main()
