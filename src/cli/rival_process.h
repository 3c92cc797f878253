// A rival (ONNX Runtime, OpenVINO) in a process of its own: bench/rival.py of the source tree, run by the Python of the
// peers' environment. It waits between its turns, so that engine and rival can be measured interleaved.
#pragma once
#include <cstdio>
#include <string>
#include <vector>

namespace octet::cli {

class RivalProcess {
 public:
  struct Options {
    std::string peer;   // "onnxruntime" or "openvino"
    std::string model;  // ONNX file
    int threads = 1;
    int batch = 1;
  };
  // Starts it and waits until it is ready. UserError, saying what to do, when Python, the script or the package is missing
  // or the model is refused.
  explicit RivalProcess(const Options& options);
  ~RivalProcess();
  RivalProcess(const RivalProcess&) = delete;
  RivalProcess& operator=(const RivalProcess&) = delete;

  const std::string& version() const { return version_; }
  // Times of `count` runs in ms, after a short warm-up of its own.
  std::vector<double> run(int count);

 private:
  std::string read_line();

  std::string peer_, version_;
  int pid_ = -1;
  std::FILE* to_ = nullptr;
  std::FILE* from_ = nullptr;
};

}  // namespace octet::cli
