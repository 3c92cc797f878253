// A test with a folder in which it puts small pictures and texts.
#pragma once
#include <gmock/gmock.h>

#include "data/image_write.h"
#include "image_files.h"

namespace octet::data {

class ObjectFolderTest : public DirectoryTest {
 protected:
  void picture(const std::string& name, int height = 6, int width = 8) {
    std::filesystem::create_directories((directory_ / name).parent_path());
    write_png(directory_ / name, test_image(height, width, 3));
  }
  // A line of KITTI's labels.
  static std::string kitti(const std::string& name, const std::string& box) {
    return name + " 0.0 0 0.0 " + box + " 0 0 0 0 0 0 0\n";
  }
  static std::vector<vision::Object> objects(const Dataset& dataset, int64_t image) {
    return dataset.truth(image).objects;
  }
  // The names of the objects' classes.
  static std::vector<std::string> classes(const Dataset& dataset, int64_t image) {
    std::vector<std::string> out;
    for (const vision::Object& object : dataset.truth(image).objects)
      out.push_back(dataset.class_names().at(static_cast<size_t>(object.label)));
    return out;
  }
};

// What a parser says of a text; empty where nothing is wrong.
template <typename Parse>
std::string decode_error(Parse&& parse) {
  try {
    parse();
  } catch (const DecodeError& error) {
    return error.what();
  }
  return {};
}

}  // namespace octet::data
