#!/usr/bin/env bash
# NVIDIA TAO's DetectNet_v2 workflow from nothing, on a fresh Debian 12: installs what is needed, builds, makes scenes with
# real pictures of Fashion-MNIST as a KITTI data set, and goes the whole way with the commands and the specifications
# (protobuf text) that a TAO user knows: TFRecords, train, evaluate, prune, retrain with QAT, export, engine. Ends with a
# table, report.html and pictures with boxes. A second run skips what is done; an interrupted one goes on.
#   examples/detection/run.sh [--results DIR] [--scenes N] [--test N] [--set KEY=VALUE ...]
# With OCTET=PROGRAM it takes that one, installs and builds nothing, and does without ONNX Runtime.
set -euo pipefail
cd "$(dirname "$0")/../.."
results=results/detection scenes=1500 unseen=1000
set_keys=()
while [ $# -gt 0 ]; do
  case "$1" in
    --results) results="$2"; shift 2 ;;
    --scenes) scenes="$2"; shift 2 ;;
    --test) unseen="$2"; shift 2 ;;
    --set) set_keys+=(--set "$2"); shift 2 ;;
    *) echo "usage: examples/detection/run.sh [--results DIR] [--scenes N] [--test N] [--set KEY=VALUE ...]" >&2; exit 2 ;;
  esac
done
. scripts/steps.sh
on_failure_say_how_to_go_on examples/detection/run.sh
rival=()
octet="${OCTET:-}"
[ -n "$octet" ] || { build_octet; rival=(--compare onnxruntime --onnx "$results/float/model.onnx"); }
mkdir -p "$results"
start_clock

r="$results"
# The specifications name the data where it lies for this run, as everybody edits theirs.
for name in train retrain_qat inference; do
  spec=$(<"examples/detection/$name.txt")
  printf "%s\n" "${spec//RESULTS/$r}" >"$r/$name.txt"
done
train=(-e "$r/train.txt" "${set_keys[@]}") retrain=(-e "$r/retrain_qat.txt" "${set_keys[@]}")
# Scenes that no training and no choice of an epoch has seen.
test=(--set data.test.format=kitti --set "data.test.path=$r/scenes/test")

step "$r/scenes"               scenes --pictures /usr/share/datasets/fashion-mnist --format kitti --train "$scenes" --test "$unseen" -o "$r/scenes" --names top,trousers,top,dress,top,shoe,top,shoe,bag,shoe
step "$r/tfrecords"            convert dataset --format kitti --path "$r/scenes/train" --val_split 20 -o "$r/tfrecords/train"
step "$r/float/model.onnx"     train detectnet_v2 "${train[@]}" -r "$r/float"
step "$r/float.json"           evaluate "${train[@]}" "${test[@]}" -m "$r/float/model.onnx" --json "$r/float.json"
step "$r/calibrated.onnx"      calibrate "${train[@]}" -m "$r/float/model.onnx" -o "$r/calibrated.onnx" --json "$r/ranges.json"
step "$r/ptq.json"             evaluate "${train[@]}" "${test[@]}" -m "$r/calibrated.onnx" --json "$r/ptq.json"
step "$r/pruned.onnx"          prune -m "$r/float/model.onnx" -o "$r/pruned.onnx" --target-params 0.35 --json "$r/prune.json"
step "$r/pruned.json"          evaluate "${train[@]}" "${test[@]}" -m "$r/pruned.onnx" --json "$r/pruned.json"
step "$r/qat/model.onnx"       train detectnet_v2 "${retrain[@]}" -r "$r/qat"
step "$r/qat.json"             evaluate "${retrain[@]}" "${test[@]}" -m "$r/qat/model.onnx" --json "$r/qat.json"
step "$r/model.octet"          export "${retrain[@]}" -m "$r/qat/model.onnx" -o "$r/model.qdq.onnx" --force --data_type int8 --engine_file "$r/model.octet" --cal_cache_file "$r/cal.bin" --gen_ds_config
step "$r/float.octet"          compile -m "$r/float/model.onnx" -o "$r/float.octet"
step "$r/engine.json"          evaluate "${retrain[@]}" "${test[@]}" -m "$r/model.octet" --json "$r/engine.json"
step "$r/verify.json"          verify "${retrain[@]}" "${test[@]}" -m "$r/qat/model.onnx" --engine_file "$r/model.octet" --json "$r/verify.json"
step "$r/bench.json"           bench -m "$r/model.octet" --baseline "$r/float.octet" "${rival[@]}" --json "$r/bench.json"
step "$r/inference"            infer -e "$r/inference.txt" -m "$r/model.octet" -i "$r"/scenes/test/image_2/*0.png -r "$r/inference"
note_time "$results"
"$octet" report -r "$r" "${retrain[@]}" "${test[@]}"
