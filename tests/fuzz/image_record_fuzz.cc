// Any bytes as a file of ImageNet's records: refused with a UserError, or a dataset of images with labels that have a
// name, of which those that are damaged say so. Byte 0 chooses whether the rest is the file, a record's payload, or
// what follows an Example in one; starts from Examples with small pictures, which it makes itself.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <random>
#include <string>

#include "base/error.h"
#include "base/records.h"
#include "data/dataset.h"
#include "data/features.h"
#include "data/imagenet_tfrecord.h"
#include "image_bytes.h"
#include "scratch_folder.h"

namespace {

using namespace octet;

std::string example(int64_t label, const data::Image& image, bool jpeg, const std::string& synset) {
  data::FeatureWriter features;
  features.add_integers(data::kLabelFeature, {label});
  if (!synset.empty()) features.add_text(data::kSynsetFeature, synset);
  features.add_text(data::kEncodedFeature, jpeg ? data::jpeg_bytes(image) : data::png_bytes(image));
  return features.example();
}

void use(const data::Dataset& dataset) {
  if (dataset.size() < 1 || dataset.class_names().empty()) std::abort();
  for (int64_t i = 0; i < dataset.size(); ++i) {
    const int label = dataset.truth(i).label;
    if (label < 0 || static_cast<size_t>(label) >= dataset.class_names().size() || dataset.name(i).empty())
      std::abort();
    try {
      const data::Sample sample = dataset.get(i);
      if (sample.truth.label != label || sample.image.channels != 3 ||
          sample.image.pixels.size() != sample.image.size() || !dataset.encoded(i))
        std::abort();
    } catch (const data::CorruptSample&) {
    }
  }
}

}  // namespace

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

// Now and then a new Example instead of the bytes given, or a file of some, whose checksums no mutation would find.
extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned seed) {
  std::minstd_rand rng(seed);
  if (size < 16 || rng() % 64 == 0) {
    const data::Image image = data::test_image(1 + rng() % 12, 1 + rng() % 12, rng() % 2 ? 3 : 1, rng() % 100);
    const char kChoice = static_cast<char>(rng() % 6);
    std::string input(1, kChoice);
    for (unsigned i = 0; i <= (kChoice % 3 == 0 ? rng() % 3 : 0); ++i) {
      const std::string one = example(rng() % 5, image, rng() % 2, rng() % 2 ? "n1" : "");
      input += kChoice % 3 == 0 ? framed_record(one) : one;
    }
    size = std::min(input.size(), max_size);
    std::copy_n(input.begin(), size, data);
  }
  return LLVMFuzzerMutate(data, size, max_size);
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  const int choice = data[0];
  static const std::string whole = example(1, data::test_image(3, 4, 3), false, "n1");
  static const testing::ScratchFolder folder;
  const auto path = folder.write("a.tfrecord", choice % 3 == 0   ? bytes
                                               : choice % 3 == 1 ? framed_record(whole) + framed_record(bytes)
                                                                 : framed_record(whole + bytes));
  try {
    use(*data::open_dataset(
        {.format = "imagenet_tfrecord", .path = path, .channels = 3, .label_offset = choice / 3 % 2}));
  } catch (const UserError&) {
  }
  return 0;
}
