#include "data/objects/example.h"

#include <algorithm>
#include <vector>

#include "base/error.h"
#include "data/features.h"
#include "data/image.h"

namespace octet::data {
namespace {

constexpr const char* kCoordinates[] = {"target/coordinates_x1", "target/coordinates_y1", "target/coordinates_x2",
                                        "target/coordinates_y2"};
constexpr const char* kWorld[] = {"target/world_bbox_h",    "target/world_bbox_w", "target/world_bbox_l",
                                  "target/world_bbox_x",    "target/world_bbox_y", "target/world_bbox_z",
                                  "target/world_bbox_rot_y"};

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

Example example_of(const Features& features) {
  if (find(features, "frame/encoded"))
    throw DecodeError(
        "holds the image itself (frame/encoded), as records for SSD, RetinaNet and DSSD do; convert the data set anew "
        "with octet convert dataset");
  Example example{.id = std::string(only_text(features, "frame/id")), .annotation = {}};
  AnnotationFile& file = example.annotation;
  file.width = side(features, "frame/width");
  file.height = side(features, "frame/height");
  if (const Feature* classes = find(features, "target/object_class"))
    for (const std::string_view name : classes->texts)
      file.objects.push_back({.class_name = std::string(name), .place = static_cast<int64_t>(file.objects.size()) + 1});
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
  return example_of(read_features(bytes));
}

std::string write_example(const Example& example) {
  FeatureWriter features;
  const std::vector<AnnotatedObject>& objects = example.annotation.objects;
  // A value of each object.
  const auto of_all = [&]<typename T>(T, const auto& value) {
    std::vector<T> out;
    for (const AnnotatedObject& object : objects) out.push_back(value(object));
    return out;
  };
  features.add_texts("frame/id", {example.id});
  features.add_integers("frame/height", {example.annotation.height});
  features.add_integers("frame/width", {example.annotation.width});
  features.add_texts("target/object_class", of_all(std::string(), [](const auto& o) { return o.class_name; }));
  features.add_floats("target/truncation", of_all(0.0f, [](const auto& o) { return o.kitti.truncation; }));
  features.add_integers("target/occlusion", of_all(int64_t{0}, [](const auto& o) -> int64_t {
                          return o.kitti.occlusion == 0 && o.difficult ? 1 : o.kitti.occlusion;
                        }));
  features.add_floats("target/observation_angle", of_all(0.0f, [](const auto& o) { return o.kitti.angle; }));
  features.add_floats(kCoordinates[0], of_all(0.0f, [](const auto& o) { return o.box.x0; }));
  features.add_floats(kCoordinates[1], of_all(0.0f, [](const auto& o) { return o.box.y0; }));
  features.add_floats(kCoordinates[2], of_all(0.0f, [](const auto& o) { return o.box.x1; }));
  features.add_floats(kCoordinates[3], of_all(0.0f, [](const auto& o) { return o.box.y1; }));
  for (size_t k = 0; k < std::size(kWorld); ++k)
    features.add_floats(kWorld[k], of_all(0.0f, [k](const auto& o) { return o.kitti.world[k]; }));
  if (std::any_of(objects.begin(), objects.end(), [](const auto& o) { return o.crowd; }))
    features.add_integers("target/is_crowd", of_all(int64_t{0}, [](const auto& o) -> int64_t { return o.crowd; }));
  return features.example();
}

}  // namespace octet::data
