#!/usr/bin/env bash
# What ONNX Runtime, OpenVINO and TensorRT say of Octet's files. Needs scripts/peers_venv.sh; without it: skipped (77).
#   tests/peers/run.sh BIN_FOLDER outputs|tensorrt
set -euo pipefail
bin="$1" what="$2"
here="$(cd "$(dirname "$0")" && pwd)"
venv="$("$here/../../scripts/peers_venv.sh" --print)" || exit 77
python="$venv/bin/python"
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT

case "$what" in
  outputs)
    "$bin/peers_write_cases" "$work" >/dev/null
    "$python" "$here/compare_outputs.py" "$work"/*
    ;;
  tensorrt)
    export LD_LIBRARY_PATH="$(dirname "$("$python" -c 'import nvidia, pathlib; print(next(pathlib.Path(p) for q in nvidia.__path__ for p in pathlib.Path(q).glob("**/libcudart.so.13")))')")"
    mkdir "$work/images"
    "$python" - "$work/images" <<'PY'
import pathlib, sys, numpy
random = numpy.random.default_rng(1)
for i in range(8):
    low = random.integers(0, 256, (8, 8, 3), dtype=numpy.uint8)
    picture = numpy.kron(low, numpy.ones((28, 28, 1), numpy.uint8))
    pathlib.Path(sys.argv[1], f"{i}.ppm").write_bytes(b"P6 224 224 255\n" + picture.tobytes())
PY
    for arch in resnet50 mobilenet_v2 efficientnet_b0; do
      "$bin/octet" models "$arch" --quiet -o "$work/$arch.onnx"
      "$bin/octet" quantize -m "$work/$arch.onnx" --images "$work/images" -o "$work/$arch.q.onnx" --quiet
      "$bin/octet" export -m "$work/$arch.q.onnx" -o "$work/$arch.trt.onnx" --target tensorrt --quiet
    done
    "$python" "$here/tensorrt_layers.py" "$work"/*.trt.onnx
    ;;
  *) echo "unknown check $what" >&2; exit 2 ;;
esac
