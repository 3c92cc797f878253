#!/usr/bin/env bash
# The main job in small, by the ordinary commands, on real images; then the mistakes that people make and the accidents
# that happen. Each must end with one clear line, the right exit code, and no half-written file under a final name.
#   tests/e2e/main_job.sh BIN_FOLDER job|bytes|errors|interrupt
set -euo pipefail
octet="$1/octet" what="$2"
here="$(cd "$(dirname "$0")" && pwd)"
spec="$here/spec.yaml"
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
cd "$work"

die() { echo "FAILED: $*" >&2; [ ! -e log ] || cat log >&2; exit 1; }
# expect CODE TEXT COMMAND...: the command must exit with CODE and say TEXT (extended regular expression).
expect() {
  local code="$1" text="$2" actual=0
  shift 2
  "$@" >log 2>&1 || actual=$?
  [ "$actual" -eq "$code" ] || die "exit code $actual instead of $code: $*"
  grep -qE -- "$text" log || die "the message does not say '$text': $*"
  echo "ok ($code): $(tail -n 1 log | cut -c1-180)"
}
value() { python3 -c 'import json,sys; print(json.load(open(sys.argv[1]))[sys.argv[2]])' "$1" "$2"; }
at_least() { python3 -c 'import sys; sys.exit(not float(sys.argv[1]) >= float(sys.argv[2]))' "$1" "$2" || die "$3: $1 is below $2"; }
no_leftovers() { [ -z "$(find . -name '.*.tmp-*')" ] || die "left over: $(find . -name '.*.tmp-*')"; }

case "$what" in
job)
  expect 0 'wrote float/model.onnx' "$octet" train classification -e "$spec" -r float --stage float
  expect 0 'nothing to do' "$octet" train classification -e "$spec" -r float --stage float
  expect 0 'top-1' "$octet" evaluate -e "$spec" -m float/model.onnx --json float.json
  at_least "$(value float.json top1)" 75 "top-1 of the float model"
  expect 0 'wrote calibrated.onnx' "$octet" calibrate -e "$spec" -m float/model.onnx -o calibrated.onnx --json ranges.json
  expect 2 'exists already' "$octet" calibrate -e "$spec" -m float/model.onnx -o calibrated.onnx
  # Memory does not grow with the number of images: the same histograms, and the same process within 5 %.
  for images in 100 5000; do
    python3 - "$octet" calibrate -e "$spec" -m float/model.onnx -o c$images.onnx --json c$images.json --quiet \
      --set data.train.limit=5000 --set quant.calibration.images=$images >rss$images <<'PY'
import resource, subprocess, sys
subprocess.run(sys.argv[1:], check=True)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
PY
  done
  [ "$(value c100.json memory_bytes)" = "$(value c5000.json memory_bytes)" ] || die "histograms grew with the images"
  at_least "$(python3 -c "print(1.05 * $(cat rss100))")" "$(cat rss5000)" "memory of calibration with 100 images, plus 5 %"
  echo "ok: calibration with 100 images took $(cat rss100) KiB, with 5000 $(cat rss5000) KiB"
  expect 0 'top-1' "$octet" evaluate -e "$spec" -m calibrated.onnx --json ptq.json
  expect 0 'the written model has val_top1 [0-9.]*, the network had' "$octet" train -e "$spec" -r qat --stage qat -m calibrated.onnx
  expect 0 'wrote control/model.onnx' "$octet" train -e "$spec" -r control --stage control -m float/model.onnx
  expect 0 'top-1' "$octet" evaluate -e "$spec" -m qat/model.onnx --json qat.json
  expect 0 'top-1' "$octet" evaluate -e "$spec" -m control/model.onnx --json control.json
  expect 0 'wrote model.qdq.onnx' "$octet" export -e "$spec" -m qat/model.onnx -o model.qdq.onnx
  expect 0 'wrote model.octet' "$octet" compile -m model.qdq.onnx -o model.octet
  expect 0 'wrote float.octet' "$octet" compile -m float/model.onnx -o float.octet
  expect 0 'engine' "$octet" evaluate -e "$spec" -m model.octet --json engine.json
  at_least "$(value engine.json top1)" "$(python3 -c "print($(value qat.json top1) - 0.5)")" "the engine against the QAT graph"
  expect 0 '^verified' "$octet" verify -e "$spec" -m qat/model.onnx --engine_file model.octet --tensor_images 100 --json verify.json
  # The stages that train nothing do what these commands do.
  expect 0 'wrote hat/model.onnx' "$octet" train -e "$spec" -r hat --stage calibration -m float/model.onnx
  cmp hat/model.onnx calibrated.onnx || die "stage calibration differs from octet calibrate"
  expect 2 'exists already' "$octet" train -e "$spec" -r hat --stage calibration -m float/model.onnx
  expect 2 'holds no quantizers' "$octet" train -e "$spec" -r int --stage int_infer -m float/model.onnx
  expect 0 'engine' "$octet" train -e "$spec" -r int --stage int_infer -m qat/model.onnx
  [ "$(value int/model.json top1)" = "$(value engine.json top1)" ] || die "stage int_infer differs from octet evaluate"
  # A checkpoint before the end of its training, too, without an engine file.
  checkpoint=$(find qat/checkpoints -name model.onnx | sort | head -1)
  expect 0 '^verified' "$octet" verify -e "$spec" -m "$checkpoint" --tensor_images 20
  # Same bits on every instruction set and for any number of threads: the predictions with all their digits are equal.
  "$octet" infer -e "$spec" -m model.octet --top 10 --json best.json --isa scalar --threads 1 >/dev/null 2>&1
  for isa in avx2 avx_vnni avx512_vnni amx_int8; do
    for threads in 1 2 3; do
      "$octet" infer -e "$spec" -m model.octet --top 10 --json this.json --isa $isa --threads $threads >/dev/null 2>log || {
        grep -q 'this CPU' log || die "infer --isa $isa"; echo "skipped: $isa"; continue 2; }
      python3 -c 'import json; a, b = (json.load(open(f))["predictions"] for f in ("best.json", "this.json")); assert a == b' ||
        die "$isa with $threads threads differs from the scalar reference"
    done
    echo "ok: $isa gives the bits of the scalar reference with 1, 2 and 3 threads"
  done
  expect 0 'Octet INT8' "$octet" bench -m model.octet --baseline float.octet --runs 15 --json bench.json
  expect 0 'what may help' "$octet" diagnose -e "$spec" -m calibrated.onnx --count 32 --json diagnosis.json
  expect 0 'report.html' "$octet" report -e "$spec" -r .
  grep -q 'Suspects' report.html || die "the report names no suspects"
  if command -v chromium >/dev/null; then
    "$here/../report/screenshot.py" report.html || die "the report does not look right"
  fi
  # A study of a network whose files are all there has only its tables to make.
  mkdir study && ln -s .. study/resnet20
  expect 0 'done before: study/resnet20/bench.json' "$octet" study -e "$spec" -r study
  [ -s study/study.html ] && [ -s study/study.json ] || die "the study wrote no page"
  expect 2 'was made with finetune.optimizer.lr' "$octet" study -e "$spec" -r study --set finetune.optimizer.lr=0.5
  # Three bits lose much; a bar brings layers back, with a spec that makes the same network.
  few=(--set quant.weights.bits=3 --set quant.adaround.iterations=1 --set quant.adaround.images=50 --set quant.calibration.images=100)
  expect 0 'in float|calibrated' "$octet" calibrate -e "$spec" "${few[@]}" -m float/model.onnx -o bar.onnx --accuracy-drop 0.3 --json bar.json
  [ "$(value bar.json holds)" = True ] || die "the bar does not hold"
  expect 0 'wrote again.onnx' "$octet" calibrate -e bar.spec.yaml -m float/model.onnx -o again.onnx
  cmp bar.onnx again.onnx || die "the spec of --accuracy-drop makes another network"
  # Seconds instead of minutes, and nearer to the float network than the nearest codes are.
  expect 0 'by GPTQ: .* falls by [1-9]' "$octet" calibrate -e "$spec" --set quant.weights.bits=3 --set quant.gptq.images=300 \
    -m float/model.onnx -o gptq.onnx
  expect 2 'leave one of them out' "$octet" calibrate -e "$spec" "${few[@]}" --set quant.gptq.images=300 -m float/model.onnx -o both.onnx
  # What their weights lost when they were put on their grid cannot be seen any more, and that is said.
  expect 0 'weights? lost before' "$octet" diagnose -e "$spec" -m bar.onnx --count 8
  grep -q '</html>' report.html || die "report.html is not whole"
  at_least "$(value summary.json engine_agreement)" 1 "engine_agreement"
  expect 0 'Conv' "$octet" inspect model.qdq.onnx
  if venv="$("$here/../../scripts/peers_venv.sh" --print 2>/dev/null)"; then
    "$octet" infer -e "$spec" -m model.octet --json predictions.json >/dev/null 2>&1
    "$venv/bin/python" "$here/../peers/same_top1.py" model.qdq.onnx predictions.json /usr/share/datasets/fashion-mnist \
      0.2860 0.3530 1000
  fi
  no_leftovers
  ;;
bytes)
  # Same spec, same bytes: models, calibration cache and engine of a repeated job, and of one whose images other threads load.
  short=(--set data.train.limit=1500 --set train.epochs=1)
  for run in first again one three; do
    case $run in one) images=1 ;; three) images=3 ;; *) images=2 ;; esac
    make=("$octet" train -e "$spec" "${short[@]}" --set data.threads=$images)
    expect 0 'wrote .*model.onnx' "${make[@]}" -r $run/float --stage float
    expect 0 'wrote .*model.onnx' "${make[@]}" -r $run/calibrated --stage calibration -m $run/float/model.onnx
    expect 0 'wrote .*model.onnx' "${make[@]}" -r $run/qat --stage qat -m $run/calibrated/model.onnx
    expect 0 'wrote' "$octet" export -e "$spec" -m $run/qat/model.onnx -o $run/qdq.onnx --cal_cache_file $run/ranges.cache \
      --trt-version 10.3.0 --cal_json_file $run/ranges.json --engine_file $run/model.octet
    [ $run != first ] || continue
    for file in float/model.onnx calibrated/model.onnx qat/model.onnx qdq.onnx qdq.clean.onnx ranges.cache ranges.json model.octet; do
      cmp first/$file $run/$file || die "other bytes with $images threads that load images"
    done
    echo "ok: $images threads that load images give the bytes of the first run"
  done
  no_leftovers
  ;;
errors)
  "$octet" models resnet20 -o net.onnx --input 1,28,28 --num_classes 10 --quiet
  sed 's/epochs: 3/epoch: 3/' "$spec" >bad.yaml
  expect 2 "bad.yaml:[0-9]+:[0-9]+: unknown key 'epoch'.*epochs" "$octet" train -e bad.yaml -r r
  sed 's/epochs: 3/epochs: three/' "$spec" >bad.yaml
  expect 2 'bad.yaml:[0-9]+:[0-9]+' "$octet" train -e bad.yaml -r r
  sed 's/lr: 0.1,/lr: -1,/' "$spec" >bad.yaml
  expect 2 'bad.yaml:[0-9]+:[0-9]+.*lr' "$octet" train -e bad.yaml -r r
  expect 2 'No such file' "$octet" train -e missing.yaml -r r
  expect 2 "unknown command 'trian'.*train" "$octet" trian
  expect 2 'unknown option' "$octet" models --jsn x
  expect 2 'no such file' "$octet" evaluate -e "$spec" -m missing.onnx
  expect 2 'num_classes' "$octet" train -e "$spec" -r r --set model.num_classes=5
  expect 2 'num_classes|classes' "$octet" evaluate -e "$spec" -m net.onnx --set model.num_classes=11
  head -c 5000 net.onnx >truncated.onnx
  expect 1 'truncated.onnx' "$octet" compile -m truncated.onnx -o x.octet
  head -c 100000 /dev/urandom >garbage.onnx
  expect 1 'garbage.onnx' "$octet" inspect garbage.onnx
  python3 - <<'PY'
data = bytearray(open("net.onnx", "rb").read())
middle = len(data) // 2
data[middle:middle + 8] = b"\xff" * 8  # holds a NaN, whatever the alignment
open("nan.onnx", "wb").write(data)
PY
  expect 1 '[Nn]a[Nn]|not finite' "$octet" compile -m nan.onnx -o x.octet
  [ ! -e x.octet ] || die "x.octet was written"
  mkdir empty
  expect 1 'no image' "$octet" infer -e "$spec" -m net.onnx empty
  expect 1 'no image|empty' "$octet" quantize -m net.onnx --images empty -o x.onnx
  "$octet" compile -m net.onnx -o net.octet --quiet
  head -c 3000 net.octet >short.octet
  expect 1 'short.octet' "$octet" evaluate -e "$spec" -m short.octet
  python3 - <<'PY'
data = bytearray(open("net.octet", "rb").read())
data[len(data) // 2] ^= 1
open("damaged.octet", "wb").write(data)
PY
  expect 1 'damaged.octet.*(damaged|checksum)' "$octet" bench -m damaged.octet
  expect 1 'results directory' "$octet" train -e "$spec" -r /proc/results
  touch file
  expect 1 'file' "$octet" train -e "$spec" -r file
  expect 2 'isa|instruction set|has no' "$octet" bench -m net.octet --isa avx9
  # A disk that is full: files may not grow beyond 200 KiB, a checkpoint is larger.
  ( trap '' XFSZ; ulimit -f 200; expect 1 'not written|could not be written|writing failed' \
      "$octet" train -e "$spec" -r full --set train.epochs=1 --set data.train.limit=640 )
  [ -z "$(find full -name 'epoch-*' -o -name model.onnx)" ] || die "a half-written checkpoint has a final name: $(find full)"
  no_leftovers
  ;;
interrupt)
  train() { "$octet" train -e "$spec" -r "$1" --stage float --set data.train.limit=1200 >log 2>&1; }
  train whole || die "the uninterrupted run"
  for signal in TERM KILL; do
    folder="stopped-$signal"
    "$octet" train -e "$spec" -r $folder --stage float --set data.train.limit=1200 >log 2>&1 &
    pid=$!
    for _ in $(seq 600); do [ ! -d $folder/checkpoints/epoch-1 ] || break; sleep 0.1; done
    kill -$signal $pid 2>/dev/null || die "the run was over before it could be stopped"
    status=0; wait $pid || status=$?
    if [ $signal = TERM ]; then
      [ $status -eq 143 ] || die "exit code $status after SIGTERM"
      [ "$(grep -c FAILURE $folder/status.jsonl)" -eq 1 ] || die "not one last line in status.jsonl after SIGTERM"
      grep -q 'the same command goes on from there' log || die "no word of how to go on"
    else
      [ $status -eq 137 ] || die "exit code $status after SIGKILL"
    fi
    [ ! -e $folder/model.onnx ] || die "the model of an unfinished run has its final name"
    train $folder || die "going on after SIG$signal"
    grep -q 'going on after epoch' log || die "the run began anew"
    cmp whole/model.onnx $folder/model.onnx || die "another model than without SIG$signal"
    echo "ok: stopped by SIG$signal, went on, same bytes"
  done
  ;;
*) echo "unknown part $what" >&2; exit 2 ;;
esac
