# Debian packages, one for each component of OctetInstall.cmake; scripts/build_packages.sh makes them. What each depends on is
# what dpkg-shlibdeps finds, and the packages of this set that it needs.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME octet)
set(CPACK_PACKAGE_VENDOR "Octet")
set(CPACK_PACKAGE_CONTACT "Octet maintainers <maintainers@octet.invalid>")
set(CPACK_PACKAGING_INSTALL_PREFIX "/usr")
set(CPACK_COMPONENTS_GROUPING ONE_PER_GROUP)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_RELEASE 1)
set(CPACK_DEBIAN_COMPRESSION_TYPE zstd)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)

set(soversion ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
set(this_version "${PROJECT_VERSION}-${CPACK_DEBIAN_PACKAGE_RELEASE}")
set(CPACK_COMPONENTS_ALL runtime development)

set(CPACK_DEBIAN_RUNTIME_PACKAGE_NAME liboctet${soversion})
set(CPACK_DEBIAN_RUNTIME_PACKAGE_SECTION libs)
set(CPACK_DEBIAN_RUNTIME_DESCRIPTION "INT8 inference of vision networks on CPUs
 The engine of Octet: runs engine files, and gives the same bits on every
 instruction set.")

set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_NAME liboctet-dev)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SHLIBDEPS OFF)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS "liboctet${soversion} (= ${this_version})")
set(CPACK_DEBIAN_DEVELOPMENT_DESCRIPTION "INT8 inference of vision networks on CPUs, for programs
 Headers for C and C++, the static library, and what CMake and pkg-config
 need to find the engine of Octet.")

if(TARGET octet_cli)
  list(APPEND CPACK_COMPONENTS_ALL program)
  set(CPACK_DEBIAN_PROGRAM_PACKAGE_NAME octet)
  set(CPACK_DEBIAN_PROGRAM_PACKAGE_SECTION science)
  # libhdf5 is loaded when a file of Keras is read.
  set(CPACK_DEBIAN_PROGRAM_PACKAGE_SUGGESTS "octet-training (= ${this_version}), libhdf5-103-1")
  set(CPACK_DEBIAN_PROGRAM_DESCRIPTION "INT8 deployment of vision networks
 Compiles ONNX networks to engine files, runs, measures and examines them. The
 package octet-training adds what needs LibTorch.")
endif()

if(TARGET octet_training)
  list(APPEND CPACK_COMPONENTS_ALL training)
  set(CPACK_DEBIAN_TRAINING_PACKAGE_NAME octet-training)
  set(CPACK_DEBIAN_TRAINING_PACKAGE_SECTION science)
  set(CPACK_DEBIAN_TRAINING_PACKAGE_DEPENDS "octet (= ${this_version}), libhdf5-103-1")
  set(CPACK_DEBIAN_TRAINING_PACKAGE_SHLIBDEPS_PRIVATE_DIRS "${OCTET_TORCH_DIR}/lib")
  set(CPACK_DEBIAN_TRAINING_DESCRIPTION "low-precision training of vision networks
 The program that octet becomes for training, with LibTorch for CPUs.")
endif()
include(CPack)
