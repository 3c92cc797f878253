#!/usr/bin/env bash
# Runs the fuzzers of a fuzz build, all or those named, each for so many seconds.
#   scripts/run_fuzzers.sh BUILD_FOLDER SECONDS [NAME ...]
# They start from the small files of tests/fuzz/corpus/NAME, the tests' own ONNX and YAML files, and what earlier runs
# found worth keeping in ~/.cache/octet/fuzz/NAME (OCTET_CACHE names another folder than ~/.cache/octet). Runs of five
# minutes or more add to that; shorter ones, as of ./test.sh, take some files of it and the same random numbers each time.
# An input that breaks something stays there, too, under found/.
set -euo pipefail
build="$1" seconds="$2"
shift 2
root="$(cd "$(dirname "$0")/.." && pwd)"
cache="${OCTET_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/octet}/fuzz"
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
names=("$@")
if [ ${#names[@]} -eq 0 ]; then
  for fuzzer in "$build"/bin/*_fuzz; do names+=("$(basename "$fuzzer")"); done
fi
count=0
for name in "${names[@]}"; do
  fuzzer="$build/bin/$name"
  [ -x "$fuzzer" ] || { echo "no fuzzer $fuzzer" >&2; exit 1; }
  seeds="$work/$name" grown="$cache/$name" new="$work/$name.new"
  mkdir -p "$seeds" "$new"
  if [ -d "$root/tests/fuzz/corpus/$name" ]; then cp "$root/tests/fuzz/corpus/$name"/* "$seeds"; fi
  case "$name" in
    onnx_fuzz) cp "$root"/tests/onnx/fixtures/*.onnx "$seeds" ;;
    graph_fuzz) cp "$root"/tests/onnx/fixtures/{old_forms_11,residual_ort_qdq,mobile_torchscript_17}.onnx "$seeds" ;;
    spec_fuzz) cp "$root"/examples/*.yaml "$seeds" ;;
    tao_fuzz) cp "$root"/tests/spec/specifications/*.txt "$seeds" ;;
  esac
  if [ "$seconds" -ge 300 ]; then
    mkdir -p "$grown"
    folders=("$grown" "$seeds") seed=0
  else
    if [ -d "$grown" ]; then find "$grown" -type f | sort | shuf -n 100 --random-source=<(yes) | xargs -r cp -t "$seeds"; fi
    folders=("$new" "$seeds") seed=1
  fi
  echo "$name: $seconds s, starting from $(find "${folders[@]}" -type f | wc -l) files"
  # Entropic scheduling would take most of the time where programs are large.
  if ! "$fuzzer" -seed="$seed" -max_total_time="$seconds" -rss_limit_mb=3000 -timeout=20 -max_len=65536 -entropic=0 \
       -print_final_stats=1 -verbosity=0 -artifact_prefix="$work/found-" "${folders[@]}" >"$work/$name.log" 2>&1; then
    tail -n 60 "$work/$name.log" >&2
    mkdir -p "$cache/found"
    for input in "$work"/found-*; do
      [ -f "$input" ] || continue
      cp "$input" "$cache/found/$name-$(basename "$input")"
      echo "$name found an input that breaks something: $cache/found/$name-$(basename "$input"); in base64:" >&2
      base64 -w0 "$input" >&2
      echo >&2
    done
    exit 1
  fi
  echo "  $(sed -n 's/^stat::number_of_executed_units: *//p' "$work/$name.log") inputs"
  count=$((count + 1))
done
[ "$count" -gt 0 ] || { echo "no fuzzers in $build/bin" >&2; exit 1; }
echo "$count fuzzers found nothing in $seconds s each"
