#!/usr/bin/env bash
# Summarises line coverage of src/ after the tests of the coverage build; the browsable report is
# build/coverage/report/index.html.
set -euo pipefail
cd "$(dirname "$0")/.."
mkdir -p build/coverage/report
gcovr --root . --filter src/ --gcov-ignore-parse-errors --exclude-unreachable-branches \
  --html-details build/coverage/report/index.html --txt build/coverage/report/summary.txt \
  build/coverage
cat build/coverage/report/summary.txt
