#include "engine/step_claims.h"

namespace octet::engine {

StepClaims::StepClaims(int parts)
    : claims_(std::make_unique<Claim[]>(parts)), done_(std::make_unique<Signal[]>(parts)) {}

// Relaxed throughout: that one thread alone gets the part is the exchange's atomicity, which has no need of an order,
// and the tensors are ordered by done_ (release in finish, acquire in every look) and by what opens a run.
bool StepClaims::claim(int part, uint64_t step, int thread) {
  std::atomic<uint64_t>& word = claims_[part].word;
  uint64_t last = word.load(std::memory_order_relaxed);
  // Fails only where another thread has claimed in between, as the words only rise: this step, or a later one.
  return last / kMostThreads < step &&
         word.compare_exchange_strong(last, step * kMostThreads + thread, std::memory_order_relaxed,
                                      std::memory_order_relaxed);
}

// No exchange: all steps that could be claimed before are claimed, so nobody else writes the word until the next are
// open, and who opens them publishes this, too.
void StepClaims::close(int part, uint64_t last) {
  claims_[part].word.store(last * kMostThreads, std::memory_order_relaxed);
}

int StepClaims::claimant(int part) const {
  return static_cast<int>(claims_[part].word.load(std::memory_order_relaxed) % kMostThreads);
}

}  // namespace octet::engine
