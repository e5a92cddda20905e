#!/usr/bin/env bash
# Builds the Debian packages from the files of this tree, into build/deb. Usage: scripts/deb.sh
#
# The version is that of CMakeLists.txt, the date that of the last commit. Ends with an error where
# lintian finds one, or has a warning.
set -euo pipefail
cd "$(dirname "$0")/.."

version=$(sed -nE 's/^project\(openmrc VERSION ([0-9.]+) .*/\1/p' CMakeLists.txt)
[[ -n "$version" ]] || { echo "deb: CMakeLists.txt names no version" >&2; exit 1; }
date=$(git log -1 --format=%cD 2>/dev/null || date -R -r CHANGELOG.md)
out=$PWD/build/deb
tree=$out/openmrc-$version
rm -rf "$out"
mkdir -p "$tree"

# What belongs to the tree, changed or new, and nothing that was built.
if git rev-parse --git-dir >/dev/null 2>&1; then
  git ls-files -z --cached --others --exclude-standard --deduplicate
else
  find . \( -path ./build -o -path ./.git \) -prune -o \( -type f -o -type l \) -print0
fi | while IFS= read -r -d '' file; do
  [[ -e "$file" || -L "$file" ]] && printf '%s\0' "$file"
done | tar --create --null --files-from=- | tar --extract --directory "$tree"

cat >"$tree/debian/changelog" <<CHANGELOG
openmrc ($version) unstable; urgency=medium

  * CHANGELOG.md says what is new in $version.

 -- $(sed -n 's/^Maintainer: //p' debian/control)  $date
CHANGELOG

(cd "$tree" && dpkg-buildpackage --build=binary --no-sign --jobs="${JOBS:-$(nproc)}") \
  >"$out/build.log" 2>&1 || { tail -n 30 "$out/build.log" >&2; exit 1; }
rm -rf "$tree"
lintian --allow-root --fail-on error,warning "$out"/*.changes
ls "$out"/*.deb
