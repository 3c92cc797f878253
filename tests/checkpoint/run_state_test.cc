#include "checkpoint/run_state.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/error.h"

namespace octet::checkpoint {
namespace {

RunState example_state() {
  RunState run;
  run.epochs_done = 2, run.batches_done = 5, run.loss_sum = 3.25, run.best_metric = 61.5, run.best_epoch = 2;
  run.fingerprint = "float-0123456789abcdef";
  run.history = {{1, 1.5, 0.1, 2, {}}, {2, 1.25, 0.05, 2, {{"top1", 61.5}, {"loss", std::nan("")}}}};
  run.checksums = {{"state.safetensors", 0xfedcba9876543210}};
  return run;
}

TEST(RunState, RoundTrip) {
  const RunState read = parse_run_state(run_state_json(example_state()), "x");
  EXPECT_EQ(read.epochs_done, 2);
  EXPECT_EQ(read.batches_done, 5);
  EXPECT_EQ(read.best_metric, 61.5);
  EXPECT_EQ(read.history.at(1).metrics.at("top1"), 61.5);
  EXPECT_TRUE(std::isnan(read.history.at(1).metrics.at("loss")));
  EXPECT_EQ(read.checksums.at("state.safetensors"), 0xfedcba9876543210);
  EXPECT_EQ(run_state_json(read), run_state_json(example_state()));
}

// The message must name the entry: the checksum of the whole would refuse these, too.
TEST(RunState, EveryNumberHasItsRange) {
  using nlohmann::json;
  const std::pair<const char*, json> cases[] = {{"format", 99},
                                                {"format", 1},
                                                {"epochs_done", 9223372036854775808u},
                                                {"epochs_done", 2.7},
                                                {"epochs_done", -1},
                                                {"epochs_done", 1},
                                                {"batches_done", 1000000001},
                                                {"batches_done", "5"},
                                                {"ranks", 0},
                                                {"skipped", 6},
                                                {"back_off", nullptr},
                                                {"loss_sum", nullptr},
                                                {"best_metric", "high"},
                                                {"best_epoch", 3},
                                                {"best_epoch", 1.5},
                                                {"history", 7},
                                                {"checksums", json::array()}};
  for (const auto& [key, value] : cases) {
    json j = json::parse(run_state_json(example_state()));
    j[key] = value;
    try {
      parse_run_state(j.dump(), "x");
      ADD_FAILURE() << key << " " << value;
    } catch (const UserError& e) {
      // epochs_done 1 is in its own range, and less than what depends on it.
      const std::string named = std::string(key) == "epochs_done" && value == 1 ? "best_epoch" : key;
      EXPECT_NE(std::string(e.what()).find("'" + named + "'"), std::string::npos) << e.what();
    }
  }
}

TEST(RunState, EveryDamagedByteIsNoticed) {
  const std::string whole = run_state_json(example_state());
  for (size_t i = 0; i < whole.size(); ++i) {
    std::string damaged = whole;
    damaged[i] ^= 1;
    if (std::isspace(whole[i]) && std::isspace(damaged[i])) continue;
    EXPECT_THROW(parse_run_state(damaged, "x"), UserError) << i << " " << damaged;
  }
  for (size_t n = 0; n + 1 < whole.size(); ++n) EXPECT_THROW(parse_run_state(whole.substr(0, n), "x"), UserError) << n;
}

}  // namespace
}  // namespace octet::checkpoint
