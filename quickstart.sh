#!/usr/bin/env bash
# Octet's main job from nothing, on a fresh Debian 12: installs what is needed, builds, then trains a network on
# Fashion-MNIST in floating point, calibrates it, trains it quantization-aware, exports QDQ ONNX, compiles the INT8 engine,
# proves that the engine computes what was trained, measures it, and writes report.html.
# Every step that is done is skipped by a second run; a step that failed is taken up again.
#   ./quickstart.sh [--spec FILE] [--results DIR] [--set KEY=VALUE ...]
# With another experiment it does the same for that: examples/scenes_detectnet_v2.yaml is one of a detector.
set -euo pipefail
cd "$(dirname "$0")"
spec=examples/fashion_mnist_resnet20.yaml
results=results/quickstart
set_keys=()
while [ $# -gt 0 ]; do
  case "$1" in
    --spec) spec="$2"; shift 2 ;;
    --results) results="$2"; shift 2 ;;
    --set) set_keys+=(--set "$2"); shift 2 ;;
    *) echo "usage: ./quickstart.sh [--spec FILE] [--results DIR] [--set KEY=VALUE ...]" >&2; exit 2 ;;
  esac
done
say() { printf '\n== %s\n' "$*"; }
trap 'status=$?; [ $status -eq 0 ] || echo "quickstart.sh: this step failed; when what it names is mended, run ./quickstart.sh again: it goes on from here" >&2' EXIT

say "Debian packages"
scripts/install_packages.sh
say "LibTorch"
scripts/fetch_libtorch.sh
say "build"
cmake --preset release >/dev/null
cmake --build --preset release -j "$(nproc)" --target octet_cli
say "ONNX Runtime (the rival of the benchmark)"
scripts/peers_venv.sh

octet=build/release/bin/octet
mkdir -p "$results"
started=$SECONDS
# step OUTPUT COMMAND...: runs the command as a user would type it, unless its output is there already.
step() {
  local output="$1"
  shift
  if [ -e "$output" ]; then
    printf '\n== done before: %s\n' "$output"
  else
    printf '\n$ octet %s\n' "$*"
    "$octet" "$@"
  fi
}

r="$results"
step "$r/float/model.onnx"       train -e "$spec" "${set_keys[@]}" -r "$r/float" --stage float
step "$r/float.json"             evaluate -e "$spec" "${set_keys[@]}" -m "$r/float/model.onnx" --json "$r/float.json"
step "$r/calibrated.onnx"        calibrate -e "$spec" "${set_keys[@]}" -m "$r/float/model.onnx" -o "$r/calibrated.onnx" --json "$r/ranges.json"
step "$r/ptq.json"               evaluate -e "$spec" "${set_keys[@]}" -m "$r/calibrated.onnx" --json "$r/ptq.json"
step "$r/qat/model.onnx"         train -e "$spec" "${set_keys[@]}" -r "$r/qat" --stage qat -m "$r/calibrated.onnx"
step "$r/qat.json"               evaluate -e "$spec" "${set_keys[@]}" -m "$r/qat/model.onnx" --json "$r/qat.json"
step "$r/control/model.onnx"     train -e "$spec" "${set_keys[@]}" -r "$r/control" --stage control -m "$r/float/model.onnx"
step "$r/control.json"           evaluate -e "$spec" "${set_keys[@]}" -m "$r/control/model.onnx" --json "$r/control.json"
step "$r/model.qdq.onnx"         export -e "$spec" "${set_keys[@]}" -m "$r/qat/model.onnx" -o "$r/model.qdq.onnx"
step "$r/model.octet"            compile -m "$r/model.qdq.onnx" -o "$r/model.octet"
step "$r/float.octet"            compile -m "$r/float/model.onnx" -o "$r/float.octet"
step "$r/engine.json"            evaluate -e "$spec" "${set_keys[@]}" -m "$r/model.octet" --json "$r/engine.json"
step "$r/verify.json"            verify -e "$spec" "${set_keys[@]}" -m "$r/qat/model.onnx" --engine_file "$r/model.octet" --json "$r/verify.json"
step "$r/bench.json"             bench -m "$r/model.octet" --baseline "$r/float.octet" --compare onnxruntime --onnx "$r/float/model.onnx" --json "$r/bench.json"
# What was spent by earlier runs that were interrupted counts too.
echo $((SECONDS - started)) >>"$r/seconds.log"
"$octet" report -r "$r" -e "$spec" "${set_keys[@]}"
