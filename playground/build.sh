#!/usr/bin/env bash
# Builds the playground, a folder of files that any browser opens. Usage: build.sh OUT [CMake flags]
#
# Exit status 77 and one line when the packages for it are missing.
set -euo pipefail

(($# >= 1)) || { echo "usage: playground/build.sh OUT [CMake flags]" >&2; exit 2; }
out=$(realpath -m "$1")
shift
here=$(dirname "$(realpath "$0")")

missing=()
need() { # package, a file or program of it
  [[ -e "$2" ]] || command -v "$2" >/dev/null || missing+=("$1")
}
need clang-16 clang++-16
need lld-16 wasm-ld-16
need wasi-libc /usr/include/wasm32-wasi/stdio.h
need libc++-16-dev-wasm32 /usr/lib/llvm-16/include/wasm32-wasi/c++/v1/vector
need libc++abi-16-dev-wasm32 /usr/lib/llvm-16/lib/wasm32-wasi/libc++abi.a
need libclang-rt-16-dev-wasm32 /usr/lib/llvm-16/lib/clang/16/lib/wasi/libclang_rt.builtins-wasm32.a
need node-typescript tsc
if ((${#missing[@]})); then
  echo "playground: not built, these packages are missing: ${missing[*]}" >&2
  exit 77
fi

cmake -S "$here" -B "$out/wasm" -G Ninja -DCMAKE_TOOLCHAIN_FILE="$here/wasm.cmake" "$@" >/dev/null
cmake --build "$out/wasm"
tsc -p "$here/web/tsconfig.json" --outFile "$out/wasm/playground.js"
tsc --target ES2020 --lib ES2020,DOM --module commonjs --strict --outDir "$out/wasm/node" \
  "$here/web/module.ts" "$here/web/settings.ts"
"$here/bundle.py" "$here/.." "$out/wasm/mrc_playground.wasm" "$out/wasm/playground.js" "$out/site"
bytes=$(cat "$out"/site/* | wc -c)
echo "playground: open $out/site/index.html ($((bytes / 1024)) KiB in all)"
