// ShuffleNet's order of channels: one pass, on codes and in floats.
#include <algorithm>

#include "lower/lower_test_util.h"

namespace octet::testing {
namespace {

using ir::OpKind;
using ::testing::HasSubstr;
using ::testing::Not;

// As PyTorch writes it (pixels apart), or with the pixels of the image as one axis.
ir::Value* shuffled(QuantNet& net, ir::Value* x, const ir::Shape& image, int64_t groups, bool flat) {
  const auto [n, c, h, w] = std::tuple(image[0], image[1], image[2], image[3]);
  std::vector<int64_t> parts = {n, groups, c / groups}, order = {0, 2, 1, 3};
  if (flat) {
    parts.push_back(h * w);
  } else {
    parts.insert(parts.end(), {h, w});
    order.push_back(4);
  }
  x = net.op(OpKind::kTranspose, {net.op(OpKind::kReshape, {x, net.ints(parts)})}, {{"perm", order}});
  return net.op(OpKind::kReshape, {x, net.ints(image)});
}

TEST(ChannelShuffle, IsOnePassOverCodes) {
  for (const auto& [channels, groups] : {std::pair<int64_t, int64_t>{116, 2}, {48, 2}, {30, 3}, {8, 4}, {12, 3}})
    for (const bool flat : {true, false}) {
      SCOPED_TRACE(str(channels, " channels, ", groups, " groups", flat ? ", flat" : ""));
      QuantNet net(71);
      const ir::Shape image = {2, channels, 7, 5};
      ir::Value* x = net.fq(net.conv(net.fq(net.input({2, 3, 7, 5}), 1.0f / 127), 3, channels, 1), 0.02f);
      x = shuffled(net, x, image, groups, flat);
      const std::vector<ir::Value*> halves = net.split(x, {channels / 2, channels / 2});
      // The one half is read, the other is handed on to the next Concat.
      ir::Value* y = net.fq(net.conv(halves[1], channels / 2, channels / 2, 1), 0.02f);
      y = shuffled(net, net.op(OpKind::kConcat, {halves[0], y}, {{"axis", int64_t{1}}}), image, groups, flat);
      net.finish({net.fq(net.conv(y, channels, 9, 1), 0.03f)});
      std::shared_ptr<const engine::Plan> plan;
      check_graph(net, {}, &plan);
      EXPECT_THAT(step_kinds(*plan), HasSubstr("channel_shuffle"));
      EXPECT_THAT(step_kinds(*plan), Not(HasSubstr("strided_copy")));
    }
}

TEST(ChannelShuffle, InFloatsStaysInTheLayoutOfImages) {
  QuantNet net(72);
  ir::Value* x = net.conv(net.input({2, 3, 6, 5}), 3, 24, 3, {.pad = 1, .quantized = false});
  x = shuffled(net, x, {2, 24, 6, 5}, 3, true);
  net.finish({net.conv(x, 24, 10, 1, {.quantized = false}), x});
  std::shared_ptr<const engine::Plan> plan;
  check_graph(net, {.bit_equal = false}, &plan);
  for (const engine::Step& s : plan->steps) EXPECT_NE(s.op, "Transpose");
}

// Somebody reads the groups, or the axes are others: the operators as they are.
TEST(ChannelShuffle, OtherTransposesAreNone) {
  QuantNet net(73);
  ir::Value* x = net.conv(net.input({1, 3, 4, 4}), 3, 8, 1, {.quantized = false});
  ir::Value* groups = net.op(OpKind::kReshape, {x, net.ints({1, 2, 4, 16})});
  ir::Value* turned = net.op(OpKind::kTranspose, {groups}, {{"perm", std::vector<int64_t>{0, 2, 1, 3}}});
  ir::Value* other = net.op(OpKind::kTranspose, {net.op(OpKind::kReshape, {x, net.ints({1, 4, 2, 16})})},
                            {{"perm", std::vector<int64_t>{0, 1, 3, 2}}});
  net.finish({net.op(OpKind::kReshape, {turned, net.ints({1, 8, 4, 4})}), groups,
              net.op(OpKind::kReshape, {other, net.ints({1, 8, 4, 4})})});
  std::shared_ptr<const engine::Plan> plan;
  check_graph(net, {.bit_equal = false}, &plan);
  for (const engine::Step& s : plan->steps) EXPECT_NE(s.op, "Channel shuffle");
}

}  // namespace
}  // namespace octet::testing
