#!/usr/bin/env bash
# Installs Debian packages (Debian 12). Uses sudo where it is not root and does nothing when all are there.
#   scripts/install_packages.sh          what building and using Octet takes
#   scripts/install_packages.sh --tests  also what its tests take, and what makes building it often faster
set -euo pipefail
packages=(
  build-essential cmake ninja-build pkg-config ca-certificates python3 python3-pip python3-venv
  libprotozero-dev libcli11-dev libyaml-cpp-dev nlohmann-json3-dev
  libturbojpeg0-dev libwebp-dev libpng-dev libpugixml-dev zlib1g-dev libxxhash-dev libhdf5-dev libgloo-dev
  dataset-fashion-mnist
)
test_packages=(
  git ccache mold libgtest-dev libgmock-dev libopencv-dev clang clang-format
  g++-aarch64-linux-gnu qemu-user googletest chromium
)
case "${1:-}" in
  "") ;;
  --tests) packages+=("${test_packages[@]}") ;;
  *) echo "usage: scripts/install_packages.sh [--tests]" >&2; exit 2 ;;
esac
missing=()
for package in "${packages[@]}"; do
  dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null | grep -qx installed || missing+=("$package")
done
if [ ${#missing[@]} -eq 0 ]; then
  echo "packages: all installed"
  exit 0
fi
sudo=()
if [ "$(id -u)" -ne 0 ]; then
  command -v sudo >/dev/null || {
    echo "these Debian packages are missing and sudo is not there; as root run: apt-get install ${missing[*]}" >&2; exit 1; }
  sudo=(sudo)
fi
echo "packages: installing ${missing[*]}"
export DEBIAN_FRONTEND=noninteractive
"${sudo[@]}" apt-get update -qq || echo "apt-get update failed; going on with the package lists that are there" >&2
"${sudo[@]}" apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null || {
  echo "apt-get could not install: ${missing[*]}; check the network and rerun, it goes on from here" >&2; exit 1; }
