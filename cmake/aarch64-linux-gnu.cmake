# Toolchain: Debian's cross compiler for AArch64; tests run under its QEMU (scripts/test_aarch64.sh uses it). The
# libraries of this machine are of another CPU, so it is for the parts that need headers alone:
#   cmake -S . -B build/aarch64 -DCMAKE_TOOLCHAIN_FILE=cmake/aarch64-linux-gnu.cmake -DOCTET_TRAIN=OFF -DOCTET_TOOLS=OFF
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64 -L /usr/aarch64-linux-gnu)
# Header-only libraries of this machine, after those of the C library of the other one.
set(CMAKE_CXX_FLAGS_INIT "-idirafter /usr/include")
set(CMAKE_MODULE_PATH "${CMAKE_CURRENT_LIST_DIR}/header_only")
set(OCTET_MOLD "" CACHE FILEPATH "The cross compiler has a linker of its own")
