#include "data/scenes.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include "base/error.h"
#include "base/files.h"
#include "data/annotation_file.h"
#include "data/counter_rng.h"
#include "data/image_write.h"
#include "data/resize.h"

namespace octet::data {
namespace {

constexpr uint64_t kSceneStream = 0x7363656e65;
constexpr int kOpaque = 48;   // a gray value from which an object's pixel hides the ground; below it shines through
constexpr int kVisible = 24;  // the least gray value that counts for the box
constexpr int kTries = 20;    // places looked at for an object before it is left out
constexpr int kNoise = 12;    // greatest change of a background's pixel

using Color = std::array<int, 3>;

void check_options(const SceneOptions& o) {
  if (o.width < 8 || o.height < 8 || o.width > 16384 || o.height > 16384)
    fail_usage("scenes of ", o.width, " x ", o.height, " pixels, expected 8 x 8 to 16384 x 16384");
  if (o.min_objects < 0 || o.max_objects < o.min_objects || o.max_objects > 1000)
    fail_usage("scenes of ", o.min_objects, " to ", o.max_objects, " objects, expected 0 to 1000");
  if (o.min_side < 4 || o.max_side < o.min_side || o.max_side > std::min(o.width, o.height))
    fail_usage("objects of ", o.min_side, " to ", o.max_side, " pixels, expected 4 to the scene's shorter side, ",
               std::min(o.width, o.height));
  if (!(o.max_overlap >= 0 && o.max_overlap <= 1)) fail_usage("max_overlap ", o.max_overlap, ", expected 0 to 1");
}

Image background(const SceneOptions& o, CounterRng& random) {
  Image field{.height = 3, .width = 5, .channels = 3, .pixels = std::vector<uint8_t>(3 * 5 * 3)};
  for (uint8_t& value : field.pixels) value = static_cast<uint8_t>(40 + random.below(140));
  Image ground = resize_bilinear(field, o.height, o.width);
  for (uint8_t& value : ground.pixels)
    value = static_cast<uint8_t>(std::clamp<int64_t>(value + random.below(2 * kNoise + 1) - kNoise, 0, 255));
  return ground;
}

// Gray is taken for brightness; color pictures keep their colors.
void paint(Image& scene, const Image& picture, int left, int top, const Color& tint) {
  for (int y = 0; y < picture.height; ++y) {
    const uint8_t* in = picture.row(y);
    uint8_t* out = scene.row(top + y) + static_cast<ptrdiff_t>(left) * 3;
    for (int x = 0; x < picture.width; ++x, in += picture.channels, out += 3) {
      const int brightest = *std::max_element(in, in + picture.channels);
      const int alpha = std::min(brightest, kOpaque);
      for (int c = 0; c < 3; ++c) {
        const int value = picture.channels == 3 ? in[c] : in[0] * tint[static_cast<size_t>(c)] / 255;
        out[c] = static_cast<uint8_t>((out[c] * (kOpaque - alpha) + value * alpha + kOpaque / 2) / kOpaque);
      }
    }
  }
}

// Around the pixels that are seen; nothing where none is.
std::optional<vision::Box> visible_box(const Image& picture) {
  int x0 = picture.width, y0 = picture.height, x1 = 0, y1 = 0;
  for (int y = 0; y < picture.height; ++y) {
    const uint8_t* in = picture.row(y);
    for (int x = 0; x < picture.width; ++x, in += picture.channels) {
      if (*std::max_element(in, in + picture.channels) < kVisible) continue;
      x0 = std::min(x0, x), x1 = std::max(x1, x + 1), y0 = std::min(y0, y), y1 = std::max(y1, y + 1);
    }
  }
  if (x0 >= x1) return std::nullopt;
  return vision::Box{static_cast<float>(x0), static_cast<float>(y0), static_cast<float>(x1), static_cast<float>(y1)};
}

class SceneDataset : public Dataset {
 public:
  SceneDataset(const Dataset& pictures, const SceneOptions& options, int64_t count)
      : pictures_(pictures), options_(options), count_(count) {
    class_names_ = pictures.class_names();
  }
  int64_t size() const override { return count_; }
  Sample get(int64_t index) const override {
    Scene scene = make_scene(pictures_, options_, index);
    return {std::move(scene.image), {.label = -1, .objects = std::move(scene.objects)}};
  }
  Annotation truth(int64_t index) const override { return get(index).truth; }
  std::string name(int64_t index) const override { return str("scene ", index); }
  uint64_t content_hash() const override {
    const SceneOptions& o = options_;
    return hash64(str(count_, ' ', o.width, ' ', o.height, ' ', o.min_objects, ' ', o.max_objects, ' ', o.min_side, ' ',
                      o.max_side, ' ', o.max_overlap, ' ', o.seed),
                  pictures_.content_hash());
  }

 private:
  const Dataset& pictures_;
  SceneOptions options_;
  int64_t count_;
};

// "000042": sorts by number.
std::string scene_name(int64_t index) {
  const std::string digits = std::to_string(index);
  return std::string(digits.size() < 6 ? 6 - digits.size() : 0, '0') + digits;
}

}  // namespace

std::unique_ptr<Dataset> scene_dataset(const Dataset& pictures, const SceneOptions& options, int64_t count) {
  return std::make_unique<SceneDataset>(pictures, options, count);
}

void write_scenes(const Dataset& pictures, const SceneOptions& options,
                  const std::vector<std::pair<std::string, int64_t>>& splits, const std::filesystem::path& folder,
                  int64_t first, const std::function<void(int64_t)>& progress) {
  for (const char* part : {"", "JPEGImages", "Annotations", "ImageSets/Main"})
    std::filesystem::create_directories(folder / part);
  int64_t index = first;
  for (const auto& [split, count] : splits) {
    std::string list;
    for (const int64_t end = index + count; index < end; ++index) {
      const Scene scene = make_scene(pictures, options, index);
      const std::string name = scene_name(index);
      AnnotationFile annotation{.width = options.width, .height = options.height, .objects = {}};
      for (const vision::Object& object : scene.objects)
        annotation.objects.push_back(
            {.class_name = pictures.class_names().at(static_cast<size_t>(object.label)), .box = object.box});
      write_png(folder / "JPEGImages" / (name + ".png"), scene.image);
      write_file_atomically(folder / "Annotations" / (name + ".xml"), write_voc(annotation, name + ".png"));
      list += name + "\n";
      if (progress) progress(index + 1 - first);
    }
    write_file_atomically(folder / "ImageSets/Main" / (split + ".txt"), list);
  }
}

Scene make_scene(const Dataset& pictures, const SceneOptions& options, int64_t index) {
  check_options(options);
  if (!pictures.labeled()) fail_usage("scenes need pictures with labels");
  CounterRng random(options.seed, kSceneStream, static_cast<uint64_t>(index));
  Scene scene{.image = background(options, random)};
  std::vector<vision::Box> taken;
  const int64_t count = options.min_objects + random.below(options.max_objects - options.min_objects + 1);
  for (int64_t n = 0; n < count; ++n) {
    const int64_t chosen = random.below(pictures.size());
    const int side = options.min_side + static_cast<int>(random.below(options.max_side - options.min_side + 1));
    const Color tint{static_cast<int>(90 + random.below(166)), static_cast<int>(90 + random.below(166)),
                     static_cast<int>(90 + random.below(166))};
    std::optional<vision::Box> place;
    for (int attempt = 0; attempt < kTries && !place; ++attempt) {
      const float left = static_cast<float>(random.below(options.width - side + 1));
      const float top = static_cast<float>(random.below(options.height - side + 1));
      const vision::Box box{left, top, left + static_cast<float>(side), top + static_cast<float>(side)};
      if (std::all_of(taken.begin(), taken.end(),
                      [&](const vision::Box& b) { return iou(b, box) <= options.max_overlap; }))
        place = box;
    }
    if (!place) continue;
    const Sample sample = pictures.get(chosen);
    const Image picture = resize_bilinear(sample.image, side, side);
    const std::optional<vision::Box> seen = visible_box(picture);
    if (!seen) continue;
    paint(scene.image, picture, static_cast<int>(place->x0), static_cast<int>(place->y0), tint);
    taken.push_back(*place);
    scene.objects.push_back(
        {.box = {place->x0 + seen->x0, place->y0 + seen->y0, place->x0 + seen->x1, place->y0 + seen->y1},
         .label = sample.truth.label});
    scene.pictures.push_back(chosen);
  }
  return scene;
}

}  // namespace octet::data
