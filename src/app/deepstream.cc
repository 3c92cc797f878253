#include "app/deepstream.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "base/error.h"
#include "data/network_input.h"
#include "tasks/image_graph.h"

namespace octet::app {
namespace {

namespace fs = std::filesystem;
using Type = tasks::NvinferReading::Type;

std::string ten_digits(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.10g", value);
  return text;
}

template <typename Items, typename Text>
std::string joined(const Items& items, Text text) {
  std::string out;
  for (const auto& item : items) out += (out.empty() ? "" : ";") + std::string(text(item));
  return out;
}

// nvinfer takes paths from the folder of its configuration.
std::string seen_from(const fs::path& folder, const fs::path& file) {
  const fs::path from = fs::absolute(folder.empty() ? fs::path(".") : folder).lexically_normal();
  return fs::absolute(file).lexically_normal().lexically_relative(from).string();
}

struct Normalization {
  double scale = 1.0 / 255;     // net-scale-factor
  std::vector<double> offsets;  // in pixels of 0 .. 255; empty: all 0
  std::string warning;
};

// (x / 255 - mean) / std = (x - 255 mean) / (255 std)
Normalization normalization_of(const data::TransformOptions& transform) {
  Normalization out;
  const std::vector<double> std = transform.std.empty() ? std::vector<double>{1} : transform.std;
  double mean_std = 0;
  for (const double s : std) mean_std += s / static_cast<double>(std.size());
  double distance = 0;
  for (const double s : std) distance = std::max(distance, std::abs(s / mean_std - 1));
  char percent[32];
  std::snprintf(percent, sizeof percent, "%.1f %%", 100 * distance);
  if (distance > 0.05)
    fail_usage("--gen_ds_config: data.std differs by ", percent,
               " between channels, and nvinfer scales all channels alike; train with one value for all channels");
  if (distance > 1e-9)
    out.warning =
        str("nvinfer scales all channels alike: net-scale-factor is of the mean of data.std, which is off by up to ",
            percent, " in a channel");
  out.scale = 1 / (255 * mean_std);
  if (std::any_of(transform.mean.begin(), transform.mean.end(), [](double m) { return m != 0; }))
    for (const double m : transform.mean) out.offsets.push_back(255 * m);
  return out;
}

std::string resize_warning(const data::TransformOptions& transform) {
  if (transform.mode == data::ResizeMode::kCenterCrop)
    return "the experiment cuts the input from the middle of the resized image, nvinfer stretches the whole frame";
  if (transform.central_fraction < 1)
    return "the experiment takes the middle of the image (data.central_fraction), nvinfer stretches the whole frame";
  if (transform.mode == data::ResizeMode::kNone)
    return "the experiment takes images of the network's size only, nvinfer stretches every frame to it";
  if (transform.preprocessing && transform.preprocessing->moves_pixels())
    return "the experiment crops, scales or pads images (data.preprocessing), nvinfer stretches the whole "
           "frame";
  return {};
}

// Detectors: a line each. Classifiers: one line, with semicolons.
std::string labels_text(const std::vector<std::string>& names, int64_t classes, bool one_line) {
  std::string out;
  for (int64_t c = 0; c < classes; ++c) {
    const std::string name =
        c < std::ssize(names) ? names[static_cast<size_t>(c)] : std::to_string(c);  // as Octet calls it, too
    if (name.empty() || name.find_first_of(";\r\n") != std::string::npos)
      fail_usage("--gen_ds_config: the class '", name,
                 "' cannot stand in labels.txt: nvinfer splits it at semicolons and line breaks");
    out += (one_line && c > 0 ? ";" : "") + name + (one_line ? "" : "\n");
  }
  return one_line ? out + "\n" : out;
}

std::string precision_suffix(NvinferPrecision precision) {
  switch (precision) {
    case NvinferPrecision::kFp32:
      return "fp32";
    case NvinferPrecision::kInt8:
      return "int8";
    case NvinferPrecision::kFp16:
      return "fp16";
  }
  return {};
}

}  // namespace

DeepStreamFiles deepstream_files(const DeepStreamModel& model, const tasks::Task& task, const fs::path& folder) {
  const data::NetworkInput input = tasks::image_input(model.signature);
  if (input.channels < 1 || input.height < 1 || input.width < 1)
    fail_usage("--gen_ds_config: the network leaves the size of its images open; nvinfer must know it");
  const tasks::NvinferReading reading = task.nvinfer(model.signature);
  const int64_t classes = task.classes(model.signature);
  if (classes < 1) fail_usage("--gen_ds_config: the network leaves its number of classes open");
  const Normalization normalization = normalization_of(model.transform);

  std::string config = "# By octet export. Every key is explained in DeepStream's guide, \"Gst-nvinfer\".\n";
  DeepStreamFiles files;
  for (const std::string& warning : {normalization.warning, resize_warning(model.transform)})
    if (!warning.empty()) files.warnings.push_back(warning);
  files.warnings.insert(files.warnings.end(), reading.remarks.begin(), reading.remarks.end());
  for (const std::string& warning : files.warnings) config += "# Mind: " + warning + ".\n";

  const auto key = [&](const std::string& name, const std::string& value) { config += name + "=" + value + "\n"; };
  config += "[property]\n";
  key("gpu-id", "0");
  key("gie-unique-id", "1");
  key("process-mode", "1");
  key("net-scale-factor", ten_digits(normalization.scale));
  if (!normalization.offsets.empty()) {
    std::vector<double> offsets = normalization.offsets;
    offsets.resize(static_cast<size_t>(input.channels), offsets.back());
    key("offsets", joined(offsets, ten_digits));
  }
  key("model-color-format", input.channels == 1 ? "2" : model.transform.order == data::ChannelOrder::kBgr ? "1" : "0");
  key("maintain-aspect-ratio", "0");
  key("infer-dims", str(input.channels, ";", input.height, ";", input.width));  // in this order for NHWC, too
  key("network-input-order", input.nhwc ? "1" : "0");
  const std::string onnx = seen_from(folder, model.onnx);
  key("onnx-file", onnx);
  key("model-engine-file", str(onnx, "_b", model.batch, "_gpu0_", precision_suffix(model.precision), ".engine"));
  if (model.precision == NvinferPrecision::kInt8) key("int8-calib-file", seen_from(folder, model.cache));
  key("labelfile-path", "labels.txt");
  key("batch-size", str(model.batch));
  key("network-mode", str(static_cast<int>(model.precision)));
  key("network-type", str(static_cast<int>(reading.type)));
  if (reading.type == Type::kDetector) key("num-detected-classes", str(classes));
  key("output-blob-names", joined(reading.outputs, [](const std::string& name) { return name; }));
  for (const auto& [name, value] : reading.property) key(name, value);
  for (size_t c = 0; c < reading.classes.size(); ++c) {
    config += str("\n[class-attrs-", reading.classes.size() == 1 ? "all" : str(c), "]\n");
    for (const auto& [name, value] : reading.classes[c]) key(name, value);
  }
  files.config = config;
  files.labels = labels_text(model.class_names, classes, reading.type == Type::kClassifier);
  return files;
}

}  // namespace octet::app
