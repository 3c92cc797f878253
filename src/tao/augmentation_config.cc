#include "tao/blocks.h"

namespace octet::tao {
namespace {

Message preprocessing() {
  constexpr const char* kOtherNetworks = "a field of FasterRCNN; the input has one size";
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
  m.integer("output_image_min").range(0).unused(kOtherNetworks, "0").means("Length of the shorter side.");
  m.integer("output_image_max").range(0).unused(kOtherNetworks, "0").means("Greatest length of the longer side.");
  m.flag("enable_auto_resize")
      .key("data.preprocessing.enable_auto_resize")
      .means("Resize images to the input while they are loaded.");
  m.integer("output_image_channel")
      .range(1, 64)
      .otherwise("3")
      .key("model.input[0]")
      .means("Channels of the network's input: 3 (RGB) or 1 (gray).");
  for (const auto& [name, meaning] :
       {std::pair("crop_left", "First column of the part that is used."),
        std::pair("crop_top", "First row of the part that is used."),
        std::pair("crop_right", "Column behind the part that is used; 0: the image's width."),
        std::pair("crop_bottom", "Row below the part that is used; 0: the image's height.")})
    m.integer(name).range(0).key(std::string("data.preprocessing.") + name).means(meaning);
  for (const auto& [name, meaning] :
       {std::pair("min_bbox_width", "Narrower boxes (in pixels of the input) are left out."),
        std::pair("min_bbox_height", "Lower boxes are left out."),
        std::pair("scale_width", "Factor on the width after the crop; 0: none."),
        std::pair("scale_height", "Factor on the height after the crop; 0: none.")})
    m.number(name).range(0).key(std::string("data.preprocessing.") + name).means(meaning);
  return m;
}

Message spatial_augmentation() {
  Message m;
  m.number("hflip_probability").range(0, 1).key(".hflip_probability").means("Probability of mirroring left and right.");
  m.number("vflip_probability")
      .range(0, 1)
      .key(".vflip_probability")
      .means("Probability of mirroring top and bottom (which TAO then never does).");
  m.number("zoom_min").range(0, 100).key(".zoom_min").means("Least factor on the size; 1: as it is.");
  m.number("zoom_max").range(0, 100).key(".zoom_max").means("Greatest factor on the size.");
  m.number("translate_max_x")
      .range(0, 16'384)
      .key(".translate_max_x")
      .means("Greatest shift to either side in pixels.");
  m.number("translate_max_y").range(0, 16'384).key(".translate_max_y").means("Greatest shift up or down in pixels.");
  m.number("rotate_rad_max").range(0, 6.3).key(".rotate_rad_max").means("Greatest rotation in radians.");
  m.number("rotate_probability").range(0, 1).key(".rotate_probability").means("Probability of a rotation.");
  return m;
}

Message color_augmentation() {
  Message m;
  m.number("color_shift_stddev")
      .range(0, 1)
      .key(".color_shift_stddev")
      .means("Half the standard deviation of the shift of brightness.");
  m.number("hue_rotation_max").range(0, 360).key(".hue_rotation_max").means("Greatest rotation of the hue in degrees.");
  m.number("saturation_shift_max").range(0, 1).key(".saturation_shift_max").means("Greatest change of the saturation.");
  m.number("contrast_scale_max").range(0, 1).key(".contrast_scale_max").means("Greatest change of the contrast.");
  m.number("contrast_center").range(0, 1).key(".contrast_center").means("Value that a change of contrast leaves.");
  return m;
}

}  // namespace

Message augmentation_config() {
  Message m;
  m.message("preprocessing", preprocessing()).means("Size of the input, and what is done to every image.");
  m.message("spatial_augmentation", spatial_augmentation())
      .key("data.augment.spatial_augmentation")
      .means("Random changes of place and size.");
  m.message("color_augmentation", color_augmentation())
      .key("data.augment.color_augmentation")
      .means("Random changes of color.");
  return m;
}

}  // namespace octet::tao
