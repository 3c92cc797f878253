// octet/compiler.h: ONNX files become engines without the program.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <octet/compiler.h>
#include <octet/octet_compiler.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <string>
#include <vector>

#include "ir/infer.h"
#include "onnx/export.h"

namespace octet {
namespace {

using testing::HasSubstr;

class Compiler : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::path(testing::TempDir()) /
              (std::string("octet_compiler_") + testing::UnitTest::GetInstance()->current_test_info()->name());
    std::filesystem::create_directories(folder_);
    ir::Graph g;
    ir::Value* x = g.add_input("x", {ir::DataType::kFloat32, ir::Shape{ir::kDynamic, 3, ir::kDynamic, ir::kDynamic}});
    ir::Value* w = g.add_constant("w", ir::Tensor::of<float>({2, 3, 1, 1}, std::vector<float>{1, 2, 3, -1, 0, 1}));
    g.add_output(g.add(ir::OpKind::kRelu, "y", {g.add(ir::OpKind::kConv, "conv", {x, w})}));
    g.metadata["author"] = "somebody";
    ir::infer_shapes(g);
    bytes_ = onnx::export_bytes(g, {});
    onnx_ = (folder_ / "net.onnx").string();
    std::ofstream(onnx_, std::ios::binary) << bytes_;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  static std::string read(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  }
  static std::string error_of(const std::function<void()>& work) {
    try {
      work();
    } catch (const Error& e) {
      return e.what();
    }
    return "";
  }

  std::filesystem::path folder_;
  std::string bytes_, onnx_;
  const CompileOptions sized_{.input_shapes = {"Nx3x2x1"}};
};

TEST_F(Compiler, MakesAnEngineThatRuns) {
  const std::string engine_bytes = compile(onnx_, sized_);
  const Engine engine = Engine::from_memory(engine_bytes.data(), engine_bytes.size());
  EXPECT_EQ(engine.inputs()[0].shape, (std::vector<int64_t>{1, 3, 2, 1}));
  EXPECT_EQ(engine.metadata().at("author"), "somebody");
  std::vector<float> y;
  engine.create_context({.threads = 1}).run({1, 10, 2, 20, 3, 30}, y);
  EXPECT_EQ(y, (std::vector<float>{14, 140, 2, 20}));
}

TEST_F(Compiler, FilesAndMemoryGiveTheSameBytes) {
  const std::string path = (folder_ / "net.octet").string();
  compile_file(onnx_, path, sized_);
  const std::string expected = compile(onnx_, sized_);
  EXPECT_EQ(read(path), expected);
  EXPECT_EQ(compile(bytes_.data(), bytes_.size(), sized_), expected);
  compile_file(onnx_, path, {.batch = 4, .input_shapes = {"x:Nx3x2x1"}});  // in place of the one that is there
  EXPECT_EQ(Engine::load(path).inputs()[0].shape[0], 4);
}

TEST_F(Compiler, MistakesAreSentences) {
  EXPECT_THAT(error_of([&] { compile("nothing.onnx"); }), HasSubstr("nothing.onnx"));
  EXPECT_THAT(error_of([&] { compile(onnx_); }), HasSubstr("1x3x224x224"));
  EXPECT_THAT(error_of([&] { compile("junk", 4); }), testing::Ne(""));
  EXPECT_THAT(error_of([&] { compile(onnx_, {.batch = -1, .input_shapes = {"Nx3x2x1"}}); }), HasSubstr("batch = -1"));
  EXPECT_THAT(error_of([&] { compile(onnx_, {.input_shapes = {"Nx3x2x1"}, .isa = "sse9"}); }), HasSubstr("sse9"));
  EXPECT_THAT(error_of([&] { compile_file(onnx_, "/nowhere/net.octet", sized_); }), HasSubstr("/nowhere"));
}

TEST_F(Compiler, DoesTheSameInC) {
  const std::string path = (folder_ / "c.octet").string();
  const char* shapes[] = {"Nx3x2x1"};
  octet_compile_options options = OCTET_COMPILE_OPTIONS_INIT;
  options.input_shapes = shapes;
  options.input_shape_count = 1;
  ASSERT_EQ(octet_compile_file(onnx_.c_str(), path.c_str(), &options), OCTET_OK) << octet_compile_last_error();
  EXPECT_STREQ(octet_compile_last_error(), "");
  const std::string expected = compile(onnx_, sized_);
  EXPECT_EQ(read(path), expected);
  void* engine = nullptr;
  size_t size = 0;
  ASSERT_EQ(octet_compile_memory(bytes_.data(), bytes_.size(), nullptr, &options, &engine, &size), OCTET_OK);
  EXPECT_EQ(std::string(static_cast<const char*>(engine), size), expected);
  octet_compile_free(engine);
  octet_compile_free(nullptr);
  EXPECT_EQ(octet_compile_file("nothing.onnx", path.c_str(), nullptr), OCTET_ERROR);
  EXPECT_THAT(octet_compile_last_error(), HasSubstr("nothing.onnx"));
  EXPECT_EQ(octet_compile_file(nullptr, path.c_str(), nullptr), OCTET_ERROR);
  EXPECT_THAT(octet_compile_last_error(), HasSubstr("onnx_path is a null pointer"));
  octet_compile_options forgotten;
  std::memset(&forgotten, 0, sizeof forgotten);
  EXPECT_EQ(octet_compile_file(onnx_.c_str(), path.c_str(), &forgotten), OCTET_ERROR);
  EXPECT_THAT(octet_compile_last_error(), HasSubstr("struct_size is 0"));
}

}  // namespace
}  // namespace octet
