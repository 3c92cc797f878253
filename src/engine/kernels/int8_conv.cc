#include "engine/kernels/int8_conv.h"

#include <algorithm>
#include <bit>
#include <vector>

#include "base/error.h"

namespace octet::kernels {
namespace {

struct ChannelSpan {
  int64_t first = 0, last = 0;  // input channels a block reads, half open
};

ChannelSpan channels_of_block(const ConvGeometry& g, int64_t block) {
  const int64_t out_per_group = g.out_channels / g.groups, in_per_group = g.in_channels / g.groups;
  const int64_t oc0 = block * kChannelBlock, oc1 = std::min(oc0 + kChannelBlock, g.out_channels) - 1;
  return {oc0 / out_per_group * in_per_group, (oc1 / out_per_group + 1) * in_per_group};
}

// Bytes of one pixel that any block reads: the whole pixel without groups.
int64_t bytes_per_tap(const ConvGeometry& g) {
  const int64_t whole = pixel_bytes(g);
  if (g.groups == 1) return whole;
  int64_t bytes = 4;
  for (int64_t b = 0; b < padded_channels(g.out_channels) / kChannelBlock; ++b) {
    const ChannelSpan span = channels_of_block(g, b);
    bytes = std::max(bytes, (span.last + 3) / 4 * 4 - span.first / 4 * 4);
  }
  return std::min(bytes, whole);
}

}  // namespace

int64_t pixel_bytes(const ConvGeometry& g) {
  return channel_pitch(g.in_channels);
}

ConvLayout conv_layout(const ConvGeometry& g, int64_t c_pitch) {
  ConvLayout l;
  l.blocks = padded_channels(g.out_channels) / kChannelBlock;
  const bool one_run = g.groups == 1 && g.dilation_w == 1 && (g.kernel_w == 1 || c_pitch == pixel_bytes(g));
  l.segments_per_row = one_run ? 1 : g.kernel_w;
  l.segments = g.kernel_h * l.segments_per_row;
  l.dwords = (one_run ? g.kernel_w : 1) * bytes_per_tap(g) / 4;
  l.weight_bytes = l.blocks * l.segments * l.dwords * 64;
  return l;
}

int64_t block_channel_offset(const ConvGeometry& g, int64_t block) {
  if (g.groups == 1) return 0;
  return std::min(channels_of_block(g, block).first / 4 * 4, pixel_bytes(g) - bytes_per_tap(g));
}

void pack_conv_weights(const ConvGeometry& g, int64_t c_pitch, std::span<const int8_t> weights,
                       std::span<int8_t> packed) {
  const ConvLayout l = conv_layout(g, c_pitch);
  const int64_t in_per_group = g.in_channels / g.groups, out_per_group = g.out_channels / g.groups;
  OCTET_CHECK(static_cast<int64_t>(weights.size()) == g.out_channels * in_per_group * g.kernel_h * g.kernel_w);
  OCTET_CHECK(static_cast<int64_t>(packed.size()) == l.weight_bytes);
  std::fill(packed.begin(), packed.end(), int8_t{0});
  const bool one_run = l.segments_per_row < g.kernel_w;
  const int64_t taps = g.kernel_h * g.kernel_w;
  const int8_t* from = weights.data();
  for (int64_t oc = 0; oc < g.out_channels; ++oc, from += in_per_group * taps) {
    const int64_t block = oc / kChannelBlock;
    const int64_t first = oc / out_per_group * in_per_group - block_channel_offset(g, block);
    for (int64_t tap = 0; tap < taps; ++tap) {
      const int64_t segment = one_run ? tap / g.kernel_w : tap;
      const int64_t start = (one_run ? tap % g.kernel_w * pixel_bytes(g) : 0) + first;  // byte of the segment
      int8_t* to = packed.data() + (block * l.segments + segment) * l.dwords * 64 + oc % kChannelBlock * 4;
      for (int64_t ic = 0; ic < in_per_group; ++ic) {
        const auto byte = static_cast<size_t>(start + ic);
        to[byte / 4 * 64 + byte % 4] = from[ic * taps + tap];
      }
    }
  }
}

void make_acc_init(std::span<const int8_t> weights, int64_t out_channels, std::span<const int32_t> bias,
                   int32_t zero_point, std::span<int32_t> acc_init) {
  OCTET_CHECK(out_channels > 0 && weights.size() % out_channels == 0);
  OCTET_CHECK(static_cast<int64_t>(acc_init.size()) == padded_channels(out_channels));
  OCTET_CHECK(bias.empty() || static_cast<int64_t>(bias.size()) == out_channels);
  std::fill(acc_init.begin(), acc_init.end(), 0);
  const size_t per_channel = weights.size() / out_channels;
  for (int64_t oc = 0; oc < out_channels; ++oc) {
    int64_t sum = 0;
    for (size_t i = 0; i < per_channel; ++i) sum += weights[oc * per_channel + i];
    const int64_t value = (bias.empty() ? 0 : int64_t{bias[oc]}) - zero_point * sum;
    require(value >= INT32_MIN && value <= INT32_MAX, "output channel ", oc, ": bias ", bias.empty() ? 0 : bias[oc],
            " with the zero point's share ", -zero_point * sum,
            " does not fit 32 bits; check the bias and the scales of this layer");
    acc_init[oc] = static_cast<int32_t>(value);
  }
}

int64_t products_of_a_sum(const ConvGeometry& g) {
  return g.kernel_h * g.kernel_w * (g.in_channels / g.groups);
}

ChannelLimits channel_limits(std::span<const float> multiplier, std::span<const int32_t> acc_init, int64_t products) {
  OCTET_CHECK(!multiplier.empty() && !acc_init.empty());
  const auto [least, greatest] = std::minmax_element(multiplier.begin(), multiplier.end());
  const auto [low, high] = std::minmax_element(acc_init.begin(), acc_init.end());
  const int64_t start = std::max(-int64_t{*low}, int64_t{*high});
  const bool are_short =
      std::all_of(multiplier.begin(), multiplier.end(), [](float m) { return std::bit_cast<uint32_t>(m) % 4 == 0; });
  return {*least, *greatest, start, std::min(int64_t{1} << 31, start + products * 255 * 128), are_short};
}

ConvShare conv_share(const ConvArgs& args, int part, int parts) {
  const QTensor& out = args.epilogue.out;
  const ConvLayout l = conv_layout(args.geometry, args.in.c_pitch);
  ConvShare share{{0, out.n * out.h}, {0, l.blocks}};
  const int64_t activation_bytes = args.in.n * args.in.h * args.in.w * args.in.c_pitch;
  // Pairs of blocks: one block alone cannot use the wide register blockings.
  const int64_t pairs = (l.blocks + 1) / 2;
  // A thread's own rows are in its own cache, so sharing the rows wins while the weights are not much larger; with few
  // rows the shares are uneven besides.
  const int64_t bearable = share.rows.end < 4 * parts ? 2 : 12;
  const bool by_blocks =
      args.split == ConvSplit::kAuto
          ? share.rows.end < 2 * parts || (l.weight_bytes > bearable * activation_bytes && pairs >= parts)
          : args.split == ConvSplit::kChannels;
  if (by_blocks) {
    share.blocks = {std::min(l.blocks, pairs * part / parts * 2), std::min(l.blocks, pairs * (part + 1) / parts * 2)};
  } else {
    share.rows = {share.rows.end * part / parts, share.rows.end * (part + 1) / parts};
  }
  return share;
}

int64_t depthwise_weight_bytes(const ConvGeometry& g) {
  return g.kernel_h * g.kernel_w * padded_channels(g.out_channels);
}

void pack_depthwise_weights(const ConvGeometry& g, std::span<const int8_t> weights, std::span<int8_t> packed) {
  OCTET_CHECK(g.groups == g.in_channels && g.groups == g.out_channels);
  const int64_t taps = g.kernel_h * g.kernel_w, pitch = padded_channels(g.out_channels);
  OCTET_CHECK(static_cast<int64_t>(weights.size()) == taps * g.out_channels);
  OCTET_CHECK(static_cast<int64_t>(packed.size()) == taps * pitch);
  std::fill(packed.begin(), packed.end(), int8_t{0});
  for (int64_t c = 0; c < g.out_channels; ++c)
    for (int64_t t = 0; t < taps; ++t) packed[t * pitch + c] = weights[c * taps + t];
}

}  // namespace octet::kernels
