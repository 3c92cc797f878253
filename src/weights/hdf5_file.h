// What Octet reads of HDF5 files, by libhdf5: groups, attributes that are lists of texts, datasets of numbers. Damaged
// files can crash that library; guarded.h is the way to call it.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/tensor.h"

namespace octet::weights {

bool is_hdf5(std::string_view bytes);

// A file in memory. Paths are those of HDF5: "/model_weights/conv1". UserErrors name what is wrong, not the file.
class Hdf5File {
 public:
  explicit Hdf5File(std::string_view bytes);
  ~Hdf5File();
  Hdf5File(const Hdf5File&) = delete;
  Hdf5File& operator=(const Hdf5File&) = delete;

  bool has(const std::string& path) const;
  // Strings of fixed or variable length; one alone is a list of one. Nothing where there is no such attribute.
  std::optional<std::vector<std::string>> texts(const std::string& path, const std::string& attribute) const;
  // Floating-point numbers of any width, as float32.
  ir::Tensor floats(const std::string& path) const;

 private:
  std::string bytes_;
  int64_t file_ = -1;  // hid_t
};

}  // namespace octet::weights
