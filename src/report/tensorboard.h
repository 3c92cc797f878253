// TensorBoard event files: TFRecord framing around Event messages. Point `tensorboard --logdir` at the directory.
#pragma once
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

namespace octet::report {

class EventWriter {
 public:
  // Makes a new file events.out.tfevents.<time>.<host>.<pid>.<n> in `directory` (which is made, too). UserError.
  explicit EventWriter(const std::filesystem::path& directory);
  ~EventWriter();
  EventWriter(const EventWriter&) = delete;
  EventWriter& operator=(const EventWriter&) = delete;

  // A point of the curve `tag` ("train/loss"). Each call is one write to the file; UserError when it fails.
  void scalar(const std::string& tag, int64_t step, double value);
  // The distribution of `values`; those that are not finite are left out.
  void histogram(const std::string& tag, int64_t step, std::span<const float> values);
  // A picture: the bytes of a PNG or JPEG file, and its size in pixels.
  void image(const std::string& tag, int64_t step, std::string_view encoded, int width, int height);

  const std::filesystem::path& path() const { return path_; }

 private:
  void write_event(std::string_view event);

  std::filesystem::path path_;
  int file_ = -1;
};

}  // namespace octet::report
