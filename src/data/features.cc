#include "data/features.h"

#include <protozero/pbf_reader.hpp>
#include <protozero/pbf_writer.hpp>
#include <utility>

#include "base/error.h"
#include "data/image.h"

namespace octet::data {
namespace {

// Field numbers of tensorflow.Example, Features, the entries of its map, Feature and its three lists.
enum ExampleField { kFeatures = 1 };
enum FeaturesField { kFeature = 1 };
enum EntryField { kKey = 1, kValue = 2 };
enum FeatureField { kBytesList = 1, kFloatList = 2, kInt64List = 3 };
enum ListField { kListValue = 1 };

using Wire = protozero::pbf_wire_type;

// protozero only asserts that a field is written as the type that it is read as.
protozero::pbf_reader& as(Wire type, protozero::pbf_reader& reader) {
  if (!reader.has_wire_type(type))
    throw DecodeError(str("is no tf.train.Example: field ", reader.tag(), " is written as another type"));
  return reader;
}

// Lists of numbers are packed, unless an old writer made them.
template <typename T, typename Packed, typename Single>
void read_list(protozero::pbf_reader list, std::vector<T>& out, Packed packed, Single single, Wire type) {
  while (list.next(kListValue)) {
    if (list.has_wire_type(Wire::length_delimited)) {
      const auto range = (list.*packed)();
      out.insert(out.end(), range.begin(), range.end());
    } else {
      out.push_back((as(type, list).*single)());
    }
  }
}

Feature read_feature(protozero::pbf_reader reader) {
  using Reader = protozero::pbf_reader;
  Feature feature;
  while (reader.next()) {
    switch (reader.tag()) {
      case kBytesList:
        for (Reader list = as(Wire::length_delimited, reader).get_message(); list.next(kListValue);) {
          const protozero::data_view view = as(Wire::length_delimited, list).get_view();
          feature.texts.emplace_back(view.data(), view.size());
        }
        break;
      case kFloatList:
        read_list(as(Wire::length_delimited, reader).get_message(), feature.floats, &Reader::get_packed_float,
                  &Reader::get_float, Wire::fixed32);
        break;
      case kInt64List:
        read_list(as(Wire::length_delimited, reader).get_message(), feature.integers, &Reader::get_packed_int64,
                  &Reader::get_int64, Wire::varint);
        break;
      default:
        reader.skip();
    }
  }
  return feature;
}

Features read_map(protozero::pbf_reader example) {
  Features out;
  while (example.next(kFeatures)) {
    protozero::pbf_reader features = as(Wire::length_delimited, example).get_message();
    while (features.next(kFeature)) {
      protozero::pbf_reader entry = as(Wire::length_delimited, features).get_message();
      std::string key;
      Feature value;
      while (entry.next()) {
        if (entry.tag() == kKey)
          key = as(Wire::length_delimited, entry).get_string();
        else if (entry.tag() == kValue)
          value = read_feature(as(Wire::length_delimited, entry).get_message());
        else
          entry.skip();
      }
      out[key] = std::move(value);
    }
  }
  return out;
}

}  // namespace

Features read_features(std::string_view bytes) {
  try {
    return read_map({bytes.data(), bytes.size()});
  } catch (const protozero::exception& error) {
    throw DecodeError(str("is no tf.train.Example: ", error.what()));
  }
}

const Feature* find(const Features& features, std::string_view key) {
  const auto found = features.find(key);
  return found == features.end() ? nullptr : &found->second;
}

std::string_view only_text(const Features& features, std::string_view key) {
  const Feature* feature = find(features, key);
  if (!feature || feature->texts.size() != 1 || feature->texts[0].empty())
    throw DecodeError(str("has no '", key, "', one text"));
  return feature->texts[0];
}

int64_t only_integer(const Features& features, std::string_view key) {
  const Feature* feature = find(features, key);
  if (!feature || feature->integers.size() != 1) throw DecodeError(str("has no '", key, "', one integer"));
  return feature->integers[0];
}

void FeatureWriter::add(std::string_view key, int kind, const std::string& list) {
  protozero::pbf_writer features(features_);
  protozero::pbf_writer entry(features, kFeature);
  entry.add_string(kKey, key.data(), key.size());
  protozero::pbf_writer value(entry, kValue);
  value.add_message(static_cast<protozero::pbf_tag_type>(kind), list);
}

void FeatureWriter::add_texts(std::string_view key, const std::vector<std::string>& texts) {
  std::string list;
  protozero::pbf_writer writer(list);
  for (const std::string& text : texts) writer.add_bytes(kListValue, text);
  add(key, kBytesList, list);
}

void FeatureWriter::add_text(std::string_view key, std::string_view text) {
  std::string list;
  protozero::pbf_writer(list).add_bytes(kListValue, text.data(), text.size());
  add(key, kBytesList, list);
}

void FeatureWriter::add_integers(std::string_view key, const std::vector<int64_t>& values) {
  std::string list;
  protozero::pbf_writer writer(list);
  writer.add_packed_int64(kListValue, values.begin(), values.end());
  add(key, kInt64List, list);
}

void FeatureWriter::add_floats(std::string_view key, const std::vector<float>& values) {
  std::string list;
  protozero::pbf_writer writer(list);
  writer.add_packed_float(kListValue, values.begin(), values.end());
  add(key, kFloatList, list);
}

std::string FeatureWriter::example() const {
  std::string bytes;
  protozero::pbf_writer(bytes).add_message(kFeatures, features_);
  return bytes;
}

}  // namespace octet::data
