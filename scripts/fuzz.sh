#!/usr/bin/env bash
# Usage: scripts/fuzz.sh <seconds>
#
# Runs every fuzz target of the fuzz build for that long, starting from its corpus in
# fuzz/corpus/<target>. New inputs go to build/fuzz/found/<target>, so the kept corpus changes only
# by hand; an input that fails is left in build/fuzz/crashes with the command that replays it.
set -euo pipefail
cd "$(dirname "$0")/.."

[[ "${1:-}" =~ ^[1-9][0-9]*$ ]] || { echo "usage: scripts/fuzz.sh <seconds>" >&2; exit 2; }
limit=$1
crashes=build/fuzz/crashes
mkdir -p "$crashes"
export UBSAN_OPTIONS=print_stacktrace=1
if [[ -x /usr/bin/llvm-symbolizer-16 ]]; then
  export ASAN_SYMBOLIZER_PATH=/usr/bin/llvm-symbolizer-16
fi

ran=0
failed=()
for program in build/fuzz/fuzz/fuzz_*; do
  [[ -f "$program" && -x "$program" ]] || continue
  target=${program##*/fuzz_}
  found=build/fuzz/found/$target
  mkdir -p "$found"
  folders=("$found")
  [[ -d "fuzz/corpus/$target" ]] && folders+=("fuzz/corpus/$target")
  ran=$((ran + 1))
  log=build/fuzz/$target.log
  if "$program" -max_total_time="$limit" -timeout=10 -print_final_stats=1 \
      -artifact_prefix="$crashes/$target-" "${folders[@]}" >"$log" 2>&1; then
    echo "fuzz: $target: $(sed -n 's/^stat::number_of_executed_units: *//p' "$log") runs, no fault"
  else
    tail -n 40 "$log"
    echo "fuzz: $target: FAILED, see $log; replay with: $program $crashes/$target-<hash>"
    failed+=("$target")
  fi
done

((ran)) || { echo "fuzz: no fuzz targets in build/fuzz/fuzz" >&2; exit 1; }
((${#failed[@]} == 0)) || { echo "fuzz: FAILED: ${failed[*]}" >&2; exit 1; }
echo "fuzz: $ran targets, $limit s each, no fault"
