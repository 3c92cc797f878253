// Files of real exporters.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>

#include "base/files.h"
#include "base/log.h"
#include "ir/infer.h"
#include "numerics/quantize.h"
#include "onnx/export.h"
#include "onnx/graph_compare.h"
#include "onnx/import.h"

namespace octet::onnx {
namespace {

namespace fs = std::filesystem;
using ir::Graph;
using ir::kDynamic;
using ir::OpKind;
using ir::Shape;

fs::path fixture(const std::string& name) {
  return fs::path(OCTET_SOURCE_DIR) / "tests/onnx/fixtures" / name;
}

std::vector<fs::path> all_fixtures() {
  std::vector<fs::path> out;
  for (const auto& entry : fs::directory_iterator(fixture("")))
    if (entry.path().extension() == ".onnx") out.push_back(entry.path());
  std::sort(out.begin(), out.end());
  return out;
}

std::map<std::string, int> kinds(const Graph& graph) {
  std::map<std::string, int> out;
  for (const auto& node : graph.nodes()) out[node->info().name]++;
  return out;
}

using Kinds = std::map<std::string, int>;

TEST(Fixtures, AllSurviveTheRoundTrip) {
  ASSERT_EQ(all_fixtures().size(), 13u);
  for (const fs::path& path : all_fixtures()) {
    const Graph graph = import_model(path);
    for (const int opset : {19, 21}) {
      if (opset < 20 && kinds(graph).count("Gelu")) continue;  // which older opsets write in parts
      const Graph back = import_bytes(export_bytes(graph, {.opset = opset}), {});
      EXPECT_EQ(first_difference(graph, back), "") << path;
    }
    EXPECT_EQ(import_bytes(export_bytes(graph, {.opset = 13}), {}).outputs()[0]->type, graph.outputs()[0]->type)
        << path;
  }
}

TEST(Fixtures, FlattenThatReadsTheBatchBecomesReshape) {
  for (const char* name : {"residual_torchscript_11.onnx", "residual_torchscript_13.onnx",
                           "residual_torchscript_17.onnx", "residual_dynamo_18.onnx"}) {
    Graph graph = import_model(fixture(name));
    Kinds expected = {{"Conv", 2}, {"Relu", 2}, {"Add", 1}, {"MaxPool", 1}, {"Reshape", 1}, {"Gemm", 1}};
    if (std::string(name).find("_13") != std::string::npos) expected["BatchNormalization"] = 2;
    EXPECT_EQ(kinds(graph), expected) << name;
    EXPECT_EQ(*graph.inputs()[0]->type.shape, (Shape{kDynamic, 3, 16, 16}));
    EXPECT_EQ(*graph.outputs()[0]->type.shape, (Shape{kDynamic, 5}));
    ir::set_batch(graph, 7);  // the Reshape must not have kept a batch of its own
    EXPECT_EQ(*graph.outputs()[0]->type.shape, (Shape{7, 5}));
  }
}

TEST(Fixtures, MobileBlocks) {
  const Graph old = import_model(fixture("mobile_torchscript_12.onnx"));
  Kinds expected = {{"Conv", 5},    {"HardSigmoid", 2}, {"Mul", 2},       {"Clip", 1},      {"GlobalAveragePool", 1},
                    {"Relu", 1},    {"Resize", 2},      {"Concat", 1},    {"Slice", 2},     {"Add", 1},
                    {"Reshape", 1}, {"Softmax", 1},     {"Transpose", 1}, {"ReduceMean", 1}};
  EXPECT_EQ(kinds(old), expected);
  expected["HardSigmoid"] = expected["Mul"] = expected["HardSwish"] = 1;
  EXPECT_EQ(kinds(import_model(fixture("mobile_torchscript_17.onnx"))), expected);
  Graph dynamo = import_model(fixture("mobile_dynamo_20.onnx"));
  for (const auto& node : dynamo.nodes()) {
    if (node->kind != OpKind::kResize) continue;
    ASSERT_TRUE(node->has_input(2)) << node->name;  // the computed sizes became scales
    EXPECT_EQ(node->input(2)->constant->to_floats(), (std::vector<float>{1, 1, 2, 2}));
  }
  ir::set_batch(dynamo, 3);
  EXPECT_EQ(*dynamo.outputs()[0]->type.shape, (Shape{3, 256, 6}));
  EXPECT_EQ(*dynamo.outputs()[1]->type.shape, (Shape{3, 6}));
}

TEST(Fixtures, OnnxRuntimeQuantizer) {
  const Graph graph = import_model(fixture("residual_ort_qdq.onnx"));
  const Kinds expected = {{"FakeQuantize", 10}, {"Conv", 2}, {"Add", 1}, {"MaxPool", 1}, {"Reshape", 1}, {"Gemm", 1}};
  EXPECT_EQ(kinds(graph), expected);
  const ir::Node* input = graph.find_node("input_DequantizeLinear");
  ASSERT_NE(input, nullptr);
  EXPECT_EQ(input->input(0)->name, "input");
  EXPECT_EQ(input->get_int("qmin"), 0);
  EXPECT_EQ(input->get_int("qmax"), 255);
  EXPECT_NE(input->input(2)->constant->to_ints()[0], 0);  // asymmetric
  const ir::Node* weight = graph.find_node("fc.weight_DequantizeLinear");
  ASSERT_NE(weight, nullptr);
  EXPECT_EQ(weight->get_int("axis"), 0);
  EXPECT_EQ(weight->get_int("qmin"), -127);
  EXPECT_EQ(weight->get_string("state"), ir::kFrozen);
  EXPECT_EQ(*weight->input(0)->type.shape, (Shape{5, 128}));
  EXPECT_EQ(weight->input(0)->type.data_type, ir::DataType::kFloat32);
  // Quantizing the dequantized weights changes nothing.
  const auto values = weight->input(0)->constant->to_floats(), scales = weight->input(1)->constant->to_floats();
  for (size_t i = 0; i < values.size(); ++i)
    ASSERT_EQ(numerics::fake_quantize(values[i], {scales[i / 128], 0, -127, 127}), values[i]);
  // The bias was int32 behind DequantizeLinear: now a float constant.
  const ir::Node* conv = graph.find_node("/conv1/Conv");
  ASSERT_NE(conv, nullptr);
  ASSERT_TRUE(conv->input(2)->is_constant());
  EXPECT_EQ(conv->input(2)->type.data_type, ir::DataType::kFloat32);
}

TEST(Fixtures, ExternalDataHoldsTheSameNetwork) {
  const Graph inside = import_model(fixture("residual_torchscript_17.onnx"));
  const Graph outside = import_model(fixture("residual_external.onnx"));
  EXPECT_EQ(first_difference(inside, outside), "");
}

TEST(Fixtures, KerasPatterns) {
  Graph graph = import_model(fixture("keras_tf2onnx_15.onnx"));
  const Kinds expected = {{"Transpose", 2}, {"Pad", 1},    {"Conv", 1}, {"Clip", 1},
                          {"Reshape", 1},   {"MatMul", 1}, {"Add", 1},  {"Softmax", 1}};
  EXPECT_EQ(kinds(graph), expected);
  EXPECT_NE(graph.find_value("model/conv/ReadVariableOp:0"), nullptr);
  ir::set_batch(graph, 4);
  EXPECT_EQ(*graph.outputs()[0]->type.shape, (Shape{4, 5}));
}

TEST(Fixtures, OldForms) {
  const Graph graph = import_model(fixture("old_forms_11.onnx"));
  EXPECT_EQ(graph.inputs().size(), 1u);
  EXPECT_EQ(graph.opset, 11);
  EXPECT_EQ(graph.metadata.at("author"), "somebody");
  EXPECT_EQ(graph.find_value("half32")->constant->to_floats(), std::vector<float>{0.5f});
  EXPECT_EQ(graph.find_node("s0")->input(1)->constant->to_ints(), (std::vector<int64_t>{1, 3}));
  EXPECT_EQ(graph.find_node("g")->input(1)->constant->to_ints(), (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(graph.find_node("d")->input(1)->constant->to_floats(), std::vector<float>{0.25f});
  EXPECT_FALSE(graph.find_node("r")->has_input(1));  // the unused region of interest
  EXPECT_EQ(*graph.find_value("t")->type.shape, (Shape{kDynamic, 3, 1}));
  EXPECT_EQ(*graph.find_value("p")->type.shape, (Shape{kDynamic, 1, 8, 8}));
  EXPECT_EQ(kinds(graph).at("Add"), 2);  // Sum of three
}

// Every truncation and a few thousand damaged copies: a graph or a UserError that names the file's kind.
TEST(Damage, TruncatedFilesAreRefused) {
  for (const char* name : {"residual_torchscript_13.onnx", "residual_ort_qdq.onnx", "old_forms_11.onnx"}) {
    const std::string bytes = read_file(fixture(name));
    for (size_t length = 0; length < bytes.size(); length += 1 + length / 64) {
      try {
        import_bytes(std::string_view(bytes).substr(0, length), {});
        ADD_FAILURE() << name << " cut at " << length << " was read";
      } catch (const UserError& e) {
        EXPECT_THAT(e.what(), ::testing::StartsWith("ONNX model: ")) << name << " cut at " << length;
      }
    }
  }
}

TEST(Damage, FlippedBytesNeverCrash) {
  set_log_level(LogLevel::kSilent);
  uint64_t state = 88172645463325252u;  // xorshift: the same on every machine
  const auto next = [&] {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
  };
  int refused = 0, read = 0;
  for (const fs::path& path : all_fixtures()) {
    const std::string good = read_file(path);
    for (int i = 0; i < 300; ++i) {
      std::string bytes = good;
      const int changes = 1 + static_cast<int>(next() % 4);
      for (int c = 0; c < changes; ++c) {
        const size_t at = next() % bytes.size();
        switch (next() % 3) {
          case 0:
            bytes[at] = static_cast<char>(bytes[at] ^ (1 << (next() % 8)));
            break;
          case 1:
            bytes[at] = static_cast<char>(next());
            break;
          default:
            bytes.erase(at, 1 + next() % 16);
        }
      }
      try {
        import_bytes(bytes, fixture(""));
        ++read;
      } catch (const UserError&) {
        ++refused;
      }
    }
  }
  set_log_level(LogLevel::kInfo);
  EXPECT_GT(refused, 500);
  EXPECT_GT(read, 500);  // most bytes are weights
}

}  // namespace
}  // namespace octet::onnx
