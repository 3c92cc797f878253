# Imported targets for the LibTorch of the PyPI wheel. find_package(Torch) of that wheel demands a CUDA toolkit.
if(NOT OCTET_TORCH_DIR)
  execute_process(COMMAND "${CMAKE_SOURCE_DIR}/scripts/fetch_libtorch.sh" --print
                  OUTPUT_VARIABLE torch_dir OUTPUT_STRIP_TRAILING_WHITESPACE RESULT_VARIABLE failed)
  if(failed)
    message(FATAL_ERROR "LibTorch is not installed: run scripts/fetch_libtorch.sh, or set OCTET_TORCH_DIR, or build "
                        "without training by -DOCTET_TRAIN=OFF")
  endif()
  set(OCTET_TORCH_DIR "${torch_dir}" CACHE PATH "" FORCE)
endif()
if(NOT EXISTS "${OCTET_TORCH_DIR}/lib/libtorch_cpu.so")
  message(FATAL_ERROR "OCTET_TORCH_DIR=${OCTET_TORCH_DIR} holds no lib/libtorch_cpu.so: run scripts/fetch_libtorch.sh")
endif()
foreach(lib c10 torch_cpu)
  add_library(octet_imported_${lib} SHARED IMPORTED GLOBAL)
  set_target_properties(octet_imported_${lib} PROPERTIES
    IMPORTED_LOCATION "${OCTET_TORCH_DIR}/lib/lib${lib}.so"
    INTERFACE_INCLUDE_DIRECTORIES "${OCTET_TORCH_DIR}/include;${OCTET_TORCH_DIR}/include/torch/csrc/api/include")
endforeach()
# libgomp of the wheel, not the system's: one OpenMP runtime in the process. Our loops run on its threads, too
# (src/train/parallel.h).
file(GLOB octet_gomp "${OCTET_TORCH_DIR}/lib/libgomp*.so*")
list(LENGTH octet_gomp octet_gomp_count)
if(NOT octet_gomp_count EQUAL 1)
  message(FATAL_ERROR "OCTET_TORCH_DIR=${OCTET_TORCH_DIR} holds ${octet_gomp_count} files lib/libgomp*.so* and not one")
endif()
add_library(octet_torch INTERFACE)
target_link_libraries(octet_torch INTERFACE octet_imported_torch_cpu octet_imported_c10 "${octet_gomp}")
# The wheel's libraries find the CUDA run-time packages beside torch/ through their own RPATH.
target_link_options(octet_torch INTERFACE "LINKER:--allow-shlib-undefined")
