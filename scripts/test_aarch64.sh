#!/usr/bin/env bash
# Builds kernels and engine for AArch64 with Debian's cross compiler, runs their tests under QEMU, and lets engine files
# of this machine compute the same bytes there as here. Exits with 77 where packages are missing; it installs nothing.
#   scripts/test_aarch64.sh [--all] BIN_FOLDER BUILD_FOLDER [ENGINE ...]
#     --all: builds compiler, ONNX reader and the shared library, too (for a release: it takes as long again)
#     BIN_FOLDER: programs of this machine (build/release/bin); BUILD_FOLDER: of the cross build; ENGINE: further files
set -euo pipefail
targets=(numerics_test kernels_test engine_test engine_write_outputs)
[ "${1:-}" != --all ] || { targets+=(octet_lower octet_onnx octet_shared); shift; }
[ $# -ge 2 ] || { sed -n '4,6s/^# *//p' "$0" >&2; exit 2; }
bin="$(cd "$1" && pwd)" build="$2"
shift 2
root="$(cd "$(dirname "$0")/.." && pwd)"

missing=()
command -v aarch64-linux-gnu-g++ >/dev/null || missing+=(g++-aarch64-linux-gnu)
command -v qemu-aarch64 >/dev/null || missing+=(qemu-user)
[ -e /usr/src/googletest/CMakeLists.txt ] || missing+=(googletest)
if [ ${#missing[@]} -gt 0 ]; then
  echo "AArch64 is not tested: these Debian packages are missing: ${missing[*]}"
  exit 77
fi

cmake -S "$root" -B "$build" -G Ninja -DCMAKE_TOOLCHAIN_FILE="$root/cmake/aarch64-linux-gnu.cmake" \
  -DCMAKE_BUILD_TYPE=Release -DOCTET_LITTLE_OPTIMIZED=ON -DOCTET_TRAIN=OFF -DOCTET_TOOLS=OFF >/dev/null
cmake --build "$build" -j "$(nproc)" --target "${targets[@]}"
# The toolchain file names the emulator, so ctest runs them in it.
# Without the tests of tactics that only other CPUs have, of readers, which have no instructions of their own, and of the layers
# of well-known networks: whole ones are compared below.
GTEST_FILTER='-ConvTacticLayers.*:ConvTactics.OverlappedFinishes*:ConvTactics.ResidentWeights*:*.LayersOfNetworks*:Validate.*' \
OCTET_TEST_EMULATED=1 ctest --test-dir "$build" -j "$(nproc)" --output-on-failure --no-tests=error \
  -R '^(numerics|kernels_[0-9]+|engine)$'

work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
"$bin/lower_write_zoo_engines" "$work"
for engine in "$work"/*.octet "$@"; do
  here="$("$bin/engine_write_outputs" "$engine" "$work/here")"
  there="$(qemu-aarch64 -L /usr/aarch64-linux-gnu "$build/bin/engine_write_outputs" "$engine" "$work/there")"
  cmp "$work/here" "$work/there" || { echo "$(basename "$engine"): $there on AArch64 differs from $here here"; exit 1; }
  echo "$(basename "$engine"): $there on AArch64 writes the same $(stat -c %s "$work/here") bytes as $here here"
done
