// Who does which part of which step, and which parts are done. Every part of a step belongs to the thread that claims
// it first, so that nobody waits for a thread that the system has not let begin.
//
// Steps are numbered through all runs of a team and never again. Each part has two numbers, in cache lines of their
// own: the last step in which it was claimed, which its usual thread alone touches while all are prompt, and the last
// step in which it was done, which the others look at. So a claim costs no traffic between cores on a quiet machine.
//
// Rule: who claims a part of a step has seen all parts of the step before as done (is_done, wait), or has learned from
// one that has. A step with a part that is not done cannot be left behind by anybody, so a claim that succeeds is never
// one of an old step.
#pragma once
#include <cstdint>
#include <memory>

#include "engine/signal.h"

namespace octet::engine {

class StepClaims {
 public:
  static constexpr int kMostThreads = 1024;

  explicit StepClaims(int parts);

  // Takes the part for `thread`; false: it is taken. Orders nothing by itself: what the step reads is visible by the
  // rule above.
  bool claim(int part, uint64_t step, int thread);
  // Nobody claims this part in any step up to `last`. Before the first of these steps is open.
  void close(int part, uint64_t last);
  // Who claimed the part last.
  int claimant(int part) const;

  // By who has claimed it. Everything done before is visible to who sees it as done.
  void finish(int part, uint64_t step) { done_[part].post(step); }
  bool is_done(int part, uint64_t step) const { return done_[part].number() >= step; }
  // Looks at the part so many times, one at least.
  bool look_for(int part, uint64_t step, int looks) const { return done_[part].look_for(step, looks); }
  bool spin_for(int part, uint64_t step, SpinTime spin) const { return done_[part].spin_for(step, spin); }
  void wait(int part, uint64_t step, SpinTime spin) { done_[part].wait(step, spin); }

 private:
  struct alignas(64) Claim {
    std::atomic<uint64_t> word{0};  // step * kMostThreads + thread
  };
  std::unique_ptr<Claim[]> claims_;
  std::unique_ptr<Signal[]> done_;
};

}  // namespace octet::engine
