// Octet's inference engine. Load a compiled network (NAME.octet, made by `octet compile`) and run it:
//
//   octet::Engine engine = octet::Engine::load("resnet18.octet");
//   octet::Context context = engine.create_context();        // memory and threads; one per concurrent caller
//   std::vector<float> image(engine.inputs()[0].size()), logits(engine.outputs()[0].size());
//   context.run(image, logits);                              // or run(inputs, outputs) with several tensors
//
// Without copies and checks at every run, on tensors that stay where they are:
//
//   context.bind_input(0, image.data());
//   context.bind_output(0, logits.data());
//   while (camera.read(image)) context.run();
//
// Where the model carries names and normalization (octet inspect shows them), pixels go in and names come out:
//
//   context.bind_image(0, pixels, engine.image_format());    // 8-bit RGB of the input's size
//   context.run();
//   const std::string& name = engine.model_info().classes.at(best);
//
// Every tensor is dense in the order of its shape (NCHW for images), of float32 unless it is bound with a type. The
// batch is part of the shape: it is chosen when the network is compiled. Results are the same bits for every number of
// threads, and what runs in INT8 is the same bits on every instruction set; FP32 layers may differ in the last bits
// there (docs/numerics.md). A NaN in the input stays NaN through FP32 layers; where the network quantizes it, it
// becomes the zero point, the number 0.
// Where sizes of outputs come up in a run (the objects that a detector finds; TensorInfo::shape has -1 then), the
// library holds the outputs, in the types of the model:
//
//   context.bind_input(0, image.data());
//   context.run();
//   const octet::TensorView boxes = context.result(0);   // until the next run
//
// Errors a person can mend are thrown as octet::Error with one clear sentence. The same in C: octet/octet.h.
// This header needs C++17.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace octet {

namespace engine {
struct Plan;
}  // namespace engine

class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Of the elements of a tensor in memory. A bool is a byte that is 0 or 1.
enum class DataType { kFloat32, kUInt8, kInt8, kInt32, kInt64, kBool };

struct TensorInfo {
  std::string name;
  std::vector<int64_t> shape;  // -1: comes up in a run; empty, where nothing is known before it
  int64_t size() const;        // number of elements; -1: comes up in a run
  // What the engine itself reads or writes there; other types cost a conversion (Context::bind_input). Other than
  // float32 only where Engine::finds_sizes().
  DataType type = DataType::kFloat32;
};

// A tensor of a context, until its next run.
struct TensorView {
  DataType type = DataType::kFloat32;
  std::vector<int64_t> shape;
  const void* data = nullptr;  // dense, in the order of the shape
  int64_t size() const;
};

// Threads of the caller instead of the context's own. run(user, parts, work, task) calls work(task, part) once for
// every part in 0..parts-1, on any threads, and returns when all calls have returned; it must not throw. An inference
// is one call of `run`. The parts may run together or in turn: one that comes late finds that others have done its
// work.
struct WorkerPool {
  void (*run)(void* user, int parts, void (*work)(void* task, int part), void* task) = nullptr;  // nullptr: none
  void* user = nullptr;
  bool concurrent = false;  // makes no difference any more
};

struct ContextOptions {
  int threads = 0;  // the caller's thread included; 0: one per entry of `cpus`, or as many CPUs as this process may use
                    // (affinity mask and control-group quota)
  std::string isa;  // "scalar", "generic", "avx2", "avx_vnni", "avx512_vnni", "amx_int8"; empty: the best of this CPU
  std::vector<int> cpus;  // thread i runs on CPU cpus[i % size] alone, but for thread 0, the caller's, which stays as
                          // it is; empty: where the system wants
  WorkerPool pool;
  // Waiting threads look for work this long after an inference before they sleep, microseconds; negative: about 50.
  // Longer: a faster start of the next inference, at the price of a busy CPU.
  int64_t idle_spin_us = -1;
  int profile = 0;  // which of Engine::profiles()
};

// One step of the compiled network, as it runs.
struct LayerReport {
  std::string name;         // of the node in the source graph
  std::string op;           // "Conv+Add+Relu"
  std::string precision;    // "int8" or "fp32"
  std::string kernel;       // "conv avx512_vnni"
  std::string reason;       // why it is not int8, where that has a reason
  double microseconds = 0;  // mean time without waiting for other threads, from Context::profile
};

// How the bytes of an image become the numbers of a network's input: channel c of a pixel is
// float(pixel[channel[c]]) * scale[c] + offset[c], rounded after each operation.
struct ImageFormat {
  // Not negative.
  int64_t pixel_stride = 0;       // bytes between pixels; 0: as many as the input has channels
  int64_t row_stride = 0;         // bytes between rows; 0: no gaps
  int64_t image_stride = 0;       // bytes between the images of a batch; 0: no gaps
  int channel[4] = {0, 1, 2, 3};  // {2, 1, 0} reads BGR as RGB
  float scale[4] = {1, 1, 1, 1}, offset[4] = {0, 0, 0, 0};
};

// What the file says of the images and classes that the network was made for; what it does not say is empty
// (docs/metadata.md). Names of tasks, ways of resizing and interpolations may be of a newer Octet than this one.
struct ModelInfo {
  std::string task;                  // "classification", "detectnet_v2", "detector"
  std::vector<std::string> classes;  // in the order of the scores
  // The input is (x / 255 - mean) / std of pixels x; one value, or one for each channel in the order of color_order.
  std::vector<double> mean, std;
  std::string color_order;  // of the channels: "rgb", "bgr", "gray"
  std::string layout;       // "NCHW", "NHWC"
  // How an image gets the size of the input. "stretch": the image, or the middle central_fraction of its height and
  // width, is resized straight to it; "center_crop": resized to a shorter side of shorter_side, then cut from the
  // middle; "tao": cut and scaled as the entry octet.input.resize says.
  std::string resize;
  int64_t shorter_side = 0;  // pixels
  double central_fraction = 1;
  std::string interpolation;      // "antialias", "bilinear", "tensorflow1"
  bool exif_orientation = false;  // images are turned as their EXIF data say first
  std::string decoder;            // JSON: how the task reads the outputs; thresholds, clustering, anchors
};

// Working memory and threads for one inference at a time. After it was made and its tensors were bound, run() allocates
// nothing, takes no lock, and makes no system call unless a thread sleeps or has kept the others waiting for 0.1 ms.
class Context {
 public:
  ~Context();
  Context(Context&&) noexcept;
  Context& operator=(Context&&) noexcept;

  // One pointer per input and output, in the order of Engine::inputs() and outputs(). Outputs must not overlap inputs.
  // These calls bind the tensors, too.
  void run(const std::vector<const float*>& inputs, const std::vector<float*>& outputs);
  // For networks with one input and one output; sizes are checked.
  void run(const std::vector<float>& input, std::vector<float>& output);

  // The tensor that the following runs read or write: the caller's memory, read and written in place.
  void bind_input(int index, const float* data);
  void bind_output(int index, float* data);
  // The same for memory of another type, converted in every run in the caller's thread: an integer of an input is that
  // number; an output is rounded to the nearest integer, of two as near the even one, and what the type does not have
  // becomes its nearest (NaN: 0). A network's classes or counts come out whole, its probabilities do not.
  void bind_input(int index, const void* data, DataType type);
  void bind_output(int index, void* data, DataType type);
  // 8-bit pixels (N x H x W x C) for an input of rank 4 with up to four channels. Where the network starts by
  // quantizing that input, the bytes become codes by a table, without floats in between; the bits are those of the
  // float image.
  void bind_image(int index, const uint8_t* pixels, const ImageFormat& format = {});
  // Runs on the bound tensors. Error when one is not bound.
  void run();
  // An output of the latest run: the caller's memory, or the library's where sizes come up in a run. There outputs are
  // bound by nobody, and a run allocates memory.
  TensorView result(int index) const;

  int threads() const;
  const char* isa() const;  // "avx512_vnni"
  // Runs `runs` times and reports the mean time of every step.
  std::vector<LayerReport> profile(const std::vector<const float*>& inputs, const std::vector<float*>& outputs,
                                   int runs);
  std::vector<LayerReport> profile(int runs);  // on the bound tensors

 private:
  friend class Engine;
  struct Impl;
  explicit Context(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

struct ThroughputOptions {
  int workers = 0;        // contexts of one thread each; 0: one per entry of `cpus`, or per CPU this process may use
  std::vector<int> cpus;  // worker i runs on CPU cpus[i % size] alone; empty: each on a CPU of its own, where there are
                          // enough, otherwise where the system wants
  int queue = 0;          // inferences that may wait for a worker; 0: two per worker
  std::string isa;
  int profile = 0;  // which of Engine::profiles()
};

// Is called when an inference is done, by the thread that did it and before wait() returns. It must not throw, and not
// wait for the pool; as long as it takes, that worker does nothing else.
using Completion = std::function<void(uint64_t ticket)>;

// As many inferences a second as the CPU can do: single-threaded contexts, one per core, behind a queue. Weights are
// shared. Any thread may call.
//
//   octet::Throughput pool = engine.create_throughput();
//   for (Frame& f : frames) f.ticket = pool.submit({f.image}, {f.logits});   // waits while the queue is full
//   for (Frame& f : frames) pool.wait(f.ticket);
class Throughput {
 public:
  using Ticket = uint64_t;
  ~Throughput();  // finishes what was submitted
  Throughput(Throughput&&) noexcept;
  Throughput& operator=(Throughput&&) noexcept;

  // The tensors, one pointer per input and output, must stay until the inference is done. Waits while the queue is
  // full.
  Ticket submit(const std::vector<const float*>& inputs, const std::vector<float*>& outputs);
  // The same with arrays of inputs().size() and outputs().size() pointers; allocates nothing. False, and no ticket,
  // when the queue is full and `wait` is false.
  bool submit(const float* const* inputs, float* const* outputs, Ticket* ticket, bool wait = true);
  // The same, and `done` is called behind the inference.
  Ticket submit(const std::vector<const float*>& inputs, const std::vector<float*>& outputs, Completion done);
  bool submit(const float* const* inputs, float* const* outputs, Ticket* ticket, bool wait, Completion done);
  // Returns when that inference is done.
  void wait(Ticket ticket);
  // Returns when every inference submitted so far is done.
  void wait_all();

  int workers() const;
  const char* isa() const;

 private:
  friend class Engine;
  struct Impl;
  explicit Throughput(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

class Engine {
 public:
  // Loading takes milliseconds. octet::Error: no engine file, truncated, damaged, newer format. Large weights stay
  // mapped until the first context of a profile has been made: replace the file by renaming another one over it.
  // Writing over it in place makes a first context fail, and in the middle of loading it may end the process
  // (docs/deployment.md).
  static Engine load(const std::string& path);
  // The same from memory (copied); `name` is for messages.
  static Engine from_memory(const void* bytes, size_t size, const std::string& name = "engine");

  // Sizes that the file was compiled for (octet compile --profiles); the first unless a context asks for another.
  int profiles() const { return static_cast<int>(inputs_.size()); }
  // The profile whose first input has this shape. Error, naming those there are, when there is none.
  int find_profile(const std::vector<int64_t>& shape) const;
  // Error where there is no such profile.
  const std::vector<TensorInfo>& inputs(int profile = 0) const;
  const std::vector<TensorInfo>& outputs(int profile = 0) const;
  // Sizes of the outputs come up in a run: Context::result() gives them, and there is no Throughput.
  bool finds_sizes() const;
  // What the model carried into the file, by key: stage, version, and all that model_info() reads.
  const std::map<std::string, std::string>& metadata() const;
  // Reads the metadata. Error naming the entry that is malformed.
  ModelInfo model_info() const;
  // For bind_image of pixels in the order of red, green and blue (or gray ones): mean, deviation and order of the
  // channels as model_info() has them. The floats are those of (x / 255 - mean) / std but for the last bits. Error
  // where the file names no mean and deviation.
  ImageFormat image_format(int input = 0) const;
  // Contexts share the weights and everything derived from them; they may outlive the engine. Any thread may call.
  Context create_context(const ContextOptions& options = {}) const;
  Throughput create_throughput(const ThroughputOptions& options = {}) const;
  // The steps for an instruction set (empty: the best one of this CPU).
  std::vector<LayerReport> layers(const std::string& isa = {}, int profile = 0) const;

 private:
  struct Shared;
  explicit Engine(std::shared_ptr<const engine::Plan> plan);
  std::shared_ptr<Shared> shared_;
  std::vector<std::vector<TensorInfo>> inputs_, outputs_;  // of every profile
};

}  // namespace octet
