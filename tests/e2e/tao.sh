#!/usr/bin/env bash
# The detection example in small: NVIDIA TAO's specifications and commands as they are, from scenes to the engine.
#   tests/e2e/tao.sh BIN_FOLDER
set -euo pipefail
bin="$(cd "$1" && pwd)"
root="$(cd "$(dirname "$0")/../.." && pwd)"
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT

die() { echo "FAILED: $*" >&2; cat "$work/log" >&2; exit 1; }
example() {
  OCTET="$bin/octet" "$root/examples/detection/run.sh" --results "$work/results" --scenes 120 --test 30 --set train.epochs=1 \
    --set finetune.epochs=1 >"$work/log" 2>&1 || die "exit code $?"
}
example
python3 - "$work/results" <<'PY' || die "the results do not fit"
import json, pathlib, sys
results = pathlib.Path(sys.argv[1])
pruned = json.loads((results / "prune.json").read_text())
summary = json.loads((results / "summary.json").read_text())
share = pruned["parameters"]["after"] / pruned["parameters"]["before"]
assert 0.3 < share <= 0.36, share
assert pruned["proof"]["holds"], pruned["proof"]
assert json.loads((results / "verify.json").read_text())["holds"]
assert all(summary[f"{stage}_map"] is not None for stage in ("float", "ptq", "pruned", "qat", "engine"))
assert abs(summary["qat_map"] - summary["engine_map"]) < 1
assert (results / "cal.bin").stat().st_size and (results / "nvinfer_config.txt").stat().st_size
drawn = {p.stem for p in (results / "inference/images_annotated").glob("*.png")}
assert drawn and drawn == {p.stem for p in (results / "inference/labels").glob("*.txt")}, drawn
PY
# A second run has nothing to do.
before="$(find "$work/results" -name '*.onnx' -newermt '1970-01-02' -printf '%p %T@\n' | sort)"
example
[ "$(grep -c '^== done before' "$work/log")" -eq 16 ] || die "a second run did something again"
[ "$before" = "$(find "$work/results" -name '*.onnx' -printf '%p %T@\n' | sort)" ] || die "models were written again"
