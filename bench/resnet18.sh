#!/usr/bin/env bash
# ResNet-18 at 224x224, batch 1, random weights: Octet's INT8 engine, its FP32 engine and ONNX Runtime FP32 in turns.
#   bench/resnet18.sh [--threads N ...]       writes build/bench/resnet18.json
set -euo pipefail
cd "$(dirname "$0")/.."
octet=build/release/bin/octet
[ -x "$octet" ] || { echo "build first: cmake --preset release && cmake --build --preset release --target octet_cli" >&2; exit 1; }
scripts/peers_venv.sh >/dev/null
out=build/bench
mkdir -p "$out/images"
python3 bench/make_images.py "$out/images" 16
"$octet" models resnet18 -o "$out/resnet18.onnx" --force --quiet
"$octet" quantize -m "$out/resnet18.onnx" --images "$out/images" -o "$out/resnet18.qdq.onnx" --force --quiet
"$octet" compile "$out/resnet18.qdq.onnx" -o "$out/resnet18.octet" --force --quiet
"$octet" bench "$out/resnet18.octet" --baseline "$out/resnet18.onnx" --compare onnxruntime --onnx "$out/resnet18.onnx" \
  --json "$out/resnet18.json" "$@"
