// libhdf5, loaded when the first file needs it: with what it loads itself (a client of web servers and its
// cryptography) it would triple the libraries that the program starts with. Its functions have the names here that they
// have in hdf5.h, of which types and constants are taken.
#pragma once
#include <hdf5.h>

namespace octet::weights {

// UserError where there is no such library, saying what to install, or it lacks `name`.
void* hdf5_symbol(const char* name);

struct Hdf5Library {
#define OCTET_HDF5(name) decltype(&::name) name = reinterpret_cast<decltype(&::name)>(hdf5_symbol(#name))
  OCTET_HDF5(H5Aclose);
  OCTET_HDF5(H5Aexists_by_name);
  OCTET_HDF5(H5Aget_space);
  OCTET_HDF5(H5Aget_type);
  OCTET_HDF5(H5Aopen_by_name);
  OCTET_HDF5(H5Aread);
  OCTET_HDF5(H5Dclose);
  OCTET_HDF5(H5Dget_space);
  OCTET_HDF5(H5Dget_type);
  OCTET_HDF5(H5Dopen2);
  OCTET_HDF5(H5Dread);
  OCTET_HDF5(H5Dvlen_reclaim);
  OCTET_HDF5(H5Eset_auto2);
  OCTET_HDF5(H5Fclose);
  OCTET_HDF5(H5Fopen);
  OCTET_HDF5(H5Lexists);
  OCTET_HDF5(H5Pclose);
  OCTET_HDF5(H5Pcreate);
  OCTET_HDF5(H5Pset_fapl_core);
  OCTET_HDF5(H5Pset_file_image);
  OCTET_HDF5(H5Sclose);
  OCTET_HDF5(H5Sget_simple_extent_dims);
  OCTET_HDF5(H5Sget_simple_extent_ndims);
  OCTET_HDF5(H5Sget_simple_extent_npoints);
  OCTET_HDF5(H5Tclose);
  OCTET_HDF5(H5Tcopy);
  OCTET_HDF5(H5Tget_class);
  OCTET_HDF5(H5Tget_cset);
  OCTET_HDF5(H5Tget_size);
  OCTET_HDF5(H5Tget_strpad);
  OCTET_HDF5(H5Tis_variable_str);
  OCTET_HDF5(H5Tset_cset);
  OCTET_HDF5(H5Tset_size);
  OCTET_HDF5(H5Tset_strpad);
#undef OCTET_HDF5
  // What hdf5.h has macros for, which would name the library's variables and functions.
  static constexpr unsigned kReadOnly = 0;  // H5F_ACC_RDONLY
  hid_t file_access = -1, text = -1, native_float = -1;

  Hdf5Library();
};

// The library, loaded by the first call.
const Hdf5Library& hdf5();

}  // namespace octet::weights
