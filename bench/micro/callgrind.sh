#!/usr/bin/env bash
# Usage: bench/micro/callgrind.sh [build folder]
#
# Counts instructions per packet of the hot paths with valgrind's callgrind and prints a table. The
# counts do not depend on the load of the machine. The build folder is build/release, built first
# if mrc_callgrind is not there. The dumps stay in <build folder>/callgrind for callgrind_annotate.
set -euo pipefail
cd "$(dirname "$0")/../.."

build=${1:-build/release}
program=$build/bench/micro/mrc_callgrind
if [[ ! -x $program && $build == build/release ]]; then
  cmake --preset release >/dev/null
  cmake --build --preset release --target mrc_callgrind
fi
[[ -x $program ]] || { echo "callgrind: no $program" >&2; exit 1; }
command -v valgrind >/dev/null || { echo "callgrind: valgrind is not installed" >&2; exit 1; }

out=$build/callgrind
rm -rf "$out"
mkdir -p "$out"
run() {
  valgrind --tool=callgrind --collect-atstart=no --dump-instr=no \
    --callgrind-out-file="$out/dump" "$program" "$@" >"$out/packets" 2>"$out/valgrind.log"
}
# Not every valgrind knows the machine's checksum instructions.
if ! run; then
  rm -f "$out"/dump*
  echo "callgrind: this valgrind stops at the CRC instructions; only the table is counted" >&2
  run --table-checksum || { tail -n 20 "$out/valgrind.log" >&2; exit 1; }
fi

printf '%-28s %10s %14s\n' "" packets instructions
while read -r name packets; do
  dump=$(grep -l "Client Request: $name\$" "$out"/dump.*)
  total=$(sed -n 's/^\(totals\|summary\): *//p' "$dump" | head -n 1)
  printf '%-28s %10d %14.1f\n' "$name" "$packets" \
    "$(awk -v t="$total" -v p="$packets" 'BEGIN { print t / p }')"
done <"$out/packets"
