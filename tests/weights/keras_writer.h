// Writes HDF5 files as Keras 2 does, with libhdf5.
#pragma once
#include <hdf5.h>
#include <unistd.h>

#include <filesystem>
#include <numeric>
#include <string>
#include <vector>

#include "base/files.h"

namespace octet::weights::testing {

struct KerasTensor {
  std::string name;  // "conv1/kernel:0"
  std::vector<int64_t> shape;
  std::vector<float> values;
};
struct KerasLayer {
  std::string name;
  std::vector<KerasTensor> tensors;
};

// 0, 1, 2 ... times `step`.
inline KerasTensor counting(const std::string& name, std::vector<int64_t> shape, float step = 1) {
  KerasTensor out{name, shape, {}};
  const int64_t count = std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>());
  for (int64_t i = 0; i < count; ++i) out.values.push_back(step * static_cast<float>(i));
  return out;
}

struct KerasFormat {
  bool whole_model = true;      // below /model_weights, as Model.save() and TAO write it; else in the root
  bool variable_texts = false;  // as h5py writes lists of str; else bytes of one length
  bool newest_format = false;   // groups and headers as HDF5 1.8 and later write them when they may
  bool doubles = false, deflated = false;
  size_t names_a_piece = 1000;  // Keras cuts lists that are too long for an attribute
};

class KerasWriter {
 public:
  // The bytes of the file.
  static std::string bytes(const std::vector<KerasLayer>& layers, const KerasFormat& format = {}) {
    static int count = 0;
    const std::filesystem::path path =
        std::filesystem::temp_directory_path() / str("octet_keras_", ::getpid(), "_", count++, ".hdf5");
    KerasWriter(format).write(path, layers);
    std::string out = read_file(path);
    std::filesystem::remove(path);
    return out;
  }

 private:
  explicit KerasWriter(const KerasFormat& format) : format_(format) {}

  void write(const std::filesystem::path& path, const std::vector<KerasLayer>& layers) {
    const hid_t access = H5Pcreate(H5P_FILE_ACCESS);
    if (format_.newest_format) H5Pset_libver_bounds(access, H5F_LIBVER_LATEST, H5F_LIBVER_LATEST);
    links_ = H5Pcreate(H5P_LINK_CREATE);
    H5Pset_create_intermediate_group(links_, 1);
    const hid_t file = H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, access);
    const hid_t root = format_.whole_model ? H5Gcreate2(file, "model_weights", links_, H5P_DEFAULT, H5P_DEFAULT)
                                           : H5Gopen2(file, "/", H5P_DEFAULT);
    std::vector<std::string> names;
    for (const KerasLayer& layer : layers) names.push_back(layer.name);
    write_list(root, "layer_names", names);
    for (const KerasLayer& layer : layers) {
      const hid_t group = H5Gcreate2(root, layer.name.c_str(), links_, H5P_DEFAULT, H5P_DEFAULT);
      std::vector<std::string> tensors;
      for (const KerasTensor& tensor : layer.tensors) {
        tensors.push_back(tensor.name);
        write_tensor(group, tensor);
      }
      write_list(group, "weight_names", tensors);
      H5Gclose(group);
    }
    H5Gclose(root);
    H5Fclose(file);
    H5Pclose(links_);
    H5Pclose(access);
  }

  void write_list(hid_t object, const std::string& name, const std::vector<std::string>& texts) {
    if (texts.size() <= format_.names_a_piece) return write_attribute(object, name, texts);
    for (size_t i = 0, piece = 0; i < texts.size(); i += format_.names_a_piece, ++piece) {
      const size_t end = std::min(i + format_.names_a_piece, texts.size());
      write_attribute(
          object, name + std::to_string(piece),
          {texts.begin() + static_cast<std::ptrdiff_t>(i), texts.begin() + static_cast<std::ptrdiff_t>(end)});
    }
  }

  void write_attribute(hid_t object, const std::string& name, const std::vector<std::string>& texts) {
    const hsize_t count = texts.size();
    const hid_t space = H5Screate_simple(1, &count, nullptr);
    const hid_t type = texts.empty() ? H5Tcopy(H5T_NATIVE_DOUBLE) : H5Tcopy(H5T_C_S1);  // numpy.asarray([])
    size_t length = 1;
    for (const std::string& text : texts) length = std::max(length, text.size());
    if (!texts.empty()) {
      H5Tset_size(type, format_.variable_texts ? H5T_VARIABLE : length);
      H5Tset_strpad(type, format_.variable_texts ? H5T_STR_NULLTERM : H5T_STR_NULLPAD);
      if (format_.variable_texts) H5Tset_cset(type, H5T_CSET_UTF8);
    }
    const hid_t attribute = H5Acreate2(object, name.c_str(), type, space, H5P_DEFAULT, H5P_DEFAULT);
    if (format_.variable_texts && !texts.empty()) {
      std::vector<const char*> pointers;
      for (const std::string& text : texts) pointers.push_back(text.c_str());
      H5Awrite(attribute, type, pointers.data());
    } else if (!texts.empty()) {
      std::string bytes;
      for (std::string text : texts) {
        text.resize(length, '\0');
        bytes += text;
      }
      H5Awrite(attribute, type, bytes.data());
    }
    H5Aclose(attribute);
    H5Tclose(type);
    H5Sclose(space);
  }

  void write_tensor(hid_t group, const KerasTensor& tensor) {
    const std::vector<hsize_t> sizes(tensor.shape.begin(), tensor.shape.end());
    const hid_t space =
        sizes.empty() ? H5Screate(H5S_SCALAR) : H5Screate_simple(static_cast<int>(sizes.size()), sizes.data(), nullptr);
    const hid_t creation = H5Pcreate(H5P_DATASET_CREATE);
    if (format_.deflated && !sizes.empty()) {
      H5Pset_chunk(creation, static_cast<int>(sizes.size()), sizes.data());
      H5Pset_deflate(creation, 6);
    }
    const hid_t dataset = H5Dcreate2(group, tensor.name.c_str(), format_.doubles ? H5T_IEEE_F64LE : H5T_IEEE_F32LE,
                                     space, links_, creation, H5P_DEFAULT);
    H5Dwrite(dataset, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, tensor.values.data());
    H5Dclose(dataset);
    H5Pclose(creation);
    H5Sclose(space);
  }

  KerasFormat format_;
  hid_t links_ = -1;
};

}  // namespace octet::weights::testing
