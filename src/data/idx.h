// IDX, the format of MNIST and Fashion-MNIST: a big-endian header (two zero bytes, type, number of dimensions, sizes)
// and the values. Only unsigned bytes, the one type in use for images.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "data/dataset.h"

namespace octet::data {

struct IdxArray {
  std::vector<int64_t> sizes;  // 1 to 4 dimensions, outermost first
  std::string values;          // product of sizes bytes
};

constexpr size_t kMaxIdxBytes = size_t{4} << 30;

// `bytes` of a plain or gzip file; `name` is for messages. The header is read first, and unpacking stops one byte after
// what it promises. UserError for anything that is not exactly one whole array, and for one of more than `max_size`
// bytes.
IdxArray parse_idx(std::string_view bytes, const std::string& name, size_t max_size = kMaxIdxBytes);

// The two arrays as a dataset: images N x H x W, labels N (or none). UserError where they do not fit together.
std::unique_ptr<Dataset> make_idx_dataset(IdxArray images, std::string images_name, std::optional<IdxArray> labels,
                                          const std::string& labels_name, const DatasetOptions& options);

// See DatasetOptions::format.
std::unique_ptr<Dataset> open_idx(const DatasetOptions& options);

}  // namespace octet::data
