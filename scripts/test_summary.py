#!/usr/bin/env python3
"""Prints what the test programs measured, then the verdict of ctest as the last line.

Usage: test_summary.py <folder with *.json> [ctest's JUnit file]

Each JSON file is an object {"name": "...", "lines": {"seeds": 2000, "packets": 123}}. A test
program writes one into the folder that the environment variable MRC_TEST_RESULTS names.
Exit status: 0 all tests passed, 1 a test failed, a file is unreadable, or no verdict was found.
"""

import json
import pathlib
import sys
import xml.etree.ElementTree


def show(value):
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:,.3f}"
    return str(value)


def read_rows(folder):
    """Returns the table as (name, label, value) and the number of unreadable files."""
    rows, broken = [], 0
    for path in sorted(pathlib.Path(folder).glob("*.json")):
        try:
            result = json.loads(path.read_text(encoding="utf-8"))
            name = result["name"]
            rows += [(name, label, show(value)) for label, value in result["lines"].items()]
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            print(f"test_summary: {path}: {error!r}")
            broken += 1
    return rows, broken


def print_table(rows):
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    previous = None
    for name, label, value in rows:
        shown = name if name != previous else ""
        numeric = value[:1].isdigit() or value[:1] == "-"
        value = value.rjust(widths[2]) if numeric else value
        print(f"{shown:{widths[0]}}  {label:{widths[1]}}  {value}".rstrip())
        previous = name


def verdict(junit):
    """Returns (line, passed) from ctest's JUnit file."""
    try:
        suite = xml.etree.ElementTree.parse(junit).getroot()
    except (OSError, xml.etree.ElementTree.ParseError) as error:
        return f"FAILED: no result from ctest ({error})", False
    total = int(suite.get("tests", 0))
    skipped = int(suite.get("skipped", 0)) + int(suite.get("disabled", 0))
    bad = [case.get("name") for case in suite.iter("testcase") if case.get("status") == "fail"]
    if bad:
        return f"FAILED: {len(bad)} of {total} tests: {' '.join(bad)}", False
    if total == 0:
        return "FAILED: no tests were run", False
    note = f", {skipped} skipped" if skipped else ""
    return f"PASSED: {total - skipped} tests{note}", True


def main():
    rows, broken = read_rows(sys.argv[1])
    if rows:
        print()
        print_table(rows)
        print()
    if len(sys.argv) < 3:
        return 1 if broken else 0
    line, passed = verdict(sys.argv[2])
    if passed and broken:
        line, passed = f"FAILED: {broken} unreadable result files", False
    print(line)
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
