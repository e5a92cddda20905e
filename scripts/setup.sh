#!/usr/bin/env bash
# Installs what building and testing OpenMRC needs, from Debian 12 packages.
#
# Quiet and without effect when everything is there. Runs as root or through sudo, and never asks
# a question. MRC_SKIP_SETUP=1 turns it off for systems that provide the tools some other way.
set -euo pipefail

packages=(
  g++ make cmake ninja-build git python3 binutils
  clang-16 libclang-rt-16-dev llvm-16 clang-format-14 clang-tidy-14
  libgtest-dev libgmock-dev libbenchmark-dev libcli11-dev libfmt-dev nlohmann-json3-dev
  libtomlplusplus-dev libssl3 iproute2 procps libibverbs-dev ibverbs-utils perftest
  iperf3 sockperf libfabric-bin ethtool
  valgrind gcovr tshark
)

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

# No `< <(missing)` here: it needs /dev/fd, which a chroot without /proc lacks.
read -r -a wanted <<<"$(missing | tr '\n' ' ')"
((${#wanted[@]})) || exit 0

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
