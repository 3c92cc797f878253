# Compiler settings and the helpers with which src/ and tests/ declare their targets.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/bin")
set(CMAKE_ARCHIVE_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/lib")
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()
# Assertions stay on: they guard invariants, not hot loops.
set(CMAKE_CXX_FLAGS_RELEASE "-O2")
set(CMAKE_CXX_FLAGS_RELWITHDEBINFO "-O2 -g1")  # lines of a stack trace; variables cost a sanitizer build a fifth of its time

find_program(OCTET_CCACHE ccache)
if(OCTET_CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER "${OCTET_CCACHE}")
endif()
find_program(OCTET_MOLD mold)
if(OCTET_MOLD)
  add_link_options(-fuse-ld=mold)
endif()

# -ffp-contract=off: a * b + c must round twice wherever the numerics contract says so (docs/numerics.md).
set(octet_options -Wall -Wextra -Wno-unused-parameter -Wno-missing-field-initializers -ffp-contract=off)
add_compile_options("$<$<COMPILE_LANGUAGE:C,CXX>:${octet_options}>")
if(OCTET_SANITIZE)
  add_compile_options(-fsanitize=${OCTET_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${OCTET_SANITIZE})
  if(OCTET_SANITIZE MATCHES address AND OCTET_SANITIZE MATCHES undefined)
    # What the address sanitizer sees as well; these three take a third of the compiler's time.
    add_compile_options(-fno-sanitize=null,object-size,vptr)
  endif()
  if(CMAKE_CXX_COMPILER_ID MATCHES Clang)
    add_compile_options(-fsanitize-ignorelist=${CMAKE_SOURCE_DIR}/cmake/sanitizer_ignorelist.txt)
  endif()
endif()

# Tests, commands and libraries that are COLD compute nothing themselves. Tests that are not OPTIMIZED are compiled without
# optimization, in three quarters of the time. Where most code runs once to be judged (sanitizers, emulation), all but libraries that are HOT is
# compiled in half the time, without optimization.
option(OCTET_LITTLE_OPTIMIZED "Optimize only what computes over pixels, weights and codes" OFF)
set(OCTET_LITTLE_OPTIMIZATION -O1)
if(OCTET_SANITIZE OR OCTET_LITTLE_OPTIMIZED)
  set(OCTET_LITTLE_OPTIMIZED ON)
  set(OCTET_LITTLE_OPTIMIZATION -O0)
endif()

# Files of a folder share most of what a compiler does with them: several at once take half the time, or less. A change of one
# file compiles its neighbors again, so who works on one for long may want it off. Names in unnamed namespaces of a folder
# must differ for it (scripts/check_unity.py).
option(OCTET_UNITY "Compile libraries and tests several files at a time" ON)
function(octet_unite target)
  set_target_properties(${target} PROPERTIES UNITY_BUILD ${OCTET_UNITY} UNITY_BUILD_BATCH_SIZE 8)
endfunction()

# Headers cost a build more than code does: octet_precompile(<target> <group>) gives the target the precompiled header of a
# group, which is compiled once for all targets in it. They must have the same compiler flags. The first target of a group
# owns it; that of tests has an owner of its own, so that who wants one test does not have to build another.
set(octet_precompiled_STANDARD src/base/std_pch.h)
set(octet_precompiled_COLD src/base/std_pch.h)
set(octet_precompiled_TORCH src/train/torch_pch.h)
set(octet_precompiled_COMMANDS src/cli/cli_pch.h)
set(octet_precompiled_TESTS tests/test_pch.h)
set(octet_precompiled_OPTIMIZED_TESTS tests/test_pch.h)
set(octet_precompiled_TORCH_TESTS tests/torch_test_pch.h)
function(octet_precompile target group)
  get_property(owner GLOBAL PROPERTY octet_precompiled_by_${group})
  if(NOT owner AND group MATCHES "^(OPTIMIZED_)?TESTS$")
    set(owner octet_precompiled_${group})
    file(CONFIGURE OUTPUT "${CMAKE_BINARY_DIR}/empty_program.cc" CONTENT "int main() {}\n")
    add_executable(${owner} "${CMAKE_BINARY_DIR}/empty_program.cc")
    target_link_libraries(${owner} PRIVATE octet_test_support GTest::gtest GTest::gmock)
    target_compile_options(${owner} PRIVATE $<TARGET_PROPERTY:${target},COMPILE_OPTIONS>)
    target_precompile_headers(${owner} PRIVATE "${CMAKE_SOURCE_DIR}/${octet_precompiled_${group}}")
    set_property(GLOBAL PROPERTY octet_precompiled_by_${group} ${owner})
  endif()
  if(owner)
    target_precompile_headers(${target} REUSE_FROM ${owner})
  else()
    target_precompile_headers(${target} PRIVATE "${CMAKE_SOURCE_DIR}/${octet_precompiled_${group}}")
    set_property(GLOBAL PROPERTY octet_precompiled_by_${group} ${target})
  endif()
endfunction()

# octet_library(<layer> [SOURCES files ...] DEPENDS <layers or targets ...> [PRECOMPILED group] [HOT | COLD] [ONE_BY_ONE]): the
# static library octet_<layer> of these files, or of the folder it is called in. The group is STANDARD unless named; NONE is
# for files with flags of their own. ONE_BY_ONE: also where OCTET_UNITY is on.
function(octet_library layer)
  cmake_parse_arguments(arg "HOT;COLD;ONE_BY_ONE" "PRECOMPILED" "SOURCES;DEPENDS;PRIVATE_DEPENDS" ${ARGN})
  set(sources ${arg_SOURCES})
  if(NOT sources)
    file(GLOB sources CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/*.cc")
  endif()
  if(NOT sources)
    return()
  endif()
  add_library(octet_${layer} STATIC ${sources})
  if(NOT arg_ONE_BY_ONE)
    octet_unite(octet_${layer})
  endif()
  if(OCTET_FUZZ)
    target_compile_options(octet_${layer} PRIVATE -fsanitize=fuzzer-no-link)  # branches of readers guide the fuzzers
  endif()
  if(arg_COLD OR (OCTET_LITTLE_OPTIMIZED AND NOT arg_HOT AND NOT arg_PRECOMPILED))
    target_compile_options(octet_${layer} PRIVATE ${OCTET_LITTLE_OPTIMIZATION})
    octet_precompile(octet_${layer} COLD)
  elseif(NOT arg_PRECOMPILED)
    octet_precompile(octet_${layer} STANDARD)
  elseif(NOT arg_PRECOMPILED STREQUAL NONE)
    octet_precompile(octet_${layer} ${arg_PRECOMPILED})
  endif()
  target_include_directories(octet_${layer} PUBLIC "${CMAKE_SOURCE_DIR}/src" "${CMAKE_SOURCE_DIR}/include")
  foreach(dependency ${arg_DEPENDS})
    if(TARGET octet_${dependency})
      target_link_libraries(octet_${layer} PUBLIC octet_${dependency})
    else()
      target_link_libraries(octet_${layer} PUBLIC ${dependency})
    endif()
  endforeach()
  target_link_libraries(octet_${layer} PRIVATE ${arg_PRIVATE_DEPENDS})
endfunction()

# How often threads of LibTorch look in tests before they sleep while they wait: tests run beside each other.
set(OCTET_TEST_SPINCOUNT 3000)

# Tests of layers that read, decide and write find in a build with sanitizers what they find in one without, and more: who
# runs both (test.sh) leaves those that are declared as ONCE to that one.
option(OCTET_TESTS_ONCE "Build the tests that need to run in one build only" ON)

# octet_test(<name> [SOURCES files ...] DEPENDS <layers or targets ...> [SHARDS n] [OPTIMIZED] [ONCE]): one googletest
# program of these files, or of tests/<name>/*_test.cc, run as the test <name>, or as n tests <name>_1 ... side by side.
# OPTIMIZED: its own formulas take longer to run unoptimized than to compile. ONCE: what it tests computes
# no numbers that depend on a compiler. ONE_BY_ONE: also where OCTET_UNITY is on.
function(octet_test folder)
  cmake_parse_arguments(arg "OPTIMIZED;ONCE;ONE_BY_ONE" "SHARDS" "SOURCES;DEPENDS" ${ARGN})
  if(arg_ONCE AND NOT OCTET_TESTS_ONCE)
    return()
  endif()
  set(sources ${arg_SOURCES})
  if(NOT sources)
    file(GLOB sources CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/${folder}/*_test.cc")
  endif()
  if(NOT sources)
    return()
  endif()
  foreach(dependency ${arg_DEPENDS})
    if(NOT TARGET octet_${dependency} AND NOT TARGET ${dependency})
      return()  # a layer that this configuration leaves out
    endif()
  endforeach()
  add_executable(${folder}_test ${sources})
  if(NOT arg_ONE_BY_ONE)
    octet_unite(${folder}_test)
  endif()
  target_link_libraries(${folder}_test PRIVATE octet_test_support GTest::gtest GTest::gmock GTest::gtest_main)
  if(NOT arg_OPTIMIZED)
    target_compile_options(${folder}_test PRIVATE -O0)
  endif()
  if("train" IN_LIST arg_DEPENDS OR "task_losses" IN_LIST arg_DEPENDS)
    octet_precompile(${folder}_test TORCH_TESTS)
  elseif(arg_OPTIMIZED)
    octet_precompile(${folder}_test OPTIMIZED_TESTS)
  else()
    octet_precompile(${folder}_test TESTS)
  endif()
  foreach(dependency ${arg_DEPENDS})
    if(TARGET octet_${dependency})
      target_link_libraries(${folder}_test PRIVATE octet_${dependency})
    else()
      target_link_libraries(${folder}_test PRIVATE ${dependency})
    endif()
  endforeach()
  if(NOT arg_SHARDS)
    add_test(NAME ${folder} COMMAND ${folder}_test)
    set_tests_properties(${folder} PROPERTIES LABELS unit TIMEOUT 600
                         ENVIRONMENT "GOMP_SPINCOUNT=${OCTET_TEST_SPINCOUNT};OCTET_THREADS=1")
    return()
  endif()
  math(EXPR last "${arg_SHARDS} - 1")
  foreach(shard RANGE ${last})
    math(EXPR number "${shard} + 1")
    add_test(NAME ${folder}_${number} COMMAND ${folder}_test)
    set_tests_properties(${folder}_${number} PROPERTIES LABELS unit TIMEOUT 600 COST 100
                         ENVIRONMENT "GTEST_TOTAL_SHARDS=${arg_SHARDS};GTEST_SHARD_INDEX=${shard}")
  endforeach()
endfunction()
