#!/usr/bin/env bash
# The long tests of the engine under several callers: 60 s under ThreadSanitizer and 10 minutes plain, 8 contexts in 8
# threads; no race, no growing memory, always the same bits.
#   tests/soak.sh [TSAN_SECONDS [PLAIN_SECONDS [ENGINE.octet ...]]]
set -euo pipefail
cd "$(dirname "$0")/.."
tsan_seconds="${1:-60}" plain_seconds="${2:-600}"
shift $(($# < 2 ? $# : 2))
engines=()
for engine in "$@"; do engines+=("$(realpath "$engine")"); done
for preset in tsan release; do
  [ -f "build/$preset/build.ninja" ] || cmake --preset "$preset" -DOCTET_TRAIN=OFF >/dev/null
  cmake --build "build/$preset" -j "$(nproc)" --target engine_soak
done
echo "== ThreadSanitizer, $tsan_seconds s"
TSAN_OPTIONS=halt_on_error=1 build/tsan/bin/engine_soak --seconds "$tsan_seconds" "${engines[@]}"
echo "== plain, $plain_seconds s"
build/release/bin/engine_soak --seconds "$plain_seconds" "${engines[@]}"
