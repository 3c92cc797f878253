# OCTET_CUDA: whether the CUDA kernels are built. AUTO looks for an nvcc that compiles them with this compiler; nothing
# else of Octet needs one. Compiled for Ampere and Hopper, with code from which drivers make that of later chips.
set(OCTET_CUDA AUTO CACHE STRING "Build the CUDA kernels of the optimizers (needs nvcc 11.7 or later): ON, OFF or AUTO")
set_property(CACHE OCTET_CUDA PROPERTY STRINGS AUTO ON OFF)

set(octet_cuda OFF)
set(wanted "${OCTET_CUDA}")
if(wanted STREQUAL AUTO AND (OCTET_SANITIZE OR OCTET_FUZZ OR CMAKE_CROSSCOMPILING))
  set(wanted OFF)  # nvcc has no sanitizers, and its code would run nowhere
endif()
if(wanted)
  find_program(OCTET_NVCC nvcc HINTS ENV CUDACXX ENV CUDA_PATH PATHS /usr/local/cuda PATH_SUFFIXES bin)
  if(OCTET_NVCC AND NOT DEFINED OCTET_NVCC_WORKS)
    file(WRITE "${CMAKE_BINARY_DIR}/cuda/probe.cu" "#include <cuda_bf16.h>\n#include <span>\n"
         "__global__ void f(const __grid_constant__ int i, __nv_bfloat16* y) { y[i] = __float2bfloat16_rn(1); }\n")
    execute_process(
      COMMAND "${OCTET_NVCC}" -std=c++20 -ccbin "${CMAKE_CXX_COMPILER}" -gencode arch=compute_80,code=sm_80
              -gencode arch=compute_90,code=sm_90 -c probe.cu -o probe.o
      WORKING_DIRECTORY "${CMAKE_BINARY_DIR}/cuda" RESULT_VARIABLE failed OUTPUT_VARIABLE said ERROR_VARIABLE said)
    if(failed)
      message(STATUS "${OCTET_NVCC} does not compile for sm_80 and sm_90 with ${CMAKE_CXX_COMPILER}: ${said}")
      set(OCTET_NVCC_WORKS OFF CACHE INTERNAL "")
    else()
      set(OCTET_NVCC_WORKS ON CACHE INTERNAL "")
    endif()
  endif()
  if(OCTET_NVCC AND OCTET_NVCC_WORKS)
    set(octet_cuda ON)
  elseif(NOT wanted STREQUAL AUTO)
    message(FATAL_ERROR "OCTET_CUDA=${OCTET_CUDA} needs an nvcc that compiles for sm_80 and sm_90: put it on PATH, or set "
                        "CUDACXX, or build without the kernels by -DOCTET_CUDA=OFF")
  endif()
endif()
if(octet_cuda)
  set(CMAKE_CUDA_COMPILER "${OCTET_NVCC}")
  set(CMAKE_CUDA_HOST_COMPILER "${CMAKE_CXX_COMPILER}")
  set(CMAKE_CUDA_ARCHITECTURES "80-real;90")
  set(CMAKE_CUDA_FLAGS_RELEASE "-O3")
  enable_language(CUDA)
  if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION)
    set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION "-std=c++20")  # which CMake 3.25 does not know of nvcc
  endif()
  find_package(CUDAToolkit REQUIRED)
endif()
message(STATUS "CUDA kernels: ${octet_cuda}")
