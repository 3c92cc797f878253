#!/usr/bin/env bash
# Training beside other busy processes: images a second idle and loaded, on all CPUs and on one thread, in turns.
#   bench/training_under_load.sh [...]      options: bench/training_under_load.py --help
# Writes bench/results/training-under-load-<cpu>.json and prints the table of docs/performance.md. Takes about five
# minutes; loads the machine itself, so nothing else may run.
set -euo pipefail
cd "$(dirname "$0")/.."
exec python3 bench/training_under_load.py "$@"
