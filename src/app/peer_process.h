// A peer (ONNX Runtime, OpenVINO) in a process of its own: bench/rival.py of the source tree that this program
// was built from, run by the Python of the peers' environment, or what OCTET_RIVAL_SCRIPT and OCTET_PEERS_PYTHON name
// by absolute paths; never anything that is found in the current folder or above the program. It sleeps until it is
// asked for something.
#pragma once
#include <cstdio>
#include <span>
#include <string>
#include <vector>

namespace octet::app {

class PeerProcess {
 public:
  struct Options {
    std::string flag;   // that asks for the peer, for messages: "--compare"
    std::string peer;   // "onnxruntime" or "openvino"
    std::string model;  // ONNX file
    int threads = 1;
    int batch = 1;
    std::string mode;                      // of the script: "latency", "throughput" or "outputs"
    std::vector<std::string> environment;  // "NAME=VALUE", beside the environment of this process
  };
  // Starts it and waits until it is ready. UserError, saying what to do, when Python, the script or the package is
  // missing or the model is refused.
  explicit PeerProcess(const Options& options);
  ~PeerProcess();
  PeerProcess(const PeerProcess&) = delete;
  PeerProcess& operator=(const PeerProcess&) = delete;

  const std::string& name() const { return peer_; }
  const std::string& version() const { return version_; }
  // What it says of how it runs the model: "56 of 57 convolutions and products in INT8, rest f32".
  const std::string& detail() const { return detail_; }

  void send(const std::string& line, std::span<const float> values = {});
  // Without the end of the line; empty where the process has ended.
  std::string read_line();
  // UserError where the process ends before.
  void read(std::span<float> values);

 private:
  void start(const Options& options, const std::string& python, const std::string& script);
  void stop();

  std::string peer_, version_, detail_;
  int pid_ = -1;
  std::FILE* to_ = nullptr;
  std::FILE* from_ = nullptr;
};

}  // namespace octet::app
