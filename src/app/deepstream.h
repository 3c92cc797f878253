// The two files by which NVIDIA DeepStream's nvinfer runs an exported network: nvinfer_config.txt and labels.txt.
#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "data/augment.h"
#include "tasks/task.h"

namespace octet::app {

enum class NvinferPrecision { kFp32 = 0, kInt8 = 1, kFp16 = 2 };  // network-mode

struct DeepStreamModel {
  std::filesystem::path onnx;   // the file for TensorRT: for INT8 the one without quantizers
  std::filesystem::path cache;  // for INT8
  NvinferPrecision precision = NvinferPrecision::kFp32;
  int64_t batch = 1;
  tasks::Signature signature;
  std::vector<std::string> class_names;  // in the order of the labels
  data::TransformOptions transform;      // that of evaluation
};

struct DeepStreamFiles {
  std::string config, labels;         // nvinfer_config.txt, labels.txt
  std::vector<std::string> warnings;  // what nvinfer cannot do as Octet does it
};

// For a configuration in `folder`, from which its paths start. nvinfer computes scale * (pixel - offset[channel]) with
// one scale, and gives frames to the network stretched or, with the aspect ratio kept, at the top left: what the
// transform does otherwise is in the warnings. UserError (exit 2) where the scales of the channels differ by more than
// 5 %, sizes are open, or a class name cannot stand in labels.txt.
DeepStreamFiles deepstream_files(const DeepStreamModel& model, const tasks::Task& task,
                                 const std::filesystem::path& folder);

}  // namespace octet::app
