// The handles of the C interface of the engine.
#pragma once
#include <octet/engine.h>
#include <octet/octet.h>

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "engine/c_interface.h"

struct octet_engine {
  octet::Engine engine;
  // What octet_engine_model_info() gave out, made by its first call.
  struct Info {
    octet::ModelInfo model;
    std::vector<const char*> classes;
    std::vector<double> mean, std;  // of every channel
  };
  mutable std::mutex mutex;
  mutable std::unique_ptr<const Info> info;
};

struct octet_context {
  octet::Context context;
  std::vector<octet::LayerReport> layers;  // of the last profile
  std::vector<octet::TensorView> results;  // given out since the last run, by index
};

struct octet_throughput {
  octet::Throughput throughput;
};

namespace octet::c_interface {

// The sentence of the thread's last call that failed.
std::string& last_error();

// Keeps the sentence of what `work` throws there.
template <typename Work>
octet_status guarded(Work work) noexcept {
  return guarded(last_error(), work);
}

std::vector<int> cpu_list(const int32_t* cpus, int32_t count);
int32_t public_type(DataType type);

}  // namespace octet::c_interface
