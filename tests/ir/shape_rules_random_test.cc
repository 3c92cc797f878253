// Any file can reach the shape rules, so whatever stands in it they must give a type or a UserError. Random nodes from
// nasty numbers; run under the sanitizers this also finds overflow.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <map>
#include <random>

#include "ir/infer.h"
#include "ir/shape_rule_util.h"
#include "ir/test_graph.h"
#include "support/sanitized.h"

namespace octet::ir {
namespace {

class Random {
 public:
  explicit Random(uint64_t seed) : engine_(seed) {}
  size_t below(size_t n) { return static_cast<size_t>(engine_() % n); }
  int64_t number() {
    static constexpr int64_t kNasty[] = {0,
                                         1,
                                         2,
                                         3,
                                         4,
                                         7,
                                         -1,
                                         -2,
                                         12,
                                         64,
                                         1 << 20,
                                         (1 << 20) + 1,
                                         int64_t{1} << 31,
                                         int64_t{1} << 40,
                                         int64_t{1} << 62,
                                         -1 << 30,
                                         std::numeric_limits<int64_t>::max(),
                                         std::numeric_limits<int64_t>::min()};
    return below(3) ? static_cast<int64_t>(below(5)) : kNasty[below(std::size(kNasty))];
  }
  std::vector<int64_t> numbers(size_t limit) {
    std::vector<int64_t> out(below(limit + 1));
    for (int64_t& v : out) v = number();
    return out;
  }
  Shape shape() {
    Shape out(below(6));
    for (int64_t& d : out)
      d = below(6) == 0 ? kDynamic : below(40) == 0 ? kMaxDimension : static_cast<int64_t>(below(9));
    return out;
  }

 private:
  std::mt19937_64 engine_;
};

Attribute random_attribute(Random& random, const std::string& type) {
  static const std::vector<std::string> kWords = {"",        "NOTSET",     "SAME_UPPER",  "SAME_LOWER", "VALID",
                                                  "reflect", "not_larger", "not_smaller", "CRD",        "nonsense"};
  if (type == "int") return random.number();
  if (type == "float") return static_cast<float>(random.number());
  if (type == "string") return kWords[random.below(kWords.size())];
  return random.numbers(6);
}

Value* random_input(Random& random, Graph& graph) {
  switch (random.below(9)) {
    case 0:
      return nullptr;
    case 1:
      return graph.add_input("", {DataType::kFloat32, std::nullopt});
    case 2:
    case 3:
      return graph.add_constant("", ints(random.numbers(6)));
    case 4: {
      std::vector<float> values;
      for (const int64_t v : random.numbers(5)) values.push_back(static_cast<float>(v) / 2);
      return graph.add_constant("", Tensor::of<float>({static_cast<int64_t>(values.size())}, values));
    }
    case 5:
      return graph.add_input("", {random.below(2) ? DataType::kInt8 : DataType::kInt64, random.shape()});
    default:
      return graph.add_input("", floats(random.shape()));
  }
}

TEST(ShapeRulesRandom, GiveATypeOrAUserError) {
  Random random(20240601);
  std::map<std::string, int> accepted;
  constexpr int kRounds = testing::kSanitized ? 40000 : 200000;
  for (int round = 0; round < kRounds; ++round) {
    const OpInfo& info = all_ops()[random.below(all_ops().size())];
    Graph graph;
    std::vector<Value*> inputs;
    const int most = std::min(info.max_inputs, 5);
    const size_t count =
        static_cast<size_t>(info.min_inputs) + random.below(static_cast<size_t>(most - info.min_inputs + 1));
    for (size_t i = 0; i < count; ++i) inputs.push_back(random_input(random, graph));
    Attributes attributes;
    for (const AttributeInfo& a : info.attributes)
      if (random.below(2)) attributes[a.name] = random_attribute(random, a.type);
    std::vector<std::string> outputs;
    const size_t output_count = 1 + (info.max_outputs > 1 ? random.below(3) : 0);
    for (size_t i = 0; i < output_count; ++i) outputs.push_back("o" + std::to_string(i));
    Node* node = graph.add_node(info.kind, "n", inputs, outputs, attributes);
    try {
      infer_node(*node);
      accepted[info.name]++;
    } catch (const UserError& e) {
      ASSERT_EQ(std::string(e.what()).rfind("node 'n' (", 0), 0u) << e.what();
    }
    for (const Value* v : node->outputs) {
      for (const int64_t d : v->type.shape.value_or(Shape{}))
        ASSERT_TRUE(d >= kDynamic && d <= kMaxDimension) << info.name << " " << d;
    }
  }
  // The numbers are not so nasty that nothing gets through.
  for (const OpInfo& info : all_ops()) EXPECT_GT(accepted[info.name], 0) << info.name;
}

}  // namespace
}  // namespace octet::ir
