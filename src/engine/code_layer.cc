#include "engine/code_layer.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "base/parallel.h"
#include "dense/matrix_product.h"
#include "dense/window.h"
#include "engine/tactics.h"

namespace octet::engine {
namespace {

using kernels::ConvGeometry;
using kernels::Halo;
using kernels::QTensor;

constexpr int64_t kAlignment = 64;
constexpr int64_t kRowPixels = 32;          // of the images that rows are laid out in
constexpr int64_t kWorthThreads = 1 << 20;  // products; fewer are done before another thread has started

std::vector<int8_t> transposed(std::span<const int8_t> from, int64_t rows, int64_t columns) {
  std::vector<int8_t> out(from.size());
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < columns; ++c)
      out[static_cast<size_t>(c * rows + r)] = from[static_cast<size_t>(r * columns + c)];
  return out;
}

// The first of its bytes at a multiple of kAlignment; it is that much larger than needed.
std::byte* aligned(dense::Tensor& memory) {
  const auto at = reinterpret_cast<uintptr_t>(memory.data());
  return memory.data() + (kAlignment - at % kAlignment) % kAlignment;
}

numerics::QuantParams stored_params(const dense::CodeParams& params, int32_t zero_point) {
  return {.scale = params.scale, .zero_point = zero_point, .qmin = 0, .qmax = 255};
}

// Codes of an image of floats, with what the windows read beside it.
void quantize(const float* image, const kernels::FloatStrides& strides, const QTensor& codes, const Halo& halo,
              const numerics::QuantParams& params, const kernels::KernelTable& table, int threads) {
  const int64_t rows = codes.n * codes.h;
  parallel_for(threads, threads, [&](int64_t part) {
    const kernels::Range share{rows * part / threads, rows * (part + 1) / threads};
    table.quantize(kernels::QuantizeArgs{image, strides, codes, params}, share);
    kernels::fill_halo(codes, halo, share);
  });
}

// The planes of the taps of each filter, [filters][kernel_h][kernel_w][h][w], as its windows lie side by side.
void spread(const float* planes, int64_t h, int64_t w, int64_t kernel_h, int64_t kernel_w, int64_t filters, float* to) {
  for (int64_t f = 0; f < filters; ++f)
    for (int64_t i = 0; i < kernel_h; ++i)
      for (int64_t j = 0; j < kernel_w; ++j, planes += h * w)
        for (int64_t y = 0; y < h; ++y)
          for (int64_t x = 0; x < w; ++x)
            to[((f * h + y) * kernel_h + i) * w * kernel_w + x * kernel_w + j] = planes[y * w + x];
}

}  // namespace

CodeLayer::CodeLayer(const dense::Program& program, const dense::CodeProduct& product,
                     const kernels::KernelTable& table)
    : operation_(program.operations[product.form.operation]), params_(product.params), table_(table) {
  const auto constant = [&](int value) {
    return std::ranges::find(program.constants, value, [](const auto& c) { return c.first; })->second;
  };
  const dense::Tensor coded = constant(product.form.weights);
  const dense::Shape& shape = coded.shape();
  std::vector<int8_t> weights(coded.values<int8_t>().begin(), coded.values<int8_t>().end());
  int64_t repeats = 1;  // output channels of the convolution for each of the layer's
  geometry_.groups = 1;
  if (operation_.op == "Conv") {
    kind_ = Kind::kConv;
    geometry_.groups = dense::AttributeReader(operation_).int_attribute("group", 1);
    require(geometry_.groups >= 1 && shape[0] % geometry_.groups == 0, "node '", operation_.name,
            "' (Conv): ", shape[0], " filters cannot be divided into ", geometry_.groups, " groups");
    kernel_ = {shape[2], shape[3]};
    geometry_.in_channels = shape[1] * geometry_.groups, geometry_.out_channels = shape[0];
    geometry_.kernel_h = shape[2], geometry_.kernel_w = shape[3];
  } else if (operation_.op == "ConvTranspose") {
    kind_ = Kind::kConvTranspose;
    kernel_ = {shape[2], shape[3]};
    repeats = shape[2] * shape[3];
    geometry_.in_channels = shape[0], geometry_.out_channels = shape[1] * repeats;
    weights = transposed(weights, shape[0], geometry_.out_channels);
  } else {
    geometry_.out_channels = shape[static_cast<size_t>(product.form.channel_axis)];
    geometry_.in_channels = shape[static_cast<size_t>(1 - product.form.channel_axis)];
    if (product.form.channel_axis == 1) weights = transposed(weights, shape[0], shape[1]);
  }
  zero_point_ = params_.zero_point + (params_.type == dense::Type::kInt8 ? 128 : 0);
  const auto padded = static_cast<size_t>(kernels::padded_channels(geometry_.out_channels));
  const auto channels = static_cast<size_t>(geometry_.out_channels);
  multiplier_.assign(padded, 0.0f), acc_init_.assign(padded, 0);
  for (size_t c = 0; c < channels; ++c)
    multiplier_[c] = params_.scale * product.weight_scales[c / static_cast<size_t>(repeats)];
  if (product.form.bias >= 0) {
    const dense::Tensor bias = constant(product.form.bias);
    bias_.assign(bias.values<float>().begin(), bias.values<float>().end());
  }
  kernels::make_acc_init(weights, geometry_.out_channels, {}, zero_point_, acc_init_);
  const int64_t pitch = kernels::channel_pitch(geometry_.in_channels);
  const int64_t bytes = kernels::conv_layout(geometry_, pitch).weight_bytes;
  weights_ = AlignedMemory(bytes + kernels::kReadSlack);
  auto* const packed = reinterpret_cast<int8_t*>(weights_.data());
  kernels::pack_conv_weights(geometry_, pitch, weights, {packed, static_cast<size_t>(bytes)});
  std::memset(packed + bytes, 0, kernels::kReadSlack);
  limits_ = kernels::channel_limits({multiplier_.data(), channels}, {acc_init_.data(), channels},
                                    kernels::products_of_a_sum(geometry_));
  choose_tactic();
}

dense::Tensor CodeLayer::run(const dense::Tensor& x, dense::Memory& memory, int threads) const {
  require(x.type() == dense::Type::kFloat, "is there for float32 only");
  return kind_ == Kind::kRows ? run_rows(x, memory, threads) : run_images(x, memory, threads);
}

kernels::ConvArgs CodeLayer::convolution(const QTensor& codes, int64_t out_h, int64_t out_w,
                                         const ConvGeometry& geometry, float* out) const {
  kernels::ConvArgs args;
  args.geometry = geometry, args.in = codes;
  args.weights = reinterpret_cast<const int8_t*>(weights_.data()), args.acc_init = acc_init_.data();
  kernels::Epilogue& e = args.epilogue;
  e.multiplier = multiplier_.data(), e.limits = limits_, e.float_out = out;
  e.out.n = 1, e.out.h = out_h, e.out.w = out_w, e.out.c = e.out.c_pitch = geometry.out_channels;
  return args;
}

void CodeLayer::choose_tactic() {
  constexpr int64_t kUsualRows = 16, kUsualPixels = 14;
  const bool rows = kind_ == Kind::kRows;
  const int64_t out_h = rows ? kUsualRows : kUsualPixels, out_w = rows ? kRowPixels : kUsualPixels;
  const auto covered = [](int64_t places, int64_t kernel) { return places + kernel - 1; };
  const int64_t h = covered(out_h, geometry_.kernel_h), w = covered(out_w, geometry_.kernel_w);
  // Only asked for its shape; the data says that there is some.
  const QTensor codes = kernels::make_qtensor(reinterpret_cast<uint8_t*>(uintptr_t{4096}), 1, h, w,
                                              geometry_.in_channels, {}, zero_point_);
  const kernels::ConvArgs args = convolution(codes, out_h, out_w, geometry_, nullptr);
  for (const TacticCandidate& candidate : tactic_candidates(table_, args, 1)) {
    tactic_ = engine::choose_tactic(table_, candidate.name, args).tactic;
    if (!tactic_->kept_bytes) break;  // of layers of a plan, which know their sizes
    tactic_ = nullptr;
  }
  if (!tactic_) tactic_ = &table_.conv_tactics.back();
  const int64_t bytes = tactic_->prepared_bytes ? tactic_->prepared_bytes(args) : 0;
  if (bytes == 0) return;
  prepared_ = AlignedMemory(bytes + kernels::kReadSlack);
  std::memset(prepared_.data() + bytes, 0, kernels::kReadSlack);
  tactic_->prepare(args, prepared_.data());
}

const kernels::ConvTactic& CodeLayer::tactic_for(const kernels::ConvArgs& args) const {
  const int64_t bytes = tactic_->prepared_bytes ? tactic_->prepared_bytes(args) : 0;
  const int64_t prepared = prepared_.size() > 0 ? prepared_.size() - kernels::kReadSlack : 0;
  const bool fits = bytes == prepared && (!tactic_->applies || tactic_->applies(args));
  return fits ? *tactic_ : table_.conv_tactics.back();
}

int64_t CodeLayer::scratch_bytes(const kernels::ConvArgs& args) const {
  const kernels::ConvTactic& tactic = tactic_for(args);
  return tactic.scratch_bytes ? (tactic.scratch_bytes(args) + kAlignment - 1) / kAlignment * kAlignment : 0;
}

void CodeLayer::convolve(const kernels::ConvArgs& args, std::byte* scratch, int threads) const {
  const kernels::ConvTactic& tactic = tactic_for(args);
  const int64_t bytes = scratch_bytes(args);
  parallel_for(threads, threads, [&](int64_t part) {
    kernels::ConvArgs own = args;
    const kernels::ConvShare share = kernels::tactic_share(tactic, own, static_cast<int>(part), threads);
    own.tiles = share.tiles;
    if (&tactic == tactic_ && prepared_.size() > 0) own.prepared = prepared_.data();
    own.scratch = scratch + part * bytes;
    if (share.rows.begin < share.rows.end && share.blocks.begin < share.blocks.end)
      tactic.run(own, share.rows, share.blocks);
  });
}

dense::Tensor CodeLayer::run_rows(const dense::Tensor& x, dense::Memory& memory, int threads) const {
  const int64_t k = geometry_.in_channels, n = geometry_.out_channels;
  const bool is_gemm = operation_.op == "Gemm";
  require(x.rank() >= 1 && x.shape().back() == k && (!is_gemm || x.rank() == 2), "the input has the shape ",
          dense::shape_text(x.shape()), ", the weights take rows of ", k);
  dense::Shape shape = x.shape();
  shape.back() = n;
  dense::Tensor out = memory.make<float>(shape);
  const int64_t rows = out.size() / n;
  if (rows == 0) return out;
  float* const to = out.mutable_values<float>().data();
  dense::Tensor buffer = memory.make<uint8_t>({kernels::qtensor_bytes(1, 1, rows, k, {})});
  if (rows * k * n < kWorthThreads) threads = 1;
  // Whole images of so many pixels a row, and what is left in one of a single row.
  const int64_t whole = rows / kRowPixels * kRowPixels;
  for (const auto& [first, count] : {std::pair(int64_t{0}, whole), std::pair(whole, rows - whole)}) {
    if (count == 0) continue;
    const int64_t width = std::min(count, kRowPixels);
    const QTensor codes =
        kernels::make_qtensor(buffer.mutable_values<uint8_t>().data(), 1, count / width, width, k, {}, zero_point_);
    quantize(x.values<float>().data() + first * k, {rows * k, width * k, k, 1}, codes, {},
             stored_params(params_, zero_point_), table_, threads);
    const kernels::ConvArgs args = convolution(codes, count / width, width, geometry_, to + first * n);
    dense::Tensor scratch = memory.make<uint8_t>({threads * scratch_bytes(args) + kAlignment});
    convolve(args, aligned(scratch), threads);
  }
  if (!bias_.empty())
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t c = 0; c < n; ++c) to[r * n + c] += bias_[static_cast<size_t>(c)];
  return out;
}

dense::Tensor CodeLayer::run_images(const dense::Tensor& x, dense::Memory& memory, int threads) const {
  require(x.rank() == 4 && x.shape()[1] == geometry_.in_channels, "the input has the shape ",
          dense::shape_text(x.shape()), ", the weights take images of ", geometry_.in_channels, " channels");
  const int64_t images = x.shape()[0], channels = x.shape()[1], h = x.shape()[2], w = x.shape()[3];
  const bool transposed = kind_ == Kind::kConvTranspose;
  const int64_t filters = geometry_.out_channels / (transposed ? kernel_[0] * kernel_[1] : 1);
  ConvGeometry geometry = geometry_;
  Halo halo;
  dense::Shape places{h, w};  // of windows
  if (!transposed) {
    const dense::Window window = dense::window_of(dense::AttributeReader(operation_), std::span(places), kernel_);
    geometry.stride_h = window.strides[0], geometry.stride_w = window.strides[1];
    geometry.dilation_h = window.dilations[0], geometry.dilation_w = window.dilations[1];
    geometry.pad_top = window.before[0], geometry.pad_left = window.before[1];
    places = window.out;
    const auto beyond = [&](size_t d, int64_t size) {
      const int64_t last = (places[d] - 1) * window.strides[d] - window.before[d];
      return std::max<int64_t>(0, last + (kernel_[d] - 1) * window.dilations[d] + 1 - size);
    };
    halo = {.top = geometry.pad_top, .bottom = beyond(0, h), .left = geometry.pad_left, .right = beyond(1, w)};
  }
  const int64_t pixels = places[0] * places[1], made = pixels * geometry_.out_channels;
  const int64_t tall = transposed ? h * kernel_[0] : places[0], wide = transposed ? w * kernel_[1] : places[1];
  dense::Tensor out = memory.make<float>({images, filters, tall, wide});
  if (out.size() == 0 || h * w == 0) return out;
  // Several images share the threads whole; of one they share the rows.
  const bool much = images * made * kernels::products_of_a_sum(geometry_) > kWorthThreads;
  const int at_once = much && images >= threads ? threads : 1, each = much && at_once == 1 ? threads : 1;
  dense::element_count({halo.top + h + halo.bottom, halo.left + w + halo.right, channels + kernels::kChannelBlock});
  const int64_t code_bytes = kernels::qtensor_bytes(1, h, w, channels, halo);
  dense::Tensor buffers = memory.make<uint8_t>({at_once, code_bytes}), sums = memory.make<float>({at_once, made}),
                planes = memory.make<float>({at_once, transposed ? made : 0});
  const kernels::ConvArgs shapes =
      convolution(kernels::make_qtensor(buffers.mutable_values<uint8_t>().data(), 1, h, w, channels, halo, zero_point_),
                  places[0], places[1], geometry, nullptr);
  const int64_t scratch_bytes_each = scratch_bytes(shapes);
  dense::Tensor scratch = memory.make<uint8_t>({at_once * each * scratch_bytes_each + kAlignment});
  std::byte* const scratch_of = aligned(scratch);
  uint8_t* const code_bytes_of = buffers.mutable_values<uint8_t>().data();
  float *const sums_of = sums.mutable_values<float>().data(), *const planes_of = planes.mutable_values<float>().data();
  float* const to = out.mutable_values<float>().data();
  const float* const from = x.values<float>().data();
  parallel_for(at_once, at_once, [&](int64_t part) {
    const QTensor codes =
        kernels::make_qtensor(code_bytes_of + part * code_bytes, 1, h, w, channels, halo, zero_point_);
    float* const sum = sums_of + part * made;
    for (int64_t image = images * part / at_once; image < images * (part + 1) / at_once; ++image) {
      quantize(from + image * channels * h * w, kernels::nchw_strides(h, w, channels), codes, halo,
               stored_params(params_, zero_point_), table_, each);
      convolve(convolution(codes, places[0], places[1], geometry, sum), scratch_of + part * each * scratch_bytes_each,
               each);
      float* const target = to + image * filters * tall * wide;
      float* const plane = transposed ? planes_of + part * made : target;
      dense::transpose(sum, plane, pixels, geometry_.out_channels);
      if (transposed) spread(plane, h, w, kernel_[0], kernel_[1], filters, target);
      for (int64_t f = 0; f < filters && !bias_.empty(); ++f)
        for (int64_t p = 0; p < tall * wide; ++p) target[f * tall * wide + p] += bias_[static_cast<size_t>(f)];
    }
  });
  return out;
}

}  // namespace octet::engine
