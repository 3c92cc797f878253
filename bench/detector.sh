#!/usr/bin/env bash
# A detector from nothing to its INT8 engine, once for each seed: mAP of the float network, after calibration, after
# quantization-aware training, of the engine, the proof that the engine computes the trained graph, and the minutes it
# took, with those of them that the host of a virtual machine gave to others, which do not count. With --check, exit 1
# where a figure leaves its bound (the last lines of this file).
#   bench/detector.sh [--check] [SEED ...]      seeds 1 2 3 unless named; needs build/release; skips what is done
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/steps.sh
octet="${OCTET:-build/release/bin/octet}"
spec=examples/scenes_detectnet_v2.yaml
results=results/detector
check=""
[ "${1:-}" != --check ] || { check=1; shift; }
seeds=("$@")
[ ${#seeds[@]} -gt 0 ] || seeds=(1 2 3)

# With 250 scenes to test with, two models differ by half a point for no other reason than these scenes.
scenes="$results/scenes"
step "$scenes" scenes --pictures /usr/share/datasets/fashion-mnist --train 1500 --test 1000 -o "$scenes" \
  --names top,trousers,top,dress,top,shoe,top,shoe,bag,shoe
for seed in "${seeds[@]}"; do
  r="$results/seed-$seed"
  mkdir -p "$r"
  with=(-e "$spec" --set data.train.path="$scenes" --set data.test.path="$scenes" --set train.seed="$seed" --set data.seed="$seed")
  start_clock
  step "$r/float/model.onnx" train "${with[@]}" -r "$r/float" --stage float
  step "$r/calibrated.onnx" calibrate "${with[@]}" -m "$r/float/model.onnx" -o "$r/calibrated.onnx"
  step "$r/qat/model.onnx" train "${with[@]}" -r "$r/qat" --stage qat -m "$r/calibrated.onnx"
  step "$r/model.qdq.onnx" export -m "$r/qat/model.onnx" -o "$r/model.qdq.onnx"
  step "$r/model.octet" compile -m "$r/model.qdq.onnx" -o "$r/model.octet"
  for model in float/model.onnx calibrated.onnx qat/model.onnx model.octet; do
    name="${model%%[/.]*}"
    step "$r/$name.json" evaluate "${with[@]}" -m "$r/$model" --json "$r/$name.json"
  done
  step "$r/verify.json" verify "${with[@]}" -m "$r/qat/model.onnx" --engine_file "$r/model.octet" --json "$r/verify.json" || [ -e "$r/verify.json" ]
  note_time "$r"
done

python3 - "$results" "$check" "${seeds[@]}" <<'PY'
import json, pathlib, sys
results, check, seeds = pathlib.Path(sys.argv[1]), sys.argv[2], sys.argv[3:]
print("| seed | float mAP | calibrated | QAT | engine | verified | near | minutes | stolen |\n|---|---|---|---|---|---|---|---|---|")
missed = []
for seed in seeds:
    folder = results / f"seed-{seed}"
    score = {n: json.loads((folder / f"{n}.json").read_text())["map"] for n in ("float", "calibrated", "qat", "model")}
    proof = json.loads((folder / "verify.json").read_text())
    holds = proof["holds"]
    taken, stolen = (sum(map(int, log.read_text().split())) / 60 if log.exists() else 0
                     for log in (folder / "seconds.log", folder / "stolen.log"))
    minutes = taken - stolen  # what the host gave to others is no work of ours
    print(f"| {seed} | {score['float']:.2f} | {score['calibrated']:.2f} | {score['qat']:.2f} | {score['model']:.2f} "
          f"| {'yes' if holds else 'NO'} | {proof['near']} of {proof['compared']} | {taken:.1f} | {stolen:.1f} |")
    for held, what in ((score["float"] >= 80, "float mAP below 80"),
                       (score["calibrated"] >= score["float"] - 2, "calibrated more than 2 points below float"),
                       (score["model"] >= score["float"] - 0.5, "engine more than 0.5 points below float"),
                       (holds, "not verified"), (minutes < 15, "15 minutes or more")):
        if not held:
            missed.append(f"seed {seed}: {what}")
for line in missed:
    print(line)
sys.exit(1 if check and missed else 0)
PY
