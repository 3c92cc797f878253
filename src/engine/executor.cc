#include "engine/executor.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <new>
#include <set>

#include "base/error.h"
#include "dense/program.h"
#include "dense/run.h"
#include "engine/steady_clock.h"

namespace octet::engine {
namespace {

TeamOptions team_options(const ExecutorOptions& options) {
  TeamOptions team = options.team;
  if (options.threads < 0 || options.threads > 1024) fail_usage("threads = ", options.threads, " is outside 1..1024");
  team.threads = options.threads;
  if (team.threads == 0) team.threads = team.cpus.empty() ? available_cpus() : static_cast<int>(team.cpus.size());
  return team;
}

// Zeros first, then scratch memory, whose content does not matter: whoever uses it first is the thread it belongs to.
AlignedMemory allocate(int64_t zeros, int64_t scratch) {
  const int64_t bytes = zeros + scratch;
  try {
    // One vector more: wide loads may start at the last byte.
    AlignedMemory memory(bytes + 64);
    std::memset(memory.data(), 0, static_cast<size_t>(zeros));
    return memory;
  } catch (const std::bad_alloc&) {
    fail("cannot allocate the ", bytes, " bytes of working memory of the engine");
  }
}

// As the engine file has it.
ArenaLayout plan_layout(const Plan& plan) {
  ArenaLayout layout{.bytes = plan.arena_bytes};
  for (const Buffer& b : plan.buffers) layout.offsets.push_back(b.offset);
  return layout;
}

}  // namespace

class Executor::WholeArena {
 public:
  explicit WholeArena(Executor& executor) : executor_(executor), banded_(!executor.groups_.empty()) {
    if (!banded_) return;
    other_ = executor.make_arena(plan_layout(*executor.plan_));
    std::swap(executor.arena_, other_);
  }
  ~WholeArena() {
    if (banded_) std::swap(executor_.arena_, other_);
  }
  WholeArena(const WholeArena&) = delete;
  WholeArena& operator=(const WholeArena&) = delete;

 private:
  Executor& executor_;
  const bool banded_;
  Arena other_;
};

Executor::Executor(std::shared_ptr<const Plan> plan, const ExecutorOptions& options)
    : Executor(std::make_shared<const PreparedPlan>(std::move(plan), options.isa), options) {}

Executor::Executor(std::shared_ptr<const PreparedPlan> prepared, const ExecutorOptions& options)
    : prepared_(std::move(prepared)),
      plan_(&prepared_->plan()),
      steps_(prepared_->steps()),
      team_(team_options(options)) {
  std::set<int> filled;  // by the first of the steps that write parts of a tensor
  for (const Step& step : plan_->steps) {
    std::vector<HaloFill>& fills = halo_fills_.emplace_back();
    for (int id : step.outputs) {
      const int root = plan_->root(id);
      if (!filled.insert(root).second) continue;
      const Buffer& b = plan_->buffers[root];
      const kernels::Halo& h = b.halo;
      if (b.layout == Layout::kCodes && h.top + h.bottom + h.left + h.right > 0) fills.push_back({root, b.n() * b.h()});
    }
  }
  step_nanoseconds_.assign(steps_.size(), 0);
  program_options_ = options.program;
  program_options_.threads = team_.threads();
  images_.resize(plan_->inputs.size());
  work_ = [this](size_t stage, int part, int parts) { run_stage(stages_[stage], part, parts); };
  work_on_current_ = [this](size_t, int part, int parts) { run_step(current_step_, part, parts); };
  band_options_ = options.row_bands.value_or(row_band_options(team_.threads()));
  band_options_.threads = team_.threads();
  choose_bands();
}

// With an image as input some step has another function, which knows nothing of bands.
void Executor::choose_bands() {
  groups_ = find_banded_steps(*plan_, steps_, band_options_);
  std::erase_if(groups_, [this](const BandedSteps& group) {
    return !image_steps_.empty() && std::any_of(image_steps_.begin() + static_cast<int64_t>(group.first),
                                                image_steps_.begin() + static_cast<int64_t>(group.last) + 1,
                                                [](const StepFunction& instead) { return instead != nullptr; });
  });
  band_memory_.clear();
  arena_ = {};
  arena_ = make_arena(groups_.empty() ? plan_layout(*plan_) : arena_layout(*plan_, groups_));
  band_nanoseconds_.assign(groups_.empty() ? 0 : steps_.size() * static_cast<size_t>(team_.threads()), 0);
  for (const BandedSteps& group : groups_) {
    std::vector<BandMemory>& memory = band_memory_.emplace_back();
    for (int part = 0; part < team_.threads(); ++part) memory.emplace_back(*plan_, group, arena_.memory);
  }
  stages_.clear();
  for (size_t step = 0, group = 0; step < steps_.size(); ++step) {
    const bool banded = group < groups_.size() && groups_[group].first == step;
    stages_.push_back({step, banded ? static_cast<int>(group) : -1});
    if (banded) step = groups_[group++].last;
  }
}

Executor::Arena Executor::make_arena(const ArenaLayout& layout) const {
  Arena arena;
  Memory& memory = arena.memory;
  const size_t count = plan_->buffers.size();
  memory.codes.resize(count);
  memory.data.assign(count, nullptr);
  const int64_t kept_start = (layout.bytes + 63) / 64 * 64;
  memory.kept_bytes = prepared_->kept_bytes();
  const int64_t scratch_start = kept_start + team_.threads() * memory.kept_bytes;
  memory.scratch_bytes = prepared_->scratch_bytes();
  arena.bytes = allocate(scratch_start, team_.threads() * memory.scratch_bytes);
  memory.kept = arena.bytes.data() + kept_start;
  memory.scratch = arena.bytes.data() + scratch_start;
  for (size_t i = 0; i < count; ++i) {
    if (layout.offsets[i] < 0) continue;
    std::byte* start = arena.bytes.data() + layout.offsets[i];
    memory.data[i] = start;
    if (holds_codes(plan_->buffers[i].layout))
      memory.codes[i] = plan_->code_view(static_cast<int>(i), reinterpret_cast<uint8_t*>(start));
  }
  return arena;
}

Executor::~Executor() = default;

void Executor::bind(const float* const* inputs, float* const* outputs) {
  // Steps never write to inputs (validate), so the cast only serves the one table of addresses.
  for (size_t i = 0; i < plan_->inputs.size(); ++i)
    arena_.memory.data[plan_->inputs[i]] = images_[i] ? images_[i]->floats() : const_cast<float*>(inputs[i]);
  for (size_t i = 0; i < plan_->outputs.size(); ++i) arena_.memory.data[plan_->outputs[i]] = outputs[i];
  for (size_t i = 0; i < plan_->buffers.size(); ++i)
    if (const Buffer& b = plan_->buffers[i]; b.offset < 0 && b.alias_of >= 0)
      arena_.memory.data[i] = arena_.memory.data[b.alias_of];
}

// The halo of an output and its interior are disjoint bytes, so they may be written in any order. A tensor in bands has
// none here.
void Executor::fill_halos(size_t step, int part, int parts) {
  for (const HaloFill& fill : halo_fills_[step])
    if (const kernels::QTensor& t = arena_.memory.codes[fill.buffer]; t.data != nullptr)
      kernels::fill_halo(t, plan_->buffers[fill.buffer].halo, share_of(fill.rows, part, parts));
}

void Executor::run_step(size_t index, int part, int parts) {
  const int64_t start = spans_.empty() ? 0 : steady_nanoseconds();
  fill_halos(index, part, parts);
  if (!image_steps_.empty() && image_steps_[index])
    image_steps_[index](arena_.memory, part, parts);
  else
    steps_[index].run(arena_.memory, part, parts);
  if (!spans_.empty()) spans_[static_cast<size_t>(part) * steps_.size() + index] = {start, steady_nanoseconds()};
}

void Executor::run_banded(size_t index, int part) {
  const BandedSteps& group = groups_[index];
  BandMemory& bands = band_memory_[index][part];
  const Memory& memory = bands.begin(arena_.memory);
  const bool timed = !spans_.empty();
  int64_t* const spent = timed ? band_nanoseconds_.data() + static_cast<size_t>(part) * steps_.size() : nullptr;
  int64_t start = timed ? steady_nanoseconds() : 0;
  const int64_t first = start;
  for (size_t i = group.first; timed && i <= group.last; ++i) spent[i] = 0;
  for (size_t i = group.first; i <= group.last; ++i) fill_halos(i, part, team_.threads());
  for (const BandPiece& piece : group.pieces[part]) {
    if (piece.what == BandPiece::What::kRun) {
      steps_[piece.step].rows->run(memory, part, piece.rows);
    } else {
      bands.arrange(piece);
    }
    if (!timed) continue;
    const int64_t end = steady_nanoseconds();
    spent[piece.step] += end - start;
    start = end;
  }
  int64_t at = first;
  for (size_t i = group.first; timed && i <= group.last; ++i) {
    spans_[static_cast<size_t>(part) * steps_.size() + i] = {at, at + spent[i]};
    at += spent[i];
  }
}

// A run of fewer parts has the bands of all: which rows a part makes was decided when the memory was laid out.
void Executor::run_stage(const Stage& stage, int part, int parts) {
  if (stage.group < 0) return run_step(stage.first, part, parts);
  for (int band = part; band < team_.threads(); band += parts) run_banded(static_cast<size_t>(stage.group), band);
}

void Executor::run(const float* const* inputs, float* const* outputs) {
  bind(inputs, outputs);
  for (const auto& image : images_)
    if (image && image->floats()) image->convert();
  std::fill(spans_.begin(), spans_.end(), StepSpan{});
  const int64_t start = profiling_ ? steady_nanoseconds() : 0;
  team_.run(stages_.size(), work_);
  if (profiling_) add_to_profile(steady_nanoseconds() - start);
  if (plan_->program) run_program(outputs);
}

void Executor::run_program(const float* const* outputs) {
  const int64_t start = profiling_ ? steady_nanoseconds() : 0;
  dense::Memory memory(program_options_.memory_bytes);
  std::vector<dense::Tensor> inputs;
  for (size_t i = 0; i < plan_->outputs.size(); ++i) {
    const Buffer& b = plan_->buffers[static_cast<size_t>(plan_->outputs[i])];
    inputs.push_back(dense::Tensor::borrowed(dense::Type::kFloat, b.shape, outputs[i]));
    if (plan_->program->inputs[i].type == dense::Type::kFloat) continue;
    const dense::Tensor floats = inputs.back();  // indices, which plans put out as floats
    inputs.back() = memory.make<int64_t>(b.shape);
    const auto to = inputs.back().mutable_values<int64_t>();
    for (size_t k = 0; k < to.size(); ++k) to[k] = static_cast<int64_t>(floats.values<float>()[k]);
  }
  results_.clear();  // gives its memory back first
  results_ = prepared_->program()->run(inputs, program_options_);
  if (profiling_) program_nanoseconds_ += steady_nanoseconds() - start;
}

void Executor::add_to_profile(int64_t run_nanoseconds) {
  for (size_t i = 0; i < steps_.size(); ++i) {
    int64_t longest = 0;
    for (size_t at = i; at < spans_.size(); at += steps_.size())
      longest = std::max(longest, spans_[at].end - spans_[at].start);
    step_nanoseconds_[i] += longest;
    run_nanoseconds -= longest;
  }
  // Threads are at different steps of a group at a time, so that these may add up to more than the run.
  waiting_nanoseconds_ += std::max<int64_t>(run_nanoseconds, 0);
}

void Executor::set_profiling(bool on) {
  profiling_ = on;
  keep_spans();
}

void Executor::set_tracing(bool on) {
  tracing_ = on;
  keep_spans();
}

void Executor::keep_spans() {
  spans_.assign(profiling_ || tracing_ ? steps_.size() * static_cast<size_t>(threads()) : 0, {});
}

void Executor::set_image(size_t index, std::unique_ptr<ImageInput> image) {
  images_[index] = std::move(image);
  image_steps_.clear();
  for (const auto& bound : images_) {
    if (!bound) continue;
    image_steps_.resize(steps_.size());
    for (size_t i = 0; i < steps_.size(); ++i)
      if (StepFunction instead = bound->replacement(*plan_, i)) image_steps_[i] = std::move(instead);
  }
  choose_bands();
}

void Executor::clear_profile() {
  std::fill(step_nanoseconds_.begin(), step_nanoseconds_.end(), 0);
  waiting_nanoseconds_ = program_nanoseconds_ = 0;
}

TensorDump Executor::dump(int id) const {
  const Buffer& b = plan_->buffers[id];
  TensorDump out{.name = b.name, .shape = b.shape, .is_codes = holds_codes(b.layout)};
  if (b.layout == Layout::kFloatDense) {
    out.values.assign(arena_.memory.f(id), arena_.memory.f(id) + b.elements());
    return out;
  }
  if (b.layout == Layout::kIndexDense) {
    const int64_t* indices = static_cast<const int64_t*>(arena_.memory.data[id]);
    for (int64_t i = 0; i < b.elements(); ++i) out.values.push_back(static_cast<float>(indices[i]));
    return out;
  }
  if (out.is_codes) out.scale = b.scale, out.zero_point = b.zero_point - b.code_offset;
  for (const Step& step : plan_->steps)
    out.on_lines |= step.ints.contains("function_line_shift") && plan_->root(step.outputs[0]) == plan_->root(id);
  if (out.is_codes && b.layout != Layout::kCodes) {
    const kernels::QTensor& t = arena_.memory.codes[id];
    const bool swapped = b.layout == Layout::kCodeColumns;
    const int64_t rows = swapped ? t.c : t.w, columns = swapped ? t.w : t.c;
    for (int64_t i = 0; i < t.n * t.h; ++i)
      for (int64_t row = 0; row < rows; ++row)
        for (int64_t column = 0; column < columns; ++column)
          out.codes.push_back(t.data[(i * t.w + (swapped ? column : row)) * t.c_pitch + (swapped ? row : column)] -
                              b.code_offset);
    return out;
  }
  for (int64_t n = 0; n < b.n(); ++n)
    for (int64_t c = 0; c < b.c(); ++c)
      for (int64_t h = 0; h < b.h(); ++h)
        for (int64_t w = 0; w < b.w(); ++w) {
          if (out.is_codes) {
            const kernels::QTensor& t = arena_.memory.codes[id];
            out.codes.push_back(t.data[n * t.image_stride + h * t.row_stride + w * t.c_pitch + c] - b.code_offset);
          } else {
            out.values.push_back(arena_.memory.f(id)[((n * b.h() + h) * b.w() + w) * b.c() + c]);
          }
        }
  return out;
}

std::vector<TensorDump> Executor::run_and_dump(const float* const* inputs, float* const* outputs,
                                               const std::vector<std::string>& names) {
  std::set<std::string> missing(names.begin(), names.end());
  const std::set<std::string> wanted = missing;
  // Who writes a piece of a tensor writes that, too, and who writes a tensor the parts that are only read.
  std::set<int> made;
  for (const Step& step : plan_->steps) made.insert(step.outputs.begin(), step.outputs.end());
  std::map<int, std::vector<int>> parts;
  for (int id = 0; id < static_cast<int>(plan_->buffers.size()); ++id)
    if (plan_->buffers[id].layout == Layout::kCodes && plan_->root(id) != id && made.count(id) == 0 &&
        !plan_->buffers[id].skips_pixels())
      parts[plan_->root(id)].push_back(id);
  const auto written = [&](size_t step) {
    std::set<int> ids;
    for (int id : plan_->steps[step].outputs) {
      const int root = plan_->root(id);
      ids.insert({id, root});
      if (const auto found = parts.find(root); found != parts.end())
        ids.insert(found->second.begin(), found->second.end());
    }
    return ids;
  };
  for (size_t i = 0; i < steps_.size(); ++i)
    for (int id : written(i)) missing.erase(plan_->buffers[id].name);
  if (!missing.empty())
    fail("the engine has no tensor '", *missing.begin(), "'; it may be fused into the step of a later node");
  // The last step that writes a tensor completes it (a concatenation is written piece by piece).
  const WholeArena whole(*this);
  std::vector<size_t> last(plan_->buffers.size(), 0);
  for (size_t i = 0; i < steps_.size(); ++i)
    for (int id : written(i)) last[id] = i;
  bind(inputs, outputs);
  std::vector<TensorDump> dumps;
  for (size_t i = 0; i < steps_.size(); ++i) {
    current_step_ = i;
    team_.run(1, work_on_current_);
    for (int id : written(i))
      if (last[id] == i && plan_->buffers[id].layout != Layout::kSums &&
          (wanted.empty() || wanted.count(plan_->buffers[id].name)))
        dumps.push_back(dump(id));
    if (!steps_[i].inner || !wanted.empty()) continue;
    const std::string& name = plan_->buffers[plan_->steps[i].outputs.at(0)].name;
    steps_[i].inner(arena_.memory, [&](size_t k, int64_t images, std::span<const uint8_t> codes) {
      const int64_t channels = static_cast<int64_t>(codes.size()) / images;
      TensorDump& out = dumps.emplace_back(TensorDump{.name = name + "/gate/" + std::to_string(k)});
      out.shape = {images, channels, 1, 1}, out.is_codes = out.inner = true;
      out.codes.assign(codes.begin(), codes.end());
    });
  }
  return dumps;
}

void Executor::run_and_show(const float* const* inputs, float* const* outputs, std::span<const int> watched,
                            const FloatWatcher& show) {
  std::vector<size_t> steps_of_root(plan_->buffers.size(), 0);  // how many must be done; 0: an input
  for (size_t i = 0; i < steps_.size(); ++i)
    for (int id : plan_->steps[i].outputs) steps_of_root[static_cast<size_t>(plan_->root(id))] = i + 1;
  std::vector<std::vector<size_t>> complete(steps_.size() + 1);
  for (size_t k = 0; k < watched.size(); ++k) {
    const Layout layout = plan_->buffers[static_cast<size_t>(watched[k])].layout;
    OCTET_CHECK(layout == Layout::kFloatDense || layout == Layout::kFloatNhwc);
    complete[steps_of_root[static_cast<size_t>(plan_->root(watched[k]))]].push_back(k);
  }
  const WholeArena whole(*this);
  bind(inputs, outputs);
  for (size_t i = 0; i <= steps_.size(); ++i) {
    for (size_t k : complete[i]) {
      const Buffer& b = plan_->buffers[static_cast<size_t>(watched[k])];
      show(k, {arena_.memory.f(watched[k]), static_cast<size_t>(b.elements())});
    }
    if (i == steps_.size()) break;
    current_step_ = i;
    team_.run(1, work_on_current_);
  }
}

}  // namespace octet::engine
