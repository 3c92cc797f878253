// A task of Octet for the Python programs of bench/: its untrained network, and what it makes of the outputs of
// whatever ran a network. One shared library, so that every contender of bench/detector_speed.py has the same
// post-processing.
#include <cstdio>
#include <exception>
#include <string>

#include "base/files.h"
#include "onnx/export.h"
#include "spec/experiment.h"
#include "tasks/task.h"

namespace {

using namespace octet;

struct Decoder {
  spec::ExperimentSpec spec;
  tasks::Outputs outputs;
  data::Batch batch;
};

template <typename Result, typename Work>
Result guarded(Result failed, const Work& work) {
  try {
    return work();
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return failed;
  }
}

}  // namespace

extern "C" {

// Writes the network that a training of the experiment would start from. 0: done; else the reason is on stderr.
int octet_bench_network(const char* spec, const char* onnx) {
  return guarded(1, [&] {
    const spec::ExperimentSpec experiment = spec::load_experiment(spec, {.check_files = false});
    write_file_atomically(onnx, onnx::export_bytes(experiment.task->build(experiment.model)));
    return 0;
  });
}

// For one image of `height` x `width`. Outputs have four dimensions; their values, of which no copy is made, may change
// between calls of octet_bench_decode. Null: the reason is on stderr. Never freed.
void* octet_bench_decoder(const char* spec, int height, int width, int outputs, const char* const* names,
                          const int64_t* shapes, const float* const* values) {
  return guarded(static_cast<Decoder*>(nullptr), [&] {
    auto* decoder =
        new Decoder{.spec = spec::load_experiment(spec, {.check_files = false}), .outputs = {}, .batch = {}};
    for (int i = 0; i < outputs; ++i) {
      const std::vector<int64_t> shape(shapes + 4 * i, shapes + 4 * i + 4);
      const auto size = static_cast<size_t>(shape[0] * shape[1] * shape[2] * shape[3]);
      decoder->outputs.push_back({names[i], shape, {values[i], size}});
    }
    decoder->batch.size = 1, decoder->batch.channels = 3;
    decoder->batch.height = height, decoder->batch.width = width;
    return decoder;
  });
}

// How many objects the task finds; -1: the reason is on stderr.
int octet_bench_decode(void* decoder) {
  return guarded(-1, [&] {
    const auto& own = *static_cast<const Decoder*>(decoder);
    return static_cast<int>(std::get<tasks::Objects>(own.spec.task->decode(own.outputs, own.batch).at(0)).size());
  });
}

}  // extern "C"
