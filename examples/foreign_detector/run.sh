#!/usr/bin/env bash
# Detectors that Octet did not make, from their ONNX files to INT8 engines: calibrated, pruned, taught by the whole network,
# compiled, measured and verified. docs/foreign_detectors.md explains each step.
#   examples/foreign_detector/run.sh [FOLDER]      default: results/foreign_detector; takes some ten minutes on two cores
# Needs build/release and a Python with PyTorch and torchvision (Debian: apt-get install python3-torchvision python3-pil), named
# by PYTHON if it is not /usr/bin/python3. IMAGES=8000 to train each with.
set -euo pipefail
here="$(cd "$(dirname "$0")" && pwd)"
octet="${OCTET:-$here/../../build/release/bin/octet}"
python="${PYTHON:-/usr/bin/python3}"
"$python" -c "import torchvision" 2>/dev/null || { echo "$python has no torchvision; set PYTHON, or install python3-torchvision" >&2; exit 77; }
mkdir -p "${1:-results/foreign_detector}"
cd "${1:-results/foreign_detector}"

[ -d scenes ] || "$octet" scenes --pictures /usr/share/datasets/fashion-mnist --train 1000 --test 200 --width 256 --height 192 \
  --names top,trousers,top,dress,top,shoe,top,shoe,bag,shoe --format kitti -o scenes

for kind in ssd fcos; do
  echo "== $kind"
  cp "$here/$kind.yaml" .
  spec=(-e "$kind.yaml")
  [ -e $kind/model.onnx ] || "$python" "$here/make_detector.py" $kind scenes $kind --images "${IMAGES:-8000}"
  # The spec describes the decoder: it must find what torchvision's own decoder finds.
  "$octet" infer "${spec[@]}" -m $kind/model.onnx --coco $kind/octet.json --min_score 0.05 --force --quiet >/dev/null
  "$python" "$here/compare.py" $kind/torchvision.json $kind/octet.json
  # Whole: calibrated and compiled.
  "$octet" calibrate "${spec[@]}" -m $kind/model.onnx -o $kind/calibrated.onnx --force
  "$octet" compile -m $kind/calibrated.onnx -o $kind/whole.octet --force --quiet
  "$octet" verify "${spec[@]}" -m $kind/calibrated.onnx --engine_file $kind/whole.octet
  # Half of it: pruned, taught by the whole network, calibrated and compiled.
  "$octet" prune -m $kind/model.onnx -o $kind/pruned.onnx --target-params 0.5 --force >$kind/pruning.txt
  tail -n 2 $kind/pruning.txt
  "$octet" train "${spec[@]}" -r $kind/taught --stage control -m $kind/pruned.onnx --force \
    --set finetune.distill.teacher=$kind/model.onnx
  "$octet" calibrate "${spec[@]}" -m $kind/taught/model.onnx -o $kind/taught.onnx --force
  "$octet" compile -m $kind/taught.onnx -o $kind/pruned.octet --force --quiet
  "$octet" verify "${spec[@]}" -m $kind/taught.onnx --engine_file $kind/pruned.octet
  for model in model.onnx whole.octet pruned.onnx taught/model.onnx pruned.octet; do
    "$octet" evaluate "${spec[@]}" -m $kind/$model --json $kind/"${model//\//-}.json" --quiet
  done
done

python3 - <<'PY'
import json
print("\n| network | whole, float | whole, INT8 engine | pruned | pruned and taught | the same, INT8 engine |\n|---|---|---|---|---|---|")
for kind in ("ssd", "fcos"):
    files = ("model.onnx", "whole.octet", "pruned.onnx", "taught-model.onnx", "pruned.octet")
    print(f"| {kind} | " + " | ".join(f"{json.load(open(f'{kind}/{f}.json'))['map']:.1f}" for f in files) + " |")
PY
