#!/usr/bin/env bash
# Builds and runs every test of Octet. Installs what it needs; stops at the first failure and says which step it was.
#   ./test.sh           everything
#   ./test.sh --quick   without the sanitizer, fuzz and peer steps
set -euo pipefail
cd "$(dirname "$0")"
quick=false
[ "${1:-}" = "--quick" ] && quick=true
jobs=$(nproc)
step_name=""
started=$SECONDS
step() { step_name="$1"; printf '\n== %s (at %d s)\n' "$1" $((SECONDS - started)); }
peers=""
peers_log="$(mktemp)"
finish() {
  local status=$?
  if [ -n "$peers" ]; then kill "$peers" 2>/dev/null || true; fi
  rm -f "$peers_log"
  [ $status -eq 0 ] || echo "test.sh: FAILED in step: $step_name" >&2
}
trap finish EXIT

step "packages"
scripts/install_packages.sh --tests
step "LibTorch"
scripts/fetch_libtorch.sh
step "rules of the architecture and of style"
python3 scripts/check_layers.py
python3 scripts/check_style.py
python3 scripts/check_unity.py

# Mostly waits for the network, and nothing that is built needs it.
if ! $quick; then
  scripts/peers_venv.sh >"$peers_log" 2>&1 &
  peers=$!
fi
step "release build"
# What the build with sanitizers tests as well is left to it.
$quick && once=ON || once=OFF
cmake --preset release -DOCTET_TESTS_ONCE=$once >/dev/null
cmake --build --preset release -j "$jobs"
if ! $quick; then
  step "ONNX Runtime, OpenVINO and TensorRT"
  wait "$peers" && installed=true || installed=false
  peers=""
  cat "$peers_log"
  $installed
fi
step "tests"
ctest --test-dir build/release -j "$jobs" --output-on-failure --no-tests=error

if ! $quick; then
  # Clang's: its address sanitizer sees vector loads, GCC's does not.
  step "build without LibTorch, with fuzzers, address and undefined-behavior sanitizers"
  cmake --preset asan -DOCTET_TESTS_ONCE=ON >/dev/null
  cmake --build --preset asan -j "$jobs"
  step "tests with sanitizers"
  ctest --test-dir build/asan -j "$jobs" --output-on-failure --no-tests=error
  step "fuzzers, briefly"
  scripts/run_fuzzers.sh build/asan "${OCTET_FUZZ_SECONDS:-12}"
fi
printf '\nall tests passed in %d s\n' $((SECONDS - started))
