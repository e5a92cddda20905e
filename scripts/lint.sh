#!/usr/bin/env bash
# Usage: scripts/lint.sh [<commit>]
#
# House rules, clang-format and clang-tidy over our sources, or over the files changed since a
# commit. Prints what is wrong; exit status 1 if anything is.
set -euo pipefail
cd "$(dirname "$0")/.."
jobs=$(nproc)
mkdir -p build
status=0

# Prints our C++ files that match a pattern, each followed by a zero byte.
sources() {
  local folder folders=()
  for folder in "${@:2}"; do
    [[ -d "$folder" ]] && folders+=("$folder")
  done
  ((${#folders[@]})) || return 0
  if [[ -n "$since" ]]; then
    { git diff -z --name-only --diff-filter=d "$since" -- "${folders[@]}"
      git ls-files -z --others --exclude-standard -- "${folders[@]}"; } | grep -zE "$1" || true
  else
    find "${folders[@]}" -type f -print0 | grep -zE "$1" | sort -z || true
  fi
}

since=${1:-}
if [[ -n "$since" ]]; then
  git rev-parse -q --verify "$since^{commit}" >/dev/null ||
    { echo "lint: $since is not a commit" >&2; exit 2; }
fi

python3 -B tests/tidy/tidy.py . || status=1

sources '\.(h|cc)$' src plugins tools tests fuzz bench |
  xargs -0 -r -n 16 -P "$jobs" clang-format-14 --dry-run -Werror || status=1

# clang-tidy needs the flags of a clang build; configuring is enough, nothing has to be compiled.
cmake --preset clang >build/lint-configure.log 2>&1 ||
  { cat build/lint-configure.log; echo "lint: cannot configure" >&2; exit 1; }
sources '\.cc$' src tools | xargs -0 -r scripts/clang_tidy.py build/clang || status=1

if ((status)); then
  echo "lint: FAILED"
else
  echo "lint: clean"
fi
exit "$status"
