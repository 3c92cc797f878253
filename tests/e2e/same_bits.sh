#!/usr/bin/env bash
# The five networks of the inference benchmark and three of the zoo, one with attention in INT8: the same bits on every instruction set, with every
# tactic, with 1, 2 and 3 threads.
#   tests/e2e/same_bits.sh BIN_FOLDER
set -euo pipefail
bin="$1"
root="$(cd "$(dirname "$0")/../.." && pwd)"
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
python3 "$root/bench/make_qdq_graphs.py" "$work/graphs" --modes u8s8 s8s8
# Signed activations once per kind of network; the DetectNet of 960x544 once.
rm -f "$work"/graphs/{detectnet,efficientnetb0,resnet50}_s8s8.onnx
mkdir "$work/images"
python3 "$root/bench/make_images.py" "$work/images" 8
for arch in resnet20 mobilenet_v1; do
  size=1,28,28; [ "$arch" = mobilenet_v1 ] && size=3,64,64
  "$bin/octet" models "$arch" -o "$work/$arch.onnx" --input "$size" --num_classes 10 --quiet
  "$bin/octet" quantize -m "$work/$arch.onnx" --images "$work/images" -o "$work/graphs/$arch.qdq.onnx" --quiet
done
"$bin/octet" models vit_tiny -o "$work/vit.onnx" --input 3,96,96 --num_classes 10 --quiet
"$bin/octet" quantize -m "$work/vit.onnx" --images "$work/images" --quantize-inputs op:MatMul -o "$work/graphs/vit.qdq.onnx" --quiet
"$bin/same_bits" "$work"/graphs/*.onnx
