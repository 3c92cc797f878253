#!/usr/bin/env bash
# Fetches the pinned LibTorch wheel and its two CUDA run-time packages, checks their SHA-256 and unpacks of them what Octet
# needs into the user's cache directory: headers and the libraries of the CPU, and where there is a driver of a GPU also
# those of CUDA (three fifths of a gigabyte). Prints the folder 'torch'. Does nothing when that is already there.
#   scripts/fetch_libtorch.sh           fetch if needed
#   scripts/fetch_libtorch.sh --print   only print the folder; fails when it is not there
set -euo pipefail

cache="${OCTET_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/octet}"
target="$cache/libtorch-2.15.0"
packages=(
  "torch==2.15.0 torch-2.15.0-cp311-cp311-manylinux_2_28_x86_64.whl 48c2d861134c0b5697c7602cb5ffa68f62a2989fdcd1717e593356f67996ca1e"
  "nvidia-cuda-runtime==13.2.86 nvidia_cuda_runtime-13.2.86-py3-none-manylinux2014_x86_64.manylinux_2_17_x86_64.whl 3498247680dfddce31bad102af7e3e26fc795342a3cac64722bb0fa95e7f60f0"
  "nvidia-cuda-cupti==13.2.86 nvidia_cuda_cupti-13.2.86-py3-none-manylinux_2_25_x86_64.whl 8fa29f15dd8336181f961764d9d95236fc6b931dd0c8fcf8cd70aab0c310b586"
)

driver=false
if command -v nvidia-smi >/dev/null || ldconfig -p 2>/dev/null | grep -q 'libcuda\.so\.1'; then driver=true; fi
# A driver may have come since.
if [ -e "$target/complete" ] && { [ "${1:-}" = "--print" ] || ! $driver || [ -e "$target/torch/lib/libtorch_cuda.so" ]; }; then
  echo "$target/torch"
  exit 0
fi
if [ "${1:-}" = "--print" ]; then
  echo "LibTorch is not in $target; run scripts/fetch_libtorch.sh" >&2
  exit 1
fi

wheels="$cache/wheels"
mkdir -p "$wheels"
work="$(mktemp -d "$cache/libtorch.XXXXXX")"
trap 'rm -rf "$work"' EXIT
for entry in "${packages[@]}"; do
  read -r requirement file sha <<<"$entry"
  if ! echo "$sha  $wheels/$file" | sha256sum --check --status 2>/dev/null; then
    echo "fetching $requirement ..." >&2
    python3 -m pip download --quiet --no-deps --only-binary=:all: --python-version 3.11 --implementation cp --abi cp311 \
      --abi none --platform manylinux_2_28_x86_64 --platform manylinux_2_25_x86_64 --platform manylinux2014_x86_64 \
      --dest "$wheels" "$requirement" >&2 || {
        echo "could not fetch $requirement with pip: check the network and rerun, it goes on from here" >&2; exit 1; }
    echo "$sha  $wheels/$file" | sha256sum --check --status || {
        echo "$wheels/$file has another SHA-256 than the pinned $sha: it was not used; delete it and rerun" >&2; exit 1; }
  fi
  echo "unpacking $file ..." >&2
  # libtorch_cpu.so is linked against libcudart.so and libcupti.so; of the rest, Python's libraries and tools serve no one.
  python3 - "$wheels/$file" "$work" "$driver" <<'PY'
import fnmatch, sys, zipfile
wheel, target, driver = zipfile.ZipFile(sys.argv[1]), sys.argv[2], sys.argv[3] == "true"
keep = ["torch/include/*", "torch/lib/libc10.so", "torch/lib/libtorch_cpu.so", "torch/lib/libgomp.so*",
        "nvidia/*/lib/libcudart.so*", "nvidia/*/lib/libcupti.so*", "*.dist-info/licenses/*"]
if driver:
    keep += ["torch/lib/*cuda*.so", "torch/lib/libtorch_nvshmem.so", "torch/lib/libcaffe2_nvrtc.so", "nvidia/*/lib/*"]
wheel.extractall(target, [n for n in wheel.namelist() if any(fnmatch.fnmatch(n, pattern) for pattern in keep)])
PY
done
touch "$work/complete"
chmod 755 "$work"
rm -rf "$target"
mv "$work" "$target"
trap - EXIT
echo "$target/torch"
