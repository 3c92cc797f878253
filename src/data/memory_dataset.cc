#include "data/memory_dataset.h"

#include <span>
#include <utility>

#include "base/error.h"
#include "base/files.h"

namespace octet::data {

MemoryDataset::MemoryDataset(Contents contents, int channels) : contents_(std::move(contents)), channels_(channels) {
  const size_t image_bytes = static_cast<size_t>(contents_.height) * contents_.width * contents_.channels;
  for (const Part& part : contents_.parts) {
    OCTET_CHECK(part.count == 0 || part.first + (part.count - 1) * part.stride + image_bytes <= part.bytes.size());
    size_ += part.count;
    content_hash_ = hash64(part.bytes, content_hash_);
  }
  OCTET_CHECK(contents_.labels.empty() || std::cmp_equal(contents_.labels.size(), size_));
  content_hash_ = hash64(std::as_bytes(std::span(contents_.labels)), content_hash_);
  class_names_ = contents_.class_names;
  if (channels_ == 0) channels_ = contents_.channels;
}

MemoryDataset::Place MemoryDataset::locate(int64_t index) const {
  OCTET_CHECK(index >= 0 && index < size_, "image ", index, " of ", size_);
  const Part* part = contents_.parts.data();
  for (; index >= part->count; ++part) index -= part->count;
  return {part, index};
}

Sample MemoryDataset::get(int64_t index) const {
  const Place place = locate(index);
  const int channels = contents_.channels;
  Image image{contents_.height, contents_.width, channels, {}};
  const char* in = place.part->bytes.data() + place.part->first + place.record * place.part->stride;
  if (channels == 1 || contents_.layout == PixelLayout::kInterleaved) {
    image.pixels.assign(in, in + image.size());
  } else {
    image.pixels.resize(image.size());
    const size_t plane = static_cast<size_t>(image.height) * image.width;
    for (int c = 0; c < channels; ++c)
      for (size_t i = 0; i < plane; ++i) image.pixels[i * channels + c] = static_cast<uint8_t>(in[c * plane + i]);
  }
  return {convert_channels(std::move(image), channels_), truth(index)};
}

Annotation MemoryDataset::truth(int64_t index) const {
  OCTET_CHECK(index >= 0 && index < size_, "image ", index, " of ", size_);
  return {.label = contents_.labels.empty() ? -1 : contents_.labels[static_cast<size_t>(index)], .objects = {}};
}

std::string MemoryDataset::name(int64_t index) const {
  const Place place = locate(index);
  return str(place.part->file, "[", place.record, "]");
}

}  // namespace octet::data
