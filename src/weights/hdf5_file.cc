#include "weights/hdf5_file.h"

#include <cstring>
#include <memory>
#include <utility>

#include "base/error.h"
#include "weights/hdf5_library.h"

namespace octet::weights {
namespace {

constexpr std::string_view kSignature("\x89HDF\r\n\x1a\n", 8);
constexpr size_t kMostTexts = 1'000'000, kLongestText = 1'000'000;
// A deflated chunk grows by no more than this.
constexpr uint64_t kMostCompression = 1100;

// An object of the library, closed at the end.
class Handle {
 public:
  Handle(hid_t id, herr_t (*close)(hid_t)) : id_(id), close_(close) {}
  Handle(Handle&& other) noexcept : id_(std::exchange(other.id_, -1)), close_(other.close_) {}
  ~Handle() {
    if (id_ >= 0) close_(id_);
  }
  explicit operator bool() const { return id_ >= 0; }
  operator hid_t() const { return id_; }  // NOLINT: to be given to the library

 private:
  hid_t id_;
  herr_t (*close_)(hid_t);
};

Handle opened(hid_t id, herr_t (*close)(hid_t), const auto&... what) {
  if (id < 0) fail(what..., " cannot be read");
  return {id, close};
}

ir::Shape shape_of(hid_t space, const std::string& what) {
  const int rank = hdf5().H5Sget_simple_extent_ndims(space);
  if (rank < 0 || rank > 8) fail(what, " has no shape");
  std::vector<hsize_t> sizes(static_cast<size_t>(rank));
  if (rank > 0 && hdf5().H5Sget_simple_extent_dims(space, sizes.data(), nullptr) < 0) fail(what, " has no shape");
  ir::Shape shape;
  for (const hsize_t size : sizes) {
    if (size > (uint64_t{1} << 40)) fail(what, " has the dimension ", size);
    shape.push_back(static_cast<int64_t>(size));
  }
  return shape;
}

std::vector<std::string> variable_texts(hid_t attribute, hid_t space, size_t count, const std::string& what) {
  const Handle type = opened(hdf5().H5Tcopy(hdf5().text), hdf5().H5Tclose, what);
  const Handle stored = opened(hdf5().H5Aget_type(attribute), hdf5().H5Tclose, what);
  hdf5().H5Tset_size(type, H5T_VARIABLE);
  hdf5().H5Tset_cset(type, hdf5().H5Tget_cset(stored));
  std::vector<char*> pointers(count, nullptr);
  if (hdf5().H5Aread(attribute, type, pointers.data()) < 0) fail(what, " cannot be read");
  std::vector<std::string> out;
  for (const char* text : pointers) out.emplace_back(text ? std::string(text, strnlen(text, kLongestText)) : "");
  hdf5().H5Dvlen_reclaim(type, space, H5P_DEFAULT, pointers.data());
  return out;
}

std::vector<std::string> fixed_texts(hid_t attribute, size_t count, size_t length, const std::string& what) {
  const Handle type = opened(hdf5().H5Tcopy(hdf5().text), hdf5().H5Tclose, what);
  const Handle stored = opened(hdf5().H5Aget_type(attribute), hdf5().H5Tclose, what);
  hdf5().H5Tset_size(type, length);
  hdf5().H5Tset_strpad(type, hdf5().H5Tget_strpad(stored));
  hdf5().H5Tset_cset(type, hdf5().H5Tget_cset(stored));
  std::vector<char> bytes(count * length);
  if (hdf5().H5Aread(attribute, type, bytes.data()) < 0) fail(what, " cannot be read");
  std::vector<std::string> out;
  for (size_t i = 0; i < count; ++i) {
    const char* text = bytes.data() + i * length;
    out.emplace_back(text, strnlen(text, length));
  }
  return out;
}

}  // namespace

bool is_hdf5(std::string_view bytes) {
  return bytes.starts_with(kSignature);
}

Hdf5File::Hdf5File(std::string_view bytes) : bytes_(bytes) {
  hdf5().H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);  // errors are told by UserError
  const Handle access = opened(hdf5().H5Pcreate(hdf5().file_access), hdf5().H5Pclose, "the file");
  // The whole file in memory, never written.
  hdf5().H5Pset_fapl_core(access, size_t{1} << 16, /*backing_store=*/false);
  hdf5().H5Pset_file_image(access, bytes_.data(), bytes_.size());
  file_ = hdf5().H5Fopen("in memory", Hdf5Library::kReadOnly, access);
  if (file_ < 0) fail("it is damaged or truncated");
}

Hdf5File::~Hdf5File() {
  hdf5().H5Fclose(file_);
}

bool Hdf5File::has(const std::string& path) const {
  // Each part has to be there before the next is asked for.
  for (size_t slash = path.find('/', 1);; slash = path.find('/', slash + 1)) {
    const std::string part = path.substr(0, slash);
    if (part != "/" && hdf5().H5Lexists(file_, part.c_str(), H5P_DEFAULT) <= 0) return false;
    if (slash == std::string::npos) return true;
  }
}

std::optional<std::vector<std::string>> Hdf5File::texts(const std::string& path, const std::string& name) const {
  const std::string what = str("attribute '", name, "' of '", path, "'");
  if (hdf5().H5Aexists_by_name(file_, path.c_str(), name.c_str(), H5P_DEFAULT) <= 0) return std::nullopt;
  const Handle attribute = opened(hdf5().H5Aopen_by_name(file_, path.c_str(), name.c_str(), H5P_DEFAULT, H5P_DEFAULT),
                                  hdf5().H5Aclose, what);
  const Handle type = opened(hdf5().H5Aget_type(attribute), hdf5().H5Tclose, what);
  const Handle space = opened(hdf5().H5Aget_space(attribute), hdf5().H5Sclose, what);
  if (hdf5().H5Tget_class(type) != H5T_STRING) {
    if (hdf5().H5Sget_simple_extent_npoints(space) == 0)
      return std::vector<std::string>{};  // numpy's empty list of float64
    fail(what, " is no list of texts");
  }
  const hssize_t count = hdf5().H5Sget_simple_extent_npoints(space);
  if (count < 0 || static_cast<size_t>(count) > kMostTexts) fail(what, " has ", count, " texts");
  if (hdf5().H5Tis_variable_str(type) > 0) return variable_texts(attribute, space, static_cast<size_t>(count), what);
  const size_t length = hdf5().H5Tget_size(type);
  if (length == 0 || length > kLongestText || static_cast<size_t>(count) > bytes_.size() / length)
    fail(what, " has ", count, " texts of ", length, " bytes");
  return fixed_texts(attribute, static_cast<size_t>(count), length, what);
}

ir::Tensor Hdf5File::floats(const std::string& path) const {
  const std::string what = str("'", path, "'");
  const Handle dataset = opened(hdf5().H5Dopen2(file_, path.c_str(), H5P_DEFAULT), hdf5().H5Dclose, what);
  const Handle type = opened(hdf5().H5Dget_type(dataset), hdf5().H5Tclose, what);
  const Handle space = opened(hdf5().H5Dget_space(dataset), hdf5().H5Sclose, what);
  if (hdf5().H5Tget_class(type) != H5T_FLOAT) fail(what, " holds no floating-point numbers");
  const ir::Shape shape = shape_of(space, what);
  uint64_t count = 1;
  for (const int64_t size : shape) {
    const auto most = kMostCompression * bytes_.size();
    if (size > 0 && count > most / static_cast<uint64_t>(size))
      fail(what, " has the shape ", ir::shape_string(shape), ", which is larger than the file");
    count *= static_cast<uint64_t>(size);
  }
  return ir::Tensor::made<float>(shape, [&](std::span<float> values) {
    if (!values.empty() &&
        hdf5().H5Dread(dataset, hdf5().native_float, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()) < 0)
      fail(what, " cannot be read");
  });
}

}  // namespace octet::weights
