// A peer that is measured in turns with the engine.
#pragma once
#include <vector>

#include "app/peer_process.h"

namespace octet::app {

class RivalProcess {
 public:
  struct Options {
    std::string peer;   // "onnxruntime" or "openvino"
    std::string model;  // ONNX file
    int threads = 1;
    int batch = 1;
    bool throughput = false;               // one inference on each thread, instead of one on all
    std::vector<std::string> environment;  // "NAME=VALUE", beside the environment of this process
  };
  // As PeerProcess.
  explicit RivalProcess(const Options& options);

  const std::string& version() const { return process_.version(); }
  const std::string& detail() const { return process_.detail(); }
  // One turn after a warm-up of its own; see Contender::turn.
  std::vector<double> turn(int runs, double milliseconds);

 private:
  PeerProcess process_;
};

}  // namespace octet::app
