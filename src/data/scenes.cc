#include "data/scenes.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <optional>
#include <utility>

#include "base/error.h"
#include "base/files.h"
#include "data/counter_rng.h"
#include "data/resize.h"
#include "data/scene_ground.h"
#include "vision/mask.h"

namespace octet::data {
namespace {

constexpr uint64_t kSceneStream = 0x7363656e65;
// Keep the random numbers of the ground apart from those of the objects.
constexpr uint64_t kTextureStream = 0x74657874757265, kClutterStream = 0x636c7574746572;
constexpr int kOpaque = 48;   // a gray value from which an object's pixel hides the ground; below it shines through
constexpr int kVisible = 24;  // the least gray value that counts for the box
constexpr int kTries = 20;    // places looked at for an object before it is left out

using SceneColor = std::array<int, 3>;

void check_options(const SceneOptions& o) {
  if (o.width < 8 || o.height < 8 || o.width > 16384 || o.height > 16384)
    fail_usage("scenes of ", o.width, " x ", o.height, " pixels, expected 8 x 8 to 16384 x 16384");
  if (o.min_objects < 0 || o.max_objects < o.min_objects || o.max_objects > 1000)
    fail_usage("scenes of ", o.min_objects, " to ", o.max_objects, " objects, expected 0 to 1000");
  if (o.min_side < 4 || o.max_side < o.min_side || o.max_side > std::min(o.width, o.height))
    fail_usage("objects of ", o.min_side, " to ", o.max_side, " pixels, expected 4 to the scene's shorter side, ",
               std::min(o.width, o.height));
  if (!(o.max_overlap >= 0 && o.max_overlap <= 1)) fail_usage("max_overlap ", o.max_overlap, ", expected 0 to 1");
  if (!(o.min_seen >= 0 && o.min_seen <= 1)) fail_usage("min_seen ", o.min_seen, ", expected 0 to 1");
  if (o.clutter < 0 || o.clutter > 1000) fail_usage("scenes with ", o.clutter, " other shapes, expected 0 to 1000");
}

Image background(const SceneOptions& o, int64_t index, CounterRng& random) {
  Image ground = smooth_ground(o.height, o.width, random);
  if (o.textured) {
    CounterRng own(o.seed, kTextureStream, static_cast<uint64_t>(index));
    add_texture(ground, own);
  }
  if (o.clutter > 0) {
    CounterRng own(o.seed, kClutterStream, static_cast<uint64_t>(index));
    add_clutter(ground, static_cast<int>(own.below(o.clutter + 1)), o.min_side, o.max_side, own);
  }
  return ground;
}

// Gray is taken for brightness; color pictures keep their colors.
void paint(Image& scene, const Image& picture, int left, int top, const SceneColor& tint) {
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

bool is_visible(const uint8_t* pixel, int channels) {
  return *std::max_element(pixel, pixel + channels) >= kVisible;
}

// Around the pixels that are seen; nothing where none is.
std::optional<vision::Box> visible_box(const Image& picture) {
  int x0 = picture.width, y0 = picture.height, x1 = 0, y1 = 0;
  for (int y = 0; y < picture.height; ++y) {
    const uint8_t* in = picture.row(y);
    for (int x = 0; x < picture.width; ++x, in += picture.channels) {
      if (!is_visible(in, picture.channels)) continue;
      x0 = std::min(x0, x), x1 = std::max(x1, x + 1), y0 = std::min(y0, y), y1 = std::max(y1, y + 1);
    }
  }
  if (x0 >= x1) return std::nullopt;
  return vision::Box{static_cast<float>(x0), static_cast<float>(y0), static_cast<float>(x1), static_cast<float>(y1)};
}

// Whose each pixel of a scene is.
class Owners {
 public:
  Owners(int height, int width) : height_(height), width_(width), of_(static_cast<size_t>(height) * width, 0) {}

  // Of an object that is painted so: how much of any earlier one would be left, as the least share of its pixels.
  float least_left(const Image& picture, int left, int top) const {
    std::vector<int64_t> hidden(all_.size(), 0);
    for_each(picture, left, top, [&](size_t pixel) {
      if (of_[pixel] > 0) ++hidden[of_[pixel] - 1u];
    });
    float least = 1;
    for (size_t i = 0; i < all_.size(); ++i)
      if (hidden[i] > 0) least = std::min(least, share(seen_[i] - hidden[i], all_[i]));
    return least;
  }
  void add(const Image& picture, int left, int top) {
    all_.push_back(0);
    const auto owner = static_cast<uint16_t>(all_.size());
    for_each(picture, left, top, [&](size_t pixel) {
      if (of_[pixel] > 0) --seen_[of_[pixel] - 1u];
      of_[pixel] = owner;
      ++all_.back();
    });
    seen_.push_back(all_.back());
  }
  float seen(size_t object) const { return share(seen_[object], all_[object]); }
  vision::Mask mask(size_t object) const {
    std::vector<uint8_t> pixels(of_.size());
    for (size_t i = 0; i < pixels.size(); ++i) pixels[i] = of_[i] == object + 1;
    return vision::mask_of_pixels(pixels, height_, width_);
  }

 private:
  static float share(int64_t part, int64_t all) { return static_cast<float>(part) / static_cast<float>(all); }

  template <typename Action>
  void for_each(const Image& picture, int left, int top, const Action& action) const {
    for (int y = 0; y < picture.height; ++y) {
      const uint8_t* in = picture.row(y);
      const size_t row = static_cast<size_t>(top + y) * static_cast<size_t>(width_) + static_cast<size_t>(left);
      for (int x = 0; x < picture.width; ++x, in += picture.channels)
        if (is_visible(in, picture.channels)) action(row + static_cast<size_t>(x));
    }
  }

  int height_, width_;
  std::vector<uint16_t> of_;         // number of the object from 1 on; 0: the ground
  std::vector<int64_t> all_, seen_;  // pixels of each object
};

// Leaves out the objects that others hide entirely, and says of the others what is seen.
void keep_seen(Scene& scene, const Owners& owners, bool masks) {
  size_t kept = 0;
  for (size_t i = 0; i < scene.objects.size(); ++i) {
    if (!(owners.seen(i) > 0)) continue;
    if (masks) scene.objects[i].mask = std::make_shared<const vision::Mask>(owners.mask(i));
    scene.objects[kept] = std::move(scene.objects[i]);
    scene.pictures[kept++] = scene.pictures[i];
    scene.seen.push_back(owners.seen(i));
  }
  scene.objects.resize(kept);
  scene.pictures.resize(kept);
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
                      o.max_side, ' ', o.max_overlap, ' ', o.min_seen, ' ', o.textured, ' ', o.clutter, ' ', o.seed),
                  pictures_.content_hash());
  }

 private:
  const Dataset& pictures_;
  SceneOptions options_;
  int64_t count_;
};

}  // namespace

std::unique_ptr<Dataset> scene_dataset(const Dataset& pictures, const SceneOptions& options, int64_t count) {
  return std::make_unique<SceneDataset>(pictures, options, count);
}

Scene make_scene(const Dataset& pictures, const SceneOptions& options, int64_t index) {
  check_options(options);
  if (!pictures.labeled()) fail_usage("scenes need pictures with labels");
  CounterRng random(options.seed, kSceneStream, static_cast<uint64_t>(index));
  Scene scene{.image = background(options, index, random)};
  Owners owners(options.height, options.width);
  std::vector<vision::Box> taken;
  const int64_t count = options.min_objects + random.below(options.max_objects - options.min_objects + 1);
  for (int64_t n = 0; n < count; ++n) {
    const int64_t chosen = random.below(pictures.size());
    const int side = options.min_side + static_cast<int>(random.below(options.max_side - options.min_side + 1));
    const SceneColor tint{static_cast<int>(90 + random.below(166)), static_cast<int>(90 + random.below(166)),
                          static_cast<int>(90 + random.below(166))};
    const Sample sample = pictures.get(chosen);
    const Image picture = resize_bilinear(sample.image, side, side);
    std::optional<vision::Box> place;
    for (int attempt = 0; attempt < kTries && !place; ++attempt) {
      const int left = static_cast<int>(random.below(options.width - side + 1));
      const int top = static_cast<int>(random.below(options.height - side + 1));
      const vision::Box box{static_cast<float>(left), static_cast<float>(top), static_cast<float>(left + side),
                            static_cast<float>(top + side)};
      if (!std::all_of(taken.begin(), taken.end(),
                       [&](const vision::Box& b) { return iou(b, box) <= options.max_overlap; }))
        continue;
      if (options.min_seen <= 0 || owners.least_left(picture, left, top) >= options.min_seen) place = box;
    }
    if (!place) continue;
    const std::optional<vision::Box> seen = visible_box(picture);
    if (!seen) continue;
    paint(scene.image, picture, static_cast<int>(place->x0), static_cast<int>(place->y0), tint);
    owners.add(picture, static_cast<int>(place->x0), static_cast<int>(place->y0));
    taken.push_back(*place);
    scene.objects.push_back(
        {.box = {place->x0 + seen->x0, place->y0 + seen->y0, place->x0 + seen->x1, place->y0 + seen->y1},
         .label = sample.truth.label});
    scene.pictures.push_back(chosen);
  }
  keep_seen(scene, owners, options.masks);
  return scene;
}

}  // namespace octet::data
