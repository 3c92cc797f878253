// Static memory plan: offline best fit. Buffers are placed by decreasing size, each in the smallest gap that is free
// during its whole life; large tensors come first because they decide the size of the arena.
#include <algorithm>
#include <limits>

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

// The best place for `life` among those placed that live at the same time (sorted by offset).
int64_t best_fit(const Life& life, const std::vector<Life>& placed) {
  int64_t best = -1, best_gap = std::numeric_limits<int64_t>::max(), end = 0;
  for (const Life& other : placed) {
    if (other.last < life.first || other.first > life.last) continue;
    const int64_t gap = other.offset - end;
    if (gap >= life.bytes && gap < best_gap) best = end, best_gap = gap;
    end = std::max(end, other.offset + other.bytes);
  }
  return best >= 0 ? best : end;
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
  std::vector<Life> order;
  for (const Life& life : lives) {
    if (external[life.buffer] || plan.buffers[life.buffer].alias_of >= 0) continue;
    order.push_back(life);
  }
  std::stable_sort(order.begin(), order.end(), [](const Life& a, const Life& b) { return a.bytes > b.bytes; });
  std::vector<Life> placed;
  plan.arena_bytes = 0;
  for (Life& life : order) {
    life.offset = life.last < 0 ? 0 : best_fit(life, placed);  // a buffer that no step touches needs no room of its own
    plan.buffers[life.buffer].offset = life.offset;
    plan.arena_bytes = std::max(plan.arena_bytes, life.offset + life.bytes);
    const auto at = std::upper_bound(placed.begin(), placed.end(), life.offset,
                                     [](int64_t offset, const Life& other) { return offset < other.offset; });
    placed.insert(at, life);
  }
  for (Buffer& b : plan.buffers)
    if (b.alias_of >= 0) b.offset = plan.buffers[b.alias_of].offset;
}

}  // namespace octet::engine
