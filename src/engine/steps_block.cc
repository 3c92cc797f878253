#include "engine/steps_block.h"

#include <algorithm>
#include <vector>

#include "engine/step_reader.h"
#include "engine/steps_conv.h"

namespace octet::engine {
namespace {

using kernels::KernelTable;
using kernels::Range;

int32_t code(const StepReader& r, const std::string& key) {
  return static_cast<int32_t>(r.integer(key, 0, 255));
}

struct SqueezeExcite {
  kernels::MeanOfSumsArgs mean;  // without tensors
  std::vector<kernels::ConvArgs> layers;
  kernels::MulArgs mul;
  int64_t h = 0, scratch_bytes = 0;
  int32_t gate_zero_point = 0;
  int x = -1, sums = -1, y = -1;

  // The gate of image n, in `scratch`.
  const uint8_t* gate(const Memory& m, const KernelTable& table, int64_t n, uint8_t* scratch) const {
    kernels::MeanOfSumsArgs squeeze = mean;
    squeeze.sums = static_cast<const int32_t*>(m.data[sums]) + n * mean.rows * mean.channels;
    squeeze.out = scratch;
    table.mean_of_sums(squeeze);
    uint8_t* in = scratch;
    for (kernels::ConvArgs args : layers) {
      const kernels::ConvGeometry& g = args.geometry;
      uint8_t* out = in + place(g.in_channels);
      args.in = pixel(in, g.in_channels);
      const int32_t zero_point = args.epilogue.out.zero_point;
      args.epilogue.out = pixel(out, g.out_channels);
      args.epilogue.out.zero_point = zero_point;
      table.pixel_conv(args);
      in = out;
    }
    return in;
  }
  // The codes of all layers and of the mean, for all images.
  void show(const Memory& m, const KernelTable& table, int64_t images,
            const std::function<void(size_t k, int64_t images, std::span<const uint8_t> codes)>& to) const {
    std::vector<std::vector<uint8_t>> codes(layers.size() + 1);
    auto* scratch = reinterpret_cast<uint8_t*>(m.scratch_of(0));
    for (int64_t n = 0; n < images; ++n) {
      gate(m, table, n, scratch);
      const uint8_t* at = scratch;
      int64_t channels = layers.front().geometry.in_channels;
      for (size_t i = 0; i <= layers.size(); ++i) {
        std::vector<uint8_t>& own = codes[layers.size() - i];
        own.insert(own.end(), at, at + channels);
        at += place(channels);
        if (i < layers.size()) channels = layers[i].geometry.out_channels;
      }
    }
    for (size_t k = 0; k < codes.size(); ++k) to(k, images, codes[k]);
  }
  // Bytes of one pixel, with room to read over its end.
  static int64_t place(int64_t channels) { return (channels + 63) / 64 * 64 + kernels::kReadSlack; }
  static kernels::QTensor pixel(uint8_t* data, int64_t channels) {
    const int64_t pitch = kernels::channel_pitch(channels);
    return {.data = data,
            .n = 1,
            .h = 1,
            .w = 1,
            .c = channels,
            .c_pitch = pitch,
            .row_stride = pitch,
            .image_stride = pitch};
  }
};

kernels::ConvArgs read_layer(const Plan& plan, const StepReader& r, const std::string& key, int64_t in, int64_t out) {
  kernels::ConvArgs args{.geometry = {.in_channels = in, .out_channels = out}};
  const int64_t padded = kernels::padded_channels(out);
  const int64_t bytes = kernels::conv_layout(args.geometry, kernels::channel_pitch(in)).weight_bytes;
  args.weights = r.constant<int8_t>(key + "_weights", bytes).data();
  args.acc_init = r.constant<int32_t>(key + "_acc_init", padded).data();
  kernels::Epilogue& e = args.epilogue;
  e.multiplier = r.finite_constant(key + "_multiplier", padded).data();
  e.limits =
      kernels::channel_limits({e.multiplier, static_cast<size_t>(out)}, {args.acc_init, static_cast<size_t>(out)},
                              kernels::products_of_a_sum(args.geometry));
  if (r.has_constant(key + "_function")) {
    read_code_function(r, key + "_function", &e);
    return args;
  }
  if (r.has_constant(key + "_table")) e.table = r.constant<uint8_t>(key + "_table", 256).data();
  e.out.zero_point = code(r, key + "_zero_point");
  e.lo = code(r, key + "_lo");
  e.hi = static_cast<int32_t>(r.integer(key + "_hi", e.lo, 255));
  return args;
}

}  // namespace

void check_row_sums(const StepReader& r, const Buffer& codes, const Buffer& sums) {
  r.check(sums.layout == Layout::kSums && sums.shape.size() == 3 && sums.shape[0] == codes.n() &&
              sums.shape[1] == codes.h() && sums.shape[2] == kernels::padded_channels(codes.c()),
          "'", sums.name, "' does not hold the row sums of '", codes.name, "'");
  r.check(codes.h() * codes.w() <= 1 << 22, "the image is too large for an exact sum");
}

PreparedStep prepare_row_sums(const Plan& plan, const Step& step, const KernelTable& table) {
  const StepReader r(plan, step);
  r.arity(1, 1);
  const Buffer& in = r.codes_in(0);
  check_row_sums(r, in, r.out_buffer());
  const int x = r.in(0), y = r.out();
  const int64_t rows = in.n() * in.h();
  return {[=, kernel = table.row_sums](const Memory& m, int part, int parts) {
            kernel(kernels::RowSumsArgs{.in = m.q(x), .sums = static_cast<int32_t*>(m.data[y])},
                   share_of(rows, part, parts));
          },
          table.row_sums.isa};
}

PreparedStep prepare_squeeze_excite(const Plan& plan, const Step& step, const KernelTable& table) {
  const StepReader r(plan, step);
  r.arity(2, 1);
  const Buffer &x = r.codes_in(0), &y = r.codes_out();
  check_row_sums(r, x, r.in_buffer(1));
  r.check(x.n() == y.n() && x.c() == y.c() && x.h() == y.h() && x.w() == y.w(), "'", x.name, "' and '", y.name,
          "' differ in shape");
  const int64_t count = r.integer("layers", 1, 8), max_channels = 1 << 20;
  SqueezeExcite block{.h = x.h(), .x = r.in(0), .sums = r.in(1), .y = r.out()};
  kernels::MeanOfSumsArgs& mean = block.mean;
  mean = {.rows = x.h(),
          .channels = kernels::padded_channels(x.c()),
          .pixels = x.h() * x.w(),
          .in_zero_point = x.zero_point,
          .multiplier =
              numerics::average_multiplier(x.scale, static_cast<int32_t>(x.h() * x.w()), r.positive("mean_scale")),
          .zero_point = code(r, "mean_zero_point"),
          .lo = code(r, "mean_lo")};
  mean.hi = static_cast<int32_t>(r.integer("mean_hi", mean.lo, 255));
  int64_t channels = x.c();
  r.check(channels <= max_channels, "too many channels");
  block.scratch_bytes = SqueezeExcite::place(channels);
  for (int64_t i = 0; i < count; ++i) {
    const std::string key = std::to_string(i);
    const int64_t out = i + 1 == count ? x.c() : r.integer(key + "_channels", 1, max_channels);
    block.layers.push_back(read_layer(plan, r, key, channels, out));
    channels = out;
    block.scratch_bytes += SqueezeExcite::place(channels);
  }
  block.gate_zero_point = code(r, "gate_zero_point");
  block.mul.multiplier = r.real("multiplier");
  block.mul.lo = static_cast<int32_t>(r.integer_or("lo", 0, 0, 255));
  block.mul.hi = static_cast<int32_t>(r.integer_or("hi", 255, block.mul.lo, 255));
  const int64_t rows = x.n() * x.h();
  return {
      .run =
          [block, rows, &table](const Memory& m, int part, int parts) {
            const Range share = share_of(rows, part, parts);
            auto* scratch = reinterpret_cast<uint8_t*>(m.scratch_of(part));
            for (int64_t row = share.begin; row < share.end;) {
              const int64_t n = row / block.h, end = std::min(share.end, (n + 1) * block.h);
              kernels::MulArgs mul = block.mul;
              mul.a = m.q(block.x), mul.out = m.q(block.y);
              mul.b = SqueezeExcite::pixel(const_cast<uint8_t*>(block.gate(m, table, n, scratch)), mul.a.c);
              mul.b.zero_point = block.gate_zero_point;
              table.mul(mul, Range{row, end});
              row = end;
            }
          },
      .isa = table.mul.isa,
      .kernel = "squeeze_excite",
      .scratch_bytes = block.scratch_bytes,
      .inner = [block, images = x.n(), &table](const Memory& m, const auto& to) { block.show(m, table, images, to); }};
}

}  // namespace octet::engine
