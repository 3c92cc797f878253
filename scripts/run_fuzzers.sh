#!/usr/bin/env bash
# Runs the fuzzers of a fuzz build, all or those named, each for so many seconds, as many at a time as there are CPUs.
#   scripts/run_fuzzers.sh BUILD_FOLDER SECONDS [NAME ...]
# They start from the small files of tests/fuzz/corpus/NAME, the tests' own ONNX and YAML files, and what earlier runs
# found worth keeping in ~/.cache/octet/fuzz/NAME (OCTET_CACHE names another folder than ~/.cache/octet). Runs of five
# minutes or more add to that; shorter ones, as of ./test.sh, take some files of it and the same random numbers each time.
# Where CI is set they take none of it, so that a checkout's result does not hang on what a machine has seen before.
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

# fuzz NAME: runs one; returns 1 if it found something.
fuzz() {
  local name="$1" input seed
  local fuzzer="$build/bin/$name" seeds="$work/$name" grown="$cache/$name" new="$work/$name.new"
  mkdir -p "$seeds" "$new"
  if [ -d "$root/tests/fuzz/corpus/$name" ]; then cp "$root/tests/fuzz/corpus/$name"/* "$seeds"; fi
  case "$name" in
    onnx_fuzz) cp "$root"/tests/onnx/fixtures/*.onnx "$seeds" ;;
    graph_fuzz) cp "$root"/tests/onnx/fixtures/{old_forms_11,residual_ort_qdq,mobile_torchscript_17}.onnx "$seeds" ;;
    torch_fuzz) cp "$root"/tests/weights/fixtures/*.pth "$seeds" ;;
    spec_fuzz) cp "$root"/examples/*.yaml "$seeds" ;;
    tao_fuzz) cp "$root"/tests/spec/specifications/*.txt "$seeds" ;;
  esac
  local folders=("$new" "$seeds")
  if [ "$seconds" -ge 300 ]; then
    mkdir -p "$grown"
    folders=("$grown" "$seeds") seed=0
  else
    seed=1
    if [ -z "${CI:-}" ] && [ -d "$grown" ]; then
      find "$grown" -type f | sort | shuf -n 100 --random-source=<(yes) | xargs -r cp -t "$seeds"
    fi
  fi
  # Entropic scheduling would take most of the time where programs are large.
  if "$fuzzer" -seed="$seed" -max_total_time="$seconds" -rss_limit_mb=3000 -timeout=20 -max_len=65536 -entropic=0 \
       -print_final_stats=1 -verbosity=0 -artifact_prefix="$work/found-$name-" "${folders[@]}" >"$work/$name.log" 2>&1; then
    echo "  $name: $(sed -n 's/^stat::number_of_executed_units: *//p' "$work/$name.log") inputs"
    return 0
  fi
  tail -n 60 "$work/$name.log"
  mkdir -p "$cache/found"
  for input in "$work/found-$name"-*; do
    [ -f "$input" ] || continue
    cp "$input" "$cache/found/${input#"$work"/found-}"
    echo "$name found an input that breaks something: $cache/found/${input#"$work"/found-}; in base64:"
    base64 -w0 "$input"
    echo
  done
  return 1
}

for name in "${names[@]}"; do
  [ -x "$build/bin/$name" ] || { echo "no fuzzer $build/bin/$name" >&2; exit 1; }
done
[ ${#names[@]} -gt 0 ] || { echo "no fuzzers in $build/bin" >&2; exit 1; }
echo "${#names[@]} fuzzers, $seconds s each"
running=0 failed=0
for name in "${names[@]}"; do
  if [ "$running" -ge "$(nproc)" ]; then
    wait -n || failed=1
    running=$((running - 1))
  fi
  fuzz "$name" &
  running=$((running + 1))
done
while [ "$running" -gt 0 ]; do
  wait -n || failed=1
  running=$((running - 1))
done
[ "$failed" -eq 0 ] || exit 1
echo "${#names[@]} fuzzers found nothing in $seconds s each"
