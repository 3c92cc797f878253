#!/usr/bin/env bash
# Training by several processes through the program: as many workers as one, workers that are lost, other launchers.
#   tests/e2e/distributed.sh BIN_FOLDER workers|faults|torchrun|network
#   tests/e2e/distributed.sh BIN_FOLDER kills [HOW_MANY]          default 8; the promise is made for 100, which takes some six minutes
set -euo pipefail
octet="$(cd "$1" && pwd)/octet" what="$2"
here="$(cd "$(dirname "$0")" && pwd)"
spec="$here/distributed.yaml"
work="$(mktemp -d /tmp/octet-distributed-$$-XXXXXX)"
trap 'rm -rf "$work"' EXIT
cd "$work"
export OMP_WAIT_POLICY=passive  # workers share the cores of the tests

die() { echo "FAILED: $*" >&2; [ ! -e log ] || cat log >&2; exit 1; }
expect() {
  local code="$1" text="$2" actual=0
  shift 2
  "$@" >log 2>&1 || actual=$?
  [ "$actual" -eq "$code" ] || die "exit code $actual instead of $code: $*"
  grep -qE -- "$text" log || die "the message does not say '$text': $*"
  echo "ok ($code): $(tail -n 1 log | cut -c1-180)"
}
train() { local folder="$1"; shift; "$octet" train -e "$spec" -r "$folder" "$@"; }

case "$what" in
workers)
  # So many workers with so many images each: 24 a step. At the rate of the experiment two runs of one process with another number of
  # threads drift apart by two per cent in three epochs, for no other reason than rounding; at this one by 0.004 %.
  rate=(--set train.optimizer.lr=2e-4)
  for workers in 1 2 3 4; do
    expect 0 "wrote w$workers/model.onnx" train w$workers "${rate[@]}" --workers $workers --set train.batch_size_per_gpu=$((24 / workers))
  done
  expect 0 'wrote apart/model.onnx' train apart "${rate[@]}" --workers 2 --set train.batch_size_per_gpu=12 --set train.sync_batch_norm=false \
    --explain
  grep -q "world: 2 processes, started by octet.* batches of 12: 24 images a step" log || die "--explain does not tell the processes"
  grep -q "batch norm: of each process's images" log || die "--explain does not tell of whom batch norm is"
  expect 0 'wrote again/model.onnx' train again "${rate[@]}" --workers 3 --set train.batch_size_per_gpu=8
  cmp w3/model.onnx again/model.onnx || die "three workers gave other bytes the second time"
  python3 - <<'PY' || die "the curves differ"
import json
def curve(folder):
    return json.load(open(f"{folder}/history.json"))
def distance(a, b):
    return max(abs(x["loss"] - y["loss"]) / x["loss"] for x, y in zip(a, b))
one = curve("w1")
for n in (2, 3, 4):
    several = curve(f"w{n}")
    assert len(several) == 3 and distance(one, several) < 2e-4, (n, distance(one, several))
    for x, y in zip(one, several):
        assert x["metrics"].keys() == y["metrics"].keys()
        # One image of the hundred may lie on an edge.
        assert abs(x["metrics"]["val_top1"] - y["metrics"]["val_top1"]) <= 1.001, (n, x, y)
    print(f"{n} workers: losses of all epochs within {distance(one, several):.1e} of one worker's")
assert distance(one, curve("apart")) > 1e-3, "the bound does not see batch norms of single workers"
PY
  # Ranges of a calibration that is shared are those of one process, to the bit.
  for workers in 1 2 3; do
    expect 0 'wrote q' train q$workers --stage qat -m w1/model.onnx --workers $workers --set finetune.batch_size_per_gpu=8
    cmp q1/calibrated.onnx q$workers/calibrated.onnx || die "$workers workers calibrated to other ranges than one"
  done
  # The ranks take what was calibrated at the same moment, and none of them that of another.
  for try in 1 2 3; do
    expect 0 "wrote race$try/model.onnx" train race$try --stage qat -m w1/model.onnx --workers 4 --set finetune.batch_size_per_gpu=8 --set finetune.epochs=1
  done
  # A mistake is told once.
  expect 2 'num_classes' train r --workers 2 --set model.num_classes=5
  [ "$(grep -c num_classes log)" -eq 1 ] || die "told more than once"
  expect 2 'no GPU can be used' train r --gpus 1000
  expect 2 'node_rank' train r --workers 2 --nnodes 2 --node_rank 2
  expect 2 'larger|more than' train r --workers 4 --set train.batch_size_per_gpu=100
  ;;
faults)
  # Two workers with 18 steps an epoch; a checkpoint after each.
  two=(--workers 2 --set train.batch_size_per_gpu=8 --timeout 20)
  expect 0 'wrote whole/model.onnx' train whole "${two[@]}"
  # A worker is killed: the other one says so and ends, and the same command goes on to the same bytes.
  "$octet" train -e "$spec" -r killed "${two[@]}" >log 2>&1 &
  launcher=$!
  for _ in $(seq 600); do [ ! -d killed/checkpoints/epoch-1 ] || break; sleep 0.05; done
  workers=($(pgrep -P $launcher))
  [ ${#workers[@]} -eq 2 ] || die "the launcher has ${#workers[@]} workers"
  kill -KILL "${workers[1]}"
  status=0; wait $launcher || status=$?
  [ $status -eq 1 ] || die "exit code $status after a worker was killed"
  grep -q 'another worker has ended' log || die "the other worker does not say what happened"
  grep -q 'worker 1 of 2 was killed by signal 9' log || die "the launcher does not say what happened"
  [ ! -e killed/model.onnx ] || die "the model of an unfinished run has its final name"
  expect 0 'going on after epoch' train killed "${two[@]}"
  cmp whole/model.onnx killed/model.onnx || die "another model than without the loss of a worker"
  # kill -9 at random moments, of workers and of the launcher, which takes its workers along; the launcher starts anew.
  for moment in 0.4 1.1 1.9 2.6; do
    "$octet" train -e "$spec" -r random "${two[@]}" --max-restarts 5 >>random.log 2>&1 &
    launcher=$!
    sleep $moment
    workers=($(pgrep -P $launcher || true))
    [ ${#workers[@]} -eq 0 ] || kill -KILL "${workers[$((RANDOM % ${#workers[@]}))]}" 2>/dev/null || true
    sleep 0.5
    kill -KILL $launcher 2>/dev/null || true
    wait $launcher 2>/dev/null || true
    for worker in "${workers[@]:-}"; do
      for _ in $(seq 50); do [ -n "$worker" ] && kill -0 "$worker" 2>/dev/null || break; sleep 0.1; done
      [ -z "$worker" ] || ! kill -0 "$worker" 2>/dev/null || die "worker $worker outlives its launcher"
    done
  done
  expect 0 'wrote random/model.onnx|nothing to do' train random "${two[@]}"
  cmp whole/model.onnx random/model.onnx || die "another model than without being killed"
  # SIGTERM to the launcher, and SIGUSR1 as a scheduler sends it to one worker: all stop after the same step.
  for signal in TERM USR1; do
    "$octet" train -e "$spec" -r stopped-$signal "${two[@]}" >log 2>&1 &
    launcher=$!
    for _ in $(seq 600); do [ ! -d stopped-$signal/checkpoints/epoch-1 ] || break; sleep 0.05; done
    target=$launcher
    [ $signal = TERM ] || target=$(pgrep -P $launcher | tail -1)
    kill -$signal $target
    status=0; wait $launcher || status=$?
    [ $status -eq $((128 + $(kill -l $signal))) ] || die "exit code $status after SIG$signal"
    [ "$(grep -c 'the same command goes on from there' log)" -eq 1 ] || die "no word, or more than one, of how to go on"
    expect 0 'going on after epoch' train stopped-$signal "${two[@]}"
    cmp whole/model.onnx stopped-$signal/model.onnx || die "another model than without SIG$signal"
  done
  # A training goes on with another number of workers, and past a damaged checkpoint.
  "$octet" train -e "$spec" -r other "${two[@]}" --set train.epochs=2 >log 2>&1 || die "two epochs"
  printf 'x' | dd of=other/checkpoints/epoch-2/state.safetensors bs=1 seek=1000 conv=notrunc status=none
  expect 0 'epoch-2 is passed over' train other --workers 3 --set train.batch_size_per_gpu=8
  grep -q 'going on after epoch 1' log || die "it did not go on from the checkpoint before"
  # A loss that is not finite: told with the tensor, left out, or followed by a lower rate.
  # Weights grow by a factor of -999 a step.
  broken=(--set train.optimizer.lr=1000 --set train.optimizer.weight_decay=1 --set train.schedule.type=constant
    --set train.schedule.warmup=0)
  expect 1 'the first tensor that is not finite is' train nan "${two[@]}" "${broken[@]}"
  expect 1 'the step is left out' train skip "${two[@]}" "${broken[@]}" --set train.non_finite.policy=skip --set train.non_finite.max_in_a_row=2
  ;;
kills)
  # kill -9 of a worker or the launcher at random moments: each time the run goes on from the last epoch that it has finished, and
  # the bytes in the end are those of an undisturbed one.
  many="${3:-8}" killed=0 runs=0
  two=(--workers 2 --set train.batch_size_per_gpu=12 --set train.epochs=6 --timeout 20)
  expect 0 'wrote whole/model.onnx' train whole "${two[@]}"
  RANDOM="${OCTET_SEED:-1}"
  while [ $killed -lt "$many" ]; do
    runs=$((runs + 1)) done_before=0
    while true; do
      "$octet" train -e "$spec" -r run-$runs "${two[@]}" >log 2>&1 &
      launcher=$!
      sleep "$(python3 -c "print(($RANDOM % 4500 + 100) / 1000)")"
      victims=($launcher $(pgrep -P $launcher || true))
      kill -KILL "${victims[$((RANDOM % ${#victims[@]}))]}" 2>/dev/null || true
      status=0; wait $launcher 2>/dev/null || status=$?
      for victim in "${victims[@]}"; do
        for _ in $(seq 100); do kill -0 "$victim" 2>/dev/null || break; sleep 0.05; done
        ! kill -0 "$victim" 2>/dev/null || die "process $victim outlives the others"
      done
      ! grep -q 'passed over' log || die "a checkpoint was damaged"
      if grep -q 'images  in' log || grep -q 'going on after epoch' log; then
        from=$(sed -n 's/.*going on after epoch \([0-9]*\).*/\1/p' log | head -1)
        [ "${from:-0}" -ge "$done_before" ] || die "went on after epoch ${from:-0}, but epoch $done_before was finished"
        last=$(sed -n 's/.* epoch \([0-9]*\)\/6  .*images  in .*/\1/p' log | tail -1)
        [ -z "$last" ] || done_before=$last
      fi
      [ $status -ne 0 ] || break
      killed=$((killed + 1))
      [ $killed -lt "$many" ] || break
    done
    expect 0 'wrote run-[0-9]*/model.onnx|nothing to do' train run-$runs "${two[@]}"
    cmp whole/model.onnx run-$runs/model.onnx || die "other bytes than without being killed"
    rm -rf run-$runs
  done
  echo "ok: $killed kills, $runs trainings with the bytes of an undisturbed one"
  ;;
torchrun)
  # Debian's (PyTorch 1.13) starts nothing with Debian's Python.
  torchrun="${OCTET_TORCHRUN:-${OCTET_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/octet}/venv-torch-1/bin/torchrun}"
  [ -x "$torchrun" ] || { echo "skipped: no torchrun; run scripts/peers_venv.sh --torch, or name one in OCTET_TORCHRUN"; exit 77; }
  echo "torchrun of PyTorch $("$(dirname "$(readlink -f "$torchrun")")/python3" -c 'import torch; print(torch.__version__)' 2>/dev/null || echo unknown)"
  run() { "$torchrun" --standalone --nproc_per_node 2 --max_restarts "$1" --no_python "$octet" train -e "$spec" -r "$2" \
    --set train.batch_size_per_gpu=12; }
  expect 0 'wrote plain/model.onnx' train plain --workers 2 --set train.batch_size_per_gpu=12
  expect 0 'wrote whole/model.onnx' run 0 whole
  cmp plain/model.onnx whole/model.onnx || die "torchrun's workers gave another model"
  run 3 killed >log 2>&1 &
  launcher=$!
  for _ in $(seq 600); do [ ! -d killed/checkpoints/epoch-1 ] || break; sleep 0.05; done
  kill -KILL "$(pgrep -f "octet_training train -e $spec -r killed" | tail -1)"
  wait $launcher || die "torchrun did not start the workers again"
  grep -q 'going on after epoch' log || die "the workers did not go on from the checkpoint"
  cmp plain/model.onnx killed/model.onnx || die "another model than without the loss of a worker"
  echo "ok: torchrun starts, kills and restarts a training"
  ;;
network)
  # Two hosts, each in a network namespace of its own, on a bridge of the test's.
  name="oct$$"
  if ! ip netns add ${name}a 2>/dev/null; then
    echo "skipped: network namespaces cannot be made here (needs root and CAP_SYS_ADMIN)"; exit 77
  fi
  cleanup() {
    for host in a b; do
      for process in $(ip netns pids $name$host 2>/dev/null); do kill -KILL $process 2>/dev/null || true; done
      ip netns del $name$host 2>/dev/null || true
    done
    rm -rf "$work"
  }
  trap cleanup EXIT
  ip netns add ${name}b
  ip link add ${name}a0 netns ${name}a type veth peer name ${name}b0 netns ${name}b 2>/dev/null || {
    echo "skipped: virtual network devices cannot be made here"; exit 77; }
  number=1
  for host in a b; do
    ip -n $name$host addr add 10.213.7.$number/24 dev $name${host}0
    ip -n $name$host link set $name${host}0 up
    ip -n $name$host link set lo up
    number=$((number + 1))
  done
  on() { local host=$1 node=$2 folder=$3; shift 3
    ip netns exec $name$host "$octet" train -e "$spec" -r "$folder" --workers 1 --nnodes 2 \
      --node_rank "$node" --master_addr 10.213.7.1 --set train.batch_size_per_gpu=12 --timeout 5 "$@"; }
  both() { local folder=$1; on b 1 "$folder" >log.b 2>&1 & other=$!; on a 0 "$folder" >log 2>&1; }
  both whole || die "two hosts do not train together"; wait $other || { cat log.b; die "the second host"; }
  both cut & here_pid=$!
  for _ in $(seq 600); do [ ! -d cut/checkpoints/epoch-1 ] || break; sleep 0.05; done
  ip -n ${name}b link set ${name}b0 down
  begin=$SECONDS
  status=0; wait $here_pid || status=$?
  [ $status -eq 1 ] || die "exit code $status after the cable was cut"
  [ $((SECONDS - begin)) -le 20 ] || die "it took $((SECONDS - begin)) s to notice"
  grep -q 'another worker has ended or cannot be reached' log || die "no word of what happened"
  for process in $(ip netns pids ${name}b); do kill -KILL $process 2>/dev/null || true; done
  ip -n ${name}b link set ${name}b0 up
  both cut || die "going on after the cable was cut"; wait $other || { cat log.b; die "the second host"; }
  grep -q 'going on after epoch' log || die "the run began anew"
  cmp whole/model.onnx cut/model.onnx || die "another model than on a whole cable"
  echo "ok: two hosts train, one is cut off, they go on to the same bytes"
  ;;
*) echo "unknown part $what" >&2; exit 2 ;;
esac
