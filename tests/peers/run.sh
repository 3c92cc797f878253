#!/usr/bin/env bash
# What ONNX Runtime, OpenVINO and TensorRT say of Octet's files, and COCO's API of its masks and metrics. Needs scripts/peers_venv.sh; without it: skipped (77).
#   tests/peers/run.sh BIN_FOLDER outputs|tensorrt|nodes|codes|foreign|masks|precision|detector|runtimes|kernels|keras|half
set -euo pipefail
bin="$1" what="$2"
here="$(cd "$(dirname "$0")" && pwd)"
venv="$("$here/../../scripts/peers_venv.sh" --print)" || exit 77
python="$venv/bin/python"
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
# ONNX Runtime and OpenVINO add products of u8 and s8 in 16 bits, which saturate, on x86-64 without VNNI: there they are no
# judges of INT8.
saturates=false
[ "$(uname -m)" != x86_64 ] || grep -qE 'avx512_vnni|avx_vnni' /proc/cpuinfo || saturates=true

case "$what" in
  outputs)
    "$bin/peers_write_cases" "$work" >/dev/null
    "$python" "$here/compare_outputs.py" "$work"/*
    ;;
  nodes)
    "$python" "$here/onnx_node_tests.py" "$bin/peers_run_graphs" "$here/onnx_node_exceptions.txt"
    ;;
  codes)
    python3 "$here/../../bench/make_qdq_graphs.py" "$work" --modes u8s8 \
      --networks resnet18 resnet50 mobilenetv2 efficientnetb0 >/dev/null
    "$python" "$here/onnxruntime_codes.py" "$bin/peers_run_graphs" "$work"/*_u8s8.onnx
    ;;
  foreign)
    if $saturates; then echo "ONNX Runtime's sums saturate on this CPU: nothing to compare with"; exit 77; fi
    "$python" "$here/foreign_quantized.py" "$bin/peers_run_graphs"
    ;;
  masks | precision)
    "$python" -c "import pycocotools" 2>/dev/null || { echo "pycocotools is not installed; run scripts/peers_venv.sh" >&2; exit 77; }
    "$python" "$here/coco_$what.py" "$bin/peers_coco_$what"
    ;;
  detector)
    "$python" -c "import pycocotools" 2>/dev/null || { echo "pycocotools is not installed; run scripts/peers_venv.sh" >&2; exit 77; }
    "$python" "$here/foreign_detector.py" "$bin/octet"
    ;;
  runtimes)
    # The same network by Octet and by others through octet evaluate: the same figures.
    "$bin/octet" models resnet20 -o "$work/float.onnx" --input 1,28,28 --num_classes 10 --quiet
    mkdir "$work/images"
    python3 "$here/../../bench/make_images.py" "$work/images" 8
    "$bin/octet" quantize -m "$work/float.onnx" --images "$work/images" -o "$work/quantized.onnx" --quiet
    evaluate=("$bin/octet" evaluate -e "$here/../../examples/fashion_mnist_resnet20.yaml" --set data.test.limit=300 --quiet)
    for model in float quantized; do
      "${evaluate[@]}" -m "$work/$model.onnx" --json "$work/own.json"
      for runtime in onnxruntime openvino; do
        if $saturates && [ "$model" = quantized ]; then echo "sums of $runtime saturate on this CPU"; continue; fi
        "${evaluate[@]}" -m "$work/$model.onnx" --runtime "$runtime" --json "$work/other.json"
        "$python" "$here/same_figures.py" "$work/own.json" "$work/other.json"
        # The same outputs, too, where both compute in float32; INT8 is Octet's own.
        least=25
        [ "$model" = quantized ] || least=80
        "$bin/octet" compare "$runtime:$work/$model.onnx" "$work/$model.onnx" --images "$work/images" --mean 0.286 --std 0.353 --quiet \
          --min_sqnr "$least"
      done
    done
    ;;
  kernels)
    mkdir "$work/images"
    python3 "$here/../../bench/make_images.py" "$work/images" 8
    said=()
    for arch in resnet20 resnet50 mobilenet_v2; do
      "$bin/octet" models "$arch" --quiet -o "$work/$arch.onnx"
      text="$("$bin/octet" quantize -m "$work/$arch.onnx" --images "$work/images" -o "$work/$arch.ort.onnx" --target onnxruntime 2>&1)"
      said+=("$work/$arch.ort.onnx" "$(sed -n 's/.*ONNX Runtime will run \([0-9]* of [0-9]*\) .*/\1/p' <<<"$text")")
    done
    "$python" "$here/onnxruntime_kernels.py" "${said[@]}"
    # The codes are those of Octet's engine, too, which reads the int32 biases.
    "$python" "$here/onnxruntime_codes.py" "$bin/peers_run_graphs" "$work/resnet20.ort.onnx" "$work/mobilenet_v2.ort.onnx"
    ;;
  keras)
    "$python" -c "import h5py" 2>/dev/null || { echo "h5py is not installed; run scripts/peers_venv.sh" >&2; exit 77; }
    "$python" "$here/keras_weights.py" "$bin/peers_keras_weights" "$work"
    ;;
  tensorrt)
    export LD_LIBRARY_PATH="$(dirname "$("$python" -c 'import nvidia, pathlib; print(next(pathlib.Path(p) for q in nvidia.__path__ for p in pathlib.Path(q).glob("**/libcudart.so.13")))')")"
    mkdir "$work/images"
    python3 "$here/../../bench/make_images.py" "$work/images" 8
    for arch in resnet50 mobilenet_v2 efficientnet_b0; do
      "$bin/octet" models "$arch" --quiet -o "$work/$arch.onnx"
      "$bin/octet" quantize -m "$work/$arch.onnx" --images "$work/images" -o "$work/$arch.q.onnx" --quiet
      "$bin/octet" export -m "$work/$arch.q.onnx" -o "$work/$arch.trt.onnx" --target tensorrt --quiet
    done
    "$bin/octet" models resnet20 -o "$work/resnet20.onnx" --input 1,28,28 --num_classes 10 --quiet
    "$bin/octet" quantize -m "$work/resnet20.onnx" --images "$work/images" -o "$work/resnet20.q.onnx" --quiet
    "$bin/octet" export -m "$work/resnet20.q.onnx" -o "$work/resnet20.trt.onnx" --target tensorrt --quiet
    "$python" "$here/tensorrt_layers.py" "$work"/*.trt.onnx
    # What octet lint says of TensorRT is what TensorRT does.
    lint() { "$bin/octet" lint "$1" --target tensorrt; }
    for rules in auto tao dla; do
      file="$work/$rules.rules.onnx"
      "$bin/octet" quantize -m "$work/resnet20.onnx" --images "$work/images" -o "$file" --rules "$rules" --quiet
      said="$(lint "$file" | sed -n 's/.*takes the file; \([0-9]*\) of .*/\1/p')"
      seen="$("$python" "$here/tensorrt_layers.py" "$file" | sed -n 's/.*onnx: \([0-9]*\) of .*/\1/p')"
      [[ -n "$said" && "$said" == "$seen" ]] || { echo "--rules $rules: lint says $said in INT8, TensorRT $seen" >&2; exit 1; }
    done
    for flag in --asymmetric "--rules tfmot" "--target onnxruntime"; do
      file="$work/refused.onnx"
      # shellcheck disable=SC2086
      "$bin/octet" quantize -m "$work/resnet20.onnx" --images "$work/images" -o "$file" --force $flag --quiet
      ! lint "$file" >/dev/null || { echo "$flag: lint says that TensorRT takes it" >&2; exit 1; }
      ! "$python" "$here/tensorrt_layers.py" "$file" >/dev/null 2>&1 || { echo "$flag: TensorRT takes it" >&2; exit 1; }
    done
    # The names of a calibration cache are those that TensorRT gives the tensors of the file beside it.
    for arch in resnet50 efficientnet_b0; do
      printf 'model: {arch: %s}\ndata: {train: {format: image_folder, path: %s}}\nquant: {calibration: {images: 4}}\n' \
        "$arch" "$work/images" >"$work/spec.yaml"
      for scope in qat all; do
        "$bin/octet" export -e "$work/spec.yaml" -m "$work/$arch.q.onnx" -o "$work/$arch.$scope.onnx" --quiet \
          --trt-version 8.6.1 --cal_cache_file "$work/$arch.$scope.cache" --cache-scope "$scope"
      done
      "$python" "$here/tensorrt_cache.py" "$work/$arch.qat.clean.onnx" "$work/$arch.qat.cache"
      "$python" "$here/tensorrt_cache.py" --all "$work/$arch.all.clean.onnx" "$work/$arch.all.cache"
    done
    ;;
  half)
    for arch in resnet18 efficientnet_b0; do
      "$bin/octet" models "$arch" --quiet -o "$work/$arch.onnx"
      for type in fp32 fp16; do
        "$bin/octet" export -m "$work/$arch.onnx" -o "$work/$arch.$type.onnx" --data_type $type --quiet
      done
      "$python" "$here/half_precision.py" "$work/$arch.fp32.onnx" "$work/$arch.fp16.onnx"
    done
    ;;
  *) echo "unknown check $what" >&2; exit 2 ;;
esac
