#!/usr/bin/env bash
# A detector in small, by the ordinary commands: scenes with real objects, trained, calibrated, trained quantization-aware,
# exported, compiled, measured, verified, and its boxes drawn.
#   tests/e2e/detector.sh BIN_FOLDER
set -euo pipefail
octet="$1/octet"
here="$(cd "$(dirname "$0")" && pwd)"
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
cd "$work"

die() { echo "FAILED: $*" >&2; [ ! -e log ] || cat log >&2; exit 1; }
run() { "$octet" "$@" >log 2>&1 || die "exit code $?: octet $*"; echo "ok: $(tail -n 1 log | cut -c1-180)"; }
value() { python3 -c 'import json,sys; print(json.load(open(sys.argv[1]))[sys.argv[2]])' "$1" "$2"; }
at_least() { python3 -c 'import sys; sys.exit(not float(sys.argv[1]) >= float(sys.argv[2]))' "$1" "$2" || die "$3: $1 is below $2"; }

scenes=(scenes --pictures /usr/share/datasets/fashion-mnist --train 600 --test 150 --width 128 --height 96
        --names clothes,clothes,clothes,clothes,clothes,shoe,clothes,shoe,bag,shoe)
run "${scenes[@]}" -o scenes
run "${scenes[@]}" -o again
diff -r scenes again >/dev/null || die "the same options made other scenes"
cp "$here/detector.yaml" spec.yaml
run train detectnet_v2 -e spec.yaml -r float
grep -aq "train/loss/coverage" float/events/* || die "the parts of the loss are not drawn"
run evaluate -e spec.yaml -m float/model.onnx --json float.json
at_least "$(value float.json map)" 50 "mAP of the float detector"
python3 - <<'PY' || die "the details of the float detector do not fit"
import json
j = json.load(open("float.json"))
figures = {f["name"]: f["value"] for f in j["figures"]}
assert 0 < figures["coco_ap"] < figures["coco_ap50"] <= 100 and figures["coco_ar_1"] <= figures["coco_ar_100"]
rows = [c for c in j["classes"] if c["objects"]]
assert abs(sum(c["ap"] for c in rows) / len(rows) - j["map"]) < 1e-6
assert all(max(line["x"]) <= 1 and max(line["y"]) <= 1 for line in j["curves"][0]["lines"])
assert j["worst"] and all(any(o["outcome"] != "right" for o in w["objects"]) for w in j["worst"])
PY
few=(--set data.train.limit=200)  # what is trained already learns little from many more
run calibrate -e spec.yaml "${few[@]}" -m float/model.onnx -o calibrated.onnx --json ranges.json
run evaluate -e spec.yaml -m calibrated.onnx --json ptq.json
at_least "$(value ptq.json map)" "$(python3 -c "print($(value float.json map) - 3)")" "mAP after calibration"
run train -e spec.yaml "${few[@]}" -r qat --stage qat -m calibrated.onnx
# The same in one command, from the float model.
run train -e spec.yaml "${few[@]}" -r direct --stage qat -m float/model.onnx
cmp -s qat/model.onnx direct/model.onnx || die "calibration within the training gave another model"
# Learning from a teacher; the best weights beside the last; pictures of what is found.
run train -e spec.yaml "${few[@]}" -r taught -m float/model.onnx --set quant.enable_qat=true --set finetune.final_model=last \
  --set finetune.distill.teacher=float/model.onnx --set finetune.visualizer.enabled=true \
  --set 'data.val={format: voc, path: scenes, split: test}'
for what in train/loss/distill/ val/predictions/ val/truth/; do
  grep -aq "$what" taught/events/* || die "TensorBoard has no $what"
done
[ -s taught/model.best.onnx ] || die "the best model is not there"
run evaluate -e spec.yaml -m qat/model.onnx --json qat.json
run export -e spec.yaml -m qat/model.onnx -o model.qdq.onnx
run compile -m model.qdq.onnx -o model.octet
run evaluate -e spec.yaml -m model.octet --json engine.json
at_least "$(value engine.json map)" "$(python3 -c "print($(value qat.json map) - 0.5)")" "mAP of the engine"
run verify -e spec.yaml -m qat/model.onnx --engine_file model.octet --tensor_images 50 --json verify.json
[ "$(value verify.json holds)" = True ] || die "not verified"
python3 -c 'import json; v = json.load(open("verify.json")); assert v["near"] >= 0.99 * v["compared"] > 0, v["near"]' || die "detections of engine and graph differ"
# For TensorRT before 11 and for DeepStream: a range for every tensor, of which those of quantizers are the model's.
run export -e spec.yaml -m qat/model.onnx -o trt.onnx --cal_cache_file all.cache --cache-scope all --trt-version 8.6.1 \
  --cal_json_file ranges_all.json --engine_file trt.octet --gen_ds_config
run evaluate -e spec.yaml -m trt.octet --json exported_engine.json
[ "$(value exported_engine.json map)" = "$(value engine.json map)" ] || die "export and compile made different engines"
grep -q '^num-detected-classes=3$' nvinfer_config.txt || die "DeepStream is told another number of classes"
grep -q '^output-blob-names=output_cov/Sigmoid;output_bbox/BiasAdd$' nvinfer_config.txt || die "other outputs"
[ "$(paste -sd, labels.txt)" = "bag,clothes,shoe" ] || die "labels: $(paste -sd, labels.txt)"
run quantize -e spec.yaml -m trt.clean.onnx --cal_cache_file all.cache -o from_cache.onnx
run evaluate -e spec.yaml -m from_cache.onnx --json from_cache.json
at_least "$(value from_cache.json map)" "$(python3 -c "print($(value qat.json map) - 2)")" "mAP with the ranges of the cache"
run infer -e spec.yaml -m model.octet --json objects.json --draw pictures --kitti kitti --coco coco.json
[ "$(find pictures -name '*.png' | wc -l)" -eq 150 ] || die "not every scene was drawn"
python3 - <<'PY' || die "objects without a box in the scene"
import json
images = json.load(open("objects.json"))["predictions"]
boxes = [o["box"] for i in images for o in i["objects"]]
assert len(images) == 150 and len(boxes) > 30
assert all(0 <= b[0] < b[2] <= 128 and 0 <= b[1] < b[3] <= 96 for b in boxes)
# The other files hold the same objects, and those below the score that is shown.
import os
lines = [line.split() for name in sorted(os.listdir("kitti")) for line in open("kitti/" + name)]
coco = json.load(open("coco.json"))
assert len(os.listdir("kitti")) == 150 and all(len(line) == 16 for line in lines)
assert len(coco) == len(lines) >= len(boxes)
assert sum(float(line[15]) >= 0.5 for line in lines) == len(boxes)
assert all(r["category_id"] in (1, 2, 3) and min(r["bbox"][2:]) > 0 for r in coco)
PY
run report -e spec.yaml -r .
[ -n "$(value summary.json engine_map)" ] || die "the summary has no mAP"
# The same network as one from elsewhere.
cp "$here/foreign.yaml" foreign.yaml
run evaluate -e foreign.yaml -m float/model.onnx --json foreign_float.json
at_least "$(value foreign_float.json map)" "$(python3 -c "print($(value float.json map) - 10)")" "mAP of the float detector read as a foreign one"
run calibrate -e foreign.yaml -m float/model.onnx -o foreign.onnx
run compile -m foreign.onnx -o foreign.octet
run evaluate -e foreign.yaml -m foreign.octet --json foreign.json
at_least "$(value foreign.json map)" "$(python3 -c "print($(value foreign_float.json map) - 3)")" "mAP of the foreign detector's engine"
run verify -e foreign.yaml -m foreign.onnx --engine_file foreign.octet --tensor_images 40
if "$octet" train -e foreign.yaml -r foreign >log 2>&1; then die "a foreign detector was built"; fi
grep -q "builds no networks" log || die "the message does not say why"
# Pruned, and taught by the whole network: there is nothing else to learn from.
run prune -m float/model.onnx -o foreign_pruned.onnx --target-params 0.6
if "$octet" train -e foreign.yaml -r taught_foreign --stage control -m foreign_pruned.onnx >log 2>&1; then die "a foreign detector learned from nothing"; fi
grep -q "finetune.distill.teacher" log || die "the message does not name the teacher's key"
[ ! -e taught_foreign/model.onnx ] && [ ! -e taught_foreign/spec.yaml ] || die "a refused training left files"
run evaluate -e foreign.yaml -m foreign_pruned.onnx --json foreign_pruned.json
run train -e foreign.yaml -r taught_foreign --stage control -m foreign_pruned.onnx --set finetune.distill.teacher=float/model.onnx
run evaluate -e foreign.yaml -m taught_foreign/model.onnx --json foreign_taught.json
at_least "$(value foreign_taught.json map)" "$(python3 -c "print($(value foreign_float.json map) - 10)")" "mAP of the pruned foreign detector after it was taught (before: $(value foreign_pruned.json map))"
run train -e foreign.yaml -r foreign_qat -m taught_foreign/model.onnx --set quant.enable_qat=true \
  --set finetune.distill.teacher=float/model.onnx --set finetune.epochs=1
run export -e foreign.yaml -m foreign_qat/model.onnx -o foreign.trt.onnx --cal_cache_file foreign.cache --trt-version 8.6.1 \
  --engine_file foreign_qat.octet --gen_ds_config --force
grep -q '^network-type=100$' nvinfer_config.txt || die "nvinfer is to read a foreign detector"
grep -q '^# Mind: of detectors nvinfer reads' nvinfer_config.txt || die "DeepStream's file does not say who reads the outputs"
run evaluate -e foreign.yaml -m foreign_qat.octet --json foreign_qat.json
at_least "$(value foreign_qat.json map)" "$(python3 -c "print($(value foreign_taught.json map) - 3)")" "mAP of the taught foreign detector's engine"
# An experiment of one task and a network of another.
if "$octet" evaluate -e "$here/spec.yaml" -m model.octet >log 2>&1; then die "a detector was taken for a classifier"; fi
grep -q "a classifier has one of each" log || die "the message does not say why"
