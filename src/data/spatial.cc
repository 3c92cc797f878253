#include "data/spatial.h"

#include <cmath>
#include <numbers>

#include "schema/schema.h"

namespace octet::data {

void describe(schema::Section& s, PreprocessingOptions& p) {
  s.field("crop_left", p.crop_left).range(0, 1e6).unit("pixels").help("First column of the image that is used.");
  s.field("crop_top", p.crop_top).range(0, 1e6).unit("pixels").help("First row of the image that is used.");
  s.field("crop_right", p.crop_right)
      .range(0, 1e6)
      .unit("pixels")
      .help("The column behind the last one that is used; 0, for this and crop_bottom: the whole image.");
  s.field("crop_bottom", p.crop_bottom)
      .range(0, 1e6)
      .unit("pixels")
      .help("The row behind the last one that is used. Beyond the image it is black.");
  s.field("scale_width", p.scale_width)
      .range(0, 1000)
      .help(
          "Factor by which the width of what is cut is changed; it lies in the upper left corner of the input. 0, for "
          "both factors: as enable_auto_resize says.");
  s.field("scale_height", p.scale_height).range(0, 1000).help("The same for the height.");
  s.field("enable_auto_resize", p.enable_auto_resize)
      .help(
          "Resize what is cut to the network's input. Off (TAO's default): it keeps its size and lies in the upper "
          "left "
          "corner; what is beyond the input is cut off with its boxes, what is missing is black.");
  s.field("min_bbox_width", p.min_bbox_width)
      .range(0, 1e6)
      .unit("pixels of the input")
      .help("Objects of which less is left, when they are moved and cut to the input, are left out.");
  s.field("min_bbox_height", p.min_bbox_height)
      .range(0, 1e6)
      .unit("pixels of the input")
      .help("The same for the height.");
  s.field("min_visibility", p.min_visibility)
      .range(0, 1)
      .unit("share of the area")
      .help("Objects of whose box no more than this lies in the input are left out; 0: those of which nothing does.");
  s.rule("scale_width", [&p] {
    return (p.scale_width > 0) != (p.scale_height > 0) ? "needs scale_height, and the other way round" : "";
  });
  s.rule("crop_right",
         [&p] { return p.crop_right > 0 && p.crop_right <= p.crop_left ? "must be more than crop_left" : ""; });
  s.rule("crop_bottom",
         [&p] { return p.crop_bottom > 0 && p.crop_bottom <= p.crop_top ? "must be more than crop_top" : ""; });
  s.rule("crop_right", [&p] {
    const bool any = p.crop_left > 0 || p.crop_top > 0 || p.crop_right > 0 || p.crop_bottom > 0;
    return any && !p.crops() ? "and crop_bottom are needed with crop_left or crop_top" : "";
  });
}

Affine preprocessing_matrix(const PreprocessingOptions& p, int height, int width, int out_height, int out_width,
                            bool scale_first) {
  const Affine cut =
      p.crops() ? Affine::translation(-static_cast<double>(p.crop_left), -static_cast<double>(p.crop_top)) : Affine();
  if (p.scales()) {
    const Affine scale = Affine::scaling(p.scale_width, p.scale_height);
    return scale_first ? cut * scale : scale * cut;
  }
  if (!p.enable_auto_resize) return cut;
  const double cut_width = p.crops() ? static_cast<double>(p.crop_right - p.crop_left) : width;
  const double cut_height = p.crops() ? static_cast<double>(p.crop_bottom - p.crop_top) : height;
  return Affine::scaling(out_width / cut_width, out_height / cut_height) * cut;
}

void describe(schema::Section& s, SpatialOptions& o) {
  s.field("hflip_probability", o.hflip_probability).range(0, 1).help("Mirror left and right.");
  s.field("vflip_probability", o.vflip_probability)
      .range(0, 1)
      .help("Mirror top and bottom. (TAO has the key and does not use it.)");
  s.field("rotate_rad_max", o.rotate_rad_max)
      .range(0, std::numbers::pi)
      .unit("radians")
      .help("Rotate about the middle of the input by an angle from -rotate_rad_max to rotate_rad_max.");
  s.field("rotate_probability", o.rotate_probability).range(0, 1).help("Share of the images that are rotated.");
  s.field("zoom_min", o.zoom_min)
      .above(0, 100)
      .help("Smallest factor by which the image is enlarged; below 1 it shrinks, and lies anywhere in the input.");
  s.field("zoom_max", o.zoom_max)
      .above(0, 100)
      .help("Greatest factor by which the image is enlarged; the window that is seen lies anywhere in it.");
  s.field("translate_max_x", o.translate_max_x)
      .range(0, 16'384)
      .unit("pixels")
      .help("Move by a whole number of pixels from -translate_max_x to translate_max_x, at the end.");
  s.field("translate_max_y", o.translate_max_y).range(0, 16'384).unit("pixels").help("The same down and up.");
  s.rule("zoom_min", [&o] { return o.zoom_min > o.zoom_max ? "must be at most zoom_max" : ""; });
}

Affine SpatialChange::matrix(int height, int width) const {
  Affine m;
  if (hflip) m = Affine{.xx = -1, .x0 = static_cast<double>(width)} * m;
  if (vflip) m = Affine{.yy = -1, .y0 = static_cast<double>(height)} * m;
  if (radians != 0) m = Affine::rotation(radians, width / 2.0, height / 2.0) * m;
  if (zoom != 1) m = Affine::scaling(zoom, zoom) * Affine::translation(-zoom_x, -zoom_y) * m;
  return Affine::translation(translate_x, translate_y) * m;
}

SpatialChange choose_spatial(const SpatialOptions& o, int height, int width, bool tao_compatible, CounterRng& random) {
  const auto within = [&random](double max) {
    const auto most = static_cast<int64_t>(std::floor(max));
    return static_cast<int>(random.below(2 * most + 1) - most);
  };
  SpatialChange change;
  change.hflip = random.uniform() < o.hflip_probability;
  change.vflip = random.uniform() < o.vflip_probability && !tao_compatible;
  const bool rotated = random.uniform() < o.rotate_probability || tao_compatible;
  const double radians = random.uniform(-o.rotate_rad_max, o.rotate_rad_max);
  change.radians = rotated ? radians : 0;
  change.zoom = random.uniform(o.zoom_min, o.zoom_max);
  change.zoom_x = random.uniform(0, width - width / change.zoom);
  change.zoom_y = random.uniform(0, height - height / change.zoom);
  change.translate_x = within(o.translate_max_x);
  change.translate_y = within(o.translate_max_y);
  return change;
}

}  // namespace octet::data
