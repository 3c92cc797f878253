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
. scripts/steps.sh
on_failure_say_how_to_go_on ./quickstart.sh
build_octet
mkdir -p "$results"
start_clock

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
step "$r/diagnosis.json"       diagnose -e "$spec" "${set_keys[@]}" -m "$r/qat/model.onnx" --json "$r/diagnosis.json"
step "$r/verify.json"            verify -e "$spec" "${set_keys[@]}" -m "$r/qat/model.onnx" --engine_file "$r/model.octet" --json "$r/verify.json"
step "$r/bench.json"             bench -m "$r/model.octet" --baseline "$r/float.octet" --compare onnxruntime --onnx "$r/float/model.onnx" --json "$r/bench.json"
note_time "$results"
"$octet" report -r "$r" -e "$spec" "${set_keys[@]}"
