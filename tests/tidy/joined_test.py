#!/usr/bin/env python3
"""Which sources scripts/joined.py finds, and what it joins: names that meet are kept apart.

Usage: joined_test.py <source root>
"""

import pathlib
import sys
import tempfile
import unittest

ROOT = pathlib.Path(sys.argv.pop(1)).resolve()
sys.path.insert(0, str(ROOT / "scripts"))

import joined  # noqa: E402  (found through the line above)


class Joined(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def put(self, name, *lines):
        path = self.folder / name
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        return path

    def own(self, name, *lines):
        return joined.Source(self.put(name, "namespace {", *lines, "}  // namespace"))

    def test_what_a_source_needs(self):
        for name in ("used.h", "unused.h"):
            self.put(name, "#pragma once")
        root = self.put("root.cc", '#include "used.h"', "#include <string>")
        self.put("used.cc", '#include "used.h"')
        self.put("rest.cc", '#include "used.h"')
        self.put("unused.cc", '#include "unused.h"')
        by_header = {self.folder / "used.h": [self.folder / "rest.cc"]}
        self.assertEqual([path.name for path in joined.needed([root], by_header)],
                         ["rest.cc", "root.cc", "used.cc"])

    def test_the_demo_needs_the_engine_and_no_simulation(self):
        tool = ROOT / "tools/mrc"
        roots = [*(ROOT / "src/api").glob("*.cc"), tool / "main.cc",
                 *(tool / "commands" / f"{name}.cc"
                   for name in ("demo/demo_command", "perf/perf_command", "perf/collective_part"))]
        names = {str(path.relative_to(ROOT))
                 for path in joined.needed(roots, joined.implementations())}
        # All of its modules, in as many files as they may be.
        for module in ("core", "wire", "nic"):
            for path in (ROOT / "src" / module).rglob("*.cc"):
                self.assertIn(str(path.relative_to(ROOT)), names)
        for stranger in ("src/sim/simulation.cc", "src/controller/apply.cc",
                         "tools/mrc/commands/doctor/examine.cc",
                         "tools/mrc/commands/perf/transfer.cc",
                         "tools/mrc/commands/view/page_server.cc"):
            self.assertNotIn(stranger, names)

    def test_names_that_meet_are_renamed_where_they_are_used(self):
        first = self.own("first.cc", "constexpr int kMost = 1;", "constexpr int kOnly = 1;")
        second = self.own("second.cc", "constexpr int kMost = 2;")
        (members,) = joined.plan([first, second], 100)
        text = joined.joined(members)
        for number in (0, 1):
            self.assertIn(f"#define kMost kMost_{number}\n", text)
        self.assertEqual(text.count("#undef kMost"), 2)
        self.assertNotIn("kOnly", text)

    def test_what_a_macro_would_spoil_stays_apart(self):
        first = self.own("first.cc", "int size() { return 1; }",
                         "int all(T& t) { return t.size(); }")
        second = self.own("second.cc", "int size() { return 2; }")
        self.assertEqual(len(joined.plan([first, second], 100)), 2)

    def test_what_prepares_or_takes_back_stays_alone(self):
        plain = self.own("plain.cc", "constexpr int kOne = 1;")
        for number, line in enumerate(("#undef one", "#pragma GCC target(\"avx2\")")):
            other = self.own(f"other{number}.cc", "constexpr int kTwo = 2;", line)
            self.assertEqual(len(joined.plan([plain, other], 100)), 2, line)

    def test_headers_come_first_but_for_those_under_a_condition(self):
        first = joined.Source(self.put("first.cc", "#include <string>", "#if __arm__",
                                       "#include <arm.h>", "#endif"))
        second = joined.Source(self.put("second.cc", "#include <string>", "#include <vector>"))
        lines = joined.joined([first, second]).splitlines()
        self.assertEqual(lines[:2], ["#include <string>", "#include <vector>"])
        self.assertEqual(len(lines), 4)


if __name__ == "__main__":
    unittest.main()
