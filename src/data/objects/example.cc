#include "data/objects/example.h"

#include <algorithm>
#include <map>
#include <protozero/pbf_reader.hpp>
#include <protozero/pbf_writer.hpp>
#include <vector>

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

constexpr const char* kCoordinates[] = {"target/coordinates_x1", "target/coordinates_y1", "target/coordinates_x2",
                                        "target/coordinates_y2"};
constexpr const char* kWorld[] = {"target/world_bbox_h",    "target/world_bbox_w", "target/world_bbox_l",
                                  "target/world_bbox_x",    "target/world_bbox_y", "target/world_bbox_z",
                                  "target/world_bbox_rot_y"};

struct Feature {
  std::vector<std::string> texts;
  std::vector<float> floats;
  std::vector<int64_t> integers;
};
using Features = std::map<std::string, Feature, std::less<>>;

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
        for (Reader list = as(Wire::length_delimited, reader).get_message(); list.next(kListValue);)
          feature.texts.push_back(as(Wire::length_delimited, list).get_bytes());
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

Features read_features(std::string_view bytes) {
  Features out;
  protozero::pbf_reader example(bytes.data(), bytes.size());
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

const Feature* find(const Features& features, const std::string& key) {
  const auto found = features.find(key);
  return found == features.end() ? nullptr : &found->second;
}

const std::string& only_text(const Features& features, const char* key) {
  const Feature* feature = find(features, key);
  if (!feature || feature->texts.size() != 1 || feature->texts[0].empty())
    throw DecodeError(str("has no '", key, "', one text"));
  return feature->texts[0];
}

int side(const Features& features, const char* key) {
  const Feature* feature = find(features, key);
  if (!feature || feature->integers.size() != 1) return 0;
  const int64_t pixels = feature->integers[0];
  return pixels >= 1 && pixels <= 1'000'000 ? static_cast<int>(pixels) : 0;
}

// One number for each object: floats, or integers where a converter wrote those. Empty where the key is missing, which
// `required` forbids.
std::vector<double> numbers(const Features& features, const char* key, size_t objects, bool required) {
  const Feature* feature = find(features, key);
  std::vector<double> out;
  if (feature) {
    out.assign(feature->floats.begin(), feature->floats.end());
    out.insert(out.end(), feature->integers.begin(), feature->integers.end());
  }
  if (out.empty() && (!required || objects == 0)) return {};
  if (out.size() != objects)
    throw DecodeError(
        str("has ", out.size(), " numbers in '", key, "', and ", objects, " objects in 'target/object_class'"));
  return out;
}

void add_feature(protozero::pbf_writer& features, const std::string& key, FeatureField kind, const std::string& list) {
  protozero::pbf_writer entry(features, kFeature);
  entry.add_string(kKey, key);
  protozero::pbf_writer value(entry, kValue);
  value.add_message(kind, list);
}

void add_texts(protozero::pbf_writer& features, const std::string& key, const std::vector<std::string>& texts) {
  std::string list;
  protozero::pbf_writer writer(list);
  for (const std::string& text : texts) writer.add_bytes(kListValue, text);
  add_feature(features, key, kBytesList, list);
}

void add_integers(protozero::pbf_writer& features, const std::string& key, const std::vector<int64_t>& values) {
  std::string list;
  protozero::pbf_writer writer(list);
  writer.add_packed_int64(kListValue, values.begin(), values.end());
  add_feature(features, key, kInt64List, list);
}

void add_floats(protozero::pbf_writer& features, const std::string& key, const std::vector<float>& values) {
  std::string list;
  protozero::pbf_writer writer(list);
  writer.add_packed_float(kListValue, values.begin(), values.end());
  add_feature(features, key, kFloatList, list);
}

Example example_of(const Features& features) {
  if (find(features, "frame/encoded"))
    throw DecodeError(
        "holds the image itself (frame/encoded), as records for SSD, RetinaNet and DSSD do; convert the data set anew "
        "with octet convert dataset");
  Example example{.id = only_text(features, "frame/id"), .annotation = {}};
  AnnotationFile& file = example.annotation;
  file.width = side(features, "frame/width");
  file.height = side(features, "frame/height");
  if (const Feature* classes = find(features, "target/object_class"))
    for (const std::string& name : classes->texts)
      file.objects.push_back({.class_name = name, .place = static_cast<int64_t>(file.objects.size()) + 1});
  const size_t count = file.objects.size();
  // `store`: what a number is of its object.
  const auto read = [&](const char* key, bool required, const auto& store) {
    const std::vector<double> values = numbers(features, key, count, required);
    for (size_t i = 0; i < values.size(); ++i) store(file.objects[i], values[i]);
  };
  float vision::Box::*const kSides[] = {&vision::Box::x0, &vision::Box::y0, &vision::Box::x1, &vision::Box::y1};
  for (size_t side = 0; side < 4; ++side)
    read(kCoordinates[side], true,
         [&](AnnotatedObject& object, double v) { object.box.*kSides[side] = static_cast<float>(v); });
  read("target/truncation", false,
       [](AnnotatedObject& object, double v) { object.kitti.truncation = static_cast<float>(v); });
  read("target/occlusion", false, [](AnnotatedObject& object, double v) {
    object.difficult = v != 0;
    if (std::abs(v) < 100) object.kitti.occlusion = static_cast<int>(v);
  });
  read("target/observation_angle", false,
       [](AnnotatedObject& object, double v) { object.kitti.angle = static_cast<float>(v); });
  for (size_t k = 0; k < std::size(kWorld); ++k)
    read(kWorld[k], false, [&](AnnotatedObject& object, double v) { object.kitti.world[k] = static_cast<float>(v); });
  read("target/is_crowd", false, [](AnnotatedObject& object, double v) { object.crowd = v != 0; });
  return example;
}

}  // namespace

Example parse_example(std::string_view bytes) {
  Features features;
  try {
    features = read_features(bytes);
  } catch (const protozero::exception& error) {
    throw DecodeError(str("is no tf.train.Example: ", error.what()));
  }
  return example_of(features);
}

std::string write_example(const Example& example) {
  std::string bytes;
  protozero::pbf_writer writer(bytes);
  {
    protozero::pbf_writer features(writer, kFeatures);
    const std::vector<AnnotatedObject>& objects = example.annotation.objects;
    // A value of each object.
    const auto of_all = [&]<typename T>(T, const auto& value) {
      std::vector<T> out;
      for (const AnnotatedObject& object : objects) out.push_back(value(object));
      return out;
    };
    add_texts(features, "frame/id", {example.id});
    add_integers(features, "frame/height", {example.annotation.height});
    add_integers(features, "frame/width", {example.annotation.width});
    add_texts(features, "target/object_class", of_all(std::string(), [](const auto& o) { return o.class_name; }));
    add_floats(features, "target/truncation", of_all(0.0f, [](const auto& o) { return o.kitti.truncation; }));
    add_integers(features, "target/occlusion", of_all(int64_t{0}, [](const auto& o) -> int64_t {
                   return o.kitti.occlusion == 0 && o.difficult ? 1 : o.kitti.occlusion;
                 }));
    add_floats(features, "target/observation_angle", of_all(0.0f, [](const auto& o) { return o.kitti.angle; }));
    add_floats(features, kCoordinates[0], of_all(0.0f, [](const auto& o) { return o.box.x0; }));
    add_floats(features, kCoordinates[1], of_all(0.0f, [](const auto& o) { return o.box.y0; }));
    add_floats(features, kCoordinates[2], of_all(0.0f, [](const auto& o) { return o.box.x1; }));
    add_floats(features, kCoordinates[3], of_all(0.0f, [](const auto& o) { return o.box.y1; }));
    for (size_t k = 0; k < std::size(kWorld); ++k)
      add_floats(features, kWorld[k], of_all(0.0f, [k](const auto& o) { return o.kitti.world[k]; }));
    if (std::any_of(objects.begin(), objects.end(), [](const auto& o) { return o.crowd; }))
      add_integers(features, "target/is_crowd", of_all(int64_t{0}, [](const auto& o) -> int64_t { return o.crowd; }));
  }
  return bytes;
}

}  // namespace octet::data
