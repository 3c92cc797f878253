// What NVIDIA DeepStream's nvinfer must be told to read the outputs of a network as its task does: keys and values of
// its configuration file, as the section "Gst-nvinfer" of DeepStream's guide names them.
#pragma once
#include <string>
#include <utility>
#include <vector>

namespace octet::tasks {

struct NvinferReading {
  using Keys = std::vector<std::pair<std::string, std::string>>;
  enum class Type { kDetector = 0, kClassifier = 1, kRaw = 100 };  // network-type; raw: outputs are handed on

  Type type = Type::kRaw;
  std::vector<std::string> outputs;  // output-blob-names
  Keys property;                     // further keys of [property]: cluster-mode, classifier-threshold ...
  std::vector<Keys> classes;         // of detectors: [class-attrs-0] ...; one for each class, or one for all
  std::vector<std::string> remarks;  // what nvinfer does otherwise than the task, a sentence each
};

}  // namespace octet::tasks
