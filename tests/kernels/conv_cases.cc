#include "kernels/conv_cases.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <sstream>
#include <stdexcept>

#include "engine/kernels/kernel_table.h"
#include "numerics/quantize.h"

namespace octet::kernels::testing {
namespace {

int64_t pick(std::mt19937& rng, int64_t low, int64_t high) {
  return std::uniform_int_distribution<int64_t>(low, high)(rng);
}
bool chance(std::mt19937& rng, double p) {
  return std::bernoulli_distribution(p)(rng);
}

int64_t output_size(int64_t in, int64_t kernel, int64_t dilation, int64_t stride, int64_t pads) {
  return (in + pads - (kernel - 1) * dilation - 1) / stride + 1;
}

}  // namespace

OwnedTensor random_tensor(std::mt19937& rng, int64_t n, int64_t h, int64_t w, int64_t c, const Halo& halo,
                          int32_t zero_point) {
  OwnedTensor t{.bytes = std::vector<uint8_t>(static_cast<size_t>(qtensor_bytes(n, h, w, c, halo))), .halo = halo};
  for (auto& b : t.bytes) b = static_cast<uint8_t>(rng());
  t.view = make_qtensor(t.bytes.data(), n, h, w, c, halo, zero_point);
  fill_halo(t.view, halo, {0, n * h});
  return t;
}

OwnedTensor random_input(std::mt19937& rng, int64_t n, int64_t h, int64_t w, int64_t c, const Halo& halo,
                         int32_t zero_point) {
  if (c <= 4 || !chance(rng, 0.3)) return random_tensor(rng, n, h, w, c, halo, zero_point);
  const int64_t before = chance(rng, 0.5) ? pick(rng, 0, 6) * 16 : pick(rng, 0, 100);
  OwnedTensor t = random_tensor(rng, n, h, w, before + c + pick(rng, 0, 60), halo, zero_point);
  t.view.data += before, t.view.c = c;
  return t;
}

void set_limits(ConvCase& c) {
  const auto channels = static_cast<size_t>(c.out.view.c);
  c.args.epilogue.limits = channel_limits({c.multiplier.data(), channels}, {c.acc_init.data(), channels},
                                          products_of_a_sum(c.args.geometry));
}

std::unique_ptr<ConvCase> make_conv_case(std::mt19937& rng, const ConvShape& shape, const ConvTail& tail) {
  auto c = std::make_unique<ConvCase>();
  c->shape = shape;
  c->tail = tail;
  const ConvGeometry& g = shape.geometry;
  // The bottom and right halo covers what the last output pixel reads.
  const int64_t pad_bottom = g.pad_top, pad_right = g.pad_left;
  int64_t out_h = output_size(shape.in_h, g.kernel_h, g.dilation_h, g.stride_h, g.pad_top + pad_bottom);
  int64_t out_w = output_size(shape.in_w, g.kernel_w, g.dilation_w, g.stride_w, g.pad_left + pad_right);
  // A transposed convolution may cut its last pixels off.
  if (out_h > 2 && chance(rng, 0.1)) out_h -= pick(rng, 1, 2);
  if (out_w > 2 && chance(rng, 0.1)) out_w -= pick(rng, 1, 2);
  const int64_t gap = tail.dense ? 0 : 1;  // at most, besides what is padded
  const auto some_input = tail.dense ? random_tensor : random_input;
  const Halo halo{g.pad_top + pick(rng, 0, gap), pad_bottom, g.pad_left, pad_right + pick(rng, 0, gap)};
  c->in =
      some_input(rng, shape.n, shape.in_h, shape.in_w, g.in_channels, halo, static_cast<int32_t>(pick(rng, 0, 255)));
  const Halo out_halo{pick(rng, 0, gap), pick(rng, 0, gap), pick(rng, 0, 2 * gap), pick(rng, 0, 2 * gap)};
  // Zero point 0, as behind a ReLU, may take a path of its own.
  const auto out_zero_point = static_cast<int32_t>(chance(rng, 0.3) ? 0 : pick(rng, 0, 255));
  // A phase of a transposed convolution writes every few pixels; small ones keep a distance below a block of channels.
  const int64_t step_h = chance(rng, 0.2) ? 1 + pick(rng, 1, 2) * gap : 1,
                step_w = chance(rng, 0.2) ? 1 + pick(rng, 1, 2) * gap : 1;
  c->out = random_tensor(rng, shape.n, out_h * step_h, out_w * step_w, g.out_channels, out_halo, out_zero_point);
  c->out.view.h = out_h, c->out.view.w = out_w;
  c->out.view.row_stride *= step_h, c->out.view.c_pitch *= step_w;
  c->residual = some_input(rng, shape.n, out_h, out_w, g.out_channels, Halo{0, 0, gap, 0},
                           static_cast<int32_t>(chance(rng, 0.3) ? 0 : pick(rng, 0, 255)));
  c->weights.resize(static_cast<size_t>(g.out_channels * g.in_channels / g.groups * g.kernel_h * g.kernel_w));
  for (auto& w : c->weights) w = static_cast<int8_t>(pick(rng, -128, 127));
  if (chance(rng, 0.2))  // the worst case for kernels whose intermediate sums could saturate
    for (auto& w : c->weights) w = chance(rng, 0.9) ? -128 : 127;
  const int64_t padded = padded_channels(g.out_channels);
  c->bias.resize(static_cast<size_t>(g.out_channels));
  for (auto& b : c->bias) b = static_cast<int32_t>(pick(rng, -20000, 20000));
  c->acc_init.resize(static_cast<size_t>(padded));
  make_acc_init(c->weights, g.out_channels, c->bias, c->in.view.zero_point, c->acc_init);
  const int64_t bytes = shape.depthwise ? depthwise_weight_bytes(g) : conv_layout(g, c->in.view.c_pitch).weight_bytes;
  c->packed.reset(static_cast<int8_t*>(std::aligned_alloc(64, static_cast<size_t>((bytes + 63) / 64 * 64))));
  const std::span<int8_t> packed(c->packed.get(), static_cast<size_t>(bytes));
  if (shape.depthwise) {
    pack_depthwise_weights(g, c->weights, packed);
  } else {
    pack_conv_weights(g, c->in.view.c_pitch, c->weights, packed);
  }

  const double taps = static_cast<double>(c->weights.size()) / static_cast<double>(g.out_channels);
  std::uniform_real_distribution<float> unit(0.3f, 1.0f);
  c->multiplier.resize(static_cast<size_t>(padded), 0.0f);
  for (int64_t i = 0; i < g.out_channels; ++i)
    c->multiplier[i] = unit(rng) * static_cast<float>((chance(rng, 0.1) ? 40.0 : 1.0) / (70.0 * std::sqrt(taps + 1)));
  if (tail.function)  // steps are finer than codes
    for (float& m : c->multiplier) m *= static_cast<float>(pick(rng, 1, 200));
  if (tail.function && chance(rng, 0.7))  // as the compiler makes them, for lines_shortcut()
    for (float& m : c->multiplier) m = std::bit_cast<float>(std::bit_cast<uint32_t>(m) & ~3u);
  Epilogue& e = c->args.epilogue;
  c->args.geometry = g;
  e.out = c->out.view;
  e.multiplier = c->multiplier.data();
  set_limits(*c);
  if (tail.narrow) {
    // From 0 on, as signed codes behind a ReLU are stored.
    const bool from_zero = chance(rng, 0.5);
    if (from_zero) e.out.zero_point = c->out.view.zero_point = 0;
    e.lo = static_cast<int32_t>(from_zero ? 0 : pick(rng, 0, 128));
    e.hi = static_cast<int32_t>(chance(rng, 0.5) ? 127 : pick(rng, e.lo, 255));
    if (e.hi < e.lo) e.hi = e.lo;
  }
  if (tail.table) {
    c->table.resize(256);
    for (auto& t : c->table) t = static_cast<uint8_t>(rng());
    e.table = c->table.data();
  }
  if (tail.function) {
    // Any bytes are a function.
    e.function.rises = static_cast<int32_t>(pick(rng, 0, kMostRises));
    e.function.turn = static_cast<int32_t>(pick(rng, -128, 127));
    if (chance(rng, 0.4)) e.function.tails = std::ldexp(1.0f, -static_cast<int>(pick(rng, 1, kMostTailShift)));
    const bool lines = chance(rng, 0.5);
    c->function.resize(static_cast<size_t>(lines ? kLineBytes : CodeFunction::bytes(e.function.rises)));
    for (auto& b : c->function) b = static_cast<uint8_t>(rng());
    (lines ? e.function.lines : e.function.rows) = c->function.data();
    e.function.line_shift = static_cast<int32_t>(pick(rng, kLeastLineShift, kGreatestLineShift));
    e.out.zero_point = 0, e.lo = kLeastStep, e.hi = kGreatestStep;
  }
  if (tail.residual) {
    e.residual = c->residual.view;
    e.residual_multiplier = unit(rng) * (tail.function ? 100.0f : 1.0f);
    if (tail.rounds_twice) {
      e.rounds_twice = true;
      e.mid_zero_point = static_cast<int32_t>(pick(rng, 0, 255));
      e.mid_lo = static_cast<int32_t>(pick(rng, 0, 60));
      e.mid_hi = static_cast<int32_t>(pick(rng, 150, 255));
      e.mid_multiplier = unit(rng) * (tail.function ? 100.0f : 1.0f);
      const auto fuses = isa_supported(Isa::kAvx2) && !tail.function ? kernels(Isa::kAvx2).residual_sum_fuses : nullptr;
      e.sum_fuses = fuses && fuses(e);
    }
  }
  if (tail.to_float) {
    const size_t elements = static_cast<size_t>(shape.n * out_h * out_w * g.out_channels);
    c->float_out.assign(elements, 0.0f);
    e.float_out = c->float_out.data();
    e.out.data = nullptr;
    if (tail.residual) {
      c->float_residual.resize(elements);
      for (auto& f : c->float_residual) f = unit(rng) * 10 - 5;
      e.float_residual = c->float_residual.data();
    }
    if (tail.narrow) e.float_lo = -1.5f, e.float_hi = 2.25f;
  }
  c->args.in = c->in.view;
  c->args.weights = c->packed.get();
  c->args.acc_init = c->acc_init.data();

  std::ostringstream name;
  name << (shape.depthwise ? "depthwise " : "conv ") << shape.n << "x" << shape.in_h << "x" << shape.in_w << "x"
       << g.in_channels << " -> " << g.out_channels << " groups " << g.groups << " kernel " << g.kernel_h << "x"
       << g.kernel_w << " stride " << g.stride_h << "," << g.stride_w << " dilation " << g.dilation_h << ","
       << g.dilation_w << " pad " << g.pad_top << "," << g.pad_left << (tail.residual ? " residual" : "")
       << (tail.rounds_twice ? " twice" : "") << (tail.table ? " table" : "") << (tail.function ? " function" : "")
       << (tail.to_float ? " float" : "") << (tail.narrow ? " limits" : "");
  c->name = name.str();
  return c;
}

std::unique_ptr<ConvCase> random_conv_case(std::mt19937& rng, bool depthwise) {
  ConvShape s;
  ConvGeometry& g = s.geometry;
  s.depthwise = depthwise;
  s.n = pick(rng, 1, 2);
  g.kernel_h = pick(rng, 1, 7);
  g.kernel_w = chance(rng, 0.7) ? g.kernel_h : pick(rng, 1, 7);
  if (chance(rng, 0.5)) g.kernel_h = g.kernel_w = chance(rng, 0.5) ? 3 : (depthwise ? 5 : 1);
  g.stride_h = pick(rng, 1, 3);
  g.stride_w = chance(rng, 0.7) ? g.stride_h : pick(rng, 1, 3);
  g.dilation_h = chance(rng, 0.75) ? 1 : 2;
  g.dilation_w = chance(rng, 0.75) ? 1 : 2;
  g.pad_top = pick(rng, 0, g.kernel_h - 1);
  g.pad_left = pick(rng, 0, g.kernel_w - 1);
  s.in_h = pick(rng, 1, 9) + (g.kernel_h - 1) * g.dilation_h;
  s.in_w = pick(rng, 1, 33) + (g.kernel_w - 1) * g.dilation_w;
  if (depthwise) {
    g.in_channels = g.out_channels = g.groups = chance(rng, 0.3) ? pick(rng, 1, 5) * 16 : pick(rng, 1, 140);
  } else {
    constexpr int64_t kGroups[] = {1, 1, 1, 1, 2, 3, 4, 8};
    g.groups = kGroups[pick(rng, 0, 7)];
    g.in_channels = g.groups * pick(rng, 1, std::max<int64_t>(1, 70 / g.groups));
    g.out_channels = g.groups * pick(rng, 1, std::max<int64_t>(1, (chance(rng, 0.3) ? 140 : 70) / g.groups));
  }
  ConvTail tail;
  tail.to_float = chance(rng, 0.15);
  tail.residual = chance(rng, 0.35);
  tail.rounds_twice = tail.residual && !tail.to_float && chance(rng, 0.4);
  tail.table = !tail.to_float && chance(rng, 0.2);
  tail.function = !tail.to_float && !tail.table && chance(rng, 0.3);
  tail.narrow = !tail.function && chance(rng, 0.5);
  return make_conv_case(rng, s, tail);
}

void run_conv(const KernelTable& table, ConvCase& c, std::mt19937& rng) {
  const int64_t rows = c.out.view.n * c.out.view.h;
  const int64_t row_cut = pick(rng, 0, rows);
  for (const Range r : {Range{0, row_cut}, Range{row_cut, rows}}) {
    if (c.shape.depthwise) {
      table.depthwise(c.args, r);
      continue;
    }
    const int64_t blocks = conv_layout(c.args.geometry, c.args.in.c_pitch).blocks;
    const int64_t block_cut = pick(rng, 0, blocks);
    table.conv(c.args, r, Range{0, block_cut});
    table.conv(c.args, r, Range{block_cut, blocks});
  }
}

ConvShape square_conv(int64_t size, int64_t in_channels, int64_t out_channels, int64_t kernel, int64_t stride,
                      int64_t n) {
  return {n,
          size,
          size,
          {.in_channels = in_channels,
           .out_channels = out_channels,
           .kernel_h = kernel,
           .kernel_w = kernel,
           .stride_h = stride,
           .stride_w = stride,
           .pad_top = kernel / 2,
           .pad_left = kernel / 2}};
}

void run_tactic(const ConvTactic& tactic, ConvArgs args, std::span<const Range> rows, std::span<const Range> blocks,
                const std::string& name) {
  constexpr uint8_t kGuard = 0xa5;
  constexpr int64_t kGuardBytes = 64;
  const auto allocate = [](int64_t bytes) {
    auto* p = static_cast<uint8_t*>(std::aligned_alloc(64, static_cast<size_t>((bytes + 63) / 64 * 64 + kGuardBytes)));
    std::memset(p, kGuard, static_cast<size_t>((bytes + 63) / 64 * 64 + kGuardBytes));
    return std::unique_ptr<uint8_t, ConvCase::Free>(p);
  };
  const auto untouched = [](const uint8_t* p, int64_t bytes) {
    for (int64_t i = bytes; i < (bytes + 63) / 64 * 64 + kGuardBytes; ++i)
      if (p[i] != kGuard) return false;
    return true;
  };
  const int64_t prepared_bytes = tactic.prepared_bytes ? tactic.prepared_bytes(args) : 0;
  const int64_t scratch_bytes = tactic.scratch_bytes ? tactic.scratch_bytes(args) : 0;
  const int64_t kept_bytes = tactic.kept_bytes ? tactic.kept_bytes(args) : 0;
  const auto prepared = allocate(prepared_bytes), scratch = allocate(scratch_bytes), kept = allocate(kept_bytes);
  std::memset(kept.get(), 0, static_cast<size_t>(kept_bytes));
  args.prepared = reinterpret_cast<const std::byte*>(prepared.get());
  args.scratch = reinterpret_cast<std::byte*>(scratch.get());
  args.kept = reinterpret_cast<std::byte*>(kept.get());
  if (tactic.prepare) tactic.prepare(args, reinterpret_cast<std::byte*>(prepared.get()));
  for (const Range r : rows)
    for (const Range b : blocks) tactic.run(args, r, b);
  if (!untouched(prepared.get(), prepared_bytes) || !untouched(scratch.get(), scratch_bytes) ||
      !untouched(kept.get(), kept_bytes))
    throw std::runtime_error(std::string(tactic.name) + " wrote beyond its memory in " + name);
}

void run_tactic(const ConvTactic& tactic, ConvCase& c, std::mt19937& rng) {
  const int64_t rows = c.out.view.n * c.out.view.h, blocks = conv_layout(c.args.geometry, c.args.in.c_pitch).blocks;
  const int64_t row_cut = pick(rng, 0, rows), block_cut = pick(rng, 0, blocks);
  const Range row_shares[] = {{0, row_cut}, {row_cut, rows}}, block_shares[] = {{0, block_cut}, {block_cut, blocks}};
  run_tactic(tactic, c.args, row_shares, block_shares, c.name);
}

std::vector<uint8_t> take_output(ConvCase& c) {
  std::vector<uint8_t> bytes;
  if (c.tail.to_float) {
    bytes.resize(c.float_out.size() * sizeof(float));
    std::memcpy(bytes.data(), c.float_out.data(), bytes.size());
    std::fill(c.float_out.begin(), c.float_out.end(), 0.0f);
    return bytes;
  }
  const QTensor& o = c.out.view;
  for (int64_t r = 0; r < o.n * o.h; ++r)
    for (int64_t x = 0; x < o.w; ++x) {
      uint8_t* p = o.data + r / o.h * o.image_stride + r % o.h * o.row_stride + x * o.c_pitch;
      bytes.insert(bytes.end(), p, p + o.c);
      std::memset(p, 0, static_cast<size_t>(o.c));
    }
  return bytes;
}

namespace {

// The step'th place of all, walked cell by cell, of a sum that counts in full up to 16384.
uint8_t function_at(const ConvCase& c, float sum) {
  const CodeFunction& f = c.args.epilogue.function;
  const float near = std::clamp(sum, -16384.0f, 16384.0f), beyond = sum - near;
  const int32_t step = numerics::round_to_int(near + beyond * f.tails, -32768, 32767, 0);
  if (f.lines) {
    // Cells of 1,024 steps and places of 8; the lines begin with that of step 0.
    const int32_t cell = (step + 65536) / 1024 % 64, from = (step + 65536) / 8 % 256;
    const int32_t place = (from + f.lines[128 + cell]) % 256, slope = static_cast<int8_t>(f.lines[64 + cell]);
    const int32_t rise = static_cast<int32_t>(std::floor(std::ldexp(slope * place, -f.line_shift)));
    return static_cast<uint8_t>(f.lines[cell] + rise);
  }
  const int32_t at = step + 32768, cell = at / 256;
  int32_t place = at % 256;
  if (cell - 128 < f.turn) place = 255 - place;
  const int32_t column = (cell + 128) % 256;  // rows begin with cell 0
  int32_t code = c.function[static_cast<size_t>(column)];
  for (int32_t i = 1; i <= f.rises; ++i) code += c.function[static_cast<size_t>(i * 256 + column)] < place ? 1 : 0;
  return static_cast<uint8_t>(code % 256);
}

}  // namespace

std::vector<uint8_t> expected_output(const ConvCase& c) {
  const ConvGeometry& g = c.shape.geometry;
  const QTensor &in = c.in.view, &out = c.out.view;
  const Epilogue& e = c.args.epilogue;
  const int64_t icg = g.in_channels / g.groups, ocg = g.out_channels / g.groups;
  std::vector<uint8_t> bytes;
  for (int64_t n = 0; n < out.n; ++n)
    for (int64_t y = 0; y < out.h; ++y)
      for (int64_t x = 0; x < out.w; ++x)
        for (int64_t oc = 0; oc < g.out_channels; ++oc) {
          int64_t acc = c.bias[oc];
          for (int64_t ic = 0; ic < icg; ++ic)
            for (int64_t ky = 0; ky < g.kernel_h; ++ky)
              for (int64_t kx = 0; kx < g.kernel_w; ++kx) {
                const int64_t iy = y * g.stride_h - g.pad_top + ky * g.dilation_h;
                const int64_t ix = x * g.stride_w - g.pad_left + kx * g.dilation_w;
                if (iy < 0 || iy >= in.h || ix < 0 || ix >= in.w) continue;
                const int64_t q =
                    in.data[n * in.image_stride + iy * in.row_stride + ix * in.c_pitch + oc / ocg * icg + ic];
                acc += (q - in.zero_point) * c.weights[((oc * icg + ic) * g.kernel_h + ky) * g.kernel_w + kx];
              }
          const auto acc32 = static_cast<int32_t>(acc);
          if (c.tail.to_float) {
            float v = static_cast<float>(acc32) * c.multiplier[oc];
            if (c.tail.residual) v += c.float_residual[((n * out.h + y) * out.w + x) * out.c + oc];
            v = std::clamp(v, e.float_lo, e.float_hi);
            uint8_t raw[4];
            std::memcpy(raw, &v, 4);
            bytes.insert(bytes.end(), raw, raw + 4);
            continue;
          }
          if (c.tail.function) {
            float sum = static_cast<float>(acc32) * c.multiplier[oc];
            if (c.tail.rounds_twice) {
              const int32_t mid = numerics::requantize(acc32, c.multiplier[oc], e.mid_zero_point, e.mid_lo, e.mid_hi);
              sum = static_cast<float>(mid - e.mid_zero_point) * e.mid_multiplier;
            }
            if (c.tail.residual) {
              const QTensor& res = c.residual.view;
              const uint8_t r = res.data[n * res.image_stride + y * res.row_stride + x * res.c_pitch + oc];
              sum += static_cast<float>(r - res.zero_point) * e.residual_multiplier;
            }
            bytes.push_back(function_at(c, sum));
            continue;
          }
          int32_t q = numerics::requantize(acc32, c.multiplier[oc], out.zero_point, e.lo, e.hi);
          if (c.tail.residual) {
            const QTensor& res = c.residual.view;
            const int32_t r =
                res.data[n * res.image_stride + y * res.row_stride + x * res.c_pitch + oc] - res.zero_point;
            q = numerics::requantize_with_residual(acc32, c.multiplier[oc], r, e.residual_multiplier, out.zero_point,
                                                   e.lo, e.hi);
            if (c.tail.rounds_twice) {
              const int32_t mid = numerics::requantize(acc32, c.multiplier[oc], e.mid_zero_point, e.mid_lo, e.mid_hi) -
                                  e.mid_zero_point;
              q = numerics::add_quantized(mid, e.mid_multiplier, r, e.residual_multiplier, out.zero_point, e.lo, e.hi);
            }
          }
          bytes.push_back(c.tail.table ? c.table[static_cast<size_t>(q)] : static_cast<uint8_t>(q));
        }
  return bytes;
}

}  // namespace octet::kernels::testing
