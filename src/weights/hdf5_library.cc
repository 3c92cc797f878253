#include "weights/hdf5_library.h"

#include <dlfcn.h>

#include "base/error.h"

namespace octet::weights {
namespace {

// OCTET_HDF5_FILE: the library that this program was compiled for, by the name under which it is looked for.
constexpr const char* kFile = OCTET_HDF5_FILE;

void* opened() {
  static void* const library = ::dlopen(kFile, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr)
    fail("reading HDF5 takes the library ", kFile, ", which is not installed; install it (Debian: libhdf5-103-1), or ",
         "give the weights as safetensors, .pth or ONNX");
  return library;
}

// A program that is linked to the library has the variables itself.
hid_t variable(const char* name) {
  const void* linked = ::dlsym(RTLD_DEFAULT, name);
  return *static_cast<const hid_t*>(linked ? linked : hdf5_symbol(name));
}

}  // namespace

void* hdf5_symbol(const char* name) {
  void* const found = ::dlsym(opened(), name);
  require(found != nullptr, kFile, " lacks ", name, ": it is not the library that Octet was built for");
  return found;
}

Hdf5Library::Hdf5Library() {
  // Its variables have their values from here on.
  const auto start = reinterpret_cast<decltype(&::H5open)>(hdf5_symbol("H5open"));
  require(start() >= 0, kFile, " does not start");
  file_access = variable("H5P_CLS_FILE_ACCESS_ID_g");
  text = variable("H5T_C_S1_g");
  native_float = variable("H5T_NATIVE_FLOAT_g");
}

const Hdf5Library& hdf5() {
  static const Hdf5Library library;
  return library;
}

}  // namespace octet::weights
