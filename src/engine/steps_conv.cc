#include "engine/steps_conv.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/window.h"
#include "engine/file_constants.h"
#include "engine/step_reader.h"
#include "engine/steps_block.h"
#include "engine/tactics.h"

namespace octet::engine {
namespace {

using kernels::KernelTable;
constexpr int64_t kMaxWindow = 1 << 16;

// The rows of a matrix are images of one pixel. As the rows of one image they are the same work, and kernels that take
// several rows of an image at once can do so.
void join_images(kernels::ConvArgs& a) {
  const kernels::ConvGeometry& g = a.geometry;
  const kernels::QTensor &in = a.in, &out = a.epilogue.out;
  const bool one_tap = g.kernel_h == 1 && g.kernel_w == 1 && g.stride_h == 1 && g.stride_w == 1 && g.pad_top == 0 &&
                       g.pad_left == 0 && g.groups == 1;
  if (!one_tap || in.n < 2 || in.h != 1 || in.w != 1 || out.h != 1 || out.w != 1) return;
  for (kernels::QTensor* t : {&a.in, &a.epilogue.out, &a.epilogue.residual}) {
    t->row_stride = t->image_stride;
    t->image_stride *= t->n;
    t->h = t->n, t->n = 1;
  }
}

struct ConvStep {
  kernels::ConvArgs args;  // without tensors
  int in = -1, out = -1, residual = -1;
  int32_t zero_point = -1;  // of the codes before the table, where there is one
  bool float_output = false, float_residual = false;
  std::shared_ptr<const kernels::ResidualTables> residual_tables;  // what args.epilogue points to

  kernels::ConvArgs bind(const Memory& m) const {
    kernels::ConvArgs bound = args;
    kernels::Epilogue& e = bound.epilogue;
    bound.in = m.q(in);
    if (float_output)
      e.float_out = m.f(out);
    else
      e.out = m.q(out);
    if (zero_point >= 0) e.out.zero_point = zero_point;
    if (residual >= 0 && float_residual) e.float_residual = m.f(residual);
    if (residual >= 0 && !float_residual) e.residual = m.q(residual);
    join_images(bound);
    return bound;
  }

  // For the questions a tactic answers before there is memory: `data` only tells that a tensor exists.
  kernels::ConvArgs shapes(const Plan& plan) const {
    const auto view = [&plan](int id) { return plan.code_view(id, reinterpret_cast<uint8_t*>(uintptr_t{4096})); };
    kernels::ConvArgs bound = args;
    bound.in = view(in);
    if (!float_output) bound.epilogue.out = view(out);
    if (zero_point >= 0) bound.epilogue.out.zero_point = zero_point;
    if (residual >= 0 && !float_residual) bound.epilogue.residual = view(residual);
    join_images(bound);
    return bound;
  }
};

void read_epilogue(const StepReader& r, ConvStep& conv) {
  kernels::Epilogue& e = conv.args.epilogue;
  const Buffer& out = r.out_buffer();
  conv.float_output = out.layout != Layout::kCodes;
  const int64_t padded = kernels::padded_channels(out.c());
  e.multiplier = r.finite_constant("multiplier", padded).data();
  conv.args.acc_init = r.constant<int32_t>("acc_init", padded).data();
  const auto channels = static_cast<size_t>(out.c());
  e.limits = kernels::channel_limits({e.multiplier, channels}, {conv.args.acc_init, channels},
                                     kernels::products_of_a_sum(conv.args.geometry));
  if (r.has_constant("table")) {
    e.table = r.constant<uint8_t>("table", 256).data();
    conv.zero_point = static_cast<int32_t>(r.integer_or("zero_point", out.zero_point, 0, 255));
  }
  if (r.has_constant("function")) {
    r.check(!conv.float_output && !e.table, "a function of steps gives codes and leaves nothing to a table");
    read_code_function(r, "function", &e);
    conv.zero_point = 0;
  } else {
    const int64_t lo = r.integer_or("lo", 0, 0, 255);
    e.lo = static_cast<int32_t>(lo), e.hi = static_cast<int32_t>(r.integer_or("hi", 255, lo, 255));
  }
  e.float_lo = r.real_or("float_lo", -std::numeric_limits<float>::infinity());
  e.float_hi = r.real_or("float_hi", std::numeric_limits<float>::infinity());
  if (conv.float_output) {
    r.check(out.layout == Layout::kFloatNhwc || out.shape.size() == 2, "a float output is NHWC");
    e.out.n = out.n(), e.out.h = out.h(), e.out.w = out.w(), e.out.c = out.c();
    e.out.c_pitch = out.c();
  } else {
    // Kernels see by the distance of pixels whether each has room for a block of channels.
    const int64_t distance = r.codes_view(conv.out).c_pitch, room = kernels::channel_pitch(r.root(conv.out).c());
    r.check(distance < kernels::kChannelBlock || room >= kernels::kChannelBlock, "'", out.name,
            "' skips so many pixels that their distance hides their size");
  }
  const size_t outputs = r.has("row_sums") ? 2 : 1;  // the second: sums of rows (depthwise only)
  if (r.integer_or("residual", 0, 0, 1) == 0) {
    r.arity(1, outputs);
    return;
  }
  r.arity(2, outputs);
  const Buffer& residual = r.in_buffer(1);
  r.check(residual.n() == out.n() && residual.h() == out.h() && residual.w() == out.w() && residual.c() == out.c(),
          "the residual '", residual.name, "' has another shape than the output");
  conv.residual = r.in(1);
  conv.float_residual = residual.layout != Layout::kCodes;
  r.check(conv.float_residual == conv.float_output, "a residual must be of the output's type");
  if (conv.float_residual) {
    r.check(residual.layout == Layout::kFloatNhwc || residual.shape.size() == 2, "a float residual is NHWC");
    return;
  }
  e.residual_multiplier = r.real("residual_multiplier");
  e.rounds_twice = r.integer_or("rounds_twice", 0, 0, 1) == 1;
  if (!e.rounds_twice) return;
  e.mid_zero_point = static_cast<int32_t>(r.integer("mid_zero_point", 0, 255));
  e.mid_lo = static_cast<int32_t>(r.integer("mid_lo", 0, 255));
  e.mid_hi = static_cast<int32_t>(r.integer("mid_hi", e.mid_lo, 255));
  e.mid_multiplier = r.real("mid_multiplier");
}

ConvStep read_conv(const Plan& plan, const Step& step, bool depthwise) {
  const StepReader r(plan, step);
  r.arity(1, r.has("row_sums") ? 2 : 1, true);
  ConvStep conv;
  conv.in = r.in(0), conv.out = r.out();
  const Buffer &in = r.codes_in(0), &out = r.out_buffer();
  r.check(out.shape.size() == 4 || out.shape.size() == 2, "the output has rank ", out.shape.size());
  kernels::ConvGeometry& g = conv.args.geometry;
  g = read_conv_geometry(r, in, out, true);
  if (depthwise) {
    r.check(g.groups == in.c() && in.c() == out.c(), "a depthwise step has as many groups as channels");
    const int64_t in_pitch = kernels::channel_pitch(in.c());
    r.check(out.layout != Layout::kCodes || in_pitch >= 16 || kernels::channel_pitch(out.c()) == 4, "pitches differ");
    conv.args.weights = r.constant<int8_t>("weights", kernels::depthwise_weight_bytes(g)).data();
  } else {
    const int64_t bytes = kernels::conv_layout(g, kernels::channel_pitch(in.c())).weight_bytes;
    conv.args.weights = r.constant<int8_t>("weights", bytes).data();
  }
  read_epilogue(r, conv);
  return conv;
}

// Fewer bytes of weights are there before it is worth asking for them; more would leave no room in the second-level
// cache beside what the kernel works on. A fully connected layer takes as long as its weights take to arrive.
constexpr int64_t kWorthFetching = 64 << 10, kFetchedAhead = 128 << 10, kFetchedAheadOfOnePixel = 512 << 10;

// Every band of rows goes over all the weights (engine/row_bands.h): transformed ones of 9 MB made a layer take twice
// as long in bands.
constexpr int64_t kBearableInBands = 2 << 20;

// copy: in memory of our own, block by block as those of the file, or nullptr.
FirstWeights first_weights(const kernels::ConvArgs& shapes, const kernels::ConvTactic& tactic,
                           std::shared_ptr<const DerivedWeights> copy) {
  const kernels::ConvLayout l = kernels::conv_layout(shapes.geometry, shapes.in.c_pitch);
  if (l.weight_bytes < kWorthFetching) return nullptr;
  const kernels::QTensor& out = shapes.epilogue.out;
  const int64_t most = out.n * out.h * out.w == 1 ? kFetchedAheadOfOnePixel : kFetchedAhead;
  return [shapes, &tactic, copy = std::move(copy), block_bytes = l.weight_bytes / l.blocks, most](int part, int parts) {
    const kernels::Range blocks = kernels::tactic_share(tactic, shapes, part, parts).blocks;
    const std::byte* weights = copy ? copy->data : reinterpret_cast<const std::byte*>(shapes.weights);
    return kernels::ReadSoon{weights + blocks.begin * block_bytes,
                             std::min(most, (blocks.end - blocks.begin) * block_bytes)};
  };
}

// The pages of the file are given back (PreparedPlan).
std::shared_ptr<DerivedWeights> copy_on_huge_pages(const kernels::ConvArgs& shapes) {
  const int64_t bytes = kernels::conv_layout(shapes.geometry, shapes.in.c_pitch).weight_bytes;
  if (bytes < kMovedWeightBytes) return nullptr;
  DerivedWeights copy{.bytes = bytes};
  copy.make = [weights = shapes.weights, bytes](std::byte* to) {
    std::memcpy(to, weights, static_cast<size_t>(bytes));
  };
  return std::make_shared<DerivedWeights>(std::move(copy));
}

RowWork row_work(const kernels::ConvGeometry& g,
                 std::function<void(const Memory& memory, int part, kernels::Range rows)> run) {
  return {std::move(run), g.stride_h, (g.kernel_h - 1) * g.dilation_h + 1, g.pad_top};
}

}  // namespace

void read_code_function(const StepReader& r, const std::string& key, kernels::Epilogue* e) {
  kernels::CodeFunction& f = e->function;
  f.tails = std::ldexp(1.0f, -static_cast<int>(r.integer_or(key + "_tail_shift", 0, 0, kernels::kMostTailShift)));
  if (const int64_t shift = r.integer_or(key + "_line_shift", 0, 0, kernels::kGreatestLineShift)) {
    r.check(shift >= kernels::kLeastLineShift, key, "_line_shift is below ", kernels::kLeastLineShift);
    f.line_shift = static_cast<int32_t>(shift);
    f.lines = r.constant<uint8_t>(key, kernels::kLineBytes).data();
  } else {
    f.rises = static_cast<int32_t>(r.integer(key + "_rises", 0, kernels::kMostRises));
    f.turn = static_cast<int32_t>(r.integer(key + "_turn", -128, 127));
    f.rows = r.constant<uint8_t>(key, kernels::CodeFunction::bytes(f.rises)).data();
  }
  e->lo = kernels::kLeastStep, e->hi = kernels::kGreatestStep;
}

kernels::ConvGeometry read_conv_geometry(const StepReader& r, const Buffer& in, const Buffer& out, bool halo) {
  kernels::ConvGeometry g;
  g.in_channels = in.c(), g.out_channels = out.c();
  r.check(g.in_channels <= 1 << 20 && g.out_channels <= 1 << 20, "too many channels");
  g.groups = r.integer_or("groups", 1, 1, g.in_channels);
  r.check(g.in_channels % g.groups == 0 && g.out_channels % g.groups == 0, g.groups, " groups do not divide ",
          g.in_channels, " and ", g.out_channels, " channels");
  g.kernel_h = r.integer_or("kernel_h", 1, 1, 256), g.kernel_w = r.integer_or("kernel_w", 1, 1, 256);
  g.stride_h = r.integer_or("stride_h", 1, 1, kMaxWindow), g.stride_w = r.integer_or("stride_w", 1, 1, kMaxWindow);
  g.dilation_h = r.integer_or("dilation_h", 1, 1, kMaxWindow),
  g.dilation_w = r.integer_or("dilation_w", 1, 1, kMaxWindow);
  g.pad_top = r.integer_or("pad_top", 0, 0, kMaxWindow), g.pad_left = r.integer_or("pad_left", 0, 0, kMaxWindow);
  r.check(in.n() == out.n(), "input and output have different batches");
  if (!halo) return g;
  const auto fits = [](int64_t outputs, int64_t kernel, int64_t stride, int64_t dilation, int64_t pad, int64_t size,
                       int64_t before, int64_t after) {
    return pad <= before && (outputs - 1) * stride - pad + (kernel - 1) * dilation < size + after;
  };
  // A range of channels has the halo of the whole.
  const kernels::Halo& border = r.root(r.in(0)).halo;
  r.check(fits(out.h(), g.kernel_h, g.stride_h, g.dilation_h, g.pad_top, in.h(), border.top, border.bottom) &&
              fits(out.w(), g.kernel_w, g.stride_w, g.dilation_w, g.pad_left, in.w(), border.left, border.right),
          "the windows leave the input and its halo");
  return g;
}

kernels::PoolWindow read_pool_window(const StepReader& r, const Buffer& in, const Buffer& out) {
  constexpr int64_t kMax = 1 << 16;
  kernels::PoolWindow w;
  w.kernel_h = r.integer("kernel_h", 1, kMax), w.kernel_w = r.integer("kernel_w", 1, kMax);
  w.stride_h = r.integer_or("stride_h", 1, 1, kMax), w.stride_w = r.integer_or("stride_w", 1, 1, kMax);
  w.dilation_h = r.integer_or("dilation_h", 1, 1, kMax), w.dilation_w = r.integer_or("dilation_w", 1, 1, kMax);
  w.pad_top = r.integer_or("pad_top", 0, 0, kMax), w.pad_left = r.integer_or("pad_left", 0, 0, kMax);
  w.pad_bottom = r.integer_or("pad_bottom", 0, 0, kMax), w.pad_right = r.integer_or("pad_right", 0, 0, kMax);
  r.check(in.n() == out.n() && in.c() == out.c(), "pooling changes the batch or the channels");
  // The mean and the largest element of nothing are undefined.
  r.check(first_window_outside(out.h(), w.kernel_h, w.stride_h, w.dilation_h, w.pad_top, in.h()) < 0 &&
              first_window_outside(out.w(), w.kernel_w, w.stride_w, w.dilation_w, w.pad_left, in.w()) < 0,
          "a pooling window lies outside the image");
  return w;
}

PreparedStep prepare_conv(const Plan& plan, const Step& step, const KernelTable& table) {
  ConvStep conv = read_conv(plan, step, false);
  kernels::Epilogue& e = conv.args.epilogue;
  const bool sum_of_codes = e.rounds_twice && !e.function;  // what the shortcuts are proved for
  if (sum_of_codes && table.residual_sum_fuses) e.sum_fuses = table.residual_sum_fuses(conv.shapes(plan).epilogue);
  if (sum_of_codes && table.make_residual_tables) {
    const auto tables = std::make_shared<kernels::ResidualTables>();
    if (table.make_residual_tables(conv.shapes(plan).epilogue, tables.get()))
      conv.residual_tables = tables, e.residual_tables = tables.get();
  }
  const kernels::ConvArgs shapes = conv.shapes(plan);
  const TacticChoice choice = choose_tactic(table, step.tactic, shapes);
  const kernels::ConvTactic& tactic = *choice.tactic;
  conv.args.split = choice.split;
  PreparedStep out{.isa = tactic.isa, .kernel = std::string("conv ") + tactic.name};
  if (tactic.scratch_bytes) out.scratch_bytes = tactic.scratch_bytes(shapes);
  const int64_t prepared_bytes = tactic.prepared_bytes ? tactic.prepared_bytes(shapes) : 0;
  if (prepared_bytes > 0) {
    out.derived = std::make_shared<DerivedWeights>();
    out.derived->bytes = prepared_bytes;
    out.derived->make = [shapes, make = tactic.prepare](std::byte* to) { make(shapes, to); };
  } else {
    out.derived = copy_on_huge_pages(shapes);
  }
  if (tactic.kept_bytes) out.kept = std::make_shared<KeptMemory>(KeptMemory{.bytes = tactic.kept_bytes(shapes)});
  const bool is_copy = out.derived && prepared_bytes == 0;
  const auto bind = [conv, is_copy, derived = out.derived, kept = out.kept](const Memory& m, int part) {
    kernels::ConvArgs args = conv.bind(m);
    if (is_copy) args.weights = reinterpret_cast<const int8_t*>(derived->data);
    if (derived && !is_copy) args.prepared = derived->data;
    args.scratch = m.scratch_of(part);
    if (kept) args.kept = m.kept_of(part) + kept->offset;
    return args;
  };
  if (!out.derived || is_copy || tactic.prepared_by_blocks)
    out.first_weights = first_weights(shapes, tactic, out.derived);
  if (tactic.fetches_ahead) out.next = std::make_shared<NextWeights>();
  out.run = [bind, &tactic, next = out.next](const Memory& m, int part, int parts) {
    kernels::ConvArgs args = bind(m, part);
    if (next && next->of_share) args.soon = next->of_share(part, parts);
    const kernels::ConvShare share = kernels::tactic_share(tactic, args, part, parts);
    args.tiles = share.tiles;
    tactic.run(args, share.rows, share.blocks);
  };
  const int64_t blocks = kernels::padded_channels(shapes.epilogue.out.c) / kernels::kChannelBlock;
  const kernels::Range half = kernels::tactic_share(tactic, conv.shapes(plan), 0, 2).blocks;
  const int64_t weight_bytes =
      out.derived ? out.derived->bytes : kernels::conv_layout(shapes.geometry, shapes.in.c_pitch).weight_bytes;
  if (!conv.float_output && half.end - half.begin == blocks && weight_bytes <= kBearableInBands)
    out.rows = row_work(conv.args.geometry, [bind, blocks, &tactic](const Memory& m, int part, kernels::Range rows) {
      tactic.run(bind(m, part), rows, {0, blocks});
    });
  if (out.rows) out.rows->at_once = tactic.rows_at_once;
  return out;
}

std::vector<TacticCandidate> conv_candidates(const Plan& plan, const Step& step, const KernelTable& table,
                                             int threads) {
  return tactic_candidates(table, read_conv(plan, step, false).shapes(plan), threads);
}

PreparedStep prepare_depthwise(const Plan& plan, const Step& step, const KernelTable& table) {
  const StepReader r(plan, step);
  const ConvStep conv = read_conv(plan, step, true);
  const Buffer& out = plan.buffers[conv.out];
  const int64_t rows = out.n() * out.h();
  if (!r.has("row_sums")) {
    PreparedStep plain{[conv, rows, kernel = table.depthwise](const Memory& m, int part, int parts) {
                         kernel(conv.bind(m), share_of(rows, part, parts));
                       },
                       table.depthwise.isa};
    if (!conv.float_output)
      plain.rows = row_work(
          conv.args.geometry,
          [conv, kernel = table.depthwise](const Memory& m, int, kernels::Range some) { kernel(conv.bind(m), some); });
    return plain;
  }
  check_row_sums(r, r.codes_out(), r.out_buffer(1));
  // A few rows at a time, so that their sums are taken while they are near.
  constexpr int64_t kNear = 128 * 1024;
  const int64_t band = std::max<int64_t>(8, kNear / (out.w() * kernels::channel_pitch(out.c())));
  const int sums = r.out(1);
  return {[conv, rows, band, sums, kernel = table.depthwise, row_sums = table.row_sums](const Memory& m, int part,
                                                                                        int parts) {
            const kernels::Range share = share_of(rows, part, parts);
            const kernels::ConvArgs args = conv.bind(m);
            for (int64_t row = share.begin; row < share.end; row += band) {
              const kernels::Range near{row, std::min(share.end, row + band)};
              kernel(args, near);
              row_sums(kernels::RowSumsArgs{args.epilogue.out, static_cast<int32_t*>(m.data[sums])}, near);
            }
          },
          table.depthwise.isa, "depthwise+sums"};
}

}  // namespace octet::engine
