#include "data/epoch_order.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "base/error.h"
#include "data/counter_rng.h"

namespace octet::data {
namespace {

constexpr uint64_t kOrderStream = 0x6f72646572;  // keep these random numbers apart from the augmentation's
constexpr uint64_t kTurnStream = 0x7475726e73;

}  // namespace

EpochOrder::EpochOrder(std::vector<Portion> portions, uint64_t seed, bool shuffled) : seed_(seed), shuffle_(shuffled) {
  int64_t first = 0;
  for (const Portion& portion : portions) {
    const int64_t n = portion.images;
    OCTET_CHECK(n > 0 && portion.weight > 0, n, " images of weight ", portion.weight);
    const int64_t draws = std::max<int64_t>(1, std::llround(portion.weight * static_cast<double>(n)));
    Share& share = shares_.emplace_back();
    share.first = first;
    share.images = n;
    share.whole = draws / n;
    share.more = draws % n;
    if (share.more > 0) {
      share.turns.resize(static_cast<size_t>(n));
      std::iota(share.turns.begin(), share.turns.end(), int64_t{0});
      CounterRng random(seed, kTurnStream, shares_.size());
      shuffle(share.turns, random);
    }
    first += n;
    size_ += draws;
  }
}

std::vector<EpochOrder::Draw> EpochOrder::draws(int epoch) const {
  std::vector<Draw> out;
  out.reserve(static_cast<size_t>(size_));
  for (const Share& share : shares_) {
    for (int64_t repetition = 0; repetition < share.whole; ++repetition)
      for (int64_t i = 0; i < share.images; ++i) out.push_back({share.first + i, repetition});
    const int64_t begin = epoch % share.images * share.more % share.images;
    for (int64_t i = 0; i < share.more; ++i)
      out.push_back({share.first + share.turns[static_cast<size_t>((begin + i) % share.images)], share.whole});
  }
  CounterRng random(seed_, kOrderStream, static_cast<uint64_t>(epoch));
  if (shuffle_) shuffle(out, random);
  return out;
}

}  // namespace octet::data
