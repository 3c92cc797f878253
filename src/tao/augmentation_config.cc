#include "tao/blocks.h"

namespace octet::tao {
namespace {

Message preprocessing() {
  constexpr const char* kNoCrop = "images are resized as a whole";
  Message m;
  m.integer("output_image_width")
      .range(1, 16'384)
      .required()
      .key("model.input[2]")
      .means("Width of the network's input in pixels.");
  m.integer("output_image_height")
      .range(1, 16'384)
      .required()
      .key("model.input[1]")
      .means("Height of the network's input in pixels.");
  m.integer("output_image_min").range(0).unused(kNoCrop, "0").means("FasterRCNN: length of the shorter side.");
  m.integer("output_image_max").range(0).unused(kNoCrop, "0").means("FasterRCNN: greatest length of the longer side.");
  m.flag("enable_auto_resize")
      .unused("Octet always resizes images to the network's input", "true")
      .means("Resize images while they are loaded.");
  m.integer("output_image_channel")
      .range(1, 64)
      .otherwise("3")
      .key("model.input[0]")
      .means("Channels of the network's input: 3 (RGB) or 1 (gray).");
  for (const char* const side : {"left", "top", "right", "bottom"})
    m.integer(std::string("crop_") + side).range(0).unused(kNoCrop, "0").means("Border of the part that is used.");
  m.number("min_bbox_width").range(0).unused("boxes of all sizes are kept").means("Narrower boxes are left out.");
  m.number("min_bbox_height").range(0).unused("boxes of all sizes are kept").means("Lower boxes are left out.");
  m.number("scale_width").range(0).unused(kNoCrop, "0").means("Factor on the width after the crop; 0: none.");
  m.number("scale_height").range(0).unused(kNoCrop, "0").means("Factor on the height after the crop; 0: none.");
  return m;
}

Message spatial_augmentation() {
  constexpr const char* kNone = "Octet has no such change yet";
  Message m;
  m.number("hflip_probability").range(0, 1).unused(kNone).means("Probability of mirroring left and right.");
  m.number("vflip_probability")
      .range(0, 1)
      .unused(kNone, "0")
      .means("Probability of mirroring top and bottom (TAO reads it and never does it).");
  m.number("zoom_min").range(0, 100).unused(kNone, "1").means("Least factor on the size.");
  m.number("zoom_max").range(0, 100).unused(kNone, "1").means("Greatest factor on the size.");
  m.number("translate_max_x").range(0, 16'384).unused(kNone, "0").means("Greatest shift to either side in pixels.");
  m.number("translate_max_y").range(0, 16'384).unused(kNone, "0").means("Greatest shift up or down in pixels.");
  m.number("rotate_rad_max").range(0, 6.3).unused(kNone, "0").means("Greatest rotation in radians.");
  m.number("rotate_probability").range(0, 1).unused(kNone, "0").means("Probability of a rotation.");
  return m;
}

Message color_augmentation() {
  Message m;
  m.number("color_shift_stddev")
      .range(0, 1)
      .unused("brightness is not shifted", "0")
      .means("Half the standard deviation of the shift of brightness.");
  m.number("hue_rotation_max")
      .range(0, 360)
      .times(1.0 / 360)
      .key("data.augment.color.hue")
      .means("Greatest rotation of the hue in degrees.");
  m.number("saturation_shift_max")
      .range(0, 1)
      .key("data.augment.color.saturation")
      .means("Greatest change of the saturation.");
  m.number("contrast_scale_max")
      .range(0, 1)
      .key("data.augment.color.contrast")
      .means("Greatest change of the contrast; 0: none.");
  m.number("contrast_center")
      .range(0, 1)
      .unused("contrast changes about 0.5", "0.5")
      .means("Value that a change of contrast leaves as it is.");
  return m;
}

}  // namespace

Message augmentation_config() {
  Message m;
  m.message("preprocessing", preprocessing()).means("Size of the input, and what is done to every image.");
  m.message("spatial_augmentation", spatial_augmentation()).means("Random changes of place and size.");
  m.message("color_augmentation", color_augmentation()).means("Random changes of color.");
  return m;
}

}  // namespace octet::tao
