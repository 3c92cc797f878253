#!/usr/bin/env bash
# Runs every fuzzer of a fuzz build for some seconds, starting from the small real files of the tests.
#   scripts/run_fuzzers.sh BUILD_FOLDER SECONDS
set -euo pipefail
build="$1" seconds="$2"
root="$(cd "$(dirname "$0")/.." && pwd)"
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
count=0
for fuzzer in "$build"/bin/*_fuzz; do
  name="$(basename "$fuzzer")"
  corpus="$work/$name"
  mkdir -p "$corpus"
  case "$name" in
    onnx_fuzz) find "$root/tests/onnx/fixtures" -name '*.onnx' -exec cp {} "$corpus" \; 2>/dev/null || true ;;
    spec_fuzz) cp "$root"/examples/*.yaml "$corpus" ;;
    *) [ -d "$root/tests/fuzz/seeds/$name" ] && cp "$root/tests/fuzz/seeds/$name"/* "$corpus" ;;
  esac || true
  echo "$name: $seconds s, starting from $(find "$corpus" -type f | wc -l) files"
  if ! "$fuzzer" -max_total_time="$seconds" -rss_limit_mb=3000 -timeout=20 -max_len=65536 -print_final_stats=0 -verbosity=0 \
       -artifact_prefix="$work/" "$corpus" >"$work/$name.log" 2>&1; then
    tail -n 60 "$work/$name.log" >&2
    echo "$name found an input that breaks the reader; its bytes in base64:" >&2
    find "$work" -maxdepth 1 -type f ! -name '*.log' -exec base64 -w0 {} \; >&2
    echo >&2
    exit 1
  fi
  count=$((count + 1))
done
[ "$count" -gt 0 ] || { echo "no fuzzers in $build/bin" >&2; exit 1; }
echo "$count fuzzers found nothing in $seconds s each"
