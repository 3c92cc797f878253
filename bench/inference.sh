#!/usr/bin/env bash
# The kernel benchmark: five networks with random weights, every instruction set of this machine down to AVX2, one
# and two threads and throughput, against OpenVINO and ONNX Runtime on the same graphs, interleaved.
#   bench/inference.sh [--quick] [...]      options: bench/inference.py --help
# Writes bench/results/inference-<cpu>.json and prints the tables of docs/studies. Takes about ten minutes on
# an idle machine with two cores; on a busy one the numbers mean nothing.
#   --before OTHER/build/release: in turns with another program; also before-inference-<cpu>.json and the change of each ratio
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/peers_venv.sh >/dev/null
exec python3 bench/inference.py "$@"
