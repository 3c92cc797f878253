// A plan with a step of every kind, for tests that look at all of them.
#pragma once
#include "engine/kernels/float_conv.h"
#include "engine_test_util.h"

namespace octet::testing {

class WidePlan {
 public:
  static engine::Plan make() {
    WidePlan w;
    w.int8_steps();
    w.float_steps();
    w.constants_.bytes.resize((w.constants_.bytes.size() + 63) / 64 * 64);
    w.plan_.constants = engine::make_constant_blob(w.constants_.bytes);
    engine::plan_memory(w.plan_);
    return std::move(w.plan_);
  }

 private:
  using Shape = std::vector<int64_t>;
  using Layout = engine::Layout;

  int add(engine::Buffer b) {
    b.name = "b" + std::to_string(plan_.buffers.size());
    plan_.buffers.push_back(std::move(b));
    return static_cast<int>(plan_.buffers.size()) - 1;
  }
  int codes(Shape shape, int64_t halo = 0) {
    return add({.layout = Layout::kCodes,
                .shape = std::move(shape),
                .scale = 0.02f,
                .zero_point = 128,
                .code_offset = 128,
                .halo = {halo, halo, halo, halo}});
  }
  int nhwc(Shape shape) { return add({.layout = Layout::kFloatNhwc, .shape = std::move(shape)}); }
  int dense(Shape shape) { return add({.shape = std::move(shape)}); }
  engine::Step& step(const std::string& kind, std::vector<int> in, std::vector<int> out) {
    plan_.steps.push_back({.kind = kind, .name = kind, .op = kind, .inputs = std::move(in), .outputs = std::move(out)});
    return plan_.steps.back();
  }
  std::vector<int8_t> weights(int64_t count) {
    std::vector<int8_t> out(count);
    for (int64_t i = 0; i < count; ++i) out[i] = static_cast<int8_t>(i * 31 % 200 - 100);
    return out;
  }
  engine::ConstantRef floats(int64_t count, float value = 0.25f) {
    return constants_.add(std::vector<float>(count, value));
  }

  void int8_steps() {
    const int x = dense({1, 3, 6, 5});
    plan_.inputs = {x};
    const int q = codes({1, 3, 6, 5}, 1), a = codes({1, 20, 6, 5}, 1), b = codes({1, 20, 6, 5}),
              c = codes({1, 20, 6, 5}), pooled = codes({1, 20, 3, 2}), mean = codes({1, 20}),
              joined = codes({1, 40, 6, 5}), wide = codes({1, 20, 12, 10});
    step("quantize", {x}, {q});
    product(x);
    {
      const kernels::ConvGeometry g{
          .in_channels = 3, .out_channels = 20, .kernel_h = 3, .kernel_w = 3, .pad_top = 1, .pad_left = 1};
      std::vector<int8_t> packed(kernels::conv_layout(g, 4).weight_bytes);
      kernels::pack_conv_weights(g, 4, weights(540), packed);
      engine::Step& s = step("conv", {q}, {a});
      s.ints = {{"kernel_h", 3}, {"kernel_w", 3},   {"pad_top", 1},    {"pad_left", 1},
                {"lo", 128},     {"hi", 255},       {"groups", 1},     {"stride_h", 1},
                {"stride_w", 1}, {"dilation_h", 1}, {"dilation_w", 1}, {"zero_point", 128}};
      s.constants = {{"weights", constants_.add(packed)},
                     {"acc_init", constants_.add(std::vector<int32_t>(32, 7))},
                     {"multiplier", floats(32, 0.003f)},
                     {"table", constants_.add(std::vector<uint8_t>(256, 99))}};
    }
    {
      const kernels::ConvGeometry g{.in_channels = 20,
                                    .out_channels = 20,
                                    .groups = 20,
                                    .kernel_h = 3,
                                    .kernel_w = 3,
                                    .pad_top = 1,
                                    .pad_left = 1};
      std::vector<int8_t> packed(kernels::depthwise_weight_bytes(g));
      kernels::pack_depthwise_weights(g, weights(180), packed);
      engine::Step& s = step("depthwise", {a, a}, {b});
      s.ints = {{"kernel_h", 3}, {"kernel_w", 3},     {"pad_top", 1},          {"pad_left", 1}, {"groups", 20},
                {"residual", 1}, {"rounds_twice", 1}, {"mid_zero_point", 128}, {"mid_lo", 0},   {"mid_hi", 255}};
      s.floats = {{"residual_multiplier", 0.5}, {"mid_multiplier", 0.75}};
      s.constants = {{"weights", constants_.add(packed)},
                     {"acc_init", constants_.add(std::vector<int32_t>(32, 7))},
                     {"multiplier", floats(32, 0.01f)}};
    }
    step("add", {a, b}, {c}).floats = {{"a_multiplier", 0.5}, {"b_multiplier", -0.5}};
    step("max_pool", {c}, {pooled}).ints = {{"kernel_h", 2},   {"kernel_w", 2},  {"stride_h", 2},   {"stride_w", 2},
                                            {"pad_top", 0},    {"pad_left", 0},  {"pad_bottom", 0}, {"pad_right", 0},
                                            {"dilation_h", 1}, {"dilation_w", 1}};
    step("average_pool", {c}, {pooled}).ints = {{"kernel_h", 2}, {"kernel_w", 2},          {"stride_h", 2},
                                                {"stride_w", 2}, {"count_include_pad", 1}, {"lo", 5},
                                                {"hi", 250}};
    step("global_average", {c}, {mean}).ints = {{"lo", 5}, {"hi", 250}};
    engine::Step& product = step("mul", {c, mean}, {b});
    product.floats = {{"multiplier", 0.01}}, product.ints = {{"lo", 5}, {"hi", 250}};
    squeeze_excite(c, b);
    // A piece of a larger tensor, made in place.
    const int whole = codes({1, 36, 6, 5}, 1);
    const int piece = add({.layout = Layout::kCodes,
                           .shape = {1, 20, 6, 5},
                           .scale = 0.02f,
                           .zero_point = 128,
                           .code_offset = 128,
                           .alias_of = whole,
                           .channel_offset = 16});
    // Every second column of two rows, written and read as residual.
    const int part = add({.layout = Layout::kCodes,
                          .shape = {1, 20, 2, 3},
                          .scale = 0.02f,
                          .zero_point = 128,
                          .code_offset = 128,
                          .alias_of = whole,
                          .channel_offset = 16,
                          .rows = {1, 3},
                          .columns = {0, 2}});
    {
      const kernels::ConvGeometry g{.in_channels = 20, .out_channels = 20};
      std::vector<int8_t> packed(kernels::conv_layout(g, 32).weight_bytes);
      kernels::pack_conv_weights(g, 32, weights(400), packed);
      const int small = codes({1, 20, 2, 3}), other = codes({1, 20, 6, 5});
      const int residual = add({.layout = Layout::kCodes,
                                .shape = {1, 20, 2, 3},
                                .scale = 0.02f,
                                .zero_point = 128,
                                .code_offset = 128,
                                .alias_of = other,
                                .rows = {0, 5},
                                .columns = {1, 1}});
      step("fill", {}, {small});
      step("fill", {}, {other});
      engine::Step& s = step("conv", {small, residual}, {part});
      s.ints = {{"residual", 1}, {"lo", 0}, {"hi", 255}};
      s.floats = {{"residual_multiplier", 0.5}};
      s.constants = {{"weights", constants_.add(packed)},
                     {"acc_init", constants_.add(std::vector<int32_t>(32, 7))},
                     {"multiplier", floats(32, 0.003f)}};
    }
    step("add", {c, b}, {piece}).floats = {{"a_multiplier", 0.5}, {"b_multiplier", 0.25}};
    step("fill", {}, {joined});
    for (int64_t half : {0, 20})
      step("copy", {half ? b : c}, {joined}).ints = {
          {"size_n", 1}, {"size_h", 5}, {"size_w", 4}, {"size_c", 20}, {"step_h", 1}, {"step_w", 1}, {"in_n", 0},
          {"in_h", 1},   {"in_w", 1},   {"in_c", 0},   {"out_n", 0},   {"out_h", 0},  {"out_w", 1},  {"out_c", half}};
    // A range of channels, read where it is.
    const int range = add({.layout = Layout::kCodes,
                           .shape = {1, 20, 6, 5},
                           .scale = 0.02f,
                           .zero_point = 128,
                           .code_offset = 128,
                           .alias_of = joined,
                           .channel_offset = 13});
    const int sum = codes({1, 20, 6, 5});
    step("add", {range, c}, {sum}).floats = {{"a_multiplier", 0.5}, {"b_multiplier", 0.25}};
    {
      const kernels::ConvGeometry g{.in_channels = 20, .out_channels = 16, .kernel_h = 2, .kernel_w = 2};
      std::vector<int8_t> packed(kernels::conv_layout(g, 32).weight_bytes);
      kernels::pack_conv_weights(g, 32, weights(1280), packed);
      engine::Step& s = step("conv", {range}, {codes({1, 16, 5, 4})});
      s.ints = {{"kernel_h", 2}, {"kernel_w", 2}, {"lo", 0}, {"hi", 255}};
      s.constants = {{"weights", constants_.add(packed)},
                     {"acc_init", constants_.add(std::vector<int32_t>(16, 7))},
                     {"multiplier", floats(16, 0.003f)}};
    }
    step("channel_tables", {joined}, {codes({1, 40, 6, 5})}).constants = {
        {"tables", constants_.add(std::vector<uint8_t>(40 * 256, 3))}};
    engine::Step& lines = step("scale_shift_codes", {joined}, {codes({1, 40, 6, 5})});
    lines.ints = {{"lo", 3}, {"hi", 250}};
    lines.constants = {{"multiplier", floats(40)}, {"offset", floats(40)}};
    step("channel_shuffle", {joined}, {codes({1, 40, 6, 5})}).ints["groups"] = 2;
    engine::Step& resize = step("resize_nearest", {c}, {wide});
    resize.constants = {{"y_index", constants_.add(std::vector<int32_t>(12, 5))},
                        {"x_index", constants_.add(std::vector<int32_t>(10, 4))}};
    image_ = nhwc({1, 20, 6, 5});
    step("dequantize", {c}, {image_});
  }

  // x: 1 x 3 x 6 x 5 floats, as two matrices of 3 x 5 and of 5 x 4.
  void product(int x) {
    const auto rows = [&](Layout layout, Shape shape) {
      return add({.layout = layout, .shape = std::move(shape), .scale = 0.02f, .zero_point = 128, .code_offset = 128});
    };
    const int a = rows(Layout::kCodeRows, {2, 3, 5}), b = rows(Layout::kCodeColumns, {2, 5, 4});
    step("quantize_rows", {x}, {a}).lists["in_strides"] = {0, 15, 5, 1};
    engine::Step& right = step("quantize_rows", {x}, {b});
    right.lists["in_strides"] = {0, 20, 5, 1}, right.ints["in_offset"] = 7;
    const int scores = dense({2, 3, 4}), shares = rows(Layout::kCodeRows, {2, 3, 4});
    step("int8_matmul", {a, b}, {scores});
    engine::Step& softmax = step("softmax", {scores}, {shares});
    softmax.ints = {{"outer", 6}, {"axis", 4}, {"inner", 1}};
    engine::Step& norm = step("layer_norm", {scores}, {codes({6, 4})});
    norm.ints["length"] = 4, norm.floats["epsilon"] = 1e-5;
    norm.constants = {{"scale", floats(4)}, {"shift", floats(4)}};
  }

  void squeeze_excite(int x, int y) {
    const int sums = add({.layout = Layout::kSums, .shape = {1, 6, 32}});
    step("row_sums", {x}, {sums});
    engine::Step& s = step("squeeze_excite", {x, sums}, {y});
    s.ints = {{"mean_zero_point", 128}, {"mean_lo", 3}, {"mean_hi", 250},
              {"gate_zero_point", 0},   {"layers", 2},  {"0_channels", 8},
              {"1_channels", 20},       {"lo", 1},      {"hi", 254}};
    s.floats = {{"mean_scale", 0.01}, {"multiplier", 0.01}};
    const int64_t channels[] = {20, 8, 20};
    for (int i = 0; i < 2; ++i) {
      const kernels::ConvGeometry g{.in_channels = channels[i], .out_channels = channels[i + 1]};
      const int64_t pitch = kernels::channel_pitch(g.in_channels), padded = kernels::padded_channels(g.out_channels);
      std::vector<int8_t> packed(kernels::conv_layout(g, pitch).weight_bytes);
      kernels::pack_conv_weights(g, pitch, weights(160), packed);
      const std::string key = std::to_string(i) + "_";
      s.ints[key + "zero_point"] = 128, s.ints[key + "lo"] = 0, s.ints[key + "hi"] = 255;
      s.constants[key + "weights"] = constants_.add(packed);
      s.constants[key + "acc_init"] = constants_.add(std::vector<int32_t>(padded, 7));
      s.constants[key + "multiplier"] = floats(padded, 0.003f);
      s.constants[key + "table"] = constants_.add(std::vector<uint8_t>(256, 99));
    }
  }

  void float_steps() {
    const int a = nhwc({1, 20, 6, 5}), small = nhwc({1, 20, 3, 2}), wide = nhwc({1, 20, 12, 10});
    const kernels::ConvGeometry g{.in_channels = 20, .out_channels = 20, .kernel_h = 3, .kernel_w = 3};
    const std::map<std::string, int64_t> window{{"kernel_h", 3},   {"kernel_w", 3},   {"pad_top", 1},
                                                {"pad_left", 1},   {"stride_h", 1},   {"stride_w", 1},
                                                {"dilation_h", 1}, {"dilation_w", 1}, {"groups", 1}};
    engine::Step& conv = step("float_conv", {image_, image_}, {a});
    conv.ints = window, conv.ints["residual"] = 1;
    conv.floats = {{"float_lo", 0}, {"float_hi", 6}};
    conv.constants = {{"weights", floats(kernels::float_conv_weight_floats(g))}, {"bias", floats(20)}};
    engine::Step& depthwise = step("float_depthwise", {image_}, {a});
    depthwise.ints = window, depthwise.ints["groups"] = 20;
    depthwise.constants = {{"weights", floats(180)}};
    engine::Step& transposed = step("float_conv_transpose", {image_}, {wide});
    transposed.ints = {{"kernel_h", 2}, {"kernel_w", 2}, {"stride_h", 2}, {"stride_w", 2},
                       {"pad_top", 0},  {"pad_left", 0}, {"groups", 1}};
    transposed.constants = {{"weights", floats(20 * 20 * 4)}};
    step("float_pool", {a}, {small}).ints = {{"kernel_h", 2}, {"kernel_w", 2}, {"stride_h", 2},
                                             {"stride_w", 2}, {"average", 1},  {"count_include_pad", 0},
                                             {"pad_top", 0},  {"pad_left", 0}};
    engine::Step& unary = step("unary", {a}, {image_});
    unary.ints = {{"function", 2}}, unary.floats = {{"alpha", -1}, {"beta", 1}};
    engine::Step& binary = step("binary", {a, image_}, {nhwc({1, 20, 6, 5})});
    binary.ints = {{"function", 0}, {"rank", 2}};
    binary.lists = {{"dims", {30, 20}}, {"a_strides", {20, 1}}, {"b_strides", {0, 1}}};
    const int nchw = dense({1, 20, 6, 5}), features = dense({1, 600}), logits = dense({1, 9}), y = dense({1, 9}),
              square = dense({3, 3}), reduced = dense({3}), scores = dense({3});
    engine::Step& copy = step("strided_copy", {a}, {nchw});
    copy.ints = {{"rank", 4}, {"in_offset", 0}, {"out_offset", 0}};
    copy.lists = {{"dims", {1, 20, 6, 5}}, {"in_strides", {600, 1, 100, 20}}, {"out_strides", {600, 30, 5, 1}}};
    engine::Step& flat = step("strided_copy", {nchw}, {features});
    flat.ints = {{"rank", 1}};
    flat.lists = {{"dims", {600}}, {"in_strides", {1}}, {"out_strides", {1}}};
    engine::Step& gemm = step("float_gemm", {features}, {logits});
    gemm.ints = {{"k", 600}, {"n", 9}};
    gemm.constants = {
        {"weights", floats(kernels::float_conv_weight_floats({.in_channels = 600, .out_channels = 9}), 0.01f)},
        {"bias", floats(9)}};
    engine::Step& softmax = step("softmax", {logits}, {y});
    softmax.ints = {{"outer", 1}, {"axis", 9}, {"inner", 1}, {"logarithm", 1}};
    engine::Step& norm = step("layer_norm", {y}, {logits});
    norm.ints = {{"length", 9}}, norm.floats = {{"epsilon", 1e-5}};
    norm.constants = {{"scale", floats(9)}, {"shift", floats(9)}};
    engine::Step& product = step("float_matmul", {logits, y}, {square});
    product.ints = {{"batches", 1}, {"m", 3}, {"k", 3}, {"n", 3}, {"a_batch_stride", 0}, {"b_batch_stride", 0}};
    step("reduce", {square}, {reduced}).ints = {{"outer", 1}, {"axis", 3}, {"inner", 3}, {"function", 1}};
    const int index = add({.layout = Layout::kIndexDense, .shape = {3}});
    step("arg_max", {square}, {index}).ints = {{"outer", 3}, {"axis", 3}, {"inner", 1}, {"select_last", 1}};
    step("index_to_float", {index}, {scores});
    engine::Step& shift = step("scale_shift", {a}, {image_});
    shift.ints = {{"channels", 20}}, shift.constants = {{"scale", floats(20)}, {"shift", floats(20)}};
    engine::Step& lrn = step("lrn", {a}, {image_});
    lrn.ints = {{"channels", 20}, {"size", 5}}, lrn.floats = {{"alpha", 1e-4}, {"beta", 0.75}, {"bias", 1}};
    const auto index_of = [&](int64_t count) { return constants_.add(std::vector<int32_t>(count, 1)); };
    step("float_resize", {a}, {wide}).constants = {{"y_low", index_of(12)},  {"y_high", index_of(12)},
                                                   {"x_low", index_of(10)},  {"x_high", index_of(10)},
                                                   {"y_weight", floats(12)}, {"x_weight", floats(10)}};
    engine::Step& cubic = step("float_resample", {a}, {wide});
    cubic.ints = {{"y_taps", 4}, {"x_taps", 2}};
    cubic.constants = {
        {"y_index", index_of(48)}, {"x_index", index_of(20)}, {"y_weight", floats(48)}, {"x_weight", floats(20)}};
    plan_.outputs = {y, scores, reduced};
  }

  engine::Plan plan_{.name = "wide", .isa = "scalar"};
  Constants constants_;
  int image_ = -1;
};

}  // namespace octet::testing
