#!/usr/bin/env bash
# Builds the Python wheel, installs it in a fresh virtual environment, and uses it: the bits are the engine's, and the commands
# work. numpy is that of scripts/peers_venv.sh, so that nothing is downloaded; without it: exit status 77.
#   python_wheel.sh BUILD_FOLDER ENGINE_FILE
set -euo pipefail
build="$(cd "$1" && pwd)" engine="$(realpath "$2")"
root="$(cd "$(dirname "$0")/../.." && pwd)"
peers="$("$root/scripts/peers_venv.sh" --print 2>/dev/null)" || { echo "skipped: no numpy; run scripts/peers_venv.sh"; exit 77; }
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
wheel="$(python3 "$root/scripts/build_wheel.py" "$build" "$work/wheel")"
again="$(python3 "$root/scripts/build_wheel.py" "$build" "$work/again")"
cmp "$wheel" "$again" || { echo "FAILED: the same build gives another wheel"; exit 1; }
size="$(stat -c %s "$wheel")"
[ "$size" -le 8388608 ] || { echo "FAILED: the wheel has $size bytes"; exit 1; }

python3 -m venv "$work/venv"
python="$work/venv/bin/python"
site='import site; print(site.getsitepackages()[0])'
"$peers/bin/python" -c "$site" >"$("$python" -c "$site")/numpy_of_peers.pth"
"$python" -m pip --quiet --disable-pip-version-check install --no-index --no-deps "$wheel"
cd "$work"
"$build/bin/engine_write_outputs" "$engine" expected.f32 >/dev/null
"$python" "$root/tests/package/python_wheel.py" "$engine" expected.f32
# The commands, of the package alone.
octet="$work/venv/bin/octet-infer"
"$octet" --version
"$octet" models resnet20 -o model.onnx --input 3,32,32 --num_classes 4 --quiet
mkdir photos
for i in 1 2 3; do { printf 'P6\n32 32\n255\n'; head -c $((32 * 32 * 3)) /dev/zero | tr '\0' "\\$((140 + i))"; } >photos/$i.ppm; done
"$octet" quantize -m model.onnx --images photos --mean 0.5 --std 0.25 -o model.qdq.onnx --quiet
"$octet" compile model.qdq.onnx -o model.octet --quiet
"$octet" compare model.onnx model.octet --images photos --min_sqnr 10
"$python" -c '
import numpy, octet_infer
engine = octet_infer.Engine("model.octet")
scores = engine.context().run_image(numpy.full(engine.inputs[0].shape[2:] + (3,), 97, numpy.uint8))
assert scores.shape == (1, 4) and numpy.isfinite(scores).all()'
"$python" -m pip --quiet --disable-pip-version-check uninstall --yes octet-infer
[ ! -e "$octet" ] || { echo "FAILED: something stays behind"; exit 1; }
echo "the wheel, $((size / 1024)) KiB, works in a fresh environment"
