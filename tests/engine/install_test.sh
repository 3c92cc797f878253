#!/usr/bin/env bash
# Installs the engine, builds the examples against it with find_package(octet) and runs them.
#   install_test.sh BUILD_FOLDER ENGINE_FILE
set -euo pipefail
build="$(cd "$1" && pwd)" engine="$2"
root="$(cd "$(dirname "$0")/../.." && pwd)"
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
for component in runtime development; do
  cmake --install "$build" --prefix "$work/prefix" --component $component >"$work/log" || { cat "$work/log"; exit 1; }
done
(cd "$work/prefix" && find . \( -type f -o -type l \) | sort)

library="$(find "$work/prefix" -name 'liboctet.so')"
# Nothing of the inside may leak into the programs of others.
leaked="$(nm -D --defined-only -C "$library" | awk '{$1=$2=""; print substr($0,3)}' |
          grep -v -E '^(octet_|octet::(Engine|Context|Throughput|TensorInfo|TensorView)::|(typeinfo( name)?|vtable) for octet::Error)' || true)"
[ -z "$leaked" ] || { printf 'liboctet.so shows symbols that are not of its interface:\n%s\n' "$leaked"; exit 1; }
# Not `nm | grep -q`: grep leaves at the first match, and nm ends with a broken pipe if it is not done by then.
symbols="$(nm -D --defined-only "$library")"
for symbol in octet_engine_load octet_context_run octet_throughput_submit; do
  grep -q " T $symbol" <<<"$symbols" || { echo "liboctet.so lacks $symbol"; exit 1; }
done

for example in cpp_inference c_inference; do
  cmake -S "$root/examples/$example" -B "$work/$example" -DCMAKE_PREFIX_PATH="$work/prefix" \
        -DCMAKE_BUILD_TYPE=Release >"$work/log" || { cat "$work/log"; exit 1; }
  cmake --build "$work/$example" >"$work/log" || { cat "$work/log"; exit 1; }
  for program in "$work/$example"/inference*; do
    [ -f "$program" ] && [ -x "$program" ] || continue
    echo "== $example/$(basename "$program")"
    "$program" "$engine" 2
    if "$program" /nonexistent.octet 2>"$work/error"; then echo "no error for a missing file"; exit 1; fi
    grep -q '/nonexistent.octet' "$work/error"
  done
done
# The C and the C++ program agree.
first() { "$@" | grep '^first output'; }
[ "$(first "$work/cpp_inference/inference" "$engine")" = "$(first "$work/c_inference/inference" "$engine")" ]
[ "$(first "$work/cpp_inference/inference_static" "$engine")" = "$(first "$work/c_inference/inference" "$engine")" ]
# The same by pkg-config.
export PKG_CONFIG_PATH="$(dirname "$(find "$work/prefix" -name octet.pc)")"
cc "$root/examples/c_inference/main.c" -o "$work/by_pkg_config" $(pkg-config --cflags --libs octet)
LD_LIBRARY_PATH="$(dirname "$library")" "$work/by_pkg_config" "$engine" 2 >/dev/null
# A version that is not this one is not found.
sed 's/octet 0.1/octet 9.1/' "$root/examples/c_inference/CMakeLists.txt" >"$work/CMakeLists.txt"
cp "$root/examples/c_inference/main.c" "$work/main.c"
if cmake -S "$work" -B "$work/newer" -DCMAKE_PREFIX_PATH="$work/prefix" >"$work/log" 2>&1; then
  echo "find_package accepted version 9.1"; exit 1
fi
# The compiler, whose errors are those of the engine's library.
compiler="$(find "$work/prefix" -name 'liboctet_compiler.so')"
leaked="$(nm -D --defined-only -C "$compiler" | awk '{$1=$2=""; print substr($0,3)}' |
          grep -v -E '^(octet_compile_|octet::compile(_file)?(\[abi:cxx11\])?\(|(typeinfo( name)?|vtable) for octet::Error)' || true)"
[ -z "$leaked" ] || { printf 'liboctet_compiler.so shows symbols that are not of its interface:\n%s\n' "$leaked"; exit 1; }
if [ -x "$build/bin/octet" ]; then
  "$build/bin/octet" models resnet20 -o "$work/net.onnx" --input 3,32,32 --quiet
  mkdir "$work/compiler"
  cat >"$work/compiler/CMakeLists.txt" <<CMAKE
cmake_minimum_required(VERSION 3.16)
project(compile_and_run CXX)
find_package(octet 0.1 REQUIRED)
add_executable(compile_and_run "$root/tests/compiler/compile_and_run.cc")
target_compile_features(compile_and_run PRIVATE cxx_std_17)
target_link_libraries(compile_and_run PRIVATE octet::compiler)
CMAKE
  cmake -S "$work/compiler" -B "$work/compiler/build" -DCMAKE_PREFIX_PATH="$work/prefix" >"$work/log" || { cat "$work/log"; exit 1; }
  cmake --build "$work/compiler/build" >"$work/log" || { cat "$work/log"; exit 1; }
  "$work/compiler/build/compile_and_run" "$work/net.onnx" Nx3x32x32
  status=0; "$work/compiler/build/compile_and_run" /nonexistent.onnx 1x3x8x8 2>"$work/error" || status=$?
  [ $status -eq 3 ] && grep -q 'octet::Error: .*/nonexistent.onnx' "$work/error" || { cat "$work/error"; exit 1; }
fi
echo "the installed engine works"
