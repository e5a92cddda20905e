#!/usr/bin/env bash
# Installs what building and testing OpenMRC needs, from Debian 12 packages.
# Usage: setup.sh [demo|build|packages]
#
# With "demo" only what building for `make demo` needs, with "build" what building everything needs;
# with "packages" that and what makes and tries Debian packages. Quiet and without effect when
# everything is there. Runs as root or through sudo, and never asks a question. MRC_SKIP_SETUP=1 turns
# it off for systems that provide the tools some other way.
set -euo pipefail
cd "$(dirname "$0")/.."

packages=(
  g++ make cmake ninja-build python3 libcli11-dev libfmt-dev nlohmann-json3-dev libtomlplusplus-dev
  libssl3 libibverbs-dev
)
for_everything=(git binutils iproute2 procps libgtest-dev libgmock-dev libbenchmark-dev)
for_tests=(
  clang-16 libclang-rt-16-dev llvm-16 clang-format-14 clang-tidy-14
  ibverbs-utils perftest iperf3 sockperf libfabric-bin ethtool valgrind gcovr tshark
  lld-16 wasi-libc libc++-16-dev-wasm32 libc++abi-16-dev-wasm32 libclang-rt-16-dev-wasm32
  node-typescript chromium man-db zsh
)
for_packages=(build-essential debhelper fakeroot lintian debootstrap node-typescript)
# Their packages start a service: unpacked into build/tools, not installed.
unpacked=(prometheus)

case "${1:-all}" in
  all) packages+=("${for_everything[@]}" "${for_tests[@]}") ;;
  demo) unpacked=() ;;
  build) packages+=("${for_everything[@]}"); unpacked=() ;;
  packages) packages+=("${for_everything[@]}" "${for_packages[@]}"); unpacked=() ;;
  *) echo "usage: setup.sh [demo|build|packages]" >&2; exit 2 ;;
esac

die() {
  echo "setup: $*" >&2
  exit 1
}

# Prints the packages that are not installed, one per line.
missing() {
  local package
  for package in "${packages[@]}"; do
    [[ "$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null)" == installed ]] ||
      echo "$package"
  done
}

[[ "${MRC_SKIP_SETUP:-0}" == 1 ]] && exit 0
command -v dpkg-query >/dev/null && command -v apt-get >/dev/null ||
  die "this is not a Debian system; install the equivalents of: ${packages[*]}" \
      "and set MRC_SKIP_SETUP=1"

# Without them their tests are skipped.
unpack() {
  local package
  for package in "${unpacked[@]}"; do
    [[ -d "build/tools/$package" ]] && continue
    mkdir -p build/tools
    (cd build/tools && apt-get -q download "$package" && dpkg-deb -x "${package}"_*.deb "$package" &&
      rm -f "${package}"_*.deb) >build/tools/setup.log 2>&1 ||
      echo "setup: $package cannot be fetched, its tests will be skipped (build/tools/setup.log)"
  done
}

# No `< <(missing)` here: it needs /dev/fd, which a chroot without /proc lacks.
read -r -a wanted <<<"$(missing | tr '\n' ' ')"
if ((${#wanted[@]} == 0)); then
  unpack
  exit 0
fi

as_root=()
if ((EUID != 0)); then
  command -v sudo >/dev/null ||
    die "run as root or install sudo; missing packages: ${wanted[*]}"
  as_root=(sudo)
fi

log=$(mktemp)
trap 'rm -f "$log"' EXIT
apt() {
  # tshark asks through debconf whether users may capture; noninteractive takes its default, no.
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
    apt-get -q -y -o DPkg::Lock::Timeout=300 -o Acquire::Retries=3 "$@" >>"$log" 2>&1 </dev/null
}

echo "setup: installing ${wanted[*]}"
# A failed update may still leave usable lists, so only the installation decides.
apt update || true
if ! apt install --no-install-recommends "${wanted[@]}"; then
  tail -n 15 "$log" >&2
  die "cannot install: ${wanted[*]}"
fi
read -r -a wanted <<<"$(missing | tr '\n' ' ')"
((${#wanted[@]} == 0)) || die "still missing after the installation: ${wanted[*]}"
unpack
