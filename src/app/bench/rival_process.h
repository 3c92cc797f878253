// A rival (ONNX Runtime, OpenVINO) in a process of its own: bench/rival.py of the source tree that this program
// was built from, run by the Python of the peers' environment, or what OCTET_RIVAL_SCRIPT and OCTET_PEERS_PYTHON name
// by absolute paths; never anything that is found in the current folder or above the program. It sleeps between its
// turns, so that engine and rival can be measured interleaved.
#pragma once
#include <cstdio>
#include <string>
#include <vector>

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
  // Starts it and waits until it is ready. UserError, saying what to do, when Python, the script or the package is
  // missing or the model is refused.
  explicit RivalProcess(const Options& options);
  ~RivalProcess();
  RivalProcess(const RivalProcess&) = delete;
  RivalProcess& operator=(const RivalProcess&) = delete;

  const std::string& version() const { return version_; }
  // What it says of how it runs the model: "56 of 57 convolutions and products in INT8, rest f32".
  const std::string& detail() const { return detail_; }
  // One turn after a warm-up of its own; see Contender::turn.
  std::vector<double> turn(int runs, double milliseconds);

 private:
  void start(const Options& options, const std::string& python, const std::string& script);
  void stop();
  std::string read_line();

  std::string peer_, version_, detail_;
  int pid_ = -1;
  std::FILE* to_ = nullptr;
  std::FILE* from_ = nullptr;
};

}  // namespace octet::app
