// Static memory plan: offline best fit. Buffers are placed by decreasing size, each in the smallest gap that is free
// during its whole life; large tensors come first because they decide the size of the arena. Where all tensors are
// small enough for the caches, one that can share the memory of a larger one gets its middle. That compares buffers
// with one another; of very many, which no network has, each gets its place when its life begins.
#include <algorithm>
#include <limits>
#include <map>
#include <set>

#include "base/error.h"
#include "engine/plan.h"

namespace octet::engine {
namespace {

struct Life {
  int buffer = 0;
  int64_t bytes = 0;
  int first = std::numeric_limits<int>::max(), last = -1;
  int64_t offset = -1;
};

int64_t align64(int64_t x) {
  return (x + 63) / 64 * 64;
}

bool together(const Life& a, const Life& b) {
  return a.last >= b.first && a.first <= b.last;
}

// The best place for `life` among those placed that live at the same time (sorted by offset).
int64_t best_fit(const Life& life, const std::vector<Life>& placed) {
  int64_t best = -1, best_gap = std::numeric_limits<int64_t>::max(), end = 0;
  for (const Life& other : placed) {
    if (!together(life, other)) continue;
    const int64_t gap = other.offset - end;
    if (gap >= life.bytes && gap < best_gap) best = end, best_gap = gap;
    end = std::max(end, other.offset + other.bytes);
  }
  return best >= 0 ? best : end;
}

// A place whose middle is that of a buffer (all are larger) not in use at the same time, the one used last before, if
// need be in the run before; -1: there is none that is free. Threads share most steps by rows, so each then writes what
// it wrote or read before and has in its cache, instead of taking lines out of the cache of another.
int64_t middle_fit(const Life& life, const std::vector<Life>& placed, int steps) {
  int64_t best = -1;
  int latest = std::numeric_limits<int>::min();
  for (const Life& below : placed) {
    if (together(life, below)) continue;
    const int used = below.last < life.first ? below.last : below.last - steps;
    if (used <= latest) continue;
    const int64_t offset = (below.offset + (below.bytes - life.bytes) / 2) / 64 * 64;
    const bool free = std::none_of(placed.begin(), placed.end(), [&](const Life& other) {
      return together(life, other) && offset < other.offset + other.bytes && other.offset < offset + life.bytes;
    });
    if (free) best = offset, latest = used;
  }
  return best;
}

// The gaps between buffers that are alive.
class FreeMemory {
 public:
  // The smallest gap that is large enough, or room at the end.
  int64_t take(int64_t bytes) {
    const auto best = by_size_.lower_bound({bytes, 0});
    if (best == by_size_.end()) {
      const int64_t offset = end_;
      end_ += bytes;
      return offset;
    }
    const auto [size, offset] = *best;
    erase(by_offset_.find(offset));
    if (size > bytes) insert(offset + bytes, size - bytes);
    return offset;
  }
  void give_back(int64_t offset, int64_t bytes) {
    if (bytes == 0) return;
    auto after = by_offset_.lower_bound(offset);
    if (after != by_offset_.end() && after->first == offset + bytes) {
      bytes += after->second;
      after = erase(after);
    }
    if (after != by_offset_.begin()) {
      const auto before = std::prev(after);
      if (before->first + before->second == offset) {
        offset = before->first, bytes += before->second;
        erase(before);
      }
    }
    insert(offset, bytes);
  }
  int64_t end() const { return end_; }

 private:
  using Gaps = std::map<int64_t, int64_t>;
  void insert(int64_t offset, int64_t bytes) { by_offset_[offset] = bytes, by_size_.insert({bytes, offset}); }
  Gaps::iterator erase(Gaps::iterator gap) {
    by_size_.erase({gap->second, gap->first});
    return by_offset_.erase(gap);
  }

  Gaps by_offset_;  // offset -> bytes
  std::set<std::pair<int64_t, int64_t>> by_size_;
  int64_t end_ = 0;
};

// Gives every buffer its place in the order of the steps. Returns the bytes of the arena.
int64_t place_in_order(std::vector<Life>& lives, size_t steps) {
  std::vector<std::vector<Life*>> begin(steps), end(steps);
  for (Life& life : lives) {
    life.offset = 0;
    if (life.last < 0) continue;
    begin[static_cast<size_t>(life.first)].push_back(&life);
    end[static_cast<size_t>(life.last)].push_back(&life);
  }
  FreeMemory memory;
  for (size_t s = 0; s < steps; ++s) {
    for (Life* life : begin[s]) life->offset = memory.take(life->bytes);
    for (const Life* life : end[s]) memory.give_back(life->offset, life->bytes);
  }
  return memory.end();
}

// By decreasing size. Returns the bytes of the arena.
int64_t place_by_size(std::vector<Life>& lives, size_t steps) {
  std::stable_sort(lives.begin(), lives.end(), [](const Life& a, const Life& b) { return a.bytes > b.bytes; });
  // With larger tensors the memory has left the caches by the time it is used again. The search looks at every pair of
  // buffers for each, and more than a few hundred have no common cache.
  constexpr int64_t kCachedBytes = int64_t{2} << 20;
  constexpr size_t kCachedBuffers = 1024;
  const bool cached = lives.empty() || (lives.front().bytes <= kCachedBytes && lives.size() <= kCachedBuffers);
  int64_t arena_bytes = 0;
  std::vector<Life> placed;  // by offset
  for (Life& life : lives) {
    if (life.last < 0) life.offset = 0;  // a buffer that no step touches needs no room of its own
    if (life.offset < 0 && cached) life.offset = middle_fit(life, placed, static_cast<int>(steps));
    if (life.offset < 0) life.offset = best_fit(life, placed);
    arena_bytes = std::max(arena_bytes, life.offset + life.bytes);
    const auto at = std::upper_bound(placed.begin(), placed.end(), life.offset,
                                     [](int64_t offset, const Life& other) { return offset < other.offset; });
    placed.insert(at, life);
  }
  return arena_bytes;
}

}  // namespace

void plan_memory(Plan& plan) {
  std::vector<char> external(plan.buffers.size(), 0);
  for (int id : plan.inputs) external[id] = 1;
  for (int id : plan.outputs) external[id] = 1;
  const auto root = [&](int id) { return plan.buffers[id].alias_of >= 0 ? plan.buffers[id].alias_of : id; };
  std::vector<Life> lives(plan.buffers.size());
  for (size_t i = 0; i < lives.size(); ++i) {
    lives[i].buffer = static_cast<int>(i);
    lives[i].bytes = align64(plan.buffers[i].bytes());
  }
  for (size_t s = 0; s < plan.steps.size(); ++s)
    for (const auto* list : {&plan.steps[s].inputs, &plan.steps[s].outputs})
      for (int id : *list) {
        Life& life = lives[root(id)];
        life.first = std::min(life.first, static_cast<int>(s));
        life.last = std::max(life.last, static_cast<int>(s));
      }
  std::erase_if(lives,
                [&](const Life& life) { return external[life.buffer] || plan.buffers[life.buffer].alias_of >= 0; });
  constexpr size_t kManyBuffers = 8192;
  const size_t steps = plan.steps.size();
  plan.arena_bytes = lives.size() > kManyBuffers ? place_in_order(lives, steps) : place_by_size(lives, steps);
  for (const Life& life : lives) plan.buffers[life.buffer].offset = life.offset;
  for (Buffer& b : plan.buffers)
    if (b.alias_of >= 0) b.offset = plan.buffers[b.alias_of].offset;
}

}  // namespace octet::engine
