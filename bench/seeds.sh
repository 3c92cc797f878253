#!/usr/bin/env bash
# The spread of the quick start's float accuracy: trains the network of the spec once for each seed (default: 2 3; seed 1 is the
# quick start itself) and prints top-1 on the test images.
#   bench/seeds.sh [SEED ...]
set -euo pipefail
cd "$(dirname "$0")/.."
octet=build/release/bin/octet
spec=examples/fashion_mnist_resnet20.yaml
seeds=("$@")
[ ${#seeds[@]} -gt 0 ] || seeds=(2 3)
for seed in "${seeds[@]}"; do
  folder="results/seed-$seed"
  set_seed=(--set train.seed="$seed" --set data.seed="$seed")
  "$octet" train -e "$spec" -r "$folder" --stage float "${set_seed[@]}"
  "$octet" calibrate -e "$spec" -m "$folder/model.onnx" -o "$folder/calibrated.onnx" --force "${set_seed[@]}"
  "$octet" evaluate -e "$spec" -m "$folder/model.onnx" "${set_seed[@]}" --json "$folder/float.json"
  "$octet" evaluate -e "$spec" -m "$folder/calibrated.onnx" "${set_seed[@]}" --json "$folder/ptq.json"
done
