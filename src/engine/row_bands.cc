#include "engine/row_bands.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "base/cpu_limits.h"
#include "engine/band_schedule.h"
#include "engine/step_cost.h"

namespace octet::engine {
namespace {

using kernels::Range;

int64_t whole_lines(int64_t bytes) {
  return (bytes + 63) / 64 * 64;
}

// Who reads and writes the buffers of a plan.
struct Uses {
  explicit Uses(const Plan& plan) : readers(plan.buffers.size()), writers(plan.buffers.size(), 0) {
    std::vector<char> whole(plan.buffers.size(), 1);
    for (size_t i = 0; i < plan.buffers.size(); ++i)
      if (const Buffer& b = plan.buffers[i]; b.alias_of >= 0) whole[i] = whole[b.alias_of] = 0;
    for (size_t s = 0; s < plan.steps.size(); ++s) {
      for (int id : plan.steps[s].inputs) readers[plan.root(id)].push_back(s);
      for (int id : plan.steps[s].outputs) ++writers[id];
    }
    for (size_t i = 0; i < plan.buffers.size(); ++i) {
      const Buffer& b = plan.buffers[i];
      if (b.alias_of >= 0) readers[i] = readers[b.alias_of];
      const auto among = [&](const std::vector<int>& ids) { return std::count(ids.begin(), ids.end(), i) > 0; };
      can_keep.push_back(b.layout == Layout::kCodes && b.shape.size() == 4 && b.n() == 1 && whole[i] &&
                         writers[i] == 1 && !readers[i].empty() && !among(plan.inputs) && !among(plan.outputs));
    }
  }
  size_t last_reader(int id) const { return readers[id].back(); }

  std::vector<std::vector<size_t>> readers;  // of a part of a tensor: of any part of it
  std::vector<int> writers;
  std::vector<char> can_keep;  // may exist in bands only, if all its readers are in the group
};

// Products with 8-bit weights on one core, in general.
double products_per_microsecond(Isa isa) {
  switch (isa) {
    case Isa::kAmxInt8:
    case Isa::kAvx512Vnni:
      return 385e3;
    case Isa::kAvxVnni:
      return 190e3;
    case Isa::kAvx2:
      return 95e3;
    default:
      return 15e3;
  }
}

// A view of a tensor that has no rows yet: for its strides.
kernels::QTensor strides_of(const Plan& plan, int id) {
  kernels::QTensor t = plan.code_view(id, reinterpret_cast<uint8_t*>(uintptr_t{4096}));  // no offsets from nullptr
  t.data = nullptr;
  return t;
}

class GroupFinder {
 public:
  GroupFinder(const Plan& plan, std::span<const PreparedStep> steps, const RowBandOptions& options)
      : plan_(plan), steps_(steps), options_(options), uses_(plan) {}

  // The steps from `first` to the readers of its output, and on as long as a tensor that leaves the group is large.
  std::optional<BandedSteps> from(size_t first) const {
    if (!is_eligible(first) || !is_large(first)) return std::nullopt;
    return best_from(
        first, [&](size_t s) { return is_large(s); }, [&](BandedSteps& group) { return cut(group); });
  }

  // The same about a depthwise convolution, for threads that had better not exchange rows.
  std::optional<BandedSteps> private_from(size_t first) const {
    if (options_.private_memory_bytes == 0 || options_.threads == 1) return std::nullopt;
    const auto can_be_private = [&](size_t s) { return uses_.can_keep[output(s)] && is_about_depthwise(s); };
    if (!is_eligible(first) || !can_be_private(first)) return std::nullopt;
    return best_from(first, can_be_private, [&](BandedSteps& group) { return cut_private(group); });
  }

 private:
  // `is_kept` wants the readers of a step's output in the group, `cut` fills it or refuses.
  template <typename IsKept, typename Cut>
  std::optional<BandedSteps> best_from(size_t first, const IsKept& is_kept, const Cut& cut) const {
    std::optional<BandedSteps> best;
    size_t wanted = uses_.last_reader(output(first));
    for (size_t last = first + 1; last <= wanted && last < steps_.size() && is_eligible(last); ++last) {
      if (is_kept(last)) wanted = std::max(wanted, uses_.last_reader(output(last)));
      if (last < uses_.last_reader(output(first))) continue;
      auto group = make(first, last);
      if (group && cut(*group)) best = std::move(group);
    }
    return best;
  }

  int output(size_t s) const { return plan_.steps[s].outputs[0]; }

  bool is_eligible(size_t s) const {
    if (!steps_[s].rows || plan_.steps[s].outputs.size() != 1) return false;
    const Buffer& b = plan_.buffers[output(s)];
    return b.layout == Layout::kCodes && b.shape.size() == 4 && b.n() == 1;
  }

  // Is the output of the step?
  bool is_large(size_t s) const { return is_large(s, is_thin(s) ? options_.thin_large_bytes : options_.large_bytes); }
  bool is_large(size_t s, int64_t limit) const {
    if (plan_.steps[s].kind == "quantize") limit /= 4;
    return uses_.can_keep[output(s)] && plan_.buffers[output(s)].bytes() / options_.threads > limit;
  }
  // Is it a matter of memory rather than of products?
  bool is_thin(size_t s) const {
    return options_.thin_large_bytes > 0 && (plan_.steps[s].kind == "quantize" || is_about_depthwise(s));
  }
  // Does a depthwise convolution write the output of the step, or nothing else read it?
  bool is_about_depthwise(size_t s) const {
    const auto is_depthwise = [&](size_t step) { return plan_.steps[step].kind == "depthwise"; };
    return is_depthwise(s) || std::ranges::all_of(uses_.readers[output(s)], is_depthwise);
  }

  std::optional<BandedSteps> make(size_t first, size_t last) const {
    BandedSteps group{.first = first, .last = last};
    for (size_t s = first; s <= last; ++s) {
      const int id = output(s);
      const auto& readers = uses_.readers[id];
      if (uses_.can_keep[id] && readers.back() <= last)
        group.kept.push_back({.buffer = id});
      else if (std::any_of(readers.begin(), readers.end(), [&](size_t reader) { return reader <= last; }))
        return std::nullopt;  // rows that another thread makes would be read
    }
    return group;
  }

  std::vector<Schedule> schedules(const BandedSteps& group) const {
    std::vector<Schedule> threads;
    for (int part = 0; part < options_.threads; ++part)
      threads.emplace_back(plan_, steps_, group, part, options_.threads);
    return threads;
  }

  // Into as few bands as fit the memory. False where none do, or where threads would repeat too much of each other's
  // work.
  bool cut(BandedSteps& group) const {
    constexpr int64_t kRepeatedShare = 10;  // at most one row of so many, in any step
    bool large = false;
    for (size_t s = group.first; s <= group.last; ++s) large = large || is_large(s, options_.large_bytes);
    const int64_t memory_bytes = large ? options_.memory_bytes : options_.thin_memory_bytes;
    const std::vector<Schedule> threads = schedules(group);
    int64_t most_rows = 0;
    for (size_t i = 0; i <= group.last - group.first; ++i) {
      int64_t rows = 0;
      for (const Schedule& thread : threads)
        rows += thread.rows_of(i), most_rows = std::max(most_rows, thread.rows_of(i));
      const int64_t h = plan_.buffers[output(group.first + i)].h();
      if (rows > h + h / kRepeatedShare && options_.large_bytes > 0) return false;
    }
    for (int64_t bands = 1; bands <= most_rows; bands += 1 + bands / 8) {
      fill(group, threads, bands);
      if (group.memory_bytes <= memory_bytes) return true;
    }
    return false;
  }

  // Into one band. False where that takes too much memory, or the rows that threads repeat more time than they gain.
  bool cut_private(BandedSteps& group) const {
    constexpr double kGainMicroseconds = 2.2;
    const std::vector<Schedule> threads = schedules(group);
    double repeated = 0;
    for (size_t s = group.first; s <= group.last; ++s) {
      const int64_t h = plan_.buffers[output(s)].h();
      int64_t rows = 0;
      for (const Schedule& thread : threads) rows += thread.rows_of(s - group.first);
      const auto products = static_cast<double>(step_cost(plan_, plan_.steps[s]).macs.value_or(0));
      repeated += products * static_cast<double>(rows - h) /
                  (static_cast<double>(h * options_.threads) * products_per_microsecond(steps_[s].isa));
    }
    if (repeated > kGainMicroseconds) return false;
    fill(group, threads, 1);
    return group.memory_bytes <= options_.private_memory_bytes;
  }

  void fill(BandedSteps& group, const std::vector<Schedule>& threads, int64_t bands) const {
    group.pieces.clear();
    for (BandedSteps::Kept& kept : group.kept) kept.rows = 0;
    for (const Schedule& thread : threads) {
      Schedule::Cut made = thread.cut(bands);
      for (size_t k = 0; k < group.kept.size(); ++k)
        group.kept[k].rows = std::max(group.kept[k].rows, made.kept_rows[k]);
      group.pieces.push_back(std::move(made.pieces));
    }
    group.memory_bytes = 0;
    for (BandedSteps::Kept& kept : group.kept) {
      kept.offset = group.memory_bytes;
      group.memory_bytes += whole_lines(strides_of(plan_, kept.buffer).row_stride * kept.rows + kernels::kReadSlack);
    }
  }

  const Plan& plan_;
  const std::span<const PreparedStep> steps_;
  const RowBandOptions& options_;
  const Uses uses_;
};

}  // namespace

RowBandOptions row_band_options(int threads) {
  const int64_t cache = second_level_cache_bytes();
  const int64_t thin_memory = std::min<int64_t>(cache / 16 * 3, 192 << 10);
  return {.threads = threads,
          .large_bytes = cache / 4 * 3,
          .memory_bytes = cache / 8 * 3,
          .thin_large_bytes = cache / 12,
          .thin_memory_bytes = thin_memory,
          .private_memory_bytes = thin_memory};
}

std::vector<BandedSteps> find_banded_steps(const Plan& plan, std::span<const PreparedStep> steps,
                                           const RowBandOptions& options) {
  const GroupFinder finder(plan, steps, options);
  std::vector<BandedSteps> groups;
  for (size_t s = 0; s < plan.steps.size(); ++s) {
    auto group = finder.from(s);
    if (!group) group = finder.private_from(s);
    if (!group) continue;
    s = group->last;
    groups.push_back(std::move(*group));
  }
  return groups;
}

ArenaLayout arena_layout(const Plan& plan, std::span<const BandedSteps> groups) {
  Plan lives{.buffers = plan.buffers, .inputs = plan.inputs, .outputs = plan.outputs};
  size_t group = 0;
  for (size_t s = 0; s < plan.steps.size(); ++s) {
    if (group < groups.size() && s > groups[group].last) ++group;
    if (group >= groups.size() || s <= groups[group].first) lives.steps.emplace_back();
    for (int id : plan.steps[s].inputs) lives.steps.back().inputs.push_back(id);
    for (int id : plan.steps[s].outputs) lives.steps.back().outputs.push_back(id);
  }
  const auto is_kept = [&](int id) {
    return std::any_of(groups.begin(), groups.end(), [&](const BandedSteps& g) {
      return std::any_of(g.kept.begin(), g.kept.end(), [&](const BandedSteps::Kept& k) { return k.buffer == id; });
    });
  };
  for (Step& step : lives.steps) std::erase_if(step.inputs, is_kept), std::erase_if(step.outputs, is_kept);
  plan_memory(lives);
  ArenaLayout layout{.bytes = lives.arena_bytes};
  for (size_t i = 0; i < lives.buffers.size(); ++i)
    layout.offsets.push_back(is_kept(static_cast<int>(i)) ? -1 : lives.buffers[i].offset);
  return layout;
}

BandMemory::BandMemory(const Plan& plan, const BandedSteps& group, const Memory& memory)
    : plan_(plan), group_(group), bytes_(group.memory_bytes), memory_(memory), first_rows_(group.kept.size(), 0) {
  // The columns left and right of the rows are never written again.
  for (const BandedSteps::Kept& kept : group.kept) {
    const kernels::QTensor t = memory_.codes[kept.buffer] = strides_of(plan, kept.buffer);
    std::memset(bytes_.data() + kept.offset, t.zero_point,
                static_cast<size_t>(t.row_stride * kept.rows + kernels::kReadSlack));
  }
}

const Memory& BandMemory::begin(const Memory& memory) {
  memory_.data = memory.data;
  return memory_;
}

void BandMemory::arrange(const BandPiece& piece) {
  const BandedSteps::Kept& kept = group_.kept[piece.kept];
  const Buffer& b = plan_.buffers[kept.buffer];
  std::byte* const start = bytes_.data() + kept.offset;
  kernels::QTensor& t = memory_.codes[kept.buffer];
  int64_t& first_row = first_rows_[piece.kept];
  const Range rows = piece.rows;
  if (piece.what == BandPiece::What::kBorder) {
    std::memset(start + (rows.begin - first_row) * t.row_stride, t.zero_point,
                static_cast<size_t>((rows.end - rows.begin) * t.row_stride));
    return;
  }
  if (!is_empty(rows) && rows.begin != first_row)
    std::memmove(start, start + (rows.begin - first_row) * t.row_stride,
                 static_cast<size_t>((rows.end - rows.begin) * t.row_stride));
  first_row = rows.begin;
  t.data = reinterpret_cast<uint8_t*>(start) + b.halo.left * t.c_pitch - first_row * t.row_stride;
}

}  // namespace octet::engine
