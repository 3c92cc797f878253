// What the import refuses, and in which words.
#include "onnx/import.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <protozero/pbf_writer.hpp>

#include "base/files.h"
#include "draft_model.h"

namespace octet::onnx {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(Errors, UnsupportedOperators) {
  EXPECT_THAT(Draft(13).node("Unique", {"x"}, {"a"}).node("Det", {"a"}, {"y"}).error(),
              AllOf(HasSubstr("ONNX model: node 'n_a' (Unique)"), HasSubstr("domain 'ai.onnx'"), HasSubstr("Det"),
                    HasSubstr("docs/operators.md")));
  EXPECT_THAT(Draft(13).node("FakeQuantize", {"x", "x", "x"}, {"y"}).error(), HasSubstr("FakeQuantize"));
  EXPECT_THAT(Draft(13).node("ConstantOfShape", {"x"}, {"y"}).error(),
              HasSubstr("node 'n_y' (ConstantOfShape): input 0 should hold integers, not float32"));
}

// The sizes of `fixed` are not those that the reader tries for the dynamic ones of x; what
// is computed from them after that has no value any more. Found by fuzzing.
TEST(Errors, SizesComputedAfterExampleSizesDidNotFit) {
  const auto draft = [] {
    Draft d(13, {1, 3, ir::kDynamic, ir::kDynamic});
    d.constant("fixed", floats({1, 3, 8, 8}, std::vector<float>(192))).constant("from", ints({2}));
    d.node("Shape", {"x"}, {"size"}).node("Add", {"x", "fixed"}, {"sum"});
    return d;
  };
  const auto says_why = AllOf(HasSubstr("input 'size' is computed from sizes that are dynamic in this model"),
                              HasSubstr("with example sizes for its dynamic dimensions, "), HasSubstr("'n_sum' (Add)"));
  EXPECT_THAT(draft().node("Gather", {"size", "from"}, {"height"}).node("Expand", {"sum", "height"}, {"y"}).error(),
              AllOf(HasSubstr("node 'n_height'"), says_why));
  EXPECT_THAT(draft().node("Reshape", {"sum", "size"}, {"y"}).error(),
              AllOf(HasSubstr("node 'n_y' (Reshape)"), says_why));
}

// A model of one node in another domain; `function`: the model defines it itself.
std::string foreign_model(bool function) {
  std::string bytes;
  protozero::pbf_writer model(bytes);
  model.add_int64(1, 8);
  {
    protozero::pbf_writer graph(model, 7);
    {
      protozero::pbf_writer node(graph, 1);
      node.add_string(2, "y");
      node.add_string(3, "fused");
      node.add_string(4, "FusedConv");
      node.add_string(7, "com.microsoft");
    }
    protozero::pbf_writer output(graph, 12);
    output.add_string(1, "y");
  }
  {
    protozero::pbf_writer opset(model, 8);
    opset.add_int64(2, 17);
  }
  if (function) {
    protozero::pbf_writer definition(model, 25);
    definition.add_string(1, "FusedConv");
    definition.add_string(10, "com.microsoft");
  }
  return bytes;
}

TEST(Errors, ForeignDomains) {
  for (const bool function : {false, true}) {
    try {
      import_bytes(foreign_model(function), {});
      FAIL();
    } catch (const UserError& e) {
      if (function) {
        EXPECT_THAT(e.what(), HasSubstr("the function has 0 inputs and 0 outputs, the call 0 and 1"));
      } else {
        EXPECT_THAT(e.what(), AllOf(HasSubstr("node 'fused'"), HasSubstr("com.microsoft"), HasSubstr("FusedConv"),
                                    HasSubstr("docs/operators.md")));
      }
    }
  }
}

TEST(Errors, Opsets) {
  for (const int opset : {0, 5, 6, 26, 99})
    EXPECT_THAT(Draft(opset).node("Relu", {"x"}, {"y"}).error(),
                AllOf(HasSubstr(str("is of opset ", opset)), HasSubstr("7 to 25")));
}

TEST(Errors, BrokenGraphs) {
  EXPECT_THAT(Draft(13).node("Relu", {"z"}, {"y"}).error(), HasSubstr("reads 'z'"));
  EXPECT_THAT(Draft(13).node("Relu", {"x"}, {"z"}).error(), HasSubstr("output 'y' is made by no node"));
  EXPECT_THAT(Draft(13).node("Add", {"x", "b"}, {"a"}).node("Relu", {"a"}, {"b"}).node("Relu", {"b"}, {"y"}).error(),
              HasSubstr("cycle"));
  EXPECT_THAT(Draft(13).node("Relu", {"x"}, {"y"}).node("Abs", {"x"}, {"y"}).error(), HasSubstr("makes 'y'"));
  EXPECT_THAT(Draft(13).node("Relu", {"x"}, {"y"}, {{"slope", 1.0f}}).error(),
              AllOf(HasSubstr("n_y"), HasSubstr("'slope' is not supported")));
  EXPECT_THAT(Draft(13).node("Conv", {"x"}, {"y"}).error(), HasSubstr("n_y"));
  EXPECT_THAT(
      Draft(13).constant("w", floats({4, 5, 1, 1}, std::vector<float>(20))).node("Conv", {"x", "w"}, {"y"}).error(),
      HasSubstr("n_y"));
  EXPECT_THAT(Draft(11).node("BatchNormalization", {"x", "x", "x", "x", "x"}, {"y"}, {{"spatial", int64_t{0}}}).error(),
              HasSubstr("spatial"));
}

// Users of perm index arrays with its entries; ONNX Runtime refuses these, too.
TEST(Errors, NegativePermutations) {
  const ir::Attributes perm = {{"perm", std::vector<int64_t>{0, -1, -2, -3}}};
  const auto names_it =
      AllOf(HasSubstr("node 'n_y' (Transpose)"), HasSubstr("perm holds -1; it should name each axis from 0 to 3 once"));
  EXPECT_THAT(Draft(13).node("Transpose", {"x"}, {"y"}, perm).error(), names_it);
  Draft folded(13, {1, 1, 1, 1});
  folded.constant("w", floats({1, 1, 1, 1}, {1})).node("Transpose", {"w"}, {"t"}, perm);
  EXPECT_THAT(folded.node("Add", {"x", "t"}, {"y"}).error(),
              AllOf(HasSubstr("node 'n_t' (Transpose): "), HasSubstr(": perm holds -1;")));
}

// One scale has no axis, so the attribute may be anything.
TEST(Errors, AxisOfOneScaleIsNotRead) {
  const ir::Attributes far = {{"axis", int64_t{-9}}};
  Draft draft(13);
  draft.constant("s", floats({1}, {0.5f})).constant("z", ir::Tensor::of<int8_t>({1}, {0}));
  draft.node("QuantizeLinear", {"x", "s", "z"}, {"q"}, far).node("DequantizeLinear", {"q", "s", "z"}, {"y"}, far);
  EXPECT_EQ(draft.error(), "");
  EXPECT_EQ(op_names(draft.import()), std::vector<std::string>{"FakeQuantize"});
}

TEST(Errors, HugeConstantsAreNotMade) {
  EXPECT_THAT(Draft(13)
                  .constant("s", ints({1 << 20, 1 << 20, 1 << 20}))
                  .node("ConstantOfShape", {"s"}, {"c"})
                  .node("Add", {"x", "c"}, {"y"})
                  .error(),
              HasSubstr("n_c"));
  EXPECT_THAT(Draft(13)
                  .constant("s", ints({1 << 28}))
                  .node("ConstantOfShape", {"s"}, {"c"})
                  .node("Add", {"x", "c"}, {"y"})
                  .error(),
              HasSubstr("memory"));
}

TEST(Errors, FilesThatAreNoModels) {
  const fs::path folder = fs::path(::testing::TempDir()) / "octet_onnx_import_test";
  fs::create_directories(folder);
  const auto error = [&](const std::string& bytes) -> std::string {
    write_file_atomically(folder / "bad.onnx", bytes);
    try {
      import_model(folder / "bad.onnx");
    } catch (const UserError& e) {
      return e.what();
    }
    return "";
  };
  EXPECT_THAT(error(""), HasSubstr("bad.onnx: is empty"));
  EXPECT_THAT(error("hello, this is not a model"), HasSubstr("bad.onnx: is not an ONNX model"));
  EXPECT_THAT(error(std::string(100, '\0')), HasSubstr("bad.onnx: is not an ONNX model"));
  EXPECT_THAT(error(serialize(Draft(13).node("Relu", {"x"}, {"y"})).substr(0, 60)), HasSubstr("truncated"));
  EXPECT_THROW(import_model(folder / "missing.onnx"), UserError);
  EXPECT_THROW(import_model(folder), UserError);
  fs::remove_all(folder);
}

}  // namespace
}  // namespace octet::onnx
