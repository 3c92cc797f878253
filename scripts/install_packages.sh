#!/usr/bin/env bash
# Installs the Debian packages that Octet needs to build, test and run (Debian 12). Uses sudo where it is not root and
# does nothing when all are there.
set -euo pipefail
packages=(
  build-essential cmake ninja-build ccache mold pkg-config git ca-certificates
  python3 python3-pip python3-venv
  libprotozero-dev libcli11-dev libyaml-cpp-dev nlohmann-json3-dev libspdlog-dev
  libturbojpeg0-dev libwebp-dev libopencv-dev libpugixml-dev zlib1g-dev libxxhash-dev libhdf5-dev libgloo-dev
  libgtest-dev libgmock-dev clang clang-format
  g++-aarch64-linux-gnu qemu-user googletest
  dataset-fashion-mnist
)
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
