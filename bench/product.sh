#!/usr/bin/env bash
# Product against product: what `octet quantize` makes, run by Octet, against what NNCF makes, run by OpenVINO, and what ONNX
# Runtime's quantizer makes, run by ONNX Runtime; all from the same FP32 file of the zoo and the same 200 pictures.
#   bench/product.sh [--check] [...]      options: bench/product.py --help
# Writes bench/results/product-<cpu>.json and prints the tables of docs/performance.md. Takes about fifteen minutes on an
# idle machine with two cores, most of it quantizing; on a busy one the numbers mean nothing.
set -euo pipefail
cd "$(dirname "$0")/.."
exec python3 bench/product.py "$@"
